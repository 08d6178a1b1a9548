//! Data races of a run: without an order between two accesses to one byte, of which one writes, the specification gives
//! a program no meaning.

use ir3_compiler::nir::Scope;
use ir3_semantics::environment::aliases::MemoryName;
use ir3_semantics::environment::memory::{AccessKind, AccessTrace, Space, TracedAccess, TracedEvent, TracedSync};
use ir3_semantics::environment::sync::{Fence, Sync};
use rustc_hash::{FxHashMap, FxHashSet};

/// The reason why a run is undefined, or depends on the order of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// Two lanes access a byte, one of them writes, and nothing orders them.
    Data,
    /// Atomics of several lanes: their results depend on the order.
    AtomicOrder,
    /// A barrier that not all lanes of the workgroup execute.
    Barrier,
    /// The trace was truncated, so races are not known.
    Unknown,
}

impl Race {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "a data race",
            Self::AtomicOrder => "atomics whose results depend on their order",
            Self::Barrier => "a barrier that not all lanes execute",
            Self::Unknown => "too many accesses",
        }
    }
}

/// The accesses to a word since the last barrier: the masks of lanes, by byte.
#[derive(Clone, Copy, Default)]
struct Accessed {
    by: [[u64; 4]; 3],
}

impl Accessed {
    /// Adds an access; the reason if it and an earlier one of another lane have no order.
    fn add(&mut self, kind: AccessKind, lane: u8, bytes: u8) -> Option<Race> {
        let others = !(1 << lane);
        let mut race = None;
        for byte in (0..4).filter(|byte| bytes >> byte & 1 != 0) {
            let [loads, stores, atomics] = self.by.map(|of_kind| of_kind[byte] & others != 0);
            let conflicts = match kind {
                AccessKind::Load => stores || atomics,
                AccessKind::Store => loads || stores || atomics,
                AccessKind::Atomic => loads || stores,
            };
            if conflicts {
                race = Some(Race::Data);
            } else if atomics && kind == AccessKind::Atomic {
                race = race.or(Some(Race::AtomicOrder));
            }
            self.by[kind as usize][byte] |= 1 << lane;
        }
        race
    }
}

/// The first race of a run of one wave with these lanes.
#[must_use]
pub fn first_race(trace: &AccessTrace, lanes: u64) -> Option<Race> {
    if trace.cut {
        return Some(Race::Unknown);
    }
    let mut accessed: FxHashMap<(MemoryName, u32), Accessed> = FxHashMap::default();
    let mut order = None;
    let mut fence = None;
    for event in &trace.events {
        match event {
            TracedEvent::Access(TracedAccess { kind, array, words, .. }) => {
                fence = None;
                for word in words {
                    let of_word = accessed.entry((*array, word.word)).or_default();
                    match of_word.add(*kind, word.lane, word.bytes) {
                        Some(Race::AtomicOrder) => order = Some(Race::AtomicOrder),
                        Some(race) => return Some(race),
                        None => {}
                    }
                }
            }
            TracedEvent::Sync(TracedSync { sync: Sync::Fence(new), .. }) => fence = Some(*new),
            TracedEvent::Sync(TracedSync { sync: Sync::Barrier(_), lanes: of, .. }) => {
                if *of != lanes {
                    return Some(Race::Barrier);
                }
                if let Some(fence) = fence.take() {
                    accessed.retain(|&(name, _), _| !orders(&fence, name.space));
                }
            }
        }
    }
    order
}

/// The words of memory that lanes of all workgroups see, which one of them accesses.
#[derive(Default)]
pub struct GroupAccesses {
    loads: FxHashSet<(MemoryName, u32)>,
    writes: FxHashSet<(MemoryName, u32)>,
}

impl GroupAccesses {
    /// The accesses of a run.
    #[must_use]
    pub fn of(trace: &AccessTrace) -> Self {
        let mut own = Self::default();
        for event in &trace.events {
            let TracedEvent::Access(TracedAccess { kind, array, words, .. }) = event else { continue };
            if matches!(array.space, Space::Shared | Space::Scratch) {
                continue;
            }
            let set = if *kind == AccessKind::Load { &mut own.loads } else { &mut own.writes };
            set.extend(words.iter().map(|word| (*array, word.word)));
        }
        own
    }

