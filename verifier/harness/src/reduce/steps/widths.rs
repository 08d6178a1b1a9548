//! Steps that narrow values: 64 bits to 32, 16, 8 or 1.
//!
//! As with vectors, an equivalence class of values changes together: those that an operation requires to have the same
//! width, phis and memory operations included (there is no memory of single bits). Conversions bound the classes; they
//! become other conversions, or moves. This is the last kind of step, because a constant of another width is an
//! additional constant.

use ir3_compiler::nir::{Alu, AluSrc, Components, Def, DestBits, Function, IndexKind, Instr, InstrData, Intrinsic, Op};
use smallvec::SmallVec;

use super::{ReductionStep, Steps, boxed};
use crate::reduce::edit::{Edit, ProgramView};

/// The kind of a conversion (`u2u`), and the width of its result.
fn conversion(op: Op) -> Option<(&'static str, u8)> {
    const KINDS: [&str; 9] = ["u2u", "i2i", "f2f", "b2i", "f2i", "f2u", "i2f", "u2f", "b2f"];
    let (kind, bits) = op.name().split_at_checked(3)?;
    Some((KINDS.into_iter().find(|known| *known == kind)?, bits.parse().ok()?))
}

/// The conversion of that kind from one width to another; a move if they are the same.
fn convert(kind: &str, from: u8, to: u8) -> Option<Op> {
    let within = matches!(kind, "u2u" | "i2i" | "f2f") && from == to;
    let truth = kind == "b2i" && to == 1;
    if within || truth { Some(Op::Mov) } else { Op::from_name(&format!("{kind}{to}")) }
}

/// The operation that computes a result of `to` bits from the operands of one whose result is always wider.
fn narrowed_result(op: Op, source_bits: u8, to: u8) -> Option<Op> {
    Some(match op {
        Op::Pack64_2x32Split | Op::Pack64_2x32 if to == 32 => Op::Mov,
        Op::Imul2x32_64 | Op::Umul2x32_64 if to == 32 => Op::Imul,
        _ => convert(conversion(op)?.0, source_bits, to)?,
    })
}

/// The operation that replaces one whose operand always has 64 bits if the operand has `to`.
fn narrowed_operand(op: Op, to: u8) -> Option<Op> {
    Some(match op {
        Op::Unpack64_2x32SplitX | Op::Unpack64_2x32SplitY if to == 32 => Op::Mov,
        Op::Unpack64_2x32 if to == 32 => Op::Vec2,
        _ => return None,
    })
}

/// The class of `seed`: the values that must have the same width. `None` if some of them cannot have `to` bits.
fn class(edit: &Edit, seed: Def, to: u8) -> Option<Vec<Def>> {
    let function = edit.function();
    let mut class = vec![seed];
    let mut at = 0;
    while let Some(&def) = class.get(at) {
        at += 1;
        let mut more = SmallVec::<[Def; 8]>::new();
        match &function.instrs[edit.definer(def)?] {
            InstrData::Const { .. } | InstrData::Undef { .. } => {}
            InstrData::Phi { srcs, .. } => more.extend(srcs.iter().map(|&(_, src)| src)),
            InstrData::Alu(alu) if alu.op.info().output.ty.size == 0 => {
                if !alu.op.info().output.ty.base.widths().contains(&to) {
                    return None;
                }
                more.extend(unsized_sources(alu));
            }
            InstrData::Alu(alu) => {
                narrowed_result(alu.op, function.defs[alu.srcs[0].def].bit_size, to)?;
            }
            InstrData::Intrinsic(intrinsic) if to == 1 || typed(intrinsic) => return None,
            InstrData::Intrinsic(intrinsic) => match intrinsic.op.info().dest_bits {
                DestBits::Source(source) => more.push(intrinsic.srcs[usize::from(source)]),
                DestBits::Any => {}
                DestBits::OneOf(widths) if widths.contains(&to) => {}
                DestBits::OneOf(_) => return None,
            },
            InstrData::Tex(_) | InstrData::Jump(_) => return None,
        }
        for (_, user) in function.instrs_in_order() {
            match &function.instrs[user] {
                InstrData::Phi { def: phi, srcs } if srcs.iter().any(|&(_, src)| src == def) => more.push(*phi),
                InstrData::Alu(alu) if alu.srcs.iter().any(|src| src.def == def) => {
                    let info = alu.op.info();
                    let mut read = alu.srcs.iter().zip(info.inputs).filter(|(src, _)| src.def == def);
                    if read.clone().any(|(_, input)| !input.ty.base.widths().contains(&to)) {
                        return None;
                    }
                    if read.any(|(_, input)| input.ty.size != 0) {
                        narrowed_operand(alu.op, to)?;
                        continue;
                    }
                    more.extend(unsized_sources(alu));
                    if info.output.ty.size == 0 {
                        more.push(alu.def);
                    }
                }
                InstrData::Intrinsic(intrinsic) if intrinsic.srcs.contains(&def) => {
                    let info = intrinsic.op.info();
                    let not_vector = |(&src, &kind): (&Def, &Components)| src == def && kind != Components::Vector;
                    if to == 1 || typed(intrinsic) || intrinsic.srcs.iter().zip(info.srcs).any(not_vector) {
                        return None;
                    }
                    if let DestBits::Source(source) = info.dest_bits
                        && intrinsic.srcs[usize::from(source)] == def
                    {
                        more.extend(intrinsic.def);
                    }
                }
                InstrData::Tex(tex) if tex.srcs.iter().any(|&(_, src)| src == def) => return None,
                _ => {}
            }
        }
        for def in more {
            if !class.contains(&def) {
                class.push(def);
            }
        }
    }
    Some(class)
}

