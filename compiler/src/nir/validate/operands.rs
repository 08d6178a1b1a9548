//! Validation of operands: dominance, widths, component counts, indices.

use cranelift_entity::SecondaryMap;

use super::{BrokenRule, Errors, Quantity};
use crate::nir::cfg::Cfg;
use crate::nir::dominance::Dominance;
use crate::nir::function::{Alu, Block, CfNode, Def, Function, Instr, InstrData, Intrinsic};
use crate::nir::index::{Access, AtomicOp, Index, IndexKind};
use crate::nir::intrinsic::{Components, DestBits, IntrinsicOp};
use crate::nir::tex::{Tex, TexOp, TexSrcKind};
use crate::nir::types::AluType;

pub(super) fn check(function: &Function, errors: &mut Errors<'_>) {
    let cfg = Cfg::new(function);
    let dominance = Dominance::new(function, &cfg);
    let mut places = SecondaryMap::new();
    for block in function.blocks_in_order() {
        for (position, &instr) in function.blocks[block].instrs.iter().enumerate() {
            places[instr] = Some((block, position));
        }
    }
    let mut checker = OperandValidator { function, cfg, dominance, places, errors };
    for block in function.blocks_in_order() {
        for &instr in &function.blocks[block].instrs {
            checker.instruction(block, instr);
        }
    }
    checker.conditions(&function.body);
}

struct OperandValidator<'a, 'e, 'f> {
    function: &'a Function,
    cfg: Cfg,
    dominance: Dominance,
    /// The block and position of each instruction.
    places: SecondaryMap<Instr, Option<(Block, usize)>>,
    errors: &'e mut Errors<'f>,
}

