//! Recovery of attributes of memory and texture accesses that Mesa's texts do not print.
//!
//! The words of the final code encode all of them, and the text after the last pass has the serial number of each
//! word's instruction. If the words do not match that text, an access gets the attributes of all other words of its
//! opcode, if they agree. An access without a word gets the attributes that follow from its operands, or those of all
//! words of its opcode.

use super::phases::Phase;
use ir3_compiler::ir3::{
    AddressSpace, Attrs, Instr, InstrData, InstrFlags, MemoryAttrs, Opcode, PhysReg, Place, Program, Src, SrcOperand,
    TextureAttrs, Type, Value,
};
use ir3_compiler::machine::Code;
use ir3_compiler::nir::Shader;
use ir3_compiler::target::{Generation, Target};
use ir3_programs::input::natives;
use rustc_hash::{FxHashMap, FxHashSet};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};
use std::collections::BTreeSet;

/// The accesses of the final code by their serial numbers.
#[derive(Default)]
pub(super) struct Accesses {
    by_serial: FxHashMap<u32, InstrData>,
    /// For each opcode, the attributes that all of its words agree on.
    by_opcode: FxHashMap<Opcode, InstrData>,
    /// True if some word is nonuniform, so that lanes may access different textures.
    has_nonuniform: bool,
}

impl Accesses {
    /// Takes the attributes of accesses from the words of the final code. `last` is the last section with registers, and
    /// its phase: a final one is paired by position, an earlier one by registers. Without it, an access has what all
    /// words of its opcode agree on.
    pub fn of(last: Option<(&Program, Phase)>, code: &Code) -> Self {
        let mut own = Self::default();
        // Words after the end are padding to the size of the instruction cache.
        let end = code.instrs.values().position(|word| word.data.opcode == Opcode::End);
        let count = end.map_or(code.instrs.len(), |end| end + 1);
        let words: Vec<&InstrData> = code.instrs.values().take(count).map(|word| &word.data).collect();
        match last {
            Some((last, Phase::Final)) => own.pair_in_order(last, &words, &code.interface.prefetches),
            Some((last, Phase::Allocated | Phase::Lowered)) => own.pair_by_registers(last, &words),
            _ => {}
        }
        own.has_nonuniform = words.iter().any(|word| word.flags.contains(InstrFlags::NONUNIFORM));
        for opcode in words.iter().map(|word| word.opcode).collect::<FxHashSet<_>>() {
            let all = words.iter().copied().filter(|word| word.opcode == opcode);
            own.by_opcode.extend(unanimous(all).map(|word| (opcode, word.clone())));
        }
        own
    }

    /// Pairs the instructions of a text with the words that have its registers: passes after allocation only reorder
    /// them.
    fn pair_by_registers(&mut self, last: &Program, words: &[&InstrData]) {
        for (_, instr) in last.iter_instrs() {
            let data = &last.instrs[instr];
            if !matches!(data.attrs, Attrs::Memory(_) | Attrs::Texture(_)) || data.opcode.is_meta() {
                continue;
            }
            let registers = registers(data);
            let its = words.iter().copied().filter(|word| word.opcode.family() == data.opcode.family());
            if let Some(word) = unanimous(its.filter(|word| self::registers(word) == registers)) {
                self.by_serial.insert(last.serials[instr], word.clone());
            }
        }
    }

