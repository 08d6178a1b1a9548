//! Control flow: branches, loops, phis on edges, predication, lanes that end, fuel.

use super::*;

/// `i = 0; loop { if (i == lane) break; i++ }`: each lane leaves with its own number, and keeps it while the others
/// iterate.
#[test]
fn lanes_leave_a_loop_one_by_one() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let (header, body, exit) = (code.new_block(), code.new_block(), code.new_block());
    code.jump(header);
    code.go(header);
    let i = code.phi(&[full(0)]);
    let i_src = code.src(i);
    let square = code.op2(Opcode::MullU, i_src, i_src);
    let done = code.test(Condition::Eq, i_src, lane);
    code.branch(Opcode::Br, &[done], exit, body);
    code.go(body);
    let next = code.op2(Opcode::AddU, i_src, full(1));
    let next = code.src(next);
    code.jump(header);
    code.add_phi_sources(i, &[next]);
    code.go(exit);
    let square = code.src(square);
    code.end(&[i_src, square]);
    let outcome = code.run();
    expect(&outcome, 0, Some);
    expect(&outcome, 1, |lane| Some(lane * lane));
}

/// A loop's phis rotate three values: `(a, b, c) = (b, c, a)` lane times.
#[test]
fn phis_around_a_back_edge_are_parallel() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let (header, exit) = (code.new_block(), code.new_block());
    code.jump(header);
    code.go(header);
    let phis = [full(10), full(11), full(12), full(0)].map(|first| code.phi(&[first]));
    let [a, b, c, i] = phis.map(|phi| code.src(phi));
    let next = code.op2(Opcode::AddU, i, full(1));
    let next = code.src(next);
    let done = code.test(Condition::Ge, i, lane);
    code.branch(Opcode::Br, &[done], exit, header);
    for (phi, src) in phis.into_iter().zip([b, c, a, next]) {
        code.add_phi_sources(phi, &[src]);
    }
    code.go(exit);
    code.end(&[a, b, c]);
    let outcome = code.run();
    for component in 0..3 {
        expect(&outcome, component, |lane| Some(10 + (lane + u32::from(component)) % 3));
    }
}

/// One branch of each kind on `p = lane < 10` and `q = lane >= 5`; output: 1 where the first successor was taken.
fn branch_kind(opcode: Opcode, mods: [Mods; 2], expected: impl Fn(u32) -> bool) {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let p = code.test(Condition::Lt, lane, full(10)).with_mods(mods[0]);
    let q = code.test(Condition::Ge, lane, full(5)).with_mods(mods[1]);
    let (yes, no, join) = (code.new_block(), code.new_block(), code.new_block());
    let srcs = [p, q];
    code.branch(opcode, &srcs[..usize::from(opcode.info().min_srcs)], yes, no);
    for block in [yes, no] {
        code.go(block);
        if opcode == Opcode::Shps && block == yes {
            code.b().effect(Opcode::Shpe, &[]);
        }
        code.jump(join);
    }
    code.go(join);
    let taken = code.phi(&[full(1), full(0)]);
    let taken = code.src(taken);
    code.end(&[taken]);
    expect(&code.run(), 0, |lane| Some(expected(lane).into()));
}

#[test]
fn every_branch() {
    let (plain, not) = (Mods::empty(), Mods::NOT);
    branch_kind(Opcode::Br, [plain; 2], |lane| lane < 10);
    branch_kind(Opcode::Br, [not; 2], |lane| lane >= 10);
    branch_kind(Opcode::Braa, [plain; 2], |lane| (5..10).contains(&lane));
    branch_kind(Opcode::Braa, [not, plain], |lane| lane >= 10);
    branch_kind(Opcode::Brao, [plain; 2], |_| true);
    branch_kind(Opcode::Brao, [plain, not], |lane| lane < 10);
    branch_kind(Opcode::Bany, [plain; 2], |_| true);
    branch_kind(Opcode::Ball, [plain; 2], |_| false);
    branch_kind(Opcode::Getone, [plain; 2], |lane| lane == 0);
    branch_kind(Opcode::Getlast, [plain; 2], |lane| lane >= 7);
    branch_kind(Opcode::Shps, [plain; 2], |_| true);
    branch_kind(Opcode::Predt, [plain; 2], |lane| lane < 10);
    branch_kind(Opcode::Predf, [plain; 2], |lane| lane >= 10);
}

/// `predt p; x = 1; predf p; x = 2; prede`, with registers.
#[test]
fn predication() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let p0 = from(RegClass::PREDICATE, PhysReg::P0_X.0);
    let dst = to(RegClass::PREDICATE, PhysReg::P0_X.0);
    code.instr(Opcode::CmpsU, &[dst], &[lane, full(20)], Attrs::Compare(Condition::Lt));
    let (yes, no, join) = (code.new_block(), code.new_block(), code.new_block());
    code.branch(Opcode::Predt, &[p0], yes, no);
    code.go(yes);
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 0)], &[full(1)], moves(Type::U32));
    code.b().effect(Opcode::Predf, &[p0]);
    code.program.add_edge(yes, 0, join);
    code.go(no);
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 0)], &[full(2)], moves(Type::U32));
    code.b().effect(Opcode::Prede, &[]);
    code.jump(join);
    code.go(join);
    code.end(&[from(RegClass::FULL, 0)]);
    expect(&code.run(), 0, |lane| Some(if lane < 20 { 1 } else { 2 }));
}

