//! Aliases: the name of an operand or of an output, and what it stands for.

use super::{DecodeResult, Decoder, EncodeResult, Encoder};
use crate::ir3::{AliasScope, Attrs, PhysReg, Place, RegFile, Src, SrcOperand};
use crate::machine::encoding::field::{FieldName, Kind};

impl Decoder {
    pub(super) fn alias(&mut self) -> DecodeResult {
        let Some(Kind::AliasSrc { kind, .. }) = self.encoding.field(FieldName::Src1).map(|field| field.kind) else {
            return self.unknown(FieldName::Src1);
        };
        let half = self.get(FieldName::Size) == 0;
        let value = self.get(FieldName::Src1);
        let src = match kind.get(self.word) {
            0 if value < 256 => self.register(value, half, 1),
            1 if value < 1 << 11 => Src::constant(value as u16, half),
            2 => Src::immediate(value as u32, half),
            _ => return self.unknown(FieldName::Src1),
        };
        self.data.srcs.push(src);
        let scope = self.get(FieldName::Scope).min(2) as usize;
        self.data.attrs = Attrs::Alias {
            scope: AliasScope::ALL[scope].0,
            float: self.get(FieldName::Type) == 0,
            size: self.get(FieldName::Entry) as u8,
            register: PhysReg(self.get(FieldName::Dst) as u16),
        };
        Ok(None)
    }
}

impl Encoder<'_> {
    pub(super) fn alias(&mut self) -> EncodeResult {
        if let Attrs::Alias { scope, float, size, register } = self.data.attrs {
            self.put(FieldName::Scope, scope as u64)?;
            self.put(FieldName::Type, u64::from(!float))?;
            self.put(FieldName::Entry, size.into())?;
            self.put(FieldName::Dst, register.0.into())?;
        }
        let name = FieldName::Src1;
        let Some(Kind::AliasSrc { kind, .. }) = self.encoding.field(name).map(|field| field.kind) else {
            return self.fail(name, "it has no such field");
        };
        let src = self.src(0, name)?;
        self.put(FieldName::Size, u64::from(!src.class.half))?;
        let (number, value) = match src.operand {
            SrcOperand::Const(word) if word < 1 << 11 => (1, word.into()),
            SrcOperand::Immediate(bits) => (2, bits.into()),
            SrcOperand::Place(Place::Reg(reg)) if src.class.file == RegFile::General && reg.0 < 256 => {
                (0, u64::from(reg.0))
            }
            _ => return self.fail(name, "a register, a constant or an immediate is the only operand that it can have"),
        };
        self.word |= kind.put(number);
        self.put(name, value)
    }
}
