//! Uniform branches: all lanes that run one together take the same edge. The same analysis finds moves to shared
//! registers whose value is the same in all lanes, so that any lane's value may be taken.
//!
//! *The lattice.* At a point, the lanes of the wave are those that run, and those that wait at each of the positions
//! where lanes may wait ([`Flow::waiting`]). For each pair of these groups, and for each group with itself, there is
//! the set of registers in which a lane of the one may differ from a lane of the other. Registers that all lanes share
//! (shared registers, `a1.x`, constants) differs in no pair.
//!
//! *The transfer functions.* The lanes that run compute the same from registers in which they do not differ, unless the
//! instruction is one whose result is each lane's own ([`is_own`]). Lanes that wait do not write with them, so they may
//! differ in every register that is written. Under predication some of the lanes that run do not write either.
//!
//! *Paths.* The wave continues along [`Flow::turns`]: lanes that diverge become a group of their own with the
//! differences of the group that they come from, and where groups join, so do their differences.
//!
//! *Scratch memory* at known addresses (`scratch`) is a further register: each lane has its own, so a load returns the
//! value that this lane has stored, and lanes that are inactive at a store keep theirs. If lanes that wait have the
//! same in a slot and a register (`copies`), and do not differ from the lanes that run in the one, those lanes make the
//! other the same by copying the one to it.
//!
//! *Marks* ([`Facts::trusts_marks`]): a branch that is marked uniform stays so, for any result of the analysis.
//!
//! *Soundness.* All branches are uniform at first, and each that is found to read a register in which its lanes may
//! differ is divergent in the next iteration, until no more are found. If there were a run in which lanes diverge at
//! another branch, then all branches before the first such one behaved as assumed, and the states of the last iteration
//! contain it: lanes differ in the operand of the branch, and it would have been found.

use super::copies::{Copies, ScratchCopy};
use super::flow::{BlockIndex, Flow};
use super::scratch::{Scratch, ScratchOperation};
use super::state::Mask;
use super::{Facts, HazardError};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{InputKind, InstrData, Opcode, Place, SystemValue};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;
use ir3_semantics::machine::rules::{self, Unit};
use ir3_semantics::machine::steps::{Bits, Operand, Step, Steps};
use ir3_semantics::machine::units::{self, A1_BIT, OTHER_WORD, SHARED_WORD, WORDS};
use smallvec::SmallVec;
use std::ops::Range;

/// Finds the branches and the moves to shared registers that are uniform, and computes the control flow with them. The
/// result is true at their positions.
///
/// # Errors
/// As [`Flow::new`].
pub fn analyze(code: &Code, steps: &Steps, facts: &Facts, target: &Target) -> Result<(Vec<bool>, Flow), HazardError> {
    let is_asked = |data: &InstrData| is_conditional(data.opcode) || rules::takes_one_lane(data);
    let mut uniform: Vec<bool> = code.instrs.values().map(|instr| is_asked(&instr.data)).collect();
    let any = uniform.contains(&true);
    let mut memory = None;
    loop {
        let flow = Flow::new(code, &|ip| uniform[ip.index()])?;
        let found = if any {
            // The edges of lanes are the same in all rounds.
            let (scratch, copies) = memory.get_or_insert_with(|| {
                let scratch = Scratch::new(code, steps, &flow, &facts.scratch, target);
                let copies = Copies::new(code, steps, &flow, &scratch);
                (scratch, copies)
            });
            divergent(code, steps, &flow, scratch, copies, target)
        } else {
            Vec::new()
        };
        let before = uniform.iter().filter(|&&uniform| uniform).count();
        let is_trusted = |ip: &Ip| facts.trusts_marks && facts.marked_uniform.get(ip.index()) == Some(&true);
        found.iter().filter(|ip| !is_trusted(ip)).for_each(|ip| uniform[ip.index()] = false);
        if uniform.iter().filter(|&&uniform| uniform).count() == before {
            return Ok((uniform, flow));
        }
    }
}

/// Returns true for branches at which lanes diverge only if their predicates differ.
pub const fn is_conditional(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Br | Opcode::Braa | Opcode::Brao | Opcode::Brac | Opcode::Brax)
}

