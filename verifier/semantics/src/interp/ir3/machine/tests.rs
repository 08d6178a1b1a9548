//! Tests of the results of the machine, and of the values that it makes undefined.

use super::*;
use crate::interp::Outcome;
use crate::machine::program_of_blocks;

fn code(blocks: &[(&[&str], &str)]) -> Code {
    Code::from_program(&program_of_blocks(blocks)).unwrap()
}

fn run_with(code: &Code, completion: Completion) -> Outcome {
    let machine = Machine::new(code, &Target::default(), Start::Arbitrary(3)).unwrap_or_else(|error| panic!("{error}"));
    machine.run(&Env::from_seed(1), completion, 1000, &mut Scratch::new())
}

fn run(code: &Code) -> Outcome {
    run_with(code, Completion::Latest)
}

/// Straight-line code whose output is `r4.x`.
fn straight(lines: &[&str]) -> Code {
    let lines: Vec<&str> = lines.iter().copied().chain(["(ss)(sy)end r4.x"]).collect();
    code(&[(&lines, "")])
}

/// Checks that both programs are equal if waits are right, and that the second differs from the first.
#[track_caller]
fn differs(right: &[&str], wrong: &[&str]) {
    let (right, wrong) = (straight(right), straight(wrong));
    let expected = run(&right);
    assert!(matches!(expected.end, End::Finished), "{:?}", expected.end);
    expected.compare(&run(&right)).unwrap();
    assert!(expected.compare(&run(&wrong)).is_err(), "no difference");
    // In the order of completion that is best, only slots matter.
    let best = run_with(&right, Completion::Earliest);
    expected.compare(&best).unwrap();
    expected.compare(&run_with(&right, Completion::Random(5))).unwrap();
}

#[test]
fn results_of_the_alu_take_slots() {
    let add = "add.u r1.x, r0.x, r0.y";
    let user = "add.u r4.x, r1.x, r0.z";
    differs(&[add, "(rpt2)nop", user], &[add, "(rpt1)nop", user]);
    differs(&["(nop3)add.u r1.x, r0.x, r0.y", user], &["(nop2)add.u r1.x, r0.x, r0.y", user]);
    differs(&[add, "(rpt5)nop", "rcp r4.x, r1.x"], &[add, "(rpt4)nop", "rcp r4.x, r1.x"]);
    // A value without a use may be read early.
    let code = straight(&["mov.u32u32 r4.x, r0.x", add, "add.u r2.x, r1.x, r0.z"]);
    run(&straight(&["mov.u32u32 r4.x, r0.x"])).compare(&run(&code)).unwrap();
}

#[test]
fn results_of_other_units_wait_for_flags() {
    let (root, user) = ("sqrt r1.x, r0.x", "mov.u32u32 r4.x, r1.x");
    differs(&[root, "(ss)mov.u32u32 r4.x, r1.x"], &[root, user]);
    differs(&[root, "(ss)mov.u32u32 r4.x, r1.x"], &[root, "(sy)mov.u32u32 r4.x, r1.x"]);
    // In the best order the result is available at once.
    let early = straight(&[root, user]);
    run(&straight(&[root, "(ss)mov.u32u32 r4.x, r1.x"])).compare(&run_with(&early, Completion::Earliest)).unwrap();
}

#[test]
fn late_results_and_late_reads_destroy() {
    // The result is written after the writes in the meantime.
    differs(&["sqrt r4.x, r0.x", "(ss)mov.u32u32 r4.x, r0.y"], &["sqrt r4.x, r0.x", "mov.u32u32 r4.x, r0.y"]);
    // The source is read after it has been overwritten.
    differs(&["sqrt r4.x, r0.x", "(ss)mov.u32u32 r0.x, r0.y"], &["sqrt r4.x, r0.x", "mov.u32u32 r0.x, r0.y"]);
}

