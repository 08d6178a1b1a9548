//! Scalarisation: vectors are live for one instruction only.
//!
//! The spilled entities are scalars: each part of a vector is stored and reloaded separately. So first
//!
//! - a vector that an instruction defines is split directly after it,
//! - a vector that an instruction reads is collected directly before it,
//! - collects, splits and copies in between are replaced by their sources,
//! - a phi of vectors becomes a phi for each component.
//!
//! So that a phi and its sources can share a slot, each source becomes a copy of its own at the end of the predecessor.
//! The copies are simultaneous in the program but sequential here: a copy that reads a phi comes before the copy that
//! overwrites the phi.

use crate::ir3::{
    Attrs, Block, Dst, Instr, InstrData, Opcode, OperandFlags, Place, Program, RegClass, RegFile, Src, SrcOperand,
    Value, ValueData, WriteMask,
};
use crate::regalloc::next_use::Tracked;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

/// Scalarises a program.
pub fn run(program: &mut Program) {
    let mut pass = Scalarizer {
        splits: SecondaryMap::new(),
        parts: SecondaryMap::new(),
        phis: SecondaryMap::new(),
        kept: SecondaryMap::new(),
        out: Vec::new(),
    };
    hoist_inputs(program);
    pass.split_phis(program);
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        pass.run_block(program, block);
    }
    pass.fill_phis(program);
    pass.insert_splits(program);
}

/// Returns true if values of this class are spilled.
fn is_general(class: RegClass) -> bool {
    class.file == RegFile::General
}

/// The general value that a source reads, except whole arrays.
pub fn general_value(src: &Src) -> Option<Value> {
    match src.place() {
        Some(Place::Value(value) | Place::Assigned(value, _)) if is_general(src.class) => Some(*value),
        _ => None,
    }
}

/// The general value that a destination defines.
pub fn general_result(dst: &Dst) -> Option<Value> {
    match dst.place {
        Place::Value(value) | Place::Assigned(value, _) if is_general(dst.class) => Some(value),
        _ => None,
    }
}

/// General values, whose distances decide which are spilled.
pub const GENERAL: Tracked = Tracked { value: general_value, result: general_result };

/// Creates an instruction with one result of `components`, in no block yet.
pub fn define(program: &mut Program, data: InstrData, class: RegClass, components: u16) -> (Instr, Value) {
    let instr = program.instrs.push(data);
    let value = program.values.push(ValueData { instr, dst: 0, class, components, array: None });
    let mask = WriteMask::first(u32::from(components));
    program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, mask));
    (instr, value)
}

/// Creates a copy of a scalar operand.
fn copy(program: &mut Program, operand: SrcOperand, class: RegClass) -> (Instr, Value) {
    let mut data = InstrData::new(Opcode::ParallelCopy);
    data.srcs.push(Src::new(operand, class, WriteMask::SCALAR));
    define(program, data, class, 1)
}

/// Moves inputs to the start of the first block.
fn hoist_inputs(program: &mut Program) {
    let entry = program.entry();
    let instrs = &program.instrs;
    let is_late = |instr: &Instr| instrs[*instr].opcode != Opcode::Input;
    let list = &mut program.blocks[entry].instrs;
    if !list.is_sorted_by_key(is_late) {
        list.sort_by_key(is_late);
    }
}

/// The components that are read, each with its scalar and its split.
type Components = SmallVec<[(u16, Value, Instr); 4]>;

struct Scalarizer {
    /// For each vector that an instruction defines, its splits.
    splits: SecondaryMap<Value, Components>,
    /// The scalar phis of a phi of vectors.
    parts: SecondaryMap<Value, SmallVec<[Value; 4]>>,
    /// The phi of vectors that a scalar phi belongs to.
    phis: SecondaryMap<Instr, PackedOption<Instr>>,
    /// Copies that are kept.
    kept: SecondaryMap<Instr, bool>,
    out: Vec<Instr>,
}

