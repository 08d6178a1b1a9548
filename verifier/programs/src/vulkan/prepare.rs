//! Programs whose meaning the specification of Vulkan decides.
//!
//! A program becomes a compute shader of one wave, a fragment shader of one quad ([`fragments`](super::fragments)), or
//! a vertex shader of the vertices of one wave ([`vertices`](super::vertices)), without accesses beyond its
//! buffers and images ([`texels`](super::texels)), and without races if each lane has a part of each buffer for itself.
//! The changes are changes of the program: the interpreter runs, and the device gets, what is returned.
//!
//! - An access has its offset modulo a power of two, and no base. With [`Layout::Private`], the part of the lane is
//!   added.
//! - A computed number of a descriptor is taken modulo the elements of the array of descriptors.
//! - Operations on floats are exact, which forbids contraction; modes of rounding that the device has are in the
//!   header.
//! - Operations whose results the specification leaves open for all operands are replaced, too: nothing that depends on
//!   them could be compared.
//! - Where the device may flush denormals, operands of operations on floats can be flushed by the program
//!   ([`flush`](super::flush)).
//! - What has no form in SPIR-V, needs a capability that the device lacks, or has a meaning here that the specification
//!   does not give it (memory by address) is replaced by a move of an operand, and named.

use super::flush::flush;
use super::insert::{Inserter, LaneNumbers, lane_numbers};
use super::{fragments, texels, vertices};
use crate::generator::replace;
use crate::spirv::{Modes, Module, descriptor_operand};
use crate::vulkan::Properties;
use cranelift_entity::SecondaryMap;
use ir3_compiler::nir::{
    AtomicOp, Block, Def, FloatControls, Function, Index, IndexKind, Instr, InstrData, Intrinsic, IntrinsicOp, Op,
    Shader, Stage,
};
use ir3_semantics::interp::nir::{Decoded, has_error, is_open};
use std::collections::BTreeSet;

/// The lanes of a workgroup without operations on subgroups: those of a wave.
const LANES: u32 = 64;
/// The bytes of a buffer that a program addresses, and that it may access beyond the last address: a vector of sixteen
/// of 64 bits.
const BUFFER_BYTES: [u32; 2] = [4096, 512];
const BEYOND: u32 = 128;
/// The same of shared memory.
const SHARED_BYTES: [u32; 2] = [8192, 64];
/// Vectors of a uniform buffer that a program addresses.
const UNIFORM_VECTORS: u32 = 256;
/// Words of the constant file that a computed number addresses.
const CONSTANT_WORDS: u32 = 512;
/// Descriptors in an array.
pub(super) const DESCRIPTORS: u32 = 8;
/// The most times that instructions are replaced: an instruction in place of another may need one more.
const ROUNDS: usize = 6;

/// The parts of buffers that lanes access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All lanes access one part.
    Shared,
    /// Each lane has a part of its own.
    Private,
}

impl Layout {
    /// Bytes that are addressed, and the distance of the parts of two lanes, of lengths by layout.
    const fn part(self, bytes: [u32; 2]) -> (u32, u32) {
        match self {
            Self::Shared => (bytes[0], 0),
            Self::Private => (bytes[1], bytes[1] + BEYOND),
        }
    }

    /// Bytes of each storage buffer, for the lanes of all workgroups.
    #[must_use]
    pub const fn buffer_bytes(self, lanes: u32) -> u32 {
        let (bytes, stride) = self.part(BUFFER_BYTES);
        bytes + BEYOND + lanes * stride
    }

    /// Texels in a row of each image.
    #[must_use]
    pub const fn image_width(self, lanes: u32) -> u32 {
        texels::image_width(matches!(self, Self::Shared), lanes)
    }
}

/// The choices of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// The parts of buffers that lanes access.
    pub layout: Layout,
    /// Operands that are denormals become zeros before operations on floats.
    pub flushes: bool,
}

/// A program for a device.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The program.
    pub shader: Shader,
    /// The operations that were replaced.
    pub replaced: BTreeSet<String>,
}

