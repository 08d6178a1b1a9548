//! Writes nir.

use std::fmt::{self, Write};

use half::f16;

use super::inference::{NumericUses, intrinsic_src_type, tex_src_type};
use crate::nir::cfg::Cfg;
use crate::nir::function::{
    Alu, AluSrc, Block, CfNode, Def, Function, If, InstrData, Intrinsic, Loop, LoopControl, SelectionControl,
};
use crate::nir::index::{
    ACCESS_WORDS, FP_WORDS, FpMath, IO_WORDS, Index, MODE_WORDS, MemorySemantics, PRESERVE_WORDS, Xfb, write_words,
};
use crate::nir::shader::{Info, Shader, Stage};
use crate::nir::tex::{Tex, TexOp};
use crate::nir::types::BaseType;

/// The lines of the header in nir_print's order. An unknown key comes after all of them.
const HEADER_ORDER: &[&str] = &[
    "source_blake3",
    "name",
    "label",
    "internal",
    "workgroup_size",
    "prev_stage",
    "next_stage",
    "num_textures",
    "num_ubos",
    "num_abos",
    "num_ssbos",
    "num_images",
    "inputs_read",
    "dual_slot_inputs",
    "outputs_written",
    "outputs_read",
    "perspective_varyings",
    "linear_varyings",
    "system_values_read",
    "per_primitive_inputs",
    "per_primitive_outputs",
    "per_view_outputs",
    "inputs_read_16bit",
    "outputs_written_16bit",
    "outputs_read_16bit",
    "inputs_read_indirectly_16bit",
    "outputs_accessed_indirectly_16bit",
    "outputs_read_indirectly_16bit",
    "outputs_written_indirectly_16bit",
    "patch_inputs_read",
    "patch_outputs_written",
    "patch_outputs_read",
    "inputs_read_indirectly",
    "outputs_accessed_indirectly",
    "outputs_read_indirectly",
    "outputs_written_indirectly",
    "patch_inputs_read_indirectly",
    "patch_outputs_accessed_indirectly",
    "patch_outputs_read_indirectly",
    "patch_outputs_written_indirectly",
    "textures_used",
    "textures_used_by_txf",
    "samplers_used",
    "images_used",
    "image_buffers",
    "msaa_images",
    "float_controls_execution_mode",
    "shared_size",
    "task_payload_size",
    "ray queries",
    "subgroup_size",
    "api_subgroup_size",
    "max_subgroup_size",
    "min_subgroup_size",
    "api_subgroup_size_draw_uniform",
    "uses_wide_subgroup_intrinsics",
    "xfb_stride",
    "inlinable_uniform_dw_offsets",
    "num_inlinable_uniforms",
    "clip_distance_array_size",
    "cull_distance_array_size",
    "uses_texture_gather",
    "uses_resource_info_query",
    "divergence_analysis_run",
    // All lines about the stage are between these and the last six, in any order.
    "",
    "inputs",
    "outputs",
    "uniforms",
    "scratch",
    "constants",
    "printfs",
];

/// The position of the lines about the stage.
const STAGE_PART: usize = 64;

/// The position of a line in the header.
pub(super) fn header_rank(key: &str) -> usize {
    HEADER_ORDER.iter().position(|&known| known == key).unwrap_or(STAGE_PART)
}

pub(super) fn write(shader: &Shader) -> String {
    let mut out = String::with_capacity(64 * shader.instruction_count() + 1024);
    let function = &shader.entry;
    let max = function.defs.values().map(|def| def.index).max();
    let mut writer = Writer {
        out: &mut out,
        function,
        cfg: Cfg::new(function),
        uses: NumericUses::new(function),
        index_digits: digits(max.map_or(0, |max| max.saturating_add(1))),
        divergence: shader.info.divergence_analysis_run,
        padding: 0,
    };
    // Writing to a string cannot fail.
    writer.shader(shader).expect("a string takes all text");
    out
}

struct Writer<'a> {
    out: &'a mut String,
    function: &'a Function,
    cfg: Cfg,
    uses: NumericUses,
    index_digits: usize,
    divergence: bool,
    /// The indentation of an instruction without a result, which aligns it with those that have one.
    padding: usize,
}

