//! Rows, forms, and the table that finds the row of a word or of a mnemonic.

use super::field::{Bits, Field, FieldName, Kind};
use super::{alu, barrier, flow, memory, moves, texture};
use crate::ir3::opcode::Role;
use crate::ir3::{InstrFlags, Opcode};
use crate::target::Generation;
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;
use std::sync::{LazyLock, OnceLock};

/// The places of the widths of registers in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// It has no half registers.
    Full,
    /// Sources by the bit, destination by `CONVERT` at bit 46.
    ByBit(u8),
    /// Sources by the opcode (true: full), destination by `CONVERT` at bit 46.
    ByOpcode(bool),
    /// Sources by bit 31, destination by bit 46.
    Matrix,
    /// Both by the types of a move.
    ByTypes,
    /// Sources by bit 0, destination by the type at bit 44.
    Texture,
    /// Both by the type at bit 49.
    Memory,
}

/// A condition that an encoding has beside its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// None.
    Always,
    /// The types of a move are the same.
    SameTypes,
    /// The types of a move differ.
    OtherTypes,
}

/// The common part of the instructions of one layout.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Fields, in groups.
    pub fields: &'static [&'static [Field]],
    /// The text: names of fields and `NAME` in braces.
    pub text: &'static str,
    /// Bits that the hardware ignores, as far as is known: ranges with both ends.
    pub ignored: &'static [(u8, u8)],
    /// The places of widths.
    pub widths: Widths,
    /// Generations that have it.
    pub generations: (Generation, Generation),
}

/// An encoding: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Mnemonic.
    pub name: &'static str,
    /// Layout.
    pub form: &'static Form,
    /// Bits that tell the instruction: where, and their value.
    pub fixed: &'static [(Bits, u64)],
    /// A condition beside them.
    pub when: When,
}

/// A piece of an instruction's text.
#[derive(Clone, Copy, Debug)]
pub enum Piece {
    /// Text.
    Text(&'static str),
    /// The mnemonic.
    Name,
    /// A field.
    Field(&'static Field),
}

/// The prefix flags, each with the field that encodes it.
pub const PREFIX_FLAGS: [(FieldName, InstrFlags); 7] = [
    (FieldName::Sy, InstrFlags::SY),
    (FieldName::Ss, InstrFlags::SS),
    (FieldName::Jp, InstrFlags::JP),
    (FieldName::Eq, InstrFlags::EQ),
    (FieldName::Ul, InstrFlags::UL),
    (FieldName::Sat, InstrFlags::SAT),
    (FieldName::Ei, InstrFlags::EI),
];

/// The fields of an encoding by name.
type FieldsByName = [Option<&'static Field>; FieldName::ALL.len()];

/// A row, prepared.
#[derive(Debug)]
pub struct Encoding {
    /// The mnemonic.
    pub name: &'static str,
    /// The opcode of ir3, if it has one.
    pub opcode: Option<Opcode>,
    /// The places of widths.
    pub widths: Widths,
    /// A condition beside the bits.
    pub when: When,
    /// Bits with a fixed value.
    pub mask: u64,
    /// Their value.
    pub value: u64,
    /// Their value in new words, with that of fields that are not printed.
    pub template: u64,
    /// The bits of [`PREFIX_FLAGS`].
    pub flags: u64,
    /// Generations that have it.
    pub generations: RangeInclusive<Generation>,
    /// The text, as in [`Form::text`].
    text: &'static str,
    /// The pieces of the text, which only texts of programs require.
    pieces: OnceLock<Vec<Piece>>,
    /// The fields by name, printed or not.
    by_name: FieldsByName,
    /// Those of sources with roles.
    sources: Vec<&'static Field>,
}

impl Encoding {
    /// A field by its name.
    pub fn field(&self, name: FieldName) -> Option<&'static Field> {
        self.by_name[name as usize]
    }

    /// The fields of sources, with their roles.
    pub fn sources(&self) -> impl Iterator<Item = (Role, &'static Field)> {
        self.sources.iter().filter_map(|&field| Some((field.holds?, field)))
    }

    /// The field of the source with a role.
    pub fn source(&self, role: Role) -> Option<&'static Field> {
        self.sources.iter().copied().find(|field| field.holds == Some(role))
    }

    /// All fields.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.by_name.iter().copied().flatten()
    }

