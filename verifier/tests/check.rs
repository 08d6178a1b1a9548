//! `check`: one verdict for a pair, by the rules of every other comparison.

use crate::common::folder::Folder;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ir3-equiv");

/// The exit code, and both outputs.
fn run(folder: &Folder, arguments: &str) -> (i32, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace()).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().expect("our own program");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code().expect("an exit code"), text)
}

fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    path.canonicalize().expect("a program of the corpus").display().to_string()
}

fn compiled(folder: &Folder, program: &str, stage: &str) -> String {
    let (code, text) = run(folder, &format!("compile {} --emit {stage}", corpus(program)));
    assert_eq!(code, 0, "{text}");
    text
}

/// Compares two texts with the given options; the exit code and the output.
fn check(name: &str, before: &str, after: &str, options: &str) -> (i32, String) {
    let folder = Folder::new(&format!("check-{name}"));
    let extension = if before.starts_with("shader:") { "nir" } else { "ir3" };
    for (side, text) in [("before", before), ("after", after)] {
        fs::write(folder.path().join(format!("{side}.{extension}")), text).expect("a file");
    }
    run(&folder, &format!("check before.{extension} after.{extension} {options}"))
}

/// A final program without its waits agrees if results are available at once, for runs and for provers.
#[test]
fn final_code_without_waits_is_no_pass() {
    let folder = Folder::new("check-waits");
    let before = compiled(&folder, "additions/array-of-structs.nir", "post-schedule");
    let after = compiled(&folder, "additions/array-of-structs.nir", "legalize");
    assert!(after.contains("(sy)"));
    for options in ["", "--engine smt", "--engine interpreter"] {
        let (code, text) = check("waits-kept", &before, &after, options);
        // Runs alone may depend on too little of it.
        assert!(code == 0 || options == "--engine interpreter" && code == 3, "{options}: {text}");
        let (code, text) = check("waits-lost", &before, &after.replace("(sy)", ""), options);
        assert!(code == 1 || code == 3, "{options}: {text}");
        assert!(!text.contains(" 1 proved") && !text.contains(" 1 tested"), "{options}: {text}");
    }
}

/// Stores a value if the first component of an attribute is one number.
fn rare(constant: &str) -> String {
    format!(
        "shader: MESA_SHADER_VERTEX
subgroup_size: 1
inputs: 1
outputs: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    32     %0 = load_const (0x00000000)
    32x4   %1 = @load_input (%0) (base=0, range=1, component=0, dest_type=float32, io location=VERT_ATTRIB_POS slots=1)
    32     %2 = load_const ({constant})
    1      %3 = ieq %1.x, %2
    32     %4 = imul %1.y, %1.z
    32     %5 = bcsel %3, %4, %0
                @store_output (%5, %0) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    block b1:
}}
"
    )
}

#[test]
fn a_rare_input_is_found_or_the_pair_is_unknown() {
    let (code, text) = check("rare", &rare("0x12345678"), &rare("0x12345679"), "");
    assert!(code == 1 && text.contains(" 1 refuted"), "{text}");
    // Runs alone show little of it.
    let (code, text) = check("rare-runs", &rare("0x12345678"), &rare("0x12345679"), "--engine interpreter");
    assert!(code != 0 && !text.contains(" 1 tested"), "{text}");
}

/// A comparison of two fragment inputs, the result of which is negated or not.
fn compared(operation: &str, not: bool) -> String {
    let value = if not { "    1      %6 = inot %5\n" } else { "    1      %6 = mov %5\n" };
    format!(
        "shader: MESA_SHADER_FRAGMENT
inputs: 1
outputs: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    32     %0 = load_const (0x00000000)
    32x2   %1 = @load_barycentric_pixel (interp_mode=INTERP_MODE_SMOOTH)
    32x2   %2 = @load_interpolated_input (%1, %0) (base=0, component=0, dest_type=float32)
    1      %5 = {operation} %2.x, %2.y
{value}    32     %7 = b2f32 %6
                @store_output (%7, %0) (base=0, range=1, wrmask=x, component=0, src_type=float32, io location=FRAG_RESULT_DATA0 slots=1)
    block b1:
}}
"
    )
}

