//! `stats`: the costs of programs, alone, in comparison with Mesa's, or before and after.

use crate::{Compiler, Exit, Failure, Format, Gpu, output, paths};
use clap::{Args, ValueEnum};
use cpu_time::ThreadTime;
use ir3_compiler::compilation;
use ir3_compiler::ir3::{Block, Program, ShaderStage, workload};
use ir3_compiler::pipeline::{Options, Stage, run_vec4_stage};
use ir3_compiler::stats::Stats;
use ir3_compiler::target::{Backend, Target};
use ir3_programs::input;
use ir3_programs::input::Named;
use ir3_report::mesa_comparison::note::NoteCheck;
use ir3_report::mesa_comparison::{CostTable, Metrics, final_program};
use ir3_report::shader_db;
use ir3_report::shader_db::Results;
use ir3_semantics::Snapshot;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::path::PathBuf;

/// Options of `stats`.
#[derive(Args)]
pub struct StatsCommand {
    /// Files (.nir, .ir3, machine code, Mesa logs, whose final-form nir is used) or folders of them; or two files of
    /// lines that this command or a driver printed, BEFORE and AFTER, which are compared as shader-db's report.py
    /// does.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The paths are Mesa logs: compile their nir and compare our metrics with Mesa's own.
    #[arg(long)]
    beside_mesa: bool,
    /// Print the sums over the N programs with the most instructions in Mesa's code, too.
    #[arg(long, value_name = "N", requires = "beside_mesa")]
    largest: Option<usize>,
    /// A note that has to explain every shader above 1.10 times Mesa's metrics: see docs/beside-mesa.md.
    #[arg(long, value_name = "FILE", requires = "beside_mesa")]
    note: Option<PathBuf>,
    /// For two files, the measurements to report, instead of those of instructions, cycles, loops, spills and fills
    /// that all programs have.
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    measurements: Vec<String>,
    /// For two files, the format of the report: shader-db's report.py (helped and hurt programs, with medians and
    /// confidence), or the totals of fossil-db with their split.
    #[arg(long, value_enum, value_name = "STYLE", default_value_t)]
    report: ReportStyle,
    /// For two files, do not list the programs that were helped or hurt.
    #[arg(short, long)]
    summary_only: bool,
    /// For two files, report only changes.
    #[arg(short, long)]
    changes_only: bool,
    #[command(flatten)]
    gpu: Gpu,
    #[command(flatten)]
    compiler: Compiler,
}

/// The format of a report on two files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReportStyle {
    /// The format of report.py of shader-db.
    #[default]
    ShaderDb,
    /// The format of the reports of fossil-db.
    FossilDb,
}

#[derive(Serialize)]
struct Line<'a> {
    program: &'a str,
    #[serde(flatten)]
    metrics: Metrics,
}

#[derive(Serialize)]
struct Refused<'a> {
    program: &'a str,
    refused: String,
}

