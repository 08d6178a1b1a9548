//! Verdicts on shaders that are kept from run to run, in the folder of `--cache`.
//!
//! The key of a shader is a hash of the text of its sections, of the sources of this program, and of all options that a
//! verdict depends on. An entry has the original verdicts; one that was no pass is none when it is read. An entry that
//! is incomplete, or has another key, is ignored, and the shader is checked again.

use super::Mesa;
use super::own::Own;
use super::report::{Missing, Report, Row, name_of, title_of};
use ir3_compiler::target::Target;
use ir3_harness::check::cache::{Cache, VerdictKey};
use ir3_harness::check::{COMPILER, Check, EngineKind, Engines, Summary};
use ir3_harness::mesa::{NO_ENGINE, READER, SAME_PROGRAM, Settings};
use ir3_programs::mesa::SectionKind;
use ir3_programs::mesa::native::listed_words;
use ir3_programs::mesa::shader::LogShader;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The folder, below that of `--cache`.
const FOLDER: &str = "shaders";

/// Keys of shaders, and the folder of their verdicts, if there is one.
pub struct KeptShaders {
    cache: Option<Cache>,
    /// The options that a verdict depends on.
    options: String,
}

/// An entry. The hash covers the key and the text, so that a changed letter is noticed.
#[derive(Serialize, Deserialize)]
struct Entry {
    hash: String,
    report: String,
}

#[derive(Serialize, Deserialize)]
struct KeptReport {
    explained: Vec<String>,
    problems: Vec<String>,
    contradictions: Vec<String>,
    rows: Vec<KeptRow>,
    own: Option<KeptOwn>,
}

#[derive(Serialize, Deserialize)]
struct KeptOwn {
    rows: Vec<KeptRow>,
    counts: Summary,
    refused: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct KeptRow {
    stage: String,
    engine: String,
    verdict: String,
    lanes: u64,
    seconds: f64,
    reason: Option<String>,
    sensitivity: Option<f64>,
    counts: Summary,
    kind: Option<String>,
    bundle: Option<PathBuf>,
}

impl KeptRow {
    /// `None` for results that are not kept: a crash of an engine or of the compiler, and a file that could not be
    /// written.
    fn of(row: &Row) -> Option<Self> {
        let Row { check, counts, kind, wrong_proof, bundle, page: _ } = row;
        let bundle = bundle.as_ref().map(|written| written.clone().ok());
        if wrong_proof.is_some() || counts.crashed > 0 || bundle == Some(None) {
            return None;
        }
        Some(Self {
            stage: check.stage.clone(),
            engine: check.engine.to_owned(),
            verdict: check.verdict.to_owned(),
            lanes: check.lanes,
            seconds: check.seconds,
            reason: check.reason.clone(),
            sensitivity: check.sensitivity,
            counts: counts.clone(),
            kind: kind.clone(),
            bundle: bundle.flatten(),
        })
    }

    fn row(self, program: &str, target: &Target) -> Result<Row, String> {
        let engines = EngineKind::ALL.map(EngineKind::name);
        let engine =
            engines.into_iter().chain([COMPILER, READER, SAME_PROGRAM, NO_ENGINE]).find(|name| *name == self.engine);
        let engine = engine.ok_or_else(|| format!("found the engine `{}`", self.engine))?;
        let Summary { checks, proved, tested, refuted, unknown, crashed, .. } = self.counts;
        let (verdict, is_counted) = match &*self.verdict {
            "proved" => ("proved", proved == 1),
            "tested" => ("tested", tested == 1),
            "refuted" => ("refuted", refuted == 1),
            "unknown" => ("unknown", unknown == 1),
            other => return Err(format!("found the verdict `{other}`")),
        };
        if !is_counted || checks != 1 || proved + tested + refuted + unknown != 1 || crashed != 0 {
            return Err(format!("found a count of `{verdict}` that is not one of it"));
        }
        let check = Check {
            program: program.to_owned(),
            gpu: target.name.to_owned(),
            stage: self.stage,
            engine,
            verdict,
            lanes: self.lanes,
            seconds: self.seconds,
            reason: self.reason,
            sensitivity: self.sensitivity,
        };
        // The time was that of another run.
        let counts = Summary { seconds: 0.0, ..self.counts };
        Ok(Row { check, counts, kind: self.kind, wrong_proof: None, bundle: self.bundle.map(Ok), page: None })
    }
}

fn rows_of(rows: &[Row]) -> Option<Vec<KeptRow>> {
    rows.iter().map(KeptRow::of).collect()
}

impl KeptShaders {
    /// The verdicts of runs with these options.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(mesa: &Mesa, engines: &Engines) -> io::Result<Self> {
        let folder = mesa.engines.cache_folder().map(|folder| folder.join(FOLDER));
        let cache = folder.as_deref().map(Cache::new).transpose()?;
        let Engines { kinds, smt } = engines;
        let own = mesa.compile.then(|| (mesa.compiler.options(), mesa.planted.plant.map(|plant| plant.name)));
        let Settings { engines: _, runs, most_runs, seed, fuel, limit } = mesa.settings(engines);
        let runs = (runs, most_runs, seed, fuel, limit);
        let gpu = mesa.gpu.given().is_some();
        let options = format!("{kinds:?} {:?} {:?} {runs:?} {own:?} {} {gpu}", smt.limits, smt.floats, mesa.explain);
        Ok(Self { cache, options })
    }

