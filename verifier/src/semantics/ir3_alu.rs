//! The ALU operations of ir3: categories 1 (`mov`, `cov`) to 4.

use ir3_compiler::ir3::{InstrData, Mods};

use super::values::{Kernel, Row};

/// How an ALU instruction is executed.
#[derive(Clone, Copy, Debug)]
pub struct Alu {
    /// From the sources, modifiers applied, to the result.
    pub kernel: Kernel,
    /// What is then done to the result: the float clamp of `(sat)`. Integer saturation is in the kernel.
    pub clamp: Option<fn(&mut Row)>,
}

/// What an ALU instruction computes from its first one, two or three sources (an address register source behind them is
/// no operand); `None` where it is no ALU instruction, or one without a definition.
///
/// The widths of sources and destination are those of their classes. A comparison gives 0 or 1, to predicates too.
pub fn kernel(instr: &InstrData) -> Option<Alu> {
    let _ = instr;
    None
}

/// What the modifiers of source `index` do to it as it is read, in place; `None` if nothing.
///
/// Whether `(neg)` and `(abs)` are those of floats or of integers is the instruction's; so is the width.
pub fn modifier(instr: &InstrData, index: usize) -> Option<fn(&mut Row)> {
    let mods = instr.srcs[index].mods;
    if mods == Mods::empty() {
        return None;
    }
    None
}
