//! The world around a program, as terms: what `semantics::{env, memory, texture}` are for numbers.
//!
//! All that comes from outside is a variable or an uninterpreted function with a name that does not depend on the language,
//! so both programs get the same term. What is the same in all lanes of a wave is a variable of that [kind](VariableKind).

use super::own::{self, Own};
use super::run::Machine;
use super::{Event, EventKind, Oracle, Setting, Site, Slot, Value, lanes, slot};
use crate::semantics::arithmetic::domain::{Domain, Format, Rounding};
use crate::semantics::arithmetic::rows::LANES;
#[cfg(doc)]
use crate::semantics::environment::Binding;
use crate::semantics::environment::env::{CONST_WORDS, Launch, VARIABLE_SIZE, system_value_bits};
use crate::semantics::environment::memory::{Atomic, SCRATCH_BYTES, Space, TexelView};
use crate::semantics::environment::sync::Sync;
use crate::semantics::terms::{Extent, Lifetime, Op, Term, Terms, VariableKind};
use crate::support::guards::{Guard, left_out};
use ir3_compiler::ir3::access::{PrintedShape, Slot as Operand, TextureKind};
use ir3_compiler::ir3::{AddressSpace, SystemValue, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::fmt::Write as _;

/// The name of the bit that a lane is a helper from the start.
pub const HELPER: &str = "helper lane";

/// The name of the primitive that a lane is a fragment of.
const PRIMITIVE: &str = "primitive";

/// What is known of terms by the kinds of their variables.
#[derive(Default)]
pub struct Facts {
    uniform: RefCell<FxHashMap<Term, bool>>,
    lasting: RefCell<FxHashMap<Term, bool>>,
}

impl Facts {
    /// Whether all lanes have the same: functions of what is the same are the same.
    pub fn uniform(&self, terms: &Terms, term: Term) -> bool {
        all_variables(&self.uniform, terms, term, |kind| kind.extent == Extent::Wave || left_out(Guard::WaveKind))
    }

    /// Whether a lane's term means the same wherever the lane is: it is made of what comes from outside, and of what happened to
    /// the lane before it came to a loop.
    pub fn lasting(&self, terms: &Terms, term: Term) -> bool {
        all_variables(&self.lasting, terms, term, |kind| kind.lifetime == Lifetime::Run || left_out(Guard::LastingKind))
    }
}

/// Returns true if all variables of a term are of a kind.
fn all_variables(
    known: &RefCell<FxHashMap<Term, bool>>,
    terms: &Terms,
    term: Term,
    of_kind: impl Fn(VariableKind) -> bool,
) -> bool {
    let mut known = known.borrow_mut();
    let mut stack = vec![term];
    while let Some(&top) = stack.last() {
        if known.contains_key(&top) {
            stack.pop();
            continue;
        }
        let node = terms.node(top);
        if let Op::Variable(name) = node.op {
            known.insert(top, terms.kind(name).is_some_and(&of_kind));
            continue;
        }
        match node.args.iter().find(|arg| !known.contains_key(arg)) {
            Some(&arg) => stack.push(arg),
            None => {
                let all = node.args.iter().all(|arg| known[arg]);
                known.insert(top, all);
            }
        }
    }
    known[&term]
}

/// The kind of the variable that stands for the version of a memory: only a lane's own memory is not that of all.
pub fn version_kind(version: Slot) -> VariableKind {
    if version == slot::memory(Space::Scratch) { VariableKind::LANE } else { VariableKind::WAVE }
}

fn apply(terms: &mut Terms, width: u32, name: &str, args: &[Term]) -> Term {
    let name = terms.name(name);
    terms.apply(width, name, args)
}

/// Whether the lane is a helper from the start.
pub fn is_helper(terms: &mut Terms, launch: Launch) -> Term {
    if launch.fragment { terms.variable_of(VariableKind::LANE, 1, HELPER) } else { terms.constant(1, 0) }
}

/// A component of a system value: a word.
pub fn system_value(terms: &mut Terms, launch: Launch, value: SystemValue, component: u32) -> Term {
    use SystemValue::*;
    let kind = if value.is_uniform() { VariableKind::WAVE } else { VariableKind::LANE };
    let name = format!("{value:?}.{component}");
    match value {
        WorkgroupSize if launch.workgroup_size != VARIABLE_SIZE => {
            terms.constant(32, launch.workgroup_size[component.min(2) as usize].max(1).into())
        }
        // 64 lanes, or 128: which of them is the driver's choice.
        SubgroupSize if left_out(Guard::WaveSize) => terms.constant(32, LANES as u64),
        SubgroupSize => {
            let bit = terms.variable_of(kind, 1, &name);
            let (twice, once) = (terms.constant(32, 2 * LANES as u64), terms.constant(32, LANES as u64));
            terms.ite(32, bit, twice, once)
        }
        VertexId => {
            let base = system_value(terms, launch, BaseVertex, 0);
            let index = system_value(terms, launch, VertexIdZeroBase, 0);
            terms.add(32, base, index)
        }
        HelperInvocation => {
            let helper = is_helper(terms, launch);
            terms.zext(1, 32, helper)
        }
        FrontFace => {
            let bit = terms.variable_of(kind, 1, &name);
            terms.zext(1, 32, bit)
        }
        IsIndexedDraw => {
            let bit = terms.variable_of(kind, 1, &name);
            terms.sext(1, 32, bit)
        }
        _ => {
            let bits = system_value_bits(value, component);
            let number = terms.variable_of(kind, bits, &name);
            terms.zext(bits, 32, number)
        }
    }
}

/// A component of a vertex attribute.
pub fn attribute(terms: &mut Terms, base: u32, component: u32) -> Term {
    terms.variable_of(VariableKind::LANE, 32, &format!("attribute {base}.{component}"))
}

/// A varying that is not interpolated, or that is at these coordinates. `half` results have 16 bits, in a word.
pub fn varying(terms: &mut Terms, location: Term, ij: Option<[Term; 2]>, half: bool) -> Term {
    // A wave may have fragments of several primitives.
    let kind = if left_out(Guard::FlatInputs) { VariableKind::WAVE } else { VariableKind::LANE };
    let primitive = terms.variable_of(kind, 32, PRIMITIVE);
    let word = match ij {
        None => apply(terms, 32, "flat varying", &[location, primitive]),
        Some([i, j]) => apply(terms, 32, "varying", &[location, primitive, i, j]),
    };
    match (half, ij) {
        (false, _) => word,
        (true, None) => low(terms, word, 16),
        (true, Some(_)) => {
            let half = terms.fconvert(Format::F32, Format::F16, Rounding::MACHINE, word);
            terms.zext(16, 32, half)
        }
    }
}

/// The low bits of a word, in a word.
pub fn low(terms: &mut Terms, word: Term, bits: u32) -> Term {
    if bits >= 32 {
        return word;
    }
    let part = terms.extract(32, word, 0, bits);
    terms.zext(bits, 32, part)
}

/// 1 where a word is not 0: one bit.
pub fn nonzero(terms: &mut Terms, word: Term) -> Term {
    let width = terms.width(word);
    let zero = terms.constant(width, 0);
    let equal = terms.eq(width, word, zero);
    terms.not(1, equal)
}

/// The constant file of a program: what the driver puts there, and which words the program stores.
#[derive(Debug, Default)]
pub struct Constants {
    /// Words that hold a system value.
    pub params: FxHashMap<u32, (SystemValue, u32)>,
    /// Words that the driver fills for the other program, which has this one's file: computed loads may find them. See
    /// [`Env::driver`](crate::semantics::environment::env::Env::driver).
    pub driver: FxHashMap<u32, (SystemValue, u32)>,
    /// Words that hold a number.
    pub numbers: FxHashMap<u32, u32>,
    /// The program may store any of these words; all, if it stores at a computed place.
    pub stored: Stored,
}

/// Words that a program stores in the constant file.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Stored {
    /// None.
    #[default]
    Nothing,
    /// Some.
    Words(FxHashSet<u32>),
    /// Any.
    Anything,
}

