//! Small programs in which each predicate is a comparison with a number of its own, and what becomes of them.

use super::*;
use crate::ir3::{Attrs, Block, BlockData, Builder, Condition, Instr, Opcode, OperandFlags, RegClass, Src, WriteMask};
use crate::regalloc::predicates_within;

const R: RegClass = RegClass::FULL;

#[derive(Clone)]
struct Code {
    program: Program,
    blocks: Vec<Block>,
    x: Value,
    /// The predicate of each number.
    predicates: Vec<(u32, Value)>,
}

impl Code {
    /// Blocks with edges to others, which the terminators are still to be written for; an input in the first.
    fn new(edges: &[&[usize]]) -> Self {
        let mut program = Program::default();
        let blocks: Vec<Block> = edges.iter().map(|_| program.blocks.push(BlockData::default())).collect();
        program.layout.extend(&blocks);
        for (&from, to) in blocks.iter().zip(edges) {
            for (slot, &to) in to.iter().enumerate() {
                program.add_edge(from, slot, blocks[to]);
            }
        }
        let x = Builder::new(&mut program, blocks[0]).define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        Self { program, blocks, x, predicates: Vec::new() }
    }

    fn b(&mut self, block: usize) -> Builder<'_> {
        Builder::new(&mut self.program, self.blocks[block])
    }

    fn src(&self, value: Value) -> Src {
        let class = self.program.values[value].class;
        Src::reg(Place::Value(value), class, WriteMask::SCALAR)
    }

    fn predicate(&self, number: u32) -> Src {
        self.src(self.predicates.iter().find(|(its, _)| *its == number).unwrap().1)
    }

    /// `1`: a comparison with 1; `1?`: something that reads its predicate; `br 1`, `braa 1 2`, `predt 1`, `jump`, `end`.
    fn write(&mut self, block: usize, text: &str) {
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if let Ok(number) = word.parse() {
                let x = self.src(self.x);
                let predicate = self.b(block).compare(
                    Opcode::CmpsU,
                    Condition::Lt,
                    RegClass::PREDICATE,
                    x,
                    Src::immediate(number, false),
                );
                self.predicates.push((number, predicate));
            } else if let Some(number) = word.strip_suffix('?') {
                let src = self.predicate(number.parse().unwrap());
                self.b(block).effect(Opcode::Kill, &[src]);
            } else {
                let mut srcs = Vec::new();
                while let Some(number) = words.peek().and_then(|word| word.parse().ok()) {
                    srcs.push(self.predicate(number));
                    words.next();
                }
                let opcode = Opcode::ALL.iter().copied().find(|opcode| opcode.name() == word).unwrap();
                self.b(block).effect(opcode, &srcs);
            }
        }
    }

    fn run(&mut self, gpu: &str) {
        let target = Target::by_name(gpu).unwrap();
        predicates_within(&mut self.program, &target, target.num_predicates).unwrap();
    }

    /// What is left of a block: `x=1` for a comparison with 1 into `p0.x`, `x?` for a read.
    fn text(&self, block: usize) -> String {
        let words = self.program.blocks[self.blocks[block]].instrs.iter().map(|&instr| self.word(instr));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn word(&self, instr: Instr) -> String {
        let data = &self.program.instrs[instr];
        let name = |place: &Place| "xyzw".as_bytes()[slot_of(place).unwrap()] as char;
        let reads: String = data
            .srcs
            .iter()
            .filter(|src| src.class.file == RegFile::Predicate)
            .map(|src| name(src.place().unwrap()))
            .collect();
        match (data.opcode, data.srcs.get(1).map(|src| src.operand)) {
            (Opcode::CmpsU, Some(SrcOperand::Immediate(number))) => format!("{}={number}", name(&data.dsts[0].place)),
            (Opcode::Kill, _) => format!("{reads}?"),
            (Opcode::Input | Opcode::Jump | Opcode::End, _) => String::new(),
            (opcode, _) => format!("{opcode} {reads}").trim_end().to_owned(),
        }
    }
}

#[test]
fn a_comparison_is_made_once_for_all_blocks() {
    for gpu in ["a540", "a660"] {
        let mut code = Code::new(&[&[1, 2], &[3], &[3], &[]]);
        code.write(0, "1 br 1");
        code.write(1, "1? jump");
        code.write(2, "jump");
        code.write(3, "1? 1? end");
        code.run(gpu);
        assert_eq!([0, 1, 2, 3].map(|block| code.text(block)), ["x=1 br x", "x?", "", "x? x?"], "{gpu}");
        let reads = code.program.iter_instrs().filter(|&(_, instr)| code.program.instrs[instr].opcode == Opcode::Kill);
        let last: Vec<bool> =
            reads.map(|(_, instr)| code.program.instrs[instr].srcs[0].flags.contains(OperandFlags::KILL)).collect();
        assert_eq!(last, [false, false, true]);
    }
}

