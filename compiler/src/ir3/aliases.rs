//! Aliases (a7xx): operands of texture instructions, and outputs, that need no registers.
//!
//! A vector operand of a texture instruction may be a *group*: its components are sources of their own, in any
//! register, in the constant file, or immediates. Each component has [`OperandFlags::ALIAS`], the first one also
//! [`OperandFlags::FIRST_ALIAS`]; the text is `@{r1.x, c2.y, r4.w}`. Final code has `alias.tex` before the instruction
//! for each component whose register is not the next one: while the instruction reads its operands, the alias's
//! register has the value that the alias names. `alias.rt` makes a component of a color output a constant or an
//! immediate.
//!
//! [`fold`] turns both into the forms that all passes and engines read: groups, and sources of `end`.

use super::{
    Attrs, Category, InstrData, Opcode, OperandFlags, Output, PhysReg, Place, Program, RegClass, RegFile, Src,
    SrcOperand, WriteMask,
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The most components of all groups of an instruction: entries of the table.
pub const MAX_ALIASES: usize = 16;

/// The first register of groups that are shown as vectors, as Mesa names them.
const FIRST: u16 = 40 << 2;

impl Src {
    /// Returns true for a component of a group.
    #[must_use]
    pub const fn is_of_group(&self) -> bool {
        self.flags.contains(OperandFlags::ALIAS)
    }

    /// Returns true for a component of a group that is not the first one.
    #[must_use]
    pub const fn continues_group(&self) -> bool {
        self.is_of_group() && !self.flags.contains(OperandFlags::FIRST_ALIAS)
    }
}

impl InstrData {
    /// Returns true if an operand is a group.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.srcs.iter().any(Src::is_of_group)
    }

    /// The operands: sources, with those of a group as one.
    pub fn operands(&self) -> impl Iterator<Item = &[Src]> {
        self.srcs.chunk_by(|_, next| next.continues_group())
    }

    /// The instruction with a vector of registers in place of each group: the form that its word has.
    #[must_use]
    pub fn with_vectors(&self) -> Cow<'_, Self> {
        if !self.has_groups() {
            return Cow::Borrowed(self);
        }
        let mut next = FIRST;
        let mut srcs = SmallVec::new();
        for operand in self.operands() {
            let first = operand[0];
            if !first.is_of_group() {
                srcs.push(first);
                continue;
            }
            let count = operand.iter().map(|src| src.mask.span()).sum();
            let class = RegClass::general(first.class.half);
            srcs.push(Src::reg(Place::Reg(PhysReg(next)), class, WriteMask::first(count)));
            next += count as u16;
        }
        Cow::Owned(Self { srcs, ..self.clone() })
    }

    /// The source that has a component of an operand of [`with_vectors`](Self::with_vectors), and its component there.
    #[must_use]
    pub fn component_source(&self, operand: usize, component: u32) -> (usize, u32) {
        if !self.has_groups() {
            return (operand, component);
        }
        let before: usize = self.operands().take(operand).map(<[Src]>::len).sum();
        match self.operands().nth(operand) {
            Some([_, _, ..]) => (before + component as usize, 0),
            _ => (before, component),
        }
    }
}

/// The table that an alias is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasScope {
    /// An alias for the next texture instruction.
    Texture,
    /// An alias for the color outputs.
    RenderTarget,
    /// An alias for memory; Mesa does not use it.
    Memory,
}

impl AliasScope {
    /// All scopes in the order of their encoding, each with its suffix in the text.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Texture, "tex"), (Self::RenderTarget, "rt"), (Self::Memory, "mem")];

    /// The name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The components of outputs that the sources of `end` have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The components of their masks.
    AsPrinted,
    /// The components of their masks without an alias: the driver takes the others from the aliases.
    Rest,
}

/// The output that a component of a render target is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aliased {
    /// The component is this output's, from its first component on.
    Output(Output),
    /// The component is not stored.
    NotStored,
}

/// An alias without a meaning at its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// The number of aliases differs from the one in the first alias.
    #[error("{found} aliases before `{opcode}`, where the first one requires {expected}")]
    Count {
        /// The instruction after them.
        opcode: Opcode,
        /// The number that there are.
        found: usize,
        /// The number in the first one.
        expected: usize,
    },
    /// An alias before another instruction than one of textures.
    #[error("an alias for a texture instruction before `{0}`")]
    NoTexture(Opcode),
    /// Components that a group cannot have.
    #[error("an alias in an operand whose components are not consecutive")]
    Components,
    /// An alias in memory's table.
    #[error("`alias.mem`")]
    Memory,
    /// An alias of an output outside of the preamble.
    #[error("`alias.rt` that is not in the last block of a preamble")]
    NoPreamble,
    /// An alias of an output that the program does not have, or has already.
    #[error("`alias.rt` for rt{rt}.{component}, {what}")]
    Output {
        /// The render target.
        rt: u16,
        /// The component.
        component: u16,
        /// The reason.
        what: &'static str,
    },
}

