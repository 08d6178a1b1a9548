//! A compilation in a process of its own, with limits.

#![allow(unsafe_code)]

use crate::fault;
use crate::kernel;
use crate::outcome::{Kind, Outcome};
use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The limits of a compilation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub time: Duration,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that are printed.
    pub output: usize,
}

/// A compilation that has ended.
pub struct Ended {
    pub outcome: Outcome,
    /// The text that was printed to standard output and standard error, in the order of the calls.
    pub log: Vec<u8>,
    /// The driver's cache of pipelines.
    pub data: Vec<u8>,
}

/// The time after which the memory of a process is looked at again.
const LOOK: Duration = Duration::from_millis(20);
/// A process whose pipes are closed is looked at this often.
const PAUSE: Duration = Duration::from_micros(200);
/// The largest report of a child, in bytes.
const MOST_DATA: usize = 256 << 20;
/// The exit code of a child that has written its report. Others are those of the driver: it ended the process.
const REPORTED: i32 = 0;

/// Both ends of a pipe.
fn pipe() -> io::Result<(File, File)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: `ends` is a place for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just opened, and nothing else owns them.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

/// A file in memory.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a string that ends with a zero.
    let file = unsafe { libc::memfd_create(c"log".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// Makes a descriptor that of a standard stream, too.
fn duplicate(from: &File, to: RawFd) -> io::Result<()> {
    // SAFETY: a call on descriptors, without memory.
    match unsafe { libc::dup2(from.as_raw_fd(), to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Calls a function while standard error is a file, which is returned with the result: output of the driver about its
/// own shaders while its device is made is no part of a log.
pub fn aside<T>(call: impl FnOnce() -> T) -> io::Result<(T, Vec<u8>)> {
    let mut file = memory_file()?;
    // SAFETY: a call on a descriptor, without memory.
    let kept = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
    if kept < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let kept = unsafe { File::from_raw_fd(kept) };
    duplicate(&file, libc::STDERR_FILENO)?;
    let result = call();
    flush();
    duplicate(&kept, libc::STDERR_FILENO)?;
    let mut text = Vec::new();
    io::Seek::rewind(&mut file)?;
    file.read_to_end(&mut text)?;
    Ok((result, text))
}

/// Flushes the streams of the C library, in which the driver prints.
fn flush() {
    // SAFETY: a null pointer is all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Sets a limit of this process.
fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` is a structure of the type that the call reads. A limit that is lower already stays.
    unsafe { libc::setrlimit(resource, &raw const limit) };
}

/// Runs a compilation in a forked child of this process, which inherits the driver and its device.
///
/// # Errors
/// If the system makes no process.
pub fn run(limits: &Limits, compile: impl FnOnce() -> Result<Vec<u8>, Outcome>) -> io::Result<Ended> {
    // The driver writes its log in many small pieces: nothing waits for them in a file.
    let log = memory_file()?;
    let (report, report_end) = pipe()?;
    flush();
    // SAFETY: this process has one thread of its own; threads of the driver wait for work that this process does not
    // give them.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(report);
            let code = in_child(limits, &log, report_end, compile);
            // SAFETY: ends the process without running the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        child => {
            drop(report_end);
            Parent { child, limits, start: Instant::now(), over: None }.collect(log, report)
        }
    }
}

fn in_child(limits: &Limits, log: &File, mut report: File, compile: impl FnOnce() -> Result<Vec<u8>, Outcome>) -> i32 {
    // SAFETY: calls on this process, without memory. A group of its own is killed with all that the driver starts.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    limit(libc::RLIMIT_CORE, 0);
    limit(libc::RLIMIT_CPU, limits.time.as_secs() + 1);
    // Twice: the parent looks at the memory, and names it.
    limit(libc::RLIMIT_DATA, limits.memory.saturating_mul(2));
    fault::watch(report.as_raw_fd());
    let is_ready = File::open("/dev/null").and_then(|null| duplicate(&null, libc::STDIN_FILENO)).is_ok()
        && duplicate(log, libc::STDOUT_FILENO).is_ok()
        && duplicate(log, libc::STDERR_FILENO).is_ok();
    let result = match is_ready {
        true => std::panic::catch_unwind(std::panic::AssertUnwindSafe(compile))
            .unwrap_or_else(|panic| Err(Outcome::new(Kind::Failed, format!("a panic: {}", text_of(&*panic))))),
        false => Err(Outcome::new(Kind::Failed, "the streams of the child")),
    };
    flush();
    let (outcome, data) = match result {
        Ok(data) => (Outcome::new(Kind::Compiled, ""), data),
        Err(outcome) => (outcome, Vec::new()),
    };
    let outcome = match outcome.kind {
        Kind::Refused | Kind::Memory if kernel::is_full() => {
            let why = "RLIMIT_FSIZE limits the file that is the device's memory";
            Outcome::new(Kind::Failed, format!("{} ({why})", outcome.detail))
        }
        _ => outcome,
    };
    let head = format!("{}\n{}\n", outcome.kind.name(), outcome.detail);
    let written = report.write_all(head.as_bytes()).and_then(|()| report.write_all(&data));
    if written.is_ok() { REPORTED } else { 1 }
}

/// The message of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

/// The parent of a child.
struct Parent<'a> {
    child: libc::pid_t,
    limits: &'a Limits,
    start: Instant,
    /// The limit for which it was killed.
    over: Option<Outcome>,
}

impl Parent<'_> {
    fn collect(mut self, log: File, report: File) -> io::Result<Ended> {
        let mut report = Stream::new(report);
        let mut looked = Instant::now();
        let mut pause;
        // A process that the driver has started may hold the pipes open after the end of the child.
        let status = loop {
            if self.over.is_none() && report.is_open {
                wait(&report, LOOK)?;
                report.read()?;
                pause = if report.is_open { LOOK } else { Duration::ZERO };
            } else {
                std::thread::sleep(PAUSE);
                pause = PAUSE;
            }
            if looked.elapsed() >= pause {
                looked = Instant::now();
                self.look(&log)?;
                if let Some(status) = self.ended()? {
                    break status;
                }
            }
        };
        report.read()?;
        // SAFETY: a signal to the group of the child, which now has only processes that the driver has started.
        unsafe { libc::kill(-self.child, libc::SIGKILL) };
        let length = usize::try_from(log.metadata()?.len()).unwrap_or(usize::MAX);
        let mut text = vec![0; length.min(self.limits.output)];
        log.read_exact_at(&mut text, 0)?;
        if length > self.limits.output {
            self.over.get_or_insert(too_much(self.limits));
        }
        Ok(self.end(status, text, &report.bytes))
    }

    /// Kills the child, and all that it has started.
    fn kill(&mut self, over: Outcome) {
        self.over.get_or_insert(over);
        // SAFETY: signals to a child that was not waited for, and to its group.
        unsafe {
            libc::kill(-self.child, libc::SIGKILL);
            libc::kill(self.child, libc::SIGKILL);
        }
    }

    /// Kills the child if it takes too much time or memory, or has printed too much.
    fn look(&mut self, log: &File) -> io::Result<()> {
        if log.metadata()?.len() > self.limits.output as u64 {
            self.kill(too_much(self.limits));
        }
        let time = self.start.elapsed();
        if time >= self.limits.time {
            self.kill(Outcome::new(Kind::Hung, format!("not done after {:.1} s", time.as_secs_f64())));
        }
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.child)).ok();
        let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
        if pages.unwrap_or_default().saturating_mul(page_size()) > self.limits.memory {
            self.kill(over_memory(self.limits));
        }
        Ok(())
    }

    /// The status of the child, if it has ended.
    fn ended(&self) -> io::Result<Option<(i32, u64)>> {
        let mut status = 0;
        // SAFETY: zeros are a value of the structure, which has numbers only.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both are places of the types that the call fills.
        match unsafe { libc::wait4(self.child, &raw mut status, libc::WNOHANG, &raw mut usage) } {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Some((status, u64::try_from(usage.ru_maxrss).unwrap_or_default() << 10))),
        }
    }

    fn end(self, (status, most): (i32, u64), log: Vec<u8>, report: &[u8]) -> Ended {
        let of = |outcome, data: &[u8]| (outcome, data.to_vec());
        let (outcome, data) = if let Some(over) = self.over {
            of(over, &[])
        } else if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let outcome = match signal {
                libc::SIGXCPU => {
                    Outcome::new(Kind::Hung, format!("not done after {} s of CPU time", self.limits.time.as_secs()))
                }
                libc::SIGXFSZ => Outcome::new(Kind::Failed, "a file is larger than RLIMIT_FSIZE allows (SIGXFSZ)"),
                _ if most >= self.limits.memory => over_memory(self.limits),
                _ => {
                    let place = fault::place(report).map(|place| format!(" at {place}")).unwrap_or_default();
                    Outcome::new(Kind::Crashed, format!("signal {signal} ({}){place}", name_of(signal)))
                }
            };
            of(outcome, &[])
        } else {
            match (libc::WEXITSTATUS(status), reported(report)) {
                (REPORTED, Some((outcome, data))) => of(outcome, data),
                (code, _) => {
                    of(Outcome::new(Kind::Exited, format!("the driver ended the process with code {code}")), &[])
                }
            }
        };
        Ended { outcome, log, data }
    }
}

fn too_much(limits: &Limits) -> Outcome {
    Outcome::new(Kind::Flooded, format!("more than {} MiB were printed", limits.output >> 20))
}

/// Bytes of a page of memory.
fn page_size() -> u64 {
    // SAFETY: a call without memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn over_memory(limits: &Limits) -> Outcome {
    Outcome::new(Kind::Memory, format!("more than {} MiB of memory", limits.memory >> 20))
}

/// The report of a child: a line with the kind, one with the reason, and the data.
fn reported(report: &[u8]) -> Option<(Outcome, &[u8])> {
    let mut lines = report.splitn(3, |byte| *byte == b'\n');
    let kind = Kind::by_name(str::from_utf8(lines.next()?).ok()?)?;
    let detail = String::from_utf8_lossy(lines.next()?);
    Some((Outcome::new(kind, detail), lines.next()?))
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => "abort",
        libc::SIGSEGV => "invalid address",
        libc::SIGBUS => "bus error",
        libc::SIGFPE => "arithmetic error",
        libc::SIGILL => "invalid instruction",
        libc::SIGTRAP => "trap",
        libc::SIGKILL => "killed",
        _ => "ended by the system",
    }
}

/// One end of a pipe, and the data read from it.
struct Stream {
    file: File,
    bytes: Vec<u8>,
    is_open: bool,
}

impl Stream {
    fn new(file: File) -> Self {
        // SAFETY: a call on a descriptor, without memory.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Self { file, bytes: Vec::new(), is_open: true }
    }

    /// Reads all available data.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        while self.is_open {
            match self.file.read(&mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(count) if self.bytes.len() + count <= MOST_DATA => self.bytes.extend_from_slice(&buffer[..count]),
                // Too much: the report has no meaning.
                Ok(_) => self.is_open = false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Waits until a stream has bytes or an end.
fn wait(stream: &Stream, most: Duration) -> io::Result<()> {
    let mut polled = libc::pollfd { fd: stream.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = i32::try_from(most.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the array has one entry.
    match unsafe { libc::poll(&raw mut polled, 1, time) } {
        -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
