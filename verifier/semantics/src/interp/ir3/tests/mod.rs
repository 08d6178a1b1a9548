//! Programs built by hand, with known results.

mod control;
mod lanes;
mod memory;
mod registers;
mod values;

use super::Decoded;
use crate::environment::env::Env;
use crate::interp::{End, Outcome, Scratch, UndefinedReason};
use ir3_compiler::ir3::*;
use ir3_compiler::target::Target;

/// Enough fuel for every program here.
const FUEL: u64 = 100_000;

/// A program under construction.
struct TestProgram {
    program: Program,
    block: Block,
}

impl TestProgram {
    /// A compute shader with its first block.
    fn new() -> Self {
        let mut program = Program { stage: Some(ShaderStage::Compute), ..Program::default() };
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        Self { program, block }
    }

    fn fragment() -> Self {
        let mut code = Self::new();
        code.program.stage = Some(ShaderStage::Fragment);
        code
    }

    /// A new block, last in the layout.
    fn new_block(&mut self) -> Block {
        let block = self.program.blocks.push(BlockData::default());
        self.program.layout.push(block);
        block
    }

    fn go(&mut self, block: Block) {
        self.block = block;
    }

    fn b(&mut self) -> Builder<'_> {
        Builder::new(&mut self.program, self.block)
    }

    fn src(&mut self, value: Value) -> Src {
        self.b().src(value)
    }

    /// A component of a system value.
    fn system(&mut self, value: SystemValue) -> Value {
        let attrs = Attrs::Input(Some(InputKind::System(value)));
        self.b().define(Opcode::Input, RegClass::FULL, 1, &[], attrs)
    }

    /// The lane number.
    fn lane(&mut self) -> Value {
        self.system(SystemValue::SubgroupInvocation)
    }

    /// The mask of the active lanes, in words of 32.
    fn mask(&mut self, words: u16) -> Value {
        let mask = self.b().define(Opcode::Movmsk, RegClass::FULL, words, &[], Attrs::None);
        let instr = self.program.values[mask].instr;
        self.program.instrs[instr].repeat = words as u8 - 1;
        mask
    }

    fn mov(&mut self, src: Src) -> Value {
        let (ty, class) = if src.class.half { (Type::U16, RegClass::HALF) } else { (Type::U32, RegClass::FULL) };
        self.b().convert(ty, ty, class, src)
    }

    fn op2(&mut self, opcode: Opcode, a: Src, b: Src) -> Value {
        self.b().alu(opcode, RegClass::FULL, &[a, b])
    }

    fn test(&mut self, condition: Condition, a: Src, b: Src) -> Src {
        let value = self.b().compare(Opcode::CmpsU, condition, RegClass::PREDICATE, a, b);
        self.src(value)
    }

    /// Ends the block with a branch.
    fn branch(&mut self, opcode: Opcode, srcs: &[Src], yes: Block, no: Block) {
        self.b().effect(opcode, srcs);
        self.program.add_edge(self.block, 0, yes);
        self.program.add_edge(self.block, 1, no);
    }

    fn jump(&mut self, to: Block) {
        self.b().effect(Opcode::Jump, &[]);
        self.program.add_edge(self.block, 0, to);
    }

    /// Ends the program; the sources are the components of output 0.
    fn end(&mut self, srcs: &[Src]) {
        let mut data = InstrData::new(Opcode::End);
        data.srcs.extend_from_slice(srcs);
        data.attrs = Attrs::Outputs((0..srcs.len() as u16).collect());
        for component in 0..srcs.len() {
            self.program.outputs.push(Output { base: 0, component: component as u8 });
        }
        self.b().push(data);
    }

    fn phi(&mut self, srcs: &[Src]) -> Value {
        self.b().alu(Opcode::Phi, RegClass::FULL, srcs)
    }

    /// Gives a phi its last sources.
    fn add_phi_sources(&mut self, phi: Value, srcs: &[Src]) {
        let instr = self.program.values[phi].instr;
        self.program.instrs[instr].srcs.extend_from_slice(srcs);
    }

    /// An instruction whose operands are registers.
    fn instr(&mut self, opcode: Opcode, dsts: &[Dst], srcs: &[Src], attrs: Attrs) -> &mut InstrData {
        let mut data = InstrData::new(opcode);
        data.dsts.extend_from_slice(dsts);
        data.srcs.extend_from_slice(srcs);
        data.attrs = attrs;
        let instr = self.b().push(data);
        &mut self.program.instrs[instr]
    }

    fn run_on(&self, gpu: &str, env: &Env) -> Outcome {
        let target = Target::by_name(gpu).expect("a known target");
        let decoded = Decoded::new(&self.program, &target).expect("a supported program");
        decoded.run(env, FUEL, &mut Scratch::new())
    }

    fn run(&self) -> Outcome {
        self.run_on("a660", &Env::from_seed(1))
    }

    fn refused(&self) -> String {
        let target = Target::by_name("a660").expect("a known target");
        Decoded::new(&self.program, &target).expect_err("an unsupported program").to_string()
    }
}

fn full(bits: u32) -> Src {
    Src::immediate(bits, false)
}

fn half(bits: u32) -> Src {
    Src::immediate(bits, true)
}

/// `r<n>.<c>` for `n * 4 + c`, of a class.
fn to(class: RegClass, number: u16) -> Dst {
    Dst::new(Place::Reg(PhysReg(number)), class, WriteMask::SCALAR)
}

fn from(class: RegClass, number: u16) -> Src {
    Src::reg(Place::Reg(PhysReg(number)), class, WriteMask::SCALAR)
}

fn moves(ty: Type) -> Attrs {
    Attrs::Move { src: ty, dst: ty, round: Round::Default }
}

/// Output component `component` in each lane, and the lanes where it is poison.
fn output(outcome: &Outcome, component: u8) -> ([u32; 64], u64) {
    let row = outcome.outputs.rows().iter().find(|row| row.component == component).expect("an output");
    (row.values, row.poison)
}

/// Asserts that the run ended, and that an output is `expected` in each lane, `None` for poison.
#[track_caller]
fn expect(outcome: &Outcome, component: u8, expected: impl Fn(u32) -> Option<u32>) {
    assert_eq!(outcome.end, End::Finished);
    let (values, poison) = output(outcome, component);
    for (lane, &value) in values.iter().enumerate() {
        let actual = (poison >> lane & 1 == 0).then_some(value);
        assert_eq!(actual, expected(lane as u32), "component {component} of lane {lane}");
    }
}

#[track_caller]
fn expect_undefined(outcome: &Outcome, expected: UndefinedReason, expected_lanes: u64) {
    match &outcome.end {
        End::Undefined { reason, lanes, .. } => assert_eq!((*reason, *lanes), (expected, expected_lanes)),
        end => panic!("the run ended otherwise: {end:?}"),
    }
}
