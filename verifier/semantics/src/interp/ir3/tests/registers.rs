//! Register form: halves, the files, repetition, parallel moves.

use super::*;

#[test]
fn halves_of_a_merged_register() {
    let mut code = TestProgram::new();
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 1)], &[full(0x1234_5678)], moves(Type::U32));
    // hr0.z and hr0.w are r0.y.
    code.instr(Opcode::Mov, &[to(RegClass::HALF, 8)], &[from(RegClass::HALF, 2)], moves(Type::U16));
    code.instr(Opcode::Mov, &[to(RegClass::HALF, 10)], &[from(RegClass::HALF, 3)], moves(Type::U16));
    code.instr(Opcode::Mov, &[to(RegClass::HALF, 3)], &[half(0xabcd)], moves(Type::U16));
    code.end(&[from(RegClass::HALF, 8), from(RegClass::HALF, 10), from(RegClass::FULL, 1), from(RegClass::FULL, 4)]);
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(0x5678));
    expect(&outcome, 1, |_| Some(0x1234));
    expect(&outcome, 2, |_| Some(0xabcd_5678));
    // Its high half was never written.
    expect(&outcome, 3, |_| None);
}

#[test]
fn separate_half_registers() {
    let mut code = TestProgram::new();
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 1)], &[full(0x1234_5678)], moves(Type::U32));
    code.instr(Opcode::Mov, &[to(RegClass::HALF, 2)], &[half(0x9999)], moves(Type::U16));
    code.end(&[from(RegClass::FULL, 1), from(RegClass::HALF, 2), from(RegClass::HALF, 3)]);
    let outcome = code.run_on("a540", &Env::from_seed(1));
    expect(&outcome, 0, |_| Some(0x1234_5678));
    expect(&outcome, 1, |_| Some(0x9999));
    expect(&outcome, 2, |_| None);
}

#[test]
fn a_swap() {
    let mut code = TestProgram::new();
    for (number, bits) in [(0, 5), (1, 6)] {
        code.instr(Opcode::Mov, &[to(RegClass::FULL, number)], &[full(bits)], moves(Type::U32));
    }
    let [x, y] = [0, 1].map(|number| to(RegClass::FULL, number));
    let [from_x, from_y] = [0, 1].map(|number| from(RegClass::FULL, number));
    code.instr(Opcode::Swz, &[x, y], &[from_y, from_x], moves(Type::U32)).repeat = 1;
    code.end(&[from_x, from_y]);
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(6));
    expect(&outcome, 1, |_| Some(5));
}

/// Targets without `swz` exchange with three `xor.b`; one side may be undefined.
#[test]
fn an_exchange_with_an_undefined_side() {
    let mut code = TestProgram::new();
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 0)], &[full(5)], moves(Type::U32));
    let [x, y] = [0, 1].map(|number| from(RegClass::FULL, number));
    for number in [0, 1, 0] {
        code.instr(Opcode::XorB, &[to(RegClass::FULL, number)], &[x, y], Attrs::None);
    }
    code.instr(Opcode::XorB, &[to(RegClass::FULL, 2)], &[x, y], Attrs::None);
    code.end(&[x, y, from(RegClass::FULL, 2)]);
    let outcome = code.run_on("a420", &Env::from_seed(1));
    expect(&outcome, 0, |_| None);
    expect(&outcome, 1, |_| Some(5));
    expect(&outcome, 2, |_| None);
}

#[test]
fn gather_and_scatter() {
    let mut code = TestProgram::new();
    for number in 0..4 {
        code.instr(Opcode::Mov, &[to(RegClass::FULL, number)], &[full(number.into())], moves(Type::U32));
    }
    let four = Dst::new(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::first(4));
    let reversed: Vec<_> = (0..4).rev().map(|number| from(RegClass::FULL, number)).collect();
    code.instr(Opcode::Gat, &[four], &reversed, moves(Type::U32));
    let vector = Src::reg(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::first(4));
    let dsts = [1, 2, 3, 8].map(|number| to(RegClass::FULL, number));
    code.instr(Opcode::Sct, &dsts, &[vector], moves(Type::U32));
    code.end(&[1, 2, 3, 8].map(|number| from(RegClass::FULL, number)));
    let outcome = code.run();
    for component in 0..4 {
        expect(&outcome, component, |_| Some(3 - u32::from(component)));
    }
}

#[test]
fn a_parallel_copy_of_overlapping_halves() {
    let mut code = TestProgram::new();
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 0)], &[full(0x2222_1111)], moves(Type::U32));
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 1)], &[full(0x4444_3333)], moves(Type::U32));
    // r0.x -> r0.y while hr0.z -> hr0.x and hr0.w -> hr0.y: a swap, in parts.
    let dsts = [to(RegClass::FULL, 1), to(RegClass::HALF, 0), to(RegClass::HALF, 1)];
    let srcs = [from(RegClass::FULL, 0), from(RegClass::HALF, 2), from(RegClass::HALF, 3)];
    code.instr(Opcode::ParallelCopy, &dsts, &srcs, Attrs::None);
    code.end(&[from(RegClass::FULL, 0), from(RegClass::FULL, 1)]);
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(0x4444_3333));
    expect(&outcome, 1, |_| Some(0x2222_1111));
}

