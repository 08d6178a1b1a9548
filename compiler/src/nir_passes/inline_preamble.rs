//! Preambles as code of each invocation.
//!
//! On ir3, the preamble computes uniform values once, and stores them in the constant file. Hardware without it computes them in each invocation:
//! the code of the preamble moves to the start of the program, and what is loaded from the words that it stores are the values.
//!
//! Only the form that Mesa emits is changed: `if preamble_start { if elect_any { … preamble_end } }` at the start of the program, with its stores in no
//! other branch or loop, and no load from the constant file at a variable offset.

use crate::nir::{
    AluSrc, Block, CfNode, Def, DefData, Function, If, Index, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op,
};
use rustc_hash::FxHashMap;

/// The parts of a preamble in the tree.
struct Preamble<'a> {
    /// The block before it, which ends with `preamble_start`.
    before: Block,
    /// The block that tests which lane computes.
    test: Block,
    /// Its code.
    body: &'a [CfNode],
    /// The block after the test.
    end: Block,
    /// The block after it.
    after: Block,
}

/// The intrinsic that defines a value, if one does.
fn intrinsic(function: &Function, instr: Instr) -> Option<&Intrinsic> {
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

fn preamble(function: &Function) -> Option<Preamble<'_>> {
    let [CfNode::Block(before), CfNode::If(start), CfNode::Block(after), ..] = &function.body[..] else { return None };
    let If { condition, then, otherwise, .. } = &**start;
    let [CfNode::Block(test), CfNode::If(elected), CfNode::Block(end)] = &then[..] else { return None };
    let fits = is_test(function, *condition, IntrinsicOp::PreambleStartIr3)
        && is_test(function, elected.condition, IntrinsicOp::ElectAnyIr3)
        && is_empty(function, otherwise)
        && is_empty(function, &elected.otherwise);
    fits.then_some(Preamble { before: *before, test: *test, body: &elected.then, end: *end, after: *after })
}

/// The words of the constant file that an access reads or writes, if its offset is constant.
fn words(function: &Function, access: &Intrinsic) -> Option<std::ops::Range<i64>> {
    let offset = match (access.op, access.srcs.last()) {
        (IntrinsicOp::LoadConstIr3, Some(&offset)) => i64::from(function.as_const_scalar(offset)? as i32),
        _ => 0,
    };
    let first = i64::from(access.indices.base()) + offset;
    let value = access.def.or_else(|| access.srcs.first().copied())?;
    Some(first..first + i64::from(function.defs[value].num_components))
}

/// Returns true if the program has a preamble that can be inlined.
pub fn is_needed(function: &Function) -> bool {
    let Some(Preamble { body, after, .. }) = preamble(function) else { return false };
    let top: Vec<Block> =
        body.iter().filter_map(|node| if let CfNode::Block(block) = node { Some(*block) } else { None }).collect();
    let has_phi =
        function.blocks[after].instrs.iter().any(|&instr| matches!(function.instrs[instr], InstrData::Phi { .. }));
    !has_phi
        && function.instrs_in_order().all(|(block, instr)| match intrinsic(function, instr) {
            Some(access) if access.op == IntrinsicOp::StoreConstIr3 => {
                top.contains(&block) && function.defs[access.srcs[0]].bit_size == 32
            }
            Some(access) if access.op == IntrinsicOp::LoadConstIr3 => words(function, access).is_some(),
            _ => true,
        })
}

/// Inlines it.
///
/// # Panics
/// If it is not [needed](is_needed).
pub fn run(function: &mut Function) {
    let Preamble { before, test, body, end, after } = preamble(function).expect("it is needed");
    let body = body.to_vec();
    let first_block = |list: &[CfNode]| match list.first() {
        Some(CfNode::Block(block)) => *block,
        _ => unreachable!("a list begins with a block"),
    };
    let last_block = match body.last() {
        Some(CfNode::Block(block)) => *block,
        _ => unreachable!("a list ends with a block"),
    };
    // Later blocks keep their names: phis name the blocks before loops and the ends of branches.
    let take = |function: &mut Function, block: Block| std::mem::take(&mut function.blocks[block].instrs);
    let mut start = take(function, before);
    start.extend(take(function, test));
    let first = first_block(&body);
    function.blocks[first].instrs.splice(0..0, start);
    let mut ending = take(function, last_block);
    ending.extend(take(function, end));
    function.blocks[after].instrs.splice(0..0, ending);
    let mut list = body;
    list.pop();
    list.extend(function.body.drain(2..));
    function.body = list;
    forward(function);
}

/// Removes the instructions of the preamble, and replaces loads by what it stored.
fn forward(function: &mut Function) {
    let mut stored: FxHashMap<i64, (Def, u8)> = FxHashMap::default();
    let mut removed: Vec<Instr> = Vec::new();
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    for (block, instr) in all {
        let Some(access) = intrinsic(function, instr).cloned() else { continue };
        match (access.op, words(function, &access)) {
            (IntrinsicOp::PreambleStartIr3 | IntrinsicOp::ElectAnyIr3 | IntrinsicOp::PreambleEndIr3, _) => {
                removed.push(instr);
            }
            (IntrinsicOp::StoreConstIr3, Some(words)) => {
                stored.extend(words.zip(0..).map(|(word, component)| (word, (access.srcs[0], component))));
                removed.push(instr);
            }
            (IntrinsicOp::LoadConstIr3, Some(words)) if words.clone().any(|word| stored.contains_key(&word)) => {
                let def = access.def.expect("a load has a result");
                let sources: Vec<(Def, u8)> = words
                    .enumerate()
                    .map(|(i, word)| match stored.get(&word) {
                        Some(&source) => source,
                        None => (load_word(function, block, instr, &access, i as i32), 0),
                    })
                    .collect();
                function.instrs[instr] = gather(def, &sources);
            }
            _ => {}
        }
    }
    for data in function.blocks.values_mut() {
        data.instrs.retain(|instr| !removed.contains(instr));
    }
}

/// A load of one word of those of a load, before it.
fn load_word(function: &mut Function, block: Block, before: Instr, load: &Intrinsic, component: i32) -> Def {
    let index = function.defs.values().map(|data| data.index + 1).max().unwrap_or(0);
    let divergent = load.def.and_then(|def| function.defs[def].divergent);
    let instr = function.instrs.next_key();
    let def = function.defs.push(DefData { num_components: 1, bit_size: 32, divergent, instr, index });
    let base = Index::Base(load.indices.base() + component);
    let word = Intrinsic { def: Some(def), indices: Indices::from([base]), ..load.clone() };
    function.instrs.push(InstrData::Intrinsic(word));
    let list = &mut function.blocks[block].instrs;
    let at = list.iter().position(|&other| other == before).unwrap_or(list.len());
    list.insert(at, instr);
    def
}

/// A vector of components of values.
fn gather(def: Def, sources: &[(Def, u8)]) -> InstrData {
    let one = sources.iter().all(|source| source.0 == sources[0].0);
    match Op::vec(sources.len() as u8) {
        Some(op) if !one => {
            let srcs = sources.iter().map(|&(def, component)| AluSrc::swizzled(def, &[component])).collect();
            super::alu(op, def, srcs)
        }
        _ => {
            let swizzle: Vec<u8> = sources.iter().map(|source| source.1).collect();
            super::alu(Op::Mov, def, [AluSrc::swizzled(sources[0].0, &swizzle)].into_iter().collect())
        }
    }
}
