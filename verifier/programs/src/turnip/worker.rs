//! A process that compiles modules with the driver, from outside.
//!
//! The protocol is that of verifier/turnip/src/main.rs. The worker bounds the effects of the driver on it; this module
//! bounds the effects of a worker that breaks the protocol: it is killed, and the error names the missing part.

use super::words::{self, Found};
use super::{Driver, Kind, NoDriver, driver};
use ir3_compiler::target::Target;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// The time that the driver may take to make its device.
const START: Duration = Duration::from_secs(60);
/// The time after the limit of a compilation in which the worker has to answer.
const GRACE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });
/// The longest line of an answer, in bytes.
const MOST_LINE: u64 = 1 << 16;
/// The largest log or cache of an answer, in bytes.
const MOST_BYTES: usize = 512 << 20;
/// The bytes of the end of standard error that are shown.
const TAIL: usize = 2000;

/// The driver and the options of a worker.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The driver.
    pub driver: Driver,
    /// The GPU.
    pub target: Target,
    /// The time that a module may take.
    pub time: Duration,
    /// The memory that a module may take, in MiB.
    pub memory: u64,
    /// The text that a module may print, in MiB.
    pub output: u64,
    /// Accesses outside of a buffer have a meaning: a feature of the device.
    pub is_robust: bool,
    /// Variables of the driver's environment, as `NAME=VALUE`.
    pub variables: Vec<String>,
    /// Specialisation constants of modules, as `NUMBER=VALUE`.
    pub constants: Vec<String>,
    /// The worker, instead of the one in the folder of this program.
    pub worker: Option<PathBuf>,
}

impl Setup {
    /// A worker with the limits that hold unless others are given.
    #[must_use]
    pub const fn new(driver: Driver, target: Target) -> Self {
        let (time, memory, output) = (Duration::from_secs(20), 4096, 64);
        let variables = Vec::new();
        let constants = Vec::new();
        Self { driver, target, time, memory, output, is_robust: false, variables, constants, worker: None }
    }

    fn command(&self) -> Result<Vec<OsString>, NoDriver> {
        let worker = self.worker.clone().or_else(|| driver::worker(driver::WORKER));
        let worker = worker.ok_or_else(|| NoDriver::NoWorker(std::env::current_exe().unwrap_or_default()))?;
        let mut command = self.driver.command(&worker);
        let named: [(&str, OsString); 5] = [
            ("--driver", self.driver.library.clone().into()),
            ("--gpu", self.target.name.into()),
            ("--time", self.time.as_secs_f64().to_string().into()),
            ("--memory", self.memory.to_string().into()),
            ("--output", self.output.to_string().into()),
        ];
        command.extend(named.into_iter().flat_map(|(name, value)| [name.into(), value]));
        command.extend(self.is_robust.then(|| "--robust".into()));
        command.extend(self.variables.iter().flat_map(|variable| ["--set".into(), variable.into()]));
        command.extend(self.constants.iter().flat_map(|constant| ["--spec-constant".into(), constant.into()]));
        Ok(command)
    }
}

/// A worker that does not compile.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The driver or the worker is not there.
    #[error(transparent)]
    NoDriver(#[from] NoDriver),
    /// The system does not start it.
    #[error("{program}: cannot be started: {cause}", program = .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason of the system.
        cause: io::Error,
    },
    /// It reports that the driver has no device.
    #[error("{library}: no device: {why}", library = .library.display())]
    NoDevice {
        /// The driver.
        library: PathBuf,
        /// The reason.
        why: String,
    },
    /// It ended, and the driver with it.
    #[error("{library}: the process of the driver ended {when}: {how}", library = .library.display())]
    Died {
        /// The driver.
        library: PathBuf,
        /// The work that it did not do.
        when: &'static str,
        /// Its exit code or signal, and the end of its standard error.
        how: String,
    },
    /// It does not answer in time.
    #[error("{library}: the process of the driver did not answer {when}", library = .library.display())]
    NoAnswer {
        /// The driver.
        library: PathBuf,
        /// The work that it did not do.
        when: &'static str,
    },
    /// It answers something else.
    #[error("ir3-turnip: found the answer `{found}`, expected {expected}")]
    Protocol {
        /// The answer.
        found: String,
        /// The part of the protocol.
        expected: &'static str,
    },
    /// A path that has no form in the protocol.
    #[error("{path}: a path with a line break or a tab", path = .0.display())]
    Path(PathBuf),
}

