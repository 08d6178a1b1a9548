//! Instructions that need the helper lanes of a quad: lanes that write nothing and compute values that others read.

use super::{InstrData, Opcode, RegFile, Src};

/// Returns true if the instruction reads the values of the other lanes of a quad.
pub(crate) fn reads_quad(data: &InstrData) -> bool {
    // Without a result it is a prefetch.
    data.opcode.reads_quad() && !(data.opcode == Opcode::Sam && data.dsts.is_empty())
}

/// Returns true if lanes may read the values of helper lanes by this instruction.
pub(crate) fn uses_helpers(data: &InstrData) -> bool {
    data.opcode != Opcode::TexPrefetch
        && (reads_quad(data) || matches!(data.opcode, Opcode::Movmsk | Opcode::BrcstActive) || takes_one_lane(data))
}

/// Returns true for a move to a shared register of a value that each lane has of its own: the lane that it takes may be
/// a helper lane.
fn takes_one_lane(data: &InstrData) -> bool {
    let is_of_lane = |src: &Src| src.class.file == RegFile::General && src.place().is_some();
    data.opcode == Opcode::Mov
        && data.dsts.first().is_some_and(|dst| dst.class.file == RegFile::Shared)
        && data.srcs.first().is_some_and(is_of_lane)
}

/// Returns true for branches that read all lanes.
pub(crate) const fn votes(data: &InstrData) -> bool {
    matches!(data.opcode, Opcode::Bany | Opcode::Ball | Opcode::Getone)
}
