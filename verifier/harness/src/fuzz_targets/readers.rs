//! Fuzz target for the text readers.
//!
//! Every reader is tried on every text, because it must also handle texts of other languages. No reader may panic. An
//! error must have a position in the text and a reason. An accepted valid program must read back the same after it is
//! written.

use crate::case;
use crate::fuzz_targets::{TargetFailure, stats};
use arbitrary::{Arbitrary, Unstructured};
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, nir};
use ir3_programs::mesa::input::{FilePosition, InputError, Source};
use ir3_programs::mesa::log::Log;
use ir3_semantics::environment::env::Env;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// A text, or bytes that are not text.
#[derive(Clone)]
pub struct TextInput {
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl<'a> Arbitrary<'a> for TextInput {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let bytes = u.bytes(u.len())?.to_vec();
        stats::count(bytes.len(), 0);
        Ok(Self { bytes })
    }
}

impl fmt::Debug for TextInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

/// Passes the text to every reader. The input is interesting if a reader accepts it, or reads beyond its first lines.
///
/// # Errors
/// An error without a position, or a program that does not read back the same.
pub fn readers(input: &TextInput) -> Result<bool, TargetFailure> {
    readers_with(input, &mut |_| {})
}

/// Like [`readers`], with a hook that changes the output of the writers.
///
/// # Errors
/// An error without a position, or a program that does not read back the same.
pub fn readers_with(input: &TextInput, plant: &mut dyn FnMut(&mut String)) -> Result<bool, TargetFailure> {
    let path = Path::new("input");
    match Source::from_bytes(path, input.bytes.clone()) {
        Ok(_) | Err(InputError::Empty { .. } | InputError::UnknownKind { .. }) => {}
        Err(InputError::NotText { place, .. }) => check_place("input", &place)?,
        Err(error) => {
            return Err(TargetFailure::new("input", format_args!("an error that is none of a text: {error}")));
        }
    }
    let text = &*String::from_utf8_lossy(&input.bytes);
    // Run all readers, even if an earlier one accepts the text.
    let kept = [
        nir_text(text, plant)?,
        ir3_text(text, plant)?,
        log(path, text)?,
        environment(text, plant)?,
        bundle(path, text, plant)?,
    ];
    // Each reader has reported an error with a position, or its result has read back the same.
    stats::compared();
    Ok(kept.contains(&true))
}

fn check_place(reader: &str, place: &FilePosition) -> Result<(), TargetFailure> {
    if place.line == 0 || place.column == 0 {
        return Err(TargetFailure::new(reader, format_args!("an error at no place: {place}")));
    }
    Ok(())
}

/// Checks the error of a program reader: its position is in the text, and it has a message.
fn check_error(
    reader: &'static str,
    text: &str,
    (line, column): (usize, usize),
    words: [&str; 2],
) -> Result<(), TargetFailure> {
    let lines = text.lines().count().max(1);
    let width = text.lines().nth(line.wrapping_sub(1)).map_or(0, |text| text.chars().count());
    // The end of the text may be after its last line, the end of a line after its last character.
    if line == 0 || line > lines + 1 || column == 0 || column > width + 1 {
        return Err(TargetFailure::new(reader, format_args!("an error at {line}:{column}, outside the text")));
    }
    if words.iter().any(|words| words.is_empty()) {
        return Err(TargetFailure::new(reader, format_args!("an error at {line}:{column} without a message")));
    }
    Ok(())
}

