//! Branches on spilled values: uniform where each lane has stored the same.

use super::*;
use ir3_compiler::ir3::{AddressSpace, Attrs, MemoryAttrs, Opcode, Type};
use ir3_semantics::machine::program_of_blocks as blocks;

const BASE: &str = "mov.u32u32 r0.z, imm[0.000000,16,0x10]";
const LOAD: &str = "ldp r2.x, r0.z, imm[0.000000,4,0x4], imm[0.000000,1,0x1]";
const TEST: &str = "cmps.s.lt pp0.x, r2.x, c0.x";
const STORE: &str = "stp r0.z, r1.x, imm[0.000000,1,0x1]";

/// Returns true if the last conditional branch is uniform. `offsets` are those of the stores, in order.
fn last_is_uniform(list: &[(&[&str], &str)], offsets: &[i32]) -> bool {
    let code = Code::from_program(&blocks(list)).unwrap();
    let mut typed = code.clone();
    let mut offsets = offsets.iter();
    for instr in typed.instrs.values_mut() {
        let data = &mut instr.data;
        let (half, offset) = match data.opcode {
            Opcode::Stp => (data.srcs[1].class.half, offsets.next().copied()),
            Opcode::Ldp => (data.dsts[0].class.half, Some(0)),
            _ => continue,
        };
        let Some(offset) = offset else { continue };
        let ty = Some(if half { Type::U16 } else { Type::U32 });
        data.attrs =
            Attrs::Memory(MemoryAttrs { ty, space: Some(AddressSpace::Scratch), offset, ..Default::default() });
    }
    let facts = Facts { scratch: ScratchAccesses::of(&typed), ..Facts::default() };
    let target = Target::by_name("a660").unwrap();
    let steps = Steps::new(&code, &ArrayBases::default(), &target).unwrap();
    let (uniform, _) = uniform::analyze(&code, &steps, &facts, &target).unwrap();
    let branch = code.instrs.iter().rfind(|(_, instr)| uniform::is_conditional(instr.data.opcode)).unwrap().0;
    uniform[branch.index()]
}

/// The same for a branch after straight-line code.
fn after(lines: &[&str], offsets: &[i32]) -> bool {
    let lines: Vec<&str> = lines.iter().copied().chain([LOAD, TEST, "br pp0.x target=block2"]).collect();
    last_is_uniform(&[(&lines, "block1, block2"), (&["nop"], "block2"), (&["(jp)end"], "")], offsets)
}

#[test]
fn what_all_lanes_have_stored_is_the_same() {
    let same = "mov.u32u32 r1.x, c1.x";
    assert!(after(&[BASE, same, STORE], &[4]));
    // Another address, an address that is not known, values that differ.
    assert!(!after(&[BASE, same, STORE], &[8]));
    assert!(!after(&[BASE, same, STORE], &[]));
    assert!(!after(&[same, STORE], &[4]));
    assert!(!after(&[BASE, STORE], &[4]));
    assert!(!after(&[BASE, "add.s r0.z, r0.z, r0.z", same, STORE], &[4]));
    assert!(!after(&[BASE, "mov.f16f16 hr1.x, hr9.x", same, STORE], &[4]));
    // A mask is of consecutive words.
    let two = "stp r0.z, r1.x (wrmask=0x3), imm[0.000000,2,0x2]";
    assert!(after(&[BASE, same, "mov.u32u32 r1.y, c1.y", two], &[0]));
    assert!(!after(&[BASE, same, "mov.u32u32 r1.y, c1.y", two], &[8]));
}

