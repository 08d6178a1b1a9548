//! Reduces a program while the compiler fails on it in the same way.
//!
//! The reducer works on nir; each candidate is translated to SPIR-V and compiled again. One that SPIR-V cannot express
//! is not taken. If no step makes the nir smaller, instructions of SPIR-V count, too: the same nir can need more or
//! fewer of them. Each candidate costs a run of the compiler, so the random walk of the search ends as soon as both are
//! easy to read. nir's values have no type; those of SPIR-V are floats or integers, with a cast between them: so
//! additions and the like become those of the other kind, too.

use super::command::RunError;
use super::compiler::Compiler;
use super::observe::{self, Found, LogRules};
use crate::reduce::{self, Kind, NirStep, Options, Progress, Size, Subject};
use ir3_compiler::nir::{Instr, InstrData, Op, Shader};
use ir3_programs::spirv::Module;
use ir3_semantics::support::panics::catch;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program of up to this number of instructions is easy to read: of nir, and of SPIR-V.
const EASY: usize = 10;

/// The settings of a reduction.
pub struct Reduction<'a> {
    /// The compiler.
    pub compiler: &'a Compiler,
    /// The rules by which its logs are checked.
    pub rules: &'a LogRules<'a>,
    /// The number of threads.
    pub jobs: usize,
    /// Stop after this number of candidates.
    pub candidates: u64,
    /// Stop after this time.
    pub time: Option<Duration>,
    /// The folder for the files that the compiler reads; each thread has one of its own in it.
    pub folder: &'a Path,
    /// Stops it early.
    pub stop: &'a AtomicBool,
}

/// A reduced program.
#[derive(Debug)]
pub struct Reduced {
    /// The program.
    pub shader: Shader,
    /// Its failure, which is the same but for its values.
    pub found: Found,
    /// No known step makes it smaller.
    pub minimal: bool,
    /// The number of candidates that were compiled.
    pub candidates: u64,
}

impl Reduction<'_> {
    /// Reduces a program. `None` if the compiler does not fail on it again.
    ///
    /// # Errors
    /// If the compiler cannot be started, or files not be written.
    pub fn run(
        &self,
        shader: &Shader,
        found: &Found,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Reduced>, RunError> {
        let start = Instant::now();
        let failure: Mutex<Option<RunError>> = Mutex::new(None);
        let failed = || failure.lock().unwrap_or_else(PoisonError::into_inner);
        let folders: Vec<PathBuf> =
            (0..self.jobs.max(1)).map(|job| self.folder.join(format!("reduce-{job}"))).collect();
        for folder in &folders {
            fs::create_dir_all(folder).map_err(|cause| RunError::File { path: folder.display().to_string(), cause })?;
        }
        let same = |shader: &Shader, folder: &Path| {
            let fails = || observe::fails_so(self.compiler, self.rules, shader, found, folder, self.stop);
            // A panic of an engine is reproduced only if the panic is the failure.
            match catch(fails) {
                Ok(Ok(fails)) => fails,
                Ok(Err(error)) => {
                    failed().get_or_insert(error);
                    false
                }
                Err(_) => false,
            }
        };
        let mut goes_on = |state: &Progress| {
            progress(state);
            let late = self.time.is_some_and(|time| start.elapsed() >= time);
            !late && !self.stop.load(Ordering::Relaxed) && failed().is_none()
        };
        let mut tests: Vec<_> =
            folders.iter().map(|folder| |handed: &HandedOver| same(&handed.shader, folder)).collect();
        let options = Options { candidates: Some(self.candidates), checkpoint: None };
        let handed = HandedOver { shader: shader.clone(), counted: Counted::Nir };
        let first = reduce::run_parallel(&handed, &mut tests, &options, &mut goes_on);
        // There is no checkpoint that could be wrong.
        let Ok(first) = first else { return Ok(None) };
        let (mut program, mut minimal, mut candidates) =
            (first.program.shader, first.minimal, first.progress.candidates);
        if first.reproduced && spirv_size(&program) > EASY && goes_on(&first.progress) {
            let handed = HandedOver { shader: program.clone(), counted: Counted::Both };
            let left = Options { candidates: Some(self.candidates / 2), checkpoint: None };
            if let Ok(second) = reduce::run_parallel(&handed, &mut tests, &left, &mut goes_on)
                && second.reproduced
            {
                program = second.program.shader;
                minimal &= second.minimal;
                candidates += second.progress.candidates;
            }
        }
        if let Some(error) = failed().take() {
            return Err(error);
        }
        if !first.reproduced || self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The whole check: of several shaders or passes that fail, the first one counts.
        let seen = catch(|| observe::observe(self.compiler, self.rules, &program, &folders[0], self.stop));
        let Ok(seen) = seen else { return Ok(None) };
        let again = seen?.found.filter(|again| again.failure == found.failure);
        Ok(again.map(|found| Reduced { shader: program, found, minimal, candidates }))
    }
}

