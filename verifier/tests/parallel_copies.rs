//! Every parallel copy there is over a few registers, lowered, run, and compared with what a parallel copy means.
//!
//! The registers under test are the *stage*: three full ones, which are six half ones. A *case* is a partial function: each
//! full register is written as a whole or as two halves, from any register of the stage, from an immediate or from the
//! constant file, or not at all. Many cases make one program: the stage is filled, the copy done, and what has become of the
//! stage is put aside (in the *stash*) until the end, where every register of every file is looked at, so that a stray
//! write anywhere is seen. `nop`s part the copies from what stands around them, so that instructions can be counted.
//! GPUs for which a program is lowered to the same instructions share one run of it.
//!
//! What an instruction does is the interpreter's word; what a parallel copy means is said here, by [`Case::result`].

use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{
    Attrs, BlockData, Builder, Dst, InstrData, Opcode, Output, PhysReg, Place, Program, RegClass, RegFile, Round,
    ShaderStage, Src, SrcOperand, Type, WriteMask,
};
use ir3_compiler::pipeline::{self, Options, Stage};
use ir3_compiler::target::Target;
use ir3_verifier::interp::ir3::Decoded;
use ir3_verifier::interp::{End, Scratch};
use ir3_verifier::semantics::env::Env;
use std::collections::BTreeMap;

/// Where a copied component comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// A register of the stage, as wide as the destination: an index into [`Kind::halves`] or [`Kind::fulls`].
    Register(usize),
    /// An immediate or a word of the constant file.
    Number,
}

/// One component that is copied: the register of the stage that is written, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    half: bool,
    to: usize,
    from: From,
}

/// A register by its file and number.
type Register = (RegClass, PhysReg);

/// The stage of a series of cases.
struct Kind {
    name: String,
    /// The GPUs, which agree on whether files are merged and whether there is a scalar ALU.
    targets: Vec<Target>,
    fulls: Vec<Register>,
    /// Halves that can be written and read on their own.
    halves: Vec<Register>,
    /// For each half, the full register of the stage that it is part of, and whether it is the upper half of it.
    parts: Vec<Option<(usize, bool)>>,
}

fn full(number: u16) -> Register {
    (RegClass::FULL, PhysReg(number))
}

fn half(number: u16) -> Register {
    (RegClass::HALF, PhysReg(number))
}

fn shared(number: u16) -> Register {
    (RegClass::SHARED, PhysReg(PhysReg::SHARED_FIRST.0 + number))
}

/// The number of a register within its file.
fn number((class, reg): Register) -> u16 {
    if class.file == RegFile::Shared { reg.0 - PhysReg::SHARED_FIRST.0 } else { reg.0 }
}

impl Kind {
    /// Full registers, and their halves where those can be named.
    fn merged(name: &str, gpus: &[&str], fulls: &[Register]) -> Self {
        let mut kind = Self::fulls(name, gpus, fulls);
        for (i, &(class, reg)) in fulls.iter().enumerate() {
            let first = number((class, reg));
            let reach = if class.file == RegFile::Shared { 16 } else { 96 };
            if first < reach {
                let class = RegClass { half: true, ..class };
                let base = reg.0 - first;
                for upper in [false, true] {
                    kind.halves.push((class, PhysReg(base + 2 * first + u16::from(upper))));
                    kind.parts.push(Some((i, upper)));
                }
            }
        }
        kind
    }

    /// Full registers alone.
    fn fulls(name: &str, gpus: &[&str], fulls: &[Register]) -> Self {
        let targets = gpus.iter().map(|gpu| Target::by_name(gpu).unwrap()).collect();
        let name = format!("{}: {name}", gpus.join(" "));
        Self { name, targets, fulls: fulls.to_vec(), halves: Vec::new(), parts: Vec::new() }
    }

