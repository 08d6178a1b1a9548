//! `reduce --test CMD` and `reduce BEFORE AFTER`.

use crate::common::folder::{Folder, run, write_script};
use ir3_programs::input;
use std::fs;
use std::path::Path;

fn reduce(folder: &Folder, arguments: &str, code: i32) -> String {
    let arguments: Vec<&str> = ["reduce"].into_iter().chain(arguments.split_whitespace()).collect();
    let (found, text) = run(folder.path(), &arguments);
    assert_eq!(found, Some(code), "{arguments:?}: {text}");
    text
}

/// A folder with a file that a shell runs.
fn folder(name: &str, script: &str) -> Folder {
    let folder = Folder::new(&format!("reduce-texts-{name}"));
    write_script(&folder.path().join("test.sh"), script);
    folder
}

fn corpus(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(path);
    path.to_str().expect("UTF-8").to_owned()
}

/// The number of instructions of a program.
fn size(path: &Path) -> usize {
    input::load(path, None).expect("a program that was written").remove(0).program.instruction_count()
}

#[test]
fn a_nir_program_is_reduced_by_a_command() {
    let folder = folder("nir", "grep -q imul \"$1\"");
    fs::copy(corpus("algorithms/hash-pcg.nir"), folder.path().join("x.nir")).expect("a program with a product");
    let text = reduce(&folder, "x.nir --test ./test.sh", 0);
    let result = folder.path().join("x.reduced.nir");
    assert!(fs::read_to_string(&result).expect("a result").contains("imul"));
    assert!(size(&result) <= 5 && size(&folder.path().join("x.nir")) > 8, "{text}");
    assert!(text.contains("written to x.reduced.nir"), "{text}");
    // In one thread it is the same, and the arguments come before the file.
    reduce(&folder, "x.nir --test grep --test-arg -q --test-arg imul --jobs 1 -o y.nir", 0);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a result");
    assert_eq!(read("x.reduced.nir"), read("y.nir"));
}

/// A vec4 program, with a bug that is planted in a pass.
#[test]
fn a_vec4_program_is_reduced_by_its_refuted_stage() {
    let folder = folder("vec4", "");
    // The file test has the expected output, too.
    let case = fs::read_to_string(corpus("file/vec4-select/negated-conditions.nir")).expect("a file test");
    let source = case.split("// expect").next().unwrap_or_default();
    fs::write(folder.path().join("x.nir"), source).expect("a file");
    let (code, text) = run(folder.path(), &["compile", "--gpu", "gen7", "--emit", "vec4-select", "x.nir"]);
    assert_eq!(code, Some(0), "{text}");
    fs::write(folder.path().join("x.vec4"), &text).expect("a file");
    let text = reduce(&folder, "x.vec4", 2);
    assert!(text.contains("found no failure"), "{text}");
    let text = reduce(&folder, "x.vec4 --plant lost-inverse", 0);
    assert!(text.contains("stage vec4-dead-code"), "{text}");
    let result = folder.path().join("x.reduced.vec4");
    assert!(size(&result) <= 8 && size(&folder.path().join("x.vec4")) > 10, "{text}");
    for (plant, expected) in [(&["--plant", "lost-inverse"][..], 1), (&[], 0)] {
        let arguments = [&["verify", "x.reduced.vec4"], plant].concat();
        let (code, text) = run(folder.path(), &arguments);
        assert_eq!(code, Some(expected), "{text}");
    }
    // `compile` plants it, too.
    let compile = |plant: &[&str]| run(folder.path(), &[&["compile", "--gpu", "gen7", "x.nir"], plant].concat());
    let [(code, right), (other, wrong)] = [compile(&[]), compile(&["--plant", "lost-inverse"])];
    assert_eq!((code, other), (Some(0), Some(0)), "{right}{wrong}");
    assert_ne!(right, wrong);
}

#[test]
fn an_ir3_program_is_reduced_by_a_command() {
    let folder = folder("ir3", "grep -q 'mul' \"$1\" && grep -q stib \"$1\"");
    for (name, arguments) in [("ssa", "--emit select"), ("machine", "")] {
        let source = corpus("algorithms/hash-pcg.nir");
        let arguments: Vec<&str> = ["compile", &source].into_iter().chain(arguments.split_whitespace()).collect();
        let (code, text) = run(folder.path(), &arguments);
        assert_eq!(code, Some(0), "{text}");
        let path = folder.path().join(format!("{name}.ir3"));
        fs::write(&path, &text).expect("a file");
        let text = reduce(&folder, &format!("{name}.ir3 --test ./test.sh"), 0);
        let result = folder.path().join(format!("{name}.reduced.ir3"));
        let reduced = fs::read_to_string(&result).expect("a result");
        assert!(reduced.contains("mul") && reduced.contains("stib"), "{reduced}");
        assert!(size(&result) <= 6 && size(&path) > 12, "{text}{reduced}");
    }
}

