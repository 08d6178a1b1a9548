//! Occupancy: the number of concurrent waves, and the registers that it leaves.
//!
//! A shader processor hides latency by switching between waves, and the waves share one register file: the more
//! registers a program uses, the fewer waves fit. Other resources limit the waves too (the stack of divergent branches,
//! the shared memory of a workgroup), so that up to some number registers cost nothing. An allocator queries that
//! number ([`Target::registers_without_loss`]) and may use all of it.
//!
//! Register counts are those of the statistics: vec4 of full registers. With merged files a half register counts as the
//! full register that it is a half of; the half registers of a separate file do not count.

use super::Target;

/// The properties of a program that its number of waves depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The kind of work.
    pub kind: WorkKind,
    /// The maximum nesting of its divergent branches.
    pub branchstack: u32,
    /// The width of the wave that an API requires, if any.
    pub width: WaveWidth,
}

/// The work items of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Vertices, patches, primitives.
    Geometry,
    /// Fragments.
    Fragment,
    /// Workgroups.
    Compute {
        /// The fibers of a workgroup; `None` if only known at dispatch.
        threads: Option<u32>,
        /// Memory of a workgroup, in bytes.
        shared_size: u32,
        /// The program waits for all fibers of its workgroup, which must then all run concurrently.
        barrier: bool,
    },
}

/// The fibers of a wave, in units of [`Target::threadsize_base`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaveWidth {
    /// The compiler chooses.
    #[default]
    Any,
    /// One.
    Single,
    /// Two.
    Double,
}

/// The resulting occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves have the double width.
    pub double: bool,
    /// The number of concurrent waves.
    pub waves: u32,
}

/// The maximum number of registers that a program can name, in vec4: r0 to r47.
const MOST_REGISTERS: u32 = 48;

/// The workgroup size assumed for a program with a variable one.
const LARGEST_WORKGROUP: u32 = 1024;

impl Workload {
    /// A program without divergent branches.
    #[must_use]
    pub const fn new(kind: WorkKind) -> Self {
        Self { kind, branchstack: 0, width: WaveWidth::Any }
    }

    /// Returns the workload with divergent branches, which use the branch stack.
    #[must_use]
    pub const fn with_branchstack(self, branchstack: u32) -> Self {
        Self { branchstack, ..self }
    }
}

impl Target {
    /// The number of waves that fit into the register file.
    #[must_use]
    const fn waves_by_registers(&self, vec4: u32, double: bool) -> u32 {
        if vec4 == 0 {
            return self.max_waves;
        }
        let waves = self.reg_size_vec4 / (vec4 * width(double)) * self.wave_granularity;
        if waves < self.max_waves { waves } else { self.max_waves }
    }

    /// The number of waves that all resources except registers allow.
    #[must_use]
    fn waves_but_for_registers(&self, work: &Workload, double: bool) -> u32 {
        let mut waves = self.max_waves;
        if let Some(by_stack) = self.branchstack_size.checked_div(work.branchstack) {
            waves = waves.min(by_stack * self.wave_granularity);
        }
        if let WorkKind::Compute { threads: Some(threads), shared_size: 1.., .. } = work.kind {
            let workgroups = self.local_mem_size / self.shared_memory_of(work);
            waves = waves.min(self.waves_of(threads, double) * workgroups * self.wave_granularity);
        }
        waves
    }

    /// Returns true if waves get the double width.
    #[must_use]
    fn doubles(&self, work: &Workload, vec4: u32) -> bool {
        match work.width {
            WaveWidth::Single => return false,
            WaveWidth::Double => return true,
            WaveWidth::Any => {}
        }
        // Each fiber may need its own entry of the stack.
        if work.branchstack.min(2 * self.threadsize_base) > self.branchstack_size {
            return false;
        }
        let fits = self.double_threadsize && vec4 * 2 <= self.reg_size_vec4;
        match work.kind {
            WorkKind::Geometry => false,
            WorkKind::Fragment => fits,
            // Without merged registers, only a workgroup that would not fit otherwise is worth it.
            WorkKind::Compute { threads, .. } if !self.merged_regs => {
                threads.is_none_or(|threads| threads > self.threadsize_base * self.max_waves)
            }
            WorkKind::Compute { threads, .. } => fits && threads.is_none_or(|threads| threads > self.threadsize_base),
        }
    }

    /// The waves of a program that uses `vec4` registers.
    #[must_use]
    pub fn occupancy(&self, work: &Workload, vec4: u32) -> Occupancy {
        let double = self.doubles(work, vec4);
        let waves = self.waves_but_for_registers(work, double).min(self.waves_by_registers(vec4, double));
        Occupancy { double, waves }
    }

    /// The maximum number of registers with which a program that needs `vec4` of them gets the same waves as with
    /// `vec4`. Never less than `vec4`.
    #[must_use]
    pub fn registers_without_loss(&self, work: &Workload, vec4: u32) -> u32 {
        let Occupancy { double, waves } = self.occupancy(work, vec4);
        let same = |&more: &u32| self.doubles(work, more) == double && self.waves_by_registers(more, double) >= waves;
        (vec4..=MOST_REGISTERS).rev().find(same).unwrap_or(vec4)
    }