    /// Full registers, and halves that are a file of their own.
    fn separate(name: &str, gpus: &[&str], fulls: &[Register], halves: &[Register]) -> Self {
        let parts = vec![None; halves.len()];
        Self { halves: halves.to_vec(), parts, ..Self::fulls(name, gpus, fulls) }
    }

    fn has_shared(&self) -> bool {
        self.fulls.iter().any(|(class, _)| class.file == RegFile::Shared)
    }

    /// Everything that can be done to a full register of the stage: a list of entries for each.
    fn full_choices(&self, to: usize) -> Vec<Vec<Entry>> {
        let sources = (0..self.fulls.len()).map(From::Register).chain([From::Number]);
        let mut choices: Vec<Vec<Entry>> = sources.map(|from| vec![Entry { half: false, to, from }]).collect();
        let halves: Vec<usize> =
            (0..self.halves.len()).filter(|&half| self.parts[half].is_some_and(|(whole, _)| whole == to)).collect();
        // Nothing at all is both halves left alone.
        let mut parts = vec![Vec::new()];
        for half in halves {
            let options = self.half_choices(half);
            parts = parts.iter().flat_map(|done| options.iter().map(move |more| [&done[..], more].concat())).collect();
        }
        choices.append(&mut parts);
        choices
    }

    /// Everything that can be done to a half register of the stage.
    fn half_choices(&self, to: usize) -> Vec<Vec<Entry>> {
        let sources = (0..self.halves.len()).map(From::Register).chain([From::Number]);
        let mut choices: Vec<Vec<Entry>> = sources.map(|from| vec![Entry { half: true, to, from }]).collect();
        choices.push(Vec::new());
        choices
    }

    /// What can be done to each register of the stage, independently.
    fn choices(&self) -> Vec<Vec<Vec<Entry>>> {
        let fulls = (0..self.fulls.len()).map(|to| self.full_choices(to));
        let alone = (0..self.halves.len()).filter(|&half| self.parts[half].is_none());
        fulls.chain(alone.map(|half| self.half_choices(half))).collect()
    }

    /// All cases.
    fn cases(&self) -> impl Iterator<Item = Case> {
        let choices = self.choices();
        let total: usize = choices.iter().map(Vec::len).product();
        (0..total).map(move |index| {
            let mut rest = index;
            let mut entries = Vec::new();
            for options in &choices {
                entries.extend_from_slice(&options[rest % options.len()]);
                rest /= options.len();
            }
            Case { index, entries }
        })
    }
}

/// One parallel copy.
struct Case {
    index: usize,
    entries: Vec<Entry>,
}

/// The bits of each register of the stage: full ones, then halves of a file of their own (others are 0 here).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bits {
    fulls: Vec<u32>,
    halves: Vec<u32>,
}

impl Bits {
    fn read(&self, kind: &Kind, is_half: bool, which: usize) -> u32 {
        match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => self.fulls[which],
            (true, Some((whole, upper))) => self.fulls[whole] >> if upper { 16 } else { 0 } & 0xffff,
            (true, None) => self.halves[which],
        }
    }

    fn write(&mut self, kind: &Kind, is_half: bool, which: usize, bits: u32) {
        match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => self.fulls[which] = bits,
            (true, Some((whole, true))) => self.fulls[whole] = self.fulls[whole] & 0xffff | bits << 16,
            (true, Some((whole, false))) => self.fulls[whole] = self.fulls[whole] & !0xffff | bits & 0xffff,
            (true, None) => self.halves[which] = bits & 0xffff,
        }
    }
}

/// Distinct numbers, in all of their halves, for all cases of a program.
fn bits_of(case: usize, which: usize) -> u32 {
    let low = (1 + which as u32 + 32 * (case as u32 % 1024)) & 0x7fff;
    low | (low ^ 0xa5a5) << 16
}

impl Case {
    /// What the stage is filled with.
    fn before(&self, kind: &Kind) -> Bits {
        let n = kind.fulls.len();
        Bits {
            fulls: (0..n).map(|i| bits_of(self.index, i)).collect(),
            halves: (0..kind.halves.len()).map(|i| bits_of(self.index, n + i) & 0xffff).collect(),
        }
    }

