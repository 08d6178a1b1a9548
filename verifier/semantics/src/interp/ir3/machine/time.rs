//! The outstanding operations of the machine at run time, by lane.

use super::Completion;
use crate::interp::UndefinedReason;
use crate::machine::rules::{FIRST_OF_QUADS, Slots, SourceWait, Unit, Wait};
use crate::machine::steps::{Operand, Step, Steps};
use crate::machine::units::{OTHER_WORD, Piece, SHARED_WORD, TIMES, WORDS};
use crate::support::random::hash;
use ir3_compiler::ir3::{Opcode, RegFile};
use smallvec::SmallVec;

const BITS: usize = WORDS * 64;

/// Registers with an operation that a flag waits for, each with the mask of its lanes.
#[derive(Clone)]
struct Outstanding {
    lanes: Box<[u64; BITS]>,
    /// The instruction that writes or reads each register.
    owners: Box<[u32; BITS]>,
    listed: Vec<u16>,
}

impl Outstanding {
    fn new() -> Self {
        Self { lanes: Box::new([0; BITS]), owners: Box::new([0; BITS]), listed: Vec::new() }
    }

    fn clear(&mut self) {
        for bit in self.listed.drain(..) {
            self.lanes[usize::from(bit)] = 0;
        }
    }

    /// Removes the registers of one word of the register mask.
    fn clear_word(&mut self, word: usize) {
        for &bit in self.listed.iter().filter(|&&bit| usize::from(bit) / 64 == word) {
            self.lanes[usize::from(bit)] = 0;
        }
    }

    fn add(&mut self, bits: std::ops::Range<u16>, lanes: u64, owner: usize) {
        for bit in bits {
            if self.lanes[usize::from(bit)] == 0 {
                self.listed.push(bit);
            }
            self.lanes[usize::from(bit)] |= lanes;
            self.owners[usize::from(bit)] = owner as u32;
        }
    }
}

/// The sets, in the order of [`Clock::sets`].
const SS: usize = 0;
const SY: usize = 1;
const SOURCE_SS: usize = 2;
const SOURCE_SS_OR_SY: usize = 3;
const SCALAR_HALF: usize = 4;
const SCALAR_FULL: usize = 5;
const SCALAR_SOURCE: usize = 6;

/// The time in issue slots, and the outstanding operations.
pub struct Clock {
    slots: Slots,
    completion: Completion,
    /// The number of instructions issued so far; seeds random completion.
    issued: u64,
    now: u32,
    half: Box<[u32; TIMES]>,
    full: Box<[u32; TIMES]>,
    others: Box<[u32; TIMES]>,
    /// The mask of lanes of the last pending write of each entry.
    writers: Box<[u64; TIMES]>,
    /// Earlier pending writes in lanes that later writes left out; usually none.
    older: SmallVec<[OlderWrite; 4]>,
    sets: [Outstanding; 7],
    /// The mask of the sets that are not empty; usually none.
    filled: u8,
    /// Registers that have become permanently poison, with their lanes.
    poisoned: SmallVec<[(u16, u64); 4]>,
    /// The mask of lanes in which a source of an instruction without results was overwritten.
    overwritten: u64,
    /// The hazard of the current instruction.
    hazard: Option<(UndefinedReason, u64)>,
}

/// A pending write of some lanes. Each group of lanes has its own: a later write by some of them does not affect the
/// others.
struct OlderWrite {
    entry: usize,
    lanes: u64,
    /// The times from which on it can be read as a half register, as a full register, and by other units.
    times: [u32; 3],
}

fn bits(operand: &Operand) -> std::ops::Range<u16> {
    operand.piece.bit..operand.piece.bit + operand.piece.width
}

/// The mask of lanes of an access: all for shared registers, which have one value.
fn lanes_of(operand: &Operand, lanes: u64) -> u64 {
    if usize::from(operand.piece.bit) / 64 == SHARED_WORD { !0 } else { lanes }
}

/// The mask of lanes in which an instruction reads and writes.
fn accessed(step: &Step, lanes: u64) -> u64 {
    step.quad_lane.map_or(lanes, |lane| lanes & FIRST_OF_QUADS << lane)
}

/// The indices of the sets in a mask.
fn sets_in(mask: u8) -> impl Iterator<Item = usize> {
    (0..7).filter(move |set| mask >> set & 1 != 0)
}

