//! What is needed in a small program, and that the checker and the machine refute its loss.

use super::*;
use crate::harness::report::instruction_text;
use ir3_compiler::ir3::text;

const PROGRAM: &str = "\
block0 {
\t0001:0000:000: \t(nop3)add.f r1.x, r0.x, c0.x
\t0002:0000:000: \tmul.f r2.x, r1.x, c0.y
\t0003:0000:000: \t(rpt5)nop
\t0004:0000:000: \trcp r3.x, r2.x
\t0005:0000:000: \t(ss)nop
\t0006:0000:000: \t(nop1)add.f r3.x, r3.x, c0.z
\t0007:0000:000: \tend r3.x
}
";

fn program() -> FinalProgram {
    FinalProgram::new(String::new(), text::read(PROGRAM).unwrap(), Target::default()).unwrap()
}

#[test]
fn what_is_needed_is_refuted_and_nothing_else() {
    let FinalProgram { code, facts, target, .. } = program();
    assert_eq!(needed::broken(&code, &target), None);
    let mut seen = Vec::new();
    for class in MutantClass::ALL {
        for mutation in Mutation::all(&code, class) {
            let mutant = mutation.apply(&code).unwrap();
            let changed = facts_of(&facts, &mutation);
            let needed = is_needed(&code, &mutant, &mutation, &changed, &target);
            let hazards = hazards::check(&mutant, &changed, &target).unwrap().hazards;
            assert_eq!(needed, !hazards.is_empty(), "{mutation:?} {}", instruction_text(&code, mutation.at));
            seen.push((class.name(), mutation.at.as_u32(), needed));
        }
    }
    let expected = [("nop", 2, true), ("rpt", 2, true), ("nopN", 0, true), ("nopN", 5, false), ("ss", 4, true)];
    assert_eq!(seen, expected);
}

#[test]
fn the_machine_refutes_them_too() {
    let FinalProgram { code, target, .. } = program();
    assert_eq!(differs(&code, &code, &target), Ok(false));
    for (class, expected) in [(MutantClass::NopN, true), (MutantClass::Nop, true), (MutantClass::Ss, true)] {
        let mutation = Mutation::all(&code, class)[0];
        let mutant = mutation.apply(&code).unwrap();
        assert_eq!(differs(&code, &mutant, &target), Ok(expected), "{mutation:?}");
    }
}
