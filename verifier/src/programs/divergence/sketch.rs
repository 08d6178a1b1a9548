//! A program of a few registers as it is grown and changed, and the ir3 that it stands for.

use super::compute_shader;
use ir3_compiler::ir3::validate::{Form, validate};
use ir3_compiler::ir3::{Program, text};
use ir3_compiler::target::Target;
use std::fmt::{self, Display, Formatter, Write as _};

/// A register of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reg {
    /// Of each lane.
    Own(u8),
    /// Of the wave.
    Shared(u8),
}

impl Reg {
    /// The number of the lane in its workgroup, which nobody writes.
    pub(super) const LANE: Self = Self::Own(0);
    /// Its last two bits.
    pub(super) const FEW: Self = Self::Own(2);
    /// Always 0: the address that all lanes have in common.
    pub(super) const ZERO: Self = Self::Own(3);
    /// Addresses that no other lane has, one for each register in which lanes calculate.
    pub(super) const OUT: [Self; 3] = [Self::LANE, Self::Own(12), Self::Own(13)];
    /// Where lanes calculate.
    pub(super) const OWN: [Self; 3] = [Self::Own(4), Self::Own(5), Self::Own(6)];
    /// Where the wave does.
    pub(super) const SHARED: [Self; 2] = [Self::Shared(0), Self::Shared(1)];
    /// What only a change uses.
    pub(super) const SPARE: Self = Self::Shared(2);
    /// A ballot: this one and the next.
    const BALLOT: Self = Self::Shared(4);

    /// What counts the iterations of the loops at a depth.
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

/// What an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A register.
    Reg(Reg),
    /// A small number.
    Number(u8),
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reg(reg) => reg.fmt(f),
            Self::Number(number) => write!(f, "imm[0.000000,{number},{number:#x}]"),
        }
    }
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// `to` is what `from` is.
    Move { to: Reg, from: Operand },
    /// `to` is the sum of two.
    Add { to: Reg, a: Reg, b: Operand },
    /// A shared register is what the first lane here has.
    First { to: Reg, from: Reg },
    /// A shared register is the number of those lanes here, of the first 32, in which `from` is less than `number`, as bits.
    Ballot { to: Reg, from: Reg, number: u8 },
    /// Lanes end in which `a` is less than `number`: at once, or to help the others (`demote`).
    Kill { demote: bool, a: Reg, number: u8 },
    /// To the buffer.
    Store { at: Reg, value: Reg },
    /// From the buffer.
    Load { to: Reg, at: Reg },
    /// To shared memory, and what was there before.
    Count { to: Reg, at: Reg, value: Reg },
}

impl Op {
    /// The register that it writes.
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

    /// The registers that it reads.
    pub(super) fn reads(&mut self) -> impl Iterator<Item = &mut Reg> {
        let (one, other) = match self {
            Self::Move { from: Operand::Reg(from), .. } => (Some(from), None),
            Self::Move { from: Operand::Number(_), .. } => (None, None),
            Self::Add { a, b: Operand::Reg(b), .. } => (Some(a), Some(b)),
            Self::Add { a, .. } => (Some(a), None),
            Self::First { from, .. } | Self::Ballot { from, .. } => (Some(from), None),
            Self::Kill { a, .. } | Self::Load { at: a, .. } => (Some(a), None),
            Self::Store { at, value } | Self::Count { at, value, .. } => (Some(at), Some(value)),
        };
        one.into_iter().chain(other)
    }

