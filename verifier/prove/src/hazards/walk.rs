//! The transfer functions, and their fixed point.

use super::failure::{Flag, Hazard, HazardError, HazardKind};
use super::flow::Flow;
use super::state::{Mask, Pending, Set, State, WaveFacts};
use super::{Facts, HazardReport};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::access::{Access, Slot};
use ir3_compiler::ir3::{InstrData, InstrFlags, Opcode, OperandFlags, RegFile};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::{Generation, Target};
use ir3_semantics::machine::rules::{self, ConstWrite, Slots, SourceWait, Unit, Wait};
use ir3_semantics::machine::steps::{Bits, Operand, Step, Steps};
use ir3_semantics::machine::units::{self, A1_BIT, OTHER_WORD, SHARED_WORD, TIMES, WORDS};
use rustc_hash::FxHashSet;

/// The times of registers while a block is walked: absolute slots, of one counter for the whole analysis, so that
/// all times of earlier visits are past.
struct Clock {
    slots: Slots,
    now: u32,
    /// The time from which the ALU may read a half register.
    half: [u32; TIMES],
    /// The time from which the ALU may read a full register.
    full: [u32; TIMES],
    /// The time from which other units may read it.
    others: [u32; TIMES],
    /// The entries that have a time in this block, in any order, some twice.
    touched: Vec<u16>,
}

impl Clock {
    /// Starts a block: the times of the visit before are past.
    fn begin(&mut self, times: &[Pending]) {
        // A counter that would overflow starts again.
        if self.now > u32::MAX / 2 {
            *self = Self::new(self.slots);
        }
        self.now += 64;
        self.touched.clear();
        for pending in times {
            self.touched.push(pending.entry);
            let entry = usize::from(pending.entry);
            self.half[entry] = self.now + u32::from(pending.half);
            self.full[entry] = self.now + u32::from(pending.full);
            self.others[entry] = self.now + u32::from(pending.others);
        }
    }

    fn new(slots: Slots) -> Self {
        Self { slots, now: 0, half: [0; TIMES], full: [0; TIMES], others: [0; TIMES], touched: Vec::new() }
    }

    /// The times that are not past, relative to now.
    fn pending(&mut self, out: &mut Vec<Pending>) {
        out.clear();
        // Others never read earlier than the ALU.
        self.touched.retain(|&entry| self.others[usize::from(entry)] > self.now);
        self.touched.sort_unstable();
        self.touched.dedup();
        let left = |time: u32| time.saturating_sub(self.now) as u8;
        out.extend(self.touched.iter().map(|&entry| {
            let at = usize::from(entry);
            let [half, full, others] = [self.half[at], self.full[at], self.others[at]].map(left);
            Pending { entry, half, full, others }
        }));
    }

    /// Slots that are missing before an operand may be read.
    fn missing(&self, operand: &Operand, alu: bool) -> u32 {
        let Some(entry) = operand.piece.time else { return 0 };
        let times = match (alu, operand.half) {
            (true, true) => &self.half,
            (true, false) => &self.full,
            (false, _) => &self.others,
        };
        let entries = usize::from(entry)..usize::from(entry + operand.piece.width);
        let ready = times[entries].iter().copied().max().unwrap_or(0);
        ready.saturating_sub(self.now + u32::from(operand.delay))
    }

    /// A write of the ALU whose instruction has been issued before `issued`.
    fn write(&mut self, operand: &Operand, issued: u32) {
        let Some(entry) = operand.piece.time else { return };
        let written = issued + u32::from(operand.delay);
        let near_half = operand.file == RegFile::General && operand.half;
        let near_full = operand.file == RegFile::General && !operand.half;
        self.touched.extend(entry..entry + operand.piece.width);
        let Slots { near, far, .. } = self.slots;
        for entry in usize::from(entry)..usize::from(entry + operand.piece.width) {
            let later = |time: &mut u32, slots: u32| *time = (*time).max(written + slots);
            later(&mut self.half[entry], if near_half { near } else { far });
            later(&mut self.full[entry], if near_full { near } else { far });
            later(&mut self.others[entry], far);
        }
    }

