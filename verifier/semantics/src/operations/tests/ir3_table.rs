//! ir3's operations against `ir3_table.txt`.

use std::collections::BTreeSet;

use ir3_compiler::ir3::opcode::Category;
use ir3_compiler::ir3::{
    Attrs, Condition, Dst, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, RegClass, Round, Src, Type, WriteMask,
};

use crate::arithmetic::rows::{LANES, splat};
use crate::operations::tests::{bits, lines};
use crate::operations::{Kernel, Select, ir3_alu};

pub(super) const TYPES: [Type; 9] =
    [Type::F16, Type::F32, Type::U16, Type::U32, Type::S16, Type::S32, Type::U8, Type::U8In32, Type::U64];
pub(super) const CONDITIONS: [Condition; 6] =
    [Condition::Lt, Condition::Le, Condition::Gt, Condition::Ge, Condition::Eq, Condition::Ne];

pub(super) fn instr(opcode: Opcode, attrs: Attrs, widths: (u8, u8), srcs: usize) -> InstrData {
    let class = |width: u8| RegClass::general(width == 16);
    let place = Place::Reg(PhysReg(0));
    let mut data = InstrData::new(opcode);
    data.attrs = attrs;
    data.dsts.push(Dst::new(place, class(widths.1), WriteMask::SCALAR));
    data.srcs.extend((0..srcs).map(|_| Src::reg(place, class(widths.0), WriteMask::SCALAR)));
    data
}

pub(super) fn evaluate(instr: &InstrData, operands: &[u32]) -> Option<u32> {
    let alu = ir3_alu::kernel(instr)?;
    let mut rows: Vec<_> = operands.iter().map(|&bits| splat(bits)).collect();
    for (index, row) in rows.iter_mut().enumerate() {
        if let Some(modifier) = ir3_alu::modifier(instr, index) {
            (modifier.run)(row);
        }
    }
    let mut out = [0xdead_beef; LANES];
    match alu.kernel {
        Kernel::One(kernel) => (kernel.run)(&mut out, &rows[0]),
        Kernel::Two(kernel) => (kernel.run)(&mut out, &rows[0], &rows[1]),
        Kernel::Three(kernel) => (kernel.run)(&mut out, &rows[0], &rows[1], &rows[2]),
        Kernel::Select(Select { test, condition, yes, no }) => {
            let mask = (test.run)(&rows[usize::from(condition)]);
            Select::blend(&mut out, mask, &rows[usize::from(yes)], &rows[usize::from(no)]);
        }
        Kernel::Rows(_) => panic!("ir3 has no such kernels"),
    }
    if let Some(clamp) = alu.clamp {
        (clamp.run)(&mut out);
    }
    assert_eq!(out, splat(out[0]), "lanes with the same operands have the same result");
    Some(out[0])
}

/// The opcode of a name and its suffixes: a condition or two types.
fn opcode(name: &str) -> (Opcode, Attrs) {
    if let Some(types) = name.strip_prefix("mov.") {
        let ty = |name: &str| TYPES.into_iter().find(|ty| ty.name() == name).expect("a type");
        let (src, dst) = types.split_once('.').expect("two types");
        return (Opcode::Mov, Attrs::Move { src: ty(src), dst: ty(dst), round: Round::Default });
    }
    if let Some((head, tail)) = name.rsplit_once('.')
        && head.starts_with("cmps")
        && let Some(condition) = CONDITIONS.into_iter().find(|condition| condition.name() == tail)
    {
        return (Opcode::from_name(head).expect("an opcode"), Attrs::Compare(condition));
    }
    (Opcode::from_name(name).unwrap_or_else(|| panic!("no opcode {name}")), Attrs::None)
}

