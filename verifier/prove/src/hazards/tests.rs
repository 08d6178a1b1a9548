//! For each class of hazards, a program that has it and the same one without it; and combinations of hazards.

use super::*;
use ir3_compiler::ir3::{Dst, InstrData, Opcode, PhysReg, Place, RegClass, WriteMask};
use ir3_compiler::target::Generation;
use ir3_semantics::machine::arrays::Side;
use ir3_semantics::machine::program_of_blocks as blocks;

pub(super) fn report(program: &Program, gpu: &str) -> HazardReport {
    let code = Code::from_program(program).unwrap_or_else(|error| panic!("{error}"));
    let target = Target::by_name(gpu).unwrap();
    check(&code, &Facts::of_program(program), &target).unwrap_or_else(|error| panic!("{error}"))
}

/// The kinds of hazards of straight-line code.
pub(super) fn kinds(lines: &[&str], gpu: &str) -> Vec<HazardKind> {
    let mut lines = lines.to_vec();
    lines.push("end");
    report(&blocks(&[(&lines, "")]), gpu).hazards.iter().map(|hazard| hazard.kind).collect()
}

/// Checks that the first program has just this hazard, and the second has none.
#[track_caller]
pub(super) fn pair(gpu: &str, kind: HazardKind, wrong: &[&str], right: &[&str]) {
    assert_eq!(kinds(wrong, gpu), [kind], "{wrong:?}");
    assert_eq!(kinds(right, gpu), [], "{right:?}");
}

pub(super) const IMM: &str = "imm[0.000000,0,0x0]";

#[test]
fn the_alu_reads_its_results_after_three_slots() {
    let add = "add.f r1.x, r0.x, c0.x";
    let user = "mul.f r2.x, r1.x, c0.x";
    let early = |missing| HazardKind::EarlyRead { missing };
    pair("a660", early(1), &[add, "(rpt1)nop", user], &[add, "(rpt2)nop", user]);
    pair("a660", early(3), &[add, user], &["(nop3)add.f r1.x, r0.x, c0.x", user]);
    // The third source is read two slots later.
    let third = "mad.f32 r2.x, c0.x, r0.y, r1.x";
    pair("a660", early(1), &[add, third], &[add, "nop", third]);
    let first = "mad.f32 r2.x, r1.x, r0.y, r0.z";
    pair("a660", early(2), &[add, "nop", first], &[add, "(rpt2)nop", first]);
    // `sel` is no multiply-add.
    let select = "sel.b32 r2.x, c0.x, r0.y, r1.x";
    pair("a660", early(2), &[add, "nop", select], &[add, "(rpt2)nop", select]);
}

/// The slots of a7xx are one less each; a multiply-add reads its third source one slot late there.
#[test]
fn a7xx_waits_for_fewer_slots() {
    let early = |missing| HazardKind::EarlyRead { missing };
    let (add, compare) = ("add.f r1.x, r0.x, c0.x", "cmps.f.lt pp0.x, r0.x, c0.x");
    for (producer, user, nops) in [
        (add, "mul.f r2.x, r1.x, c0.x", ["nop", "(rpt1)nop"]),
        (add, "mad.f32 r2.x, c0.x, r0.y, r1.x", ["(nop0)", "nop"]),
        (add, "rcp r2.x, r1.x", ["(rpt3)nop", "(rpt4)nop"]),
        (add, "cov.f16f32 r2.x, hr2.y", ["(rpt3)nop", "(rpt4)nop"]),
        (compare, "kill pp0.x", ["(rpt3)nop", "(rpt4)nop"]),
    ] {
        let lines = |nops| if nops == "(nop0)" { vec![producer, user] } else { vec![producer, nops, user] };
        pair("a750", early(1), &lines(nops[0]), &lines(nops[1]));
        assert_eq!(kinds(&lines(nops[1]), "a660"), if nops[1] == "nop" { vec![] } else { vec![early(1)] }, "{user}");
        assert_eq!(kinds(&lines(nops[1]), "a830"), kinds(&lines(nops[1]), "a660"), "{user}");
    }
}

