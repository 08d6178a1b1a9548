//! cat5: textures, derivatives, quads.

use super::field::{Bits, Field, FieldName, Half, Kind};
use super::table::{ALL, Form, Row, When, Widths, from};
use crate::target::Generation;

/// The types of results and of memory, by their number.
pub const TYPES: &[&str] = &["f16", "f32", "u16", "u32", "s16", "s32", "u8", "u8_32"];

/// All letters of a number of components.
const COMMON: &[Field] = &[
    Field::flag(FieldName::Sy, 60, "(sy)"),
    Field::flag(FieldName::Jp, 59, "(jp)"),
    Field::flag(FieldName::ThreeD, 48, ".3d"),
    Field::flag(FieldName::Array, 49, ".a"),
    Field::flag(FieldName::HasOffset, 52, ".o"),
    Field::new(FieldName::Type, 44, 46, Kind::Words(TYPES)),
    Field::new(FieldName::Mask, 40, 43, Kind::Components),
    Field::new(FieldName::Dst, 32, 39, Kind::Register(Half::Dst)),
    Field::new(FieldName::Full, 0, 0, Kind::Hidden),
    Field::new(FieldName::Src1, 1, 8, Kind::Register(Half::Src)),
    // The base of a descriptor that the instruction does not have.
    Field::new(FieldName::Base, 19, 20, Kind::Hidden).and(47, 47),
];
/// Flags of all but `isam`.
const SAMPLED: &[Field] =
    &[Field::flag(FieldName::ShadowOrVector, 50, ".s"), Field::flag(FieldName::Projected, 53, ".p")];
/// Flags of `isam`.
const FETCHED: &[Field] =
    &[Field::flag(FieldName::ShadowOrVector, 50, ".v"), Field::new(FieldName::OneD, 18, 18, Kind::Clear(".1d"))];
const OPTIONAL: &[Field] = &[Field::new(FieldName::Src2, 9, 16, Kind::IfSet { bit: 52 })];
const OPTIONAL_OR_OFFSET: &[Field] = &[Field::new(FieldName::Src2, 9, 16, Kind::IfSetOrOffset { bit: 52, offset: 53 })];
const SECOND: &[Field] = &[Field::new(FieldName::Src2, 9, 16, Kind::Register(Half::Src))];
const SAMPLER: &[Field] = &[Field::new(FieldName::Sampler, 21, 24, Kind::Uint(0))];
const TEXTURE: &[Field] = &[Field::new(FieldName::Texture, 25, 31, Kind::Uint(0))];
const NO_DESCRIPTORS: &[Field] = &[Field::new(FieldName::Descriptor, 21, 31, Kind::Hidden)];
/// The modes of indirect and bindless descriptors.
const MODE: Field = Field::new(FieldName::Mode, 29, 31, Kind::TextureMode { base: Bits::new(47, 47).and(19, 20) });

const fn descriptor(sampler: bool, texture: bool) -> Field {
    Field::new(FieldName::Descriptor, 21, 28, Kind::TextureDescriptor { mode: Bits::new(29, 31), sampler, texture })
}

const BOTH: &[Field] = &[MODE, descriptor(true, true)];
const ONLY_TEXTURE: &[Field] = &[MODE, descriptor(false, true)];
const NEITHER: &[Field] = &[MODE, descriptor(false, false)];

macro_rules! text {
    (isam, $mode:literal, $srcs:literal) => {
        concat!("{SY}{JP}{NAME}{3D}{A}{O}{SV}", $mode, "{1D} ({TYPE})({MASK}){DST}", $srcs)
    };
    (untyped, $mode:literal, $srcs:literal) => {
        concat!("{SY}{JP}{NAME}{3D}{A}{O}{P}{SV}", $mode, " ({MASK}){DST}", $srcs)
    };
    (typed, $mode:literal, $srcs:literal) => {
        concat!("{SY}{JP}{NAME}{3D}{A}{O}{P}{SV}", $mode, " ({TYPE})({MASK}){DST}", $srcs)
    };
}

const fn form(fields: &'static [&'static [Field]], text: &'static str) -> Form {
    Form { fields, text, ignored: &[(17, 17)], widths: Widths::Texture, generations: ALL }
}

/// Texture and sampler in the instruction, by the number of sources.
const SAMPLE1: Form =
    form(&[COMMON, SAMPLED, OPTIONAL, SAMPLER, TEXTURE], text!(typed, "", ", {SRC1}{SRC2}, s#{SAMP}, t#{TEX}"));
const SAMPLE2: Form =
    form(&[COMMON, SAMPLED, SECOND, SAMPLER, TEXTURE], text!(typed, "", ", {SRC1}, {SRC2}, s#{SAMP}, t#{TEX}"));
