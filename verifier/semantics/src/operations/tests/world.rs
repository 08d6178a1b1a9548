//! Environment, memory and textures.

use ir3_compiler::ir3::access::{Slot, TextureKind, TextureRequest};
use ir3_compiler::ir3::{SystemValue, Type};

use crate::arithmetic::rows::{ALL_LANES, LANES, Row, splat};
use crate::environment::Binding;
use crate::environment::env::{Env, Launch, first_lanes, lanes, nice, nice_float};
use crate::environment::memory::{Atomic, Memory, Space, image_cell, word_of};
use crate::environment::texture::TextureAnswer;
use crate::support::random::hash;
use std::collections::BTreeSet;

const LAUNCH: Launch = Launch { fragment: true, workgroup_size: [8, 4, 4], wave: 0 };

#[test]
fn nice_values_are_mostly_tame() {
    let values: Vec<u32> = (0..4000).map(|i| nice(hash(&[i]))).collect();
    let small = values.iter().filter(|&&value| value < 1024 || value as i32 > -9 && (value as i32) < 0).count();
    let floats = values.iter().filter(|&&v| (1e-6..1e6).contains(&f32::from_bits(v).abs())).count();
    let wild = values.iter().filter(|&&v| f32::from_bits(v).is_nan() || f32::from_bits(v).is_infinite()).count();
    assert!((1200..2400).contains(&small) && (1200..2400).contains(&floats) && wild < 400, "{small} {floats} {wild}");
    for i in 0..4000 {
        let x = f32::from_bits(nice_float(hash(&[i])));
        assert!(x.abs() <= 256.0 && (x == 0.0 || x.is_normal()));
    }
}

#[test]
fn everything_follows_from_the_seed() {
    let (a, b) = (Env::from_seed(1), Env::from_seed(2));
    let words = |env: &Env| (0..64).map(|i| env.const_word(i)).collect::<Vec<_>>();
    assert_eq!(words(&a), words(&a.clone()));
    assert_ne!(words(&a), words(&b));
    let ubo = |env: &Env, binding| (0..64).map(|i| env.ubo_word(Binding::bound(binding), i)).collect::<Vec<_>>();
    assert_ne!(ubo(&a, 0), ubo(&a, 1));
    assert_ne!(a.varying(0, 0), a.varying(1, 0));
    assert_ne!(a.varying(0, 0), a.varying(0, 1));
}

#[test]
fn an_environment_goes_through_json() {
    let mut env = Env::from_seed(7);
    assert_eq!(Env::from_json(&env.to_json()).unwrap(), env);
    env.consts.insert(5, 42);
    env.attributes.insert("1.2".into(), vec![1, 2]);
    env.varyings.insert(3, [0, 1, 2]);
    env.system.insert("WorkgroupId.0".into(), vec![9]);
    env.memory.entry("ssbo 0".into()).or_default().insert(3, 77);
    env.helpers = Some(2);
    let read = Env::from_json(&env.to_json()).unwrap();
    assert_eq!(read, env);
    assert_eq!(read.const_word(5), 42);
    let mut row = [0; LANES];
    read.attribute(1, 2, &mut row);
    assert_eq!(row[..3], [1, 2, 1]);
    read.system_value(LAUNCH, SystemValue::WorkgroupId, 0, &mut row);
    assert_eq!(row, splat(9));
    assert_eq!(read.memory_word(Space::Ssbo, Binding::bound(0), 3), 77);
    assert_eq!((read.varying(3, 5), read.helper_lanes(LAUNCH)), ([0, 1, 2], 2));
    assert!(Env::from_json("{\"seed\": 1, \"sead\": 2}").is_err());
}

