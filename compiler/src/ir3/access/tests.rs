//! Constructors and views are inverse.

use super::build::{self, AtomicOperand, Handle, Location, MemoryElements, TextureHandle, TextureOperands};
use super::*;
use crate::ir3::opcode::Role;
use crate::ir3::{
    AddressSpace, Attrs, Dst, InstrFlags, MemoryAttrs, Opcode, PhysReg, Place, RegClass, Type, WriteMask,
};

fn vector(register: u16, components: u32) -> Src {
    Src::reg(Place::Reg(PhysReg::new(register, 0)), RegClass::FULL, WriteMask::first(components))
}

fn a1() -> Src {
    Src::reg(Place::Reg(PhysReg::A1_X), RegClass::ADDRESS, WriteMask::SCALAR)
}

fn with_dst(mut instr: InstrData, components: u32) -> InstrData {
    let place = Place::Reg(PhysReg::new(40, 0));
    instr.dsts.push(Dst::new(place, RegClass::FULL, WriteMask::first(components)));
    instr
}

fn memory(instr: &InstrData) -> MemoryAccess {
    match Access::of(instr).unwrap().unwrap() {
        Access::Memory(access) => access,
        Access::Texture(access) => panic!("{access:?}"),
    }
}

fn texture(instr: &InstrData) -> TextureAccess {
    match Access::of(instr).unwrap().unwrap() {
        Access::Texture(access) => access,
        Access::Memory(access) => panic!("{access:?}"),
    }
}

const BUFFER: Handle = Handle { set: Some(3), index: Src::immediate(7, false), nonuniform: false };

fn bound(index: u32) -> Option<Binding> {
    Some(Binding { set: Some(Number::Fixed(3)), index: Number::Fixed(index) })
}

/// A global access with an index.
fn indexed(opcode: Opcode, base: Src, unit: u8, elements: MemoryElements, data: &[(Role, Src)]) -> InstrData {
    let operands: Vec<_> =
        [(Role::Base, base), (Role::Index, vector(1, 1))].into_iter().chain(data.iter().copied()).collect();
    build::memory(opcode, MemoryAttrs { index_unit: Some(unit), ..elements.into() }, &operands)
}

fn linear(src: usize, scale: u8, offset: i32) -> Address {
    Address::Linear { base: None, index: Some(Slice::scalar(src, 0)), index2: None, scale, offset }
}

fn texel(src: usize, coordinates: &[usize]) -> Address {
    Address::Texel(coordinates.iter().map(|&component| Slice::scalar(src, component)).collect())
}

