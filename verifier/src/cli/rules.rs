//! `ir3-equiv rules`: proves every rewrite rule of the compiler and every lemma of the prover, for all operands.

use crate::exit::{self, Unwritten};
use crate::values;
use crate::{Exit, Failure, Format, interrupt, junit, output};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ir3_compiler::nir_passes::Rule;
use ir3_harness::check::Check;
use ir3_programs::planted_bugs::rules as planted;
use ir3_prove::lemmas;
pub use ir3_prove::rewrite_rules::check_enabled;
use ir3_prove::rewrite_rules::{ClaimVerdict, Statement, properties, proposal, tables};
use ir3_prove::solver::smtlib::{QueryFolder, Recording};
use ir3_prove::solver::{Budget, Floats, Solver, Z3};
use ir3_report::page;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct Rules {
    /// The time limit for each rule (`500ms`, `10s`, `2m`).
    #[arg(long, value_name = "T", value_parser = values::time, default_value = "60s")]
    timeout: Duration,
    /// Model floats by the SMT theory of floating point, instead of as uninterpreted functions.
    #[arg(long)]
    exact_floats: bool,
    /// Leave out the lemmas: that of division enumerates 2^32 divisors.
    #[arg(long)]
    no_lemmas: bool,
    /// The set of claims: the tables of the backend, the properties that nir declares of its operations, or a
    /// proposal.
    #[arg(long, value_enum, default_value_t = RuleSet::Backend)]
    set: RuleSet,
    /// Write each query into a folder, as SMT-LIB 2 text.
    #[arg(long, value_name = "DIR")]
    emit_smt: Option<PathBuf>,
    /// Write a page for each refuted rule into a folder, and an index.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Add a wrong rule, to see its refutation.
    #[arg(long, value_name = "RULE", value_parser = planted_rules(), help_heading = "Testing ir3-equiv itself")]
    plant: Option<&'static Rule>,
}

/// A set of claims.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleSet {
    /// The rewrite rules of the backend, and the lemmas of the prover.
    Backend,
    /// The claims that nir's operations commute and associate, as nir's table declares.
    Properties,
    /// The original proposal of the rules and properties of `iadd64_split`; some are wrong.
    Iadd64Split,
}

impl RuleSet {
    fn statements(self) -> Vec<Statement> {
        match self {
            Self::Backend => tables::all(),
            Self::Properties => properties::all(),
            Self::Iadd64Split => proposal::all(),
        }
    }
}

/// The planted rules by their names.
fn planted_rules() -> impl TypedValueParser<Value = &'static Rule> {
    PossibleValuesParser::new(planted::RULES.iter().map(|rule| rule.name))
        .try_map(|name| planted::by_name(&name).ok_or("found no such rule"))
}

/// A rule at one width, as JSON.
#[derive(Serialize)]
struct RuleRow {
    table: &'static str,
    rule: String,
    width: Option<u8>,
    verdict: &'static str,
    /// The method of the proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Operands for which the sides differ, and the sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    counterexample: Option<Counterexample>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    milliseconds: f64,
}

#[derive(Serialize)]
struct Counterexample {
    operands: Vec<u64>,
    left: u64,
    right: u64,
}

/// The number of rules with each verdict.
#[derive(Serialize, Default)]
struct RuleCounts {
    proved: usize,
    refuted: usize,
    unknown: usize,
    /// Properties of floats that hold only up to rounding, and are not checked.
    inexact: usize,
}

