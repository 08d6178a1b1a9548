//! Decoding: from nir's control-flow tree to a list of operations.

mod alu;
mod intrinsics;
mod lanes;
pub(super) mod memory;
mod preamble;
mod texture;

use cranelift_entity::{EntityRef, SecondaryMap};
use ir3_compiler::maps::map_of;
use ir3_compiler::nir::{
    Access, Block, CfNode, Cfg, Def, FloatControls, Function, Instr, InstrData, IntrinsicOp, JumpKind, Shader,
};
use ir3_compiler::target::{FlatVaryings, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

pub(super) use alu::MAX_SOURCES;

use super::Decoded;
use super::op::{DecodedCode, DecodedOp, R, UNDEFINED};
use crate::environment::env::Launch;
use crate::environment::sync::Sync;
use crate::interp::trace::Watched;
use crate::interp::{OperationSite, Unsupported, waves};
use crate::operations::byte_offset;
use crate::pair::PairFacts;

/// The rows of a value, components in order.
type ValueRows = SmallVec<[R; 4]>;

/// The error names the operation that is refused, without its place.
type DecodeResult<T> = Result<T, String>;

/// The enclosing constructs of a block.
#[derive(Clone, Copy)]
struct Enclosing {
    /// The slot of lanes that break, and of those that continue.
    loop_slots: Option<(u32, u32)>,
}

/// A shader that is being decoded.
pub(super) struct Decoder<'a> {
    shader: &'a Shader,
    function: &'a Function,
    cfg: Cfg,
    code: DecodedCode,
    rows: SecondaryMap<Def, ValueRows>,
    constants: FxHashMap<u32, R>,
    /// The rounding modes of conversions.
    controls: FloatControls,
    /// Values that are used after a loop in which they are defined.
    live_out: FxHashSet<Def>,
    /// Local arrays by the value of their declaration: number, first row, elements, rows of an element, bits.
    arrays: FxHashMap<Def, (u32, R, u32, u32, u8)>,
    /// Operations that jump if no lane is left, and whose jump targets are not known yet: the next point where lanes
    /// may be active.
    empties: Vec<usize>,
    /// The current instruction.
    instr: Option<Instr>,
    rules: Rules,
    /// The promises of access flags, by the number of the access; accesses without promises are not in the map.
    promised: FxHashMap<u32, Access>,
    /// The numbers of the varyings that are read, and whether they are interpolated, if the driver depends on it.
    varyings: FxHashMap<u32, bool>,
    /// A preamble has been entered.
    has_preamble: bool,
    /// The table for traced runs.
    watched: Option<Vec<Watched<R>>>,
}

/// Properties of the GPU that affect the meaning of a shader, or of Mesa's translation of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// It reads the byte offsets of storage buffers.
    reads_bytes: bool,
    /// It has no instruction for varyings that are not interpolated: `bary.f` returns them unchanged if the driver has
    /// set them to be flat, which it does for those that nir reads without coordinates. So their value is that of
    /// `bary.f` at the coordinates of the pixel.
    interpolates_flat: bool,
    /// A fetch takes the coordinates of level 0, which are those of its level shifted left.
    fetches_level_0: bool,
    /// A multiply-add does not round the product.
    fused_multiply_add: bool,
}

impl From<&Target> for Rules {
    fn from(target: &Target) -> Self {
        Self {
            reads_bytes: byte_offset::is_read(target),
            interpolates_flat: target.flat_varyings == FlatVaryings::Interpolated,
            fetches_level_0: target.unminify_coords,
            fused_multiply_add: target.fused_multiply_add,
        }
    }
}

/// Decodes a shader by the rules of a GPU.
pub(super) fn decode(shader: &Shader, rules: Rules) -> Result<Decoded, Unsupported> {
    decode_with(shader, rules, None).map(|(decoded, _)| decoded)
}

/// Decodes a shader, with a table of the positions of its instructions and their operands.
pub(super) fn decode_watched(shader: &Shader) -> Result<(Decoded, Vec<Watched<R>>), Unsupported> {
    let (decoded, table) = decode_with(shader, Rules::default(), Some(Vec::new()))?;
    Ok((decoded, table.unwrap_or_default()))
}

