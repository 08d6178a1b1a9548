//! Instructions that only move what there is: both sides may have their own.
//!
//! Moves between registers of one width, of numbers and of words of the constant file, parallel copies, collects, splits,
//! swaps (`swz`, or three `xor.b`), one half of a full register. Spills and reloads, which need to know what the base
//! register holds, are the matter of `walk`.

use super::facts::{Literal, Origin};
use super::location::{Locations, Piece, Problem, pieces};
use crate::semantics::exchange::exchange;
use ir3_compiler::ir3::{Attrs, Dst, Instr, InstrData, Opcode, Place, RegClass, RegFile, Round, Src, SrcOperand, Type};
use smallvec::SmallVec;

/// Pieces that are written at once, each with what it gets.
pub type Copies = SmallVec<[(Piece, Origin); 8]>;

/// What an instruction, or several in a row, copy.
pub struct Moved {
    /// The copies.
    pub copies: Copies,
    /// How many instructions that are.
    pub instrs: usize,
}

/// The copies that the instructions at the beginning of a list make, if they only copy, and from registers to registers.
pub fn moved(locations: &Locations<'_>, list: &[Instr]) -> Option<Result<Moved, Problem>> {
    let data = &locations.program.instrs[*list.first()?];
    let one = |copies: Result<Copies, Problem>| Some(copies.map(|copies| Moved { copies, instrs: 1 }));
    match data.opcode {
        Opcode::ParallelCopy => one(parallel(locations, data)),
        Opcode::Collect => one(collect(locations, data)),
        Opcode::Split => one(split(locations, data)),
        Opcode::Mov if is_plain(data) && data.srcs.len() == 1 && !is_relative(data) => {
            let kind = raw_move(data)?;
            one(mov(locations, data, kind))
        }
        Opcode::Swz if is_plain(data) => {
            matches!(raw_move(data)?, Raw::Same).then_some(())?;
            one(both(locations, data))
        }
        Opcode::ShrB => high_half(locations, data).map(|copies| copies.map(|copies| Moved { copies, instrs: 1 })),
        Opcode::XorB => exchanged(locations, list).map(|copies| copies.map(|copies| Moved { copies, instrs: 3 })),
        _ => None,
    }
}

/// Component `k` of a source, piece by piece, for a destination of a class.
fn read(
    locations: &Locations<'_>,
    src: &Src,
    k: u32,
    to: RegClass,
    named: bool,
) -> Result<SmallVec<[Origin; 2]>, Problem> {
    if !src.mods.is_empty() {
        return Err("a modifier of a copy".to_owned());
    }
    let width = pieces(to) as usize;
    let all: SmallVec<[Origin; 2]> = match &src.operand {
        SrcOperand::Place(place) => {
            let of_one_lane = to.file == RegFile::Shared && src.class.file != RegFile::Shared;
            let pieces = locations.component(place, src.class, k, named)?;
            pieces.map(|piece| if of_one_lane { Origin::OfOneLane(piece) } else { Origin::Piece(piece) }).collect()
        }
        SrcOperand::Immediate(bits) => [*bits as u16, (*bits >> 16) as u16]
            .map(|bits| Origin::Literal(Literal::Bits(bits)))
            .into_iter()
            .take(width)
            .collect(),
        SrcOperand::Const(word) => {
            let word = word + k as u16;
            [false, true].map(|high| Origin::Literal(Literal::Const(word, high))).into_iter().take(width).collect()
        }
        SrcOperand::Undef => SmallVec::from_elem(Origin::Undefined, width),
        SrcOperand::ConstRelative(_) => return Err("a relative operand of a copy".to_owned()),
    };
    if all.len() < width { Err("a copy from half registers to full ones".to_owned()) } else { Ok(all) }
}

fn write(
    locations: &Locations<'_>,
    dst: &Dst,
    k: u32,
    from: &[Origin],
    named: bool,
    copies: &mut Copies,
) -> Result<(), Problem> {
    let to = locations.component(&dst.place, dst.class, k, named)?;
    copies.extend(to.zip(from.iter().copied()));
    Ok(())
}

fn parallel(locations: &Locations<'_>, data: &InstrData) -> Result<Copies, Problem> {
    if data.dsts.len() != data.srcs.len() {
        return Err("as many destinations as sources".to_owned());
    }
    let mut copies = Copies::new();
    for (dst, src) in data.dsts.iter().zip(&data.srcs) {
        whole(locations, dst, src, &mut copies)?;
    }
    Ok(copies)
}

/// A whole value, or a whole array, as phis and parallel copies move it.
pub fn whole(locations: &Locations<'_>, dst: &Dst, src: &Src, copies: &mut Copies) -> Result<(), Problem> {
    if let Place::Array(to) = &dst.place {
        let to = locations.array(to, dst.class)?;
        let Some(Place::Array(from)) = src.place() else {
            return Err("an array copied from what is no array".to_owned());
        };
        let from = locations.array(from, src.class)?;
        copies.extend(to.zip(from.map(Origin::Piece)));
        return Ok(());
    }
    for k in dst.mask.components() {
        let from = read(locations, src, k, dst.class, false)?;
        write(locations, dst, k, &from, false, copies)?;
    }
    Ok(())
}

