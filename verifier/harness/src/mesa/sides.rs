//! The programs of a shader, each a side of two boundaries, and the verdicts on them.

use super::recover::{self, Phase, Recovered};
use super::reserved;
use crate::check::{
    Boundary, BoundaryKind, Engines, FinalFacts, History, Judge, Judgment, NO_ENGINE, NotShown, Policy, ProgramInputs,
    Refutation, Search, Sensitivity, Unknown, Verdict,
};
use ir3_compiler::ir3::{Opcode, Src, SrcOperand};
use ir3_compiler::nir::{self, IntrinsicOp};
use ir3_compiler::target::{Generation, Target};
use ir3_programs::mesa::native::constant_name;
use ir3_programs::mesa::shader::LogShader;
use ir3_programs::mesa::{Section, Statistics};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp::Scratch;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The name of the first side.
pub const NIR: &str = "nir";
/// The name of the boundary from nir to the final code.
pub const WHOLE: &str = "nir → final code";
/// The name of the boundary from the last pass to the final code.
pub const CODE: &str = "final code";
/// The name of the pass that makes a program final.
const LEGALIZE: &str = "ir3_legalize";
/// The limit on the CPU time of a brief proof.
const BRIEF_PROOF: Duration = Duration::from_millis(60);
/// The limit on the CPU time of a brief search.
const BRIEF_SEARCH: Duration = Duration::from_millis(5);
/// The name printed for the engine if a side could not be read.
pub const READER: &str = "reader";

/// The passes of Mesa that only move values.
const PASSES_THAT_MOVE_VALUES: [&str; 6] = [
    "create_parallel_copies",
    "shared register allocation",
    "ir3_spill",
    "register allocation",
    "ir3_lower_spill",
    "ir3_lower_copies",
];

/// The engines and the budget of a boundary.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The engines.
    pub engines: &'a Engines,
    /// The number of environments in which a boundary that is not proved is run at first.
    pub runs: usize,
    /// The maximum number of environments.
    pub most_runs: usize,
    /// The seed of the environments.
    pub seed: u64,
    /// The fuel (instruction limit) of a run.
    pub fuel: u64,
    /// CPU time after which no environments are added.
    pub limit: Duration,
}

impl<'a> Settings<'a> {
    /// The fuel and the limit of the command line, and up to eight times as many environments.
    pub const fn new(engines: &'a Engines, runs: usize, seed: u64) -> Self {
        Self { engines, runs, most_runs: runs * 8, seed, fuel: 100_000, limit: Duration::from_secs(1) }
    }
}

/// The verdict on a boundary.
#[derive(Debug)]
pub struct Checked<'a> {
    /// The pass, or the name of the comparison.
    pub name: String,
    /// The sections that were compared.
    pub sections: [Option<&'a Section>; 2],
    /// The verdict of all engines together.
    pub verdict: Verdict,
    /// The name of the engine that decided.
    pub engine: &'static str,
    /// The share of the program after on which the runs depend, if it was only run.
    pub sensitivity: Option<Sensitivity>,
    /// CPU time of all engines.
    pub time: Duration,
    /// The reason of the refutation, if another engine proved the boundary: a bug of ir3-equiv.
    pub wrong_proof: Option<String>,
}

impl Checked<'_> {
    /// Returns true if both sides could be read.
    pub fn is_read(&self) -> bool {
        self.engine != READER
    }

    /// The facts for a report, with copies of the sections; `None` if the boundary is not refuted.
    pub fn refuted(&self, target: &Target) -> Option<RefutedPass> {
        let Verdict::Refuted(refutation) = &self.verdict else { return None };
        Some(RefutedPass {
            name: self.name.clone(),
            sections: self.sections.map(|section| section.cloned()),
            refutation: refutation.clone(),
            target: *target,
        })
    }
}

/// A refuted boundary of a log that need not be there any more.
#[derive(Clone, Debug)]
pub struct RefutedPass {
    /// The pass, or the name of the comparison.
    pub name: String,
    /// The sections that were compared.
    pub sections: [Option<Section>; 2],
    /// The refutation.
    pub refutation: Box<Refutation>,
    /// The GPU.
    pub target: Target,
}

/// One program of a shader: nir, the result of a pass, or the final code.
pub struct Side<'a> {
    /// The name in messages: the pass that produced the program.
    pub name: String,
    section: Option<&'a Section>,
    phase: Phase,
    /// The program, or the reason why it cannot be read.
    pub program: Result<Snapshot, String>,
    /// The statistics that Mesa prints for the code of a final program.
    statistics: Option<Statistics>,
}

