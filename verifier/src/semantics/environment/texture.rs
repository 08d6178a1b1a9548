//! Textures: fixed functions of the request and of the seed.
//!
//! A texture operation of a program becomes a [`TextureRequest`], whose form does not depend on the language, and each component of the
//! result is a hash of it. So equal requests of two programs get equal results, however their instructions encode them.
//!
//! If a fragment shader does not give the level, the level comes from derivatives: the result depends on the coordinates of the whole
//! quad, helper lanes included ([`Quads`]). Where a lane of the quad is inactive, or its coordinates are undefined, so is the result.

use ir3_compiler::ir3::Type;
use ir3_compiler::ir3::access::{TextureKind, TextureRequest};

use crate::semantics::arithmetic::float;
use crate::semantics::arithmetic::rows::{LANES, Row};
use crate::semantics::environment::env::{Env, nice, nice_float};
use crate::support::random::{hash, mix};

/// The result of a [`TextureRequest`]: a fixed function of the request and of the seed.
#[derive(Clone, Copy, Debug)]
pub struct TextureAnswer {
    kind: TextureKind,
    state: u64,
}

impl TextureAnswer {
    /// Computes the result of a request.
    #[inline]
    pub fn new(env: &Env, request: &TextureRequest) -> TextureAnswer {
        let request = request.simplified();
        let sampler = request.sampler.map_or(u64::MAX, |sampler| sampler.bits());
        let head = u64::from(request.kind.number()) << 32 | u64::from(request.present.0);
        let mut state = hash(&[env.seed ^ 0x7465_7874, head, sampler, request.texture.bits()]);
        // The mask of present operands is hashed already, so absent ones need not be.
        let mut rest = request.present.0;
        while rest != 0 {
            state = mix(state, request.operands[rest.trailing_zeros() as usize].into());
            rest &= rest - 1;
        }
        if let Some(quad) = request.quad {
            state = mix(state, quad);
        }
        if let Some(shape) = request.shape {
            state = mix(state, u64::from(shape.number()) | 1 << 32);
        }
        TextureAnswer { kind: request.kind, state }
    }

    /// Component `component` of the result, in a destination of this type: floats in [`Type::F32`] and [`Type::F16`], if the result of the
    /// operation is floats; else integers of the type's width and signedness. Sizes, numbers of levels and samples, and the queried level
    /// of detail (in 256ths) are small integers whatever the type.
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
                _ => integer(word(component), ty),
            },
        }
    }
}

/// The coordinates of each quad of a wave, for operations with implicit derivatives.
pub struct Quads {
    words: [u64; LANES / 4],
    complete: u64,
}

impl Quads {
    /// Takes the rows of all operands whose derivatives are needed. `there` are the active lanes in which all of these are defined.
    pub fn new<'a>(rows: impl Iterator<Item = &'a Row>, defined: u64) -> Quads {
        let mut words = [0; LANES / 4];
        for row in rows {
            for (word, quad) in words.iter_mut().zip(row.chunks_exact(4)) {
                *word = quad.iter().fold(*word, |word, &coordinate| mix(word, coordinate.into()));
            }
        }
        let pairs = defined & defined >> 1;
        let first = pairs & pairs >> 2 & 0x1111_1111_1111_1111;
        Quads { words, complete: first * 0xf }
    }

    /// The lanes of complete quads: the others have no derivatives.
    pub fn complete(&self) -> u64 {
        self.complete
    }

    /// The coordinates of the quad of a lane, as one word.
    pub fn of(&self, lane: usize) -> u64 {
        self.words[lane / 4]
    }
}

/// An integer of a texel in a destination of this type: any value of the type. Another type is another function: how a format with or
/// without a sign reads as the type is up to the hardware.
#[inline]
fn integer(word: u64, ty: Type) -> u32 {
    let word = nice(mix(word, ty as u64));
    if ty.is_half() { word & 0xffff } else { word }
}
