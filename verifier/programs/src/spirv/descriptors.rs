//! Descriptors: the variables of buffers, images, textures and samplers, by set and binding.
//!
//! A descriptor that is bound is in set 0, a bindless one in a set after it. Its number is added to the first
//! [`binding`] of its kind. Where a program computes the number of a descriptor of a kind and a set, the first numbers
//! of these are elements of one array.

use ir3_compiler::ir3::access::ResourceId;
use ir3_compiler::nir::{Access, Def, Function, InstrData, IntrinsicOp, Op, Tex, TexSrcKind};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Capability, Decoration, StorageClass, Word};
use rustc_hash::FxHashSet;

use super::interface::Variable;
use super::values::Kind;
use super::{Described, Descriptor, Emitter, NoForm, TexelShape, binding, no_form, refs};

/// A kind of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Class {
    UniformBuffer,
    StorageBuffer,
    Image,
    Texture,
    Sampler,
}

/// The descriptors that an array has, where there is one.
const IN_ARRAY: u32 = 8;
/// The numbers below this one have a binding of their own; those above get the ones that are left, in the order of
/// their first use.
const NEAR: u32 = 40;
/// Bindings between the first ones of two kinds.
const OF_CLASS: u32 = 64;
/// The sets after that of bound resources.
const BINDLESS_SETS: u32 = 3;
/// Bindings of the descriptors of several bindless sets of nir in one.
const OF_SET: u32 = 320;

impl Class {
    fn binding(self) -> u32 {
        match self {
            Self::UniformBuffer => binding::UNIFORM_BUFFERS,
            Self::StorageBuffer => binding::STORAGE_BUFFERS,
            Self::Image => binding::IMAGES,
            Self::Texture => binding::TEXTURES,
            Self::Sampler => binding::SAMPLERS,
        }
    }

    /// The capabilities of an array of them that is indexed by a value: of one that all lanes share, and of any.
    fn indexing(self, is_texel_buffer: bool) -> [Capability; 2] {
        use Capability as C;
        match self {
            Self::UniformBuffer => [C::UniformBufferArrayDynamicIndexing, C::UniformBufferArrayNonUniformIndexing],
            Self::StorageBuffer => [C::StorageBufferArrayDynamicIndexing, C::StorageBufferArrayNonUniformIndexing],
            Self::Image if is_texel_buffer => {
                [C::StorageTexelBufferArrayDynamicIndexing, C::StorageTexelBufferArrayNonUniformIndexing]
            }
            Self::Image => [C::StorageImageArrayDynamicIndexing, C::StorageImageArrayNonUniformIndexing],
            Self::Texture | Self::Sampler => {
                [C::SampledImageArrayDynamicIndexing, C::SampledImageArrayNonUniformIndexing]
            }
        }
    }
}

/// The number of a descriptor: a constant, and a value that is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    pub class: Class,
    /// The set of a bindless one.
    pub set: Option<u32>,
    pub number: u32,
    pub plus: Option<Def>,
    /// Lanes may name different ones.
    pub is_non_uniform: bool,
    /// A texel buffer, whose arrays have capabilities of their own.
    pub is_texel_buffer: bool,
    /// The shape of an image.
    pub texels: Option<TexelShape>,
}

impl Resource {
    /// The descriptor that an operand of an access names.
    pub fn of(function: &Function, class: Class, def: Def, access: Access) -> Self {
        let mut own = Self {
            class,
            set: None,
            number: 0,
            plus: None,
            is_non_uniform: access.contains(Access::NON_UNIFORM),
            is_texel_buffer: false,
            texels: None,
        };
        let mut index = def;
        if let InstrData::Intrinsic(handle) = &function.instrs[function.defs[def].instr]
            && handle.op == IntrinsicOp::BindlessResourceIr3
        {
            own.set = Some(handle.indices.desc_set());
            index = handle.srcs[0];
        }
        match function.as_const_scalar(index) {
            Some(number) => own.number = number as u32,
            None => (own.number, own.plus) = sum(function, index),
        }
        own
    }

