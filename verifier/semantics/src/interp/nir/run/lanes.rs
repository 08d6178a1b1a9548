//! Operations across lanes. Reading the value of an inactive lane gives poison.

use super::{RunResult, RunningWave, nonzero};
use crate::arithmetic::float;
use crate::arithmetic::rows::{ALL_LANES, LANES, Row, splat};
use crate::environment::env::lanes;
use crate::interp::nir::op::{LaneKind, Lanes, R, ScanOp, ScanResult, Shuffle};
use crate::interp::{UndefinedReason, waves};

impl RunningWave<'_> {
    pub(super) fn across_lanes(&mut self, op: &Lanes) -> RunResult {
        self.decided(op)?;
        let active = self.active;
        let first = active.trailing_zeros() as usize;
        let last = 63 - active.leading_zeros() as usize;
        let modes = self.env.device.and_then(|device| device.modes);
        match op.kind {
            LaneKind::Elect { .. } => {
                let mut row = splat(0);
                row[first] = 1;
                self.result(op, &row, 0);
            }
            LaneKind::VoteAny => self.vote(op, |holds| holds != 0),
            LaneKind::VoteAll => self.vote(op, |holds| holds == active),
            LaneKind::VoteEqual { float } => self.vote_equal(op, float, first),
            LaneKind::Ballot { word, .. } => {
                for &(dst, src) in &op.rows {
                    let (holds, poison) = self.test(src);
                    let bits = if word < 2 { (holds >> (32 * word)) as u32 } else { 0 };
                    self.uniform(dst, bits, poison);
                }
            }
            LaneKind::ReadFirst => self.read_lane(op, Some(first), false),
            LaneKind::ReadLast => self.read_lane(op, Some(waves::last_of_first_cluster(active) as usize), false),
            LaneKind::ReadLane(number) => {
                // The number is the same in all lanes; the first lane's is read.
                let undefined = self.poison[number as usize] & active != 0;
                let lane = self.rows[number as usize][first] as usize;
                let readable = lane < LANES && active >> lane & 1 != 0;
                self.read_lane(op, readable.then_some(lane), undefined);
            }
            LaneKind::ReadWhere(predicate) => {
                let (holds, undefined) = self.test(predicate);
                self.read_lane(op, (holds != 0).then(|| holds.trailing_zeros() as usize), undefined);
            }
            LaneKind::Derivative { bit, fine, half } if modes.is_some() => {
                self.device_derivative(op, bit, fine, half);
            }
            LaneKind::Derivative { bit, fine, half } => {
                let bit = usize::from(bit);
                let subtract = if half { float::sub16 } else { float::sub32 };
                self.permute(op, false, |lane, value| {
                    let near = if fine { lane & !bit } else { lane & !3 };
                    Some(subtract(value(near | bit)?, value(near)?))
                });
            }
            LaneKind::Shuffle { mode, index, uniform } => {
                let (numbers, mut poison) = (self.rows[index as usize], self.poison[index as usize]);
                if uniform && !waves::is_uniform(&numbers, poison, active) {
                    poison = ALL_LANES;
                }
                self.permute(op, true, |lane, value| {
                    let own = lane as u32;
                    if poison >> lane & 1 != 0 {
                        return None;
                    }
                    let number = numbers[lane];
                    let from = match mode {
                        Shuffle::Index => number,
                        Shuffle::Xor => own ^ number,
                        Shuffle::Up => own.checked_sub(number)?,
                        Shuffle::Down => own.checked_add(number)?,
                        Shuffle::Rotate(cluster) => {
                            let low = u32::from(cluster) - 1;
                            own & !low | own.wrapping_add(number) & low
                        }
                    };
                    if from < LANES as u32 { value(from as usize) } else { None }
                });
            }
            LaneKind::Swap(flip) => self.permute(op, true, |lane, value| value(lane ^ usize::from(flip))),
            LaneKind::Broadcast(index) => {
                let (numbers, poison) = (self.rows[index as usize], self.poison[index as usize]);
                self.permute(op, true, |lane, value| {
                    if poison >> lane & 1 != 0 { None } else { value(lane & !3 | numbers[lane] as usize & 3) }
                });
            }
            LaneKind::QuadVote { all } => self.permute(op, false, |lane, value| {
                let quad = (0..4).map(|i| lane & !3 | i).filter(|&other| active >> other & 1 != 0);
                let mut votes = 0;
                let mut voters = 0;
                for other in quad {
                    votes += u32::from(value(other)? != 0);
                    voters += 1;
                }
                Some(u32::from(if all { votes == voters } else { votes != 0 }))
            }),
            LaneKind::BroadcastActive { cluster, kept } => {
                let (kept, kept_poison) = (self.rows[kept as usize], self.poison[kept as usize]);
                let cluster = usize::from(cluster);
                self.permute(op, true, |lane, value| {
                    let start = lane & !(cluster - 1);
                    let middle = start + cluster / 2;
                    let source = (start..middle).rev().find(|&from| active >> from & 1 != 0);
                    match source {
                        Some(from) if lane >= middle => value(from),
                        _ => (kept_poison >> lane & 1 == 0).then(|| kept[lane]),
                    }
                });
            }
            LaneKind::Scan(scan) => {
                for &(dst, src) in &op.rows {
                    self.scan(&scan, dst, src);
                }
            }
            LaneKind::LaneNumber { last: want_last } => {
                let lane = if want_last { last } else { first };
                self.result(op, &splat(lane as u32), 0);
            }
            LaneKind::InverseBallot => self.inverse_ballot(op),
        }
        Ok(())
    }

    /// Checks that conditions and indices are defined in the active lanes.
    fn decided(&mut self, op: &Lanes) -> RunResult {
        op.condition_rows().try_for_each(|row| self.condition(row, op.origin, UndefinedReason::LaneNumber).map(|_| ()))
    }

    /// Writes one result to all destinations.
    fn result(&mut self, op: &Lanes, row: &Row, poison: u64) {
        for &(dst, _) in &op.rows {
            self.write(dst, row, poison);
        }
    }

    fn uniform(&mut self, dst: R, value: u32, poison: bool) {
        self.write(dst, &splat(value), if poison { ALL_LANES } else { 0 });
    }

    /// The active lanes where a row is not 0, and whether it is poison in any.
    fn test(&self, row: R) -> (u64, bool) {
        let row = row as usize;
        (nonzero(&self.rows[row]) & self.active, self.poison[row] & self.active != 0)
    }

    fn vote(&mut self, op: &Lanes, result: impl Fn(u64) -> bool) {
        for &(dst, src) in &op.rows {
            let (holds, poison) = self.test(src);
            self.uniform(dst, result(holds).into(), poison);
        }
    }

    /// Tests that all rows have the same value in all active lanes.
    fn vote_equal(&mut self, op: &Lanes, float: Option<u8>, first: usize) {
        let (mut equal, mut poison) = (true, false);
        for &(_, src) in &op.rows {
            let row = &self.rows[src as usize];
            poison |= self.poison[src as usize] & self.active != 0;
            for lane in lanes(self.active) {
                equal &= match float {
                    None => row[lane] == row[first],
                    Some(bits) => {
                        let number = |bits_of: u32| {
                            f32::from_bits(if bits == 16 { float::f16_to_f32(bits_of) } else { bits_of })
                        };
                        number(row[lane]) == number(row[first])
                    }
                };
            }
        }
        if let Some(&(dst, _)) = op.rows.first() {
            self.uniform(dst, equal.into(), poison);
        }
    }

    fn inverse_ballot(&mut self, op: &Lanes) {
        let Some(&(dst, _)) = op.rows.first() else { return };
        let (mut row, mut poison) = ([0; LANES], 0);
        for lane in lanes(self.active) {
            match op.rows.get(lane / 32) {
                Some(&(_, src)) => {
                    row[lane] = self.rows[src as usize][lane] >> (lane % 32) & 1;
                    poison |= self.poison[src as usize] & 1 << lane;
                }
                None => row[lane] = 0,
            }
        }
        self.write(dst, &row, poison);
    }

    /// Writes one lane's value in all lanes.
    fn read_lane(&mut self, op: &Lanes, lane: Option<usize>, undefined: bool) {
        for &(dst, src) in &op.rows {
            match lane {
                Some(lane) => {
                    let open = if undefined { u32::MAX } else { self.open_bits(src, lane) };
                    let poison = if open != 0 { ALL_LANES } else { 0 };
                    self.write_partly(dst, &splat(self.rows[src as usize][lane]), poison, &splat(open));
                }
                None => self.uniform(dst, 0, true),
            }
        }
    }

    /// Writes a result that each active lane computes from other lanes' values; `None` is poison, and so is the value
    /// of an inactive lane. `moves`: the result is one of the values, and is poison in the same bits.
    fn permute(
        &mut self,
        op: &Lanes,
        moves: bool,
        result: impl Fn(usize, &dyn Fn(usize) -> Option<u32>) -> Option<u32>,
    ) {
        for &(dst, src) in &op.rows {
            let values = &self.rows[src as usize];
            let poisoned = self.active & self.poison[src as usize];
            let readable = self.active & !poisoned;
            let value = |lane: usize| (readable >> lane & 1 != 0).then(|| values[lane]);
            let (mut row, mut poison) = ([0; LANES], 0);
            for lane in lanes(self.active) {
                match result(lane, &value) {
                    Some(bits) => row[lane] = bits,
                    None => poison |= 1 << lane,
                }
            }
            if !moves || poison == 0 || poisoned == 0 {
                self.write(dst, &row, poison);
                continue;
            }
            // The lane that the value comes from, found by permuting lane numbers.
            let number = |lane: usize| (poisoned >> lane & 1 != 0).then_some(lane as u32);
            let mut open = [u32::MAX; LANES];
            for lane in lanes(poison) {
                if let Some(from) = result(lane, &number) {
                    row[lane] = values[from as usize];
                    open[lane] = self.open_bits(src, from as usize);
                }
            }
            self.write_partly(dst, &row, poison, &open);
        }
    }

    /// Combines active lanes, or groups of lanes, from the first to the last.
    ///
    /// In a group of several lanes each lane has the combination of the group's lanes up to it, so the last active one
    /// has that of all.
    fn scan(&mut self, scan: &ScanOp, dst: R, src: R) {
        let values = self.rows[src as usize];
        let undefined = self.poison[src as usize];
        let inner = scan.exclusive.map(|row| (self.rows[row as usize], self.poison[row as usize]));
        let (mut row, mut poison) = ([0; LANES], 0u64);
        let (step, cluster) = (usize::from(scan.step), usize::from(scan.cluster));
        let bits_of = |from: usize, count: usize| (ALL_LANES >> (64 - count)) << from;
        for start in (0..LANES).step_by(cluster) {
            let mut sum = scan.identity;
            let mut sum_poison = false;
            for group in (start..start + cluster).step_by(step) {
                let members = self.active & bits_of(group, step);
                if members == 0 {
                    continue;
                }
                let before = splat(sum);
                let mut with = [0; LANES];
                (scan.kernel.run)(&mut with, &values, &before);
                let with_poison = if sum_poison { members } else { undefined & members };
                match (scan.result, inner) {
                    (ScanResult::Exclusive, Some((inner, inner_poison))) => {
                        let mut exclusive = [0; LANES];
                        (scan.kernel.run)(&mut exclusive, &inner, &before);
                        lanes(members).for_each(|lane| row[lane] = exclusive[lane]);
                        poison |= if sum_poison { members } else { inner_poison & members };
                    }
                    (ScanResult::Exclusive, None) => {
                        lanes(members).for_each(|lane| row[lane] = sum);
                        poison |= if sum_poison { members } else { 0 };
                    }
                    _ => {
                        lanes(members).for_each(|lane| row[lane] = with[lane]);
                        poison |= with_poison;
                    }
                }
                let last = 63 - members.leading_zeros() as usize;
                sum = with[last];
                sum_poison = with_poison >> last & 1 != 0;
            }
            if scan.result == ScanResult::Reduce {
                let members = bits_of(start, cluster);
                lanes(members).for_each(|lane| row[lane] = sum);
                poison = poison & !members | if sum_poison { members } else { 0 };
            }
        }
        // A function of an undefined value is another value.
        lanes(poison).for_each(|lane| row[lane] = 0);
        self.write(dst, &row, poison);
    }
}
