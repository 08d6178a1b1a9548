//! Tests against numbers worked out by hand with a table of Student's t distribution.

use super::*;

/// Lines for programs `a`, `b`, … with these numbers of instructions.
fn lines(instructions: &[u32]) -> Results {
    let line = |(i, count): (usize, &u32)| {
        let name = char::from(b'a' + i as u8);
        format!("{name} - FRAG shader: {count} inst, 0 loops, 0 cycles, 0:0 spills:fills\n")
    };
    read(&instructions.iter().enumerate().map(line).collect::<String>())
}

fn compared(before: &[u32], after: &[u32]) -> Comparison {
    compare(&lines(before), &lines(after), &["instructions"]).unwrap()
}

#[test]
fn lines_are_found_anywhere_and_the_last_counts() {
    let results = read(
        "ATTENTION: x/y.test - MESA_SHADER_VERTEX main shader: 7 inst, 2 preamble inst, 1.5 ratio, 4:9 spills:fills\n\
         nothing\n\
         x/y.test - MESA_SHADER_VERTEX main shader: 8 inst, x loops\n\
         z - a - b shader: c shader: 3 inst\n\
         Thread 0 took 1.25 seconds\n[x] Thread 12 took 0.5 seconds and compiled 3 shaders\n",
    );
    let names: Vec<&str> = results.programs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x/y.test MESA_SHADER_VERTEX main", "z a - b shader: c"]);
    let first = &results.programs[0].1;
    assert_eq!((first.len(), first["instructions"]), (1, 8.0));
    assert_eq!(results.cpu_seconds, 1.75);
    let spills = read("a - b shader: 4:9 spills:fills, 2 preamble inst, 1.5 ratio");
    let mut names: Vec<_> = spills.programs[0].1.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    names.sort_by_key(|&(name, _)| name);
    assert_eq!(names, [("fills", 9.0), ("spills", 4.0)]);
}

/// t(0.975) of the table: 3.182446 for 3 degrees of freedom, 2.776445 for 4, 2.262157 for 9.
#[test]
fn confidence_intervals_are_those_of_the_table() {
    // Mean 3, squares 4 + 1 + 0 + 1 + 4, deviation √2.5, error √0.5.
    let five = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let half = 2.776_445 * 0.5f64.sqrt();
    assert!((five.low - (3.0 - half)).abs() < 1e-5 && (five.high - (3.0 + half)).abs() < 1e-5, "{five:?}");
    // Mean 5.5, sum of squares 82.5, deviation √(82.5 / 9), error √(82.5 / 90).
    let ten = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    let half = 2.262_157 * (82.5f64 / 90.0).sqrt();
    assert!((ten.low - (5.5 - half)).abs() < 1e-5 && (ten.high - (5.5 + half)).abs() < 1e-5, "{ten:?}");
    assert_eq!(Interval::of(&[-1.0; 4]), Interval { low: -1.0, high: -1.0 });
}

#[test]
fn spreads_have_the_median_in_the_middle() {
    assert_eq!(Spread::of(vec![4.0, 1.0, 2.0]), Spread { min: 1.0, max: 4.0, mean: 7.0 / 3.0, median: 2.0 });
    assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
}

#[test]
fn a_report_as_a_whole() {
    // Changes -10, -2, -3, -1 of 100, 20, 10, 50: mean -4, squares 36 + 4 + 1 + 9, deviation √(50/3), error √(50/12);
    // half 3.182446 · 2.041241 = 6.496141. Relative -0.1, -0.1, -0.3, -0.02: mean -0.13, squares 0.0009 + 0.0009 +
    // 0.0289 + 0.0121 = 0.0428, error √(0.0428/12) = 0.059722, half 0.190062.
    let report = compared(&[100, 20, 10, 50, 7], &[90, 18, 7, 49, 7]).report(false, false);
    let expected = "\
instructions helped:   d FRAG:                                           50 -> 49 (-2.00%)
instructions helped:   a FRAG:                                           100 -> 90 (-10.00%)
instructions helped:   b FRAG:                                           20 -> 18 (-10.00%)
instructions helped:   c FRAG:                                           10 -> 7 (-30.00%)

total instructions in shared programs: 187 -> 171 (-8.56%)
instructions in affected programs: 180 -> 164 (-8.89%)
helped: 4
HURT: 0
helped stats (abs) min: 1 max: 10 x̄: 4.00 x̃: 2
helped stats (rel) min: 2.00% max: 30.00% x̄: 13.00% x̃: 10.00%
95% mean confidence interval for instructions value: -10.50 2.50
95% mean confidence interval for instructions %-change: -32.01% 6.01%
Inconclusive result (value mean confidence interval includes 0).

LOST:   0
GAINED: 0

Total CPU time (seconds): 0 -> 0
";
    assert_eq!(report, expected);
}

