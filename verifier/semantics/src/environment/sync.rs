//! Barriers between the waves of a workgroup, and the accesses that fences order.
//!
//! nir's `barrier` is up to two operations: a fence, if its semantics acquire or release some memory, and then a
//! control barrier, if its execution scope is the workgroup. ir3 has an instruction for each. The text of `fence` does
//! not name kinds of memory: `.g` is all that the device sees (SSBOs, images, global memory); shared memory is ordered
//! by every fence from a6xx on, before that by `.l`. A target may have more or stronger fences than its source, never
//! fewer or weaker ones (of a smaller scope, or of one direction only), and exactly its source's control barriers, each
//! with at least the flags of the source's.
//! nir's fences name buffers and images separately, and an access to the one may move over a fence of the other.
//!
//! From a7xx on reads see writes of other workgroups after `ccinv` only (`emit_intrinsic_barrier`), so `fence.w` and
//! the `ccinv` after it are one fence of reads and writes; `ccinv` is a fence of reads. Other maintenance of caches
//! (`dccln`, …) has no meaning here, and is refused: memory is coherent.

use crate::environment::memory::{SEEN, Space};
use ir3_compiler::ir3::{Attrs, InstrData, Opcode};
use ir3_compiler::nir::{Intrinsic, MemoryModes, MemorySemantics, Scope};
use ir3_compiler::target::Target;
use smallvec::SmallVec;
use std::fmt;

/// The accesses that a fence orders: those before it with those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// SSBOs.
    pub buffers: bool,
    /// Global memory.
    pub global: bool,
    /// Images.
    pub images: bool,
    /// Memory of the workgroup.
    pub shared: bool,
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// The invocations that see the order.
    pub scope: Scope,
    /// Accesses after it stay after it.
    pub acquires: bool,
    /// Accesses before it stay before it.
    pub releases: bool,
    /// Makes earlier writes available to others.
    pub available: bool,
    /// Makes writes that others made available visible afterwards.
    pub visible: bool,
}

/// A fence of ir3 without memories, with the properties of all of them: the whole device sees it, in both directions.
const OF_DEVICE: Fence = Fence {
    buffers: true,
    global: true,
    images: true,
    shared: false,
    reads: false,
    writes: false,
    scope: Scope::Device,
    acquires: true,
    releases: true,
    available: true,
    visible: true,
};

/// A barrier or fence: synchronises the waves of a workgroup, or orders their memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Each wave waits until all have reached the barrier. No access moves across it.
    Barrier(BarrierFlags),
    /// Orders accesses to memory.
    Fence(Fence),
}

/// The flags of a control barrier. No document describes their effect on `bar`, so none may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierFlags {
    /// At least the flags of every `bar` that Mesa emits for nir (`emit_control_barrier`): `.g`, before a6xx `.l`,
    /// too. A barrier of nir requires no others.
    pub of_nir: bool,
    /// `.r`, `.w`, `.g` and `.l`.
    pub rwgl: [bool; 4],
}

impl BarrierFlags {
    /// The flags that a barrier of nir requires. No section of a log prints the flags of a `bar`: it has these.
    pub const NIR: Self = Self { of_nir: true, rwgl: [false; 4] };

    fn covers(self, other: Self) -> bool {
        self.of_nir >= other.of_nir && self.rwgl.iter().zip(other.rwgl).all(|(&this, other)| this >= other)
    }
}

impl Fence {
    /// The accesses that this fence and another one right after it order together.
    fn and(self, other: Self) -> Self {
        Self {
            buffers: self.buffers || other.buffers,
            global: self.global || other.global,
            images: self.images || other.images,
            shared: self.shared || other.shared,
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            scope: self.scope.min(other.scope),
            acquires: self.acquires && other.acquires,
            releases: self.releases && other.releases,
            available: self.available && other.available,
            visible: self.visible && other.visible,
        }
    }

