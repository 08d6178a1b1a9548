//! Blocks and edges of a flat program.
//!
//! A block starts at each target, at each `(jp)`, and after each terminator. Two branches of which one is taken
//! whenever the other is not are the end of one block, as legalization emits them; any other second branch is a block
//! of its own. Predication jumps nowhere: `predt` and `predf` lead to the arms, as in the compiler, and lanes of
//! an arm continue after `prede`.

use super::code::{Code, CodeError, CodeInstr, Ip, needs_target};
use crate::ir3::{Attrs, Block, BlockData, InstrData, InstrFlags, Mods, Opcode, Program, reconvergence};
use crate::maps::map_of;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, CodeError>;

impl Code {
    /// The program in blocks, with logical and physical edges. Nops after the last `end`, which fill the last line of
    /// the instruction cache, are left out.
    ///
    /// # Errors
    /// If control flow leaves the code, or a branch crosses predication.
    pub fn to_program(&self) -> Result<Program> {
        self.clone().into_program()
    }

    /// [`Code::to_program`], without a copy of the code.
    ///
    /// # Errors
    /// As there.
    pub fn into_program(self) -> Result<Program> {
        let mut builder = Builder {
            len: self.len_without_padding(),
            block_at: map_of(self.instrs.len()),
            arms: SecondaryMap::new(),
            program: self.header(),
            code: self,
        };
        builder.predication()?;
        builder.blocks()?;
        let mut program = builder.fill()?;
        reconvergence::infer_uniform(&mut program, has_mark);
        reconvergence::run(&mut program);
        for position in 0..program.layout.len() {
            let block = program.layout[position];
            program.blocks[block].reconvergence_point = has_mark(&program, block);
        }
        Ok(program)
    }

    /// The number of instructions up to the last that is no padding.
    fn len_without_padding(&self) -> usize {
        let is_padding = |instr: &CodeInstr| instr.data == InstrData::new(Opcode::Nop) && instr.target.is_none();
        let instrs = self.instrs.as_values_slice();
        let padding = instrs.iter().rev().take_while(|instr| is_padding(instr)).count();
        let kept = instrs.len() - padding;
        let ends = kept.checked_sub(1).is_some_and(|last| instrs[last].data.opcode.ends_program());
        let targeted = instrs.iter().filter_map(|instr| instr.target).any(|target| target.index() >= kept);
        if ends && !targeted { kept } else { instrs.len() }
    }

    fn header(&self) -> Program {
        let interface = &self.interface;
        Program {
            stage: interface.stage,
            workgroup_size: interface.workgroup_size,
            shared_size: interface.shared_size,
            scratch_size: interface.scratch_size,
            outputs: interface.outputs_at.clone(),
            consts: interface.consts.clone(),
            instrs: PrimaryMap::with_capacity(interface.inputs.len() + interface.prefetches.len() + self.instrs.len()),
            ..Program::default()
        }
    }
}

/// The successors of an instruction of predication.
#[derive(Clone, Copy, Default)]
struct Arms {
    first: PackedOption<Ip>,
    second: PackedOption<Ip>,
}

struct Builder {
    code: Code,
    len: usize,
    /// The block that starts at an instruction.
    block_at: SecondaryMap<Ip, PackedOption<Block>>,
    arms: SecondaryMap<Ip, Arms>,
    program: Program,
}

impl Builder {
    fn instr(&self, ip: Ip) -> &CodeInstr {
        &self.code.instrs[ip]
    }

    fn ips(&self) -> impl Iterator<Item = Ip> + use<> {
        (0..self.len).map(Ip::new)
    }

