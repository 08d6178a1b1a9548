//! The engines on another compiler: `cargo run --example foreign`.
//!
//! A register machine of ten opcodes, and an allocator for it. [`ForeignProgram`] describes its programs to the
//! engines, which compare the program with virtual registers with the one that has the machine's.

use ir3_verifier::prelude::*;

/// An opcode of the machine.
#[allow(dead_code, reason = "the program below does without some")]
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// A number.
    Const(u32),
    /// The first operand.
    Move,
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a & b`.
    And,
    /// `a ^ b`.
    Xor,
    /// `a << b`.
    Shift,
    /// 1 if `a < b`, else 0.
    Less,
    /// The word of memory with the number `a`.
    Load,
    /// Writes `a` to the word of memory whose number is in the register.
    Store,
}

/// An instruction: its opcode, the register that it writes (of a store, the address), and the ones that it reads.
pub type Instr = (Op, u16, [u16; 2]);

/// A program: virtual registers before allocation, the machine's after it.
#[derive(Clone, Debug)]
pub struct Program {
    /// True if the registers are the machine's.
    pub allocated: bool,
    /// The register that holds the number of the thread at the start.
    pub thread: u16,
    /// The instructions and the end of each block.
    pub blocks: Vec<(Vec<Instr>, Exit)>,
}

impl Program {
    fn location(&self, register: u16) -> Location {
        if self.allocated { Location::Register(register) } else { Location::Virtual(register) }
    }
}

impl ForeignProgram for Program {
    fn thread(&self) -> Location {
        self.location(self.thread)
    }

    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn operations(&self, block: usize) -> Vec<Operation> {
        let decode = |&(op, register, operands): &Instr| {
            let to = self.location(register);
            let [a, b] = operands.map(|operand| Operand::Location(self.location(operand)));
            match op {
                Op::Const(number) => Operation::Copy(to, Operand::Constant(number)),
                Op::Move => Operation::Copy(to, a),
                Op::Add => Operation::Compute(ir3::Opcode::AddU, to, [a, b]),
                Op::Sub => Operation::Compute(ir3::Opcode::SubU, to, [a, b]),
                Op::And => Operation::Compute(ir3::Opcode::AndB, to, [a, b]),
                Op::Xor => Operation::Compute(ir3::Opcode::XorB, to, [a, b]),
                Op::Shift => Operation::Compute(ir3::Opcode::ShlB, to, [a, b]),
                Op::Less => Operation::Compare(ir3::Condition::Lt, to, [a, b]),
                Op::Load => Operation::Load(to, a),
                Op::Store => Operation::Store(Operand::Location(to), a),
            }
        };
        self.blocks[block].0.iter().map(decode).collect()
    }

    fn exit(&self, block: usize) -> Exit {
        match self.blocks[block].1 {
            Exit::Branch(Operand::Location(Location::Virtual(register)), to) => {
                Exit::Branch(Operand::Location(self.location(register)), to)
            }
            exit => exit,
        }
    }
}

/// Allocates registers by linear scan. The planted bug, if `forgets_loops`: a value that a loop reads is kept to its
/// last use in the text, not to the end of the loop.
pub fn allocate(program: &Program, forgets_loops: bool) -> Program {
    // The range of each register in the text, and that of each block.
    let (mut ranges, mut spans, mut at) = (vec![(usize::MAX, 0); 64], Vec::new(), 1);
    let note = |ranges: &mut Vec<(usize, usize)>, register: u16, at| {
        let range: &mut (usize, usize) = &mut ranges[usize::from(register)];
        *range = (range.0.min(at), range.1.max(at));
    };
    note(&mut ranges, program.thread, 0);
    for (instrs, exit) in &program.blocks {
        let first = at;
        for &(op, register, [a, b]) in instrs {
            note(&mut ranges, register, at);
            let reads = match op {
                Op::Const(_) => &[][..],
                Op::Move | Op::Load | Op::Store => &[a],
                _ => &[a, b],
            };
            reads.iter().for_each(|&read| note(&mut ranges, read, at));
            at += 1;
        }
        if let Exit::Branch(Operand::Location(Location::Virtual(read)), _) = *exit {
            note(&mut ranges, read, at);
        }
        spans.push((first, at));
        at += 1;
    }
    for (block, (_, exit)) in program.blocks.iter().enumerate().filter(|_| !forgets_loops) {
        let targets = match *exit {
            Exit::End => vec![],
            Exit::Jump(to) => vec![to],
            Exit::Branch(_, to) => to.to_vec(),
        };
        for header in targets.into_iter().filter(|&to| to <= block) {
            let (start, end) = (spans[header].0, spans[block].1);
            ranges
                .iter_mut()
                .filter(|range| range.0 < start && range.1 >= start)
                .for_each(|range| range.1 = range.1.max(end));
        }
    }
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&register| ranges[register].0 != usize::MAX).collect();
    order.sort_by_key(|&register| ranges[register]);
    let (mut home, mut free_from) = ([0u16; 64], [0usize; 64]);
    for register in order {
        let free = free_from.iter().position(|&free| free <= ranges[register].0).expect("the machine has 64 registers");
        (home[register], free_from[free]) = (free as u16, ranges[register].1.max(ranges[register].0 + 1));
    }
    let mut after = Program { allocated: true, thread: home[usize::from(program.thread)], ..program.clone() };
    for (instrs, exit) in &mut after.blocks {
        for (_, register, operands) in instrs {
            *register = home[usize::from(*register)];
            *operands = operands.map(|operand| home[usize::from(operand)]);
        }
        if let Exit::Branch(Operand::Location(Location::Virtual(register)), _) = exit {
            *register = home[usize::from(*register)];
        }
    }
    after
}

/// Adds up three words of memory, the first of which has the thread's number, and stores the sum there.
pub fn sum() -> Program {
    const THREAD: u16 = 0;
    let [sum, i, bound, goes_on, address, word, one, mask] = [1, 2, 3, 4, 5, 6, 7, 8];
    let branch = |register, to| Exit::Branch(Operand::Location(Location::Virtual(register)), to);
    let entry = vec![(Op::Const(0), sum, [0, 0]), (Op::Const(0), i, [0, 0]), (Op::Const(3), bound, [0, 0])];
    let header = vec![(Op::Less, goes_on, [i, bound])];
    let body = vec![
        (Op::Add, address, [THREAD, i]),
        (Op::Load, word, [address, 0]),
        (Op::Const(255), mask, [0, 0]),
        (Op::And, word, [word, mask]),
        (Op::Add, sum, [sum, word]),
        (Op::Const(1), one, [0, 0]),
        (Op::Add, i, [i, one]),
    ];
    let exit = vec![(Op::Store, THREAD, [sum, 0])];
    let blocks =
        vec![(entry, Exit::Jump(1)), (header, branch(goes_on, [2, 3])), (body, Exit::Jump(1)), (exit, Exit::End)];
    Program { allocated: false, thread: THREAD, blocks }
}

/// The verdict of each engine on an allocation.
///
/// # Errors
/// If the interpreter does not execute an operation of the program.
pub fn verdicts(forgets_loops: bool) -> Result<Vec<(EngineKind, Verdict)>, Unsupported> {
    let machine = Target::default();
    let program = sum();
    let before = decode(&program, &machine)?;
    let after = decode(&allocate(&program, forgets_loops), &machine)?;
    let envs = Env::from_seeds(&[1, 2, 3]);
    let question =
        Question { stage: None, before: (&before).into(), after: (&after).into(), machine: &machine, envs: &envs };
    let answers = Engines::all(Smt::default()).answers(&question);
    Ok(answers.into_iter().map(|answer| (answer.engine, answer.verdict)).collect())
}

#[allow(dead_code, reason = "a test calls what it calls")]
fn main() -> Result<(), Unsupported> {
    for forgets_loops in [false, true] {
        println!("{}", if forgets_loops { "The allocator that forgets loops:" } else { "The allocator:" });
        for (engine, verdict) in verdicts(forgets_loops)? {
            println!("  {}: {verdict} {}", engine.name(), verdict.reason().unwrap_or_default());
        }
    }
    Ok(())
}
