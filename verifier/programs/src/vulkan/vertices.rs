//! Vertex shaders: attributes from a buffer, and outputs, of which one is the position, that transform feedback
//! captures as they are: before they are clipped or interpolated.

use super::fragments::{Locations, Output, POSITION};
use crate::spirv::{CAPTURED_POSITION, CAPTURED_SLOTS, StageInput};
use ir3_compiler::nir::{
    Block, Function, Index, Instr, InstrData, Intrinsic, IntrinsicOp, IoSemantics, Scope, Shader, Stage,
};
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::hash;
use std::collections::BTreeSet;

/// Vertices of an instance.
pub(super) const VERTICES: u32 = 32;
/// Instances: the lanes of a wave in all.
pub(super) const INSTANCES: u32 = LANES as u32 / VERTICES;
/// The words that are captured of a vertex.
pub const CAPTURED_WORDS: u32 = 4 * CAPTURED_SLOTS;
/// The most numbers of the first vertex.
const FIRST: u64 = 8;

/// The name of an operation that has no result in a vertex shader that the specification gives.
pub(super) fn undecided(intrinsic: &Intrinsic) -> Option<String> {
    use IntrinsicOp as I;
    let name = intrinsic.op.name();
    Some(match intrinsic.op {
        // The vertices of a subgroup are any ones of the draw.
        I::LoadSubgroupInvocation
        | I::LoadSubgroupId
        | I::LoadNumSubgroups
        | I::LoadSubgroupSize
        | I::LoadSubgroupEqMask
        | I::LoadSubgroupGeMask
        | I::LoadSubgroupGtMask
        | I::LoadSubgroupLeMask
        | I::LoadSubgroupLtMask
        | I::Ballot
        | I::BallotRelaxed
        | I::InverseBallot
        | I::FirstInvocation
        | I::LastInvocation
        | I::ReadInvocation
        | I::ReadFirstInvocation
        | I::ReadInvocationCondIr3
        | I::Rotate
        | I::Reduce
        | I::InclusiveScan
        | I::ExclusiveScan
        | I::Elect
        | I::ElectAnyIr3 => "operations of a subgroup of vertices".to_owned(),
        _ if name.starts_with("shuffle") || name.starts_with("vote") || name.starts_with("quad") => {
            "operations of a subgroup of vertices".to_owned()
        }
        // A device may execute a vertex several times.
        op if op.is_atomic() => "atomics of vertices".to_owned(),
        I::Barrier if !matches!(intrinsic.indices.execution_scope(), Scope::None | Scope::Invocation) => {
            "barriers of vertices".to_owned()
        }
        _ if name.contains("shared") => "shared memory of vertices".to_owned(),
        _ => return None,
    })
}

/// Makes an output the position, unless there is one: the first one whose stores are words.
fn position(function: &mut Function) {
    let stores = |function: &Function| -> Vec<(Instr, i32, u8)> {
        let all = function.instrs_in_order().filter_map(|(_, instr)| match &function.instrs[instr] {
            InstrData::Intrinsic(it) if it.op == IntrinsicOp::StoreOutput => {
                Some((instr, it.indices.base(), function.defs[it.srcs[0]].bit_size))
            }
            _ => None,
        });
        all.collect()
    };
    let all = stores(function);
    if all.iter().any(|&(_, base, _)| base == CAPTURED_POSITION as i32) {
        return;
    }
    let is_words = |base: i32| all.iter().all(|&(_, of, bits)| of != base || bits == 32);
    let Some(base) = all.iter().map(|&(_, base, _)| base).filter(|&base| is_words(base)).min() else { return };
    for (instr, of, _) in all {
        if of == base
            && let InstrData::Intrinsic(store) = &mut function.instrs[instr]
        {
            store.indices.set(Index::Base(CAPTURED_POSITION as i32));
            store.indices.set(Index::IoSemantics(Some(Box::new(IoSemantics::of(POSITION)))));
        }
    }
}

/// Gives each attribute and each output a location of its own, and removes what has none.
pub(super) fn locate(function: &mut Function, removed: &mut BTreeSet<String>) {
    let mut locations = Locations::new(["VERT_ATTRIB_GENERIC", "VARYING_SLOT_VAR"], Output::Varying);
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    locations.apply(function, &all, removed);
    position(function);
}

/// The environment of a prepared vertex shader: instances of vertices, from a number on.
pub fn environment(env: &mut Env, shader: &Shader) {
    let first = (hash(&[env.seed, 0x7665_7274]) % FIRST) as u32;
    let vertices: Vec<u32> = (0..VERTICES).collect();
    env.lanes = Some(u64::MAX);
    let mut set = |name: &str, values: Vec<u32>| env.system.insert(format!("{name}.0"), values);
    set("VertexId", vertices.iter().map(|vertex| vertex + first).collect());
    set("VertexIdZeroBase", vertices);
    set("InstanceId", (0..LANES as u32).map(|lane| lane / VERTICES).collect());
    set("BaseVertex", vec![first]);
    set("FirstVertex", vec![first]);
    for name in ["BaseInstance", "DrawId", "ViewIndex"] {
        set(name, vec![0]);
    }
    let function = &shader.entry;
    let attributes: BTreeSet<u32> = function
        .instrs_in_order()
        .filter_map(|(_, instr)| match &function.instrs[instr] {
            InstrData::Intrinsic(it) if it.op == IntrinsicOp::LoadInput => u32::try_from(it.indices.base()).ok(),
            _ => None,
        })
        .collect();
    for attribute in attributes {
        for component in 0..4 {
            let mut row = [0; LANES];
            env.attribute(attribute, component, &mut row);
            // The second instance has the same vertices.
            env.attributes.insert(format!("{attribute}.{component}"), row[..VERTICES as usize].to_vec());
        }
    }
}

/// A draw whose outputs are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Capture {
    /// The locations of the attributes.
    pub attributes: Vec<u32>,
    /// The words of the attributes, four each, of each vertex: from the vertex 0 on, which may be before the first.
    pub data: Vec<u32>,
    /// The number of the first vertex.
    pub first: u32,
}

impl Capture {
    /// The draw of a module in an environment.
    pub fn new(inputs: &[StageInput], env: &Env) -> Self {
        let first = env.system.get("BaseVertex.0").and_then(|values| values.first().copied()).unwrap_or_default();
        let attributes: Vec<u32> = inputs.iter().map(|input| input.location).collect();
        let mut rows = Vec::new();
        for &attribute in &attributes {
            for component in 0..4 {
                let mut row = [0; LANES];
                env.attribute(attribute, component, &mut row);
                rows.push(row);
            }
        }
        let mut data = vec![0; rows.len() * first as usize];
        data.extend((0..VERTICES as usize).flat_map(|vertex| rows.iter().map(move |row| row[vertex])));
        Self { attributes, data, first }
    }
}

/// Returns true for a shader whose outputs are captured.
#[must_use]
pub fn is_captured(shader: &Shader) -> bool {
    shader.stage == Stage::Vertex
}
