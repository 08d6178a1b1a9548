//! Invariants of the table of GPUs.

use super::*;

#[test]
fn the_default_is_the_a660() {
    assert_eq!(Target::default(), Target::by_name("a660").unwrap());
    assert_eq!(Target::default().chip_id, 0x0606_00ff);
}

#[test]
fn names_are_forgiving() {
    for name in ["a660", "A660", "FD660", "660", " a660 "] {
        assert_eq!(Target::by_name(name).unwrap().name, "a660", "{name}");
    }
    assert_eq!(Target::by_name("x1-85").unwrap().name, "x1-85");
    assert_eq!(Target::by_name("a32").unwrap().name, "a32");
}

#[test]
fn unknown_names_list_the_known_ones() {
    for result in [Target::by_name("a999"), Target::by_number(999), Target::by_number(0), Target::by_name("")] {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("a305, ") && message.contains("a660") && message.ends_with("a750"), "{message}");
    }
    assert!(Target::by_name("a999").unwrap_err().to_string().contains("`a999`"));
}

#[test]
fn names_and_numbers_are_unique_and_agree() {
    for (i, target) in ALL.iter().enumerate() {
        assert!(ALL[..i].iter().all(|other| other.name != target.name), "{target}");
        if target.number != 0 {
            assert_eq!(target.name, format!("a{}", target.number));
            assert_eq!(Target::by_number(target.number).unwrap(), *target);
        }
        assert_eq!(target.name.parse::<Target>().unwrap(), *target);
        assert_eq!(Target::by_chip_id(u64::from(target.chip_id)).unwrap().generation, target.generation);
    }
}

#[test]
fn chip_ids_match_with_any_patch_and_speed_bin() {
    assert_eq!(Target::by_chip_id(0x0606_0001).unwrap().name, "a660");
    assert_eq!(Target::by_chip_id(0x00ac_0603_0500).unwrap().name, "a635");
    assert_eq!(Target::by_chip_id(0xffff_4305_1401).unwrap().name, "a750");
    assert_eq!(Target::by_chip_id(0x0300_0512).unwrap().name, "a305b");
    assert!(Target::by_chip_id(0x0900_0000).is_err());
}

#[test]
fn generations_have_their_parameters() {
    let [a320, a420, a540, a610, a618, a640, a650, a660, a730, a750] =
        ["a320", "a420", "a540", "a610", "a618", "a640", "a650", "a660", "a730", "a750"]
            .map(|name| Target::by_name(name).unwrap());
    for separate in [a320, a420, a540] {
        assert!(!separate.merged_regs && separate.num_predicates == 1 && !separate.has_predication);
        assert!(!separate.has_branch_and_or && !separate.bitops_can_write_predicates && !separate.has_preamble);
        assert_eq!(separate.const_limits.compute, 512);
    }
    for merged in [a610, a618, a640, a650, a660, a730, a750] {
        assert!(merged.merged_regs && merged.num_predicates == 4 && merged.has_predication);
        assert!(merged.has_branch_and_or && merged.bitops_can_write_predicates && merged.has_preamble);
        assert!(merged.bools_are_half() && merged.pvtmem && merged.threadsize_base == 64);
    }
    assert_eq!([a320, a420, a540].map(|t| t.bool_bits), [32, 32, 16]);
    assert_eq!([a320, a420, a540].map(|t| t.pvtmem), [false, false, true]);
    assert_eq!([a320, a420, a540].map(|t| t.threadsize_base), [8, 32, 32]);
    assert_eq!([a320, a420, a540].map(|t| t.instr_align), [4, 16, 16]);
    assert_eq!(
        [a320, a420, a540, a610, a618, a640, a650, a660, a730, a750].map(|t| t.reg_size_vec4),
        [96, 48, 48, 48, 96, 96, 64, 64, 96, 96]
    );
    assert_eq!([a618, a650, a660, a730].map(|t| t.has_scalar_alu), [false, true, true, true]);
    assert_eq!([a618, a650, a660, a730].map(|t| t.has_early_preamble), [false, true, false, true]);
    assert_eq!([a650, a660, a730].map(|t| t.has_isam_v), [false, true, true]);
    assert_eq!([a640, a650, a660].map(|t| (t.has_dp2acc, t.has_dp4acc)), [(false, false), (true, false), (true, true)]);
    assert_eq!([a730, a750].map(|t| t.has_compliant_dp4acc), [false, true]);
    assert_eq!([a660, a730].map(|t| t.const_limits.compute), [256, 512]);
    assert_eq!(Target::by_name("x1-85").unwrap().const_limits.compute, 256);
    assert!(!a610.double_threadsize && a618.double_threadsize);
    assert_eq!([a640, a660].map(|t| t.fibers_per_sp), [Some(8192), Some(4096)]);
    assert_eq!(Target::by_name("a702").unwrap().generation, Generation::A6xx);
    assert!(Generation::A5xx < Generation::A6xx && Generation::A6xx.to_string() == "a6xx");
}

#[test]
fn register_files_are_in_half_registers() {
    let sizes = Target::default().register_files();
    assert_eq!(sizes, RegisterFiles { full: 384, half: 192, shared: 64, shared_half: 32 });
    let old = Target::by_name("a320").unwrap().register_files();
    assert_eq!((old.full, old.half, old.shared), (384, 192, 0));
}
