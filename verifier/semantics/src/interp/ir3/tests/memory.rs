//! Memory, the constant file and textures.

use super::*;
use crate::environment::Binding;
use crate::environment::memory::Space;

fn attrs(space: AddressSpace, ty: Type, components: u8) -> Attrs {
    Attrs::Memory(MemoryAttrs {
        ty: Some(ty),
        space: Some(space),
        components: Some(components.into()),
        ..MemoryAttrs::default()
    })
}

/// Each lane adds 1 to one counter: the old values number the lanes, in their order.
#[test]
fn atomics_go_lane_by_lane() {
    let mut code = TestProgram::new();
    let mut env = Env::from_seed(1);
    env.memory.entry("shared 0".to_owned()).or_default().insert(4, 1000);
    let old = code.b().define(
        Opcode::AtomicAdd,
        RegClass::FULL,
        1,
        &[full(16), full(1)],
        attrs(AddressSpace::Shared, Type::U32, 1),
    );
    let old = code.src(old);
    code.end(&[old]);
    let outcome = code.run_on("a660", &env);
    expect(&outcome, 0, |lane| Some(1000 + lane));
    let word = outcome.memory.first().expect("a word");
    assert_eq!((word.space, word.word, word.value), (Space::Shared, 4, 1064));
}

/// Stored values are loaded again, in the lanes that stored them.
#[test]
fn shared_memory() {
    let mut code = TestProgram::new();
    let lane = code.lane();
    let lane = code.src(lane);
    let address = code.op2(Opcode::ShlB, lane, full(3));
    let address = code.src(address);
    let pair = code.b().define(Opcode::Collect, RegClass::FULL, 2, &[lane, full(9)], Attrs::None);
    let pair = code.src(pair);
    let store = code.b().effect(Opcode::Stl, &[address, pair, full(2)]);
    code.program.instrs[store].attrs = attrs(AddressSpace::Shared, Type::U32, 2);
    let loaded = code.b().define(
        Opcode::Ldl,
        RegClass::FULL,
        2,
        &[address, full(0), full(2)],
        attrs(AddressSpace::Shared, Type::U32, 2),
    );
    let loaded = code.src(loaded);
    let [x, y] = [0, 1].map(|offset| {
        let value = code.b().define(Opcode::Split, RegClass::FULL, 1, &[loaded], Attrs::Split { offset });
        code.src(value)
    });
    let byte = code.b().define(
        Opcode::Ldl,
        RegClass::HALF,
        1,
        &[address, full(4), full(1)],
        attrs(AddressSpace::Shared, Type::U8, 1),
    );
    let byte = code.src(byte);
    code.end(&[x, y, byte]);
    let outcome = code.run();
    expect(&outcome, 0, Some);
    expect(&outcome, 1, |_| Some(9));
    expect(&outcome, 2, |_| Some(9));
    assert_eq!(outcome.memory.len(), 128);
}

#[test]
fn a_store_at_a_poisoned_address_has_no_meaning() {
    let mut code = TestProgram::new();
    let store = code.b().effect(Opcode::Stl, &[from(RegClass::FULL, 0), full(1), full(1)]);
    code.program.instrs[store].attrs = attrs(AddressSpace::Shared, Type::U32, 1);
    code.end(&[]);
    expect_undefined(&code.run(), UndefinedReason::Address, u64::MAX);
}

#[test]
fn poison_may_be_stored_and_is_poison_when_loaded() {
    let mut code = TestProgram::new();
    let store = code.b().effect(Opcode::Stl, &[full(8), from(RegClass::FULL, 0), full(1)]);
    code.program.instrs[store].attrs = attrs(AddressSpace::Shared, Type::U32, 1);
    let loaded = code.b().define(
        Opcode::Ldl,
        RegClass::FULL,
        1,
        &[full(8), full(0), full(1)],
        attrs(AddressSpace::Shared, Type::U32, 1),
    );
    let loaded = code.src(loaded);
    code.end(&[loaded]);
    expect(&code.run(), 0, |_| None);
}

/// `if (shps) { if (getone) { stc c8.x, 77 }; shpe }`, then the main part reads `c8.x`.
fn with_preamble(enters: bool) -> TestProgram {
    let mut code = TestProgram::new();
    let (preamble, one, done, main) = (code.new_block(), code.new_block(), code.new_block(), code.new_block());
    let [yes, no] = if enters { [preamble, main] } else { [main, preamble] };
    code.branch(Opcode::Shps, &[], yes, no);
    code.go(preamble);
    code.branch(Opcode::Getone, &[], one, done);
    code.go(one);
    let lane = code.lane();
    let lane = code.src(lane);
    let value = code.op2(Opcode::AddU, lane, full(77));
    let value = code.src(value);
    let store = code.b().effect(Opcode::Stc, &[full(32), value]);
    code.program.instrs[store].attrs = attrs(AddressSpace::Const, Type::U32, 1);
    code.jump(done);
    code.go(done);
    code.b().effect(Opcode::Shpe, &[]);
    code.jump(main);
    code.go(main);
    let x = code.mov(Src::constant(32, false));
    let x = code.src(x);
    code.end(&[x]);
    code
}

