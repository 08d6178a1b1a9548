//! The substitute for Z3 in a build without the feature `z3`: no query is solved.
//!
//! A proof then succeeds if the terms of both programs become equal when they are built, or a goal is a constant.

use super::{Answer, Budget, Floats, Query, Reason, Solver};
use ir3_semantics::terms::Terms;

/// Z3, which was left out of this build. All queries that need a solver are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Z3 {
    /// The encoding of float operations.
    pub floats: Floats,
}

/// The queries of one proof.
pub struct Session(());

impl Session {
    /// Begins a session, which ends when it is dropped.
    pub fn begin() -> Self {
        Self(())
    }
}

impl Z3 {
    /// The reason why this build has no solver, for verdicts and messages.
    pub const LEFT_OUT: Option<&'static str> = Some("built without the feature z3");
}

impl Solver for Z3 {
    fn solve(&mut self, terms: &Terms, query: &Query, _: &Budget) -> Answer {
        query.plain_answer(terms).unwrap_or(Answer::Unknown(Reason::LeftOut))
    }
}
