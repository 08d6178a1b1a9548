//! The starts of arrays of registers.
//!
//! After allocation the text of an access relative to `a0.x` has a register and the number of elements of its array,
//! not the first register of the array. Before allocation the same instruction (by its serial number) names the array
//! and an offset in it, so the array starts at the difference. Later passes may put a part of the offset into the
//! address: the start is that of the first section that prints a register. An access whose array is known is bounded by
//! it for all engines, as before allocation.

use super::contradiction::{Contradiction, place};
use super::phases::Phase;
use crate::check::{SIDES, only_access};
use ir3_compiler::ir3::{
    Array, ArrayAccess, ArrayData, Category, Instr, InstrData, OperandFlags, PhysReg, Place, Program, RegClass,
    SrcOperand,
};
use ir3_programs::mesa::Section;
use ir3_semantics::machine::arrays::Side;
use rustc_hash::{FxHashMap, FxHashSet};

/// An access of an instruction that names its array.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub id: u32,
    pub length: u16,
    pub class: RegClass,
    pub offset: i16,
}

/// The arrays of relative accesses, by the serial number of the instruction and the side.
#[derive(Default)]
pub(super) struct Starts {
    /// The serial numbers of instructions that write an element.
    writes: FxHashSet<u32>,
    named: FxHashMap<(u32, Side), Named>,
    based: FxHashMap<(u32, Side), Based>,
    /// Accesses that two sections print with different registers.
    pub contradictions: Vec<Contradiction>,
}

/// An access that printed a register.
#[derive(Clone)]
struct Based {
    named: Named,
    start: PhysReg,
    /// The register, and the section.
    printed: i16,
    title: String,
    place: String,
}

impl Starts {
    /// Notes the arrays that a section names, and completes the accesses that print a register. Sections come in their
    /// order.
    pub fn section(&mut self, section: &Section, phase: Phase, program: &mut Program) {
        let instrs: Vec<Instr> = program.iter_instrs().map(|(_, instr)| instr).collect();
        for instr in instrs {
            let serial = program.serials[instr];
            self.old_state(serial, phase, &mut program.instrs[instr]);
            for side in SIDES {
                let Some((place, class)) = only_access(&program.instrs[instr], side) else { continue };
                match place {
                    Place::Array(access) => {
                        let ArrayData { id, length, .. } = program.arrays[access.array];
                        self.named.insert((serial, side), Named { id, length, class, offset: access.offset });
                    }
                    Place::Relative { offset, size } => {
                        let Some(start) = self.start((serial, side), offset, size, class, (section, phase)) else {
                            continue;
                        };
                        complete(program, instr, side, start);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Removes the source that is the old state of an array, of which an instruction writes one element. After
    /// allocation it is the same register; nothing else ties the source of a move or of arithmetic there.
    fn old_state(&mut self, serial: u32, phase: Phase, data: &mut InstrData) {
        let is_element = |place: &Place| matches!(place, Place::Array(_));
        if !data.opcode.is_meta() && data.dsts.iter().any(|dst| is_element(&dst.place)) {
            self.writes.insert(serial);
        }
        // A macro may tie a source of its own: that of a scan over clusters.
        let computes = !data.opcode.is_macro()
            && matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3 | Category::Sfu);
        let writes = self.writes.contains(&serial) || phase >= Phase::Allocated && computes;
        if !writes || data.dsts.iter().any(|dst| dst.value().is_some()) {
            return;
        }
        data.srcs.retain(|src| !src.flags.contains(OperandFlags::TIED));
        data.dsts.iter_mut().for_each(|dst| dst.flags -= OperandFlags::TIED);
    }

    fn start(
        &mut self,
        key: (u32, Side),
        printed: i16,
        size: u16,
        class: RegClass,
        (section, phase): (&Section, Phase),
    ) -> Option<(Named, PhysReg)> {
        let moved = phase >= Phase::Lowered;
        if let Some(known) = self.based.get(&key) {
            if known.printed != printed && !moved {
                let message = format!(
                    "ssa_{} accesses r<a0.x + {}> in {}, and r<a0.x + {printed}> in {}",
                    key.0,
                    known.printed,
                    known.place,
                    place(section)
                );
                self.contradictions.push(Contradiction::between([known.title.clone(), section.title()], message));
            }
            return (known.named.length == size && known.named.class == class).then_some((known.named, known.start));
        }
        // Without a section before it, the start is not known.
        let named = *self.named.get(&key).filter(|_| !moved)?;
        let start = u16::try_from(i32::from(printed) - i32::from(named.offset)).ok()?;
        if named.length != size || named.class != class {
            return None;
        }
        self.based.insert(
            key,
            Based { named, start: PhysReg(start), printed, title: section.title(), place: place(section) },
        );
        Some((named, PhysReg(start)))
    }

    /// Completes the array accesses of the final code by those of the last section, which has the same instructions in
    /// the same order.
    pub fn code(last: &Program, code: &mut Program) {
        let real = |program: &Program| -> Vec<Instr> {
            program
                .iter_instrs()
                .map(|(_, instr)| instr)
                .filter(|&instr| !program.instrs[instr].opcode.is_meta())
                .collect()
        };
        for (of_text, instr) in real(last).into_iter().zip(real(code)) {
            let (said, data) = (&last.instrs[of_text], &code.instrs[instr]);
            if said.opcode != data.opcode {
                // The code is not that of the text; the rest would be paired wrongly.
                return;
            }
            for side in SIDES {
                let (Some((Place::Array(access), class)), Some((Place::Relative { .. }, own))) =
                    (only_access(said, side), only_access(&code.instrs[instr], side))
                else {
                    continue;
                };
                let ArrayData { id, length, .. } = last.arrays[access.array];
                let Some(start) = access.base.expand().filter(|_| class == own) else { continue };
                complete(code, instr, side, (Named { id, length, class, offset: access.offset }, start));
            }
        }
    }
}

/// Names the array of an access that prints a register.
pub(super) fn complete(program: &mut Program, instr: Instr, side: Side, (named, start): (Named, PhysReg)) {
    let Some(array) = array(program, &named) else { return };
    let bounded = |place: &mut Place| {
        let Place::Relative { offset, .. } = *place else { return };
        let Some(offset) = i16::try_from(i32::from(offset) - i32::from(start.0)).ok() else { return };
        *place = Place::Array(ArrayAccess { array, offset, relative: true, value: None.into(), base: start.into() });
    };
    let data = &mut program.instrs[instr];
    let is_tied = |flags: OperandFlags| flags.contains(OperandFlags::TIED);
    if side == Side::Write {
        data.dsts.iter_mut().for_each(|dst| bounded(&mut dst.place));
    }
    for src in &mut data.srcs {
        // The old state belongs to the destination.
        if let SrcOperand::Place(place) = &mut src.operand
            && is_tied(src.flags) == (side == Side::Write)
        {
            bounded(place);
        }
    }
}

/// The array of a program that has this number, length and class.
fn array(program: &mut Program, named: &Named) -> Option<Array> {
    if let Some((array, data)) = program.arrays.iter().find(|(_, data)| data.id == named.id) {
        return (data.length == named.length && data.class == named.class).then_some(array);
    }
    Some(program.arrays.push(ArrayData { id: named.id, class: named.class, length: named.length, base: None }))
}
