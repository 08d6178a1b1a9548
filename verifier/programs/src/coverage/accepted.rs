//! The cells that a program can have, by selecting a program of one operation for each.
//!
//! The programs are those of [`generator::accepted`](crate::generator::accepted), each changed in the one
//! property of the cell. Cells of compiled programs and of passes cannot be tried one by one: rules list those that are
//! [`impossible`].

use ir3_compiler::arms::Arm;
use ir3_compiler::nir::{
    AluSrc, AluType, Builder, Def, Index, InstrData, Intrinsic, IntrinsicOp, Op, Shader, Stage, TexOp, TexSrcKind,
};
use ir3_compiler::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;

use super::made::Made;
use super::{Cell, Family, alu, impossible, intrinsics, machine, textures};
use crate::generator::accepted::{self, IntrinsicForm, STAGES, WIDTHS, refusal};

/// The status of a cell without a program that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Selection accepts a program that has it.
    Accepted,
    /// No program has it, for this reason.
    Impossible(String),
    /// No rule excludes it.
    Open,
}

/// Returns true if operands of an intrinsic can have a shape, by its row.
pub(super) fn shapes(op: IntrinsicOp, bits: u8, components: u8) -> bool {
    static SHAPES: OnceLock<FxHashSet<(IntrinsicOp, u8, u8)>> = OnceLock::new();
    let target = Target::default();
    let find = || {
        let has_program = |form: &IntrinsicForm| accepted::intrinsic(*form, &target).is_some();
        accepted::forms().filter(has_program).map(|form| (form.op, form.bits, form.components)).collect()
    };
    SHAPES.get_or_init(find).contains(&(op, bits, components))
}

/// Programs of one operation.
pub(super) type Programs<'a> = Box<dyn Iterator<Item = Shader> + 'a>;

/// The operations that a GPU accepts.
pub struct Accepted {
    target: Target,
    operations: FxHashMap<Op, Vec<u8>>,
    forms: FxHashMap<IntrinsicOp, Vec<IntrinsicForm>>,
}

impl Accepted {
    /// Asks selection for a GPU.
    pub fn of(target: &Target) -> Self {
        let mut operations: FxHashMap<Op, Vec<u8>> = FxHashMap::default();
        accepted::operations(target).iter().for_each(|&(op, bits)| operations.entry(op).or_default().push(bits));
        let mut forms: FxHashMap<IntrinsicOp, Vec<IntrinsicForm>> = FxHashMap::default();
        accepted::intrinsics(target).iter().for_each(|&form| forms.entry(form.op).or_default().push(form));
        Self { target: *target, operations, forms }
    }

    /// The status of a cell of a family.
    pub fn status(&self, family: Family, cell: Cell) -> Status {
        let Some(programs) = self.programs(family, cell) else {
            let reason = self.rule(family, cell.0 - family.first());
            return reason.map_or(Status::Open, |reason| Status::Impossible(reason.to_owned()));
        };
        let mut first = None;
        for shader in programs {
            match refusal(&shader, &self.target) {
                None => return Status::Accepted,
                Some(reason) => first = first.or(Some(reason)),
            }
        }
        Status::Impossible(first.unwrap_or_else(|| "select: no form of it is accepted".into()))
    }