fn nir_text(text: &str, plant: &mut dyn FnMut(&mut String)) -> Result<bool, TargetFailure> {
    const READER: &str = "nir text";
    let shader = match nir::text::read(text) {
        Ok(shader) => shader,
        Err(error) => {
            let place = (error.line as usize, error.column as usize);
            check_error(READER, text, place, [&error.found, &error.expected])?;
            return Ok(error.line > 3);
        }
    };
    if let Err(errors) = nir::validate(&shader) {
        return match errors.first() {
            Some(error) if !error.to_string().is_empty() => Ok(true),
            _ => Err(TargetFailure::new(READER, "an invalid program without a reason")),
        };
    }
    let mut written = nir::text::write(&shader);
    plant(&mut written);
    match nir::text::read(&written) {
        Ok(again) if again == shader => Ok(true),
        Ok(_) => Err(TargetFailure::new(READER, format_args!("another program comes back from\n{written}"))),
        Err(error) => Err(TargetFailure::new(READER, format_args!("{error}, in the written text:\n{written}"))),
    }
}

fn ir3_text(text: &str, plant: &mut dyn FnMut(&mut String)) -> Result<bool, TargetFailure> {
    const READER: &str = "ir3 text";
    let program = match ir3::text::read(text) {
        Ok(program) => program,
        Err(error) => {
            check_error(READER, text, (error.line, error.column), [&error.message, "reason"])?;
            return Ok(error.line > 3);
        }
    };
    if let Err(errors) = ir3::validate::validate(&program, &Target::default(), Form::of(&program)) {
        return match errors.first() {
            Some(error) if !error.to_string().is_empty() => Ok(true),
            _ => Err(TargetFailure::new(READER, "an invalid program without a reason")),
        };
    }
    let canonical =
        program.canonical().ok_or_else(|| TargetFailure::new(READER, "a valid program without a numbering"))?;
    let mut written = ir3::text::write(&program);
    plant(&mut written);
    match ir3::text::read(&written) {
        Ok(again) if again == canonical => Ok(true),
        Ok(_) => Err(TargetFailure::new(READER, format_args!("another program comes back from\n{written}"))),
        Err(error) => Err(TargetFailure::new(READER, format_args!("{error}, in the written text:\n{written}"))),
    }
}

fn log(path: &Path, text: &str) -> Result<bool, TargetFailure> {
    const READER: &str = "log";
    let log = match Log::read(path, text) {
        Ok(log) => log,
        Err(
            InputError::CutOff { place, .. } | InputError::Mixed { place, .. } | InputError::Interrupted { place, .. },
        ) => {
            check_place(READER, &place)?;
            return Ok(true);
        }
        Err(error) => return Err(TargetFailure::new(READER, format_args!("an error that is none of a log: {error}"))),
    };
    let lines: usize = log.sections.iter().map(|section| section.text.lines().count()).sum();
    if lines > text.lines().count() {
        return Err(TargetFailure::new(READER, format_args!("{lines} lines in sections, more than the log has")));
    }
    match log.nir(path) {
        Ok(sections) => {
            for section in sections {
                nir_text(&section.text, &mut |_| {})?;
            }
            Ok(true)
        }
        Err(error) if error.is_without_program() => Ok(log.sections.len() > 1),
        Err(error) => Err(TargetFailure::new(READER, format_args!("an error that is none of a log: {error}"))),
    }
}

fn environment(text: &str, plant: &mut dyn FnMut(&mut String)) -> Result<bool, TargetFailure> {
    const READER: &str = "environment";
    let env = match Env::from_json(text) {
        Ok(env) => env,
        Err(error) if error.line() > 0 => return Ok(error.line() > 3 || !error.is_syntax()),
        Err(error) => return Err(TargetFailure::new(READER, format_args!("an error at no place: {error}"))),
    };
    let mut written = env.to_json();
    plant(&mut written);
    match Env::from_json(&written) {
        Ok(again) if again == env => Ok(true),
        Ok(_) => Err(TargetFailure::new(READER, format_args!("another environment comes back from\n{written}"))),
        Err(error) => Err(TargetFailure::new(READER, format_args!("{error}, in the written text:\n{written}"))),
    }
}

