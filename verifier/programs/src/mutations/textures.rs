//! Mutations of texture operations.

use super::{MutationSite, data};
use ir3_compiler::ir3::{Attrs, Category, InstrFlags, Opcode, Program, TextureAttrs, Type};

pub(super) fn texture<'a>(program: &'a mut Program, site: &MutationSite) -> Option<&'a mut TextureAttrs> {
    match &mut data(program, site).attrs {
        Attrs::Texture(attrs) => Some(attrs),
        _ => None,
    }
}

pub(super) fn texture_index(program: &mut Program, site: &MutationSite) -> bool {
    let Some(index) = texture(program, site).and_then(|attrs| attrs.texture.as_mut()) else { return false };
    *index ^= 1;
    true
}

pub(super) fn sampler_index(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    if !matches!(
        program.instrs[site.instr].opcode,
        Sam | Samb | Saml | Samgq | Getlod | Gather4r | Gather4g | Gather4b | Gather4a
    ) {
        return false;
    }
    let Some(index) = texture(program, site).and_then(|attrs| attrs.sampler.as_mut()) else { return false };
    *index ^= 1;
    true
}

pub(super) fn texture_flags(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    if data.opcode.category() != Category::Texture || data.srcs.is_empty() {
        return false;
    }
    const FLAGS: &[InstrFlags] =
        &[InstrFlags::DIM_3D, InstrFlags::ARRAY, InstrFlags::OFFSET, InstrFlags::PROJ, InstrFlags::SHADOW];
    let set: Vec<InstrFlags> = FLAGS.iter().copied().filter(|&flag| data.flags.contains(flag)).collect();
    let Some(flag) = site.pick(if set.is_empty() { FLAGS } else { &set }) else { return false };
    data.flags ^= flag;
    true
}

pub(super) fn texture_type(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    if matches!(program.instrs[site.instr].opcode, Getsize | Getinfo | Getbuf | Getlod) {
        return false;
    }
    let Some(ty) = texture(program, site).and_then(|attrs| attrs.ty.as_mut()) else { return false };
    let other = match *ty {
        Type::F32 => Type::U32,
        Type::F16 => Type::U16,
        Type::U16 | Type::S16 => Type::F16,
        _ => Type::F32,
    };
    *ty = other;
    true
}
