//! Operations across lanes, and varyings.

use super::{Decoder, Result};
use crate::interp::ir3::op::{DecodedOp, ScanOp, Which};
use crate::interp::ir3::storage::{Read, Write};
use crate::operations::ir3_alu;
use ir3_compiler::ir3::{Attrs, InstrData, InstrFlags, Opcode, OperandFlags, Place, SrcOperand};

impl Decoder<'_> {
    /// Any instruction of this module.
    pub(super) fn cross_lane(&mut self, data: &InstrData) -> Result {
        use Opcode::*;
        match data.opcode {
            BaryF | FlatB => return self.varying(data),
            Ldlv => return self.local_varying(data),
            ScanMacro | ScanClustersMacro => return self.scan(data),
            _ => {}
        }
        if matches!(data.opcode, BallotMacro | AnyMacro | AllMacro | ReadCondMacro) {
            let predicate = self.source(data, 0, 0)?;
            self.site(data);
            self.push(DecodedOp::Decided(predicate, self.instr));
        }
        let is_derivative = matches!(data.opcode, Dsx | Dsy | DsxppMacro | DsyppMacro | Dsxpp1 | Dsypp1);
        if data.texture().and_then(|texture| texture.ty).is_some_and(|ty| ty.is_float() != is_derivative) {
            return Err("its type: derivatives are those of floats, and lanes are read as bits".to_owned());
        }
        if finishes_in_place(data) {
            return Ok(());
        }
        if data.opcode == Movmsk && data.dsts.iter().any(|dst| dst.mask.span() != 1 + u32::from(data.repeat)) {
            return Err("a mask of other than one word for each repetition".to_owned());
        }
        for (k, dst) in self.results(data)? {
            let op = match data.opcode {
                Movmsk => DecodedOp::MoveMask { predicate: None, word: k, dst },
                BallotMacro => DecodedOp::MoveMask { predicate: Some(self.source(data, 0, 0)?), word: k, dst },
                AnyMacro | AllMacro => {
                    DecodedOp::Vote { any: data.opcode == AnyMacro, predicate: self.source(data, 0, 0)?, dst }
                }
                ElectMacro => DecodedOp::Elect(dst),
                // True if this wave runs the preamble; the branch that is `shps` does not read it.
                ShpsMacro => DecodedOp::Copy(Read::plain(self.slots.undefined()), dst),
                ReadCondMacro => {
                    let predicate = self.source(data, 0, 0)?;
                    DecodedOp::ReadLane { which: Which::Where(predicate), src: self.operand(data, 1, k)?, dst }
                }
                ReadFirstMacro => DecodedOp::ReadLane { which: Which::First, src: self.operand(data, 0, k)?, dst },
                ReadGetlastMacro => DecodedOp::ReadLane { which: Which::Last, src: self.operand(data, 0, k)?, dst },
                Dsx | Dsy | DsxppMacro | DsyppMacro | Dsxpp1 | Dsypp1 => {
                    let src = self.operand(data, 0, k)?;
                    let bit = if matches!(data.opcode, Dsx | DsxppMacro | Dsxpp1) { 1 } else { 2 };
                    // The second of a pair finishes the operation of the first, with the same sources.
                    let fine = !matches!(data.opcode, Dsx | Dsy);
                    DecodedOp::Derivative { bit, fine, half: data.dsts[0].class.half, src, dst }
                }
                BrcstActive => {
                    let kept = self.src(data, 1)?.place().and_then(Place::reg);
                    if let (Some(dst), Some(kept)) = (data.dsts[0].place.reg(), kept)
                        && dst != kept
                    {
                        return Err("a value that stays in another register than its result".to_owned());
                    }
                    let Some(cluster @ (2 | 4 | 8)) = data.texture().and_then(|texture| texture.cluster) else {
                        return Err("the size of a cluster is not known".to_owned());
                    };
                    let (src, default) = (self.operand(data, 0, k)?, self.operand(data, 1, k)?);
                    DecodedOp::BroadcastActive { cluster, src, default, dst }
                }
                QuadShuffleBrcst => {
                    let lane = Some(self.source(data, 1, 0)?);
                    DecodedOp::QuadShuffle { lane, flip: 0, src: self.operand(data, 0, k)?, dst }
                }
                _ => {
                    let flip = match data.opcode {
                        QuadShuffleHoriz => 1,
                        QuadShuffleVert => 2,
                        _ => 3,
                    };
                    DecodedOp::QuadShuffle { lane: None, flip, src: self.operand(data, 0, k)?, dst }
                }
            };
            self.push(op);
        }
        Ok(())
    }

    /// `bary.f` (number of the varying, barycentric coordinates) and `flat.b` (the number, twice).
    fn varying(&mut self, data: &InstrData) -> Result {
        let half = self.dst(data, 0)?.class.half;
        // All repetitions read one pair of coordinates.
        if data.opcode == Opcode::BaryF && data.repeat > 0 && self.src(data, 1)?.flags.contains(OperandFlags::R) {
            return Err("(r) on the coordinates of a repeated instruction".to_owned());
        }
        // A pass may have folded one of two equal sources.
        if let (Opcode::FlatB, SrcOperand::Immediate(first), SrcOperand::Immediate(second)) =
            (data.opcode, self.src(data, 0)?.operand, self.src(data, 1)?.operand)
            && first != second
        {
            return Err("a flat input that is named by two numbers".to_owned());
        }
        for step in self.steps(data)? {
            let src = self.src(data, 0)?;
            let moves = src.flags.contains(OperandFlags::R) || data.repeat == 0 && src.mask.span() > 1;
            let varying = match src.operand {
                SrcOperand::Immediate(first) => {
                    Read::plain(self.slots.immediate(first.wrapping_add(if moves { step } else { 0 })))
                }
                _ => self.source(data, 0, if moves { step } else { 0 })?,
            };
            let (dst, after) = self.destination(data, 0, step)?;
            let (target, clamp) = if data.flags.contains(InstrFlags::SAT) {
                // Clamped as the result of any float operation is.
                let mut like = data.clone();
                like.opcode = Opcode::AbsnegF;
                like.srcs[0].class = data.dsts[0].class;
                let alu = ir3_alu::kernel(&like).and_then(|alu| alu.clamp).ok_or("(sat) of a varying")?;
                (Write { loc: self.scratch_slot(), shared: false }, Some(alu))
            } else {
                (dst, None)
            };
            if data.opcode == Opcode::BaryF {
                let ij = [self.slots.plain(self.src(data, 1)?, 0)?, self.slots.plain(self.src(data, 1)?, 1)?];
                self.push(DecodedOp::Interpolate { varying, ij, half, dst: target });
            } else {
                self.push(DecodedOp::Flat { varying, component: 0, half, dst: target });
            }
            if let Some(apply) = clamp {
                self.push(DecodedOp::Apply { apply, src: Read::plain(target.loc), dst });
            }
            if let Some(op) = after {
                self.push(op);
            }
        }
        Ok(())
    }

    /// `ldlv`: varyings that are not interpolated, from local memory.
    fn local_varying(&mut self, data: &InstrData) -> Result {
        let varying = self.source(data, 0, 0)?;
        if let Some(SrcOperand::Immediate(count)) = data.srcs.get(1).map(|src| src.operand)
            && count != self.dst(data, 0)?.mask.span()
        {
            return Err("the number of components is not that of the results".to_owned());
        }
        let half = self.dst(data, 0)?.class.half;
        for (component, dst) in self.results(data)? {
            self.push(DecodedOp::Flat { varying, component, half, dst });
        }
        Ok(())
    }

    /// `scan.macro` (destinations: exclusive, inclusive, reduction; sources: value, initial value) and
    /// `scan_clusters.macro` (reduction, inclusive, then exclusive if there are three sources; initial value, inclusive
    /// value, exclusive value).
    fn scan(&mut self, data: &InstrData) -> Result {
        let Attrs::Scan { op } = data.attrs else { return Err("which operation it applies is not known".to_owned()) };
        let clusters = data.opcode == Opcode::ScanClustersMacro;
        let [exclusive, inclusive, reduction] = if clusters { [2, 1, 0] } else { [0, 1, 2] };
        let [src, initial] = if clusters { [1, 0] } else { [0, 1] };
        let class = self.dst(data, inclusive)?.class;
        let exclusive_src = if clusters && data.srcs.len() > 2 { Some(self.source(data, 2, 0)?) } else { None };
        let has_exclusive = !clusters || exclusive_src.is_some();
        let write = |this: &mut Self, i: usize| -> Result<Write> {
            let dst = this.dst(data, i)?;
            this.slots.write(dst, 0)
        };
        let scan = ScanOp {
            kernel: ir3_alu::combine(op, class.half).ok_or_else(|| format!("a reduction by {op}"))?,
            clusters,
            src: self.source(data, src, 0)?,
            exclusive_src,
            initial: self.source(data, initial, 0)?,
            exclusive: if has_exclusive { Some(write(self, exclusive)?) } else { None },
            inclusive: Some(write(self, inclusive)?),
            reduction: write(self, reduction)?,
            half: class.half,
        };
        self.push(DecodedOp::Scan(scan));
        Ok(())
    }
}

