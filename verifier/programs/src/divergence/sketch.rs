//! A sketch: a program over a few registers that is easy to generate and to change, and its translation to ir3.

use super::compute_shader;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Program, text};
use ir3_compiler::target::Target;
use std::fmt::{self, Display, Formatter, Write as _};

/// A 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reg {
    /// A register of each lane.
    Own(u8),
    /// A shared register of the wave.
    Shared(u8),
}

impl Reg {
    /// The number of the lane in its workgroup. No operation writes it.
    pub(super) const LANE: Self = Self::Own(0);
    /// The last two bits of the lane's number.
    pub(super) const FEW: Self = Self::Own(2);
    /// Always 0: an address that all lanes have in common.
    pub(super) const ZERO: Self = Self::Own(3);
    /// Addresses of which each belongs to one lane, one for each register of `OWN`.
    pub(super) const OUT: [Self; 3] = [Self::LANE, Self::Own(12), Self::Own(13)];
    /// Per-lane registers for computed values.
    pub(super) const OWN: [Self; 3] = [Self::Own(4), Self::Own(5), Self::Own(6)];
    /// Shared registers for computed values.
    pub(super) const SHARED: [Self; 2] = [Self::Shared(0), Self::Shared(1)];
    /// A shared register that only changes use.
    pub(super) const SPARE: Self = Self::Shared(2);
    /// The result of a ballot: this register and the next.
    const BALLOT: Self = Self::Shared(4);

    /// The loop counter at a nesting depth.
    pub(super) const fn counter(depth: usize) -> Self {
        Self::Own(8 + depth as u8)
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (prefix, number) = match *self {
            Self::Own(number) => ("r", u32::from(number)),
            Self::Shared(number) => ("sr", 48 * 4 + u32::from(number)),
        };
        write!(f, "{prefix}{}.{}", number / 4, ["x", "y", "z", "w"][number as usize % 4])
    }
}

/// An operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SketchOperand {
    /// A register.
    Reg(Reg),
    /// A small immediate.
    Number(u8),
}

impl Display for SketchOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reg(reg) => reg.fmt(f),
            Self::Number(number) => write!(f, "imm[0.000000,{number},{number:#x}]"),
        }
    }
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SketchOp {
    /// `to = from`
    Move { to: Reg, from: SketchOperand },
    /// `to = a + b`
    Add { to: Reg, a: Reg, b: SketchOperand },
    /// `to`, a shared register, is the value of `from` in the first active lane.
    First { to: Reg, from: Reg },
    /// `to`, a shared register, is the mask of the active lanes, of the first 32, in which `from` is less than
    /// `number`.
    Ballot { to: Reg, from: Reg, number: u8 },
    /// Ends the lanes in which `a` is less than `number`; with `demote` they go on as helper lanes.
    Kill { demote: bool, a: Reg, number: u8 },
    /// Stores to the buffer.
    Store { at: Reg, value: Reg },
    /// Loads from the buffer.
    Load { to: Reg, at: Reg },
    /// Adds to shared memory atomically; `to` is the old value.
    Count { to: Reg, at: Reg, value: Reg },
}

impl SketchOp {
    /// The register that the operation writes.
    pub(super) fn to(&mut self) -> Option<&mut Reg> {
        match self {
            Self::Move { to, .. }
            | Self::Add { to, .. }
            | Self::First { to, .. }
            | Self::Ballot { to, .. }
            | Self::Load { to, .. }
            | Self::Count { to, .. } => Some(to),
            Self::Store { .. } | Self::Kill { .. } => None,
        }
    }

    /// The registers that the operation reads.
    pub(super) fn reads(&mut self) -> impl Iterator<Item = &mut Reg> {
        let (one, other) = match self {
            Self::Move { from: SketchOperand::Reg(from), .. } => (Some(from), None),
            Self::Move { from: SketchOperand::Number(_), .. } => (None, None),
            Self::Add { a, b: SketchOperand::Reg(b), .. } => (Some(a), Some(b)),
            Self::Add { a, .. } => (Some(a), None),
            Self::First { from, .. } | Self::Ballot { from, .. } => (Some(from), None),
            Self::Kill { a, .. } | Self::Load { at: a, .. } => (Some(a), None),
            Self::Store { at, value } | Self::Count { at, value, .. } => (Some(at), Some(value)),
        };
        one.into_iter().chain(other)
    }

