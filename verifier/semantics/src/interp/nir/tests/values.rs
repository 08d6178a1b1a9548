//! Values, memory, inputs, the constant file.

use super::*;
use crate::environment::Binding;
use crate::environment::env::Launch;
use crate::environment::memory::Space;
use ir3_compiler::ir3::SystemValue;
use ir3_compiler::nir::{AluSrc, AluType, AtomicOp, TexOp, TexSrcKind};

#[test]
fn vectors_are_names() {
    let outcome = run(Stage::Vertex, |b| {
        let (number, seven) = (lane(b), b.constant(32, 7));
        let pair = b.vec(&[number, seven]);
        let swapped = b.alu_swizzled(Op::Mov, 2, &[AluSrc::swizzled(pair, &[1, 0])]);
        let difference = b.alu(Op::Isub, &[swapped, pair]);
        output(b, difference);
    });
    assert_eq!(result(&outcome, 0).0, row(|l| 7u32.wrapping_sub(l)));
    assert_eq!(result(&outcome, 1).0, row(|l| l.wrapping_sub(7)));
}

#[test]
fn numbers_of_64_bits_have_two_rows() {
    let outcome = run(Stage::Vertex, |b| {
        let (number, ones) = (lane(b), b.constant(32, 0xffff_ffff));
        let wide = b.alu(Op::Pack64_2x32Split, &[ones, number]);
        let one = b.constant(64, 1);
        let sum = b.alu(Op::Iadd, &[wide, one]);
        let five = b.constant(32, 36);
        let shifted = b.alu(Op::Ishl, &[sum, five]);
        let less = b.alu(Op::Ult, &[wide, sum]);
        let chosen = b.alu(Op::Bcsel, &[less, sum, shifted]);
        let words = b.alu(Op::Unpack64_2x32, &[chosen]);
        output(b, words);
    });
    assert_eq!(result(&outcome, 0).0, row(|_| 0));
    assert_eq!(result(&outcome, 1).0, row(|l| l + 1));
}

#[test]
fn poison_spreads_but_through_choices() {
    let outcome = run(Stage::Vertex, |b| {
        let (number, bad) = (lane(b), b.undef(1, 32));
        let first = lane_is(b, Op::Ult, 2);
        let chosen = b.alu(Op::Bcsel, &[first, bad, number]);
        output(b, chosen);
        let zero = b.constant(32, 0);
        let product = b.alu(Op::Imul, &[bad, zero]);
        output_to(b, 1, product);
        let three = b.constant(32, 3);
        let triple = b.alu(Op::Imul, &[bad, three]);
        output_to(b, 2, triple);
    });
    let (found, poison) = result(&outcome, 0);
    assert_eq!((&found[2..], poison), (&row(|l| l)[2..], 3));
    // No bit of the undefined value is left; of a product with another number some are.
    assert_eq!(outcome.outputs.rows()[1].poison, 0);
    assert_eq!(outcome.outputs.rows()[2].poison, ALL_LANES);
}

/// Two vec4s from vec4 12 of buffer 3 on, to the constant file from word 37 on.
#[test]
fn words_of_a_buffer_are_copied_to_the_constant_file() {
    let env = Env::from_seed(4);
    let outcome = run_in(&env, Stage::Vertex, |b| {
        let (buffer, offset) = (b.constant(32, 3), b.constant(32, 12));
        let indices = [Index::Base(37), Index::Range(2)];
        b.intrinsic(IntrinsicOp::CopyUboToUniformIr3, 0, 0, &[buffer, offset], indices);
        let zero = b.constant(32, 0);
        let mut word = |base| b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(base)]).unwrap();
        let words = [36, 37, 44, 45].map(&mut word);
        let words = b.vec(&words);
        output(b, words);
    });
    let buffer = |word| env.ubo_word(Binding::new(None, 3), word);
    let expected = [env.const_word(36), buffer(48), buffer(55), env.const_word(45)];
    for (component, word) in expected.into_iter().enumerate() {
        assert_eq!(result(&outcome, component as u8), (row(|_| word), 0), "component {component}");
    }
}

