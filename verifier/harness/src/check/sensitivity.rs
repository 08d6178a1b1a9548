//! Sensitivity: the share of a program's values on which its runs depend.
//!
//! Two programs that agree on some inputs agree on the code that these inputs reach. If a run does not execute an
//! instruction, or nothing observable depends on its result, a wrong result goes unnoticed. So each component of a
//! result, each operand and each branch condition is changed, in a few of the lanes that reach it, in a run of its own
//! lane ([`Flippable`]), and counts as *seen* if an output, a store or the set of killed lanes changes. The share of
//! seen sites bounds the value of *tested*.
//!
//! One run changes one site in each of several lanes, and a lane whose effects differ attributes them to its own site.
//! In a reduction or a scan all effects may be those of a few lanes, the *observers*: every other try changes sites in
//! these only. Where a lane differs in which nothing was changed, the group is bisected.
//!
//! It is a lower bound: only the first execution of a site is changed, and the work for a program is limited.

use cpu_time::ThreadTime;
use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::ir3::Program;
use ir3_compiler::ir3::validate::Form;
use ir3_compiler::nir::Shader;
use ir3_compiler::opt::dead_code;
use ir3_compiler::pipeline::select;
use ir3_compiler::target::{Backend, Target};
use ir3_semantics::arithmetic::rows::LANES;
use ir3_semantics::environment::env::Env;
use ir3_semantics::environment::memory::StoredWord;
use ir3_semantics::interp::ir3::{ComparedOperands, FlipBits, FlipKind, Flippable};
use ir3_semantics::interp::{End, Outcome, Scratch, Unsupported};
use ir3_semantics::vec4;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The fuel of a run with flips, for each instruction of the run without, and its slack: a flipped counter may make a
/// loop long.
const FUEL_FACTOR: u64 = 4;
const FUEL_SLACK: u64 = 1000;

/// The number of lanes of a run in which a site is tried.
const TRIES: usize = 4;

/// The number of instructions of a wave that all runs with flips of a program may execute.
const MOST_WORK: u64 = 2_000_000;

/// Sites of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SiteCount {
    /// Sites whose change was observed.
    pub seen: u32,
    /// All sites.
    pub all: u32,
}

impl SiteCount {
    /// The share of the sites whose change was observed, from 0 to 1; 1 if there are none.
    pub fn share(self) -> f64 {
        match self {
            Self { all: 0, .. } => 1.0,
            Self { seen, all } => f64::from(seen) / f64::from(all),
        }
    }

    fn count(&mut self, seen: bool) {
        self.all += 1;
        self.seen += u32::from(seen);
    }
}

/// The least sensitivity at which a boundary that was only run is a pass: of all sites, and of each class that few
/// sites of others would hide.
pub const LEAST_SENSITIVITY: f64 = 0.7;

/// The sites of a program, and the number of those that its runs depend on.
///
/// Branches and accesses to memory are few in comparison with arithmetic, and bugs of passes in them are of another
/// kind: each of these two classes counts on its own, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// Components of results.
    pub results: SiteCount,
    /// Components of operands.
    pub operands: SiteCount,
    /// Conditions of branches.
    pub conditions: SiteCount,
    /// Components of results and operands of accesses to memory that other waves see.
    pub accesses: SiteCount,
}

impl Sensitivity {
    /// The sensitivity of a program whose runs show nothing.
    pub(crate) const NONE: Self = {
        let none = SiteCount { seen: 0, all: 0 };
        Self { results: SiteCount { seen: 0, all: 1 }, operands: none, conditions: none, accesses: none }
    };

    /// The number of sites of all kinds.
    pub fn sites(&self) -> SiteCount {
        let kinds = [self.results, self.operands, self.conditions, self.accesses];
        SiteCount { seen: kinds.iter().map(|kind| kind.seen).sum(), all: kinds.iter().map(|kind| kind.all).sum() }
    }

    /// The share of sites whose change was observed, from 0 to 1; 1 if there are none.
    pub fn share(&self) -> f64 {
        self.sites().share()
    }

    /// Returns true if runs with this sensitivity are enough for a pass.
    pub fn is_enough(&self) -> bool {
        [self.sites(), self.conditions, self.accesses].iter().all(|sites| sites.share() >= LEAST_SENSITIVITY)
    }
}

impl fmt::Display for SiteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.seen, self.all)
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { results, operands, conditions, accesses } = self;
        write!(
            f,
            "{:.0} % (results {results}, operands {operands}, branches {conditions}, memory {accesses})",
            self.share() * 100.0,
        )
    }
}

/// Measures the sensitivity of one program, environment by environment.
pub struct SensitivityProbe {
    program: Flippable,
    seen: Vec<bool>,
    /// Environments so far.
    runs: usize,
    /// Instructions that may still be executed.
    work: u64,
    /// CPU time that runs with flips may still take: of programs that compute with undefined values, an instruction
    /// takes many times as long.
    time: Duration,
    scratch: Scratch,
}

