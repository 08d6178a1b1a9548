//! The preamble: from `shps` to `shpe`, code that the driver runs in one wave of a draw. The other waves continue after
//! it as soon as it has reached `shpe`, and read the words of the constant file that it has stored.

use super::flow::sides;
use super::{Decoder, Result};
use ir3_compiler::ir3::{Block, Instr, Opcode, Program};
use rustc_hash::FxHashSet;

impl Decoder<'_> {
    /// Enters the preamble, which begins with `first`; `others` is where waves go on that do not run it.
    ///
    /// # Errors
    /// If the preamble stores words of the constant file after its end, or if the waves that do not run it continue
    /// elsewhere than after its end: runs and proofs of the wave that runs it do not show the code that the others
    /// skip. A preamble that may not terminate has no meaning, as the other waves wait for ever.
    pub(super) fn enter_preamble(&mut self, first: Block, others: Block) -> Result {
        let program = self.program;
        self.has_preamble = true;
        let program_after = reachable(program, others);
        let go_on = next_code(program, others, 0);
        // Blocks, before and after the end of the preamble.
        let mut seen = FxHashSet::default();
        let mut work = vec![(first, false)];
        while let Some((block, mut ended)) = work.pop() {
            if program_after.contains(&block) {
                let is_end = |instr: &Instr| program.instrs[*instr].opcode == Opcode::Shpe;
                if !ended
                    && reachable(program, block).iter().any(|&block| program.blocks[block].instrs.iter().any(is_end))
                {
                    return Err("other waves run the end of the preamble, too".to_owned());
                }
                self.out.ends_preamble &= ended;
                continue;
            }
            if !seen.insert((block, ended)) {
                continue;
            }
            let data = &program.blocks[block];
            let mut elects = None;
            for (at, &instr) in data.instrs.iter().enumerate() {
                let opcode = program.instrs[instr].opcode;
                match opcode {
                    Opcode::Shpe if ended => return Err("a preamble with two ends".to_owned()),
                    Opcode::Shpe if next_code(program, block, at + 1).is_none_or(|next| Some(next) != go_on) => {
                        return Err("other waves continue elsewhere than after the end of the preamble".to_owned());
                    }
                    Opcode::Shpe => ended = true,
                    Opcode::Getone | Opcode::Getlast => elects = Some(&program.instrs[instr]),
                    _ if ended && opcode.writes_consts() => {
                        return Err(format!("`{}` after the end of the preamble", opcode.name()));
                    }
                    _ => {}
                }
            }
            match (data.successors, elects) {
                ([None, None], _) => return Err("a program that ends in the preamble".to_owned()),
                // The wave reaches both sides, and first that of the elected lane.
                ([Some(first), Some(second)], Some(elects)) => work.push((sides(elects, [first, second])[0], ended)),
                (successors, _) => work.extend(successors.into_iter().flatten().map(|to| (to, ended))),
            }
        }
        Ok(())
    }
}

/// The blocks that can be reached from one, with it.
fn reachable(program: &Program, from: Block) -> FxHashSet<Block> {
    let mut found = FxHashSet::default();
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if found.insert(block) {
            work.extend(program.blocks[block].successors.iter().flatten());
        }
    }
    found
}

/// The first block that does more than to copy values, from an instruction of a block on, if no branch comes before it.
/// Copies for phis are on both paths: those of the waves that do not run the preamble are seen by proofs only.
fn next_code(program: &Program, mut block: Block, mut from: usize) -> Option<Block> {
    for _ in 0..=program.layout.len() {
        let data = &program.blocks[block];
        let copies = data.instrs[from..].iter().all(|&instr| only_copies(program.instrs[instr].opcode));
        match data.successors {
            [Some(next), None] if copies => (block, from) = (next, 0),
            _ => return (from == 0).then_some(block),
        }
    }
    None
}

fn only_copies(opcode: Opcode) -> bool {
    use Opcode::{Collect, Jump, Mov, Nop, ParallelCopy, Phi, ReloadMacro, SpillMacro, Split, Swz};
    matches!(opcode, Nop | Jump | Phi | ParallelCopy | Split | Collect | Mov | Swz | SpillMacro | ReloadMacro)
}
