//! Coverage cells of intrinsics: an intrinsic with the width and number of components of its operands, with a form of
//! one source, or with a class of values of one index.

use ir3_compiler::nir::{
    Access, AluType, AtomicOp, BaseType, Components, Def, Function, ImageDim, Index, IndexKind, InstrData, InterpMode,
    Intrinsic, IntrinsicOp, MemoryModes, MemorySemantics, Scope,
};
use std::sync::OnceLock;

use crate::generator::accepted::{REDUCTIONS, WIDTHS};

/// The maximum number of components that is distinguished.
const COMPONENTS: u32 = 4;
/// The number of sources whose forms are distinguished.
const SOURCES: u32 = 5;
/// The forms of a source.
const FORMS: [&str; 3] = ["constant", "computed", "bindless"];

const FIRST_FORM: u32 = WIDTHS.len() as u32 * COMPONENTS;
const FIRST_VALUE: u32 = FIRST_FORM + SOURCES * FORMS.len() as u32;
/// The maximum number of classes of index values.
const VALUES: u32 = 160;
const STRIDE: u32 = FIRST_VALUE + VALUES;

pub(super) const SIZE: u32 = IntrinsicOp::ALL.len() as u32 * STRIDE;

/// A class of values of an index.
pub(super) struct Value {
    pub kind: IndexKind,
    text: String,
    /// One value of the class.
    pub sample: Index,
    is_in: Box<dyn Fn(&Index) -> bool + Send + Sync>,
}

/// The classes, by number.
pub(super) fn values() -> &'static [Value] {
    static VALUES_OF: OnceLock<Vec<Value>> = OnceLock::new();
    VALUES_OF.get_or_init(|| {
        let mut all = Vec::new();
        all_values(&mut |text, sample, is_in| all.push(Value { kind: sample.kind(), text, sample, is_in }));
        assert!(all.len() <= VALUES as usize, "{} values", all.len());
        all
    })
}

type Add<'a> = &'a mut dyn FnMut(String, Index, Box<dyn Fn(&Index) -> bool + Send + Sync>);

/// A class for each value.
fn each<T: Copy + PartialEq + Send + Sync + 'static>(
    add: Add<'_>,
    all: &[T],
    name: impl Fn(T) -> String,
    make: impl Fn(T) -> Index + Copy + Send + Sync + 'static,
) {
    for &value in all {
        add(name(value), make(value), Box::new(move |index| *index == make(value)));
    }
}

/// A class for 0 and one for each range of numbers that begins at one of these.
fn ranges(
    add: Add<'_>,
    starts: &[u32],
    make: impl Fn(u32) -> Index,
    number: impl Fn(&Index) -> Option<i64> + Copy + Send + Sync + 'static,
) {
    for (i, &start) in starts.iter().enumerate() {
        let next = starts.get(i + 1).map_or(i64::MAX, |&next| i64::from(next));
        let text = if next == i64::from(start) + 1 { start.to_string() } else { format!("{start} or more") };
        let is_in = move |index: &Index| number(index).is_some_and(|n| (i64::from(start)..next).contains(&n));
        add(text, make(start), Box::new(is_in));
    }
}

/// The names of flags that are set, and of none.
fn flags<T: bitflags::Flags + Copy + Send + Sync + 'static>(
    add: Add<'_>,
    make: impl Fn(T) -> Index,
    get: impl Fn(&Index) -> Option<T> + Copy + Send + Sync + 'static,
) {
    add("none".into(), make(T::empty()), Box::new(move |index| get(index).is_some_and(|flags| flags.is_empty())));
    for flag in T::FLAGS {
        let value = T::from_bits_retain(flag.value().bits());
        let is_in =
            move |index: &Index| get(index).is_some_and(|flags| flags.contains(T::from_bits_retain(value.bits())));
        add(flag.name().to_ascii_lowercase(), make(T::from_bits_retain(flag.value().bits())), Box::new(is_in));
    }
}

