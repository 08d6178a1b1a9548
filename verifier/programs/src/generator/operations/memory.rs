//! Accesses of memory: every space, width, number of components and mask; the constant file.

use super::super::config::CONFIG;
use ir3_compiler::nir::{
    Access, AtomicOp, Builder, Def, Index, InstrData, IntrinsicOp, MemoryModes, MemorySemantics, Op, Scope, Stage,
};
use ir3_compiler::target::Generation;

use super::super::Generator;
use super::super::choices::Choices;
use super::super::control::MAX_DEPTH;
use super::super::effects::ATOMICS;
use super::{MEMORY_BITS, READ_ONLY, source};

/// Operations of 64-bit atomics.
const WIDE_ATOMICS: &[AtomicOp] =
    &[AtomicOp::Iadd, AtomicOp::Umin, AtomicOp::Umax, AtomicOp::Iand, AtomicOp::Ior, AtomicOp::Ixor, AtomicOp::Xchg];

/// Elements of a buffer that are accessed: few, so that accesses meet.
const ELEMENTS: u64 = 16;

/// The words of scratch memory that a program may access.
pub(in crate::generator) const SCRATCH_WORDS: u32 = 16;

/// A word that a preamble computes of push constants.
const BESIDE_PUSHED: i32 = 240;

/// Words that preambles write: the last ones do not fit into the instruction that stores them.
const PREAMBLE_WORDS: &[i32] = &[160, 100, 200, 252, 256, 508, 0];

/// System values that the driver puts into words of the constant file.
const FILLED: &[IntrinsicOp] = &[
    IntrinsicOp::LoadBaseWorkgroupId,
    IntrinsicOp::LoadNumWorkgroups,
    IntrinsicOp::LoadWorkgroupSize,
    IntrinsicOp::LoadSubgroupSize,
    IntrinsicOp::LoadSubgroupIdShiftIr3,
    IntrinsicOp::LoadWorkDim,
    IntrinsicOp::LoadBaseVertex,
    IntrinsicOp::LoadFirstVertex,
    IntrinsicOp::LoadBaseInstance,
    IntrinsicOp::LoadDrawId,
    IntrinsicOp::LoadIsIndexedDraw,
    IntrinsicOp::LoadFragInvocationCount,
    IntrinsicOp::LoadUserClipPlane,
    IntrinsicOp::LoadKernelInput,
    IntrinsicOp::LoadFragSizeIr3,
    IntrinsicOp::LoadFragOffsetIr3,
];

/// The low half of addresses in global memory that nothing writes, and those up to the next power of two.
const ONLY_READ: u64 = 0x10_0000;

/// The mask of all components.
pub(super) fn mask(components: u8) -> u16 {
    u16::MAX >> (16 - components)
}

/// Sizes of workgroups with barriers: of one wave, of two, and of several, the last of them not full.
const WORKGROUPS: [[u32; 3]; 5] = [[64, 1, 1], [128, 1, 1], [16, 8, 1], [16, 4, 4], [10, 10, 1]];

