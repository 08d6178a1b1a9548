//! Mesa's last programs: the words in a log, with the interface that the lines around them give, and the final-form nir
//! that they were compiled from.
//!
//! Inputs and outputs have the numbers of the nir: both name their locations. What only the text of the program says
//! (samples that are issued before it starts, the sizes of arrays) is taken from its section `AFTER: ir3_legalize`.

use super::finals::{FinalProgram, finals};
use super::programs::{read_nir, target_of};
use crate::programs::mesa::input::{InputError, Source};
use crate::programs::mesa::log::{Log, Section, SectionKind};
use crate::programs::mesa::native::{Native, NativeInput};
use ir3_compiler::ir3::{
    self, ConstLayout, DriverParam, Dst, InputKind, Output, PhysReg, Place, ShaderStage, Src, SystemValue, WriteMask,
};
use ir3_compiler::machine::{Code, EntryRegister, Interface, OutputRegister};
use ir3_compiler::nir::{InstrData, Intrinsic, IntrinsicOp, Shader, Stage};
use ir3_compiler::target::Target;
use std::path::Path;

/// A final program of Mesa, and its source.
#[derive(Clone, Debug)]
pub struct NativeProgram {
    /// The path of the log.
    pub name: String,
    /// The final-form nir.
    pub shader: Shader,
    /// The code, from its words.
    pub code: Code,
    /// The GPU.
    pub target: Target,
}

/// Why a program of a log is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The log cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The log does not say enough of the program, or a word is no instruction of ours.
    #[error("{path}: {what}")]
    Refused {
        /// The log.
        path: String,
        /// What is missing.
        what: String,
    },
}

/// Loads the last program of a log: the one whose words it has.
///
/// # Errors
/// If the file is no log that can be read, has no words, or does not say where an input or an output is.
pub fn native(path: &Path, gpu: Option<Target>) -> Result<NativeProgram, NativeError> {
    let Source { path, text, .. } = Source::read(path)?;
    let refused = |what: String| NativeError::Refused { path: path.display().to_string(), what };
    let log = Log::read(&path, &text)?;
    let target = target_of(&path, &log, gpu)?;
    let native = log.native().map_err(|line| refused(format!("a line of another form: `{line}`")))?;
    let native = native.ok_or_else(|| refused("no words".to_owned()))?;
    let source = log.nir(&path)?.into_iter().rfind(|section| is_stage(section, &native.stage));
    let source = source.ok_or_else(|| refused(format!("no nir of the stage {}", native.stage)))?;
    let shader = read_nir(&path, &source.text, source.first_line - 1)?;
    let text =
        finals(&path, Some(target))?.into_iter().rfind(|program| program.stage.as_deref() == Some(&*native.stage));
    let code = code(&native, &shader, text.as_ref(), &target).map_err(refused)?;
    Ok(NativeProgram { name: path.display().to_string(), shader, code, target })
}

fn is_stage(section: &Section, name: &str) -> bool {
    matches!(&section.kind, SectionKind::NirFinal { stage } if stage == name)
}

fn code(native: &Native, shader: &Shader, text: Option<&FinalProgram>, target: &Target) -> Result<Code, String> {
    if native.group("image_dims").is_some() {
        return Err("sizes of images are words of the constant file".to_owned());
    }
    let mut interface = Interface {
        stage: stage(shader.stage),
        workgroup_size: shader.info.workgroup_size.map(|size| size.map(|n| n.min(0xffff) as u16)),
        shared_size: shader.info.shared_size,
        scratch_size: shader.info.scratch_size,
        consts: consts(native, shader.stage),
        ..Interface::default()
    };
    for input in &native.inputs {
        self::input(input, shader, &mut interface)?;
    }
    for output in &native.outputs {
        let Some((base, mask)) = stored(shader, &output.location) else { continue };
        if output.register == PhysReg::INVALID {
            continue;
        }
        interface.outputs_at.push(Output { base, component: 0 });
        let src = Src::reg(Place::Reg(output.register), output.class, mask);
        let index = Some(interface.outputs_at.len() as u16 - 1);
        interface.outputs.push(OutputRegister { index, src });
    }
    let mut code = Code::decode(target.generation, &native.words, interface).map_err(|error| error.to_string())?;
    if let Some(text) = text {
        code.interface.prefetches.clone_from(&text.code.interface.prefetches);
        super::finals::complete(&mut code, &text.code);
    }
    Ok(code)
}