macro_rules! number {
    ($variant:ident) => {
        |index: &Index| match index {
            Index::$variant(n) => Some(i64::from(*n)),
            _ => None,
        }
    };
}

fn all_values(add: Add<'_>) {
    // Some bases are byte addresses of words.
    ranges(add, &[0, 1, 128], |n| Index::Base(if n == 1 { 4 } else { n as i32 }), number!(Base));
    let mask = |index: &Index| match index {
        Index::WriteMask(mask) => Some(*mask),
        _ => None,
    };
    let is_full = |mask: u16| mask & mask.wrapping_add(1) == 0;
    add("all".into(), Index::WriteMask(1), Box::new(move |index| mask(index).is_some_and(is_full)));
    add("some".into(), Index::WriteMask(2), Box::new(move |index| mask(index).is_some_and(|mask| !is_full(mask))));
    ranges(add, &[0, 1], Index::RangeBase, number!(RangeBase));
    ranges(add, &[0, 1, 2], Index::Range, number!(Range));
    ranges(add, &[0, 1], Index::DescSet, number!(DescSet));
    ranges(add, &[0, 1], Index::UcpId, number!(UcpId));
    ranges(add, &[0, 1, 2, 3], |n| Index::Component(n as u8), number!(Component));
    each(add, &InterpMode::ALL, |mode| mode.name().to_owned(), Index::InterpMode);
    each(add, REDUCTIONS, |op| op.name().to_owned(), Index::ReductionOp);
    // The last is a whole wave.
    ranges(add, &[0, 2, 4, 8, 16, 32], |n| Index::ClusterSize(if n == 32 { 64 } else { n }), number!(ClusterSize));
    each(add, &ImageDim::ALL, |dim| dim.name().to_owned(), Index::ImageDim);
    each(add, &[false, true], |is| is.to_string(), Index::ImageArray);
    flags::<Access>(add, Index::Access, |index| match index {
        Index::Access(access) => Some(*access),
        _ => None,
    });
    ranges(add, &[0, 1, 2, 4, 8, 16], Index::AlignMul, number!(AlignMul));
    ranges(add, &[0, 1], Index::AlignOffset, number!(AlignOffset));
    let types: Vec<AluType> = [BaseType::Int, BaseType::Uint, BaseType::Float]
        .into_iter()
        .flat_map(|base| [16, 32].map(|bits| AluType::new(base, bits)))
        .collect();
    each(add, &types, |ty| ty.to_string(), Index::SrcType);
    each(add, &types, |ty| ty.to_string(), Index::DestType);
    flags::<MemorySemantics>(add, Index::MemorySemantics, |index| match index {
        Index::MemorySemantics(semantics) => Some(*semantics),
        _ => None,
    });
    flags::<MemoryModes>(add, Index::MemoryModes, |index| match index {
        Index::MemoryModes(modes) => Some(*modes),
        _ => None,
    });
    each(add, &Scope::ALL, |scope| scope.name().to_owned(), Index::MemoryScope);
    each(add, &Scope::ALL, |scope| scope.name().to_owned(), Index::ExecutionScope);
    each(add, &AtomicOp::ALL, |op| op.name().to_owned(), Index::AtomicOp);
    each(add, &[false, true], |is| is.to_string(), Index::LegacyFabs);
    each(add, &[false, true], |is| is.to_string(), Index::LegacyFneg);
    each(add, &[false, true], |is| is.to_string(), Index::LegacyFsat);
}