#[test]
fn branches_of_ir3_are_removed() {
    let folder = folder("branches", "grep -q stib \"$1\"");
    let source = corpus("control-flow/fibonacci.nir");
    for stage in ["select", "lower-copies"] {
        let (_, text) = run(folder.path(), &["compile", &source, "--emit", stage]);
        assert!(text.contains("block2"), "{text}");
        fs::write(folder.path().join("x.ir3"), &text).expect("a file");
        reduce(&folder, "x.ir3 --test ./test.sh", 0);
        let reduced = fs::read_to_string(folder.path().join("x.reduced.ir3")).expect("a result");
        assert!(reduced.contains("stib") && !reduced.contains("block2"), "{reduced}");
    }
}

#[test]
fn a_test_that_says_nothing_is_an_error() {
    let folder = folder("errors", "exit 3");
    fs::copy(corpus("control-flow/fibonacci.nir"), folder.path().join("x.nir")).expect("a program");
    let text = reduce(&folder, "x.nir --test ./test.sh", 2);
    assert!(text.contains("not interesting") && text.contains("it ended with exit code 3"), "{text}");
    let text = reduce(&folder, "x.nir --test ./no-such-command", 2);
    assert!(text.contains("./no-such-command: the command of --test cannot be started"), "{text}");
    let text = reduce(&folder, "x.nir --test sh --test-arg -c --test-arg kill${IFS}-9${IFS}$$", 2);
    assert!(text.contains("signal 9 killed it"), "{text}");
    let text = reduce(&folder, "x.nir --test sh --test-arg -c --test-arg sleep${IFS}20 --test-timeout 50ms", 2);
    assert!(text.contains("longer than --test-timeout"), "{text}");
    let text = reduce(&folder, "missing.nir --test ./test.sh", 2);
    assert!(text.contains("missing.nir: found no such file"), "{text}");
    for bad in ["x.nir --test ./test.sh --plant inverted-branch", "x.nir x.nir --test ./test.sh", "x.nir --test-arg a"]
    {
        reduce(&folder, bad, 2);
    }
    // A file that cannot be written is reported before the command runs.
    fs::write(folder.path().join("file"), "").expect("a file");
    let text = reduce(&folder, "x.nir --test true -o file/y.nir", 74);
    assert!(text.contains("cannot be written"), "{text}");
    assert!(!folder.path().join("x.reduced.nir").exists());
    // A command that a signal kills later on finds nothing interesting then, and that is reported.
    fs::write(folder.path().join("test.sh"), "#!/bin/sh\ncmp -s \"$1\" x.nir && exit 0\nkill -9 $$\n").expect("a file");
    let text = reduce(&folder, "x.nir --test ./test.sh", 2);
    assert!(text.contains("x.nir"), "{text}");
}

/// The two programs get smaller together, and the verdict stays.
#[test]
fn a_pair_is_reduced() {
    let folder = folder("pair", "true");
    let source = corpus("algorithms/hash-pcg.nir");
    for (name, plant) in [("before", &[][..]), ("after", &["--plant", "wrong-constant"])] {
        let arguments = [&["compile", &source][..], plant].concat();
        let (code, text) = run(folder.path(), &arguments);
        assert_eq!(code, Some(0), "{text}");
        fs::write(folder.path().join(format!("{name}.ir3")), text).expect("a file");
    }
    let text = reduce(&folder, "before.ir3 after.ir3", 0);
    let file = |name: &str| folder.path().join(name);
    let sizes = [size(&file("before.reduced/before.ir3")), size(&file("before.reduced/after.ir3"))];
    assert!(text.contains("refuted, memory") && sizes.iter().all(|&size| size <= 8), "{text}: {sizes:?}");
    let (code, text) = run(folder.path(), &["check", "before.reduced/before.ir3", "before.reduced/after.ir3"]);
    assert_eq!(code, Some(1), "{text}");
    // A pair that passes has nothing to keep.
    let text = reduce(&folder, "before.ir3 before.ir3", 2);
    assert!(text.contains("found proved, expected two programs that do not pass"), "{text}");
}