    /// Pairs the instructions of the final text with the words, in order.
    fn pair_in_order(&mut self, last: &Program, words: &[&InstrData], prefetches: &[InstrData]) {
        for (instr, prefetch) in
            last.iter_instrs().filter(|&(_, instr)| last.instrs[instr].opcode == Opcode::TexPrefetch).zip(prefetches)
        {
            self.by_serial.insert(last.serials[instr.1], prefetch.clone());
        }
        let texts: Vec<_> = last.iter_instrs().filter(|&(_, instr)| !last.instrs[instr].opcode.is_meta()).collect();
        let of_texts: Vec<&str> = texts.iter().map(|&(_, instr)| last.instrs[instr].opcode.family()).collect();
        let of_words: Vec<&str> = words.iter().map(|word| word.opcode.family()).collect();
        let mut left_words: BTreeSet<usize> = (0..words.len()).collect();
        let mut left_texts: BTreeSet<usize> = (0..texts.len()).collect();
        for (text, word) in pairs(&of_texts, &of_words) {
            self.by_serial.insert(last.serials[texts[text].1], words[word].clone());
            left_texts.remove(&text);
            left_words.remove(&word);
        }
        for at in left_texts {
            let instr = texts[at].1;
            let of_opcode = left_words.iter().map(|&at| words[at]).filter(|word| word.opcode.family() == of_texts[at]);
            if let Some(word) = unanimous(of_opcode) {
                self.by_serial.insert(last.serials[instr], word.clone());
            }
        }
    }

    /// Returns a line about each access that was completed from the words.
    pub fn inferred(&self) -> Vec<String> {
        let mut all: Vec<(u32, String)> =
            self.by_serial.iter().filter_map(|(&serial, data)| Some((serial, said(data)?))).collect();
        all.sort_unstable();
        all.into_iter().map(|(serial, said)| format!("ssa_{serial} is {said}")).collect()
    }

    /// Fills in the attributes of the accesses of a section.
    ///
    /// # Errors
    /// If neither the text nor a word determines the offset of a store.
    pub fn complete(&self, program: &mut Program, nir: &Shader, target: &Target) -> Result<(), String> {
        let mut lost = Vec::new();
        for (instr, data) in &mut program.instrs {
            let serial = program.serials[instr];
            complete_move(data);
            complete_store(data);
            // A pass that changes the operation of an atomic does not change its address.
            if let Some(said) = self.by_serial.get(&serial).filter(|said| said.opcode.family() == data.opcode.family())
            {
                complete(data, said);
            } else if matches!(data.opcode, Opcode::Stp | Opcode::Stl | Opcode::Stlw) {
                lost.push(instr);
            } else if self.has_nonuniform && data.flags.contains(InstrFlags::S2EN) {
                // No text prints whether all lanes name the same texture.
                without_type(data);
            }
            if data.opcode == Opcode::TexPrefetch && data.texture().is_some_and(|texture| texture.ty.is_none()) {
                // If nir has several that differ, its attributes stay unknown.
                let _ = natives::complete_prefetch(data, nir);
            }
            // A half register is spilled as 16 bits.
            if let Attrs::Memory(memory) = &mut data.attrs
                && let Opcode::SpillMacro | Opcode::ReloadMacro | Opcode::Stp | Opcode::Ldp = data.opcode
                && memory.ty.is_none()
            {
                let place = data.dsts.first().map(|dst| dst.class).or_else(|| data.srcs.get(1).map(|src| src.class));
                memory.ty = place.filter(|class| class.half).map(|_| Type::U16);
            }
        }
        if target.generation >= Generation::A6xx {
            for opcode in [Opcode::Stib, Opcode::Ldib].into_iter().filter(|&it| natives::is_of_buffers(nir, it)) {
                program.instrs.values_mut().filter(|data| data.opcode == opcode).for_each(complete_by_operands);
            }
        }
        for data in program.instrs.values_mut() {
            if let Some(said) = self.by_opcode.get(&data.opcode) {
                complete_by_others(data, said);
            }
        }
        shift_by_constants(program);
        if target.generation >= Generation::A6xx {
            program.instrs.values_mut().for_each(mark_offset);
        }
        if target.generation < Generation::A6xx && nir.info.num_ssbos > 0 {
            number_images(program, nir.info.num_ssbos);
        }
        let is_unknown = |&&instr: &&Instr| {
            let data = &program.instrs[instr];
            self.by_opcode.get(&data.opcode).is_none_or(|said| said.attrs != data.attrs)
        };
        match lost.iter().find(is_unknown) {
            Some(&instr) => Err(format!(
                "the text leaves out the offset of `{}`, and its word is not known",
                program.instrs[instr].opcode
            )),
            None => Ok(()),
        }
    }
}

