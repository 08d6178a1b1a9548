//! Every operation that selection accepts, at every width, with random indices.
//!
//! The other profiles have lists of the operations that shaders use most. This one draws from the tables: arithmetic
//! from nir's table of operations, as far as selection accepts them ([`accepted`](super::accepted)), and each family of
//! intrinsics with all its indices (base, component, mask, access, descriptor set), offsets that are constant or
//! computed, and all widths. A mistake of a pass that only a rare form shows is found by the program that has this
//! form.
//!
//! Programs stay such that runs of them have a meaning: memory that starts undefined is written first, values of other
//! lanes are read where all lanes are active, and a buffer that an access calls reorderable is never written.

mod arrays;
mod images;
mod inputs;
mod lanes;
mod memory;
mod operands;
mod patterns;
mod probe;
mod swarm;
mod sweep;
mod textures;

use super::config::CONFIG;
use ir3_compiler::nir::{Access, AluSrc, AluType, Def, Index, IntrinsicOp, JumpKind, Op, Operand, Stage};
use ir3_compiler::target::Generation;

use super::Generator;
use super::accepted::{part_bits, part_operations};
use super::choices::Choices;
use super::control::MAX_DEPTH;

pub(super) use images::Image;
pub(super) use operands::source;
use swarm::Family;
pub(super) use swarm::{Swarm, weight};

/// Component counts of operations; vectors of 8 and 16 are rare in shaders, and split by every pass.
const COMPONENTS: &[u8] = &[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 8, 8, 16, 16];

/// The widths of components in memory.
const MEMORY_BITS: &[u8] = &[32, 32, 32, 16, 64, 8];

/// The first buffer or image that is only read: an access of it may be reordered with any other.
pub(super) const READ_ONLY: usize = 4;

