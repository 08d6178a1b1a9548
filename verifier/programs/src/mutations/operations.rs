//! Mutations of operations.

use super::{MutationSite, data};
use ir3_compiler::ir3::{
    Attrs, Category, Condition, InstrFlags, Opcode, Program, RegFile, Round, Src, Type, WriteMask,
};

pub(super) fn condition(program: &mut Program, site: &MutationSite) -> bool {
    use Condition::*;
    let Attrs::Compare(condition) = &mut data(program, site).attrs else { return false };
    let Some(other) = site.other(&[Lt, Le, Gt, Ge, Eq, Ne], *condition) else { return false };
    *condition = other;
    true
}

pub(super) fn saturation(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    let data = data(program, site);
    let takes =
        matches!(data.opcode, AddF | MulF | MinF | MaxF | MadF16 | MadF32 | AbsnegF | FloorF | CeilF | RndneF | TruncF)
            || data.opcode.category() == Category::Sfu;
    if takes {
        data.flags ^= InstrFlags::SAT;
    }
    takes
}

pub(super) fn operation(program: &mut Program, site: &MutationSite) -> bool {
    use Opcode::*;
    let data = data(program, site);
    const GROUPS: &[&[Opcode]] = &[
        &[AddF, MinF, MaxF, MulF],
        &[FloorF, CeilF, RndneF, TruncF, RndazF, SignF],
        &[AddU, SubU, MinU, MaxU, MinS, MaxS, MulU24, MulS24, MullU],
        &[AndB, OrB, XorB],
        &[ShlB, ShrB, AshrB],
        &[CmpsS, CmpsU],
        &[MadU16, MadS16],
        &[MadshM16, MadU24, MadS24],
        &[ClzS, ClzB],
        &[BfrevB, NotB],
        &[Rcp, Rsq, Log2, Exp2, Sin, Cos, Sqrt],
        &[Br, Bany, Ball],
        &[AnyMacro, AllMacro],
        &[ReadFirstMacro, ReadGetlastMacro],
        &[Getone, Getlast],
        &[AtomicAdd, AtomicXchg, AtomicMin, AtomicMax, AtomicAnd, AtomicOr, AtomicXor],
        &[AtomicBAdd, AtomicBXchg, AtomicBMin, AtomicBMax, AtomicBAnd, AtomicBOr, AtomicBXor],
        &[AtomicGAdd, AtomicGXchg, AtomicGMin, AtomicGMax, AtomicGAnd, AtomicGOr, AtomicGXor],
        &[Gather4r, Gather4g, Gather4b, Gather4a],
        &[Samb, Saml],
        &[Dsx, Dsy],
    ];
    let Some(group) = GROUPS.iter().find(|group| group.contains(&data.opcode)) else { return false };
    let Some(other) = site.other(group, data.opcode) else { return false };
    data.opcode = other;
    true
}

/// Replaces the result of an operation by a constant.
pub(super) fn constant_result(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let alu = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu);
    let [dst] = data.dsts[..] else { return false };
    if !alu || dst.class.file != RegFile::General || dst.mask != WriteMask::SCALAR {
        return false;
    }
    let half = dst.class.half;
    let ty = if half { Type::U16 } else { Type::U32 };
    data.opcode = Opcode::Mov;
    data.flags = InstrFlags::empty();
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data.srcs.clear();
    data.srcs.push(Src::immediate(if half { 0x1357 } else { 0x1357_9bdf }, half));
    true
}

const HALF: &[Type] = &[Type::F16, Type::U16, Type::S16];

const FULL: &[Type] = &[Type::F32, Type::U32, Type::S32];

pub(super) fn like(ty: Type) -> &'static [Type] {
    match ty {
        Type::F16 | Type::U16 | Type::S16 => HALF,
        Type::F32 | Type::U32 | Type::S32 => FULL,
        _ => &[],
    }
}

pub(super) fn move_types(program: &mut Program, site: &MutationSite) -> bool {
    let Attrs::Move { src, dst, .. } = &mut data(program, site).attrs else { return false };
    // Changing one type of a move between types of one size may leave it a plain move.
    let which = if site.coin() { src } else { dst };
    let Some(other) = site.other(like(*which), *which) else { return false };
    *which = other;
    true
}

pub(super) fn rounding(program: &mut Program, site: &MutationSite) -> bool {
    let Attrs::Move { src, dst, round } = &mut data(program, site).attrs else { return false };
    if !src.is_float() || src == dst || (*src, *dst) == (Type::F16, Type::F32) {
        return false;
    }
    let Some(other) = site.other(&[Round::Default, Round::Even, Round::PosInf, Round::NegInf], *round) else {
        return false;
    };
    *round = other;
    true
}

/// Replaces an operation by a move of one of its sources.
pub(super) fn left_out(program: &mut Program, site: &MutationSite) -> bool {
    let data = data(program, site);
    let alu = matches!(data.opcode.category(), Category::Alu2 | Category::Alu3 | Category::Sfu);
    let [dst] = data.dsts[..] else { return false };
    if !alu || dst.class.file != RegFile::General || dst.mask != WriteMask::SCALAR {
        return false;
    }
    let same: Vec<Src> =
        data.srcs.iter().copied().filter(|src| src.class == dst.class && src.value().is_some()).collect();
    let same =
        if same.is_empty() { data.srcs.iter().copied().filter(|src| src.class == dst.class).collect() } else { same };
    let Some(mut src) = site.pick(&same) else { return false };
    src.mods = ir3_compiler::ir3::Mods::empty();
    let ty = if dst.class.half { Type::U16 } else { Type::U32 };
    data.opcode = Opcode::Mov;
    data.flags = InstrFlags::empty();
    data.attrs = Attrs::Move { src: ty, dst: ty, round: Round::Default };
    data.srcs.clear();
    data.srcs.push(src);
    true
}
