//! Cases of buffers, shared memory, scratch memory and global memory, with copies of uniform buffers to the constant
//! file.

use super::builder::{Cases, HANDLES, Handle, ShaderBuilder, case};
use ir3_compiler::nir::{Access, AtomicOp, Def, ImageDim, Index, IntrinsicOp, Op};

/// A constant or random offset in elements, and in bytes.
fn ssbo_offset(s: &mut ShaderBuilder, fixed: bool, bits: u8) -> (Def, Def) {
    let element = if fixed { s.constant(300) } else { s.below(512) };
    // Elements of 64 bits are counted in units of two bytes, and are aligned.
    let unit = s.constant(2);
    let element = if bits == 64 && !fixed { s.b.alu(Op::Ishl, &[element, unit]) } else { element };
    let shift = s.constant(match bits {
        8 => 0,
        32 => 2,
        _ => 1,
    });
    (s.b.alu(Op::Ishl, &[element, shift]), element)
}

pub fn ssbo(cases: &mut Cases) {
    for &handle in HANDLES {
        for bits in [8, 16, 32, 64] {
            for components in 1..=4 {
                for base in if bits == 64 { [0, 4, 300] } else { [0, 5, 300] } {
                    for fixed in [false, true] {
                        for access in [Access::empty(), Access::REORDERABLE | Access::READONLY] {
                            let name =
                                format!("load_ssbo {handle:?} {bits}x{components} base {base} {fixed} {access:?}");
                            case(cases, name, |s| {
                                let buffer = s.handle(handle);
                                let (bytes, element) = ssbo_offset(s, fixed, bits);
                                let indices = [Index::Base(base), Index::Access(access)];
                                let srcs = [buffer, bytes, element];
                                let def = s.b.intrinsic(IntrinsicOp::LoadSsboIr3, components, bits, &srcs, indices);
                                s.result(def);
                            });
                        }
                        let mask = [1, 2, 5, 13][usize::from(components) - 1];
                        let name = format!("store_ssbo {handle:?} {bits}x{components} base {base} {fixed}");
                        case(cases, name, |s| {
                            let buffer = s.handle(handle);
                            let (bytes, element) = ssbo_offset(s, fixed, bits);
                            let value = s.random_vec(bits, components);
                            let indices = [Index::Base(base), Index::WriteMask(mask)];
                            let srcs = [value, buffer, bytes, element];
                            s.b.intrinsic(IntrinsicOp::StoreSsboIr3, components, bits, &srcs, indices);
                        });
                    }
                }
            }
        }
        case(cases, format!("get_ssbo_size {handle:?}"), |s| {
            let buffer = s.handle(handle);
            let def = s.b.intrinsic(IntrinsicOp::GetSsboSize, 1, 32, &[buffer], []);
            s.result(def);
        });
    }
}

pub fn local(cases: &mut Cases) {
    let spaces =
        [(IntrinsicOp::LoadShared, IntrinsicOp::StoreShared), (IntrinsicOp::LoadScratch, IntrinsicOp::StoreScratch)];
    for (load, store) in spaces {
        for bits in [8, 16, 32, 64] {
            for components in 1..=4 {
                for base in [0, 16, 4088, 6000] {
                    let base = if load == IntrinsicOp::LoadShared { base } else { 0 };
                    let name = format!("{} {bits}x{components} base {base}", load.name());
                    case(cases, name, |s| {
                        let three = s.constant(3);
                        let address = s.below(64);
                        let address = s.b.alu(Op::Ishl, &[address, three]);
                        let value = s.random_vec(bits, components);
                        let mask = Index::WriteMask([1, 2, 5, 13][usize::from(components) - 1]);
                        s.b.intrinsic(store, components, bits, &[value, address], [Index::Base(base), mask]);
                        let def = s.b.intrinsic(load, components, bits, &[address], [Index::Base(base)]);
                        s.result(def);
                        let zero = s.constant(8);
                        let def = s.b.intrinsic(load, components, bits, &[zero], [Index::Base(base)]);
                        s.result(def);
                    });
                }
            }
        }
    }
}

pub fn global(cases: &mut Cases) {
    for bits in [16, 32, 64] {
        for components in 1..=4 {
            for offset in [Some(0), Some(200), Some(u64::from(-300i32 as u32)), None] {
                case(cases, format!("global {bits}x{components} {offset:?}"), |s| {
                    let address = s.random_vec(32, 2);
                    let offset = match offset {
                        Some(offset) => s.constant(offset),
                        None => s.random(),
                    };
                    let def = s.b.intrinsic(IntrinsicOp::LoadGlobalIr3, components, bits, &[address, offset], []);
                    s.result(def);
                    let value = s.random_vec(bits, components);
                    s.b.intrinsic(IntrinsicOp::StoreGlobalIr3, components, bits, &[value, address, offset], []);
                });
            }
        }
    }
}

pub fn ubo(cases: &mut Cases) {
    for &handle in HANDLES {
        for (bits, components, component) in [(32, 4, 0), (32, 2, 1), (32, 1, 3), (16, 2, 3), (64, 1, 1), (64, 2, 0)] {
            for base in [0, 9] {
                case(cases, format!("load_ubo_vec4 {handle:?} {bits}x{components}.{component} base {base}"), |s| {
                    let buffer = s.handle(handle);
                    let offset = s.below(64);
                    let indices = [Index::Base(base), Index::Component(component)];
                    let def = s.b.intrinsic(IntrinsicOp::LoadUboVec4, components, bits, &[buffer, offset], indices);
                    s.result(def);
                });
            }
        }
    }
}

