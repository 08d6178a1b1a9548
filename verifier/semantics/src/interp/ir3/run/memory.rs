//! Memory and textures.

use super::{RunResult, RunningWave, converted};
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::domain::Domain;
use crate::arithmetic::rows::{LANES, Row, splat};
use crate::environment::Binding;
use crate::environment::env::{CONST_WORDS, lanes};
use crate::environment::memory::{AccessPart, Space, TexelView, image_cell, size_property};
use crate::environment::texture::{Quads, TextureAnswer};
use crate::interp::ir3::op::{AccessAddress, ByteOffset, Memory, NumberOperand, ResourceOperand, atomic};
use crate::interp::ir3::storage::{Active, Read};
use crate::interp::{UndefinedReason, groups, naming_another};
use crate::machine::rules::FIRST_OF_QUADS;
use crate::operations::byte_offset;
use crate::support::random::hash;
use ir3_compiler::ir3::access::{AtomicOp, MemoryAction, Slot, TextureRequest, linear_address};
use ir3_compiler::ir3::{AddressSpace, Instr, Type};
use smallvec::SmallVec;

/// The resource of each lane.
type Resources = [Binding; LANES];

/// The address of an access in each lane.
struct LaneAddresses {
    /// The address in bytes: low and high words of the base address, index, and offset.
    base: [Row; 2],
    index: Row,
    scale: u8,
    offset: i32,
    /// True for an image: the byte address of the texel's first word.
    texel: bool,
}

impl LaneAddresses {
    fn address(&self, space: AddressSpace, lane: usize, component: u32, size: u8) -> u64 {
        if self.texel {
            return u64::from(self.index[lane]) * 16 + u64::from(component) * 4;
        }
        let base = u64::from(self.base[0][lane]) | u64::from(self.base[1][lane]) << 32;
        linear_address(space, base, self.index[lane], self.scale, self.offset, component, size)
    }
}