type WatchTable = Option<Vec<Watched<R>>>;

fn decode_with(shader: &Shader, rules: Rules, watched: WatchTable) -> Result<(Decoded, WatchTable), Unsupported> {
    let function = &shader.entry;
    let mut decoder = Decoder {
        shader,
        function,
        cfg: Cfg::new(function),
        // Values of all widths have the undefined row.
        code: DecodedCode {
            rows: UNDEFINED + 1,
            narrow: vec![(UNDEFINED, 1, 1)],
            ops: Vec::with_capacity(function.instrs.len()),
            ..DecodedCode::default()
        },
        rows: map_of(function.defs.len()),
        constants: FxHashMap::default(),
        controls: FloatControls::OPEN,
        live_out: live_out_of_loops(function),
        arrays: FxHashMap::default(),
        empties: Vec::new(),
        instr: None,
        rules,
        promised: FxHashMap::default(),
        varyings: FxHashMap::default(),
        has_preamble: false,
        watched,
    };
    let result = FloatControls::of(&shader.info).map_err(|error| error.to_string()).and_then(|controls| {
        decoder.controls = controls.with_fused(rules.fused_multiply_add);
        decoder.decode_function()
    });
    if let Err(what) = result {
        return Err(decoder.unsupported(what));
    }
    let launch = Launch::of(shader);
    let scratch_size = shader.info.scratch_size;
    let has_barrier = decoder.code.ops.iter().any(|op| matches!(op, DecodedOp::Sync(Sync::Barrier(_))));
    let waves = waves::count(launch, has_barrier);
    Ok((Decoded { code: decoder.code, launch, waves, scratch_size, facts: PairFacts::default() }, decoder.watched))
}

/// The values that are used outside of a loop in which they are defined.
fn live_out_of_loops(function: &Function) -> FxHashSet<Def> {
    // The loops around each block, outermost first.
    let mut loops: SecondaryMap<Block, SmallVec<[u32; 4]>> = map_of(function.blocks.len());
    let mut number = 0;
    fn walk(
        list: &[CfNode],
        around: &mut SmallVec<[u32; 4]>,
        number: &mut u32,
        loops: &mut SecondaryMap<Block, SmallVec<[u32; 4]>>,
    ) {
        for node in list {
            match node {
                CfNode::Block(block) => loops[*block] = around.clone(),
                CfNode::If(node) => {
                    walk(&node.then, around, number, loops);
                    walk(&node.otherwise, around, number, loops);
                }
                CfNode::Loop(node) => {
                    *number += 1;
                    around.push(*number);
                    walk(&node.body, around, number, loops);
                    if let Some(continuing) = &node.continuing {
                        walk(continuing, around, number, loops);
                    }
                    around.pop();
                }
            }
        }
    }
    walk(&function.body, &mut SmallVec::new(), &mut number, &mut loops);
    if number == 0 {
        return FxHashSet::default();
    }
    let mut block_of: SecondaryMap<Instr, Option<Block>> = map_of(function.instrs.len());
    for (block, instr) in function.instrs_in_order() {
        block_of[instr] = Some(block);
    }
    let mut out = FxHashSet::default();
    let mut visit = |user: Block, def: Def| {
        let Some(home) = block_of[function.defs[def].instr] else { return };
        let innermost = loops[home].last();
        if innermost.is_some_and(|innermost| !loops[user].contains(innermost)) {
            out.insert(def);
        }
    };
    for (block, instr) in function.instrs_in_order() {
        match &function.instrs[instr] {
            // A phi reads at the end of its predecessors.
            InstrData::Phi { srcs, .. } => srcs.iter().for_each(|&(pred, def)| visit(pred, def)),
            data => data.for_each_src(|def| visit(block, def)),
        }
    }
    for_each_condition(&function.body, &mut |before, condition| visit(before, condition));
    propagate_names(function, &mut out);
    out
}

/// Propagates live-out from an alias to the value that it names.
fn propagate_names(function: &Function, out: &mut FxHashSet<Def>) {
    let mut work: Vec<Def> = out.iter().copied().collect();
    while let Some(def) = work.pop() {
        if let InstrData::Alu(alu) = &function.instrs[function.defs[def].instr]
            && alu::is_name(alu.op)
        {
            for src in &alu.srcs {
                if out.insert(src.def) {
                    work.push(src.def);
                }
            }
        }
    }
}

