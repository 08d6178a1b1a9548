//! Legality of operands, independent of the table of the passes.
//!
//! Passes query [`ir3::legality`](ir3_compiler::ir3::legality) before they put an operand into an instruction, and so
//! does the validator of ir3: a mistake in it would be seen by neither. This module does not use it. Forms without an
//! encoding are those that the encoder's field tables refuse: each instruction is encoded, and read back from its word
//! as the same instruction. In SSA form its values get registers of their files for that. Forms that can be encoded but
//! that the hardware does not execute (two constants in one instruction, operands of a scalar operation) are a table of
//! this module, by category. Meta instructions and macros, which have no word, have rules of their own.

use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::validate::{Form, Rule, validate};
use ir3_compiler::ir3::{
    Attrs, Dst, Instr, InstrData, InstrFlags, Opcode, OperandFlags, PhysReg, Place, Program, RegClass, RegFile, Src,
    SrcOperand, Type,
};
use ir3_compiler::ir3::{Category, WriteMask};
use ir3_compiler::machine::encoding::{EncodeError, decode, encode, word_flags};
use ir3_compiler::target::{Generation, Target};
use smallvec::SmallVec;

/// The part of the rules that a program has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All rules.
    All,
    /// Rules about the text of an instruction: attributes that Mesa does not print are no mistake.
    Printed,
    /// Rules that a word does not show: the program was read back from its words.
    Decoded,
}

/// The instructions of a compilation that keep all rules, when they were checked. Most stages change few instructions,
/// and only those are checked again.
#[derive(Debug, Default)]
pub struct Judged(SecondaryMap<Instr, Option<InstrData>>);

impl Judged {
    /// Returns true if the instruction was judged, and has not changed since.
    fn has(&self, instr: Instr, data: &InstrData) -> bool {
        self.0[instr].as_ref() == Some(data)
    }

    /// Records an instruction that keeps all rules. Accesses of arrays depend on the array, too, and are not recorded.
    fn add(&mut self, instr: Instr, data: &InstrData) {
        let mut places = data.dsts.iter().map(|dst| &dst.place).chain(data.srcs.iter().filter_map(Src::place));
        if !places.any(|place| matches!(place, Place::Array(_))) {
            self.0[instr] = Some(data.clone());
        }
    }
}

/// Returns the first instruction that the hardware does not have, and the reason. With the instructions that were
/// judged before in a compilation for the same target, only others are judged.
pub fn illegal(program: &Program, target: &Target, extent: Extent, mut judged: Option<&mut Judged>) -> Option<String> {
    program.iter_instrs().find_map(|(_, instr)| {
        let data = &program.instrs[instr];
        if judged.as_ref().is_some_and(|judged| judged.has(instr, data)) {
            return None;
        }
        if let Some(why) = reason(program, data, target, extent) {
            return Some(format!("{instr} (`{}`): {why}", data.opcode));
        }
        if let (Some(judged), Extent::All) = (&mut judged, extent) {
            judged.add(instr, data);
        }
        None
    })
}

/// The first rule of ir3 that a program breaks: the hardware then executes something else than the text, so no proof
/// about the text holds. That of `(jp)` is none of Mesa's validator, records of values are not of the text, and in SSA
/// form operands may still become others: immediates that do not fit are moved later, and an allocator may have begun.
pub fn broken_rule(program: &Program, target: &Target) -> Option<String> {
    let form = Form::of(program);
    let violations = validate(program, target, form).err().unwrap_or_default();
    let counts = |rule: Rule| match rule {
        Rule::Reconvergence | Rule::ValueRecord => false,
        Rule::Form | Rule::Immediate | Rule::Encoding => form != Form::Ssa,
        _ => true,
    };
    let violation = violations.into_iter().find(|violation| counts(violation.rule));
    let illegal = || (form != Form::Ssa).then(|| illegal(program, target, Extent::Printed, None)).flatten();
    violation.map(|violation| violation.to_string()).or_else(|| unknown_flags(program, target)).or_else(illegal)
}

