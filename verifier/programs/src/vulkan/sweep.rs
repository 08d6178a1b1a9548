//! Programs of one operation each, whose result is stored: every operation that SPIR-V has a form for, also those that
//! selection refuses and the generator does not make.
//!
//! Operations on floats have a second program, with operands that are multiples of a power of two: these have exact
//! results where others are rounded, and are in the range for which the specification gives an error. Of results with
//! an error the upper bits are stored.

use super::insert::Inserter;
use crate::coverage::spirv;
use crate::generator::accepted::{WIDTHS, part_bits};
use ir3_compiler::nir::{
    AluSrc, BaseType, Block, Builder, Def, Index, Instr, InstrData, IntrinsicOp, Op, Shader, Stage, read, validate,
};
use ir3_semantics::interp::nir::{Decoded, has_error};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The buffer of operands, and that of results.
const BUFFERS: [u32; 2] = [1, 8];
/// Components of operations on each component.
const COMPONENTS: u8 = 2;
/// Words of a lane in the buffer of results, as a shift.
const LANE_SHIFT: u32 = 5;
/// Programs of an intrinsic or a texture operation in one stage.
const PROGRAMS: usize = 4;

/// Programs of operations of which a single one has nothing to show.
const WRITTEN: [&str; 1] = [EXCHANGE];

/// Lanes read what their neighbours stored to shared memory before a barrier; then each has atomics of its own word.
const EXCHANGE: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 2
shared_size: 1024
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32    %0 = load_const (0x00000000)
    32    %1 = load_const (0x00000001)
    32    %2 = load_const (0x00000002)
    32    %3 = load_const (0x00000003)
    32    %4 = load_const (0x01010101)
    32    %5 = @load_local_invocation_index
    32    %6 = imul %5, %4
    32    %7 = ishl %5, %2
    32    %8 = ixor %5, %1
    32    %9 = ishl %8, %2
    @store_shared (%6, %7) (base=0, wrmask=x, align_mul=4, align_offset=0)
    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)
    32    %10 = @load_shared (%9) (base=0, align_mul=4, align_offset=0)
    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)
    32    %11 = @shared_atomic (%7, %8) (base=0, atomic_op=iadd)
    32    %12 = iadd %6, %8
    32    %13 = iand %5, %3
    32    %14 = iadd %12, %13
    32    %15 = @shared_atomic_swap (%7, %14, %5) (base=0, atomic_op=cmpxchg)
    32    %16 = @load_shared (%7) (base=0, align_mul=4, align_offset=0)
    32    %17 = load_const (0x00000004)
    32    %18 = ishl %5, %17
    32    %19 = ishl %5, %2
    32x4  %20 = vec4 %10, %11, %15, %16
    @store_ssbo_ir3 (%20, %1, %18, %19) (base=0, wrmask=xyzw, access=none, align_mul=4, align_offset=0)
    block b1:
}
";

/// The programs; made once in a process.
pub fn programs() -> &'static [Shader] {
    static MADE: OnceLock<Vec<Shader>> = OnceLock::new();
    MADE.get_or_init(|| {
        let alu = Op::ALL.into_iter().flat_map(|op| WIDTHS.map(|bits| (op, bits)));
        let alu = alu.flat_map(|(op, bits)| OPERANDS.map(|operands| operation(op, bits, operands))).flatten();
        let mut counts: BTreeMap<(&str, Stage), usize> = BTreeMap::new();
        let others = spirv::programs().filter_map(|(name, shader)| {
            let count = counts.entry((name, shader.stage)).or_default();
            if *count >= PROGRAMS {
                return None;
            }
            let observed = observed(shader)?;
            *count += 1;
            Some(observed)
        });
        let has_meaning = |shader: &Shader| validate(shader).is_ok() && Decoded::new(shader).is_ok();
        let written = WRITTEN.iter().filter_map(|text| read(text).ok());
        written.chain(alu).chain(others).filter(has_meaning).collect()
    })
}

