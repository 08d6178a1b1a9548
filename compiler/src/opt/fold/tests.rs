//! Each rule, and what it must leave alone.

use super::*;
use crate::ir3::{BlockData, Builder, InstrFlags, Mods, Round};

const R: RegClass = RegClass::FULL;

/// A program of one block with two inputs.
fn program() -> (Program, Block, [Src; 2]) {
    let mut program = Program::default();
    let block = program.blocks.push(BlockData::default());
    program.layout.push(block);
    let mut b = Builder::new(&mut program, block);
    let inputs = [0, 1].map(|_| {
        let value = b.define(Opcode::Input, R, 1, &[], Attrs::Input(None));
        b.src(value)
    });
    (program, block, inputs)
}

fn compare(b: &mut Builder, opcode: Opcode, condition: Condition, x: Src, y: Src) -> Src {
    let value = b.compare(opcode, condition, RegClass::HALF, x, y);
    b.src(value)
}

fn test(b: &mut Builder, x: Src) -> Src {
    let zero = Src::immediate(0, x.class.half);
    let value = b.compare(Opcode::CmpsS, Condition::Ne, RegClass::PREDICATE, x, zero);
    b.src(value)
}

fn bitop(b: &mut Builder, opcode: Opcode, x: Src, y: Src) -> Src {
    let value = b.alu(opcode, x.class, &[x, y]);
    b.src(value)
}

fn not(b: &mut Builder, x: Src) -> Src {
    bitop(b, Opcode::XorB, x, Src::immediate(1, x.class.half))
}

fn widen(b: &mut Builder, x: Src) -> Src {
    let value = b.convert(Type::U16, Type::U32, R, x);
    b.src(value)
}

fn select(b: &mut Builder, yes: Src, condition: Src, no: Src) -> Src {
    let value = b.alu(Opcode::SelB32, R, &[yes, condition, no]);
    b.src(value)
}

fn opcodes(program: &Program) -> Vec<Opcode> {
    program.iter_instrs().skip(2).map(|(_, instr)| program.instrs[instr].opcode).collect()
}

fn def(program: &Program, src: Src) -> &InstrData {
    &program.instrs[program.values[src.value().unwrap()].instr]
}

fn last(program: &Program) -> &InstrData {
    &program.instrs[*program.blocks[program.entry()].instrs.last().unwrap()]
}

#[test]
fn comparisons_write_predicates_and_full_registers() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let predicate = test(&mut b, less);
    b.effect(Opcode::Kill, &[predicate]);
    let equal = compare(&mut b, Opcode::CmpsS, Condition::Eq, x, y);
    let wide = widen(&mut b, equal);
    b.effect(Opcode::End, &[wide]);
    run(&mut program, &Target::default(), Rules::ALL);
    assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::Kill, Opcode::CmpsS, Opcode::End]);
    assert_eq!((last(&program).srcs[0].value(), last(&program).srcs[0].class), (equal.value(), R));
    let test = def(&program, predicate);
    assert_eq!((&test.srcs[..], &test.attrs), (&[x, y][..], &Attrs::Compare(Condition::Lt)));
}

/// What an operation on two inputs of a class gives, and how it is converted; whether it converts itself.
#[test]
fn operations_convert_their_results() {
    use Opcode::*;
    use Type::*;
    const H: RegClass = RegClass::HALF;
    for (opcode, class, (from, to), round, expected) in [
        (MulF, H, (F16, F32), Round::Default, true),
        (MadF32, R, (F32, F16), Round::Default, true),
        // What is folded rounds toward zero.
        (MadF32, R, (F32, F16), Round::Even, false),
        (AddF, R, (F32, F16), Round::PosInf, false),
        // A result that is one of the operands is not converted.
        (MinF, R, (F32, F16), Round::Default, false),
        (MaxF, H, (F16, F32), Round::Default, false),
        (MaxF, R, (F32, F16), Round::NegInf, false),
        (FloorF, R, (F32, U16), Round::Default, false),
        (AddU, R, (U32, U16), Round::Default, true),
        (AddU, H, (U16, U32), Round::Default, false),
        (ShlB, H, (U16, U32), Round::Default, false),
        (ShrB, H, (U16, U32), Round::Default, true),
        (ShrB, H, (S16, S32), Round::Default, false),
        (MullU, R, (U32, U16), Round::Default, false),
    ] {
        let (mut program, block, _) = program();
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Input, class, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let sources = if opcode == MadF32 {
            3
        } else if opcode == FloorF {
            1
        } else {
            2
        };
        let result = b.alu(opcode, class, &[x, x, x][..sources]);
        let result = b.src(result);
        let wanted = RegClass::general(to.is_half());
        let converted = b.define(Mov, wanted, 1, &[result], Attrs::Move { src: from, dst: to, round });
        let converted = b.src(converted);
        b.effect(End, &[converted]);
        let name = format!("{opcode} {from:?} {to:?}");
        assert!(is_needed(&program), "{name}");
        run(&mut program, &Target::default(), Rules::ALL);
        assert_eq!(opcodes(&program).len() == 3, expected, "{name}");
        assert_eq!(last(&program).srcs[0].class, wanted, "{name}");
        let read = program.values[last(&program).srcs[0].value().unwrap()].class;
        assert_eq!(read, wanted, "{name}");
    }
}

