//! Programs run on terms instead of numbers.
//!
//! What is run is what the interpreter runs: a decoded program ([`interp::nir`](crate::interp::nir),
//! [`interp::ir3`](crate::interp::ir3)), its operations by the same definitions, in the domain of [terms](crate::terms). It is
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
//! Poison is a bit beside each value, two for the halves of a register.

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

use crate::assumptions::Uses;
use crate::interp::OutputSlot;
use crate::semantics::domain::Domain;
use crate::semantics::env::Launch;
use crate::semantics::memory::Space;
use crate::semantics::sync::Sync;
use crate::terms::{Term, Terms, VariableKind};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// A location: a row of nir, a slot of ir3, or one of the numbers below.
pub type Slot = u32;

/// The slots that are no storage of the program.
pub mod slot {
    use super::Slot;
    use crate::semantics::memory::Space;

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

/// What a location holds: a word, and whether its low and its high half are poison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// The bits; 32 of them in storage, any number elsewhere.
    pub bits: Term,
    /// One bit each; the same where the value has no halves.
    pub poison: [Term; 2],
}

impl Value {
    /// A value of which all or nothing is poison.
    pub fn new(bits: Term, poison: Term) -> Self {
        Self { bits, poison: [poison; 2] }
    }

    /// A value that is not poison.
    pub fn defined(terms: &mut Terms, bits: Term) -> Self {
        Self::new(bits, terms.constant(1, 0))
    }

    /// A word with another half: the high one, or the low one, by what the low half of `half` is.
    pub fn with_half(self, terms: &mut Terms, high: bool, half: Value) -> Self {
        let poison = half.any_poison(terms);
        let half = terms.extract(32, half.bits, 0, 16);
        if high {
            let low = terms.extract(32, self.bits, 0, 16);
            Self { bits: terms.concat(16, half, 16, low), poison: [self.poison[0], poison] }
        } else {
            let high = terms.extract(32, self.bits, 16, 16);
            Self { bits: terms.concat(16, high, 16, half), poison: [poison, self.poison[1]] }
        }
    }

    /// Nothing. Its bits do not matter: 0 is as good as any.
    pub fn undefined(terms: &mut Terms) -> Self {
        Self::new(terms.constant(32, 0), terms.constant(1, 1))
    }

    /// Whether any half is poison.
    pub fn any_poison(&self, terms: &mut Terms) -> Term {
        if self.poison[0] == self.poison[1] { self.poison[0] } else { terms.or(1, self.poison[0], self.poison[1]) }
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
    /// Its results are a function of the operands of all lanes that are there.
    Lanes,
    /// It makes a new version of a memory.
    Memory(Space),
    /// It reads a memory of which the source has volatile loads, so it stays in order with all other accesses there.
    Load(Space),
    /// It makes a new version of the constant file.
    Constants,
    /// Other waves may write to the memories that it orders, so it makes a new version of each.
    Sync(Sync),
    /// A shared register takes the value of one of the lanes. The results are one bit: whether they disagree or the value is
    /// poison in one of them; the value; one bit: whether there is a lane at all.
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
    /// Bits of each result. The last ones are poison bits where the results may be poison.
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
    /// A value has been computed; what is used from now on.
    fn value(&mut self, terms: &mut Terms, value: Value) -> Value;
    /// A condition has been computed: one bit; what is used from now on.
    fn condition(&mut self, terms: &mut Terms, condition: Term) -> Term {
        let no = terms.constant(1, 0);
        self.value(terms, Value::new(condition, no)).bits
    }
    /// Whether what is stored in a memory may be poison.
    fn holds_poison(&self, space: Space) -> bool;
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
    /// What a shared register holds behind a loop that others may have run meanwhile; `held` is what it holds if nobody has. It is the
    /// same for all lanes.
    fn behind(&mut self, terms: &mut Terms, number: u32, slot: Slot, held: Value) -> Value;
    /// The address from which on a lane's own memory is taken for registers; see `own`. `None`: it is not.
    fn own_from(&self) -> Option<u32>;
    /// Returns true if both texts have the shapes of textures.
    fn has_printed_shapes(&self) -> bool;
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
