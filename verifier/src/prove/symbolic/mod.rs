//! Programs run on terms instead of numbers.
//!
//! What is run is what the interpreter runs: a decoded program ([`interp::nir`](crate::semantics::interp::nir),
//! [`interp::ir3`](crate::semantics::interp::ir3)), its operations by the same definitions, in the domain of [terms](crate::semantics::terms). It is
//! run for *one* lane of which nothing is known, from one *cut point* (the entry, or the header of a loop) to the next
//! ones: between them a program has no cycle, so each block is executed once, under the condition that the lane comes there,
//! and where paths meet values are chosen by these conditions.
//!
//! What one lane does depends on others in three ways, and all are *events* that an [`Oracle`] answers:
//! - operations across lanes: their result depends on the operands of all lanes that are there;
//! - memory: what is stored is seen by the others. The state of a memory is a *version*, which belongs to the wave: versions
//!   follow each other in the order of the blocks in the layout, which is the order in which the wave runs them ([`run`]); at barriers and
//!   fences other waves may write, so there is a new one behind each;
//! - shared registers, which hold what any lane wrote.
//!
//! Undefined values (see `semantics::undefined`): on the side after a pass an undefined value is a variable of its own, of which
//! nothing is known, so what is shown holds for all that it may be. On the side before, a choice is made, which the proof is free in
//! ([`Oracle::unknown`]), and beside the bits of each value stands a mask of those that may be anything, each use for itself.

pub mod graph;
mod ir3;
mod lanes;
mod nir;
mod own;
pub mod run;
mod site;
mod view;
mod wave;
mod world;

pub use graph::{Graph, Loop};
pub use ir3::Ir3;
pub use nir::Nir;
pub use run::{Run, Transition};
pub use site::Site;
pub use view::View;
pub use wave::{Goals, leave_as_one};
pub use world::{Facts, HELPER, is_helper, version_kind};

use crate::semantics::arithmetic::domain::Domain;
use crate::semantics::assumptions::Uses;
use crate::semantics::environment::env::Launch;
use crate::semantics::environment::memory::Space;
use crate::semantics::environment::sync::Sync;
use crate::semantics::interp::{OutputSlot, Places};
use crate::semantics::terms::{Op, Term, Terms, VariableKind};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// A location: a row of nir, a slot of ir3, or one of the numbers below.
pub type Slot = u32;

/// The slots that are no storage of the program.
pub mod slot {
    use super::Slot;
    use crate::semantics::environment::memory::Space;

    /// From here on.
    const FIRST: Slot = 1 << 30;
    /// Whether the lane was demoted: 1 bit.
    pub const DEMOTED: Slot = FIRST;
    /// The version of the constant file.
    pub const CONSTANTS: Slot = FIRST + 1;

    /// The version of a memory.
    pub const fn memory(space: Space) -> Slot {
        FIRST + 2 + space as Slot
    }

    /// A component of an output.
    pub const fn output(base: u16, component: u8) -> Slot {
        FIRST + 0x10_0000 + (base as Slot) * 8 + component as Slot
    }

    /// A word of the lane's own memory.
    pub const fn own(word: u32) -> Slot {
        FIRST + 0x1000_0000 + word
    }

    /// Whether it is the version of a memory, or of the constant file.
    pub const fn is_version(slot: Slot) -> bool {
        slot > DEMOTED && slot < FIRST + 0x10
    }

    /// The order of barriers and fences, as if they were stores to a memory of their own.
    pub const SYNCHRONIZATION: Slot = FIRST + 7;

    /// All versions.
    pub fn versions() -> impl Iterator<Item = Slot> {
        CONSTANTS..SYNCHRONIZATION + 1
    }
}

/// What a location holds: a word, and which of its bits may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// The bits; 32 of them in storage, any number elsewhere. Where they are free, those of a choice that was made.
    pub bits: Term,
    /// The bits that are undefined and may be anything whatever the others are, as a mask of the same width; see
    /// [`semantics::undefined`](crate::semantics::operations::undefined).
    pub free: Term,
}

impl Value {
    /// A value that may be anything where `free`, of one bit, is 1.
    pub fn free_where(terms: &mut Terms, bits: Term, free: Term) -> Self {
        let width = terms.width(bits);
        Self { bits, free: terms.sext(1, width, free) }
    }

    /// A value of which no bit is free.
    pub fn defined(terms: &mut Terms, bits: Term) -> Self {
        let width = terms.width(bits);
        Self { bits, free: terms.constant(width, 0) }
    }

    /// A word with another half: the high one, or the low one, by what the low half of `half` is.
    pub fn with_half(self, terms: &mut Terms, high: bool, half: Value) -> Self {
        let mut join = |own: Term, half: Term| {
            let half = terms.extract(32, half, 0, 16);
            let own = terms.extract(32, own, if high { 0 } else { 16 }, 16);
            if high { terms.concat(16, half, 16, own) } else { terms.concat(16, own, 16, half) }
        };
        Self { bits: join(self.bits, half.bits), free: join(self.free, half.free) }
    }

