//! What all steps do to a function.

use ir3_compiler::nir::{Def, DefData, Function};

/// A new value of the shape of another.
pub(super) fn new_def(function: &mut Function, shape: &DefData) -> Def {
    function.new_def(shape.num_components, shape.bit_size, shape.divergent)
}
