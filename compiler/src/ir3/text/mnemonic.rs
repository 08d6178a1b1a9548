//! Opcodes with their suffixes, in both directions.
//!
//! Mesa writes an opcode's types, condition and texture flags after its name, all separated by dots; names may contain
//! dots too. The reader takes the longest matching name, then the suffixes.

use crate::ir3::opcode::Coordinates;
use crate::ir3::{
    AliasScope, Attrs, Category, Condition, InstrData, InstrFlags, MemoryAttrs, Opcode, PhysReg, Round, ShuffleMode,
    TextureAttrs, Type,
};
use std::fmt::Write;

/// The properties of an instruction that its mnemonic determines.
#[derive(Clone)]
pub(super) struct Mnemonic {
    pub opcode: Opcode,
    pub flags: InstrFlags,
    pub attrs: Attrs,
}

/// Texture and memory suffixes, in print order.
const SUFFIXES: [(InstrFlags, &str); 8] = [
    (InstrFlags::DIM_3D, ".3d"),
    (InstrFlags::ARRAY, ".a"),
    (InstrFlags::OFFSET, ".o"),
    (InstrFlags::PROJ, ".p"),
    (InstrFlags::SHADOW, ".s"),
    (InstrFlags::VECTOR, ".v"),
    (InstrFlags::A1EN, ".a1en"),
    (InstrFlags::UNIFORM, ".u"),
];

const TYPES: [Type; 9] =
    [Type::F16, Type::F32, Type::U16, Type::U32, Type::S16, Type::S32, Type::U8In32, Type::U8, Type::U64];

pub(super) const ROUNDS: [(Round, &str); 3] =
    [(Round::Even, "(even)"), (Round::PosInf, "(pos_infinity)"), (Round::NegInf, "(neg_infinity)")];

/// The suffix of a scan's operation: multiplication has no width there.
fn scan_name(op: Opcode) -> &'static str {
    if op == Opcode::MulU24 { "mul.u" } else { op.name() }
}

/// Splits the operation of a scan off the start of `text`.
fn take_scan(text: &str) -> Option<(Opcode, &str)> {
    let end = text.match_indices('.').nth(1).map_or(text.len(), |(at, _)| at);
    let op = if &text[..end] == "mul.u" { Opcode::MulU24 } else { Opcode::from_name(&text[..end])? };
    Some((op, &text[end..]))
}

/// Splits a type off the start of `text`.
pub(super) fn take_type(text: &str) -> Option<(Type, &str)> {
    TYPES.iter().find_map(|&ty| text.strip_prefix(ty.name()).map(|rest| (ty, rest)))
}

/// Returns true for instructions with a texture's type and components after the mnemonic.
pub(super) fn prints_texture(opcode: Opcode) -> bool {
    opcode.category() == Category::Texture && opcode != Opcode::Tcinv
}

/// Fine derivatives, which are computed in two steps; `.p` marks the second.
fn is_paired(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Dsxpp1 | Opcode::Dsypp1)
}

/// Quad operations, which go through the texture unit without a texture.
pub(super) fn is_texture_shuffle(opcode: Opcode) -> bool {
    opcode.info().form.coordinates == Coordinates::Exchanged
}

/// The attributes of an instruction with nothing known; the reader starts from them.
pub(in crate::ir3) fn default_attrs(opcode: Opcode) -> Attrs {
    match opcode {
        Opcode::End | Opcode::Chmask => Attrs::Outputs(Box::default()),
        Opcode::Input => Attrs::Input(None),
        Opcode::TexPrefetch => Attrs::Texture(TextureAttrs::default()),
        _ if prints_texture(opcode) => Attrs::Texture(TextureAttrs::default()),
        _ if opcode.category() == Category::Memory => Attrs::Memory(MemoryAttrs::default()),
        _ => Attrs::None,
    }
}