/// A result that is read in both widths is converted for one of them, clamps are of the width that they are written in.
#[test]
fn results_that_are_read_as_they_are_stay() {
    for clamped in [false, true] {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let sum = b.alu(Opcode::AddF, R, &[x, y]);
        let sum = b.src(sum);
        let half = b.convert(Type::F32, Type::F16, RegClass::HALF, sum);
        let half = b.src(half);
        b.effect(Opcode::End, &[half, sum][..2 - usize::from(clamped)]);
        if clamped {
            let instr = program.values[sum.value().unwrap()].instr;
            program.instrs[instr].flags = InstrFlags::SAT;
        }
        run(&mut program, &Target::default(), Rules::ALL);
        assert_eq!(opcodes(&program), [Opcode::AddF, Opcode::Mov, Opcode::End]);
    }
}

#[test]
fn bitwise_operations_give_full_registers() {
    for (opcode, class, expected) in [
        (Opcode::AndB, RegClass::HALF, &[Opcode::AndB, Opcode::End][..]),
        (Opcode::XorB, RegClass::HALF, &[Opcode::XorB, Opcode::End]),
        // The result is cut from full registers.
        (Opcode::OrB, R, &[Opcode::OrB, Opcode::Mov, Opcode::End]),
    ] {
        let (mut program, block, _) = program();
        let mut b = Builder::new(&mut program, block);
        let inputs = [0, 1].map(|_| {
            let value = b.define(Opcode::Input, class, 1, &[], Attrs::Input(None));
            b.src(value)
        });
        let joined = b.alu(opcode, RegClass::HALF, &inputs);
        let joined = b.src(joined);
        let wide = widen(&mut b, joined);
        b.effect(Opcode::End, &[wide]);
        run(&mut program, &Target::default(), Rules::ALL);
        assert_eq!(opcodes(&program)[2..], *expected);
    }
}

/// Where lanes that come later find another value, a shared register is not read instead of the one it was widened to.
#[test]
fn shared_registers_are_widened_in_their_block() {
    for elsewhere in [false, true] {
        let (mut program, block, _) = program();
        let next = program.blocks.push(BlockData::default());
        program.layout.push(next);
        program.add_edge(block, 0, next);
        let mut b = Builder::new(&mut program, block);
        let x = b.define(Opcode::Input, RegClass::SHARED, 1, &[], Attrs::Input(None));
        let x = b.src(x);
        let less = b.compare(Opcode::CmpsS, Condition::Lt, RegClass::SHARED_HALF, x, Src::immediate(3, false));
        let less = b.src(less);
        let mut b = Builder::new(&mut program, if elsewhere { next } else { block });
        let wide = b.convert(Type::U16, Type::U32, RegClass::SHARED, less);
        let wide = b.src(wide);
        b.effect(Opcode::End, &[wide]);
        run(&mut program, &Target::default(), Rules::ALL);
        let kept: &[Opcode] = if elsewhere { &[Opcode::Mov] } else { &[] };
        assert_eq!(opcodes(&program), [&[Opcode::Input, Opcode::CmpsS], kept, &[Opcode::End]].concat());
    }
}

/// A comparison that is read as a number too stays one, and its predicate stays a comparison with 0.
#[test]
fn what_is_read_as_a_number_stays_one() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let predicate = test(&mut b, less);
    b.effect(Opcode::Kill, &[predicate]);
    b.effect(Opcode::End, &[less]);
    run(&mut program, &Target::default(), Rules::ALL);
    assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::CmpsS, Opcode::Kill, Opcode::End]);
}

