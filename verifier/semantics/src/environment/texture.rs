//! Textures: fixed functions of the request and of the seed.
//!
//! A texture operation of a program becomes a [`TextureRequest`], whose form does not depend on the language, and each
//! component of the result is a hash of it. So equal requests of two programs get equal results, however their
//! instructions encode them. With hints of a program, textures are smooth: floats that change little with the
//! coordinates, and mostly from 0 to 1. An environment may have some black texels: programs that count, or skip empty
//! texels, reach more of their code. And it may have coarse ones: large cells of one color, or one color all over.
//! Lanes of a quad then mostly read the same, so branches that depend on a texture do not diverge. Or some components
//! are corner cases of floats: 0 next to an infinity or NaN.
//!
//! If a fragment shader does not give the level, the level comes from derivatives: the result depends on the
//! coordinates of the whole quad, helper lanes included ([`Quads`]). Where a lane of the quad is inactive, or its
//! coordinates are undefined, so is the result.

use ir3_compiler::ir3::Type;
use ir3_compiler::ir3::access::{TextureKind, TextureRequest};

use crate::arithmetic::float;
use crate::arithmetic::rows::{LANES, Row};
use crate::environment::env::{EDGE_FLOATS, Env, nice, nice_float};
use crate::support::random::{hash, mix};

/// The result of a [`TextureRequest`]: a fixed function of the request and of the seed.
#[derive(Clone, Copy, Debug)]
pub struct TextureAnswer {
    kind: TextureKind,
    state: u64,
    /// A number that changes little with the operands, if the texture is smooth.
    smooth: Option<f32>,
    /// The texel is 0 in all components.
    black: bool,
    /// The eighths of components that are corner cases.
    corners: u8,
}

impl TextureAnswer {
    /// Computes the result of a request.
    #[inline]
    pub fn new(env: &Env, request: &TextureRequest) -> TextureAnswer {
        let request = request.simplified();
        let sampler = request.sampler.map_or(u64::MAX, |sampler| sampler.bits());
        let head = u64::from(request.kind.number()) << 32 | u64::from(request.present.0);
        let mut state = hash(&[env.seed ^ 0x7465_7874, head, sampler, request.texture.bits()]);
        let mut operands = request.operands;
        if let Some(cells) = env.coarse_texels.checked_sub(1) {
            operands.iter_mut().for_each(|operand| *operand = cell(*operand, cells));
        }
        // The mask of present operands is hashed already, so absent ones need not be.
        let mut rest = request.present.0;
        while rest != 0 {
            state = mix(state, operands[rest.trailing_zeros() as usize].into());
            rest &= rest - 1;
        }
        if let Some(quad) = request.quad.filter(|_| env.coarse_texels == 0) {
            state = mix(state, quad);
        }
        if let Some(shape) = request.shape {
            state = mix(state, u64::from(shape.number()) | 1 << 32);
        }
        let smooth = env.hints.is_some().then(|| level(hash(&[env.seed ^ 0x736d, request.texture.bits()]), &operands));
        let black = mix(state, 0x0062_6c6b) % 8 < env.black_texels.into();
        TextureAnswer { kind: request.kind, state, smooth, black, corners: env.corner_texels }
    }

    /// Component `component` of the result, in a destination of this type: floats in [`Type::F32`] and [`Type::F16`],
    /// if the result of the operation is floats; else integers of the type's width and signedness. Sizes, numbers of
    /// levels and samples, and the queried level of detail (in 256ths; negative where the texture is magnified) are
    /// small integers for any type.
    #[inline]
    pub fn component(&self, component: u32, ty: Type) -> u32 {
        let word = |component: u32| mix(self.state, component.into());
        match self.kind {
            TextureKind::Size | TextureKind::BufferSize => 1 << ((word(component) >> 20) % 9),
            TextureKind::Info => 1 + (word(component) >> 20) as u32 % 8,
            TextureKind::LodQuery => ((word(component) >> 20) as i32 % 2048 - 512) as u32,
            _ if self.black => 0,
            _ => match ty {
                Type::F32 => self.float(word(component), component),
                Type::F16 => float::f32_to_f16(self.float(word(component), component)),
                _ => integer(word(component), ty),
            },
        }
    }
}

impl TextureAnswer {
    /// The float of a component. Most of a smooth texture's is its level there, and a little of it the hash: so equal
    /// levels differ.
    fn float(&self, word: u64, component: u32) -> u32 {
        if (word >> 3) % 8 < self.corners.into() {
            return EDGE_FLOATS[(word >> 8) as usize % EDGE_FLOATS.len()];
        }
        match self.smooth {
            Some(smooth) if word >> 61 != 0 => {
                let noise = (word as u32 >> 8) as f32 / (1 << 24) as f32;
                (fold(smooth + component as f32 * 0.375) * 0.9375 + noise * 0.0625).to_bits()
            }
            _ => nice_float(word),
        }
    }
}

/// The number of the cell of an operand: there are `cells` from 0 to 1, and one of each if `cells` is 0.
fn cell(bits: u32, cells: u8) -> u32 {
    if cells == 0 {
        return 0;
    }
    let value = f32::from_bits(bits);
    match value.is_normal() {
        true => (value * f32::from(cells)).floor().to_bits(),
        // An integer, or 0.
        false => bits / 16,
    }
}

/// A sum of coordinates, each with a weight.
fn level(texture: u64, operands: &[u32]) -> f32 {
    let weight = |at: usize| (hash(&[texture, at as u64]) >> 40) as f32 / (1 << 24) as f32;
    operands.iter().enumerate().fold(0.0, |sum, (at, &bits)| {
        let value = f32::from_bits(bits);
        let value = match value.is_normal() {
            true => value.clamp(-64.0, 64.0),
            // An integer, or 0.
            false => (bits & 0xff) as f32 / 16.0,
        };
        sum + value * weight(at)
    })
}

/// Folds a number to the range from 0 to 1, without a jump.
fn fold(number: f32) -> f32 {
    let within = number.abs() % 2.0;
    if within > 1.0 { 2.0 - within } else { within }
}

/// The coordinates of each quad of a wave, for operations with implicit derivatives.
pub struct Quads {
    words: [u64; LANES / 4],
    complete: u64,
}

impl Quads {
    /// Takes the rows of all operands whose derivatives are needed. `there` are the active lanes in which all of these
    /// are defined.
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

/// An integer of a texel in a destination of this type: any value of the type. Another type is another function: how a
/// format with or without a sign reads as the type is up to the hardware.
#[inline]
fn integer(word: u64, ty: Type) -> u32 {
    let word = nice(mix(word, ty as u64));
    if ty.is_half() { word & 0xffff } else { word }
}
