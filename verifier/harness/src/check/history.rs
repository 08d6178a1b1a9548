//! The history of a program: findings on its boundaries, for the next ones.
//!
//! The programs of a compilation have nearly the same values, branches and inputs. So the causes of proofs that failed
//! hold for the next boundary, and a search for inputs that found far too little finds too little again: it is short.

use super::proof_time::FailedProofs;

/// The findings on the boundaries of a program.
#[derive(Default)]
pub struct History {
    /// Long proofs that failed.
    pub(super) failed_proofs: FailedProofs,
    /// The runs of the last search for inputs depend on far too little of the program.
    pub(super) found_too_little: bool,
}