    /// A write of another unit, which comes after all writes of the ALU before it.
    fn forget(&mut self, operand: &Operand) {
        let Some(entry) = operand.piece.time else { return };
        let entries = usize::from(entry)..usize::from(entry + operand.piece.width);
        for times in [&mut self.half, &mut self.full, &mut self.others] {
            times[entries.clone()].fill(0);
        }
    }
}

/// The points before which the memory of varyings must be released.
struct Release {
    /// Before lanes end: in programs that release it before their end ("the hw gets angry", `ir3_postsched.c`).
    before_kill: bool,
    /// Before the end: it is released there from a5xx on (`ir3_legalize`). A program that reads varyings by samples
    /// before its start only has to do it on any GPU (`legalize_block`).
    before_end: bool,
}

impl Release {
    fn of(code: &Code, facts: &Facts, target: &Target) -> Self {
        let any = |wanted: &dyn Fn(&InstrData) -> bool| code.instrs.values().any(|instr| wanted(&instr.data));
        let reads = any(&|data| rules::reads_varying(data.opcode));
        let prefetches = !code.interface.prefetches.is_empty();
        Self {
            before_kill: !facts.releases_unknown && any(&releases_varyings),
            before_end: !facts.releases_unknown
                && if reads { target.generation < Generation::A5xx } else { prefetches },
        }
    }
}

/// Returns true if an instruction has `(ei)`. Other opcodes have another flag in its place.
fn releases_varyings(data: &InstrData) -> bool {
    data.flags.contains(InstrFlags::EI) && rules::reads_varying(data.opcode)
}

/// The analysis.
struct Walk<'a> {
    release: Release,
    code: &'a Code,
    steps: &'a Steps,
    /// The branches and the moves to shared registers that are uniform.
    uniform: &'a [bool],
    clock: Clock,
    found: FxHashSet<(usize, HazardKind, Option<u16>)>,
    hazards: Vec<Hazard>,
    /// Half registers are the halves of full ones.
    merged: bool,
}

/// Iterates until nothing changes.
pub fn run(
    code: &Code,
    steps: &Steps,
    (flow, uniform): (&Flow, &[bool]),
    facts: &Facts,
    target: &Target,
) -> Result<HazardReport, HazardError> {
    let count = flow.blocks.len();
    let release = Release::of(code, facts, target);
    let (found, hazards, merged) = (FxHashSet::default(), Vec::new(), target.merged_regs);
    let mut walk = Walk { release, code, steps, uniform, clock: Clock::new(Slots::of(target)), found, hazards, merged };
    let mut states: Vec<Option<State>> = vec![None; count];
    let mut waiting = vec![false; count];
    states[0] = Some(entry(code, target));
    waiting[0] = true;
    let mut visits = 0;
    let mut state = State::default();
    while let Some(first) = waiting.iter().position(|&waiting| waiting) {
        for at in first..count {
            if !std::mem::take(&mut waiting[at]) {
                continue;
            }
            visits += 1;
            let block = &flow.blocks[at];
            if let Some(start) = &states[at] {
                state.clone_from(start);
            }
            walk.clock.begin(&state.times);
            for ip in block.ips.clone() {
                walk.step(ip as usize, &mut state);
            }
            walk.clock.pending(&mut state.times);
            let edges = block.lanes.iter().map(|&to| (to, true)).chain(block.wave.iter().map(|&to| (to, false)));
            for (to, lanes) in edges {
                let first = states[to as usize].is_none();
                let next = states[to as usize].get_or_insert_default();
                waiting[to as usize] |= next.join(&state, lanes) | first;
            }
        }
    }
    Ok(HazardReport {
        hazards: walk.hazards,
        instructions: code.instrs.len() as u32,
        visits,
        ..HazardReport::default()
    })
}

