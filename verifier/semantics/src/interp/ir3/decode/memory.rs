//! Memory and textures, through the views of [`ir3::access`](ir3_compiler::ir3::access).

use super::{Decoder, Moves, Result};
use crate::environment::env::{CONST_WORDS, PUSH_CONSTANTS};
use crate::interp::ir3::op;
use crate::interp::ir3::op::{AccessAddress, ConstWidth, DecodedOp};
use crate::interp::ir3::storage::{Loc, Read, Write};
use crate::machine::rules::{only_prefetches, quad_lane};
use crate::operations::{One, byte_offset, halves};
use ir3_compiler::ir3::access::{
    Access, Address, AtomicFamily, Binding, MemoryAccess, MemoryAction, Number, PrintedShape, Slice, Slot,
    TextureAccess, TextureKind,
};
use ir3_compiler::ir3::{AddressSpace, Attrs, InstrData, InstrFlags, Opcode, Place, Src, SrcOperand, Type};
use ir3_compiler::target::Generation;
use smallvec::SmallVec;

impl Decoder<'_> {
    /// An instruction of category 6.
    pub(super) fn memory(&mut self, data: &InstrData) -> Result {
        match data.opcode {
            Opcode::Shfl => return self.shuffle(data),
            Opcode::Prefetch => return Ok(()),
            _ => {}
        }
        self.access(data)
    }

    /// An instruction of category 5.
    pub(super) fn texture(&mut self, data: &InstrData) -> Result {
        // Without a result it prefetches descriptors, for any coordinates. Final code has `r63.x` there.
        if only_prefetches(data) {
            return Ok(());
        }
        self.access(data)
    }

    /// Push constants to the constant file: as a macro, and as the instruction that it becomes, with the first word and
    /// the first push constant as immediates. They are a buffer of their own, which nothing else reads.
    pub(super) fn copy_push_constants(&mut self, data: &InstrData) -> Result {
        let (to, from, words) = match (&data.attrs, &data.srcs[..]) {
            (&Attrs::PushConsts { dst, src, size }, _) => (dst, src, size),
            (
                Attrs::Memory(memory),
                [Src { operand: SrcOperand::Immediate(to), .. }, Src { operand: SrcOperand::Immediate(from), .. }],
            ) => {
                let words = memory.components.ok_or("how much it copies is not known")?;
                (to.wrapping_add_signed(memory.offset), *from, words.into())
            }
            _ => return Err("which words it copies is not known".to_owned()),
        };
        if words > CONST_WORDS {
            return Err(format!("{words} words are more than the constant file has"));
        }
        let offset = i32::try_from(from).map_err(|_| "a push constant out of range")?;
        let to = Read::plain(self.slots.loc(&Src::immediate(to, false), 0, ConstWidth::Full)?);
        let number = self.out.memory.len() as u32;
        self.site(data);
        self.out.memory_names.insert(self.instr.as_u32(), data.opcode.name());
        self.out.memory.push(op::Memory {
            action: MemoryAction::CopyToConsts,
            cached: false,
            is_of_texture: false,
            volatile: false,
            space: AddressSpace::Ubo,
            resource: Some(op::ResourceOperand {
                set: None,
                index: op::NumberOperand::Fixed(PUSH_CONSTANTS),
                shared: false,
            }),
            place: AccessAddress::Linear { base: None, indices: [None; 2], scale: 16, offset },
            bytes: None,
            padding: None,
            ty: Type::U32,
            data: vec![to],
            copied: words,
            shape: PrintedShape::default(),
            dimensions: 0,
            compare: Vec::new(),
            results: Vec::new(),
            instr: self.instr,
        });
        self.push(DecodedOp::Memory(number));
        Ok(())
    }

    fn access(&mut self, data: &InstrData) -> Result {
        match Access::of(data).map_err(|unknown| unknown.to_string())? {
            Some(Access::Memory(access)) => self.memory_access(data, &access),
            Some(Access::Texture(access)) => self.texture_access(data, &access),
            None => Err("not executed by this interpreter".to_owned()),
        }
    }

    fn slice(&mut self, data: &InstrData, slice: Slice) -> Result<Read> {
        let (src, component) = data.component_source(slice.src.into(), slice.first.into());
        self.source(data, src, component)
    }

    fn slices(&mut self, data: &InstrData, slice: Slice) -> Result<Vec<Read>> {
        (0..slice.count).map(|i| self.slice(data, slice.component(i))).collect()
    }

    fn number(&mut self, data: &InstrData, number: Number) -> Result<op::NumberOperand> {
        Ok(match number {
            Number::Fixed(value) => op::NumberOperand::Fixed(value),
            Number::Source { source, shift, mask } => {
                op::NumberOperand::Field { read: self.slice(data, source)?, shift, mask }
            }
        })
    }

    /// The resource of an access; unless it may be shared, lanes may name different ones, independent of the flags.
    fn resource(&mut self, data: &InstrData, binding: Binding, may_be_shared: bool) -> Result<op::ResourceOperand> {
        let set = match binding.set {
            Some(set) => Some(self.number(data, set)?),
            None => None,
        };
        let index = self.number(data, binding.index)?;
        let is_read = matches!(index, op::NumberOperand::Field { .. });
        // Before a6xx no access encodes whether its descriptor is the same in all lanes.
        let has_mark = self.target.generation >= Generation::A6xx;
        let shared = may_be_shared && has_mark && is_read && !data.flags.contains(InstrFlags::NONUNIFORM);
        Ok(op::ResourceOperand { set, index, shared })
    }

    fn memory_access(&mut self, data: &InstrData, access: &MemoryAccess) -> Result {
        if access.action == MemoryAction::Prefetch {
            return Ok(());
        }
        if access.ty == Type::U64 && !matches!(access.action, MemoryAction::Atomic(_)) {
            return Err("64-bit elements".to_owned());
        }
        let resource = match access.binding {
            // In a copy to the constant file, the lowest lane names the buffer.
            Some(binding) => Some(self.resource(data, binding, access.action != MemoryAction::CopyToConsts)?),
            None => None,
        };
        let place = match &access.address {
            Address::None => AccessAddress::None,
            Address::Linear { base, index, index2, scale, offset } => {
                let base = match base {
                    Some(base) => Some([self.slice(data, base.component(0))?, self.slice(data, base.component(1))?]),
                    None => None,
                };
                let mut indices = [None; 2];
                for (read, slice) in indices.iter_mut().zip([index, index2]) {
                    if let Some(slice) = slice {
                        *read = Some(self.slice(data, *slice)?);
                    }
                }
                AccessAddress::Linear { base, indices, scale: *scale, offset: *offset }
            }
            Address::Texel(coordinates) => {
                AccessAddress::Texel(coordinates.iter().map(|&slice| self.slice(data, slice)).collect::<Result<_>>()?)
            }
        };
        let bytes = self.byte_offset(data, access)?;
        let padding = match access.padding {
            Some(slice) => Some(self.slice(data, slice)?),
            None => None,
        };
        let mut stored = match access.data {
            Some(slice) => self.slices(data, slice)?,
            None => Vec::new(),
        };
        // The unit has texels of words: see `halves`.
        let has_words = access.space == AddressSpace::Image && access.ty.is_half();
        let ty = match access.ty {
            Type::F16 if has_words => Type::F32,
            Type::S16 if has_words && access.action == MemoryAction::Store => Type::S32,
            ty => ty,
        };
        if ty != access.ty && access.action == MemoryAction::Store {
            let kernel = halves::widening(ty.is_float()).ok_or("no conversion of halves")?;
            stored = stored.into_iter().map(|read| self.converted(kernel, read)).collect();
        }
        let compare = match access.compare {
            Some(slice) => self.slices(data, slice)?,
            None => Vec::new(),
        };
        let mut results = if data.dsts.is_empty() { Vec::new() } else { self.results(data)? };
        // The machine uses the number in the instruction: it would read or write registers that no operand names.
        let sound = match access.action {
            MemoryAction::Load => results.len() == usize::from(access.components),
            MemoryAction::Store => stored.len() == usize::from(access.components),
            _ => true,
        };
        if !sound {
            return Err(format!("{} elements in other than as many registers", access.components));
        }
        let copied = if access.action == MemoryAction::CopyToConsts { u32::from(access.components) * 4 } else { 0 };
        if copied > CONST_WORDS {
            return Err(format!("{} vec4s are more than the constant file has", access.components));
        }
        let mut kept = Moves::new();
        if let MemoryAction::Atomic(_) = access.action
            && let Some(stored) = access.data
        {
            // The old value replaces the first components of the tied vector; the others stay.
            for (k, write) in results.split_off(results.len().min(if access.ty == Type::U64 { 2 } else { 1 })) {
                kept.push((self.source(data, usize::from(stored.src), k)?, write));
            }
            if matches!(AtomicFamily::of(data.opcode), Some((AtomicFamily::Resource, _))) {
                self.tied(data, usize::from(stored.src))?;
            }
        }
        let mut rounded = Vec::new();
        if ty != access.ty && access.action == MemoryAction::Load {
            for (_, write) in &mut results {
                let loc = self.scratch_slot();
                rounded.push((Read::plain(loc), std::mem::replace(write, Write { loc, shared: false })));
            }
        }
        let number = self.out.memory.len() as u32;
        self.out.memory_names.insert(self.instr.as_u32(), data.opcode.name());
        self.out.memory.push(op::Memory {
            action: access.action,
            cached: data.opcode == Opcode::Isam,
            is_of_texture: data.opcode == Opcode::Isam
                && access.space == AddressSpace::Image
                && self.target.generation < Generation::A6xx,
            volatile: data.memory().is_some_and(|memory| memory.volatile),
            space: access.space,
            resource,
            place,
            bytes: bytes.map(Box::new),
            padding,
            ty,
            data: stored,
            copied,
            shape: access.shape,
            dimensions: access.dimensions,
            compare,
            results,
            instr: self.instr,
        });
        self.push(DecodedOp::Memory(number));
        for (src, dst) in rounded {
            let kernel = halves::rounding().ok_or("no conversion to halves")?;
            self.push(DecodedOp::Alu1 { kernel, src, dst });
        }
        // With registers, source and destination are the same: no copy is needed.
        kept.retain(|(read, write)| read.loc != write.loc);
        self.copies_op(kept)
    }

    /// The byte offset of an access, in addition to its address. It is not described if the text does not print the
    /// words of the constant file for the buffer or image, as Mesa's do not.
    fn byte_offset(&mut self, data: &InstrData, access: &MemoryAccess) -> Result<Option<op::ByteOffset>> {
        let Some(slice) = access.bytes.filter(|_| byte_offset::is_read(self.target)) else { return Ok(None) };
        let is_image = access.space == AddressSpace::Image;
        let has_start = self.target.generation == Generation::A4xx;
        let (mut start, mut strides) = (None, SmallVec::new());
        let is_described = !is_image && !has_start || self.program.consts.resources.is_some();
        if let Some(resources) = self.program.consts.resources.filter(|_| is_image || has_start) {
            let Some(Binding { set: None, index: Number::Fixed(number) }) = access.binding else {
                return Err("the number of its buffer or image is not known".to_owned());
            };
            let first = if is_image { resources.image(number) } else { resources.buffer(number) };
            let mut word = |n: u32| self.const_word(first.saturating_add(n));
            if has_start {
                start = Some(word(0)?);
            }
            if is_image {
                let order = if has_start { [3, 1, 2] } else { [0, 1, 2] };
                strides = order.into_iter().map(word).collect::<Result<_>>()?;
            }
        }
        let low = self.slice(data, slice.component(0))?;
        let high = if has_start || slice.count < 2 { None } else { Some(self.slice(data, slice.component(1))?) };
        let in_words = is_image && !has_start && matches!(access.action, MemoryAction::Atomic(_));
        Ok(Some(op::ByteOffset { low, high, start, strides, in_words, is_described }))
    }

    /// A word that describes a buffer or an image; nothing else may be in it.
    fn const_word(&mut self, word: u32) -> Result<Read> {
        let word = u16::try_from(word).map_err(|_| format!("word {word} of the constant file"))?;
        if self.program.consts.is_placed(word) {
            return Err(format!(
                "word {word} of the constant file describes its buffer or image, and holds something else"
            ));
        }
        let loc = self.slots.loc(&Src::constant(word, false), 0, ConstWidth::Full)?;
        Ok(Read::plain(loc))
    }

    /// Checks that the result of an atomic whose word has one register for it and for its data is in that register,
    /// `data` being the number of the source.
    fn tied(&mut self, data: &InstrData, source: usize) -> Result {
        let dst = data.dsts.first().and_then(|dst| dst.place.reg());
        match (dst, self.src(data, source)?.place().and_then(Place::reg)) {
            (Some(dst), Some(src)) if dst != src => Err("tied operands in different registers".to_owned()),
            _ => Ok(()),
        }
    }

    fn texture_access(&mut self, data: &InstrData, access: &TextureAccess) -> Result {
        let mut operands = Vec::new();
        for &(slot, slice) in &access.operands {
            let mut read = self.slice(data, slice)?;
            if data.srcs[data.component_source(slice.src.into(), slice.first.into()).0].class.half {
                let kernel = halves::widening(halves::is_float(access.kind, slot)).ok_or("no conversion of halves")?;
                read = self.converted(kernel, read);
            }
            operands.push((slot, read));
        }
        // `isam` has no level: it is 0.
        if access.kind == TextureKind::Fetch && !operands.iter().any(|&(slot, _)| slot == Slot::Lod) {
            let zero = self.slots.loc(&Src::immediate(0, false), 0, ConstWidth::Full)?;
            operands.push((Slot::Lod, Read::plain(zero)));
        }
        if quad_lane(data.opcode).is_some() && !data.dsts.iter().all(|dst| dst.place.reg().is_some()) {
            return Err("it writes one lane of each quad, and its destination is no register".to_owned());
        }
        let prefetch = match access.prefetch {
            Some(prefetch) => {
                let [i, j] = [0, 1].map(|k| prefetch.barycentric.component(k));
                Some(([self.slice(data, i)?, self.slice(data, j)?], u32::from(prefetch.varying)))
            }
            None => None,
        };
        let unused = op::ResourceOperand { set: None, index: op::NumberOperand::Fixed(0), shared: false };
        let texture = op::Texture {
            kind: access.kind,
            texture: self.resource(data, access.texture, true)?,
            sampler: if access.kind.has_sampler() { self.resource(data, access.sampler, true)? } else { unused },
            operands,
            prefetch,
            derivatives: access.kind.has_implicit_derivatives() && self.out.launch.fragment,
            shape: access.shape,
            ty: access.ty,
            quad_lane: quad_lane(data.opcode),
            levels_add_one: self.target.levels_add_one,
            results: self.results(data)?,
            instr: self.instr,
        };
        let number = self.out.textures.len() as u32;
        self.out.textures.push(texture);
        self.push(DecodedOp::Texture(number));
        Ok(())
    }

    /// The result of a conversion.
    fn converted(&mut self, kernel: &'static One, src: Read) -> Read {
        let loc = self.scratch_slot();
        self.push(DecodedOp::Alu1 { kernel, src, dst: Write { loc, shared: false } });
        Read::plain(loc)
    }

    /// `shfl`: value, lane distance.
    fn shuffle(&mut self, data: &InstrData) -> Result {
        let Attrs::Shuffle { mode, .. } = data.attrs else { return Err("which lane it reads is not known".to_owned()) };
        let index = self.source(data, 1, 0)?;
        for (k, dst) in self.results(data)? {
            let src = self.operand(data, 0, k)?;
            self.push(DecodedOp::Shuffle { mode, index, src, dst });
        }
        Ok(())
    }

    /// A new slot for a value between two operations.
    pub(super) fn scratch_slot(&mut self) -> Loc {
        Loc::whole(self.slots.fresh(1))
    }
}