/// The operands of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Any words.
    Any,
    /// Floats from 1/8 to 2, and integers up to 7.
    Small,
}

const OPERANDS: [Operands; 2] = [Operands::Any, Operands::Small];

/// A compute program of one operation on words of a buffer.
fn operation(op: Op, bits: u8, operands: Operands) -> Option<Shader> {
    let info = op.info();
    let is_small = operands == Operands::Small;
    if is_small && (bits > 32 || !info.inputs.iter().any(|input| input.ty.base == BaseType::Float)) {
        return None;
    }
    let is_unsized = info.inputs.iter().any(|input| input.ty.size == 0);
    if !is_unsized && bits != 32
        || info.inputs.iter().any(|input| input.ty.size == 0 && !input.ty.base.widths().contains(&bits))
    {
        return None;
    }
    let components = if info.output.components == 0 { COMPONENTS } else { info.output.components };
    let mut b = Builder::new(Stage::Compute);
    let lane = b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], [])?;
    let lane = b.alu_swizzled(Op::Mov, 1, &[AluSrc::scalar(lane, 0)]);
    let mut next = 0;
    let mut word = |b: &mut Builder| {
        let (buffer, step, two) = (b.constant(32, BUFFERS[0].into()), b.constant(32, next), b.constant(32, 2));
        // Words of two lanes are not those of two operands.
        let factor = b.constant(32, 11);
        let first = b.alu(Op::Imul, &[lane, factor]);
        let element = b.alu(Op::Iadd, &[first, step]);
        let bytes = b.alu(Op::Ishl, &[element, two]);
        next += 1;
        b.intrinsic(IntrinsicOp::LoadSsboIr3, 1, 32, &[buffer, bytes, element], [Index::AlignMul(4)])
    };
    let mut srcs = Vec::new();
    for (i, input) in info.inputs.iter().enumerate() {
        let width = input.ty.width_or(bits);
        if part_bits(op).is_some() && i == 1 {
            srcs.push(AluSrc::scalar(b.constant(width, 1), 0));
            continue;
        }
        let mut scalars = Vec::new();
        for _ in 0..info.source_components(i, components) {
            let value = word(&mut b)?;
            if is_small {
                scalars.push(small(&mut b, input.ty.base == BaseType::Float, width, value));
                continue;
            }
            scalars.push(match width {
                1 => {
                    let one = b.constant(32, 1);
                    let bit = b.alu(Op::Iand, &[value, one]);
                    b.alu(Op::Ieq, &[bit, one])
                }
                8 => b.alu(Op::U2u8, &[value]),
                16 => b.alu(Op::U2u16, &[value]),
                32 => value,
                _ => {
                    let high = word(&mut b)?;
                    b.alu(Op::Pack64_2x32Split, &[value, high])
                }
            });
        }
        srcs.push(AluSrc::identity(b.vec(&scalars)));
    }
    let mut result = b.alu_swizzled(op, components, &srcs);
    if has_error(op) {
        let width = info.output.ty.width_or(bits);
        let count = b.constant(32, if width == 16 { 6 } else { 16 });
        let count = AluSrc { def: count, swizzle: [0; 16] };
        result = b.alu_swizzled(Op::Ushr, components, &[AluSrc::identity(result), count]);
    }
    let mut shader = b.finish();
    let instr = shader.entry.defs[result].instr;
    let (block, _) = shader.entry.instrs_in_order().find(|&(_, it)| it == instr)?;
    store(&mut shader, block, result)?;
    Some(shader)
}

