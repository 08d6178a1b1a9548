//! One page to look at: a failure as a self-contained HTML file.
//!
//! The first screen shows the failure, its stage, GPU and input, and the first observable that differs. Below are both
//! programs side by side (`sides`), the control-flow graph (`cfg`), the run of the lane with the difference, and live
//! ranges in registers (`ranges`, `chart`). A refuted rewrite rule has a page too (`rule`). The page needs no other
//! file and no script: its one script scrolls graphs to the block that differs. All text is escaped by the templates
//! ([`maud`]).

mod cfg;
mod chart;
mod device;
mod document;
mod folder;
mod layout;
mod listing;
mod pair;
mod ranges;
mod rule;
mod run;
mod sides;
mod trace;

pub use device::of_device;
pub use folder::{PageError, PageFolder, PairPage};
pub use pair::of_pair;
pub use rule::of_rule;

use crate::bundle::{expected_and_actual, options_in_words, origin_in_words, see_again, title};
use crate::difference::FirstDifference;
use document::{document, inline};
use ir3_compiler::compilation::Compilation;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Options, Stage};
use ir3_harness::case::{Case, Evidence};
use ir3_harness::check::{hook_of, plant_of};
use ir3_harness::reduce::Failure;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_prove::registers::{self, Mismatch, RegisterFailure};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::panics::catch;
use listing::Listing;
use maud::{Markup, html};
use ranges::{Bar, SsaNames};
use run::LaneRun;
use sides::RowChange;

/// Returns the page of a failure: runs the case once more, and shows the run. `source` is the path of its bundle.
pub fn of_case(case: &Case, source: &str) -> String {
    FailurePage::new(case).render(source).into_string()
}

/// All that the page shows.
struct FailurePage<'a> {
    case: &'a Case,
    evidence: Evidence,
    first: Option<FirstDifference>,
    before: Option<Snapshot>,
    after: Option<Snapshot>,
    run: LaneRun,
    /// The register checker's result, for two ir3 programs of a stage that only moves values.
    registers: Option<Result<(), RegisterFailure>>,
    /// Its failure, with the names of blocks and values as the texts have them.
    failure: Option<String>,
}

impl<'a> FailurePage<'a> {
    fn new(case: &'a Case) -> Self {
        let evidence = Evidence::of(case);
        let (mut before, mut after) = (evidence.before.clone(), evidence.after.clone());
        let stage = case.symptom.stage;
        if evidence.symptom.is_none() && !matches!(case.symptom.failure, Failure::Stopped(_)) {
            // It does not fail any more: the programs as the stage has them now.
            before = snapshot(case, |compilation| compilation.run_until(stage).is_ok());
            after = snapshot(case, |compilation| {
                compilation.run_until(stage).is_ok() && matches!(compilation.step(), Some(Ok(_)))
            });
        }
        let first = FirstDifference::of(case, &evidence);
        let run = first.as_ref().map(LaneRun::new).unwrap_or_default();
        let registers = match (&before, &after) {
            (Some(Snapshot::Ir3(before)), Some(Snapshot::Ir3(after))) if stage.moves_values() => {
                catch(|| registers::prove(before, after, &case.target).map(|_| ())).ok()
            }
            _ => None,
        };
        let failure = match (&registers, &before, &after) {
            (Some(Err(failure)), Some(Snapshot::Ir3(before)), Some(after)) => {
                Some(in_text(&SsaNames::new(before).in_text(&failure.to_string()), &Listing::new(after)))
            }
            _ => None,
        };
        Self { case, evidence, first, before, after, run, registers, failure }
    }

