//! Generated programs as SPIR-V: each is translated or refused by name; a translation can be read back, and
//! `spirv-val` accepts it if it is installed.

use super::{Module, NoForm};
use crate::generator::{self, Features, Profile};
use ir3_compiler::nir::{self, Stage};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

fn translated(text: &str) -> Result<Module, NoForm> {
    Module::of(&nir::read(text).expect("a program"))
}

/// The error of `spirv-val` for a module; `None` if it accepts it or is not installed.
fn refused(module: &Module) -> Option<String> {
    let mut child = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.2", "--scalar-block-layout", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().expect("a pipe").write_all(&module.bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    (!output.status.success()).then(|| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn generated_programs_are_translated() {
    let (mut refusals, mut done) = (BTreeMap::<NoForm, u32>::new(), BTreeMap::<Stage, u32>::new());
    for (seed, profile) in (0..420).zip(Profile::SHAPED.into_iter().cycle()) {
        let shader = generator::from_seed(seed, profile, Features::ALL).shader;
        let module = match Module::of(&shader) {
            Ok(module) => module,
            Err(refusal) => {
                *refusals.entry(refusal).or_default() += 1;
                continue;
            }
        };
        let words = module.words();
        let read = rspirv::dr::load_words(&words).unwrap_or_else(|error| panic!("{profile} {seed}: {error}"));
        assert_eq!(read.functions.len(), 1);
        if let Some(message) = refused(&module) {
            panic!("{profile} {seed}: {message}\n{}\n{module}", nir::write(&shader));
        }
        *done.entry(shader.stage).or_default() += 1;
    }
    assert_eq!(done.len(), 3, "{done:?}, refused: {refusals:?}");
    // Operations that SPIR-V has not, and that are not written out, are refused by name.
    assert!(done.values().sum::<u32>() >= 390, "{done:?}, refused: {refusals:?}");
}

/// A compute shader with these lines after a constant, `%0`.
fn text(lines: &str) -> String {
    format!(
        "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:   // preds:\n    32   %0 = load_const (0x00000000)\n{lines}\n                // succs: b1\n    block b1:\n}}\n"
    )
}

/// A rounding mode that the header requires is an execution mode; without one, SPIR-V leaves the rounding open as nir
/// does.
#[test]
fn a_required_rounding_is_an_execution_mode() {
    let open = text("    16   %1 = f2f16 %0");
    let even = open.replace("subgroup_size", "float_controls_execution_mode: 0x00018000\nsubgroup_size");
    for (text, modes) in [(&open, 0), (&even, 2)] {
        let module = translated(text).expect("a module");
        assert_eq!(refused(&module), None, "{module}");
        assert_eq!(module.to_string().matches("RoundingModeRTE 16").count(), modes / 2, "{module}");
        assert_eq!(module.to_string().matches("RoundingModeRTE 32").count(), modes / 2, "{module}");
    }
    assert!(
        translated(&open.replace("subgroup_size", "float_controls_execution_mode: 0x00040000\nsubgroup_size")).is_err()
    );
}

/// Words of 64 bits are chosen one by one.
#[test]
fn a_choice_of_64_bits_is_translated() {
    let module = translated(&text(
        "    64   %1 = load_const (0x0000000100000002)\n    64   %2 = load_const (0x0000000300000004)\n    64   %3 = b32csel %0, %1, %2",
    ));
    assert_eq!(refused(&module.expect("a module")), None);
}

/// A buffer that only gets floats has elements of floats: a store is a pointer and a store, without a cast.
#[test]
fn floats_are_stored_as_floats() {
    let store = "                 @store_ssbo_ir3 (%1, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)";
    let size = |lines: &str| {
        let module = translated(&text(lines)).expect("a module");
        assert_eq!(refused(&module), None, "{module}");
        module.instruction_count()
    };
    let floats = format!("    32   %1 = frcp %0\n{store}");
    assert_eq!(size(&floats), 3);
    let load = "    32   %2 = @load_ssbo_ir3 (%0, %0, %0) (base=0, access=none, align_mul=4, align_offset=0)";
    // A pointer and a load, and the cast.
    assert_eq!(size(&format!("{floats}\n{load}")), 6);
}