/// The comparison would read the constant file behind the write.
#[test]
fn constants_that_are_written_later_are_not_read_later() {
    for written in [false, true] {
        let (mut program, block, [x, _]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, Src::constant(5, false));
        if written {
            b.effect(Opcode::Stc, &[Src::immediate(5, false), x]);
        }
        let predicate = test(&mut b, less);
        b.effect(Opcode::Kill, &[predicate]);
        run(&mut program, &Target::default(), Rules::ALL);
        let expected: &[Opcode] = match written {
            false => &[Opcode::CmpsF, Opcode::Kill],
            true => &[Opcode::CmpsF, Opcode::Stc, Opcode::CmpsS, Opcode::Kill],
        };
        assert_eq!(opcodes(&program), expected);
    }
}

#[test]
fn bitwise_operations_write_predicates_where_they_can() {
    for (gpu, expected) in [
        ("a660", &[Opcode::CmpsF, Opcode::AndB, Opcode::Kill, Opcode::End][..]),
        ("a540", &[Opcode::CmpsF, Opcode::AndB, Opcode::CmpsS, Opcode::Kill, Opcode::End]),
    ] {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
        let and = bitop(&mut b, Opcode::AndB, less, less);
        let predicate = test(&mut b, and);
        b.effect(Opcode::Kill, &[predicate]);
        b.effect(Opcode::End, &[less]);
        run(&mut program, &Target::by_name(gpu).unwrap(), Rules::ALL);
        assert_eq!(opcodes(&program), expected, "{gpu}");
    }
}

/// A predicate is the lowest bit, the comparison is with all of them: 2 | 2 is not 0.
#[test]
fn bitwise_operations_on_numbers_are_compared_with_0() {
    for (opcode, with_bool) in [(Opcode::AndB, false), (Opcode::OrB, false), (Opcode::OrB, true), (Opcode::XorB, true)]
    {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = b.compare(Opcode::CmpsF, Condition::Lt, R, x, y);
        let less = b.src(less);
        let number = bitop(&mut b, opcode, x, if with_bool { less } else { y });
        let predicate = test(&mut b, number);
        b.effect(Opcode::Kill, &[predicate]);
        b.effect(Opcode::End, &[less]);
        run(&mut program, &Target::default(), Rules::ALL);
        assert_eq!(opcodes(&program), [Opcode::CmpsF, opcode, Opcode::CmpsS, Opcode::Kill, Opcode::End]);
    }
}

#[test]
fn branches_take_negations_and_two_predicates() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let equal = compare(&mut b, Opcode::CmpsS, Condition::Eq, x, y);
    let unequal = not(&mut b, equal);
    let both = bitop(&mut b, Opcode::AndB, less, unequal);
    let negated = not(&mut b, both);
    let predicate = test(&mut b, negated);
    b.effect(Opcode::Br, &[predicate]);
    let mut old = program.clone();
    run(&mut program, &Target::default(), Rules::ALL);
    // !(less && !equal) is !less || equal.
    assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::CmpsS, Opcode::Brao]);
    assert_eq!(last(&program).srcs.iter().map(|src| src.mods).collect::<Vec<_>>(), [Mods::NOT, Mods::empty()]);
    run(&mut old, &Target::by_name("a540").unwrap(), Rules::ALL);
    assert_eq!(opcodes(&old), [Opcode::CmpsF, Opcode::CmpsS, Opcode::AndB, Opcode::CmpsS, Opcode::Br]);
}

/// Bits above the lowest of a number that is read with `(not)` are 1, and all that a disjunction is compared with 0 for.
#[test]
fn a_disjunction_with_not_is_no_branch_on_two_predicates() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let equal = compare(&mut b, Opcode::CmpsS, Condition::Eq, x, y);
    let either = bitop(&mut b, Opcode::OrB, less, equal.with_mods(Mods::NOT));
    let predicate = test(&mut b, either);
    b.effect(Opcode::Br, &[predicate]);
    run(&mut program, &Target::default(), Rules::ALL);
    assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::CmpsS, Opcode::OrB, Opcode::CmpsS, Opcode::Br]);
}

#[test]
fn selections_exchange_their_operands() {
    for widened in [false, true] {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let class = RegClass::general(widened);
        let less = b.compare(Opcode::CmpsF, Condition::Lt, class, x, y);
        let less = b.src(less);
        let mut condition = not(&mut b, less);
        if widened {
            condition = widen(&mut b, condition);
        }
        let chosen = select(&mut b, x, condition, y);
        b.effect(Opcode::End, &[chosen]);
        run(&mut program, &Target::default(), Rules::ALL);
        assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::SelB32, Opcode::End]);
        let select = def(&program, chosen);
        assert_eq!((select.srcs[0], select.srcs[1].value(), select.srcs[2]), (y, less.value(), x));
    }
}

