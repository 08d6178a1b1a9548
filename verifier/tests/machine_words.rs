//! `disassemble`, `assemble` and `ir3-selftest words`, as programs.

use crate::common::folder::{Folder, command};
use ir3_compiler::target::Generation;
use ir3_harness::campaigns::words::{Counts, listings, random};
use ir3_harness::fuzz_targets::{WordsInput, words};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;

const LISTING: &str = "; gpu gen 6, made up
0000[42b300f8_20050000] cmps.s.ge p0.x, r0.x, 5
0001[00000500_00000000] (rpt5)nop
0002[00800000_00000002] br p0.x, #l4
0003[a0c01f04_0cc00005] sam (f32)(xyzw)r1.x, r0.z, s#6, t#6
0004[03000000_00000000] l4:
0004[03000000_00000000] end
";

fn run(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments.split_whitespace()).output().expect("our own program")
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

#[test]
fn listings_go_through_words_and_back() {
    let folder = Folder::new("machine-words");
    fs::write(folder.path().join("x.txt"), LISTING).expect("a file");
    let body = LISTING.split_once('\n').map(|(_, body)| body);
    let listing = run(folder.path(), "disassemble x.txt --as log");
    assert_eq!((listing.status.code(), Some(text(&listing))), (Some(0), body));
    let words = run(folder.path(), "assemble x.txt");
    assert_eq!(words.status.code(), Some(0));
    assert_eq!(
        text(&words),
        "42b300f8_20050000\n00000500_00000000\n00800000_00000002\na0c01f04_0cc00005\n03000000_00000000\n"
    );
    fs::write(folder.path().join("words.txt"), text(&words)).expect("a file");
    assert_eq!(Some(text(&run(folder.path(), "disassemble words.txt --as log"))), body);
    let plain = run(folder.path(), "disassemble words.txt --plain");
    fs::write(folder.path().join("plain.s"), text(&plain)).expect("a file");
    assert_eq!(run(folder.path(), "assemble plain.s -o code.bin").status.code(), Some(0));
    assert_eq!(fs::read(folder.path().join("code.bin")).expect("the file").len(), 40);
    assert_eq!(Some(text(&run(folder.path(), "disassemble code.bin --binary --as log"))), body);
}

#[test]
fn what_is_no_code_is_refused_with_its_place() {
    let folder = Folder::new("machine-words-bad");
    for (content, arguments, said) in [
        ("nop\nadd.u r0.x, r1.x\n", "assemble x", "x:2:17: found the end of the line, expected"),
        ("nop\njump #nowhere\n", "assemble x", "x:2:7: found `nowhere`, expected a label of the code"),
        ("a:\na:\nnop\n", "assemble x", "x:2:1: found `a:`, expected a label that is there once"),
        ("getone #1\n", "assemble x --gpu a750 --nothing", "unexpected argument"),
        (
            "swz.u32u32 r0.x, r0.y, r0.y, r0.x\n",
            "assemble x --gpu a420",
            "found `swz.u32u32 r0.x, r0.y, r0.y, r0.x`, expected an instruction of a4xx",
        ),
        ("0000000000000000\nffffffffffffffff\n", "disassemble x", "1 of 2 words are no instructions"),
        ("0000000000000000 12\n", "disassemble x", "x:1:18: expected a word in hexadecimal"),
        (
            "; gpu gen 5\n0000[03000000_00000000] end\n",
            "disassemble x --gpu a660",
            "found a log of a5xx, expected one of a6xx",
        ),
        ("abc", "disassemble x --binary", "3 bytes, expected words of 8 bytes"),
        ("", "disassemble nothing", "nothing: cannot be read"),
    ] {
        fs::write(folder.path().join("x"), content).expect("a file");
        let output = run(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{arguments}: {error}, expected {said}");
    }
}

#[test]
fn the_campaign_notices_texts_that_are_not_those_of_their_words() {
    let (mut counts, mut mnemonics) = (Counts::default(), BTreeSet::new());
    listings("x", LISTING, &mut counts, &mut mnemonics);
    assert_eq!((counts.words, counts.wrong, mnemonics.len()), (5, 0, 5));
    for (from, to) in
        [("r0.x, 5", "r0.x, 6"), ("t#6", "t#7"), ("#l4", "#l3"), ("(rpt5)", "(rpt4)"), ("00_00000002", "00_00000001")]
    {
        let mut counts = Counts::default();
        listings("x", &LISTING.replacen(from, to, 1), &mut counts, &mut mnemonics);
        assert!(counts.wrong > 0, "{from}");
    }
    let folder = Folder::new("machine-words-wrong");
    fs::write(folder.path().join("x.log"), LISTING.replacen("t#6", "t#7", 1)).expect("a file");
    let output = run(folder.path(), "ir3-selftest words x.log");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}

#[test]
fn random_words_come_back_or_are_refused() {
    let mut counts = Counts::default();
    random(1, 20_000, &mut counts);
    assert_eq!(counts.failures, Vec::<String>::new());
    assert!(counts.instructions > 2_000 && counts.decoded > 1_000, "{counts:?}");
    let input = |words: &[u64]| WordsInput { generation: Generation::A6xx, words: words.to_vec() };
    assert_eq!(words(&input(&[u64::MAX])), Ok(false));
    assert_eq!(words(&input(&[u64::MAX, 0])), Ok(true));
}
