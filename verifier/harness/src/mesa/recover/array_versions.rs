//! Recovery of array versions that texts do not name.
//!
//! From `ir3_array_to_ssa` until allocation each write of an element defines a new version of the whole array. If each
//! access to an array names the version that was written last on every path, the versions, phis and copies can be
//! removed: all accesses then read and write one array in place. This is the form after allocation, and the one that
//! the register checker supports. A dataflow analysis of the versions that an array holds decides this for each array.
//! An undefined element of a version is then the previous content of the array: an unspecified value, as after
//! allocation. An array of which two versions are live at once keeps its versions.

use ir3_compiler::ir3::{
    Array, Block, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, Src, SrcOperand, Value,
};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The versions that the arrays hold at a point.
type Held = BTreeSet<Value>;

/// Removes the versions of each array that holds one version at a time.
pub(super) fn remove(program: &mut Program) {
    let is_versioned = program.iter_instrs().any(|(_, instr)| {
        let data = &program.instrs[instr];
        data.dsts.iter().any(|dst| matches!(dst.place, Place::Array(access) if access.value.is_some()))
    });
    if !is_versioned {
        return remove_copies_in_place(program);
    }
    let kept = Versions::new(program).find_kept();
    for block in program.layout.clone() {
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let is_left = |&instr: &Instr| strip(&mut program.instrs[instr], &kept);
        program.blocks[block].instrs = list.into_iter().filter(is_left).collect();
    }
    remove_dangling_keeps(program);
}

/// Returns true if an operand is an array whose versions are removed.
fn is_plain(place: Option<&Place>, kept: &FxHashSet<Array>) -> bool {
    matches!(place, Some(Place::Array(access)) if !kept.contains(&access.array))
}

/// Removes the versions from an instruction. Returns false if the instruction has become empty.
fn strip(data: &mut InstrData, kept: &FxHashSet<Array>) -> bool {
    match data.opcode {
        Opcode::Phi => return !is_plain(data.dsts.first().map(|dst| &dst.place), kept),
        Opcode::ParallelCopy => {
            let moved = |at: usize, data: &InstrData| !is_plain(data.dsts.get(at).map(|dst| &dst.place), kept);
            return retain_pairs(data, moved);
        }
        _ => {}
    }
    if data.dsts.iter().any(|dst| is_plain(Some(&dst.place), kept)) {
        data.srcs.retain(|src| !(src.flags.contains(OperandFlags::TIED) && is_plain(src.place(), kept)));
        data.dsts.iter_mut().for_each(|dst| dst.flags -= OperandFlags::TIED);
    }
    let srcs = data.srcs.iter_mut().filter_map(|src| match &mut src.operand {
        SrcOperand::Place(place) => Some(place),
        _ => None,
    });
    for place in data.dsts.iter_mut().map(|dst| &mut dst.place).chain(srcs) {
        if let Place::Array(access) = place
            && !kept.contains(&access.array)
        {
            access.value = None.into();
        }
    }
    true
}

/// Keeps the pairs of a parallel copy for which `is_moved` is true. Returns false if none remains.
fn retain_pairs(data: &mut InstrData, is_moved: impl Fn(usize, &InstrData) -> bool) -> bool {
    if data.dsts.len() != data.srcs.len() {
        return true;
    }
    let moved: Vec<bool> = (0..data.dsts.len()).map(|at| is_moved(at, data)).collect();
    let (mut dsts, mut srcs) = (moved.iter(), moved.iter());
    data.dsts.retain(|_| dsts.next().is_none_or(|&moved| moved));
    data.srcs.retain(|_| srcs.next().is_none_or(|&moved| moved));
    !data.dsts.is_empty()
}

/// The registers of a whole array after allocation.
fn registers(place: Option<&Place>, class: RegClass) -> Option<(PhysReg, RegClass)> {
    match place {
        Some(Place::Array(access)) if access.value.is_none() && !access.relative => {
            Some((access.base.expand()?, class))
        }
        _ => None,
    }
}

/// After allocation, removes phis and copies of arrays that stay in their registers.
fn remove_copies_in_place(program: &mut Program) {
    let stays = |src: &Src, to: (PhysReg, RegClass)| {
        src.operand == SrcOperand::Undef || registers(src.place(), src.class) == Some(to)
    };
    for block in program.layout.clone() {
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let is_left = |&instr: &Instr| {
            let data = &mut program.instrs[instr];
            let to =
                |data: &InstrData, at: usize| data.dsts.get(at).and_then(|dst| registers(Some(&dst.place), dst.class));
            match data.opcode {
                Opcode::Phi => !to(data, 0).is_some_and(|to| data.srcs.iter().all(|src| stays(src, to))),
                Opcode::ParallelCopy => {
                    retain_pairs(data, |at, data| !to(data, at).is_some_and(|to| stays(&data.srcs[at], to)))
                }
                _ => true,
            }
        };
        program.blocks[block].instrs = list.into_iter().filter(is_left).collect();
    }
    remove_dangling_keeps(program);
}