impl<C: Choices> Generator<'_, C> {
    fn memory_bits(&mut self) -> u8 {
        match self.swarm.memory_bits {
            0 => self.c.pick(MEMORY_BITS),
            usual if self.c.chance(CONFIG.usual_width) => usual,
            _ => self.c.pick(MEMORY_BITS),
        }
    }

    /// The width of an element of a storage buffer.
    fn buffer_bits(&mut self) -> u8 {
        match self.memory_bits() {
            8 | 16 if self.target.generation < Generation::A6xx => 32,
            bits => bits,
        }
    }

    /// The number of components of an access: rarely more than an instruction has.
    fn any_count(&mut self) -> u8 {
        let count =
            if self.c.chance(CONFIG.long_vector) { self.c.pick(&[5, 8, 8, 16]) } else { 1 + self.c.below(4) as u8 };
        self.count(count)
    }

    /// A number around the end of a field's range: components after the first may be beyond it.
    fn around(&mut self, end: u64) -> u64 {
        end + 1 - self.c.below(6) as u64
    }

    /// A mask of which at least one component is set.
    pub(super) fn any_mask(&mut self, components: u8) -> u16 {
        if self.c.even() { mask(components) } else { 1 + self.c.below(usize::from(mask(components))) as u16 }
    }

    /// Storage buffers, with both offsets of an access: in bytes, and in the units that ir3 counts.
    pub(super) fn any_buffer(&mut self) {
        if self.c.chance(CONFIG.overwritten_buffer) {
            return self.overwritten();
        }
        let kind = self.c.below(9);
        let sizes = kind == 8;
        let bits = if kind >= 6 { self.atomic_bits() } else { self.buffer_bits() };
        let only_read = kind <= 1;
        let (buffer, varies) = self
            .any_descriptor(if only_read { READ_ONLY as u64 } else { 0 }, self.target.generation != Generation::A4xx);
        let mut access = self.any_access(varies);
        access.set(Access::REORDERABLE, only_read || sizes && self.c.chance(CONFIG.reorderable_buffer));
        if sizes {
            let size = self.b.intrinsic(IntrinsicOp::GetSsboSize, 1, 32, &[buffer], [Index::Access(access)]);
            return self.result(size);
        }
        let element = self.any_offset(ELEMENTS);
        let (element, less) =
            if self.c.chance(CONFIG.less_than_known) { self.less_than_known(element) } else { (element, 0) };
        let size = u32::from(bits / 8);
        let bytes = self.shifted(element, size.trailing_zeros());
        // 64 bits are counted in halves of a word's two halves; see `ssbo_offset_unit`.
        let units = if bits == 64 { self.shifted(element, 2) } else { element };
        // A base counts units, so the offset in bytes is that of the access without it.
        let (near, far) = (self.around(128) as i32, self.around(256) as i32);
        let base = if less == 0 { self.c.pick(&[0, 0, 0, 1, 5, near, far, 300]) } else { less };
        let known = self.b.function().as_const_scalar(element);
        let [mul, offset] =
            self.any_alignment(known.map(|at| at.wrapping_add_signed(base.into()) * u64::from(size)), size);
        let base = if bits == 64 { 4 * base } else { base };
        let base = Index::Base(base);
        match kind {
            0..=3 => {
                let n = self.c.pick(if bits == 8 { &[1, 2, 3, 4] } else { &[1, 1, 2, 3, 4, 4, 5, 8] });
                let n = self.count(n);
                let indices = [base, Index::Access(access), mul, offset];
                let def = self.b.intrinsic(IntrinsicOp::LoadSsboIr3, n, bits, &[buffer, bytes, units], indices);
                self.result(def);
            }
            4 | 5 => {
                let n = 1 + self.c.below(4) as u8;
                let data = self.any_vector(bits, n);
                let indices = [base, Index::WriteMask(self.any_mask(n)), Index::Access(access), mul, offset];
                self.b.intrinsic(IntrinsicOp::StoreSsboIr3, n, bits, &[data, buffer, bytes, units], indices);
            }
            _ => {
                let (op, data) = self.any_atomic(bits);
                let indices = [Index::Access(access), Index::AtomicOp(op)];
                let def = match data[..] {
                    [compare, swap] => {
                        let loads = [Index::Access(access), Index::AlignMul(size)];
                        let compare = self.expected(compare, |b| {
                            b.intrinsic(IntrinsicOp::LoadSsboIr3, 1, bits, &[buffer, bytes, units], loads)
                        });
                        let srcs = [buffer, bytes, compare, swap, units];
                        self.b.intrinsic(IntrinsicOp::SsboAtomicSwapIr3, 1, bits, &srcs, indices)
                    }
                    _ => {
                        let srcs = [buffer, bytes, data[0], units];
                        self.b.intrinsic(IntrinsicOp::SsboAtomicIr3, 1, bits, &srcs, indices)
                    }
                };
                self.result(def);
            }
        }
    }

    /// An element beyond the first ones, and a negative number to be added to it; 0 if it is added already. Such an
    /// immediate could be folded into an instruction only if it were not negative.
    fn less_than_known(&mut self, element: Def) -> (Def, i32) {
        let less = -1 - self.c.below(15) as i32;
        let bit = self.b.constant(32, ELEMENTS);
        let element = self.b.alu(Op::Ior, &[element, bit]);
        if !self.c.even() {
            return (element, less);
        }
        let number = self.b.constant(32, less as u64);
        (self.b.alu(Op::Iadd, &[element, number]), 0)
    }

    fn atomic_bits(&mut self) -> u8 {
        if self.features.global && self.c.chance(CONFIG.wide_atomic) { 64 } else { 32 }
    }

    /// The expected value of a compare-and-swap: a value, or the result of an earlier load from there, as in loops that
    /// wait. Wide values match by chance only if they are small.
    fn expected(&mut self, value: Def, load: impl FnOnce(&mut Builder) -> Option<Def>) -> Def {
        if !self.c.even() {
            return value;
        }
        load(&mut self.b).unwrap_or(value)
    }

    /// The operation of an atomic and its operands: one, or for a compare-and-swap two.
    pub(super) fn any_atomic(&mut self, bits: u8) -> (AtomicOp, Vec<Def>) {
        if self.c.chance(CONFIG.compare_exchange) {
            // The comparison succeeds now and then only if the expected value is a small number.
            let compare = if self.c.even() { self.some_constant(bits) } else { self.value(bits) };
            return (AtomicOp::Cmpxchg, vec![compare, self.any_scalar(bits)]);
        }
        let op = self.c.pick(if bits == 64 { WIDE_ATOMICS } else { ATOMICS });
        (op, vec![self.any_scalar(bits)])
    }

    pub(super) fn any_shared(&mut self) {
        let bits = self.memory_bits();
        let atomic = self.c.chance(CONFIG.shared_atomic);
        let bits = if atomic { 32 } else { bits };
        let element = self.any_offset(64);
        let size = u32::from(bits / 8);
        let address = self.shifted(element, size.trailing_zeros());
        let far = self.around(4096 / u64::from(size)) as i32;
        let base = size as i32 * self.c.pick(&[0, 0, 1, 7, 100, far, 2000]);
        let known = self.b.function().as_const_scalar(element).map(|at| at * u64::from(size) + base as u64);
        let base = Index::Base(base);
        let [mul, offset] = self.any_alignment(known, size);
        if atomic {
            let (op, mut data) = self.any_atomic(32);
            if let [compare, _] = &mut data[..] {
                let loads = [base.clone(), Index::AlignMul(4)];
                *compare = self.expected(*compare, |b| b.intrinsic(IntrinsicOp::LoadShared, 1, 32, &[address], loads));
            }
            let srcs: Vec<Def> = std::iter::once(address).chain(data).collect();
            let name = if srcs.len() == 3 { IntrinsicOp::SharedAtomicSwap } else { IntrinsicOp::SharedAtomic };
            let def = self.b.intrinsic(name, 1, 32, &srcs, [base, Index::AtomicOp(op)]);
            return self.result(def);
        }
        // Three and four components of 64 bits are two accesses.
        let n = if bits == 64 { self.c.pick(&[1, 2, 3, 3, 4, 4]) } else { self.any_count() };
        if self.c.even() {
            let def = self.b.intrinsic(IntrinsicOp::LoadShared, n, bits, &[address], [base, mul, offset]);
            self.result(def);
        } else {
            let data = self.any_vector(bits, n);
            let indices = [base, Index::WriteMask(self.any_mask(n)), mul, offset];
            self.b.intrinsic(IntrinsicOp::StoreShared, n, bits, &[data, address], indices);
        }
    }

    pub(super) fn any_global(&mut self) {
        let atomic = self.c.chance(CONFIG.global_atomic);
        let bits = if atomic { self.atomic_bits() } else { self.memory_bits() };
        // Read-only memory may be read in any order.
        let only_read = !atomic && self.c.chance(CONFIG.only_read_address);
        let first = if only_read { ONLY_READ } else { 0 };
        let known = self.c.chance(CONFIG.known_address).then(|| first + 8 * self.c.below(32) as u64);
        let address = match known {
            Some(low) => {
                let high = self.c.below(4) as u64;
                self.b.constants(32, &[low, high])
            }
            None => {
                let (low, high) = (self.value(32), self.value(32));
                let kept = self.b.constant(32, 0xf8);
                let mut low = self.b.alu(Op::Iand, &[low, kept]);
                if only_read {
                    let first = self.b.constant(32, first);
                    low = self.b.alu(Op::Ior, &[low, first]);
                }
                self.b.vec(&[low, high])
            }
        };
        let mut access = self.any_access(false);
        access.set(Access::REORDERABLE, only_read);
        access.set(Access::NON_UNIFORM, self.c.chance(CONFIG.non_uniform));
        if atomic {
            let (op, mut data) = self.any_atomic(bits);
            let base = 8 * self.c.pick(&[0, 0, 1, -1, 40]);
            if let [compare, _] = &mut data[..] {
                let loads = [Index::Access(access), Index::AlignMul(8)];
                let words = self.b.constant(32, (base / 4) as u32 as u64);
                *compare = self
                    .expected(*compare, |b| b.intrinsic(IntrinsicOp::LoadGlobalIr3, 1, bits, &[address, words], loads));
            }
            let srcs: Vec<Def> = std::iter::once(address).chain(data).collect();
            let name = if srcs.len() == 3 { IntrinsicOp::GlobalAtomicSwapIr3 } else { IntrinsicOp::GlobalAtomicIr3 };
            let base = Index::Base(base);
            let def = self.b.intrinsic(name, 1, bits, &srcs, [base, Index::AtomicOp(op)]);
            return self.result(def);
        }
        // In words; the last ones do not fit into the instruction.
        let (near, far) = (self.around(256), self.around(1024));
        let offset = if self.c.chance(CONFIG.constant_address_offset) {
            let words = self.c.pick(&[2, 9, near, near, far, far, 5000]);
            let words = if bits == 64 { words & !1 } else { words };
            self.b.constant(32, words)
        } else {
            self.any_offset(ELEMENTS)
        };
        let offset = if bits == 64 {
            let even = self.b.constant(32, !1);
            self.b.alu(Op::Iand, &[offset, even])
        } else {
            offset
        };
        let words = self.b.function().as_const_scalar(offset);
        let known = known.and_then(|low| words.map(|words| low + 4 * words));
        let [mul, align] = self.any_alignment(known, u32::from(bits / 8).min(8));
        let n = self.any_count();
        if only_read || self.c.even() {
            let range = Index::Range(self.c.pick(&[0, 0, 1, 64]));
            let indices = [Index::Access(access), mul, align, Index::RangeBase(self.c.pick(&[0, 0, 16])), range];
            let def = self.b.intrinsic(IntrinsicOp::LoadGlobalIr3, n, bits, &[address, offset], indices);
            self.result(def);
        } else {
            let data = self.any_vector(bits, n);
            let indices = [Index::Access(access), mul, align];
            self.b.intrinsic(IntrinsicOp::StoreGlobalIr3, n, bits, &[data, address, offset], indices);
        }
    }

    /// Declares scratch memory and writes all of it that the program accesses: its start is undefined.
    pub(in crate::generator) fn scratch_memory(&mut self) {
        if self.weights.operation == 0 || !self.target.pvtmem || !self.c.even() {
            return;
        }
        // Offsets of instructions reach 4096 bytes. Spill slots come after this memory: it may be on both sides of
        // that.
        const REACH: u32 = 4096 - 4 * SCRATCH_WORDS;
        let start = self.c.pick(&[0, 0, 64, REACH - 16, REACH - 48, REACH - 128, REACH, 8192]);
        for first in (0..SCRATCH_WORDS).step_by(4) {
            let address = self.b.constant(32, u64::from(start + 4 * first));
            let data = self.any_vector(32, 4);
            let indices = [Index::AlignMul(16), Index::WriteMask(0xf)];
            self.b.intrinsic(IntrinsicOp::StoreScratch, 4, 32, &[data, address], indices);
        }
        self.b.shader_mut().info.scratch_size = start + 4 * SCRATCH_WORDS;
        self.scratch = Some(start);
    }

    pub(super) fn any_scratch(&mut self) {
        let Some(start) = self.scratch else { return };
        let bits = self.memory_bits();
        let bytes = u32::from(bits) / 8;
        let n = if bits == 64 { self.c.pick(&[1, 2, 3, 3, 4, 4]) } else { 1 + self.c.below(4) as u8 };
        // The last element starts where all components are inside.
        let elements = (4 * SCRATCH_WORDS / bytes / 4).next_power_of_two();
        let element = self.any_offset(u64::from(elements) / 2);
        let offset = self.shifted(element, bytes.trailing_zeros());
        let start = self.b.constant(32, start.into());
        let address = match self.b.function().as_const_scalar(element) {
            Some(number) if self.c.even() => {
                let start = self.b.function().as_const_scalar(start).unwrap_or(0);
                self.b.constant(32, start + (number << bytes.trailing_zeros()))
            }
            _ => self.b.alu(Op::Iadd, &[offset, start]),
        };
        let known = self.b.function().as_const_scalar(address);
        let [mul, align] = self.any_alignment(known, bytes);
        if self.c.even() {
            let def = self.b.intrinsic(IntrinsicOp::LoadScratch, n, bits, &[address], [mul, align]);
            self.result(def);
        } else {
            let data = self.any_vector(bits, n);
            let indices = [mul, align, Index::WriteMask(self.any_mask(n))];
            self.b.intrinsic(IntrinsicOp::StoreScratch, n, bits, &[data, address], indices);
        }
    }

    pub(super) fn any_uniform_buffer(&mut self) {
        let (buffer, varies) = self.any_descriptor(0, true);
        let bits = if self.c.chance(CONFIG.wide_uniform_buffer) { 64 } else { 32 };
        let most = if bits == 64 { 2 } else { 4 };
        let component = self.c.below(most) as u8;
        let n = 1 + self.c.below(most - usize::from(component)) as u8;
        let offset = self.any_number(32);
        let mut access = self.any_access(varies);
        access.set(Access::REORDERABLE, self.c.chance(CONFIG.reorderable_uniform_buffer));
        let base = Index::Base(self.c.pick(&[0, 0, 1, 17, 300]));
        let indices = [Index::Access(access), base, Index::Component(component)];
        let def = self.b.intrinsic(IntrinsicOp::LoadUboVec4, n, bits, &[buffer, offset], indices);
        self.result(def);
    }

    /// The constant file: words beyond the reach of operands relative to an address, halves, two words at once.
    pub(super) fn any_constant(&mut self) {
        let mut bits = self.c.pick(&[32, 32, 16, 64]);
        let n = 1 + self.c.below(4) as u8;
        let mut base = Index::Base(self.c.pick(&[0, 3, 60, 160, 200, 250, 255, 256, 500, 508, 512, 700]));
        let mut offset = self.any_number(16);
        if !self.stored_words.is_empty() {
            (bits, base, offset) = (32, self.any_constant_base(), self.b.constant(32, 0));
        }
        let def = self.b.intrinsic(IntrinsicOp::LoadConstIr3, n, bits, &[offset], [base]);
        self.result(def);
    }

    /// Reads the last words of the constant file, so that no word is free for immediates. The driver's words would need
    /// free words, too.
    pub(in crate::generator) fn last_constants(&mut self) {
        let is_filled = |data: &InstrData| matches!(data, InstrData::Intrinsic(it) if FILLED.contains(&it.op));
        let needs_words = self.target.generation < Generation::A6xx || self.b.function().instrs.values().any(is_filled);
        if self.weights.operation == 0 || needs_words || !self.c.chance(CONFIG.last_constants) {
            return;
        }
        let limits = &self.target.const_limits;
        let vec4s = match self.b.shader().stage {
            Stage::Compute => limits.compute,
            Stage::Fragment => limits.fragment,
            _ => limits.geometry,
        };
        let zero = self.b.constant(32, 0);
        let base = Index::Base(4 * vec4s as i32 - 4);
        if let Some(words) = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 4, 32, &[zero], [base]) {
            self.define_seen(words, 256);
        }
    }

    /// A preamble: words of the constant file that are computed before the program, and read in it.
    pub(in crate::generator) fn preamble(&mut self) {
        let has_none = self.features.driver || self.target.generation < Generation::A6xx;
        if self.weights.operation == 0 || has_none || !self.c.chance(CONFIG.preamble) {
            return;
        }
        let Some(start) = self.b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], []) else { return };
        self.has_preamble = true;
        self.b.begin_if(start);
        let zero = self.b.constant(32, 0);
        if self.target.generation >= Generation::A7xx && self.c.chance(CONFIG.copied_push_constants) {
            self.copied_push_constants(zero);
        }
        for first in PREAMBLE_WORDS.iter().take(1 + self.c.below(PREAMBLE_WORDS.len())) {
            let n = 1 + self.c.below(4) as u8;
            let base = [self.any_constant_base()];
            let loaded = self.b.intrinsic(IntrinsicOp::LoadConstIr3, n, 32, &[zero], base);
            let Some(mut words) = loaded else { continue };
            if self.c.chance(CONFIG.constants_in_preamble) {
                words = self.constant_vector(32, n);
            }
            if self.c.chance(CONFIG.computed_in_preamble) {
                words = self.computed_words(words, n);
            }
            // The previous content is read before, and used after.
            let old_bits = self.c.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 16, 32]);
            let old = if old_bits == 0 { None } else { self.old_words(*first, n, old_bits) };
            self.b.intrinsic(IntrinsicOp::StoreConstIr3, n, 32, &[words], [Index::Base(*first)]);
            self.stored_words.push(*first);
            if let Some(old) = old {
                let old = match old_bits {
                    16 => {
                        let sum = self.b.alu(Op::Iadd, &[old, old]);
                        self.b.alu(Op::I2i32, &[sum])
                    }
                    _ if self.c.even() => {
                        let op = self.c.pick(&[Op::Iadd, Op::Fadd, Op::Fmul, Op::Imax]);
                        self.b.alu_swizzled(op, n, &[source(old, n), source(words, n)])
                    }
                    _ => old,
                };
                let beside = first + 8;
                self.b.intrinsic(IntrinsicOp::StoreConstIr3, n, 32, &[old], [Index::Base(beside)]);
                self.stored_words.push(beside);
            }
        }
        for at in 0..self.c.pick(&[0, 1, 1, 2]) {
            // A number that is loaded may be of a word that the first one has written.
            let loads = at == 0;
            let buffer = if loads && self.c.chance(CONFIG.preamble_buffer) {
                self.uniform_number(2)
            } else {
                self.any_descriptor(0, false).0
            };
            let vec4 = match self.c.pick(&[0, 3, 255, 256, 300, 999]) {
                999 if loads => self.uniform_number(16),
                known => self.b.constant(32, known),
            };
            let indices = [
                Index::Base(self.c.pick(&[0, 100, 120, 212, 220, 256, 300, 520])),
                Index::Range(1 + self.c.below(3) as u32),
            ];
            self.b.intrinsic(IntrinsicOp::CopyUboToUniformIr3, 0, 0, &[buffer, vec4], indices);
        }
        self.b.intrinsic(IntrinsicOp::PreambleEndIr3, 0, 0, &[], []);
        self.stored_words.clear();
        self.b.end_if();
    }

    /// At the start of a preamble: push constants that are copied to words of the constant file that nothing else
    /// writes, some of which it reads.
    fn copied_push_constants(&mut self, zero: Def) {
        let (to, from) = (self.c.pick(&[48, 52, 64]), self.c.pick(&[0, 4, 20, 128]));
        let range = self.c.pick(&[4, 8, 12, 32]);
        let target = self.b.constant(32, to as u64);
        let indices = [Index::Base(from), Index::Range(range)];
        self.b.intrinsic(IntrinsicOp::CopyPushConstToUniformIr3, 0, 0, &[target], indices);
        let words = (to..to + range as i32).step_by(4);
        if self.c.even() {
            let read = to + self.c.below(range as usize) as i32;
            let word = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(read)]);
            if let Some(word) = word {
                self.b.intrinsic(IntrinsicOp::StoreConstIr3, 1, 32, &[word], [Index::Base(BESIDE_PUSHED)]);
                self.stored_words.push(BESIDE_PUSHED);
            }
        }
        self.stored_words.extend(words);
    }

    /// In a preamble: words that are in the constant file before it stores others there, sometimes with a modifier that
    /// their readers may have.
    fn old_words(&mut self, first: i32, n: u8, bits: u8) -> Option<Def> {
        let zero = self.b.constant(32, 0);
        let old = self.b.intrinsic(IntrinsicOp::LoadConstIr3, n, bits, &[zero], [Index::Base(first)])?;
        if !self.c.chance(CONFIG.modified_old_words) {
            return Some(old);
        }
        let op = self.c.pick(&[Op::Ineg, Op::Iabs, Op::Fneg, Op::Fabs, Op::Inot]);
        Some(self.b.alu_swizzled(op, n, &[source(old, n)]))
    }

    /// The words that a preamble computes from words that it has loaded: `n` results of the one lane that runs it,
    /// sometimes with a branch.
    fn computed_words(&mut self, words: Def, n: u8) -> Def {
        let mark = self.pool.mark();
        self.pool.only_uniform = true;
        for component in 0..n {
            let word = self.b.channel(words, component);
            self.define(word);
        }
        let count = self.c.below(6);
        (0..count).for_each(|_| self.operation());
        if self.c.chance(CONFIG.branch_in_preamble) {
            let (condition, outer) = (self.value(1), self.value(32));
            let phi = self.one_arm(condition, outer, |this| {
                let count = 1 + this.c.below(3);
                (0..count).for_each(|_| this.operation());
                this.value(32)
            });
            self.define(phi);
        }
        let words: Vec<Def> = (0..n).map(|_| self.value(32)).collect();
        self.pool.only_uniform = false;
        self.pool.release(mark);
        self.b.vec(&words)
    }

    /// A memory barrier, or, in convergent code, one of the workgroup.
    pub(super) fn any_barrier(&mut self) {
        if !self.features.compute {
            return self.any_arithmetic();
        }
        if self.b.depth() >= MAX_DEPTH || !self.c.chance(CONFIG.barrier_in_branch) {
            return self.barrier();
        }
        // Emitted at the end of a convergent block; code that depends on the barrier is in the next one.
        let number = self.uniform_number(2);
        let zero = self.b.constant(32, 0);
        let condition = self.b.alu(Op::Ine, &[number, zero]);
        self.b.begin_if(condition);
        let mark = self.pool.mark();
        self.any_buffer();
        self.barrier();
        self.pool.release(mark);
        self.b.end_if();
        self.any_buffer();
    }

    fn barrier(&mut self) {
        let compute = self.b.shader().stage == Stage::Compute;
        // No lane waits for others that are not of its subgroup.
        let alone: &[Scope] = &[Scope::None, Scope::None, Scope::Invocation, Scope::Subgroup, Scope::ShaderCall];
        let execution = match compute && self.is_convergent() && self.c.even() {
            true => self.c.pick(&[Scope::Workgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device]),
            false => self.c.pick(alone),
        };
        if !alone.contains(&execution) {
            // Most workgroups have waves to wait for.
            self.b.shader_mut().info.workgroup_size = Some(self.c.pick(&WORKGROUPS));
        }
        let both = MemorySemantics::ACQUIRE | MemorySemantics::RELEASE;
        let more = MemorySemantics::AVAILABLE | MemorySemantics::VISIBLE;
        let semantics = match self.c.below(8) {
            0 | 1 => MemorySemantics::ACQUIRE,
            2 | 3 => MemorySemantics::RELEASE,
            4 => both,
            5 => both | more,
            6 => MemorySemantics::AVAILABLE,
            _ => MemorySemantics::empty(),
        };
        let mut modes = MemoryModes::empty();
        modes.set(MemoryModes::SSBO, self.c.even());
        modes.set(MemoryModes::SHARED, compute && self.c.even());
        modes.set(MemoryModes::GLOBAL, self.c.chance(CONFIG.orders_global));
        modes.set(MemoryModes::IMAGE, self.c.chance(CONFIG.orders_images));
        // Memories of a lane alone, and those that nothing writes.
        if self.c.chance(CONFIG.orders_another) {
            modes |= MemoryModes::from_bits_truncate(1 << self.c.below(10));
        }
        let scope = self.c.pick(&Scope::ALL);
        let indices = [
            Index::ExecutionScope(execution),
            Index::MemoryScope(scope),
            Index::MemorySemantics(semantics),
            Index::MemoryModes(modes),
        ];
        self.b.intrinsic(IntrinsicOp::Barrier, 0, 0, &[], indices);
    }
}
