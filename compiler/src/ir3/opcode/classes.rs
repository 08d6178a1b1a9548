//! The columns of the table of opcodes: what a row says.

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

/// What the operands are, and so which modifiers they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// No numeric operands.
    None,
    /// Floats: `(neg)`, `(abs)` and `(absneg)` on sources, `(sat)` on the result.
    Float,
    /// Integers: `(neg)` and `(abs)` where the operation has them.
    Int,
    /// Bits: `(not)` on sources.
    Bits,
    /// The instruction says its types.
    Typed,
}

/// How long a result takes, and how its reader waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latency {
    /// A fixed number of delay slots.
    Alu,
    /// Special function: `(ss)`.
    Sfu,
    /// Local memory: `(ss)`.
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

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeInfo {
    /// As the assembler writes it, without types, conditions and suffixes.
    pub name: &'static str,
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
}