#[test]
fn shared_registers_are_those_of_the_wave() {
    let (mov, user) = ("mov.u32u32 sr48.x, c0.x", "mov.u32u32 r4.x, sr48.x");
    differs(&[mov, "(ss)mov.u32u32 r4.x, sr48.x"], &[mov, user]);
    let (add, scalar) = ("add.u sr48.y, sr48.x, c0.y", "add.u sr48.x, sr48.y, c0.x");
    let wait = "(ss)mov.u32u32 r4.x, sr48.x";
    // The scalar ALU does not wait for itself.
    let code = straight(&[mov, add, scalar, wait]);
    assert!(matches!(run(&code).end, End::Finished));
    run(&code).compare(&run_with(&code, Completion::Earliest)).unwrap();
}

/// `r4.x` is 1 in lanes where `r0.x < r0.y`, else 2; then 16 is added.
fn diamond(marks: [&str; 2], shift: i32) -> Code {
    let one = "imm[0.000000,1,0x1]";
    let compare = "cmps.u.ge pp0.x, r0.x, r0.y";
    let (first, second) =
        (format!("mov.u32u32 r4.x, {one}"), format!("{}mov.u32u32 r4.x, imm[0.000000,2,0x2]", marks[0]));
    let join = format!("{}(rpt2)nop", marks[1]);
    let mut code = code(&[
        (&[compare, "(rpt5)nop", "br pp0.x target=block2"], "block2, block1 (div)"),
        (&[&first, "jump target=block3"], "block3"),
        (&[&second], "block3"),
        (&[&join, "add.u r4.x, r4.x, imm[0.000000,16,0x10]", "end r4.x"], ""),
    ]);
    for instr in code.instrs.values_mut() {
        instr.target = instr.target.map(|to| ir3_compiler::machine::Ip::from_u32((to.as_u32() as i32 + shift) as u32));
    }
    code
}

#[test]
fn lanes_diverge_and_reconverge() {
    let both = run(&diamond(["(jp)", "(jp)"], 0));
    assert!(matches!(both.end, End::Finished), "{:?}", both.end);
    // Without branches.
    let select = straight(&[
        "cmps.u.lt r1.x, r0.x, r0.y",
        "mov.u32u32 r2.x, imm[0.000000,17,0x11]",
        "mov.u32u32 r2.y, imm[0.000000,18,0x12]",
        "(rpt2)nop",
        "sel.b32 r4.x, r2.x, r1.x, r2.y",
    ]);
    run(&select).compare(&both).unwrap();
    for marks in [["", "(jp)"], ["(jp)", ""]] {
        let outcome = run(&diamond(marks, 0));
        assert!(
            matches!(outcome.end, End::Undefined { reason: UndefinedReason::Reconvergence, .. }),
            "{:?}",
            outcome.end
        );
    }
    // Branch targets determine the executed code.
    assert!(both.compare(&run(&diamond(["(jp)", "(jp)"], 1))).is_err());
    assert!(both.compare(&run(&diamond(["(jp)", "(jp)"], -1))).is_err());
}

#[test]
fn loops_end_lane_by_lane() {
    // r4.x counts to r0.x & 7; lanes leave one after the other.
    let code = code(&[
        (&["and.b r1.x, r0.x, imm[0.000000,7,0x7]", "mov.u32u32 r4.x, imm[0.000000,0,0x0]", "(rpt2)nop"], "block1"),
        (&["cmps.u.ge pp0.x, r4.x, r1.x", "(rpt5)nop", "br pp0.x target=block3"], "block3, block2 (div)"),
        (&["add.u r4.x, r4.x, imm[0.000000,1,0x1]", "(rpt2)nop", "jump target=block1"], "block1"),
        (&["(jp)(rpt2)nop", "end r4.x"], ""),
    ]);
    let mask = straight(&["and.b r4.x, r0.x, imm[0.000000,7,0x7]"]);
    run(&mask).compare(&run(&code)).unwrap();
}

#[test]
fn predication_makes_lanes_inactive() {
    let code = code(&[
        (&["cmps.u.lt pp0.x, r0.x, r0.y", "(rpt5)nop", "predt pp0.x target=block1"], "block1, block2 (div)"),
        (&["mov.u32u32 r4.x, imm[0.000000,17,0x11]", "predf pp0.x target=block3"], "block3"),
        (&["(rpt4)nop", "mov.u32u32 r4.x, imm[0.000000,18,0x12]", "prede", "(rpt6)nop"], "block3"),
        (&["end r4.x"], ""),
    ]);
    run(&diamond(["(jp)", "(jp)"], 0)).compare(&run(&code)).unwrap();
}

