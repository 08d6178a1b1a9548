//! Loop rotation: `while` becomes `if` and `do while`. The exit test of the header is done before the loop and at its
//! end instead.
//!
//! The header H has phis, pure instructions, and a branch to the body B or to the exit E. A copy of H with the values
//! from before the loop (the *guard*) takes its place. A second copy with the values of the latch (the *test*) follows
//! the latch. Both branch as H did. An exit block in the middle of the loop that only computes moves after its end.
//! Every value that H defined has two definitions now and needs a phi at their join: in B for the body, in E for
//! the code after the loop. A loop is left alone if a value of its header is read where neither B nor E dominates, or
//! if the header has effects.

use super::edit::{
    consts_change, encodes, full_src, has_predication, insert, is_pure, move_attrs, operation, physical_is_logical,
    renew_physical,
};
use super::loops::{LoopAnalysis, NaturalLoop, loops};
use ir3_compiler::ir3::{
    Block, BlockData, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Src, SrcOperand, Value, ValueData,
};
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;
use rustc_hash::FxHashMap;

/// The replacement of each value of the header at another point.
type Replacements = FxHashMap<Value, Src>;

/// Rotates loops; false if there are none of that form.
pub(super) fn loops_rotated(program: &mut Program, target: &Target, _: &mut Random) -> bool {
    if has_predication(program) || !physical_is_logical(program) {
        return false;
    }
    let mut any = false;
    let headers: Vec<Block> = loops(program, &LoopAnalysis::new(program).dominators).iter().map(|l| l.header).collect();
    for header in headers {
        // A rotation invalidates the analysis.
        let analysis = LoopAnalysis::new(program);
        let found = loops(program, &analysis.dominators).into_iter().find(|l| l.header == header);
        if let Some(plan) = found.and_then(|the_loop| Rotation::plan(program, &analysis, &the_loop)) {
            plan.run(program, target, &analysis);
            any = true;
        }
    }
    any
}

struct Rotation {
    header: Block,
    before: Block,
    latch: Block,
    body: Block,
    exit: Block,
    /// The values of the header that are read elsewhere.
    needed: Vec<Value>,
}

fn per_lane(class: RegClass) -> bool {
    matches!(class.file, RegFile::General | RegFile::Predicate)
}

/// Returns true if the block has no effects, so that it does not matter when lanes run it.
fn only_computes(program: &Program, block: Block) -> bool {
    let consts_change = consts_change(program);
    program.blocks[block].instrs.iter().all(|&instr| {
        let data = &program.instrs[instr];
        is_pure(data, consts_change) || matches!(data.opcode, Opcode::Phi | Opcode::Jump)
    })
}

impl Rotation {
    fn plan(program: &Program, analysis: &LoopAnalysis, the_loop: &NaturalLoop) -> Option<Self> {
        let &NaturalLoop { header, before, latch, .. } = the_loop;
        let data = &program.blocks[header];
        let [Some(first), Some(second)] = data.successors else { return None };
        let (body, exit) = match (the_loop.body.contains(first), the_loop.body.contains(second)) {
            (true, false) => (first, second),
            (false, true) => (second, first),
            _ => return None,
        };
        let place = |block: Block| program.layout.iter().position(|&b| b == block);
        let is_last =
            program.layout.iter().filter(|&&block| the_loop.body.contains(block)).all(|&b| place(b) <= place(latch));
        let starts_with_phi = |block: Block| {
            program.blocks[block].instrs.first().is_some_and(|&i| program.instrs[i].opcode == Opcode::Phi)
        };
        if header == latch
            || body == header
            || program.blocks[body].predecessors[..] != [header]
            || starts_with_phi(body)
            || !is_last
            || place(exit) <= place(latch) && !only_computes(program, exit)
            || !data.keeps.is_empty()
        {
            return None;
        }
        let consts_change = consts_change(program);
        let (&terminator, others) = data.instrs.split_last()?;
        if !matches!(program.instrs[terminator].opcode, Opcode::Br | Opcode::Braa | Opcode::Brao) {
            return None;
        }
        let mut values = Vec::new();
        for &instr in others {
            let data = &program.instrs[instr];
            let movable = match data.opcode {
                Opcode::Phi => {
                    let in_general = |src: &Src| src.class.file == RegFile::General;
                    data.srcs.iter().all(|src| match src.operand {
                        SrcOperand::Place(Place::Value(_)) => per_lane(src.class),
                        SrcOperand::Immediate(_) => in_general(src),
                        SrcOperand::Const(_) => in_general(src) && !consts_change,
                        _ => false,
                    }) && matches!(data.dsts[0].place, Place::Value(_))
                }
                _ => is_pure(data, consts_change),
            };
            if !movable {
                return None;
            }
            values.extend(data.dsts.iter().filter_map(|dst| dst.value()));
        }
        // B or E must dominate every read of a value of the header.
        let mut needed = Vec::new();
        for (block, instr) in program.iter_instrs() {
            let data = &program.instrs[instr];
            for (i, src) in data.srcs.iter().enumerate() {
                let Some(value) = src.value().filter(|value| values.contains(value)) else { continue };
                let at = if data.opcode == Opcode::Phi { program.blocks[block].predecessors[i] } else { block };
                if at == header {
                    // A read in the header itself, or by a phi of the exit.
                    continue;
                }
                if !analysis.dominators.dominates(body, at) && !analysis.dominators.dominates(exit, at) {
                    return None;
                }
                if !needed.contains(&value) {
                    needed.push(value);
                }
            }
        }
        // Keeps the order of definitions.
        values.retain(|value| needed.contains(value));
        Some(Self { header, before, latch, body, exit, needed: values })
    }

