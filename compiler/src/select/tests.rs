//! Errors of selection. The selected programs are tested by the file tests, `corpus/file/select`, and their results
//! with the interpreters.

use super::{SelectError, run};
use crate::nir::{AluType, Builder, Index, IntrinsicOp, JumpKind, Op, Shader, Stage, TexOp, TexSrcKind};
use crate::target::Target;

fn refusal(shader: &Shader) -> SelectError {
    run(shader, &Target::default()).unwrap_err()
}

#[test]
fn a_store_to_an_output_in_an_if_is_refused_with_its_place() {
    let mut b = Builder::new(Stage::Vertex);
    let zero = b.constant(32, 0);
    let x = b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[zero], [Index::Base(0)]).unwrap();
    let condition = b.alu(Op::Ilt, &[x, zero]);
    b.begin_if(condition);
    b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[x, zero], [Index::Base(0), Index::WriteMask(1)]);
    b.end_if();
    let error = refusal(&b.finish());
    assert_eq!(error.operation, "store_output");
    assert!(error.instr.is_some() && error.line.is_none());
    assert!(error.to_string().ends_with("store_output: a store to an output inside of an if or a loop"), "{error}");
}

/// Waves that do not run the preamble would go on nowhere.
#[test]
fn a_preamble_without_an_end_is_refused() {
    for ends in [true, false] {
        let mut b = Builder::new(Stage::Vertex);
        let zero = b.constant(32, 0);
        let start = b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], []).unwrap();
        b.begin_if(start);
        b.intrinsic(IntrinsicOp::StoreConstIr3, 1, 32, &[zero], [Index::Base(0)]);
        if ends {
            b.intrinsic(IntrinsicOp::PreambleEndIr3, 0, 0, &[], []);
        }
        b.end_if();
        let selected = run(&b.finish(), &Target::default());
        let refused = selected.err().map(|error| error.to_string());
        let expected = "preamble_start_ir3: no `preamble_end_ir3` ends the preamble";
        assert_eq!(refused.as_deref(), (!ends).then_some(expected));
    }
}

/// Stored words can be read only after the end of the preamble.
#[test]
fn a_preamble_that_reads_what_it_has_stored_is_refused() {
    for (base, offset, is_refused) in [(3, Some(0), true), (1, Some(2), true), (4, Some(0), false), (2, None, true)] {
        let mut b = Builder::new(Stage::Vertex);
        let zero = b.constant(32, 0);
        let start = b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], []).unwrap();
        b.begin_if(start);
        let computed = b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(3)]).unwrap();
        b.intrinsic(IntrinsicOp::StoreConstIr3, 1, 32, &[zero], [Index::Base(3)]);
        let offset = offset.map_or(computed, |offset| b.constant(32, offset));
        b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[offset], [Index::Base(base)]);
        b.intrinsic(IntrinsicOp::PreambleEndIr3, 0, 0, &[], []);
        b.end_if();
        b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(3)]);
        let refused = run(&b.finish(), &Target::default()).err().map(|error| error.reason);
        let expected = "it may read a word that the same preamble has stored before";
        assert_eq!(refused.as_deref(), is_refused.then_some(expected), "base {base}");
    }
}

#[test]
fn outputs_have_one_width_wherever_the_program_ends() {
    for bits in [16, 32] {
        let mut b = Builder::new(Stage::Vertex);
        let (value, zero) = (b.constant(32, 1), b.constant(32, 0));
        let condition = b.alu(Op::Ine, &[value, zero]);
        let last = b.constant(bits, 2);
        let indices = [Index::WriteMask(1), Index::Range(1)];
        b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[value, zero], indices.clone());
        b.begin_if(condition);
        b.jump(JumpKind::Halt);
        b.end_if();
        b.intrinsic(IntrinsicOp::StoreOutput, 1, bits, &[last, zero], indices);
        let refused = run(&b.finish(), &Target::default()).err().map(|error| error.reason);
        let expected = "an output of another width than where the program may have ended";
        assert_eq!(refused.as_deref(), (bits == 16).then_some(expected));
    }
}

#[test]
fn an_element_outside_of_its_array_is_refused() {
    let mut b = Builder::new(Stage::Vertex);
    let indices = [Index::NumComponents(1), Index::NumArrayElems(4), Index::BitSize(16)];
    let array = b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices).unwrap();
    b.intrinsic(IntrinsicOp::LoadReg, 1, 16, &[array], [Index::Base(4)]);
    assert_eq!(refusal(&b.finish()).reason, "the element is outside of the array");
}

#[test]
fn a_texture_whose_level_is_of_another_width_than_its_coordinates_is_refused() {
    for (coordinate_bits, level_bits) in [(16, 32), (32, 16), (16, 16), (32, 32)] {
        let mut b = Builder::new(Stage::Vertex);
        let (coordinate, level) = (b.constants(coordinate_bits, &[0, 0]), b.constant(level_bits, 0));
        b.tex(TexOp::Txl, AluType::FLOAT32, 4, |tex| {
            tex.srcs.extend([(TexSrcKind::Coord, coordinate), (TexSrcKind::Lod, level)]);
        });
        let result = run(&b.finish(), &Target::default()).map_err(|error| error.reason);
        let expected = "its operands are not of one width";
        assert_eq!(result.err().as_deref(), (coordinate_bits != level_bits).then_some(expected));
    }
}

#[test]
fn words_of_the_driver_are_before_those_of_the_shader_if_there_is_room() {
    let word = |base: u32, is_array: bool| {
        let mut b = Builder::new(Stage::Compute);
        let zero = b.constant(32, 0);
        let group = b.intrinsic(IntrinsicOp::LoadBaseWorkgroupId, 3, 32, &[], []).unwrap();
        let lane = b.intrinsic(IntrinsicOp::LoadLocalInvocationIndex, 1, 32, &[], []).unwrap();
        let offset = if is_array { lane } else { zero };
        let named = b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[offset], [Index::Base(base as i32)]).unwrap();
        let first = b.channel(group, 0);
        let sum = b.alu(Op::Iadd, &[named, first]);
        b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[sum, zero, zero, zero], [Index::WriteMask(1)]);
        let program = run(&b.finish(), &Target::default()).expect("a program");
        program.consts.driver_params.iter().map(|param| param.word).min()
    };
    assert_eq!(word(0, false), Some(16));
    assert_eq!(word(3, false), Some(16));
    assert_eq!(word(4, false), Some(0));
    // An array is of any length.
    assert_eq!(word(16, true), Some(0));
    assert!(word(0, true) > Some(1000));
}
