//! `turnip`: the logs of shaders that Mesa's turnip compiles, and the shaders among the inputs of other commands.
//!
//! One worker compiles the shaders of a command one after the other; checking them takes longer.

use crate::exit::Exit;
use crate::{Failure, Gpu, interrupt, output, paths, values};
use clap::Args;
use ir3_compiler::target::Target;
use ir3_programs::mesa::input::{InputError, Lines};
use ir3_programs::mesa::shader::{FileShader, shaders, shaders_in};
use ir3_programs::turnip::{Compilation, Driver, Found, Kind, Setup, Worker, WorkerError, is_shader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The driver, for every subcommand that reads shaders.
#[derive(Args, Clone)]
#[command(next_help_heading = "Shaders (.spv, .comp, .vert, .frag, .wgsl)")]
pub struct DriverArgs {
    /// The driver that compiles shaders: the path of libvulkan_freedreno.so, or the folder with it and the libraries
    /// that it needs. Default: that of `ci/stock-mesa`, then the system's.
    #[arg(long, value_name = "PATH")]
    driver: Option<PathBuf>,
    /// The time after which the driver hangs.
    #[arg(long, value_name = "T", default_value = "20s", value_parser = values::time)]
    driver_time: Duration,
    /// Memory limit of the driver for a module, in MiB.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = values::count::<u32>())]
    driver_memory: u32,
    /// Limit on the text that the driver prints for a module, in MiB.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = values::count::<u32>())]
    driver_output: u32,
    /// A variable of the driver's environment, as `IR3_SHADER_DEBUG=cs,optmsgs,spillall`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    driver_set: Vec<String>,
    /// The value of a specialisation constant of each module, as `3=64`: an integer, a float or a truth value, as its
    /// type is. May be repeated.
    #[arg(long, value_name = "NUMBER=VALUE")]
    spec_constant: Vec<String>,
    /// Compile a vertex and a fragment shader as one pipeline: the driver removes the outputs that the other one does
    /// not read.
    #[arg(long)]
    link: bool,
    /// Enable robust accesses to buffers and images: the driver compiles other code for them.
    #[arg(long)]
    robust: bool,
}

impl DriverArgs {
    /// Returns true if a driver or an option of it was given.
    pub fn is_given(&self) -> bool {
        self.driver.is_some()
            || self.robust
            || !self.driver_set.is_empty()
            || !self.spec_constant.is_empty()
            || self.link
    }

    /// The driver and the options of a worker.
    pub fn setup(&self, target: Target) -> Result<Setup, WorkerError> {
        let driver = Driver::find(self.driver.as_deref())?;
        Ok(Setup {
            time: self.driver_time,
            memory: self.driver_memory.into(),
            output: self.driver_output.into(),
            is_robust: self.robust,
            variables: self.driver_set.clone(),
            constants: self.spec_constant.clone(),
            ..Setup::new(driver, target)
        })
    }
}

/// The shaders of a command that were compiled, and the worker.
#[derive(Default)]
struct State {
    worker: Option<Worker>,
    /// The shaders that are compiled as one, by the path of the first.
    linked: Vec<PathBuf>,
    device: String,
    ends: BTreeMap<Kind, u64>,
    words: [usize; 3],
}

/// Compiles the shaders of a command.
pub struct Shaders<'a> {
    options: &'a DriverArgs,
    target: Target,
    state: Mutex<State>,
}

/// The counts of compilations, as JSON.
#[derive(Serialize)]
struct Counts<'a> {
    device: &'a str,
    modules: u64,
    ends: BTreeMap<&'static str, u64>,
    words_listed: usize,
    words_missing: usize,
    words_ambiguous: usize,
}

