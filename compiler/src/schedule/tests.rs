//! Constraints on the order, and the register need of an order. Orders of small blocks are in the file tests,
//! `corpus/file/schedule`.

use super::before;
use super::dependencies::{DependencyBuilder, DependencyGraph, ScheduleRules};
use crate::ir3::text::{read, write};
use crate::ir3::{Instr, Program, workload};
use crate::target::Target;

const FREE: ScheduleRules = ScheduleRules { predicates: true, registers: 4, occupancy: true };
const ONE_PREDICATE: ScheduleRules = ScheduleRules { predicates: false, registers: 4, occupancy: true };

fn a660() -> Target {
    Target::by_name("a660").unwrap()
}

/// A block of these lines, numbered from 1, and `end`.
fn program(lines: &[&str]) -> Program {
    let mut text = "block0 {\n".to_owned();
    for (number, line) in (1..).zip(lines.iter().chain(&["end"])) {
        text += &format!("\t{number:04}:0000:000: \t{line}\n");
    }
    read(&(text.clone() + "}\n")).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns true if the last line but one must stay before the last.
fn ordered(lines: &[&str], rules: ScheduleRules) -> bool {
    let (program, target) = (program(lines), a660());
    let list: Vec<Instr> = program.blocks[program.layout[0]].instrs.clone();
    let (end, stretch) = list.split_last().unwrap();
    let mut graph = DependencyGraph::default();
    DependencyBuilder::new(&program, &target, rules).build(&program, stretch, &[*end], &mut graph);
    let mut reached = vec![false; stretch.len()];
    reached[stretch.len() - 2] = true;
    for node in 0..stretch.len() {
        for edge in graph.successors(node).iter().filter(|_| reached[node]).map(|edge| edge.to).collect::<Vec<_>>() {
            assert!(edge as usize > node);
            reached[edge as usize] = true;
        }
    }
    reached[stretch.len() - 1]
}

const START: [&str; 6] = [
    "mov.u32u32 ssa_1, imm[0.000000,4,0x4]",
    "mov.u32u32 ssa_2, imm[0.000000,8,0x8]",
    "cmps.u.lt pssa_3, ssa_1, ssa_2",
    "mov.u16u16 hssa_4, himm[0.000000,1,0x1]",
    "mov.u32u32 sssa_5, imm[0.000000,4,0x4]",
    "cmps.u.lt pssa_6, ssa_2, ssa_1",
];

/// Two lines after the start, numbers 7 and 8.
fn pair(first: &str, second: &str) -> bool {
    let mut lines = START.to_vec();
    lines.extend([first, second]);
    ordered(&lines, FREE)
}

const LOAD: &str =
    "ldl ssa_N, ssa_1, imm[0.000000,0,0x0], imm[0.000000,1,0x1] // {type=u32, components=1, space=shared}";
const STORE: &str = "stl ssa_1, ssa_2, imm[0.000000,1,0x1] // {type=u32, components=1, space=shared}";
const ATOMIC: &str = "atomic.add ssa_N, ssa_1, ssa_2 // {type=u32, components=1, space=shared}";
const LOAD_SSBO: &str = "ldib.base0 ssa_N, imm[0.000000,0,0x0], ssa_1, imm[0.000000,0,0x0] // {type=u32, components=1, space=ssbo, coords=1}";
const STORE_SSBO: &str = "stib.base0 imm[0.000000,1,0x1], ssa_1, imm[0.000000,0,0x0], ssa_2 // {type=u32, components=1, space=ssbo, coords=1}";
const STORE_IMAGE: &str = "stib.base2 imm[0.000000,1,0x1], ssa_1, imm[0.000000,0,0x0], ssa_2 // {type=u32, components=1, space=image, coords=1}";
const LOAD_IMAGE: &str = "ldib.base2 ssa_N, imm[0.000000,0,0x0], ssa_1, imm[0.000000,0,0x0] // {type=u32, components=1, space=image, coords=1}";
const LOAD_UNKNOWN: &str = "ldib.base2 ssa_N, imm[0.000000,0,0x0], ssa_1, imm[0.000000,0,0x0]";
const STORE_SCRATCH: &str = "stp ssa_1, ssa_2, imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}";
const LOAD_SCRATCH: &str =
    "ldp ssa_N, ssa_1, imm[0.000000,0,0x0], imm[0.000000,1,0x1] // {type=u32, components=1, space=scratch}";
const LOAD_UBO: &str =
    "ldc.offset0.base1 ssa_N, imm[0.000000,0,0x0], imm[0.000000,0,0x0] // {type=u32, components=1, space=ubo}";

/// A pair of these.
fn pair_of(first: &str, second: &str) -> bool {
    pair(&first.replace("ssa_N", "ssa_7"), &second.replace("ssa_N", "ssa_8"))
}

#[test]
fn memory_is_read_and_written_in_order() {
    for (load, store) in
        [(LOAD, STORE), (LOAD_SSBO, STORE_SSBO), (LOAD_IMAGE, STORE_IMAGE), (LOAD_SCRATCH, STORE_SCRATCH)]
    {
        assert!(pair_of(load, store) && pair_of(store, load) && pair_of(store, store), "{load}");
        assert!(!pair_of(load, load), "{load}");
        // The memory is unknown.
        assert!(pair_of(store, LOAD_UNKNOWN) && pair_of(LOAD_UNKNOWN, store), "{store}");
        // No instruction writes to these.
        assert!(!pair_of(store, LOAD_UBO) && !pair_of(LOAD_UBO, store), "{store}");
    }
    assert!(pair_of(ATOMIC, LOAD) && pair_of(LOAD, ATOMIC) && pair_of(ATOMIC, ATOMIC) && pair_of(STORE, ATOMIC));
    for (first, second) in [(LOAD, STORE_SSBO), (STORE, LOAD_SSBO), (STORE_IMAGE, STORE_SSBO), (STORE_SCRATCH, STORE)] {
        assert!(!pair_of(first, second), "{first} {second}");
    }
}

#[test]
fn one_buffer_may_be_another() {
    let address = "_meta:collect ssa_7 (wrmask=0x3), ssa_1, ssa_2";
    let global = "stg ssa_7 (wrmask=0x3), imm[0.000000,0,0x0], ssa_2, imm[0.000000,1,0x1] // {type=u32, components=1, space=global}";
    let load = LOAD_SSBO.replace("ssa_N", "ssa_9");
    let mut lines = START.to_vec();
    lines.extend([address, global, &load]);
    assert!(ordered(&lines, FREE));
}

#[test]
fn nothing_that_touches_memory_crosses_a_barrier() {
    for barrier in ["fence // {fence=rw}", "(sy)(ss)bar // {fence=g}"] {
        for access in [LOAD, STORE, ATOMIC, LOAD_SSBO, STORE_IMAGE, LOAD_IMAGE] {
            assert!(pair_of(barrier, access) && pair_of(access, barrier), "{barrier} {access}");
        }
        assert!(!pair(barrier, "add.u ssa_8, ssa_1, ssa_2"));
        assert!(pair(barrier, barrier));
    }
}

#[test]
fn lanes_end_in_order_with_what_sees_it() {
    for kill in ["kill pssa_3", "demote pssa_3"] {
        for seen in [
            LOAD,
            STORE,
            ATOMIC,
            LOAD_SSBO,
            LOAD_UBO,
            "kill pssa_6",
            "any.macro.u16u16 hssa_N, pssa_6",
            "ballot.macro.u32u32 sssa_N (wrmask=0x3), pssa_6",
            "read_first.macro.u32u32 sssa_N, ssa_1",
            "dsx (f32)(x)ssa_N, ssa_1",
            "sam (f32)(x)ssa_N, ssa_1, s#0, t#0",
            "bary.f ssa_N, imm[0.000000,0,0x0], ssa_1",
            // The result depends on which lanes are active.
            "mov.u32u32 sssa_N, ssa_1",
        ] {
            assert!(pair_of(kill, seen) && pair_of(seen, kill), "{kill} {seen}");
        }
        for own in ["add.u ssa_N, ssa_1, ssa_2", "rcp ssa_N, ssa_1", "add.u sssa_N, sssa_5, imm[0.000000,1,0x1]"] {
            assert!(!pair_of(kill, own) && !pair_of(own, kill), "{kill} {own}");
        }
    }
}

#[test]
fn constants_are_read_before_or_after_they_are_written() {
    let store = "stc imm[0.000000,32,0x20], ssa_1 // {type=u32, components=1, space=const}";
    assert!(pair(store, "add.u ssa_8, c8.x, ssa_1") && pair("add.u ssa_7, c8.x, ssa_1", store) && pair(store, store));
    assert!(!pair("add.u ssa_7, c8.x, ssa_1", "add.u ssa_8, c8.x, ssa_1"));
    assert!(!pair(store, "add.u ssa_8, ssa_1, ssa_2"));
}

#[test]
fn arrays_are_read_and_written_in_order() {
    let write = |id: u32| format!("mov.u32u32 arr[id={id}, offset=0, size=8], ssa_1");
    let read = |id: u32, n: u32| format!("mov.u32u32 ssa_{n}, arr[id={id}, offset=4, size=8]");
    assert!(pair(&write(1), &read(1, 8)) && pair(&read(1, 7), &write(1)) && pair(&write(1), &write(1)));
    assert!(!pair(&read(1, 7), &read(1, 8)) && !pair(&write(1), &read(2, 8)) && !pair(&write(1), &write(2)));
}

#[test]
fn one_address_is_alive_at_a_time() {
    let lines = [
        "mov.u16u16 hssa_1, himm[0.000000,1,0x1]",
        "mov.s16s16 hssa_2(r61.x), hssa_1",
        "mov.u32u32 ssa_3, c<a0.x + 3>, hssa_2(r61.x)",
        "mov.s16s16 hssa_4(r61.x), hssa_1",
    ];
    assert!(ordered(&lines, FREE));
    // Another register may be written in between.
    let other = "mov.u16u16 hssa_3(r61.y), hssa_1";
    assert!(!ordered(&[lines[0], lines[1], other], FREE));
}

#[test]
fn predicates_wait_for_each_other_only_if_they_have_to() {
    let lines = |first: &'static str| {
        [
            "mov.u32u32 ssa_1, imm[0.000000,4,0x4]",
            "mov.u16u16 hssa_2, himm[0.000000,1,0x1]",
            "mov.s16s16 hssa_3(r61.x), hssa_2",
            first,
            "any.macro.u16u16 hssa_5, pssa_4",
            "cmps.u.lt pssa_6, ssa_1, imm[0.000000,8,0x8]",
        ]
    };
    let plain = lines("cmps.u.lt pssa_4, ssa_1, imm[0.000000,7,0x7]");
    assert!(!ordered(&plain, FREE) && ordered(&plain, ONE_PREDICATE));
    // This one could not be rematerialised if it had to be evicted.
    assert!(ordered(&lines("cmps.u.lt pssa_4, c<a0.x + 3>, ssa_1, hssa_3(r61.x)"), FREE));
}

