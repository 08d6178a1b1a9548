//! Decides if a change of the executed instructions matters: a branch to the instruction after its target, or before
//! it, or an instruction with a repetition less.
//!
//! An instruction may be left out if no instruction reads its results, and also if it only recomputes a value that is
//! available already; and so it may be executed once more. This is decided from the code, along the edges of lanes: no
//! run, and nothing of the hazard checker or of the machine, takes part.

use super::needed::{Paths, Span};
use ir3_compiler::ir3::{Attrs, Category, Dst, InstrData, InstrFlags, Opcode, OperandFlags, Place, Src, SrcOperand};
use std::ops::Range;

/// Words of a set of half registers of all files.
const WORDS: usize = 11;
type Registers = [u64; WORDS];

fn add(set: &mut Registers, spans: &[Span]) {
    each(spans, |word, bit| set[word] |= bit);
}

fn remove(set: &mut Registers, spans: &[Span]) {
    each(spans, |word, bit| set[word] &= !bit);
}

fn meets(set: &Registers, spans: &[Span]) -> bool {
    let mut any = false;
    each(spans, |word, bit| any |= set[word] & bit != 0);
    any
}

fn each(spans: &[Span], mut visit: impl FnMut(usize, u64)) {
    const FIRST: [u32; 5] = [0, 384, 576, 640, 644];
    for &(file, from, to) in spans {
        for unit in from..to {
            // Predicates and addresses have the numbers of their registers.
            let unit = if file >= 3 { unit % 4 } else { unit };
            let unit = (FIRST[usize::from(file)] + unit) as usize;
            visit(unit / 64, 1 << (unit % 64));
        }
    }
}

/// The registers that later instructions depend on, at each position.
pub struct Meaning<'a> {
    paths: &'a Paths<'a>,
    /// True for instructions that do more than to write registers.
    effects: Vec<bool>,
    /// The registers at the start of each instruction that something with an effect depends on.
    live: Vec<Registers>,
}

impl<'a> Meaning<'a> {
    /// Computes liveness. A register that only dead instructions read is dead.
    pub fn new(paths: &'a Paths<'a>) -> Self {
        let count = paths.next.len();
        let effects = (0..count).map(|at| has_effect(paths, at)).collect();
        let mut this = Self { paths, effects, live: vec![[0; WORDS]; count] };
        let predicated = this.predicated();
        loop {
            let mut changed = false;
            for at in (0..count).rev() {
                let after = this.after(at);
                let mut live = after;
                let writes = this.changed(at);
                let kills = !predicated[at] && !paths.data(at).dsts.iter().any(|dst| dst.place.is_relative());
                if kills {
                    remove(&mut live, &writes);
                }
                if this.effects[at] || meets(&after, &writes) {
                    paths.reads(at).iter().for_each(|(_, _, spans, _)| add(&mut live, spans));
                }
                changed |= live != this.live[at];
                this.live[at] = live;
            }
            if !changed {
                return this;
            }
        }
    }

