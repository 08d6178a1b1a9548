//! A job for a device: a module, its dispatch, its draw or the draw that is captured, and the contents of its
//! resources.

use super::vertices::{self, CAPTURED_WORDS, Capture};
use super::{fragments, vertex};
use crate::spirv::{Described, Descriptor, Module, PUSHED_WORDS, TexelDim, TexelFormat, TexelShape};
use ir3_compiler::nir::{ImageDim, Shader, Stage};
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::device::{TEXTURE_SIDE, image_extent, texel};
use ir3_semantics::environment::env::{CONST_WORDS, Env};
use ir3_semantics::environment::memory::Space;

/// Words of a uniform buffer: all that a range of 64 KiB has.
const UNIFORM_WORDS: u32 = 1 << 14;
/// The words of a uniform buffer that programs read.
pub const READ_UNIFORM_WORDS: u32 = 1 << 11;
/// The words of a pixel that nothing has drawn.
pub const CLEAR: [u32; 4] = [0xc1ea_0000, 0xc1ea_0001, 0xc1ea_0002, 0xc1ea_0003];
/// Words of a colour attachment.
const COLOR_WORDS: usize = 4 * fragments::QUAD as usize;

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResource {
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Its contents before the execution.
    pub words: Vec<u32>,
}

/// The shape of an image for Vulkan.
struct Texels {
    format: u32,
    view: u32,
    /// Width, height and depth.
    extent: [u32; 3],
    layers: u32,
}

impl Texels {
    /// The shape of an image of these sizes, by coordinate.
    fn of(shape: TexelShape, [x, y, z]: [u32; 3]) -> Self {
        use TexelDim as D;
        // The numbers are those of Vulkan.
        let (view, extent, layers) = match (shape.dim, shape.is_array) {
            (D::D1 | D::Buffer, false) => (0, [x, 1, 1], 1),
            (D::D1 | D::Buffer, true) => (4, [x, 1, 1], y),
            (D::D3, _) => (2, [x, y, z], 1),
            (D::D2 | D::Cube | D::Samples, false) => (1, [x, y, 1], 1),
            (D::D2 | D::Cube | D::Samples, true) => (5, [x, y, 1], z),
        };
        let format = match shape.format {
            TexelFormat::R32Uint => 98,
            TexelFormat::Rgba32Uint => 107,
            TexelFormat::Rgba32Float => 109,
            TexelFormat::Other => 0,
        };
        Self { format, view, extent, layers }
    }
}

/// The dimension in nir.
const fn image_dim(dim: TexelDim) -> ImageDim {
    match dim {
        TexelDim::D1 => ImageDim::Dim1D,
        TexelDim::D2 => ImageDim::Dim2D,
        TexelDim::D3 => ImageDim::Dim3D,
        TexelDim::Cube => ImageDim::Cube,
        TexelDim::Buffer => ImageDim::Buf,
        TexelDim::Samples => ImageDim::Ms,
    }
}

impl JobResource {
    fn new(descriptor: Descriptor, env: &Env) -> Self {
        let words = |count: u32, word: &dyn Fn(u32) -> u32| (0..count).map(word).collect::<Vec<u32>>();
        let rules = env.device.unwrap_or_default();
        let mut words = match descriptor.resource {
            Described::Constants => words(CONST_WORDS, &|word| env.const_word(word)),
            Described::Uniform(id) => words(READ_UNIFORM_WORDS, &|word| env.ubo_word(id, word)),
            Described::Storage(id) => words(rules.buffer_bytes / 4, &|word| env.memory_word(Space::Ssbo, id, word)),
            Described::Image(id, shape) => {
                let [x, y, z] = image_extent(image_dim(shape.dim), shape.is_array, rules.image_width);
                let (count, step) = if shape.format == TexelFormat::R32Uint { (1, 4) } else { (4, 1) };
                words(x * y * z * count, &|word| env.memory_word(Space::Image, id, word * step))
            }
            Described::Texture(id, shape) => {
                let is_float = shape.format == TexelFormat::Rgba32Float;
                let [x, y, z] = texture_extent(shape);
                words(x * y * z * 4, &|word| texel(env, id, word / 4, word % 4, is_float))
            }
            Described::Sampler(_) => Vec::new(),
        };
        if matches!(descriptor.resource, Described::Constants | Described::Uniform(_)) {
            words.resize(UNIFORM_WORDS as usize, 0);
        }
        Self { descriptor, words }
    }

    /// The memory that it is, if the program may write it.
    #[must_use]
    pub const fn memory(&self) -> Option<(Space, Binding)> {
        match self.descriptor.resource {
            Described::Storage(id) => Some((Space::Ssbo, id)),
            Described::Image(id, _) => Some((Space::Image, id)),
            _ => None,
        }
    }

    /// The number of one of its words in that memory, in which each texel has four words.
    #[must_use]
    pub const fn word_of(&self, number: u32) -> u32 {
        match self.descriptor.resource {
            Described::Image(_, TexelShape { format: TexelFormat::R32Uint, .. }) => 4 * number,
            _ => number,
        }
    }