/// The number of the first half of a fine derivative that is not directly followed by its second half: only both
/// together compute it.
pub fn lone_half<'a>(instrs: impl Iterator<Item = &'a InstrData>) -> Option<usize> {
    let mut first: Option<(usize, &InstrData)> = None;
    for (at, data) in instrs.enumerate().filter(|(_, data)| data.opcode != Opcode::Nop) {
        let is_half = matches!(data.opcode, Opcode::Dsxpp1 | Opcode::Dsypp1);
        let is_second = is_half && data.flags.contains(InstrFlags::PAIR);
        let operands = |data: &'a InstrData| data.srcs.iter().map(|src| src.operand);
        first = match first {
            Some((_, half)) if is_second && half.opcode == data.opcode => {
                if half.dsts != data.dsts || !operands(half).eq(operands(data)) {
                    return Some(at);
                }
                None
            }
            Some((alone, _)) => return Some(alone),
            None if is_second => return Some(at),
            None => is_half.then_some((at, data)),
        };
    }
    first.map(|(alone, _)| alone)
}

/// Returns true for the second of a pair whose result is on top of its source: the first one has computed it, and the
/// second one reads the operand of the first one, not its result (`apply_fine_deriv_macro`).
fn finishes_in_place(data: &InstrData) -> bool {
    let [dst] = &data.dsts[..] else { return false };
    data.flags.contains(InstrFlags::PAIR)
        && data.srcs.first().is_some_and(|src| src.operand == SrcOperand::Place(dst.place))
}