/// The kind of the boundary between two sides. A boundary to final code is `Final`. A log may lack the passes before
/// one that moves values.
fn kind_of(before: &Side<'_>, after: &Side<'_>) -> BoundaryKind {
    match &*after.name {
        LEGALIZE | CODE => BoundaryKind::Final,
        name if before.phase >= Phase::Scheduled && PASSES_THAT_MOVE_VALUES.contains(&name) => BoundaryKind::Moves,
        _ => BoundaryKind::Computes,
    }
}

/// The first word of the constant file that only the program after reads, and that nothing is known to fill. `is_open`
/// is true if any word may be filled by a line that is missing.
fn new_constant(before: &Snapshot, after: &Snapshot, is_open: bool) -> Option<u16> {
    let before = constant_words(before)?;
    let filled = if is_open { Some(BTreeSet::new()) } else { filled_words(after) }?;
    constant_words(after)?.difference(&before).find(|&word| !filled.contains(word)).copied()
}

/// The words of the constant file that the lists before the code fill, or that an ir3 program stores; `None` if it
/// computes the word that it stores to.
fn filled_words(program: &Snapshot) -> Option<BTreeSet<u16>> {
    let Snapshot::Ir3(program) = program else { return None };
    let consts = &program.consts;
    let listed = consts.immediates.iter().map(|&(word, _)| word);
    let mut filled: BTreeSet<u16> = listed.chain(consts.driver_params.iter().map(|param| param.word)).collect();
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        if !data.opcode.writes_consts() {
            continue;
        }
        match (data.opcode, &data.srcs[..]) {
            (Opcode::Stc, [Src { operand: SrcOperand::Immediate(first), .. }, stored]) => {
                let words = (0..stored.mask.span()).filter_map(|at| u16::try_from(first.checked_add(at)?).ok());
                filled.extend(words);
            }
            _ => return None,
        }
    }
    Some(filled)
}

/// The words of the constant file that a program reads at constant indices; `None` if nir computes an index.
fn constant_words(program: &Snapshot) -> Option<BTreeSet<u16>> {
    match program {
        Snapshot::Nir(shader) => {
            let function = &shader.entry;
            let mut words = BTreeSet::new();
            for (_, instr) in function.instrs_in_order() {
                let nir::InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
                if let (IntrinsicOp::LoadConstIr3, Some(def)) = (intrinsic.op, intrinsic.def) {
                    let at = function.as_const_scalar(intrinsic.srcs[0])?;
                    let first = (intrinsic.indices.base() as u16).wrapping_add(at as u16);
                    let def = &function.defs[def];
                    let count = u16::from(def.num_components) * if def.bit_size == 64 { 2 } else { 1 };
                    words.extend((0..count).map(|i| first.wrapping_add(i)));
                }
            }
            Some(words)
        }
        Snapshot::Ir3(program) => {
            let srcs = program.iter_instrs().flat_map(|(_, instr)| &program.instrs[instr].srcs);
            let word = |src: &Src| if let SrcOperand::Const(word) = src.operand { Some(word) } else { None };
            Some(srcs.filter_map(word).collect())
        }
        Snapshot::Vec4(_) => Some(BTreeSet::new()),
    }
}

/// The programs of a shader, in order: nir, the programs after passes, the final code.
pub struct Sides<'a> {
    /// The programs in the order of the passes, each with its name; an error for one that could not be read.
    pub all: Vec<Side<'a>>,
    inputs: Option<ProgramInputs>,
    target: Target,
    lacks_constants: bool,
    /// The reason why lines or sections may be of two shaders.
    mixed: Option<String>,
}

impl<'a> Sides<'a> {
    /// Reads the sections of a shader.
    pub fn of(path: &Path, shader: &'a LogShader, target: &Target, seed: u64) -> (Self, Recovered) {
        let recovered = recover::recover(path, shader, target);
        let inputs = recovered.nir.as_ref().ok().map(|nir| ProgramInputs::with_boolean_words(nir, seed));
        let nir = shader.nir.as_ref().map(|section| Side {
            name: NIR.to_owned(),
            section: Some(section),
            phase: Phase::Selected,
            program: recovered.nir.clone().map(|nir| Snapshot::Nir(Box::new(nir))),
            statistics: None,
        });
        let of_passes = recovered.passes.iter().zip(&recovered.phases);
        let passes = shader.passes.iter().zip(of_passes).map(|(section, (program, &phase))| {
            let name = section.title().trim_start_matches("AFTER: ").to_owned();
            let statistics = (phase == Phase::Final).then(|| shader.printed_statistics()).flatten();
            let program = program.clone().map(|program| Snapshot::Ir3(Box::new(program)));
            Side { name, section: Some(section), phase, program, statistics }
        });
        let code = shader.assembly.as_ref().map(|section| Side {
            name: CODE.to_owned(),
            section: Some(section),
            phase: Phase::Final,
            program: recovered.code.clone().map(|program| Snapshot::Ir3(Box::new(program))),
            statistics: shader.printed_statistics(),
        });
        let all = nir.into_iter().chain(passes).chain(code).collect();
        let mixed = shader.mixture().map(ToString::to_string);
        (Self { all, inputs, target: *target, lacks_constants: recovered.lacks_constants, mixed }, recovered)
    }

