//! Accesses to memory, as terms: the counterpart of `semantics::environment::memory`.
//!
//! A load is a function of the version of its memory and of the address, or an event if the oracle watches loads of
//! that memory. Stores, atomics, barriers and writes to the constant file are events. Accesses to scratch memory at
//! known addresses are moves (`scratch`).

use super::environment::{apply, low};
use super::forwarding::PlaceContents;
use super::run::SymbolicMachine;
use super::scratch::{self, ScratchAccess};
use super::{
    ElementAccess, Event, EventContext, EventKind, EventOperation, EventSite, MemoryOperation, Oracle, SymbolicValue,
};
use ir3_compiler::ir3::AddressSpace;
use ir3_semantics::arithmetic::domain::Domain;
#[cfg(doc)]
use ir3_semantics::environment::Binding;
use ir3_semantics::environment::memory::{Atomic, SCRATCH_BYTES, Space, TexelView};
use ir3_semantics::environment::sync::Sync;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Term, Terms};
use smallvec::{SmallVec, smallvec};

/// Bytes of scratch memory of a lane; `declared` is 0 if the program does not declare them.
pub fn scratch_bytes(declared: u32) -> u32 {
    if declared == 0 { SCRATCH_BYTES } else { declared }
}

/// The memory, the resource and the place that an access refers to.
#[derive(Clone, Debug)]
pub struct AccessTarget {
    /// The memory.
    pub space: AddressSpace,
    /// The buffer or image: see [`resource`].
    pub binding: Term,
    /// The address or the texel.
    pub place: AccessPlace,
    /// One bit: 1 if a bit of an operand that selects the place is free, or if the place is
    /// [elsewhere](Self::elsewhere).
    pub free: Term,
    /// One bit, if a byte offset is read separately from the place: 1 if it is that of another place.
    pub elsewhere: Option<Term>,
    /// The access is volatile, and both programs mark volatile accesses.
    pub volatile: bool,
    /// The byte offset that an access has too, of a buffer or image that no text describes: another one is another
    /// place.
    pub byte_offset: SmallVec<[Term; 2]>,
    /// The access is volatile or coherent.
    pub observed: bool,
}

/// A byte address (64 bits), or the coordinates of a texel.
#[derive(Clone, Debug)]
pub enum AccessPlace {
    /// See [`linear_address`](ir3_compiler::ir3::access::linear_address).
    Linear {
        /// 64 bits.
        base: Term,
        /// A word.
        index: Term,
        /// Bytes.
        scale: u8,
        /// Constant offset.
        offset: i32,
    },
    /// Coordinates.
    Texel(SmallVec<[Term; 4]>),
}

/// Returns the 64-bit name of a resource, from its descriptor set (if it is bindless) and its index, as
/// [`Binding::bits`] encodes it.
pub fn resource(terms: &mut Terms, set: Option<Term>, index: Term) -> Term {
    let kind = match set {
        Some(set) => {
            let one = terms.constant(32, 1);
            terms.add(32, set, one)
        }
        None => terms.constant(32, 0),
    };
    terms.concat(32, kind, 32, index)
}

/// Requires that the active lanes name the same descriptor. Uniformity is a fact of the wave, which one lane cannot
/// determine: the side after may rely on it where the side before does, of the same descriptor.
pub fn one_descriptor<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, resource: Term) {
    if machine.terms.as_constant(resource).is_none() {
        let same = apply(machine.terms, 1, "the same descriptor in all lanes", &[resource]);
        machine.demand(same, "a descriptor that differs between lanes, where it has to be the same");
    }
}

