//! The boundaries of a shader one at a time, for campaigns that change a section.

use super::boundary;
use super::runs::Environments;
use super::{Checked, Settings, Side, recover, sides};
use crate::harness::check::Verdict;
use crate::programs::mesa::shader::LogShader;
use crate::semantics::Snapshot;
use ir3_compiler::ir3::validate::{Form, Rule, validate};
use ir3_compiler::target::Target;
use std::path::Path;

/// The programs of a shader with what was recovered, each a side of two boundaries.
pub struct Boundaries {
    sides: Vec<Side<'static>>,
    environments: Option<Environments>,
    target: Target,
    contradictions: Vec<String>,
}

impl Boundaries {
    /// Reads a shader.
    pub fn of(path: &Path, shader: &LogShader, target: &Target, seed: u64) -> Self {
        let recovered = recover::recover(path, shader, target);
        let environments = recovered.nir.as_ref().ok().map(|nir| Environments::of(nir, seed));
        let sides = sides(shader, &recovered).map(|side| Side {
            name: side.name,
            section: None,
            program: side.program,
            statistics: side.statistics,
        });
        let sides = sides.collect();
        Self { sides, environments, target: *target, contradictions: recovered.contradictions }
    }

    /// The number of programs.
    pub fn len(&self) -> usize {
        self.sides.len()
    }

    /// Returns true if there is no program.
    pub fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// The name of a program: the pass that made it.
    pub fn name(&self, at: usize) -> &str {
        &self.sides[at].name
    }

    /// A program; `None` if it could not be read.
    pub fn program(&self, at: usize) -> Option<&Snapshot> {
        self.sides[at].program.as_ref().ok()
    }

    /// Returns true if a program after a pass is the same in both, or cannot be read in both.
    pub fn is_same(&self, other: &Self, at: usize) -> bool {
        match (&self.sides[at].program, &other.sides[at].program) {
            (Ok(Snapshot::Ir3(own)), Ok(Snapshot::Ir3(other))) => own == other,
            (Ok(_), Ok(_)) => true,
            (own, other) => own.is_err() == other.is_err(),
        }
    }

    /// A contradiction between two sections that the original does not have, and that names the section with this title: `mesa` ends
    /// with an error that has both.
    pub fn contradiction(&self, original: &Self, title: &str) -> Option<&str> {
        let names = format!("`{title}`");
        let mut new = self.contradictions.iter().filter(|what| !original.contradictions.contains(what));
        new.find(|what| what.contains(&names)).map(String::as_str)
    }

    /// The number of rules of the language that a program after a pass breaks, without that of `(jp)`, which Mesa's validator does not know.
    pub fn violations(&self, at: usize) -> usize {
        match &self.sides[at].program {
            Ok(Snapshot::Ir3(program)) => {
                let all = validate(program, &self.target, Form::of(program)).err().unwrap_or_default();
                all.iter().filter(|violation| violation.rule != Rule::Reconvergence).count()
            }
            _ => 0,
        }
    }

    /// Checks the boundary between two of the programs.
    pub fn check(&self, before: usize, after: usize, settings: &Settings<'_>) -> Checked<'static> {
        self.check_against(self, before, after, settings)
    }

    /// Runs the boundary between two of the programs, of which `checked` is the verdict, on the input that refutes another one.
    pub fn check_on(&self, checked: &mut Checked<'_>, before: usize, after: usize, other: &Checked<'_>) {
        if let Verdict::Refuted(refutation) = &other.verdict {
            let (before, after) = (&self.sides[before], &self.sides[after]);
            boundary::check_on(checked, before, after, &self.target, std::slice::from_ref(&refutation.env));
        }
    }

    /// Checks that a program of `self` keeps the meaning of one of `original`.
    pub fn check_against(
        &self,
        original: &Self,
        before: usize,
        after: usize,
        settings: &Settings<'_>,
    ) -> Checked<'static> {
        let (before, after) = (&original.sides[before], &self.sides[after]);
        boundary::check(before, after, &self.target, settings, original.environments.as_ref())
    }
}