/// A small operand of a word.
fn small(b: &mut Builder, is_float: bool, width: u8, word: Def) -> Def {
    let mask = b.constant(32, if is_float { 15 } else { 7 });
    let value = b.alu(Op::Iand, &[word, mask]);
    if !is_float {
        return match width {
            1 => {
                let half = b.constant(32, 3);
                b.alu(Op::Ult, &[half, value])
            }
            8 => b.alu(Op::U2u8, &[value]),
            16 => b.alu(Op::U2u16, &[value]),
            32 => value,
            _ => b.alu(Op::U2u64, &[value]),
        };
    }
    let one = b.constant(32, 1);
    let value = b.alu(Op::Iadd, &[value, one]);
    let (float, eighth) = match width {
        16 => (b.alu(Op::U2f16, &[value]), b.constant(16, 0x3000)),
        _ => (b.alu(Op::U2f32, &[value]), b.constant(32, 0x3e00_0000)),
    };
    b.alu(Op::Fmul, &[float, eighth])
}

/// A program of one intrinsic or texture operation whose words differ between lanes, and whose result is stored.
fn observed(mut shader: Shader) -> Option<Shader> {
    let last: (Block, Instr) = shader.entry.instrs_in_order().last()?;
    let result = shader.entry.instrs[last.1].def();
    vary(&mut shader)?;
    if let Some(result) = result.filter(|&def| shader.entry.defs[def].num_components <= 4) {
        store(&mut shader, last.0, result)?;
    }
    Some(shader)
}

/// Adds a multiple of the number of the lane to the word of a program of one operation.
fn vary(shader: &mut Shader) -> Option<()> {
    let stage = shader.stage;
    let function = &mut shader.entry;
    let is_word = |data: &InstrData| matches!(data, InstrData::Intrinsic(it) if it.op == IntrinsicOp::LoadConstIr3);
    let (block, load) = function.instrs_in_order().find(|&(_, instr)| is_word(&function.instrs[instr]))?;
    let word = function.instrs[load].def()?;
    let rest: Vec<Instr> =
        function.instrs_in_order().map(|(_, instr)| instr).skip_while(|&it| it != load).skip(1).collect();
    let Some(&next) = rest.first() else { return Some(()) };
    let mut before = Inserter::before(function, block, next);
    let lane = before.lane(stage);
    let factor = before.constant(0x0101_0101);
    let part = before.alu(Op::Imul, [lane, factor]);
    let new = before.alu(Op::Ixor, [word, part]);
    for instr in rest {
        function.instrs[instr].for_each_src_mut(|src| {
            if *src == word {
                *src = new;
            }
        });
    }
    Some(())
}

/// Stores all components of a value at the end of a block.
fn store(shader: &mut Shader, block: Block, value: Def) -> Option<()> {
    let stage = shader.stage;
    let (components, bits) = (shader.entry.defs[value].num_components, shader.entry.defs[value].bit_size);
    let mut end = Inserter::at_end(&mut shader.entry, block);
    let lane = end.lane(stage);
    let (shift, two, buffer) = (end.constant(LANE_SHIFT), end.constant(2), end.constant(BUFFERS[1]));
    let first = end.alu(Op::Ishl, [lane, shift]);
    let words: &[Op] = match bits {
        1 => &[Op::B2i32],
        32 => &[Op::Mov],
        64 => &[Op::Unpack64_2x32SplitX, Op::Unpack64_2x32SplitY],
        _ => &[Op::U2u32],
    };
    for component in 0..components {
        for (&op, part) in words.iter().zip(0..) {
            let word = end.component(op, value, component);
            let number = end.constant(u32::from(component) * 2 + part);
            let element = end.alu(Op::Iadd, [first, number]);
            let bytes = end.alu(Op::Ishl, [element, two]);
            end.store(&[word, buffer, bytes, element]);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_operation_are_many() {
        let all = programs();
        let has = |name: &str| {
            all.iter().any(|shader| {
                shader.entry.instrs_in_order().any(|(_, instr)| shader.entry.instrs[instr].name() == name)
            })
        };
        assert!(all.len() > 600, "{}", all.len());
        for text in WRITTEN {
            assert!(read(text).is_ok_and(|shader| all.contains(&shader)), "{text}");
        }
        for name in ["fdot3", "pack_snorm_4x8", "iadd", "vote_ieq", "ddx_fine", "txs"] {
            assert!(has(name), "{name}");
        }
    }
}
