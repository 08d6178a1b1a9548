//! The reasons why a simulation proof fails, each with its site.

use crate::symbolic::{Cut, EventOperation, EventSite, Goal, Slot, Unsupported};
use ir3_semantics::environment::env::Env;
use ir3_semantics::header::HeaderDifference;
use ir3_semantics::interp::{self, OutputSlot};
use std::fmt;

/// The reason why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationFailure {
    /// A feature is not supported.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Something could not be proved equal.
    #[error("{obstacle}")]
    NotShown {
        /// The first that could not.
        obstacle: Box<Obstacle>,
        /// Inputs on which it may differ.
        inputs: Vec<Env>,
    },
    /// The source is undefined on every input, so there is nothing to prove.
    #[error("the source has no meaning on any input")]
    Vacuous,
    /// The time limit was reached; the first fact that was not proved until then.
    #[error("the time limit was reached{}", .0.as_ref().map(|obstacle| format!("; {obstacle}")).unwrap_or_default())]
    OutOfTime(Option<Box<Obstacle>>),
}

impl SimulationFailure {
    /// Something could not be proved equal, and no input is known on which it may differ.
    pub(super) fn not_shown(obstacle: Obstacle) -> Self {
        Self::NotShown { obstacle: Box::new(obstacle), inputs: Vec::new() }
    }
}

impl From<Unsupported> for SimulationFailure {
    fn from(unsupported: Unsupported) -> Self {
        Self::Unsupported(unsupported.0)
    }
}

impl From<interp::Unsupported> for SimulationFailure {
    fn from(unsupported: interp::Unsupported) -> Self {
        Self::Unsupported(unsupported.to_string())
    }
}

/// The condition or event that could not be proved equal in both programs, with its site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The declarations differ.
    Header(HeaderDifference),
    /// The programs have other numbers of loops.
    Loops {
        /// Number of loops of the source.
        source: usize,
        /// Number of loops of the target.
        target: usize,
    },
    /// The loops are nested in another way.
    Nesting,
    /// An output that the source does not have.
    Output(OutputSlot),
    /// The target leaves something open, or promises it, and the source does not.
    Liberty(String),
    /// A lane of the target has less scratch memory.
    Scratch {
        /// Bytes in the source.
        source: u32,
        /// Bytes in the target.
        target: u32,
    },
    /// A segment has other exits.
    Exits {
        /// The cut point where the segment begins.
        from: Cut,
        /// The exits of the source.
        source: Vec<Goal>,
        /// The exits of the target.
        target: Vec<Goal>,
    },
    /// A condition could not be proved.
    Condition {
        /// The observable that the condition is about.
        observable: Observable,
        /// The cut point where the segment begins.
        from: Cut,
        /// The condition, shortened.
        goal: String,
        /// An earlier event of the target that the source does not have, on whose results the condition may depend.
        missing: Option<Box<Obstacle>>,
    },
    /// An event of the target that the source does not have.
    Added {
        /// The operation.
        event: EventOperation,
        /// Its site in the target.
        site: EventSite,
        /// The difference from the most similar event of the source.
        differs: Option<EventDifference>,
    },
    /// An event of the source that the target does not have.
    Removed {
        /// The operation.
        event: EventOperation,
        /// Its site in the source.
        site: EventSite,
    },
    /// Other lanes take part in an event.
    Lanes {
        /// The site in the source.
        source: EventSite,
        /// The site in the target.
        target: EventSite,
    },
    /// An event of the target is one of the source in some segments only.
    Segments {
        /// The site in the target.
        site: EventSite,
    },
    /// An operation that can be executed, but about which nothing can be proved.
    Opaque(&'static str),
}

impl Obstacle {
    /// The kind, for tables: obstacles of one kind have one name, independent of their place.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Header(_) => "declarations",
            Self::Loops { .. } | Self::Nesting => "loops",
            Self::Output(_) => "an output that the source does not have",
            Self::Liberty(_) => "a liberty that the source does not have",
            Self::Scratch { .. } => "size of scratch memory",
            Self::Exits { .. } => "exits of a segment",
            Self::Condition { observable, .. } => observable.kind(),
            Self::Added { .. } => "an event that the source does not have",
            Self::Removed { .. } => "an event that the target does not have",
            Self::Lanes { .. } | Self::Segments { .. } => "lanes that take part in an event",
            Self::Opaque(what) => what,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(difference) => difference.fmt(f),
            Self::Loops { source, target } => write!(f, "{source} loops in the source, {target} in the target"),
            Self::Nesting => f.write_str("loops are nested, in the order of the blocks, in one of the programs only"),
            Self::Output(output) => write!(f, "the target has {output}, the source has not"),
            Self::Liberty(what) => write!(f, "the target promises what the source does not: {what}"),
            Self::Scratch { source, target } => {
                write!(f, "a lane has {source} bytes of scratch memory in the source, {target} in the target")
            }
            Self::Exits { from, source, target } => {
                write!(f, "from {from:?} the source goes to {source:?}, the target to {target:?}")
            }
            Self::Condition { observable, from, goal, missing } => {
                write!(f, "{observable} (from {from:?}): {goal}")?;
                missing.as_ref().map_or(Ok(()), |missing| write!(f, "; {missing}"))
            }
            Self::Added { event, site, differs } => {
                write!(f, "the source has no `{event}` like that of the target (site {site})")?;
                differs.as_ref().map_or(Ok(()), |differs| write!(f, ": {differs} is not proved equal"))
            }
            Self::Removed { event, site } => {
                write!(f, "the target has no `{event}` like that of the source (site {site})")
            }
            Self::Lanes { source, target } => {
                write!(f, "other lanes take part at site {target} of the target than at site {source} of the source")
            }
            Self::Segments { site } => {
                write!(f, "site {site} of the target is an event of the source in some segments only")
            }
            Self::Opaque(what) => f.write_str(what),
        }
    }
}

/// The difference between two events of the same operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventDifference {
    /// The contents of memory before it.
    Memory,
    /// The path condition; both are shortened terms.
    Path {
        /// The term in the source.
        source: String,
        /// The term in the target.
        target: String,
    },
    /// An operand; both are shortened terms.
    Operand {
        /// The index of the operand.
        index: usize,
        /// The term in the source.
        source: String,
        /// The term in the target.
        target: String,
    },
}

impl fmt::Display for EventDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the previous content of memory"),
            Self::Path { source, target } => write!(f, "its path {target} for {source}"),
            Self::Operand { index, source, target } => write!(f, "operand {index}, {target} for {source},"),
        }
    }
}

/// An observable of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observable {
    /// The condition of a path.
    Path {
        /// The cut point where the segment begins.
        from: Cut,
        /// Its end.
        to: Goal,
    },
    /// The lanes that are demoted.
    Demoted,
    /// The contents of a memory at the end.
    Memory(Slot),
    /// A component of an output.
    Output(OutputSlot),
    /// A condition without which the target is undefined.
    Defined(&'static str),
}

impl Observable {
    fn kind(self) -> &'static str {
        match self {
            Self::Path { .. } => "a path",
            Self::Demoted => "demoted lanes",
            Self::Memory(_) => "memory at the end",
            Self::Output(_) => "an output",
            Self::Defined(why) => why,
        }
    }
}

impl fmt::Display for Observable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { from, to } => write!(f, "the path from {from:?} to {to:?}"),
            Self::Demoted => f.write_str("which lanes are demoted"),
            Self::Memory(version) => write!(f, "memory {version} at the end"),
            Self::Output(OutputSlot { base, component, .. }) => write!(f, "output {base}.{component}"),
            Self::Defined(why) => f.write_str(why),
        }
    }
}
