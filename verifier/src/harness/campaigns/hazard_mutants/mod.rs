//! Sharpness of the hazard checker and of the machine: in final programs one nop is removed, one wait shortened or
//! dropped, one `(jp)` dropped, or one branch target shifted, and each change that matters has to be refuted.
//!
//! Whether it matters is decided apart from both engines ([`needed`]): along the paths of the program for slots and
//! flags, by the compiler's reconvergence points for `(jp)`. A shifted branch matters unless it only skips, or only
//! adds, a nop.

pub mod needed;
#[cfg(test)]
mod tests;

use crate::harness::report::FinalProgram;
use crate::prove::hazards::{self, Divergence};
use crate::semantics::environment::env::Env;
use crate::semantics::interp::Scratch;
use crate::semantics::interp::ir3::machine::{Completion, Machine, Start};
use crate::support::random::hash;
use cranelift_entity::{EntityRef, PrimaryMap};
use ir3_compiler::ir3::{InstrData, InstrFlags, Opcode, reconvergence};
use ir3_compiler::machine::{Code, Ip};
use ir3_compiler::target::Target;

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MutantClass {
    /// A nop is removed.
    Nop,
    /// A nop has one repetition less.
    Repeat,
    /// `(nopN)` is one less.
    NopN,
    /// `(ss)` is dropped.
    Ss,
    /// `(sy)` is dropped.
    Sy,
    /// `(jp)` is dropped.
    Jp,
    /// A branch leads one instruction further, or one less far.
    Target,
}

impl MutantClass {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Nop, Self::Repeat, Self::NopN, Self::Ss, Self::Sy, Self::Jp, Self::Target];

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Repeat => "rpt",
            Self::NopN => "nopN",
            Self::Ss => "ss",
            Self::Sy => "sy",
            Self::Jp => "jp",
            Self::Target => "target",
        }
    }

    /// Returns true if an instruction can be changed so.
    fn applies(self, data: &InstrData, has_target: bool) -> bool {
        let ss = InstrFlags::SS;
        match self {
            Self::Nop => data.opcode == Opcode::Nop && !data.flags.intersects(ss | InstrFlags::SY | InstrFlags::JP),
            Self::Repeat => data.opcode == Opcode::Nop && data.repeat > 0,
            Self::NopN => data.nop > 0,
            Self::Ss => data.flags.contains(ss),
            Self::Sy => data.flags.contains(InstrFlags::SY),
            Self::Jp => data.flags.contains(InstrFlags::JP),
            Self::Target => has_target,
        }
    }
}

/// A change of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Its kind.
    pub class: MutantClass,
    /// The instruction.
    pub at: Ip,
    /// A branch leads further, not less far.
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
            MutantClass::NopN => data.nop -= 1,
            MutantClass::Ss => data.flags -= InstrFlags::SS,
            MutantClass::Sy => data.flags -= InstrFlags::SY,
            MutantClass::Jp => data.flags -= InstrFlags::JP,
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

/// The code without one instruction; what led to it leads to the next.
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

/// Which branches are uniform in the changed code.
fn divergence_of(divergence: &Divergence, mutation: &Mutation) -> Divergence {
    match divergence {
        Divergence::Uniform(uniform) if mutation.class == MutantClass::Nop => {
            let mut uniform = uniform.clone();
            if mutation.at.index() < uniform.len() {
                uniform.remove(mutation.at.index());
            }
            Divergence::Uniform(uniform)
        }
        other => other.clone(),
    }
}

/// What became of one change.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The change.
    pub mutation: Mutation,
    /// It matters.
    pub needed: bool,
    /// The hazard checker refutes it.
    pub checker: bool,
    /// A run of the machine refutes it; `None` if the machine does not run the program.
    pub machine: Option<bool>,
}

impl Trial {
    /// Returns true if one engine refutes the change.
    #[must_use]
    pub fn is_refuted(&self) -> bool {
        self.checker || self.machine == Some(true)
    }
}

/// Environments that the machine tries.
const RUNS: u64 = 3;
const FUEL: u64 = 20_000;

/// Applies a random change to a program and asks both engines; `None` if the program has no place for the class that
/// the seed chooses, or is refuted without a change.
#[must_use]
pub fn trial(program: &FinalProgram, seed: u64) -> Option<Trial> {
    let FinalProgram { code, divergence, branch_stack, target, .. } = program;
    let class = MutantClass::ALL[hash(&[seed, 1]) as usize % MutantClass::ALL.len()];
    let places = Mutation::all(code, class);
    let mutation = *places.get(hash(&[seed, 2]) as usize % places.len().max(1))?;
    let mutant = mutation.apply(code)?;
    let clean = |code: &Code, divergence: &Divergence| {
        hazards::check(code, divergence, *branch_stack, target).is_ok_and(|report| report.hazards.is_empty())
    };
    if needed::broken(code, target).is_some() || !clean(code, divergence) {
        return None;
    }
    let changed = divergence_of(divergence, &mutation);
    Some(Trial {
        mutation,
        needed: is_needed(code, &mutant, &mutation, &changed, target),
        checker: !clean(&mutant, &changed),
        machine: differs(code, &mutant, target),
    })
}

fn is_needed(code: &Code, mutant: &Code, mutation: &Mutation, divergence: &Divergence, target: &Target) -> bool {
    match mutation.class {
        MutantClass::Jp => lanes_wait_at(mutant, mutation.at, divergence),
        MutantClass::Target => {
            let old = code.instrs[mutation.at].target.map_or(0, |to| to.index());
            let between = Ip::new(if mutation.further { old } else { old - 1 });
            let passed = &code.instrs[between].data;
            let idle = passed.opcode == Opcode::Nop && !passed.flags.contains(InstrFlags::JP);
            !idle || needed::broken(mutant, target).is_some()
        }
        _ => needed::broken(mutant, target).is_some(),
    }
}

/// Returns true if lanes may wait at this position, as the compiler computes it.
fn lanes_wait_at(code: &Code, at: Ip, divergence: &Divergence) -> bool {
    // Marked again, so that the position begins a block.
    let mut marked = code.clone();
    marked.instrs[at].data.flags |= InstrFlags::JP;
    let Ok(mut program) = marked.to_program() else { return false };
    let Divergence::Uniform(uniform) = divergence else { return false };
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

/// Runs both on the machine: true if an environment tells them apart.
fn differs(code: &Code, mutant: &Code, target: &Target) -> Option<bool> {
    let start = Start::Arbitrary(7);
    let before = Machine::new(code, target, start).ok()?;
    let after = Machine::new(mutant, target, start).ok()?;
    let mut scratch = Scratch::new();
    let mut any = false;
    for seed in 0..RUNS {
        let env = Env::from_seed(hash(&[seed, 11]));
        let expected = before.run(&env, Completion::Latest, FUEL, &mut scratch);
        let found = after.run(&env, Completion::Latest, 4 * FUEL, &mut scratch);
        any |= expected.compare(&found).is_err();
    }
    Some(any)
}
