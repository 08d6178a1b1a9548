//! The registers that accesses relative to `a0.x` reach in a run, resolved once `a0.x` is known.
//!
//! The operands in [`Steps`] are all registers that such an access may reach: in machine code, the whole file. Here an
//! instruction is resolved for each value of `a0.x`, with the accessed registers as direct operands.

use crate::machine::arrays::ArrayBases;
use crate::machine::steps::Steps;
use cranelift_entity::PrimaryMap;
use ir3_compiler::ir3::{InstrData, PhysReg, Place, SrcOperand};
use ir3_compiler::machine::{Code, CodeInstr, Interface};
use ir3_compiler::target::Target;
use rustc_hash::FxHashMap;

/// The instructions with relative accesses, resolved for each value of `a0.x` in the run.
#[derive(Debug, Default)]
pub struct Elements {
    known: FxHashMap<(usize, i16), Option<Steps>>,
}

/// Returns true if an instruction has relative accesses that are resolved by element. Those of repeated instructions
/// are not.
pub fn is_relative(data: &InstrData) -> bool {
    let is_relative = |place: &Place| matches!(place, Place::Relative { .. });
    let srcs = data.srcs.iter().filter_map(ir3_compiler::ir3::Src::place);
    data.repeat == 0 && data.dsts.iter().map(|dst| &dst.place).chain(srcs).any(is_relative)
}

impl Elements {
    /// The instruction at position `at`, with its relative operands resolved for one value of `a0.x`; `None` if one of
    /// them is outside of the register file.
    pub fn of(&mut self, at: usize, data: &InstrData, address: i16, target: &Target) -> Option<&Steps> {
        let make = || {
            let mut data = data.clone();
            let element = |place: &mut Place| {
                if let Place::Relative { offset, .. } = *place {
                    *place = Place::Reg(PhysReg(u16::try_from(i32::from(offset) + i32::from(address)).ok()?));
                }
                Some(())
            };
            data.dsts.iter_mut().try_for_each(|dst| element(&mut dst.place))?;
            for src in &mut data.srcs {
                if let SrcOperand::Place(place) = &mut src.operand {
                    element(place)?;
                }
            }
            let mut instrs = PrimaryMap::new();
            instrs.push(CodeInstr { data, target: None });
            Steps::new(&Code { instrs, interface: Interface::default() }, &ArrayBases::default(), target).ok()
        };
        self.known.entry((at, address)).or_insert_with(make).as_ref()
    }
}