#[test]
fn loads() {
    let two = MemoryElements { ty: Type::U16, components: 2 };
    let expected = MemoryAccess {
        action: MemoryAction::Load,
        space: AddressSpace::Ssbo,
        binding: bound(7),
        address: linear(1, 2, 5),
        bytes: None,
        padding: None,
        ty: Type::U16,
        components: 2,
        data: None,
        compare: None,
        shape: PrintedShape::default(),
        dimensions: 0,
    };
    let element = Location::Element(vector(0, 1), 5);
    assert_eq!(memory(&with_dst(build::resource(Opcode::Ldib, BUFFER, element, two, &[]), 2)), expected);
    let handle = TextureHandle::Fixed { set: Some(3), texture: 7, sampler: 0 };
    let isam = build::isam_ssbo(handle, vector(0, 1), true, 5, Type::U16);
    assert_eq!(memory(&with_dst(isam, 2)), MemoryAccess { address: linear(0, 2, 5), ..expected.clone() });
    let element = Location::Element(vector(0, 1), 0);
    let old = with_dst(build::resource(Opcode::Ldgb, BUFFER, element, two, &[(Role::Bytes, vector(1, 2))]), 2);
    let bytes = Some(Slice::new(1, 0, 2));
    assert_eq!(memory(&old), MemoryAccess { address: linear(2, 2, 0), bytes, ..expected.clone() });
    let ldc = with_dst(build::ldc(BUFFER, vector(0, 1), 1, two), 2);
    let ubo = MemoryAccess { space: AddressSpace::Ubo, address: linear(1, 16, 1), ..expected.clone() };
    assert_eq!(memory(&ldc), ubo);
    for space in [AddressSpace::Shared, AddressSpace::Scratch] {
        let local = with_dst(build::local_load(space, vector(0, 1), -8, two), 2);
        let expected = MemoryAccess { space, binding: None, address: linear(0, 1, -8), ..expected.clone() };
        assert_eq!(memory(&local), expected);
    }
    let base = Some(Slice::new(0, 0, 2));
    let address = Address::Linear { base, index: None, index2: None, scale: 1, offset: -4 };
    let global = MemoryAccess { space: AddressSpace::Global, binding: None, address, ..expected };
    assert_eq!(
        memory(&with_dst(
            build::memory(
                Opcode::Ldg,
                two,
                &[(Role::Base, vector(0, 2)), (Role::Offset, Src::immediate(-4i32 as u32, false))]
            ),
            2
        )),
        global
    );
    // The offset is in units of the index, but in words together with a shift.
    for (unit, shift, offset, bytes) in [(1, 0, 16, 16), (2, 0, 3, 6), (4, 0, 3, 12), (4, 1, 3, 12), (2, 2, 3, 12)] {
        let mut load = with_dst(indexed(Opcode::LdgA, vector(0, 2), unit, two, &[]), 2);
        load.srcs[2] = Src::immediate(shift, false);
        load.srcs[3] = Src::immediate(offset, false);
        let index = Some(Slice::scalar(1, 0));
        let address = Address::Linear { base, index, index2: None, scale: unit << shift, offset: bytes };
        assert_eq!(memory(&load), MemoryAccess { address, ..global.clone() });
    }
    // Both words of an address may be constants.
    let constant = Src::constant(17, false);
    let load = with_dst(indexed(Opcode::LdgA, constant, 1, two, &[]), 2);
    let address = Address::Linear { base, index: Some(Slice::scalar(1, 0)), index2: None, scale: 1, offset: 0 };
    assert_eq!(memory(&load), MemoryAccess { address, ..global });
}

#[test]
fn copies_to_the_constant_file() {
    let copy = build::ldc_k(BUFFER, vector(0, 1), a1(), 256);
    let expected = MemoryAccess {
        action: MemoryAction::CopyToConsts,
        space: AddressSpace::Ubo,
        binding: bound(7),
        address: linear(1, 16, 0),
        bytes: None,
        padding: None,
        ty: Type::U32,
        components: 256,
        data: Some(Slice::scalar(2, 0)),
        compare: None,
        shape: PrintedShape::default(),
        dimensions: 0,
    };
    assert_eq!(memory(&copy), expected);
    let mut without = copy;
    without.srcs.pop();
    assert_eq!(MemoryAccess::of(&without).unwrap_err().attribute, "where it copies to");
}

