//! `spirv`, as a program.

use crate::common::folder::Folder;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "shader: MESA_SHADER_FRAGMENT
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:    // preds:
    32      %0 = load_const (0x00000000)
    32x2    %1 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32x4    %2 = @load_interpolated_input (%1, %0 (0x0)) (base=0, component=0, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    32      %3 = fadd %2.x, %2.y
                 @store_output (%3, %0 (0x0)) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=FRAG_RESULT_DATA0 slots=1)
                 // succs: b1
    block b1:
}
";

fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ir3-equiv"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    output.expect("our own program")
}

#[test]
fn a_program_becomes_a_module() {
    let folder = Folder::new("spirv");
    fs::write(folder.path().join("x.nir"), PROGRAM).expect("a file");
    let text = run(folder.path(), "spirv x.nir");
    assert_eq!(text.status.code(), Some(0));
    let text = String::from_utf8(text.stdout).expect("text");
    for line in ["OpEntryPoint Fragment", "OpExecutionMode", "OriginUpperLeft", "OpFAdd", "OpStore"] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    // A load, two components, a sum, a store.
    let counts = run(folder.path(), "spirv x.nir -o x.spv");
    assert_eq!(String::from_utf8_lossy(&counts.stdout), "x.nir: 5 instructions, 5 of nir\n");
    let module = fs::read(folder.path().join("x.spv")).expect("a module");
    assert_eq!(module[..4], 0x0723_0203_u32.to_le_bytes());
    assert_eq!(module.len() % 4, 0);
}

#[test]
fn what_has_no_form_is_named() {
    let folder = Folder::new("spirv-refused");
    let refused = PROGRAM.replace("%3 = fadd %2.x, %2.y", "%3 = @load_tcs_header_ir3");
    fs::write(folder.path().join("x.nir"), refused).expect("a file");
    let output = run(folder.path(), "spirv x.nir -o x.spv");
    assert_ne!(output.status.code(), Some(0));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("`load_tcs_header_ir3` has no form in SPIR-V"), "{message}");
    assert!(!folder.path().join("x.spv").exists());
}
