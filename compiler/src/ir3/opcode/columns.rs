//! The columns of the table of opcodes: what a row says.

use super::Form;
use bitflags::bitflags;

/// The family of an instruction: its encoding, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// cat0: branches, `nop`, `kill`, `end`.
    Flow,
    /// cat1: moves, conversions, and the macros that expand to them.
    Move,
    /// cat2: operations of one or two sources.
    Alu2,
    /// cat3: operations of three sources.
    Alu3,
    /// cat4: special functions.
    Sfu,
    /// cat5: textures, derivatives, quads.
    Texture,
    /// cat6: memory.
    Memory,
    /// cat7: barriers and caches.
    Barrier,
    /// No instruction of the machine.
    Meta,
}

/// The kind of the operands, which determines their modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// No numeric operands.
    None,
    /// Floats: `(neg)`, `(abs)` and `(absneg)` on sources, `(sat)` on the result.
    Float,
    /// Integers: `(neg)` and `(abs)` where the operation has them.
    Int,
    /// Bits: `(neg)` on sources inverts all of them.
    Bits,
    /// The instruction says its types.
    Typed,
}

/// The latency of a result, and the mechanism by which its reader waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latency {
    /// A fixed number of delay slots.
    Alu,
    /// Special function: `(ss)`.
    Sfu,
    /// Local memory, and other short ways through memory: `(ss)`.
    LocalMemory,
    /// Texture: `(sy)`.
    Texture,
    /// Other memory: `(sy)`.
    Memory,
    /// Control flow.
    Flow,
    /// Expanded to several instructions before encoding.
    Macro,
    /// No instruction.
    Meta,
}

/// The effects of an instruction beside its results, and the memory that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: its results depend on its operands, and on what nobody changes while the program runs.
    None,
    /// Ends a block and the program.
    End,
    /// Ends a block: all lanes go to the only successor.
    Jump,
    /// Ends a block: a lane goes to one of two successors, or is inactive in one.
    Branch,
    /// Other control flow, and what only takes time.
    Control,
    /// Some lanes become inactive, or helper lanes.
    EndsLanes,
    /// Changes a state of the machine: rounding mode, caches.
    Machine,
    /// Orders accesses to memory, of this wave and others.
    Barrier,
    /// Reads the memory that its attributes name.
    Load,
    /// Writes the memory that its attributes name.
    Store,
    /// Reads and writes the memory that its attributes name, at once.
    Atomic,
    /// Reads memory that its attributes do not name.
    LoadAny,
    /// Writes memory that its attributes do not name, or is about to read it.
    StoreAny,
    /// Writes registers to the constant file.
    StoreConsts,
    /// Copies memory to the constant file.
    LoadConsts,
}

/// The relation of results in different lanes, and, for a terminator, the edges that lanes take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// Each lane's results depend on its own sources: they are the same in all lanes if all sources are.
    Own,
    /// Each result depends on the source of the same number in the same lane.
    Pairs,
    /// The result depends on the edge by which the lane came.
    Edge,
    /// All lanes have the same results, whatever the sources are.
    Uniform,
    /// All lanes have the same first result.
    UniformFirst,
    /// All lanes have the same third result.
    UniformThird,
    /// Results may differ between lanes, whatever the sources are.
    Divergent,
}

/// The kinds of sources allowed beside general registers ([`valid_source`](crate::ir3::legality::valid_source)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sources {
    /// Nothing else.
    General,
    /// No instruction: of the register file of the result; constants and immediates become moves.
    OfResult,
    /// Anything.
    Any,
    /// Anything, but a move to the shared file converts integers only.
    Move,
    /// Shared registers.
    Registers,
    /// The first source is a general register, the others are shared registers or immediates.
    FirstGeneral,
    /// The first source is a shared register or an immediate, the others are general registers.
    FirstShared,
    /// Of two sources, one constant or shared register, and one immediate.
    Cat2,
    /// As [`Sources::Cat2`], but both may be immediates: the barycentrics of `flat.b` are not looked at.
    Flat,
    /// Constants and shared registers, but not second: that field holds a register number and no more.
    Cat3,
    /// The other encoding of three sources: constants at addresses only.
    Cat3Alternative,
    /// As [`Sources::Cat3`], without constants.
    Dot,
    /// As [`Sources::Cat3`], a constant being the third source only, and never a shared register there.
    Matrix,
    /// The scalar ALU computes it from shared registers.
    Cat4,
    /// Nothing else but immediates.
    Memory,
    /// As [`Sources::Memory`], and the second source may be a shared register.
    MemorySecondShared,
}