    /// The reason of the rule that rules out a cell of a compiled program.
    fn rule(&self, family: Family, number: u32) -> Option<&'static str> {
        match family {
            Family::Ssa | Family::Final => {
                let (opcode, property) = machine::property(number);
                impossible::instruction(family, opcode, property, &self.target, &Made::of(self, &self.target))
            }
            Family::Arms => Arm::every().get(number as usize).and_then(|info| impossible::arm(info.arm, &self.target)),
            _ => None,
        }
    }

    /// Programs of one operation that have a cell, if the cell belongs to an operation: the inputs to selection.
    pub(super) fn programs(&self, family: Family, cell: Cell) -> Option<Programs<'_>> {
        let number = cell.0 - family.first();
        match family {
            Family::Alu => Some(self.alu(number)),
            Family::Intrinsics => self.intrinsic(number),
            Family::Textures => Some(textures_with(number)),
            Family::Control | Family::Ssa | Family::Final | Family::Arms => None,
        }
    }

    fn alu(&self, number: u32) -> Programs<'_> {
        let (op, property) = alu::property(number);
        let known = self.operations.get(&op).map_or(&[][..], Vec::as_slice);
        if let alu::Property::Width(bits) = property {
            return Box::new(accepted::operation(op, bits).into_iter());
        }
        if known.is_empty() {
            return Box::new(WIDTHS.into_iter().filter_map(move |bits| accepted::operation(op, bits)));
        }
        let programs = known.iter().filter_map(move |&bits| accepted::operation(op, bits));
        match property {
            alu::Property::Components(components) => Box::new(programs.map(move |mut shader| {
                let (instr, def) = last(&shader);
                shader.entry.defs[def].num_components = components;
                if let InstrData::Alu(alu) = &mut shader.entry.instrs[instr] {
                    for (src, input) in alu.srcs.iter_mut().zip(op.info().inputs) {
                        if input.components == 0 {
                            let mut swizzle = [0; 16];
                            swizzle[..usize::from(components)].fill(0);
                            *src = AluSrc { def: src.def, swizzle };
                        }
                    }
                }
                shader
            })),
            alu::Property::Form { source, form: 0 } => Box::new(programs.map(move |mut shader| {
                let (instr, _) = last(&shader);
                let InstrData::Alu(alu) = &shader.entry.instrs[instr] else { return shader };
                let old = alu.srcs[source].def;
                let new = constant(&mut shader, old);
                if let InstrData::Alu(alu) = &mut shader.entry.instrs[instr] {
                    alu.srcs[source].def = new;
                }
                shader
            })),
            // Selection reads components one at a time, from any source.
            alu::Property::Form { .. } | alu::Property::Width(_) => Box::new(programs),
        }
    }

    fn intrinsic(&self, number: u32) -> Option<Programs<'_>> {
        let (op, property) = intrinsics::property(number)?;
        let forms = self.forms.get(&op).map_or(&[][..], Vec::as_slice);
        let target = &self.target;
        let tried = move |bits: u8, components: u8| {
            let form = move |stage| IntrinsicForm { op, stage, components, bits };
            STAGES.into_iter().filter_map(move |stage| accepted::intrinsic(form(stage), target))
        };
        if let intrinsics::Property::Shape { bits, components } = property {
            return Some(Box::new(tried(bits, components)));
        }
        if forms.is_empty() {
            let every = WIDTHS.into_iter().flat_map(|bits| (1..=4).map(move |components| (bits, components)));
            return Some(Box::new(every.flat_map(move |(bits, components)| tried(bits, components))));
        }
        let programs = forms.iter().filter_map(move |&form| accepted::intrinsic(form, target));
        match property {
            intrinsics::Property::Form { source, form } => {
                Some(Box::new(programs.filter_map(move |shader| with_form(shader, op, source, form))))
            }
            intrinsics::Property::Value(value) => Some(Box::new(programs.filter_map(move |mut shader| {
                let instr = found(&shader, op)?;
                if let InstrData::Intrinsic(intrinsic) = &mut shader.entry.instrs[instr] {
                    intrinsic.indices.set(value.sample.clone());
                    if let Index::WriteMask(_) = value.sample {
                        let components = shader.entry.defs[intrinsic.srcs[0]].num_components;
                        if components < 2 && value.sample == Index::WriteMask(2) {
                            return None;
                        }
                    }
                }
                Some(shader)
            }))),
            intrinsics::Property::Shape { .. } => None,
        }
    }
}

/// The type of the result of a texture operation.
fn usual(op: TexOp) -> AluType {
    if op.is_query() { AluType::UINT32 } else { AluType::FLOAT32 }
}

/// The sources that a texture operation has at least.
fn plain(op: TexOp) -> Vec<TexSrcKind> {
    use TexSrcKind as S;
    match op {
        TexOp::Txb => vec![S::Coord, S::Bias],
        TexOp::Txl | TexOp::Txf => vec![S::Coord, S::Lod],
        TexOp::Txd => vec![S::Coord, S::Ddx, S::Ddy],
        TexOp::TxfMs => vec![S::Coord, S::MsIndex],
        TexOp::Txs => vec![S::Lod],
        TexOp::QueryLevels | TexOp::TextureSamples => Vec::new(),
        _ => vec![S::Coord],
    }
}

