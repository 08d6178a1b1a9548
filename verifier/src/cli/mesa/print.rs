//! Tables of shaders, and the counts of a run.

use super::Mesa;
use super::own::Own;
use super::report::{Missing, Report, Row};
use crate::{Exit, Failure, Format, exit, interrupt, output, turnip};
use indicatif::{ProgressBar, ProgressStyle};
use ir3_harness::check::{Check, Summary};
use ir3_programs::mesa::input::InputError;
use ir3_programs::mesa::origin::Versions;
use ir3_report::mesa_comparison::Totals;
use ir3_report::page::PageFolder;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counts of a part: Mesa's passes, or our own backend.
#[derive(Default)]
pub struct Counts {
    pub summary: Summary,
    reasons: BTreeMap<String, u64>,
}

impl Counts {
    fn add(&mut self, rows: &[Row]) {
        for row in rows {
            self.summary.add(&row.counts);
            if let Some(kind) = &row.kind {
                *self.reasons.entry(format!("{}: {kind}", row.check.stage)).or_default() += 1;
            }
        }
    }

    /// Why boundaries are unknown, the most frequent first.
    fn print_reasons(&self) {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in reasons {
            output::line(&format!("{count:6}  {reason}"));
        }
    }
}

/// Counts of the shaders of a stream that were not checked.
#[derive(Clone, Default, Serialize)]
pub struct Stream {
    /// Shaders that the stream had.
    pub shaders: u64,
    /// The shaders that were checked in this run.
    pub checked: u64,
    /// The shaders with the verdicts of an earlier run.
    pub kept: u64,
    /// The shaders that occurred in the stream before.
    pub repeated: u64,
    /// The shaders that were left out because too many waited.
    pub dropped: u64,
    /// The shaders with sections that are cut off.
    pub incomplete: u64,
    /// The shaders that were not checked when a signal ended the run.
    pub unchecked: u64,
    /// Lines of more than a MiB, which were cut.
    pub cut_lines: u64,
    /// Entries of the cache that were ignored.
    pub corrupt: u64,
}

/// The totals over all logs.
#[derive(Default)]
pub struct Whole {
    mesa: Counts,
    own: Counts,
    totals: Totals,
    exit: Option<Exit>,
    /// Shaders whose GPU the log does not name, by the GPU that was guessed.
    guessed: BTreeMap<&'static str, u64>,
    /// Numbers for the driver that are compared with nothing, by the shaders that have them.
    not_compared: BTreeMap<&'static str, u64>,
    /// Shaders whose log lacks sections.
    missing: BTreeMap<Missing, u64>,
    /// Shaders by the versions that print their nir.
    versions: BTreeMap<Versions, u64>,
    /// Shaders without serial numbers, and without words.
    lacking: [u64; 2],
    /// The counts of a live stream.
    pub stream: Option<Stream>,
}

impl Whole {
    fn fail(&mut self, exit: Exit) {
        self.exit = Some(self.exit.map_or(exit, |known| known.max(exit)));
    }

    /// Prints the counts of the whole, and returns the exit.
    fn end(&mut self, compiles: bool) -> Exit {
        let interrupted = interrupt::is_set();
        self.mesa.summary.interrupted = interrupted;
        self.mesa.print_reasons();
        output::summary(&self.mesa.summary);
        output::guessed_gpus(&self.guessed);
        if !self.not_compared.is_empty() {
            let names: Vec<String> =
                self.not_compared.iter().map(|(name, count)| format!("{name} ({count})")).collect();
            output::line(&format!("numbers for the driver that are not checked: {}", names.join(", ")));
        }
        for (missing, &count) in &self.missing {
            output::note(&missing.hint(count));
        }
        if let Some(versions) = self.versions() {
            output::line(&versions);
        }
        self.lacking().iter().for_each(|line| output::line(line));
        let mut exits = vec![exit::of_verdicts(&self.mesa.summary)];
        if compiles {
            self.own.summary.interrupted = interrupted;
            self.own.print_reasons();
            output::line(&format!("our backend: {}", self.own.summary));
            output::json("compiled", &self.own.summary);
            output::text(&format!("\n{}", self.totals));
            output::json("totals", &self.totals);
            exits.push(exit::of_verdicts(&self.own.summary));
            exits.push(Exit::Unmet.when(self.own.summary.rejected > 0));
        }
        if let Some(mut stream) = self.stream.take() {
            // Verdicts of all shaders that were met count; one that was neither checked nor kept is not reached.
            let known = stream.checked + stream.kept + stream.repeated + stream.dropped;
            stream.unchecked = stream.shaders.saturating_sub(known);
            output::json("stream", &stream);
            output::line(&stream.to_string());
            exits.push(Exit::Unmet.when(stream.dropped > 0));
        }
        Exit::of_all(exits.into_iter().chain(self.exit))
    }
}

fn programs(count: u64) -> String {
    format!("{count} program{}", if count == 1 { "" } else { "s" })
}