/// The first instruction of which no word of the generation has the opcode, or all of the flags, for any operands.
pub(super) fn unknown_flags(program: &Program, target: &Target) -> Option<String> {
    // Marks of the compiler and of texts only: before a6xx no word encodes whether a descriptor is the same in all
    // lanes, and later only where it is computed.
    let unencoded = InstrFlags::UNUSED | InstrFlags::NONUNIFORM;
    program.iter_instrs().find_map(|(_, instr)| {
        let data = &program.instrs[instr];
        if has_no_word(data) {
            return None;
        }
        let of_descriptor = matches!(data.opcode.category(), Category::Texture | Category::Memory);
        let why = match word_flags(target.generation, data.opcode) {
            None => format!("an {} has no such instruction", target.generation),
            Some(flags) => {
                let other = data.flags - flags - if of_descriptor { unencoded } else { InstrFlags::UNUSED };
                let (name, _) = other.iter_names().next()?;
                format!("no word of it has the flag {}", name.to_lowercase())
            }
        };
        Some(format!("{instr} (`{}`): {why}", data.opcode))
    })
}

/// Returns true for meta instructions and macros, which become other instructions, and for aliases that have become
/// part of others.
fn has_no_word(data: &InstrData) -> bool {
    let is_folded = data.opcode == Opcode::Alias && data.attrs == Attrs::None;
    is_folded || data.opcode.is_meta() || data.opcode.name().ends_with(".macro") || data.opcode.is_macro()
}

/// The reason why an instruction is illegal.
fn reason(program: &Program, data: &InstrData, target: &Target, extent: Extent) -> Option<String> {
    if data.opcode.is_meta() {
        return meta(data).map(str::to_owned);
    }
    // Branches and ends get their operands at the end, where the encoder judges them.
    if has_no_word(data) || data.opcode.category() == Category::Flow {
        return None;
    }
    if let Some(why) = group(data, target) {
        return Some(why.to_owned());
    }
    let data = &*data.with_vectors();
    if let Some(why) = illegal_combination(data, target) {
        return Some(why.to_owned());
    }
    if extent == Extent::Decoded {
        return None;
    }
    results(data).map(str::to_owned).or_else(|| without_word(program, data, target, extent))
}

/// Groups of sources, each component of which is in the word of an alias.
fn group(data: &InstrData, target: &Target) -> Option<&'static str> {
    let mut parts = data.srcs.iter().filter(|src| src.is_of_group());
    let count = parts.clone().count();
    if count == 0 {
        return None;
    }
    if target.generation < Generation::A7xx || data.opcode.category() != Category::Texture {
        return Some("a group of sources");
    }
    if count > 16 {
        return Some("more than 16 sources in groups");
    }
    let is_other = |src: &Src| {
        !matches!(Kind::of(src), Kind::Vector | Kind::Const | Kind::Immediate)
            || src.is_relative()
            || !src.mods.is_empty()
            || src.mask.span() > 1 && Kind::of(src) != Kind::Vector
    };
    parts.any(is_other).then_some("a source in a group that no alias can name")
}

/// True if an instruction has a result; some with `r63.x` in its place prefetch a descriptor.
fn has_result(data: &InstrData) -> bool {
    data.dsts.iter().any(|dst| dst.place.reg() != Some(PhysReg::INVALID))
}

/// Results that an instruction cannot have. No word encodes the number of results of `resinfo`: it always writes three
/// registers.
fn results(data: &InstrData) -> Option<&'static str> {
    let is_size = data.opcode == Opcode::Resinfo && has_result(data);
    (is_size && data.dsts.iter().any(|dst| dst.mask.span() != 3)).then_some("other than three results")
}

/// The kind of an operand, as far as the rules distinguish it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A general register, or a value that gets one.
    Vector,
    /// A shared register.
    Shared,
    /// A word of the constant file.
    Const,
    /// An immediate.
    Immediate,
    /// A predicate or an address register.
    Other,
}

impl Kind {
    fn of(src: &Src) -> Self {
        match (src.operand, src.class.file) {
            (SrcOperand::Const(_) | SrcOperand::ConstRelative(_), _) => Self::Const,
            (SrcOperand::Immediate(_), _) => Self::Immediate,
            (_, RegFile::General) => Self::Vector,
            (_, RegFile::Shared) => Self::Shared,
            (_, RegFile::Predicate | RegFile::Address) => Self::Other,
        }
    }
}

/// Returns true for the results of the scalar ALU.
fn is_shared(dst: Option<&Dst>) -> bool {
    dst.is_some_and(|dst| dst.class.file == RegFile::Shared || dst.flags.contains(OperandFlags::UNIFORM))
}

