//! The operations that selection accepts, found by selecting each.
//!
//! For each row of nir's tables and each shape of its operands, a program of that one instruction is selected and
//! decoded. So the lists follow the compiler: operations that selection learns are included automatically. They are
//! found once in a process, when they are first used.

use ir3_compiler::nir::{
    AluSrc, AluType, AtomicOp, BaseType, Builder, Components, Def, DestBits, Format, Index, IndexKind, Indices,
    InterpMode, IntrinsicOp, Op, Shader, Stage, validate,
};
use ir3_compiler::select;
use ir3_compiler::target::{Generation, Target};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::driver;
use super::effects::semantics;
pub use super::pool::WIDTHS;
use ir3_semantics::interp;

/// An intrinsic with the shape of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntrinsicForm {
    /// The intrinsic.
    pub op: IntrinsicOp,
    /// The stage of the shader that it is in.
    pub stage: Stage,
    /// The components of its vector operands; of its result if it has none; 1 if it has no result either.
    pub components: u8,
    /// The width of its vector operands; of its result if it has none; 32 if it has no result either.
    pub bits: u8,
}

/// The stages that selection compiles.
pub const STAGES: [Stage; 3] = [Stage::Vertex, Stage::Fragment, Stage::Compute];

/// Operations of reductions and scans.
pub const REDUCTIONS: &[Op] = &[
    Op::Iadd,
    Op::Imul,
    Op::Imin,
    Op::Umin,
    Op::Imax,
    Op::Umax,
    Op::Iand,
    Op::Ior,
    Op::Ixor,
    Op::Fadd,
    Op::Fmul,
    Op::Fmin,
    Op::Fmax,
];

/// A list for each GPU.
struct Lists<T: 'static>(OnceLock<Mutex<FxHashMap<&'static str, &'static [T]>>>);

impl<T> Lists<T> {
    const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn of(&self, target: &Target, find: impl FnOnce(&Target) -> Vec<T>) -> &'static [T] {
        // Programs for a8xx, for which there is no selection, are for a driver's compiler: they are those for a7xx.
        let target = match target.generation {
            Generation::A8xx => Target::of_generation(Generation::A7xx),
            _ => *target,
        };
        let mut lists = self.0.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        lists.entry(target.name).or_insert_with(|| Box::leak(find(&target).into_boxed_slice()))
    }
}

/// The arithmetic operations that selection accepts for a GPU with any operands, each with a width of its unsized
/// operands (32 if it has none).
pub fn operations(target: &Target) -> &'static [(Op, u8)] {
    static LISTS: Lists<(Op, u8)> = Lists::new();
    LISTS.of(target, |target| {
        let every = Op::ALL.into_iter().flat_map(|op| WIDTHS.map(|bits| (op, bits)));
        let any = every.filter(|&(op, _)| part_bits(op).is_none());
        any.filter(|&(op, bits)| operation(op, bits).is_some_and(|shader| accepts(&shader, target))).collect()
    })
}

/// The operations that SPIR-V has a form for, on a device of a driver.
pub fn driver_operations(target: &Target) -> &'static [(Op, u8)] {
    static LISTS: Lists<(Op, u8)> = Lists::new();
    LISTS.of(target, |target| {
        let has_form = |shader: Shader| driver::has_form(&shader, target);
        let all = operations(target).iter().copied();
        all.filter(|&(op, bits)| operation(op, bits).is_some_and(has_form)).collect()
    })
}

/// The operations on [parts](part_bits) of a value that selection accepts for a GPU, with the widths of the value.
pub fn part_operations(target: &Target) -> &'static [(Op, u8)] {
    static LISTS: Lists<(Op, u8)> = Lists::new();
    LISTS.of(target, |target| {
        let parts = Op::ALL.into_iter().filter_map(|op| part_bits(op).map(|part| (op, part)));
        let wider =
            parts.flat_map(|(op, part)| WIDTHS.into_iter().filter(move |&bits| bits > part).map(move |b| (op, b)));
        wider.filter(|&(op, bits)| operation(op, bits).is_some_and(|shader| accepts(&shader, target))).collect()
    })
}