/// Returns the 64-bit byte address of an element: `ir3::access::linear_address` on terms.
pub fn linear_address(
    d: &mut Terms,
    space: AddressSpace,
    (base, index): (Term, Term),
    (scale, offset): (u8, i32),
    component: u32,
    size: u8,
) -> Term {
    let number = |d: &mut Terms, value: u64| d.constant(64, value);
    match space {
        AddressSpace::Global => {
            let scale = d.constant(32, scale.into());
            let bytes = d.mul(32, index, scale);
            let bytes = d.sext(32, 64, bytes);
            let sum = d.add(64, base, bytes);
            let rest = (i64::from(offset) as u64).wrapping_add(u64::from(component) * u64::from(size));
            let rest = number(d, rest);
            d.add(64, sum, rest)
        }
        AddressSpace::Ubo => {
            let index = d.zext(32, 64, index);
            let sixteen = number(d, 16);
            let bytes = d.mul(64, index, sixteen);
            let rest = (i64::from(offset) as u64).wrapping_add(component.into()).wrapping_mul(size.into());
            let rest = number(d, rest);
            d.add(64, bytes, rest)
        }
        _ => {
            let per_element = if scale >= size { 1 } else { u32::from(size / scale) };
            let rest = (offset as u32).wrapping_add(component.wrapping_mul(per_element));
            let rest = d.constant(32, rest.into());
            let unit = d.add(32, index, rest);
            let unit = d.zext(32, 64, unit);
            let scale = number(d, scale.into());
            d.mul(64, unit, scale)
        }
    }
}

/// Returns the coordinates of a texel as an access sees it: see [`TexelView`].
pub fn texel<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    coordinates: impl IntoIterator<Item = Term>,
    view: TexelView,
) -> AccessPlace {
    let mut coordinates: SmallVec<[Term; 4]> = coordinates.into_iter().take(4).collect();
    let key = view.key(machine.oracle.are_both_nir() || machine.oracle.has_printed_shapes());
    if key != 0 {
        coordinates.push(machine.terms.constant(32, key.into()));
    }
    AccessPlace::Texel(coordinates)
}

impl AccessTarget {
    /// An access to a place; `free` is one bit: 1 if a bit of an operand that selects it is free. `is_same` is one bit,
    /// where a byte offset is read separately from the place: 1 if it is that of the place.
    pub fn new(
        terms: &mut Terms,
        (space, binding): (AddressSpace, Term),
        place: AccessPlace,
        free: Term,
        is_same: Option<Term>,
    ) -> Self {
        let elsewhere = is_same.map(|is_same| terms.not(1, is_same));
        let free = elsewhere.map_or(free, |elsewhere| terms.or(1, free, elsewhere));
        Self { space, binding, place, free, elsewhere, volatile: false, observed: false, byte_offset: SmallVec::new() }
    }

    /// The name of an access to it, as an event.
    fn operation(&self, action: MemoryOperation, space: Space, bits: u8, operands: usize) -> EventOperation {
        EventOperation::Memory { action, space, bits, operands: operands as u8, volatile: self.volatile }
    }

    /// The byte address of the first element, of 64 bits, if it is at one.
    pub fn address(&self, terms: &mut Terms, bits: u8) -> Option<Term> {
        match &self.place {
            AccessPlace::Linear { .. } => self.element(terms, 0, bits).get(1).copied(),
            AccessPlace::Texel(_) => None,
        }
    }

    /// The access to an element with these operands, if it may be merged with others: it is neither volatile nor
    /// coherent.
    fn plain(&self, space: Space, operands: &[Term], bits: u32, path: Term) -> Option<ElementAccess> {
        // If the place has a byte offset of its own, the address alone does not distinguish places.
        let is_unobserved = !self.observed || left_out(Guard::PlainStores);
        let is_plain = space != Space::Scratch && self.byte_offset.is_empty() && is_unobserved;
        is_plain.then(|| ElementAccess { space, place: SmallVec::from_slice(operands), bits, path })
    }