/// The workgroups that a shader is dispatched to: two where lanes read their number or its workgroup's.
#[must_use]
pub fn groups_of(shader: &Shader) -> u32 {
    let function = &shader.entry;
    let reads = |instr: Instr| match &function.instrs[instr] {
        InstrData::Intrinsic(it) => matches!(it.op, IntrinsicOp::LoadWorkgroupId | IntrinsicOp::LoadNumWorkgroups),
        _ => false,
    };
    let is_one = shader.stage != Stage::Compute || !function.instrs_in_order().any(|(_, instr)| reads(instr));
    if is_one { 1 } else { 2 }
}

/// The lanes of a prepared program, or of one of its workgroups.
#[must_use]
pub fn lanes_of(shader: &Shader) -> u32 {
    match shader.stage {
        Stage::Fragment => fragments::QUAD,
        Stage::Vertex => LANES,
        _ => shader.info.workgroup_size.unwrap_or([LANES, 1, 1]).iter().product(),
    }
}

/// Prepares a compute, vertex or fragment shader for a device.
///
/// # Errors
/// Names what of the program has no form for a device.
pub fn prepare(shader: &Shader, properties: &Properties, preparation: Preparation) -> Result<Prepared, String> {
    let Preparation { layout, flushes } = preparation;
    let stage = shader.stage;
    match stage {
        Stage::Compute => {}
        Stage::Fragment if properties.draws => {}
        Stage::Fragment => return Err("a fragment shader: the device does not draw".to_owned()),
        Stage::Vertex if properties.captures => {}
        Stage::Vertex => return Err("a vertex shader: the device has no transform feedback".to_owned()),
        stage => return Err(format!("a shader of the stage {stage}")),
    }
    let mut shader = shader.clone();
    let mut replaced = BTreeSet::new();
    let function = &mut shader.entry;
    let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
    for &(block, instr) in &all {
        if let Some(name) = undecided(function, &function.instrs[instr], stage) {
            replace(function, block, instr);
            replaced.insert(name);
        }
        let had_modifiers = match &mut function.instrs[instr] {
            InstrData::Alu(alu) => {
                alu.exact = true;
                false
            }
            InstrData::Intrinsic(intrinsic) => take_modifiers(intrinsic),
            _ => false,
        };
        if had_modifiers {
            replaced.insert("modifiers of floats in local arrays".to_owned());
        }
    }
    match stage {
        Stage::Fragment => fragments::locate(&mut shader.entry, &mut replaced),
        Stage::Vertex => vertices::locate(&mut shader.entry, &mut replaced),
        _ => {}
    }
    settle(&mut shader, &properties.lacking(), &mut replaced)?;
    let decoded = Decoded::new(&shader).map_err(|why| format!("the interpreter does not support {}", why.what))?;
    let sees_others = decoded.sees_subgroups() || decoded.has_implicit_derivatives();
    if sees_others && !properties.reconverges {
        return Err("operations on subgroups: the device has no maximal reconvergence".to_owned());
    }
    let lanes = match sees_others {
        _ if stage == Stage::Fragment => fragments::QUAD,
        _ if stage == Stage::Vertex => LANES,
        true => properties.subgroup_size.clamp(1, LANES),
        false => LANES,
    };
    let info = &mut shader.info;
    if stage == Stage::Compute {
        info.workgroup_size = Some([lanes, 1, 1]);
        info.workgroup_size_variable = false;
    }
    for (bits, even) in [16, 32, 64].into_iter().zip(properties.floats.rounds_to_even) {
        if even {
            // A header that has other modes is refused where the program is translated.
            let _ = FloatControls::require_even(info, bits);
        }
    }
    if flushes {
        flush(&mut shader.entry);
    }
    let info = &mut shader.info;
    if stage == Stage::Compute {
        let (bytes, stride) = layout.part(SHARED_BYTES);
        info.shared_size = bytes + BEYOND + lanes * stride;
    }
    let scratch = info.scratch_size;
    let function = &mut shader.entry;
    let is_private = layout == Layout::Private;
    let lane = if is_private { lane_numbers(function, stage, lanes) } else { None };
    Bounds { layout, scratch, lane }.bound(function);
    texels::bound(function, stage, lane.map(|lane| lane.of_all), &mut replaced);
    // A descriptor has one shape, that of its first access.
    settle(&mut shader, &properties.lacking(), &mut replaced)?;
    Ok(Prepared { shader, replaced })
}