impl Scalarizer {
    /// Inserts a scalar phi for each component before the phi of the vector, which is removed later.
    fn split_phis(&mut self, program: &mut Program) {
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            let phis = program.blocks[block].instrs.iter();
            let count = phis.take_while(|&&instr| program.instrs[instr].opcode == Opcode::Phi).count();
            let mut list = std::mem::take(&mut program.blocks[block].instrs);
            let mut heads = Vec::with_capacity(count);
            for &phi in &list[..count] {
                let dst = program.instrs[phi].dsts.first().copied();
                let Some(value) = dst.and_then(|dst| general_result(&dst)) else {
                    heads.push(phi);
                    continue;
                };
                let (class, components) = (program.values[value].class, program.values[value].components);
                if components == 1 {
                    self.phis[phi] = phi.into();
                    self.parts[value].push(value);
                    heads.push(phi);
                    continue;
                }
                for _ in 0..components {
                    let (part, scalar) = define(program, InstrData::new(Opcode::Phi), class, 1);
                    self.phis[part] = phi.into();
                    self.parts[value].push(scalar);
                    heads.push(part);
                }
            }
            list.splice(..count, heads);
            program.blocks[block].instrs = list;
        }
    }

    /// Component `component` of `value`: a scalar value, or the source of a copy of it.
    fn component(&mut self, program: &mut Program, mut value: Value, mut component: u16) -> SrcOperand {
        loop {
            let instr = program.values[value].instr;
            let data = &program.instrs[instr];
            let src = match (data.opcode, &data.attrs) {
                (Opcode::Phi, _) => {
                    let part = self.parts[value].get(usize::from(component));
                    return part.map_or(SrcOperand::Undef, |&part| SrcOperand::Place(Place::Value(part)));
                }
                _ if self.kept[instr] && program.values[value].components == 1 => {
                    return SrcOperand::Place(Place::Value(value));
                }
                (Opcode::Collect, _) if !self.kept[instr] => {
                    let src = data.srcs.get(usize::from(component)).copied();
                    component = 0;
                    src
                }
                (Opcode::Split, &Attrs::Split { offset })
                    if data.srcs.first().is_some_and(|s| general_value(s).is_some()) =>
                {
                    component += offset;
                    data.srcs.first().copied()
                }
                (Opcode::ParallelCopy, _) if !self.kept[instr] => {
                    data.srcs.get(usize::from(program.values[value].dst)).copied()
                }
                _ if program.values[value].components == 1 => return SrcOperand::Place(Place::Value(value)),
                _ => return SrcOperand::Place(Place::Value(self.split(program, value, component))),
            };
            let Some(src) = src else { return SrcOperand::Undef };
            match (general_value(&src), src.operand) {
                (Some(of), _) => value = of,
                (None, SrcOperand::Const(word)) => return SrcOperand::Const(word + component),
                (None, operand) => return operand,
            }
        }
    }

    /// The scalar that is split off a vector.
    fn split(&mut self, program: &mut Program, vector: Value, component: u16) -> Value {
        if let Some(&(_, scalar, _)) = self.splits[vector].iter().find(|&&(of, ..)| of == component) {
            return scalar;
        }
        let class = program.values[vector].class;
        let mut data = InstrData::new(Opcode::Split);
        data.attrs = Attrs::Split { offset: component };
        let mask = WriteMask::first(u32::from(program.values[vector].components));
        data.srcs.push(Src::reg(Place::Value(vector), class, mask));
        let (instr, scalar) = define(program, data, class, 1);
        self.splits[vector].push((component, scalar, instr));
        scalar
    }

    fn run_block(&mut self, program: &mut Program, block: Block) {
        let list = std::mem::take(&mut program.blocks[block].instrs);
        self.out.clear();
        for &instr in &list {
            match program.instrs[instr].opcode {
                // Their sources are set later.
                Opcode::Phi => self.out.push(instr),
                opcode if opcode.is_copy() => self.look_through(program, instr),
                _ => {
                    self.rewrite_sources(program, instr);
                    self.out.push(instr);
                }
            }
        }
        program.blocks[block].instrs = self.out.clone();
    }

    /// Reduces a copy to the parts that cannot be replaced by its sources: copies in other files, and sources that must
    /// be read at this point, which become copies of their own.
    fn look_through(&mut self, program: &mut Program, instr: Instr) {
        for k in 0..program.instrs[instr].srcs.len() {
            let src = program.instrs[instr].srcs[k];
            let here = matches!(
                src.operand,
                SrcOperand::ConstRelative(_)
                    | SrcOperand::Place(Place::Array(_) | Place::Reg(_) | Place::Relative { .. })
            );
            let goes_on = match program.instrs[instr].opcode {
                Opcode::ParallelCopy => {
                    program.instrs[instr].dsts.get(k).is_some_and(|dst| general_result(dst).is_some())
                }
                _ => program.instrs[instr].dsts.first().is_some_and(|dst| general_result(dst).is_some()),
            };
            if here && goes_on {
                let mut data = InstrData::new(program.instrs[instr].opcode);
                data.srcs.push(src);
                let (copy, value) = define(program, data, src.class, src.mask.span() as u16);
                self.kept[copy] = true;
                program.instrs[instr].srcs[k].operand = SrcOperand::Place(Place::Value(value));
                self.out.push(copy);
            }
        }
        let data = &program.instrs[instr];
        let is_split_of_other =
            data.opcode == Opcode::Split && data.srcs.first().is_none_or(|s| general_value(s).is_none());
        if data.dsts.iter().all(|dst| general_result(dst).is_some()) && !is_split_of_other {
            return;
        }
        if data.opcode == Opcode::ParallelCopy {
            let keep: SmallVec<[bool; 8]> = data.dsts.iter().map(|dst| general_result(dst).is_none()).collect();
            let data = &mut program.instrs[instr];
            for list_index in (0..keep.len()).rev().filter(|&k| !keep[k]) {
                data.dsts.remove(list_index);
                data.srcs.remove(list_index);
            }
            for k in 0..program.instrs[instr].dsts.len() {
                if let Some(value) = program.instrs[instr].dsts[k].value() {
                    program.values[value].dst = k as u8;
                }
            }
        }
        self.out.push(instr);
    }

    /// Replaces the sources of an instruction by scalars, or by new vectors.
    fn rewrite_sources(&mut self, program: &mut Program, instr: Instr) {
        let mut collects: SmallVec<[(Value, u32, Value); 4]> = SmallVec::new();
        for k in 0..program.instrs[instr].srcs.len() {
            let src = program.instrs[instr].srcs[k];
            let Some(value) = general_value(&src) else { continue };
            let is_tied = src.flags.contains(OperandFlags::TIED);
            let span = src.mask.span();
            let known = collects.iter().find(|&&(of, n, _)| (of, n) == (value, span) && !is_tied);
            let read = match known {
                Some(&(_, _, read)) => read,
                None if span == 1 => match self.component(program, value, 0) {
                    SrcOperand::Place(Place::Value(scalar)) if !is_tied => scalar,
                    operand => {
                        let (copy, scalar) = copy(program, operand, src.class);
                        self.out.push(copy);
                        scalar
                    }
                },
                None => {
                    let mut data = InstrData::new(Opcode::Collect);
                    for component in 0..span as u16 {
                        let operand = if src.mask.contains(u32::from(component)) {
                            self.component(program, value, component)
                        } else {
                            SrcOperand::Undef
                        };
                        data.srcs.push(Src::new(operand, src.class, WriteMask::SCALAR));
                    }
                    let (collect, vector) = define(program, data, src.class, span as u16);
                    self.out.push(collect);
                    vector
                }
            };
            if !is_tied && known.is_none() {
                collects.push((value, span, read));
            }
            let src = &mut program.instrs[instr].srcs[k];
            src.set_value(read);
            src.flags.remove(OperandFlags::KILL | OperandFlags::FIRST_KILL);
        }
    }

    /// Sets the sources of the scalar phis, each a copy of its own.
    fn fill_phis(&mut self, program: &mut Program) {
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            // The phi of vectors of each scalar phi, with its component.
            let mut phis: Vec<(Instr, Instr, u16)> = Vec::new();
            let mut gone: Vec<Instr> = Vec::new();
            for &instr in &program.blocks[block].instrs {
                if program.instrs[instr].opcode != Opcode::Phi {
                    break;
                }
                let Some(of) = self.phis[instr].expand() else { continue };
                let component = phis.iter().filter(|&&(_, other, _)| other == of).count() as u16;
                phis.push((instr, of, component));
                if of != instr && !gone.contains(&of) {
                    gone.push(of);
                }
            }
            if phis.is_empty() {
                continue;
            }
            let predecessors = program.blocks[block].predecessors.clone();
            let mut columns: Vec<SmallVec<[SrcOperand; 4]>> = vec![SmallVec::new(); phis.len()];
            for (k, &pred) in predecessors.iter().enumerate() {
                let mut copies = Vec::with_capacity(phis.len());
                for &(phi, of, component) in &phis {
                    let src = program.instrs[of].srcs.get(k).copied();
                    let operand = match src {
                        Some(src) => match (general_value(&src), src.operand) {
                            (Some(value), _) => self.component(program, value, component),
                            (None, SrcOperand::Const(word)) => SrcOperand::Const(word + component),
                            (None, operand) => operand,
                        },
                        None => SrcOperand::Undef,
                    };
                    let Some(dst) = program.instrs[phi].dsts.first().and_then(|dst| dst.value()) else { continue };
                    copies.push(EdgeCopy { phi: dst, operand, done: false, value: None });
                }
                let instrs = sequence(program, &mut copies);
                for (column, copy) in columns.iter_mut().zip(&copies) {
                    column.push(copy.value.map_or(SrcOperand::Undef, |value| SrcOperand::Place(Place::Value(value))));
                }
                insert_before_terminators(program, pred, &instrs);
            }
            for (&(phi, ..), column) in phis.iter().zip(columns) {
                let class = program.instrs[phi].dsts[0].class;
                program.instrs[phi].srcs =
                    column.into_iter().map(|operand| Src::new(operand, class, WriteMask::SCALAR)).collect();
            }
            program.blocks[block].instrs.retain(|instr| !gone.contains(instr));
        }
    }

    fn insert_splits(&mut self, program: &mut Program) {
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            let list = std::mem::take(&mut program.blocks[block].instrs);
            self.out.clear();
            let mut late: Vec<Instr> = Vec::new();
            for &instr in &list {
                let is_input = program.instrs[instr].opcode == Opcode::Input;
                if !is_input {
                    self.out.append(&mut late);
                }
                self.out.push(instr);
                for dst in &program.instrs[instr].dsts {
                    if let Some(vector) = general_result(dst) {
                        self.splits[vector].sort_unstable();
                        let splits = self.splits[vector].iter().map(|&(.., split)| split);
                        if is_input { late.extend(splits) } else { self.out.extend(splits) }
                    }
                }
            }
            program.blocks[block].instrs = self.out.clone();
        }
    }
}

