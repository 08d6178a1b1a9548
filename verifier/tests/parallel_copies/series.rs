//! Many cases as one program, lowered, run and compared.

use super::case::{CopyCase, CopyStage, Register, bits_of, full, half, mov, shared, src};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{
    Attrs, BlockData, Builder, InstrData, Opcode, Output, Program, RegClass, RegFile, ShaderStage, Src, SrcOperand,
};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::ir3::Decoded;
use ir3_semantics::interp::{End, Scratch};

/// All registers of all files, no two of which overlap.
pub fn all_registers(target: &Target) -> Vec<Register> {
    let mut all: Vec<Register> = (0..192).map(full).collect();
    if !target.merged_regs {
        all.extend((0..192).map(half));
    }
    if target.has_shared_regfile {
        all.extend((0..32).map(shared));
    }
    all
}

/// Cases that become one program, and the expected contents of each register at its end.
pub struct Batch {
    pub program: Program,
    pub expected: Vec<(Register, u32)>,
}

/// A planted bug: changes a lowered program.
pub type LoweredBug<'a> = &'a dyn Fn(&mut Program);

/// Runs cases; counts them and their instructions.
pub struct Series<'a> {
    pub kind: &'a CopyStage,
    pub plant: LoweredBug<'a>,
    /// Registers that the cases do not write, with their initial contents.
    pub bystanders: Vec<Register>,
    pub stash: Vec<Register>,
    pub half_stash: Vec<Register>,
    /// General registers that receive the contents of shared ones at the end.
    pub shown: Vec<Register>,
    pub scratch: Scratch,
    pub batches: usize,
    pub run: usize,
    pub instructions: usize,
}

impl<'a> Series<'a> {
    pub fn new(kind: &'a CopyStage, plant: LoweredBug<'a>) -> Self {
        // Temporaries of the lowering stay out of the stash, so that they are compared from the start.
        let reserved: Vec<Register> =
            [0, 4].into_iter().flat_map(|n| [full(n), half(n), half(n + 1), shared(n)]).collect();
        let in_stage = |register: &Register| kind.fulls.contains(register) || kind.halves.contains(register);
        let (mut bystanders, free): (Vec<Register>, Vec<Register>) = all_registers(&kind.targets[0])
            .into_iter()
            .filter(|register| !in_stage(register))
            .partition(|register| reserved.contains(register) || register.0.file == RegFile::Shared);
        let (half_stash, mut stash): (Vec<_>, Vec<_>) = free.into_iter().partition(|register| register.0.half);
        let shared_bystanders = bystanders.iter().filter(|register| register.0.file == RegFile::Shared).count();
        let shown = stash.split_off(stash.len() - shared_bystanders);
        // Shared ones last: they are read last.
        bystanders.sort_by_key(|register| register.0.file);
        let scratch = Scratch::new();
        Self { kind, plant, bystanders, stash, half_stash, shown, scratch, batches: 0, run: 0, instructions: 0 }
    }

    /// The number of cases that fit into a program.
    pub fn room(&self) -> usize {
        let halves = self.kind.parts.iter().filter(|part| part.is_none()).count();
        let rooms = [(self.stash.len(), self.kind.fulls.len()), (self.half_stash.len(), halves)];
        rooms.into_iter().filter_map(|(stash, each)| stash.checked_div(each)).min().unwrap_or(1)
    }

    pub fn batch(&self, cases: &[CopyCase]) -> Batch {
        let kind = self.kind;
        let mut program = Program { stage: Some(ShaderStage::Vertex), ..Program::default() };
        let block = program.blocks.push(BlockData::default());
        program.layout.push(block);
        let mut b = Builder::new(&mut program, block);
        let mut expected = Vec::new();
        let mut shown = self.shown.iter().copied();
        for (i, &register) in self.bystanders.iter().enumerate() {
            let bits = bits_of(i, 30) & if register.0.half { 0xffff } else { u32::MAX };
            b.push(mov(register, Src::immediate(bits, register.0.half)));
            let seen = if register.0.file == RegFile::Shared { shown.next().unwrap() } else { register };
            expected.push((seen, bits));
        }
        let mut stash = self.stash.iter().copied();
        let mut half_stash = self.half_stash.iter().copied();
        let alone: Vec<usize> = (0..kind.halves.len()).filter(|&half| kind.parts[half].is_none()).collect();
        for case in cases {
            let (before, after) = (case.before(kind), case.result(kind));
            for (&register, &bits) in kind.fulls.iter().zip(&before.fulls) {
                b.push(mov(register, Src::immediate(bits, false)));
            }
            for &which in &alone {
                b.push(mov(kind.halves[which], Src::immediate(before.halves[which], true)));
            }
            b.push(InstrData::new(Opcode::Nop));
            b.push(case.instruction(kind));
            b.push(InstrData::new(Opcode::Nop));
            for ((&register, &bits), to) in kind.fulls.iter().zip(&after.fulls).zip(&mut stash) {
                b.push(mov(to, src(register)));
                expected.push((to, bits));
            }
            for (&which, to) in alone.iter().zip(&mut half_stash) {
                b.push(mov(to, src(kind.halves[which])));
                expected.push((to, after.halves[which]));
            }
        }
        let is_shared = |register: &&Register| register.0.file == RegFile::Shared;
        for (&register, &to) in self.bystanders.iter().filter(is_shared).zip(&self.shown) {
            b.push(mov(to, src(register)));
        }
        let mut end = InstrData::new(Opcode::End);
        for (i, &(register, _)) in expected.iter().enumerate() {
            b.program.outputs.push(Output { base: i as u16, component: 0 });
            end.srcs.push(src(register));
        }
        end.attrs = Attrs::Outputs((0..expected.len() as u16).collect());
        b.push(end);
        Batch { program, expected }
    }

