//! Speed of register allocation: straight-line code, branches and loops, of 100 to 100,000 instructions.
//!
//! `cargo bench -p ir3-verifier --bench regalloc` prints nanoseconds of CPU time for each instruction of the program in SSA
//! form, of the best of many runs. In the figure is everything from there to machine instructions, by parts:
//!
//! - *predicates*: critical edges, tied sources, registers of predicates and addresses (`regalloc::predicates`);
//! - *assignment*: conventional form, liveness, merge sets, pressure and assignment (`regalloc::run_within`);
//! - *lowering*: parallel copies to moves and swaps (`regalloc::lower_copies`).
//!
//! The programs fit, so nothing is spilled. The last column is the scheduler in front of all that (`schedule::before`), in
//! nanoseconds for each instruction too; it is in none of the figures before it.

use cpu_time::ThreadTime;
use ir3_compiler::ir3::{Attrs, Block, BlockData, Builder, Condition, Opcode, Program, RegClass, Src, Value};
use ir3_compiler::regalloc;
use ir3_compiler::schedule::{before, dependencies::Rules};
use ir3_compiler::target::Target;

/// The control flow of a program.
#[derive(Clone, Copy)]
enum Shape {
    Straight,
    Branches,
    Loops,
}

/// Values that are alive at a time, but for what one instruction needs.
const POOL: usize = 24;

struct Generator {
    program: Program,
    block: Block,
    /// The values that may be read.
    pool: Vec<Value>,
    state: u64,
    count: usize,
}

impl Generator {
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

    /// An operation, or a texture access with its coordinates and its parts.
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

    /// `if (…) { … } else { … }` and phis for what differs.
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

    /// A loop around a few operations, and perhaps another loop.
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
fn generate(shape: Shape, size: usize) -> Program {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut generator = Generator { program, block, pool: Vec::new(), state: 0x9e37_79b9_7f4a_7c15, count: 0 };
    for _ in 0..POOL {
        let value = generator.builder().define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None));
        generator.pool.push(value);
    }
    while generator.count < size.saturating_sub(2) {
        match shape {
            Shape::Straight => generator.operation(),
            Shape::Branches => {
                generator.operation();
                generator.diamond();
            }
            Shape::Loops => {
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

/// The parts of the figure.
const PARTS: [&str; 3] = ["predicates", "assignment", "lowering"];

/// Nanoseconds of CPU time of the parts, each of the run in which all together were fastest.
fn time(program: &Program, target: &Target, runs: usize) -> [f64; PARTS.len()] {
    let run = |_| {
        let mut program = program.clone();
        let mut last = ThreadTime::now();
        let mut part = || {
            let now = ThreadTime::now();
            now.duration_since(std::mem::replace(&mut last, now)).as_nanos() as f64
        };
        regalloc::predicates(&mut program, target).expect("predicates fit");
        let predicates = part();
        regalloc::run_within(&mut program, target, target.register_files()).expect("it fits");
        let assignment = part();
        regalloc::lower_copies::run(&mut program, target).expect("copies can be lowered");
        [predicates, assignment, part()]
    };
    let total = |parts: &[f64; PARTS.len()]| parts.iter().sum::<f64>();
    (0..runs).map(run).min_by(|a, b| total(a).total_cmp(&total(b))).unwrap_or_default()
}

/// Nanoseconds of CPU time of the scheduler, of the fastest run.
fn time_schedule(program: &Program, target: &Target, runs: usize) -> f64 {
    let run = |_| {
        let mut program = program.clone();
        let start = ThreadTime::now();
        let rules = Rules { predicates: true, registers: target.num_predicates };
        before::run(&mut program, target, target.register_files(), rules);
        start.elapsed().as_nanos() as f64
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let target = Target::default();
    // Shapes and sizes may be chosen: `cargo bench … -- loops 1000`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_chosen = |name: &str, all: &[&str]| {
        let any = all.iter().any(|name| chosen.iter().any(|arg| arg == name));
        !any || chosen.iter().any(|arg| arg == name)
    };
    let shapes = [("straight-line", Shape::Straight), ("branches", Shape::Branches), ("loops", Shape::Loops)];
    let names = shapes.map(|(name, _)| name);
    println!(
        "{:<16} {:>12} {:>8} {:>9} {:>10}   {}; schedule",
        "shape",
        "instructions",
        "blocks",
        "ns/instr",
        "M instr/s",
        PARTS.join(" + ")
    );
    for (name, shape) in shapes.into_iter().filter(|(name, _)| is_chosen(name, &names)) {
        let mut flat = Vec::new();
        for size in ["100", "1000", "10000", "100000"] {
            if !is_chosen(size, &["100", "1000", "10000", "100000"]) {
                continue;
            }
            let size: usize = size.parse().expect("a number");
            let program = generate(shape, size);
            let count = program.instruction_count();
            let runs = (2_000_000 / size).clamp(15, 1000);
            let schedule = time_schedule(&program, &target, runs) / count as f64;
            let parts = time(&program, &target, runs).map(|part| part / count as f64);
            let each: f64 = parts.iter().sum();
            let parts: Vec<String> = parts.iter().map(|part| format!("{part:.0}")).collect();
            println!(
                "{name:<16} {count:>12} {:>8} {each:>9.0} {:>10.2}   {}; {schedule:.0}",
                program.layout.len(),
                1e3 / each,
                parts.join(" + ")
            );
            if size >= 1_000 {
                flat.push(each);
            }
        }
        let (least, most) = flat.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
        println!("{name:<16} from 1,000 to 100,000 instructions: within a factor of {:.2}", most / least);
    }
}
