//! Common parts of `kill-matrix`, `pairs` and `agreement`: the selection of engines, threads, and tables of verdicts.

use crate::engines::{self, EngineArgs};
use crate::{Exit, Failure, Format, Fuel, Gpu, Jobs, output};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ir3_harness::check::{Answer, EngineKind, Engines, Tally};
use ir3_programs::{Case, Question};
use ir3_selftest::cases::compare_all;
use ir3_semantics::Snapshot;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The engines to run, and their options.
#[derive(Args)]
pub struct EngineRun {
    #[command(flatten)]
    engines: EngineArgs,
    #[command(flatten)]
    jobs: Jobs,
    /// Seed of the programs.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub fuel: Fuel,
    #[command(flatten)]
    pub gpu: Gpu,
}

impl EngineRun {
    /// The engines, all of them unless the command line names some.
    ///
    /// # Errors
    /// If the folder of kept proofs cannot be made.
    pub fn engines(&self, timeout: Duration) -> Result<Engines, Failure> {
        self.engines.engines(&EngineKind::ALL, timeout)
    }

    /// Runs all engines on all cases, with a progress bar.
    pub fn run<C: Case>(
        &self,
        cases: impl Iterator<Item = C> + Send,
        count: u64,
        engines: &Engines,
        interrupted: &AtomicBool,
        each: &mut (dyn FnMut(u64, &C, &[Answer]) + Send),
    ) -> Result<(), Failure> {
        let bar = ProgressBar::new(count);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos} of about {len}, {elapsed}")?);
        let mut counted = |number: u64, case: &C, answers: &[Answer]| {
            each(number, case, answers);
            bar.inc(1);
        };
        let (jobs, fuel) = (self.jobs.count(), self.fuel.given());
        compare_all(cases, &self.gpu.target(), engines, jobs, fuel, interrupted, &mut counted);
        bar.finish_and_clear();
        Ok(())
    }
}

/// Verdicts by row and engine.
#[derive(Default)]
pub struct Table {
    rows: BTreeMap<String, (u64, BTreeMap<EngineKind, Tally>)>,
}

/// A cell, as JSON.
#[derive(Serialize)]
struct Cell<'a> {
    kind: &'a str,
    cases: u64,
    engine: &'static str,
    asked: u64,
    refuted: u64,
    proved: u64,
    tested: u64,
    unknown: u64,
    median_ms: f64,
    slowest_ms: f64,
}

impl Table {
    /// Makes a table with rows of these names.
    pub fn new(rows: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: rows.into_iter().map(|name| (name.into(), Default::default())).collect() }
    }

    /// Counts the answers about a case.
    pub fn count(&mut self, row: &str, answers: &[Answer]) {
        let (cases, tallies) = self.rows.entry(row.to_owned()).or_default();
        *cases += 1;
        for Answer { engine, verdict, time } in answers {
            tallies.entry(*engine).or_default().count(verdict, *time);
        }
    }

    /// The tally of an engine over all cases.
    pub fn total(&self, engine: EngineKind) -> Tally {
        let mut total = Tally::default();
        self.rows.values().filter_map(|(_, tallies)| tallies.get(&engine)).for_each(|tally| total.add(tally));
        total
    }

    /// The number of cases.
    pub fn cases(&self) -> u64 {
        self.rows.values().map(|(cases, _)| cases).sum()
    }

    /// Prints the table: for people as Markdown.
    pub fn print(&self, format: Format, first: &str, engines: &[EngineKind]) {
        let total = (self.cases(), engines.iter().map(|&engine| (engine, self.total(engine))).collect());
        let rows = self.rows.iter().filter(|(_, (cases, _))| *cases > 0).map(|(name, row)| (name.as_str(), row));
        let rows = rows.chain([("all", &total)]);
        if format == Format::Json {
            for (name, (cases, tallies)) in rows {
                for (engine, tally) in tallies {
                    output::json("cell", &Cell::new(name, *cases, *engine, tally));
                }
            }
            return;
        }
        let names: String = engines.iter().map(|engine| format!(" {:^31} |", engine.name())).collect();
        output::line(&format!("| {first:<24} | cases |{names}"));
        let rules: String = engines.iter().map(|_| format!(" {}: |", "-".repeat(30))).collect();
        output::line(&format!("| {} | ----: |{rules}", "-".repeat(24)));
        for (name, (cases, tallies)) in rows {
            let cells: String = engines
                .iter()
                .map(|engine| {
                    let text = tallies.get(engine).map_or_else(String::new, |tally| cell(*engine, tally));
                    format!(" {text:>31} |")
                })
                .collect();
            output::line(&format!("| {name:<24} | {cases:>5} |{cells}"));
        }
    }

    /// Prints the times of the engines, and the reasons of unknown verdicts.
    pub fn print_details(&self, format: Format, engines: &[EngineKind]) {
        if format == Format::Json {
            return;
        }
        output::line("");
        for &engine in engines {
            let total = self.total(engine);
            let ms = |percent| total.percentile(percent).as_secs_f64() * 1e3;
            output::line(&format!(
                "{}: {} cases; CPU time {:.2} ms in the median, {:.1} ms in 99 of 100, {:.1} ms at most",
                engine.name(),
                total.total(),
                ms(50),
                ms(99),
                ms(100)
            ));
            let mut reasons: Vec<_> = total.reasons.iter().collect();
            reasons.sort_by_key(|&(why, n)| (std::cmp::Reverse(n), why));
            for (why, n) in reasons.into_iter().take(12) {
                output::line(&format!("  {n} × {why}"));
            }
        }
    }
}

