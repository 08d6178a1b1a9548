//! SSA values: phis, vectors, arrays, constants, poison.

use super::*;

#[test]
fn vectors_are_collected_and_split() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let (lane, seven) = (code.src(lane), full(7));
    let vector = code.b().define(Opcode::Collect, RegClass::FULL, 2, &[lane, seven], Attrs::None);
    let vector = code.src(vector);
    let y = code.b().define(Opcode::Split, RegClass::FULL, 1, &[vector], Attrs::Split { offset: 1 });
    let x = code.b().define(Opcode::Split, RegClass::FULL, 1, &[vector], Attrs::Split { offset: 0 });
    let (x, y) = (code.src(x), code.src(y));
    code.end(&[x, y]);
    let outcome = code.run();
    expect(&outcome, 0, Some);
    expect(&outcome, 1, |_| Some(7));
    assert_eq!(outcome.executed, 5);
}

#[test]
fn what_is_not_written_is_poison() {
    let mut code = TestProgram::new();
    let undefined = code.mov(Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR));
    let undefined = code.src(undefined);
    let sum = code.op2(Opcode::AddU, undefined, full(1));
    let sum = code.src(sum);
    code.end(&[undefined, sum]);
    let outcome = code.run();
    expect(&outcome, 0, |_| None);
    expect(&outcome, 1, |_| None);
}

#[test]
fn a_selection_is_poison_only_where_its_choice_is() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let undefined = code.mov(Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR));
    let (lane, undefined) = (code.src(lane), code.src(undefined));
    let chosen = code.b().alu(Opcode::SelB32, RegClass::FULL, &[undefined, lane, full(5)]);
    let chosen = code.src(chosen);
    code.end(&[chosen]);
    expect(&code.run(), 0, |lane| (lane == 0).then_some(5));
}

/// A flag in a register has one significant bit: it is defined where an operation sets it, for any other bits.
#[test]
fn bits_are_poison_one_by_one() {
    let mut code = TestProgram::new();
    let undefined = code.mov(Src::new(SrcOperand::Undef, RegClass::HALF, WriteMask::SCALAR));
    let undefined = code.src(undefined);
    let flag = code.b().alu(Opcode::OrB, RegClass::HALF, &[undefined, half(1)]);
    let flag = code.src(flag);
    let copy = code.mov(flag);
    let copy = code.src(copy);
    let low = code.b().alu(Opcode::AndB, RegClass::HALF, &[copy, half(1)]);
    let other = code.b().alu(Opcode::AndB, RegClass::HALF, &[copy, half(3)]);
    let (low, other) = (code.src(low), code.src(other));
    let chosen = code.b().alu(Opcode::SelB16, RegClass::HALF, &[half(7), copy, half(5)]);
    let chosen = code.src(chosen);
    code.end(&[low, other, chosen]);
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(1));
    expect(&outcome, 1, |_| None);
    expect(&outcome, 2, |_| Some(7));
}

#[test]
fn modifiers_and_saturation() {
    let mut code = TestProgram::new();
    let one = full(1.5f32.to_bits());
    let x = code.op2(Opcode::AddF, one.with_mods(Mods::NEG), full(0));
    let y = code.op2(Opcode::AddF, full((-2.0f32).to_bits()).with_mods(Mods::ABS | Mods::NEG), one);
    let z = code.op2(Opcode::AddU, full(3).with_mods(Mods::NEG), full(1));
    let w = code.b().alu(Opcode::AndB, RegClass::HALF, &[half(0x0f0f).with_mods(Mods::NOT), half(0xffff)]);
    let clamped = code.op2(Opcode::AddF, one, one);
    let instr = code.program.values[clamped].instr;
    code.program.instrs[instr].flags |= InstrFlags::SAT;
    // A choice inverts the sign bit, as of a float.
    let chosen = code.b().alu(Opcode::SelB32, RegClass::FULL, &[full(7).with_mods(Mods::NEG), full(1), full(0)]);
    let other = code.b().alu(Opcode::SelB16, RegClass::HALF, &[half(0), half(0), half(7).with_mods(Mods::NEG)]);
    let srcs = [x, y, z, w, clamped, chosen, other].map(|value| code.src(value));
    code.end(&srcs);
    let outcome = code.run();
    let floats = [(-1.5f32).to_bits(), (-0.5f32).to_bits()];
    let expected = [floats[0], floats[1], (-2i32) as u32, 0xf0f0, 1.0f32.to_bits(), 0x8000_0007, 0x8007];
    for (component, expected) in expected.into_iter().enumerate() {
        expect(&outcome, component as u8, |_| Some(expected));
    }
}

