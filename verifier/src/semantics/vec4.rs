//! What vec4 programs mean: the nir programs that they are.
//!
//! [`lift`] translates a vec4 program to nir in SSA form, which all engines execute; there is no second definition of any operation. An
//! invocation of the nir program is one vertex. Each channel of a register, of an output and of the flag is a variable; writemasks, swizzles and
//! predicates are resolved channel by channel, and control flow is nir's.
//!
//! - Registers and the flag are undefined at the start.
//! - A conditional modifier compares the result before it is clamped with zero; of `cmp`, the sources. Only channels in the writemask are written to
//!   the flag, and only where the predicate holds.
//! - The bits of a bool from `cmp` are all ones or all zeros, whatever its type.
//! - A branch decides for a vertex. If its predicate is that of each channel by itself and the four bits differ, it depends on an undefined value:
//!   such a program has no meaning.
//! - With four channels instead of eight, an instruction runs in one of the two vertices of a thread: those with an even number (`group0`) or an odd
//!   one (`group4`).

use crate::semantics::interp::Unsupported;
use ir3_compiler::nir::{self, AluType, Block, Builder, Def, Index, IntrinsicOp, JumpKind, Op};
use ir3_compiler::vec4::{
    self, Cmod, DstFile, Instr, Mask, Opcode, OpcodeKind, Predicate, Program, RegType, Src, SrcFile, Structure,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Translates a vec4 program to the nir program that has its meaning.
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
    let variables = 4 * (program.registers() as usize + outputs.len()) + 4;
    let lane = program.instrs.iter().any(|instr| instr.exec_size != 8).then(|| {
        let lane = b.intrinsic(IntrinsicOp::LoadSubgroupInvocation, 1, 32, &[], []).expect("it has a result");
        let one = b.constant(32, 1);
        let bit = b.alu(Op::Iand, &[lane, one]);
        b.alu(Op::Ine, &[bit, zero])
    });
    let mut state = vec![undefined[0]; variables];
    state[variables - 4..].fill(undefined[1]);
    let mut lifter = Lifter {
        program,
        structure: Structure::of(program).expect("the program is valid"),
        registers: program.registers() as usize,
        undefined,
        second_vertex: lane,
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
    Ok(lifter.b.finish())
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
            SrcFile::Vgrf(_) | SrcFile::Imm(_) => unreachable!("only inputs are collected"),
        };
        ((file, channel), value.expect("it has a result"))
    };
    read.iter().map(load).collect()
}

/// The value of each variable. Channel `c` of register `r` is the variable `4 * r + c`; outputs follow, then the flag.
type State = Vec<Def>;

