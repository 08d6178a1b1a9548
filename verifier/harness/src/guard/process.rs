//! The parent's side of a worker: sends programs and receives the results.

use super::{Stop, Stopped};
use ir3_compiler::pipeline::Stage;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The result of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It terminates: a program, a refusal or a panic.
    Ends,
    /// It was stopped, and the worker with it.
    Stopped(Stopped),
}

/// The exit code of a worker whose watchdog has ended it.
pub(super) const OUT_OF_TIME: i32 = 86;

/// The bytes of the end of a log that are shown.
const LOG: usize = 4096;

/// A process with pipes to it. It is killed when this is dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Its standard error, an unnamed file: no thread has to read it while the worker runs.
    log: File,
}

impl Process {
    /// Starts a program. It ignores signals of the terminal, and exits when its standard input is closed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(program: &Path, arguments: &[String]) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ir3-equiv-{}-{number}.log", std::process::id()));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let log = File::options().read(true).append(true).create_new(true).open(&path).map_err(named)?;
        fs::remove_file(&path).map_err(named)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?)
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("found no pipe to a worker");
        let stdin = Some(child.stdin.take().ok_or_else(missing)?);
        let stdout = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self { child, stdin, stdout, log })
    }

    /// Writes to its standard input.
    ///
    /// # Errors
    /// If it has ended.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(bytes)
    }

    /// Reads a line of its standard output, without the line break; `None` if it has ended.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(1..) if line.ends_with('\n') => {
                line.pop();
                Some(line)
            }
            _ => None,
        }
    }

    /// Sends it a program to compile.
    pub(super) fn compile(&mut self, text: &str, limit: Duration) -> Verdict {
        let header = format!("{} {}\n", limit.as_millis().max(1), text.len());
        // If the worker has ended, its exit status has the reason.
        let _ = self.write(header.as_bytes()).and_then(|()| self.write(text.as_bytes()));
        let mut stage = None;
        while let Some(line) = self.line() {
            match Stage::from_name(&line) {
                Some(next) => stage = Some(next),
                None => return Verdict::Ends,
            }
        }
        let (stop, _) = self.end();
        Verdict::Stopped(Stopped { stage: stage.unwrap_or(Stage::Select), stop })
    }

    /// Closes its input, so that it exits.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Closes its input, waits for its end, and returns the reason of that with the end of its log.
    pub fn end(&mut self) -> (Stop, String) {
        self.close();
        let status = self.child.wait();
        // With `RUST_BACKTRACE`, a list of all calls follows the message, and pushes earlier lines out of the end.
        let reason = self.end_of_log(1 << 16);
        let stop = match status {
            Ok(status) if status.code() == Some(OUT_OF_TIME) => Stop::Time,
            _ if reason.contains("memory allocation of") => Stop::Memory,
            _ if reason.contains("has overflowed its stack") => Stop::Stack,
            _ => Stop::Died,
        };
        let log = reason.split("stack backtrace:").next().unwrap_or_default();
        let log = log.get(log.floor_char_boundary(log.len().saturating_sub(LOG))..).unwrap_or_default();
        let how = match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or(0)),
            },
            Err(error) => error.to_string(),
        };
        (stop, format!("{how}\n{log}"))
    }

    /// Closes its input, waits for its end, and returns its exit code with the end of its log, numbers left out.
    pub fn finish(mut self) -> (Option<i32>, String) {
        self.close();
        let code = self.child.wait().ok().and_then(|status| status.code());
        let log = self.log();
        let words = log.lines().filter(|line| line.parse::<u64>().is_err());
        (code, words.collect::<Vec<_>>().join("\n"))
    }

    /// The end of its standard error.
    pub fn log(&self) -> String {
        self.end_of_log(LOG as u64)
    }

    /// The end of its log, of at most this many bytes.
    fn end_of_log(&self, most: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut log = &self.log;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(length.saturating_sub(most)))?;
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Empties its log.
    pub fn forget_log(&self) {
        // A longer log is no fault.
        let _ = self.log.set_len(0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.close();
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