#[test]
fn words_of_the_constant_file() {
    let mut code = TestProgram::new();
    code.program.consts.driver_params.push(DriverParam { word: 9, value: SystemValue::BaseVertex, component: 0 });
    code.program.consts.immediates.push((10, 0x3f80_0000));
    let mut env = Env::from_seed(3);
    env.consts.insert(4, 0xabcd_1234);
    env.system.insert("BaseVertex.0".to_owned(), vec![77]);
    let x = code.mov(Src::constant(4, false));
    let y = code.mov(Src::constant(9, false));
    // A half operand reads the float for a float operation, the low bits for any other.
    let z = code.b().alu(Opcode::AddF, RegClass::HALF, &[Src::constant(10, true), half(0)]);
    let w = code.mov(Src::constant(4, true));
    let srcs = [x, y, z, w].map(|value| code.src(value));
    code.end(&srcs);
    let outcome = code.run_on("a660", &env);
    for (component, expected) in [0xabcd_1234, 77, 0x3c00, 0x1234].into_iter().enumerate() {
        expect(&outcome, component as u8, |_| Some(expected));
    }
}

#[test]
fn constants_at_an_address() {
    let mut code = TestProgram::new();
    let mut env = Env::from_seed(3);
    for word in 0..128 {
        env.consts.insert(word, 1000 + word);
    }
    let lane = code.lane();
    let lane = code.src(lane);
    let address = code.b().convert(Type::U32, Type::S16, RegClass::HALF, lane);
    let address = code.src(address);
    let address = code.b().convert(Type::S16, Type::S16, RegClass::ADDRESS, address);
    let address = code.src(address);
    let src = Src::new(SrcOperand::ConstRelative(3), RegClass::FULL, WriteMask::SCALAR);
    let x = code.b().define(Opcode::Mov, RegClass::FULL, 1, &[src, address], moves(Type::U32));
    let x = code.src(x);
    code.end(&[x]);
    expect(&code.run_on("a660", &env), 0, |lane| Some(1003 + lane));
}

/// An array of 4 elements; each version is written at the lane's index, the previous version is unchanged.
#[test]
fn versions_of_an_array() {
    let mut code = TestProgram::new();
    let array = code.program.arrays.push(ArrayData { id: 1, class: RegClass::FULL, length: 4, base: None });
    let access = |offset, relative, value: Option<Value>| {
        Place::Array(ArrayAccess { array, offset, relative, value: value.into(), base: None.into() })
    };
    let lane = code.lane();
    let lane = code.src(lane);
    let index = code.op2(Opcode::AndB, lane, full(3));
    let index = code.src(index);
    let index = code.b().convert(Type::U32, Type::S16, RegClass::HALF, index);
    let index = code.src(index);
    let address = code.b().convert(Type::S16, Type::S16, RegClass::ADDRESS, index);
    let address = code.src(address);
    let mut version = None;
    let mut versions = Vec::new();
    for (offset, relative, data) in [(0, false, full(10)), (1, false, full(11)), (0, true, full(99))] {
        let mut srcs = vec![data];
        if let Some(previous) = version {
            let mut tied = Src::reg(access(offset, false, Some(previous)), RegClass::FULL, WriteMask::SCALAR);
            tied.flags |= OperandFlags::TIED;
            srcs.push(tied);
        }
        if relative {
            srcs.push(address);
        }
        let instr = code.b().effect(Opcode::Mov, &srcs);
        let value = code.program.values.push(ValueData {
            instr,
            dst: 0,
            class: RegClass::FULL,
            components: 4,
            array: Some(array),
        });
        let data = &mut code.program.instrs[instr];
        data.attrs = moves(Type::U32);
        data.dsts.push(Dst::new(access(offset, relative, Some(value)), RegClass::FULL, WriteMask::SCALAR));
        version = Some(value);
        versions.push(value);
    }
    let read = |code: &mut TestProgram, version: Value, offset| {
        let src = Src::reg(access(offset, false, Some(version)), RegClass::FULL, WriteMask::SCALAR);
        let value = code.mov(src);
        code.src(value)
    };
    let old = read(&mut code, versions[1], 0);
    let new = read(&mut code, versions[2], 0);
    let third = read(&mut code, versions[2], 2);
    let src = Src::reg(access(0, true, Some(versions[2])), RegClass::FULL, WriteMask::SCALAR);
    let found = code.b().define(Opcode::Mov, RegClass::FULL, 1, &[src, address], moves(Type::U32));
    let found = code.src(found);
    code.end(&[old, new, third, found]);
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(10));
    expect(&outcome, 1, |lane| Some(if lane % 4 == 0 { 99 } else { 10 }));
    expect(&outcome, 2, |lane| (lane % 4 == 2).then_some(99));
    expect(&outcome, 3, |_| Some(99));
}

