//! Logs that lack sections: attributes that a section leaves out are recovered from the others, or its boundaries are
//! unknown; none is refuted that the whole log does not refute.
//!
//! `IR3_LOGS=all` makes every cut of every log, and prints the verdicts by kind of cut.

use super::common;
use crate::common::effort::{effort, one_of};
use crate::common::folder::{Folder, run};
use ir3_compiler::log_line::LogLine;
use ir3_compiler::nir;
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_harness::check::{Engines, Smt, Verdict};
use ir3_harness::mesa::{CODE, Settings, Sides, check_shader, print};
use ir3_programs::mesa::input::collect_paths;
use ir3_programs::mesa::shader::shaders_of;
use ir3_prove::simulation::Limits;
use ir3_semantics::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kind of a piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// The text before the first headline.
    Other,
    Nir,
    Pass(String),
    /// The final assembly and the lists after it.
    Code,
    /// The pass once more, with the words.
    Again,
}

/// A headline and the lines after it, unchanged from the log.
pub struct Piece {
    pub kind: PieceKind,
    pub text: String,
}

/// Splits a log at its headlines.
pub fn pieces(log: &str) -> Vec<Piece> {
    let mut all = vec![Piece { kind: PieceKind::Other, text: String::new() }];
    let mut codes = BTreeSet::new();
    for line in log.split_inclusive('\n') {
        let text = LogLine::of(line.trim_end_matches('\n')).text;
        let kind = if text.starts_with("NIR (final form) for ") {
            Some(PieceKind::Nir)
        } else if let Some(name) = text.strip_prefix("AFTER: ") {
            Some(PieceKind::Pass(name.trim_end_matches(':').to_owned()))
        } else if text.starts_with("Native code for ") {
            Some(if codes.insert(text.to_string()) { PieceKind::Code } else { PieceKind::Again })
        } else {
            None
        };
        match kind {
            Some(kind) => all.push(Piece { kind, text: line.to_owned() }),
            None => all.last_mut().expect("a piece").text.push_str(line),
        }
    }
    all
}

/// The sections of a log that are kept.
#[derive(Clone, Debug)]
enum Cut {
    /// No passes and no words: the output of `IR3_SHADER_DEBUG=vs,fs,cs`.
    NirAndCode,
    /// No passes.
    NirAndWords,
    /// The code only.
    CodeOnly,
    /// The passes only: the output of `IR3_SHADER_DEBUG=optmsgs`, and the driver's own shaders.
    PassesOnly,
    /// The log without nir.
    NoNir,
    /// The log with one pass only.
    OnlyPass(String),
    /// The log without one pass.
    NoPass(String),
    /// The log with the first passes only.
    FirstPasses(usize),
    /// The log ends after a number of pieces.
    Start(usize),
    /// The log begins with a piece of a number.
    End(usize),
}

impl Cut {
    /// The name of the kind in tables.
    const fn name(&self) -> &'static str {
        match self {
            Self::NirAndCode => "nir and assembly",
            Self::NirAndWords => "nir, assembly, words",
            Self::CodeOnly => "assembly only",
            Self::PassesOnly => "passes only",
            Self::NoNir => "without nir",
            Self::OnlyPass(_) => "only one pass",
            Self::NoPass(_) => "without one pass",
            Self::FirstPasses(_) => "first passes",
            Self::Start(_) => "cut at the end",
            Self::End(_) => "cut at the start",
        }
    }

    fn of(&self, pieces: &[Piece]) -> String {
        use PieceKind::{Again, Code, Nir, Other, Pass};
        let names = pass_names(pieces);
        let keeps = |number: usize, kind: &PieceKind| match (self, kind) {
            (Self::Start(count), _) => number < *count,
            (Self::End(first), _) => number >= *first,
            (_, Other) | (Self::NirAndCode, Nir | Code) | (Self::CodeOnly, Code | Again) => true,
            (Self::NirAndWords, kind) => !matches!(kind, Pass(_)),
            (Self::NirAndCode | Self::CodeOnly, _) => false,
            (Self::PassesOnly, kind) => matches!(kind, Pass(_)),
            (Self::NoNir, kind) => *kind != Nir,
            (Self::OnlyPass(only), Pass(name)) => name == only,
            (Self::NoPass(without), Pass(name)) => name != without,
            (Self::FirstPasses(count), Pass(name)) => names[..*count].contains(name),
            (Self::OnlyPass(_) | Self::NoPass(_) | Self::FirstPasses(_), _) => true,
        };
        let kept = pieces.iter().enumerate().filter(|(number, piece)| keeps(*number, &piece.kind));
        kept.map(|(_, piece)| piece.text.as_str()).collect()
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyPass(name) | Self::NoPass(name) => write!(f, "{}: {name}", self.name()),
            Self::FirstPasses(number) | Self::Start(number) | Self::End(number) => {
                write!(f, "{}: {number}", self.name())
            }
            _ => f.write_str(self.name()),
        }
    }
}

