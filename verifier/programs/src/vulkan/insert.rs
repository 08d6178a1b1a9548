//! Instructions that a preparation inserts.

use ir3_compiler::nir::{
    Alu, AluSrc, Block, CfNode, Def, Function, Index, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op, Stage,
};
use smallvec::SmallVec;

/// Inserts instructions, one after the other.
pub(super) struct Inserter<'a> {
    pub function: &'a mut Function,
    block: Block,
    /// The index in the block of the next instruction.
    at: usize,
}

impl<'a> Inserter<'a> {
    /// Inserts before an instruction of a block.
    pub fn before(function: &'a mut Function, block: Block, instr: Instr) -> Self {
        let at = function.blocks[block].instrs.iter().position(|&it| it == instr).unwrap_or(0);
        Self { function, block, at }
    }

    /// Inserts at the end of a block, before its jump.
    pub fn at_end(function: &'a mut Function, block: Block) -> Self {
        let instrs = &function.blocks[block].instrs;
        let jump = instrs.last().is_some_and(|&last| matches!(function.instrs[last], InstrData::Jump(_)));
        let at = instrs.len() - usize::from(jump);
        Self { function, block, at }
    }

    /// Inserts at the beginning of a function, if that is a block.
    fn at_beginning(function: &'a mut Function) -> Option<Self> {
        let Some(&CfNode::Block(block)) = function.body.first() else { return None };
        Some(Self { function, block, at: 0 })
    }

    /// Inserts an instruction with a result of these components and this size.
    pub fn insert_sized(&mut self, components: u8, bits: u8, data: impl FnOnce(Def) -> InstrData) -> Def {
        let def = self.function.new_def(components, bits, None);
        self.function.insert(self.block, self.at, data(def));
        self.at += 1;
        def
    }

    /// Inserts an instruction whose result has 32 bits.
    pub fn insert(&mut self, components: u8, data: impl FnOnce(Def) -> InstrData) -> Def {
        self.insert_sized(components, 32, data)
    }

    fn operation(&mut self, op: Op, components: u8, srcs: SmallVec<[AluSrc; 3]>) -> Def {
        self.insert(components, |def| {
            InstrData::Alu(Alu { op, exact: true, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
        })
    }

    /// An operation on the first components.
    pub fn alu(&mut self, op: Op, srcs: [Def; 2]) -> Def {
        self.vector(op, 1, &srcs)
    }

    /// An operation on vectors; a scalar operand is that of each component.
    pub fn vector(&mut self, op: Op, components: u8, srcs: &[Def]) -> Def {
        let src = |&def: &Def| {
            let count = self.function.defs[def].num_components;
            let mut swizzle = [0; 16];
            if count > 1 {
                (0..components).for_each(|i| swizzle[usize::from(i)] = i.min(count - 1));
            }
            AluSrc { def, swizzle }
        };
        let srcs = srcs.iter().map(src).collect();
        self.operation(op, components, srcs)
    }

    pub fn constant(&mut self, value: u32) -> Def {
        self.constants(&[value])
    }

    /// A vector of constants.
    pub fn constants(&mut self, values: &[u32]) -> Def {
        let count = values.len() as u8;
        let values = values.iter().map(|&value| value.into()).collect();
        self.insert(count, |def| InstrData::Const { def, values })
    }

    /// An operation on one component of a value.
    pub fn component(&mut self, op: Op, value: Def, component: u8) -> Def {
        self.operation(op, 1, std::iter::once(AluSrc::scalar(value, component)).collect())
    }

    /// Inserts a store of a word to a buffer: the word, the buffer, and its place in bytes and in words.
    pub fn store(&mut self, srcs: &[Def; 4]) {
        let op = IntrinsicOp::StoreSsboIr3;
        // A valid intrinsic has all indices of its row.
        let mut indices = Indices::new();
        op.info().indices.iter().for_each(|&kind| indices.set(Index::default_of(kind)));
        indices.set(Index::WriteMask(1));
        indices.set(Index::AlignMul(4));
        let srcs = srcs.iter().copied().collect();
        let data = InstrData::Intrinsic(Intrinsic { op, def: None, srcs, indices, variable: None });
        self.function.insert(self.block, self.at, data);
        self.at += 1;
    }

    /// The number of the lane in its workgroup, its quad or its draw.
    pub fn lane(&mut self, stage: Stage) -> Def {
        match stage {
            Stage::Vertex => {
                let vertex = self.load(IntrinsicOp::LoadVertexIdZeroBase, 1);
                let instance = self.load(IntrinsicOp::LoadInstanceId, 1);
                let vertices = self.constant(super::vertices::VERTICES);
                let first = self.alu(Op::Imul, [instance, vertices]);
                self.alu(Op::Iadd, [vertex, first])
            }
            Stage::Fragment => {
                // The number of the pixel: its place is 0.5 or 1.5.
                let place = self.load(IntrinsicOp::LoadFragCoord, 4);
                let [x, y] = [0, 1].map(|component| self.component(Op::F2u32, place, component));
                let one = self.constant(1);
                let row = self.alu(Op::Ishl, [y, one]);
                self.alu(Op::Iadd, [x, row])
            }
            _ => self.load(IntrinsicOp::LoadLocalInvocationIndex, 1),
        }
    }

    /// A load of a system value.
    fn load(&mut self, op: IntrinsicOp, components: u8) -> Def {
        self.insert(components, |def| {
            InstrData::Intrinsic(Intrinsic {
                op,
                def: Some(def),
                srcs: SmallVec::new(),
                indices: Indices::new(),
                variable: None,
            })
        })
    }
}

/// The numbers of a lane.
#[derive(Clone, Copy)]
pub(super) struct LaneNumbers {
    /// In its dispatch or draw.
    pub of_all: Def,
    /// In its workgroup.
    pub of_group: Def,
}

/// Inserts the numbers of the lane at the beginning of a function.
pub(super) fn lane_numbers(function: &mut Function, stage: Stage, lanes: u32) -> Option<LaneNumbers> {
    let mut begin = Inserter::at_beginning(function)?;
    let own = begin.lane(stage);
    if stage != Stage::Compute {
        return Some(LaneNumbers { of_all: own, of_group: own });
    }
    let group = begin.load(IntrinsicOp::LoadWorkgroupId, 3);
    let lanes = begin.constant(lanes);
    let first = begin.alu(Op::Imul, [group, lanes]);
    let of_all = begin.alu(Op::Iadd, [own, first]);
    Some(LaneNumbers { of_all, of_group: own })
}
