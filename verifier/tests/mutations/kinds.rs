//! The kinds of mutation. Each changes one instruction, or says that there is nothing of its kind to change in it.

use ir3_compiler::ir3::{
    Attrs, Block, Category, Condition, InputKind, Instr, InstrData, InstrFlags, MemoryAttrs, Mods, Opcode,
    OperandFlags, PhysReg, Place, Program, RegFile, Round, Src, SrcOperand, SystemValue, TextureAttrs, Type, WriteMask,
};
use std::collections::BTreeMap;

/// Where a mutation may happen, and what it may draw from.
pub struct Site {
    /// The block.
    pub block: Block,
    /// Position in it.
    pub index: usize,
    /// The instruction.
    pub instr: Instr,
    /// Decides what is left open.
    pub random: u64,
}

impl Site {
    /// One of `items`.
    fn pick<T: Copy>(&self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[(self.random >> 8) as usize % items.len()])
    }

    /// One of `items`, but not `current`.
    fn other<T: Copy + PartialEq>(&self, items: &[T], current: T) -> Option<T> {
        let others: Vec<T> = items.iter().copied().filter(|&item| item != current).collect();
        self.pick(&others)
    }

    fn coin(&self) -> bool {
        self.random >> 40 & 1 != 0
    }
}

/// Changes the instruction of a site; false if nothing was changed.
pub type Change = fn(&mut Program, &Site) -> bool;

/// A kind of mutation.
pub struct Kind {
    /// For the table.
    pub name: &'static str,
    /// What it does.
    pub change: Change,
    /// The share of its mutants, in percent, that must be refuted.
    pub least: u32,
}

const fn kind(name: &'static str, least: u32, change: Change) -> Kind {
    Kind { name, change, least }
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    kind("swap sources", 50, swap_sources),
    kind("other source", 45, other_source),
    kind("other destination", 55, other_destination),
    kind("drop instruction", 55, drop_instruction),
    kind("repeat store later", 20, repeat_store),
    kind("immediate +-1", 40, immediate),
    kind("constant +-1", 55, constant),
    kind("other condition", 40, condition),
    kind("source modifier", 40, modifier),
    kind("saturation", 25, saturation),
    kind("other operation", 40, operation),
    kind("constant result", 55, constant_result),
    kind("split offset", 60, split_offset),
    kind("swap in collect", 65, swap_in_collect),
    kind("drop a copy", 30, drop_copy),
    kind("swap in phi", 50, swap_in_phi),
    kind("invert branch", 60, invert_branch),
    kind("swap successors", 60, swap_successors),
    kind("move types", 18, move_types),
    kind("rounding", 25, rounding),
    kind("memory components", 75, memory_components),
    kind("memory offset", 40, memory_offset),
    kind("memory type", 60, memory_type),
    kind("memory space", 65, memory_space),
    kind("memory order", 15, memory_order),
    kind("texture index", 50, texture_index),
    kind("sampler index", 50, sampler_index),
    kind("texture flags", 60, texture_flags),
    kind("texture type", 50, texture_type),
    kind("output slot", 95, output_slot),
    kind("input kind", 95, input_kind),
    kind("input component", 85, input_component),
    kind("other half", 50, other_half),
    kind("write mask", 65, write_mask),
    kind("driver param", 80, driver_param),
    kind("kill for demote", 0, kill),
];

fn operands_differ(a: &Src, b: &Src) -> bool {
    (a.operand, a.mods) != (b.operand, b.mods)
}

fn data<'a>(program: &'a mut Program, site: &Site) -> &'a mut InstrData {
    &mut program.instrs[site.instr]
}

fn swap_sources(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let (i, j) = match data.opcode {
        SubU | SubS | ShlB | ShrB | AshrB | GetbitB => (0, 1),
        CmpsF | CmpsS | CmpsU if !matches!(data.attrs, Attrs::Compare(Condition::Eq | Condition::Ne)) => (0, 1),
        SelB16 | SelB32 => (0, 2),
        MadF16 | MadF32 | MadU16 | MadS16 | MadU24 | MadS24 | MadshM16 => (1, 2),
        Shrm | Shlm | Shrg | Shlg => (0, 1),
        _ => return false,
    };
    let swap = data.srcs.len() > j && operands_differ(&data.srcs[i], &data.srcs[j]);
    if swap {
        data.srcs.swap(i, j);
    }
    swap
}