/// The bits of the parts of a value that an operation extracts or inserts: its second operand is the number of a part,
/// and known.
pub fn part_bits(op: Op) -> Option<u8> {
    match op {
        Op::ExtractU8 | Op::ExtractI8 | Op::InsertU8 => Some(8),
        Op::ExtractU16 | Op::ExtractI16 | Op::InsertU16 => Some(16),
        _ => None,
    }
}

/// Every intrinsic in every stage, with every width and number of components; not all are shapes of its operands.
pub fn forms() -> impl Iterator<Item = IntrinsicForm> {
    IntrinsicOp::ALL.into_iter().flat_map(|op| STAGES.map(|stage| (op, stage))).flat_map(|(op, stage)| {
        let shapes = WIDTHS.into_iter().flat_map(|bits| (1..=4).map(move |components| (bits, components)));
        shapes.map(move |(bits, components)| IntrinsicForm { op, stage, components, bits })
    })
}

/// The forms of intrinsics that selection accepts for a GPU.
pub fn intrinsics(target: &Target) -> &'static [IntrinsicForm] {
    static LISTS: Lists<IntrinsicForm> = Lists::new();
    LISTS.of(target, |target| {
        forms().filter(|&form| intrinsic(form, target).is_some_and(|shader| accepts(&shader, target))).collect()
    })
}

/// Returns true if a program is valid, is selected for the GPU, and has a meaning.
pub fn accepts(shader: &Shader, target: &Target) -> bool {
    refusal(shader, target).is_none()
}

/// Why a program is not [accepted](accepts), without the place; none if it is.
pub fn refusal(shader: &Shader, target: &Target) -> Option<String> {
    if let Err(errors) = validate(shader) {
        return Some(errors.first().map_or_else(String::new, |error| format!("nir: {}", error.problem.found())));
    }
    match (select::run(shader, target), interp::nir::Decoded::new(shader)) {
        (Err(error), _) => Some(format!("select: {}", error.reason)),
        (Ok(_), Err(error)) => Some(format!("interpreter: {}", error.what)),
        (Ok(_), Ok(_)) => None,
    }
}

/// A program of one operation whose unsized operands have `bits`; none if that is no width of its operands, or if none
/// is unsized and the width is not 32, which is used for it.
pub fn operation(op: Op, bits: u8) -> Option<Shader> {
    let info = op.info();
    let unsized_operands = || info.inputs.iter().filter(|input| input.ty.size == 0);
    if unsized_operands().next().is_none() && bits != 32 {
        return None;
    }
    if unsized_operands().any(|input| !input.ty.base.widths().contains(&bits)) {
        return None;
    }
    let mut probe = Probe::new(Stage::Compute)?;
    let components = if info.output.components == 0 { 1 } else { info.output.components };
    let mut srcs = SmallVec::<[AluSrc; 4]>::new();
    for (i, input) in info.inputs.iter().enumerate() {
        let width = input.ty.width_or(bits);
        srcs.push(match part_bits(op) {
            Some(_) if i == 1 => AluSrc::scalar(probe.b.constant(width, 0), 0),
            _ => AluSrc::identity(probe.vector(width, info.source_components(i, components))),
        });
    }
    probe.b.alu_swizzled(op, components, &srcs);
    Some(probe.b.finish())
}

