//! Elements of arrays at an index that is not known, which the target keeps in scratch memory.
//!
//! The source moves an element relative to `a0.x`. The target loads or stores it at an address that it computes from a
//! value of 16 bits, which must be that of `a0.x`: it is extended with its sign, and shifted by the size of an element.
//! Nothing else is taken for such an address. The whole array is compared, as for arrays in registers.

use super::facts::Literal;
use super::failure::RegisterFailure;
use super::location::Piece;
use super::operation::IndirectRegion;
use super::slots::SlotAccess;
use super::walk::LockstepWalk;
use ir3_compiler::ir3::{
    ArrayAccess, Attrs, Block, Instr, InstrData, Opcode, Place, RegClass, RegFile, Round, Src, SrcOperand, Type, Value,
    WriteMask,
};
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::SmallVec;

/// The access of a plain move to or from an element relative to `a0.x`, and true for a store.
fn relative_move(data: &InstrData) -> Option<(&ArrayAccess, RegClass, bool)> {
    let is_plain = matches!(
        data.attrs,
        Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default }
            | Attrs::Move { src: Type::U16, dst: Type::U16, round: Round::Default }
    );
    let ([dst], [src, address]) = (&data.dsts[..], &data.srcs[..]) else { return None };
    let is_move = data.opcode == Opcode::Mov && data.flags.is_empty() && data.repeat == 0 && is_plain;
    if !is_move || !src.mods.is_empty() || address.class.file != RegFile::Address || dst.class.half != src.class.half {
        return None;
    }
    match (&dst.place, src.place()) {
        (_, Some(Place::Array(_))) if matches!(dst.place, Place::Array(_)) => None,
        (Place::Array(access), _) if access.relative => Some((access, dst.class, true)),
        (_, Some(Place::Array(access))) if access.relative => Some((access, src.class, false)),
        _ => None,
    }
}

/// Returns true if an access to scratch memory is of one component of this class, and has no other effect.
fn is_scalar(data: &InstrData, access: &SlotAccess<'_>, class: RegClass) -> bool {
    let ty = if class.half { Type::U16 } else { Type::U32 };
    let count = data.srcs.get(2).map(|src| src.operand);
    let is_typed = data.memory().is_some_and(|memory| memory.ty == Some(ty));
    data.flags.is_empty()
        && access.class == class
        && access.mask == WriteMask::SCALAR
        && count == Some(SrcOperand::Immediate(1))
        && is_typed
}

/// The general value that an operand is.
fn value_of(place: Option<&Place>) -> Option<Value> {
    match place {
        Some(Place::Value(value)) => Some(*value),
        _ => None,
    }
}

