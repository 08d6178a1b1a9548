//! The writer.

use super::comment::{Remarks, prints_sampler, prints_texture_number, write_instr_comment, write_program_comment};
use super::line::relative_arrays;
use super::mnemonic::{ROUNDS, prints_texture, write_mnemonic};
use super::operand::{immediate_bits, immediate_is_ambiguous, write_immediate, write_prefix, write_reg};
use crate::ir3::canonical::{Numbering, is_first_kill};
use crate::ir3::{
    AliasScope, ArrayAccess, Attrs, Block, Instr, InstrData, InstrFlags, Mods, Opcode, OperandFlags, PhysReg, Place,
    Program, RegClass, RegFile, RepeatLink, Src, SrcOperand, Value, WriteMask,
};
use cranelift_entity::SecondaryMap;
use std::fmt::Write;

/// Writes a program.
pub fn write(program: &Program) -> String {
    let mut writer = Writer {
        out: String::with_capacity(64 * program.instruction_count() + 256),
        numbers: Numbering::of(program),
        uses: SecondaryMap::new(),
        ssa_arrays: false,
        second: None,
        program,
    };
    writer.count_uses();
    write_program_comment(&mut writer.out, program);
    let mut position = 0;
    for &block in &program.layout {
        writer.block(block, &mut position);
    }
    writer.out
}

struct Writer<'a> {
    out: String,
    program: &'a Program,
    numbers: Numbering,
    /// The number of uses of each instruction's results.
    uses: SecondaryMap<Instr, u32>,
    /// True if array writes have names. Before all of SSA form is built, reads have none yet; but the array sources of
    /// phis, copies and tied sources exist for SSA form only, and so are undefined without a name.
    ssa_arrays: bool,
    /// The second successor of the block, if it has another first one.
    second: Option<Block>,
}

