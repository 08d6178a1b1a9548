//! Machine code that Mesa's tools print, as programs get it: `hazards`, `run`, `stats`, `assemble` and `disassemble` on
//! dumps, listings and assembly.

use crate::common::folder::Folder;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    output.expect("our own program")
}

/// The exit code, and all that is printed.
fn outcome(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let output = run(folder, arguments);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
    )
}

/// A dump of a hang: two programs, one of which is printed twice, between registers and packets.
pub const DUMP: &str = "\
---
module: msm
revision: 660 (6.6.0.1)
Got chip_id=0x6060001
\t\topcode: CP_LOAD_STATE6_GEOM (32) (4 dwords)
\t\t\t{ EXT_SRC_ADDR = 0x1e7000 }
\t\t\t:1:0000:0000[204cc000x_00000001x] mov.u32u32 r0.x, 1
\t\t\t:2:0001:0001[42100001x_20010000x] add.u r0.y, r0.x, 1
\t\t\t:0:0002:0002[03000000x_00000000x] end
\t\t\t:0:0003:0003[00000000x_00000000x] nop
\t\t\tStats:
\t\t\t- shaderdb: 4 instr, 1 nops
\t\twrite SP_FS_OBJ_START (a983)
\t\t\t:6:0000:0000[c0060002x_01800001x] ldg.u32 r0.z, g[r0.x], 1
\t\t\t:2:0001:0001[42100001x_20010002x] add.u r0.y, r0.z, 1
\t\t\t:0:0002:0002[03000000x_00000000x] end
\t\t+ RB_CNTL: 0x1
\t\t\t:1:0000:0000[204cc000x_00000001x] mov.u32u32 r0.x, 1
\t\t\t:2:0001:0001[42100001x_20010000x] add.u r0.y, r0.x, 1
\t\t\t:0:0002:0002[03000000x_00000000x] end
\tSP_INST_DATA:
\t\t:0:0000:0000[00000000x_00000000x] nop
\t\t:6:0001:0001[deadbeefx_deadbeefx] no match: deadbeefdeadbeef
";

#[test]
fn each_program_of_a_dump_has_a_row_with_the_lines_of_its_hazards() {
    let folder = Folder::new("listings-dump");
    fs::write(folder.path().join("crash.log"), DUMP).expect("a file");
    let (code, text) = outcome(folder.path(), "hazards crash.log");
    for expected in [
        "crash.log#0 (line 7, and again): refuted",
        "line 8, l1: add.u r0.y, r0.x",
        "crash.log#1 (line 14): refuted",
        "reads a result without (sy)",
        "line 15, l1: add.u",
        "crash.log#2 (line 22): unknown: crash.log:23:1: not an instruction",
        "3 programs",
    ] {
        assert!(text.contains(expected), "expected {expected} in {text}");
    }
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("checked as"), "{text}");
}

#[test]
fn all_forms_of_a_program_have_the_same_verdict() {
    let folder = Folder::new("listings-forms");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write(
        "a.asm",
        "@localsize 32, 1, 1\n@invocationid(r0.x)\nmov.u32u32 r0.y, r0.x\n(rpt2)nop\nmul.f r0.z, r0.y, r0.x\nnop(sy)\nend\n",
    );
    for form in ["ir3-disasm", "log", "cffdump", "plain"] {
        let listed = run(folder.path(), &format!("disassemble a.asm --as {form}"));
        assert_eq!(listed.status.code(), Some(0));
        write("b.txt", &String::from_utf8_lossy(&listed.stdout));
        let (code, text) = outcome(folder.path(), "hazards b.txt --gpu a660");
        assert!(code == Some(0) && text.contains("proved, 5 instructions"), "{form}: {text}");
        assert_eq!(outcome(folder.path(), "assemble b.txt"), outcome(folder.path(), "assemble a.asm"), "{form}");
        assert_eq!(outcome(folder.path(), "run b.txt").0, Some(0), "{form}");
        assert!(outcome(folder.path(), "stats b.txt").1.contains("7 inst"), "{form}");
    }
    write("c.txt", "a log\nmov.u32u32 r0.y, r0.x\n(rpt1)nop\nmul.f r0.z, r0.y, r0.x\nend\nthe end\n");
    let (code, text) = outcome(folder.path(), "hazards c.txt --gpu a660");
    assert!(code == Some(1) && text.contains("one slot too early") && text.contains("line 4, l2: mul.f"), "{text}");
}

