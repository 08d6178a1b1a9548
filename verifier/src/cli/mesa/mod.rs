//! `mesa`: checks the passes of the real compiler by the log that it prints.
//!
//! Threads check shaders while the log is read; the main table is printed in the order of the logs. With `--compile`
//! the
//! nir of each shader goes through our own backend, too (`own.rs`); with `--watch` the log is a live stream
//! (`watch.rs`), whose verdicts may be kept (`kept.rs`).

mod kept;
mod own;
mod print;
mod report;
mod watch;

use crate::engines::{self, EngineArgs};
use crate::turnip::{DriverArgs, Shaders};
use crate::{Compiler, EnvSeed, Exit, Failure, Format, Gpu, Jobs, Planted, exit, interrupt, paths, values};
use clap::Args;
use ir3_harness::check::{EngineKind, Engines};
use ir3_harness::mesa::Settings;
use ir3_programs::mesa::input::InputError;
use ir3_programs::mesa::shader::FileShader;
use ir3_semantics::support::threads;
use print::Printer;
use std::convert::Infallible;
use std::path::PathBuf;

/// Options of `mesa`.
#[derive(Args)]
pub struct Mesa {
    /// Logs that Mesa's ir3 printed with `IR3_SHADER_DEBUG`, or `-` for standard input; shaders (.spv, .comp, .vert,
    /// .frag, .wgsl), which Mesa's turnip compiles (docs/turnip.md); folders of both.
    #[arg(required = true, value_name = "LOG")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    /// Environments in which the sensitivity of a boundary that is not proved is measured, 64 lanes each; up to eight
    /// times as many while more of them raise it. Before that, both programs are compared in 24 to 192 others.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = values::count::<u32>())]
    runs: u32,
    #[command(flatten)]
    seed: EnvSeed,
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    jobs: Jobs,
    /// Print the facts about each shader that were inferred because the log does not print them.
    #[arg(long)]
    explain: bool,
    /// Print only failures, unknown boundaries and the summary.
    #[arg(long, short)]
    quiet: bool,
    /// Folder for the files of refutations.
    #[arg(long, value_name = "DIR", default_value = "ir3-equiv-failures")]
    failures: PathBuf,
    /// Write a page for each refuted pass, and an index, into a folder.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Compile the nir of each shader with our own backend, too: verify it like `verify`, and compare its metrics with
    /// those that Mesa printed. A shader that Mesa spilled though most registers are free (`spillall`) has
    /// `--max-registers min` unless it is given.
    #[arg(long)]
    compile: bool,
    #[command(flatten)]
    compiler: Compiler,
    #[command(flatten)]
    planted: Planted,
    #[command(flatten)]
    driver: DriverArgs,
    /// Treat the one log as a live stream (`-`): check shaders, each of them once, and print failures while they are
    /// printed. With `--cache`, shaders that an earlier run has checked are not checked again.
    #[arg(long, help_heading = "Live streams")]
    watch: bool,
    /// Maximum number of shaders (and 64 MiB of text) that wait for a thread. Beyond it reading stops, which blocks
    /// the application when its pipe is full.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = values::count::<u32>(), requires = "watch", help_heading = "Live streams")]
    queue: u32,
    /// Skip and count shaders if too many wait, instead of blocking the application.
    #[arg(long, requires = "watch", help_heading = "Live streams")]
    drop: bool,
    /// Print the tables of shaders that pass, too.
    #[arg(long, short, requires = "watch", conflicts_with = "quiet", help_heading = "Live streams")]
    verbose: bool,
}

impl Mesa {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let engines = self.engines.engines(&EngineKind::ALL, engines::PROOF_TIME)?;
        if !self.compile && (self.planted.plant.is_some() || self.compiler.is_given()) {
            return Err("options of the compiler are for `mesa --compile`: Mesa's passes are in the log".into());
        }
        exit::try_folder(&self.failures)?;
        if self.watch {
            return self.watch(&engines, format);
        }
        let settings = self.settings(&engines);
        let (files, found) = paths::with_shaders(&self.paths)?;
        let shaders = Shaders::new(&self.driver, &self.gpu);
        shaders.start(&files)?;
        let files = shaders.linked(files);
        let printer = Printer::new(self, format)?;
        let check = |found: Result<FileShader, InputError>| {
            found.and_then(|file| self.check(&file.path, &file.shader, &settings))
        };
        let Ok(()) =
            threads::in_order(self.jobs.count(), shaders.of_files(files), interrupt::flag(), check, |result| {
                printer.result(result);
                Ok::<(), Infallible>(())
            });
        shaders.print_counts();
        Ok(Exit::of_all([printer.end(), found, engines::written(&engines)]))
    }

    fn settings<'a>(&self, engines: &'a Engines) -> Settings<'a> {
        Settings::new(engines, self.runs as usize, self.seed.seed)
    }
}