    fn run(&self, program: &mut Program, target: &Target, analysis: &LoopAnalysis) {
        let in_body: Replacements = self.phis(program, self.body);
        rename(program, self.header, &in_body, |at| analysis.dominators.dominates(self.body, at));
        let guard = program.blocks.push(BlockData::default());
        let test = program.blocks.push(BlockData::default());
        let first = self.copy(program, target, guard, self.before);
        let later = self.copy(program, target, test, self.latch);
        for &value in &self.needed {
            self.fill(program, &in_body[&value], &[first[&value], later[&value]]);
        }
        self.lead(program, guard, test);

        // In the exit, two edges replace the edge from the header.
        let from = program.blocks[self.exit].predecessors.clone();
        let k = from.iter().position(|&block| block == self.header).unwrap_or(0);
        for instr in program.blocks[self.exit].instrs.clone() {
            let data = &mut program.instrs[instr];
            if data.opcode != Opcode::Phi {
                break;
            }
            let src = data.srcs[k];
            let renamed = |map: &Replacements| src.value().and_then(|value| map.get(&value)).copied().unwrap_or(src);
            data.srcs[k] = renamed(&first);
            data.srcs.push(renamed(&later));
        }
        let after: Replacements = self.phis(program, self.exit);
        for &value in &self.needed {
            let mut srcs = vec![in_body[&value]; from.len() + 1];
            srcs[k] = first[&value];
            srcs[from.len()] = later[&value];
            self.fill(program, &after[&value], &srcs);
        }
        rename(program, self.header, &after, |at| analysis.dominators.dominates(self.exit, at));
        program.blocks[self.exit].predecessors[k] = guard;
        program.blocks[self.exit].predecessors.push(test);
        let of_header = std::mem::take(&mut program.blocks[self.header]);
        program.blocks[self.body].reconvergence_point |= of_header.reconvergence_point;
        for (block, before) in [(guard, self.before), (test, self.latch)] {
            let data = &mut program.blocks[block];
            data.successors = of_header.successors;
            data.divergent = of_header.divergent;
            data.predecessors.push(before);
        }
        for place in &mut program.layout {
            if *place == self.header {
                *place = guard;
            }
        }
        let place = |program: &Program, block| program.layout.iter().position(|&b| b == block);
        let after = |program: &Program| place(program, self.latch).map_or(program.layout.len(), |i| i + 1);
        let test_place = after(program);
        program.layout.insert(test_place, test);
        // An exit block in the middle of the loop moves after its end, where the test is.
        if let Some(exit) = place(program, self.exit).filter(|&exit| exit < test_place) {
            program.layout.remove(exit);
            program.layout.insert(test_place, self.exit);
        }
        program.block_names.clear();
        renew_physical(program);
    }