#[test]
fn two_listings_are_compared_as_far_as_they_name_results() {
    let folder = Folder::new("listings-check");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    let compute = "@localsize 64, 1, 1\n@invocationid(r0.x)\nmov.u32u32 r1.x, r0.x\n(rpt2)nop\nadd.u r1.x, r1.x, 5\n(rpt5)nop\n\
                   stib.b.untyped.1d.u32.1.imm r1.x, r0.x, 0\nend\n";
    write("a.asm", compute);
    write("b.asm", &compute.replace("mov.u32u32 r1.x, r0.x\n(rpt2)nop\nadd.u r1.x, r1.x, 5", "add.u r1.x, r0.x, 5"));
    write("c.asm", &compute.replace("r1.x, 5", "r1.x, 6"));
    let (code, text) = outcome(folder.path(), "check a.asm b.asm --gpu a660");
    assert!(code == Some(0) && text.contains("proved"), "{text}");
    let (code, text) = outcome(folder.path(), "check a.asm c.asm --gpu a660");
    assert!(code == Some(1) && text.contains("before add.u r1.x, r1.x, 0x5"), "{text}");
    // For another stage, the registers at the end count, too.
    for (name, of) in [("d.asm", "a.asm"), ("e.asm", "b.asm")] {
        let text = fs::read_to_string(folder.path().join(of)).expect("a file");
        write(name, text.split_once("(r0.x)\n").expect("a directive").1);
    }
    let (code, text) = outcome(folder.path(), "check d.asm e.asm --gpu a660");
    assert!(code == Some(3) && text.contains("the texts do not name the registers that are read after them"), "{text}");
}

/// The end of each compute shader of a7xx, which the text after a pass does not have.
#[test]
fn the_lock_before_the_end_is_no_finding() {
    let folder = Folder::new("listings-lock");
    fs::write(folder.path().join("x.asm"), "(sy)(ss)lock\nunlock\nend\n").expect("a file");
    let (code, text) = outcome(folder.path(), "hazards x.asm --gpu a750");
    assert!(code == Some(0) && text.contains("proved, 3 instructions") && text.contains(" 0 findings"), "{text}");
}

#[test]
fn pieces_are_completed_and_gaps_are_not() {
    let folder = Folder::new("listings-pieces");
    let write = |text: &str| fs::write(folder.path().join("x.txt"), text).expect("a file");
    write(" 12[204cc001_00000001] mov.u32u32 r0.y, 1\n 13[00900000_00000007] br !p0.x, #l20\n");
    let (code, text) = outcome(folder.path(), "hazards x.txt --gpu a660");
    assert!(code == Some(0) && text.contains("taken: an `end` after the last line, the end at l20"), "{text}");
    write("  0[204cc001_00000001] mov.u32u32 r0.y, 1\n  5[03000000_00000000] end\n");
    let (code, text) = outcome(folder.path(), "hazards x.txt --gpu a660");
    assert!(code == Some(3) && text.contains("found position 5 after 0, expected 1"), "{text}");
    write("  0[c6b8b8c7_fbb06c83] no match: c6b8b8c7fbb06c83\n  1[03000000_00000000] end\n");
    let (code, text) = outcome(folder.path(), "hazards x.txt --gpu a660");
    assert!(code == Some(3) && text.contains("x.txt:1:1: not an instruction"), "{text}");
}

#[test]
fn pasted_texts_are_read_or_named() {
    let folder = Folder::new("listings-pasted");
    let plain = "mov.u32u32 r0.y, r<a0.x + 2>\n(rpt2)nop\nmul.f r0.z, r0.y, r0.x\nend\n";
    let lines = |line: &dyn Fn(usize, &str) -> String| {
        plain.lines().enumerate().map(|(i, it)| line(i, it) + "\n").collect::<String>()
    };
    let wide: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let pastes: [Vec<u8>; 9] = [
        lines(&|_, it| format!("> {it}")).into(),
        lines(&|i, it| format!("{:4}: {it}", i + 10)).into(),
        lines(&|_, it| format!("\t\x1b[1m{it}\x1b[0m")).into(),
        lines(&|_, it| format!("MESA: info: {it}")).into(),
        lines(&|_, it| it.replace(' ', "\t")).into(),
        lines(&|_, it| it.to_owned() + "\r").into(),
        format!("<pre>{}</pre>", plain.replace('<', "&lt;").replace('>', "&gt;")).into(),
        format!("```\n{plain}```\n").into(),
        wide,
    ];
    for paste in pastes {
        fs::write(folder.path().join("x.txt"), &paste).expect("a file");
        let (code, text) = outcome(folder.path(), "hazards x.txt --gpu a660");
        assert!(
            code == Some(0) && text.contains("proved, 4 instructions"),
            "{}: {text}",
            String::from_utf8_lossy(&paste)
        );
    }
    fs::write(folder.path().join("x.txt"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).expect("a file");
    let (code, text) = outcome(folder.path(), "hazards x.txt");
    assert!(code == Some(2) && text.contains("compressed by gzip") && text.contains("`gunzip`"), "{text}");
}