/// Combinations of operands that are encodable but illegal, or illegal in this kind of instruction.
fn illegal_combination(data: &InstrData, target: &Target) -> Option<&'static str> {
    let dst = data.dsts.first();
    let scalar = is_shared(dst);
    // The previous value of an array element is no operand of the machine.
    let kept = |src: &&Src| src.flags.contains(OperandFlags::TIED);
    let relative = data.srcs.iter().filter(|src| !kept(src) && dst.is_none_or(|dst| src.place() != Some(&dst.place)));
    if relative.clone().any(|src| src.is_relative()) {
        if dst.is_some_and(|dst| dst.place.is_relative()) {
            return Some("a source and the destination are relative to the address register");
        }
        if target.generation < Generation::A6xx && data.opcode != Opcode::Mov {
            return Some(
                "a source that is relative to the address register, before a6xx, in another instruction than a move",
            );
        }
    }
    let kinds: [Kind; 3] = std::array::from_fn(|slot| data.srcs.get(slot).map_or(Kind::Other, Kind::of));
    match data.opcode.category() {
        Category::Move if data.opcode == Opcode::Mov => moved(data, kinds[0], scalar, target),
        Category::Alu2 => two(data, kinds, scalar, target),
        Category::Alu3 => three(data, kinds, scalar),
        Category::Sfu => {
            let is_register = matches!(kinds[0], Kind::Vector | Kind::Shared);
            (!is_register || (kinds[0] == Kind::Shared) != scalar)
                .then_some("a source that is no register of the file of the destination")
        }
        Category::Texture => {
            // A sample without a result prefetches a descriptor, and does not look at its coordinates.
            let is_prefetch = data.opcode == Opcode::Sam && !has_result(data);
            (!is_prefetch && data.srcs.iter().any(|src| matches!(Kind::of(src), Kind::Shared | Kind::Const)))
                .then_some("a shared register or a constant")
        }
        Category::Memory => {
            let is_scalar_load = data.opcode == Opcode::Ldc && data.flags.contains(InstrFlags::UNIFORM);
            let may_share =
                |slot: usize| is_scalar_load || slot == 1 && matches!(data.opcode, Opcode::Stc | Opcode::Shfl);
            // The address of an indexed access may be two of the first words of the constant file.
            let is_indexed =
                matches!(data.opcode, Opcode::LdgA | Opcode::StgA) && target.generation >= Generation::A7xx;
            let is_address =
                |slot: usize, src: &Src| slot == 0 && is_indexed && matches!(src.operand, SrcOperand::Const(..256));
            let mut srcs = data.srcs.iter().enumerate();
            srcs.any(|(slot, src)| match Kind::of(src) {
                Kind::Const => !is_address(slot, src),
                Kind::Shared => !may_share(slot),
                _ => false,
            })
            .then_some("a shared register or a constant")
        }
        _ => None,
    }
}

/// A move into the shared file: from general registers it converts no floats, and from shared ones only with a scalar
/// ALU.
fn moved(data: &InstrData, src: Kind, scalar: bool, target: &Target) -> Option<&'static str> {
    let Attrs::Move { src: from, dst: to, .. } = data.attrs else { return None };
    let is_float = |ty: Type| matches!(ty, Type::F16 | Type::F32);
    let is_signed = |ty: Type| matches!(ty, Type::S16 | Type::S32);
    match src {
        Kind::Vector if scalar && (is_float(from) || is_float(to)) => {
            Some("a float from a general register into a shared one")
        }
        Kind::Vector if scalar && from == Type::U8 && is_signed(to) => {
            Some("a byte with its sign from a general register into a shared one")
        }
        Kind::Shared if scalar && from != to && !target.has_scalar_alu => {
            Some("a conversion in the shared file without a scalar ALU")
        }
        _ => None,
    }
}