/// The names of the passes of a log, each once.
fn pass_names(pieces: &[Piece]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in pieces {
        if let PieceKind::Pass(name) = &piece.kind
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

/// All cuts of a log, or of each kind a few.
fn cuts(pieces: &[Piece], few: Option<usize>) -> Vec<Cut> {
    let names = pass_names(pieces);
    let mut all = vec![Cut::NirAndCode, Cut::NirAndWords, Cut::CodeOnly, Cut::PassesOnly, Cut::NoNir];
    let of_kinds: [Vec<Cut>; 5] = [
        names.iter().cloned().map(Cut::OnlyPass).collect(),
        names.iter().cloned().map(Cut::NoPass).collect(),
        (1..names.len()).map(Cut::FirstPasses).collect(),
        (2..pieces.len()).map(Cut::Start).collect(),
        (2..pieces.len()).map(Cut::End).collect(),
    ];
    for kind in of_kinds {
        match few {
            None => all.extend(kind),
            Some(number) => all.extend(kind.get(number.wrapping_mul(7) % kind.len().max(1)).cloned()),
        }
    }
    all
}

/// Counts of verdicts by their names.
type Counts = BTreeMap<&'static str, usize>;

/// Few runs.
fn quick<'a>(engines: &'a Engines) -> Settings<'a> {
    Settings { engines, runs: 1, most_runs: 2, seed: 1, fuel: 20_000, limit: Duration::from_millis(10) }
}

/// The boundaries of all shaders of a log.
fn check(path: &Path, text: &str, target: &Target, settings: &Settings<'_>) -> Vec<(String, Verdict)> {
    let mut rows = Vec::new();
    for shader in shaders_of(path, text) {
        check_shader(path, &shader, target, settings, &mut |checked| {
            assert_eq!(checked.wrong_proof, None, "{}: {}", path.display(), checked.name);
            rows.push((checked.name, checked.verdict));
        });
    }
    rows
}

/// A boundary, the name of its verdict, and the reason.
pub struct Row {
    pub name: String,
    pub verdict: &'static str,
    pub reason: String,
}

/// The boundaries of a text, with few runs.
pub fn rows_of(path: &Path, text: &str, target: &Target, engines: &Engines) -> Vec<Row> {
    let rows = check(path, text, target, &quick(engines)).into_iter();
    rows.map(|(name, verdict)| Row { name, verdict: verdict.name(), reason: verdict.reason().unwrap_or_default() })
        .collect()
}

/// The verdicts on the boundaries of one log, cut in several ways: most have the same two programs in several of them.
#[derive(Default)]
struct Verdicts {
    programs: Vec<Snapshot>,
    known: BTreeMap<(usize, usize, String), (&'static str, String)>,
}

impl Verdicts {
    /// The number of a program.
    fn number(&mut self, program: &Snapshot) -> usize {
        let is_same = |other: &Snapshot| match (program, other) {
            (Snapshot::Nir(a), Snapshot::Nir(b)) => a == b,
            (Snapshot::Ir3(a), Snapshot::Ir3(b)) => a == b,
            _ => false,
        };
        self.programs.iter().position(is_same).unwrap_or_else(|| {
            self.programs.push(program.clone());
            self.programs.len() - 1
        })
    }

