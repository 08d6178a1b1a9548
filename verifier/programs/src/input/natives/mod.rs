//! Mesa's last programs: the words in a log, with the interface that the lines around them give, and the final-form nir
//! that they were compiled from.
//!
//! Inputs and outputs have the numbers of the nir: both name their locations. Attributes that no word encodes are taken
//! from the section `AFTER: ir3_legalize`; in a log without it, samples that are issued before the program starts are
//! those of the commands (`@tex`), and kills and the components of images those of nir.

mod prefetches;
mod registers;

pub use prefetches::{command as prefetch_command, complete as complete_prefetch};

use super::programs::{read_nir, target_of};
use crate::mesa::input::{InputError, Source};
use crate::mesa::log::{Log, Section, SectionKind};
use crate::mesa::native::{Native, NativeInput};
use ir3_compiler::ir3::{
    self, AddressSpace, Attrs, ConstLayout, DriverParam, Dst, InputKind, InstrFlags, Opcode, Output, PhysReg, Place,
    ShaderStage, Src, SrcOperand, SystemValue, Type, WriteMask,
};
use ir3_compiler::machine::{Code, EntryRegister, Interface, OutputRegister};
use ir3_compiler::nir::{Index, InstrData, Intrinsic, IntrinsicOp, IoFlags, Shader, Stage, TexOp, TexSrcKind};
use ir3_compiler::target::{Generation, Target};
use std::path::Path;

/// A final program of Mesa, and its source.
#[derive(Clone, Debug)]
pub struct NativeProgram {
    /// The path of the log.
    pub name: String,
    /// The final-form nir.
    pub shader: Shader,
    /// The code, decoded from its words.
    pub code: Code,
    /// The GPU.
    pub target: Target,
    /// It interpolates at the pixel where its source names the centroid or a sample, as there is one sample; the
    /// shader here has the pixel.
    pub one_sample: bool,
}

/// Why a program of a log is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The log cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The log lacks facts about the program, or a word is no instruction of ours.
    #[error("{path}: {what}")]
    Refused {
        /// The log.
        path: String,
        /// The missing fact.
        what: String,
    },
}

/// Loads the last program of a log: the one whose words it has.
///
/// # Errors
/// If the file is no log that can be read, has no words, or does not list the register of an input or an output.
pub fn native(path: &Path, gpu: Option<Target>) -> Result<NativeProgram, NativeError> {
    let Source { path, text, .. } = Source::read(path)?;
    let refused = |what: String| NativeError::Refused { path: path.display().to_string(), what };
    let log = Log::read(&path, &text)?;
    let target = target_of(&path, &log, gpu)?;
    let native = log.native().map_err(|error| refused(error.to_string()))?;
    let native = native.ok_or_else(|| refused("no words".to_owned()))?;
    let source = log.nir(&path)?.into_iter().rfind(|section| is_stage(section, &native.stage));
    let source = source.ok_or_else(|| refused(format!("no nir of the stage {}", native.stage)))?;
    let mut shader = read_nir(&path, &source.text, source.first_line - 1)?;
    number_varyings(&mut shader, &native.inputs);
    let text = legalized(&log, &native.stage).map_err(refused)?;
    let code = code(&native, &shader, text.as_ref(), &target).map_err(refused)?;
    let one_sample = target.generation < Generation::A6xx && interpolates_at_pixels(&native) && to_pixels(&mut shader);
    Ok(NativeProgram { name: path.display().to_string(), shader, code, target, one_sample })
}

/// Returns true if a program has no other barycentric coordinates than those of pixels: before a6xx a variant for one
/// sample takes these for all (`emit_intrinsic_barycentric`).
pub fn interpolates_at_pixels(native: &Native) -> bool {
    let names = ["CENTROID", "SAMPLE"];
    !native
        .inputs
        .iter()
        .any(|input| input.location.contains("BARYCENTRIC") && names.iter().any(|name| input.location.ends_with(name)))
}