impl Stored {
    /// Some words, or none. The file repeats after its end.
    pub fn words(words: impl Iterator<Item = u32>) -> Self {
        let words: FxHashSet<u32> = words.map(|word| word % CONST_WORDS).collect();
        if words.is_empty() { Self::Nothing } else { Self::Words(words) }
    }
}

impl Constants {
    fn may_store(&self, word: u32) -> bool {
        match &self.stored {
            Stored::Nothing => false,
            Stored::Words(words) => words.contains(&word) && !left_out(Guard::ConstantStored),
            Stored::Anything => !left_out(Guard::ConstantStored),
        }
    }

    /// A word that no store touches, or that is read before any; `None` if it depends on the version.
    pub fn fixed(&self, terms: &mut Terms, launch: Launch, word: u32) -> Option<Term> {
        let word = word % CONST_WORDS;
        if self.may_store(word) {
            return None;
        }
        if let Some(&number) = self.numbers.get(&word) {
            return Some(terms.constant(32, number.into()));
        }
        if let Some(&(value, component)) = self.params.get(&word) {
            return Some(system_value(terms, launch, value, component));
        }
        let index = terms.constant(32, word.into());
        Some(apply(terms, 32, "uniform file", &[index]))
    }

    /// A word, wherever it is.
    pub fn read<O: Oracle>(&self, machine: &mut Machine<'_, O>, launch: Launch, index: Term) -> Term {
        if let Some(word) = machine.terms.as_constant(index)
            && let Some(value) = self.fixed(machine.terms, launch, word as u32)
        {
            return value;
        }
        // The file repeats after its end, as `ConstFile::read` has it.
        let bits = CONST_WORDS.trailing_zeros();
        let index = machine.terms.extract(32, index, 0, bits);
        let index = machine.terms.zext(bits, 32, index);
        let mut name = "uniform file".to_owned();
        // What the driver puts there may be the word that is read, so it belongs to the name.
        let plain = machine.terms.as_constant(index).map(|word| word as u32 % CONST_WORDS);
        let plain = plain.is_some_and(|word| !self.params.contains_key(&word) && !self.numbers.contains_key(&word));
        let params = if self.params.is_empty() { &self.driver } else { &self.params };
        let own = !params.is_empty() || !self.numbers.is_empty();
        if own && !plain && !left_out(Guard::ConstantNames) {
            let mut own: Vec<String> = params.iter().map(|(word, value)| format!("{word}:{value:?}")).collect();
            own.extend(self.numbers.iter().map(|(word, value)| format!("{word}={value:#x}")));
            own.sort_unstable();
            let _ = write!(name, " with {}", own.join(" "));
        }
        if self.stored == Stored::Nothing {
            return apply(machine.terms, 32, &name, &[index]);
        }
        let version = machine.version(slot::CONSTANTS).bits;
        name.push_str(" that is written");
        apply(machine.terms, 32, &name, &[version, index])
    }
}