#[test]
fn stores() {
    let three = MemoryElements { ty: Type::U32, components: 3 };
    let element = Location::Element(vector(0, 1), 6);
    let store = memory(&build::resource(Opcode::Stib, BUFFER, element, three, &[(Role::Data, vector(2, 3))]));
    assert_eq!(store.action, MemoryAction::Store);
    assert_eq!((store.components, store.data), (3, Some(Slice::new(3, 0, 3))));
    assert_eq!((store.address, store.binding), (linear(1, 4, 6), bound(7)));
    let element = Location::Element(vector(0, 1), 0);
    let store = memory(&build::resource(
        Opcode::Stgb,
        BUFFER,
        element,
        three,
        &[(Role::Bytes, vector(1, 2)), (Role::Data, vector(2, 3))],
    ));
    assert_eq!((store.data, store.address), (Some(Slice::new(1, 0, 3)), linear(2, 4, 0)));
    let store = memory(&build::local_store(AddressSpace::Shared, vector(0, 1), 12, vector(2, 3), three));
    assert_eq!((store.data, store.address), (Some(Slice::new(1, 0, 3)), linear(0, 1, 12)));
    let base = Some(Slice::new(0, 0, 2));
    let store = memory(&build::memory(
        Opcode::Stg,
        three,
        &[(Role::Base, vector(0, 2)), (Role::Offset, Src::immediate(8, false)), (Role::Data, vector(2, 3))],
    ));
    assert_eq!(store.data, Some(Slice::new(2, 0, 3)));
    assert_eq!(store.address, Address::Linear { base, index: None, index2: None, scale: 1, offset: 8 });
    let store = memory(&indexed(Opcode::StgA, vector(0, 2), 4, three, &[(Role::Data, vector(2, 3))]));
    let index = Some(Slice::scalar(1, 0));
    assert_eq!(store.data, Some(Slice::new(4, 0, 3)));
    assert_eq!(store.address, Address::Linear { base, index, index2: None, scale: 4, offset: 0 });
    let stc = [(Role::Offset, Src::immediate(9, false)), (Role::Data, vector(2, 3)), (Role::Address1, a1())];
    let store = memory(&build::memory(Opcode::Stc, three, &stc[..2]));
    let address = Address::Linear { base: None, index: None, index2: None, scale: 4, offset: 9 };
    assert_eq!((store.space, store.address, store.data), (AddressSpace::Const, address, Some(Slice::new(1, 0, 3))));
    let store = memory(&build::memory(Opcode::Stc, three, &stc));
    assert_eq!(store.address, linear(2, 4, 9));
}

#[test]
fn images() {
    let four = MemoryElements { ty: Type::F32, components: 4 };
    let at = Location::Texel(vector(0, 2), 2);
    let load = memory(&with_dst(build::resource(Opcode::Ldib, BUFFER, at, four, &[]), 4));
    assert_eq!((load.space, load.address, load.ty), (AddressSpace::Image, texel(1, &[0, 1]), Type::F32));
    let load = memory(&with_dst(build::resource(Opcode::Ldib, BUFFER, at, four, &[(Role::Bytes, vector(1, 2))]), 4));
    assert_eq!((load.space, load.address), (AddressSpace::Image, texel(2, &[0, 1])));
    let store = memory(&build::resource(Opcode::Stib, BUFFER, at, four, &[(Role::Data, vector(2, 4))]));
    assert_eq!((store.address, store.data), (texel(1, &[0, 1]), Some(Slice::new(3, 0, 4))));
    let store = memory(&build::resource(
        Opcode::Stib,
        BUFFER,
        at,
        four,
        &[(Role::Bytes, vector(1, 2)), (Role::Data, vector(2, 4))],
    ));
    assert_eq!((store.address, store.data), (texel(2, &[0, 1]), Some(Slice::new(1, 0, 4))));
    // The padding of one dimension is not a coordinate.
    let handle = TextureHandle::Pair { set: Some(1), pair: vector(1, 2), sampler_set: None };
    let isam = build::isam_image(handle, vector(0, 3), InstrFlags::ARRAY, true, Type::F32);
    let load = memory(&with_dst(isam, 4));
    assert_eq!((load.space, load.address), (AddressSpace::Image, texel(1, &[0, 2])));
    let index = Number::Source { source: Slice::scalar(0, 0), shift: 0, mask: u32::MAX };
    assert_eq!(load.binding, Some(Binding { set: Some(Number::Fixed(1)), index }));
}

#[test]
fn sizes() {
    let size = memory(&with_dst(build::resinfo(BUFFER, AddressSpace::Ssbo, 1, false), 3));
    assert_eq!((size.action, size.components, size.binding), (MemoryAction::Size, 3, bound(7)));
    let size = memory(&with_dst(build::resinfo(BUFFER, AddressSpace::Ssbo, 1, true), 3));
    assert_eq!(size.action, MemoryAction::SplitSize);
    // Two dimensions are not two halves.
    let size = memory(&with_dst(build::resinfo(BUFFER, AddressSpace::Image, 2, false), 3));
    assert_eq!((size.action, size.space), (MemoryAction::Size, AddressSpace::Image));
    let prefetch = memory(&build::resinfo(BUFFER, AddressSpace::Image, 2, false));
    assert_eq!(prefetch.action, MemoryAction::Prefetch);
    let mut prefetch = build::resinfo(BUFFER, AddressSpace::Image, 2, false);
    prefetch.dsts.push(Dst::new(Place::Reg(PhysReg::INVALID), RegClass::FULL, WriteMask::SCALAR));
    assert_eq!(memory(&prefetch).action, MemoryAction::Prefetch);
}

