//! Instructions that a preparation inserts.

use ir3_compiler::nir::{
    Alu, AluSrc, Block, CfNode, Def, Function, Indices, Instr, InstrData, Intrinsic, IntrinsicOp, Op,
};
use smallvec::{SmallVec, smallvec};

/// Inserts instructions before another one.
pub(super) struct Before<'a> {
    pub function: &'a mut Function,
    pub block: Block,
    pub instr: Instr,
}

impl Before<'_> {
    pub fn insert(&mut self, components: u8, data: impl FnOnce(Def) -> InstrData) -> Def {
        let def = self.function.new_def(components, 32, None);
        let at = self.function.blocks[self.block].instrs.iter().position(|&it| it == self.instr).unwrap_or(0);
        self.function.insert(self.block, at, data(def));
        def
    }

    /// An operation on scalars.
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
        let srcs: SmallVec<[AluSrc; 3]> = srcs.iter().map(src).collect();

        self.insert(components, |def| {
            InstrData::Alu(Alu { op, exact: true, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
        })
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
}

/// The first block of a function.
fn first_block(function: &Function) -> Option<Block> {
    match function.body.first() {
        Some(CfNode::Block(block)) => Some(*block),
        _ => None,
    }
}

/// Appends instructions to the beginning of a function.
struct Beginning<'a> {
    function: &'a mut Function,
    block: Block,
    at: usize,
}

impl Beginning<'_> {
    fn insert(&mut self, components: u8, data: impl FnOnce(Def) -> InstrData) -> Def {
        let def = self.function.new_def(components, 32, None);
        self.function.insert(self.block, self.at, data(def));
        self.at += 1;
        def
    }

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

    fn alu(&mut self, op: Op, srcs: SmallVec<[AluSrc; 3]>) -> Def {
        self.insert(1, |def| {
            InstrData::Alu(Alu { op, exact: true, no_signed_wrap: false, no_unsigned_wrap: false, def, srcs })
        })
    }

    fn constant(&mut self, value: u32) -> AluSrc {
        let def = self.insert(1, |def| InstrData::Const { def, values: smallvec![value.into()] });
        AluSrc::scalar(def, 0)
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
pub(super) fn lane_numbers(function: &mut Function, is_fragment: bool, lanes: u32) -> Option<LaneNumbers> {
    let block = first_block(function)?;
    let mut begin = Beginning { function, block, at: 0 };
    if is_fragment {
        // The number of the pixel: its place is 0.5 or 1.5.
        let place = begin.load(IntrinsicOp::LoadFragCoord, 4);
        let [x, y] = [0, 1].map(|component| begin.alu(Op::F2u32, smallvec![AluSrc::scalar(place, component)]));
        let one = begin.constant(1);
        let row = begin.alu(Op::Ishl, smallvec![AluSrc::scalar(y, 0), one]);
        let number = begin.alu(Op::Iadd, smallvec![AluSrc::scalar(x, 0), AluSrc::scalar(row, 0)]);
        return Some(LaneNumbers { of_all: number, of_group: number });
    }
    let own = begin.load(IntrinsicOp::LoadLocalInvocationIndex, 1);
    let group = begin.load(IntrinsicOp::LoadWorkgroupId, 3);
    let lanes = begin.constant(lanes);
    let first = begin.alu(Op::Imul, smallvec![AluSrc::scalar(group, 0), lanes]);
    let of_all = begin.alu(Op::Iadd, smallvec![AluSrc::scalar(own, 0), AluSrc::scalar(first, 0)]);
    Some(LaneNumbers { of_all, of_group: own })
}
