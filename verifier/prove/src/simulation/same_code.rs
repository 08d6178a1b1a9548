//! Programs with the same code: no proof has to be searched for.
//!
//! A pass that inserts waits, repeats instructions or encodes a program leaves the operations, their operands and the
//! control flow as they are. Both programs then decode to the same code, and so have the same runs in every
//! environment. This is decided before anything is executed, also for programs with loops that are too long to prove in
//! time.
//!
//! Legalization also removes blocks that only jump. The wave runs the first block in the layout in which lanes wait.
//! Let a block `b` do nothing but jump to a later block `t`. While lanes wait in `b`, no block after `b` runs, and the
//! lanes are in `t` before any does; blocks before `b` run first either way. So with `t` in the place of `b` in all
//! edges, the same lanes run the same blocks in the same order.

use super::{Proof, header};
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::{Category, Program};
use ir3_compiler::target::Target;
use ir3_semantics::interp::ir3::Decoded;
use ir3_semantics::interp::ir3::op::{Copies, DecodedBlock, DecodedEdge, Terminator};
use ir3_semantics::support::guards::{Guard, left_out};

/// Proves that `target` refines `source` if both are ir3 programs with the same code, up to the names of instructions
/// and SSA values, and up to what only takes time.
///
/// The register files have to have the same slots, so that a register is the same one in both. Attributes that a text
/// omits may differ between instructions of equal text, as in [`prove`](super::prove).
pub fn same_code(source: ProgramRef<'_>, target: ProgramRef<'_>, machine: &Target) -> Option<Proof> {
    let (ProgramRef::Ir3(before), ProgramRef::Ir3(after)) = (source, target) else { return None };
    if size(before) != size(after) || header::difference(source, target).is_some() {
        return None;
    }
    if [before, after].into_iter().any(|program| header::unprinted(program).is_some()) {
        return None;
    }
    let (source_code, source_places) = Decoded::with_places(before, machine).ok()?;
    let (target_code, target_places) = Decoded::with_places(after, machine).ok()?;
    let is_same = source_code.ends_preamble
        && source_places.names == target_places.names
        && (without_jumps(source_code).is_same_code(&without_jumps(target_code)) || left_out(Guard::SameCode));
    is_same.then(|| Proof { assumptions: header::omitted_declarations(source, target), ..Proof::default() })
}

/// The program without the blocks that only jump to a later one. The first block remains.
fn without_jumps(mut code: Decoded) -> Decoded {
    let is_jump = |position: usize| {
        let block: &DecodedBlock = &code.blocks[position];
        position > 0
            && block.start == block.end
            && matches!(block.terminator, Terminator::Jump(DecodedEdge { to, copies })
                if to as usize > position && copies.start == copies.end)
    };
    let kept: Vec<bool> = (0..code.blocks.len()).map(|position| !is_jump(position)).collect();
    // The new positions of the blocks, or of the first one that the jumps lead to.
    let mut places = vec![0; kept.len()];
    let mut place = kept.iter().filter(|&&kept| kept).count() as u32;
    for position in (0..kept.len()).rev() {
        places[position] = match code.blocks[position].terminator {
            Terminator::Jump(edge) if !kept[position] => places[edge.to as usize],
            _ => {
                place -= 1;
                place
            }
        };
    }
    let moved = |edge: DecodedEdge| {
        let copies = if edge.copies.start == edge.copies.end { Copies::default() } else { edge.copies };
        DecodedEdge { to: places[edge.to as usize], copies }
    };
    let mut flags = kept.iter();
    code.blocks.retain(|_| flags.next() == Some(&true));
    for block in &mut code.blocks {
        match &mut block.terminator {
            Terminator::End(..) => {}
            Terminator::Jump(edge) | Terminator::Skip(_, edge, _) => *edge = moved(*edge),
            Terminator::Branch(_, yes, no, _) => (*yes, *no) = (moved(*yes), moved(*no)),
        }
    }
    code
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

    const SOURCE: &str = "// {output=0.x}\nblock1 {\n\t0001:0000:000: \tmov.u32u32 r0.x, c0.x\n\t0002:0000:000: \tadd.u r1.x, r0.x, c1.x\n\t\
        0003:0000:000: \tend r1.x (0)\n}";

    fn are_same(source: &Program, target: &Program) -> bool {
        same_code(ProgramRef::Ir3(source), ProgramRef::Ir3(target), &Target::default()).is_some()
    }

    fn is_same(target: &str) -> bool {
        are_same(&program(SOURCE), &program(target))
    }

    #[test]
    fn names_and_waits_do_not_matter() {
        assert!(is_same(SOURCE));
        assert!(is_same(&SOURCE.replace("0002:", "0009:")));
        assert!(is_same(&SOURCE.replace("\tadd.u r1.x", "\t(ss)add.u r1.x")));
        assert!(is_same(&SOURCE.replace("\t0002:", "\t0009:0000:000: \tnop\n\t0002:")));
    }

    /// A branch around a block, with a block that only jumps.
    const BRANCH: &str = "// {output=0.x}\nblock1 {\n\t0001:0000:000: \tcmps.s.lt pp0.x, c0.x, imm[0.000000,1,0x1]\n\t0002:0000:000: \tbr pp0.x\n\t\
        /* succs: block2, block3 */\n}\nblock2 {\n\tpred: block1\n\t0003:0000:000: \tmov.u32u32 r0.x, c0.x\n\t\
        0004:0000:000: \tjump\n\t/* succs: block4 */\n}\nblock3 {\n\tpred: block1\n\t0005:0000:000: \tjump\n\t\
        /* succs: block4 */\n}\nblock4 {\n\tpred: block2, block3\n\t0006:0000:000: \tend r0.x (0)\n}";

    #[test]
    fn blocks_that_only_jump_do_not_matter() {
        let without = BRANCH
            .replace("succs: block2, block3", "succs: block2, block4")
            .replace("block3 {\n\tpred: block1\n\t0005:0000:000: \tjump\n\t/* succs: block4 */\n}\n", "")
            .replace("pred: block2, block3", "pred: block1, block2");
        let other = without.replace("succs: block2, block4", "succs: block4, block2");
        assert_ne!(without, other);
        let [before, without, other] = [BRANCH, &without, &other].map(program);
        assert!(are_same(&before, &without) && are_same(&without, &before) && are_same(&before, &before));
        assert!(!are_same(&before, &other));
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
