//! Control flow of final code, of lanes and of the wave.
//!
//! A lane follows the branches that it takes; if predication makes it inactive, it continues at the instruction that
//! makes it active again. These are the *lane edges*.
//!
//! The wave runs one position at a time. At a branch where lanes diverge, those that go to the earlier position run,
//! and the others wait at the later one, on the branch stack. A jump over a position where lanes wait makes the lanes
//! that jump wait too, at the target, and the wave continues with those that it would have passed; so it does if its
//! lanes end. The lanes that wait at a position join those that arrive there if its instruction has `(jp)`. These are
//! the *wave edges*: the branches of lanes that run, and the turns to positions where others wait. (ir3_reconvergence.c
//! describes both.) The sets of positions where lanes may wait while a block runs are the least sets that satisfy
//! these rules.
//!
//! Lanes do not diverge at votes, at `shps`, nor at branches that the caller marks as uniform.

use super::{HazardError, Refusal};
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{InstrFlags, Mods, Opcode, Src};
use ir3_compiler::machine::{Code, Ip};
use smallvec::SmallVec;
use std::ops::Range;

/// The index of a block; blocks are in the order of the code.
pub type BlockIndex = u32;

/// Instructions that run one after the other.
#[derive(Clone, Debug, Default)]
pub struct CodeBlock {
    /// Their positions.
    pub ips: Range<u32>,
    /// The blocks where its lanes go on.
    pub lanes: SmallVec<[BlockIndex; 2]>,
    /// Further blocks where the wave may go on, with other lanes.
    pub wave: SmallVec<[BlockIndex; 2]>,
    /// The blocks that its branches lead to, for the wave.
    steps: SmallVec<[BlockIndex; 2]>,
    /// Lanes may diverge at its end.
    diverges: bool,
    /// The last active lane may end at its end, in addition to its edges.
    may_end: bool,
    /// Its last instruction leads out of the code.
    leaves_code: bool,
}

/// A continuation of the wave at the end of a block.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The block that runs next; lanes that wait there join.
    pub to: BlockIndex,
    /// Lanes that ran go there.
    pub runs: bool,
    /// The blocks after it where lanes that ran may wait from now on.
    pub waits: SmallVec<[BlockIndex; 2]>,
}

/// The control flow of a program.
#[derive(Debug)]
pub struct Flow {
    /// All blocks, in the order of the code.
    pub blocks: Vec<CodeBlock>,
    /// For each block, the blocks where lanes may wait while it runs, sorted.
    pub waiting: Vec<SmallVec<[BlockIndex; 4]>>,
    /// For each block where lanes may wait, the position of a branch that makes them wait there.
    pub waits_from: Vec<Option<Ip>>,
    /// The block of each position.
    pub block_of: Vec<BlockIndex>,
}

impl Flow {
    /// Computes the control flow; `uniform` is true for branches whose predicates are the same in all lanes.
    ///
    /// # Errors
    /// If control flow leaves the code, or is not understood.
    pub fn new(code: &Code, uniform: &dyn Fn(Ip) -> bool) -> Result<Self, HazardError> {
        let skips = predication(code)?;
        let mut this = blocks(code, &skips, uniform)?;
        this.wait(code)?;
        Ok(this)
    }

    /// The continuations of the wave at the end of a block: with lanes that ran, or with others if those that ran
    /// wait at a later position or have ended.
    pub fn turns(&self, at: usize) -> SmallVec<[Turn; 4]> {
        let CodeBlock { steps, diverges, may_end, .. } = &self.blocks[at];
        let after = |to: BlockIndex| steps.iter().copied().filter(move |&step| step > to);
        let with = steps.iter().map(|&to| Turn {
            to,
            runs: true,
            waits: if *diverges { after(to).collect() } else { SmallVec::new() },
        });
        let ends = *may_end || steps.is_empty();
        let turned = self.waiting[at].iter().filter(|&&to| ends || after(to).next().is_some());
        let without = turned.map(|&to| Turn { to, runs: false, waits: after(to).collect() });
        with.chain(without).collect()
    }

