//! Arithmetic.

use ir3_compiler::nir::{Alu, BaseType, Op as NirOp, Operand};
use smallvec::SmallVec;

use super::{DecodeResult, Decoder, ValueRows};
use crate::interp::nir::op::{DecodedOp, FloatSite, R, Sum, Wide};
use crate::operations::wraps::NoWrap;
use crate::operations::{Kernel, nir_alu};

/// The largest number of rows that a kernel takes.
pub(in crate::interp::nir) const MAX_SOURCES: usize = 64;

/// Returns true if the operation only renames its sources: it moves rows.
pub(super) fn is_name(op: NirOp) -> bool {
    op.is_vec()
        || matches!(
            op,
            NirOp::Mov
                | NirOp::Pack64_2x32
                | NirOp::Pack64_2x32Split
                | NirOp::Unpack64_2x32
                | NirOp::Unpack64_2x32SplitX
                | NirOp::Unpack64_2x32SplitY
        )
}

impl Decoder<'_> {
    pub(super) fn alu(&mut self, alu: &Alu) -> DecodeResult<()> {
        if is_name(alu.op) {
            return self.name(alu);
        }
        let info = alu.op.info();
        if alu.srcs.len() != info.inputs.len() {
            return Err(format!("{} sources instead of {}", alu.srcs.len(), info.inputs.len()));
        }
        let src_bits: SmallVec<[u8; 4]> = alu.srcs.iter().map(|src| self.bits(src.def)).collect();
        let bits = self.bits(alu.def);
        let kernel = nir_alu::kernel(alu.op, bits, &src_bits, self.controls)
            .ok_or_else(|| format!("no operands of {src_bits:?} bits with a result of {bits}"))?;
        self.code.open_rounding |= nir_alu::leaves_rounding_open(alu.op, src_bits[0], self.controls);
        let components = self.components(alu.def);
        let keep = self.keeps(alu.def);
        // The rows of each source: for one component of the result, or for all of a horizontal operation.
        let turns = if info.is_per_component() { components } else { 1 };
        let mut sources: SmallVec<[ValueRows; 4]> = SmallVec::new();
        for turn in 0..turns {
            for (index, src) in alu.srcs.iter().enumerate() {
                let width = self.width(src.def);
                let rows = self.read(src.def)?;
                let count = info.source_components(index, 1);
                let mut taken = ValueRows::new();
                for i in 0..u32::from(count) {
                    let component = src.swizzle[if info.is_per_component() { turn } else { i } as usize];
                    let first = u32::from(component) * width;
                    for row in first..first + width {
                        let row = rows.get(row as usize).ok_or("a swizzle beyond its vector")?;
                        taken.push(*row);
                    }
                }
                sources.push(taken);
            }
        }
        let inputs = alu.srcs.len();
        if let Kernel::Select(select) = kernel {
            for turn in 0..turns as usize {
                self.one_word(&mut sources[turn * inputs + usize::from(select.condition)])?;
            }
        }
        let dst = self.define(alu.def);
        let width = self.width(alu.def);
        let is_float = |operand: &Operand| operand.ty.base == BaseType::Float;
        let float_sources =
            info.inputs.iter().zip(0..8).filter(|(input, _)| is_float(input)).fold(0, |all, (_, i)| all | 1 << i);
        let first_float = info.inputs.iter().position(is_float).unwrap_or(0);
        let site = FloatSite {
            op: alu.op,
            exact: alu.exact,
            bits,
            source_bits: src_bits[first_float],
            sources: float_sources,
            result: is_float(&info.output),
        };
        let is_float = site.result || site.sources != 0;
        let first = self.here();
        for turn in 0..turns {
            let srcs = &sources[turn as usize * inputs..][..inputs];
            let dst = dst + turn * width;
            if srcs.iter().flatten().any(|&row| row >= dst) {
                return Err("a source that is defined later".to_owned());
            }
            match kernel {
                Kernel::One(kernel) => self.push(DecodedOp::One { kernel, dst, a: srcs[0][0], keep }),
                Kernel::Two(kernel) => self.push(DecodedOp::Two { kernel, dst, a: srcs[0][0], b: srcs[1][0], keep }),
                Kernel::Three(kernel) => {
                    self.push(DecodedOp::Three { kernel, dst, a: srcs[0][0], b: srcs[1][0], c: srcs[2][0], keep });
                }
                Kernel::Select(select) => {
                    for word in 0..width {
                        let row = |index: u8| {
                            srcs[usize::from(index)][if index == select.condition { 0 } else { word } as usize]
                        };
                        let (a, b, c) = (row(select.condition), row(select.yes), row(select.no));
                        self.push(DecodedOp::Select { select, dst: dst + word, a, b, c, keep });
                    }
                }
                Kernel::Rows(kernel) => {
                    let count = if info.is_per_component() { width } else { width * components };
                    let srcs: SmallVec<[R; 8]> = srcs.iter().flatten().copied().collect();
                    if srcs.len() > MAX_SOURCES {
                        return Err("too many source components".to_owned());
                    }
                    self.code.wide.push(Wide { kernel, dst, count, srcs, keep });
                    self.push(DecodedOp::Wide(self.code.wide.len() as u32 - 1));
                }
            }
        }
        if is_float {
            self.code.floats.extend((first..self.here()).map(|at| (at, site)));
        }
        if (alu.no_signed_wrap || alu.no_unsigned_wrap) && info.is_per_component() {
            let promise =
                NoWrap { op: alu.op, bits: bits.into(), signed: alu.no_signed_wrap, unsigned: alu.no_unsigned_wrap };
            for turn in 0..turns {
                let srcs = &sources[turn as usize * inputs..][..inputs];
                let operand = |index: usize| srcs[index.min(inputs - 1)].iter().copied().collect();
                let sum = Sum { promise, operands: [operand(0), operand(1)], dst: dst + turn * width };
                self.code.sums.push(sum);
                self.push(DecodedOp::Sum(self.code.sums.len() as u32 - 1));
            }
        }
        Ok(())
    }

    /// Replaces the two words of a condition by their bitwise or: see [`Select`](crate::operations::Select).
    fn one_word(&mut self, condition: &mut ValueRows) -> DecodeResult<()> {
        if let [a, b] = condition[..] {
            let Some(Kernel::Two(kernel)) = nir_alu::kernel(NirOp::Ior, 32, &[32, 32], self.controls) else {
                return Err("no bitwise or of words".to_owned());
            };
            let dst = self.new_rows(1);
            self.push(DecodedOp::Two { kernel, dst, a, b, keep: false });
            condition.truncate(1);
            condition[0] = dst;
        }
        Ok(())
    }

    /// Makes the result an alias of rows of the sources.
    fn name(&mut self, alu: &Alu) -> DecodeResult<()> {
        let components = self.components(alu.def);
        let mut out = ValueRows::new();
        let mut take = |this: &Self, index: usize, component: u8, words: std::ops::Range<u32>| -> DecodeResult<()> {
            let src = alu.srcs.get(index).ok_or("too few sources")?;
            let width = this.width(src.def);
            let rows = this.read(src.def)?;
            for word in words {
                let row = rows.get((u32::from(component) * width + word) as usize);
                out.push(*row.ok_or("a swizzle beyond its vector")?);
            }
            Ok(())
        };
        let whole = 0..self.width(alu.def);
        let swizzle = |index: usize, i: u32| alu.srcs.get(index).map_or(0, |src| src.swizzle[i as usize]);
        for i in 0..components {
            match alu.op {
                NirOp::Mov => take(self, 0, swizzle(0, i), whole.clone())?,
                // Components that are words of a double word.
                NirOp::Unpack64_2x32 => take(self, 0, swizzle(0, 0), i..i + 1)?,
                NirOp::Unpack64_2x32SplitX => take(self, 0, swizzle(0, i), 0..1)?,
                NirOp::Unpack64_2x32SplitY => take(self, 0, swizzle(0, i), 1..2)?,
                NirOp::Pack64_2x32 => {
                    take(self, 0, swizzle(0, 0), 0..1)?;
                    take(self, 0, swizzle(0, 1), 0..1)?;
                }
                NirOp::Pack64_2x32Split => {
                    take(self, 0, swizzle(0, i), 0..1)?;
                    take(self, 1, swizzle(1, i), 0..1)?;
                }
                _ => take(self, i as usize, swizzle(i as usize, 0), whole.clone())?,
            }
        }
        self.rows[alu.def] = out;
        Ok(())
    }
}