    /// The operand of an entry that reads no register: an immediate or a constant, by turns.
    fn operand(&self, entry: &Entry) -> (SrcOperand, u32) {
        let mask = if entry.half { 0xffff } else { u32::MAX };
        let at = self.index / 7 + entry.to;
        if at.is_multiple_of(2) {
            let bits = bits_of(self.index, 20 + entry.to) & mask;
            (SrcOperand::Immediate(bits), bits)
        } else {
            let word = (at % 50) as u16;
            (SrcOperand::Const(word), constant(word, entry.half))
        }
    }

    /// What a parallel copy means: all is read, then all is written.
    fn result(&self, kind: &Kind) -> Bits {
        let before = self.before(kind);
        let mut after = before.clone();
        for entry in &self.entries {
            let bits = match entry.from {
                From::Register(which) => before.read(kind, entry.half, which),
                From::Number => self.operand(entry).1,
            };
            after.write(kind, entry.half, entry.to, bits);
        }
        after
    }

    /// The instruction.
    fn instruction(&self, kind: &Kind) -> InstrData {
        let mut data = InstrData::new(Opcode::ParallelCopy);
        for entry in &self.entries {
            let registers = if entry.half { &kind.halves } else { &kind.fulls };
            let to = registers[entry.to];
            data.dsts.push(dst(to));
            data.srcs.push(match entry.from {
                From::Register(which) => src(registers[which]),
                From::Number => Src::new(self.operand(entry).0, RegClass::general(entry.half), WriteMask::SCALAR),
            });
        }
        data
    }

    /// Moves that a case of full registers must take, and swaps.
    fn least(&self) -> (usize, usize) {
        let from: BTreeMap<usize, From> = self.entries.iter().map(|entry| (entry.to, entry.from)).collect();
        let (mut moves, mut swaps) = (0, 0);
        for (&to, &source) in &from {
            // Round until the way ends, or is back at its start.
            let (mut at, mut length) = (source, 1);
            while let From::Register(register) = at
                && register != to
                && length <= from.len()
            {
                let Some(&next) = from.get(&register) else { break };
                (at, length) = (next, length + 1);
            }
            match at {
                // Every member of the cycle comes here once; the smallest counts for all.
                From::Register(register) if register == to => {
                    let mut smallest = true;
                    let mut member = source;
                    while let From::Register(register) = member
                        && register != to
                    {
                        smallest &= register > to;
                        member = from[&register];
                    }
                    swaps += if smallest { length - 1 } else { 0 };
                }
                _ => moves += 1,
            }
        }
        (moves, swaps)
    }

    /// The units of the stage that form a cycle through this entry's register files.
    fn has_cycle(&self, kind: &Kind, across: bool) -> bool {
        // The unit that each unit is copied from.
        let unit = |is_half: bool, which: usize, k: usize| match (is_half, kind.parts.get(which).copied().flatten()) {
            (false, _) => 2 * which + k,
            (true, Some((whole, upper))) => 2 * whole + usize::from(upper),
            (true, None) => 2 * kind.fulls.len() + which,
        };
        let mut from = BTreeMap::new();
        for entry in &self.entries {
            if let From::Register(which) = entry.from {
                for k in 0..if entry.half { 1 } else { 2 } {
                    from.insert(unit(entry.half, entry.to, k), unit(entry.half, which, k));
                }
            }
        }
        let is_shared = |unit: usize| kind.fulls.get(unit / 2).is_some_and(|(class, _)| class.file == RegFile::Shared);
        from.keys().any(|&start| {
            let (mut at, mut steps, mut files) = (from[&start], 1, [is_shared(start); 2]);
            while at != start {
                files = [files[0] | is_shared(at), files[1] & is_shared(at)];
                match from.get(&at) {
                    Some(&next) if steps <= from.len() => (at, steps) = (next, steps + 1),
                    _ => return false,
                }
            }
            steps > 1 && if across { files[0] != files[1] } else { files[0] }
        })
    }
}

