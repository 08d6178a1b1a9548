//! Programs of other compilers.
//!
//! A compiler with a machine language of its own can use the engines if it describes its programs as a
//! [`ForeignProgram`]: operations with their operands, results and effects, in blocks with their successors. [`decode`]
//! writes that down as an ir3 program, the form that the interpreter, the register checker and symbolic execution read.
//! So the engines have no second way in, and a foreign program means exactly like the ir3 program: as in a lifter, the
//! description has to be right.
//!
//! It covers integers of 32 bits, comparisons of unsigned ones, memory by words, and branches: no floats, no values of
//! 16 or 64 bits, no textures, no exchange between threads. A compiler that has these writes ir3 text, and
//! `ir3_programs::input::parse` reads it.
//!
//! A thread of the foreign machine is a lane. Registers have 32 bits, and so has a word of memory, which all threads
//! share.

use ir3_compiler::ir3::Builder;
use ir3_compiler::ir3::{
    AddressSpace, Array, ArrayAccess, ArrayData, Attrs, Block, BlockData, Condition, ConstLayout, Dst, InputKind,
    InstrData, MemoryAttrs, Opcode, PhysReg, Place, Program, RegClass, Round, ShaderStage, Src, SrcOperand,
    SystemValue, Type, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;
use ir3_semantics::interp;
use ir3_semantics::interp::Unsupported;

/// A register of the foreign machine, or something else that holds a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A register that the program may use without bound: before allocation, or a stack slot.
    Virtual(u16),
    /// A register of the machine, of at most 192.
    Register(u16),
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The word that a location holds.
    Location(Location),
    /// A number.
    Constant(u32),
}

/// An operation. Its operands are read before its result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Copies a word.
    Copy(Location, Operand),
    /// Computes the result of an operation of ir3, which has two integer operands and no effect.
    Compute(Opcode, Location, [Operand; 2]),
    /// 1 if the comparison of two unsigned numbers holds, else 0.
    Compare(Condition, Location, [Operand; 2]),
    /// Reads the word of memory with this number.
    Load(Location, Operand),
    /// Writes to the word of memory with the first number.
    Store(Operand, Operand),
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The end of the program.
    End,
    /// Jumps to a block.
    Jump(usize),
    /// Branches to the first block if the operand is not 0, else to the second.
    Branch(Operand, [usize; 2]),
}

impl Exit {
    /// The location that decides it.
    fn location(self) -> Option<Location> {
        match self {
            Self::Branch(Operand::Location(location), _) => Some(location),
            _ => None,
        }
    }
}

/// A program of a foreign machine.
pub trait ForeignProgram {
    /// The location that holds the number of the thread at the start. All others are undefined there.
    fn thread(&self) -> Location;
    /// The number of blocks. The first is the entry; the others are in the order of the code.
    fn blocks(&self) -> usize;
    /// The operations of a block, in order.
    fn operations(&self, block: usize) -> Vec<Operation>;
    /// The successors of a block.
    fn exit(&self, block: usize) -> Exit;
}

/// Decodes a foreign program to the form that all engines execute, for this GPU.
///
/// # Errors
/// If the interpreter does not execute an operation, or a block or register does not exist; with the place.
pub fn decode(foreign: &impl ForeignProgram, machine: &Target) -> Result<Snapshot, Unsupported> {
    let error = |what: String, place: String| Err(Unsupported { what, place });
    let count = foreign.blocks();
    if count == 0 {
        return error("no block".to_owned(), "the program".to_owned());
    }
    let mut program = Program {
        stage: Some(ShaderStage::Compute),
        workgroup_size: Some([64, 1, 1]),
        consts: ConstLayout::default(),
        ..Program::default()
    };
    let operations: Vec<Vec<Operation>> = (0..count).map(|block| foreign.operations(block)).collect();
    let mut words = 1;
    for (block, operations) in operations.iter().enumerate() {
        for (at, operation) in operations.iter().enumerate() {
            if let Some(what) = problem(operation) {
                return error(what, format!("block {block}, operation {at}"));
            }
            words = locations(operation).fold(words, words_with);
        }
    }
    if let Some(what) = is_nowhere(foreign.thread()) {
        return error(what, "the number of the thread".to_owned());
    }
    for block in 0..count {
        if let Some(location) = foreign.exit(block).location() {
            if let Some(what) = is_nowhere(location) {
                return error(what, format!("the end of block {block}"));
            }
            words = words_with(words, location);
        }
    }
    let length = words_with(words, foreign.thread());
    let virtuals = program.arrays.push(ArrayData { id: 1, class: RegClass::FULL, length, base: None });
    let blocks: Vec<Block> = (0..count).map(|_| program.blocks.push(BlockData::default())).collect();
    program.layout.clone_from(&blocks);
    for (number, &block) in blocks.iter().enumerate() {
        let mut decoder = Decoder { b: Builder::new(&mut program, block), virtuals };
        if number == 0 {
            decoder.thread(foreign.thread());
        }
        operations[number].iter().for_each(|operation| decoder.operation(operation));
        let successors = decoder.exit(foreign.exit(number));
        for (slot, to) in successors.into_iter().enumerate() {
            let Some(&to) = blocks.get(to) else {
                return error(format!("a jump to block {to}, of {count}"), format!("block {number}"));
            };
            program.add_edge(block, slot, to);
        }
    }
    interp::ir3::Decoded::new(&program, machine)?;
    Ok(Snapshot::Ir3(Box::new(program)))
}

/// The reason why an operation cannot be decoded.
fn problem(operation: &Operation) -> Option<String> {
    match operation {
        Operation::Compute(opcode, ..) if !COMPUTES.contains(opcode) => {
            Some(format!("`{}`, which is no operation on two integers", opcode.name()))
        }
        _ => locations(operation).find_map(is_nowhere),
    }
}

