//! The environment of a program, as terms: its inputs, constant file and textures.
//!
//! The counterpart of `semantics::{env, texture}`. Everything that comes from outside is a variable or an uninterpreted
//! function with a name that does not depend on the language, so both programs get the same term. A value that is
//! uniform in a wave is a variable of that [kind](VariableKind).

use super::operation::LaneOperation;
use super::run::SymbolicMachine;
use super::{EventSite, Oracle, Slot, SymbolicValue, lanes, preamble, slot};
use ir3_compiler::ir3::access::{PrintedShape, Slot as Operand, TextureKind};
use ir3_compiler::ir3::{SystemValue, Type};
use ir3_semantics::arithmetic::domain::{Domain, Format, Rounding};
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::env::{CONST_WORDS, Launch, VARIABLE_SIZE, system_value_bits};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use ir3_semantics::terms::{Extent, Lifetime, Op, Term, Terms, VariableKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::fmt::Write as _;

/// The name of the bit that is 1 if a lane is a helper from the start.
pub const HELPER: &str = "helper lane";

/// The name of a fragment's primitive.
const PRIMITIVE: &str = "primitive";

/// Facts about terms that follow from the kinds of their variables.
#[derive(Default)]
pub struct VariableFacts {
    uniform: RefCell<FxHashMap<Term, bool>>,
    lasting: RefCell<FxHashMap<Term, bool>>,
    common: RefCell<FxHashMap<Term, bool>>,
}

impl VariableFacts {
    /// Returns true if a term is the same in all lanes: a function of uniform values is uniform.
    pub fn uniform(&self, terms: &Terms, term: Term) -> bool {
        all_variables(&self.uniform, terms, term, |kind| kind.extent != Extent::Lane || left_out(Guard::WaveKind))
    }

    /// Returns true if a term is the same in all waves of a draw or dispatch.
    pub fn common(&self, terms: &Terms, term: Term) -> bool {
        all_variables(&self.common, terms, term, |kind| kind.extent == Extent::Draw)
    }

    /// Returns true if a lane's term has the same value at every point of its run: it depends only on the environment,
    /// and on the lane's execution before its first loop.
    pub fn lasting(&self, terms: &Terms, term: Term) -> bool {
        all_variables(&self.lasting, terms, term, |kind| kind.lifetime == Lifetime::Run || left_out(Guard::LastingKind))
    }
}

/// Returns true if all variables of a term satisfy `of_kind`.
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

/// The kind of the variable for the version of a memory: all memories but scratch belong to all lanes.
pub fn version_kind(version: Slot) -> VariableKind {
    if version == slot::memory(Space::Scratch) { VariableKind::LANE } else { VariableKind::DRAW }
}

pub(super) fn apply(terms: &mut Terms, width: u32, name: &str, args: &[Term]) -> Term {
    let name = terms.name(name);
    terms.apply(width, name, args)
}

/// Returns one bit: 1 if the driver has this wave run the preamble.
pub fn runs_preamble(terms: &mut Terms) -> Term {
    terms.variable_of(VariableKind::WAVE, 1, "runs the preamble")
}

/// Returns one bit: 1 if the lane is a helper from the start.
pub fn is_helper(terms: &mut Terms, launch: Launch) -> Term {
    if launch.fragment { terms.variable_of(VariableKind::LANE, 1, HELPER) } else { terms.constant(1, 0) }
}

/// Returns a component of a system value: a word.
pub fn system_value(terms: &mut Terms, launch: Launch, value: SystemValue, component: u32) -> Term {
    use SystemValue::*;
    let kind = match value {
        WorkgroupId | SubgroupId | FragInvocationCount | Opaque(_) if value.is_uniform() => VariableKind::WAVE,
        _ if value.is_uniform() => VariableKind::DRAW,
        _ => VariableKind::LANE,
    };
    let name = format!("{value:?}.{component}");
    match value {
        WorkgroupSize if launch.workgroup_size != VARIABLE_SIZE => {
            terms.constant(32, launch.workgroup_size[component.min(2) as usize].max(1).into())
        }
        // 64 lanes, or 128: the driver's choice.
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
        FrontFace | IsIndexedDraw => {
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

/// Returns a component of a vertex attribute.
pub fn attribute(terms: &mut Terms, base: u32, component: u32) -> Term {
    terms.variable_of(VariableKind::LANE, 32, &format!("attribute {base}.{component}"))
}

/// Returns a varying: flat, or interpolated at `ij`. A `half` result has 16 bits, in a word.
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

/// Returns the low bits of a word, zero-extended to a word.
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

/// The constant file of a program: the driver's contents, and the words that the program stores.
#[derive(Debug, Default)]
pub struct Constants {
    /// Words that hold a system value.
    pub params: FxHashMap<u32, (SystemValue, u32)>,
    /// Words that the driver fills for the other program, which has this one's file: computed loads may find them. See
    /// [`Env::driver`](ir3_semantics::environment::env::Env::driver).
    pub driver: FxHashMap<u32, (SystemValue, u32)>,
    /// The words of `driver` that hold a number.
    pub driver_numbers: FxHashMap<u32, u32>,
    /// Words that hold a number.
    pub numbers: FxHashMap<u32, u32>,
    /// The program may store any of these words; all, if it stores at a computed place.
    pub stored: StoredConstants,
    /// The words that it stores by exactly one instruction: see [`preamble`].
    pub once: FxHashSet<u32>,
}

/// Words that a program stores in the constant file.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum StoredConstants {
    /// No words.
    #[default]
    Nothing,
    /// A set of words.
    Words(FxHashSet<u32>),
    /// Any words.
    Anything,
}

impl StoredConstants {
    /// Some words, or none. The file repeats after its end.
    pub fn words(words: impl Iterator<Item = u32>) -> Self {
        let words: FxHashSet<u32> = words.map(|word| word % CONST_WORDS).collect();
        if words.is_empty() { Self::Nothing } else { Self::Words(words) }
    }
}

impl Constants {
    fn may_store(&self, word: u32) -> bool {
        match &self.stored {
            StoredConstants::Nothing => false,
            StoredConstants::Words(words) => words.contains(&word) && !left_out(Guard::ConstantStored),
            StoredConstants::Anything => !left_out(Guard::ConstantStored),
        }
    }

    /// Returns true if a store does not change a word: the driver has filled it with the same number, and so has every
    /// store to it.
    pub fn keeps(&self, terms: &Terms, word: Term, value: &SymbolicValue) -> bool {
        let (Some(word), Some(bits)) = (terms.as_constant(word), terms.as_constant(value.bits)) else { return false };
        let word = word as u32 % CONST_WORDS;
        !self.may_store(word) && self.numbers.get(&word).is_some_and(|&number| u64::from(number) == bits)
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
        // All lanes read the same word, so none has the value of a lane.
        if let Some(&(value, component)) = self.params.get(&word).filter(|(value, _)| value.is_uniform()) {
            return Some(system_value(terms, launch, value, component));
        }
        let index = terms.constant(32, word.into());
        Some(apply(terms, 32, "uniform file", &[index]))
    }

    /// A word at any address.
    pub fn read<O: Oracle>(&self, machine: &mut SymbolicMachine<'_, O>, launch: Launch, index: Term) -> Term {
        if let Some(word) = machine.terms.as_constant(index)
            && let Some(value) = self.fixed(machine.terms, launch, word as u32)
        {
            return value;
        }
        if let Some(word) = machine.terms.as_constant(index)
            && let Some(value) = preamble::load(machine, word as u32)
        {
            return value;
        }
        // As in `ConstFile::read`: the file repeats after its end.
        let bits = CONST_WORDS.trailing_zeros();
        let index = machine.terms.extract(32, index, 0, bits);
        let index = machine.terms.zext(bits, 32, index);
        let mut name = "uniform file".to_owned();
        // A word that the driver fills may be the word that is read, so these words belong to the name.
        let plain = machine.terms.as_constant(index).map(|word| word as u32 % CONST_WORDS);
        let plain = plain.is_some_and(|word| !self.params.contains_key(&word) && !self.numbers.contains_key(&word));
        let params = if self.params.is_empty() { &self.driver } else { &self.params };
        let numbers = if self.numbers.is_empty() { &self.driver_numbers } else { &self.numbers };
        let own = !params.is_empty() || !numbers.is_empty();
        if own && !plain && !left_out(Guard::ConstantNames) {
            let mut own: Vec<String> = params.iter().map(|(word, value)| format!("{word}:{value:?}")).collect();
            own.extend(numbers.iter().map(|(word, value)| format!("{word}={value:#x}")));
            own.sort_unstable();
            let _ = write!(name, " with {}", own.join(" "));
        }
        if self.stored == StoredConstants::Nothing {
            return apply(machine.terms, 32, &name, &[index]);
        }
        let version = match machine.terms.as_constant(index) {
            Some(word) => machine.version_of_word(word as u32),
            None => machine.version(slot::CONSTANTS).bits,
        };
        name.push_str(" that is written");
        apply(machine.terms, 32, &name, &[version, index])
    }
}

/// A texture operation.
pub struct TextureQuery {
    /// The operation.
    pub kind: TextureKind,
    /// The texture.
    pub texture: Term,
    /// The sampler.
    pub sampler: Term,
    /// Values by operand; of two entries for an operand the last one counts.
    pub operands: SmallVec<[(Operand, Term); 8]>,
    /// The texture's shape, if the text prints it.
    pub shape: Option<PrintedShape>,
    /// A term for the implicit derivatives, if the level of detail depends on them: see
    /// [`derive`](Self::derive).
    pub derivatives: Option<Term>,
}

impl TextureQuery {
    /// Simplifies the operation: drops a bias that is the constant 0, and drops the shape unless both texts print it.
    pub fn simplify<O: Oracle>(&mut self, machine: &mut SymbolicMachine<'_, O>) {
        let is_zero =
            |&(operand, term): &(Operand, Term)| operand == Operand::Lod && machine.terms.as_constant(term) == Some(0);
        if self.kind == TextureKind::SampleBias && self.operands.iter().any(is_zero) {
            self.kind = TextureKind::Sample;
            self.operands.retain(|(operand, _)| *operand != Operand::Lod);
        }
        if !machine.oracle.has_printed_shapes() {
            self.shape = None;
            if self.operands.iter().any(|(operand, _)| *operand == Operand::X) {
                machine.oracle.assume(ir3_semantics::assumptions::TEXTURE_SHAPE);
            }
        }
        self.operands.sort_by_key(|(operand, _)| *operand);
    }

    /// Takes implicit derivatives, which depend on the coordinates of the whole quad: a cross-lane event, so both
    /// programs must execute it in the same lanes. If a lane of the quad is missing, the result is an unknown function
    /// of the others, the same in both programs.
    ///
    /// All operands belong to the event, so that it cannot be taken for another operation's.
    pub fn derive<O: Oracle>(&mut self, machine: &mut SymbolicMachine<'_, O>, site: EventSite) {
        if left_out(Guard::TextureQuad) {
            return;
        }
        let sampler = self.kind.has_sampler().then_some(self.sampler);
        let operands = [self.texture].into_iter().chain(sampler).chain(self.operands.iter().map(|&(_, term)| term));
        let args: SmallVec<[SymbolicValue; 4]> =
            operands.map(|term| SymbolicValue::defined(machine.terms, term)).collect();
        let present = self.operands.iter().fold(0u32, |present, &(operand, _)| present | 1 << operand as u32);
        let operation = LaneOperation::TextureDerivatives { number: self.kind.number(), present };
        let value = lanes::across(machine, site, operation, args, lanes::LaneResult::Own, 32);
        self.derivatives = Some(value.bits);
    }
}

/// Returns a component of a texture operation's result, a word.
pub fn texture_result(terms: &mut Terms, query: &TextureQuery, component: u32, ty: Type) -> Term {
    let mut operands: [Option<Term>; Operand::COUNT] = [None; Operand::COUNT];
    for &(operand, term) in &query.operands {
        operands[operand as usize] = Some(term);
    }
    let kind = query.kind;
    let mut args: SmallVec<[Term; 10]> = smallvec![query.texture];
    if kind.has_sampler() {
        args.push(query.sampler);
    }
    let mut present = 0u32;
    for (i, operand) in operands.iter().enumerate() {
        if let Some(term) = operand {
            present |= u32::from(!left_out(Guard::TextureKind)) << i;
            args.push(*term);
        }
    }
    args.extend(query.derivatives);
    let floats = match kind {
        TextureKind::Size | TextureKind::BufferSize | TextureKind::Info | TextureKind::LodQuery => false,
        _ => ty.is_float(),
    };
    let number = if left_out(Guard::TextureKind) { 0 } else { kind.number() };
    let is_level = matches!(kind, TextureKind::LodQuery);
    let is_count = matches!(kind, TextureKind::Size | TextureKind::BufferSize | TextureKind::Info);
    // Another integer type is another function.
    let (of_type, bits) = match ty {
        _ if floats || is_level || is_count => (if floats { "float" } else { "int" }, 32),
        ty => (if left_out(Guard::TextureShape) { "int" } else { ty.name() }, if ty.is_half() { 16 } else { 32 }),
    };
    let derived = if query.derivatives.is_some() { " in a quad" } else { "" };
    let shape = query
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

/// Returns one bit: 1 if the lane is a helper at this point.
pub fn helper_now<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, launch: Launch) -> Term {
    let helper = is_helper(machine.terms, launch);
    let demoted = machine.read(slot::DEMOTED).bits;
    machine.terms.or(1, helper, demoted)
}

/// Demotes the lane if `condition` holds.
pub fn demote<O: Oracle>(machine: &mut SymbolicMachine<'_, O>, condition: Term) {
    let demoted = machine.read(slot::DEMOTED).bits;
    let demoted = machine.terms.or(1, demoted, condition);
    let value = SymbolicValue::defined(machine.terms, demoted);
    machine.write(slot::DEMOTED, value);
}