/// Replaces the centroid and the sample by the pixel, which are the same where a pixel has one sample. Returns true if
/// there were any.
pub fn to_pixels(shader: &mut Shader) -> bool {
    let mut any = false;
    for instr in shader.entry.instrs.values_mut() {
        if let InstrData::Intrinsic(intrinsic) = instr
            && matches!(intrinsic.op, IntrinsicOp::LoadBarycentricCentroid | IntrinsicOp::LoadBarycentricSample)
        {
            intrinsic.op = IntrinsicOp::LoadBarycentricPixel;
            any = true;
        }
    }
    any
}

/// Subtracts the number of buffers from the numbers of images: before a6xx their resources have one numbering, the
/// buffers first (`ir3_image_to_ibo`).
fn number_images(code: &mut Code, shader: &Shader, target: &Target) -> Result<(), String> {
    let buffers = shader.info.num_ssbos;
    if target.generation >= Generation::A6xx || buffers == 0 {
        return Ok(());
    }
    for (ip, instr) in &mut code.instrs {
        let is_image = instr.data.memory().is_some_and(|memory| memory.space == Some(AddressSpace::Image));
        if !is_image {
            continue;
        }
        match instr.data.srcs.first_mut().map(|src| &mut src.operand) {
            Some(SrcOperand::Immediate(number)) if *number >= buffers => *number -= buffers,
            _ => return Err(format!("{ip}: an image whose number is computed, or that of a buffer")),
        }
    }
    Ok(())
}

fn is_stage(section: &Section, name: &str) -> bool {
    matches!(&section.kind, SectionKind::NirFinal { stage } if stage == name)
}

/// The last text of a final program of a stage.
fn legalized(log: &Log, stage: &str) -> Result<Option<Code>, String> {
    let mut is_own = false;
    let mut last = None;
    for section in &log.sections {
        match &section.kind {
            SectionKind::NirFinal { .. } => is_own = is_stage(section, stage),
            SectionKind::Ir3After { pass } if is_own && pass == "ir3_legalize" => last = Some(section),
            _ => {}
        }
    }
    let Some(section) = last else { return Ok(None) };
    let program = ir3::text::read(&section.text).map_err(|error| format!("its text after ir3_legalize: {error}"))?;
    Code::from_program(&program).map(Some).map_err(|error| format!("its text after ir3_legalize: {error}"))
}

/// The code of a program from its words. `text` is the text after `ir3_legalize`, if the log has it.
///
/// # Errors
/// A word that is no instruction of ours, or a statement of the log that contradicts another one.
pub fn code(native: &Native, shader: &Shader, text: Option<&Code>, target: &Target) -> Result<Code, String> {
    let mut interface = Interface {
        stage: stage(shader.stage),
        workgroup_size: shader.info.workgroup_size_in_ir3(),
        shared_size: shader.info.shared_size,
        scratch_size: shader.info.scratch_size,
        consts: consts(native, shader.stage),
        ..Interface::default()
    };
    for input in &native.inputs {
        self::input(input, shader, &mut interface)?;
    }
    for (output, at) in native.outputs.iter().zip(outputs(native, shader)) {
        let Some((at, mask)) = at else { continue };
        if output.register == PhysReg::INVALID {
            continue;
        }
        interface.outputs_at.push(at);
        let src = Src::reg(Place::Reg(output.register), output.class, mask);
        let index = Some(interface.outputs_at.len() as u16 - 1);
        interface.outputs.push(OutputRegister { index, src });
    }
    let mut code = Code::decode(target.generation, &native.words, interface).map_err(|error| error.to_string())?;
    without_chsh(&mut code)?;
    match text {
        Some(text) => {
            code.interface.prefetches.clone_from(&text.interface.prefetches);
            registers::complete(&mut code, text);
        }
        None => {
            code.interface.prefetches = native.prefetches.iter().map(prefetches::of_command).collect();
            registers::complete_by_nir(&mut code, shader);
        }
    }
    let memory = UsedMemory::of(shader);
    for instr in code.instrs.values_mut() {
        memory.complete(&mut instr.data, target);
    }
    number_images(&mut code, shader, target)?;
    for prefetch in &mut code.interface.prefetches {
        prefetches::complete(prefetch, shader)?;
    }
    prefetches::check(&code.interface.prefetches, &native.prefetches)?;
    Ok(code)
}