impl<C: Choices> Generator<'_, C> {
    /// An operation of any kind.
    pub(super) fn operation(&mut self) {
        if self.pool.only_uniform {
            return match self.c.below(8) {
                0 => self.any_constant(),
                1 if self.features.ubos => self.any_uniform_buffer(),
                _ => self.any_arithmetic(),
            };
        }
        let family = self.swarm.family(self.c);
        self.operation_of(family);
    }

    /// An operation of a family; arithmetic if the family has none here.
    fn operation_of(&mut self, family: Family) {
        let stage = self.b.shader().stage;
        let compute = stage == Stage::Compute && self.features.compute;
        match family {
            Family::Buffer if self.features.compute => self.any_buffer(),
            Family::Shared if compute => self.any_shared(),
            Family::Global if self.features.global => self.any_global(),
            Family::Scratch if self.scratch.is_some() => self.any_scratch(),
            Family::UniformBuffer if self.features.ubos => self.any_uniform_buffer(),
            Family::ConstantFile => self.any_constant(),
            Family::Image if self.features.images => self.any_image(),
            Family::Texture => self.any_texture(),
            Family::Lanes => self.any_lanes(),
            Family::Input => self.any_input(),
            Family::Array => self.any_array(),
            Family::Barrier if self.features.compute => self.any_barrier(),
            Family::Kill if stage == Stage::Fragment && self.c.chance(CONFIG.kill_of_fragment) => self.any_kill(),
            Family::Kill => self.any_halt(),
            _ => self.any_arithmetic(),
        }
    }

    /// Ends lanes, or makes them helpers: those where a condition holds, by one operation or in a branch.
    fn any_kill(&mut self) {
        if self.killed || self.computed_varyings {
            return self.any_arithmetic();
        }
        let mut condition =
            if self.c.chance(CONFIG.late_kill_condition) { self.late_condition() } else { self.any_condition() };
        if self.c.chance(CONFIG.first_lane_before_kill) && self.features.lanes {
            self.first_of_lanes();
        }
        let (always, demotes) = (self.c.chance(CONFIG.unconditional_kill), self.c.chance(CONFIG.kill_demotes));
        // A query of the lanes active before the kill, used by a branch after it. The lanes that decide it often end.
        let mut vote = None;
        if self.c.chance(CONFIG.query_before_kill) {
            let (asked, deciding) = self.question();
            vote = asked;
            if self.c.even() {
                condition = deciding.or(vote).unwrap_or(condition);
            }
        }
        if always {
            self.b.begin_if(condition);
            let op = if demotes { IntrinsicOp::Demote } else { IntrinsicOp::Terminate };
            self.b.intrinsic(op, 0, 0, &[], []);
            self.b.end_if();
        } else {
            let op = if demotes { IntrinsicOp::DemoteIf } else { IntrinsicOp::TerminateIf };
            self.b.intrinsic(op, 0, 0, &[condition], []);
        }
        self.killed = true;
        if self.c.even() && self.features.lanes {
            // A query of the remaining lanes, at once.
            self.first_of_lanes();
        }
        if let Some(vote) = vote {
            self.branch_on(vote, 20);
        }
    }

    /// A condition that is known some time after its operands.
    fn late_condition(&mut self) -> Def {
        let (x, y) = (self.varying_number(), self.any_scalar(32));
        let op = self.c.pick(&[Op::Frcp, Op::Fexp2, Op::Fsqrt, Op::Fsin]);
        let x = self.b.alu(op, &[x]);
        let op = self.c.pick(&[Op::Flt, Op::Fge, Op::Ult, Op::Ine]);
        self.b.alu(op, &[x, y])
    }

    /// A value of the first lane, which may have been there for long.
    fn first_of_lanes(&mut self) {
        let value = self.varying_number();
        if let Some(first) = self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, 32, &[value], []) {
            self.define_seen(first, 256);
        }
    }

    /// Ends the program for lanes where a condition holds, with the outputs that are stored by then.
    fn any_halt(&mut self) {
        if self.killed || self.computed_varyings || self.b.depth() >= MAX_DEPTH {
            return self.any_arithmetic();
        }
        let mut condition = self.any_condition();
        if self.b.shader().stage != Stage::Compute && self.b.depth() == 0 {
            self.has_early_outputs = true;
            for slot in 0..1 + self.c.below(3) as i32 {
                let (n, zero) = (1 + self.c.below(4) as u8, self.b.constant(32, 0));
                let data = self.any_vector(32, n);
                self.output(data, n, slot, zero, false);
            }
            condition = self.any_condition();
        }
        self.b.begin_if(condition);
        if self.features.compute && self.c.chance(CONFIG.store_before_halt) {
            let mark = self.pool.mark();
            self.any_buffer();
            self.pool.release(mark);
        }
        let kind = self.c.pick(&[JumpKind::Halt, JumpKind::Return]);
        self.b.jump(kind);
        self.b.end_if();
        self.killed = true;
    }

    /// Defines a value of each width, for the first operations.
    pub(super) fn every_width(&mut self) {
        if self.weights.operation == 0 {
            return;
        }
        for op in [Op::U2u8, Op::Pack64_2x32Split, Op::Vec3] {
            let srcs: Vec<Def> = op.info().inputs.iter().map(|_| self.value(32)).collect();
            let def = self.b.alu(op, &srcs);
            self.define(def);
        }
        let halves: Vec<Def> = (0..4).map(|_| self.value(16)).collect();
        let vector = self.b.vec(&halves);
        self.define(vector);
    }

    fn any_arithmetic(&mut self) {
        if !self.pool.only_uniform && self.c.chance(self.swarm.patterns) {
            return self.pattern();
        }
        if !self.pool.only_uniform && self.c.chance(self.swarm.chains) {
            return self.chain();
        }
        if !self.pool.only_uniform && self.c.chance(self.swarm.probes) {
            return if self.c.chance(CONFIG.twins) { self.twins() } else { self.probe() };
        }
        let (op, bits) = match self.c.chance(CONFIG.part_operation) {
            true => self.c.pick(part_operations(&self.target)),
            false => self.swarm.operation(self.c, &self.target),
        };
        if !self.pool.only_uniform && self.c.chance(CONFIG.operations_in_order) && self.in_order(op, bits).is_some() {
            return;
        }
        if !self.pool.only_uniform && self.c.chance(CONFIG.operations_in_a_row) && self.in_a_row(op, bits).is_some() {
            return;
        }
        let components =
            if self.swarm.scalars && self.c.chance(CONFIG.scalar_operation) { 1 } else { self.c.pick(COMPONENTS) };
        let components = self.count(components);
        if self.alu(op, bits, components).is_none() {
            self.alu(Op::Mov, 32, components);
        }
    }

    /// An operation on the components of a vector in their order, with scalars as other operands, whose result is read
    /// as a whole: a candidate for one repeated instruction. None if there is no such vector, or no reader of the
    /// result.
    fn in_order(&mut self, op: Op, bits: u8) -> Option<()> {
        let info = op.info();
        let width = |input: &Operand| input.ty.width_or(bits);
        let place = self.c.below(info.inputs.len().max(1));
        let input = info.inputs.get(place).filter(|_| info.is_per_component() && part_bits(op).is_none())?;
        let vector = self.pool.vector(self.c, Some(width(input)))?;
        let count = vector.components.min(4);
        let srcs: Vec<AluSrc> = (info.inputs.iter().enumerate())
            .map(|(i, input)| match i == place {
                true => AluSrc::identity(vector.def),
                false => AluSrc::scalar(self.value(width(input)), 0),
            })
            .collect();
        let def = self.b.alu_swizzled(op, count, &srcs);
        self.define(def);
        let bits = self.b.function().defs[def].bit_size;
        matches!(bits, 16 | 32).then(|| self.read_vector((def, bits, count)))
    }

    /// A vector each component of which is an operation on the one before it: nearly a candidate for one repeated
    /// instruction. None if the operation has not two operands and a result of one width.
    fn in_a_row(&mut self, op: Op, bits: u8) -> Option<()> {
        let info = op.info();
        let is_plain = |ty: AluType| ty.size == 0 || ty.size == bits;
        let fits = info.is_per_component() && info.inputs.len() == 2 && part_bits(op).is_none();
        let types = info.inputs.iter().map(|input| input.ty).chain([info.output.ty]);
        if !fits || !matches!(bits, 16 | 32) || !types.into_iter().all(is_plain) {
            return None;
        }
        let other = self.any_scalar(bits);
        let mut parts = vec![self.value(bits)];
        for _ in 0..2 + self.c.below(3) {
            let last = parts[parts.len() - 1];
            let srcs = if info.commutes() && self.c.even() { [other, last] } else { [last, other] };
            parts.push(self.b.alu(op, &srcs));
        }
        // The first one may be in another register.
        let skipped = usize::from(parts.len() > 4 || self.c.even());
        let vector = self.b.vec(&parts[skipped..]);
        self.define(vector);
        self.read_vector((vector, bits, (parts.len() - skipped) as u8));
        Some(())
    }

    /// The operations that programs are drawn from.
    pub(super) fn drawn_operations(&self) -> &'static [(Op, u8)] {
        swarm::all(&self.target, self.features.driver)
    }

    /// A number of components, or the most that a vector has in SPIR-V.
    fn count(&self, components: u8) -> u8 {
        if self.features.driver { components.min(4) } else { components }
    }

    /// True where all lanes of the wave execute the same instructions, and none has ended.
    fn is_convergent(&self) -> bool {
        self.divergence == 0 && !self.killed
    }

    /// A scalar of a width, sometimes a constant.
    fn any_scalar(&mut self, bits: u8) -> Def {
        if self.c.chance(self.swarm.constants / 2) { self.some_constant(bits) } else { self.value(bits) }
    }

    /// A condition, rarely a constant.
    fn any_condition(&mut self) -> Def {
        if self.c.chance(self.swarm.constants / 4) { self.some_constant(1) } else { self.value(1) }
    }

    /// A vector of a width, from the pool, made of scalars of it, or of constants.
    pub(super) fn any_vector(&mut self, bits: u8, components: u8) -> Def {
        if self.c.chance(self.swarm.constants / 4) {
            return self.constant_vector(bits, components);
        }
        if components > 1
            && self.c.chance(CONFIG.vector_of_pool)
            && let Some(vector) = self.pool.vector(self.c, Some(bits))
            && vector.components == components
        {
            return vector.def;
        }
        let scalars: Vec<Def> = (0..components).map(|_| self.value(bits)).collect();
        self.b.vec(&scalars)
    }

    /// An offset below a power of two: a constant, or computed.
    fn any_offset(&mut self, limit: u64) -> Def {
        if self.c.chance(self.swarm.constant_offsets) {
            let at = self.c.below(limit as usize) as u64;
            return self.b.constant(32, at);
        }
        let value = self.varying_number();
        let mask = self.b.constant(32, limit - 1);
        self.b.alu(Op::Iand, &[value, mask])
    }

    /// A number whose low bits may differ between lanes: those of floats hardly do.
    fn varying_number(&mut self) -> Def {
        match (self.lane, self.c.below(4)) {
            (Some(lane), 0) => lane,
            (_, 1) if !self.raw.is_empty() => self.c.pick(&self.raw),
            _ => self.value(32),
        }
    }

    /// A small number that is constant, or the same in all lanes, or differs between them.
    fn any_number(&mut self, limit: u64) -> Def {
        if self.c.chance(CONFIG.number_of_lane) { self.any_offset(limit) } else { self.uniform_number(limit) }
    }

    /// A small number that is the same in all lanes: a constant, or one of the constant file.
    fn uniform_number(&mut self, limit: u64) -> Def {
        if self.c.chance(CONFIG.constant_number) {
            let number = self.c.below(limit as usize) as u64;
            return self.b.constant(32, number);
        }
        self.loaded_number(limit)
    }

    /// A small number of the constant file.
    fn loaded_number(&mut self, limit: u64) -> Def {
        let zero = self.b.constant(32, 0);
        let base = [self.any_constant_base()];
        let word = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], base);
        let mask = self.b.constant(32, limit - 1);
        self.b.alu(Op::Iand, &[word.unwrap_or(zero), mask])
    }

    /// The first of up to four words of the constant file. Stores of a preamble are available after its end: in it,
    /// other words are read.
    fn any_constant_base(&mut self) -> Index {
        const NEVER_STORED: i32 = 40;
        let mut base = 4 * self.c.below(32) as i32;
        if self.c.chance(CONFIG.straddling_base) {
            // Over the end of a vec4.
            base += 1 + self.c.below(3) as i32;
        }
        let is_stored = self.stored_words.iter().any(|stored| (base - stored).abs() < 4);
        Index::Base(if is_stored { NEVER_STORED } else { base })
    }

    /// A number times a power of two.
    fn shifted(&mut self, number: Def, by: u32) -> Def {
        if let Some(value) = self.b.function().as_const_scalar(number)
            && self.c.chance(CONFIG.folded_shift)
        {
            return self.b.constant(32, value << by);
        }
        let by = self.b.constant(32, by.into());
        self.b.alu(Op::Ishl, &[number, by])
    }

    /// A random true statement about the alignment of an address, of any strength. The address is known, or a multiple
    /// of the size of an element.
    fn any_alignment(&mut self, address: Option<u64>, bytes: u32) -> [Index; 2] {
        if self.c.chance(CONFIG.unknown_alignment) {
            return [Index::AlignMul(0), Index::AlignOffset(0)];
        }
        let (mul, offset) = match address.filter(|_| self.c.chance(CONFIG.known_alignment)) {
            Some(address) => {
                let mul = 1 << self.c.below(7);
                (mul, address as u32 % mul)
            }
            None if self.c.chance(CONFIG.smaller_alignment) => {
                (1 << self.c.below(bytes.trailing_zeros() as usize + 1), 0)
            }
            None => (bytes, 0),
        };
        [Index::AlignMul(mul), Index::AlignOffset(offset)]
    }

    /// A number to add to the constant index of a descriptor: sometimes so large that a field of 4, 6 or 8 bits does
    /// not hold the sum. The indices of written and of read-only descriptors remain disjoint.
    fn far_descriptor(&mut self) -> u64 {
        if self.target.generation >= Generation::A6xx && self.c.chance(CONFIG.far_descriptor) {
            self.c.pick(&[12, 62, 256, 1022])
        } else {
            0
        }
    }

    /// A descriptor, bound or bindless, from number `first` on, and true if its number is not constant.
    fn any_descriptor(&mut self, first: u64, can_vary: bool) -> (Def, bool) {
        // A number that all lanes share needs no mark.
        let is_shared = self.features.driver && can_vary && self.c.chance(CONFIG.shared_descriptor);
        let varies = !is_shared && can_vary && self.c.chance(CONFIG.computed_descriptor);
        let mut index = if is_shared {
            self.loaded_number(2)
        } else if varies {
            self.any_number(2)
        } else {
            let number = self.c.below(2) as u64 + self.far_descriptor();
            self.b.constant(32, number)
        };
        if first != 0 {
            let first = self.b.constant(32, first);
            index = match self.b.function().as_const_scalar(index) {
                Some(number) => {
                    let number = number + self.b.function().as_const_scalar(first).unwrap_or(0);
                    self.b.constant(32, number)
                }
                None => self.b.alu(Op::Iadd, &[index, first]),
            };
        }
        if self.features.ubos && self.c.chance(self.swarm.bindless) {
            let set = Index::DescSet(self.c.below(5) as u32);
            if let Some(handle) = self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[index], [set]) {
                return (handle, varies);
            }
        }
        (index, varies)
    }

    /// The qualifiers of an access whose descriptor may vary.
    fn any_access(&mut self, varies: bool) -> Access {
        let mut access = Access::empty();
        access.set(Access::NON_UNIFORM, varies);
        access.set(Access::COHERENT, self.c.chance(CONFIG.coherent));
        access.set(Access::VOLATILE, self.c.chance(CONFIG.volatile));
        access.set(Access::NON_TEMPORAL, self.c.chance(CONFIG.non_temporal));
        // Earlier passes use these flags; this compiler ignores them.
        for flag in [
            Access::RESTRICT,
            Access::READONLY,
            Access::WRITEONLY,
            Access::INCLUDE_HELPERS,
            Access::SPECULATABLE,
            Access::KEEP_SCALAR,
        ] {
            access.set(flag, self.c.chance(CONFIG.unused_access_flag));
        }
        access
    }
}

