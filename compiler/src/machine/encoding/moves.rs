//! cat1: moves and conversions.

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::table::{ALL, Form, Row, When, Widths, from};
use crate::target::Generation;

const FLAGS: &[Field] = &[
    Field::flag(FieldName::Sy, 60, "(sy)"),
    Field::flag(FieldName::Ss, 44, "(ss)"),
    Field::flag(FieldName::Jp, 59, "(jp)"),
    Field::flag(FieldName::Ul, 45, "(ul)"),
    Field::new(FieldName::Round, 55, 56, Kind::Words(&["", "(even)", "(pos_infinity)", "(neg_infinity)"])),
];
const TYPES: &[Field] = &[Field::new(FieldName::Types, 46, 48, Kind::MoveTypes).and(50, 52)];
const REPEAT: &[Field] = &[Field::new(FieldName::Repeat, 40, 41, Kind::Repeat)];
const DST: &[Field] = &[Field::new(FieldName::Dst, 32, 39, Kind::MoveDst { relative: 49 })];
const SRC: &[Field] = &[Field::new(FieldName::Src1, 0, 31, Kind::MoveSrc { r: 43, kind: 53 })];

const MOVE: Form = Form {
    fields: &[FLAGS, REPEAT, TYPES, DST, SRC],
    text: "{SY}{SS}{JP}{REPEAT}{UL}{NAME}.{TYPES} {ROUND}{DST}, {SRC1}",
    ignored: &[],
    widths: Widths::ByTypes,
    generations: ALL,
};
/// To an address register: the types are known.
const ADDRESS: Form =
    Form { fields: &[FLAGS, REPEAT, SRC], text: "{SY}{SS}{JP}{REPEAT}{UL}{NAME} {ROUND}a0.x, {SRC1}", ..MOVE };
const ADDRESS1: Form = Form { text: "{SY}{SS}{JP}{REPEAT}{UL}{NAME} {ROUND}a1.x, {SRC1}", ..ADDRESS };

/// Several moves, which read everything before they write anything.
const SWIZZLE: Form = Form {
    fields: &[
        FLAGS,
        TYPES,
        &[
            Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst)),
            Field::new(FieldName::Dst1, 16, 23, Kind::Register(Half::Dst)),
            Field::new(FieldName::Src1, 0, 7, Kind::Register(Half::Src)),
            Field::new(FieldName::Src2, 8, 15, Kind::Register(Half::Src)),
        ],
    ],
    text: "{SY}{SS}{JP}{UL}{NAME}.{TYPES} {ROUND}{DST}, {DST1}, {SRC1}, {SRC2}",
    generations: from(Generation::A5xx),
    ..MOVE
};
const GATHER: Form = Form {
    fields: &[
        FLAGS,
        TYPES,
        &[
            Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst)),
            Field::new(FieldName::Src1, 0, 7, Kind::Register(Half::Src)),
            Field::new(FieldName::Src2, 8, 15, Kind::Register(Half::Src)),
            Field::new(FieldName::Src3, 16, 23, Kind::Register(Half::Src)),
            Field::new(FieldName::Src4, 24, 31, Kind::Register(Half::Src)),
        ],
    ],
    text: "{SY}{SS}{JP}{UL}{NAME}.{TYPES} {ROUND}{DST}, {SRC1}, {SRC2}, {SRC3}, {SRC4}",
    ..SWIZZLE
};
const SCATTER: Form = Form {
    fields: &[
        FLAGS,
        TYPES,
        &[
            Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst)),
            Field::new(FieldName::Dst1, 8, 15, Kind::Register(Half::Dst)),
            Field::new(FieldName::Dst2, 16, 23, Kind::Register(Half::Dst)),
            Field::new(FieldName::Dst3, 24, 31, Kind::Register(Half::Dst)),
            Field::new(FieldName::Src1, 0, 7, Kind::Register(Half::Src)),
        ],
    ],
    text: "{SY}{SS}{JP}{UL}{NAME}.{TYPES} {ROUND}{DST}, {DST1}, {DST2}, {DST3}, {SRC1}",
    ..SWIZZLE
};
const LANES: Form = Form {
    fields: &[FLAGS, DST, &[Field::new(FieldName::Repeat, 40, 41, Kind::Lanes)]],
    text: "{SY}{SS}{JP}{UL}{NAME}.w{REPEAT} {DST}",
    widths: Widths::Full,
    ..MOVE
};

const CAT: (Bits, u64) = (Bits::new(61, 63), 1);
const OPC: Bits = Bits::new(57, 58);
const SUB_OPC: Bits = Bits::new(40, 41);
const DST_BITS: Bits = Bits::new(32, 39);
const TYPE_BITS: Bits = Bits::new(46, 48).and(50, 52);

/// Types as [`Kind::MoveTypes`] has them: of the destination, and above it of the source.
const S16: u64 = 4 | 4 << 3;
const U16: u64 = 2 | 2 << 3;
const U32: u64 = 3 | 3 << 3;

const fn row(name: &'static str, form: &'static Form, fixed: &'static [(Bits, u64)]) -> Row {
    Row { name, form, fixed, when: When::Always }
}

/// The rows.
pub const ROWS: &[Row] = &[
    row("mova", &ADDRESS, &[CAT, (OPC, 0), (DST_BITS, 0xf4), (TYPE_BITS, S16)]),
    row("mova1", &ADDRESS1, &[CAT, (OPC, 0), (DST_BITS, 0xf5), (TYPE_BITS, U16)]),
    Row { name: "mov", form: &MOVE, fixed: &[CAT, (OPC, 0)], when: When::SameTypes },
    Row { name: "cov", form: &MOVE, fixed: &[CAT, (OPC, 0)], when: When::OtherTypes },
    row("swz", &SWIZZLE, &[CAT, (OPC, 2), (SUB_OPC, 0)]),
    row("gat", &GATHER, &[CAT, (OPC, 2), (SUB_OPC, 1)]),
    row("sct", &SCATTER, &[CAT, (OPC, 2), (SUB_OPC, 2)]),
    row("movmsk", &LANES, &[CAT, (OPC, 3), (TYPE_BITS, U32)]),
];
