//! Every `AFTER: …` section of Mesa's logs is read, written and read again.
//!
//! `IR3_SHARED` is the folder with the logs (`mesa` in it), by default `../shared`, next to the workspace. All logs:
//! `cargo test --release -p ir3-compiler --test suite mesa_logs:: -- --nocapture`. Without optimisation (`cargo test`)
//! one log in eight is read, unless `IR3_LOGS=all`.

use crate::common::gpu::gpu;
use crate::common::logs::{logs, text};
use crate::common::passes::passes;
use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::text::{read, write};
use ir3_compiler::ir3::validate::{Form, validate};
use std::path::PathBuf;

/// The form of a program after a pass of Mesa's.
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

/// A line of Mesa's or ours without prefix, colours, and the numbers that are not kept.
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

/// The first line that our text has different from Mesa's.
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

/// The first difference of two programs.
fn first_difference(a: &Program, b: &Program) -> String {
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let lines = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    let (a, b) = lines.unwrap_or(("nothing that Debug shows", ""));
    format!("reads back differently: {} is {}", a.trim(), b.trim())
}

#[test]
fn sections_read_and_write() {
    let folders = logs();
    let all = !cfg!(debug_assertions) || std::env::var_os("IR3_LOGS").is_some_and(|v| v == "all");
    let files = folders.iter().flat_map(|(folder, logs)| logs.iter().map(move |log| (folder, log)));
    let files: Vec<(&String, &PathBuf)> = files.step_by(if all { 1 } else { 8 }).collect();
    let (mut sections_read, mut blocks, mut instrs, mut bytes) = (0usize, 0usize, 0usize, 0usize);
    let mut errors = Vec::new();
    let start = std::time::Instant::now();
    for (folder, file) in &files {
        let target = gpu(folder);
        let log = text(file);
        for (title, text) in passes(&log) {
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
    assert!(files.is_empty() || sections_read > 0, "no sections in {} logs", files.len());
}