#[test]
fn system_values_belong_together() {
    for seed in 0..50 {
        let env = Env::from_seed(seed);
        let get = |value, component| {
            let mut row = [0; LANES];
            env.system_value(LAUNCH, value, component, &mut row);
            row
        };
        let [x, y, z] = [0, 1, 2].map(|c| get(SystemValue::LocalInvocationId, c));
        let index = get(SystemValue::LocalInvocationIndex, 0);
        let subgroup = get(SystemValue::SubgroupId, 0);
        for lane in 0..LANES {
            assert!(x[lane] < 8 && y[lane] < 4 && z[lane] < 4);
            assert_eq!(x[lane] + 8 * (y[lane] + 4 * z[lane]), index[lane]);
            assert_eq!(index[lane], subgroup[lane] * 64 + lane as u32);
        }
        let frag = [0, 1].map(|c| get(SystemValue::FragCoord, c));
        for lane in 0..LANES {
            // Pixel centres, and quads of neighbours.
            assert_eq!((frag[0][lane] % 16, frag[1][lane] % 16), (8, 8));
            assert_eq!(frag[0][lane | 1], frag[0][lane & !1] + 16);
            assert_eq!(frag[1][lane | 2], frag[1][lane & !2] + 16);
        }
        let (groups, number) = (get(SystemValue::WorkgroupId, 0), get(SystemValue::NumWorkgroups, 0));
        assert!(groups[0] < number[0]);
        let (id, zero_base, base) =
            (get(SystemValue::VertexId, 0), get(SystemValue::VertexIdZeroBase, 0), get(SystemValue::BaseVertex, 0));
        assert_eq!(id[9], zero_base[9] + base[9]);
        let helpers = env.helper_lanes(LAUNCH);
        assert_eq!(env.helper_lanes(Launch::default()), 0);
        for quad in 0..16 {
            assert_ne!(helpers >> (quad * 4) & 15, 15, "a quad of helpers only");
        }
        let helper = get(SystemValue::HelperInvocation, 0);
        assert_eq!(lanes(ALL_LANES).fold(0, |mask, lane| mask | u64::from(helper[lane]) << lane), helpers);
    }
}

#[test]
fn memory_has_parts_of_words_and_remembers() {
    let env = Env::from_seed(3);
    let mut memory = Memory::default();
    let array = memory.array(Space::Ssbo, Binding::bound(1));
    let initial = env.memory_word(Space::Ssbo, Binding::bound(1), 2);
    let mut row = [0; LANES];
    assert_eq!(memory.load(&env, array, 32, 1, |_| 8, &mut row, &mut splat(0)), 0);
    assert_eq!(row[0], initial);
    memory.store(&env, array, 8, 1, |_| 9, &splat(0xabcd), 0, &splat(u32::MAX));
    memory.store(&env, array, 16, 1, |_| 10, &splat(0x1234), 1, &splat(u32::MAX));
    assert_eq!(memory.load(&env, array, 8, 1, |_| 9, &mut row, &mut splat(0)), 0);
    assert_eq!(row[0], 0xcd);
    assert_eq!(memory.load(&env, array, 16, 1, |_| 10, &mut row, &mut splat(0)), 1);
    assert_eq!(memory.load(&env, array, 32, 1, |_| 8, &mut row, &mut splat(0)), 1);
    let written = memory.written();
    assert_eq!(written.len(), 1);
    assert_eq!((written[0].word, written[0].poison), (2, 0xffff_0000));
    // Poisoned bits are 0, for any stored value.
    assert_eq!(written[0].value, 0xcd00 | initial & 0xff);
    // A word out of range is mapped to one inside, and high bits count.
    assert_eq!(word_of(65536 * 4, 4096), word_of(65536 * 4 + 3, 4096));
    assert_ne!(word_of(1 << 40, 16384), word_of(1 << 41, 16384));
    // A buffer grows: words that a shader addresses by the numbers of its invocations are all different, from any
    // start.
    assert_eq!([5000, 65535].map(|word| word_of(word * 4, 1024)), [5000, 65535]);
    for base in [65536, 0x1234_5678, 0xffff_0000] {
        let words: BTreeSet<u32> = (0..64 * 63).map(|word| word_of((base + word) * 4, 1024)).collect();
        assert_eq!(words.len(), 64 * 63);
        assert!(words.iter().all(|&word| word < 4096));
    }
    // Words before its beginning are disjoint from those after it.
    let words: BTreeSet<u32> =
        (0_u32..64 * 63).map(|word| word_of(u64::from(word.wrapping_sub(1000)) * 4, 1024)).collect();
    assert_eq!(words.len(), 64 * 63);
    memory.reset();
    assert!(memory.written().is_empty());
    let array = memory.array(Space::Ssbo, Binding::bound(1));
    memory.load(&env, array, 32, 1, |_| 8, &mut row, &mut splat(0));
    assert_eq!(row[0], initial);
}