/// The property that a cell number encodes.
pub(super) enum Property {
    Shape { bits: u8, components: u8 },
    Form { source: usize, form: usize },
    Value(&'static Value),
}

pub(super) fn property(number: u32) -> Option<(IntrinsicOp, Property)> {
    let (op, rest) = (IntrinsicOp::ALL[(number / STRIDE) as usize], number % STRIDE);
    let property = if rest < FIRST_FORM {
        let bits = WIDTHS[(rest / COMPONENTS) as usize];
        Property::Shape { bits, components: (rest % COMPONENTS) as u8 + 1 }
    } else if rest < FIRST_VALUE {
        let forms = FORMS.len() as u32;
        Property::Form { source: ((rest - FIRST_FORM) / forms) as usize, form: ((rest - FIRST_FORM) % forms) as usize }
    } else {
        Property::Value(values().get((rest - FIRST_VALUE) as usize)?)
    };
    Some((op, property))
}

/// The source that names a buffer, an image or a descriptor.
pub(super) fn resource(op: IntrinsicOp) -> Option<usize> {
    let name = op.name();
    let of_resource = ["ssbo", "ubo", "bindless_image", "prefetch"].iter().any(|part| name.contains(part));
    of_resource.then(|| usize::from(name.starts_with("store_ssbo")))
}

/// The name of a cell; `None` if the intrinsic cannot have it.
pub(super) fn name(number: u32) -> Option<String> {
    let (op, property) = property(number)?;
    let info = op.info();
    match property {
        Property::Shape { bits, components } => {
            super::accepted::shapes(op, bits, components).then(|| format!("{op}, {components} of {bits} bits"))
        }
        Property::Form { source, form } => {
            let fits = source < info.srcs.len() && (form != 2 || resource(op) == Some(source));
            fits.then(|| format!("{op}, source {source} {}", FORMS[form]))
        }
        Property::Value(value) => {
            let has = info.indices.contains(&value.kind);
            has.then(|| format!("{op}, {} {}", value.kind, value.text))
        }
    }
}

/// The width and the components of the vector operands of an intrinsic; of its result if it has none.
fn shape(function: &Function, intrinsic: &Intrinsic) -> (u8, u8) {
    let info = intrinsic.op.info();
    let of = |def: Def| (function.defs[def].bit_size, function.defs[def].num_components);
    let vector = info.srcs.iter().position(|&components| components == Components::Vector);
    match (info.dest, intrinsic.def, vector) {
        (Some(Components::Vector), Some(def), _) => of(def),
        (_, _, Some(source)) => intrinsic.srcs.get(source).map_or((32, 1), |&def| of(def)),
        (_, Some(def), None) => of(def),
        _ => (32, 1),
    }
}

pub(super) fn visit(function: &Function, intrinsic: &Intrinsic, mut visit: impl FnMut(u32)) {
    let first = intrinsic.op as u32 * STRIDE;
    let (bits, components) = shape(function, intrinsic);
    if let Some(width) = WIDTHS.iter().position(|&width| width == bits)
        && (1..=COMPONENTS).contains(&components.into())
    {
        visit(first + width as u32 * COMPONENTS + u32::from(components) - 1);
    }
    for (i, &def) in intrinsic.srcs.iter().enumerate().take(SOURCES as usize) {
        let form = match &function.instrs[function.defs[def].instr] {
            InstrData::Const { .. } => 0,
            InstrData::Intrinsic(Intrinsic { op: IntrinsicOp::BindlessResourceIr3, .. }) => 2,
            _ => 1,
        };
        visit(first + FIRST_FORM + (i * FORMS.len() + form) as u32);
    }
    for index in &intrinsic.indices.0 {
        let starts = starts();
        let (start, end) = starts[index.kind() as usize];
        for (number, value) in (start..end).zip(&values()[start as usize..end as usize]) {
            if (value.is_in)(index) {
                visit(first + FIRST_VALUE + number);
            }
        }
    }
}

/// The classes of each kind of index.
fn starts() -> &'static [(u32, u32)] {
    static STARTS: OnceLock<Vec<(u32, u32)>> = OnceLock::new();
    STARTS.get_or_init(|| {
        let mut starts = vec![(0, 0); IndexKind::ALL.len()];
        for (number, value) in (0..).zip(values()) {
            let range = &mut starts[value.kind as usize];
            *range = if range.1 == 0 { (number, number + 1) } else { (range.0, number + 1) };
        }
        starts
    })
}
