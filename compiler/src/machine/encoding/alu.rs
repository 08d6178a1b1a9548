//! cat2, cat3 and cat4: operations of one to three sources.

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::table::{ALL, Form, Row, When, Widths, from, hidden};
use crate::target::Generation;

const FLAGS: &[Field] = &[
    Field::flag(FieldName::Sy, 60, "(sy)"),
    Field::flag(FieldName::Ss, 44, "(ss)"),
    Field::flag(FieldName::Jp, 59, "(jp)"),
    Field::flag(FieldName::Ul, 45, "(ul)"),
    Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst)),
];
const SATURATE: &[Field] = &[Field::flag(FieldName::Sat, 42, "(sat)")];
/// Widths: of the sources, and whether the result has the other one.
const WIDTHS: &[Field] = &[hidden(FieldName::Full, 52, 52), hidden(FieldName::Convert, 46, 46)];
const END_OF_INPUT: &[Field] = &[Field::flag(FieldName::Ei, 47, "(ei)")];
const REPEAT: &[Field] = &[Field::new(FieldName::Repeat, 40, 41, Kind::Repeat)];
const FIRST: &[Field] = &[Field::new(FieldName::Src1, 0, 15, Kind::Source { r: 43 })];
const SECOND: &[Field] = &[Field::new(FieldName::Src2, 16, 31, Kind::Source { r: 51 })];
const NOP2: &[Field] = &[Field::new(FieldName::RepeatOrNop, 40, 41, Kind::RepeatOrNop { r: [43, 51] })];

const ONE_SOURCE: Form = Form {
    fields: &[FLAGS, SATURATE, WIDTHS, END_OF_INPUT, NOP2, FIRST],
    text: "{SY}{SS}{JP}{SAT}{NOP}{UL}{NAME} {EI}{DST}, {SRC1}",
    ignored: &[(16, 31), (48, 50)],
    widths: Widths::ByBit(52),
    generations: ALL,
};
const TWO_SOURCES: Form = Form {
    fields: &[FLAGS, SATURATE, WIDTHS, END_OF_INPUT, NOP2, FIRST, SECOND],
    text: "{SY}{SS}{JP}{SAT}{NOP}{UL}{NAME} {EI}{DST}, {SRC1}, {SRC2}",
    ignored: &[(48, 50)],
    ..ONE_SOURCE
};
const COMPARE: Form = Form {
    fields: &[
        FLAGS,
        SATURATE,
        WIDTHS,
        END_OF_INPUT,
        NOP2,
        FIRST,
        SECOND,
        &[Field::new(FieldName::Condition, 48, 50, Kind::Words(&["lt", "le", "gt", "ge", "eq", "ne"]))],
    ],
    text: "{SY}{SS}{JP}{SAT}{NOP}{UL}{NAME}.{COND} {EI}{DST}, {SRC1}, {SRC2}",
    ignored: &[],
    ..ONE_SOURCE
};
/// Varyings.
const BARY: Form = Form { ignored: &[(48, 49)], ..TWO_SOURCES };
const FLAT: Form = Form { generations: from(Generation::A6xx), ..BARY };

