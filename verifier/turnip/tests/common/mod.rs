//! A worker under test, and its answers.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A shader of the corpus.
pub fn shader(name: &str) -> PathBuf {
    root().join("corpus/turnip").join(name)
}

/// The worker.
pub fn worker() -> PathBuf {
    env!("CARGO_BIN_EXE_ir3-turnip").into()
}

/// A worker with the stock driver, its libraries and their loader; `None` where that is not unpacked.
pub fn stock(gpu: &str) -> Option<Command> {
    let libraries = root().join("target/stock-mesa/usr/lib/x86_64-linux-gnu");
    let driver = libraries.join("libvulkan_freedreno.so");
    if !driver.is_file() {
        eprintln!("no target/stock-mesa: nothing is tested (`ci/stock-mesa` unpacks it)");
        return None;
    }
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(worker()).arg("--driver").arg(driver).args(["--gpu", gpu]);
    Some(command)
}

/// An answer: its kind, its reason, its log, and the bytes of the cache of pipelines.
#[derive(Debug)]
pub struct Answer {
    pub kind: String,
    pub reason: String,
    pub log: String,
    pub data: usize,
}

/// Sends files to a worker, one after the other. Returns its first line, and its answers.
pub fn compile(mut command: Command, paths: &[PathBuf]) -> (String, Vec<Answer>) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("to start it");
    let mut stdin = child.stdin.take().expect("its input");
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = || {
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    };
    let first = line();
    let mut answers = Vec::new();
    for path in paths {
        if writeln!(stdin, "{}", path.display()).is_err() {
            break;
        }
        let mut head = String::new();
        out.read_line(&mut head).expect("a line");
        let mut parts = head.trim_end().splitn(4, ' ').map(str::to_owned);
        let (Some(kind), Some(length), Some(size)) = (parts.next(), parts.next(), parts.next()) else { break };
        let mut bytes = |length: &str| {
            let mut bytes = vec![0; length.parse().expect("a length")];
            out.read_exact(&mut bytes).expect("as many bytes");
            bytes
        };
        let log = String::from_utf8_lossy(&bytes(&length)).into_owned();
        let data = bytes(&size).len();
        answers.push(Answer { kind, reason: parts.next().unwrap_or_default(), log, data });
    }
    drop(stdin);
    child.wait().expect("its end");
    (first, answers)
}
