//! Expressions that must become the same term.