/// A copy whose destination already holds the value for a waiting group of lanes.
#[derive(Debug)]
struct Copied {
    group: usize,
    to: CopiedTo,
}

#[derive(Debug)]
enum CopiedTo {
    Register(Bits),
    Units(Range<u32>),
}

/// The differences between groups of lanes.
#[derive(Clone, Debug)]
struct Groups {
    /// The positions where lanes wait, sorted. The lanes that run are group 0, those that wait are the groups from 1
    /// on.
    waiting: SmallVec<[BlockIndex; 4]>,
    /// The registers that may differ, for each pair of groups.
    pairs: SmallVec<[Mask; 3]>,
    /// The units of scratch memory that may differ, with an equal number of words for each pair.
    scratch: Vec<u64>,
    /// Words of units.
    words: usize,
}

/// The place of an unordered pair.
const fn pair(a: usize, b: usize) -> usize {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high * (high + 1) / 2 + low
}

impl Groups {
    fn none(waiting: &[BlockIndex], words: usize) -> Self {
        let count = waiting.len() + 1;
        let count = count * (count + 1) / 2;
        let pairs = SmallVec::from_elem([0; WORDS], count);
        Self { waiting: SmallVec::from_slice(waiting), pairs, scratch: vec![0; count * words], words }
    }

    /// The units of scratch memory that may differ in a pair.
    fn units(&mut self, pair: usize) -> &mut [u64] {
        &mut self.scratch[pair * self.words..(pair + 1) * self.words]
    }

    /// The group that waits at a block.
    fn at(&self, block: BlockIndex) -> Option<usize> {
        self.waiting.binary_search(&block).ok().map(|at| at + 1)
    }

    /// Adds the differences of a pair of other groups to a pair; returns true if there are new ones.
    fn add(&mut self, pair: usize, from: &Self, other: usize) -> bool {
        let mut changed = false;
        let mut unite = |words: &mut [u64], from: &[u64]| {
            for (word, &bits) in words.iter_mut().zip(from) {
                changed |= bits & !*word != 0;
                *word |= bits;
            }
        };
        unite(&mut self.pairs[pair], &from.pairs[other]);
        unite(self.units(pair), &from.scratch[other * from.words..(other + 1) * from.words]);
        changed
    }

    /// The lanes that run store to scratch memory; `differ` is true if they may store different values or at different
    /// addresses, or not all of them do. At an unknown address that is the same for all, they may leave the old value.
    fn store(&mut self, units: Option<&Range<u32>>, differ: bool) {
        let groups = self.waiting.len() + 1;
        let known = units.is_some();
        for unit in units.cloned().unwrap_or(0..64 * self.words as u32) {
            let (word, bit) = (unit as usize / 64, 1 << (unit % 64));
            for group in 1..groups {
                self.units(pair(0, group))[word] |= bit;
            }
            let own = &mut self.units(0)[word];
            if differ {
                *own |= bit;
            } else if known {
                *own &= !bit;
            }
        }
    }

    /// The copies of an access that make the running lanes equal to a waiting group, before it is executed.
    fn copied(&mut self, operation: &ScratchOperation, copies: &Copies) -> SmallVec<[Copied; 2]> {
        let mut found = SmallVec::new();
        for copy in ScratchCopy::of(operation) {
            let register = copy.register();
            for group in 1..=self.waiting.len() {
                if !copies.holds(self.waiting[group - 1], &copy) {
                    continue;
                }
                let pair = pair(0, group);
                let stores = matches!(operation, ScratchOperation::Store { .. });
                let differ = if stores {
                    self.pairs[pair][usize::from(register.word)] & register.bits != 0
                } else {
                    let own = self.units(pair);
                    copy.units.clone().any(|unit| own[unit as usize / 64] >> (unit % 64) & 1 != 0)
                };
                if !differ {
                    let to = if stores { CopiedTo::Units(copy.units.clone()) } else { CopiedTo::Register(register) };
                    found.push(Copied { group, to });
                }
            }
        }
        found
    }

    /// The lanes that run and a group that waits hold the same.
    fn agree(&mut self, copied: &Copied) {
        let pair = pair(0, copied.group);
        match &copied.to {
            CopiedTo::Register(of) => self.pairs[pair][usize::from(of.word)] &= !of.bits,
            CopiedTo::Units(units) => {
                let own = self.units(pair);
                units.clone().for_each(|unit| own[unit as usize / 64] &= !(1 << (unit % 64)));
            }
        }
    }