/// The position of the `chsh` after a `chmask`, if there are such.
///
/// # Errors
/// If one occurs without the other.
pub fn chsh_of(opcodes: &[Opcode]) -> Result<Option<usize>, String> {
    let [chmask, chsh] =
        [Opcode::Chmask, Opcode::Chsh].map(|wanted| opcodes.iter().position(|&opcode| opcode == wanted));
    match (chmask, chsh) {
        (None, None) => Ok(None),
        (Some(mask), Some(at)) if at == mask + 1 => Ok(Some(at)),
        (Some(_), _) => Err("`chmask` without `chsh` after it".to_owned()),
        (None, Some(_)) => Err("`chsh` without `chmask` before it".to_owned()),
    }
}

/// Removes `chsh`, which follows `chmask` and starts the next stage, and the padding of the code: `chmask` is the end.
pub(crate) fn without_chsh(code: &mut Code) -> Result<(), String> {
    let opcodes: Vec<Opcode> = code.instrs.values().map(|instr| instr.data.opcode).collect();
    let Some(at) = chsh_of(&opcodes)? else { return Ok(()) };
    if opcodes[at + 1..].iter().any(|&opcode| opcode != Opcode::Nop) {
        return Err("found instructions after `chsh`, expected the end".to_owned());
    }
    code.instrs = code.instrs.values().take(at).cloned().collect();
    Ok(())
}

/// A descriptor of nir: set and index.
pub(crate) type Descriptor = (u32, u64);

/// Memory that nir accesses, for words that do not encode it.
#[derive(Clone, Default)]
struct UsedMemory {
    /// The descriptors of images that are accessed by constants.
    image_at: Vec<Descriptor>,
    /// The descriptors of buffers that are accessed by constants.
    buffer_at: Vec<Descriptor>,
    /// Buffers, and buffers by elements of 8 bits.
    buffers: bool,
    bytes: bool,
    /// Images, loaded or stored to.
    images: bool,
    /// The images that are loaded: whether they have one dimension, and their descriptors.
    loaded: Vec<(bool, Option<Descriptor>)>,
    /// The textures of which a texel of level 0 is fetched.
    fetched: Vec<Option<Descriptor>>,
    /// The descriptors of images whose size is read, and of buffers.
    image_sizes: Vec<Option<Descriptor>>,
    buffer_sizes: Vec<Option<Descriptor>>,
}