impl Rules {
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        if let Some(why) = Z3::LEFT_OUT {
            return Err(format!("`rules` needs a solver: {why}").into());
        }
        let floats = if self.exact_floats { Floats::Exact } else { Floats::Uninterpreted };
        let budget = Budget { rlimit: u64::MAX, time: self.timeout };
        let z3 = Z3 { floats };
        if let Some(folder) = &self.html {
            exit::try_folder(folder)?;
        }
        let mut unwritten = false;
        let summary = match &self.emit_smt {
            None => self.rows(format, &mut { z3 }, &budget)?,
            Some(folder) => {
                exit::try_folder(folder)?;
                let queries = QueryFolder::new(folder).map_err(|error| Unwritten::new(folder, error))?;
                let mut recording = Recording::new(z3, &queries, floats);
                let summary = self.rows(format, &mut recording, &budget)?;
                match queries.failure() {
                    Some(why) => {
                        output::problem(&format!("queries cannot be written to {why}"));
                        unwritten = true;
                    }
                    None => output::note(&format!("{} queries are in {}", recording.written(), folder.display())),
                }
                summary
            }
        };
        let RuleCounts { proved, refuted, unknown, inexact } = summary;
        match format {
            Format::Json => output::json("rules", &summary),
            Format::Junit => {}
            Format::Human => {
                let inexact = if inexact > 0 { format!(", {inexact} inexact") } else { String::new() };
                output::line(&format!("{proved} proved, {refuted} refuted, {unknown} unknown{inexact}"));
            }
        }
        let exits = [Exit::Unmet.when(unknown > 0), Exit::Unwritten.when(unwritten), Exit::Refuted.when(refuted > 0)];
        Ok(exits.into_iter().max().unwrap_or(Exit::Passed))
    }

    /// Prints a row for each rule, and writes the pages of those that are refuted.
    fn rows(&self, format: Format, solver: &mut dyn Solver, budget: &Budget) -> Result<RuleCounts, Failure> {
        let mut pages = self.html.as_deref().map(page::PageFolder::create).transpose()?;
        if format == Format::Human {
            output::line(&format!("{:18}  {:32}  {:>5}  {:>9}  verdict", "table", "rule", "width", "ms"));
        }
        let mut summary = RuleCounts::default();
        for lemma in lemmas::ALL.iter().filter(|_| !self.no_lemmas && self.set == RuleSet::Backend) {
            let start = Instant::now();
            let proved = lemma.is_proved();
            let name = format!("{}: {}", lemma.name, lemma.statement);
            let unknown = ClaimVerdict::Unknown("its proof does not go through".into());
            let mut row = RuleRow::new("lemmas", name, Some(lemma.width as u8), unknown, start);
            if proved {
                row = RuleRow { verdict: "proved", by: Some(lemma.by.into()), reason: None, ..row };
            }
            print(format, &mut summary, row);
        }
        let planted = self.plant.map(|rule| tables::statement(planted::TABLE, rule));
        for statement in self.set.statements().into_iter().chain(planted) {
            if interrupt::is_set() {
                break;
            }
            let start = Instant::now();
            let verdict = statement.verdict(solver, budget);
            if let (ClaimVerdict::Refuted { .. }, Ok(claim), Some(pages)) = (&verdict, &statement.claim, &mut pages) {
                pages.add_rule(claim, &verdict, &self.command())?;
            }
            let width = statement.claim.as_ref().ok().map(|claim| claim.width);
            print(format, &mut summary, RuleRow::new(statement.table, statement.rule, width, verdict, start));
        }
        Ok(summary)
    }

    /// The command that refutes the same rules again.
    fn command(&self) -> String {
        let plant = self.plant.map(|rule| format!(" --plant {}", rule.name)).unwrap_or_default();
        let set = match self.set {
            RuleSet::Backend => "--no-lemmas",
            RuleSet::Properties => "--set properties",
            RuleSet::Iadd64Split => "--set iadd64-split",
        };
        format!("ir3-equiv rules {set}{}{plant}", if self.exact_floats { " --exact-floats" } else { "" })
    }
}

impl std::fmt::Display for Counterexample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operands, left, right } = self;
        let operands: Vec<_> = operands.iter().map(|operand| format!("{operand:#x}")).collect();
        write!(f, "for {}: {left:#x}, not {right:#x}", operands.join(", "))
    }
}

impl RuleRow {
    fn new(table: &'static str, rule: String, width: Option<u8>, verdict: ClaimVerdict, start: Instant) -> Self {
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let row =
            RuleRow { table, rule, width, verdict: "", by: None, counterexample: None, reason: None, milliseconds };
        match verdict {
            ClaimVerdict::Proved(how) => RuleRow { verdict: "proved", by: Some(how.to_string()), ..row },
            ClaimVerdict::Refuted { operands, left, right } => {
                RuleRow { verdict: "refuted", counterexample: Some(Counterexample { operands, left, right }), ..row }
            }
            ClaimVerdict::IllTyped(reason) => RuleRow { verdict: "refuted", reason: Some(reason), ..row },
            ClaimVerdict::Inexact => {
                RuleRow { verdict: "inexact", reason: Some("holds but for rounding".to_owned()), ..row }
            }
            ClaimVerdict::Unknown(reason) => RuleRow { verdict: "unknown", reason: Some(reason), ..row },
        }
    }
}

fn print(format: Format, summary: &mut RuleCounts, row: RuleRow) {
    match row.verdict {
        "proved" => summary.proved += 1,
        "refuted" => summary.refuted += 1,
        "inexact" => summary.inexact += 1,
        _ => summary.unknown += 1,
    }
    if format == Format::Json {
        return output::json("rule", &row);
    }
    if format == Format::Junit {
        return junit::check(&Check {
            program: row.table.to_owned(),
            gpu: "all GPUs".to_owned(),
            stage: row.rule,
            engine: "rules",
            verdict: row.verdict,
            lanes: 0,
            seconds: row.milliseconds / 1e3,
            reason: row.counterexample.map(|it| it.to_string()).or(row.reason),
            sensitivity: None,
        });
    }
    let width = row.width.map(|width| width.to_string()).unwrap_or_default();
    let rest = match (&row.by, &row.counterexample, &row.reason) {
        (Some(by), ..) => format!("by {by}"),
        (_, Some(counterexample), _) => counterexample.to_string(),
        (.., reason) => reason.clone().unwrap_or_default(),
    };
    output::line(&format!(
        "{:18}  {:32}  {:>5}  {:9.2}  {} {}",
        row.table, row.rule, width, row.milliseconds, row.verdict, rest
    ));
}
