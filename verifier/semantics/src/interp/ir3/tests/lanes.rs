//! Operations across the lanes of a wave.

use super::*;

/// Runs `build` in the lanes 3, 8, 9, 20 to 30 and 40; the others skip it.
fn divergent(build: impl Fn(&mut TestProgram, Src) -> Src, expected: impl Fn(u32) -> Option<u32>) {
    let active = |lane: u32| matches!(lane, 3 | 8 | 9 | 20..=30 | 40);
    let mut code = TestProgram::new();
    let mut env = Env::from_seed(1);
    env.attributes.insert("0.0".to_owned(), (0..64).map(|lane| active(lane).into()).collect());
    let lane = code.lane();
    let lane = code.src(lane);
    let attrs = Attrs::Input(Some(InputKind::Attribute { base: 0, component: 0 }));
    let chosen = code.b().define(Opcode::Input, RegClass::FULL, 1, &[], attrs);
    let chosen = code.src(chosen);
    let p = code.test(Condition::Ne, chosen, full(0));
    let (inside, join) = (code.new_block(), code.new_block());
    code.branch(Opcode::Br, &[p], inside, join);
    code.go(inside);
    let result = build(&mut code, lane);
    code.jump(join);
    code.go(join);
    let undefined = Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR);
    let sources: Vec<_> = code.program.blocks[join]
        .predecessors
        .iter()
        .map(|&pred| if pred == inside { result } else { undefined })
        .collect();
    let x = code.phi(&sources);
    let x = code.src(x);
    code.end(&[x]);
    expect(&code.run_on("a660", &env), 0, |lane| if active(lane) { expected(lane) } else { None });
}

fn macro_op(opcode: Opcode) -> impl Fn(&mut TestProgram, Src) -> Src {
    move |code, lane| {
        let mut srcs = Vec::new();
        if matches!(opcode, Opcode::AnyMacro | Opcode::AllMacro | Opcode::BallotMacro | Opcode::ReadCondMacro) {
            srcs.push(code.test(Condition::Gt, lane, full(21)));
        }
        if matches!(opcode, Opcode::ReadCondMacro | Opcode::ReadFirstMacro | Opcode::ReadGetlastMacro) {
            srcs.push(lane);
        }
        let value = code.b().define(opcode, RegClass::FULL, 1, &srcs, moves(Type::U32));
        code.src(value)
    }
}

#[test]
fn votes_and_reads() {
    divergent(macro_op(Opcode::Movmsk), |_| Some(0x7ff0_0308));
    divergent(macro_op(Opcode::BallotMacro), |_| Some(0x7fc0_0000));
    divergent(macro_op(Opcode::AnyMacro), |_| Some(1));
    divergent(macro_op(Opcode::AllMacro), |_| Some(0));
    divergent(macro_op(Opcode::ElectMacro), |lane| Some((lane == 3).into()));
    // The branch that is `shps` determines the wave that runs the preamble; no value does.
    divergent(macro_op(Opcode::ShpsMacro), |_| None);
    divergent(macro_op(Opcode::ReadFirstMacro), |_| Some(3));
    divergent(macro_op(Opcode::ReadGetlastMacro), |_| Some(3));
    divergent(macro_op(Opcode::ReadCondMacro), |_| Some(22));
}

#[test]
fn scans() {
    let order = [3, 8, 9, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 40];
    let scan = |which: usize| {
        move |code: &mut TestProgram, lane: Src| {
            let identity = code.mov(full(100));
            let identity = code.src(identity);
            let instr = code.b().effect(Opcode::ScanMacro, &[lane, identity]);
            code.program.instrs[instr].attrs = Attrs::Scan { op: Opcode::AddU };
            let results = [0; 3].map(|_| code.b().add_dst(instr, RegClass::FULL, WriteMask::SCALAR));
            code.src(results[which])
        }
    };
    let before = |lane: u32| 100 + order.iter().filter(|&&other| other < lane).sum::<u32>();
    divergent(scan(0), |lane| Some(before(lane)));
    divergent(scan(1), |lane| Some(before(lane) + lane));
    divergent(scan(2), |_| Some(before(64)));
}

/// Within a cluster each lane has the sum up to itself already; the scan adds the sum of the clusters before.
#[test]
fn scans_of_clusters() {
    let order = [3, 8, 9, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 40];
    let scan = |which: usize| {
        move |code: &mut TestProgram, lane: Src| {
            let identity = code.mov(full(0));
            let identity = code.src(identity);
            let instr = code.b().effect(Opcode::ScanClustersMacro, &[identity, lane]);
            code.program.instrs[instr].attrs = Attrs::Scan { op: Opcode::AddU };
            let results = [0; 2].map(|_| code.b().add_dst(instr, RegClass::FULL, WriteMask::SCALAR));
            code.src(results[which])
        }
    };
    // The last lane of each cluster has the sum of all of it.
    let last_of = |cluster: u32| order.iter().copied().filter(|lane| lane / 8 == cluster).max().unwrap_or(0);
    let before = |lane: u32| (0..lane / 8).map(last_of).sum::<u32>();
    divergent(scan(1), |lane| Some(before(lane) + lane));
    divergent(scan(0), |_| Some(before(64)));
}

#[test]
fn broadcast_of_the_active_lanes() {
    let broadcast = |code: &mut TestProgram, lane: Src| {
        let value = code.op2(Opcode::AddU, lane, full(100));
        let value = code.src(value);
        let attrs = TextureAttrs { cluster: Some(4), ty: Some(Type::U32), ..TextureAttrs::default() };
        let value = code.b().define(Opcode::BrcstActive, RegClass::FULL, 1, &[value, full(7)], Attrs::Texture(attrs));
        code.src(value)
    };
    divergent(broadcast, |lane| {
        Some(match lane {
            22 | 23 => 121,
            26 | 27 => 125,
            30 => 129,
            _ => 7,
        })
    });
}