/// Operations of two sources.
fn two(data: &InstrData, kinds: [Kind; 3], scalar: bool, target: &Target) -> Option<&'static str> {
    let [first, second, _] = kinds;
    let both = |kind: Kind| first == kind && second == kind;
    if scalar && [first, second].contains(&Kind::Vector) {
        return Some("a general register in a scalar operation");
    }
    // The scalar ALU reads two constants; Mesa uses that since 25.1.
    let ports = |kind: Kind| match scalar {
        true => kind == Kind::Const && !target.has_scalar_alu,
        false => matches!(kind, Kind::Const | Kind::Shared),
    };
    if ports(first) && ports(second) {
        return Some("two constants or shared registers");
    }
    // The barycentrics of `flat.b` are not read.
    if both(Kind::Immediate) && data.opcode != Opcode::FlatB {
        return Some("two immediates");
    }
    // Immediates have a sign and nine bits. Of floats the word has an index, and of varyings their number.
    let is_integer = !data.opcode.name().ends_with(".f") && data.opcode != Opcode::FlatB;
    let too_large = |src: &Src| match src.operand {
        SrcOperand::Immediate(bits) => {
            let value = if src.class.half { i32::from(bits as u16 as i16) } else { bits as i32 };
            !(-511..=511).contains(&value)
        }
        _ => false,
    };
    (is_integer && data.srcs.iter().any(too_large)).then_some("an immediate of more than nine bits and a sign")
}

/// Operations of three sources.
fn three(data: &InstrData, kinds: [Kind; 3], scalar: bool) -> Option<&'static str> {
    let takes_immediates =
        matches!(data.opcode, Opcode::Shrm | Opcode::Shlm | Opcode::Shrg | Opcode::Shlg | Opcode::Andg);
    if scalar && kinds.contains(&Kind::Vector) {
        return Some("a general register in a scalar operation");
    }
    if !scalar && kinds[1] == Kind::Shared {
        return Some("a shared register as the second source");
    }
    let is_direct = |src: &Src| matches!(src.operand, SrcOperand::Const(_));
    if takes_immediates && data.srcs.iter().any(is_direct) {
        return Some("a constant");
    }
    None
}

/// Meta instructions: one that becomes a copy has both sides in one file, or a constant or an immediate as its source.
fn meta(data: &InstrData) -> Option<&'static str> {
    // Copies between registers become moves, for any files.
    let in_registers = |place: Option<&Place>| matches!(place, Some(Place::Reg(_)));
    let pairs = data.opcode == Opcode::ParallelCopy;
    if !pairs && !matches!(data.opcode, Opcode::Phi | Opcode::Collect | Opcode::Split) {
        return None;
    }
    for (slot, src) in data.srcs.iter().enumerate() {
        let Some(dst) = data.dsts.get(if pairs { slot } else { 0 }) else {
            return Some("a source without a destination");
        };
        if !src.mods.is_empty() {
            return Some("a modifier of a copy");
        }
        if src.is_relative() {
            return Some("a copy of a relative register");
        }
        let is_number = matches!(Kind::of(src), Kind::Const | Kind::Immediate);
        if !is_number && !in_registers(Some(&dst.place)) && (Kind::of(src) == Kind::Shared) != is_shared(Some(dst)) {
            return Some("a copy from another file");
        }
    }
    None
}

/// The reason why the encoder's tables have no word for an instruction, or why its word decodes to another one.
fn without_word(program: &Program, data: &InstrData, target: &Target, extent: Extent) -> Option<String> {
    // The offset of a vector fetch may be a value until it becomes an immediate. A prefetch of a descriptor has no
    // result, and does not look at its coordinates. Nor does a `bary.f` that only releases the memory of the varyings.
    let is_prefetch =
        matches!(data.opcode, Opcode::Sam | Opcode::Ldc | Opcode::Resinfo | Opcode::BaryF) && !has_result(data);
    let has_values =
        data.srcs.iter().any(|src| src.value().is_some()) || data.dsts.iter().any(|dst| dst.value().is_some());
    if is_prefetch || has_values && data.flags.contains(InstrFlags::VECTOR) {
        return None;
    }
    let placed = Places::of(program, data)?;
    let word = match encode(target.generation, &placed, None) {
        Ok(word) => word,
        Err(EncodeError::NotKnown { .. }) if extent == Extent::Printed => return None,
        Err(error) => return Some(error.to_string()),
    };
    let is_another = |(decoded, dst): (&Dst, &Dst)| match (decoded.place.reg(), dst.place.reg()) {
        (Some(decoded), Some(reg)) => decoded != reg,
        _ => false,
    };
    let decoded = match decode(target.generation, word) {
        Ok(decoded) => decoded.data,
        Err(error) => return Some(error.to_string()),
    };
    if decoded.opcode != placed.opcode {
        return Some(format!("its word is `{}`", decoded.opcode));
    }
    if decoded.dsts.iter().zip(&data.dsts).any(is_another) {
        return Some("its word has another register of the result".to_owned());
    }
    first_mismatch(&decoded, &placed).map(|what| format!("its word has other {what}"))
}

