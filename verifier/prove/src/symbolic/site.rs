//! Sites of events.

use std::fmt;

/// The site of an event: identifies it in the program, the same each time that a lane executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventSite {
    /// The operation, or the block for an event at its end. (Not the number of the next operation: an empty block has
    /// none.)
    at: u32,
    place: SitePoint,
    /// The index of the event, if the operation has several.
    part: u32,
    /// The copy of the block, if the block is at several positions.
    copy: u32,
}

/// The part of an operation or of a block's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum SitePoint {
    Operation,
    /// The write of the results.
    Results,
    /// The condition at the end of a block.
    Condition,
    /// The copies on the edge with this number.
    Edge(u8),
    /// An operation that is moved out of its loop.
    Sunk,
}

impl EventSite {
    fn new(at: u32, place: SitePoint) -> Self {
        Self { at, place, part: 0, copy: 0 }
    }

    /// The site of an operation.
    pub fn operation(at: u32) -> Self {
        Self::new(at, SitePoint::Operation)
    }

    /// The end of a block.
    pub fn end(block: u32) -> Self {
        Self::new(block, SitePoint::Condition)
    }

    /// The write of the results of this operation.
    pub fn results(self) -> Self {
        Self { place: SitePoint::Results, ..self }
    }

    /// The operation, moved out of its loop.
    pub fn sunk(self) -> Self {
        Self { place: SitePoint::Sunk, ..self }
    }

    /// Returns true if it is that of an operation that is moved out of its loop.
    pub fn is_sunk(self) -> bool {
        self.place == SitePoint::Sunk
    }

    /// An edge out of a block.
    pub fn edge(self, number: u8) -> Self {
        Self { place: SitePoint::Edge(number), ..self }
    }

    /// One of several events here.
    pub fn part(self, part: usize) -> Self {
        Self { part: part as u32, ..self }
    }

    /// Returns the site in a copy of the block.
    pub fn in_copy(self, copy: u32) -> Self {
        Self { copy, ..self }
    }
}

impl fmt::Display for EventSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.place {
            SitePoint::Operation => write!(f, "{at}")?,
            SitePoint::Results => write!(f, "{at} results")?,
            SitePoint::Condition => write!(f, "end of block {at}")?,
            SitePoint::Sunk => write!(f, "{at} after its loop")?,
            SitePoint::Edge(number) => write!(f, "edge {number} of block {at}")?,
        }
        if self.part > 0 {
            write!(f, ".{}", self.part)?;
        }
        if self.copy > 0 {
            write!(f, " copy {}", self.copy)?;
        }
        Ok(())
    }
}
