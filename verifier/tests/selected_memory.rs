//! Every memory, image and texture operation of nir, in every form that selection distinguishes: after each stage the program has the
//! behaviour of the nir. Addresses and data are random, per lane.

use std::collections::BTreeSet;

use ir3_compiler::compilation;
use ir3_compiler::nir::{
    self, Access, AluType, AtomicOp, BaseType, Builder, Def, Format, ImageDim, Index, IntrinsicOp, Op, Stage, TexOp,
    TexSrcKind,
};
use ir3_compiler::pipeline::Options;
use ir3_compiler::target::Target;
use ir3_compiler::{ir3, select};
use ir3_verifier::harness::check::{Smt, Verdict};
use ir3_verifier::semantics::Snapshot;
use ir3_verifier::semantics::environment::env::Env;
use ir3_verifier::semantics::interp;
use ir3_verifier::semantics::interp::{End, Scratch};

/// Buffer with random numbers.
const RANDOM: u64 = 30;
/// Buffer for results.
const RESULTS: u64 = 31;

/// A shader under construction.
struct ShaderBuilder {
    b: Builder,
    lane: Def,
    /// The number of random numbers so far.
    drawn: u64,
    /// The number of results so far.
    stored: u64,
}

impl ShaderBuilder {
    /// Random numbers and results are in buffers.
    fn compute() -> Self {
        let mut b = Builder::new(Stage::Compute);
        b.shader_mut().info.workgroup_size = Some([64, 1, 1]);
        let id = b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []).unwrap();
        let lane = b.channel(id, 0);
        Self { b, lane, drawn: 0, stored: 0 }
    }

    /// Random numbers are vertex attributes, and results outputs.
    fn vertex() -> Self {
        let mut b = Builder::new(Stage::Vertex);
        let lane = b.constant(32, 0);
        Self { b, lane, drawn: 0, stored: 0 }
    }

    fn constant(&mut self, value: u64) -> Def {
        self.b.constant(32, value)
    }

    /// Word `number` of the lane's sixteen in a buffer.
    fn own(&mut self, number: u64) -> (Def, Def) {
        let (four, number, two) = (self.constant(4), self.constant(number), self.constant(2));
        let element = self.b.alu(Op::Ishl, &[self.lane, four]);
        let element = self.b.alu(Op::Iadd, &[element, number]);
        (self.b.alu(Op::Ishl, &[element, two]), element)
    }

    fn random(&mut self) -> Def {
        if self.b.shader().stage == Stage::Vertex {
            self.drawn += 1;
            let base = [Index::Base(self.drawn as i32 - 1)];
            return self.b.intrinsic(IntrinsicOp::LoadInput, 1, 32, &[self.lane], base).unwrap();
        }
        let (bytes, element) = self.own(self.drawn % 16);
        self.drawn += 1;
        let buffer = self.constant(RANDOM);
        self.b.intrinsic(IntrinsicOp::LoadSsboIr3, 1, 32, &[buffer, bytes, element], []).unwrap()
    }

    fn random_of(&mut self, bits: u8) -> Def {
        let low = self.random();
        match bits {
            8 => self.b.alu(Op::U2u8, &[low]),
            16 => self.b.alu(Op::U2u16, &[low]),
            32 => low,
            _ => {
                let high = self.random();
                self.b.alu(Op::Pack64_2x32Split, &[low, high])
            }
        }
    }

    fn random_vec(&mut self, bits: u8, components: u8) -> Def {
        let scalars: Vec<Def> = (0..components).map(|_| self.random_of(bits)).collect();
        self.b.vec(&scalars)
    }

    fn below(&mut self, limit: u64) -> Def {
        let (word, mask) = (self.random(), self.constant(limit - 1));
        self.b.alu(Op::Iand, &[word, mask])
    }

    /// Stores a value to the results.
    fn result(&mut self, def: Option<Def>) {
        let Some(def) = def else { return };
        let data = self.b.function().defs[def].clone();
        for component in 0..data.num_components {
            let x = self.b.channel(def, component);
            let words = match data.bit_size {
                8 | 16 => vec![self.b.alu(Op::U2u32, &[x])],
                32 => vec![x],
                _ => vec![self.b.alu(Op::Unpack64_2x32SplitX, &[x]), self.b.alu(Op::Unpack64_2x32SplitY, &[x])],
            };
            for word in words {
                if self.b.shader().stage == Stage::Vertex {
                    let indices = [Index::Base(self.stored as i32), Index::WriteMask(1)];
                    self.b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[word, self.lane], indices);
                    self.stored += 1;
                    continue;
                }
                let (bytes, element) = self.own(self.stored % 16);
                self.stored += 1;
                let buffer = self.constant(RESULTS);
                let mask = [Index::WriteMask(1)];
                self.b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[word, buffer, bytes, element], mask);
            }
        }
    }

    fn handle(&mut self, kind: Handle) -> Def {
        let (index, set) = match kind {
            Handle::Bound(n) => return self.constant(n),
            Handle::Bindless(set, n) => (self.constant(n), set),
            Handle::Varying(set) => (self.below(4), set),
        };
        self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[index], [Index::DescSet(set)]).unwrap()
    }
}

