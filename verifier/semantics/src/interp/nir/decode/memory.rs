//! Memory. Addresses are those of `ir3::access::linear_address`.

use ir3_compiler::ir3::AddressSpace;
use ir3_compiler::ir3::access::{ResourceId, ssbo_offset_unit};
use ir3_compiler::nir::{Access as Flags, BaseType, Def, ImageDim, IndexKind, InstrData, Intrinsic, IntrinsicOp};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::intrinsics::result;
use super::{DecodeResult, Decoder, ValueRows};
use crate::environment::aliases::{MemoryName, may_be_one};
use crate::environment::env::{CONST_WORDS, PUSH_CONSTANTS};
use crate::environment::memory::{Space, TexelView};
use crate::interp::nir::op::{AccessAddress, Action, DecodedOp, MemoryAccess, R, ResourceOperand};
use crate::operations::halves;

/// The flags by which an access relies on no alias writing its buffer: it is `restrict`, or it may be reordered with
/// any other access.
const NO_ALIAS: Flags = Flags::RESTRICT.union(Flags::REORDERABLE);

/// Returns true if an access may rely on no alias writing its buffer.
pub(crate) fn promises(intrinsic: &Intrinsic) -> bool {
    promised(intrinsic).intersects(NO_ALIAS)
}

/// The promises of an access: that no alias writes its buffer, or that its address is valid at every execution, also in
/// helper lanes.
fn promised(intrinsic: &Intrinsic) -> Flags {
    let flags = intrinsic.indices.get(IndexKind::Access).map_or(Flags::empty(), |_| intrinsic.indices.access());
    flags & (Flags::RESTRICT | Flags::REORDERABLE | Flags::SPECULATABLE | Flags::INCLUDE_HELPERS)
}

/// Returns true if an access may be neither dropped nor merged with another one: a volatile one, and a coherent one
/// that does not say that it may be moved over any other.
fn is_volatile(intrinsic: &Intrinsic) -> bool {
    let access = intrinsic.indices.get(IndexKind::Access).map(|_| intrinsic.indices.access());
    access.is_some_and(|access| {
        access.contains(Flags::VOLATILE) || access.contains(Flags::COHERENT) && !access.contains(Flags::REORDERABLE)
    })
}

/// The view of an access on the texels of an image. Atomics have no type.
fn view(intrinsic: &Intrinsic) -> TexelView {
    let indices = &intrinsic.indices;
    if indices.get(IndexKind::ImageDim).is_none() {
        return TexelView::default();
    }
    TexelView::of_nir(type_of_texel(intrinsic), indices)
}

/// The type of the data of an access to an image, if it is declared.
fn type_of_texel(intrinsic: &Intrinsic) -> Option<BaseType> {
    let indices = &intrinsic.indices;
    match (indices.get(IndexKind::DestType), indices.get(IndexKind::SrcType)) {
        (Some(_), _) => Some(indices.dest_type().base),
        (None, Some(_)) => Some(indices.src_type().base),
        (None, None) => None,
    }
}

