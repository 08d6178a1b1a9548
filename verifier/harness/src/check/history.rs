//! The history of a program: findings on its boundaries, for the next ones.
//!
//! The programs of a compilation have nearly the same values, branches and inputs. So the causes of proofs that failed
//! hold for the next boundary, and so does the input on which most of the program depends: a search that begins with
//! it finds more in less time. After a long search that found too little the next one is short.

use super::proof_time::FailedProofs;
use ir3_semantics::environment::env::Env;

/// The findings on the boundaries of a program.
#[derive(Default)]
pub struct History {
    /// Long proofs that failed.
    pub(super) failed_proofs: FailedProofs,
    /// The findings of searches for inputs.
    pub(super) searches: Searches,
}

/// The findings of the searches for inputs of a program.
#[derive(Default)]
pub(super) struct Searches {
    /// The environment whose run depends on most that no earlier run did, and the share of the program that this is.
    /// Only one: it is measured again at each boundary, and takes half of the work that is left for the others.
    best: Option<(f64, Env)>,
    /// The runs of the last search depend on far too little of the program.
    pub found_too_little: bool,
}

impl Searches {
    /// Adds an environment whose run depends on a share of the program that no earlier run did.
    pub fn add(&mut self, share: f64, env: &Env) {
        if self.best.as_ref().is_none_or(|(most, _)| share > *most) {
            self.best = Some((share, env.clone()));
        }
    }

    /// The environment that showed most.
    pub fn best(&self) -> Option<&Env> {
        self.best.as_ref().map(|(_, env)| env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_that_showed_most_is_kept() {
        let mut searches = Searches::default();
        for (seed, share) in [0.1, 0.4, 0.2, 0.3].into_iter().enumerate() {
            searches.add(share, &Env::from_seed(seed as u64));
        }
        assert_eq!(searches.best().map(|env| env.seed), Some(1));
    }
}
