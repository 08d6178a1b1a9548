//! The folder of a failure of a compiler that is another program: the files for a bug report.
//!
//! - `README.md`: the failure, and the commands that show it again;
//! - `program.spv`, `program.nir`: the program, reduced if possible; `original.nir`: the generated program;
//! - `program.log`: the output of the compiler;
//! - of a refuted pass: both sections (`before.txt`, `after.txt`), the same programs with the recovered attributes, the
//!   input (`env.json`), and the runs up to the first difference (`difference.txt`);
//! - `failure.json`: the failure, the seed and the command, for programs.

use crate::pass;
use ir3_compiler::nir::{self, Shader};
use ir3_harness::campaigns::external::command::{LOG, MODULE, SOURCE};
use ir3_harness::campaigns::external::reduce::spirv_size;
use ir3_harness::campaigns::external::variants::VariantFinding;
use ir3_harness::campaigns::external::{Compiler, Drivers, Found};
use ir3_harness::case::folder;
use ir3_harness::mesa::RefutedPass;
use ir3_programs::generator::Profile;
use ir3_programs::spirv::Module;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::text_hash;
use std::io;
use std::path::{Path, PathBuf};

/// The contents of a bundle.
pub struct Report<'a> {
    /// The compiler.
    pub compiler: &'a Compiler,
    /// The GPU that the command line names, for `mesa`.
    pub gpu: &'a str,
    /// The profile and the seed of the generated program.
    pub origin: (Profile, u64),
    /// The program that fails.
    pub shader: &'a Shader,
    /// The generated program, if `shader` is a reduced one.
    pub original: Option<&'a Shader>,
    /// The failure.
    pub found: &'a Found,
}

impl Report<'_> {
    /// Writes the folder below `root`, in place of one of the same failure of the same program.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(&self, root: &Path) -> io::Result<PathBuf> {
        let path = root.join(self.name());
        let Found { failure, message, log, refuted } = self.found;
        let (profile, seed) = self.origin;
        let files = refuted.as_ref().map(pass_files).unwrap_or_default();
        let json = serde_json::json!({
            "kind": failure.kind(),
            "stage": failure.stage(),
            "failure": failure.to_string(),
            "message": message,
            "compiler": self.compiler.line(),
            "profile": profile.to_string(),
            "seed": seed,
            "reduced": self.original.is_some(),
            "instructions": self.shader.instruction_count(),
            "spirv_instructions": spirv_size(self.shader),
        });
        // A translation that panics is a failure as well; it has no module.
        let module = catch(|| Module::of(self.shader).map(|module| module.bytes()));
        let module = module.ok().and_then(Result::ok).unwrap_or_default();
        let mut all: Vec<(&'static str, Vec<u8>)> = vec![
            ("README.md", self.readme(&files).into_bytes()),
            ("failure.json", format!("{json:#}\n").into_bytes()),
            (MODULE, module),
            (SOURCE, nir::text::write(self.shader).into_bytes()),
            (LOG, log.clone().into_bytes()),
        ];
        if let Some(original) = self.original {
            all.push(("original.nir", nir::text::write(original).into_bytes()));
        }
        all.extend(files);
        folder::write(&path, &all)?;
        Ok(path)
    }

    /// The name of the folder: the same for a program before and after it was reduced.
    fn name(&self) -> String {
        let failure = &self.found.failure;
        let (profile, seed) = self.origin;
        let hash = text_hash(&failure.to_string()) as u32;
        let kind = failure.kind();
        let stage = if failure.stage() == kind { String::new() } else { format!("{}-", failure.stage()) };
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        format!("compiler-{stage}{kind}-{profile}-{seed}-{hash:08x}").chars().map(plain).collect()
    }

    fn readme(&self, files: &[(&'static str, Vec<u8>)]) -> String {
        let Found { failure, message, refuted, .. } = self.found;
        let (profile, seed) = self.origin;
        let line = self.compiler.line();
        let sizes = format!(
            "{} instructions of nir, {} of SPIR-V in the function body",
            self.shader.instruction_count(),
            spirv_size(self.shader)
        );
        let before = files.iter().find(|(name, _)| name.starts_with("before.") && !name.ends_with(".txt"));
        let check = match (before, refuted) {
            (Some((before, _)), Some(refuted)) => format!(
                "Both sections are in `before.txt` and `after.txt` as the log has them; `{before}` and `after.ir3` are the same programs with \
                 the types, inputs and outputs that the text leaves out, `env.json` is the input, and `difference.txt` has the runs up to \
                 the first difference. The pass again:\n\n    \
                 {again}\n\n",
                again = pass::command_again(refuted),
            ),
            _ => String::new(),
        };
        format!(
            "# {failure}\n\n\
             `{line}` on `{MODULE}` ({sizes}; `{SOURCE}` is the same program): {failure}.\n\n\
             {message}\n\n\
             To see it again, in this folder:\n\n    \
             {line} {MODULE} 2>&1 | ir3-equiv mesa --gpu {gpu} -\n\n\
             {check}\
             `{LOG}` is what the compiler printed. The program comes from the generator: profile {profile}, seed {seed}{reduced}.\n",
            gpu = self.gpu,
            reduced = if self.original.is_some() { "; `original.nir` is the generated program" } else { "" },
        )
    }
}

/// The files of a refuted pass but for its README, which is a part of the one here.
fn pass_files(refuted: &RefutedPass) -> Vec<(&'static str, Vec<u8>)> {
    let files = pass::files(LOG, refuted).into_iter().filter(|(name, _)| *name != "README.md");
    files.map(|(name, text)| (name, text.into_bytes())).collect()
}

/// Writes the folder of a variant that fails below `root`: the module, the log, both sides of a refuted pass and the input.
///
/// # Errors
/// If the file system refuses.
pub fn write_variant(finding: &VariantFinding<'_>, root: &Path, drivers: &Drivers, gpu: &str) -> io::Result<PathBuf> {
    let Found { failure, message, log, refuted } = finding.found;
    let stem = finding.original.path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let stem: String = stem.chars().map(plain).take(40).collect();
    let stage: String = failure.stage().chars().map(plain).collect();
    let hash = text_hash(&failure.to_string()) as u32;
    let path = root.join(format!("variant-{stage}-{stem}-{}-{hash:08x}", finding.number));
    let changes: String = finding.changes.iter().map(|change| format!("- {change:?}\n")).collect();
    let again = refuted.as_ref().map(|refuted| format!("The pass again:\n\n    {}\n", pass::command_again(refuted)));
    let again = again.unwrap_or_default();
    let line = drivers.line();
    let readme = format!(
        "# {failure}\n\n{message}\n\n`{MODULE}` is `{}` with these changes:\n\n{changes}\nTo see it again, in this folder:\n\n    \
         {line} {MODULE} 2>&1 | ir3-equiv mesa --gpu {gpu} -\n\n{again}",
        finding.original.path.display()
    );
    let mut all: Vec<(&'static str, Vec<u8>)> =
        vec![("README.md", readme.into_bytes()), (MODULE, finding.module()), (LOG, log.clone().into_bytes())];
    all.extend(refuted.iter().flat_map(pass_files));
    folder::write(&path, &all)?;
    Ok(path)
}
