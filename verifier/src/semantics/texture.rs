//! Textures: fixed functions of what is asked and of the seed.
//!
//! A program's texture operation becomes a [`TextureRequest`], whose form does not depend on the language, and each
//! component of the answer is a hash of that. So two programs that ask the same get the same, however they put the
//! question.

use ir3_compiler::ir3::Type;
use ir3_compiler::ir3::access::{TextureKind, TextureRequest};

use super::env::{Env, hash, mix, nice_float};
use super::float;

/// The answer to a [`TextureRequest`]: a fixed function of the request and of the seed.
#[derive(Clone, Copy, Debug)]
pub struct TextureAnswer {
    kind: TextureKind,
    state: u64,
}

impl TextureAnswer {
    /// Asks.
    #[inline]
    pub fn new(env: &Env, request: &TextureRequest) -> TextureAnswer {
        let sampler = request.sampler.map_or(u64::MAX, |sampler| sampler.bits());
        let head = u64::from(request.kind.number()) << 32 | u64::from(request.present.0);
        let mut state = hash(&[env.seed ^ 0x7465_7874, head, sampler, request.texture.bits()]);
        // What is present has been told, so the others need not be.
        let mut rest = request.present.0;
        while rest != 0 {
            state = mix(state, request.operands[rest.trailing_zeros() as usize].into());
            rest &= rest - 1;
        }
        TextureAnswer { kind: request.kind, state }
    }

    /// Component `component` of the answer, in a destination of this type: floats in [`Type::F32`] and
    /// [`Type::F16`], where the question has them for an answer; else small integers. Sizes, numbers of levels and samples, and the
    /// levels that would be sampled (in 256ths) are integers whatever the type.
    #[inline]
    pub fn component(&self, component: u32, ty: Type) -> u32 {
        let word = |component: u32| mix(self.state, component.into());
        match self.kind {
            // The machine has the number of layers in component 3, nir in component 2.
            TextureKind::Size | TextureKind::BufferSize => 1 << ((word(component.min(2)) >> 20) % 9),
            TextureKind::Info => 1 + (word(component) >> 20) as u32 % 8,
            TextureKind::LodQuery => (word(component) >> 20) as u32 % 2048,
            _ => match ty {
                Type::F32 => nice_float(word(component)),
                Type::F16 => float::f32_to_f16(nice_float(word(component))),
                _ => (word(component) >> 20) as u32 % 256,
            },
        }
    }
}
