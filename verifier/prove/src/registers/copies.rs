//! Instructions that only copy values: either program may have its own.
//!
//! Moves between registers of one width, of immediates and of words of the constant file, parallel copies, collects,
//! splits, swaps (`swz`, or three `xor.b`), and extracts of half of a full register. Spills and reloads are handled by
//! `walk`, as they depend on the value of the base register.

use super::facts::{CopySource, Literal};
use super::location::{LocationProblem, Locations, Piece, pieces};
use ir3_compiler::ir3::{Attrs, Dst, Instr, InstrData, Opcode, Place, RegClass, RegFile, Round, Src, SrcOperand, Type};
use ir3_semantics::environment::exchange::exchange;
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::SmallVec;

/// Parallel copies: each piece that is written, with its source.
pub type Copies = Vec<(Piece, CopySource)>;

/// Appends the copies of the instructions at the beginning of `list`, if they only copy, and from registers to
/// registers. Returns the number of instructions.
pub fn append_moves(
    locations: &Locations<'_>,
    list: &[Instr],
    copies: &mut Copies,
) -> Option<Result<usize, LocationProblem>> {
    let data = &locations.program.instrs[*list.first()?];
    let (done, instrs) = match data.opcode {
        Opcode::ParallelCopy => (parallel(locations, data, copies), 1),
        Opcode::Collect => (collect(locations, data, copies), 1),
        Opcode::Split => (split(locations, data, copies), 1),
        Opcode::Mov if is_plain(data) && data.srcs.len() == 1 && !data.is_relative() => {
            let kind = raw_move(data)?;
            (mov(locations, data, kind, copies), 1)
        }
        Opcode::Swz if is_plain(data) && matches!(raw_move(data)?, MoveEffect::Same) => {
            (both(locations, data, copies), 1)
        }
        Opcode::ShrB => (high_half(locations, data, copies)?, 1),
        Opcode::XorB => (exchanged(locations, list, copies)?, 3),
        _ => return None,
    };
    Some(done.map(|()| instrs))
}

/// Returns true if no two copies have the same destination.
pub fn are_disjoint(copies: &Copies) -> bool {
    if copies.is_sorted_by(|a, b| a.0 < b.0) {
        return true;
    }
    let mut to: SmallVec<[Piece; 64]> = copies.iter().map(|&(to, _)| to).collect();
    to.sort_unstable();
    to.is_sorted_by(|a, b| a < b)
}

/// The pieces of component `k` of a source, as a destination of the class reads them.
fn read(
    locations: &Locations<'_>,
    src: &Src,
    k: u32,
    to: RegClass,
    named: bool,
) -> Result<SmallVec<[CopySource; 2]>, LocationProblem> {
    if !src.mods.is_empty() && !left_out(Guard::RegistersCopyModifiers) {
        return Err("a modifier of a copy".to_owned());
    }
    let width = pieces(to) as usize;
    let all: SmallVec<[CopySource; 2]> = match &src.operand {
        SrcOperand::Place(place) => locations.component(place, src.class, k, named)?.map(CopySource::Piece).collect(),
        SrcOperand::Immediate(bits) => [*bits as u16, (*bits >> 16) as u16]
            .map(|bits| CopySource::Literal(Literal::Bits(bits)))
            .into_iter()
            .take(width)
            .collect(),
        SrcOperand::Const(word) => {
            let word = word + k as u16;
            [false, true].map(|high| CopySource::Literal(Literal::Const(word, high))).into_iter().take(width).collect()
        }
        SrcOperand::Undef => SmallVec::from_elem(CopySource::Undefined, width),
        SrcOperand::ConstRelative(_) => return Err("a relative operand of a copy".to_owned()),
    };
    if all.len() < width { Err("a copy from half registers to full ones".to_owned()) } else { Ok(all) }
}

fn write(
    locations: &Locations<'_>,
    dst: &Dst,
    k: u32,
    from: &[CopySource],
    named: bool,
    copies: &mut Copies,
) -> Result<(), LocationProblem> {
    let to = locations.component(&dst.place, dst.class, k, named)?;
    copies.extend(to.zip(from).map(|(to, from)| match *from {
        CopySource::Piece(from) if locations.is_shared(to) && !locations.is_shared(from) => {
            (to, CopySource::OfOneLane(from))
        }
        from => (to, from),
    }));
    Ok(())
}

fn parallel(locations: &Locations<'_>, data: &InstrData, copies: &mut Copies) -> Result<(), LocationProblem> {
    if data.dsts.len() != data.srcs.len() {
        return Err("as many destinations as sources".to_owned());
    }
    for (dst, src) in data.dsts.iter().zip(&data.srcs) {
        append_whole_value(locations, dst, src, copies)?;
    }
    Ok(())
}

/// Appends the copies of a whole value, or a whole array, as phis and parallel copies move it.
///
/// # Errors
/// If an array is copied from something else, or an operand is relative, of another width than its place, or outside of
/// its file.
pub fn append_whole_value(
    locations: &Locations<'_>,
    dst: &Dst,
    src: &Src,
    copies: &mut Copies,
) -> Result<(), LocationProblem> {
    if let Place::Array(to) = &dst.place {
        let to = locations.array(to, dst.class)?;
        let Some(Place::Array(from)) = src.place() else {
            return Err("an array copied from an operand that is no array".to_owned());
        };
        let from = locations.array(from, src.class)?;
        copies.extend(to.zip(from.map(CopySource::Piece)));
        return Ok(());
    }
    for k in dst.mask.components() {
        let from = read(locations, src, k, dst.class, false)?;
        write(locations, dst, k, &from, false, copies)?;
    }
    Ok(())
}