impl SensitivityProbe {
    /// A probe of a program.
    ///
    /// # Errors
    /// If the interpreter does not support an operation.
    pub fn new(program: &Program, target: &Target) -> Result<Self, Unsupported> {
        let program = Flippable::new(program, target)?;
        let seen = vec![false; program.sites().len()];
        Ok(Self { program, seen, runs: 0, work: MOST_WORK, time: Duration::MAX, scratch: Scratch::default() })
    }

    /// Returns the probe with another number of instructions that all runs with flips may execute, in multiples of the
    /// usual one.
    #[must_use]
    pub fn with_work(self, factor: u64) -> Self {
        Self { work: MOST_WORK * factor, ..self }
    }

    /// Returns the probe with a limit to the CPU time of runs with flips.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// A probe of a program of some language. One of nir is measured as the ir3 program that is selected from it, and
    /// one for Gen7 as that which is selected from its [meaning](vec4::lift): the same values, one instruction each.
    /// Values in SSA form that no effect depends on do not count. `None` if a language does not support the program.
    pub fn of(program: ProgramRef<'_>, target: &Target) -> Option<Self> {
        let selected = |shader: &Shader, target: &Target| {
            let mut selected = select(shader, target).ok()?;
            // Lifting computes each channel, also where the next instruction overwrites it. A value that no output
            // depends on cannot be wrong.
            dead_code::run(&mut selected);
            Self::new(&selected, target).ok()
        };
        match program {
            ProgramRef::Ir3(program) if Form::of(program) == Form::Ssa => {
                let mut program = program.clone();
                dead_code::run(&mut program);
                Self::new(&program, target).ok()
            }
            ProgramRef::Ir3(program) => Self::new(program, target).ok(),
            ProgramRef::Vec4(program) => selected(&vec4::lift(program).ok()?, &Target::default()),
            ProgramRef::Nir(shader) if target.backend == Backend::Ir3 => selected(shader, target),
            ProgramRef::Nir(shader) => selected(shader, &Target::default()),
        }
    }

    /// Runs the program in an environment, with the sites flipped that have not been seen yet.
    pub fn run(&mut self, env: &Env, fuel: u64) {
        self.runs += 1;
        let (base, reached) = self.program.run(env, fuel, &mut self.scratch);
        let observed = base.lanes & !base.helpers;
        if base.end != End::Finished || observed == 0 {
            return;
        }
        // Half of the remaining work: the first run of a large program would leave nothing for better ones.
        let kept = self.work / 2;
        let start = ThreadTime::now();
        let deadline = Deadline { start, time: self.time / 2 };
        let observers = observers(&base) & observed;
        for attempt in 0..TRIES {
            let lanes = if attempt % 2 == 0 && observers != 0 { observers } else { observed };
            let bits = FlipBits::ALL[(self.runs + attempt) % FlipBits::ALL.len()];
            let fuel = base.executed * FUEL_FACTOR + FUEL_SLACK;
            let run = FlippedRun { env, bits, base: &base, fuel, deadline };
            let mut waiting: Vec<usize> =
                (0..self.seen.len()).filter(|&site| !self.seen[site] && reached[site] & lanes != 0).collect();
            while !waiting.is_empty() && self.work > kept && !deadline.is_over() {
                let mut free = lanes;
                let mut group = Vec::new();
                waiting.retain(|&site| {
                    let lanes = reached[site] & free;
                    if lanes == 0 {
                        return true;
                    }
                    // Each attempt begins with another lane, and each site.
                    let from = (site * 7 + attempt * 21 + self.runs * 11) as u32 % 64;
                    let lane = (lanes.rotate_right(from).trailing_zeros() + from) % 64;
                    free &= !(1 << lane);
                    group.push((lane as usize, site));
                    false
                });
                self.try_group(&group, &run);
            }
        }
        self.time = self.time.saturating_sub(start.elapsed());
    }

    /// Operands of the comparisons that a run executes.
    pub fn compared(&mut self, env: &Env, fuel: u64) -> Vec<ComparedOperands> {
        self.program.compared(env, fuel, &mut self.scratch)
    }

    /// Chooses at most `count` of some environments whose runs reach most of the sites that no run has depended on yet;
    /// none whose run does not end. Candidates beyond the time limit are dropped.
    pub fn choose(&mut self, candidates: Vec<Env>, fuel: u64, count: usize, time: Duration) -> Vec<Env> {
        let start = ThreadTime::now();
        let reach = |env: Env| {
            let (base, reached) = self.program.run(&env, fuel, &mut self.scratch);
            let observed = if base.end == End::Finished { base.lanes & !base.helpers } else { 0 };
            let new = self.seen.iter().zip(&reached).filter(|(seen, lanes)| !**seen && **lanes & observed != 0);
            (new.count(), env)
        };
        let candidates = candidates.into_iter().take_while(|_| start.elapsed() < time);
        let mut reached: Vec<(usize, Env)> = candidates.map(reach).filter(|(new, _)| *new > 0).collect();
        reached.sort_by_key(|(new, _)| std::cmp::Reverse(*new));
        reached.truncate(count);
        reached.into_iter().map(|(_, env)| env).collect()
    }

