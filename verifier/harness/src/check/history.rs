//! The history of a program: findings on its boundaries, for the next ones.
//!
//! The programs of a compilation have nearly the same values, branches and inputs. So the causes of proofs that failed
//! hold for the next boundary, and so do the inputs on which much of the program depends: a search that begins with
//! those of the last one finds more in less time. After a long search that found too little the next one is short.

use super::proof_time::FailedProofs;
use ir3_semantics::environment::env::Env;

/// The most environments that are kept. Each is measured again at the next boundary, and takes half of the work that is
/// left for the others.
const MOST_KEPT: usize = 3;

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
    /// The environments whose runs depend on sites that no earlier run did, and the share of the program that these are;
    /// the largest share first.
    useful: Vec<(f64, Env)>,
    /// The runs of the last search depend on far too little of the program.
    pub found_too_little: bool,
}

impl Searches {
    /// Adds an environment whose run depends on a share of the program that no earlier run did.
    pub fn add(&mut self, share: f64, env: &Env) {
        self.useful.push((share, env.clone()));
        self.useful.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        self.useful.truncate(MOST_KEPT);
    }

    /// The environments that showed most.
    pub fn envs(&self) -> impl Iterator<Item = &Env> {
        self.useful.iter().map(|(_, env)| env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environments_that_showed_most_are_kept() {
        let mut searches = Searches::default();
        for (seed, share) in [0.1, 0.4, 0.2, 0.3].into_iter().enumerate() {
            searches.add(share, &Env::from_seed(seed as u64));
        }
        assert_eq!(searches.envs().map(|env| env.seed).collect::<Vec<_>>(), [1, 3, 2]);
    }
}