    /// The pieces of the text.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.get_or_init(|| pieces(self.name, self.text, &self.by_name, &mut Vec::new()))
    }

    /// The value of a field in a word; 0 if the encoding does not have it.
    pub fn get(&self, name: FieldName, word: u64) -> u64 {
        self.field(name).map_or(0, |field| field.bits.get(word))
    }

    /// Returns true if the text has the field.
    pub fn prints(&self, name: FieldName) -> bool {
        self.pieces().iter().any(|piece| matches!(piece, Piece::Field(field) if field.name == name))
    }

    /// Returns true if the word is this instruction.
    pub fn matches(&self, word: u64) -> bool {
        word & self.mask == self.value
            && match self.when {
                When::Always => true,
                When::SameTypes => word >> 50 & 7 == word >> 46 & 7,
                When::OtherTypes => word >> 50 & 7 != word >> 46 & 7,
            }
    }

    fn new(row: &Row) -> Self {
        let mut by_name: FieldsByName = [None; FieldName::ALL.len()];
        let (mut owned, mut always) = (0, 0);
        for field in row.form.fields.iter().copied().flatten() {
            by_name[field.name as usize] = Some(field);
            owned |= field.mask();
            if let Kind::Always(value) = field.kind {
                always |= field.bits.put(value);
            }
        }
        let ignored = row.form.ignored.iter().fold(0, |mask, &(low, high)| mask | Bits::new(low, high).mask());
        let fixed = row.fixed.iter().fold(0, |mask, (bits, _)| mask | bits.mask());
        let value = row.fixed.iter().fold(0, |word, (bits, value)| word | bits.put(*value));
        let (first, last) = row.form.generations;
        Self {
            // Its number comes before the `.k`.
            name: if row.name == "ldc.k" { "ldc" } else { row.name },
            opcode: opcode_of(row.name),
            widths: row.form.widths,
            when: row.when,
            mask: !(owned | ignored) | fixed,
            value,
            template: value | always,
            flags: PREFIX_FLAGS
                .iter()
                .filter_map(|&(name, _)| by_name[name as usize])
                .fold(0, |bits, flag| bits | flag.mask()),
            generations: first..=last,
            text: row.form.text,
            pieces: OnceLock::new(),
            sources: by_name.iter().copied().flatten().filter(|field| field.holds.is_some()).collect(),
            by_name,
        }
    }
}

/// The pieces of a text. What it names and the encoding does not have is added to `problems`.
fn pieces(name: &str, text: &'static str, by_name: &FieldsByName, problems: &mut Vec<String>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            pieces.push(Piece::Text(&rest[..open]));
        }
        let close = rest[open..].find('}').map_or(rest.len(), |at| open + at);
        let field_name = &rest[open + 1..close];
        let field = FieldName::from_name(field_name).and_then(|name| by_name[name as usize]);
        match field {
            _ if field_name == "NAME" => pieces.push(Piece::Name),
            Some(field) => pieces.push(Piece::Field(field)),
            None => problems.push(format!("{name}: its text has {field_name}, and it has no such field")),
        }
        rest = rest.get(close + 1..).unwrap_or("");
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// The opcode of a mnemonic: that of its name, but for some suffixes that ir3 has as flags.
fn opcode_of(name: &str) -> Option<Opcode> {
    match name {
        "cov" | "mova" | "mova1" => Some(Opcode::Mov),
        "ldib.b" => Some(Opcode::Ldib),
        "stib.b" => Some(Opcode::Stib),
        "resinfo.b" => Some(Opcode::Resinfo),
        _ => Opcode::from_name(name),
    }
}

/// The encodings of a generation, found by words and by mnemonics.
pub struct Table {
    /// For each value of the category and of bits 53 to 58, the encodings that it may be.
    by_bits: Vec<Vec<&'static Encoding>>,
    by_name: FxHashMap<&'static str, Vec<&'static Encoding>>,
    by_opcode: Vec<Vec<&'static Encoding>>,
}

/// Category and the highest bits of opcodes.
const DISPATCH: Bits = Bits::new(53, 58).and(61, 63);

