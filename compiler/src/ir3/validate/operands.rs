//! Checks each operand in isolation.

use super::{Checker, Form, Operand, Rule};
use crate::ir3::legality::{CONST_WORDS, encodable_source, valid_immediate};
use crate::ir3::text::{write_immediate, write_prefix, write_reg};
use crate::ir3::{
    ArrayAccess, Dst, InstrData, InstrFlags, Mods, Opcode, OperandFlags, PhysReg, Place, RegClass, RegFile, Src,
    SrcOperand, WriteMask,
};

/// A class in words.
pub(super) fn class_name(class: RegClass) -> String {
    let half = if class.half && class.file != RegFile::Address { "half " } else { "" };
    let file = match class.file {
        RegFile::General => "general",
        RegFile::Shared => "shared",
        RegFile::Predicate => "predicate",
        RegFile::Address => "address",
    };
    format!("a {half}{file} register")
}

/// A source as it is in the text, without flags.
fn source_name(opcode: Opcode, src: &Src) -> String {
    let mut out = String::new();
    write_prefix(&mut out, opcode, src.mods, OperandFlags::empty(), src.class);
    match &src.operand {
        SrcOperand::Place(Place::Value(value) | Place::Assigned(value, _)) => out += &value.to_string(),
        SrcOperand::Place(Place::Reg(reg)) => write_reg(&mut out, src.class, *reg),
        SrcOperand::Place(Place::Array(access)) => out += &access.array.to_string(),
        SrcOperand::Place(Place::Relative { offset, .. }) => out += &format!("r<a0.x + {offset}>"),
        SrcOperand::Const(word) => out += &format!("c{}.{}", word / 4, ['x', 'y', 'z', 'w'][usize::from(word % 4)]),
        SrcOperand::ConstRelative(offset) => out += &format!("c<a0.x + {offset}>"),
        SrcOperand::Immediate(bits) => write_immediate(&mut out, *bits),
        SrcOperand::Undef => out += "undef",
    }
    out
}

/// Modifiers in words.
fn mods_name(mods: Mods) -> String {
    let names = [(Mods::NEG, "(neg)"), (Mods::ABS, "(abs)"), (Mods::NOT, "(not)")];
    let names: Vec<&str> = names.into_iter().filter(|(one, _)| mods.contains(*one)).map(|(_, name)| name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" and ") }
}

