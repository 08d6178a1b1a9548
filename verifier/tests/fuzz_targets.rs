//! Each fuzz target for about a second, on the same inputs each time; and with a planted bug, which it must find.

use ir3_compiler::ir3::{Attrs, Condition, Opcode, Program};
use ir3_compiler::pipeline::Stage;
use ir3_harness::fuzz_targets;
use ir3_harness::fuzz_targets::{CopyInput, ProgramInput, TargetFailure, TextInput};
use ir3_programs::mesa::input::collect_paths;
use ir3_semantics::support::random::hash;
use std::path::{Path, PathBuf};

/// Bytes from a seed; most strings are long enough for programs of 100 instructions.
fn bytes(seed: u64) -> Vec<u8> {
    let length = 16 + hash(&[seed]) % 600;
    (0..length).map(|i| hash(&[seed, i]) as u8).collect()
}

fn programs(count: u64) -> impl Iterator<Item = ProgramInput> {
    (0..count).map(|seed| ProgramInput::from_bytes(&bytes(seed)))
}

/// The number of interesting inputs.
fn kept<T: std::fmt::Debug>(
    inputs: impl Iterator<Item = T>,
    target: impl Fn(&T) -> Result<bool, TargetFailure>,
) -> usize {
    inputs.filter(|input| fuzz_targets::settle(target(input), input)).count()
}

/// The first failure among the inputs.
fn first<T>(
    mut inputs: impl Iterator<Item = T>,
    mut target: impl FnMut(&T) -> Result<bool, TargetFailure>,
) -> TargetFailure {
    inputs.find_map(|input| target(&input).err()).expect("the planted bug is found")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Texts: the corpus's programs unchanged, and with a piece replaced, repeated or cut off.
fn texts(count: u64) -> Vec<TextInput> {
    let paths = collect_paths(&[workspace().join("corpus")]).expect("the corpus can be walked");
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("the corpus can be read")).collect();
    let mut texts: Vec<_> = seeds.iter().map(|bytes| TextInput { bytes: bytes.clone() }).collect();
    texts.extend((0..count).map(|seed| {
        let number = |key: u64, n: usize| (hash(&[seed, key]) % n.max(1) as u64) as usize;
        let mut bytes = seeds[number(1, seeds.len())].clone();
        let other = &seeds[number(2, seeds.len())];
        let at = number(3, bytes.len());
        let end = (at + number(4, 40)).min(bytes.len());
        let from = number(5, other.len());
        let piece = other[from..(from + number(6, 40)).min(other.len())].to_vec();
        match number(7, 4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = hash(&[seed]) as u8,
            _ => drop(bytes.splice(at..end, piece)),
        }
        TextInput { bytes }
    }));
    texts
}

#[test]
fn ra_equiv() {
    assert!(kept(programs(150), fuzz_targets::ra_equiv) >= 140);
}

#[test]
fn ra_equiv_finds_a_dropped_move() {
    let failure = first(programs(40), |input| {
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == Stage::LowerCopies {
                drop_last(program, Opcode::Mov);
            }
        };
        fuzz_targets::ra_equiv_with(input, Some(&mut plant))
    });
    assert_eq!(failure.stage, "lower-copies refuted", "{failure}");
}

#[test]
fn select() {
    assert!(kept(programs(250), fuzz_targets::select) >= 240);
}

#[test]
fn select_finds_a_wrong_condition() {
    let failure = first(programs(40), |input| {
        let mut plant = |stage: Stage, program: &mut Program| {
            if stage == Stage::Select {
                for data in program.instrs.values_mut() {
                    if let Attrs::Compare(condition) = &mut data.attrs {
                        *condition = if *condition == Condition::Lt { Condition::Ge } else { Condition::Lt };
                    }
                }
            }
        };
        fuzz_targets::select_with(input, Some(&mut plant))
    });
    assert_eq!(failure.stage, "select refuted", "{failure}");
}

#[test]
fn parallel_copy() {
    let inputs = (0..600).map(|seed| CopyInput::from_bytes(&bytes(seed)));
    assert_eq!(kept(inputs, fuzz_targets::parallel_copy), 600);
}

#[test]
fn parallel_copy_finds_a_dropped_move_and_moves_in_the_wrong_order() {
    let inputs = || (0..20).map(|seed| CopyInput::from_bytes(&bytes(seed)));
    let dropped = first(inputs(), |input| {
        fuzz_targets::parallel_copy_with(input, &mut |program| {
            let block = program.layout[0];
            let list = &mut program.blocks[block].instrs;
            list.remove(list.len() / 2);
        })
    });
    let reversed = first(inputs(), |input| {
        fuzz_targets::parallel_copy_with(input, &mut |program| {
            let block = program.layout[0];
            let list = &mut program.blocks[block].instrs;
            let end = list.len() - 1;
            list[end / 2..end].reverse();
        })
    });
    for failure in [dropped, reversed] {
        assert_eq!(failure.stage, "lower-copies refuted", "{failure}");
    }
}

#[test]
fn readers() {
    let inputs = texts(1500);
    let count = inputs.len();
    assert!(kept(inputs.into_iter(), fuzz_targets::readers) >= count / 2);
}

#[test]
fn readers_find_a_writer_that_leaves_something_out() {
    let failure = first(texts(0).into_iter(), |input| {
        fuzz_targets::readers_with(input, &mut |text| *text = text.replacen(" ishl ", " ishr ", 1))
    });
    assert!(failure.what.starts_with("another program comes back"), "{failure}");
    let cut = first(texts(0).into_iter(), |input| {
        fuzz_targets::readers_with(input, &mut |text| text.truncate(text.len() / 2))
    });
    assert!(cut.what.contains("in the written text"), "{cut}");
}

#[test]
fn engines() {
    assert!(kept(programs(80), fuzz_targets::engines) >= 70);
}

#[test]
fn engines_find_a_text_of_another_program() {
    for (language, from, to) in [("nir", " iadd ", " isub "), ("ir3", "\tadd.u ", "\tsub.u ")] {
        let failure = first(programs(80), |input| {
            fuzz_targets::engines_with(input, &mut |engine, text| {
                if engine.starts_with(language) {
                    *text = text.replace(from, to);
                }
            })
        });
        assert!(failure.stage.starts_with(language) && failure.stage.ends_with("text"), "{failure}");
    }
}

#[test]
#[should_panic(expected = "refuted")]
fn a_failure_is_a_panic_with_the_program() {
    fuzz_targets::settle(Err(TargetFailure { stage: "select refuted".into(), what: "…".into() }), &"program");
}

/// The words for libFuzzer are those of the tables. `IR3_BLESS=1` writes them.
#[test]
fn the_dictionary_is_in_step() {
    let path = workspace().join("fuzz/dictionaries/readers.dict");
    let words = fuzz_targets::dictionary();
    if std::env::var_os("IR3_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
        std::fs::write(&path, &words).expect("the dictionary can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == words, "{} is out of step with the tables: run this test with IR3_BLESS=1", path.display());
}

/// Removes the last instruction with an opcode.
fn drop_last(program: &mut Program, opcode: Opcode) {
    for &block in program.layout.iter().rev() {
        let instrs = &program.instrs;
        let list = &mut program.blocks[block].instrs;
        if let Some(at) = list.iter().rposition(|&instr| instrs[instr].opcode == opcode) {
            list.remove(at);
            return;
        }
    }
}