    /// The key of a shader: equal for the same text at any position of a log and with any output of an application
    /// around it.
    pub fn key(&self, shader: &LogShader, target: &Target) -> VerdictKey {
        // The reason of a refutation mentions that the GPU was guessed.
        let named = shader.gpu.map_or("", |gpu| gpu.name).to_owned();
        let mut texts = vec![self.options.clone(), target.name.to_owned(), named, shader.stage.clone()];
        for section in shader.sections() {
            texts.push(section.title());
            texts.push(match section.kind {
                SectionKind::Listing => listed_words(section).iter().map(|word| format!("{word:x} ")).collect(),
                SectionKind::Statistics => lines(section.text.lines().filter(|line| line.starts_with("; "))),
                _ => lines(section.text.lines().filter(|line| !line.is_empty())),
            });
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        VerdictKey::of(&texts)
    }

    /// The report of a run before, if there is one.
    ///
    /// # Errors
    /// The entry that is ignored, and why.
    pub fn get(
        &self,
        mesa: &Mesa,
        key: VerdictKey,
        path: &Path,
        shader: &LogShader,
        target: &Target,
    ) -> Result<Option<Report>, String> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let Some(Entry { hash, report }) = cache.read(key)? else { return Ok(None) };
        let wrong = |why: String| format!("the entry {key} of the cache: {why}");
        if hash != hash_of(key, &report) {
            return Err(wrong("its text is not that of its hash".to_owned()));
        }
        let kept: KeptReport = serde_json::from_str(&report).map_err(|error| wrong(error.to_string()))?;
        let name = name_of(path, shader);
        let rows = |kept: Vec<KeptRow>, name: &str| -> Result<Vec<Row>, String> {
            kept.into_iter().map(|row| row.row(name, target).map_err(wrong)).collect()
        };
        let own = match kept.own {
            Some(KeptOwn { rows: kept, counts, refused }) => {
                // Compiling it for its metrics takes less time than proofs.
                let (own, _) = mesa.own_costs(path, shader, target);
                let rows = rows(kept, &own.name)?;
                let counts = Summary { seconds: 0.0, ..counts };
                Some(Own { rows, counts, refused, ..own })
            }
            None => None,
        };
        let report = Report {
            title: title_of(path, shader, target),
            explained: kept.explained,
            problems: kept.problems,
            contradictions: kept.contradictions,
            is_broken: false,
            rows: rows(kept.rows, &name)?,
            own,
            is_kept: true,
            guessed_gpu: mesa.guessed_of(shader, target),
            not_compared: ir3_harness::mesa::not_compared(shader),
            missing: Missing::of(shader),
            origin: ir3_programs::mesa::origin::Origin::of(shader),
            name,
        };
        // The folder of a refutation is a part of the result.
        let has_folders = report.all_rows().all(|row| !matches!(&row.bundle, Some(Ok(folder)) if !folder.is_dir()));
        Ok(has_folders.then_some(report))
    }

    /// Keeps a report.
    pub fn put(&self, key: VerdictKey, report: &Report) {
        let Some(cache) = &self.cache else { return };
        if report.is_broken || report.is_kept {
            return;
        }
        let own = match &report.own {
            None => None,
            Some(own) => match rows_of(&own.rows) {
                Some(rows) => Some(KeptOwn { rows, counts: own.counts.clone(), refused: own.refused.clone() }),
                None => return,
            },
        };
        let Some(rows) = rows_of(&report.rows) else { return };
        let (explained, problems) = (report.explained.clone(), report.problems.clone());
        let contradictions = report.contradictions.clone();
        // A report of strings and numbers has a text.
        if let Ok(report) = serde_json::to_string(&KeptReport { explained, problems, contradictions, rows, own }) {
            cache.put(key, &Entry { hash: hash_of(key, &report), report });
        }
    }

    /// The first error of a write.
    pub fn failure(&self) -> Option<&str> {
        self.cache.as_ref()?.failure()
    }
}

fn hash_of(key: VerdictKey, report: &str) -> String {
    VerdictKey::of(&[&key.to_string(), report]).to_string()
}

fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}
