//! Words of the constant file that a preamble stores, for all lanes.
//!
//! A preamble is run by one wave of a draw, which one is a [variable](super::environment::runs_preamble), and there by
//! the one lane that is elected. All others read its stores. A word is *kept* if its value is known for all of them, at
//! any later read:
//!
//! - The program has one store of the word, or one copy to it, and runs it once, so nothing else ever replaces it.
//! - The election is before any loop, and all lanes of the wave take part: one of them is elected. The store is on the
//!   path of exactly this lane, or of all lanes.
//! - The value is defined, and is the same in all lanes, and in all waves if only one runs the store: each of them
//!   would have computed it.
//! - The store is executed, in the order of the blocks, before the load.
//!
//! In a segment from a loop header the value must mean the same as at the entry.
//!
//! This is for targets without stores to the file ([`Oracle::keeps_words`]): otherwise the stores are events of both
//! programs, and loads are functions of the versions that they make.

use super::environment::{self, Constants};
use super::memory::{self, AccessTarget};
use super::run::SymbolicMachine;
use super::{Cut, EventSite, Oracle, SymbolicValue, lanes};
use ir3_semantics::environment::env::CONST_WORDS;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::Term;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The words that a program stores exactly once, of all that it stores.
pub fn stored_once(words: impl Iterator<Item = u32>) -> FxHashSet<u32> {
    let mut counts: FxHashMap<u32, u32> = FxHashMap::default();
    words.for_each(|word| *counts.entry(word % CONST_WORDS).or_default() += 1);
    let once = |&(_, &count): &(&u32, &u32)| count == 1 || left_out(Guard::KeptOnce);
    counts.iter().filter(once).map(|(&word, _)| word).collect()
}

/// Records the result of an election.
pub fn elect<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, elected: SymbolicValue) {
    if conditions(machine).is_empty() && machine.is_alone() {
        let bit = lanes::truth(machine, elected).bits;
        machine.elected.push(bit);
    }
}

/// Records a copy of words of a uniform buffer.
pub fn copy<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    constants: &Constants,
    site: EventSite,
    source: &AccessTarget,
    (first, words): (u32, u32),
) {
    if !machine.oracle.keeps_words() {
        return;
    }
    for number in 0..words {
        let value = memory::load(machine, site, source, number, 32);
        store(machine, constants, first + number, value);
    }
}

/// Records a store to a word: its value is kept if it is known for all lanes.
pub fn store<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, constants: &Constants, word: u32, value: SymbolicValue) {
    let word = word % CONST_WORDS;
    if !constants.once.contains(&word) || !machine.oracle.keeps_words() {
        return;
    }
    let path = machine.path();
    let runs_preamble = environment::runs_preamble(machine.terms);
    let by_one_wave = machine.terms.conjuncts(path).contains(&runs_preamble);
    // Two elections need not elect the same lane.
    let (by_all, by_one) = match conditions(machine)[..] {
        [] => (true, false),
        [condition] => (false, machine.elected.contains(&condition)),
        _ => (false, false),
    };
    let same = match by_one_wave {
        true => machine.facts.common(machine.terms, value.bits),
        false => machine.facts.uniform(machine.terms, value.bits),
    };
    let is_kept = (by_all || by_one || left_out(Guard::KeptElected))
        && (same || left_out(Guard::KeptUniform))
        && value.is_defined(machine.terms)
        && machine.is_alone()
        && (is_run_once(machine) || left_out(Guard::KeptOnce));
    if is_kept {
        machine.oracle.keep_word(word, value.bits);
    }
}

/// The conditions under which the block is run by a wave that runs the preamble.
fn conditions<O: Oracle>(machine: &mut SymbolicMachine<'_, O>) -> SmallVec<[Term; 4]> {
    let runs_preamble = environment::runs_preamble(machine.terms);
    let mut conditions = machine.terms.conjuncts(machine.path());
    conditions.retain(|condition| *condition != runs_preamble);
    conditions
}

/// Returns true if the block has no copy in a loop, as the test at the start of a rotated loop has.
fn is_run_once<O: Oracle>(machine: &SymbolicMachine<'_, O>) -> bool {
    let placed = &machine.graph.placed;
    let block = placed[machine.block as usize].block;
    placed.iter().filter(|place| place.block == block).count() == 1
}

/// The value of a word that has been stored, if it is kept.
pub fn load<O: Oracle>(machine: &SymbolicMachine<'_, O>, word: u32) -> Option<Term> {
    let value = machine.oracle.kept_word(word % CONST_WORDS)?;
    (machine.run.cut == Cut::Entry || machine.facts.lasting(machine.terms, value)).then_some(value)
}