    /// Returns the programs without their sections, for a caller that changes the shader.
    pub fn into_programs(self) -> Sides<'static> {
        let all = self.all.into_iter().map(|side| Side {
            name: side.name,
            section: None,
            phase: side.phase,
            program: side.program,
            statistics: side.statistics,
        });
        let Self { inputs, target, lacks_constants, mixed, .. } = self;
        Sides { all: all.collect(), inputs, target, lacks_constants, mixed }
    }

    /// The boundaries, each with its name and the indices of its sides: adjacent programs, then nir and the final code
    /// if there is a pass between them.
    pub fn boundaries(&self) -> Vec<(&str, [usize; 2])> {
        let last = self.all.len().saturating_sub(1);
        let is_whole = last > 1 && self.all[0].name == NIR && self.all[last].name == CODE;
        let neighbours = (0..last).map(|at| (&*self.all[at + 1].name, [at, at + 1]));
        neighbours.chain(is_whole.then_some((WHOLE, [0, last]))).collect()
    }

    /// Compares two programs of the shader.
    pub fn judge(&self, sides: [usize; 2], settings: &Settings<'_>) -> Checked<'a> {
        self.judge_next(sides, settings, &mut History::default())
    }

    /// Compares two programs of the shader, whose boundaries so far are in the history.
    pub fn judge_next(&self, sides: [usize; 2], settings: &Settings<'_>, history: &mut History) -> Checked<'a> {
        let [before, after] = sides.map(|at| &self.all[at]);
        self.judge_within(before, after, settings, Duration::MAX, history)
    }

    /// Compares a program of another version of the shader with one of this.
    pub fn judge_against(&self, original: &Self, sides: [usize; 2], settings: &Settings<'_>) -> Checked<'a> {
        let [before, after] = [&original.all[sides[0]], &self.all[sides[1]]];
        original.judge_within(before, after, settings, Duration::MAX, &mut History::default())
    }

    /// Compares two programs of the shader with a small budget: a short proof, then runs with a short search.
    pub fn judge_briefly(&self, sides: [usize; 2], settings: &Settings<'_>, history: &mut History) -> Checked<'a> {
        let [before, after] = sides.map(|at| &self.all[at]);
        let settings = Settings { limit: settings.limit.min(BRIEF_SEARCH), ..*settings };
        self.judge_within(before, after, &settings, BRIEF_PROOF, history)
    }

    fn judge_within(
        &self,
        before: &Side<'a>,
        after: &Side<'a>,
        settings: &Settings<'_>,
        most_proof_time: Duration,
        history: &mut History,
    ) -> Checked<'a> {
        let inputs = self.inputs.as_ref();
        let &Settings { engines, runs, most_runs, fuel, limit, .. } = settings;
        let search = Search { inputs, runs, most_runs, limit, fuel };
        let envs: Vec<Env> = (0..runs).map(|number| search.env(number)).collect();
        let policy = Policy { most_proof_time, ..Policy::new(engines).with_search(search) };
        self.compare(before, after, &policy, &envs, history)
    }

    /// Runs an undecided boundary on the inputs that refute another one.
    pub fn run_on(&self, checked: &mut Checked<'_>, sides: [usize; 2], envs: &[Env]) {
        if envs.is_empty() || checked.verdict.is_proved() || checked.verdict.is_refuted() {
            return;
        }
        let [before, after] = sides.map(|at| &self.all[at]);
        let engines = Engines::interpreter();
        let again = self.compare(before, after, &Policy::new(&engines), envs, &mut History::default());
        checked.time += again.time;
        if again.verdict.is_refuted() {
            checked.verdict = again.verdict;
            checked.engine = again.engine;
        }
    }

    /// Runs two programs of the shader in the first environments by number, without a search for others.
    pub fn run(&self, sides: [usize; 2], fuel: u64, runs: usize) -> Checked<'a> {
        let env =
            |number| self.inputs.as_ref().map_or_else(|| Env::from_seed(number as u64), |inputs| inputs.env(number));
        let envs: Vec<Env> = (0..runs).map(|number| Env { fuel: Some(fuel), ..env(number) }).collect();
        let [before, after] = sides.map(|at| &self.all[at]);
        self.compare(before, after, &Policy::new(&Engines::interpreter()), &envs, &mut History::default())
    }

    /// The first boundary that is refuted by runs in some environments, or in the first ones by number.
    pub fn first_refutation(&self, env: &Env, runs: usize) -> Option<Checked<'a>> {
        let envs: Vec<Env> = match &self.inputs {
            Some(inputs) => {
                let own = (0..runs).map(|number| Env { fuel: env.fuel, ..inputs.env(number) });
                [inputs.with_booleans(env.clone())].into_iter().chain(own).collect()
            }
            None => vec![env.clone()],
        };
        let engines = Engines::interpreter();
        self.boundaries().into_iter().find_map(|(name, sides)| {
            let [before, after] = sides.map(|at| &self.all[at]);
            let checked = self.compare(before, after, &Policy::new(&engines), &envs, &mut History::default());
            checked.verdict.is_refuted().then(|| Checked { name: name.to_owned(), ..checked })
        })
    }

    /// Returns true if the driver may fill words of the constant file that no list has: those that describe images
    /// before a6xx, and buffers before a5xx.
    fn has_unlisted_words(&self) -> bool {
        let generation = self.target.generation;
        let Some(Ok(Snapshot::Nir(shader))) = self.all.first().map(|side| &side.program) else {
            return generation < Generation::A6xx;
        };
        let has = |kind: &str| {
            let function = &shader.entry;
            function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
                nir::InstrData::Intrinsic(intrinsic) => intrinsic.op.name().contains(kind),
                _ => false,
            })
        };
        generation < Generation::A6xx && has("image") || generation < Generation::A5xx && has("ssbo")
    }

    fn compare(
        &self,
        before: &Side<'a>,
        after: &Side<'a>,
        policy: &Policy<'_>,
        envs: &[Env],
        history: &mut History,
    ) -> Checked<'a> {
        let sections = [before.section, after.section];
        let unread = |name: &str, why: &str| Checked {
            name: after.name.clone(),
            sections,
            verdict: Verdict::Unknown(Unknown::Unsupported(format!("{name}: {why}").into())),
            engine: READER,
            sensitivity: None,
            time: Duration::ZERO,
            wrong_proof: None,
        };
        let (first, second) = match (&before.program, &after.program) {
            (Err(why), _) => return unread(&before.name, why),
            (_, Err(why)) => return unread(&after.name, why),
            (Ok(first), Ok(second)) => (first, second),
        };
        if self.lacks_constants
            && let Some(word) = new_constant(first, second, true).map(constant_name)
        {
            let why = format!(
                "it reads {word}, which the driver may fill: the lists before the final code, which tell, are not whole"
            );
            return Checked { engine: NO_ENGINE, ..unread(&after.name, &why) };
        }
        let statistics = after.statistics.as_ref();
        let facts = FinalFacts {
            // The text after the pass does not print the flags that release resources; the code has them.
            releases_unknown: after.name != CODE,
            branch_stack: statistics.and_then(|statistics| statistics.waves?.branchstack),
            early_preamble: statistics.and_then(Statistics::early_preamble),
        };
        let exceeded = || {
            let (statistics, program) = (statistics?, second.as_ir3()?);
            reserved::exceeded(program, statistics, &self.target).map(NotShown::Reserved)
        };
        let boundary = Boundary {
            kind: kind_of(before, after),
            facts,
            condition: if after.name == CODE { Some(&exceeded) } else { None },
            ..Boundary::of_texts(first.into(), second.into())
        };
        let mut scratch = Scratch::default();
        let mut judge = Judge::new(*policy, self.target, envs, &mut scratch).with_history(std::mem::take(history));
        let Judgment { verdict, engine, sensitivity, time, wrong_proofs, .. } = judge.judge(&boundary);
        *history = judge.into_history();
        if let Some(why) = self.mixed.as_ref().filter(|_| verdict.is_refuted()) {
            return Checked { engine: NO_ENGINE, ..unread(&after.name, why) };
        }
        if verdict.is_refuted()
            && !self.has_unlisted_words()
            && let Some(word) = new_constant(first, second, false).map(constant_name)
        {
            let why = format!("it reads {word}, and no line before the final code has what the driver fills it with");
            return Checked { engine: NO_ENGINE, ..unread(&after.name, &why) };
        }
        let wrong_proof = wrong_proofs.into_iter().next().map(|(_, why)| why);
        Checked { name: after.name.clone(), sections, verdict, engine, sensitivity, time, wrong_proof }
    }
}
