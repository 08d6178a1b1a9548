//! The meaning of vec4 and scalar programs, as nir programs.
//!
//! [`lift`] translates a program to nir in SSA form, which all engines execute; there is no second definition of any
//! operation. An invocation of the nir program is one vertex. Each channel of a register, of an output and of the flag
//! is a variable; writemasks, swizzles and predicates are resolved channel by channel, and control flow is nir's.
//!
//! - Registers and the flag are undefined at the start.
//! - A conditional modifier compares the result before it is clamped with zero; of `cmp`, the sources. Only channels in
//!   the writemask are written to the flag, and only where the predicate holds.
//! - The bits of a bool from `cmp` are all ones or all zeros, for any type.
//! - A branch decides for a vertex. If its predicate is that of each channel by itself and the four bits differ, it
//!   depends on an undefined value: such a program has no meaning.
//! - With four channels instead of eight, an instruction runs in one of the two vertices of a thread: those with an
//!   even number (`group0`) or an odd one (`group4`).
//!
//! Scalar programs:
//!
//! - An invocation of the nir program is an invocation. With 8 channels of 16, an instruction runs in the first 8
//!   invocations of a thread (`group0`) or in the others (`group8`).
//! - The accumulator has one channel for each of 8 invocations. The value that one half of a thread leaves in it is
//!   undefined for the other one, and so is all of it after control flow, where other invocations may have written it.
//! - A message is its intrinsic.

mod compute;

use crate::interp::Unsupported;
use ir3_compiler::i965::vec4::{
    self, DstFile, Instr, Mask, Message, Opcode, OpcodeKind, Program, Src, SrcFile, Structure,
};
use ir3_compiler::nir::{self, AluType, Block, Builder, Def, Index, InstrData, IntrinsicOp, JumpKind, Op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Translates a vec4 or scalar program to the nir program that has its meaning.
///
/// # Errors
/// If the program is not valid; with the place.
pub fn lift(program: &Program) -> Result<nir::Shader, Unsupported> {
    vec4::validate(program).map_err(|invalid| Unsupported {
        what: format!("`{}` that {}", invalid.opcode, invalid.rule),
        place: format!("instruction {}", invalid.instr),
    })?;
    let mut shader = nir::Shader::new(program.stage);
    shader.info = program.info.clone();
    let outputs = outputs(program);
    let mut b = Builder::with_shader(shader);
    let undefined = [b.undef(1, 32), b.undef(1, 1)];
    let zero = b.constant(32, 0);
    let inputs = inputs(program, &mut b, zero);
    let flags = 4 * (program.registers() as usize + outputs.len());
    let width = program.mode.width();
    let lane = program.instrs.iter().any(|instr| instr.exec_size != width).then(|| {
        let lane = b.intrinsic(IntrinsicOp::LoadSubgroupInvocation, 1, 32, &[], []).expect("it has a result");
        let one = b.constant(32, if program.mode.is_scalar() { 8 } else { 1 });
        let bit = b.alu(Op::Iand, &[lane, one]);
        b.alu(Op::Ine, &[bit, zero])
    });
    let mut state = vec![undefined[0]; flags + 5];
    state[flags..flags + 4].fill(undefined[1]);
    let mut lifter = Lifter {
        program,
        structure: Structure::of(program).expect("the program is valid"),
        registers: program.registers() as usize,
        undefined,
        second_half: lane,
        bools: FxHashMap::default(),
        inputs,
        b,
        state: Some(state),
        frames: Vec::new(),
        phis: Vec::new(),
        outputs,
    };
    for at in 0..program.instrs.len() {
        lifter.instruction(at);
    }
    lifter.store_outputs(zero);
    lifter.remove_dead_phis();
    let mut shader = lifter.b.finish();
    // No later pass changes the result of a machine instruction.
    for data in shader.entry.instrs.values_mut() {
        if let InstrData::Alu(alu) = data {
            alu.exact = true;
        }
    }
    Ok(shader)
}

/// The outputs that are written, with their channels.
fn outputs(program: &Program) -> BTreeMap<u32, (usize, Mask)> {
    let mut outputs: BTreeMap<u32, (usize, Mask)> = BTreeMap::new();
    for instr in &program.instrs {
        if let DstFile::Output(number) = instr.dst.file {
            outputs.entry(number).or_default().1 |= instr.dst.mask;
        }
    }
    outputs.values_mut().enumerate().for_each(|(i, output)| output.0 = i);
    outputs
}

/// The values of the attributes and uniforms that are read.
fn inputs(program: &Program, b: &mut Builder, zero: Def) -> FxHashMap<(SrcFile, u8), Def> {
    let mut read: Vec<(SrcFile, u8)> = Vec::new();
    let mut seen = FxHashSet::default();
    for instr in &program.instrs {
        for src in &instr.srcs {
            if matches!(src.file, SrcFile::Attr(_) | SrcFile::Uniform(_)) {
                for channel in instr.channels_read(src).channels() {
                    let key = (src.file, channel as u8);
                    if seen.insert(key) {
                        read.push(key);
                    }
                }
            }
        }
    }
    let load = |&(file, channel): &(SrcFile, u8)| {
        let value = match file {
            SrcFile::Attr(number) => {
                let base = Index::Base(number as i32);
                let ty = Index::DestType(AluType::FLOAT32);
                let indices = [base, Index::Range(1), Index::Component(channel), ty];
                b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], indices)
            }
            SrcFile::Uniform(number) => {
                let base = Index::Base(4 * number as i32 + i32::from(channel));
                b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [base])
            }
            SrcFile::Vgrf(_) | SrcFile::Imm(_) | SrcFile::Acc => unreachable!("only inputs are collected"),
        };
        ((file, channel), value.expect("it has a result"))
    };
    read.iter().map(load).collect()
}