    /// The operands of an access to an element (or to a word of a 64-bit element): the resource, then the address or
    /// the coordinates.
    fn element(&self, terms: &mut Terms, number: u32, bits: u8) -> SmallVec<[Term; 6]> {
        let binding = if left_out(Guard::Binding) { terms.constant(32, 0) } else { self.binding };
        let mut args: SmallVec<[Term; 6]> = smallvec![binding];
        let (component, high) = if bits == 64 { (number / 2, number % 2) } else { (number, 0) };
        match &self.place {
            &AccessPlace::Linear { base, index, scale, offset } => {
                let address = linear_address(terms, self.space, (base, index), (scale, offset), component, bits / 8);
                let high = terms.constant(64, u64::from(high) * 4);
                args.push(terms.add(64, address, high));
            }
            AccessPlace::Texel(coordinates) => {
                args.extend(coordinates.iter().copied());
                args.push(terms.constant(32, number.into()));
            }
        }
        args.extend(self.byte_offset.iter().copied());
        args
    }
}

/// Loads an element. Returns a word: the element in the low bits, zeros above.
pub fn load<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    target: &AccessTarget,
    component: u32,
    bits: u8,
) -> SymbolicValue {
    let value = load_at_place(machine, site, target, component, bits);
    match target.elsewhere {
        Some(elsewhere) => unknown_where(machine, elsewhere, value, bits),
        None => value,
    }
}

/// A loaded word, unknown under a condition.
fn unknown_where<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    condition: Term,
    value: SymbolicValue,
    bits: u8,
) -> SymbolicValue {
    if machine.terms.as_constant(condition) == Some(0) {
        return value;
    }
    let unknown = machine.unknown_for(value.bits).low(machine.terms, bits.min(32).into());
    machine.choose(condition, unknown, value)
}

fn load_at_place<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    target: &AccessTarget,
    component: u32,
    bits: u8,
) -> SymbolicValue {
    let args = target.element(machine.terms, component, bits);
    let Some(space) = Space::of(target.space) else {
        let word = apply(machine.terms, 32, &format!("uniform buffer {:?} {bits}", target.space), &args);
        let word = low(machine.terms, word, bits.into());
        return SymbolicValue::defined(machine.terms, word);
    };
    let width = if space == Space::Image { 32 } else { bits.min(32) };
    let mut beyond = None;
    if space == Space::Scratch
        && let [_, address] = args[..]
    {
        match scratch::find(machine, address, width) {
            ScratchAccess::Location(location, low) => return scratch::load(machine, (location, low), width),
            ScratchAccess::OutOfBounds => return machine.unknown().low(machine.terms, bits.min(width).into()),
            ScratchAccess::Memory(undefined) => beyond = Some(undefined),
        }
    }
    if machine.oracle.watches_loads(space) {
        let operation = target.operation(MemoryOperation::Load, space, width, args.len());
        let args = args.iter().map(|&term| SymbolicValue::defined(machine.terms, term)).collect();
        let path = machine.path();
        let results = machine.event(Event {
            site: site.part(component as usize),
            kind: EventKind::Load(space),
            operation,
            path,
            args,
            results: smallvec![32],
            uniform: false,
            selects: false,
            store: None,
            context: EventContext::default(),
        });
        let word = low(machine.terms, results[0], bits.min(width).into());
        return SymbolicValue::defined(machine.terms, word);
    }
    machine.observe_sunk_memory(space);
    let path = machine.path();
    let contents = match target.plain(space, &args, width.into(), path) {
        Some(access) => machine.contents(&access),
        None => {
            let version = machine.oracle.version_of(space);
            PlaceContents { stored: SmallVec::new(), version: machine.version(version).bits }
        }
    };
    let value = match contents.as_stored(machine.terms) {
        Some(value) => value,
        None => {
            let word = loaded(machine.terms, space, width.into(), contents.version, &args);
            // Free bits or not, the other program stored the same bits there.
            let word = low(machine.terms, word, bits.min(width).into());
            let mut value = SymbolicValue::defined(machine.terms, word);
            for &(condition, stored) in contents.stored.iter().rev() {
                value = machine.choose(condition, stored, value);
            }
            value
        }
    };
    match beyond {
        Some(beyond) => unknown_where(machine, beyond, value, bits.min(width)),
        None => value,
    }
}