/// The form in which a resource is named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Handle {
    Bound(u64),
    Bindless(u32, u64),
    Varying(u32),
}

const HANDLES: &[Handle] = &[Handle::Bound(2), Handle::Bindless(1, 3), Handle::Bindless(2, 40), Handle::Varying(1)];

/// One case: its name, its shader.
type Cases = Vec<(String, nir::Shader)>;

fn case(cases: &mut Cases, name: String, build: impl FnOnce(&mut ShaderBuilder)) {
    let mut shader = ShaderBuilder::compute();
    build(&mut shader);
    cases.push((name, shader.b.finish()));
}

fn vertex_case(cases: &mut Cases, name: String, build: impl FnOnce(&mut ShaderBuilder)) {
    let mut shader = ShaderBuilder::vertex();
    build(&mut shader);
    cases.push((name, shader.b.finish()));
}

/// A constant or random offset in elements, and in bytes.
fn ssbo_offset(s: &mut ShaderBuilder, fixed: bool, bits: u8) -> (Def, Def) {
    let element = if fixed { s.constant(300) } else { s.below(512) };
    let shift = s.constant(match bits {
        8 => 0,
        32 => 2,
        _ => 1,
    });
    (s.b.alu(Op::Ishl, &[element, shift]), element)
}

fn ssbo(cases: &mut Cases) {
    for &handle in HANDLES {
        for bits in [8, 16, 32, 64] {
            for components in 1..=4 {
                for base in [0, 5, 300] {
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

fn local(cases: &mut Cases) {
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

fn global(cases: &mut Cases) {
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

fn ubo(cases: &mut Cases) {
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

fn atomics(cases: &mut Cases) {
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

fn images(cases: &mut Cases) {
    let dims = [
        (ImageDim::Dim1D, false),
        (ImageDim::Dim1D, true),
        (ImageDim::Buf, false),
        (ImageDim::Dim2D, false),
        (ImageDim::Dim2D, true),
        (ImageDim::Dim3D, false),
        (ImageDim::Cube, false),
        (ImageDim::Cube, true),
    ];
    for &handle in HANDLES {
        for (dim, array) in dims {
            for (base, bits) in
                [(BaseType::Float, 32), (BaseType::Float, 16), (BaseType::Int, 16), (BaseType::Uint, 32)]
            {
                for access in [Access::empty(), Access::REORDERABLE] {
                    let name = format!("image {handle:?} {} {array} {base:?}{bits} {access:?}", dim.name());
                    case(cases, name, |s| {
                        let image = s.handle(handle);
                        let zero = s.constant(0);
                        let coordinates: Vec<Def> = (0..4).map(|_| s.below(8)).collect();
                        let coordinates = s.b.vec(&coordinates);
                        let ty = AluType::new(base, bits);
                        let [dim, array] = [Index::ImageDim(dim), Index::ImageArray(array)];
                        if access.is_empty() {
                            let value = s.random_vec(bits, 4);
                            let srcs = [image, coordinates, zero, value, zero];
                            let indices = [dim.clone(), array.clone(), Index::SrcType(ty)];
                            s.b.intrinsic(IntrinsicOp::ImageStore, 4, bits, &srcs, indices);
                        }
                        let srcs = [image, coordinates, zero, zero];
                        let indices = [dim, array, Index::DestType(ty), Index::Access(access)];
                        let def = s.b.intrinsic(IntrinsicOp::ImageLoad, 4, bits, &srcs, indices);
                        s.result(def);
                    });
                }
            }
        }
        for format in [Format::R32Float, Format::R16G16Float, Format::R11G11B10Float, Format::R8G8B8A8Unorm] {
            case(cases, format!("image {handle:?} {}", format.name()), |s| {
                let image = s.handle(handle);
                let zero = s.constant(0);
                let coordinates: Vec<Def> = (0..4).map(|_| s.below(8)).collect();
                let coordinate = s.b.vec(&coordinates);
                let value = s.random_vec(32, 4);
                let ty = AluType::new(BaseType::Float, 32);
                let dim = Index::ImageDim(ImageDim::Buf);
                let indices = [dim.clone(), Index::Format(format), Index::SrcType(ty)];
                let srcs = [image, coordinate, zero, value, zero];
                s.b.intrinsic(IntrinsicOp::ImageStore, 4, 32, &srcs, indices);
                let indices = [dim, Index::Format(format), Index::DestType(ty)];
                let def = s.b.intrinsic(IntrinsicOp::ImageLoad, 4, 32, &[image, coordinate, zero, zero], indices);
                s.result(def);
            });
        }
        for components in 1..=3 {
            case(cases, format!("image_size {handle:?} {components}"), |s| {
                let image = s.handle(handle);
                let zero = s.constant(0);
                let dim = [ImageDim::Dim1D, ImageDim::Dim2D, ImageDim::Dim3D][components - 1];
                let indices = [Index::ImageDim(dim)];
                let def = s.b.intrinsic(IntrinsicOp::ImageSize, components as u8, 32, &[image, zero], indices);
                s.result(def);
            });
        }
    }
}

/// The form in which a texture and its sampler are named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    Numbers(u32, u32),
    Offsets,
    Handles(Handle, Handle),
}

fn textures(cases: &mut Cases) {
    use TexSrcKind as S;
    let names = [
        Names::Numbers(1, 2),
        Names::Numbers(20, 3),
        Names::Offsets,
        Names::Handles(Handle::Bindless(1, 3), Handle::Bindless(1, 5)),
        Names::Handles(Handle::Bindless(1, 3), Handle::Bindless(2, 5)),
        Names::Handles(Handle::Bindless(1, 77), Handle::Varying(1)),
        Names::Handles(Handle::Varying(0), Handle::Varying(3)),
    ];
    let ops = [
        TexOp::Tex,
        TexOp::TexPrefetch,
        TexOp::Txb,
        TexOp::Txl,
        TexOp::Txd,
        TexOp::Txf,
        TexOp::TxfMs,
        TexOp::Tg4,
        TexOp::Lod,
        TexOp::Txs,
        TexOp::QueryLevels,
        TexOp::TextureSamples,
    ];
    for name in names {
        for op in ops {
            for coords in 1..=4u8 {
                for extras in 0..8 {
                    for half in [false, true] {
                        let (comparator, offset, projector) = (extras & 1 != 0, extras & 2 != 0, extras & 4 != 0);
                        let query = matches!(op, TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples);
                        if (query || op == TexOp::Lod) && (extras != 0 || (query && half)) {
                            continue;
                        }
                        let bits = if half { 16 } else { 32 };
                        let text = format!("{} {name:?} {coords} {comparator} {offset} {projector} {bits}", op.name());
                        vertex_case(cases, text, |s| {
                            let mut srcs = Vec::new();
                            if !query {
                                srcs.push((S::Coord, s.random_vec(bits, coords)));
                            }
                            if comparator {
                                srcs.push((S::Comparator, s.random_of(bits)));
                            }
                            if projector {
                                srcs.push((S::Projector, s.random_of(bits)));
                            }
                            let dims = if coords > 2 { coords - 1 } else { coords };
                            match op {
                                TexOp::Txb => srcs.push((S::Bias, s.random_of(bits))),
                                TexOp::Txl => srcs.push((S::Lod, s.random_of(bits))),
                                TexOp::Txf if coords != 2 => {
                                    let zero = s.b.constant(bits, 0);
                                    srcs.push((S::Lod, zero));
                                }
                                TexOp::Txs if coords != 1 => srcs.push((S::Lod, s.random())),
                                TexOp::TxfMs => srcs.push((S::MsIndex, s.random_of(bits))),
                                TexOp::Txd => {
                                    srcs.push((S::Ddx, s.random_vec(bits, dims)));
                                    srcs.push((S::Ddy, s.random_vec(bits, dims)));
                                }
                                _ => {}
                            }
                            if offset {
                                srcs.push((S::Offset, s.random_vec(bits, dims)));
                            }
                            let (mut texture, mut sampler) = (0, 0);
                            match name {
                                Names::Numbers(t, p) => (texture, sampler) = (t, p),
                                Names::Offsets => {
                                    texture = 3;
                                    srcs.push((S::TextureOffset, s.below(4)));
                                    srcs.push((S::SamplerOffset, s.below(4)));
                                }
                                Names::Handles(t, p) => {
                                    srcs.push((S::TextureHandle, s.handle(t)));
                                    if op.needs_sampler() {
                                        srcs.push((S::SamplerHandle, s.handle(p)));
                                    }
                                }
                            }
                            if !op.needs_sampler() {
                                sampler = 0;
                            }
                            let ty = match op {
                                _ if query => AluType::INT32,
                                TexOp::Lod | TexOp::Tex => AluType::new(BaseType::Float, bits),
                                TexOp::Txf => AluType::new(BaseType::Uint, bits),
                                _ => AluType::FLOAT32,
                            };
                            let components = match op {
                                TexOp::Lod => 2,
                                TexOp::QueryLevels | TexOp::TextureSamples => 1,
                                TexOp::Txs => coords.min(3),
                                _ if comparator && op != TexOp::Tg4 => 1,
                                _ => 4,
                            };
                            let def = s.b.tex(op, ty, components, |tex| {
                                tex.srcs.extend(srcs);
                                tex.texture_index = texture;
                                tex.sampler_index = sampler;
                                tex.component = coords - 1;
                            });
                            s.result(Some(def));
                        });
                    }
                }
            }
        }
    }
}

/// A nir program that copies vec4s of a buffer to the constant file, and reads words before, among and after them.
fn copy(s: &mut ShaderBuilder, handle: Handle, offset: Option<u64>, base: i32, range: u32) {
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

fn copies(cases: &mut Cases) {
    for &handle in HANDLES {
        for offset in [Some(0), Some(300), None] {
            for (base, range) in [(4, 1), (16, 8), (41, 100), (700, 256)] {
                let name = format!("copy_ubo_to_uniform {handle:?} from {offset:?} to {base}, {range} vec4s");
                case(cases, name, |s| copy(s, handle, offset, base, range));
            }
        }
    }
}

/// The number of cases that were the same after all stages; the reasons of refusals; the failures.
fn check(gpu: &str, cases: &Cases) -> (usize, BTreeSet<String>, Vec<String>) {
    let target = Target::by_name(gpu).unwrap();
    let mut scratch = Scratch::new();
    let (mut same, mut refused, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for (number, (name, shader)) in cases.iter().enumerate() {
        if let Err(errors) = nir::validate(shader) {
            wrong.push(format!("{name}: not valid: {errors:?}"));
            continue;
        }
        let source = match interp::nir::Decoded::new(shader) {
            Ok(source) => source,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        // Some promise that buffers with other names do not alias.
        let env = Env { one_buffer: Some(false), ..Env::from_seed(number as u64) };
        let expected = source.run(&env, 10_000, &mut scratch);
        assert_eq!(expected.end, End::Finished, "{name}");
        let mut problem = None;
        let mut look = |stage, program: &ir3::Program| {
            if problem.is_some() {
                return;
            }
            match interp::ir3::Decoded::new(program, &target) {
                Ok(decoded) => {
                    let difference = expected.first_difference(&decoded.run(&env, 10_000, &mut scratch));
                    problem = difference.map(|difference| format!("{name}: {stage}: {difference}"));
                }
                Err(error) => problem = Some(format!("{name}: {stage}: {error}")),
            }
        };
        let result = compilation::compile(shader, &target, &Options::default(), &mut look);
        match (result, problem) {
            (_, Some(problem)) => wrong.push(problem),
            (Ok(_), None) => same += 1,
            (Err(error), None) => {
                // Without the number of the instruction.
                let text = error.to_string();
                refused.insert(text.split_once(": ").and_then(|(_, rest)| rest.split_once(": ")).unwrap().1.to_owned());
            }
        }
    }
    println!("{gpu}: {same} of {} cases the same after every stage, {} reasons to refuse", cases.len(), refused.len());
    (same, refused, wrong)
}

#[test]
fn every_form_does_what_nir_says() {
    let mut cases = Cases::new();
    for add in [ssbo, local, global, ubo, copies, atomics, images, textures] {
        add(&mut cases);
    }
    let mut failures = Vec::new();
    for gpu in ["a320", "a420", "a540", "a630", "a660", "a750"] {
        let (same, refused, wrong) = check(gpu, &cases);
        for reason in &refused {
            println!("  {reason}");
        }
        for problem in wrong.iter().take(20) {
            println!("  WRONG {problem}");
        }
        failures.extend(wrong);
        assert!(same > 2000, "{gpu}: only {same} cases");
        let newer = ["a630", "a660", "a750"].contains(&gpu);
        let unexpected: Vec<&String> = refused.iter().filter(|reason| newer && !reason.contains("64-bit")).collect();
        assert!(unexpected.is_empty(), "{gpu}: {unexpected:?}");
    }
    assert!(failures.is_empty(), "{} cases are wrong, first {}", failures.len(), failures[0]);
}

/// Changes to a copy to the constant file: a run refutes each, and none is proved.
#[test]
fn a_changed_copy_is_refuted() {
    type CopyChange = fn(&mut ir3::Program, ir3::Instr);
    let changes: [(&str, CopyChange); 6] = [
        ("none", |_, _| {}),
        ("a vec4 less", |program, copy| change_memory(program, copy, |memory| memory.components = Some(7))),
        ("a vec4 more", |program, copy| change_memory(program, copy, |memory| memory.components = Some(9))),
        ("another set", |program, copy| change_memory(program, copy, |memory| memory.base = Some(2))),
        ("another offset", |program, copy| program.instrs[copy].srcs[1] = ir3::Src::immediate(1, false)),
        ("another place", |program, copy| {
            let a1 = program.instrs[copy].srcs[2].value().unwrap();
            let a1 = program.values[a1].instr;
            program.instrs[a1].srcs[0] = ir3::Src::immediate(20, true);
        }),
    ];
    let target = Target::by_name("a660").unwrap();
    let mut shader = ShaderBuilder::compute();
    copy(&mut shader, Handle::Bindless(1, 3), Some(0), 16, 8);
    let shader = shader.b.finish();
    let selected = select::run(&shader, &target).unwrap();
    let before = Snapshot::Nir(shader.into());
    for (name, change) in changes {
        let mut program = selected.clone();
        let mut copies = program.iter_instrs().map(|(_, instr)| instr);
        let copy = copies.find(|&instr| program.instrs[instr].opcode == ir3::Opcode::LdcK).unwrap();
        drop(copies);
        change(&mut program, copy);
        let verdict = Smt::default().compare(&before, &Snapshot::Ir3(program.into()), &target);
        match verdict {
            Verdict::Proved { .. } => assert_eq!(name, "none"),
            Verdict::Refuted(_) => assert_ne!(name, "none"),
            verdict => panic!("{name}: {verdict:?}"),
        }
    }
}

fn change_memory(program: &mut ir3::Program, instr: ir3::Instr, change: impl FnOnce(&mut ir3::MemoryAttrs)) {
    match &mut program.instrs[instr].attrs {
        ir3::Attrs::Memory(memory) => change(memory),
        attrs => panic!("{attrs:?}"),
    }
}