const NOP3: &[Field] = &[Field::new(FieldName::RepeatOrNop, 40, 41, Kind::RepeatOrNop { r: [43, 15] })];
const CONVERT: &[Field] = &[hidden(FieldName::Convert, 46, 46)];
const MIDDLE: Field = Field::new(FieldName::Src2, 47, 54, Kind::SourceMiddle { negate: Some(30), r: 15 });
const THREE: &[Field] = &[
    Field::new(FieldName::Src1, 0, 12, Kind::Source3 { negate: Some(14), r: 43, immediates: false }),
    MIDDLE,
    Field::new(FieldName::Src3, 16, 28, Kind::Source3 { negate: Some(31), r: 29, immediates: false }),
];
const HALF_SOURCES: Form = Form {
    fields: &[FLAGS, SATURATE, CONVERT, NOP3, THREE],
    text: "{SY}{SS}{JP}{SAT}{NOP}{UL}{NAME} {DST}, {SRC1}, {SRC2}, {SRC3}",
    ignored: &[],
    widths: Widths::ByOpcode(false),
    generations: ALL,
};
const FULL_SOURCES: Form = Form { widths: Widths::ByOpcode(true), ..HALF_SOURCES };
/// Immediates in place of constants, and no `(sat)`.
const BITS: Form = Form {
    fields: &[
        FLAGS,
        CONVERT,
        NOP3,
        &[
            hidden(FieldName::Full, 42, 42),
            Field::new(FieldName::Src1, 0, 12, Kind::Source3 { negate: Some(14), r: 43, immediates: true }),
            MIDDLE,
            Field::new(FieldName::Src3, 16, 28, Kind::Source3 { negate: Some(31), r: 29, immediates: true }),
        ],
    ],
    text: "{SY}{SS}{JP}{NOP}{UL}{NAME} {DST}, {SRC1}, {SRC2}, {SRC3}",
    widths: Widths::ByBit(42),
    generations: from(Generation::A6xx),
    ..HALF_SOURCES
};
const DOT: Form = Form {
    fields: &[
        FLAGS,
        SATURATE,
        NOP3,
        &[
            Field::new(FieldName::Sign, 14, 14, Kind::Words(&[".unsigned", ".mixed"])),
            Field::new(FieldName::Pack, 30, 30, Kind::Words(&[".low", ".high"])),
            Field::new(FieldName::Src1, 0, 12, Kind::Source3 { negate: None, r: 43, immediates: false }),
            Field::new(FieldName::Src2, 47, 54, Kind::SourceMiddle { negate: None, r: 15 }),
            Field::new(FieldName::Src3, 16, 28, Kind::Source3 { negate: Some(31), r: 29, immediates: false }),
        ],
    ],
    text: "{SY}{SS}{JP}{SAT}{NOP}{UL}{NAME}{SIGN}{PACK} {DST}, {SRC1}, {SRC2}, {SRC3}",
    widths: Widths::Full,
    ..BITS
};
const MATRIX: Form = Form {
    fields: &[
        FLAGS,
        NOP3,
        &[
            hidden(FieldName::Full, 31, 31),
            hidden(FieldName::Convert, 46, 46),
            Field::new(FieldName::Src1, 0, 12, Kind::Source3 { negate: Some(14), r: 43, immediates: false }),
            MIDDLE,
            Field::new(FieldName::Src3, 16, 28, Kind::Source3 { negate: None, r: 29, immediates: true }),
        ],
    ],
    widths: Widths::Matrix,
    ..BITS
};

const SPECIAL: Form = Form {
    fields: &[FLAGS, SATURATE, WIDTHS, REPEAT, FIRST],
    text: "{SY}{SS}{JP}{SAT}{REPEAT}{UL}{NAME} {DST}, {SRC1}",
    ignored: &[(16, 31), (47, 51)],
    ..ONE_SOURCE
};

const CAT: Bits = Bits::new(61, 63);
const OPC6: Bits = Bits::new(53, 58);
const OPC4: Bits = Bits::new(55, 58);
/// Opcode of four bits, and the bit that tells the second set of opcodes.
const SECOND_SET: Bits = Bits::new(13, 13).and(55, 58);

macro_rules! rows {
    ($($name:literal, $cat:literal, $form:ident, $opcode:ident = $opc:literal $(, $low:literal..=$high:literal = $value:literal)?;)*) => {
        &[$(Row {
            name: $name, form: &$form, when: When::Always,
            fixed: &[(CAT, $cat), ($opcode, $opc) $(, (Bits::new($low, $high), $value))?],
        }),*]
    };
}