/// The scalar ALU writes `up0.x`; its readers wait with `(ss)`, and slots do not help.
#[test]
fn a_uniform_predicate_is_waited_for() {
    use failure::Flag::Ss;
    let compare = "cmps.s.eq upp0.x, sr48.x, c12.x";
    let program = |lines: [&str; 3]| {
        let list: [(&[&str], &str); 2] = [(&lines, "block1, block1"), (&["(jp)end"], "")];
        report(&blocks(&list), "a750").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    let kind = HazardKind::ReadBeforeResult(Ss);
    assert_eq!(program([compare, "(rpt5)nop", "br pp0.x target=block1"]), [kind]);
    assert_eq!(program([compare, "nop", "(ss)br pp0.x target=block1"]), []);
    // The scalar ALU has its own results without waiting.
    let add = "add.u sr48.x, sr48.y, imm[0.000000,1,0x1]";
    assert_eq!(program([add, compare, "(ss)br pp0.x target=block1"]), []);
    // The vector ALU waits for those, and its predicates come after slots.
    let other = "cmps.s.eq pp0.x, sr48.x, c12.x";
    assert_eq!(program([add, &format!("(ss){other}"), "(ss)br pp0.x target=block1"]).len(), 1);
}

#[test]
fn other_readers_wait_six_slots() {
    let early = |missing| HazardKind::EarlyRead { missing };
    let add = "add.f r1.x, r0.x, c0.x";
    for user in ["rcp r2.x, r1.x", "stg r0.y (wrmask=0x3), imm[0.000000,0,0x0], r1.x, imm[0.000000,1,0x1]"] {
        pair("a660", early(1), &[add, "(rpt4)nop", user], &[add, "(rpt5)nop", user]);
    }
    // Reads in the other width, in both directions.
    let (low, full) = ("cov.f16f32 r2.x, hr2.y", "mul.f r2.x, r1.x, c0.x");
    pair("a660", early(3), &[add, "(rpt2)nop", low], &[add, "(rpt5)nop", low]);
    let half = "add.f hr2.x, hr0.x, hc0.x";
    pair("a660", early(3), &[half, "(rpt2)nop", full], &[half, "(rpt5)nop", full]);
    // Predicates and addresses.
    let compare = "cmps.f.lt pp0.x, r0.x, c0.x";
    pair("a660", early(1), &[compare, "(rpt4)nop", "kill pp0.x"], &[compare, "(rpt5)nop", "kill pp0.x"]);
    let address = "mov.s16s16 hr61.x, hr8.x";
    let relative = "mov.f32f32 r2.x, c<a0.x + 4>, hr61.x";
    pair("a660", early(1), &[address, "(rpt4)nop", relative], &[address, "(rpt5)nop", relative]);
}

#[test]
fn repetitions_are_written_and_read_one_after_the_other() {
    let early = |missing| HazardKind::EarlyRead { missing };
    let writes = "(rpt2)add.f r1.x (wrmask=0x7), r0.x, c0.x";
    let reads = "(rpt2)mul.f r4.x (wrmask=0x7), (r)r1.x (wrmask=0x7), c0.x";
    assert_eq!(kinds(&[writes, reads], "a660"), [early(1); 3]);
    assert_eq!(kinds(&[writes, "nop", reads], "a660"), []);
    // The first element has been written two slots before the last.
    pair("a660", early(1), &[writes, "mul.f r4.x, r1.x, c0.x"], &[writes, "nop", "mul.f r4.x, r1.x, c0.x"]);
    pair(
        "a660",
        early(1),
        &[writes, "(rpt1)nop", "mul.f r4.x, r1.z, c0.x"],
        &[writes, "(rpt2)nop", "mul.f r4.x, r1.z, c0.x"],
    );
}

#[test]
fn a_repetition_does_not_read_what_an_earlier_one_writes() {
    let early = |missing| HazardKind::EarlyRead { missing };
    // Each of them one slot after the write, three of which have to pass; the last one of a register that all read.
    assert_eq!(kinds(&["(rpt2)add.u r1.y (wrmask=0x7), (r)r1.x (wrmask=0x7), c0.x"], "a660"), [early(3)]);
    assert_eq!(kinds(&["(rpt1)add.u r1.x (wrmask=0x3), r1.x, c0.x"], "a660"), [early(3)]);
    assert_eq!(kinds(&["(rpt3)add.u r1.x (wrmask=0xf), r1.x, c0.x"], "a660"), [early(1)]);
    // Its own register, one that is written later, and one of the last repetition.
    for right in [
        "(rpt2)add.u r1.x (wrmask=0x7), (r)r1.x (wrmask=0x7), c0.x",
        "(rpt2)add.u r1.x (wrmask=0x7), (r)r1.y (wrmask=0x7), c0.x",
        "(rpt1)add.u r1.x (wrmask=0x3), r1.y, c0.x",
    ] {
        assert_eq!(kinds(&[right], "a660"), [], "{right}");
    }
}

#[test]
fn results_of_other_units_are_waited_for() {
    use failure::Flag::{Ss, Sy};
    let user = "mul.f r4.x, r1.x, c0.x";
    for (flag, producer) in [
        (Ss, "rcp r1.x, r0.x"),
        (Ss, "ldl r1.x, r0.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]"),
        (Sy, "sam (f32)(x)r1.x, r0.x (wrmask=0x3), s#0, t#0"),
        (Sy, "ldp r1.x, r0.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]"),
    ] {
        let other = if flag == Ss { Sy } else { Ss };
        let with = |flag| format!("{flag}{user}");
        pair("a660", HazardKind::ReadBeforeResult(flag), &[producer, user], &[producer, &with(flag)]);
        pair("a660", HazardKind::ReadBeforeResult(flag), &[producer, &with(other)], &[producer, &with(flag)]);
        // A write may come before the result.
        let write = "mov.f32f32 r1.x, c0.x";
        let right = format!("{flag}{write}");
        pair("a660", HazardKind::WriteBeforeResult(flag), &[producer, write], &[producer, &right]);
        // The end passes the current contents to the driver.
        let mut wrong = vec![producer, "end r1.x"];
        let hazards = report(&blocks(&[(&wrong, "")]), "a660").hazards;
        assert_eq!(hazards[0].kind, HazardKind::ReadBeforeResult(flag));
        assert_eq!((hazards[0].register.as_deref(), hazards[0].producer), (Some("r1.x"), Some(Ip::from_u32(0))));
        let right = format!("{flag}end r1.x");
        wrong[1] = &right;
        assert_eq!(report(&blocks(&[(&wrong, "")]), "a660").hazards, []);
    }
}

/// Samples that are one by lanes of quads, as Mesa has them: the last two wait.
const BY_LANE: [&str; 4] = ["samgp0", "samgp1", "(sy)samgp2", "(sy)samgp3"];

#[test]
fn a_lane_of_a_quad_does_not_wait_for_the_others() {
    use failure::Flag::{Ss, Sy};
    // The destination is on top of a source: that of the lane alone.
    let sample = |name: &str| format!("{name} (f32)(x)r1.x, r0.x (wrmask=0xff), s#0, t#0");
    let lines = BY_LANE.map(sample);
    let with = |more: &[&str]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).chain(more.iter().copied()).collect();
        kinds(&lines, "a660")
    };
    assert_eq!(with(&["(sy)mul.f r4.x, r1.x, c0.x"]), []);
    // All lanes of others read and write.
    assert_eq!(with(&["mul.f r4.x, r1.x, c0.x"]), [HazardKind::ReadBeforeResult(Sy)]);
    assert_eq!(
        with(&["mov.f32f32 r1.x, c0.x"])[..],
        [HazardKind::WriteBeforeResult(Sy), HazardKind::WriteBeforeRead(Ss)]
    );
    assert_eq!(with(&["mov.f32f32 r0.y, c0.x"]), [HazardKind::WriteBeforeRead(Ss)]);
    // The same lane again, and a lane after all of them.
    let twice = |second: &str| kinds(&[&sample("samgp1"), &sample(second)], "a660");
    assert_eq!(twice("samgp0"), []);
    assert!(twice("samgp1").contains(&HazardKind::WriteBeforeResult(Sy)));
    assert_eq!(twice("(sy)samgp1"), []);
    assert!(twice("samgq").contains(&HazardKind::WriteBeforeResult(Sy)));
    // The lanes that a sample leaves out still wait for the ALU.
    let add = "add.f r1.x, r0.x, c0.x";
    let user = "(sy)mul.f r4.x, r1.x, c0.x";
    let grad = "samgp0 (f32)(x)r1.x, r2.x (wrmask=0xff), s#0, t#0";
    assert_eq!(kinds(&[add, grad, user], "a660"), [HazardKind::EarlyRead { missing: 3 }]);
    assert_eq!(kinds(&[add, "(rpt2)nop", grad, user], "a660"), []);
    // Four samples leave out none.
    let all = BY_LANE.map(|name| format!("{name} (f32)(x)r1.x, r2.x (wrmask=0xff), s#0, t#0"));
    let after = |samples: &[String]| {
        let samples = samples.iter().map(String::as_str);
        let lines: Vec<&str> = [add].into_iter().chain(samples).chain([user]).collect();
        kinds(&lines, "a660")
    };
    assert_eq!(after(&all), []);
    assert_eq!(after(&all[..3]), [HazardKind::EarlyRead { missing: 3 }]);
    assert_eq!(after(&all[1..]), [HazardKind::EarlyRead { missing: 3 }]);
}