const fn stage(stage: Stage) -> Option<ShaderStage> {
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
fn consts(native: &Native, stage: Stage) -> ConstLayout {
    let mut layout = ConstLayout { immediates: native.immediates.clone(), ..ConstLayout::default() };
    if let Some(first) = native.group("driver_params") {
        layout.driver_params = driver_params(stage)
            .iter()
            .flat_map(|&(word, value, components)| {
                (0..components).map(move |component| DriverParam {
                    word: first + word + component,
                    value,
                    component: component as u8,
                })
            })
            .collect();
    }
    layout
}

/// Driver parameters by their first word, with the number of components (`ir3_shader.h`).
const fn driver_params(stage: Stage) -> &'static [(u16, SystemValue, u16)] {
    use SystemValue::*;
    match stage {
        Stage::Compute | Stage::Kernel => &[
            (0, NumWorkgroups, 3),
            (3, WorkDim, 1),
            (4, BaseWorkgroupId, 3),
            (7, SubgroupSize, 1),
            (8, WorkgroupSize, 3),
            (11, SubgroupIdShift, 1),
            (12, WorkgroupId, 3),
        ],
        Stage::Vertex => &[(0, DrawId, 1), (1, BaseVertex, 1), (2, BaseInstance, 1), (4, IsIndexedDraw, 1)],
        Stage::Fragment => &[(0, SubgroupSize, 1), (1, FragInvocationCount, 1)],
        _ => &[],
    }
}

/// Adds the registers of an input. Varyings have none: `bary.f` names them by number, which is that of the nir.
fn input(input: &NativeInput, shader: &Shader, interface: &mut Interface) -> Result<(), String> {
    let NativeInput { location, register, class, components, varying } = input;
    let kind: Box<dyn Fn(u32) -> InputKind> = if let Some(system) = location.strip_prefix("SYSTEM_VALUE_") {
        let value = system_value(system).ok_or_else(|| format!("the input {location}"))?;
        if *register == PhysReg::INVALID {
            return Ok(());
        }
        interface.inputs.push(entry(*register, *class, *components, InputKind::System(value)));
        return Ok(());
    } else {
        let Some(base) = loaded(shader, location) else { return Ok(()) };
        if shader.stage == Stage::Fragment {
            return match varying {
                Some(number) if *number != 4 * u32::from(base) => {
                    Err(format!("{location} is varying {number}, and has the base {base} in nir"))
                }
                _ => Ok(()),
            };
        }
        Box::new(move |component| InputKind::Attribute { base, component: component as u8 })
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

/// A system value by Mesa's name.
fn system_value(name: &str) -> Option<SystemValue> {
    use SystemValue::*;
    Some(match name {
        "WORKGROUP_ID" => WorkgroupId,
        "LOCAL_INVOCATION_ID" => LocalInvocationId,
        "VERTEX_ID" => VertexId,
        "VERTEX_ID_ZERO_BASE" => VertexIdZeroBase,
        "INSTANCE_ID" => InstanceId,
        "VIEW_INDEX" => ViewIndex,
        "PRIMITIVE_ID" => PrimitiveId,
        "FRAG_COORD" => FragCoord,
        "FRONT_FACE" => FrontFace,
        "POINT_COORD" => PointCoord,
        "FRAG_SHADING_RATE" => FragShadingRate,
        "SAMPLE_ID" => SampleId,
        "SAMPLE_MASK_IN" => SampleMaskIn,
        "BARYCENTRIC_PERSP_PIXEL" => BarycentricPixel,
        "BARYCENTRIC_PERSP_CENTROID" => BarycentricCentroid,
        "BARYCENTRIC_PERSP_SAMPLE" => BarycentricSample,
        "BARYCENTRIC_LINEAR_PIXEL" => BarycentricPixelLinear,
        "BARYCENTRIC_LINEAR_CENTROID" => BarycentricCentroidLinear,
        "BARYCENTRIC_LINEAR_SAMPLE" => BarycentricSampleLinear,
        "BARYCENTRIC_PERSP_CENTER_RHW" => BarycentricCenterRhw,
        _ => return None,
    })
}

/// The intrinsics of one location.
fn at_location<'a>(shader: &'a Shader, location: &'a str) -> impl Iterator<Item = &'a Intrinsic> {
    shader.entry.instrs_in_order().filter_map(move |(_, instr)| match &shader.entry.instrs[instr] {
        InstrData::Intrinsic(intrinsic) => {
            intrinsic.indices.io_semantics().filter(|io| *io.location == *location).map(|_| intrinsic)
        }
        _ => None,
    })
}

/// The number of the input at a location.
fn loaded(shader: &Shader, location: &str) -> Option<u16> {
    use IntrinsicOp::{LoadInput, LoadInterpolatedInput};
    let mut loads = at_location(shader, location);
    let load = loads.find(|intrinsic| matches!(intrinsic.op, LoadInput | LoadInterpolatedInput))?;
    u16::try_from(load.indices.base()).ok()
}

/// The number of the output at a location, and its components that are stored.
fn stored(shader: &Shader, location: &str) -> Option<(u16, WriteMask)> {
    let stores = at_location(shader, location).filter(|intrinsic| intrinsic.op == IntrinsicOp::StoreOutput);
    let mut found = None;
    for store in stores {
        let (base, mask) = found.get_or_insert((u16::try_from(store.indices.base()).ok()?, WriteMask(0)));
        debug_assert_eq!(i32::from(*base), store.indices.base(), "one output at a location");
        mask.0 |= u32::from(store.indices.write_mask()) << store.indices.component();
    }
    found
}