/// Bytes of memory of its own that a lane has; 0 where the program does not say.
pub fn scratch_bytes(declared: u32) -> u32 {
    if declared == 0 { SCRATCH_BYTES } else { declared }
}

/// Where an access goes: what identifies the buffer, and the byte address of an element (64 bits), or the texel.
#[derive(Clone, Debug)]
pub struct Target {
    /// The memory.
    pub space: AddressSpace,
    /// The buffer or image: see [`resource`].
    pub binding: Term,
    /// Where.
    pub place: Place,
    /// Whether a bit of what it is made of is free: one bit.
    pub free: Term,
}

/// See [`Target`].
#[derive(Clone, Debug)]
pub enum Place {
    /// See [`linear_address`](ir3_compiler::ir3::access::linear_address).
    Linear {
        /// 64 bits.
        base: Term,
        /// A word.
        index: Term,
        /// Bytes.
        scale: u8,
        /// Added.
        offset: i32,
    },
    /// Coordinates.
    Texel(SmallVec<[Term; 4]>),
}

/// A resource from its descriptor set, if it is bindless, and its index: 64 bits, as [`Binding::bits`] has them.
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

/// The byte address of an element, 64 bits: `ir3::access::linear_address` on terms.
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

/// Coordinates of a texel as an access sees it: see [`TexelView`].
pub fn texel<O: Oracle>(
    machine: &mut Machine<'_, O>,
    coordinates: impl IntoIterator<Item = Term>,
    view: TexelView,
) -> Place {
    let mut coordinates: SmallVec<[Term; 4]> = coordinates.into_iter().take(4).collect();
    let key = view.key(machine.oracle.has_printed_formats());
    if key != 0 {
        coordinates.push(machine.terms.constant(32, key.into()));
    }
    Place::Texel(coordinates)
}

