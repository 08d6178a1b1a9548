//! The passes of the real compiler: logs are checked section by section, and a changed section is found at its pass.

use crate::common::folder::{Folder, run};
use ir3_compiler::target::Target;
use ir3_harness::check::{Engines, Verdict};
use ir3_harness::mesa::{CODE, Settings, Sides, WHOLE, check_shader};
use ir3_programs::mesa::shader::shaders_of;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Two results of one pair of inputs, which a parallel copy moves into the registers of the output.
const LOG: &str = include_str!("../../corpus/mesa/copies.log");
/// An array of four elements, one of which is read by a computed index.
const ARRAY: &str = include_str!("../../corpus/mesa/array.log");
/// `ir3_sched` moves a sample from before a `kill` to after it.
const KILL: &str = include_str!("../../corpus/mesa/kill.log");

/// The boundaries of all shaders of a log, with their verdicts.
fn check(text: &str) -> Vec<(String, Verdict)> {
    check_for(text, &Target::default())
}

fn check_for(text: &str, target: &Target) -> Vec<(String, Verdict)> {
    let engines = crate::common::engines();
    let settings =
        Settings { engines: &engines, runs: 2, most_runs: 8, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) };
    let mut rows = Vec::new();
    for shader in shaders_of(Path::new("x.log"), text) {
        check_shader(Path::new("x.log"), &shader, target, &settings, &mut |checked| {
            assert_eq!(checked.wrong_proof, None, "{}", checked.name);
            rows.push((checked.name, checked.verdict));
        });
    }
    rows
}

fn is_pass(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Proved { .. } | Verdict::Tested { .. })
}

#[test]
fn every_boundary_of_a_log_is_proved() {
    let rows = check(LOG);
    let names: Vec<&str> = rows.iter().map(|(name, _)| &**name).collect();
    let passes =
        ["nir->ir3", "ir3_cp", "create_parallel_copies", "register allocation", "ir3_lower_copies", "ir3_legalize"];
    assert_eq!(names, [&passes[..], &[CODE, WHOLE]].concat());
    for (name, verdict) in rows {
        assert!(matches!(verdict, Verdict::Proved { .. }), "{name}: {verdict} {:?}", verdict.reason());
    }
}

/// Replaces a text in one section.
fn changed(section: &str, from: &str, to: &str) -> String {
    changed_in(LOG, section, from, to)
}

fn changed_in(log: &str, section: &str, from: &str, to: &str) -> String {
    let start = log.find(section).unwrap_or_else(|| panic!("{section}"));
    let (before, rest) = log.split_at(start);
    assert!(rest.contains(from), "{section} has {from}");
    format!("{before}{}", rest.replacen(from, to, 1))
}

#[test]
fn a_changed_section_is_refuted_at_its_pass() {
    for (pass, from, to) in [
        ("nir->ir3", "add.f ssa_5, ssa_2, ssa_4", "add.f ssa_5, ssa_3, ssa_4"),
        ("nir->ir3", "off=1", "off=0"),
        ("ir3_cp", "(neg)ssa_3", "ssa_3"),
        ("ir3_cp", "mul.f ssa_6, ssa_2, ssa_3", "mul.f ssa_6, ssa_2, ssa_2"),
        ("create_parallel_copies", "(kill)ssa_5:5, (kill)ssa_6:6", "(kill)ssa_6:6, (kill)ssa_5:5"),
        ("register allocation", "r0.x, (neg)r0.y", "r0.y, (neg)r0.x"),
        ("register allocation", "parallel_copy r0.x, r0.y,", "parallel_copy r0.y, r0.x,"),
        ("ir3_lower_copies", "mov.u32u32 r0.y, r0.w", "mov.u32u32 r0.y, r0.z"),
        ("ir3_lower_copies", "mov.u32u32 r0.x, r0.z", "mov.u32u32 r1.x, r0.z"),
        ("ir3_legalize", "mul.f r0.w, (kill)r0.x", "mul.f r0.w, (kill)r0.z"),
        ("ir3_legalize", "end (kill)r0.x", "end (kill)r0.y"),
    ] {
        let rows = check(&changed(&format!("AFTER: {pass}:"), from, to));
        let first = rows.iter().find(|(_, verdict)| !is_pass(verdict)).expect("one that is no pass");
        assert!(first.0 == pass && matches!(first.1, Verdict::Refuted(_)), "{pass} {from}: {} {}", first.0, first.1);
    }
    let rows = check(&changed("Native code", "mul.f r0.w, r0.x, r0.y", "mul.f r0.w, r0.x, r0.x"));
    let failures: Vec<&str> = rows.iter().filter(|row| !is_pass(&row.1)).map(|(name, _)| &**name).collect();
    assert_eq!(failures, [CODE, WHOLE]);
}