/// The first field that the decoded word does not reproduce; fields without an encoding are ignored.
fn first_mismatch(decoded: &InstrData, placed: &InstrData) -> Option<&'static str> {
    let is_plain = matches!(placed.opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu)
        || placed.opcode == Opcode::Mov;
    let same_source = |decoded: &Src, src: &Src| {
        let places = match (decoded.place(), src.place()) {
            (Some(Place::Relative { offset: decoded, .. }), Some(Place::Relative { offset, .. })) => decoded == offset,
            _ => decoded.operand == src.operand,
        };
        places && decoded.mods == src.mods && decoded.class == src.class
    };
    // The registers that an access before a6xx reads depend on the descriptor.
    let is_old = matches!(&placed.attrs, Attrs::Memory(memory) if memory.old_layout);
    let same_mask = |decoded: &Src, src: &Src| is_old || decoded.class == src.class && decoded.mask == src.mask;
    let pairs = || decoded.srcs.iter().zip(&placed.srcs);
    if decoded.srcs.len() != placed.srcs.len() && is_plain
        || !pairs().all(|(decoded, src)| same_mask(decoded, src) && (!is_plain || same_source(decoded, src)))
    {
        return Some("sources");
    }
    if !decoded.dsts.iter().map(|dst| (dst.class, dst.mask)).eq(placed.dsts.iter().map(|dst| (dst.class, dst.mask))) {
        return Some("results");
    }
    if decoded.attrs != placed.attrs && said_attrs(&decoded.attrs, &placed.attrs) != placed.attrs {
        return Some("attributes");
    }
    // A descriptor that no lane computes is the same in all.
    let is_computed = placed.flags.contains(InstrFlags::S2EN);
    let unencoded = if is_computed { InstrFlags::empty() } else { InstrFlags::NONUNIFORM };
    (decoded.flags | unencoded != placed.flags | unencoded).then_some("flags")
}

/// The attributes of a word, with those of the encoded instruction where no word has them: the kind of memory of a
/// descriptor, and texture and sampler of an operation without them.
fn said_attrs(decoded: &Attrs, placed: &Attrs) -> Attrs {
    let mut decoded = decoded.clone();
    match (&mut decoded, placed) {
        (Attrs::Texture(decoded), Attrs::Texture(placed)) => {
            decoded.space = decoded.space.or(placed.space);
            decoded.texture = decoded.texture.or(placed.texture);
            decoded.sampler = decoded.sampler.or(placed.sampler);
            (decoded.is_1d, decoded.is_cube, decoded.is_fetch) = (placed.is_1d, placed.is_cube, placed.is_fetch);
        }
        (Attrs::Memory(decoded), Attrs::Memory(placed)) => {
            decoded.components = decoded.components.or(placed.components);
            decoded.coords = decoded.coords.or(placed.coords);
            decoded.space = decoded.space.or(placed.space);
            decoded.volatile = placed.volatile;
        }
        _ => {}
    }
    decoded
}

/// Registers for the values of one instruction.
struct Places {
    /// The next free register of 32 bits or 16 bits in the general and in the shared file.
    general: u16,
    shared: u16,
}