/// They differ for numbers that are no number.
#[test]
fn not_less_is_not_greater_or_equal_on_fragment_inputs() {
    let (before, after) = (compared("flt", true), compared("fge", false));
    for options in ["", "--engine interpreter"] {
        let (code, text) = check("nan", &before, &after, options);
        assert!(code == 1 && text.contains(" 1 refuted"), "{options}: {text}");
    }
}

/// The provers run in turn: a proof of one of them counts, even if another one does not support the program.
#[test]
fn more_engines_do_not_make_the_exit_code_worse() {
    let folder = Folder::new("check-engines");
    let before = compiled(&folder, "additions/array-of-structs.nir", "scalar-alu");
    let after = compiled(&folder, "additions/array-of-structs.nir", "dead-code");
    for options in ["--engine smt", "--engine registers,smt", "--engine interpreter,registers,smt", ""] {
        let (code, text) = check("engines", &before, &after, options);
        assert!(code == 0 && text.contains("1 boundary: 1 proved"), "{options}: {text}");
    }
}

/// Both programs of a fragment read registers that nothing writes: these are inputs, the same on both sides, and named.
#[test]
fn registers_that_are_never_written_are_inputs() {
    let sum = "block1 {
	0001:0001:000: 	add.f r0.z, r0.x, r0.y
	0002:0002:000: 	end r0.z (0)
}
";
    let header = "// {stage=vertex}\n// {output=0.x}\n";
    let constant = format!(
        "{header}{}",
        sum.replace("add.f r0.z, r0.x, r0.y", "mov.f32f32 r0.z, imm[1.000000,1065353216,0x3f800000]")
    );
    let swapped = format!("{header}{}", sum.replace("r0.x, r0.y", "r0.y, r0.x"));
    let sum = format!("{header}{sum}");
    let (code, text) = check("fragment-constant", &sum, &constant, "");
    assert!(code == 1 && text.contains(" 1 refuted"), "{text}");
    let (code, text) = check("fragment-swapped", &sum, &swapped, "");
    assert!(code == 0 && text.contains("the same inputs on both sides: r0.x, r0.y"), "{text}");
}

/// The end of a piece: what differs there is refuted if both texts leave it as a result, and unknown otherwise.
#[test]
fn registers_at_the_end_of_a_piece() {
    let sum = "add.f r1.x, r4.x, r5.x\n";
    let product = "mul.f r1.x, r4.x, r5.x\n";
    for (name, before, after, code, texts) in [
        // A half register is another one than the full register of its number, in separate and in merged files.
        (
            "half",
            format!("{sum}mov.f16f16 hr1.x, hr9.x\n"),
            format!("{product}mov.f16f16 hr1.x, hr9.x\n"),
            1,
            "refuted",
        ),
        (
            "read-half",
            format!("{sum}mov.f16f16 hr0.x, hr1.x\n"),
            format!("{product}mov.f16f16 hr0.x, hr1.x\n"),
            1,
            "refuted",
        ),
        // Something reads it, which does not say that nothing else does.
        (
            "read",
            format!("{sum}add.f r0.y, r1.x, r1.x\n"),
            "add.f r0.x, r4.x, r5.x\nadd.f r0.y, r0.x, r0.x\n".to_owned(),
            3,
            "do not say if it is read after them: r0.x, r1.x",
        ),
        ("overwritten", sum.to_owned(), format!("{sum}mov.u32u32 r0.x, r3.x\n"), 3, "do not say"),
        ("same", format!("{sum}add.f r0.y, r1.x, r1.x\n"), format!("{sum}add.f r0.y, r1.x, r1.x\n"), 0, "proved"),
        (
            "moved",
            format!("{sum}mov.u32u32 r0.x, r3.x\n"),
            format!("mov.u32u32 r0.x, r3.x\n{sum}"),
            0,
            "compared at the end: r0.x, r1.x",
        ),
        // Outputs are general registers.
        (
            "predicate",
            format!("{sum}cmps.u.lt p0.x, r4.x, r2.x\n"),
            format!("{sum}cmps.u.gt p0.x, r4.x, r2.x\n"),
            3,
            "is not compared",
        ),
        (
            "shared",
            format!("{sum}mov.u32u32 r48.x, c1.x\n"),
            format!("{sum}mov.u32u32 r48.x, c1.y\n"),
            3,
            "is not compared",
        ),
        ("address", format!("{sum}mova a0.x, hr8.x\n"), format!("{sum}mova a0.x, hr8.y\n"), 3, "is not compared"),
    ] {
        for gpu in ["a540", "a660"] {
            let folder = Folder::new(&format!("check-end-{name}-{gpu}"));
            fs::write(folder.path().join("before.txt"), &before).expect("a file");
            fs::write(folder.path().join("after.txt"), &after).expect("a file");
            let (found, text) = run(&folder, &format!("check before.txt after.txt --gpu {gpu}"));
            assert!(found == code && text.contains(texts), "{name}, {gpu}: {found} {text}");
        }
    }
}

