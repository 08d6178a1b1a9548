//! Options that many subcommands have.

use crate::values;
use clap::{Args, ValueEnum};
use ir3_compiler::arms::Skip;
use ir3_compiler::pipeline::{Allocator, Feature, Options, RegisterLimit, Rotation};
use ir3_compiler::target::Target;
use ir3_harness::guard::Limits;
use ir3_programs::planted_bugs::PlantedBug;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use std::time::Duration;

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people.
    Human,
    /// One JSON object a line.
    Json,
    /// The XML of JUnit.
    Junit,
}

/// The GPU, for every subcommand that compiles.
#[derive(Args, Clone)]
pub struct Gpu {
    /// The GPU; `--gpu list` lists them. Default: one of a log's generation (a320, a420, a540, a660, a750 or a830),
    /// else a660.
    #[arg(long = "gpu", value_name = "GPU", value_parser = values::gpu())]
    target: Option<Target>,
}

impl Gpu {
    /// The GPU of the command line.
    pub fn given(&self) -> Option<Target> {
        self.target
    }

    /// The GPU where no log names a generation.
    pub fn target(&self) -> Target {
        self.target.unwrap_or_default()
    }
}

/// The fuel of runs, for every subcommand that runs programs.
#[derive(Args, Clone)]
pub struct Fuel {
    /// Limit on the instructions of the wave in a run of the program before. Default: 200000, or that of the
    /// environment. The program after may execute a multiple of what the program before has executed.
    #[arg(long, value_name = "N", value_parser = values::count::<u64>())]
    fuel: Option<u64>,
}

impl Fuel {
    /// The fuel of the command line.
    pub fn given(&self) -> Option<u64> {
        self.fuel
    }

    /// Returns the environment with this fuel, if it is given.
    pub fn of_one(&self, env: Env) -> Env {
        Env { fuel: self.fuel.or(env.fuel), ..env }
    }

    /// Returns the environments with this fuel, if it is given.
    pub fn of(&self, envs: Vec<Env>) -> Vec<Env> {
        Env::with_fuel(envs, self.fuel)
    }
}

/// The limits of the compiler, for subcommands that guard it.
#[derive(Args, Clone)]
pub struct Guarding {
    /// Limit on the CPU time of a stage of the compiler; exceeding it is a failure.
    #[arg(long, value_name = "T", value_parser = values::time, default_value = "5s")]
    stage_time: Duration,
    /// Memory limit of the process in which the compiler runs (`512M`, `2G`); exceeding it is a failure.
    #[arg(long, value_name = "SIZE", value_parser = values::memory, default_value = "2G")]
    memory: u64,
}

impl Guarding {
    /// The limits.
    pub fn limits(&self) -> Limits {
        Limits { time: self.stage_time, memory: self.memory }
    }
}

/// Compiler options, for every subcommand that compiles.
#[derive(Args, Clone)]
pub struct Compiler {
    /// Limit on the registers of a program: full general registers, 4 to a vec4; `min`: the fewest that it compiles
    /// with; `min+N`: N more than that.
    #[arg(long, value_name = "LIMIT", default_value = "target", hide_default_value = true)]
    pub max_registers: RegisterLimit,
    #[command(flatten)]
    /// The stages to run.
    pub stages: Stages,
}

/// The stages to run.
#[derive(Args, Clone)]
pub struct Stages {
    /// Disable a stage, or a part of one. May be repeated.
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = values::features())]
    pub disable: Vec<Feature>,
    /// Skip a rewrite of a pass (an arm; an unknown name lists all), or its uses from a number on, from 0
    /// (`fold-two:3..`), or some of them (`fold-two:3..5`). May be repeated; at most one with numbers. Halving such a
    /// range finds the use that breaks a program.
    #[arg(long, value_name = "ARM[:N..]", value_delimiter = ',')]
    pub skip: Vec<Skip>,
    /// The allocator of general registers: in SSA form, or by graph colouring.
    #[arg(long, value_name = "ALLOCATOR", default_value = "ssa", hide_default_value = true, value_parser = values::allocator())]
    allocator: AllocatorName,
    /// With `--allocator graph-colouring`: the nodes after which the search continues at the next register instead of
    /// the first one (`first-fit`: none). `document` unless given.
    #[arg(long, value_name = "RULE", requires = "allocator", value_parser = values::rotation())]
    round_robin: Option<Rotation>,
}

ir3_compiler::words! {
    /// The allocators, on the command line.
    pub enum AllocatorName {
        /// Assignment in SSA form.
        Ssa = "ssa",
        /// Graph colouring.
        GraphColouring = "graph-colouring",
    }
}

impl Stages {
    /// The options of a compilation with the default limit of registers.
    pub fn options(&self) -> Options {
        let skip = self.skip();
        let options = Options { allocator: self.allocator(), skip, ..Options::default() };
        self.disable.iter().copied().fold(options, Options::without)
    }

    /// All that is skipped. Of two ranges the last one counts.
    fn skip(&self) -> Skip {
        self.skip.iter().fold(Skip::default(), |all, &one| all.with(one))
    }

    /// The allocator.
    pub fn allocator(&self) -> Allocator {
        match self.allocator {
            AllocatorName::Ssa => Allocator::Ssa,
            AllocatorName::GraphColouring => Allocator::GraphColouring(self.round_robin.unwrap_or_default()),
        }
    }
}

impl Compiler {
    /// The options of a compilation.
    pub fn options(&self) -> Options {
        Options { registers: self.max_registers, ..self.stages.options() }
    }

    /// Returns true if the allocator is not the default one.
    pub fn is_given(&self) -> bool {
        let Stages { disable, skip, allocator, round_robin } = &self.stages;
        let stages =
            !disable.is_empty() || !skip.is_empty() || *allocator != AllocatorName::Ssa || round_robin.is_some();
        stages || self.max_registers != RegisterLimit::Target
    }
}

/// A planted bug, for every subcommand that compiles.
#[derive(Args, Clone)]
pub struct Planted {
    /// Plant a bug after a stage of the backend, to test that it is found.
    #[arg(long, value_name = "BUG", value_parser = values::plants(), help_heading = "Testing ir3-equiv itself")]
    pub plant: Option<&'static PlantedBug>,
}

impl Planted {
    /// The bug, for a compilation to this target.
    ///
    /// # Errors
    /// If its programs have no stage of the bug.
    pub fn on(&self, target: &Target) -> Result<Option<&'static PlantedBug>, String> {
        match self.plant {
            Some(plant) if !plant.stage.is_of(target.backend) => Err(format!(
                "`--plant {}`: it changes the programs after {}, which is no stage for {target}",
                plant.name, plant.stage
            )),
            plant => Ok(plant),
        }
    }
}

/// The number of threads.
#[derive(Args, Clone, Copy, Debug)]
pub struct Jobs {
    /// The number of threads; default: one for each processor. The result does not depend on it.
    #[arg(long, value_name = "J", value_parser = values::count::<usize>())]
    jobs: Option<usize>,
}

impl Jobs {
    /// The given number, or that of the processors.
    pub fn count(self) -> usize {
        self.jobs.unwrap_or_else(threads::default_jobs).max(1)
    }
}

/// The seed of the environments of `--runs`.
#[derive(Args, Clone, Copy, Debug)]
pub struct EnvSeed {
    /// Seed of the environments.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}
