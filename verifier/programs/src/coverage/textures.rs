//! Texture operations: an operation and a kind of source, a type of the result, a number of coordinates, a flag; and
//! pairs of sources.

use ir3_compiler::nir::{AluType, BaseType, Function, Tex, TexOp, TexSrcKind};

pub(super) const TYPES: [AluType; 6] = [
    AluType::new(BaseType::Float, 16),
    AluType::new(BaseType::Float, 32),
    AluType::new(BaseType::Int, 16),
    AluType::new(BaseType::Int, 32),
    AluType::new(BaseType::Uint, 16),
    AluType::new(BaseType::Uint, 32),
];

const FLAGS: [&str; 11] = [
    "texture above 0",
    "texture above 15",
    "sampler above 0",
    "sampler above 15",
    "component 0",
    "component 1",
    "component 2",
    "component 3",
    "a texture that differs between lanes",
    "a sampler that differs between lanes",
    "a lod of its own",
];

const COORDINATES: u32 = 4;
const KINDS: u32 = TexSrcKind::ALL.len() as u32;
const FIRST_TYPE: u32 = KINDS;
const FIRST_COORDINATES: u32 = FIRST_TYPE + TYPES.len() as u32;
const FIRST_FLAG: u32 = FIRST_COORDINATES + COORDINATES;
const STRIDE: u32 = FIRST_FLAG + FLAGS.len() as u32;
const FIRST_PAIR: u32 = TexOp::ALL.len() as u32 * STRIDE;

pub(super) const SIZE: u32 = FIRST_PAIR + KINDS * KINDS;

/// The property that a cell number encodes.
pub(super) enum Property {
    Source(TexOp, TexSrcKind),
    Type(TexOp, AluType),
    Coordinates(TexOp, u8),
    Flag(TexOp, usize),
    Pair(TexSrcKind, TexSrcKind),
}

pub(super) fn property(number: u32) -> Property {
    if let Some(pair) = number.checked_sub(FIRST_PAIR) {
        return Property::Pair(TexSrcKind::ALL[(pair / KINDS) as usize], TexSrcKind::ALL[(pair % KINDS) as usize]);
    }
    let (op, rest) = (TexOp::ALL[(number / STRIDE) as usize], number % STRIDE);
    if rest < FIRST_TYPE {
        Property::Source(op, TexSrcKind::ALL[rest as usize])
    } else if rest < FIRST_COORDINATES {
        Property::Type(op, TYPES[(rest - FIRST_TYPE) as usize])
    } else if rest < FIRST_FLAG {
        Property::Coordinates(op, (rest - FIRST_COORDINATES) as u8 + 1)
    } else {
        Property::Flag(op, (rest - FIRST_FLAG) as usize)
    }
}

/// The name of a cell; none if it is none: a flag of an operation without a sampler, a gather or a lod.
pub(super) fn name(number: u32) -> Option<String> {
    Some(match property(number) {
        Property::Source(op, kind) => format!("{op}, source {kind}"),
        Property::Type(op, ty) => format!("{op}, {ty}"),
        Property::Coordinates(op, count) => {
            op.takes(TexSrcKind::Coord).then(|| format!("{op}, {count} coordinates"))?
        }
        Property::Flag(op, flag) => {
            let has = match flag {
                2 | 3 | 9 => op.needs_sampler(),
                4..=7 | 10 => op == TexOp::Tg4,
                _ => true,
            };
            has.then(|| format!("{op}, {}", FLAGS[flag]))?
        }
        Property::Pair(a, b) => (a < b).then(|| format!("sources {a} and {b}"))?,
    })
}

pub(super) fn visit(function: &Function, tex: &Tex, mut visit: impl FnMut(u32)) {
    let first = tex.op as u32 * STRIDE;
    for (i, &(kind, def)) in tex.srcs.iter().enumerate() {
        visit(first + kind as u32);
        for &(other, _) in &tex.srcs[..i] {
            visit(FIRST_PAIR + kind.min(other) as u32 * KINDS + kind.max(other) as u32);
        }
        if kind == TexSrcKind::Coord {
            let count = u32::from(function.defs[def].num_components).clamp(1, COORDINATES);
            visit(first + FIRST_COORDINATES + count - 1);
        }
    }
    if let Some(ty) = TYPES.iter().position(|&ty| ty == tex.dest_type) {
        visit(first + FIRST_TYPE + ty as u32);
    }
    let is_gather = tex.op == TexOp::Tg4;
    let samples = tex.op.needs_sampler();
    let flags = [
        tex.texture_index > 0,
        tex.texture_index > 15,
        samples && tex.sampler_index > 0,
        samples && tex.sampler_index > 15,
        is_gather && tex.component == 0,
        is_gather && tex.component == 1,
        is_gather && tex.component == 2,
        is_gather && tex.component == 3,
        tex.texture_non_uniform,
        samples && tex.sampler_non_uniform,
        is_gather && tex.implicit_lod,
    ];
    (0..).zip(flags).filter(|&(_, is_set)| is_set).for_each(|(flag, _)| visit(first + FIRST_FLAG + flag));
}