impl UsedMemory {
    fn of(shader: &Shader) -> Self {
        use IntrinsicOp::{
            BindlessImageLoad, BindlessImageSize, BindlessImageStore, GetSsboSize, ImageLoad, ImageSize, ImageStore,
            LoadSsbo, LoadSsboIr3, StoreSsbo, StoreSsboIr3,
        };
        let mut used = Self::default();
        for (_, instr) in shader.entry.instrs_in_order() {
            if let InstrData::Tex(tex) = &shader.entry.instrs[instr]
                && tex.op == TexOp::Txf
            {
                let level = tex.src(TexSrcKind::Lod);
                if level.is_none_or(|level| shader.entry.as_const_scalar(level) == Some(0)) {
                    used.fetched.push(match tex.src(TexSrcKind::TextureHandle) {
                        Some(handle) => descriptor(shader, handle),
                        None => None,
                    });
                }
            }
            let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] else { continue };
            let at = intrinsic.srcs.iter().find_map(|&src| descriptor(shader, src));
            match intrinsic.op {
                LoadSsbo | LoadSsboIr3 | StoreSsbo | StoreSsboIr3 => {
                    let value = intrinsic.def.or_else(|| intrinsic.srcs.first().copied());
                    used.buffers = true;
                    used.buffer_at.extend(at);
                    used.bytes |= value.is_some_and(|def| shader.entry.defs[def].bit_size == 8);
                }
                BindlessImageLoad | BindlessImageStore | ImageLoad | ImageStore => {
                    used.images = true;
                    used.image_at.extend(at);
                    if matches!(intrinsic.op, BindlessImageLoad | ImageLoad) {
                        used.loaded.push((intrinsic.indices.image_dim().is_1d(), at));
                    }
                }
                BindlessImageSize | ImageSize => used.image_sizes.push(at),
                GetSsboSize => used.buffer_sizes.push(at),
                _ => {}
            }
        }
        used
    }

    /// Returns true if an image that `isam` reads has one dimension; `None` if it may be one of several of nir's, and
    /// only some of these have.
    fn is_1d(&self, at: Option<Descriptor>) -> Option<bool> {
        let unanimous = |may_be: &dyn Fn(&Option<Descriptor>) -> bool| {
            let mut kinds = self.loaded.iter().filter(|(_, its)| may_be(its)).map(|&(is_1d, _)| is_1d);
            let first = kinds.next()?;
            kinds.all(|other| other == first).then_some(first)
        };
        unanimous(&|_| true).or_else(|| unanimous(&|its| at.is_none() || its.is_none() || *its == at))
    }

    /// Returns true if the size at a descriptor is that of an image; `None` if it may be that of a buffer, too. The
    /// words of both are those of an untyped resource.
    fn is_size_of_image(&self, at: Option<Descriptor>) -> Option<bool> {
        let may_be = |sizes: &[Option<Descriptor>]| sizes.iter().any(|its| at.is_none() || its.is_none() || *its == at);
        match (may_be(&self.image_sizes), may_be(&self.buffer_sizes)) {
            (true, true) => None,
            (of_image, _) => Some(of_image),
        }
    }

    /// Completes an access. `isam` reads a buffer or an image: where the GPU has `isam.v`, Mesa reads all buffers by it
    /// and no image (`emit_intrinsic_load_ssbo`). Elements of 8 bits of a buffer are accessed as those of an image
    /// (`ir3_a6xx.c`).
    fn complete(&self, data: &mut ir3::InstrData, target: &Target) {
        let vector = data.flags.contains(InstrFlags::VECTOR);
        let half =
            data.dsts.iter().map(|dst| dst.class).chain(data.srcs.iter().map(|src| src.class)).any(|class| class.half);
        match (data.opcode, &mut data.attrs) {
            // Mesa's disassembler has shown it as `<<1` since 26, of words of 25.0 as `<<2`; no log of 25.0 has one.
            (Opcode::LdgA | Opcode::StgA, Attrs::Memory(attrs))
                if target.generation == Generation::A6xx && attrs.ty.is_some_and(|ty| ty.bits() == 16) =>
            {
                attrs.index_unit = Some(2);
            }
            (Opcode::Isam, Attrs::Texture(attrs)) if attrs.space.is_none() => {
                let at = attrs.base.zip(attrs.texture).map(|(set, index)| (u32::from(set), u64::from(index)));
                let may_be = |its: &Option<Descriptor>| at.is_none() || its.is_none() || *its == at;
                let loads = self.loaded.iter().any(|(_, its)| may_be(its)) || self.buffers && !target.has_isam_v;
                if !vector && self.fetched.iter().any(may_be) {
                    let is_at = |its: &Option<Descriptor>| its.is_some() && *its == at;
                    let (image, texture) =
                        (self.loaded.iter().any(|(_, its)| is_at(its)), self.fetched.iter().any(is_at));
                    match (loads, image, texture) {
                        (false, ..) | (true, false, true) => {
                            attrs.is_fetch = true;
                            return;
                        }
                        (true, true, false) => {}
                        // It is not known which of the two it is.
                        _ => return,
                    }
                }
                let is_known = |descriptors: &[Descriptor]| at.is_some_and(|at| descriptors.contains(&at));
                let image = match (self.images, self.buffers) {
                    _ if target.has_isam_v => Some(!vector),
                    (true, true) => match (is_known(&self.image_at), is_known(&self.buffer_at)) {
                        (true, false) => Some(true),
                        (false, true) => Some(false),
                        _ => None,
                    },
                    (images, buffers) => (images || buffers).then_some(images),
                };
                match (image, self.is_1d(at)) {
                    (Some(true), Some(is_1d)) => (attrs.space, attrs.is_1d) = (Some(AddressSpace::Image), is_1d),
                    (Some(false), _) => attrs.space = Some(AddressSpace::Ssbo),
                    _ => {}
                }
            }
            (Opcode::Resinfo, Attrs::Memory(attrs)) if attrs.space == Some(AddressSpace::Ssbo) => {
                let at = match data.srcs.first().map(|src| src.operand) {
                    Some(SrcOperand::Immediate(index)) => attrs.base.map(|set| (u32::from(set), u64::from(index))),
                    _ => None,
                };
                match self.is_size_of_image(at) {
                    Some(true) => attrs.space = Some(AddressSpace::Image),
                    Some(false) => {}
                    None => attrs.space = None,
                }
            }
            (Opcode::Stib | Opcode::Ldib, Attrs::Memory(attrs))
                if self.bytes && !self.images && half && attrs.space == Some(AddressSpace::Image) =>
            {
                attrs.space = Some(AddressSpace::Ssbo);
                attrs.ty = Some(Type::U8);
                attrs.components = Some(1);
                for src in data.srcs.iter_mut().filter(|src| src.class.half) {
                    src.mask = WriteMask::SCALAR;
                }
                for dst in &mut data.dsts {
                    dst.mask = WriteMask::SCALAR;
                }
            }
            _ => {}
        }
    }
}

