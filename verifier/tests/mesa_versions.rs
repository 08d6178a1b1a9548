//! A log of each version of Mesa whose text is read: one vertex shader, written by hand in the text of the version.

use ir3_compiler::target::Target;
use ir3_harness::check::Verdict;
use ir3_harness::mesa::{Settings, WHOLE, check_shader};
use ir3_programs::mesa::origin::Origin;
use ir3_programs::mesa::shader::{LogShader, shaders_of};
use std::path::Path;
use std::time::Duration;

/// The version, the versions that its nir names, and the log.
const LOGS: [(&str, &str, &str); 7] = [
    ("23.1", "23.1", include_str!("logs/version-23.1.log")),
    ("23.2", "23.2", include_str!("logs/version-23.2.log")),
    ("24.0", "23.3 or later", include_str!("logs/version-24.0.log")),
    ("25.0, debug", "23.3 or later", include_str!("logs/version-25.0.log")),
    ("25.0, release", "23.3 or later", include_str!("logs/version-25.0-release.log")),
    ("26.1, release", "26.0 or later", include_str!("logs/version-26.1.log")),
    ("26.2, release", "26.2 or later", include_str!("logs/version-26.2.log")),
];

fn shader_of(text: &str) -> LogShader {
    let shaders = shaders_of(Path::new("x.log"), text);
    assert_eq!(shaders.len(), 1);
    shaders.into_iter().next().expect("one shader")
}

/// The verdicts of a log by the names of the boundaries.
fn check(text: &str) -> Vec<(String, Verdict)> {
    let engines = crate::common::engines();
    let settings =
        Settings { engines: &engines, runs: 2, most_runs: 8, seed: 1, fuel: 10_000, limit: Duration::from_secs(1) };
    let target = Target::by_name("a660").expect("a GPU");
    let mut rows = Vec::new();
    let recovered = check_shader(Path::new("x.log"), &shader_of(text), &target, &settings, &mut |checked| {
        rows.push((checked.name, checked.verdict));
    });
    assert_eq!(recovered.problems, [""; 0]);
    rows
}

#[test]
fn each_version_is_read_and_proved() {
    for (version, versions, log) in LOGS {
        let origin = Origin::of(&shader_of(log));
        assert_eq!(origin.versions.expect(version).to_string(), versions, "{version}");
        assert_eq!(origin.lacks_serials, version.ends_with("release"), "{version}");
        assert!(!origin.lacks_words, "{version}");
        let rows = check(log);
        assert_eq!(rows.len(), 5, "{version}");
        for (name, verdict) in rows {
            // Without serial numbers an instruction may have no partner.
            let passes = verdict.is_proved() || origin.lacks_serials && name != WHOLE && !verdict.is_refuted();
            assert!(passes, "{version}, {name}: {verdict} {:?}", verdict.reason());
        }
    }
}

#[test]
fn a_wrong_program_of_each_version_is_refuted() {
    for (version, _, log) in LOGS {
        let rows = check(&log.replace("= fneg", "= fabs"));
        let whole = rows.iter().find(|(name, _)| name == WHOLE).expect("nir and final code");
        assert!(matches!(whole.1, Verdict::Refuted(_)), "{version}: {}", whole.1);
    }
}

const ALIASES: &str = include_str!("logs/aliases.log");

/// The names of the boundaries of the log with aliases that are proved, and of those that are refuted.
fn of_aliases(text: &str) -> [Vec<String>; 2] {
    let engines = crate::common::engines();
    let settings = Settings { fuel: 10_000, ..Settings::new(&engines, 2, 1) };
    let target = Target::by_name("a750").expect("a GPU");
    let mut all = [Vec::new(), Vec::new()];
    check_shader(Path::new("x.log"), &shader_of(text), &target, &settings, &mut |checked| match checked.verdict {
        Verdict::Proved { .. } => all[0].push(checked.name),
        Verdict::Refuted(_) => all[1].push(checked.name),
        other => println!("{}: {other} {:?}", checked.name, other.reason()),
    });
    all
}

/// `alias.tex` names an operand of the sample after it, `alias.rt` a component of an output: each text of them has the
/// same meaning, and another value is a difference.
#[test]
fn aliases_are_part_of_what_they_are_for() {
    let [proved, refuted] = of_aliases(ALIASES);
    let names = [
        "nir->ir3",
        "ir3_create_alias_tex_regs",
        "ir3_create_alias_rt",
        "register allocation",
        "ir3_legalize",
        "final code",
        WHOLE,
    ];
    assert_eq!((proved, refuted), (names.map(str::to_owned).to_vec(), Vec::new()));
    for (from, to, expected) in [
        ("alias.rt.b32.0 rt0.w, (0x3f800000)", "alias.rt.b32.0 rt0.w, (0x3f000000)", &["final code", WHOLE][..]),
        ("alias.rt.b32.0 rt0.w, (0x3f800000)", "alias.rt.b32.0 rt0.z, (0x3f800000)", &["final code", WHOLE]),
        ("alias.tex.b32.0 r0.y, (0x3f800000)", "alias.tex.b32.0 r0.y, (0x00000000)", &["final code", WHOLE]),
        ("alias.tex.b32.0 r0.y, (0x3f800000)", "alias.tex.b32.0 r0.x, (0x3f800000)", &["final code", WHOLE]),
    ] {
        assert_eq!(ALIASES.matches(from).count(), 1, "{from}");
        let [proved, refuted] = of_aliases(&ALIASES.replace(from, to));
        assert_eq!(proved.len(), names.len() - expected.len(), "{to}");
        assert_eq!(refuted, expected, "{to}");
    }
    // A table of another size, or one that no texture instruction follows, means nothing.
    for (from, to) in [
        ("alias.tex.b32.0 r0.y, (0x3f800000)", "alias.tex.b32.1 r0.y, (0x3f800000)"),
        ("sam.base0 (f32)(xy)r0.x, r0.x, s#1, t#0\nMESA: info: (sy)mov", "nop\nMESA: info: (sy)mov"),
    ] {
        let [proved, refuted] = of_aliases(&ALIASES.replace(from, to));
        assert!(!proved.contains(&"final code".to_owned()) && refuted.is_empty(), "{to}: {refuted:?}");
    }
}
