//! Completion of a piece of a program: inputs for values that nothing defines, and an end.

use super::super::operand::SsaName;
use super::{Reader, SrcName};
use crate::ir3::{
    Attrs, Block, BlockData, Dst, InputKind, InstrData, Opcode, Place, RegClass, SrcOperand, ValueData, WriteMask,
};

/// The attribute that the value with the serial number 0 is, if it is an input of a fragment.
const FIRST_INPUT: u16 = 2000;

impl Reader {
    /// The block in place of one that is not in a fragment.
    pub(super) fn exit(&mut self, number: u32) -> Option<Block> {
        let fragment = self.fragment.as_mut()?;
        if !fragment.blocks.contains(&number) {
            fragment.blocks.push(number);
        }
        Some(*self.exit.get_or_insert_with(|| self.program.blocks.push(BlockData::default())))
    }

    /// Defines the values that a fragment only reads.
    pub(super) fn add_inputs(&mut self) {
        let mut missing: Vec<(SsaName, RegClass, u16)> = Vec::new();
        for SrcName { instr, src, name, .. } in &self.src_names {
            let src = &self.program.instrs[*instr].srcs[*src as usize];
            let is_value = matches!(src.operand, SrcOperand::Place(Place::Value(_) | Place::Assigned(..)));
            if !is_value || self.by_serial.contains_key(&name.serial) {
                continue;
            }
            let components = src.mask.span() as u16;
            match missing.iter_mut().find(|(its, ..)| its.serial == name.serial) {
                Some((_, _, most)) => *most = components.max(*most),
                None => missing.push((*name, src.class, components)),
            }
        }
        let Some(&entry) = self.program.layout.first() else { return };
        for (position, (name, class, components)) in missing.into_iter().enumerate() {
            let base = FIRST_INPUT + (name.serial % 60_000) as u16;
            let mut data = InstrData::new(Opcode::Input);
            data.attrs = Attrs::Input(Some(InputKind::Attribute { base, component: 0 }));
            let instr = self.program.instrs.push(data);
            let mut data = ValueData { instr, dst: 0, class, components, array: None };
            data.components = components.max(1);
            let value = self.program.values.push(data);
            if name.name != 0 {
                self.program.value_names[value] = name.name;
            }
            let mask = WriteMask::first(u32::from(components.max(1)));
            self.program.instrs[instr].dsts.push(Dst::new(Place::Value(value), class, mask));
            self.program.serials[instr] = name.serial;
            self.by_serial.insert(name.serial, instr);
            self.program.blocks[entry].instrs.insert(position, instr);
            if let Some(fragment) = &mut self.fragment {
                fragment.inputs.push(format!("ssa_{}", name.serial));
            }
        }
    }

    /// Ends a fragment, and makes its edges consistent.
    pub(super) fn add_end(&mut self) {
        let program = &mut self.program;
        if let Some(exit) = self.exit {
            program.layout.push(exit);
        }
        let Some(&last) = program.layout.last() else { return };
        let open = program.layout.iter().copied().filter(|&block| {
            let data = &program.blocks[block];
            let ends = data.instrs.last().is_some_and(|&instr| program.instrs[instr].opcode.ends_program());
            !ends && data.successors().next().is_none()
        });
        let open: Vec<Block> = open.collect();
        for block in open {
            let end = program.instrs.push(InstrData::new(Opcode::End));
            program.instrs[end].attrs = Attrs::Outputs(Box::default());
            program.blocks[block].instrs.push(end);
            if let (Some(fragment), true) = (&mut self.fragment, block == last) {
                fragment.is_without_end = true;
            }
        }
        let edges: Vec<(Block, Block)> = program
            .layout
            .iter()
            .flat_map(|&block| program.blocks[block].successors().map(move |to| (block, to)))
            .collect();
        for block in program.layout.clone() {
            let data = &mut program.blocks[block];
            data.predecessors.retain(|from| edges.contains(&(*from, block)));
            for &(from, to) in &edges {
                if to == block && !data.predecessors.contains(&from) {
                    data.predecessors.push(from);
                }
            }
        }
    }
}