#[test]
fn atomics() {
    use AtomicOp as A;
    let ops = [
        A::Add,
        A::Sub,
        A::Xchg,
        A::Inc,
        A::Dec,
        A::Cmpxchg,
        A::MinS,
        A::MinU,
        A::MaxS,
        A::MaxU,
        A::And,
        A::Or,
        A::Xor,
    ];
    let families = [AtomicFamily::Shared, AtomicFamily::Resource, AtomicFamily::OldResource, AtomicFamily::Global];
    for op in ops {
        for wide in [false, true].into_iter().filter(|wide| !wide || !op.is_signed()) {
            for family in families {
                let words = if wide { 2 } else { 1 };
                let value: Vec<Src> = (0..words).map(|i| vector(10 + i, 1)).collect();
                let compare: Vec<Src> = (0..words).map(|i| vector(20 + i, 1)).collect();
                let compare = if op == A::Cmpxchg { &compare[..] } else { &[] };
                let zero = vector(30, 1);
                let order = build::atomic_data_order(family, &value, compare, zero);
                let operand = AtomicOperand { op, data: vector(2, order.len() as u32), wide };
                let at = Location::Element(vector(0, 1), 0);
                let (opcode, data) = (family.opcode(op), (Role::Operand, operand.data));
                let resource = |operands: &[_]| build::resource(opcode, BUFFER, at, operand.elements(), operands);
                let instr = match family {
                    AtomicFamily::Shared => {
                        build::memory(opcode, operand.elements(), &[(Role::Index, vector(0, 1)), data])
                    }
                    AtomicFamily::Global => {
                        build::memory(opcode, operand.elements(), &[(Role::Base, vector(0, 2)), data])
                    }
                    AtomicFamily::Resource => resource(&[(Role::Tied, operand.data)]),
                    AtomicFamily::OldResource => resource(&[data, (Role::Bytes, vector(1, 2))]),
                };
                assert!(instr.opcode.name().starts_with("atomic."), "{:?}", instr.opcode);
                let access = memory(&with_dst(instr, words.into()));
                assert_eq!(access.action, MemoryAction::Atomic(op), "{family:?}");
                // The view's data and comparand are those given to the constructor.
                let of = |slice: Slice| {
                    let first = usize::from(slice.first);
                    order[first..first + usize::from(slice.count)].to_vec()
                };
                assert_eq!(access.data.map(of), Some(value.clone()), "{family:?} {op:?}");
                assert_eq!(access.compare.map(of).unwrap_or_default(), compare.to_vec(), "{family:?} {op:?}");
                let scale = match family {
                    AtomicFamily::Shared | AtomicFamily::Global => 1,
                    _ => ssbo_offset_unit(if wide { 64 } else { 32 }),
                };
                assert!(matches!(access.address, Address::Linear { scale: s, .. } if s == scale));
            }
        }
    }
}