/// Four are there; the fifth is computed where it is read first, in the register of the one that is read last, whose
/// own computation in front of that serves nobody any more.
#[test]
fn the_one_that_is_read_last_gives_way() {
    let mut code = Code::new(&[&[]]);
    code.write(0, "1 2 3 4 5 5? 1? 4? 2? 3? end");
    code.run("a660");
    assert_eq!(code.text(0), "x=1 y=2 w=4 z=5 z? x? w? y? z=3 z?");
}

/// What is only read behind the block is further away than what is read in it.
#[test]
fn what_is_read_in_other_blocks_gives_way_first() {
    let mut code = Code::new(&[&[1], &[]]);
    code.write(0, "1 2 3 4 2? 5 5? 3? 4? 1? jump");
    code.write(1, "2? 1? end");
    code.run("a660");
    assert_eq!([code.text(0), code.text(1)], ["x=1 y=2 z=3 w=4 y? y=5 y? z? w? x?", "y=2 y? x?"]);
}

/// With one register each reader has its comparison in front of it. The second one moves there: it is no clone.
#[test]
fn definitions_are_put_off() {
    let mut code = Code::new(&[&[1], &[]]);
    code.write(0, "1 2 jump");
    code.write(1, "1? 2? 1? end");
    let before = code.program.instrs.len();
    code.run("a540");
    assert_eq!([code.text(0), code.text(1)], ["x=1", "x? x=2 x? x=1 x?"]);
    // The clone of the first one.
    assert_eq!(code.program.instrs.len(), before + 1);
    assert_eq!(code.program.values[code.predicates[1].1].instr, code.program.blocks[code.blocks[1]].instrs[1]);
}

#[test]
fn what_nobody_reads_goes() {
    for gpu in ["a540", "a660"] {
        let mut code = Code::new(&[&[]]);
        code.write(0, "1 2 2? 3 end");
        code.run(gpu);
        assert_eq!(code.text(0), "x=2 x?");
    }
}

/// In one arm the register is needed for another one: behind the arms it has to be computed again.
#[test]
fn predecessors_that_disagree_leave_nothing() {
    let mut code = Code::new(&[&[1, 2], &[3], &[3], &[]]);
    code.write(0, "1 br 1");
    code.write(1, "2 2? jump");
    code.write(2, "1? jump");
    code.write(3, "1? end");
    let mut four = Code { program: code.program.clone(), blocks: code.blocks.clone(), ..code };
    code = Code {
        program: four.program.clone(),
        blocks: four.blocks.clone(),
        x: four.x,
        predicates: four.predicates.clone(),
    };
    code.run("a540");
    assert_eq!([0, 1, 2, 3].map(|block| code.text(block)), ["x=1 br x", "x=2 x?", "x?", "x=1 x?"]);
    four.run("a660");
    assert_eq!([0, 1, 2, 3].map(|block| four.text(block)), ["x=1 br x", "y=2 y?", "x?", "x?"]);
}

/// One predicate is read in each iteration, and there is no room for it all around the loop: the way back restores it.
#[test]
fn back_edges_restore_what_the_loop_expects() {
    let mut code = Code::new(&[&[1], &[2, 3], &[1], &[]]);
    code.write(0, "1 jump");
    code.write(1, "1? br 1");
    code.write(2, "2 3 4 5 2? 3? 4? 5? 2? 3? 4? 5? jump");
    code.write(3, "end");
    code.run("a660");
    assert_eq!(code.text(0), "x=1");
    assert_eq!(code.text(1), "x? br x");
    assert_eq!(code.text(2), "y=2 z=3 w=4 y? z? w? x=5 x? y? z? w? x? x=1");
}

/// A loop that has no room for what is read behind it does not keep it; one that has does.
#[test]
fn loops_keep_what_they_have_room_for() {
    for (gpu, before, behind) in [("a540", "", "x=1 x?"), ("a660", "x=1", "x?")] {
        let mut code = Code::new(&[&[1], &[2, 3], &[1], &[]]);
        code.write(0, "1 jump");
        code.write(1, "2 br 2");
        code.write(2, "jump");
        code.write(3, "1? end");
        code.run(gpu);
        let condition = if gpu == "a540" { "x=2 br x" } else { "y=2 br y" };
        assert_eq!([0, 1, 2, 3].map(|block| code.text(block)), [before, condition, "", behind], "{gpu}");
    }
}