impl Places {
    /// The instruction with registers instead of values, without the marks that only the compiler uses. `None` if there
    /// are not enough.
    fn of(program: &Program, data: &InstrData) -> Option<InstrData> {
        let mut data = data.clone();
        data.unconstrain();
        data.flags -= InstrFlags::UNUSED;
        let mut places = Self { general: 4, shared: 48 * 4 };
        let dsts: SmallVec<[(Place, bool); 4]> =
            data.dsts.iter().map(|dst| (dst.place, dst.flags.contains(OperandFlags::TIED))).collect();
        let address = if data.flags.contains(InstrFlags::A1EN)
            || matches!(data.attrs, Attrs::Move { dst: Type::U16, .. })
                && data.dsts.iter().any(|dst| dst.class.file == RegFile::Address)
        {
            PhysReg::A1_X
        } else {
            PhysReg::A0_X
        };
        for dst in &mut data.dsts {
            dst.flags &= OperandFlags::R | OperandFlags::LAST;
            dst.place = places.place(program, dst.place, dst.class, dst.mask, address)?;
        }
        // A write to one element of an array keeps the others; the hardware does so without a source.
        let is_array = |place: &Place| matches!(place, Place::Relative { .. } | Place::Array(_));
        let writes_array = dsts.first().is_some_and(|(place, _)| is_array(place));
        let is_alu = matches!(data.opcode.category(), Category::Move | Category::Alu2 | Category::Alu3 | Category::Sfu);
        if writes_array || is_alu {
            let kept = writes_array.then(|| SrcOperand::Place(dsts[0].0));
            data.srcs.retain(|src| Some(src.operand) != kept && !src.flags.contains(OperandFlags::TIED));
        }
        let mut tied: SmallVec<[Place; 4]> =
            data.dsts.iter().zip(&dsts).filter(|(_, (_, tied))| *tied).map(|(dst, _)| dst.place).rev().collect();
        for src in &mut data.srcs {
            let is_tied = src.flags.contains(OperandFlags::TIED);
            src.flags &= OperandFlags::R | OperandFlags::LAST;
            let place = match src.operand {
                SrcOperand::Const(_) | SrcOperand::ConstRelative(_) | SrcOperand::Immediate(_) => continue,
                _ if is_tied && !tied.is_empty() => tied.pop()?,
                SrcOperand::Place(place) => places.place(program, place, src.class, src.mask, address)?,
                SrcOperand::Undef => places.register(src.class, src.mask, address)?,
            };
            src.operand = SrcOperand::Place(place);
        }
        Some(data)
    }

    fn place(
        &mut self,
        program: &Program,
        place: Place,
        class: RegClass,
        mask: WriteMask,
        address: PhysReg,
    ) -> Option<Place> {
        Some(match place {
            Place::Reg(_) | Place::Relative { .. } => place,
            Place::Assigned(_, reg) => Place::Reg(reg),
            Place::Value(_) => self.register(class, mask, address)?,
            Place::Array(access) if access.relative => {
                Place::Relative { offset: access.offset, size: program.arrays.get(access.array)?.length }
            }
            Place::Array(_) => self.register(class, mask, address)?,
        })
    }