#[test]
fn a_driver_that_is_told_too_little_is_no_pass() {
    let folder = Folder::new("told-too-little");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let least = &["--max-registers", "min"][..];
    let last = &[CODE, WHOLE][..];
    for (file, options, said, less, at, reason) in [
        ("memory/shared-reverse", &[][..], " 2 full", " 1 full", last, "full registers: 2 used, 1 reserved"),
        (
            "memory/shared-reverse",
            &[],
            "shared_size 256",
            "shared_size 128",
            last,
            "bytes of shared memory: 256 used, 128 reserved",
        ),
        ("memory/uniform-buffer", &[], "4 constlen", "0 constlen", last, "vectors of constants: 1 used, 0 reserved"),
        (
            "pressure/last-in-first-out",
            least,
            "pvtmem_size 156",
            "pvtmem_size 152",
            last,
            "bytes of scratch memory: 156 used, 152 reserved",
        ),
        // Branches wait after the last pass already.
        (
            "control-flow/divergent-else-if",
            &[],
            "branchstack 2",
            "branchstack 1",
            &["ir3_legalize", CODE, WHOLE],
            "and the branch stack holds 1",
        ),
    ] {
        let path = corpus.join(file).with_extension("nir");
        let command = ["compile", "--as-mesa-log", "--gpu", "a660", path.to_str().expect("a path")];
        let (_, log) = run(folder.path(), &[&command, options].concat());
        assert!(check(&log).iter().all(|(_, verdict)| is_pass(verdict)), "{file}: {:?}", check(&log));
        assert!(log.contains(said), "{file}: {said}");
        let rows = check(&log.replace(said, less));
        let failures: Vec<_> = rows.iter().filter(|row| !is_pass(&row.1)).collect();
        assert_eq!(failures.iter().map(|row| &*row.0).collect::<Vec<_>>(), at, "{file}: {less}");
        assert!(
            failures.iter().all(|(_, verdict)| verdict.reason().is_some_and(|why| why.contains(reason))),
            "{failures:?}"
        );
    }
}

#[test]
fn a_driver_that_is_told_of_other_inputs_is_no_pass() {
    let folder = Folder::new("told-of-others");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (file, said, other, reason) in [
        ("fragment/prefetch", "samp=0, tex=0, wrmask", "samp=1, tex=0, wrmask", "not the one in the driver's list"),
        ("fragment/prefetch", "@tex(r0.z)", "@tex(r0.w)", "not the one in the driver's list"),
        ("fragment/flat-and-smooth", "VAR1 slot=0 cm=f", "VAR1 slot=0 cm=1", "which is not in the list of inputs"),
        ("fragment/flat-and-smooth", "il=8,b=1", "il=8,b=0", "which is not in the list of inputs"),
        ("fragment/flat-and-smooth", "(VARYING_SLOT_VAR2", "(VARYING_SLOT_VAR7", "which is not in the list of inputs"),
    ] {
        let path = corpus.join(file).with_extension("nir");
        let path = path.to_str().expect("a path");
        let (_, log) = run(folder.path(), &["compile", "--as-mesa-log", "--gpu", "a660", path]);
        assert!(check(&log).iter().all(|(_, verdict)| is_pass(verdict)), "{file}: {:?}", check(&log));
        assert!(log.contains(said), "{file}: {said}");
        let rows = check(&log.replace(said, other));
        for name in [CODE, WHOLE] {
            let (_, verdict) = rows.iter().find(|row| row.0 == name).expect("a boundary");
            let why = verdict.reason().unwrap_or_default();
            assert!(matches!(verdict, Verdict::Unknown(_)) && why.contains(reason), "{file}, {name}: {verdict} {why}");
        }
    }
}

