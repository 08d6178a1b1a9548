//! Fragment shaders on one quad: locations of inputs and outputs, inputs whose interpolation is exact, and what the
//! specification does not give a fragment.

use crate::spirv::CAPTURED_POSITION;
use ir3_compiler::nir::{
    Block, Function, Index, IndexKind, Instr, InstrData, Intrinsic, IntrinsicOp, IoSemantics, Scope, Shader, Stage,
    TexOp,
};
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::random::hash;
use std::collections::{BTreeMap, BTreeSet};

/// Lanes of a quad.
pub const QUAD: u32 = 4;
/// Colour attachments.
const COLORS: usize = 8;
/// Locations of inputs.
const INPUTS: usize = 16;

/// The pixels that a draw may cover: all, a row, a column, or one of them. The others are helper lanes.
const COVERED: [u64; 16] =
    [0xf, 0xf, 0xf, 0xf, 0xf, 0xf, 0xf, 0xf, 0b0011, 0b1100, 0b0101, 0b1010, 0b0001, 0b0010, 0b0100, 0b1000];

/// The name of an operation that has no result on one quad that the specification gives.
pub(super) fn undecided(function: &Function, intrinsic: &Intrinsic) -> Option<String> {
    use IntrinsicOp as I;
    let is_reduced = matches!(intrinsic.op, I::Reduce | I::InclusiveScan | I::ExclusiveScan);
    let cluster = intrinsic.indices.get(IndexKind::ClusterSize).map(|_| intrinsic.indices.cluster_size());
    if is_beyond_quad(intrinsic) && may_have_helpers(function) {
        return Some("operations of a subgroup of fragments next to those of a quad".to_owned());
    }
    Some(match intrinsic.op {
        // A quad is at any place in its subgroup.
        I::LoadSubgroupInvocation
        | I::LoadSubgroupId
        | I::LoadNumSubgroups
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
        | I::Shuffle
        | I::Rotate => "numbers of lanes in a subgroup of fragments".to_owned(),
        _ if is_reduced && cluster.is_some_and(|size| size > QUAD) => "clusters larger than a quad".to_owned(),
        I::Barrier if !matches!(intrinsic.indices.execution_scope(), Scope::None | Scope::Invocation) => {
            "barriers of fragments".to_owned()
        }
        op if op.name().contains("shared") => "shared memory of fragments".to_owned(),
        _ => return None,
    })
}

/// Returns true for operations that all active lanes of a subgroup, or of a cluster of them, have a part in. Those of a
/// quad are not of these.
fn is_of_subgroup(op: IntrinsicOp) -> bool {
    use IntrinsicOp as I;
    matches!(
        op,
        I::Reduce
            | I::InclusiveScan
            | I::ExclusiveScan
            | I::VoteAny
            | I::VoteAll
            | I::VoteIeq
            | I::VoteFeq
            | I::Elect
            | I::ElectAnyIr3
            | I::ReadFirstInvocation
            | I::ReadInvocationCondIr3
    )
}

/// Returns true if an operation's result depends on lanes of other quads.
fn is_beyond_quad(intrinsic: &Intrinsic) -> bool {
    is_of_subgroup(intrinsic.op)
        && (intrinsic.op != IntrinsicOp::Reduce || !(1..=QUAD).contains(&intrinsic.indices.cluster_size()))
}

/// Returns true if a shader has group operations other than those of a quad. With helper lanes their results are open:
/// of these operations the specification says that helper lanes may be inactive (chapter Shaders, section Helper
/// Invocations), and not of those of a quad.
#[must_use]
pub fn reads_subgroup(shader: &Shader) -> bool {
    let function = &shader.entry;
    function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(it) => is_of_subgroup(it.op),
        _ => false,
    })
}

/// Returns true if a shader has operations for which a device may have helper lanes: those of a quad, and derivatives.
/// The specification (chapter Shaders, sections Quad Group Operations, Derivative Operations, Helper Invocations) has a
/// device launch as many helper lanes as they need, and does not forbid more of them. llvmpipe has whole quads of
/// helper lanes in the subgroup of a covered one.
fn may_have_helpers(function: &Function) -> bool {
    use IntrinsicOp as I;
    function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(it) => {
            matches!(it.op, I::QuadBroadcast | I::QuadSwapHorizontal | I::QuadSwapVertical | I::QuadSwapDiagonal)
                || matches!(it.op, I::QuadVoteAny | I::QuadVoteAll)
                || it.op.name().starts_with("dd")
        }
        InstrData::Tex(tex) => matches!(tex.op, TexOp::Tex | TexOp::Txb | TexOp::TexPrefetch | TexOp::Lod),
        _ => false,
    })
}

/// The name of the position.
pub(super) const POSITION: &str = "VARYING_SLOT_POS";

/// The kind of a stage's outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Color,
    Varying,
}

