//! `README.md` of a bundle: a report for an issue tracker.

use crate::difference::FirstDifference;
use ir3_compiler::nir;
use ir3_compiler::pipeline::{Allocator, Features, Options};
use ir3_compiler::target::Target;
use ir3_harness::case::{Case, Evidence, ProgramOrigin};
use ir3_harness::reduce::Failure;
use ir3_harness::version;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::sync::Synchronized;
use ir3_semantics::interp::Difference;
use std::fmt::{self, Write as _};

/// Longer programs are not included in the report.
const INLINE: usize = 60;

/// Writes `README.md`.
pub(super) fn write(case: &Case, evidence: &Evidence, first: Option<&FirstDifference>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    report(&mut text, case, evidence, first).expect("a string takes all text");
    text
}

fn report(text: &mut String, case: &Case, evidence: &Evidence, first: Option<&FirstDifference>) -> fmt::Result {
    writeln!(text, "# {}", title(case))?;
    writeln!(text)?;
    if let Some(plant) = case.plant {
        writeln!(
            text,
            "This is the planted bug `{}`: {}. It shows that such a bug is found.",
            plant.name, plant.description
        )?;
        writeln!(text)?;
    }
    if evidence.symptom.as_ref().map(|symptom| &symptom.failure) != Some(&case.symptom.failure) {
        writeln!(text, "**It did not fail like this when it was run again to write this report.**")?;
        writeln!(text)?;
    }
    what_happens(text, case, evidence, first)?;
    writeln!(text, "## See it")?;
    writeln!(text)?;
    if let Some(pass) = case.options.own_pass {
        writeln!(
            text,
            "The program that has made the pass `{}` compiles it again: `read_bundle_with(PATH, pass)?.oracle()`.",
            pass.name
        )?;
    }
    if let Some(command) = see_again(case, evidence, "") {
        writeln!(text, "In this folder:")?;
        writeln!(text)?;
        writeln!(text, "    {command}")?;
        writeln!(text)?;
        if case.options.own_pass.is_none() {
            let with_cargo =
                "or, in the source of ir3-equiv, `cargo run --release -- verify PATH` with the path of this folder.";
            writeln!(text, "{with_cargo}")?;
        }
    }
    writeln!(text)?;
    programs(text, case, evidence)?;
    facts(text, case)?;
    files(text, case, evidence, first)
}

/// The command that shows a failure again, with the folder of its bundle (empty: in that folder). The program ir3-equiv
/// does not have the pass of another one, but can compare the two sides that were written; `None` if there are none.
pub(crate) fn see_again(case: &Case, evidence: &Evidence, folder: &str) -> Option<String> {
    if case.options.own_pass.is_none() {
        return Some(format!("ir3-equiv verify {}", if folder.is_empty() { "." } else { folder }));
    }
    let (_, _) = (evidence.before.as_ref()?, evidence.after.as_ref()?);
    let file = |name: &str| {
        if folder.is_empty() { name.to_owned() } else { format!("{}/{name}", folder.trim_end_matches('/')) }
    };
    let (before, after) = (file(evidence.before_name()), file(evidence.after_name()));
    let env = case.env.as_ref().map_or_else(String::new, |_| format!(" --env {}", file("env.json")));
    Some(format!("ir3-equiv check {before} {after} --gpu {}{env}", case.target.name))
}

/// The title: the stage, and its failure.
pub(crate) fn title(case: &Case) -> String {
    let stage = case.symptom.stage;
    let on = format!("on {}", case.target.name);
    match &case.symptom.failure {
        Failure::Refuted { difference, .. } => format!("{stage}: wrong code {on}: {}", wrong(difference.name())),
        Failure::Refused { .. } => format!("{stage}: refuses a valid program {on}: {}", case.symptom.message),
        Failure::Unsupported { .. } => {
            format!("interpreter: cannot run the program after {stage} {on}: {}", case.symptom.message)
        }
        Failure::Panic { .. } => format!("{stage}: panic {on}: {}", first_line(&case.symptom.message)),
        Failure::Stopped(stopped) => format!("{stage}: {} {on}", stopped.stop.name()),
    }
}

