//! For each rule a program that breaks it, without an earlier error.

use super::{Form, Operand, Rule, Violation, validate};
use crate::ir3::text::{read, write};
use crate::ir3::{Attrs, Block, Opcode, PhysReg, Program, RegClass, Value};
use crate::target::Target;

const SAMPLE: &str = include_str!("../text/sample.ir3");

fn check(program: &Program, form: Form) -> Vec<Violation> {
    validate(program, &Target::default(), form).err().unwrap_or_default()
}

/// The sample with one part of its text replaced everywhere.
fn planted(from: &str, to: &str) -> Program {
    assert!(SAMPLE.contains(from), "{from}");
    read(&SAMPLE.replace(from, to)).unwrap_or_else(|error| panic!("{from} as {to}: {error}"))
}

/// Checks that the rule is broken at that instruction (by its number) and operand, and the start of the message.
fn expect(violations: &[Violation], rule: Rule, serial: u32, operand: Option<Operand>, words: &str) {
    let found = violations.iter().any(|violation| {
        violation.rule == rule
            && violation.name.map_or(0, |(_, serial)| serial) == serial
            && violation.operand == operand
            && violation.to_string().contains(words)
    });
    let all: Vec<String> = violations.iter().map(|v| format!("{:?} {:?}: {v}", v.rule, v.operand)).collect();
    assert!(found, "{rule:?} at {serial} {operand:?}: {words:?} is not among {all:#?}");
}

#[test]
fn the_sample_is_valid() {
    assert_eq!(check(&read(SAMPLE).unwrap(), Form::Ssa), []);
}