/// Returns true if all stores by `stib`, or all loads by `ldib`, access buffers, and no element has 8 bits: the shader
/// stores to no image, or loads from none.
pub fn is_of_buffers(shader: &Shader, opcode: Opcode) -> bool {
    use IntrinsicOp::{BindlessImageLoad, BindlessImageStore, ImageLoad, ImageStore};
    let of_images = match opcode {
        Opcode::Stib => [ImageStore, BindlessImageStore],
        Opcode::Ldib => [ImageLoad, BindlessImageLoad],
        _ => return false,
    };
    let used = UsedMemory::of(shader);
    let is_image = |data: &InstrData| matches!(data, InstrData::Intrinsic(its) if of_images.contains(&its.op));
    used.buffers && !used.bytes && !shader.entry.instrs.values().any(is_image)
}

/// The descriptor that a value names, if it is a constant.
pub fn descriptor(shader: &Shader, def: ir3_compiler::nir::Def) -> Option<Descriptor> {
    match &shader.entry.instrs[shader.entry.defs[def].instr] {
        InstrData::Intrinsic(resource) if resource.op == IntrinsicOp::BindlessResourceIr3 => {
            Some((resource.indices.desc_set(), shader.entry.as_const_scalar(*resource.srcs.first()?)?))
        }
        _ => None,
    }
}

/// The stage of ir3 of a stage of nir; `None` for one that ir3 does not have.
pub const fn stage(stage: Stage) -> Option<ShaderStage> {
    Some(match stage {
        Stage::Vertex => ShaderStage::Vertex,
        Stage::TessCtrl => ShaderStage::TessControl,
        Stage::TessEval => ShaderStage::TessEval,
        Stage::Geometry => ShaderStage::Geometry,
        Stage::Fragment => ShaderStage::Fragment,
        Stage::Compute | Stage::Kernel => ShaderStage::Compute,
        Stage::Task | Stage::Mesh => return None,
    })
}

