//! cat6: memory, in the layouts of a3xx and of a6xx.

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::table::{ALL, Form, Row, When, Widths, from};
use super::texture::TYPES;
use crate::ir3::opcode::Role;
use crate::target::Generation;

const OLD: (Generation, Generation) = (Generation::A3xx, Generation::A5xx);
const BELOW_A5: (Generation, Generation) = (Generation::A3xx, Generation::A4xx);
const ONLY_A5: (Generation, Generation) = (Generation::A5xx, Generation::A5xx);
const ONLY_A6: (Generation, Generation) = (Generation::A6xx, Generation::A6xx);
const NEW: (Generation, Generation) = from(Generation::A6xx);

/// The types of atomics.
const ATOMIC_TYPES: &[&str] = &["f16", "f32", "u16", "u32", "s16", "s32", "u64", "u8_32"];

const FLAGS: &[Field] = &[Field::flag(FieldName::Sy, 60, "(sy)"), Field::flag(FieldName::Jp, 59, "(jp)")];
const TYPE: &[Field] = &[Field::new(FieldName::Type, 49, 51, Kind::Words(TYPES))];
const ATOMIC_TYPE: &[Field] = &[Field::new(FieldName::Type, 49, 51, Kind::Words(ATOMIC_TYPES))];
const DST: &[Field] = &[Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Never))];
const DST_TIED: &[Field] = &[Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Never)).holds(Role::Tied)];
const DST_TYPED: &[Field] = &[Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst))];
const SIZE3: &[Field] = &[Field::new(FieldName::Size, 24, 26, Kind::Uint(0)).holds(Role::Count)];
const SIZE8: &[Field] = &[Field::new(FieldName::Size, 24, 31, Kind::Uint(0)).holds(Role::Count)];
const SIGNED_OFFSET: &[Field] = &[Field::new(FieldName::Offset, 1, 13, Kind::Offset).holds(Role::Offset)];

const fn form(
    fields: &'static [&'static [Field]],
    text: &'static str,
    ignored: &'static [(u8, u8)],
    generations: (Generation, Generation),
) -> Form {
    Form { fields, text, ignored, widths: Widths::Memory, generations }
}

// Global memory.