fn digits(mut number: u32) -> usize {
    let mut digits = 1;
    while number >= 10 {
        number /= 10;
        digits += 1;
    }
    digits
}

fn divergence(divergent: Option<bool>) -> &'static str {
    match divergent {
        Some(true) => "div ",
        Some(false) => "con ",
        None => "",
    }
}

/// The component letters of a vector: `xyzw` up to four components, `abc…` for more.
pub(super) fn component_letters(count: u8) -> &'static [u8] {
    if count > 4 { b"abcdefghijklmnop" } else { b"xyzw" }
}

/// The lines of the declarations.
pub(super) fn write_header(stage: Stage, info: &Info) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "shader: {}", stage.name());
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some([x, y, z]) = info.workgroup_size {
        let variable = if info.workgroup_size_variable { " (variable)" } else { "" };
        lines.push(("workgroup_size", format!("{x}, {y}, {z}{variable}")));
    }
    let numbers = [
        ("num_textures", info.num_textures),
        ("num_ubos", info.num_ubos),
        ("num_ssbos", info.num_ssbos),
        ("num_images", info.num_images),
        ("shared_size", info.shared_size),
        ("inputs", info.inputs),
        ("outputs", info.outputs),
        ("uniforms", info.uniforms),
        ("scratch", info.scratch_size),
    ];
    lines.extend(numbers.iter().filter(|(_, number)| *number != 0).map(|(key, number)| (*key, number.to_string())));
    lines.push(("subgroup_size", info.subgroup_size.to_string()));
    if info.divergence_analysis_run {
        lines.push(("divergence_analysis_run", "true".into()));
    }
    lines.extend(info.other.iter().map(|(key, text)| (key.as_str(), text.clone())));
    // The sort is stable: lines of the same rank keep their order.
    lines.sort_by_key(|(key, _)| header_rank(key));
    for (key, text) in lines {
        let _ = writeln!(out, "{key}: {text}");
    }
    out
}

