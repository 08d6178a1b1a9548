//! Final programs as a flat list of instructions.
//!
//! Blocks are a notion of the compiler: the hardware has positions, and branches with offsets. Facts that are not
//! encoded (inputs, outputs, constants, sizes) are in the [`Interface`], the driver's description of the program.
//!
//! # The form of an instruction
//! Its places are physical registers, or relative to `a0.x`; then `a0.x` is its last source, as in
//! [`ir3`](crate::ir3). Branch targets are in [`CodeInstr::target`], not in its attributes. It has no marks of the
//! compiler's analyses: `(kill)`, `(unused)`, `(tied)`, `(early_clobber)`, false dependencies, repeat groups.
//! `end` and `chmask` have no sources: the registers that they pass are in [`Interface::outputs`].

use crate::ir3::{
    Attrs, Block, ConstLayout, Dst, InputKind, Instr, InstrData, InstrFlags, Opcode, OperandFlags, Output, Place,
    Program, ShaderStage, Src, SrcOperand,
};
use crate::maps::map_of;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// The position of an instruction in the code, in words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ip(u32);
entity_impl!(Ip, "l");

/// An instruction of the code.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeInstr {
    /// The instruction; see the module's documentation for its form.
    pub data: InstrData,
    /// The target of its branch or jump.
    pub target: Option<Ip>,
}

/// Registers that have a value when the program starts.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryRegister {
    /// The contents of the registers, if they are known.
    pub input: Option<InputKind>,
    /// The registers.
    pub dst: Dst,
}

/// Registers that the program hands over at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputRegister {
    /// Its index in [`Interface::outputs_at`], if it is known.
    pub index: Option<u16>,
    /// The registers.
    pub src: Src,
}

/// The facts about a program that the driver needs in addition to its code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// The shader stage, if known.
    pub stage: Option<ShaderStage>,
    /// Workgroup size of a compute shader; zeros if it is only known at dispatch.
    pub workgroup_size: Option<[u16; 3]>,
    /// Shared memory of a workgroup, in bytes.
    pub shared_size: u32,
    /// Scratch memory per lane, in bytes.
    pub scratch_size: u32,
    /// Registers with a value at the start.
    pub inputs: Vec<EntryRegister>,
    /// Texture samples that are issued before the program starts: `_meta:tex_prefetch`.
    pub prefetches: Vec<InstrData>,
    /// Registers handed over at `end` or `chmask`.
    pub outputs: Vec<OutputRegister>,
    /// The locations of the outputs.
    pub outputs_at: Vec<Output>,
    /// The layout of the constant file.
    pub consts: ConstLayout,
}

/// A final program: its instructions in order, and its interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Code {
    /// The instructions.
    pub instrs: PrimaryMap<Ip, CodeInstr>,
    /// The registers and constants that the driver fills.
    pub interface: Interface,
}

/// A program that is not final, or contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct CodeError {
    /// The block or instruction.
    pub place: String,
    /// The fault.
    pub what: String,
}

impl CodeError {
    pub(super) fn new(place: impl std::fmt::Display, what: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into() }
    }
}

type Result<T> = std::result::Result<T, CodeError>;

impl Code {
    /// Flattens a program after legalization: its blocks in layout order, without their names.
    ///
    /// # Errors
    /// If an operand has no register, an instruction is none of the machine, a branch leads nowhere, or the edges of a
    /// block are not those of its instructions.
    pub fn from_program(program: &Program) -> Result<Self> {
        let mut program = program.clone();
        let Flat { instrs, interface } = Flat::of(&mut program)?;
        let instrs = instrs.values().map(|&FlatInstr { instr, target }| {
            let mut data = std::mem::replace(&mut program.instrs[instr], InstrData::new(Opcode::Nop));
            if matches!(data.attrs, Attrs::Branch { .. }) {
                data.attrs = Attrs::None;
            }
            CodeInstr { data, target }
        });
        Ok(Self { instrs: instrs.collect(), interface })
    }
}

/// An instruction of a program in its flat order.
pub(crate) struct FlatInstr {
    pub(crate) instr: Instr,
    /// The target of its branch or jump.
    pub(crate) target: Option<Ip>,
}

/// The flat order of a program, of whose instructions all marks of the compiler have been removed. Only the attributes
/// of branches still name blocks.
pub(crate) struct Flat {
    pub(crate) instrs: PrimaryMap<Ip, FlatInstr>,
    pub(crate) interface: Interface,
}

