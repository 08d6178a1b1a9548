//! The operations of nir that SPIR-V has a form for.

use super::Family;
use super::accepted::every_texture;
use crate::generator::accepted::{self, WIDTHS};
use crate::spirv::Module;
use ir3_compiler::nir::{InstrData, Op, Shader, validate};
use ir3_compiler::target::Target;
use ir3_semantics::interp::nir::Decoded;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The names of operations, by family: arithmetic, intrinsics, texture operations.
pub type Names = [(Family, BTreeSet<&'static str>); 3];

/// The operations that have a meaning here and a form in SPIR-V, with some width, shape and stage; found once in a
/// process, by translating a program of each.
pub fn operations() -> &'static Names {
    static FOUND: OnceLock<Names> = OnceLock::new();
    FOUND.get_or_init(|| {
        let alu = Op::ALL.into_iter().flat_map(|op| WIDTHS.map(|bits| (op, bits)));
        let alu = alu.filter_map(|(op, bits)| accepted::operation(op, bits).map(|shader| (op.name(), shader)));
        [(Family::Alu, named(alu)), (Family::Intrinsics, named(intrinsics())), (Family::Textures, named(textures()))]
    })
}

fn intrinsics() -> impl Iterator<Item = (&'static str, Shader)> {
    let target = Target::default();
    accepted::forms().filter_map(move |form| accepted::intrinsic(form, &target).map(|shader| (form.op.name(), shader)))
}

fn textures() -> impl Iterator<Item = (&'static str, Shader)> {
    every_texture().filter_map(|shader| {
        let function = &shader.entry;
        let name = function.instrs_in_order().find_map(|(_, instr)| match &function.instrs[instr] {
            data @ InstrData::Tex(_) => Some(data.name()),
            _ => None,
        });
        name.map(|name| (name, shader))
    })
}

/// Programs of one intrinsic or texture operation that have a form, with the names of the operations.
pub fn programs() -> impl Iterator<Item = (&'static str, Shader)> {
    intrinsics().chain(textures()).filter(|(_, shader)| has_form(shader))
}

/// The names of programs that have a form.
fn named(programs: impl Iterator<Item = (&'static str, Shader)>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for (name, shader) in programs {
        if !found.contains(name) && has_form(&shader) {
            found.insert(name);
        }
    }
    found
}

fn has_form(shader: &Shader) -> bool {
    validate(shader).is_ok() && Decoded::new(shader).is_ok() && Module::of(shader).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_found() {
        let [(_, alu), (_, intrinsics), (_, textures)] = operations();
        assert!(alu.contains("iadd") && alu.len() > 150, "{}", alu.len());
        assert!(intrinsics.contains("ddx_fine") && intrinsics.contains("load_vertex_id"), "{intrinsics:?}");
        assert!(!intrinsics.contains("preamble_start_ir3"), "no form in SPIR-V");
        assert!(textures.contains("txf") && !textures.contains("txf_ms_fb"), "{textures:?}");
    }
}
