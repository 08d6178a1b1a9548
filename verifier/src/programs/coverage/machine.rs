//! Instructions of ir3: an opcode and the form of a source or a destination, a modifier, a flag, a type, a condition.

use ir3_compiler::ir3::legality::valid_source;
use ir3_compiler::ir3::{
    Attrs, Category, Condition, Dst, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, Program, RegClass, RegFile,
    Round, Src, SrcOperand, Type, WriteMask,
};
use ir3_compiler::target::Target;

const SOURCES: u32 = 3;
const SOURCE_FORMS: [&str; 13] = [
    "full",
    "half",
    "shared",
    "half shared",
    "predicate",
    "constant",
    "half constant",
    "relative constant",
    "immediate",
    "half immediate",
    "relative",
    "negated",
    "absolute",
];
const RESULT_FORMS: [&str; 8] =
    ["full", "half", "shared", "half shared", "predicate", "address", "relative", "a vector"];
const OTHERS: [&str; 6] = ["alone", "saturated", "repeated", "nops", "rounded", "not"];

const FIRST_RESULT: u32 = SOURCES * SOURCE_FORMS.len() as u32;
const FIRST_OTHER: u32 = FIRST_RESULT + RESULT_FORMS.len() as u32;
const FIRST_CONDITION: u32 = FIRST_OTHER + OTHERS.len() as u32;
const FIRST_TYPE: u32 = FIRST_CONDITION + Condition::ALL.len() as u32;
const STRIDE: u32 = FIRST_TYPE + Type::ALL.len() as u32;

pub(super) const SIZE: u32 = Opcode::ALL.len() as u32 * STRIDE;

/// The name of a cell; none if the row of the opcode rules it out, or the encoding.
pub(super) fn name(number: u32, is_final: bool) -> Option<String> {
    let (opcode, rest) = (Opcode::ALL[(number / STRIDE) as usize], number % STRIDE);
    let info = opcode.info();
    // What only one of the two kinds of program has.
    if is_final && (opcode.is_meta() || opcode.is_macro()) {
        return None;
    }
    let at = |rest: u32, of: &[&str]| of[rest as usize % of.len()].to_owned();
    let computes = matches!(info.category, Category::Alu2 | Category::Alu3 | Category::Sfu);
    let what = if rest < FIRST_RESULT {
        let (slot, form) = (rest / SOURCE_FORMS.len() as u32, rest as usize % SOURCE_FORMS.len());
        let fits = slot < u32::from(info.max_srcs).min(u32::from(info.min_srcs).max(1))
            && source_fits(opcode, slot as usize, form);
        fits.then(|| format!("source {slot} {}", SOURCE_FORMS[form]))?
    } else if rest < FIRST_OTHER {
        let form = rest - FIRST_RESULT;
        let scalar = opcode.has_scalar_form();
        let fits = info.dsts > 0
            && match form {
                0 | 1 => true,
                2 | 3 => scalar,
                4 => {
                    opcode.is_comparison()
                        || matches!(opcode, Opcode::AndB | Opcode::OrB | Opcode::XorB | Opcode::GetbitB)
                }
                5 | 6 => opcode == Opcode::Mov,
                _ => matches!(info.category, Category::Texture | Category::Memory),
            };
        fits.then(|| format!("result {}", at(form, &RESULT_FORMS)))?
    } else if rest < FIRST_CONDITION {
        let other = rest - FIRST_OTHER;
        let fits = match other {
            0 => true,
            1 => opcode.can_saturate(),
            2 => is_final && opcode.can_repeat(),
            3 => is_final && computes,
            4 => opcode == Opcode::Mov,
            _ => opcode.source_mods(0).contains(Mods::NOT),
        };
        fits.then(|| at(other, &OTHERS))?
    } else if rest < FIRST_TYPE {
        let condition = Condition::ALL[(rest - FIRST_CONDITION) as usize];
        opcode.is_comparison().then(|| condition.name().to_owned())?
    } else {
        let typed = matches!(info.category, Category::Texture) || opcode == Opcode::Mov;
        typed.then(|| Type::ALL[(rest - FIRST_TYPE) as usize].name().to_owned())?
    };
    Some(format!("{opcode}, {what}"))
}