    /// Returns true if it orders every access that the other one orders.
    pub const fn covers(self, other: Self) -> bool {
        (self.buffers || !other.buffers)
            && (self.global || !other.global)
            && (self.images || !other.images)
            && (self.shared || !other.shared)
            && (self.reads || !other.reads)
            && (self.writes || !other.writes)
            && self.scope as u8 >= other.scope as u8
            && (self.acquires || !other.acquires)
            && (self.releases || !other.releases)
            && (self.available || !other.available)
            && (self.visible || !other.visible)
    }
}

impl Sync {
    /// The operations of a nir `barrier`, in their order.
    pub fn of_barrier(intrinsic: &Intrinsic) -> SmallVec<[Self; 2]> {
        let modes = intrinsic.indices.memory_modes();
        let buffers = modes.contains(MemoryModes::SSBO);
        let global = modes.contains(MemoryModes::GLOBAL);
        let images = modes.contains(MemoryModes::IMAGE);
        let shared = modes.contains(MemoryModes::SHARED);
        let semantics = intrinsic.indices.memory_semantics();
        let mut list = SmallVec::new();
        if semantics.intersects(MemorySemantics::ACQUIRE | MemorySemantics::RELEASE)
            && (buffers || global || images || shared)
        {
            list.push(Self::Fence(Fence {
                buffers,
                global,
                images,
                shared,
                reads: true,
                writes: true,
                scope: intrinsic.indices.memory_scope(),
                acquires: semantics.contains(MemorySemantics::ACQUIRE),
                releases: semantics.contains(MemorySemantics::RELEASE),
                available: semantics.contains(MemorySemantics::AVAILABLE),
                visible: semantics.contains(MemorySemantics::VISIBLE),
            }));
        }
        let scope = intrinsic.indices.execution_scope();
        if matches!(scope, Scope::Workgroup | Scope::QueueFamily | Scope::Device) {
            list.push(Self::Barrier(BarrierFlags::NIR));
        }
        list
    }

    /// The operation of `bar`, `fence` or `ccinv`; `None` if its attributes are unknown, or it is none of them.
    pub fn of_instr(data: &InstrData, target: &Target) -> Option<Self> {
        match (data.opcode, &data.attrs) {
            (Opcode::Bar, &Attrs::Fence { r, w, g, l }) => {
                let of_nir = g && (l || target.generation.number() >= 6);
                Some(Self::Barrier(BarrierFlags { of_nir, rwgl: [r, w, g, l] }))
            }
            (Opcode::Bar, _) => Some(Self::Barrier(BarrierFlags::NIR)),
            (Opcode::Fence, &Attrs::Fence { r, w, g, l }) => {
                let shared = l || target.generation.number() >= 6;
                Some(Self::Fence(Fence { buffers: g, global: g, images: g, shared, reads: r, writes: w, ..OF_DEVICE }))
            }
            (Opcode::Ccinv, _) if target.generation.number() >= 7 => {
                Some(Self::Fence(Fence { reads: true, ..OF_DEVICE }))
            }
            _ => None,
        }
    }

    /// Returns true for a control barrier.
    pub const fn is_barrier(self) -> bool {
        matches!(self, Self::Barrier(_))
    }

    /// Returns true if accesses to a memory may not move across it.
    pub const fn orders(self, space: Space) -> bool {
        match (self, space) {
            (_, Space::Scratch) => false,
            (Self::Barrier(_), _) => true,
            (Self::Fence(fence), Space::Shared) => fence.shared,
            (Self::Fence(fence), Space::Image) => fence.images,
            (Self::Fence(fence), Space::Ssbo) => fence.buffers,
            (Self::Fence(fence), Space::Global) => fence.global,
        }
    }