fn bundle(path: &Path, text: &str, plant: &mut dyn FnMut(&mut String)) -> Result<bool, TargetFailure> {
    const READER: &str = "bundle";
    let mut written = match case::rewritten(path, text) {
        Ok(written) => written,
        Err(case::ReadError::Json { cause, .. }) if cause.line() > 0 => return Ok(!cause.is_syntax()),
        Err(case::ReadError::Field { .. }) => return Ok(true),
        Err(error) => return Err(TargetFailure::new(READER, format_args!("an error that is none of a text: {error}"))),
    };
    plant(&mut written);
    match case::rewritten(path, &written) {
        Ok(again) if again == written => Ok(true),
        Ok(_) => Err(TargetFailure::new(READER, format_args!("other facts come back from\n{written}"))),
        Err(error) => Err(TargetFailure::new(READER, format_args!("{error}, in the written text:\n{written}"))),
    }
}

/// The keywords of all the languages, in libFuzzer's format.
pub fn dictionary() -> String {
    let mut words: BTreeSet<String> = BTreeSet::new();
    let mut add = |word: &str| words.insert(word.to_owned());
    for op in nir::Op::ALL {
        add(&format!(" = {} ", op.name()));
    }
    for op in nir::IntrinsicOp::ALL {
        add(&format!("@{}", op.name()));
        for index in op.info().indices {
            add(&format!("{}=", index.name()));
        }
    }
    for op in ir3::Opcode::ALL {
        add(&format!("{} ", op.name()));
    }
    for word in [
        "shader: MESA_SHADER_COMPUTE\n",
        "shader: MESA_SHADER_FRAGMENT\n",
        "shader: MESA_SHADER_VERTEX\n",
        "workgroup_size: 64, 1, 1\n",
        "impl main {\n",
        "block b0:  // preds:\n",
        "// succs: b1\n",
        "loop {\n",
        "if %",
        "} else {\n",
        "break\n",
        "continue\n",
        "halt\n",
        "= phi b0: %",
        "load_const (0x",
        "undefined\n",
        "div 32 ",
        "con 32 ",
        "32x4 ",
        "(tex) tex ",
        "(coord)",
        "fsat!",
        ".xyzw",
        "(0x00000000)",
        "block0 {\n",
        "pred: block",
        "/* succs: block",
        "/* keeps:\n",
        "*/\n",
        "_meta:phi ",
        "_meta:collect ",
        "_meta:split ",
        "_meta:parallel_copy ",
        "_meta:in ",
        "ssa_",
        "(wrmask=0xf)",
        "(kill)",
        "(last)",
        "(neg)",
        "(abs)",
        "(sy)",
        "(ss)",
        "(jp)",
        "(sat)",
        "(rpt",
        "(tied)",
        "imm[0.000000,0,0x0]",
        "himm[",
        "c0.x",
        "hr0.x",
        "r48.x",
        "a0.x",
        "p0.x",
        "r<a0.x + ",
        "c<a0.x + ",
        "arr[id=",
        "// {type=u32, components=1}",
        "// {stage=compute}",
        "end\n",
        "MESA: info: ",
        "NIR (final form) for CL shader (null):\n",
        "AFTER: ir3_cp:\n",
        "\u{1b}[0m",
        "{\"format\": 1, \"gpu\": \"a660\", ",
        "\"options\": {\"copy_propagation\": true",
        "\"failure\": {\"kind\": \"refuted\"",
        "{\"seed\": 1}",
        "\"seed\": ",
        "\"helpers\": ",
        "\"consts\": {",
        "\"attributes\": {",
        "\"varyings\": {",
        "\"system\": {",
        "\"memory\": {\"ssbo 0\": {\"0\": 1}}",
    ] {
        add(word);
    }
    let mut text = String::from(
        "# Made by `IR3_BLESS=1 cargo test -p ir3-verifier --test suite fuzz_targets::`: the words of nir, ir3 and environments.\n",
    );
    for word in &words {
        text.push('"');
        for byte in word.bytes() {
            match byte {
                b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
                b' '..=b'~' => text.push(char::from(byte)),
                _ => text.push_str(&format!("\\x{byte:02x}")),
            }
        }
        text.push_str("\"\n");
    }
    text
}
