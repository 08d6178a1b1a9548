//! The uses of rows. A `mov` and a `vec` are aliases of rows, so their operands have these uses.

use super::op::{AccessAddress, Action, DecodedCode, DecodedOp, EnvironmentInput, LaneKind, TextureOperand, UNDEFINED};
use crate::interp::uses::{Definition, Operands, UseTable, ValueUses};
use ir3_compiler::ir3::AddressSpace;

/// The uses of the rows of decoded code.
pub(super) fn uses_of(code: &DecodedCode) -> ValueUses {
    let mut table = UseTable::new(code.rows);
    for op in &code.ops {
        match *op {
            DecodedOp::Moves { list: (start, end), .. } => {
                let moves = &code.moves[start as usize..end as usize];
                moves.iter().for_each(|&(to, from)| table.define(to, Definition::Move(from)));
            }
            DecodedOp::ArrayInit { first, count, .. } => {
                for row in first..first + count {
                    table.is_element(row);
                    table.define(row, Definition::Move(UNDEFINED));
                }
            }
            DecodedOp::ArrayStore(index) => {
                let access = &code.arrays[index as usize];
                for (&(word, src), element) in
                    access.rows.iter().flat_map(|row| (0..access.length).map(move |element| (row, element)))
                {
                    let definition = match access.adapt {
                        None => Definition::Move(src),
                        Some(_) => Definition::Operation {
                            reads: [src].into_iter().collect(),
                            may_be_undefined: false,
                            is_one_value: true,
                        },
                    };
                    table.define(access.first + element * access.stride + word, definition);
                }
            }
            _ => {
                let writes = writes(code, op);
                let (may_be_undefined, is_one_value) = result_of(code, op, writes.len());
                for &row in &writes {
                    let reads = reads(code, op);
                    table.define(row, Definition::Operation { reads, may_be_undefined, is_one_value });
                }
            }
        }
    }
    let loops = Loops::of(code);
    let homes = loops.homes(code);
    for (at, op) in code.ops.iter().enumerate() {
        for row in reads(code, op) {
            table.read(row, !loops.contains(homes[row as usize], loops.around[at]));
        }
    }
    table.finish(Some(UNDEFINED))
}

/// The loops of decoded code.
struct Loops {
    /// The loop around each loop.
    parents: Vec<Option<u32>>,
    /// The innermost loop around each operation.
    around: Vec<Option<u32>>,
}

impl Loops {
    fn of(code: &DecodedCode) -> Self {
        let mut ranges: Vec<(usize, usize)> = code
            .ops
            .iter()
            .enumerate()
            .filter_map(|(at, op)| match *op {
                DecodedOp::Again { start } => Some((start as usize, at)),
                _ => None,
            })
            .collect();
        // Outer loops first.
        ranges.sort_unstable_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let mut around = vec![None; code.ops.len()];
        let mut parents = Vec::new();
        for (number, &(start, end)) in ranges.iter().enumerate() {
            parents.push(around[start]);
            around[start..=end].fill(Some(number as u32));
        }
        Self { parents, around }
    }

    /// The innermost loop to which each row belongs. A phi at the start of a loop is written before the loop and in it,
    /// and belongs to the loop.
    fn homes(&self, code: &DecodedCode) -> Vec<Option<u32>> {
        let mut homes: Vec<Option<u32>> = vec![None; code.rows as usize];
        for (at, op) in code.ops.iter().enumerate() {
            let here = self.around[at];
            let written: Operands = match *op {
                DecodedOp::Moves { list: (start, end), .. } => {
                    code.moves[start as usize..end as usize].iter().map(|&(to, _)| to).collect()
                }
                _ => writes(code, op),
            };
            for row in written {
                let home = &mut homes[row as usize];
                if self.depth(here) >= self.depth(*home) {
                    *home = here;
                }
            }
        }
        homes
    }

    fn depth(&self, mut of: Option<u32>) -> u32 {
        let mut depth = 0;
        while let Some(number) = of {
            depth += 1;
            of = self.parents[number as usize];
        }
        depth
    }

    /// Returns true if all loops around a user are around the definition.
    fn contains(&self, mut definition: Option<u32>, user: Option<u32>) -> bool {
        while definition != user {
            let Some(number) = definition else { return false };
            definition = self.parents[number as usize];
        }
        true
    }
}

/// Returns whether the result of an operation may be undefined where no operand is, and whether it is seen elsewhere
/// too.
fn result_of(code: &DecodedCode, op: &DecodedOp, results: usize) -> (bool, bool) {
    match *op {
        DecodedOp::Wide(_) => (false, results > 1),
        DecodedOp::ArrayLoad(_) | DecodedOp::Lanes(_) | DecodedOp::Texture(_) => (true, false),
        DecodedOp::Access(access) => {
            let access = &code.accesses[access as usize];
            let is_elsewhere = matches!(access.place, AccessAddress::Linear { bytes: Some(_), .. });
            let is_of_lane = access.space == AddressSpace::Scratch;
            let is_atomic = matches!(access.action, Action::Atomic { .. });
            (is_elsewhere || is_of_lane || is_atomic, is_of_lane)
        }
        _ => (false, false),
    }
}

