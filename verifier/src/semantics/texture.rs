//! Textures: fixed functions of what is asked and of the seed.
//!
//! A program's texture operation becomes a list of words in a canonical order (kind, texture, sampler, then each operand
//! that is there), and each component of the response is a hash of that list. So two programs that ask the same get the
//! same, however they put the question.

use ir3_compiler::ir3::Type;
use ir3_compiler::ir3::access::TextureRequest;

use super::env::{Env, hash, nice_float};
use super::float;
use super::values::Binding;

/// What a texture operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextureKind {
    /// A sample with the level that derivatives give; the response does not depend on other lanes.
    Sample,
    /// A sample with a bias.
    Bias,
    /// A sample at a level.
    Level,
    /// A sample with derivatives.
    Gradient,
    /// One texel.
    Fetch,
    /// One sample of a texel.
    FetchMultisample,
    /// The size of a level.
    Size,
    /// The number of levels.
    Levels,
    /// The level that a sample would be taken from.
    LevelQuery,
    /// One component (0 to 3) of four texels.
    Gather(u8),
}

/// An operand of a texture operation; the order is that in which they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextureOperand {
    /// Coordinates; those of one dimension are padded by the reader of the program.
    Coordinate,
    /// Layer of an array.
    Layer,
    /// Reference of a shadow comparison.
    Comparator,
    /// Divisor of the coordinates.
    Projector,
    /// Level, or bias.
    Level,
    /// Offset in texels.
    Offset,
    /// Derivative in x.
    Ddx,
    /// Derivative in y.
    Ddy,
    /// Sample number.
    Sample,
}

/// The question that one lane asks, built word by word.
#[derive(Clone, Copy, Debug)]
pub struct TextureQuery {
    state: u64,
}

impl TextureQuery {
    /// A question without operands.
    #[inline]
    pub fn new(env: &Env, kind: TextureKind, texture: Binding, sampler: Option<Binding>) -> TextureQuery {
        let kind = match kind {
            TextureKind::Sample => 0,
            TextureKind::Bias => 1,
            TextureKind::Level => 2,
            TextureKind::Gradient => 3,
            TextureKind::Fetch => 4,
            TextureKind::FetchMultisample => 5,
            TextureKind::Size => 6,
            TextureKind::Levels => 7,
            TextureKind::LevelQuery => 8,
            TextureKind::Gather(component) => 16 + u64::from(component),
        };
        let sampler = sampler.map_or(u64::MAX, Binding::bits);
        TextureQuery { state: hash(&[env.seed, 0x7465_7874, kind, texture.bits(), sampler]) }
    }

    /// Adds a component of an operand; 16-bit operands are converted to 32 bits first.
    #[inline]
    pub fn operand(&mut self, operand: TextureOperand, component: u32, bits: u32) {
        self.state = hash(&[self.state, operand as u64 + 1 | u64::from(component) << 8, bits.into()]);
    }

    /// A component of the response as a float of 32 bits.
    #[inline]
    pub fn float(&self, component: u32) -> u32 {
        nice_float(hash(&[self.state, component.into()]))
    }

    /// A component of the response as a float of 16 bits.
    #[inline]
    pub fn half(&self, component: u32) -> u32 {
        float::f32_to_f16(self.float(component))
    }

    /// A component of the response as a small integer, of 16 or 32 bits alike.
    #[inline]
    pub fn integer(&self, component: u32) -> u32 {
        (hash(&[self.state, component.into()]) >> 20) as u32 % 256
    }
}

/// The answer to a [`TextureRequest`]: a fixed function of the request and of the seed.
#[derive(Clone, Copy, Debug)]
pub struct TextureAnswer {
    kind: ir3_compiler::ir3::access::TextureKind,
    state: u64,
}

impl TextureAnswer {
    /// Asks.
    #[inline]
    pub fn new(env: &Env, request: &TextureRequest) -> TextureAnswer {
        let state = request.words().fold(env.seed ^ 0x7465_7874, |state, word| hash(&[state, word.into()]));
        TextureAnswer { kind: request.kind, state }
    }

    /// Component `component` of the answer, in a destination of this type: floats in [`Type::F32`] and
    /// [`Type::F16`], where the question has them for an answer; else small integers. Sizes, numbers of levels and samples, and the
    /// levels that would be sampled (in 256ths) are integers whatever the type.
    #[inline]
    pub fn component(&self, component: u32, ty: Type) -> u32 {
        use ir3_compiler::ir3::access::TextureKind as Kind;
        let word = |component: u32| hash(&[self.state, component.into()]);
        match self.kind {
            // The machine has the number of layers in component 3, nir in component 2.
            Kind::Size | Kind::BufferSize => 1 << (word(component.min(2)) >> 20) % 9,
            Kind::Info => 1 + (word(component) >> 20) as u32 % 8,
            Kind::LodQuery => (word(component) >> 20) as u32 % 2048,
            _ => match ty {
                Type::F32 => nice_float(word(component)),
                Type::F16 => float::f32_to_f16(nice_float(word(component))),
                _ => (word(component) >> 20) as u32 % 256,
            },
        }
    }
}
