//! Families of pairs against the soundness of proofs: runs show that some pairs of each differ and others do not.

use ir3_compiler::target::Target;
use ir3_harness::check::{Verdict, compare_snapshots};
use ir3_programs::adversarial::{self, FAMILIES};
use ir3_programs::{Case, divergence};
use std::collections::BTreeMap;

/// Most numbers give a pair. Each family has pairs that differ and pairs that do not, so a wrong proof is possible.
#[test]
fn some_pairs_differ() {
    let machine = Target::default();
    // Most contradictory texts are refused: see `texts`.
    for family in FAMILIES.iter().filter(|family| family.name != "texts") {
        let (mut made, mut differ, mut same) = (0, 0, 0);
        let mut changes: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
        for pair in adversarial::pairs(vec![family], 1, 0..120, 3, &machine) {
            made += 1;
            let change = changes.entry(pair.change).or_default();
            match compare_snapshots(&pair.source, &pair.target, &machine, &pair.envs()).0 {
                Verdict::Refuted(_) => change[0] += 1,
                _ if pair.differs => change[0] += 1,
                Verdict::Tested { .. } => change[1] += 1,
                _ => {}
            }
        }
        changes.values().for_each(|[differs, is_same]| (differ, same) = (differ + differs, same + is_same));
        assert!(made >= 20, "{}: {made} pairs", family.name);
        assert!(differ >= 3, "{}: {changes:?}", family.name);
        assert!(same >= 3, "{}: {changes:?}", family.name);
    }
}

/// Every change makes a difference in some pairs and none in others, so a wrong proof is possible.
#[test]
fn some_changes_differ() {
    let machine = Target::default();
    let mut seen: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for pair in divergence::pairs(1, 0..600, 3, &machine) {
        match compare_snapshots(&pair.source, &pair.target, &machine, &pair.envs()).0 {
            Verdict::Refuted(_) => seen.entry(pair.change).or_default()[0] += 1,
            Verdict::Tested { .. } => seen.entry(pair.change).or_default()[1] += 1,
            _ => {}
        }
    }
    assert_eq!(seen.len(), divergence::CHANGES, "{seen:?}");
    assert!(seen.values().all(|[differ, same]| *differ > 0 && *same > 0), "{seen:?}");
}

/// A changed text that contradicts its comments and is not refused has the meaning of its instructions.
#[test]
fn contradictory_texts_have_the_meaning_of_their_instructions() {
    let machine = Target::default();
    let family = FAMILIES.iter().find(|family| family.name == "texts").expect("the family");
    let mut differ = 0;
    for pair in adversarial::pairs(vec![family], 1, 0..60, 4, &machine).filter(|pair| pair.differs) {
        differ += 1;
        let (verdict, _) = compare_snapshots(&pair.source, &pair.target, &machine, &pair.envs());
        assert!(matches!(verdict, Verdict::Refuted(_)), "{}: {verdict}", pair.change);
    }
    assert!(differ > 0, "no changed text was accepted");
}
