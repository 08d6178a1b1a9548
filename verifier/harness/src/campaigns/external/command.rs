//! One run of the compiler.
//!
//! # The contract
//! - The command is run with the given arguments, and the path of `program.spv` as the last one. `program.nir` is in
//!   the same folder. Standard input is empty. All output to standard output and standard error is the log.
//! - Exit code 0: the program was compiled, and the log contains it.
//! - Exit codes from 1 to 99: it was refused. The last line of the log is the reason. Refusals are counted.
//! - Exit codes from 100 on, and signals: it crashed. 126 and 127, with which a shell says that it cannot start a
//!   command, end the campaign.
//! - A run that takes longer than the time limit hangs; one that prints more than [`LOG_LIMIT`] floods. It is killed,
//!   with all that it has started.
//! - Its address space is limited (on Linux), so that a compiler that allocates without end crashes by itself.

use ir3_compiler::nir::{self, Shader};
use ir3_programs::spirv::{Module, NoForm};
use ir3_programs::turnip::WorkerError;
use rustix::process::{Pid, Signal, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, prlimit};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest log, in bytes.
pub const LOG_LIMIT: u64 = 64 << 20;
/// The name of the module.
pub const MODULE: &str = "program.spv";
/// The name of the same program in nir.
pub const SOURCE: &str = "program.nir";
/// The name of the log.
pub const LOG: &str = "program.log";

/// A compiler.
#[derive(Clone, Debug)]
pub struct CompilerCommand {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments, before the path of the module.
    pub arguments: Vec<OsString>,
    /// The time after which it is killed.
    pub time: Duration,
    /// The largest address space, in bytes.
    pub memory: u64,
}

/// The end of a run.
#[derive(Debug)]
pub enum Ran {
    /// The program has no form in SPIR-V; nothing was run.
    NoForm(NoForm),
    /// It ended with an exit code.
    Code(i32, String),
    /// It ended by this signal, at this place if that is known.
    Crashed(String, String),
    /// It took too long.
    TimedOut(String),
    /// It printed too much.
    Flooded(String),
    /// The caller stopped it.
    Stopped,
}

/// A compiler that cannot be run at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system does not start it.
    #[error("{command}: the command of --compiler cannot be started: {cause}")]
    Start {
        /// Its path.
        command: String,
        /// The reason of the system.
        cause: io::Error,
    },
    /// A shell reports that it cannot start it.
    #[error(
        "{command}: the command of --compiler ended with exit code {code}, with which shells report that a command cannot be started: {last}"
    )]
    NotStarted {
        /// Its path.
        command: String,
        /// 126 or 127.
        code: i32,
        /// The last line that it printed.
        last: String,
    },
    /// A shell reports a signal of its child by such a code.
    #[error(transparent)]
    Driver(WorkerError),
    /// The files for it cannot be written, or its output cannot be read.
    #[error("{path}: {cause}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason of the system.
        cause: io::Error,
    },
}

impl CompilerCommand {
    /// Writes a program into a folder, and runs the compiler on it.
    ///
    /// # Errors
    /// If the system does not start it, or a file cannot be written.
    pub fn run(&self, shader: &Shader, folder: &Path, stop: &AtomicBool) -> Result<Ran, RunError> {
        let module = match Module::of(shader) {
            Ok(module) => module,
            Err(no_form) => return Ok(Ran::NoForm(no_form)),
        };
        let at = |name: &str| folder.join(name);
        let file = |name: &str, cause| RunError::File { path: at(name).display().to_string(), cause };
        fs::write(at(MODULE), module.bytes()).map_err(|cause| file(MODULE, cause))?;
        fs::write(at(SOURCE), nir::text::write(shader)).map_err(|cause| file(SOURCE, cause))?;
        let log = File::create(at(LOG)).map_err(|cause| file(LOG, cause))?;
        let end = self.start(&at(MODULE), log, stop)?;
        let text = read(&at(LOG)).map_err(|cause| file(LOG, cause))?;
        Ok(match end {
            End::Stopped => Ran::Stopped,
            End::TimedOut => Ran::TimedOut(text),
            End::Signal(signal) if signal == Signal::XFSZ.as_raw() => Ran::Flooded(text),
            End::Code(code @ (126 | 127)) => {
                let last = last_line(&text).to_owned();
                return Err(RunError::NotStarted { command: self.program.display().to_string(), code, last });
            }
            End::Signal(signal) => Ran::Crashed(format!("signal {signal}"), text),
            // The code with which a shell reports a signal.
            End::Code(code) if code > 128 => Ran::Crashed(format!("signal {}", code - 128), text),
            End::Code(code) => Ran::Code(code, text),
        })
    }

    fn start(&self, module: &Path, log: File, stop: &AtomicBool) -> Result<End, RunError> {
        let failed = |cause| RunError::Start { command: self.program.display().to_string(), cause };
        let other = log.try_clone().map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(module).stdin(Stdio::null()).stdout(log).stderr(other);
        // A group of its own: it is killed with all that it has started, and an interrupt of the terminal reaches this
        // process alone.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        #[cfg(target_os = "linux")]
        for (resource, bytes) in [(Resource::As, self.memory), (Resource::Fsize, LOG_LIMIT), (Resource::Core, 0)] {
            // One that has ended already needs no limit; nor does one whose limit is lower than this.
            let _ = prlimit(pid, resource, Rlimit { current: Some(bytes), maximum: Some(bytes) });
        }
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(match (status.code(), status.signal()) {
                    (Some(code), _) => End::Code(code),
                    (None, signal) => End::Signal(signal.unwrap_or_default()),
                });
            }
            let stopped = stop.load(Ordering::Relaxed);
            if stopped || start.elapsed() >= self.time {
                kill(&mut child, pid);
                return Ok(if stopped { End::Stopped } else { End::TimedOut });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// The command line, for a shell in any folder.
    #[must_use]
    pub fn line(&self) -> String {
        // A name without a folder is looked up in `PATH`.
        let is_path = self.program.components().count() > 1;
        let program = Some(&self.program).filter(|_| is_path).and_then(|program| std::path::absolute(program).ok());
        let program = program.as_ref().unwrap_or(&self.program);
        let words = [program.as_os_str()].into_iter().chain(self.arguments.iter().map(OsString::as_os_str));
        words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The end of the process.
enum End {
    Code(i32),
    Signal(i32),
    TimedOut,
    Stopped,
}

/// Kills a compiler and all that it has started, as far as that is in its group.
fn kill(child: &mut Child, pid: Option<Pid>) {
    if let Some(pid) = pid {
        // A group that has just ended is no error.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

/// Reads a log, including bytes that are no UTF-8.
fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LOG_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The last line that is not empty.
pub(super) fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_in_another_folder_reads_the_line_as_it_was() {
        let arguments = ["--gpu=660", "two words", "it's", ""].map(OsString::from).to_vec();
        let command = CompilerCommand { program: "./my driver".into(), arguments, time: Duration::MAX, memory: 0 };
        let folder = std::env::current_dir().expect("a folder");
        let line = format!("'{}/my driver' --gpu=660 'two words' 'it'\\''s' ''", folder.display());
        assert_eq!(command.line(), line);
        let named = CompilerCommand { program: "ir3-driver".into(), arguments: Vec::new(), ..command };
        assert_eq!(named.line(), "ir3-driver");
    }
}
