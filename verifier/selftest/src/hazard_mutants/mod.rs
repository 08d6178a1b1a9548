//! Mutation tests of the hazard checker and of the machine model: in final programs one nop is removed, one wait
//! shortened or dropped, one `(jp)` dropped, or one branch target shifted. Each change that matters must be refuted.
//! An independent oracle decides if a change matters: along the paths of the program for slots and flags ([`needed`]),
//! by the compiler's reconvergence points for `(jp)`, and by the dependences of later instructions for a shifted branch
//! and a dropped repetition (`meaning`).
//!
//! Changes of `(ei)`, `(eq)` and `(ul)`, which release resources, are decided along the paths as well (`releases`).

mod meaning;
pub mod needed;
mod releases;
#[cfg(test)]
mod tests;

use cranelift_entity::{EntityRef, PrimaryMap};
use ir3_compiler::ir3::{
    AddressSpace, Attrs, Category, Condition, Dst, InstrData, InstrFlags, Opcode, RegFile, SrcOperand, WriteMask,
    reconvergence,
};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;
use ir3_harness::finals::FinalProgram;
use ir3_prove::hazards::{self, Facts};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::ir3::machine::{Completion, Machine, Start};
use ir3_semantics::interp::{End, Scratch, Unsupported};
use ir3_semantics::support::random::hash;
use meaning::Meaning;
use needed::Paths;
use std::ops::Range;

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MutantClass {
    /// A nop is removed.
    Nop,
    /// A nop has one repetition less.
    Repeat,
    /// An instruction of the ALU has one repetition less.
    RepeatAlu,
    /// `(nopN)` is one less.
    NopN,
    /// `(ss)` is dropped.
    Ss,
    /// `(sy)` is dropped.
    Sy,
    /// `(jp)` is dropped.
    Jp,
    /// A branch target is moved by one instruction, in either direction.
    Target,
    /// `(ei)`, `(eq)` or `(ul)` is dropped.
    Release,
    /// `(ei)`, `(eq)` or `(ul)` is moved to an earlier instruction.
    EarlyRelease,
    /// `(ei)` is moved to a nop after a `kill`.
    LateRelease,
}

impl MutantClass {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Nop,
        Self::Repeat,
        Self::RepeatAlu,
        Self::NopN,
        Self::Ss,
        Self::Sy,
        Self::Jp,
        Self::Target,
        Self::Release,
        Self::EarlyRelease,
        Self::LateRelease,
    ];

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Repeat => "rpt",
            Self::RepeatAlu => "alu-rpt",
            Self::NopN => "nopN",
            Self::Ss => "ss",
            Self::Sy => "sy",
            Self::Jp => "jp",
            Self::Target => "target",
            Self::Release => "release",
            Self::EarlyRelease => "early",
            Self::LateRelease => "late",
        }
    }

    /// Returns true if the change applies to an instruction.
    fn applies(self, data: &InstrData, has_target: bool) -> bool {
        let ss = InstrFlags::SS;
        match self {
            Self::Nop => data.opcode == Opcode::Nop && !data.flags.intersects(ss | InstrFlags::SY | InstrFlags::JP),
            Self::Repeat => data.opcode == Opcode::Nop && data.repeat > 0,
            Self::RepeatAlu => {
                // One word gathers or scatters: its repetitions are not the same instruction once more.
                let moves = matches!(data.opcode, Opcode::Gat | Opcode::Sct);
                let computes = matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3);
                data.repeat > 0 && computes && !moves
            }
            Self::NopN => data.nop > 0,
            Self::Ss => data.flags.contains(ss),
            Self::Sy => data.flags.contains(InstrFlags::SY),
            Self::Jp => data.flags.contains(InstrFlags::JP),
            Self::Target => has_target,
            Self::Release | Self::EarlyRelease => data.flags.intersects(RELEASES),
            Self::LateRelease => data.flags.contains(InstrFlags::EI),
        }
    }
}

/// The flags that release resources.
const RELEASES: InstrFlags = InstrFlags::EI.union(InstrFlags::EQ).union(InstrFlags::UL);

