//! Programs for a driver of Vulkan: only constructs that SPIR-V and the device have.
//!
//! The generator draws most operations from those with a form in SPIR-V. The others are replaced when the program is
//! complete: the result of an instruction without a form becomes one of its operands, converted to its width.

use super::config::CONFIG;
use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{
    Alu, AluSrc, Block, Def, Function, Index, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op, Shader, Stage,
};
use ir3_compiler::target::{Generation, Target};
use rspirv::spirv::Capability;
use smallvec::smallvec;

use super::Generator;
use super::choices::Choices;
use crate::spirv::Module;

/// Capabilities that no device of turnip has.
const LACKING: [Capability; 8] = [
    Capability::Float64,
    Capability::Int64Atomics,
    Capability::StorageImageMultisample,
    Capability::ImageMSArray,
    Capability::MinLod,
    Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR,
    Capability::StorageInputOutput16,
    Capability::StorageBuffer8BitAccess,
];

/// The capabilities that the device of a GPU lacks.
fn lacking(target: &Target) -> &'static [Capability] {
    let count = if target.generation < Generation::A7xx { LACKING.len() } else { LACKING.len() - 1 };
    &LACKING[..count]
}

/// Returns true if each instruction of a program has a form.
pub(super) fn has_form(shader: &Shader, target: &Target) -> bool {
    Module::missing(shader, lacking(target)).is_ok_and(|missing| missing.is_empty())
}

/// The most times that instructions are replaced: an instruction in place of another may need one more.
const ROUNDS: usize = 4;

/// Replaces the instructions that have no form.
pub(super) fn settle(shader: &mut Shader, target: &Target) {
    for _ in 0..ROUNDS {
        let Ok(missing) = Module::missing(shader, lacking(target)) else { return };
        if missing.is_empty() {
            return;
        }
        let mut blocks: SecondaryMap<Instr, Option<Block>> = SecondaryMap::new();
        for (block, instr) in shader.entry.instrs_in_order() {
            blocks[instr] = Some(block);
        }
        for (instr, _) in missing {
            if let Some(block) = blocks[instr] {
                replace(&mut shader.entry, block, instr);
            }
        }
    }
}

/// The derivatives of a value.
const DERIVATIVES: [IntrinsicOp; 6] = [
    IntrinsicOp::Ddx,
    IntrinsicOp::Ddy,
    IntrinsicOp::DdxFine,
    IntrinsicOp::DdyFine,
    IntrinsicOp::DdxCoarse,
    IntrinsicOp::DdyCoarse,
];

impl<C: Choices> Generator<'_, C> {
    /// In programs for drivers: system values and inputs of the stage, and derivatives, of which other programs have
    /// few.
    pub(super) fn inputs_of_stage(&mut self) {
        if !self.features.driver || self.weights.operation == 0 {
            return;
        }
        for _ in 0..self.c.below(5) {
            if self.b.shader().stage == Stage::Fragment && self.c.chance(CONFIG.driver_derivative) {
                let bits = self.c.pick(&[32, 32, 16]);
                let (value, op) = (self.value(bits), self.c.pick(&DERIVATIVES));
                let derivative = self.b.intrinsic(op, 1, bits, &[value], []);
                self.result(derivative);
            } else {
                self.any_input();
            }
        }
    }
}

/// Inserts instructions before another one.
struct Before<'a> {
    function: &'a mut Function,
    block: Block,
    instr: Instr,
}

