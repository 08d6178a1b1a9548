//! The reader's input, the writer's output, and the texts of errors.

use super::{read, write};
use crate::nir::{
    Builder, CfNode, ImageDim, Index, InstrData, IntrinsicOp, JumpKind, LoopControl, Op, SelectionControl, Shader,
    Stage, validate,
};

/// A loop with every kind of node, without optional text.
const LOOP: &str = "\
// Counts to ten.
shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
decl_function main () (entrypoint)
impl main {
    block b0:
    32 %0 = load_const (0)
    32 %1 = load_const (10)
    32 %2 = load_const (1)
    1 %3 = load_const (true)
    loop {
        block b1:
        32 %4 = phi b0: %0, b7: %8
        1 %5 = uge %4, %1
        if %5 {
            block b2:
            break
        } else {
            block b3:
        }
        block b4:
        if %3  // don't flatten {
            block b5:
            continue
        } else {
            block b6:
        }
        block b9:
    } continue {
        block b7:
        32 %8 = iadd.nuw %4, %2
    }
    block b8:
    @store_ssbo_ir3 (%4, %0, %0, %0) (base=0, wrmask=x)
    block b10:
}
";

fn good(text: &str) -> Shader {
    let shader = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    validate(&shader).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    let written = write(&shader);
    let again = read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again, shader, "{written}");
    assert_eq!(write(&again), written);
    shader
}

/// A fragment shader with these lines in its only block.
fn with(lines: &str) -> String {
    format!(
        "shader: MESA_SHADER_FRAGMENT\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n{lines}\n    \
         block b1:\n}}\n"
    )
}

