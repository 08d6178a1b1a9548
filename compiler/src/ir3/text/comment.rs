//! The comments that hold attributes which Mesa's text omits: `// {key=value, flag}`.

use super::cursor::{Cursor, Parsed, fail};
use super::mnemonic::{base_of, is_texture_shuffle, printed_flags, prints_texture, take_type};
use crate::ir3::{
    AddressSpace, Attrs, DriverParam, InputKind, InstrData, InstrFlags, Opcode, Output, PhysReg, Program,
    ResourceWords, ShaderStage, SystemValue, Type,
};
use smallvec::{SmallVec, smallvec};
use std::fmt::{Display, Write};

/// Flags by their names in a comment.
const FLAGS: [(InstrFlags, &str); 16] = [
    (InstrFlags::EQ, "eq"),
    (InstrFlags::EI, "ei"),
    (InstrFlags::NONUNIFORM, "nonuniform"),
    (InstrFlags::GLOBAL, "global"),
    (InstrFlags::IMM_OFFSET, "imm_offset"),
    (InstrFlags::PAIR, "pair"),
    (InstrFlags::BINDLESS, "bindless"),
    (InstrFlags::S2EN, "s2en"),
    (InstrFlags::DIM_3D, "3d"),
    (InstrFlags::ARRAY, "array"),
    (InstrFlags::OFFSET, "texel_offset"),
    (InstrFlags::PROJ, "projective"),
    (InstrFlags::SHADOW, "shadow"),
    (InstrFlags::A1EN, "a1en"),
    (InstrFlags::UNIFORM, "uniform"),
    (InstrFlags::VECTOR, "vector"),
];

/// The contents of a comment beside the attributes of the instruction.
#[derive(Default)]
pub(super) struct Remarks {
    /// True if immediates are bits, not indices into the float table.
    pub raw: bool,
    /// The array operands that are relative (one bit per operand, destinations first), if the default rule is wrong.
    pub relative: Option<u32>,
}

/// The entries of a comment, as key, value and the value's position; the value of a bare flag is empty.
fn entries<'a>(
    cursor: &mut Cursor<'a>,
    mut each: impl FnMut(&'a str, usize, Cursor<'a>, usize) -> Parsed<()>,
) -> Parsed<()> {
    loop {
        cursor.skip_spaces();
        if cursor.eat("}") {
            break;
        }
        let at = cursor.pos();
        let key = cursor.until(&['=', ',', '}']);
        if key.is_empty() {
            return fail(at, "a key");
        }
        cursor.eat("=");
        let value_at = cursor.pos();
        let value = cursor.until(&[',', '}']);
        // The value has a cursor of its own, so that no value extends into the next entry.
        each(key, at, Cursor::new(value), if value.is_empty() { at } else { value_at })?;
        if !cursor.eat(",") && cursor.peek() != Some(b'}') {
            return fail(cursor.pos(), "`,` or `}`");
        }
    }
    cursor.skip_spaces();
    if cursor.at_end() { Ok(()) } else { fail(cursor.pos(), "the end of the line") }
}

/// Finds `name` in a table.
fn named<T: Copy>(table: &[(T, &str)], name: &str) -> Option<T> {
    table.iter().find(|(_, n)| *n == name).map(|&(value, _)| value)
}

fn system_value(name: &str) -> Option<SystemValue> {
    match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
        Some((name, number)) => SystemValue::from_name(name, Some(number.parse().ok()?)),
        None => SystemValue::from_name(name, None),
    }
}

/// `3.y`: a number and a component.
fn number_and_component(value: &mut Cursor) -> Parsed<(u16, u16)> {
    let number = value.number("a number")?;
    value.expect(".")?;
    Ok((number, value.component()?))
}

/// `c3.y`, as a scalar index.
fn constant(value: &mut Cursor) -> Parsed<u16> {
    value.expect("c")?;
    let (number, component) = number_and_component(value)?;
    if number < 1 << 13 { Ok(PhysReg::new(number, component).0) } else { fail(0, "a constant") }
}

/// Reads the comment after an instruction; the cursor is after its `// {`.
pub(super) fn read_instr_comment(cursor: &mut Cursor, instr: &mut InstrData) -> Parsed<Remarks> {
    let mut remarks = Remarks::default();
    let mut keys: SmallVec<[&str; 6]> = SmallVec::new();
    entries(cursor, |key, key_at, mut value, at| {
        if keys.contains(&key) {
            return fail(key_at, format!("an attribute that was not given before, as {key} was"));
        }
        keys.push(key);
        let read = instr_entry(key, &mut value, instr, &mut remarks);
        match read {
            Ok(true) if value.at_end() => Ok(()),
            Ok(false) => fail(key_at, format!("an attribute of {}, not {key}", instr.opcode)),
            Ok(true) => fail(at + value.pos(), "`,` or `}`"),
            Err(mut failure) => {
                failure.at += at;
                Err(failure)
            }
        }
    })?;
    Ok(remarks)
}