#[test]
fn no_lane_ends_before_varyings_are_released() {
    let read = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3)";
    let last = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    pair("a660", HazardKind::KillBeforeRelease, &["kill pp0.x", last], &[last, "kill pp0.x"]);
    pair("a660", HazardKind::KillBeforeRelease, &["demote pp0.x", last], &[last, "demote pp0.x"]);
    // From a5xx on the end of the program releases resources that no instruction has released, with or without kills.
    assert_eq!(kinds(&["kill pp0.x", read], "a540"), []);
    // In another branch: the wave may have ended its lanes there before.
    let branches = |first: &str, last: &str| {
        let blocks = blocks(&[
            (&["br !pp0.x target=block2"][..], "block1, block2"),
            (&[first, "jump target=block3"][..], "block3"),
            (&[&format!("(jp){last}")[..]][..], "block3"),
            (&["(jp)end"][..], ""),
        ]);
        report(&blocks, "a540").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(branches("kill pp0.y", last), [HazardKind::KillBeforeRelease]);
    assert_eq!(branches(last, "kill pp0.y"), [HazardKind::KillBeforeRelease]);
    assert_eq!(branches("nop", "kill pp0.y"), []);
}

#[test]
fn varyings_are_released_before_the_end() {
    let read = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3)";
    let last = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    for gpu in ["a306", "a320", "a420"] {
        pair(gpu, HazardKind::VaryingHeld, &[read], &[last]);
        // A program that reads no varyings has nothing to release.
        assert_eq!(kinds(&["mov.f32f32 r2.x, c0.x"], gpu), []);
    }
    assert_eq!(kinds(&[read], "a540"), []);
    // On every path.
    let branch = |first: &str| {
        let blocks = blocks(&[
            (&["br !pp0.x target=block2"][..], "block1, block2"),
            (&[first][..], "block2"),
            (&["(jp)end"][..], ""),
        ]);
        report(&blocks, "a320").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(branch(last), [HazardKind::VaryingHeld]);
    assert_eq!(branch("nop"), []);
}

