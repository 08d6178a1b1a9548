//! The report on one shader.

use super::Mesa;
use super::own::Own;
use ir3_compiler::target::Target;
use ir3_harness::check::{Check, Summary, Unknown, Verdict};
use ir3_harness::mesa::{Checked, Settings, check_shader, not_compared};
use ir3_programs::mesa::InputError;
use ir3_programs::mesa::origin::Origin;
use ir3_programs::mesa::shader::LogShader;
use ir3_report::page::PairPage;
use ir3_report::pair::PairEvidence;
use ir3_report::pass;
use std::path::{Path, PathBuf};

/// A row of a table.
pub struct Row {
    pub check: Check,
    /// The count of this verdict alone.
    pub counts: Summary,
    /// Why it is unknown, without the place.
    pub kind: Option<String>,
    pub wrong_proof: Option<String>,
    /// The folder of a refutation, or why it could not be written.
    pub bundle: Option<Result<PathBuf, String>>,
    /// The page of a refutation, if there is a folder for it.
    pub page: Option<PairPage>,
}

impl Row {
    pub fn new(check: Check, verdict: &Verdict) -> Self {
        let mut counts = Summary { seconds: check.seconds, ..Summary::default() };
        counts.count(verdict);
        let kind = match verdict {
            Verdict::Unknown(unknown) => Some(unknown.kind().into_owned()),
            _ => None,
        };
        Self { check, counts, kind, wrong_proof: None, bundle: None, page: None }
    }

    pub fn is_pass(&self) -> bool {
        matches!(self.check.verdict, "proved" | "tested")
    }
}

/// The report on a shader.
pub struct Report {
    /// The name of the shader: that of the log and its number.
    pub name: String,
    pub title: String,
    pub explained: Vec<String>,
    pub problems: Vec<String>,
    /// Statements of two sections that exclude each other.
    pub contradictions: Vec<String>,
    /// A part of it could not be read.
    pub is_broken: bool,
    pub rows: Vec<Row>,
    /// Its nir through our own backend.
    pub own: Option<Own>,
    /// The verdicts are those of a run before.
    pub is_kept: bool,
    /// The GPU, if it was guessed from the generation.
    pub guessed_gpu: Option<&'static str>,
    /// Numbers for the driver that are compared with nothing.
    pub not_compared: Vec<&'static str>,
    /// The sections that its log lacks.
    pub missing: Option<Missing>,
    /// The origin of its text.
    pub origin: Origin,
}

/// Sections that `IR3_SHADER_DEBUG` did not enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// The programs after passes: `optmsgs` prints them.
    Passes,
    /// The nir: the name of the stage prints it.
    Nir,
    /// The final assembly: the name of the stage prints it.
    Assembly,
}

impl Missing {
    /// The first kind of section that a shader lacks. One that could not be read has a message of its own.
    pub fn of(shader: &LogShader) -> Option<Self> {
        if !shader.broken.is_empty() || shader.without_start.is_some() {
            None
        } else if shader.nir.is_none() {
            Some(Self::Nir)
        } else if shader.assembly.is_none() {
            Some(Self::Assembly)
        } else {
            shader.passes.is_empty().then_some(Self::Passes)
        }
    }
}

impl Report {
    /// All rows, Mesa's and our own.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(self.own.iter().flat_map(|own| &own.rows))
    }
}

/// The name of a shader.
pub fn name_of(path: &Path, shader: &LogShader) -> String {
    format!("{}#{}", path.display(), shader.number)
}

/// The title of its table.
pub fn title_of(path: &Path, shader: &LogShader, target: &Target) -> String {
    let stage = if shader.stage.is_empty() { "shader without nir" } else { &shader.stage };
    format!("{}: {stage} (line {}), {}", name_of(path, shader), shader.line, target.name)
}

/// Adds to the reason of a refutation that the GPU was guessed: the refuted behaviour may be right on another GPU.
fn say_guess(check: &mut Check, target: &Target) {
    if let (Some(reason), "refuted") = (&mut check.reason, check.verdict) {
        let gpu = target.name;
        *reason += &format!(" (the log does not name its GPU, checked as {gpu}: name it with `--gpu`)");
    }
}