/// The locations of the inputs and outputs of a shader.
pub(super) struct Locations {
    /// The names of locations of inputs and outputs, without their numbers.
    names: [&'static str; 2],
    output: Output,
    /// By the number of the input and the form in which it is read.
    inputs: BTreeMap<(i64, Option<(IntrinsicOp, u8)>), usize>,
    outputs: BTreeMap<i64, usize>,
}

/// Gives each input and each output a location of its own, which is its number, too. Removes what has none.
pub(super) fn locate(function: &mut Function, removed: &mut BTreeSet<String>) {
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    Locations::new(["VARYING_SLOT_VAR", "FRAG_RESULT_DATA"], Output::Color).apply(function, &all, removed);
}

impl Locations {
    pub fn new(names: [&'static str; 2], output: Output) -> Self {
        Self { names, output, inputs: BTreeMap::new(), outputs: BTreeMap::new() }
    }

    /// Gives the inputs and outputs of these instructions their locations.
    pub fn apply(&mut self, function: &mut Function, all: &[(Block, Instr)], removed: &mut BTreeSet<String>) {
        for &(block, instr) in all {
            let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
            let new = match intrinsic.op {
                IntrinsicOp::LoadInput | IntrinsicOp::LoadInterpolatedInput => self.input(function, intrinsic),
                IntrinsicOp::StoreOutput => self.output(function, intrinsic),
                _ => continue,
            };
            match new {
                Ok((name, number)) => {
                    // A constant of the value 0 that the access already has, or the base and the offset in one.
                    if let InstrData::Intrinsic(intrinsic) = &mut function.instrs[instr] {
                        let is_position = name == POSITION;
                        let name = if is_position { name.to_owned() } else { format!("{name}{number}") };
                        let semantics = Box::new(IoSemantics::of(&name));
                        intrinsic.indices.set(Index::IoSemantics(Some(semantics)));
                        intrinsic.indices.set(Index::Base(number as i32));
                    }
                    let mut before = super::insert::Inserter::before(function, block, instr);
                    let zero = before.constant(0);
                    if let InstrData::Intrinsic(intrinsic) = &mut before.function.instrs[instr]
                        && let Some(offset) = intrinsic.srcs.last_mut()
                    {
                        *offset = zero;
                    }
                }
                Err(why) => {
                    removed.insert(why);
                    crate::generator::replace(function, block, instr);
                }
            }
        }
    }

    fn input(&mut self, function: &Function, intrinsic: &Intrinsic) -> Result<(&'static str, usize), String> {
        let number = number(function, intrinsic).ok_or("inputs at a computed location")?;
        let name = intrinsic.indices.io_semantics().map(|io| io.location.to_string()).unwrap_or_default();
        if !name.starts_with(self.names[0]) {
            return Err(format!("the input `{name}`"));
        }
        let form = match intrinsic.op {
            IntrinsicOp::LoadInput => None,
            _ => match &function.instrs[function.defs[intrinsic.srcs[0]].instr] {
                InstrData::Intrinsic(place) => Some((place.op, place.indices.interp_mode() as u8)),
                _ => return Err("inputs at computed barycentrics".to_owned()),
            },
        };
        let count = self.inputs.len();
        let location = *self.inputs.entry((number, form)).or_insert(count);
        if location < INPUTS { Ok((self.names[0], location)) } else { Err("inputs beyond the sixteenth".to_owned()) }
    }

    fn output(&mut self, function: &Function, intrinsic: &Intrinsic) -> Result<(&'static str, usize), String> {
        let number = number(function, intrinsic).ok_or("outputs at a computed location")?;
        let name = intrinsic.indices.io_semantics().map(|io| io.location.to_string()).unwrap_or_default();
        if self.output == Output::Varying && name == POSITION {
            // Its type is that of floats.
            let is_word = function.defs[intrinsic.srcs[0]].bit_size == 32;
            let why = "a position of halves".to_owned();
            return if is_word { Ok((POSITION, CAPTURED_POSITION as usize)) } else { Err(why) };
        }
        if !name.starts_with(self.names[1]) && (self.output != Output::Color || name != "FRAG_RESULT_COLOR") {
            return Err(format!("the output `{name}`"));
        }
        let count = self.outputs.len();
        let location = *self.outputs.entry(number).or_insert(count);
        match self.output {
            Output::Color if location >= COLORS => Err("outputs beyond the eighth".to_owned()),
            Output::Varying if location >= INPUTS => Err("outputs beyond the sixteenth".to_owned()),
            _ => Ok((self.names[1], location)),
        }
    }
}

/// The number of an input or an output.
fn number(function: &Function, intrinsic: &Intrinsic) -> Option<i64> {
    let offset = function.as_const_scalar(*intrinsic.srcs.last()?)?;
    Some(i64::from(intrinsic.indices.base()) + i64::from(offset as u32))
}

/// The colour attachments of a prepared fragment shader.
#[must_use]
pub fn colors(shader: &Shader) -> u32 {
    if shader.stage != Stage::Fragment {
        return 0;
    }
    let function = &shader.entry;
    let stores = function.instrs_in_order().filter_map(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(it) if it.op == IntrinsicOp::StoreOutput => u32::try_from(it.indices.base()).ok(),
        _ => None,
    });
    stores.max().map_or(0, |last| last + 1)
}

/// The environment of a prepared fragment shader: four lanes, on one quad of a framebuffer of 2 × 2 pixels.
///
/// The specification gives interpolation no precision. So the planes of inputs are sums of small integers, all with one
/// power of two as a factor, and the triangle has sides of eight pixels: all that an interpolation may compute of them
/// is exact.
///
/// # Errors
/// If the helper lanes of the environment are not the complement of a rectangle.
pub fn environment(env: &mut Env, shader: &Shader) -> Result<(), String> {
    let random = |key: u64| hash(&[env.seed, 0x7175_6164, key]);
    let covered = match env.helpers {
        Some(helpers) => !helpers & 0xf,
        None if !allows_helpers(shader) => 0xf,
        None => COVERED[(random(0) % 16) as usize],
    };
    if !COVERED.contains(&covered) {
        return Err(format!("helper lanes {:#x}: the covered pixels are no rectangle", !covered & 0xf));
    }
    let is_front = random(1) % 2 == 0;
    let flat = flat_inputs(shader);
    for &location in &flat {
        for component in 4 * location..4 * location + 4 {
            let word = env.varying(component, 0)[0];
            env.varyings.insert(component, [word, 0, 0]);
        }
    }
    for location in (0..INPUTS as u32).filter(|location| !flat.contains(location)) {
        for component in 0..4 {
            let word = hash(&[env.seed, 0x706c_616e, location.into(), component]);
            let factor = (2.0_f32).powi((hash(&[word, 1]) % 9) as i32 - 4);
            let planes = [0, 8, 16].map(|at| ((word >> at & 0x3f) as f32 - 32.0) * factor);
            // A zero has a sign, so a constant is none.
            let planes = match word >> 60 {
                0..=3 => [planes[0] + factor * 64.0, 0.0, 0.0],
                _ => planes.map(|plane| plane + 0.0),
            };
            env.varyings.insert(4 * location + component as u32, planes.map(f32::to_bits));
        }
    }
    (env.lanes, env.helpers) = (Some(0xf), Some(!covered & 0xf));
    let mut set = |name: &str, values: &[u32]| env.system.insert(name.to_owned(), values.to_vec());
    let [zero, one] = [0.0_f32, 1.0].map(f32::to_bits);
    // In sixteenths of a pixel.
    set("FragCoord.0", &[8, 24, 8, 24]);
    set("FragCoord.1", &[8, 8, 24, 24]);
    set("FragCoord.2", &[0.5_f32.to_bits()]);
    set("FragCoord.3", &[one]);
    for place in ["Pixel", "Centroid", "Sample", "PixelLinear", "CentroidLinear", "SampleLinear"] {
        set(&format!("Barycentric{place}.0"), &[zero, one, zero, one]);
        set(&format!("Barycentric{place}.1"), &[zero, zero, one, one]);
    }
    // 0 is the front, and all bits are set of the back.
    set("FrontFace.0", &[if is_front { 0 } else { u32::MAX }]);
    for name in ["PrimitiveId", "SampleId", "ViewIndex"] {
        set(&format!("{name}.0"), &[0]);
    }
    set("SampleMaskIn.0", &[1]);
    for component in 0..2 {
        set(&format!("SamplePos.{component}"), &[0.5_f32.to_bits()]);
    }
    Ok(())
}

/// The locations of inputs that are not interpolated.
fn flat_inputs(shader: &Shader) -> BTreeSet<u32> {
    let function = &shader.entry;
    let loads = function.instrs_in_order().filter_map(|(_, instr)| match &function.instrs[instr] {
        InstrData::Intrinsic(it) if it.op == IntrinsicOp::LoadInput => u32::try_from(it.indices.base()).ok(),
        _ => None,
    });
    loads.collect()
}

/// Returns true if the specification gives all that a shader reads to helper lanes, too.
fn allows_helpers(shader: &Shader) -> bool {
    let function = &shader.entry;
    !reads_subgroup(shader)
        && !function.instrs_in_order().any(|(_, instr)| match &function.instrs[instr] {
            InstrData::Intrinsic(intrinsic) => matches!(
                intrinsic.op,
                IntrinsicOp::LoadSampleMaskIn
                    | IntrinsicOp::LoadBarycentricCentroid
                    | IntrinsicOp::LoadBarycentricSample
            ),
            _ => false,
        })
}

/// The scissor rectangle of the covered pixels: x, y, width and height.
#[must_use]
pub const fn scissor(covered: u64) -> [u32; 4] {
    let (left, right) = (covered & 0b0101 != 0, covered & 0b1010 != 0);
    let (top, bottom) = (covered & 0b0011 != 0, covered & 0b1100 != 0);
    [!left as u32, !top as u32, left as u32 + right as u32, top as u32 + bottom as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scissors_cover_the_pixels() {
        for covered in COVERED {
            let [x, y, width, height] = scissor(covered);
            let is_in = |lane: u32| (x..x + width).contains(&(lane % 2)) && (y..y + height).contains(&(lane / 2));
            let found = (0..QUAD).filter(|&lane| is_in(lane)).fold(0, |mask, lane| mask | 1 << lane);
            assert_eq!(found, covered);
        }
    }
}