/// The aliases before a texture instruction.
#[derive(Default)]
struct Table {
    /// The number of entries in the first alias.
    count: usize,
    entries: SmallVec<[(PhysReg, Src); 4]>,
}

impl Table {
    /// The source that replaces a register.
    fn get(&self, reg: u16, half: bool) -> Option<Src> {
        self.entries.iter().find(|(own, src)| own.0 == reg && src.class.half == half).map(|&(_, src)| src)
    }

    /// Replaces the operands of the instruction that the table is for.
    fn apply(&self, data: &mut InstrData) -> Result<(), AliasError> {
        let opcode = data.opcode;
        if data.opcode.category() != Category::Texture {
            return Err(AliasError::NoTexture(opcode));
        }
        if self.entries.len() != self.count {
            return Err(AliasError::Count { opcode, found: self.entries.len(), expected: self.count });
        }
        let mut srcs = SmallVec::new();
        for src in &data.srcs {
            let span = src.mask.span();
            let reg = src.place().and_then(Place::reg).filter(|_| src.class.file == RegFile::General);
            let Some(reg) = reg.filter(|reg| (0..span).any(|k| self.get(reg.0 + k as u16, src.class.half).is_some()))
            else {
                srcs.push(*src);
                continue;
            };
            if src.mask != WriteMask::first(span) {
                return Err(AliasError::Components);
            }
            for k in 0..span {
                let own = PhysReg(reg.0 + k as u16);
                let mut part = self.get(own.0, src.class.half).unwrap_or_else(|| {
                    let part = Src::reg(Place::Reg(own), src.class, WriteMask::SCALAR);
                    Src { flags: src.flags & OperandFlags::LAST, ..part }
                });
                part.flags |= OperandFlags::ALIAS;
                part.flags.set(OperandFlags::FIRST_ALIAS, k == 0);
                srcs.push(part);
            }
        }
        data.srcs = srcs;
        Ok(())
    }
}

/// Puts the operands of `alias.tex` into the texture instructions after them, and those of `alias.rt` into the sources
/// of `end`. The instructions stay, without a meaning: those of outputs still read the constant file. `output` finds an
/// output by its render target and component.
///
/// # Errors
/// If an alias has no meaning at its position.
pub fn fold(
    program: &mut Program,
    stored: Stored,
    output: &dyn Fn(u16, u16) -> Option<Aliased>,
) -> Result<(), AliasError> {
    let mut rts = Vec::new();
    for block in program.layout.clone() {
        let mut table: Option<Table> = None;
        let instrs = program.blocks[block].instrs.clone();
        let ends_preamble = instrs.iter().any(|&instr| program.instrs[instr].opcode == Opcode::Shpe);
        for &instr in &instrs {
            let data = &mut program.instrs[instr];
            match data.attrs {
                Attrs::Alias { scope: AliasScope::Texture, size, register, .. } => {
                    let table = table.get_or_insert_with(|| Table { count: 1 + usize::from(size), ..Table::default() });
                    table.entries.extend(data.srcs.iter().map(|&src| (register, src)));
                    data.srcs.clear();
                    data.attrs = Attrs::None;
                }
                _ if table.is_some() => table.take().unwrap_or_default().apply(data)?,
                Attrs::Alias { scope: AliasScope::Memory, .. } => return Err(AliasError::Memory),
                Attrs::Alias { scope: AliasScope::RenderTarget, register, .. } => {
                    if !ends_preamble {
                        return Err(AliasError::NoPreamble);
                    }
                    rts.extend(data.srcs.iter().map(|&src| (instr, register, src)));
                    data.attrs = Attrs::None;
                }
                _ => {}
            }
        }
        if table.is_some() {
            return Err(AliasError::NoTexture(Opcode::Alias));
        }
    }
    for (instr, register, src) in rts {
        let (rt, component) = (register.register(), register.component());
        let fail = |what| Err(AliasError::Output { rt, component, what });
        if matches!(src.operand, SrcOperand::Const(_)) && writes_constants_after(program, instr) {
            return fail("a word of the constant file that may be written after it");
        }
        if !matches!(src.operand, SrcOperand::Const(_) | SrcOperand::Immediate(_)) {
            return fail("which is no constant");
        }
        let output = match output(rt, component) {
            None => return fail("which is no output"),
            Some(Aliased::NotStored) => continue,
            Some(Aliased::Output(Output { base, component: first })) => {
                Output { base, component: first + component as u8 }
            }
        };
        let number = program.outputs.len() as u16;
        for data in program.instrs.values_mut().filter(|data| data.opcode == Opcode::End) {
            if let Attrs::Outputs(numbers) = &mut data.attrs {
                for (&number, src) in numbers.iter().zip(&mut data.srcs) {
                    let Some(own) = program.outputs.get(usize::from(number)) else { continue };
                    let at = output.component.checked_sub(own.component).filter(|_| own.base == output.base);
                    let Some(at) = at.filter(|&at| src.mask.contains(at.into())) else { continue };
                    if stored == Stored::AsPrinted {
                        return fail("which is written");
                    }
                    src.mask.0 &= !(1 << at);
                }
                *numbers = numbers.iter().copied().chain([number]).collect();
                data.srcs.push(Src { flags: OperandFlags::ALIAS | OperandFlags::FIRST_ALIAS, ..src });
            }
        }
        program.outputs.push(output);
    }
    Ok(())
}

