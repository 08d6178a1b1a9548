//! Runs whose branches are chosen by a seed, to reach paths that no input takes.
//!
//! The choices are the same in code with other waits: they depend on the number of the branch in the code, and on the
//! number of its executions. Predicates are read as always, so a predicate that comes too late is still found.

use crate::support::random::hash;
use cranelift_entity::EntityRef;
use ir3_compiler::ir3::{Mods, Opcode};
use ir3_compiler::machine::{Code, Ip};

/// The choices of a seed. Seeds that are odd also have lanes diverge. With every other pair of seeds some branches go
/// as their predicates say: a loop that is only entered by choice ends as it does.
#[derive(Clone, Debug)]
pub struct Choices {
    seed: u64,
    branches: Vec<Choice>,
}

/// The choice at a position.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Its predicate decides: it is no branch, or elects a lane.
    Predicate,
    /// All active lanes take it: they arrive there since they did not take the branch before it.
    Always,
    /// All lanes or none: it is a vote. The number of the branch.
    Together(usize),
    /// The number of the branch.
    Any(usize),
}

impl Choices {
    /// The choices of a seed for some code.
    pub fn new(code: &Code, seed: u64) -> Self {
        let mut number = 0;
        let mut choice = |ip: Ip| {
            let opcode = code.instrs[ip].data.opcode;
            let own = number;
            let is_branch = matches!(
                opcode,
                Opcode::Br | Opcode::Braa | Opcode::Brao | Opcode::Brac | Opcode::Brax | Opcode::Bany | Opcode::Ball
            );
            number += usize::from(is_branch);
            match opcode {
                _ if !is_branch => Choice::Predicate,
                _ if seed & 2 != 0 && hash(&[seed, own as u64]) & 1 != 0 => Choice::Predicate,
                _ if is_second(code, ip) => Choice::Always,
                Opcode::Bany | Opcode::Ball => Choice::Together(own),
                _ => Choice::Any(own),
            }
        };
        Self { seed, branches: code.instrs.keys().map(&mut choice).collect() }
    }

    /// The executions of branches at the start.
    pub fn executions(&self) -> Vec<u64> {
        vec![0; self.branches.len()]
    }

    /// The mask of lanes that take the branch at instruction `at`. `taken` is the mask of lanes whose predicate holds,
    /// `active` that of the active lanes.
    pub fn choose(&self, at: usize, taken: u64, active: u64, executions: &mut [u64]) -> u64 {
        let (number, together) = match self.branches[at] {
            Choice::Predicate => return taken,
            Choice::Always => return active,
            Choice::Together(number) => (number, true),
            Choice::Any(number) => (number, self.seed & 1 == 0),
        };
        executions[number] += 1;
        let drawn = hash(&[self.seed, number as u64, executions[number]]);
        match drawn % 5 {
            0 if !together => active & hash(&[drawn]),
            1 | 2 => active,
            _ => 0,
        }
    }
}

/// Returns true for a branch that is taken exactly when the one before it is not.
fn is_second(code: &Code, ip: Ip) -> bool {
    let Some(before) = ip.index().checked_sub(1).map(Ip::new) else { return false };
    let (first, second) = (&code.instrs[before].data, &code.instrs[ip].data);
    let targeted = code.instrs.values().any(|instr| instr.target == Some(ip));
    first.opcode.inverse_branch() == Some(second.opcode)
        && first.srcs.len() == second.srcs.len()
        && first.srcs.iter().zip(&second.srcs).all(|(a, b)| a.operand == b.operand && a.mods ^ b.mods == Mods::NOT)
        && !targeted
}
