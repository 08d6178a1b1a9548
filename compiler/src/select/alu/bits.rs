//! Shifts, bit fields, and bit counts.

use super::Scalar;
use crate::ir3::{Condition, Opcode, Src, Type};
use crate::nir::Op;
use crate::select::SelectError;
use crate::select::context::Context;

use Opcode::*;

impl Scalar<'_, '_> {
    pub(super) fn bits_op(&mut self, width: u8) -> Result<bool, SelectError> {
        let result = match self.op() {
            Op::Ishl => self.shift(ShlB, width),
            Op::Ishr => self.shift(AshrB, width),
            Op::Ushr => self.shift(ShrB, width),
            Op::Urol => self.rotate(ShlB, ShrB, width),
            Op::Uror => self.rotate(ShrB, ShlB, width),
            Op::ShrmIr3 => self.shift_and(Shrm, width),
            Op::ShlmIr3 => self.shift_and(Shlm, width),
            Op::ShrgIr3 => self.shift_and(Shrg, width),
            Op::ShlgIr3 => self.shift_and(Shlg, width),
            Op::AndgIr3 => {
                let (a, b, c) = (self.src(0), self.src(1), self.src(2));
                if self.ctx.target.has_bitwise_triops {
                    self.ctx.tri(Andg, a, b, c)
                } else {
                    let both = self.ctx.bin(AndB, a, b);
                    self.ctx.bin(OrB, both, c)
                }
            }
            Op::Shfr => {
                // The low word of a pair that is shifted right: the bits from the high word are shifted in two steps,
                // so that a count of 0 brings in none.
                let (high, low, count) = (self.src(0), self.src(1), self.src(2));
                let low = self.ctx.bin(ShrB, low, count);
                let up = self.ctx.bin(ShlB, high, Src::immediate(1, false));
                let rest = self.ctx.un(NotB, count);
                let up = self.ctx.bin(ShlB, up, rest);
                self.ctx.bin(OrB, low, up)
            }
            Op::BitfieldReverse => {
                let x = self.src(0);
                self.ctx.un(BfrevB, x)
            }
            Op::BitfieldSelect => {
                let (mask, yes, no) = (self.src(0), self.src(1), self.src(2));
                let differ = self.ctx.bin(XorB, yes, no);
                let chosen = self.ctx.bin(AndB, differ, mask);
                self.ctx.bin(XorB, chosen, no)
            }
            Op::BitCount => {
                let x = self.src(0);
                self.ctx.count_bits(x)
            }
            Op::UfindMsb => {
                let x = self.zero_extended(0);
                self.ctx.highest_bit(x)
            }
            Op::IfindMsb => {
                let x = self.src(0);
                let zeros = self.ctx.un(ClzS, x);
                let bit = self.ctx.bin(SubU, Src::immediate(31, false), zeros);
                let found = self.ctx.compare_src(CmpsS, Condition::Ge, zeros, Src::immediate(0, false));
                self.ctx.select(found, bit, zeros)
            }
            Op::UfindMsbRev if width == 32 => {
                let x = self.src(0);
                self.ctx.un(ClzB, x)
            }
            Op::IfindMsbRev => {
                let x = self.src(0);
                self.ctx.un(ClzS, x)
            }
            Op::Uclz => {
                let x = self.src(0);
                let zeros = self.ctx.un(ClzB, x);
                let all = self.ctx.immediate(32, false);
                self.ctx.select(x, zeros, all)
            }
            Op::FindLsb => {
                let x = self.zero_extended(0);
                self.ctx.lowest_bit(x)
            }
            Op::Bfm => {
                let (bits, offset) = (self.src(0), self.src(1));
                let one = self.ctx.immediate(1, false);
                let power = self.ctx.bin(ShlB, one, bits);
                let ones = self.ctx.bin(SubU, power, Src::immediate(1, false));
                self.ctx.bin(ShlB, ones, offset)
            }
            Op::Bfi => self.insert_at_mask(),
            Op::Ubfe => self.extract_field(ShrB),
            Op::Ibfe => self.extract_field(AshrB),
            Op::UbitfieldExtract => {
                let field = self.extract_checked(ShrB);
                self.checked(field, 1)
            }
            Op::IbitfieldExtract => {
                let field = self.extract_checked(AshrB);
                self.checked(field, 1)
            }
            Op::BitfieldInsert => self.insert_field(),
            Op::ExtractU8 => self.extract(8, false)?,
            Op::ExtractI8 => self.extract(8, true)?,
            Op::ExtractU16 => self.extract(16, false)?,
            Op::ExtractI16 => self.extract(16, true)?,
            Op::InsertU8 => self.insert(8)?,
            Op::InsertU16 => self.insert(16)?,
            _ => return Ok(false),
        };
        Ok(self.masked_result(result))
    }

