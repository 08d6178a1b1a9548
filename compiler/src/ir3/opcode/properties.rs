//! Predicates over opcodes, each derived from columns of the table.

use super::{Category, Effect, Immediates, Lanes, Latency, Numeric, Opcode, Traits};
use crate::ir3::Mods;

// A branch without an arm in `inverse_branch` would be taken for one that has no inverse.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let opcode = Opcode::ALL[i];
        assert!(opcode.inverse_branch().is_some() == (opcode.is_branch() && !opcode.has_no_inverse()));
        i += 1;
    }
};

impl Opcode {
    const fn has(self, traits: Traits) -> bool {
        self.info().traits.contains(traits)
    }

    /// Returns true if its sources are the program's outputs: `end` and `chmask`.
    pub const fn is_output(self) -> bool {
        self.has(Traits::OUTPUTS)
    }

    /// Returns true if it ends a block: a branch, a jump or `end`.
    pub const fn is_terminator(self) -> bool {
        matches!(self.info().effect, Effect::End | Effect::Jump | Effect::Branch)
    }

    /// Returns true if it ends the program.
    pub const fn ends_program(self) -> bool {
        matches!(self.info().effect, Effect::End)
    }

    /// Returns true if control goes to one of two places, of which it names one.
    pub const fn is_branch(self) -> bool {
        matches!(self.info().effect, Effect::Branch) && !self.is_predication()
    }

    /// Returns true if it is a branch that all lanes take, or none.
    pub const fn is_uniform_branch(self) -> bool {
        self.is_branch() && matches!(self.info().lanes, Lanes::Uniform)
    }

    /// Returns true if lanes may go on with the instruction after it.
    pub const fn falls_through(self) -> bool {
        !matches!(self.info().effect, Effect::End | Effect::Jump)
    }

    /// The branch that is taken where this one is not, if its predicates are inverted, too: De Morgan. `None` for what
    /// cannot be inverted.
    pub const fn inverse_branch(self) -> Option<Self> {
        Some(match self {
            Self::Br => Self::Br,
            Self::Braa => Self::Brao,
            Self::Brao => Self::Braa,
            Self::Bany => Self::Ball,
            Self::Ball => Self::Bany,
            _ => return None,
        })
    }

    /// Returns true for branches that only one lane, or one wave, does not take, and for those that have no predicate.
    const fn has_no_inverse(self) -> bool {
        self.has(Traits::ELECTS) || matches!(self, Self::Shps | Self::Brac | Self::Brax)
    }

    /// Returns true if it is no instruction of the machine (phi, collect, split, parallel copy, input, prefetch).
    pub const fn is_meta(self) -> bool {
        matches!(self.category(), Category::Meta)
    }

    /// Returns true if it is expanded to several instructions before encoding: its sources are read after its results
    /// are written.
    pub const fn is_macro(self) -> bool {
        matches!(self.info().latency, Latency::Macro)
    }

    /// Returns true if it is one of the atomics.
    pub const fn is_atomic(self) -> bool {
        matches!(self.info().effect, Effect::Atomic)
    }

