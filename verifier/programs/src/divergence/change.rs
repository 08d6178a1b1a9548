//! Changes to a sketch that preserve the behaviour of a single lane, or nearly so.

use super::sketch::{Reg, Sketch, SketchOp, SketchOperand, Terminator, Vote};
use ir3_semantics::support::random::Random;
use smallvec::SmallVec;

/// Changes a sketch; false if there is nothing to change.
type SketchChange = fn(&mut Sketch, &mut Random) -> bool;

/// All changes, with the weight of each.
static CHANGES: [(&str, u32, SketchChange); 13] = [
    ("by a shared register", 3, by_shared),
    ("by the first lane", 1, by_first),
    ("the written value", 2, written_value),
    ("to another block", 1, to_another_block),
    ("within a block", 1, within_a_block),
    ("into blocks before", 2, into_predecessors),
    ("into blocks after", 2, into_successors),
    ("left out", 1, left_out),
    ("another register", 1, another_register),
    ("another result", 1, another_result),
    ("another number", 1, another_number),
    ("blocks in another order", 3, another_order),
    ("votes", 1, votes),
];

/// The number of changes.
pub(super) const COUNT: usize = CHANGES.len();

/// Makes a random change and returns its name.
pub(super) fn random(sketch: &mut Sketch, random: &mut Random) -> Option<&'static str> {
    let all = CHANGES.iter().flat_map(|change| (0..change.1).map(move |_| change));
    let all: SmallVec<[&(&str, u32, SketchChange); 32]> = all.collect();
    (0..20).find_map(|_| {
        let (name, _, change) = all[random.below(all.len())];
        let before = sketch.clone();
        (change(sketch, random) && *sketch != before).then_some(*name)
    })
}

/// Returns a random insertion point.
fn place(sketch: &Sketch, random: &mut Random) -> (usize, usize) {
    let block = random.below(sketch.0.len());
    (block, random.below(sketch.0[block].ops.len() + 1))
}

/// Returns an operation after those that every program begins with.
fn site(sketch: &Sketch, random: &mut Random) -> Option<(usize, usize)> {
    let first = |block: usize| if block == 0 { Sketch::BEGINNING.len() } else { 0 };
    let sites =
        (0..sketch.0.len()).flat_map(|block| (first(block)..sketch.0[block].ops.len()).map(move |i| (block, i)));
    random.pick(&sites.collect::<Vec<_>>())
}

/// Returns an insertion point for an operation across lanes: mostly the beginning of a block with several predecessors.
fn join_point(sketch: &Sketch, random: &mut Random) -> (usize, usize) {
    let joins: Vec<usize> = (1..sketch.0.len()).filter(|&block| sketch.predecessors(block).len() > 1).collect();
    match random.pick(&joins) {
        Some(block) if random.chance(70) => (block, 0),
        _ => place(sketch, random),
    }
}

/// Returns a per-lane register; registers with more writes are more likely.
fn own(sketch: &Sketch, random: &mut Random) -> Reg {
    let ops = sketch.0.iter().flat_map(|part| part.ops.iter().copied());
    let mut written: Vec<Reg> = ops.filter_map(|mut op| op.to().copied()).collect();
    written.retain(|reg| matches!(reg, Reg::Own(_)) && *reg != Reg::ZERO);
    random.pick(&written).unwrap_or(Reg::OWN[0])
}

fn by_shared(sketch: &mut Sketch, random: &mut Random) -> bool {
    by_spare(sketch, random, |own| SketchOp::Move { to: Reg::SPARE, from: SketchOperand::Reg(own) })
}

fn by_first(sketch: &mut Sketch, random: &mut Random) -> bool {
    by_spare(sketch, random, |own| SketchOp::First { to: Reg::SPARE, from: own })
}

/// Moves a register to the spare shared register by `there`, and back.
fn by_spare(sketch: &mut Sketch, random: &mut Random, there: fn(Reg) -> SketchOp) -> bool {
    let own = own(sketch, random);
    let (block, i) = join_point(sketch, random);
    sketch.0[block].ops.splice(i..i, [there(own), SketchOp::Move { to: own, from: SketchOperand::Reg(Reg::SPARE) }]);
    true
}