    fn try_group(&mut self, group: &[(usize, usize)], run: &FlippedRun<'_>) {
        let &FlippedRun { env, bits, base, fuel, deadline } = run;
        if deadline.is_over() {
            return;
        }
        let (outcome, reached) = self.program.run_flipped(group, bits, env, fuel, &mut self.scratch);
        self.work = self.work.saturating_sub(outcome.executed);
        if outcome.end != base.end {
            // One of them is observed, by a loop that does not end or an undefined address.
            match group {
                [(_, site)] => self.seen[*site] = true,
                _ => {
                    let (left, right) = group.split_at(group.len() / 2);
                    self.try_group(left, run);
                    self.try_group(right, run);
                }
            }
            return;
        }
        let mut differing = differing_lanes(base, &outcome);
        for &(lane, site) in group {
            self.seen[site] |= reached >> lane & differing >> lane & 1 != 0;
            differing &= !(1 << lane);
        }
        // A lane reads the change in another one.
        if differing != 0 {
            let rest: Vec<(usize, usize)> = group.iter().copied().filter(|&(_, site)| !self.seen[site]).collect();
            match *rest {
                [] => {}
                [(_, site)] if group.len() == 1 => self.seen[site] = true,
                [_] => self.try_group(&rest, run),
                _ => {
                    let (left, right) = rest.split_at(rest.len() / 2);
                    self.try_group(left, run);
                    self.try_group(right, run);
                }
            }
        }
    }

    /// The sensitivity of the runs so far.
    pub fn sensitivity(&self) -> Sensitivity {
        let mut sensitivity = Sensitivity::default();
        for (site, &seen) in self.program.sites().iter().zip(&self.seen) {
            match site.kind {
                _ if site.is_access => sensitivity.accesses.count(seen),
                FlipKind::Result => sensitivity.results.count(seen),
                FlipKind::Operand => sensitivity.operands.count(seen),
                FlipKind::Condition => sensitivity.conditions.count(seen),
            }
        }
        sensitivity
    }
}

/// A run with flips, and the run without.
struct FlippedRun<'a> {
    env: &'a Env,
    bits: FlipBits,
    base: &'a Outcome,
    fuel: u64,
    deadline: Deadline,
}

/// A limit to the CPU time of the runs with flips of a run.
#[derive(Clone, Copy)]
struct Deadline {
    start: ThreadTime,
    time: Duration,
}

impl Deadline {
    fn is_over(self) -> bool {
        self.start.elapsed() >= self.time
    }
}

/// The lanes in which something observable differs.
fn differing_lanes(base: &Outcome, other: &Outcome) -> u64 {
    let rows = base.outputs.rows().iter().zip(other.outputs.rows());
    let outputs = rows.fold(0, |lanes, (a, b)| {
        let values = (0..LANES).fold(0, |lanes, lane| lanes | u64::from(a.values[lane] != b.values[lane]) << lane);
        lanes | values | (a.poison ^ b.poison)
    });
    let by_lane = |outcome: &Outcome| {
        let mut stored = outcome.stored.clone();
        stored.sort_by_key(|word| word.lane);
        stored
    };
    let [a, b] = [base, other].map(by_lane);
    let stored = |stored: &[StoredWord], lane: u8| {
        let from = stored.partition_point(|word| word.lane < lane);
        from..stored.partition_point(|word| word.lane <= lane)
    };
    let stores = (0..LANES as u8)
        .filter(|&lane| a[stored(&a, lane)] != b[stored(&b, lane)])
        .fold(0, |lanes, lane| lanes | 1 << lane);
    (base.killed ^ other.killed) | outputs | stores
}