/// The end of the compilation of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// The kind of the end.
    pub kind: Kind,
    /// The reason, in a line; empty if the module was compiled.
    pub detail: String,
    /// The text that the driver printed, with the words of the programs. The first line names the device.
    pub log: String,
    /// The programs, by the result of checking their words.
    pub words: Found,
}

/// A part of a worker's output.
enum Message {
    /// The first line.
    First(String),
    Answer(Answer),
    /// Neither.
    Broken(String, &'static str),
}

struct Answer {
    kind: Kind,
    detail: String,
    log: Vec<u8>,
    data: Vec<u8>,
}

/// A process with the driver and its device.
pub struct Worker {
    setup: Setup,
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Message>,
    /// The end of its standard error, after its end.
    errors: Receiver<String>,
    device: String,
}

impl Worker {
    /// Starts a worker, and waits for its device.
    ///
    /// # Errors
    /// If there is no driver, no worker, or no device.
    pub fn start(setup: &Setup) -> Result<Self, WorkerError> {
        let command = setup.command()?;
        let program = PathBuf::from(&command[0]);
        let failed = |cause| WorkerError::Start { program: program.clone(), cause };
        let mut child = Command::new(&program)
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // An interrupt of the terminal is not for it: it ends with its standard input.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let missing = || failed(io::Error::other("found no pipe to a worker"));
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (send, messages) = mpsc::channel();
        thread::spawn(move || read(stdout, &send));
        let (send, errors) = mpsc::channel();
        thread::spawn(move || send.send(tail(stderr)));
        let (setup, device) = (setup.clone(), String::new());
        let mut worker = Self { setup, child, stdin: Some(stdin), messages, errors, device };
        let first = match worker.receive(START, "while it made its device")? {
            Message::First(line) => line,
            Message::Answer(_) => return Err(protocol("an answer", "the device first")),
            Message::Broken(found, expected) => return Err(protocol(&found, expected)),
        };
        match first.split_once(' ') {
            Some(("ready", device)) => worker.device = device.to_owned(),
            Some(("failed", why)) => {
                return Err(WorkerError::NoDevice { library: worker.library(), why: why.to_owned() });
            }
            _ => return Err(protocol(&first, "`ready` or `failed`")),
        }
        Ok(worker)
    }

    /// Device, driver and version, as the driver names them.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Ends the process, if it has not ended, with all that it has started in its group.
    fn end(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        // One that has closed its output is about to end.
        for _ in 0..20 {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // A group that has just ended is no error.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.child.wait()
    }

    fn library(&self) -> PathBuf {
        self.setup.driver.library.clone()
    }

    fn receive(&mut self, time: Duration, when: &'static str) -> Result<Message, WorkerError> {
        match self.messages.recv_timeout(time) {
            Ok(message) => Ok(message),
            Err(RecvTimeoutError::Timeout) => Err(WorkerError::NoAnswer { library: self.library(), when }),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.end().map_or_else(|error| error.to_string(), |status| status.to_string());
                // A process that it has started may hold the pipe.
                let errors = self.errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
                let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
                let how = if errors.is_empty() { status } else { format!("{status} ({errors})") };
                Err(WorkerError::Died { library: self.library(), when, how })
            }
        }
    }

    /// Compiles a module or a text.
    ///
    /// # Errors
    /// If the worker does not answer. It is of no use then.
    pub fn compile(&mut self, path: &Path) -> Result<Compilation, WorkerError> {
        self.request(&[path], "")
    }

