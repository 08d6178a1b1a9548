//! Our statistics and our rules of occupancy compared with Mesa's own statistics, on Mesa's own final programs.

use super::common;

use ir3_compiler::ir3::text::read;
use ir3_compiler::ir3::{CodeOrder, InstrFlags, Program, branchstack};
use ir3_compiler::machine::{encoding, listing};
use ir3_compiler::stats::Stats;
use ir3_compiler::target::Target;
use ir3_compiler::target::occupancy::{WorkKind, Workload};
use ir3_programs::mesa::{Log, SectionKind, Source, mesa_counts};
use std::path::Path;

fn target(path: &Path) -> Target {
    let folder = path.parent().and_then(Path::file_name).unwrap().to_str().unwrap();
    Target::by_name(folder.split('-').next().unwrap()).unwrap()
}

#[test]
fn final_programs_cost_what_mesa_says() {
    let Some(paths) = common::some_logs() else { return };
    let (mut variants, mut errors) = (0, Vec::new());
    for path in &paths {
        let source = Source::read(path).unwrap();
        let log = Log::read(path, &source.text).unwrap();
        let is_final = |kind: &SectionKind| matches!(kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize");
        let programs = log.sections.iter().filter(|section| is_final(&section.kind));
        let statistics = log.statistics();
        assert_eq!(programs.clone().count(), statistics.len(), "{}", path.display());
        for (section, statistics) in programs.zip(&statistics) {
            let target = target(path);
            let mut program = read(&section.text).unwrap();
            program.stage = statistics.shader_stage();
            let ours = mesa_counts(&program, &target);
            variants += 1;
            let said = statistics.to_stats(&ours);
            if ours != said {
                errors.push(format!("{} {}:\n  {ours:?}\n  {said:?}", path.display(), statistics.stage));
            }
        }
    }
    println!("{variants} programs, {} counted otherwise", errors.len());
    for error in errors.iter().take(20) {
        println!("{error}");
    }
    assert!(errors.is_empty());
}

#[test]
fn waves_are_those_that_mesa_says() {
    let Some(paths) = common::some_logs() else { return };
    let mut checked = 0;
    for path in &paths {
        let source = Source::read(path).unwrap();
        let log = Log::read(path, &source.text).unwrap();
        let size = log.sections.iter().flat_map(|s| s.text.lines()).find_map(|l| l.strip_prefix("workgroup_size: "));
        let threads = size.map(|size| size.split(", ").map(|n| n.parse::<u32>().unwrap()).product());
        for statistics in log.statistics() {
            let Some(said) = statistics.waves else { continue };
            let kind = match statistics.stage.as_str() {
                "FRAG" => WorkKind::Fragment,
                "CL" => WorkKind::Compute { threads, shared_size: said.shared_size.unwrap(), barrier: false },
                _ => WorkKind::Geometry,
            };
            let work = Workload::new(kind).with_branchstack(said.branchstack.unwrap());
            let full = statistics.get("full").unwrap() as u32;
            let target = target(path);
            let ours = target.occupancy(&work, full);
            assert_eq!((ours.double, ours.waves), (said.double, said.max_waves), "{}: {work:?}", path.display());
            // Mesa never uses so many registers that they cost a wave.
            assert!(target.registers_without_loss(&work, full) >= full);
            checked += 1;
        }
    }
    println!("{checked} programs");
    assert!(checked > 200, "only {checked}");
}

/// Returns true if there are nested loops.
fn has_nested_loops(program: &Program) -> bool {
    let order = CodeOrder::new(program);
    let loops: Vec<[u32; 2]> = program
        .layout
        .iter()
        .flat_map(|&block| program.blocks[block].successors().map(move |to| [to, block]))
        .map(|edge| edge.map(|block| order.place(block)))
        .filter(|[header, latch]| header <= latch)
        .collect();
    let inside = |[header, latch]: [u32; 2], [outer, end]: [u32; 2]| header > outer && latch <= end;
    loops.iter().any(|&inner| loops.iter().any(|&outer| inside(inner, outer)))
}

/// Mesa's stack of branches is one deeper than the final program needs for some programs with nested loops, and two
/// deeper for programs that had a scan: its macro counts as three branches, of which the final program has one. For all
/// other programs it is the same.
#[test]
fn the_stack_of_branches_is_as_deep_as_mesa_says() {
    let Some(paths) = common::some_logs() else { return };
    let (mut same, mut fewer) = (0, 0);
    for path in &paths {
        let source = Source::read(path).unwrap();
        let log = Log::read(path, &source.text).unwrap();
        let has_scan = source.text.contains("scan.macro") || source.text.contains("scan_clusters.macro");
        let is_final = |kind: &SectionKind| matches!(kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize");
        let programs = log.sections.iter().filter(|section| is_final(&section.kind));
        for (section, statistics) in programs.zip(&log.statistics()) {
            let Some(said) = statistics.waves else { continue };
            let program = read(&section.text).unwrap();
            let ours = branchstack(&program);
            let depth = said.branchstack.unwrap();
            let more = u32::from(has_nested_loops(&program)) + if has_scan { 2 } else { 0 };
            assert!(ours <= depth && depth <= ours + more, "{}: {ours} for {said:?}", path.display());
            if ours == depth {
                same += 1;
            } else {
                fewer += 1;
            }
        }
    }
    println!("{same} as deep, {fewer} less");
    assert!(same > 0, "no program has a figure");
}

/// Adds `(ei)` and `(eq)`, which are in Mesa's words and not in the text of its last pass.
fn add_releases(program: &mut Program, assembly: &str, target: &Target) {
    let lines: String = assembly.lines().filter(|line| !line.starts_with('@')).flat_map(|line| [line, "\n"]).collect();
    let mut words = listing::assemble(target.generation, &lines).unwrap().into_iter();
    let instrs: Vec<_> = program.iter_instrs().map(|(_, instr)| instr).collect();
    for instr in instrs {
        if !program.instrs[instr].opcode.is_meta() {
            let decoded = encoding::decode(target.generation, words.next().unwrap()).unwrap();
            program.instrs[instr].flags |= decoded.data.flags & (InstrFlags::EI | InstrFlags::EQ);
        }
    }
}

/// `constlen` of Mesa is longer where it reads at `a0.x`.
#[test]
fn varyings_helper_lanes_and_constants_end_where_mesa_says() {
    let Some(paths) = common::some_logs() else { return };
    let (mut programs, mut longer, mut errors) = (0, 0, Vec::new());
    for path in &paths {
        let source = Source::read(path).unwrap();
        let log = Log::read(path, &source.text).unwrap();
        let is_final = |kind: &SectionKind| matches!(kind, SectionKind::Ir3After { pass } if pass == "ir3_legalize");
        let finals = log.sections.iter().filter(|section| is_final(&section.kind));
        let native = log.sections.iter().filter(|section| matches!(section.kind, SectionKind::NativeCode));
        for ((section, statistics), native) in finals.zip(&log.statistics()).zip(native) {
            let target = target(path);
            let mut program = read(&section.text).unwrap();
            program.stage = statistics.shader_stage();
            add_releases(&mut program, &native.text, &target);
            let ours = Stats::of_final(&program, &target);
            let said = ["last-baryf", "last-helper", "constlen"].map(|name| statistics.get(name).unwrap() as u32);
            let ours = [ours.last_baryf, ours.last_helper, ours.constlen];
            programs += 1;
            if ours[..2] != said[..2] || ours[2] > said[2] {
                errors.push(format!("{} {}: {ours:?} for {said:?}", path.display(), statistics.stage));
            }
            longer += u32::from(ours[2] < said[2]);
        }
    }
    println!("{programs} programs, {} counted otherwise, {longer} with a longer constlen", errors.len());
    errors.iter().take(40).for_each(|error| println!("{error}"));
    assert!(errors.is_empty() && longer < 20);
}