/// The text to replace, its replacement, and the error: rule, serial number, operand, start of the message.
type RuleCase = (&'static str, &'static str, Rule, u32, Option<Operand>, &'static str);

#[test]
fn errors_in_the_text_are_found() {
    use Operand::{Dst, Src};
    let cases: &[RuleCase] = &[
        ("physical pred: block2, block3", "physical pred: block2", Rule::PhysicalEdges, 0, None, "block3: "),
        ("\t/* succs: block2, block3 (div) */", "\t/* succs: block2 */", Rule::LogicalEdges, 0, None, "block3: "),
        ("phi ssa_15, ssa_10, ssa_13", "phi ssa_15, ssa_10", Rule::PhiSources, 15, None, "expected 2 sources"),
        (
            "phi ssa_15, ssa_10, ssa_13",
            "phi ssa_15, ssa_13, ssa_10",
            Rule::Dominance,
            15,
            Some(Src(0)),
            "block2 defines",
        ),
        ("\t0011:0010:000: \tjump\n", "", Rule::Terminator, 0, None, "expected a jump at the end"),
        (
            "\tjump\n\t/* keeps:\n\t */\n\t/* succs: block4 */",
            "\tbr pssa_6\n\t/* keeps:\n\t */\n\t/* succs: block4 */",
            Rule::Terminator,
            0,
            None,
            "found `br`",
        ),
        ("\tend ssa_15", "\tjump\n\t0018:0000:000: \tend ssa_15", Rule::Terminator, 17, None, "terminators last"),
        ("mul.f ssa_3, ssa_2", "mul.f ssa_3, ssa_4", Rule::Dominance, 3, Some(Src(0)), "on every way"),
        ("mul.f ssa_3, ssa_2, imm[0.000000,3,0x3]", "mul.f ssa_3, ssa_2", Rule::Sources, 3, None, "2 to 3 sources"),
        ("(neg)ssa_3", "(neg)hssa_3", Rule::ValueClass, 4, Some(Src(0)), "a general register, as"),
        ("(neg)ssa_3", "(neg)hssa_3", Rule::Width, 4, Some(Src(1)), "expected 16 bits"),
        ("ssa_9 (wrmask=0x7), s#0", "ssa_9 (wrmask=0xf), s#0", Rule::Components, 8, Some(Src(0)), "3 components"),
        (
            "_meta:collect ssa_9 (wrmask=0x7)",
            "_meta:collect ssa_9 (wrmask=0x3)",
            Rule::Components,
            9,
            None,
            "2 sources",
        ),
        ("off=1", "off=2", Rule::Components, 10, Some(Src(0)), "found component 2"),
        ("in ssa_1 (wrmask", "in ssa_1(r47.w) (wrmask", Rule::RegisterFile, 1, Some(Dst(0)), "found 2 from r47.w on"),
        ("hssa_12(r61.x), himm", "hssa_12(r61.z), himm", Rule::RegisterFile, 12, Some(Dst(0)), "r61.x to r61.y"),
        ("c4.y", "c600.y", Rule::ConstFile, 4, Some(Src(1)), "2048 words"),
        ("c<a0.x + 8>", "c<a0.x + 512>", Rule::Immediate, 13, Some(Src(0)), "from -512 to 511"),
        ("stib.base1 imm[0.000000,1,0x1]", "stib.base1 imm[0.0,256,0x100]", Rule::Immediate, 16, Some(Src(0)), "0x100"),
        ("imm[0.000000,3,0x3]", "imm[0.0,77,0x4d]", Rule::Immediate, 3, Some(Src(1)), "that mul.f can encode"),
        ("(neg)ssa_3, c4.y", "c4.x, c4.y", Rule::Encoding, 4, Some(Src(1)), "beside its others"),
        ("ssa_13, c<a0.x + 8>", "ssa_13, (neg)c<a0.x + 8>", Rule::Modifiers, 13, Some(Src(0)), "(neg)"),
        ("cov.f32f16 hssa_5", "mov.f32f32 hssa_5", Rule::Width, 5, Some(Dst(0)), "expected 32 bits, found 16 bits"),
        ("cov.f32f16 hssa_5", "cov.f32u8 hssa_5", Rule::Attributes, 5, None, "found cov.f32u8"),
        (
            "mul.f ssa_3, ssa_2, imm[0.000000,3,0x3]",
            "cbits.b ssa_3, ssa_2",
            Rule::Width,
            3,
            Some(Src(0)),
            "expected 16 bits",
        ),
        (
            "mul.f ssa_3, ssa_2, imm[0.000000,3,0x3]",
            "mad.u16 ssa_3, ssa_2, ssa_2, ssa_2",
            Rule::Width,
            3,
            Some(Src(0)),
            "expected 16 bits",
        ),
        ("br !pssa_6", "predt pssa_6", Rule::Terminator, 0, None, "`predf` at the end of its first arm"),
        ("br !pssa_6", "predt pssa_6(p0.y)", Rule::RegisterFile, 7, Some(Src(0)), "expected p0.x"),
        ("br !pssa_6", "br !ssa_6", Rule::File, 7, Some(Src(0)), "a predicate register"),
        ("mul.f ssa_3, ssa_2", "mul.f (tied)ssa_3, ssa_2", Rule::Tied, 3, None, "expected as many"),
        ("mul.f ssa_3, ssa_2", "mul.f (tied)ssa_3, (tied)hssa_2", Rule::Tied, 3, Some(Src(0)), "a half general"),
        ("ssa_13, c<a0.x + 8>, hssa_12(r61.x)", "ssa_13, c<a0.x + 8>", Rule::Address, 13, None, "a0.x among"),
        (
            "ssa_13, c<a0.x + 8>, hssa_12(r61.x)",
            "ssa_13, arr[id=1, offset=4, size=4]",
            Rule::Array,
            13,
            Some(Src(0)),
            "an element below 4",
        ),
        ("sam.3d", "(rpt1)sam.3d", Rule::Repeat, 8, None, "can be repeated"),
        ("(sat)add.f", "(rpt1)(nop2)add.f", Rule::Repeat, 4, None, "(nop2)"),
        (
            "ssa_2, imm[0.000000,3,0x3]",
            "ssa_2, imm[0.000000,3,0x3], rpt: 15",
            Rule::Repeat,
            3,
            None,
            "within one block",
        ),
        ("sam.3d.base0 (f32)", "sam.3d.base0 (f16)", Rule::Width, 8, Some(Dst(0)), "expected 16 bits"),
        ("sam.3d.base0", "sam.3d.base0.a1en", Rule::Address, 8, None, "a1.x among"),
        ("end ssa_15 (0)", "end ssa_15 (0), ssa_15", Rule::Attributes, 17, None, "2 outputs"),
        ("mul.f ssa_3, ssa_2", "mul.f sssa_3, ssa_2", Rule::File, 3, Some(Src(0)), "a shared register"),
    ];
    for &(from, to, rule, serial, operand, words) in cases {
        expect(&check(&planted(from, to), Form::Ssa), rule, serial, operand, words);
    }
}

#[test]
fn phis_stand_first() {
    let phi = "\t0015:0014:003: \t_meta:phi ssa_15, ssa_10, ssa_13\n";
    let text = SAMPLE.replace(phi, &format!("\t0018:0000:000: \tnop\n{phi}"));
    expect(&check(&read(&text).unwrap(), Form::Ssa), Rule::PhisFirst, 15, None, "phis before");
}

#[test]
fn prefetches_precede_writes_of_registers() {
    let text = |first: &str, second: &str| {
        let list = ["_meta:in r0.x (wrmask=0x3)", first, second, "end"];
        let line = |(i, text): (usize, &str)| format!("\t{:04}:0000:000: \t{text}\n", i + 1);
        format!("block1 {{\n{}}}", list.into_iter().enumerate().map(line).collect::<String>())
    };
    let prefetch = "_meta:tex_prefetch r1.x (wrmask=0x7), r0.x (wrmask=0x3), tex=0, samp=0, input_offset=0";
    let copy = "mov.u32u32 r3.x, r0.x";
    for form in [Form::Registers, Form::Machine] {
        assert_eq!(check(&read(&text(prefetch, copy)).unwrap(), form), []);
        expect(&check(&read(&text(copy, prefetch)).unwrap(), form), Rule::PrefetchesFirst, 3, None, "after a write");
        for (from, to, words) in [("r0.x (w", "r0.z (w", "coordinates in r0.x"), ("r1.x", "r15.z", "up to r15.w")] {
            let other = prefetch.replace(from, to);
            expect(&check(&read(&text(&other, copy)).unwrap(), form), Rule::Prefetch, 2, None, words);
        }
        assert_eq!(check(&read(&text(&prefetch.replace("r1.x", "r15.y"), copy)).unwrap(), form), []);
    }
}

#[test]
fn forms_have_their_places_and_opcodes() {
    let program = read(SAMPLE).unwrap();
    expect(&check(&program, Form::Registers), Rule::Form, 2, Some(Operand::Dst(0)), "a physical register");
    expect(&check(&program, Form::Machine), Rule::Form, 15, None, "an instruction of machine form");
    let registers = read("block1 {\n\t0001:0000:000: \tadd.u r0.x, r0.x, r48.x\n\t0002:0000:000: \tend\n}").unwrap();
    expect(&check(&registers, Form::Ssa), Rule::Form, 1, Some(Operand::Dst(0)), "an SSA value");
    expect(&check(&registers, Form::Machine), Rule::RegisterFile, 1, Some(Operand::Src(1)), "found r48.x");
    let late = read("block1 {\n\t0001:0000:000: \tend\n\t0002:0000:000: \tmov.u32u32 r0.x, r0.x\n}").unwrap();
    expect(&check(&late, Form::Machine), Rule::Terminator, 1, None, "nothing after");
    let relative = "block1 {\n\t0001:0000:000: \tmov.u32u32 r0.x, r<a0.x + 200> (4), hr61.x\n\t0002:0000:000: \tend\n}";
    expect(&check(&read(relative).unwrap(), Form::Machine), Rule::RegisterFile, 1, Some(Operand::Src(0)), "about 200");
}

#[test]
fn what_the_text_cannot_say() {
    let sample = || read(SAMPLE).unwrap();
    let at = |program: &Program, opcode| program.instrs.iter().find(|(_, data)| data.opcode == opcode).unwrap().0;

    let mut program = sample();
    program.layout.push(program.layout[2]);
    expect(&check(&program, Form::Ssa), Rule::Layout, 0, None, "a second time");
    program.layout.clear();
    expect(&check(&program, Form::Ssa), Rule::Layout, 0, None, "expected a block, found none");

    let mut program = sample();
    let (entry, last) = (program.entry(), program.layout[3]);
    program.blocks[entry].predecessors.push(last);
    expect(&check(&program, Form::Ssa), Rule::Layout, 0, None, "an entry without");
    program.blocks[last].successors = [None, Some(Block::from_u32(77))];
    expect(&check(&program, Form::Ssa), Rule::LogicalEdges, 0, None, "the second alone");

    let mut program = sample();
    let first = program.blocks[entry].instrs[0];
    program.blocks[last].instrs.insert(1, first);
    expect(&check(&program, Form::Ssa), Rule::InstrOnce, 1, None, "in one place");

    let mut program = sample();
    let split = at(&program, Opcode::Split);
    let block = program.layout[1];
    program.blocks[block].instrs.retain(|&instr| instr != split);
    expect(&check(&program, Form::Ssa), Rule::Defined, 15, Some(Operand::Src(0)), "of the code defines");

    // A definition that has lost its destination: the value still names the instruction.
    let mut program = sample();
    program.instrs[split].dsts.clear();
    expect(&check(&program, Form::Ssa), Rule::Defined, 15, Some(Operand::Src(0)), "of the code defines");

    let mut program = sample();
    let value = program.instrs[split].dsts[0].value().unwrap();
    program.values[value].components = 7;
    expect(&check(&program, Form::Ssa), Rule::ValueRecord, 10, Some(Operand::Dst(0)), "7 components");
    program.instrs[split].dsts[0].mask.0 = 0;
    expect(&check(&program, Form::Ssa), Rule::Components, 10, Some(Operand::Dst(0)), "a component to write");

    let mut program = sample();
    let mov = at(&program, Opcode::Mov);
    program.instrs[mov].attrs = Attrs::None;
    expect(&check(&program, Form::Ssa), Rule::Attributes, 5, None, "attributes of mov");
    program.instrs[mov].dsts.clear();
    expect(&check(&program, Form::Ssa), Rule::Destinations, 5, None, "1 destinations, found 0");

    let mut program = sample();
    program.instrs[split].srcs[0].class = RegClass { half: true, ..RegClass::PREDICATE };
    expect(&check(&program, Form::Ssa), Rule::File, 10, Some(Operand::Src(0)), "a class of a660");
}

#[test]
fn targets_differ() {
    let text = "block1 {\n\t0001:0000:000: \tadd.u sr48.x, sr48.y, imm[0.0,1,0x1]\n\t0002:0000:000: \tend\n}";
    let program = read(text).unwrap();
    assert_eq!(check(&program, Form::Machine), []);
    let on = |name: &str| validate(&program, &Target::by_name(name).unwrap(), Form::Machine).err().unwrap_or_default();
    expect(&on("a630"), Rule::File, 1, Some(Operand::Dst(0)), "having no scalar ALU");
    expect(&on("a420"), Rule::File, 1, Some(Operand::Dst(0)), "a class of a420");
    let text = "block1 {\n\t0001:0000:000: \tcmps.u.lt pp0.y, r0.x, r0.y\n\t0002:0000:000: \tend\n}";
    let program = read(text).unwrap();
    assert_eq!(check(&program, Form::Machine), []);
    let old = Target::by_name("a540").unwrap();
    let violations = validate(&program, &old, Form::Machine).unwrap_err();
    expect(&violations, Rule::RegisterFile, 1, Some(Operand::Dst(0)), &format!("{}", PhysReg::P0_X.offset(1)));
}

#[test]
fn shared_registers_are_not_swapped() {
    let swap = |registers: &str| {
        let text = format!("block1 {{\n\t0001:0000:000: \tswz.u32u32 {registers}\n\t0002:0000:000: \tend\n}}");
        check(&read(&text).unwrap(), Form::Machine)
    };
    assert_eq!(swap("r0.x, r0.y, r0.y, r0.x"), []);
    expect(&swap("sr48.x, sr48.y, sr48.y, sr48.x"), Rule::File, 1, Some(Operand::Dst(0)), "a general register");
}

#[test]
fn unknown_entities_are_no_panic() {
    let mut program = read(SAMPLE).unwrap();
    let end = program.instrs.iter().find(|(_, data)| data.opcode == Opcode::End).unwrap().0;
    for src in &mut program.instrs[end].srcs {
        src.operand = crate::ir3::SrcOperand::Place(crate::ir3::Place::Value(Value::from_u32(1 << 20)));
    }
    expect(&check(&program, Form::Ssa), Rule::Defined, 17, Some(Operand::Src(0)), "of the code");
    assert_eq!(program.canonical(), None);
    assert!(!write(&program).is_empty());
    let entry = program.entry();
    program.blocks[entry].instrs.push(crate::ir3::Instr::from_u32(1 << 20));
    program.layout.push(Block::from_u32(1 << 20));
    assert!(!check(&program, Form::Ssa).is_empty());
}

/// Two arms that reconverge, without targets: block1 branches to block2, which jumps over block3.
const ARMS: &str = "block1 {\n\t0001:0000:000: \tbr pp0.x\n\t/* succs: block2, block3 (div) */\n}\n\
    block2 {\n\tpred: block1\n\t0002:0000:000: \tjump\n\t/* succs: block4 */\n}\n\
    (jp)block3 {\n\tpred: block1\n\t0003:0000:000: \tjump\n\t/* succs: block4 */\n}\n\
    (jp)block4 {\n\tpred: block2, block3\n\t0004:0000:000: \tend\n}\n";

#[test]
fn machine_programs_go_where_they_say() {
    let checked = |text: &str| check(&read(text).unwrap_or_else(|error| panic!("{error}\n{text}")), Form::Machine);
    assert_eq!(checked(ARMS), []);
    // Block 3 may fall through; block 2 may not, and needs an explicit target to jump.
    assert_eq!(checked(&ARMS.replace("0003:0000:000: \tjump", "0003:0000:000: \tnop")), []);
    assert_eq!(checked(&ARMS.replace("0002:0000:000: \tjump", "0002:0000:000: \tjump target=block4")), []);
    for (from, to, words) in [
        ("0002:0000:000: \tjump", "0002:0000:000: \tnop", "block2: expected the next block, block3, without a jump"),
        ("0002:0000:000: \tjump", "0002:0000:000: \tjump target=block3", "its branches lead, block3, found block4"),
        ("0002:0000:000: \tjump", "0002:0000:000: \tend", "no successor after the end"),
        ("0002:0000:000: \tjump", "0002:0000:000: \tbr pp0.x", "two successors of a branch"),
        (
            "\tbr pp0.x",
            "\tnop",
            "block1: expected the next block, block2, without a jump to another, found block2 and block3",
        ),
        ("\tbr pp0.x", "\tjump", "one successor of a jump"),
        ("\tend", "\tnop", "block4: expected an end, found none"),
    ] {
        assert!(ARMS.contains(from), "{from}");
        expect(&checked(&ARMS.replace(from, to)), Rule::Terminator, 0, None, words);
    }
}

#[test]
fn reconvergence_points_are_said_of_all_blocks_or_of_none() {
    for form in [Form::Ssa, Form::Machine] {
        for block in ["block3", "block4"] {
            let text = ARMS.replace(&format!("(jp){block}"), block);
            expect(
                &check(&read(&text).unwrap(), form),
                Rule::Reconvergence,
                0,
                None,
                &format!("{block}: expected `(jp)`"),
            );
        }
        assert_eq!(check(&read(&ARMS.replace("(jp)", "")).unwrap(), form), []);
        // Lanes do not diverge at a subgroup vote.
        let vote = ARMS.replace("br pp0.x", "bany pp0.x").replace(" (div)", " (con)").replace("(jp)block3", "block3");
        assert_eq!(check(&read(&vote).unwrap(), form), []);
    }
}
