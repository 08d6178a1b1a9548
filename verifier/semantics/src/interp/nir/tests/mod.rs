//! Small shaders with known results.

mod flow;
mod lanes;
mod values;

use ir3_compiler::nir::{Builder, Def, Index, IntrinsicOp, Op, Shader, Stage};

use super::Decoded;
use crate::arithmetic::rows::{ALL_LANES, LANES, Row};
use crate::environment::env::Env;
use crate::interp::{End, Outcome, Scratch, UndefinedReason};

/// Builds a shader.
fn shader(stage: Stage, build: impl FnOnce(&mut Builder)) -> Shader {
    let mut builder = Builder::new(stage);
    build(&mut builder);
    builder.finish()
}

/// Runs a shader without helper lanes.
fn run(stage: Stage, build: impl FnOnce(&mut Builder)) -> Outcome {
    run_in(&Env { helpers: Some(0), ..Env::from_seed(1) }, stage, build)
}

fn run_in(env: &Env, stage: Stage, build: impl FnOnce(&mut Builder)) -> Outcome {
    let decoded = Decoded::new(&shader(stage, build)).unwrap();
    // The buffers' contents from an earlier run must not matter.
    let mut scratch = Scratch::new();
    scratch.rows = vec![[0x5555_5555; LANES]; 100];
    scratch.poison = vec![ALL_LANES; 100];
    let outcome = decoded.run(env, 10_000, &mut scratch);
    assert_eq!(decoded.run(env, 10_000, &mut scratch), outcome, "a second run");
    outcome
}

/// Stores a scalar to output 0.
fn output(b: &mut Builder, value: Def) {
    output_to(b, 0, value);
}

fn output_to(b: &mut Builder, base: i32, value: Def) {
    let zero = b.constant(32, 0);
    let indices = [Index::Base(base), Index::WriteMask(0xffff)];
    b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[value, zero], indices);
}

/// The lane number.
fn lane(b: &mut Builder) -> Def {
    b.intrinsic(IntrinsicOp::LoadSubgroupInvocation, 1, 32, &[], []).unwrap()
}

/// Compares the lane number with a constant.
fn lane_is(b: &mut Builder, op: Op, number: u64) -> Def {
    let (lane, number) = (lane(b), b.constant(32, number));
    b.alu(op, &[lane, number])
}

/// A component of output 0 of a run that finished, and the lanes where it is poison.
fn result(outcome: &Outcome, component: u8) -> (Row, u64) {
    assert_eq!(outcome.end, End::Finished);
    let row = outcome.outputs.rows().iter().find(|row| (row.base, row.component) == (0, component));
    let row = row.expect("the output was stored");
    (row.values, row.poison)
}

/// Output 0 of a run that finished with a value in every lane.
fn values(outcome: &Outcome) -> Row {
    let (values, poison) = result(outcome, 0);
    assert_eq!(poison, 0);
    values
}

/// The row of a function of the lane number.
fn row(f: impl Fn(u32) -> u32) -> Row {
    std::array::from_fn(|lane| f(lane as u32))
}

fn undefined(outcome: &Outcome, expected: UndefinedReason) -> u64 {
    match &outcome.end {
        End::Undefined { reason, lanes, .. } if *reason == expected => *lanes,
        end => panic!("{end:?}"),
    }
}