#[test]
fn lanes_write_one_after_the_other() {
    let env = Env::from_seed(3);
    let mut memory = Memory::default();
    let array = memory.array(Space::Shared, Binding::NONE);
    let numbers: Row = std::array::from_fn(|lane| lane as u32);
    memory.store(&env, array, 32, ALL_LANES, |_| 0, &numbers, 0, &splat(u32::MAX));
    let mut row = [0; LANES];
    memory.load(&env, array, 32, 1, |_| 0, &mut row, &mut splat(0));
    assert_eq!(row[0], 63);
    memory.store(&env, array, 32, 1, |_| 0, &splat(100), 0, &splat(u32::MAX));
    let undefined = memory.atomic(&env, array, Atomic::Add, 0b1011, |_| 0, &splat(1), &splat(0), 0b0010, &mut row);
    // The second lane's operand is poison, so the word is, and the next lane reads poison.
    assert_eq!((row[0], row[1], undefined), (100, 101, 0b1000));
}

#[test]
fn memory_of_a_lane_is_its_own_and_starts_undefined() {
    let env = Env::from_seed(3);
    let mut memory = Memory::default();
    let array = memory.array(Space::Scratch, Binding::NONE);
    let mut row = [0; LANES];
    assert_eq!(memory.load(&env, array, 32, ALL_LANES, |_| 4, &mut row, &mut splat(0)), ALL_LANES);
    memory.store(&env, array, 32, 1, |_| 4, &splat(5), 0, &splat(u32::MAX));
    assert_eq!(memory.load(&env, array, 32, ALL_LANES, |_| 4, &mut row, &mut splat(0)), ALL_LANES - 1);
    assert_eq!(row[0], 5);
    assert!(memory.written().is_empty());
}

#[test]
fn atomics() {
    let table = [
        (Atomic::Add, 5, 7, 0, 12),
        (Atomic::Sub, 5, 7, 0, 0xffff_fffe),
        (Atomic::Smin, 0xffff_ffff, 1, 0, 0xffff_ffff),
        (Atomic::Umin, 0xffff_ffff, 1, 0, 1),
        (Atomic::Smax, 0xffff_ffff, 1, 0, 1),
        (Atomic::Umax, 0xffff_ffff, 1, 0, 0xffff_ffff),
        (Atomic::And, 0xf0, 0x3c, 0, 0x30),
        (Atomic::Or, 0xf0, 0x3c, 0, 0xfc),
        (Atomic::Xor, 0xf0, 0x3c, 0, 0xcc),
        (Atomic::Exchange, 5, 7, 0, 7),
        (Atomic::CompareExchange, 5, 7, 5, 7),
        (Atomic::CompareExchange, 5, 7, 6, 5),
        (Atomic::Fadd, 0x3f80_0000, 0x4000_0000, 0, 0x4040_0000),
        (Atomic::Fmin, 0x3f80_0000, 0x7fc0_0000, 0, 0x3f80_0000),
        (Atomic::Fmax, 0x3f80_0000, 0x4000_0000, 0, 0x4000_0000),
        (Atomic::FcompareExchange, 0x8000_0000, 7, 0, 7),
        (Atomic::IncrementWrap, 5, 7, 0, 6),
        (Atomic::IncrementWrap, 7, 7, 0, 0),
        (Atomic::DecrementWrap, 0, 7, 0, 7),
        (Atomic::DecrementWrap, 9, 7, 0, 7),
        (Atomic::DecrementWrap, 3, 7, 0, 2),
    ];
    for (op, old, data, compare, expected) in table {
        assert_eq!(op.apply(old, data, compare), expected, "{op:?} {old} {data}");
    }
    assert_eq!(Atomic::Add.apply_wide(u64::from(u32::MAX), 1, 0), 1 << 32);
    assert_eq!(Atomic::CompareExchange.apply_wide(1 << 40, 7, 1 << 40), 7);
    assert_eq!(Atomic::Smax.apply_wide(u64::MAX, 1, 0), 1);
}

#[test]
fn double_words_are_two_words() {
    let env = Env::from_seed(3);
    let mut memory = Memory::default();
    let array = memory.array(Space::Ssbo, Binding::bound(0));
    memory.store(&env, array, 32, 1, |_| 16, &splat(u32::MAX), 0, &splat(u32::MAX));
    memory.store(&env, array, 32, 1, |_| 20, &splat(1), 0, &splat(u32::MAX));
    let (one, zero) = (splat(1), splat(0));
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    let dst = [&mut low, &mut high];
    let undefined = memory.atomic_wide(&env, array, Atomic::Add, 1, |_| 16, [&one, &zero], [&zero, &zero], 0, dst);
    assert_eq!((low[0], high[0], undefined), (u32::MAX, 1, 0));
    memory.load(&env, array, 32, 1, |_| 16, &mut low, &mut splat(0));
    memory.load(&env, array, 32, 1, |_| 20, &mut high, &mut splat(0));
    assert_eq!((low[0], high[0]), (0, 2));
}