const FETCH: Form = form(
    &[COMMON, FETCHED, OPTIONAL_OR_OFFSET, SAMPLER, TEXTURE],
    text!(isam, "", ", {SRC1}{SRC2}, s#{SAMP}, t#{TEX}"),
);
/// A texture without a sampler.
const QUERY0: Form = form(&[COMMON, SAMPLED, OPTIONAL, NO_SAMPLER, TEXTURE], text!(typed, "", "{SRC2}, t#{TEX}"));
const QUERY1: Form =
    form(&[COMMON, SAMPLED, OPTIONAL, NO_SAMPLER, TEXTURE], text!(typed, "", ", {SRC1}{SRC2}, t#{TEX}"));
const NO_SAMPLER: &[Field] = &[Field::new(FieldName::Sampler, 21, 24, Kind::Hidden)];
/// Neither.
const PLAIN0: Form = form(&[COMMON, SAMPLED, OPTIONAL, NO_DESCRIPTORS], text!(typed, "", "{SRC2}"));
const PLAIN1: Form = form(&[COMMON, SAMPLED, OPTIONAL, NO_DESCRIPTORS], text!(typed, "", ", {SRC1}{SRC2}"));
const UNTYPED1: Form = form(&[COMMON, SAMPLED, OPTIONAL, NO_DESCRIPTORS], text!(untyped, "", ", {SRC1}{SRC2}"));

/// The same with indirect and bindless descriptors.
const SAMPLE1_MODE: Form = form(&[COMMON, SAMPLED, OPTIONAL, BOTH], text!(typed, "{MODE}", ", {SRC1}{SRC2}{DESC}"));
const SAMPLE2_MODE: Form = form(&[COMMON, SAMPLED, SECOND, BOTH], text!(typed, "{MODE}", ", {SRC1}, {SRC2}{DESC}"));
const FETCH_MODE: Form =
    form(&[COMMON, FETCHED, OPTIONAL_OR_OFFSET, BOTH], text!(isam, "{MODE}", ", {SRC1}{SRC2}{DESC}"));
const QUERY0_MODE: Form = form(&[COMMON, SAMPLED, OPTIONAL, ONLY_TEXTURE], text!(typed, "{MODE}", "{SRC2}{DESC}"));
const QUERY1_MODE: Form =
    form(&[COMMON, SAMPLED, OPTIONAL, ONLY_TEXTURE], text!(typed, "{MODE}", ", {SRC1}{SRC2}{DESC}"));
const PLAIN0_MODE: Form = form(&[COMMON, SAMPLED, OPTIONAL, NEITHER], text!(typed, "{MODE}", "{SRC2}{DESC}"));
const PLAIN1_MODE: Form = form(&[COMMON, SAMPLED, OPTIONAL, NEITHER], text!(typed, "{MODE}", ", {SRC1}{SRC2}{DESC}"));
const UNTYPED1_MODE: Form =
    form(&[COMMON, SAMPLED, OPTIONAL, NEITHER], text!(untyped, "{MODE}", ", {SRC1}{SRC2}{DESC}"));

/// What goes through the texture unit without a texture; other flags are not printed.
const BROADCAST: Form = Form {
    text: "{SY}{JP}{NAME}.w{CLUSTER} ({TYPE})({MASK}){DST}, {SRC1}",
    fields: &[
        COMMON,
        NO_DESCRIPTORS,
        &[
            Field::new(FieldName::Src2, 9, 16, Kind::Hidden),
            Field::new(FieldName::Cluster, 19, 20, Kind::Log2),
            Field::new(FieldName::Mode, 51, 51, Kind::Hidden),
        ],
    ],
    ..form(&[], "")
};
const SHUFFLE1: Form = Form {
    text: "{SY}{JP}{NAME} ({TYPE})({MASK}){DST}, {SRC1}{SRC2}",
    fields: &[COMMON, NO_DESCRIPTORS, OPTIONAL, &[Field::new(FieldName::Mode, 51, 51, Kind::Hidden)]],
    generations: from(Generation::A6xx),
    ..BROADCAST
};
const SHUFFLE2: Form = Form {
    text: "{SY}{JP}{NAME} ({TYPE})({MASK}){DST}, {SRC1}, {SRC2}",
    fields: &[COMMON, NO_DESCRIPTORS, SECOND, &[Field::new(FieldName::Mode, 51, 51, Kind::Hidden)]],
    ..SHUFFLE1
};
const BROADCAST_A6: Form = Form { generations: from(Generation::A6xx), ..BROADCAST };
const CACHE: Form = Form {
    fields: &[&[Field::flag(FieldName::Sy, 60, "(sy)"), Field::flag(FieldName::Jp, 59, "(jp)")]],
    text: "{SY}{JP}{NAME}",
    ignored: &[(0, 53)],
    widths: Widths::Full,
    generations: ALL,
};

