//! `ir3-selftest hazard-mutants`: changes waits of final programs, and prints which changes are refuted.

use crate::{Exit, Failure, Format, Gpu, output, values};
use clap::Args;
use cranelift_entity::EntityRef;
use ir3_compiler::machine::{Code, Ip};
use ir3_harness::finals::{FinalProgram, finals, generated_final, instruction_text};
use ir3_programs::mesa::input;
use ir3_selftest::hazard_mutants::{MutantClass, Mutation, Runs, Trial, trial};
use ir3_semantics::support::random::hash;
use serde::Serialize;
use std::path::PathBuf;

/// The percentage of needed waits whose loss must be refuted.
const LEAST: u64 = 99;

/// Options of `hazard-mutants`.
#[derive(Args)]
pub struct HazardMutants {
    /// Files or folders of final programs: Mesa logs or ir3 texts.
    #[arg(required_unless_present = "generated", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Check generated programs, too, compiled by the project's backend.
    #[arg(long, value_name = "N", value_parser = values::count::<u64>())]
    generated: Option<u64>,
    /// The number of changed programs.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = values::count::<u64>())]
    mutants: u64,
    /// Seed of the changes.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print each change that matters and is not refuted, and each that is refuted though it does not matter.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    gpu: Gpu,
}

/// A row of the table.
#[derive(Clone, Copy, Default, Serialize)]
struct MutantCounts {
    mutants: u64,
    needed: u64,
    /// The needed ones that the checker refutes.
    checker: u64,
    /// The needed ones that the machine refutes.
    machine: u64,
    /// The needed ones that the machine refutes after inverting some comparisons.
    inverted: u64,
    /// The needed ones that the machine refutes with branches chosen by a seed.
    chosen: u64,
    /// The needed ones that either refutes.
    refuted: u64,
    /// Programs that the machine ran.
    ran: u64,
    /// Refuted by the checker, and not needed.
    more: u64,
}

impl MutantCounts {
    fn add(&mut self, trial: &Trial) {
        let one = |condition: bool| u64::from(condition);
        self.mutants += 1;
        self.needed += one(trial.needed);
        self.checker += one(trial.needed && trial.checker);
        self.machine += one(trial.needed && trial.machine == Ok(Runs::Differ));
        self.inverted += one(trial.needed && trial.machine == Ok(Runs::DifferInverted));
        self.chosen += one(trial.needed && trial.machine == Ok(Runs::DifferChosen));
        self.refuted += one(trial.needed && trial.is_refuted());
        self.ran += one(trial.machine.is_ok());
        self.more += one(!trial.needed && trial.checker);
    }
}

/// A row, as JSON.
#[derive(Serialize)]
struct MutantsRow {
    class: &'static str,
    #[serde(flatten)]
    counts: MutantCounts,
}

/// The instructions around a change, and around the target of a branch.
fn around(code: &Code, mutation: &Mutation) -> Vec<String> {
    let near = |at: Ip| at.index().saturating_sub(2)..(at.index() + 4).min(code.instrs.len());
    let target = code.instrs[mutation.at].target.map(near).unwrap_or_default();
    let direction = match (mutation.class, mutation.further) {
        (MutantClass::Target, true) => Some("one further".to_owned()),
        (MutantClass::Target, false) => Some("one less far".to_owned()),
        _ => None,
    };
    let lines = near(mutation.at).chain(target).map(|at| instruction_text(code, Ip::new(at)));
    direction.into_iter().chain(lines).collect()
}

impl HazardMutants {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let mut programs: Vec<FinalProgram> = Vec::new();
        for path in input::collect_paths(&self.paths)? {
            programs.extend(finals(&path, self.gpu.given())?);
        }
        let target = self.gpu.given().unwrap_or_default();
        programs.extend(
            (0..self.generated.unwrap_or(0))
                .filter_map(|number| generated_final(hash(&[self.seed, number, 1]), &target)),
        );
        if programs.is_empty() {
            return Ok(Exit::Nothing);
        }
        let mut classes = [MutantCounts::default(); MutantClass::ALL.len()];
        let mut total = MutantCounts::default();
        // Some programs have no place for the class that is drawn.
        for number in 0..20 * self.mutants {
            if total.mutants == self.mutants {
                break;
            }
            let seed = hash(&[self.seed, number]);
            let program = &programs[hash(&[seed, 0]) as usize % programs.len()];
            let Some(found) = trial(program, seed) else { continue };
            total.add(&found);
            classes[found.mutation.class as usize].add(&found);
            let odd = found.needed && !found.is_refuted() || !found.needed && found.checker;
            if self.list && odd {
                let what = if found.needed { "not refuted" } else { "not needed" };
                let at = instruction_text(&program.code, found.mutation.at);
                let class = found.mutation.class.name();
                let reason = found.machine.err().map(|reason| format!(" (not run: {reason})")).unwrap_or_default();
                output::line(&format!("{}: {class} {what}: {at}{reason}", program.name));
                for line in around(&program.code, &found.mutation) {
                    output::line(&format!("    {line}"));
                }
            }
        }
        if format == Format::Human {
            output::line(
                "class    mutants  needed  checker  machine  inverted  chosen  refuted  missed      ran  not needed",
            );
        }
        let rows = MutantClass::ALL.into_iter().map(|class| (class.name(), classes[class as usize]));
        for (class, counts) in rows.chain([("all", total)]) {
            let MutantCounts { mutants, needed, checker, machine, inverted, chosen, refuted, ran, more } = counts;
            output::line(&format!(
                "{class:<8} {mutants:>7} {needed:>7} {checker:>8} {machine:>8} {inverted:>9} {chosen:>7} {refuted:>8} {:>7} {ran:>8} {more:>11}",
                needed - refuted,
            ));
            output::json("hazard-mutants", &MutantsRow { class, counts });
        }
        let unmet = Exit::Unmet.when(100 * total.refuted < LEAST * total.needed);
        Ok(unmet.max(Exit::Nothing.when(total.mutants == 0)))
    }
}
