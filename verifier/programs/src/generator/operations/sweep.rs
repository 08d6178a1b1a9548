//! Programs that are a row of operations, with each result in memory.
//!
//! In other programs most results are read by other operations, and the sum of the observed values is a good part of
//! the program. Where each lane stores its results at addresses of its own, an operation costs little more than itself,
//! and no difference is masked. So these programs have several times as many operations that are rare.

use super::super::config::CONFIG;
use ir3_compiler::nir::{Def, Index, IntrinsicOp, Op, Stage};

use super::super::Generator;
use super::super::choices::Choices;
use super::swarm::Family;

/// The start of the lanes' own addresses in a buffer, in words: after those that other accesses share.
const OWN_PLACES: u64 = 64;

/// The words of all lanes in one store of four.
const ROW: u64 = 4 * 64;

impl<C: Choices> Generator<'_, C> {
    /// Fills a program with single operations and those of a few families; false if it is to be filled with other code.
    pub(in crate::generator) fn sweep(&mut self) -> bool {
        if self.weights.operation == 0 || self.raw.is_empty() || !self.c.chance(CONFIG.sweep) {
            return false;
        }
        for _ in 0..3 {
            self.limit = self.limit.max(self.c.size());
        }
        self.unstored = Some(Vec::new());
        let fragment = self.b.shader().stage == Stage::Fragment;
        let others = &Family::ALL[1..];
        // Operations across lanes are many, and rare in other programs.
        let lanes = if self.features.lanes { CONFIG.lanes_in_sweep } else { 0 };
        let family = |c: &mut C| if c.chance(lanes) { Family::Lanes } else { c.pick(others).0 };
        let families: Vec<Family> = (0..1 + self.c.below(4)).map(|_| family(self.c)).collect();
        let probes = self.c.pick(&[0, 0, 0, 60, 200, 240]);
        while !self.done() {
            if fragment && self.c.chance(CONFIG.kill_in_sweep) {
                self.operation_of(Family::Kill);
            } else if self.c.chance(probes) {
                self.probe();
            } else {
                let family = self.c.pick(&families);
                self.operation_of(family);
            }
        }
        if let Some(rest) = self.unstored.take().filter(|rest| !rest.is_empty()) {
            self.store_words(&rest);
        }
        true
    }

    /// In a sweep: stores a value, its words with those that were not stored yet.
    pub(in crate::generator) fn store_to_own_place(&mut self, def: Def, mut words: Vec<Def>) {
        self.pool.mark_used(def);
        self.add_words(def, &mut words);
        let whole = words.len() / 4 * 4;
        for four in words[..whole].chunks(4) {
            self.store_words(four);
        }
        words.drain(..whole);
        self.unstored = Some(words);
    }

    /// Stores up to four words where no other lane, and nothing else, stores; in programs without buffers they are
    /// observed in the sum.
    pub(super) fn store_words(&mut self, words: &[Def]) {
        let vector = self.b.vec(words);
        let Some(place) = self.own_place else { return self.define_seen(vector, 256) };
        let buffer = self.c.below(2) as u64;
        let buffer = self.b.constant(32, buffer);
        let [two, start] = [2, OWN_PLACES + ROW * self.own_stores].map(|number| self.b.constant(32, number));
        self.own_stores += 1;
        let element = self.b.alu(Op::Iadd, &[place, start]);
        let bytes = self.b.alu(Op::Ishl, &[element, two]);
        let indices = [Index::WriteMask((1 << words.len()) - 1), Index::AlignMul(4)];
        let srcs = [vector, buffer, bytes, element];
        self.b.intrinsic(IntrinsicOp::StoreSsboIr3, words.len() as u8, 32, &srcs, indices);
    }
}