#[test]
fn values_false_dependencies_and_groups_keep_their_order() {
    assert!(pair("add.u ssa_7, ssa_1, ssa_2", "add.u ssa_8, ssa_7, ssa_2"));
    assert!(!pair("add.u ssa_7, ssa_1, ssa_2", "add.u ssa_8, ssa_1, ssa_2"));
    assert!(pair("add.u ssa_7, ssa_1, ssa_2", "add.u ssa_8, ssa_1, ssa_2, false-deps:ssa_7"));
    assert!(pair("add.u ssa_7, ssa_1, ssa_2, rpt: first", "add.u ssa_8, ssa_1, ssa_2, rpt: 7"));
}

/// The lines of a block after scheduling.
fn scheduled(lines: &[&str]) -> Vec<String> {
    let (mut program, target) = (program(lines), a660());
    assert!(before::is_needed(&program));
    before::run(&mut program, &target, target.register_files(), FREE);
    let text = write(&program);
    text.lines().filter_map(|line| line.split_once(": \t")).map(|(_, line)| line.trim().to_owned()).collect()
}

#[test]
fn registers_cost_no_waves() {
    // Each load is added at once; issuing all loads first would be fastest, but each would occupy four registers.
    let mut lines =
        vec!["mov.u32u32 ssa_1, imm[0.000000,4,0x4]".to_owned(), "mov.u32u32 ssa_2, imm[0.000000,0,0x0]".to_owned()];
    let mut sum = 2;
    for _ in 0..40 {
        let n = lines.len() + 1;
        lines.push(format!("ldl ssa_{n} (wrmask=0xf), ssa_1, imm[0.000000,0,0x0], imm[0.000000,4,0x4] // {{type=u32, components=4, space=shared}}"));
        for part in 0..4 {
            let split = lines.len() + 1;
            lines.push(format!("_meta:split ssa_{split}, ssa_{n} (wrmask=0xf), off={part}"));
            lines.push(format!("add.u ssa_{}, ssa_{split}, ssa_{sum}", split + 1));
            sum = split + 1;
        }
    }
    lines.push(format!("stl ssa_1, ssa_{sum}, imm[0.000000,1,0x1] // {{type=u32, components=1, space=shared}}"));
    let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
    let found = scheduled(&lines);
    let (mut alive, mut most) = (0i32, 0);
    for line in &found {
        alive += 4 * i32::from(line.starts_with("ldl")) - i32::from(line.starts_with("add.u"));
        most = most.max(alive);
    }
    let target = a660();
    let enough = 4 * target.registers_without_loss(&workload(&program(&lines)), 3) as i32;
    assert!((4..=enough - 2).contains(&most), "{most} at a time, {enough} without loss");
}

