//! Terminators and the moves on edges.

use super::{Decoder, Moves, Result};
use crate::interp::OutputSlot;
use crate::interp::ir3::op::{Condition, DecodedEdge, Terminator};
use crate::interp::ir3::storage::{Modifier, Read};
use ir3_compiler::ir3::{Attrs, Block, Instr, InstrData, Mods, Opcode};

/// The block to which a branch that names one jumps, whichever successor that is; predication does not jump.
const fn jumps_to(data: &InstrData) -> Option<Block> {
    match data.attrs {
        Attrs::Branch { target } if !matches!(data.opcode, Opcode::Predt | Opcode::Predf) => target,
        _ => None,
    }
}

/// The successors of a branch: where its condition holds, then the other one. Where one lane is chosen, and for the
/// first wave of a preamble, it is the others that jump.
pub(super) fn sides(data: &InstrData, [first, second]: [Block; 2]) -> [Block; 2] {
    let others_jump = matches!(data.opcode, Opcode::Getone | Opcode::Getlast | Opcode::Shps);
    match jumps_to(data) {
        Some(target) if (target == first) == others_jump => [second, first],
        _ => [first, second],
    }
}

impl Decoder<'_> {
    /// The terminator of `block`; without one the block falls through to its successor.
    pub(super) fn terminator(&mut self, block: Block, instr: Option<Instr>) -> Result<Terminator> {
        use Opcode::*;
        let Some(instr) = instr else {
            return match self.program.blocks[block].successors {
                [Some(to), None] => Ok(Terminator::Jump(self.edge(block, to, 0)?)),
                [None, None] => Ok(Terminator::End(0, 0)),
                _ => Err("two successors and no branch".to_owned()),
            };
        };
        let data = &self.program.instrs[instr];
        let successors = self.program.blocks[block].successors;
        let condition = match data.opcode {
            End | Chmask => return self.end(data),
            // The second of a pair of predications: the active lanes continue after the other side, if the predicate
            // still is the one by which they became active. Otherwise they would run the other side too.
            Predt | Predf if successors[1].is_none() => {
                let Some(to) = successors[0] else { return Err("no successor".to_owned()) };
                self.site(data);
                let read = self.source(data, 0, 0)?;
                let condition = Condition::Is(if data.opcode == Predf { read } else { inverted(read) });
                return Ok(Terminator::Skip(condition, self.edge(block, to, 0)?, instr));
            }
            Jump => None,
            Br | Predt => Some(Condition::Is(self.source(data, 0, 0)?)),
            Predf => Some(Condition::Is(inverted(self.source(data, 0, 0)?))),
            Braa => Some(Condition::And(self.source(data, 0, 0)?, self.source(data, 1, 0)?)),
            Brao => Some(Condition::Or(self.source(data, 0, 0)?, self.source(data, 1, 0)?)),
            Bany => Some(Condition::Any(self.source(data, 0, 0)?)),
            Ball => Some(Condition::All(self.source(data, 0, 0)?)),
            Getone => Some(Condition::First),
            Getlast => Some(Condition::Last),
            Shps => Some(Condition::RunsPreamble),
            _ => return Err("not executed by this interpreter".to_owned()),
        };
        if let Some(target) = jumps_to(data)
            && !successors.contains(&Some(target))
        {
            return Err("it leads to a block that is not listed among the successors".to_owned());
        }
        match (condition, successors) {
            (None, [Some(to), None]) => Ok(Terminator::Jump(self.edge(block, to, 0)?)),
            (Some(condition), [Some(first), Some(second)]) => {
                self.site(data);
                let mut edges = [self.edge(block, first, 0)?, self.edge(block, second, 1)?];
                let sides = sides(data, [first, second]);
                if sides != [first, second] {
                    edges.reverse();
                }
                if data.opcode == Shps {
                    self.enter_preamble(sides[0], sides[1])?;
                }
                let [yes, no] = edges;
                Ok(Terminator::Branch(condition, yes, no, instr))
            }
            _ => Err("successors that do not go with the terminator".to_owned()),
        }
    }

    /// Returns true if `second` takes all lanes that `first` leaves to the other successor.
    pub(super) fn completes(&self, block: Block, first: Instr, second: Instr) -> bool {
        let [first, second] = [first, second].map(|instr| &self.program.instrs[instr]);
        let target = |data: &InstrData| match data.attrs {
            Attrs::Branch { target } => target,
            _ => None,
        };
        let (Some(one), Some(other)) = (target(first), target(second)) else { return false };
        let [Some(a), Some(b)] = self.program.blocks[block].successors else { return false };
        let inverse = |data: &InstrData| match data.opcode {
            Opcode::Br => Some(Opcode::Br),
            Opcode::Braa => Some(Opcode::Brao),
            Opcode::Brao => Some(Opcode::Braa),
            Opcode::Bany => Some(Opcode::Ball),
            Opcode::Ball => Some(Opcode::Bany),
            _ => None,
        };
        let opposite = inverse(first) == Some(second.opcode)
            && first.srcs.len() == second.srcs.len()
            && first.srcs.iter().zip(&second.srcs).all(|(a, b)| a.operand == b.operand && a.mods ^ b.mods == Mods::NOT);
        ([one, other] == [a, b] || [other, one] == [a, b]) && (second.opcode == Opcode::Jump || opposite)
    }

    fn end(&mut self, data: &InstrData) -> Result<Terminator> {
        let start = self.out.outputs.len() as u32;
        if let Attrs::Outputs(outputs) = &data.attrs {
            if outputs.len() != data.srcs.len() {
                return Err(format!("{} sources for {} outputs", data.srcs.len(), outputs.len()));
            }
            for (i, &output) in outputs.iter().enumerate() {
                let Some(&output) = self.program.outputs.get(usize::from(output)) else {
                    return Err(format!("no output {output}"));
                };
                for k in data.srcs[i].mask.components() {
                    let read = self.source(data, i, k)?;
                    self.out.outputs.push((output, k, read));
                    let (base, component) = (output.base, output.component + k as u8);
                    self.out.declared.push(OutputSlot { base, component, half: data.srcs[i].class.half });
                }
            }
        } else if !data.srcs.is_empty() {
            return Err("which outputs its sources are is not known".to_owned());
        }
        Ok(Terminator::End(start, self.out.outputs.len() as u32))
    }

    /// The edge from `from` to its successor number `slot`.
    fn edge(&mut self, from: Block, to: Block, slot: usize) -> Result<DecodedEdge> {
        let target = &self.program.blocks[to];
        let position = self.position[to];
        if position == u32::MAX {
            return Err("a successor that is not in the layout".to_owned());
        }
        let mut pairs = Moves::new();
        let both = self.program.blocks[from].successors == [Some(to), Some(to)];
        let mut indices = target.predecessors.iter().enumerate().filter(|&(_, &p)| p == from).map(|(i, _)| i);
        let first = indices.next();
        let index = if both && slot == 1 { indices.next().or(first) } else { first };
        for &instr in &target.instrs {
            let data = &self.program.instrs[instr];
            if data.opcode != Opcode::Phi {
                break;
            }
            self.instr = instr;
            let src = index.and_then(|i| data.srcs.get(i)).ok_or("no source for a predecessor")?;
            let dst = self.dst(data, 0)?;
            self.whole_copy(dst, src, &mut pairs)?;
        }
        Ok(DecodedEdge { to: position, copies: self.copies(pairs) })
    }
}

/// The negation of a predicate.
fn inverted(read: Read) -> Read {
    let modifier = match read.modifier {
        Modifier::None => Modifier::Invert,
        _ => Modifier::None,
    };
    Read { modifier, ..read }
}
