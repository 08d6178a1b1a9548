//! The CPU time of the parts of comparisons.

use cpu_time::ThreadTime;
use ir3_programs::vulkan::Execution;
use std::time::Duration;

ir3_compiler::words! {
    /// A part of a comparison.
    pub enum Part {
        /// A program is generated.
        Generation = "generation",
        /// A program is prepared.
        Preparation = "preparation",
        /// Runs of the interpreter.
        Interpreter = "interpreter",
        /// SPIR-V and the contents of resources.
        Translation = "SPIR-V",
        /// The job is written to the process of the device, and its answer read.
        Exchange = "exchange with the worker",
        /// The device makes its pipeline.
        Pipeline = "pipeline of the device",
        /// The device executes the program for the first time; llvmpipe compiles it then.
        Execution = "first execution",
        /// The device executes it again.
        Again = "second execution",
        /// Other work of the process of the device.
        Worker = "resources of the device",
        /// Words are compared.
        Comparison = "comparison",
        /// The operations are found that compared words depend on.
        Dependence = "dependence on operations",
    }
}

/// CPU times, by part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times([Duration; Part::ALL.len()]);

impl Times {
    /// Adds other times.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    /// Adds the times that the process of the device reports.
    pub fn device(&mut self, execution: &Execution) {
        for (part, time) in
            [Part::Pipeline, Part::Execution, Part::Again, Part::Worker].into_iter().zip(execution.times)
        {
            self.0[part as usize] += time;
        }
    }

    /// The time of a part.
    #[must_use]
    pub fn of(&self, part: Part) -> Duration {
        self.0[part as usize]
    }

    /// The time of all parts.
    #[must_use]
    pub fn all(&self) -> Duration {
        self.0.iter().sum()
    }
}

/// Measures the parts of this thread's work, one after the other.
pub struct Stopwatch(ThreadTime);

impl Stopwatch {
    /// Starts the first part.
    #[must_use]
    pub fn start() -> Self {
        Self(ThreadTime::now())
    }

    /// Ends a part, and starts the next one.
    pub fn stop(&mut self, times: &mut Times, part: Part) {
        times.0[part as usize] += self.0.elapsed();
        self.0 = ThreadTime::now();
    }
}