impl Target {
    /// The operands of an access to an element, or to a word of one of 64 bits: identity, then address or coordinates.
    fn element(&self, terms: &mut Terms, number: u32, bits: u8) -> SmallVec<[Term; 6]> {
        let binding = if left_out(Guard::Binding) { terms.constant(32, 0) } else { self.binding };
        let mut args: SmallVec<[Term; 6]> = smallvec![binding];
        let (component, high) = if bits == 64 { (number / 2, number % 2) } else { (number, 0) };
        match &self.place {
            &Place::Linear { base, index, scale, offset } => {
                let address = linear_address(terms, self.space, (base, index), (scale, offset), component, bits / 8);
                let high = terms.constant(64, u64::from(high) * 4);
                args.push(terms.add(64, address, high));
            }
            Place::Texel(coordinates) => {
                args.extend(coordinates.iter().copied());
                args.push(terms.constant(32, number.into()));
            }
        }
        args
    }
}

/// Loads an element: its word, which has the element in its low bits and zeros above.
pub fn load<O: Oracle>(machine: &mut Machine<'_, O>, site: Site, target: &Target, component: u32, bits: u8) -> Value {
    let mut args = target.element(machine.terms, component, bits);
    let Some(space) = Space::of(target.space) else {
        let word = apply(machine.terms, 32, &format!("uniform buffer {:?} {bits}", target.space), &args);
        let word = low(machine.terms, word, bits.into());
        return Value::defined(machine.terms, word);
    };
    let width = if space == Space::Image { 32 } else { bits.min(32) };
    let mut beyond = None;
    if space == Space::Scratch
        && let [_, address] = args[..]
    {
        match own::find(machine, address, width) {
            Own::Location(location, low) => return own::load(machine, (location, low), width),
            Own::Beyond => return machine.unknown().low(machine.terms, bits.min(width).into()),
            Own::Memory(undefined) => beyond = Some(undefined),
        }
    }
    if machine.oracle.watches_loads(space) {
        let what = format!("load {} {width} of {}", space.name(), args.len());
        let args = args.iter().map(|&term| Value::defined(machine.terms, term)).collect();
        let path = machine.path();
        let results = machine.event(Event {
            site: site.part(component as usize),
            kind: EventKind::Load(space),
            what,
            path,
            args,
            results: smallvec![32],
            uniform: false,
            setting: Setting::default(),
        });
        let word = low(machine.terms, results[0], bits.min(width).into());
        return Value::defined(machine.terms, word);
    }
    let version = machine.oracle.version_of(space);
    let version = machine.version(version).bits;
    args.insert(0, if left_out(Guard::LoadVersion) { target.binding } else { version });
    let name = format!("{} {width} of {}", space.name(), args.len());
    let word = apply(machine.terms, 32, &name, &args);
    // What was stored there, free or not, is what the other program stored.
    let word = low(machine.terms, word, bits.min(width).into());
    let value = Value::defined(machine.terms, word);
    match beyond {
        Some(beyond) if machine.terms.as_constant(beyond) != Some(0) => {
            let unknown = machine.unknown().low(machine.terms, bits.min(width).into());
            machine.choose(beyond, unknown, value)
        }
        _ => value,
    }
}

