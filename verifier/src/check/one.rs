//! One input of a fuzzer.

use super::{Checker, Verdict};
use crate::generate::{self, Features};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use std::cell::RefCell;

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::new(Checker::new(Target::default(), Options::default()));
}

/// Makes a program of the bytes, takes it through the compiler for the default GPU, and compares every boundary.
/// Returns whether the input is worth keeping: the program was not refused.
///
/// # Panics
/// When a boundary is refuted, with the stage, the difference, and the program.
pub fn fuzz_one(bytes: &[u8]) -> bool {
    let generated = generate::from_bytes(bytes, None, Features::ALL);
    let report =
        CHECKER.with_borrow_mut(|checker| checker.program_with(&generated.shader, &[bytes.len() as u64], None));
    for (stage, verdict, _) in &report.boundaries {
        if let Verdict::Refuted(refutation) = verdict {
            let text = ir3_compiler::nir::text::write(&generated.shader);
            panic!("{stage} refuted: {}\n{text}", refutation.difference);
        }
    }
    report.refusal.is_none()
}