/// From a6xx on, killed lanes are helper lanes: samples of their quads depend on what these lanes compute.
#[test]
fn killed_lanes_are_helper_lanes_of_samples_after_them() {
    let program = |middle: &str| {
        let head = "// {stage=fragment}\n// {output=0.x}\nblock1 {\n\t_meta:in r0.x (wrmask=0x3) // {input=barycentric_pixel}\n\t\
            bary.f r1.x, imm[0.000000,0,0x0], r0.x (wrmask=0x3)\n\tbary.f r1.y, imm[0.000000,1,0x1], r0.x (wrmask=0x3)\n\t\
            cmps.f.lt pp0.x, r1.x, c1.x\n\tkill pp0.x\n\tmov.f32f32 r2.x, r1.y\n\tmov.f32f32 r2.y, r1.y\n";
        let tail = "\tsam (f32)(x)r3.x, r2.x (wrmask=0x3), s#0, t#0\n\tend r3.x (0)\n}\n";
        let numbered = |(number, line): (usize, &str)| match line.strip_prefix('\t') {
            Some(instr) if !instr.starts_with("pred:") && !instr.starts_with("/*") => {
                format!("\t{number:04}:{number:04}:000: \t{instr}\n")
            }
            _ => format!("{line}\n"),
        };
        format!("{head}{middle}{tail}").lines().enumerate().map(numbered).collect::<String>()
    };
    let other = program(
        "\tcmps.f.lt pp0.y, r1.x, c1.x\n\tbr pp0.y\n\t/* succs: block2, block3 (div) */\n}\nblock2 {\n\tpred: block1\n\t\
         mov.f32f32 r2.x, c4.x\n\tjump\n\t/* succs: block3 */\n}\nblock3 {\n\tpred: block1, block2\n",
    );
    let (code, text) = check("killed-lanes", &other, &program(""), "--gpu a660");
    assert!(code == 1 && text.contains("refuted"), "{code} {text}");
    // Without coordinates of their own the lanes sample the same, and on a5xx they end.
    let same = other.replace("c4.x", "r1.y");
    let (code, text) = check("killed-lanes-same", &same, &program(""), "--gpu a660");
    assert!(code == 0 && text.contains("proved"), "{code} {text}");
}