impl Before<'_> {
    fn insert(&mut self, components: u8, bits: u8, data: impl FnOnce(Def) -> InstrData) -> Def {
        let def = self.function.new_def(components, bits, None);
        let at = self.function.blocks[self.block].instrs.iter().position(|&it| it == self.instr).unwrap_or(0);
        self.function.insert(self.block, at, data(def));
        def
    }

    fn constant(&mut self, bits: u8) -> Def {
        self.insert(1, bits, |def| InstrData::Const { def, values: smallvec![0] })
    }

    /// Words of the environment.
    fn words(&mut self, number: u32, components: u8) -> Def {
        let zero = self.constant(32);
        let indices = Indices::from([Index::Base(4 * (number % 6) as i32)]);
        self.insert(components, 32, |def| {
            let srcs = smallvec![zero];
            InstrData::Intrinsic(Intrinsic {
                op: IntrinsicOp::LoadConstIr3,
                def: Some(def),
                srcs,
                indices,
                variable: None,
            })
        })
    }
}

/// Removes an instruction, or makes it one that computes its result from an operand.
pub(crate) fn replace(function: &mut Function, block: Block, instr: Instr) {
    let Some(def) = function.instrs[instr].def() else {
        function.blocks[block].instrs.retain(|it| *it != instr);
        return;
    };
    let (bits, components) = (function.defs[def].bit_size, function.defs[def].num_components);
    let mut operands = Vec::new();
    function.instrs[instr].for_each_src(|src| operands.push(src));
    operands.retain(|&src| is_value(function, src));
    let operand = operands.iter().copied().max_by_key(|&src| rank(function, src, bits));
    let mut before = Before { function, block, instr };
    let operand = operand.unwrap_or_else(|| before.words(def.as_u32(), components.min(4)));
    let (from, of) = (before.function.defs[operand].bit_size, before.function.defs[operand].num_components);
    let mut swizzle = [0; 16];
    for (i, component) in swizzle.iter_mut().enumerate() {
        *component = i as u8 % of;
    }
    let source = AluSrc { def: operand, swizzle };
    let mut srcs = smallvec![source];
    let op = match (from, bits) {
        (from, bits) if from == bits => Op::Mov,
        (1, 8) => Op::B2i8,
        (1, 16) => Op::B2i16,
        (1, 32) => Op::B2i32,
        (1, _) => Op::B2i64,
        (_, 1) => {
            let zero = before.constant(from);
            srcs.push(AluSrc { def: zero, swizzle: [0; 16] });
            Op::Ine
        }
        (_, 8) => Op::U2u8,
        (_, 16) => Op::U2u16,
        (_, 32) => Op::U2u32,
        _ => Op::U2u64,
    };
    let alu = Alu { op, exact: false, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs };
    function.instrs[instr] = InstrData::Alu(alu);
}

/// Returns true for values of numbers: not for handles, arrays or barycentrics.
fn is_value(function: &Function, def: Def) -> bool {
    match &function.instrs[function.defs[def].instr] {
        InstrData::Intrinsic(intrinsic) => {
            use IntrinsicOp as I;
            let is_handle = matches!(intrinsic.op, I::BindlessResourceIr3 | I::DeclReg | I::LoadPerspCenterRhwIr3);
            !is_handle && !intrinsic.op.name().starts_with("load_barycentric")
        }
        InstrData::Undef { .. } => false,
        _ => true,
    }
}

/// The use of an operand: one that is computed comes before a constant, and one of the width of the result before
/// others.
fn rank(function: &Function, def: Def, bits: u8) -> (bool, bool) {
    (function.as_const(def).is_none(), function.defs[def].bit_size == bits)
}

#[cfg(test)]
mod tests {
    use super::super::{Features, Profile, from_seed_within};
    use super::*;
    use ir3_compiler::nir::validate;
    use std::collections::{BTreeMap, BTreeSet};

