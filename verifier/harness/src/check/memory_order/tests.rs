//! Pairs of programs whose accesses to memory have another order, and the verdicts on them.

use super::*;
use crate::check::{Boundary, Engines, Judge, Policy, ProgramInputs, Search, Smt, Unknown, Verdict};
use ir3_compiler::compilation::compile;
use ir3_compiler::nir;
use ir3_compiler::pipeline::Options;
use ir3_programs::generator::{Features, Profile, from_seed};
use ir3_programs::input;
use ir3_programs::mesa::pair_file::read_named;
use ir3_semantics::Snapshot;
use ir3_semantics::environment::aliases::Aliasing;
use std::path::Path;

/// A pair of corpus/pairs.
fn pair(name: &str) -> [Snapshot; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/pairs");
    let pair = read_named(&folder, name).and_then(|pair| input::load_pair(&pair, Some(Target::default())));
    pair.unwrap_or_else(|error| panic!("{error}"))
}

fn found_in(name: &str, envs: &[Env]) -> Option<MemoryOrder> {
    let [before, after] = pair(name);
    check((&before).into(), (&after).into(), envs, &Target::default()).err().map(|order| *order)
}

fn found(name: &str) -> Option<MemoryOrder> {
    found_in(name, &(0..24).map(Env::from_seed).collect::<Vec<_>>())
}

/// The change, and the names of the operations.
fn described(order: MemoryOrder) -> (OrderChange, String) {
    let MemoryOrder { change, first, second } = order;
    let word = |operation: OrderedOperation| match operation {
        OrderedOperation::Access(site) => site.operation.to_owned(),
        OrderedOperation::Sync(_, sync) => sync.to_string().split(' ').next().unwrap_or_default().to_owned(),
    };
    let second = second.map(word).unwrap_or_default();
    (change, format!("{} {second}", word(first)).trim().to_owned())
}

#[test]
fn an_exchange_that_no_run_shows_is_not_covered() {
    use OrderChange::Exchanged;
    // A run in which buffers alias refutes some of these.
    let disjoint = |seed| Env { aliases: Some(Aliasing::Disjoint), ..Env::from_seed(seed) };
    let envs: Vec<Env> = (0..24).map(disjoint).collect();
    for (name, expected) in [
        ("barriers/load-over-a-fence", "load_ssbo_ir3 fence"),
        ("barriers/stores-over-a-fence-exchanged", "store_ssbo_ir3 fence"),
        ("memory/volatile-loads-exchanged", "load_ssbo_ir3 load_ssbo_ir3"),
        ("memory/load-over-store-at-another-index", "load_ssbo_ir3 store_ssbo_ir3"),
        ("aliasing/load-over-store-of-a-copy", "load_ssbo_ir3 store_ssbo_ir3"),
        ("aliasing/ssbo-and-global", "load_ssbo_ir3 store_global_ir3"),
        ("aliasing/atomic-over-a-store", "store_ssbo_ir3 ssbo_atomic_ir3"),
    ] {
        assert_eq!(found_in(name, &envs).map(described), Some((Exchanged, expected.to_owned())), "{name}");
    }
    let merged = found_in("aliasing/forwarded-over-other-store", &envs).map(described);
    assert_eq!(merged, Some((OrderChange::Merged, "load_ssbo_ir3 store_ssbo_ir3".to_owned())));
}

#[test]
fn a_store_that_becomes_unconditional_is_added() {
    let expected = (OrderChange::Added, "store_ssbo_ir3".to_owned());
    let order = found("memory/store-made-unconditional").expect("a difference");
    let text = order.to_string();
    assert_eq!(described(order), expected);
    assert!(text.starts_with("store_ssbo_ir3 (line ") && text.contains("does not write"), "{text}");
}

#[test]
fn a_store_that_is_left_out_needs_another_one() {
    let expected = (OrderChange::Removed, "store_ssbo_ir3 load_ssbo_ir3".to_owned());
    assert_eq!(found("memory/store-overwritten-after-a-load").map(described), Some(expected));
    assert_eq!(found("memory/store-overwritten-at-once"), None);
}

#[test]
fn an_order_that_does_not_matter_is_no_difference() {
    for name in [
        "barriers/shared-load-over-a-fence-of-buffers",
        "barriers/kept",
        "aliasing/restrict-beside-others",
        "aliasing/restrict-with-a-computed-number",
        "aliasing/pointer-that-may-be-reordered",
        "aliasing/image-and-ssbo",
        "aliasing/shared-and-ssbo",
        "memory/forwarded",
        "memory/load-not-used",
        "memory/load-over-store-at-a-distance",
        "memory/volatile-kept",
        "memory/volatile-loads-in-order",
    ] {
        assert_eq!(found(name), None, "{name}");
    }
}

