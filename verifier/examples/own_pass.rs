//! A pass of one's own under test: `cargo run --example own_pass`.
//!
//! The pass runs after the optimisations of the backend, as a stage of its own. Generated programs are compiled with it
//! and compared at every stage; what fails is written as a bundle, reduced, and grouped by cause, as for the stages of
//! the backend.

use ir3_verifier::prelude::*;
use std::{error::Error, path::Path, sync::atomic::AtomicBool};

/// Puts the operand of an addition that was computed first in front. The planted bug: subtractions count as additions.
fn order_operands(program: &mut ir3::Program) {
    for data in program.instrs.values_mut() {
        if matches!(data.opcode, ir3::Opcode::AddU | ir3::Opcode::SubU) && data.srcs[0].value() > data.srcs[1].value() {
            data.srcs.swap(0, 1);
        }
    }
}

/// The pass, by the name that reports have.
pub const OWN_PASS: OwnPass = OwnPass::new("order-operands", order_operands);

/// Finds failures of the pass in generated programs, writes their bundles into a folder, and reduces and groups these.
///
/// # Errors
/// If a bundle cannot be written.
pub fn test_own_pass(folder: &Path) -> Result<Triage, Box<dyn Error>> {
    let own_pass = Some(OWN_PASS);
    let campaign = Campaign { options: Options { own_pass, ..Options::default() }, jobs: 1, ..Campaign::default() };
    let (mut bundles, never) = (Vec::new(), AtomicBool::new(false));
    let mut found = |finding: &Finding<'_>| {
        if finding.failed {
            bundles.extend(campaign.case(finding).map(|case| write_bundle(folder, &case)));
        }
    };
    campaign.run(&never, &mut found, &mut |_| ());
    let bundles = bundles.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(triage(&bundles, &TriageOptions { own_pass, ..TriageOptions::default() }, &never, &|_| ()))
}

#[allow(dead_code, reason = "a test runs it on a folder of its own")]
fn main() -> Result<(), Box<dyn Error>> {
    for group in test_own_pass(Path::new("own-pass-failures"))?.groups {
        let case = read_bundle_with(&group.folder, Some(OWN_PASS))?;
        println!("{}: {}\n{}", case.symptom.stage, case.symptom.message, nir::text::write(&case.program));
    }
    Ok(())
}