impl Clock {
    pub fn new(completion: Completion, slots: Slots) -> Self {
        Self {
            slots,
            completion,
            issued: 0,
            now: 0,
            half: Box::new([0; TIMES]),
            full: Box::new([0; TIMES]),
            others: Box::new([0; TIMES]),
            writers: Box::new([0; TIMES]),
            older: SmallVec::new(),
            sets: std::array::from_fn(|_| Outstanding::new()),
            filled: 0,
            poisoned: SmallVec::new(),
            overwritten: 0,
            hazard: None,
        }
    }

    /// Marks registers as written before the program starts, and available after `(sy)`.
    pub fn prefetched(&mut self, pieces: &[Piece], lanes: u64) {
        if !self.is_late() {
            return;
        }
        for piece in pieces {
            self.filled |= 1 << SY;
            self.sets[SY].add(piece.bit..piece.bit + piece.width, lanes, 0);
        }
    }

    /// Applies the wait flags of an instruction, which complete outstanding operations.
    pub fn wait(&mut self, step: &Step) {
        if step.starts_block {
            self.sets[SCALAR_SOURCE].clear_word(OTHER_WORD);
        }
        let mut cleared = 0;
        if step.ss {
            cleared |= !(1 << SY);
        }
        if step.sy {
            cleared |= 1 << SY | 1 << SOURCE_SS_OR_SY;
        }
        for set in sets_in(cleared & self.filled) {
            self.sets[set].clear();
        }
        self.filled &= !cleared;
    }

    /// Begins an instruction: returns the registers that it reads too early, with the lanes, and records outstanding
    /// results that its writes destroy. `steps` contains its operands, `code` all instructions.
    pub fn begin(&mut self, step: &Step, steps: &Steps, code: &Steps, lanes: u64) -> SmallVec<[(u16, u64); 4]> {
        let mut early = SmallVec::new();
        if step.paired {
            return early;
        }
        let lanes = accessed(step, lanes);
        let ends = matches!(step.opcode, Opcode::End | Opcode::Chmask);
        if let Some((operand, _)) = &step.own_read {
            early.extend(bits(operand).map(|bit| (bit, lanes)));
            self.hazard.get_or_insert((UndefinedReason::ReadBeforeResult, lanes));
        }
        for operand in steps.operands(&step.reads) {
            let reads = lanes_of(operand, lanes);
            let missed = if ends { 0 } else { self.too_early(operand, step.unit.is_alu()) };
            for bit in bits(operand) {
                let outstanding = if self.filled == 0 { 0 } else { self.outstanding(step, operand, bit) };
                let bad = (missed | outstanding) & reads;
                if bad != 0 {
                    early.push((bit, bad));
                    self.hazard.get_or_insert((UndefinedReason::ReadBeforeResult, bad));
                }
            }
        }
        if self.filled == 0 {
            return early;
        }
        for operand in steps.operands(&step.writes) {
            let writes = lanes_of(operand, lanes);
            for bit in bits(operand) {
                let bad = self.outstanding(step, operand, bit) & writes;
                if bad != 0 {
                    self.poisoned.push((bit, bad));
                    self.hazard.get_or_insert((UndefinedReason::WriteBeforeResult, bad));
                }
                self.overwrite(step, code, bit, writes);
            }
        }
        early
    }

    /// The mask of lanes in which a result of another unit is outstanding for an operand.
    fn outstanding(&self, step: &Step, operand: &Operand, bit: u16) -> u64 {
        let at = usize::from(bit);
        let mut lanes = self.sets[SS].lanes[at] | self.sets[SY].lanes[at];
        if operand.file == RegFile::Shared {
            let own = step.unit == Unit::ScalarAlu;
            if !(own && operand.half) {
                lanes |= self.sets[SCALAR_HALF].lanes[at];
            }
            if !own || operand.half {
                lanes |= self.sets[SCALAR_FULL].lanes[at];
            }
        }
        lanes
    }

    /// The mask of lanes in which an operand is read before the required issue slots have passed.
    fn too_early(&self, operand: &Operand, alu: bool) -> u64 {
        let Some(entry) = operand.piece.time else { return 0 };
        let (times, kind) = match (alu, operand.half) {
            (true, true) => (&self.half, 0),
            (true, false) => (&self.full, 1),
            (false, _) => (&self.others, 2),
        };
        let read = self.now + u32::from(operand.delay);
        let entries = usize::from(entry)..usize::from(entry + operand.piece.width);
        let late = entries.clone().filter(|&entry| times[entry] > read);
        let lanes = late.fold(0, |lanes, entry| lanes | self.writers[entry]);
        let late = self.older.iter().filter(|older| entries.contains(&older.entry) && older.times[kind] > read);
        late.fold(lanes, |lanes, older| lanes | older.lanes)
    }