impl StatsCommand {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        if let Some((before, after)) = self.sides() {
            return self.compare(&before, &after, format);
        }
        if !self.measurements.is_empty() || self.summary_only || self.changes_only {
            return Err("--measurements, --summary-only and --changes-only are for two files of statistics".into());
        }
        let (files, found) = paths::files(&self.paths)?;
        let exit = if self.beside_mesa { self.beside_mesa(&files, format) } else { self.alone(&files, format) };
        Ok(exit?.max(found))
    }

    /// The two files of statistics, if the paths are such files.
    fn sides(&self) -> Option<(Results, Results)> {
        let [before, after] = &self.paths[..] else { return None };
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).ok()?;
            Some(shader_db::read(&String::from_utf8_lossy(&bytes))).filter(|results| !results.is_empty())
        };
        Some((read(before)?, read(after)?))
    }

    fn compare(&self, before: &Results, after: &Results, format: Format) -> Result<Exit, Failure> {
        let names: Vec<&str> = if self.measurements.is_empty() {
            let known = |name: &&str| before.have(name) && after.have(name);
            shader_db::DEFAULT_MEASUREMENTS.into_iter().filter(known).collect()
        } else {
            self.measurements.iter().map(String::as_str).collect()
        };
        let comparison = shader_db::compare(before, after, &names)?;
        match format {
            Format::Human => output::text(&match self.report {
                ReportStyle::ShaderDb => comparison.report(self.summary_only, self.changes_only),
                ReportStyle::FossilDb => comparison.totals(),
            }),
            _ => output::json("comparison", &comparison),
        }
        Ok(Exit::Passed)
    }

    fn beside_mesa(&self, files: &[PathBuf], format: Format) -> Result<Exit, Failure> {
        let mut table = CostTable { largest: self.largest, ..CostTable::default() };
        for path in files {
            if let Err(error) = table.add(path, &self.gpu.target(), &self.compiler.options()) {
                output::error(&error);
                table.unreadable.push(error.to_string());
            }
        }
        match format {
            Format::Human => output::text(&table.to_string()),
            _ => {
                table.rows.iter().for_each(|row| output::json("costs", row));
                output::json("totals", &table.totals());
                if let Some(count) = self.largest {
                    output::json("totals", &table.totals_of_largest(count));
                }
            }
        }
        let exit = Exit::Passed.max(Exit::Bad.when(!table.unreadable.is_empty()));
        let Some(note) = &self.note else { return Ok(exit) };
        let text = std::fs::read_to_string(note).map_err(|error| format!("{}: {error}", note.display()))?;
        let check = NoteCheck::of(&table, &text);
        if format == Format::Human {
            output::text(&format!("\n{check}"));
        }
        Ok(exit.max(Exit::Unmet.when(!check.unexplained.is_empty())))
    }

    fn alone(&self, files: &[PathBuf], format: Format) -> Result<Exit, Failure> {
        let (mut exit, mut count) = (Exit::Passed, 0);
        let start = ThreadTime::now();
        for path in files {
            let programs = match input::load(path, self.gpu.given()) {
                Ok(programs) => programs,
                Err(error) if error.is_without_program() && !self.paths.contains(path) => continue,
                Err(error) => {
                    output::error(&error);
                    exit = Exit::Bad;
                    continue;
                }
            };
            for named in programs {
                count += 1;
                output::taken(&named.name, &named.taken);
                let target = &named.target;
                let options = self.compiler.options();
                if target.backend != Backend::Ir3 {
                    exit = exit.max(self.vec4(&named, &options, format));
                    continue;
                }
                let is_final = matches!(named.program, Snapshot::Nir(_)) && options.last == Stage::LAST;
                let compiled = match &named.program {
                    Snapshot::Nir(shader) if is_final => final_program(shader, target, &options),
                    Snapshot::Nir(shader) => compilation::compile(shader, target, &options, &mut |_, _| {}),
                    Snapshot::Ir3(program) => Ok((**program).clone()),
                    Snapshot::Vec4(_) => unreachable!("the target does not use ir3"),
                };
                let stats = if is_final { Stats::of_final } else { Stats::of };
                exit = exit.max(Exit::Unmet.when(compiled.is_err()));
                match (compiled, format) {
                    (Ok(program), Format::Human) => {
                        output::line(&line(&named.name, &program, &stats(&program, target), target))
                    }
                    (Ok(program), _) => {
                        let metrics = Metrics::of(&program, &stats(&program, target), target);
                        output::json("cost", &Line { program: &named.name, metrics });
                    }
                    (Err(error), Format::Human) => output::line(&format!("{}: refused: {error}", named.name)),
                    (Err(error), _) => {
                        output::json("refused", &Refused { program: &named.name, refused: error.to_string() });
                    }
                }
            }
        }
        if count > 0 && format == Format::Human {
            // A comparison of two runs takes their times from these lines.
            let seconds = start.elapsed().as_secs_f64();
            output::line(&format!("Thread 0 took {seconds:.2} seconds and compiled {count} shaders"));
        }
        Ok(exit.max(Exit::Nothing.when(count == 0)))
    }
}