    fn register(&mut self, class: RegClass, mask: WriteMask, address: PhysReg) -> Option<Place> {
        let count = mask.span() as u16;
        let (next, end) = match class.file {
            RegFile::Predicate => return Some(Place::Reg(PhysReg::P0_X)),
            RegFile::Address => return Some(Place::Reg(address)),
            RegFile::General => (&mut self.general, 48 * 4),
            RegFile::Shared => (&mut self.shared, 56 * 4),
        };
        let first = *next;
        // Vectors of the shared file may not fit all at once: they may be the same.
        *next = if first + 2 * count < end { first + count } else { first };
        (first + count <= end).then_some(Place::Reg(PhysReg(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::ir3::TextureAttrs;
    use ir3_compiler::ir3::legality::valid_source;

    const R: RegClass = RegClass::FULL;
    const S: RegClass = RegClass::SHARED;

    fn reg(class: RegClass) -> Src {
        let base = if class.file == RegFile::Shared { PhysReg::SHARED_FIRST } else { PhysReg::new(1, 0) };
        Src::reg(Place::Reg(base), class, WriteMask::SCALAR)
    }

    fn why(opcode: Opcode, class: RegClass, srcs: &[Src]) -> Option<String> {
        let mut data = InstrData::new(opcode);
        let first = if class.file == RegFile::Shared { PhysReg::SHARED_FIRST } else { PhysReg::new(0, 0) };
        data.dsts.push(Dst::new(Place::Reg(first), class, WriteMask::SCALAR));
        data.srcs.extend_from_slice(srcs);
        reason(&Program::default(), &data, &Target::default(), Extent::All)
    }

    /// The rules that words do not show, each with a neighbour that is legal.
    #[test]
    fn what_the_hardware_lacks_is_refused() {
        let (c, i) = (Src::constant(5, false), Src::immediate(5, false));
        let large = Src::immediate(512, false);
        let least = Src::immediate(-512i32 as u32, false);
        for (opcode, class, srcs, is_legal) in [
            (Opcode::AddU, R, &[c, reg(R)][..], true),
            (Opcode::AddU, R, &[c, c], false),
            (Opcode::AddU, R, &[c, reg(S)], false),
            (Opcode::AddU, R, &[reg(S), reg(S)], false),
            (Opcode::AddU, R, &[i, i], false),
            (Opcode::AddU, R, &[c, i], true),
            (Opcode::AddU, R, &[reg(R), large], false),
            (Opcode::AddU, R, &[reg(R), least], false),
            (Opcode::AddU, S, &[reg(S), reg(S)], true),
            (Opcode::AddU, S, &[reg(S), reg(R)], false),
            // The scalar ALU of this GPU reads both.
            (Opcode::AddU, S, &[c, c], true),
            (Opcode::MulF, R, &[reg(R), Src::immediate(2.0f32.to_bits(), false)], true),
            (Opcode::MulF, R, &[reg(R), Src::immediate(3.0f32.to_bits(), false)], false),
            (Opcode::MadF32, R, &[c, reg(R), c], true),
            (Opcode::MadF32, R, &[reg(R), c, reg(R)], false),
            (Opcode::MadF32, R, &[reg(R), reg(S), reg(R)], false),
            (Opcode::MadF32, R, &[reg(R), reg(R), i], false),
            (Opcode::Shrm, R, &[i, reg(R), i], true),
            (Opcode::Shrm, R, &[reg(R), i, i], false),
            (Opcode::Shrm, R, &[c, reg(R), i], false),
            (Opcode::Rcp, R, &[reg(R)], true),
            (Opcode::Rcp, R, &[c], false),
            (Opcode::Rcp, R, &[reg(S)], false),
            (Opcode::Phi, R, &[reg(R), c], true),
            (Opcode::Collect, R, &[i, i], true),
        ] {
            assert_eq!(
                why(opcode, class, srcs).is_none(),
                is_legal,
                "{opcode} {srcs:?}: {:?}",
                why(opcode, class, srcs)
            );
        }
    }

    #[test]
    fn a_size_has_three_components() {
        let judge = |components| {
            let mut data = InstrData::new(Opcode::Resinfo);
            data.srcs.push(Src::immediate(0, false));
            data.dsts.push(Dst::new(Place::Reg(PhysReg::new(0, 0)), R, WriteMask::first(components)));
            results(&data)
        };
        assert!(judge(3).is_none());
        assert!(judge(1).is_some() && judge(2).is_some());
    }

    /// The table of the passes allows nothing that this module refuses, for all pairs of kinds in the operations of two
    /// sources: where it did, a pass would make an instruction that no validator of its own refuses.
    #[test]
    fn the_table_of_the_passes_is_no_wider() {
        let target = Target::default();
        let kinds = |half: bool| {
            let class = RegClass::general(half);
            [reg(class), Src::constant(5, half), Src::immediate(5, half), reg(RegClass { file: RegFile::Shared, half })]
        };
        let mut refused = 0;
        for opcode in [
            Opcode::AddU,
            Opcode::AddF,
            Opcode::MinS,
            Opcode::AndB,
            Opcode::MulS24,
            Opcode::CmpsU,
            Opcode::Shlg,
            Opcode::MadF32,
        ] {
            for class in [R, S] {
                for first in kinds(false) {
                    for second in kinds(false) {
                        for third in kinds(false) {
                            let mut data = InstrData::new(opcode);
                            let base = if class == S { PhysReg::SHARED_FIRST } else { PhysReg::new(0, 0) };
                            data.dsts.push(Dst::new(Place::Reg(base), class, WriteMask::SCALAR));
                            let count = if opcode.category() == Category::Alu3 { 3 } else { 2 };
                            data.srcs.extend([first, second, third].into_iter().take(count));
                            if opcode == Opcode::CmpsU {
                                data.attrs = Attrs::Compare(ir3_compiler::ir3::Condition::Lt);
                            }
                            let legal_at = |slot: usize| valid_source(&target, &data, slot, &data.srcs[slot]);
                            let allowed = (0..count).all(legal_at);
                            let why = reason(&Program::default(), &data, &target, Extent::All);
                            refused += u32::from(why.is_some());
                            assert!(!allowed || why.is_none(), "{data:?}: {why:?}");
                        }
                    }
                }
            }
        }
        assert!(refused > 200, "{refused}");
    }

    /// The address of an indexed access, and nothing else of an access, may be in constants, on a7xx.
    #[test]
    fn addresses_in_constants() {
        for (gpu, opcode, slot, word, is_legal) in [
            ("a750", Opcode::LdgA, 0, 255, true),
            ("a750", Opcode::StgA, 0, 0, true),
            ("a750", Opcode::StgA, 0, 256, false),
            ("a750", Opcode::LdgA, 1, 4, false),
            ("a750", Opcode::StgA, 4, 4, false),
            ("a750", Opcode::Ldg, 0, 4, false),
            ("a660", Opcode::LdgA, 0, 4, false),
        ] {
            let target = &Target::by_name(gpu).expect("a GPU");
            let mut data = InstrData::new(opcode);
            let zero = Src::immediate(0, false);
            let address = Src { mask: WriteMask::first(2), ..reg(R) };
            data.srcs.extend(match opcode {
                Opcode::Ldg => vec![address, zero, zero],
                _ => vec![address, reg(R), zero, zero, reg(R), zero],
            });
            data.srcs[slot] = Src::constant(word, false);
            assert_eq!(valid_source(target, &data, slot, &data.srcs[slot]), is_legal, "{gpu} {data:?}");
            assert_eq!(illegal_combination(&data, target).is_none(), is_legal, "{gpu} {data:?}");
        }
    }

    /// A move that claims two results, coordinates that no flag counts, a word without a mark or with another texture:
    /// runs and proofs take the instruction at face value, and the hardware executes another.
    #[test]
    fn what_no_word_says_is_found() {
        let target = Target::by_name("a660").unwrap();
        let program = Program::default();
        let judge = |data: &InstrData| reason(&program, data, &target, Extent::All);
        let general = |first: u16, count: u32| (Place::Reg(PhysReg::new(first, 0)), R, WriteMask::first(count));
        let dst = |(place, class, mask)| Dst::new(place, class, mask);
        let src = |(place, class, mask)| Src::reg(place, class, mask);
        let mut mov = InstrData::new(Opcode::Mov);
        mov.attrs = Attrs::Move { src: Type::U32, dst: Type::U32, round: Default::default() };
        mov.dsts.push(dst(general(0, 1)));
        mov.srcs.push(src(general(1, 1)));
        assert_eq!(judge(&mov), None);
        mov.dsts[0].mask = WriteMask::first(2);
        assert_eq!(judge(&mov).as_deref(), Some("its word has other results"));

        let mut sam = InstrData::new(Opcode::Sam);
        let texture = TextureAttrs { ty: Some(Type::F32), sampler: Some(1), texture: Some(2), ..Default::default() };
        sam.attrs = Attrs::Texture(texture);
        sam.dsts.push(dst(general(0, 4)));
        sam.srcs.push(src(general(2, 2)));
        assert_eq!(judge(&sam), None);
        let change = |change: fn(&mut InstrData)| {
            let mut sam = sam.clone();
            change(&mut sam);
            judge(&sam)
        };
        // Three coordinates need the flag of an array or of a volume.
        assert_eq!(change(|sam| sam.srcs[0].mask = WriteMask::first(3)).as_deref(), Some("its word has other sources"));
        assert_eq!(change(|sam| sam.flags |= InstrFlags::ARRAY).as_deref(), Some("its word has other sources"));
        // The descriptors are no register, so they cannot differ between lanes.
        assert_eq!(change(|sam| sam.flags |= InstrFlags::NONUNIFORM), None);
        let decoded = InstrData { flags: InstrFlags::S2EN, ..sam.clone() };
        let placed = InstrData { flags: InstrFlags::S2EN | InstrFlags::NONUNIFORM, ..sam.clone() };
        assert_eq!(first_mismatch(&decoded, &decoded), None);
        assert_eq!(first_mismatch(&decoded, &placed), Some("flags"));
        let placed = InstrData { attrs: Attrs::Texture(TextureAttrs { texture: Some(3), ..texture }), ..sam.clone() };
        assert_eq!(first_mismatch(&sam, &placed), Some("attributes"));
    }
}
