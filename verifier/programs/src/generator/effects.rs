//! Memory, textures, subgroups, inputs and outputs.
//!
//! Addresses are masked to small ranges, so that lanes access the same memory. Offsets in bytes and in elements agree,
//! as the final form of nir requires.

use super::config::CONFIG;
use ir3_compiler::nir::{
    Access, AluSrc, AluType, AtomicOp, BaseType, Def, Format, ImageDim, Index, InterpMode, IntrinsicOp, IoSemantics,
    Op, Stage, TexOp, TexSrcKind,
};

use ir3_compiler::target::FlatVaryings;

use super::Generator;
use super::choices::Choices;
use super::pool::LocalArray;

/// Operations of atomics that take two operands, all of which ir3 has.
pub(super) const ATOMICS: &[AtomicOp] = &[
    AtomicOp::Iadd,
    AtomicOp::Imin,
    AtomicOp::Umin,
    AtomicOp::Imax,
    AtomicOp::Umax,
    AtomicOp::Iand,
    AtomicOp::Ior,
    AtomicOp::Ixor,
    AtomicOp::Xchg,
];

/// Operations of reductions and scans.
const REDUCTIONS: &[Op] =
    &[Op::Iadd, Op::Imul, Op::Imin, Op::Umin, Op::Imax, Op::Umax, Op::Iand, Op::Ior, Op::Ixor, Op::Fmin, Op::Fmax];

const BUFFERS: usize = 2;

/// The number of elements of a buffer that are accessed: few, so that the order of accesses matters.
const ELEMENTS: u64 = 16;

/// The number of vectors of four that are outputs without being mixed with others.
const PLAIN_OUTPUTS: usize = 3;

fn wrmask(components: u8) -> Index {
    Index::WriteMask((1 << components) - 1)
}