/// A prefetch writes its register before the program starts, so nothing may use that register before it.
#[test]
fn prefetches_stay_before_all_instructions() {
    let found = scheduled(&[
        "_meta:in ssa_1 (wrmask=0x3)",
        "_meta:in ssa_2",
        "_meta:in ssa_3",
        "_meta:tex_prefetch ssa_4 (wrmask=0xf), ssa_1 (wrmask=0x3), tex=1, samp=1, input_offset=0 // {type=f32}",
        "_meta:tex_prefetch ssa_5 (wrmask=0xf), ssa_1 (wrmask=0x3), tex=2, samp=2, input_offset=2 // {type=f32}",
        "mov.u32u32 ssa_6, imm[0.000000,4,0x4]",
        "add.u ssa_7, ssa_6, ssa_2",
        "add.u ssa_8, ssa_7, ssa_6",
        "add.u ssa_9, ssa_3, imm[0.000000,4,0x4]",
        "add.u ssa_10, ssa_9, imm[0.000000,5,0x5]",
        "_meta:split ssa_11, ssa_4 (wrmask=0xf), off=0",
        "_meta:split ssa_12, ssa_5 (wrmask=0xf), off=0",
        "add.f ssa_13, ssa_11, ssa_12",
        "stl ssa_8, ssa_13, imm[0.000000,1,0x1] // {type=u32, components=1, space=shared}",
        "stl ssa_8, ssa_10, imm[0.000000,1,0x1] // {type=u32, components=1, space=shared}",
    ]);
    let last = found.iter().rposition(|line| line.contains("tex_prefetch")).unwrap();
    assert_eq!(last, 4, "{found:#?}");
    assert!(!found[7].contains("ssa_8"), "it is another order: {found:#?}");
}
