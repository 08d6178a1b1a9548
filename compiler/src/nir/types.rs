//! The types of operands: a base type and a width.

use std::fmt;

/// The interpretation of the bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaseType {
    /// Signed integer.
    Int,
    /// Unsigned integer, or uninterpreted bits.
    Uint,
    /// Boolean.
    Bool,
    /// IEEE float.
    Float,
    /// No type (an index that was not set).
    Invalid,
}

impl BaseType {
    /// The widths in bits that values of the type may have.
    pub fn widths(self) -> &'static [u8] {
        match self {
            Self::Float => &[16, 32, 64],
            Self::Bool => &[1, 8, 16, 32],
            Self::Int | Self::Uint | Self::Invalid => &[1, 8, 16, 32, 64],
        }
    }
}

/// A base type with a width in bits; width 0 means any width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AluType {
    /// The base type.
    pub base: BaseType,
    /// 1, 8, 16, 32, 64, or 0 if the width is not part of the type.
    pub size: u8,
}

impl AluType {
    /// Creates a type from its parts.
    pub const fn new(base: BaseType, size: u8) -> AluType {
        AluType { base, size }
    }

    /// The width; `bits` if it has none.
    pub const fn width_or(self, bits: u8) -> u8 {
        if self.size == 0 { bits } else { self.size }
    }

    /// `float32`
    pub const FLOAT32: AluType = AluType::new(BaseType::Float, 32);
    /// `int32`
    pub const INT32: AluType = AluType::new(BaseType::Int, 32);
    /// `uint32`
    pub const UINT32: AluType = AluType::new(BaseType::Uint, 32);

    /// Reads a name as nir prints it: `float32`, `bool`, `invalid`.
    pub fn from_name(name: &str) -> Option<AluType> {
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let base = match &name[..digits] {
            "int" => BaseType::Int,
            "uint" => BaseType::Uint,
            "bool" => BaseType::Bool,
            "float" => BaseType::Float,
            "invalid" => BaseType::Invalid,
            _ => return None,
        };
        let size = match &name[digits..] {
            "" => 0,
            "1" => 1,
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            _ => return None,
        };
        Some(AluType { base, size })
    }
}

impl fmt::Display for AluType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.base {
            BaseType::Int => "int",
            BaseType::Uint => "uint",
            BaseType::Bool => "bool",
            BaseType::Float => "float",
            BaseType::Invalid => "invalid",
        })?;
        if self.size != 0 {
            write!(f, "{}", self.size)?;
        }
        Ok(())
    }
}