/// Stores elements. `data` are their numbers and words.
pub fn store<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    target: &Target,
    bits: u8,
    data: &[(u32, Value)],
    helper: Term,
) {
    let Some(space) = Space::of(target.space) else { return };
    let defined = machine.terms.not(1, target.free);
    let path = visible(machine, space, helper);
    if machine.terms.as_constant(defined) != Some(1) {
        machine.oracle.demand(machine.terms, path, defined, "a write to an undefined address");
    }
    for &(component, value) in data {
        let element = target.element(machine.terms, component, bits);
        let width = if space == Space::Image { 32 } else { bits.min(32) };
        if space == Space::Scratch
            && let [_, address] = element[..]
        {
            match own::find(machine, address, width) {
                Own::Location(location, low) => {
                    own::store(machine, (location, low), width, value);
                    continue;
                }
                Own::Beyond => {
                    let no = machine.terms.constant(1, 0);
                    machine.oracle.demand(machine.terms, path, no, "a write beyond the end of a lane's own memory");
                    continue;
                }
                Own::Memory(_) => {}
            }
        }
        let mut args: SmallVec<[Value; 4]> = element.iter().map(|&term| Value::defined(machine.terms, term)).collect();
        args.push(value.low(machine.terms, width.into()));
        let what = format!("store {} {width} of {}", space.name(), args.len());
        let kind = EventKind::Memory(space);
        let site = site.part(component as usize);
        machine.event(Event {
            site,
            kind,
            what,
            path,
            args,
            results: smallvec![],
            uniform: space != Space::Scratch,
            setting: Setting::default(),
        });
    }
}

/// Where an access counts: helper lanes only have memory of their own.
fn visible<O: Oracle>(machine: &mut Machine<'_, O>, space: Space, helper: Term) -> Term {
    let path = machine.path();
    if space == Space::Scratch || left_out(Guard::HelperStores) {
        return path;
    }
    let counts = machine.terms.not(1, helper);
    machine.terms.and(1, path, counts)
}

/// An atomic: the words of the old contents, one or two. `operands` are the words of data and comparand.
pub fn atomic<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    target: &Target,
    (op, bits): (Atomic, u8),
    operands: &[Value],
    helper: Term,
) -> SmallVec<[Value; 2]> {
    let Some(space) = Space::of(target.space) else { return SmallVec::new() };
    let defined = machine.terms.not(1, target.free);
    let path = visible(machine, space, helper);
    if machine.terms.as_constant(defined) != Some(1) {
        machine.oracle.demand(machine.terms, path, defined, "a write to an undefined address");
    }
    if space == Space::Scratch && machine.oracle.own_from() == Some(0) {
        machine.oracle.lost("an atomic in a lane's own memory");
    }
    let element = target.element(machine.terms, 0, bits);
    let mut args: SmallVec<[Value; 4]> = element.iter().map(|&term| Value::defined(machine.terms, term)).collect();
    args.extend(operands.iter().copied());
    let words = if bits == 64 { 2 } else { 1 };
    let what = format!("atomic {op:?} {} {bits} of {}", space.name(), args.len());
    let results: SmallVec<[u8; 4]> = smallvec![32; words];
    let kind = EventKind::Memory(space);
    let bits =
        machine.event(Event { site, kind, what, path, args, results, uniform: false, setting: Setting::default() });
    bits[..words].iter().map(|&word| Value::free_where(machine.terms, word, helper)).collect()
}