/// Returns true if an instruction after this one in the code may write the constant file.
fn writes_constants_after(program: &Program, instr: super::Instr) -> bool {
    let after = program.iter_instrs().map(|(_, other)| other).skip_while(|&other| other != instr);
    after.map(|other| program.instrs[other].opcode).any(Opcode::writes_consts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::text::{read, write};

    const ONE: &str = "imm[1.000000,1065353216,0x3f800000]";

    /// A program of one block, with its aliases folded. It has one output, of which `end` has three components.
    fn folded(lines: &[&str]) -> Result<Program, AliasError> {
        let list = lines.iter().chain(&["end r0.x (wrmask=0x7) (0)"]).zip(1..);
        let lines: String = list.map(|(line, serial)| format!("\t{serial:04}:0000:000: \t{line}\n")).collect();
        let text = format!("// {{output=4.x}}\nblock0 {{\n{lines}}}\n");
        let mut program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let again = write(&program);
        assert_eq!(read(&again).as_ref(), Ok(&program), "{again}");
        let output = |rt, component| match (rt, component) {
            (0, 2) => Some(Aliased::NotStored),
            (0, _) => Some(Aliased::Output(Output { base: 4, component: 0 })),
            _ => None,
        };
        fold(&mut program, Stored::AsPrinted, &output).map(|()| program)
    }

    fn line(program: &Program, at: usize) -> String {
        let text = write(program);
        let lines: Vec<&str> = text.lines().filter_map(|line| line.split_once(": \t")).map(|(_, line)| line).collect();
        lines[at].to_owned()
    }

    #[test]
    fn an_alias_is_an_operand_of_the_next_texture_instruction() {
        let first = format!("alias.tex.b32.1 @r40.y, {ONE}");
        let sam = "sam (f32)(x)r1.x, r40.x (wrmask=0x7), s#0, t#0";
        let program = folded(&[&first, "alias.tex.b32.0 @r40.z, c2.y", sam]).expect("aliases");
        assert_eq!(line(&program, 2), format!("sam (f32)(x)r1.x, @{{r40.x, {ONE}, c2.y}}, s#0, t#0"));
        let instr = program.blocks[program.entry()].instrs[2];
        let data = &program.instrs[instr];
        assert_eq!((data.component_source(0, 2), data.with_vectors().srcs[0].mask), ((2, 0), WriteMask::first(3)));
        // Half registers have names of their own.
        let program = folded(&["alias.tex.b16.0 @hr40.x, hr1.x", sam]).expect("an alias that is not read");
        assert_eq!(line(&program, 1), sam);
        for (lines, error) in [
            (vec![&first[..], sam], "1 aliases before `sam`, where the first one requires 2"),
            (vec!["alias.tex.b32.0 @r0.x, r1.x", "nop", sam], "an alias for a texture instruction before `nop`"),
            (vec!["alias.mem.b32.0 @r0.x, r1.x"], "`alias.mem`"),
        ] {
            assert_eq!(folded(&lines).map(drop).map_err(|error| error.to_string()), Err(error.to_owned()));
        }
    }

    #[test]
    fn an_alias_of_an_output_is_a_source_of_the_end() {
        let alias = format!("alias.rt.b32.0 rt0.w, {ONE}");
        let program = folded(&[&alias, "alias.rt.b32.0 rt0.z, c1.x", "(sy)(ss)shpe"]).expect("aliases");
        assert_eq!(line(&program, 3), format!("end r0.x (wrmask=0x7) (0), @{{{ONE}}} (1)"));
        assert_eq!(program.outputs, [0, 3].map(|component| Output { base: 4, component }));
        let constant = "alias.rt.b32.0 rt0.w, c1.x";
        let store = "stc imm[0.000000,4,0x4], sr48.x";
        assert!(folded(&[store, constant, "(sy)(ss)shpe"]).is_ok());
        for (lines, error) in [
            (vec![&alias[..]], "`alias.rt` that is not in the last block of a preamble"),
            (
                vec![constant, store, "(sy)(ss)shpe"],
                "`alias.rt` for rt0.3, a word of the constant file that may be written after it",
            ),
            (vec!["alias.rt.b32.0 rt1.x, c1.x", "(sy)(ss)shpe"], "`alias.rt` for rt1.0, which is no output"),
            (vec!["alias.rt.b32.0 rt0.y, c1.x", "(sy)(ss)shpe"], "`alias.rt` for rt0.1, which is written"),
        ] {
            assert_eq!(folded(&lines).map(drop).map_err(|error| error.to_string()), Err(error.to_owned()));
        }
    }
}