    /// The registers that an instruction may change: none if it moves one to itself.
    fn changed(&self, at: usize) -> Vec<Span> {
        let data = self.paths.data(at);
        let same = |dst: &Dst, src: &Src| {
            src.place() == Some(&dst.place)
                && src.class == dst.class
                && src.mods.is_empty()
                && dst.place.reg().is_some()
        };
        let keeps = match (data.opcode, &data.dsts[..], &data.srcs[..]) {
            (Opcode::Mov, [dst], [src]) => {
                same(dst, src) && matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst)
            }
            _ => false,
        };
        if keeps { Vec::new() } else { self.paths.written(at) }
    }

    /// The registers that are live after an instruction.
    fn after(&self, at: usize) -> Registers {
        let mut live = [0; WORDS];
        for &next in &self.paths.next[at] {
            live.iter_mut().zip(&self.live[next]).for_each(|(word, bits)| *word |= bits);
        }
        live
    }

    fn predicated(&self) -> Vec<bool> {
        let mut open = false;
        let inside = (0..self.paths.next.len()).map(|at| {
            match self.paths.data(at).opcode {
                Opcode::Predt | Opcode::Predf => open = true,
                Opcode::Prede => open = false,
                _ => {}
            }
            open
        });
        inside.collect()
    }

    /// Returns true if it matters that a branch skips an instruction, its target.
    pub fn skip_matters(&self, branch: usize, at: usize) -> bool {
        let needed = self.effects[at] || meets(&self.after(at), &self.changed(at));
        needed && !self.computes_again(branch, at)
    }

    /// Returns true if it matters that a branch executes the instruction before its target, too.
    pub fn extra_matters(&self, branch: usize, at: usize) -> bool {
        if let Some(skipped) = self.skipped_by_jump(at) {
            return skipped.into_iter().any(|at| self.skip_matters(branch, at));
        }
        let live = self.live.get(at + 1).copied().unwrap_or_default();
        let needed = self.effects[at] || meets(&live, &self.changed(at));
        needed && !self.computes_again(branch, at)
    }

    /// The instructions that a jump forwards leaves out, if they are straight code.
    fn skipped_by_jump(&self, at: usize) -> Option<Range<usize>> {
        let &[to] = &self.paths.next[at][..] else { return None };
        let skipped = at + 1..to;
        let is_straight = |at: usize| self.paths.next[at] == [at + 1];
        (self.paths.data(at).opcode == Opcode::Jump && to > at && skipped.clone().all(is_straight)).then_some(skipped)
    }

    /// Returns true if dropping the last repetition of an instruction matters.
    pub fn last_matters(&self, at: usize) -> bool {
        let live = self.after(at);
        let lost = self.paths.writes(at).into_iter().filter_map(|(.., spans, _)| spans.last().copied());
        !self.last_keeps(at) && (self.effects[at] || lost.into_iter().any(|span| meets(&live, &[span])))
    }

    /// Returns true if the last repetition of an instruction does not change its register: the choice of two
    /// values that are this register, or the least or greatest of them.
    fn last_keeps(&self, at: usize) -> bool {
        use Opcode::{AndB, MaxS, MaxU, MinS, MinU, OrB, SelB16, SelB32};
        let data = self.paths.data(at);
        let Some(dst) = data.dsts.first() else { return false };
        let last = u16::from(data.repeat);
        let Some(own) = dst.place.reg().map(|reg| reg.0 + last) else { return false };
        let is_own = |src: &Src| {
            let step = if src.flags.contains(OperandFlags::R) { last } else { 0 };
            src.place().and_then(Place::reg).is_some_and(|reg| reg.0 + step == own)
                && src.class == dst.class
                && src.mods.is_empty()
        };
        let chosen: &[usize] = match data.opcode {
            SelB16 | SelB32 => &[0, 2],
            AndB | MaxS | MaxU | MinS | MinU | OrB => &[0, 1],
            _ => return false,
        };
        !data.flags.contains(InstrFlags::SAT) && chosen.iter().all(|&n| data.srcs.get(n).is_some_and(is_own))
    }

    /// Returns true if an instruction recomputes after a branch a value that it, or an equal one, always has computed
    /// before it: nothing in between writes its registers.
    fn computes_again(&self, branch: usize, at: usize) -> bool {
        let data = self.paths.data(at);
        let computes =
            matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3 | Category::Sfu);
        let mut own = [0; WORDS];
        let writes = self.paths.written(at);
        self.paths.reads(at).iter().for_each(|(_, _, spans, _)| add(&mut own, spans));
        if !computes || self.effects[at] || meets(&own, &writes) {
            return false;
        }
        add(&mut own, &writes);
        let is_same = |other: usize| {
            let other = self.paths.data(other);
            (other.opcode, other.repeat) == (data.opcode, data.repeat)
                && other.attrs == data.attrs
                && other.flags - WAITS == data.flags - WAITS
                && other.dsts == data.dsts
                && other.srcs == data.srcs
        };
        let predicated = self.predicated();
        (0..self.paths.next.len())
            .filter(|&other| other == at || is_same(other) && !predicated[other])
            .any(|other| self.always_before(branch, other) && !self.written_between(other, branch, &own))
    }

    /// Returns true if every path from the start to a branch has an instruction on it.
    fn always_before(&self, branch: usize, at: usize) -> bool {
        branch != at && !self.forward(0, at)[branch]
    }

    /// Returns true if one of some registers may be written on a path from an instruction to a branch that does not
    /// come back to the instruction.
    fn written_between(&self, from: usize, branch: usize, registers: &Registers) -> bool {
        let mut before = vec![false; self.paths.next.len()];
        before[branch] = true;
        // The positions from which the branch is reached around the instruction.
        loop {
            let reaches = |at: usize| at != from && self.paths.next[at].iter().any(|&next| before[next]);
            let new: Vec<usize> = (0..before.len()).filter(|&at| !before[at] && reaches(at)).collect();
            if new.is_empty() {
                break;
            }
            new.into_iter().for_each(|at| before[at] = true);
        }
        let starts = &self.paths.next[from];
        starts.iter().any(|&start| {
            let after = self.forward(start, from);
            (0..before.len()).any(|at| before[at] && after[at] && meets(registers, &self.paths.written(at)))
        })
    }

    /// The positions that are reached from one, itself included, around another.
    fn forward(&self, from: usize, around: usize) -> Vec<bool> {
        let mut seen = vec![false; self.paths.next.len()];
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            if at != around && !std::mem::replace(&mut seen[at], true) {
                todo.extend(&self.paths.next[at]);
            }
        }
        seen
    }
}

/// Flags that do not affect the computed values.
const WAITS: InstrFlags = InstrFlags::SS.union(InstrFlags::SY).union(InstrFlags::JP).union(InstrFlags::UL);

/// Returns true if an instruction does more than to write registers.
fn has_effect(paths: &Paths<'_>, at: usize) -> bool {
    use Opcode::{Br, Jump, LdcK, LdgK, Nop, Stc, Stsc};
    let data = paths.data(at);
    match data.opcode.category() {
        // A branch to the next instruction goes nowhere else.
        Category::Flow if matches!(data.opcode, Br | Jump) => paths.next[at].iter().any(|&next| next != at + 1),
        Category::Flow => data.opcode != Nop,
        Category::Barrier => true,
        Category::Memory if data.opcode == Stc => is_read(paths, data),
        Category::Memory => {
            data.dsts.is_empty() || data.opcode.is_atomic() || matches!(data.opcode, Stsc | LdcK | LdgK)
        }
        _ => false,
    }
}

/// Returns true if an instruction reads one of the constants that another one writes.
fn is_read(paths: &Paths<'_>, store: &InstrData) -> bool {
    let [to, from, ..] = &store.srcs[..] else { return true };
    let SrcOperand::Immediate(first) = to.operand else { return true };
    let written = first..first + from.mask.span();
    (0..paths.next.len()).flat_map(|at| &paths.data(at).srcs).any(|src| match src.operand {
        SrcOperand::Const(word) => {
            let read = u32::from(word)..u32::from(word) + src.mask.span();
            read.start < written.end && written.start < read.end
        }
        SrcOperand::ConstRelative(_) => true,
        _ => false,
    })
}