#[test]
fn texture_operands_come_back_in_their_slots() {
    // The register number of each operand identifies it.
    let operands = TextureOperands {
        coords: [1, 2, 3].map(|r| vector(r, 1)).into_iter().collect(),
        comparator: Some(vector(4, 1)),
        layer: Some(vector(5, 1)),
        projector: None,
        ddx: [6, 7, 8].map(|r| vector(r, 1)).into_iter().collect(),
        ddy: [9, 10, 11].map(|r| vector(r, 1)).into_iter().collect(),
        sample: None,
        offset: [12, 13].map(|r| vector(r, 1)).into_iter().collect(),
        level: None,
    };
    let names = [
        (Slot::X, 1),
        (Slot::Y, 2),
        (Slot::Z, 3),
        (Slot::Comparator, 4),
        (Slot::Layer, 5),
        (Slot::DdxX, 6),
        (Slot::DdxY, 7),
        (Slot::DdxZ, 8),
        (Slot::DdyX, 9),
        (Slot::DdyY, 10),
        (Slot::DdyZ, 11),
        (Slot::OffsetX, 12),
        (Slot::OffsetY, 13),
    ];
    check(Opcode::Samgq, &operands, TextureKind::SampleGrad, &names);
    let operands = TextureOperands {
        coords: [1, 2].map(|r| vector(r, 1)).into_iter().collect(),
        layer: Some(vector(3, 1)),
        projector: Some(vector(4, 1)),
        offset: [5, 6].map(|r| vector(r, 1)).into_iter().collect(),
        level: Some(vector(7, 1)),
        ..TextureOperands::default()
    };
    let names = [
        (Slot::X, 1),
        (Slot::Y, 2),
        (Slot::Z, 3),
        (Slot::Projector, 4),
        (Slot::OffsetX, 5),
        (Slot::OffsetY, 6),
        (Slot::Lod, 7),
    ];
    check(Opcode::Samb, &operands, TextureKind::SampleBias, &names);
    check(Opcode::Saml, &operands, TextureKind::SampleLod, &names);
    check(Opcode::Isaml, &operands, TextureKind::Fetch, &names);
    let operands = TextureOperands {
        coords: [1, 2].map(|r| vector(r, 1)).into_iter().collect(),
        ddx: [3, 4].map(|r| vector(r, 1)).into_iter().collect(),
        ddy: [5, 6].map(|r| vector(r, 1)).into_iter().collect(),
        ..TextureOperands::default()
    };
    let names = [(Slot::X, 1), (Slot::Y, 2), (Slot::DdxX, 3), (Slot::DdxY, 4), (Slot::DdyX, 5), (Slot::DdyY, 6)];
    check(Opcode::Samgq, &operands, TextureKind::SampleGrad, &names);
    let operands = TextureOperands {
        coords: [1, 2].map(|r| vector(r, 1)).into_iter().collect(),
        sample: Some(vector(3, 1)),
        ..TextureOperands::default()
    };
    check(Opcode::Isamm, &operands, TextureKind::FetchMs, &[(Slot::X, 1), (Slot::Y, 2), (Slot::Sample, 3)]);
    let operands = TextureOperands { sample: None, ..operands };
    check(Opcode::Gather4b, &operands, TextureKind::Gather(2), &[(Slot::X, 1), (Slot::Y, 2)]);
    check(Opcode::Getlod, &operands, TextureKind::LodQuery, &[(Slot::X, 1), (Slot::Y, 2)]);
}

/// Builds an instruction with those operands for every form of handle, and checks which register each slot reads.
fn check(opcode: Opcode, operands: &TextureOperands, kind: TextureKind, names: &[(Slot, u16)]) {
    let (first, second, flags) = operands.vectors(vector(63, 1));
    let fixed = TextureHandle::Fixed { set: None, texture: 4, sampler: 5 };
    let bindless = TextureHandle::Pair { set: Some(1), pair: vector(30, 2), sampler_set: None };
    let other_set = TextureHandle::Pair { set: Some(1), pair: vector(30, 2), sampler_set: Some(a1()) };
    for handle in [fixed, bindless, other_set] {
        let extra = (!second.is_empty()).then(|| vector(2, second.len() as u32));
        let instr = build::texture(opcode, Type::F32, handle, flags, Some(vector(1, first.len() as u32)), extra);
        let access = texture(&with_dst(instr, 4));
        let at = usize::from(!matches!(handle, TextureHandle::Fixed { .. }));
        let found: Vec<(Slot, u16)> = access
            .operands
            .iter()
            .map(|&(slot, slice)| {
                let vector = if usize::from(slice.src) == at { &first[..] } else { &second[..] };
                (slot, vector[usize::from(slice.first)].place().unwrap().reg().unwrap().register())
            })
            .collect();
        assert_eq!(found, names, "{opcode:?}");
        assert_eq!(access.kind, kind);
        let pair = |component, shift, mask| Number::Source { source: Slice::scalar(0, component), shift, mask };
        match handle {
            TextureHandle::Fixed { .. } => {
                assert_eq!(access.texture, Binding { set: None, index: Number::Fixed(4) });
                assert_eq!(access.sampler, Binding { set: None, index: Number::Fixed(5) });
            }
            TextureHandle::Pair { sampler_set, .. } => {
                assert_eq!(access.texture.index, pair(0, 0, u32::MAX));
                assert_eq!(access.sampler.index, pair(1, 0, u32::MAX));
                assert_eq!(access.texture.set, Some(Number::Fixed(1)));
                let a1_at = at + 1 + usize::from(!second.is_empty());
                let in_a1 = Number::Source { source: Slice::scalar(a1_at, 0), shift: 0, mask: 7 };
                let expected = if sampler_set.is_some() { in_a1 } else { Number::Fixed(1) };
                assert_eq!(access.sampler.set, Some(expected));
            }
        }
    }
}