#[test]
fn repetition_advances_what_says_so() {
    let mut code = TestProgram::new();
    for number in 0..3 {
        code.instr(Opcode::Mov, &[to(RegClass::FULL, number)], &[full(10 + u32::from(number))], moves(Type::U32));
    }
    let mut advancing = from(RegClass::FULL, 0);
    advancing.flags |= OperandFlags::R;
    let dst = Dst::new(Place::Reg(PhysReg(8)), RegClass::FULL, WriteMask::first(3));
    code.instr(Opcode::AddU, &[dst], &[advancing, from(RegClass::FULL, 0)], Attrs::None).repeat = 2;
    code.end(&[8, 9, 10].map(|number| from(RegClass::FULL, number)));
    let outcome = code.run();
    for component in 0..3 {
        expect(&outcome, component, |_| Some(20 + u32::from(component)));
    }
}

#[test]
fn indirect_registers() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    for number in 0..4 {
        code.instr(Opcode::Mov, &[to(RegClass::HALF, number)], &[half(100 + u32::from(number))], moves(Type::U16));
    }
    let index = code.op2(Opcode::AndB, lane, full(3));
    let index = code.src(index);
    let index = code.b().convert(Type::U32, Type::S16, RegClass::HALF, index);
    let index = code.src(index);
    code.instr(Opcode::Mov, &[to(RegClass::ADDRESS, PhysReg::A0_X.0)], &[index], moves(Type::S16));
    let place = Place::Relative { offset: 0, size: 4 };
    let src = Src::reg(place, RegClass::HALF, WriteMask::SCALAR);
    code.instr(Opcode::Mov, &[to(RegClass::HALF, 8)], &[src], moves(Type::U16));
    let dst = Dst::new(place, RegClass::HALF, WriteMask::SCALAR);
    code.instr(Opcode::Mov, &[dst], &[half(7)], moves(Type::U16));
    code.end(&[8, 0, 1].map(|number| from(RegClass::HALF, number)));
    let outcome = code.run();
    expect(&outcome, 0, |lane| Some(100 + lane % 4));
    expect(&outcome, 1, |lane| Some(if lane % 4 == 0 { 7 } else { 100 }));
    expect(&outcome, 2, |lane| Some(if lane % 4 == 1 { 7 } else { 101 }));
}

#[test]
fn shared_registers_hold_one_value() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    code.instr(Opcode::Mov, &[to(RegClass::SHARED, 192)], &[full(42)], moves(Type::U32));
    code.instr(Opcode::Mov, &[to(RegClass::SHARED, 193)], &[lane], moves(Type::U32));
    code.instr(Opcode::ReadFirstMacro, &[to(RegClass::SHARED, 194)], &[lane], moves(Type::U32));
    // Only a move chooses a lane.
    code.instr(Opcode::AddU, &[to(RegClass::SHARED, 195)], &[lane, full(0)], Attrs::None);
    // The halves of sr48.x.
    code.instr(Opcode::Mov, &[to(RegClass::SHARED_HALF, 193)], &[half(1)], moves(Type::U16));
    code.end(&[192, 193, 194, 195].map(|number| from(RegClass::SHARED, number)));
    let outcome = code.run();
    expect(&outcome, 0, |_| Some(0x1_002a));
    expect(&outcome, 1, |_| Some(0));
    expect(&outcome, 2, |_| Some(0));
    expect(&outcome, 3, |_| None);
}

#[test]
fn tied_operands_are_one_register() {
    let mut code = TestProgram::new();
    let attrs = MemoryAttrs { ty: Some(Type::U32), space: Some(AddressSpace::Ssbo), ..MemoryAttrs::default() };
    let mut dst = Dst::new(Place::Reg(PhysReg(4)), RegClass::FULL, WriteMask::first(2));
    let mut data = Src::reg(Place::Reg(PhysReg(8)), RegClass::FULL, WriteMask::first(2));
    dst.flags |= OperandFlags::TIED;
    data.flags |= OperandFlags::TIED;
    code.instr(Opcode::AtomicBAdd, &[dst], &[full(0), full(0), data], Attrs::Memory(attrs));
    code.end(&[]);
    assert!(code.refused().contains("tied"));
}

#[test]
fn a_register_outside_of_its_file_is_refused() {
    let mut code = TestProgram::new();
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 192)], &[full(0)], moves(Type::U32));
    code.end(&[]);
    assert!(code.refused().contains("r48.x"));
}

#[test]
fn inputs_in_the_same_register_are_both_undefined() {
    for (second, defined) in [(PhysReg(1), true), (PhysReg(0), false)] {
        let mut code = TestProgram::new();
        for (at, value) in [(PhysReg(0), SystemValue::SubgroupInvocation), (second, SystemValue::SubgroupSize)] {
            let dst = Dst::new(Place::Reg(at), RegClass::FULL, WriteMask::SCALAR);
            code.instr(Opcode::Input, &[dst], &[], Attrs::Input(Some(InputKind::System(value))));
        }
        code.end(&[Src::reg(Place::Reg(PhysReg(0)), RegClass::FULL, WriteMask::SCALAR)]);
        let outcome = code.run();
        assert_eq!(outcome.outputs.rows()[0].poison == 0, defined);
    }
}
