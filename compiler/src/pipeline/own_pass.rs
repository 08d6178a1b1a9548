//! A pass that a program which uses this library brings along, as a stage of its own.
//!
//! [`Options::own_pass`](super::Options::own_pass) puts it into a compilation, as [`Stage::OwnPass`](super::Stage::OwnPass): after all
//! optimisations, on the program in SSA form. Like any stage it is compared, reduced and reported by its boundary.

use crate::ir3::Program;
use crate::ir3::validate::{Form, validate};
use crate::regalloc;
use crate::target::Target;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A function from a program to a program, by name.
#[derive(Clone, Copy)]
pub struct OwnPass {
    /// The name of the pass in reports.
    pub name: &'static str,
    run: fn(&mut Program),
}

/// The passes that were made, by name: a report that was written is read as one about the same pass.
static KNOWN: RwLock<Vec<OwnPass>> = RwLock::new(Vec::new());

impl OwnPass {
    /// A pass. [`by_name`](Self::by_name) finds it from now on; a later one of the same name replaces it there.
    pub fn new(name: &'static str, run: fn(&mut Program)) -> Self {
        let pass = Self { name, run };
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|other| other.name != name);
        known.push(pass);
        pass
    }

    /// The pass of a name, if this process has made it.
    pub fn by_name(name: &str) -> Option<Self> {
        KNOWN.read().unwrap_or_else(PoisonError::into_inner).iter().find(|pass| pass.name == name).copied()
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