/// Programs of one texture operation: every type with every number and width of coordinates, with and without a level,
/// and with a name of the texture that is a number, a handle, computed, or not the same in all lanes.
pub(super) fn every_texture() -> impl Iterator<Item = Shader> {
    use TexSrcKind as S;
    const NON_UNIFORM: usize = 9;
    let names: [(&[S], usize); 5] = [
        (&[], 0),
        (&[S::TextureHandle], 0),
        (&[S::TextureOffset], 0),
        (&[S::TextureHandle], NON_UNIFORM),
        (&[S::TextureOffset], NON_UNIFORM),
    ];
    let ops = TexOp::ALL.into_iter().flat_map(|op| textures::TYPES.map(|ty| (op, ty)));
    let shapes = ops.flat_map(|it| [(1, 16), (2, 16), (3, 16), (1, 32), (2, 32), (3, 32)].map(|shape| (it, shape)));
    let named = shapes.flat_map(move |it| names.map(|name| (it, name)));
    named.flat_map(|(((op, ty), (count, bits)), (more, flag))| {
        [true, false].map(|has_level| {
            let mut kinds = plain(op);
            kinds.retain(|&kind| has_level || kind != S::Lod);
            kinds.extend(more);
            texture_of(bits, op, ty, count, &kinds, flag)
        })
    })
}

/// Programs of one texture operation that have a property.
fn textures_with(number: u32) -> Programs<'static> {
    use TexSrcKind as S;
    let add = |mut kinds: Vec<S>, more: &[S]| {
        more.iter().for_each(|kind| {
            if !kinds.contains(kind) {
                kinds.push(*kind)
            }
        });
        kinds
    };
    let counts = 1..=3;
    match textures::property(number) {
        textures::Property::Source(op, kind) => {
            Box::new(counts.map(move |count| texture(op, usual(op), count, &add(plain(op), &[kind]), 0)))
        }
        textures::Property::Type(op, ty) => Box::new(counts.map(move |count| texture(op, ty, count, &plain(op), 0))),
        textures::Property::Coordinates(op, count) => {
            Box::new(std::iter::once(texture(op, usual(op), count, &plain(op), 0)))
        }
        textures::Property::Flag(op, flag) => {
            Box::new(counts.map(move |count| texture(op, usual(op), count, &plain(op), flag + 1)))
        }
        textures::Property::Pair(a, b) => {
            let every = TexOp::ALL.into_iter().flat_map(|op| (1..=3).map(move |count| (op, count)));
            Box::new(every.map(move |(op, count)| texture(op, usual(op), count, &add(plain(op), &[a, b]), 0)))
        }
    }
}

/// The last instruction of a program of one operation, and its result.
fn last(shader: &Shader) -> (ir3_compiler::nir::Instr, Def) {
    let (_, instr) = shader.entry.instrs_in_order().last().expect("an instruction");
    (instr, shader.entry.instrs[instr].def().expect("a result"))
}

/// The instruction that a program of one intrinsic is about.
fn found(shader: &Shader, op: IntrinsicOp) -> Option<ir3_compiler::nir::Instr> {
    let is_it = |instr| matches!(&shader.entry.instrs[instr], InstrData::Intrinsic(intrinsic) if intrinsic.op == op);
    shader.entry.instrs_in_order().map(|(_, instr)| instr).filter(|&instr| is_it(instr)).last()
}

/// Adds an instruction at the start of a program; its result has the shape of a value.
fn insert(shader: &mut Shader, like: Def, at: usize, make: impl FnOnce(Def) -> InstrData) -> Def {
    let function = &mut shader.entry;
    let shape = function.defs[like].clone();
    let def = function.new_def_like(&shape);
    let first = function.blocks_in_order().next().expect("a block");
    function.insert(first, at, make(def));
    def
}

fn constant(shader: &mut Shader, like: Def) -> Def {
    let components = usize::from(shader.entry.defs[like].num_components);
    insert(shader, like, 0, |def| InstrData::Const { def, values: smallvec::smallvec![1; components] })
}