/// A place for an attribute of an instruction.
enum Place<'a> {
    Type(&'a mut Option<Type>),
    Space(&'a mut Option<AddressSpace>),
    Byte(&'a mut Option<u8>, &'static str),
    Word(&'a mut Option<u16>, &'static str),
    Signed(&'a mut i32, &'static str),
    Flag(&'a mut bool),
}

/// All attributes of memory and texture instructions that may be in a comment, in the order of the text.
fn attributes(attrs: &mut Attrs) -> SmallVec<[(&'static str, Place<'_>); 11]> {
    match attrs {
        Attrs::Memory(memory) => smallvec![
            ("type", Place::Type(&mut memory.ty)),
            ("components", Place::Word(&mut memory.components, "a number of components")),
            ("space", Place::Space(&mut memory.space)),
            ("coords", Place::Byte(&mut memory.coords, "a number of coordinates")),
            ("unit", Place::Byte(&mut memory.index_unit, "a number of bytes")),
            ("old", Place::Flag(&mut memory.old_layout)),
            ("volatile", Place::Flag(&mut memory.volatile)),
            ("base", Place::Byte(&mut memory.base, "a descriptor base")),
            ("offset", Place::Signed(&mut memory.offset, "an offset")),
        ],
        Attrs::Texture(texture) => smallvec![
            ("type", Place::Type(&mut texture.ty)),
            ("base", Place::Byte(&mut texture.base, "a descriptor base")),
            ("sampler", Place::Word(&mut texture.sampler, "a sampler's number")),
            ("texture", Place::Word(&mut texture.texture, "a texture's number")),
            ("input_offset", Place::Word(&mut texture.input_offset, "a varying's number")),
            ("space", Place::Space(&mut texture.space)),
            ("sampler_base", Place::Byte(&mut texture.sampler_base, "a descriptor base")),
            ("cluster", Place::Byte(&mut texture.cluster, "a cluster size")),
            ("1d", Place::Flag(&mut texture.is_1d)),
            ("cube", Place::Flag(&mut texture.is_cube)),
            ("fetch", Place::Flag(&mut texture.is_fetch)),
        ],
        _ => SmallVec::new(),
    }
}

impl Place<'_> {
    /// The text of the value, if it has one; that of a flag is empty.
    fn value(&self) -> Option<String> {
        match self {
            Self::Type(ty) => ty.map(|ty| ty.name().to_owned()),
            Self::Space(space) => space.map(|space| space.to_string()),
            Self::Byte(number, _) => number.map(|number| number.to_string()),
            Self::Word(number, _) => number.map(|number| number.to_string()),
            Self::Signed(number, _) => (**number != 0).then(|| number.to_string()),
            Self::Flag(flag) => flag.then(String::new),
        }
    }

    fn read(&mut self, value: &mut Cursor) -> Parsed<()> {
        match self {
            Self::Type(ty) => match take_type(value.until(&[])) {
                Some((read, "")) => **ty = Some(read),
                _ => return fail(0, "a type"),
            },
            Self::Space(space) => match AddressSpace::from_name(value.until(&[])) {
                Some(read) => **space = Some(read),
                None => return fail(0, "an address space"),
            },
            Self::Byte(number, what) => **number = Some(value.number(what)?),
            Self::Word(number, what) => **number = Some(value.number(what)?),
            Self::Signed(number, what) => **number = value.signed(what)?,
            Self::Flag(flag) => **flag = true,
        }
        Ok(())
    }
}

/// Returns true if the line of an instruction has the attribute.
fn is_on_line(instr: &InstrData, key: &str) -> bool {
    let is_prefetch = instr.opcode == Opcode::TexPrefetch;
    match key {
        "base" => instr.flags.contains(InstrFlags::BINDLESS) && base_of(instr).is_some(),
        "components" => instr.opcode == Opcode::LdcK,
        "offset" if instr.opcode == Opcode::Ldc => instr.memory().is_some_and(|memory| memory.offset >= 0),
        "offset" => instr.opcode == Opcode::SpillMacro,
        "type" => prints_texture(instr.opcode),
        "sampler" => is_prefetch || prints_sampler(instr),
        "texture" => is_prefetch || prints_texture_number(instr),
        "input_offset" => is_prefetch,
        "cluster" => instr.opcode == Opcode::BrcstActive,
        _ => false,
    }
}

/// Parses one entry; returns false if the instruction has no such attribute.
fn instr_entry(key: &str, value: &mut Cursor, instr: &mut InstrData, remarks: &mut Remarks) -> Parsed<bool> {
    match (key, &mut instr.attrs) {
        ("raw", _) => remarks.raw = true,
        ("relative", _) => remarks.relative = Some(value.hex("a mask of operands")?),
        ("flags", _) => {
            for name in value.until(&[]).split('+') {
                match named(&FLAGS, name) {
                    Some(flag) => instr.flags |= flag,
                    None => return fail(0, "names of flags"),
                }
            }
        }
        ("fence", attrs @ Attrs::None) => {
            let text = value.until(&[]);
            if !text.bytes().all(|b| b"rwgl".contains(&b)) {
                return fail(0, "letters of r, w, g, l");
            }
            let [r, w, g, l] = ['r', 'w', 'g', 'l'].map(|letter| text.contains(letter));
            *attrs = Attrs::Fence { r, w, g, l };
        }
        ("input", Attrs::Input(kind)) => *kind = Some(input_kind(value)?),
        (_, attrs) => {
            let mut attributes = attributes(attrs);
            let Some((_, place)) = attributes.iter_mut().find(|(known, _)| *known == key) else { return Ok(false) };
            let line = place.value();
            place.read(value)?;
            if let Some(said) = line.filter(|line| place.value().as_ref() != Some(line)) {
                return fail(0, format!("{said}, as the line says"));
            }
        }
    }
    Ok(true)
}

fn input_kind(value: &mut Cursor) -> Parsed<InputKind> {
    if value.eat("attribute(") {
        let (base, component) = number_and_component(value)?;
        value.expect(")")?;
        return Ok(InputKind::Attribute { base, component: component as u8 });
    }
    match system_value(value.until(&[])) {
        Some(system) => Ok(InputKind::System(system)),
        None => fail(0, "a system value or an attribute"),
    }
}

/// Collects the entries of a comment, and writes the comment if there are any.
struct Entries<'a> {
    out: &'a mut String,
    any: bool,
}