impl Mnemonic {
    /// Reads the text up to the first space.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (opcode, suffixes) = if let Some(suffixes) = text.strip_prefix("(null)") {
            let opcode = if suffixes.is_empty() { Opcode::Ccinv } else { Opcode::ReadGetlastMacro };
            (opcode, suffixes)
        } else if text.starts_with("cov.") {
            (Opcode::Mov, &text[3..])
        } else {
            let mut end = text.len();
            loop {
                if let Some(opcode) = Opcode::from_name(&text[..end]) {
                    break (opcode, &text[end..]);
                }
                end = text[..end].rfind('.')?;
            }
        };
        let mut mnemonic = Self { opcode, flags: InstrFlags::empty(), attrs: default_attrs(opcode) };
        mnemonic.suffixes(suffixes).then_some(mnemonic)
    }

    /// Parses the suffixes; returns false if they do not belong to the opcode.
    fn suffixes(&mut self, mut rest: &str) -> bool {
        if matches!(self.opcode, Opcode::ScanMacro | Opcode::ScanClustersMacro) {
            let Some((op, behind)) = rest.strip_prefix('.').and_then(take_scan) else { return rest.is_empty() };
            self.attrs = Attrs::Scan { op };
            // The types after it are never set.
            let types = behind.strip_prefix('.').and_then(take_type).and_then(|(_, rest)| take_type(rest));
            return behind.is_empty() || types.is_some_and(|(_, rest)| rest.is_empty());
        }
        while let Some(suffix) = rest.strip_prefix('.') {
            let end = suffix.find('.').unwrap_or(suffix.len());
            if !self.suffix(&suffix[..end]) {
                return false;
            }
            rest = &suffix[end..];
        }
        rest.is_empty()
    }

    /// `tex`, `b32` and the number of `alias.tex.b32.1`.
    fn alias_suffix(&mut self, suffix: &str) -> bool {
        if let Some(&(scope, _)) = AliasScope::ALL.iter().find(|(_, name)| *name == suffix) {
            self.attrs = Attrs::Alias { scope, float: false, size: 0, register: PhysReg(0) };
            return true;
        }
        let Attrs::Alias { float, size, .. } = &mut self.attrs else { return false };
        match suffix {
            "b16" | "b32" => true,
            "f16" | "f32" => {
                *float = true;
                true
            }
            _ => suffix.parse().map(|number| *size = number).is_ok(),
        }
    }

    fn suffix(&mut self, suffix: &str) -> bool {
        let category = self.opcode.category();
        if category == Category::Move {
            let Some((src, rest)) = take_type(suffix) else { return false };
            let Some((dst, rest)) = take_type(rest) else { return false };
            self.attrs = Attrs::Move { src, dst, round: Round::Default };
            return rest.is_empty();
        }
        if self.opcode.has_condition() {
            let condition = Condition::from_name(suffix);
            self.attrs = condition.map_or(Attrs::None, Attrs::Compare);
            return condition.is_some();
        }
        if self.opcode == Opcode::Shfl {
            let ty = match &self.attrs {
                Attrs::Shuffle { mode, .. } => take_type(suffix).map(|(ty, rest)| (*mode, ty, rest.is_empty())),
                _ => ShuffleMode::from_name(suffix).map(|mode| (mode, Type::U32, true)),
            };
            let Some((mode, ty, true)) = ty else { return false };
            self.attrs = Attrs::Shuffle { mode, ty };
            return true;
        }
        if self.opcode == Opcode::Alias {
            return self.alias_suffix(suffix);
        }
        if is_paired(self.opcode) && suffix == "p" {
            self.flags |= InstrFlags::PAIR;
            return true;
        }
        if !matches!(category, Category::Texture | Category::Memory) {
            return false;
        }
        if let Some(&(flag, _)) = SUFFIXES.iter().find(|(_, name)| &name[1..] == suffix) {
            let new = !self.flags.contains(flag);
            self.flags |= flag;
            return new;
        }
        if suffix == "s2en" {
            self.flags |= InstrFlags::S2EN;
            return true;
        }
        let number = |name: &str| -> Option<u32> {
            let digits = suffix.strip_prefix(name)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        if let Attrs::Memory(MemoryAttrs { base, .. }) | Attrs::Texture(TextureAttrs { base, .. }) = &mut self.attrs
            && let Some(n) = number("base").and_then(|n| u8::try_from(n).ok())
        {
            *base = Some(n);
            self.flags |= InstrFlags::BINDLESS;
            return true;
        }
        match &mut self.attrs {
            Attrs::Memory(memory) if self.opcode == Opcode::Ldc => {
                number("offset").and_then(|n| i32::try_from(n).ok()).map(|n| memory.offset = n).is_some()
            }
            Attrs::Memory(memory) if self.opcode == Opcode::LdcK => {
                number("").and_then(|n| u16::try_from(n).ok()).map(|n| memory.components = Some(n)).is_some()
            }
            Attrs::Texture(texture) if self.opcode == Opcode::BrcstActive => {
                number("w").and_then(|n| u8::try_from(n).ok()).map(|n| texture.cluster = Some(n)).is_some()
            }
            _ => false,
        }
    }
}