#[test]
fn a_store_over_a_part_or_to_an_unknown_address_counts() {
    let same = "mov.u32u32 r1.x, c1.x";
    let half = "stp r0.z, hr20.x, imm[0.000000,1,0x1]";
    assert!(after(&[BASE, same, STORE, half], &[4, 2]));
    assert!(!after(&[BASE, same, STORE, half], &[4, 6]));
    assert!(!after(&[BASE, same, STORE, "stp r5.x, r6.x, imm[0.000000,1,0x1]"], &[4, 64]));
    assert!(after(&[BASE, same, STORE, "stp r0.z, r6.x, imm[0.000000,1,0x1]"], &[4, 64]));
    // An address that is unknown but the same for all, and so is the stored value: all have the same there afterwards.
    let address = "add.s r5.x, c2.x, c2.y";
    assert!(after(&[BASE, same, STORE, address, "stp r5.x, r1.x, imm[0.000000,1,0x1]"], &[4, 64]));
    assert!(!after(&[BASE, same, STORE, address, "stp r5.x, r6.x, imm[0.000000,1,0x1]"], &[4, 64]));
    assert!(!after(&[BASE, same, address, "stp r5.x, r1.x, imm[0.000000,1,0x1]"], &[64]));
}

#[test]
fn lanes_that_do_not_store_keep_what_they_have() {
    // Lanes diverge at the first branch, and only some of them store again.
    let program = |offset: i32| {
        let first = [BASE, "mov.u32u32 r1.x, c1.x", STORE, "cmps.s.lt pp0.x, r9.x, c0.x", "br pp0.x target=block2"];
        let list: [(&[&str], &str); 5] = [
            (&first, "block1, block2"),
            (&["mov.u32u32 r1.x, c2.x", STORE], "block2"),
            (&["(jp)nop", LOAD, TEST, "br pp0.x target=block4"], "block3, block4"),
            (&["nop"], "block4"),
            (&["(jp)end"], ""),
        ];
        last_is_uniform(&list, &[4, offset])
    };
    assert!(program(8));
    assert!(!program(4));
}

/// A loop whose counter is stored on both sides of a branch on which lanes diverge, and loaded again on both.
fn counter(first: &[&str], second: &[&str]) -> bool {
    let join = ["(jp)add.u r3.x, r6.x, c8.x", "cmps.s.lt pp0.x, r3.x, c4.y", "br pp0.x target=block1"];
    let list: [(&[&str], &str); 7] = [
        (&[BASE, "mov.u32u32 r3.x, c1.x"], "block1"),
        (&["cmps.s.lt pp0.x, r9.x, c0.x"], "block2"),
        (&["br pp0.x target=block4"], "block3, block4"),
        (first, "block5"),
        (second, "block5"),
        (&join, "block1, block6"),
        (&["(jp)end"], ""),
    ];
    last_is_uniform(&list, &[4, 4])
}

#[test]
fn a_value_that_is_spilled_on_both_paths_is_the_same() {
    const SPILL: &str = "stp r0.z, r3.x, imm[0.000000,1,0x1]";
    const RELOAD: &str = "ldp r6.x, r0.z, imm[0.000000,4,0x4], imm[0.000000,1,0x1]";
    let jump = "jump target=block5";
    assert!(counter(&[SPILL, RELOAD, jump], &[&format!("(jp){SPILL}"), RELOAD]));
    // Another value, in one of them or before it is stored.
    assert!(!counter(&[SPILL, RELOAD, jump], &["(jp)mov.u32u32 r3.x, r8.x", SPILL, RELOAD]));
    let spill_other = "(jp)stp r0.z, r8.x, imm[0.000000,1,0x1]";
    assert!(!counter(&[SPILL, RELOAD, jump], &[spill_other, RELOAD]));
    // Both copies of the stored value are overwritten: the register and the one that was loaded.
    let lost = "mov.u32u32 r3.x, r8.x";
    let changed = "mov.u32u32 r6.x, r8.x";
    assert!(!counter(&[SPILL, lost, changed, jump], &[&format!("(jp){SPILL}"), lost, RELOAD]));
    // A store to an address that is not known may have changed the slot.
    let unknown = "stp r10.x, r8.x, imm[0.000000,1,0x1]";
    assert!(!counter(&[SPILL, RELOAD, jump], &[&format!("(jp){SPILL}"), unknown, RELOAD]));
}
