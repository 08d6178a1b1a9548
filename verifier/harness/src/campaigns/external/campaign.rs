//! Programs from the generator, in several threads, until the first failure or to the end.
//!
//! Program `i` of a campaign is a function of the campaign's seed and `i` alone, as in
//! [`fuzzing`](crate::campaigns::fuzzing). In memory are one program and one log for each thread, and counts.

use super::command::RunError;
use super::compiler::Compiler;
use super::course::{Course, Trial};
use super::observe::{self, Found, LogRules, Observation};
use crate::check::Summary;
use ir3_compiler::nir::Shader;
use ir3_programs::generator::{self, Features, Profile};
use ir3_programs::seeds::program_seed;
use ir3_semantics::support::panics::catch;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The parameters of a campaign.
pub struct Campaign<'a> {
    /// The compiler.
    pub compiler: &'a Compiler,
    /// The rules by which its logs are checked.
    pub rules: LogRules<'a>,
    /// The profiles, taken in turn.
    pub profiles: Vec<Profile>,
    /// The programs, by number.
    pub course: Course,
}

/// One program of this many has all boundaries compared; the others are compared end to end.
const EVERY: u64 = 16;
/// The CPU time for the boundaries of that one. A failure takes as long as it does.
const SAMPLE: Duration = Duration::from_millis(200);

/// The counts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Verdicts on boundaries.
    pub summary: Summary,
    /// Programs that the compiler got.
    pub compiled: u64,
    /// Instructions of nir of all programs.
    pub instructions: u64,
    /// Programs that SPIR-V cannot express, by the construct that it lacks.
    pub no_form: BTreeMap<String, u64>,
    /// Programs that the compiler refuses, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Unknown boundaries, by pass and reason.
    pub unknown: BTreeMap<String, u64>,
    /// Programs with failures.
    pub failures: u64,
    /// Programs with a wrong proof, and the pass.
    pub wrong_proofs: Vec<(u64, String)>,
}

/// A failure that the campaign found.
pub struct Finding<'a> {
    /// The number of the program in the campaign.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The seed that makes it.
    pub seed: u64,
    /// The program.
    pub shader: &'a Shader,
    /// The failure.
    pub found: &'a Found,
}

impl Counts {
    pub(super) fn count(&mut self, number: u64, instructions: usize, seconds: f64, seen: &Observation) {
        self.summary.programs += 1;
        self.summary.seconds += seconds;
        self.instructions += instructions as u64;
        if let Some(no_form) = &seen.no_form {
            observe::count(&mut self.no_form, Cow::Owned(no_form.to_string()), 1);
            return;
        }
        self.compiled += 1;
        if let Some(why) = &seen.refused {
            self.summary.rejected += 1;
            observe::count(&mut self.refused, Cow::Borrowed(why), 1);
        }
        seen.verdicts.iter().for_each(|verdict| self.summary.count(verdict));
        for (reason, &times) in &seen.unknown {
            observe::count(&mut self.unknown, Cow::Borrowed(reason), times);
        }
        self.failures += u64::from(seen.found.is_some());
        self.wrong_proofs.extend(seen.wrong_proofs.iter().map(|pass| (number, pass.clone())));
    }
}

/// The rules for the program of a number: end to end, or all boundaries in little time.
pub(super) fn rules_of<'a>(rules: &LogRules<'a>, number: u64) -> LogRules<'a> {
    let end_to_end = rules.end_to_end.filter(|_| !number.is_multiple_of(EVERY));
    let is_sample = end_to_end.is_none() && rules.end_to_end.is_some();
    LogRules { end_to_end, time: is_sample.then_some(SAMPLE), ..*rules }
}

impl Campaign<'_> {
    /// Runs the campaign. `found` is called for each failure as soon as there is one, `progress` now and then; both
    /// from worker threads, one at a time. `interrupted` stops it early.
    ///
    /// # Errors
    /// If the compiler cannot be started, or its files not be written.
    pub fn run(
        &self,
        interrupted: &AtomicBool,
        found: &mut (dyn FnMut(&Finding<'_>) + Send),
        progress: &mut (dyn FnMut(&Counts) + Send),
    ) -> Result<Counts, RunError> {
        let features = Features::of(&self.rules.target);
        let features = match self.compiler {
            Compiler::Driver(_) => features.for_driver(),
            Compiler::Command(_) => features,
        };
        let attempt = |number: u64, folder: &Path| {
            let profile = self.profiles[(number % self.profiles.len() as u64) as usize];
            let seed = program_seed(self.course.seed, number);
            let shader = generator::from_seed(seed, profile, features).shader;
            let seen = self.observe(number, &shader, folder, interrupted)?;
            Ok(Trial { instructions: shader.instruction_count(), program: (profile, seed, shader), seen })
        };
        let mut of_number = |number, (profile, seed, shader): &(Profile, u64, Shader), of_it: &Found| {
            found(&Finding { number, profile: *profile, seed: *seed, shader, found: of_it });
        };
        self.course.run(interrupted, attempt, &mut of_number, progress)
    }

    /// Runs the compiler on a program. A panic of an engine counts as an unreadable log, and does not end the campaign.
    fn observe(&self, number: u64, shader: &Shader, folder: &Path, stop: &AtomicBool) -> Result<Observation, RunError> {
        fs::create_dir_all(folder).map_err(|cause| RunError::File { path: folder.display().to_string(), cause })?;
        let rules = rules_of(&self.rules, number);
        catch(|| observe::observe(self.compiler, &rules, shader, folder, stop))
            .unwrap_or_else(|panic| Ok(Observation::panicked(&panic, folder)))
    }
}
