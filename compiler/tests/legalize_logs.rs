//! Legalisation, compared with Mesa's: its logs have each program before and after it.

use crate::common::gpu::gpu;
use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::delays::nops::Delays;
use ir3_compiler::ir3::text::{read, write};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{
    Attrs, Block, Category, InstrData, InstrFlags, Opcode, OperandFlags, Place, Program, ShaderStage,
};
use ir3_compiler::legalize;
use ir3_compiler::machine::Code;
use ir3_compiler::stats::{Stats, Waits};
use ir3_compiler::target::{DelaySlots, Target};
use std::collections::BTreeMap;

/// The instructions in the order of the code; a branch has the distance to its target. Without `nops`, those that only
/// take time are left out.
fn code(program: &Program, nops: bool) -> Vec<(InstrData, Option<i32>)> {
    let marks = InstrFlags::SS | InstrFlags::SY | InstrFlags::EQ | InstrFlags::JP;
    let is_code = |data: &InstrData| match data.opcode {
        Opcode::Nop => nops || data.flags.intersects(marks),
        opcode => !opcode.is_meta() || opcode == Opcode::TexPrefetch,
    };
    let mut starts: BTreeMap<Block, i32> = BTreeMap::new();
    let mut code = Vec::new();
    for &block in &program.layout {
        starts.insert(block, code.len() as i32);
        let instrs = program.blocks[block].instrs.iter().map(|&instr| program.instrs[instr].clone());
        code.extend(instrs.filter(is_code));
    }
    let ahead = |(at, mut data): (usize, InstrData)| {
        let target = match data.attrs {
            Attrs::Branch { target: Some(target) } => Some(starts[&target] - at as i32),
            _ => None,
        };
        if !nops {
            data.nop = 0;
            data.repeat = if data.opcode == Opcode::Nop { 0 } else { data.repeat };
        }
        if data.opcode.category() == Category::Flow {
            data.attrs = Attrs::None;
        }
        // Mesa numbers varyings anew in between.
        if matches!(data.opcode, Opcode::BaryF | Opcode::FlatB | Opcode::Ldlv) {
            data.srcs.remove(0);
        }
        data.unconstrain();
        let marks = OperandFlags::KILL | OperandFlags::FIRST_KILL | OperandFlags::UNUSED;
        data.srcs.iter_mut().for_each(|src| src.flags -= marks);
        data.dsts.iter_mut().for_each(|dst| dst.flags -= marks);
        (data, target)
    };
    code.into_iter().enumerate().map(ahead).collect()
}

/// `(eq)` and `(ei)` are in the assembly only, which has the same instructions in the same order.
fn mark(program: &mut Program, native: &str) {
    for (flag, name, opcodes) in
        [(InstrFlags::EQ, "(eq)", &[Opcode::Nop][..]), (InstrFlags::EI, "(ei)", &[Opcode::BaryF, Opcode::FlatB])]
    {
        let lines = native.lines().skip(1).map_while(|line| line.strip_prefix("MESA: info: "));
        let mut lines =
            lines.filter(|line| opcodes.iter().any(|opcode| line.split(' ').any(|word| word.ends_with(opcode.name()))));
        let instrs: Vec<_> = program.iter_instrs().map(|(_, instr)| instr).collect();
        for instr in instrs {
            if opcodes.contains(&program.instrs[instr].opcode) {
                let line = lines.next().expect("as many lines");
                program.instrs[instr].flags.set(flag, line.contains(name));
            }
        }
    }
}

fn stage(native: &str) -> Option<ShaderStage> {
    Some(match native.split(' ').find(|word| word.chars().all(|c| c.is_ascii_uppercase()))? {
        "VERT" => ShaderStage::Vertex,
        "TCS" => ShaderStage::TessControl,
        "TES" => ShaderStage::TessEval,
        "GEOM" => ShaderStage::Geometry,
        "FRAG" => ShaderStage::Fragment,
        _ => ShaderStage::Compute,
    })
}

/// Issue slots, `(ss)`, `(sy)`, `(jp)`.
fn cost(program: &Program) -> [u32; 4] {
    let mut cost = [0; 4];
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if !data.opcode.is_meta() {
            let has = |flag| u32::from(data.flags.contains(flag));
            let slots = 1 + u32::from(data.repeat) + u32::from(data.nop);
            let more = [slots, has(InstrFlags::SS), has(InstrFlags::SY), has(InstrFlags::JP)];
            cost.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    cost
}

/// Why Mesa's program may differ from ours.
fn reason(mesa: &Program) -> Option<&'static str> {
    let opcode = |instr| mesa.instrs[instr].opcode;
    let place = |block: Block| mesa.layout.iter().position(|&other| other == block);
    let back = |&block: &Block| mesa.blocks[block].successors().any(|to| place(to) <= place(block));
    let barrier = |&block: &Block| {
        let last = mesa.blocks[block].instrs.iter().rev().find(|&&instr| !opcode(instr).is_terminator());
        last.is_some_and(|&last| opcode(last).category() == Category::Barrier)
    };
    if mesa.layout.iter().any(back) {
        // It visits blocks of loops again with the nops that it has inserted before, does not count those in `(nopN)`,
        // and keeps nops that carried a flag.
        Some("loops")
    } else if mesa.iter_instrs().any(|(_, instr)| opcode(instr) == Opcode::Prede) {
        // It inserts `prede` and its nops after all others, which do not count them.
        Some("predication")
    } else if mesa.layout.iter().any(barrier) {
        // It has the flags after a barrier on a jump, which it removes.
        Some("barriers")
    } else if mesa.iter_instrs().any(|(_, instr)| opcode(instr) == Opcode::Kill) {
        // It takes a branch to the next block for one that may go back.
        Some("kills")
    } else if mesa.iter_instrs().any(|(_, instr)| is_relative(&mesa.instrs[instr])) {
        // Its text does not give the start of the array of a relative access.
        Some("relative accesses")
    } else {
        None
    }
}