#[test]
fn verdicts_in_their_order() {
    let verdict =
        |before: &[u32], after: &[u32]| compared(before, after).measured[0].confidence().map(|c| c.verdict(false));
    assert_eq!(verdict(&[10; 3], &[9; 3]), None);
    assert_eq!(verdict(&[10; 4], &[9; 4]), Some(Significance::Helped));
    assert_eq!(verdict(&[10; 4], &[11; 4]), Some(Significance::Hurt));
    assert_eq!(verdict(&[10; 4], &[9, 11, 9, 11]), Some(Significance::ValueIncludesZero));
    // The absolute changes cancel out, the relative ones do not: the mean relative change has the other sign.
    assert_eq!(
        verdict(&[1000, 1000, 1000, 1000, 2], &[990, 990, 990, 990, 4]),
        Some(Significance::PercentIncludesZero)
    );
    let (one, other) = (Interval { low: -2.0, high: -1.0 }, Interval { low: 0.0, high: 1.0 });
    let of = |value, percent| Confidence { value, percent }.verdict(false);
    assert_eq!(of(one, other), Significance::Disagree);
    assert_eq!(of(other, other), Significance::Hurt);
    let of = |value, percent| Confidence { value, percent }.verdict(true);
    assert_eq!((of(one, one), of(other, other)), (Significance::Hurt, Significance::Helped));
}

#[test]
fn more_threads_and_waves_are_better() {
    let [before, after] = [2, 4].map(|count| read(&format!("a - b shader: {count} threads, {count} waves, 0 loops")));
    let comparison = compare(&before, &after, &["threads", "waves"]).unwrap();
    for measured in &comparison.measured {
        assert_eq!((measured.helped.len(), measured.hurt.len()), (1, 0), "{}", measured.name);
    }
}

#[test]
fn totals_have_the_split_of_helped_and_hurt() {
    let line = |name, [instructions, dwords, waves, loops]: [u32; 4]| {
        format!("{name} - FRAG shader: {instructions} inst, {dwords} dwords, {waves} waves, 3 half, {loops} loops\n")
    };
    let side = |rows: [[u32; 4]; 4]| {
        read(&["a", "b", "c", "d"].into_iter().zip(rows).map(|(n, row)| line(n, row)).collect::<String>())
    };
    let before = side([[100, 64, 8, 0], [50, 32, 16, 0], [50, 32, 4, 0], [10, 32, 16, 0]]);
    let after = side([[90, 64, 10, 0], [51, 32, 15, 0], [50, 32, 4, 0], [20, 96, 16, 1]]);
    let report = compare(&before, &after, &["waves", "instructions", "dwords", "half"]).unwrap().totals();
    // The program with another number of loops is skipped; of dwords nothing is changed then.
    let expected = "\
Totals:
MaxWaves: 28 -> 29 (+3.57%); split: +7.14%, -3.57%
Instrs: 200 -> 191 (-4.50%); split: -5.00%, +0.50%

Totals from 2 (50.00% of 4) affected shaders:
MaxWaves: 24 -> 25 (+4.17%); split: +8.33%, -4.17%
Instrs: 150 -> 141 (-6.00%); split: -6.67%, +0.67%

Total CPU time (seconds): 0.00 -> 0.00
";
    assert_eq!(report, expected);
    let [before, after] = [1, 2].map(|dwords| read(&line("a", [7, dwords, 1, 0])));
    let report = compare(&before, &after, &["dwords"]).unwrap().totals();
    assert!(report.contains("CodeSize: 4 -> 8 (+100.00%)\n"), "{report}");
}

#[test]
fn loops_that_changed_exclude_a_program() {
    let before = read("a - b shader: 10 inst, 1 loops\nc - d shader: 10 inst, 1 loops");
    let after = read("a - b shader: 90 inst, 0 loops\nc - d shader: 11 inst, 1 loops");
    let comparison = compare(&before, &after, &["instructions", "loops"]).unwrap();
    assert_eq!(comparison.measured[0].total, (10.0, 11.0));
    assert_eq!(comparison.measured[1].total, (2.0, 1.0));
    assert!(compare(&before, &after, &["nops"]).unwrap_err().contains("no measurement `nops` before"));
}

#[test]
fn lost_gained_and_nothing() {
    let comparison = compared(&[1, 2], &[1, 2, 3]);
    assert_eq!((comparison.lost.len(), &comparison.gained[..]), (0, &["c FRAG".to_string()][..]));
    assert!(comparison.report(false, true).starts_with("GAINED: c FRAG\n\nLOST:   0\nGAINED: 1\n"));
    let same = compared(&[1], &[1]).report(true, true);
    assert_eq!(same, "No changes.\n\nTotal CPU time (seconds): 0 -> 0\n");
}

/// A change of nearly 0 has no sign; spills have no statistics.
#[test]
fn small_changes_and_spills() {
    let report = compared(&[100_000], &[100_001]).report(true, false);
    assert!(report.contains("instructions in affected programs: 100000 -> 100001 (<.01%)\n"), "{report}");
    let lines =
        |spills: u32| (0..4).map(|i| format!("{i} - b shader: 0 loops, {spills}:0 spills:fills\n")).collect::<String>();
    let comparison = compare(&read(&lines(1)), &read(&lines(2)), &["spills"]).unwrap();
    let expected = "total spills in shared programs: 4 -> 8 (100.00%)\nspills in affected programs: 4 -> 8 (100.00%)\n\
                    helped: 0\nHURT: 4\n\n\nTotal CPU time (seconds): 0 -> 0\n";
    assert_eq!(comparison.report(true, true), expected);
}
