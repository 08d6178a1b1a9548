//! Records of a run of nir: the numbers of undefined values, the results of float operations, and promises that are
//! broken.

use super::RunningWave;
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::rows::{ALL_LANES, LANES};
use crate::environment::env::lanes;
use crate::interp::nir::op::{self, R, Sum};
use crate::support::random::hash;
use smallvec::SmallVec;

impl RunningWave<'_> {
    /// Gives the undefined lanes of a row that was written the numbers of their values (see `ties`). A value that was
    /// copied has one already.
    #[cold]
    pub(super) fn number_lanes(&mut self, row: R) {
        let is_one_value = self.code.uses().is_one_value(row);
        for lane in lanes(self.poison[row as usize] & self.active) {
            if self.open_bits(row, lane) != u32::MAX || self.state.ties.is_number(self.rows[row as usize][lane]) {
                continue;
            }
            let wave = self.state.launch.wave;
            self.rows[row as usize][lane] = if is_one_value { self.state.ties.number(wave) } else { 0 };
        }
    }

    /// Records the values of an output that are undefined.
    pub(super) fn output_ties(&mut self, base: u16, component: u8, row: R) {
        let poison = self.poison[row as usize];
        if poison & self.active != 0 || self.state.ties.has_outputs() {
            for lane in lanes(self.active) {
                let bits = (poison >> lane & 1 != 0).then_some(self.rows[row as usize][lane]);
                self.state.ties.output(base, component, lane, bits);
            }
        }
    }

    /// Notes the results of an operation on floats. Those that are the same in all lanes may be those of many
    /// operations.
    pub(super) fn note_float(&mut self, at: u32, exact: bool) {
        for row in op::writes(self.code, &self.code.ops[at as usize]) {
            let row = row as usize;
            let defined = self.active & !self.poison[row];
            let values = || lanes(defined).map(|lane| u64::from(self.rows[row][lane]));
            if let Some(first) = values().next()
                && values().any(|value| value != first)
            {
                let number = values().fold(defined, |all, value| hash(&[all, value]));
                self.state.floats[usize::from(exact)].insert(number);
            }
        }
    }

    /// Records a broken promise of the operation, and makes the result poison there in strict runs.
    pub(super) fn sum(&mut self, index: u32) {
        if !self.facts.both_nir {
            return;
        }
        let Sum { promise, operands, dst } = &self.code.sums[index as usize];
        let word = |rows: &SmallVec<[R; 2]>, lane: usize| {
            let word = |row: &R| u64::from(self.rows[*row as usize][lane]);
            rows.first().map_or(0, word) | rows.get(1).map_or(0, word) << 32
        };
        let defined = self.active & !self.poison[*dst as usize];
        let mut broken = 0;
        for lane in lanes(defined) {
            let [a, b] = operands.each_ref().map(|rows| word(rows, lane));
            for (kind, promise) in promise.each().into_iter().enumerate() {
                if promise.is_broken(&mut Concrete, a, b).is_some_and(|broken| broken != 0) {
                    broken |= 1 << lane;
                    let operation = hash(&[kind as u64, promise.op as u64, promise.bits.into()]);
                    self.state.broken.insert(hash(&[operation, lane as u64, a, b]));
                }
            }
        }
        if broken == 0 || !self.state.keeps_promises {
            return;
        }
        let active = std::mem::replace(&mut self.active, broken);
        for row in *dst..*dst + if promise.bits == 64 { 2 } else { 1 } {
            self.write(row, &[0; LANES], ALL_LANES);
        }
        self.active = active;
    }
}
