//! Random programs in register files that are just large enough, so that values have to be moved to free registers,
//! with lanes that diverge and reconverge. (In files of the machine's size that rarely happens.)

use ir3_compiler::arms::Counter;
use ir3_compiler::pipeline::{Options, Stage, run_stage, select};
use ir3_compiler::regalloc::{self, Error};
use ir3_compiler::target::{RegisterFiles, Target};
use ir3_programs::generator::{Features, Profile, from_seed};
use ir3_semantics::environment::env::Env;
use ir3_semantics::interp;
use ir3_semantics::interp::{End, Scratch};

const FUEL: u64 = 20_000;

#[test]
fn programs_survive_small_register_files() {
    let mut scratch = Scratch::new();
    let (mut compared, mut moved, mut moves) = (0, 0, 0);
    for seed in 0..400u64 {
        let gpu = ["a660", "a540", "a330", "a750"][seed as usize % 4];
        let target = Target::by_name(gpu).unwrap();
        let profile = Profile::ALL[seed as usize / 4 % Profile::ALL.len()];
        let generated = from_seed(seed, profile, Features::of(&target));
        let Ok(mut program) = select(&generated.shader, &target) else { continue };
        for stage in [Stage::CopyPropagation, Stage::DeadCode, Stage::Predicates] {
            run_stage(stage, &mut program, &target, &Options::default()).unwrap();
        }
        let source = interp::nir::Decoded::new(&generated.shader).unwrap();
        let env = Env::from_seed(seed);
        let expected = source.run(&env, FUEL, &mut scratch);
        if expected.end != End::Finished {
            continue;
        }
        // Starts with almost no registers, and grows the files by the number that the error reports missing.
        let mut limits = RegisterFiles { full: 4, half: 2, ..target.register_files() };
        let mut allocated = loop {
            let mut attempt = program.clone();
            match regalloc::run_within(&mut attempt, &target, limits) {
                Ok(()) => break attempt,
                Err(Error::NeedsSpilling { needed, file: "half", .. }) if needed > limits.half => limits.half = needed,
                Err(Error::NeedsSpilling { needed, file: "full", .. }) if 2 * needed > limits.full => {
                    limits.full = 2 * needed;
                }
                Err(error) => panic!("{gpu}, seed {seed}: {error} with {limits:?}"),
            }
            if target.merged_regs {
                limits.full = limits.full.max(limits.half.next_multiple_of(2));
            }
            assert!(limits.full <= 384 && limits.half <= 192);
        };
        for lowered in [false, true] {
            if lowered {
                regalloc::lower_copies::run(&mut allocated, &target, &Counter::default()).unwrap();
            }
            let decoded = interp::ir3::Decoded::new(&allocated, &target).unwrap();
            let actual = decoded.run(&env, 4 * FUEL, &mut scratch);
            if let Some(difference) = expected.first_difference(&actual) {
                panic!("{gpu}, {}, seed {seed}, lowered {lowered}: {difference} with {limits:?}", profile.name());
            }
        }
        let mut roomy = program;
        for stage in [Stage::RegisterAllocation, Stage::LowerCopies] {
            run_stage(stage, &mut roomy, &target, &Options::default()).unwrap();
        }
        let more = allocated.instruction_count().saturating_sub(roomy.instruction_count());
        moves += more;
        moved += usize::from(more > 0);
        compared += 1;
    }
    println!("{compared} programs; in {moved} of them {moves} moves to make room");
    // Values must have moved in many programs, or this tests nothing. The number of moves is the allocator's matter:
    // fewer are better.
    assert!(compared > 300 && 4 * moved > compared, "{moved} of {compared}");
}
