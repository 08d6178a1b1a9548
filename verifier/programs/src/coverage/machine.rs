//! Coverage cells of ir3 instructions: an opcode with the form of a source or a destination, a modifier, a flag, a type
//! or a condition.

use ir3_compiler::ir3::legality::valid_source;
use ir3_compiler::ir3::{
    Attrs, Category, Condition, Dst, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, Program, RegClass, RegFile,
    Round, Src, SrcOperand, Type, WriteMask,
};
use ir3_compiler::target::Target;
use ir3_compiler::words;

const SOURCES: u32 = 3;

words! {
    /// The form of a source.
    pub(super) enum SourceForm {
        Full = "full",
        Half = "half",
        Shared = "shared",
        HalfShared = "half shared",
        Predicate = "predicate",
        Constant = "constant",
        HalfConstant = "half constant",
        RelativeConstant = "relative constant",
        Immediate = "immediate",
        HalfImmediate = "half immediate",
        Relative = "relative",
        Negated = "negated",
        Absolute = "absolute",
    }
}

impl SourceForm {
    /// The general register of the same width; none if the form has no width.
    pub fn register(self) -> Option<Self> {
        match self {
            Self::Full | Self::Shared | Self::Constant | Self::RelativeConstant | Self::Immediate | Self::Relative => {
                Some(Self::Full)
            }
            Self::Half | Self::HalfShared | Self::HalfConstant | Self::HalfImmediate => Some(Self::Half),
            Self::Predicate | Self::Negated | Self::Absolute => None,
        }
    }
}

words! {
    /// The form of a result.
    pub(super) enum ResultForm {
        Full = "full",
        Half = "half",
        Shared = "shared",
        HalfShared = "half shared",
        Predicate = "predicate",
        Address = "address",
        Relative = "relative",
        Vector = "a vector",
    }
}

words! {
    /// A further property of an instruction.
    pub(super) enum Mark {
        Alone = "alone",
        Saturated = "saturated",
        Repeated = "repeated",
        Nops = "nops",
        Rounded = "rounded",
        Not = "not",
    }
}

/// The property that a cell number encodes, in addition to the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Source(usize, SourceForm),
    Result(ResultForm),
    Mark(Mark),
    Condition(Condition),
    Type(Type),
}

const FIRST_RESULT: u32 = SOURCES * SourceForm::ALL.len() as u32;
const FIRST_MARK: u32 = FIRST_RESULT + ResultForm::ALL.len() as u32;
const FIRST_CONDITION: u32 = FIRST_MARK + Mark::ALL.len() as u32;
const FIRST_TYPE: u32 = FIRST_CONDITION + Condition::ALL.len() as u32;
const STRIDE: u32 = FIRST_TYPE + Type::ALL.len() as u32;

pub(super) const SIZE: u32 = Opcode::ALL.len() as u32 * STRIDE;

/// The opcode and the property of a number.
pub(super) fn property(number: u32) -> (Opcode, Property) {
    let (opcode, rest) = (Opcode::ALL[(number / STRIDE) as usize], number % STRIDE);
    let forms = SourceForm::ALL.len() as u32;
    let property = if rest < FIRST_RESULT {
        Property::Source((rest / forms) as usize, SourceForm::ALL[(rest % forms) as usize])
    } else if rest < FIRST_MARK {
        Property::Result(ResultForm::ALL[(rest - FIRST_RESULT) as usize])
    } else if rest < FIRST_CONDITION {
        Property::Mark(Mark::ALL[(rest - FIRST_MARK) as usize])
    } else if rest < FIRST_TYPE {
        Property::Condition(Condition::ALL[(rest - FIRST_CONDITION) as usize])
    } else {
        Property::Type(Type::ALL[(rest - FIRST_TYPE) as usize])
    };
    (opcode, property)
}

/// The number of a property of an opcode.
pub(super) fn number(opcode: Opcode, property: Property) -> u32 {
    let rest = match property {
        Property::Source(slot, form) => slot as u32 * SourceForm::ALL.len() as u32 + form as u32,
        Property::Result(form) => FIRST_RESULT + form as u32,
        Property::Mark(mark) => FIRST_MARK + mark as u32,
        Property::Condition(condition) => FIRST_CONDITION + condition as u32,
        Property::Type(ty) => FIRST_TYPE + ty as u32,
    };
    opcode as u32 * STRIDE + rest
}

/// The name of a cell; none if the row of the opcode rules it out, or the encoding.
pub(super) fn name(number: u32, is_final: bool) -> Option<String> {
    let (opcode, property) = property(number);
    let info = opcode.info();
    // Opcodes that only one of the two kinds of program has.
    if is_final && (opcode.is_meta() || opcode.is_macro()) {
        return None;
    }
    let what = match property {
        Property::Source(slot, form) => {
            let fits = slot < usize::from(info.max_srcs.min(info.min_srcs.max(1))) && source_fits(opcode, slot, form);
            fits.then(|| format!("source {slot} {form}"))?
        }
        Property::Result(form) => {
            let fits = info.dsts > 0
                && match form {
                    ResultForm::Full | ResultForm::Half => true,
                    ResultForm::Shared | ResultForm::HalfShared => opcode.has_scalar_form(),
                    ResultForm::Predicate => {
                        opcode.is_comparison()
                            || matches!(opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB | Opcode::GetbitB)
                    }
                    ResultForm::Address | ResultForm::Relative => opcode == Opcode::Mov,
                    ResultForm::Vector => matches!(info.category, Category::Texture | Category::Memory),
                };
            fits.then(|| format!("result {form}"))?
        }
        Property::Mark(mark) => {
            let fits = match mark {
                Mark::Alone => true,
                Mark::Saturated => opcode.can_saturate(),
                Mark::Repeated => is_final && opcode.can_repeat(),
                // Special functions have no field for it.
                Mark::Nops => is_final && matches!(info.category, Category::Alu2 | Category::Alu3),
                Mark::Rounded => opcode == Opcode::Mov,
                Mark::Not => opcode.source_mods(0).contains(Mods::NOT),
            };
            fits.then(|| mark.name().to_owned())?
        }
        Property::Condition(condition) => opcode.is_comparison().then(|| condition.name().to_owned())?,
        Property::Type(ty) => {
            let typed = matches!(info.category, Category::Texture) || opcode == Opcode::Mov;
            typed.then(|| ty.name().to_owned())?
        }
    };
    Some(format!("{opcode}, {what}"))
}