impl Writer<'_> {
    fn count_uses(&mut self) {
        for (_, instr) in self.program.iter_instrs() {
            let data = &self.program.instrs[instr];
            for value in data.srcs.iter().filter_map(Src::value) {
                if let Some(def) = self.program.values.get(value) {
                    self.uses[def.instr] += 1;
                }
            }
            let version = |place: &Place| matches!(place, Place::Array(access) if access.value.is_some());
            self.ssa_arrays |= data.dsts.iter().any(|dst| version(&dst.place));
        }
    }

    fn block(&mut self, block: Block, position: &mut u32) {
        let program = self.program;
        let data = &program.blocks[block];
        if data.reconvergence_point {
            self.out.push_str("(jp)");
        }
        let _ = writeln!(self.out, "block{} {{", self.numbers.block(block));
        self.second = data.successors[1].filter(|_| data.successors[0] != data.successors[1]);
        self.blocks("\tpred: ", &data.predecessors, "\n");
        self.blocks("\tphysical pred: ", &data.physical_predecessors, "\n");
        for &instr in &data.instrs {
            self.instr("\t", instr, *position);
            *position += 1;
        }
        self.out.push_str("\t/* keeps:\n");
        for &instr in &data.keeps {
            self.instr("\t\t", instr, 0);
        }
        self.out.push_str("\t */\n");
        let end = match (data.successors, data.divergent) {
            ([_, Some(_)], Some(true)) => " (div) */\n",
            ([_, Some(_)], Some(false)) => " (con) */\n",
            _ => " */\n",
        };
        let successors: Vec<Block> = data.successors().collect();
        self.blocks("\t/* succs: ", &successors, end);
        self.blocks("\t/* physical succs: ", &data.physical_successors, " */\n");
        self.out.push_str("}\n");
    }

    fn blocks(&mut self, start: &str, blocks: &[Block], end: &str) {
        let mut separator = start;
        for &block in blocks {
            let _ = write!(self.out, "{separator}block{}", self.numbers.block(block));
            separator = ", ";
        }
        if !blocks.is_empty() {
            self.out.push_str(end);
        }
    }

    fn instr(&mut self, indent: &str, instr: Instr, position: u32) {
        let data = &self.program.instrs[instr];
        let _ = write!(self.out, "{indent}{:04}:{position:04}:", self.numbers.serial(instr));
        if data.flags.contains(InstrFlags::UNUSED) {
            self.out.push_str("XXX: \t");
        } else {
            let _ = write!(self.out, "{:03}: \t", self.uses[instr]);
        }
        write_mnemonic(&mut self.out, data);
        let remarks = self.remarks(data);
        self.operands(data, &remarks);
        self.extras(data);
        write_instr_comment(&mut self.out, data, &remarks);
        self.out.push('\n');
    }

    fn remarks(&self, data: &InstrData) -> Remarks {
        let raw = data.srcs.iter().any(|src| match src.operand {
            SrcOperand::Immediate(bits) => immediate_is_ambiguous(data.opcode, bits, src.class.half),
            _ => false,
        });
        let places = || {
            let dsts = data.dsts.iter().map(|dst| Some(dst.place));
            dsts.chain(data.srcs.iter().map(|src| src.place().copied()))
        };
        let array = |place: &Option<Place>| matches!(place, Some(Place::Array(_)));
        if !places().any(|place| array(&place)) {
            return Remarks { raw, relative: None };
        }
        let address = data.srcs.iter().any(|src| src.class.file == RegFile::Address);
        let other = places().any(|place| matches!(place, Some(Place::Relative { .. })))
            || data.srcs.iter().any(|src| matches!(src.operand, SrcOperand::ConstRelative(_)));
        let by_rule = relative_arrays(address, other, places().map(|place| array(&place)));
        let actual = places().take(32).enumerate().fold(0, |mask, (i, place)| match place {
            Some(Place::Array(access)) => mask | u32::from(access.relative) << i,
            _ => mask,
        });
        Remarks { raw, relative: (actual != by_rule).then_some(actual) }
    }

    fn operands(&mut self, data: &InstrData, remarks: &Remarks) {
        let mut separator = " ";
        if let (true, Attrs::Texture(texture)) = (prints_texture(data.opcode), &data.attrs) {
            if let Some(ty) = texture.ty {
                let _ = write!(self.out, " ({})(", ty.name());
                let mask = data.dsts.first().map_or(WriteMask(0), |dst| dst.mask);
                self.out.extend((0..4).filter(|&i| mask.contains(i)).map(|i| ['x', 'y', 'z', 'w'][i as usize]));
                self.out.push(')');
                separator = "";
            }
        } else if let Attrs::Move { round, .. } = data.attrs
            && let Some((_, name)) = ROUNDS.iter().find(|(known, _)| *known == round)
        {
            let _ = write!(self.out, " {name}");
            separator = "";
        }
        if let Attrs::Alias { scope, register, .. } = data.attrs {
            let half = if data.srcs.iter().any(|src| src.class.half) { "h" } else { "" };
            self.out.push(' ');
            separator = ", ";
            if scope == AliasScope::RenderTarget {
                let component = ['x', 'y', 'z', 'w'][usize::from(register.component())];
                let _ = write!(self.out, "rt{}.{component}", register.register());
            } else {
                self.out.push('@');
                self.out.push_str(half);
                write_reg(&mut self.out, RegClass::FULL, register);
            }
        }
        for (i, dst) in data.dsts.iter().enumerate() {
            self.out.push_str(separator);
            separator = ", ";
            write_prefix(&mut self.out, data.opcode, Default::default(), dst.flags, dst.class);
            match (&dst.place, data.srcs.get(i).and_then(Src::place)) {
                // Mesa prints no number for the copy of an array.
                (Place::Array(copy), Some(Place::Array(copied)))
                    if data.opcode == Opcode::ParallelCopy && copy.array == copied.array =>
                {
                    self.array(copy, dst.class, 0);
                }
                (place, _) => self.place(place, dst.class, false),
            }
            self.mask(dst.mask);
        }
        for (i, src) in data.srcs.iter().enumerate() {
            self.out.push_str(separator);
            separator = ", ";
            let mut flags = src.flags - OperandFlags::FIRST_KILL;
            flags.set(OperandFlags::FIRST_KILL, is_first_kill(&data.srcs, i));
            if !src.mods.contains(Mods::NOT) && self.looks_inverted(data) {
                self.out.push_str("!!");
            }
            if src.flags.contains(OperandFlags::FIRST_ALIAS) {
                self.out.push_str("@{");
            }
            self.src(data.opcode, src, flags, remarks);
            if src.is_of_group() && data.srcs.get(i + 1).is_none_or(|next| !next.continues_group()) {
                self.out.push('}');
            }
            if let Attrs::Outputs(outputs) = &data.attrs
                && let Some(output) = outputs.get(i)
            {
                let _ = write!(self.out, " ({output})");
            }
        }
    }

    /// Returns true for a branch that a reader of Mesa's texts takes to be inverted, though that is not printed.
    fn looks_inverted(&self, data: &InstrData) -> bool {
        let is_vote = matches!(data.opcode, Opcode::Ball | Opcode::Bany);
        is_vote && matches!(data.attrs, Attrs::Branch { target: Some(target) } if Some(target) == self.second)
    }

    fn src(&mut self, opcode: Opcode, src: &Src, flags: OperandFlags, remarks: &Remarks) {
        write_prefix(&mut self.out, opcode, src.mods, flags, src.class);
        let _ = match src.operand {
            SrcOperand::Place(place) => {
                let for_ssa = opcode.is_meta() || src.flags.contains(OperandFlags::TIED);
                self.place(&place, src.class, self.ssa_arrays && for_ssa);
                Ok(())
            }
            SrcOperand::Const(word) => {
                let reg = PhysReg(word);
                write!(self.out, "c{}.{}", reg.register(), ['x', 'y', 'z', 'w'][usize::from(reg.component())])
            }
            SrcOperand::ConstRelative(offset) => write!(self.out, "c<a0.x + {offset}>"),
            SrcOperand::Immediate(bits) => {
                write_immediate(&mut self.out, immediate_bits(opcode, bits, src.class.half, remarks.raw));
                Ok(())
            }
            SrcOperand::Undef => {
                self.out.push_str("undef");
                Ok(())
            }
        };
        self.mask(src.mask);
    }

    fn mask(&mut self, mask: WriteMask) {
        if mask != WriteMask::SCALAR {
            let _ = write!(self.out, " (wrmask={:#x})", mask.0);
        }
    }

    fn place(&mut self, place: &Place, class: RegClass, undefined: bool) {
        match *place {
            Place::Value(value) => self.value(value),
            Place::Assigned(value, reg) => {
                self.value(value);
                self.parenthesised(class, reg);
            }
            Place::Reg(reg) => write_reg(&mut self.out, class, reg),
            Place::Array(ref access) => {
                if undefined && access.value.is_none() {
                    self.out.push_str("undef:");
                }
                self.array(access, class, self.numbers.array(access.array));
            }
            Place::Relative { offset, size } => {
                let _ = write!(self.out, "r<a0.x + {offset}> ({size})");
            }
        }
    }

    fn array(&mut self, access: &ArrayAccess, class: RegClass, id: u32) {
        if let Some(value) = access.value.expand() {
            self.value(value);
            self.out.push(':');
        }
        let length = self.program.arrays[access.array].length;
        let _ = write!(self.out, "arr[id={id}, offset={}, size={length}]", access.offset);
        if let Some(base) = access.base.expand() {
            self.parenthesised(class, base);
        }
    }

    fn value(&mut self, value: Value) {
        let serial = self.program.values.get(value).map_or(0, |data| self.numbers.serial(data.instr));
        let _ = write!(self.out, "ssa_{serial}");
        let name = self.numbers.name(value);
        if name != 0 {
            let _ = write!(self.out, ":{name}");
        }
    }

    fn parenthesised(&mut self, class: RegClass, reg: PhysReg) {
        self.out.push('(');
        write_reg(&mut self.out, class, reg);
        self.out.push(')');
    }

    /// Writes the text after the operands.
    fn extras(&mut self, data: &InstrData) {
        match &data.attrs {
            Attrs::Texture(texture) if data.opcode == Opcode::TexPrefetch => {
                let fields =
                    [("tex", texture.texture), ("samp", texture.sampler), ("input_offset", texture.input_offset)];
                for (name, number) in fields {
                    if let Some(number) = number {
                        let _ = write!(self.out, ", {name}={number}");
                    }
                }
            }
            Attrs::Texture(texture) => {
                if let (true, Some(sampler)) = (prints_sampler(data), texture.sampler) {
                    let _ = write!(self.out, ", s#{sampler}");
                }
                if let (true, Some(texture)) = (prints_texture_number(data), texture.texture) {
                    let _ = write!(self.out, ", t#{texture}");
                }
            }
            Attrs::Split { offset } => {
                let _ = write!(self.out, ", off={offset}");
            }
            Attrs::PushConsts { dst, src, size } => {
                let _ = write!(self.out, " dst_offset={dst}, src_offset = {src}, src_size = {size}");
            }
            Attrs::Memory(memory) if data.opcode == Opcode::SpillMacro => {
                let _ = write!(self.out, " dst_offset={}", memory.offset);
            }
            Attrs::Branch { target: Some(target) } => {
                let _ = write!(self.out, " target=block{}", self.numbers.block(*target));
            }
            _ => {}
        }
        let mut separator = ", false-deps:";
        for &dep in data.false_deps().iter().filter(|&&dep| self.numbers.is_numbered(dep)) {
            let _ = write!(self.out, "{separator}ssa_{}", self.numbers.serial(dep));
            separator = ", ";
        }
        match data.link() {
            RepeatLink::After(previous) if self.numbers.is_numbered(previous) => {
                let _ = write!(self.out, ", rpt: {}", self.numbers.serial(previous));
            }
            RepeatLink::First | RepeatLink::After(_) => self.out.push_str(", rpt: first"),
            RepeatLink::None => {}
        }
    }
}
