//! cat0: branches, `nop`, `kill`, `end`.

use super::field::{Bits, Field, FieldName, Kind};
use super::table::{ALL, Form, Row, When, Widths, from};
use crate::target::Generation;

const FLAGS: &[Field] = &[
    Field::flag(FieldName::Sy, 60, "(sy)"),
    Field::flag(FieldName::Ss, 44, "(ss)"),
    Field::flag(FieldName::Eq, 48, "(eq)"),
    Field::flag(FieldName::Jp, 59, "(jp)"),
    Field::new(FieldName::Repeat, 40, 42, Kind::Repeat),
    Field::new(FieldName::Target, 0, 31, Kind::Target),
];
const FIRST: &[Field] = &[Field::new(FieldName::Predicate1, 52, 54, Kind::Predicate)];
const SECOND: &[Field] = &[Field::new(FieldName::Predicate2, 45, 47, Kind::Predicate)];

/// Marks of a7xx: no more local memory is accessed, or none of any kind. They change no result.
const ENDS: &[Field] =
    &[Field::flag(FieldName::EndOfLocal, 32, "(eolm)"), Field::flag(FieldName::EndOfGlobal, 33, "(eogm)")];

const PLAIN: Form = Form {
    fields: &[FLAGS, ENDS],
    text: "{SY}{SS}{EQ}{JP}{EOLM}{EOGM}{REPEAT}{NAME}",
    ignored: &[(43, 43), (34, 36), (50, 51)],
    widths: Widths::Full,
    generations: ALL,
};
const KILL: Form =
    Form { fields: &[FLAGS, FIRST], text: "{SY}{SS}{EQ}{JP}{NAME} {P1}", ignored: &[(43, 43), (50, 51)], ..PLAIN };
const JUMP: Form = Form {
    fields: &[FLAGS],
    text: "{SY}{SS}{JP}{NAME} #{TARGET}",
    ignored: &[(43, 43), (32, 36), (37, 39), (45, 47), (50, 51), (52, 54)],
    ..PLAIN
};
const GETLAST: Form = Form {
    fields: &[FLAGS, &[Field::new(FieldName::Cluster, 52, 54, Kind::Log2)]],
    text: "{SY}{SS}{JP}{NAME}.w{CLUSTER} #{TARGET}",
    ignored: &[(43, 43), (32, 36), (37, 39), (45, 47), (50, 51)],
    generations: from(Generation::A6xx),
    ..PLAIN
};
const BRAC: Form = Form {
    fields: &[FLAGS, &[Field::new(FieldName::Index, 32, 36, Kind::Uint(0))]],
    text: "{SY}{SS}{EQ}{JP}{NAME}.{INDEX} #{TARGET}",
    ignored: &[(43, 43), (45, 47), (50, 51), (52, 54)],
    ..PLAIN
};
const BRAX: Form = Form {
    fields: &[FLAGS],
    text: "{SY}{SS}{EQ}{JP}{NAME} #{TARGET}",
    ignored: &[(43, 43), (32, 36), (45, 47), (50, 51), (52, 54)],
    ..PLAIN
};
const BRANCH: Form = Form {
    fields: &[FLAGS, FIRST],
    text: "{SY}{SS}{EQ}{JP}{NAME} {P1}, #{TARGET}",
    ignored: &[(43, 43), (32, 36), (45, 47), (50, 51)],
    ..PLAIN
};
const BRANCH_OF_TWO: Form = Form {
    fields: &[FLAGS, FIRST, SECOND],
    text: "{SY}{SS}{EQ}{JP}{NAME} {P1}, {P2}, #{TARGET}",
    ignored: &[(43, 43), (32, 36), (50, 51)],
    ..PLAIN
};

/// Category, opcode, and the bit that tells two sets of opcodes apart.
const CAT: Bits = Bits::new(61, 63);
const OPC: Bits = Bits::new(55, 58).and(49, 49);
const BRANCH_TYPE: Bits = Bits::new(37, 39);

macro_rules! rows {
    ($($name:literal, $form:ident, $opc:literal $(, $kind:literal)?;)*) => {
        &[$(Row {
            name: $name, form: &$form, when: When::Always,
            fixed: &[(CAT, 0), (OPC, $opc) $(, (BRANCH_TYPE, $kind))?],
        }),*]
    };
}

/// The rows: mnemonic, form, opcode, kind of branch.
pub const ROWS: &[Row] = rows! {
    "nop", PLAIN, 0;
    "br", BRANCH, 1, 0;
    "brao", BRANCH_OF_TWO, 1, 1;
    "braa", BRANCH_OF_TWO, 1, 2;
    "brac", BRAC, 1, 3;
    "bany", BRANCH, 1, 4;
    "ball", BRANCH, 1, 5;
    "brax", BRAX, 1, 6;
    "jump", JUMP, 2;
    "call", JUMP, 3;
    "ret", PLAIN, 4;
    "kill", KILL, 5;
    "end", PLAIN, 6;
    "emit", PLAIN, 7;
    "cut", PLAIN, 8;
    "chmask", PLAIN, 9;
    "chsh", PLAIN, 10;
    "flow_rev", PLAIN, 11;
    "bkt", JUMP, 16;
    "getlast", GETLAST, 20;
    "getone", JUMP, 21;
    "shps", JUMP, 23;
    "shpe", PLAIN, 24;
    "predt", PLAIN, 29;
    "predf", PLAIN, 30;
    "prede", PLAIN, 31;
};
