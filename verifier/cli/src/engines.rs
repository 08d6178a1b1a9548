//! The options that select engines, the same for every command that runs them.

use crate::Failure;
use crate::exit::{self, Exit};
use crate::output;
use crate::values;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use ir3_harness::check::cache::Cache;
use ir3_harness::check::{EngineKind, Engines, Smt};
use ir3_prove::simulation::Limits;
use ir3_prove::solver::Floats;
use ir3_prove::solver::smtlib::QueryFolder;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default CPU time for a proof.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The default CPU time for a proof where there are many. Most proofs take some milliseconds.
pub const PROOF_TIME: Duration = Duration::from_millis(300);

/// The engines to run, and the options of proofs.
#[derive(Args)]
pub struct EngineArgs {
    /// Engines: several, with commas. Unless given: all of them in `verify`, `mesa`, `check`, `reduce BEFORE AFTER`,
    /// `fuzz --compiler` and `ir3-selftest`, elsewhere `interpreter`.
    #[arg(long = "engine", value_name = "ENGINES", value_delimiter = ',', value_parser = engine_names())]
    kinds: Vec<EngineKind>,
    /// CPU time for one proof (`500ms`, `10s`, `2m`). Unless given: 10s; 300ms in `verify`, `mesa`, `fuzz --compiler`
    /// and `ir3-selftest agreement`.
    #[arg(long, value_name = "T", value_parser = values::time)]
    timeout: Option<Duration>,
    /// Floats in proofs: uninterpreted functions, the same on both sides, or exact (slow).
    #[arg(long, value_enum, value_name = "HOW", default_value = "uninterpreted")]
    float: Float,
    /// Folder for the queries of proofs, each as SMT-LIB 2.
    #[arg(long, value_name = "DIR")]
    emit_smt: Option<PathBuf>,
    /// Folder of proofs that are kept from run to run.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Float {
    Uninterpreted,
    Exact,
}

impl EngineArgs {
    /// The engines; `default` and `timeout` apply to options that the command line leaves out.
    ///
    /// # Errors
    /// If the folder of kept proofs or of queries cannot be written.
    pub fn engines(&self, default: &[EngineKind], timeout: Duration) -> Result<Engines, Failure> {
        for folder in self.emit_smt.iter().chain(&self.cache) {
            exit::try_folder(folder)?;
        }
        let floats = match self.float {
            Float::Uninterpreted => Floats::Uninterpreted,
            Float::Exact => Floats::Exact,
        };
        let smt = Smt {
            limits: Limits::within(self.timeout.unwrap_or(timeout)),
            floats,
            emit: self.emit_smt.as_deref().map(QueryFolder::new).transpose()?,
            cache: self.cache.as_deref().map(Cache::new).transpose()?,
        };
        let kinds = if self.kinds.is_empty() { default.to_vec() } else { self.kinds.clone() };
        Ok(Engines { kinds, smt })
    }

    /// The folder for results that are kept from run to run, if it is given.
    pub fn cache_folder(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// Returns true if the command line selects engines.
    pub fn are_given(&self) -> bool {
        !self.kinds.is_empty()
    }
}

/// The exit code for the files of engines: a proof that could not be written does not change a verdict, but was
/// requested.
pub fn written(engines: &Engines) -> Exit {
    let failures = [("proofs", engines.cache_failure()), ("queries", engines.query_failure())];
    let mut exit = Exit::Passed;
    for (what, why) in failures {
        let Some(why) = why else { continue };
        output::problem(&format!("{what} cannot be written to {why}"));
        exit = Exit::Unwritten;
    }
    exit
}

fn engine_names() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(|engine| PossibleValue::new(engine.name()).help(engine.description()));
    let find = |name: String| EngineKind::from_name(&name).ok_or("found no such engine");
    Renamed(PossibleValuesParser::new(names).try_map(find))
}

/// A parser of engines, which refuses an old name and prints the new one.
#[derive(Clone)]
struct Renamed<P>(P);

impl<P: TypedValueParser> TypedValueParser for Renamed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        if value == "contents" {
            let message = "the engine `contents` is now `registers`\n";
            return Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, message).with_cmd(command));
        }
        self.0.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}
