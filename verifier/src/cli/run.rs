//! `run`: prints the observable results of a program in an environment.

use crate::turnip::{DriverArgs, Shaders};
use crate::vulkan::{self, VulkanArgs};
use crate::{Exit, Failure, Format, Fuel, Gpu, output, paths};
use clap::Args;
use ir3_compiler::nir::Shader;
use ir3_harness::check::{self, run_snapshot};
use ir3_programs::input::{self, unread_of};
use ir3_programs::turnip::is_shader;
use ir3_programs::vulkan::Library;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::{End, Outcome, Scratch};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `run`.
#[derive(Args)]
pub struct Run {
    /// A nir or ir3 text, machine code, or a Mesa log, whose final-form nir is used. With --vulkan several of them,
    /// folders, and shaders (.spv, .comp, .vert, .frag, .wgsl), which the driver of `ci/stock-mesa` compiles to nir.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The environment, as JSON: a seed and the words that differ from those of the seed.
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    env: Option<PathBuf>,
    /// The environment's seed.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    fuel: Fuel,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    vulkan: VulkanArgs,
    /// With --vulkan: the folder for the bundle of a program that differs.
    #[arg(long, value_name = "DIR", requires = "vulkan")]
    failures: Option<PathBuf>,
    #[command(flatten)]
    driver: DriverArgs,
}

#[derive(Serialize)]
struct OutputLine {
    output: u16,
    component: u8,
    values: Vec<Option<u32>>,
}

#[derive(Serialize)]
struct MemoryLine {
    space: &'static str,
    binding: String,
    byte: u32,
    value: u32,
    /// The undefined bits.
    undefined: u32,
}

#[derive(Serialize)]
struct EndLine {
    program: String,
    end: String,
    executed: u64,
    killed: u64,
    helpers: u64,
}

/// Reads an environment.
pub fn read_env(path: &Path) -> Result<Env, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // The message has the place.
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

impl Run {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let env = match &self.env {
            Some(path) => read_env(path)?,
            None => Env::from_seed(self.seed),
        };
        let env = self.fuel.of_one(env);
        if let Some(library) = self.vulkan.library()? {
            return self.on_device(&library, &env);
        }
        let [path] = &self.paths[..] else {
            return Err(format!("found {} paths, expected one, or --vulkan", self.paths.len()).into());
        };
        if self.driver.is_given() {
            return Err("found an option of the driver that compiles shaders, expected --vulkan with it".into());
        }
        let mut exit = Exit::Passed;
        let mut scratch = Scratch::default();
        for mut named in input::load(path, self.gpu.given())? {
            if let Snapshot::Ir3(program) = &mut named.program {
                named.taken.extend(check::complete(program, &named.target));
            }
            output::taken(&named.name, &named.taken);
            let outcome = run_snapshot(&named.program, &named.target, &env, env.fuel(), &mut scratch)
                .map_err(|error| format!("{}: {error}", named.name))?;
            print(format, &named.name, &outcome);
            exit = exit.max(Exit::Unmet.when(outcome.end == End::OutOfFuel));
        }
        Ok(exit)
    }

    /// Compares the programs of all paths on a Vulkan device.
    fn on_device(&self, library: &Library, env: &Env) -> Result<Exit, Failure> {
        let shaders = Shaders::new(&self.driver, &self.gpu);
        let (files, found) = paths::with_shaders(&self.paths)?;
        shaders.start(&files)?;
        let programs = files.iter().flat_map(|path| {
            let loaded = match is_shader(path) {
                true => unread_of(shaders.lines(path), self.gpu.given()).map(|text| text?.read()).collect(),
                false => input::load(path, self.gpu.given()),
            };
            let name = path.display().to_string();
            match loaded {
                Ok(all) => all.into_iter().map(|named| (named.name, nir_of(named.program))).collect::<Vec<_>>(),
                Err(error) => vec![(name, Err(error.to_string()))],
            }
        });
        let exit = vulkan::run(&self.vulkan, library, programs, env, self.failures.as_deref())?;
        shaders.print_counts();
        Ok(exit.max(found))
    }
}

fn nir_of(program: Snapshot) -> Result<Shader, String> {
    match program {
        Snapshot::Nir(shader) => Ok(*shader),
        _ => Err("found no nir, expected a program in nir".to_owned()),
    }
}

fn print(format: Format, name: &str, outcome: &Outcome) {
    let end = match &outcome.end {
        End::Finished => "finished".to_owned(),
        End::OutOfFuel => "out of fuel".to_owned(),
        End::Undefined { reason, origin, lanes } => format!("undefined: {reason}, at {origin}, in lanes {lanes:#018x}"),
    };
    let ended = EndLine {
        program: name.to_owned(),
        end,
        executed: outcome.executed,
        killed: outcome.killed,
        helpers: outcome.helpers,
    };
    if format == Format::Human {
        output::line(&format!("{name}: {} after {} instructions", ended.end, ended.executed));
        if outcome.killed != 0 {
            output::line(&format!("killed lanes {:#018x}", outcome.killed));
        }
    }
    for row in outcome.outputs.rows() {
        let values: Vec<Option<u32>> =
            row.values.iter().enumerate().map(|(lane, &v)| (row.poison >> lane & 1 == 0).then_some(v)).collect();
        match format {
            Format::Json => output::json("output", &OutputLine { output: row.base, component: row.component, values }),
            _ => {
                output::line(&format!("output {}.{}", row.base, row.component));
                for lanes in values.chunks(8) {
                    let words: Vec<String> =
                        lanes.iter().map(|v| v.map_or_else(|| "   undef".to_owned(), |v| format!("{v:08x}"))).collect();
                    output::line(&format!("  {}", words.join(" ")));
                }
            }
        }
    }
    for word in &outcome.memory {
        let name = MemoryName::of(word.space, word.binding);
        match format {
            Format::Json => output::json(
                "memory",
                &MemoryLine {
                    space: word.space.name(),
                    binding: name.binding_text(),
                    byte: word.word * 4,
                    value: word.value,
                    undefined: word.poison,
                },
            ),
            _ => {
                let undefined =
                    if word.poison != 0 { format!(" (undefined bits {:#010x})", word.poison) } else { String::new() };
                output::line(&format!("{name} byte {}: {:08x}{undefined}", word.word * 4, word.value));
            }
        }
    }
    if format == Format::Json {
        output::json("run-end", &ended);
    }
}