    /// A shift count in the class of values of `width`. The machine masks it to 5 or 4 bits; for 8 bits it is masked
    /// here.
    pub(super) fn shift_count(&mut self, index: usize, width: u8) -> Src {
        let half = self.ctx.is_half(width);
        if let Some(bits) = self.constant(index) {
            return Src::immediate(bits & u32::from(width - 1), half);
        }
        let count = self.src(index);
        let count = self.ctx.resize(count, half);
        if width == 8 { self.ctx.bin(AndB, count, Src::immediate(7, true)) } else { count }
    }

    fn shift(&mut self, opcode: Opcode, width: u8) -> Src {
        let mut x = self.src(0);
        if width == 8 && opcode == AshrB {
            x = self.ctx.sign_extend_8(x);
        }
        let count = self.shift_count(1, width);
        self.ctx.bin(opcode, x, count)
    }

    fn rotate(&mut self, there: Opcode, back: Opcode, width: u8) -> Src {
        let x = self.src(0);
        let count = self.shift_count(1, width);
        let count = if super::is_register(&count) { count } else { self.src_of_immediate(count) };
        let moved = self.ctx.bin(there, x, count);
        let rest = self.ctx.negate(count);
        let rest = if width == 8 { self.ctx.bin(AndB, rest, Src::immediate(7, true)) } else { rest };
        let wrapped = self.ctx.bin(back, x, rest);
        self.ctx.bin(OrB, moved, wrapped)
    }

    fn src_of_immediate(&mut self, src: Src) -> Src {
        match src.operand {
            crate::ir3::SrcOperand::Immediate(bits) => self.ctx.immediate(bits, src.class.half),
            _ => src,
        }
    }

    /// Selects a combined shift and bitwise operation.
    fn shift_and(&mut self, opcode: Opcode, width: u8) -> Src {
        let (x, other) = (self.src(0), self.src(2));
        let count = self.shift_count(1, width);
        if self.ctx.target.has_bitwise_triops && width != 8 {
            let count = self.src_of_immediate(count);
            return self.ctx.tri(opcode, count, x, other);
        }
        let (shift, join) = match opcode {
            Shrm => (ShrB, AndB),
            Shlm => (ShlB, AndB),
            Shrg => (ShrB, OrB),
            _ => (ShlB, OrB),
        };
        let shifted = self.ctx.bin(shift, x, count);
        self.ctx.bin(join, shifted, other)
    }

    /// A source in a full register; 8 and 16 bits are zero-extended.
    fn zero_extended(&mut self, index: usize) -> Src {
        let x = self.src(index);
        self.ctx.widened(x)
    }

    /// Extracts a field whose offset and length have 5 bits.
    fn extract_field(&mut self, shift: Opcode) -> Src {
        let (base, offset, bits) = (self.src(0), self.src(1), self.src(2));
        let mask = Src::immediate(31, false);
        let (offset, bits) = (self.ctx.bin(AndB, offset, mask), self.ctx.bin(AndB, bits, mask));
        let end = self.ctx.bin(AddU, offset, bits);
        let inside = self.ctx.compare_src(CmpsU, Condition::Lt, end, Src::immediate(32, false));
        // Counts are taken modulo 32.
        let up = self.ctx.negate(end);
        let field = self.ctx.bin(ShlB, base, up);
        let down = self.ctx.negate(bits);
        let field = self.ctx.bin(shift, field, down);
        let rest = self.ctx.bin(shift, base, offset);
        let field = self.ctx.select(inside, field, rest);
        let zero = self.ctx.immediate(0, false);
        self.ctx.select(bits, field, zero)
    }

    /// Extracts a non-empty field within the word.
    fn extract_checked(&mut self, shift: Opcode) -> Src {
        let (base, offset, bits) = (self.src(0), self.src(1), self.src(2));
        let end = self.ctx.bin(AddU, offset, bits);
        let up = self.ctx.negate(end);
        let field = self.ctx.bin(ShlB, base, up);
        let down = self.ctx.negate(bits);
        self.ctx.bin(shift, field, down)
    }

    /// `field`, or 0 if the field whose offset is source `first` and whose length is the next one is empty or not
    /// inside the word.
    fn checked(&mut self, field: Src, first: usize) -> Src {
        let zero = self.ctx.immediate(0, false);
        let valid = self.field_is_inside(first);
        let field = self.ctx.select(valid, field, zero);
        let bits = self.src(first + 1);
        self.ctx.select(bits, field, zero)
    }