/// Conventions between Mesa's driver and the machine, written by hand after Mesa's sources: the side that a fragment
/// shows, the second color of a blend, a layer and the size of an array of one dimension, a parameter of fragments, an
/// input of a kernel, an output of each view, the size of a buffer, the layer of a fetch from another level.
#[test]
fn conventions_of_the_driver_are_those_of_mesa() {
    for (gpu, log, from, to) in [
        ("a660", include_str!("logs/front-face.log"), "cmps.s.eq", "cmps.s.ne"),
        (
            "a660",
            include_str!("logs/dual-source.log"),
            "r0.x (FRAG_RESULT_DATA0) r0.y",
            "r0.y (FRAG_RESULT_DATA0) r0.x",
        ),
        ("a660", include_str!("logs/array-of-1d.log"), "imm[0.500000,1056964608,0x3f000000]", "imm[0.000000,0,0x0]"),
        ("a660", include_str!("logs/invocation-count.log"), "c1.x", "c0.y"),
        ("a660", include_str!("logs/kernel-input.log"), "ssa_3, c2.y", "ssa_3, c2.z"),
        ("a660", include_str!("logs/output-of-views.log"), "end ssa_1 (0), ssa_2 (1)", "end ssa_2 (0), ssa_1 (1)"),
        ("a660", include_str!("logs/size-of-1d-array.log"), "(wrmask=0xf), off=3", "(wrmask=0xf), off=1"),
        ("a660", include_str!("logs/size-of-buffer.log"), "(wrmask=0xf), off=0", "(wrmask=0xf), off=1"),
        ("a306", include_str!("logs/fetch-of-layer.log"), "imm[0.000000,5,0x5]", "imm[0.000000,20,0x14]"),
    ] {
        let target = Target::by_name(gpu).expect("a GPU");
        let rows = check_for(log, &target);
        // Each section after a pass, the final code, and the whole.
        let boundaries = log.matches("AFTER: ").count() + 2;
        assert!(rows.len() == boundaries && rows.iter().all(|(_, verdict)| is_pass(verdict)), "{log}{rows:?}");
        assert!(log.contains(from), "{from}");
        let rows = check_for(&log.replace(from, to), &target);
        assert!(rows.iter().any(|(_, verdict)| matches!(verdict, Verdict::Refuted(_))), "{to}: {rows:?}");
    }
}

#[test]
fn an_input_that_refutes_one_boundary_is_tried_at_others() {
    let text = changed("AFTER: ir3_cp:", "(neg)ssa_3", "ssa_3");
    let target = Target::default();
    let shader = &shaders_of(Path::new("x.log"), &text)[0];
    let (sides, _) = Sides::of(Path::new("x.log"), shader, &target, 1);
    let limit = Duration::from_secs(1);
    let settings = |engines| Settings { engines, runs: 2, most_runs: 8, seed: 1, fuel: 10_000, limit };
    let (all, none) = (crate::common::engines(), Engines { kinds: Vec::new(), ..Engines::default() });
    // nir, nir->ir3, ir3_cp, create_parallel_copies: the third is wrong.
    let refuted = sides.judge([0, 2], &settings(&all)).verdict;
    let Verdict::Refuted(refutation) = &refuted else { panic!("{refuted}") };
    let envs = std::slice::from_ref(&refutation.env);
    let on_input = |before, after| {
        let mut checked = sides.judge([before, after], &settings(&none));
        assert!(matches!(checked.verdict, Verdict::Unknown(_)), "{}", checked.verdict);
        sides.run_on(&mut checked, [before, after], envs);
        checked.verdict
    };
    assert!(matches!(on_input(1, 2), Verdict::Refuted(_)));
    // Correct programs are not refuted, and proofs remain.
    assert!(matches!(on_input(0, 1), Verdict::Unknown(_)));
    let mut proved = sides.judge([0, 1], &settings(&all));
    sides.run_on(&mut proved, [1, 2], envs);
    assert!(matches!(proved.verdict, Verdict::Proved { .. }));
}