fn collect(locations: &Locations<'_>, data: &InstrData) -> Result<Copies, Problem> {
    let [dst] = &data.dsts[..] else { return Err("one destination".to_owned()) };
    let mut copies = Copies::new();
    for (k, src) in data.srcs.iter().enumerate() {
        let from = read(locations, src, 0, dst.class, false)?;
        write(locations, dst, k as u32, &from, false, &mut copies)?;
    }
    Ok(copies)
}

fn split(locations: &Locations<'_>, data: &InstrData) -> Result<Copies, Problem> {
    let ([dst], [src], Attrs::Split { offset }) = (&data.dsts[..], &data.srcs[..], &data.attrs) else {
        return Err("one destination, one source and a component".to_owned());
    };
    let mut copies = Copies::new();
    for k in dst.mask.components() {
        let from = read(locations, src, u32::from(*offset) + k, dst.class, false)?;
        write(locations, dst, k, &from, false, &mut copies)?;
    }
    Ok(copies)
}

/// What a move does to the bits.
enum Raw {
    /// Nothing.
    Same,
    /// The low half is taken.
    Low,
}

fn is_plain(data: &InstrData) -> bool {
    data.flags.is_empty() && data.repeat == 0 && data.srcs.iter().all(|src| src.mods.is_empty())
}

/// Whether a move's destination or source is found by an address register.
fn is_relative(data: &InstrData) -> bool {
    let is = |place: &Place| match place {
        Place::Relative { .. } => true,
        Place::Array(access) => access.relative,
        _ => false,
    };
    data.dsts.iter().any(|dst| is(&dst.place))
        || data
            .srcs
            .iter()
            .any(|src| src.place().is_some_and(is) || matches!(src.operand, SrcOperand::ConstRelative(_)))
}

fn raw_move(data: &InstrData) -> Option<Raw> {
    use Type::*;
    let Attrs::Move { src, dst, round: Round::Default } = data.attrs else { return None };
    match (src, dst) {
        (U32, U32) | (S32, S32) | (U16, U16) | (S16, S16) => Some(Raw::Same),
        (U32, U16) | (S32, S16) => Some(Raw::Low),
        _ => None,
    }
}

fn mov(locations: &Locations<'_>, data: &InstrData, kind: Raw) -> Result<Copies, Problem> {
    let ([dst], [src]) = (&data.dsts[..], &data.srcs[..]) else {
        return Err("one destination and one source".to_owned());
    };
    let named = true;
    let mut copies = Copies::new();
    if let (Raw::Low, SrcOperand::Place(_)) = (&kind, &src.operand)
        && src.class.half
    {
        return Err("the low half of a half register".to_owned());
    }
    let from = read(locations, src, 0, dst.class, named)?;
    write(locations, dst, 0, &from, named, &mut copies)?;
    Ok(copies)
}

/// Two moves at once.
fn both(locations: &Locations<'_>, data: &InstrData) -> Result<Copies, Problem> {
    let mut copies = Copies::new();
    for (dst, src) in data.dsts.iter().zip(&data.srcs) {
        let from = read(locations, src, 0, dst.class, true)?;
        write(locations, dst, 0, &from, true, &mut copies)?;
    }
    Ok(copies)
}

/// `shr.b` by 16 of a full register to a half one.
fn high_half(locations: &Locations<'_>, data: &InstrData) -> Option<Result<Copies, Problem>> {
    let ([dst], [src, by]) = (&data.dsts[..], &data.srcs[..]) else { return None };
    let plain = is_plain(data) && by.operand == SrcOperand::Immediate(16) && dst.class.half && !src.class.half;
    let place = src.place().filter(|place| plain && !matches!(place, Place::Relative { .. }))?;
    if matches!(place, Place::Array(access) if access.relative) || dst.class.file != src.class.file {
        return None;
    }
    let copies = || {
        let from = locations.component(place, src.class, 0, true)?;
        let to = locations.component(&dst.place, dst.class, 0, true)?;
        Ok(Copies::from_slice(&[(to.start, Origin::Piece(from.start + 1))]))
    };
    Some(copies())
}

/// Three `xor.b` that exchange two registers.
fn exchanged(locations: &Locations<'_>, list: &[Instr]) -> Option<Result<Copies, Problem>> {
    let (a, b) = exchange(locations.program, list)?;
    let plain = list[..3].iter().all(|&instr| is_plain(&locations.program.instrs[instr]));
    if !plain || a.class != b.class || a.class.file == RegFile::Address {
        return None;
    }
    let copies = || {
        let pieces_a = locations.component(&a.place, a.class, 0, true)?;
        let pieces_b = locations.component(&b.place, b.class, 0, true)?;
        let to_b = pieces_b.clone().zip(pieces_a.clone().map(Origin::Piece));
        Ok(pieces_a.zip(pieces_b.map(Origin::Piece)).chain(to_b).collect())
    };
    Some(copies())
}