#[test]
fn every_operation_has_the_results_of_the_table() {
    let mut covered = BTreeSet::new();
    for (number, line) in lines(include_str!("ir3_table.txt")) {
        let (head, tail) = line.split_once(": ").expect("a colon");
        let (operands, expected) = tail.split_once('=').expect("an equals sign");
        let words: Vec<&str> = head.split(' ').collect();
        let (from, to) = words[words.len() - 1].split_once('>').expect("widths");
        let widths: (u8, u8) = (from.parse().unwrap(), to.parse().unwrap());
        let (opcode, attrs) = opcode(words[0]);
        covered.insert(opcode);
        let operands: Vec<u32> = operands.split_whitespace().map(|word| bits(word, widths.0) as u32).collect();
        let mut data = instr(opcode, attrs, widths, operands.len());
        data.flags.set(InstrFlags::SAT, words.contains(&"(sat)"));
        let found = evaluate(&data, &operands).unwrap_or_else(|| panic!("line {number}: {line}: no kernel"));
        assert_eq!(found, bits(expected.trim(), widths.1) as u32, "line {number}: {line}: {found:#x}");
    }
    // Without a definition, and so refused: the compiler does not emit them, or they are not per lane.
    use Opcode::*;
    let undefined = [CmpvF, CmpvU, CmpvS, BaryF, FlatB, MgenB, Setrm, Shb, Msad, Dp2acc, Dp4acc, Wmm, WmmAccu];
    for opcode in Opcode::ALL {
        if matches!(opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu) {
            assert_ne!(covered.contains(&opcode), undefined.contains(&opcode), "{opcode}");
        }
    }
}

#[test]
fn every_pair_of_types_converts() {
    let mut count = 0;
    for src in TYPES {
        for dst in TYPES {
            for round in [Round::Default, Round::Even, Round::PosInf, Round::NegInf] {
                let widths = (if src.is_half() { 16 } else { 32 }, if dst.is_half() { 16 } else { 32 });
                let data = instr(Opcode::Mov, Attrs::Move { src, dst, round }, widths, 1);
                let wide = src == Type::U64 || dst == Type::U64;
                let is_byte = |ty: Type| matches!(ty, Type::U8 | Type::U8In32);
                let refused = wide || src.is_float() && is_byte(dst) || is_byte(src) && dst.is_float();
                match evaluate(&data, &[0x4200]) {
                    Some(result) if !refused => {
                        assert!(dst.bits() == 32 || result >> if dst.is_half() { 16 } else { 8 } == 0 || src == dst);
                        count += 1;
                    }
                    Some(_) => assert!(src == dst),
                    None => assert!(refused, "{} to {}", src.name(), dst.name()),
                }
            }
        }
    }
    // From 8 types to 8, but not between two that are floats and two that are bytes.
    assert_eq!(count, (8 * 8 - 2 * 2 * 2) * 4);
}

#[test]
fn rounding_of_conversions() {
    let convert = |src, dst, round, widths, operand| {
        evaluate(&instr(Opcode::Mov, Attrs::Move { src, dst, round }, widths, 1), &[operand]).unwrap()
    };
    let to_int = |round, x: f32| convert(Type::F32, Type::S32, round, (32, 32), x.to_bits()) as i32;
    let cases = [(2.5, [2, 2, 3, 2]), (-2.5, [-2, -2, -2, -3]), (3.5, [3, 4, 4, 3]), (-0.5, [0, 0, 0, -1])];
    for (x, expected) in cases {
        let found = [Round::Default, Round::Even, Round::PosInf, Round::NegInf].map(|round| to_int(round, x));
        assert_eq!(found, expected, "{x}");
    }
    let to_half = |round, x: f32| convert(Type::F32, Type::F16, round, (32, 16), x.to_bits());
    // Halfway between two halves: toward zero without a mode.
    assert_eq!(to_half(Round::Default, 1.001_464_8), 0x3c01);
    assert_eq!(to_half(Round::Even, 1.001_464_8), 0x3c02);
    assert_eq!(to_half(Round::Default, -1e9), 0xfbff);
    assert_eq!(to_half(Round::PosInf, 1.0001), 0x3c01);
    assert_eq!(to_half(Round::NegInf, 1.0009), 0x3c00);
    assert_eq!(to_half(Round::NegInf, -1.0001), 0xbc01);
    assert_eq!(to_half(Round::PosInf, 1e9), 0x7c00);
    assert_eq!(to_half(Round::NegInf, 1e9), 0x7bff);
    assert_eq!(to_half(Round::PosInf, -1e-30), 0x8000);
    assert_eq!(to_half(Round::NegInf, -1e-30), 0x8001);
    assert_eq!(to_half(Round::PosInf, f32::NAN), 0x7e00);
    let to_float = |round, x: u32| convert(Type::U32, Type::F32, round, (32, 32), x);
    assert_eq!(to_float(Round::Default, 0x7fff_ffff), 0x4eff_ffff);
    assert_eq!(to_float(Round::Even, 0x7fff_ffff), 0x4f00_0000);
    assert_eq!(to_float(Round::NegInf, 16_777_219), 16_777_218f32.to_bits());
    assert_eq!(to_float(Round::PosInf, 16_777_217), 16_777_218f32.to_bits());
}

