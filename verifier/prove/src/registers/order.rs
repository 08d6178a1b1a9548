//! Blocks whose instructions are in another order: the target's order is replaced by the source's, where that changes
//! nothing.
//!
//! In addition to the places that instructions name, they read and write *resources*: the memories, the constant file,
//! the set of active lanes. Two orders are equivalent if each instruction finds every resource after the same writes.
//! It is enough that each read comes after as many writes of its resource in both orders, and each write too: then the
//! writes of a resource are in one order, and every read is between the same two. So it suffices to count; pairs need
//! not be compared.
//!
//! A register is a resource by itself, in halves. An access relative to an address register is one to all registers
//! where its array may be ([array-bounds](ir3_semantics::assumptions::ARRAY_BOUNDS)). A move from a register to itself
//! may be missing in the target.
//!
//! Images are views of the memory of buffers. Mesa's ir3 and our scheduler treat them as two classes of accesses that
//! may be reordered; where they are, that is an [assumption](ir3_semantics::assumptions::NO_ALIAS) of the proof.
//!
//! This does not use the scheduler's own rules, `ir3_compiler::schedule::dependencies`, nor the columns of the
//! compiler's table of opcodes that these rules read (effects, lanes, traits): the effects of opcodes are defined here
//! and in `effects`.

use super::effects::{is_of_one_lane, writes_constants, writes_memory};
use super::failure::{InstrSite, RegisterFailure};
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{
    AddressSpace, Array, Attrs, Category, Instr, InstrData, InstrFlags, Opcode, PhysReg, Place, Program, RegClass,
    RegFile, SrcOperand, Value, WriteMask,
};
use ir3_semantics::machine::{arrays, units};
use ir3_semantics::support::guards::{Guard, left_out};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OrderedResource {
    /// An SSA value, as a whole.
    Value(Value),
    /// An array, as a whole, with all its versions.
    Array(Array),
    /// A half register ([`units`]).
    Register(u16),
    /// The registers of a file, written by accesses that may be to any of them.
    File(RegFile),
    /// The registers of a file, "written" by accesses that may read any of them, and "read" by those that write one.
    Elements(RegFile),
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
    /// The set of active lanes, and of helpers.
    Lanes,
    /// Read by every instruction: nothing moves across a write.
    Fence,
}

const MEMORIES: [OrderedResource; 4] =
    [OrderedResource::Buffer, OrderedResource::Image, OrderedResource::Shared, OrderedResource::Scratch];

/// The accesses of an instruction: a resource, and true if it is written; reads come first.
type Accesses = SmallVec<[(OrderedResource, bool); 12]>;

/// The target with its blocks in the source's order.
#[derive(Default)]
pub struct Restored {
    /// The program; `None` if no block has changed.
    pub program: Option<Program>,
    /// The access that differs in the target's order, because of which a block was not changed.
    pub differs: Option<RegisterFailure>,
    /// True if accesses to images and to buffers were reordered.
    pub disjoint_images: bool,
}

/// Puts those blocks of the target that have the source's instructions, and no others, into the source's order, if it
/// is another and equivalent.
///
/// Half registers are halves of full ones if `merged`.
pub fn restored(source: &Program, target: &Program, merged: bool) -> Restored {
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
        let is_there = |instr: &&Instr| !is_self_move(&source.instrs[**instr]) || list.contains(instr);
        let wanted_order: Vec<Instr> = if list.len() == from.instrs.len() {
            from.instrs.clone()
        } else {
            from.instrs.iter().filter(is_there).copied().collect()
        };
        if list.len() != wanted_order.len() || places.contains(&None) {
            continue;
        }
        let moved = |disjoint_images: bool| {
            let found = counts(target, list, disjoint_images, merged);
            let wanted = counts(target, &wanted_order, disjoint_images, merged);
            list.iter().position(|instr| found.get(instr) != wanted.get(instr))
        };
        let mut changed = moved(false);
        if changed.is_some() {
            changed = moved(true);
            restored.disjoint_images |= changed.is_none();
        }
        if let Some(at) = changed
            && !left_out(Guard::OrderCounts)
        {
            let name = target.instrs[list[at]].opcode.name();
            let what = format!("`{name}` is reordered with an instruction that it depends on");
            let site = InstrSite { block: position, instr: Some((at, name)) };
            restored.differs.get_or_insert(RegisterFailure::Changed { site, what });
            continue;
        }
        restored.program.get_or_insert_with(|| target.clone()).blocks[block].instrs = wanted_order;
    }
    restored
}

