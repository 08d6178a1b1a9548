//! Coverage of the programs of a campaign, and selection of programs with rare coverage cells.
//!
//! [`Coverage`] has the cells of a campaign: the checker of each thread counts those of its programs, which are added
//! up when it ends. Nothing is counted unless this is enabled. [`Director`] selects programs: of several candidates for
//! a program number it takes the one with the rarest cells. Generating a program is much cheaper than compiling and
//! running it, so the selection costs little.

use super::fuzzing::{Campaign, in_turn};
use crate::check::Covered;
use ir3_compiler::target::Target;
use ir3_programs::coverage::table::Table;
use ir3_programs::coverage::{Cell, Seen, of_shader};
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::seeds::program_seed;
use std::sync::{Mutex, PoisonError};

/// The set of cells seen so far, to recognise programs with a new cell.
#[derive(Debug)]
pub struct Known(Seen);

impl Known {
    /// Creates the set of the cells of a corpus.
    pub fn new(seen: Seen) -> Self {
        Self(seen)
    }

    /// Adds the cells that a checker has counted. Returns true if one of them is new.
    pub fn learns(&mut self, covered: &Covered) -> bool {
        let new: Vec<Cell> = covered.seen.cells().filter(|&cell| self.0.of(cell) == 0).collect();
        new.iter().for_each(|&cell| self.0.add(cell));
        !new.is_empty()
    }
}

/// The counts of a campaign: those of the checkers of its threads.
#[derive(Debug, Default)]
pub struct Coverage(Mutex<Covered>);

impl Coverage {
    /// Adds the counts of a checker.
    pub fn add(&self, covered: &Covered) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.seen.merge(&covered.seen);
        sum.programs += covered.programs;
    }

    /// The counts so far of threads that have ended, as a table for the GPUs of the programs.
    pub fn table(&self, targets: &[Target]) -> Table {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Table::of(targets, sum.programs, &sum.seen)
    }

    /// The counts so far of threads that have ended.
    pub fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen.clone()
    }
}

/// The number of programs between two updates of the weights.
const BATCH: u64 = 64;
/// The maximum number of candidates for a program number.
const CANDIDATES: u64 = 8;
/// The fixed cost of a program, in instructions, in addition to its size.
const EVERY_PROGRAM: u64 = 200;
/// A cell that was seen in this many programs is not rare.
const ENOUGH: u64 = 8;

/// Selects the programs of a campaign. The program of a number depends only on the seed of the campaign and on the
/// batches before, not on threads or machines: each process that requests a number selects the programs of all earlier
/// batches.
#[derive(Debug)]
pub struct Director {
    seed: u64,
    targets: Vec<Target>,
    profiles: Vec<Profile>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For each cell, the number of selected programs that have it.
    programs: Seen,
    /// The seeds of the selected programs, by their numbers from 0 on.
    chosen: Vec<u64>,
    /// The number of candidates for each program of the next batch.
    candidates: u64,
}

impl Director {
    /// Creates the director of a campaign. No program is selected yet.
    pub fn of(campaign: &Campaign) -> Self {
        let state = State { candidates: CANDIDATES, ..State::default() };
        let (targets, profiles) = (campaign.targets.clone(), campaign.profiles.clone());
        Self { seed: campaign.seed, targets, profiles, state: Mutex::new(state) }
    }

    /// The generator's seed for the program with a number. Selects all batches up to that one.
    pub fn seed(&self, number: u64) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.chosen.len() as u64 <= number {
            self.batch(&mut state);
        }
        state.chosen[number as usize]
    }

    /// Selects the programs of the next batch.
    fn batch(&self, state: &mut State) {
        let first = state.chosen.len() as u64;
        let mut found: Vec<Vec<Cell>> = Vec::new();
        let mut gained = 0;
        for number in first..first + BATCH {
            let (target, profile) = in_turn(&self.targets, &self.profiles, number);
            let features = Features::of(&target);
            let mut best: Option<(u64, u64, Vec<Cell>)> = None;
            for candidate in 0..state.candidates {
                let seed = program_seed(self.seed, number);
                let seed = if candidate == 0 { seed } else { program_seed(seed ^ 0x6361_6e64, candidate) };
                let shader = generator::from_seed(seed, profile, features).shader;
                let mut cells = Vec::new();
                of_shader(&shader, |cell| cells.push(cell));
                cells.sort_unstable();
                cells.dedup();
                let weights = cells.iter().map(|&cell| weight(state.programs.of(cell))).sum::<u64>();
                // A large program costs more time than a small one: weight by size.
                let rarity = 256 * weights / (shader.instruction_count() as u64 + EVERY_PROGRAM);
                if best.as_ref().is_none_or(|(most, ..)| rarity > *most) {
                    gained += u64::from(candidate > 0);
                    best = Some((rarity, seed, cells));
                }
            }
            let (_, seed, cells) = best.expect("a candidate");
            state.chosen.push(seed);
            found.push(cells);
        }
        found.iter().flatten().for_each(|&cell| state.programs.add(cell));
        // When hardly any candidate is better than the first one, try fewer.
        if gained == 0 {
            state.candidates = (state.candidates / 2).max(1);
        }
    }
}