/// A change at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The kind of the change.
    pub class: MutantClass,
    /// The instruction.
    pub at: Ip,
    /// For a branch: true if its target is moved forwards.
    pub further: bool,
}

impl Mutation {
    /// All changes of a class; those of branches in both directions.
    fn all(code: &Code, class: MutantClass) -> Vec<Self> {
        let ends = code.instrs.values().position(|instr| instr.data.opcode == Opcode::End).unwrap_or(0);
        let mut all = Vec::new();
        for (at, instr) in &code.instrs {
            // Nops after the last `end` are never executed.
            if !class.applies(&instr.data, instr.target.is_some())
                || at.index() > ends && instr.data.opcode == Opcode::Nop
            {
                continue;
            }
            all.push(Self { class, at, further: true });
            if class == MutantClass::Target {
                all.push(Self { class, at, further: false });
            }
        }
        all
    }

    /// The changed code; `None` if a target would leave it.
    #[must_use]
    pub fn apply(&self, code: &Code) -> Option<Code> {
        let mut code = code.clone();
        let data = &mut code.instrs[self.at].data;
        match self.class {
            MutantClass::Nop => return Some(removed(&code, self.at)),
            MutantClass::Repeat => data.repeat -= 1,
            MutantClass::RepeatAlu => shorten(data),
            MutantClass::NopN => data.nop -= 1,
            MutantClass::Ss => data.flags -= InstrFlags::SS,
            MutantClass::Sy => data.flags -= InstrFlags::SY,
            MutantClass::Jp => data.flags -= InstrFlags::JP,
            MutantClass::Release => data.flags -= RELEASES,
            MutantClass::EarlyRelease => {
                let flags = data.flags & RELEASES;
                data.flags -= RELEASES;
                let to = releases::earlier(&code, self.at, flags)?;
                code.instrs[to].data.flags |= flags;
            }
            MutantClass::LateRelease => {
                data.flags -= InstrFlags::EI;
                let to = releases::after_kill(&code, self.at)?;
                releases::release_at(&mut code.instrs[to].data);
            }
            MutantClass::Target => {
                let target = code.instrs[self.at].target?.index();
                let to = if self.further { target + 1 } else { target.checked_sub(1)? };
                if to >= code.instrs.len() || to == self.at.index() {
                    return None;
                }
                code.instrs[self.at].target = Some(Ip::new(to));
            }
        }
        Some(code)
    }
}

/// Removes the last repetition of an instruction of the ALU.
fn shorten(data: &mut InstrData) {
    if data.opcode == Opcode::Swz {
        // The first of its two moves is left.
        data.opcode = Opcode::Mov;
        data.repeat = 0;
        data.dsts.truncate(1);
        data.srcs.truncate(1);
        return;
    }
    let (before, after) = (WriteMask::first(1 + u32::from(data.repeat)), WriteMask::first(u32::from(data.repeat)));
    data.repeat -= 1;
    let masks = data.dsts.iter_mut().map(|dst| &mut dst.mask).chain(data.srcs.iter_mut().map(|src| &mut src.mask));
    masks.filter(|mask| **mask == before).for_each(|mask| *mask = after);
}

/// Returns the code without one instruction; branches to it target the next one.
fn removed(code: &Code, at: Ip) -> Code {
    let mut instrs = PrimaryMap::with_capacity(code.instrs.len());
    for (ip, instr) in &code.instrs {
        if ip != at {
            let mut instr = instr.clone();
            instr.target = instr.target.map(|to| if to > at { Ip::new(to.index() - 1) } else { to });
            instrs.push(instr);
        }
    }
    Code { instrs, interface: code.interface.clone() }
}

/// The facts about the changed code.
fn facts_of(facts: &Facts, mutation: &Mutation) -> Facts {
    let mut facts = facts.clone();
    if mutation.class == MutantClass::Nop {
        facts.arrays = facts.arrays.without(mutation.at);
        facts.scratch = facts.scratch.without(mutation.at);
        if mutation.at.index() < facts.marked_uniform.len() {
            facts.marked_uniform.remove(mutation.at.index());
        }
    }
    facts
}

