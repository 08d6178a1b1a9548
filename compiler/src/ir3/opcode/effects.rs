//! What an opcode does beside its result: control flow, memory, the constant file.

use super::{Category, Opcode};

impl Opcode {
    /// Whether the sources are the program's outputs: `end` and `chmask`.
    pub const fn is_output(self) -> bool {
        matches!(self, Self::End | Self::Chmask)
    }

    /// Whether the instruction ends a block: a branch or `end`.
    pub fn is_terminator(self) -> bool {
        use Opcode::*;
        matches!(
            self,
            Br | Braa
                | Brao
                | Brac
                | Brax
                | Bany
                | Ball
                | Getone
                | Getlast
                | Shps
                | Jump
                | Predt
                | Predf
                | End
                | Chmask
                | Ret
        )
    }

    /// The branch that is taken where this one is not, if its predicates are inverted, too: De Morgan. `None` for what
    /// cannot be inverted.
    pub const fn inverse_branch(self) -> Option<Self> {
        Some(match self {
            Self::Br => Self::Br,
            Self::Braa => Self::Brao,
            Self::Brao => Self::Braa,
            Self::Bany => Self::Ball,
            Self::Ball => Self::Bany,
            _ => return None,
        })
    }

    /// Whether it is no instruction of the machine (phi, collect, split, parallel copy, input, prefetch).
    pub fn is_meta(self) -> bool {
        self.category() == Category::Meta
    }

    /// Whether it is one of the atomics.
    pub fn is_atomic(self) -> bool {
        self.name().starts_with("atomic.")
    }

    /// Whether the instruction writes to the constant file, so that a constant may be another one behind it.
    pub fn writes_consts(self) -> bool {
        use Opcode::*;
        matches!(self, Stc | Stsc | LdcK | LdgK | PushConstsLoadMacro)
    }

    /// Whether the instruction has an effect beside its result, and so may not be removed when that is unused.
    pub fn has_side_effect(self) -> bool {
        use Opcode::*;
        match self.category() {
            Category::Flow | Category::Barrier => true,
            Category::Memory => {
                self.is_atomic()
                    || matches!(
                        self,
                        Stg | StgA
                            | Stl
                            | Stp
                            | Stib
                            | G2l
                            | L2g
                            | Prefetch
                            | Stlw
                            | Stgb
                            | Stc
                            | Stsc
                            | LdgK
                            | LdcK
                            | SpillMacro
                    )
            }
            Category::Texture => self == Tcinv,
            Category::Move => self == PushConstsLoadMacro,
            Category::Alu2 => self == Setrm,
            Category::Alu3 | Category::Sfu | Category::Meta => false,
        }
    }
}