#[test]
fn samples_before_the_start_need_a_release() {
    let report = |first: &str| {
        let program = blocks(&[(&[first, "(sy)end"][..], "")]);
        let mut sample = InstrData::new(Opcode::TexPrefetch);
        sample.dsts.push(Dst::new(Place::Reg(PhysReg(4)), RegClass::FULL, WriteMask::SCALAR));
        let mut code = Code::from_program(&program).unwrap();
        let facts = Facts::of_program(&program);
        code.interface.prefetches.push(sample);
        let report = check(&code, &facts, &Target::by_name("a660").unwrap()).unwrap();
        report.hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(report("nop"), [HazardKind::VaryingHeld]);
    assert_eq!(report("bary.f r63.x, imm[0.000000,0,0x0], r0.x // {flags=ei}"), []);
    // A read elsewhere than in the first block: there is no release but at the end.
    assert_eq!(report("bary.f r5.x, imm[0.000000,0,0x0], r0.x (wrmask=0x3)"), []);
}

/// Mesa writes `bary.f (ei)r63.x, 0, r0.x` without waiting for `r0.x`.
#[test]
fn a_release_reads_nothing() {
    let input = |dst: &str| format!("bary.f {dst}, imm[0.000000,0,0x0], r0.x (wrmask=0x3) // {{flags=ei}}");
    let add = "add.f r0.x, r1.x, c0.x";
    let early = HazardKind::EarlyRead { missing: 3 };
    pair("a306", early, &[add, &input("r2.x")], &[add, &input("r63.x")]);
}

#[test]
fn a_flag_that_is_not_encoded_does_not_wait() {
    let load = "(ss)ldp r2.x, r1.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]";
    let right = "ldp r2.x, r1.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]";
    let kind = HazardKind::ReadBeforeResult(failure::Flag::Ss);
    pair("a660", kind, &["rcp r1.x, r0.x", load], &["rcp r1.x, r0.x", "(ss)nop", right]);
}

#[test]
fn sources_of_other_units_are_not_overwritten() {
    let kind = HazardKind::WriteBeforeRead(failure::Flag::Ss);
    let write = "mov.f32f32 r0.x, c0.x";
    let store = format!("stp r0.y, r0.x, {IMM}, imm[0.000000,1,0x1]");
    pair("a660", kind, &[&store, write], &[&store, "(ss)mov.f32f32 r0.x, c0.x"]);
    // Nothing of a store comes with `(sy)`.
    assert_eq!(kinds(&[&store, "(sy)mov.f32f32 r0.x, c0.x"], "a660"), [kind]);
    pair("a660", kind, &["rcp r1.x, r0.x", write], &["rcp r1.x, r0.x", "(ss)mov.f32f32 r0.x, c0.x"]);
    // When the result is available, the sources have been read.
    let sample = "sam (f32)(x)r1.x, r0.x (wrmask=0x3), s#0, t#0";
    for right in ["(sy)mov.f32f32 r0.x, c0.x", "(ss)mov.f32f32 r0.x, c0.x"] {
        pair("a660", kind, &[sample, write], &[sample, right]);
    }
}

#[test]
fn shared_registers_have_rules_of_their_own() {
    let kind = HazardKind::ReadBeforeResult(failure::Flag::Ss);
    // From lanes to the wave, on every GPU.
    let first = "mov.f32f32 sr48.x, r0.x";
    for gpu in ["a630", "a660"] {
        pair(gpu, kind, &[first, "mul.f r1.x, sr48.x, c0.x"], &[first, "(ss)mul.f r1.x, sr48.x, c0.x"]);
    }
    // The scalar ALU reads its own results at once, in the same width only.
    let scalar = "add.f sr48.x, sr48.y, c0.x";
    assert_eq!(kinds(&[scalar, "mul.f sr49.x, sr48.x, c0.x"], "a660"), []);
    let half = "cov.f16f32 sr49.x, shr48.x";
    pair("a660", kind, &[scalar, half], &[scalar, "(ss)cov.f16f32 sr49.x, shr48.x"]);
    let vector = "mul.f r1.x, sr48.x, c0.x";
    pair("a660", kind, &[scalar, vector], &[scalar, "(ss)mul.f r1.x, sr48.x, c0.x"]);
    // Before it has read, only it may write.
    let kind = HazardKind::WriteBeforeRead(failure::Flag::Ss);
    let move_from_lanes = "mov.f32f32 sr48.y, r0.x";
    pair("a660", kind, &[scalar, move_from_lanes], &[scalar, "(ss)mov.f32f32 sr48.y, r0.x"]);
    assert_eq!(kinds(&[scalar, "mov.f32f32 sr48.y, c0.x"], "a660"), []);
}

/// Returns true if a program reads constants that are being written.
fn reads_too_early(list: &[(&[&str], &str)]) -> bool {
    report(&blocks(list), "a660").hazards.iter().any(|hazard| hazard.kind == HazardKind::ConstBeforeWrite)
}

#[test]
fn barriers_and_the_preamble_wait_for_memory() {
    use failure::Flag::{Ss, Sy};
    let load = "ldl r1.x, r0.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]";
    let after = HazardKind::AccessAfterBarrier;
    assert_eq!(kinds(&["bar", load], "a660"), [after(Ss), after(Sy)]);
    pair("a660", after(Ss), &["bar", "(sy)nop", load], &["bar", "(sy)(ss)nop", load]);
    // A barrier waits by itself.
    let (shared, reader) = ("mov.u32u32 sr48.x, r0.x", "mov.u32u32 r1.x, sr48.x");
    pair("a660", HazardKind::ReadBeforeResult(Ss), &[shared, "(sy)bar", reader], &[shared, "(sy)(ss)bar", reader]);
    let store = "stc imm[0.000000,4,0x4], sr48.x";
    let other = "stc imm[0.000000,20,0x14], sr48.x";
    assert_eq!(kinds(&[store, "(sy)shpe"], "a660"), [HazardKind::PreambleEnd(Ss)]);
    let user = "mov.f32f32 r1.x, c1.x";
    pair("a660", HazardKind::ConstBeforeWrite, &[store, user], &[store, "(sy)(ss)shpe", user]);
    assert_eq!(kinds(&[store, "mov.f32f32 r1.x, c0.w"], "a660"), []);
    // The preamble may read its own stores, too; a copy is available after `(sy)`.
    pair("a660", HazardKind::ConstBeforeWrite, &[store, &format!("(sy){user}")], &[store, &format!("(ss){user}")]);
    // Nor is a copy of push constants to other words.
    let push = "stsc imm[0.000000,4,0x4], imm[0.000000,0,0x0] // {type=u32, components=8}";
    pair("a660", HazardKind::ConstBeforeWrite, &[push, user], &[push, &format!("(ss){user}")]);
    assert_eq!(kinds(&[push, "mov.f32f32 r1.x, c3.x"], "a660"), []);
    // Words that were waited for are available, even if other words are written since.
    assert_eq!(kinds(&[push, &format!("(ss){user}"), other, user], "a660"), []);
    let of_other = "mov.f32f32 r1.x, c5.x";
    assert_eq!(kinds(&[push, &format!("(ss){user}"), other, of_other], "a660"), [HazardKind::ConstBeforeWrite]);
    // A store of other words than those that a copy has filled is not waited for.
    let copy = [
        "mov.u16u16 hr61.y, himm[0.000000,4,0x4]",
        "(rpt5)nop",
        other,
        "ldc.k.1 imm[0.000000,0,0x0], imm[0.000000,0,0x0], hr61.y",
    ];
    let reads = |flag: &str| kinds(&[&copy[..], &[&format!("{flag}{user}")]].concat(), "a660");
    assert_eq!(reads("(sy)"), []);
    assert_eq!(reads("(ss)"), [HazardKind::ConstBeforeWrite]);
    // A word that is written later, unless the program comes back.
    assert_eq!(kinds(&[other, user, store], "a660"), []);
    let program = |last: &str, to: &str| {
        let list: [(&[&str], &str); 3] = [(&[other], "block1"), (&[user, store, last], to), (&["end"], "")];
        reads_too_early(&list)
    };
    assert!(!program("nop", "block2"));
    assert!(program("br pp0.x target=block1", "block1, block2"));
}

/// Words 4 to 7 are copied, at an address that is a constant, or may be another one by another path.
#[test]
fn copies_write_the_words_at_their_address() {
    const COPY: &str = "ldc.k.1.base0 imm[0.000000,1,0x1], imm[0.000000,0,0x0], hr61.y";
    let program = |word: u8, (last, to): (&str, &str)| {
        let read = format!("mov.f32f32 r1.x, c{}.{}", word / 4, ["x", "y", "z", "w"][usize::from(word % 4)]);
        let address = "mov.u16u16 hr61.y, imm[0.000000,4,0x4]";
        let list: [(&[&str], &str); 3] =
            [(&[address], "block1"), (&["(rpt5)nop", COPY, &read, last], to), (&["end"], "")];
        reads_too_early(&list)
    };
    let (falls, loops) = (("nop", "block2"), ("br pp0.x target=block1", "block1, block2"));
    for word in [3, 4, 7, 8] {
        assert_eq!(program(word, falls), (4..8).contains(&word), "c{word}");
        assert!(program(word, loops), "c{word}");
    }
}

#[test]
fn waves_without_the_preamble_go_on_after_it() {
    let program = |to: &str| {
        let list: [(&[&str], &str); 5] = [
            (&[&format!("shps target={to}")], &format!("block1, {to}")),
            (&["nop"], "block2"),
            (&["(sy)(ss)shpe"], "block3"),
            (&["nop"], "block4"),
            (&["end"], ""),
        ];
        report(&blocks(&list), "a660")
            .hazards
            .iter()
            .map(|hazard| (hazard.kind, hazard.at.as_u32()))
            .collect::<Vec<_>>()
    };
    assert_eq!(program("block3"), []);
    assert_eq!(program("block2"), [(HazardKind::PreambleTarget, 0)]);
    assert_eq!(program("block4"), [(HazardKind::PreambleTarget, 0)]);
}

#[test]
fn the_early_preamble_marks_what_it_moves_to_a1() {
    let program = |source: &str| {
        let address = format!("mov.u16u16 hr61.y, {source}");
        let body = [&address[..], "(sy)(ss)shpe"];
        let list: [(&[&str], &str); 3] =
            [(&["shps target=block2"], "block1, block2"), (&body, "block2"), (&["end"], "")];
        report(&blocks(&list), "a750").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(program("(r)imm[0.000000,4,0x4]"), []);
    assert_eq!(program("imm[0.000000,4,0x4]"), [HazardKind::AddressMark]);
}

#[test]
fn releases_are_final() {
    let address = "mov.s16s16 hr61.x, hr8.x";
    let last = "(ul)mov.f32f32 r2.x, c<a0.x + 4>, hr61.x";
    let more = "mov.f32f32 r3.x, c<a0.x + 4>, hr61.x";
    pair("a660", HazardKind::AddressReleased, &[address, "(rpt5)nop", last, more], &[address, "(rpt5)nop", more, last]);
    let input = "bary.f r1.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3)";
    let ends = "bary.f r2.x, imm[0.000000,1,0x1], r0.x (wrmask=0x3) // {flags=ei}";
    pair("a660", HazardKind::VaryingReleased, &[ends, input], &[input, ends]);
    let local = "ldlv r1.x, imm[0.000000,1,0x1], imm[0.000000,1,0x1]";
    let waits = format!("(ss){ends}");
    pair("a660", HazardKind::VaryingOutstanding, &[local, ends], &[local, &waits]);
    let derivative = "dsx (f32)(x)r1.x, r0.x";
    pair("a660", HazardKind::HelpersEnded, &["nop // {flags=eq}", derivative], &[derivative, "nop // {flags=eq}"]);
    // A sample reads the coordinates that helper lanes had when they ended; another operand may be computed later.
    let end = "nop // {flags=eq}";
    let computes = "mul.f r1.x, r0.x, c0.x";
    for sample in
        ["sam (f32)(x)r2.x, r1.x (wrmask=0x3), s#0, t#0", "samb (f32)(x)r2.x, r1.x (wrmask=0x3), r3.x, s#0, t#0"]
    {
        let wrong = [end, computes, "(rpt5)nop", sample];
        pair("a660", HazardKind::HelpersEnded, &wrong, &[computes, "(rpt5)nop", end, sample]);
        let bias = "mul.f r3.x, r0.x, c0.x";
        assert_eq!(kinds(&[end, bias, "(rpt5)nop", sample], "a660"), [], "{sample}");
    }
    let layer = ["mul.f r1.z, r0.x, c0.x", "(rpt5)nop"];
    for (sample, found) in [
        ("sam.a (f32)(x)r2.x, r1.x (wrmask=0x7), s#0, t#0", vec![]),
        ("sam.3d (f32)(x)r2.x, r1.x (wrmask=0x7), s#0, t#0", vec![HazardKind::HelpersEnded]),
    ] {
        assert_eq!(kinds(&[end, layer[0], layer[1], sample], "a660"), found, "{sample}");
    }
    let group = |second: &str| format!("sam (f32)(x)r2.x, @{{r1.x, {second}}}, s#0, t#0");
    pair("a750", HazardKind::HelpersEnded, &[end, computes, "(rpt5)nop", &group("c1.y")], &[end, &group("c1.y")]);
    let mark = ["(sy)(ss)shpe // {flags=eq}", "end"];
    assert_eq!(kinds(&mark, "a660"), [HazardKind::HelpersEndedEarly]);
}

#[test]
fn a_rule_of_practice_is_a_finding_and_no_refutation() {
    let load = "ldl r1.x, r0.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]";
    let user = "add.f r2.x, r1.x, r1.x";
    let of = |lines: &[&str]| {
        let report = report(&blocks(&[(lines, "")]), "a660");
        (report.is_proved(), report.findings(), report.hazards.len())
    };
    assert_eq!(of(&["bar", load, "end"]), (true, 2, 2));
    assert_eq!(of(&["bar", load, user, "end"]), (false, 2, 3));
    assert_eq!(of(&["bar", "(sy)(ss)nop", load, "end"]), (true, 0, 0));
}

#[test]
fn predication_needs_nops_where_it_is_late() {
    let program = |first: &'static str, second: &'static str| {
        let else_ = ["add.f r1.x, r0.x, c1.x", "prede", second];
        let list: [(&[&str], &str); 4] = [
            (&["predt pp0.x target=block1"], "block1, block2 (div)"),
            (&["add.f r1.x, r0.x, c0.x", "predf pp0.x target=block3", first], "block3"),
            (&else_, "block3"),
            (&["end"], ""),
        ];
        // Terminators end their block: the nops after the second one are in the next.
        let mut list: Vec<(Vec<&str>, &str)> = list.iter().map(|(lines, succs)| (lines.to_vec(), *succs)).collect();
        let nop = list[1].0.pop().unwrap();
        list[2].0.insert(0, nop);
        let list: Vec<(&[&str], &str)> = list.iter().map(|(lines, succs)| (&lines[..], *succs)).collect();
        blocks(&list)
    };
    let kinds = |first, second, gpu| -> Vec<HazardKind> {
        report(&program(first, second), gpu).hazards.iter().map(|hazard| hazard.kind).collect()
    };
    assert_eq!(kinds("(rpt4)nop", "(rpt6)nop", "a660"), []);
    assert_eq!(kinds("nop", "nop", "a630"), []);
    assert_eq!(kinds("(rpt3)nop", "(rpt6)nop", "a660"), [HazardKind::AfterPredication { missing: 1 }]);
    assert_eq!(kinds("(rpt4)nop", "(rpt5)nop", "a660"), [HazardKind::AfterPredication { missing: 1 }]);
    // The two arms are of different lanes: a result of the first is not read by the second.
    assert_eq!(kinds("nop", "(rpt6)nop", "a650"), []);
}

/// An if; with `con`, its predicate is computed from constants.
fn diamond(jp: [&str; 2], then: &[&str], other: &[&str], join: &[&str], div: &str) -> Program {
    let branch = "br !pp0.x target=block2";
    let start = if div == "con" { vec!["cmps.f.lt pp0.x, c0.x, c1.x", "(rpt5)nop", branch] } else { vec![branch] };
    let mut then = then.to_vec();
    then.push("jump target=block3");
    let (first, last) = (format!("{}nop", jp[0]), format!("{}nop", jp[1]));
    let other: Vec<&str> = [&first[..]].into_iter().chain(other.iter().copied()).collect();
    let join: Vec<&str> = [&last[..]].into_iter().chain(join.iter().copied()).chain(["end"]).collect();
    let succs = format!("block1, block2 ({div})");
    blocks(&[(&start, &succs), (&then, "block3"), (&other, "block3"), (&join, "")])
}

#[test]
fn lanes_reconverge_where_there_is_jp() {
    let at = |jp, div| -> Vec<(HazardKind, u32)> {
        let report = report(&diamond(jp, &[], &[], &[], div), "a660");
        report.hazards.iter().map(|hazard| (hazard.kind, hazard.at.as_u32())).collect()
    };
    assert_eq!(at(["(jp)", "(jp)"], "div"), []);
    assert_eq!(at(["", ""], "con"), []);
    assert_eq!(at(["", "(jp)"], "div"), [(HazardKind::NoReconvergence, 2)]);
    assert_eq!(at(["(jp)", ""], "div"), [(HazardKind::NoReconvergence, 3)]);
    let program = diamond(["(jp)", "(jp)"], &[], &[], &[], "div");
    let code = Code::from_program(&program).unwrap();
    let target = Target::by_name("a660").unwrap();
    let shallow = Facts { branch_stack: Some(0), ..Facts::default() };
    let report = check(&code, &shallow, &target).unwrap();
    assert_eq!(report.hazards[0].kind, HazardKind::BranchStack { depth: 1, limit: 0 });
}

#[test]
fn facts_of_both_paths_meet() {
    let both = ["(jp)", "(jp)"];
    let kinds = |then: &[&str], join: &[&str]| -> Vec<HazardKind> {
        report(&diamond(both, then, &[], join, "div"), "a660").hazards.iter().map(|hazard| hazard.kind).collect()
    };
    let user = "mul.f r4.x, r1.x, c0.x";
    assert_eq!(kinds(&["rcp r1.x, r0.x"], &[user]), [HazardKind::ReadBeforeResult(failure::Flag::Ss)]);
    assert_eq!(kinds(&["rcp r1.x, r0.x", "(ss)nop"], &[user]), []);
    // The nop at the join is one slot; jumps are none.
    assert_eq!(kinds(&["add.f r1.x, r0.x, c0.x"], &[user]), [HazardKind::EarlyRead { missing: 2 }]);
    assert_eq!(kinds(&["add.f r1.x, r0.x, c0.x", "(rpt1)nop"], &[user]), []);
}

#[test]
fn shared_registers_follow_the_wave() {
    let both = ["(jp)", "(jp)"];
    let other = "mul.f r4.x, sr48.x, c0.x";
    // Lanes of the second arm run after the first, and see its shared registers; registers of lanes they do not see.
    let report = report(&diamond(both, &["mov.f32f32 sr48.x, r0.x"], &[other], &["(ss)nop"], "div"), "a660");
    assert_eq!(report.hazards[0].kind, HazardKind::ReadBeforeResult(failure::Flag::Ss));
    let lanes = diamond(both, &["rcp r1.x, r0.x"], &["mul.f r4.x, r1.x, c0.x"], &["(ss)nop"], "div");
    assert_eq!(self::report(&lanes, "a660").hazards, []);
    let uniform = diamond(["", ""], &["mov.f32f32 sr48.x, r0.x"], &[other], &["(ss)nop"], "con");
    assert_eq!(self::report(&uniform, "a660").hazards, []);
}

#[test]
fn loops_carry_what_is_outstanding_around() {
    let program = |first: &str| {
        let body = [first, "sam (f32)(x)r1.x, r2.x (wrmask=0x3), s#0, t#0", "br pp0.x target=block1"];
        let start = ["cmps.f.lt pp0.x, c0.x, c1.x", "(rpt5)nop"];
        blocks(&[(&start, "block1"), (&body, "block1, block2 (con)"), (&["(sy)end"], "")])
    };
    let hazards = report(&program("mul.f r4.x, r1.x, c0.x"), "a660").hazards;
    assert_eq!(hazards[0].kind, HazardKind::ReadBeforeResult(failure::Flag::Sy));
    assert_eq!(hazards[0].path.iter().map(|ip| ip.as_u32()).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(report(&program("(sy)mul.f r4.x, r1.x, c0.x"), "a660").hazards, []);
}

#[test]
fn the_early_preamble_waits_for_a1_with_ss() {
    let lines = |ss: &'static str, nops: &'static str| {
        let program = |ss: &str| {
            let user = format!("{ss}ldc.k.8.base0 imm[0.000000,1,0x1], imm[0.000000,0,0x0], hr61.y");
            let wait = if ss.is_empty() { nops.to_owned() } else { "(ss)nop".to_owned() };
            let body =
                ["mov.u16u16 hr61.y, (r)imm[0.000000,4,0x4]", &wait, user.trim_start_matches("(ss)"), "(sy)(ss)shpe"];
            blocks(&[(&["shps target=block2"], "block1, block2 (con)"), (&body, "block2"), (&["end"], "")])
        };
        program(ss)
    };
    let kinds = |program: &Program, gpu| -> Vec<HazardKind> {
        report(program, gpu).hazards.iter().map(|hazard| hazard.kind).collect()
    };
    assert_eq!(kinds(&lines("", "(rpt5)nop"), "a660"), []);
    assert_eq!(kinds(&lines("", "(rpt5)nop"), "a750"), [HazardKind::ReadBeforeResult(failure::Flag::Ss)]);
    assert_eq!(kinds(&lines("(ss)", ""), "a750"), []);
}

#[test]
fn code_that_is_not_understood_is_refused() {
    let refusal = |lines: &[&str]| {
        let program = blocks(&[(lines, "")]);
        let code = Code::from_program(&program).unwrap();
        check(&code, &Facts::default(), &Target::of_generation(Generation::A6xx)).unwrap_err().to_string()
    };
    assert!(refusal(&["stks", "end"]).contains("`stks` is not followed"));
    assert!(refusal(&["prede", "end"]).contains("no `predt` or `predf` before it"));
    assert!(refusal(&["mov.f32f32 r60.x, c0.x", "end"]).contains("no register of its file"));
}

/// The positions of the branches that are found uniform.
fn uniform_branches(program: &Program) -> Vec<u32> {
    uniform_branches_with(program, &Facts::default())
}

fn uniform_branches_with(program: &Program, facts: &Facts) -> Vec<u32> {
    let code = Code::from_program(program).unwrap();
    let target = Target::by_name("a660").unwrap();
    let steps = Steps::new(&code, &ArrayBases::default(), &target).unwrap();
    let (uniform, _) = uniform::analyze(&code, &steps, facts, &target).unwrap();
    let is_branch = |ip: &Ip| uniform::is_conditional(code.instrs[*ip].data.opcode);
    code.instrs.keys().filter(is_branch).filter(|ip| uniform[ip.index()]).map(|ip| ip.as_u32()).collect()
}

/// A branch on a register, which some instructions write before.
fn branch_after(lines: &[&str]) -> Vec<u32> {
    let lines: Vec<&str> = lines.iter().copied().chain(["br pp0.x target=block2"]).collect();
    let at = lines.len() as u32 - 1;
    let program = blocks(&[(&lines, "block1, block2"), (&["nop"], "block2"), (&["(jp)end"], "")]);
    uniform_branches(&program).into_iter().map(|ip| ip - at).collect()
}

#[test]
fn branches_are_uniform_where_all_lanes_compute_the_same() {
    let test = |source: &str| format!("cmps.s.lt pp0.x, {source}, c0.x");
    let uniform = |lines: &[&str], source: &str| {
        let test = test(source);
        let lines: Vec<&str> = lines.iter().copied().chain([&test[..]]).collect();
        branch_after(&lines) == [0]
    };
    // The initial contents of registers may differ between lanes; constants and shared registers do not.
    assert!(!uniform(&[], "r0.x") && uniform(&[], "c1.x") && uniform(&[], "sr48.x"));
    assert!(uniform(&["mov.u32u32 r0.x, c1.x"], "r0.x"));
    assert!(!uniform(&["mov.u32u32 r0.x, c1.x", "add.s r0.x, r0.x, r1.x"], "r0.x"));
    assert!(!uniform(&["mov.u32u32 r0.x, c1.x", "add.s hr0.y, hr2.x, hr2.y"], "r0.x"));
    assert!(uniform(&["add.s r0.x, sr48.x, c1.x", "rcp r0.y, r0.x"], "r0.y"));
    // Loads of one address from read-only memory; results that are a lane's own.
    let constant = "ldc r0.x, imm[0.000000,0,0x0], r1.x";
    let shared = "ldl r0.x, r1.x, imm[0.000000,0,0x0], imm[0.000000,1,0x1]";
    for (load, same) in [(constant, true), (shared, false)] {
        assert_eq!(uniform(&["mov.u32u32 r1.x, c1.x", load], "r0.x"), same, "{load}");
        assert!(!uniform(&[load], "r0.x"));
    }
    assert!(!uniform(&["getfiberid r0.x"], "r0.x"));
    assert!(!uniform(&["mov.u32u32 r1.x, c1.x", "flat.b r0.x, imm[0.000000,1,0x1], r1.x"], "r0.x"));
    // Each repetition writes its own result from its own operand.
    let repeated = "(rpt1)mov.u32u32 r0.x (wrmask=0x3), (r)r1.x (wrmask=0x3)";
    assert!(uniform(&["mov.u32u32 r1.y, c1.x", repeated], "r0.y"));
    assert!(!uniform(&["mov.u32u32 r1.y, c1.x", repeated], "r0.x"));
    assert!(!uniform(&["mov.u32u32 r1.x, c1.x", repeated], "r0.y"));
    let same_for_both = "(rpt1)add.s r0.x (wrmask=0x3), (r)r1.x (wrmask=0x3), r3.x";
    assert!(!uniform(&["mov.u32u32 r1.y, c1.x", same_for_both], "r0.y"));
    assert!(uniform(&["mov.u32u32 r1.y, c1.x", "mov.u32u32 r3.x, c1.x", same_for_both], "r0.y"));
    let reads_its_result = "(rpt1)mov.u32u32 r1.x (wrmask=0x3), (r)r0.w (wrmask=0x3)";
    assert!(!uniform(&["mov.u32u32 r1.x, c1.x", reads_its_result], "r1.y"));
    let exchanged = "(rpt1)swz.u32u32 r0.x, r0.y, r0.y, r0.x";
    assert!(!uniform(&["mov.u32u32 r0.x, c1.x", exchanged], "r0.y"));
    // A relative write may be one of another register in each lane.
    let written = ["mov.u32u32 r0.x, c1.x", "mov.u32u32 r<a0.x + 0> (4), c1.x, hr61.x"];
    assert!(uniform(&written[..1], "r0.x") && !uniform(&written, "r0.x"));
    assert!(!uniform(&["mov.u32u32 r<a0.x + 0> (4), c1.x, hr61.x"], "r0.x"));
}

#[test]
fn lanes_that_took_other_paths_differ() {
    let test = "cmps.s.lt pp0.x, r1.x, c0.x";
    let branch = "br pp0.x target=block5";
    let after = |start: &[&str], then: &[&str], join: &[&str]| {
        let mut program: Vec<(Vec<&str>, &str)> = vec![
            (start.iter().copied().chain(["br pp0.y target=block2"]).collect(), "block1, block2"),
            (then.iter().copied().chain(["jump target=block3"]).collect(), "block3"),
            (vec!["(jp)nop"], "block3"),
            (["(jp)nop"].into_iter().chain(join.iter().copied()).chain([test, branch]).collect(), "block5, block4"),
            (vec!["(jp)nop"], "block5"),
            (vec!["(jp)end"], ""),
        ];
        let list: Vec<(&[&str], &str)> = program.iter_mut().map(|(lines, succs)| (&lines[..], *succs)).collect();
        uniform_branches(&blocks(&list)).len()
    };
    let same = "mov.u32u32 r1.x, c1.x";
    assert_eq!(after(&[same], &[], &[]), 1);
    assert_eq!(after(&[same], &[same], &[]), 0);
    assert_eq!(after(&[same], &[same], &[same]), 1);
    // Predicated lanes keep their registers.
    let predicated = |lines: &[&str]| {
        let list: [(&[&str], &str); 4] = [
            (&[same, "predt pp0.y target=block1"], "block1, block2"),
            (lines, "block2"),
            (&["(rpt6)nop", test, "br pp0.x target=block3"], "block3"),
            (&["(jp)end"], ""),
        ];
        uniform_branches(&blocks(&list)).len()
    };
    assert_eq!(predicated(&["prede"]), 1);
    assert_eq!(predicated(&[same, "prede"]), 0);
}

#[test]
fn lanes_that_left_a_loop_in_different_rounds_differ() {
    // The counter is the same in all lanes of the loop; after it, it has the value of the iteration in which a lane
    // left.
    let program = |exit: &str| {
        let exit = format!("cmps.s.lt pp0.x, {exit}, c0.x");
        let body = ["(jp)add.s r1.x, r1.x, c0.y", &exit, "br pp0.x target=block3"];
        let list: [(&[&str], &str); 5] = [
            (&["mov.u32u32 r1.x, c1.x"], "block1"),
            (&body, "block3, block2"),
            (&["jump target=block1"], "block1"),
            (&["(jp)cmps.s.lt pp0.y, r1.x, c0.x", "br pp0.y target=block4"], "block4"),
            (&["(jp)end"], ""),
        ];
        uniform_branches(&blocks(&list))
    };
    assert_eq!(program("r1.x"), [3, 6]);
    assert!(program("r2.x").is_empty());
}

#[test]
fn a_uniform_loop_among_some_lanes_is_uniform() {
    let test = "cmps.s.lt pp0.x, r1.x, c0.x";
    let list: [(&[&str], &str); 4] = [
        (&["br pp0.y target=block3"], "block1, block3"),
        (&["mov.u32u32 r1.x, c1.x"], "block2"),
        (&["add.s r1.x, r1.x, c0.y", test, "br pp0.x target=block2"], "block2, block3"),
        (&["(jp)end"], ""),
    ];
    assert_eq!(uniform_branches(&blocks(&list)), [4]);
}

#[test]
fn an_array_is_where_it_is_known_to_start() {
    let lines = ["add.f r0.x, r9.x, c0.x", "mov.f32f32 r2.x, r<a0.x + 4> (4), hr61.x", "end"];
    let code = Code::from_program(&blocks(&[(&lines, "")])).unwrap();
    let target = Target::default();
    let kinds = |arrays: ArrayBases| -> Vec<HazardKind> {
        let facts = Facts { arrays, ..Facts::default() };
        check(&code, &facts, &target).unwrap().hazards.iter().map(|hazard| hazard.kind).collect()
    };
    let at = |base| {
        let mut arrays = ArrayBases::default();
        arrays.insert(Ip::from_u32(1), Side::Read, base);
        arrays
    };
    // Registers 1 to 7 may be of the array; r0.x is the one before.
    assert_eq!(kinds(ArrayBases::default()), []);
    assert_eq!(kinds(at(4)), []);
    assert_eq!(kinds(at(0)), [HazardKind::EarlyRead { missing: 3 }]);
}

#[test]
fn nops_behind_an_instruction_do_not_count_on_old_gpus() {
    let list = ["(nop3)add.f r1.x, r0.x, c0.x", "add.f r2.x, r1.x, c0.x"];
    for (gpu, expected) in [
        ("a320", &[HazardKind::EarlyRead { missing: 3 }][..]),
        ("a420", &[HazardKind::EarlyRead { missing: 3 }]),
        ("a540", &[]),
        ("a660", &[]),
    ] {
        assert_eq!(kinds(&list, gpu), expected, "{gpu}");
    }
}

#[test]
fn a_preamble_that_runs_early_uses_no_registers_of_lanes() {
    let program = |address: &str| {
        let body = ["(ss)nop", address, "(sy)(ss)shpe"];
        blocks(&[(&["shps target=block2"], "block1, block2"), (&body, "block2"), (&["end"], "")])
    };
    let kinds = |address: &str, early_preamble| {
        let program = program(address);
        let code = Code::from_program(&program).unwrap();
        let facts = Facts { early_preamble, ..Facts::of_program(&program) };
        let report = check(&code, &facts, &Target::by_name("a750").unwrap()).unwrap();
        report.hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    let (of_lane, shared) = ("mov.u32u32 r0.x, c0.x", "mov.u32u32 sr48.x, c0.x");
    assert_eq!(kinds(of_lane, Some(true)), [HazardKind::EarlyPreamble]);
    assert_eq!(kinds(of_lane, Some(false)), []);
    assert_eq!(kinds(shared, Some(true)), []);
    // The mark of `a1.x` is only needed there.
    let unmarked = "mov.u16u16 hr61.y, imm[0.000000,4,0x4]";
    assert_eq!(kinds(unmarked, None), [HazardKind::AddressMark]);
    assert_eq!(kinds(unmarked, Some(false)), []);
}