    /// Compiles the vertex and the fragment shader of modules as one pipeline.
    ///
    /// # Errors
    /// As of [`compile`](Self::compile).
    pub fn link(&mut self, paths: &[&Path]) -> Result<Compilation, WorkerError> {
        self.request(paths, "\t")
    }

    fn request(&mut self, paths: &[&Path], end: &str) -> Result<Compilation, WorkerError> {
        const WHEN: &str = "while it compiled a module";
        let has_mark = |path: &Path| path.as_os_str().as_bytes().iter().any(|byte| b"\n\t".contains(byte));
        if let Some(path) = paths.iter().find(|path| has_mark(path)) {
            return Err(WorkerError::Path(path.to_path_buf()));
        }
        let mut line = paths.iter().map(|path| path.as_os_str().as_bytes()).collect::<Vec<_>>().join(&b'\t');
        line.extend_from_slice(end.as_bytes());
        line.push(b'\n');
        // If the worker has ended, its exit status has the reason.
        let _ = self.stdin.as_mut().map(|stdin| stdin.write_all(&line));
        let Answer { kind, detail, log, data } = match self.receive(self.setup.time + GRACE, WHEN)? {
            Message::Answer(answer) => answer,
            Message::First(found) | Message::Broken(found, _) => return Err(protocol(&found, "an answer")),
        };
        let log = String::from_utf8_lossy(&log);
        let (log, words) = match kind {
            Kind::Compiled => words::add(&log, &data, self.setup.target.generation),
            _ => (log.into_owned(), Found::default()),
        };
        Ok(Compilation { kind, detail, log: format!("{}\n{log}", self.device), words })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn protocol(found: &str, expected: &'static str) -> WorkerError {
    WorkerError::Protocol { found: found.chars().take(80).collect(), expected }
}

/// Reads all that a worker writes, until its end.
fn read(stdout: ChildStdout, send: &Sender<Message>) {
    let mut reader = BufReader::new(stdout);
    let mut is_first = true;
    while let Some(line) = line(&mut reader) {
        let message = if is_first { Message::First(line) } else { answer(&line, &mut reader) };
        is_first = false;
        let is_broken = matches!(message, Message::Broken(..));
        // The worker is gone, or the rest has no meaning.
        if send.send(message).is_err() || is_broken {
            return;
        }
    }
}

/// A line, without its end; `None` at the end of the output, or if it is too long.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.take(MOST_LINE).read_until(b'\n', &mut line).ok()?;
    (line.pop()? == b'\n').then(|| String::from_utf8_lossy(&line).into_owned())
}

/// An answer: its line, and the bytes that follow.
fn answer(line: &str, reader: &mut impl Read) -> Message {
    let broken = |expected| Message::Broken(line.to_owned(), expected);
    let mut parts = line.splitn(4, ' ');
    let Some(kind) = parts.next().and_then(Kind::by_name) else { return broken("the kind of a result") };
    let mut length = || parts.next()?.parse::<usize>().ok().filter(|length| *length <= MOST_BYTES);
    let (Some(log), Some(data)) = (length(), length()) else { return broken("two lengths") };
    let detail = parts.next().unwrap_or_default().to_owned();
    let mut bytes = |length| {
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).ok().map(|()| bytes)
    };
    match (bytes(log), bytes(data)) {
        (Some(log), Some(data)) => Message::Answer(Answer { kind, detail, log, data }),
        _ => broken("as many bytes as it announces"),
    }
}

/// The end of a stream.
fn tail(mut stream: impl Read) -> String {
    let mut kept = VecDeque::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        kept.extend(&buffer[..count]);
        kept.drain(..kept.len().saturating_sub(TAIL));
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A shell script in place of the worker.
    struct Script(PathBuf);

    impl Script {
        fn new(text: &str) -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("ir3-equiv-worker-{}-{number}.sh", std::process::id()));
            // Another process writes it: a child that another test starts would inherit a file that is open for writing
            // here, and until that child runs its program, the system refuses to run the file (`ETXTBSY`).
            let mut writer = Command::new("sh");
            let mut writer = writer
                .args(["-c", "cat >\"$0\" && chmod +x \"$0\""])
                .arg(&path)
                .stdin(Stdio::piped())
                .spawn()
                .expect("a shell");
            write!(writer.stdin.take().expect("a pipe"), "#!/bin/sh\n{text}\n").expect("a script");
            assert!(writer.wait().expect("its end").success());
            Self(path)
        }

