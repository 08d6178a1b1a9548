//! Pieces of programs, as in reports: missing definitions are taken for inputs and named, and lines that cannot be read
//! are shown.

use crate::common::folder::Folder;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code, and all that is printed.
fn outcome(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.expect("our own program");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
    )
}

fn expect(folder: &Path, arguments: &str, code: i32, texts: &[&str]) {
    let (found, text) = outcome(folder, arguments);
    assert_eq!(found, Some(code), "{arguments}: {text}");
    for expected in texts {
        assert!(text.contains(expected), "{arguments}: expected {expected} in {text}");
    }
}

#[test]
fn pieces_of_ir3_have_inputs_and_an_end() {
    let folder = Folder::new("fragments-ir3");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    // No block, no end, values that nothing defines.
    write("a.txt", "\t0005:0004:001: \tadd.f ssa_5, ssa_2, (neg)ssa_3\n\t0006:0005:000: \tmul.f ssa_6, ssa_5, ssa_5\n");
    write("b.txt", "\t0005:0004:001: \tadd.f ssa_5, ssa_2, ssa_3\n\t0006:0005:000: \tmul.f ssa_6, ssa_5, ssa_5\n");
    expect(
        folder.path(),
        "run a.txt",
        0,
        &["taken: a block around the lines; the inputs ssa_2, ssa_3; an `end`", "the outputs ssa_6", "output"],
    );
    expect(folder.path(), "check a.txt a.txt", 0, &["proved", "compared at the end: ssa_6"]);
    expect(folder.path(), "check a.txt b.txt", 1, &["refuted", "compared at the end: ssa_6"]);
    expect(folder.path(), "stats a.txt", 0, &["3 inst"]);
    // Registers, a block that is not there.
    write(
        "c.ir3",
        "block3 {\n\t0001:0001:000: \tadd.f r0.z, r0.x, r0.y\n\t0002:0002:000: \tmul.f r0.w, r0.z, r0.x\n\t/* succs: block7 */\n}\n",
    );
    expect(
        folder.path(),
        "hazards c.ir3 --gpu a660",
        1,
        &["3 slots too early", "line 3, l1", "taken: the end at block7"],
    );
    expect(folder.path(), "run c.ir3", 0, &["the inputs r0.x, r0.y", "the outputs r0.w"]);
    // The notation of reports.
    write("d.txt", "ssa_1 = ...\nssa_2 = ...\nssa_4 = collect ssa_1, ssa_2 (kill)\n... = ssa_4 (kill)\n");
    write("e.txt", "ssa_1 = ...\nssa_2 = ...\nssa_4 = collect ssa_2, ssa_1 (kill)\n... = ssa_4 (kill)\n");
    expect(folder.path(), "run d.txt", 0, &["the inputs ssa_1, ssa_2", "output 0.1"]);
    expect(folder.path(), "check d.txt d.txt", 0, &["proved"]);
    expect(folder.path(), "check d.txt e.txt", 1, &["refuted"]);
    expect(folder.path(), "hazards d.txt", 2, &["no final program"]);
}

#[test]
fn pieces_of_nir_have_a_header_and_inputs() {
    let folder = Folder::new("fragments-nir");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    let body = "    div 32    %3 = fadd %1.x, %2.y\n    div 1     %4 = flt %3, %1.x\n    div 32    %5 = b2f32 %4\n    con 32    %6 = load_const (0x00000000)\n                   @store_output (%5, %6 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=VARYING_SLOT_VAR0 slots=1)\n";
    write("a.txt", body);
    write("b.txt", &body.replace("%2.y", "%2.x"));
    expect(folder.path(), "run a.txt", 0, &["the inputs %1, %2", "output 0.0"]);
    expect(folder.path(), "check a.txt a.txt", 0, &["proved"]);
    expect(folder.path(), "check a.txt b.txt", 1, &["refuted"]);
    expect(folder.path(), "stats a.txt --gpu a660", 0, &["inst"]);
    write(
        "c.txt",
        &format!(
            "impl main {{\n    con block b0:  // preds:\n{body}                   // succs: b1\n    block b1:\n}}\n"
        ),
    );
    expect(folder.path(), "check a.txt c.txt", 0, &["proved"]);
    write("d.txt", &body.replace("fadd", "fnothing"));
    expect(
        folder.path(),
        "run d.txt",
        2,
        &["d.txt:1:20: found `fnothing`", "    div 32    %3 = fnothing", "\n                       ^\n"],
    );
}

#[test]
fn lines_that_cannot_be_read_are_shown_and_versions_named() {
    let folder = Folder::new("fragments-errors");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("a.ir3", "block0 {\n\t0001:0001:000: \tadd.f r0.z, r0.x, what\n\t0002:0002:000: \tend\n}\n");
    expect(
        folder.path(),
        "run a.ir3",
        2,
        &["a.ir3:2:36: found `what`", "     0001:0001:000:  add.f r0.z, r0.x, what\n", "^\n"],
    );
    write("b.asm", "mov.u32u32 r0.x, r1.x\nadd.f r0.z, r0.x\nend\n");
    for command in ["assemble b.asm", "hazards b.asm", "run b.asm"] {
        expect(
            folder.path(),
            command,
            2,
            &["b.asm:2:17: found the end of the line, expected `,`", "    add.f r0.z, r0.x\n                    ^\n"],
        );
    }
    for old in [
        "0079:0103:009: mov.u32u32 r1.w, r0.x, right=_[0080:0104:009: mov.u32u32]\n",
        "block0 {\n0079:0107:002: _meta:collect r1.w (wrmask=0x3), r1.w, r2.x, false-deps:_[0098:0126:000: mov.u32u32]\n}\n",
    ] {
        write("old.txt", old);
        expect(folder.path(), "run old.txt", 2, &["which Mesa 20 (2020) prints, expected text of Mesa 23.1 or later"]);
    }
}

#[test]
fn commands_that_find_nothing_say_what_they_found() {
    let folder = Folder::new("fragments-nothing");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("app.log", "starting\nframe 1\nframe 2\n");
    for command in ["hazards", "mesa", "stats", "run"] {
        let (code, text) = outcome(folder.path(), &format!("{command} app.log"));
        assert!(code != Some(0) && text.contains("app.log: found 3 lines"), "{command}: {code:?} {text}");
    }
    write(
        "nir.log",
        "NIR (final form) for VERT shader (null):\nshader: MESA_SHADER_VERTEX\nimpl main {\n    con block b0:  // preds:\n                   // succs: b1\n    block b1:\n}\n\n",
    );
    expect(
        folder.path(),
        "hazards nir.log",
        4,
        &["nir.log: found `NIR (final form) for VERT shader`, expected a final program", "IR3_SHADER_DEBUG"],
    );
}
