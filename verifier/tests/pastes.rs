//! Texts that were damaged or wrapped on their way: a verdict that is that of the whole text, or a message with the
//! cause; and the programs of real logs as every listing format.

use super::common;

use ir3_compiler::machine::listing;
use ir3_compiler::target::{Generation, Target};
use ir3_harness::finals::{FinalProgram, finals};
use ir3_programs::input::load_source;
use ir3_programs::mesa::{InputError, Log, SectionKind, Source};
use std::fs;
use std::path::{Path, PathBuf};

use common::folder::Folder;

const CODE: &str = "mov.u32u32 r0.z, c0.x\n(rpt2)nop\nadd.f r0.z, r0.z, r0.x\ncmps.u.gt p0.x, r0.z, 0\n(rpt5)nop\nbr !p0.x, #l8\nsam (f32)(xyzw)r1.x, r0.x, s#0, t#0\n(nop3) add.f r2.x, r0.x, r0.y\nl8:\n(jp)add.f r0.z, r1.x, r2.x\n(rpt2)nop\nmul.f r0.w, r0.z, r0.z\nend\n";

const IR3: &str = "// {stage=vertex}\n// {output=0.x}\nblock1 {\n\t0001:0001:000: \tadd.f r0.z, r0.x, r0.y\n\t0002:0002:000: \t(rpt2)nop\n\t0003:0003:000: \tmul.f r0.w, r0.z, r0.x\n\t0004:0004:000: \tend r0.w (0)\n}\n";

const NIR: &str = "shader: MESA_SHADER_VERTEX\ninputs: 1\noutputs: 1\ndecl_function main () (entrypoint)\n\nimpl main {\n    con block b0:  // preds:\n    con 32    %0 = load_const (0x00000000)\n    div 32x2  %1 = @load_input (%0 (0x0)) (base=0, range=1, component=0, dest_type=float32, io location=VERT_ATTRIB_POS slots=1)\n    div 32    %3 = fadd %1.x, %1.y\n                   @store_output (%3, %0 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=VARYING_SLOT_VAR0 slots=1)\n                   // succs: b1\n    block b1:\n}\n";

/// The texts, with the names of their files.
fn texts() -> Vec<(&'static str, String)> {
    let words = listing::assemble(Generation::A6xx, CODE).expect("assembly");
    let items = listing::disassemble(Generation::A6xx, &words);
    let dump: String = listing::write_dump(&items).lines().map(|line| format!("\t\t\t{line}\n")).collect();
    vec![
        ("code.asm", CODE.to_owned()),
        ("disasm.txt", listing::write_disasm(&items)),
        (
            "crash.log",
            format!("revision: 660 (6.6.0.1)\n\topcode: CP_LOAD_STATE6\n{dump}\tStats:\n\t- shaderdb: 9 instr\n"),
        ),
        ("listing.txt", format!("; gpu gen 6, mergedregs 1\n{}", listing::write(&items))),
        ("final.ir3", IR3.to_owned()),
        ("before.nir", NIR.to_owned()),
    ]
}

/// A change that takes nothing away.
fn wrapped(kind: usize, text: &str) -> Vec<u8> {
    let lines = |of: &dyn Fn(usize, &str) -> String| -> Vec<u8> {
        text.lines().enumerate().map(|(i, line)| of(i, line) + "\n").collect::<String>().into_bytes()
    };
    let escaped = || text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    match kind {
        0 => lines(&|_, line| format!("> {line}")),
        1 => lines(&|_, line| format!(">> {line}")),
        2 => lines(&|i, line| format!("{:5}: {line}", i + 1)),
        3 => lines(&|i, line| format!("{}\t{line}", i + 40)),
        4 => lines(&|_, line| format!("\x1b[32m{line}\x1b[0m")),
        5 => lines(&|_, line| format!("{line}\r")),
        6 => format!("<html><body><pre>\n{}</pre></body></html>\n", escaped()).into_bytes(),
        7 => format!("<code>{}</code>", escaped().replace('\n', "<br/>\n")).into_bytes(),
        8 => format!("```\n{text}```\n").into_bytes(),
        9 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        10 => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
        11 => format!("\u{feff}{text}").into_bytes(),
        12 => text.trim_end().as_bytes().to_vec(),
        _ => lines(&|_, line| format!("{line}  ")),
    }
}

const WRAPPINGS: usize = 14;

/// A change that takes something away or adds something.
fn damaged(seed: usize, text: &str) -> Vec<u8> {
    let lines: Vec<&str> = text.lines().collect();
    let at = (seed * 7 + 3) % lines.len();
    let join = |lines: &[&str]| lines.join("\n").into_bytes();
    match seed % 8 {
        0 => join(&lines[..at]),
        1 => join(&lines[at..]),
        2 => text.as_bytes()[..text.len() * (seed % 13 + 1) / 15].to_vec(),
        3 => join(&[&lines[..at], &lines[at + 1..]].concat()),
        4 => join(&[&lines[..at], &["and then it hangs, see below:"][..], &lines[at..]].concat()),
        5 => text.replacen("r0.z", "r0.", at + 1).into_bytes(),
        6 => [&[0x1f, 0x8b, 8, 0][..], text.as_bytes()].concat(),
        _ => join(&[&lines[at..], &lines[..at]].concat()),
    }
}

