//! Every constructor compared with arithmetic on numbers, on random expressions.

mod exhaustive;
mod properties;
mod rules;
