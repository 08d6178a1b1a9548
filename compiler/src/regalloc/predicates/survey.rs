//! A survey of the writes and reads of predicates in one pass over the program, and of the operands that must be copied
//! to general registers before predicates can be rematerialised.

use super::super::rematerialize::keep;
use super::{Error, is_predicate_op, is_rematerializable};
use crate::ir3::liveness::LiveSets;
use crate::ir3::reconvergence::{Waiting, may_diverge};
use crate::ir3::{
    Attrs, Block, Condition, Dst, Instr, InstrData, Opcode, Place, Program, RegClass, RegFile, Src, Value, ValueData,
    WriteMask,
};
use crate::maps::map_of;
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// An instruction that reads or writes a predicate, and its position in its block.
#[derive(Clone, Copy)]
pub struct PredicateOp {
    pub instr: Instr,
    pub at: u32,
}

/// The results of the survey.
pub struct Survey {
    /// The blocks in the order in which they are visited.
    pub order: Vec<Block>,
    /// The position of each block in that order.
    pub position: SecondaryMap<Block, u32>,
    /// All operations on predicates, by block in this order.
    pub ops: Vec<PredicateOp>,
    /// The ranges of each block.
    ranges: SecondaryMap<Block, (u32, u32)>,
    pub def_block: SecondaryMap<Value, PackedOption<Block>>,
    /// The values that `predt` or `predf` reads, which should be in `p0.x`; and true if there are any.
    pub wants_first: SecondaryMap<Value, bool>,
    pub any_wants_first: bool,
    /// The maximum number of predicates that one instruction reads.
    pub most_reads: u32,
    /// True if a predicate is computed from operands that are not values.
    pub computes_from_more: bool,
    /// True if a predicate is computed from a shared register.
    pub reads_shared: bool,
}

impl Survey {
    /// # Errors
    /// If an instruction writes or reads predicates in a way that the allocator does not support.
    pub fn new(program: &Program, order: Vec<Block>) -> Result<Self, Error> {
        let mut this = Self {
            order,
            position: map_of(program.blocks.len()),
            ops: Vec::new(),
            ranges: map_of(program.blocks.len()),
            def_block: map_of(program.values.len()),
            wants_first: SecondaryMap::new(),
            any_wants_first: false,
            most_reads: 1,
            computes_from_more: false,
            reads_shared: false,
        };
        for position in 0..this.order.len() {
            let block = this.order[position];
            this.position[block] = position as u32;
            let start = this.ops.len() as u32;
            for (at, &instr) in program.blocks[block].instrs.iter().enumerate() {
                if is_predicate_op(&program.instrs[instr]) {
                    this.ops.push(PredicateOp { instr, at: at as u32 });
                    this.note(program, block, instr)?;
                }
            }
            this.ranges[block] = (start, this.ops.len() as u32);
        }
        Ok(this)
    }

    fn note(&mut self, program: &Program, block: Block, instr: Instr) -> Result<(), Error> {
        let data = &program.instrs[instr];
        if data.opcode.is_meta() {
            return Err(Error::unsupported(program, instr, "a predicate"));
        }
        for dst in data.dsts.iter().filter(|dst| dst.class.file == RegFile::Predicate) {
            let Some(value) = dst.value() else {
                return Err(Error::unsupported(
                    program,
                    instr,
                    "a predicate register in a program with predicate values",
                ));
            };
            self.def_block[value] = block.into();
            self.computes_from_more |= !is_rematerializable(data);
            self.reads_shared |= data.srcs.iter().any(|src| src.class.file == RegFile::Shared);
        }
        let mut values = [None; 2];
        let mut count = 0;
        for src in data.srcs.iter().filter(|src| src.class.file == RegFile::Predicate) {
            let Some(value) = src.value() else {
                return Err(Error::unsupported(
                    program,
                    instr,
                    "a predicate register in a program with predicate values",
                ));
            };
            if data.opcode.is_predication() {
                self.wants_first[value] = true;
                self.any_wants_first = true;
            }
            if !values.contains(&Some(value)) {
                *values.get_mut(count).ok_or_else(|| Error::unsupported(program, instr, "three predicates"))? =
                    Some(value);
                count += 1;
            }
        }
        self.most_reads = self.most_reads.max(count as u32);
        Ok(())
    }

    /// The operations of a block.
    pub fn range(&self, block: Block) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[block];
        start as usize..end as usize
    }
}

