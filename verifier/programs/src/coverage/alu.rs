//! Arithmetic: an operation and a width of its unsized operands, a number of components, the form of a source.

use ir3_compiler::nir::{Alu, Function, Op};

use crate::generator::accepted::{self, WIDTHS};

/// The numbers of components of values.
pub(super) const COMPONENTS: [u8; 7] = [1, 2, 3, 4, 5, 8, 16];

/// The sources whose forms count: operations with more are vectors.
const SOURCES: u32 = 4;

/// The forms of a source.
const FORMS: [&str; 3] = ["constant", "read twice", "swizzled"];

const FIRST_COMPONENTS: u32 = WIDTHS.len() as u32;
const FIRST_FORM: u32 = FIRST_COMPONENTS + COMPONENTS.len() as u32;
const STRIDE: u32 = FIRST_FORM + SOURCES * FORMS.len() as u32;

pub(super) const SIZE: u32 = Op::ALL.len() as u32 * STRIDE;

/// The property that a cell number of an operation encodes.
pub(super) enum Property {
    Width(u8),
    Components(u8),
    Form { source: usize, form: usize },
}

/// The operation and the property of a number.
pub(super) fn property(number: u32) -> (Op, Property) {
    let (op, rest) = (Op::ALL[(number / STRIDE) as usize], number % STRIDE);
    let property = if rest < FIRST_COMPONENTS {
        Property::Width(WIDTHS[rest as usize])
    } else if rest < FIRST_FORM {
        Property::Components(COMPONENTS[(rest - FIRST_COMPONENTS) as usize])
    } else {
        let (source, form) = ((rest - FIRST_FORM) / FORMS.len() as u32, (rest - FIRST_FORM) % FORMS.len() as u32);
        Property::Form { source: source as usize, form: form as usize }
    };
    (op, property)
}

/// The name of a cell; none if the row of the operation rules it out.
pub(super) fn name(number: u32) -> Option<String> {
    let (op, property) = property(number);
    let info = op.info();
    match property {
        Property::Width(bits) => accepted::operation(op, bits).map(|_| format!("{op}, {bits} bits")),
        Property::Components(components) => info.is_per_component().then(|| format!("{op}, {components} components")),
        Property::Form { source, form } => {
            let input = info.inputs.get(source)?;
            // Another source has to have the same shape to be the same value.
            let same = |other: &ir3_compiler::nir::Operand| {
                (other.ty.size, other.components) == (input.ty.size, input.components)
            };
            let fits = form != 1 || info.inputs[..source].iter().any(same);
            fits.then(|| format!("{op}, source {source} {}", FORMS[form]))
        }
    }
}

/// The numbers of the cells of an operation.
pub(super) fn visit(function: &Function, alu: &Alu, mut visit: impl FnMut(u32)) {
    let first = alu.op as u32 * STRIDE;
    let info = alu.op.info();
    let bits = info.width_source().map_or(32, |source| function.defs[alu.srcs[source].def].bit_size);
    if let Some(width) = WIDTHS.iter().position(|&width| width == bits) {
        visit(first + width as u32);
    }
    let components = function.defs[alu.def].num_components;
    if info.is_per_component()
        && let Some(at) = COMPONENTS.iter().position(|&count| count == components)
    {
        visit(first + FIRST_COMPONENTS + at as u32);
    }
    for (i, src) in alu.srcs.iter().enumerate().take(SOURCES as usize) {
        let at = first + FIRST_FORM + (i * FORMS.len()) as u32;
        if function.as_const(src.def).is_some() {
            visit(at);
        }
        if alu.srcs[..i].contains(src) {
            visit(at + 1);
        }
        let read = usize::from(info.source_components(i, components));
        if src.swizzle[..read].iter().zip(0..).any(|(&component, own)| component != own) {
            visit(at + 2);
        }
    }
}