/// The places that are written in front of a site and are of the same class and size as `src`, youngest first.
fn others(program: &Program, site: &Site, src: &Src, only_scalars: bool) -> Vec<Place> {
    let mut places = Vec::new();
    let before = program.layout.iter().take_while(|&&block| block != site.block);
    let mut instrs: Vec<Instr> = before.flat_map(|&block| &program.blocks[block].instrs).copied().collect();
    instrs.extend(&program.blocks[site.block].instrs[..site.index]);
    for &instr in instrs.iter().rev() {
        for dst in &program.instrs[instr].dsts {
            let scalar = dst.mask == WriteMask::SCALAR || !only_scalars;
            let direct = matches!(dst.place, Place::Value(_) | Place::Assigned(..) | Place::Reg(_));
            if dst.class == src.class && dst.mask == src.mask && scalar && direct && !places.contains(&dst.place) {
                places.push(dst.place);
            }
        }
    }
    places
}

fn other_source(program: &mut Program, site: &Site) -> bool {
    if program.instrs[site.instr].opcode == Opcode::Phi {
        return false;
    }
    let count = program.instrs[site.instr].srcs.len();
    for i in 0..count {
        let i = (i + site.random as usize) % count;
        let src = program.instrs[site.instr].srcs[i];
        let SrcOperand::Place(place) = src.operand else { continue };
        if src.flags.contains(OperandFlags::TIED) || matches!(place, Place::Array(_) | Place::Relative { .. }) {
            continue;
        }
        let mut others = others(program, site, &src, false);
        others.truncate(12);
        if let Some(other) = site.other(&others, place) {
            program.instrs[site.instr].srcs[i].operand = SrcOperand::Place(other);
            return true;
        }
    }
    false
}

fn other_destination(program: &mut Program, site: &Site) -> bool {
    let [dst] = program.instrs[site.instr].dsts[..] else { return false };
    let tied = program.instrs[site.instr].srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED));
    if !matches!(dst.place, Place::Reg(_)) || tied {
        return false;
    }
    let like = Src::reg(dst.place, dst.class, dst.mask);
    let mut others = others(program, site, &like, false);
    others.truncate(12);
    match site.other(&others, dst.place) {
        Some(other) => {
            program.instrs[site.instr].dsts[0].place = other;
            true
        }
        None => false,
    }
}

fn drop_instruction(program: &mut Program, site: &Site) -> bool {
    let data = &program.instrs[site.instr];
    let defines = data.dsts.iter().any(|dst| dst.value().is_some());
    if defines
        || data.opcode.is_terminator()
        || data.opcode == Opcode::End
        || data.opcode.category() == Category::Barrier
    {
        return false;
    }
    program.blocks[site.block].instrs.remove(site.index);
    true
}

fn is_store(program: &Program, instr: Instr) -> bool {
    let opcode = program.instrs[instr].opcode;
    use Opcode::*;
    opcode.is_atomic() || matches!(opcode, Stg | StgA | Stl | Stp | Stib | Stlw | Stgb | Stc)
}

fn is_load(program: &Program, instr: Instr) -> bool {
    use Opcode::*;
    matches!(program.instrs[instr].opcode, Ldg | LdgA | Ldl | Ldp | Ldib | Ldlw | Ldgb | Isam)
}

/// A store again at the end of its block; an atomic, behind itself.
fn repeat_store(program: &mut Program, site: &Site) -> bool {
    if !is_store(program, site.instr) || program.instrs[site.instr].dsts.iter().any(|dst| dst.value().is_some()) {
        return false;
    }
    let copy = program.instrs[site.instr].clone();
    let copy = program.instrs.push(copy);
    let block = &program.blocks[site.block].instrs;
    let data = |i: Instr| &program.instrs[i];
    let later = (site.index + 1..block.len()).rev().find(|&i| {
        let (a, b) = (data(site.instr), data(block[i]));
        is_store(program, block[i]) && a.opcode == b.opcode && a.srcs[0].operand == b.srcs[0].operand
    });
    let at = match later {
        Some(at) => at + 1,
        None if program.instrs[site.instr].opcode.is_atomic() => site.index + 1,
        None => return false,
    };
    program.blocks[site.block].instrs.insert(at, copy);
    true
}