/// The locations that an operation names.
fn locations(operation: &Operation) -> impl Iterator<Item = Location> {
    let (result, operands) = match *operation {
        Operation::Copy(result, a) | Operation::Load(result, a) => (Some(result), [Some(a), None]),
        Operation::Compute(_, result, [a, b]) | Operation::Compare(_, result, [a, b]) => {
            (Some(result), [Some(a), Some(b)])
        }
        Operation::Store(address, value) => (None, [Some(address), Some(value)]),
    };
    let operands = operands.into_iter().flatten().filter_map(|operand| match operand {
        Operand::Location(location) => Some(location),
        Operand::Constant(_) => None,
    });
    operands.chain(result)
}

/// The name of a location, if there is no such one.
fn is_nowhere(location: Location) -> Option<String> {
    match location {
        Location::Virtual(number) if number >= VIRTUALS => Some(format!("virtual register {number}")),
        Location::Register(number) if number >= PhysReg::SHARED_FIRST.0 => Some(format!("register {number}")),
        _ => None,
    }
}

/// The number of virtual registers, with one more location.
fn words_with(words: u16, location: Location) -> u16 {
    match location {
        Location::Virtual(number) => words.max(number + 1),
        Location::Register(_) => words,
    }
}

/// The greatest number of virtual registers.
const VIRTUALS: u16 = i16::MAX as u16;

/// The opcodes of [`Operation::Compute`].
const COMPUTES: [Opcode; 8] =
    [Opcode::AddU, Opcode::SubU, Opcode::AndB, Opcode::OrB, Opcode::XorB, Opcode::ShlB, Opcode::ShrB, Opcode::AshrB];

/// Appends operations to a block.
struct Decoder<'a> {
    b: Builder<'a>,
    /// The array that holds all virtual registers.
    virtuals: Array,
}

impl Decoder<'_> {
    fn place(&self, location: Location) -> Place {
        match location {
            Location::Register(number) => Place::Reg(PhysReg(number)),
            Location::Virtual(number) => Place::Array(ArrayAccess {
                array: self.virtuals,
                offset: number as i16,
                relative: false,
                value: None.into(),
                base: None.into(),
            }),
        }
    }

    fn src(&self, operand: Operand) -> Src {
        let operand = match operand {
            Operand::Constant(number) => SrcOperand::Immediate(number),
            Operand::Location(location) => SrcOperand::Place(self.place(location)),
        };
        Src::new(operand, RegClass::FULL, WriteMask::SCALAR)
    }

    fn push(&mut self, opcode: Opcode, attrs: Attrs, result: Option<Location>, operands: &[Src]) {
        let mut data = InstrData::new(opcode);
        data.attrs = attrs;
        data.srcs.extend_from_slice(operands);
        data.dsts.extend(result.map(|location| Dst::new(self.place(location), RegClass::FULL, WriteMask::SCALAR)));
        self.b.push(data);
    }

    /// The number of the thread arrives in a register of its own, which nothing else names.
    fn thread(&mut self, location: Location) {
        let input = Attrs::Input(Some(InputKind::System(SystemValue::LocalInvocationIndex)));
        let lane = self.b.define(Opcode::Input, RegClass::FULL, 1, &[], input);
        let lane = self.b.src(lane);
        self.copy(location, lane);
    }

    fn copy(&mut self, to: Location, from: Src) {
        let same = Attrs::Move { src: Type::U32, dst: Type::U32, round: Round::Default };
        self.push(Opcode::Mov, same, Some(to), &[from]);
    }

    fn operation(&mut self, operation: &Operation) {
        let memory = MemoryAttrs {
            ty: Some(Type::U32),
            components: Some(1),
            space: Some(AddressSpace::Ssbo),
            coords: Some(1),
            base: Some(0),
            ..MemoryAttrs::default()
        };
        let zero = self.src(Operand::Constant(0));
        match *operation {
            Operation::Copy(to, from) => {
                let from = self.src(from);
                self.copy(to, from);
            }
            Operation::Compute(opcode, to, operands) => {
                let operands = operands.map(|operand| self.src(operand));
                self.push(opcode, Attrs::None, Some(to), &operands);
            }
            Operation::Compare(condition, to, operands) => {
                let operands = operands.map(|operand| self.src(operand));
                self.push(Opcode::CmpsU, Attrs::Compare(condition), Some(to), &operands);
            }
            Operation::Load(to, address) => {
                let address = self.src(address);
                self.push(Opcode::Ldib, Attrs::Memory(memory), Some(to), &[zero, address, zero]);
            }
            Operation::Store(address, value) => {
                let (address, value) = (self.src(address), self.src(value));
                self.push(Opcode::Stib, Attrs::Memory(memory), None, &[zero, address, zero, value]);
            }
        }
    }

    /// Ends the block; returns its successors.
    fn exit(&mut self, exit: Exit) -> Vec<usize> {
        match exit {
            Exit::End => {
                self.push(Opcode::End, Attrs::Outputs(Default::default()), None, &[]);
                Vec::new()
            }
            Exit::Jump(to) => {
                self.push(Opcode::Jump, Attrs::Branch { target: None }, None, &[]);
                vec![to]
            }
            Exit::Branch(condition, to) => {
                let (condition, zero) = (self.src(condition), self.src(Operand::Constant(0)));
                let class = RegClass::PREDICATE;
                let holds = self.b.compare(Opcode::CmpsU, Condition::Ne, class, condition, zero);
                let holds = self.b.src(holds);
                self.push(Opcode::Br, Attrs::Branch { target: None }, None, &[holds]);
                to.to_vec()
            }
        }
    }
}
