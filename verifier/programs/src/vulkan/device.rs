//! A process with a device, from outside.

use super::{Job, Library, NoLibrary};
use ir3_semantics::environment::device::{FloatModes, width_index};
use rspirv::spirv::Capability;
use rustc_hash::FxHashSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The time that the driver may take to make its device.
const START: Duration = Duration::from_secs(60);
/// The time after the limit of an execution in which the worker has to answer: that of the compilation.
const GRACE: Duration = Duration::from_secs(20);
/// The longest line of an answer, in bytes.
const MOST_LINE: u64 = 1 << 16;
/// The most bytes of an answer.
const MOST_BYTES: usize = 512 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $text:literal;)*) => {
        /// The end of an execution.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// The kind of a name in answers of the worker.
            fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $text,)*
                })
            }
        }
    };
}

kinds! {
    /// The program was executed, twice with the same result.
    Executed = "executed", "executed";
    /// The second execution has another result.
    Unstable = "unstable", "a second execution has another result";
    /// The device was lost.
    Lost = "lost", "the device was lost";
    /// The device does not come to an end.
    Hung = "hung", "the device hangs";
    /// A signal ended the driver.
    Crashed = "crashed", "the driver crashed";
    /// A call of the driver returned an error.
    Refused = "refused", "refused by the driver";
    /// The device lacks what the module needs.
    Unsupported = "unsupported", "not supported";
    /// The module does not parse.
    Invalid = "invalid", "no valid module";
    /// The device has not enough memory.
    Memory = "memory", "not enough memory";
    /// The worker did not do its work.
    Failed = "failed", "the worker failed";
}

impl Kind {
    /// Returns true if the driver or the device is at fault, whatever the program is.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Unstable | Self::Lost | Self::Hung | Self::Crashed)
    }
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The kind of the end.
    pub kind: Kind,
    /// The reason, in a line.
    pub detail: String,
    /// The contents of the resources of the job that may be written, in their order, and of its colour attachments, if
    /// the program was executed; those of the second execution after them if they are others.
    pub words: Vec<u32>,
    /// The CPU time of the process for the pipeline, for the first and the second execution, and for all else, if the
    /// program was executed.
    pub times: [Duration; 4],
}

/// The properties of a device that the meaning of programs depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The lanes of a subgroup.
    pub subgroup_size: u32,
    /// The modes of floats that it has.
    pub floats: FloatModes,
    /// The capabilities that it has, by number.
    pub capabilities: FxHashSet<u32>,
    /// Invocations can be made to reconverge as early as they can.
    pub reconverges: bool,
    /// Fragment shaders can be executed, and store to buffers.
    pub draws: bool,
    /// Vertex shaders can be executed, store to buffers, and have outputs that are captured.
    pub captures: bool,
}

impl Properties {
    /// Reads the line of a worker.
    fn read(line: &str) -> Option<Self> {
        let mut own = Self::default();
        for part in line.split_whitespace() {
            let (name, value) = part.split_once('=')?;
            let numbers = || value.split(',').filter(|text| !text.is_empty()).map(str::parse::<u32>);
            let widths = || -> Option<[bool; 3]> {
                let mut widths = [false; 3];
                for bits in numbers() {
                    widths[width_index(u8::try_from(bits.ok()?).ok()?)] = true;
                }
                Some(widths)
            };
            match name {
                "subgroup-size" => own.subgroup_size = value.parse().ok()?,
                "to-even" => own.floats.rounds_to_even = widths()?,
                "denormals" => own.floats.keeps_denormals = widths()?,
                "specials" => own.floats.keeps_specials = widths()?,
                "capabilities" => own.capabilities = numbers().collect::<Result<_, _>>().ok()?,
                "reconverges" => own.reconverges = value == "1",
                "draws" => own.draws = value == "1",
                "captures" => own.captures = value == "1",
                _ => {}
            }
        }
        Some(own)
    }

