//! The search: kinds of steps in turn, many steps at once, then fewer, until nothing helps.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ir3_compiler::nir::{Shader, validate};

use super::checkpoint::{self, CheckpointError};
use super::clean::{compact, remove_dead_code};
use super::edit::{Edit, View};
use super::size::Size;
use super::steps::{KINDS, Kind, Steps, shuffle};
use crate::programs::generator::{Choices, Seeded};

/// How to reduce.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stop after so many candidates; what there is then is the result.
    pub candidates: Option<u64>,
    /// Where to keep what was reached, after each step that was taken. A file that is there is gone on with.
    pub checkpoint: Option<PathBuf>,
}

/// How far a reduction has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The kind of the step that was taken last, or is being tried.
    pub kind: &'static str,
    /// The size that was reached.
    pub size: Size,
    /// Candidates that were asked about.
    pub candidates: u64,
    /// Steps, or groups of steps, that were taken.
    pub taken: u64,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The program.
    pub shader: Shader,
    /// Whether the program that went in failed at all. If not, it came out as it was.
    pub reproduced: bool,
    /// Whether no known step makes it smaller. Not so when it was interrupted, or `candidates` were used up.
    pub minimal: bool,
    /// How far it came.
    pub progress: Progress,
}

/// Reduces a program, with one thread. `same` says whether a program fails in the same way; `progress` is called after
/// each step that was taken and now and then between, and stops the reduction by giving false.
///
/// # Errors
/// When the checkpoint cannot be read or written.
pub fn run(
    shader: &Shader,
    same: &mut dyn FnMut(&Shader) -> bool,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduced, CheckpointError> {
    reduce(shader, Asked::Alone(same), options, progress)
}

/// Reduces a program, with one thread for each of `same`, which must all give the same answers.
///
/// # Errors
/// When the checkpoint cannot be read or written.
pub fn run_parallel<F: FnMut(&Shader) -> bool + Send>(
    shader: &Shader,
    same: &mut [F],
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduced, CheckpointError> {
    let many = same.iter_mut().map(|f| f as &mut (dyn FnMut(&Shader) -> bool + Send)).collect();
    reduce(shader, Asked::Together(many), options, progress)
}

/// Who is asked.
enum Asked<'a> {
    Alone(&'a mut dyn FnMut(&Shader) -> bool),
    Together(Vec<&'a mut (dyn FnMut(&Shader) -> bool + Send)>),
}

impl Asked<'_> {
    /// Asks about one program.
    fn ask(&mut self, shader: &Shader) -> bool {
        match self {
            Asked::Alone(same) => same(shader),
            Asked::Together(many) => many.first_mut().is_some_and(|same| same(shader)),
        }
    }
}

fn reduce<'a>(
    input: &'a Shader,
    mut asked: Asked<'a>,
    options: &'a Options,
    progress: &'a mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduced, CheckpointError> {
    let limit = Size::of(input).instructions;
    let mut state = Progress { kind: "start", size: Size::of(input), candidates: 0, taken: 0 };
    let as_it_was =
        |state: Progress, reproduced| Reduced { shader: input.clone(), reproduced, minimal: false, progress: state };
    if validate(input).is_err() {
        return Ok(as_it_was(state, false));
    }
    let mut start = compact(input);
    let saved = match &options.checkpoint {
        Some(path) => checkpoint::read(path, input)?,
        None => None,
    };
    if let Some(saved) = saved
        && validate(&saved).is_ok()
        && Size::of(&saved) <= Size::of(input)
        && asked.ask(&saved)
    {
        start = compact(&saved);
    } else if !asked.ask(&start) {
        // The numbering matters to the failure, or there is none.
        let reproduced = asked.ask(input);
        return Ok(as_it_was(state, reproduced));
    }
    // Dead code goes with every step, unless it is what fails.
    let mut edit = Edit::new(start.clone());
    remove_dead_code(&mut edit);
    let alive = compact(&edit.shader);
    let sweep = asked.ask(&alive);
    state.candidates += 1;
    let current = if sweep { alive } else { start };
    state.size = Size::of(&current);
    let mut search = Search {
        asked,
        current,
        limit,
        sweep,
        coarse: false,
        least: None,
        walked: None,
        options,
        progress,
        input,
        state,
        stopped: false,
    };
    let mut minimal = search.exhaust()?;
    while minimal && search.shake()? {
        minimal = search.exhaust()?;
    }
    minimal &= !search.stopped;
    Ok(Reduced { shader: search.current, reproduced: true, minimal, progress: search.state })
}

/// A program of so many instructions is read in one look; walking for less is not worth while.
const SMALL: u32 = 8;

/// Instructions that a program may have on a walk beyond those that the walk began with.
const SLACK: u32 = 2;

/// Changes that a walk takes until the steps are tried.
const PERIOD: u32 = 20;

/// Changes that a walk tries: more where more is left.
fn proposals(instructions: u32) -> usize {
    match instructions {
        ..=12 => 4000,
        13..=16 => 8000,
        _ => 16000,
    }
}

/// A program with some changes that need not make it smaller. `None` where nothing has changed, or it is not valid.
fn shuffled(base: &Shader, number: usize, sweep: bool) -> Option<Shader> {
    let mut choices = Seeded::new(number as u64);
    let mut edit = Edit::new(base.clone());
    let changes = 1 + choices.below(4).saturating_sub(1);
    let mut changed = false;
    for _ in 0..changes {
        changed |= shuffle::change(&mut edit, &mut choices);
    }
    if !changed {
        return None;
    }
    if sweep {
        remove_dead_code(&mut edit);
    }
    let candidate = compact(&edit.shader);
    (candidate != *base && validate(&candidate).is_ok()).then_some(candidate)
}

struct Search<'a> {
    asked: Asked<'a>,
    input: &'a Shader,
    current: Shader,
    /// Instructions that a candidate may have at most.
    limit: u32,
    /// Whether dead code is removed from candidates.
    sweep: bool,
    /// Whether only candidates with fewer instructions count.
    coarse: bool,
    /// On a walk, the instructions that there were at its start.
    least: Option<u32>,
    /// The program that was walked from last, and nothing was found.
    walked: Option<Shader>,
    options: &'a Options,
    progress: &'a mut dyn FnMut(&Progress) -> bool,
    state: Progress,
    stopped: bool,
}