/// The words that the driver fills.
pub fn consts(native: &Native, stage: Stage) -> ConstLayout {
    let mut layout = ConstLayout { immediates: native.immediates.clone(), ..ConstLayout::default() };
    if let Some(first) = native.group("driver_params") {
        let length = native.vec4s("driver_params").map_or(u16::MAX, |vec4s| vec4s.saturating_mul(4));
        layout.driver_params = driver_params(stage)
            .into_iter()
            .filter(|&(word, _, components)| word + components <= length)
            .flat_map(|(word, value, components)| {
                (0..components).map(move |component| DriverParam {
                    word: first + word + component,
                    value,
                    component: component as u8,
                })
            })
            .collect();
    }
    let mut fill = |first: u16, values: &[(SystemValue, u8)]| {
        let param = |(word, &(value, component))| DriverParam { word, value, component };
        layout.driver_params.extend((first..=u16::MAX).zip(values).map(param));
    };
    if let Some((first, count)) = native.group("kernel_params").zip(native.vec4s("kernel_params")) {
        let vec4s = count.min(u8::MAX.into()) as u8;
        let values =
            (0..vec4s).flat_map(|vec4| (0..4).map(move |component| (SystemValue::KernelInput(vec4), component)));
        fill(first, &values.collect::<Vec<_>>());
    }
    // Strides and addresses of tessellation and geometry, and where the stage before has put its varyings.
    if let Some(first) = native.group("primitive_param") {
        use SystemValue::*;
        let values = [
            (VsPrimitiveStride, 0),
            (VsVertexStride, 0),
            (HsPatchStride, 0),
            (PatchVerticesIn, 0),
            (TessParamBase, 0),
            (TessParamBase, 1),
            (TessFactorBase, 0),
            (TessFactorBase, 1),
        ];
        fill(first, &values);
    }
    if let Some((first, count)) = native.group("primitive_map").zip(native.vec4s("primitive_map")) {
        let locations = 0..count.saturating_mul(4).min(255) as u8;
        fill(first, &locations.map(|index| (SystemValue::PrimitiveLocation(index), 0)).collect::<Vec<_>>());
    }
    layout
}

/// The most user clip planes, and views of a draw.
const CLIP_PLANES: u8 = 8;
const VIEWS: u8 = 16;

/// Driver parameters by their first word, with the number of components (`ir3_shader.h`).
pub fn driver_params(stage: Stage) -> Vec<(u16, SystemValue, u16)> {
    use SystemValue::*;
    match stage {
        Stage::Compute | Stage::Kernel => vec![
            (0, NumWorkgroups, 3),
            (3, WorkDim, 1),
            (4, BaseWorkgroupId, 3),
            (7, SubgroupSize, 1),
            (8, WorkgroupSize, 3),
            (11, SubgroupIdShift, 1),
            (12, WorkgroupId, 3),
        ],
        Stage::Vertex => {
            let planes = (0..CLIP_PLANES).map(|plane| (5 + 4 * u16::from(plane), UserClipPlane(plane), 4));
            let others = [(0, DrawId, 1), (1, BaseVertex, 1), (2, BaseInstance, 1), (4, IsIndexedDraw, 1)];
            others.into_iter().chain(planes).collect()
        }
        Stage::Fragment => {
            let views = (0..VIEWS).flat_map(|view| {
                let first = 8 + 4 * u16::from(view);
                [(first, FragSize(view), 2), (first + 2, FragOffset(view), 2)]
            });
            [(0, SubgroupSize, 1), (4, FragInvocationCount, 1)].into_iter().chain(views).collect()
        }
        _ => Vec::new(),
    }
}

/// Gives the varyings of the nir the numbers in the log: four times their base, plus their component. Before a6xx they
/// are packed.
pub(crate) fn number_varyings(shader: &mut Shader, inputs: &[NativeInput]) {
    if shader.stage != Stage::Fragment {
        return;
    }
    for data in shader.entry.instrs.values_mut() {
        let InstrData::Intrinsic(intrinsic) = data else { continue };
        if !matches!(intrinsic.op, IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput) {
            continue;
        }
        let Some(io) = intrinsic.indices.io_semantics() else { continue };
        let number = inputs.iter().find(|input| input.location == *io.location).and_then(|input| input.varying);
        if let Some(first) = number {
            let number = first + u32::from(intrinsic.indices.component());
            intrinsic.indices.set(Index::Base((number / 4) as i32));
            intrinsic.indices.set(Index::Component((number % 4) as u8));
        }
    }
}

