//! Fuzzing of a driver with mutated modules: real shaders with a few operations and constants changed.
//!
//! Variant `i` of a campaign is a function of its seed, `i` and the modules. If a variant fails, the mutations that the
//! failure does not need are reverted.

use super::command::RunError;
use super::compiler::Drivers;
use super::course::{Course, Trial};
use super::observe::{self, Found, LogRules, Observation};
use super::{Counts, Failure};
use ir3_programs::seeds::program_seed;
use ir3_programs::spirv::{Change, Changeable};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A module that is changed.
pub struct Original {
    /// Its file.
    pub path: PathBuf,
    /// The module.
    pub module: Changeable,
    /// False if `spirv-val` refuses it: it may be older than the module, and refuses the variants, too.
    pub is_valid: bool,
}

impl Original {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is no module, or one whose instructions are not kept in order.
    pub fn read(path: PathBuf, validator: Option<&Path>) -> Result<Self, String> {
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let module = Changeable::read(&words)?;
        let is_valid = validator.is_none_or(|validator| observe::fault(validator, &path).is_none());
        Ok(Self { path, module, is_valid })
    }
}

/// The parameters of a campaign.
pub struct VariantCampaign<'a> {
    /// The driver.
    pub drivers: &'a Drivers,
    /// The rules by which its logs are checked.
    pub rules: LogRules<'a>,
    /// The modules, in turn.
    pub originals: &'a [Original],
    /// The variants, by number.
    pub course: Course,
}

/// A variant that fails.
pub struct VariantFinding<'a> {
    /// The number of the variant in the campaign.
    pub number: u64,
    /// The module that it was made of.
    pub original: &'a Original,
    /// The changes that are left.
    pub changes: &'a [Change],
    /// The failure.
    pub found: &'a Found,
}

impl VariantCampaign<'_> {
    /// Runs the campaign. `found` is called for each failure, from worker threads, one at a time.
    ///
    /// # Errors
    /// If the driver cannot be started, or its files not be written.
    pub fn run(
        &self,
        interrupted: &AtomicBool,
        found: &mut (dyn FnMut(&VariantFinding<'_>) + Send),
        progress: &mut (dyn FnMut(&Counts) + Send),
    ) -> Result<Counts, RunError> {
        if self.originals.is_empty() {
            return Ok(Counts::default());
        }
        let attempt = |number: u64, folder: &Path| {
            let original = &self.originals[(number % self.originals.len() as u64) as usize];
            let mut changes = original.module.draw(&mut Random::new(program_seed(self.course.seed, number)));
            let seen = self.observe(number, original, &changes, folder)?;
            let seen = self.reduced(number, original, &mut changes, seen, folder)?;
            Ok(Trial { instructions: original.module.instruction_count(), program: (original, changes), seen })
        };
        let mut of_number = |number, (original, changes): &(&Original, Vec<Change>), of_it: &Found| {
            found(&VariantFinding { number, original, changes, found: of_it });
        };
        self.course.run(interrupted, attempt, &mut of_number, progress)
    }

    /// Compiles and checks a variant. A panic of an engine is an unreadable log.
    fn observe(
        &self,
        number: u64,
        original: &Original,
        changes: &[Change],
        folder: &Path,
    ) -> Result<Observation, RunError> {
        fs::create_dir_all(folder).map_err(|cause| RunError::File { path: folder.display().to_string(), cause })?;
        let module = bytes(original, changes);
        let mut rules = super::campaign::rules_of(&self.rules, number);
        rules.validator = rules.validator.filter(|_| original.is_valid);
        let observe =
            || observe::observe_by(&rules, folder, &mut |sections| self.drivers.run_module(&module, folder, sections));
        catch(observe).unwrap_or_else(|panic| Ok(Observation::panicked(&panic, folder)))
    }

    /// Takes back the changes that a failure does not need.
    fn reduced(
        &self,
        number: u64,
        original: &Original,
        changes: &mut Vec<Change>,
        mut seen: Observation,
        folder: &Path,
    ) -> Result<Observation, RunError> {
        let Some(failure) = seen.found.as_ref().map(|found| found.failure.clone()) else { return Ok(seen) };
        let mut at = 0;
        while at < changes.len() {
            let mut fewer = changes.clone();
            fewer.remove(at);
            let again = self.observe(number, original, &fewer, folder)?;
            if again.found.as_ref().is_some_and(|found| found.failure == failure) {
                (*changes, seen) = (fewer, again);
            } else {
                at += 1;
            }
        }
        Ok(seen)
    }
}

/// The bytes of a variant.
fn bytes(original: &Original, changes: &[Change]) -> Vec<u8> {
    original.module.with(changes).into_iter().flat_map(u32::to_le_bytes).collect()
}

impl VariantFinding<'_> {
    /// The bytes of the module.
    #[must_use]
    pub fn module(&self) -> Vec<u8> {
        bytes(self.original, self.changes)
    }

    /// The failure.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.found.failure
    }
}