/// Replaces what has no form.
fn settle(
    shader: &mut Shader,
    lacking: &[rspirv::spirv::Capability],
    names: &mut BTreeSet<String>,
) -> Result<(), String> {
    for _ in 0..ROUNDS {
        let modes = Modes { compares_bits: true, ..Modes::default() };
        let missing = Module::missing_for(shader, lacking, modes).map_err(|error| error.to_string())?;
        if missing.is_empty() {
            return Ok(());
        }
        let mut blocks: SecondaryMap<Instr, Option<Block>> = SecondaryMap::new();
        for (block, instr) in shader.entry.instrs_in_order() {
            blocks[instr] = Some(block);
        }
        for (instr, why) in missing {
            if let Some(block) = blocks[instr] {
                names.insert(why.to_string());
                replace(&mut shader.entry, block, instr);
            }
        }
    }
    Err("an operation without a form in SPIR-V, whatever it is replaced by".to_owned())
}

/// The name of an operation whose result the specification does not give, or that has another meaning here.
fn undecided(function: &Function, data: &InstrData, stage: Stage) -> Option<String> {
    use IntrinsicOp as I;
    let intrinsic = match data {
        InstrData::Tex(tex) => return texels::undecided_texture(function, tex),
        InstrData::Alu(alu) if is_open(alu.op) || has_error(alu.op) && !only_upper_bits_are_read(function, alu.def) => {
            return Some(format!("`{}`, which is not exact", alu.op.name()));
        }
        InstrData::Intrinsic(intrinsic) => intrinsic,
        _ => return None,
    };
    let name = intrinsic.op.name();
    if stage == Stage::Vertex
        && let Some(name) = vertices::undecided(intrinsic)
    {
        return Some(name);
    }
    if name.contains("image") {
        let is_open = intrinsic.op.is_atomic() && is_float_atomic(intrinsic);
        let of_floats = is_open.then(|| "atomics of floats".to_owned());
        return of_floats.or_else(|| texels::undecided_image(function, intrinsic));
    }
    if stage == Stage::Fragment
        && let Some(name) = fragments::undecided(function, intrinsic)
    {
        return Some(name);
    }
    let has_op = intrinsic.indices.get(IndexKind::ReductionOp).is_some();
    Some(match intrinsic.op {
        _ if name.contains("global") && name != "load_global_invocation_id" => "memory by address".to_owned(),
        // Their order is open, and so is the rounding of a sum.
        _ if has_op && intrinsic.indices.reduction_op().name().starts_with('f') => "reductions of floats".to_owned(),
        // Denormals may be flushed before they are compared.
        I::VoteFeq => "votes on floats".to_owned(),
        // Bits of lanes that a subgroup of the device does not have.
        I::LoadSubgroupGeMask | I::LoadSubgroupGtMask => format!("`{}`", intrinsic.op),
        _ if intrinsic.op.is_atomic() && is_float_atomic(intrinsic) => "atomics of floats".to_owned(),
        I::CopyUboToUniformIr3 | I::StoreConstIr3 | I::PreambleStartIr3 | I::PreambleEndIr3 => "preambles".to_owned(),
        _ => return None,
    })
}

/// Returns true if all readers of a value shift bits with an error out of it: those of results with an error agree in
/// the others, for most operands.
fn only_upper_bits_are_read(function: &Function, def: Def) -> bool {
    let least = function.defs[def].bit_size.into();
    function.instrs_in_order().all(|(_, instr)| {
        let data = &function.instrs[instr];
        let mut reads = false;
        data.for_each_src(|src| reads |= src == def);
        let shift = match data {
            InstrData::Alu(alu) if alu.op == Op::Ushr && alu.srcs[1].def != def => function.as_const(alu.srcs[1].def),
            _ => None,
        };
        !reads || shift.is_some_and(|counts| counts.iter().all(|&count| count < least && 3 * count >= least))
    })
}

