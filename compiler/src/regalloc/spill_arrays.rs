//! Spilling of arrays: where registers do not suffice, arrays are kept in scratch memory.
//!
//! An access becomes a load or a store of one element. If the index is known, so is the address: a base that is 0 and
//! an offset. Otherwise the address is computed from the value that is moved to `a0.x`: its 16 bits, as a signed
//! number, times the size of an element; the offset adds the start of the array. The arrays in scratch memory are then
//! the shader's own: [`spill`](super::spill), which runs afterwards, puts its slots after it.
//!
//! `choose` decides which: of the arrays that are live where most registers are needed, the one with the fewest
//! accesses for each register, then the next one. Of all these plans, that with the fewest accesses to scratch memory
//! is taken, those of spilled scalars included. With the least limit all arrays are spilled.

use super::array_ranges;
use super::pressure::{Point, Pressure};
use super::spill::own_scratch_bytes;
use super::{Analysed, Carried, Coalescing, Error, RegisterLimit, Spilled};
use crate::ir3::access::build::{self, MemoryElements};
use crate::ir3::dominance::{Dominators, EdgeKind};
use crate::ir3::loops::Loops;
use crate::ir3::opcode::Memory;
use crate::ir3::{
    AddressSpace, Array, ArrayAccess, Attrs, Block, Dst, Instr, InstrData, Opcode, PhysReg, Place, Program, RegClass,
    RegFile, Round, Src, SrcOperand, Type, Value, ValueData, WriteMask,
};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::cell::RefCell;

/// Offsets of an access are below this.
const OFFSETS: u32 = 1 << 12;

/// The number of plans that are compared.
const PLANS: usize = 8;

/// The estimated number of iterations of a loop.
const ITERATIONS: f32 = 10.0;

/// Spills the values of a program, with the results of earlier analyses.
pub(crate) type SpillValues<'a> = &'a dyn Fn(&mut Program, &RefCell<Carried>) -> Result<(), Error>;

/// The stage after this one, which spills values.
pub struct Spilling<'a> {
    /// Returns true if values are spilled.
    pub is_needed: &'a dyn Fn(&Program) -> Result<bool, Error>,
    /// Spills them.
    pub(crate) run: SpillValues<'a>,
}

/// An access that can be rewritten: a plain move from or to an element.
struct ElementMove {
    access: ArrayAccess,
    is_store: bool,
}

/// The access of an instruction, if it can be rewritten; `None` in the result is an instruction without accesses.
fn element_move(data: &InstrData) -> Result<Option<ElementMove>, ()> {
    let mut all = array_ranges::accesses(data);
    let Some((&access, is_store)) = all.next() else { return Ok(None) };
    let is_plain = matches!(
        data.attrs,
        Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default }
            | Attrs::Move { src: Type::U16, dst: Type::U16, round: Round::Default }
    );
    let is_move = data.opcode == Opcode::Mov
        && data.flags.is_empty()
        && data.repeat == 0
        && data.dsts.len() == 1
        && data.srcs.len() == 1 + usize::from(access.relative)
        && data.srcs[0].mods.is_empty()
        && data.srcs[1..].iter().all(|src| src.class.file == RegFile::Address);
    let is_value = is_store || data.dsts[0].value().is_some();
    let is_value = is_value && (is_store || data.dsts[0].class.file == RegFile::General);
    if all.next().is_none() && is_plain && is_move && is_value && access.value.is_none() {
        Ok(Some(ElementMove { access, is_store }))
    } else {
        Err(())
    }
}

/// The source of the move to `a0.x` before a position in a block.
fn index_before(program: &Program, list: &[Instr]) -> Option<Src> {
    let writes = |data: &InstrData| data.dsts.iter().any(|dst| dst.place.reg() == Some(PhysReg::A0_X));
    let data = list.iter().rev().map(|&instr| &program.instrs[instr]).find(|data| writes(data))?;
    let is_move =
        data.opcode == Opcode::Mov && matches!(data.attrs, Attrs::Move { src: Type::S16, dst: Type::S16, .. });
    let src = *data.srcs.first()?;
    let is_value = matches!(src.operand, SrcOperand::Place(Place::Value(_)));
    (is_move && is_value && src.mods.is_empty() && src.class == RegClass::HALF).then_some(src)
}

/// The arrays whose accesses can all be rewritten, with the estimated number of executions of these.
fn candidates(program: &Program) -> Vec<(Array, f32)> {
    let loops = Loops::new(program, &Dominators::new(program, EdgeKind::Logical));
    let mut costs: SecondaryMap<Array, f32> = SecondaryMap::new();
    for &block in &program.layout {
        let weight = ITERATIONS.powi(loops.around(block).count().min(8) as i32);
        let list = &program.blocks[block].instrs;
        for (at, &instr) in list.iter().enumerate() {
            let data = &program.instrs[instr];
            let understood = match element_move(data) {
                Ok(None) => continue,
                Ok(Some(found)) => !found.access.relative || index_before(program, &list[..at]).is_some(),
                Err(()) => false,
            };
            for (access, _) in array_ranges::accesses(data) {
                costs[access.array] += if understood { weight } else { f32::INFINITY };
            }
        }
    }
    let found = program.arrays.keys().map(|array| (array, costs[array]));
    found.filter(|&(_, cost)| cost > 0.0 && cost.is_finite()).collect()
}