/// The outcome of running a program with and without a change on the same inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The runs have the same results.
    Same,
    /// The runs differ.
    Differ,
    /// The runs differ only after some comparisons of both programs are inverted, or immediates and operations
    /// replaced: otherwise no input reaches the changed path, or the program masks the difference.
    DifferInverted,
    /// The runs differ only if a seed chooses the branches of both programs, for the same reasons.
    DifferChosen,
}

/// The outcomes of one mutant: by the oracle, the hazard checker and the machine.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The change.
    pub mutation: Mutation,
    /// True if the oracle decides that the change matters.
    pub needed: bool,
    /// True if the hazard checker refutes the mutant.
    pub checker: bool,
    /// The outcome of runs on the machine, or the reason why the machine does not run the program.
    pub machine: Result<Runs, String>,
}

impl Trial {
    /// Returns true if one engine refutes the change.
    #[must_use]
    pub fn is_refuted(&self) -> bool {
        self.checker || matches!(self.machine, Ok(Runs::Differ | Runs::DifferInverted | Runs::DifferChosen))
    }
}

/// The number of environments in which the machine runs a mutant.
const RUNS: u64 = 12;
/// The number of variants with inverted comparisons, tried if the plain runs agree.
const VARIANTS: u64 = 16;
/// The number of branch choices tried after these, and then again with other comparisons, immediates and operations.
const CHOICES: u64 = 96;
/// The limit on the instructions of a run of the unchanged program.
const FUEL: u64 = 60_000;
/// The limit on the instructions of all runs of the unchanged program.
const ALL_FUEL: u64 = 200_000;
/// A changed program counts as endless if it executes this many times the instructions, and [`MORE_INSTRUCTIONS`].
const MORE_TIMES: u64 = 16;
const MORE_INSTRUCTIONS: u64 = 2_000;

/// Applies a random change to a program and checks it with both engines; `None` if the program has no place for the
/// class that the seed chooses, or is refuted without a change.
#[must_use]
pub fn trial(program: &FinalProgram, seed: u64) -> Option<Trial> {
    let FinalProgram { code, facts, target, .. } = program;
    let class = MutantClass::ALL[hash(&[seed, 1]) as usize % MutantClass::ALL.len()];
    let places = Mutation::all(code, class);
    let mutation = *places.get(hash(&[seed, 2]) as usize % places.len().max(1))?;
    let mutant = mutation.apply(code)?;
    let clean =
        |code: &Code, facts: &Facts| hazards::check(code, facts, target).is_ok_and(|report| report.hazards.is_empty());
    if needed::broken(code, target).is_some() || !clean(code, facts) {
        return None;
    }
    let changed = facts_of(facts, &mutation);
    Some(Trial {
        mutation,
        needed: is_needed(code, &mutant, &mutation, &changed, target),
        checker: !clean(&mutant, &changed),
        machine: differs(&with_known_memory(program.runnable().clone()), &mutation, target),
    })
}

fn is_needed(code: &Code, mutant: &Code, mutation: &Mutation, facts: &Facts, target: &Target) -> bool {
    let at = mutation.at;
    let paths = Paths::new(code, target);
    let changes = match mutation.class {
        MutantClass::Jp => return lanes_wait_at(mutant, at, facts),
        MutantClass::Target => {
            let [Some(old), Some(new)] = [code, mutant].map(|code| code.instrs[at].target) else { return false };
            let joins = mutant.instrs[new].data.flags.contains(InstrFlags::JP);
            let meaning = Meaning::new(&paths);
            let computes = if mutation.further {
                meaning.skip_matters(at.index(), old.index())
            } else {
                meaning.extra_matters(at.index(), new.index())
            };
            computes || !joins && lanes_wait_at(mutant, new, facts)
        }
        MutantClass::RepeatAlu => Meaning::new(&paths).last_matters(at.index()),
        _ => false,
    };
    changes || needed::broken(mutant, target).is_some()
}