#[test]
fn arrays_are_followed_through_allocation() {
    let rows = check(ARRAY);
    assert_eq!(rows.len(), 8);
    for (name, verdict) in rows {
        assert!(matches!(verdict, Verdict::Proved { .. }), "{name}: {verdict} {:?}", verdict.reason());
    }
    for (pass, from, to) in [
        ("create_parallel_copies", "ssa_13:13:arr[id=1, offset=1,", "ssa_13:13:arr[id=1, offset=2,"),
        ("create_parallel_copies", "(kill)ssa_15:15:arr[id=1, offset=0,", "(kill)ssa_15:15:arr[id=1, offset=1,"),
        ("register allocation", "r<a0.x + 4>", "r<a0.x + 5>"),
        ("register allocation", "(tied)r1.z, (kill)r2.z, (kill)(tied)r1.z", "(tied)r1.w, (kill)r2.z, (kill)(tied)r1.w"),
        ("ir3_lower_copies", "r<a0.x + 4>", "r<a0.x + 3>"),
        ("ir3_legalize", "r<a0.x + 4>", "r<a0.x + 5>"),
        ("ir3_legalize", "mov.u32u32 r1.x, (kill)r2.x", "mov.u32u32 r1.x, (kill)r2.y"),
    ] {
        let rows = check(&changed_in(ARRAY, &format!("AFTER: {pass}:"), from, to));
        let first = rows.iter().find(|(_, verdict)| !is_pass(verdict)).expect("one that is no pass");
        assert!(first.0 == pass && matches!(first.1, Verdict::Refuted(_)), "{pass} {from}: {} {}", first.0, first.1);
    }
}

/// An index may be past the end of its array: the content of another register then has no meaning, for any register.
#[test]
fn an_access_outside_of_its_array_may_read_anything() {
    let unmasked = ARRAY.replace("imm[0.000000,3,0x3]", "imm[0.000000,7,0x7]");
    let unmasked = unmasked.replace("(0x00000003)", "(0x00000007)").replace("%4 (0x3)", "%4 (0x7)");
    let unmasked = unmasked.replace("and.b r0.z, r0.z, 3", "and.b r0.z, r0.z, 7");
    // From legalization on, the register after the array has something else.
    let at = unmasked.find("AFTER: ir3_legalize:").expect("a section");
    let moved = format!("{}{}", &unmasked[..at], unmasked[at..].replace("r2.x", "r3.x"));
    assert_ne!(moved, unmasked);
    for (name, verdict) in check(&moved) {
        assert!(is_pass(&verdict), "{name}: {verdict} {:?}", verdict.reason());
    }
    // Inside of it, it has one.
    let swapped = moved.replace("mov.u32u32 r1.x, (kill)r3.x", "mov.u32u32 r1.x, (kill)r2.y");
    assert_ne!(swapped, moved);
    let rows = check(&swapped);
    let first = rows.iter().find(|(_, verdict)| !is_pass(verdict)).expect("one that is no pass");
    assert!(first.0 == "ir3_legalize" && matches!(first.1, Verdict::Refuted(_)), "{} {}", first.0, first.1);
}

/// A killed lane still gives its coordinates to the samples of its quad; which lanes are killed, and where, is compared
/// all the same.
#[test]
fn samples_move_over_kills() {
    for (name, verdict) in check(KILL) {
        assert!(is_pass(&verdict), "{name}: {verdict} {:?}", verdict.reason());
    }
    for (pass, from, to) in [
        ("ir3_sched", "\t0007:0005:000: \tkill pssa_6\n", "\t0007:0005:000: \tnop\n"),
        ("ir3_sched", "cmps.f.lt pssa_6, ssa_2", "cmps.f.ge pssa_6, ssa_2"),
        ("ir3_sched", "cmps.f.lt pssa_6, ssa_2", "cmps.f.lt pssa_6, ssa_3"),
        (
            "ir3_sched",
            "_meta:collect ssa_4 (wrmask=0x3), ssa_2, ssa_3",
            "_meta:collect ssa_4 (wrmask=0x3), ssa_3, ssa_2",
        ),
        ("register allocation", "kill (kill)pp0.x", "nop"),
    ] {
        let rows = check(&changed_in(KILL, &format!("AFTER: {pass}:"), from, to));
        let first = rows.iter().find(|(_, verdict)| !is_pass(verdict)).expect("one that is no pass");
        assert!(first.0 == pass && matches!(first.1, Verdict::Refuted(_)), "{pass} {from}: {} {}", first.0, first.1);
    }
}