    /// The maximum number of registers with which a whole workgroup runs concurrently, which a program with barriers
    /// needs; `None` if there is no such limit.
    #[must_use]
    pub fn registers_for_barrier(&self, work: &Workload) -> Option<u32> {
        let WorkKind::Compute { threads, barrier: true, .. } = work.kind else { return None };
        if !self.merged_regs {
            return None;
        }
        let double = self.doubles(work, 0);
        let waves = self.waves_of(threads.unwrap_or(LARGEST_WORKGROUP), double);
        Some((self.reg_size_vec4 / (waves * width(double))).min(MOST_REGISTERS))
    }

    /// The number of wave groups of a workgroup.
    fn waves_of(&self, threads: u32, double: bool) -> u32 {
        threads.div_ceil(self.threadsize_base * width(double) * self.wave_granularity).max(1)
    }

    /// The share of the processor's memory that a workgroup's memory takes.
    fn shared_memory_of(&self, work: &Workload) -> u32 {
        const UNIT: u32 = 1024;
        match work.kind {
            WorkKind::Compute { shared_size, .. } => shared_size.max(1).next_multiple_of(UNIT),
            WorkKind::Geometry | WorkKind::Fragment => UNIT,
        }
    }
}

const fn width(double: bool) -> u32 {
    if double { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target::by_name(name).unwrap()
    }

    const FRAGMENT: Workload = Workload::new(WorkKind::Fragment);
    const VERTEX: Workload = Workload::new(WorkKind::Geometry);

    fn compute(threads: u32) -> Workload {
        Workload::new(WorkKind::Compute { threads: Some(threads), shared_size: 0, barrier: false })
    }

    fn shared(threads: u32, shared_size: u32) -> Workload {
        Workload::new(WorkKind::Compute { threads: Some(threads), shared_size, barrier: false })
    }

    /// Computed by hand: registers / (vec4 × width), rounded down, in groups of `wave_granularity`.
    #[test]
    fn registers_limit_waves() {
        let cases: &[(&str, u32, bool, u32)] = &[
            ("a320", 0, false, 16),
            ("a320", 12, false, 16), // 96 / 12 = 8 groups of 2
            ("a320", 13, false, 14),
            ("a320", 12, true, 8),
            ("a320", 48, true, 2),
            ("a420", 6, false, 16), // 48 / 6 = 8 groups
            ("a420", 7, false, 12),
            ("a540", 4, true, 12),
            ("a610", 3, false, 16), // single waves, not in groups: 48 / 3
            ("a610", 5, false, 9),
            ("a610", 48, false, 1),
            ("a618", 12, false, 16),
            ("a618", 48, false, 4),
            ("a650", 8, false, 16), // 64 / 8 = 8 groups
            ("a660", 9, false, 14),
            ("a660", 16, false, 8),
            ("a660", 16, true, 4),
            ("a660", 48, false, 2),
            ("a730", 16, true, 6),
            ("a750", 13, false, 14),
        ];
        for &(name, vec4, double, waves) in cases {
            assert_eq!(target(name).waves_by_registers(vec4, double), waves, "{name} {vec4} {double}");
        }
    }

    #[test]
    fn the_stack_of_branches_limits_waves() {
        let waves =
            |name, branchstack| target(name).waves_but_for_registers(&FRAGMENT.with_branchstack(branchstack), false);
        assert_eq!([0, 1, 8, 9, 10, 20, 64].map(|n| waves("a660", n)), [16, 16, 16, 14, 12, 6, 2]);
        // Groups of one.
        assert_eq!([4, 5, 64].map(|n| waves("a610", n)), [16, 12, 1]);
    }

    #[test]
    fn shared_memory_limits_waves() {
        // 32 KiB; a workgroup of 64 is one group of waves, of which 32/16 = 2 fit, of two waves each.
        let a660 = target("a660");
        assert_eq!(a660.waves_but_for_registers(&shared(64, 16 * 1024), false), 4);
        assert_eq!(a660.waves_but_for_registers(&shared(64, 16 * 1024 - 1000), false), 4);
        assert_eq!(a660.waves_but_for_registers(&shared(64, 15 * 1024), false), 4);
        assert_eq!(a660.waves_but_for_registers(&shared(64, 10 * 1024), false), 6);
        // 256 fibers of the single width are 256 / (64 × 2) = 2 groups; of the double width one.
        assert_eq!(a660.waves_but_for_registers(&shared(256, 8 * 1024), false), 16);
        assert_eq!(a660.waves_but_for_registers(&shared(256, 8 * 1024), true), 8);
        // More than exists: none.
        assert_eq!(a660.waves_but_for_registers(&shared(64, 64 * 1024), false), 0);
        // A size that is only known at dispatch does not limit.
        let variable = WorkKind::Compute { threads: None, shared_size: 16 * 1024, barrier: false };
        assert_eq!(a660.waves_but_for_registers(&Workload::new(variable), false), 16);
    }

    #[test]
    fn waves_double_where_registers_allow() {
        let a660 = target("a660");
        assert!(a660.doubles(&FRAGMENT, 32) && !a660.doubles(&FRAGMENT, 33));
        assert!(!a660.doubles(&VERTEX, 1));
        assert!(!a660.doubles(&compute(64), 4) && a660.doubles(&compute(65), 4) && !a660.doubles(&compute(128), 33));
        assert!(!target("a610").doubles(&FRAGMENT, 1) && !target("a610").doubles(&compute(256), 1));
        // 128 fibers can need more than 64 entries; 2 × 8 and 2 × 32 cannot.
        assert!(a660.doubles(&FRAGMENT.with_branchstack(64), 4) && !a660.doubles(&FRAGMENT.with_branchstack(65), 4));
        assert!(target("a320").doubles(&FRAGMENT.with_branchstack(100), 4));
        assert!(target("a420").doubles(&FRAGMENT.with_branchstack(100), 4));
        // Before a6xx only a workgroup of more than 16 waves of 32.
        let a540 = target("a540");
        assert!(!a540.doubles(&compute(512), 4) && a540.doubles(&compute(513), 4) && a540.doubles(&compute(513), 48));
        let variable = Workload::new(WorkKind::Compute { threads: None, shared_size: 0, barrier: false });
        assert!(a540.doubles(&variable, 4) && a660.doubles(&variable, 4));
        // A required width is used.
        assert!(!a660.doubles(&Workload { width: WaveWidth::Single, ..FRAGMENT }, 4));
        assert!(a660.doubles(&Workload { width: WaveWidth::Double, ..VERTEX }, 40));
    }

    #[test]
    fn registers_grow_while_no_wave_is_lost() {
        let a660 = target("a660");
        // Single width: 8 vec4 for 16 waves, 9 for 14, 10 for 12, 12 for 10, 16 for 8 …
        for (needs, gets) in
            [(0, 8), (1, 8), (8, 8), (9, 9), (10, 10), (11, 12), (13, 16), (17, 21), (22, 32), (33, 48)]
        {
            assert_eq!(a660.registers_without_loss(&VERTEX, needs), gets, "{needs}");
        }
        // Double width: half of that, and never so many that the width would change.
        for (needs, gets) in [(1, 4), (4, 4), (5, 5), (6, 6), (7, 8), (9, 10), (11, 16), (17, 32), (33, 48)] {
            assert_eq!(a660.registers_without_loss(&FRAGMENT, needs), gets, "{needs}");
        }
        // If another resource allows four waves only, all registers that leave four are free.
        assert_eq!(a660.registers_without_loss(&shared(64, 16 * 1024), 5), 32);
        assert_eq!(a660.registers_without_loss(&FRAGMENT.with_branchstack(32), 5), 16);
        assert_eq!(target("a610").registers_without_loss(&FRAGMENT, 2), 3);
        assert_eq!(target("a730").registers_without_loss(&FRAGMENT, 2), 6);
        assert_eq!(target("a420").registers_without_loss(&VERTEX, 30), 48);
        // A number above the maximum is returned unchanged, for the caller to refuse.
        assert_eq!(a660.registers_without_loss(&VERTEX, 50), 50);
    }

    /// For every GPU and every count: the same number of waves of the same width, and one register more would reduce
    /// them.
    #[test]
    fn growing_is_exact() {
        let works = [VERTEX, FRAGMENT, FRAGMENT.with_branchstack(20), compute(256), shared(256, 8192)];
        for target in super::super::ALL {
            for work in works {
                for needs in 0..=MOST_REGISTERS {
                    let gets = target.registers_without_loss(&work, needs);
                    let before = target.occupancy(&work, needs);
                    assert!(needs <= gets && gets <= MOST_REGISTERS);
                    assert_eq!(target.occupancy(&work, gets), before, "{target} {work:?} {needs}");
                    assert!(gets == MOST_REGISTERS || target.occupancy(&work, gets + 1) != before, "{target} {needs}");
                }
            }
        }
    }

    #[test]
    fn barriers_need_the_whole_workgroup() {
        let barrier = |threads| Workload::new(WorkKind::Compute { threads, shared_size: 0, barrier: true });
        // 1024 fibers of the double width are 1024 / (128 × 2) = 4 groups: 64 / (4 × 2) = 8 vec4 each.
        assert_eq!(target("a660").registers_for_barrier(&barrier(Some(1024))), Some(8));
        assert_eq!(target("a660").registers_for_barrier(&barrier(None)), Some(8));
        assert_eq!(target("a660").registers_for_barrier(&barrier(Some(256))), Some(32));
        assert_eq!(target("a660").registers_for_barrier(&barrier(Some(64))), Some(48));
        // Single width, groups of one: 48 / 16.
        assert_eq!(target("a610").registers_for_barrier(&barrier(Some(1024))), Some(3));
        assert_eq!(target("a540").registers_for_barrier(&barrier(Some(1024))), None);
        assert_eq!(target("a660").registers_for_barrier(&compute(1024)), None);
    }
}