impl<'a> Shaders<'a> {
    pub fn new(options: &'a DriverArgs, gpu: &Gpu) -> Self {
        Self { options, target: gpu.target(), state: Mutex::new(State::default()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the worker if one of the files is a shader.
    ///
    /// # Errors
    /// If there is no driver, or it has no device: no shader can be compiled then.
    pub fn start(&self, files: &[PathBuf]) -> Result<(), WorkerError> {
        if files.iter().any(|path| is_shader(path)) {
            self.state().worker = Some(Worker::start(&self.options.setup(self.target)?)?);
        }
        Ok(())
    }

    /// The files of a command, of which shaders that are linked are the first one only.
    pub fn linked(&self, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
        if self.options.link {
            let mut state = self.state();
            state.linked = files.iter().filter(|path| is_shader(path)).cloned().collect();
            files.retain(|path| !is_shader(path) || state.linked.first() == Some(path));
        }
        files
    }

    /// Compiles a file.
    pub fn compile(&self, path: &Path) -> Result<Compilation, InputError> {
        let mut state = self.state();
        let failed = |cause| InputError::NoDriver { path: path.to_owned(), cause };
        let mut worker = match state.worker.take() {
            Some(worker) => worker,
            None => self.options.setup(self.target).and_then(|setup| Worker::start(&setup)).map_err(failed)?,
        };
        // A worker that fails is not used again.
        let linked: Vec<&Path> = state.linked.iter().map(PathBuf::as_path).collect();
        let compilation = match linked.first() == Some(&path) {
            true => worker.link(&linked),
            false => worker.compile(path),
        };
        let compilation = compilation.map_err(failed)?;
        worker.device().clone_into(&mut state.device);
        state.worker = Some(worker);
        *state.ends.entry(compilation.kind).or_default() += 1;
        let Found { listed, missing, ambiguous } = compilation.words;
        for (sum, count) in state.words.iter_mut().zip([listed, missing, ambiguous]) {
            *sum += count;
        }
        Ok(compilation)
    }

    /// The log of a file.
    pub fn log(&self, path: &Path) -> Result<String, InputError> {
        let Compilation { kind, detail, log, .. } = self.compile(path)?;
        match kind {
            Kind::Compiled => Ok(log),
            _ => Err(InputError::NotCompiled { path: path.to_owned(), kind, detail }),
        }
    }

    /// The GPU that shaders are compiled for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The lines of the log of a file.
    pub fn lines(&self, path: &Path) -> Result<Lines, InputError> {
        Ok(Lines::of(path, Cursor::new(self.log(path)?)))
    }

    /// The shaders of files: those of logs, and those that the driver compiles.
    pub fn of_files(&self, files: Vec<PathBuf>) -> impl Iterator<Item = Result<FileShader, InputError>> + Send {
        files.into_iter().flat_map(|path| -> Box<dyn Iterator<Item = Result<FileShader, InputError>> + Send> {
            match is_shader(&path) {
                false => Box::new(shaders(vec![path])),
                true => match self.lines(&path) {
                    Ok(lines) => Box::new(shaders_in(lines)),
                    Err(error) => Box::new(std::iter::once(Err(error))),
                },
            }
        })
    }

    /// Prints the counts of compilations, if there were any.
    pub fn print_counts(&self) {
        let state = self.state();
        let modules: u64 = state.ends.values().sum();
        if modules == 0 {
            return;
        }
        let [words_listed, words_missing, words_ambiguous] = state.words;
        let ends = state.ends.iter().map(|(kind, count)| (kind.name(), *count)).collect();
        let device = &*state.device;
        output::json("driver", &Counts { device, modules, ends, words_listed, words_missing, words_ambiguous });
        let ends: Vec<String> = state.ends.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let plural = if modules == 1 { "" } else { "s" };
        output::line(&format!("{device}: {modules} shader file{plural}: {}", ends.join(", ")));
        let unknown = words_missing + words_ambiguous;
        if unknown > 0 {
            output::line(&format!(
                "the words of {unknown} programs are not compared: {words_missing} were not found, {words_ambiguous} in several places"
            ));
        }
    }
}

/// The exit of an input that has no programs.
pub fn exit_of(error: &InputError) -> Exit {
    match error {
        InputError::NotCompiled { kind, .. } if kind.is_fault() => Exit::Refuted,
        InputError::NotCompiled { kind: Kind::Refused | Kind::Unsupported, .. } => Exit::Unmet,
        _ => Exit::Bad,
    }
}

/// Options of `turnip`.
#[derive(Args)]
pub struct Turnip {
    /// Shaders: SPIR-V modules (.spv), or GLSL and WGSL that naga translates (.comp, .vert, .frag, .wgsl); folders of
    /// them.
    #[arg(required = true, value_name = "SHADER")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    driver: DriverArgs,
}

impl Turnip {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<Exit, Failure> {
        let shaders = Shaders::new(&self.driver, &self.gpu);
        if let Some(other) = self.paths.iter().find(|path| !is_shader(path) && !path.is_dir()) {
            return Err(format!("{}: found no .spv, .comp, .vert, .frag or .wgsl", other.display()).into());
        }
        let (files, found) = paths::with_shaders(&self.paths)?;
        if let Some(other) = files.iter().find(|path| !is_shader(path)) {
            return Err(format!("{}: found a program or a log, expected folders of shaders", other.display()).into());
        }
        shaders.start(&files)?;
        let files = shaders.linked(files);
        let mut exits = vec![found];
        for path in &files {
            if interrupt::is_set() {
                exits.push(Exit::Interrupted);
                break;
            }
            let Compilation { kind, detail, log, .. } = match shaders.compile(path) {
                Ok(compilation) => compilation,
                Err(error) => {
                    output::error(&error);
                    exits.push(Exit::Bad);
                    continue;
                }
            };
            // The log of a fault may show its place.
            output::document(&path.display().to_string(), "log", &log);
            if kind != Kind::Compiled {
                let error = InputError::NotCompiled { path: path.clone(), kind, detail };
                exits.push(exit_of(&error));
                output::error(&error);
            }
        }
        Ok(Exit::of_all(exits))
    }
}
