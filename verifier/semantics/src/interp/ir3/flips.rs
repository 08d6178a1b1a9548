//! Flips: single values that are changed while a program runs, one in each lane.
//!
//! A flip shows if a run depends on a value: if nothing observable changes, a wrong value in that place would not have
//! been noticed either. As each lane has a flip of its own, one run tries as many as there are lanes.

use super::comparisons::{self, ComparedOperands, Comparison};
use super::storage::{Loc, Read, SlotPart, Storage};
use super::watch::Watch;
use super::{Decoded, decode, run};
use crate::arithmetic::rows::LANES;
use crate::environment::env::Env;
use crate::environment::memory::Memory;
use crate::interp::trace::{TracePoint, Watched, WatchedOperand};
use crate::interp::{Outcome, Scratch, Unsupported};
use ir3_compiler::ir3::access::{Access, MemoryAction};
use ir3_compiler::ir3::{AddressSpace, Instr, InstrData, Program, SrcOperand};
use ir3_compiler::target::Target;

/// The part of an instruction whose value is flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlipKind {
    /// A component of a result, for all its readers.
    Result,
    /// A component of a source operand, for this instruction only.
    Operand,
    /// The condition of a branch.
    Condition,
}

/// A place where a value can be flipped.
#[derive(Clone, Copy, Debug)]
pub struct FlipSite {
    /// The part of the instruction.
    pub kind: FlipKind,
    /// The number of the instruction.
    pub instr: u32,
    /// True if it is an access to memory that other waves see.
    pub is_access: bool,
    loc: Loc,
    /// The point of the program at which the value is flipped.
    from: u32,
    /// The point at which it is restored, unless it was written since; `None` if it stays.
    to: Option<u32>,
}

/// A program that can be run with flips.
pub struct Flippable {
    decoded: Decoded,
    sites: Vec<FlipSite>,
    /// The numbers of the sites, by point.
    by_point: Vec<usize>,
    /// The comparisons, by point.
    comparisons: Vec<Comparison>,
}

/// The bits to flip. Booleans are numbers here, too, and floats ignore the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlipBits {
    /// The lowest bit.
    Low,
    /// A high bit of a float's mantissa, and the lowest bit of its exponent; for 16 bits, those of the half.
    High,
    /// All bits.
    All,
}

impl FlipBits {
    /// All kinds, those that most values show first.
    pub const ALL: [Self; 3] = [Self::High, Self::Low, Self::All];

    const fn mask(self, part: SlotPart) -> u32 {
        match (self, part) {
            (Self::Low, SlotPart::Whole | SlotPart::Low) => 1,
            (Self::Low, SlotPart::High) => 1 << 16,
            (Self::High, SlotPart::Whole) => 0x00c0_0000,
            (Self::High, SlotPart::Low) => 0x0600,
            (Self::High, SlotPart::High) => 0x0600_0000,
            (Self::All, SlotPart::Whole) => !0,
            (Self::All, SlotPart::Low) => 0xffff,
            (Self::All, SlotPart::High) => 0xffff_0000,
        }
    }
}

impl Flippable {
    /// Decodes a program and lists its sites, in program order. Operands that are addressed indirectly have none.
    ///
    /// # Errors
    /// As [`Decoded::new`].
    pub fn new(program: &Program, target: &Target) -> Result<Self, Unsupported> {
        let (decoded, table) = decode::decode_watched(program, target)?;
        let mut sites = Vec::new();
        let mut comparisons = Vec::new();
        for watched in &table {
            add_sites(program, watched, &mut sites);
            comparisons.extend(Comparison::of(program, watched));
        }
        comparisons.sort_by_key(Comparison::point);
        let mut by_point: Vec<usize> = (0..sites.len()).collect();
        by_point.sort_by_key(|&site| sites[site].from);
        Ok(Self { decoded, sites, by_point, comparisons })
    }

    /// The sites.
    pub fn sites(&self) -> &[FlipSite] {
        &self.sites
    }