impl LockstepWalk<'_> {
    /// Steps over a move of an element relative to `a0.x` for which the target accesses scratch memory. `None`: the
    /// instructions are no such pair.
    pub(super) fn element_in_scratch(
        &mut self,
        block: Block,
        s: &InstrData,
        t: &InstrData,
    ) -> Option<Result<(), RegisterFailure>> {
        if !matches!(t.opcode, Opcode::Ldp | Opcode::Stp) {
            return None;
        }
        let (element, class, is_store) = relative_move(s)?;
        let access = SlotAccess::new(t)?;
        if access.is_store != is_store || !is_scalar(t, &access, class) {
            return None;
        }
        let index = self.index_of(block, value_of(access.base.place())?, access.bytes())?;
        Some(self.same_element(s, t, element, &access, index))
    }

    /// The half value from which an address is computed: shifted by the size of an element after the extension of its
    /// sign, both in this block, and not written since.
    fn index_of(&self, block: Block, address: Value, bytes: u32) -> Option<Value> {
        let program = self.target.program;
        let list: &[Instr] = &program.blocks[block].instrs[..self.at[1]];
        let writer = |value: Value, end: usize| {
            let writes = |instr: &Instr| program.instrs[*instr].dsts.iter().any(|dst| dst.value() == Some(value));
            list[..end].iter().rposition(writes)
        };
        let plain = |data: &InstrData| {
            data.flags.is_empty()
                && data.repeat == 0
                && data.dsts.len() == 1
                && data.dsts[0].class == RegClass::FULL
                && data.srcs.iter().all(|src| src.mods.is_empty())
        };
        let shift_at = writer(address, list.len())?;
        let shift = &program.instrs[list[shift_at]];
        let [extended, by] = &shift.srcs[..] else { return None };
        let is_shift = shift.opcode == Opcode::ShlB
            && plain(shift)
            && (by.operand == SrcOperand::Immediate(bytes.trailing_zeros())
                || left_out(Guard::RegistersElementAddress));
        let extension_at = writer(value_of(extended.place()).filter(|_| is_shift)?, shift_at)?;
        let extension = &program.instrs[list[extension_at]];
        let is_signed =
            matches!(extension.attrs, Attrs::Move { src: Type::S16, dst: Type::S32, round: Round::Default });
        let [index] = &extension.srcs[..] else { return None };
        let is_extension =
            extension.opcode == Opcode::Mov && is_signed && plain(extension) && index.class == RegClass::HALF;
        let index = value_of(index.place()).filter(|_| is_extension)?;
        (writer(index, list.len()).is_none_or(|at| at < extension_at)).then_some(index)
    }

    /// Checks that the stored register holds the value that the source moves.
    fn same_value(&mut self, from: &Src, to: &SlotAccess<'_>, class: RegClass) -> Result<(), RegisterFailure> {
        let to = self.piece(self.target.component(to.place, class, 0, true))?;
        let from: SmallVec<[Piece; 2]> = match from.operand {
            SrcOperand::Undef => return Ok(()),
            SrcOperand::Place(ref place) => self.piece(self.source.component(place, from.class, 0, false))?.collect(),
            SrcOperand::Immediate(bits) => {
                (0..to.len()).map(|at| self.here.literal(Literal::Bits((bits >> (16 * at)) as u16))).collect()
            }
            SrcOperand::Const(word) => {
                (0..to.len()).map(|at| self.here.literal(Literal::Const(word, at == 1))).collect()
            }
            SrcOperand::ConstRelative(_) => {
                return Err(self.unsupported("an element that is a word of the constant file at an address"));
            }
        };
        if from.len() != to.len() {
            return Err(self.place("an element of another width"));
        }
        for (x, l) in from.into_iter().zip(to) {
            self.holds(l, x, 0)?;
        }
        Ok(())
    }

    fn same_element(
        &mut self,
        s: &InstrData,
        t: &InstrData,
        element: &ArrayAccess,
        access: &SlotAccess<'_>,
        index: Value,
    ) -> Result<(), RegisterFailure> {
        let (class, bytes) = (access.class, access.bytes());
        self.here.forget_lane();
        let address = &s.srcs[1];
        let place = address.place().ok_or_else(|| self.place("an address that is no register"))?;
        let from = self.piece(self.source.component(place, address.class, 0, false))?;
        let to = self.piece(self.target.component(&Place::Value(index), RegClass::HALF, 0, true))?;
        for (x, l) in from.zip(to) {
            if !left_out(Guard::RegistersElementIndex) {
                self.holds(l, x, 1)?;
            }
        }
        let array = self.piece(self.source.array(element, class))?;
        let start = i64::from(access.offset) - i64::from(element.offset) * i64::from(bytes);
        let start = u32::try_from(start).map_err(|_| self.place("an array before the start of scratch memory"))?;
        if start < self.own_scratch && !left_out(Guard::RegistersOwnScratch) {
            return Err(self.place("an array in scratch memory that belongs to the shader"));
        }
        let slots = self.piece(self.target.scratch(start, 2 * (array.end - array.start)))?;
        let region: IndirectRegion = array.zip(slots).collect();
        if access.is_store {
            self.same_value(&s.srcs[0], access, class)?;
            self.write_region(&region, true);
        } else {
            self.same_region(&region, 0)?;
            self.results(s, t, true)?;
        }
        self.operations += 1;
        Ok(())
    }
}