    /// The capabilities that it lacks.
    #[must_use]
    pub fn lacking(&self) -> Vec<Capability> {
        let all = (0..7000).filter_map(Capability::from_u32);
        all.filter(|&capability| !self.capabilities.contains(&(capability as u32))).collect()
    }
}

/// A device that cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The driver or the worker is not there.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// The worker does not start.
    #[error("{library}: no device: {why}", library = .library.display())]
    NoDevice {
        /// The driver.
        library: std::path::PathBuf,
        /// The reason.
        why: String,
    },
}

/// A part of what a worker writes.
enum Message {
    /// A line of the beginning.
    Line(String),
    Answer(Execution),
}

/// A device, and its process. After a crash, a hang or a loss there is another process.
pub struct Device {
    library: Library,
    time: Duration,
    process: Option<Process>,
    /// Device, driver and version, as the driver names them.
    name: String,
    properties: Properties,
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Message>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Device {
    /// Starts a process with the device of a library. An execution may take so long.
    ///
    /// # Errors
    /// If there is no worker or no device.
    pub fn open(library: &Library, time: Duration) -> Result<Self, DeviceError> {
        let properties = Properties::default();
        let mut own = Self { library: library.clone(), time, process: None, name: String::new(), properties };
        own.start()?;
        Ok(own)
    }

    /// Device, driver and version, as the driver names them.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The properties of the device.
    #[must_use]
    pub const fn properties(&self) -> &Properties {
        &self.properties
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        let library = self.library.path.clone();
        let no_device = |why: String| DeviceError::NoDevice { library: library.clone(), why };
        let mut command = self.library.command()?;
        command.extend(["--time".into(), self.time.as_secs_f64().to_string().into()]);
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt of the terminal is not for it: it ends with its standard input.
            .process_group(0)
            .spawn()
            .map_err(|error| no_device(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(no_device("found no pipe to the worker".to_owned()));
        };
        let (send, messages) = mpsc::channel();
        thread::spawn(move || read(stdout, &send));
        let process = Process { child, stdin, messages };
        let line = || match process.messages.recv_timeout(START) {
            Ok(Message::Line(line)) => Ok(line),
            _ => Err(no_device("the process of the driver ended, or does not answer".to_owned())),
        };
        let first = line()?;
        match first.split_once(' ') {
            Some(("ready", name)) => self.name = name.to_owned(),
            Some(("failed", why)) => return Err(no_device(why.to_owned())),
            _ => return Err(no_device(format!("found the answer `{first}`, expected `ready` or `failed`"))),
        }
        let properties = line()?;
        self.properties =
            Properties::read(&properties).ok_or_else(|| no_device(format!("found the properties `{properties}`")))?;
        self.process = Some(process);
        Ok(())
    }

    /// Executes a job.
    ///
    /// # Errors
    /// If the device is gone, and is not there again in another process.
    pub fn execute(&mut self, job: &Job) -> Result<Execution, DeviceError> {
        if self.process.is_none() {
            self.start()?;
        }
        let Some(process) = &mut self.process else { return Ok(failed("no process")) };
        // If it has ended, there is no answer, and its end is the result.
        let _ = process.stdin.write_all(&job.bytes()).and_then(|()| process.stdin.flush());
        // Two executions.
        let execution = match process.messages.recv_timeout(2 * self.time + GRACE) {
            Ok(Message::Answer(execution)) => execution,
            Ok(Message::Line(line)) => failed(format!("found the answer `{line}`")),
            Err(RecvTimeoutError::Timeout) => ended(Kind::Hung, "the driver does not answer"),
            Err(RecvTimeoutError::Disconnected) => {
                let (kind, detail) = match process.child.wait() {
                    Ok(status) if status.signal().is_some() => (Kind::Crashed, status.to_string()),
                    Ok(status) => (Kind::Crashed, format!("the driver ended the process: {status}")),
                    Err(error) => (Kind::Failed, error.to_string()),
                };
                ended(kind, detail)
            }
        };
        if !matches!(execution.kind, Kind::Executed | Kind::Unstable | Kind::Refused | Kind::Unsupported) {
            self.process = None;
        }
        Ok(execution)
    }
}

fn ended(kind: Kind, detail: impl Into<String>) -> Execution {
    Execution { kind, detail: detail.into(), words: Vec::new(), times: Default::default() }
}

fn failed(detail: impl Into<String>) -> Execution {
    ended(Kind::Failed, detail)
}

/// Reads all that a worker writes, until its end.
fn read(stdout: ChildStdout, send: &mpsc::Sender<Message>) {
    let mut reader = BufReader::new(stdout);
    for number in 0.. {
        let mut line = Vec::new();
        if !matches!((&mut reader).take(MOST_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let message = if number < 2 { Message::Line(line) } else { answer(line, &mut reader) };
        // The reader is gone, or the rest has no meaning.
        let is_broken = number > 1 && matches!(message, Message::Line(_));
        if send.send(message).is_err() || is_broken {
            return;
        }
    }
}

/// An answer: its line, and the bytes that follow. A line if it is none.
fn answer(line: String, reader: &mut impl Read) -> Message {
    let mut parts = line.splitn(3, ' ');
    let kind = parts.next().and_then(Kind::by_name);
    let length = parts.next().and_then(|text| text.parse::<usize>().ok()).filter(|length| *length <= MOST_BYTES);
    let (Some(kind), Some(length)) = (kind, length) else { return Message::Line(line) };
    let mut detail = parts.next().unwrap_or_default().to_owned();
    let mut times = [Duration::ZERO; 4];
    if kind == Kind::Executed {
        // Microseconds. A worker that measures none writes none.
        let numbers = detail.split(' ').filter_map(|number| number.parse().ok()).map(Duration::from_micros);
        times.iter_mut().zip(numbers).for_each(|(own, time)| *own = time);
        detail.clear();
    }
    match words(reader, length) {
        Ok(words) => Message::Answer(Execution { kind, detail, words, times }),
        Err(_) => Message::Line(line),
    }
}

fn words(reader: &mut impl Read, length: usize) -> io::Result<Vec<u32>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read() {
        let line = "subgroup-size=8 to-even=16,32,64 denormals= specials=32 capabilities=1,61 reconverges=1 draws=1";
        let properties = Properties::read(line).expect("properties");
        assert_eq!(properties.subgroup_size, 8);
        assert_eq!(properties.floats.rounds_to_even, [true; 3]);
        assert_eq!(properties.floats.keeps_denormals, [false; 3]);
        assert_eq!(properties.floats.keeps_specials, [false, true, false]);
        assert!(properties.reconverges && properties.draws && !properties.lacking().contains(&Capability::Shader));
        assert!(properties.lacking().contains(&Capability::Kernel));
        assert_eq!(Properties::read("subgroup-size=x"), None);
    }

    #[test]
    fn an_answer_has_as_many_words_as_it_says() {
        let read = |line: &str, bytes: &[u8]| match answer(line.to_owned(), &mut &bytes[..]) {
            Message::Answer(Execution { kind, detail, words, .. }) => Some((kind, detail, words)),
            Message::Line(_) => None,
        };
        let expected = Some((Kind::Executed, String::new(), vec![1, 2]));
        assert_eq!(read("executed 8 ", &[1, 0, 0, 0, 2, 0, 0, 0]), expected);
        let Message::Answer(timed) = answer("executed 0 5 6 7 8".to_owned(), &mut &[][..]) else { panic!("no answer") };
        assert_eq!((timed.times.map(|time| time.as_micros()), timed.detail), ([5, 6, 7, 8], String::new()));
        assert_eq!(
            read("lost 0 vkQueueSubmit", &[]).map(|it| (it.0, it.1)),
            Some((Kind::Lost, "vkQueueSubmit".into()))
        );
        assert_eq!(read("executed 8 ", &[1, 0, 0, 0]), None);
        assert_eq!(read("done 0", &[]), None);
    }
}