    /// Finds the arms of each predication.
    fn predication(&mut self) -> Result<()> {
        let targets: SmallVec<[Ip; 32]> = self.code.instrs.values().filter_map(|instr| instr.target).collect();
        let mut ips = self.ips();
        while let Some(open) = ips.by_ref().find(|&ip| self.instr(ip).data.opcode.is_predication()) {
            let fail = |ip: Ip, what: &str| Err(CodeError::new(ip, what));
            let (mut switch, mut close) = (None, None);
            for ip in ips.by_ref() {
                let instr = self.instr(ip);
                let opcode = instr.data.opcode;
                if opcode == Opcode::Prede {
                    close = Some(ip);
                    break;
                }
                if opcode.is_predication() {
                    if switch.is_some() || opcode == self.instr(open).data.opcode {
                        return fail(ip, "a third arm of a predication");
                    }
                    switch = Some(ip);
                } else if instr.target.is_some() || opcode.is_terminator() {
                    return fail(ip, "a branch under predication");
                }
            }
            let Some(close) = close else { return fail(open, "predication that no prede ends") };
            if let Some(&target) = targets.iter().find(|&&target| target > open && target <= close) {
                return fail(target, "a branch leads here, under predication");
            }
            let next = |ip: Ip| Ip::new(ip.index() + 1);
            let join = next(close);
            self.arms[open] = Arms { first: next(open).into(), second: switch.map_or(join, next).into() };
            if let Some(switch) = switch {
                self.arms[switch] = Arms { first: join.into(), second: None.into() };
            }
        }
        Ok(())
    }

    /// Creates the blocks.
    fn blocks(&mut self) -> Result<()> {
        let mut starts = vec![false; self.len + 1];
        starts[0] = true;
        for ip in self.ips() {
            let instr = self.instr(ip);
            let opcode = instr.data.opcode;
            if let Some(target) = instr.target {
                let Some(start) = starts[..self.len].get_mut(target.index()) else {
                    return Err(CodeError::new(ip, format!("a branch to {target}, and the code ends before it")));
                };
                *start = true;
            } else if needs_target(opcode) {
                return Err(CodeError::new(ip, format!("`{opcode}` without a target")));
            }
            if instr.data.flags.contains(InstrFlags::JP) {
                starts[ip.index()] = true;
            }
            if opcode.is_terminator() || opcode == Opcode::Prede {
                starts[ip.index() + 1] = true;
            }
        }
        // If a pair of branches ends a block, the second starts none, unless another branch leads there.
        let targeted: SmallVec<[Ip; 32]> = self.code.instrs.values().filter_map(|instr| instr.target).collect();
        let is_choice = |ip: &Ip| self.instr(*ip).data.opcode.inverse_branch().is_some();
        for ip in self.ips().skip(1).filter(is_choice) {
            let jp = self.instr(ip).data.flags.contains(InstrFlags::JP);
            // The branch before it may be the second of a pair itself.
            let is_free = || ip.index() < 2 || starts[ip.index() - 1] || !self.second_of_pair(Ip::new(ip.index() - 1));
            if self.second_of_pair(ip) && !jp && is_free() && !targeted.contains(&ip) {
                starts[ip.index()] = false;
            }
        }
        // No branch leads to the entry, where the inputs are: a loop that starts with the code gets a block before it.
        if targeted.iter().any(|target| target.index() == 0) {
            let entry = self.program.blocks.push(BlockData::default());
            self.program.layout.push(entry);
        }
        for ip in self.ips().filter(|ip| starts[ip.index()]) {
            let rest = &starts[ip.index() + 1..];
            let count = 1 + rest.iter().position(|&is_start| is_start).unwrap_or(rest.len());
            let interface = &self.code.interface;
            let before = if ip.index() == 0 { interface.inputs.len() + interface.prefetches.len() } else { 0 };
            let instrs = Vec::with_capacity(before + count);
            let block = self.program.blocks.push(BlockData { instrs, ..BlockData::default() });
            self.program.layout.push(block);
            self.block_at[ip] = block.into();
        }
        if self.program.layout.is_empty() {
            return Err(CodeError::new("the code", "it has no instruction"));
        }
        Ok(())
    }

    /// Returns true if the branch at `ip` is taken whenever the one before it is not.
    fn second_of_pair(&self, ip: Ip) -> bool {
        let Some(before) = ip.index().checked_sub(1).map(Ip::new) else { return false };
        let (first, second) = (&self.instr(before).data, &self.instr(ip).data);
        let inverted = |(a, b): (&crate::ir3::Src, &crate::ir3::Src)| {
            a.operand == b.operand && a.class == b.class && a.mods ^ b.mods == Mods::NOT
        };
        first.opcode.inverse_branch() == Some(second.opcode)
            && first.srcs.len() == second.srcs.len()
            && first.srcs.iter().zip(&second.srcs).all(inverted)
    }