/// The rows: mnemonic, category, form, opcode, further bits.
pub const ROWS: &[Row] = rows! {
    "add.f", 2, TWO_SOURCES, OPC6 = 0;
    "min.f", 2, TWO_SOURCES, OPC6 = 1;
    "max.f", 2, TWO_SOURCES, OPC6 = 2;
    "mul.f", 2, TWO_SOURCES, OPC6 = 3;
    "sign.f", 2, ONE_SOURCE, OPC6 = 4;
    "cmps.f", 2, COMPARE, OPC6 = 5;
    "absneg.f", 2, ONE_SOURCE, OPC6 = 6;
    "cmpv.f", 2, COMPARE, OPC6 = 7;
    "floor.f", 2, ONE_SOURCE, OPC6 = 9;
    "ceil.f", 2, ONE_SOURCE, OPC6 = 10;
    "rndne.f", 2, ONE_SOURCE, OPC6 = 11;
    "rndaz.f", 2, ONE_SOURCE, OPC6 = 12;
    "trunc.f", 2, ONE_SOURCE, OPC6 = 13;
    "add.u", 2, TWO_SOURCES, OPC6 = 16;
    "add.s", 2, TWO_SOURCES, OPC6 = 17;
    "sub.u", 2, TWO_SOURCES, OPC6 = 18;
    "sub.s", 2, TWO_SOURCES, OPC6 = 19;
    "cmps.u", 2, COMPARE, OPC6 = 20;
    "cmps.s", 2, COMPARE, OPC6 = 21;
    "min.u", 2, TWO_SOURCES, OPC6 = 22;
    "min.s", 2, TWO_SOURCES, OPC6 = 23;
    "max.u", 2, TWO_SOURCES, OPC6 = 24;
    "max.s", 2, TWO_SOURCES, OPC6 = 25;
    "absneg.s", 2, ONE_SOURCE, OPC6 = 26;
    "and.b", 2, TWO_SOURCES, OPC6 = 28;
    "or.b", 2, TWO_SOURCES, OPC6 = 29;
    "not.b", 2, ONE_SOURCE, OPC6 = 30;
    "xor.b", 2, TWO_SOURCES, OPC6 = 31;
    "cmpv.u", 2, COMPARE, OPC6 = 33;
    "cmpv.s", 2, COMPARE, OPC6 = 34;
    "mul.u24", 2, TWO_SOURCES, OPC6 = 48;
    "mul.s24", 2, TWO_SOURCES, OPC6 = 49;
    "mull.u", 2, TWO_SOURCES, OPC6 = 50;
    "bfrev.b", 2, ONE_SOURCE, OPC6 = 51;
    "clz.s", 2, ONE_SOURCE, OPC6 = 52;
    "clz.b", 2, ONE_SOURCE, OPC6 = 53;
    "shl.b", 2, TWO_SOURCES, OPC6 = 54;
    "shr.b", 2, TWO_SOURCES, OPC6 = 55;
    "ashr.b", 2, TWO_SOURCES, OPC6 = 56;
    "bary.f", 2, BARY, OPC6 = 57, 50..=50 = 0;
    "flat.b", 2, FLAT, OPC6 = 57, 50..=50 = 1;
    "mgen.b", 2, TWO_SOURCES, OPC6 = 58;
    "getbit.b", 2, TWO_SOURCES, OPC6 = 59;
    "setrm", 2, ONE_SOURCE, OPC6 = 60;
    "cbits.b", 2, ONE_SOURCE, OPC6 = 61;
    "shb", 2, TWO_SOURCES, OPC6 = 62;
    "msad", 2, TWO_SOURCES, OPC6 = 63;

    "mad.u16", 3, HALF_SOURCES, OPC4 = 0, 13..=13 = 0;
    "madsh.u16", 3, FULL_SOURCES, OPC4 = 1, 13..=13 = 0;
    "mad.s16", 3, HALF_SOURCES, OPC4 = 2, 13..=13 = 0;
    "madsh.m16", 3, FULL_SOURCES, OPC4 = 3, 13..=13 = 0;
    "mad.u24", 3, FULL_SOURCES, OPC4 = 4, 13..=13 = 0;
    "mad.s24", 3, FULL_SOURCES, OPC4 = 5, 13..=13 = 0;
    "mad.f16", 3, HALF_SOURCES, OPC4 = 6, 13..=13 = 0;
    "mad.f32", 3, FULL_SOURCES, OPC4 = 7, 13..=13 = 0;
    "sel.b16", 3, HALF_SOURCES, OPC4 = 8, 13..=13 = 0;
    "sel.b32", 3, FULL_SOURCES, OPC4 = 9, 13..=13 = 0;
    "sel.s16", 3, HALF_SOURCES, OPC4 = 10, 13..=13 = 0;
    "sel.s32", 3, FULL_SOURCES, OPC4 = 11, 13..=13 = 0;
    "sel.f16", 3, HALF_SOURCES, OPC4 = 12, 13..=13 = 0;
    "sel.f32", 3, FULL_SOURCES, OPC4 = 13, 13..=13 = 0;
    "sad.s16", 3, HALF_SOURCES, OPC4 = 14, 13..=13 = 0;
    "sad.s32", 3, FULL_SOURCES, OPC4 = 15, 13..=13 = 0;
    "shrm", 3, BITS, OPC4 = 8, 13..=13 = 1;
    "shlm", 3, BITS, OPC4 = 9, 13..=13 = 1;
    "shrg", 3, BITS, OPC4 = 10, 13..=13 = 1;
    "shlg", 3, BITS, OPC4 = 11, 13..=13 = 1;
    "andg", 3, BITS, OPC4 = 12, 13..=13 = 1;
    "dp2acc", 3, DOT, SECOND_SET = 27, 46..=46 = 0;
    "dp4acc", 3, DOT, SECOND_SET = 27, 46..=46 = 1;
    "wmm", 3, MATRIX, SECOND_SET = 29, 42..=42 = 0;
    "wmm.accu", 3, MATRIX, SECOND_SET = 29, 42..=42 = 1;

    "rcp", 4, SPECIAL, OPC6 = 0;
    "rsq", 4, SPECIAL, OPC6 = 1;
    "log2", 4, SPECIAL, OPC6 = 2;
    "exp2", 4, SPECIAL, OPC6 = 3;
    "sin", 4, SPECIAL, OPC6 = 4;
    "cos", 4, SPECIAL, OPC6 = 5;
    "sqrt", 4, SPECIAL, OPC6 = 6;
    "hrsq", 4, SPECIAL, OPC6 = 9;
    "hlog2", 4, SPECIAL, OPC6 = 10;
    "hexp2", 4, SPECIAL, OPC6 = 11;
};