    /// Nearly every program for a driver has a form, is valid, and its instructions need no capability that the device
    /// lacks.
    #[test]
    fn programs_for_drivers_have_a_form() {
        for gpu in ["a660", "a750"] {
            let target = Target::by_name(gpu).expect("a GPU");
            let features = Features::of(&target).for_driver();
            let (mut refused, mut replaced) = (Vec::new(), 0);
            for (seed, profile) in (0..300).zip(Profile::CAMPAIGN.into_iter().cycle()) {
                let shader = from_seed_within(seed, 250, profile, features).shader;
                assert!(validate(&shader).is_ok(), "{gpu} {profile} {seed}");
                match Module::missing(&shader, lacking(&target)) {
                    Ok(missing) if missing.is_empty() => replaced += usize::from(Module::of(&shader).is_ok()),
                    Ok(missing) => refused.push(format!("{profile} {seed}: {}", missing[0].1)),
                    Err(why) => refused.push(format!("{profile} {seed}: {why}")),
                }
            }
            assert!(refused.len() <= 6, "{gpu}: {refused:#?}");
            assert_eq!(replaced + refused.len(), 300);
        }
    }

    /// Names in a module: operations, capabilities, decorations, storage classes and dimensions.
    fn names(module: &Module) -> BTreeSet<String> {
        module.to_string().split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect()
    }

    /// Programs for drivers have the forms that shaders have.
    #[test]
    fn programs_for_drivers_have_the_forms_of_shaders() {
        let target = Target::by_name("a750").expect("a GPU");
        let features = Features::of(&target).for_driver();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for seed in 0..1000 {
            let shader = from_seed_within(seed, 300, Profile::Operations, features).shader;
            let Ok(module) = Module::of(&shader) else { continue };
            names(&module).into_iter().for_each(|name| *seen.entry(name).or_default() += 1);
        }
        let wanted = "PushConstant Uniform StorageBuffer Workgroup PhysicalStorageBuffer Function \
            StorageBufferArrayDynamicIndexing StorageBufferArrayNonUniformIndexing UniformBufferArrayDynamicIndexing \
            UniformBufferArrayNonUniformIndexing SampledImageArrayDynamicIndexing SampledImageArrayNonUniformIndexing \
            StorageImageArrayDynamicIndexing NonUniform StorageBuffer8BitAccess StorageBuffer16BitAccess Int8 Int16 Int64 Float16 \
            WorkgroupMemoryExplicitLayout16BitAccessKHR OpControlBarrier OpMemoryBarrier OpDPdx OpDPdyFine OpDPdxCoarse OpKill \
            OpDemoteToHelperInvocation OpAtomicIAdd OpAtomicUMax OpAtomicCompareExchange OpImageTexelPointer OpImageRead OpImageWrite \
            OpImageFetch OpImageGather OpImageDrefGather OpImageSampleImplicitLod OpImageSampleExplicitLod \
            OpImageSampleDrefImplicitLod OpImageSampleProjExplicitLod OpImageQuerySizeLod OpImageQueryLevels OpImageQuerySamples \
            OpImageQueryLod OpImageQuerySize Flat NoPerspective Centroid Sample OpLoopMerge OpSelectionMerge OpPhi OpReturn \
            OpGroupNonUniformElect OpGroupNonUniformAll OpGroupNonUniformAny OpGroupNonUniformAllEqual OpGroupNonUniformBallot \
            OpGroupNonUniformInverseBallot OpGroupNonUniformBroadcastFirst OpGroupNonUniformShuffle OpGroupNonUniformShuffleXor \
            OpGroupNonUniformShuffleUp OpGroupNonUniformRotateKHR OpGroupNonUniformQuadSwap OpGroupNonUniformQuadBroadcast \
            OpGroupNonUniformIAdd OpGroupNonUniformFAdd ClusteredReduce ExclusiveScan InclusiveScan OpArrayLength OpUMod \
            Cube 1D 3D Buffer SampleMask PrimitiveId FrontFacing VertexIndex SampleId ViewIndex \
            OpBitFieldInsert OpBitReverse OpQuantizeToF16 RoundingModeRTE";
        let never: Vec<&str> = wanted.split_whitespace().filter(|name| !seen.contains_key(*name)).collect();
        assert!(never.is_empty(), "{never:?} in {seen:#?}");
    }
}
