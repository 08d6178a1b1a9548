//! Memories that may alias: a value that is written to one may be read from the other.
//!
//! The state of a memory is a *version* (see [`symbolic`](crate::symbolic)). Two accesses to memories with one
//! version may be reordered only if both are reads. SSBOs (all of them, with any bindings) and global memory have
//! one version. Images are views of the same memory, so they have that version too. But Mesa's ir3 treats image
//! accesses and buffer accesses as two classes (`IR3_BARRIER_IMAGE_*` and `IR3_BARRIER_BUFFER_*`) that it reorders. So
//! if no proof is found otherwise and the programs access both, images get a version of their own, and the proof names
//! that as an [assumption](ir3_semantics::assumptions::NO_ALIAS).

use crate::symbolic::{EventKind, Slot, SymbolicProgram, Versions, slot};
use ir3_semantics::environment::memory::Space;
use ir3_semantics::support::guards::{Guard, left_out};
use smallvec::smallvec;

/// The memories of two programs, and which of them may alias.
#[derive(Clone, Debug)]
pub(super) struct Memories {
    /// True if no image aliases a buffer.
    disjoint_images: bool,
    /// The memories that the programs access.
    accessed: Vec<Space>,
    /// The memories from which the source has volatile loads.
    volatile: Vec<Space>,
}

impl Memories {
    /// The memories of two programs. `disjoint_images`: no image aliases a buffer.
    pub(super) fn new<S: SymbolicProgram, T: SymbolicProgram>(source: &S, target: &T, disjoint_images: bool) -> Self {
        let mut accessed = source.memories();
        accessed.extend(target.memories());
        accessed.sort_unstable();
        accessed.dedup();
        Self { disjoint_images, accessed, volatile: source.volatile() }
    }

    /// Returns true if `disjoint_images` makes a difference.
    pub(super) fn has_images_and_buffers(&self) -> bool {
        let has = |space| self.accessed.contains(&space);
        has(Space::Image) && (has(Space::Ssbo) || has(Space::Global))
    }

    /// The version slot of a memory.
    pub(super) fn version_of(&self, space: Space) -> Slot {
        match space {
            Space::Global if !left_out(Guard::MemoryAlias) => slot::memory(Space::Ssbo),
            Space::Image if !self.disjoint_images && !left_out(Guard::MemoryAlias) => slot::memory(Space::Ssbo),
            space => slot::memory(space),
        }
    }

    /// Returns true if loads from a memory are events, like stores: the source has volatile loads from it, or from one
    /// that may alias it. A target's text may not mark its volatile loads, so all of them are.
    pub(super) fn watches_loads(&self, space: Space) -> bool {
        self.volatile.iter().any(|&volatile| self.version_of(volatile) == self.version_of(space))
            && !left_out(Guard::VolatileLoads)
    }

    /// The versions that an event makes.
    pub(super) fn makes(&self, kind: EventKind) -> Versions {
        match kind {
            EventKind::Lanes | EventKind::OneLane => Versions::new(),
            EventKind::Memory(space) => smallvec![self.version_of(space)],
            EventKind::Load(space) if !self.watches_loads(space) => Versions::new(),
            EventKind::Load(space) => smallvec![self.version_of(space)],
            EventKind::Constants => smallvec![slot::CONSTANTS],
            EventKind::Sync(_) if left_out(Guard::BarrierOrder) => Versions::new(),
            EventKind::Sync(sync) => {
                let ordered = self.accessed.iter().filter(|&&space| sync.orders(space));
                let mut versions: Versions = ordered.map(|&space| self.version_of(space)).collect();
                versions.push(slot::SYNCHRONIZATION);
                versions.sort_unstable();
                versions.dedup();
                versions
            }
        }
    }
}
