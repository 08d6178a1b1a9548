//! Atomics that the device has in some kinds of memory only.
//!
//! A capability of SPIR-V allows an atomic in all of them; the features of a device are one for each kind. A driver
//! that sees one that it does not have compiles another operation.

use crate::device::Features;
use crate::module::{Module, id};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Op, StorageClass, Word};
use std::collections::HashMap;
use std::fmt;

/// The memory that an atomic accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Buffer,
    Workgroup,
    Image,
}

/// The operation of an atomic, distinguished only as the features do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A load, a store or an exchange.
    Exchange,
    Add,
    MinMax,
}

/// An atomic on values of a type that not all memory has atomics of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    is_float: bool,
    bits: u32,
    operation: Operation,
    memory: Memory,
}

impl fmt::Display for Atomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            _ if !self.is_float => "atomics",
            Operation::Exchange => "atomic exchanges",
            Operation::Add => "atomic additions",
            Operation::MinMax => "atomic minima and maxima",
        };
        let memory = match self.memory {
            Memory::Buffer => "buffers",
            Memory::Workgroup => "the memory of a workgroup",
            Memory::Image => "images",
        };
        let ty = if self.is_float { "float" } else { "integer" };
        write!(f, "{}-bit {ty} {operation} in {memory}", self.bits)
    }
}

impl Atomic {
    /// Returns true if a device has it.
    fn is_in(self, features: &Features) -> bool {
        use Memory::{Buffer, Image, Workgroup};
        use Operation::{Add, Exchange, MinMax};
        let Features { v12, image_atomics, atomic_float: of, atomic_float2: of2, .. } = features;
        let feature = match (self.is_float, self.bits, self.operation, self.memory) {
            (false, _, _, Buffer) => v12.shader_buffer_int64_atomics,
            (false, _, _, Workgroup) => v12.shader_shared_int64_atomics,
            (false, _, _, Image) => image_atomics.shader_image_int64_atomics,
            (true, 32, Exchange, Buffer) => of.shader_buffer_float32_atomics,
            (true, 32, Exchange, Workgroup) => of.shader_shared_float32_atomics,
            (true, 32, Exchange, Image) => of.shader_image_float32_atomics,
            (true, 32, Add, Buffer) => of.shader_buffer_float32_atomic_add,
            (true, 32, Add, Workgroup) => of.shader_shared_float32_atomic_add,
            (true, 32, Add, Image) => of.shader_image_float32_atomic_add,
            (true, 32, MinMax, Buffer) => of2.shader_buffer_float32_atomic_min_max,
            (true, 32, MinMax, Workgroup) => of2.shader_shared_float32_atomic_min_max,
            (true, 32, MinMax, Image) => of2.shader_image_float32_atomic_min_max,
            (true, 64, Exchange, Buffer) => of.shader_buffer_float64_atomics,
            (true, 64, Exchange, Workgroup) => of.shader_shared_float64_atomics,
            (true, 64, Add, Buffer) => of.shader_buffer_float64_atomic_add,
            (true, 64, Add, Workgroup) => of.shader_shared_float64_atomic_add,
            (true, 64, MinMax, Buffer) => of2.shader_buffer_float64_atomic_min_max,
            (true, 64, MinMax, Workgroup) => of2.shader_shared_float64_atomic_min_max,
            (true, 16, Exchange, Buffer) => of2.shader_buffer_float16_atomics,
            (true, 16, Exchange, Workgroup) => of2.shader_shared_float16_atomics,
            (true, 16, Add, Buffer) => of2.shader_buffer_float16_atomic_add,
            (true, 16, Add, Workgroup) => of2.shader_shared_float16_atomic_add,
            (true, 16, MinMax, Buffer) => of2.shader_buffer_float16_atomic_min_max,
            (true, 16, MinMax, Workgroup) => of2.shader_shared_float16_atomic_min_max,
            _ => 0,
        };
        feature != 0
    }
}

/// The operation of an instruction. All on integers are one.
fn operation(opcode: Op) -> Option<Operation> {
    Some(match opcode {
        Op::AtomicLoad | Op::AtomicStore | Op::AtomicExchange => Operation::Exchange,
        Op::AtomicFAddEXT => Operation::Add,
        Op::AtomicFMinEXT | Op::AtomicFMaxEXT => Operation::MinMax,
        Op::AtomicCompareExchange
        | Op::AtomicIIncrement
        | Op::AtomicIDecrement
        | Op::AtomicIAdd
        | Op::AtomicISub
        | Op::AtomicSMin
        | Op::AtomicUMin
        | Op::AtomicSMax
        | Op::AtomicUMax
        | Op::AtomicAnd
        | Op::AtomicOr
        | Op::AtomicXor => Operation::Exchange,
        _ => return None,
    })
}

