//! The preamble of a program: code that one lane runs once, which fills words of the constant file.
//!
//! It has the form in which Mesa emits it: `if preamble_start { if elect_any { … preamble_end } }` at the start of the
//! program.

use super::{Block, CfNode, Def, Function, If, Instr, InstrData, Intrinsic, IntrinsicOp};
use std::ops::Range;

/// The parts of a preamble in the tree.
pub struct Preamble<'a> {
    /// The block before it, which ends with `preamble_start`.
    pub before: Block,
    /// The block that tests which lane computes.
    pub test: Block,
    /// Its code.
    pub body: &'a [CfNode],
    /// The block after the test.
    pub end: Block,
    /// The block after it.
    pub after: Block,
}

/// The intrinsic of an instruction, if it is one.
pub fn intrinsic(function: &Function, instr: Instr) -> Option<&Intrinsic> {
    match &function.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => Some(intrinsic),
        _ => None,
    }
}

fn is_test(function: &Function, condition: Def, op: IntrinsicOp) -> bool {
    intrinsic(function, function.defs[condition].instr).is_some_and(|found| found.op == op)
}

fn is_empty(function: &Function, list: &[CfNode]) -> bool {
    matches!(list, [CfNode::Block(block)] if function.blocks[*block].instrs.is_empty())
}

impl<'a> Preamble<'a> {
    /// The preamble of a program, if it has one of this form.
    pub fn of(function: &'a Function) -> Option<Self> {
        let [CfNode::Block(before), CfNode::If(start), CfNode::Block(after), ..] = &function.body[..] else {
            return None;
        };
        let If { condition, then, otherwise, .. } = &**start;
        let [CfNode::Block(test), CfNode::If(elected), CfNode::Block(end)] = &then[..] else { return None };
        let fits = is_test(function, *condition, IntrinsicOp::PreambleStartIr3)
            && is_test(function, elected.condition, IntrinsicOp::ElectAnyIr3)
            && is_empty(function, otherwise)
            && is_empty(function, &elected.otherwise);
        fits.then_some(Self { before: *before, test: *test, body: &elected.then, end: *end, after: *after })
    }
}

/// The words of the constant file that an access reads or writes, if its offset is constant.
pub fn words(function: &Function, access: &Intrinsic) -> Option<Range<i64>> {
    let base = i64::from(access.indices.base());
    match access.op {
        IntrinsicOp::CopyUboToUniformIr3 => return Some(base..base + 4 * i64::from(access.indices.range())),
        IntrinsicOp::CopyPushConstToUniformIr3 => {
            // The base is that of the push constants.
            let first = i64::from(function.as_const_scalar(access.srcs[0])? as u32);
            return Some(first..first + i64::from(access.indices.range()));
        }
        _ => {}
    }
    let offset = match (access.op, access.srcs.last()) {
        (IntrinsicOp::LoadConstIr3, Some(&offset)) => i64::from(function.as_const_scalar(offset)? as i32),
        _ => 0,
    };
    let first = base + offset;
    let value = access.def.or_else(|| access.srcs.first().copied())?;
    Some(first..first + i64::from(function.defs[value].num_components))
}

/// The first instruction because of which the words that a preamble fills cannot be replaced by their values, and why.
pub fn obstacle(function: &Function) -> Option<(Instr, &'static str)> {
    use IntrinsicOp::{CopyPushConstToUniformIr3, CopyUboToUniformIr3, StoreConstIr3};
    let filled = |op| matches!(op, StoreConstIr3 | CopyUboToUniformIr3 | CopyPushConstToUniformIr3);
    let Some(Preamble { body, after, .. }) = Preamble::of(function) else {
        let all = function.instrs_in_order();
        let mut filling = all.map(|(_, instr)| instr).filter(|&instr| {
            intrinsic(function, instr)
                .is_some_and(|access| filled(access.op) || access.op == IntrinsicOp::PreambleStartIr3)
        });
        return filling.next().map(|instr| (instr, "the preamble has another form than Mesa's"));
    };
    let top: Vec<Block> =
        body.iter().filter_map(|node| if let CfNode::Block(block) = node { Some(*block) } else { None }).collect();
    function.instrs_in_order().find_map(|(block, instr)| {
        let why = match (&function.instrs[instr], intrinsic(function, instr)) {
            (InstrData::Phi { .. }, _) if block == after => "a value of the preamble is merged after it",
            (_, Some(access)) if filled(access.op) && !top.contains(&block) => {
                "words of the constant file are stored in a branch, in a loop, or after the preamble"
            }
            (_, Some(access)) if access.op == CopyPushConstToUniformIr3 => "push constants are copied",
            (_, Some(access)) if access.op == StoreConstIr3 => match function.defs[access.srcs[0]].bit_size {
                32 => return None,
                _ => "words of the constant file are stored that do not have 32 bits",
            },
            (_, Some(access)) if access.op == IntrinsicOp::LoadConstIr3 => match words(function, access) {
                Some(_) => return None,
                None => "a word of the constant file is loaded at a computed offset, and may be one of the preamble",
            },
            _ => return None,
        };
        Some((instr, why))
    })
}
