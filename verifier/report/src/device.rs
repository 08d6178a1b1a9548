//! The folder of a program on which a device and the interpreter differ.
//!
//! - `README.md`: the difference, and the commands that show it again;
//! - `program.nir`, `env.json`: the program, reduced if it was reduced, and its environment; `original.nir`: as it was
//!   generated;
//! - `device.nir`, `device.json`: the program and the environment that were compared: with bounds, and with the rules
//!   of the device;
//! - `program.spv`, `program.spvasm`: the module that the device got;
//! - `failure.json`: the difference, for programs.

use ir3_compiler::nir::{self, Shader};
use ir3_harness::case::folder;
use ir3_harness::vulkan::oracle::{Observation, Verdict};
use ir3_harness::vulkan::second::Second;
use ir3_programs::generator::Profile;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::text_hash;
use rspirv::binary::Disassemble;
use std::io;
use std::path::{Path, PathBuf};

/// The contents of a folder.
pub struct Report<'a> {
    /// Device, driver and version.
    pub device: &'a str,
    /// The option that names the driver.
    pub option: &'a str,
    /// The profile and the seed of the generated program, if it was generated.
    pub origin: Option<(Profile, u64)>,
    /// The program.
    pub shader: &'a Shader,
    /// The program as it was generated, if `shader` is a reduced one.
    pub original: Option<&'a Shader>,
    /// The environment.
    pub env: &'a Env,
    /// The comparison.
    pub seen: &'a Observation,
    /// The result of a second device.
    pub second: Option<&'a Second>,
}

impl Report<'_> {
    /// Writes the folder below `root`, in place of one of the same program.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(&self, root: &Path) -> io::Result<PathBuf> {
        let path = root.join(self.name());
        let module = &self.seen.module;
        let bytes: Vec<u8> = module.iter().flat_map(|word| word.to_le_bytes()).collect();
        let text = rspirv::dr::load_words(module).map(|module| module.disassemble()).unwrap_or_default();
        let mut all: Vec<(&'static str, Vec<u8>)> = vec![
            ("README.md", self.readme().into_bytes()),
            ("failure.json", format!("{:#}\n", self.json()).into_bytes()),
            ("program.nir", nir::text::write(self.shader).into_bytes()),
            ("env.json", format!("{}\n", self.env.to_json()).into_bytes()),
            ("program.spv", bytes),
            ("program.spvasm", text.into_bytes()),
        ];
        if let Some((shader, env)) = self.seen.prepared.as_deref() {
            all.push(("device.nir", nir::text::write(shader).into_bytes()));
            all.push(("device.json", format!("{}\n", env.to_json()).into_bytes()));
        }
        if let Some(original) = self.original {
            all.push(("original.nir", nir::text::write(original).into_bytes()));
        }
        folder::write(&path, &all)?;
        Ok(path)
    }

    /// The name of the folder: the same for a program before and after it was reduced.
    fn name(&self) -> String {
        let kind = self.seen.verdict.name();
        match self.origin {
            Some((profile, seed)) => format!("vulkan-{kind}-{profile}-{seed}"),
            None => format!("vulkan-{kind}-{:08x}", text_hash(&nir::text::write(self.shader)) as u32),
        }
    }

    /// The failure, for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let differences = match &self.seen.verdict {
            Verdict::Differs(_, list) => &list[..],
            _ => &[],
        };
        let differences: Vec<_> = differences
            .iter()
            .map(|it| {
                serde_json::json!({
                    "buffer": it.place.resource(),
                    "byte": it.place.byte(),
                    "expected": it.expected,
                    "actual": it.actual,
                    "open": it.open,
                    "stored": it.is_stored,
                })
            })
            .collect();
        serde_json::json!({
            "kind": "vulkan",
            "verdict": self.seen.verdict.name(),
            "message": self.seen.verdict.to_string(),
            "device": self.device,
            "profile": self.origin.map(|(profile, _)| profile.to_string()),
            "seed": self.origin.map(|(_, seed)| seed),
            "reduced": self.original.is_some(),
            "instructions": self.shader.instruction_count(),
            "open": self.seen.freedoms,
            "replaced": self.seen.replaced,
            "differences": differences,
            "second": self.second.map(|second| serde_json::json!({ "device": second.device, "agreement": second.agreement })),
        })
    }

    fn readme(&self) -> String {
        let origin = match self.origin {
            Some((profile, seed)) => format!("The program comes from the generator: profile {profile}, seed {seed}"),
            None => "The program was given".to_owned(),
        };
        let reduced = if self.original.is_some() { "; `original.nir` is as it was before it was reduced" } else { "" };
        let list = match &self.seen.verdict {
            Verdict::Differs(_, list) => list.iter().map(|it| format!("- {it}\n")).collect::<String>(),
            _ => String::new(),
        };
        let second = self.second.map_or_else(String::new, |it| format!("On {}: {}.\n\n", it.device, it.agreement));
        format!(
            "# {verdict}\n\nOn {device}. `expected` is the interpreter of nir.\n\n{second}{list}\nTo see it again, in this folder:\n\n    \
             ir3-equiv run program.nir --vulkan{option} --env env.json\n\n`device.nir` is the program that was compared ({lanes} lanes, accesses within \
             their buffers), `device.json` its environment, `program.spv` the module of it that the device got, `program.spvasm` the same as a \
             text. {origin}{reduced}.\n",
            verdict = self.seen.verdict,
            device = self.device,
            option = if self.option.is_empty() { String::new() } else { format!("={}", self.option) },
            lanes = self.seen.prepared.as_deref().map_or(0, |(shader, _)| ir3_programs::vulkan::lanes_of(shader)),
        )
    }
}
