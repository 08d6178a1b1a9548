//! Which failures are one bug.

mod change;
mod contents;
mod shape;

pub use shape::Shape;
