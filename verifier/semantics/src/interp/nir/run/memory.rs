//! Memory and textures.

use ir3_compiler::ir3::AddressSpace;
use ir3_compiler::ir3::access::{TextureKind, TextureRequest, linear_address};

use super::{RunResult, RunningWave};
use crate::arithmetic::concrete::Concrete;
use crate::arithmetic::convert;
use crate::arithmetic::float;
use crate::arithmetic::rows::{LANES, Row, splat};
use crate::environment::Binding;
use crate::environment::device::{TEXTURE_SIDE, texel};
use crate::environment::env::lanes;
use crate::environment::memory::{AccessPart, Space, image_cell};
use crate::environment::texture::{Quads, TextureAnswer};
use crate::interp::nir::op::{AccessAddress, Action, BOUND, MemoryAccess, R, ResourceOperand, Texture, TextureOperand};
use crate::interp::{UndefinedReason, groups, naming_another};
use crate::operations::byte_offset;
use crate::support::random::hash;
use smallvec::SmallVec;

/// The address of an access in each lane.
struct LaneAddresses<'a> {
    access: &'a MemoryAccess,
    base: Option<[Row; 2]>,
    index: Option<Row>,
    /// The texel of an image.
    cell: Row,
}

/// The texel of coordinates in an image of a device. Programs for a device have none beyond it.
fn device_cell(coordinates: &[u32; 4], [width, height, depth]: [u32; 3]) -> u32 {
    let [x, y, z] = [(0, width), (1, height), (2, depth)].map(|(at, size): (usize, u32)| coordinates[at] % size.max(1));
    x + width * (y + height * z)
}

impl LaneAddresses<'_> {
    /// The byte address of a word or of a smaller element, by its number in the access.
    fn address(&self, lane: usize, number: u32) -> u64 {
        let AccessAddress::Linear { scale, offset, .. } = self.access.place else {
            return u64::from(self.cell[lane]) * 16 + u64::from(number) * 4;
        };
        let base = match &self.base {
            Some([low, high]) => u64::from(low[lane]) | u64::from(high[lane]) << 32,
            None => 0,
        };
        let index = self.index.as_ref().map_or(0, |row| row[lane]);
        let (component, high) = if self.access.bits == 64 { (number / 2, number % 2) } else { (number, 0) };
        let size = self.access.bits / 8;
        linear_address(self.access.space, base, index, scale, offset, component, size) + u64::from(high) * 4
    }

    /// Bits of an element.
    fn width(&self) -> u8 {
        match self.access.space {
            AddressSpace::Image => 32,
            _ => self.access.bits.min(32),
        }
    }
}