/// The weight of a cell that `programs` programs have.
fn weight(programs: u64) -> u64 {
    if programs >= ENOUGH { 0 } else { 1 << (2 * (ENOUGH - programs)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::coverage::{Family, impossible};
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn campaign(jobs: usize, directed: bool) -> Campaign {
        let coverage = Some(Arc::new(Coverage::default()));
        let campaign = Campaign { programs: Some(60), jobs, keep_going: true, coverage, ..Campaign::default() };
        let director = directed.then(|| Arc::new(Director::of(&campaign)));
        Campaign { director, ..campaign }
    }

    fn seen(campaign: &Campaign) -> Seen {
        campaign.run(&AtomicBool::new(false), &mut |_| (), &mut |_| ());
        campaign.coverage.as_ref().expect("it counts").seen()
    }

    #[test]
    fn counts_do_not_depend_on_threads() {
        let one = seen(&campaign(1, true));
        assert_eq!(one, seen(&campaign(3, true)));
        for family in Family::ALL {
            assert!(family.cells().any(|(cell, _)| one.of(cell) > 0), "{family:?}");
        }
    }

    /// Programs that are chosen have more cells than those that are not.
    #[test]
    fn chosen_programs_have_more() {
        let cells = |directed: bool| {
            let campaign = Campaign { profiles: vec![Profile::Operations], ..campaign(1, false) };
            let director = Director::of(&campaign);
            let mut seen = Seen::default();
            for number in 0..256 {
                let seed = if directed { director.seed(number) } else { program_seed(campaign.seed, number) };
                let shader = generator::from_seed(seed, Profile::Operations, Features::of(&campaign.targets[0])).shader;
                of_shader(&shader, |cell| seen.add(cell));
            }
            let families = [Family::Alu, Family::Intrinsics, Family::Textures];
            families.iter().flat_map(|family| family.cells()).filter(|(cell, _)| seen.of(*cell) > 0).count()
        };
        let (without, with) = (cells(false), cells(true));
        assert!(with > without, "{with} cells, {without} without a choice");
    }

    /// The least shares of 300 programs of one GPU, in percent.
    const FLOORS: [(Family, f64); 4] =
        [(Family::Control, 95.0), (Family::Ssa, 86.0), (Family::Final, 85.0), (Family::Arms, 90.0)];

    /// No program has a cell that a rule calls impossible, each rule covers a cell of some GPU, and most other cells
    /// are filled.
    #[test]
    fn rules_cover_cells_that_no_program_has() {
        let mut reasons = BTreeSet::new();
        for (gpu, programs) in [("a306", 60), ("a540", 60), ("a630", 60), ("a660", 300), ("a750", 60)] {
            let targets = vec![Target::by_name(gpu).expect("a GPU")];
            let campaign = Campaign { programs: Some(programs), targets, ..campaign(1, true) };
            campaign.run(&AtomicBool::new(false), &mut |_| (), &mut |_| ());
            let table = campaign.coverage.as_ref().expect("it counts").table(&campaign.targets);
            for row in table.rows() {
                assert!(row.wrong.is_empty(), "{gpu}: rules call these impossible: {:#?}", row.wrong);
                if let Some((_, floor)) =
                    FLOORS.iter().find(|(family, _)| programs == 300 && family.name() == row.family)
                {
                    let share = 100.0 * row.share();
                    println!("{gpu}: {share:.1} % of {}", row.family);
                    assert!(share >= *floor, "{gpu}: {share:.1} % of {}", row.family);
                }
                reasons.extend(row.reasons.into_keys());
            }
        }
        let idle: Vec<&str> = impossible::reasons().filter(|reason| !reasons.contains(*reason)).collect();
        assert!(idle.is_empty(), "rules without a cell: {idle:#?}");
    }
}
