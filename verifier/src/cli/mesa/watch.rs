//! `mesa --watch`: the log is a live stream.
//!
//! One thread reads the stream, one assembles shaders, and several check them. The queues between them are bounded: if
//! the checkers are slower, the stream is not read on, and the application is blocked when its pipe is full; or, with
//! `--drop`, shaders are left out, and counted. A stream that stops for a moment after a shader does not hold it back.

use super::Mesa;
use super::kept::KeptShaders;
use super::print::{Printer, Stream};
use crate::{Exit, Failure, Format, engines, interrupt, output};
use ir3_harness::check::Engines;
use ir3_harness::check::cache::VerdictKey;
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::mesa::stream::ShaderStream;
use ir3_semantics::support::queue::Queue;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Bytes of text of the shaders that wait, at most.
const MOST_TEXT: usize = 64 << 20;
/// The time without input after which a shader that has all its sections is complete.
const IDLE: Duration = Duration::from_secs(1);
/// The interval between checks for signals.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;
/// Shaders that are known again if the stream repeats them.
const MOST_KEYS: usize = 1 << 20;

/// A shader that waits for a thread.
struct Job {
    shader: LogShader,
    key: VerdictKey,
}

/// The thread that puts shaders together.
struct Follower<'a> {
    mesa: &'a Mesa,
    path: &'a Path,
    printer: &'a Printer<'a>,
    kept: &'a KeptShaders,
    queue: &'a Queue<Job>,
    seen: FxHashSet<VerdictKey>,
}

impl Mesa {
    /// Checks a stream until its end, or until a signal comes.
    pub fn watch(&self, engines: &Engines, format: Format) -> Result<Exit, Failure> {
        let [path] = &self.paths[..] else {
            return Err(
                format!("--watch: found {} paths, expected one stream: `-`, or a pipe", self.paths.len()).into()
            );
        };
        let (name, chunks) = open(path)?;
        let settings = self.settings(engines);
        let kept = KeptShaders::new(self, engines)?;
        let printer = Printer::new(self, format)?;
        let queue = Queue::new(self.queue as usize, MOST_TEXT);
        let mut failure = None;
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.count() {
                scope.spawn(|| {
                    while let Some(Job { shader, key }) = queue.pop(interrupt::flag()) {
                        let report = self.check(&name, &shader, &settings);
                        if let Ok(report) = &report {
                            kept.put(key, report);
                        }
                        printer.result(report);
                    }
                });
            }
            let mut follower = Follower {
                mesa: self,
                path: &name,
                printer: &printer,
                kept: &kept,
                queue: &queue,
                seen: FxHashSet::default(),
            };
            failure = follower.follow(&chunks).err();
            queue.close();
        });
        let mut exits = vec![engines::written(engines)];
        if let Some(why) = kept.failure() {
            output::problem(&format!("verdicts cannot be written to {why}"));
            exits.push(Exit::Unwritten);
        }
        if let Some(error) = failure {
            output::problem(&format!("{}: cannot be read: {error}", name.display()));
            exits.push(Exit::Bad);
        }
        exits.push(printer.end());
        Ok(Exit::of_all(exits))
    }
}

impl Follower<'_> {
    /// Reads the stream to its end, or until a signal comes.
    fn follow(&mut self, chunks: &Receiver<Chunk>) -> io::Result<()> {
        let mut stream = ShaderStream::new(self.path);
        let mut last = Instant::now();
        let mut result = Ok(());
        while !interrupt::is_set() {
            match chunks.recv_timeout(LOOK) {
                Ok(Ok(bytes)) => {
                    stream.read(&bytes, &mut |shader| self.shader(shader));
                    last = Instant::now();
                }
                Ok(Err(error)) => {
                    result = Err(error);
                    break;
                }
                Err(RecvTimeoutError::Timeout) if last.elapsed() >= IDLE => {
                    stream.settle(&mut |shader| self.shader(shader));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.count(|counts| counts.cut_lines = stream.cut_lines());
        if interrupt::is_set() {
            // A shader that was being read when the stream ended is no error.
            for shader in stream.end().iter().filter(|shader| is_shader(shader)) {
                self.count(|counts| counts.shaders += 1);
                output::note(&format!("{}: the shader of line {} was not complete", self.path.display(), shader.line));
            }
            return result;
        }
        stream.end().into_iter().for_each(|shader| self.shader(shader));
        result
    }

    fn count(&self, change: impl FnOnce(&mut Stream)) {
        if let Some(counts) = &mut self.printer.whole().stream {
            change(counts);
        }
    }

    fn shader(&mut self, shader: LogShader) {
        if !is_shader(&shader) {
            return;
        }
        self.count(|counts| counts.shaders += 1);
        let target = self.mesa.target_of(&shader);
        let key = self.kept.key(&shader, &target);
        // Incomplete shaders are neither kept nor recognised: the same sections may be all that another log has.
        if shader.broken.is_empty() && self.seen.contains(&key) {
            return self.count(|counts| counts.repeated += 1);
        }
        let kept = match shader.broken.is_empty() {
            true => self.kept.get(self.mesa, key, self.path, &shader, &target),
            false => Ok(None),
        };
        match kept {
            Ok(Some(report)) => {
                self.see(key);
                return self.printer.result(Ok(report));
            }
            Ok(None) => {}
            Err(why) => {
                self.printer.bar.suspend(|| output::note(&format!("ignored: {why}")));
                self.count(|counts| counts.corrupt += 1);
            }
        }
        let size = shader.size();
        let job = Job { shader, key };
        let is_taken = match self.mesa.drop {
            true => self.queue.try_push(job, size).is_ok(),
            false => self.queue.push(job, size, interrupt::flag()).is_ok(),
        };
        if is_taken {
            self.see(key);
        } else if self.mesa.drop {
            self.count(|counts| counts.dropped += 1);
        }
        self.printer.bar.set_message(format!("{} waiting", self.queue.len()));
    }

    fn see(&mut self, key: VerdictKey) {
        if self.seen.len() < MOST_KEYS {
            self.seen.insert(key);
        }
    }
}

/// Returns false for the second print of an assembly alone.
fn is_shader(shader: &LogShader) -> bool {
    shader.nir.is_some() || !shader.passes.is_empty() || !shader.broken.is_empty()
}

/// A chunk of a stream.
type Chunk = io::Result<Vec<u8>>;

/// Opens a stream, and reads it on a thread of its own: that may wait for a long time.
fn open(path: &Path) -> Result<(PathBuf, Receiver<Chunk>), Failure> {
    let is_standard_input = path.as_os_str() == "-";
    let (name, mut reader): (PathBuf, Box<dyn Read + Send>) = match is_standard_input {
        true => (PathBuf::from("<stdin>"), Box::new(io::stdin())),
        false => {
            let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            (path.to_owned(), Box::new(file))
        }
    };
    let (send, chunks) = mpsc::sync_channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_end = read.is_err();
            // The receiver is gone after a signal.
            if send.send(read).is_err() || is_end {
                return;
            }
        }
    });
    Ok((name, chunks))
}
