//! The operands of comparisons, in the order in which a run executes them.
//!
//! Two programs that differ in one comparison (`lt` for `le`, another constant) differ on the inputs for which its
//! operands are equal, or next to each other. Random inputs hardly ever are. A search for inputs uses the distance of
//! the operands from each other.

use super::storage::{Read, Storage};
use super::watch::Watch;
use super::{Decoded, run};
use crate::arithmetic::float::f16_to_f32;
use crate::environment::env::Env;
use crate::environment::memory::Memory;
use crate::interp::Scratch;
use crate::interp::trace::{TracePoint, Watched};
use ir3_compiler::ir3::{Instr, Opcode, Program};

/// The number of times that a comparison is recorded.
const MOST_TIMES: u8 = 3;

/// The type of the operands of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Numbers {
    Float,
    Half,
    Signed,
    Unsigned,
}

impl Numbers {
    /// The type of an opcode's operands, if it compares its first two: a comparison, or a choice of the smaller or
    /// larger one.
    const fn of(opcode: Opcode, half: bool) -> Option<Self> {
        use Opcode::{CmpsF, CmpsS, CmpsU, CmpvF, CmpvS, CmpvU, MaxF, MaxS, MaxU, MinF, MinS, MinU};
        Some(match opcode {
            CmpsF | CmpvF | MinF | MaxF if half => Self::Half,
            CmpsF | CmpvF | MinF | MaxF => Self::Float,
            CmpsS | CmpvS | MinS | MaxS => Self::Signed,
            CmpsU | CmpvU | MinU | MaxU => Self::Unsigned,
            _ => return None,
        })
    }

    fn number(self, bits: u32, half: bool) -> f64 {
        match self {
            Self::Float => f32::from_bits(bits).into(),
            Self::Half => f32::from_bits(f16_to_f32(bits)).into(),
            Self::Signed if half => (bits as i16).into(),
            Self::Signed => (bits as i32).into(),
            Self::Unsigned => bits.into(),
        }
    }
}

/// A dynamic execution of a comparison: equal in other runs that execute it as often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparisonPoint {
    /// The number of the comparison.
    pub comparison: u32,
    /// The number of earlier executions in the run.
    pub time: u8,
    /// The lane.
    pub lane: u8,
}

/// The operands of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ComparedOperands {
    /// The execution of the comparison.
    pub at: ComparisonPoint,
    /// Their bits.
    pub values: [u32; 2],
    /// The first one less the second one.
    pub gap: f64,
}

/// A comparison of a program.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    point: u32,
    operands: [Read; 2],
    numbers: Numbers,
    half: bool,
}

impl Comparison {
    /// The comparison that an instruction is, if it is one.
    pub fn of(program: &Program, watched: &Watched<Read>) -> Option<Self> {
        let TracePoint::Instr(instr) = watched.at else { return None };
        let data = &program.instrs[Instr::from_u32(instr)];
        let half = data.srcs.first()?.class.half;
        let operand = |number: u8| watched.reads.iter().find(|read| (read.operand, read.component) == (number, 0));
        Some(Self {
            point: watched.ops.0,
            operands: [operand(0)?.place, operand(1)?.place],
            numbers: Numbers::of(data.opcode, half)?,
            half,
        })
    }

    pub const fn point(&self) -> u32 {
        self.point
    }
}

/// Runs a program and returns operands of its comparisons, in the order of execution: of the first executions, in the
/// first and last active lane each.
pub(super) fn compared(
    decoded: &Decoded,
    comparisons: &[Comparison],
    env: &Env,
    fuel: u64,
    scratch: &mut Scratch,
) -> Vec<ComparedOperands> {
    let mut observer = Compared { comparisons, times: vec![0; comparisons.len()], found: Vec::new() };
    run::run_watched(decoded, env, fuel, scratch, &mut observer);
    observer.found
}

/// The observer that records operands.
struct Compared<'a> {
    comparisons: &'a [Comparison],
    /// The number of times that each comparison was recorded.
    times: Vec<u8>,
    found: Vec<ComparedOperands>,
}

impl Watch for Compared<'_> {
    fn enter(&mut self, _: usize, _: u64) {}

    fn between(&mut self, point: u32, mask: u64, storage: &mut Storage, _: &mut Memory) {
        let first = self.comparisons.partition_point(|comparison| comparison.point < point);
        let here = self.comparisons[first..].iter().take_while(|comparison| comparison.point == point);
        for (number, comparison) in (first..).zip(here) {
            let time = self.times[number];
            if mask == 0 || time == MOST_TIMES {
                continue;
            }
            self.times[number] += 1;
            for lane in [mask.trailing_zeros(), 63 - mask.leading_zeros()] {
                let [Some(a), Some(b)] = comparison.operands.map(|read| storage.operand(read, lane as usize)) else {
                    continue;
                };
                let [x, y] = [a, b].map(|bits| comparison.numbers.number(bits, comparison.half));
                let at = ComparisonPoint { comparison: number as u32, time, lane: lane as u8 };
                self.found.push(ComparedOperands { at, values: [a, b], gap: x - y });
            }
        }
    }
}