    /// The boundaries of all shaders of a text, each with the name of its verdict and the reason.
    fn of(&mut self, path: &Path, text: &str, target: &Target) -> Vec<(String, &'static str, String)> {
        let engines = Engines::interpreter();
        let settings = quick(&engines);
        let mut rows = Vec::new();
        for shader in shaders_of(path, text) {
            let (sides, _) = Sides::of(path, &shader, target, settings.seed);
            for (name, at) in sides.boundaries() {
                let judge = || {
                    let verdict = sides.judge(at, &settings).verdict;
                    (verdict.name(), verdict.reason().unwrap_or_default())
                };
                let (verdict, reason) = match at.map(|at| sides.all[at].program.as_ref()) {
                    [Ok(before), Ok(after)] => {
                        let key = (self.number(before), self.number(after), name.to_owned());
                        self.known.entry(key).or_insert_with(judge).clone()
                    }
                    _ => judge(),
                };
                rows.push((name.to_owned(), verdict, reason));
            }
        }
        rows
    }
}

/// Cuts a log, adds up the verdicts, and returns the wrong refutations.
fn cut_log(
    path: &Path,
    text: &str,
    target: &Target,
    few: Option<usize>,
    counts: &mut BTreeMap<&'static str, Counts>,
) -> Vec<String> {
    let pieces = pieces(text);
    let mut verdicts = Verdicts::default();
    let mut wrong = Vec::new();
    for cut in cuts(&pieces, few) {
        for (name, verdict, reason) in verdicts.of(path, &cut.of(&pieces), target) {
            *counts.entry(cut.name()).or_default().entry(verdict).or_default() += 1;
            if verdict == "refuted" {
                wrong.push(format!("{}, {cut}: {name} is refuted: {reason}", path.display()));
            }
        }
    }
    if !wrong.is_empty() {
        let whole = check(path, text, target, &quick(&common::engines()));
        if whole.iter().any(|(_, verdict)| verdict.is_refuted()) {
            // A bug of Mesa, in any sections of the log.
            wrong.clear();
        }
    }
    wrong
}

fn print_counts(counts: &BTreeMap<&'static str, Counts>) {
    for (cut, verdicts) in counts {
        println!("{cut}: {verdicts:?}");
    }
}

/// The GPU that a folder of logs is named after: `a660-more`, `25.0-a660`.
pub fn target_of(path: &Path) -> Target {
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("a folder");
    let mut parts = folder.split('-');
    parts.find_map(|part| Target::by_name(part).ok()).expect("the name of a GPU")
}

/// The real logs, and those of the Vulkan driver.
pub fn real_logs() -> Option<Vec<PathBuf>> {
    let mut paths = common::logs()?;
    let turnip = paths.first().and_then(|path| path.ancestors().nth(4)).map(|shared| shared.join("turnip"));
    paths.extend(turnip.and_then(|folder| collect_paths(&[folder]).ok()).unwrap_or_default());
    Some(paths)
}

#[test]
fn real_logs_without_sections_are_not_refuted() {
    let Some(paths) = real_logs() else { return };
    let is_whole = std::env::var("IR3_LOGS").is_ok_and(|logs| logs == "all");
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let text = fs::read_to_string(path).expect("a log");
        if is_whole {
            wrong.extend(cut_log(path, &text, &target_of(path), None, &mut counts));
        } else if number % 48 == 11 && text.len() < 400_000 {
            wrong.extend(cut_log(path, &text, &target_of(path), Some(number), &mut counts));
        }
    }
    print_counts(&counts);
    assert_eq!(wrong, Vec::<String>::new());
    let of_code = &counts["nir and assembly"];
    let passed = of_code.get("tested").copied().unwrap_or(0) + of_code.get("proved").copied().unwrap_or(0);
    assert!(passed * 10 > of_code.values().sum::<usize>() * 8, "{of_code:?}");
}