const CAT: (Bits, u64) = (Bits::new(61, 63), 5);
const OPC: Bits = Bits::new(54, 58);
/// Indirect or bindless.
const BY_MODE: Bits = Bits::new(51, 51);
const BIT18: Bits = Bits::new(18, 18);
const OPC6: Bits = Bits::new(53, 58);
const QUAD: Bits = Bits::new(19, 20);
const BIT50: Bits = Bits::new(50, 50);

macro_rules! rows {
    ($($name:literal, $direct:ident, $by_mode:ident, $opc:literal $(, $bit18:ident)?;)*; $($row:expr),*) => {
        &[$(
            Row {
                name: $name, form: &$direct, when: When::Always,
                fixed: &[CAT, (OPC, $opc), (BY_MODE, 0) $(, ($bit18, 0))?],
            },
            Row {
                name: $name, form: &$by_mode, when: When::Always,
                fixed: &[CAT, (OPC, $opc), (BY_MODE, 1) $(, ($bit18, 0))?],
            },
        )* $($row),*]
    };
}

const fn row(name: &'static str, form: &'static Form, fixed: &'static [(Bits, u64)]) -> Row {
    Row { name, form, fixed, when: When::Always }
}

/// The rows: mnemonic, form with descriptors in the instruction, form with others, opcode.
pub const ROWS: &[Row] = rows! {
    "isam", FETCH, FETCH_MODE, 0;
    "isaml", SAMPLE2, SAMPLE2_MODE, 1, BIT18;
    "isamm", SAMPLE1, SAMPLE1_MODE, 2, BIT18;
    "sam", SAMPLE1, SAMPLE1_MODE, 3, BIT18;
    "samb", SAMPLE2, SAMPLE2_MODE, 4, BIT18;
    "saml", SAMPLE2, SAMPLE2_MODE, 5, BIT18;
    "samgq", SAMPLE1, SAMPLE1_MODE, 6, BIT18;
    "getlod", SAMPLE1, SAMPLE1_MODE, 7, BIT18;
    "conv", SAMPLE2, SAMPLE2_MODE, 8, BIT18;
    "convm", SAMPLE2, SAMPLE2_MODE, 9, BIT18;
    "getsize", QUERY1, QUERY1_MODE, 10, BIT18;
    "getbuf", QUERY0, QUERY0_MODE, 11, BIT18;
    "getpos", QUERY1, QUERY1_MODE, 12, BIT18;
    "getinfo", QUERY0, QUERY0_MODE, 13, BIT18;
    "dsx", PLAIN1, PLAIN1_MODE, 14, BIT18;
    "dsy", PLAIN1, PLAIN1_MODE, 15, BIT18;
    "gather4r", SAMPLE1, SAMPLE1_MODE, 16, BIT18;
    "gather4g", SAMPLE1, SAMPLE1_MODE, 17, BIT18;
    "gather4b", SAMPLE1, SAMPLE1_MODE, 18, BIT18;
    "gather4a", SAMPLE1, SAMPLE1_MODE, 19, BIT18;
    "samgp0", SAMPLE1, SAMPLE1_MODE, 20, BIT18;
    "samgp1", SAMPLE1, SAMPLE1_MODE, 21, BIT18;
    "samgp2", SAMPLE1, SAMPLE1_MODE, 22, BIT18;
    "samgp3", SAMPLE1, SAMPLE1_MODE, 23, BIT18;
    "dsxpp.1", UNTYPED1, UNTYPED1_MODE, 24, BIT18;
    "dsypp.1", UNTYPED1, UNTYPED1_MODE, 25, BIT18;
    "rgetpos", PLAIN1, PLAIN1_MODE, 26, BIT18;
    "rgetinfo", PLAIN0, PLAIN0_MODE, 27, BIT18;
    ;
    row("tcinv", &CACHE, &[CAT, (OPC, 28)]),
    row("brcst.active", &BROADCAST_A6, &[CAT, (OPC6, 62), (BIT18, 0), (BIT50, 0)]),
    row("quad_shuffle.brcst", &SHUFFLE2, &[CAT, (OPC6, 63), (BIT18, 0), (BIT50, 0), (QUAD, 0)]),
    row("quad_shuffle.horiz", &SHUFFLE1, &[CAT, (OPC6, 63), (BIT18, 0), (BIT50, 0), (QUAD, 1)]),
    row("quad_shuffle.vert", &SHUFFLE1, &[CAT, (OPC6, 63), (BIT18, 0), (BIT50, 0), (QUAD, 2)]),
    row("quad_shuffle.diag", &SHUFFLE1, &[CAT, (OPC6, 63), (BIT18, 0), (BIT50, 0), (QUAD, 3)])
};