/// The numbers of refuted, proved and open cases, as far as the engine has such verdicts.
fn cell(engine: EngineKind, tally: &Tally) -> String {
    let Tally { refuted, proved, tested, unknown, .. } = tally;
    let open = tested + unknown;
    if engine.proves() {
        format!("{refuted} refuted, {proved} proved, {open} open")
    } else {
        format!("{refuted} refuted, {open} open")
    }
}

impl<'a> Cell<'a> {
    fn new(kind: &'a str, cases: u64, engine: EngineKind, tally: &Tally) -> Self {
        Self {
            kind,
            cases,
            engine: engine.name(),
            asked: tally.total(),
            refuted: tally.refuted,
            proved: tally.proved,
            tested: tally.tested,
            unknown: tally.unknown,
            median_ms: tally.percentile(50).as_secs_f64() * 1e3,
            slowest_ms: tally.percentile(100).as_secs_f64() * 1e3,
        }
    }
}

/// Prints one case and the answers about it.
pub fn show(heading: &str, question: &Question<'_>, engines: &Engines) {
    let [before, after] = [question.before, question.after].map(|side| Snapshot::from(side).text());
    output::json("pair", &serde_json::json!({ "heading": heading, "before": before, "after": after }));
    output::text(&format!("// {heading}\n{before}// ----\n{after}"));
    for Answer { engine, verdict, time } in engines.answers(question) {
        let (name, seconds) = (engine.name(), time.as_secs_f64());
        let reason = verdict.reason();
        output::json(
            "answer",
            &serde_json::json!({ "engine": name, "verdict": verdict.name(), "seconds": seconds, "reason": reason }),
        );
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        output::line(&format!("// {name}: {verdict}{reason} ({:.1} ms)", seconds * 1e3));
    }
}

/// Prints the cases that are not proved, one line each.
pub fn print_open(open: &mut [(u64, String)]) {
    open.sort_unstable();
    for (number, line) in open {
        output::json("open", &serde_json::json!({ "number": number, "message": line }));
        output::line(line);
    }
}

/// Prints wrong answers, one line each.
pub fn print_wrong(wrong: &mut [(u64, String)]) {
    wrong.sort_unstable();
    wrong.iter().for_each(|(_, line)| output::problem(line));
}

/// The exit of a campaign: `wrong` if there are wrong answers, nothing if there were no cases.
pub fn exit(wrong: Exit, answers: &[(u64, String)], cases: u64, engines: &Engines) -> Exit {
    wrong.when(!answers.is_empty()).max(Exit::Nothing.when(cases == 0)).max(engines::written(engines))
}