fn unsized_sources(alu: &Alu) -> impl Iterator<Item = Def> {
    alu.srcs.iter().zip(alu.op.info().inputs).filter(|(_, input)| input.ty.size == 0).map(|(src, _)| src.def)
}

/// Returns true if an intrinsic has the type of its value as an index.
fn typed(intrinsic: &Intrinsic) -> bool {
    [IndexKind::SrcType, IndexKind::DestType].into_iter().any(|kind| intrinsic.indices.get(kind).is_some())
}

/// Narrows the class of a value to this width.
struct NarrowWidth(Def, u8);

impl ReductionStep for NarrowWidth {
    fn apply(&self, edit: &mut Edit) -> bool {
        let Self(seed, to) = *self;
        let from = edit.shape(seed).bits;
        if from <= to {
            return false;
        }
        let Some(class) = class(edit, seed, to) else { return false };
        if class.iter().any(|&def| edit.shape(def).bits != from) {
            return false;
        }
        let instrs: Vec<Instr> = edit.function().instrs_in_order().map(|(_, instr)| instr).collect();
        let function = edit.function_mut();
        for &instr in &instrs {
            narrow(function, instr, &class, to);
        }
        for &def in &class {
            function.defs[def].bit_size = to;
        }
        for instr in instrs {
            same_width(function, instr, &class);
        }
        true
    }
}

/// Rewrites an instruction that defines or reads values of the class.
fn narrow(function: &mut Function, instr: Instr, class: &[Def], to: u8) {
    match &mut function.instrs[instr] {
        InstrData::Const { def, values } if class.contains(def) => {
            let from = function.defs[*def].bit_size;
            for value in values {
                let one = super::constants::one(from).is_some_and(|one| *value == one);
                *value = one.then(|| super::constants::one(to)).flatten().unwrap_or(*value & (u64::MAX >> (64 - to)));
            }
        }
        InstrData::Alu(alu) => {
            let info = alu.op.info();
            if class.contains(&alu.def) && info.output.ty.size != 0 {
                let bits = function.defs[alu.srcs[0].def].bit_size;
                // A source in the class will be narrowed too.
                let bits = if class.contains(&alu.srcs[0].def) { to } else { bits };
                if let Some(op) = narrowed_result(alu.op, bits, to) {
                    alu.op = op;
                    alu.srcs.truncate(op.info().inputs.len());
                    fit(&mut alu.srcs, function.defs[alu.def].num_components);
                }
            }
            let sized = alu.op.info().inputs.iter().any(|input| input.ty.size == 64);
            if sized
                && alu.srcs.iter().any(|src| class.contains(&src.def))
                && let Some(op) = narrowed_operand(alu.op, to)
            {
                alu.op = op;
                let src = alu.srcs[0];
                alu.srcs = match op {
                    Op::Vec2 => SmallVec::from_elem(AluSrc::swizzled(src.def, &src.swizzle[..1]), 2),
                    _ => SmallVec::from_elem(src, 1),
                };
            }
        }
        _ => {}
    }
}

/// Turns a conversion of a value of the class into a move, if the widths are the same now.
fn same_width(function: &mut Function, instr: Instr, class: &[Def]) {
    if let InstrData::Alu(alu) = &mut function.instrs[instr]
        && class.contains(&alu.srcs[0].def)
        && let Some((kind, to)) = conversion(alu.op)
        && convert(kind, function.defs[alu.srcs[0].def].bit_size, to) == Some(Op::Mov)
    {
        alu.op = Op::Mov;
    }
}

/// Clears the swizzle of components that the operation does not read.
fn fit(srcs: &mut [AluSrc], components: u8) {
    for src in srcs {
        src.swizzle[usize::from(components)..].fill(0);
    }
}

/// Each value with each smaller width, the smallest first.
pub(super) fn narrow_list(view: &ProgramView<'_>) -> Steps {
    let mut steps = Vec::new();
    for (_, def) in view.defs() {
        let bits = view.shape(def).bits;
        steps.extend([1, 8, 16, 32].into_iter().filter(|&to| to < bits).map(|to| NarrowWidth(def, to)));
    }
    boxed(steps)
}