/// Removes instructions that are in no block (phis and copies) from the lists of kept instructions.
fn remove_dangling_keeps(program: &mut Program) {
    for block in program.layout.clone() {
        let data = &mut program.blocks[block];
        let instrs = &program.instrs;
        data.keeps.retain(|&instr| !matches!(instrs[instr].opcode, Opcode::Phi | Opcode::ParallelCopy));
    }
}

/// The dataflow analysis of the versions that arrays hold.
struct Versions<'a> {
    program: &'a Program,
    ends: cranelift_entity::SecondaryMap<Block, Option<Held>>,
    kept: FxHashSet<Array>,
}

impl<'a> Versions<'a> {
    fn new(program: &'a Program) -> Self {
        Self { program, ends: cranelift_entity::SecondaryMap::new(), kept: FxHashSet::default() }
    }

    /// The arrays that keep their versions: some access names a version that the array does not hold.
    fn find_kept(mut self) -> FxHashSet<Array> {
        loop {
            // Results that relied on discarded versions are derived again.
            self.kept.clear();
            let mut changed = false;
            for &block in &self.program.layout {
                let end = self.end(block);
                if self.ends[block].as_ref() != Some(&end) {
                    self.ends[block] = Some(end);
                    changed = true;
                }
            }
            if !changed {
                return self.kept;
            }
        }
    }

    fn end(&mut self, block: Block) -> Held {
        let program = self.program;
        let data = &program.blocks[block];
        let mut held: Option<Held> = None;
        for end in data.predecessors.iter().filter_map(|&from| self.ends[from].as_ref()) {
            held = Some(held.map_or_else(|| end.clone(), |held| held.intersection(end).copied().collect()));
        }
        let mut held = held.unwrap_or_default();
        // All phis of a block read the contents at the ends of their predecessors.
        for data in data.instrs.iter().map(|&instr| &program.instrs[instr]).filter(|data| data.opcode == Opcode::Phi) {
            if let Some(value) = data.dsts.first().and_then(|dst| version(&dst.place)) {
                held.remove(&value);
            }
        }
        for &instr in &data.instrs {
            let its = &program.instrs[instr];
            if its.opcode != Opcode::Phi {
                continue;
            }
            let Some(Place::Array(access)) = its.dsts.first().map(|dst| &dst.place) else { continue };
            let holds =
                its.srcs.iter().zip(&data.predecessors).all(|(src, &from)| match src.place().and_then(version) {
                    Some(value) => self.ends[from].as_ref().is_none_or(|end| end.contains(&value)),
                    None => true,
                });
            if holds {
                held.extend(access.value.expand());
            } else {
                self.kept.insert(access.array);
            }
        }
        for &instr in &data.instrs {
            self.instr(&program.instrs[instr], &mut held);
        }
        held
    }

    fn instr(&mut self, data: &InstrData, held: &mut Held) {
        if data.opcode == Opcode::Phi {
            return;
        }
        for src in &data.srcs {
            if let Some(Place::Array(access)) = src.place()
                && access.value.expand().is_some_and(|value| !held.contains(&value))
            {
                self.kept.insert(access.array);
            }
        }
        let before = held.clone();
        for (at, dst) in data.dsts.iter().enumerate() {
            let Place::Array(access) = dst.place else { continue };
            if data.opcode == Opcode::ParallelCopy {
                // A copy: the array holds its source and its destination, which have the same content.
                let source = data.srcs.get(at).and_then(|src| src.place());
                if source.and_then(version).is_none_or(|value| before.contains(&value)) {
                    held.extend(access.value.expand());
                }
                let is_own = matches!(source, Some(Place::Array(from)) if from.array == access.array);
                if !is_own && source.is_some() {
                    self.kept.insert(access.array);
                }
                continue;
            }
            let values = &self.program.values;
            held.retain(|&value| values[value].array != Some(access.array));
            held.extend(access.value.expand());
        }
    }
}

/// The version of an array that an operand names.
fn version(place: &Place) -> Option<Value> {
    match place {
        Place::Array(access) => access.value.expand(),
        _ => None,
    }
}
