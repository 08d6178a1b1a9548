//! Spilling without parts: a merge set is spilled in its whole life and with all components, or not at all.
//!
//! The non-partial spilling of the series (document 002): registers are counted, a value that is live at the highest
//! pressure is spilled [everywhere], and registers are counted again. The unit of spilling is the merge set with the
//! longest live ranges for the cost of its stores and loads, one in an iteration at first, then two, and so on. If no
//! candidate remains and the program does not fit, every value is in memory except where an instruction reads or writes
//! it.
//!
//! [everywhere]: super::spill_everywhere

use super::spill_everywhere::Spiller;
use super::{fits, neediest};
use crate::features::{Feature, Features};
use crate::ir3::{Program, Value};
use crate::regalloc::pressure::Analysis;
use crate::regalloc::{Analysed, Coalescing, Error, RegisterLimit, unsplit};
use crate::target::{RegisterFiles, Target};
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;

/// One more merge set is spilled in an iteration after this many iterations.
const ROUNDS: usize = 8;

/// Spills until the program fits into the files. `now_fits` is true if it fits without spilling.
///
/// # Errors
/// If the program does not fit even with all values spilled.
pub fn run(
    program: &mut Program,
    target: &Target,
    limit: RegisterLimit,
    features: Features,
    now_fits: &dyn Fn(&RegisterFiles) -> bool,
) -> Result<(), Error> {
    let spiller = Spiller::new(program)?;
    let mut files = limit.files(target);
    if matches!(limit, RegisterLimit::Minimum(_)) {
        let mut least = spiller.all_spilled(target.merged_regs);
        let minimum = Analysed::new(&mut least, target, Coalescing::of(features))?.pressure;
        files = super::minimum_files(&minimum, target, limit);
        if now_fits(&files) {
            return Ok(());
        }
    }
    let mut chosen: SecondaryMap<Value, bool> = SecondaryMap::new();
    for round in 0.. {
        let mut spilled = spiller.spilled(&chosen);
        let analysis = Analysis::coalesced(&mut spilled, target, Coalescing::of(features))?;
        let is_done = fits(&analysis.max_pressure(&spilled), &files)
            && (features.contains(Feature::LiveRangeSplitting) || unsplit::fits(&spilled, target, limit, features)?);
        if is_done {
            *program = spilled;
            return Ok(());
        }
        let sets = best_sets(&spilled, &analysis, &spiller, &chosen, &files, 1 + round / ROUNDS);
        if sets.is_empty() {
            break;
        }
        sets.into_iter().flatten().for_each(|value| chosen[value] = true);
    }
    *program = spiller.all_spilled(target.merged_regs);
    match neediest(program, target, &files, Coalescing::of(features))? {
        Some(error) => Err(error),
        None => super::unsplit_or_error(program, target, limit, features),
    }
}

/// The values of the `count` best merge sets that are live where most registers are needed.
fn best_sets(
    program: &Program,
    analysis: &Analysis,
    spiller: &Spiller,
    chosen: &SecondaryMap<Value, bool>,
    files: &RegisterFiles,
    count: usize,
) -> Vec<Vec<Value>> {
    let mut worst: Option<(i64, Vec<Value>)> = None;
    analysis.walk(program, |_, forest, now| {
        // Less than 0 where live ranges are not split and only gaps are missing.
        let excess = (i64::from(now.full) - i64::from(files.full)).max(i64::from(now.half) - i64::from(files.half));
        if worst.as_ref().is_none_or(|&(most, _)| excess > most) {
            worst = Some((excess, forest.live().to_vec()));
        }
    });
    // The values of the scalarised program keep their numbers. A reload is new.
    let is_candidate =
        |value: Value| value.index() < spiller.value_count() && !chosen[value] && spiller.cost(value) > 0.0;
    let mut live: Vec<usize> =
        worst.into_iter().flat_map(|(_, live)| live).map(|value| analysis.sets.set_of(value)).collect();
    live.sort_unstable();
    live.dedup();
    let mut sets: FxHashMap<usize, Vec<Value>> = FxHashMap::default();
    for value in program.values.keys().filter(|&value| analysis.liveness.units(value) != 0 && is_candidate(value)) {
        let set = analysis.sets.set_of(value);
        if live.binary_search(&set).is_ok() {
            sets.entry(set).or_default().push(value);
        }
    }
    let rate = |values: &[Value]| {
        let points = |value: Value| {
            let points: u32 = analysis.liveness.segments(value).iter().map(|segment| segment.end - segment.start).sum();
            points as f32 * f32::from(analysis.liveness.units(value))
        };
        let (points, cost) = values.iter().fold((0.0, 0.0), |(points_so_far, cost), &value| {
            (points_so_far + points(value), cost + spiller.cost(value))
        });
        points / cost
    };
    let mut rated: Vec<(f32, Vec<Value>)> = sets.into_values().map(|values| (rate(&values), values)).collect();
    rated.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rated.truncate(count);
    rated.into_iter().map(|(_, values)| values).collect()
}