/// Both sides of a divergent branch reconverge before the code after it runs: all lanes take part in a subgroup vote.
#[test]
fn lanes_reconverge() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let p = code.test(Condition::Lt, lane, full(3));
    let (yes, no, join) = (code.new_block(), code.new_block(), code.new_block());
    code.branch(Opcode::Br, &[p], yes, no);
    code.go(yes);
    let inside = code.mask(2);
    code.jump(join);
    code.go(no);
    code.jump(join);
    code.go(join);
    let after = code.mask(2);
    let (inside, after) = (code.src(inside), code.src(after));
    let low = code.b().define(Opcode::Split, RegClass::FULL, 1, &[inside], Attrs::Split { offset: 0 });
    let high = code.b().define(Opcode::Split, RegClass::FULL, 1, &[after], Attrs::Split { offset: 1 });
    let (low, high) = (code.src(low), code.src(high));
    code.end(&[low, high]);
    let outcome = code.run();
    expect(&outcome, 0, |lane| (lane < 3).then_some(7));
    expect(&outcome, 1, |_| Some(u32::MAX));
}

#[test]
fn a_branch_on_poison_has_no_meaning() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let (yes, join) = (code.new_block(), code.new_block());
    let q = code.test(Condition::Eq, lane, full(9));
    code.branch(Opcode::Br, &[q], yes, join);
    code.go(yes);
    code.jump(join);
    code.go(join);
    // Defined only on the path through `yes`.
    let undefined = Src::new(SrcOperand::Undef, RegClass::FULL, WriteMask::SCALAR);
    let predecessors = &code.program.blocks[join].predecessors;
    let sources: Vec<_> = predecessors.iter().map(|&pred| if pred == yes { full(1) } else { undefined }).collect();
    let x = code.phi(&sources);
    let x = code.src(x);
    let p = code.test(Condition::Ne, x, full(0));
    let (a, b) = (code.new_block(), code.new_block());
    code.branch(Opcode::Br, &[p], a, b);
    code.go(a);
    code.jump(b);
    code.go(b);
    code.end(&[]);
    expect_undefined(&code.run(), UndefinedReason::Branch, !(1 << 9));
}

#[test]
fn kill_and_demote() {
    let mut code = TestProgram::fragment();
    let lane = code.lane();
    let lane = code.src(lane);
    let p = code.test(Condition::Lt, lane, full(2));
    let q = code.test(Condition::Ge, lane, full(62));
    code.b().effect(Opcode::Kill, &[p]);
    code.b().effect(Opcode::Demote, &[q]);
    let mask = code.mask(1);
    let mask = code.src(mask);
    code.end(&[mask]);
    let env = Env { helpers: Some(0), ..Env::from_seed(1) };
    let outcome = code.run_on("a660", &env);
    assert_eq!(outcome.killed, 0xc000_0000_0000_0003);
    assert_eq!(outcome.helpers, 3 << 62);
    expect(&outcome, 0, |lane| (lane >= 2).then_some(0xffff_fffc));
}

#[test]
fn all_lanes_may_end_early() {
    let mut code = TestProgram::fragment();
    let p = code.test(Condition::Eq, full(0), full(0));
    code.b().effect(Opcode::Kill, &[p]);
    code.end(&[full(1)]);
    let outcome = code.run();
    assert_eq!((outcome.end, outcome.killed), (End::Finished, u64::MAX));
}

#[test]
fn fuel_ends_a_loop() {
    let mut code = TestProgram::new();
    let header = code.new_block();
    code.jump(header);
    code.go(header);
    code.jump(header);
    let outcome = code.run();
    assert_eq!(outcome.end, End::OutOfFuel);
}

#[test]
fn scratch_is_reused() {
    let target = Target::by_name("a660").expect("a known target");
    let mut scratch = Scratch::new();
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    code.instr(Opcode::Mov, &[to(RegClass::FULL, 0)], &[lane], moves(Type::U32));
    code.end(&[from(RegClass::FULL, 0)]);
    let first = Decoded::new(&code.program, &target).expect("a supported program");
    let mut code = TestProgram::new();
    code.end(&[from(RegClass::FULL, 0)]);
    let second = Decoded::new(&code.program, &target).expect("a supported program");
    let env = Env::from_seed(1);
    expect(&first.run(&env, FUEL, &mut scratch), 0, Some);
    // The value that the first program left in the register is gone.
    expect(&second.run(&env, FUEL, &mut scratch), 0, |_| None);
    expect(&first.run(&env, FUEL, &mut scratch), 0, Some);
}