fn immediate(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    let count = data.srcs.len();
    for i in 0..count {
        let src = &mut data.srcs[(i + site.random as usize) % count];
        if let SrcOperand::Immediate(bits) = src.operand {
            let bits = if site.coin() { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            src.operand = SrcOperand::Immediate(if src.class.half { bits & 0xffff } else { bits });
            return true;
        }
    }
    false
}

fn constant(program: &mut Program, site: &Site) -> bool {
    for src in &mut data(program, site).srcs {
        if let SrcOperand::Const(word) = src.operand {
            src.operand = SrcOperand::Const(if site.coin() { word ^ 1 } else { word ^ 4 });
            return true;
        }
    }
    false
}

fn condition(program: &mut Program, site: &Site) -> bool {
    use Condition::*;
    let Attrs::Compare(condition) = &mut data(program, site).attrs else { return false };
    let Some(other) = site.other(&[Lt, Le, Gt, Ge, Eq, Ne], *condition) else { return false };
    *condition = other;
    true
}

fn modifier(program: &mut Program, site: &Site) -> bool {
    use ir3_compiler::ir3::opcode::Numeric;
    let data = data(program, site);
    let mods = match data.opcode.info().numeric {
        Numeric::Float => [Mods::NEG, Mods::ABS][usize::from(site.coin())],
        Numeric::Int => Mods::NEG,
        Numeric::Bits => Mods::NOT,
        _ => return false,
    };
    let count = data.srcs.len();
    let i = (site.random >> 16) as usize % count.max(1);
    let Some(src) = data.srcs.get_mut(i) else { return false };
    if matches!(src.operand, SrcOperand::Immediate(_)) || src.class.file == RegFile::Address {
        return false;
    }
    src.mods ^= mods;
    true
}

fn saturation(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let takes =
        matches!(data.opcode, AddF | MulF | MinF | MaxF | MadF16 | MadF32 | AbsnegF | FloorF | CeilF | RndneF | TruncF)
            || data.opcode.category() == Category::Sfu;
    if takes {
        data.flags ^= InstrFlags::SAT;
    }
    takes
}

fn operation(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    let data = data(program, site);
    const GROUPS: &[&[Opcode]] = &[
        &[AddF, MinF, MaxF, MulF],
        &[FloorF, CeilF, RndneF, TruncF, RndazF, SignF],
        &[AddU, SubU, MinU, MaxU, MinS, MaxS, MulU24, MulS24, MullU],
        &[AndB, OrB, XorB],
        &[ShlB, ShrB, AshrB],
        &[CmpsS, CmpsU],
        &[MadU16, MadS16, MadshM16, MadU24, MadS24],
        &[ClzS, ClzB],
        &[BfrevB, CbitsB, NotB],
        &[Rcp, Rsq, Log2, Exp2, Sin, Cos, Sqrt],
        &[Br, Bany, Ball],
        &[AnyMacro, AllMacro],
        &[ReadFirstMacro, ReadGetlastMacro],
        &[Getone, Getlast],
        &[AtomicAdd, AtomicXchg, AtomicMin, AtomicMax, AtomicAnd, AtomicOr, AtomicXor],
        &[AtomicBAdd, AtomicBXchg, AtomicBMin, AtomicBMax, AtomicBAnd, AtomicBOr, AtomicBXor],
        &[AtomicGAdd, AtomicGXchg, AtomicGMin, AtomicGMax, AtomicGAnd, AtomicGOr, AtomicGXor],
        &[Gather4r, Gather4g, Gather4b, Gather4a],
        &[Samb, Saml],
        &[Dsx, Dsy],
    ];
    let Some(group) = GROUPS.iter().find(|group| group.contains(&data.opcode)) else { return false };
    let Some(other) = site.other(group, data.opcode) else { return false };
    data.opcode = other;
    true
}

/// The result of an operation is lost.
fn constant_result(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    let alu = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu);
    let [dst] = data.dsts[..] else { return false };
    if !alu || dst.class.file != RegFile::General || dst.mask != WriteMask::SCALAR {
        return false;
    }
    let half = dst.class.half;
    let ty = if half { Type::U16 } else { Type::U32 };
    data.opcode = Opcode::Mov;
    data.flags = InstrFlags::empty();
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data.srcs.clear();
    data.srcs.push(Src::immediate(if half { 0x1357 } else { 0x1357_9bdf }, half));
    true
}