impl Flat {
    /// Flattens a program after legalization, with the errors of [`Code::from_program`].
    pub(crate) fn of(program: &mut Program) -> Result<Self> {
        Flatten::new(program)?.run()
    }
}

/// The state of flattening.
struct Flatten<'a> {
    program: &'a mut Program,
    flat: Flat,
    /// The position of the first instruction in or after each block; none for a block that is not in the layout.
    starts: SecondaryMap<Block, PackedOption<Ip>>,
    /// True once an `end` has declared the outputs.
    ended: bool,
}

impl<'a> Flatten<'a> {
    fn new(program: &'a mut Program) -> Result<Self> {
        let interface = Interface {
            stage: program.stage,
            workgroup_size: program.workgroup_size,
            shared_size: program.shared_size,
            scratch_size: program.scratch_size,
            outputs_at: program.outputs.clone(),
            consts: program.consts.clone(),
            ..Interface::default()
        };
        let mut starts = map_of(program.blocks.len());
        let mut next = 0;
        for &block in &program.layout {
            if starts[block] != PackedOption::from(None) {
                return Err(CodeError::new(block, "it is in the layout twice"));
            }
            starts[block] = Ip(next).into();
            let opcodes = program.blocks[block].instrs.iter().map(|&instr| program.instrs[instr].opcode);
            next += opcodes.filter(|opcode| !opcode.is_meta()).count() as u32;
        }
        let instrs = PrimaryMap::with_capacity(next as usize);
        Ok(Self { program, flat: Flat { instrs, interface }, starts, ended: false })
    }

    fn run(mut self) -> Result<Flat> {
        for position in 0..self.program.layout.len() {
            let block = self.program.layout[position];
            let start = self.flat.instrs.next_key();
            for at in 0..self.program.blocks[block].instrs.len() {
                self.instr(block, self.program.blocks[block].instrs[at])?;
            }
            let waits = self.program.blocks[block].reconvergence_point;
            let first = self.flat.instrs.get(start).map(|first| &self.program.instrs[first.instr]);
            if waits && first.is_some_and(|first| !first.flags.contains(InstrFlags::JP)) {
                return Err(CodeError::new(block, "lanes reconverge here, and its first instruction has no (jp)"));
            }
            self.edges(block, self.program.layout.get(position + 1).copied())?;
        }
        let count = self.flat.instrs.len();
        for (ip, instr) in &self.flat.instrs {
            if let Some(target) = instr.target.filter(|target| target.0 as usize >= count) {
                return Err(CodeError::new(ip, format!("a branch to {target}, and the code ends before it")));
            }
        }
        Ok(self.flat)
    }

    fn instr(&mut self, block: Block, instr: Instr) -> Result<()> {
        let is_entry = block == self.program.entry();
        let data = &mut self.program.instrs[instr];
        let opcode = data.opcode;
        let fail = |what: &str| Err(CodeError::new(format!("{instr} (`{opcode}`)"), what));
        if let Err(what) = strip(data) {
            return fail(&what);
        }
        match opcode {
            Opcode::Input | Opcode::TexPrefetch if !is_entry => {
                return fail("a value that is there from the start, not in the first block");
            }
            Opcode::Input => {
                let Attrs::Input(input) = data.attrs else { return fail("not an input") };
                let inputs = data.dsts.iter().map(|&dst| EntryRegister { input, dst });
                self.flat.interface.inputs.extend(inputs);
                return Ok(());
            }
            Opcode::TexPrefetch => {
                self.flat.interface.prefetches.push(data.clone());
                return Ok(());
            }
            opcode if opcode.is_meta() || opcode.is_macro() => return fail("it is no instruction of the machine"),
            Opcode::End | Opcode::Chmask => match self.outputs(instr) {
                Ok(()) => {}
                Err(what) => return fail(&what),
            },
            _ => {}
        }
        let target = match self.program.instrs[instr].attrs {
            Attrs::Branch { target } if !opcode.is_predication() => target,
            _ => None,
        };
        let target = match target {
            Some(block) => match self.starts[block].expand() {
                Some(ip) => Some(ip),
                None => return fail(&format!("a branch to {block}, which is not in the code")),
            },
            None if needs_target(opcode) => return fail("a branch without a target"),
            None => None,
        };
        self.flat.instrs.push(FlatInstr { instr, target });
        Ok(())
    }