    /// The greatest number of positions where lanes wait at once.
    pub fn depth(&self) -> u32 {
        self.waiting.iter().map(SmallVec::len).max().unwrap_or(0) as u32
    }

    /// Computes where lanes wait, and the wave's edges.
    fn wait(&mut self, code: &Code) -> Result<(), HazardError> {
        let count = self.blocks.len();
        self.waiting = vec![SmallVec::new(); count];
        self.waits_from = vec![None; count];
        let mut pending = vec![false; count];
        let mut reached = vec![false; count];
        (pending[0], reached[0]) = (true, true);
        let mut others: SmallVec<[BlockIndex; 8]> = SmallVec::new();
        while let Some(first) = pending.iter().position(|&pending| pending) {
            for at in first..count {
                if !std::mem::take(&mut pending[at]) {
                    continue;
                }
                let waiting = self.waiting[at].clone();
                let branch = Ip::new(self.blocks[at].ips.end as usize - 1);
                if self.blocks[at].leaves_code {
                    return Err(HazardError { at: branch, refusal: Refusal::LeavesCode });
                }
                let is_branch = !falls_through_only(code.instrs[branch].data.opcode);
                let mut go = |this: &mut Self, to: BlockIndex, others: &[BlockIndex]| {
                    pending[to as usize] |= !std::mem::replace(&mut reached[to as usize], true);
                    for &other in others.iter().filter(|&&other| other > to) {
                        let set = &mut this.waiting[to as usize];
                        if let Err(slot) = set.binary_search(&other) {
                            set.insert(slot, other);
                            pending[to as usize] = true;
                            let from = &mut this.waits_from[other as usize];
                            *from = from.or(is_branch.then_some(branch));
                        }
                    }
                };
                for turn in self.turns(at) {
                    others.clear();
                    others.extend_from_slice(&waiting);
                    others.extend_from_slice(&turn.waits);
                    go(self, turn.to, &others);
                }
            }
        }
        for at in 0..count {
            let turns = self.turns(at);
            let block = &mut self.blocks[at];
            block.wave = turns.iter().map(|turn| turn.to).filter(|to| !block.lanes.contains(to)).collect();
            block.wave.sort_unstable();
            block.wave.dedup();
        }
        Ok(())
    }
}

/// Returns true if an instruction only leads to the next one.
fn falls_through_only(opcode: Opcode) -> bool {
    !opcode.is_terminator()
}

/// Returns true for a branch that is taken whenever the one before it is not.
fn second_of_pair(code: &Code, ip: Ip) -> bool {
    let Some(before) = ip.index().checked_sub(1).map(Ip::new) else { return false };
    let (first, second) = (&code.instrs[before].data, &code.instrs[ip].data);
    let inverted = |(a, b): (&Src, &Src)| (a.operand, a.class) == (b.operand, b.class) && a.mods ^ b.mods == Mods::NOT;
    first.opcode.inverse_branch() == Some(second.opcode)
        && first.srcs.len() == second.srcs.len()
        && first.srcs.iter().zip(&second.srcs).all(inverted)
        && !second.flags.contains(InstrFlags::JP)
}

/// The position where lanes go on that an instruction of predication makes inactive.
#[derive(Clone, Copy)]
struct Skip {
    to: u32,
    /// It is the second of a pair: all active lanes become inactive.
    all: bool,
}