    fn render(&self, source: &str) -> Markup {
        let listings = [&self.before, &self.after].map(|program| program.as_ref().map(Listing::new));
        let rows = match &listings {
            [Some(before), Some(after)] => sides::align(before, after, &self.run),
            _ => Vec::new(),
        };
        let charts = self.charts(&listings);
        let stage = self.case.symptom.stage;
        let has_trace = self.first.is_some();
        let body = html! {
            header { (self.first_screen(source)) }
            nav aria-label="Parts of this page" {
                a href="#programs" { @if self.after.is_some() { "Before and after" } @else { "Program" } }
                a href="#control-flow" { "Control flow" }
                @if has_trace { a href="#values" { "Values" } }
                @if !charts.is_empty() { a href="#registers" { "Registers" } }
                a href="#checks" { "Checks" }
                a href="#input" { "Input and origin" }
            }
            main {
                section id="programs" {
                    @match &listings {
                        [Some(before), Some(after)] => {
                            h2 { "Before and after " code { (stage) } }
                            (sides::render(before, after, &self.run, &rows, stage.name()))
                        }
                        [Some(before), None] => {
                            h2 { "The program before " code { (stage) } }
                            p.note { "There is no program after the stage." }
                            (whole(before))
                        }
                        _ => {
                            h2 { "The program" }
                            p.note { "The stage was not reached." }
                        }
                    }
                }
                section id="control-flow" {
                    h2 { "Control flow" }
                    (self.graphs(&listings, &rows))
                }
                @if let Some(difference) = &self.first {
                    section id="values" {
                        h2 { "Values of lane " (difference.lane) }
                        (trace::render(difference))
                    }
                }
                @if !charts.is_empty() {
                    section id="registers" {
                        h2 { "Live ranges in registers" }
                        @if let Some(failure) = &self.failure {
                            p { "The register checker: " strong { (failure) } "." }
                        }
                        @for (side, chart) in &charts {
                            h3 { (side) }
                            (chart)
                        }
                        p.note {
                            "A bar is a value in a register, from the instruction that writes it to the last that may read it; a "
                            "dashed frame is a value that should still be there, a ring a use that reads another one. "
                            "Names are those of the program before registers were assigned."
                        }
                    }
                }
                section id="checks" { h2 { "Checks" } (self.checks()) }
                section id="input" { h2 { "Input and origin" } (self.origin()) }
            }
        };
        document(&title(self.case), body)
    }