impl Search<'_> {
    /// Tries all kinds in turn until none of them finds anything. Says whether it came that far.
    fn exhaust(&mut self) -> Result<bool, CheckpointError> {
        loop {
            let mut any = false;
            for kind in KINDS {
                while self.pass(kind)? {
                    any = true;
                    // What is cheap and removes much is tried again at once; the rest has its turn in the next round.
                    if !kind.together {
                        break;
                    }
                }
                if self.stopped {
                    return Ok(false);
                }
            }
            if !any {
                return Ok(true);
            }
        }
    }

    /// Tries the steps of one kind: all together, halves, quarters, one by one. Says whether any was taken.
    fn pass(&mut self, kind: &Kind) -> Result<bool, CheckpointError> {
        self.state.kind = kind.name;
        // Steps go by the numbers of the program that they were listed for, so that one is edited all along; what is
        // asked about is the same program compacted.
        let mut base = self.current.clone();
        let steps = (kind.list)(&View::new(&base));
        let mut left: Vec<usize> = (0..steps.len()).collect();
        let mut size = if kind.together { steps.len() } else { 1 };
        let mut any = false;
        while size > 0 {
            let mut at = 0;
            while at < left.len() {
                let groups: Vec<Range<usize>> =
                    (at..left.len()).step_by(size).map(|from| from..left.len().min(from + size)).collect();
                let Some((group, edited, candidate)) = self.first(&base, &steps, &left, &groups) else { break };
                base = edited;
                at = groups[group].start;
                left.drain(groups[group].clone());
                any = true;
                self.take(candidate)?;
                if self.stopped {
                    return Ok(any);
                }
            }
            if self.stopped {
                return Ok(any);
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(any)
    }

    /// Walks among programs that fail and are hardly larger, by changes that need not make them smaller, tries the steps
    /// from there now and then, and keeps the first program that has fewer instructions; then again from that one. A
    /// local minimum of the steps is left that way. Says whether anything was found.
    ///
    /// The walk is a function of the program alone, and begins anew with each that was found: a program that was reduced
    /// once is walked from in the same way when it is reduced again, and nothing is found.
    fn shake(&mut self) -> Result<bool, CheckpointError> {
        self.state.kind = "walk";
        let mut any = false;
        while self.state.size.instructions > SMALL && !self.stopped && self.walked.as_ref() != Some(&self.current) {
            let (start, least) = (self.current.clone(), self.state.size);
            self.least = Some(least.instructions);
            let found = self.walk(least.instructions);
            self.least = None;
            if found? {
                any = true;
            } else {
                (self.current, self.state.size) = (start.clone(), least);
                self.walked = Some(start);
            }
        }
        Ok(any)
    }

    /// One walk, until there is a program of fewer than `least` instructions. Says whether it came to one.
    fn walk(&mut self, least: u32) -> Result<bool, CheckpointError> {
        let proposals = proposals(least);
        let mut proposal = 0;
        let mut accepted = 0;
        while proposal < proposals {
            let (base, sweep) = (self.current.clone(), self.sweep);
            let make = |number: usize| {
                let candidate = shuffled(&base, proposal + number, sweep)?;
                (Size::of(&candidate).instructions <= least + SLACK).then_some(((), candidate))
            };
            let Some((number, (), candidate)) = self.first_of(proposals - proposal, &make) else { break };
            proposal += number + 1;
            accepted += 1;
            self.take(candidate)?;
            if self.state.size.instructions < least || accepted % PERIOD == 0 {
                self.coarse = true;
                let done = self.exhaust();
                self.coarse = false;
                done?;
            }
            if self.state.size.instructions < least || self.stopped {
                break;
            }
        }
        Ok(self.state.size.instructions < least)
    }

    /// Takes a candidate.
    fn take(&mut self, candidate: Shader) -> Result<(), CheckpointError> {
        self.current = candidate;
        self.state.size = Size::of(&self.current);
        // What a walk comes by on its way is not kept.
        if self.least.is_some_and(|least| self.state.size.instructions >= least) {
            return Ok(());
        }
        self.state.taken += 1;
        if let Some(path) = &self.options.checkpoint {
            checkpoint::write(path, self.input, &self.current)?;
        }
        self.stopped |= !(self.progress)(&self.state);
        Ok(())
    }

    /// The first group whose steps, taken together, give a smaller program that fails: its number, the program as it
    /// was edited, and the same as it was asked about.
    fn first(
        &mut self,
        base: &Shader,
        steps: &Steps,
        left: &[usize],
        groups: &[Range<usize>],
    ) -> Option<(usize, Shader, Shader)> {
        let (size, limit, sweep, coarse) = (self.state.size, self.limit, self.sweep, self.coarse);
        let make = |group: usize| {
            let mut edit = Edit::new(base.clone());
            let mut changed = false;
            for &step in &left[groups[group].clone()] {
                changed |= steps[step].apply(&mut edit);
            }
            if !changed {
                return None;
            }
            if sweep {
                remove_dead_code(&mut edit);
            }
            let new = Size::of(&edit.shader);
            if new >= size || new.instructions > limit || (coarse && new.instructions == size.instructions) {
                return None;
            }
            let candidate = compact(&edit.shader);
            validate(&candidate).is_ok().then_some((edit.shader, candidate))
        };
        self.first_of(groups.len(), &make)
    }

    /// Asks about the candidates that `make` gives for the numbers below `count`, in their order, until one fails: its
    /// number, and what was made. Neither that nor the count of candidates depends on the number of threads.
    fn first_of<T: Send>(
        &mut self,
        count: usize,
        make: &(dyn Fn(usize) -> Option<(T, Shader)> + Sync),
    ) -> Option<(usize, T, Shader)> {
        let budget = self.options.candidates.map_or(u64::MAX, |all| all.saturating_sub(self.state.candidates));
        if budget == 0 {
            self.stopped = true;
            return None;
        }
        match &mut self.asked {
            Asked::Alone(same) => {
                for number in 0..count {
                    let Some((edited, candidate)) = make(number) else { continue };
                    if self.options.candidates.is_some_and(|all| self.state.candidates >= all) {
                        self.stopped = true;
                        return None;
                    }
                    self.state.candidates += 1;
                    if same(&candidate) {
                        return Some((number, edited, candidate));
                    }
                    if self.state.candidates.is_multiple_of(64) && !(self.progress)(&self.state) {
                        self.stopped = true;
                        return None;
                    }
                }
                None
            }
            Asked::Together(many) => {
                let shared = Shared {
                    next: AtomicUsize::new(0),
                    best: AtomicUsize::new(usize::MAX),
                    asked: AtomicU64::new(0),
                    stop: AtomicBool::new(false),
                    numbers: Mutex::default(),
                    found: Mutex::new(None),
                };
                let work = |same: &mut (dyn FnMut(&Shader) -> bool + Send), watch: &mut dyn FnMut(u64) -> bool| {
                    let mut numbers = Vec::new();
                    loop {
                        let number = shared.next.fetch_add(1, Ordering::Relaxed);
                        // Whoever took an earlier number finishes it, so the least that fails is found. One candidate
                        // more than there may be shows that there would have been more.
                        let over = number >= count
                            || number > shared.best.load(Ordering::Acquire)
                            || shared.asked.load(Ordering::Relaxed) > budget;
                        if over || shared.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let Some((edited, candidate)) = make(number) else { continue };
                        let asked = shared.asked.fetch_add(1, Ordering::Relaxed) + 1;
                        numbers.push(number);
                        if same(&candidate) && shared.best.fetch_min(number, Ordering::AcqRel) > number {
                            let mut found = shared.found.lock().unwrap_or_else(PoisonError::into_inner);
                            if found.as_ref().is_none_or(|(other, ..)| *other > number) {
                                *found = Some((number, edited, candidate));
                            }
                        }
                        if !watch(asked) {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                    }
                    shared.numbers.lock().unwrap_or_else(PoisonError::into_inner).extend(numbers);
                };
                let (mine, others) = many.split_first_mut()?;
                let (state, progress) = (&self.state, &mut self.progress);
                std::thread::scope(|scope| {
                    for same in others {
                        let work = &work;
                        scope.spawn(move || work(*same, &mut |_| true));
                    }
                    // The thread that was called reports.
                    let mut last = 0;
                    work(*mine, &mut |asked| {
                        if asked < last + 64 {
                            return true;
                        }
                        last = asked;
                        progress(&Progress { candidates: state.candidates + asked, ..state.clone() })
                    });
                });
                let found = shared.found.into_inner().unwrap_or_else(PoisonError::into_inner);
                // What one thread alone would have asked about: nothing behind what was found.
                let last = found.as_ref().map_or(usize::MAX, |(number, ..)| *number);
                let numbers = shared.numbers.into_inner().unwrap_or_else(PoisonError::into_inner);
                let asked = numbers.into_iter().filter(|&number| number <= last).count() as u64;
                self.state.candidates += asked.min(budget);
                self.stopped |= shared.stop.into_inner() || asked > budget;
                found.filter(|_| asked <= budget)
            }
        }
    }
}

/// What the threads of one search share.
struct Shared<T> {
    next: AtomicUsize,
    best: AtomicUsize,
    asked: AtomicU64,
    stop: AtomicBool,
    /// The numbers of the candidates that were asked about.
    numbers: Mutex<Vec<usize>>,
    found: Mutex<Option<(usize, T, Shader)>>,
}
