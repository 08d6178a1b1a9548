//! Programs of one operation each, whose result is stored: every operation that SPIR-V has a form for, also those that
//! selection refuses and the generator does not make.

use super::insert::Inserter;
use crate::coverage::spirv;
use crate::generator::accepted::{WIDTHS, part_bits};
use ir3_compiler::nir::{
    AluSrc, Block, Builder, Def, Index, Instr, InstrData, IntrinsicOp, Op, Shader, Stage, validate,
};
use ir3_semantics::interp::nir::Decoded;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The buffer of operands, and that of results.
const BUFFERS: [u32; 2] = [1, 8];
/// Components of operations on each component.
const COMPONENTS: u8 = 2;
/// Words of a lane in the buffer of results, as a shift.
const LANE_SHIFT: u32 = 5;
/// Programs of an intrinsic or a texture operation.
const PROGRAMS: usize = 6;

/// The programs; made once in a process.
pub fn programs() -> &'static [Shader] {
    static MADE: OnceLock<Vec<Shader>> = OnceLock::new();
    MADE.get_or_init(|| {
        let alu = Op::ALL.into_iter().flat_map(|op| WIDTHS.map(|bits| (op, bits)));
        let alu = alu.filter_map(|(op, bits)| operation(op, bits));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let others = spirv::programs().filter_map(|(name, shader)| {
            let count = counts.entry(name).or_default();
            if *count >= PROGRAMS {
                return None;
            }
            let observed = observed(shader)?;
            *count += 1;
            Some(observed)
        });
        let has_meaning = |shader: &Shader| validate(shader).is_ok() && Decoded::new(shader).is_ok();
        alu.chain(others).filter(has_meaning).collect()
    })
}

/// A compute program of one operation on words of a buffer.
fn operation(op: Op, bits: u8) -> Option<Shader> {
    let info = op.info();
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
    let result = b.alu_swizzled(op, components, &srcs);
    let mut shader = b.finish();
    let instr = shader.entry.defs[result].instr;
    let (block, _) = shader.entry.instrs_in_order().find(|&(_, it)| it == instr)?;
    store(&mut shader, block, result)?;
    Some(shader)
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
        for name in ["fdot3", "pack_snorm_4x8", "iadd", "vote_ieq", "ddx_fine", "txs"] {
            assert!(has(name), "{name}");
        }
    }
}
