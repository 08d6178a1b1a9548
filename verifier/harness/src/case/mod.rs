//! Cases: reproducible failures.
//!
//! A [`Case`] has everything that is needed to reproduce a failure: the program, the GPU, the compiler's options, the
//! environment, and a planted bug if there is one. Its [`Evidence`] is the result of running it once more, so it cannot
//! contradict the case. The package ir3-report writes both as a folder, a bundle; [`read`] returns the case of a bundle.

mod evidence;
pub mod folder;
mod metadata;

pub use evidence::{EngineVerdict, Evidence};
pub use folder::{clean, is_bundle, list};
pub use metadata::{FORMAT, ReadError, metadata, read, read_with, rewritten};

use crate::reduce::{Failure, Oracle};
use ir3_compiler::nir::{self, Shader};
use ir3_compiler::pipeline::{Feature, Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator::Profile;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::text_hash;
use std::fmt;

/// The origin of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// A file, followed by the number of the section if it has several.
    File(String),
    /// The program generator.
    Seed {
        /// The seed.
        seed: u64,
        /// The profile.
        profile: Profile,
    },
    /// The input bytes on which a fuzz target failed.
    Artifact(String),
    /// A program made of others: [`variant`](ir3_programs::variants::variant).
    Variant {
        /// The name of the program that most of it is from.
        of: String,
        /// The seed.
        seed: u64,
    },
}

impl fmt::Display for ProgramOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) | Self::Artifact(path) => f.write_str(path),
            Self::Seed { seed, profile } => write!(f, "{profile}-{seed}"),
            Self::Variant { of, seed } => {
                write!(f, "variant-{seed}-of-{}", of.rsplit(['/', '\\']).next().unwrap_or_default())
            }
        }
    }
}

/// The observation of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symptom {
    /// The class of the failure, which a reduction preserves.
    pub failure: Failure,
    /// The stage that fails.
    pub stage: Stage,
    /// The difference, the reason of the refusal or the message of the panic, in full.
    pub message: String,
}

/// A case before its reduction: program, environment, GPU and options.
#[derive(Clone, Debug, PartialEq)]
pub struct Original {
    /// The program.
    pub program: Shader,
    /// The environment, if the failure needs one.
    pub env: Option<Env>,
    /// The GPU.
    pub target: Target,
    /// The compiler options.
    pub options: Options,
}

/// A reproducible failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The program.
    pub program: Shader,
    /// The GPU.
    pub target: Target,
    /// The compiler options.
    pub options: Options,
    /// The bug that is planted into the compiler, if any.
    pub plant: Option<&'static PlantedBug>,
    /// The environment, if the failure needs one.
    pub env: Option<Env>,
    /// The origin of the program.
    pub origin: ProgramOrigin,
    /// The observed failure.
    pub symptom: Symptom,
    /// The original, if the case has been reduced.
    pub original: Option<Original>,
    /// True if no step of the reducer makes the program smaller.
    pub minimal: bool,
}

impl Case {
    /// Determines the failure of a program in some environments. `None` if it does not fail.
    pub fn find(
        program: Shader,
        target: Target,
        options: Options,
        plant: Option<&'static PlantedBug>,
        envs: &[Env],
        origin: ProgramOrigin,
    ) -> Option<Self> {
        let mut oracle = Oracle::find(target, options, &program, envs, plant.map(PlantedBug::shared))?;
        let program = as_read(program, &mut oracle);
        let env = oracle.envs().first().cloned();
        // The rest of the symptom comes from running the case once more.
        let symptom = Symptom { failure: oracle.failure().clone(), stage: Stage::Select, message: String::new() };
        let mut case = Self { program, target, options, plant, env, origin, symptom, original: None, minimal: false };
        if let Some(symptom) = Evidence::of(&case).symptom {
            case.symptom = symptom;
        }
        Some(case)
    }

