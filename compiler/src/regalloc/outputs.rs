//! Outputs with given registers: sources of `end` and `chmask` that name them.
//!
//! Before such an instruction, a parallel copy copies all general values that it reads to new values without other
//! uses. No other value is live between the two, so the copy may put them into any order: the [places](super::given)
//! that are chosen here. It moves values that are elsewhere; values that were computed in their place (which their
//! merge set prefers) are not moved. A value that is required in two places is copied to both.
//!
//! A program with these copies is not changed.

use super::Error;
use super::forest::Sums;
use super::given::{PlacementItem, arrange};
use crate::ir3::{
    Block, Dst, Instr, InstrData, Opcode, OperandFlags, PhysReg, Place, Program, RegFile, Src, Value, ValueData,
};
use smallvec::SmallVec;

/// Outputs some of which have given registers.
pub struct GivenOutputs {
    /// The instruction that reads them.
    pub instr: Instr,
    /// Each value that it reads, and its required first unit.
    pub places: Vec<(Value, u16)>,
    /// The end of all of them: full and half ones, by [`kind`](super::forest::kind).
    pub ends: Sums,
}

/// The general value that a source reads.
fn general(src: &Src) -> Option<Value> {
    match src.place() {
        Some(&(Place::Value(value) | Place::Assigned(value, _))) if src.class.file == RegFile::General => Some(value),
        _ => None,
    }
}

/// The register that a general source names.
fn given(src: &Src) -> Option<PhysReg> {
    match src.place() {
        Some(&Place::Assigned(_, reg)) if src.class.file == RegFile::General => Some(reg),
        _ => None,
    }
}

/// Returns true if any input or output has a given register, as the coordinates of a prefetch have.
pub fn any_given(program: &Program) -> bool {
    let list = &program.blocks[program.entry()].instrs;
    if list.iter().any(|&instr| program.instrs[instr].opcode.is_prefetched()) {
        return true;
    }
    let inputs = list.iter().map(|&instr| &program.instrs[instr]).take_while(|data| data.opcode == Opcode::Input);
    let mut dsts = inputs.flat_map(|data| &data.dsts);
    dsts.any(|dst| dst.class.file == RegFile::General && matches!(dst.place, Place::Assigned(..)))
        || find(program).next().is_some()
}

/// The instructions to handle, and their positions. No value is read after them.
fn find(program: &Program) -> impl Iterator<Item = (Block, usize)> + '_ {
    let ends = program.layout.iter().filter(|&&block| program.blocks[block].successors().next().is_none());
    ends.filter_map(|&block| {
        let reads = |instr: &Instr| program.instrs[*instr].srcs.iter().any(|src| general(src).is_some());
        let list = &program.blocks[block].instrs;
        let at = list.iter().rposition(reads)?;
        let data = &program.instrs[list[at]];
        (data.opcode.is_output() && data.srcs.iter().any(|src| given(src).is_some())).then_some((block, at))
    })
}

/// Inserts a parallel copy before each instruction that reads outputs in given registers.
///
/// # Errors
/// If a value is read after such an instruction.
pub fn copy(program: &mut Program) -> Result<(), Error> {
    let list: SmallVec<[(Block, usize); 2]> = find(program).collect();
    for (block, at) in list {
        let instr = program.blocks[block].instrs[at];
        if is_copied(program, block, at) {
            continue;
        }
        // The source of each copy, its given register, and the copy. A source without a given register reads any copy.
        let mut columns: SmallVec<[(Value, Option<PhysReg>, Value); 8]> = SmallVec::new();
        let copy = program.instrs.push(InstrData::new(Opcode::ParallelCopy));
        let count = program.instrs[instr].srcs.len();
        // Given registers first.
        for is_given in [true, false] {
            for k in 0..count {
                let src = program.instrs[instr].srcs[k];
                let Some(value) = general(&src).filter(|_| given(&src).is_some() == is_given) else { continue };
                if program.values[value].class != src.class || !src.mods.is_empty() {
                    return Err(Error::unsupported(program, instr, "an output of another class than its value"));
                }
                let components = src.mask.span() as u16;
                let same = |&&(of, reg, new): &&(Value, Option<PhysReg>, Value)| {
                    of == value && (!is_given || reg == given(&src)) && program.values[new].components == components
                };
                let new = match columns.iter().find(same) {
                    Some(&(.., new)) => new,
                    None => {
                        let dst = program.instrs[copy].dsts.len() as u8;
                        let data = ValueData { instr: copy, dst, class: src.class, components, array: None };
                        let new = program.values.push(data);
                        program.instrs[copy].srcs.push(Src {
                            flags: OperandFlags::empty(),
                            ..Src::reg(Place::Value(value), src.class, src.mask)
                        });
                        program.instrs[copy].dsts.push(Dst::new(Place::Value(new), src.class, src.mask));
                        columns.push((value, given(&src), new));
                        new
                    }
                };
                program.instrs[instr].srcs[k].set_value(new);
            }
        }
        program.blocks[block].instrs.insert(at, copy);
    }
    Ok(())
}

/// Returns true if all sources of an instruction are copied directly before it, and each copy has one place.
fn is_copied(program: &Program, block: Block, at: usize) -> bool {
    let list = &program.blocks[block].instrs;
    let Some(&before) = at.checked_sub(1).and_then(|at| list.get(at)) else { return false };
    if program.instrs[before].opcode != Opcode::ParallelCopy {
        return false;
    }
    let mut places: SmallVec<[(Value, PhysReg); 8]> = SmallVec::new();
    program.instrs[list[at]].srcs.iter().all(|src| {
        let Some(value) = general(src) else { return true };
        if let Some(reg) = given(src) {
            if places.iter().any(|&(other, at)| other == value && at != reg) {
                return false;
            }
            places.push((value, reg));
        }
        program.values[value].instr == before
    })
}

/// Chooses the places of all outputs of instructions with given ones, in a program that has the copies. `extents` are
/// those of the stacks of arrays at an instruction.
///
/// # Errors
/// If the given registers overlap, or not all outputs have a place.
pub fn run(program: &Program, merged: bool, extents: &dyn Fn(Instr) -> Sums) -> Result<Vec<GivenOutputs>, Error> {
    let mut all = Vec::new();
    for (block, at) in find(program) {
        let instr = program.blocks[block].instrs[at];
        let mut values: Vec<Value> = Vec::new();
        let mut items: Vec<PlacementItem> = Vec::new();
        for src in &program.instrs[instr].srcs {
            let Some(value) = general(src) else { continue };
            match values.iter().position(|&other| other == value) {
                Some(k) => items[k].given = items[k].given.or(given(src)),
                None => {
                    let data = &program.values[value];
                    values.push(value);
                    let units = data.components.max(1) * data.class.component_units();
                    items.push(PlacementItem { class: data.class, units, given: given(src) });
                }
            }
        }
        let name = |k: usize| {
            let data = &program.instrs[program.values[values[k]].instr];
            let of = data.srcs.get(usize::from(program.values[values[k]].dst)).and_then(Src::value);
            format!("output {}", of.unwrap_or(values[k]))
        };
        let (places, ends) = arrange(&items, merged, &extents(instr), name)?;
        all.push(GivenOutputs { instr, places: values.into_iter().zip(places).collect(), ends });
    }
    Ok(all)
}
