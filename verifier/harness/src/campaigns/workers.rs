//! The fuzzing campaign in processes of its own, which can be stopped.
//!
//! Each thread of [`run`] has a worker: this program again, with the same arguments and one more. It gives the worker a
//! range of numbers and adds up its counts; a range is so long that it takes a tenth of a second, so the pipes cost
//! nothing. A worker whose compiler does not terminate, or takes too much memory, ends. The last line of its log has the
//! number of the program: that is a finding, and a new worker checks again the programs that the old one did not report.

use super::counts::Counts;
use super::coverage::Known;
use super::fuzzing::{Campaign, Drawn, Finding};
use crate::guard::{Limits, Process, worker};
use ir3_compiler::pipeline::{RegisterLimit, Stage};
use ir3_programs::coverage::table::Table;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An unknown boundary of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnknownBoundary {
    /// The stage.
    #[serde(with = "stage_name")]
    pub stage: Stage,
    /// The kind of reason.
    pub kind: String,
    /// The reason.
    pub reason: String,
}

/// A program that a worker reports: a [`Finding`] without the program, which its number makes again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerFinding {
    /// Its number in the campaign.
    pub number: u64,
    /// The register limit with which it was found; `None` if the program ended the worker.
    #[serde(with = "register_limit")]
    pub registers: Option<RegisterLimit>,
    /// True if it is a failure.
    pub failed: bool,
    /// Its unknown boundaries, the first of each kind, if it is no failure.
    pub unknown: Vec<UnknownBoundary>,
    /// The environment in which a prover refuted it, if the runs did not.
    pub env: Option<Env>,
    /// The end of the worker, if the program ended it.
    pub died: Option<String>,
}

impl WorkerFinding {
    fn of(finding: &Finding<'_>) -> Self {
        let unknown = finding.unknown.iter().map(|(stage, why)| UnknownBoundary {
            stage: *stage,
            kind: why.kind().into_owned(),
            reason: why.to_string(),
        });
        Self {
            number: finding.number,
            registers: Some(finding.registers),
            failed: finding.failed,
            unknown: unknown.collect(),
            env: finding.env.cloned(),
            died: None,
        }
    }

    /// The GPU, the profile and the seed of the program, and the register limit with which it was found.
    pub fn origin(&self, campaign: &Campaign) -> Drawn {
        let drawn = campaign.program(self.number);
        Drawn { registers: self.registers.unwrap_or(drawn.registers), ..drawn }
    }
}

/// A stage by its name.
mod stage_name {
    use super::Stage;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(stage: &Stage, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(stage.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Stage, D::Error> {
        let name = String::deserialize(deserializer)?;
        Stage::from_name(&name).ok_or_else(|| de::Error::custom(format!("found no stage `{name}`")))
    }
}

/// A register limit as the command line has it.
mod register_limit {
    use super::RegisterLimit;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(limit: &Option<RegisterLimit>, serializer: S) -> Result<S::Ok, S::Error> {
        limit.map(|limit| limit.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RegisterLimit>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
    }
}

/// A line of a worker's report.
#[derive(Serialize, Deserialize)]
enum Event {
    /// A program.
    Found(Box<WorkerFinding>),
    /// The counts of the programs since the last ones, up to a number that is not among them; true if the range ends
    /// with them; and true if the campaign does.
    Counted { end: u64, counts: Box<Counts>, is_last: bool, stops: bool },
    /// The program of a number has a cell that no program of the corpus has, nor one before it.
    New(u64),
    /// The coverage of all its programs, if it is counted: its last line.
    Covered(Box<Table>),
}

/// The time of a range.
const RANGE: Duration = Duration::from_millis(100);

/// The time after which a worker reports its counts.
const REPORT: Duration = Duration::from_millis(50);

/// The numbers of a range, at most.
const LONGEST: u64 = 256;

/// A worker's side: checks the ranges of numbers of standard input until its end.
///
/// # Errors
/// If standard input or output fails, or the limits cannot be set.
pub fn serve(campaign: &Campaign, limits: Limits) -> io::Result<()> {
    worker::limit(limits.memory, limits.time)?;
    // A stack as that of any other thread.
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| ranges(campaign)).join();
        ended.unwrap_or_else(|_| Err(io::Error::other("a panic outside of a check")))
    })
}