impl RunningWave<'_> {
    pub(super) fn access(&mut self, access: &MemoryAccess) -> RunResult {
        self.state.memory.begin_access(access.origin, access.volatile);
        let mut poison = access.binding.and_then(|binding| binding.row).map_or(0, |row| self.poison[row as usize]);
        let mut cell = [0; LANES];
        let (mut base, mut index) = (None, None);
        match &access.place {
            AccessAddress::None => {}
            AccessAddress::Linear { base: words, index: row, scale, bytes, .. } => {
                for row in words.iter().flatten().chain(row).chain(bytes) {
                    poison |= self.poison[*row as usize];
                }
                if let (Some(bytes), Some(index)) = (bytes, row) {
                    let word = |row: R, lane: usize| u64::from(self.rows[row as usize][lane]);
                    for lane in lanes(self.active) {
                        let (bytes, index) = (word(*bytes, lane), word(*index, lane));
                        let is_same = byte_offset::is_of_element(&mut Concrete, bytes, index, *scale) != 0;
                        poison |= u64::from(!is_same) << lane;
                    }
                }
                base = words.map(|words| words.map(|row| self.rows[row as usize]));
                index = row.map(|row| self.rows[row as usize]);
            }
            AccessAddress::Texel(rows, sample) => {
                let sample = sample.filter(|_| self.facts.both_nir);
                let rows: SmallVec<[R; 4]> = rows.iter().copied().chain(sample).collect();
                poison = rows.iter().fold(poison, |poison, &row| poison | self.poison[row as usize]);
                for lane in lanes(self.active) {
                    let mut coordinates = [0; 4];
                    for (to, &row) in coordinates.iter_mut().zip(&rows) {
                        *to = self.rows[row as usize][lane];
                    }
                    if let Some(device) = &self.env.device {
                        let extent = access.view.image_extent(device.image_width);
                        cell[lane] = device_cell(&coordinates, extent);
                        continue;
                    }
                    let texel = image_cell(&coordinates[..rows.len().min(4)]);
                    cell[lane] = access.view.cell(self.facts.both_nir, texel);
                }
            }
        }
        let target = LaneAddresses { access, base, index, cell };
        // In ir3 an element of 64 bits is two words: their places follow from its alignment.
        if let Some([multiple, offset]) = access.alignment
            && (self.facts.both_nir || access.bits > 32)
        {
            let is_wrong = |lane: &usize| (target.address(*lane, 0) as u32).wrapping_sub(offset) & (multiple - 1) != 0;
            let wrong = lanes(self.active & !poison).filter(is_wrong).fold(0, |mask, lane| mask | 1 << lane);
            if wrong != 0 && self.state.keeps_promises {
                // A load may be executed on more paths than before: its result is undefined, and only a use of that is
                // wrong.
                if !matches!(access.action, Action::Load) {
                    return Err(self.undefined(UndefinedReason::Alignment, access.origin, wrong));
                }
                poison |= wrong;
            }
            let addresses = lanes(wrong).map(|lane| hash(&[lane as u64, target.address(lane, 0)]));
            self.state.broken.extend(addresses);
        }
        if let Some(binding) = access.binding {
            let undefined = binding.row.map_or(0, |row| self.poison[row as usize]);
            self.one_descriptor(binding, self.active & !undefined, access.origin)?;
        }
        let resource = access.binding.map(|binding| {
            let row = binding.row.map_or([0; LANES], |row| self.rows[row as usize]);
            move |lane: usize| Binding::new(binding.set, binding.base.wrapping_add(row[lane]))
        });
        let resource = resource.as_ref();
        // Stores of helper lanes to memory that others see have no effect; those to scratch memory and to the constant
        // file have.
        let copies = matches!(access.action, Action::CopyToConsts { .. });
        let own = copies || access.space == AddressSpace::Scratch;
        let visible = if own { self.active } else { self.active & !self.state.helpers };
        let is_image = access.space == AddressSpace::Image;
        let has_one_component = is_image && self.env.device.is_some() && access.view.has_one_component();
        let writes = matches!(access.action, Action::Store | Action::Atomic { .. } | Action::CopyToConsts { .. });
        if writes {
            let binding = |lane: usize| resource.map_or(Binding::NONE, |resource| resource(lane)).bits();
            self.state.decide(lanes(visible).flat_map(|lane| [target.address(lane, 0), binding(lane)]));
        }
        match access.action {
            _ if writes && poison & visible != 0 => {
                Err(self.undefined(UndefinedReason::Address, access.origin, poison & visible))
            }
            // The constant file belongs to the wave: the lowest lane gives the address.
            Action::CopyToConsts { first, words } => {
                let lane = self.active.trailing_zeros() as usize;
                let binding = resource.map_or(Binding::NONE, |resource| resource(lane));
                for i in 0..words {
                    let value = self.env.ubo_word(binding, (target.address(lane, i) >> 2) as u32);
                    self.consts.write(first.wrapping_add(i), value, false);
                }
                Ok(())
            }
            Action::Load => {
                let defined = self.active & !poison;
                let narrow = if access.bits >= 32 { u32::MAX } else { (1 << access.bits) - 1 };
                for &(number, dst) in &access.rows {
                    if number > 0 && has_one_component {
                        self.write(dst, &splat(u32::from(number == 3)), poison);
                        continue;
                    }
                    let (mut row, mut undefined, mut open) = ([0; LANES], poison, [u32::MAX; LANES]);
                    for (binding, group) in groups(resource, defined) {
                        let address = |lane| target.address(lane, number);
                        match Space::of(access.space) {
                            Some(space) => {
                                let (width, memory) = (target.width(), &mut self.state.memory);
                                for AccessPart { array, lanes, window } in memory.parts(space, binding, group, address)
                                {
                                    memory.note_load(array, lanes, width, access.volatile);
                                    let (env, open) = (self.env, &mut open);
                                    let address = |lane| address(lane) & window;
                                    undefined |= memory.load(env, array, width, lanes, address, &mut row, open);
                                }
                            }
                            None => {
                                for lane in lanes(group) {
                                    let address = address(lane);
                                    let word = self.env.ubo_word(binding, (address >> 2) as u32);
                                    row[lane] = word >> (8 * (address & 3));
                                }
                            }
                        }
                    }
                    row.iter_mut().for_each(|word| *word &= narrow);
                    open.iter_mut().for_each(|word| *word &= narrow);
                    self.write_partly(dst, &row, undefined, &open);
                }
                Ok(())
            }
            Action::Store => {
                let Some(space) = Space::of(access.space) else { return Ok(()) };
                for &(number, src) in &access.rows {
                    if number > 0 && has_one_component {
                        continue;
                    }
                    let (row, poison) = (&self.rows[src as usize], self.poison[src as usize]);
                    let open = if poison & visible == 0 { [0; LANES] } else { self.opened(src, visible) };
                    for (binding, group) in groups(resource, visible) {
                        let address = |lane| target.address(lane, number);
                        for part in self.state.memory.parts(space, binding, group, address) {
                            let AccessPart { array, lanes, window } = part;
                            let address = |lane| address(lane) & window;
                            let (width, memory) = (target.width(), &mut self.state.memory);
                            let outside = memory.outside(array, width, lanes, address);
                            if outside != 0 {
                                return Err(self.undefined(UndefinedReason::Address, access.origin, outside));
                            }
                            memory.store(self.env, array, width, lanes, address, row, poison, &open);
                        }
                    }
                }
                Ok(())
            }
            Action::Atomic { op, data, compare } => {
                let Some(space) = Space::of(access.space) else { return Ok(()) };
                let operands = data.iter().chain(&compare).fold(0, |poison, &row| poison | self.poison[row as usize]);
                let [data, compare] = [data, compare].map(|words| words.map(|row| &self.rows[row as usize]));
                let (mut row, mut high) = ([0; LANES], [0; LANES]);
                let mut undefined = self.active & !visible;
                for (binding, group) in groups(resource, visible) {
                    let address = |lane| target.address(lane, 0);
                    let (memory, env) = (&mut self.state.memory, self.env);
                    for AccessPart { array, lanes, window } in memory.parts(space, binding, group, address) {
                        let address = |lane| address(lane) & window;
                        undefined |= if access.bits == 64 {
                            let dst = [&mut row, &mut high];
                            memory.atomic_wide(env, array, op, lanes, address, data, compare, operands, dst)
                        } else {
                            memory.atomic(env, array, op, lanes, address, data[0], compare[0], operands, &mut row)
                        };
                    }
                }
                for (&(_, dst), row) in access.rows.iter().zip([&row, &high]) {
                    self.write(dst, row, undefined);
                }
                Ok(())
            }
            Action::Size => {
                for &(number, dst) in &access.rows {
                    let mut row = [0; LANES];
                    for (binding, group) in groups(resource, self.active) {
                        let size = match (access.space, &self.env.device) {
                            (AddressSpace::Image, Some(device)) => {
                                access.view.image_extent(device.image_width)[number.min(2) as usize]
                            }
                            (AddressSpace::Image, None) => {
                                let property = access.size_property(number, self.facts.both_nir);
                                self.env.resource_property(binding, property, 0)
                            }
                            _ => self.env.buffer_size(binding),
                        };
                        lanes(group).for_each(|lane| row[lane] = size);
                    }
                    self.write(dst, &row, poison);
                }
                Ok(())
            }
        }
    }

    pub(super) fn texture(&mut self, texture: &Texture) -> RunResult {
        let mut poison = 0;
        for row in [texture.texture.row, texture.sampler.row].into_iter().flatten() {
            poison |= self.poison[row as usize];
        }
        for (_, operand) in &texture.operands {
            if let TextureOperand::Row(row) = operand {
                poison |= self.poison[*row as usize];
            }
        }
        let mut quads = None;
        if texture.derivatives {
            let coordinates = texture.operands.iter().filter(|(slot, _)| slot.has_derivative());
            let (mut rows, mut defined) = (SmallVec::<[Row; 4]>::new(), self.active);
            for &(_, operand) in coordinates {
                match operand {
                    TextureOperand::Row(row) => {
                        defined &= !self.poison[row as usize];
                        rows.push(self.rows[row as usize]);
                    }
                    TextureOperand::Bits(bits) => rows.push(splat(bits)),
                }
            }
            let wave_quads = Quads::new(rows.iter(), defined);
            poison |= !wave_quads.complete();
            quads = Some(wave_quads);
        }
        for of in [texture.texture, texture.sampler] {
            self.one_descriptor(of, self.active & !poison, texture.origin)?;
            let beyond = |&lane: &usize| of.bound && self.index(of, lane) >= BOUND;
            poison |= lanes(self.active & !poison).filter(beyond).fold(0, |mask, lane| mask | 1 << lane);
        }
        let mut answers = [[0; LANES]; 4];
        if self.env.device.is_some() {
            return self.device_texture(texture, poison);
        }
        for lane in lanes(self.active & !poison) {
            let [asked, sampler] =
                [texture.texture, texture.sampler].map(|of| Binding::new(of.set, self.index(of, lane)));
            let mut request = TextureRequest::new(texture.kind, asked, sampler);
            for &(slot, operand) in &texture.operands {
                request.set(
                    slot,
                    match operand {
                        TextureOperand::Row(row) => self.rows[row as usize][lane],
                        TextureOperand::Bits(bits) => bits,
                    },
                );
            }
            request.quad = quads.as_ref().map(|quads| quads.of(lane));
            let answer = TextureAnswer::new(self.env, &request);
            for (&(component, _), row) in texture.results.iter().zip(&mut answers) {
                let bits = answer.component(component, texture.ty);
                row[lane] = if texture.levels { level(bits, texture.ty.is_half()) } else { bits };
            }
        }
        for (&(_, dst), row) in texture.results.iter().zip(&answers) {
            self.write(dst, row, poison);
        }
        Ok(())
    }

    /// A texture operation of a program for a device: its coordinates are those of texels, at the center of each for a
    /// sample and at the corner of four for a gather. Textures have one level, and filters take the nearest texel.
    fn device_texture(&mut self, texture: &Texture, poison: u64) -> RunResult {
        let side = f64::from(TEXTURE_SIDE);
        let mut answers = [[0; LANES]; 4];
        let is_float = texture.ty.is_float();
        for lane in lanes(self.active & !poison) {
            let binding = Binding::new(texture.texture.set, self.index(texture.texture, lane));
            let word = |row: &R| self.rows[*row as usize][lane];
            let count = texture.coordinates.len();
            // The first texel, by coordinate.
            let mut first = [0; 4];
            for (at, (to, row)) in first.iter_mut().zip(&texture.coordinates).enumerate() {
                let offset = texture.offsets.get(at).map_or(0, word);
                let float = f64::from(f32::from_bits(word(row)));
                let texel = match texture.kind {
                    TextureKind::Fetch => word(row),
                    _ if texture.is_array && at + 1 == count => float.round_ties_even() as u32,
                    TextureKind::Gather(_) => (float * side - 0.5).floor() as u32,
                    _ => (float * side).floor() as u32,
                };
                *to = texel.wrapping_add(offset) % TEXTURE_SIDE;
            }
            for (&(component, _), row) in texture.results.iter().zip(&mut answers) {
                let mut at = first;
                let mut of = component;
                if let TextureKind::Gather(component) = texture.kind {
                    // Counterclockwise from the lower left: (0, 1), (1, 1), (1, 0), (0, 0).
                    let [x, y] = [[0, 1], [1, 1], [1, 0], [0, 0]][row_number(of)];
                    (at[0], at[1]) = ((at[0] + x) % TEXTURE_SIDE, (at[1] + y) % TEXTURE_SIDE);
                    of = component.into();
                }
                let cell = at[0] + TEXTURE_SIDE * (at[1] + TEXTURE_SIDE * at[2]);
                row[lane] = match texture.kind {
                    TextureKind::Size | TextureKind::BufferSize => TEXTURE_SIDE,
                    TextureKind::Info => 1,
                    _ => match (texel(self.env, binding, cell, of, is_float), texture.ty.is_half()) {
                        (value, false) => value,
                        (value, true) if is_float => float::f32_to_f16(value),
                        (value, true) => value & 0xffff,
                    },
                };
            }
        }
        for (&(_, dst), row) in texture.results.iter().zip(&answers) {
            self.write(dst, row, poison);
        }
        Ok(())
    }

    /// The index of a descriptor.
    fn index(&self, of: ResourceOperand, lane: usize) -> u32 {
        of.base.wrapping_add(of.row.map_or(0, |row| self.rows[row as usize][lane]))
    }

    /// Fails where a descriptor has to be the same in all of some lanes, and is not.
    fn one_descriptor(&self, of: ResourceOperand, asks: u64, origin: u32) -> RunResult {
        if !of.shared {
            return Ok(());
        }
        let others = naming_another(|lane| Binding::new(of.set, self.index(of, lane)), asks);
        if others == 0 { Ok(()) } else { Err(self.undefined(UndefinedReason::Descriptor, origin, others)) }
    }
}

/// The number of a component of a result.
const fn row_number(component: u32) -> usize {
    component as usize % 4
}

/// A level in 256ths, as a float.
fn level(bits: u32, half: bool) -> u32 {
    convert::level(&mut Concrete, half, bits.into()) as u32
}