/// Returns true for a move of bits from a register to itself.
fn is_self_move(data: &InstrData) -> bool {
    let ([dst], [src]) = (&data.dsts[..], &data.srcs[..]) else { return false };
    let same_types = matches!(data.attrs, Attrs::Move { src, dst, .. } if src == dst);
    data.opcode == Opcode::Mov
        && same_types
        && src.mods.is_empty()
        && src.class == dst.class
        && matches!(dst.class.file, RegFile::General | RegFile::Shared)
        && matches!((&dst.place, src.place()), (Place::Reg(to), Some(Place::Reg(from))) if to == from)
        && dst.mask == src.mask
}

/// For each instruction of a list, the number of writes before each of its accesses. Images are buffers, or memory
/// separate from them.
fn counts(
    program: &Program,
    list: &[Instr],
    disjoint_images: bool,
    merged: bool,
) -> FxHashMap<Instr, SmallVec<[u32; 12]>> {
    let mut writes = FxHashMap::<OrderedResource, u32>::default();
    let mut all = FxHashMap::default();
    for &instr in list {
        let mut accesses = accesses(program, &program.instrs[instr], merged);
        if !disjoint_images {
            accesses
                .iter_mut()
                .filter(|access| access.0 == OrderedResource::Image)
                .for_each(|access| access.0 = OrderedResource::Buffer);
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

fn accesses(program: &Program, data: &InstrData, merged: bool) -> Accesses {
    let mut all = Accesses::new();
    let mut relative = false;
    for src in &data.srcs {
        match &src.operand {
            SrcOperand::Place(place) => {
                relative |= place_access(program, place, src.class, src.mask, merged, false, &mut all)
            }
            SrcOperand::Const(_) => all.push((OrderedResource::Const, false)),
            SrcOperand::ConstRelative(_) => {
                all.push((OrderedResource::Const, false));
                relative = true;
            }
            SrcOperand::Immediate(_) | SrcOperand::Undef => {}
        }
    }
    for dst in &data.dsts {
        relative |= place_access(program, &dst.place, dst.class, dst.mask, merged, true, &mut all);
    }
    if relative {
        // `a0.x` selects the element if no operand does.
        let a0 = Place::Reg(PhysReg::A0_X);
        place_access(program, &a0, RegClass::ADDRESS, WriteMask::SCALAR, merged, false, &mut all);
    }
    effects(data, &mut all);
    all
}

/// Appends the access to a place. Returns true if an address selects it.
fn place_access(
    program: &Program,
    place: &Place,
    class: RegClass,
    mask: WriteMask,
    merged: bool,
    written: bool,
    all: &mut Accesses,
) -> bool {
    let file = class.file;
    let registers = |written: bool, all: &mut Accesses| {
        match units::pieces(place, class, mask, merged) {
            Ok(pieces) => {
                let bits = pieces.iter().flat_map(|piece| piece.bit..piece.bit + piece.width);
                all.extend(bits.map(|bit| (OrderedResource::Register(bit), written)));
            }
            // A register that the file does not have: nothing is known of it.
            Err(_) => all.push((OrderedResource::Fence, true)),
        }
        all.push((OrderedResource::File(file), false));
        if written {
            all.push((OrderedResource::Elements(file), false));
        }
    };
    let any = |all: &mut Accesses| {
        all.push((OrderedResource::File(file), written));
        all.push((OrderedResource::Elements(file), !written));
    };
    let elements = |(first, length): (u16, u16), all: &mut Accesses| match units::range(first, length, class, merged) {
        Ok(pieces) => {
            let bits = pieces.iter().flat_map(|piece| piece.bit..piece.bit + piece.width);
            all.extend(bits.map(|bit| (OrderedResource::Register(bit), written)));
        }
        Err(_) => all.push((OrderedResource::Fence, true)),
    };
    match place {
        Place::Value(value) => all.push((OrderedResource::Value(*value), written && !left_out(Guard::OrderRegisters))),
        Place::Assigned(value, _) => {
            all.push((OrderedResource::Value(*value), written));
            registers(written, all);
        }
        Place::Reg(_) => registers(written && !left_out(Guard::OrderRegisters), all),
        Place::Array(access) => {
            all.push((OrderedResource::Array(access.array), written && !left_out(Guard::OrderArrays)));
            all.extend(access.value.expand().map(|value| (OrderedResource::Value(value), written)));
            match access.base.expand() {
                // It stays in its array.
                Some(base) if access.relative => {
                    elements((base.0, program.arrays[access.array].length), all);
                    all.push((OrderedResource::File(file), false));
                    if written {
                        all.push((OrderedResource::Elements(file), false));
                    }
                }
                Some(_) => any(all),
                None => {}
            }
            return access.relative;
        }
        // The offset may be that of an element: the array is around it.
        Place::Relative { offset, size } => {
            elements(arrays::extent(*offset, *size, None, class, merged), all);
            return true;
        }
    }
    false
}

/// Appends the accesses of an instruction that are not its operands. An unknown one is a fence.
fn effects(data: &InstrData, all: &mut Accesses) {
    use Opcode::*;
    let mut reads = |resource: OrderedResource| all.push((resource, false));
    reads(OrderedResource::Fence);
    // A shared result is the value of one lane, unless all have the same.
    if is_of_one_lane(data) {
        reads(OrderedResource::Lanes);
    }
    match (data.opcode.category(), data.opcode) {
        (Category::Alu2, Setrm) => all.push((OrderedResource::Fence, true)),
        // The end of lanes frees the storage of varyings.
        (Category::Alu2, BaryF | FlatB) | (Category::Meta, TexPrefetch) => reads(OrderedResource::Lanes),
        (Category::Alu2 | Category::Alu3 | Category::Sfu, _)
        | (Category::Move, Mov | Swz | Gat | Sct | Movp)
        | (Category::Meta, Collect | Split) => {}
        (Category::Move, PushConstsLoadMacro) | (Category::Texture, Tcinv) => all.push((OrderedResource::Fence, true)),
        // The other moves, and textures with derivatives, depend on several lanes.
        (Category::Move, _) => reads(OrderedResource::Lanes),
        (Category::Texture, _) => {
            reads(OrderedResource::Lanes);
            let space = data.texture().and_then(|texture| texture.space);
            let may_load: SmallVec<[OrderedResource; 4]> = match space {
                Some(space) => memories(space),
                None if data.opcode == Isam && data.flags.contains(InstrFlags::VECTOR) => memories(AddressSpace::Ssbo),
                // A load of an image or of a buffer has no other name in Mesa's text than a fetch of a texel.
                None if data.opcode == Isam => SmallVec::from_slice(&[OrderedResource::Buffer, OrderedResource::Image]),
                None => SmallVec::new(),
            };
            may_load.into_iter().for_each(reads);
        }
        (Category::Flow, Kill | Demote) => all.push((OrderedResource::Lanes, !left_out(Guard::OrderLanes))),
        // It is part of another instruction, but for its operand.
        (Category::Barrier, Alias) if data.attrs == Attrs::None => {}
        (Category::Barrier, _) => {
            all.extend(MEMORIES.map(|memory| (memory, true)));
            all.push((OrderedResource::Lanes, true));
        }
        (Category::Memory, Resfmt | Resinfo | Getspid | Getwid) => {}
        (Category::Memory, Getfiberid | Shfl | Ldlv) => reads(OrderedResource::Lanes),
        (Category::Memory, opcode) => {
            reads(OrderedResource::Lanes);
            let unknown = matches!(opcode, G2l | L2g | Prefetch | Stlw | Ldlw);
            let space = data.memory().and_then(|memory| memory.space).filter(|_| !unknown);
            if writes_constants(opcode) {
                if !matches!(opcode, Stc | Stsc) {
                    MEMORIES.into_iter().for_each(reads);
                }
                all.push((OrderedResource::Const, true));
            } else {
                let volatile = data.memory().is_some_and(|memory| memory.volatile);
                let written = (unknown || volatile || writes_memory(opcode)) && !left_out(Guard::OrderMemory);
                let touched = space.map_or(SmallVec::from(MEMORIES), memories);
                all.extend(touched.into_iter().map(|memory| (memory, written)));
            }
        }
        (Category::Flow | Category::Meta, _) => all.push((OrderedResource::Fence, true)),
    }
}

/// The memories that an access in an address space may touch. Uniform buffers are never written.
fn memories(space: AddressSpace) -> SmallVec<[OrderedResource; 4]> {
    let memory = match space {
        AddressSpace::Ssbo | AddressSpace::Global => OrderedResource::Buffer,
        AddressSpace::Image => OrderedResource::Image,
        AddressSpace::Shared => OrderedResource::Shared,
        AddressSpace::Scratch => OrderedResource::Scratch,
        AddressSpace::Const => OrderedResource::Const,
        AddressSpace::Ubo => return SmallVec::new(),
    };
    SmallVec::from_elem(memory, 1)
}