/// It is undocumented whether killed lanes take part in votes: a sample that moves over a kill is unknown then, a vote
/// that does is refuted.
#[test]
fn votes_do_not_move_over_kills() {
    let kill = |ip: &str| format!("MESA: info: \t0007:{ip}:000: \tkill pssa_6\n");
    let vote = "MESA: info: \t0009:0005:000: \tany.macro.f32f16 hssa_9, pssa_6\n";
    let voted = changed_in(KILL, "AFTER: nir->ir3:", &kill("0006"), &format!("{vote}{}", kill("0006")));
    let of_sched = |log: &str| check(log).into_iter().find(|(name, _)| name == "ir3_sched").expect("the pass").1;
    let kept = changed_in(&voted, "AFTER: ir3_sched:", &kill("0005"), &format!("{vote}{}", kill("0005")));
    let verdict = of_sched(&kept);
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict}");
    assert!(verdict.reason().is_some_and(|why| why.contains("over a kill")), "{:?}", verdict.reason());
    let moved = changed_in(&voted, "AFTER: ir3_sched:", &kill("0005"), &format!("{}{vote}", kill("0005")));
    assert!(matches!(of_sched(&moved), Verdict::Refuted(_)));
}

/// Legalization puts a branch to the end after a `kill`, even where the end is the only block that follows.
#[test]
fn a_branch_to_the_only_successor_is_a_jump() {
    let from = concat!(
        "MESA: info: \t0007:0005:000: \tkill (kill)pp0.x\n",
        "MESA: info: \t0005:0006:000: \tsam (f32)(xyzw)r0.x (wrmask=0xf), (kill)r0.z (wrmask=0x3), s#0, t#0\n",
        "MESA: info: \t0022:0007:000: \tnop\n",
        "MESA: info: \t0008:0008:000: \t(sy)end (kill)r0.x (wrmask=0xf) (0)\n",
    );
    let to = concat!(
        "MESA: info: \t0005:0005:000: \tsam (f32)(xyzw)r0.x (wrmask=0xf), (kill)r0.z (wrmask=0x3), s#0, t#0\n",
        "MESA: info: \t0007:0006:000: \tkill (kill)pp0.x\n",
        "MESA: info: \t0023:0007:000: \tbr (kill)pp0.x target=block2\n",
        "MESA: info: \t/* succs: block2 */\n",
        "MESA: info: }\n",
        "MESA: info: block2 {\n",
        "MESA: info: \tpred: block1\n",
        "MESA: info: \t0008:0008:000: \t(jp)(sy)end (kill)r0.x (wrmask=0xf) (0)\n",
    );
    for (name, verdict) in check(&changed_in(KILL, "AFTER: ir3_legalize:", from, to)) {
        assert!(is_pass(&verdict), "{name}: {verdict} {:?}", verdict.reason());
    }
    // It still has to be killed.
    let alive = to.replace("kill (kill)pp0.x", "nop");
    let rows = check(&changed_in(KILL, "AFTER: ir3_legalize:", from, &alive));
    assert!(rows.iter().any(|(name, verdict)| name == "ir3_legalize" && matches!(verdict, Verdict::Refuted(_))));
}

/// The engines ignore timing; a missing wait is still found.
#[test]
fn a_lost_nop_is_refuted() {
    let without = LOG.replace("MESA: info: \t0012:0003:000: \t(rpt1)nop\n", "");
    assert_ne!(without, LOG);
    let rows = check(&without);
    let first = rows.iter().find(|(_, verdict)| !is_pass(verdict)).expect("one that is no pass");
    assert!(first.0 == "ir3_legalize" && matches!(first.1, Verdict::Refuted(_)), "{} {:?}", first.0, first.1.reason());
}

/// The last command of the README in a folder, run there.
fn run_again(folder: &Path) -> (Option<i32>, String) {
    let readme = fs::read_to_string(folder.join("README.md")).expect("a file");
    let mut commands = readme.lines().filter_map(|line| line.strip_prefix("    ir3-equiv "));
    let command: Vec<&str> = commands.next_back().expect("a command").split(' ').collect();
    run(folder, &command)
}