/// Returns true if an instruction of the opcode, with general registers beside, can encode a source of the form.
fn source_fits(opcode: Opcode, slot: usize, form: usize) -> bool {
    let general = |half| Src::reg(Place::Reg(PhysReg(0)), RegClass::general(half), WriteMask::SCALAR);
    let shared = |half| {
        let class = if half { RegClass::SHARED_HALF } else { RegClass::SHARED };
        Src::reg(Place::Reg(PhysReg::SHARED_FIRST), class, WriteMask::SCALAR)
    };
    let relative = Place::Relative { offset: 0, size: 2 };
    let src = match form {
        0 | 1 => general(form == 1),
        2 | 3 => shared(form == 3),
        4 => return opcode.reads_predicates(),
        5 | 6 => Src::constant(0, form == 6),
        7 => Src::new(SrcOperand::ConstRelative(0), RegClass::FULL, WriteMask::SCALAR),
        8 | 9 => Src::immediate(0, form == 9),
        10 => Src::reg(relative, RegClass::FULL, WriteMask::SCALAR),
        11 => general(false).with_mods(Mods::NEG),
        _ => general(false).with_mods(Mods::ABS),
    };
    let mut data = InstrData::new(opcode);
    let half = src.class.half;
    data.dsts.push(Dst::new(Place::Reg(PhysReg(0)), RegClass::general(half), WriteMask::SCALAR));
    data.srcs.extend((0..usize::from(opcode.info().min_srcs)).map(|_| general(half)));
    !opcode.reads_predicates() && valid_source(&Target::default(), &data, slot, &src)
}

fn source_form(src: &Src) -> u32 {
    let half = u32::from(src.class.half);
    match src.operand {
        SrcOperand::Const(_) => 5 + half,
        SrcOperand::ConstRelative(_) => 7,
        SrcOperand::Immediate(_) => 8 + half,
        SrcOperand::Place(Place::Relative { .. }) => 10,
        SrcOperand::Place(Place::Array(access)) if access.relative => 10,
        SrcOperand::Place(_) | SrcOperand::Undef => match src.class.file {
            RegFile::General | RegFile::Address => half,
            RegFile::Shared => 2 + half,
            RegFile::Predicate => 4,
        },
    }
}

fn result_form(dst: &Dst) -> u32 {
    let is_relative = match dst.place {
        Place::Relative { .. } => true,
        Place::Array(access) => access.relative,
        _ => false,
    };
    match dst.class.file {
        _ if is_relative => 6,
        RegFile::General => u32::from(dst.class.half),
        RegFile::Shared => 2 + u32::from(dst.class.half),
        RegFile::Predicate => 4,
        RegFile::Address => 5,
    }
}

/// The numbers of the cells of a program.
pub(super) fn visit(program: &Program, mut visit: impl FnMut(u32)) {
    for (_, instr) in program.iter_instrs() {
        let data = &program.instrs[instr];
        let first = data.opcode as u32 * STRIDE;
        visit(first + FIRST_OTHER);
        for (slot, src) in (0..SOURCES).zip(&data.srcs) {
            let at = first + slot * SOURCE_FORMS.len() as u32;
            visit(at + source_form(src));
            if src.mods.contains(Mods::NEG) {
                visit(at + 11);
            }
            if src.mods.contains(Mods::ABS) {
                visit(at + 12);
            }
            if src.mods.contains(Mods::NOT) {
                visit(first + FIRST_OTHER + 5);
            }
        }
        for dst in &data.dsts {
            visit(first + FIRST_RESULT + result_form(dst));
            if dst.mask != WriteMask::SCALAR {
                visit(first + FIRST_RESULT + 7);
            }
        }
        let marks = [(1, data.flags.contains(InstrFlags::SAT)), (2, data.repeat > 0), (3, data.nop > 0)];
        marks.iter().filter(|(_, is_set)| *is_set).for_each(|(other, _)| visit(first + FIRST_OTHER + other));
        match &data.attrs {
            Attrs::Compare(condition) => visit(first + FIRST_CONDITION + *condition as u32),
            Attrs::Move { src, dst, round } => {
                visit(first + FIRST_TYPE + *src as u32);
                if dst != src {
                    visit(first + FIRST_TYPE + *dst as u32);
                }
                if *round != Round::Default {
                    visit(first + FIRST_OTHER + 4);
                }
            }
            Attrs::Texture(texture) => texture.ty.iter().for_each(|&ty| visit(first + FIRST_TYPE + ty as u32)),
            _ => {}
        }
    }
}