/// Sets the flag of an offset that is added to an index. The decoder sets it if the offset is not zero; for an access
/// without a word the operand determines it.
fn mark_offset(data: &mut InstrData) {
    if let Opcode::Stib | Opcode::Ldib = data.opcode
        && let Some(SrcOperand::Immediate(offset)) = data.srcs.get(2).map(|src| src.operand)
    {
        data.flags.set(InstrFlags::IMM_OFFSET, offset != 0);
    }
}

/// Sets the types of a macro that takes a value of one lane. Mesa prints `f16f16` for all of them, and lowers them to
/// moves of integers: a half constant is the low half of its word, and not converted.
fn complete_move(data: &mut InstrData) {
    let integer = |half: bool| if half { Type::U16 } else { Type::U32 };
    if let (Opcode::ReadFirstMacro | Opcode::ReadCondMacro, Attrs::Move { src, dst, .. }) =
        (data.opcode, &mut data.attrs)
        && (*src, *dst) == (Type::F16, Type::F16)
        && let (Some(from), Some(to)) = (data.srcs.last(), data.dsts.first())
    {
        (*src, *dst) = (integer(from.class.half), integer(to.class.half));
    }
}

/// Removes the type of a texture instruction: its meaning is unknown then.
fn without_type(data: &mut InstrData) {
    if let Attrs::Texture(texture) = &mut data.attrs {
        texture.ty = None;
    }
}

/// Sets the number of words that are stored to the constant file: the text has it as the mask of the value. It is
/// compared with the words of the final code.
fn complete_store(data: &mut InstrData) {
    if let (Opcode::Stc, Some(mask), Attrs::Memory(memory)) =
        (data.opcode, data.srcs.get(1).map(|src| src.mask), &mut data.attrs)
    {
        memory.components = memory.components.or(Some(mask.0.count_ones() as u16));
    }
}

/// Completes an access without a word, because a pass has removed it: if nir has no access of its kind to images and
/// none to bytes, it accesses a buffer, with as many elements as its value has components.
fn complete_by_operands(data: &mut InstrData) {
    let value = match data.opcode {
        Opcode::Stib => data.srcs.last().map(|src| (src.class, src.mask)),
        Opcode::Ldib => data.dsts.first().map(|dst| (dst.class, dst.mask)),
        _ => None,
    };
    if let (Some((class, mask)), Attrs::Memory(memory)) = (value, &mut data.attrs)
        && memory.space.is_none()
    {
        memory.space = Some(AddressSpace::Ssbo);
        memory.ty = memory.ty.or(Some(if class.half { Type::U16 } else { Type::U32 }));
        memory.components = memory.components.or(Some(mask.0.count_ones() as u16));
        memory.coords = memory.coords.or(Some(1));
    }
}

/// Completes an access without a word of its own by the attributes that all words of its opcode share. Its operands
/// determine the number of components, and whether these are halves.
fn complete_by_others(data: &mut InstrData, said: &InstrData) {
    let value = |data: &InstrData| match data.dsts.first() {
        Some(dst) => Some((dst.class.half, dst.mask)),
        None => data.srcs.iter().map(|src| (src.class.half, src.mask)).max_by_key(|(_, mask)| mask.0),
    };
    match (&data.attrs, &said.attrs) {
        (Attrs::None, Attrs::Fence { .. }) => {}
        (Attrs::Memory(memory), Attrs::Memory(_))
            if memory.space.is_none() && memory.ty.is_none() && value(data) == value(said) => {}
        _ => return,
    }
    complete(data, said);
}