    /// One half, as a word.
    pub fn half(self, terms: &mut Terms, low: u32) -> Self {
        let mut part = |term: Term| {
            let half = terms.extract(32, term, low, 16);
            terms.zext(16, 32, half)
        };
        Self { bits: part(self.bits), free: part(self.free) }
    }

    /// The low bits of a word, as so many bits.
    pub fn part(self, terms: &mut Terms, bits: u32) -> Self {
        Self { bits: terms.extract(32, self.bits, 0, bits), free: terms.extract(32, self.free, 0, bits) }
    }

    /// The low bits of a word, in a word.
    pub fn low(self, terms: &mut Terms, bits: u32) -> Self {
        Self { bits: world::low(terms, self.bits, bits), free: world::low(terms, self.free, bits) }
    }

    /// Whether any bit is free: one bit.
    pub fn any_free(&self, terms: &mut Terms) -> Term {
        let node = terms.node(self.free);
        if node.op == Op::Sext && terms.width(node.args[0]) == 1 {
            return node.args[0];
        }
        world::nonzero(terms, self.free)
    }

    /// Whether no bit is free, as far as can be seen.
    pub fn is_defined(&self, terms: &Terms) -> bool {
        terms.as_constant(self.free) == Some(0)
    }
}

/// Where a segment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    /// The beginning of the program.
    Entry,
    /// The header of a loop, by its number in [`Graph::loops`].
    Header(u32),
}

impl Cut {
    /// The kind of a variable for what happens in a segment from here: before the first loop it happens once.
    pub fn kind(self, of: VariableKind) -> VariableKind {
        match self {
            Self::Entry => of,
            Self::Header(_) => of.passing(),
        }
    }
}

/// Where a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Goal {
    /// The header of a loop.
    Header(u32),
    /// The end of the program.
    End,
    /// The lane is killed.
    Killed,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Its results are a function of the operands of all lanes that are there. So an operand that is free in one program is what it is in
    /// the other, and the results are the same, and no bit of them is free.
    Lanes,
    /// It makes a new version of a memory.
    Memory(Space),
    /// It reads a memory of which the source has volatile loads, so it stays in order with all other accesses there.
    Load(Space),
    /// It makes a new version of the constant file.
    Constants,
    /// Other waves may write to the memories that it orders, so it makes a new version of each.
    Sync(Sync),
    /// A shared register takes the value of one of the lanes. The results are one bit: whether they disagree; the value; one bit: whether
    /// there is a lane at all.
    OneLane,
}

impl EventKind {
    /// Returns true if a target may have this where its source has the other one.
    pub fn replaces(self, source: Self) -> bool {
        match (self, source) {
            (EventKind::Sync(this), EventKind::Sync(source)) => this.replaces(source),
            _ => self == source,
        }
    }
}

/// Versions of memories; one for most events that make some.
pub type Versions<T = Slot> = SmallVec<[T; 1]>;

/// Something that depends on what other lanes do, or that they see.
#[derive(Clone, Debug)]
pub struct Event {
    /// Which one of the program: the same every time that the lane comes by.
    pub site: Site,
    /// What kind of thing.
    pub kind: EventKind,
    /// Exactly what, in words that do not depend on the language.
    pub what: String,
    /// The condition under which the lane takes part: one bit.
    pub path: Term,
    /// The operands.
    pub args: SmallVec<[Value; 4]>,
    /// Bits of each result. The second is whether the result is undefined, where it may be; the third then what it is.
    pub results: SmallVec<[u8; 4]>,
    /// All lanes get the same results.
    pub uniform: bool,
    /// Where it happens; [`run::Machine::event`] knows.
    pub setting: Setting,
}

/// Where an event happens, and what is found there.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The position of the block.
    pub block: u32,
    /// The loops that it stands in.
    pub loops: SmallVec<[u32; 2]>,
    /// The versions that it makes: others see it.
    pub makes: Versions,
    /// What they are before.
    pub before: Versions<Term>,
    /// Lanes come here from the entry only, on no way that leads through a loop.
    pub alone: bool,
}