    /// Runs the program without flips, and with a log of its stores. Returns the lanes that reach each site with a
    /// defined value, too.
    pub fn run(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> (Outcome, Vec<u64>) {
        let mut reach = Reach { program: self, lanes: vec![0; self.sites.len()] };
        let outcome = scratch.logged(|scratch| run::run_watched(&self.decoded, env, fuel, scratch, &mut reach));
        (outcome, reach.lanes)
    }

    /// Runs the program and returns operands of its comparisons: of the first executions, in two lanes each.
    pub fn compared(&self, env: &Env, fuel: u64, scratch: &mut Scratch) -> Vec<ComparedOperands> {
        comparisons::compared(&self.decoded, &self.comparisons, env, fuel, scratch)
    }

    /// Runs the program with the site number `sites[lane]` flipped in each lane, the first time that the lane reaches
    /// it. Returns the lanes that reached theirs, too.
    pub fn run_flipped(
        &self,
        sites: &[(usize, usize)],
        bits: FlipBits,
        env: &Env,
        fuel: u64,
        scratch: &mut Scratch,
    ) -> (Outcome, u64) {
        let mut flips: Vec<Flip> = sites
            .iter()
            .map(|&(lane, site)| Flip { lane, site: self.sites[site], state: FlipState::Waiting })
            .collect();
        flips.sort_by_key(|flip| flip.site.from);
        let mut flips = Flips { flips, bits, open: Vec::new(), reached: 0 };
        let outcome = scratch.logged(|scratch| run::run_watched(&self.decoded, env, fuel, scratch, &mut flips));
        (outcome, flips.reached)
    }
}

/// Returns true for an access to memory that other waves see.
fn is_access(data: &InstrData) -> bool {
    use AddressSpace::{Global, Image, Shared, Ssbo};
    let Ok(Some(Access::Memory(access))) = Access::of(data) else { return false };
    matches!(access.action, MemoryAction::Load | MemoryAction::Store | MemoryAction::Atomic(_))
        && matches!(access.space, Ssbo | Global | Image | Shared)
}

fn add_sites(program: &Program, watched: &Watched<Read>, sites: &mut Vec<FlipSite>) {
    let TracePoint::Instr(instr) = watched.at else { return };
    let (first, last) = watched.ops;
    let data = &program.instrs[Instr::from_u32(instr)];
    let is_terminator = data.opcode.is_terminator();
    let is_access = is_access(data);
    let site = |kind, operand: &WatchedOperand<Read>, from, to| {
        let loc = operand.place.loc;
        FlipSite { kind, instr, is_access, loc, from, to }
    };
    // The number and the offset of an access are decoded: no run reads them.
    let is_decoded = |read: &&WatchedOperand<Read>| {
        let src = data.srcs.get(usize::from(read.operand)).map(|src| src.operand);
        is_access && matches!(src, Some(SrcOperand::Immediate(_)))
    };
    for read in watched.reads.iter().filter(|read| !is_decoded(read)) {
        let kind = if is_terminator { FlipKind::Condition } else { FlipKind::Operand };
        sites.push(site(kind, read, first, Some(last)));
    }
    for write in &watched.writes {
        sites.push(site(FlipKind::Result, write, last, None));
    }
}

/// The observer that records the lanes that reach each site.
struct Reach<'a> {
    program: &'a Flippable,
    lanes: Vec<u64>,
}

impl Watch for Reach<'_> {
    fn enter(&mut self, _: usize, _: u64) {}

    fn between(&mut self, point: u32, mask: u64, storage: &mut Storage, _: &mut Memory) {
        let Flippable { sites, by_point, .. } = self.program;
        let first = by_point.partition_point(|&site| sites[site].from < point);
        for &site in by_point[first..].iter().take_while(|&&site| sites[site].from == point) {
            self.lanes[site] |= mask & !storage.poisoned(sites[site].loc);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FlipState {
    Waiting,
    /// Flipped, and to be restored if it still has this value.
    Open(u32),
    Done,
}

struct Flip {
    lane: usize,
    site: FlipSite,
    state: FlipState,
}

/// The observer that flips values.
struct Flips {
    /// The flips in the order of their points.
    flips: Vec<Flip>,
    bits: FlipBits,
    /// The indices of those that are to be restored.
    open: Vec<usize>,
    reached: u64,
}

impl Watch for Flips {
    fn enter(&mut self, _: usize, _: u64) {}

    fn between(&mut self, point: u32, mask: u64, storage: &mut Storage, _: &mut Memory) {
        let flips = &mut self.flips;
        // A terminator has no point after it: its operands are restored at the next point of any lane.
        self.open.retain(|&at| {
            let Flip { lane, site, state } = &mut flips[at];
            let FlipState::Open(value) = *state else { return false };
            if site.from != point && (site.to == Some(point) || site.to == Some(site.from)) {
                let word = &mut storage.words[site.loc.slot as usize][*lane];
                if *word == value {
                    *word ^= self.bits.mask(site.loc.part);
                }
                *state = FlipState::Done;
                return false;
            }
            true
        });
        let first = flips.partition_point(|flip| flip.site.from < point);
        for (at, flip) in flips.iter_mut().enumerate().skip(first) {
            if flip.site.from != point {
                break;
            }
            let loc = flip.site.loc;
            // A poisoned value stays poison, for any bits.
            if flip.state != FlipState::Waiting || mask >> flip.lane & 1 == 0 || storage.lane(loc, flip.lane).1 {
                continue;
            }
            let word = &mut storage.words[loc.slot as usize][flip.lane];
            *word ^= self.bits.mask(loc.part);
            self.reached |= 1 << flip.lane;
            flip.state = match flip.site.to {
                Some(_) => {
                    self.open.push(at);
                    FlipState::Open(*word)
                }
                None => FlipState::Done,
            };
        }
    }
}

const _: () = assert!(LANES == 64, "a mask of lanes has 64 bits");