/// A program through our own backend, as a log.
pub fn own_log(path: &Path, target: &Target) -> Option<String> {
    let shader = nir::text::read(&fs::read_to_string(path).expect("a program")).expect("nir");
    print::log(&shader, target, &Options::default(), None).ok()
}

/// A folder of the repository.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The programs of `corpus/`.
pub fn corpus() -> Vec<PathBuf> {
    let kinds = ["arrays", "control-flow", "fragment", "memory", "subgroups", "textures", "vertex"];
    let folders: Vec<PathBuf> = kinds.iter().map(|kind| folder("corpus").join(kind)).collect();
    collect_paths(&folders).expect("the corpus")
}

#[test]
fn our_own_logs_without_sections_are_not_refuted() {
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut logs = 0;
    // All of them with more effort.
    for (number, path) in corpus().iter().enumerate().step_by(one_of(2)) {
        let gpus = ["a306", "a420", "a540", "a660", "a750"];
        let turns = if effort() > 1 { 0..gpus.len() } else { number % gpus.len()..number % gpus.len() + 1 };
        for gpu in &gpus[turns] {
            let target = Target::by_name(gpu).expect("a GPU");
            let Some(log) = own_log(path, &target) else { continue };
            logs += 1;
            let few = (effort() == 1).then_some(number);
            let found = cut_log(path, &log, &target, few, &mut counts);
            wrong.extend(found.into_iter().map(|line| format!("{gpu}: {line}")));
        }
    }
    print_counts(&counts);
    assert_eq!(wrong, Vec::<String>::new());
    assert!(logs > 20, "{logs}");
}

/// Logs that were written by hand.
#[test]
fn small_logs_without_sections_are_not_refuted() {
    let mut counts = BTreeMap::new();
    let paths = collect_paths(&[folder("corpus/mesa"), folder("verifier/tests/logs")]).expect("logs");
    let mut wrong = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a log");
        let [shader] = &shaders_of(&path, &text)[..] else { panic!("{}: one shader", path.display()) };
        // Those without passes are tests of their own.
        if !shader.passes.is_empty() {
            let target = match path.file_name().and_then(|name| name.to_str()) {
                Some("fetch-of-layer.log") => Target::by_name("a306").expect("a GPU"),
                _ => shader.target(None),
            };
            let whole = check(&path, &text, &target, &quick(&Engines::interpreter()));
            assert!(whole.iter().all(|(_, verdict)| !verdict.is_refuted()), "{}", path.display());
            wrong.extend(cut_log(&path, &text, &target, None, &mut counts));
        }
    }
    print_counts(&counts);
    assert_eq!(wrong, Vec::<String>::new());
    assert!(counts["without one pass"]["tested"] > 50, "{counts:?}");
}

/// A log in which a line about the constant file is missing, or all of them are, is not refuted.
#[test]
fn logs_that_lost_lines_about_constants_are_not_refuted() {
    let target = Target::default();
    let engines = common::engines();
    let mut unknown = 0;
    for name in ["algorithms/srgb-decode.nir", "algorithms/hash-pcg.nir"] {
        let path = folder("corpus").join(name);
        let log = own_log(&path, &target).expect("a log");
        let lines: Vec<&str> =
            log.lines().filter(|line| line.contains("@const(") || line.contains("driver_params  ")).collect();
        let starting = |parts: &[&str]| {
            let is_kept = |line: &&str| !parts.iter().any(|part| line.contains(part));
            log.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect::<String>()
        };
        let single = lines.iter().map(|line| starting(&[*line]));
        let several = [starting(&["@const("]), starting(&["@const(", "; num_driver_params", "; offsets:", ";   "])];
        for (number, cut) in single.chain(several).enumerate() {
            let line = lines.get(number).unwrap_or(&"several lines");
            let rows = check(&path, &cut, &target, &quick(&engines));
            for (boundary, verdict) in &rows {
                assert!(!matches!(verdict, Verdict::Refuted(_)), "{name}, {line}: {boundary}: {verdict}");
            }
            unknown += rows.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Unknown(_))).count();
        }
    }
    assert!(unknown > 4, "{unknown}");
}

