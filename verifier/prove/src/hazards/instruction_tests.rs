//! Hazards of single instructions: operands that a text does not list, instructions that come in pairs, and lanes that
//! are read.

use super::tests::{IMM, kinds, pair, report};
use super::*;
use ir3_semantics::machine::program_of_blocks as blocks;

const EARLY: HazardKind = HazardKind::EarlyRead { missing: 1 };

#[test]
fn an_address_is_read_where_it_is_not_listed() {
    let address = "mov.s16s16 hr61.x, hr8.x";
    for relative in ["mov.f32f32 r2.x, c<a0.x + 4>", "mov.f32f32 r2.x, r<a0.x + 4> (2)"] {
        pair("a660", EARLY, &[address, "(rpt4)nop", relative], &[address, "(rpt5)nop", relative]);
    }
    let write = "mov.f32f32 r<a0.x + 4> (2), r2.x";
    pair("a660", EARLY, &[address, "(rpt4)nop", write], &[address, "(rpt5)nop", write]);
    let sampler = "mov.u16u16 hr61.y, hr8.x";
    let sample = "sam.a1en.s2en (f32)(x)r4.x, hr0.x (wrmask=0x3), r1.x (wrmask=0x3)";
    pair("a660", EARLY, &[sampler, "(rpt4)nop", sample], &[sampler, "(rpt5)nop", sample]);
    // Without the flag it reads no address.
    let plain = "sam.s2en (f32)(x)r4.x, hr0.x (wrmask=0x3), r1.x (wrmask=0x3)";
    assert_eq!(kinds(&[sampler, plain], "a660"), []);
    // A released address is not read, whether it is listed or not.
    let released = ["(ul)mov.f32f32 r2.x, r<a0.x + 4> (2)", "mov.f32f32 r3.x, r<a0.x + 4> (2)"];
    assert_eq!(kinds(&released, "a660"), [HazardKind::AddressReleased]);
}

#[test]
fn a_fine_derivative_is_two_instructions() {
    for name in ["dsxpp.1", "dsypp.1"] {
        let first = format!("{name} (f32)(x)r1.x, r0.x");
        let second = format!("{name}.p (f32)(x)r1.x, r0.x");
        pair("a660", HazardKind::LoneDerivative, &[&first], &[&first, &second]);
        assert_eq!(kinds(&[&second], "a660"), [HazardKind::LoneDerivative]);
        // Of another value, or of another direction; and one after the other.
        let other = second.replace("r0.x", "r0.y");
        assert_eq!(kinds(&[&first, &other], "a660")[..1], [HazardKind::LoneDerivative]);
        for wait in ["(ss)nop", "(sy)nop"] {
            assert_eq!(kinds(&[&first, wait, &second], "a660")[..1], [HazardKind::LoneDerivative]);
        }
        // Mesa 26.2 ends helper lanes there, which is another matter.
        assert_eq!(kinds(&[&first, "nop", &second], "a660"), []);
        let ends = kinds(&[&first, "nop // {flags=eq}", &second], "a660");
        assert_eq!(ends, [HazardKind::HelpersEnded]);
        let again = [&first, &second, "(sy)nop", &first, &second].map(|line: &str| line);
        assert_eq!(kinds(&again, "a660"), []);
        // On a7xx the second one may be the last reader.
        let last = second.replace("r0.x", "(last)r0.x");
        assert_eq!(kinds(&[&first, &last], "a750"), []);
    }
}

#[test]
fn constants_are_pushed_twice_on_some_gpus() {
    let push = |to: u32| format!("stsc imm[0.000000,{to},0x{to:x}], {IMM} // {{type=u32, components=4}}");
    let (push, other) = (push(0), push(4));
    let wait = "(ss)nop";
    for gpu in ["a740", "x1-85", "a32"] {
        let kind = HazardKind::StscOnce;
        pair(gpu, kind, &[&push, wait], &[&push, wait, &push, wait]);
        assert_eq!(kinds(&[&push, wait, &other, wait], gpu), [kind; 2]);
        assert_eq!(kinds(&[&push, "nop", &push, wait], gpu), [kind; 2]);
    }
    for gpu in ["a730", "a750"] {
        assert_eq!(kinds(&[&push, wait], gpu), []);
    }
}

#[test]
fn the_first_lane_may_be_a_helper() {
    let release = "nop // {flags=eq}";
    let read = "mov.u32u32 sr48.x, r0.x";
    pair("a660", HazardKind::HelpersEnded, &[release, read], &[read, release]);
    // A value that all lanes share is that of each of them; so are constants and shared registers.
    assert_eq!(kinds(&["mov.u32u32 r0.x, c0.x", release, "(rpt2)nop", read], "a660"), []);
    assert_eq!(kinds(&[release, "mov.u32u32 sr48.x, c0.x", "(ss)mov.u32u32 sr48.y, sr48.x"], "a660"), []);
    // Lanes that waited have another value.
    let diamond = |write: &str| {
        let list: [(&[&str], &str); 4] = [
            (&["mov.u32u32 r0.x, c0.x", "br !pp0.x target=block2"], "block1, block2 (div)"),
            (&[write, "jump target=block3"], "block3"),
            (&["(jp)nop"], "block3"),
            (&["(jp)(rpt5)nop // {flags=eq}", read, "end"], ""),
        ];
        report(&blocks(&list), "a660").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(diamond("nop"), []);
    assert_eq!(diamond("mov.u32u32 r0.x, c1.x"), [HazardKind::HelpersEnded]);
}

/// The scalar ALU reads `a0.x` late; no instruction of another block waits for that if a writer of the address precedes
/// its readers.
#[test]
fn an_address_that_another_block_has_read_is_written() {
    let read = "mov.u32u32 sr48.x, c<a0.x + 4>, hr61.x";
    let write = "mov.s16s16 hr61.x, hr8.x";
    let kind = HazardKind::WriteBeforeRead(failure::Flag::Ss);
    pair("a750", kind, &[read, write], &[read, "(ss)nop", write]);
    let apart = |first: &str, second: &str| {
        let list: [(&[&str], &str); 2] = [(&[first, "jump target=block1"], "block1"), (&[second, "end"], "")];
        report(&blocks(&list), "a750").hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    assert_eq!(apart(read, write), []);
    // Shared registers are waited for everywhere.
    assert_eq!(apart("add.u sr48.x, sr48.y, c0.x", "mov.u32u32 sr48.y, r0.x"), [kind]);
}