#[test]
fn an_index_outside_of_an_array() {
    for write in [false, true] {
        let mut code = TestProgram::new();
        let array = code.program.arrays.push(ArrayData { id: 1, class: RegClass::FULL, length: 60, base: None });
        let place =
            Place::Array(ArrayAccess { array, offset: 0, relative: true, value: None.into(), base: None.into() });
        let lane = code.lane();
        let lane = code.src(lane);
        let index = code.b().convert(Type::U32, Type::S16, RegClass::HALF, lane);
        let index = code.src(index);
        let address = code.b().convert(Type::S16, Type::S16, RegClass::ADDRESS, index);
        let address = code.src(address);
        if write {
            let dst = Dst::new(place, RegClass::FULL, WriteMask::SCALAR);
            code.instr(Opcode::Mov, &[dst], &[full(1), address], moves(Type::U32));
            code.end(&[]);
            expect_undefined(&code.run(), UndefinedReason::Address, 0xf << 60);
        } else {
            let src = Src::reg(place, RegClass::FULL, WriteMask::SCALAR);
            let value = code.b().define(Opcode::Mov, RegClass::FULL, 1, &[src, address], moves(Type::U32));
            let value = code.src(value);
            code.end(&[value]);
            expect(&code.run(), 0, |_| None);
        }
    }
}

/// Registers that are addressed indirectly are those of all arrays that the operand may be of; of an array of unknown
/// size, all of the file.
#[test]
fn an_index_outside_of_the_registers() {
    for (size, outside) in [(8, u64::MAX << 8), (0, u64::MAX << 32)] {
        expect_undefined(&stored_by_lane(size), UndefinedReason::Address, outside);
    }
}

/// The outcome of a store of each lane, by its number, from register 160 on.
fn stored_by_lane(size: u16) -> Outcome {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let index = code.b().convert(Type::U32, Type::S16, RegClass::HALF, lane);
    let index = code.src(index);
    code.instr(Opcode::Mov, &[to(RegClass::ADDRESS, PhysReg::A0_X.0)], &[index], moves(Type::S16));
    let dst = Dst::new(Place::Relative { offset: 160, size }, RegClass::FULL, WriteMask::SCALAR);
    code.instr(Opcode::Mov, &[dst], &[full(1)], moves(Type::U32));
    code.end(&[]);
    code.run()
}

#[test]
fn an_input_must_be_known() {
    let mut code = TestProgram::new();
    code.b().define(Opcode::Input, RegClass::FULL, 1, &[], Attrs::Input(None));
    code.end(&[]);
    assert_eq!(
        code.refused(),
        "block 0, instruction 0: the interpreter does not support `_meta:in`: the text does not say which input it reads (in a log, the list of inputs after the final assembly does)"
    );
}

#[test]
fn an_unknown_operation_is_refused_by_name() {
    let mut code = TestProgram::new();
    code.b().effect(Opcode::Emit, &[]);
    code.end(&[]);
    assert!(code.refused().contains("`emit`"));
}