/// The rows that an operation writes, but those of phis and arrays.
pub fn writes(code: &DecodedCode, op: &DecodedOp) -> Operands {
    let mut rows = Operands::new();
    match *op {
        DecodedOp::One { dst, .. }
        | DecodedOp::Two { dst, .. }
        | DecodedOp::Three { dst, .. }
        | DecodedOp::Select { dst, .. }
        | DecodedOp::AddConst { dst, .. }
        | DecodedOp::Input { dst, .. } => rows.push(dst),
        DecodedOp::Wide(index) => {
            let wide = &code.wide[index as usize];
            rows.extend(wide.dst..wide.dst + wide.count);
        }
        DecodedOp::Lanes(index) => rows.extend(code.lanes[index as usize].rows.iter().map(|&(dst, _)| dst)),
        DecodedOp::ArrayLoad(index) => rows.extend(code.arrays[index as usize].rows.iter().map(|&(_, dst)| dst)),
        DecodedOp::Access(index) => {
            let access = &code.accesses[index as usize];
            if !matches!(access.action, Action::Store) {
                rows.extend(access.rows.iter().map(|&(_, dst)| dst));
            }
        }
        DecodedOp::Texture(index) => rows.extend(code.textures[index as usize].results.iter().map(|&(_, dst)| dst)),
        _ => {}
    }
    rows
}

/// The rows that an operation reads.
fn reads(code: &DecodedCode, op: &DecodedOp) -> Operands {
    let mut rows = Operands::new();
    match *op {
        DecodedOp::One { a, .. } | DecodedOp::AddConst { a, .. } => rows.push(a),
        DecodedOp::Two { a, b, .. } => rows.extend([a, b]),
        DecodedOp::Three { a, b, c, .. } | DecodedOp::Select { a, b, c, .. } => rows.extend([a, b, c]),
        DecodedOp::Wide(index) => rows.extend(code.wide[index as usize].srcs.iter().copied()),
        DecodedOp::Input { input, .. } => match code.inputs[input as usize] {
            EnvironmentInput::Varying { offset, ij, .. } => {
                rows.extend(offset.into_iter().chain(ij.into_iter().flatten()))
            }
            EnvironmentInput::Const { offset, .. } => rows.extend(offset),
            _ => {}
        },
        DecodedOp::Lanes(index) => {
            let lanes = &code.lanes[index as usize];
            rows.extend(lanes.rows.iter().map(|&(_, src)| src));
            match lanes.kind {
                LaneKind::ReadLane(row)
                | LaneKind::ReadWhere(row)
                | LaneKind::Broadcast(row)
                | LaneKind::Shuffle { index: row, .. }
                | LaneKind::BroadcastActive { kept: row, .. } => rows.push(row),
                LaneKind::Scan(scan) => rows.extend(scan.exclusive),
                _ => {}
            }
        }
        DecodedOp::ArrayLoad(index) => {
            let access = &code.arrays[index as usize];
            rows.extend(access.index);
            rows.extend(access.first..access.first + access.length * access.stride);
        }
        DecodedOp::ArrayStore(index) => {
            let access = &code.arrays[index as usize];
            rows.extend(access.index);
            rows.extend(access.rows.iter().map(|&(_, src)| src));
        }
        DecodedOp::Access(index) => {
            let access = &code.accesses[index as usize];
            rows.extend(access.binding.and_then(|binding| binding.row));
            match &access.place {
                AccessAddress::None => {}
                AccessAddress::Linear { base, index, bytes, .. } => {
                    rows.extend(base.iter().flatten().copied().chain(*index).chain(*bytes));
                }
                AccessAddress::Texel(texel, sample) => rows.extend(texel.iter().copied().chain(*sample)),
            }
            match access.action {
                Action::Store => rows.extend(access.rows.iter().map(|&(_, src)| src)),
                Action::Atomic { op, data, compare } => {
                    rows.extend(data.into_iter().take(if access.bits == 64 { 2 } else { 1 }));
                    rows.extend(compare.into_iter().filter(|_| op.compares()));
                }
                Action::Load | Action::CopyToConsts { .. } | Action::Size => {}
            }
        }
        DecodedOp::Texture(index) => {
            let texture = &code.textures[index as usize];
            rows.extend([texture.texture, texture.sampler].into_iter().filter_map(|resource| resource.row));
            rows.extend(texture.operands.iter().filter_map(|(_, operand)| match operand {
                TextureOperand::Row(row) => Some(*row),
                TextureOperand::Bits(_) => None,
            }));
        }
        DecodedOp::StoreOutput(index) | DecodedOp::StoreConst(index) => rows.push(code.outputs[index as usize].row),
        DecodedOp::Moves { list: (start, end), .. } => {
            rows.extend(code.moves[start as usize..end as usize].iter().map(|&(_, from)| from));
        }
        DecodedOp::Kill { condition, .. } => rows.extend(condition),
        DecodedOp::If { condition, .. } => rows.push(condition),
        _ => {}
    }
    rows
}