    /// Runs some cases.
    ///
    /// # Errors
    /// The first case that has a wrong result.
    pub fn check(&mut self, cases: &[CopyCase], least: bool) -> Result<(), String> {
        let kind = self.kind;
        let Batch { program, expected } = self.batch(cases);
        let mut done: Vec<Vec<InstrData>> = Vec::new();
        for target in &kind.targets {
            let mut program = program.clone();
            pipeline::run_stage(Stage::LowerCopies, &mut program, target, &Options::default())
                .map_err(|error| error.to_string())?;
            (self.plant)(&mut program);
            let list: Vec<InstrData> = program.iter_instrs().map(|(_, i)| program.instrs[i].clone()).collect();
            self.run += cases.len();
            if done.contains(&list) {
                continue;
            }
            let counts = counts(&list);
            self.instructions += counts.iter().map(|(moves, swaps)| moves + swaps).sum::<usize>();
            for (case, &counted) in cases.iter().zip(&counts).filter(|_| least) {
                let least = case.least();
                if counted != least {
                    return Err(format!("{:?}: (moves, swaps) {counted:?} for {least:?}", case.entries));
                }
            }
            if let Some(wrong) = list.iter().find(|data| misreads(data, target)) {
                return Err(format!("{wrong:?} does not work on {target}"));
            }
            // The validator's rules hardly depend on the case, so not every batch needs to be validated.
            if self.batches.is_multiple_of(8)
                && let Err(violations) = validate(&program, target, Form::Machine)
            {
                return Err(violations[0].to_string());
            }
            done.push(list);
            self.execute(&program, target, cases, &expected)?;
        }
        self.batches += 1;
        Ok(())
    }

    pub fn execute(
        &mut self,
        program: &Program,
        target: &Target,
        cases: &[CopyCase],
        expected: &[(Register, u32)],
    ) -> Result<(), String> {
        let decoded = Decoded::new(program, target).map_err(|error| error.to_string())?;
        let outcome = decoded.run(&Env::from_seed(1), 1_000_000, &mut self.scratch);
        assert_eq!(outcome.end, End::Finished);
        for (i, &(register, bits)) in expected.iter().enumerate() {
            let row = &outcome.outputs.rows()[i];
            if row.poison != 0 || row.values != [bits; 64] {
                let each = self.kind.fulls.len() + self.kind.parts.iter().filter(|part| part.is_none()).count();
                let case = i.checked_sub(self.bystanders.len()).map(|i| &cases[i / each].entries);
                let (found, poison) = (row.values[0], row.poison);
                return Err(format!("{:?} is {found:#x} (poison {poison:#x}) for {bits:#x}, in {case:?}", register.1));
            }
        }
        Ok(())
    }
}

/// Returns true for a move of 16 bits, to or from the shared file, that the hardware executes wrongly.
pub fn misreads(data: &InstrData, target: &Target) -> bool {
    let (Opcode::Mov, [dst], [src]) = (data.opcode, &data.dsts[..], &data.srcs[..]) else { return false };
    let is_register = matches!(src.operand, SrcOperand::Place(_));
    let into = target.merged_regs && dst.class == RegClass::SHARED_HALF && src.class == RegClass::HALF;
    let out = target.quirks.mov_half_shared && dst.class == RegClass::HALF && src.class == RegClass::SHARED_HALF;
    is_register && (into || out)
}

/// The numbers of moves and swaps between each two `nop`s around a copy. Three `xor.b` are a swap.
pub fn counts(list: &[InstrData]) -> Vec<(usize, usize)> {
    let mut counts = Vec::new();
    let mut inside = false;
    let (mut moves, mut swaps, mut xors) = (0, 0, 0);
    for data in list {
        match data.opcode {
            Opcode::Nop => {
                if inside {
                    assert_eq!(xors % 3, 0);
                    counts.push((moves, swaps + xors / 3));
                }
                (inside, moves, swaps, xors) = (!inside, 0, 0, 0);
            }
            Opcode::Swz => swaps += 1,
            Opcode::XorB => xors += 1,
            _ => moves += 1,
        }
    }
    counts
}