/// The sources of a channel with the channels that they read, and what was computed of them: the result and the bit of the flag.
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
    /// True in vertices of odd number.
    second_vertex: Option<Def>,
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

    /// The state where control flow from several blocks meets: the current block.
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
        let bits = if variable >= self.flag(0) { 1 } else { 32 };
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
            if let Some(first) = self.variable(instr.dst.file) {
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

    fn read(&self, variable: usize) -> Def {
        self.state.as_ref().expect("control flow arrives")[variable]
    }

    fn not(&mut self, inverse: bool, value: Def) -> Def {
        if inverse { self.b.alu(Op::Inot, &[value]) } else { value }
    }

    /// The predicate of a channel; `None` if there is none.
    fn predicate(&mut self, instr: &Instr, channel: usize) -> Option<Def> {
        let (predicate, inverse) = instr.predicate?;
        let bit = |lifter: &Self, channel| lifter.read(lifter.flag(channel));
        let value = match predicate {
            Predicate::Normal => bit(self, channel),
            Predicate::ReplicateX => bit(self, 0),
            Predicate::ReplicateY => bit(self, 1),
            Predicate::ReplicateZ => bit(self, 2),
            Predicate::ReplicateW => bit(self, 3),
            Predicate::Any4h | Predicate::All4h => {
                let op = if predicate == Predicate::Any4h { Op::Ior } else { Op::Iand };
                let mut all = bit(self, 0);
                for channel in 1..4 {
                    let next = bit(self, channel);
                    all = self.b.alu(op, &[all, next]);
                }
                all
            }
        };
        Some(self.not(inverse, value))
    }

    /// The condition of an instruction of control flow.
    fn condition(&mut self, instr: &Instr) -> Def {
        let (predicate, inverse) = instr.predicate.expect("validated: it has a predicate");
        if predicate != Predicate::Normal {
            return self.predicate(instr, 0).expect("it has a predicate");
        }
        let first = self.read(self.flag(0));
        let mut differ = None;
        for channel in 1..4 {
            let other = self.read(self.flag(channel));
            if other != first {
                let here = self.b.alu(Op::Ixor, &[first, other]);
                differ = Some(differ.map_or(here, |before| self.b.alu(Op::Ior, &[before, here])));
            }
        }
        let value = match differ {
            Some(differ) => self.b.alu(Op::Bcsel, &[differ, self.undefined[1], first]),
            None => first,
        };
        self.not(inverse, value)
    }

    /// The value of a source in a channel of the operation.
    fn source(&mut self, src: &Src, channel: usize) -> Def {
        let read = src.swizzle.0[channel];
        let mut value = match src.file {
            SrcFile::Vgrf(number) => self.read(4 * number as usize + usize::from(read)),
            SrcFile::Attr(_) | SrcFile::Uniform(_) => self.inputs[&(src.file, read)],
            SrcFile::Imm(vec4::Immediate(bits)) => return self.b.constant(32, bits.into()),
        };
        let [abs, neg] = if src.ty == RegType::F { [Op::Fabs, Op::Fneg] } else { [Op::Iabs, Op::Ineg] };
        if src.abs {
            value = self.b.alu(abs, &[value]);
        }
        if src.negate {
            value = self.b.alu(neg, &[value]);
        }
        value
    }

    /// A condition on two values of a type.
    fn compare(&mut self, cmod: Cmod, ty: RegType, a: Def, b: Def) -> Def {
        let (op, swap) = match (cmod, ty) {
            (Cmod::Z, RegType::F) => (Op::Feq, false),
            (Cmod::Nz, RegType::F) => (Op::Fneu, false),
            (Cmod::Z, _) => (Op::Ieq, false),
            (Cmod::Nz, _) => (Op::Ine, false),
            (Cmod::L | Cmod::G, RegType::F) => (Op::Flt, cmod == Cmod::G),
            (Cmod::L | Cmod::G, RegType::D) => (Op::Ilt, cmod == Cmod::G),
            (Cmod::L | Cmod::G, RegType::Ud) => (Op::Ult, cmod == Cmod::G),
            (Cmod::Ge | Cmod::Le, RegType::F) => (Op::Fge, cmod == Cmod::Le),
            (Cmod::Ge | Cmod::Le, RegType::D) => (Op::Ige, cmod == Cmod::Le),
            (Cmod::Ge | Cmod::Le, RegType::Ud) => (Op::Uge, cmod == Cmod::Le),
        };
        let operands = if swap { [b, a] } else { [a, b] };
        self.b.alu(op, &operands)
    }

    /// The result in a channel, and the bit of the flag.
    fn result(&mut self, instr: &Instr, srcs: &[Def], channel: usize) -> (Def, Option<Def>) {
        let from = instr.srcs[0].ty;
        if instr.opcode == Opcode::Cmp {
            let cmod = instr.cmod.expect("validated: it has a condition");
            let holds = self.compare(cmod, from, srcs[0], srcs[1]);
            let (ones, zeros) = (self.b.constant(32, u32::MAX.into()), self.b.constant(32, 0));
            return (self.b.alu(Op::Bcsel, &[holds, ones, zeros]), Some(holds));
        }
        if instr.opcode == Opcode::Sel {
            let value = match (self.predicate(instr, channel), instr.cmod) {
                (Some(predicate), _) => self.b.alu(Op::Bcsel, &[predicate, srcs[0], srcs[1]]),
                (None, cmod) => {
                    let op = match (cmod, from) {
                        (Some(Cmod::L), RegType::F) => Op::Fmin,
                        (Some(Cmod::L), RegType::D) => Op::Imin,
                        (Some(Cmod::L), RegType::Ud) => Op::Umin,
                        (_, RegType::F) => Op::Fmax,
                        (_, RegType::D) => Op::Imax,
                        (_, RegType::Ud) => Op::Umax,
                    };
                    self.b.alu(op, srcs)
                }
            };
            return (self.saturated(instr, value), None);
        }
        let value = match operation(instr.opcode, from, instr.dst.ty) {
            None => srcs[0],
            Some(op) if instr.opcode == Opcode::Mad => self.b.alu(op, &[srcs[1], srcs[2], srcs[0]]),
            Some(op) => match instr.opcode.kind() {
                OpcodeKind::Dot(count) => {
                    let (a, c) = srcs.split_at(usize::from(count));
                    let (a, c) = (self.b.vec(a), self.b.vec(c));
                    self.b.alu(op, &[a, c])
                }
                _ => self.b.alu(op, srcs),
            },
        };
        let bit = instr.cmod.map(|cmod| {
            let zero = self.b.constant(32, 0);
            self.compare(cmod, instr.dst.ty, value, zero)
        });
        (self.saturated(instr, value), bit)
    }

    fn saturated(&mut self, instr: &Instr, value: Def) -> Def {
        if instr.saturate { self.b.alu(Op::Fsat, &[value]) } else { value }
    }

    fn compute(&mut self, instr: &Instr) {
        let mut writes: Vec<(usize, Def)> = Vec::new();
        let mut made: Vec<Computed> = Vec::new();
        let first = self.variable(instr.dst.file);
        for channel in instr.dst.mask.channels() {
            // A predicated `sel` depends on the channel too.
            let key: Vec<(Src, u8)> = instr.srcs.iter().map(|src| (*src, src.swizzle.0[channel])).collect();
            let same = match (instr.opcode, instr.opcode.kind()) {
                (Opcode::Sel, _) => None,
                (_, OpcodeKind::Dot(_)) => made.first(),
                _ => made.iter().find(|(other, _)| *other == key),
            };
            let (value, bit) = match same {
                Some(&(_, result)) => result,
                None => {
                    let srcs: Vec<Def> = match instr.opcode.kind() {
                        OpcodeKind::Dot(count) => {
                            let count = usize::from(count);
                            let of = |i: usize| (i / count, i % count);
                            (0..2 * count).map(of).map(|(src, i)| self.source(&instr.srcs[src], i)).collect()
                        }
                        _ => instr.srcs.iter().map(|src| self.source(src, channel)).collect(),
                    };
                    let result = self.result(instr, &srcs, channel);
                    made.push((key, result));
                    result
                }
            };
            let guard = self.guard(instr, channel);
            let bit = bit.filter(|_| instr.writes_flag()).map(|bit| (self.flag(channel), bit));
            for (variable, value) in first.map(|first| (first + channel, value)).into_iter().chain(bit) {
                let value = match guard {
                    Some(guard) => {
                        let old = self.read(variable);
                        self.b.alu(Op::Bcsel, &[guard, value, old])
                    }
                    None => value,
                };
                writes.push((variable, value));
            }
        }
        let state = self.state.as_mut().expect("control flow arrives");
        writes.into_iter().for_each(|(variable, value)| state[variable] = value);
    }

    /// The condition on which a channel is written; `None` if it always is.
    fn guard(&mut self, instr: &Instr, channel: usize) -> Option<Def> {
        let predicate = if instr.opcode == Opcode::Sel { None } else { self.predicate(instr, channel) };
        if instr.exec_size == 8 {
            return predicate;
        }
        let second = self.second_vertex.expect("it was computed for such instructions");
        let runs = self.not(instr.group == 0, second);
        Some(match predicate {
            Some(predicate) => self.b.alu(Op::Iand, &[runs, predicate]),
            None => runs,
        })
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
        for data in function.instrs.values().filter(|data| !matches!(data, nir::InstrData::Phi { .. })) {
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

/// The operation of nir in a channel; `None` for a copy of bits.
fn operation(opcode: Opcode, from: RegType, to: RegType) -> Option<Op> {
    use RegType::{D, F, Ud};
    let is_float = from == F;
    Some(match opcode {
        Opcode::Mov => match (from, to) {
            (F, F) | (D | Ud, D | Ud) => return None,
            (F, D) => Op::F2i32,
            (F, Ud) => Op::F2u32,
            (D, F) => Op::I2f32,
            (Ud, F) => Op::U2f32,
        },
        Opcode::Not => Op::Inot,
        Opcode::And => Op::Iand,
        Opcode::Or => Op::Ior,
        Opcode::Xor => Op::Ixor,
        Opcode::Shl => Op::Ishl,
        Opcode::Shr => Op::Ushr,
        Opcode::Asr => Op::Ishr,
        Opcode::Add if is_float => Op::Fadd,
        Opcode::Add => Op::Iadd,
        Opcode::Mul if is_float => Op::Fmul,
        Opcode::Mul => Op::Imul,
        Opcode::Mad => Op::Ffma,
        Opcode::Frc => Op::Ffract,
        Opcode::Rndd => Op::Ffloor,
        Opcode::Rnde => Op::FroundEven,
        Opcode::Rndz => Op::Ftrunc,
        Opcode::Dp2 => Op::Fdot2,
        Opcode::Dp3 => Op::Fdot3,
        Opcode::Dp4 => Op::Fdot4,
        Opcode::Rcp => Op::Frcp,
        Opcode::Rsq => Op::Frsq,
        Opcode::Sqrt => Op::Fsqrt,
        Opcode::Exp2 => Op::Fexp2,
        Opcode::Log2 => Op::Flog2,
        Opcode::Sin => Op::Fsin,
        Opcode::Cos => Op::Fcos,
        Opcode::Cmp | Opcode::Sel => unreachable!("comparisons and selections have no operation of nir"),
        Opcode::If | Opcode::Else | Opcode::Endif | Opcode::Do | Opcode::While | Opcode::Break | Opcode::Continue => {
            unreachable!("control flow computes nothing")
        }
    })
}