/// Adds the registers of an input. Varyings have none: `bary.f` names them by number.
fn input(input: &NativeInput, shader: &Shader, interface: &mut Interface) -> Result<(), String> {
    let NativeInput { location, register, class, components, .. } = input;
    let kind: Box<dyn Fn(u32) -> InputKind> = if let Some(system) = location.strip_prefix("SYSTEM_VALUE_") {
        let value = system_value(system).ok_or_else(|| format!("the input {location}"))?;
        if *register == PhysReg::INVALID {
            return Ok(());
        }
        interface.inputs.push(entry(*register, *class, *components, InputKind::System(value)));
        return Ok(());
    } else {
        let (location, first) = first_component(location);
        let Some(base) = loaded(shader, location) else { return Ok(()) };
        if shader.stage == Stage::Fragment {
            // It has no register, and a number of its own.
            return Ok(());
        }
        Box::new(move |component| InputKind::Attribute { base, component: first + component as u8 })
    };
    if *register != PhysReg::INVALID {
        for component in (0..4).filter(|component| components >> component & 1 != 0) {
            let register = register.offset(component as u16);
            interface.inputs.push(entry(register, *class, 1, kind(component)));
        }
    }
    Ok(())
}

fn entry(register: PhysReg, class: ir3::RegClass, components: u32, input: InputKind) -> EntryRegister {
    let mask = WriteMask(components);
    EntryRegister { input: Some(input), dst: Dst::new(Place::Reg(register), class, mask) }
}

/// The system values that registers hold, by Mesa's names.
pub const SYSTEM_VALUES: &[(&str, SystemValue)] = {
    use SystemValue::*;
    &[
        ("WORKGROUP_ID", WorkgroupId),
        ("LOCAL_INVOCATION_ID", LocalInvocationId),
        ("LOCAL_INVOCATION_INDEX", LocalInvocationIndex),
        ("SUBGROUP_ID", SubgroupId),
        ("SUBGROUP_INVOCATION", SubgroupInvocation),
        ("VERTEX_ID", VertexId),
        ("VERTEX_ID_ZERO_BASE", VertexIdZeroBase),
        ("INSTANCE_ID", InstanceId),
        ("VIEW_INDEX", ViewIndex),
        ("PRIMITIVE_ID", PrimitiveId),
        ("FRAG_COORD", FragCoord),
        ("FRONT_FACE", FrontFace),
        ("POINT_COORD", PointCoord),
        ("FRAG_SHADING_RATE", FragShadingRate),
        ("SAMPLE_ID", SampleId),
        ("SAMPLE_MASK_IN", SampleMaskIn),
        ("TCS_HEADER_IR3", TcsHeader),
        ("GS_HEADER_IR3", GsHeader),
        ("REL_PATCH_ID_IR3", RelPatchId),
        ("TESS_COORD", TessCoord),
        ("BARYCENTRIC_PERSP_PIXEL", BarycentricPixel),
        ("BARYCENTRIC_PERSP_CENTROID", BarycentricCentroid),
        ("BARYCENTRIC_PERSP_SAMPLE", BarycentricSample),
        ("BARYCENTRIC_LINEAR_PIXEL", BarycentricPixelLinear),
        ("BARYCENTRIC_LINEAR_CENTROID", BarycentricCentroidLinear),
        ("BARYCENTRIC_LINEAR_SAMPLE", BarycentricSampleLinear),
        ("BARYCENTRIC_PERSP_CENTER_RHW", BarycentricCenterRhw),
    ]
};

/// A system value by Mesa's name.
pub fn system_value(name: &str) -> Option<SystemValue> {
    SYSTEM_VALUES.iter().find(|(its, _)| *its == name).map(|&(_, value)| value)
}

/// The number of the input at a location.
pub fn loaded(shader: &Shader, location: &str) -> Option<u16> {
    use IntrinsicOp::{LoadInput, LoadInterpolatedInput};
    let is_load = |op: IntrinsicOp| matches!(op, LoadInput | LoadInterpolatedInput);
    at_location(shader, location, is_load).next().map(|(base, _)| base)
}