/// The state at the start: the results of prefetched texture samples come with `(sy)`.
fn entry(code: &Code, target: &Target) -> State {
    let mut state = State::default();
    state.wave.add(WaveFacts::INPUTS_HELD);
    for piece in units::prefetched(code, target) {
        let bits = ((1u64 << piece.width) - 1) << (piece.bit % 64);
        state[Set::Sy][usize::from(piece.bit / 64)] |= bits;
    }
    state
}

fn meets(mask: &Mask, bits: &[Bits]) -> Option<Bits> {
    bits.iter().find_map(|of| {
        let met = mask[usize::from(of.word)] & of.bits;
        (met != 0).then_some(Bits { bits: met, ..*of })
    })
}

fn add(mask: &mut Mask, bits: &[Bits]) {
    bits.iter().for_each(|of| mask[usize::from(of.word)] |= of.bits);
}

/// Returns true for registers of lanes, and false for those of the wave.
const fn is_of_lanes(of: &Bits) -> bool {
    (of.word as usize) < SHARED_WORD
}

fn add_of_lanes(mask: &mut Mask, bits: &[Bits]) {
    bits.iter().filter(|of| is_of_lanes(of)).for_each(|of| mask[usize::from(of.word)] |= of.bits);
}

fn add_of_wave(mask: &mut Mask, bits: &[Bits]) {
    bits.iter().filter(|of| !is_of_lanes(of)).for_each(|of| mask[usize::from(of.word)] |= of.bits);
}

/// The results and sources of single lanes of quads that an instruction has to wait for.
fn quad_lanes<'a>(state: &'a State, step: &Step) -> impl Iterator<Item = (&'a Mask, &'a Mask)> {
    let own = step.quad_lane.map(usize::from);
    let all = state.quads.iter().flat_map(|quads| quads.results.iter().zip(&quads.sources).enumerate());
    all.filter(move |(lane, _)| own.is_none_or(|own| own == *lane)).map(|(_, masks)| masks)
}

