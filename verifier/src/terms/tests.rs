//! Every constructor against arithmetic on numbers, on random expressions.

mod properties;
mod rules;