/// What a move takes out of the constant file.
fn constant(word: u16, half: bool) -> u32 {
    let bits = Env::from_seed(1).const_word(word.into());
    if half { bits & 0xffff } else { bits }
}

fn dst((class, reg): Register) -> Dst {
    Dst::new(Place::Reg(reg), class, WriteMask::SCALAR)
}

fn src((class, reg): Register) -> Src {
    Src::reg(Place::Reg(reg), class, WriteMask::SCALAR)
}

fn mov(to: Register, from: Src) -> InstrData {
    let ty = if to.0.half { Type::U16 } else { Type::U32 };
    let mut data = InstrData::new(Opcode::Mov);
    data.dsts.push(dst(to));
    data.srcs.push(from);
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data
}

/// All registers of all files, that no two of them overlap.
fn all_registers(target: &Target) -> Vec<Register> {
    let mut all: Vec<Register> = (0..192).map(full).collect();
    if !target.merged_regs {
        all.extend((0..192).map(half));
    }
    if target.has_shared_regfile {
        all.extend((0..32).map(shared));
    }
    all
}

/// Cases that become one program, and what each register must hold at its end.
struct Batch {
    program: Program,
    expected: Vec<(Register, u32)>,
}

/// What a plant does to a program that has been lowered.
type Plant<'a> = &'a dyn Fn(&mut Program);

/// Runs cases; counts them and what they cost.
struct Series<'a> {
    kind: &'a Kind,
    plant: Plant<'a>,
    /// Registers that the cases leave alone, with what they hold from the start of a program.
    bystanders: Vec<Register>,
    stash: Vec<Register>,
    half_stash: Vec<Register>,
    /// General registers for what shared ones hold at the end.
    shown: Vec<Register>,
    scratch: Scratch,
    batches: usize,
    run: usize,
    instructions: usize,
}

impl<'a> Series<'a> {
    fn new(kind: &'a Kind, plant: Plant<'a>) -> Self {
        // What the lowering may use for the time being stays out of the stash, so that it is looked at from the start.
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
        // Shared ones last: they are shown last.
        bystanders.sort_by_key(|register| register.0.file);
        let scratch = Scratch::new();
        Self { kind, plant, bystanders, stash, half_stash, shown, scratch, batches: 0, run: 0, instructions: 0 }
    }

    /// How many cases a program has room for.
    fn room(&self) -> usize {
        let halves = self.kind.parts.iter().filter(|part| part.is_none()).count();
        let rooms = [(self.stash.len(), self.kind.fulls.len()), (self.half_stash.len(), halves)];
        rooms.into_iter().filter_map(|(stash, each)| stash.checked_div(each)).min().unwrap_or(1)
    }