/// The value of each variable. Channel `c` of register `r` is the variable `4 * r + c`; outputs follow, then the flag,
/// then the accumulator.
type State = Vec<Def>;

/// The sources of a channel with the channels that they read, and the computed values: the result and the bit of the
/// flag.
type Computed = (Vec<(Src, u8)>, (Def, Option<Def>));

enum Frame {
    /// An `if`: the state before it, and the end of its first branch.
    If {
        before: Option<State>,
        then: Option<(Block, Option<State>)>,
    },
    Loop(LoopFrame),
}

struct LoopFrame {
    /// The phis of the head, by variable. `None` if the loop is never reached.
    phis: Option<Vec<(usize, Def)>>,
    /// The ends of its iterations.
    again: Vec<(Block, State)>,
    /// The exits.
    exits: Vec<(Block, State)>,
}

struct Lifter<'a> {
    program: &'a Program,
    structure: Structure,
    registers: usize,
    /// Undefined values of 32 bits and of one.
    undefined: [Def; 2],
    /// True in vertices of odd number; of a scalar program, in the last 8 invocations of each 16.
    second_half: Option<Def>,
    /// The bools of which words are made: all ones or zero.
    bools: FxHashMap<Def, Def>,
    inputs: FxHashMap<(SrcFile, u8), Def>,
    outputs: BTreeMap<u32, (usize, Mask)>,
    b: Builder,
    /// The variables; `None` where no control flow arrives.
    state: Option<State>,
    frames: Vec<Frame>,
    phis: Vec<Def>,
}