    /// Returns true if a word is written, and accessed otherwise as well.
    #[must_use]
    pub fn reads_its_writes(&self) -> bool {
        self.writes.iter().any(|word| self.loads.contains(word))
    }

    /// Returns true if one workgroup writes a word that the other one accesses: nothing orders them.
    #[must_use]
    pub fn race_with(&self, other: &Self) -> bool {
        let meets = |a: &Self, b: &Self| a.writes.iter().any(|word| b.writes.contains(word) || b.loads.contains(word));
        meets(self, other) || meets(other, self)
    }
}

/// Returns true if a fence with a barrier orders the accesses to a memory of all lanes of a workgroup.
fn orders(fence: &Fence, space: Space) -> bool {
    let covers = match space {
        Space::Ssbo => fence.buffers,
        Space::Shared => fence.shared,
        Space::Image => fence.images,
        _ => false,
    };
    covers && fence.acquires && fence.releases && fence.scope as u8 >= Scope::Workgroup as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_semantics::environment::env::Env;
    use ir3_semantics::interp::Scratch;
    use ir3_semantics::interp::nir::Decoded;

    /// A program in which each lane does this with the words of a buffer and of shared memory.
    fn race(body: &str) -> Option<Race> {
        let text = format!(
            "shader: MESA_SHADER_COMPUTE\nworkgroup_size: 64, 1, 1\nnum_ssbos: 1\nshared_size: 1024\nsubgroup_size: 1\n\
             decl_function main () (entrypoint)\n\nimpl main {{\n    block b0:\n    32x3 %0 = @load_local_invocation_id\n    \
             32   %1 = load_const (0x00000000)\n    32   %2 = load_const (0x00000002)\n    32   %3 = ishl %0.x, %2\n    \
             32   %5 = mov %0.x\n    32   %6 = load_const (0x0000003f)\n    32   %7 = ixor %5, %6\n    32   %8 = ishl %7, %2\n{body}    block b1:\n}}\n"
        );
        let shader = ir3_compiler::nir::read(&text).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        let env = Env { lanes: Some(u64::MAX), ..Env::from_seed(1) };
        let (_, trace) = Scratch::default().traced(|scratch| decoded.run(&env, env.fuel(), scratch));
        first_race(&trace, u64::MAX)
    }

    const OWN: &str = "    @store_shared (%5, %3) (base=0, wrmask=x, align_mul=4, align_offset=0)\n";
    const OTHER: &str = "    32   %9 = @load_shared (%8) (base=0, align_mul=4, align_offset=0)\n";
    const BARRIER: &str =
        "    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)\n";
    const OF_BUFFERS: &str =
        "    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=ssbo)\n";
    const FENCE: &str =
        "    @barrier (execution_scope=NONE, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)\n";

    #[test]
    fn accesses_of_two_lanes_need_a_barrier() {
        assert_eq!(race(OWN), None);
        assert_eq!(race(&[OWN, OTHER].concat()), Some(Race::Data));
        assert_eq!(race(&[OWN, BARRIER, OTHER].concat()), None);
        assert_eq!(race(&[OWN, OF_BUFFERS, OTHER].concat()), Some(Race::Data));
        assert_eq!(race(&[OWN, FENCE, OTHER].concat()), Some(Race::Data));
        let one = "    @store_shared (%5, %1) (base=0, wrmask=x, align_mul=4, align_offset=0)\n";
        assert_eq!(race(one), Some(Race::Data));
    }

    #[test]
    fn atomics_of_two_lanes_have_no_order() {
        let atomic = |at: &str| format!("    32   %9 = @shared_atomic ({at}, %5) (base=0, atomic_op=iadd)\n");
        assert_eq!(race(&atomic("%1")), Some(Race::AtomicOrder));
        assert_eq!(race(&atomic("%3")), None);
        assert_eq!(race(&[&atomic("%1")[..], OWN].concat()), Some(Race::Data));
    }
}