/// The verdicts on the programs of a file, or the message.
fn verdicts(path: &Path) -> Result<Vec<String>, String> {
    let gpu = Some(Target::by_name("a660").expect("a GPU"));
    let is_nir = path.extension().is_some_and(|extension| extension == "nir");
    if is_nir {
        let source = Source::read(path).map_err(|error| error.to_string())?;
        let programs = load_source(source, gpu).map_err(|error: InputError| error.to_string())?;
        return Ok(programs.into_iter().map(|named| named.program.text()).collect());
    }
    let programs = finals(path, gpu).map_err(|error| error.to_string())?;
    Ok(programs.into_iter().map(|program| verdict(&program)).collect())
}

fn verdict(program: &FinalProgram) -> String {
    match program.hazards() {
        Ok(report) => format!("{} hazards in {}", report.hazards.len(), report.instructions),
        Err(error) => format!("unknown: {error}"),
    }
}

#[test]
fn two_hundred_mutilated_pastes_have_a_verdict_or_a_cause() {
    let folder = Folder::new("pastes");
    let (mut pastes, mut refused) = (0, 0);
    for (name, text) in texts() {
        let path: PathBuf = folder.path().join(name);
        fs::write(&path, &text).expect("a file");
        let whole = verdicts(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        for kind in 0..WRAPPINGS {
            fs::write(&path, wrapped(kind, &text)).expect("a file");
            assert_eq!(verdicts(&path).as_ref(), Ok(&whole), "{name}, wrapping {kind}");
            pastes += 1;
        }
        for seed in 0..24 {
            fs::write(&path, damaged(seed, &text)).expect("a file");
            pastes += 1;
            if let Err(message) = verdicts(&path) {
                let names_a_cause = message.contains("found")
                    || message.contains("no final program")
                    || message.contains("not an instruction");
                assert!(message.contains(name) && names_a_cause, "{name}, damage {seed}: {message}");
                refused += 1;
            }
        }
    }
    assert!(pastes >= 200 && refused > 30, "{pastes} pastes, {refused} refused");
}

#[test]
fn programs_of_real_logs_have_the_same_verdict_in_each_format() {
    let Some(paths) = common::logs() else { return };
    let folder = Folder::new("pastes-logs");
    let (mut programs, mut different) = (0, Vec::new());
    // All of them with more effort.
    for path in paths.iter().step_by(common::effort::one_of(11)) {
        let text = fs::read_to_string(path).expect("a log");
        let log = Log::read(path, &text).expect("a log");
        let Some(section) = log.sections.iter().find(|section| section.kind == SectionKind::Listing) else { continue };
        let Some(generation) = log.generations().map(|(_, generation)| generation).next() else { continue };
        let listings = listing::listings(&section.text);
        let Some(first) = listings.first() else { continue };
        let items = listing::disassemble(generation, &first.words());
        let write = |name: &str, text: String| {
            let file = folder.path().join(name);
            fs::write(&file, format!("; gpu gen {}, x\n{text}", generation.number())).expect("a file");
            let of_file = finals(&file, None).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            of_file.iter().map(verdict).collect::<Vec<_>>()
        };
        let dump: String = listing::write_dump(&items).lines().map(|line| format!("\t\t{line}\n")).collect();
        let found = [
            write("a.txt", listing::write(&items)),
            write("b.txt", listing::write_disasm(&items)),
            write("c.log", dump),
            write("d.asm", listing::write_plain(&items)),
        ];
        programs += 1;
        let proved = |verdicts: &[String]| {
            verdicts.iter().map(|it| it.split(" in ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        if found.iter().any(|verdicts| proved(verdicts) != proved(&found[0])) {
            different.push(format!("{}: {found:?}", path.display()));
        }
        // The passes of a log name arrays, which words do not.
        let Ok(of_log) = finals(path, None) else { continue };
        let Some(of_log) = of_log.first() else { continue };
        let uses_arrays = text.contains("a0.x");
        let of_log = verdict(of_log);
        let is_open = found[0].iter().any(|verdict| verdict.contains("the words leave that open"));
        if !uses_arrays && !is_open && proved(std::slice::from_ref(&of_log)) != proved(&found[0]) {
            different.push(format!("{}: {of_log} in the log, {:?}", path.display(), found[0]));
        }
    }
    println!("{programs} programs, {} different", different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(programs > 40, "only {programs}");
}
