//! Bytes to a program, the GPU that it is compiled for, and the environment that it runs in.

use crate::check::Checker;
use crate::generate::{self, Features};
use crate::semantics::env::{Env, hash, mix};
use arbitrary::{Arbitrary, Unstructured};
use ir3_compiler::nir::{self, Shader};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;

/// The GPUs that inputs choose from by their first byte: one of each kind that selection or register allocation tells
/// apart. The first is the default.
pub const GPUS: [&str; 12] =
    ["a660", "a320", "a420", "a530", "a610", "a618", "a640", "a650", "a635", "a702", "a730", "a750"];

static TARGETS: LazyLock<Vec<Target>> =
    LazyLock::new(|| GPUS.iter().filter_map(|name| Target::by_name(name).ok()).collect());

/// A GPU by the first byte of an input.
pub(super) fn gpu(byte: u8) -> Target {
    TARGETS[usize::from(byte) % TARGETS.len()]
}

/// A random program, a GPU and an environment: the input of the targets that begin with nir.
///
/// The first byte is the GPU, the others are the generator's ([`generate::from_bytes`]). The environment's seed is a
/// hash of all of them.
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
    /// The input that a byte string stands for. The same function makes an artifact of `cargo fuzz` a program again
    /// (`ir3-equiv reduce`).
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (&first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let target = gpu(first);
        let shader = generate::from_bytes(rest, None, Features::of(&target)).shader;
        let mut env_seed = hash(&[bytes.len() as u64]);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            env_seed = mix(env_seed, u64::from_le_bytes(word));
        }
        Self { shader, target, env_seed }
    }

    /// The environment.
    pub fn env(&self) -> Env {
        Env::from_seed(self.env_seed)
    }
}

impl<'a> Arbitrary<'a> for ProgramInput {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self::from_bytes(u.bytes(u.len())?))
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

/// A checker whose buffers are those of the last input.
pub(super) fn with_checker<T>(target: &Target, options: Options, work: impl FnOnce(&mut Checker) -> T) -> T {
    CHECKER.with_borrow_mut(|checker| {
        checker.retarget(*target, options);
        work(checker)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_exist_and_cover_the_generations() {
        assert_eq!(TARGETS.len(), GPUS.len());
        for target in ir3_compiler::target::ALL {
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
    fn debug_is_a_program() {
        let input = ProgramInput::from_bytes(&[3; 90]);
        assert_eq!(nir::text::read(&format!("{input:#?}")).as_ref(), Ok(&input.shader));
    }
}
