//! Why a program is refused.

use super::Stage;
use crate::regalloc;
use crate::select::SelectError;

/// The kind of reason for which a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The program uses a feature that the backend does not support.
    Unsupported,
    /// The program's values do not fit into the registers.
    NeedsSpilling,
    /// The backend broke one of its invariants.
    Internal,
}

/// A program was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {reason}")]
pub struct CompileError {
    /// The stage that refused it.
    pub stage: Stage,
    /// The kind of reason.
    pub kind: ErrorKind,
    /// The reason, with the operation and its location.
    pub reason: Refusal,
}

/// The reason for which a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Selection cannot translate it.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// Registers cannot be assigned.
    #[error(transparent)]
    Registers(#[from] regalloc::Error),
    /// A postcondition of a stage does not hold.
    #[error("{0}")]
    Postcondition(String),
}

impl Refusal {
    /// The reason without its location, for comparisons.
    pub fn without_location(&self) -> String {
        match self {
            Self::Select(SelectError { operation, reason, .. }) => format!("{operation}: {reason}"),
            Self::Registers(_) | Self::Postcondition(_) => self.to_string(),
        }
    }
}

impl CompileError {
    pub(super) fn new(stage: Stage, reason: Refusal) -> Self {
        let kind = match &reason {
            Refusal::Select(_) => ErrorKind::Unsupported,
            Refusal::Postcondition(_) => ErrorKind::Internal,
            Refusal::Registers(error) => match error {
                // All values that can be spilled have been.
                regalloc::Error::NeedsSpilling { file: "full" | "half", .. } if stage == Stage::RegisterAllocation => {
                    ErrorKind::Internal
                }
                // The previous stage has coloured the program.
                regalloc::Error::Uncoloured { .. } if stage == Stage::RegisterAllocation => ErrorKind::Internal,
                // `spill` tries it.
                regalloc::Error::Fragmented { .. } if stage == Stage::RegisterAllocation => ErrorKind::Internal,
                regalloc::Error::NeedsSpilling { .. }
                | regalloc::Error::Fragmented { .. }
                | regalloc::Error::Uncoloured { .. }
                | regalloc::Error::NoPrivateMemory { .. }
                | regalloc::Error::Instruction { .. } => ErrorKind::NeedsSpilling,
                regalloc::Error::Unsupported { .. } => ErrorKind::Unsupported,
                regalloc::Error::Malformed { .. } => ErrorKind::Internal,
            },
        };
        Self { stage, kind, reason }
    }
}