    fn batch(&self, cases: &[Case]) -> Batch {
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

    /// Runs some cases; says what is wrong with the first that goes wrong.
    fn check(&mut self, cases: &[Case], least: bool) -> Result<(), String> {
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
            // What the validator forbids does not depend on the case so much that every one must go there.
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

    fn execute(
        &mut self,
        program: &Program,
        target: &Target,
        cases: &[Case],
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

/// Whether it is a move of 16 bits, to or from the shared file, that the hardware gets wrong.
fn misreads(data: &InstrData, target: &Target) -> bool {
    let (Opcode::Mov, [dst], [src]) = (data.opcode, &data.dsts[..], &data.srcs[..]) else { return false };
    let is_register = matches!(src.operand, SrcOperand::Place(_));
    let into = target.merged_regs && dst.class == RegClass::SHARED_HALF && src.class == RegClass::HALF;
    let out = target.quirks.mov_half_shared && dst.class == RegClass::HALF && src.class == RegClass::SHARED_HALF;
    is_register && (into || out)
}

/// The moves and swaps between each two `nop`s that stand around a copy. Three `xor.b` are a swap.
fn counts(list: &[InstrData]) -> Vec<(usize, usize)> {
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

/// Runs all cases of a kind that can be lowered, and checks that the others are refused.
fn exhaust(kind: &Kind, least: bool) {
    let mut series = Series::new(kind, &|_| {});
    let mut refusals = Series::new(kind, &|_| {});
    let room = series.room();
    let mut refused = 0;
    let has_shared = kind.has_shared();
    let has_scalar_alu = kind.targets[0].has_scalar_alu;
    let mut cases = kind.cases().filter(|case| {
        if !has_shared || !case.has_cycle(kind, true) && (has_scalar_alu || !case.has_cycle(kind, false)) {
            return true;
        }
        refused += 1;
        let result = refusals.check(std::slice::from_ref(case), false);
        assert!(result.is_err_and(|error| error.contains("an exchange of")), "{}: {:?}", kind.name, case.entries);
        false
    });
    loop {
        let batch: Vec<Case> = cases.by_ref().take(room).collect();
        if batch.is_empty() {
            break;
        }
        if let Err(error) = series.check(&batch, least) {
            panic!("{}: {error}", kind.name);
        }
    }
    drop(cases);
    let Series { run, instructions, .. } = series;
    println!("{:66} {run:>8} cases, {instructions:>8} instructions run, {refused:>6} refused", kind.name);
}

const MERGED: [&str; 3] = ["a618", "a660", "a750"];

#[test]
fn halves_of_merged_registers() {
    exhaust(&Kind::merged("three full registers and their halves", &MERGED, &[full(0), full(4), full(9)]), false);
}

#[test]
fn merged_registers_on_both_sides_of_what_halves_reach() {
    for (a, b) in [(0, 4), (0, 5), (4, 5), (94, 95)] {
        for far in [96, 191] {
            let stage = [full(a), full(b), full(far)];
            exhaust(&Kind::merged(&format!("registers {a} and {b} in reach, {far} beyond"), &MERGED, &stage), false);
        }
    }
    for near in [0, 4, 95] {
        let stage = [full(near), full(96), full(150)];
        exhaust(&Kind::merged(&format!("register {near} in reach, 96 and 150 beyond"), &MERGED, &stage), false);
    }
    exhaust(&Kind::merged("all beyond", &MERGED, &[full(96), full(150), full(191)]), false);
}

#[test]
fn separate_files() {
    let halves = [0, 1, 8, 9, 100, 191].map(half);
    for gpus in [&["a320", "a420"][..], &["a540"]] {
        exhaust(&Kind::separate("two full and three half registers", gpus, &[full(0), full(4)], &halves[..3]), false);
        exhaust(&Kind::separate("six half registers", gpus, &[], &halves), false);
    }
}

#[test]
fn shared_registers() {
    let scalar = ["a660", "a750"];
    let stage = [shared(0), shared(4), shared(9)];
    exhaust(&Kind::merged("three shared registers and their halves", &scalar, &stage), false);
    for (a, b) in [(0, 4), (4, 5)] {
        let stage = [shared(a), shared(b), shared(16)];
        exhaust(&Kind::merged(&format!("shared {a} and {b} in reach, 16 beyond"), &scalar, &stage), false);
    }
    // Without a scalar ALU what is in no cycle can be done.
    for gpu in ["a540", "a618"] {
        exhaust(&Kind::merged("two shared registers and their halves", &[gpu], &[shared(0), shared(4)]), false);
        exhaust(&Kind::fulls("three shared registers", &[gpu], &stage), false);
    }
}

#[test]
fn from_file_to_file() {
    let scalar = ["a660", "a750"];
    exhaust(&Kind::merged("two general registers and a shared one", &["a660"], &[full(0), full(4), shared(4)]), false);
    for gpus in [&["a618"][..], &scalar] {
        exhaust(&Kind::merged("a general and a shared register", gpus, &[full(4), shared(4)]), false);
        exhaust(&Kind::merged("general beyond, and shared", gpus, &[full(0), full(100), shared(0)]), false);
    }
    exhaust(&Kind::merged("general, and shared beyond", &scalar, &[shared(0), shared(20), full(1)]), false);
}

/// As many moves as there are copies that are in no cycle, and a swap less than a cycle has registers.
#[test]
fn full_registers_take_no_instruction_too_many() {
    let stage = [0, 4, 5, 96, 191].map(full);
    for gpus in [&["a320", "a420"][..], &["a540"], &MERGED] {
        exhaust(&Kind::fulls("five full registers", gpus, &stage), true);
    }
    exhaust(&Kind::fulls("five shared registers", &["a660", "a750"], &[0, 1, 4, 16, 31].map(shared)), true);
}

/// Changes the instructions between each two `nop`s that stand around a copy.
fn between(program: &mut Program, change: &dyn Fn(&[InstrData]) -> Vec<InstrData>) {
    let block = program.layout[0];
    let list: Vec<InstrData> = program.iter_instrs().map(|(_, i)| program.instrs[i].clone()).collect();
    let mut new = Vec::new();
    for (i, part) in list.split(|data| data.opcode == Opcode::Nop).enumerate() {
        if i > 0 {
            new.push(InstrData::new(Opcode::Nop));
        }
        new.extend(if i % 2 == 1 { change(part) } else { part.to_vec() });
    }
    program.blocks[block].instrs = new.into_iter().map(|data| program.instrs.push(data)).collect();
}

#[test]
fn wrong_lowerings_are_seen() {
    /// A swap by two moves, which loses a value.
    fn two_moves(part: &[InstrData]) -> Vec<InstrData> {
        let moves = |data: &InstrData| {
            let pair = data.dsts.iter().zip(&data.srcs);
            pair.map(|(dst, &src)| mov((dst.class, dst.place.reg().unwrap()), src)).collect()
        };
        part.iter().flat_map(|data| if data.opcode == Opcode::Swz { moves(data) } else { vec![data.clone()] }).collect()
    }
    type Change<'a> = (&'a str, &'a dyn Fn(&[InstrData]) -> Vec<InstrData>);
    let changes: [Change<'_>; 4] = [
        ("two moves for a swap", &two_moves),
        ("the wrong order", &|part| part.iter().rev().cloned().collect()),
        ("the last one left out", &|part| part[..part.len().saturating_sub(1)].to_vec()),
        ("an exchange with a bystander", &|part| {
            let mut part = part.to_vec();
            if part.len() > 3 {
                part.push(mov(full(8), src(full(0))));
            }
            part
        }),
    ];
    let near = Kind::merged("near", &["a660"], &[full(0), full(4)]);
    let far = Kind::merged("far", &["a660"], &[full(0), full(4), full(100)]);
    for (name, change) in changes {
        for kind in [&near, &far] {
            let plant = |program: &mut Program| between(program, change);
            let mut series = Series::new(kind, &plant);
            let room = series.room();
            let mut cases = kind.cases();
            let found = std::iter::from_fn(|| Some(cases.by_ref().take(room).collect::<Vec<_>>()))
                .take_while(|batch| !batch.is_empty())
                .any(|batch| series.check(&batch, false).is_err());
            assert!(found, "{name} is not seen in {}", kind.name);
        }
    }
    // Right, but one more than it takes.
    let kind = Kind::fulls("fulls", &["a660"], &[0, 4, 5].map(full));
    let plant = |program: &mut Program| {
        between(program, &|part| {
            part.iter().flat_map(|data| vec![data.clone(); 1 + usize::from(data.opcode == Opcode::Mov)]).collect()
        })
    };
    let mut series = Series::new(&kind, &plant);
    let cases: Vec<Case> = kind.cases().take(series.room()).collect();
    assert_eq!(series.check(&cases, false), Ok(()));
    assert!(series.check(&cases, true).is_err_and(|error| error.contains("moves")));
}