/// The first atomic of a module that the device does not have.
pub fn lacking(module: &Module, features: &Features) -> Option<Atomic> {
    let types = &module.types;
    let functions = || types.module.functions.iter();
    let bodies = || functions().flat_map(|function| function.blocks.iter().flat_map(|block| &block.instructions));
    let parameters = functions().flat_map(|function| &function.parameters);
    let all = types.module.types_global_values.iter().chain(parameters).chain(bodies());
    let type_of: HashMap<Word, Word> =
        all.filter_map(|instruction| Some((instruction.result_id?, instruction.result_type?))).collect();
    let atomic = |instruction: &Instruction| {
        let operation = operation(instruction.class.opcode)?;
        let pointer = types.get(*type_of.get(&id(instruction.operands.first())?)?).ok()?;
        let [Operand::StorageClass(class), pointee, ..] = &pointer.operands[..] else { return None };
        let pointee = types.get(id(Some(pointee))?).ok()?;
        let Some(Operand::LiteralBit32(bits)) = pointee.operands.first() else { return None };
        let (is_float, bits) = (pointee.class.opcode == Op::TypeFloat, *bits);
        let memory = match class {
            StorageClass::Workgroup => Memory::Workgroup,
            StorageClass::Image => Memory::Image,
            _ => Memory::Buffer,
        };
        let is_special = is_float || bits == 64;
        is_special.then_some(Atomic { is_float, bits, operation, memory })
    };
    bodies().filter_map(atomic).find(|atomic| !atomic.is_in(features))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with an atomic on a variable, which is in memory of a class.
    fn module(class: StorageClass, float: bool, opcode: Op) -> Module {
        let op = |op: Op, operands: &[u32]| -> Vec<u32> {
            [&[(operands.len() as u32 + 1) << 16 | op as u32], operands].concat()
        };
        let ty = if float { op(Op::TypeFloat, &[4, 64]) } else { op(Op::TypeInt, &[4, 64, 0]) };
        let value = op(Op::Constant, &[4, 8, 0, 0]);
        let words = [
            vec![0x0723_0203, 0x0001_0500, 0, 20, 0],
            op(Op::TypeVoid, &[1]),
            op(Op::TypeFunction, &[2, 1]),
            op(Op::TypeInt, &[3, 32, 0]),
            ty,
            op(Op::TypePointer, &[5, class as u32, 4]),
            op(Op::Variable, &[5, 6, class as u32]),
            op(Op::Constant, &[3, 7, 0]),
            value,
            op(Op::Function, &[1, 9, 0, 2]),
            op(Op::Label, &[10]),
            op(opcode, &[4, 11, 6, 7, 7, 8]),
            op(Op::Return, &[]),
            op(Op::FunctionEnd, &[]),
        ];
        let bytes: Vec<u8> = words.concat().iter().flat_map(|word| word.to_le_bytes()).collect();
        Module::read(&bytes, &[]).expect("a module")
    }

    #[test]
    fn each_memory_has_a_feature_of_its_own() {
        let mut features = Features::default();
        features.v12.shader_buffer_int64_atomics = 1;
        features.atomic_float.shader_shared_float64_atomic_add = 1;
        let why = |class, float, opcode| lacking(&module(class, float, opcode), &features).map(|it| it.to_string());
        assert_eq!(why(StorageClass::PhysicalStorageBuffer, false, Op::AtomicIAdd), None);
        let of_workgroup = why(StorageClass::Workgroup, false, Op::AtomicIAdd);
        assert_eq!(of_workgroup.as_deref(), Some("64-bit integer atomics in the memory of a workgroup"));
        assert_eq!(why(StorageClass::Workgroup, true, Op::AtomicFAddEXT), None);
        let minimum = why(StorageClass::Workgroup, true, Op::AtomicFMinEXT);
        assert_eq!(minimum.as_deref(), Some("64-bit float atomic minima and maxima in the memory of a workgroup"));
        let of_buffer = why(StorageClass::PhysicalStorageBuffer, true, Op::AtomicFAddEXT);
        assert_eq!(of_buffer.as_deref(), Some("64-bit float atomic additions in buffers"));
    }
}
