//! Errors of selection. What programs look like after it is in the file tests, `corpus/file/select`; what they compute is tested where the
//! interpreters are.

use super::{SelectError, run};
use crate::nir::{Builder, Index, IntrinsicOp, Op, Shader, Stage};
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

#[test]
fn an_element_outside_of_its_array_is_refused() {
    let mut b = Builder::new(Stage::Vertex);
    let indices = [Index::NumComponents(1), Index::NumArrayElems(4), Index::BitSize(16)];
    let array = b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], indices).unwrap();
    b.intrinsic(IntrinsicOp::LoadReg, 1, 16, &[array], [Index::Base(4)]);
    assert_eq!(refusal(&b.finish()).reason, "the element is outside of the array");
}
