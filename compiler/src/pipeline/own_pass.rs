//! A pass that a program which uses this library brings along, as a stage of its own.
//!
//! [`Options::own_pass`](super::Options::own_pass) puts it into a compilation, as
//! [`Stage::OwnPass`](super::Stage::OwnPass): after all optimisations, on the program in SSA form. Like any stage it is
//! compared, reduced and reported by its boundary.

use crate::ir3::Program;
use crate::ir3::validate::{Form, validate};
use crate::regalloc;
use crate::target::Target;
use std::fmt;

/// A function from a program to a program, by name.
#[derive(Clone, Copy)]
pub struct OwnPass {
    /// The name of the pass in reports.
    pub name: &'static str,
    run: fn(&mut Program),
}

impl OwnPass {
    /// A pass. Reports have its name; so has the reader of a report about it.
    pub const fn new(name: &'static str, run: fn(&mut Program)) -> Self {
        Self { name, run }
    }

    /// Runs the pass.
    ///
    /// # Errors
    /// If the program breaks a rule of ir3 after it: the first one.
    pub(super) fn run(self, program: &mut Program, target: &Target) -> Result<(), regalloc::Error> {
        (self.run)(program);
        let violations = validate(program, target, Form::of(program)).err().unwrap_or_default();
        violations.first().map_or(Ok(()), |first| {
            Err(regalloc::Error::Malformed { what: format!("the pass {} breaks a rule: {first}", self.name) })
        })
    }
}

impl fmt::Debug for OwnPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Passes of the same name are the same.
impl PartialEq for OwnPass {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OwnPass {}
