//! The opcodes, one table.
//!
//! All that a pass has to know of an opcode, apart from what it computes, is a column of its row ([`OpcodeInfo`]): its
//! encoding family, how many operands it has, which operands it can encode, what it does beside computing its results,
//! which lanes its results depend on, its latency class, and traits that are true or false. Predicates over opcodes
//! (`properties`) are derived from columns; there are no lists of opcodes beside the table. A new opcode is a new row.
//!
//! The result of an opcode is defined in the verifier, which reads none of the columns that it checks passes by.

macro_rules! slots {
    () => {
        u8::MAX
    };
    ([$($slot:literal)*]) => {
        0 $(| 1 << $slot)*
    };
}

macro_rules! form {
    () => {
        &super::form::PLAIN
    };
    ($form:ident) => {
        &super::form::$form
    };
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $cat:ident, $dsts:literal, $lo:literal..=$hi:literal, $num:ident, $lat:ident,
        $effect:ident, $lanes:ident, $sources:ident, $imm:ident $([$($slot:literal)*])?, [$($trait:ident)*] $(, $form:ident)?;)*) => {
        words! {
            /// An opcode. Its name is the mnemonic, without types, conditions and suffixes.
            #[repr(u16)]
            pub enum Opcode { $($(#[$doc])* $variant = $name,)* }
        }

        impl Opcode {
            pub(super) const TABLE: &'static [OpcodeInfo] = &[$(OpcodeInfo {
                category: Category::$cat, dsts: $dsts, min_srcs: $lo, max_srcs: $hi,
                numeric: Numeric::$num, latency: Latency::$lat, effect: Effect::$effect, lanes: Lanes::$lanes,
                sources: Sources::$sources, immediates: Immediates::$imm, immediate_slots: slots!($([$($slot)*])?),
                traits: Traits::empty()$(.union(Traits::$trait))*, form: form!($($form)?),
            },)*];
        }
    };
}

mod columns;
mod form;
mod properties;
mod table;

pub use columns::{Category, Effect, Immediates, Lanes, Latency, Numeric, OpcodeInfo, Sources, Traits};
pub use form::{Coordinates, Form, Memory, Role};
pub use table::Opcode;

