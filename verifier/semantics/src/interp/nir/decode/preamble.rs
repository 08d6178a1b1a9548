//! The preamble: code that the driver runs in one wave of a draw. The other waves continue after it as soon as it has
//! reached `preamble_end_ir3`, and read the words of the constant file that it has stored.

use super::{DecodeResult, Decoder};
use ir3_compiler::nir::{CfNode, Def, If, InstrData, IntrinsicOp};

impl Decoder<'_> {
    /// Enters an `if` whose condition is `preamble_start_ir3`.
    ///
    /// # Errors
    /// If the preamble does not terminate, or stores words of the constant file after its end.
    pub(super) fn enter_preamble(&mut self, node: &If) -> DecodeResult<()> {
        self.has_preamble = true;
        match self.ends_preamble(&node.then, false)? {
            true => Ok(()),
            false => Err("a preamble without `preamble_end_ir3`".to_owned()),
        }
    }

    /// Returns true if the preamble has ended after `list`, which every wave that runs the preamble reaches.
    fn ends_preamble(&self, list: &[CfNode], mut ended: bool) -> DecodeResult<bool> {
        use IntrinsicOp::{Elect, ElectAnyIr3};
        for node in list {
            match node {
                CfNode::Block(block) => {
                    for &instr in &self.function.blocks[*block].instrs {
                        let InstrData::Intrinsic(intrinsic) = &self.function.instrs[instr] else { continue };
                        match intrinsic.op {
                            IntrinsicOp::PreambleEndIr3 if ended => return Err("a preamble with two ends".to_owned()),
                            IntrinsicOp::PreambleEndIr3 => ended = true,
                            IntrinsicOp::StoreConstIr3
                            | IntrinsicOp::CopyUboToUniformIr3
                            | IntrinsicOp::CopyPushConstToUniformIr3
                                if ended =>
                            {
                                return Err("a store to the constant file after the end of the preamble".to_owned());
                            }
                            _ => {}
                        }
                    }
                }
                // One lane of the wave is elected.
                CfNode::If(node) if self.is(node.condition, &[Elect, ElectAnyIr3]) => {
                    ended = self.ends_preamble(&node.then, ended)?;
                    self.has_no_end(&node.otherwise, ended)?;
                }
                CfNode::If(node) => {
                    self.has_no_end(&node.then, ended)?;
                    self.has_no_end(&node.otherwise, ended)?;
                }
                CfNode::Loop(node) => {
                    self.has_no_end(&node.body, ended)?;
                    self.has_no_end(node.continuing.as_deref().unwrap_or_default(), ended)?;
                }
            }
        }
        Ok(ended)
    }

    /// Checks code of the preamble that some of the waves that run it do not reach.
    fn has_no_end(&self, list: &[CfNode], ended: bool) -> DecodeResult<()> {
        match self.ends_preamble(list, ended)? == ended {
            true => Ok(()),
            false => Err("a preamble that ends in a branch or loop".to_owned()),
        }
    }

    /// Returns true if a value is the result of one of some intrinsics.
    pub(super) fn is(&self, def: Def, ops: &[IntrinsicOp]) -> bool {
        let instr = &self.function.instrs[self.function.defs[def].instr];
        matches!(instr, InstrData::Intrinsic(intrinsic) if ops.contains(&intrinsic.op))
    }
}