    /// The texture or the sampler of an instruction.
    pub fn of_tex(function: &Function, tex: &Tex, class: Class) -> Self {
        let (handle, offset, number, is_non_uniform) = match class {
            Class::Sampler => {
                (TexSrcKind::SamplerHandle, TexSrcKind::SamplerOffset, tex.sampler_index, tex.sampler_non_uniform)
            }
            _ => (TexSrcKind::TextureHandle, TexSrcKind::TextureOffset, tex.texture_index, tex.texture_non_uniform),
        };
        let mut own = match tex.src(handle) {
            Some(def) => Self::of(function, class, def, Access::empty()),
            None => Self {
                class,
                set: None,
                number,
                plus: None,
                is_non_uniform: false,
                is_texel_buffer: false,
                texels: None,
            },
        };
        own.is_non_uniform = is_non_uniform;
        if let Some(offset) = tex.src(offset) {
            match function.as_const_scalar(offset) {
                Some(more) => own.number += more as u32,
                None => own.plus = Some(offset),
            }
        }
        own
    }
}

/// A computed number as a constant and the rest.
fn sum(function: &Function, def: Def) -> (u32, Option<Def>) {
    if let InstrData::Alu(alu) = &function.instrs[function.defs[def].instr]
        && alu.op == Op::Iadd
    {
        let is_scalar = |at: usize| function.defs[alu.srcs[at].def].num_components == 1;
        let known = [1, 0].into_iter().find_map(|at| Some((at, function.as_const_scalar(alu.srcs[at].def)?)));
        if let Some((at, number)) = known.filter(|_| is_scalar(0) && is_scalar(1)) {
            return (number as u32, Some(alu.srcs[1 - at].def));
        }
    }
    (0, Some(def))
}

/// The kinds and sets of descriptors of which some have a computed number.
pub(super) fn arrays(function: &Function) -> FxHashSet<(Class, Option<u32>)> {
    let mut arrays = FxHashSet::default();
    let mut add = |resource: Resource| {
        if resource.plus.is_some() {
            arrays.insert((resource.class, resource.set));
        }
    };
    for (_, instr) in function.instrs_in_order() {
        match &function.instrs[instr] {
            InstrData::Intrinsic(intrinsic) => {
                if let Some((class, at)) = accessed(intrinsic.op) {
                    add(Resource::of(function, class, intrinsic.srcs[at], Access::empty()));
                }
            }
            InstrData::Tex(tex) => {
                add(Resource::of_tex(function, tex, Class::Texture));
                if tex.op.needs_sampler() {
                    add(Resource::of_tex(function, tex, Class::Sampler));
                }
            }
            _ => {}
        }
    }
    arrays
}

/// The kind of the descriptor that an intrinsic names, and the operand.
pub(super) fn accessed(op: IntrinsicOp) -> Option<(Class, usize)> {
    use IntrinsicOp as I;
    Some(match op {
        I::LoadUboVec4 => (Class::UniformBuffer, 0),
        I::StoreSsboIr3 => (Class::StorageBuffer, 1),
        I::LoadSsboIr3 | I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 | I::GetSsboSize => (Class::StorageBuffer, 0),
        I::ImageLoad | I::ImageStore | I::ImageAtomic | I::ImageAtomicSwap | I::ImageSize => (Class::Image, 0),
        I::BindlessImageLoad
        | I::BindlessImageStore
        | I::BindlessImageAtomic
        | I::BindlessImageAtomicSwap
        | I::BindlessImageSize => (Class::Image, 0),
        _ => return None,
    })
}

/// The operand of an access that names a descriptor.
pub(crate) fn descriptor_operand(op: IntrinsicOp) -> Option<usize> {
    accessed(op).map(|(_, operand)| operand)
}

/// Returns true for accesses to images, and their sizes.
pub(crate) fn is_image_access(op: IntrinsicOp) -> bool {
    matches!(accessed(op), Some((Class::Image, _)))
}