impl Mesa {
    /// The GPU of a shader.
    pub fn target_of(&self, shader: &LogShader) -> Target {
        shader.target(self.gpu.given())
    }

    /// The GPU of a shader, if it is a guess.
    pub fn guessed_of(&self, shader: &LogShader, target: &Target) -> Option<&'static str> {
        shader.is_target_guessed(self.gpu.given()).then_some(target.name)
    }

    /// Takes back refutations that depend on the GPU, where the log names neither it nor its generation: a boundary
    /// that is refuted on one that has all instructions of the code, and not on another one, is unknown.
    fn doubt(&self, path: &Path, shader: &LogShader, settings: &Settings<'_>, all: &mut [Checked<'_>]) {
        let targets = shader.targets(self.gpu.given());
        let Some((guess, others)) = targets.split_first() else { return };
        for other in others {
            if !all.iter().any(|checked| matches!(checked.verdict, Verdict::Refuted(_))) {
                return;
            }
            let mut verdicts = Vec::new();
            check_shader(path, shader, other, settings, &mut |checked| verdicts.push(checked.verdict));
            for (checked, verdict) in all.iter_mut().zip(verdicts) {
                if let (Verdict::Refuted(_), false) = (&checked.verdict, matches!(verdict, Verdict::Refuted(_))) {
                    let what = format!(
                        "the log does not name its GPU: refuted on {}, {} on {}; name it with `--gpu`",
                        guess.name,
                        verdict.name(),
                        other.name
                    );
                    checked.verdict = Verdict::Unknown(Unknown::Unsupported(what.into()));
                }
            }
        }
    }

    /// Runs all enabled checks on a shader.
    ///
    /// # Errors
    /// If the log names another generation than that of the given GPU.
    pub fn check(&self, path: &Path, shader: &LogShader, settings: &Settings<'_>) -> Result<Report, InputError> {
        let target = self.target_of(shader);
        if let Some(error) = shader.other_generation(path, &target) {
            return Err(error);
        }
        let name = name_of(path, shader);
        let guessed_gpu = self.guessed_of(shader, &target);
        let mut all = Vec::new();
        let recovered = check_shader(path, shader, &target, settings, &mut |checked| all.push(checked));
        self.doubt(path, shader, settings, &mut all);
        let mut rows = Vec::new();
        for mut checked in all {
            let refuted = checked.refuted(&target);
            let mut check = check_of(&name, &checked, &target);
            if guessed_gpu.is_some() {
                say_guess(&mut check, &target);
            }
            let mut row = Row::new(check, &checked.verdict);
            row.wrong_proof = checked.wrong_proof.take();
            row.bundle =
                refuted.map(|refuted| pass::write(&self.failures, &name, &refuted).map_err(|error| error.to_string()));
            if let (Verdict::Refuted(refutation), true) = (&checked.verdict, self.html.is_some()) {
                let evidence = PairEvidence::new(format!("{name}: {}", checked.name), refutation, &target);
                row.page = Some(PairPage::of(&evidence));
            }
            rows.push(row);
        }
        let own = self.compile.then(|| self.own(path, shader, &target, settings));
        Ok(Report {
            title: title_of(path, shader, &target),
            explained: if self.explain { recovered.inferred } else { Vec::new() },
            problems: recovered.problems,
            contradictions: recovered.contradictions.iter().map(ToString::to_string).collect(),
            is_broken: recovered.unread > 0,
            rows,
            own,
            is_kept: false,
            guessed_gpu,
            not_compared: not_compared(shader),
            missing: Missing::of(shader),
            origin: Origin::of(shader),
            name,
        })
    }
}

fn check_of(name: &str, checked: &Checked<'_>, target: &Target) -> Check {
    Check {
        program: name.to_owned(),
        gpu: target.name.to_owned(),
        stage: checked.name.clone(),
        engine: checked.engine,
        verdict: checked.verdict.name(),
        lanes: checked.verdict.lanes(),
        seconds: checked.time.as_secs_f64(),
        reason: checked.verdict.reason(),
        sensitivity: checked.sensitivity.map(|it| it.share()),
    }
}