/// A program with a single intrinsic; `None` if the intrinsic has no operands of this shape.
pub fn intrinsic(form: IntrinsicForm, target: &Target) -> Option<Shader> {
    let IntrinsicForm { op, stage, components, bits } = form;
    let info = op.info();
    let has_vector = info.srcs.contains(&Components::Vector) || info.dest == Some(Components::Vector);
    let shape_fits = match (has_vector, info.dest) {
        (true, _) => true,
        (false, Some(Components::Fixed(count))) => components == count,
        (false, _) => components == 1,
    };
    let result_bits = match (info.dest, is_test(op)) {
        (None, _) => bits,
        (Some(_), true) => 1,
        (Some(_), false) => bits,
    };
    let width_fits = match info.dest_bits {
        DestBits::OneOf(widths) => widths.contains(&result_bits),
        // The table leaves these open.
        _ if is_barycentric(op) || op == IntrinsicOp::BindlessResourceIr3 => bits == 32,
        _ if info.dest.is_none() && !has_vector => bits == 32,
        _ => has_vector || !is_test(op) || bits == 1,
    };
    if !shape_fits || !width_fits || !has_stage(op, stage) || op == IntrinsicOp::DeclReg {
        return None;
    }
    let mut probe = Probe::new(stage)?;
    let fills = op == IntrinsicOp::StoreConstIr3 && target.generation >= Generation::A6xx;
    if fills || op == IntrinsicOp::PreambleEndIr3 {
        let start = probe.b.intrinsic(IntrinsicOp::PreambleStartIr3, 1, 1, &[], [])?;
        probe.b.begin_if(start);
    }
    let mut srcs = SmallVec::<[Def; 5]>::new();
    for (i, shape) in info.srcs.iter().enumerate() {
        srcs.push(match (shape, source_width(op, i, bits)) {
            _ if array_source(op) == Some(i) => probe.array(components, bits)?,
            _ if i == 0 && op.name().starts_with("bindless_image") => probe.handle()?,
            (Components::Vector, _) => probe.vector(bits, components),
            (&Components::Fixed(count), Some(width)) => probe.vector(width, count),
            (&Components::Fixed(count), None) if count > 1 => probe.vector(32, count),
            // Offsets and numbers of resources: some have to be constants.
            _ => probe.zero,
        });
    }
    probe.b.intrinsic(op, components, result_bits, &srcs, indices(op, components, bits));
    if probe.b.depth() != 0 {
        if op != IntrinsicOp::PreambleEndIr3 {
            probe.b.intrinsic(IntrinsicOp::PreambleEndIr3, 0, 0, &[], []);
        }
        probe.b.end_if();
    }
    Some(probe.b.finish())
}

/// Returns true if the result is barycentric coordinates.
fn is_barycentric(op: IntrinsicOp) -> bool {
    op == IntrinsicOp::LoadPerspCenterRhwIr3 || op.name().starts_with("load_barycentric")
}

/// Words of the names of intrinsics that only one stage has.
const STAGE_WORDS: &[(Stage, &[&str])] = &[
    (Stage::Vertex, &["vertex", "instance", "draw", "per_view"]),
    (
        Stage::Fragment,
        &[
            "frag",
            "sample",
            "front_face",
            "helper",
            "barycentric",
            "interpolated",
            "persp",
            "ddx",
            "ddy",
            "demote",
            "terminate",
            "clip_plane",
        ],
    ),
    (
        Stage::Compute,
        &["workgroup", "local_invocation", "subgroup_id", "subgroup_size", "work_dim", "kernel", "shared"],
    ),
];

/// Returns true if shaders of a stage have the intrinsic. Selection compiles some of them in any stage.
pub fn has_stage(op: IntrinsicOp, stage: Stage) -> bool {
    let only = STAGE_WORDS.iter().find(|(_, words)| words.iter().any(|word| op.name().contains(word)));
    only.is_none_or(|&(only, _)| only == stage)
}

/// Returns true if the result is a boolean, for any operands.
fn is_test(op: IntrinsicOp) -> bool {
    use IntrinsicOp::*;
    matches!(op, VoteAny | VoteAll | VoteIeq | VoteFeq | Elect | ElectAnyIr3 | InverseBallot | PreambleStartIr3)
}

/// The source that names a local array.
fn array_source(op: IntrinsicOp) -> Option<usize> {
    use IntrinsicOp::*;
    match op {
        LoadReg | LoadRegIndirect => Some(0),
        StoreReg | StoreRegIndirect => Some(1),
        _ => None,
    }
}