    /// Returns true if a target may have this operation where its source has the other one.
    pub fn replaces(self, other: Self) -> bool {
        match (self, other) {
            (Self::Barrier(this), Self::Barrier(other)) => this.covers(other),
            (Self::Fence(this), Self::Fence(other)) => this.covers(other),
            _ => false,
        }
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Barrier(BarrierFlags { of_nir: true, rwgl: [false, false, _, _] }) => f.write_str("barrier"),
            Self::Barrier(BarrierFlags { rwgl, .. }) => {
                let letters = "rwgl".chars().zip(rwgl).filter(|(_, is_set)| **is_set);
                write!(f, "barrier with the flags {{{}}}", letters.map(|(letter, _)| letter).collect::<String>())
            }
            Self::Fence(fence) => {
                f.write_str("fence")?;
                let parts = [
                    (fence.buffers && fence.global && fence.images, "device"),
                    (fence.buffers && !(fence.global && fence.images), "buffers"),
                    (fence.global && !(fence.buffers && fence.images), "global"),
                    (fence.images && !(fence.buffers && fence.global), "images"),
                    (fence.shared, "shared"),
                    (fence.reads, "reads"),
                    (fence.writes, "writes"),
                ];
                parts.iter().filter(|(is, _)| *is).try_for_each(|(_, name)| write!(f, " {name}"))?;
                match (fence.acquires, fence.releases) {
                    (true, false) => f.write_str(" (acquire)")?,
                    (false, true) => f.write_str(" (release)")?,
                    _ => {}
                }
                match (fence.available, fence.visible) {
                    (true, true) => {}
                    (true, false) => f.write_str(" (not visible)")?,
                    (false, true) => f.write_str(" (not available)")?,
                    (false, false) => f.write_str(" (neither available nor visible)")?,
                }
                if fence.scope == Scope::Device { Ok(()) } else { write!(f, " of {}", fence.scope.name()) }
            }
        }
    }
}

/// An operation on waves that a wave executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronized {
    /// The operation.
    pub sync: Sync,
    /// The bytes that the wave had stored by then, by kind of memory ([`SEEN`]).
    pub stored: [u32; SEEN.len()],
}

impl Synchronized {
    /// Returns true if the target may execute this where its source executed the other.
    fn replaces(&self, source: &Self) -> bool {
        let same = |(number, &space): (usize, &Space)| {
            !source.sync.orders(space) || self.stored[number] == source.stored[number]
        };
        self.sync.replaces(source.sync) && SEEN.iter().enumerate().all(same)
    }

    /// Two fences of a wave without a store between them, as one: that they come in this order makes no difference.
    fn and(&self, next: Option<&Self>) -> Option<Self> {
        let next = next.filter(|next| next.stored == self.stored)?;
        match (self.sync, next.sync) {
            (Sync::Fence(first), Sync::Fence(second)) => Some(Self { sync: Sync::Fence(first.and(second)), ..*self }),
            _ => None,
        }
    }

    /// The first operation of the source that the target lacks (`Ok`), or of the target that the source lacks (`Err`),
    /// with its number.
    pub fn first_difference(source: &[Self], target: &[Self]) -> Option<(usize, Result<Self, Self>)> {
        Self::matched(source, target).err()
    }