#[test]
fn texture_queries_and_prefetch() {
    let handle = TextureHandle::Fixed { set: None, texture: 2, sampler: 0 };
    let none = InstrFlags::empty();
    let size = texture(&build::texture(Opcode::Getsize, Type::S32, handle, none, Some(vector(0, 1)), None));
    assert_eq!((size.kind, &size.operands[..]), (TextureKind::Size, &[(Slot::Lod, Slice::scalar(0, 0))][..]));
    let info = texture(&build::texture(Opcode::Getinfo, Type::U32, handle, none, None, None));
    assert!(info.kind == TextureKind::Info && info.operands.is_empty());
    let sample = texture(&build::tex_prefetch(Type::F32, vector(0, 2), 12, Some(1), 3, 4, Some(2)));
    assert_eq!(sample.prefetch, Some(Prefetch { barycentric: Slice::new(0, 0, 2), varying: 12 }));
    assert_eq!(sample.sampler, Binding { set: Some(Number::Fixed(2)), index: Number::Fixed(4) });
}

#[test]
fn what_a_text_does_not_say_is_unknown() {
    let element = Location::Element(vector(0, 1), 0);
    let mut instr = with_dst(
        build::resource(Opcode::Ldib, BUFFER, element, MemoryElements { ty: Type::U32, components: 1 }, &[]),
        1,
    );
    if let Attrs::Memory(attrs) = &mut instr.attrs {
        attrs.space = None;
    }
    let error = Access::of(&instr).unwrap_err();
    assert_eq!(error.to_string(), "`ldib`: which memory it accesses is not known");
    let add = InstrData::new(Opcode::AddF);
    assert_eq!(Access::of(&add), Ok(None));
}

#[test]
fn addresses() {
    let ssbo = |index, offset, component| linear_address(AddressSpace::Ssbo, 0, index, 4, offset, component, 4);
    assert_eq!(ssbo(3, 2, 1), 24);
    assert_eq!(ssbo(u32::MAX, 2, 1), 8);
    assert_eq!(ssbo(0x8000_0000, 0, 0), 0x2_0000_0000);
    assert_eq!(linear_address(AddressSpace::Shared, 0, 16, 1, -4, 2, 4), 20);
    assert_eq!(linear_address(AddressSpace::Ubo, 0, 2, 16, 1, 1, 4), 40);
    assert_eq!(linear_address(AddressSpace::Global, 0x1_0000_0000, u32::MAX, 4, 4, 1, 4), 0x1_0000_0004);
}

#[test]
fn shapes() {
    assert_eq!(TextureShape::new(1, None), TextureShape { dims: 1, layer: false });
    assert_eq!(TextureShape::new(3, None), TextureShape { dims: 3, layer: false });
    assert_eq!(TextureShape::new(3, Some(2)), TextureShape { dims: 2, layer: true });
    assert_eq!(TextureShape::new(3, Some(2)).layer_slot(), Slot::Z);
    assert_eq!(TextureShape::new(4, None), TextureShape { dims: 3, layer: true });
    assert_eq!(TextureShape::new(4, Some(3)).layer_slot(), Slot::Layer);
    assert_eq!(TextureShape::new(2, Some(1)).padded(), 2);
}