    /// Records a write to a register that another unit may not have read yet: the results of that unit become poison.
    fn overwrite(&mut self, step: &Step, steps: &Steps, bit: u16, writes: u64) {
        for set in [SOURCE_SS, SOURCE_SS_OR_SY, SCALAR_SOURCE] {
            let lanes = self.sets[set].lanes[usize::from(bit)] & writes;
            if lanes == 0 || set == SCALAR_SOURCE && step.unit == Unit::ScalarAlu {
                continue;
            }
            let owner = &steps.steps[self.sets[set].owners[usize::from(bit)] as usize];
            let results = steps.operands(&owner.writes);
            self.hazard.get_or_insert((UndefinedReason::Overwritten, lanes));
            self.overwritten |= if results.is_empty() { lanes } else { 0 };
            for result in results {
                self.poisoned.extend(bits(result).map(|bit| (bit, lanes_of(result, lanes))));
            }
        }
    }

    /// Returns true if the result of this instruction stays outstanding until a flag waits for it.
    fn is_late(&self) -> bool {
        match self.completion {
            Completion::Latest => true,
            Completion::Earliest => false,
            Completion::Random(seed) => hash(&[seed, self.issued]) & 1 != 0,
        }
    }

    /// Adds the results and sources of an instruction to the outstanding operations.
    pub fn add(&mut self, at: usize, step: &Step, steps: &Steps, lanes: u64) {
        let late = self.is_late();
        let lanes = accessed(step, lanes);
        let issued = self.now + step.slots.min(1);
        for operand in steps.operands(&step.writes) {
            let lanes = lanes_of(operand, lanes);
            let set = match (step.result, step.unit, operand.file) {
                (Wait::Ss, ..) => Some(SS),
                (Wait::Sy, ..) => Some(SY),
                (Wait::None, Unit::ScalarAlu, RegFile::Shared) => {
                    Some(if operand.half { SCALAR_HALF } else { SCALAR_FULL })
                }
                (Wait::None, _, RegFile::Shared) => Some(SS),
                (Wait::None, _, RegFile::Address) if step.early_a1 => Some(SS),
                _ => None,
            };
            if let Some(set) = set.filter(|_| late) {
                self.filled |= 1 << set;
                self.sets[set].add(bits(operand), lanes, at);
            }
            // In an early preamble `a1.x` is waited for with `(ss)` instead of slots.
            let by_flag = step.early_a1 && operand.file == RegFile::Address;
            if step.unit.is_alu() && step.result == Wait::Ss {
                // A uniform predicate still needs the issue slots of earlier writes.
                continue;
            }
            if step.unit.is_alu() && !by_flag {
                self.write(operand, issued, lanes);
            } else {
                self.forget(operand, lanes);
            }
        }
        let set = match step.source {
            SourceWait::None => None,
            SourceWait::Ss => Some(SOURCE_SS),
            SourceWait::SsOrSy => Some(SOURCE_SS_OR_SY),
            SourceWait::Scalar => Some(SCALAR_SOURCE),
        };
        if let Some(set) = set.filter(|_| late) {
            for operand in steps.operands(&step.reads) {
                if set != SCALAR_SOURCE || operand.file != RegFile::General {
                    self.filled |= 1 << set;
                    self.sets[set].add(bits(operand), lanes_of(operand, lanes), at);
                }
            }
        }
    }

    /// Ends an instruction: advances the time by the issue slots that it takes, including its `(nopN)`.
    pub fn pass(&mut self, step: &Step) {
        self.issued += 1;
        self.hazard = None;
        self.advance(step.slots + step.nop);
    }

    fn advance(&mut self, slots: u32) {
        self.now += slots;
        if !self.older.is_empty() {
            let now = self.now;
            self.older.retain(|older| older.lanes != 0 && older.times[2] > now);
        }
    }

