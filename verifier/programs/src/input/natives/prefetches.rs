//! Samples that are issued before the program starts: attributes that their text leaves out, and the commands in the
//! driver's list.

use super::descriptor;
use crate::mesa::native::NativePrefetch;
use ir3_compiler::ir3::{
    self, Attrs, Dst, InstrFlags, Opcode, PhysReg, Place, RegClass, Src, TextureAttrs, Type, WriteMask,
};
use ir3_compiler::nir::{BaseType, InstrData, Shader, TexOp, TexSrcKind};

/// Attributes from nir of a sample that is issued before the program starts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Prefetched {
    ty: BaseType,
    /// The descriptor sets of texture and sampler, if they are bindless.
    sets: Option<(u32, u32)>,
}

/// Adds the type and the descriptor sets of a sample that is issued before the program starts, which its text does not
/// have: those of nir's texture instruction of this texture.
///
/// # Errors
/// If nir has no such instruction, or several that differ.
pub fn complete(prefetch: &mut ir3::InstrData, shader: &Shader) -> Result<(), String> {
    let half = prefetch.dsts.first().is_some_and(|dst| dst.class.half);
    let Attrs::Texture(attrs) = &mut prefetch.attrs else { return Ok(()) };
    let (texture, sampler) = (attrs.texture.map(u64::from), attrs.sampler.map(u64::from));
    let mut all = shader.entry.instrs_in_order().filter_map(|(_, instr)| match &shader.entry.instrs[instr] {
        InstrData::Tex(tex) if tex.op == TexOp::TexPrefetch => {
            let handle = |kind| tex.srcs.iter().find(|(its, _)| *its == kind).map(|&(_, def)| descriptor(shader, def));
            let ty = tex.dest_type.base;
            match (handle(TexSrcKind::TextureHandle), handle(TexSrcKind::SamplerHandle)) {
                (Some(Some((set, index))), Some(Some((sampler_set, of_sampler)))) => {
                    let is_own = Some(index) == texture && Some(of_sampler) == sampler;
                    is_own.then_some(Prefetched { ty, sets: Some((set, sampler_set)) })
                }
                (None, None) => {
                    (Some(u64::from(tex.texture_index)) == texture).then_some(Prefetched { ty, sets: None })
                }
                _ => None,
            }
        }
        _ => None,
    });
    let known = all.next().ok_or("a texture is sampled before the program starts, and never by the nir")?;
    if all.any(|other| other != known) {
        return Err("a sample before the program starts may be one of several of the nir".to_owned());
    }
    let set = |set: u32| u8::try_from(set).map_err(|_| format!("descriptor set {set}"));
    if let Some((of_texture, of_sampler)) = known.sets {
        attrs.base = Some(set(of_texture)?);
        attrs.sampler_base = Some(set(of_sampler)?);
        prefetch.flags |= InstrFlags::BINDLESS;
    }
    attrs.ty = Some(match (known.ty, half) {
        (BaseType::Int, false) => Type::S32,
        (BaseType::Int, true) => Type::S16,
        (BaseType::Uint | BaseType::Bool, false) => Type::U32,
        (BaseType::Uint | BaseType::Bool, true) => Type::U16,
        (_, false) => Type::F32,
        (_, true) => Type::F16,
    });
    Ok(())
}

/// The command of a sample before the program starts.
pub fn command(data: &ir3::InstrData) -> Option<NativePrefetch> {
    let (Attrs::Texture(attrs), dst) = (&data.attrs, data.dsts.first()?) else { return None };
    Some(NativePrefetch {
        register: dst.place.reg()?,
        class: dst.class,
        mask: dst.mask.0 as u8,
        varying: attrs.input_offset?,
        bindless: attrs.base.is_some() || data.flags.contains(InstrFlags::BINDLESS),
        sampler: attrs.sampler?,
        texture: attrs.texture?,
    })
}

/// The sample that a command starts, in the form of a pass's text: without type and descriptor sets. Its coordinates
/// are those of the pixel.
pub(super) fn of_command(command: &NativePrefetch) -> ir3::InstrData {
    let NativePrefetch { register, class, mask, varying, bindless: _, sampler, texture } = *command;
    let mut data = ir3::InstrData::new(Opcode::TexPrefetch);
    data.dsts.push(Dst::new(Place::Reg(register), class, WriteMask(mask.into())));
    let pixel = Place::Reg(PhysReg::PREFETCH_COORDINATES);
    data.srcs.push(Src::reg(pixel, RegClass::FULL, WriteMask::first(2)));
    data.attrs = Attrs::Texture(TextureAttrs {
        texture: Some(texture),
        sampler: Some(sampler),
        input_offset: Some(varying),
        ..TextureAttrs::default()
    });
    data
}

/// Compares the samples before the program starts with the commands in the driver's list.
pub(super) fn check(of_text: &[ir3::InstrData], commands: &[NativePrefetch]) -> Result<(), String> {
    let (text, told) = (of_text.len(), commands.len());
    if text != told {
        return Err(format!("{text} textures are sampled before the program starts, and the driver's list has {told}"));
    }
    for (number, (data, told)) in of_text.iter().zip(commands).enumerate() {
        if command(data).as_ref() != Some(told) {
            return Err(format!("the sample {number} before the program starts is not the one in the driver's list"));
        }
    }
    Ok(())
}