/// What somebody who watches a program being run on terms has to say.
pub trait Oracle {
    /// What a location holds at the cut point.
    fn start(&mut self, terms: &mut Terms, slot: Slot) -> Value;
    /// A word that is undefined. `name` says which, in the segment.
    fn unknown(&mut self, terms: &mut Terms, name: &str) -> Value;
    /// An undefined word that has the same name in both programs: one of an array or register that nothing has been written to since the
    /// program began, or what is outside of an array.
    fn unwritten(&mut self, terms: &mut Terms, name: &str) -> Value;
    /// A word that a phi makes of something undefined. `names` are those that it has in other forms of the program, and in the other language.
    fn phi(&mut self, terms: &mut Terms, names: [&str; 2]) -> Value;
    /// Whether it matters what a shared register holds where the segment ends.
    fn wants(&self, goal: Goal, slot: Slot) -> bool;
    /// What a location holds where a segment ends, of which nobody has wanted to know it before.
    fn not_known_yet(&mut self, terms: &mut Terms, goal: Goal, slot: Slot) -> Value;
    /// A value has been computed; what is used from now on.
    fn value(&mut self, terms: &mut Terms, value: Value) -> Value;
    /// A condition has been computed: one bit; what is used from now on.
    fn condition(&mut self, terms: &mut Terms, condition: Term) -> Term {
        let condition = Value::defined(terms, condition);
        self.value(terms, condition).bits
    }
    /// The version that a memory has: one for all memories that may be the same.
    fn version_of(&self, space: Space) -> Slot;
    /// Returns true if loads from a memory are events: the source has volatile ones.
    fn watches_loads(&self, space: Space) -> bool;
    /// The versions that an event makes.
    fn makes(&self, kind: EventKind) -> Versions;
    /// An event happens. The results; for one that makes new versions, also these (at the end).
    fn event(&mut self, terms: &mut Terms, event: Event) -> SmallVec<[Term; 4]>;
    /// Where lanes go that are together at a cut point, as far as that is known, and whether some do and others do not.
    fn goals(&self, cut: Cut) -> &[(Goal, bool)];
    /// Whether this is written to a shared register here in all segments that come here. `None` is what is not the same in all lanes.
    fn written_everywhere(&mut self, site: Site, value: Option<Value>) -> bool;
    /// Other lanes run a block that this one does not come to: the version of a memory then, if that changes, or what a shared register holds
    /// that is written there.
    fn others(&mut self, terms: &mut Terms, block: u32, slot: Slot) -> Option<Value>;
    /// Whether a term of the cut point is what a shared register holds that no block of a loop writes.
    fn is_kept(&self, term: Term, number: u32) -> bool;
    /// What a shared register holds behind a loop that others may have run meanwhile; `held` is what it holds if nobody has. It is the
    /// same for all lanes.
    fn behind(&mut self, terms: &mut Terms, number: u32, slot: Slot, held: Value) -> Value;
    /// The address from which on a lane's own memory is taken for registers; see `own`. `None`: it is not.
    fn own_from(&self) -> Option<u32>;
    /// Returns true if both texts have the shapes of textures.
    fn has_printed_shapes(&self) -> bool;
    /// Returns true if both texts name formats of images.
    fn has_printed_formats(&self) -> bool;
    /// Something is taken for granted, by its short name.
    fn assume(&mut self, assumption: &'static str);
    /// It cannot be: what follows is of no worth.
    fn lost(&mut self, why: &'static str);
    /// On this path this must hold, or the program has no meaning.
    fn demand(&mut self, terms: &mut Terms, path: Term, holds: Term, why: &'static str);
}

/// What cannot be run on terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// A decoded program, for running it on terms.
pub trait Code {
    /// Its blocks and loops.
    fn graph(&self) -> &Graph;
    /// What a location holds that never changes: constants.
    fn fixed(&self, terms: &mut Terms, slot: Slot) -> Option<Value>;
    /// The location that is undefined, each time that it is read.
    fn undefined(&self) -> Option<Slot>;
    /// What is known of its locations.
    fn places(&self) -> &Places;
    /// Executes the operations of a block of the program, and then leaves it by [`run::Machine::leave`] and others.
    ///
    /// # Errors
    /// If an operation is not supported.
    fn block<O: Oracle>(&self, block: u32, machine: &mut run::Machine<'_, O>) -> Result<(), Unsupported>;
    /// Bytes of memory that each lane has of its own.
    fn scratch_bytes(&self) -> u32;
    /// Whether the program looks at that memory at all.
    fn uses_scratch(&self) -> bool;
    /// The memories that it accesses.
    fn memories(&self) -> Vec<Space>;
    /// Those of which some loads are volatile or coherent.
    fn volatile(&self) -> Vec<Space>;
    /// What kind of program it is.
    fn launch(&self) -> Launch;
    /// What it uses of which a proof knows less than the hardware does.
    fn uses(&self) -> Uses;
    /// The locations that are shared registers, or values in such.
    fn shared_slots(&self) -> &FxHashSet<Slot>;
    /// Returns true if its text has the shapes of textures.
    fn prints_shapes(&self) -> bool;
    /// The outputs that the program may have written at its end.
    fn outputs(&self) -> Vec<OutputSlot>;
}