/// Replaces a read of a shared register by a value that is written to it somewhere.
fn written_value(sketch: &mut Sketch, random: &mut Random) -> bool {
    let ops = || sketch.0.iter().flat_map(|part| part.ops.iter().copied());
    let writes: Vec<(Reg, SketchOperand)> = ops()
        .filter_map(|op| match op {
            SketchOp::Move { to: to @ Reg::Shared(_), from } => Some((to, from)),
            _ => None,
        })
        .collect();
    let Some((shared, written)) = random.pick(&writes) else { return false };
    let is_read =
        |op: &SketchOp| matches!(op, SketchOp::Move { to: Reg::Own(_), from } if *from == SketchOperand::Reg(shared));
    let blocks = sketch.0.iter_mut().flat_map(|part| part.ops.iter_mut());
    let mut reads: Vec<&mut SketchOp> = blocks.filter(|op| is_read(op)).collect();
    let which = random.below(reads.len().max(1));
    let Some(SketchOp::Move { from, .. }) = reads.get_mut(which) else { return false };
    *from = written;
    true
}

/// Removes a few operations from a block and returns them.
fn take(sketch: &mut Sketch, random: &mut Random, (block, i): (usize, usize)) -> Vec<SketchOp> {
    let ops = &mut sketch.0[block].ops;
    let count = 1 + random.below((ops.len() - i).min(3));
    ops.drain(i..i + count).collect()
}

fn to_another_block(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some(site) = site(sketch, random) else { return false };
    let taken = take(sketch, random, site);
    let (block, i) = place(sketch, random);
    sketch.0[block].ops.splice(i..i, taken);
    true
}

fn within_a_block(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let ops = &mut sketch.0[block].ops;
    let op = ops.remove(i);
    ops.insert(random.below(ops.len() + 1), op);
    true
}

fn into_predecessors(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let before = sketch.predecessors(block);
    if before.is_empty() {
        return false;
    }
    let i = if random.chance(70) { 0 } else { i };
    let taken = take(sketch, random, (block, i));
    before.into_iter().for_each(|block| sketch.0[block].ops.extend(&taken));
    true
}

fn into_successors(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let successors = sketch.0[block].terminator.successors();
    if sketch.0[block].terminator == Terminator::End {
        return false;
    }
    let taken = if random.chance(70) { sketch.0[block].ops.split_off(i) } else { take(sketch, random, (block, i)) };
    successors.for_each(|target| {
        sketch.0[target].ops.splice(0..0, taken.iter().copied());
    });
    true
}

fn left_out(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    sketch.0[block].ops.remove(i);
    true
}

fn another_register(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let reads: Vec<&mut Reg> = sketch.0[block].ops[i].reads().collect();
    let which = random.below(reads.len().max(1));
    let Some(read) = reads.into_iter().nth(which) else { return false };
    let others: Vec<Reg> = match read {
        Reg::Own(number) if *number < 4 => vec![Reg::LANE, Reg::FEW, Reg::ZERO],
        _ => Reg::OWN.into_iter().chain(Reg::SHARED).chain([Reg::counter(0)]).collect(),
    };
    *read = others[random.below(others.len())];
    true
}

fn another_result(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let Some(to) = sketch.0[block].ops[i].to() else { return false };
    *to = match to {
        Reg::Own(_) => Reg::OWN[random.below(3)],
        Reg::Shared(_) => Reg::SHARED[random.below(2)],
    };
    true
}

fn another_number(sketch: &mut Sketch, random: &mut Random) -> bool {
    let Some((block, i)) = site(sketch, random) else { return false };
    let Some(number) = sketch.0[block].ops[i].number() else { return false };
    *number = random.below(8) as u8;
    true
}

/// Swaps two adjacent blocks, if there is no edge between them.
pub(super) fn another_order(sketch: &mut Sketch, random: &mut Random) -> bool {
    let can = |&first: &usize| !sketch.has_edge(first, first + 1) && !sketch.has_edge(first + 1, first);
    let Some(first) = random.pick(&(1..sketch.0.len().max(2) - 1).filter(can).collect::<Vec<_>>()) else {
        return false;
    };
    sketch.0.swap(first, first + 1);
    let moved = |block| match block {
        block if block == first => first + 1,
        block if block == first + 1 => first,
        _ => block,
    };
    sketch.0.iter_mut().for_each(|part| part.terminator.renumber(moved));
    true
}

/// Turns a branch of each lane for itself into a branch on a subgroup vote, or the other way round.
fn votes(sketch: &mut Sketch, random: &mut Random) -> bool {
    let branches: Vec<usize> =
        (0..sketch.0.len()).filter(|&i| matches!(sketch.0[i].terminator, Terminator::If { .. })).collect();
    let Some(block) = random.pick(&branches) else { return false };
    let Terminator::If { vote, .. } = &mut sketch.0[block].terminator else { return false };
    *vote = [Vote::Own, Vote::Any, Vote::All][random.below(3)];
    true
}
