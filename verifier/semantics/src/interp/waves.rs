//! Runs the waves of one workgroup in turns.
//!
//! A program with barriers is run by two waves of its workgroup, if the workgroup has as many. They share memory, but
//! for scratch memory, of which each lane has its own. A wave runs until it reaches a barrier or ends; then the other
//! wave runs, and when both are at the barrier both continue. The seed decides which one runs first after each barrier.
//! All of a wave's accesses between two barriers happen at once, so two programs with the same accesses between the
//! same barriers have the same final memory, with any races; but a wave that does not wait, or accesses memory on the
//! other side of a barrier, sees accesses of the other wave that have or have not happened yet.

use super::ties::Ties;
use super::{End, Outcome, Outputs, Scratch};
use crate::arithmetic::rows::{LANES, Row};
use crate::environment::env::{Env, Launch, lanes};
use crate::environment::memory::{Memory, SEEN};
use crate::environment::sync::{Sync, Synchronized};
use crate::support::random::hash;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The reason why a wave stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its lanes have ended.
    Done,
    /// It waits for the others.
    Barrier,
}

/// The last active lane of the first cluster of 8 lanes that has one: `getlast` is about this one. Some lane is active.
pub(super) fn last_of_first_cluster(active: u64) -> u32 {
    let cluster = active.trailing_zeros() & !7;
    let members = active & 0xff << cluster;
    63 - members.leading_zeros()
}

/// The lanes that go on at `getlast`, where the others jump: the last active lane of the first cluster, and all lanes
/// after it. Mesa reduces clusters in a loop: all but the last lane of the first cluster leave it there, the last one
/// passes its value on and leaves it by `getone`, and the other clusters go round again.
pub(super) fn go_on_at_getlast(active: u64) -> u64 {
    if active == 0 { 0 } else { active & u64::MAX << last_of_first_cluster(active) }
}

/// Returns true if a value is defined and the same in all active lanes.
pub(super) fn is_uniform(row: &Row, poison: u64, active: u64) -> bool {
    let first = row[active.trailing_zeros() as usize % LANES];
    poison & active == 0 && lanes(active).all(|lane| row[lane] == first)
}

/// The number of waves that run a program.
pub(super) fn count(launch: Launch, has_barrier: bool) -> u32 {
    if has_barrier && !launch.fragment && launch.threads() > LANES as u32 { 2 } else { 1 }
}

/// The state that the waves of both interpreters have.
#[derive(Debug)]
pub(super) struct WaveState {
    pub launch: Launch,
    /// The lanes at the start.
    pub lanes: u64,
    /// The memory of all waves, while this one runs.
    pub memory: Memory,
    /// The bytes that this wave has stored, while it does not run.
    stored: [u32; SEEN.len()],
    pub helpers: u64,
    pub killed: u64,
    pub outputs: Outputs,
    pub sync_log: SyncLog,
    pub executed: u64,
    /// A broken promise is undefined behaviour: see [`Scratch::keeps_promises`].
    pub keeps_promises: bool,
    /// See [`Outcome::broken`].
    pub broken: FxHashSet<u64>,
    /// The results of operations on floats that need not be exact, and of exact ones, as hashes.
    pub floats: [FxHashSet<u64>; 2],
    /// See [`Outcome::freedoms`].
    pub freedoms: BTreeSet<&'static str>,
    /// The numbers of undefined values.
    pub ties: Ties,
    /// See [`Outcome::decisions`]; `None` unless undefined bits have values.
    pub decisions: Option<u64>,
}

impl WaveState {
    /// Records the values that a branch, the end of a lane or a write depends on.
    pub fn decide(&mut self, what: impl IntoIterator<Item = u64>) {
        if let Some(decisions) = &mut self.decisions {
            *decisions = what.into_iter().fold(*decisions, |all, what| hash(&[all, what]));
        }
    }

    /// Creates the state of wave `number` of `count` at the start of the program. It has the memory of its buffers.
    pub fn new(env: &Env, launch: Launch, count: u32, number: u32, memory: Memory, outputs: Outputs) -> Self {
        let helpers = env.helper_lanes(launch);
        let launch = Launch { wave: number, ..launch };
        let lanes = if count == 1 { env.running_lanes() } else { env.lanes_of_wave(launch) };
        let sync_log = SyncLog::default();
        Self {
            launch,
            lanes,
            memory,
            stored: [0; SEEN.len()],
            helpers,
            killed: 0,
            outputs,
            sync_log,
            executed: 0,
            keeps_promises: false,
            broken: FxHashSet::default(),
            floats: Default::default(),
            freedoms: BTreeSet::new(),
            ties: Ties::default(),
            decisions: None,
        }
    }
}

/// Takes the buffers of the second wave, if there is one.
pub(super) fn second_scratch(count: u32, scratch: &mut Scratch) -> Option<Box<Scratch>> {
    (count > 1).then(|| {
        let mut second = scratch.second.take().unwrap_or_default();
        second.filling = scratch.filling;
        second.keeps_promises = scratch.keeps_promises;
        second
    })
}

/// Returns the buffers that waves took.
pub(super) fn return_buffers(scratch: &mut Scratch, memory: Memory, second: Option<Box<Scratch>>) {
    scratch.memory = memory;
    scratch.second = second.or_else(|| scratch.second.take());
}