/// A marked bit of the target is a difference only if a value of it shows one.
#[test]
fn undefined_bits_of_a_target_may_have_any_value() {
    use crate::interp::filling::{Agreement, compare};
    let undefined = |class| Src::new(SrcOperand::Undef, class, WriteMask::SCALAR);
    let zero = {
        let mut code = TestProgram::new();
        let zero = code.mov(full(0));
        let zero = code.src(zero);
        code.end(&[zero]);
        code.run()
    };
    let against_zero = |build: &dyn Fn(&mut TestProgram) -> Src| {
        let mut code = TestProgram::new();
        let value = build(&mut code);
        code.end(&[value]);
        let decoded = Decoded::new(&code.program, &Target::by_name("a660").unwrap()).unwrap();
        let run = |scratch: &mut Scratch| decoded.run(&Env::from_seed(1), FUEL, scratch);
        let mut scratch = Scratch::new();
        let target = run(&mut scratch);
        let compared = compare(&zero, &target, &mut scratch, run);
        // A run after it has undefined bits again.
        assert_eq!(run(&mut scratch), target);
        compared
    };
    let masked = |mask: u32| {
        move |code: &mut TestProgram| {
            let value = code.mov(undefined(RegClass::FULL));
            let value = code.src(value);
            let masked = code.op2(Opcode::AndB, value, full(mask));
            code.src(masked)
        }
    };
    let same = |code: &mut TestProgram, other: u32| {
        let value = code.mov(undefined(RegClass::FULL));
        let value = code.src(value);
        let same = code.op2(Opcode::XorB, value, value);
        let same = code.src(same);
        let sum = code.op2(Opcode::AddU, same, full(other));
        code.src(sum)
    };
    let on_half = |bits: u32| {
        move |code: &mut TestProgram| {
            let value = code.mov(undefined(RegClass::HALF));
            let value = code.src(value);
            let wide = code.b().convert(Type::U16, Type::U32, RegClass::FULL, value);
            let wide = code.src(wide);
            let masked = code.op2(Opcode::AndB, wide, full(bits));
            code.src(masked)
        }
    };
    assert_eq!(against_zero(&|code| same(code, 0)), Ok(Agreement::Filled));
    let difference = against_zero(&|code| same(code, 1)).unwrap_err().to_string();
    assert!(difference.ends_with("got an undefined value"), "{difference}");
    for mask in [0xff00, 1, 1 << 31] {
        against_zero(&masked(mask)).unwrap_err();
    }
    // A half register has 16 bits, with any undefined bits.
    against_zero(&on_half(0x8000)).unwrap_err();
    assert_eq!(against_zero(&on_half(0xffff_0000)), Ok(Agreement::Plain(crate::interp::Compared::Same)));
}

/// A branch on an undefined value has no meaning, even if both edges are equal; one on a value that only has marks has.
#[test]
fn a_branch_of_a_target_on_undefined_bits_goes_one_way() {
    use crate::interp::filling::{Agreement, compare};
    let program = |other: u32, only_marked: bool| {
        let mut code = TestProgram::new();
        let (yes, no, end) = (code.new_block(), code.new_block(), code.new_block());
        let undefined = code.mov(Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR));
        let undefined = code.src(undefined);
        let number = if only_marked { code.op2(Opcode::XorB, undefined, undefined) } else { code.mov(undefined) };
        let number = code.src(number);
        let test = code.test(Condition::Eq, number, full(0));
        code.branch(Opcode::Br, &[test], yes, no);
        code.go(yes);
        let one = code.mov(full(5));
        code.jump(end);
        code.go(no);
        let two = code.mov(full(other));
        code.jump(end);
        code.go(end);
        let (one, two) = (code.src(one), code.src(two));
        let phi = code.phi(&[one, two]);
        let phi = code.src(phi);
        code.end(&[phi]);
        code.program
    };
    let mut five = TestProgram::new();
    let value = five.mov(full(5));
    let value = five.src(value);
    five.end(&[value]);
    let compared = |other, only_marked| {
        let decoded = Decoded::new(&program(other, only_marked), &Target::by_name("a660").unwrap()).unwrap();
        let run = |scratch: &mut Scratch| decoded.run(&Env::from_seed(1), FUEL, scratch);
        let mut scratch = Scratch::new();
        let target = run(&mut scratch);
        compare(&five.run(), &target, &mut scratch, run)
    };
    assert_eq!(compared(6, true), Ok(Agreement::Filled));
    for other in [5, 6] {
        let difference = compared(other, false).unwrap_err().to_string();
        assert!(difference.contains("a branch on an undefined condition"), "{difference}");
    }
}

#[test]
fn getfiberid_is_the_number_of_the_lane() {
    let mut code = TestProgram::new();
    let id = code.b().define(Opcode::Getfiberid, RegClass::FULL, 1, &[], Attrs::None);
    let id = code.src(id);
    code.end(&[id]);
    expect(&code.run(), 0, Some);
}