#[cfg(test)]
mod tests {
    use super::super::accepted::{IntrinsicForm, intrinsics, operations};
    use super::super::{Features, Profile, from_seed, from_seed_within};
    use super::*;
    use ir3_compiler::nir::{Components, InstrData};
    use ir3_compiler::target::Target;
    use rustc_hash::FxHashSet;

    /// One GPU of each kind.
    const GPUS: [&str; 8] = ["a306", "a420", "a540", "a618", "a630", "a660", "a730", "a750"];

    #[test]
    fn selection_accepts_every_program() {
        for gpu in GPUS {
            let target = Target::by_name(gpu).expect("a GPU");
            for seed in 0..100 {
                let shader = from_seed(seed, Profile::Operations, Features::of(&target)).shader;
                if let Err(error) = ir3_compiler::select::run(&shader, &target) {
                    panic!("{gpu}, seed {seed}: {error}");
                }
            }
        }
    }

    /// Returns true if a form makes sense only together with others that the GPU lacks.
    fn is_useless(form: &IntrinsicForm, features: Features) -> bool {
        let needs_a6xx = form.op.name().starts_with("preamble_") || form.op.name().starts_with("bindless_");
        let needs_compute = form.stage == Stage::Compute || form.op == IntrinsicOp::Barrier;
        needs_a6xx && !features.ubos || needs_compute && !features.compute
    }

