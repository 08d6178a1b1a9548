//! Operations that a comparison depends on: without the result of the operation, or without the operation where it has
//! none, the run in the interpreter has another end, or a word that was compared in all bits has another value or an
//! open one.

use super::races::first_race;
use ir3_compiler::nir::{InstrData, Shader};
use ir3_programs::vulkan::lanes_of;
use ir3_semantics::environment::env::{Env, first_lanes};
use ir3_semantics::interp::nir::Decoded;
use ir3_semantics::interp::{End, Outcome, OutputRow, Scratch};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of one operation that are tried in a program.
const INSTRUCTIONS: usize = 6;

/// The names of the operations of a program, in alphabetical order. Constants, phis and jumps are no operations.
#[must_use]
pub fn operations(shader: &Shader) -> BTreeSet<&'static str> {
    let function = &shader.entry;
    let names = function.instrs_in_order().filter_map(|(_, instr)| match &function.instrs[instr] {
        InstrData::Const { .. } | InstrData::Undef { .. } | InstrData::Phi { .. } | InstrData::Jump(_) => None,
        data => Some(data.name()),
    });
    names.collect()
}

/// A run, and its end if it is a race.
struct Run {
    outcome: Outcome,
    races: bool,
}

fn run(shader: &Shader, env: &Env, scratch: &mut Scratch) -> Option<Run> {
    let decoded = Decoded::new(shader).ok()?;
    let (outcome, trace) = scratch.traced(|scratch| decoded.run(env, env.fuel(), scratch));
    let races = first_race(&trace, first_lanes(lanes_of(shader))).is_some();
    Some(Run { outcome, races })
}

/// Returns true if a word that the first run has in all bits is another or an open one in the second run.
fn differ(a: &Run, b: &Run) -> bool {
    if b.outcome.end != End::Finished || a.races != b.races || a.outcome.killed != b.outcome.killed {
        return true;
    }
    let key = |outcome: &Outcome| -> BTreeMap<_, _> {
        let words = outcome.memory.iter();
        words.map(|it| ((it.space, it.binding, it.word), (it.value, it.poison))).collect()
    };
    let after = key(&b.outcome);
    let mut exact = a.outcome.memory.iter().filter(|it| it.poison == 0);
    let memory = exact.any(|it| after.get(&(it.space, it.binding, it.word)) != Some(&(it.value, 0)));
    let lanes = a.outcome.lanes & !a.outcome.killed & !a.outcome.helpers;
    memory
        || a.outcome.outputs.rows().iter().any(|row| {
            let is_same = |other: &&OutputRow| (other.base, other.component) == (row.base, row.component);
            let other = b.outcome.outputs.rows().iter().find(is_same);
            (0..64).filter(|lane| (lanes & !row.poison) >> lane & 1 != 0).any(|lane: usize| {
                other.is_none_or(|other| other.poison >> lane & 1 != 0 || other.values[lane] != row.values[lane])
            })
        })
}

/// Returns those of the operations that the words of a run depend on.
#[must_use]
pub fn depended_on(
    shader: &Shader,
    env: &Env,
    names: &BTreeSet<&'static str>,
    scratch: &mut Scratch,
) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let Some(whole) = run(shader, env, scratch) else { return found };
    let function = &shader.entry;
    for &name in names {
        let all = function.instrs_in_order().filter(|&(_, instr)| function.instrs[instr].name() == name);
        for (block, instr) in all.take(INSTRUCTIONS) {
            let mut without = shader.clone();
            match without.entry.instrs[instr].def() {
                Some(def) => without.entry.instrs[instr] = InstrData::Undef { def },
                None => without.entry.blocks[block].instrs.retain(|it| *it != instr),
            }
            if run(&without, env, scratch).is_some_and(|without| differ(&whole, &without)) {
                found.insert(name);
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_operation_is_not_depended_on() {
        let text = "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 1, 1, 1\nnum_ssbos: 1\nsubgroup_size: 1\n\
                    decl_function main () (entrypoint)\n\nimpl main {\n    block b0:\n    32 %0 = load_const (0x00000000)\n    \
                    32x4 %1 = @load_const_ir3 (%0) (base=0)\n    32 %2 = iadd %1.x, %1.y\n    32 %3 = imul %1.x, %1.y\n    \
                    @store_ssbo_ir3 (%2, %0, %0, %0) (base=0, wrmask=x)\n    block b1:\n}\n";
        let shader = ir3_compiler::nir::read(text).expect("a program");
        let names = operations(&shader);
        let env = Env { lanes: Some(1), ..Env::from_seed(1) };
        let found = depended_on(&shader, &env, &names, &mut Scratch::default());
        assert_eq!(found, ["iadd", "load_const_ir3", "store_ssbo_ir3"].into());
        assert!(names.contains("imul"));
    }
}
