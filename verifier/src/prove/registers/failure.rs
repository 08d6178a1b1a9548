//! Why a pass is not shown to keep register contents.

use std::fmt;

/// Where something is: the block and the instruction, as the text has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Position of the block in the layout of the target, from 0.
    pub block: usize,
    /// Position in the block, and the mnemonic; the block as a whole where there is none.
    pub instr: Option<(usize, &'static str)>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.block)?;
        match self.instr {
            Some((at, name)) => write!(f, ", instruction {at} ({name})"),
            None => Ok(()),
        }
    }
}

/// A use that does not hold its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{site}: source {slot} reads {read}, which should hold {expected} and holds {found}{because}")]
pub struct Mismatch {
    /// The use.
    pub site: Site,
    /// Which source.
    pub slot: usize,
    /// What is read.
    pub read: String,
    /// What the source program reads there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// An earlier result that is not what it should be, if there is one.
    pub because: String,
}

/// What stands against a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A use does not hold its value.
    #[error(transparent)]
    Contents(Box<Mismatch>),
    /// An operand or a result is where it must not be.
    #[error("{site}: {what}")]
    Place {
        /// The instruction.
        site: Site,
        /// What is wrong.
        what: String,
    },
    /// The target does something else than the source.
    #[error("{site}: {what}")]
    Changed {
        /// The instruction.
        site: Site,
        /// What is another thing.
        what: String,
    },
    /// This engine cannot tell.
    #[error("{site}: unsupported: {what}")]
    Unsupported {
        /// The instruction.
        site: Site,
        /// What it is.
        what: String,
    },
}