#[test]
fn derivatives() {
    for (opcode, expected) in [
        (Opcode::Dsx, [1.0f32, 1.0, 1.0, 1.0]),
        (Opcode::Dsy, [4.0, 4.0, 4.0, 4.0]),
        (Opcode::DsxppMacro, [1.0, 1.0, 5.0, 5.0]),
        (Opcode::DsyppMacro, [4.0, 8.0, 4.0, 8.0]),
    ] {
        let mut code = TestProgram::new();
        let mut env = Env::from_seed(1);
        let quad = [0.0f32, 1.0, 4.0, 9.0].map(f32::to_bits);
        env.attributes.insert("0.0".to_owned(), quad.to_vec());
        let attrs = Attrs::Input(Some(InputKind::Attribute { base: 0, component: 0 }));
        let x = code.b().define(Opcode::Input, RegClass::FULL, 1, &[], attrs);
        let x = code.src(x);
        let attrs = Attrs::Texture(TextureAttrs { ty: Some(Type::F32), ..TextureAttrs::default() });
        let d = code.b().define(opcode, RegClass::FULL, 1, &[x], attrs);
        let d = code.src(d);
        code.end(&[d]);
        expect(&code.run_on("a660", &env), 0, |lane| Some(expected[lane as usize % 4].to_bits()));
    }
}

#[test]
fn a_derivative_of_a_lane_that_does_not_run() {
    // Lanes 8 and 9 run, 10 and 11 do not; of the quads from 20 on all four do.
    let derivative = |opcode| {
        move |code: &mut TestProgram, lane: Src| {
            let x = code.b().convert(Type::U32, Type::F32, RegClass::FULL, lane);
            let x = code.src(x);
            let attrs = Attrs::Texture(TextureAttrs { ty: Some(Type::F32), ..TextureAttrs::default() });
            let d = code.b().define(opcode, RegClass::FULL, 1, &[x], attrs);
            code.src(d)
        }
    };
    divergent(derivative(Opcode::Dsx), |lane| matches!(lane, 8 | 9 | 20..=30).then_some(1.0f32.to_bits()));
    divergent(derivative(Opcode::Dsy), |lane| matches!(lane, 20..=30).then_some(2.0f32.to_bits()));
}

#[test]
fn shuffles() {
    let shuffle = |mode, distance: u32| {
        move |code: &mut TestProgram, lane: Src| {
            let attrs = Attrs::Shuffle { mode, ty: Type::U32 };
            let value = code.b().define(Opcode::Shfl, RegClass::FULL, 1, &[lane, full(distance)], attrs);
            code.src(value)
        }
    };
    let active = |lane: u32| matches!(lane, 3 | 8 | 9 | 20..=30 | 40).then_some(lane);
    divergent(shuffle(ShuffleMode::Xor, 1), |lane| active(lane ^ 1));
    divergent(shuffle(ShuffleMode::Up, 5), |lane| active(lane.wrapping_sub(5)));
    divergent(shuffle(ShuffleMode::Down, 10), |lane| active(lane + 10));
    divergent(shuffle(ShuffleMode::RotateDown, 27), |lane| active((lane + 27) % 64));
}

#[test]
fn varyings() {
    let mut code = TestProgram::fragment();
    let mut env = Env::from_seed(1);
    env.varyings.insert(6, [1.0f32, 2.0, 4.0].map(f32::to_bits));
    env.varyings.insert(7, [3.0f32, 0.0, 0.0].map(f32::to_bits));
    env.system.insert("BarycentricPixel.0".to_owned(), vec![0.5f32.to_bits()]);
    env.system.insert("BarycentricPixel.1".to_owned(), vec![0.25f32.to_bits()]);
    let attrs = Attrs::Input(Some(InputKind::System(SystemValue::BarycentricPixel)));
    let ij = code.b().define(Opcode::Input, RegClass::FULL, 2, &[], attrs);
    let ij = code.src(ij);
    let x = code.b().define(Opcode::BaryF, RegClass::FULL, 1, &[full(6), ij], Attrs::None);
    let y = code.b().define(Opcode::BaryF, RegClass::HALF, 1, &[full(6), ij], Attrs::None);
    let z = code.b().define(Opcode::FlatB, RegClass::FULL, 1, &[full(7), full(7)], Attrs::None);
    let srcs = [x, y, z].map(|value| code.src(value));
    code.end(&srcs);
    let outcome = code.run_on("a660", &env);
    expect(&outcome, 0, |_| Some(3.0f32.to_bits()));
    expect(&outcome, 1, |_| Some(0x4200));
    expect(&outcome, 2, |_| Some(3.0f32.to_bits()));
}

/// The conditions of votes and ballots become those of branches. Lanes that are inactive do not count.
#[test]
fn macros_need_defined_conditions() {
    for opcode in [Opcode::AnyMacro, Opcode::AllMacro, Opcode::BallotMacro, Opcode::ReadCondMacro] {
        let mut code = TestProgram::new();
        let lane = code.lane();
        let lane = code.src(lane);
        let undefined = code.mov(Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR));
        let undefined = code.src(undefined);
        let p = code.test(Condition::Ne, undefined, full(0));
        let srcs = if opcode == Opcode::ReadCondMacro { vec![p, lane] } else { vec![p] };
        let value = code.b().define(opcode, RegClass::FULL, 1, &srcs, moves(Type::U32));
        let value = code.src(value);
        code.end(&[value]);
        expect_undefined(&code.run(), UndefinedReason::LaneNumber, u64::MAX);
    }
}
