//! Programs: blocks in layout order, their logical and physical edges, values and arrays.

use super::{Attrs, Dst, InputKind, InstrData, Opcode, PhysReg, RegClass, SystemValue};
use crate::graph;
use crate::maps::map_of;
use crate::words;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instr(u32);
entity_impl!(Instr, "instr");

/// An SSA value: one destination of one instruction, of one component or more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "ssa_");

/// An array of registers that is indexed with `a0.x`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Array(u16);
entity_impl!(Array, "array", i, Self(u16::try_from(i).expect("at most 65536 arrays")), u32::from(i.0));

/// The maximum number of arrays of a program that is read or selected.
pub const MAX_ARRAYS: usize = 1 << 15;

words! {
    /// The stage of a shader.
    pub enum ShaderStage {
        Vertex = "vertex", TessControl = "tess_control", TessEval = "tess_eval", Geometry = "geometry",
        Fragment = "fragment", Compute = "compute",
    }
}

/// An SSA value.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueData {
    /// Defining instruction.
    pub instr: Instr,
    /// The index of the destination.
    pub dst: u8,
    /// Register class.
    pub class: RegClass,
    /// The number of registers, including holes of the write mask.
    pub components: u16,
    /// The array, if this is a whole-array value.
    pub array: Option<Array>,
}

/// An array of registers.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayData {
    /// Its number in the text (`id=`).
    pub id: u32,
    /// Class of an element.
    pub class: RegClass,
    /// Number of elements, each of one register.
    pub length: u16,
    /// Its first register, after allocation. The text does not print it.
    pub base: Option<PhysReg>,
}

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockData {
    /// Instructions in order; phis first, the terminator or terminators last.
    pub instrs: Vec<Instr>,
    /// Logical successors: taken if the terminator's condition holds, taken otherwise. A block with one successor has
    /// it at index 0.
    pub successors: [Option<Block>; 2],
    /// Logical predecessors; the order is that of phi sources.
    pub predecessors: SmallVec<[Block; 2]>,
    /// Physical successors: the logical ones, and those that a wave may reach while these lanes are inactive.
    pub physical_successors: SmallVec<[Block; 2]>,
    /// Physical predecessors.
    pub physical_predecessors: SmallVec<[Block; 2]>,
    /// True if lanes may diverge at the terminator; `None` if it is not a conditional branch or not known.
    pub divergent: Option<bool>,
    /// `(jp)`: lanes that diverged earlier reconverge here.
    pub reconvergence_point: bool,
    /// Instructions that must not be removed even if their result is unused.
    pub keeps: Vec<Instr>,
}

impl BlockData {
    /// The successors, in order.
    pub fn successors(&self) -> impl DoubleEndedIterator<Item = Block> + '_ {
        self.successors.iter().flatten().copied()
    }
}

/// An output of the shader: the location to which nir's `store_output` writes the first component of a source of `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Driver location (nir's `base`).
    pub base: u16,
    /// First component within the location.
    pub component: u8,
}

/// A system value that the driver passes in the constant file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriverParam {
    /// Scalar index in the constant file.
    pub word: u16,
    /// The system value.
    pub value: SystemValue,
    /// Its component.
    pub component: u8,
}

/// The words of the constant file in which the driver describes storage buffers and images on GPUs before a6xx: four
/// words each, buffers first. A buffer on a4xx: word 0 is its start address. An image on a5xx: the bytes of a texel, of
/// a row and of a slice. An image on a4xx: its start address, then the bytes of a row, of a slice and of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceWords {
    /// The first word.
    pub first: u16,
    /// The number of buffers before the images.
    pub buffers: u16,
}

impl ResourceWords {
    /// The first word of a buffer.
    pub fn buffer(self, number: u32) -> u32 {
        number.saturating_mul(4).saturating_add(self.first.into())
    }

    /// The first word of an image.
    pub fn image(self, number: u32) -> u32 {
        self.buffer(number.saturating_add(self.buffers.into()))
    }
}

/// The contents of the constant file that the driver provides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConstLayout {
    /// System values.
    pub driver_params: Vec<DriverParam>,
    /// The words that describe storage buffers and images, if the program reads them.
    pub resources: Option<ResourceWords>,
    /// Immediates that instructions cannot encode: scalar index, bits.
    pub immediates: Vec<(u16, u32)>,
}

impl ConstLayout {
    /// Returns true if a word contains a system value or an immediate.
    pub fn is_placed(&self, word: u16) -> bool {
        self.driver_params.iter().any(|param| param.word == word)
            || self.immediates.iter().any(|&(other, _)| other == word)
    }
}

