//! The comments that hold attributes which Mesa's text omits: `// {key=value, flag}`.

use super::cursor::{Cursor, Parsed, fail};
use super::mnemonic::{base_of, is_texture_shuffle, printed_flags, prints_texture, take_type};
use crate::ir3::{
    AddressSpace, Attrs, DriverParam, InputKind, InstrData, InstrFlags, MemoryAttrs, Opcode, Output, PhysReg, Program,
    ResourceWords, ShaderStage, SystemValue, TextureAttrs, Type,
};
use smallvec::SmallVec;
use std::fmt::{Display, Write};

const SYSTEM_VALUES: [(SystemValue, &str); 46] = {
    use SystemValue::*;
    [
        (WorkgroupId, "workgroup_id"),
        (BaseWorkgroupId, "base_workgroup_id"),
        (NumWorkgroups, "num_workgroups"),
        (WorkgroupSize, "workgroup_size"),
        (LocalInvocationId, "local_invocation_id"),
        (LocalInvocationIndex, "local_invocation_index"),
        (SubgroupSize, "subgroup_size"),
        (SubgroupInvocation, "subgroup_invocation"),
        (SubgroupId, "subgroup_id"),
        (SubgroupIdShift, "subgroup_id_shift"),
        (WorkDim, "work_dim"),
        (VertexId, "vertex_id"),
        (VertexIdZeroBase, "vertex_id_zero_base"),
        (BaseVertex, "base_vertex"),
        (BaseInstance, "base_instance"),
        (DrawId, "draw_id"),
        (IsIndexedDraw, "is_indexed_draw"),
        (ViewIndex, "view_index"),
        (InstanceId, "instance_id"),
        (PrimitiveId, "primitive_id"),
        (FragCoord, "frag_coord"),
        (FrontFace, "front_face"),
        (PointCoord, "point_coord"),
        (FragShadingRate, "frag_shading_rate"),
        (FragInvocationCount, "frag_invocation_count"),
        (SampleId, "sample_id"),
        (SamplePos, "sample_pos"),
        (SampleMaskIn, "sample_mask_in"),
        (HelperInvocation, "helper_invocation"),
        (BarycentricPixel, "barycentric_pixel"),
        (BarycentricCentroid, "barycentric_centroid"),
        (BarycentricSample, "barycentric_sample"),
        (BarycentricPixelLinear, "barycentric_pixel_linear"),
        (BarycentricCentroidLinear, "barycentric_centroid_linear"),
        (BarycentricSampleLinear, "barycentric_sample_linear"),
        (BarycentricCenterRhw, "barycentric_center_rhw"),
        (TcsHeader, "tcs_header"),
        (GsHeader, "gs_header"),
        (RelPatchId, "rel_patch_id"),
        (TessCoord, "tess_coord"),
        (VsPrimitiveStride, "vs_primitive_stride"),
        (VsVertexStride, "vs_vertex_stride"),
        (HsPatchStride, "hs_patch_stride"),
        (PatchVerticesIn, "patch_vertices_in"),
        (TessParamBase, "tess_param_base"),
        (TessFactorBase, "tess_factor_base"),
    ]
};

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

/// The name of `value` in a table.
fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> &'static str {
    table.iter().find(|(v, _)| v == value).map_or("", |&(_, name)| name)
}

impl SystemValue {
    /// All system values without an index.
    pub fn named() -> impl Iterator<Item = Self> {
        SYSTEM_VALUES.iter().map(|&(value, _)| value)
    }
}

fn system_value(name: &str) -> Option<SystemValue> {
    named(&SYSTEM_VALUES, name).or_else(|| {
        let (name, number) = name.strip_suffix(')')?.split_once('(')?;
        Some(match name {
            "user_clip_plane" => SystemValue::UserClipPlane(number.parse().ok()?),
            "kernel_input" => SystemValue::KernelInput(number.parse().ok()?),
            "frag_size" => SystemValue::FragSize(number.parse().ok()?),
            "frag_offset" => SystemValue::FragOffset(number.parse().ok()?),
            "primitive_location" => SystemValue::PrimitiveLocation(number.parse().ok()?),
            "opaque" => SystemValue::Opaque(number.parse().ok()?),
            _ => return None,
        })
    })
}

