//! Masks of the machine's registers, with one bit per half register.
//!
//! A full register is two bits. Half registers share these bits if the files are merged, else they have a range of
//! their own. The table of times has the same layout. (Mesa's scoreboard has the merged layout on every GPU,
//! `get_ready_slot`: with split files it also waits for the register of the same number in the other file, but also
//! forgets it when another unit writes this one.)

use ir3_compiler::ir3::{PhysReg, Place, RegClass, RegFile, WriteMask};
use ir3_compiler::machine::Code;
use ir3_compiler::target::Target;
use smallvec::SmallVec;

/// Full general registers, r0.x to r47.w.
const GENERAL: u16 = 48 * 4;
const HALF_BASE: u16 = 2 * GENERAL;
/// The shared registers are one word of the mask.
const SHARED_BASE: u16 = HALF_BASE + GENERAL;
const SHARED: u16 = 8 * 4;
const OTHER_BASE: u16 = SHARED_BASE + 2 * SHARED;
/// Words of a mask.
pub const WORDS: usize = OTHER_BASE as usize / 64 + 1;
/// The word of the shared registers.
pub const SHARED_WORD: usize = SHARED_BASE as usize / 64;
/// The word of addresses and predicates.
pub const OTHER_WORD: usize = OTHER_BASE as usize / 64;
/// `a1.x` in that word: all lanes share it.
pub const A1_BIT: u64 = 2;

/// Entries of the table of times: half registers in the merged layout, then addresses and predicates, then half
/// registers of a file of their own.
pub const TIMES: usize = HALF_TIMES as usize + GENERAL as usize;
const HALF_TIMES: u16 = 2 * GENERAL + 6;

/// One register of an operand: its bits in the mask, and its entries in the table of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first bit.
    pub bit: u16,
    /// The number of bits, and of entries: 2 for a full register, 1 for a half register.
    pub width: u16,
    /// The first entry of the table of times; none for shared registers.
    pub time: Option<u16>,
}

/// The registers of an operand that is not relative, in order: none for `r63.x`.
///
/// # Errors
/// If the file has no such register: the number of the first one that it does not have.
pub fn pieces(place: &Place, class: RegClass, mask: WriteMask, merged: bool) -> Result<SmallVec<[Piece; 4]>, PhysReg> {
    match place.reg() {
        None | Some(PhysReg::INVALID) => Ok(SmallVec::new()),
        Some(reg) => {
            // Not collected: that is several times as slow for the one or few that there are.
            let mut pieces = SmallVec::new();
            for k in mask.components() {
                pieces.push(piece(reg.0 + k as u16, class, merged)?);
            }
            Ok(pieces)
        }
    }
}

/// The registers of texture samples that the driver issues before the program starts; they are available after `(sy)`.
pub fn prefetched(code: &Code, target: &Target) -> Vec<Piece> {
    let dsts = code.interface.prefetches.iter().flat_map(|data| &data.dsts);
    dsts.flat_map(|dst| pieces(&dst.place, dst.class, dst.mask, target.merged_regs).unwrap_or_default()).collect()
}

/// The pieces of consecutive registers.
///
/// # Errors
/// The first register that is outside the file.
pub fn range(first: u16, length: u16, class: RegClass, merged: bool) -> Result<SmallVec<[Piece; 4]>, PhysReg> {
    (first..first.saturating_add(length)).map(|number| piece(number, class, merged)).collect()
}

/// The number of registers of a general file.
pub const fn file_size(class: RegClass, merged: bool) -> u16 {
    if class.half && merged { 2 * GENERAL } else { GENERAL }
}

fn piece(number: u16, class: RegClass, merged: bool) -> Result<Piece, PhysReg> {
    let outside = PhysReg(number);
    let within = |first: u16, count: u16| number.checked_sub(first).filter(|&index| index < count).ok_or(outside);
    Ok(match (class.file, class.half) {
        (RegFile::General, false) => {
            let index = within(0, GENERAL)?;
            Piece { bit: 2 * index, width: 2, time: Some(2 * index) }
        }
        (RegFile::General, true) => {
            let index = within(0, if merged { 2 * GENERAL } else { GENERAL })?;
            let (bit, time) = if merged { (index, index) } else { (HALF_BASE + index, HALF_TIMES + index) };
            Piece { bit, width: 1, time: Some(time) }
        }
        (RegFile::Shared, false) => Piece { bit: SHARED_BASE + 2 * within(GENERAL, SHARED)?, width: 2, time: None },
        (RegFile::Shared, true) => Piece { bit: SHARED_BASE + within(GENERAL, 2 * SHARED)?, width: 1, time: None },
        (RegFile::Address, _) => other(within(PhysReg::A0_X.0, 2)?),
        (RegFile::Predicate, _) => other(2 + within(PhysReg::P0_X.0, 4)?),
    })
}

fn other(index: u16) -> Piece {
    Piece { bit: OTHER_BASE + index, width: 1, time: Some(2 * GENERAL + index) }
}

/// The file of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// General registers, in halves.
    General,
    /// Half registers that are a file of their own.
    Half,
    /// Shared registers, in halves.
    Shared,
    /// Address registers.
    Addresses,
    /// Predicates.
    Predicates,
}

/// The file of a bit of the mask, and its index in the file.
pub const fn file_of(bit: u16) -> (File, u16) {
    if bit < HALF_BASE {
        (File::General, bit)
    } else if bit < SHARED_BASE {
        (File::Half, bit - HALF_BASE)
    } else if bit < OTHER_BASE {
        (File::Shared, bit - SHARED_BASE)
    } else if bit < OTHER_BASE + 2 {
        (File::Addresses, bit - OTHER_BASE)
    } else {
        (File::Predicates, bit - OTHER_BASE - 2)
    }
}

/// The name of the register that contains a bit of the mask: `hr…` if `half`, else the full register `r…`; `a0.x`,
/// `a1.x` and `p0.…` for the others.
pub fn name(bit: u16, half: bool) -> String {
    let component = |number: u16| ['x', 'y', 'z', 'w'][usize::from(number & 3)];
    let vector = |prefix: &str, number: u16| format!("{prefix}{}.{}", number >> 2, component(number));
    match bit {
        OTHER_BASE => "a0.x".to_owned(),
        bit if bit == OTHER_BASE + 1 => "a1.x".to_owned(),
        bit if bit > OTHER_BASE => format!("p0.{}", component(bit - OTHER_BASE - 2)),
        bit if bit >= SHARED_BASE && half => vector("hr", GENERAL + bit - SHARED_BASE),
        bit if bit >= SHARED_BASE => vector("r", GENERAL + (bit - SHARED_BASE) / 2),
        bit if bit >= HALF_BASE => vector("hr", bit - HALF_BASE),
        bit if half => vector("hr", bit),
        bit => vector("r", bit / 2),
    }
}
/// Returns true if a place is a register that the wave has once, not each lane: a shared one, or `a1.x`.
pub fn is_of_wave(place: &Place, class: RegClass) -> bool {
    class.file == RegFile::Shared || class.file == RegFile::Address && place.reg() == Some(PhysReg::A1_X)
}