#[test]
fn barriers_have_the_scopes_of_vulkan() {
    let barrier = |execution: &str, memory: &str| {
        let modes = "mem_semantics=ACQ|REL, mem_modes=ssbo";
        text(&format!("                 @barrier (execution_scope={execution}, memory_scope={memory}, {modes})"))
    };
    for (execution, memory, instructions) in [
        ("NONE", "INVOCATION", 0),
        ("INVOCATION", "INVOCATION", 0),
        ("INVOCATION", "WORKGROUP", 1),
        ("SUBGROUP", "SUBGROUP", 1),
        ("WORKGROUP", "DEVICE", 1),
        ("NONE", "QUEUE_FAMILY", 1),
    ] {
        let module = translated(&barrier(execution, memory)).expect("a module");
        // The constant of the program is a global.
        assert_eq!((module.instruction_count(), refused(&module)), (instructions, None), "{execution} {memory}");
    }
    for (execution, memory, named) in [
        ("DEVICE", "DEVICE", "a barrier of the execution scope DEVICE"),
        ("WORKGROUP", "SHADER_CALL", "a barrier of the memory scope SHADER_CALL"),
    ] {
        let refusal = translated(&barrier(execution, memory)).err().expect("a refusal");
        assert_eq!(refusal.to_string(), format!("{named} has no form in SPIR-V"));
    }
}

#[test]
fn what_has_no_form_is_named() {
    let refusal = translated(&text("    32   %1 = @load_tcs_header_ir3")).err().expect("a refusal");
    assert_eq!(refusal.to_string(), "`load_tcs_header_ir3` has no form in SPIR-V");
    let refusal = translated(&text("    32x5 %1 = vec5 %0, %0, %0, %0, %0")).err().expect("a refusal");
    assert_eq!(refusal.to_string(), "a vector of 5 components has no form in SPIR-V");
    assert!(translated(&text("    32   %1 = @load_subgroup_size")).is_ok());
}

/// Words of the constant file are push constants if all accesses are within the first 32.
#[test]
fn constants_of_low_numbers_are_push_constants() {
    let storage = |lines: &str| {
        let module = translated(&text(lines)).expect("a module");
        assert_eq!(refused(&module), None, "{module}");
        let module = module.to_string();
        ["PushConstant", "Uniform "].map(|name| module.contains(name))
    };
    let load = |base: u32| format!("    32x4 %1 = @load_const_ir3 (%0) (base={base})");
    assert_eq!(storage(&load(28)), [true, false]);
    assert_eq!(storage(&load(32)), [false, true]);
    // Over the end.
    assert_eq!(storage(&load(30)), [true, true]);
    let computed = "    32   %2 = @load_local_invocation_index\n    32   %3 = load_const (0x00000007)\n    32   %4 = iand %2, %3\n";
    assert_eq!(storage(&format!("{computed}    32   %5 = @load_const_ir3 (%4) (base=4)")), [true, false]);
    assert_eq!(storage(&format!("{computed}    32   %5 = @load_const_ir3 (%2) (base=4)")), [false, true]);
}

/// A descriptor whose number is computed is an element of an array; a bindless one is in a set of its own.
#[test]
fn descriptors_are_in_arrays_and_sets() {
    let load = |handle: &str| {
        format!("    32   %9 = @load_ssbo_ir3 ({handle}, %0, %0) (base=0, access=none, align_mul=4, align_offset=0)")
    };
    let module = |lines: &str| {
        let module = translated(&text(lines)).expect("a module");
        assert_eq!(refused(&module), None, "{module}");
        module.to_string()
    };
    let plain = module(&load("%0"));
    assert!(plain.contains("DescriptorSet 0") && !plain.contains("ArrayDynamicIndexing"), "{plain}");
    let index = "    32   %1 = @load_workgroup_id.x\n".replace(".x", "");
    let index = index.replace("32   %1", "32x3 %1") + "    32   %2 = mov %1.x\n";
    let computed = module(&(index + &load("%2")));
    assert!(computed.contains("StorageBufferArrayDynamicIndexing"), "{computed}");
    let bindless = "    32   %1 = @bindless_resource_ir3 (%0) (desc_set=1)\n".to_owned();
    let bindless = module(&(bindless + &load("%1")));
    assert!(bindless.contains("DescriptorSet 2"), "{bindless}");
}

/// Scratch memory is an array of words of the function, of which bytes are parts.
#[test]
fn scratch_memory_is_an_array_of_words() {
    let program = text(
        "    8    %1 = load_const (0x05)\n                 @store_scratch (%1, %0) (align_mul=1, align_offset=0, wrmask=x)\n    \
         16x2 %2 = @load_scratch (%0) (align_mul=2, align_offset=0)",
    );
    let sized = program.replace("subgroup_size", "scratch: 64\nsubgroup_size");
    let module = translated(&sized).expect("a module");
    assert_eq!(refused(&module), None, "{module}");
    assert!(module.to_string().contains("OpBitFieldInsert"), "{module}");
    // Its size is not known.
    assert!(translated(&program).is_err());
}
