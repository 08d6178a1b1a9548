//! Waves of one workgroup, and how they take turns.
//!
//! A program that waits for other waves is run by two waves of a workgroup that has so many. They share memory. A wave runs until it comes to a
//! barrier or ends; then it is the other's turn, and when both are at the barrier both go on. Which one goes first from one
//! barrier to the next follows from the seed. What a wave does between two barriers happens at once, so two programs that do the
//! same between the same barriers leave the same behind, whatever races there are; but a wave that does not wait, or reads or writes on the other
//! side of a barrier, finds what the other one has or has not done yet.

use super::{End, Outcome, Outputs, Scratch};
use crate::semantics::arithmetic::rows::LANES;
use crate::semantics::environment::env::{Env, Launch};
use crate::semantics::environment::memory::Memory;
use crate::semantics::environment::sync::{Sync, Synchronized};

/// Why a wave's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its lanes have ended.
    Done,
    /// It waits for the others.
    Barrier,
}

/// How many waves run a program.
pub(super) fn count(launch: Launch, has_barrier: bool) -> u32 {
    if has_barrier && !launch.fragment && launch.threads() > LANES as u32 { 2 } else { 1 }
}

/// What the waves of both interpreters have.
#[derive(Debug)]
pub(super) struct State {
    pub launch: Launch,
    /// The lanes that are there at the start.
    pub lanes: u64,
    /// The memory of all waves, while it is this one's turn.
    pub memory: Memory,
    /// What this one has stored, otherwise.
    stored: [u32; 2],
    pub helpers: u64,
    pub killed: u64,
    pub outputs: Outputs,
    pub together: Together,
    pub executed: u64,
}

impl State {
    /// That of wave `number` of so many, which has not begun to run. It has the memory of its buffers.
    pub fn new(env: &Env, launch: Launch, count: u32, number: u32, memory: Memory, outputs: Outputs) -> Self {
        let helpers = env.helper_lanes(launch);
        let launch = Launch { wave: number, ..launch };
        let lanes = if count == 1 { env.running_lanes() } else { env.lanes_of_wave(launch) };
        let together = Together::default();
        Self { launch, lanes, memory, stored: [0; 2], helpers, killed: 0, outputs, together, executed: 0 }
    }
}

/// The buffers of the second wave, if there is one.
pub(super) fn second_scratch(count: u32, scratch: &mut Scratch) -> Option<Box<Scratch>> {
    (count > 1).then(|| scratch.second.take().unwrap_or_default())
}

/// Gives the buffers back that waves took.
pub(super) fn give_back(scratch: &mut Scratch, memory: Memory, second: Option<Box<Scratch>>) {
    scratch.memory = memory;
    scratch.second = second.or_else(|| scratch.second.take());
}

/// Runs one wave or two in turns. `first` and `second` run a wave to its next barrier, or to its end. Returns the memory of both, too.
pub(super) fn run<W: AsMut<State>>(
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
            // A trace is that of a lane of the first one.
            let log = memory.stop_log();
            let stop = turn(&mut **other, &mut memory, &mut second);
            memory.resume_log(log);
            stop
        }
        _ => turn(wave, &mut memory, &mut first),
    };
    let end = take_turns(env, &mut done, &mut next);
    let state = wave.as_mut();
    let other = other.map(AsMut::as_mut);
    let (together, executed) = other.map(|other| (&mut other.together, other.executed)).unzip();
    let outcome = Outcome {
        end,
        outputs: std::mem::take(&mut state.outputs),
        memory: memory.written(),
        loads: memory.loads(),
        stored: memory.take_log(),
        env: env.clone(),
        killed: state.killed,
        helpers: state.helpers,
        lanes: state.lanes,
        synchronized: Together::of_all(&mut state.together, together),
        executed: state.executed + executed.unwrap_or(0),
    };
    (outcome, memory)
}

/// Runs waves until all have ended, or something ends the run.
fn take_turns(env: &Env, done: &mut [bool; 2], next: &mut dyn FnMut(usize) -> Result<Stop, End>) -> End {
    for barriers in 0.. {
        let order = if env.second_goes_first(barriers) { [1, 0] } else { [0, 1] };
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

/// A wave's turn, with the memory of all.
fn turn<W: AsMut<State>>(
    wave: &mut W,
    memory: &mut Memory,
    go_on: &mut impl FnMut(&mut W) -> Result<Stop, End>,
) -> Result<Stop, End> {
    let state = wave.as_mut();
    if state.lanes == 0 {
        return Ok(Stop::Done);
    }
    memory.set_stored(state.stored);
    std::mem::swap(&mut state.memory, memory);
    let stop = go_on(wave);
    let state = wave.as_mut();
    std::mem::swap(&mut state.memory, memory);
    state.stored = memory.stored();
    stop
}

/// What a wave has to do with others, by now.
#[derive(Debug, Default)]
pub(super) struct Together {
    done: Vec<Synchronized>,
}

impl Together {
    /// The wave comes to an operation on waves. Returns true if its turn is over.
    pub(super) fn comes_to(&mut self, sync: Sync, memory: &Memory) -> bool {
        self.done.push(Synchronized { sync, stored: memory.stored() });
        sync == Sync::Barrier
    }

    /// All that the waves did, one after the other.
    fn of_all(first: &mut Self, second: Option<&mut Self>) -> Vec<Synchronized> {
        let mut all = std::mem::take(&mut first.done);
        all.extend(second.into_iter().flat_map(|second| second.done.drain(..)));
        all
    }
}
