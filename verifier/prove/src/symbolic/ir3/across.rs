//! Cross-lane operations, and operations whose result depends on the lane's position.

use super::Ir3;
use crate::symbolic::lanes;
use crate::symbolic::lanes::{LaneResult, LaneScan, OneLane, ScanPart};
use crate::symbolic::operation::{Elected, LaneOperation, ShuffleOperation};
use crate::symbolic::run::SymbolicMachine;
use crate::symbolic::{EventSite, Oracle, SymbolicValue, environment};
use ir3_compiler::ir3::ShuffleMode;
use ir3_semantics::arithmetic::domain::Domain;
use ir3_semantics::interp::ir3::op;
use ir3_semantics::interp::ir3::op::{DecodedOp, Which};
use ir3_semantics::interp::ir3::storage::Write;
use smallvec::{SmallVec, smallvec};

impl Ir3<'_> {
    pub(super) fn across<O: Oracle>(&self, site: EventSite, op: &DecodedOp, machine: &mut SymbolicMachine<'_, O>) {
        let (value, dst) = match op {
            DecodedOp::Interpolate { varying, ij, half, dst } => {
                let number = self.read(varying, machine);
                let ij = [0, 1].map(|i| self.read(&ij[i], machine));
                let coordinates = Some(ij.map(|value| value.bits));
                let word = environment::varying(machine.terms, number.bits, coordinates, *half);
                (SymbolicValue::defined(machine.terms, word), *dst)
            }
            DecodedOp::Flat { varying, component, half, dst } => {
                let number = self.read(varying, machine);
                let component = machine.terms.constant(32, (*component).into());
                let at = machine.terms.add(32, number.bits, component);
                let word = environment::varying(machine.terms, at, None, *half);
                (SymbolicValue::defined(machine.terms, word), *dst)
            }
            DecodedOp::MoveMask { predicate, word, dst } => {
                let bit = match predicate {
                    Some(predicate) => {
                        let value = self.observed(predicate, machine);
                        lanes::truth(machine, value)
                    }
                    None => {
                        let always = machine.terms.constant(1, 1);
                        SymbolicValue::defined(machine.terms, always)
                    }
                };
                (lanes::ballot(machine, site, *word, bit), *dst)
            }
            DecodedOp::Vote { any, predicate, dst } => {
                let value = self.observed(predicate, machine);
                let bit = lanes::truth(machine, value);
                (lanes::vote(machine, site, *any, bit), *dst)
            }
            DecodedOp::Elect(dst) => (
                lanes::across(machine, site, LaneOperation::Elect(Elected::First), smallvec![], LaneResult::Own, 1),
                *dst,
            ),
            DecodedOp::ReadLane { which, src, dst } => {
                let value = self.observed(src, machine);
                let value = match which {
                    Which::First => lanes::of_one_lane(machine, site, OneLane::First, value),
                    Which::Last => lanes::of_one_lane(machine, site, OneLane::Last, value),
                    Which::Where(predicate) => {
                        let predicate = self.observed(predicate, machine);
                        let bit = lanes::truth(machine, predicate);
                        lanes::read_where(machine, site, value, bit)
                    }
                };
                (value, *dst)
            }
            DecodedOp::Scan(scan) => return self.scan(site, scan, machine),
            DecodedOp::Derivative { bit, fine, half, src, dst } => {
                let value = self.observed(src, machine);
                let operation = LaneOperation::Derivative { bit: *bit, fine: *fine, half: *half };
                let bits = if *half { 16 } else { 32 };
                (lanes::across(machine, site, operation, smallvec![value], LaneResult::Other, bits), *dst)
            }
            DecodedOp::BroadcastActive { cluster, src, default, dst } => {
                let (value, kept) = (self.observed(src, machine), self.observed(default, machine));
                (lanes::broadcast_active(machine, site, *cluster, value, kept), *dst)
            }
            DecodedOp::QuadShuffle { lane, flip, src, dst } => {
                let value = self.observed(src, machine);
                let value = match lane {
                    Some(lane) => {
                        let lane = self.observed(lane, machine);
                        lanes::of_quad(machine, site, value, lane)
                    }
                    None => lanes::swapped(machine, site, *flip, value),
                };
                (value, *dst)
            }
            DecodedOp::Shuffle { mode, index, src, dst } => {
                let (value, mut index) = (self.observed(src, machine), self.observed(index, machine));
                let shuffle = match mode {
                    ShuffleMode::Xor => ShuffleOperation::Xor,
                    ShuffleMode::Up => ShuffleOperation::Up,
                    ShuffleMode::Down => ShuffleOperation::Down,
                    ShuffleMode::RotateDown => ShuffleOperation::Rotate(64),
                    ShuffleMode::RotateUp => {
                        // A rotation by the negated index.
                        let zero = machine.terms.constant(32, 0);
                        index.bits = machine.terms.sub(32, zero, index.bits);
                        ShuffleOperation::Rotate(64)
                    }
                };
                (lanes::shuffled(machine, site, shuffle, value, index, true), *dst)
            }
            _ => unreachable!("the other operations are `op`'s"),
        };
        self.result(site.results(), dst, value, machine);
    }

    fn scan<O: Oracle>(&self, site: EventSite, scan: &op::ScanOp, machine: &mut SymbolicMachine<'_, O>) {
        let mut args: SmallVec<[SymbolicValue; 3]> =
            smallvec![self.observed(&scan.src, machine), self.observed(&scan.initial, machine)];
        let exclusive_src = scan.exclusive_src.as_ref().map(|read| self.observed(read, machine));
        let step = if scan.clusters { 8 } else { 1 };
        let parts = [
            (ScanPart::Exclusive, scan.exclusive),
            (ScanPart::Inclusive, scan.inclusive),
            (ScanPart::Reduction, Some(scan.reduction)),
        ];
        let mut results: SmallVec<[(Write, SymbolicValue); 3]> = SmallVec::new();
        for (i, (part, write)) in parts.into_iter().enumerate() {
            let Some(write) = write else { continue };
            args.truncate(2);
            if part == ScanPart::Exclusive {
                args.extend(exclusive_src);
            }
            let scan = LaneScan { kernel: scan.kernel, step, cluster: 64, part };
            results.push((write, lanes::scan(machine, site.part(i), &scan, &args)));
        }
        for (i, (write, value)) in results.into_iter().enumerate() {
            self.result(site.results().part(i), write, value, machine);
        }
    }
}