/// Pairs the instructions of the last text with the words, by their positions. If there are as many words as
/// instructions, they are paired one to one: differences are faults in single words. Otherwise they are paired like the
/// lines of a diff. Of two equal neighbours of which one has no partner, none is paired, because it is not known which
/// one was removed.
fn pairs(texts: &[&str], words: &[&str]) -> Vec<(usize, usize)> {
    if texts.len() == words.len() {
        return (0..texts.len()).filter(|&at| texts[at] == words[at]).map(|at| (at, at)).collect();
    }
    let changes = capture_diff_slices(Algorithm::Myers, texts, words);
    let mut pairs = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let (DiffTag::Equal, old, new) = change.as_tag_tuple() else { continue };
        let alone = |change: Option<&DiffOp>| -> FxHashSet<&str> {
            change.map_or_else(FxHashSet::default, |it| {
                texts[it.old_range()].iter().chain(&words[it.new_range()]).copied().collect()
            })
        };
        let (before, after) = (alone(number.checked_sub(1).map(|at| &changes[at])), alone(changes.get(number + 1)));
        let all = &texts[old.clone()];
        let front = all.iter().take_while(|form| before.contains(*form)).count();
        let back = all.iter().rev().take_while(|form| after.contains(*form)).count();
        pairs.extend(old.zip(new).take(all.len().saturating_sub(back)).skip(front));
    }
    pairs
}

/// The registers that an instruction names, destinations first.
fn registers(data: &InstrData) -> Vec<(PhysReg, bool)> {
    let dsts = data.dsts.iter().filter_map(|dst| Some((dst.place.reg()?, dst.class.half)));
    let srcs = data.srcs.iter().filter_map(|src| Some((src.place()?.reg()?, src.class.half)));
    dsts.chain(srcs).collect()
}

/// The first word, if all words are equal.
fn unanimous<'a>(mut words: impl Iterator<Item = &'a InstrData>) -> Option<&'a InstrData> {
    let first = words.next()?;
    words
        .all(|word| word.attrs == first.attrs && (word.flags ^ first.flags) & FLAGS == InstrFlags::empty())
        .then_some(first)
}

/// Folds constant shifts and offsets into indexed accesses. Selection emits them as moves of constants; copy
/// propagation folds them in Mesa.
fn shift_by_constants(program: &mut Program) {
    let indexed = |data: &InstrData| matches!(data.opcode, Opcode::LdgA | Opcode::StgA);
    let accesses: Vec<Instr> = program.instrs.iter().filter(|(_, data)| indexed(data)).map(|it| it.0).collect();
    for instr in accesses {
        for at in [2, 3] {
            if let Some(Place::Value(value)) = program.instrs[instr].srcs.get(at).and_then(Src::place).copied()
                && let Some(bits) = constant(program, value)
            {
                program.instrs[instr].srcs[at].operand = SrcOperand::Immediate(bits);
            }
        }
    }
}

/// Subtracts the number of buffers from the indices of images: before a6xx buffers and images share one numbering,
/// buffers first.
fn number_images(program: &mut Program, buffers: u32) {
    let images: Vec<Instr> = program
        .instrs
        .iter()
        .filter(|(_, data)| data.memory().is_some_and(|memory| memory.space == Some(AddressSpace::Image)))
        .map(|(instr, _)| instr)
        .collect();
    for instr in images {
        let Some(operand) = program.instrs[instr].srcs.first().map(|src| src.operand) else { continue };
        let number = match operand {
            SrcOperand::Immediate(number) => Some(number),
            // A constant that copy propagation has not put into the instruction yet.
            SrcOperand::Place(Place::Value(value)) => constant(program, value),
            _ => None,
        };
        if let Some(number) = number.and_then(|number| number.checked_sub(buffers)) {
            program.instrs[instr].srcs[0].operand = SrcOperand::Immediate(number);
        }
    }
}

/// The bits of a value that is moved from an immediate.
fn constant(program: &Program, value: Value) -> Option<u32> {
    let data = &program.instrs[program.values[value].instr];
    match (data.opcode, data.srcs.first().map(|src| src.operand)) {
        (Opcode::Mov, Some(SrcOperand::Immediate(bits))) if data.dsts.len() == 1 => Some(bits),
        _ => None,
    }
}