const LOAD_BASE: &[Field] = &[Field::new(FieldName::Src1, 14, 21, Kind::GeneralRegister).holds(Role::Base)];
const LOAD_INDEX: &[Field] = &[
    Field::new(FieldName::Src2, 1, 8, Kind::Register(Half::Never)).holds(Role::Index),
    Field::new(FieldName::Offset, 9, 10, Kind::UnsignedOffset).holds(Role::Offset),
];
const SHIFT: &[Field] = &[Field::new(FieldName::Shift, 12, 13, Kind::Uint(2)).holds(Role::Shift)];
const LDG: Form = form(
    &[FLAGS, TYPE, DST_TYPED, LOAD_BASE, SIGNED_OFFSET, SIZE3],
    "{SY}{JP}{NAME}.{TYPE} {DST}, g[{SRC1}{OFF}], {SIZE}",
    &[(27, 29), (40, 40), (41, 48)],
    ALL,
);
const LDG_INDEXED: Form = form(
    &[FLAGS, TYPE, DST_TYPED, LOAD_BASE, LOAD_INDEX, SIZE3],
    "{SY}{JP}{NAME}.{TYPE} {DST}, g[{SRC1}+({SRC2}{OFF})<<2], {SIZE}",
    &[(11, 11), (27, 29), (40, 40), (41, 48)],
    ONLY_A6,
);
const LDG_SHIFTED: Form = Form {
    fields: &[FLAGS, TYPE, DST_TYPED, LOAD_BASE, LOAD_INDEX, SHIFT, SIZE3],
    text: "{SY}{JP}{NAME}.{TYPE} {DST}, g[{SRC1}+{SRC2}<<{SHIFT}{OFF}<<2], {SIZE}",
    ..LDG_INDEXED
};
const LDG_A7: Form = form(
    &[
        FLAGS,
        TYPE,
        DST_TYPED,
        SIZE3,
        &[
            Field::new(FieldName::Src1, 14, 21, Kind::RegisterOrConst { constant: 13 }).holds(Role::Base),
            Field::new(FieldName::Src2, 1, 8, Kind::Register(Half::Never)).holds(Role::Index),
            Field::new(FieldName::Offset, 41, 48, Kind::Uint(0)).holds(Role::Offset),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPE} {DST}, g[{SRC1}+{SRC2}+{OFF}], {SIZE}",
    &[(9, 12), (27, 29), (40, 40)],
    from(Generation::A7xx),
);
const LDG_CONST: Form = form(
    &[
        FLAGS,
        TYPE,
        LOAD_BASE,
        SIGNED_OFFSET,
        &[
            Field::new(FieldName::ConstWord, 32, 40, Kind::ConstOffset),
            Field::new(FieldName::Size, 23, 26, Kind::Uint(0)),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPE} c[{CONST}], g[{SRC1}{OFF}], {SIZE}",
    &[(27, 29), (41, 48)],
    NEW,
);
const STORED: &[Field] = &[
    Field::new(FieldName::Src3, 1, 8, Kind::Register(Half::Src)).holds(Role::Data),
    Field::new(FieldName::Unused, 40, 40, Kind::Always(1)),
];
const STORE_BASE: &[Field] = &[Field::new(FieldName::Src1, 41, 48, Kind::GeneralRegister).holds(Role::Base)];
const STORE_OFFSET: &[Field] = &[Field::new(FieldName::Offset, 32, 39, Kind::Offset).and(9, 13).holds(Role::Offset)];
const STORE_INDEX: &[Field] = &[
    Field::new(FieldName::Src2, 32, 39, Kind::Register(Half::Never)).holds(Role::Index),
    Field::new(FieldName::Offset, 9, 10, Kind::UnsignedOffset).holds(Role::Offset),
];
const STG: Form = form(
    &[FLAGS, TYPE, STORED, STORE_BASE, STORE_OFFSET, SIZE3],
    "{SY}{JP}{NAME}.{TYPE} g[{SRC1}{OFF}], {SRC3}, {SIZE}",
    &[(0, 0), (14, 22), (27, 29)],
    ALL,
);
const STG_INDEXED: Form = form(
    &[FLAGS, TYPE, STORED, STORE_BASE, STORE_INDEX, SIZE3],
    "{SY}{JP}{NAME}.{TYPE} g[{SRC1}+({SRC2}{OFF})<<2], {SRC3}, {SIZE}",
    &[(0, 0), (11, 11), (14, 22), (27, 29)],
    ONLY_A6,
);
const STG_SHIFTED: Form = Form {
    fields: &[FLAGS, TYPE, STORED, STORE_BASE, STORE_INDEX, SHIFT, SIZE3],
    text: "{SY}{JP}{NAME}.{TYPE} g[{SRC1}+{SRC2}<<{SHIFT}{OFF}<<2], {SRC3}, {SIZE}",
    ..STG_INDEXED
};
const STG_A7: Form = form(
    &[
        FLAGS,
        TYPE,
        STORED,
        SIZE3,
        &[
            Field::new(FieldName::Src1, 41, 48, Kind::RegisterOrConst { constant: 13 }).holds(Role::Base),
            Field::new(FieldName::Src2, 32, 39, Kind::Register(Half::Never)).holds(Role::Index),
            Field::new(FieldName::Offset, 14, 21, Kind::Uint(0)).holds(Role::Offset),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPE} g[{SRC1}+{SRC2}+{OFF}], {SRC3}, {SIZE}",
    &[(0, 0), (9, 12), (27, 29)],
    from(Generation::A7xx),
);

// Shared and private memory. Half registers are not told apart in the text, but for `ldp`.

const ADDRESS: &[Field] = &[Field::new(FieldName::Src1, 14, 21, Kind::Register(Half::Never)).holds(Role::Index)];
const LDL: Form = form(
    &[FLAGS, TYPE, DST, ADDRESS, SIGNED_OFFSET, SIZE8],
    "{SY}{JP}{NAME}.{TYPE} {DST}, l[{SRC1}{OFF}], {SIZE}",
    &[(22, 22), (40, 48), (52, 53)],
    ALL,
);
const LDP: Form = Form {
    fields: &[FLAGS, TYPE, DST_TYPED, ADDRESS, SIGNED_OFFSET, SIZE8],
    text: "{SY}{JP}{NAME}.{TYPE} {DST}, p[{SRC1}{OFF}], {SIZE}",
    ..LDL
};
const LDLV: Form = form(
    &[FLAGS, TYPE, DST, SIZE8, &[Field::new(FieldName::Offset, 1, 13, Kind::Uint(0)).holds(Role::Offset)]],
    "{SY}{JP}{NAME}.{TYPE} {DST}, l[{OFF}], {SIZE}",
    &[(40, 48), (52, 53)],
    ALL,
);
const LOCAL_STORE: &[Field] = &[
    Field::new(FieldName::Src1, 41, 48, Kind::Register(Half::Never)).holds(Role::Index),
    Field::new(FieldName::Src2, 1, 8, Kind::Register(Half::Never)).holds(Role::Data),
];
const STL: Form = form(
    &[FLAGS, TYPE, LOCAL_STORE, STORE_OFFSET, SIZE8],
    "{SY}{JP}{NAME}.{TYPE} l[{SRC1}{OFF}], {SRC2}, {SIZE}",
    &[(0, 0), (14, 22), (52, 53)],
    ALL,
);
const STP: Form =
    Form { text: "{SY}{JP}{NAME}.{TYPE} p[{SRC1}{OFF}], {SRC2}, {SIZE}", ignored: &[(14, 22), (52, 53)], ..STL };

// The constant file.

const STC: Form = form(
    &[
        FLAGS,
        TYPE,
        SIZE3,
        &[
            Field::new(FieldName::ConstWord, 32, 40, Kind::ConstOffset).holds(Role::Offset),
            Field::new(FieldName::Src1, 1, 8, Kind::Register(Half::Never)).holds(Role::Data),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPE} c[{CONST}], {SRC1}, {SIZE}",
    &[(0, 0), (9, 13), (27, 31), (41, 48), (52, 53)],
    NEW,
);
const STSC: Form = form(
    &[
        FLAGS,
        TYPE,
        SIZE8,
        &[
            Field::new(FieldName::ConstWord, 32, 39, Kind::Uint(0)).and(9, 13).holds(Role::Offset),
            Field::new(FieldName::Src1, 1, 8, Kind::Uint(0)).holds(Role::Data),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPE} c[{CONST}], {SRC1}, {SIZE}",
    &[(0, 0), (14, 21), (40, 40), (41, 48)],
    from(Generation::A7xx),
);

// Buffers and images below a6xx, and atomics.

const SHAPE: &[Field] = &[
    Field::new(FieldName::Dimensions, 9, 10, Kind::Uint(1)),
    Field::new(FieldName::Typed, 11, 11, Kind::Words(&["untyped", "typed"])),
    Field::new(FieldName::Size, 12, 13, Kind::Uint(1)).holds(Role::Count),
];
const OLD_RESOURCE: &[Field] =
    &[Field::new(FieldName::Resource, 41, 48, Kind::RegisterOr { immediate: 53 }).holds(Role::Resource)];
const RESINFO: Form = form(
    &[FLAGS, TYPE, DST, OLD_RESOURCE, &[Field::new(FieldName::Dimensions, 9, 10, Kind::Uint(1))]],
    "{SY}{JP}{NAME}.{TYPE}.{D}d {DST}, g[{SSBO}]",
    &[(0, 8), (11, 13), (24, 31), (52, 52)],
    ALL,
);
const fn operands(first: Role, second: Role) -> [Field; 2] {
    [
        Field::new(FieldName::Src1, 14, 21, Kind::RegisterOr { immediate: 22 }).holds(first),
        Field::new(FieldName::Src2, 24, 31, Kind::RegisterOr { immediate: 23 }).holds(second),
    ]
}
const OLD_LOAD: Form = form(
    &[FLAGS, TYPE, DST, OLD_RESOURCE, SHAPE, &operands(Role::Bytes, Role::Texel)],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE} {DST}, g[{SSBO}], {SRC1}, {SRC2}",
    &[(1, 8), (40, 40), (52, 52)],
    OLD,
);
const LDGB_A4: Form = Form { generations: BELOW_A5, ..OLD_LOAD };
const LDGB_A5: Form = Form { ignored: &[(0, 8), (40, 40), (52, 52)], generations: ONLY_A5, ..OLD_LOAD };
const STORE_A4: Form = form(
    &[
        FLAGS,
        TYPE,
        OLD_RESOURCE,
        SHAPE,
        &[
            Field::new(FieldName::Src1, 1, 8, Kind::Register(Half::Never)).holds(Role::Data),
            Field::new(FieldName::Src2, 24, 31, Kind::RegisterOr { immediate: 23 }).holds(Role::Texel),
            Field::new(FieldName::Src3, 32, 39, Kind::RegisterOr { immediate: 40 }).holds(Role::Bytes),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE} g[{SSBO}], {SRC1}, {SRC2}, {SRC3}",
    &[(14, 22), (52, 52)],
    BELOW_A5,
);
const STORE_A5: Form = Form { generations: ONLY_A5, ..STORE_A4 };
const ATOMIC_LOCAL: Form = form(
    &[FLAGS, TYPE, DST, SHAPE, &operands(Role::Index, Role::Operand)],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.l {DST}, l[{SRC1}], {SRC2}",
    &[(40, 40)],
    ALL,
);
const ATOMIC_A4: Form = form(
    &[
        FLAGS,
        ATOMIC_TYPE,
        DST,
        OLD_RESOURCE,
        SHAPE,
        &operands(Role::Operand, Role::Texel),
        &[Field::new(FieldName::Src3, 1, 8, Kind::Register(Half::Never)).holds(Role::Bytes)],
    ],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.g {DST}, g[{SSBO}], {SRC1}, {SRC2}, {SRC3}",
    &[(40, 40)],
    BELOW_A5,
);
const ATOMIC_A5: Form = Form { generations: ONLY_A5, ..ATOMIC_A4 };
const ATOMIC_GLOBAL: Form = Form {
    fields: &[FLAGS, ATOMIC_TYPE, DST, SHAPE, &operands(Role::Base, Role::Operand)],
    text: "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.g {DST}, {SRC1}, {SRC2}",
    generations: NEW,
    ..ATOMIC_LOCAL
};

// Buffers and images from a6xx on.

const MODE: &[Field] = &[
    Field::new(FieldName::Mode, 6, 7, Kind::Words(&["imm", "uniform", "nonuniform"])),
    Field::new(FieldName::Base, 1, 3, Kind::Base { bindless: 8 }),
];
const RESOURCE: &[Field] =
    &[Field::new(FieldName::Resource, 41, 48, Kind::RegisterOrMode { mode: 6 }).holds(Role::Resource)];
const UNIFORM: &[Field] = &[
    Field::new(FieldName::Src1, 24, 31, Kind::RegisterOr { immediate: 23 }).holds(Role::Index),
    Field::new(FieldName::Src2, 41, 48, Kind::RegisterOrMode { mode: 6 }).holds(Role::Resource),
];
const LDC: Form = Form {
    widths: Widths::Full,
    ..form(
        &[
            FLAGS,
            DST,
            MODE,
            UNIFORM,
            &[
                Field::flag(FieldName::Uniform, 11, ".u"),
                Field::new(FieldName::Offset, 9, 10, Kind::Uint(0)).holds(Role::Offset),
                Field::new(FieldName::Size, 12, 13, Kind::Uint(1)).holds(Role::Count),
            ],
        ],
        "{SY}{JP}{NAME}{U}.offset{OFF}.{SIZE}.{MODE}{BASE} {DST}, {SRC1}, {SRC2}",
        &[(0, 0), (20, 21), (51, 51)],
        NEW,
    )
};
const LDC_CONST: Form = Form {
    fields: &[
        FLAGS,
        MODE,
        UNIFORM,
        &[
            Field::new(FieldName::Size, 32, 39, Kind::Uint(1)).holds(Role::Count),
            Field::new(FieldName::Unused, 12, 13, Kind::Hidden),
        ],
    ],
    text: "{SY}{JP}{NAME}.{SIZE}.k.{MODE}{BASE} c[a1.x], {SRC1}, {SRC2}",
    ignored: &[(0, 0), (9, 11), (20, 21), (51, 51)],
    ..LDC
};
const IDENTITY: Form = form(
    &[FLAGS, TYPE, DST, MODE, &[Field::new(FieldName::Size, 12, 13, Kind::Hidden)]],
    "{SY}{JP}{NAME}.{TYPE} {DST}",
    &[(9, 11), (20, 21), (23, 23), (24, 31), (41, 48), (52, 52)],
    NEW,
);
const FIBER: Form = Form { ignored: &[(9, 11), (20, 21), (24, 31), (41, 48), (52, 52)], ..IDENTITY };
const RESINFO_A6: Form = form(
    &[FLAGS, TYPE, DST, SHAPE, MODE, RESOURCE],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.{MODE}{BASE} {DST}, {SSBO}",
    &[(24, 31), (52, 52)],
    NEW,
);
const TEXEL: &[Field] = &[Field::new(FieldName::Src2, 24, 31, Kind::Register(Half::Never)).holds(Role::Texel)];
const STIB: Form = form(
    &[
        FLAGS,
        TYPE,
        SHAPE,
        MODE,
        RESOURCE,
        TEXEL,
        &[
            Field::new(FieldName::Src1, 32, 39, Kind::Register(Half::Src)).holds(Role::Data),
            Field::new(FieldName::Offset, 54, 58, Kind::OffsetIf { bit: 23 }).and(4, 5).holds(Role::Offset),
        ],
    ],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.{MODE}{BASE} {SRC1}, {SRC2}{OFF}, {SSBO}",
    &[],
    NEW,
);
const LDIB: Form = Form {
    fields: &[
        FLAGS,
        TYPE,
        SHAPE,
        MODE,
        RESOURCE,
        TEXEL,
        DST_TYPED,
        &[Field::new(FieldName::Offset, 54, 58, Kind::OffsetIf { bit: 23 }).and(4, 5).holds(Role::Offset)],
    ],
    text: "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.{MODE}{BASE} {DST}, {SRC2}{OFF}, {SSBO}",
    ..STIB
};
const ATOMIC_A6: Form = form(
    &[FLAGS, ATOMIC_TYPE, SHAPE, MODE, RESOURCE, TEXEL, DST_TIED],
    "{SY}{JP}{NAME}.{TYPED}.{D}d.{TYPE}.{SIZE}.{MODE}{BASE} {DST}, {SRC2}, {SSBO}",
    &[(0, 0)],
    NEW,
);
const SHFL: Form = form(
    &[
        FLAGS,
        TYPE,
        DST_TYPED,
        &[
            Field::new(FieldName::Src1, 1, 8, Kind::Register(Half::Src)).holds(Role::Data),
            Field::new(FieldName::Src2, 24, 31, Kind::RegisterOr { immediate: 23 }).holds(Role::Lane),
            Field::new(FieldName::Mode, 45, 47, Kind::Words(&["0", "xor", "up", "down", "4", "5", "rup", "rdown"])),
        ],
    ],
    "{SY}{JP}{NAME}.{MODE}.{TYPE} {DST}, {SRC1}, {SRC2}",
    &[(40, 44), (48, 48)],
    NEW,
);

const CAT: Bits = Bits::new(61, 63);
const OPC: Bits = Bits::new(54, 58);
/// The opcodes of a6xx.
const OPC_A6: Bits = Bits::new(14, 19);

macro_rules! rows {
    ($($name:expr, $form:ident, $opcode:ident = $opc:literal $(, $low:literal..=$high:literal = $value:literal)*;)*) => {
        &[$(Row {
            name: $name, form: &$form, when: When::Always,
            fixed: &[(CAT, 6), ($opcode, $opc) $(, (Bits::new($low, $high), $value))*],
        }),*]
    };
}

/// The rows: mnemonic, form, opcode, further bits.
pub const ROWS: &[Row] = rows! {
    "ldg", LDG, OPC = 0, 52..=53 = 0, 0..=0 = 1, 22..=23 = 2;
    "ldg.a", LDG_INDEXED, OPC = 0, 52..=53 = 0, 0..=0 = 1, 22..=23 = 3, 12..=13 = 0;
    "ldg.a", LDG_SHIFTED, OPC = 0, 52..=53 = 0, 0..=0 = 1, 22..=23 = 3;
    "ldg.a", LDG_A7, OPC = 0, 52..=53 = 0, 0..=0 = 1, 22..=23 = 3;
    "ldg.k", LDG_CONST, OPC = 0, 52..=53 = 1, 0..=0 = 1, 22..=22 = 0;
    "stg", STG, OPC = 3, 52..=53 = 0, 23..=23 = 1;
    "stg.a", STG_INDEXED, OPC = 3, 52..=53 = 1, 23..=23 = 1, 12..=13 = 0;
    "stg.a", STG_SHIFTED, OPC = 3, 52..=53 = 1, 23..=23 = 1;
    "stg.a", STG_A7, OPC = 3, 52..=53 = 1, 22..=23 = 2;
    "ldl", LDL, OPC = 1, 0..=0 = 1, 23..=23 = 1;
    "ldp", LDP, OPC = 2, 0..=0 = 1, 23..=23 = 1;
    "ldlw", LDL, OPC = 10, 0..=0 = 1, 23..=23 = 1;
    "ldlv", LDLV, OPC = 31, 0..=0 = 0, 22..=23 = 3;
    "stl", STL, OPC = 4, 23..=23 = 1, 40..=40 = 1;
    "stp", STP, OPC = 5, 0..=0 = 0, 23..=23 = 1, 40..=40 = 1;
    "stlw", STL, OPC = 11, 23..=23 = 1, 40..=40 = 1;
    "stc", STC, OPC = 28, 23..=23 = 1;
    "stsc", STSC, OPC = 29, 22..=23 = 3, 52..=53 = 0;
    "resinfo", RESINFO, OPC = 15;
    "ldgb", LDGB_A4, OPC = 27, 0..=0 = 1;
    "ldgb", LDGB_A5, OPC = 27;
    "ldib", OLD_LOAD, OPC = 6, 0..=0 = 1;
    "stgb", STORE_A4, OPC = 28, 0..=0 = 0;
    "stgb", STORE_A5, OPC = 28, 0..=0 = 1;
    "stib", STORE_A4, OPC = 29, 0..=0 = 0;
    "stib", STORE_A5, OPC = 29, 0..=0 = 1;
    "shfl", SHFL, OPC = 27, 0..=0 = 0, 52..=53 = 2;

    "ldc", LDC, OPC_A6 = 30, 54..=58 = 0, 22..=22 = 1, 49..=50 = 3, 52..=53 = 2;
    "ldc.k", LDC_CONST, OPC_A6 = 30, 54..=58 = 0, 22..=22 = 1, 49..=50 = 3, 52..=53 = 3;
    "getspid", IDENTITY, OPC_A6 = 36, 54..=58 = 0, 0..=0 = 0, 22..=22 = 1, 53..=53 = 1;
    "getwid", IDENTITY, OPC_A6 = 37, 54..=58 = 0, 0..=0 = 0, 22..=22 = 1, 53..=53 = 1;
    "getfiberid", FIBER, OPC_A6 = 38, 54..=58 = 0, 0..=0 = 0, 22..=23 = 3, 53..=53 = 1;
    "resinfo.b", RESINFO_A6, OPC_A6 = 15, 54..=58 = 0, 0..=0 = 0, 20..=23 = 6, 53..=53 = 1;
    "stib.b", STIB, OPC_A6 = 29, 0..=0 = 0, 20..=22 = 6, 52..=53 = 2;
    "ldib.b", LDIB, OPC_A6 = 6, 0..=0 = 0, 20..=22 = 6, 52..=53 = 2;
    // Without an offset, bit 0 means nothing.
    "ldib.b", LDIB, OPC_A6 = 6, 0..=0 = 1, 20..=23 = 6, 52..=53 = 2, 4..=5 = 0, 54..=58 = 0;
};

macro_rules! atomics {
    ($family:literal, $form:ident, $opcode:ident $(, $low:literal..=$high:literal = $value:literal)*) => {
        rows! {
            concat!($family, "add"), $form, $opcode = 16 $(, $low..=$high = $value)*;
            concat!($family, "sub"), $form, $opcode = 17 $(, $low..=$high = $value)*;
            concat!($family, "xchg"), $form, $opcode = 18 $(, $low..=$high = $value)*;
            concat!($family, "cmpxchg"), $form, $opcode = 21 $(, $low..=$high = $value)*;
            concat!($family, "min"), $form, $opcode = 22 $(, $low..=$high = $value)*;
            concat!($family, "max"), $form, $opcode = 23 $(, $low..=$high = $value)*;
            concat!($family, "and"), $form, $opcode = 24 $(, $low..=$high = $value)*;
            concat!($family, "or"), $form, $opcode = 25 $(, $low..=$high = $value)*;
            concat!($family, "xor"), $form, $opcode = 26 $(, $low..=$high = $value)*;
            concat!($family, "inc"), $form, $opcode = 19 $(, $low..=$high = $value)*;
            concat!($family, "dec"), $form, $opcode = 20 $(, $low..=$high = $value)*;
        }
    };
}

/// The rows of atomics, by family. Those of a6xx on buffers have neither `inc` nor `dec`.
pub const ATOMICS: [&[Row]; 5] = [
    atomics!("atomic.", ATOMIC_LOCAL, OPC, 0..=0 = 1, 52..=53 = 0),
    atomics!("atomic.s.", ATOMIC_A4, OPC, 0..=0 = 0, 52..=52 = 1),
    atomics!("atomic.s.", ATOMIC_A5, OPC, 0..=0 = 1, 52..=52 = 1),
    atomics!("atomic.g.", ATOMIC_GLOBAL, OPC, 0..=0 = 1, 52..=53 = 1),
    atomics!("atomic.b.", ATOMIC_A6, OPC_A6, 20..=23 = 6, 54..=58 = 0, 52..=53 = 3).split_at(9).0,
];
