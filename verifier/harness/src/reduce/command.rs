//! The test of a reduction as a command of the user, which gets the path of a file with the program: exit code 0 means
//! that it is interesting, any other that it is not, as in `llvm-reduce`.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A command.
#[derive(Clone, Debug)]
pub struct TestCommand {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments, before the path of the file.
    pub arguments: Vec<OsString>,
    /// The time after which it is killed.
    pub timeout: Option<Duration>,
}

/// The result of a run of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// It ended with exit code 0.
    Interesting,
    /// It ended with another exit code.
    Boring(i32),
    /// A signal killed it.
    Killed(i32),
    /// It took too long.
    TimedOut,
    /// The caller stopped it.
    Stopped,
}

/// A command that cannot be run at all.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The system does not start it.
    #[error("{command}: the command of --test cannot be started: {cause}")]
    Start {
        /// Its path.
        command: String,
        /// The reason of the system.
        cause: io::Error,
    },
    /// The file for it cannot be written.
    #[error("{path}: cannot be written: {cause}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason of the system.
        cause: io::Error,
    },
}

impl TestCommand {
    /// Runs the command on a file. Its input is empty, and its output is not shown. It is killed, with all that it has
    /// started, when `stop` is set.
    ///
    /// # Errors
    /// If the system does not start it.
    pub fn run(&self, file: &Path, stop: &AtomicBool) -> Result<Tested, CommandError> {
        let failed = |cause| CommandError::Start { command: self.program.display().to_string(), cause };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: it is killed with all that it has started, and an interrupt of the terminal reaches this
        // process alone.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(Tested::of(status));
            }
            let stopped = stop.load(Ordering::Relaxed);
            if stopped || self.timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                kill(&mut child);
                return Ok(if stopped { Tested::Stopped } else { Tested::TimedOut });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Runs the command on a text in a file of this name.
    ///
    /// # Errors
    /// If the file cannot be written, or the system does not start the command.
    pub fn run_on(&self, text: &str, file: &Path, stop: &AtomicBool) -> Result<Tested, CommandError> {
        fs::write(file, text).map_err(|cause| CommandError::File { path: file.display().to_string(), cause })?;
        self.run(file, stop)
    }
}

/// Kills a command and all that it has started, as far as that is in its group.
fn kill(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // A group that has just ended is no error.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

impl Tested {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(0), _) => Self::Interesting,
            (Some(code), _) => Self::Boring(code),
            (None, signal) => Self::Killed(signal.unwrap_or_default()),
        }
    }
}

impl std::fmt::Display for Tested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interesting => f.write_str("it ended with exit code 0"),
            Self::Boring(code) => write!(f, "it ended with exit code {code}"),
            Self::Killed(signal) => write!(f, "signal {signal} killed it"),
            Self::TimedOut => f.write_str("it took longer than --test-timeout"),
            Self::Stopped => f.write_str("it was stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> TestCommand {
        let arguments = ["-c", script, "test"].map(OsString::from).to_vec();
        TestCommand { program: "sh".into(), arguments, timeout: Some(Duration::from_secs(20)) }
    }

    #[test]
    fn the_end_of_a_command_is_the_result() {
        let (file, go_on) = (Path::new("file"), AtomicBool::new(false));
        let run = |command: TestCommand| command.run(file, &go_on).expect("a shell");
        assert_eq!(run(shell("test \"$1\" = file")), Tested::Interesting);
        assert_eq!(run(shell("exit 7")), Tested::Boring(7));
        assert_eq!(run(shell("kill -9 $$")), Tested::Killed(9));
        let slow = TestCommand { timeout: Some(Duration::from_millis(50)), ..shell("sleep 30 & wait") };
        let start = Instant::now();
        assert_eq!(run(slow), Tested::TimedOut);
        assert_eq!(shell("sleep 30").run(file, &AtomicBool::new(true)).expect("a shell"), Tested::Stopped);
        assert!(start.elapsed() < Duration::from_secs(10));
        let missing = TestCommand { program: "/nowhere/at all".into(), ..shell("") };
        let error = missing.run(file, &go_on).expect_err("there is no such program");
        assert!(error.to_string().starts_with("/nowhere/at all: the command of --test cannot be started"), "{error}");
    }
}