impl Walk<'_> {
    #[cold]
    fn report(&mut self, hazard: Hazard) {
        if self.found.insert((hazard.at.index(), hazard.kind, hazard.bit)) {
            self.hazards.push(hazard);
        }
    }

    #[cold]
    fn report_bits(&mut self, at: usize, kind: HazardKind, met: Bits) {
        let bit = u16::from(met.word) * 64 + met.bits.trailing_zeros() as u16;
        self.report(Hazard::of_register(at, kind, bit, met.half));
    }

    /// The transfer function of an instruction.
    fn step(&mut self, at: usize, state: &mut State) {
        let steps = self.steps;
        let step = &steps.steps[at];
        if step.starts_block {
            // A reader of an address or a predicate is in the block of its write, and nothing waits for it in another
            // one (`ir3_legalize`).
            state[Set::ScalarSource][OTHER_WORD] = 0;
        }
        if step.ss {
            state.wait_ss();
        }
        if step.sy {
            state.wait_sy();
        }
        let (reads, writes) = (steps.bits(&step.read_bits), steps.bits(&step.write_bits));
        if !step.paired {
            self.results(at, step, state, reads, HazardKind::ReadBeforeResult);
            self.results(at, step, state, writes, HazardKind::WriteBeforeResult);
            self.sources(at, step, state, writes);
            self.times(at, step);
        }
        self.facts(at, step, state, reads);
        self.outstanding(step, state, reads, writes);
        self.pass(step);
    }

    /// Results of other units that an operand has to wait for.
    fn results(&mut self, at: usize, step: &Step, state: &State, bits: &[Bits], kind: fn(Flag) -> HazardKind) {
        // Predicates and addresses have no results of other units, but for `a1.x` in an early preamble.
        if let Some(met) = meets(&state[Set::Ss], bits) {
            self.report_bits(at, kind(Flag::Ss), met);
        }
        if let Some(met) = meets(&state[Set::Sy], bits) {
            self.report_bits(at, kind(Flag::Sy), met);
        }
        for lane in quad_lanes(state, step) {
            if let Some(met) = meets(lane.0, bits) {
                self.report_bits(at, kind(Flag::Sy), met);
            }
        }
        for of in bits.iter().filter(|of| usize::from(of.word) == SHARED_WORD) {
            let own = step.unit == Unit::ScalarAlu;
            let mut outstanding = 0;
            if !(own && of.half) {
                outstanding |= state[Set::ScalarHalf][SHARED_WORD];
            }
            if !own || of.half {
                outstanding |= state[Set::ScalarFull][SHARED_WORD];
            }
            if outstanding & of.bits != 0 {
                self.report_bits(at, kind(Flag::Ss), Bits { bits: outstanding & of.bits, ..*of });
            }
        }
    }

    /// Reads that a write has to wait for.
    fn sources(&mut self, at: usize, step: &Step, state: &State, writes: &[Bits]) {
        let met = meets(&state[Set::SourceSs], writes).or_else(|| meets(&state[Set::SourceSsOrSy], writes));
        let met = met.or_else(|| {
            let waits = step.unit != Unit::ScalarAlu;
            if waits { meets(&state[Set::ScalarSource], writes) } else { None }
        });
        let met = met.or_else(|| quad_lanes(state, step).find_map(|lane| meets(lane.1, writes)));
        if let Some(met) = met {
            self.report_bits(at, HazardKind::WriteBeforeRead(Flag::Ss), met);
        }
    }

    /// Slots that reads have to wait for.
    fn times(&mut self, at: usize, step: &Step) {
        if matches!(step.opcode, Opcode::End | Opcode::Chmask) {
            return;
        }
        if let Some((operand, missing)) = &step.own_read {
            let kind = HazardKind::EarlyRead { missing: *missing };
            self.report(Hazard::of_register(at, kind, operand.piece.bit, operand.half));
        }
        for operand in self.steps.operands(&step.reads) {
            let missing = self.clock.missing(operand, step.unit.is_alu());
            if missing > 0 {
                let kind = HazardKind::EarlyRead { missing };
                self.report(Hazard::of_register(at, kind, operand.piece.bit, operand.half));
            }
        }
    }

    /// Checks the facts of the wave: constants, barriers, releases.
    fn facts(&mut self, at: usize, step: &Step, state: &mut State, reads: &[Bits]) {
        let data = &self.code.instrs[Ip::new(at)].data;
        if state.consts.iter().any(|writes| writes.meets(step.read_writes)) {
            self.report(Hazard::new(at, HazardKind::ConstBeforeWrite));
        }
        if step.accesses {
            for (facts, flag) in [(WaveFacts::BARRIER_SS, Flag::Ss), (WaveFacts::BARRIER_SY, Flag::Sy)] {
                if state.wave.has(facts) {
                    self.report(Hazard::new(at, HazardKind::AccessAfterBarrier(flag)));
                }
            }
        }
        if step.opcode == Opcode::Shpe {
            for (has, flag) in [(step.ss, Flag::Ss), (step.sy, Flag::Sy)] {
                if !has {
                    self.report(Hazard::new(at, HazardKind::PreambleEnd(flag)));
                }
            }
            state.consts = Default::default();
        }
        if rules::reads_varying(step.opcode) && state.wave.has(WaveFacts::INPUTS_ENDED) {
            self.report(Hazard::new(at, HazardKind::VaryingReleased));
        }
        if releases_varyings(data) {
            if state.wave.has(WaveFacts::VARYING) {
                self.report(Hazard::new(at, HazardKind::VaryingOutstanding));
            }
            state.wave.add(WaveFacts::INPUTS_ENDED);
            state.wave.remove(WaveFacts::INPUTS_HELD);
        }
        if state.wave.has(WaveFacts::INPUTS_HELD) {
            // `demote` is a name for `kill` with its effect on other lanes: the word is the same.
            if self.release.before_kill && matches!(step.opcode, Opcode::Kill | Opcode::Demote) {
                self.report(Hazard::new(at, HazardKind::KillBeforeRelease));
            }
            if self.release.before_end && step.opcode == Opcode::End {
                self.report(Hazard::new(at, HazardKind::VaryingHeld));
            }
        }
        if step.opcode == Opcode::Ldlv {
            state.wave.add(WaveFacts::VARYING);
        }
        let takes_one_lane = || rules::takes_one_lane(data) && !self.uniform[at];
        // A sample reads the coordinates that helper lanes had when they ended.
        let helpers_are_read = || {
            let coordinates = coordinates(data, self.merged);
            let read = coordinates.as_deref().unwrap_or(reads);
            !rules::reads_ended_helpers(data.opcode) || meets(&state[Set::WithoutHelpers], read).is_some()
        };
        if state.wave.has(WaveFacts::HELPERS_ENDED)
            && (rules::uses_helpers(data) && helpers_are_read() || takes_one_lane())
        {
            self.report(Hazard::new(at, HazardKind::HelpersEnded));
        }
        if data.flags.contains(InstrFlags::EQ) {
            state.wave.add(WaveFacts::HELPERS_ENDED);
        }
        self.address(at, step, state);
        match step.const_write {
            ConstWrite::None => {}
            ConstWrite::Preamble(wait) => {
                state.consts[wait as usize].extend(step.own_write);
            }
        }
        if step.unit == Unit::Barrier {
            state.wave.add(WaveFacts::BARRIER_SS);
            state.wave.add(WaveFacts::BARRIER_SY);
        }
    }

    /// `(ul)` releases `a0.x` until it is written again.
    fn address(&mut self, at: usize, step: &Step, state: &mut State) {
        const A0: u64 = 1;
        let names = |bits: &[Bits]| bits.iter().any(|of| usize::from(of.word) == OTHER_WORD && of.bits & A0 != 0);
        if state.address_released && names(self.steps.bits(&step.read_bits)) {
            self.report(Hazard::new(at, HazardKind::AddressReleased));
        }
        if self.code.instrs[Ip::new(at)].data.flags.contains(InstrFlags::UL) {
            state.address_released = true;
        }
        if names(self.steps.bits(&step.write_bits)) {
            state.address_released = false;
        }
    }

    /// Adds the results and sources that later instructions have to wait for.
    fn outstanding(&self, step: &Step, state: &mut State, reads: &[Bits], writes: &[Bits]) {
        if state.wave.has(WaveFacts::HELPERS_ENDED) {
            add(&mut state[Set::WithoutHelpers], writes);
        }
        match step.result {
            Wait::None => {}
            Wait::Ss => add(&mut state[Set::Ss], writes),
            Wait::Sy => match step.quad_lane {
                None => add(&mut state[Set::Sy], writes),
                Some(lane) => {
                    add_of_lanes(&mut state.quads.get_or_insert_default().results[usize::from(lane)], writes);
                    add_of_wave(&mut state[Set::Sy], writes);
                }
            },
        }
        for of in writes {
            let word = usize::from(of.word);
            if word == SHARED_WORD {
                let set = match step.unit {
                    Unit::ScalarAlu if of.half => Set::ScalarHalf,
                    Unit::ScalarAlu => Set::ScalarFull,
                    _ => Set::Ss,
                };
                state[set][word] |= of.bits;
            }
            if word == OTHER_WORD && step.early_a1 {
                state[Set::Ss][word] |= of.bits & A1_BIT;
            }
        }
        match step.source {
            SourceWait::None => {}
            SourceWait::Ss => add(&mut state[Set::SourceSs], reads),
            SourceWait::SsOrSy => match step.quad_lane {
                None => add(&mut state[Set::SourceSsOrSy], reads),
                Some(lane) => {
                    add_of_lanes(&mut state.quads.get_or_insert_default().sources[usize::from(lane)], reads);
                    add_of_wave(&mut state[Set::SourceSsOrSy], reads);
                }
            },
            SourceWait::Scalar => {
                // It reads registers of lanes at once.
                let late = |of: &&Bits| usize::from(of.word) == SHARED_WORD || usize::from(of.word) == OTHER_WORD;
                let set = &mut state[Set::ScalarSource];
                reads.iter().filter(late).for_each(|of| set[usize::from(of.word)] |= of.bits);
            }
        }
    }

    /// Issue slots pass.
    fn pass(&mut self, step: &Step) {
        let issued = self.clock.now + step.slots.min(1);
        for operand in self.steps.operands(&step.writes) {
            let early_a1 = step.early_a1 && operand.file == RegFile::Address;
            match step.unit {
                _ if early_a1 => {}
                // A flag waits for it, and slots for those before it.
                Unit::ScalarAlu if step.result == Wait::Ss => {}
                Unit::Alu | Unit::ScalarAlu => self.clock.write(operand, issued),
                // The lanes that it leaves out may still have to wait for the ALU.
                _ if step.quad_lane.is_some() && !step.completes_quads => {}
                _ => self.clock.forget(operand),
            }
        }
        self.clock.now += step.slots + step.nop;
    }
}