    fn fill(mut self) -> Result<Program> {
        let mut block = self.program.layout[0];
        for input in std::mem::take(&mut self.code.interface.inputs) {
            let mut data = InstrData::new(Opcode::Input);
            data.dsts.push(input.dst);
            data.attrs = Attrs::Input(input.input);
            self.push(block, data);
        }
        for prefetch in std::mem::take(&mut self.code.interface.prefetches) {
            self.push(block, prefetch);
        }
        if let Some(first) = self.block_at[Ip::new(0)].expand().filter(|&first| first != block) {
            self.program.add_edge(block, 0, first);
        }
        let entry = block;
        for ip in self.ips() {
            block = self.block_at[ip].expand().unwrap_or(block);
            let next = Ip::new(ip.index() + 1);
            if next.index() == self.len || self.block_at[next].is_some() {
                self.edges(block, ip)?;
            }
        }
        block = entry;
        let instrs = std::mem::take(&mut self.code.instrs);
        for (ip, CodeInstr { mut data, target }) in instrs.into_iter().take(self.len) {
            block = self.block_at[ip].expand().unwrap_or(block);
            if let Some(target) = target {
                data.attrs = Attrs::Branch { target: self.block_at[target].expand() };
            }
            if data.opcode.ends_program() && data.opcode != Opcode::Ret {
                let outputs = &self.code.interface.outputs;
                data.srcs = outputs.iter().map(|output| output.src).collect();
                data.attrs = Attrs::Outputs(outputs.iter().filter_map(|output| output.index).collect());
            }
            self.push(block, data);
        }
        Ok(self.program)
    }

    fn push(&mut self, block: Block, data: InstrData) {
        let instr = self.program.instrs.push(data);
        self.program.blocks[block].instrs.push(instr);
    }

    /// The edges of a block by its last instruction.
    fn edges(&mut self, block: Block, last: Ip) -> Result<()> {
        let instr = self.instr(last);
        let next = Ip::new(last.index() + 1);
        let successors: SmallVec<[Ip; 2]> = match (instr.data.opcode, instr.target) {
            (opcode, _) if opcode.ends_program() => SmallVec::new(),
            (opcode, _) if opcode.is_predication() => {
                let arms = self.arms[last];
                [arms.first, arms.second].into_iter().filter_map(PackedOption::expand).collect()
            }
            (Opcode::Jump, Some(target)) => [target].into_iter().collect(),
            // One lane, or the preamble's wave, continues; the others branch.
            (Opcode::Getone | Opcode::Getlast | Opcode::Shps, Some(target)) => [next, target].into_iter().collect(),
            (Opcode::Call, _) => return Err(CodeError::new(last, "a subroutine")),
            (_, Some(target)) if self.block_at[last].is_none() && self.second_of_pair(last) => {
                let first = self.instr(Ip::new(last.index() - 1)).target.unwrap_or(next);
                [target, first].into_iter().collect()
            }
            (_, Some(target)) => [target, next].into_iter().collect(),
            (_, None) => [next].into_iter().collect(),
        };
        for (slot, ip) in successors.into_iter().enumerate() {
            let Some(to) = self.block_at[ip].expand().filter(|_| ip.index() < self.len) else {
                return Err(CodeError::new(last, "it falls through the end of the code"));
            };
            self.program.add_edge(block, slot, to);
        }
        Ok(())
    }
}

/// Returns true if the first instruction of a block has `(jp)`.
fn has_mark(program: &Program, block: Block) -> bool {
    let instrs = program.blocks[block].instrs.iter().map(|&instr| &program.instrs[instr]);
    instrs.filter(|data| !data.opcode.is_meta()).take(1).any(|data| data.flags.contains(InstrFlags::JP))
}