/// Writes an instruction's flags and mnemonic.
pub(super) fn write_mnemonic(out: &mut String, instr: &InstrData) {
    let flags = instr.flags;
    for (flag, name) in [(InstrFlags::SY, "(sy)"), (InstrFlags::SS, "(ss)"), (InstrFlags::JP, "(jp)")] {
        if flags.contains(flag) {
            out.push_str(name);
        }
    }
    if instr.repeat != 0 {
        let _ = write!(out, "(rpt{})", instr.repeat);
    }
    if instr.nop != 0 {
        let _ = write!(out, "(nop{})", instr.nop);
    }
    for (flag, name) in [(InstrFlags::UL, "(ul)"), (InstrFlags::SAT, "(sat)")] {
        if flags.contains(flag) {
            out.push_str(name);
        }
    }
    match &instr.attrs {
        Attrs::Move { src, dst, .. } if instr.opcode == Opcode::Mov && src != dst => out.push_str("cov"),
        _ => out.push_str(instr.opcode.name()),
    }
    match &instr.attrs {
        Attrs::Move { src, dst, .. } => {
            let _ = write!(out, ".{}{}", src.name(), dst.name());
        }
        Attrs::Scan { op } => {
            let types = if instr.opcode == Opcode::ScanClustersMacro { ".f16f16" } else { "" };
            let _ = write!(out, ".{}{types}", scan_name(*op));
        }
        _ => {}
    }
    if matches!(instr.opcode.category(), Category::Texture | Category::Memory) {
        for (flag, name) in SUFFIXES {
            if flags.contains(flag) && (flag != InstrFlags::PROJ || !is_paired(instr.opcode)) {
                out.push_str(name);
            }
        }
    }
    if flags.contains(InstrFlags::PAIR) && is_paired(instr.opcode) {
        out.push_str(".p");
    }
    if let Some(memory) = instr.memory() {
        if instr.opcode == Opcode::Ldc && memory.offset >= 0 {
            let _ = write!(out, ".offset{}", memory.offset);
        }
        if let (Opcode::LdcK, Some(components)) = (instr.opcode, memory.components) {
            let _ = write!(out, ".{components}");
        }
    }
    if let (true, Some(base)) = (flags.contains(InstrFlags::BINDLESS), base_of(instr)) {
        let _ = write!(out, ".base{base}");
    }
    if flags.contains(InstrFlags::S2EN) && matches!(instr.opcode.category(), Category::Texture | Category::Memory) {
        out.push_str(".s2en");
    }
    match &instr.attrs {
        Attrs::Compare(condition) => {
            let _ = write!(out, ".{condition}");
        }
        Attrs::Shuffle { mode, ty } => {
            let _ = write!(out, ".{mode}.{ty}");
        }
        Attrs::Texture(TextureAttrs { cluster: Some(cluster), .. }) if instr.opcode == Opcode::BrcstActive => {
            let _ = write!(out, ".w{cluster}");
        }
        Attrs::Alias { scope, float, size, .. } => {
            let ty = if *float { "f" } else { "b" };
            let bits = if instr.srcs.iter().any(|src| src.class.half) { 16 } else { 32 };
            let _ = write!(out, ".{}.{ty}{bits}.{size}", scope.name());
        }
        _ => {}
    }
}

/// The flags that [`write_mnemonic`] writes for this instruction; the others are written in the comment.
pub(super) fn printed_flags(instr: &InstrData) -> InstrFlags {
    let mut flags = InstrFlags::SY
        | InstrFlags::SS
        | InstrFlags::JP
        | InstrFlags::UL
        | InstrFlags::SAT
        // In place of the number of uses.
        | InstrFlags::UNUSED;
    if matches!(instr.opcode.category(), Category::Texture | Category::Memory) {
        flags |= SUFFIXES.iter().fold(InstrFlags::S2EN, |all, &(flag, _)| all | flag);
        if base_of(instr).is_some() {
            flags |= InstrFlags::BINDLESS;
        }
    }
    if is_paired(instr.opcode) {
        flags |= InstrFlags::PAIR;
        // For these, `.p` has the other meaning.
        flags -= InstrFlags::PROJ;
    }
    flags
}

/// The bindless base, if the mnemonic can print it.
pub(super) fn base_of(instr: &InstrData) -> Option<u8> {
    match &instr.attrs {
        Attrs::Memory(memory) => memory.base,
        Attrs::Texture(texture) if prints_texture(instr.opcode) => texture.base,
        _ => None,
    }
}