#[test]
fn the_constant_file_is_written_by_the_preamble() {
    let env = Env { helpers: Some(1), ..Env::from_seed(4) };
    let outcome = run_in(&env, Stage::Fragment, |b| {
        let start = b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], []).unwrap();
        b.begin_if(start);
        let elected = b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []).unwrap();
        b.begin_if(elected);
        let pair = b.constants(32, &[11, 22]);
        b.intrinsic(IntrinsicOp::StoreConstIr3, 2, 32, &[pair], [Index::Base(8)]);
        b.end_if();
        b.intrinsic(IntrinsicOp::PreambleEndIr3, 0, 0, &[], []);
        b.end_if();
        let zero = b.constant(32, 0);
        let three = b.intrinsic(IntrinsicOp::LoadConstIr3, 3, 32, &[zero], [Index::Base(8)]).unwrap();
        output(b, three);
        let number = lane(b);
        let some = b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[number], [Index::Base(8)]).unwrap();
        output_to(b, 1, some);
    });
    let words: Vec<u32> = (0..3).map(|component| result(&outcome, component).0[5]).collect();
    assert_eq!(words, [11, 22, env.const_word(10)]);
    let expected = row(|l| match l {
        0 => 11,
        1 => 22,
        l => env.const_word(8 + l),
    });
    assert_eq!(outcome.outputs.rows()[3].values, expected);
}

#[test]
fn inputs_of_vertices_and_fragments() {
    let env = Env::from_seed(4);
    let outcome = run_in(&env, Stage::Vertex, |b| {
        let zero = b.constant(32, 0);
        let indices = [Index::Base(2), Index::Component(3)];
        let pair = b.intrinsic(IntrinsicOp::LoadInput, 2, 32, &[zero], indices).unwrap();
        output(b, pair);
    });
    let mut expected = [0; LANES];
    env.attribute(2, 3, &mut expected);
    assert_eq!(result(&outcome, 0).0, expected);
    env.attribute(3, 0, &mut expected);
    assert_eq!(result(&outcome, 1).0, expected);

    let outcome = run_in(&env, Stage::Fragment, |b| {
        let zero = b.constant(32, 0);
        let ij = b.intrinsic(IntrinsicOp::LoadBarycentricPixel, 2, 32, &[], []).unwrap();
        let indices = [Index::Base(1), Index::Component(2)];
        let smooth = b.intrinsic(IntrinsicOp::LoadInterpolatedInput, 1, 32, &[ij, zero], indices.clone()).unwrap();
        output(b, smooth);
        let flat = b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], indices).unwrap();
        output_to(b, 1, flat);
        let position = b.intrinsic(IntrinsicOp::LoadFragCoord, 4, 32, &[], []).unwrap();
        output_to(b, 2, position);
    });
    let launch = Launch { fragment: true, ..Launch::default() };
    let system = |value, component| {
        let mut row = [0; LANES];
        env.system_value(launch, value, component, &mut row);
        row
    };
    let [i, j] = [0, 1].map(|c| system(SystemValue::BarycentricPixel, c));
    env.interpolate(6, &i, &j, false, &mut expected);
    let rows = outcome.outputs.rows();
    assert_eq!(rows[0].values, expected);
    assert_eq!(rows[1].values, std::array::from_fn(|lane| env.varying(6, env.primitive(lane))[0]));
    let x = system(SystemValue::FragCoord, 0);
    assert_eq!(rows[2].values, x.map(|x| (x as f32 / 16.0).to_bits()));
}

#[test]
fn memory_of_the_workgroup_and_buffers() {
    let env = Env::from_seed(4);
    let outcome = run_in(&env, Stage::Compute, |b| {
        let (number, four) = (lane(b), b.constant(32, 4));
        let address = b.alu(Op::Imul, &[number, four]);
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[number, address], [Index::WriteMask(1)]);
        let other = b.constant(32, 63 * 4);
        let mirrored = b.alu(Op::Isub, &[other, address]);
        let value = b.intrinsic(IntrinsicOp::LoadShared, 1, 32, &[mirrored], []).unwrap();
        // Two components, of which the second is stored: at elements 2 * lane + 1 + 3.
        let two = b.constant(32, 2);
        let element = b.alu(Op::Imul, &[number, two]);
        let (pair, buffer, unused) = (b.vec(&[value, value]), b.constant(32, 5), b.constant(32, 0));
        let indices = [Index::Base(3), Index::WriteMask(2)];
        b.intrinsic(IntrinsicOp::StoreSsboIr3, 2, 32, &[pair, buffer, unused, element], indices);
    });
    assert_eq!(outcome.end, End::Finished);
    let shared: Vec<_> = outcome.memory.iter().filter(|word| word.space == Space::Shared).collect();
    assert_eq!(shared.len(), 64);
    let buffer: Vec<_> = outcome.memory.iter().filter(|word| word.space == Space::Ssbo).collect();
    assert_eq!(buffer.len(), 64);
    for (lane, word) in buffer.iter().enumerate() {
        assert_eq!(word.binding, Binding::bound(5));
        assert_eq!((word.word, word.value), (2 * lane as u32 + 4, 63 - lane as u32));
    }
}