/// The skips of all instructions of predication.
fn predication(code: &Code) -> Result<Vec<Option<Skip>>, HazardError> {
    let mut skips = vec![None; code.instrs.len()];
    let mut open: SmallVec<[Ip; 2]> = SmallVec::new();
    for (ip, instr) in &code.instrs {
        let refuse = |what| Err(HazardError { at: ip, refusal: Refusal::Predication(what) });
        match instr.data.opcode {
            Opcode::Predt | Opcode::Predf => {
                if open.len() == 2 {
                    return refuse("a third one before `prede`");
                }
                if let Some(first) = open.last() {
                    skips[first.index()] = Some(Skip { to: ip.index() as u32 + 1, all: false });
                }
                open.push(ip);
            }
            Opcode::Prede => {
                let Some(last) = open.last() else { return refuse("no `predt` or `predf` before it") };
                skips[last.index()] = Some(Skip { to: ip.index() as u32, all: open.len() == 2 });
                open.clear();
            }
            _ => {}
        }
    }
    match open.first() {
        Some(&at) => Err(HazardError { at, refusal: Refusal::Predication("no `prede` after it") }),
        None => Ok(skips),
    }
}

/// Splits the code into blocks with the edges of branches.
fn blocks(code: &Code, skips: &[Option<Skip>], uniform: &dyn Fn(Ip) -> bool) -> Result<Flow, HazardError> {
    use Opcode::*;
    let count = code.instrs.len();
    let mut starts = vec![false; count + 1];
    let mut targeted = vec![false; count + 1];
    starts[0] = true;
    for (ip, instr) in &code.instrs {
        let opcode = instr.data.opcode;
        if matches!(opcode, Call | Ret | Chsh | FlowRev | Bkt | Stks | Stkr | Xset | Xclr) {
            return Err(HazardError { at: ip, refusal: Refusal::ControlFlow(opcode) });
        }
        if let Some(target) = instr.target {
            starts[target.index().min(count)] = true;
            targeted[target.index().min(count)] = true;
        }
        if let Some(skip) = skips[ip.index()] {
            starts[skip.to as usize] = true;
        }
        starts[ip.index()] |= instr.data.flags.contains(InstrFlags::JP);
        starts[ip.index() + 1] |= opcode.is_terminator() || opcode == Kill;
    }
    let mut block_of = Vec::with_capacity(count);
    let mut first: Vec<u32> = Vec::new();
    for (at, &start) in starts[..count].iter().enumerate() {
        if start {
            first.push(at as u32);
        }
        block_of.push(first.len() as u32 - 1);
    }
    let mut blocks = Vec::with_capacity(first.len());
    for (i, &start) in first.iter().enumerate() {
        let end = first.get(i + 1).copied().unwrap_or(count as u32);
        let last = Ip::new(end as usize - 1);
        let instr = &code.instrs[last];
        let mut block = CodeBlock { ips: start..end, ..CodeBlock::default() };
        let next = block_of.get(end as usize).copied();
        let target = instr.target.and_then(|to| block_of.get(to.index()).copied());
        let steps: SmallVec<[Option<BlockIndex>; 2]> = match instr.data.opcode {
            End | Chmask => SmallVec::new(),
            Jump => SmallVec::from_slice(&[target]),
            // The lanes that arrive at the second of a pair all take it.
            _ if start + 1 == end && !targeted[last.index()] && second_of_pair(code, last) => {
                SmallVec::from_slice(&[target])
            }
            opcode @ (Br | Braa | Brao | Brac | Brax | Bany | Ball | Getone | Getlast | Shps) => {
                let elects = matches!(opcode, Getone | Getlast);
                let votes = matches!(opcode, Bany | Ball | Shps);
                block.diverges = target != next && (elects || !votes && !uniform(last));
                SmallVec::from_slice(&[target, next])
            }
            opcode => {
                block.may_end = opcode == Kill;
                SmallVec::from_slice(&[next])
            }
        };
        block.leaves_code = steps.contains(&None);
        block.steps = steps.into_iter().flatten().collect();
        block.steps.dedup();
        if let Some(skip) = skips[last.index()] {
            // The lanes that become active at the second of a pair come from the first.
            block.lanes = if skip.all { SmallVec::new() } else { block.steps.clone() };
            block.lanes.push(block_of[skip.to as usize]);
            block.lanes.dedup();
        } else {
            block.lanes.clone_from(&block.steps);
        }
        blocks.push(block);
    }
    Ok(Flow { blocks, waiting: Vec::new(), waits_from: Vec::new(), block_of })
}