impl Writer<'_> {
    fn shader(&mut self, shader: &Shader) -> fmt::Result {
        self.header(shader)?;
        for variable in &shader.variables {
            writeln!(self.out, "decl_var {} {}", variable.mode, variable.text)?;
        }
        writeln!(self.out, "decl_function {} () (entrypoint)\n", self.function.name)?;
        writeln!(self.out, "impl {} {{", self.function.name)?;
        for variable in &self.function.variables {
            writeln!(self.out, "    decl_var {} {}", variable.mode, variable.text)?;
        }
        self.list(&self.function.body, 1)?;
        writeln!(self.out, "    block b{}:", self.function.blocks.len())?;
        writeln!(self.out, "}}")
    }

    fn header(&mut self, shader: &Shader) -> fmt::Result {
        self.out.push_str(&write_header(shader.stage, &shader.info));
        Ok(())
    }

    fn indent(&mut self, depth: usize) -> fmt::Result {
        write!(self.out, "{:1$}", "", depth * 4)
    }

    fn list(&mut self, list: &[CfNode], depth: usize) -> fmt::Result {
        for node in list {
            match node {
                CfNode::Block(block) => self.block(*block, depth)?,
                CfNode::If(node) => self.if_node(node, depth)?,
                CfNode::Loop(node) => self.loop_node(node, depth)?,
            }
        }
        Ok(())
    }

    fn if_node(&mut self, node: &If, depth: usize) -> fmt::Result {
        self.indent(depth)?;
        self.out.write_str("if ")?;
        self.src(node.condition, BaseType::Invalid)?;
        if node.control != SelectionControl::None {
            write!(self.out, "  // {}", node.control.name())?;
        }
        self.out.write_str(" {\n")?;
        self.list(&node.then, depth + 1)?;
        self.indent(depth)?;
        self.out.write_str("} else {\n")?;
        self.list(&node.otherwise, depth + 1)?;
        self.indent(depth)?;
        self.out.write_str("}\n")
    }

    fn loop_node(&mut self, node: &Loop, depth: usize) -> fmt::Result {
        self.indent(depth)?;
        write!(self.out, "{}loop", divergence(node.divergent))?;
        if node.control != LoopControl::None {
            write!(self.out, "  // {}", node.control.name())?;
        }
        self.out.write_str(" {\n")?;
        self.list(&node.body, depth + 1)?;
        self.indent(depth)?;
        if let Some(continuing) = &node.continuing {
            self.out.write_str("} continue {\n")?;
            self.list(continuing, depth + 1)?;
            self.indent(depth)?;
        }
        self.out.write_str("}\n")
    }

    fn block(&mut self, block: Block, depth: usize) -> fmt::Result {
        let data = &self.function.blocks[block];
        let has_result = data.instrs.iter().any(|&instr| self.function.instrs[instr].def().is_some());
        // `32x16`, a space, `%`, the index, ` = `; and the column of divergence.
        let width = 5 + 1 + 1 + self.index_digits + 1 + 1 + 1 + if self.divergence { 4 } else { 0 };
        self.padding = if has_result { width } else { 0 };

        self.indent(depth)?;
        let index = block.as_u32();
        write!(self.out, "{}block b{index}:", divergence(data.divergent))?;
        if data.instrs.is_empty() {
            self.out.write_str("  // preds:")?;
            self.preds(block)?;
            self.out.write_str(", succs:")?;
            return self.succs(block);
        }
        let length = 7 + digits(index) + 1;
        write!(self.out, "{:1$}// preds:", "", self.padding.saturating_sub(length))?;
        self.preds(block)?;
        self.out.write_str("\n")?;
        for &instr in &data.instrs {
            self.indent(depth)?;
            self.instruction(&self.function.instrs[instr])?;
            self.out.write_str("\n")?;
        }
        self.indent(depth)?;
        write!(self.out, "{:1$}// succs:", "", self.padding)?;
        self.succs(block)
    }

    fn preds(&mut self, block: Block) -> fmt::Result {
        for pred in &self.cfg.preds[block] {
            write!(self.out, " b{}", pred.as_u32())?;
        }
        Ok(())
    }

    fn succs(&mut self, block: Block) -> fmt::Result {
        for succ in &self.cfg.succs[block] {
            write!(self.out, " b{}", succ.as_u32())?;
        }
        if self.cfg.succs[block].is_empty() {
            write!(self.out, " b{}", self.function.blocks.len())?;
        }
        self.out.write_str("\n")
    }

    fn def(&mut self, def: Def) -> fmt::Result {
        let data = &self.function.defs[def];
        write!(self.out, "{}{}", divergence(data.divergent), data.bit_size)?;
        match data.num_components {
            1 => self.out.write_str("   ")?,
            count => write!(self.out, "x{count}{}", if count < 10 { " " } else { "" })?,
        }
        let padding = usize::from(data.bit_size <= 8) + 1 + self.index_digits - digits(data.index);
        write!(self.out, "{:1$}%{2} = ", "", padding, data.index)
    }

    fn instruction(&mut self, data: &InstrData) -> fmt::Result {
        match data.def() {
            Some(def) => self.def(def)?,
            None => write!(self.out, "{:1$}", "", self.padding)?,
        }
        match data {
            InstrData::Alu(alu) => self.alu(alu),
            InstrData::Const { def, .. } => {
                self.out.write_str("load_const ")?;
                self.constant(*def)
            }
            InstrData::Undef { .. } => self.out.write_str("undefined"),
            InstrData::Phi { srcs, .. } => {
                self.out.write_str("phi ")?;
                for (index, &(pred, def)) in srcs.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(self.out, "{comma}b{}: ", pred.as_u32())?;
                    self.src(def, BaseType::Invalid)?;
                }
                Ok(())
            }
            InstrData::Intrinsic(intrinsic) => self.intrinsic(intrinsic),
            InstrData::Tex(tex) => self.tex(tex),
            InstrData::Jump(kind) => self.out.write_str(kind.name()),
        }
    }

    fn alu(&mut self, alu: &Alu) -> fmt::Result {
        self.out.write_str(alu.op.name())?;
        self.out.write_str(if alu.exact { "!" } else { "" })?;
        self.out.write_str(if alu.no_signed_wrap { ".nsw" } else { "" })?;
        self.out.write_str(if alu.no_unsigned_wrap { ".nuw" } else { "" })?;
        let info = alu.op.info();
        let components = self.function.defs[alu.def].num_components;
        for (index, src) in alu.srcs.iter().enumerate() {
            self.out.write_str(if index == 0 { " " } else { ", " })?;
            self.src(src.def, info.inputs.get(index).map_or(BaseType::Invalid, |input| input.ty.base))?;
            if index < info.inputs.len() {
                self.swizzle(src, info.source_components(index, components))?;
            }
        }
        Ok(())
    }

    fn swizzle(&mut self, src: &AluSrc, used: u8) -> fmt::Result {
        let live = self.function.defs[src.def].num_components;
        let used = &src.swizzle[..usize::from(used.min(16))];
        let identity = used.len() == usize::from(live) && used.iter().enumerate().all(|(i, &c)| i == usize::from(c));
        if !identity {
            self.out.write_str(".")?;
            let letters = component_letters(live);
            for &component in used {
                self.out.push(letters.get(usize::from(component)).map_or('?', |&letter| letter.into()));
            }
        }
        Ok(())
    }

    fn intrinsic(&mut self, intrinsic: &Intrinsic) -> fmt::Result {
        write!(self.out, "@{}", intrinsic.op.name())?;
        for (index, &src) in intrinsic.srcs.iter().enumerate() {
            self.out.write_str(if index == 0 { " (" } else { ", " })?;
            self.src(src, intrinsic_src_type(intrinsic, index))?;
        }
        self.out.write_str(if intrinsic.srcs.is_empty() { "" } else { ")" })?;
        let components = self.function.intrinsic_components(intrinsic);
        let is_written = |index: &&Index| {
            let kind = index.kind();
            !intrinsic.op.prints_in_some_versions(kind) || **index != Index::default_of(kind)
        };
        let mut separator = " (";
        for index in intrinsic.indices.0.iter().filter(is_written) {
            self.out.write_str(separator)?;
            self.index(index, components)?;
            separator = ", ";
        }
        self.out.write_str(if separator == " (" { "" } else { ")" })?;
        match &intrinsic.variable {
            Some(variable) => write!(self.out, "  // {variable}"),
            None => Ok(()),
        }
    }

    fn index(&mut self, index: &Index, components: u8) -> fmt::Result {
        let out = &mut *self.out;
        match index {
            Index::IoSemantics(_) | Index::IoXfb(_) | Index::IoXfb2(_) | Index::FpMathCtrl(_) => {}
            _ => write!(out, "{}=", index.kind().name())?,
        }
        match index {
            Index::Base(value) => write!(out, "{value}"),
            // nir_print prints these as signed numbers.
            Index::StreamId(value)
            | Index::RangeBase(value)
            | Index::Range(value)
            | Index::DescSet(value)
            | Index::UcpId(value)
            | Index::ClusterSize(value)
            | Index::AlignMul(value)
            | Index::AlignOffset(value)
            | Index::DriverLocation(value)
            | Index::NumArrayElems(value) => write!(out, "{}", *value as i32),
            Index::Component(value) | Index::NumComponents(value) | Index::BitSize(value) => write!(out, "{value}"),
            Index::Divergent(value)
            | Index::LegacyFabs(value)
            | Index::LegacyFneg(value)
            | Index::LegacyFsat(value) => write!(out, "{}", u8::from(*value)),
            Index::WriteMask(mask) => {
                let letters = component_letters(components);
                let set = letters.iter().take(components.into()).enumerate().filter(|(bit, _)| mask & 1 << bit != 0);
                set.for_each(|(_, &letter)| out.push(letter.into()));
                Ok(())
            }
            Index::InterpMode(mode) => out.write_str(mode.name()),
            Index::ReductionOp(op) => out.write_str(op.name()),
            Index::ImageDim(dim) => out.write_str(dim.name()),
            Index::ImageArray(array) => write!(out, "{array}"),
            Index::Format(format) => out.write_str(format.name()),
            Index::Access(access) => write_words(out, access.bits(), ACCESS_WORDS, "|", "none"),
            Index::SrcType(ty) | Index::DestType(ty) => write!(out, "{ty}"),
            Index::MemorySemantics(semantics) => {
                let order = *semantics & (MemorySemantics::ACQUIRE | MemorySemantics::RELEASE);
                out.write_str(match order {
                    MemorySemantics::ACQUIRE => "ACQ",
                    MemorySemantics::RELEASE => "REL",
                    order if order.is_empty() => "NONE",
                    _ => "ACQ|REL",
                })?;
                out.write_str(if semantics.contains(MemorySemantics::AVAILABLE) { "|AVAILABLE" } else { "" })?;
                out.write_str(if semantics.contains(MemorySemantics::VISIBLE) { "|VISIBLE" } else { "" })
            }
            Index::MemoryModes(modes) => write_words(out, modes.bits(), MODE_WORDS, "|", "0"),
            Index::MemoryScope(scope) | Index::ExecutionScope(scope) => out.write_str(scope.name()),
            Index::AtomicOp(op) => out.write_str(op.name()),
            Index::IoSemantics(None) => out.write_str("io location=NONE slots=0"),
            Index::IoSemantics(Some(io)) => {
                write!(out, "io location={} slots={}", io.location, io.slots)?;
                let flags = u32::from(io.flags.bits());
                out.write_str(if flags == 0 { "" } else { " " })?;
                write_words(out, flags, IO_WORDS, " ", "")?;
                match io.streams {
                    Some([x, y, z, w]) => write!(out, " gs_streams(x={x} y={y} z={z} w={w})"),
                    None => Ok(()),
                }
            }
            Index::OffsetShift(shift) => write!(out, "{}", shift.unwrap_or(0)),
            Index::FpMathCtrl(math) => write_fp_math(out, math.unwrap_or_default()),
            Index::IoXfb(xfb) => write_xfb(out, "xfb", xfb.as_deref()),
            Index::IoXfb2(xfb) => write_xfb(out, "xfb2", xfb.as_deref()),
        }
    }

    fn tex(&mut self, tex: &Tex) -> fmt::Result {
        write!(self.out, "({}){} ", tex.dest_type, tex.op.name())?;
        for (index, &(kind, def)) in tex.srcs.iter().enumerate() {
            self.out.write_str(if index == 0 { "" } else { ", " })?;
            self.src(def, tex_src_type(tex, kind))?;
            write!(self.out, " ({})", kind.name())?;
        }
        let out = &mut *self.out;
        out.write_str(if tex.implicit_lod { ", implicit lod" } else { "" })?;
        if tex.op == TexOp::Tg4 {
            write!(out, ", {} (gather_component)", tex.component)?;
        }
        if let Some(offsets) = &tex.gather_offsets {
            let [a, b, c, d] = offsets.map(|[x, y]| format!("({x}, {y})"));
            write!(out, ", {{ {a}, {b}, {c}, {d} }} (offsets)")?;
        }
        if tex.op != TexOp::TxfMsFb {
            write!(out, ", {} (texture)", tex.texture_index)?;
        }
        if tex.op.needs_sampler() {
            write!(out, ", {} (sampler)", tex.sampler_index)?;
        }
        out.write_str(if tex.texture_non_uniform { ", texture non-uniform" } else { "" })?;
        out.write_str(if tex.sampler_non_uniform { ", sampler non-uniform" } else { "" })?;
        out.write_str(if tex.sparse { ", sparse" } else { "" })?;
        match tex.dim {
            Some(dim) => write!(out, ", {dim}"),
            None => Ok(()),
        }
    }

    /// Writes a source, followed by its value if it is a constant.
    fn src(&mut self, def: Def, ty: BaseType) -> fmt::Result {
        let data = &self.function.defs[def];
        write!(self.out, "%{}", data.index)?;
        let Some(values) = self.function.as_const(def) else { return Ok(()) };
        let float = ty == BaseType::Float || ty == BaseType::Invalid && self.uses.only_float(def);
        let bit_size = data.bit_size;
        self.out.write_str(" (")?;
        for (index, &value) in values.iter().enumerate() {
            self.out.write_str(if index == 0 { "" } else { ", " })?;
            if bit_size == 1 || ty == BaseType::Bool {
                write!(self.out, "{}", value & 0xff != 0)?;
            } else if float && bit_size > 8 {
                write_float(self.out, value, bit_size)?;
            } else {
                write!(self.out, "{value:#x}")?;
            }
        }
        self.out.write_str(")")
    }

    /// Writes the interpretations of a constant that its uses leave open: bits, float, signed, unsigned.
    fn constant(&mut self, def: Def) -> fmt::Result {
        let bit_size = self.function.defs[def].bit_size;
        let Some(values) = self.function.as_const(def) else { return Ok(()) };
        let list = |out: &mut String, each: &dyn Fn(&mut String, u64) -> fmt::Result| {
            for (index, &value) in values.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                each(out, value)?;
            }
            fmt::Result::Ok(())
        };
        let out = &mut *self.out;
        out.write_str("(")?;
        if bit_size == 1 {
            list(out, &|out, value| write!(out, "{}", value != 0))?;
            return out.write_str(")");
        }
        let signed = |value: u64| (value << (64 - bit_size)) as i64 >> (64 - bit_size);
        let only_int = self.uses.only_int(def);
        let only_float = self.uses.only_float(def);
        let separator = if values.len() > 1 { ") = (" } else { " = " };
        let width = usize::from(bit_size) / 4 + 2;
        list(out, &|out, value| write!(out, "{value:#0width$x}"))?;
        if bit_size > 8 && !only_int {
            out.write_str(separator)?;
            list(out, &|out, value| write_float(out, value, bit_size))?;
        }
        if !only_float && values.iter().any(|&value| signed(value) < 0) {
            out.write_str(separator)?;
            list(out, &|out, value| write!(out, "{:+}", signed(value)))?;
        }
        if !only_float && values.iter().any(|&value| value >= 10) {
            out.write_str(separator)?;
            list(out, &|out, value| write!(out, "{value}"))?;
        }
        out.write_str(")")
    }
}