/// The byte addresses of arrays in scratch memory, and the end of all; those that do not fit are left out.
fn addresses(program: &Program, arrays: &[Array]) -> (Vec<(Array, u32)>, u32) {
    let mut end = own_scratch_bytes(program).next_multiple_of(4);
    let mut list = Vec::new();
    for &array in arrays {
        let bytes = (2 * array_ranges::units(program, array)).next_multiple_of(4);
        if end + bytes <= OFFSETS {
            list.push((array, end));
            end += bytes;
        }
    }
    (list, end)
}

/// The arrays to spill, and the program after the spilling of arrays and values, if it is known.
///
/// # Errors
/// If the program cannot be analysed.
pub(crate) fn choose(
    program: &Program,
    target: &Target,
    limit: RegisterLimit,
    coalescing: Coalescing,
    spilling: &Spilling<'_>,
) -> Result<(Vec<Array>, Option<Spilled>), Error> {
    if program.arrays.is_empty() || !target.pvtmem {
        return Ok((Vec::new(), None));
    }
    let mut left = candidates(program);
    let in_memory = |arrays: &[Array]| addresses(program, arrays).0.into_iter().map(|(array, _)| array).collect();
    if matches!(limit, RegisterLimit::Minimum(_)) {
        let all: Vec<Array> = left.into_iter().map(|(array, _)| array).collect();
        return Ok((in_memory(&all), None));
    }
    if left.is_empty() || !(spilling.is_needed)(program)? {
        return Ok((Vec::new(), None));
    }
    let mut chosen: Vec<Array> = Vec::new();
    let mut best: Option<(f32, Vec<Array>, Spilled)> = None;
    for _ in 0..PLANS.min(left.len() + 1) {
        let mut plan = program.clone();
        run(&mut plan, &chosen);
        let mut carried = Carried::default();
        let live = live_at_peak(&plan, target, coalescing, &mut carried)?;
        let carried = RefCell::new(carried);
        if (spilling.run)(&mut plan, &carried).is_ok() {
            let cost = accesses_to_scratch(&plan);
            if best.as_ref().is_none_or(|&(least, ..)| cost < least) {
                let spilled = Spilled { program: plan, analysed: carried.take().analysed };
                best = Some((cost, chosen.clone(), spilled));
            }
        }
        let per_unit = |&(array, cost): &(Array, f32)| cost / array_ranges::units(program, array) as f32;
        let next = (left.iter().copied())
            .filter(|(array, _)| live.contains(array))
            .min_by(|a, b| per_unit(a).total_cmp(&per_unit(b)));
        let Some((array, _)) = next else { break };
        left.retain(|&(other, _)| other != array);
        chosen.push(array);
        chosen = in_memory(&chosen);
    }
    Ok(best.map_or_else(Default::default, |(_, chosen, spilled)| (chosen, Some(spilled))))
}

/// The estimated number of accesses to scratch memory.
fn accesses_to_scratch(program: &Program) -> f32 {
    let loops = Loops::new(program, &Dominators::new(program, EdgeKind::Logical));
    let mut sum = 0.0;
    for (block, instr) in program.iter_instrs() {
        if program.instrs[instr].form().memory == Memory::Space(AddressSpace::Scratch) {
            sum += ITERATIONS.powi(loops.around(block).count().min(8) as i32);
        }
    }
    sum
}

/// The arrays that are live at the point with the highest pressure.
fn live_at_peak(
    program: &Program,
    target: &Target,
    coalescing: Coalescing,
    carried: &mut Carried,
) -> Result<SmallVec<[Array; 4]>, Error> {
    let (Analysed { analysis, .. }, program) = carried.analysis(program, target, coalescing)?;
    let (ranges, indices) = (&analysis.arrays, &analysis.indices);
    let mut peak: (u32, u32) = (0, 0);
    analysis.walk(program, |point, _, Pressure { full, half, .. }| {
        let at = match point {
            Point::Start(block) => 2 * indices.start[block],
            Point::Read(instr) | Point::Write(instr) => 2 * indices.instr[instr],
            Point::After(instr) => 2 * indices.instr[instr] + 2,
        };
        let need = full.max(half);
        if need > peak.0 && !ranges.at(at).arrays.is_empty() {
            peak = (need, at);
        }
    });
    Ok(ranges.at(peak.1).arrays.clone())
}

