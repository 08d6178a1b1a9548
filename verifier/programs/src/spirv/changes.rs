//! Small changes to a module: other operations, constants, operands in another order, branches the other way round.
//!
//! A change keeps all types, so the module stays valid. A loop may have no end then: such runs are ended.

use rspirv::binary::Assemble;
use rspirv::dr::{self, Operand};
use rspirv::spirv::{self, GlslStd450Op, Word};
use rustc_hash::FxHashMap;

use ir3_semantics::support::random::Random;

/// The place of an instruction: its function, its block, and its number there.
type Place = [usize; 3];

/// A change to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another operation of the same types.
    Operation(Place, spirv::Op),
    /// Another extended instruction of the same types.
    Extended(Place, u32),
    /// Both operands in the other order.
    Swapped(Place),
    /// A constant of a type in place of an operand.
    Constant(Place, usize, Word, u32),
    /// Both targets of a branch in the other order.
    Inverted(Place),
}

/// Operations of the same operands and results.
const ALIKE: &[&[spirv::Op]] = {
    use spirv::Op as O;
    &[
        &[O::IAdd, O::ISub, O::IMul, O::BitwiseAnd, O::BitwiseOr, O::BitwiseXor],
        &[O::ShiftLeftLogical, O::ShiftRightLogical, O::ShiftRightArithmetic],
        &[O::FAdd, O::FSub, O::FMul, O::FDiv],
        &[O::SLessThan, O::SLessThanEqual, O::SGreaterThan, O::SGreaterThanEqual],
        &[O::ULessThan, O::ULessThanEqual, O::UGreaterThan, O::UGreaterThanEqual],
        &[O::IEqual, O::INotEqual],
        &[
            O::FOrdLessThan,
            O::FOrdLessThanEqual,
            O::FOrdGreaterThan,
            O::FOrdGreaterThanEqual,
            O::FOrdEqual,
            O::FUnordNotEqual,
            O::FUnordLessThan,
            O::FUnordGreaterThan,
        ],
        &[O::LogicalAnd, O::LogicalOr, O::LogicalEqual, O::LogicalNotEqual],
        &[O::SNegate, O::Not],
        &[O::DPdx, O::DPdy, O::Fwidth],
        &[
            O::GroupNonUniformIAdd,
            O::GroupNonUniformIMul,
            O::GroupNonUniformUMin,
            O::GroupNonUniformUMax,
            O::GroupNonUniformSMin,
            O::GroupNonUniformSMax,
            O::GroupNonUniformBitwiseXor,
        ],
        &[O::GroupNonUniformFAdd, O::GroupNonUniformFMul, O::GroupNonUniformFMin, O::GroupNonUniformFMax],
        &[O::AtomicIAdd, O::AtomicUMin, O::AtomicUMax, O::AtomicAnd, O::AtomicOr, O::AtomicXor, O::AtomicExchange],
    ]
};

/// Extended instructions of the same operands and results.
const EXTENDED: &[&[GlslStd450Op]] = {
    use GlslStd450Op as G;
    &[
        &[G::FMin, G::FMax, G::NMin, G::NMax],
        &[G::SMin, G::SMax, G::UMin, G::UMax],
        &[G::Floor, G::Ceil, G::Trunc, G::Fract, G::RoundEven, G::FAbs, G::FSign],
        &[G::Sin, G::Cos, G::Exp2, G::Log2, G::Sqrt, G::InverseSqrt],
        &[G::FClamp, G::NClamp, G::FMix, G::SmoothStep, G::Fma],
        &[G::SClamp, G::UClamp],
        &[G::FindILsb, G::FindUMsb, G::FindSMsb],
    ]
};

/// Operations whose operands have an order, and one type.
fn has_order(op: spirv::Op) -> bool {
    use spirv::Op as O;
    matches!(op, O::ISub | O::FSub | O::FDiv | O::SDiv | O::UDiv | O::UMod | O::SMod | O::FMod)
        || ALIKE[3..7].iter().any(|group| group.contains(&op))
}

/// Numbers at the edges of the ranges of immediates.
const INTEGERS: &[u32] =
    &[0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 63, 64, 255, 256, 511, 512, 1023, 1024, 0xffff, 0x1_0000, u32::MAX, 1 << 31];
const FLOATS: &[f32] =
    &[0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 4.0, std::f32::consts::PI, 65504.0, f32::INFINITY, 1e-40, 16_777_216.0, -3.5];

/// The words of the header of a module.
const HEADER: usize = 5;

/// A module that can be changed.
pub struct Changeable {
    module: dr::Module,
    /// The types of values, and of these the kind: true for floats of 32 bits, false for integers.
    numbers: FxHashMap<Word, (Word, bool)>,
}

impl Changeable {
    /// Reads the words of a module.
    ///
    /// # Errors
    /// If these are none, or instructions are at places that are not kept: those of debuggers.
    pub fn read(words: &[u32]) -> Result<Self, String> {
        let module = dr::load_words(words).map_err(|error| format!("{error:?}"))?;
        if module.assemble().get(HEADER..) != words.get(HEADER..) {
            return Err("the order of its instructions is not kept".to_owned());
        }
        let mut kinds: FxHashMap<Word, bool> = FxHashMap::default();
        for ty in &module.types_global_values {
            let is_word = ty.operands.first() == Some(&Operand::LiteralBit32(32));
            match (ty.class.opcode, ty.result_id) {
                (spirv::Op::TypeInt, Some(id)) if is_word => _ = kinds.insert(id, false),
                (spirv::Op::TypeFloat, Some(id)) if is_word => _ = kinds.insert(id, true),
                _ => {}
            }
        }
        let mut numbers = FxHashMap::default();
        let bodies =
            module.functions.iter().flat_map(|function| &function.blocks).flat_map(|block| &block.instructions);
        for instr in module.types_global_values.iter().chain(bodies) {
            if let (Some(id), Some(ty)) = (instr.result_id, instr.result_type)
                && let Some(&is_float) = kinds.get(&ty)
            {
                numbers.insert(id, (ty, is_float));
            }
        }
        Ok(Self { module, numbers })
    }