    fn write(&mut self, operand: &Operand, issued: u32, lanes: u64) {
        let Some(entry) = operand.piece.time else { return };
        let written = issued + u32::from(operand.delay);
        let general = operand.file == RegFile::General;
        let Slots { near, far, .. } = self.slots;
        for entry in usize::from(entry)..usize::from(entry + operand.piece.width) {
            self.older.iter_mut().filter(|older| older.entry == entry).for_each(|older| older.lanes &= !lanes);
            let left_out = if self.others[entry] > self.now { self.writers[entry] & !lanes } else { 0 };
            if left_out != 0 {
                let times = [self.half[entry], self.full[entry], self.others[entry]];
                self.older.push(OlderWrite { entry, lanes: left_out, times });
            }
            self.writers[entry] = lanes;
            self.half[entry] = written + if general && operand.half { near } else { far };
            self.full[entry] = written + if general && !operand.half { near } else { far };
            self.others[entry] = written + far;
        }
    }

    /// Records a write by another unit, which completes after all earlier writes of the ALU.
    fn forget(&mut self, operand: &Operand, lanes: u64) {
        let Some(entry) = operand.piece.time else { return };
        let entries = usize::from(entry)..usize::from(entry + operand.piece.width);
        self.writers[entries.clone()].iter_mut().for_each(|writers| *writers &= !lanes);
        self.older.iter_mut().filter(|older| entries.contains(&older.entry)).for_each(|older| older.lanes &= !lanes);
    }

    /// Returns the registers that have become permanently poison since the last call, with their lanes.
    pub fn take_poisoned(&mut self) -> SmallVec<[(u16, u64); 4]> {
        std::mem::take(&mut self.poisoned)
    }

    /// Returns the mask of lanes in which a source of an instruction without results was overwritten since the last
    /// call; `None` if there are none.
    pub fn take_overwritten(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.overwritten)).filter(|&lanes| lanes != 0)
    }

    /// The hazard of the current instruction, with its lanes.
    pub const fn hazard(&self) -> Option<(UndefinedReason, u64)> {
        self.hazard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::units::Piece;
    use crate::support::random::Random;

    /// A full register, or one of its halves.
    const REGISTERS: [(u16, bool); 3] = [(0, false), (0, true), (1, true)];

    fn operand((first, half): (u16, bool)) -> Operand {
        let piece = Piece { bit: first, width: if half { 1 } else { 2 }, time: Some(first) };
        Operand { piece, delay: 0, repetition: None, half, file: RegFile::General }
    }

    /// Writes by any groups of lanes, compared with times that each lane has alone.
    #[test]
    fn each_lane_has_times_of_its_own() {
        let (mut late, mut most) = (0, 0);
        let slots = Slots { near: 3, far: 6, third_late: 2 };
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut clock = Clock::new(Completion::Latest, slots);
            let mut alone = [[[0_u32; 3]; 64]; 2];
            for _ in 0..40 {
                let register = REGISTERS[random.below(REGISTERS.len())];
                let written = operand(register);
                let lanes = random.next() & random.next();
                let by_alu = random.chance(85);
                let now = clock.now;
                if by_alu {
                    clock.write(&written, now + 1, lanes);
                } else {
                    clock.forget(&written, lanes);
                }
                let (near, far) = (now + 1 + slots.near, now + 1 + slots.far);
                let times = match (by_alu, written.half) {
                    (false, _) => [0; 3],
                    (true, true) => [near, far, far],
                    (true, false) => [far, near, far],
                };
                for entry in bits(&written) {
                    let of_lanes = alone[usize::from(entry)].iter_mut().enumerate();
                    of_lanes.filter(|(lane, _)| lanes >> lane & 1 != 0).for_each(|(_, alone)| *alone = times);
                }
                clock.advance(random.below(4) as u32);
                for (read, alu) in
                    REGISTERS.into_iter().flat_map(|register| [(operand(register), true), (operand(register), false)])
                {
                    let kind = match (alu, read.half) {
                        (true, true) => 0,
                        (true, false) => 1,
                        (false, _) => 2,
                    };
                    let waits =
                        |lane: &usize| bits(&read).any(|entry| alone[usize::from(entry)][*lane][kind] > clock.now);
                    let expected = (0..64).filter(waits).fold(0_u64, |lanes, lane| lanes | 1 << lane);
                    assert_eq!(clock.too_early(&read, alu), expected, "seed {seed}, {read:?}, {alu}");
                    late += u32::from(expected != 0);
                }
                most = most.max(clock.older.len());
            }
        }
        assert!(late > 10_000 && most > 4, "{late}, {most}");
    }
}