/// The program after compares the indices: where they are equal, a run shows that it makes up for the order.
#[test]
fn an_exchange_is_covered_where_the_two_meet() {
    let name = "memory/load-over-store-with-a-comparison";
    let env = |i: u32, j: u32| Env { consts: [(4, i), (5, j)].into(), ..Env::from_seed(u64::from(i)) };
    let distinct = [env(3, 5), env(2, 9), env(7, 8), env(1, 4)];
    assert!(matches!(found_in(name, &distinct), Some(MemoryOrder { change: OrderChange::Exchanged, .. })));
    let met = [env(3, 5), env(2, 9), env(7, 7), env(1, 4)];
    assert_eq!(found_in(name, &met), None);
}

/// All lanes store what they load to one word: only the store of the last one stays, and a lane that runs alone later
/// shows its own.
#[test]
fn a_load_counts_as_used_by_any_lane() {
    let order = found("memory/load-out-of-a-loop-over-its-store");
    assert!(
        matches!(order, Some(MemoryOrder { change: OrderChange::Merged | OrderChange::Exchanged, .. })),
        "{order:?}"
    );
}

/// Two environments of one distance may be a coincidence.
#[test]
fn a_distance_needs_witnesses() {
    let name = "memory/load-over-store-at-a-distance";
    let envs: Vec<Env> = (0..3).map(Env::from_seed).collect();
    assert_eq!(found_in(name, &envs), None);
    assert!(found_in(name, &envs[..2]).is_some());
}

#[test]
fn our_compiler_keeps_the_order_of_accesses() {
    let target = Target::default();
    let (mut compared, mut with_writes) = (0, 0);
    for (seed, profile) in (0..48).zip(Profile::ALL.into_iter().cycle()) {
        let shader = from_seed(seed, profile, Features::ALL).shader;
        let Ok(program) = compile(&shader, &target, &Options::default(), &mut |_, _| ()) else { continue };
        let [before, after] = [Snapshot::Nir(Box::new(shader)), Snapshot::Ir3(Box::new(program))];
        let envs: Vec<Env> = (0..8).map(Env::from_seed).collect();
        let result = check((&before).into(), (&after).into(), &envs, &target);
        assert_eq!(result, Ok(()), "{profile} {seed}");
        compared += 1;
        let pair = TracedPair::new((&before).into(), (&after).into(), &envs, &target);
        let has_anchor = |pair: TracedPair| pair.source.ordered_code().iter().any(|it| it.is_anchor());
        with_writes += u32::from(pair.is_ok_and(has_anchor));
    }
    assert!(compared > 30 && with_writes > 10, "{compared} {with_writes}");
}

/// The verdict of all engines, on a pair whose programs have ten more additions to each stored value.
fn judged_with_additions(name: &str) -> Verdict {
    let [before, after] = pair(name).map(|side| {
        let Snapshot::Nir(shader) = side else { panic!("{name} is in nir") };
        let text = nir::text::write(&shader);
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let value = line.trim().strip_prefix("@store_ssbo_ir3 (%").and_then(|rest| rest.split([',', ' ']).next());
            let Some(value) = value else {
                lines.push(line.to_owned());
                continue;
            };
            let name = |at: usize| if at == 0 { value.to_owned() } else { format!("{}", 1000 + 20 * number + at) };
            lines.extend((0..10).map(|at| format!("    32 %{} = iadd %{}, %{value}", name(at + 1), name(at))));
            lines.push(line.replacen(&format!("(%{value}"), &format!("(%{}", name(10)), 1));
        }
        nir::text::read(&lines.join("\n")).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    let inputs = ProgramInputs::new(&before, 1);
    let engines = Engines::all(Smt::default());
    let search = Search { runs: 4, ..Search::of_stage(&inputs) };
    let boundary = Boundary::of_texts(ProgramRef::Nir(&before), ProgramRef::Nir(&after));
    let policy = Policy::new(&engines).with_search(search);
    Judge::new(policy, Target::default(), &[], &mut Scratch::default()).judge(&boundary).verdict
}

#[test]
fn arithmetic_does_not_hide_an_order_that_no_run_shows() {
    for name in [
        "barriers/load-over-a-fence",
        "barriers/stores-over-a-fence-exchanged",
        "memory/volatile-loads-exchanged",
        "memory/store-made-unconditional",
    ] {
        let verdict = judged_with_additions(name);
        // In an environment in which the buffers alias, a run may show it.
        let is_of_order = matches!(&verdict, Verdict::Unknown(Unknown::MemoryOrder(_)));
        assert!(is_of_order || verdict.is_refuted(), "{name}: {verdict} {:?}", verdict.reason());
    }
    for name in ["memory/volatile-loads-in-order", "barriers/shared-load-over-a-fence-of-buffers"] {
        let verdict = judged_with_additions(name);
        assert!(verdict.is_pass(), "{name}: {verdict} {:?}", verdict.reason());
    }
    let verdict = judged_with_additions("aliasing/load-over-store-of-a-copy");
    assert!(verdict.is_refuted(), "{verdict} {:?}", verdict.reason());
}
