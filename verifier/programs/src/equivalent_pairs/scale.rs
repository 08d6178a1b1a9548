//! Pairs of any size: integer programs in which a given percentage of the operations is rewritten.

use super::local;
use crate::generator::Profile;
use ir3_compiler::ir3::{
    Attrs, Block, BlockData, Builder, Condition, InputKind, Opcode, Output, Program, RegClass, ShaderStage, Src,
    SystemValue, Type, Value,
};
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use ir3_semantics::support::random::Random;

/// The control flow of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFlowShape {
    /// One block.
    Straight,
    /// An if after every 20 operations, with a phi.
    Branches,
    /// Like `Branches`, and every third time a loop of a few iterations instead.
    Loops,
}

/// The number of values that can be read at any point.
const POOL: usize = 12;

struct Growing {
    program: Program,
    block: Block,
    pool: Vec<Value>,
    random: Random,
}

impl Growing {
    fn builder(&mut self) -> Builder<'_> {
        Builder::new(&mut self.program, self.block)
    }

    fn pick(&mut self) -> Src {
        let value = self.pool[self.random.below(self.pool.len())];
        self.builder().src(value)
    }

    fn put(&mut self, value: Value) {
        let place = self.random.below(self.pool.len());
        self.pool[place] = value;
    }

    fn block(&mut self) -> Block {
        let block = self.program.blocks.push(BlockData::default());
        self.program.layout.push(block);
        block
    }

    fn operation(&mut self) {
        use Opcode::*;
        let [a, b, c] = [self.pick(), self.pick(), self.pick()];
        let class = RegClass::FULL;
        let number = Src::immediate(1 + self.random.below(30) as u32, false);
        let value = match self.random.below(12) {
            0..=2 => self.builder().alu(AddU, class, &[a, b]),
            3 | 4 => self.builder().alu(SubU, class, &[a, b]),
            5 => self.builder().alu(AndB, class, &[a, b]),
            6 => self.builder().alu(OrB, class, &[a, b]),
            7 => self.builder().alu(XorB, class, &[a, b]),
            8 => self.builder().alu(ShlB, class, &[a, number]),
            9 => self.builder().alu(MinS, class, &[a, b]),
            10 => self.builder().alu(AddU, class, &[a, number]),
            _ => self.builder().alu(SelB32, class, &[a, b, c]),
        };
        self.put(value);
    }

    fn predicate(&mut self) -> Src {
        let [a, b] = [self.pick(), self.pick()];
        let value = self.builder().compare(Opcode::CmpsU, Condition::Lt, RegClass::PREDICATE, a, b);
        self.builder().src(value)
    }

    fn operations(&mut self, n: usize) {
        (0..n).for_each(|_| self.operation());
    }

    /// Appends an if with a phi for one value of the pool.
    fn branch(&mut self, n: usize) {
        let predicate = self.predicate();
        self.builder().effect(Opcode::Br, &[predicate]);
        let from = self.block;
        let before = self.pool.clone();
        let [yes, no] = [self.block(), self.block()];
        self.program.add_edge(from, 0, yes);
        self.program.add_edge(from, 1, no);
        let mut last = Vec::new();
        for arm in [yes, no] {
            self.block = arm;
            self.pool.clone_from(&before);
            self.operations(n / 2);
            last.push(self.pick());
            self.builder().effect(Opcode::Jump, &[]);
        }
        let join = self.block();
        self.program.add_edge(yes, 0, join);
        self.program.add_edge(no, 0, join);
        self.block = join;
        self.pool = before;
        let phi = self.builder().define(Opcode::Phi, RegClass::FULL, 1, &last, Attrs::None);
        self.put(phi);
    }

    /// Appends a loop of three iterations with two loop-carried values.
    fn repeat(&mut self, n: usize) {
        let start = self.pick();
        self.builder().effect(Opcode::Jump, &[]);
        let before = self.block;
        let header = self.block();
        self.program.add_edge(before, 0, header);
        self.block = header;
        let zero = Src::immediate(0, false);
        let counter = self.builder().define(Opcode::Phi, RegClass::FULL, 1, &[zero], Attrs::None);
        let carried = self.builder().define(Opcode::Phi, RegClass::FULL, 1, &[start], Attrs::None);
        let counted = self.builder().src(counter);
        let three = Src::immediate(3, false);
        let goes_on = self.builder().compare(Opcode::CmpsU, Condition::Lt, RegClass::PREDICATE, counted, three);
        let goes_on = self.builder().src(goes_on);
        self.builder().effect(Opcode::Br, &[goes_on]);
        let outside = self.pool.clone();
        let body = self.block();
        self.program.add_edge(header, 0, body);
        self.block = body;
        self.pool[0] = carried;
        self.operations(n);
        let next = self.pick();
        let next_count = self.builder().alu(Opcode::AddU, RegClass::FULL, &[counted, Src::immediate(1, false)]);
        let next_count = self.builder().src(next_count);
        self.builder().effect(Opcode::Jump, &[]);
        self.program.add_edge(body, 0, header);
        for (value, src) in [(counter, next_count), (carried, next)] {
            let instr = self.program.values[value].instr;
            self.program.instrs[instr].srcs.push(src);
        }
        let after = self.block();
        self.program.add_edge(header, 1, after);
        self.block = after;
        self.pool = outside;
        self.put(carried);
    }

    fn end(&mut self) {
        let values: Vec<Value> = self.pool[..4].to_vec();
        let outputs: Vec<Src> = values.into_iter().map(|value| self.builder().src(value)).collect();
        let end = self.builder().effect(Opcode::End, &outputs);
        self.program.instrs[end].attrs = Attrs::Outputs((0..4).collect());
        self.program.outputs = (0..4).map(|i| Output { base: 0, component: i }).collect();
    }
}

