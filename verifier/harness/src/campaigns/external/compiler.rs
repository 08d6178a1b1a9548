//! The compiler under test: a command that is started for each program, or Mesa's turnip in workers that stay.

use super::command::{CompilerCommand, LOG, MODULE, Ran, RunError, SOURCE, quoted};
use ir3_compiler::nir::{self, Shader};
use ir3_programs::spirv::Module;
use ir3_programs::turnip::{Compilation, Kind, Setup, Worker, WorkerError};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A compiler under test.
pub enum Compiler {
    /// A command.
    Command(CompilerCommand),
    /// A driver.
    Driver(Box<Drivers>),
}

/// The sections of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// All.
    All,
    /// nir and the final code, where the compiler can leave out the passes: printing and reading them takes most of the
    /// time.
    Ends,
}

/// The variable of a driver that prints no passes.
const NO_PASSES: &str = "IR3_SHADER_DEBUG=vs,tcs,tes,gs,fs,cs";

/// Workers with one driver: as many as there are threads that compile, for each kind of log.
pub struct Drivers {
    setup: Setup,
    /// The idle workers that print all sections, and those that print no passes.
    idle: [Mutex<Vec<Worker>>; 2],
    device: String,
}

impl Compiler {
    /// Writes a program into a folder, and compiles it.
    ///
    /// # Errors
    /// If the system does not start it, or a file cannot be written.
    pub fn run(&self, shader: &Shader, folder: &Path, sections: Sections, stop: &AtomicBool) -> Result<Ran, RunError> {
        match self {
            Self::Command(command) => command.run(shader, folder, stop),
            Self::Driver(drivers) => drivers.run(shader, folder, sections),
        }
    }

    /// The command line, for a shell in any folder.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Command(command) => command.line(),
            Self::Driver(drivers) => drivers.line(),
        }
    }
}

impl Drivers {
    /// Starts the first worker.
    ///
    /// # Errors
    /// If there is no driver, no worker, or no device.
    pub fn new(setup: Setup) -> Result<Self, WorkerError> {
        let worker = Worker::start(&setup)?;
        let device = worker.device().to_owned();
        Ok(Self { setup, idle: [Mutex::new(vec![worker]), Mutex::default()], device })
    }

    /// Device, driver and version, as the driver names them.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The command line, for a shell in any folder.
    #[must_use]
    pub fn line(&self) -> String {
        let setup = &self.setup;
        let mut words = vec!["ir3-equiv".to_owned(), "turnip".to_owned(), "--gpu".to_owned()];
        words.extend([setup.target.name.to_owned(), "--driver".to_owned()]);
        words.push(setup.driver.library.display().to_string());
        words.extend(setup.is_robust.then(|| "--robust".to_owned()));
        words.extend(setup.variables.iter().flat_map(|it| ["--driver-set".to_owned(), it.clone()]));
        words.extend(setup.constants.iter().flat_map(|it| ["--spec-constant".to_owned(), it.clone()]));
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn idle(&self, sections: Sections) -> MutexGuard<'_, Vec<Worker>> {
        self.idle[usize::from(sections == Sections::Ends)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, sections: Sections) -> Result<Worker, WorkerError> {
        let mut setup = self.setup.clone();
        if sections == Sections::Ends {
            // Before the given ones, which override it.
            setup.variables.insert(0, NO_PASSES.to_owned());
        }
        Worker::start(&setup)
    }

    fn compile(&self, path: &Path, sections: Sections) -> Result<Compilation, WorkerError> {
        let idle = self.idle(sections).pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.start(sections)?,
        };
        // A worker that fails is not used again.
        let compilation = worker.compile(path)?;
        self.idle(sections).push(worker);
        Ok(compilation)
    }

    fn run(&self, shader: &Shader, folder: &Path, sections: Sections) -> Result<Ran, RunError> {
        let module = match Module::of(shader) {
            Ok(module) => module,
            Err(no_form) => return Ok(Ran::NoForm(no_form)),
        };
        write(folder, SOURCE, nir::text::write(shader).as_bytes())?;
        self.run_module(&module.bytes(), folder, sections)
    }

    /// Writes a module into a folder, and compiles it.
    ///
    /// # Errors
    /// If a worker does not do its work, or a file cannot be written.
    pub fn run_module(&self, module: &[u8], folder: &Path, sections: Sections) -> Result<Ran, RunError> {
        write(folder, MODULE, module)?;
        let Compilation { kind, detail, mut log, .. } =
            self.compile(&folder.join(MODULE), sections).map_err(RunError::Driver)?;
        if kind != Kind::Compiled {
            log.push_str(&format!("{kind}: {detail}\n"));
        }
        write(folder, LOG, log.as_bytes())?;
        Ok(match kind {
            Kind::Compiled => Ran::Code(0, log),
            Kind::Hung => Ran::TimedOut(log),
            Kind::Flooded => Ran::Flooded(log),
            Kind::Crashed => Ran::Crashed(detail, log),
            // The process ended in another way: the last line of the log has the reason.
            kind if kind.is_fault() => Ran::Code(100, log),
            _ => Ran::Code(1, log),
        })
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), RunError> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|cause| RunError::File { path: path.display().to_string(), cause })
}
