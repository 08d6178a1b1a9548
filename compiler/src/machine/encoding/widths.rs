//! The widths of an instruction's registers, which a few bits say together.

use super::table::Widths;

/// The type of a register half as wide: `f16`, `u16`, `s16`, `u8`.
const fn is_half_type(ty: u64) -> bool {
    matches!(ty, 0 | 2 | 4 | 6)
}

/// The same for moves, whose last type is half as wide too.
const fn is_half_move(ty: u64) -> bool {
    is_half_type(ty) || ty == 7
}

const fn bit(word: u64, bit: u8) -> bool {
    word >> bit & 1 != 0
}

const fn type_at(word: u64, low: u8) -> u64 {
    word >> low & 7
}

/// `up0.x`, and `p0.x` after it: predicates are never half registers.
const PREDICATES: u64 = 0xf4;

const fn dst(word: u64) -> u64 {
    word >> 32 & 0xff
}

const CONVERT: u8 = 46;

/// The operand that has another width than the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherWidth {
    /// A source.
    Src,
    /// The destination.
    Dst,
}

/// The widths that a text or the operands say; `None` if they say none.
#[derive(Clone, Copy, Default)]
pub(super) struct Said {
    pub src: Option<bool>,
    pub dst: Option<bool>,
}

impl Widths {
    /// Returns true if source registers are half registers.
    pub const fn src_half(self, word: u64) -> bool {
        match self {
            Self::Full => false,
            Self::ByBit(at) => !bit(word, at),
            Self::ByOpcode(full) => !full,
            Self::Matrix => !bit(word, 31),
            Self::ByTypes => is_half_move(type_at(word, 50)),
            Self::Texture => !bit(word, 0),
            Self::Memory => is_half_type(type_at(word, 49)),
        }
    }

    /// Returns true if destination registers are half registers.
    pub const fn dst_half(self, word: u64) -> bool {
        match self {
            Self::Full => false,
            Self::ByBit(_) | Self::ByOpcode(_) => dst(word) < PREDICATES && self.src_half(word) != bit(word, CONVERT),
            Self::Matrix => !bit(word, CONVERT),
            Self::ByTypes => is_half_move(type_at(word, 46)),
            Self::Texture => is_half_type(type_at(word, 44)),
            Self::Memory => is_half_type(type_at(word, 49)),
        }
    }

    /// Sets the bits that say the widths. `typed` is false if the type of a texture instruction has no text.
    pub(super) fn set(self, word: u64, said: Said, typed: bool) -> Result<u64, OtherWidth> {
        let flag = |condition: bool, at: u8| u64::from(condition) << at;
        let word = match self {
            Self::Full => word,
            Self::ByBit(_) | Self::ByOpcode(_) => {
                let src = said.src.unwrap_or(matches!(self, Self::ByOpcode(false)));
                let full = if let Self::ByBit(at) = self { flag(!src, at) } else { 0 };
                let convert = dst(word) < PREDICATES && said.dst.is_some_and(|dst| dst != src);
                word | full | flag(convert, CONVERT)
            }
            Self::Matrix => word | flag(said.src != Some(true), 31) | flag(said.dst != Some(true), CONVERT),
            Self::Texture => word | flag(said.src == Some(false), 0) | flag(!typed && said.dst != Some(true), 44),
            Self::ByTypes | Self::Memory => word,
        };
        let fits = |said: Option<bool>, is: bool| said.is_none_or(|said| said == is);
        if !fits(said.src, self.src_half(word)) {
            return Err(OtherWidth::Src);
        }
        if !fits(said.dst, self.dst_half(word)) {
            return Err(OtherWidth::Dst);
        }
        Ok(word)
    }
}