    /// The instructions of function bodies.
    #[must_use]
    pub fn instruction_count(&self) -> usize {
        self.module.functions.iter().flat_map(|function| &function.blocks).map(|block| block.instructions.len()).sum()
    }

    /// Draws a few changes, each to another instruction.
    pub fn draw(&self, random: &mut Random) -> Vec<Change> {
        let mut places: Vec<Place> = Vec::new();
        for (f, function) in self.module.functions.iter().enumerate() {
            for (b, block) in function.blocks.iter().enumerate() {
                places.extend((0..block.instructions.len()).map(|i| [f, b, i]));
            }
        }
        random.shuffle(&mut places);
        let count = 1 + random.below(8);
        places.into_iter().filter_map(|place| self.change(place, random)).take(count).collect()
    }

    fn at(&self, [f, b, i]: Place) -> &dr::Instruction {
        &self.module.functions[f].blocks[b].instructions[i]
    }

    /// A change to an instruction, if it can have one.
    fn change(&self, place: Place, random: &mut Random) -> Option<Change> {
        let instr = self.at(place);
        let op = instr.class.opcode;
        let group = ALIKE.iter().find(|group| group.contains(&op));
        if let Some(group) = group.filter(|_| random.chance(50)) {
            let other = random.pick(group).filter(|other| *other != op)?;
            return Some(Change::Operation(place, other));
        }
        if has_order(op) && random.chance(30) {
            return Some(Change::Swapped(place));
        }
        if op == spirv::Op::BranchConditional {
            // Weights of branches stay with the places.
            return (instr.operands.len() == 3).then_some(Change::Inverted(place));
        }
        if op == spirv::Op::ExtInst {
            let Some(&Operand::LiteralExtInstInteger(number)) = instr.operands.get(1) else { return None };
            let mut groups = EXTENDED.iter().map(|group| group.iter().map(|it| *it as u32).collect::<Vec<_>>());
            let group = groups.find(|group| group.contains(&number))?;
            let other = random.pick(&group).filter(|other| *other != number)?;
            return Some(Change::Extended(place, other));
        }
        if group.is_none() && !matches!(op, spirv::Op::Select | spirv::Op::Store) || is_atomic(op) {
            return None;
        }
        let at = random.below(instr.operands.len().max(1));
        let Some(Operand::IdRef(id)) = instr.operands.get(at) else { return None };
        let &(ty, is_float) = self.numbers.get(id)?;
        let bits = match is_float {
            true => random.pick(FLOATS)?.to_bits(),
            false => random.pick(INTEGERS)?,
        };
        Some(Change::Constant(place, at, ty, bits))
    }

    /// The words of the module with changes.
    #[must_use]
    pub fn with(&self, changes: &[Change]) -> Vec<u32> {
        let mut module = self.module.clone();
        let mut bound = module.header.as_ref().map_or(0, |header| header.bound);
        for change in changes {
            let (Change::Operation(place, _)
            | Change::Extended(place, _)
            | Change::Swapped(place)
            | Change::Constant(place, ..)
            | Change::Inverted(place)) = *change;
            let [f, b, i] = place;
            let instr = &mut module.functions[f].blocks[b].instructions[i];
            match *change {
                Change::Operation(_, op) => {
                    let operands = std::mem::take(&mut instr.operands);
                    *instr = dr::Instruction::new(op, instr.result_type, instr.result_id, operands);
                }
                Change::Extended(_, number) => instr.operands[1] = Operand::LiteralExtInstInteger(number),
                Change::Swapped(_) => instr.operands.swap(0, 1),
                Change::Inverted(_) => instr.operands.swap(1, 2),
                Change::Constant(_, at, ty, bits) => {
                    instr.operands[at] = Operand::IdRef(bound);
                    let operands = vec![Operand::LiteralBit32(bits)];
                    let constant = dr::Instruction::new(spirv::Op::Constant, Some(ty), Some(bound), operands);
                    module.types_global_values.push(constant);
                    bound += 1;
                }
            }
        }
        if let Some(header) = &mut module.header {
            header.bound = bound;
        }
        module.assemble()
    }
}

fn is_atomic(op: spirv::Op) -> bool {
    ALIKE.last().is_some_and(|group| group.contains(&op)) || ALIKE[10..12].iter().any(|group| group.contains(&op))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{Features, Profile, from_seed_within};
    use crate::spirv::Module;

    /// Changes keep a module readable, most of them change it, and none of them alone is needed for another one.
    #[test]
    fn changed_modules_can_be_read() {
        let mut changed = 0;
        for seed in 0..40 {
            let shader = from_seed_within(seed, 120, Profile::Mixed, Features::ALL.for_driver()).shader;
            let words = Module::of(&shader).expect("a form").words();
            let module = Changeable::read(&words).expect("a module");
            let changes = module.draw(&mut Random::new(seed));
            let other = module.with(&changes);
            changed += usize::from(other != words);
            let read = Changeable::read(&other).expect("a module");
            assert_eq!(read.instruction_count(), module.instruction_count());
            for at in 0..changes.len() {
                let mut fewer = changes.clone();
                fewer.remove(at);
                assert!(Changeable::read(&module.with(&fewer)).is_ok());
            }
        }
        assert!(changed >= 36, "{changed}");
    }
}
