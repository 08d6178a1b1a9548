//! A program as lines and blocks, in any language.

use crate::difference::printed;
use cranelift_entity::EntityRef;
use ir3_compiler::nir::{self, CfNode, Cfg};
use ir3_semantics::Snapshot;
use ir3_semantics::interp::trace::TracePoint;
use ir3_semantics::vec4;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// An instruction or a condition.
pub(super) struct ListedLine {
    /// Its text.
    pub text: String,
    /// Its opcode.
    pub word: String,
    /// Its place in a trace.
    pub at: TracePoint,
    /// Its block.
    pub block: usize,
}

/// A basic block.
pub(super) struct ListedBlock {
    pub name: String,
    /// Its instructions.
    pub lines: Range<usize>,
    pub successors: Vec<usize>,
}

/// The lines of a program in the order of its text.
pub(super) struct Listing {
    pub lines: Vec<ListedLine>,
    pub blocks: Vec<ListedBlock>,
    /// The program is ir3.
    pub machine: bool,
}

impl Listing {
    /// Lists a program.
    pub fn new(program: &Snapshot) -> Self {
        let blocks = match program {
            Snapshot::Nir(shader) => nir_blocks(shader),
            // The listing is that of the nir that the program means.
            Snapshot::Vec4(program) => vec4::lift(program).map(|shader| nir_blocks(&shader)).unwrap_or_default(),
            Snapshot::Ir3(program) => {
                let text = program_block_names(program);
                let positions: FxHashMap<_, _> = program.layout.iter().zip(0..).map(|(&block, i)| (block, i)).collect();
                let of = |(&block, name): (_, String)| {
                    let data = &program.blocks[block];
                    let points = data.instrs.iter().map(|instr| TracePoint::Instr(instr.index() as u32)).collect();
                    (name, points, data.successors().filter_map(|to| positions.get(&to).copied()).collect())
                };
                program.layout.iter().zip(text).map(of).collect()
            }
        };
        let texts = printed(program);
        let mut listing = Self { lines: Vec::new(), blocks: Vec::new(), machine: program.as_ir3().is_some() };
        for (name, points, successors) in blocks {
            let start = listing.lines.len();
            for at in points {
                let Some(known) = texts.get(&at) else { continue };
                let (text, word) = (known.text.clone(), known.word.clone());
                listing.lines.push(ListedLine { text, word, at, block: listing.blocks.len() });
            }
            listing.blocks.push(ListedBlock { name, lines: start..listing.lines.len(), successors });
        }
        listing
    }
}

/// A block's name, its instructions, and the positions of its successors.
type BlockParts = (String, Vec<TracePoint>, Vec<usize>);

/// The names of the blocks of a program, as its text has them.
fn program_block_names(program: &ir3_compiler::ir3::Program) -> Vec<String> {
    let text = ir3_compiler::ir3::text::write(program);
    let heads = text.lines().filter_map(|line| line.strip_suffix(" {"));
    heads.map(|head| head.strip_prefix("(jp)").unwrap_or(head).to_owned()).collect()
}

fn nir_blocks(shader: &nir::Shader) -> Vec<BlockParts> {
    let function = &shader.entry;
    let cfg = Cfg::new(function);
    let order: Vec<nir::Block> = function.blocks_in_order().collect();
    let positions: FxHashMap<nir::Block, usize> = order.iter().zip(0..).map(|(&block, i)| (block, i)).collect();
    let mut conditions = FxHashMap::default();
    collect_conditions(&function.body, &mut conditions);
    let of = |&block: &nir::Block| {
        let instrs = function.blocks[block].instrs.iter().map(|instr| TracePoint::Instr(instr.index() as u32));
        let points = instrs.chain(conditions.get(&block).copied()).collect();
        let successors = cfg.succs[block].iter().filter_map(|to| positions.get(to).copied()).collect();
        (format!("b{}", block.index()), points, successors)
    };
    order.iter().map(of).collect()
}

/// Finds the condition of the if after each block.
fn collect_conditions(list: &[CfNode], conditions: &mut FxHashMap<nir::Block, TracePoint>) {
    for (number, node) in list.iter().enumerate() {
        match node {
            CfNode::Block(_) => {}
            CfNode::If(node) => {
                let before = number.checked_sub(1).map(|before| &list[before]);
                if let Some(CfNode::Block(block)) = before {
                    conditions.insert(*block, TracePoint::If(node.condition.index() as u32));
                }
                collect_conditions(&node.then, conditions);
                collect_conditions(&node.otherwise, conditions);
            }
            CfNode::Loop(node) => {
                collect_conditions(&node.body, conditions);
                collect_conditions(node.continuing.as_deref().unwrap_or_default(), conditions);
            }
        }
    }
}