impl Entries<'_> {
    fn key(&mut self, key: &str) -> &mut String {
        self.out.push_str(if self.any { ", " } else { " // {" });
        self.any = true;
        self.out.push_str(key);
        self.out
    }

    fn number(&mut self, key: &str, value: impl Display) {
        let _ = write!(self.key(key), "={value}");
    }

    fn end(self) {
        if self.any {
            self.out.push('}');
        }
    }
}

/// Returns true if `s#` or `t#` follows the operands of this instruction.
pub(super) fn prints_sampler(instr: &InstrData) -> bool {
    prints_texture(instr.opcode) && !instr.flags.contains(InstrFlags::S2EN) && !is_texture_shuffle(instr.opcode)
}

/// Returns true if `t#` does.
pub(super) fn prints_texture_number(instr: &InstrData) -> bool {
    prints_sampler(instr) && !instr.flags.contains(InstrFlags::BINDLESS | InstrFlags::A1EN)
}

/// Writes the attributes that the line of `instr` does not print.
pub(super) fn write_instr_comment(out: &mut String, instr: &InstrData, remarks: &Remarks) {
    let mut entries = Entries { out, any: false };
    if remarks.raw {
        entries.key("raw");
    }
    if let Some(mask) = remarks.relative {
        entries.number("relative", format_args!("{mask:#x}"));
    }
    let flags = instr.flags - printed_flags(instr);
    if !flags.is_empty() {
        let mut sign = '=';
        let out = entries.key("flags");
        for (_, name) in FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)) {
            out.push(sign);
            out.push_str(name);
            sign = '+';
        }
    }
    match &instr.attrs {
        &Attrs::Fence { r, w, g, l } => {
            let out = entries.key("fence=");
            for (_, letter) in [(r, 'r'), (w, 'w'), (g, 'g'), (l, 'l')].iter().filter(|(set, _)| *set) {
                out.push(*letter);
            }
        }
        Attrs::Input(Some(InputKind::Attribute { base, component })) => {
            let component = ['x', 'y', 'z', 'w'][usize::from(*component & 3)];
            let _ = write!(entries.key("input"), "=attribute({base}.{component})");
        }
        Attrs::Input(Some(InputKind::System(value))) => entries.number("input", value),
        attrs @ (Attrs::Memory(_) | Attrs::Texture(_)) => {
            for (key, place) in attributes(&mut attrs.clone()) {
                match place.value().filter(|_| !is_on_line(instr, key)) {
                    Some(value) if value.is_empty() => drop(entries.key(key)),
                    Some(value) => entries.number(key, value),
                    None => {}
                }
            }
        }
        _ => {}
    }
    entries.end();
}