/// The wave waits for others, or orders its accesses.
pub fn synchronize<O: Oracle>(machine: &mut Machine<'_, O>, site: Site, sync: Sync) {
    let path = machine.path();
    let what = match sync {
        Sync::Barrier => "barrier",
        Sync::Fence(_) => "fence",
    };
    machine.event(Event {
        site,
        kind: EventKind::Sync(sync),
        what: what.to_owned(),
        path,
        args: smallvec![],
        results: smallvec![],
        uniform: true,
        setting: Setting::default(),
    });
}

/// Stores a word of the constant file: one for the wave.
pub fn store_constant<O: Oracle>(machine: &mut Machine<'_, O>, site: Site, word: Term, value: Value) {
    let args = smallvec![Value::defined(machine.terms, word), value];
    let (path, what) = (machine.path(), "store file".to_owned());
    machine.event(Event {
        site,
        kind: EventKind::Constants,
        what,
        path,
        args,
        results: smallvec![],
        uniform: true,
        setting: Setting::default(),
    });
}

/// Copies words of a uniform buffer to the constant file, from the word `first` on: as one event, whose operands say which.
pub fn copy_to_constants<O: Oracle>(
    machine: &mut Machine<'_, O>,
    site: Site,
    target: &Target,
    first: Value,
    words: u32,
) {
    let place = if left_out(Guard::CopiedPlace) { machine.terms.constant(32, 0) } else { first.bits };
    let mut operands: SmallVec<[Value; 4]> = smallvec![Value { bits: place, ..first }];
    let source = target.element(machine.terms, 0, 32);
    operands.extend(source.iter().map(|&term| Value::defined(machine.terms, term)));
    let undefined = first.any_free(machine.terms);
    let undefined = machine.terms.or(1, undefined, target.free);
    let defined = machine.terms.not(1, undefined);
    machine.demand(defined, "a write to an undefined address");
    let words = if left_out(Guard::CopiedWords) { 0 } else { words };
    let (path, what) = (machine.path(), format!("copy {words} words of a uniform buffer to the file"));
    machine.event(Event {
        site,
        kind: EventKind::Constants,
        what,
        path,
        args: operands,
        results: smallvec![],
        uniform: true,
        setting: Setting::default(),
    });
}

/// The size of a buffer, or a component of that of an image.
pub fn size(terms: &mut Terms, space: AddressSpace, binding: Term, component: u32) -> Term {
    match space {
        AddressSpace::Image => apply(terms, 32, &format!("image size {component}"), &[binding]),
        _ => apply(terms, 32, "buffer size", &[binding]),
    }
}

/// What is asked of a texture.
pub struct Question {
    /// What.
    pub kind: TextureKind,
    /// The texture.
    pub texture: Term,
    /// The sampler.
    pub sampler: Term,
    /// The operands that there are: later ones replace earlier ones.
    pub operands: SmallVec<[(Operand, Term); 8]>,
    /// What the text tells of the texture's shape, where it does.
    pub shape: Option<PrintedShape>,
    /// What stands for the derivatives, if the level comes from them: see [`derive`](Self::derive).
    pub derivatives: Option<Term>,
}

impl Question {
    /// The question in its simplest form: a bias that is plainly zero is none. And no shape unless both texts have it.
    pub fn simplify<O: Oracle>(&mut self, machine: &mut Machine<'_, O>) {
        let is_zero =
            |&(operand, term): &(Operand, Term)| operand == Operand::Lod && machine.terms.as_constant(term) == Some(0);
        if self.kind == TextureKind::SampleBias && self.operands.iter().any(is_zero) {
            self.kind = TextureKind::Sample;
            self.operands.retain(|(operand, _)| *operand != Operand::Lod);
        }
        if !machine.oracle.has_printed_shapes() {
            self.shape = None;
            if self.operands.iter().any(|(operand, _)| *operand == Operand::X) {
                machine.oracle.assume(crate::semantics::assumptions::TEXTURE_SHAPE);
            }
        }
        self.operands.sort_by_key(|(operand, _)| *operand);
    }