fn split_offset(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    let Attrs::Split { offset } = &mut data.attrs else { return false };
    let span = data.srcs.first().map_or(0, |src| src.mask.span());
    if span < 2 {
        return false;
    }
    *offset = if u32::from(*offset) + 1 < span && (site.coin() || *offset == 0) { *offset + 1 } else { *offset - 1 };
    true
}

fn swap_two(srcs: &mut [Src], site: &Site) -> bool {
    let pairs: Vec<(usize, usize)> = (0..srcs.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| {
            operands_differ(&srcs[i], &srcs[j]) && srcs[i].class == srcs[j].class && srcs[i].mask == srcs[j].mask
        })
        .collect();
    let Some((i, j)) = site.pick(&pairs) else { return false };
    srcs.swap(i, j);
    true
}

fn swap_in_collect(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    data.opcode == Opcode::Collect && swap_two(&mut data.srcs, site)
}

fn swap_in_phi(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    data.opcode == Opcode::Phi && swap_two(&mut data.srcs, site)
}

fn drop_copy(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    if data.opcode != Opcode::ParallelCopy || data.srcs.is_empty() || data.dsts.len() != data.srcs.len() {
        return false;
    }
    let moving: Vec<usize> =
        (0..data.srcs.len()).filter(|&i| data.srcs[i].operand != SrcOperand::Place(data.dsts[i].place)).collect();
    let Some(i) = site.pick(&moving) else { return false };
    data.srcs.remove(i);
    data.dsts.remove(i);
    true
}

fn invert_branch(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let branch = matches!(data.opcode, Br | Bany | Ball | Kill | Demote | Predt | Predf);
    if branch {
        data.srcs[0].mods ^= Mods::NOT;
    }
    branch
}

fn swap_successors(program: &mut Program, site: &Site) -> bool {
    let block = &mut program.blocks[site.block];
    let conditional = block.successors[1].is_some() && block.successors[0] != block.successors[1];
    if !conditional || site.index + 1 != block.instrs.len() {
        return false;
    }
    block.successors.swap(0, 1);
    true
}

const HALF: &[Type] = &[Type::F16, Type::U16, Type::S16];
const FULL: &[Type] = &[Type::F32, Type::U32, Type::S32];

fn like(ty: Type) -> &'static [Type] {
    match ty {
        Type::F16 | Type::U16 | Type::S16 => HALF,
        Type::F32 | Type::U32 | Type::S32 => FULL,
        _ => &[],
    }
}

fn move_types(program: &mut Program, site: &Site) -> bool {
    let Attrs::Move { src, dst, .. } = &mut data(program, site).attrs else { return false };
    // Between types of one size, where both are changed alike, it is a move still.
    let which = if site.coin() { src } else { dst };
    let Some(other) = site.other(like(*which), *which) else { return false };
    *which = other;
    true
}

fn rounding(program: &mut Program, site: &Site) -> bool {
    let Attrs::Move { src, dst, round } = &mut data(program, site).attrs else { return false };
    if !src.is_float() || src == dst || (*src, *dst) == (Type::F16, Type::F32) {
        return false;
    }
    let same = |a: Round, b: Round| {
        a == b
            || dst.is_float()
                && [Round::Default, Round::Even].contains(&a)
                && [Round::Default, Round::Even].contains(&b)
    };
    let all: Vec<Round> =
        [Round::Default, Round::Even, Round::PosInf, Round::NegInf].into_iter().filter(|&r| !same(r, *round)).collect();
    let Some(other) = site.pick(&all) else { return false };
    *round = other;
    true
}

fn memory<'a>(program: &'a mut Program, site: &Site) -> Option<&'a mut MemoryAttrs> {
    match &mut data(program, site).attrs {
        Attrs::Memory(attrs) => Some(attrs),
        _ => None,
    }
}

fn memory_components(program: &mut Program, site: &Site) -> bool {
    let Some(attrs) = memory(program, site) else { return false };
    let Some(n) = attrs.components else { return false };
    attrs.components = Some(if n > 1 { n - 1 } else { 2 });
    true
}