/// The word that is in memory at a version, at the place of some operands.
fn loaded(terms: &mut Terms, space: Space, width: u32, version: Term, operands: &[Term]) -> Term {
    let mut args: SmallVec<[Term; 6]> = SmallVec::from_slice(operands);
    args.insert(0, if left_out(Guard::LoadVersion) { operands[0] } else { version });
    let name = format!("{} {width} of {}", space.name(), args.len());
    apply(terms, 32, &name, &args)
}

/// Returns true if a store changes nothing: the value equals the content, for any lanes that store there.
fn is_there_already<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    access: &ElementAccess,
    value: SymbolicValue,
) -> bool {
    if !machine.oracle.forwards_stores()
        || machine.oracle.watches_loads(access.space)
        || !value.is_defined(machine.terms)
    {
        return false;
    }
    if machine.may_be_joined() || machine.is_mixed() {
        return false;
    }
    let contents = machine.contents(access);
    if contents.stored.is_empty() {
        let there = loaded(machine.terms, access.space, access.bits, contents.version, &access.place);
        return low(machine.terms, there, access.bits) == value.bits;
    }
    contents.as_stored(machine.terms) == Some(value)
}

/// Stores elements of `bits` bits. `data` contains the component index and the value of each.
pub fn store<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    target: &AccessTarget,
    bits: u8,
    data: &[(u32, SymbolicValue)],
    helper: Term,
) {
    let Some(space) = Space::of(target.space) else { return };
    let defined = machine.terms.not(1, target.free);
    let path = visible(machine, space, helper);
    machine.demand_on(path, defined, "a write to an undefined address");
    for &(component, value) in data {
        let element = target.element(machine.terms, component, bits);
        let width = if space == Space::Image { 32 } else { bits.min(32) };
        if space == Space::Scratch
            && let [_, address] = element[..]
        {
            match scratch::find(machine, address, width) {
                ScratchAccess::Location(location, low) => {
                    scratch::store(machine, (location, low), width, value);
                    continue;
                }
                ScratchAccess::OutOfBounds => {
                    let no = machine.terms.constant(1, 0);
                    machine.demand_on(path, no, "a write beyond the end of scratch memory");
                    continue;
                }
                ScratchAccess::Memory(_) => {}
            }
        }
        let value = value.low(machine.terms, width.into());
        let plain = target.plain(space, &element, width.into(), path);
        if plain.as_ref().is_some_and(|plain| is_there_already(machine, plain, value)) {
            continue;
        }
        let mut args: SmallVec<[SymbolicValue; 4]> =
            element.iter().map(|&term| SymbolicValue::defined(machine.terms, term)).collect();
        args.push(value);
        let operation = target.operation(MemoryOperation::Store, space, width, args.len());
        let kind = EventKind::Memory(space);
        let site = site.part(component as usize);
        machine.event(Event {
            site,
            kind,
            operation,
            path,
            args,
            results: smallvec![],
            uniform: space != Space::Scratch,
            selects: false,
            store: plain,
            context: EventContext::default(),
        });
    }
}

/// Returns the path condition under which an access has an effect: helper lanes access scratch memory only.
fn visible<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, space: Space, helper: Term) -> Term {
    let path = machine.path();
    if space == Space::Scratch || left_out(Guard::HelperStores) {
        return path;
    }
    let counts = machine.terms.not(1, helper);
    machine.terms.and(1, path, counts)
}

