//! `compile`: a program after a stage, as text.

use crate::{Compiler, Exit, Failure, Gpu, Planted, output};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ir3_compiler::compilation;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Backend;
use ir3_harness::mesa::print;
use ir3_programs::input;
use ir3_programs::planted_bugs;
use ir3_semantics::Snapshot;
use std::path::PathBuf;

/// Options of `compile`.
#[derive(Args)]
pub struct Compile {
    /// A nir text, or a Mesa log, whose final-form nir is used.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print the whole compilation as Mesa prints its own with `IR3_SHADER_DEBUG`: nir, the program after each pass,
    /// the final assembly with its words and statistics. `mesa` reads it.
    #[arg(long, conflicts_with = "emit")]
    as_mesa_log: bool,
    /// PATH is a SPIR-V module, `FILE.spv`, and the program is that of `FILE.nir` in the same folder: as a compiler
    /// under test for `fuzz --compiler`.
    #[arg(long, requires = "as_mesa_log")]
    beside: bool,
    /// The stage whose result is printed: `nir` (the input) or one of the compiler's.
    #[arg(long, value_name = "STAGE", default_value = Stage::LAST.name(), value_parser = emit())]
    emit: Emit,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    planted: Planted,
    #[command(flatten)]
    compiler: Compiler,
}

#[derive(Clone, Copy)]
enum Emit {
    Nir,
    Stage(Stage),
}

/// The input and the stages, by their names.
fn emit() -> impl TypedValueParser<Value = Emit> {
    let names =
        ["nir"].into_iter().chain(Stage::NIR.iter().chain(&Stage::VEC4).chain(&Stage::ALL).map(|stage| stage.name()));
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "nir" => Ok(Emit::Nir),
        name => Stage::from_name(name).map(Emit::Stage).ok_or("found no such stage"),
    })
}

impl Compile {
    /// Returns true if the subcommand runs as a compiler under test.
    pub fn is_under_test(&self) -> bool {
        self.beside
    }

    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let path = if self.beside { self.path.with_extension("nir") } else { self.path.clone() };
        for named in input::load(&path, self.gpu.given())? {
            let Snapshot::Nir(shader) = &named.program else {
                let found = named.program.language();
                return Err(format!("{}: found a program in {found}, expected nir", named.name).into());
            };
            if self.as_mesa_log {
                let (target, plant) = (&named.target, self.planted.on(&named.target)?);
                let log = print::log(shader, target, &self.compiler.options(), plant)
                    .map_err(|error| format!("{}: {error}", named.name))?;
                output::document(&named.name, "log", &log);
                continue;
            }
            let emit = match (self.emit, named.target.backend) {
                // Unless another one was given.
                (Emit::Stage(Stage::LAST), Backend::Vec4) => Emit::Stage(Stage::Vec4LateDeadCode),
                (Emit::Stage(Stage::LAST), Backend::Scalar) => Emit::Stage(Stage::ScalarDeadCode),
                (emit, _) => emit,
            };
            let text = match emit {
                Emit::Nir => named.program.text(),
                Emit::Stage(last) if !last.is_of(named.target.backend) => {
                    return Err(format!("{}: {last} is no stage for {}", named.name, named.target).into());
                }
                Emit::Stage(last) if last >= Stage::Vec4Select && named.target.backend != Backend::Ir3 => {
                    let options = Options { last, ..self.compiler.options() };
                    let program =
                        planted_bugs::compile_gen7(shader, &named.target, &options, self.planted.on(&named.target)?)
                            .map_err(|error| format!("{}: {error}", named.name))?;
                    Snapshot::Vec4(Box::new(program)).text()
                }
                Emit::Stage(last) if last < Stage::Vec4Select => {
                    let options = Options { last, ..self.compiler.options() };
                    let rewritten = compilation::run_nir(shader, &named.target, &options).into_owned();
                    Snapshot::Nir(Box::new(rewritten)).text()
                }
                Emit::Stage(last) => {
                    let options = Options { last, ..self.compiler.options() };
                    let program =
                        planted_bugs::compile(shader, &named.target, &options, self.planted.on(&named.target)?)
                            .map_err(|error| format!("{}: {error}", named.name))?;
                    Snapshot::Ir3(Box::new(program)).text()
                }
            };
            output::document(&named.name, "program", &text);
        }
        Ok(Exit::Passed)
    }
}