fn is_relative(data: &InstrData) -> bool {
    let relative = |place: Option<&Place>| matches!(place, Some(Place::Relative { .. }));
    data.dsts.iter().any(|dst| relative(Some(&dst.place))) || data.srcs.iter().any(|src| relative(src.place()))
}

/// The first difference of two programs; none if they are equal.
fn difference(ours: &Program, mesa: &Program, nops: bool) -> Option<String> {
    let (found, expected) = (code(ours, nops), code(mesa, nops));
    let at = (0..found.len().max(expected.len())).find(|&i| expected.get(i) != found.get(i))?;
    let show = |item: Option<&(InstrData, Option<i32>)>| {
        item.map(|(data, target)| {
            format!("{} {:?} {:?} {:?} to {target:?}", data.opcode, data.flags, data.dsts, data.srcs)
        })
    };
    Some(format!("at {at}: {:?} not {:?}", show(found.get(at)), show(expected.get(at))))
}

/// The share of equal programs of one folder.
#[derive(Default)]
struct Share {
    programs: u32,
    equal: u32,
    ours: [u32; 4],
    mesa: [u32; 4],
}

#[test]
fn as_mesa_does_it() {
    let all = std::env::var("IR3_LOGS").is_ok_and(|wanted| wanted == "all");
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (folder, files) in logs() {
        // Mesa 25.0 printed them.
        let target = Target { delay_slots: DelaySlots::LONG, ..gpu(&folder) };
        let share = shares.entry(folder).or_default();
        for file in files.iter().step_by(if all { 1 } else { 8 }) {
            let log = text(file);
            let mut before = None;
            let mut native = log.split("MESA: info: Native code for ").skip(1);
            for (title, text) in passes(&log) {
                if title != "ir3_legalize" {
                    before = Some(text);
                    continue;
                }
                let name = file.display();
                let native = native.next().unwrap();
                let mut mesa = read(text).unwrap();
                mark(&mut mesa, native);
                mesa.stage = stage(native);
                let Waits { ss, sy, sstall, systall } = Stats::of(&mesa, &target).waits;
                let counted = format!("{sstall} sstall, {ss} (ss), {systall} systall, {sy} (sy)");
                // On a7xx a lock is put around compute shaders after this, with waits of its own.
                let is_as_printed = native.contains(&counted) || native.contains("unlock");
                assert!(is_as_printed, "{}: {counted}", file.display());
                let mut ours = read(before.take().unwrap()).unwrap();
                ours.stage = stage(native);
                legalize::run(&mut ours, &target);
                // It is a valid program that needs no more nops, has a text, and can be flattened.
                validate(&ours, &target, Form::Machine).unwrap_or_else(|broken| panic!("{name}: {}", broken[0]));
                let delays = Delays::of(&ours, &target);
                assert!(ours.iter_instrs().all(|(_, instr)| delays.before(instr) == 0), "{name}");
                assert_eq!(read(&write(&ours)).ok(), ours.canonical(), "{name}");
                Code::from_program(&ours).unwrap_or_else(|error| panic!("{name}: {error}"));
                share.programs += 1;
                for (sum, program) in [(&mut share.ours, &ours), (&mut share.mesa, &mesa)] {
                    sum.iter_mut().zip(cost(program)).for_each(|(sum, more)| *sum += more);
                }
                let Some(difference_in_all) = difference(&ours, &mesa, true) else {
                    share.equal += 1;
                    continue;
                };
                let why = reason(&mesa).unwrap_or_else(|| panic!("{name}: {difference_in_all}"));
                let entry = reasons.entry(why).or_insert((0, 0));
                entry.0 += 1;
                match difference(&ours, &mesa, false) {
                    Some(difference) => println!("{name}, {why}: {difference}"),
                    None => entry.1 += 1,
                }
            }
        }
    }
    for (folder, Share { programs, equal, ours, mesa }) in &shares {
        println!("{folder}: {equal} of {programs} equal; slots, (ss), (sy), (jp): {ours:?}, Mesa {mesa:?}");
        // Barriers before jumps have flags that Mesa loses.
        assert!(ours[0] <= mesa[0] && ours[1] <= mesa[1] + 10 && ours[2] <= mesa[2] + 10, "{folder}");
    }
    let sum = |of: fn(&Share) -> u32| shares.values().map(of).sum::<u32>();
    let (equal, programs) = (sum(|share| share.equal), sum(|share| share.programs));
    println!(
        "{equal} of {programs} equal; others, and those that differ in nops only, by what Mesa's has: {reasons:?}"
    );
    assert!(equal * 2 >= programs);
}