/// The width of a source that is data or a condition; none for an address, an index or a coordinate.
fn source_width(op: IntrinsicOp, index: usize, bits: u8) -> Option<u8> {
    use IntrinsicOp::*;
    let last = op.info().srcs.len() - 1;
    match (op, index) {
        (VoteAny | VoteAll | Ballot | BallotRelaxed | DemoteIf | TerminateIf, 0) | (ReadInvocationCondIr3, 1) => {
            Some(1)
        }
        (SsboAtomicIr3 | SsboAtomicSwapIr3, i) => (i >= 2 && i < last).then_some(bits),
        (_, i) if op.is_atomic() && i >= first_data(op) => Some(bits),
        (BrcstActiveIr3 | ReduceClustersIr3 | InclusiveScanClustersIr3 | ExclusiveScanClustersIr3, _) => Some(bits),
        _ => None,
    }
}

/// The first data source of an atomic.
fn first_data(op: IntrinsicOp) -> usize {
    let image = op.info().indices.contains(&IndexKind::ImageDim);
    let buffer = op.info().srcs.first() == Some(&Components::Any);
    if image { 3 } else { 1 + usize::from(buffer) }
}

/// Indices with which selection accepts the intrinsic if it accepts it at all.
fn indices(op: IntrinsicOp, components: u8, bits: u8) -> Indices {
    let mut out = Indices::new();
    let ty = AluType::new(if bits < 16 { BaseType::Uint } else { BaseType::Float }, bits);
    for &kind in op.info().indices {
        out.set(match kind {
            IndexKind::WriteMask => Index::WriteMask((1 << components) - 1),
            IndexKind::ReductionOp => Index::ReductionOp(Op::Iand),
            IndexKind::AtomicOp if op.name().contains("_swap") => Index::AtomicOp(AtomicOp::Cmpxchg),
            IndexKind::AtomicOp => Index::AtomicOp(AtomicOp::Umax),
            IndexKind::Format => Index::Format(Format::R32Uint),
            IndexKind::SrcType => Index::SrcType(ty),
            IndexKind::DestType => Index::DestType(ty),
            IndexKind::InterpMode => Index::InterpMode(InterpMode::Smooth),
            IndexKind::Range => Index::Range(1),
            IndexKind::ClusterSize if op == IntrinsicOp::BrcstActiveIr3 => Index::ClusterSize(8),
            IndexKind::IoSemantics => Index::IoSemantics(Some(semantics("VARYING_SLOT_VAR0"))),
            _ => Index::default_of(kind),
        });
    }
    out
}

/// A program that is being built.
struct Probe {
    b: Builder,
    zero: Def,
    word: Def,
}

impl Probe {
    /// The start of a program: a word whose value no pass can determine.
    fn new(stage: Stage) -> Option<Self> {
        let mut b = Builder::new(stage);
        let zero = b.constant(32, 0);
        let word = b.intrinsic(IntrinsicOp::LoadConstIr3, 1, 32, &[zero], [Index::Base(4)])?;
        Some(Self { b, zero, word })
    }

    fn scalar(&mut self, bits: u8) -> Def {
        match bits {
            1 => self.b.alu(Op::Ine, &[self.word, self.zero]),
            8 => self.b.alu(Op::U2u8, &[self.word]),
            16 => self.b.alu(Op::U2u16, &[self.word]),
            32 => self.word,
            _ => self.b.alu(Op::Pack64_2x32Split, &[self.word, self.zero]),
        }
    }

    fn vector(&mut self, bits: u8, components: u8) -> Def {
        let scalar = self.scalar(bits);
        self.b.vec(&vec![scalar; components.into()])
    }

