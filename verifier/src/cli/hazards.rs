//! `hazards`: proves that final programs wait for their results.

use crate::{Exit, Failure, Format, Gpu, contents, output, paths};
use clap::Args;
use cpu_time::ThreadTime;
use ir3_compiler::machine::Ip;
use ir3_harness::finals::{FinalProgram, finals, instruction_text};
use ir3_prove::hazards::{Basis, Hazard, HazardReport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `hazards`.
#[derive(Args)]
pub struct Hazards {
    /// Files or folders of them: Mesa logs, whose programs after `ir3_legalize` are checked, ir3 texts of final
    /// programs, or machine code: dumps of crashdec and cffdump, listings of ir3-disasm, assembly.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    gpu: Gpu,
}

/// A program, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    program: &'a str,
    gpu: &'a str,
    verdict: &'static str,
    instructions: u32,
    hazards: usize,
    /// The hazards among them that break only a rule of Mesa's practice.
    findings: usize,
    /// Why there is no verdict.
    reason: Option<String>,
    /// The line of the first instruction.
    line: Option<u32>,
    /// The lines that start with a repetition of the same program.
    repeated: &'a [u32],
    /// The attributes that the text leaves out, with the values that were assumed.
    taken: &'a [String],
}

/// A hazard, as JSON.
#[derive(Serialize)]
struct Found<'a> {
    program: &'a str,
    kind: &'static str,
    /// The source of the rule: the machine, or only Mesa's practice.
    basis: &'static str,
    message: String,
    at: u32,
    /// The line in the file.
    line: Option<u32>,
    instruction: String,
    register: Option<&'a str>,
    producer: Option<u32>,
    path: Vec<u32>,
}

#[derive(Default, Serialize)]
struct Counts {
    programs: usize,
    instructions: u64,
    hazards: usize,
    /// The hazards among them that break only a rule of Mesa's practice.
    findings: usize,
    /// Programs without a hazard but findings.
    proved: usize,
    refused: usize,
    /// Branches that the text marks uniform, and the checker does not find so.
    not_shown_uniform: usize,
    /// CPU seconds of the checker alone.
    seconds: f64,
}

impl Hazards {
    /// Runs the subcommand.
    pub fn run(&self, format: Format) -> Result<Exit, Failure> {
        let mut counts = Counts::default();
        let mut guessed: BTreeMap<&'static str, u64> = BTreeMap::new();
        let (files, mut exit) = paths::files(&self.paths)?;
        let shows_all = files.len() == 1;
        for path in files {
            let programs = match finals(&path, self.gpu.given()) {
                Ok(programs) => programs,
                Err(error) => {
                    output::error(&error);
                    exit = exit.max(Exit::Bad);
                    continue;
                }
            };
            if programs.is_empty() {
                output::problem(&contents::without(
                    &path,
                    "a final program (`AFTER: ir3_legalize`, or the final assembly)",
                ));
            }
            for program in &programs {
                if program.is_target_guessed {
                    *guessed.entry(program.target.name).or_default() += 1;
                }
                exit = exit.max(one(program, &mut counts, format, shows_all));
            }
        }
        if format == Format::Human {
            let Counts { programs, instructions, hazards, findings, proved, refused, not_shown_uniform, seconds } =
                &counts;
            output::line(&format!(
                "{programs} programs, {instructions} instructions, {proved} proved, {} hazards, {refused} refused, \
                 {findings} findings against Mesa's practice, {not_shown_uniform} branches marked uniform without a proof, \
                 {:.1} M instructions per CPU second",
                hazards - findings,
                *instructions as f64 / seconds.max(1e-9) / 1e6
            ));
        } else {
            output::json("hazards", &counts);
        }
        output::guessed_gpus(&guessed);
        Ok(exit.max(Exit::Nothing.when(counts.programs == 0)))
    }
}

/// The line of a program.
fn headline(program: &FinalProgram, verdict: &str, instructions: u32, reason: Option<String>) -> String {
    let mut line = program.name.clone();
    if let Some(first) = program.lines.first() {
        line += &format!(" (line {first}");
        match program.repeated.len() {
            0 => {}
            1 => line += ", and again",
            more => line += &format!(", and {more} times again"),
        }
        line += ")";
    }
    line += &format!(": {verdict}");
    match reason {
        Some(reason) => line += &format!(": {reason}"),
        None => line += &format!(", {instructions} instructions"),
    }
    if !program.taken.is_empty() {
        line += &format!("; taken: {}", program.taken.join(", "));
    }
    line
}

/// An instruction with its line in the file.
fn placed(program: &FinalProgram, ip: Ip) -> String {
    let text = instruction_text(&program.code, ip);
    program.line(ip).map_or_else(|| text.clone(), |line| format!("line {line}, {text}"))
}

fn one(program: &FinalProgram, counts: &mut Counts, format: Format, shows_all: bool) -> Exit {
    counts.programs += 1;
    let FinalProgram { name, code, target, .. } = program;
    let start = ThreadTime::now();
    let checked = program.hazards();
    counts.seconds += start.elapsed().as_secs_f64();
    let (report, reason, exit) = match checked {
        Ok(report) if report.is_proved() => match &program.broken_rule {
            // The hardware does not execute the text.
            Some(rule) => (report, Some(format!("it breaks a rule: {rule}")), Exit::Unmet),
            None => (report, None, Exit::Passed),
        },
        Ok(report) => (report, None, Exit::Refuted),
        Err(error) => {
            counts.refused += 1;
            (HazardReport::default(), Some(error), Exit::Unmet)
        }
    };
    counts.instructions += u64::from(report.instructions);
    counts.hazards += report.hazards.len();
    counts.findings += report.findings();
    counts.proved += usize::from(exit == Exit::Passed);
    counts.not_shown_uniform += report.not_shown_uniform.len();
    let verdict = match exit {
        Exit::Passed => "proved",
        Exit::Refuted => "refuted",
        _ => "unknown",
    };
    if format == Format::Human {
        if shows_all || exit != Exit::Passed || !report.hazards.is_empty() {
            output::line(&headline(program, verdict, report.instructions, reason));
        }
        for &branch in report.not_shown_uniform.iter().filter(|_| exit != Exit::Passed) {
            output::line(&format!("  marked uniform without a proof: {}", placed(program, branch)));
        }
        for hazard in &report.hazards {
            let rule = if hazard.kind.basis() == Basis::Practice { " (Mesa's practice)" } else { "" };
            output::line(&format!("  {hazard}{rule}\n    {}", placed(program, hazard.at)));
            if let Some(producer) = hazard.producer.filter(|&producer| producer != hazard.at) {
                output::line(&format!("    {}", placed(program, producer)));
            }
        }
        return exit;
    }
    let row = Row {
        program: name,
        gpu: target.name,
        verdict,
        instructions: report.instructions,
        hazards: report.hazards.len(),
        findings: report.findings(),
        reason,
        line: program.lines.first().copied(),
        repeated: &program.repeated,
        taken: &program.taken,
    };
    output::json("final-program", &row);
    for hazard in &report.hazards {
        let Hazard { at, kind, register, producer, path, .. } = hazard;
        output::json(
            "hazard",
            &Found {
                program: name,
                kind: kind.name(),
                basis: kind.basis().name(),
                message: kind.to_string(),
                at: at.as_u32(),
                line: program.line(*at),
                instruction: instruction_text(code, *at),
                register: register.as_deref(),
                producer: producer.map(|ip| ip.as_u32()),
                path: path.iter().map(|ip| ip.as_u32()).collect(),
            },
        );
    }
    exit
}