/// A log in which a list of inputs or outputs is missing, has lost an entry, or ends within one is not refuted, and the
/// reason is named.
#[test]
fn logs_that_lost_entries_of_lists_are_not_refuted() {
    let target = Target::default();
    let engines = Engines::all(Smt::default());
    let path = folder("corpus").join("mesa/copies.log");
    let log = fs::read_to_string(&path).expect("a log");
    let whole = check(&path, &log, &target, &quick(&engines));
    assert!(whole.iter().all(|(_, verdict)| verdict.is_pass()), "{whole:?}");
    let mut lists = 0;
    for name in ["; VERT: outputs: ", "; VERT: inputs: "] {
        let Some(line) = log.lines().find(|line| line.contains(name)) else { continue };
        lists += 1;
        let last = line.rfind(" r").or_else(|| line.rfind(" hr")).expect("an entry");
        for to in ["", &line[..last], &line[..line.len() - 3]] {
            let cut = log.replace(line, to);
            let rows = check(&path, &cut, &target, &quick(&engines));
            for (boundary, verdict) in &rows {
                assert!(!verdict.is_refuted(), "{to}: {boundary}: {verdict} {:?}", verdict.reason());
            }
            let reasons: Vec<String> = rows.iter().filter_map(|(_, verdict)| verdict.reason()).collect();
            let is_named = |reason: &String| {
                ["the list of", "a line of another form", "no list has"].iter().any(|part| reason.contains(part))
            };
            assert!(reasons.iter().any(is_named), "{to}: {reasons:?}");
        }
    }
    assert!(lists > 0);
}

/// The verdict on a log without passes, with all engines.
fn without_passes(log: &str, gpu: &str) -> Verdict {
    without_passes_within(log, gpu, Limits::default())
}

fn without_passes_within(log: &str, gpu: &str, limits: Limits) -> Verdict {
    let target = Target::by_name(gpu).expect("a GPU");
    let engines = Engines::all(Smt { limits, ..Smt::default() });
    let settings = Settings { fuel: 20_000, ..Settings::new(&engines, 2, 1) };
    let rows = check(Path::new("x.log"), &Cut::NirAndCode.of(&pieces(log)), &target, &settings);
    let [(name, verdict)] = <[_; 1]>::try_from(rows).expect("one boundary");
    assert_eq!(name, CODE);
    verdict
}

fn is_proved(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Proved { .. })
}

/// Replaces a text that is in a log once.
fn changed(log: &str, from: &str, to: &str) -> String {
    assert_eq!(log.matches(from).count(), 1, "{from}");
    log.replace(from, to)
}

const PREFETCH: &str = include_str!("../../corpus/mesa/prefetch-without-passes.log");
const LDGB: &str = include_str!("../../corpus/mesa/ldgb-without-passes.log");
const PREFETCH_SAM: &str = include_str!("../../corpus/mesa/prefetch-sam.log");

/// The log has the sample as a command in the assembly only (`@tex`).
#[test]
fn prefetch_without_passes_is_proved() {
    for gpu in ["a618", "a660"] {
        let verdict = without_passes(PREFETCH, gpu);
        assert!(is_proved(&verdict), "{gpu}: {verdict} {:?}", verdict.reason());
    }
    let refuted = |from: &str, to: &str| {
        let verdict = without_passes(&changed(PREFETCH, from, to), "a660");
        assert!(verdict.is_refuted(), "{from}, {to}: {verdict} {:?}", verdict.reason());
    };
    refuted("@tex(r0.z)", "@tex(r0.y)");
    refuted("wrmask=0xf, opc", "wrmask=0x7, opc");
    refuted("(sy)mul.f", "mul.f");
    for (from, to) in [("samp=0, tex=0", "samp=0, tex=1"), ("src=0", "src=9"), ("bindless=0", "bindless=1")] {
        let verdict = without_passes(&changed(PREFETCH, from, to), "a660");
        assert!(matches!(verdict, Verdict::Unknown(_)), "{from}, {to}: {verdict}");
    }
}

