//! Blocks whose instructions stand in another order: the target's go back to the source's order, where that changes nothing.
//!
//! Beside the places that instructions name, they read and write *resources*: the memories, the constant file, the lanes that
//! run. Two orders do the same if in both of them each instruction finds everything after the same writes: if each read stands
//! behind as many writes of its resource, and each write too, then the writes of a resource are in one order, and every read
//! is between the same two. So it is enough to count, in both orders, and nothing has to be said of pairs.
//!
//! Images are views of the memory that buffers are in. Mesa's ir3 and our scheduler take them for two classes of accesses that may change places;
//! where they do, that is an [assumption](crate::semantics::assumptions::NO_ALIAS) of the proof.
//!
//! Nothing is taken from the scheduler, whose own rules are `ir3_compiler::schedule::dependencies`.

use super::failure::{Failure, Site};
use crate::support::guards::{Guard, left_out};
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{
    AddressSpace, Array, Category, Instr, InstrData, Opcode, PhysReg, Place, Program, RegFile, SrcOperand, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resource {
    /// A value, all of it.
    Value(Value),
    /// An array, all of it and all versions of it.
    Array(Array),
    /// The registers of a file.
    File(RegFile),
    /// Storage buffers and global memory.
    Buffer,
    /// Storage images.
    Image,
    /// Memory of the workgroup.
    Shared,
    /// Memory of the lane.
    Scratch,
    /// The constant file.
    Const,
    /// Which lanes run, and which of them are helpers.
    Lanes,
    /// What nothing moves over: every instruction reads it.
    Fence,
}

const MEMORIES: [Resource; 4] = [Resource::Buffer, Resource::Image, Resource::Shared, Resource::Scratch];

/// An instruction's accesses, each a resource and whether it is written; reads come first.
type Accesses = SmallVec<[(Resource, bool); 12]>;

/// The target with its blocks in the source's order.
#[derive(Default)]
pub struct Restored {
    /// The program; `None` if every block is left as it is.
    pub program: Option<Program>,
    /// What finds something else in the target's order, so that its block was left as it is.
    pub differs: Option<Failure>,
    /// Accesses to images and to buffers have changed places.
    pub images_apart: bool,
}

/// Puts the blocks of the target that have the source's instructions, and nothing else, into the source's order, if that is
/// another and does the same.
pub fn restored(source: &Program, target: &Program) -> Restored {
    let mut restored = Restored::default();
    let mut at_source = SecondaryMap::<Instr, Option<u32>>::new();
    for (position, &block) in target.layout.iter().enumerate() {
        let Some(from) = source.blocks.get(block) else { continue };
        let list = &target.blocks[block].instrs;
        for (at, &instr) in from.instrs.iter().enumerate() {
            at_source[instr] = Some(at as u32);
        }
        let places: Vec<Option<u32>> = list.iter().map(|&instr| at_source[instr]).collect();
        from.instrs.iter().for_each(|&instr| at_source[instr] = None);
        if places.iter().flatten().is_sorted() {
            continue;
        }
        if list.len() != from.instrs.len() || places.contains(&None) {
            continue;
        }
        let moved = |images_apart: bool| {
            let found = counts(target, list, images_apart);
            let wanted = counts(target, &from.instrs, images_apart);
            list.iter().position(|instr| found.get(instr) != wanted.get(instr))
        };
        let mut changed = moved(false);
        if changed.is_some() {
            changed = moved(true);
            restored.images_apart |= changed.is_none();
        }
        if let Some(at) = changed
            && !left_out(Guard::OrderCounts)
        {
            let name = target.instrs[list[at]].opcode.name();
            let what = format!("`{name}` stands on another side of something that it depends on");
            let site = Site { block: position, instr: Some((at, name)) };
            restored.differs.get_or_insert(Failure::Changed { site, what });
            continue;
        }
        restored.program.get_or_insert_with(|| target.clone()).blocks[block].instrs.clone_from(&from.instrs);
    }
    restored
}

/// For each instruction of a list, how many writes each of its accesses finds in front of it. Images are buffers, or memory apart from them.
fn counts(program: &Program, list: &[Instr], images_apart: bool) -> FxHashMap<Instr, SmallVec<[u32; 12]>> {
    let mut writes = FxHashMap::<Resource, u32>::default();
    let mut all = FxHashMap::default();
    for &instr in list {
        let mut accesses = accesses(&program.instrs[instr]);
        if !images_apart {
            accesses
                .iter_mut()
                .filter(|access| access.0 == Resource::Image)
                .for_each(|access| access.0 = Resource::Buffer);
        }
        let found = accesses.iter().map(|(resource, _)| writes.get(resource).copied().unwrap_or(0)).collect();
        for (resource, written) in accesses {
            *writes.entry(resource).or_default() += u32::from(written);
        }
        // Twice in a list is never the same as once.
        if all.insert(instr, found).is_some() {
            all.insert(instr, SmallVec::from_elem(u32::MAX, list.len()));
        }
    }
    all
}

fn accesses(data: &InstrData) -> Accesses {
    let mut all = Accesses::new();
    let mut relative = false;
    for src in &data.srcs {
        match &src.operand {
            SrcOperand::Place(place) => relative |= place_access(place, src.class.file, false, &mut all),
            SrcOperand::Const(_) => all.push((Resource::Const, false)),
            SrcOperand::ConstRelative(_) => {
                all.push((Resource::Const, false));
                relative = true;
            }
            SrcOperand::Immediate(_) | SrcOperand::Undef => {}
        }
    }
    for dst in &data.dsts {
        relative |= place_access(&dst.place, dst.class.file, true, &mut all);
    }
    if relative {
        // Which element it is `a0.x` says, where no operand does.
        all.push((Resource::File(RegFile::Address), false));
    }
    effects(data, &mut all);
    all
}

/// Appends what a place is; whether an address selects it.
fn place_access(place: &Place, file: RegFile, written: bool, all: &mut Accesses) -> bool {
    match place {
        Place::Value(value) => all.push((Resource::Value(*value), written && !left_out(Guard::OrderRegisters))),
        Place::Assigned(value, _) => {
            all.push((Resource::Value(*value), written));
            all.push((Resource::File(file), written));
        }
        Place::Reg(PhysReg(_)) => all.push((Resource::File(file), written && !left_out(Guard::OrderRegisters))),
        Place::Array(access) => {
            all.push((Resource::Array(access.array), written && !left_out(Guard::OrderArrays)));
            all.extend(access.value.map(|value| (Resource::Value(value), written)));
            all.extend(access.base.map(|_| (Resource::File(file), written)));
            return access.relative;
        }
        Place::Relative { .. } => {
            all.push((Resource::File(file), written));
            return true;
        }
    }
    false
}

/// Appends what an instruction reads and writes beside its operands. What is not known here is a fence.
fn effects(data: &InstrData, all: &mut Accesses) {
    use Opcode::*;
    let mut reads = |resource: Resource| all.push((resource, false));
    reads(Resource::Fence);
    // A shared result is that of one lane, unless all have the same.
    let is_uniform = |operand: &SrcOperand, file: RegFile| match operand {
        SrcOperand::Place(_) => file == RegFile::Shared,
        _ => true,
    };
    let of_lanes = data.dsts.iter().any(|dst| dst.class.file == RegFile::Shared)
        && !data.srcs.iter().all(|src| is_uniform(&src.operand, src.class.file));
    if of_lanes {
        reads(Resource::Lanes);
    }
    match (data.opcode.category(), data.opcode) {
        (Category::Alu2, Setrm) => all.push((Resource::Fence, true)),
        // The end of lanes gives back what varyings stand in.
        (Category::Alu2, BaryF | FlatB) | (Category::Meta, TexPrefetch) => reads(Resource::Lanes),
        (Category::Alu2 | Category::Alu3 | Category::Sfu, _)
        | (Category::Move, Mov | Swz | Gat | Sct | Movp)
        | (Category::Meta, Collect | Split) => {}
        (Category::Move, PushConstsLoadMacro) | (Category::Texture, Tcinv) => all.push((Resource::Fence, true)),
        // The other moves, and textures with their derivatives, look at more than one lane.
        (Category::Move, _) => reads(Resource::Lanes),
        (Category::Texture, _) => {
            reads(Resource::Lanes);
            let space = data.texture().and_then(|texture| texture.space);
            space.into_iter().flat_map(memories).for_each(reads);
        }
        (Category::Flow, Kill | Demote) => all.push((Resource::Lanes, !left_out(Guard::OrderLanes))),
        (Category::Barrier, _) => {
            all.extend(MEMORIES.map(|memory| (memory, true)));
            all.push((Resource::Lanes, true));
        }
        (Category::Memory, Resfmt | Resinfo | Getspid | Getwid) => {}
        (Category::Memory, Getfiberid | Shfl | Ldlv) => reads(Resource::Lanes),
        (Category::Memory, opcode) => {
            reads(Resource::Lanes);
            let unknown = matches!(opcode, G2l | L2g | Prefetch | Stlw | Ldlw);
            let space = data.memory().and_then(|memory| memory.space).filter(|_| !unknown);
            if opcode.writes_consts() {
                if !matches!(opcode, Stc | Stsc) {
                    MEMORIES.into_iter().for_each(reads);
                }
                all.push((Resource::Const, true));
            } else {
                let volatile = data.memory().is_some_and(|memory| memory.volatile);
                let written = (unknown || volatile || opcode.has_side_effect()) && !left_out(Guard::OrderMemory);
                let touched = space.map_or(SmallVec::from(MEMORIES), memories);
                all.extend(touched.into_iter().map(|memory| (memory, written)));
            }
        }
        (Category::Flow | Category::Meta, _) => all.push((Resource::Fence, true)),
    }
}

/// What may be touched in an address space. Nobody writes to uniform buffers.
fn memories(space: AddressSpace) -> SmallVec<[Resource; 4]> {
    let memory = match space {
        AddressSpace::Ssbo | AddressSpace::Global => Resource::Buffer,
        AddressSpace::Image => Resource::Image,
        AddressSpace::Shared => Resource::Shared,
        AddressSpace::Scratch => Resource::Scratch,
        AddressSpace::Const => Resource::Const,
        AddressSpace::Ubo => return SmallVec::new(),
    };
    SmallVec::from_elem(memory, 1)
}