/// Spills these arrays, as `choose` returns them.
pub fn run(program: &mut Program, arrays: &[Array]) {
    if arrays.is_empty() {
        return;
    }
    let (places, end) = addresses(program, arrays);
    program.scratch_size = end;
    let mut address: SecondaryMap<Array, Option<u32>> = SecondaryMap::new();
    places.iter().for_each(|&(array, at)| address[array] = Some(at));
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let list = std::mem::take(&mut program.blocks[block].instrs);
        let mut pass = BlockRewriter { program, block, base: None, out: Vec::with_capacity(list.len()) };
        for (at, &instr) in list.iter().enumerate() {
            match element_move(&pass.program.instrs[instr]) {
                Ok(Some(found)) if address[found.access.array].is_some() => {
                    let start = address[found.access.array].unwrap_or_default();
                    let index = if found.access.relative { index_before(pass.program, &list[..at]) } else { None };
                    pass.access(instr, &found, start, index);
                }
                _ => pass.out.push(instr),
            }
        }
        let out = pass.out;
        program.blocks[block].instrs = out;
        super::addresses::drop_unread(program, block);
    }
    remove(program, &address);
}

/// Removes arrays without accesses.
fn remove(program: &mut Program, removed: &SecondaryMap<Array, Option<u32>>) {
    let old = std::mem::take(&mut program.arrays);
    let mut new: SecondaryMap<Array, Option<Array>> = SecondaryMap::new();
    for (array, data) in old.iter().filter(|&(array, _)| removed[array].is_none()) {
        new[array] = Some(program.arrays.push(data.clone()));
    }
    let rename = |place: &mut Place| {
        if let Place::Array(access) = place
            && let Some(array) = new[access.array]
        {
            access.array = array;
        }
    };
    for data in program.instrs.values_mut() {
        data.dsts.iter_mut().for_each(|dst| rename(&mut dst.place));
        for src in data.srcs.iter_mut() {
            if let SrcOperand::Place(place) = &mut src.operand {
                rename(place);
            }
        }
    }
}

/// The rewriter of a block.
struct BlockRewriter<'a> {
    program: &'a mut Program,
    block: Block,
    /// The value that is 0.
    base: Option<Value>,
    out: Vec<Instr>,
}

impl BlockRewriter<'_> {
    fn define(&mut self, mut data: InstrData, class: RegClass) -> Src {
        let value = self.program.values.next_key();
        data.dsts.push(Dst::new(Place::Value(value), class, WriteMask::SCALAR));
        let instr = self.program.instrs.push(data);
        self.program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
        self.out.push(instr);
        Src::reg(Place::Value(value), class, WriteMask::SCALAR)
    }

    fn mov(&mut self, src: Src, [from, to]: [Type; 2], class: RegClass) -> Src {
        let mut data = InstrData::new(Opcode::Mov);
        data.attrs = Attrs::Move { src: from, dst: to, round: Round::Default };
        data.srcs.push(src);
        self.define(data, class)
    }

    /// A base that is 0.
    fn zero(&mut self) -> Src {
        if let Some(base) = self.base {
            return Src::reg(Place::Value(base), RegClass::FULL, WriteMask::SCALAR);
        }
        let base = self.mov(Src::immediate(0, false), [Type::U32; 2], RegClass::FULL);
        self.base = base.value();
        base
    }

    /// Rewrites an access to the array that starts at byte `start`. A relative one remains the same instruction.
    fn access(&mut self, instr: Instr, found: &ElementMove, start: u32, index: Option<Src>) {
        let class = self.program.arrays[found.access.array].class;
        let (ty, shift) = if class.half { (Type::U16, 1) } else { (Type::U32, 2) };
        let offset = start as i32 + (i32::from(found.access.offset) << shift);
        let base = match index {
            Some(mut index) => {
                index.flags = crate::ir3::OperandFlags::empty();
                let index = self.mov(index, [Type::S16, Type::S32], RegClass::FULL);
                let mut data = InstrData::new(Opcode::ShlB);
                data.srcs.extend([index, Src::immediate(shift, false)]);
                self.define(data, RegClass::FULL)
            }
            None => self.zero(),
        };
        let elements = MemoryElements { ty, components: 1 };
        let old = self.program.instrs[instr].clone();
        let data = if found.is_store {
            let mut value = old.srcs[0];
            // Stores read general registers only.
            if value.value().is_none() || value.class != class {
                value = self.mov(value, [ty; 2], class);
            }
            build::local_store(AddressSpace::Scratch, base, offset, value, elements)
        } else {
            let mut data = build::local_load(AddressSpace::Scratch, base, offset, elements);
            data.dsts.push(old.dsts[0]);
            data
        };
        if index.is_some() {
            self.program.instrs[instr] = data;
            self.out.push(instr);
            return;
        }
        let new = self.program.instrs.push(data);
        for dst in &self.program.instrs[new].dsts {
            if let Some(value) = dst.value() {
                self.program.values[value].instr = new;
            }
        }
        self.out.push(new);
        let keeps = &mut self.program.blocks[self.block].keeps;
        keeps.iter_mut().filter(|keep| **keep == instr).for_each(|keep| *keep = new);
    }
}