impl StatsCommand {
    /// The cost of a program in vec4, as i965 prints it for shader-db.
    fn vec4(&self, named: &Named, options: &Options, format: Format) -> Exit {
        let compiled = match &named.program {
            Snapshot::Nir(shader) => compilation::compile_vec4(shader, &named.target, options),
            Snapshot::Vec4(program) => {
                let mut program = (**program).clone();
                let mut stages = Stage::on_mode(program.mode).filter(|&stage| options.runs(stage));
                let ran = stages.try_for_each(|stage| run_vec4_stage(stage, &mut program, options).map(drop));
                ran.map(|()| program)
            }
            Snapshot::Ir3(_) => {
                output::line(&format!("{}: refused: ir3 for {}", named.name, named.target));
                return Exit::Unmet;
            }
        };
        match compiled {
            Ok(program) => {
                let (inst, loops) = (program.instrs.len(), program.loops());
                output::json(
                    "cost",
                    &serde_json::json!({ "program": named.name, "instructions": inst, "loops": loops }),
                );
                if format == Format::Human {
                    let mode = program.mode;
                    let stage = match (mode.is_scalar(), program.stage) {
                        (false, _) => "VERT",
                        (true, stage) => stage.name().trim_start_matches("MESA_SHADER_"),
                    };
                    output::line(&format!("{} - {stage} {mode} shader: {inst} inst, {loops} loops", named.name));
                }
                Exit::Passed
            }
            Err(error) => {
                output::json("refused", &Refused { program: &named.name, refused: error.to_string() });
                if format == Format::Human {
                    output::line(&format!("{}: refused: {error}", named.name));
                }
                Exit::Unmet
            }
        }
    }
}

/// The line that freedreno prints for shader-db; the metrics of a final program are 0 for others.
fn line(name: &str, program: &Program, stats: &Stats, target: &Target) -> String {
    let waves = target.occupancy(&workload(program), stats.full).waves;
    let stage = match program.stage {
        Some(ShaderStage::Vertex) => "VERT",
        Some(ShaderStage::TessControl) => "TCS",
        Some(ShaderStage::TessEval) => "TES",
        Some(ShaderStage::Geometry) => "GEOM",
        Some(ShaderStage::Fragment) => "FRAG",
        Some(ShaderStage::Compute) => "CL",
        None => "unknown",
    };
    let mut line = format!(
        "{name} - {stage} shader: {} inst, {} nops, {} non-nops, {} mov, {} cov, {} half, {} full",
        stats.instructions,
        stats.nops,
        stats.non_nops(),
        stats.mov,
        stats.cov,
        stats.half,
        stats.full
    );
    for (category, count) in stats.categories.iter().enumerate() {
        line += &format!(", {count} cat{category}");
    }
    let loops = loops(program);
    let waits = &stats.waits;
    line += &format!(", {} dwords, {} last-baryf, {} last-helper", stats.dwords, stats.last_baryf, stats.last_helper);
    line += &format!(", {} constlen, {} sstall, {} (ss)", stats.constlen, waits.sstall, waits.ss);
    line += &format!(", {} systall, {} (sy)", waits.systall, waits.sy);
    line += &format!(", {} stp, {} ldp, {waves} waves, {loops} loops", stats.stp, stats.ldp);
    line + &format!(", {} preamble inst", stats.preamble)
}

/// The blocks that are targets of back edges.
fn loops(program: &Program) -> usize {
    let mut earlier = FxHashSet::default();
    let is_header = |&&block: &&Block| {
        earlier.insert(block);
        program.blocks[block].predecessors.iter().any(|pred| *pred == block || !earlier.contains(pred))
    };
    program.layout.iter().filter(is_header).count()
}