#[test]
fn atomics_in_the_order_of_lanes() {
    let outcome = run(Stage::Compute, |b| {
        let (zero, number, one) = (b.constant(32, 0), lane(b), b.constant(32, 1));
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[zero, zero], [Index::WriteMask(1)]);
        let indices = [Index::AtomicOp(AtomicOp::Iadd)];
        let old = b.intrinsic(IntrinsicOp::SharedAtomic, 1, 32, &[zero, number], indices).unwrap();
        output(b, old);
        // Replaces 0 by 1 in the first lane only.
        let four = b.constant(32, 4);
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[zero, four], [Index::WriteMask(1)]);
        let indices = [Index::AtomicOp(AtomicOp::Cmpxchg)];
        let old = b.intrinsic(IntrinsicOp::SharedAtomicSwap, 1, 32, &[four, zero, one], indices).unwrap();
        output_to(b, 1, old);
    });
    assert_eq!(values(&outcome), row(|l| (0..l).sum()));
    assert_eq!(outcome.outputs.rows()[1].values, row(|l| u32::from(l > 0)));
}

#[test]
fn a_write_to_poison_has_no_meaning() {
    let outcome = run(Stage::Compute, |b| {
        let (bad, zero) = (b.undef(1, 32), b.constant(32, 0));
        let loaded = b.intrinsic(IntrinsicOp::LoadShared, 1, 32, &[bad], []).unwrap();
        output(b, loaded);
        // Storing poison is allowed.
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[bad, zero], [Index::WriteMask(1)]);
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[zero, bad], [Index::WriteMask(1)]);
    });
    assert_eq!(undefined(&outcome, UndefinedReason::Address), ALL_LANES);
    let End::Undefined { origin, .. } = &outcome.end else { unreachable!("it is undefined") };
    assert_eq!(origin.operation, "store_shared");
    assert_eq!(outcome.outputs.rows()[0].poison, ALL_LANES);
}

#[test]
fn helper_lanes_leave_no_traces() {
    let env = Env { helpers: Some(0b10), ..Env::from_seed(4) };
    let outcome = run_in(&env, Stage::Fragment, |b| {
        let (number, four) = (lane(b), b.constant(32, 4));
        let address = b.alu(Op::Imul, &[number, four]);
        b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[number, address], [Index::WriteMask(1)]);
        let indices = [Index::AtomicOp(AtomicOp::Iadd)];
        let old = b.intrinsic(IntrinsicOp::SharedAtomic, 1, 32, &[four, number], indices).unwrap();
        output(b, old);
    });
    assert_eq!(outcome.helpers, 2);
    assert!(outcome.memory.len() == 64, "the atomic's word is written by others");
    assert_eq!(result(&outcome, 0).1, 2);
}

#[test]
fn local_arrays() {
    let build = |limit: u64| {
        move |b: &mut Builder| {
            let indices =
                [Index::NumComponents(1), Index::NumArrayElems(4), Index::BitSize(32), Index::Divergent(true)];
            let array = b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices).unwrap();
            let (number, limit) = (lane(b), b.constant(32, limit));
            let index = b.alu(Op::Umod, &[number, limit]);
            let indices = [Index::Base(0), Index::WriteMask(1)];
            b.intrinsic(IntrinsicOp::StoreRegIndirect, 1, 32, &[number, array, index], indices);
            let loaded = b.intrinsic(IntrinsicOp::LoadReg, 1, 32, &[array], [Index::Base(1)]).unwrap();
            output(b, loaded);
        }
    };
    let (found, poison) = result(&run(Stage::Vertex, build(4)), 0);
    assert_eq!((found[5], found[61]), (5, 61));
    assert_eq!(poison, row(|l| u32::from(l % 4 != 1)).iter().rev().fold(0, |mask, &bit| mask << 1 | u64::from(bit)));
    let lanes = undefined(&run(Stage::Vertex, build(5)), UndefinedReason::Address);
    assert_eq!(lanes & 0x3ff, 0b10_0001_0000);
}

