//! Stages of one draw that run one after the other in the same wave: a vertex shader before tessellation or geometry,
//! and tessellation evaluation before geometry.
//!
//! Such a stage ends with `chmask`, which has the sources of an `end`, and `chsh`, which starts the next stage. The
//! values that it passes in registers are system values, which nir does not list: here nir stores them to outputs at
//! its end. `chsh` occurs only after `chmask`, and has no operands: it is removed from all programs, so that `chmask`
//! is their end.
//!
//! The waves of a tessellation control shader hold whole patches, so its barriers synchronize nothing, and have no
//! instruction. It begins with a `bar` of its own if the previous stage stores to shared memory: all programs have it,
//! or none.

use ir3_compiler::ir3::{self, Opcode, Program};
use ir3_compiler::nir::{
    Block, CfNode, Index, IndexKind, Indices, InstrData, Intrinsic, IntrinsicOp, IoSemantics, MemoryModes, Scope,
    Shader, Stage,
};
use ir3_programs::input::natives;
use ir3_programs::mesa::native::Native;
use smallvec::SmallVec;

/// The number of the first output that is handed over; no output of nir has such a number.
const FIRST_BASE: i32 = 0x7000;

/// The location of the flags of a geometry shader's vertices in the list after the code; nir's text has no name of it.
const VERTEX_FLAGS: &str = "GS_VERTEX_FLAGS";

/// Adds the outputs that nir leaves out, and the names of those that its text does not have. Returns the inferred
/// facts.
///
/// # Errors
/// An output of the list that no stage hands over.
pub(super) fn complete(nir: &mut Shader, native: &Native) -> Result<Vec<String>, String> {
    if nir.stage == Stage::Geometry {
        name_vertex_flags(nir, native);
    }
    let is_header = |location: &str| matches!(location, "GS_HEADER" | "TCS_HEADER");
    if !native.outputs.iter().any(|output| is_header(&output.location)) {
        return Ok(Vec::new());
    }
    let mut inferred = Vec::new();
    for (number, output) in (0..).zip(&native.outputs) {
        let op = match &*output.location {
            "GS_HEADER" => IntrinsicOp::LoadGsHeaderIr3,
            "TCS_HEADER" => IntrinsicOp::LoadTcsHeaderIr3,
            "VARYING_SLOT_PRIMITIVE_ID" => IntrinsicOp::LoadPrimitiveId,
            // The only one without a name.
            "UNKNOWN" => IntrinsicOp::LoadRelPatchIdIr3,
            other => return Err(format!("the output {other} of a stage that is followed by another one")),
        };
        store(nir, op, FIRST_BASE + number, &output.location)?;
        inferred.push(format!("the next stage gets {} in a register", op.name()));
    }
    Ok(inferred)
}

/// Stores a system value to an output of its own, at the end.
fn store(nir: &mut Shader, op: IntrinsicOp, base: i32, location: &str) -> Result<(), String> {
    let block = last_block(nir).ok_or("a program without a block")?;
    let function = &mut nir.entry;
    let mut define = |data: &dyn Fn(ir3_compiler::nir::Def) -> InstrData| {
        let def = function.new_def(1, 32, None);
        function.append(block, data(def));
        def
    };
    let indices = |op: IntrinsicOp| Indices(op.info().indices.iter().map(|&kind| Index::default_of(kind)).collect());
    let value = define(&|def| {
        InstrData::Intrinsic(Intrinsic {
            op,
            def: Some(def),
            srcs: SmallVec::new(),
            indices: indices(op),
            variable: None,
        })
    });
    let zero = define(&|def| InstrData::Const { def, values: SmallVec::from_slice(&[0]) });
    let mut of_store = indices(IntrinsicOp::StoreOutput);
    of_store.set(Index::Base(base));
    of_store.set(Index::WriteMask(1));
    of_store.set(Index::IoSemantics(Some(Box::new(IoSemantics::of(location)))));
    let store = Intrinsic {
        op: IntrinsicOp::StoreOutput,
        def: None,
        srcs: SmallVec::from_slice(&[value, zero]),
        indices: of_store,
        variable: None,
    };
    let instr = function.instrs.push(InstrData::Intrinsic(store));
    function.blocks[block].instrs.push(instr);
    Ok(())
}

/// The last block that has successors: nir prints its end as an empty block.
fn last_block(nir: &Shader) -> Option<Block> {
    nir.entry.body.iter().rev().find_map(|node| match node {
        CfNode::Block(block) => Some(*block),
        _ => None,
    })
}

/// Gives the output of a geometry shader that nir prints as `UNKNOWN` the name that the list after the code has.
fn name_vertex_flags(nir: &mut Shader, native: &Native) {
    if !native.outputs.iter().any(|output| output.location == VERTEX_FLAGS) {
        return;
    }
    for data in nir.entry.instrs.values_mut() {
        let InstrData::Intrinsic(intrinsic) = data else { continue };
        if intrinsic.op != IntrinsicOp::StoreOutput || intrinsic.indices.get(IndexKind::IoSemantics).is_none() {
            continue;
        }
        if let Some(io) = intrinsic.indices.io_semantics().filter(|io| &*io.location == "UNKNOWN") {
            let io = IoSemantics { location: VERTEX_FLAGS.into(), ..(*io).clone() };
            intrinsic.indices.set(Index::IoSemantics(Some(Box::new(io))));
        }
    }
}

/// Takes the barriers of a tessellation control shader out of nir, except for the memory that they order.
pub(super) fn without_barriers(nir: &mut Shader) {
    if nir.stage != Stage::TessCtrl {
        return;
    }
    for data in nir.entry.instrs.values_mut() {
        if let InstrData::Intrinsic(intrinsic) = data
            && intrinsic.op == IntrinsicOp::Barrier
        {
            let modes = intrinsic.indices.memory_modes().difference(MemoryModes::SHADER_OUT);
            intrinsic.indices.set(Index::MemoryModes(modes));
            intrinsic.indices.set(Index::ExecutionScope(Scope::None));
        }
    }
}

/// Replaces each `bar` of a tessellation control shader by a `nop` that waits for as much. Returns their number.
pub(super) fn without_bars<'a>(instrs: impl Iterator<Item = &'a mut ir3::InstrData>) -> usize {
    let bars = instrs.filter(|data| data.opcode == Opcode::Bar);
    bars.map(|data| *data = ir3::InstrData { flags: data.flags, ..ir3::InstrData::new(Opcode::Nop) }).count()
}

/// Takes out the `chsh` after a `chmask`.
///
/// # Errors
/// If one occurs without the other.
pub(super) fn without_chsh(program: &mut Program) -> Result<(), String> {
    for block in program.layout.clone() {
        let opcodes: Vec<Opcode> =
            program.blocks[block].instrs.iter().map(|&instr| program.instrs[instr].opcode).collect();
        if let Some(at) = natives::chsh_of(&opcodes)? {
            let chsh = program.blocks[block].instrs.remove(at);
            // `keeps` lists them, too.
            program.blocks[block].keeps.retain(|&kept| kept != chsh);
        }
    }
    Ok(())
}