/// The text of an instruction after it is read and written.
fn rewritten(lines: &str) -> String {
    let text = write(&good(&with(lines)));
    let last = text.lines().rfind(|line| line.contains(" = ") || line.contains('@')).unwrap();
    last.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_loop_with_all_kinds_of_nodes() {
    let shader = good(LOOP);
    assert_eq!(shader.entry.blocks.len(), 10);
    assert_eq!(shader.instruction_count(), 10);
    assert_eq!(shader.info.workgroup_size, Some([64, 1, 1]));
    let lines: Vec<u32> = shader.entry.instrs_in_order().map(|(_, instr)| shader.entry.lines[instr]).collect();
    assert_eq!(lines, [7, 8, 9, 10, 13, 14, 17, 24, 31, 34]);
    let written = write(&shader);
    assert!(written.contains("if %3 (true)  // don't flatten {"), "{written}");
    assert!(written.contains("= phi b0: %0 (0x0), b8: %8\n"), "{written}");
    assert!(written.contains("block b8:  // preds: b5 b7\n"), "{written}");
}

#[test]
fn the_builder_makes_the_same() {
    let mut b = Builder::new(Stage::Compute);
    let zero = b.constant(32, 0);
    let ten = b.constant(32, 10);
    let one = b.constant(32, 1);
    let truth = b.constant(1, 1);
    let entry = b.current_block();
    b.begin_loop();
    let count = b.phi(1, 32);
    b.set_phi_src(count, entry, zero);
    let done = b.alu(Op::Uge, &[count, ten]);
    b.begin_if(done);
    b.jump(JumpKind::Break);
    b.end_if();
    b.begin_if_with(truth, SelectionControl::DontFlatten);
    b.jump(JumpKind::Continue);
    b.end_if();
    b.begin_continuing();
    let next = b.alu(Op::Iadd, &[count, one]);
    let back = b.current_block();
    b.set_phi_src(count, back, next);
    b.end_loop();
    b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[count, zero, zero, zero], [Index::WriteMask(1)]);
    let mut built = b.finish();
    let read = good(LOOP);
    // The builder cannot set two properties that the text has.
    for instr in built.entry.instrs.values_mut() {
        if let InstrData::Alu(alu) = instr {
            alu.no_unsigned_wrap = alu.op == Op::Iadd;
        }
    }
    let index = |shader: &Shader| shader.entry.defs.values().map(|def| def.index).collect::<Vec<_>>();
    assert_eq!(index(&built), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(index(&read), [0, 1, 2, 3, 4, 5, 8]);
    for def in built.entry.defs.values_mut() {
        def.index += if def.index == 6 { 2 } else { 0 };
    }
    assert_eq!(built, read);
}

#[test]
fn constants_of_all_widths() {
    let cases = [
        ("1 %0 = load_const (true)", "1 %0 = load_const (true)"),
        ("8x2 %0 = load_const (-1, 3)", "8x2 %0 = load_const (0xff, 0x03) = (-1, +3) = (255, 3)"),
        ("16 %0 = load_const (1.5)", "16 %0 = load_const (0x3e00 = 1.500000 = 15872)"),
        ("32 %0 = load_const (0x3e800000 = 0.25)", "32 %0 = load_const (0x3e800000 = 0.250000 = 1048576000)"),
        ("32 %0 = load_const (0xff800000)", "32 %0 = load_const (0xff800000 = -inf = -8388608 = 4286578688)"),
        ("32 %0 = load_const (0x7fc00000)", "32 %0 = load_const (0x7fc00000 = nan = 2143289344)"),
        ("32 %0 = load_const (-2.5)", "32 %0 = load_const (0xc0200000 = -2.500000 = -1071644672 = 3223322624)"),
        ("64 %0 = load_const (7)", "64 %0 = load_const (0x0000000000000007 = 0.000000)"),
        ("32 %0 = load_const (4294967295)", "32 %0 = load_const (0xffffffff = -nan = -1 = 4294967295)"),
    ];
    for (text, expected) in cases {
        assert_eq!(rewritten(text), expected);
    }
}

#[test]
fn uses_decide_how_a_constant_looks() {
    let float = with("32 %0 = load_const (1.0)\n32 %1 = fneg %0");
    assert!(write(&good(&float)).contains("load_const (0x3f800000 = 1.000000)\n"));
    assert!(write(&good(&float)).contains("fneg %0 (1.000000)\n"));
    let int = with("32 %0 = load_const (1.0)\n32 %1 = ineg %0");
    assert!(write(&good(&int)).contains("load_const (0x3f800000 = 1065353216)\n"));
    assert!(write(&good(&int)).contains("ineg %0 (0x3f800000)\n"));
}

#[test]
fn swizzles() {
    let vector = "32x4 %0 = undefined\n";
    let cases = [
        ("32x4 %1 = fneg %0", "32x4 %1 = fneg %0"),
        ("32x4 %1 = fneg %0.xyzw", "32x4 %1 = fneg %0"),
        ("32x2 %1 = fneg! %0.wy", "32x2 %1 = fneg! %0.wy"),
        ("32 %1 = iadd.nsw.nuw %0.x, %0.w", "32 %1 = iadd.nsw.nuw %0.x, %0.w"),
        ("32x5 %1 = vec5 %0.x, %0.y, %0.z, %0.w, %0.x", "32x5 %1 = vec5 %0.x, %0.y, %0.z, %0.w, %0.x"),
    ];
    for (text, expected) in cases {
        assert_eq!(rewritten(&format!("{vector}{text}")), expected);
    }
    assert_eq!(rewritten("32x8 %0 = undefined\n32x2 %1 = fneg %0.ha"), "32x2 %1 = fneg %0.ha");
}

#[test]
fn textures() {
    let sources = "32x2 %0 = undefined\n32 %1 = load_const (0)\n32x2 %2 = load_const (0, 0)\n";
    let cases = [
        "32x4 %3 = (float32)tex (pre-dispatchable) %0 (coord), 3 (texture), 4 (sampler)",
        "32x4 %3 = (float32)txl %0 (coord), %1 (0.000000) (lod), %2 (0x0, 0x0) (offset), 0 (texture), 1 (sampler)",
        "32x4 %3 = (int32)txf %2 (0x0, 0x0) (coord), %1 (0x0) (lod), 0 (texture)",
        "32x2 %3 = (int32)txs %1 (0x0) (lod), 7 (texture)",
        "32 %3 = (int32)texture_samples , 7 (texture)",
        "32x4 %3 = (uint32)tg4 %0 (coord), implicit lod, 2 (gather_component), 0 (texture), 0 (sampler)",
        "32x4 %3 = (uint32)tg4 %0 (coord), 2 (gather_component), { (-1, 2), (0, 0), (7, -8), (1, 1) } (offsets), \
         0 (texture), 0 (sampler)",
        "32x5 %3 = (float32)tex %0 (coord), 0 (texture), 0 (sampler), texture non-uniform, sampler non-uniform, sparse",
        "32x4 %3 = (float32)tex %0 (coord), %1 (0x0) (texture_handle), %1 (0x0) (sampler_handle), 0 (texture), \
         0 (sampler)",
    ];
    for text in cases {
        assert_eq!(rewritten(&format!("{sources}{text}")), text);
    }
    // In a handwritten text, a constant needs no annotation.
    let text = "32x4 %3 = (int32)txf %2 (coord), %1 (lod), 0 (texture)";
    assert_eq!(rewritten(&format!("{sources}{text}")), cases[2]);
}

#[test]
fn intrinsics() {
    let sources = "32x4 %0 = undefined\n32 %1 = undefined\n64 %2 = undefined\n";
    let cases = [
        "@store_output (%0, %1) (base=0, range=1, wrmask=xyw, component=0, src_type=float32, io \
         location=FRAG_RESULT_COLOR slots=1 dualsrc mediump, xfb(components=0..1 buffer=2 offset=16), \
         xfb2(component=2 buffer=0 offset=4)) // color",
        "@store_output (%0, %1) (base=0, range=1, wrmask=xyzw, component=0, src_type=float32, io \
         location=VARYING_SLOT_VAR0 slots=1 no_varying gs_streams(x=0 y=1 z=2 w=3), xfb(), xfb2())",
        "@store_output (%0, %1) (base=0, range=1, wrmask=xyzw, component=0, src_type=float32, io \
         location=VARYING_SLOT_VAR0 slots=1 gs_streams(x=0 y=0 z=0 w=0), xfb(), xfb2())",
        "@barrier (execution_scope=WORKGROUP, memory_scope=QUEUE_FAMILY, mem_semantics=ACQ|REL|AVAILABLE|VISIBLE, \
         mem_modes=image|ssbo|shared|global)",
        "@barrier (execution_scope=NONE, memory_scope=NONE, mem_semantics=NONE|VISIBLE, mem_modes=0)",
        "@barrier (execution_scope=NONE, memory_scope=NONE, mem_semantics=NONE, mem_modes=0)",
        "32 %3 = @load_uniform (%1) (base=-1, range=-1, dest_type=float32)",
        "64 %3 = @ssbo_atomic (%1, %1, %2) (access=coherent|volatile|non-uniform, atomic_op=iadd)",
        "32 %3 = @reduce (%1) (reduction_op=umax, cluster_size=0)",
        "32x3 %3 = @load_workgroup_id",
        "32x4 %3 = @load_user_clip_plane (ucp_id=3)",
        "32x4 %3 = @bindless_image_load (%1, %0, %1, %1) (image_dim=2D, image_array=false, format=r32_float, \
         access=none, dest_type=float32)",
        "@terminate",
    ];
    for text in cases {
        assert_eq!(rewritten(&format!("{sources}{text}")), text);
    }
    // Indices that do not affect the meaning may be omitted.
    let short = "32x2 %3 = @load_ssbo_ir3 (%1, %1, %1) (base=4)";
    let long = "32x2 %3 = @load_ssbo_ir3 (%1, %1, %1) (base=4, access=none, align_mul=0, align_offset=0)";
    assert_eq!(rewritten(&format!("{sources}{short}")), long);
    let short = "@store_output (%0, %1) (base=0, range=1, wrmask=xyw, component=0, src_type=float32)";
    let long = "@store_output (%0, %1) (base=0, range=1, wrmask=xyw, component=0, src_type=float32, io location=NONE \
                slots=0, xfb(), xfb2())";
    assert_eq!(rewritten(&format!("{sources}{short}")), long);
}

#[test]
fn logs_and_colours() {
    let text: String = LOOP.lines().map(|line| format!("MESA: info: \x1b[1;32m{line}\x1b[0m\r\n")).collect();
    assert_eq!(read(&text).unwrap(), read(LOOP).unwrap());
    let headline = format!("NIR (final form) for compute shader:\n{LOOP}");
    assert_eq!(read(&headline).unwrap(), read(LOOP).unwrap());
}

#[test]
fn headers_keep_what_they_say() {
    let text = LOOP.replace(
        "workgroup_size",
        "num_ubos: 3\nname: a: b\nray queries: 4\nuses_discard: true\nshared_size: 64\nworkgroup_size",
    );
    let text = text.replace(
        "decl_function",
        "decl_var ubo INTERP_MODE_NONE none block  (0, 1, 2)\ndecl_var  INTERP_MODE_NONE none vec4 t\ndecl_function",
    );
    let shader = good(&text);
    assert_eq!((shader.info.num_ubos, shader.info.shared_size), (3, 64));
    assert_eq!(shader.info.get("name"), Some("a: b"));
    assert_eq!(shader.variables[0].mode, "ubo");
    assert_eq!(shader.variables[1].mode, "");
    let keys: Vec<String> = write(&shader).lines().take(8).map(|l| l.split(':').next().unwrap().into()).collect();
    let expected =
        ["shader", "name", "workgroup_size", "num_ubos", "shared_size", "ray queries", "subgroup_size", "uses_discard"];
    assert_eq!(keys, expected);
}

#[test]
fn a_key_of_a_header_ends_at_its_colon() {
    for line in ["subgroup_size:: 64", "subgroup_size : 64", ": 64", "subgroup_size:64"] {
        let error = error(&LOOP.replace("workgroup_size", &format!("{line}\nworkgroup_size")));
        let expected = "expected a line `key: value`, `decl_var`, `decl_function` or `impl`";
        assert!(error.starts_with("3:1: found ") && error.ends_with(expected), "{error}");
    }
}

/// The error of a text, as `line:column: found …, expected …`.
fn error(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

#[test]
fn errors_name_place_found_and_expected() {
    let cases = [
        ("load_const (10)", "load_const (10", "8:27: found the end of the line, expected `)`"),
        ("uge %4, %1", "uge %4, %77", "14:24: found `%77`, expected a value that is defined above"),
        ("uge %4, %1", "uge %4", "14:22: found the end of the line, expected `,`"),
        ("uge %4, %1", "ugh %4, %1", "14:16: found `ugh`, expected an operation"),
        ("uge %4, %1", "uge %4, %1 %2", "14:27: found `%2`, expected the end of the line"),
        ("uge %4, %1", "uge %5, %1", "14:20: found `%5`, expected a value that is defined above"),
        ("1 %5 =", "2 %5 =", "14:9: found `2`, expected a width of 1, 8, 16, 32 or 64 bits"),
        ("1 %5 =", "1x6 %5 =", "14:11: found `6`, expected 2, 3, 4, 5, 8 or 16 components"),
        ("1 %5 =", "1 %4 =", "14:11: found `%4`, expected a value that is not defined yet"),
        ("b7: %8", "b77: %8", "13:29: found `b77`, expected a block of this function"),
        ("b7: %8", "b7: %9", "13:33: found `%9`, expected a value that is defined somewhere"),
        ("b7: %8", "c7: %8", "13:29: found `c7:`, expected a block like `b1`"),
        ("block b3:", "block b2:", "19:19: found `b2:`, expected a block that is not there yet"),
        ("block b3:\n", "", "19:21: found `}`, expected `block`"),
        ("} else {\n            block b3:\n", "", "18:17: found `}`, expected `} else {`"),
        ("} continue {", "} else {", "29:5: found `}`, expected `}` or `} continue {`"),
        ("MESA_SHADER_COMPUTE", "compute", "2:9: found `compute`, expected a stage like `MESA_SHADER_COMPUTE`"),
        ("base=0, wrmask=x", "base=0", "34:45: found `)`, expected `wrmask`"),
        ("wrmask=x", "wrmask=y", "34:54: found `y`, expected components from `x`"),
        ("@store_ssbo_ir3", "@store_ssbo_ir4", "34:5: found `@store_ssbo_ir4`, expected an intrinsic"),
        ("(10)", "(0x100000000)", "8:25: found `0x100000000`, expected a constant of 32 bits"),
        ("(true)", "(2)", "10:24: found `2`, expected `true` or `false`"),
        ("break", "brake", "17:13: found `brake`, expected an instruction, `if`, `loop`, `block` or `}`"),
        ("    block b10:\n", "", "35:1: found `}`, expected the last block of the function before `}`"),
        ("64, 1, 1", "64, 1", "3:22: found the end of the line, expected `,`"),
    ];
    for (from, to, expected) in cases {
        assert!(LOOP.contains(from), "{from}");
        assert_eq!(error(&LOOP.replacen(from, to, 1)), expected, "{from} -> {to}");
    }
    assert_eq!(error(""), "1:1: found the end of the text, expected `shader: MESA_SHADER_…`");
    assert_eq!(error("hello"), "1:1: found `hello`, expected `shader: MESA_SHADER_…`");
    let cut = &LOOP[..LOOP.find("block b9").unwrap()];
    assert_eq!(error(cut), "28:1: found the end of the text, expected `}`");
    let twice = format!("{LOOP}decl_function other ()\n");
    let expected =
        "37:1: found `decl_function`, expected the end of the text after the function (a shader has one function)";
    assert_eq!(error(&twice), expected);
    let vector = with("32x4 %0 = undefined\n32x2 %1 = fneg %0");
    assert_eq!(error(&vector), "7:18: found the end of the line, expected a swizzle that takes 2 of 4 components");
    let vector = with("32x4 %0 = undefined\n32x2 %1 = fneg %0.xa");
    assert_eq!(error(&vector), "7:19: found `xa`, expected components from `xyzw`");
    let log = LOOP.replace("%77", "").replace("uge %4", "uge %66");
    let log: String = log.lines().map(|line| format!("MESA: info: {line}\n")).collect();
    assert_eq!(error(&log), "14:32: found `%66`, expected a value that is defined above");
    let deep = with("1 %0 = undefined\n")
        .replace("    block b1:\n", &(0..300).map(|i| format!("if %0 {{\nblock b{}:\n", i + 1)).collect::<String>());
    assert!(error(&deep).contains("at most 200 ifs and loops in each other"));
}

/// Derivatives were operations until Mesa 24.2, `terminate` was `discard`, and `barrier` was `scoped_barrier`.
#[test]
fn former_names_are_read() {
    let text = |discard: &str, derivative: &str, barrier: &str| {
        format!(
            "shader: MESA_SHADER_FRAGMENT\ndecl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    \
             32x2 %0 = load_const (0x3f800000, 0x40000000)\n    1 %1 = load_const (true)\n    {derivative}\n    \
             @{discard} (%1)\n    @{barrier} (execution_scope=NONE, memory_scope=DEVICE, mem_semantics=ACQ|REL, \
             mem_modes=ssbo)\n    block b1:\n}}\n"
        )
    };
    let former = read(&text("discard_if", "32 %2 = fddx_fine %0.y", "scoped_barrier")).expect("the names of Mesa 23");
    let today = "32 %3 = mov %0.y\n    32 %2 = @ddx_fine (%3)";
    let today = read(&text("terminate_if", today, "barrier")).expect("today's names");
    let names = |shader: &Shader| -> Vec<&str> {
        shader.entry.instrs_in_order().map(|(_, instr)| shader.entry.instrs[instr].name()).collect()
    };
    assert_eq!(names(&former), names(&today));
    let again = read(&write(&former)).expect("it is written with today's names");
    assert_eq!(names(&again), names(&today));
    assert!(read(&text("discard_if", "32 %2 = fddz %0.y", "barrier")).is_err());
}

/// A compute shader as Mesa 26.2 prints it, with some lines.
fn of_26_2(lines: &str) -> String {
    format!(
        "shader: MESA_SHADER_COMPUTE\nname: \nworkgroup_size: 64, 1, 1\napi_subgroup_size: 128\nmax_subgroup_size: 128\n\
         min_subgroup_size: 64\nflrp_lowered: true\nderivative_group: 1\ndecl_function main () (entrypoint)\n\nimpl main {{\n    \
         con block b0:   // preds:\n    con 32   %0 = load_const (0x00000001)\n    con 32x2 %1 = load_const (0x00000001, \
         0x00000002)\n{lines}\n                // succs: b1\n    block b1:\n}}\n"
    )
}

#[test]
fn the_text_of_mesa_26_is_read() {
    let text = of_26_2(
        "    con 32   %2 = fmad %0 (0.0), %0 (0.0), %0 (0.0) // exact, preserve:sz,inf\n    \
         con 32   %3 = ffma_weak %0, %0, %2 // preserve:nan\n    \
         con 32   %4 = umul_16x16 %0, %2\n    \
         div 32   %5 = @load_shared (%0) (base=0, access=coherent|atomic, align_mul=4, align_offset=0)\n    \
                       @store_shared (%0, %4) (base=4, access=none, wrmask=x, align_mul=4, align_offset=0)\n    \
         div 32   %6 = @load_scratch (%0) (access=in-bounds, align_mul=4, align_offset=0)\n    \
         div 32   %7 = @load_ssbo_ir3 (%0, %4, %4) (base=2, access=none, align_mul=4, align_offset=0, offset_shift=2)\n    \
         div 32   %8 = @ddx (%7) (exact, preserve:inf,nan)\n    \
         div 32   %9 = @ddy_fine (%7) (fp-fast-math)\n    \
         div 32x4 %10 = (float32)txl %1 (coord), %0 (1) (lod), 0 (texture), 0 (sampler), 2D\n    \
         div 32x4 %11 = (float32)txf %1 (coord), %0 (0x1) (lod), 3 (texture), 1D\n    \
                       @copy_push_const_to_uniform_ir3 (%0) (base=0, range=64)\n    \
                       @prefetch_ubo_ir3 (%0)\n    \
         con 64   %12 = pack_64_2x32_split %0, %0\n    \
         div 32   %13 = @load_global_offset (%12, %0) (base=3, access=readonly, align_mul=4, align_offset=0, offset_shift=2, range=0)\n    \
         div 32   %14 = @exclusive_scan_clusters_ir3 (%0, %0) (reduction_op=iadd)",
    );
    let shader = read(&text).unwrap();
    validate(&shader).unwrap();
    let exact = |index: u32| {
        let alu = |data: &InstrData| matches!(data, InstrData::Alu(alu) if alu.exact && shader.entry.defs[alu.def].index == index);
        shader.entry.instrs.values().any(alu)
    };
    assert_eq!([2, 3, 4].map(exact), [true, false, false]);
    let textures: Vec<_> = shader
        .entry
        .instrs
        .values()
        .filter_map(|data| if let InstrData::Tex(tex) = data { Some((tex.dim, tex.is_array)) } else { None })
        .collect();
    assert_eq!(textures, [(Some(ImageDim::Dim2D), false), (Some(ImageDim::Dim1D), true)]);
    assert_eq!(read(&write(&shader)).unwrap(), shader);
    // A unit is written if there is one.
    let written = write(&shader);
    assert!(written.contains("offset_shift=2)") && written.contains("@ddy_fine (%7) (fp-fast-math)"), "{written}");
    let old = text.replace(", offset_shift=2, range=0)", ", range=0)").replace(", offset_shift=2)", ")");
    let old = read(&old).unwrap();
    assert!(!write(&old).contains("offset_shift"));
    assert_ne!(old, shader);
}

#[test]
fn what_has_no_meaning_is_refused_by_its_name() {
    for (line, found) in [
        (
            "    div 32   %2 = @load_shared (%0) (base=0, access=skip-helpers, align_mul=4, align_offset=0)",
            "skip-helpers",
        ),
        (
            "    div 32x4 %2 = (float32)sample_weighted_qcom %1 (coord), 0 (texture), 0 (sampler), 2D",
            "sample_weighted_qcom",
        ),
        (
            "    div 32x4 %2 = (float32)txl %1 (coord), %0 (lod), 0 (texture), 0 (sampler), skip_helpers, 2D",
            "skip_helpers",
        ),
        ("    div 32   %2 = @ddx (%0) (precise)", "precise"),
        ("    div 32   %2 = @load_push_data_intel (%0) (base=0)", "load_push_data_intel"),
    ] {
        let error = read(&of_26_2(line)).unwrap_err();
        assert!(error.found.contains(found), "{line}: {error}");
    }
}

#[test]
fn the_control_of_a_loop_is_read() {
    let text = of_26_2("").replace(
        "                // succs: b1\n",
        "                // succs: b1\n    con loop  // don't unroll {\n        con block b1:  // preds: b0 b1, succs: b2\n        break\n    }\n    con block b2:  // preds: b1, succs: b3\n",
    );
    let shader = read(&text).unwrap();
    let CfNode::Loop(node) = &shader.entry.body[1] else { panic!("no loop") };
    assert_eq!(node.control, LoopControl::DontUnroll);
    assert_eq!(read(&write(&shader)).unwrap(), shader);
    assert!(write(&shader).contains("loop  // don't unroll {"));
}

#[test]
fn ranges_of_inputs_and_outputs_may_be_left_out() {
    let text = "shader: MESA_SHADER_VERTEX\nsubgroup_size: 1\ndecl_function main () (entrypoint)\n\nimpl main {\n    block b0:   // preds:\n    \
        32   %0 = load_const (0x00000000)\n    \
        32x4 %1 = @load_input (%0) (base=0, component=0, dest_type=float32, io location=VERT_ATTRIB_GENERIC0 slots=1)\n    \
                  @store_output (%1, %0) (base=0, wrmask=xyzw, component=0, src_type=float32, io location=VARYING_SLOT_POS slots=1, xfb(), xfb2())\n                // succs: b1\n    block b1:\n}\n";
    let shader = read(text).unwrap();
    validate(&shader).unwrap();
    assert_eq!(read(&write(&shader)).unwrap(), shader);
    let copy = of_26_2("                       @copy_push_const_to_uniform_ir3 (%0) (base=0)");
    assert!(read(&copy).unwrap_err().expected.contains("range"));
}

#[test]
fn the_syntax_of_mesa_23_1_is_read() {
    let former = "shader: MESA_SHADER_COMPUTE\nsource_sha1: {0x00000000, 0x00000001}\nname: cs\nworkgroup-size: 8, 8, 1\nshared-size: 256\n\
        stage: 5\nnext_stage: 0\nnum_images: 1\nshared_size: 256\nsubgroup_size: 1\ndivergence_analysis_run: true\n\
        decl_function main (0 params)\n\nimpl main {\n\
        \tblock block_0:\n\t/* preds: */\n\
        \tvec1 32 con ssa_0 = load_const (0x00000000 = 0.000000)\n\
        \tvec2 32 con ssa_1 = load_const (0x3f800000, 0x00000001) = (1.000000, 0.000000)\n\
        \tvec1 32 div ssa_2 = intrinsic load_local_invocation_index () ()\n\
        \tvec1 32 div ssa_3 = intrinsic ssbo_atomic_add_ir3 (ssa_0, ssa_2, ssa_1.x, ssa_0) (access=1)\n\
        \tvec1 32 div ssa_4 = intrinsic shared_atomic_comp_swap (ssa_2, ssa_3, ssa_0) (base=4)\n\
        \tvec1 32 div ssa_5 = intrinsic global_atomic_umax_ir3 (ssa_1, ssa_2) (base=0)\n\
        \tvec1 32 div ssa_6 = fadd! ssa_1.x, ssa_4\n\
        \tvec2 32 div ssa_9 = intrinsic load_barycentric_pixel () (interp_mode=1)\n\
        \tvec1  1 div ssa_7 = ilt ssa_2, ssa_1.y\n\
        \t/* succs: block_1 block_2 */\n\
        \tif ssa_7 /* don't flatten */ {\n\
        \t\tblock block_1:\n\t\t/* preds: block_0 */\n\
        \t\tintrinsic scoped_barrier () (execution_scope=WORKGROUP /*3*/, memory_scope=WORKGROUP /*3*/, mem_semantics=ACQ|REL /*3*/, mem_modes=shared /*4096*/)\n\
        \t\t/* succs: block_3 */\n\t} else {\n\t\tblock block_2:\n\t\t/* preds: block_0 */\n\t\t/* succs: block_3 */\n\t}\n\
        \tblock block_3:\n\t/* preds: block_1 block_2 */\n\
        \tvec1 32 div ssa_8 = phi block_1: ssa_5, block_2: ssa_6\n\
        \tintrinsic store_ssbo_ir3 (ssa_8, ssa_0, ssa_2, ssa_0) (wrmask=x /*1*/, access=0, align_mul=4, align_offset=0)\n\
        \t/* succs: block_4 */\n\tblock block_4:\n}\n\n";
    let former = former.replace("ssa_1.x, ssa_0) (access", "ssa_2, ssa_0) (access");
    let shader = read(&former).unwrap_or_else(|error| panic!("{error}"));
    validate(&shader).unwrap();
    let written = write(&shader);
    assert_eq!(read(&written).unwrap(), shader);
    for line in [
        "workgroup_size: 8, 8, 1",
        "shared_size: 256",
        "@ssbo_atomic_ir3 (%0 (0x0), %2, %2, %0 (0x0)) (access=coherent, atomic_op=iadd)",
        "@shared_atomic_swap (%2, %3, %0 (0x0)) (base=4, atomic_op=cmpxchg)",
        "atomic_op=umax)",
        "fadd! %1",
        "// don't flatten {",
        "phi b1: %5, b2: %6",
    ] {
        assert!(written.contains(line), "{line}\n{written}");
    }
}

#[test]
fn names_of_variables_of_mesa_23_1_are_kept() {
    let text = "shader: MESA_SHADER_VERTEX\nsubgroup_size: 0\ndecl_function main (0 params)\n\nimpl main {\n\tblock block_0:\n\t/* preds: */\n\
        \tvec1 32 ssa_0 = load_const (0x00000000 = 0.000000)\n\
        \tvec4 32 ssa_1 = intrinsic load_input (ssa_0) (base=0, component=0, dest_type=float32 /*160*/, io location=VERT_ATTRIB_POS slots=1 /*128*/)\t/* position */\n\
        \tintrinsic store_output (ssa_1, ssa_0) (base=0, wrmask=xyzw /*15*/, component=0, src_type=float32 /*160*/, io location=VARYING_SLOT_POS slots=1 /*0*/, xfb() /*0*/, xfb2() /*0*/)\n\
        \t/* succs: block_1 */\n\tblock block_1:\n}\n\n";
    let shader = read(text).unwrap();
    assert!(write(&shader).contains("io location=VERT_ATTRIB_POS slots=1)  // position"), "{}", write(&shader));
    let error = read(&text.replace("VERT_ATTRIB_POS", "0")).unwrap_err();
    let expected = "the name of a location, which Mesa prints since 23.1";
    assert!(error.line == 9 && error.expected.starts_with(expected), "{error}");
    // Mesa 20.
    let oldest = text.split_once("(base=").unwrap().0.to_owned() + "(0, 0, 160) /* base=0 */\n";
    let error = read(&oldest).unwrap_err();
    assert!(error.line == 9 && error.expected.contains("none before 23.1 is read"), "{error}");
    let error = read(&text.replace("\tblock block_0:", "\tdecl_reg vec4 32 r0[4]\n\tblock block_0:")).unwrap_err();
    assert!(error.line == 6 && error.expected.contains("until 23.1"), "{error}");
}