    /// Nearly each intrinsic that selection accepts is generated, with each width and each number of components.
    #[test]
    fn every_accepted_intrinsic_is_generated() {
        let (mut never, mut all) = (Vec::new(), 0);
        for gpu in GPUS {
            let target = Target::by_name(gpu).expect("a GPU");
            let features = Features::of(&target);
            let accepted = || intrinsics(&target).iter().filter(|form| !is_useless(form, features));
            let mut widths: FxHashSet<_> = accepted().map(|form| (form.op, form.bits)).collect();
            let mut counts: FxHashSet<_> = accepted().map(|form| (form.op, form.components)).collect();
            assert!(widths.len() > 60, "{gpu}: {}", widths.len());
            all += widths.len() + counts.len();
            for seed in 0..3000 {
                let function = from_seed_within(seed, 200, Profile::Operations, features).shader.entry;
                for (_, instr) in function.instrs_in_order() {
                    if let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] {
                        let vector = intrinsic.op.info().srcs.iter().position(|&src| src == Components::Vector);
                        let shape = vector.map(|i| intrinsic.srcs[i]).or(intrinsic.def);
                        let (bits, components) = shape
                            .map_or((32, 1), |def| (function.defs[def].bit_size, function.defs[def].num_components));
                        widths.remove(&(intrinsic.op, bits));
                        counts.remove(&(intrinsic.op, components));
                    }
                }
            }
            never.extend(widths.into_iter().map(|(op, bits)| format!("{gpu}: {}, {bits} bits", op.name())));
            never.extend(counts.into_iter().map(|(op, n)| format!("{gpu}: {}, {n} components", op.name())));
        }
        never.sort();
        // Rare shapes need more programs than a test has.
        assert!(10 * never.len() < all, "{} of {all}: {never:#?}", never.len());
    }

    #[test]
    fn every_accepted_operation_is_generated() {
        let mut missing: FxHashSet<(Op, u8)> =
            operations(&Target::by_name("a660").expect("a GPU")).iter().copied().collect();
        assert!(missing.len() > 500, "{}", missing.len());
        for seed in 0..3000 {
            let function = from_seed(seed, Profile::Operations, Features::ALL).shader.entry;
            for (_, instr) in function.instrs_in_order() {
                if let InstrData::Alu(alu) = &function.instrs[instr] {
                    let bits = alu.op.info().width_source().map_or(32, |i| function.defs[alu.srcs[i].def].bit_size);
                    missing.remove(&(alu.op, bits));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