/// Runs one wave, or two in turns. `first` and `second` run a wave to its next barrier, or to its end. Also returns the
/// memory of both.
pub(super) fn run<W: AsMut<WaveState>>(
    env: &Env,
    wave: &mut W,
    mut other: Option<&mut W>,
    mut first: impl FnMut(&mut W) -> Result<Stop, End>,
    mut second: impl FnMut(&mut W) -> Result<Stop, End>,
) -> (Outcome, Memory) {
    let mut memory = std::mem::take(&mut wave.as_mut().memory);
    let mut done = [false, other.is_none()];
    let mut next = |number: usize| match &mut other {
        Some(other) if number == 1 => {
            // A trace is of a lane of the first wave.
            let (log, trace) = (memory.suspend_log(), memory.suspend_trace());
            let stop = turn(&mut **other, &mut memory, &mut second);
            memory.resume_log(log);
            memory.resume_trace(trace);
            stop
        }
        _ => turn(wave, &mut memory, &mut first),
    };
    let end = run_in_turns(env, &mut done, &mut next);
    let state = wave.as_mut();
    let other = other.map(AsMut::as_mut);
    let mut broken = std::mem::take(&mut state.broken);
    broken.extend(other.iter().flat_map(|other| &other.broken));
    let (sync_log, counts) = other.map(|other| (&mut other.sync_log, (other.executed, other.decisions))).unzip();
    let (executed, decisions) = counts.unwrap_or_default();
    // Only the wave itself has the numbers.
    let tied = if counts.is_none() { state.ties.groups(&memory) } else { Vec::new() };
    let outcome = Outcome {
        end,
        outputs: std::mem::take(&mut state.outputs),
        memory: memory.written(),
        loads: memory.loads(),
        stored: memory.take_log(),
        tied,
        other_waves: None,
        floats: std::mem::take(&mut state.floats),
        broken,
        freedoms: std::mem::take(&mut state.freedoms),
        env: env.clone(),
        killed: state.killed,
        helpers: state.helpers,
        lanes: state.lanes,
        synchronized: SyncLog::of_all(&mut state.sync_log, sync_log),
        executed: state.executed + executed,
        decisions: hash(&[state.decisions, decisions].map(Option::unwrap_or_default)),
    };
    (outcome, memory)
}

/// Runs waves until all have ended, or one of them ends the run.
fn run_in_turns(env: &Env, done: &mut [bool; 2], next: &mut dyn FnMut(usize) -> Result<Stop, End>) -> End {
    for barriers in 0.. {
        let order = if env.second_wave_is_first(barriers) { [1, 0] } else { [0, 1] };
        for wave in order {
            if done[wave] {
                continue;
            }
            match next(wave) {
                Ok(Stop::Done) => done[wave] = true,
                Ok(Stop::Barrier) => {}
                Err(end) => return end,
            }
        }
        if *done == [true; 2] {
            break;
        }
    }
    End::Finished
}

/// Runs a wave to its next barrier, with the memory of all waves.
fn turn<W: AsMut<WaveState>>(
    wave: &mut W,
    memory: &mut Memory,
    run_to_barrier: &mut impl FnMut(&mut W) -> Result<Stop, End>,
) -> Result<Stop, End> {
    let state = wave.as_mut();
    if state.lanes == 0 {
        return Ok(Stop::Done);
    }
    memory.set_stored(state.stored);
    memory.set_wave(state.launch.wave);
    std::mem::swap(&mut state.memory, memory);
    let stop = run_to_barrier(wave);
    let state = wave.as_mut();
    std::mem::swap(&mut state.memory, memory);
    state.stored = memory.stored();
    stop
}

/// The operations on waves that a wave has executed.
#[derive(Debug, Default)]
pub(super) struct SyncLog {
    done: Vec<Synchronized>,
}

impl SyncLog {
    /// Records an operation on waves. Returns true if the wave has to wait.
    pub(super) fn record(&mut self, sync: Sync, memory: &Memory) -> bool {
        self.done.push(Synchronized { sync, stored: memory.stored() });
        sync.is_barrier()
    }

    /// The operations of all waves, wave by wave.
    fn of_all(first: &mut Self, second: Option<&mut Self>) -> Vec<Synchronized> {
        let mut all = std::mem::take(&mut first.done);
        all.extend(second.into_iter().flat_map(|second| second.done.drain(..)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::nir::Decoded;

    /// A lane keeps its number in scratch memory across a barrier, and stores it after that.
    const KEPT: &str = "shader: MESA_SHADER_COMPUTE
workgroup_size: 128, 1, 1
num_ssbos: 1
scratch: 4
subgroup_size: 1
decl_function main () (entrypoint)

impl main {
    block b0:
    32x3 %0 = @load_local_invocation_id
    32   %1 = load_const (0x00000000)
    32   %2 = load_const (0x00000002)
    32   %3 = ishl %0.x, %2
    32   %5 = mov %0.x
    @store_scratch (%3, %1) (align_mul=4, align_offset=0, wrmask=x)
    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)
    32   %4 = @load_scratch (%1) (align_mul=4, align_offset=0)
    @store_ssbo_ir3 (%4, %1, %3, %5) (base=0, wrmask=x, access=none, align_mul=4, align_offset=0)
    block b1:
}
";

    #[test]
    fn scratch_memory_is_of_one_wave() {
        let shader = ir3_compiler::nir::read(KEPT).expect("a program");
        let decoded = Decoded::new(&shader).expect("a program that can be run");
        for seed in 0..8 {
            let env = Env::from_seed(seed);
            let outcome = decoded.run(&env, env.fuel(), &mut Scratch::default());
            assert_eq!(outcome.end, End::Finished);
            let written: Vec<(u32, u32)> = outcome.memory.iter().map(|word| (word.word * 4, word.value)).collect();
            assert!(written.len() > 1 && written.iter().all(|(byte, value)| byte == value), "{seed}: {written:?}");
        }
    }
}