fn is_a1(of: &Bits) -> bool {
    usize::from(of.word) == OTHER_WORD && of.bits & A1_BIT != 0
}

/// The flags that determine the meaning of the third coordinate.
const SHAPE: InstrFlags = InstrFlags::ARRAY.union(InstrFlags::DIM_3D);

/// The registers of a sample of which derivatives are taken; `None` if they are not known.
fn coordinates(data: &InstrData, merged: bool) -> Option<Vec<Bits>> {
    let Ok(Some(Access::Texture(access))) = Access::of(data) else { return None };
    let mut bits = Vec::new();
    // The layer of an array is that of the lane.
    let is_layer = |slot| slot == Slot::Layer || slot == Slot::Z && data.flags.intersection(SHAPE) == InstrFlags::ARRAY;
    for &(_, slice) in access.operands.iter().filter(|&&(slot, _)| slot.has_derivative() && !is_layer(slot)) {
        let (src, component) = data.component_source(slice.src.into(), slice.first.into());
        let src = data.srcs.get(src)?;
        let Some(place) = src.place() else { continue };
        let reg = place.reg()?;
        for piece in units::range(reg.0 + component as u16, 1, src.class, merged).ok()? {
            let word = piece.bit / 64;
            bits.push(Bits {
                word: word as u8,
                bits: ((1 << piece.width) - 1) << (piece.bit % 64),
                half: src.class.half,
            });
        }
    }
    Some(bits)
}

