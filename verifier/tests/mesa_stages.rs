//! Logs of tessellation and geometry shaders, and of vertex shaders before them: written by hand, as Mesa's passes have
//! them.

use ir3_compiler::target::Target;
use ir3_harness::check::Verdict;
use ir3_harness::mesa::{CODE, Settings, WHOLE, check_shader};
use ir3_programs::mesa::shader::ShaderReader;
use std::path::Path;
use std::time::Duration;

const VERTEX: &str = include_str!("logs/vertex-before-geometry.log");
const GEOMETRY: &str = include_str!("logs/geometry.log");
const CONTROL: &str = include_str!("logs/tess-control.log");
const EVALUATION: &str = include_str!("logs/tess-evaluation.log");

/// The boundaries of the one shader of a log with their verdicts, and the problems of its recovery.
fn check(text: &str) -> (Vec<(String, Verdict)>, Vec<String>) {
    let engines = crate::common::engines();
    let settings =
        Settings { engines: &engines, runs: 2, most_runs: 8, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) };
    let path = Path::new("x.log");
    let mut reader = ShaderReader::new(path);
    text.lines().for_each(|line| reader.line(line));
    let [shader] = &reader.end()[..] else { panic!("one shader") };
    let mut rows = Vec::new();
    let recovered = check_shader(path, shader, &Target::default(), &settings, &mut |checked| {
        assert_eq!(checked.wrong_proof, None, "{}", checked.name);
        rows.push((checked.name, checked.verdict));
    });
    (rows, recovered.problems)
}

fn is_pass(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Proved { .. } | Verdict::Tested { .. })
}

#[test]
fn every_boundary_of_each_stage_passes() {
    for (stage, log) in [("VERT", VERTEX), ("GEOM", GEOMETRY), ("TCS", CONTROL), ("TES", EVALUATION)] {
        let (rows, problems) = check(log);
        assert_eq!(problems, [""; 0], "{stage}");
        let names: Vec<&str> = rows.iter().map(|(name, _)| &**name).collect();
        assert!(
            names.starts_with(&["nir->ir3", "register allocation"]) && names.ends_with(&[CODE, WHOLE]),
            "{names:?}"
        );
        for (name, verdict) in rows {
            assert!(is_pass(&verdict), "{stage} {name}: {verdict} {:?}", verdict.reason());
        }
    }
}

/// The first boundary that is no pass after a text of a section was replaced.
fn first_failure(log: &str, section: &str, from: &str, to: &str) -> (String, Verdict) {
    let start = log.find(section).unwrap_or_else(|| panic!("{section}"));
    let (before, rest) = log.split_at(start);
    assert!(rest.contains(from), "{section} has {from}");
    let (rows, _) = check(&format!("{before}{}", rest.replacen(from, to, 1)));
    let failure = rows.into_iter().find(|(_, verdict)| !is_pass(verdict));
    failure.unwrap_or_else(|| panic!("{section}: {from}: every boundary passes"))
}

#[test]
fn a_changed_stage_is_refuted_at_its_pass() {
    for (log, pass, from, to) in [
        // A header in the other register, another stride, another offset, another component.
        (VERTEX, "nir->ir3", "ssa_2(r0.y) (0), ssa_1(r0.x) (1)", "ssa_1(r0.y) (0), ssa_2(r0.x) (1)"),
        (VERTEX, "nir->ir3", "ssa_6, c0.x", "ssa_6, c0.y"),
        (VERTEX, "register allocation", "(kill)r0.y (0), (kill)r0.x (1)", "(kill)r0.x (0), (kill)r0.y (1)"),
        (VERTEX, "ir3_legalize", "stlw (kill)r1.x", "stlw (kill)r1.y"),
        (GEOMETRY, "nir->ir3", "c4.y", "c4.z"),
        // The mark before the block stays.
        (CONTROL, "ir3_legalize", "(jp)end", "end"),
        (
            GEOMETRY,
            "register allocation",
            "mov.u32u32 r0.z, imm[0.000000,4,0x4]",
            "mov.u32u32 r0.w, imm[0.000000,4,0x4]",
        ),
        (
            GEOMETRY,
            "ir3_legalize",
            "ldlw r0.x (wrmask=0x3), (kill)r0.x, imm[0.000000,0,0x0]",
            "ldlw r0.x (wrmask=0x3), (kill)r0.y, imm[0.000000,0,0x0]",
        ),
        (CONTROL, "nir->ir3", "ssa_8, imm[0.000000,63,0x3f]", "ssa_8, imm[0.000000,31,0x1f]"),
        (CONTROL, "ir3_lower_copies", "c0.z", "c0.w"),
        (CONTROL, "ir3_legalize", "br (kill)!pp0.x", "br (kill)pp0.x"),
        (EVALUATION, "nir->ir3", "c0.z", "c0.y"),
        (EVALUATION, "ir3_lower_copies", "mul.f r0.z, (kill)r0.z, (kill)r0.x", "mul.f r0.z, (kill)r0.y, (kill)r0.x"),
    ] {
        let (name, verdict) = first_failure(log, &format!("AFTER: {pass}:"), from, to);
        assert!(name == pass && !is_pass(&verdict), "{pass} {from}: {name} {verdict}");
        let is_wanted = matches!(verdict, Verdict::Refuted(_)) || pass == "register allocation";
        assert!(is_wanted, "{pass} {from}: {verdict} {:?}", verdict.reason());
    }
    for (log, from, to) in [
        (VERTEX, "stlw.u32 l[r1.x+16], r0.z, 2", "stlw.u32 l[r1.x+20], r0.z, 2"),
        (GEOMETRY, "ldlw.u32 r0.x, l[r0.x], 2", "ldlw.u32 r0.x, l[r0.x+4], 2"),
        (CONTROL, "stg.a.u32 g[r2.x+(r0.y)<<2], r1.x, 2", "stg.a.u32 g[r2.x+(r0.z)<<2], r1.x, 2"),
    ] {
        let (name, verdict) = first_failure(log, "Native code", from, to);
        // The offset of a store is taken from the words for all sections: they differ from nir.
        assert!(matches!(verdict, Verdict::Refuted(_)), "{from}: {name} {verdict} {:?}", verdict.reason());
    }
}

/// Operations that no engine compares are named.
#[test]
fn a_lost_chain_or_barrier_is_named() {
    for (log, section, from, to, wanted) in [
        (VERTEX, "AFTER: register allocation:", "\tchsh\n", "\tnop\n", "`chmask` without `chsh`"),
        (
            VERTEX,
            "AFTER: nir->ir3:",
            "\tchmask ssa_2(r0.y) (0), ssa_1(r0.x) (1)\nMESA: info: \t0012",
            "\tnop\nMESA: info: \t0012",
            "`chsh` without `chmask`",
        ),
        (VERTEX, "Native code", "chsh\n", "nop\n", "`chmask` without `chsh`"),
        (CONTROL, "AFTER: ir3_lower_copies:", "(sy)(ss)bar", "(sy)(ss)nop", "found 0 `bar`"),
        (CONTROL, "Native code", "(sy)(ss)bar", "(sy)(ss)nop", "found 0 `bar`"),
    ] {
        let (name, verdict) = first_failure(log, section, from, to);
        let reason = verdict.reason().unwrap_or_default();
        assert!(matches!(verdict, Verdict::Unknown(_)) && reason.contains(wanted), "{name}: {verdict}: {reason}");
    }
}
