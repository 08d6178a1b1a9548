//! Instructions that a preparation inserts.

use ir3_compiler::nir::{
    Alu, AluSrc, Block, CfNode, Def, Function, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op, Stage,
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
    if stage == Stage::Vertex {
        let vertex = begin.load(IntrinsicOp::LoadVertexIdZeroBase, 1);
        let instance = begin.load(IntrinsicOp::LoadInstanceId, 1);
        let vertices = begin.constant(super::vertices::VERTICES);
        let first = begin.alu(Op::Imul, [instance, vertices]);
        let number = begin.alu(Op::Iadd, [vertex, first]);
        return Some(LaneNumbers { of_all: number, of_group: number });
    }
    if stage == Stage::Fragment {
        // The number of the pixel: its place is 0.5 or 1.5.
        let place = begin.load(IntrinsicOp::LoadFragCoord, 4);
        let [x, y] = [0, 1].map(|component| {
            let srcs = std::iter::once(AluSrc::scalar(place, component)).collect();
            begin.operation(Op::F2u32, 1, srcs)
        });
        let one = begin.constant(1);
        let row = begin.alu(Op::Ishl, [y, one]);
        let number = begin.alu(Op::Iadd, [x, row]);
        return Some(LaneNumbers { of_all: number, of_group: number });
    }
    let own = begin.load(IntrinsicOp::LoadLocalInvocationIndex, 1);
    let group = begin.load(IntrinsicOp::LoadWorkgroupId, 3);
    let lanes = begin.constant(lanes);
    let first = begin.alu(Op::Imul, [group, lanes]);
    let of_all = begin.alu(Op::Iadd, [own, first]);
    Some(LaneNumbers { of_all, of_group: own })
}