impl Opcode {
    /// The opcode's row in the table.
    pub const fn info(self) -> &'static OpcodeInfo {
        &Self::TABLE[self as usize]
    }

    /// The category.
    pub const fn category(self) -> Category {
        self.info().category
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (Opcode, &'static OpcodeInfo)> {
        Opcode::ALL.into_iter().map(|opcode| (opcode, opcode.info()))
    }

    #[test]
    fn names_are_unique_and_found() {
        for op in Opcode::ALL {
            assert_eq!(Opcode::from_name(op.name()), Some(op));
        }
    }

    #[test]
    fn terminators_are_control_flow_without_results() {
        for (opcode, info) in all().filter(|(opcode, _)| opcode.is_terminator()) {
            assert_eq!((info.category, info.dsts), (Category::Flow, 0), "{opcode}");
        }
        for (opcode, info) in all().filter(|(_, info)| info.category == Category::Flow) {
            let expected = [Effect::Control, Effect::EndsLanes];
            assert!(opcode.is_terminator() || expected.contains(&info.effect), "{opcode}");
            assert_eq!(info.dsts, 0, "{opcode}");
        }
        for (opcode, _) in all().filter(|(opcode, _)| opcode.is_output() || opcode.inverse_branch().is_some()) {
            assert!(opcode.is_terminator(), "{opcode}");
        }
        for (opcode, inverse) in all().filter_map(|(opcode, _)| Some((opcode, opcode.inverse_branch()?))) {
            assert_eq!(inverse.inverse_branch(), Some(opcode));
            assert_eq!(inverse.info().min_srcs, opcode.info().min_srcs, "{opcode}");
        }
    }

    #[test]
    fn commutative_operations_compute_one_result_of_two_sources() {
        for (opcode, info) in all().filter(|(opcode, _)| opcode.commutes()) {
            assert!(matches!(info.category, Category::Alu2 | Category::Alu3), "{opcode}");
            assert!(opcode.is_pure() && info.dsts == 1 && info.min_srcs >= 2, "{opcode}");
            // What the one source can have, the other can.
            assert_eq!(opcode.source_mods(0), opcode.source_mods(1), "{opcode}");
        }
    }

    #[test]
    fn late_sources_are_in_cat3_only() {
        for (opcode, info) in all().filter(|(opcode, _)| opcode.reads_third_late()) {
            assert_eq!((info.category, info.min_srcs), (Category::Alu3, 3), "{opcode}");
        }
    }

    #[test]
    fn effects_fit_their_category() {
        for (opcode, info) in all() {
            let fits = match info.effect {
                Effect::None => !matches!(info.category, Category::Flow | Category::Barrier),
                Effect::End | Effect::Jump | Effect::Branch | Effect::Control | Effect::EndsLanes => {
                    info.category == Category::Flow
                }
                Effect::Machine => info.dsts == 0,
                Effect::Barrier => info.category == Category::Barrier && info.dsts == 0,
                Effect::Load | Effect::LoadAny => info.category == Category::Memory && info.dsts == 1,
                Effect::Store | Effect::StoreAny => info.category == Category::Memory && info.dsts == 0,
                Effect::Atomic => info.category == Category::Memory && info.dsts == 1,
                Effect::StoreConsts | Effect::LoadConsts => info.dsts == 0,
            };
            assert!(fits, "{opcode}");
            // What has neither a result nor an effect would be removed wherever it stands.
            assert!(info.dsts > 0 || opcode.has_side_effect(), "{opcode}");
            assert_eq!(info.effect == Effect::Atomic, opcode.name().starts_with("atomic."), "{opcode}");
        }
    }

    #[test]
    fn widths_do_not_contradict_each_other() {
        for (opcode, info) in all() {
            assert!(!info.traits.contains(Traits::HALF_SRCS | Traits::FULL_SRCS), "{opcode}");
            assert!(!info.traits.contains(Traits::HALF_DST | Traits::FULL_DST), "{opcode}");
            // A number in the name of an operation of three sources is the width of its sources.
            for (width, expected) in [("16", Traits::HALF_SRCS), ("32", Traits::FULL_SRCS)] {
                if info.category == Category::Alu3
                    && opcode.name().ends_with(width)
                    && !opcode.name().starts_with("madsh")
                {
                    assert!(info.traits.contains(expected), "{opcode}");
                }
            }
        }
    }

    #[test]
    fn sources_fit_their_category() {
        for (opcode, info) in all() {
            let fits = match info.sources {
                Sources::General => matches!(info.category, Category::Flow | Category::Texture | Category::Barrier),
                Sources::OfResult => info.category == Category::Meta,
                Sources::Any | Sources::Move | Sources::Registers => info.category == Category::Move,
                Sources::FirstGeneral | Sources::FirstShared => info.category == Category::Move,
                Sources::Cat2 | Sources::Flat => info.category == Category::Alu2,
                Sources::Cat3 | Sources::Cat3Alternative | Sources::Dot | Sources::Matrix => {
                    info.category == Category::Alu3
                }
                Sources::Cat4 => info.category == Category::Sfu,
                Sources::Memory | Sources::MemorySecondShared => info.category == Category::Memory,
            };
            assert!(fits, "{opcode}");
            if info.immediates == Immediates::FloatTable {
                assert_eq!((info.numeric, info.category), (Numeric::Float, Category::Alu2), "{opcode}");
            }
            if info.traits.intersects(Traits::SATURATES) {
                assert!(info.numeric == Numeric::Float && opcode.is_pure(), "{opcode}");
            }
            if info.traits.intersects(Traits::SCALAR) {
                let computes = matches!(info.category, Category::Alu2 | Category::Alu3 | Category::Sfu);
                assert!(opcode.is_pure() && info.dsts == 1 && (computes || opcode == Opcode::Mov), "{opcode}");
            }
        }
    }
}
