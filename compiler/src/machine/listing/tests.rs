//! Listings of each format, and words through each of them.

use super::*;

const DUMP: &str = "\
gpu_id: 540
\t\topcode: CP_LOAD_STATE4 (30) (4 dwords)
\t\t\t:2:0000:0000[46d00000x_20020000x] shl.b r0.x, r0.x, 2
\t\t\t:0:0001:0001[00800000x_00000002x] br p0.x, #l3
\t\t\t:0:0002:0002[00000000x_00000000x] nop
\t\t\t:0:0003:0003[08000000x_00000000x] 
\t\t\t:0:0003:0003[08000000x_00000000x] l3:
\t\t\t:0:0003:0003[08000000x_00000000x] (jp)nop
\t\t\t:0:0004:0004[03000000x_00000000x] end
\t\t\tStats:
\t\t\t- shaderdb: 5 instr, 0 nops
gpu_id: 630
\t:0:0000:0000[03000000x_00000000x] end
\t:0:0000:0000[03000000x_00000000x] end
\t:0:0003:0003[00000000x_00000000x] nop
\t:0:0005:0003[03000000x_00000000x] l5:
";

#[test]
fn programs_of_a_dump_are_separated() {
    let found = listings(DUMP);
    let ips = |listing: &Listing<'_>| listing.lines.iter().map(|line| line.ip).collect::<Vec<_>>();
    let all: Vec<_> = found.iter().map(|its| (its.generation, ips(its), its.lines[0].line)).collect();
    let (a5, a6) = (Some(Generation::A5xx), Some(Generation::A6xx));
    let expected = vec![(a5, vec![0, 1, 2, 3, 4], 2), (a6, vec![0], 12), (a6, vec![0, 3, 5], 13)];
    assert_eq!(all, expected);
    assert_eq!((found[0].lines[3].text, found[2].lines[2].text), ("(jp)nop", ""));
    assert_eq!(found[0].gap(), None);
    assert_eq!(found[2].gap().map(|pair| pair.map(|line| line.ip)), Some([0, 3]));
}

#[test]
fn ten_thousand_words_come_back_from_each_format() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut known = vec![0x42b3_00f8_2005_0000, 0x0080_0000_0000_0002, 0xa0c0_1f04_0cc0_0005, 0xc026_0004_0067_4000];
    let mut unknown = 0;
    for generation in Generation::ALL {
        for _ in 0..20 {
            let words: Vec<u64> = (0..100)
                .map(|_| {
                    let old: u64 = known[next() as usize % known.len()];
                    let word = if next() % 4 == 0 { next() } else { old ^ 1 << (next() % 64) };
                    if encoding::decode(generation, word).is_ok() {
                        known.push(word);
                    } else {
                        unknown += 1;
                    }
                    word
                })
                .collect();
            let items = disassemble(generation, &words);
            for text in [write(&items), write_disasm(&items)] {
                assert_eq!(listings(&text)[0].words(), words);
                assert_eq!(assemble(generation, &text), Ok(words.clone()));
            }
            assert_eq!(assemble(generation, &write_plain(&items)), Ok(words.clone()));
            let dump = write_dump(&items);
            let of_dump = listings(&dump)[0].words();
            assert!(words.starts_with(&of_dump), "{dump}");
            let ends = items.iter().any(
                |item| matches!(item, Item::Instr(_, _, Ok(text)) if text.contains("end") || text.contains("chsh")),
            );
            assert!(ends || of_dump == words, "{dump}");
        }
    }
    assert!(unknown > 1000 && known.len() > 4000, "{unknown} unknown, {} known", known.len());
}

#[test]
fn a_dump_counts_cycles_and_ends_after_the_padding() {
    let words = assemble(
        Generation::A6xx,
        "(rpt5)nop\n(nop2)add.f r0.x, r0.y, r0.z\njump #l3\nl3:\nend\nnop\nnop\nnop\nnop\nnop\n",
    );
    let expected = "\
:0:0000:0000[00000500x_00000000x] (rpt5)nop
:2:0001:0006[40180000x_00020001x] (nop2) add.f r0.x, r0.y, r0.z
:0:0002:0009[01000000x_00000001x] jump #l3
:0:0003:0010[03000000x_00000000x] l3:
:0:0003:0010[03000000x_00000000x] end
:0:0004:0011[00000000x_00000000x] nop
:0:0005:0012[00000000x_00000000x] nop
:0:0006:0013[00000000x_00000000x] nop
:0:0007:0014[00000000x_00000000x] nop
";
    assert_eq!(write_dump(&disassemble(Generation::A6xx, &words.expect("code"))), expected);
}

#[test]
fn positions_of_ir3_disasm_have_three_columns() {
    let items = disassemble(Generation::A6xx, &[0x0300_0000_0000_0000, 0xc6b8_b8c7_fbb0_6c83]);
    assert_eq!(write_disasm(&items), "  0[03000000_00000000] end\n  1[c6b8b8c7_fbb06c83] no match: c6b8b8c7fbb06c83\n");
    let items = disassemble_at(Generation::A6xx, &[0x0100_0000_0000_0001, 0], 999);
    assert_eq!(
        write_disasm(&items),
        "999[01000000_00000001] jump #l1000\n1000[00000000_00000000] l1000:\n1000[00000000_00000000] nop\n"
    );
}

#[test]
fn assembly_is_as_free_as_that_of_computerator() {
    let words = |text: &str| assemble(Generation::A6xx, text);
    let plain = words("stp.u32 p[r0.x], r1.x, 1\nstp.u32 p[r0.x+4], r1.x, 1\nnop\n(sy)end\n").expect("assembly");
    assert_eq!(
        words("stp.u32 p[r0.x + 0], r1.x, 1\nstp.u32 p[r0.x + 4] , r1.x , 1\nnop(sy)\nend\n"),
        Ok(plain.clone())
    );
    assert_eq!(
        words("@localsize 1, 1, 1\n stp.u32 p[ r0.x], r1.x,1 ; it\nstp.u32 p[r0.x +4],r1.x, 1\nnop (sy) ; c\nend"),
        Ok(plain)
    );
    let labels = words("br !p0.x, #endif\nendif: another:\nend\n");
    assert_eq!(labels, words("br !p0.x, #l1\nl1: end\n"));
    let full = words("@fullnopstart\nnop\n@fullnopend\n@fullsyncstart\nend\n@fullsyncend\n").expect("assembly");
    assert_eq!(Ok(full), words("(rpt5)nop\nnop\n(ss)(sy)nop\nend\n"));
    assert_eq!(
        words("raw 0x0300000000000000\nno match: deadbeefdeadbeef\n"),
        Ok(vec![0x0300_0000_0000_0000, 0xdead_beef_dead_beef])
    );
    for (text, line, column) in [("nop(sy)\n", 1, 8), ("@nothing\nend\n", 1, 1), ("nop\nend 3\n", 2, 5)] {
        let error = words(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
    let assembled = assembled(Generation::A6xx, "@buf 4\n\nnop\n; c\nend\n").expect("assembly");
    assert_eq!((assembled.lines, assembled.directives.len()), (vec![2, 4], 1));
}
