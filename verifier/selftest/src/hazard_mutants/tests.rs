//! Tests of the changes that matter in a small program, and that the checker and the machine refute them.

use super::*;
use ir3_compiler::ir3::text;
use ir3_harness::finals::instruction_text;
use ir3_semantics::machine::program_of_blocks;

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
    assert_eq!(compare_runs(&code, &code, &target, 0..4, None), Ok(false));
    for (class, expected) in [(MutantClass::NopN, true), (MutantClass::Nop, true), (MutantClass::Ss, true)] {
        let mutation = Mutation::all(&code, class)[0];
        let mutant = mutation.apply(&code).unwrap();
        assert_eq!(compare_runs(&code, &mutant, &target, 0..4, None), Ok(expected), "{mutation:?}");
    }
}

/// A loop of four iterations over values that are written before it, and an instruction without a reader.
const LOOP: [(&[&str], &str); 3] = [
    (&["mov.u32u32 r1.x, c1.x", "mov.u32u32 r2.x, c1.y", "mov.u32u32 r4.x, c2.x", "mov.u32u32 r5.x, c2.x"], "block1"),
    (
        &[
            "add.s r1.x, r1.x, c0.y",
            "(nop2)add.s r3.x, r2.x, c0.y",
            "cmps.s.lt pp0.x, r1.x, c0.x",
            "(rpt5)nop",
            "br pp0.x target=block1",
        ],
        "block1, block2 (con)",
    ),
    (&["mov.u32u32 r5.x, c2.y", "(rpt2)nop", "end r1.x, r3.x, r4.x"], ""),
];

#[test]
fn what_is_skipped_or_added_matters_if_it_is_read() {
    let program = FinalProgram::new(String::new(), program_of_blocks(&LOOP), Target::default()).unwrap();
    let matters = |branch: Ip, to: usize, further: bool| {
        let mut code = program.code.clone();
        code.instrs[branch].target = Some(Ip::new(to));
        let mutation = Mutation { class: MutantClass::Target, at: branch, further };
        let mutant = mutation.apply(&code).unwrap();
        is_needed(&code, &mutant, &mutation, &program.facts, &program.target)
    };
    let branch = Ip::new(8);
    // The counter; a value that is recomputed unchanged; one that is not read; a nop.
    assert!(matters(branch, 4, true));
    assert!(!matters(branch, 5, true));
    assert!(!matters(branch, 9, true));
    assert!(!matters(branch, 10, true));
    // Writes before the loop: repeating the start of the counter changes its value, repeating a constant does not.
    assert!(matters(branch, 1, false));
    assert!(!matters(branch, 2, false));
    assert!(!matters(branch, 3, false));
    assert!(!matters(branch, 4, false));
}

#[test]
fn what_comes_to_the_same_does_not_matter() {
    let lines: [(&[&str], &str); 4] = [
        (
            &["mov.u32u32 r1.x, c0.x", "cmps.s.lt pp0.x, c0.z, c0.w", "(rpt5)nop", "br !pp0.x target=block2"],
            "block1, block2 (con)",
        ),
        (&["add.u r2.x, c0.x, c0.y", "mov.u32u32 r3.x, c0.x", "jump target=block3"], "block3"),
        (&["mov.u32u32 r3.x, c0.y", "add.u r2.x, c0.x, c0.y"], "block3"),
        (&["(rpt2)nop", "end r1.x, r2.x, r3.x"], ""),
    ];
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
    let paths = Paths::new(&program.code, &program.target);
    let meaning = Meaning::new(&paths);
    // The jump after the first arm: the sum of the other arm is the same, the value moved there is not.
    assert!(!meaning.extra_matters(6, 8));
    assert!(meaning.extra_matters(6, 7));
}

#[test]
fn inverted_comparisons_lead_to_other_paths() {
    let lines: [(&[&str], &str); 3] = [
        (&["cmps.s.lt pp0.x, c0.x, c0.x", "(rpt5)nop", "br pp0.x target=block2"], "block1, block2"),
        (&["mov.u32u32 r1.x, c1.y", "(rpt2)nop"], "block2"),
        (&["add.s r1.x, r1.x, c0.y", "(rpt2)nop", "end r1.x"], ""),
    ];
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
    let mutation = Mutation { class: MutantClass::Target, at: Ip::new(2), further: true };
    assert_eq!(differs(&program.code, &mutation, &program.target), Ok(Runs::DifferInverted));
}

#[test]
fn other_immediates_show_what_a_number_absorbs() {
    // The second element is 0 before and after.
    let lines: [(&[&str], &str); 1] = [(
        &[
            "mov.u32u32 r1.y, imm[0.000000,0,0x0]",
            "(rpt2)nop",
            "(rpt1)mul.u24 r1.x (wrmask=0x3), r0.x, imm[0.000000,0,0x0]",
            "(rpt2)nop",
            "end r1.x, r1.y",
        ],
        "",
    )];
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
    let mutation = Mutation { class: MutantClass::RepeatAlu, at: Ip::new(2), further: true };
    let mutant = mutation.apply(&program.code).unwrap();
    assert_eq!(compare_runs(&program.code, &mutant, &program.target, 0..RUNS, None), Ok(false));
    assert_eq!(differs(&program.code, &mutation, &program.target), Ok(Runs::DifferInverted));
}