/// nir and ir3: the same outputs and effects are dropped on both sides, and the rest keeps its meaning.
#[test]
fn a_pair_of_two_languages_is_reduced() {
    let folder = folder("languages", "true");
    let source = corpus("algorithms/hash-pcg.nir");
    let (code, text) = run(folder.path(), &["compile", &source, "--plant", "wrong-constant"]);
    assert_eq!(code, Some(0), "{text}");
    fs::write(folder.path().join("after.ir3"), text).expect("a file");
    fs::copy(&source, folder.path().join("before.nir")).expect("a program");
    let before = [size(&folder.path().join("before.nir")), size(&folder.path().join("after.ir3"))];
    let text = reduce(&folder, "before.nir after.ir3 -o small", 0);
    let after = [size(&folder.path().join("small/before.nir")), size(&folder.path().join("small/after.ir3"))];
    assert!(after.iter().sum::<usize>() < before.iter().sum(), "{text}");
}

/// A pair whose bug is one operation among others that have effects of their own.
#[test]
fn a_pair_keeps_the_operations_of_its_bug() {
    let folder = folder("signature", "");
    let program = |carry: &str| {
        format!(
            "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nnum_ssbos: 2\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    \
             block b0:  // preds:\n    32 %0 = @load_local_invocation_index\n    32 %1 = load_const (0x00000000)\n    32 %2 = load_const (0x00000002)\n    \
             32x3 %3 = @load_ssbo_ir3 (%1, %1, %0) (base=0, access=none, align_mul=4, align_offset=0)\n    32 %4 = iadd %3.x, %3.y\n    \
             32 %5 = iand %3.z, %2\n    32 %6 = iadd %4, %5\n    {carry}\n    32 %9 = ishl %0, %2\n    32x2 %10 = vec2 %6, %8\n    \
             @store_ssbo_ir3 (%10, %1, %9, %0) (base=0, wrmask=xy, access=none, align_mul=4, align_offset=0)\n    // succs: b1\n    block b1:\n}}\n"
        )
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("before.nir", &program("32 %8 = uadd_carry %4, %5"));
    write(
        "after.nir",
        &program("32 %7 = uadd_carry %3.x, %3.y\n    32 %11 = uadd_carry %4, %5\n    32 %8 = ior %7, %11"),
    );
    let text = reduce(&folder, "before.nir after.nir -o small", 0);
    assert!(text.contains("first at `"), "{text}");
    let read = |name: &str| fs::read_to_string(folder.path().join("small").join(name)).expect("a result");
    let (before, after) = (read("before.nir"), read("after.nir"));
    // The carry of a sum is compared with that of its summands, of values that are read.
    assert!(before.contains("uadd_carry") && before.contains("iadd") && before.contains("@load"), "{before}");
    assert!(after.contains("ior") && after.contains("uadd_carry") && after.contains("@load"), "{after}");
    for name in ["before.nir", "after.nir"] {
        assert!(size(&folder.path().join("small").join(name)) <= 12, "{text}\n{before}\n{after}");
    }
}

/// Neither side becomes a program without an effect.
#[test]
fn a_pair_is_not_reduced_to_nothing() {
    let folder = folder("nothing", "");
    let program = |value: &str| {
        format!(
            "// {{stage=vertex}}\n// {{output=0.x}}\n// {{output=0.y}}\nblock1 {{\n\t0001:0001:000: \t_meta:in r0.x // {{input=attribute(0.x)}}\n\
             \t0002:0002:000: \t_meta:in r0.y // {{input=attribute(0.y)}}\n\t0003:0003:000: \tadd.u r0.z, r0.x, r0.y\n{value}\
             \t0006:0006:000: \tend r0.x (0), r0.w (1)\n}}\n"
        )
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("before.ir3", &program("\t0004:0004:000: \txor.b r0.w, r0.z, r0.y\n"));
    write(
        "after.ir3",
        &program("\t0004:0004:000: \tmov.u32u32 r0.y, r0.x\n\t0005:0005:000: \txor.b r0.w, r0.z, r0.y\n"),
    );
    reduce(&folder, "before.ir3 after.ir3 -o small", 0);
    let read = |name: &str| fs::read_to_string(folder.path().join("small").join(name)).expect("a result");
    let (before, after) = (read("before.ir3"), read("after.ir3"));
    assert!(before.contains("xor.b") && after.contains("xor.b") && after.contains("mov.u32u32"), "{before}\n{after}");
}