#[test]
fn a_fetch_without_a_level_is_one_of_level_0() {
    let ask = |with_level: bool, width: u8| {
        run(Stage::Vertex, move |b: &mut Builder| {
            let (number, zero) = (lane(b), b.constant(32, 0));
            let texel = b.tex(TexOp::Txf, AluType::FLOAT32, 4, |tex| {
                tex.srcs.push((TexSrcKind::Coord, number));
                if with_level {
                    tex.srcs.push((TexSrcKind::Lod, zero));
                }
                tex.texture_index = u32::from(width);
            });
            output(b, texel);
        })
    };
    let (one, two, other) = (ask(true, 1), ask(false, 1), ask(true, 2));
    assert_eq!(one.outputs, two.outputs);
    let difference = one.first_difference(&other).unwrap().to_string();
    assert!(difference.starts_with("output 0.x of lane 0: expected 0x"), "{difference}");
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let refused = Decoded::new(&shader(Stage::Compute, |b| {
        let clock = b.intrinsic(IntrinsicOp::ShaderClock, 2, 32, &[], []).unwrap();
        output(b, clock);
    }));
    assert_eq!(refused.unwrap_err().to_string(), "instruction 0: the interpreter does not support `shader_clock`");
    let refused = Decoded::new(&shader(Stage::Vertex, |b| {
        let float = b.constant(8, 1);
        let sum = b.alu(Op::Fadd, &[float, float]);
        output(b, sum);
    }));
    assert!(refused.unwrap_err().to_string().contains("`fadd`: no operands of [8, 8] bits"));
}

/// Bits of an undefined value are undefined one by one, in registers, phis and memory.
#[test]
fn bits_are_undefined_one_by_one() {
    let outcome = run(Stage::Compute, |b| {
        let (undefined, one, zero) = (b.undef(1, 32), b.constant(32, 1), b.constant(32, 0));
        let low = b.alu(Op::Iand, &[undefined, one]);
        let two = b.constant(32, 2);
        let neither = b.alu(Op::Iand, &[low, two]);
        let shifted = b.alu(Op::Ishl, &[low, two]);
        for (element, value) in [low, neither, shifted].into_iter().enumerate() {
            let element = b.constant(32, element as u64);
            let indices = [Index::WriteMask(1)];
            b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[value, zero, zero, element], indices);
        }
    });
    let words: Vec<(u32, u32, u32)> = outcome.memory.iter().map(|word| (word.word, word.value, word.poison)).collect();
    assert_eq!(words, [(0, 0, 1), (1, 0, 0), (2, 0, 4)]);
}

/// A marked bit of the target is a difference only if a value of it shows one.
#[test]
fn undefined_bits_of_a_target_may_have_any_value() {
    use crate::interp::filling::{Agreement, compare};
    let zero = run(Stage::Vertex, |b| {
        let zero = b.constant(32, 0);
        output(b, zero);
    });
    let against_zero = |op: Op, bits: u8| {
        let decoded = Decoded::new(&shader(Stage::Vertex, |b| {
            let number = lane(b);
            let undefined = b.undef(1, bits);
            let known = b.constant(bits, 0);
            // Not one row for all widths.
            let condition = lane_is(b, Op::Ult, 64);
            let value = b.alu(Op::Bcsel, &[condition, undefined, known]);
            let result = b.alu(op, &[value, value]);
            let result = if bits == 32 { result } else { b.alu(Op::B2i32, &[result]) };
            let sum = b.alu(Op::Iadd, &[result, number]);
            let result = b.alu(Op::Isub, &[sum, number]);
            output(b, result);
        }))
        .unwrap();
        let env = Env { helpers: Some(0), ..Env::from_seed(1) };
        let again = |scratch: &mut Scratch| decoded.run(&env, 10_000, scratch);
        let mut scratch = Scratch::new();
        let target = again(&mut scratch);
        let compared = compare(&zero, &target, &mut scratch, again);
        assert_eq!(again(&mut scratch), target);
        compared
    };
    for bits in [1, 32] {
        assert_eq!(against_zero(Op::Ixor, bits), Ok(Agreement::Filled), "{bits} bits");
        against_zero(Op::Iand, bits).unwrap_err();
    }
}