impl RunningWave<'_> {
    /// Executes a memory access.
    pub(super) fn access(&mut self, number: u32) -> RunResult {
        let access = &self.program.memory[number as usize];
        self.state.memory.begin_access(access.instr.as_u32(), access.volatile);
        let mut resources = [Binding::NONE; LANES];
        let mut poison = match &access.resource {
            Some(resource) => self.resource(resource, &mut resources),
            None => 0,
        };
        if let Some(resource) = &access.resource {
            self.one_descriptor(resource, &resources, self.active.mask & !poison, access.instr)?;
        }
        if matches!(access.action, MemoryAction::Size | MemoryAction::SplitSize) {
            self.size(access, &resources, poison);
            return Ok(());
        }
        let view = access.view();
        let (mut target, undefined) = self.target(&access.place, view);
        poison |= undefined;
        match &access.bytes {
            Some(bytes) if bytes.is_described => poison |= self.names_another(access, bytes, &target),
            Some(bytes) if self.program.facts.printed_shapes => poison |= self.displace(bytes, &mut target),
            _ => {}
        }
        if let Some(padding) = &access.padding {
            let mut row = [0; LANES];
            poison |= self.storage.fetch(padding, &mut row);
            poison |= lanes(self.active.mask).filter(|&lane| row[lane] != 0).fold(0, |others, lane| others | 1 << lane);
        }
        let writes = !matches!(access.action, MemoryAction::Load);
        let copies = access.action == MemoryAction::CopyToConsts;
        let mut mask = self.active.mask;
        if writes && !copies && !matches!(access.space, AddressSpace::Scratch | AddressSpace::Const) {
            // Stores of helper lanes to memory that others see have no effect.
            mask &= !self.state.helpers;
        }
        if writes && poison & mask != 0 {
            return Err(self.undefined(UndefinedReason::Address, access.instr, poison & mask));
        }
        if writes {
            let place = |lane: usize| [target.address(access.space, lane, 0, 4), resources[lane].bits()];
            self.state.decide(lanes(mask).flat_map(place));
        }
        match access.action {
            MemoryAction::Load => self.load(access, &target, &resources, poison),
            MemoryAction::Store if access.space == AddressSpace::Const => self.store_const(access, &target, mask),
            MemoryAction::Store => self.store(access, &target, &resources, mask)?,
            MemoryAction::CopyToConsts => self.copy_to_consts(access, &target, &resources, mask)?,
            MemoryAction::Atomic(op) => self.atomic(access, op, &target, &resources, mask),
            MemoryAction::Size | MemoryAction::SplitSize | MemoryAction::Prefetch => {}
        }
        Ok(())
    }

    /// Computes the resource of each lane; returns the lanes where it is poison.
    fn resource(&mut self, resource: &ResourceOperand, out: &mut Resources) -> u64 {
        let (mut set, mut index) = ([0; LANES], [0; LANES]);
        let mut poison = self.number(&resource.index, &mut index);
        if let Some(number) = &resource.set {
            poison |= self.number(number, &mut set);
        }
        for (lane, out) in out.iter_mut().enumerate() {
            *out = Binding::new(resource.set.as_ref().map(|_| set[lane]), index[lane]);
        }
        poison
    }

    /// Fails where a descriptor has to be the same in all of some lanes, and is not.
    fn one_descriptor(&self, resource: &ResourceOperand, of: &Resources, asks: u64, instr: Instr) -> RunResult {
        if !resource.shared {
            return Ok(());
        }
        let others = naming_another(|lane| of[lane], asks);
        if others == 0 { Ok(()) } else { Err(self.undefined(UndefinedReason::Descriptor, instr, others)) }
    }

    fn number(&mut self, number: &NumberOperand, out: &mut Row) -> u64 {
        match number {
            NumberOperand::Fixed(value) => {
                *out = splat(*value);
                0
            }
            NumberOperand::Field { read, shift, mask } => {
                let poison = self.storage.fetch(read, out);
                out.iter_mut().for_each(|word| *word = *word >> shift & mask);
                poison
            }
        }
    }

    fn target(&mut self, place: &AccessAddress, view: TexelView) -> (LaneAddresses, u64) {
        let mut target = LaneAddresses { base: [[0; LANES]; 2], index: [0; LANES], scale: 1, offset: 0, texel: false };
        let mut poison = 0;
        match place {
            AccessAddress::None => {}
            AccessAddress::Linear { base, indices, scale, offset } => {
                (target.scale, target.offset) = (*scale, *offset);
                for (row, read) in target.base.iter_mut().zip(base.iter().flatten()) {
                    poison |= self.storage.fetch(read, row);
                }
                for (i, read) in indices.iter().enumerate() {
                    let Some(read) = read else { continue };
                    let mut row = [0; LANES];
                    poison |= self.storage.fetch(read, &mut row);
                    if i == 0 {
                        target.index = row;
                    } else {
                        for (sum, word) in target.index.iter_mut().zip(&row) {
                            *sum = sum.wrapping_add(*word);
                        }
                    }
                }
            }
            AccessAddress::Texel(reads) => {
                target.texel = true;
                let both_print = self.program.facts.printed_shapes;
                let mut rows = [[0; LANES]; 4];
                let count = reads.len().min(rows.len());
                for (row, read) in rows.iter_mut().zip(reads) {
                    poison |= self.storage.fetch(read, row);
                }
                for lane in lanes(self.active.mask) {
                    let coordinates = [rows[0][lane], rows[1][lane], rows[2][lane], rows[3][lane]];
                    target.index[lane] = view.cell(both_print, image_cell(&coordinates[..count]));
                }
            }
        }
        (target, poison)
    }

    /// Makes a byte offset that nothing describes part of the address, and returns the lanes in which it is undefined.
    /// One program has one distance between the two for all accesses to a buffer, and one byte offset for all accesses
    /// to a texel.
    fn displace(&mut self, bytes: &ByteOffset, target: &mut LaneAddresses) -> u64 {
        const MOST: u64 = 61;
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        let mut poison = self.storage.fetch(&bytes.low, &mut low);
        if let Some(read) = &bytes.high {
            poison |= self.storage.fetch(read, &mut high);
        }
        for lane in lanes(self.active.mask & !poison) {
            let index = &mut target.index[lane];
            if target.texel {
                let offset = if bytes.in_words { low[lane] << 2 } else { low[lane] };
                *index = image_cell(&[*index, offset, high[lane]]);
                continue;
            }
            let distance = low[lane].wrapping_sub(*index << target.scale.trailing_zeros()) >> 2;
            if (distance, high[lane]) != (0, 0) {
                *index = index.wrapping_add((hash(&[distance.into(), high[lane].into()]) % MOST) as u32);
            }
        }
        poison
    }

    /// The lanes whose byte offset is not that of their element or texel.
    fn names_another(&mut self, access: &Memory, bytes: &ByteOffset, target: &LaneAddresses) -> u64 {
        let mut poison = 0;
        let mut fetch = |read: &Read| {
            let mut row = [0; LANES];
            poison |= self.storage.fetch(read, &mut row);
            row
        };
        let low = fetch(&bytes.low);
        let high = bytes.high.as_ref().map(&mut fetch);
        let start = bytes.start.as_ref().map(&mut fetch);
        let strides: SmallVec<[Row; 3]> = bytes.strides.iter().map(&mut fetch).collect();
        let coordinates: SmallVec<[Row; 3]> = match &access.place {
            AccessAddress::Texel(reads) => reads.iter().map(&mut fetch).collect(),
            _ => SmallVec::new(),
        };
        for lane in lanes(self.active.mask & !poison) {
            let word = |row: &Row| u64::from(row[lane]);
            let list = |rows: &[Row]| rows.iter().map(word).collect::<SmallVec<[u64; 3]>>();
            let bytes_of_lane = Concrete.sub(32, word(&low), start.as_ref().map_or(0, word));
            let is_same = if bytes.strides.is_empty() {
                byte_offset::is_of_element(&mut Concrete, bytes_of_lane, word(&target.index), target.scale) != 0
            } else {
                bytes_of_lane
                    == byte_offset::of_texel(&mut Concrete, &list(&coordinates), &list(&strides), bytes.in_words)
            };
            if !is_same || high.as_ref().is_some_and(|high| high[lane] != 0) {
                poison |= 1 << lane;
            }
        }
        poison
    }

    fn load(&mut self, access: &Memory, target: &LaneAddresses, resources: &Resources, poison: u64) {
        let defined = self.active.mask & !poison;
        let bits = access.ty.bits();
        let narrow = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        for &(component, write) in &access.results {
            let mut row = [0; LANES];
            let (mut undefined, mut open) = (poison, [u32::MAX; LANES]);
            for (binding, group) in groups(Some(|lane: usize| resources[lane]), defined) {
                let address = |lane: usize| target.address(access.space, lane, component, bits / 8);
                let Some(space) = Space::of(access.space) else {
                    self.load_uniform(binding, group, address, &mut row);
                    continue;
                };
                let width = if space == Space::Image { 32 } else { bits };
                let memory = &mut self.state.memory;
                for AccessPart { array, lanes, window } in memory.parts(space, binding, group, address) {
                    let address = |lane| address(lane) & window;
                    memory.note_load(array, lanes, width, access.volatile);
                    undefined |= memory.load(self.env, array, width, lanes, address, &mut row, &mut open);
                }
            }
            row.iter_mut().for_each(|word| *word &= narrow);
            open.iter_mut().for_each(|word| *word &= narrow);
            self.storage.write_partly(write, &row, undefined, &open, &self.active);
        }
    }

    /// Reads words of a uniform buffer, not yet narrowed but shifted: the lowest bits are the element.
    fn load_uniform(&mut self, binding: Binding, group: u64, address: impl Fn(usize) -> u64, row: &mut Row) {
        let mut last = None;
        for lane in lanes(group) {
            let address = address(lane);
            let word = match last {
                Some((at, word)) if at == address >> 2 => word,
                _ => self.env.ubo_word(binding, (address >> 2) as u32),
            };
            last = Some((address >> 2, word));
            row[lane] = word >> (8 * (address & 3));
        }
    }

    fn store(&mut self, access: &Memory, target: &LaneAddresses, resources: &Resources, mask: u64) -> RunResult {
        let Some(space) = Space::of(access.space) else { return Ok(()) };
        let bits = access.ty.bits();
        let width = if space == Space::Image { 32 } else { bits };
        for (component, read) in access.data.iter().enumerate() {
            let (mut row, mut open) = ([0; LANES], [0; LANES]);
            let poison = self.storage.fetch_partly(read, &mut row, mask, &mut open);
            for (binding, group) in groups(Some(|lane: usize| resources[lane]), mask) {
                let address = |lane: usize| target.address(access.space, lane, component as u32, bits / 8);
                for AccessPart { array, lanes, window } in self.state.memory.parts(space, binding, group, address) {
                    let address = |lane| address(lane) & window;
                    let outside = self.state.memory.outside(array, width, lanes, address);
                    if outside != 0 {
                        return Err(self.undefined(UndefinedReason::Address, access.instr, outside));
                    }
                    self.state.memory.store(self.env, array, width, lanes, address, &row, poison, &open);
                }
            }
        }
        Ok(())
    }

    /// Stores to the constant file, which belongs to the wave: the words of the lowest lane are stored.
    fn store_const(&mut self, access: &Memory, target: &LaneAddresses, mask: u64) {
        if mask == 0 {
            return;
        }
        let lane = mask.trailing_zeros() as usize;
        for (component, read) in access.data.iter().enumerate() {
            let mut row = [0; LANES];
            let poison = self.storage.fetch(read, &mut row) >> lane & 1 != 0;
            let word = (target.address(access.space, lane, component as u32, 4) >> 2) as u32;
            self.store_const_word(word, row[lane], poison);
        }
    }

    fn store_const_word(&mut self, word: u32, value: u32, poison: bool) {
        let word = word % CONST_WORDS;
        self.consts.write(word, value, poison);
        for &(at, width, slot) in &self.program.consts {
            if u32::from(at) == word {
                self.storage.splat(slot, converted(value, width), poison);
            }
        }
    }

    /// Copies to the constant file; source and destination are those of the lowest lane.
    fn copy_to_consts(
        &mut self,
        access: &Memory,
        target: &LaneAddresses,
        resources: &Resources,
        mask: u64,
    ) -> RunResult {
        if mask == 0 {
            return Ok(());
        }
        let lane = mask.trailing_zeros() as usize;
        let mut first = [0; LANES];
        let undefined = access.data.iter().fold(0, |poison, read| poison | self.storage.fetch(read, &mut first)) & mask;
        if undefined != 0 {
            return Err(self.undefined(UndefinedReason::Address, access.instr, undefined));
        }
        self.state.decide([first[lane].into()]);
        for i in 0..access.copied {
            let address = target.address(access.space, lane, i, 4);
            let value = self.env.ubo_word(resources[lane], (address >> 2) as u32);
            self.store_const_word(first[lane].wrapping_add(i), value, false);
        }
        Ok(())
    }

    fn atomic(&mut self, access: &Memory, op: AtomicOp, target: &LaneAddresses, resources: &Resources, mask: u64) {
        let Some(space) = Space::of(access.space) else { return };
        // A low and a high word each; the high ones are used for 64 bits only.
        let wide = access.ty == Type::U64;
        let [mut data, mut compare, mut result] = [[[0; LANES]; 2]; 3];
        let mut poison = 0;
        for (row, read) in data.iter_mut().zip(&access.data).chain(compare.iter_mut().zip(&access.compare)) {
            poison |= self.storage.fetch(read, row);
        }
        let mut undefined = self.active.mask & !mask;
        for (binding, group) in groups(Some(|lane: usize| resources[lane]), mask) {
            let address = |lane: usize| target.address(access.space, lane, 0, access.ty.bits() / 8);
            let (memory, env) = (&mut self.state.memory, self.env);
            for AccessPart { array, lanes, window } in memory.parts(space, binding, group, address) {
                let address = |lane| address(lane) & window;
                let [low, high] = &mut result;
                undefined |= if wide {
                    let (data, compare) = (data.each_ref(), compare.each_ref());
                    memory.atomic_wide(env, array, atomic(op), lanes, address, data, compare, poison, [low, high])
                } else {
                    memory.atomic(env, array, atomic(op), lanes, address, &data[0], &compare[0], poison, low)
                };
            }
        }
        for (&(_, write), row) in access.results.iter().zip(&result) {
            self.storage.write(write, row, undefined, &self.active);
        }
    }

    fn size(&mut self, access: &Memory, resources: &Resources, poison: u64) {
        for &(component, write) in &access.results {
            let mut row = [0; LANES];
            for (binding, group) in groups(Some(|lane: usize| resources[lane]), self.active.mask) {
                let size = match (access.action, component) {
                    (MemoryAction::SplitSize, 0) => self.env.buffer_size(binding) & 0xffff,
                    (MemoryAction::SplitSize, 1) => self.env.buffer_size(binding) >> 16,
                    _ if access.space != AddressSpace::Image && component == 0 => self.env.buffer_size(binding),
                    _ => self.env.resource_property(binding, size_property(component, access.dimensions.into(), 0), 0),
                };
                lanes(group).for_each(|lane| row[lane] = size);
            }
            self.storage.write(write, &row, poison, &self.active);
        }
    }

    /// Executes a texture operation.
    ///
    /// # Errors
    /// If lanes name different descriptors where all have to name the same.
    pub(super) fn sample(&mut self, number: u32) -> RunResult {
        let access = &self.program.textures[number as usize];
        let (mut textures, mut samplers) = ([Binding::NONE; LANES], [Binding::NONE; LANES]);
        let mut poison = self.resource(&access.texture, &mut textures) | self.resource(&access.sampler, &mut samplers);
        let asks = access.quad_lane.map_or(self.active.mask, |lane| self.active.mask & FIRST_OF_QUADS << lane);
        self.one_descriptor(&access.texture, &textures, asks & !poison, access.instr)?;
        self.one_descriptor(&access.sampler, &samplers, asks & !poison, access.instr)?;
        let mut rows = [[0; LANES]; Slot::COUNT];
        // If a coordinate is undefined in a lane, so are the derivatives of its quad.
        let mut undefined = 0;
        for (row, (slot, read)) in rows.iter_mut().zip(&access.operands) {
            let of_operand = self.storage.fetch(read, row);
            poison |= of_operand;
            undefined |= if slot.has_derivative() { of_operand } else { 0 };
        }
        let mut coordinates = [[0; LANES]; 2];
        if let Some((ij, varying)) = &access.prefetch {
            let (mut i, mut j) = ([0; LANES], [0; LANES]);
            undefined |= self.storage.fetch(&ij[0], &mut i) | self.storage.fetch(&ij[1], &mut j);
            poison |= undefined;
            for (k, row) in coordinates.iter_mut().enumerate() {
                self.env.interpolate(varying + k as u32, &i, &j, false, row);
            }
        }
        let mut quads = None;
        if access.derivatives {
            let operands = rows.iter().zip(&access.operands).filter(|(_, (slot, _))| slot.has_derivative());
            let varyings = coordinates.iter().filter(|_| access.prefetch.is_some());
            // Poison in other operands affects single lanes.
            let wave_quads = Quads::new(operands.map(|(row, _)| row).chain(varyings), self.active.mask & !undefined);
            poison |= !wave_quads.complete();
            quads = Some(wave_quads);
        }
        let mut answers = [[0; LANES]; 4];
        // Lanes without a request keep their register.
        let mut asking = Active::none();
        let active = match access.quad_lane {
            Some(_) => {
                asking.set(asks, !0);
                &asking
            }
            None => &self.active,
        };
        for lane in lanes(active.mask & !poison) {
            let mut request = TextureRequest::new(access.kind, textures[lane], samplers[lane]);
            for (row, &(slot, _)) in rows.iter().zip(&access.operands) {
                request.set(slot, row[lane]);
            }
            if access.prefetch.is_some() {
                request.set(Slot::X, coordinates[0][lane]);
                request.set(Slot::Y, coordinates[1][lane]);
            }
            request.quad = quads.as_ref().map(|quads| quads.of(lane));
            request.shape = self.program.facts.printed_shapes.then_some(access.shape);
            let answer = TextureAnswer::new(self.env, &request);
            for &(component, _) in &access.results {
                let (answered, less) = access.answered(component);
                let bits = answer.component(answered, access.ty);
                answers[component as usize & 3][lane] = bits.wrapping_sub(u32::from(less));
            }
        }
        for &(component, write) in &access.results {
            self.storage.write(write, &answers[component as usize & 3], poison, active);
        }
        Ok(())
    }
}