/// A program in the machine language, at any stage.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Program {
    /// The shader stage, if known.
    pub stage: Option<ShaderStage>,
    /// Workgroup size of a compute shader; zeros if it is only known at dispatch.
    pub workgroup_size: Option<[u16; 3]>,
    /// Shared memory of a workgroup, in bytes.
    pub shared_size: u32,
    /// Scratch memory per lane in bytes: that of the shader, followed by the spill slots. 0 if the program has none,
    /// or if it is unknown.
    pub scratch_size: u32,
    /// All blocks.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Blocks in the order of the code; the first is the entry.
    pub layout: Vec<Block>,
    /// All instructions, removed ones included.
    pub instrs: PrimaryMap<Instr, InstrData>,
    /// All values, dead ones included.
    pub values: PrimaryMap<Value, ValueData>,
    /// All arrays.
    pub arrays: PrimaryMap<Array, ArrayData>,
    /// The outputs that the sources of `end` refer to by index.
    pub outputs: Vec<Output>,
    /// The layout of the constant file.
    pub consts: ConstLayout,
    /// The number printed for each block (`block7`), if it is not its position in the layout plus one.
    pub block_names: Vec<(Block, u32)>,
    /// The number printed for each instruction (`0012:`, and `ssa_12` for the values it defines); 0 if the writer
    /// chooses one.
    pub serials: SecondaryMap<Instr, u32>,
    /// The number printed after a value's serial (`ssa_12:34`); 0 if none is printed.
    pub value_names: SecondaryMap<Value, u32>,
}

impl Program {
    /// The first block.
    ///
    /// # Panics
    /// If the program has no block; readers and builders always create one.
    pub fn entry(&self) -> Block {
        self.layout[0]
    }

    /// Instructions in layout order with their block.
    pub fn iter_instrs(&self) -> impl Iterator<Item = (Block, Instr)> + '_ {
        self.layout.iter().flat_map(|&b| self.blocks[b].instrs.iter().map(move |&i| (b, i)))
    }

    /// The number of phis and inputs at the start of a list of instructions.
    pub fn start_len(&self, list: &[Instr]) -> usize {
        list.iter().take_while(|&&instr| self.instrs[instr].opcode.is_block_start()).count()
    }

    /// The number of instructions at the start of a list whose results are available before the others are issued:
    /// phis, inputs and prefetches.
    pub fn ready_len(&self, list: &[Instr]) -> usize {
        list.iter().take_while(|&&instr| self.instrs[instr].opcode.is_ready_at_start()).count()
    }

    /// The number of instructions of a list before the terminators at its end, and before `shpe`. Waves that skip the
    /// preamble resume after `shpe`, so instructions before it belong to the preamble, even if they compute values for
    /// the main program.
    pub fn body_len(&self, list: &[Instr]) -> usize {
        let is_body = |&instr: &Instr| {
            let opcode = self.instrs[instr].opcode;
            !opcode.is_terminator() && opcode != Opcode::Shpe
        };
        list.iter().rposition(is_body).map_or(0, |last| last + 1)
    }

    /// Returns true if the preamble ends in a block.
    pub fn ends_preamble(&self, block: Block) -> bool {
        self.blocks[block].instrs.iter().any(|&instr| self.instrs[instr].opcode == Opcode::Shpe)
    }

    /// The number of blocks of the layout up to the end of the preamble: 0 without one.
    pub fn preamble_len(&self) -> usize {
        self.layout.iter().position(|&block| self.ends_preamble(block)).map_or(0, |last| last + 1)
    }

    /// Inserts an instruction before the terminators of a block.
    pub fn insert_before_terminators(&mut self, block: Block, instr: Instr) {
        let at = self.body_len(&self.blocks[block].instrs);
        self.blocks[block].instrs.insert(at, instr);
    }

    /// Replaces each instruction of the layout by those that `each` appends to the list of its block.
    pub fn rewrite_lists(&mut self, mut each: impl FnMut(&mut Self, Instr, &mut Vec<Instr>)) {
        let mut out = Vec::new();
        for position in 0..self.layout.len() {
            let block = self.layout[position];
            let mut list = std::mem::take(&mut self.blocks[block].instrs);
            out.reserve(list.len());
            list.drain(..).for_each(|instr| each(self, instr, &mut out));
            // The old list has the memory of the next one.
            self.blocks[block].instrs = std::mem::replace(&mut out, list);
        }
    }

    /// Number of instructions that are in a block.
    pub fn instruction_count(&self) -> usize {
        self.layout.iter().map(|&b| self.blocks[b].instrs.len()).sum()
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (Instr, Option<InputKind>)> + '_ {
        self.iter_instrs().filter_map(|(_, i)| match self.instrs[i].attrs {
            Attrs::Input(kind) => Some((i, kind)),
            _ => None,
        })
    }

    /// The block that defines each value, of the values that an instruction of the layout defines.
    pub fn definition_blocks(&self) -> SecondaryMap<Value, PackedOption<Block>> {
        let mut blocks = map_of(self.values.len());
        for (block, instr) in self.iter_instrs() {
            for value in self.instrs[instr].dsts.iter().filter_map(Dst::value) {
                blocks[value] = block.into();
            }
        }
        blocks
    }

    /// The instructions `roots`, the definitions of their operands, those of the operands of these, and so on.
    pub fn with_definitions(&self, roots: impl IntoIterator<Item = Instr>) -> EntitySet<Instr> {
        graph::reachable(roots, |instr, search| {
            let read = self.instrs[instr].srcs.iter().filter_map(|src| src.value());
            read.for_each(|value| search.add(self.values[value].instr));
        })
    }

    /// Adds the logical (and physical) edge `from` → `to` as successor `slot`.
    pub fn add_edge(&mut self, from: Block, slot: usize, to: Block) {
        self.blocks[from].successors[slot] = Some(to);
        self.blocks[from].physical_successors.push(to);
        self.blocks[to].predecessors.push(from);
        self.blocks[to].physical_predecessors.push(from);
    }
}