    /// The name of its folder: a function of the original case.
    pub fn folder_name(&self) -> String {
        let Symptom { failure, stage, .. } = &self.symptom;
        let plant = self.plant.map(|plant| format!("{}-", plant.name)).unwrap_or_default();
        let origin = match &self.origin {
            // Only the name of the file: its folders are those of one machine.
            ProgramOrigin::File(path) | ProgramOrigin::Artifact(path) => {
                path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
            }
            ProgramOrigin::Seed { .. } | ProgramOrigin::Variant { .. } => self.origin.to_string(),
        };
        // The end of a long name is more specific than its beginning.
        let skip = origin.chars().count().saturating_sub(80);
        let origin: String = origin.chars().skip(skip).collect();
        let now = (&self.program, self.target, self.options);
        let (program, target, options) = self.original.as_ref().map_or(now, |o| (&o.program, o.target, o.options));
        let program = nir::text::write(program);
        let changes = changed_options(options);
        let hash = text_hash(&format!("{program}\n{}\n{changes}\n{:?}", target.name, self.plant)) as u32;
        let name = format!("{stage}-{}-{}-{plant}{origin}-{hash:08x}", kind(failure), target.name);
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        name.chars().map(plain).collect()
    }

    /// Returns an oracle for this failure. `None` if the program does not fail any more.
    pub fn oracle(&self) -> Option<Oracle> {
        let envs: Vec<Env> = self.env.iter().cloned().collect();
        Oracle::find(self.target, self.options, &self.program, &envs, self.plant.map(PlantedBug::shared))
    }
}

/// The options that differ from the defaults, as text. It does not depend on features that the compiler gets later.
fn changed_options(options: Options) -> String {
    let default = Options::default();
    let disabled: Vec<&str> = (default.features - options.features).iter().map(Feature::name).collect();
    let last = if options.last == default.last { "" } else { options.last.name() };
    let own_pass = options.own_pass.map(|pass| format!(" {}", pass.name)).unwrap_or_default();
    let allocator =
        if options.allocator == default.allocator { String::new() } else { format!(" {}", options.allocator) };
    let skip = if options.skip == default.skip { String::new() } else { format!(" {}", options.skip) };
    format!("{} {last} {}{allocator}{own_pass}{skip}", disabled.join(","), options.registers)
}

/// The program as read back from its text, with the numbers of the text, if it fails in the same way: a user of the
/// bundle will have that one.
pub fn as_read(program: Shader, oracle: &mut Oracle) -> Shader {
    match nir::text::read(&nir::text::write(&program)) {
        Ok(read) if oracle.same(&read) => read,
        _ => program,
    }
}

/// A word for the kind of a failure, for names.
pub fn kind(failure: &Failure) -> String {
    match failure {
        Failure::Refuted { difference, .. } => difference.name().replace(' ', "-"),
        Failure::Refused { .. } => "refused".to_owned(),
        Failure::Unsupported { .. } => "unsupported".to_owned(),
        Failure::Panic { .. } => "crash".to_owned(),
        Failure::Stopped(stopped) => stopped.stop.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::pipeline::Features;
    use std::collections::BTreeSet;

    /// The names of bundles depend on the options that differ from the defaults, and on no others.
    #[test]
    fn only_options_that_are_set_count() {
        let default = changed_options(Options::default());
        assert!(Features::all().iter().all(|feature| !default.contains(feature.name())), "{default}");
        let without = Features::all().iter().map(|feature| changed_options(Options::default().without(feature)));
        let last = Options { last: Stage::Select, ..Options::default() };
        let registers = Options { registers: "min+2".parse().expect("a limit"), ..Options::default() };
        let skip = Options { skip: "fold-two:1..".parse().expect("an arm"), ..Options::default() };
        let others = [Options::default(), last, registers, skip].map(changed_options);
        let all: BTreeSet<String> = without.chain(others).collect();
        assert_eq!(all.len(), Features::all().len() + 4, "{all:?}");
        assert_eq!(default, "  target");
    }
}
