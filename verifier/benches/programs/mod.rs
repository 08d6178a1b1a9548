//! Programs of any size, for benchmarks.

use ir3_compiler::ir3::{Attrs, Block, BlockData, Builder, Condition, Opcode, Program, RegClass, Src, Value};

/// The control flow of a program.
#[derive(Clone, Copy)]
pub enum ProgramShape {
    /// One block.
    Straight,
    /// Consecutive `if`s with `else`.
    Branches,
    /// Loops, up to three deep.
    Loops,
}

/// The number of live values, without the operands of one instruction.
const POOL: usize = 24;

struct ProgramGenerator {
    program: Program,
    block: Block,
    /// The values that may be read.
    pool: Vec<Value>,
    state: u64,
    count: usize,
}

impl ProgramGenerator {
    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % n
    }

    fn builder(&mut self) -> Builder<'_> {
        self.count += 1;
        Builder::new(&mut self.program, self.block)
    }

    fn pick(&mut self) -> Src {
        let k = self.below(self.pool.len());
        let value = self.pool[k];
        Builder::new(&mut self.program, self.block).src(value)
    }

    fn replace(&mut self, value: Value) {
        let k = self.below(self.pool.len());
        self.pool[k] = value;
    }

    /// Emits an operation, or a texture access with its coordinates and the split of its result.
    fn operation(&mut self) {
        let srcs = [self.pick(), self.pick(), self.pick()];
        match self.below(16) {
            0 => {
                let coordinates = self.builder().define(Opcode::Collect, RegClass::FULL, 2, &srcs[..2], Attrs::None);
                let src = self.builder().src(coordinates);
                let texel = self.builder().define(Opcode::Sam, RegClass::FULL, 4, &[src], Attrs::None);
                self.count -= 1;
                let src = Builder::new(&mut self.program, self.block).src(texel);
                for offset in 0..4 {
                    let part = self.builder().define(Opcode::Split, RegClass::FULL, 1, &[src], Attrs::Split { offset });
                    self.replace(part);
                }
            }
            1 => {
                self.builder().effect(Opcode::Stg, &srcs[..2]);
            }
            2..6 => {
                let value = self.builder().alu(Opcode::MadF32, RegClass::FULL, &srcs);
                self.replace(value);
            }
            _ => {
                let value = self.builder().alu(Opcode::AddF, RegClass::FULL, &srcs[..2]);
                self.replace(value);
            }
        }
    }

    fn new_block(&mut self) -> Block {
        self.program.blocks.push(BlockData::default())
    }

    fn enter(&mut self, block: Block) {
        self.program.layout.push(block);
        self.block = block;
    }

    fn jump(&mut self, to: Block) {
        self.builder().effect(Opcode::Jump, &[]);
        self.program.add_edge(self.block, 0, to);
    }

    fn branch(&mut self, taken: Block, other: Block) {
        let (a, b) = (self.pick(), self.pick());
        let predicate = self.builder().compare(Opcode::CmpsF, Condition::Lt, RegClass::PREDICATE, a, b);
        let src = self.builder().src(predicate);
        self.count -= 1;
        self.builder().effect(Opcode::Br, &[src]);
        self.program.add_edge(self.block, 0, taken);
        self.program.add_edge(self.block, 1, other);
    }

    /// Emits `if (…) { … } else { … }` and phis for the values that differ.
    fn diamond(&mut self) {
        let (then, otherwise, merge) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(then, otherwise);
        let before = self.pool.clone();
        let mut ends = Vec::new();
        for arm in [then, otherwise] {
            self.pool.clone_from(&before);
            self.enter(arm);
            for _ in 0..3 {
                self.operation();
            }
            self.jump(merge);
            ends.push(std::mem::take(&mut self.pool));
        }
        self.enter(merge);
        self.pool = before;
        for (k, (&a, &b)) in ends[0].iter().zip(&ends[1]).enumerate() {
            if a != b {
                let srcs = [self.builder().src(a), self.builder().src(b)];
                self.count -= 2;
                self.pool[k] = self.builder().define(Opcode::Phi, RegClass::FULL, 1, &srcs, Attrs::None);
            }
        }
    }

    /// Emits a loop around a few operations, and perhaps another loop.
    fn looped(&mut self, depth: usize) {
        let (header, exit) = (self.new_block(), self.new_block());
        self.jump(header);
        self.enter(header);
        let mut phis = Vec::new();
        for k in 0..6 {
            let src = Builder::new(&mut self.program, self.block).src(self.pool[k]);
            let phi = self.builder().define(Opcode::Phi, RegClass::FULL, 1, &[src], Attrs::None);
            self.pool[k] = phi;
            phis.push(phi);
        }
        for _ in 0..5 {
            self.operation();
        }
        if depth > 0 {
            self.looped(depth - 1);
        }
        for _ in 0..3 {
            self.operation();
        }
        self.branch(header, exit);
        for (k, &phi) in phis.iter().enumerate() {
            let src = Builder::new(&mut self.program, self.block).src(self.pool[k]);
            let phi = self.program.values[phi].instr;
            self.program.instrs[phi].srcs.push(src);
        }
        self.enter(exit);
    }
}

/// A program of at least `size` instructions.
pub fn generate(shape: ProgramShape, size: usize) -> Program {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut generator = ProgramGenerator { program, block, pool: Vec::new(), state: 0x9e37_79b9_7f4a_7c15, count: 0 };
    for _ in 0..POOL {
        let value = generator.builder().define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None));
        generator.pool.push(value);
    }
    while generator.count < size.saturating_sub(2) {
        match shape {
            ProgramShape::Straight => generator.operation(),
            ProgramShape::Branches => {
                generator.operation();
                generator.diamond();
            }
            ProgramShape::Loops => {
                generator.operation();
                let depth = generator.below(3);
                generator.looped(depth);
            }
        }
    }
    let srcs: Vec<Src> = (0..4).map(|_| generator.pick()).collect();
    generator.builder().effect(Opcode::End, &srcs);
    generator.program
}

/// The shapes and their names.
pub const SHAPES: [(&str, ProgramShape); 3] =
    [("straight-line", ProgramShape::Straight), ("branches", ProgramShape::Branches), ("loops", ProgramShape::Loops)];

/// The sizes.
pub const SIZES: [&str; 4] = ["100", "1000", "10000", "100000"];

/// The shapes and sizes that are selected: `cargo bench … -- loops 1000`; all shapes if none is named, all sizes if
/// none is named.
pub struct Chosen(Vec<String>);

impl Chosen {
    /// Reads the selection from the command line.
    pub fn new() -> Self {
        Self(std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect())
    }

    fn is(&self, name: &str, all: &[&str]) -> bool {
        let any = all.iter().any(|name| self.0.iter().any(|arg| arg == name));
        !any || self.0.iter().any(|arg| arg == name)
    }

    /// The selected shapes.
    pub fn shapes(&self) -> impl Iterator<Item = (&'static str, ProgramShape)> + '_ {
        SHAPES.into_iter().filter(|(name, _)| self.is(name, &SHAPES.map(|(name, _)| name)))
    }

    /// The selected sizes.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        SIZES.into_iter().filter(|size| self.is(size, &SIZES)).map(|size| size.parse().expect("a number"))
    }
}

/// Prints the spread of measurements for the sizes from 1,000 instructions on.
pub fn print_spread(name: &str, measurements: &[f64]) {
    let (least, most) = measurements.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
    println!("{name:<16} from 1,000 to 100,000 instructions: within a factor of {:.2}", most / least);
}