    /// Tests 0 <= offset, 0 <= bits and offset + bits <= 32. The sum may overflow, but only if one of them exceeds 32.
    fn field_is_inside(&mut self, first: usize) -> Src {
        let (offset, bits) = (self.src(first), self.src(first + 1));
        let larger = self.ctx.bin(MaxU, offset, bits);
        let end = self.ctx.bin(AddU, offset, bits);
        let limit = Src::immediate(32, false);
        let small = self.ctx.compare_src(CmpsU, Condition::Le, larger, limit);
        let inside = self.ctx.compare_src(CmpsU, Condition::Le, end, limit);
        self.ctx.bin(AndB, small, inside)
    }

    fn insert_field(&mut self) -> Src {
        let (base, insert, offset, bits) = (self.src(0), self.src(1), self.src(2), self.src(3));
        // The mask of the field; all ones for 32 bits, where the shift would be by 0.
        let ones = self.ctx.immediate(u32::MAX, false);
        let down = self.ctx.negate(bits);
        let ones = self.ctx.bin(ShrB, ones, down);
        let mask = self.ctx.bin(ShlB, ones, offset);
        let insert = self.ctx.bin(ShlB, insert, offset);
        let differ = self.ctx.bin(XorB, base, insert);
        let changed = self.ctx.bin(AndB, differ, mask);
        let inserted = self.ctx.bin(XorB, base, changed);
        let zero = self.ctx.immediate(0, false);
        let valid = self.field_is_inside(2);
        let inserted = self.ctx.select(valid, inserted, zero);
        self.ctx.select(bits, inserted, base)
    }

    fn insert_at_mask(&mut self) -> Src {
        let (mask, insert, base) = (self.src(0), self.src(1), self.src(2));
        // For an empty mask the count does not matter.
        let offset = self.ctx.lowest_bit(mask);
        let insert = self.ctx.bin(ShlB, insert, offset);
        let differ = self.ctx.bin(XorB, base, insert);
        let changed = self.ctx.bin(AndB, differ, mask);
        self.ctx.bin(XorB, base, changed)
    }

    /// The index of the extracted byte or word, which is a constant in nir.
    fn part(&mut self, size: u32) -> Result<u32, SelectError> {
        let width = u32::from(self.bits(0));
        match self.constant(1) {
            Some(index) if index < width / size => Ok(index * size),
            Some(_) => Err(self.ctx.unsupported("a part outside of the value")),
            None => Err(self.ctx.unsupported("the part is not a constant")),
        }
    }

    fn extract(&mut self, size: u32, signed: bool) -> Result<Src, SelectError> {
        let at = self.part(size)?;
        let width = u32::from(self.bits(0));
        let x = self.src(0);
        let half = x.class.half;
        // In a 16-bit register an 8-bit value begins at the same bit.
        let top = if half { 16 } else { 32 };
        let up = self.ctx.bin(ShlB, x, Src::immediate(top - at - size, half));
        debug_assert!(width <= top);
        Ok(self.ctx.bin(if signed { AshrB } else { ShrB }, up, Src::immediate(top - size, half)))
    }

    fn insert(&mut self, size: u32) -> Result<Src, SelectError> {
        let at = self.part(size)?;
        let x = self.src(0);
        let half = x.class.half;
        let top = if half { 16 } else { 32 };
        let up = self.ctx.bin(ShlB, x, Src::immediate(top - size, half));
        Ok(self.ctx.bin(ShrB, up, Src::immediate(top - size - at, half)))
    }
}

impl Context<'_> {
    /// The number of set bits of a register, in a full register.
    pub(super) fn count_bits(&mut self, x: Src) -> Src {
        if x.class.half {
            let count = self.un(CbitsB, x);
            return self.widened(count);
        }
        if self.target.generation.number() < 5 {
            return self.un(CbitsB, x);
        }
        // From a5xx on it counts the bits of 16.
        let high = self.bin(ShrB, x, Src::immediate(16, false));
        let [low, high] = [x, high].map(|part| {
            let part = self.convert_src(Type::U32, Type::U16, part);
            self.un(CbitsB, part)
        });
        let count = self.bin(AddU, low, high);
        self.widened(count)
    }

    /// The index of the highest set bit, -1 for 0.
    pub(super) fn highest_bit(&mut self, x: Src) -> Src {
        let zeros = self.un(ClzB, x);
        let bit = self.bin(SubU, Src::immediate(31, false), zeros);
        // If no bit is set, the machine returns -1.
        self.select(x, bit, zeros)
    }

    /// The index of the lowest set bit, -1 for 0.
    pub(super) fn lowest_bit(&mut self, x: Src) -> Src {
        let reversed = self.un(BfrevB, x);
        self.un(ClzB, reversed)
    }
}