/// Removes the modifiers of an access to a local array, which are operations on floats. Returns true if there was one.
fn take_modifiers(intrinsic: &mut Intrinsic) -> bool {
    let indices = &mut intrinsic.indices;
    let kinds = [
        (IndexKind::LegacyFabs, Index::LegacyFabs(false), indices.legacy_fabs()),
        (IndexKind::LegacyFneg, Index::LegacyFneg(false), indices.legacy_fneg()),
        (IndexKind::LegacyFsat, Index::LegacyFsat(false), indices.legacy_fsat()),
    ];
    let mut found = false;
    for (kind, none, is_set) in kinds {
        if is_set && indices.get(kind).is_some() {
            indices.set(none);
            found = true;
        }
    }
    found
}

fn is_float_atomic(intrinsic: &Intrinsic) -> bool {
    matches!(intrinsic.indices.atomic_op(), AtomicOp::Fadd | AtomicOp::Fmin | AtomicOp::Fmax | AtomicOp::Fcmpxchg)
}

/// The bounds of accesses.
struct Bounds {
    layout: Layout,
    /// Bytes of scratch memory of a lane.
    scratch: u32,
    /// The numbers of the lane, if it has a part of its own.
    lane: Option<LaneNumbers>,
}

/// Every constant stays as it is.
const ANY: u32 = u32::MAX;

/// The operand of an access that is bounded.
struct Bounded {
    operand: usize,
    /// The mask that the operand is taken with.
    mask: u32,
    /// The distance between the parts of two lanes.
    stride: u32,
    /// The largest constant that stays as it is, or [`ANY`].
    most: u32,
}

impl Bounds {
    fn bound(&self, function: &mut Function) {
        let all: Vec<(Block, Instr)> = function.instrs_in_order().collect();
        for (block, instr) in all {
            let InstrData::Intrinsic(intrinsic) = &function.instrs[instr] else { continue };
            let descriptor = match intrinsic.op {
                IntrinsicOp::BindlessResourceIr3 => Some(0),
                op => descriptor_operand(op),
            };
            let bounded = self.bounded(function, intrinsic);
            let mut before = Inserter::before(function, block, instr);
            if let Some(operand) = descriptor {
                before.mask(instr, &Bounded { operand, mask: DESCRIPTORS - 1, stride: 0, most: ANY }, None);
            }
            if let Some(bounded) = bounded {
                let is_shared = before.is_shared(instr);
                let lane = self.lane.map(|lane| if is_shared { lane.of_group } else { lane.of_all });
                before.mask(instr, &bounded, lane);
                if let InstrData::Intrinsic(intrinsic) = &mut before.function.instrs[instr]
                    && intrinsic.op != IntrinsicOp::LoadConstIr3
                    && intrinsic.indices.get(IndexKind::Base).is_some()
                {
                    intrinsic.indices.set(Index::Base(0));
                }
            }
        }
    }

    fn bounded(&self, function: &Function, intrinsic: &Intrinsic) -> Option<Bounded> {
        use IntrinsicOp as I;
        let data = match intrinsic.def {
            Some(def) => def,
            None => *intrinsic.srcs.first()?,
        };
        let size = u32::from(function.defs[data].bit_size).div_ceil(8);
        let last = intrinsic.srcs.len().checked_sub(1)?;
        // An access that is not aligned is undefined.
        let of = |operand: usize, bytes: u32, stride: u32, unit: u32| {
            let most = if stride == 0 { bytes / unit - 1 } else { 0 };
            Bounded { operand, mask: (bytes / unit - 1) & !(size.div_ceil(unit) - 1), stride: stride / unit, most }
        };
        let part = |lengths: [u32; 2]| self.layout.part(lengths);
        Some(match intrinsic.op {
            I::LoadSsboIr3 | I::StoreSsboIr3 | I::SsboAtomicIr3 | I::SsboAtomicSwapIr3 => {
                let (bytes, stride) = part(BUFFER_BYTES);
                // Elements; those of 64 bits are counted in quarters.
                of(last, bytes, stride, if size == 8 { 2 } else { size })
            }
            I::LoadShared | I::SharedAtomic | I::SharedAtomicSwap => {
                let (bytes, stride) = part(SHARED_BYTES);
                of(0, bytes, stride, 1)
            }
            I::StoreShared => {
                let (bytes, stride) = part(SHARED_BYTES);
                of(1, bytes, stride, 1)
            }
            I::LoadScratch | I::StoreScratch => {
                let vector = u32::from(function.defs[data].num_components) * size;
                let room = (self.scratch + 1).saturating_sub(vector).max(1);
                of(usize::from(intrinsic.op == I::StoreScratch), 1 << room.ilog2(), 0, 1)
            }
            I::LoadUboVec4 => Bounded { operand: 1, mask: UNIFORM_VECTORS - 1, stride: 0, most: UNIFORM_VECTORS - 1 },
            I::LoadConstIr3 => Bounded { operand: 0, mask: CONSTANT_WORDS - 1, stride: 0, most: CONSTANT_WORDS - 1 },
            I::LoadRegIndirect | I::StoreRegIndirect => {
                let at = usize::from(intrinsic.op == I::StoreRegIndirect);
                let declared = match &function.instrs[function.defs[intrinsic.srcs[at]].instr] {
                    InstrData::Intrinsic(declared) => declared.indices.num_array_elems(),
                    _ => 1,
                };
                let mask = (1 << declared.max(1).ilog2()) - 1;
                Bounded { operand: at + 1, mask, stride: 0, most: declared.saturating_sub(1) }
            }
            _ => return None,
        })
    }
}

