//! Operations across lanes, and varyings.

use super::RunningWave;
use crate::arithmetic::float;
use crate::arithmetic::rows::{LANES, Row, splat};
use crate::environment::env::lanes;
use crate::interp::ir3::op::{DecodedOp, ScanOp, Which};
use crate::interp::ir3::storage::Write;
use crate::interp::waves;
use ir3_compiler::ir3::ShuffleMode;

impl RunningWave<'_> {
    pub(super) fn cross_lane(&mut self, op: &DecodedOp) {
        let mask = self.active.mask;
        match op {
            DecodedOp::Interpolate { varying, ij: [i, j], half, dst } => {
                let Self { storage, buffers, env, active, .. } = self;
                let [number, a, b, out] = buffers;
                let mut poison = storage.fetch(varying, number);
                poison |= storage.fetch(i, a) | storage.fetch(j, b);
                // Almost always the number is the same in all lanes.
                let mut rest = mask;
                while rest != 0 {
                    let first = number[rest.trailing_zeros() as usize];
                    let mut row = [0; LANES];
                    env.interpolate(first, a, b, *half, &mut row);
                    for lane in lanes(rest) {
                        if number[lane] == first {
                            out[lane] = row[lane];
                            rest &= !(1 << lane);
                        }
                    }
                }
                storage.write(*dst, out, poison, active);
            }
            DecodedOp::Flat { varying, component, half, dst } => {
                let Self { storage, buffers, env, active, .. } = self;
                let [number, .., out] = buffers;
                let poison = storage.fetch(varying, number);
                for lane in lanes(mask) {
                    let [value, ..] = env.varying(number[lane].wrapping_add(*component), env.primitive(lane));
                    out[lane] = if *half { value & 0xffff } else { value };
                }
                storage.write(*dst, out, poison, active);
            }
            DecodedOp::MoveMask { predicate, word, dst } => {
                let (holds, poison) = match predicate {
                    Some(predicate) => self.test(predicate),
                    None => (mask, 0),
                };
                let word = if *word < 2 { (holds >> (32 * word)) as u32 } else { 0 };
                self.uniform(*dst, word, poison & mask != 0);
            }
            DecodedOp::Vote { any, predicate, dst } => {
                let (holds, poison) = self.test(predicate);
                let result = if *any { holds != 0 } else { holds == mask };
                self.uniform(*dst, result.into(), poison & mask != 0);
            }
            DecodedOp::Elect(dst) => {
                let mut row = splat(0);
                row[mask.trailing_zeros() as usize] = 1;
                self.storage.write(*dst, &row, 0, &self.active);
            }
            DecodedOp::ReadLane { which, src, dst } => {
                let (lane, undefined) = match which {
                    Which::First => (Some(mask.trailing_zeros() as usize), false),
                    Which::Last => (Some(waves::last_of_first_cluster(mask) as usize), false),
                    Which::Where(predicate) => {
                        let (holds, poison) = self.test(predicate);
                        let lane = (holds != 0).then(|| holds.trailing_zeros() as usize);
                        (lane, poison & mask != 0)
                    }
                };
                match lane {
                    Some(lane) => {
                        self.storage.fetch(src, &mut self.buffers[3]);
                        let value = self.buffers[3][lane];
                        let open = if undefined { u32::MAX } else { self.storage.open_bits(src, lane) };
                        let poison = if open == 0 { 0 } else { mask };
                        self.storage.write_partly(*dst, &splat(value), poison, &splat(open), &self.active);
                    }
                    None => self.uniform(*dst, 0, true),
                }
            }
            DecodedOp::Scan(scan) => self.scan(scan),
            DecodedOp::Derivative { bit, fine, half, src, dst } => {
                let (bit, subtract) = (usize::from(*bit), if *half { float::sub16 } else { float::sub32 });
                self.permute(*src, *dst, false, |lane, value| {
                    let near = if *fine { lane & !bit } else { lane & !3 };
                    let (from, to) = (value(near)?, value(near | bit)?);
                    Some(subtract(to, from))
                });
            }
            DecodedOp::BroadcastActive { cluster, src, default, dst } => {
                let cluster = usize::from(*cluster);
                let default_poison = self.storage.fetch(default, &mut self.buffers[2]);
                let default = self.buffers[2];
                self.permute(*src, *dst, true, |lane, value| {
                    let start = lane & !(cluster - 1);
                    let middle = start + cluster / 2;
                    let source = (start..middle).rev().find(|&from| mask >> from & 1 != 0);
                    match source {
                        Some(from) if lane >= middle => value(from),
                        _ => (default_poison >> lane & 1 == 0).then(|| default[lane]),
                    }
                });
            }
            DecodedOp::QuadShuffle { lane: index, flip, src, dst } => {
                let (flip, mut poison, mut numbers) = (usize::from(*flip), 0, splat(0));
                if let Some(index) = index {
                    poison = self.storage.fetch(index, &mut numbers);
                }
                self.permute(*src, *dst, true, |lane, value| {
                    if index.is_none() {
                        value(lane ^ flip)
                    } else if poison >> lane & 1 != 0 {
                        None
                    } else {
                        value(lane & !3 | numbers[lane] as usize & 3)
                    }
                });
            }
            DecodedOp::Shuffle { mode, index, src, dst } => {
                let mut numbers = splat(0);
                let mut poison = self.storage.fetch(index, &mut numbers);
                // The machine takes the index of one lane.
                if !waves::is_uniform(&numbers, poison, mask) {
                    poison = u64::MAX;
                }
                self.permute(*src, *dst, true, |lane, value| {
                    if poison >> lane & 1 != 0 {
                        return None;
                    }
                    let (own, number) = (lane as u32, numbers[lane]);
                    let from = match mode {
                        ShuffleMode::Xor => own ^ number,
                        ShuffleMode::Up => own.checked_sub(number)?,
                        ShuffleMode::Down => own.checked_add(number)?,
                        ShuffleMode::RotateUp => own.wrapping_sub(number) % LANES as u32,
                        ShuffleMode::RotateDown => own.wrapping_add(number) % LANES as u32,
                    };
                    if from < LANES as u32 { value(from as usize) } else { None }
                });
            }
            // `RunningWave::op` handles the others.
            _ => {}
        }
    }

    /// Writes one value in all active lanes.
    fn uniform(&mut self, dst: Write, value: u32, poison: bool) {
        self.storage.write(dst, &splat(value), if poison { !0 } else { 0 }, &self.active);
    }

    /// Writes a result that each active lane computes from other lanes' values; `None` is poison, and so is the value
    /// of an inactive lane. `moves`: the result is one of the values, and is poison in the same bits.
    fn permute(
        &mut self,
        src: crate::interp::ir3::storage::Read,
        dst: Write,
        moves: bool,
        result: impl Fn(usize, &dyn Fn(usize) -> Option<u32>) -> Option<u32>,
    ) {
        let mut values: Row = [0; LANES];
        let poisoned = self.storage.fetch(&src, &mut values) & self.active.mask;
        let readable = self.active.mask & !poisoned;
        let value = |lane: usize| (readable >> lane & 1 != 0).then(|| values[lane]);
        let Self { storage, buffers: [.., out], open, active, .. } = self;
        let mut undefined = 0;
        for lane in lanes(active.mask) {
            match result(lane, &value) {
                Some(bits) => out[lane] = bits,
                None => undefined |= 1 << lane,
            }
        }
        if !moves || undefined == 0 || poisoned == 0 {
            return storage.write(dst, out, undefined, active);
        }
        // The lane that the value comes from, found by permuting lane numbers.
        let number = |lane: usize| (poisoned >> lane & 1 != 0).then_some(lane as u32);
        for lane in lanes(undefined) {
            open[lane] = u32::MAX;
            if let Some(from) = result(lane, &number) {
                out[lane] = values[from as usize];
                open[lane] = storage.open_bits(&src, from as usize);
            }
        }
        // Lanes that turn out to be defined have an empty mask of bits.
        storage.write_partly(dst, out, undefined, open, active);
    }

    /// Combines lanes, or clusters of 8 lanes, in order.
    fn scan(&mut self, scan: &ScanOp) {
        let mask = self.active.mask;
        let mut rows = [[0; LANES]; 3];
        let [values, before, exclusive_values] = &mut rows;
        let undefined = self.storage.fetch(&scan.src, values);
        let initial_poison = self.storage.fetch(&scan.initial, before);
        let exclusive_undefined = match &scan.exclusive_src {
            Some(src) => self.storage.fetch(src, exclusive_values),
            None => 0,
        };
        let first = mask.trailing_zeros() as usize;
        let narrow = if scan.half { 0xffff } else { u32::MAX };
        let mut sum = before[first];
        let mut sum_poison = initial_poison >> first & 1 != 0;
        let (mut inclusive, mut exclusive) = ([0; LANES], [0; LANES]);
        let (mut inclusive_poison, mut exclusive_poison) = (0, 0);
        let size = if scan.clusters { 8 } else { 1 };
        for cluster in 0..LANES / size {
            let members = mask & ((1u64 << (size - 1) << 1).wrapping_sub(1) << (cluster * size));
            if members == 0 {
                continue;
            }
            let poison_of = |undefined: u64| if sum_poison { members } else { members & undefined };
            *before = splat(sum & narrow);
            let mut row = [0; LANES];
            (scan.kernel.run)(&mut row, values, before);
            inclusive_poison |= poison_of(undefined);
            let mut other = *before;
            if scan.exclusive_src.is_some() {
                (scan.kernel.run)(&mut other, exclusive_values, before);
                exclusive_poison |= poison_of(exclusive_undefined);
            } else {
                exclusive_poison |= poison_of(0);
            }
            for lane in lanes(members) {
                inclusive[lane] = row[lane];
                exclusive[lane] = other[lane];
            }
            let last = 63 - members.leading_zeros() as usize;
            sum = inclusive[last];
            sum_poison = inclusive_poison >> last & 1 != 0;
        }
        if let Some(dst) = scan.exclusive {
            self.storage.write(dst, &exclusive, exclusive_poison, &self.active);
        }
        if let Some(dst) = scan.inclusive {
            self.storage.write(dst, &inclusive, inclusive_poison, &self.active);
        }
        self.uniform(scan.reduction, sum, sum_poison);
    }
}