impl Checker<'_> {
    pub(super) fn dst(&mut self, i: usize, dst: &Dst) {
        self.place.operand = Some(Operand::Dst(i));
        self.class(dst.class);
        self.place_in_file(&dst.place, dst.class, dst.mask);
        self.require(dst.mask.0 != 0, Rule::Components, || "a component to write".into(), || "none".into());
        if let Some(value) = dst.place.value() {
            let program = self.program;
            let recorded = program.values.get(value).is_some_and(|data| {
                Some(data.instr) == self.place.instr
                    && usize::from(data.dst) == i
                    && data.class == dst.class
                    && u32::from(data.components) == dst.mask.span()
            });
            self.require(
                recorded,
                Rule::ValueRecord,
                || format!("{value} recorded as this destination"),
                || match program.values.get(value) {
                    Some(data) => format!(
                        "{} of destination {} of {}, {} components",
                        class_name(data.class),
                        data.dst,
                        data.instr,
                        data.components
                    ),
                    None => "no such value".into(),
                },
            );
        }
    }

    pub(super) fn src(&mut self, instr: &InstrData, i: usize, src: &Src) {
        self.place.operand = Some(Operand::Src(i));
        self.class(src.class);
        match &src.operand {
            SrcOperand::Place(place) => {
                self.place_in_file(place, src.class, src.mask);
                self.value_of(place, src);
            }
            SrcOperand::Const(word) => {
                let end = u32::from(*word) + src.mask.span();
                self.require(
                    end <= u32::from(CONST_WORDS),
                    Rule::ConstFile,
                    || format!("one of {CONST_WORDS} words"),
                    || format!("word {word}"),
                );
            }
            SrcOperand::ConstRelative(offset) => self.relative_offset(*offset),
            SrcOperand::Immediate(bits) => {
                self.require(
                    src.is_of_group()
                        || instr.opcode == Opcode::Alias
                        || valid_immediate(instr.opcode, *bits, src.class.half),
                    Rule::Immediate,
                    || format!("an immediate that {} can encode", instr.opcode),
                    || format!("{bits:#x}"),
                );
            }
            SrcOperand::Undef => {}
        }
        let target = self.target;
        // A tied source is encoded as the destination. An operand that must become an immediate may still be a value.
        let exempt = src.flags.contains(OperandFlags::TIED)
            || self.form == Form::Ssa
                && instr.flags.contains(InstrFlags::VECTOR)
                && matches!(src.operand, SrcOperand::Place(Place::Value(_)));
        self.require(
            exempt || encodable_source(target, instr, i, src),
            Rule::Encoding,
            || format!("a source that {} can encode beside its others", instr.opcode),
            || source_name(instr.opcode, src),
        );
        let allowed = instr.opcode.source_mods(i);
        self.require(
            allowed.contains(src.mods),
            Rule::Modifiers,
            || {
                if allowed.is_empty() {
                    "no modifiers".into()
                } else {
                    format!("no modifiers but {}", mods_name(allowed))
                }
            },
            || mods_name(src.mods),
        );
    }

    fn class(&mut self, class: RegClass) {
        let sound = match class.file {
            RegFile::General => true,
            RegFile::Shared => self.target.has_shared_regfile,
            RegFile::Predicate => !class.half,
            RegFile::Address => class.half,
        };
        let target = self.target;
        self.require(sound, Rule::File, || format!("a class of {target}"), || class_name(class));
    }

    /// Checks a use against the value's definition.
    fn value_of(&mut self, place: &Place, src: &Src) {
        let Some(value) = place.value() else { return };
        let Some(data) = self.program.values.get(value) else { return };
        self.require(
            data.class == src.class,
            Rule::ValueClass,
            || format!("{}, as {value} is defined", class_name(data.class)),
            || class_name(src.class),
        );
        self.require(
            src.mask.span() <= u32::from(data.components),
            Rule::Components,
            || format!("{} components at most", data.components),
            || format!("{:#x}", src.mask.0),
        );
        let array = match place {
            Place::Array(access) => Some(access.array),
            _ => None,
        };
        // Phis and copies move whole arrays, and Mesa does not always number them.
        let copies = self.place.instr.is_some_and(|instr| self.program.instrs[instr].opcode.is_meta());
        self.require(
            data.array == array || copies && data.array.is_some() && array.is_some(),
            Rule::Array,
            || match data.array {
                Some(array) => format!("an access to {array}"),
                None => "no array".into(),
            },
            || match array {
                Some(array) => format!("an access to {array}"),
                None => "no array".into(),
            },
        );
    }

    fn place_in_file(&mut self, place: &Place, class: RegClass, mask: WriteMask) {
        match place {
            Place::Value(_) => {
                self.require(
                    self.form == Form::Ssa,
                    Rule::Form,
                    || format!("a physical register in {}", Form::Registers),
                    || "an SSA value".into(),
                );
            }
            Place::Assigned(_, reg) => self.register(*reg, class, mask.span()),
            Place::Reg(reg) => {
                // Shared registers and predicates are allocated before the others.
                self.require(
                    self.form != Form::Ssa || class.file != RegFile::General,
                    Rule::Form,
                    || format!("an SSA value in {}", Form::Ssa),
                    || format!("{reg}"),
                );
                self.register(*reg, class, mask.span());
            }
            Place::Array(access) => self.array(access, class),
            Place::Relative { offset, size } => {
                self.relative_offset(*offset);
                self.require(self.form != Form::Ssa, Rule::Form, || "an array".into(), || "a relative register".into());
                // The size is the array's, and the offset may be anywhere in it.
                self.require(
                    *offset < 48 * 4 && *size <= 48 * 4,
                    Rule::RegisterFile,
                    || "an array in the general registers".into(),
                    || format!("{size} elements about {offset}"),
                );
            }
        }
    }

    /// Ten bits, signed.
    fn relative_offset(&mut self, offset: i16) {
        self.require(
            (-512..512).contains(&offset),
            Rule::Immediate,
            || "an offset from -512 to 511".into(),
            || format!("{offset}"),
        );
    }

    /// `count` registers of a class, from `reg` on.
    fn register(&mut self, reg: PhysReg, class: RegClass, count: u32) {
        let (first, end) = match class.file {
            // As a destination `r63.x` is discarded; phis and copies have it for undefined values.
            // And so has an output all of whose components are aliases.
            _ if reg == PhysReg::INVALID && count == 0 => return,
            RegFile::General | RegFile::Shared if reg == PhysReg::INVALID && self.may_be_no_register() => return,
            RegFile::General => (0, 48 * 4),
            RegFile::Shared => (48 * 4, 56 * 4),
            RegFile::Predicate => (PhysReg::P0_X.0, PhysReg::P0_X.0 + self.target.num_predicates as u16),
            RegFile::Address => (PhysReg::A0_X.0, PhysReg::A0_X.0 + 2),
        };
        let inside = reg.0 >= first && u32::from(reg.0) + count <= u32::from(end);
        self.require(
            inside,
            Rule::RegisterFile,
            || format!("{} from {} to {}", class_name(class), PhysReg(first), PhysReg(end - 1)),
            || if count > 1 { format!("{count} from {reg} on") } else { format!("{reg}") },
        );
    }

    fn may_be_no_register(&self) -> bool {
        match self.place.operand {
            Some(Operand::Src(_)) => self.place.instr.is_some_and(|instr| self.program.instrs[instr].opcode.is_meta()),
            _ => true,
        }
    }

    fn array(&mut self, access: &ArrayAccess, class: RegClass) {
        let Some(data) = self.program.arrays.get(access.array) else {
            self.violation(Rule::Array, "an array of the program", format!("{}", access.array));
            return;
        };
        let whole = self.place.instr.is_some_and(|instr| self.program.instrs[instr].opcode.is_meta());
        self.require(
            data.class == class,
            Rule::ValueClass,
            || format!("{}, as the array has", class_name(data.class)),
            || class_name(class),
        );
        self.require(
            access.relative || whole || (0..i32::from(data.length)).contains(&i32::from(access.offset)),
            Rule::Array,
            || format!("an element below {}", data.length),
            || format!("element {}", access.offset),
        );
        if let Some(base) = access.base.expand() {
            self.register(base, class, u32::from(data.length));
        }
    }

    /// Tied operands come in pairs: the n-th destination with the n-th source.
    pub(super) fn tied(&mut self, instr: &InstrData) {
        let tied = |flags: OperandFlags| flags.contains(OperandFlags::TIED);
        let dsts: usize = instr.dsts.iter().filter(|dst| tied(dst.flags)).count();
        let srcs: usize = instr.srcs.iter().filter(|src| tied(src.flags)).count();
        self.place.operand = None;
        if !self.require(
            dsts == srcs,
            Rule::Tied,
            || format!("as many tied sources as destinations, {dsts}"),
            || format!("{srcs}"),
        ) {
            return;
        }
        let dsts = instr.dsts.iter().filter(|dst| tied(dst.flags));
        let srcs = instr.srcs.iter().enumerate().filter(|(_, src)| tied(src.flags));
        for (dst, (i, src)) in dsts.zip(srcs) {
            self.place.operand = Some(Operand::Src(i));
            self.require(
                src.class == dst.class && src.mask == dst.mask,
                Rule::Tied,
                || format!("{}, components {:#x}, as the tied destination has", class_name(dst.class), dst.mask.0),
                || format!("{}, components {:#x}", class_name(src.class), src.mask.0),
            );
            let place = src.place();
            let same = match (&dst.place, place) {
                (Place::Array(dst), Some(Place::Array(src))) => (dst.array, dst.base) == (src.array, src.base),
                (Place::Reg(dst), Some(Place::Reg(src))) => dst == src,
                (Place::Relative { .. }, Some(src)) => dst.place == *src,
                (Place::Value(_) | Place::Assigned(..), Some(Place::Value(_) | Place::Assigned(..))) => true,
                (Place::Value(_), None) => matches!(src.operand, SrcOperand::Undef),
                _ => false,
            };
            self.require(
                same,
                Rule::Tied,
                || "the place of the tied destination".into(),
                || source_name(instr.opcode, src),
            );
        }
    }
}