impl Whole {
    /// The versions of Mesa that print such texts.
    fn versions(&self) -> Option<String> {
        let named = |(versions, count): (&Versions, &u64)| format!("{versions} ({})", programs(*count));
        let versions: Vec<String> = self.versions.iter().map(named).collect();
        (!versions.is_empty()).then(|| format!("Mesa, as far as its nir shows: {}", versions.join(", ")))
    }

    /// The sections that release builds do not print, and the consequences.
    fn lacking(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let [serials, words] = self.lacking;
        if serials > 0 {
            lines.push(format!(
                "no serial numbers in the log of {} (a release build of Mesa): instructions of two passes are paired by opcode and operands, and ambiguous pairs are unknown; `-Dbuildtype=debug` prints them",
                programs(serials)
            ));
        }
        if words > 0 {
            lines.push(format!(
                "no words in the log of {}: the final code is its assembly, as Mesa's disassembler prints it",
                programs(words)
            ));
        }
        lines
    }
}

impl Missing {
    /// The summary of shaders whose log lacks such sections, and how to have them printed.
    fn hint(self, count: u64) -> String {
        let plural = if count == 1 { "" } else { "s" };
        let (lacks, so) = match self {
            Self::Passes => ("no program after a pass", "only nir and the final code are compared"),
            Self::Nir => {
                ("no nir in final form", "passes are compared without their inputs, nir and final code are not")
            }
            Self::Assembly => {
                ("no final assembly", "passes are compared without the attributes that their text leaves out")
            }
        };
        format!(
            "{lacks} in the log of {count} program{plural}: {so}; `IR3_SHADER_DEBUG={DEBUG_VARIABLE}` prints all sections"
        )
    }
}

/// The value of `IR3_SHADER_DEBUG` with which Mesa prints all sections of all shaders, also of those in its cache.
const DEBUG_VARIABLE: &str = "vs,tcs,tes,gs,fs,cs,internal,optmsgs,nocache";

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shaders, checked, kept, repeated, .. } = self;
        let plural = if *shaders == 1 { "" } else { "s" };
        write!(f, "stream: {shaders} shader{plural}: {checked} checked, {kept} kept, {repeated} repeated")?;
        let rest = [
            (self.dropped, "dropped"),
            (self.unchecked, "not checked"),
            (self.incomplete, "incomplete"),
            (self.cut_lines, "cut lines"),
            (self.corrupt, "corrupt entries of the cache"),
        ];
        rest.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, what)| write!(f, ", {count} {what}"))
    }
}

/// Prints reports, from any thread.
pub struct Printer<'a> {
    options: &'a Mesa,
    format: Format,
    whole: Arc<Mutex<Whole>>,
    pub bar: ProgressBar,
    /// Tables of shaders that pass are not printed.
    only_failures: bool,
    pages: Option<Mutex<PageFolder>>,
}