fn ranges(campaign: &Campaign) -> io::Result<()> {
    let (stdin, mut log) = (io::stdin().lock(), io::stderr());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut write = |event: &Event| -> io::Result<()> {
        serde_json::to_writer(&mut out, event)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    let corpus = campaign.corpus.as_ref();
    let mut known = corpus.map(|corpus| Known::new(corpus.seen(&campaign.targets, campaign.options)));
    let mut checker = campaign.checker();
    for line in stdin.lines() {
        let line = line?;
        let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        let &[from, to] = &numbers[..] else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut counts = Counts::default();
        let mut last = Instant::now();
        let mut stops = false;
        for number in (from..to).filter(|&number| campaign.shard.has(number)) {
            writeln!(log, "{number}")?;
            let mut finding = None;
            let mut found = |one: &Finding<'_>| finding = Some(Box::new(WorkerFinding::of(one)));
            let failed = campaign.check_number(&mut checker, number, &mut counts, &mut found);
            stops = failed && !campaign.keep_going;
            if checker.coverage().zip(known.as_mut()).is_some_and(|(covered, known)| known.learns(covered)) && !failed {
                write(&Event::New(number))?;
            }
            let is_due = finding.is_some() || last.elapsed() > REPORT;
            if let Some(finding) = finding {
                write(&Event::Found(finding))?;
            }
            if stops {
                break;
            }
            if is_due {
                last = Instant::now();
                let counts = Box::new(std::mem::take(&mut counts));
                write(&Event::Counted { end: number + 1, counts, is_last: false, stops: false })?;
            }
        }
        write(&Event::Counted { end: to, counts: Box::new(counts), is_last: true, stops })?;
    }
    if let (Some(coverage), Some(covered)) = (&campaign.coverage, checker.coverage()) {
        coverage.add(covered);
        write(&Event::Covered(Box::new(coverage.table(&campaign.targets))))?;
    }
    Ok(())
}

/// A program with arguments with which it [serves](serve) a campaign.
pub struct WorkerCommand<'a> {
    /// The program.
    pub program: &'a Path,
    /// The arguments.
    pub arguments: &'a [String],
}

/// The end of a worker's work on a range.
enum RangeEnd {
    /// It has done all, or a failure has stopped it.
    Done,
    /// It has ended at a program. Its reported results end at `reported`.
    Died { reported: u64, number: u64, why: String },
    /// It has ended outside of any program.
    Lost(String),
}

