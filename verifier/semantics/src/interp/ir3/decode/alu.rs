//! Arithmetic and moves.

use super::{Decoder, Moves, Result, narrowed};
use crate::interp::ir3::op::DecodedOp;
use crate::interp::ir3::storage::{Loc, Modifier, Read, Write};
use crate::operations::Kernel;
use crate::operations::ir3_alu;
use ir3_compiler::ir3::opcode::Numeric;
use ir3_compiler::ir3::{Attrs, InstrData, InstrFlags, Opcode, OperandFlags, RegFile};

impl Decoder<'_> {
    /// An operation of category 2, 3 or 4, or a conversion: one operation per repetition.
    pub(super) fn alu(&mut self, data: &InstrData) -> Result {
        let is_clamped = data.flags.contains(InstrFlags::SAT) && data.opcode.info().numeric != Numeric::Float;
        let why = if is_clamped { "`(sat)` of an integer has no definition" } else { "it has no definition" };
        let alu = ir3_alu::kernel(data).ok_or(why)?;
        let arity = match alu.kernel {
            Kernel::One(_) => 1,
            Kernel::Two(_) => 2,
            Kernel::Three(_) | Kernel::Select(_) => 3,
            Kernel::Rows(_) => return Err("it has no definition for single registers".to_owned()),
        };
        let dst = self.dst(data, 0)?;
        for step in self.steps(data)? {
            let mut reads = [Read::plain(Loc::whole(0)); 3];
            for (i, read) in reads.iter_mut().enumerate().take(arity) {
                let component = self.component_at(data, i, step)?;
                *read = self.source(data, i, component)?;
            }
            let (write, after) = self.destination(data, 0, step)?;
            let is_truth = dst.class.file != RegFile::Predicate
                || matches!(data.opcode, Opcode::CmpsF | Opcode::CmpsS | Opcode::CmpsU);
            // The operations after the kernel use slots of their own.
            let steps = usize::from(alu.clamp.is_some()) + usize::from(!is_truth);
            let mut at = if steps == 0 { write } else { self.intermediate() };
            self.kernel(alu.kernel, reads, at);
            if let Some(apply) = alu.clamp {
                let to = if is_truth { write } else { self.intermediate() };
                self.push(DecodedOp::Apply { apply, src: Read::plain(at.loc), dst: to });
                at = to;
            }
            if !is_truth {
                self.push(DecodedOp::Truth(Read::plain(at.loc), write));
            }
            if let Some(op) = after {
                self.push(op);
            }
        }
        Ok(())
    }

    fn intermediate(&mut self) -> Write {
        Write { loc: self.scratch_slot(), shared: false }
    }

    fn kernel(&mut self, kernel: Kernel, [a, b, c]: [Read; 3], dst: Write) {
        self.push(match kernel {
            Kernel::One(kernel) => DecodedOp::Alu1 { kernel, src: a, dst },
            Kernel::Two(kernel) => DecodedOp::Alu2 { kernel, srcs: [a, b], dst },
            Kernel::Three(kernel) => DecodedOp::Alu3 { kernel, srcs: [a, b, c], dst },
            Kernel::Select(select) => DecodedOp::Select { select, srcs: [a, b, c], dst },
            Kernel::Rows(_) => return,
        });
    }

    /// The repetitions of an instruction; an instruction without repetitions may still write a vector, but not in
    /// registers: its word has no mask.
    pub(super) fn steps(&self, data: &InstrData) -> Result<impl Iterator<Item = u32> + use<>> {
        let dst = self.dst(data, 0)?;
        let (mask, repeat) = (dst.mask, u32::from(data.repeat));
        if repeat == 0 && mask.span() > 1 && dst.place.reg().is_some() {
            return Err("a result of several registers, without (rpt)".to_owned());
        }
        let count = if repeat > 0 { repeat + 1 } else { mask.span() };
        Ok((0..count).filter(move |&k| repeat > 0 || mask.contains(k)))
    }

    /// The component of source `i` that a repetition reads.
    fn component_at(&self, data: &InstrData, i: usize, step: u32) -> Result<u32> {
        let src = self.src(data, i)?;
        let advances = src.flags.contains(OperandFlags::R) || data.repeat == 0 && src.mask.span() > 1;
        Ok(if advances { step } else { 0 })
    }

    /// `mov` and its kin.
    pub(super) fn mov(&mut self, data: &InstrData) -> Result {
        if data.flags.contains(InstrFlags::SAT) {
            return Err("a move that saturates".to_owned());
        }
        let types = match &data.attrs {
            Attrs::Move { src, dst, .. } => Some((*src, *dst)),
            _ => None,
        };
        // Equal types move bits; otherwise the types give the conversion.
        let plain = types.is_none_or(|(src, dst)| src == dst);
        match data.opcode {
            Opcode::Mov | Opcode::Movp => {
                let dst = self.dst(data, 0)?.class;
                if !plain && dst.file != RegFile::Predicate {
                    return self.alu(data);
                }
                for step in self.steps(data)? {
                    let component = self.component_at(data, 0, step)?;
                    let src = self.source(data, 0, component)?;
                    let (write, after) = self.destination(data, 0, step)?;
                    if dst.file == RegFile::Predicate {
                        self.push(DecodedOp::Truth(src, write));
                    } else {
                        self.push(DecodedOp::Copy(narrowed(src, data.srcs[0].class, dst), write));
                    }
                    if let Some(op) = after {
                        self.push(op);
                    }
                }
                Ok(())
            }
            _ if !plain => Err("a conversion of several registers at once".to_owned()),
            // The (rptN) of these counts their moves.
            Opcode::Swz => {
                let mut pairs = Moves::new();
                for i in 0..2 {
                    let dst = self.dst(data, i)?;
                    let src = self.slots.plain(self.src(data, i)?, 0)?;
                    pairs.push((src, self.slots.write(dst, 0)?));
                }
                self.copies_op(pairs)
            }
            Opcode::Gat => {
                let dst = self.dst(data, 0)?;
                let mut pairs = Moves::new();
                for (k, src) in data.srcs.iter().enumerate() {
                    pairs.push((self.slots.plain(src, 0)?, self.slots.write(dst, k as u32)?));
                }
                self.copies_op(pairs)
            }
            _ => {
                let src = self.src(data, 0)?;
                let mut pairs = Moves::new();
                for (k, dst) in data.dsts.iter().enumerate() {
                    pairs.push((self.slots.plain(src, k as u32)?, self.slots.write(dst, 0)?));
                }
                self.copies_op(pairs)
            }
        }
    }

    /// The read of component `k` of source `i`, as wide as destination 0.
    pub(super) fn operand(&mut self, data: &InstrData, i: usize, k: u32) -> Result<Read> {
        let read = self.source(data, i, k)?;
        let dst = self.dst(data, 0)?;
        Ok(match read.modifier {
            Modifier::None => narrowed(read, data.srcs[i].class, dst.class),
            _ => read,
        })
    }

    /// The components that destination 0 has.
    pub(super) fn results(&mut self, data: &InstrData) -> Result<Vec<(u32, Write)>> {
        let dst = self.dst(data, 0)?;
        dst.mask.components().map(|k| Ok((k, self.slots.write(dst, k)?))).collect()
    }
}