/// A description of the attributes of an access; `None` for other instructions.
fn said(data: &InstrData) -> Option<String> {
    let name = data.opcode.name();
    let mut parts: Vec<String> = Vec::new();
    match &data.attrs {
        Attrs::Memory(memory) => {
            parts.extend(memory.ty.map(|ty| format!("type {}", ty.name())));
            parts.extend(memory.components.map(|count| format!("components {count}")));
            parts.extend(memory.space.map(|space| format!("space {}", space.name())));
            parts.extend(memory.coords.map(|count| format!("coordinates {count}")));
            parts.extend(memory.base.map(|base| format!("descriptor set {base}")));
        }
        Attrs::Texture(texture) => {
            parts.extend(texture.ty.map(|ty| format!("type {}", ty.name())));
            parts.extend(texture.texture.map(|number| format!("texture {number}")));
            parts.extend(texture.sampler.map(|number| format!("sampler {number}")));
            parts.extend(texture.base.map(|base| format!("descriptor set {base}")));
        }
        _ => {}
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(", ")))
}

/// Flags of accesses that the text does not print.
const FLAGS: InstrFlags = InstrFlags::GLOBAL.union(InstrFlags::NONUNIFORM).union(InstrFlags::IMM_OFFSET);

fn complete(data: &mut InstrData, said: &InstrData) {
    match (&mut data.attrs, &said.attrs) {
        (Attrs::Memory(own), Attrs::Memory(said)) => complete_memory(own, said),
        (Attrs::Texture(own), Attrs::Texture(said)) => complete_texture(own, said),
        (own @ Attrs::None, said @ Attrs::Fence { .. }) => *own = said.clone(),
        _ => return,
    }
    data.flags |= said.flags & FLAGS;
    // No section prints that the texture of a prefetch is bindless; nir has it.
    if data.opcode == Opcode::TexPrefetch {
        data.flags |= said.flags & InstrFlags::BINDLESS;
    }
}

fn complete_memory(own: &mut MemoryAttrs, said: &MemoryAttrs) {
    own.ty = own.ty.or(said.ty);
    own.components = own.components.or(said.components);
    own.space = own.space.or(said.space);
    own.coords = own.coords.or(said.coords);
    own.base = own.base.or(said.base);
    own.index_unit = own.index_unit.or(said.index_unit);
    own.old_layout |= said.old_layout;
    if own.offset == 0 {
        own.offset = said.offset;
    }
}