/// A program whose source has a form; none if it is a register, which has no other form.
fn with_form(mut shader: Shader, op: IntrinsicOp, source: usize, form: usize) -> Option<Shader> {
    let instr = found(&shader, op)?;
    let InstrData::Intrinsic(intrinsic) = &shader.entry.instrs[instr] else { return None };
    let old = *intrinsic.srcs.get(source)?;
    let is_constant = shader.entry.as_const(old).is_some();
    let is_handle = matches!(
        &shader.entry.instrs[shader.entry.defs[old].instr],
        InstrData::Intrinsic(Intrinsic { op: IntrinsicOp::BindlessResourceIr3, .. })
    );
    let new = match form {
        0 if is_constant => old,
        1 if !is_constant && !is_handle => old,
        0 => constant(&mut shader, old),
        1 => {
            // Another word of the constant file, of the same shape.
            let components = shader.entry.defs[old].num_components;
            let zero = shader.entry.instrs_in_order().next().and_then(|(_, instr)| shader.entry.instrs[instr].def())?;
            let mut b = Builder::new(Stage::Compute);
            let made = b.constant(32, 0);
            b.intrinsic(IntrinsicOp::LoadConstIr3, components, 32, &[made], [Index::Base(8)]);
            let InstrData::Intrinsic(mut load) = b.function().instrs.values().last()?.clone() else { return None };
            load.srcs = smallvec::smallvec![zero];
            insert(&mut shader, old, 1, |def| {
                load.def = Some(def);
                InstrData::Intrinsic(load)
            })
        }
        _ => {
            let mut b = Builder::new(Stage::Compute);
            let made = b.constant(32, 0);
            b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[made], [Index::DescSet(0)]);
            let InstrData::Intrinsic(mut handle) = b.function().instrs.values().last()?.clone() else { return None };
            let zero = shader.entry.instrs_in_order().next().and_then(|(_, instr)| shader.entry.instrs[instr].def())?;
            handle.srcs = smallvec::smallvec![zero];
            insert(&mut shader, old, 1, |def| {
                handle.def = Some(def);
                InstrData::Intrinsic(handle)
            })
        }
    };
    if let InstrData::Intrinsic(intrinsic) = &mut shader.entry.instrs[instr] {
        intrinsic.srcs[source] = new;
    }
    Some(shader)
}

/// A program of one texture operation. The number of a flag is one more than its place; 0 is none.
fn texture(op: TexOp, ty: AluType, coordinates: u8, kinds: &[TexSrcKind], flag: usize) -> Shader {
    texture_of(32, op, ty, coordinates, kinds, flag)
}

/// A texture operation with sources of a width.
fn texture_of(bits: u8, op: TexOp, ty: AluType, coordinates: u8, kinds: &[TexSrcKind], flag: usize) -> Shader {
    use TexSrcKind as S;
    let mut b = Builder::new(Stage::Fragment);
    let zero = b.constant(32, 0);
    let word = b.intrinsic(IntrinsicOp::LoadConstIr3, 1, bits, &[zero], [Index::Base(4)]).expect("a load has a result");
    let vector = b.vec(&vec![word; coordinates.into()]);
    let handle = |b: &mut Builder| {
        b.intrinsic(IntrinsicOp::BindlessResourceIr3, 1, 32, &[zero], [Index::DescSet(0)])
            .expect("a handle is a result")
    };
    let spread = if op == TexOp::Txd { b.vec(&vec![word; coordinates.into()]) } else { vector };
    let srcs: Vec<(S, Def)> = (kinds.iter())
        .map(|&kind| {
            let def = match kind {
                S::Coord => vector,
                S::Ddx | S::Ddy => spread,
                S::Offset => b.vec(&vec![zero; coordinates.into()]),
                S::TextureHandle | S::SamplerHandle => handle(&mut b),
                S::Lod | S::MsIndex if matches!(op, TexOp::Txf | TexOp::Txs | TexOp::TxfMs) => zero,
                _ => word,
            };
            (kind, def)
        })
        .collect();
    let components = match op {
        TexOp::Txs => 2,
        TexOp::Lod => 2,
        TexOp::QueryLevels | TexOp::TextureSamples | TexOp::SamplesIdentical => 1,
        _ => 4,
    };
    b.tex(op, ty, components, |tex| {
        tex.srcs = srcs.into_iter().collect();
        match flag {
            1 | 2 => tex.texture_index = [1, 16][flag - 1],
            3 | 4 => tex.sampler_index = [1, 16][flag - 3],
            5..=8 => tex.component = flag as u8 - 5,
            9 => tex.texture_non_uniform = true,
            10 => tex.sampler_non_uniform = true,
            11 => tex.implicit_lod = true,
            _ => {}
        }
    });
    b.finish()
}