/// Writes a float as C's `%f` does.
fn write_float(out: &mut String, bits: u64, bit_size: u8) -> fmt::Result {
    let value = match bit_size {
        16 => f16::from_bits(bits as u16).to_f64(),
        32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    match value {
        value if value.is_nan() => write!(out, "{sign}nan"),
        value if value.is_infinite() => write!(out, "{sign}inf"),
        value => write!(out, "{value:.6}"),
    }
}

/// Writes the control of a float operation; `fp-fast-math` if it has none.
fn write_fp_math(out: &mut String, math: FpMath) -> fmt::Result {
    let bits = u32::from(math.bits());
    let (forbidden, preserved) = (bits & u32::from(FpMath::EXACT.bits()), bits >> FP_WORDS.len());
    match (math.contains(FpMath::EXACT), forbidden, preserved) {
        (_, 0, 0) => return out.write_str("fp-fast-math"),
        (true, ..) => out.write_str("exact")?,
        (_, 0, _) => {}
        (..) => write_words(out, forbidden, FP_WORDS, ",", "")?,
    }
    if preserved != 0 {
        out.write_str(if forbidden == 0 { "preserve:" } else { ", preserve:" })?;
        write_words(out, preserved, PRESERVE_WORDS, ",", "")?;
    }
    Ok(())
}

fn write_xfb(out: &mut String, name: &str, xfb: Option<&Xfb>) -> fmt::Result {
    write!(out, "{name}(")?;
    for (index, output) in xfb.iter().flat_map(|xfb| &xfb.outputs).enumerate() {
        out.write_str(if index == 0 { "" } else { ", " })?;
        match output.components {
            1 => write!(out, "component={}", output.first)?,
            count => {
                write!(out, "components={}..{}", output.first, output.first.saturating_add(count.saturating_sub(1)))?
            }
        }
        write!(out, " buffer={} offset={}", output.buffer, output.offset)?;
    }
    out.write_str(")")
}
