//! Hand-made pairs of programs, `corpus/pairs/<family>/<name>.pair`, and the verdict of every engine. A file may have
//! several pairs with one program before: `// after NAME` begins each of the others, whose name is that.
//!
//! The first line of a pair is the verdict, the second describes the pair:
//!
//! - `// expect: refuted`: the programs differ. No engine proves the pair, and a run (or the comparison of the headers)
//!   refutes it.
//! - `// expect: proved`: the programs are equivalent. The engine `smt` proves it (`by=registers`: that engine does),
//!   and no run refutes it.
//! - `// expect: not proved`: nothing is proved or refuted.
//! - `// expect: never proved`: the programs differ where random runs do not reach: nothing is proved, and a refutation
//!   is welcome.
//! - `// expect: not refuted`: the programs are equivalent, and nothing refutes the pair; a proof is welcome.
//! - `// expect: refused: TEXT`: one of the files is refused when it is read, by an error that contains the text
//!   (options come before the colon).
//!
//! Options may follow the verdict: `gpu=NAME` (a660 by default), `runs=N` (environments), and `assuming=NAME` (the
//! proof names this assumption). `BLESS=1` writes the verdicts that are found.

use ir3_compiler::target::Target;
use ir3_harness::check::{Answer, EngineKind, Engines};
use ir3_harness::check::{Smt, Verdict};
use ir3_programs::Question;
use ir3_programs::input;
use ir3_programs::mesa::pair_file::{TextPair, read_pairs};
use ir3_programs::seeds::env_seeds;
use ir3_prove::simulation::Limits;
use ir3_prove::solver::Budget;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::threads;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The default number of environments.
const RUNS: u32 = 24;

/// A verdict, expected or found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PairVerdict {
    Refuted,
    Proved,
    NotProved,
    NeverProved,
    NotRefuted,
    Refused(String),
    /// One engine proves a pair that another refutes. Never expected.
    Contradiction,
}

impl PairVerdict {
    fn text(&self) -> String {
        match self {
            Self::Refuted => "refuted".to_owned(),
            Self::Proved => "proved".to_owned(),
            Self::NotProved => "not proved".to_owned(),
            Self::NeverProved => "never proved".to_owned(),
            Self::NotRefuted => "not refuted".to_owned(),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Contradiction => "proved and refuted".to_owned(),
        }
    }

    /// Returns true if `found` satisfies the expectation `self`.
    fn holds(&self, found: &Self) -> bool {
        match (self, found) {
            (Self::Refused(part), Self::Refused(error)) => !part.is_empty() && error.contains(part.as_str()),
            (Self::NeverProved, Self::Refuted | Self::NotProved)
            | (Self::NotRefuted, Self::Proved | Self::NotProved) => true,
            (expected, found) => expected == found && *found != Self::Contradiction,
        }
    }
}

struct PairFile {
    name: String,
    path: PathBuf,
    /// The line of the verdict in the file, from 1 on.
    line: usize,
    /// The programs; why they cannot be read, if that is what is expected.
    text: Result<TextPair, String>,
    expected: PairVerdict,
    options: Vec<(String, String)>,
}

