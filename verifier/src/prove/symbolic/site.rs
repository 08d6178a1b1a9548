//! Where events happen.

use std::fmt;

/// Where an event happens: which one of the program it is, the same every time that a lane comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The operation; at the end of a block, the block. The number of an operation would not do there: an empty block has none.
    at: u32,
    place: Place,
    /// Of several in one place, which one.
    part: u32,
    /// Which copy of the block, where it stands in several places.
    copy: u32,
}

/// What of an operation, or of the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    Operation,
    /// Its results are written.
    Results,
    /// The condition at the end of a block.
    Condition,
    /// What is copied on this way out of a block.
    Edge(u8),
}

impl Site {
    fn new(at: u32, place: Place) -> Self {
        Self { at, place, part: 0, copy: 0 }
    }

    /// What an operation does.
    pub fn operation(at: u32) -> Self {
        Self::new(at, Place::Operation)
    }

    /// The end of a block.
    pub fn end(block: u32) -> Self {
        Self::new(block, Place::Condition)
    }

    /// Where the results of what happens here are written.
    pub fn results(self) -> Self {
        Self { place: Place::Results, ..self }
    }

    /// A way out of a block.
    pub fn edge(self, number: u8) -> Self {
        Self { place: Place::Edge(number), ..self }
    }

    /// One of several things here.
    pub fn part(self, part: usize) -> Self {
        Self { part: part as u32, ..self }
    }

    /// In a copy of the block.
    pub fn in_copy(self, copy: u32) -> Self {
        Self { copy, ..self }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.place {
            Place::Operation => write!(f, "{at}")?,
            Place::Results => write!(f, "{at} results")?,
            Place::Condition => write!(f, "end of block {at}")?,
            Place::Edge(number) => write!(f, "edge {number} of block {at}")?,
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