/// Runs a campaign with a worker for each of its jobs, as [`Campaign::run`] does with threads.
///
/// # Errors
/// If no worker can be started, or one ends outside of a program.
pub fn run(
    campaign: &Campaign,
    command: &WorkerCommand<'_>,
    interrupted: &AtomicBool,
    found: &mut (dyn FnMut(&WorkerFinding) + Send),
    progress: &mut (dyn FnMut(&Counts) + Send),
) -> io::Result<Ended> {
    let next = AtomicU64::new(campaign.first);
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let last = campaign.programs.map(|programs| campaign.first.saturating_add(programs));
    let shared = Mutex::new(Shared {
        counts: Counts::default(),
        found,
        progress,
        error: None,
        failures: Vec::new(),
        coverage: Table::default(),
        new: Vec::new(),
    });
    let is_over = || {
        campaign.time.is_some_and(|time| start.elapsed() >= time)
            || interrupted.load(Ordering::Relaxed)
            || stop.load(Ordering::Relaxed)
    };
    threads::run(campaign.jobs, || {
        let mut process: Option<Process> = None;
        // In one shard, only some of the numbers are programs.
        let mut length = campaign.shard.count();
        while !is_over() {
            let from = next.fetch_add(length, Ordering::Relaxed);
            let to = last.map_or(from + length, |last| last.min(from + length));
            if from >= to {
                break;
            }
            let begin = Instant::now();
            let mut left: Vec<Range<u64>> = std::iter::once(from..to).collect();
            while let Some(range) = left.pop().filter(|_| !is_over()) {
                let end = range.end;
                match one_range(command, &mut process, range, &shared, &stop) {
                    RangeEnd::Done => {}
                    RangeEnd::Died { reported, number, why } => {
                        process = None;
                        let mut shared = lock(&shared);
                        shared.counts.count_death();
                        let died = Some(why);
                        let (registers, unknown) = (None, Vec::new());
                        (shared.found)(&WorkerFinding { number, registers, failed: true, unknown, env: None, died });
                        stop.fetch_or(!campaign.keep_going, Ordering::Relaxed);
                        left.extend([number + 1..end, reported..number].into_iter().filter(|range| !range.is_empty()));
                    }
                    RangeEnd::Lost(why) => {
                        lock(&shared).error = Some(why);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
            // The number of programs for the time of a range.
            length = match begin.elapsed() {
                long if long > RANGE * 2 => (length / 2).max(1),
                short if short < RANGE / 2 => (length * 2).min(LONGEST.saturating_mul(campaign.shard.count())),
                _ => length,
            };
        }
        let Some(mut process) = process else { return };
        process.close();
        let table = process.line().and_then(|line| serde_json::from_str(&line).ok());
        if let Some(Event::Covered(table)) = table {
            lock(&shared).coverage.merge(&table);
        }
        if let (Some(1..), words) = process.finish() {
            lock(&shared).failures.push(words);
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = shared.error {
        return Err(io::Error::other(error));
    }
    let (mut counts, mut new) = (shared.counts, shared.new);
    counts.summary.interrupted = interrupted.load(Ordering::Relaxed);
    new.sort_unstable();
    Ok(Ended { counts, failures: shared.failures, coverage: shared.coverage, new })
}

/// State shared by the threads.
struct Shared<'a> {
    counts: Counts,
    found: &'a mut (dyn FnMut(&WorkerFinding) + Send),
    progress: &'a mut (dyn FnMut(&Counts) + Send),
    error: Option<String>,
    failures: Vec<String>,
    coverage: Table,
    new: Vec<u64>,
}

/// The end of a campaign.
#[derive(Debug)]
pub struct Ended {
    /// Its counts.
    pub counts: Counts,
    /// The worker's messages about files that it could not write.
    pub failures: Vec<String>,
    /// The coverage of its programs, if it is counted; without those of workers that were ended.
    pub coverage: Table,
    /// The numbers of programs with cells that those of the corpus lack, in order.
    pub new: Vec<u64>,
}

fn lock<'a, 'b>(shared: &'a Mutex<Shared<'b>>) -> std::sync::MutexGuard<'a, Shared<'b>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a worker a range of numbers to check.
fn one_range(
    command: &WorkerCommand<'_>,
    process: &mut Option<Process>,
    range: Range<u64>,
    shared: &Mutex<Shared<'_>>,
    stop: &AtomicBool,
) -> RangeEnd {
    if process.is_none() {
        match Process::start(command.program, command.arguments) {
            Ok(started) => *process = Some(started),
            Err(error) => return RangeEnd::Lost(format!("{}: {error}", command.program.display())),
        }
    }
    let Some(worker) = process else { return RangeEnd::Lost("found no worker".to_owned()) };
    worker.forget_log();
    // The worker may have ended already; its output shows that.
    let _ = worker.write(format!("{} {}\n", range.start, range.end).as_bytes());
    let mut reported = range.start;
    while let Some(line) = worker.line() {
        match serde_json::from_str(&line) {
            Ok(Event::Found(finding)) => (lock(shared).found)(&finding),
            Ok(Event::New(number)) => lock(shared).new.push(number),
            Ok(Event::Counted { end, counts, is_last, stops }) => {
                let mut shared = lock(shared);
                shared.counts.add(&counts);
                let Shared { counts, progress, .. } = &mut *shared;
                progress(counts);
                reported = end;
                if stops {
                    stop.store(true, Ordering::Relaxed);
                }
                if is_last {
                    return RangeEnd::Done;
                }
            }
            Ok(Event::Covered(_)) => return RangeEnd::Lost("a worker has ended before its range".to_owned()),
            Err(error) => return RangeEnd::Lost(format!("found `{line}` from a worker: {error}")),
        }
    }
    let (reason, log) = worker.end();
    *process = None;
    match log.lines().rev().find_map(|line| line.parse().ok()) {
        Some(number) if (reported..range.end).contains(&number) => {
            RangeEnd::Died { reported, number, why: format!("{}: {}", reason.name(), reason.description()) }
        }
        _ => RangeEnd::Lost(format!("a worker ended: {}", log.trim())),
    }
}
