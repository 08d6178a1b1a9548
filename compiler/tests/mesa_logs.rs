//! Every `AFTER: …` section of Mesa's logs is read, written and read again.
//!
//! `IR3_SHARED` says where the logs are (`mesa/train` in it), by default `../shared` beside the workspace. All logs:
//! `cargo test --release -p ir3-compiler --test mesa_logs -- --nocapture`. Without optimisation (`cargo test`) one log
//! in eight is read, unless `IR3_LOGS=all`.

use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::text::{read, write};
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::target::Target;
use std::path::{Path, PathBuf};

/// The logs' folder, if it is there.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = std::env::var_os("IR3_SHARED").map_or(beside, PathBuf::from);
    // A relative path is one from the workspace, where cargo is called, not from the package, where tests run.
    let path = if path.is_relative() { Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path) } else { path };
    let logs = path.join("mesa/train");
    logs.is_dir().then_some(logs)
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "log") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The sections of a log: the pass, and the text with its prefixes.
fn sections(log: &str) -> impl Iterator<Item = (&str, &str)> {
    const START: &str = "MESA: info: AFTER: ";
    let starts = log.match_indices(START).map(|(at, _)| at).filter(|&at| at == 0 || log.as_bytes()[at - 1] == b'\n');
    starts.map(move |at| {
        let section = &log[at + START.len()..];
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        // Up to the next section, which has no indentation and is no block.
        let mut end = 0;
        for line in body.split_inclusive('\n') {
            let Some(bare) = line.strip_prefix("MESA: info: ") else { break };
            if !bare.starts_with(['\t', '}']) && !bare.starts_with("block") && !bare.starts_with("(jp)block") {
                break;
            }
            end += line.len();
        }
        (title.trim_end_matches(':'), &body[..end])
    })
}

/// What a program is after a pass of Mesa's.
fn form(pass: &str) -> Form {
    const BEFORE_ALLOCATION: [&str; 18] = [
        "nir->ir3",
        "ir3_remove_unreachable",
        "ir3_array_to_ssa",
        "ir3_lower_shared_phis",
        "ir3_cf",
        "ir3_cp",
        "ir3_cse",
        "ir3_dce",
        "ir3_opt_predicates",
        "ir3_shared_fold",
        "ir3_create_alias_tex_regs",
        "ir3_sched_add_deps",
        "ir3_sched",
        "ir3_cleanup_rpt",
        "create_parallel_copies",
        "shared register allocation",
        "ir3_spill",
        "ir3_group",
    ];
    match pass {
        "register allocation" | "ir3_lower_spill" => Form::Registers,
        _ if BEFORE_ALLOCATION.contains(&pass) => Form::Ssa,
        _ => Form::Machine,
    }
}

/// The GPU that a log is for: its folder's name up to a dash.
fn target(file: &Path) -> Target {
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("");
    Target::by_name(folder.split('-').next().unwrap_or("")).unwrap_or_default()
}

/// A line of Mesa's, or of ours, without prefix, colours, and the numbers that are not kept.
fn comparable(line: &str) -> String {
    let mut bare = String::new();
    for (i, piece) in line.strip_prefix("MESA: info: ").unwrap_or(line).split('\x1b').enumerate() {
        bare += if i == 0 { piece } else { piece.split_once('m').map_or("", |(_, rest)| rest) };
    }
    match bare.split_once(": \t") {
        Some((numbers, rest)) => {
            let unused = if numbers.ends_with("XXX") { "XXX" } else { "" };
            // `ball` and `bany` get an inversion that Mesa does not print; an opcode without a name gets one.
            let rest = rest.replace("(null)", "ccinv");
            let rest = if rest.contains("ball ") || rest.contains("bany ") { rest.replace('!', "") } else { rest };
            format!("{}{unused}\t{}", numbers.split(':').next().unwrap_or(""), rest.trim_end())
        }
        None => bare.trim_end().to_owned(),
    }
}

/// The first line that we write otherwise than Mesa.
fn text_difference(mesa: &str, ours: &str) -> Option<String> {
    let mut mesa = mesa.lines().map(comparable);
    let mut ours = ours.lines().map(comparable);
    loop {
        match (mesa.next(), ours.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(format!("written otherwise:\n  {a:?}\n  {b:?}")),
        }
    }
}

/// Where two programs part.
fn first_difference(a: &Program, b: &Program) -> String {
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let lines = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    let (a, b) = lines.unwrap_or(("nothing that Debug shows", ""));
    format!("reads back differently: {} is {}", a.trim(), b.trim())
}

#[test]
fn sections_read_and_write() {
    let Some(folder) = shared() else {
        println!("skipped: ../shared is absent");
        return;
    };
    let all = !cfg!(debug_assertions) || std::env::var_os("IR3_LOGS").is_some_and(|v| v == "all");
    let files = logs(&folder);
    let files: Vec<_> = files.iter().step_by(if all { 1 } else { 8 }).collect();
    let (mut sections_read, mut blocks, mut instrs, mut bytes) = (0usize, 0usize, 0usize, 0usize);
    let mut errors = Vec::new();
    let start = std::time::Instant::now();
    for file in &files {
        let target = target(file);
        let log = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        for (title, text) in sections(&log) {
            let place = || format!("{} {title}", file.display());
            sections_read += 1;
            bytes += text.len();
            let program = match read(text) {
                Ok(program) => program,
                Err(error) => {
                    errors.push(format!("{}: {error}", place()));
                    continue;
                }
            };
            blocks += program.layout.len();
            instrs += program.instruction_count();
            if let Err(violations) = validate(&program, &target, form(title)) {
                for violation in violations {
                    errors.push(format!("{}: {:?}: {violation}", place(), violation.rule));
                }
            }
            let written = write(&program);
            errors.extend(text_difference(text, &written).map(|difference| format!("{}: {difference}", place())));
            match read(&written) {
                Ok(again) if again == program => {}
                Ok(again) => errors.push(format!("{}: {}", place(), first_difference(&program, &again))),
                Err(error) => errors.push(format!("{}: does not read back: {error}", place())),
            }
        }
    }
    println!(
        "{} logs: {sections_read} sections, {blocks} blocks, {instrs} instructions, {bytes} bytes in {:.1?}, {} errors",
        files.len(),
        start.elapsed(),
        errors.len()
    );
    for error in errors.iter().take(std::env::var("IR3_ERRORS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)) {
        println!("{error}");
    }
    assert!(errors.is_empty());
    assert!(sections_read > 0, "no sections in {}", folder.display());
}