fn complete_texture(own: &mut TextureAttrs, said: &TextureAttrs) {
    own.ty = own.ty.or(said.ty);
    own.sampler = own.sampler.or(said.sampler);
    own.texture = own.texture.or(said.texture);
    own.base = own.base.or(said.base);
    own.space = own.space.or(said.space);
    own.sampler_base = own.sampler_base.or(said.sampler_base);
    own.is_1d |= said.is_1d;
    own.is_cube |= said.is_cube;
    own.is_fetch |= said.is_fetch;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::text;

    #[test]
    fn atomics_of_one_form_access_the_same() {
        assert_eq!(Opcode::AtomicBAdd.family(), Opcode::AtomicBOr.family());
        for (a, b) in [
            (Opcode::AtomicBAdd, Opcode::AtomicAdd),
            (Opcode::AtomicBAdd, Opcode::AtomicSAdd),
            (Opcode::AtomicBAdd, Opcode::Ldib),
            (Opcode::Stib, Opcode::Ldib),
        ] {
            assert_ne!(a.family(), b.family());
        }
    }

    #[test]
    fn instructions_are_paired_around_what_one_side_has_alone() {
        // One is another.
        assert_eq!(pairs(&["add.u", "fence", "end"], &["min.u", "fence", "end"]), [(1, 1), (2, 2)]);
        // One is missing, and one is another.
        let (text, words) = (["add.u", "ldib", "fence", "stib", "end"], ["min.u", "ldib", "stib", "end"]);
        assert_eq!(pairs(&text, &words), [(1, 1), (3, 2), (4, 3)]);
        let words = ["nop", "add.u", "nop", "stib", "end"];
        assert_eq!(pairs(&["add.u", "stib", "end"], &words), [(0, 1), (1, 3), (2, 4)]);
        // It is ambiguous which of several is missing.
        let words = ["add.u", "fence", "stib", "fence", "end"];
        assert_eq!(
            pairs(&["add.u", "fence", "fence", "stib", "fence", "end"], &words),
            [(0, 0), (3, 2), (4, 3), (5, 4)]
        );
    }

    #[test]
    fn an_access_without_a_word_of_its_own_has_what_all_of_its_opcode_say() {
        let program = |lines: [&str; 3]| {
            let lines: String = lines.iter().map(|line| format!("\t{line}\n")).collect();
            let text = format!("block0 {{\n{lines}\t0009:0000:000: \tend\n}}\n");
            text::read(&text).unwrap_or_else(|error| panic!("{error}"))
        };
        let add = "0001:0000:000: \tadd.u r1.x, r0.x, r0.y";
        let [first, second] = [
            "0002:0000:000: \tldib r2.x, imm[0.000000,0,0x0], r0.x, imm[0.000000,0,0x0]",
            "0003:0000:000: \tldib r2.y, imm[0.000000,0,0x0], r1.x, imm[0.000000,0,0x0]",
        ];
        let words = "// {type=u32, components=1, space=ssbo, coords=1}";
        let floats = "// {type=f32, components=1, space=ssbo, coords=1}";
        let last = program([first, second, add]);
        let code = |lines: [&str; 3]| Code::from_program(&program(lines)).expect("code");
        // The words have the sum before the second load.
        let types_of = |said: [&str; 2], phase: Phase| {
            let [first, second] = [format!("{first} {}", said[0]), format!("{second} {}", said[1])];
            let accesses = Accesses::of(Some((&last, phase)), &code([&first, add, &second]));
            [2, 3].map(|serial| {
                let data = accesses.by_serial.get(&serial)?;
                data.memory().and_then(|memory| memory.ty)
            })
        };
        let types = |said: [&str; 2]| types_of(said, Phase::Final);
        assert_eq!(types([words, words]), [Some(Type::U32); 2]);
        // The first one is paired, and gives no information about the second.
        assert_eq!(types([words, floats]), [Some(Type::U32), Some(Type::F32)]);
        // In another order than that of the words, accesses are paired by their registers. Without registers they are
        // not.
        assert_eq!(types_of([words, floats], Phase::Lowered), [Some(Type::U32), Some(Type::F32)]);
        assert_eq!(types_of([words, floats], Phase::Scheduled), [None, None]);
    }

    #[test]
    fn the_mask_says_how_many_words_are_stored() {
        let text = "block0 {
\t0001:0000:000: \tmov.u32u32 ssa_1, imm[0.000000,7,0x7]
\t0002:0000:000: \t_meta:collect ssa_2 (wrmask=0x7), ssa_1, ssa_1, ssa_1
\t0003:0000:000: \tstc imm[0.000000,32,0x20], ssa_1
\t0004:0000:000: \tstc imm[0.000000,36,0x24], ssa_2 (wrmask=0x7)
\t0005:0000:000: \tstc imm[0.000000,40,0x28], ssa_2 (wrmask=0x7) // {components=2}
\t0006:0000:000: \tend
}
";
        let mut program = text::read(text).unwrap_or_else(|error| panic!("{error}"));
        program.instrs.values_mut().for_each(complete_store);
        let stores = program.instrs.values().filter(|data| data.opcode == Opcode::Stc);
        let counts: Vec<_> = stores.map(|data| data.memory().and_then(|memory| memory.components)).collect();
        assert_eq!(counts, [Some(1), Some(3), Some(2)]);
    }
}
