//! Waves of one workgroup, and how they take turns.
//!
//! A program that waits for other waves is run by two waves of a workgroup that has so many. They share memory. A wave runs until it comes to a
//! barrier or ends; then it is the other's turn, and when both are at the barrier both go on. Which one goes first from one
//! barrier to the next follows from the seed. What a wave does between two barriers happens at once, so two programs that do the
//! same between the same barriers leave the same behind, whatever races there are; but a wave that does not wait, or reads or writes on the other
//! side of a barrier, finds what the other one has or has not done yet.

use super::End;
use crate::semantics::LANES;
use crate::semantics::env::{Env, Launch};
use crate::semantics::memory::Memory;
use crate::semantics::sync::{Sync, Synchronized};

/// Why a wave's turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its lanes have ended.
    Done,
    /// It waits for the others.
    Barrier,
}

/// A wave's turn. The memory is that of all.
pub(super) type Turn<'a> = &'a mut dyn FnMut(&mut Memory) -> Result<Stop, End>;

/// How many waves run a program.
pub(super) fn count(launch: Launch, has_barrier: bool) -> u32 {
    if has_barrier && !launch.fragment && launch.threads() > LANES as u32 { 2 } else { 1 }
}

/// The launch of a wave, and its lanes.
pub(super) fn of_number(env: &Env, launch: Launch, count: u32, wave: u32) -> (Launch, u64) {
    let launch = Launch { wave, ..launch };
    (launch, if count == 1 { env.running_lanes() } else { env.lanes_of_wave(launch) })
}

/// Runs waves until both have ended, or something ends the run.
pub(super) fn take_turns(env: &Env, memory: &mut Memory, first: Turn<'_>, mut second: Option<Turn<'_>>) -> End {
    let mut done = [false, second.is_none()];
    for barriers in 0.. {
        let order = if env.second_goes_first(barriers) { [1, 0] } else { [0, 1] };
        for wave in order {
            if done[wave] {
                continue;
            }
            let stop = match &mut second {
                Some(second) if wave == 1 => {
                    // A trace is that of a lane of the first one.
                    let log = memory.stop_log();
                    let stop = second(memory);
                    memory.resume_log(log);
                    stop
                }
                _ => first(memory),
            };
            match stop {
                Ok(Stop::Done) => done[wave] = true,
                Ok(Stop::Barrier) => {}
                Err(end) => return end,
            }
        }
        if done == [true; 2] {
            break;
        }
    }
    End::Finished
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
    pub(super) fn of_all(first: Self, second: Option<Self>) -> Vec<Synchronized> {
        let mut all = first.done;
        all.extend(second.into_iter().flat_map(|second| second.done));
        all
    }
}
