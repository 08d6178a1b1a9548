//! One invalid program for each rule.

use super::{BrokenRule, ErrorLocation, Quantity, validate};
use crate::nir::text::read;
use crate::nir::{
    Access, AluType, Builder, CfNode, Def, Index, InstrData, IntrinsicOp, JumpKind, Op, Shader, Stage, TexOp,
    TexSrcKind,
};

/// The first error of a program.
fn problem(shader: &Shader) -> BrokenRule {
    validate(shader).expect_err("the program is valid")[0].problem.clone()
}

/// The first error of a fragment shader with these lines in its blocks.
fn problem_of(lines: &str) -> (ErrorLocation, BrokenRule) {
    let text = format!("shader: MESA_SHADER_FRAGMENT\nimpl main {{\n    block b0:\n{lines}\n    block b99:\n}}\n");
    let shader = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let error = validate(&shader).expect_err(lines).remove(0);
    assert!(!error.to_string().is_empty());
    (error.place, error.problem)
}

fn count(what: Quantity, found: u32, expected: u32) -> BrokenRule {
    BrokenRule::Count { what, found, expected }
}

#[test]
fn widths_and_components() {
    let cases = [
        ("32 %0 = undefined\n16 %1 = undefined\n32 %2 = iadd %0, %1", count(Quantity::SourceWidth(1), 16, 32)),
        ("32 %0 = undefined\n16 %1 = iadd %0, %0", count(Quantity::ResultWidth, 16, 32)),
        ("32 %0 = undefined\n32 %1 = ieq %0, %0", count(Quantity::ResultWidth, 32, 1)),
        ("64 %0 = undefined\n64 %1 = ishl %0, %0", count(Quantity::SourceWidth(1), 64, 32)),
        ("32 %0 = undefined\n32 %1 = f2f16 %0", count(Quantity::ResultWidth, 32, 16)),
        ("32 %0 = undefined\n32x3 %1 = vec4 %0, %0, %0, %0", count(Quantity::ResultComponents, 3, 4)),
        (
            "8 %0 = undefined\n8 %1 = fneg %0",
            BrokenRule::WidthOfType { what: Quantity::ResultWidth, found: 8, expected: &[16, 32, 64] },
        ),
        (
            "32 %0 = undefined\nif %0 {\nblock b1:\n} else {\nblock b2:\n}\nblock b3:",
            count(Quantity::ConditionWidth, 32, 1),
        ),
        ("32 %0 = undefined\n@terminate_if (%0)", count(Quantity::SourceWidth(0), 32, 1)),
        ("32x2 %0 = @load_workgroup_id", count(Quantity::ResultComponents, 2, 3)),
        (
            "16x3 %0 = @load_workgroup_id",
            BrokenRule::WidthOfType { what: Quantity::ResultWidth, found: 16, expected: &[32] },
        ),
        ("32x2 %0 = undefined\n32 %1 = @load_const_ir3 (%0) (base=0)", count(Quantity::SourceComponents(0), 2, 1)),
        ("32 %0 = undefined\n16 %1 = @read_first_invocation (%0)", count(Quantity::ResultWidth, 16, 32)),
        (
            "32 %0 = undefined\n32 %1 = @load_input (%0) (base=0, range=1, component=0, dest_type=float16)",
            count(Quantity::ResultWidth, 32, 16),
        ),
        (
            "32x2 %0 = undefined\n16x4 %1 = (float32)tex %0 (coord), 0 (texture), 0 (sampler)",
            count(Quantity::ResultWidth, 16, 32),
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(problem_of(lines).1, expected, "{lines}");
    }
}

#[test]
fn operands_of_other_kinds() {
    let cases = [
        (
            "32x2 %0 = undefined\n32x4 %1 = (float32)txl %0 (coord), 0 (texture), 0 (sampler)",
            BrokenRule::TexMissing(TexSrcKind::Lod),
        ),
        (
            "32x2 %0 = undefined\n32x4 %1 = (float32)tex %0 (coord), %0 (coord), 0 (texture), 0 (sampler)",
            BrokenRule::TexTwice(TexSrcKind::Coord),
        ),
        (
            "32 %0 = undefined\n32 %1 = @shared_atomic (%0, %0) (base=0, atomic_op=cmpxchg)",
            BrokenRule::AtomicOp("cmpxchg"),
        ),
        (
            "32 %0 = undefined\n32 %1 = @load_reg (%0) (base=0, legacy_fabs=0, legacy_fneg=0)",
            BrokenRule::NotALocalArray(0),
        ),
        (
            "32 %0 = @decl_reg (num_components=1, num_array_elems=4, bit_size=32, divergent=1)\n\
             32 %1 = @load_reg (%0) (base=4, legacy_fabs=0, legacy_fneg=0)",
            BrokenRule::PastLocalArray { element: 4, elements: 4 },
        ),
        (
            "32 %0 = @decl_reg (num_components=1, num_array_elems=4, bit_size=32, divergent=1)\n\
             @store_reg_indirect (%0, %0, %0) (base=0, wrmask=x, legacy_fsat=0)",
            BrokenRule::LocalArrayAsValue(0),
        ),
        (
            "32 %0 = @decl_reg (num_components=1, num_array_elems=4, bit_size=32, divergent=1)\n\
             32 %1 = ineg %0",
            BrokenRule::LocalArrayAsValue(0),
        ),
        (
            "32 %0 = @decl_reg (num_components=2, num_array_elems=0, bit_size=32, divergent=1)\n\
             32 %1 = @load_reg (%0) (base=0, legacy_fabs=0, legacy_fneg=0)",
            count(Quantity::ResultComponents, 1, 2),
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(problem_of(lines).1, expected, "{lines}");
    }
}

/// `if (c) { x } else { y }`, then a phi.
fn phi(srcs: &str) -> String {
    format!(
        "1 %0 = undefined\nif %0 {{\nblock b1:\n32 %1 = undefined\n}} else {{\nblock b2:\n32 %2 = undefined\n}}\n\
         block b3:\n32 %3 = phi {srcs}"
    )
}

#[test]
fn phis_and_dominance() {
    let shader = Shader::new(Stage::Compute);
    assert_eq!(problem(&shader), BrokenRule::ListShape);
    let block = |number| crate::nir::Block::from_u32(number);
    let cases = [
        (phi("b1: %1"), BrokenRule::PhiMissing(block(2))),
        (phi("b1: %1, b2: %2, b0: %1"), BrokenRule::PhiExtra(block(0))),
        (phi("b1: %1, b2: %2, b2: %2"), BrokenRule::PhiExtra(block(2))),
        (phi("b1: %1, b2: %1"), BrokenRule::NotDominated { value: 1, defined: Some(block(1)) }),
        (phi("b1: %1, b2: %0"), count(Quantity::SourceWidth(1), 1, 32)),
        (phi("b1: %1, b2: %2\n32 %4 = ineg %1"), BrokenRule::NotDominated { value: 1, defined: Some(block(1)) }),
        (phi("b1: %1, b2: %2\n32 %4 = ineg %3\n32 %5 = phi b1: %1, b2: %2"), BrokenRule::LatePhi),
    ];
    for (lines, expected) in cases {
        assert_eq!(problem_of(&lines).1, expected, "{lines}");
    }
    let (place, _) = problem_of(&phi("b1: %1, b2: %2\n32 %4 = ineg %1"));
    assert_eq!(place.to_string(), "`%4 = ineg` in b3, line 14");
}

#[test]
fn jumps() {
    let cases = [
        ("break", BrokenRule::JumpOutsideLoop),
        ("loop {\nblock b1:\nbreak\n32 %0 = undefined\n}\nblock b2:", BrokenRule::AfterJump),
        ("1 %0 = undefined\nreturn\nif %0 {\nblock b1:\n} else {\nblock b2:\n}\nblock b3:", BrokenRule::AfterJump),
        ("loop {\nblock b1:\n} continue {\nblock b2:\ncontinue\n}\nblock b3:", BrokenRule::JumpInContinuing),
    ];
    for (lines, expected) in cases {
        assert_eq!(problem_of(lines).1, expected, "{lines}");
    }
}

/// A valid program to modify: two constants and their sum.
fn sum() -> (Shader, Def) {
    let mut b = Builder::new(Stage::Compute);
    let one = b.constant(32, 1);
    let two = b.constant(32, 2);
    let sum = b.alu(Op::Iadd, &[one, two]);
    b.intrinsic(IntrinsicOp::StoreConstIr3, 1, 32, &[sum], [Index::Base(0)]);
    let shader = b.finish();
    assert_eq!(validate(&shader), Ok(()));
    (shader, sum)
}

#[test]
fn what_only_a_pass_can_break() {
    let block = crate::nir::Block::from_u32(0);

    let (mut shader, _) = sum();
    shader.entry.body.push(CfNode::Block(block));
    assert_eq!(problem(&shader), BrokenRule::ListShape);

    let (mut shader, _) = sum();
    let first = shader.entry.blocks[block].instrs[0];
    shader.entry.blocks[block].instrs.push(first);
    assert_eq!(problem(&shader), BrokenRule::InstrPlace(first));

    let (mut shader, _) = sum();
    shader.entry.blocks[block].instrs.remove(0);
    assert_eq!(problem(&shader), BrokenRule::NotDominated { value: 0, defined: None });

    let (mut shader, _) = sum();
    shader.entry.blocks[block].instrs.swap(1, 2);
    assert_eq!(problem(&shader), BrokenRule::NotDominated { value: 1, defined: Some(block) });

    let (mut shader, sum_def) = sum();
    shader.entry.defs[sum_def].index = 0;
    assert_eq!(problem(&shader), BrokenRule::SameIndex(0));

    let (mut shader, sum_def) = sum();
    shader.entry.defs[sum_def].num_components = 6;
    assert_eq!(problem(&shader), BrokenRule::BadComponents(6));

    let (mut shader, sum_def) = sum();
    shader.entry.defs[sum_def].bit_size = 24;
    assert_eq!(problem(&shader), BrokenRule::BadWidth(24));

    let edit = |change: &dyn Fn(&mut InstrData)| {
        let (mut shader, _) = sum();
        shader.entry.instrs.values_mut().for_each(change);
        problem(&shader)
    };
    let no_such = edit(&|data| data.for_each_src_mut(|src| *src = Def::from_u32(99)));
    assert_eq!(no_such, BrokenRule::NoSuchValue(99));
    let swizzle = edit(&|data| {
        if let InstrData::Alu(alu) = data {
            alu.srcs[1].swizzle[0] = 2;
        }
    });
    assert_eq!(swizzle, BrokenRule::Swizzle { source: 1, component: 2, components: 1 });
    let one_source = edit(&|data| {
        if let InstrData::Alu(alu) = data {
            alu.srcs.truncate(1);
        }
    });
    assert_eq!(one_source, count(Quantity::Sources, 1, 2));
    let wide = edit(&|data| {
        if let InstrData::Const { values, .. } = data {
            values[0] = 1 << 32;
        }
    });
    assert_eq!(wide, BrokenRule::ConstantTooWide(1 << 32));
    let indices = edit(&|data| {
        if let InstrData::Intrinsic(intrinsic) = data {
            intrinsic.indices.0.push(Index::WriteMask(2));
        }
    });
    let found = Some(crate::nir::IndexKind::WriteMask);
    assert_eq!(indices, BrokenRule::Indices { found, expected: None });
    let jump = edit(&|data| {
        if let InstrData::Intrinsic(_) = data {
            *data = InstrData::Jump(JumpKind::Continue);
        }
    });
    assert_eq!(jump, BrokenRule::JumpOutsideLoop);
}

#[test]
fn textures_have_only_their_sources_and_types() {
    let with = |op: TexOp, kind: TexSrcKind, ty: AluType| {
        let mut b = Builder::new(Stage::Fragment);
        let zero = b.constant(32, 0);
        b.tex(op, ty, 1, |tex| {
            let coord = (!op.is_query()).then_some((TexSrcKind::Coord, zero));
            tex.srcs = coord.into_iter().chain([(kind, zero)]).collect();
        });
        validate(&b.finish()).err().map(|errors| errors[0].problem.clone())
    };
    assert_eq!(with(TexOp::Tg4, TexSrcKind::Comparator, AluType::FLOAT32), None);
    assert_eq!(with(TexOp::Txs, TexSrcKind::Lod, AluType::UINT32), None);
    let projector = BrokenRule::TexSource(TexOp::Txf, TexSrcKind::Projector);
    assert_eq!(with(TexOp::Txf, TexSrcKind::Projector, AluType::FLOAT32), Some(projector));
    let sampler = BrokenRule::TexSource(TexOp::Txf, TexSrcKind::SamplerHandle);
    assert_eq!(with(TexOp::Txf, TexSrcKind::SamplerHandle, AluType::FLOAT32), Some(sampler));
    let size = BrokenRule::TexType(TexOp::Txs, AluType::FLOAT32);
    assert_eq!(with(TexOp::Txs, TexSrcKind::Lod, AluType::FLOAT32), Some(size));
}

#[test]
fn writes_are_not_reorderable() {
    let problem = |access: Access| {
        let mut b = Builder::new(Stage::Compute);
        let zero = b.constant(32, 0);
        let indices = [Index::WriteMask(1), Index::Access(access)];
        b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[zero, zero, zero, zero], indices);
        validate(&b.finish()).err().map(|errors| errors[0].problem.clone())
    };
    assert_eq!(problem(Access::COHERENT), None);
    assert_eq!(problem(Access::REORDERABLE), Some(BrokenRule::ReorderableWrite));
}

#[test]
fn alignments() {
    let problem = |mul: u32, offset: u32| {
        let load =
            format!("32 %0 = undefined\n32 %1 = @load_shared (%0) (base=0, align_mul={mul}, align_offset={offset})");
        let text = format!("shader: MESA_SHADER_COMPUTE\nimpl main {{\n    block b0:\n{load}\n    block b99:\n}}\n");
        let shader = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        validate(&shader).err().map(|mut errors| errors.remove(0).problem)
    };
    for (mul, offset) in [(4, 0), (16, 12), (1, 0), (0, 0)] {
        assert_eq!(problem(mul, offset), None, "{mul} {offset}");
    }
    for (mul, offset) in [(12, 0), (4, 4), (5, 1)] {
        assert_eq!(problem(mul, offset), Some(BrokenRule::Alignment { mul, offset }));
    }
}
