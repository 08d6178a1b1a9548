//! Invariants of the table of GPUs.

use super::*;

#[test]
fn the_default_is_the_a660() {
    assert_eq!(Target::default(), Target::by_name("a660").unwrap());
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
    for result in [Target::by_name("a999"), Target::by_name("")] {
        let message = result.unwrap_err().to_string();
        assert!(
            message.contains("a305, ") && message.contains("a660") && message.ends_with("x2-85, gen7, gen7-scalar"),
            "{message}"
        );
    }
    assert!(Target::by_name("a999").unwrap_err().to_string().contains("`a999`"));
}

#[test]
fn names_are_unique() {
    for (i, target) in ALL.iter().enumerate() {
        assert!(ALL[..i].iter().all(|other| other.name != target.name), "{target}");
        assert_eq!(target.name.parse::<Target>().unwrap(), *target);
        if let Some(digit) = target.name.strip_prefix('a').and_then(|number| number.chars().next())
            && !matches!(target.name, "a32" | "a702")
        {
            assert_eq!(digit.to_digit(10), Some(target.generation.number()), "{target}");
        }
    }
}

#[test]
fn generations_have_their_parameters() {
    let [a320, a420, a540, a610, a618, a640, a650, a660, a730, a750] =
        ["a320", "a420", "a540", "a610", "a618", "a640", "a650", "a660", "a730", "a750"]
            .map(|name| Target::by_name(name).unwrap());
    for separate in [a320, a420, a540] {
        assert!(!separate.merged_regs && separate.num_predicates == 1 && !separate.has_predication);
        assert!(!separate.has_branch_and_or && !separate.bitops_can_write_predicates);
        assert_eq!(separate.const_limits.compute, 512);
    }
    for merged in [a610, a618, a640, a650, a660, a730, a750] {
        assert!(merged.merged_regs && merged.num_predicates == 4 && merged.has_predication);
        assert!(merged.has_branch_and_or && merged.bitops_can_write_predicates);
        assert!(merged.bools_are_half() && merged.pvtmem && merged.threadsize_base == 64);
    }
    assert_eq!([a320, a420, a540].map(|t| t.bool_bits), [32, 32, 16]);
    assert_eq!([a320, a420, a540].map(|t| t.pvtmem), [false, false, true]);
    assert_eq!([a320, a420, a540].map(|t| t.threadsize_base), [8, 32, 32]);
    use FlatVaryings::{Instruction, Interpolated, LocalMemory};
    assert_eq!(
        [a320, a420, a540, a618, a730].map(|t| t.flat_varyings),
        [Interpolated, LocalMemory, LocalMemory, Instruction, Instruction]
    );
    assert_eq!([a540, a610, a640, a660, a750].map(|t| t.quirks.samgq), [false, true, true, true, true]);
    assert_eq!(
        [a320, a420, a540, a610, a618, a640, a650, a660, a730, a750].map(|t| t.reg_size_vec4),
        [96, 48, 48, 48, 96, 96, 64, 64, 96, 96]
    );
    assert_eq!([a618, a650, a660, a730].map(|t| t.has_scalar_alu), [false, true, true, true]);
    assert_eq!([a650, a660, a730].map(|t| t.has_isam_v), [false, true, true]);
    assert_eq!([a660, a730].map(|t| t.const_limits.compute), [256, 512]);
    assert_eq!(Target::by_name("x1-85").unwrap().const_limits.compute, 256);
    let [a830, a840] = ["a830", "A840"].map(|name| Target::by_name(name).unwrap());
    assert_eq!([a750, a830, a840].map(|t| t.has_dp2acc), [true, false, false]);
    assert_eq!([a750, a830, a840].map(|t| t.double_threadsize), [true, false, false]);
    assert_eq!([a830, a840].map(|t| t.reg_size_vec4), [96, 128]);
    let (short, long) = (DelaySlots::SHORT, DelaySlots::LONG);
    assert_eq!([a320, a660, a730, a750, a830].map(|t| t.delay_slots), [long, long, short, short, long]);
    let common = Target { generation: Generation::A7xx, name: "a750", delay_slots: short, ..a830 };
    assert_eq!(Target { double_threadsize: true, has_dp2acc: true, ..common }, a750);
    assert!(!a610.double_threadsize && a618.double_threadsize);
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