/// The instructions of SPIR-V in function bodies; many for a program that has no form in it, or on which its
/// translation panics.
#[must_use]
pub fn spirv_size(shader: &Shader) -> usize {
    let size = catch(|| Module::of(shader).map(|module| module.instruction_count()));
    size.ok().and_then(Result::ok).unwrap_or(usize::from(u16::MAX))
}

/// The instructions that make up the size of a program.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Nir,
    /// Instructions of SPIR-V count as those of nir do.
    Both,
}

/// A program that the compiler gets.
#[derive(Clone, PartialEq)]
struct HandedOver {
    shader: Shader,
    counted: Counted,
}

impl HandedOver {
    fn with(&self, shader: Shader) -> Self {
        Self { shader, counted: self.counted }
    }
}

/// A change of a program that the compiler gets.
enum HandedStep {
    Nir(NirStep),
    /// An operation becomes another one.
    Other(Instr, Op),
}

/// Operations of integers, and those of floats that are like them.
const ALIKE: [(Op, Op); 7] = [
    (Op::Iadd, Op::Fadd),
    (Op::Isub, Op::Fsub),
    (Op::Imul, Op::Fmul),
    (Op::Imin, Op::Fmin),
    (Op::Imax, Op::Fmax),
    (Op::Ineg, Op::Fneg),
    (Op::Iabs, Op::Fabs),
];

/// The kinds that are added: to floats, to integers.
const TO_OTHERS: [Kind; 2] =
    [Kind { name: "operations of floats", together: true }, Kind { name: "operations of integers", together: true }];

/// The operations that become one of the other kind.
fn to_others(shader: &Shader, floats: bool) -> Vec<HandedStep> {
    let function = &shader.entry;
    let other = |(_, instr): (_, Instr)| {
        let InstrData::Alu(alu) = &function.instrs[instr] else { return None };
        let pair = |&(integer, float): &(Op, Op)| if floats { (integer, float) } else { (float, integer) };
        let (_, to) = ALIKE.iter().map(pair).find(|&(from, _)| from == alu.op)?;
        // There are no floats of 8 bits.
        (function.defs[alu.def].bit_size >= 16).then_some(HandedStep::Other(instr, to))
    };
    function.instrs_in_order().filter_map(other).collect()
}

impl Subject for HandedOver {
    type Step = HandedStep;

    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.shader.kinds();
        if self.counted == Counted::Both {
            kinds.extend(TO_OTHERS);
        }
        kinds
    }

    fn list(&self, kind: usize) -> Vec<HandedStep> {
        match kind.checked_sub(self.shader.kinds().len()) {
            None => self.shader.list(kind).into_iter().map(HandedStep::Nir).collect(),
            Some(own) => to_others(&self.shader, own == 0),
        }
    }

    fn edited(&self, steps: &[&HandedStep], sweep: bool) -> Option<Self> {
        // All are of one kind.
        let nir: Vec<&NirStep> =
            steps.iter().filter_map(|step| if let HandedStep::Nir(step) = step { Some(step) } else { None }).collect();
        if !nir.is_empty() {
            return self.shader.edited(&nir, sweep).map(|shader| self.with(shader));
        }
        let mut shader = self.shader.clone();
        for step in steps {
            if let HandedStep::Other(instr, op) = step
                && let InstrData::Alu(alu) = &mut shader.entry.instrs[*instr]
            {
                alu.op = *op;
                (alu.exact, alu.no_signed_wrap, alu.no_unsigned_wrap) = (false, false, false);
            }
        }
        Some(self.with(shader))
    }

    fn swept(&self) -> Self {
        self.with(self.shader.swept())
    }

    fn finished(&self) -> Option<Self> {
        self.shader.finished().map(|shader| self.with(shader))
    }

    fn size(&self) -> Size {
        let size = self.shader.size();
        match self.counted {
            Counted::Nir => size,
            Counted::Both => Size { instructions: size.instructions + spirv_size(&self.shader) as u32, ..size },
        }
    }

    fn is_small(&self) -> bool {
        self.shader.instruction_count() <= EASY && (self.counted == Counted::Nir || spirv_size(&self.shader) <= EASY)
    }

    fn shuffled(&self, number: usize, sweep: bool) -> Option<Self> {
        self.shader.shuffled(number, sweep).map(|shader| self.with(shader))
    }

    fn text(&self) -> String {
        self.shader.text()
    }

    fn read(&self, text: &str) -> Option<Self> {
        self.shader.read(text).map(|shader| self.with(shader))
    }
}
