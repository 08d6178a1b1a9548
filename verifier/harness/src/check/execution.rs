//! Programs that are ready to run: nir, ir3 without time, or final programs on the machine.

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::memory::OrderedCode;
use ir3_semantics::interp::filling;
use ir3_semantics::interp::ir3::machine::{Completion, Machine};
use ir3_semantics::interp::{self, OperationSite, Outcome, Scratch, Unsupported};
use ir3_semantics::machine::steps::FinalCode;
use ir3_semantics::pair::PairFacts;
use ir3_semantics::vec4;

/// The model by which ir3 programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Results are available at once: any form of a program.
    Untimed,
    /// The timing model of the hardware, with an order in which results arrive; a hazard ends the run as undefined.
    /// Final programs only.
    Machine(Completion),
}

impl Execution {
    /// The model for the program after a stage: for a final one the machine, with results as late as possible.
    #[must_use]
    pub fn after(stage: Stage) -> Self {
        if stage.is_final() { Self::Machine(Completion::Latest) } else { Self::Untimed }
    }
}

/// A decoded program.
#[derive(Debug)]
pub enum Executable {
    /// A nir program.
    Nir(interp::nir::Decoded),
    /// An ir3 program, without time.
    Ir3(interp::ir3::Decoded),
    /// Final code.
    Machine(Box<Machine>, Completion),
}

impl Executable {
    /// Decodes a program.
    ///
    /// # Errors
    /// If an operation is not supported, or a program for the machine is not final.
    pub fn new(program: ProgramRef<'_>, target: &Target, execution: Execution) -> Result<Self, Unsupported> {
        Ok(match (program, execution) {
            (ProgramRef::Nir(shader), _) => Self::Nir(interp::nir::Decoded::of_target(shader, target)?),
            (ProgramRef::Vec4(program), _) => {
                Self::Nir(interp::nir::Decoded::of_target(&vec4::lift(program)?, target)?)
            }
            (ProgramRef::Ir3(program), Execution::Untimed) => Self::Ir3(interp::ir3::Decoded::new(program, target)?),
            (ProgramRef::Ir3(program), Execution::Machine(completion)) => {
                Self::Machine(Box::new(Machine::of_program(program, target)?), completion)
            }
        })
    }

    /// Decodes final code for the machine, with results as late as possible.
    ///
    /// # Errors
    /// If an operation is not supported.
    pub fn of_final(code: FinalCode, target: &Target) -> Result<Self, Unsupported> {
        Ok(Self::Machine(Box::new(Machine::of_final(code, target)?), Completion::Latest))
    }

    /// A promise of another program in nir about its accesses to resources that this one, in nir too, does not make.
    pub fn added_promise(&self, after: &Self) -> Option<String> {
        let (Self::Nir(before), Self::Nir(after)) = (self, after) else { return None };
        after.promises().iter().find(|promise| !before.promises().contains(promise)).cloned()
    }

    /// Returns the program as one of a pair.
    #[must_use]
    pub fn in_pair(self, facts: PairFacts) -> Self {
        match self {
            Self::Nir(decoded) => Self::Nir(decoded.in_pair(facts)),
            Self::Ir3(decoded) => Self::Ir3(decoded.in_pair(facts)),
            Self::Machine(machine, completion) => Self::Machine(Box::new(machine.in_pair(facts)), completion),
        }
    }

    /// Its accesses to memory that other waves see, barriers and fences, in the order of the code; none of final code.
    pub fn ordered_code(&self) -> Vec<OrderedCode> {
        match self {
            Self::Nir(decoded) => decoded.ordered_code(),
            Self::Ir3(decoded) => decoded.ordered_code(),
            Self::Machine(..) => Vec::new(),
        }
    }

    /// The position of an access, by the number that a trace has.
    pub fn site(&self, number: u32) -> Option<OperationSite> {
        match self {
            Self::Nir(decoded) => decoded.site(number),
            Self::Ir3(decoded) => decoded.site(number),
            Self::Machine(..) => None,
        }
    }

    /// Runs it in an environment, for at most `fuel` instructions.
    pub fn run(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> Outcome {
        match self {
            Self::Nir(decoded) if decoded.has_preamble() => {
                filling::run_with_preamble(scratch, |scratch| decoded.run(env, fuel, scratch))
            }
            Self::Ir3(decoded) if decoded.has_preamble() => {
                filling::run_with_preamble(scratch, |scratch| decoded.run(env, fuel, scratch))
            }
            Self::Nir(decoded) => decoded.run(env, fuel, scratch),
            Self::Ir3(decoded) => decoded.run(env, fuel, scratch),
            Self::Machine(machine, completion) => machine.run(env, *completion, fuel, scratch),
        }
    }
}