    /// The small immediate of the operation.
    pub(super) fn number(&mut self) -> Option<&mut u8> {
        match self {
            Self::Move { from: SketchOperand::Number(number), .. }
            | Self::Add { b: SketchOperand::Number(number), .. }
            | Self::Ballot { number, .. }
            | Self::Kill { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The ir3 instructions of the operation, each with a line break.
    fn text(&self) -> String {
        let zero = SketchOperand::Number(0);
        match self {
            Self::Move { to, from } => format!("mov.u32u32 {to}, {from}\n"),
            Self::Add { to, a, b } => format!("add.u {to}, {a}, {b}\n"),
            Self::First { to, from } => format!("read_first.macro.u32u32 {to}, {from}\n"),
            Self::Ballot { to, from, number } => {
                let (number, ballot) = (SketchOperand::Number(*number), Reg::BALLOT);
                format!(
                    "cmps.u.lt pp0.y, {from}, {number}
                    ballot.macro.u32u32 {ballot} (wrmask=0x3), pp0.y
                    mov.u32u32 {to}, {ballot}\n"
                )
            }
            Self::Kill { demote, a, number } => {
                let (opcode, number) = (if *demote { "demote" } else { "kill" }, SketchOperand::Number(*number));
                format!("cmps.u.lt pp0.y, {a}, {number}\n{opcode} pp0.y\n")
            }
            Self::Store { at, value } => format!("stib {zero}, {at}, {zero}, {value} // {BUFFER}\n"),
            Self::Load { to, at } => format!("ldib {to}, {zero}, {at}, {zero} // {BUFFER}\n"),
            Self::Count { to, at, value } => {
                format!("atomic.add {to}, {at}, {value} // {{type=u32, components=1, space=shared}}\n")
            }
        }
    }
}

const BUFFER: &str = "{type=u32, components=1, space=ssbo, coords=1}";

/// The lanes that take part in a branch decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// Each lane decides for itself.
    Own,
    /// All lanes branch if the condition is true in any of them.
    Any,
    /// All lanes branch if the condition is true in all of them.
    All,
}

/// The terminator of a block. Blocks are numbered in layout order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Terminator {
    /// The program ends.
    End,
    /// A jump.
    To(usize),
    /// A branch to `yes` if `a` is less than `b`, otherwise to `no`.
    If { vote: Vote, a: Reg, b: SketchOperand, yes: usize, no: usize },
}

impl Terminator {
    /// The successors.
    pub(super) fn successors(&self) -> impl Iterator<Item = usize> + use<> {
        let (one, other) = match *self {
            Self::End => (None, None),
            Self::To(to) => (Some(to), None),
            Self::If { yes, no, .. } => (Some(yes), Some(no)),
        };
        one.into_iter().chain(other)
    }

    /// Renumbers the successors.
    pub(super) fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        match self {
            Self::End => {}
            Self::To(to) => *to = number(*to),
            Self::If { yes, no, .. } => (*yes, *no) = (number(*yes), number(*no)),
        }
    }
}

/// A block of a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SketchBlock {
    /// Its operations.
    pub(super) ops: Vec<SketchOp>,
    /// Its terminator.
    pub(super) terminator: Terminator,
}

/// A program as a list of blocks in layout order; the first is the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sketch(pub(super) Vec<SketchBlock>);

impl Sketch {
    /// The operations that every program begins with. They initialise each register that may be read.
    pub(super) const BEGINNING: [SketchOp; 9] = [
        SketchOp::Move { to: Reg::counter(0), from: SketchOperand::Number(0) },
        SketchOp::Move { to: Reg::counter(1), from: SketchOperand::Number(0) },
        SketchOp::Move { to: Reg::counter(2), from: SketchOperand::Number(0) },
        SketchOp::Move { to: Reg::OWN[0], from: SketchOperand::Number(2) },
        SketchOp::Move { to: Reg::OWN[1], from: SketchOperand::Reg(Reg::FEW) },
        SketchOp::Move { to: Reg::OWN[2], from: SketchOperand::Reg(Reg::LANE) },
        SketchOp::Move { to: Reg::SHARED[0], from: SketchOperand::Number(5) },
        SketchOp::Move { to: Reg::SHARED[1], from: SketchOperand::Number(6) },
        SketchOp::Move { to: Reg::ZERO, from: SketchOperand::Number(0) },
    ];

