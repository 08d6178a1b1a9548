//! Counts the cases of predicate allocation in programs of the profile `predicates`: a campaign without them would find
//! nothing.

use std::collections::{HashMap, HashSet};

use ir3_compiler::compilation;
use ir3_compiler::ir3::{Block, Instr, InstrData, Opcode, Program, RegFile, Value};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_programs::generator;
use ir3_programs::generator::{Features, Profile};
use ir3_programs::seeds::program_seed;

/// The numbers of programs with each property.
#[derive(Debug, Default)]
struct Census {
    programs: u32,
    /// More predicates are live at one point than there are registers.
    crowded: u32,
    /// A block reads a register that another one has written.
    across_blocks: u32,
    /// A loop reads a register that was written before it.
    into_loops: u32,
    /// A comparison is rematerialised.
    clones: u32,
    /// One is rematerialised at the end of a back edge.
    restored: u32,
    /// A definition has moved to its first use.
    put_off: u32,
    /// Ballots, elections and subgroup votes.
    votes: u32,
    /// Bitwise operations write predicates, or branches read two.
    trees: u32,
}

fn reads(data: &InstrData) -> impl Iterator<Item = &ir3_compiler::ir3::Src> {
    data.srcs.iter().filter(|src| src.class.file == RegFile::Predicate)
}

fn writes(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.class.file == RegFile::Predicate)
}

/// The largest number of predicates that are live at one point.
fn most_alive(program: &Program) -> usize {
    let mut live_in: HashMap<Block, HashSet<Value>> = HashMap::new();
    let mut most = 0;
    let mut again = true;
    while again {
        again = false;
        for &block in program.layout.iter().rev() {
            let mut live: HashSet<Value> =
                program.blocks[block].successors().filter_map(|next| live_in.get(&next)).flatten().copied().collect();
            for &instr in program.blocks[block].instrs.iter().rev() {
                let data = &program.instrs[instr];
                for value in data.dsts.iter().filter_map(|dst| dst.value()) {
                    live.remove(&value);
                }
                live.extend(reads(data).filter_map(|src| src.value()));
                most = most.max(live.len());
            }
            again |= live_in.get(&block) != Some(&live);
            live_in.insert(block, live);
        }
    }
    most
}

impl Census {
    fn add(&mut self, before: &Program, after: &Program, registers: usize) {
        let is_new = |instr: Instr| usize::try_from(instr.as_u32()).unwrap() >= before.instrs.len();
        let place: HashMap<Block, usize> = after.layout.iter().enumerate().map(|(at, &block)| (block, at)).collect();
        let old_block: HashMap<Instr, Block> = before.iter_instrs().map(|(block, instr)| (instr, block)).collect();
        // The loops, from header to the last back edge.
        let mut loops = Vec::new();
        for &block in &after.layout {
            for next in after.blocks[block].successors().filter(|next| place[next] <= place[&block]) {
                loops.push((place[&next], place[&block]));
            }
        }
        let (mut across, mut into, mut clones, mut restored, mut put_off) = (false, false, false, false, false);
        for &block in &after.layout {
            let mut written = HashSet::new();
            for &instr in &after.blocks[block].instrs {
                let data = &after.instrs[instr];
                for src in reads(data).filter(|src| !written.contains(&src.place().and_then(|place| place.reg()))) {
                    across = true;
                    let reg = src.place().and_then(|place| place.reg());
                    into |= loops.iter().any(|&(start, end)| {
                        let inside = start <= place[&block] && place[&block] <= end;
                        inside
                            && after.layout[start..=end].iter().all(|&block| {
                                let list = &after.blocks[block].instrs;
                                list.iter().all(|&i| after.instrs[i].dsts.iter().all(|dst| dst.place.reg() != reg))
                            })
                    });
                }
                if !writes(data) {
                    continue;
                }
                written.insert(data.dsts[0].place.reg());
                clones |= is_new(instr);
                put_off |= old_block.get(&instr).is_some_and(|&old| old != block);
                // After it the block only jumps back.
                let back = after.blocks[block].successors().any(|next| place[&next] <= place[&block]);
                let list = &after.blocks[block].instrs;
                let rest = list.iter().skip_while(|&&other| other != instr).skip(1);
                restored |= back
                    && is_new(instr)
                    && rest.clone().all(|&i| after.instrs[i].opcode == Opcode::Jump || writes(&after.instrs[i]));
            }
        }
        let any = |wanted: &dyn Fn(&InstrData) -> bool| after.iter_instrs().any(|(_, i)| wanted(&after.instrs[i]));
        self.programs += 1;
        self.crowded += u32::from(most_alive(before) > registers);
        self.across_blocks += u32::from(across);
        self.into_loops += u32::from(into);
        self.clones += u32::from(clones);
        self.restored += u32::from(restored);
        self.put_off += u32::from(put_off);
        self.votes += u32::from(any(&|data| {
            use Opcode::*;
            matches!(data.opcode, AnyMacro | AllMacro | BallotMacro | ElectMacro | Getone | Bany | Ball)
        }));
        self.trees += u32::from(any(&|data| {
            use Opcode::*;
            writes(data) && matches!(data.opcode, AndB | OrB | XorB) || matches!(data.opcode, Braa | Brao)
        }));
    }
}

fn census(gpu: &str, programs: u64) -> Census {
    let target = Target::by_name(gpu).unwrap();
    let mut census = Census::default();
    for number in 0..programs {
        let generated = generator::from_seed(program_seed(5, number), Profile::Predicates, Features::of(&target));
        let mut before = None;
        let options = Options { last: Stage::Predicates, ..Options::default() };
        let mut last = None;
        let after = compilation::compile(&generated.shader, &target, &options, &mut |stage, program| {
            if stage == Stage::Predicates {
                before = last.take();
            } else {
                last = Some(program.clone());
            }
        });
        census.add(&before.unwrap(), &after.unwrap(), target.num_predicates as usize);
    }
    census
}

#[test]
fn four_registers() {
    let Census { programs, crowded, across_blocks, into_loops, clones, restored, put_off, votes, trees } = {
        let census = census("a660", 500);
        println!("{census:?}");
        census
    };
    assert_eq!(programs, 500);
    assert!(crowded >= 100 && clones >= 100, "{crowded} {clones}");
    assert!(across_blocks >= 180 && into_loops >= 25, "{across_blocks} {into_loops}");
    assert!(restored >= 6 && put_off >= 10, "{restored} {put_off}");
    assert!(votes >= 250 && trees >= 200, "{votes} {trees}");
}

#[test]
fn one_register() {
    let census = census("a540", 500);
    println!("{census:?}");
    assert!(census.crowded >= 150 && census.clones >= 150, "{census:?}");
    assert!(census.across_blocks >= 15 && census.put_off >= 25 && census.votes >= 250, "{census:?}");
}