const ATOMICS: &[AtomicOp] = &[
    AtomicOp::Iadd,
    AtomicOp::Imin,
    AtomicOp::Umin,
    AtomicOp::Imax,
    AtomicOp::Umax,
    AtomicOp::Iand,
    AtomicOp::Ior,
    AtomicOp::Ixor,
    AtomicOp::Xchg,
    AtomicOp::Cmpxchg,
];

pub fn atomics(cases: &mut Cases) {
    use IntrinsicOp as I;
    for &op in ATOMICS {
        let swap = op == AtomicOp::Cmpxchg;
        let index = Index::AtomicOp(op);
        for bits in [32, 64] {
            let data = |s: &mut ShaderBuilder| -> Vec<Def> {
                // Few comparands, so that some are equal to the contents of memory.
                if swap { vec![s.random_of(bits), s.random_of(bits)] } else { vec![s.random_of(bits)] }
            };
            for &handle in HANDLES {
                case(cases, format!("ssbo_atomic {} {handle:?} {bits}", op.name()), |s| {
                    let buffer = s.handle(handle);
                    let (bytes, element) = ssbo_offset(s, false, bits);
                    let mut srcs = vec![buffer, bytes];
                    srcs.extend(data(s));
                    srcs.push(element);
                    let intrinsic = if swap { I::SsboAtomicSwapIr3 } else { I::SsboAtomicIr3 };
                    let def = s.b.intrinsic(intrinsic, 1, bits, &srcs, [index.clone()]);
                    s.result(def);
                    if swap {
                        // The comparand is the old value that the first atomic read.
                        let Some(old) = def else { return };
                        let new = s.random_of(bits);
                        let srcs = [buffer, bytes, old, new, element];
                        let def = s.b.intrinsic(intrinsic, 1, bits, &srcs, [index.clone()]);
                        s.result(def);
                    }
                });
            }
            for base in [0, 12] {
                case(cases, format!("shared_atomic {} base {base} {bits}", op.name()), |s| {
                    let two = s.constant(2);
                    let address = s.below(16);
                    let address = s.b.alu(Op::Ishl, &[address, two]);
                    let mut srcs = vec![address];
                    srcs.extend(data(s));
                    let intrinsic = if swap { I::SharedAtomicSwap } else { I::SharedAtomic };
                    let def = s.b.intrinsic(intrinsic, 1, bits, &srcs, [Index::Base(base), index.clone()]);
                    s.result(def);
                });
                case(cases, format!("global_atomic {} base {base} {bits}", op.name()), |s| {
                    let mut srcs = vec![s.random_vec(32, 2)];
                    srcs.extend(data(s));
                    let intrinsic = if swap { I::GlobalAtomicSwapIr3 } else { I::GlobalAtomicIr3 };
                    let def = s.b.intrinsic(intrinsic, 1, bits, &srcs, [Index::Base(base), index.clone()]);
                    s.result(def);
                });
            }
        }
        for &handle in HANDLES {
            case(cases, format!("image_atomic {} {handle:?}", op.name()), |s| {
                let image = s.handle(handle);
                let zero = s.constant(0);
                let (x, y) = (s.below(8), s.below(8));
                let coordinates = s.b.vec(&[x, y, zero, zero]);
                let mut srcs = vec![image, coordinates, zero, s.random()];
                if swap {
                    srcs.push(s.random());
                }
                let intrinsic = if swap { I::ImageAtomicSwap } else { I::ImageAtomic };
                let def = s.b.intrinsic(intrinsic, 1, 32, &srcs, [Index::ImageDim(ImageDim::Dim2D), index.clone()]);
                s.result(def);
            });
        }
    }
}

/// A nir program that copies vec4s of a buffer to the constant file, and reads words before, among and after them.
pub fn copy(s: &mut ShaderBuilder, handle: Handle, offset: Option<u64>, base: i32, range: u32) {
    let buffer = s.handle(handle);
    let offset = match offset {
        Some(offset) => s.constant(offset),
        None => s.below(64),
    };
    let indices = [Index::Base(base), Index::Range(range)];
    s.b.intrinsic(IntrinsicOp::CopyUboToUniformIr3, 0, 0, &[buffer, offset], indices);
    let zero = s.constant(0);
    let last = base + 4 * range as i32 - 1;
    for word in [base - 1, base, last, last + 1] {
        let word = s.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(word)]);
        s.result(word);
    }
    let number = s.below(1 << 9);
    let any = s.b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[number], [Index::Base(base)]);
    s.result(any);
}

pub fn copies(cases: &mut Cases) {
    for &handle in HANDLES {
        for offset in [Some(0), Some(300), None] {
            for (base, range) in [(4, 1), (16, 8), (41, 100), (700, 256)] {
                let name = format!("copy_ubo_to_uniform {handle:?} from {offset:?} to {base}, {range} vec4s");
                case(cases, name, |s| copy(s, handle, offset, base, range));
            }
        }
    }
}
