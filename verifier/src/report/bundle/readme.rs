//! `README.md`: the report, as one would write it into an issue tracker.

use super::{Case, Evidence};
use ir3_compiler::nir;
use std::fmt::Write as _;

/// The text of `README.md`.
pub(super) fn write(case: &Case, evidence: &Evidence) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# {}\n", case.symptom.failure);
    let _ = writeln!(text, "{}\n", case.symptom.message);
    if evidence.symptom.as_ref().map(|symptom| &symptom.failure) != Some(&case.symptom.failure) {
        let _ = writeln!(text, "It did not fail like this when it was run again for this report.\n");
    }
    let _ = writeln!(text, "- GPU: {}\n- ir3-equiv {}\n", case.target.name, env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "To see it again, in this folder:\n\n    ir3-equiv verify .\n");
    let _ = writeln!(text, "```\n{}```", nir::text::write(&case.program));
    text
}