fn write_system_value(out: &mut String, value: SystemValue) {
    let (name, number) = match value {
        SystemValue::UserClipPlane(plane) => ("user_clip_plane", plane.into()),
        SystemValue::KernelInput(vec4) => ("kernel_input", vec4.into()),
        SystemValue::FragSize(view) => ("frag_size", view.into()),
        SystemValue::FragOffset(view) => ("frag_offset", view.into()),
        SystemValue::PrimitiveLocation(index) => ("primitive_location", index.into()),
        SystemValue::Opaque(number) => ("opaque", number),
        _ => return out.push_str(name_of(&SYSTEM_VALUES, &value)),
    };
    let _ = write!(out, "{name}({number})");
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
    // The attributes that the line itself has.
    let said = instr.attrs.clone();
    let mut keys: SmallVec<[&str; 6]> = SmallVec::new();
    entries(cursor, |key, key_at, mut value, at| {
        if keys.contains(&key) {
            return fail(key_at, format!("an attribute that was not given before, as {key} was"));
        }
        keys.push(key);
        let read = instr_entry(key, &mut value, instr, &mut remarks);
        if let Some(other) = contradiction(&said, &instr.attrs) {
            return fail(at, format!("{other}, as the line says"));
        }
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

/// Returns an attribute of the line that its comment contradicts.
fn contradiction(line: &Attrs, comment: &Attrs) -> Option<String> {
    fn other<T: PartialEq + Copy + Display>(line: Option<T>, comment: Option<T>) -> Option<String> {
        line.filter(|_| line != comment).map(|said| said.to_string())
    }
    match (line, comment) {
        (Attrs::Memory(line), Attrs::Memory(comment)) => other(line.base, comment.base)
            .or_else(|| other(line.components, comment.components))
            .or_else(|| other(Some(line.offset).filter(|&offset| offset != 0), Some(comment.offset))),
        (Attrs::Texture(line), Attrs::Texture(comment)) => other(line.base, comment.base)
            .or_else(|| other(line.sampler, comment.sampler))
            .or_else(|| other(line.texture, comment.texture))
            .or_else(|| other(line.input_offset, comment.input_offset))
            .or_else(|| other(line.cluster, comment.cluster))
            .or_else(|| other(line.ty.map(Type::name), comment.ty.map(Type::name))),
        _ => None,
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
        ("type", Attrs::Memory(MemoryAttrs { ty, .. }) | Attrs::Texture(TextureAttrs { ty, .. })) => {
            *ty = Some(type_value(value)?);
        }
        ("base", Attrs::Memory(MemoryAttrs { base, .. }) | Attrs::Texture(TextureAttrs { base, .. })) => {
            *base = Some(value.number("a descriptor base")?);
        }
        ("components", Attrs::Memory(memory)) => memory.components = Some(value.number("a number of components")?),
        ("coords", Attrs::Memory(memory)) => memory.coords = Some(value.number("a number of coordinates")?),
        ("offset", Attrs::Memory(memory)) => memory.offset = value.signed("an offset")?,
        ("space", Attrs::Memory(memory)) => match AddressSpace::from_name(value.until(&[])) {
            Some(space) => memory.space = Some(space),
            None => return fail(0, "an address space"),
        },
        ("space", Attrs::Texture(texture)) => match AddressSpace::from_name(value.until(&[])) {
            Some(space) => texture.space = Some(space),
            None => return fail(0, "an address space"),
        },
        ("old", Attrs::Memory(memory)) => memory.old_layout = true,
        ("volatile", Attrs::Memory(memory)) => memory.volatile = true,
        ("unit", Attrs::Memory(memory)) => memory.index_unit = Some(value.number("a number of bytes")?),
        ("sampler_base", Attrs::Texture(texture)) => {
            texture.sampler_base = Some(value.number("a descriptor base")?);
        }
        ("sampler", Attrs::Texture(texture)) => texture.sampler = Some(value.number("a sampler's number")?),
        ("texture", Attrs::Texture(texture)) => texture.texture = Some(value.number("a texture's number")?),
        ("input_offset", Attrs::Texture(texture)) => texture.input_offset = Some(value.number("a varying's number")?),
        ("cluster", Attrs::Texture(texture)) => texture.cluster = Some(value.number("a cluster size")?),
        ("1d", Attrs::Texture(texture)) => texture.is_1d = true,
        ("cube", Attrs::Texture(texture)) => texture.is_cube = true,
        ("fetch", Attrs::Texture(texture)) => texture.is_fetch = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn type_value(value: &mut Cursor) -> Parsed<Type> {
    match take_type(value.until(&[])) {
        Some((ty, "")) => Ok(ty),
        _ => fail(0, "a type"),
    }
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

    fn optional(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.number(key, value);
        }
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
    let printed_base = instr.flags.contains(InstrFlags::BINDLESS) && base_of(instr).is_some();
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
        Attrs::Input(Some(InputKind::System(value))) => write_system_value(entries.key("input="), *value),
        Attrs::Memory(memory) => {
            entries.optional("type", memory.ty.map(Type::name));
            if instr.opcode != Opcode::LdcK {
                entries.optional("components", memory.components);
            }
            entries.optional("space", memory.space);
            entries.optional("coords", memory.coords);
            entries.optional("unit", memory.index_unit);
            if memory.old_layout {
                entries.key("old");
            }
            if memory.volatile {
                entries.key("volatile");
            }
            entries.optional("base", memory.base.filter(|_| !printed_base));
            let printed = match instr.opcode {
                Opcode::Ldc => memory.offset >= 0,
                Opcode::SpillMacro => true,
                _ => memory.offset == 0,
            };
            if !printed {
                entries.number("offset", memory.offset);
            }
        }
        Attrs::Texture(texture) => {
            let prefetch = instr.opcode == Opcode::TexPrefetch;
            entries.optional("type", texture.ty.map(Type::name).filter(|_| !prints_texture(instr.opcode)));
            entries.optional("base", texture.base.filter(|_| !printed_base));
            entries.optional("sampler", texture.sampler.filter(|_| !prefetch && !prints_sampler(instr)));
            entries.optional("texture", texture.texture.filter(|_| !prefetch && !prints_texture_number(instr)));
            entries.optional("input_offset", texture.input_offset.filter(|_| !prefetch));
            entries.optional("space", texture.space);
            entries.optional("sampler_base", texture.sampler_base);
            entries.optional("cluster", texture.cluster.filter(|_| instr.opcode != Opcode::BrcstActive));
            if texture.is_1d {
                entries.key("1d");
            }
            if texture.is_cube {
                entries.key("cube");
            }
            if texture.is_fetch {
                entries.key("fetch");
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
        write_system_value(out, param.value);
        let _ = writeln!(out, ".{}}}", component(u16::from(param.component)));
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
            (SystemValue::UserClipPlane(3), "user_clip_plane(3)"),
            (SystemValue::KernelInput(255), "kernel_input(255)"),
            (SystemValue::FragSize(0), "frag_size(0)"),
            (SystemValue::FragOffset(5), "frag_offset(5)"),
            (SystemValue::PrimitiveLocation(13), "primitive_location(13)"),
            (SystemValue::Opaque(7), "opaque(7)"),
        ];
        for (value, name) in SYSTEM_VALUES.iter().copied().chain(numbered) {
            let mut out = String::new();
            write_system_value(&mut out, value);
            assert_eq!(out, name);
            assert_eq!(system_value(name), Some(value));
        }
        assert_eq!(system_value("opaque(x)"), None);
    }
}