#[test]
fn two_logs_are_compared_section_by_section() {
    let folder = Folder::new("check-logs");
    let source = fs::read_to_string(corpus("vertex/clamps.nir")).expect("a program");
    assert!(source.contains("fadd"), "{source}");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("good.nir", &source);
    write("bad.nir", &source.replacen("fadd", "fmul", 1));
    for name in ["good", "bad"] {
        let (code, text) = run(&folder, &format!("compile {name}.nir --as-mesa-log"));
        assert_eq!(code, 0, "{text}");
        write(&format!("{name}.log"), &text);
    }
    let (exit, text) = run(&folder, "check good.log good.log");
    assert_eq!(exit, 0, "{text}");
    let rows = text.lines().filter(|line| line.contains(" proved ")).count();
    assert!(rows > 6 && text.contains(" nir ") && text.contains(" final code "), "{text}");
    let (exit, text) = run(&folder, "check good.log bad.log");
    assert_eq!(exit, 1, "{text}");
    let is_refuted = |stage: &str| text.lines().any(|line| line.contains(stage) && line.contains(" refuted "));
    assert!(is_refuted(" nir ") && is_refuted(" register allocation ") && is_refuted(" final code "), "{text}");
    assert!(text.contains("the first section that differs in text is `NIR (final form) for"), "{text}");
    assert!(text.contains("neither differs from its own nir: the two nirs are other programs"), "{text}");
    // The code of one program and the nir of the other.
    let [good, bad] = ["good.log", "bad.log"].map(|name| fs::read_to_string(folder.path().join(name)).expect("a log"));
    let start = |log: &str| log.find("AFTER: ").expect("a pass");
    write("wrong.log", &format!("{}{}", &good[..start(&good)], &bad[start(&bad)..]));
    let (exit, text) = run(&folder, "diff good.log wrong.log");
    assert_eq!(exit, 1, "{text}");
    assert!(text.contains("the first section that differs in text is `AFTER: nir->ir3`"), "{text}");
    assert!(text.contains("wrong.log#0 is wrong: it differs from its own nir, and good.log#0 does not"), "{text}");
    // The log of another GPU or driver, which fills the constant file in another way.
    let line = good.lines().find(|line| line.ends_with("; offsets:")).expect("the groups of the constant file");
    let group = line.replace("; offsets:", ";   ubo_ranges                 c400.x (1 vec4)");
    write("other.log", &good.replacen(line, &format!("{line}\n{group}"), 1));
    let (exit, text) = run(&folder, "check good.log other.log");
    assert_eq!(exit, 2, "{text}");
    assert!(text.contains("the driver fills the constant file in another way") && text.contains("c400.x"), "{text}");
    // Shaders are matched by their nir, and others are named.
    write("two.log", &format!("{bad}{good}"));
    let (exit, text) = run(&folder, "check good.log two.log");
    assert!(
        exit == 3 && text.contains("good.log#0 → two.log#1") && text.contains("two.log#0 (VERT) is not compared"),
        "{text}"
    );
}

#[test]
fn a_refuted_pair_shows_its_evidence_and_writes_it() {
    let folder = Folder::new("check-evidence");
    let before = "// {stage=vertex}\n// {output=0.x}\nblock1 {\n\t0001:0001:000: \t_meta:in ssa_1 // {input=attribute(0.x)}\n\
                  \t0002:0002:000: \tadd.u ssa_2, ssa_1, imm[0.000000,5,0x5]\n\
                  \t0003:0003:000: \tmul.u24 ssa_3, ssa_2, ssa_2\n\t0004:0004:000: \tend ssa_3 (0)\n}\n";
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("before.ir3", before);
    write("after.ir3", &before.replace("add.u ssa_2", "sub.u ssa_2"));
    let (exit, text) = run(&folder, "check before.ir3 after.ir3 --failures failures --html pages");
    assert_eq!(exit, 1, "{text}");
    for expected in [
        "input: lane ",
        "first difference of both runs:",
        "before add.u ssa_2",
        "after  sub.u ssa_2",
        "computation of the expected value:",
        "written to failures/check-",
        "page pages/check-",
    ] {
        assert!(text.contains(expected), "expected {expected} in {text}");
    }
    let written = fs::read_dir(folder.path().join("failures"))
        .expect("a folder")
        .next()
        .expect("a bundle")
        .expect("an entry")
        .path();
    let names = ["README.md", "before.ir3", "after.ir3", "env.json", "difference.txt"];
    assert!(names.iter().all(|name| written.join(name).is_file()), "{}", written.display());
    // The command of the folder shows it again.
    let readme = fs::read_to_string(written.join("README.md")).expect("a text");
    assert!(readme.contains("ir3-equiv check --gpu a660 --env env.json before.ir3 after.ir3"), "{readme}");
    let again = format!("check --gpu a660 --env {0}/env.json {0}/before.ir3 {0}/after.ir3", written.display());
    assert_eq!(run(&folder, &again).0, 1);
    let index = fs::read_to_string(folder.path().join("pages/index.html")).expect("an index");
    assert!(index.contains("before.ir3 → after.ir3: program"), "{index}");
}