/// Which immediates can be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Immediates {
    /// None.
    No,
    /// All. Sizes and offsets of memory operations have 13 bits; selection checks them.
    Any,
    /// Eight bits.
    Bits8,
    /// Ten bits, sign-extended to the width of the operand.
    Bits10,
    /// Twelve bits.
    Bits12,
    /// The floats of [`FLUT`](crate::ir3::legality::FLUT).
    FloatTable,
}

bitflags! {
    /// Boolean properties of an opcode.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Traits: u32 {
        /// Passes exchange the first two sources where that helps; a comparison is mirrored. `sad`, `madsh.u16` and `andg`
        /// do not have it: they commute, but the sources of `sad` have different modifiers, and of the others passes have
        /// never exchanged any.
        const COMMUTES = 1;
        /// `(sat)` clamps the result.
        const SATURATES = 1 << 1;
        /// Has a condition.
        const COMPARES = 1 << 2;
        /// The result is 0 or 1.
        const GIVES_BOOL = 1 << 3;
        /// Sources can be negated.
        const NEG = 1 << 4;
        /// Sources can be made positive.
        const ABS = 1 << 5;
        /// Sources can be inverted.
        const NOT = 1 << 6;
        /// The second source can be negated.
        const NEG_SECOND = 1 << 7;
        /// Sources are predicates, which can be inverted.
        const PREDICATES = 1 << 8;
        /// The third source is read later than the others.
        const LATE_THIRD = 1 << 9;
        /// Sources are half registers.
        const HALF_SRCS = 1 << 10;
        /// Sources are full registers.
        const FULL_SRCS = 1 << 11;
        /// The result is a half register.
        const HALF_DST = 1 << 12;
        /// The result is a full register.
        const FULL_DST = 1 << 13;
        /// The scalar ALU has the operation, too.
        const SCALAR = 1 << 14;
        /// Never runs on the scalar ALU, even if its result and all of its sources are uniform.
        const VECTOR_ONLY = 1 << 15;
        /// `(rpt)` repeats it.
        const REPEATS = 1 << 16;
        /// Depends on which lanes are active, or on what other lanes have, or needs helper lanes: it stays in order with
        /// what changes the set of active lanes.
        const ACTIVE = 1 << 17;
        /// Chooses one lane, which goes another way than the others.
        const ELECTS = 1 << 18;
        /// Makes lanes inactive until the other one of the two, or `prede`.
        const PREDICATION = 1 << 19;
        /// Cannot run while predication makes lanes inactive.
        const UNPREDICATED = 1 << 20;
        /// Takes no issue slot: jumps are issued on the way.
        const UNCOUNTED = 1 << 21;
        /// Its sources are the outputs of the program.
        const OUTPUTS = 1 << 22;
        /// Its results are there when the block starts.
        const STARTS = 1 << 23;
        /// Moves values from register to register, and is expanded to moves.
        const COPIES = 1 << 24;
        /// Stays at its place in the block, and nothing moves over it.
        const PLACED = 1 << 25;
        /// Is issued before the program starts: its result is in its register before any other instruction, so none but
        /// inputs may stand before it.
        const PREFETCHED = 1 << 26;
        /// The sign bit of what it chooses, sources 0 and 2, can be inverted, as of floats.
        const NEG_CHOICES = 1 << 27;
        /// Reads the values of the other lanes of a quad.
        const QUAD = 1 << 28;
        /// `(sat)` cannot clamp the result, though it can that of most operations of two and three sources.
        const UNCLAMPED = 1 << 29;
        /// Computes each bit of the result from the same bit of its sources: newer GPUs can write a predicate.
        const LOGIC = 1 << 30;
        /// The result has the bits of a source, also those of a NaN, though the operation is one of floats.
        const COPIES_BITS = 1 << 31;
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeInfo {
    /// Family.
    pub category: Category,
    /// Destinations; 255 is any number.
    pub dsts: u8,
    /// Fewest sources.
    pub min_srcs: u8,
    /// Most sources; 255 is any number.
    pub max_srcs: u8,
    /// Numeric kind.
    pub numeric: Numeric,
    /// Latency class.
    pub latency: Latency,
    /// Its effects beside its results.
    pub effect: Effect,
    /// The relation of results in different lanes.
    pub lanes: Lanes,
    /// The kinds of sources allowed.
    pub sources: Sources,
    /// Which immediates can be encoded.
    pub immediates: Immediates,
    /// Which sources may be immediates, one bit each.
    pub immediate_slots: u8,
    /// Its boolean properties.
    pub traits: Traits,
    /// The roles of its sources.
    pub form: &'static Form,
}
