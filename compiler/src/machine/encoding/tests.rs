//! Words and their texts.

use super::*;
use crate::ir3::{
    AddressSpace, Attrs, Category, InstrData, InstrFlags, Mods, Opcode, PhysReg, Place, RegClass, SrcOperand, WriteMask,
};
use crate::machine::listing::listings;
use std::fs;
use std::path::{Path, PathBuf};

fn text_of(generation: Generation, word: u64) -> String {
    let mut text = String::new();
    disassemble(generation, word, None, &mut text).unwrap_or_else(|error| panic!("{error}"));
    text
}

fn word_of(generation: Generation, text: &str) -> u64 {
    assemble(generation, text, 0, &|_| None).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Fields of texts, and the messages about operands that do not fit.
#[test]
fn operands_that_do_not_fit_are_errors_that_name_the_field() {
    let mut wrong = Vec::new();
    for (generation, text, said) in [
        (Generation::A6xx, "add.u r0.x, r0.y, 5000", "column 19: expected a number that fits the 11 bits of SRC2"),
        (Generation::A6xx, "add.f r0.x, r64.x, r0.x", "column 14: expected a number below 64"),
        (Generation::A6xx, "add.f r0.x, hr1.x, r0.x", "column 20: expected a register as wide as the others"),
        (Generation::A6xx, "(rpt4)add.f r0.x, r1.x, r0.x", "column 1: expected a number that fits the 2 bits of NOP"),
        (Generation::A6xx, "(sat)mov.f32f32 r0.x, r0.y", "column 1: expected a flag that `mov` has"),
        (Generation::A6xx, "cov.f32f32 r0.x, r0.y", "expected `mov`, since the types are the same"),
        (
            Generation::A6xx,
            "ldl.u32 r0.x, l[r0.x+5000], 1",
            "column 21: expected a number that fits the 13 bits of OFF",
        ),
        (Generation::A4xx, "swz.u32u32 r0.x, r0.y, r0.y, r0.x", "column 1: expected an instruction of a4xx"),
        (Generation::A6xx, "jump #nowhere", "column 7: expected a label of the code"),
        (Generation::A6xx, "nop r0.x", "column 5: expected the end of the line"),
    ] {
        match assemble(generation, text, 0, &|_| None) {
            Err(error) if error.to_string().contains(said) => {}
            other => wrong.push(format!("{text}: {other:?}, expected {said}")),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The words of aliases, of predicates of the scalar ALU, and of addresses in constants, as Mesa prints them for a750.
#[test]
fn words_of_a7xx_that_mesa_has_since_25_1() {
    for (word, text) in [
        (0xe405_0003_0000_0004_u64, "alias.tex.b32.0 r0.w, r1.x"),
        (0xe415_01a0_3f80_0000, "alias.tex.b32.1 r40.x, (0x3f800000)"),
        (0xe40d_0009_0000_0007, "alias.tex.b32.0 r2.y, c1.w"),
        (0xe401_0002_0000_0005, "alias.tex.b16.0 hr0.z, hr1.y"),
        (0xe411_00a0_0000_3c00, "alias.tex.b16.0 hr40.x, h(0x3c00)"),
        (0xe415_8003_3f80_0000, "alias.rt.b32.0 rt0.w, (0x3f800000)"),
        (0xe40d_8005_0000_0001, "alias.rt.b32.0 rt1.y, c0.y"),
        (0xe414_01a0_bfba_7736, "alias.tex.f32.1 r40.x, (-1.456763)"),
        (0x40b0_00f4_1040_00c6, "cmps.f.lt up0.x, r49.z, c16.x"),
        (0x64e0_80c0_1010_40c0, "sel.b32 r48.x, (neg)r48.x, r48.y, c4.x"),
        (0x42bb_08f5_2010_00c0, "(nop3) cmps.s.ge up0.y, r48.x, 16"),
        (0xc0d4_010a_0480_2030, "stg.a.u16 g[c0.x+r2.z+0], hr6.x, 4"),
        (0xc006_000a_04c1_6013, "ldg.a.u32 r2.z, g[c1.y+r2.y+0], 4"),
        (0xc006_202d_02c3_401f, "ldg.a.u32 r11.y, g[r3.y+r3.w+16], 2"),
    ] {
        let generation = Generation::A7xx;
        assert_eq!(text_of(generation, word), text);
        // Six decimal places are not all of a float.
        let is_float = text.contains(".f32.");
        assert_eq!(word_of(generation, text) >> if is_float { 32 } else { 0 }, word >> if is_float { 32 } else { 0 });
        let decoded = decode(generation, word).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(encode(generation, &decoded.data, None), Ok(word), "{text}");
    }
    assert!(assemble(Generation::A6xx, "cmps.f.lt up0.x, r49.z, c16.x", 0, &|_| None).is_err());
}

/// Operands that a word cannot say are errors that name their field, not other operands.
#[test]
fn operands_that_a_word_cannot_say_are_errors() {
    /// A text, what is changed of its instruction, and what the error says.
    type Change = (&'static str, fn(&mut InstrData), &'static str);
    let changes: [Change; 14] = [
        ("sam (f32)(x)r0.x, r1.x, s#0, t#1", |i| i.srcs[0].class = RegClass::PREDICATE, "SRC1: a predicate or"),
        (
            "sam (f32)(x)r0.x, r1.x, s#0, t#1",
            |i| i.srcs[0].operand = SrcOperand::Place(Place::Reg(PhysReg::P0_X)),
            "SRC1: a register of another file",
        ),
        (
            "sam (f32)(x)r0.x, r1.x, s#0, t#1",
            |i| i.dsts[0].class = RegClass::HALF,
            "DST: a destination of another width",
        ),
        (
            "samb (f32)(x)r0.x, r1.x, r2.x, s#0, t#1",
            |i| i.srcs[1].class = RegClass::HALF,
            "SRC2: a source of another width",
        ),
        (
            "sam.s2en.uniform (f32)(x)r0.x, r1.x, hr2.x",
            |i| i.srcs[0].class = RegClass::FULL,
            "DESC: a register of another width",
        ),
        ("mov.f32f32 r0.x, r1.x", |i| i.srcs[0].class = RegClass::HALF, "SRC1: a register of another width"),
        ("add.f r0.x, r1.x, r2.x", |i| i.srcs[1].class = RegClass::HALF, "SRC2: a source of another width"),
        ("add.f r0.x, r1.x, r2.x", |i| i.attrs = Attrs::Outputs(Box::default()), "TYPE: attributes that it cannot"),
        ("ldl.u32 r0.x, l[r0.y+4], 1", |i| i.srcs[0].class = RegClass::HALF, "SRC1: a register of another width"),
        ("ldl.u32 r0.x, l[r0.y+4], 1", |i| i.dsts[0].class = RegClass::HALF, "DST: a register of another width"),
        ("add.f r0.x, r1.x, r2.x", |i| i.srcs.push(i.srcs[0]), "SRC3: more sources than it has"),
        ("sam (f32)(x)r0.x, r1.x, s#0, t#1", |i| i.srcs[0].mods = Mods::NEG, "SRC1: a modifier that it cannot have"),
        ("sam (f32)(x)r0.x, r1.x, s#0, t#1", |i| i.repeat = 1, "REPEAT: it cannot be repeated"),
        ("ldl.u32 r0.x, l[r0.y+4], 1", |i| i.nop = 1, "NOP: it has no nops"),
    ];
    for (text, change, expected) in changes {
        let mut data = decode(Generation::A6xx, word_of(Generation::A6xx, text)).unwrap().data;
        assert!(encode(Generation::A6xx, &data, None).is_ok(), "{text}");
        change(&mut data);
        let error = encode(Generation::A6xx, &data, None).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}, expected {expected}");
    }
}

/// From a6xx on, descriptors are found in another way.
#[test]
fn resinfo_is_that_of_its_generation() {
    let word = word_of(Generation::A6xx, "resinfo.b.untyped.1d.u32.1.imm r0.x, 3");
    let decoded = decode(Generation::A6xx, word).unwrap();
    assert_eq!(encode(Generation::A6xx, &decoded.data, None), Ok(word));
    let old = encode(Generation::A5xx, &decoded.data, None).unwrap();
    assert_eq!(text_of(Generation::A5xx, old), "resinfo.u32.1d r0.x, g[3]");
}

/// Bits without a meaning are in a comment, and come back.
/// The offset in bytes has one register on a4xx, and two on a5xx; an image of an atomic is untyped on a4xx.
#[test]
fn accesses_before_a6xx_have_the_registers_of_their_generation() {
    let decoded = |generation: Generation, text: &str| {
        let word = word_of(generation, text);
        let decoded = decode(generation, word).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(encode(generation, &decoded.data, None).expect("a word"), word, "{text}");
        decoded.data
    };
    let (a4, a5) = (Generation::A4xx, Generation::A5xx);
    for (text, bytes) in [
        ("ldgb.untyped.4d.u32.1 r1.x, g[0], r0.x, 0", 1),
        ("stgb.untyped.4d.u32.1 g[1], r1.x, 0, r0.y", 3),
        ("atomic.s.add.untyped.4d.u32.1.g r0.x, g[0], r1.x, 0, r1.z", 3),
    ] {
        for (generation, registers) in [(a4, 1), (a5, 2)] {
            let data = decoded(generation, text);
            assert_eq!(data.srcs[bytes].mask, WriteMask::first(registers), "{text} {generation:?}");
            assert_eq!(data.memory().and_then(|memory| memory.space), Some(AddressSpace::Ssbo), "{text}");
        }
    }
    for (generation, text) in [
        (a4, "atomic.s.add.untyped.2d.u32.1.g r0.x, g[0], r1.x, r2.x, r1.z"),
        (a5, "atomic.s.add.typed.2d.u32.1.g r0.x, g[0], r1.x, r2.x, r1.z"),
    ] {
        let memory = *decoded(generation, text).memory().expect("an access");
        assert_eq!((memory.space, memory.coords), (Some(AddressSpace::Image), Some(2)), "{text}");
    }
}

/// A buffer has one dimension from a6xx on, and four before; a query of its size may have others.
#[test]
fn accesses_to_buffers_have_the_dimensions_of_their_generation() {
    use Generation::{A5xx, A6xx};
    let decoded = |generation: Generation, text: &str| decode(generation, word_of(generation, text));
    for (generation, right, wrong) in [
        (A6xx, "ldib.b.untyped.1d.u32.1.imm r0.x, r0.y, 0", "ldib.b.untyped.2d.u32.1.imm r0.x, r0.y, 0"),
        (A6xx, "stib.b.untyped.1d.u32.1.imm r0.x, r0.y, 0", "stib.b.untyped.3d.u32.1.imm r0.x, r0.y, 0"),
        (A5xx, "ldgb.untyped.4d.u32.1 r1.x, g[0], r0.x, 0", "ldgb.untyped.2d.u32.1 r1.x, g[0], r0.x, 0"),
    ] {
        assert!(decoded(generation, right).is_ok(), "{right}");
        let error = decoded(generation, wrong).expect_err(wrong).to_string();
        assert!(error.contains("dimensions"), "{wrong}: {error}");
    }
    assert!(decoded(A6xx, "resinfo.b.untyped.2d.u32.1.imm r0.x, 3").is_ok());
}

#[test]
fn unknown_bits_survive() {
    let word = 0x0000_0004_0000_0005;
    let text = text_of(Generation::A6xx, word);
    assert_eq!(text, "nop\t; dontcare bits in nop: 0000000400000005");
    assert_eq!(word_of(Generation::A6xx, &text), word);
    // A float whose text is rounded.
    let word = 0x2044_4000_3dcc_cccd;
    let text = text_of(Generation::A6xx, word);
    assert_eq!(word_of(Generation::A6xx, &text), word);
    let mut text = String::new();
    let error = disassemble(Generation::A6xx, u64::MAX, None, &mut text).unwrap_err();
    assert_eq!(error.to_string(), "not an instruction of a6xx: ffffffffffffffff");
}

/// Words made at random, and those of each row with random fields: each is an instruction and comes back from its text,
/// or it is none. What ir3 has of it comes back as the same word, but for bits without a meaning.
#[test]
fn random_words_survive() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let rows = table::encodings();
    let (mut wrong, mut lost) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for generation in Generation::ALL {
        let (mut printed, mut decoded, mut again) = (0, 0, 0);
        for i in 0..40_000 {
            let row = &rows[i % rows.len()];
            let noise = random();
            let word = match i % 4 {
                0 => noise,
                _ => noise & !row.mask | row.value,
            };
            let mut text = String::new();
            if disassemble(generation, word, None, &mut text).is_err() {
                assert!(decode(generation, word).is_err(), "{word:016x}");
                continue;
            }
            printed += 1;
            assert_eq!(assemble(generation, &text, 0, &|_| None), Ok(word), "{generation:?} {text}");
            let Ok(instr) = decode(generation, word) else { continue };
            decoded += 1;
            let Ok(back) = encode(generation, &instr.data, instr.distance) else { continue };
            again += 1;
            let plain = |text: &str| text.split("\t; ").next().unwrap_or_default().to_owned();
            let (first, second) = (plain(&text), plain(&text_of(generation, back)));
            // Of other kinds, fields have no effect: a mask that is empty, `(r)` without a repetition.
            if first != second && instr.data.opcode.category() == Category::Memory {
                lost.entry(instr.data.opcode.name()).or_insert_with(|| format!("{generation:?} {first} / {second}"));
            }
            let other = decode(generation, back);
            if other.as_ref() != Ok(&instr) {
                wrong.entry(instr.data.opcode.name()).or_insert_with(|| {
                    format!("{generation:?} {text}: {word:016x} {back:016x}: {:?} {other:?}", instr.data)
                });
            }
        }
        println!("{generation:?}: {printed} of 40000 words are instructions, {decoded} of ir3, {again} encoded again");
        assert!(printed > 10_000 && decoded > 2_000 && again > 1_000);
    }
    assert_eq!(wrong, std::collections::BTreeMap::new());
    assert_eq!(lost, std::collections::BTreeMap::new());
}

/// The folders of Mesa's logs that are named like a GPU of ours; `None`, with a note, if there are none.
fn folders_of_mesa() -> Option<Vec<(Generation, PathBuf)>> {
    let train = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/mesa/train");
    let Ok(entries) = fs::read_dir(&train) else {
        println!("skipped: {} is absent", train.display());
        return None;
    };
    let of_gpu = |entry: fs::DirEntry| {
        let name = entry.file_name();
        // `a660-turnip` is a660 with another driver.
        let digit = name.to_str()?.strip_prefix('a')?.chars().next()?.to_digit(10)?;
        let generation = Generation::ALL.into_iter().find(|generation| generation.number() == digit)?;
        Some((generation, entry.path()))
    };
    Some(entries.flatten().filter_map(of_gpu).collect())
}

/// Every listing of Mesa's logs, where they are there.
#[test]
fn listings_of_mesa() {
    let Some(folders) = folders_of_mesa() else { return };
    let (mut lines, mut wrong) = (0, 0);
    for (generation, folder) in folders {
        for file in fs::read_dir(&folder).unwrap().flatten() {
            let log = fs::read_to_string(file.path()).unwrap();
            for listing in listings(&log) {
                let count = listing.lines.len() as u32;
                for line in listing.lines {
                    let position = Position { ip: line.ip, count };
                    let mut ours = String::new();
                    if let Err(error) = disassemble(generation, line.word, Some(position), &mut ours) {
                        ours = error.to_string();
                    }
                    let labels = |name: &str| name[1..].parse().ok();
                    let back = assemble(generation, line.text, line.ip, &labels);
                    lines += 1;
                    // Before 25.1, the nops of a varying are printed as `(r)`.
                    let is_older = line.text.contains("bary.f") && line.text.contains("(r)") && ours.contains("(nop");
                    if ours != line.text && !is_older || back != Ok(line.word) {
                        wrong += 1;
                        if wrong < 40 {
                            println!("{} {:016x} `{}`: `{ours}` {back:x?}", folder.display(), line.word, line.text);
                        }
                    }
                }
            }
        }
    }
    println!("{lines} lines, {wrong} wrong");
    assert_eq!(wrong, 0);
}

/// The final programs of Mesa's logs: what ir3 has of each word is the instruction of Mesa's last section, as far as
/// that says it, and is encoded as the same word.
#[test]
fn instructions_of_mesa() {
    use crate::ir3::{MemoryAttrs, TextureAttrs, text};
    use crate::machine::{Code, CodeInstr};
    let Some(folders) = folders_of_mesa() else { return };
    // Attributes that only one of the two has.
    let comparable = |instr: &CodeInstr| {
        let mut instr = instr.clone();
        let data = &mut instr.data;
        data.attrs = match &data.attrs {
            Attrs::Memory(attrs) => Attrs::Memory(MemoryAttrs { base: attrs.base, ..MemoryAttrs::default() }),
            Attrs::Texture(attrs) => Attrs::Texture(TextureAttrs {
                ty: attrs.ty,
                base: attrs.base,
                sampler: attrs.sampler.filter(|&index| index != 0),
                texture: attrs.texture.filter(|&index| index != 0),
                ..TextureAttrs::default()
            }),
            Attrs::Fence { .. } => Attrs::None,
            other => other.clone(),
        };
        data.flags -= InstrFlags::IMM_OFFSET | InstrFlags::NONUNIFORM | InstrFlags::EQ | InstrFlags::EI;
        for src in &mut data.srcs {
            if let SrcOperand::Place(Place::Relative { size, .. }) = &mut src.operand {
                *size = 0;
            }
            if matches!(src.operand, SrcOperand::Immediate(_)) {
                src.mask = WriteMask::SCALAR;
            }
        }
        // Of these, a word does not say how many components they write.
        let old = data.opcode == Opcode::Ldgb || data.opcode.name().starts_with("atomic.s");
        if old || data.opcode == Opcode::Resinfo {
            data.dsts.iter_mut().for_each(|dst| dst.mask = WriteMask::SCALAR);
        }
        if data.opcode == Opcode::Resinfo {
            data.srcs.iter_mut().for_each(|src| src.mask = WriteMask::SCALAR);
        }
        // A third operand has no field.
        if data.opcode == Opcode::Isam && !data.flags.contains(InstrFlags::VECTOR | InstrFlags::A1EN) {
            data.srcs.truncate(1 + usize::from(data.flags.contains(InstrFlags::S2EN)));
        }
        for dst in &mut data.dsts {
            if let Place::Relative { size, .. } = &mut dst.place {
                *size = 0;
            }
        }
        instr
    };
    let every = if std::env::var_os("IR3_ALL").is_some() { 1 } else { 12 };
    let (mut instrs, mut different, mut words, mut others) = (0, 0, 0, 0);
    let mut kinds = std::collections::BTreeMap::<String, (usize, String)>::new();
    for (_, folder) in folders {
        for file in fs::read_dir(folder).unwrap().flatten().step_by(every) {
            let log = fs::read_to_string(file.path()).unwrap();
            let sections = log.split("AFTER: ir3_legalize:\n").skip(1);
            for (section, listing) in sections.zip(listings(&log)) {
                let generation = listing.generation.unwrap();
                let program = text::read(section.split("MESA: info: Native code").next().unwrap()).unwrap();
                let Ok(code) = Code::from_program(&program) else { continue };
                for ((ip, ours), line) in code.instrs.iter().zip(&listing.lines) {
                    // What is added later: a lock around the end. And a prefetch of a descriptor has no operands.
                    if ours.data.opcode == Opcode::End && line.text.ends_with("lock") {
                        break;
                    }
                    if line.text.contains("r63.x") {
                        continue;
                    }
                    instrs += 1;
                    let decoded = match decode(generation, line.word) {
                        Ok(decoded) => decoded,
                        Err(error) => {
                            different += 1;
                            let kind = kinds.entry(format!("{}: {error}", ours.data.opcode)).or_default();
                            kind.0 += 1;
                            continue;
                        }
                    };
                    let target = ours.target;
                    let theirs = comparable(&CodeInstr { data: decoded.data.clone(), target });
                    let mine = comparable(ours);
                    if theirs != mine {
                        different += 1;
                        let kind = kinds.entry(format!("{}", ours.data.opcode)).or_default();
                        kind.0 += 1;
                        kind.1 = format!("{}\n  {theirs:?}\n  {mine:?}", line.text);
                    }
                    let distance = target.map(|to| to.as_u32() as i32 - ip.as_u32() as i32);
                    match encode(generation, &decoded.data, decoded.distance) {
                        Ok(word) if word == line.word && distance == decoded.distance => words += 1,
                        other => {
                            others += 1;
                            let kind = kinds.entry(format!("{} back", ours.data.opcode)).or_default();
                            kind.0 += 1;
                            kind.1 = format!("{} {:016x} {other:x?} {distance:?}", line.text, line.word);
                        }
                    }
                }
            }
        }
    }
    for (kind, (count, example)) in &kinds {
        println!("{count} {kind} {example}");
    }
    println!("{instrs} instructions, {different} different; {words} words, {others} others");
    assert_eq!((different, others), (0, 0));
}
