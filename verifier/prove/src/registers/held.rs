//! Values that have their register while the program is still in SSA form: `ssa_2(r48.x)`.
//!
//! Between the allocation of shared registers, predicates and addresses and that of general registers, an operand names
//! a value and its register. Runs and terms take the value, this checker takes the register. The two are the same if
//! the register still holds the value wherever it is read, which is shown here, or there is no proof.
//!
//! *The lattice.* For each piece of a shared register or predicate, the piece of the value that it holds: not written
//! yet, one piece, or unknown, in this order. The meet of two different pieces is unknown; a register that is not
//! written yet holds nothing that could be read, so its meet with a piece is the piece.
//!
//! *The transfer function.* A write sets the pieces of its register: to those of its value, or to unknown if it has
//! none. Shared registers are followed along the edges of the [wave](super::wave), predicates along those of lanes.

use super::failure::{InstrSite, RegisterFailure};
use super::location::{KEPT, Locations, Piece};
use super::wave::WaveFlow;
use cranelift_entity::SecondaryMap;
use ir3_compiler::ir3::{Block, InstrData, Opcode, RegFile, Src};
use ir3_semantics::support::guards::{Guard, left_out};

/// The contents of a piece of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    NotWritten,
    Piece(Piece),
    Unknown,
}

impl Held {
    fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotWritten, held) | (held, Self::NotWritten) => held,
            (one, other) if one == other => one,
            _ => Self::Unknown,
        }
    }
}

/// The contents of the pieces of all shared registers and predicates.
#[derive(Clone, PartialEq)]
struct State([Held; (KEPT.end - KEPT.start) as usize]);

impl State {
    const NOT_WRITTEN: Self = Self([Held::NotWritten; (KEPT.end - KEPT.start) as usize]);

    fn at(&mut self, piece: Piece) -> Option<&mut Held> {
        self.0.get_mut(piece.checked_sub(KEPT.start)? as usize)
    }

    fn get(&self, piece: Piece) -> Option<Held> {
        self.0.get(piece.checked_sub(KEPT.start)? as usize).copied()
    }

    /// The meet with another state, for some pieces.
    fn meet(&mut self, other: &Self, of: impl Fn(Piece) -> bool) {
        for ((held, &other), piece) in self.0.iter_mut().zip(&other.0).zip(KEPT) {
            if of(piece) {
                *held = held.meet(other);
            }
        }
    }
}

/// The states at the end of blocks that have been visited.
type Ends = SecondaryMap<Block, Option<Box<State>>>;

/// Shows that each operand which names a value and its register reads the value.
///
/// # Errors
/// The first operand whose register may have been written since.
pub(super) fn check(locations: &Locations<'_>, wave: &WaveFlow) -> Result<(), RegisterFailure> {
    let program = locations.program;
    let srcs = program.iter_instrs().flat_map(|(_, instr)| &program.instrs[instr].srcs);
    if !srcs.into_iter().any(|src| locations.kept(src).is_some()) || left_out(Guard::RegistersHeld) {
        return Ok(());
    }
    let walk = Walk { locations, wave };
    let mut ends = Ends::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &block in &program.layout {
            let end = walk.end(block, &ends);
            if ends[block].as_deref() != Some(&end) {
                ends[block] = Some(Box::new(end));
                changed = true;
            }
        }
    }
    (0..).zip(&program.layout).try_for_each(|(position, &block)| walk.check(position, block, &ends))
}

struct Walk<'a> {
    locations: &'a Locations<'a>,
    wave: &'a WaveFlow,
}

impl Walk<'_> {
    /// The state at the start of a block.
    fn start(&self, block: Block, ends: &Ends) -> State {
        let mut state = State::NOT_WRITTEN;
        let shared = self.wave.comes_from[block].iter().filter_map(|&pred| ends[pred].as_deref());
        shared.for_each(|end| state.meet(end, |piece| self.locations.is_shared(piece)));
        let preds = &self.locations.program.blocks[block].predecessors;
        let lanes = preds.iter().filter_map(|&pred| ends[pred].as_deref());
        lanes.for_each(|end| state.meet(end, |piece| !self.locations.is_shared(piece)));
        state
    }

    /// The state at the end of a block. If its last lane may end inside of it, the wave may leave it after each write.
    fn end(&self, block: Block, ends: &Ends) -> State {
        let program = self.locations.program;
        let mut state = self.start(block, ends);
        let mut left = State::NOT_WRITTEN;
        for &instr in &program.blocks[block].instrs {
            self.write(&program.instrs[instr], &mut state);
            if program.instrs[instr].opcode == Opcode::Kill {
                left.meet(&state, |piece| self.locations.is_shared(piece));
            }
        }
        state.meet(&left, |_| true);
        state
    }

    fn write(&self, data: &InstrData, state: &mut State) {
        for dst in &data.dsts {
            for component in dst.mask.components() {
                // Operands without a location are refused where they are read or written.
                let Ok(pieces) = self.locations.component(&dst.place, dst.class, component, false) else { continue };
                let first = self.locations.value_piece(&dst.place, dst.class, component);
                for (piece, at) in pieces.zip(0..) {
                    let Some(held) = state.at(piece) else { continue };
                    *held = first.map_or(Held::Unknown, |first| Held::Piece(first + at));
                }
            }
        }
    }

    fn check(&self, position: usize, block: Block, ends: &Ends) -> Result<(), RegisterFailure> {
        let program = self.locations.program;
        let data = &program.blocks[block];
        let mut state = self.start(block, ends);
        for (at, &instr) in data.instrs.iter().enumerate() {
            let instr = &program.instrs[instr];
            let of_edges = instr.opcode == Opcode::Phi;
            for (number, src) in instr.srcs.iter().enumerate() {
                let edge = data.predecessors.get(number).filter(|_| of_edges);
                let end = edge.and_then(|&pred| ends[pred].as_deref());
                // Copies of shared registers on an edge, while other lanes may run: not followed.
                let waits = of_edges && self.wave.comes_from[block].len() > data.predecessors.len();
                let holds = self.locations.kept(src).is_none_or(|class| {
                    self.holds(end.unwrap_or(&state), src) && !(waits && class.file == RegFile::Shared)
                });
                if !holds {
                    let site = InstrSite { block: position, instr: Some((at, instr.opcode.name())) };
                    let what =
                        format!("source {number} names a value and its register, which may have been written since");
                    return Err(RegisterFailure::Place { site, what });
                }
            }
            self.write(instr, &mut state);
        }
        Ok(())
    }

    /// Returns true if the register of a source holds its value.
    fn holds(&self, state: &State, src: &Src) -> bool {
        let Some(place) = src.place() else { return true };
        src.mask.components().all(|component| {
            let pieces = self.locations.component(place, src.class, component, false);
            let first = self.locations.value_piece(place, src.class, component);
            let (Ok(mut pieces), Some(first)) = (pieces.map(|pieces| pieces.zip(0..)), first) else { return false };
            pieces.all(|(piece, at)| match state.get(piece) {
                Some(Held::NotWritten) => true,
                held => held == Some(Held::Piece(first + at)),
            })
        })
    }
}