/// Returns true if an instruction of the opcode whose other operands are general registers can encode a source of the
/// form.
fn source_fits(opcode: Opcode, slot: usize, form: SourceForm) -> bool {
    let general = |half| Src::reg(Place::Reg(PhysReg(0)), RegClass::general(half), WriteMask::SCALAR);
    let shared = |class| Src::reg(Place::Reg(PhysReg::SHARED_FIRST), class, WriteMask::SCALAR);
    let relative = Place::Relative { offset: 0, size: 2 };
    let src = match form {
        SourceForm::Full => general(false),
        SourceForm::Half => general(true),
        SourceForm::Shared => shared(RegClass::SHARED),
        SourceForm::HalfShared => shared(RegClass::SHARED_HALF),
        SourceForm::Predicate => return opcode.reads_predicates(),
        SourceForm::Constant => Src::constant(0, false),
        SourceForm::HalfConstant => Src::constant(0, true),
        SourceForm::RelativeConstant => Src::new(SrcOperand::ConstRelative(0), RegClass::FULL, WriteMask::SCALAR),
        SourceForm::Immediate => Src::immediate(0, false),
        SourceForm::HalfImmediate => Src::immediate(0, true),
        SourceForm::Relative => Src::reg(relative, RegClass::FULL, WriteMask::SCALAR),
        SourceForm::Negated => general(false).with_mods(Mods::NEG),
        SourceForm::Absolute => general(false).with_mods(Mods::ABS),
    };
    let mut data = InstrData::new(opcode);
    let half = src.class.half;
    data.dsts.push(Dst::new(Place::Reg(PhysReg(0)), RegClass::general(half), WriteMask::SCALAR));
    data.srcs.extend((0..usize::from(opcode.info().min_srcs)).map(|_| general(half)));
    !opcode.reads_predicates() && valid_source(&Target::default(), &data, slot, &src)
}

fn source_form(src: &Src) -> SourceForm {
    use SourceForm as F;
    let of = |full, half| if src.class.half { half } else { full };
    match src.operand {
        SrcOperand::Const(_) => of(F::Constant, F::HalfConstant),
        SrcOperand::ConstRelative(_) => F::RelativeConstant,
        SrcOperand::Immediate(_) => of(F::Immediate, F::HalfImmediate),
        SrcOperand::Place(Place::Relative { .. }) => F::Relative,
        SrcOperand::Place(Place::Array(access)) if access.relative => F::Relative,
        SrcOperand::Place(_) | SrcOperand::Undef => match src.class.file {
            RegFile::General | RegFile::Address => of(F::Full, F::Half),
            RegFile::Shared => of(F::Shared, F::HalfShared),
            RegFile::Predicate => F::Predicate,
        },
    }
}

fn result_form(dst: &Dst) -> ResultForm {
    use ResultForm as F;
    let is_relative = match dst.place {
        Place::Relative { .. } => true,
        Place::Array(access) => access.relative,
        _ => false,
    };
    match (dst.class.file, dst.class.half) {
        _ if is_relative => F::Relative,
        (RegFile::General, false) => F::Full,
        (RegFile::General, true) => F::Half,
        (RegFile::Shared, false) => F::Shared,
        (RegFile::Shared, true) => F::HalfShared,
        (RegFile::Predicate, _) => F::Predicate,
        (RegFile::Address, _) => F::Address,
    }
}

/// The numbers of the cells of a program.
pub(super) fn visit(program: &Program, mut visit: impl FnMut(u32)) {
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let mut add = |property| visit(number(data.opcode, property));
        add(Property::Mark(Mark::Alone));
        for (slot, src) in data.srcs.iter().enumerate().take(SOURCES as usize) {
            add(Property::Source(slot, source_form(src)));
            if src.mods.contains(Mods::NEG) {
                add(Property::Source(slot, SourceForm::Negated));
            }
            if src.mods.contains(Mods::ABS) {
                add(Property::Source(slot, SourceForm::Absolute));
            }
            if src.mods.contains(Mods::NOT) {
                add(Property::Mark(Mark::Not));
            }
        }
        for dst in &data.dsts {
            add(Property::Result(result_form(dst)));
            if dst.mask != WriteMask::SCALAR {
                add(Property::Result(ResultForm::Vector));
            }
        }
        let marks = [
            (Mark::Saturated, data.flags.contains(InstrFlags::SAT)),
            (Mark::Repeated, data.repeat > 0),
            (Mark::Nops, data.nop > 0),
        ];
        marks.iter().filter(|(_, is_set)| *is_set).for_each(|(mark, _)| add(Property::Mark(*mark)));
        match &data.attrs {
            Attrs::Compare(condition) => add(Property::Condition(*condition)),
            Attrs::Move { src, dst, round } => {
                add(Property::Type(*src));
                if dst != src {
                    add(Property::Type(*dst));
                }
                if *round != Round::Default {
                    add(Property::Mark(Mark::Rounded));
                }
            }
            Attrs::Texture(texture) => texture.ty.iter().for_each(|&ty| add(Property::Type(ty))),
            _ => {}
        }
    }
}
