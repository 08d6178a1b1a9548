//! Which engines compare two programs, and how they prove.

use crate::fuzz::parse_time;
use crate::{Engines, Failure};
use clap::builder::EnumValueParser;
use clap::{Args, ValueEnum};
use ir3_verifier::harness::check::{Provers, Smt};
use ir3_verifier::prove::simulation::Limits;
use ir3_verifier::prove::solver::Floats;
use ir3_verifier::prove::solver::cache::Cache;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the subcommands that compare programs.
#[derive(Args)]
pub struct Proving {
    /// Engines to ask: several, with commas. A prover is asked of the stages that changed the program, `registers` of those
    /// that only move values about, `smt` of what is not proved by then.
    #[arg(
        long = "engine",
        value_parser = Engines(EnumValueParser::<Engine>::new()),
        value_name = "ENGINES",
        value_delimiter = ',',
        default_value = "interpreter"
    )]
    engines: Vec<Engine>,
    /// CPU time for the proof of a boundary (`500ms`, `10s`, `2m`, or seconds).
    #[arg(long, value_name = "T", value_parser = parse_time, default_value = "10s")]
    timeout: Duration,
    /// Floats in proofs: functions of which nothing is known but that both sides have the same, or exact (slow).
    #[arg(long, value_enum, value_name = "HOW", default_value = "uninterpreted")]
    float: Float,
    /// Folder for the queries of proofs, each as SMT-LIB 2.
    #[arg(long, value_name = "DIR")]
    emit_smt: Option<PathBuf>,
    /// Folder of proofs that are kept from run to run.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// Who compares.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Runs both sides.
    Interpreter,
    /// Proves that every use reads the value that it read before.
    Registers,
    /// Proves that both sides compute the same, on terms and with a solver.
    Smt,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Float {
    Uninterpreted,
    Exact,
}

impl Proving {
    /// Whether programs are run.
    pub fn runs(&self) -> bool {
        self.engines.contains(&Engine::Interpreter)
    }

    /// Who proves, if anyone is to.
    ///
    /// # Errors
    /// If the folder of kept proofs cannot be made.
    pub fn provers(&self) -> Result<Option<Provers>, Failure> {
        let floats = match self.float {
            Float::Uninterpreted => Floats::Uninterpreted,
            Float::Exact => Floats::Exact,
        };
        let smt = Smt {
            limits: Limits::within(self.timeout),
            floats,
            emit: self.emit_smt.clone(),
            cache: self.cache.as_deref().map(Cache::new).transpose()?,
        };
        let asks = |engine| self.engines.contains(&engine);
        let provers = Provers { registers: asks(Engine::Registers), smt: asks(Engine::Smt).then_some(smt) };
        Ok((provers.registers || provers.smt.is_some()).then_some(provers))
    }
}