/// The offset in bytes has one register, and the one after it changes before it could be read.
#[test]
fn a4xx_ldgb_without_passes_is_proved() {
    let verdict = without_passes(LDGB, "a420");
    assert!(is_proved(&verdict), "{verdict} {:?}", verdict.reason());
    for (from, to) in
        [("g[1], r1.x, 1", "g[1], r1.x, 2"), ("(sy)add.u r0.y", "add.u r0.y"), ("add.u r1.y, c456", "add.u r1.x, c456")]
    {
        let verdict = without_passes(&changed(LDGB, from, to), "a420");
        assert!(verdict.is_refuted(), "{from}, {to}: {verdict} {:?}", verdict.reason());
    }
}

/// `sam` to `r63.x` fetches descriptors: its coordinates are overwritten without a wait.
#[test]
fn prefetch_sam_drops_its_result() {
    let verdict = without_passes(PREFETCH_SAM, "a750");
    assert!(is_proved(&verdict), "{verdict} {:?}", verdict.reason());
    // A sample with a result reads them; stored registers have to be written.
    let text = changed(PREFETCH_SAM, "(xyzw)r63.x, r48.x", "(xyzw)r48.x, r48.x");
    for text in
        [text, changed(PREFETCH_SAM, "(ss)nop", "nop"), changed(PREFETCH_SAM, "r48.y, 0x3fe00000", "r48.y, 0x3fd00000")]
    {
        let verdict = without_passes(&text, "a750");
        assert!(!is_proved(&verdict) && !matches!(verdict, Verdict::Tested { .. }), "{verdict}");
    }
}

/// An array in registers is as long as in nir: the other registers are not waited for.
#[test]
fn arrays_without_passes_are_proved() {
    let mut accessed = 0;
    for path in collect_paths(&[folder("corpus/arrays")]).expect("programs") {
        let log = own_log(&path, &Target::default()).expect("a log");
        let code = Cut::NirAndCode.of(&pieces(&log));
        accessed += code.matches("r<a0.x").count();
        let passes = |verdict: &Verdict| matches!(verdict, Verdict::Proved { .. } | Verdict::Tested { .. });
        let mut verdict = without_passes_within(&log, "a660", Limits::within(Duration::from_secs(1)));
        if !passes(&verdict) {
            // The later attempts at a proof get a share of the time, which is too little on a slow machine.
            verdict = without_passes_within(&log, "a660", Limits::within(Duration::from_secs(20)));
        }
        assert!(passes(&verdict), "{}: {verdict} {:?}", path.display(), verdict.reason());
    }
    assert!(accessed > 10, "{accessed}");
}

/// A wrong guess of the GPU refutes nothing, and a note lists the missing sections.
#[test]
fn logs_without_gpu_and_passes_are_not_refuted() {
    let folder = Folder::new("mesa-cut");
    let mut count = 0;
    for (turn, gpu) in ["a306", "a420", "a540", "a750"].into_iter().enumerate() {
        let target = Target::by_name(gpu).expect("a GPU");
        // All of them with more effort.
        let every = one_of(2);
        for path in corpus().into_iter().skip(turn % every).step_by(every) {
            let Some(log) = own_log(&path, &target) else { continue };
            let name = format!("{gpu}-{}.log", path.file_stem().and_then(|name| name.to_str()).expect("a name"));
            let text = Cut::NirAndCode.of(&pieces(&log));
            let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("; gpu gen")).collect();
            fs::write(folder.path().join(name), text).expect("a file");
            count += 1;
        }
    }
    let (code, text) = run(folder.path(), &["mesa", "--runs", "1", "--quiet", "."]);
    assert!(matches!(code, Some(0 | 3)), "{code:?}\n{text}");
    assert!(count > 80 && text.contains(" 0 refuted,"), "{count}\n{text}");
    assert!(text.contains("the log does not name its GPU: refuted on a660"), "{text}");
    assert!(text.contains("IR3_SHADER_DEBUG=") && text.contains("optmsgs"), "{text}");
}