impl OperandValidator<'_, '_, '_> {
    fn components(&self, def: Def) -> u8 {
        self.function.defs[def].num_components
    }

    fn width(&self, def: Def) -> u8 {
        self.function.defs[def].bit_size
    }

    /// Returns true if the value is defined at a point: `position` instructions into `block`.
    fn available(&self, def: Def, block: Block, position: usize) -> bool {
        match self.places[self.function.defs[def].instr] {
            Some((home, at)) if home == block => at < position || !self.dominance.is_reachable(block),
            Some((home, _)) => self.dominance.dominates(home, block),
            None => false,
        }
    }

    fn problem(&mut self, at: (Block, Instr), problem: BrokenRule) {
        self.errors.at_instr(at.0, at.1, problem);
    }

    fn count(&mut self, at: (Block, Instr), what: Quantity, found: impl Into<u32>, expected: impl Into<u32>) {
        let (found, expected) = (found.into(), expected.into());
        if found != expected {
            self.problem(at, BrokenRule::Count { what, found, expected });
        }
    }

    fn not_available(&self, def: Def) -> BrokenRule {
        let defined = self.places[self.function.defs[def].instr].map(|(block, _)| block);
        BrokenRule::NotDominated { value: self.errors.index(def), defined }
    }

    fn instruction(&mut self, block: Block, instr: Instr) {
        let function = self.function;
        let data = &function.instrs[instr];
        let at = (block, instr);
        let mut missing = false;
        data.for_each_src(|def| {
            if !function.defs.is_valid(def) {
                self.problem(at, BrokenRule::NoSuchValue(def.as_u32()));
                missing = true;
            }
        });
        if missing {
            return;
        }
        self.arrays_as_values(at, data);
        if let InstrData::Phi { def, srcs } = data {
            return self.phi(at, *def, srcs);
        }
        let position = self.places[instr].map_or(0, |(_, position)| position);
        data.for_each_src(|def| {
            if !self.available(def, block, position) {
                let problem = self.not_available(def);
                self.problem(at, problem);
            }
        });
        match data {
            InstrData::Alu(alu) => self.alu(at, alu),
            InstrData::Const { def, values } => {
                self.count(at, Quantity::Values, values.len() as u32, self.components(*def));
                let mask = u64::MAX >> (64 - self.width(*def));
                if let Some(&value) = values.iter().find(|&&value| value & !mask != 0) {
                    self.problem(at, BrokenRule::ConstantTooWide(value));
                }
            }
            InstrData::Intrinsic(intrinsic) => self.intrinsic(at, intrinsic),
            InstrData::Tex(tex) => self.tex(at, tex),
            InstrData::Undef { .. } | InstrData::Phi { .. } | InstrData::Jump(_) => {}
        }
    }

    /// Only loads and stores of local arrays may use them.
    fn arrays_as_values(&mut self, at: (Block, Instr), data: &InstrData) {
        use IntrinsicOp::*;
        let handle = match data {
            InstrData::Intrinsic(intrinsic) => match intrinsic.op {
                LoadReg | LoadRegIndirect => Some(0),
                StoreReg | StoreRegIndirect => Some(1),
                _ => None,
            },
            _ => None,
        };
        let mut index = 0;
        data.for_each_src(|def| {
            let definer = &self.function.instrs[self.function.defs[def].instr];
            let declared = matches!(definer, InstrData::Intrinsic(declared) if declared.op == DeclReg);
            if declared && handle != Some(index) {
                self.problem(at, BrokenRule::LocalArrayAsValue(self.errors.index(def)));
            }
            index += 1;
        });
    }

    fn phi(&mut self, at: (Block, Instr), def: Def, srcs: &[(Block, Def)]) {
        let preds = self.cfg.preds[at.0].clone();
        for &pred in preds.iter().filter(|&&pred| !srcs.iter().any(|&(block, _)| block == pred)) {
            self.problem(at, BrokenRule::PhiMissing(pred));
        }
        for (index, &(pred, src)) in srcs.iter().enumerate() {
            if !preds.contains(&pred) || srcs[..index].iter().any(|&(block, _)| block == pred) {
                self.problem(at, BrokenRule::PhiExtra(pred));
            } else if !self.available(src, pred, usize::MAX) {
                let problem = self.not_available(src);
                self.problem(at, problem);
            }
            self.count(at, Quantity::SourceComponents(index), self.components(src), self.components(def));
            self.count(at, Quantity::SourceWidth(index), self.width(src), self.width(def));
        }
    }

    fn width_of_type(&mut self, at: (Block, Instr), what: Quantity, found: u8, ty: AluType) {
        if ty.size != 0 {
            self.count(at, what, found, ty.size);
        } else if !ty.base.widths().contains(&found) {
            self.problem(at, BrokenRule::WidthOfType { what, found, expected: ty.base.widths() });
        }
    }

    fn alu(&mut self, at: (Block, Instr), alu: &Alu) {
        let info = alu.op.info();
        let components = self.components(alu.def);
        if alu.srcs.len() != info.inputs.len() {
            return self.count(at, Quantity::Sources, alu.srcs.len() as u32, info.inputs.len() as u32);
        }
        if info.output.components != 0 {
            self.count(at, Quantity::ResultComponents, components, info.output.components);
        }
        // All operands without a width of their own have the same width.
        let common = info.width_source().map(|index| self.width(alu.srcs[index].def));
        self.width_of_type(at, Quantity::ResultWidth, self.width(alu.def), info.output.ty);
        if let Some(common) = common.filter(|_| info.output.ty.size == 0) {
            self.count(at, Quantity::ResultWidth, self.width(alu.def), common);
        }
        for (index, (src, input)) in alu.srcs.iter().zip(info.inputs).enumerate() {
            let width = self.width(src.def);
            self.width_of_type(at, Quantity::SourceWidth(index), width, input.ty);
            if let Some(common) = common.filter(|_| input.ty.size == 0) {
                self.count(at, Quantity::SourceWidth(index), width, common);
            }
            let live = self.components(src.def);
            let used = usize::from(info.source_components(index, components));
            if let Some(&component) = src.swizzle.iter().take(used).find(|&&component| component >= live) {
                self.problem(at, BrokenRule::Swizzle { source: index, component, components: live });
            }
        }
    }

    fn intrinsic(&mut self, at: (Block, Instr), intrinsic: &Intrinsic) {
        let info = intrinsic.op.info();
        if intrinsic.srcs.len() != info.srcs.len() {
            return self.count(at, Quantity::Sources, intrinsic.srcs.len() as u32, info.srcs.len() as u32);
        }
        if intrinsic.def.is_some() != info.dest.is_some() {
            return self.problem(at, BrokenRule::Result);
        }
        let vector = self.function.intrinsic_components(intrinsic);
        for (index, (&src, &components)) in intrinsic.srcs.iter().zip(info.srcs).enumerate() {
            let expected = match components {
                Components::Fixed(fixed) => fixed,
                Components::Vector => vector,
                Components::Any => continue,
            };
            self.count(at, Quantity::SourceComponents(index), self.components(src), expected);
        }
        if let (Some(def), Some(dest)) = (intrinsic.def, info.dest) {
            if let Components::Fixed(fixed) = dest {
                self.count(at, Quantity::ResultComponents, self.components(def), fixed);
            }
            let width = self.width(def);
            match info.dest_bits {
                DestBits::Any => {}
                DestBits::OneOf(expected) if expected.contains(&width) => {}
                DestBits::OneOf(expected) => {
                    self.problem(at, BrokenRule::WidthOfType { what: Quantity::ResultWidth, found: width, expected });
                }
                DestBits::Source(source) => {
                    self.count(at, Quantity::ResultWidth, width, self.width(intrinsic.srcs[usize::from(source)]));
                }
            }
        }
        self.booleans(at, intrinsic);
        if self.indices(at, intrinsic) {
            self.index_values(at, intrinsic, vector);
        }
    }

    /// Conditions are one bit wide, and so are the results of subgroup votes.
    fn booleans(&mut self, at: (Block, Instr), intrinsic: &Intrinsic) {
        use IntrinsicOp::*;
        let (source, result) = match intrinsic.op {
            TerminateIf | DemoteIf => (Some(0), false),
            VoteAll | VoteAny | QuadVoteAll | QuadVoteAny => (Some(0), true),
            Ballot | BallotRelaxed => (Some(0), false),
            ReadInvocationCondIr3 => (Some(1), false),
            VoteFeq | VoteIeq | Elect | ElectAnyIr3 | PreambleStartIr3 | InverseBallot | IsHelperInvocation => {
                (None, true)
            }
            _ => (None, false),
        };
        if let Some(source) = source {
            self.count(at, Quantity::SourceWidth(source), self.width(intrinsic.srcs[source]), 1u32);
        }
        if let Some(def) = intrinsic.def.filter(|_| result) {
            self.count(at, Quantity::ResultWidth, self.width(def), 1u32);
        }
    }

    /// An intrinsic has exactly the indices of the table, in its order.
    fn indices(&mut self, at: (Block, Instr), intrinsic: &Intrinsic) -> bool {
        let mut expected = intrinsic.op.info().indices.iter().copied();
        let mut found = intrinsic.indices.0.iter().map(Index::kind);
        loop {
            match (found.next(), expected.next()) {
                (None, None) => return true,
                (found, expected) if found == expected => {}
                (found, expected) => {
                    self.problem(at, BrokenRule::Indices { found, expected });
                    return false;
                }
            }
        }
    }

    fn index_values(&mut self, at: (Block, Instr), intrinsic: &Intrinsic, vector: u8) {
        use IntrinsicOp::*;
        let indices = &intrinsic.indices;
        let mask = indices.write_mask();
        if u32::from(mask) >> vector != 0 {
            self.problem(at, BrokenRule::WriteMask { mask, components: vector });
        }
        if indices.get(IndexKind::AtomicOp).is_some() {
            let op = indices.atomic_op();
            let compares = matches!(op, AtomicOp::Cmpxchg | AtomicOp::Fcmpxchg);
            let swaps = matches!(
                intrinsic.op,
                GlobalAtomicSwap
                    | GlobalAtomicSwapIr3
                    | ImageAtomicSwap
                    | BindlessImageAtomicSwap
                    | SharedAtomicSwap
                    | SsboAtomicSwap
                    | SsboAtomicSwapIr3
            );
            if compares != swaps {
                self.problem(at, BrokenRule::AtomicOp(op.name()));
            }
        }
        let writes = intrinsic.op.is_atomic() || intrinsic.op.info().dest.is_none();
        if writes && indices.access().contains(Access::REORDERABLE) {
            self.problem(at, BrokenRule::ReorderableWrite);
        }
        if indices.get(IndexKind::AlignMul).is_some() {
            let (mul, offset) = (indices.align_mul(), indices.align_offset());
            // 0 is an alignment that nothing has stated yet.
            if mul != 0 && (!mul.is_power_of_two() || offset >= mul) {
                self.problem(at, BrokenRule::Alignment { mul, offset });
            }
        }
        match intrinsic.op {
            LoadInput | LoadInterpolatedInput | LoadOutput | ImageLoad | BindlessImageLoad | LoadUniform => {
                if let Some(def) = intrinsic.def.filter(|_| indices.dest_type().size != 0) {
                    self.count(at, Quantity::ResultWidth, self.width(def), indices.dest_type().size);
                }
            }
            StoreOutput | StorePerViewOutput | ImageStore | BindlessImageStore if indices.src_type().size != 0 => {
                let source = if matches!(intrinsic.op, StoreOutput | StorePerViewOutput) { 0 } else { 3 };
                let width = self.width(intrinsic.srcs[source]);
                self.count(at, Quantity::SourceWidth(source), width, indices.src_type().size);
            }
            LoadReg | LoadRegIndirect => self.local_array(at, intrinsic, 0, intrinsic.def),
            StoreReg | StoreRegIndirect => self.local_array(at, intrinsic, 1, intrinsic.srcs.first().copied()),
            _ => {}
        }
    }

    fn local_array(&mut self, at: (Block, Instr), access: &Intrinsic, handle: usize, value: Option<Def>) {
        let handle = access.srcs[handle];
        let declared = match &self.function.instrs[self.function.defs[handle].instr] {
            InstrData::Intrinsic(intrinsic) if intrinsic.op == IntrinsicOp::DeclReg => &intrinsic.indices,
            _ => {
                let index = self.errors.index(handle);
                return self.problem(at, BrokenRule::NotALocalArray(index));
            }
        };
        let (components, bit_size) = (declared.num_components(), declared.bit_size());
        let elements = declared.num_array_elems().max(1);
        let element = access.indices.base();
        if u32::try_from(element).is_ok_and(|element| element < elements) {
            if let Some(value) = value {
                let (components_what, width_what) = match access.def {
                    Some(_) => (Quantity::ResultComponents, Quantity::ResultWidth),
                    None => (Quantity::SourceComponents(0), Quantity::SourceWidth(0)),
                };
                self.count(at, components_what, self.components(value), components);
                self.count(at, width_what, self.width(value), bit_size);
            }
        } else {
            self.problem(at, BrokenRule::PastLocalArray { element, elements });
        }
    }

    fn tex(&mut self, at: (Block, Instr), tex: &Tex) {
        use TexSrcKind::*;
        self.width_of_type(at, Quantity::ResultWidth, self.width(tex.def), tex.dest_type);
        for (index, &(kind, _)) in tex.srcs.iter().enumerate() {
            if tex.srcs[..index].iter().any(|&(other, _)| other == kind) {
                self.problem(at, BrokenRule::TexTwice(kind));
            }
            if !tex.op.takes(kind) {
                self.problem(at, BrokenRule::TexSource(tex.op, kind));
            }
        }
        if !tex.op.result_types().contains(&tex.dest_type.base) {
            self.problem(at, BrokenRule::TexType(tex.op, tex.dest_type));
        }
        let needed: &[TexSrcKind] = match tex.op {
            TexOp::Tex | TexOp::TexPrefetch | TexOp::Lod | TexOp::Tg4 | TexOp::Txf | TexOp::TxfMsFb => &[Coord],
            TexOp::SamplesIdentical => &[Coord],
            TexOp::Txb => &[Coord, Bias],
            TexOp::Txl => &[Coord, Lod],
            TexOp::Txd => &[Coord, Ddx, Ddy],
            TexOp::TxfMs => &[Coord, MsIndex],
            TexOp::Txs | TexOp::QueryLevels | TexOp::TextureSamples => &[],
        };
        for &kind in needed.iter().filter(|&&kind| tex.src(kind).is_none()) {
            self.problem(at, BrokenRule::TexMissing(kind));
        }
    }

    /// The conditions of ifs: one bit, one component, defined at the end of the block before.
    fn conditions(&mut self, nodes: &[CfNode]) {
        let mut before = None;
        for node in nodes {
            match node {
                CfNode::Block(block) => before = Some(*block),
                CfNode::If(node) => {
                    if let Some(block) = before {
                        self.condition(block, node.condition);
                    }
                    self.conditions(&node.then);
                    self.conditions(&node.otherwise);
                }
                CfNode::Loop(node) => {
                    self.conditions(&node.body);
                    self.conditions(node.continuing.as_deref().unwrap_or_default());
                }
            }
        }
    }

    fn condition(&mut self, block: Block, condition: Def) {
        if !self.function.defs.is_valid(condition) {
            return self.errors.at_block(block, BrokenRule::NoSuchValue(condition.as_u32()));
        }
        if !self.available(condition, block, usize::MAX) {
            let problem = self.not_available(condition);
            self.errors.at_block(block, problem);
        }
        let counts = [
            (Quantity::ConditionComponents, self.components(condition)),
            (Quantity::ConditionWidth, self.width(condition)),
        ];
        for (what, found) in counts.into_iter().filter(|&(_, found)| found != 1) {
            self.errors.at_block(block, BrokenRule::Count { what, found: found.into(), expected: 1 });
        }
    }
}