/// With one register a promise would cost a comparison in front of the loop and one at its end.
#[test]
fn one_register_promises_nothing_beside_others() {
    let mut code = Code::new(&[&[1], &[2, 3], &[1], &[]]);
    code.write(0, "1 jump");
    code.write(1, "1? 2 br 2");
    code.write(2, "jump");
    code.write(3, "end");
    code.run("a540");
    assert_eq!([0, 1, 2, 3].map(|block| code.text(block)), ["", "x=1 x? x=2 br x", "", ""]);
}

/// What `predt` and `predf` read is in `p0.x`, which others leave alone.
#[test]
fn predication_reads_the_first_register() {
    let mut code = Code::new(&[&[1, 2], &[3], &[3], &[]]);
    code.write(0, "1 2 1? predt 2");
    code.write(1, "3 3? predf 2");
    code.write(2, "jump");
    code.write(3, "1? end");
    code.run("a660");
    assert_eq!([0, 1, 2, 3].map(|block| code.text(block)), ["w=1 x=2 w? predt x", "z=3 z? predf x", "", "w?"]);
    // Two of them, and others wherever there is room.
    let mut code = Code::new(&[&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[]]);
    code.write(0, "1 2 2? 1? predt 2");
    code.write(1, "predf 2");
    code.write(2, "jump");
    code.write(3, "predt 1");
    code.write(4, "predf 1");
    code.write(5, "jump");
    code.write(6, "end");
    code.run("a660");
    // The second one is wanted first: it is put off, and then takes whatever is free.
    assert_eq!(code.text(0), "x=1 y=2 y? x? x=2 predt x");
    assert_eq!([1, 3, 4].map(|block| code.text(block)), ["predf x", "x=1 predt x", "predf x"]);
}

/// Who asks for one register gets two where an instruction reads two.
#[test]
fn two_registers_for_who_reads_two() {
    let mut code = Code::new(&[&[1, 2], &[], &[]]);
    code.write(0, "1 2 3 3? braa 1 2");
    code.write(1, "3? end");
    code.write(2, "end");
    predicates_within(&mut code.program, &Target::by_name("a660").unwrap(), 1).unwrap();
    assert_eq!([code.text(0), code.text(1)], ["y=2 x=3 x? x=1 braa xy", "x=3 x?"]);
}

/// A predicate that is computed from predicates becomes a number first, and can be computed again from that.
#[test]
fn numbers_of_predicates_are_kept() {
    let mut code = Code::new(&[&[]]);
    code.write(0, "1 2");
    let srcs = [code.predicate(1), code.predicate(2)];
    let both = code.b(0).define(Opcode::OrB, RegClass::PREDICATE, 1, &srcs, Attrs::None);
    code.predicates.push((3, both));
    code.write(0, "1? 2? 4 5 6 4? 5? 6? 1? 2? 4? 5? 6? 3? end");
    code.run("a660");
    let text = code.text(0);
    assert_eq!(text.matches("or.b xy").count(), 1, "{text}");
    assert_eq!(text.matches("and.b").count(), 1, "{text}");
    assert!(text.find("or.b") < text.find('?') && text.find("and.b") > text.rfind("=6"), "{text}");
}

/// A shared register has another value when lanes that have left a loop come to read the predicate: the definition reads a
/// copy. Where no lanes wait it reads the register.
#[test]
fn shared_registers_are_copied_where_lanes_wait() {
    for divergent in [false, true] {
        let mut code = Code::new(&[&[1], &[1, 2], &[]]);
        code.write(0, "jump");
        let shared = code.b(1).define(Opcode::Mov, RegClass::SHARED, 1, &[Src::immediate(7, false)], Attrs::None);
        let (shared, x) = (code.src(shared), code.src(code.x));
        let late = code.b(1).compare(Opcode::CmpsU, Condition::Lt, RegClass::PREDICATE, x, shared);
        code.write(1, "1 br 1");
        code.predicates.push((9, late));
        code.write(2, "9? end");
        let header = code.blocks[1];
        code.program.blocks[header].divergent = Some(divergent);
        code.run("a750");
        let list = &code.program.blocks[header].instrs;
        let compare = list
            .iter()
            .map(|&i| &code.program.instrs[i])
            .find(|data| data.srcs.get(1).is_some_and(|src| src.value().is_some()));
        let file = compare.unwrap().srcs[1].class.file;
        assert_eq!(file, if divergent { RegFile::General } else { RegFile::Shared });
    }
}

#[test]
fn what_is_not_defined_is_an_error() {
    let mut code = Code::new(&[&[1, 2], &[2], &[]]);
    code.write(0, "1 br 1");
    code.write(1, "2 jump");
    code.write(2, "2? end");
    let target = Target::by_name("a660").unwrap();
    let error = predicates_within(&mut code.program, &target, 4).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}