    /// The name without the operation of an atomic: `atomic.b` for all of them that access memory in the same way.
    pub fn family(self) -> &'static str {
        let name = self.name();
        name.rsplit_once('.').filter(|_| self.is_atomic()).map_or(name, |(form, _)| form)
    }

    /// Returns true if it writes to the constant file, so that a constant may be another one after it.
    pub const fn writes_consts(self) -> bool {
        matches!(self.info().effect, Effect::StoreConsts | Effect::LoadConsts)
    }

    /// Returns true if it has an effect beside its result, and so may not be removed when that is unused.
    pub const fn has_side_effect(self) -> bool {
        !matches!(self.info().effect, Effect::None | Effect::Load | Effect::LoadAny)
    }

    /// Returns true if its results depend on nothing but its sources, lane by lane, and it does nothing else: it may be
    /// computed again, elsewhere, or not at all.
    pub const fn is_pure(self) -> bool {
        let info = self.info();
        matches!(info.effect, Effect::None)
            && matches!(info.lanes, Lanes::Own | Lanes::Pairs)
            && !info.traits.contains(Traits::ACTIVE)
    }

    /// Returns true if it runs on an ALU, that of vectors or that of scalars.
    pub const fn is_alu(self) -> bool {
        matches!(self.category(), Category::Move | Category::Alu2 | Category::Alu3)
    }

    /// Returns true if the first two sources can be exchanged (and a comparison mirrored).
    pub const fn commutes(self) -> bool {
        self.has(Traits::COMMUTES)
    }

    /// Returns true if `(sat)` can clamp its result: float operations of cat2 and cat3 that compute a number.
    pub const fn can_saturate(self) -> bool {
        self.has(Traits::SATURATES)
    }

    /// Returns true if it has a condition.
    pub const fn has_condition(self) -> bool {
        self.has(Traits::COMPARES)
    }

    /// Returns true if it is a comparison whose result is 0 or 1.
    pub const fn is_comparison(self) -> bool {
        self.has(Traits::GIVES_BOOL)
    }

    /// The modifier that `(neg)` is, in texts and in words.
    pub fn negation(self) -> Mods {
        let inverts = self.info().numeric == Numeric::Bits && !self.has(Traits::NEG_CHOICES);
        if inverts { Mods::NOT } else { Mods::NEG }
    }

    /// The modifiers that source `slot` can carry.
    pub fn source_mods(self, slot: usize) -> Mods {
        let traits = self.info().traits;
        let mut mods = Mods::empty();
        let negates = [(Traits::NEG, true), (Traits::NEG_SECOND, slot == 1), (Traits::NEG_CHOICES, slot != 1)];
        mods.set(Mods::NEG, negates.into_iter().any(|(all, is_in_slot)| is_in_slot && traits.contains(all)));
        mods.set(Mods::ABS, traits.contains(Traits::ABS));
        mods.set(Mods::NOT, traits.intersects(Traits::NOT.union(Traits::PREDICATES)));
        mods
    }

    /// Returns true if source `slot` can be an immediate, beside whatever the others are.
    pub const fn takes_immediate(self, slot: usize) -> bool {
        let info = self.info();
        let slots = info.immediate_slots;
        !matches!(info.immediates, Immediates::No) && (slots == u8::MAX || slot < 8 && slots >> slot & 1 != 0)
    }

    /// Returns true if its sources are predicates.
    pub const fn reads_predicates(self) -> bool {
        self.has(Traits::PREDICATES)
    }

    /// Returns true if the third source is read later than the others.
    pub const fn reads_third_late(self) -> bool {
        self.has(Traits::LATE_THIRD)
    }

    /// The width of its sources, true for half registers, if it has one.
    pub const fn source_width(self) -> Option<bool> {
        if self.has(Traits::HALF_SRCS) {
            Some(true)
        } else if self.has(Traits::FULL_SRCS) {
            Some(false)
        } else {
            None
        }
    }

    /// The width of its result, true for a half register, if it has one.
    pub const fn result_width(self) -> Option<bool> {
        if self.has(Traits::HALF_DST) {
            Some(true)
        } else if self.has(Traits::FULL_DST) {
            Some(false)
        } else {
            None
        }
    }

    /// Returns true if the scalar ALU has the operation as the vector ALU does.
    pub const fn has_scalar_form(self) -> bool {
        self.has(Traits::SCALAR)
    }

    /// Returns true if it runs on the vector ALU even where its result and all its sources are uniform.
    pub const fn is_vector_only(self) -> bool {
        self.has(Traits::VECTOR_ONLY)
    }

    /// Returns true if `(rpt)` can repeat it.
    pub const fn can_repeat(self) -> bool {
        self.has(Traits::REPEATS)
    }

    /// Returns true if it depends on which lanes are active, or on what other lanes have.
    pub const fn depends_on_active_lanes(self) -> bool {
        self.has(Traits::ACTIVE)
    }

    /// Returns true if it reads the values of the other lanes of a quad.
    pub const fn reads_quad(self) -> bool {
        self.has(Traits::QUAD)
    }

    /// Returns true if it is a bitwise operation, whose result may be a predicate on newer GPUs.
    pub const fn is_logic(self) -> bool {
        self.has(Traits::LOGIC)
    }

    /// Returns true if it copies bits, also those of a NaN.
    pub const fn copies_bits(self) -> bool {
        self.has(Traits::COPIES_BITS)
    }

    /// Returns true if it can have `(sat)`.
    pub const fn takes_sat(self) -> bool {
        matches!(self.category(), Category::Alu2 | Category::Alu3) && !self.has(Traits::UNCLAMPED)
    }

    /// Returns true if it reads a varying: the memory of varyings is there until `(ei)`.
    pub const fn reads_varying(self) -> bool {
        matches!(self, Self::BaryF | Self::FlatB | Self::Ldlv)
    }

    /// Returns true if it ends lanes, or makes them helpers.
    pub const fn ends_lanes(self) -> bool {
        matches!(self.info().effect, Effect::EndsLanes)
    }

    /// Returns true if it is a terminator that chooses one lane.
    pub const fn elects_lane(self) -> bool {
        self.has(Traits::ELECTS)
    }

    /// Returns true for `predt` and `predf`.
    pub const fn is_predication(self) -> bool {
        self.has(Traits::PREDICATION)
    }

    /// Returns true if it can run while predication makes lanes inactive.
    pub const fn can_be_predicated(self) -> bool {
        !self.has(Traits::UNPREDICATED)
    }

    /// Returns true if it takes no issue slot, though its kind does.
    pub const fn is_issued_on_the_way(self) -> bool {
        self.has(Traits::UNCOUNTED)
    }

    /// Returns true if its results are there when the block starts: phis and inputs.
    pub const fn is_block_start(self) -> bool {
        self.has(Traits::STARTS)
    }

    /// Returns true if it only moves values between registers, and is lowered to moves.
    pub const fn is_copy(self) -> bool {
        self.has(Traits::COPIES)
    }

    /// Returns true if it is issued before the program starts, and so stands before all but inputs.
    pub const fn is_prefetched(self) -> bool {
        self.has(Traits::PREFETCHED)
    }

    /// Returns true if its results are there before the first instruction of the block is issued: phis, inputs and
    /// prefetches.
    pub const fn is_ready_at_start(self) -> bool {
        self.is_block_start() || self.is_prefetched()
    }

    /// Returns true if nothing may move over it, whatever it is.
    pub const fn is_scheduling_fence(self) -> bool {
        self.is_terminator()
            || matches!(self.info().effect, Effect::Control | Effect::Machine)
            || self.has(Traits::PLACED)
    }
}
