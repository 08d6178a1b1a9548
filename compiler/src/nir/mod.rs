//! The SSA input language.