    fn handle(&mut self) -> Option<Def> {
        self.b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[self.zero], [Index::DescSet(0)])
    }

    fn array(&mut self, components: u8, bits: u8) -> Option<Def> {
        // An access at a base of some elements is inside.
        let declaration =
            [Index::NumComponents(components), Index::NumArrayElems(8), Index::BitSize(bits), Index::Divergent(true)];
        self.b.intrinsic(IntrinsicOp::DeclReg, 1, 32, &[], declaration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::compilation::compile;
    use ir3_compiler::pipeline::Options;

    fn target(gpu: &str) -> Target {
        Target::by_name(gpu).expect("a GPU")
    }

    /// No later stage refuses an operation that selection accepts.
    #[test]
    fn what_selection_accepts_is_compiled() {
        let mut refused = Vec::new();
        for gpu in ["a306", "a420", "a540", "a618", "a660", "a750"] {
            let target = target(gpu);
            let compiles = |shader: Option<Shader>| {
                let shader = shader.expect("a program that was accepted");
                compile(&shader, &target, &Options::default(), &mut |_, _| {}).err()
            };
            for &(op, bits) in operations(&target) {
                refused
                    .extend(compiles(operation(op, bits)).map(|error| format!("{gpu}, {op} of {bits} bits: {error}")));
            }
            for &form in intrinsics(&target) {
                refused.extend(compiles(intrinsic(form, &target)).map(|error| format!("{gpu}, {form:?}: {error}")));
            }
        }
        assert!(refused.is_empty(), "{refused:#?}");
    }

    #[test]
    fn the_lists_are_what_selection_accepts() {
        let (a306, a540, a660) = (target("a306"), target("a540"), target("a660"));
        assert!(operations(&a660).contains(&(Op::Iadd, 64)));
        assert!(!operations(&a660).contains(&(Op::Fadd, 64)), "the machine has no doubles");
        let has = |target: &Target, op, bits, components| {
            let shape = |form: &&IntrinsicForm| form.op == op && form.bits == bits && form.components == components;
            intrinsics(target).iter().any(|form| shape(&form))
        };
        assert!(has(&a660, IntrinsicOp::LoadSsboIr3, 16, 3) && !has(&a306, IntrinsicOp::LoadSsboIr3, 32, 1));
        assert!(has(&a660, IntrinsicOp::LoadUboVec4, 64, 2) && !has(&a660, IntrinsicOp::LoadUboVec4, 64, 3));
        assert!(has(&a660, IntrinsicOp::QuadSwapVertical, 8, 4) && !has(&a540, IntrinsicOp::QuadSwapVertical, 32, 1));
        assert!(has(&a660, IntrinsicOp::VoteIeq, 64, 2) && has(&a660, IntrinsicOp::SsboAtomicSwapIr3, 64, 1));
        assert!(has(&a660, IntrinsicOp::StoreRegIndirect, 16, 4) && has(&a660, IntrinsicOp::StoreConstIr3, 32, 4));
        assert!(
            !intrinsics(&a660).iter().any(|form| form.op == IntrinsicOp::LoadSsbo),
            "its form with ir3's offsets only"
        );
    }

    /// No campaign generates operations that are compiled but have no reference semantics: a bug in them would go
    /// unnoticed.
    #[test]
    fn what_selection_accepts_has_a_meaning() {
        // Atomics on images of 64-bit texels: the model of images has texels of words.
        let known = |name: &str| name.contains("ImageAtomic") && name.ends_with("64 bits");
        let mut wrong = Vec::new();
        for gpu in ["a306", "a420", "a540", "a618", "a660", "a750"] {
            let target = Target::by_name(gpu).expect("a GPU");
            let operations = Op::ALL.into_iter().flat_map(|op| WIDTHS.map(|bits| (op, bits)));
            let operations = operations
                .filter_map(|(op, bits)| Some((format!("{} of {bits} bits", op.name()), operation(op, bits)?)));
            let intrinsics = forms().filter_map(|form| {
                let IntrinsicForm { op, stage, components, bits } = form;
                let name = format!("{op:?} in {stage:?} shaders, {components} components of {bits} bits");
                Some((name, intrinsic(form, &target)?))
            });
            for (name, shader) in operations.chain(intrinsics) {
                if validate(&shader).is_ok()
                    && select::run(&shader, &target).is_ok()
                    && let Err(error) = interp::nir::Decoded::new(&shader)
                    && !known(&name)
                {
                    wrong.push(format!("{gpu}: {name}: {}", error.what));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