#[test]
fn the_wave_goes_on_where_predication_leaves_no_lane() {
    // No lane has r0.x < r0.x.
    let code = code(&[
        (
            &["mov.u32u32 r4.x, r0.y", "cmps.u.lt pp0.x, r0.x, r0.x", "(rpt5)nop", "predt pp0.x target=block1"],
            "block1, block2 (div)",
        ),
        (&["mov.u32u32 r4.x, r0.z", "prede", "(rpt6)nop"], "block2"),
        (&["end r4.x"], ""),
    ]);
    run(&straight(&["mov.u32u32 r4.x, r0.y"])).compare(&run(&code)).unwrap();
}

#[test]
fn a_hazard_ends_a_run_if_wanted() {
    let early = straight(&["add.u r1.x, r0.x, r0.y", "add.u r2.x, r1.x, r0.z", "mov.u32u32 r4.x, r0.x"]);
    assert!(matches!(run(&early).end, End::Finished));
    let machine = Machine::new(&early, &Target::default(), Start::Arbitrary(3)).unwrap().with_hazards(Hazards::End);
    let end = machine.run(&Env::from_seed(1), Completion::Latest, 1000, &mut Scratch::new()).end;
    let End::Undefined { reason: UndefinedReason::ReadBeforeResult, origin, .. } = end else { panic!("{end:?}") };
    assert_eq!(origin.instr, 1);
}