impl<C: Choices> Generator<'_, C> {
    pub(super) fn binary(&mut self, op: Op, a: Def, constant: u64) -> Def {
        let k = self.b.constant(32, constant);
        self.b.alu(op, &[a, k])
    }

    /// An address below `limit` elements (a power of two), as an offset in elements.
    fn element(&mut self, limit: u64) -> Def {
        if self.c.chance(CONFIG.constant_element) {
            let at = self.c.below(limit as usize) as u64;
            return self.b.constant(32, at);
        }
        let any = self.value(32);
        self.binary(Op::Iand, any, limit - 1)
    }

    /// A value to be stored, of 1 to 4 components.
    fn data(&mut self, bits: u8) -> (Def, u8) {
        if bits == 32
            && self.c.chance(CONFIG.vector_data)
            && let Some(v) = self.pool.vector(self.c, Some(32))
            && v.components <= 4
        {
            return (v.def, v.components);
        }
        let n = if self.c.chance(CONFIG.built_data) { 2 + self.c.below(3) as u8 } else { 1 };
        let scalars: Vec<Def> = (0..n).map(|_| self.value(bits)).collect();
        (self.b.vec(&scalars), n)
    }

    pub(super) fn result(&mut self, def: Option<Def>) {
        if let Some(def) = def {
            self.define(def);
        }
    }

    pub(super) fn memory(&mut self) {
        let features = self.features;
        match self.c.below(16) {
            13 if features.ubos => self.load_ubo(),
            14 => self.load_const(),
            15 if features.global => self.global(),
            _ if !features.compute => self.load_const(),
            0..=3 => self.load_ssbo(),
            4 | 5 => self.store_ssbo(),
            6 | 7 => self.ssbo_atomic(),
            8 | 9 if self.b.shader().stage == Stage::Compute => self.load_shared(),
            10 | 11 if self.b.shader().stage == Stage::Compute => self.store_shared(),
            12 if self.b.shader().stage == Stage::Compute => self.shared_atomic(),
            _ => self.load_ssbo(),
        }
    }

    fn storage_bits(&mut self) -> u8 {
        if self.features.storage_16bit && self.c.chance(u32::from(self.weights.half) * 2) { 16 } else { 32 }
    }

    pub(super) fn ssbo_offsets(&mut self, bits: u8) -> (Def, Def, Def) {
        let n = self.c.below(BUFFERS) as u64;
        let buffer = self.b.constant(32, n);
        let element = self.element(ELEMENTS);
        let bytes = self.binary(Op::Ishl, element, if bits == 16 { 1 } else { 2 });
        (buffer, bytes, element)
    }

    fn load_ssbo(&mut self) {
        let bits = self.storage_bits();
        let (buffer, bytes, element) = self.ssbo_offsets(bits);
        let n = 1 + self.c.below(4) as u8;
        let align = Index::AlignMul(u32::from(bits) / 8);
        let def = self.b.intrinsic(IntrinsicOp::LoadSsboIr3, n, bits, &[buffer, bytes, element], [align]);
        self.result(def);
    }

    fn store_ssbo(&mut self) {
        let bits = self.storage_bits();
        let (data, n) = self.data(bits);
        self.store_ssbo_value(data, n, bits);
    }

    pub(super) fn store_ssbo_value(&mut self, data: Def, n: u8, bits: u8) {
        let (buffer, bytes, element) = self.ssbo_offsets(bits);
        let mask = if n > 1 && self.c.chance(CONFIG.partial_mask) {
            1 + self.c.below((1 << n) - 1) as u16
        } else {
            (1 << n) - 1
        };
        let align = Index::AlignMul(u32::from(bits) / 8);
        let indices = [Index::WriteMask(mask), align];
        self.b.intrinsic(IntrinsicOp::StoreSsboIr3, n, bits, &[data, buffer, bytes, element], indices);
    }

    /// Makes another read of the value likely: the data of an atomic must then survive it, though its result takes
    /// their register.
    fn read_again(&mut self, def: Def) {
        if self.c.even() {
            self.pool.add(&self.b, def);
        }
    }

    fn ssbo_atomic(&mut self) {
        let (buffer, bytes, element) = self.ssbo_offsets(32);
        let data = self.value(32);
        self.read_again(data);
        let access = Index::Access(Access::COHERENT);
        let def = if self.c.chance(CONFIG.compare_exchange_word) {
            let swap = self.value(32);
            self.read_again(swap);
            let srcs = [buffer, bytes, data, swap, element];
            self.b.intrinsic(IntrinsicOp::SsboAtomicSwapIr3, 1, 32, &srcs, [access, Index::AtomicOp(AtomicOp::Cmpxchg)])
        } else {
            let op = self.c.pick(ATOMICS);
            let srcs = [buffer, bytes, data, element];
            self.b.intrinsic(IntrinsicOp::SsboAtomicIr3, 1, 32, &srcs, [access, Index::AtomicOp(op)])
        };
        self.result(def);
    }

    /// Adds a value to an element of a buffer atomically, so that the value of every lane and iteration is observed.
    pub(super) fn add_to_memory(&mut self, value: Def) {
        let (buffer, bytes, element) = self.ssbo_offsets(32);
        let indices = [Index::Access(Access::COHERENT), Index::AtomicOp(AtomicOp::Iadd)];
        self.b.intrinsic(IntrinsicOp::SsboAtomicIr3, 1, 32, &[buffer, bytes, value, element], indices);
    }

    pub(super) fn shared_address(&mut self) -> Def {
        let element = self.element(128);
        self.binary(Op::Ishl, element, 2)
    }

    fn load_shared(&mut self) {
        let address = self.shared_address();
        let n = 1 + self.c.below(4) as u8;
        let base = Index::Base(4 * self.c.below(32) as i32);
        let def = self.b.intrinsic(IntrinsicOp::LoadShared, n, 32, &[address], [base, Index::AlignMul(4)]);
        self.result(def);
    }

    fn store_shared(&mut self) {
        let address = self.shared_address();
        let (data, n) = self.data(32);
        let base = Index::Base(4 * self.c.below(32) as i32);
        self.b.intrinsic(IntrinsicOp::StoreShared, n, 32, &[data, address], [base, wrmask(n), Index::AlignMul(4)]);
    }

    fn shared_atomic(&mut self) {
        let address = self.shared_address();
        let data = self.value(32);
        let op = self.c.pick(ATOMICS);
        let def = self.b.intrinsic(IntrinsicOp::SharedAtomic, 1, 32, &[address, data], [Index::AtomicOp(op)]);
        self.result(def);
    }

    fn load_ubo(&mut self) {
        let n = self.c.below(2) as u64;
        let buffer = self.b.constant(32, n);
        let offset = self.element(32);
        let count = 1 + self.c.below(4) as u8;
        let def = self.b.intrinsic(IntrinsicOp::LoadUboVec4, count, 32, &[buffer, offset], []);
        self.result(def);
    }

    fn load_const(&mut self) {
        let n = 1 + self.c.below(4) as u8;
        let base = Index::Base(4 * self.c.below(32) as i32);
        let offset = self.element(32);
        let def = self.b.intrinsic(IntrinsicOp::LoadConstIr3, n, 32, &[offset], [base]);
        self.result(def);
    }

    fn global(&mut self) {
        let (low, high) = (self.value(32), self.value(32));
        let mask = self.binary(Op::Iand, low, 0xfc);
        let address = self.b.vec(&[mask, high]);
        let offset = self.element(16);
        let align = Index::AlignMul(4);
        if self.c.even() {
            let n = 1 + self.c.below(4) as u8;
            let def = self.b.intrinsic(IntrinsicOp::LoadGlobalIr3, n, 32, &[address, offset], [align]);
            self.result(def);
        } else {
            let (data, n) = self.data(32);
            self.b.intrinsic(IntrinsicOp::StoreGlobalIr3, n, 32, &[data, address, offset], [align]);
        }
    }

    /// A local array: stores and loads, some of them indirect. Half of the time it is an existing one, so that arrays
    /// are live over branches and loops, and several of them at once; some of these are written anew.
    pub(super) fn array(&mut self) {
        let count = self.pool.arrays().len();
        let known = if !self.pool.only_uniform && count != 0 && self.c.even() {
            let at = self.c.below(count);
            Some(self.pool.arrays()[at])
        } else {
            None
        };
        let is_new = known.is_none();
        let Some(LocalArray { reg, length, bits }) = known.or_else(|| self.new_array()) else { return };
        if is_new || self.c.chance(CONFIG.filled_again) {
            for element in 0..length {
                let value = self.value(bits);
                let indices = [Index::Base(element.into()), Index::WriteMask(1)];
                self.b.intrinsic(IntrinsicOp::StoreReg, 1, bits, &[value, reg], indices);
            }
        }
        for _ in 0..1 + self.c.below(3) {
            if self.c.chance(CONFIG.array_store) {
                let value = self.value(bits);
                let at = self.element(u64::from(length));
                self.b.intrinsic(IntrinsicOp::StoreRegIndirect, 1, bits, &[value, reg, at], [Index::WriteMask(1)]);
            }
            let at = self.element(u64::from(length));
            let def = self.b.intrinsic(IntrinsicOp::LoadRegIndirect, 1, bits, &[reg, at], []);
            self.result(def);
        }
    }

    fn new_array(&mut self) -> Option<LocalArray> {
        let length: u16 = self.c.pick(&[2, 2, 4, 4, 8, 8, 16, 32]);
        let bits = if self.c.chance(CONFIG.array_of_style) { self.style.array_bits } else { self.c.pick(&[16, 32]) };
        let reg = self.declare_array(1, length.into(), bits)?;
        let array = LocalArray { reg, length, bits };
        self.pool.add_array(array);
        Some(array)
    }

    pub(super) fn image(&mut self) {
        let n = self.c.below(2) as u64;
        let image = self.b.constant(32, n);
        let zero = self.b.constant(32, 0);
        let (x, y) = (self.element(16), self.element(16));
        let coord = self.b.vec(&[x, y, zero, zero]);
        let dim = Index::ImageDim(ImageDim::Dim2D);
        let format = Index::Format(Format::R32Uint);
        match self.c.below(3) {
            0 => {
                let data: Vec<Def> = (0..4).map(|_| self.value(32)).collect();
                let data = self.b.vec(&data);
                let ty = Index::SrcType(AluType::UINT32);
                self.b.intrinsic(IntrinsicOp::ImageStore, 4, 32, &[image, coord, zero, data, zero], [dim, format, ty]);
            }
            1 => {
                let data = self.value(32);
                self.read_again(data);
                let op = Index::AtomicOp(self.c.pick(ATOMICS));
                let srcs = [image, coord, zero, data];
                let def = self.b.intrinsic(IntrinsicOp::ImageAtomic, 1, 32, &srcs, [dim, format, op]);
                self.result(def);
            }
            _ => {
                let ty = Index::DestType(AluType::UINT32);
                let def =
                    self.b.intrinsic(IntrinsicOp::ImageLoad, 4, 32, &[image, coord, zero, zero], [dim, format, ty]);
                self.result(def);
            }
        }
    }

    pub(super) fn texture(&mut self) {
        let fragment = self.b.shader().stage == Stage::Fragment;
        let bits = if self.c.chance(u32::from(self.weights.half) * 3) { 16 } else { 32 };
        let dest = AluType::new(BaseType::Float, bits);
        let (x, y) = (self.value(32), self.value(32));
        let coord = self.b.vec(&[x, y]);
        let texture = self.c.below(4) as u32;
        let kind = self.c.below(if fragment { 7 } else { 4 });
        let op = [TexOp::Txl, TexOp::Txd, TexOp::Txf, TexOp::Txl, TexOp::Tex, TexOp::Txb, TexOp::Tex][kind];
        let mut srcs = vec![(TexSrcKind::Coord, coord)];
        match op {
            TexOp::Txl => srcs.push((TexSrcKind::Lod, self.value(32))),
            TexOp::Txb => srcs.push((TexSrcKind::Bias, self.value(32))),
            TexOp::Txf if self.features.fetch_levels => srcs.push((TexSrcKind::Lod, self.element(4))),
            TexOp::Txf => srcs.push((TexSrcKind::Lod, self.b.constant(32, 0))),
            TexOp::Txd => {
                for kind in [TexSrcKind::Ddx, TexSrcKind::Ddy] {
                    let (a, b) = (self.value(32), self.value(32));
                    srcs.push((kind, self.b.vec(&[a, b])));
                }
            }
            _ => {}
        }
        if matches!(op, TexOp::Tex | TexOp::Txl) && self.c.chance(CONFIG.sample_compare) {
            srcs.insert(1, (TexSrcKind::Comparator, self.value(32)));
        }
        let components = if srcs.iter().any(|s| s.0 == TexSrcKind::Comparator) { 1 } else { 4 };
        let def = self.b.tex(op, dest, components, |tex| {
            tex.srcs.extend(srcs);
            tex.texture_index = texture;
            tex.sampler_index = if op == TexOp::Txf { 0 } else { texture };
        });
        self.define(def);
        // Derivatives are undefined where lanes of the quad are inactive: only at the top level, before any lane is
        // killed.
        if fragment && self.quads == 0 && !self.killed && self.c.chance(CONFIG.derivative) {
            let ops = [IntrinsicOp::Ddx, IntrinsicOp::Ddy, IntrinsicOp::DdxFine, IntrinsicOp::DdyFine];
            let op = self.c.pick(&ops);
            let value = self.value(32);
            let def = self.b.intrinsic(op, 1, 32, &[value], []);
            self.result(def);
        }
    }

    /// A reduction over the lanes of the wave, or a scan. Their machine instruction has several results.
    fn reduction(&mut self) -> Option<Def> {
        let bits = self.lane_bits();
        let value = self.value(bits);
        self.reduction_of(value, bits)
    }

    /// Like [`reduction`](Self::reduction), of a value.
    pub(super) fn reduction_of(&mut self, value: Def, bits: u8) -> Option<Def> {
        let op = Index::ReductionOp(self.c.pick(REDUCTIONS));
        match self.c.below(3) {
            0 => self.b.intrinsic(IntrinsicOp::Reduce, 1, bits, &[value], [op, Index::ClusterSize(0)]),
            1 => self.b.intrinsic(IntrinsicOp::InclusiveScan, 1, bits, &[value], [op]),
            _ => self.b.intrinsic(IntrinsicOp::ExclusiveScan, 1, bits, &[value], [op]),
        }
    }

    /// The size of a value that lanes hand to each other.
    fn lane_bits(&mut self) -> u8 {
        if self.c.chance(u32::from(self.weights.half) * 3) { 16 } else { 32 }
    }

    pub(super) fn subgroup(&mut self) {
        let def = match self.c.below(8) {
            0 => {
                let x = self.value(1);
                self.b.intrinsic(IntrinsicOp::VoteAny, 1, 1, &[x], [])
            }
            1 => {
                let x = self.value(1);
                self.b.intrinsic(IntrinsicOp::VoteAll, 1, 1, &[x], [])
            }
            _ if !self.features.lanes => self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []),
            2 => {
                let x = self.value(1);
                self.b.intrinsic(IntrinsicOp::Ballot, 4, 32, &[x], [])
            }
            3 => {
                let bits = self.lane_bits();
                let (value, condition) = (self.value(bits), self.b.intrinsic(IntrinsicOp::ElectAnyIr3, 1, 1, &[], []));
                condition.and_then(|condition| {
                    self.b.intrinsic(IntrinsicOp::ReadInvocationCondIr3, 1, bits, &[value, condition], [])
                })
            }
            4 | 5 => self.reduction(),
            _ => {
                let bits = self.lane_bits();
                let x = self.value(bits);
                self.b.intrinsic(IntrinsicOp::ReadFirstInvocation, 1, bits, &[x], [])
            }
        };
        self.result(def);
        if self.c.chance(CONFIG.census) {
            self.census();
        }
    }

    /// `terminate_if` or `demote_if` in fragment shaders, rarely.
    pub(super) fn kill(&mut self) {
        // Usually one for a program, so that derivatives after it are not rare.
        let is_enough = self.killed && (self.style.kills < 32 || self.c.even());
        if self.b.shader().stage != Stage::Fragment || is_enough || self.computed_varyings {
            return;
        }
        let condition = self.value(1);
        let op = if self.c.chance(CONFIG.demote) { IntrinsicOp::DemoteIf } else { IntrinsicOp::TerminateIf };
        self.b.intrinsic(op, 0, 0, &[condition], []);
        self.killed = true;
    }

    /// Defines the first values: inputs of the stage, and constants.
    pub(super) fn inputs(&mut self) {
        let zero = self.b.constant(32, 0);
        match self.b.shader().stage {
            Stage::Vertex => {
                for base in 0..1 + self.c.below(3) as i32 {
                    let location = format!("VERT_ATTRIB_GENERIC{base}");
                    let indices = [
                        Index::Base(base),
                        Index::Range(1),
                        Index::DestType(AluType::FLOAT32),
                        Index::IoSemantics(Some(semantics(&location))),
                    ];
                    let def = self.b.intrinsic(IntrinsicOp::LoadInput, 4, 32, &[zero], indices);
                    self.split(def, 4);
                }
                let id = self.b.intrinsic(IntrinsicOp::LoadVertexId, 1, 32, &[], []);
                self.result(id);
                if self.c.chance(CONFIG.instance_id) {
                    let instance = self.b.intrinsic(IntrinsicOp::LoadInstanceId, 1, 32, &[], []);
                    self.result(instance);
                    let draw = self.b.intrinsic(IntrinsicOp::LoadDrawId, 1, 32, &[], []);
                    self.result(draw);
                }
            }
            Stage::Fragment => {
                let mode = [Index::InterpMode(InterpMode::Smooth)];
                let ij = self.b.intrinsic(IntrinsicOp::LoadBarycentricPixel, 2, 32, &[], mode);
                let prefetched = if self.has_preamble { CONFIG.prefetched_after_preamble } else { CONFIG.prefetched };
                if let Some(ij) = ij.filter(|_| self.weights.operation != 0 && self.c.chance(prefetched)) {
                    self.prefetched_inputs(ij, zero);
                } else if let Some(ij) = ij {
                    for base in 0..1 + self.c.below(3) as i32 {
                        let location = format!("VARYING_SLOT_VAR{base}");
                        let indices = [
                            Index::Base(base),
                            Index::DestType(AluType::FLOAT32),
                            Index::IoSemantics(Some(semantics(&location))),
                        ];
                        let op = IntrinsicOp::LoadInterpolatedInput;
                        let def = self.b.intrinsic(op, 4, 32, &[ij, zero], indices);
                        self.split(def, 4);
                    }
                }
                if self.target.flat_varyings != FlatVaryings::Interpolated && self.c.chance(CONFIG.flat_inputs) {
                    self.flat_inputs(zero);
                }
                if self.c.chance(CONFIG.frag_coord) {
                    let coord = self.b.intrinsic(IntrinsicOp::LoadFragCoord, 4, 32, &[], []);
                    self.split(coord, 2);
                }
            }
            _ => {
                let id = self.b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []);
                self.split(id, 1);
                let group = self.b.intrinsic(IntrinsicOp::LoadWorkgroupId, 3, 32, &[], []);
                self.split(group, 1);
                if self.c.chance(CONFIG.workgroups) {
                    let groups = self.b.intrinsic(IntrinsicOp::LoadNumWorkgroups, 3, 32, &[], []);
                    self.split(groups, 3);
                }
            }
        }
        let base = [Index::Base(4 * self.c.below(16) as i32)];
        let def = self.b.intrinsic(IntrinsicOp::LoadConstIr3, 4, 32, &[zero], base);
        self.split(def, 2);
        let x = self.value(32);
        let h = self.b.alu(Op::U2u16, &[x]);
        self.define(h);
        let f = self.value(32);
        let f = self.b.alu(Op::F2f16, &[f]);
        self.define(f);
        self.compare();
    }

    /// Varyings that are not interpolated.
    fn flat_inputs(&mut self, zero: Def) {
        for base in 8..9 + self.c.below(2) as i32 {
            let indices = [
                Index::Base(base),
                Index::Range(1),
                Index::DestType(AluType::FLOAT32),
                Index::IoSemantics(Some(semantics(&format!("VARYING_SLOT_VAR{base}")))),
            ];
            let components = 2 + self.c.below(3) as u8;
            let def = self.b.intrinsic(IntrinsicOp::LoadInput, components, 32, &[zero], indices);
            self.split(def, components);
        }
    }

    pub(super) fn split(&mut self, def: Option<Def>, scalars: u8) {
        let Some(def) = def else { return };
        self.define(def);
        for component in 0..scalars {
            let scalar = self.b.channel(def, component);
            self.define(scalar);
        }
    }

    /// Writes all values without a reader to the outputs.
    pub(super) fn outputs(&mut self) {
        let mark = super::pool::Mark::default();
        let mut unread = self.pool.take_unread(mark, usize::MAX);
        for def in std::mem::take(&mut self.long_lived) {
            let data = &self.b.function().defs[def];
            let value = (def, data.bit_size, data.num_components);
            if !unread.contains(&value) {
                unread.push(value);
            }
        }
        let zero = self.b.constant(32, 0);
        let compute = self.b.shader().stage == Stage::Compute;
        // A few values are outputs themselves, in vectors of four; the rest is mixed.
        let (plain, rest): (Vec<_>, Vec<_>) = unread.into_iter().partition(|v| v.1 == 32 && v.2 == 1);
        let mut slot = 0;
        for four in plain.chunks(4).take(PLAIN_OUTPUTS) {
            let scalars: Vec<Def> = four.iter().map(|v| v.0).collect();
            let n = scalars.len() as u8;
            let data = self.b.vec(&scalars);
            self.output(data, n, slot, zero, compute);
            slot += 1;
        }
        let rest: Vec<_> = rest.into_iter().chain(plain.into_iter().skip(4 * PLAIN_OUTPUTS)).collect();
        let folded = self.fold(&rest).unwrap_or_else(|| self.value(32));
        self.output(folded, 1, slot, zero, compute);
    }

    pub(super) fn output(&mut self, data: Def, n: u8, slot: i32, zero: Def, compute: bool) {
        if compute {
            // Each lane stores to its own element, so that the value of every lane is observed.
            let index = match self.lane {
                Some(lane) => lane,
                None => zero,
            };
            let buffer = self.b.constant(32, 8 + slot as u64);
            let element = self.binary(Op::Ishl, index, 2);
            let bytes = self.binary(Op::Ishl, element, 2);
            let indices = [wrmask(n), Index::AlignMul(4)];
            self.b.intrinsic(IntrinsicOp::StoreSsboIr3, n, 32, &[data, buffer, bytes, element], indices);
            return;
        }
        if self.weights.operation != 0 {
            return self.any_output(data, n, slot);
        }
        let location = if self.b.shader().stage == Stage::Vertex {
            format!("VARYING_SLOT_VAR{slot}")
        } else {
            format!("FRAG_RESULT_DATA{}", slot.min(7))
        };
        let indices = [
            Index::Base(slot),
            Index::Range(1),
            wrmask(n),
            Index::SrcType(AluType::FLOAT32),
            Index::IoSemantics(Some(semantics(&location))),
        ];
        self.b.intrinsic(IntrinsicOp::StoreOutput, n, 32, &[data, zero], indices);
    }

    /// Loads the lane's own number, for outputs of compute shaders.
    pub(super) fn lane_number(&mut self) {
        if self.b.shader().stage == Stage::Compute {
            let id = self.b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []);
            self.lane = id.map(|id| self.b.alu_swizzled(Op::Mov, 1, &[AluSrc::scalar(id, 0)]));
        }
    }
}

pub(super) fn semantics(location: &str) -> Box<IoSemantics> {
    Box::new(IoSemantics::of(location))
}