    /// Returns true if there is an edge between the blocks.
    pub(super) fn has_edge(&self, from: usize, to: usize) -> bool {
        self.0[from].terminator.successors().any(|target| target == to)
    }

    /// The predecessors of a block.
    pub(super) fn predecessors(&self, block: usize) -> Vec<usize> {
        (0..self.0.len()).filter(|&from| self.has_edge(from, block)).collect()
    }

    /// Translates the sketch to ir3. `None` if the program is not valid.
    pub(super) fn program(&self, machine: &Target) -> Option<Program> {
        let program = text::read(&self.text()).ok()?;
        validate(&program, machine, Form::of(&program)).is_ok().then_some(program)
    }

    /// The sketch as a compute shader in Mesa's text form.
    fn text(&self) -> String {
        let blocks = self.0.iter().enumerate().map(|(block, part)| {
            let mut lines = String::new();
            if block == 0 {
                let _ = writeln!(lines, "_meta:in {} (wrmask=0x3) // {{input=local_invocation_id}}", Reg::LANE);
                let _ = writeln!(lines, "and.b {}, {}, {}", Reg::FEW, Reg::LANE, SketchOperand::Number(3));
                let _ = writeln!(lines, "not.b {}, {}", Reg::OUT[1], Reg::LANE);
                let _ = writeln!(lines, "shl.b {}, {}, {}", Reg::OUT[2], Reg::OUT[1], SketchOperand::Number(8));
            }
            lines.extend(part.ops.iter().map(SketchOp::text));
            match &part.terminator {
                Terminator::End => lines.push_str("end"),
                Terminator::To(_) => lines.push_str("jump"),
                Terminator::If { vote, a, b, .. } => {
                    let opcode = match vote {
                        Vote::Own => "br",
                        Vote::Any => "bany",
                        Vote::All => "ball",
                    };
                    let _ = write!(lines, "cmps.u.lt pp0.x, {a}, {b}\n{opcode} pp0.x");
                }
            }
            (lines, part.terminator.successors().map(|target| target + 1).collect())
        });
        compute_shader(0, &blocks.collect::<Vec<(String, Vec<usize>)>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_valid() {
        let (own, shared) = (Reg::OWN[0], Reg::SHARED[0]);
        let ops = vec![
            SketchOp::Move { to: own, from: SketchOperand::Number(1) },
            SketchOp::Move { to: shared, from: SketchOperand::Reg(own) },
            SketchOp::Add { to: shared, a: shared, b: SketchOperand::Number(2) },
            SketchOp::Add { to: own, a: own, b: SketchOperand::Reg(shared) },
            SketchOp::First { to: shared, from: own },
            SketchOp::Ballot { to: shared, from: own, number: 3 },
            SketchOp::Kill { demote: true, a: own, number: 1 },
            SketchOp::Kill { demote: false, a: own, number: 1 },
            SketchOp::Store { at: Reg::LANE, value: own },
            SketchOp::Load { to: own, at: Reg::FEW },
            SketchOp::Count { to: own, at: Reg::FEW, value: own },
        ];
        for vote in [Vote::Own, Vote::Any, Vote::All] {
            let terminator = Terminator::If { vote, a: own, b: SketchOperand::Number(2), yes: 2, no: 1 };
            let parts = [(ops.clone(), terminator), (Vec::new(), Terminator::To(2)), (Vec::new(), Terminator::End)];
            let sketch = Sketch(parts.map(|(ops, terminator)| SketchBlock { ops, terminator }).into());
            let program = text::read(&sketch.text()).unwrap();
            assert_eq!(validate(&program, &Target::default(), Form::of(&program)), Ok(()), "{}", sketch.text());
        }
    }
}