fn wrong(kind: &str) -> &str {
    match kind {
        "output" => "an output has another value",
        "memory" => "memory is left with another value",
        "killed lanes" => "other lanes are killed",
        "undefined" => "undefined behaviour",
        "endless" => "it does not terminate",
        "header" => "the header differs",
        other => other,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn what_happens(text: &mut String, case: &Case, evidence: &Evidence, first: Option<&FirstDifference>) -> fmt::Result {
    let stage = case.symptom.stage;
    writeln!(text, "## What happens")?;
    writeln!(text)?;
    match &case.symptom.failure {
        Failure::Refuted { .. } => {
            writeln!(
                text,
                "The program before `{stage}` and the program after it are run on the same input, and differ:"
            )?;
        }
        Failure::Refused { .. } => writeln!(text, "The compiler refuses the program below at `{stage}`:")?,
        Failure::Unsupported { .. } => {
            writeln!(text, "The program after `{stage}` cannot be run, so it was not checked:")?
        }
        Failure::Panic { place } => writeln!(text, "The compiler panics in `{stage}`, at {place}:")?,
        Failure::Stopped(_) => writeln!(text, "The compiler had to be stopped in `{stage}`:")?,
    }
    writeln!(text)?;
    if let Some(difference) = &evidence.difference {
        for (name, value) in expected_and_actual(difference, first.map(|first| first.lane)) {
            writeln!(text, "- {name}: {value}")?;
        }
        if let Some([before, after]) = first.and_then(FirstDifference::instructions) {
            writeln!(text)?;
            writeln!(text, "The two sides first differ here (`difference.txt` has the context):")?;
            writeln!(text)?;
            for (name, line) in [("before", before), ("after", after)] {
                writeln!(text, "    {name:7} {}", line.as_deref().unwrap_or("nothing"))?;
            }
        }
    } else {
        for line in case.symptom.message.lines() {
            writeln!(text, "    {line}")?;
        }
    }
    writeln!(text)
}

/// The expected and the actual value, with their place.
pub(crate) fn expected_and_actual(difference: &Difference, lane: Option<u8>) -> Vec<(&'static str, String)> {
    let word = |bits: u32| format!("`{bits:#010x}` ({}, {:?} as a float)", bits as i32, f32::from_bits(bits));
    let written_by = lane.map(|lane| format!(", written by lane {lane}")).unwrap_or_default();
    match difference {
        Difference::OtherOutput(slot) => vec![("where", slot.to_string()), ("expected", "no such output".to_owned())],
        Difference::Output { base, component, lane, expected, actual } => {
            let component = ["x", "y", "z", "w"].get(usize::from(*component)).copied().unwrap_or("?");
            vec![
                ("where", format!("output {base}.{component}, lane {lane}")),
                ("expected", word(*expected)),
                ("actual", actual.map_or_else(|| "an undefined value".to_owned(), word)),
            ]
        }
        Difference::Memory { space, binding, byte, expected, actual, defined, poisoned } => {
            let undefined = if poisoned & defined != 0 {
                format!(", bits {poisoned:#010x} of it undefined")
            } else {
                String::new()
            };
            vec![
                ("where", format!("{}, byte {byte}{written_by}", MemoryName::of(*space, *binding))),
                ("expected", word(*expected)),
                ("actual", word(*actual) + &undefined),
            ]
        }
        Difference::Killed { expected, actual } => vec![
            (
                "where",
                format!(
                    "the mask of killed lanes; the first that differs is lane {}",
                    (expected ^ actual).trailing_zeros()
                ),
            ),
            ("expected", format!("`{expected:#018x}`")),
            ("actual", format!("`{actual:#018x}`")),
        ],
        Difference::Loads { expected, actual, .. } => vec![
            ("where", "loads, all lanes together".to_owned()),
            ("expected", format!("{expected} bytes by volatile and coherent loads")),
            ("actual", format!("{actual} bytes by all loads")),
        ],
        Difference::Synchronization { number, expected, actual } => {
            let text = |which: &Option<Synchronized>| which.map_or("none".to_owned(), |which| which.sync.to_string());
            vec![
                ("where", format!("barrier or fence {number}, with the stores before it")),
                ("expected", text(expected)),
                ("actual", text(actual)),
            ]
        }
        Difference::Undefined { reason, origin, lanes } => vec![
            ("where", format!("{origin}, lanes `{lanes:#018x}`")),
            ("expected", "a defined run".to_owned()),
            ("actual", reason.to_string()),
        ],
        Difference::Endless { expected, actual } => vec![
            ("expected", format!("an end, as before the stage after {expected} instructions")),
            ("actual", format!("none after {actual} instructions")),
        ],
        Difference::Header(header) => vec![
            ("where", format!("the header: {}", header.what)),
            ("expected", header.expected.clone()),
            ("actual", header.actual.clone()),
        ],
    }
}

fn programs(text: &mut String, case: &Case, evidence: &Evidence) -> fmt::Result {
    let what = if case.minimal { "The program, as small as it gets" } else { "The program" };
    writeln!(text, "## {what}")?;
    writeln!(text)?;
    block(text, &nir::text::write(&case.program), "program.nir")?;
    let before = evidence.before.as_ref().filter(|_| evidence.before_name() != "before.nir");
    for (side, name) in [(before, evidence.before_name()), (evidence.after.as_ref(), evidence.after_name())] {
        let Some(side) = side else { continue };
        let stage = case.symptom.stage;
        writeln!(text, "{} `{stage}`:", if name == evidence.after_name() { "After" } else { "Before" })?;
        writeln!(text)?;
        block(text, &side.text(), name)?;
    }
    Ok(())
}

/// A program, or the name of its file if it is too long.
fn block(text: &mut String, program: &str, file: &str) -> fmt::Result {
    let lines = program.lines().count();
    if lines <= INLINE {
        writeln!(text, "```\n{}\n```", program.trim_end())?;
    } else {
        writeln!(text, "It has {lines} lines: see `{file}`.")?;
    }
    writeln!(text)
}

fn facts(text: &mut String, case: &Case) -> fmt::Result {
    let Case { target, options, plant, origin, original, program, minimal, .. } = case;
    writeln!(text, "## Facts")?;
    writeln!(text)?;
    writeln!(text, "- GPU: {}", target.name)?;
    writeln!(text, "- options: {}", options_in_words(options))?;
    if let Some(plant) = plant {
        writeln!(text, "- planted bug: `--plant {}`", plant.name)?;
    }
    writeln!(text, "- from: {}", origin_in_words(origin, target))?;
    let instructions = program.instruction_count();
    match original {
        Some(original) => {
            let more = if *minimal { "" } else { ", and not at its end" };
            let before = original.program.instruction_count();
            writeln!(text, "- size: {instructions} instructions of nir, reduced from {before}{more}")?;
        }
        None => {
            writeln!(text, "- size: {instructions} instructions of nir, not reduced (`ir3-equiv reduce` does that)")?
        }
    }
    writeln!(text, "- ir3-equiv {}", version::LINE)?;
    writeln!(text)
}

/// The options that differ from the defaults, in words.
pub(crate) fn options_in_words(options: &Options) -> String {
    let mut chosen: Vec<String> = Vec::new();
    let names =
        |features: Features| features.iter().map(|feature| format!("`{feature}`")).collect::<Vec<_>>().join(", ");
    match (options.features, Features::all() - options.features) {
        (_, off) if off.is_empty() => {}
        (on, _) if on.is_empty() => chosen.push("no optional feature".to_owned()),
        (on, off) if on.len() < off.len() => chosen.push(format!("of all features only {}", names(on))),
        (_, off) => chosen.push(format!("without {}", names(off))),
    }
    if options.skip != Default::default() {
        chosen.push(format!("`--skip {}`", options.skip));
    }
    if options.registers != Default::default() {
        chosen.push(format!("`--max-registers {}`", options.registers));
    }
    match options.allocator {
        Allocator::Ssa => {}
        Allocator::GraphColouring(rotation) => {
            chosen.push(format!("`--allocator graph-colouring --round-robin {rotation}`"));
        }
    }
    if chosen.is_empty() { "the default ones".to_owned() } else { chosen.join(", ") }
}

/// The origin of a program, in words.
pub(crate) fn origin_in_words(origin: &ProgramOrigin, target: &Target) -> String {
    match origin {
        ProgramOrigin::File(path) => path.clone(),
        ProgramOrigin::Artifact(path) => format!("the bytes of {path}, on which a fuzz target failed"),
        ProgramOrigin::Variant { of, seed } => {
            format!("a variant of {of} with pieces of other programs (`fuzz --corpus`, seed {seed})")
        }
        ProgramOrigin::Seed { seed, profile } => {
            format!("`ir3-equiv generate --profile {profile} --seed {seed} --gpu {}`", target.name)
        }
    }
}

fn files(text: &mut String, case: &Case, evidence: &Evidence, first: Option<&FirstDifference>) -> fmt::Result {
    writeln!(text, "## Files")?;
    writeln!(text)?;
    let mut list = vec![("program.nir", "the program")];
    if case.env.is_some() {
        list.push(("env.json", "the input: the values that do not follow from its seed, and the seed"));
    }
    if evidence.before.is_some() {
        list.push((evidence.before_name(), "the program before the stage"));
    }
    if evidence.after.is_some() {
        list.push((evidence.after_name(), "the program after the stage"));
    }
    if first.is_some() {
        list.push(("difference.txt", "the traces of one lane on both sides, aligned, up to their first difference"));
    }
    list.push(("bundle.json", "all of this for programs, with the verdicts of all engines"));
    if case.original.is_some() {
        list.push(("original/", "the program and the input before they were reduced"));
    }
    for (name, what) in list {
        writeln!(text, "- `{name}`: {what}")?;
    }
    Ok(())
}