fn memory_offset(program: &mut Program, site: &Site) -> bool {
    // The others have their offset in a source.
    use Opcode::*;
    if !matches!(program.instrs[site.instr].opcode, Stl | Stp | Ldc | AtomicAdd | AtomicXchg | AtomicXor | AtomicGAdd) {
        return false;
    }
    let Some(attrs) = memory(program, site) else { return false };
    attrs.offset += if site.coin() { 1 } else { 4 };
    true
}

fn memory_type(program: &mut Program, site: &Site) -> bool {
    let Some(attrs) = memory(program, site) else { return false };
    let Some(ty) = attrs.ty else { return false };
    // Signedness matters to atomics alone, so the width is what is changed elsewhere.
    let other = match ty {
        Type::U32 | Type::S32 | Type::F32 => Type::U16,
        Type::U16 | Type::S16 | Type::F16 => Type::U32,
        Type::U8 => Type::U16,
        Type::U8In32 => Type::U32,
        Type::U64 => Type::U32,
    };
    attrs.ty = Some(other);
    true
}

fn memory_space(program: &mut Program, site: &Site) -> bool {
    use ir3_compiler::ir3::AddressSpace as A;
    let Some(attrs) = memory(program, site) else { return false };
    let other = match attrs.space {
        Some(A::Ssbo) => A::Image,
        Some(A::Image) => A::Ssbo,
        _ => return false,
    };
    attrs.space = Some(other);
    true
}

/// A store behind the next access to the same memory.
fn memory_order(program: &mut Program, site: &Site) -> bool {
    let block = &program.blocks[site.block].instrs;
    let (load, store) = (|i| is_load(program, i), |i| is_store(program, i));
    if !load(site.instr) && !store(site.instr) {
        return false;
    }
    // Of the same resource, or of memory that is not one.
    let same = |other: Instr| {
        let (a, b) = (&program.instrs[site.instr], &program.instrs[other]);
        a.memory().map(|attrs| attrs.space) == b.memory().map(|attrs| attrs.space)
            && (a.srcs[0].operand == b.srcs[0].operand || !matches!(a.srcs[0].operand, SrcOperand::Immediate(_)))
            && (store(site.instr) || store(other))
    };
    let next = (site.index + 1..block.len()).find(|&i| (load(block[i]) || store(block[i])) && same(block[i]));
    let Some(next) = next else { return false };
    // What it reads must be there still.
    let reads: Vec<Place> = program.instrs[site.instr].srcs.iter().filter_map(|src| src.place().copied()).collect();
    let defines = program.instrs[site.instr].dsts.iter().any(|dst| dst.value().is_some());
    let mut between = block[site.index + 1..=next].iter().flat_map(|&i| &program.instrs[i].dsts);
    if defines || between.any(|dst| reads.contains(&dst.place)) {
        return false;
    }
    let block = &mut program.blocks[site.block].instrs;
    let moved = block.remove(site.index);
    block.insert(next, moved);
    true
}

fn texture<'a>(program: &'a mut Program, site: &Site) -> Option<&'a mut TextureAttrs> {
    match &mut data(program, site).attrs {
        Attrs::Texture(attrs) => Some(attrs),
        _ => None,
    }
}

fn texture_index(program: &mut Program, site: &Site) -> bool {
    let Some(index) = texture(program, site).and_then(|attrs| attrs.texture.as_mut()) else { return false };
    *index ^= 1;
    true
}

fn sampler_index(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    if !matches!(
        program.instrs[site.instr].opcode,
        Sam | Samb | Saml | Samgq | Getlod | Gather4r | Gather4g | Gather4b | Gather4a
    ) {
        return false;
    }
    let Some(index) = texture(program, site).and_then(|attrs| attrs.sampler.as_mut()) else { return false };
    *index ^= 1;
    true
}

fn texture_flags(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    if data.opcode.category() != Category::Texture || data.srcs.is_empty() {
        return false;
    }
    const FLAGS: &[InstrFlags] =
        &[InstrFlags::DIM_3D, InstrFlags::ARRAY, InstrFlags::OFFSET, InstrFlags::PROJ, InstrFlags::SHADOW];
    let set: Vec<InstrFlags> = FLAGS.iter().copied().filter(|&flag| data.flags.contains(flag)).collect();
    let Some(flag) = site.pick(if set.is_empty() { FLAGS } else { &set }) else { return false };
    data.flags ^= flag;
    true
}