/// `check` has all results at once: another command reproduces a missing wait.
#[test]
fn the_hazard_checker_reads_what_the_words_say() {
    let folder = Folder::new("words-of-hazards");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    let hazards = |name: &str| run(folder.path(), &["hazards", "--gpu", "a660", name]);
    write("good.log", LOG);
    assert_eq!(hazards("good.log").0, Some(0));
    write("other.log", &changed("Native code", "(rpt1)nop", "(rpt2)nop"));
    let (code, text) = hazards("other.log");
    assert!(code == Some(2) && text.contains("other waits or repetitions than after `ir3_legalize`"), "{text}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/memory/uniform-buffer.nir");
    let (_, log) = run(folder.path(), &["compile", "--as-mesa-log", "--gpu", "a660", path.to_str().expect("a path")]);
    write("own.log", &log);
    assert_eq!(hazards("own.log").0, Some(0));
    let line = log.lines().find(|line| line.contains("] (sy)")).expect("a word that waits");
    let (word, text) = line.split_at(line.find('_').expect("two halves"));
    let digit = word.len() - 8;
    let other = format!(
        "{}{}{}{text}",
        &word[..digit],
        if &word[digit..=digit] == "0" { "1" } else { "0" },
        &word[digit + 1..]
    );
    write("words.log", &log.replace(line, &other));
    let (code, text) = hazards("words.log");
    assert!(code == Some(2) && text.contains("the words are those of no assembly before them"), "{other} {text}");
    write("long.ir3", "block0 {\n\t0001:0000:000: \t(rpt9)nop\n\t0002:0000:000: \tend\n}\n");
    let (code, text) = hazards("long.ir3");
    assert!(code != Some(0) && text.contains("expected up to (rpt7)"), "{code:?} {text}");
}

#[test]
fn the_readme_of_a_lost_nop_has_a_command_that_refutes() {
    let folder = Folder::new("mesa-lost-nop");
    let without = LOG.replace("MESA: info: \t0012:0003:000: \t(rpt1)nop\n", "");
    fs::write(folder.path().join("lost.log"), without).expect("a file");
    let (code, text) = run(folder.path(), &["mesa", "lost.log", "--gpu", "a660"]);
    assert_eq!(code, Some(1), "{text}");
    let bundle = text.lines().find_map(|line| line.trim().strip_prefix("written to ")).expect("a folder");
    assert!(bundle.contains("ir3_legalize"), "{text}");
    let (code, text) = run_again(&folder.path().join(bundle));
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn other_text_between_sections_does_not_matter() {
    let noisy = LOG.replace("MESA: info: AFTER: ir3_cp:", "fps: 60\nMESA: warning: slow\nMESA: info: AFTER: ir3_cp:");
    // A line of another program inside a section is not part of it.
    let noisy = noisy.replace("MESA: info: \t0006:0005:001:", "fps: 61\nMESA: info: \t0006:0005:001:");
    let rows = check(&noisy);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|(_, verdict)| is_pass(verdict)), "{rows:?}");
}

/// Lines of two shaders that were printed by two threads: a message with the line, and complete sections are checked. A
/// log that breaks off in the middle of a line, and another one: a section is cut off, and the second shader is not
/// compared with the first.
#[test]
fn a_log_after_a_broken_line_is_another_shader() {
    let at = LOG.find("AFTER: ir3_cp:").expect("a section") + 60;
    assert_ne!(LOG.as_bytes()[at - 1], b'\n');
    let text = format!("{}{LOG}", &LOG[..at]);
    let shaders = shaders_of(Path::new("x.log"), &text);
    assert_eq!((shaders.len(), shaders[0].passes.len(), shaders[0].broken.len()), (2, 1, 1));
    let rows = check(&text);
    assert_eq!(rows.len(), 1 + 8);
    assert!(!matches!(rows[0].1, Verdict::Refuted(_)), "{:?}", rows[0].1.reason());
    assert!(rows[1..].iter().all(|(_, verdict)| matches!(verdict, Verdict::Proved { .. })));
}

