//! Programs with the same code: no proof has to be searched for.
//!
//! A pass that inserts waits, repeats instructions or encodes a program leaves the operations, their operands and the
//! control flow as they are. Both programs then decode to the same code, and so have the same runs in every environment.
//! This is decided before anything is executed, also for programs with loops that are too long to prove in time.

use super::{Proof, header};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::{Category, Program};
use ir3_compiler::target::Target;
use ir3_semantics::interp::ir3::Decoded;

/// Proves that `target` refines `source` if both are ir3 programs with the same code, up to the names of instructions
/// and SSA values, and up to what only takes time.
///
/// The register files have to have the same slots, so that a register is the same one in both. Attributes that a text
/// omits may differ between instructions of equal text, as in [`prove`](super::prove).
pub fn same_code(source: ProgramRef<'_>, target: ProgramRef<'_>, machine: &Target) -> Option<Proof> {
    let (ProgramRef::Ir3(before), ProgramRef::Ir3(after)) = (source, target) else { return None };
    let are_alike = before.layout.len() == after.layout.len() && size(before) == size(after);
    if !are_alike || header::difference(source, target).is_some() {
        return None;
    }
    if [before, after].into_iter().any(|program| header::unprinted(program).is_some()) {
        return None;
    }
    let (source_code, source_places) = Decoded::with_places(before, machine).ok()?;
    let (target_code, target_places) = Decoded::with_places(after, machine).ok()?;
    let is_same = source_code.ends_preamble
        && source_code.is_same_code(&target_code)
        && source_places.names == target_places.names;
    is_same.then(|| Proof { assumptions: header::omitted_declarations(source, target), ..Proof::default() })
}

/// The number of operations, to reject most programs without decoding them.
fn size(program: &Program) -> usize {
    let computes = |category| {
        matches!(category, Category::Alu2 | Category::Alu3 | Category::Sfu | Category::Memory | Category::Texture)
    };
    let instrs = program.iter_instrs().map(|(_, instr)| &program.instrs[instr]);
    instrs.filter(|data| computes(data.opcode.category())).map(|data| 1 + usize::from(data.repeat)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        ir3_compiler::ir3::text::read(text).unwrap()
    }

    const SOURCE: &str = "block1 {\n\t0001:0000:000: \tmov.u32u32 r0.x, c0.x\n\t0002:0000:000: \tadd.u r1.x, r0.x, c1.x\n\t\
        0003:0000:000: \tend r1.x (0)\n}";

    fn is_same(target: &str) -> bool {
        let (source, target) = (program(SOURCE), program(target));
        same_code((&source).into(), (&target).into(), &Target::default()).is_some()
    }

    #[test]
    fn names_and_waits_do_not_matter() {
        assert!(is_same(SOURCE));
        assert!(is_same(&SOURCE.replace("0002:", "0009:")));
        assert!(is_same(&SOURCE.replace("\tadd.u r1.x", "\t(ss)add.u r1.x")));
        assert!(is_same(&SOURCE.replace("\t0002:", "\t0009:0000:000: \tnop\n\t0002:")));
    }

    #[test]
    fn operands_and_operations_matter() {
        for (old, new) in [
            ("add.u r1.x, r0.x, c1.x", "add.u r1.x, r0.x, c1.y"),
            ("add.u r1.x, r0.x, c1.x", "add.u r1.x, c1.x, r0.x"),
            ("add.u r1.x, r0.x, c1.x", "add.u r1.x, r0.y, c1.x"),
            ("add.u r1.x, r0.x, c1.x", "sub.u r1.x, r0.x, c1.x"),
            ("add.u r1.x, r0.x, c1.x", "add.s r1.x, r0.x, (neg)c1.x"),
            ("mov.u32u32 r0.x, c0.x", "mov.u32u32 r0.y, c0.x"),
            ("end r1.x (0)", "end r0.x (0)"),
        ] {
            let target = SOURCE.replace(old, new);
            assert_ne!(target, SOURCE);
            assert!(!is_same(&target), "{new}");
        }
    }
}
