//! `ir3-vulkan`: its protocol, and jobs on lavapipe where `ci/stock-mesa --lavapipe` has unpacked it.

#![cfg(target_os = "linux")]

use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel, StorageClass,
};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const WORKER: &str = env!("CARGO_BIN_EXE_ir3-vulkan");

/// A worker with lavapipe.
fn lavapipe() -> Option<Command> {
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/lavapipe/usr/lib/x86_64-linux-gnu");
    let driver = libraries.join("libvulkan_lvp.so");
    if !driver.is_file() {
        eprintln!("no target/lavapipe: nothing is tested (`ci/stock-mesa --lavapipe` unpacks it)");
        return None;
    }
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(WORKER).arg("--driver").arg(driver);
    Some(command)
}

/// The output of a worker for jobs.
fn output(mut command: Command, jobs: &[Vec<u32>]) -> Vec<u8> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a worker");
    let mut stdin = child.stdin.take().expect("its input");
    for job in jobs {
        let words = [&[job.len() as u32], &job[..]].concat();
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        // A worker that has failed does not read it.
        let _ = stdin.write_all(&bytes);
    }
    drop(stdin);
    child.wait_with_output().expect("its end").stdout
}

/// A module that copies the word of a push constant to a storage buffer.
fn copies(capability: Capability) -> Vec<u32> {
    let mut b = Builder::new();
    b.set_version(1, 3);
    b.capability(Capability::Shader);
    b.capability(capability);
    b.memory_model(AddressingModel::Logical, MemoryModel::GLSL450);
    let (void, word) = (b.type_void(), b.type_int(32, 0));
    let block = b.type_struct([word]);
    b.decorate(block, Decoration::Block, []);
    b.member_decorate(block, 0, Decoration::Offset, [Operand::LiteralBit32(0)]);
    let variable = |b: &mut Builder, class| {
        let pointer = b.type_pointer(None, class, block);
        b.variable(pointer, None, class, None)
    };
    let (buffer, pushed) =
        (variable(&mut b, StorageClass::StorageBuffer), variable(&mut b, StorageClass::PushConstant));
    b.decorate(buffer, Decoration::DescriptorSet, [Operand::LiteralBit32(0)]);
    b.decorate(buffer, Decoration::Binding, [Operand::LiteralBit32(3)]);
    let zero = b.constant_bit32(word, 0);
    let to = b.type_pointer(None, StorageClass::StorageBuffer, word);
    let from = b.type_pointer(None, StorageClass::PushConstant, word);
    let function = b.type_function(void, []);
    let main = b.begin_function(void, None, FunctionControl::NONE, function).expect("a function");
    b.begin_block(None).expect("a block");
    let from = b.access_chain(from, None, pushed, [zero]).expect("a pointer");
    let value = b.load(word, None, from, None, []).expect("a value");
    let to = b.access_chain(to, None, buffer, [zero]).expect("a pointer");
    b.store(to, value, None, []).expect("a store");
    b.ret().expect("an end");
    b.end_function().expect("an end");
    b.entry_point(ExecutionModel::GLCompute, main, "main", []);
    b.execution_mode(main, ExecutionMode::LocalSize, [1, 1, 1]);
    b.module().assemble()
}

/// A job with this push constant and a buffer of two words.
fn job(module: &[u32], pushed: u32) -> Vec<u32> {
    let head = [module.len() as u32, 1, 1, 1, 1, 1];
    let draw = [0; 7];
    let buffer = [0, 3, 0, 1, 2, 0, 0, 0, 0, 0, 0];
    [&head[..], &draw, &buffer, module, &[pushed, 5, 6]].concat()
}

#[test]
fn a_driver_that_is_not_there_is_named() {
    let mut command = Command::new(WORKER);
    command.args(["--driver", "/nowhere/libvulkan_x.so"]);
    let text = String::from_utf8(output(command, &[])).expect("a text");
    assert!(text.starts_with("failed ") && text.contains("/nowhere/libvulkan_x.so"), "{text}");
    let text = String::from_utf8(output(Command::new(WORKER), &[])).expect("a text");
    assert!(text.starts_with("failed --driver is missing"), "{text}");
}

#[test]
fn jobs_are_executed() {
    let Some(command) = lavapipe() else { return };
    let module = copies(Capability::Matrix);
    let lacking = copies(Capability::Kernel);
    let out = output(command, &[job(&module, 7), job(&lacking, 8), job(&[1, 2, 3], 8), job(&module, 9)]);
    let mut rest = &out[..];
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let length = line.split(' ').nth(1).and_then(|length| length.parse().ok()).unwrap_or(0);
        let (bytes, more) = rest.split_at(length);
        rest = more;
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        (line, words)
    };
    assert!(line().0.starts_with("ready llvmpipe"));
    assert!(line().0.starts_with("subgroup-size="));
    // The second word is not stored.
    assert_eq!(line(), ("executed 8 ".to_owned(), vec![7, 6]));
    let (unsupported, words) = line();
    assert!(unsupported.starts_with("unsupported 0 ") && unsupported.contains("Kernel"), "{unsupported}");
    assert!(words.is_empty());
    assert!(line().0.starts_with("invalid 0 "));
    assert_eq!(line(), ("executed 8 ".to_owned(), vec![9, 6]));
}