/// Reads a comment about the whole program; the cursor is after its `// {`.
pub(super) fn read_program_comment(cursor: &mut Cursor, program: &mut Program) -> Parsed<()> {
    entries(cursor, |key, _, mut value, at| {
        let result = program_entry(key, &mut value, program)
            .and_then(|()| if value.at_end() { Ok(()) } else { fail(value.pos(), "`,` or `}`") });
        result.map_err(|mut failure| {
            failure.at += at;
            failure
        })
    })
}

fn program_entry(key: &str, value: &mut Cursor, program: &mut Program) -> Parsed<()> {
    let is_said = match key {
        "stage" => program.stage.is_some(),
        "workgroup" => program.workgroup_size.is_some(),
        "scratch" => program.scratch_size != 0,
        "shared" => program.shared_size != 0,
        _ => false,
    };
    if is_said {
        return fail(0, format!("the {key} once"));
    }
    match key {
        "stage" => match ShaderStage::from_name(value.until(&[])) {
            Some(stage) => program.stage = Some(stage),
            None => return fail(0, "a shader stage"),
        },
        "workgroup" => {
            let mut size = [0; 3];
            for (i, axis) in size.iter_mut().enumerate() {
                if i > 0 {
                    value.expect("x")?;
                }
                *axis = value.number("a size")?;
            }
            program.workgroup_size = Some(size);
        }
        "scratch" => program.scratch_size = value.number("a size in bytes")?,
        "shared" => program.shared_size = value.number("a size in bytes")?,
        "output" => {
            let (base, component) = number_and_component(value)?;
            program.outputs.push(Output { base, component: component as u8 });
        }
        "param" => {
            let word = constant(value)?;
            value.expect(":")?;
            let at = value.pos();
            let Some(system) = system_value(value.until(&['.'])) else { return fail(at, "a system value") };
            value.expect(".")?;
            let component = value.component()? as u8;
            if program.consts.is_placed(word) {
                return fail(0, "a word of the constant file that holds nothing else");
            }
            program.consts.driver_params.push(DriverParam { word, value: system, component });
        }
        "resources" => {
            let first = constant(value)?;
            value.expect(":")?;
            program.consts.resources = Some(ResourceWords { first, buffers: value.number("a number of buffers")? });
        }
        "immediate" => {
            let word = constant(value)?;
            value.expect(":")?;
            if program.consts.is_placed(word) {
                return fail(0, "a word of the constant file that holds nothing else");
            }
            program.consts.immediates.push((word, value.hex("32 bits in hexadecimal")?));
        }
        _ => return fail(0, "an attribute of a program"),
    }
    Ok(())
}

/// Writes the attributes of the whole program, one comment per line.
pub(super) fn write_program_comment(out: &mut String, program: &Program) {
    let component = |c: u16| ['x', 'y', 'z', 'w'][usize::from(c & 3)];
    if let Some(stage) = program.stage {
        let _ = writeln!(out, "// {{stage={stage}}}");
    }
    if let Some([x, y, z]) = program.workgroup_size {
        let _ = writeln!(out, "// {{workgroup={x}x{y}x{z}}}");
    }
    if program.shared_size != 0 {
        let _ = writeln!(out, "// {{shared={}}}", program.shared_size);
    }
    if program.scratch_size != 0 {
        let _ = writeln!(out, "// {{scratch={}}}", program.scratch_size);
    }
    for output in &program.outputs {
        let _ = writeln!(out, "// {{output={}.{}}}", output.base, component(u16::from(output.component)));
    }
    for param in &program.consts.driver_params {
        let _ = write!(out, "// {{param=c{}.{}:", param.word >> 2, component(param.word));
        let _ = writeln!(out, "{}.{}}}", param.value, component(u16::from(param.component)));
    }
    if let Some(ResourceWords { first, buffers }) = program.consts.resources {
        let _ = writeln!(out, "// {{resources=c{}.{}:{buffers}}}", first >> 2, component(first));
    }
    for &(word, bits) in &program.consts.immediates {
        let _ = writeln!(out, "// {{immediate=c{}.{}:{bits:#x}}}", word >> 2, component(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_values_have_names_that_read_back() {
        let numbered = [
            (SystemValue::UserClipPlane(3), "user_clip_plane(3)".to_owned()),
            (SystemValue::KernelInput(255), "kernel_input(255)".to_owned()),
            (SystemValue::FragSize(0), "frag_size(0)".to_owned()),
            (SystemValue::FragOffset(5), "frag_offset(5)".to_owned()),
            (SystemValue::PrimitiveLocation(13), "primitive_location(13)".to_owned()),
            (SystemValue::Opaque(7), "opaque(7)".to_owned()),
        ];
        for (value, name) in SystemValue::named().map(|value| (value, value.to_string())).chain(numbered) {
            assert_eq!(value.to_string(), name);
            assert_eq!(system_value(&name), Some(value));
        }
        assert_eq!(system_value("opaque(x)"), None);
    }
}