/// Makes comparisons and bitwise operations that read other operands than values (elements of arrays, other predicates)
/// write general registers; another operation on those computes the predicate and can be rematerialised. Returns true
/// if there were any. Other operations are not changed, and their predicates must be kept in their registers.
pub fn through_registers(program: &mut Program, target: &Target) -> bool {
    let mut any = false;
    for position in 0..program.layout.len() {
        let block = program.layout[position];
        let mut at = 0;
        while let Some(&instr) = program.blocks[block].instrs.get(at) {
            at += 1;
            let data = &program.instrs[instr];
            let Some(test) = test_of(data, target) else { continue };
            let [Dst { class: RegClass { file: RegFile::Predicate, .. }, .. }] = data.dsts[..] else { continue };
            if is_rematerializable(data) {
                continue;
            }
            let Some(predicate) = data.dsts[0].value() else { continue };
            // The width of the compared operands.
            let half = data.srcs.iter().find(|src| matches!(src.class.file, RegFile::General | RegFile::Shared));
            let class = RegClass::general(half.is_some_and(|src| src.class.half));
            let number = program.values.push(ValueData { instr, dst: 0, class, components: 1, array: None });
            let mut test = InstrData {
                srcs: std::iter::once(Src::reg(Place::Value(number), class, WriteMask::SCALAR)).collect(),
                ..test
            };
            test.srcs.push(Src::immediate(u32::from(test.opcode == Opcode::AndB), class.half));
            test.dsts.push(program.instrs[instr].dsts[0]);
            program.instrs[instr].dsts[0] = Dst::new(Place::Value(number), class, WriteMask::SCALAR);
            let test = program.instrs.push(test);
            program.values[predicate].instr = test;
            program.blocks[block].instrs.insert(at, test);
            at += 1;
            any = true;
        }
    }
    any
}

/// The operation that computes the predicate from an integer result of the instruction: for a comparison, whose result
/// is 0 or 1, a test against 0; for a bitwise operation, its lowest bit.
fn test_of(data: &InstrData, target: &Target) -> Option<InstrData> {
    match data.opcode {
        opcode if opcode.is_comparison() => {
            let mut test = InstrData::new(Opcode::CmpsS);
            test.attrs = Attrs::Compare(Condition::Ne);
            Some(test)
        }
        opcode if opcode.is_logic() && target.bitops_can_write_predicates => Some(InstrData::new(Opcode::AndB)),
        _ => None,
    }
}

/// Makes definitions read copies of shared registers that may have other values where the predicate is live. Returns
/// true if there were any.
pub fn keep_shared(program: &mut Program, survey: &Survey, live: &LiveSets<Value>) -> bool {
    let is_shared = |src: &Src| src.class.file == RegFile::Shared;
    let mut known: Option<(SecondaryMap<Value, PackedOption<Block>>, Waiting)> = None;
    let mut any = false;
    for op in &survey.ops {
        let data = &program.instrs[op.instr];
        let [Dst { class: RegClass { file: RegFile::Predicate, .. }, .. }] = data.dsts[..] else { continue };
        let Some(predicate) = data.dsts[0].value().filter(|_| data.srcs.iter().any(is_shared)) else { continue };
        let mut blocks = live.blocks(predicate);
        if blocks.next().is_none() {
            continue;
        }
        let (def_block, waiting) = known.get_or_insert_with(|| definitions(program));
        let stays = |src: &Src| {
            let def = src.value().and_then(|value| def_block[value].expand());
            def.is_some_and(|def| live.blocks(predicate).all(|at| at == def || !waiting.waits_between(def, at)))
        };
        let block = survey.def_block[predicate].expand();
        for k in 0..program.instrs[op.instr].srcs.len() {
            let src = program.instrs[op.instr].srcs[k];
            if !is_shared(&src) || stays(&src) {
                continue;
            }
            let copy = keep(program, op.instr, k);
            // The instruction may have moved since the survey.
            let list = block.map(|block| &mut program.blocks[block].instrs);
            if let Some(list) = list
                && let Some(at) = list.iter().position(|&instr| instr == op.instr)
            {
                list.insert(at, copy);
                any = true;
            }
        }
    }
    any
}

/// The blocks that define values, and where lanes wait.
fn definitions(program: &Program) -> (SecondaryMap<Value, PackedOption<Block>>, Waiting) {
    (program.definition_blocks(), Waiting::new(program, |block| may_diverge(program, block)))
}