#[test]
fn modifiers_are_those_of_the_operation() {
    let apply = |opcode: Opcode, mods: Mods, width: u8, operand: u32| {
        let mut data = instr(opcode, Attrs::None, (width, width), 2);
        data.srcs[0].mods = mods;
        let mut row = splat(operand);
        if let Some(modifier) = ir3_alu::modifier(&data, 0) {
            (modifier.run)(&mut row);
        }
        row[0]
    };
    let both = Mods::NEG | Mods::ABS;
    assert_eq!(apply(Opcode::AddF, Mods::empty(), 32, 7), 7);
    assert_eq!(apply(Opcode::AddF, Mods::NEG, 32, 0x7fc0_0000), 0xffc0_0000);
    assert_eq!(apply(Opcode::AddF, Mods::ABS, 16, 0xbc00), 0x3c00);
    assert_eq!(apply(Opcode::AddF, both, 16, 0x3c00), 0xbc00);
    assert_eq!(apply(Opcode::AddF, both, 32, 0), 0x8000_0000);
    assert_eq!(apply(Opcode::AddS, Mods::NEG, 32, 1), u32::MAX);
    assert_eq!(apply(Opcode::AddS, Mods::NEG, 16, 1), 0xffff);
    assert_eq!(apply(Opcode::AddS, Mods::ABS, 16, 0x8000), 0x8000);
    assert_eq!(apply(Opcode::AddS, Mods::ABS, 32, 0xffff_fffb), 5);
    assert_eq!(apply(Opcode::AddS, both, 32, 5), 0xffff_fffb);
    assert_eq!(apply(Opcode::AddS, both, 16, 0xfffb), 0xfffb);
    assert_eq!(apply(Opcode::AndB, Mods::NOT, 16, 0xff00), 0x00ff);
    assert_eq!(apply(Opcode::AndB, Mods::NOT, 32, 0), u32::MAX);
}

#[test]
fn operands_of_different_widths_are_refused() {
    let mut data = instr(Opcode::AddU, Attrs::None, (32, 32), 2);
    data.srcs[1].class = RegClass::HALF;
    assert!(ir3_alu::kernel(&data).is_none());
    // A predicate has no width.
    data.srcs[1].class = RegClass::PREDICATE;
    assert!(ir3_alu::kernel(&data).is_some());
    let mut saturated = instr(Opcode::MulU24, Attrs::None, (32, 32), 2);
    saturated.flags |= InstrFlags::SAT;
    assert!(ir3_alu::kernel(&saturated).is_none());
}

/// Forms that Mesa never emits, or that Mesa documents as broken, have no definition.
#[test]
fn forms_that_do_not_work_are_refused() {
    let refused = |opcode: Opcode, widths: (u8, u8), count: usize| {
        assert!(ir3_alu::kernel(&instr(opcode, Attrs::None, widths, count)).is_none(), "{opcode} {widths:?}");
    };
    for widths in [(16, 16), (16, 32), (32, 16)] {
        refused(Opcode::MadU24, widths, 3);
        refused(Opcode::MadS24, widths, 3);
        refused(Opcode::MadshM16, widths, 3);
    }
    for widths in [(32, 32), (16, 32), (32, 16)] {
        refused(Opcode::MadU16, widths, 3);
        refused(Opcode::MadS16, widths, 3);
    }
    for opcode in [Opcode::MinF, Opcode::MaxF] {
        refused(opcode, (32, 16), 2);
    }
    for opcode in [Opcode::SignF, Opcode::AbsnegF, Opcode::Rcp, Opcode::Sin, Opcode::BfrevB, Opcode::ClzB] {
        refused(opcode, (32, 16), 1);
        refused(opcode, (16, 32), 1);
    }
}
