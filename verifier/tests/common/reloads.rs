//! A planted bug of spilling, for each kind of spilling.

use ir3_compiler::ir3::{Attrs, Opcode, Program, SrcOperand};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::Target;
use ir3_harness::check::Checker;
use ir3_programs::generator::{Features, Profile, from_seed};
use ir3_prove::registers;
use ir3_semantics::environment::env::Env;

/// Moves the first reload of a block that follows the store to its slot to before that store.
fn misplace_reload(program: &mut Program) -> bool {
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut stores: Vec<(u32, usize)> = Vec::new();
        let list = &program.blocks[block].instrs;
        for (at, &instr) in list.iter().enumerate() {
            let data = &program.instrs[instr];
            match (data.opcode, &data.attrs) {
                (Opcode::SpillMacro, Attrs::Memory(memory)) => stores.push((memory.offset as u32, at)),
                (Opcode::ReloadMacro, _) => {
                    let Some(SrcOperand::Immediate(address)) = data.srcs.get(1).map(|src| src.operand) else {
                        continue;
                    };
                    if let Some(&(_, store)) = stores.iter().find(|&&(slot, _)| slot == address) {
                        let list = &mut program.blocks[block].instrs;
                        let reload = list.remove(at);
                        list.insert(store, reload);
                        return true;
                    }
                }
                _ => {}
            }
        }
    }
    false
}

/// Plants such reloads in generated programs, compiled with these options: the register checker proves none of them,
/// and runs refute more than half, after `spill`.
pub fn are_refuted_after_spill(options: Options) {
    let (mut changed, mut refuted, mut unproved) = (0, 0, 0);
    for seed in 0..60u64 {
        let target = Target::default();
        let shader = from_seed(seed, Profile::Pressure, Features::of(&target)).shader;
        let mut before: Option<Program> = None;
        let mut is_changed = false;
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == Stage::Spill {
                is_changed = misplace_reload(program);
                let source = before.as_ref().expect("a stage before");
                unproved += u32::from(is_changed && registers::prove(source, program, &target).is_err());
            }
            before = Some(program.clone());
        };
        let report = Checker::new(target, options).program(&shader, &Env::from_seeds(&[seed, 7]), Some(&mut plant));
        changed += u32::from(is_changed);
        if let Some(refutation) = report.refutation() {
            assert!(is_changed && refutation.stage == Stage::Spill.name(), "seed {seed}: {}", refutation.stage);
            refuted += 1;
        }
    }
    println!("{changed} changed, {refuted} refuted, {unproved} not proved");
    assert!(changed > 20 && refuted * 2 > changed && unproved == changed, "{changed} {refuted} {unproved}");
}