impl PairFile {
    fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Reads the pairs of a file.
    fn all_of(folder: &Path, file: &Path) -> Result<Vec<Self>, String> {
        let path = file.display().to_string();
        let relative = file.strip_prefix(folder).map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        let name = relative.strip_suffix(".pair").ok_or(format!("{path}: not a pair"))?;
        let (family, _) = name.split_once('/').ok_or(format!("{path}: not in a family"))?;
        let pairs = match read_pairs(file) {
            Ok(pairs) => pairs,
            Err(error) => {
                // Which of its parts is refused is known from the text alone.
                let text = std::fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))?;
                let head: Vec<String> =
                    text.lines().map_while(|line| line.strip_prefix("// ")).map(str::to_owned).collect();
                return Ok(vec![Self::read(name, file, 1, &head, Err(error.to_string()))?]);
            }
        };
        let of_text = |pair: TextPair| {
            let name = pair.name.as_ref().map_or_else(|| name.to_owned(), |name| format!("{family}/{name}"));
            let (line, head) = (pair.line, pair.head.clone());
            Self::read(&name, file, line, &head, Ok(pair))
        };
        pairs.into_iter().map(of_text).collect()
    }

    /// Reads the head of a pair.
    fn read(
        name: &str,
        file: &Path,
        at: usize,
        head: &[String],
        text: Result<TextPair, String>,
    ) -> Result<Self, String> {
        let path = format!("{}:{at}", file.display());
        let line = head.first().and_then(|line| line.strip_prefix("expect: "));
        let line = line.ok_or(format!("{path}: the first line is not `// expect: …`"))?;
        if head.get(1).is_none_or(|about| about.len() <= 10) {
            return Err(format!("{path}: the second line does not describe the pair"));
        }
        let (expected, options) = match line.strip_prefix("refused").and_then(|rest| rest.split_once(": ")) {
            Some((options, why)) => (
                PairVerdict::Refused(why.to_owned()),
                options
                    .split_whitespace()
                    .filter_map(|option| option.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            ),
            None => expectation(line).ok_or(format!("{path}: no verdict: `{line}`"))?,
        };
        Ok(Self { name: name.to_owned(), path: file.to_owned(), line: at, text, expected, options })
    }

    /// Runs the engines; returns the verdict, and their results as text.
    fn run_engines(&self) -> (PairVerdict, String) {
        let gpu = self.option("gpu").unwrap_or("a660");
        let target = Target::by_name(gpu).unwrap_or_else(|_| panic!("{}: no GPU {gpu}", self.name));
        let text = self.text.as_ref().map_err(Clone::clone);
        let load = |text| input::load_pair(text, Some(target)).map_err(|error| error.to_string());
        let [before, after] = match text.and_then(load) {
            Ok(sides) => sides,
            Err(error) => return (PairVerdict::Refused(error.clone()), error),
        };
        let runs = self.option("runs").map_or(RUNS, |runs| runs.parse().expect("a number of runs"));
        let envs: Vec<Env> = env_seeds(3, runs).into_iter().map(Env::from_seed).collect();
        let question =
            Question { stage: None, before: (&before).into(), after: (&after).into(), machine: &target, envs: &envs };
        let query = Budget { rlimit: 2_000_000, time: Duration::from_millis(800) };
        let limits = Limits { query, time: Duration::from_millis(2500), inputs: true };
        let panel = Engines::all(Smt { limits, ..Smt::default() });
        let answers = panel.answers(&question);
        let words = answers.iter().map(|Answer { engine, verdict, .. }| {
            let reason = verdict.reason().map_or(String::new(), |reason| format!(" ({reason})"));
            format!("{} {}{reason}", engine.name(), verdict.name())
        });
        let words = words.collect::<Vec<_>>().join("; ");
        let refuted = answers.iter().any(|answer| matches!(answer.verdict, Verdict::Refuted(_)));
        let proved = |engine: EngineKind| {
            let answer = answers.iter().find(|answer| answer.engine == engine);
            match answer.map(|answer| &answer.verdict) {
                Some(Verdict::Proved { assumptions }) => Some(assumptions),
                _ => None,
            }
        };
        let (by, other) = match self.option("by") {
            Some("registers") => (EngineKind::Registers, EngineKind::Smt),
            _ => (EngineKind::Smt, EngineKind::Registers),
        };
        let outcome = match (refuted, proved(by), proved(other)) {
            (true, None, None) => PairVerdict::Refuted,
            (true, ..) => PairVerdict::Contradiction,
            (false, Some(assumptions), _) if self.option("assuming").is_none_or(|name| assumptions.contains(&name)) => {
                PairVerdict::Proved
            }
            // A proof counts, whichever engine it is expected of.
            (false, None, Some(_)) if matches!(self.expected, PairVerdict::NotProved | PairVerdict::NeverProved) => {
                PairVerdict::Proved
            }
            (false, Some(_), _) if matches!(self.expected, PairVerdict::NotProved | PairVerdict::NeverProved) => {
                PairVerdict::Proved
            }
            (false, ..) => PairVerdict::NotProved,
        };
        (outcome, words)
    }
}