    /// The words of the protocol that describe it.
    fn head(&self, env: &Env) -> [u32; 11] {
        let none = Texels { format: 0, view: 0, extent: [0; 3], layers: 0 };
        let width = env.device.unwrap_or_default().image_width;
        let (kind, texels) = match self.descriptor.resource {
            Described::Constants | Described::Uniform(_) => (0, none),
            Described::Storage(_) => (1, none),
            Described::Image(_, shape) => {
                let extent = image_extent(image_dim(shape.dim), shape.is_array, width);
                (if shape.dim == TexelDim::Buffer { 5 } else { 2 }, Texels::of(shape, extent))
            }
            Described::Texture(_, shape) => (3, Texels::of(shape, texture_extent(shape))),
            Described::Sampler(_) => (4, none),
        };
        let Descriptor { set, binding, element, .. } = self.descriptor;
        let [width, height, depth] = texels.extent;
        let count = self.words.len() as u32;
        [set, binding, element, kind, count, texels.format, texels.view, width, height, depth, texels.layers]
    }
}

/// The sizes of a texture, by coordinate.
const fn texture_extent(shape: TexelShape) -> [u32; 3] {
    let side = TEXTURE_SIDE;
    match (shape.dim, shape.is_array) {
        (TexelDim::D1 | TexelDim::Buffer, false) => [side, 1, 1],
        (TexelDim::D1 | TexelDim::Buffer, true) | (TexelDim::D2 | TexelDim::Samples, false) => [side, side, 1],
        _ => [side; 3],
    }
}

/// A draw of one quad.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Draw {
    vertex: Vec<u32>,
    colors: u32,
    scissor: [u32; 4],
    is_front: bool,
}

/// A job: a dispatch, a draw of one quad, or a draw of vertices that is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The module.
    pub module: Vec<u32>,
    /// The resources.
    pub resources: Vec<JobResource>,
    /// The words of the protocol that describe the resources.
    heads: Vec<[u32; 11]>,
    groups: [u32; 3],
    pushed: Vec<u32>,
    draw: Option<Draw>,
    capture: Option<Capture>,
}

impl Job {
    /// The job of a prepared program in the environment of a device.
    #[must_use]
    pub fn new(shader: &Shader, module: &Module, env: &Env, groups: u32) -> Self {
        let resources: Vec<_> = module.descriptors().iter().map(|&it| JobResource::new(it, env)).collect();
        let heads = resources.iter().map(|it| it.head(env)).collect();
        let pushed = (0..PUSHED_WORDS).map(|word| env.const_word(word)).collect();
        let draw = (shader.stage == Stage::Fragment).then(|| Draw {
            vertex: vertex::shader(module.inputs(), env),
            colors: fragments::colors(shader),
            scissor: fragments::scissor(!env.helpers.unwrap_or_default() & 0xf),
            is_front: env.system.get("FrontFace.0").is_none_or(|values| values == &[0]),
        });
        let capture = vertices::is_captured(shader).then(|| Capture::new(module.inputs(), env));
        Self { module: module.words(), resources, heads, groups: [groups, 1, 1], pushed, draw, capture }
    }

    /// The words that are captured of all vertices, after each other.
    #[must_use]
    pub fn captured_words(&self) -> usize {
        let count = CAPTURED_WORDS * vertices::VERTICES * vertices::INSTANCES;
        if self.capture.is_some() { count as usize } else { 0 }
    }

    /// The colour attachments.
    #[must_use]
    pub fn colors(&self) -> u32 {
        self.draw.as_ref().map_or(0, |draw| draw.colors)
    }

    /// The words of the answer to one execution.
    #[must_use]
    pub fn answer_words(&self) -> usize {
        let written = self.resources.iter().filter(|it| it.memory().is_some());
        written.map(|it| it.words.len()).sum::<usize>() + COLOR_WORDS * self.colors() as usize + self.captured_words()
    }

    /// The bytes that the worker reads.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = |words: usize| words as u32;
        let [x, y, z] = self.groups;
        let mut words =
            vec![0, count(self.module.len()), x, y, z, count(self.pushed.len()), count(self.resources.len())];
        let none = Draw { vertex: Vec::new(), colors: 0, scissor: [0; 4], is_front: false };
        let draw = self.draw.as_ref().unwrap_or(&none);
        words.extend([count(draw.vertex.len()), draw.colors]);
        words.extend(draw.scissor);
        words.push(draw.is_front.into());
        let none = Capture::default();
        let capture = self.capture.as_ref().unwrap_or(&none);
        let [count_of, instances] =
            if self.capture.is_some() { [vertices::VERTICES, vertices::INSTANCES] } else { [0; 2] };
        let stride = if self.capture.is_some() { CAPTURED_WORDS } else { 0 };
        words.extend([count_of, instances, capture.first, stride]);
        words.extend([count(capture.attributes.len()), count(capture.data.len())]);
        words.extend(self.heads.iter().flatten());
        words.extend(&self.module);
        words.extend(&self.pushed);
        words.extend(&draw.vertex);
        words.extend(&capture.attributes);
        words.extend(&capture.data);
        self.resources.iter().for_each(|it| words.extend(&it.words));
        words[0] = count(words.len() - 1);
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}