    /// Returns true if lanes that run may load different values: those of each lane's own memory.
    fn loads_differ(&mut self, units: Option<&Range<u32>>) -> bool {
        let own = self.units(0);
        units.is_none_or(|units| units.clone().any(|unit| own[unit as usize / 64] >> (unit % 64) & 1 != 0))
    }

    /// The lanes that run write registers.
    fn write(&mut self, bits: &[Bits], differ: bool, weak: bool) {
        for of in bits {
            let word = usize::from(of.word);
            for group in 1..=self.waiting.len() {
                self.pairs[pair(0, group)][word] |= of.bits;
            }
            let own = &mut self.pairs[0][word];
            if differ {
                *own |= of.bits;
            } else if !weak {
                *own &= !of.bits;
            }
        }
    }

    /// The lanes that run execute a repeated instruction: the result of a repetition depends on its own operands. The
    /// repetitions read the content before the instruction, or results of those before them: lanes have to agree in
    /// both.
    fn repeat(&mut self, reads: &[Operand], writes: &[Operand], own: bool, weak: bool) {
        let before = self.pairs[0];
        let repetitions = writes.iter().filter_map(|write| write.repetition).max().map_or(1, |last| last + 1);
        for repetition in 0..repetitions {
            let is_here = |operand: &&Operand| operand.repetition.is_none_or(|its| its == repetition);
            let differ = reads.iter().filter(is_here).any(|operand| {
                let of = operand.bits();
                differs_in(&before, of) || differs_in(&self.pairs[0], of)
            });
            for write in writes.iter().filter(is_here) {
                self.write(&[write.bits()], own || differ, weak);
            }
        }
    }

    /// Returns true if the lanes that run may differ in a register.
    fn differ(&self, bits: &[Bits]) -> bool {
        bits.iter().any(|&of| differs_in(&self.pairs[0], of))
    }
}

/// Returns true if one of the bits, of registers that lanes do not share, is among those that may differ.
fn differs_in(differences: &Mask, of: Bits) -> bool {
    let word = usize::from(of.word);
    differences[word] & of.bits & !shared_bits(word) != 0
}

/// The bits of a word that all lanes share.
const fn shared_bits(word: usize) -> u64 {
    match word {
        SHARED_WORD => !0,
        OTHER_WORD => A1_BIT,
        _ => 0,
    }
}

/// The branches, and the moves to shared registers, that read registers which may differ.
fn divergent(code: &Code, steps: &Steps, flow: &Flow, scratch: &Scratch, copies: &Copies, target: &Target) -> Vec<Ip> {
    let count = flow.blocks.len();
    let predicated = predicated(code);
    let mut states: Vec<Option<Groups>> = vec![None; count];
    states[0] = Some(entry(code, &flow.waiting[0], scratch.words, target));
    let mut pending = vec![false; count];
    pending[0] = true;
    let mut found = Vec::new();
    while let Some(first) = pending.iter().position(|&pending| pending) {
        for at in first..count {
            if !std::mem::take(&mut pending[at]) {
                continue;
            }
            let Some(mut groups) = states[at].clone() else { continue };
            for ip in flow.blocks[at].ips.clone() {
                let ip = ip as usize;
                let (step, data) = (&steps.steps[ip], &code.instrs[Ip::new(ip)].data);
                let differ = groups.differ(steps.bits(&step.read_bits));
                if differ && (is_conditional(step.opcode) || rules::takes_one_lane(data)) {
                    found.push(Ip::new(ip));
                }
                let weak = data.dsts.iter().any(|dst| matches!(dst.place, Place::Relative { .. }));
                let operation = scratch.operation(ip);
                let same = operation.filter(|_| !predicated[ip]).map(|operation| groups.copied(operation, copies));
                let own = match operation {
                    None if data.repeat > 0 => {
                        let own = predicated[ip] || is_own(data, step);
                        groups.repeat(steps.operands(&step.reads), steps.operands(&step.writes), own, weak);
                        continue;
                    }
                    None => differ || is_own(data, step),
                    Some(operation) => match operation {
                        ScratchOperation::Load { units, .. } => groups.loads_differ(units.as_ref()),
                        ScratchOperation::Store { units, data } => {
                            let differ = if units.is_some() { groups.differ(data) } else { differ };
                            groups.store(units.as_ref(), differ || predicated[ip]);
                            false
                        }
                    },
                };
                groups.write(steps.bits(&step.write_bits), own || predicated[ip], weak);
                same.into_iter().flatten().for_each(|copied| groups.agree(&copied));
            }
            for turn in flow.turns(at) {
                pending[turn.to as usize] |= join(&mut states[turn.to as usize], &groups, &turn, flow);
            }
        }
    }
    found
}