    fn first_screen(&self, source: &str) -> Markup {
        let case = self.case;
        let stage = case.symptom.stage;
        let difference = self.evidence.difference.as_ref();
        let lane = self.first.as_ref().map(|first| first.lane);
        let words = difference.map(|difference| expected_and_actual(difference, lane)).unwrap_or_default();
        let word = |name: &str| words.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str());
        let instructions = self.first.as_ref().and_then(|first| first.instructions());
        let kind = match case.symptom.failure {
            Failure::Refuted { .. } => "refuted: the stage changes the meaning of the program",
            Failure::Refused { .. } => "refused: the compiler rejects a valid program",
            Failure::Unsupported { .. } => "not checked: the interpreter cannot run the program",
            Failure::Panic { .. } => "crash: the compiler panics",
            Failure::Stopped(_) => "stopped: the compiler does not terminate, or runs out of memory",
        };
        html! {
            p.kind { "ir3-equiv " (env!("CARGO_PKG_VERSION")) " · " b { (kind) } }
            h1 { (title(case)) }
            @if let Some(plant) = case.plant {
                p.plant { "This is the planted bug " code { (plant.name) } ": " (inline(plant.description)) ". It shows that such a bug is found." }
            }
            @match self.evidence.symptom.as_ref() {
                None => {
                    p.warning { "It did not fail when it was run again for this page. Its bundle records: " (case.symptom.failure) ": " (case.symptom.message) }
                }
                Some(now) if now.failure != case.symptom.failure => {
                    p.warning { "It failed in another way when it was run again for this page: " (now.failure) ". Its bundle records: " (case.symptom.failure) "." }
                }
                Some(_) => {}
            }
            dl.facts {
                div { dt { "Stage" } dd { (stage) } }
                div { dt { "GPU" } dd { (case.target.name) } }
                @if let Some(place) = word("where") { div { dt { "First observable that differs" } dd { (inline(place)) } } }
                div { dt { "Input" } dd { (input_in_words(case.env.as_ref())) } }
                div { dt { "Size" } dd { (case.program.instruction_count()) " instructions of nir" @if let Some(original) = &case.original { small { ", reduced from " (original.program.instruction_count()) } } } }
            }
            @if difference.is_some() {
                div.pair {
                    @for (name, class, side) in [("expected", "expected", 0), ("actual", "actual", 1)] {
                        div class=(class) {
                            h3 { @if side == 0 { "Expected, as before " } @else { "Actual, after " } (stage) }
                            p.value { (inline(word(name).unwrap_or("—"))) }
                            @if let Some(lines) = &instructions {
                                p.at { "first difference" code { (lines[side].as_deref().unwrap_or("no such instruction")) } }
                            }
                        }
                    }
                }
            } @else {
                p.message.mono { (case.symptom.message) @if let Some(place) = &self.evidence.panic { "\nat " (place) } }
            }
            @if let Some(failure) = &self.failure {
                p { "The register checker: " strong { (failure) } "." }
            }
            (self.stages())
            @if let Some(command) = see_again(self.case, &self.evidence, source) {
                p.note { "See it again:" }
                div.command.mono { (command) }
            }
        }
    }

    /// The stages in their order, with their verdicts.
    fn stages(&self) -> Markup {
        let failing = self.evidence.symptom.as_ref().map(|symptom| symptom.stage);
        let state = |stage: Stage| {
            let verdict = self.evidence.verdicts.iter().find(|verdict| verdict.stage == stage.name());
            match verdict {
                _ if failing == Some(stage) => ("failed", "fails"),
                Some(verdict) if matches!(&*verdict.verdict, "tested" | "proved") => ("passed", "passes"),
                Some(_) => ("", "unknown"),
                None => ("", "not run"),
            }
        };
        let backend = self.case.target.backend;
        html! {
            ul.stages aria-label="Stages of the compiler" {
                @for stage in Stage::NIR.into_iter().chain(Stage::VEC4).chain(Stage::ALL).filter(|stage| stage.is_of(backend)) {
                    @let (class, word) = state(stage);
                    li class=(class) title=(word) { (stage) }
                }
            }
        }
    }

    fn graphs(&self, listings: &[Option<Listing>; 2], rows: &[sides::SideRow]) -> Markup {
        let is_change = |change: RowChange| matches!(change, RowChange::Changed | RowChange::Unpaired);
        let changed = |side: usize, listing: &Listing| {
            let mut lines = vec![false; listing.lines.len()];
            for row in rows.iter().filter(|row| is_change(row.change)) {
                if let Some(line) = if side == 0 { row.before } else { row.after } {
                    lines[line] = true;
                }
            }
            lines
        };
        html! {
            p.legend {
                @if self.first.is_some() { "Solid frames: blocks that the traced lane executes. " }
                "Dashed arrows: loops. "
                @if self.after.is_some() { span.key.changed { "changed" } " " }
                @if self.first.is_some() { span.key.wrong { "first difference" } }
            }
            div.graphs {
                @for (side, listing) in listings.iter().enumerate() {
                    @if let Some(listing) = listing {
                        @let name = ["before", "after"][side];
                        figure {
                            figcaption { (name) }
                            (cfg::render(listing, &self.run.sides[side], &changed(side, listing), name))
                        }
                    }
                }
            }
        }
    }

    /// The charts of the programs with registers, the one after the stage first.
    fn charts(&self, listings: &[Option<Listing>; 2]) -> Vec<(&'static str, Markup)> {
        let has_registers = [Stage::Predicates, Stage::SharedRegisters].contains(&self.case.symptom.stage)
            || self.case.symptom.stage >= Stage::RegisterAllocation;
        if !has_registers {
            return Vec::new();
        }
        let names = snapshot(self.case, |compilation| {
            let stage = self.case.symptom.stage.min(Stage::RegisterAllocation);
            compilation.run_until(stage).is_ok()
        });
        let sides = [(1, &self.after), (0, &self.before)];
        // Before allocation there is little to be seen.
        let drawn = if self.case.symptom.stage > Stage::RegisterAllocation { &sides[..] } else { &sides[..1] };
        let draw = |&(side, program): &(usize, &Option<Snapshot>)| {
            let (Some(Snapshot::Ir3(program)), Some(listing)) = (program, &listings[side]) else { return None };
            let own = || Snapshot::Ir3(program.clone());
            let names = names.clone().filter(|names| names.as_ir3().is_some()).unwrap_or_else(own);
            let ssa = SsaNames::new(names.as_ir3()?);
            let bars: Vec<Bar> = ranges::bars(program, &ssa, &self.case.target);
            let wrong = match &self.registers {
                Some(Err(RegisterFailure::Contents(mismatch))) if side == 1 => self.wrong_use(mismatch, listing, &ssa),
                _ => None,
            };
            let chart = chart::render(listing, &bars, &self.run.sides[side], wrong.as_ref())?;
            Some((["Before", "After"][side], chart))
        };
        drawn.iter().filter_map(draw).collect()
    }

    /// The place in the chart of a use that reads a wrong value.
    fn wrong_use(&self, mismatch: &Mismatch, listing: &Listing, ssa: &SsaNames) -> Option<chart::WrongUse> {
        let program = self.after.as_ref()?.as_ir3()?;
        let (at, name) = mismatch.site.instr?;
        let block = *program.layout.get(mismatch.site.block)?;
        let instr = *program.blocks[block].instrs.get(at)?;
        let data = &program.instrs[instr];
        let units = ranges::reads(program, data, mismatch.slot, self.case.target.merged_regs);
        let row = listing.blocks.get(mismatch.site.block)?.lines.start + at;
        // The checker may have put the instructions of a block into another order.
        (data.opcode.name() == name && !units.is_empty()).then(|| {
            let before = self.before.as_ref().and_then(Snapshot::as_ir3);
            let expected = before.map_or_else(String::new, |before| SsaNames::new(before).in_text(&mismatch.expected));
            let expected = ranges::base(expected.trim());
            let expected = ranges::base(ssa.content(expected.split(' ').next().unwrap_or_default())).to_owned();
            chart::WrongUse { row, units, expected }
        })
    }

    fn checks(&self) -> Markup {
        html! {
            table.plain {
                thead { tr { th { "stage" } th { "engine" } th { "verdict" } th { "reason" } } }
                tbody {
                    @for verdict in &self.evidence.verdicts {
                        tr class=(verdict.verdict) {
                            td { (verdict.stage) }
                            td { (verdict.engine) }
                            td { (verdict.verdict) @if verdict.lanes > 0 { " (" (verdict.lanes) @if verdict.lanes == 1 { " lane)" } @else { " lanes)" } } }
                            td { (verdict.reason.as_deref().unwrap_or_default()) }
                        }
                    }
                    @if let Some(registers) = &self.registers {
                        tr class=(if registers.is_ok() { "proved" } else { "unknown" }) {
                            td { (self.case.symptom.stage) }
                            td { "registers" }
                            td { @if registers.is_ok() { "proved" } @else { "not shown" } }
                            td { (self.failure.as_deref().unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }

    fn origin(&self) -> Markup {
        let Case { program, target, options, env, origin, minimal, original, .. } = self.case;
        html! {
            dl.facts {
                div { dt { "From" } dd { (inline(&origin_in_words(origin, target))) } }
                div { dt { "Options" } dd { (inline(&options_in_words(options))) } }
                @if original.is_some() { div { dt { "Reduced" } dd { @if *minimal { "as small as it gets" } @else { "not to its end" } } } }
            }
            @if let Some(env) = env {
                h3 { "env.json" }
                pre { (env.to_json()) }
            }
            details {
                summary { "program.nir, " (program.instruction_count()) " instructions" }
                pre { (nir::text::write(program)) }
            }
        }
    }
}

/// The program of a case after part of its compilation; `None` if that fails.
fn snapshot(case: &Case, run: impl FnOnce(&mut Compilation<'_, '_>) -> bool) -> Option<Snapshot> {
    let run = || {
        let mut change = case.plant.map(PlantedBug::change);
        let mut hook = hook_of(plant_of(&mut change), None);
        let options = Options { last: Stage::LAST, ..case.options };
        let mut compilation = Compilation::new(&case.program, &case.target, &options).with_hook(Some(&mut hook));
        run(&mut compilation).then(|| Snapshot::from(compilation.program()))
    };
    catch(run).ok().flatten()
}

/// Replaces the numbers of blocks in a message of the register checker by their names.
fn in_text(message: &str, listing: &Listing) -> String {
    let named = |text: String, (number, block): (usize, &listing::ListedBlock)| {
        text.replace(&format!("block {number}, "), &format!("{}, ", block.name))
    };
    listing.blocks.iter().enumerate().fold(message.to_owned(), named)
}

/// A program without a second one to compare.
fn whole(listing: &Listing) -> Markup {
    html! {
        div.sides {
            table.code {
                @for block in &listing.blocks {
                    tr.head { th id=(format!("before-{}", block.name)) { (block.name) } }
                    @for line in &listing.lines[block.lines.clone()] {
                        tr.same { td.a { code { (line.text) } } }
                    }
                }
            }
        }
    }
}

/// A summary of an environment.
fn input_in_words(env: Option<&Env>) -> String {
    let Some(env) = env else { return "none: it does not depend on the input".to_owned() };
    let lanes = env.lanes.map_or(64, u64::count_ones);
    let lanes = if lanes == 1 { "1 lane".to_owned() } else { format!("{lanes} lanes") };
    format!("seed {}, {lanes}", env.seed)
}
