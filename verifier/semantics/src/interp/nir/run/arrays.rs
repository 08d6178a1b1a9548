//! Local arrays.

use super::{RunResult, RunningWave};
use crate::arithmetic::rows::{LANES, Row};
use crate::environment::env::lanes;
use crate::interp::UndefinedReason;
use crate::interp::nir::op::ArrayAccess;
use crate::operations::undefined;
use crate::operations::undefined::Partly;

impl RunningWave<'_> {
    /// The element that each active lane accesses, if it is in bounds.
    fn element(&self, access: &ArrayAccess, lane: usize) -> Option<u32> {
        let index = match access.index {
            Some(row) if self.poison[row as usize] >> lane & 1 != 0 => return None,
            Some(row) => self.rows[row as usize][lane].into(),
            None => 0,
        };
        u32::try_from(access.base + index).ok().filter(|&element| element < access.length)
    }

    pub(super) fn array_load(&mut self, access: &ArrayAccess) {
        for &(word, dst) in &access.rows {
            let (mut row, mut poison, mut open) = ([0; LANES], 0, [0; LANES]);
            for lane in lanes(self.active) {
                open[lane] = match self.element(access, lane) {
                    Some(element) => {
                        let from = access.first + element * access.stride + word;
                        row[lane] = self.rows[from as usize][lane];
                        self.open_bits(from, lane)
                    }
                    None => u32::MAX,
                };
                poison |= u64::from(open[lane] != 0) << lane;
            }
            self.adapt(access, &mut row, poison, &mut open);
            self.write_partly(dst, &row, poison, &open);
        }
    }

    pub(super) fn array_store(&mut self, access: &ArrayAccess) -> RunResult {
        let outside = lanes(self.active).filter(|&lane| self.element(access, lane).is_none());
        let outside = outside.fold(0, |mask, lane| mask | 1 << lane);
        if outside != 0 {
            return Err(self.undefined(UndefinedReason::Address, access.origin, outside));
        }
        if self.state.decisions.is_some() {
            let elements: Vec<u64> =
                lanes(self.active).filter_map(|lane| self.element(access, lane)).map(u64::from).collect();
            self.state.decide(elements);
        }
        for &(word, src) in &access.rows {
            let mut row = self.rows[src as usize];
            let poison = self.poison[src as usize] & self.active;
            let mut open = if poison == 0 { [0; LANES] } else { self.opened(src, poison) };
            self.adapt(access, &mut row, poison, &mut open);
            for lane in lanes(self.active) {
                let Some(element) = self.element(access, lane) else { continue };
                let to = (access.first + element * access.stride + word) as usize;
                self.rows[to][lane] = row[lane];
                self.set_lane_open(to, lane, open[lane]);
            }
        }
        Ok(())
    }

    /// Converts words to the type of an array access; some bits are poison in some lanes.
    fn adapt(&self, access: &ArrayAccess, row: &mut Row, poison: u64, open: &mut Row) {
        let Some(adapt) = access.adapt else { return };
        let before = *row;
        (adapt.run)(row);
        for lane in lanes(poison) {
            let word = undefined::partly_modified(adapt, Partly::new(before[lane], open[lane]));
            (row[lane], open[lane]) = (word.bits, word.open);
        }
    }
}