/// A source of a phi on an edge.
struct EdgeCopy {
    /// The phi's value.
    phi: Value,
    operand: SrcOperand,
    done: bool,
    /// The copy, unless no copy is needed.
    value: Option<Value>,
}

/// Sequentialises simultaneous copies: copies that read a phi come before the copy that overwrites it, and one value of
/// each cycle is read first of all.
fn sequence(program: &mut Program, copies: &mut [EdgeCopy]) -> Vec<Instr> {
    let mut instrs = Vec::with_capacity(copies.len());
    let mut first = Vec::new();
    loop {
        let reads = |copy: &EdgeCopy, value: Value| copy.operand == SrcOperand::Place(Place::Value(value));
        let mut progress = false;
        let mut left = None;
        for i in 0..copies.len() {
            if copies[i].done {
                continue;
            }
            let phi = copies[i].phi;
            let is_read = copies.iter().enumerate().any(|(j, other)| j != i && !other.done && reads(other, phi));
            if is_read {
                left = Some(phi);
                continue;
            }
            progress = true;
            copies[i].done = true;
            if copies[i].operand != SrcOperand::Undef {
                let class = program.values[phi].class;
                let (instr, value) = copy(program, copies[i].operand, class);
                copies[i].value = Some(value);
                instrs.push(instr);
            }
        }
        match left {
            None => break,
            Some(phi) if !progress => {
                let class = program.values[phi].class;
                let (instr, value) = copy(program, SrcOperand::Place(Place::Value(phi)), class);
                first.push(instr);
                for copy in copies.iter_mut().filter(|copy| !copy.done && copy.phi != phi) {
                    if copy.operand == SrcOperand::Place(Place::Value(phi)) {
                        copy.operand = SrcOperand::Place(Place::Value(value));
                    }
                }
            }
            Some(_) => {}
        }
    }
    first.extend(instrs);
    first
}

/// Inserts instructions before the terminators of a block.
fn insert_before_terminators(program: &mut Program, block: Block, instrs: &[Instr]) {
    let at = program.body_len(&program.blocks[block].instrs);
    program.blocks[block].instrs.splice(at..at, instrs.iter().copied());
}
