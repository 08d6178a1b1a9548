//! cat7: barriers, caches, aliases.

use super::field::{Bits, Field, FieldName, Kind};
use super::table::{ALL, Form, Row, When, Widths, from};
use crate::target::Generation;

const FLAGS: &[Field] = &[
    Field::flag(FieldName::Sy, 60, "(sy)"),
    Field::flag(FieldName::Ss, 44, "(ss)"),
    Field::flag(FieldName::Jp, 59, "(jp)"),
];
const PLAIN: Form = Form {
    fields: &[FLAGS],
    text: "{SY}{SS}{JP}{NAME}",
    ignored: &[(0, 43), (45, 54)],
    widths: Widths::Full,
    generations: ALL,
};
const FENCE: Form = Form {
    fields: &[
        FLAGS,
        &[
            Field::flag(FieldName::Write, 51, ".w"),
            Field::flag(FieldName::Read, 52, ".r"),
            Field::flag(FieldName::Local, 53, ".l"),
            Field::flag(FieldName::Global, 54, ".g"),
        ],
    ],
    text: "{SY}{SS}{JP}{NAME}{G}{L}{R}{W}",
    ignored: &[(0, 43), (45, 48), (50, 50)],
    ..PLAIN
};
const CACHE: Form = Form {
    fields: &[FLAGS, &[Field::new(FieldName::Type, 51, 51, Kind::Words(&[".shr", ".all"]))]],
    text: "{SY}{SS}{JP}{NAME}{TYPE}",
    ignored: &[(0, 43), (45, 50), (53, 54)],
    ..PLAIN
};
const SLEEP: Form = Form {
    fields: &[FLAGS, &[Field::new(FieldName::Type, 51, 51, Kind::Words(&[".s", ".l"]))]],
    text: "{SY}{SS}{JP}{NAME}{TYPE}",
    ignored: &[(0, 43), (45, 50), (52, 54)],
    ..PLAIN
};
const CONST_CACHE: Form =
    Form { ignored: &[(0, 43), (45, 48), (50, 50)], generations: from(Generation::A7xx), ..PLAIN };
const LOCK: Form = Form { ignored: &[(0, 43)], ..CONST_CACHE };
/// The table of an alias.
pub(super) const ALIAS_SCOPE: Bits = Bits::new(47, 47).and(49, 49);
const ALIAS: Form = Form {
    fields: &[
        FLAGS,
        &[
            Field::new(FieldName::Dst, 32, 39, Kind::AliasDst { scope: ALIAS_SCOPE, size: 50 }),
            Field::new(FieldName::Entry, 40, 43, Kind::Uint(0)),
            Field { name: FieldName::Scope, bits: ALIAS_SCOPE, kind: Kind::Words(&["tex", "rt", "mem"]), holds: None },
            Field::new(FieldName::Type, 48, 48, Kind::Words(&["f", "b"])),
            Field::new(FieldName::Size, 50, 50, Kind::Words(&["16", "32"])),
            Field::new(FieldName::Src1, 0, 31, Kind::AliasSrc { float: 48, size: 50, kind: Bits::new(51, 52) }),
        ],
    ],
    text: "{SY}{SS}{JP}{NAME}.{SCOPE}.{TYPE}{SIZE}.{ENTRY} {DST}, {SRC1}",
    ignored: &[(45, 46), (53, 54)],
    ..CONST_CACHE
};

const CAT: (Bits, u64) = (Bits::new(61, 63), 7);
const OPC: Bits = Bits::new(55, 58);

const fn row(name: &'static str, form: &'static Form, fixed: &'static [(Bits, u64)]) -> Row {
    Row { name, form, fixed, when: When::Always }
}

/// The rows.
pub const ROWS: &[Row] = &[
    row("bar", &FENCE, &[CAT, (OPC, 0), (Bits::new(49, 49), 1)]),
    row("fence", &FENCE, &[CAT, (OPC, 1), (Bits::new(49, 49), 1)]),
    row("sleep", &SLEEP, &[CAT, (OPC, 2)]),
    row("icinv", &PLAIN, &[CAT, (OPC, 3)]),
    row("dccln", &CACHE, &[CAT, (OPC, 4), (Bits::new(52, 52), 0)]),
    row("ccinv", &CONST_CACHE, &[CAT, (OPC, 5), (Bits::new(49, 49), 1), (Bits::new(51, 54), 10)]),
    row("dcinv", &CACHE, &[CAT, (OPC, 5), (Bits::new(52, 52), 0)]),
    row("dcflu", &CACHE, &[CAT, (OPC, 6), (Bits::new(52, 52), 0)]),
    row("lock", &LOCK, &[CAT, (OPC, 7), (Bits::new(45, 54), 0x210)]),
    row("unlock", &LOCK, &[CAT, (OPC, 7), (Bits::new(45, 54), 0x250)]),
    row("alias", &ALIAS, &[CAT, (OPC, 8)]),
];