fn texture_type(program: &mut Program, site: &Site) -> bool {
    use Opcode::*;
    if matches!(program.instrs[site.instr].opcode, Getsize | Getinfo | Getbuf | Getlod) {
        return false;
    }
    let Some(ty) = texture(program, site).and_then(|attrs| attrs.ty.as_mut()) else { return false };
    let other = match *ty {
        Type::F32 => Type::U32,
        Type::F16 => Type::U16,
        Type::U16 | Type::S16 => Type::F16,
        _ => Type::F32,
    };
    *ty = other;
    true
}

fn output_slot(program: &mut Program, site: &Site) -> bool {
    if program.instrs[site.instr].opcode != Opcode::End || program.outputs.is_empty() {
        return false;
    }
    let i = site.random as usize % program.outputs.len();
    let output = &mut program.outputs[i];
    if site.coin() {
        output.base += 1
    } else {
        output.component += 1
    }
    true
}

fn input_kind(program: &mut Program, site: &Site) -> bool {
    use SystemValue::*;
    let Attrs::Input(Some(kind)) = &mut data(program, site).attrs else { return false };
    match kind {
        InputKind::Attribute { base, .. } => *base += 1,
        InputKind::System(value) => {
            let next = match *value {
                WorkgroupId => NumWorkgroups,
                LocalInvocationId => WorkgroupId,
                BarycentricPixel => BarycentricCentroid,
                VertexIdZeroBase | VertexId => InstanceId,
                InstanceId => PrimitiveId,
                FrontFace => HelperInvocation,
                SampleId => SampleMaskIn,
                _ => LocalInvocationIndex,
            };
            *value = next;
        }
    }
    true
}

fn input_component(program: &mut Program, site: &Site) -> bool {
    let Attrs::Input(Some(InputKind::Attribute { component, .. })) = &mut data(program, site).attrs else {
        return false;
    };
    *component = (*component + 1) & 3;
    true
}

fn other_half(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    let half = |file, half, place: &mut Place| match place {
        Place::Reg(reg) if file == RegFile::General && half => {
            *reg = PhysReg(reg.0 ^ 1);
            true
        }
        _ => false,
    };
    let tied = data.srcs.iter().any(|src| src.flags.contains(OperandFlags::TIED));
    if site.coin() && !tied && data.dsts.iter_mut().any(|dst| half(dst.class.file, dst.class.half, &mut dst.place)) {
        return true;
    }
    data.srcs.iter_mut().any(|src| match &mut src.operand {
        SrcOperand::Place(place) => half(src.class.file, src.class.half, place),
        _ => false,
    })
}

/// A component less, of a destination or a source.
fn write_mask(program: &mut Program, site: &Site) -> bool {
    let data = data(program, site);
    let less = |mask: &mut WriteMask| {
        let wide = mask.0.count_ones() > 1;
        if wide {
            mask.0 &= !(1 << (mask.span() - 1));
        }
        wide
    };
    let mut masks = data.dsts.iter_mut().map(|dst| &mut dst.mask).chain(data.srcs.iter_mut().map(|src| &mut src.mask));
    masks.any(less)
}

fn driver_param(program: &mut Program, site: &Site) -> bool {
    // Only the entry's first instruction stands for the program.
    let params = program.consts.driver_params.len();
    if site.block != program.entry() || site.index != 0 || params == 0 {
        return false;
    }
    let mut read = BTreeMap::new();
    for (_, instr) in program.iter_instrs() {
        for src in &program.instrs[instr].srcs {
            if let SrcOperand::Const(word) = src.operand {
                read.insert(word, ());
            }
        }
    }
    let params: Vec<usize> =
        (0..params).filter(|&i| read.contains_key(&program.consts.driver_params[i].word)).collect();
    let Some(i) = site.pick(&params) else { return false };
    let param = &mut program.consts.driver_params[i];
    match site.random >> 20 & 1 {
        0 => param.word -= 4,
        _ => param.component = (param.component + 1) % 3,
    }
    true
}

fn kill(program: &mut Program, site: &Site) -> bool {
    let opcode = &mut data(program, site).opcode;
    *opcode = match *opcode {
        Opcode::Kill => Opcode::Demote,
        Opcode::Demote => Opcode::Kill,
        _ => return false,
    };
    true
}