impl Emitter<'_> {
    /// The set and the binding of a descriptor.
    fn place(&mut self, resource: &Resource) -> Result<(u32, u32), NoForm> {
        let Resource { class, set, number, .. } = *resource;
        let at = if number < NEAR {
            number
        } else {
            let known = self.far.iter().filter(|(of, ..)| *of == (class, set));
            let count = known.clone().count() as u32;
            match known.clone().find(|(_, far)| *far == number) {
                Some(_) => NEAR + known.clone().position(|(_, far)| *far == number).unwrap_or(0) as u32,
                None if NEAR + count + 1 < OF_CLASS => {
                    self.far.push(((class, set), number));
                    NEAR + count
                }
                None => return no_form("a descriptor of a high number, after so many others"),
            }
        };
        let (set, first) = match set {
            None => (0, 0),
            Some(set) => (1 + set % BINDLESS_SETS, OF_SET * (set / BINDLESS_SETS)),
        };
        Ok((set, first + class.binding() + at))
    }

    /// A pointer to a descriptor, whose type is given.
    pub fn descriptor(&mut self, resource: &Resource, ty: Word, class: StorageClass) -> Result<Word, NoForm> {
        let is_array = self.arrays.contains(&(resource.class, resource.set));
        if resource.plus.is_some() && resource.number >= IN_ARRAY {
            return no_form("an array of descriptors of high numbers");
        }
        if !is_array || resource.number >= IN_ARRAY {
            let (set, binding) = self.place(resource)?;
            self.describe(resource, resource.number, (set, binding, 0))?;
            return Ok(self.bound(Variable::Bound(set, binding, ty), ty, class));
        }
        let (set, binding) = self.place(&Resource { number: 0, ..*resource })?;
        (0..IN_ARRAY).try_for_each(|number| self.describe(resource, number, (set, binding, number)))?;
        let length = self.number(IN_ARRAY);
        let all = self.b.type_array(ty, length);
        let variable = self.bound(Variable::Bound(set, binding, all), all, class);
        let index = match resource.plus {
            None => self.number(resource.number),
            Some(plus) => {
                let plus = self.component(plus, 0, Kind::Uint);
                match resource.number {
                    0 => plus,
                    number => {
                        let number = self.number(number);
                        let word = self.type_id(super::Ty::U32);
                        self.emit(spirv::Op::IAdd, word, refs(&[plus, number]))
                    }
                }
            }
        };
        let [dynamic, non_uniform] = resource.class.indexing(resource.is_texel_buffer);
        if resource.plus.is_some() {
            self.capability(if resource.is_non_uniform { non_uniform } else { dynamic });
        }
        let pointer = self.b.type_pointer(None, class, ty);
        let element = self.emit(spirv::Op::AccessChain, pointer, refs(&[variable, index]));
        self.non_uniform(resource, element);
        Ok(element)
    }

    /// Records the descriptor of a resource.
    fn describe(&mut self, of: &Resource, number: u32, (set, binding, element): (u32, u32, u32)) -> Result<(), NoForm> {
        let id = ResourceId::new(of.set, number);
        let resource = match (of.class, of.texels) {
            (Class::UniformBuffer, _) => Described::Uniform(id),
            (Class::StorageBuffer, _) => Described::Storage(id),
            (Class::Image, Some(shape)) => Described::Image(id, shape),
            (Class::Texture, Some(shape)) => Described::Texture(id, shape),
            (Class::Sampler, _) => Described::Sampler(id),
            (Class::Image | Class::Texture, None) => return Ok(()),
        };
        let place = |it: &&Descriptor| (it.set, it.binding, it.element) == (set, binding, element);
        let known = self.used.iter().find(place);
        if self.modes.compares_bits && known.is_some_and(|known| known.resource != resource) {
            return no_form("a descriptor of images of two shapes or formats");
        }
        self.used.insert(Descriptor { resource, set, binding, element });
        Ok(())
    }

    /// Marks a pointer or a loaded handle as one that may differ between lanes, if its descriptor may.
    pub fn non_uniform(&mut self, resource: &Resource, id: Word) {
        if resource.plus.is_some() && resource.is_non_uniform {
            self.capability(Capability::ShaderNonUniform);
            self.b.decorate(id, Decoration::NonUniform, []);
        }
    }

    /// A variable with a set and a binding.
    pub fn bound(&mut self, key: Variable, ty: Word, class: StorageClass) -> Word {
        if let Some(&id) = self.variables.get(&key) {
            return id;
        }
        let id = self.global(ty, class);
        if let Variable::Bound(set, binding, _) = key {
            self.decorate(id, Decoration::DescriptorSet, &[set]);
            self.decorate(id, Decoration::Binding, &[binding]);
        }
        self.variables.insert(key, id);
        id
    }

    /// Marks the variables of one binding as aliases: a buffer has elements of several widths, an image several
    /// formats.
    pub fn mark_aliases(&mut self) {
        let mut places: Vec<(u32, u32, Word)> = Vec::new();
        for (key, &id) in &self.variables {
            if let Variable::Bound(set, binding, _) = *key {
                places.push((set, binding, id));
            }
        }
        places.sort_unstable();
        for group in places.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|group| group.len() > 1) {
            for &(.., id) in group {
                self.b.decorate(id, Decoration::Aliased, std::iter::empty::<Operand>());
            }
        }
    }
}