impl Inserter<'_> {
    /// Returns true for accesses to the memory of a workgroup.
    fn is_shared(&self, instr: Instr) -> bool {
        match &self.function.instrs[instr] {
            InstrData::Intrinsic(intrinsic) => intrinsic.op.name().contains("shared"),
            _ => false,
        }
    }

    /// Bounds an operand of the instruction.
    fn mask(&mut self, instr: Instr, bounded: &Bounded, lane: Option<Def>) {
        let InstrData::Intrinsic(intrinsic) = &self.function.instrs[instr] else { return };
        let Some(&operand) = intrinsic.srcs.get(bounded.operand) else { return };
        let is_handle = matches!(&self.function.instrs[self.function.defs[operand].instr],
            InstrData::Intrinsic(handle) if handle.op == IntrinsicOp::BindlessResourceIr3);
        if is_handle {
            return;
        }
        let known = self.function.as_const_scalar(operand).and_then(|value| u32::try_from(value).ok());
        let stays =
            known.is_some_and(|value| bounded.most == ANY || value <= bounded.most && value & !bounded.mask == 0);
        let mut new = operand;
        if !stays {
            let mask = self.constant(bounded.mask);
            new = self.alu(Op::Iand, [operand, mask]);
        }
        if let Some(lane) = lane.filter(|_| bounded.stride != 0) {
            let stride = self.constant(bounded.stride);
            let part = self.alu(Op::Imul, [lane, stride]);
            new = self.alu(Op::Iadd, [new, part]);
        }
        if let InstrData::Intrinsic(intrinsic) = &mut self.function.instrs[instr] {
            intrinsic.srcs[bounded.operand] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{Features, Profile, from_seed};
    use ir3_compiler::nir::validate;
    use ir3_semantics::environment::device::{DeviceRules, FloatModes};
    use ir3_semantics::environment::env::{Env, first_lanes};
    use ir3_semantics::environment::memory::{AccessKind, Space, TracedEvent};
    use ir3_semantics::interp::Scratch;
    use rspirv::spirv::Capability;
    use rustc_hash::FxHashMap;

    fn properties() -> Properties {
        let floats = FloatModes { rounds_to_even: [true; 3], ..FloatModes::default() };
        let all = (0..7000).filter(|&number| Capability::from_u32(number).is_some_and(|it| it != Capability::Float64));
        Properties {
            subgroup_size: 8,
            floats,
            capabilities: all.collect(),
            reconverges: true,
            draws: true,
            captures: true,
        }
    }

    /// Prepared programs are valid, access no word beyond their buffers, and lanes with parts of their own access no
    /// other part.
    #[test]
    fn prepared_programs_stay_in_their_buffers() {
        let features = Features { global: false, ..Features::ALL.for_driver() };
        let (mut accesses, mut texels, mut quads, mut vertex_count, mut replaced) = (0, 0, 0, 0, BTreeSet::new());
        for (seed, profile) in (0..300).zip(Profile::ALL.into_iter().cycle()) {
            let layout = if seed % 2 == 0 { Layout::Shared } else { Layout::Private };
            let shader = from_seed(seed, profile, features).shader;
            let preparation = Preparation { layout, flushes: seed % 3 == 0 };
            let Ok(prepared) = prepare(&shader, &properties(), preparation) else { continue };
            assert_eq!(validate(&prepared.shader), Ok(()), "{seed}");
            replaced.extend(prepared.replaced);
            let lanes = lanes_of(&prepared.shader);
            let groups = groups_of(&prepared.shader);
            let decoded = Decoded::new(&prepared.shader).expect("a program that can be run");
            let (buffer_bytes, image_width) = (layout.buffer_bytes(lanes * groups), layout.image_width(lanes * groups));
            let rules = DeviceRules { buffer_bytes, image_width, modes: None };
            let env = Env { device: Some(rules), lanes: Some(first_lanes(lanes)), ..Env::from_seed(seed) };
            let mut env = Env { aliases: Some(ir3_semantics::environment::aliases::Aliasing::Disjoint), ..env };
            for component in 0..3 {
                let (last, count) = if component == 0 { (groups - 1, groups) } else { (0, 1) };
                env.system.insert(format!("WorkgroupId.{component}"), vec![last]);
                env.system.insert(format!("BaseWorkgroupId.{component}"), vec![0]);
                env.system.insert(format!("NumWorkgroups.{component}"), vec![count]);
            }
            match shader.stage {
                Stage::Fragment => {
                    fragments::environment(&mut env, &prepared.shader).expect("an environment");
                    quads += 1;
                }
                Stage::Vertex => {
                    vertices::environment(&mut env, &prepared.shader);
                    vertex_count += 1;
                }
                _ => {}
            }
            let (_, trace) = Scratch::default().traced(|scratch| decoded.run(&env, env.fuel(), scratch));
            let mut owners: FxHashMap<(String, u32), u8> = FxHashMap::default();
            for event in &trace.events {
                let TracedEvent::Access(access) = event else { continue };
                let end = match access.array.space {
                    Space::Ssbo => rules.buffer_bytes,
                    // Four rows of four layers, of four words.
                    Space::Image => rules.image_width * 4 * 4 * 16,
                    _ => prepared.shader.info.shared_size,
                };
                for word in &access.words {
                    accesses += 1;
                    texels += u32::from(access.array.space == Space::Image);
                    assert!(word.address < end.into(), "{seed}: {} of {}", word.address, access.array);
                    assert_eq!(u64::from(word.word), word.address / 4, "{seed}");
                    let owner = *owners.entry((access.array.to_string(), word.word)).or_insert(word.lane);
                    let is_own = owner == word.lane || layout == Layout::Shared || access.kind == AccessKind::Load;
                    assert!(is_own, "{seed}: lanes {owner} and {} at {}", word.lane, word.address);
                }
            }
        }
        assert!(
            accesses > 10_000 && texels > 100 && quads > 30 && vertex_count > 20,
            "{accesses}, {texels}, {quads}, {vertex_count}"
        );
        for name in ["`fsin`, which is not exact", "textures with `comparator`", "images of dimension Cube"] {
            assert!(replaced.contains(name), "{replaced:?}");
        }
    }

    #[test]
    fn subgroups_have_the_size_of_the_device() {
        let text = "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nnum_ssbos: 1\nsubgroup_size: 1\n\
                    decl_function main () (entrypoint)\n\nimpl main {\n    block b0:\n    32 %0 = load_const (0x00000000)\n    \
                    32 %1 = @last_invocation\n    @store_ssbo_ir3 (%1, %0, %0, %0) (base=0, wrmask=x)\n    block b1:\n}\n";
        let shader = ir3_compiler::nir::read(text).expect("a program");
        let lanes = |properties: &Properties| {
            let preparation = Preparation { layout: Layout::Private, flushes: false };
            prepare(&shader, properties, preparation).map(|prepared| lanes_of(&prepared.shader))
        };
        assert_eq!(lanes(&properties()), Ok(8));
        let error = lanes(&Properties { reconverges: false, ..properties() }).expect_err("no order of lanes");
        assert!(error.contains("maximal reconvergence"), "{error}");
    }
}