    /// The number of the operation of the target for each one of the source.
    ///
    /// Operations are in order if they order accesses to a common memory, and each is in order with all control
    /// barriers. Fences of different memories have no order: neither orders an access of one kind with one of the
    /// other, so all that another wave can observe of them is their position among the accesses to their own memory,
    /// which `stored` compares. For this reason one fence of both memories may replace both; two fences of one memory
    /// stay two.
    ///
    /// # Errors
    /// The [first difference](Self::first_difference).
    pub fn matched(source: &[Self], target: &[Self]) -> Result<Vec<usize>, (usize, Result<Self, Self>)> {
        let mut matched = Vec::with_capacity(source.len());
        let next_barrier =
            |from: usize| (from..target.len()).find(|&at| target[at].sync.is_barrier()).unwrap_or(target.len());
        // The position after the last operation of the target that was found, by memory.
        let mut done = [0; SEEN.len()];
        let mut barrier = next_barrier(0);
        for (number, expected) in source.iter().enumerate() {
            let memories = SEEN.map(|space| expected.sync.orders(space));
            let from = done.iter().zip(memories).filter_map(|(&done, is_ordered)| is_ordered.then_some(done)).max();
            // Only fences may be inserted: none of the target's barriers is passed over.
            let end = target.len().min(barrier + 1);
            let replaces = |at: usize| {
                let both = || target[at].and(target.get(at + 1)).filter(|both| both.replaces(expected)).map(|_| at + 1);
                if target[at].replaces(expected) { Some(at) } else { both() }
            };
            let found = (from.unwrap_or(0)..end).find_map(replaces);
            let Some(found) = found else { return Err((number, Ok(*expected))) };
            matched.push(found);
            for (done, _) in done.iter_mut().zip(memories).filter(|(_, is_ordered)| *is_ordered) {
                *done = found + 1;
            }
            if expected.sync.is_barrier() {
                barrier = next_barrier(found + 1);
            }
        }
        match target.get(barrier) {
            Some(more) => Err((source.len(), Err(*more))),
            None => Ok(matched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: Fence = Fence { reads: true, writes: true, ..OF_DEVICE };

    fn at(sync: Sync, device: u32, shared: u32) -> Synchronized {
        Synchronized { sync, stored: [device, shared, device] }
    }

    #[test]
    fn fences_may_be_more_and_stronger_and_barriers_may_not() {
        let weak = at(Sync::Fence(FENCE), 4, 0);
        let strong = at(Sync::Fence(Fence { shared: true, ..FENCE }), 4, 8);
        let bar = at(Sync::Barrier(BarrierFlags::NIR), 4, 8);
        let differs = |a: &[Synchronized], b: &[Synchronized]| Synchronized::first_difference(a, b).is_some();
        assert!(!differs(&[weak, bar], &[strong, bar]));
        assert!(!differs(&[weak, bar], &[weak, strong, bar]));
        assert!(differs(&[strong, bar], &[weak, bar]));
        assert!(differs(&[strong, bar], &[bar, strong]));
        assert!(differs(&[weak], &[]));
        assert!(differs(&[weak], &[weak, bar]));
        assert!(differs(&[bar, bar], &[bar]));
        // A store on the other side: of memory that the fence orders, and of memory that it does not.
        assert!(differs(&[weak], &[at(Sync::Fence(FENCE), 0, 0)]));
        assert!(!differs(&[weak], &[at(Sync::Fence(FENCE), 4, 8)]));
        assert!(differs(&[bar], &[at(Sync::Barrier(BarrierFlags::NIR), 4, 4)]));
    }

    #[test]
    fn a_barrier_has_at_least_the_flags_of_its_source() {
        let bar = |gpu: &str, attrs: Attrs| {
            let data = InstrData { attrs, ..InstrData::new(Opcode::Bar) };
            Sync::of_instr(&data, &Target::by_name(gpu).unwrap()).unwrap()
        };
        let flags = |text: &str| {
            let [r, w, g, l] = ['r', 'w', 'g', 'l'].map(|letter| text.contains(letter));
            Attrs::Fence { r, w, g, l }
        };
        let nir = Sync::Barrier(BarrierFlags::NIR);
        for (gpu, target, source) in
            [("a660", "g", "g"), ("a660", "rwgl", "g"), ("a660", "rwl", "rl"), ("a540", "gl", "")]
        {
            assert!(bar(gpu, flags(target)).replaces(bar(gpu, flags(source))), "{gpu} {target} {source}");
        }
        for (target, source) in [("", "g"), ("rwl", "rwgl"), ("rgl", "rwgl"), ("wgl", "rwgl"), ("rwg", "rwgl")] {
            assert!(!bar("a660", flags(target)).replaces(bar("a660", flags(source))), "{target} {source}");
        }
        // A barrier of nir is `.g`, before a6xx `.g.l`; so is one whose flags are not printed.
        for (gpu, attrs, expected) in [
            ("a660", flags("g"), true),
            ("a660", flags("rwl"), false),
            ("a540", flags("g"), false),
            ("a540", flags("gl"), true),
            ("a660", Attrs::None, true),
        ] {
            assert_eq!(bar(gpu, attrs.clone()).replaces(nir), expected, "{gpu} {attrs:?}");
            assert_eq!(bar(gpu, attrs).replaces(bar(gpu, Attrs::None)), expected);
        }
    }

    #[test]
    fn images_move_over_fences_of_buffers() {
        let buffers = Sync::Fence(Fence { images: false, ..FENCE });
        let differs = |a: &[Synchronized], b: &[Synchronized]| Synchronized::first_difference(a, b).is_some();
        let at = |sync, buffers, images| Synchronized { sync, stored: [buffers, 0, images] };
        assert!(!differs(&[at(buffers, 4, 8)], &[at(Sync::Fence(FENCE), 4, 0)]));
        assert!(differs(&[at(buffers, 4, 8)], &[at(Sync::Fence(FENCE), 0, 8)]));
        assert!(differs(&[at(Sync::Fence(FENCE), 4, 8)], &[at(Sync::Fence(FENCE), 4, 0)]));
        assert!(differs(&[at(Sync::Fence(FENCE), 4, 8)], &[at(buffers, 4, 8)]));
    }

    #[test]
    fn a_fence_of_writes_and_an_invalidation_are_one_fence() {
        let differs = |a: &[Synchronized], b: &[Synchronized]| Synchronized::first_difference(a, b).is_some();
        let fence = at(Sync::Fence(FENCE), 4, 8);
        let writes = at(Sync::Fence(Fence { reads: false, ..FENCE }), 4, 8);
        let a750 = Target::by_name("a750").unwrap();
        let invalidation = Sync::of_instr(&InstrData::new(Opcode::Ccinv), &a750).unwrap();
        assert!(!differs(&[fence], &[writes, at(invalidation, 4, 8)]));
        // Without one of them, with a store between them; the first is no part of two.
        assert!(differs(&[fence], &[writes]));
        assert!(differs(&[fence], &[at(invalidation, 4, 8)]));
        assert!(differs(&[fence], &[writes, at(invalidation, 8, 8)]));
        assert!(differs(&[fence, fence], &[writes, at(invalidation, 4, 8)]));
        let a660 = Target::by_name("a660").unwrap();
        assert_eq!(Sync::of_instr(&InstrData::new(Opcode::Ccinv), &a660), None);
    }

    #[test]
    fn fences_of_different_memories_have_no_order() {
        let fence = |device, shared| Sync::Fence(Fence { buffers: device, images: device, shared, ..FENCE });
        let [device, shared] = [at(fence(true, false), 4, 8), at(fence(false, true), 4, 8)];
        let both = at(fence(true, true), 4, 8);
        let bar = at(Sync::Barrier(BarrierFlags::NIR), 4, 8);
        let differs = |a: &[Synchronized], b: &[Synchronized]| Synchronized::first_difference(a, b).is_some();
        assert!(!differs(&[device, shared, bar], &[shared, device, bar]));
        // Between them, stores to the memory of the first one only.
        assert!(!differs(&[device, at(fence(false, true), 12, 8)], &[shared, device]));
        assert!(!differs(&[device, shared], &[both]));
        assert!(!differs(&[both, shared, device], &[both, device, both]));
        // Not over a barrier, in either direction, and none is dropped.
        assert!(differs(&[shared, bar, device], &[shared, device, bar]));
        assert!(differs(&[shared, device, bar], &[shared, bar, device]));
        assert!(differs(&[device, shared], &[device]));
        assert!(differs(&[device, shared, device], &[shared, device]));
        assert!(differs(&[device, device, shared], &[both]));
        // A fence of both memories is in order with each.
        assert!(differs(&[both, device], &[device, both, shared]));
        assert!(differs(&[shared, both], &[both, device]));
        // The planted bugs: a store to the memory of a fence that comes after the other one moves over it.
        assert!(differs(&[device, shared], &[shared, at(fence(true, false), 8, 8)]));
        assert!(differs(&[device, shared], &[at(fence(false, true), 4, 0), device]));
        // Barriers of the target are matched one by one, independent of the positions of fences.
        assert!(differs(&[bar], &[device, bar, bar]));
        assert!(differs(&[device, bar, bar], &[device, bar]));
        assert!(!differs(&[bar, device], &[shared, bar, shared, device]));
    }
}