/// Makes a program of about `instructions` instructions, and the same with `percent` of a hundred of its operations
/// rewritten by integer rules.
pub fn scaled(
    seed: u64,
    instructions: usize,
    shape: ControlFlowShape,
    percent: usize,
    machine: &Target,
) -> super::EquivalentPair {
    let mut program = Program { stage: Some(ShaderStage::Compute), ..Program::default() };
    let entry = program.blocks.push(BlockData::default());
    program.layout.push(entry);
    let mut growing = Growing { program, block: entry, pool: Vec::new(), random: Random::new(seed) };
    let input = Attrs::Input(Some(InputKind::System(SystemValue::LocalInvocationId)));
    let id = growing.builder().define(Opcode::Input, RegClass::FULL, 3, &[], input);
    let vector = growing.builder().src(id);
    for i in 0..POOL {
        let value = match i {
            0..=2 => {
                growing.builder().define(Opcode::Split, RegClass::FULL, 1, &[vector], Attrs::Split { offset: i as u16 })
            }
            _ => growing.builder().convert(Type::U32, Type::U32, RegClass::FULL, Src::constant(i as u16, false)),
        };
        growing.pool.push(value);
    }
    let mut turn = 0;
    while growing.program.instruction_count() + 24 < instructions {
        match shape {
            ControlFlowShape::Straight => growing.operations(20),
            ControlFlowShape::Branches => {
                growing.operations(10);
                growing.branch(10);
            }
            ControlFlowShape::Loops if turn % 3 == 2 => growing.repeat(16),
            ControlFlowShape::Loops => {
                growing.operations(10);
                growing.branch(10);
            }
        }
        turn += 1;
    }
    let rest = instructions.saturating_sub(growing.program.instruction_count() + 1);
    growing.operations(rest);
    growing.end();
    let source = growing.program;
    let mut target = source.clone();
    let mut random = Random::new(seed ^ 0x7363_616c);
    local::rewrite(&mut target, machine, &mut random, &local::integer_rules(), percent);
    super::EquivalentPair::new("scaled", 0, (Profile::Alu, seed, Stage::Select), source, target)
}