    /// The small number in it.
    pub(super) fn number(&mut self) -> Option<&mut u8> {
        match self {
            Self::Move { from: Operand::Number(number), .. }
            | Self::Add { b: Operand::Number(number), .. }
            | Self::Ballot { number, .. }
            | Self::Kill { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The instructions that do it, each with a line break.
    fn text(&self) -> String {
        let zero = Operand::Number(0);
        match self {
            Self::Move { to, from } => format!("mov.u32u32 {to}, {from}\n"),
            Self::Add { to, a, b } => format!("add.u {to}, {a}, {b}\n"),
            Self::First { to, from } => format!("read_first.macro.u32u32 {to}, {from}\n"),
            Self::Ballot { to, from, number } => {
                let (number, ballot) = (Operand::Number(*number), Reg::BALLOT);
                format!(
                    "cmps.u.lt pp0.y, {from}, {number}
                    ballot.macro.u32u32 {ballot} (wrmask=0x3), pp0.y
                    mov.u32u32 {to}, {ballot}\n"
                )
            }
            Self::Kill { demote, a, number } => {
                let (opcode, number) = (if *demote { "demote" } else { "kill" }, Operand::Number(*number));
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

/// Who decides where lanes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// Each for itself.
    Own,
    /// All go where one wants to.
    Any,
    /// All go where all want to.
    All,
}

/// Where lanes go behind a block. Blocks have the numbers of their places in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Nowhere.
    End,
    /// All to one block.
    To(usize),
    /// To `yes` if `a` is less than `b`.
    If { vote: Vote, a: Reg, b: Operand, yes: usize, no: usize },
}

impl Way {
    /// The blocks behind it.
    pub(super) fn targets(&self) -> impl Iterator<Item = usize> + use<> {
        let (one, other) = match *self {
            Self::End => (None, None),
            Self::To(to) => (Some(to), None),
            Self::If { yes, no, .. } => (Some(yes), Some(no)),
        };
        one.into_iter().chain(other)
    }

    /// Gives the blocks behind it other numbers.
    pub(super) fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        match self {
            Self::End => {}
            Self::To(to) => *to = number(*to),
            Self::If { yes, no, .. } => (*yes, *no) = (number(*yes), number(*no)),
        }
    }
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// What happens in it.
    pub(super) ops: Vec<Op>,
    /// Where lanes go then.
    pub(super) way: Way,
}

/// The blocks in their order; the first is where all lanes begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sketch(pub(super) Vec<Part>);

impl Sketch {
    /// What every program begins with: each register that may be read holds something.
    pub(super) const BEGINNING: [Op; 9] = [
        Op::Move { to: Reg::counter(0), from: Operand::Number(0) },
        Op::Move { to: Reg::counter(1), from: Operand::Number(0) },
        Op::Move { to: Reg::counter(2), from: Operand::Number(0) },
        Op::Move { to: Reg::OWN[0], from: Operand::Number(2) },
        Op::Move { to: Reg::OWN[1], from: Operand::Reg(Reg::FEW) },
        Op::Move { to: Reg::OWN[2], from: Operand::Reg(Reg::LANE) },
        Op::Move { to: Reg::SHARED[0], from: Operand::Number(5) },
        Op::Move { to: Reg::SHARED[1], from: Operand::Number(6) },
        Op::Move { to: Reg::ZERO, from: Operand::Number(0) },
    ];

    /// Whether lanes go from one block to another.
    pub(super) fn leads(&self, from: usize, to: usize) -> bool {
        self.0[from].way.targets().any(|target| target == to)
    }

    /// The blocks in front of one.
    pub(super) fn before(&self, block: usize) -> Vec<usize> {
        (0..self.0.len()).filter(|&from| self.leads(from, block)).collect()
    }

    /// The program, if it is one.
    pub(super) fn program(&self, machine: &Target) -> Option<Program> {
        let program = text::read(&self.text()).ok()?;
        validate(&program, machine, Form::of(&program)).is_ok().then_some(program)
    }

    /// A compute shader in Mesa's text.
    fn text(&self) -> String {
        let blocks = self.0.iter().enumerate().map(|(block, part)| {
            let mut lines = String::new();
            if block == 0 {
                let _ = writeln!(lines, "_meta:in {} (wrmask=0x3) // {{input=local_invocation_id}}", Reg::LANE);
                let _ = writeln!(lines, "and.b {}, {}, {}", Reg::FEW, Reg::LANE, Operand::Number(3));
                let _ = writeln!(lines, "not.b {}, {}", Reg::OUT[1], Reg::LANE);
                let _ = writeln!(lines, "shl.b {}, {}, {}", Reg::OUT[2], Reg::OUT[1], Operand::Number(8));
            }
            lines.extend(part.ops.iter().map(Op::text));
            match &part.way {
                Way::End => lines.push_str("end"),
                Way::To(_) => lines.push_str("jump"),
                Way::If { vote, a, b, .. } => {
                    let opcode = match vote {
                        Vote::Own => "br",
                        Vote::Any => "bany",
                        Vote::All => "ball",
                    };
                    let _ = write!(lines, "cmps.u.lt pp0.x, {a}, {b}\n{opcode} pp0.x");
                }
            }
            (lines, part.way.targets().map(|target| target + 1).collect())
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
            Op::Move { to: own, from: Operand::Number(1) },
            Op::Move { to: shared, from: Operand::Reg(own) },
            Op::Add { to: shared, a: shared, b: Operand::Number(2) },
            Op::Add { to: own, a: own, b: Operand::Reg(shared) },
            Op::First { to: shared, from: own },
            Op::Ballot { to: shared, from: own, number: 3 },
            Op::Kill { demote: true, a: own, number: 1 },
            Op::Kill { demote: false, a: own, number: 1 },
            Op::Store { at: Reg::LANE, value: own },
            Op::Load { to: own, at: Reg::FEW },
            Op::Count { to: own, at: Reg::FEW, value: own },
        ];
        for vote in [Vote::Own, Vote::Any, Vote::All] {
            let way = Way::If { vote, a: own, b: Operand::Number(2), yes: 2, no: 1 };
            let parts = [(ops.clone(), way), (Vec::new(), Way::To(2)), (Vec::new(), Way::End)];
            let sketch = Sketch(parts.map(|(ops, way)| Part { ops, way }).into());
            let program = text::read(&sketch.text()).unwrap();
            assert_eq!(validate(&program, &Target::default(), Form::of(&program)), Ok(()), "{}", sketch.text());
        }
    }
}