        fn start(&self) -> Result<Worker, WorkerError> {
            let driver = Driver { library: "/nowhere/libvulkan_freedreno.so".into() };
            let setup = Setup::new(driver, Target::default());
            Worker::start(&Setup { time: Duration::from_secs(1), worker: Some(self.0.clone()), ..setup })
        }

        /// The error of its start.
        fn no_start(text: &str) -> String {
            Self::new(text).start().map(|worker| worker.device().to_owned()).expect_err("no worker").to_string()
        }

        /// The result of a module, by a script that is run for its path.
        fn compile(text: &str) -> Result<Compilation, String> {
            let script = Self::new(&format!("echo ready a device\nwhile read -r path; do\n{text}\ndone"));
            let mut worker = script.start().expect("a worker");
            worker.compile(Path::new("x.spv")).map_err(|error| error.to_string())
        }
    }

    impl Drop for Script {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn an_answer_is_read() {
        let end = Script::compile("printf 'compiled 9 2 \\nNIR (x)\\n\\n\\0\\0'").expect("an answer");
        assert_eq!((end.kind, &*end.log), (Kind::Compiled, "a device\nNIR (x)\n\n"));
        let end = Script::compile("echo \"crashed 3 0 signal 11 in $path\"; printf abc").expect("an answer");
        let expected = Compilation {
            kind: Kind::Crashed,
            detail: "signal 11 in x.spv".to_owned(),
            log: "a device\nabc".to_owned(),
            words: Found::default(),
        };
        assert_eq!(end, expected);
    }

    #[test]
    fn a_worker_that_does_not_start_is_an_error_with_its_reason() {
        let error = Script::no_start("echo failed the driver finds no device");
        assert!(error.contains("no device: the driver finds no device"), "{error}");
        let error = Script::no_start("echo libstdc++.so.6: version GLIBC_2.42 not found >&2; exit 1");
        assert!(error.contains("ended while it made its device: exit status: 1") && error.contains("GLIBC_2.42"));
        let error = Script::no_start("kill -11 $$");
        assert!(error.contains("ended while it made its device: signal: 11"), "{error}");
        assert!(Script::no_start("echo hello").contains("found the answer `hello`, expected `ready` or `failed`"));
    }

    #[test]
    fn an_answer_that_breaks_the_protocol_is_an_error() {
        for (text, expected) in [
            ("echo nonsense", "found the answer `nonsense`"),
            ("echo compiled 10", "found the answer `compiled 10`"),
            ("echo compiled 99999999999999 0", "found the answer `compiled 9999"),
            ("echo compiled 10 0; printf abc; exit 0", "found the answer `compiled 10 0`"),
            ("exit 3", "ended while it compiled a module: exit status: 3"),
            ("kill -9 $$", "ended while it compiled a module: signal: 9"),
            ("exec >&-; sleep 100", "ended while it compiled a module"),
            ("yes | tr -d '\\n'", "ended while it compiled a module"),
        ] {
            let error = Script::compile(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_worker_that_hangs_is_killed() {
        let start = std::time::Instant::now();
        let error = Script::compile("sleep 1000").expect_err("no answer");
        assert!(error.contains("did not answer while it compiled a module"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_path_with_a_line_break_has_no_form_in_the_protocol() {
        let mut worker = Script::new("echo ready x; cat").start().expect("a worker");
        let error = worker.compile(Path::new("a\nb.spv")).expect_err("no path");
        assert!(matches!(error, WorkerError::Path(_)), "{error}");
    }
}