impl Lifter<'_> {
    fn flag(&self, channel: usize) -> usize {
        4 * (self.registers + self.outputs.len()) + channel
    }

    fn accumulator(&self) -> usize {
        self.flag(4)
    }

    /// The first variable of a destination.
    fn variable(&self, file: DstFile) -> Option<usize> {
        match file {
            DstFile::Null => None,
            DstFile::Vgrf(number) => Some(4 * number as usize),
            DstFile::Output(number) => Some(4 * (self.registers + self.outputs[&number].0)),
        }
    }

    fn instruction(&mut self, at: usize) {
        let program = self.program;
        let instr = &program.instrs[at];
        if instr.opcode.kind() == OpcodeKind::Control {
            let accumulator = self.accumulator();
            if let Some(state) = &mut self.state {
                state[accumulator] = self.undefined[0];
            }
        }
        match instr.opcode {
            Opcode::If => {
                let before = self.state.clone();
                if before.is_some() {
                    let condition = self.condition(instr);
                    self.b.begin_if(condition);
                }
                self.frames.push(Frame::If { before, then: None });
            }
            Opcode::Else => {
                let then = (self.b.current_block(), self.state.take());
                let Some(Frame::If { before, then: slot }) = self.frames.last_mut() else { unreachable!("validated") };
                *slot = Some(then);
                self.state.clone_from(before);
                if self.state.is_some() {
                    self.b.begin_else();
                }
            }
            Opcode::Endif => self.end_if(),
            Opcode::Do => self.begin_loop(at),
            Opcode::While => self.end_loop(instr),
            Opcode::Break | Opcode::Continue if self.state.is_some() => self.jump(instr),
            Opcode::Break | Opcode::Continue => {}
            Opcode::Send if self.state.is_some() => {
                self.message(instr, instr.message.as_deref().expect("validated: it has a message"));
            }
            _ if self.state.is_some() => self.compute(instr),
            _ => {}
        }
    }

    fn end_if(&mut self) {
        let Some(Frame::If { before, then }) = self.frames.pop() else { unreachable!("validated") };
        let Some(before) = before else { return };
        let last = (self.b.current_block(), self.state.take());
        let (then, otherwise) = match then {
            Some(then) => (then, last),
            None => {
                self.b.begin_else();
                (last, (self.b.current_block(), Some(before)))
            }
        };
        self.b.end_if();
        let arms = [then, otherwise].into_iter().filter_map(|(block, state)| Some((block, state?))).collect();
        self.state = self.merge(arms);
    }

    /// The state at a join of control flow from several blocks: the current block.
    fn merge(&mut self, arms: Vec<(Block, State)>) -> Option<State> {
        let mut state = arms.first()?.1.clone();
        for (variable, value) in state.iter_mut().enumerate() {
            if arms.iter().any(|(_, other)| other[variable] != *value) {
                let phi = self.phi(variable);
                arms.iter().for_each(|(block, other)| self.b.set_phi_src(phi, *block, other[variable]));
                *value = phi;
            }
        }
        Some(state)
    }

    fn phi(&mut self, variable: usize) -> Def {
        let bits = if (self.flag(0)..self.flag(4)).contains(&variable) { 1 } else { 32 };
        let phi = self.b.phi(1, bits);
        self.phis.push(phi);
        phi
    }

    fn begin_loop(&mut self, at: usize) {
        let Some(mut state) = self.state.take() else {
            self.frames.push(Frame::Loop(LoopFrame { phis: None, again: Vec::new(), exits: Vec::new() }));
            return;
        };
        let end = self.structure.partner(at).expect("a loop ends");
        let mut written: Vec<usize> = Vec::new();
        for instr in &self.program.instrs[at..end] {
            if instr.message.is_some() && self.program.mode.is_scalar() {
                written.extend(instr.registers_written().map(|register| 4 * register as usize));
            } else if let Some(first) = self.variable(instr.dst.file) {
                written.extend(instr.dst.mask.channels().map(|channel| first + channel));
            }
            if instr.writes_flag() {
                written.extend(instr.dst.mask.channels().map(|channel| self.flag(channel)));
            }
        }
        written.sort_unstable();
        written.dedup();
        let before = self.b.current_block();
        self.b.begin_loop();
        let mut phis = Vec::with_capacity(written.len());
        for variable in written {
            let phi = self.phi(variable);
            self.b.set_phi_src(phi, before, state[variable]);
            state[variable] = phi;
            phis.push((variable, phi));
        }
        self.frames.push(Frame::Loop(LoopFrame { phis: Some(phis), again: Vec::new(), exits: Vec::new() }));
        self.state = Some(state);
    }

    fn end_loop(&mut self, instr: &Instr) {
        if let Some(state) = self.state.take() {
            if instr.predicate.is_some() {
                self.state = Some(state.clone());
                let condition = self.condition(instr);
                self.b.begin_if(condition);
                self.b.begin_else();
                let exit = (self.b.current_block(), state.clone());
                self.b.jump(JumpKind::Break);
                self.b.end_if();
                self.loop_frame().exits.push(exit);
            }
            let end = (self.b.current_block(), state);
            self.loop_frame().again.push(end);
        }
        let Some(Frame::Loop(LoopFrame { phis, again, exits })) = self.frames.pop() else { unreachable!("validated") };
        let Some(phis) = phis else { return };
        for (variable, phi) in phis {
            again.iter().for_each(|(block, state)| self.b.set_phi_src(phi, *block, state[variable]));
        }
        self.b.end_loop();
        self.state = self.merge(exits);
    }

    fn loop_frame(&mut self) -> &mut LoopFrame {
        let frame = self.frames.iter_mut().rev().find_map(|frame| match frame {
            Frame::Loop(frame) => Some(frame),
            Frame::If { .. } => None,
        });
        frame.expect("validated: it is in a loop")
    }

    fn jump(&mut self, instr: &Instr) {
        let Some(state) = self.state.clone() else { return };
        let is_conditional = instr.predicate.is_some();
        if is_conditional {
            let condition = self.condition(instr);
            self.b.begin_if(condition);
        }
        let from = (self.b.current_block(), state);
        let (kind, frame) = match instr.opcode {
            Opcode::Break => (JumpKind::Break, &mut self.loop_frame().exits),
            _ => (JumpKind::Continue, &mut self.loop_frame().again),
        };
        frame.push(from);
        self.b.jump(kind);
        match is_conditional {
            true => self.b.end_if(),
            false => self.state = None,
        }
    }

    /// A message: its intrinsic on words.
    fn message(&mut self, instr: &Instr, message: &Message) {
        let is_scalar = self.program.mode.is_scalar();
        // A source for each word, or for each operand.
        let words: Vec<Def> = match is_scalar {
            true => instr.srcs.iter().map(|src| self.source(src, 0)).collect(),
            false => (instr.srcs.iter().zip(&message.operands))
                .flat_map(|(src, ty)| (0..usize::from(ty.components)).map(move |channel| (src, channel)))
                .map(|(src, channel)| self.source(src, channel))
                .collect(),
        };
        let mut words = words.into_iter();
        let mut operands = Vec::with_capacity(message.operands.len());
        for ty in &message.operands {
            let components: Vec<Def> = (0..ty.components)
                .map(|_| {
                    let mut word = || words.next().expect("validated: all words are there");
                    let low = word();
                    match ty.bits {
                        1 => self.bool_of(low),
                        64 => {
                            let high = word();
                            self.b.alu(Op::Pack64_2x32Split, &[low, high])
                        }
                        _ => low,
                    }
                })
                .collect();
            operands.push(if components.len() == 1 { components[0] } else { self.b.vec(&components) });
        }
        let result = message.build(&mut self.b, &operands);
        let (Some(result), Some(ty)) = (result, message.result) else { return };
        let mut words = Vec::new();
        for component in 0..ty.components {
            let value = if ty.components == 1 { result } else { self.b.channel(result, component) };
            match ty.bits {
                1 => words.push(self.word_of(value)),
                64 => {
                    words.extend([Op::Unpack64_2x32SplitX, Op::Unpack64_2x32SplitY].map(|op| self.b.alu(op, &[value])));
                }
                _ => words.push(value),
            }
        }
        let first = self.variable(instr.dst.file).expect("validated: it has a result");
        let state = self.state.as_mut().expect("control flow arrives");
        let step = if is_scalar { 4 } else { 1 };
        words.into_iter().enumerate().for_each(|(at, word)| state[first + step * at] = word);
    }

    fn store_outputs(&mut self, zero: Def) {
        if self.state.is_none() {
            return;
        }
        for (number, (position, mask)) in self.outputs.clone() {
            for channel in mask.channels() {
                let value = self.read(4 * (self.registers + position) + channel);
                let indices = [
                    Index::Base(number as i32),
                    Index::Range(1),
                    Index::WriteMask(1),
                    Index::Component(channel as u8),
                    Index::SrcType(AluType::FLOAT32),
                ];
                self.b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[value, zero], indices);
            }
        }
    }

    /// Removes the phis of variables that are not read: most of those of loops and branches.
    fn remove_dead_phis(&mut self) {
        let function = &mut self.b.shader_mut().entry;
        let is_phi: FxHashSet<Def> = self.phis.iter().copied().collect();
        let mut live: FxHashSet<Def> = FxHashSet::default();
        let mut work: Vec<Def> = Vec::new();
        for data in function.instrs.values().filter(|data| !matches!(data, InstrData::Phi { .. })) {
            data.for_each_src(|def| work.extend(is_phi.contains(&def).then_some(def)));
        }
        // Conditions of branches are read by no instruction.
        work.extend(self.phis.iter().filter(|&&phi| function.defs[phi].bit_size == 1));
        while let Some(phi) = work.pop() {
            if live.insert(phi) {
                let instr = function.defs[phi].instr;
                function.instrs[instr].for_each_src(|def| work.extend(is_phi.contains(&def).then_some(def)));
            }
        }
        let dead: FxHashSet<nir::Instr> =
            self.phis.iter().filter(|phi| !live.contains(phi)).map(|&phi| function.defs[phi].instr).collect();
        function.blocks.values_mut().for_each(|block| block.instrs.retain(|instr| !dead.contains(instr)));
    }
}