fn collect(locations: &Locations<'_>, data: &InstrData, copies: &mut Copies) -> Result<(), LocationProblem> {
    let [dst] = &data.dsts[..] else { return Err("one destination".to_owned()) };
    for (k, src) in data.srcs.iter().enumerate() {
        let from = read(locations, src, 0, dst.class, false)?;
        write(locations, dst, k as u32, &from, false, copies)?;
    }
    Ok(())
}

fn split(locations: &Locations<'_>, data: &InstrData, copies: &mut Copies) -> Result<(), LocationProblem> {
    let ([dst], [src], Attrs::Split { offset }) = (&data.dsts[..], &data.srcs[..], &data.attrs) else {
        return Err("one destination, one source and a component".to_owned());
    };
    for k in dst.mask.components() {
        let from = read(locations, src, u32::from(*offset) + k, dst.class, false)?;
        write(locations, dst, k, &from, false, copies)?;
    }
    Ok(())
}

/// The effect of a move on the bits.
enum MoveEffect {
    /// The move does not change the bits.
    Same,
    /// Takes the low half.
    Low,
}

fn is_plain(data: &InstrData) -> bool {
    // The number of repetitions of `swz` counts its moves.
    data.flags.is_empty()
        && (data.repeat == 0 || data.opcode == Opcode::Swz)
        && data.srcs.iter().all(|src| src.mods.is_empty() || left_out(Guard::RegistersCopyModifiers))
}

fn raw_move(data: &InstrData) -> Option<MoveEffect> {
    use Type::*;
    // A predicate receives the comparison of its source with 0.
    let is_predicate = |class: RegClass| class.file == RegFile::Predicate;
    if data.dsts.iter().any(|dst| is_predicate(dst.class)) && !data.srcs.iter().all(|src| is_predicate(src.class)) {
        return None;
    }
    let Attrs::Move { src, dst, round: Round::Default } = data.attrs else { return None };
    match (src, dst) {
        (U32, U32) | (S32, S32) | (U16, U16) | (S16, S16) => Some(MoveEffect::Same),
        (U32, U16) | (S32, S16) => Some(MoveEffect::Low),
        _ => left_out(Guard::RegistersMoveTypes).then_some(MoveEffect::Same),
    }
}

fn mov(
    locations: &Locations<'_>,
    data: &InstrData,
    kind: MoveEffect,
    copies: &mut Copies,
) -> Result<(), LocationProblem> {
    let ([dst], [src]) = (&data.dsts[..], &data.srcs[..]) else {
        return Err("one destination and one source".to_owned());
    };
    let named = true;
    if let (MoveEffect::Low, SrcOperand::Place(_)) = (&kind, &src.operand)
        && src.class.half
    {
        return Err("the low half of a half register".to_owned());
    }
    let from = read(locations, src, 0, dst.class, named)?;
    write(locations, dst, 0, &from, named, copies)?;
    Ok(())
}

/// Appends the two moves of one instruction.
fn both(locations: &Locations<'_>, data: &InstrData, copies: &mut Copies) -> Result<(), LocationProblem> {
    for (dst, src) in data.dsts.iter().zip(&data.srcs) {
        let from = read(locations, src, 0, dst.class, true)?;
        write(locations, dst, 0, &from, true, copies)?;
    }
    Ok(())
}

/// Appends the copy of `shr.b` by 16 of a full register to a half one.
fn high_half(locations: &Locations<'_>, data: &InstrData, copies: &mut Copies) -> Option<Result<(), LocationProblem>> {
    let ([dst], [src, by]) = (&data.dsts[..], &data.srcs[..]) else { return None };
    let plain = is_plain(data) && by.operand == SrcOperand::Immediate(16) && dst.class.half && !src.class.half;
    let place = src.place().filter(|place| plain && !matches!(place, Place::Relative { .. }))?;
    if matches!(place, Place::Array(access) if access.relative) || dst.class.file != src.class.file {
        return None;
    }
    let pieces =
        || Ok([locations.component(place, src.class, 0, true)?, locations.component(&dst.place, dst.class, 0, true)?]);
    Some(pieces().map(|[from, to]| copies.push((to.start, CopySource::Piece(from.start + 1)))))
}

/// Appends the copies of three `xor.b` that exchange two registers.
fn exchanged(locations: &Locations<'_>, list: &[Instr], copies: &mut Copies) -> Option<Result<(), LocationProblem>> {
    let [first, second, third, ..] = *list else { return None };
    let steps = [first, second, third].map(|instr| &locations.program.instrs[instr]);
    let (a, b) = exchange(steps)?;
    let plain = steps.into_iter().all(is_plain);
    if !plain || a.class != b.class || a.class.file == RegFile::Address {
        return None;
    }
    let pieces = [a, b].map(|dst| locations.component(&dst.place, dst.class, 0, true));
    let [Ok(a), Ok(b)] = pieces else { return pieces.into_iter().find_map(Result::err).map(Err) };
    copies.extend(a.clone().zip(b.clone().map(CopySource::Piece)).chain(b.zip(a.map(CopySource::Piece))));
    Some(Ok(()))
}
