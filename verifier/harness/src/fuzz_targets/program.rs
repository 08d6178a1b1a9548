//! Inputs that are a program, the GPU that it is compiled for, and the environment that it runs in.

use crate::check::Checker;
use crate::fuzz_targets::stats;
use arbitrary::{Arbitrary, Unstructured};
use ir3_compiler::nir::{self, Shader};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_programs::generator;
use ir3_programs::generator::Features;
use ir3_programs::seeds::campaign_env;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::{hash, mix};
use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;

/// The GPUs that inputs select by their first byte: one of each kind that selection or register allocation
/// distinguishes. The first is the default.
pub const GPUS: [&str; 12] =
    ["a660", "a320", "a420", "a530", "a610", "a618", "a640", "a650", "a635", "a702", "a730", "a750"];

static TARGETS: LazyLock<Vec<Target>> =
    LazyLock::new(|| GPUS.iter().filter_map(|name| Target::by_name(name).ok()).collect());

/// Returns the GPU that the first byte of an input selects.
pub(super) fn gpu(byte: u8) -> Target {
    TARGETS[usize::from(byte) % TARGETS.len()]
}

/// A random program, a GPU and an environment: the input of the targets that begin with nir.
///
/// The first byte selects the GPU, the others are the generator's ([`generator::from_bytes`]). The environment's seed
/// is a hash of all of them.
#[derive(Clone)]
pub struct ProgramInput {
    /// The program.
    pub shader: Shader,
    /// The GPU.
    pub target: Target,
    /// The seed of the environment.
    pub env_seed: u64,
}

impl ProgramInput {
    /// Decodes a byte string. `ir3-equiv reduce` uses it too, for the artifacts of `cargo fuzz`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (&first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let target = gpu(first);
        let shader = generator::from_bytes(rest, None, Features::of(&target)).shader;
        let mut env_seed = hash(&[bytes.len() as u64]);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            env_seed = mix(env_seed, u64::from_le_bytes(word));
        }
        Self { shader, target, env_seed }
    }

    /// Returns the shortest input of a seed whose program has at least `instructions` instructions, as a start for a
    /// fuzzer. A function of its arguments alone. `None` if some thousand bytes are not enough.
    pub fn seeded(seed: u64, instructions: usize) -> Option<Vec<u8>> {
        let bytes: Vec<u8> = (0..512).flat_map(|i| hash(&[0x0062_7974_6573, seed, i]).to_le_bytes()).collect();
        let large = |length: usize| Self::from_bytes(&bytes[..length]).shader.instruction_count() >= instructions;
        let (mut short, mut long) = (0, 64);
        while !large(long) {
            short = long;
            long *= 2;
            if long > bytes.len() {
                return None;
            }
        }
        while long - short > 1 {
            let middle = usize::midpoint(short, long);
            if large(middle) { long = middle } else { short = middle }
        }
        Some(bytes[..long].to_vec())
    }

    /// Returns the environment.
    pub fn env(&self) -> Env {
        campaign_env(self.env_seed)
    }
}

impl<'a> Arbitrary<'a> for ProgramInput {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let bytes = u.bytes(u.len())?;
        let input = Self::from_bytes(bytes);
        stats::count(bytes.len(), input.shader.instruction_count());
        Ok(input)
    }
}

impl fmt::Debug for ProgramInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instructions = self.shader.instruction_count();
        writeln!(f, "// GPU: {}", self.target.name)?;
        writeln!(f, "// environment: seed {}", self.env_seed)?;
        writeln!(f, "// {instructions} instructions")?;
        f.write_str(&nir::text::write(&self.shader))
    }
}

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::new(Checker::new(Target::default(), Options::default()));
}

/// Runs `work` with a checker that reuses the buffers of the last input.
pub(super) fn with_checker<T>(target: &Target, options: Options, work: impl FnOnce(&mut Checker) -> T) -> T {
    CHECKER.with_borrow_mut(|checker| {
        checker.retarget(*target, options);
        work(checker)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::target::Generation;

    #[test]
    fn gpus_exist_and_cover_the_generations() {
        assert_eq!(TARGETS.len(), GPUS.len());
        // Code for a8xx is judged, not generated: of its instructions too little is known.
        for target in ir3_compiler::target::ALL.iter().filter(|gpu| gpu.generation != Generation::A8xx) {
            assert!(TARGETS.iter().any(|ours| ours.generation == target.generation), "{target}");
        }
        assert_eq!(gpu(0), Target::default());
    }

    #[test]
    fn each_part_of_an_input_depends_on_the_bytes() {
        let bytes: Vec<u8> = (0..200).map(|i: u8| i.wrapping_mul(151).wrapping_add(7)).collect();
        let one = ProgramInput::from_bytes(&bytes);
        let same = ProgramInput::from_bytes(&bytes);
        assert_eq!((&one.shader, one.target, one.env_seed), (&same.shader, same.target, same.env_seed));
        let mut other = bytes.clone();
        other[199] ^= 1;
        assert_ne!(ProgramInput::from_bytes(&other).env_seed, one.env_seed);
        other[0] += 1;
        assert_ne!(ProgramInput::from_bytes(&other).target, one.target);
        assert_eq!(ProgramInput::from_bytes(&[]).target, Target::default());
    }

    #[test]
    fn seeds_are_as_large_as_asked_for() {
        let mut bytes = 0;
        for seed in 0..40 {
            let input = ProgramInput::seeded(seed, 100).unwrap();
            assert!((100..400).contains(&ProgramInput::from_bytes(&input).shader.instruction_count()));
            assert_eq!(ProgramInput::seeded(seed, 100).as_ref(), Some(&input));
            bytes += input.len();
        }
        assert!((4000..20_000).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn debug_is_a_program() {
        let input = ProgramInput::from_bytes(&[3; 90]);
        assert_eq!(nir::text::read(&format!("{input:#?}")).as_ref(), Ok(&input.shader));
    }
}