impl Table {
    /// The table of a generation.
    pub fn of(generation: Generation) -> &'static Self {
        static TABLES: [OnceLock<Table>; Generation::ALL.len()] = [const { OnceLock::new() }; Generation::ALL.len()];
        TABLES[generation.number() as usize - 3].get_or_init(|| Self::new(generation))
    }

    fn new(generation: Generation) -> Self {
        let mut table = Self {
            by_bits: vec![Vec::new(); 1 << DISPATCH.width()],
            by_name: FxHashMap::default(),
            by_opcode: vec![Vec::new(); Opcode::ALL.len()],
        };
        for encoding in encodings().iter().filter(|encoding| encoding.generations.contains(&generation)) {
            // All values of the bits that its mask leaves open: the subsets of these.
            let open = DISPATCH.get(!encoding.mask);
            let fixed = DISPATCH.get(encoding.value & encoding.mask);
            let mut subset = open;
            loop {
                table.by_bits[(fixed | subset) as usize].push(encoding);
                if subset == 0 {
                    break;
                }
                subset = (subset - 1) & open;
            }
            table.by_name.entry(encoding.name).or_default().push(encoding);
            if let Some(opcode) = encoding.opcode {
                table.by_opcode[opcode as usize].push(encoding);
            }
        }
        table
    }

    /// The encoding of a word.
    pub fn find(&self, word: u64) -> Option<&'static Encoding> {
        self.by_bits[DISPATCH.get(word) as usize].iter().copied().find(|encoding| encoding.matches(word))
    }

    /// The encodings with a mnemonic.
    pub fn named(&self, name: &str) -> &[&'static Encoding] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The encodings of an opcode.
    pub fn of_opcode(&self, opcode: Opcode) -> &[&'static Encoding] {
        &self.by_opcode[opcode as usize]
    }
}

/// All rows.
fn rows() -> impl Iterator<Item = &'static Row> {
    let rows = [flow::ROWS, moves::ROWS, alu::ROWS, texture::ROWS, memory::ROWS, barrier::ROWS];
    rows.into_iter().chain(memory::ATOMICS).flatten()
}

/// All encodings of all generations.
pub fn encodings() -> &'static [Encoding] {
    static ENCODINGS: LazyLock<Vec<Encoding>> = LazyLock::new(|| rows().map(Encoding::new).collect());
    &ENCODINGS
}

/// The ends of a range of generations.
pub const fn from(first: Generation) -> (Generation, Generation) {
    (first, Generation::A8xx)
}

/// All generations.
pub const ALL: (Generation, Generation) = from(Generation::A3xx);

/// A field that is never printed.
pub const fn hidden(name: FieldName, low: u8, high: u8) -> Field {
    Field::new(name, low, high, Kind::Hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir3::opcode::Memory;

    #[test]
    fn rows_are_consistent() {
        let mut problems = Vec::new();
        for row in rows() {
            let encoding = Encoding::new(row);
            pieces(row.name, row.form.text, &encoding.by_name, &mut problems);
            if row.fixed.iter().any(|(bits, value)| !bits.holds(*value)) {
                problems.push(format!("{}: a fixed value does not fit its bits", row.name));
            }
        }
        assert_eq!(problems, Vec::<String>::new());
    }

    /// The fields of a memory instruction hold the sources of its form. What no field holds is `a1.x`, a shift that is
    /// 0, or a count of one element.
    #[test]
    fn fields_hold_the_sources_of_forms() {
        for encoding in encodings() {
            let Some(form) = encoding.opcode.map(|opcode| opcode.info().form) else { continue };
            let is_old = encoding.source(Role::Bytes).is_some();
            let form = form.old.filter(|_| is_old).unwrap_or(form);
            let optional = |role| matches!(role, Role::Address1 | Role::To | Role::Shift);
            let is_known = |role| form.has(role) || matches!(role, Role::Offset | Role::Count);
            assert!(
                encoding.sources().all(|(role, _)| is_known(role)) || form.memory == Memory::Unknown,
                "{}",
                encoding.name
            );
            if form.memory != Memory::None {
                let mut roles = form.srcs.iter().copied();
                assert!(roles.all(|role| optional(role) || encoding.source(role).is_some()), "{}", encoding.name);
            }
        }
    }

    /// A row says the value of fixed bits only.
    #[test]
    fn values_are_of_fixed_bits() {
        for encoding in encodings() {
            assert_eq!(encoding.value & !encoding.mask, 0, "{}", encoding.name);
        }
    }

    /// No word is two instructions, unless one row says less of the same bits than an earlier one.
    #[test]
    fn rows_do_not_collide() {
        for generation in Generation::ALL {
            let rows: Vec<_> = encodings().iter().filter(|row| row.generations.contains(&generation)).collect();
            for (i, a) in rows.iter().enumerate() {
                for b in &rows[i + 1..] {
                    let collide = (a.value ^ b.value) & a.mask & b.mask == 0;
                    let narrower = b.mask & !a.mask == 0;
                    let told = a.when != b.when;
                    assert!(!collide || narrower || told, "{generation:?}: {} and {}", a.name, b.name);
                }
            }
        }
    }
}