#[test]
fn a_preamble_fills_the_constant_file() {
    expect(&with_preamble(true).run(), 0, |_| Some(77));
}

/// The other waves wait for the end of the preamble.
#[test]
fn the_wave_that_runs_the_preamble_ends_it() {
    expect_undefined(&with_preamble(false).run(), UndefinedReason::PreambleEnd, u64::MAX);
}

/// Two vec4s from vec4 12 of buffer 3 on, to the constant file from word 37 on.
#[test]
fn a_copy_fills_the_constant_file() {
    let mut code = TestProgram::new();
    let a1 = code.b().convert(Type::U16, Type::U16, RegClass::ADDRESS, Src::immediate(37, true));
    let a1 = code.src(a1);
    let copy = code.b().effect(Opcode::LdcK, &[full(3), full(12), a1]);
    code.program.instrs[copy].attrs = attrs(AddressSpace::Ubo, Type::U32, 2);
    let words = [36, 37, 38, 44, 45].map(|word| {
        let value = code.mov(Src::constant(word, false));
        code.src(value)
    });
    code.end(&words);
    let env = Env::from_seed(9);
    let outcome = code.run_on("a660", &env);
    let buffer = |word| env.ubo_word(Binding::new(None, 3), word);
    let expected = [env.const_word(36), buffer(48), buffer(49), buffer(55), env.const_word(45)];
    for (i, word) in expected.into_iter().enumerate() {
        expect(&outcome, i as u8, |_| Some(word));
    }
}

#[test]
fn a_copy_from_or_to_a_poisoned_place_has_no_meaning() {
    for poisoned in 0..3 {
        let mut code = TestProgram::new();
        let a1 = match poisoned {
            2 => from(RegClass::HALF, 0),
            _ => Src::immediate(37, true),
        };
        let a1 = code.b().convert(Type::U16, Type::U16, RegClass::ADDRESS, a1);
        let a1 = code.src(a1);
        let mut srcs = [full(3), full(12), a1];
        if poisoned < 2 {
            srcs[poisoned] = from(RegClass::FULL, 0);
        }
        let copy = code.b().effect(Opcode::LdcK, &srcs);
        code.program.instrs[copy].attrs = attrs(AddressSpace::Ubo, Type::U32, 2);
        code.end(&[]);
        expect_undefined(&code.run(), UndefinedReason::Address, u64::MAX);
    }
}

/// Lanes with equal requests get equal texture results.
#[test]
fn textures_are_functions_of_what_is_asked() {
    let mut code = TestProgram::fragment();
    let lane = code.lane();
    let lane = code.src(lane);
    let parity = code.op2(Opcode::AndB, lane, full(1));
    let parity = code.src(parity);
    let coordinates = code.b().define(Opcode::Collect, RegClass::FULL, 2, &[parity, full(0)], Attrs::None);
    let coordinates = code.src(coordinates);
    let ask = |code: &mut TestProgram, texture| {
        let attrs =
            TextureAttrs { ty: Some(Type::F32), texture: Some(texture), sampler: Some(0), ..TextureAttrs::default() };
        let value = code.b().define(Opcode::Sam, RegClass::FULL, 1, &[coordinates], Attrs::Texture(attrs));
        code.src(value)
    };
    let (x, y, z) = (ask(&mut code, 0), ask(&mut code, 1), ask(&mut code, 0));
    code.end(&[x, y, z]);
    let outcome = code.run();
    let [x, y, z] = [0, 1, 2].map(|component| output(&outcome, component));
    assert_eq!((x, x.1), (z, 0));
    assert_ne!(x.0[0], x.0[1]);
    assert_eq!(x.0[0], x.0[2]);
    assert_ne!(x.0[0], y.0[0]);
}

/// `isam` fetches the texel of level 0, which `isaml` has as an operand.
#[test]
fn isam_fetches_from_level_0() {
    let mut code = TestProgram::fragment();
    let lane = code.lane();
    let lane = code.src(lane);
    let coordinates = code.b().define(Opcode::Collect, RegClass::FULL, 2, &[lane, full(3)], Attrs::None);
    let coordinates = code.src(coordinates);
    let mut fetch = |opcode, srcs: &[Src]| {
        let attrs = TextureAttrs {
            ty: Some(Type::F32),
            texture: Some(2),
            is_fetch: opcode == Opcode::Isam,
            ..TextureAttrs::default()
        };
        let value = code.b().define(opcode, RegClass::FULL, 1, srcs, Attrs::Texture(attrs));
        code.src(value)
    };
    let texels = [
        fetch(Opcode::Isam, &[coordinates]),
        fetch(Opcode::Isaml, &[coordinates, full(0)]),
        fetch(Opcode::Isaml, &[coordinates, full(1)]),
    ];
    code.end(&texels);
    let outcome = code.run();
    let [level_0, also, level_1] = [0, 1, 2].map(|component| output(&outcome, component).0);
    assert_eq!(level_0, also);
    assert_ne!(level_0, level_1);
}