/// Returns true if lanes may wait at this position, as the compiler computes it.
fn lanes_wait_at(code: &Code, at: Ip, facts: &Facts) -> bool {
    // Marked again, so that the position begins a block.
    let mut marked = code.clone();
    marked.instrs[at].data.flags |= InstrFlags::JP;
    let Ok(mut program) = marked.to_program() else { return false };
    let uniform = &facts.marked_uniform;
    // The instructions of a block are in the order of the code.
    let mut ip = 0;
    let mut of_block = None;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        for i in 0..program.blocks[block].instrs.len() {
            let data = &program.instrs[program.blocks[block].instrs[i]];
            if data.opcode.is_meta() {
                continue;
            }
            if ip == at.index() {
                of_block = Some(block);
            }
            let ends = data.opcode.is_terminator() && program.blocks[block].successors().count() > 1;
            let same = uniform.get(ip).copied().unwrap_or(false);
            ip += 1;
            if ends {
                program.blocks[block].divergent = Some(!same);
            }
        }
    }
    reconvergence::run(&mut program);
    of_block.is_some_and(|block| program.blocks[block].reconvergence_point)
}

/// Runs the program with and without the change, and both with some comparisons inverted.
fn differs(code: &Code, mutation: &Mutation, target: &Target) -> Result<Runs, String> {
    let compare_with = |code: &Code, seeds, choices| match mutation.apply(code) {
        Some(mutant) => compare_runs(code, &mutant, target, seeds, choices),
        None => Ok(false),
    };
    let compare = |code: &Code, seeds| compare_with(code, seeds, None);
    let mut result = compare(code, 0..RUNS);
    if result == Ok(true) {
        return Ok(Runs::Differ);
    }
    for variant in 0..VARIANTS {
        match compare(&with_inverted(code, variant), variant..variant + 2) {
            Ok(true) => return Ok(Runs::DifferInverted),
            Ok(false) => result = Ok(false),
            Err(_) => {}
        }
    }
    for variant in 0..VARIANTS {
        match compare(&with_other_numbers(with_inverted(code, variant + 1), variant), variant..variant + 2) {
            Ok(true) => return Ok(Runs::DifferInverted),
            Ok(false) => result = Ok(false),
            Err(_) => {}
        }
    }
    for variant in 0..VARIANTS {
        match compare(&transparent(code, variant), variant..variant + 2) {
            Ok(true) => return Ok(Runs::DifferInverted),
            Ok(false) => result = Ok(false),
            Err(_) => {}
        }
    }
    // Without branches there is nothing to choose.
    if code.instrs.values().any(|instr| instr.target.is_some()) {
        for seed in 0..2 * CHOICES {
            let choose = |code: &Code| compare_with(code, seed..seed + 1, Some(seed));
            let found = if seed < CHOICES { choose(code) } else { choose(&transparent(code, seed)) };
            match found {
                Ok(true) => return Ok(Runs::DifferChosen),
                Ok(false) => result = Ok(false),
                Err(_) => {}
            }
        }
    }
    result.map(|_| Runs::Same)
}

/// The code with other comparisons, other immediates and [other operations](with_other_operations).
fn transparent(code: &Code, variant: u64) -> Code {
    with_other_operations(with_other_numbers(with_inverted(code, variant + 1), variant), variant)
}

/// Sets the address space of texture reads of memory to images, where the encoding does not determine it. Both programs
/// get the same one.
fn with_known_memory(mut code: Code) -> Code {
    for instr in code.instrs.values_mut().filter(|instr| instr.data.opcode == Opcode::Isam) {
        if let Attrs::Texture(attrs) = &mut instr.data.attrs
            && !instr.data.flags.contains(InstrFlags::VECTOR)
        {
            attrs.space.get_or_insert(AddressSpace::Image);
        }
    }
    code
}

/// The code with some of its comparisons inverted; all of them in the first variant.
fn with_inverted(code: &Code, variant: u64) -> Code {
    let mut code = code.clone();
    for (ip, instr) in &mut code.instrs {
        if let Attrs::Compare(condition) = &mut instr.data.attrs
            && (variant == 0 || hash(&[variant, u64::from(ip.as_u32())]) & 1 != 0)
        {
            *condition = match *condition {
                Condition::Lt => Condition::Ge,
                Condition::Ge => Condition::Lt,
                Condition::Le => Condition::Gt,
                Condition::Gt => Condition::Le,
                Condition::Eq => Condition::Ne,
                Condition::Ne => Condition::Eq,
            };
        }
    }
    code
}

