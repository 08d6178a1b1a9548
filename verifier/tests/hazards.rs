//! The hazard checker on Mesa's own final programs.

use super::common;

use ir3_compiler::ir3::InstrFlags;
use ir3_compiler::target::Target;
use ir3_harness::finals::{FinalProgram, finals};
use ir3_prove::hazards;
use ir3_prove::hazards::HazardKind;
use std::path::Path;

fn target(path: &Path) -> Target {
    let folder = path.parent().and_then(Path::file_name).unwrap().to_str().unwrap();
    Target::by_name(folder.split('-').next().unwrap()).unwrap()
}

/// Known hazards in Mesa's programs (docs/hazards.md): flags of a jump after a barrier are dropped if the jump is
/// removed.
fn is_known(path: &Path, kind: HazardKind) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    match kind {
        HazardKind::AccessAfterBarrier(_) => name.contains("particle_calculate"),
        _ => false,
    }
}

#[test]
fn mesas_final_programs_have_no_hazards() {
    let Some(paths) = common::logs() else { return };
    let (mut programs, mut releases, mut instructions, mut known, mut found) = (0, 0, 0, 0, Vec::new());
    // A sample: `ir3-equiv hazards` takes all of them.
    for path in paths.iter().step_by(7) {
        for FinalProgram { name, code, facts, target, .. } in finals(path, Some(target(path))).unwrap() {
            // The words next to each text have `(ei)` and `(eq)`. (They have more than the text in some compute
            // shaders of a7xx, which release nothing.)
            let reads = code.instrs.values().any(|instr| instr.data.opcode.reads_varying());
            assert!(!(reads && facts.releases_unknown), "{name}");
            let release = code.instrs.values().any(|instr| instr.data.flags.contains(InstrFlags::EI));
            releases += usize::from(release);
            let report = hazards::check(&code, &facts, &target).unwrap();
            programs += 1;
            instructions += report.instructions;
            for hazard in report.hazards {
                if is_known(path, hazard.kind) {
                    known += 1;
                } else {
                    found.push(format!("{name}: {hazard}"));
                }
            }
        }
    }
    println!("{programs} programs, {instructions} instructions, {known} known hazards");
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(programs > 90, "only {programs}");
    assert!(releases > 15, "only {releases}");
}