/// Joins the state after a turn into that of the block that runs next; returns true if that changed.
fn join(state: &mut Option<Groups>, before: &Groups, turn: &super::flow::Turn, flow: &Flow) -> bool {
    let mut changed = state.is_none();
    let after = state.get_or_insert_with(|| Groups::none(&flow.waiting[turn.to as usize], before.words));
    // For each group after the turn, the groups that its lanes come from.
    let mut from: SmallVec<[SmallVec<[usize; 2]>; 4]> = SmallVec::new();
    let mut runs: SmallVec<[usize; 2]> = before.at(turn.to).into_iter().collect();
    if turn.runs {
        runs.push(0);
    }
    from.push(runs);
    for &block in &after.waiting {
        let mut groups: SmallVec<[usize; 2]> = before.at(block).into_iter().collect();
        if turn.waits.contains(&block) {
            groups.push(0);
        }
        from.push(groups);
    }
    for a in 0..from.len() {
        for b in a..from.len() {
            for &x in &from[a] {
                for &y in &from[b] {
                    changed |= after.add(pair(a, b), before, pair(x, y));
                }
            }
        }
    }
    changed
}

/// The state at the start: lanes may differ in everything but inputs that are the same for all.
fn entry(code: &Code, waiting: &[BlockIndex], words: usize, target: &Target) -> Groups {
    let mut groups = Groups::none(waiting, words);
    groups.pairs[0] = [!0; WORDS];
    groups.units(0).fill(!0);
    for input in &code.interface.inputs {
        let same = matches!(
            input.input,
            Some(InputKind::System(
                SystemValue::WorkgroupId | SystemValue::BaseWorkgroupId | SystemValue::NumWorkgroups
            ))
        );
        if same {
            let pieces = units::pieces(&input.dst.place, input.dst.class, input.dst.mask, target.merged_regs);
            for piece in pieces.unwrap_or_default() {
                let bits = ((1u64 << piece.width) - 1) << (piece.bit % 64);
                groups.pairs[0][usize::from(piece.bit / 64)] &= !bits;
            }
        }
    }
    groups
}

/// The positions between the first `predt` or `predf` of a pair and `prede`.
fn predicated(code: &Code) -> Vec<bool> {
    let mut open = false;
    let inside = code.instrs.values().map(|instr| {
        match instr.data.opcode {
            Opcode::Predt | Opcode::Predf => open = true,
            Opcode::Prede => open = false,
            _ => {}
        }
        open
    });
    inside.collect()
}

/// Returns true if the result may differ between lanes whose operands are the same.
///
/// While another wave writes, loads of one address may give different lanes the value before and after, so Mesa treats
/// all loads of written memory as divergent (`nir_divergence_uniform_load_tears`). Uniform buffers and textures are
/// read-only. Derivatives read other lanes.
fn is_own(data: &InstrData, step: &Step) -> bool {
    use Opcode::*;
    let opcode = data.opcode;
    let same = match step.unit {
        Unit::Alu | Unit::ScalarAlu => !matches!(opcode, BaryF | FlatB | MgenB | Shb | Wmm | WmmAccu | Movp),
        Unit::Special => opcode != Getfiberid,
        Unit::Texture => matches!(
            opcode,
            Isam | Isaml | Isamm | Saml | Getsize | Getbuf | Getinfo | Gather4r | Gather4g | Gather4b | Gather4a
        ),
        Unit::Memory => matches!(opcode, Ldc | Resinfo),
        Unit::Barrier | Unit::Flow => true,
    };
    !same
}