/// The code with other immediates in half of the operations that compute: a 0 or the greatest number absorbs the effect
/// of a change on another operand. Addresses, numbers of varyings and operands of other units stay.
fn with_other_numbers(mut code: Code, variant: u64) -> Code {
    for (ip, instr) in &mut code.instrs {
        let data = &mut instr.data;
        let computes = matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3);
        let is_value = |dst: &Dst| matches!(dst.class.file, RegFile::General | RegFile::Shared);
        if !computes || data.opcode.reads_varying() || !data.dsts.iter().all(is_value) {
            continue;
        }
        for (number, src) in (0..).zip(&mut data.srcs) {
            let random = hash(&[variant, u64::from(ip.as_u32()), number]);
            if let SrcOperand::Immediate(value) = &mut src.operand
                && random & 1 != 0
            {
                // Small immediates let loops end after a few iterations.
                *value = match random & 2 {
                    0 => (random >> 8) as u32 & 7,
                    _ if src.class.half => random as u32 >> 16,
                    _ => (random >> 8) as u32,
                };
            }
        }
    }
    code
}

/// Replaces half of the operations that absorb an operand by sums and exclusive ors: an operand that is above a
/// minimum, shifted out, masked or multiplied by 0 does not affect the result. The new operations are of the same unit
/// and take the same time.
fn with_other_operations(mut code: Code, variant: u64) -> Code {
    use Opcode::{
        AddF, AddS, AddU, AndB, AshrB, MaxF, MaxS, MaxU, MinF, MinS, MinU, MulF, MulS24, MulU24, MullU, OrB, ShlB,
        ShrB, XorB,
    };
    for (ip, instr) in &mut code.instrs {
        let opcode = &mut instr.data.opcode;
        if hash(&[variant, u64::from(ip.as_u32()), 3]) & 1 == 0 {
            continue;
        }
        *opcode = match *opcode {
            AndB | OrB | ShlB | ShrB | AshrB => XorB,
            MaxU | MinU | MulU24 | MullU => AddU,
            MaxS | MinS | MulS24 => AddS,
            MaxF | MinF | MulF => AddF,
            other => other,
        };
    }
    code
}

/// Runs two programs on the machine, from the starts of some seeds: returns true if a run distinguishes them. A seed of
/// choices, if given, decides their branches.
///
/// # Errors
/// If no run of the first program ends with a result: the reason.
fn compare_runs(
    code: &Code,
    mutant: &Code,
    target: &Target,
    seeds: Range<u64>,
    choices: Option<u64>,
) -> Result<bool, String> {
    let mut scratch = Scratch::new();
    let mut reason = None;
    let (mut ended, mut executed) = (false, 0);
    for seed in seeds {
        if executed > ALL_FUEL {
            break;
        }
        let start = Start::Arbitrary(hash(&[seed, 7]) & !3 | seed & 3);
        let [before, after] = [code, mutant].map(|code| {
            let machine = Machine::new(code, target, start)?;
            Ok::<_, Unsupported>(match choices {
                Some(seed) => machine.with_choices(code, seed),
                None => machine,
            })
        });
        let before = before.map_err(|error| error.to_string())?;
        let after = after.map_err(|error| error.to_string())?;
        let env = Env::from_seed(hash(&[seed, 11]));
        let expected = before.run(&env, Completion::Latest, FUEL, &mut scratch);
        executed += expected.executed;
        if expected.end != End::Finished {
            reason.get_or_insert_with(|| format!("{:?}", expected.end));
            continue;
        }
        ended = true;
        let fuel = MORE_TIMES * expected.executed + MORE_INSTRUCTIONS;
        let found = after.run(&env, Completion::Latest, fuel, &mut scratch);
        if found.end == End::OutOfFuel || expected.compare(&found).is_err() {
            return Ok(true);
        }
    }
    if ended { Ok(false) } else { Err(reason.unwrap_or_default()) }
}
