//! Shaders of one operation: its operands are random, and its results are stored.

use ir3_compiler::nir::{self, Access, Builder, Def, Index, IndexKind, InstrData, IntrinsicOp, Op, Stage};

/// Buffer with random numbers.
const RANDOM: u64 = 30;
/// Buffer for results.
const RESULTS: u64 = 31;

/// A shader under construction.
pub struct ShaderBuilder {
    pub b: Builder,
    lane: Def,
    /// The number of random numbers so far.
    drawn: u64,
    /// The number of results so far.
    stored: u64,
    /// Lanes name different descriptors.
    varies: bool,
}

impl ShaderBuilder {
    /// Random numbers and results are in buffers.
    pub fn compute() -> Self {
        let mut b = Builder::new(Stage::Compute);
        b.shader_mut().info.workgroup_size = Some([64, 1, 1]);
        let id = b.intrinsic(IntrinsicOp::LoadLocalInvocationId, 3, 32, &[], []).unwrap();
        let lane = b.channel(id, 0);
        Self { b, lane, drawn: 0, stored: 0, varies: false }
    }

    /// Random numbers are vertex attributes, and results outputs.
    fn vertex() -> Self {
        let mut b = Builder::new(Stage::Vertex);
        let lane = b.constant(32, 0);
        Self { b, lane, drawn: 0, stored: 0, varies: false }
    }

    pub fn constant(&mut self, value: u64) -> Def {
        self.b.constant(32, value)
    }

    /// Word `number` of the lane's sixteen in a buffer.
    fn own(&mut self, number: u64) -> (Def, Def) {
        let (four, number, two) = (self.constant(4), self.constant(number), self.constant(2));
        let element = self.b.alu(Op::Ishl, &[self.lane, four]);
        let element = self.b.alu(Op::Iadd, &[element, number]);
        (self.b.alu(Op::Ishl, &[element, two]), element)
    }

    pub fn random(&mut self) -> Def {
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

    pub fn random_of(&mut self, bits: u8) -> Def {
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

    pub fn random_vec(&mut self, bits: u8, components: u8) -> Def {
        let scalars: Vec<Def> = (0..components).map(|_| self.random_of(bits)).collect();
        self.b.vec(&scalars)
    }

    pub fn below(&mut self, limit: u64) -> Def {
        let (word, mask) = (self.random(), self.constant(limit - 1));
        self.b.alu(Op::Iand, &[word, mask])
    }

    /// Stores a value to the results.
    pub fn result(&mut self, def: Option<Def>) {
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

    /// The shader. If a handle varies, the accesses are marked.
    fn finish(self) -> nir::Shader {
        let mut shader = self.b.finish();
        if self.varies {
            for data in shader.entry.instrs.values_mut() {
                match data {
                    InstrData::Intrinsic(intrinsic) if intrinsic.op.info().indices.contains(&IndexKind::Access) => {
                        let access = intrinsic.indices.access() | Access::NON_UNIFORM;
                        intrinsic.indices.set(Index::Access(access));
                    }
                    InstrData::Tex(tex) => (tex.texture_non_uniform, tex.sampler_non_uniform) = (true, true),
                    _ => {}
                }
            }
        }
        shader
    }

    pub fn handle(&mut self, kind: Handle) -> Def {
        let (index, set) = match kind {
            Handle::Bound(n) => return self.constant(n),
            Handle::Bindless(set, n) => (self.constant(n), set),
            Handle::Varying(set) => {
                self.varies = true;
                (self.below(4), set)
            }
        };
        self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[index], [Index::DescSet(set)]).unwrap()
    }
}

/// The form in which a resource is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handle {
    Bound(u64),
    Bindless(u32, u64),
    Varying(u32),
}

pub const HANDLES: &[Handle] = &[Handle::Bound(2), Handle::Bindless(1, 3), Handle::Bindless(2, 40), Handle::Varying(1)];

/// One case: its name, its shader.
pub type Cases = Vec<(String, nir::Shader)>;

pub fn case(cases: &mut Cases, name: String, build: impl FnOnce(&mut ShaderBuilder)) {
    let mut shader = ShaderBuilder::compute();
    build(&mut shader);
    cases.push((name, shader.finish()));
}

pub fn vertex_case(cases: &mut Cases, name: String, build: impl FnOnce(&mut ShaderBuilder)) {
    let mut shader = ShaderBuilder::vertex();
    build(&mut shader);
    cases.push((name, shader.finish()));
}
