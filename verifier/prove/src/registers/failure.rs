//! The reasons why a pass is not proved.

use std::fmt;

/// An instruction or a block, as the text shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrSite {
    /// Position of the block in the layout of the target, from 0.
    pub block: usize,
    /// Position in the block, and the mnemonic; `None` for the block as a whole.
    pub instr: Option<(usize, &'static str)>,
}

impl fmt::Display for InstrSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.block)?;
        match self.instr {
            Some((at, name)) => write!(f, ", instruction {at} ({name})"),
            None => Ok(()),
        }
    }
}

/// A use that does not read its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{site}: source {slot} reads {read}, which should hold {expected} and holds {found}{because}")]
pub struct Mismatch {
    /// The use.
    pub site: InstrSite,
    /// The index of the source operand.
    pub slot: usize,
    /// The operand in the target.
    pub read: String,
    /// The operand in the source program.
    pub expected: String,
    /// The value that the operand holds.
    pub found: String,
    /// An earlier result that is wrong, if there is one.
    pub because: String,
}

/// The reason why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterFailure {
    /// A use does not read its value.
    #[error(transparent)]
    Contents(Box<Mismatch>),
    /// An operand or a result is in a wrong place.
    #[error("{site}: {what}")]
    Place {
        /// The instruction.
        site: InstrSite,
        /// The error.
        what: String,
    },
    /// The target does something else than the source.
    #[error("{site}: {what}")]
    Changed {
        /// The instruction.
        site: InstrSite,
        /// The difference.
        what: String,
    },
    /// The checker does not support it.
    #[error("{site}: unsupported: {what}")]
    Unsupported {
        /// The instruction.
        site: InstrSite,
        /// The feature.
        what: String,
    },
}

impl RegisterFailure {
    /// The kind, for tables: failures of one kind have one name, independent of their place.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Contents(_) => "a use that reads another value",
            Self::Place { .. } => "an operand in a wrong place",
            Self::Changed { .. } => "an instruction that does something else",
            Self::Unsupported { .. } => "unsupported by the register checker",
        }
    }
}