/// Performs an atomic. Returns the one or two words of the old value. `operands` are the words of the data and the
/// comparand.
pub fn atomic<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    target: &AccessTarget,
    (op, bits): (Atomic, u8),
    operands: &[SymbolicValue],
    helper: Term,
) -> SmallVec<[SymbolicValue; 2]> {
    let Some(space) = Space::of(target.space) else { return SmallVec::new() };
    let defined = machine.terms.not(1, target.free);
    let path = visible(machine, space, helper);
    machine.demand_on(path, defined, "a write to an undefined address");
    if space == Space::Scratch && machine.oracle.scratch_slots_from() == Some(0) {
        machine.oracle.give_up("an atomic in scratch memory");
    }
    let element = target.element(machine.terms, 0, bits);
    let mut args: SmallVec<[SymbolicValue; 4]> =
        element.iter().map(|&term| SymbolicValue::defined(machine.terms, term)).collect();
    args.extend(operands.iter().copied());
    let words = if bits == 64 { 2 } else { 1 };
    let operation = target.operation(MemoryOperation::Atomic(op), space, bits, args.len());
    let results: SmallVec<[u8; 4]> = smallvec![32; words];
    let kind = EventKind::Memory(space);
    let bits = machine.event(Event {
        site,
        kind,
        operation,
        path,
        args,
        results,
        uniform: false,
        selects: false,
        store: None,
        context: EventContext::default(),
    });
    bits[..words].iter().map(|&word| SymbolicValue::free_where(machine.terms, word, helper)).collect()
}

/// Executes a barrier or a fence.
pub fn synchronize<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, site: EventSite, sync: Sync) {
    let path = machine.path();
    let operation = match sync {
        Sync::Barrier(_) => EventOperation::Barrier,
        Sync::Fence(_) => EventOperation::Fence,
    };
    machine.event(Event {
        site,
        kind: EventKind::Sync(sync),
        operation,
        path,
        args: smallvec![],
        results: smallvec![],
        uniform: true,
        selects: false,
        store: None,
        context: EventContext::default(),
    });
}

/// Stores a word of the constant file, for the whole wave.
pub fn store_constant<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    word: Term,
    value: SymbolicValue,
) {
    let args = smallvec![SymbolicValue::defined(machine.terms, word), value];
    let (path, operation) = (machine.path(), EventOperation::StoreWord);
    machine.event(Event {
        site,
        kind: EventKind::Constants,
        operation,
        path,
        args,
        results: smallvec![],
        uniform: true,
        selects: false,
        store: None,
        context: EventContext::default(),
    });
}

/// Copies words of a uniform buffer to the constant file, from word `first` on. One event, whose operands are the
/// source and `first`.
pub fn copy_to_constants<O: Oracle>(
    machine: &mut SymbolicMachine<'_, O>,
    site: EventSite,
    target: &AccessTarget,
    first: SymbolicValue,
    words: u32,
) {
    let place = if left_out(Guard::CopiedPlace) { machine.terms.constant(32, 0) } else { first.bits };
    let mut operands: SmallVec<[SymbolicValue; 4]> = smallvec![SymbolicValue { bits: place, ..first }];
    let source = target.element(machine.terms, 0, 32);
    operands.extend(source.iter().map(|&term| SymbolicValue::defined(machine.terms, term)));
    let undefined = first.any_free(machine.terms);
    let undefined = machine.terms.or(1, undefined, target.free);
    let defined = machine.terms.not(1, undefined);
    machine.demand(defined, "a write to an undefined address");
    let words = if left_out(Guard::CopiedWords) { 0 } else { words };
    let (path, operation) = (machine.path(), EventOperation::CopyWords(words));
    machine.event(Event {
        site,
        kind: EventKind::Constants,
        operation,
        path,
        args: operands,
        results: smallvec![],
        uniform: true,
        selects: false,
        store: None,
        context: EventContext::default(),
    });
}

/// Returns the size of a buffer.
pub fn buffer_size(terms: &mut Terms, binding: Term) -> Term {
    apply(terms, 32, "buffer size", &[binding])
}

/// Returns a component of a size, by its [number](ir3_semantics::environment::memory::size_property).
pub fn size_component(terms: &mut Terms, binding: Term, property: u32) -> Term {
    apply(terms, 32, &format!("size {property:#x}"), &[binding])
}