/// Who else reads the negation still has it; it is computed in a full register at once.
#[test]
fn a_negation_with_other_readers_stays() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let negation = not(&mut b, less);
    let wide = widen(&mut b, negation);
    let chosen = select(&mut b, x, wide, y);
    b.effect(Opcode::End, &[chosen, wide]);
    run(&mut program, &Target::default(), Rules::ALL);
    assert_eq!(opcodes(&program), [Opcode::CmpsF, Opcode::XorB, Opcode::SelB32, Opcode::End]);
    assert_eq!(def(&program, chosen).srcs[0], x);
}

#[test]
fn conjunctions_read_a_negation_as_not() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
    let equal = compare(&mut b, Opcode::CmpsF, Condition::Eq, x, y);
    let unequal = not(&mut b, equal);
    let both = bitop(&mut b, Opcode::AndB, unequal, less);
    let unless = not(&mut b, less);
    let either = bitop(&mut b, Opcode::OrB, unless, both);
    b.effect(Opcode::End, &[either]);
    run(&mut program, &Target::default(), Rules::ALL);
    let expected = [Opcode::CmpsF, Opcode::CmpsF, Opcode::AndB, Opcode::XorB, Opcode::OrB, Opcode::End];
    assert_eq!(opcodes(&program), expected);
    assert_eq!(def(&program, both).srcs[..], [equal.with_mods(Mods::NOT), less]);
}

/// A phi of bools is one, a phi of a bool and a number is none.
#[test]
fn phis_of_bools_are_bools() {
    for number in [0, 2] {
        let (mut program, block, [x, y]) = program();
        let mut b = Builder::new(&mut program, block);
        let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
        let phi = b.define(Opcode::Phi, RegClass::HALF, 1, &[less, Src::immediate(number, true)], Attrs::None);
        let phi = b.src(phi);
        let negation = not(&mut b, phi);
        let predicate = test(&mut b, negation);
        b.effect(Opcode::Br, &[predicate]);
        run(&mut program, &Target::default(), Rules::ALL);
        let inverted = last(&program).srcs[0].mods == Mods::NOT;
        assert_eq!(inverted, number == 0, "{:?}", opcodes(&program));
    }
}

/// What is not certainly a bool is not negated by its lowest bit alone.
#[test]
fn numbers_are_no_bools() {
    let (mut program, block, [x, y]) = program();
    let mut b = Builder::new(&mut program, block);
    let flipped = not(&mut b, x);
    let chosen = select(&mut b, x, flipped, y);
    b.effect(Opcode::End, &[chosen]);
    run(&mut program, &Target::default(), Rules::ALL);
    assert_eq!(opcodes(&program), [Opcode::XorB, Opcode::SelB32, Opcode::End]);
    assert_eq!(def(&program, chosen).srcs[..], [x, flipped, y]);
}

/// A branch on a vote, negated or not, and what stands between the two.
#[test]
fn branches_vote() {
    use Opcode::{AllMacro, AnyMacro, Ball, Bany};
    for (vote, negated, expected) in
        [(AnyMacro, false, Bany), (AllMacro, false, Ball), (AnyMacro, true, Ball), (AllMacro, true, Bany)]
    {
        for kills in [false, true] {
            let (mut program, block, [x, y]) = program();
            let mut b = Builder::new(&mut program, block);
            let less = compare(&mut b, Opcode::CmpsF, Condition::Lt, x, y);
            let unless = if kills { less } else { not(&mut b, less) };
            let lanes = test(&mut b, unless);
            let attrs = Attrs::Move { src: Type::U16, dst: Type::U16, round: Round::Default };
            let value = b.define(vote, RegClass::HALF, 1, &[lanes], attrs);
            let mut outcome = b.src(value);
            if kills {
                b.effect(Opcode::Kill, &[lanes]);
            }
            if negated {
                outcome = not(&mut b, outcome);
            }
            let predicate = test(&mut b, outcome);
            b.effect(Opcode::Br, &[predicate]);
            run(&mut program, &Target::default(), Rules::ALL);
            let branch = last(&program);
            if kills {
                assert_eq!(branch.opcode, Opcode::Br, "other lanes branch than have voted");
                continue;
            }
            // What is voted on is a negation itself.
            assert_eq!(opcodes(&program), [Opcode::CmpsF, expected]);
            assert_eq!(branch.srcs[0].value(), lanes.value());
            assert_eq!(branch.srcs[0].mods, if negated { Mods::empty() } else { Mods::NOT });
            assert_eq!(program.blocks[block].divergent, Some(false));
        }
    }
}