    /// Moves the sources of `end` to the interface.
    fn outputs(&mut self, instr: Instr) -> std::result::Result<(), String> {
        let data = &mut self.program.instrs[instr];
        let srcs = std::mem::take(&mut data.srcs);
        let indices = match std::mem::take(&mut data.attrs) {
            Attrs::Outputs(indices) => indices,
            _ => Box::default(),
        };
        data.attrs = Attrs::Outputs(Box::default());
        if !indices.is_empty() && indices.len() != srcs.len() {
            return Err(format!("{} sources for {} outputs", srcs.len(), indices.len()));
        }
        let outputs = srcs.into_iter().enumerate();
        let outputs: Vec<_> = outputs.map(|(i, src)| OutputRegister { index: indices.get(i).copied(), src }).collect();
        if self.ended && outputs != self.flat.interface.outputs {
            return Err("other outputs than at another end".into());
        }
        self.ended = true;
        self.flat.interface.outputs = outputs;
        Ok(())
    }

    /// Checks that the successors of a block are those of its instructions.
    fn edges(&self, block: Block, next: Option<Block>) -> Result<()> {
        let data = &self.program.blocks[block];
        let instrs = data.instrs.iter().map(|&instr| &self.program.instrs[instr]);
        let terminators: SmallVec<[&InstrData; 2]> = instrs.filter(|instr| instr.opcode.is_terminator()).collect();
        let last = terminators.last().map(|instr| instr.opcode);
        let falls_through = last.is_none_or(Opcode::falls_through);
        let successors: SmallVec<[Block; 2]> = data.successors().collect();
        let targets = terminators.iter().filter_map(|instr| match instr.attrs {
            Attrs::Branch { target } => target,
            _ => None,
        });
        let mut reached: SmallVec<[PackedOption<Ip>; 2]> = targets.map(|block| self.starts[block]).collect();
        if falls_through {
            let Some(next) = next else {
                return Err(CodeError::new(block, "the last block falls through the end of the code"));
            };
            reached.push(self.starts[next]);
        }
        // Predication jumps nowhere: its successors are the arms, and the block after them.
        let predicated = last.is_some_and(Opcode::is_predication);
        for to in &successors {
            if !predicated && !reached.contains(&self.starts[*to]) {
                return Err(CodeError::new(block, format!("its successor is {to}, and no instruction leads there")));
            }
        }
        Ok(())
    }
}

/// Returns true for instructions that go to a position that they name.
pub(super) const fn needs_target(opcode: Opcode) -> bool {
    opcode.is_branch() || matches!(opcode, Opcode::Jump | Opcode::Call)
}

/// Removes the attributes that only the compiler uses; an error if an operand has no physical register.
fn strip(data: &mut InstrData) -> std::result::Result<(), String> {
    data.unconstrain();
    data.flags -= InstrFlags::UNUSED;
    // A write to one element of an array keeps the others; the hardware does so without a source.
    if let Some(Place::Relative { .. }) = data.dsts.first().map(|dst| dst.place) {
        let kept = SrcOperand::Place(data.dsts[0].place);
        data.srcs.retain(|src| src.operand != kept);
    }
    let is_physical = |place: &Place| matches!(place, Place::Reg(_) | Place::Relative { .. });
    for dst in &mut data.dsts {
        if !is_physical(&dst.place) {
            dst.place = physical(dst.place)?;
        }
        dst.flags &= OperandFlags::R | OperandFlags::LAST | OperandFlags::UNIFORM;
    }
    for src in &mut data.srcs {
        src.flags &= OperandFlags::R | OperandFlags::LAST | OperandFlags::ALIAS | OperandFlags::FIRST_ALIAS;
        match &mut src.operand {
            SrcOperand::Place(place) if !is_physical(place) => *place = physical(*place)?,
            SrcOperand::Place(_) => {}
            SrcOperand::Undef => return Err("an undefined operand has no register".into()),
            SrcOperand::Const(_) | SrcOperand::ConstRelative(_) | SrcOperand::Immediate(_) => {}
        }
    }
    Ok(())
}

fn physical(place: Place) -> std::result::Result<Place, String> {
    match place {
        Place::Reg(_) | Place::Relative { .. } => Ok(place),
        Place::Assigned(_, reg) => Ok(Place::Reg(reg)),
        Place::Value(value) => Err(format!("{value} has no register")),
        Place::Array(access) => Err(format!("an access to {} has no register", access.array)),
    }
}