/// The outputs of the list after the code that nir stores, with their components that are stored. A location may have
/// the first of these components after it, as `FRAG_RESULT_DATA0.y`: our own programs have the components of an output
/// in registers that do not follow each other. An output of each view is listed once a view, in their order.
pub fn outputs(native: &Native, shader: &Shader) -> Vec<Option<(Output, WriteMask)>> {
    let locations = native.outputs.iter().map(|output| &output.location);
    locations
        .clone()
        .enumerate()
        .map(|(number, location)| {
            let view = locations.clone().take(number).filter(|&its| its == location).count() as u16;
            let (location, component) = first_component(location);
            let (base, mask) = stored(shader, location, view)?;
            Some((Output { base, component }, WriteMask(mask.0 >> component)))
        })
        .collect()
}

/// A location, and the component after it.
pub fn first_component(location: &str) -> (&str, u8) {
    let component = |name: &str| ["x", "y", "z", "w"].iter().position(|its| *its == name);
    let split = location.split_once('.').and_then(|(location, name)| Some((location, component(name)? as u8)));
    split.unwrap_or((location, 0))
}

/// The number of the output at a location, and its components that are stored; of one of its views, if each has its
/// own.
fn stored(shader: &Shader, location: &str, view: u16) -> Option<(u16, WriteMask)> {
    use IntrinsicOp::{StoreOutput, StorePerViewOutput};
    let mut found = None;
    for (base, store) in at_location(shader, location, |op| matches!(op, StoreOutput | StorePerViewOutput)) {
        let mut base = base;
        if store.op == StorePerViewOutput {
            if shader.entry.as_const_scalar(store.srcs[1]) != Some(view.into()) {
                continue;
            }
            base = base.checked_add(view)?;
        }
        let (_, mask) = found.get_or_insert((base, WriteMask(0)));
        mask.0 |= u32::from(store.indices.write_mask()) << store.indices.component();
    }
    found
}

/// The accesses to a location, with its number: an access names the first location of a variable, and adds an offset to
/// its number. Offsets that are computed may lead to each of its locations.
fn at_location<'a>(
    shader: &'a Shader,
    location: &'a str,
    of: impl Fn(IntrinsicOp) -> bool + 'a,
) -> impl Iterator<Item = (u16, &'a Intrinsic)> {
    let is_dual = shader.entry.instrs.values().any(|data| {
        let InstrData::Intrinsic(intrinsic) = data else { return false };
        intrinsic.indices.io_semantics().is_some_and(|io| io.flags.contains(IoFlags::DUAL_SOURCE))
    });
    shader.entry.instrs_in_order().filter_map(move |(_, instr)| {
        let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] else { return None };
        if !of(intrinsic.op) {
            return None;
        }
        let io = intrinsic.indices.io_semantics()?;
        // The second color of a blend has the next slot.
        let is_second = io.flags.contains(IoFlags::DUAL_SOURCE);
        let named = if is_dual && &*io.location == "FRAG_RESULT_COLOR" { "FRAG_RESULT_DATA0" } else { &io.location };
        let distance = slot_distance(named, location)?.checked_sub(is_second.into())?;
        let offset = intrinsic.srcs.last().and_then(|&src| shader.entry.as_const_scalar(src));
        let is_reached = match offset {
            Some(offset) => offset == u64::from(distance),
            None => distance < io.slots.max(1),
        };
        let base = u32::try_from(intrinsic.indices.base()).ok()? + distance;
        is_reached.then_some((u16::try_from(base).ok()?, intrinsic))
    })
}

/// The distance of two locations of one kind: those are numbered.
fn slot_distance(first: &str, other: &str) -> Option<u32> {
    if first == other {
        return Some(0);
    }
    let split = |name: &'_ str| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (kind, number) = name.split_at(name.len() - digits);
        number.parse::<u32>().ok().map(|number| (kind.to_owned(), number))
    };
    let ((kind, from), (other, to)) = (split(first)?, split(other)?);
    if kind == other { to.checked_sub(from) } else { None }
}