impl<'a> Printer<'a> {
    pub fn new(options: &'a Mesa, format: Format) -> Result<Self, Failure> {
        let whole = Arc::new(Mutex::new(Whole { stream: options.watch.then(Stream::default), ..Whole::default() }));
        let (so_far, compiles) = (Arc::clone(&whole), options.compile);
        interrupt::last_words(move || {
            // A thread may hang in a write while it has the lock.
            let whole = (0..10).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                so_far.try_lock().ok()
            });
            whole.map_or(Exit::Interrupted, |mut whole| whole.end(compiles).max(Exit::Interrupted))
        });
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {pos} shaders, {elapsed}, {msg}")?);
        let only_failures = options.quiet || options.watch && !options.verbose && format == Format::Human;
        let pages = options.html.as_deref().map(PageFolder::create).transpose()?.map(Mutex::new);
        Ok(Self { options, format, whole, bar, only_failures, pages })
    }

    pub fn whole(&self) -> MutexGuard<'_, Whole> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the report of a shader, or the reason why there is none.
    pub fn result(&self, result: Result<Report, InputError>) {
        let mut whole = self.whole();
        match result {
            Ok(report) => {
                if !self.options.watch {
                    self.bar.set_message(report.name.clone());
                }
                self.bar.inc(1);
                self.bar.suspend(|| self.report(&report, &mut whole));
            }
            Err(error) => {
                whole.fail(turnip::exit_of(&error));
                self.bar.suspend(|| output::error(&error));
            }
        }
    }

    /// Prints the counts of the whole, and returns the exit.
    pub fn end(&self) -> Exit {
        self.bar.finish_and_clear();
        interrupt::ends_by_itself();
        self.whole().end(self.options.compile)
    }

    fn report(&self, report: &Report, whole: &mut Whole) {
        let kept = if report.is_kept { " (kept)" } else { "" };
        whole.mesa.summary.programs += 1;
        whole.mesa.add(&report.rows);
        if let Some(missing) = report.missing {
            *whole.missing.entry(missing).or_default() += 1;
        }
        if let Some(versions) = report.origin.versions {
            *whole.versions.entry(versions).or_default() += 1;
        }
        whole.lacking[0] += u64::from(report.origin.lacks_serials);
        whole.lacking[1] += u64::from(report.origin.lacks_words);
        if let Some(gpu) = report.guessed_gpu {
            *whole.guessed.entry(gpu).or_default() += 1;
        }
        for name in &report.not_compared {
            *whole.not_compared.entry(name).or_default() += 1;
        }
        if let Some(stream) = &mut whole.stream {
            match report.is_kept {
                true => stream.kept += 1,
                false => stream.checked += 1,
            }
            stream.incomplete += u64::from(report.is_broken);
        }
        if report.is_broken {
            whole.fail(Exit::Bad);
        }
        self.table(&format!("{}{kept}", report.title), report, &report.rows, &report.explained, whole);
        for line in report.explained.iter().filter(|_| self.format != Format::Human) {
            output::note(&format!("{}: inferred: {line}", report.name));
        }
        for problem in &report.problems {
            output::problem_of(&format!("{}{kept}", report.name), problem);
        }
        for contradiction in &report.contradictions {
            output::problem_of(&format!("{}{kept}", report.name), &format!("two sections contradict: {contradiction}"));
            whole.fail(Exit::Bad);
        }
        if let Some(own) = &report.own {
            self.own(own, report, kept, whole);
        }
    }

    /// Prints a table, and notes on its rows.
    fn table(&self, title: &str, report: &Report, rows: &[Row], explained: &[String], whole: &mut Whole) {
        // A report has all cases.
        let all = !self.only_failures || self.format == Format::Junit;
        let shown: Vec<&Row> = rows.iter().filter(|row| all || !row.is_pass()).collect();
        if self.format == Format::Human && (!shown.is_empty() || !explained.is_empty()) {
            output::line(title);
            output::line(&format!(
                "  {:28}  {:13}  {:12}  {:>11}  {:>9}",
                "pass", "verdict", "engine", "sensitivity", "ms"
            ));
            explained.iter().for_each(|line| output::line(&format!("  inferred: {line}")));
        }
        for row in rows {
            if let Some(why) = &row.wrong_proof {
                let Row { check, .. } = row;
                output::problem(&format!(
                    "{}: {}: proved a boundary that a run refutes: {why}",
                    check.program, check.stage
                ));
                whole.fail(Exit::Unsound);
            }
        }
        for row in shown {
            print_row(row, self.format, report.is_kept);
            match &row.bundle {
                Some(Ok(folder)) => {
                    output::json("bundle", &serde_json::json!({ "program": row.check.program, "folder": folder }));
                    output::line(&format!("      written to {}", folder.display()));
                }
                Some(Err(error)) => {
                    output::problem(&format!("{}: {error}", self.options.failures.display()));
                    whole.fail(Exit::Unwritten);
                }
                None => {}
            }
            if let (Some(page), Some(pages)) = (&row.page, &self.pages) {
                match pages.lock().unwrap_or_else(PoisonError::into_inner).add_page(page) {
                    Ok(path) => {
                        output::json("page", &serde_json::json!({ "program": row.check.program, "path": path }));
                        output::line(&format!("      page {}", path.display()));
                    }
                    Err(error) => {
                        output::problem(&error.to_string());
                        whole.fail(Exit::Unwritten);
                    }
                }
            }
        }
    }

    fn own(&self, own: &Own, report: &Report, kept: &str, whole: &mut Whole) {
        whole.own.summary.add(&own.counts);
        whole.own.add(&own.rows);
        let limit = own.limit.as_ref().map_or(String::new(), |limit| format!(", --max-registers {limit}"));
        self.table(&format!("{}{limit}{kept}", own.name), report, &own.rows, &[], whole);
        if let Some(why) = &own.refused {
            output::json("refused", &serde_json::json!({ "program": own.name, "refused": why }));
            if own.rows.is_empty() {
                *whole.own.reasons.entry(format!("refused: {why}")).or_default() += 1;
            }
            output::line(&format!("{}: refused: {why}", own.name));
        }
        match &own.costs {
            Ok(costs) => {
                whole.totals.add(costs);
                output::json("costs", costs);
                if !self.only_failures && own.refused.is_none() {
                    output::line(&format!("  ours/Mesa's: {}", costs.line()));
                }
            }
            Err(why) if !self.only_failures => output::line(&format!("  not compared: {why}")),
            Err(_) => {}
        }
    }
}

/// A verdict of a run before, as JSON.
#[derive(Serialize)]
struct KeptCheck<'a> {
    #[serde(flatten)]
    check: &'a Check,
    kept: bool,
}

fn print_row(row: &Row, format: Format, kept: bool) {
    let check = &row.check;
    match format {
        Format::Human => {}
        Format::Json if kept => return output::json("check", &KeptCheck { check, kept }),
        Format::Json | Format::Junit => return output::check(0, check),
    }
    let sensitivity = check.sensitivity.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let verdict = match check.verdict {
        "tested" => format!("tested {}", check.lanes),
        other => other.to_owned(),
    };
    output::line(&format!(
        "  {:28}  {verdict:13}  {:12}  {sensitivity:>11}  {:>9.2}",
        check.stage,
        check.engine,
        check.seconds * 1e3
    ));
    if let Some(reason) = check.reason.as_deref().filter(|_| check.verdict != "proved") {
        output::line(&format!("      {reason}"));
    }
}