#[test]
fn mixed_lines_are_named() {
    let at = LOG.find("MESA: info: \t0005:0000:000: \tadd.f ssa_5, ssa_2, (neg)ssa_3").expect("a line");
    let (before, rest) = LOG.split_at(at);
    let mixed = format!("{LOG}{before}{LOG}{rest}");
    let all = shaders_of(Path::new("x.log"), &mixed);
    let problems: Vec<String> =
        all.iter().flat_map(|shader| &shader.broken).map(|(_, error)| error.to_string()).collect();
    assert!(problems.iter().any(|problem| problem.contains("lines of two shaders are mixed at line")), "{problems:?}");
    let rows = check(&mixed);
    assert!(rows.iter().filter(|(_, verdict)| is_pass(verdict)).count() >= 16, "{rows:?}");
    assert!(!rows.iter().any(|(_, verdict)| matches!(verdict, Verdict::Refuted(_))), "{rows:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// A log that ends anywhere: no panic, no refutation, and complete sections pass.
    #[test]
    fn a_cut_log_is_checked_as_far_as_it_is_whole(at in 0..LOG.len()) {
        let cut = &LOG[..at];
        let whole = cut.matches("\nMESA: info: AFTER: ").count();
        let rows = check(cut);
        prop_assert!(rows.len() + 3 >= whole, "{whole} sections, {} rows", rows.len());
        for (name, verdict) in rows {
            prop_assert!(!matches!(verdict, Verdict::Refuted(_)), "{name}: {:?}", verdict.reason());
        }
    }
}

#[test]
fn the_command_names_the_pass_and_writes_both_sections() {
    let folder = Folder::new("mesa-passes");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("good.log", LOG);
    write("bad.log", &changed("AFTER: ir3_cp:", "(neg)ssa_3", "ssa_3"));
    write("cut.log", &LOG[..LOG.find("AFTER: ir3_legalize").expect("a section") + 60]);
    write("none.log", "nothing\n");
    let (code, text) = run(folder.path(), &["mesa", "good.log", "--explain"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ssa_1 is the input VERT_ATTRIB_POS") && text.contains("8 proved"), "{text}");
    assert!(text.contains("output 0 of `end` is VARYING_SLOT_VAR0, base 0 of nir, components 0x3"), "{text}");
    // Nothing determines the GPU, unless the log does.
    assert!(text.contains("the log does not name the GPU of 1 program: checked as a660"), "{text}");
    write("named.log", &format!("GL_RENDERER: FD618\n{LOG}"));
    let (code, text) = run(folder.path(), &["mesa", "named.log"]);
    assert!(code == Some(0) && text.contains(", a618\n") && !text.contains("checked as"), "{text}");
    let (code, text) = run(folder.path(), &["hazards", "named.log"]);
    assert!(code == Some(0) && !text.contains("checked as"), "{text}");
    let (code, text) = run(folder.path(), &["hazards", "good.log"]);
    assert!(code == Some(0) && text.contains("the log does not name the GPU of 1 program: checked as a660"), "{text}");
    // Two sections that place one input differently: both are named.
    write("moved.log", &changed("AFTER: ir3_lower_copies:", "_meta:in r0.x", "_meta:in r0.y"));
    let (code, text) = run(folder.path(), &["mesa", "moved.log"]);
    assert_ne!(code, Some(0), "{text}");
    let both = "`AFTER: register allocation` (line 62), and in r0.y in `AFTER: ir3_lower_copies` (line 76)";
    assert!(text.contains("two sections contradict: the input ssa_1 is in r0.x in") && text.contains(both), "{text}");
    let (code, text) = run(folder.path(), &["mesa", "bad.log", "--quiet"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the log does not name its GPU, checked as a660: name it with `--gpu`"), "{text}");
    let bundle = text.lines().find_map(|line| line.trim().strip_prefix("written to ")).expect("a folder");
    assert!(bundle.contains("mesa-ir3_cp-bad.log"), "{bundle}");
    let read = |name: &str| fs::read_to_string(folder.path().join(bundle).join(name)).expect("a file");
    assert!(
        read("before.txt").starts_with("AFTER: nir->ir3:\n") && read("after.txt").contains("add.f ssa_5, ssa_2, ssa_3")
    );
    assert!(read("README.md").contains("ir3_cp") && read("difference.txt").contains("add.f"));
    // The command in README shows it again.
    let (code, text) = run_again(&folder.path().join(bundle));
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = run(folder.path(), &["mesa", "cut.log"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`AFTER: ir3_legalize` is cut off") && text.contains("register allocation"), "{text}");
    // Nor has one without the final assembly been read, whatever its passes are.
    write("passes.log", &LOG[..LOG.find("MESA: info: Native code").expect("a section")]);
    let (code, text) = run(folder.path(), &["mesa", "passes.log"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("passes.log:99: the log has no final assembly") && text.contains(" 0 refuted"), "{text}");
    let (code, text) = run(folder.path(), &["mesa", "none.log"]);
    assert_eq!(code, Some(2), "{text}");
}