/// A verdict with its options.
fn expectation(line: &str) -> Option<(PairVerdict, Vec<(String, String)>)> {
    let verdicts = [
        ("refuted", PairVerdict::Refuted),
        ("proved", PairVerdict::Proved),
        ("not proved", PairVerdict::NotProved),
        ("never proved", PairVerdict::NeverProved),
        ("not refuted", PairVerdict::NotRefuted),
    ];
    let (rest, outcome) = verdicts.into_iter().find_map(|(word, outcome)| Some((line.strip_prefix(word)?, outcome)))?;
    let options = rest.split_whitespace().map(|word| {
        let (key, value) = word.split_once('=')?;
        ["gpu", "runs", "by", "assuming"].contains(&key).then(|| (key.to_owned(), value.to_owned()))
    });
    Some((outcome, options.collect::<Option<_>>()?))
}

/// Writes the verdict that was found to the first line of the pair.
fn bless(pair: &PairFile, found: &PairVerdict) {
    let text = std::fs::read_to_string(&pair.path).expect("a file that was read before");
    let mut line = format!("// expect: {}", found.text());
    if let PairVerdict::Refused(why) = found {
        // Without the place, which begins with a path.
        let why = why.rsplit_once(": ").map_or(why.as_str(), |(_, why)| why);
        line = format!("// expect: refused: {why}");
    }
    for (key, value) in &pair.options {
        line += &format!(" {key}={value}");
    }
    let replaced = |(number, old): (usize, &str)| if number == pair.line { line.clone() } else { old.to_owned() };
    let text: String = (1..).zip(text.lines()).map(|line| replaced(line) + "\n").collect();
    std::fs::write(&pair.path, text).expect("a file that can be written");
}

fn pairs(folder: &Path) -> Vec<PairFile> {
    let mut pairs = Vec::new();
    let mut problems = Vec::new();
    for family in std::fs::read_dir(folder).expect("corpus/pairs") {
        let family = family.expect("an entry of corpus/pairs").path();
        let files: Vec<PathBuf> =
            std::fs::read_dir(&family).expect("a family").map(|file| file.expect("a file").path()).collect();
        for path in files {
            match PairFile::all_of(folder, &path) {
                Ok(of_file) => pairs.extend(of_file),
                Err(problem) => problems.push(problem),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    pairs.sort_by(|a, b| a.name.cmp(&b.name));
    let twice: Vec<&str> = pairs.windows(2).filter(|two| two[0].name == two[1].name).map(|two| &*two[0].name).collect();
    assert!(twice.is_empty(), "two pairs of one name: {twice:?}");
    pairs
}

#[test]
fn every_pair_has_its_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/pairs");
    let only = std::env::var("PAIRS").unwrap_or_default();
    let pairs: Vec<PairFile> = pairs(&folder).into_iter().filter(|pair| pair.name.contains(&only)).collect();
    let blesses = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let problems = Mutex::new(Vec::new());
    let families = Mutex::new(BTreeMap::<String, BTreeMap<String, usize>>::new());
    threads::for_each(2, pairs.iter(), &AtomicBool::new(false), |_, pair| {
        let (found, words) = pair.run_engines();
        let problem = match pair.expected.holds(&found) {
            true => None,
            false if blesses && found != PairVerdict::Contradiction => {
                bless(pair, &found);
                None
            }
            false => Some(format!("expected {}, found {words}", pair.expected.text())),
        };
        if let Some(problem) = problem {
            problems.lock().expect("no panic").push(format!("{}: {problem}", pair.name));
        }
        if !only.is_empty() {
            println!("{}: {words}", pair.name);
        }
        let family = pair.name.split('/').next().unwrap_or_default().to_owned();
        let kind = match &pair.expected {
            PairVerdict::Refused(_) => "refused".to_owned(),
            expected => expected.text(),
        };
        *families.lock().expect("no panic").entry(family).or_default().entry(kind).or_default() += 1;
    });
    for (family, counts) in families.into_inner().expect("no panic") {
        println!("{family}: {counts:?}");
    }
    let mut problems = problems.into_inner().expect("no panic");
    problems.sort();
    assert!(problems.is_empty(), "{} pairs:\n{}", problems.len(), problems.join("\n"));
    assert!(!only.is_empty() || pairs.len() >= LEAST, "{} pairs", pairs.len());
}

/// The least number of pairs.
const LEAST: usize = 150;
