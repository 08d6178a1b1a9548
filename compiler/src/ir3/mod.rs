//! The machine language.