/// Returns true if the code up to the end of the preamble needs no registers of lanes.
fn runs_early(code: &Code, end: Option<usize>) -> bool {
    let preamble: Vec<_> = code.instrs.values().take(end.map_or(0, |end| end + 1)).map(|instr| &instr.data).collect();
    rules::can_run_early(&preamble)
}

/// Checks the instructions that must directly follow another one: nops after predication on some GPUs, an `(ss)` after
/// `resinfo`; the marks of a preamble; and the target of waves that skip the preamble.
pub fn positional(code: &Code, steps: &Steps, facts: &Facts, target: &Target, hazards: &mut Vec<Hazard>) {
    let mut open = false;
    let end = steps.steps.iter().position(|step| step.opcode == Opcode::Shpe);
    for (at, step) in steps.steps.iter().enumerate() {
        let needed = match step.opcode {
            Opcode::Predt | Opcode::Predf => {
                let second = std::mem::replace(&mut open, true);
                if second && target.quirks.predtf_nop { rules::AFTER_SECOND_PREDICATION } else { 0 }
            }
            Opcode::Prede => {
                open = false;
                if target.quirks.prede_nop { rules::AFTER_PREDE } else { 0 }
            }
            Opcode::Shps => {
                let after = end.map(|end| Ip::new(end + 1));
                if code.instrs[Ip::new(at)].target != after {
                    hazards.push(Hazard::new(at, HazardKind::PreambleTarget));
                }
                if facts.early_preamble == Some(true) && !runs_early(code, end) {
                    hazards.push(Hazard::new(at, HazardKind::EarlyPreamble));
                }
                0
            }
            _ if Some(at) <= end && code.instrs[Ip::new(at)].data.flags.contains(InstrFlags::EQ) => {
                hazards.push(Hazard::new(at, HazardKind::HelpersEndedEarly));
                0
            }
            _ if step.early_a1 && steps.bits(&step.write_bits).iter().any(is_a1) => {
                let source = code.instrs[Ip::new(at)].data.srcs.first();
                // The text of the program after a pass has no such mark since 25.1 (`mova1.u`); the code has.
                if !facts.releases_unknown && !source.is_some_and(|source| source.flags.contains(OperandFlags::R)) {
                    hazards.push(Hazard::new(at, HazardKind::AddressMark));
                }
                0
            }
            Opcode::Dsxpp1 | Opcode::Dsypp1 if !is_whole_derivative(steps, at) => {
                hazards.push(Hazard::new(at, HazardKind::LoneDerivative));
                0
            }
            Opcode::Stsc if target.quirks.stsc_duplication && !is_duplicated(code, steps, at) => {
                hazards.push(Hazard::new(at, HazardKind::StscOnce));
                0
            }
            Opcode::Resinfo if !step.writes.is_empty() => {
                if !steps.steps.get(at + 1).is_some_and(|next| next.ss) {
                    hazards.push(Hazard::new((at + 1).min(code.instrs.len() - 1), HazardKind::AfterResinfo));
                }
                0
            }
            _ => 0,
        };
        if needed > 0 {
            let nops = steps.steps[at + 1..].iter().take_while(|next| next.opcode == Opcode::Nop);
            let slots: u32 = nops.map(|nop| nop.slots).sum();
            if slots < needed {
                hazards.push(Hazard::new(at, HazardKind::AfterPredication { missing: needed - slots }));
            }
        }
    }
}

