//! Preambles as code of each invocation.
//!
//! On ir3, the preamble computes uniform values once, and stores them in the constant file. Hardware without it
//! computes them in each invocation: the code of the preamble moves to the start of the program, and loads from the
//! words that it stores are replaced by the values. Words that it copies from a uniform buffer are loaded from there.
//!
//! Not all preambles can be inlined ([`obstacle`]): a word that is loaded at a computed offset may be any, for example.

use crate::arms::{Arm, Counter};
use crate::nir::preamble::{Preamble, intrinsic, obstacle, words};
use crate::nir::{
    Access, AluSrc, Block, CfNode, Def, Function, Index, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op,
};
use rustc_hash::FxHashMap;

/// Returns true if the program has a preamble that can be inlined.
pub fn is_needed(function: &Function) -> bool {
    Preamble::of(function).is_some() && obstacle(function).is_none()
}

/// Inlines it.
///
/// # Panics
/// If it is not [needed](is_needed).
pub fn run(function: &mut Function, counter: &Counter) {
    let Preamble { before, test, body, end, after } = Preamble::of(function).expect("it is needed");
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
    forward(function, counter);
}

/// The content of a word of the constant file.
#[derive(Clone, Copy)]
enum Word {
    /// The word that the driver has filled.
    Driver,
    /// A component of a value.
    Value(Def, u8),
    /// A word of a uniform buffer: the buffer, the first vec4 that is copied, and the number of the word among those
    /// that are copied.
    Buffer(Def, Def, u32),
}

impl Word {
    /// Returns true if one load from a buffer reads this word and another one, `after` components later.
    fn is_loaded_with(self, other: Self, after: usize) -> bool {
        match (self, other) {
            (Self::Buffer(buffer, offset, word), Self::Buffer(other, from, number)) => {
                (buffer, offset, word / 4) == (other, from, number / 4) && word as usize + after == number as usize
            }
            _ => false,
        }
    }
}

/// Removes the instructions of the preamble, and replaces loads by the stored values.
fn forward(function: &mut Function, counter: &Counter) {
    let mut stored: FxHashMap<i64, Word> = FxHashMap::default();
    let mut removed: Vec<Instr> = Vec::new();
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    for (block, instr) in all {
        let Some(access) = intrinsic(function, instr).cloned() else { continue };
        match (access.op, words(function, &access)) {
            (IntrinsicOp::PreambleStartIr3 | IntrinsicOp::ElectAnyIr3 | IntrinsicOp::PreambleEndIr3, _) => {
                removed.push(instr);
            }
            (IntrinsicOp::StoreConstIr3, Some(words)) => {
                stored.extend(words.zip(0..).map(|(word, component)| (word, Word::Value(access.srcs[0], component))));
                removed.push(instr);
            }
            (IntrinsicOp::CopyUboToUniformIr3, Some(words)) => {
                let [buffer, offset] = [access.srcs[0], access.srcs[1]];
                stored.extend(words.zip(0..).map(|(word, number)| (word, Word::Buffer(buffer, offset, number))));
                removed.push(instr);
            }
            (IntrinsicOp::LoadConstIr3, Some(words)) if words.clone().any(|word| stored.contains_key(&word)) => {
                let def = access.def.expect("a load has a result");
                let words: Vec<Word> = words.map(|word| stored.get(&word).copied().unwrap_or(Word::Driver)).collect();
                let mut sources: Vec<(Def, u8)> = Vec::with_capacity(words.len());
                while sources.len() < words.len() {
                    let at = sources.len();
                    match words[at] {
                        Word::Value(def, component) => {
                            counter.count(Arm::PreambleValue);
                            sources.push((def, component));
                        }
                        Word::Driver => {
                            counter.count(Arm::PreambleDriver);
                            let base = Index::Base(access.indices.base() + at as i32);
                            let load = Intrinsic { indices: Indices::from([base]), ..access.clone() };
                            sources.push((load_words(function, (block, instr), load, 1), 0));
                        }
                        Word::Buffer(buffer, offset, number) => {
                            counter.count(Arm::PreambleBuffer);
                            let with = |count: &usize| words[at].is_loaded_with(words[at + count], *count);
                            let count = (1..words.len() - at).take_while(with).count() as u8 + 1;
                            let indices = [
                                Index::Access(Access::empty()),
                                Index::Base((number / 4) as i32),
                                Index::Component((number % 4) as u8),
                            ];
                            let load = Intrinsic {
                                op: IntrinsicOp::LoadUboVec4,
                                srcs: [buffer, offset].into_iter().collect(),
                                indices: Indices::from(indices),
                                ..access.clone()
                            };
                            let loaded = load_words(function, (block, instr), load, count);
                            sources.extend((0..count).map(|component| (loaded, component)));
                        }
                    }
                }
                function.instrs[instr] = gather(def, &sources);
            }
            _ => {}
        }
    }
    for data in function.blocks.values_mut() {
        data.instrs.retain(|instr| !removed.contains(instr));
    }
}

/// A load of `count` words, before another one.
fn load_words(function: &mut Function, (block, before): (Block, Instr), load: Intrinsic, count: u8) -> Def {
    let def = function.new_def(count, 32, load.def.and_then(|def| function.defs[def].divergent));
    let list = &function.blocks[block].instrs;
    let at = list.iter().position(|&other| other == before).unwrap_or(list.len());
    function.insert(block, at, InstrData::Intrinsic(Intrinsic { def: Some(def), ..load }));
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