/// The reason for which a run of straight code ends, if hazards end it.
fn broken(lines: &[&str]) -> Option<UndefinedReason> {
    let machine = Machine::new(&straight(lines), &Target::default(), Start::Arbitrary(3)).unwrap();
    let outcome =
        machine.with_hazards(Hazards::End).run(&Env::from_seed(1), Completion::Latest, 1000, &mut Scratch::new());
    match outcome.end {
        End::Undefined { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn what_is_released_is_not_used_any_more() {
    let input = "bary.f r1.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3)";
    let ends = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    assert_eq!(broken(&[input, ends]), None);
    assert_eq!(broken(&[ends, input]), Some(UndefinedReason::Varyings));
    let local = "ldlv r1.x, imm[0.000000,1,0x1], imm[0.000000,1,0x1]";
    assert_eq!(broken(&[local, &format!("(ss){ends}")]), None);
    assert_eq!(broken(&[local, ends]), Some(UndefinedReason::Varyings));
    // The release is after the preamble.
    assert_eq!(broken(&["(ss)(sy)shpe", ends]), None);
    assert_eq!(broken(&[ends, "(ss)(sy)shpe"]), Some(UndefinedReason::Varyings));
    let (exchange, last) = ("quad_shuffle.horiz (u32)(x)r1.x, r0.x", "nop // {flags=eq}");
    assert_eq!(broken(&[exchange, last]), None);
    assert_eq!(broken(&[last, exchange]), Some(UndefinedReason::HelperLanes));
    // Their operands are ready: since 26, Mesa ends helper lanes before them.
    for reader in ["sam (f32)(x)r1.x, r0.x (wrmask=0x3), s#0, t#0", "dsx (f32)(x)r1.x, r0.x"] {
        assert_eq!(broken(&[last, reader]), None);
    }
    let address = "mov.s16s16 hr61.x, hr8.x";
    let reads = ["(ul)mov.f32f32 r2.x, c<a0.x + 4>, hr61.x", "mov.f32f32 r3.x, c<a0.x + 4>, hr61.x"];
    assert_eq!(broken(&[address, "(rpt5)nop", reads[1], reads[0]]), None);
    assert_eq!(broken(&[address, "(rpt5)nop", reads[0], reads[1]]), Some(UndefinedReason::AddressReleased));
}

#[test]
fn constants_are_there_before_they_are_read() {
    let (store, read) = ("stc imm[0.000000,16,0x10], r0.x", "mov.f32f32 r1.x, c4.x");
    assert_eq!(broken(&[store, "(ss)(sy)shpe", read]), None);
    assert_eq!(broken(&["shpe", read]), None);
    for end in ["shpe", "(ss)shpe", "(sy)shpe"] {
        assert_eq!(broken(&[store, end, read]), Some(UndefinedReason::Constants), "{end}");
    }
    assert_eq!(broken(&[store, read, "(ss)(sy)shpe"]), Some(UndefinedReason::Constants));
    // Another word.
    assert_eq!(broken(&[store, "mov.f32f32 r1.x, c5.x", "(ss)(sy)shpe"]), None);
    // A word that is written later.
    let other = "stc imm[0.000000,20,0x14], r0.x";
    assert_eq!(broken(&[other, read, store, "(ss)(sy)shpe"]), None);
    assert_eq!(broken(&[other, store, read, "(ss)(sy)shpe"]), Some(UndefinedReason::Constants));
}

/// An undefined register is exchanged with another one, with an instruction between the steps.
#[test]
fn exchanges_may_stand_apart() {
    let steps = ["xor.b r0.x, r0.x, r20.x", "xor.b r20.x, r0.x, r20.x", "xor.b r0.x, r0.x, r20.x"];
    let between = "(rpt2)nop";
    let lines =
        [steps[0], between, steps[1], "mov.u32u32 r2.x, r0.y", between, steps[2], between, "mov.u32u32 r4.x, r20.x"];
    let lines: Vec<&str> = lines.into_iter().chain(["end r4.x"]).collect();
    let mut exchange = code(&[(&lines, "")]);
    exchange.interface.inputs.push(ir3_compiler::machine::EntryRegister {
        input: Some(ir3_compiler::ir3::InputKind::System(ir3_compiler::ir3::SystemValue::VertexId)),
        dst: ir3_compiler::ir3::Dst::new(
            ir3_compiler::ir3::Place::Reg(ir3_compiler::ir3::PhysReg(0)),
            ir3_compiler::ir3::RegClass::FULL,
            ir3_compiler::ir3::WriteMask::SCALAR,
        ),
    });
    let machine = Machine::new(&exchange, &Target::default(), Start::Interface).unwrap();
    let outcome = machine.run(&Env::from_seed(1), Completion::Latest, 1000, &mut Scratch::new());
    assert_eq!(outcome.outputs.rows()[0].poison & outcome.lanes, 0);
}

#[test]
fn clusters_leave_a_loop_one_after_the_other() {
    assert_eq!(waves::go_on_at_getlast(u64::MAX), !0x7f);
    assert_eq!(waves::go_on_at_getlast(0x0f00), 0x0800);
    assert_eq!(waves::go_on_at_getlast(1 << 63), 1 << 63);
    assert_eq!(waves::go_on_at_getlast(0), 0);
}

#[test]
fn code_that_is_left_is_undefined() {
    let mut code = straight(&["nop"]);
    code.instrs[ir3_compiler::machine::Ip::from_u32(1)].data.opcode = Opcode::Nop;
    code.instrs[ir3_compiler::machine::Ip::from_u32(1)].data.attrs = ir3_compiler::ir3::Attrs::None;
    assert!(matches!(run(&code).end, End::Undefined { reason: UndefinedReason::LeavesCode, .. }));
}

#[test]
fn lanes_of_quads_do_not_wait_for_each_other() {
    let sample = |name: &str| format!("{name} (f32)(x)r4.x, r0.x (wrmask=0xff), s#0, t#0");
    let lines = ["samgp0", "samgp1", "(sy)samgp2", "(sy)samgp3"].map(sample);
    let with = |last: &str| -> Vec<String> { lines.iter().cloned().chain([last.to_owned()]).collect() };
    let (waits, reads) = (with("(sy)add.f r4.x, r4.x, c0.x"), with("add.f r4.x, r4.x, c0.x"));
    let [waits, reads] = [&waits, &reads].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    differs(&waits, &reads);
    // The same lane twice: the first result may come last.
    let other = "samgp1 (f32)(x)r4.x, r2.x (wrmask=0xff), s#0, t#0";
    let first = sample("samgp1");
    differs(&[&first, &format!("(sy){other}")], &[&first, other]);
}