/// Returns true for an instruction of a fine derivative that has the other one (`apply_fine_deriv_macro`).
fn is_whole_derivative(steps: &Steps, at: usize) -> bool {
    let second = || steps.steps[at + 1..].iter().find(|step| step.opcode != Opcode::Nop);
    steps.steps[at].paired || second().is_some_and(|second| second.paired)
}

/// Returns true if a `stsc` is one of two with an `(ss)nop` between them (`apply_push_consts_load_macro`).
fn is_duplicated(code: &Code, steps: &Steps, at: usize) -> bool {
    let is_pair = |first: usize| {
        let data = |at: usize| code.instrs.get(Ip::new(at)).map(|instr| &instr.data);
        let waits = steps.steps.get(first + 1).is_some_and(|step| step.opcode == Opcode::Nop && step.ss);
        let operands = |at: usize| data(at).map(|data| (data.opcode, &data.srcs, &data.attrs));
        waits && operands(first).is_some() && operands(first) == operands(first + 2)
    };
    is_pair(at) || at.checked_sub(2).is_some_and(is_pair)
}

/// Checks that lanes reconverge: where they may wait is a `(jp)`, and the branch stack is deep enough.
pub fn reconvergence(code: &Code, flow: &Flow, branch_stack: u32, hazards: &mut Vec<Hazard>) {
    for (block, from) in flow.blocks.iter().zip(&flow.waits_from) {
        let Some(branch) = *from else { continue };
        let start = block.ips.start as usize;
        if !code.instrs[Ip::new(start)].data.flags.contains(InstrFlags::JP) {
            let hazard = Hazard::new(start, HazardKind::NoReconvergence);
            hazards.push(Hazard { producer: Some(branch), path: vec![branch, Ip::new(start)], ..hazard });
        }
    }
    let depth = flow.depth();
    if depth > branch_stack {
        let deepest = (0..flow.blocks.len()).max_by_key(|&at| flow.waiting[at].len()).unwrap_or(0);
        let at = flow.blocks[deepest].ips.start as usize;
        hazards.push(Hazard::new(at, HazardKind::BranchStack { depth, limit: branch_stack }));
    }
}

// The sets of registers are compared word by word: the shared registers have a word of their own.
const _: () = assert!(SHARED_WORD < OTHER_WORD && OTHER_WORD < WORDS);
