//! A builder of nir shaders with one method for each operation that the families need.

use ir3_compiler::nir::{
    self, AluSrc, AluType, Builder, Def, Index, Indices, InterpMode, IntrinsicOp, IoSemantics, Op, Stage, TexOp,
    TexSrcKind,
};
use ir3_semantics::Snapshot;

/// A shader that is being built.
pub(super) struct Shader {
    /// The builder that instructions are appended to.
    pub b: Builder,
}

impl Shader {
    /// Begins a compute shader with `lanes` lanes in a workgroup.
    pub fn compute(lanes: u32) -> Self {
        let mut b = Builder::new(Stage::Compute);
        b.shader_mut().info.workgroup_size = Some([lanes, 1, 1]);
        b.shader_mut().info.num_ssbos = 4;
        Self { b }
    }

    /// Begins a fragment shader.
    pub fn fragment() -> Self {
        let mut b = Builder::new(Stage::Fragment);
        let info = &mut b.shader_mut().info;
        (info.inputs, info.outputs, info.num_textures, info.num_ssbos) = (1, 1, 4, 4);
        Self { b }
    }

    /// Returns the shader, if it is valid.
    pub fn finish(self) -> Option<Snapshot> {
        let shader = self.b.finish();
        nir::validate(&shader).is_ok().then(|| Snapshot::Nir(Box::new(shader)))
    }

    /// Appends a 32-bit constant.
    pub fn number(&mut self, value: u64) -> Def {
        self.b.constant(32, value)
    }

    /// Appends an intrinsic with a result.
    pub fn get(
        &mut self,
        op: IntrinsicOp,
        (components, bits): (u8, u8),
        srcs: &[Def],
        indices: impl Into<Indices>,
    ) -> Def {
        self.b.intrinsic(op, components, bits, srcs, indices).expect("an intrinsic with a result")
    }

    /// Appends an operation on a value and a constant.
    pub fn with(&mut self, op: Op, value: Def, constant: u64) -> Def {
        let constant = self.number(constant);
        self.b.alu(op, &[value, constant])
    }

    /// Loads the number of the lane in its workgroup.
    pub fn lane(&mut self) -> Def {
        let id = self.get(IntrinsicOp::LoadLocalInvocationId, (3, 32), &[], []);
        self.b.alu_swizzled(Op::Mov, 1, &[AluSrc::scalar(id, 0)])
    }

    /// Loads a word of a buffer.
    pub fn load(&mut self, buffer: Def, element: Def) -> Def {
        let bytes = self.with(Op::Ishl, element, 2);
        self.get(IntrinsicOp::LoadSsboIr3, (1, 32), &[buffer, bytes, element], [Index::AlignMul(4)])
    }

    /// Stores a word in a buffer.
    pub fn store(&mut self, buffer: Def, element: Def, value: Def) {
        let bytes = self.with(Op::Ishl, element, 2);
        let indices = [Index::WriteMask(1), Index::AlignMul(4)];
        self.b.intrinsic(IntrinsicOp::StoreSsboIr3, 1, 32, &[value, buffer, bytes, element], indices);
    }

    /// Loads a word of shared memory, by its index.
    pub fn load_shared(&mut self, element: Def) -> Def {
        let bytes = self.with(Op::Ishl, element, 2);
        self.get(IntrinsicOp::LoadShared, (1, 32), &[bytes], [Index::Base(0), Index::AlignMul(4)])
    }

    /// Stores a word in shared memory, by its index.
    pub fn store_shared(&mut self, element: Def, value: Def) {
        let bytes = self.with(Op::Ishl, element, 2);
        let indices = [Index::Base(0), Index::WriteMask(1), Index::AlignMul(4)];
        self.b.intrinsic(IntrinsicOp::StoreShared, 1, 32, &[value, bytes], indices);
    }

    /// Loads the components of the first varying.
    pub fn varying(&mut self) -> [Def; 4] {
        let ij = self.get(IntrinsicOp::LoadBarycentricPixel, (2, 32), &[], [Index::InterpMode(InterpMode::Smooth)]);
        let zero = self.number(0);
        let indices = [
            Index::Base(0),
            Index::DestType(AluType::FLOAT32),
            Index::IoSemantics(Some(semantics("VARYING_SLOT_VAR0"))),
        ];
        let value = self.get(IntrinsicOp::LoadInterpolatedInput, (4, 32), &[ij, zero], indices);
        [0, 1, 2, 3].map(|k| self.b.channel(value, k))
    }

    /// Stores the first output, of one component.
    pub fn output(&mut self, value: Def) {
        let zero = self.number(0);
        let indices = [
            Index::Base(0),
            Index::Range(1),
            Index::WriteMask(1),
            Index::SrcType(AluType::FLOAT32),
            Index::IoSemantics(Some(semantics("FRAG_RESULT_DATA0"))),
        ];
        self.b.intrinsic(IntrinsicOp::StoreOutput, 1, 32, &[value, zero], indices);
    }

    /// Samples a texture; returns the first component.
    pub fn sample(&mut self, op: TexOp, texture: u32, coordinates: [Def; 2], more: &[(TexSrcKind, Def)]) -> Def {
        let coordinates = self.b.vec(&coordinates);
        let texel = self.b.tex(op, AluType::FLOAT32, 4, |tex| {
            tex.srcs.push((TexSrcKind::Coord, coordinates));
            tex.srcs.extend(more.iter().copied());
            (tex.texture_index, tex.sampler_index) = (texture, texture);
        });
        self.b.channel(texel, 0)
    }
}

fn semantics(location: &str) -> Box<IoSemantics> {
    Box::new(IoSemantics::of(location))
}