impl Decoder<'_> {
    /// The handle of a descriptor: its index. The instruction that uses it takes the set from this one.
    pub(super) fn handle(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let index = self.scalar(intrinsic.srcs[0])?;
        self.define_as(intrinsic, index)
    }

    /// The buffer or image that a source names: bindless if `bindless_resource_ir3` defines it.
    pub(super) fn resource(&self, handle: Def, nonuniform: bool) -> DecodeResult<ResourceOperand> {
        let row = Some(self.scalar(handle)?);
        let set = match &self.function.instrs[self.function.defs[handle].instr] {
            InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::BindlessResourceIr3 => {
                let set = intrinsic.indices.desc_set();
                if set == ResourceId::SETS {
                    return Err(format!("descriptor set {set}"));
                }
                Some(set)
            }
            InstrData::Alu(_) | InstrData::Phi { .. } if self.may_be_bindless(handle) => {
                return Err("a handle of which the descriptor set is not known".to_owned());
            }
            _ => None,
        };
        Ok(ResourceOperand { set, base: 0, row, bound: false, shared: !nonuniform })
    }

    /// Returns true if a value is computed from the handle of a descriptor.
    fn may_be_bindless(&self, handle: Def) -> bool {
        let function = self.function;
        let (mut seen, mut work) = (FxHashSet::default(), vec![handle]);
        while let Some(def) = work.pop() {
            let data = &function.instrs[function.defs[def].instr];
            match data {
                InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::BindlessResourceIr3 => return true,
                InstrData::Phi { srcs, .. } if seen.insert(def) => work.extend(srcs.iter().map(|&(_, src)| src)),
                InstrData::Alu(alu) if seen.insert(def) => work.extend(alu.srcs.iter().map(|src| src.def)),
                _ => {}
            }
        }
        false
    }

    /// The address of an access. `srcs` are the sources without data.
    fn place(
        &mut self,
        intrinsic: &Intrinsic,
        space: AddressSpace,
        srcs: &[Def],
        bits: u8,
    ) -> DecodeResult<(Option<ResourceOperand>, AccessAddress)> {
        let base = intrinsic.indices.base();
        let shift = intrinsic.indices.offset_shift();
        let nonuniform = is_nonuniform(intrinsic);
        let linear =
            |index, scale, offset| AccessAddress::Linear { base: None, index: Some(index), scale, offset, bytes: None };
        Ok(match (space, srcs) {
            // The offset in elements is used; the one in bytes names the same place, but for the base.
            // The text has the unit of one of them only.
            (AddressSpace::Ssbo, &[_, _, _]) if shift.is_some() && self.rules.reads_bytes => {
                return Err("a byte offset whose unit is not known".to_owned());
            }
            (AddressSpace::Ssbo, &[buffer, bytes, offset]) => {
                let scale = shift.map_or(ssbo_offset_unit(bits), |shift| 1 << shift);
                let index = Some(self.scalar(offset)?);
                let bytes = if self.rules.reads_bytes { Some(self.scalar(bytes)?) } else { None };
                let place = AccessAddress::Linear { base: None, index, scale, offset: base, bytes };
                (Some(self.resource(buffer, nonuniform)?), place)
            }
            (AddressSpace::Ubo, &[buffer, offset]) => {
                // The base is in vec4s, like the offset.
                let (binding, mut index) = (self.resource(buffer, nonuniform)?, self.scalar(offset)?);
                if base != 0 {
                    let dst = self.new_rows(1);
                    self.push(DecodedOp::AddConst { dst, a: index, constant: base as u32 });
                    index = dst;
                }
                (Some(binding), linear(index, 16, intrinsic.indices.component().into()))
            }
            (AddressSpace::Shared | AddressSpace::Scratch, &[address]) => {
                (None, linear(self.scalar(address)?, 1, base))
            }
            (AddressSpace::Global, &[address, ref offset @ ..]) => {
                let rows = self.read(address)?;
                let base_rows = [rows[0], *rows.get(1).ok_or("an address of one word")?];
                let index = match offset {
                    [] => None,
                    [offset, ..] => Some(self.scalar(*offset)?),
                };
                // Offset and base of `*_global_offset` have a unit of their own; the base of other accesses is in
                // bytes.
                let has_unit = intrinsic.op.info().indices.contains(&IndexKind::OffsetShift);
                let scale = if has_unit { 1 << shift.unwrap_or(0) } else { 4 };
                let offset = if has_unit { base.wrapping_mul(i32::from(scale)) } else { base };
                (None, AccessAddress::Linear { base: Some(base_rows), index, scale, offset, bytes: None })
            }
            (AddressSpace::Image, &[image, coordinates, ref rest @ ..]) => {
                let several = matches!(intrinsic.indices.image_dim(), ImageDim::Ms | ImageDim::SubpassMs);
                let sample = rest.first().filter(|_| several).map(|&sample| self.scalar(sample)).transpose()?;
                let count = intrinsic.indices.image_dim().coordinates(intrinsic.indices.image_array());
                let rows = self.read(coordinates)?;
                let texel = rows.iter().take(count.into()).copied().collect();
                (Some(self.resource(image, nonuniform)?), AccessAddress::Texel(texel, sample))
            }
            _ => return Err("unexpected sources".to_owned()),
        })
    }

    fn push_access(&mut self, intrinsic: &Intrinsic, access: MemoryAccess) {
        let is_load = matches!(access.action, Action::Load);
        let cacheable = is_load && !access.volatile && promised(intrinsic).contains(Flags::REORDERABLE);
        let access = MemoryAccess { cacheable, ..access };
        let promised = promised(intrinsic);
        if !promised.is_empty() {
            self.promised.insert(self.code.accesses.len() as u32, promised);
        }
        self.code.accesses.push(access);
        self.push(DecodedOp::Access(self.code.accesses.len() as u32 - 1));
    }

    /// Collects the promises of access flags about buffers and images: by their numbers, or, if these are computed,
    /// about all accesses with computed numbers in their order, so that no promise moves to another one.
    pub(super) fn collect_promises(&mut self) {
        // Neither may be added nor dropped: a result in a helper lane is an operand of derivatives.
        let helpers = self.promised.values().filter(|promised| promised.contains(Flags::INCLUDE_HELPERS)).count();
        self.code.promised.push(format!("helper lanes execute {helpers} accesses"));
        if self.promised.is_empty() {
            return;
        }
        let constants: FxHashMap<R, u32> = self.code.constants.iter().copied().collect();
        let (mut computed, mut unaliased) = (Vec::new(), FxHashMap::default());
        for (at, access) in self.code.accesses.iter().enumerate() {
            let promised = self.promised.get(&(at as u32)).copied().unwrap_or(Flags::empty());
            let number = access.binding.and_then(|binding| match binding.row {
                None => Some(binding.base),
                Some(row) => constants.get(&row).copied(),
            });
            let space = access.space;
            if promised.intersects(NO_ALIAS)
                && let Some(space) = Space::of(space)
            {
                let set = access.binding.and_then(|binding| binding.set);
                let binding = match (access.binding, number) {
                    (None, _) => Some(ResourceId::NONE),
                    (Some(_), number) => number.map(|number| ResourceId::new(set, number)),
                };
                unaliased.entry(MemoryName { space, binding }).or_insert(access.origin);
            }
            match number {
                None => computed.push((space, promised)),
                Some(number) if !promised.is_empty() => {
                    let set = access.binding.and_then(|binding| binding.set);
                    let of_set = set.map_or_else(String::new, |set| format!(" of set {set}"));
                    self.code.promised.push(format!("{promised:?} for {space:?} {number}{of_set}"));
                }
                Some(_) => {}
            }
        }
        if computed.iter().any(|(_, promised)| !promised.is_empty()) {
            self.code.promised.push(format!("accesses with computed numbers are {computed:?}"));
        }
        // It makes no difference if nothing is written.
        let is_written = |name: &MemoryName| {
            self.code.accesses.iter().any(|access| {
                let is_write = matches!(access.action, Action::Store | Action::Atomic { .. });
                is_write && Space::of(access.space).is_some_and(|space| may_be_one(space, name.space))
            })
        };
        self.code.unaliased = unaliased.into_iter().filter(|(name, _)| is_written(name)).collect();
        self.code.unaliased.sort_unstable();
    }

    fn check_bits(&self, space: AddressSpace, def: Def) -> DecodeResult<u8> {
        match (self.bits(def), space) {
            (bits @ (16 | 32), _) => Ok(bits),
            (bits @ (8 | 64), space) if space != AddressSpace::Image => Ok(bits),
            (bits, _) => Err(format!("elements of {bits} bits")),
        }
    }

    pub(super) fn load(&mut self, intrinsic: &Intrinsic, space: AddressSpace) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let bits = self.check_bits(space, def)?;
        self.check_level(intrinsic, space)?;
        let (binding, place) = self.place(intrinsic, space, &intrinsic.srcs, bits)?;
        // The unit has texels of words: see `halves`.
        let is_rounded =
            space == AddressSpace::Image && bits == 16 && type_of_texel(intrinsic) == Some(BaseType::Float);
        let count = self.components(def) * self.width(def);
        let words = if is_rounded { Some(self.new_rows(count)) } else { None };
        let first = self.define(def);
        let rows = (0..count).map(|i| (i, words.unwrap_or(first) + i)).collect();
        let origin = self.origin();
        let volatile = is_volatile(intrinsic);
        self.push_access(
            intrinsic,
            MemoryAccess {
                action: Action::Load,
                space,
                volatile,
                cacheable: false,
                binding,
                place,
                view: view(intrinsic),
                bits: if is_rounded { 32 } else { bits },
                alignment: alignment(intrinsic),
                rows,
                origin,
            },
        );
        if let Some(words) = words {
            let kernel = halves::rounding().ok_or("no conversion to halves")?;
            let keep = self.keeps(def);
            for i in 0..count {
                self.push(DecodedOp::One { kernel, dst: first + i, a: words + i, keep });
            }
        }
        Ok(())
    }

    /// Push constants to the constant file: the source is the first word there, the base the first push constant, the
    /// range a number of words. They are a buffer of their own, which nothing else reads.
    pub(super) fn copy_push_constants(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let (base, words) = (intrinsic.indices.base(), intrinsic.indices.range());
        let fits = |&words: &u32| words <= CONST_WORDS;
        let words =
            Some(words).filter(fits).ok_or_else(|| format!("{words} words, more than the constant file has"))?;
        let first = intrinsic.srcs.first().and_then(|&first| self.function.as_const_scalar(first));
        let first = first.and_then(|first| u32::try_from(first).ok()).ok_or("an offset that is not constant")?;
        let offset = base;
        let binding = Some(ResourceOperand { set: None, base: PUSH_CONSTANTS, row: None, bound: false, shared: false });
        let place = AccessAddress::Linear { base: None, index: None, scale: 16, offset, bytes: None };
        self.push_copy(intrinsic, binding, place, (first, words));
        Ok(())
    }

    /// The offset is in vec4s of the buffer, the base in words of the constant file, and the range in vec4s.
    pub(super) fn copy_to_consts(&mut self, intrinsic: &Intrinsic) -> DecodeResult<()> {
        let (base, range) = (intrinsic.indices.base(), intrinsic.indices.range());
        let words = range.checked_mul(4).filter(|&words| words <= CONST_WORDS);
        let words = words.ok_or_else(|| format!("{range} vec4s, more than the constant file has"))?;
        let first = u32::try_from(base).map_err(|_| "a constant out of range")?;
        let &[buffer, offset] = &intrinsic.srcs[..] else { return Err("unexpected sources".to_owned()) };
        // The lowest lane gives the address.
        let binding = Some(self.resource(buffer, true)?);
        let index = Some(self.scalar(offset)?);
        let place = AccessAddress::Linear { base: None, index, scale: 16, offset: 0, bytes: None };
        self.push_copy(intrinsic, binding, place, (first, words));
        Ok(())
    }

    /// Pushes a copy of words of a uniform buffer to the constant file, from its word `first` on.
    fn push_copy(
        &mut self,
        intrinsic: &Intrinsic,
        binding: Option<ResourceOperand>,
        place: AccessAddress,
        (first, words): (u32, u32),
    ) {
        let origin = self.origin();
        self.push_access(
            intrinsic,
            MemoryAccess {
                action: Action::CopyToConsts { first, words },
                space: AddressSpace::Ubo,
                volatile: false,
                cacheable: false,
                binding,
                place,
                view: TexelView::default(),
                bits: 32,
                alignment: None,
                rows: SmallVec::new(),
                origin,
            },
        );
    }

    pub(super) fn store(&mut self, intrinsic: &Intrinsic, space: AddressSpace) -> DecodeResult<()> {
        // The data of an image store follows coordinates and sample.
        let data = if space == AddressSpace::Image { 3 } else { 0 };
        self.check_level(intrinsic, space)?;
        let value = *intrinsic.srcs.get(data).ok_or("no data")?;
        let bits = self.check_bits(space, value)?;
        let mut srcs: SmallVec<[Def; 4]> = intrinsic.srcs.iter().copied().collect();
        srcs.remove(data);
        let (binding, place) = self.place(intrinsic, space, &srcs, bits)?;
        let mask = match (intrinsic.indices.get(IndexKind::WriteMask), intrinsic.indices.get(IndexKind::Format)) {
            (Some(_), _) => intrinsic.indices.write_mask(),
            // An image has at most as many components as its format.
            (None, Some(_)) => (1 << intrinsic.indices.format().components().unwrap_or(4)) - 1,
            (None, None) => u16::MAX,
        };
        let width = self.width(value);
        let rows = self.read(value)?.iter().enumerate();
        let mut rows: SmallVec<_> =
            rows.map(|(i, &row)| (i as u32, row)).filter(|(i, _)| mask >> (i / width) & 1 != 0).collect();
        // The unit has texels of words: see `halves`.
        let ty =
            type_of_texel(intrinsic).filter(|ty| bits == 16 && space == AddressSpace::Image && *ty != BaseType::Uint);
        if let Some(ty) = ty {
            let kernel = halves::widening(ty == BaseType::Float).ok_or("no conversion of halves")?;
            for (_, row) in &mut rows {
                let dst = self.new_rows(1);
                self.push(DecodedOp::One { kernel, dst, a: *row, keep: false });
                *row = dst;
            }
        }
        let bits = if ty.is_some() { 32 } else { bits };
        let origin = self.origin();
        let volatile = is_volatile(intrinsic);
        self.push_access(
            intrinsic,
            MemoryAccess {
                action: Action::Store,
                space,
                volatile,
                cacheable: false,
                binding,
                place,
                view: view(intrinsic),
                bits,
                alignment: alignment(intrinsic),
                rows,
                origin,
            },
        );
        Ok(())
    }

    /// Sources: those of the place, but an SSBO's offset, which is last; the comparand if there is one; the data.
    pub(super) fn atomic(&mut self, intrinsic: &Intrinsic, space: AddressSpace) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        let bits = self.bits(def);
        if bits != 32 && (bits != 64 || space == AddressSpace::Image) {
            return Err(format!("{bits} bits"));
        }
        let op = Self::atomic_op(intrinsic.indices.atomic_op());
        let srcs = &intrinsic.srcs;
        let first = match space {
            AddressSpace::Ssbo => 2,
            AddressSpace::Image => 3,
            _ => 1,
        };
        let place: SmallVec<[Def; 4]> = match space {
            AddressSpace::Ssbo => [srcs[0], srcs[1], srcs[srcs.len() - 1]].into_iter().collect(),
            _ => srcs[..first].iter().copied().collect(),
        };
        let (binding, place) = self.place(intrinsic, space, &place, bits)?;
        // nir has the comparand first.
        let (compare, data) = if op.compares() { (first, first + 1) } else { (first, first) };
        let (&compare, &data) = srcs.get(compare).zip(srcs.get(data)).ok_or("too few sources")?;
        // Both words of 64 bits; the one word twice otherwise.
        let words = |rows: &ValueRows| [rows[0], rows[rows.len() - 1]];
        let action = Action::Atomic { op, data: words(self.read(data)?), compare: words(self.read(compare)?) };
        let dst = self.define(def);
        let rows = (0..self.width(def)).map(|i| (i, dst + i)).collect();
        let origin = self.origin();
        let volatile = is_volatile(intrinsic);
        let view = view(intrinsic);
        let alignment = alignment(intrinsic);
        self.push_access(
            intrinsic,
            MemoryAccess {
                action,
                space,
                volatile,
                cacheable: false,
                binding,
                place,
                view,
                bits,
                alignment,
                rows,
                origin,
            },
        );
        Ok(())
    }

    /// Refuses a level of an image that is not 0: they have one in ir3. It is the last source of loads, stores and
    /// sizes.
    fn check_level(&self, intrinsic: &Intrinsic, space: AddressSpace) -> DecodeResult<()> {
        match intrinsic.srcs.last() {
            Some(&level) if space == AddressSpace::Image && self.function.as_const_scalar(level) != Some(0) => {
                Err("a level that is not 0".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn size(&mut self, intrinsic: &Intrinsic, space: AddressSpace) -> DecodeResult<()> {
        let def = result(intrinsic)?;
        if self.bits(def) != 32 {
            return Err(format!("{} bits", self.bits(def)));
        }
        self.check_level(intrinsic, space)?;
        if intrinsic.indices.image_dim() == ImageDim::Cube && self.components(def) > 2 {
            return Err("the number of cubes".to_owned());
        }
        let binding = Some(self.resource(intrinsic.srcs[0], is_nonuniform(intrinsic))?);
        let first = self.define(def);
        let rows = (0..self.components(def)).map(|i| (i, first + i)).collect();
        let origin = self.origin();
        self.push_access(
            intrinsic,
            MemoryAccess {
                action: Action::Size,
                space,
                volatile: false,
                cacheable: false,
                binding,
                place: AccessAddress::None,
                view: view(intrinsic),
                bits: 32,
                alignment: None,
                rows,
                origin,
            },
        );
        Ok(())
    }
}

/// The multiple that an address is promised to be, and the offset from it: of the whole address, with the base. A
/// multiple of 0 or 1 says nothing.
fn alignment(intrinsic: &Intrinsic) -> Option<[u32; 2]> {
    intrinsic.indices.get(IndexKind::AlignMul)?;
    let [multiple, offset] = [intrinsic.indices.align_mul(), intrinsic.indices.align_offset()];
    (multiple > 1 && multiple.is_power_of_two()).then_some([multiple, offset])
}

/// Returns true if the lanes of an access may name different descriptors.
fn is_nonuniform(intrinsic: &Intrinsic) -> bool {
    intrinsic.indices.access().contains(Flags::NON_UNIFORM)
}