#[test]
fn answers_of_textures_depend_on_the_question() {
    let env = Env::from_seed(3);
    let mut request = TextureRequest::new(TextureKind::Sample, Binding::bound(1), Binding::bound(2));
    request.set(Slot::X, 5);
    let answer =
        |request: &TextureRequest, component| TextureAnswer::new(&env, request).component(component, Type::F32);
    assert_eq!(answer(&request, 0), answer(&request.clone(), 0));
    assert_ne!(answer(&request, 0), answer(&request, 1));
    let mut other = request;
    other.set(Slot::X, 6);
    assert_ne!(answer(&request, 0), answer(&other, 0));
    // A zero operand is not the same as none.
    let mut present = request;
    present.set(Slot::Lod, 0);
    assert_ne!(answer(&request, 0), answer(&present, 0));
    let half = TextureAnswer::new(&env, &request).component(0, Type::F16);
    // The same result rounded toward zero.
    let (full, half) = (f32::from_bits(answer(&request, 0)), half::f16::from_bits(half as u16));
    assert!(half.to_f32().abs() <= full.abs() && (full - half.to_f32()).abs() < full.abs() / 1024.0, "{full} {half}");
    assert_ne!(image_cell(&[1, 2]), image_cell(&[2, 1]));
}

/// With hints, texels that are near each other are alike, and are different all the same.
#[test]
fn textures_that_fit_a_program_are_smooth() {
    let env = Env { hints: Some(Box::default()), ..Env::from_seed(3) };
    let texel = |x: f32| {
        let mut request = TextureRequest::new(TextureKind::Sample, Binding::bound(1), Binding::bound(2));
        request.set(Slot::X, x.to_bits());
        f32::from_bits(TextureAnswer::new(&env, &request).component(0, Type::F32))
    };
    let texels: Vec<f32> = (0..64).map(|x| texel(0.5 + x as f32 / 256.0)).collect();
    let pairs = || texels.windows(2).filter(|pair| pair[0] != pair[1]);
    assert_eq!(pairs().count(), 63);
    // One in eight is noise.
    assert!(pairs().filter(|pair| (pair[0] - pair[1]).abs() < 0.125).count() > 40, "{texels:?}");
    assert!(texels.iter().filter(|texel| (0.0..=1.0).contains(*texel)).count() > 48, "{texels:?}");
}

/// Coarse textures have as many colors as cells; a component of a texture with corner cases is a corner case or
/// unchanged.
#[test]
fn textures_are_coarse_or_have_corner_cases() {
    let smooth = Env { hints: Some(Box::default()), ..Env::from_seed(3) };
    let texels = |env: &Env, kind: TextureKind| -> Vec<u32> {
        let texel = |at: u32| {
            let mut request = TextureRequest::new(kind, Binding::bound(1), Binding::bound(2));
            request.set(Slot::X, if kind == TextureKind::Fetch { at } else { (at as f32 / 64.0).to_bits() });
            request.quad = (kind == TextureKind::Sample).then_some(at.into());
            TextureAnswer::new(env, &request).component(0, Type::F32)
        };
        (0..64).map(texel).collect()
    };
    for kind in [TextureKind::Sample, TextureKind::Fetch] {
        for (coarse_texels, most) in [(1, 1), (3, 5)] {
            let mut colors = texels(&Env { coarse_texels, ..smooth.clone() }, kind);
            colors.sort_unstable();
            colors.dedup();
            assert!(colors.len() <= most && (most == 1 || colors.len() > 1), "{kind:?} {coarse_texels} {colors:?}");
        }
        let (plain, corners) = (texels(&smooth, kind), texels(&Env { corner_texels: 4, ..smooth.clone() }, kind));
        let changed: Vec<f32> =
            plain.iter().zip(&corners).filter(|(a, b)| a != b).map(|(_, &corner)| f32::from_bits(corner)).collect();
        assert!((16..48).contains(&changed.len()), "{changed:?}");
        assert!(changed.iter().any(|corner| corner.is_nan()) && changed.contains(&0.0), "{changed:?}");
    }
}

#[test]
fn masks_of_lanes() {
    assert_eq!(lanes(0b1010).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((first_lanes(0), first_lanes(3), first_lanes(64)), (0, 7, ALL_LANES));
}