    /// Redirects the edges from the entry and the latch, and the edges into the body.
    fn lead(&self, program: &mut Program, guard: Block, test: Block) {
        for (from, to) in [(self.before, guard), (self.latch, test)] {
            for successor in program.blocks[from].successors.iter_mut().flatten() {
                if *successor == self.header {
                    *successor = to;
                }
            }
        }
        program.blocks[self.body].predecessors = [guard, test].into_iter().collect();
    }

    /// Appends a phi without sources for each needed value to the phis of a block.
    fn phis(&self, program: &mut Program, block: Block) -> Replacements {
        let mut renamed = Replacements::default();
        let phis = |&&instr: &&Instr| program.instrs[instr].opcode == Opcode::Phi;
        let start = program.blocks[block].instrs.iter().take_while(phis).count();
        for (i, &value) in self.needed.iter().enumerate() {
            let ValueData { class, components, .. } = program.values[value];
            let mut phi = operation(Opcode::Phi, class, &[], Default::default());
            phi.dsts[0].mask = ir3_compiler::ir3::WriteMask::first(u32::from(components));
            let phi = insert(program, block, start + i, phi);
            renamed.insert(value, full_src(program, phi));
        }
        renamed
    }

    /// Sets the sources of a phi.
    fn fill(&self, program: &mut Program, phi: &Src, srcs: &[Src]) {
        if let Some(value) = phi.value() {
            let instr = program.values[value].instr;
            program.instrs[instr].srcs = srcs.iter().map(|src| Src { mask: phi.mask, ..*src }).collect();
        }
    }

    /// Fills `block` with a copy of the header, specialised to the predecessor `from`; returns the replacements of its
    /// values.
    fn copy(&self, program: &mut Program, target: &Target, block: Block, from: Block) -> Replacements {
        let mut renamed = Replacements::default();
        let k = program.blocks[self.header].predecessors.iter().position(|&b| b == from).unwrap_or(0);
        for instr in program.blocks[self.header].instrs.clone() {
            let mut data: InstrData = program.instrs[instr].clone();
            if let (Opcode::Phi, Some(value)) = (data.opcode, data.dsts.first().and_then(|dst| dst.value())) {
                renamed.insert(value, data.srcs[k]);
                continue;
            }
            for i in 0..data.srcs.len() {
                let src = data.srcs[i];
                let Some(&other) = src.value().and_then(|value| renamed.get(&value)) else { continue };
                data.srcs[i].operand = other.operand;
                if !encodes(target, &data) {
                    // If an immediate cannot be encoded, move it to a register first.
                    let index = program.blocks[block].instrs.len();
                    let number = Src { mods: Default::default(), flags: Default::default(), ..other };
                    let mov = operation(Opcode::Mov, other.class, &[number], move_attrs(other.class));
                    let value = insert(program, block, index, mov);
                    data.srcs[i].operand = SrcOperand::Place(Place::Value(value));
                }
            }
            let index = program.blocks[block].instrs.len();
            match data.dsts.first().and_then(|dst| dst.value()) {
                Some(value) => {
                    let copy = insert(program, block, index, data);
                    renamed.insert(value, full_src(program, copy));
                }
                None => {
                    let copy = program.instrs.push(data);
                    program.blocks[block].instrs.push(copy);
                }
            }
        }
        renamed
    }
}

/// Replaces the values of a map by others, at the points selected by `there`. A phi reads at the end of a predecessor.
fn rename(program: &mut Program, except: Block, map: &Replacements, selected: impl Fn(Block) -> bool) {
    for block in program.layout.clone() {
        let from = program.blocks[block].predecessors.clone();
        for instr in program.blocks[block].instrs.clone() {
            let data = &mut program.instrs[instr];
            let is_phi = data.opcode == Opcode::Phi;
            // The sources of the new phis are already set.
            let given =
                data.dsts.iter().filter_map(|dst| dst.value()).any(|v| map.values().any(|src| src.value() == Some(v)));
            if given {
                continue;
            }
            for (i, src) in data.srcs.iter_mut().enumerate() {
                let at = if is_phi { from[i.min(from.len() - 1)] } else { block };
                if at == except && !is_phi || !selected(at) {
                    continue;
                }
                if let Some(other) = src.value().and_then(|value| map.get(&value)).and_then(|src| src.value()) {
                    src.set_value(other);
                }
            }
        }
    }
}