    /// Takes implicit derivatives, which depend on the coordinates of the whole quad: an event among lanes, so both programs must ask this in
    /// the same lanes. Where a lane of the quad is missing the result is taken for some function of the others, the same in both programs.
    ///
    /// All operands of the question belong to the event, so that it is no other question's.
    pub fn derive<O: Oracle>(&mut self, machine: &mut Machine<'_, O>, site: Site) {
        if left_out(Guard::TextureQuad) {
            return;
        }
        let sampler = self.kind.has_sampler().then_some(self.sampler);
        let asked = [self.texture].into_iter().chain(sampler).chain(self.operands.iter().map(|&(_, term)| term));
        let args: SmallVec<[Value; 4]> = asked.map(|term| Value::defined(machine.terms, term)).collect();
        let present = self.operands.iter().fold(0u32, |present, &(operand, _)| present | 1 << operand as u32);
        let what = format!("derivatives for texture {} {present:x}", self.kind.number());
        let value = lanes::across(machine, site, what, args, lanes::Result::Own, 32);
        self.derivatives = Some(value.bits);
    }
}

/// A component of a texture's answer, a word.
pub fn answer(terms: &mut Terms, question: &Question, component: u32, ty: Type) -> Term {
    let mut operands: [Option<Term>; Operand::COUNT] = [None; Operand::COUNT];
    for &(operand, term) in &question.operands {
        operands[operand as usize] = Some(term);
    }
    let kind = question.kind;
    let mut args: SmallVec<[Term; 10]> = smallvec![question.texture];
    if kind.has_sampler() {
        args.push(question.sampler);
    }
    let mut present = 0u32;
    for (i, operand) in operands.iter().enumerate() {
        if let Some(term) = operand {
            present |= u32::from(!left_out(Guard::TextureKind)) << i;
            args.push(*term);
        }
    }
    args.extend(question.derivatives);
    // The machine has the number of layers in component 3, nir in component 2. As `TextureAnswer` has it.
    let (component, floats) = match kind {
        TextureKind::Size | TextureKind::BufferSize => (component.min(2), false),
        TextureKind::Info | TextureKind::LodQuery => (component, false),
        _ => (component, ty.is_float()),
    };
    let number = if left_out(Guard::TextureKind) { 0 } else { kind.number() };
    let is_level = matches!(kind, TextureKind::LodQuery);
    let is_count = matches!(kind, TextureKind::Size | TextureKind::BufferSize | TextureKind::Info);
    // Another type of integers is another question.
    let (of_type, bits) = match ty {
        _ if floats || is_level || is_count => (if floats { "float" } else { "int" }, 32),
        ty => (if left_out(Guard::TextureShape) { "int" } else { ty.name() }, if ty.is_half() { 16 } else { 32 }),
    };
    let derived = if question.derivatives.is_some() { " in a quad" } else { "" };
    let shape = question
        .shape
        .filter(|_| !left_out(Guard::TextureShape))
        .map_or_else(String::new, |shape| format!(" shape {}", shape.number()));
    let name = format!("texture {number} {present:x}{derived}{shape} {of_type} .{component}");
    let word = apply(terms, bits, &name, &args);
    if floats && ty == Type::F16 {
        let half = terms.fconvert(Format::F32, Format::F16, Rounding::MACHINE, word);
        return terms.zext(16, 32, half);
    }
    terms.zext(bits, 32, word)
}

/// Whether the lane is a helper now.
pub fn helper_now<O: Oracle>(machine: &mut Machine<'_, O>, launch: Launch) -> Term {
    let helper = is_helper(machine.terms, launch);
    let demoted = machine.read(slot::DEMOTED).bits;
    machine.terms.or(1, helper, demoted)
}

/// Demotes the lane if `condition` holds.
pub fn demote<O: Oracle>(machine: &mut Machine<'_, O>, condition: Term) {
    let demoted = machine.read(slot::DEMOTED).bits;
    let demoted = machine.terms.or(1, demoted, condition);
    let value = Value::defined(machine.terms, demoted);
    machine.write(slot::DEMOTED, value);
}