/// Calls `visit` with the condition of each if and the block before it.
fn for_each_condition(list: &[CfNode], visit: &mut impl FnMut(Block, Def)) {
    let mut before = None;
    for node in list {
        match node {
            CfNode::Block(block) => before = Some(*block),
            CfNode::If(node) => {
                if let Some(before) = before {
                    visit(before, node.condition);
                }
                for_each_condition(&node.then, visit);
                for_each_condition(&node.otherwise, visit);
            }
            CfNode::Loop(node) => {
                for_each_condition(&node.body, visit);
                if let Some(continuing) = &node.continuing {
                    for_each_condition(continuing, visit);
                }
            }
        }
    }
}

/// For [`watch`](super::watch).
impl<'a> Decoder<'a> {
    pub(super) fn function(&self) -> &'a Function {
        self.function
    }

    pub(super) fn code(&self) -> &DecodedCode {
        &self.code
    }

    pub(super) fn rows_of(&self, def: Def) -> &[R] {
        &self.rows[def]
    }

    /// The number of the next operation.
    pub(super) fn point(&self) -> u32 {
        self.here()
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    pub(super) fn push_watched(&mut self, watched: Watched<R>) {
        self.watched.get_or_insert_default().push(watched);
    }
}

impl Decoder<'_> {
    fn unsupported(&self, what: String) -> Unsupported {
        let place = match self.instr.map(|instr| (instr, self.function.lines[instr])) {
            Some((instr, 0)) => format!("instruction {}", instr.index()),
            Some((_, line)) => format!("line {line}"),
            None => "control flow".to_owned(),
        };
        let what = match self.instr {
            Some(instr) => {
                let name = self.function.instrs[instr].name();
                if what.is_empty() { format!("`{name}`") } else { format!("`{name}`: {what}") }
            }
            None => what,
        };
        Unsupported { what, place }
    }

    fn decode_function(&mut self) -> DecodeResult<()> {
        let function = self.function;
        self.list(&function.body, Enclosing { loop_slots: None })?;
        self.land_empties();
        self.push(DecodedOp::End);
        self.collect_promises();
        Ok(())
    }

    fn push(&mut self, op: DecodedOp) {
        self.code.ops.push(op);
    }

    fn here(&self) -> u32 {
        self.code.ops.len() as u32
    }

    /// Appends an operation that jumps if no lane is left.
    fn push_empty(&mut self, op: DecodedOp) {
        self.empties.push(self.code.ops.len());
        self.push(op);
    }

    /// Sets the jump targets of these operations to the current point.
    fn land_empties(&mut self) {
        let here = self.here();
        for at in self.empties.drain(..) {
            match &mut self.code.ops[at] {
                DecodedOp::Kill { empty, .. }
                | DecodedOp::EndIf { empty, .. }
                | DecodedOp::Break { empty, .. }
                | DecodedOp::Continue { empty, .. }
                | DecodedOp::Exit { empty, .. }
                | DecodedOp::Return { empty } => *empty = here,
                _ => {}
            }
        }
    }

    fn slot(&mut self) -> u32 {
        self.code.slots += 1;
        self.code.slots - 1
    }

    /// Allocates rows after all others.
    fn new_rows(&mut self, count: u32) -> R {
        let first = self.code.rows;
        self.code.rows += count;
        first
    }

    /// The row of a constant.
    fn constant(&mut self, bits: u32) -> R {
        if let Some(&row) = self.constants.get(&bits) {
            return row;
        }
        let row = self.new_rows(1);
        self.constants.insert(bits, row);
        self.code.constants.push((row, bits));
        row
    }

    fn bits(&self, def: Def) -> u8 {
        self.function.defs[def].bit_size
    }

    fn components(&self, def: Def) -> u32 {
        self.function.defs[def].num_components.into()
    }

    /// The number of rows of a component of a value.
    fn width(&self, def: Def) -> u32 {
        if self.bits(def) == 64 { 2 } else { 1 }
    }

    /// Allocates rows for a value.
    fn define(&mut self, def: Def) -> R {
        let count = self.components(def) * self.width(def);
        let first = self.new_rows(count);
        self.rows[def] = (first..first + count).collect();
        if self.bits(def) < 32 {
            self.code.narrow.push((first, count, (1 << self.bits(def)) - 1));
        }
        first
    }

    /// Returns true if inactive lanes must keep their value of `def`.
    fn keeps(&self, def: Def) -> bool {
        self.live_out.contains(&def)
    }

    /// The rows of a value that is read.
    fn read(&self, def: Def) -> DecodeResult<&ValueRows> {
        let rows = &self.rows[def];
        if rows.is_empty() { Err(format!("{def} is used before its definition")) } else { Ok(rows) }
    }

    /// The row of a scalar.
    fn scalar(&self, def: Def) -> DecodeResult<R> {
        Ok(self.read(def)?[0])
    }

    /// The number in [`DecodedCode::origins`] of the current instruction.
    fn origin(&mut self) -> u32 {
        let origin = match self.instr {
            Some(instr) => OperationSite {
                operation: self.function.instrs[instr].name(),
                instr: instr.index() as u32,
                line: self.function.lines[instr],
            },
            None => OperationSite { operation: "if", instr: 0, line: 0 },
        };
        self.code.origins.push(origin);
        self.code.origins.len() as u32 - 1
    }

    fn list(&mut self, list: &[CfNode], around: Enclosing) -> DecodeResult<()> {
        let mut before = None;
        for node in list {
            match node {
                CfNode::Block(block) => {
                    self.block(*block, around)?;
                    before = Some(*block);
                }
                CfNode::If(node) => {
                    self.instr = before.and_then(|block: Block| self.function.blocks[block].instrs.last().copied());
                    let condition = self.scalar(node.condition)?;
                    if self.is(node.condition, &[IntrinsicOp::PreambleStartIr3]) {
                        self.enter_preamble(node)?;
                    }
                    let condition_instr = self.function.defs[node.condition].instr;
                    self.code.origins.push(OperationSite {
                        operation: "if",
                        instr: condition_instr.index() as u32,
                        line: self.function.lines[condition_instr],
                    });
                    let origin = self.code.origins.len() as u32 - 1;
                    let slot = self.slot();
                    let start = self.code.ops.len();
                    self.watch_if(node.condition);
                    self.push(DecodedOp::If { condition, slot, otherwise: 0, origin });
                    self.list(&node.then, around)?;
                    self.land_empties();
                    let otherwise = self.here();
                    if let DecodedOp::If { otherwise: target, .. } = &mut self.code.ops[start] {
                        *target = otherwise;
                    }
                    self.push(DecodedOp::Else { slot, end: 0 });
                    self.list(&node.otherwise, around)?;
                    self.land_empties();
                    let end = self.here();
                    if let DecodedOp::Else { end: target, .. } = &mut self.code.ops[otherwise as usize] {
                        *target = end;
                    }
                    self.push_empty(DecodedOp::EndIf { slot, empty: 0 });
                }
                CfNode::Loop(node) => {
                    let (broken, continued) = (self.slot(), self.slot());
                    self.push(DecodedOp::Loop { slot: broken });
                    self.push(DecodedOp::Loop { slot: continued });
                    let start = self.here();
                    let inside = Enclosing { loop_slots: Some((broken, continued)) };
                    // Jumps from outside do not land inside.
                    let outer = std::mem::take(&mut self.empties);
                    self.list(&node.body, inside)?;
                    self.land_empties();
                    let gather = self.code.ops.len();
                    self.push(DecodedOp::Gather { slot: continued, exit: 0 });
                    if let Some(continuing) = &node.continuing {
                        // If all lanes end or leave there, execution continues after the loop.
                        self.list(continuing, inside)?;
                    }
                    self.push(DecodedOp::Again { start });
                    self.land_empties();
                    self.empties = outer;
                    let exit = self.here();
                    if let DecodedOp::Gather { exit: target, .. } = &mut self.code.ops[gather] {
                        *target = exit;
                    }
                    self.push_empty(DecodedOp::Exit { slot: broken, empty: 0 });
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, block: Block, around: Enclosing) -> DecodeResult<()> {
        let function = self.function;
        let data = &function.blocks[block];
        if self.watched.is_some() {
            self.code.block_starts.push((self.here(), block.as_u32()));
        }
        self.push(DecodedOp::Block(data.instrs.len().max(1) as u32));
        self.phis(block)?;
        self.watch_phis(block);
        let mut jump = None;
        for &instr in &data.instrs {
            self.instr = Some(instr);
            let first = self.here();
            match &function.instrs[instr] {
                InstrData::Phi { .. } => continue,
                InstrData::Alu(alu) => self.alu(alu)?,
                InstrData::Const { def, values } => {
                    let wide = self.bits(*def) == 64;
                    let mut rows = ValueRows::new();
                    for &value in values {
                        rows.push(self.constant(value as u32));
                        if wide {
                            rows.push(self.constant((value >> 32) as u32));
                        }
                    }
                    self.rows[*def] = rows;
                }
                InstrData::Undef { def } => {
                    let count = self.components(*def) * self.width(*def);
                    self.rows[*def] = SmallVec::from_elem(UNDEFINED, count as usize);
                }
                InstrData::Intrinsic(intrinsic) => self.intrinsic(intrinsic)?,
                InstrData::Tex(tex) => self.texture(tex)?,
                InstrData::Jump(kind) => jump = Some(*kind),
            }
            self.watch(instr, first);
        }
        self.instr = data.instrs.last().copied();
        // The moves for phis of a successor with other predecessors.
        for index in 0..self.cfg.succs[block].len() {
            let succ = self.cfg.succs[block][index];
            if self.cfg.preds[succ].len() > 1 {
                self.moves(block, succ)?;
            }
        }
        match (jump, around.loop_slots) {
            (None, _) => {}
            (Some(JumpKind::Break), Some((slot, _))) => self.push_empty(DecodedOp::Break { slot, empty: 0 }),
            (Some(JumpKind::Continue), Some((_, slot))) => self.push_empty(DecodedOp::Continue { slot, empty: 0 }),
            (Some(JumpKind::Return | JumpKind::Halt), _) => self.push_empty(DecodedOp::Return { empty: 0 }),
            (Some(_), None) => return Err("a jump out of no loop".to_owned()),
        }
        Ok(())
    }

    /// Allocates rows for the phis of a block, and emits their moves if it has one predecessor.
    fn phis(&mut self, block: Block) -> DecodeResult<()> {
        let function = self.function;
        for &instr in &function.blocks[block].instrs {
            let InstrData::Phi { def, .. } = &function.instrs[instr] else { break };
            if self.rows[*def].is_empty() {
                self.define(*def);
            }
        }
        if let [pred] = self.cfg.preds[block][..] {
            self.moves(pred, block)?;
        }
        Ok(())
    }

    /// Emits the moves of the phis of `succ` for lanes that come from `pred`.
    fn moves(&mut self, pred: Block, succ: Block) -> DecodeResult<()> {
        let function = self.function;
        let start = self.code.moves.len();
        for &instr in &function.blocks[succ].instrs {
            let InstrData::Phi { def, srcs } = &function.instrs[instr] else { break };
            let Some(&(_, value)) = srcs.iter().find(|(block, _)| *block == pred) else {
                return Err(format!("the phi {def} has no source for {pred}"));
            };
            if self.rows[*def].is_empty() {
                self.define(*def);
            }
            // The value may be a later phi of the same loop.
            if self.rows[value].is_empty()
                && matches!(function.instrs[function.defs[value].instr], InstrData::Phi { .. })
            {
                self.define(value);
            }
            let srcs = self.read(value)?.clone();
            for (&to, &from) in self.rows[*def].iter().zip(&srcs) {
                if to != from {
                    self.code.moves.push((to, from));
                }
            }
        }
        let moves = &self.code.moves[start..];
        if moves.is_empty() {
            return Ok(());
        }
        let staged = moves.iter().enumerate().any(|(i, &(_, from))| moves[..i].iter().any(|&(to, _)| to == from));
        let list = (start as u32, self.code.moves.len() as u32);
        self.push(DecodedOp::Moves { list, staged });
        Ok(())
    }
}