#[test]
fn other_operations_show_what_one_absorbs() {
    // Both elements have one bit, and it is shifted out.
    let lines: [(&[&str], &str); 1] = [(
        &[
            "mov.u32u32 r1.y, imm[0.000000,0,0x0]",
            "(rpt2)nop",
            "(rpt1)cmps.u.lt r1.x (wrmask=0x3), (r)r0.x (wrmask=0x3), c0.x",
            "(rpt2)nop",
            "(rpt1)shr.b r1.x (wrmask=0x3), (r)r1.x (wrmask=0x3), imm[0.000000,1,0x1]",
            "(rpt2)nop",
            "end r1.x, r1.y",
        ],
        "",
    )];
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
    let FinalProgram { code, target, .. } = &program;
    let mutation = Mutation { class: MutantClass::RepeatAlu, at: Ip::new(2), further: true };
    assert_eq!(compare_runs(code, &mutation.apply(code).unwrap(), target, 0..RUNS, None), Ok(false));
    let shows = |variant: u64| {
        let code = with_other_operations(code.clone(), variant);
        compare_runs(&code, &mutation.apply(&code).unwrap(), target, 0..RUNS, None) == Ok(true)
    };
    assert!((0..VARIANTS).any(shows));
    // The same code is the same, for any operations.
    for variant in 0..VARIANTS {
        let code = transparent(code, variant);
        assert_eq!(compare_runs(&code, &code, target, 0..4, None), Ok(false));
    }
}

#[test]
fn chosen_branches_lead_around_a_loop_twice() {
    // No lane enters the loop again, for any inputs: only a choice does.
    let lines: [(&[&str], &str); 3] = [
        (&["mov.u32u32 r1.x, c1.x", "mov.u32u32 r2.x, c1.y", "(rpt2)nop"], "block1"),
        (
            &["add.s r1.x, r1.x, c0.y", "cmps.s.lt pp0.x, c0.x, c0.x", "(rpt5)nop", "br pp0.x target=block1"],
            "block1, block2 (con)",
        ),
        (&["nop", "end r1.x"], ""),
    ];
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
    let FinalProgram { code, target, .. } = program;
    let mutation = Mutation { class: MutantClass::Target, at: Ip::new(6), further: true };
    let mutant = mutation.apply(&code).unwrap();
    assert_eq!(compare_runs(&code, &mutant, &target, 0..RUNS, None), Ok(false));
    assert!((0..8).any(|seed| compare_runs(&code, &mutant, &target, seed..seed + 1, Some(seed)) == Ok(true)));
    // The same code is the same, however its branches go.
    assert!((0..8).all(|seed| compare_runs(&code, &code, &target, seed..seed + 1, Some(seed)) != Ok(true)));
}

#[test]
fn a_release_must_not_come_early() {
    let input = "bary.f r1.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3)";
    let ends = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    let lines: [(&[&str], &str); 1] = [(&[input, ends, "(rpt2)nop", "end r1.x, r2.x"], "")];
    for (gpu, class, expected) in [
        ("a320", MutantClass::Release, true),
        ("a420", MutantClass::Release, true),
        ("a540", MutantClass::Release, false),
        ("a660", MutantClass::Release, false),
        ("a660", MutantClass::EarlyRelease, true),
    ] {
        let target = Target::by_name(gpu).unwrap();
        let program = FinalProgram::new(String::new(), program_of_blocks(&lines), target).unwrap();
        let [mutation] = Mutation::all(&program.code, class)[..] else { panic!("one place") };
        let mutant = mutation.apply(&program.code).unwrap();
        assert_eq!(needed::broken(&program.code, &target), None);
        assert_eq!(is_needed(&program.code, &mutant, &mutation, &program.facts, &target), expected, "{gpu}");
        let hazards = hazards::check(&mutant, &program.facts, &target).unwrap().hazards;
        assert_eq!(!hazards.is_empty(), expected, "{gpu}");
    }
}

#[test]
fn no_lane_ends_before_varyings_are_released() {
    let ends = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    let lines: [(&[&str], &str); 1] = [(&[ends, "(rpt5)nop", "kill pp0.x", "(rpt2)nop", "end r2.x"], "")];
    let target = Target::by_name("a660").unwrap();
    let program = FinalProgram::new(String::new(), program_of_blocks(&lines), target).unwrap();
    let [mutation] = Mutation::all(&program.code, MutantClass::LateRelease)[..] else { panic!("one place") };
    let mutant = mutation.apply(&program.code).unwrap();
    assert_eq!(needed::broken(&program.code, &target), None);
    assert!(is_needed(&program.code, &mutant, &mutation, &program.facts, &target));
    let hazards = hazards::check(&mutant, &program.facts, &target).unwrap().hazards;
    assert_eq!(hazards.iter().map(|hazard| hazard.kind.name()).collect::<Vec<_>>(), ["kill-before-release"]);
}

#[test]
fn a_lost_repetition_matters_unless_it_keeps_its_register() {
    for (line, expected) in [
        ("(rpt1)sel.b32 r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3), r2.x, r0.y", false),
        ("(rpt1)sel.b32 r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3), r2.x, r0.z", true),
        ("(rpt1)min.u r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3)", false),
        ("(rpt1)min.u r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3), r0.x", true),
        ("(rpt1)add.u r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3), (r)r0.x (wrmask=0x3)", true),
    ] {
        let lines: [(&[&str], &str); 1] = [(&[line, "(rpt2)nop", "end r0.x, r0.y"], "")];
        let program = FinalProgram::new(String::new(), program_of_blocks(&lines), Target::default()).unwrap();
        let paths = Paths::new(&program.code, &program.target);
        assert_eq!(Meaning::new(&paths).last_matters(0), expected, "{line}");
    }
}