/// The lanes of a run that have effects.
fn observers(outcome: &Outcome) -> u64 {
    if !outcome.outputs.rows().is_empty() {
        return outcome.lanes;
    }
    outcome.stored.iter().fold(outcome.killed, |lanes, word| lanes | 1 << word.lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::compilation::compile;
    use ir3_compiler::nir::text;
    use ir3_compiler::pipeline::Options;

    /// Stores a value that is computed from the index of the lane.
    fn sensitivity(mask: u32) -> Sensitivity {
        let source = format!(
            "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {{
    block b0:
    32     %0 = @load_local_invocation_index
    32     %1 = load_const (0x00000000)
    32     %2 = load_const (0x00000002)
    32     %3 = ishl %0, %2
    32     %4 = imul24 %0, %0
    32     %5 = load_const ({mask:#010x})
    32     %6 = iand %4, %5
                @store_ssbo_ir3 (%6, %1, %3, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}}
"
        );
        let shader = text::read(&source).expect("a shader");
        let target = Target::default();
        let program = compile(&shader, &target, &Options::default(), &mut |_, _| ()).expect("it compiles");
        let mut probe = SensitivityProbe::new(&program, &target).expect("it is supported");
        (0..6).for_each(|seed| probe.run(&Env::from_seed(seed), 10_000));
        probe.sensitivity()
    }

    #[test]
    fn a_value_that_is_masked_off_is_not_seen() {
        let [masked, seen] = [sensitivity(0), sensitivity(u32::MAX)];
        assert_eq!(seen.results.seen, seen.results.all, "{seen}");
        assert_eq!(masked.results.all, seen.results.all);
        // The product.
        assert!(masked.results.seen < masked.results.all && masked.operands.seen < seen.operands.seen, "{masked}");
    }

    #[test]
    fn arithmetic_does_not_hide_branches_and_accesses() {
        let counts = |seen, all| SiteCount { seen, all };
        let arithmetic =
            Sensitivity { results: counts(100, 100), operands: counts(100, 100), ..Sensitivity::default() };
        assert!(arithmetic.is_enough() && arithmetic.share() == 1.0);
        let branches = Sensitivity { conditions: counts(1, 2), ..arithmetic };
        let accesses = Sensitivity { accesses: counts(6, 10), ..arithmetic };
        for of in [branches, accesses] {
            assert!(of.share() > 0.95 && !of.is_enough(), "{of}");
        }
        assert!(Sensitivity { conditions: counts(7, 10), accesses: counts(7, 10), ..arithmetic }.is_enough());
        assert!(!Sensitivity { results: counts(60, 100), operands: counts(60, 100), ..arithmetic }.is_enough());
        assert!(!Sensitivity::NONE.is_enough());
    }

    #[test]
    fn accesses_are_a_class_of_their_own() {
        let seen = sensitivity(u32::MAX);
        // The address and the data of the store.
        assert!(seen.accesses.all >= 2 && seen.accesses.seen == seen.accesses.all, "{seen}");
    }

    /// The values of a reduction are seen though one lane stores the result.
    #[test]
    fn effects_in_another_lane_are_seen() {
        let source = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_local_invocation_index
    32     %2 = imul24 %1, %1
    32     %3 = @reduce (%2) (reduction_op=iadd, cluster_size=0)
    1      %4 = ieq %1, %0
    // succs: b1 b2
    if %4 {
        block b1:
                @store_ssbo_ir3 (%3, %0, %0, %0) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    } else {
        block b2:
    }
    block b3:
    block b4:
}
";
        let shader = text::read(source).expect("a shader");
        let target = Target::default();
        let mut probe = SensitivityProbe::of(ProgramRef::Nir(&shader), &target).expect("it is supported");
        probe.run(&Env::from_seed(1), 10_000);
        let SiteCount { seen, all } = probe.sensitivity().results;
        assert!(4 * seen >= 3 * all, "{seen} of {all}");
    }

    #[test]
    fn environments_that_come_to_more_are_chosen() {
        let source = "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
num_ssbos: 1
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32     %0 = load_const (0x00000000)
    32     %1 = @load_const_ir3 (%0) (base=4)
    32     %2 = load_const (0x00012345)
    1      %3 = ieq %1, %2
    // succs: b1 b2
    if %3 {
        block b1:
        32     %4 = @load_local_invocation_index
        32     %5 = imul24 %4, %1
                @store_ssbo_ir3 (%5, %0, %0, %4) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    } else {
        block b2:
    }
    block b3:
    block b4:
}
";
        let shader = text::read(source).expect("a shader");
        let target = Target::default();
        let program = compile(&shader, &target, &Options::default(), &mut |_, _| ()).expect("it compiles");
        let mut probe = SensitivityProbe::new(&program, &target).expect("it is supported");
        let with = |word| Env { consts: [(4, word)].into(), ..Env::from_seed(1) };
        let candidates = vec![with(1), with(0x12345), with(2)];
        let chosen = probe.choose(candidates.clone(), 10_000, 1, Duration::MAX);
        assert_eq!(chosen, [with(0x12345)]);
        // A run that does not end shows nothing.
        assert_eq!(probe.choose(candidates, 1, 3, Duration::MAX), []);
    }

    #[test]
    fn nothing_is_seen_without_runs() {
        assert_eq!(Sensitivity::default().share(), 1.0);
        let all = Sensitivity { results: SiteCount { seen: 0, all: 3 }, ..Sensitivity::default() };
        assert_eq!(all.share(), 0.0);
    }
}
