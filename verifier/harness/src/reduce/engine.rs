//! The search: delta debugging over lists of steps, one kind after the other, with halved groups, until no step
//! succeeds.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ir3_compiler::nir::{Shader, validate};

use super::checkpoint::{self, CheckpointError};
use super::clean::{compact, remove_dead_code};
use super::edit::Edit;
use super::size::Size;
use super::steps::shuffle;
use super::subject::{Kind, Subject};
use ir3_programs::generator::{Choices, Seeded};

/// Options of a reduction.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stop after this number of candidates; the result is then not minimal.
    pub candidates: Option<u64>,
    /// The file to save the program to after each step that was taken. A reduction resumes from an existing file.
    pub checkpoint: Option<PathBuf>,
}

/// The progress of a reduction.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The kind of step that was taken last, or is being tried.
    pub kind: &'static str,
    /// The size of the program so far.
    pub size: Size,
    /// The number of candidates that were tested.
    pub candidates: u64,
    /// The number of steps, or groups of steps, that were taken.
    pub taken: u64,
}

/// The result of a reduction.
#[derive(Clone, Debug)]
pub struct Reduced<S = Shader> {
    /// The reduced program, or programs.
    pub program: S,
    /// True if the original program fails. Otherwise `program` is the original program.
    pub reproduced: bool,
    /// True if no known step makes the program smaller; false if the reduction was interrupted or `candidates` were
    /// used up.
    pub minimal: bool,
    /// The final progress.
    pub progress: Progress,
}

/// Reduces a program in one thread. `same` returns true if a program fails in the same way. `progress` is called after
/// each step that was taken and now and then in between, and stops the reduction by returning false.
///
/// # Errors
/// If the checkpoint cannot be read or written.
pub fn run<S: Subject>(
    program: &S,
    same: &mut dyn FnMut(&S) -> bool,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduced<S>, CheckpointError> {
    reduce(program, FailureTest::Alone(same), options, &mut |state, _| progress(state))
}

/// Reduces a program with one thread for each element of `same`, which must all be the same function.
///
/// # Errors
/// If the checkpoint cannot be read or written.
pub fn run_parallel<S: Subject, F: FnMut(&S) -> bool + Send>(
    program: &S,
    same: &mut [F],
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Reduced<S>, CheckpointError> {
    run_watched(program, same, options, &mut |state, _| progress(state))
}

/// Like [`run_parallel`]; `progress` gets the program that has been reached, too.
///
/// # Errors
/// If the checkpoint cannot be read or written.
pub fn run_watched<S: Subject, F: FnMut(&S) -> bool + Send>(
    program: &S,
    same: &mut [F],
    options: &Options,
    progress: &mut Watch<'_, S>,
) -> Result<Reduced<S>, CheckpointError> {
    let many = same.iter_mut().map(|f| f as &mut (dyn FnMut(&S) -> bool + Send)).collect();
    reduce(program, FailureTest::Together(many), options, progress)
}

/// Gets the progress, and the program that has been reached; stops the reduction by returning false.
pub type Watch<'a, S> = dyn FnMut(&Progress, &S) -> bool + 'a;

/// The test for "fails in the same way", for one thread or for several.
enum FailureTest<'a, S> {
    Alone(&'a mut dyn FnMut(&S) -> bool),
    Together(Vec<&'a mut (dyn FnMut(&S) -> bool + Send)>),
}

impl<S> FailureTest<'_, S> {
    /// Tests one program.
    fn run(&mut self, program: &S) -> bool {
        match self {
            FailureTest::Alone(same) => same(program),
            FailureTest::Together(many) => many.first_mut().is_some_and(|same| same(program)),
        }
    }
}

fn reduce<'a, S: Subject>(
    input: &'a S,
    mut test: FailureTest<'a, S>,
    options: &'a Options,
    progress: &'a mut Watch<'a, S>,
) -> Result<Reduced<S>, CheckpointError> {
    let limit = input.size().instructions;
    let mut state = Progress { kind: "start", size: input.size(), candidates: 0, taken: 0 };
    let unchanged =
        |state: Progress, reproduced| Reduced { program: input.clone(), reproduced, minimal: false, progress: state };
    let Some(mut start) = input.finished() else { return Ok(unchanged(state, false)) };
    let saved = match &options.checkpoint {
        Some(path) => checkpoint::read(path, input)?,
        None => None,
    };
    if let Some(saved) = saved.and_then(|saved| saved.finished())
        && saved.size() <= input.size()
        && test.run(&saved)
    {
        start = saved;
    } else if !test.run(&start) {
        // The failure depends on the numbering, or there is none.
        let reproduced = test.run(input);
        return Ok(unchanged(state, reproduced));
    }
    // Every step removes dead code, unless the failure depends on it.
    let alive = start.swept().finished().filter(|alive| test.run(alive));
    state.candidates += 1;
    let sweep = alive.is_some();
    let current = alive.unwrap_or(start);
    state.size = current.size();
    let mut search = ProgramSearch {
        test,
        kinds: input.kinds(),
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
    Ok(Reduced { program: search.current, reproduced: true, minimal, progress: search.state })
}

/// The number of instructions by which a program may grow on a walk.
const SLACK: u32 = 2;

/// The steps are tried after this number of accepted changes of a walk.
const PERIOD: u32 = 20;

/// The number of changes that a walk tries: more for larger programs.
fn proposals(instructions: u32) -> usize {
    match instructions {
        ..=12 => 4000,
        13..=16 => 8000,
        _ => 16000,
    }
}

/// Applies random changes that need not make the program smaller. `None` if nothing has changed, or it is not valid.
pub(super) fn shuffled(base: &Shader, number: usize, sweep: bool) -> Option<Shader> {
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

struct ProgramSearch<'a, S> {
    test: FailureTest<'a, S>,
    kinds: Vec<Kind>,
    input: &'a S,
    current: S,
    /// The greatest number of instructions of a candidate.
    limit: u32,
    /// Remove dead code from candidates.
    sweep: bool,
    /// Accept only candidates with fewer instructions.
    coarse: bool,
    /// The number of instructions at the start of a random walk.
    least: Option<u32>,
    /// The start of the last walk that found nothing.
    walked: Option<S>,
    options: &'a Options,
    progress: &'a mut Watch<'a, S>,
    state: Progress,
    stopped: bool,
}

impl<S: Subject> ProgramSearch<'_, S> {
    /// Tries all kinds in turn until none of them succeeds. Returns false if the search was stopped before.
    fn exhaust(&mut self) -> Result<bool, CheckpointError> {
        loop {
            let mut any = false;
            for kind in 0..self.kinds.len() {
                while self.pass(kind)? {
                    any = true;
                    // Cheap kinds that remove much are repeated at once; the others wait until all kinds have been
                    // tried.
                    if !self.kinds[kind].together {
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

    /// Tries the steps of one kind: all together, halves, quarters, one by one. Returns true if any was taken.
    fn pass(&mut self, kind: usize) -> Result<bool, CheckpointError> {
        let Kind { name, together } = self.kinds[kind];
        self.state.kind = name;
        // Steps refer to entities by the numbers of the program that they were listed for, so that program is edited
        // throughout; the test receives a compacted copy.
        let mut base = self.current.clone();
        let steps = base.list(kind);
        let mut left: Vec<usize> = (0..steps.len()).collect();
        let mut size = if together { steps.len() } else { 1 };
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

    /// Leaves a local minimum by random walks among failing programs of nearly the same size. Now and then the steps
    /// are tried from there, and the first program with fewer instructions is kept; then a new walk starts from it.
    /// Returns true if anything was found.
    ///
    /// A walk is a function of its first program alone. So if a reduced program is reduced again, its walk is the same
    /// and finds nothing.
    fn shake(&mut self) -> Result<bool, CheckpointError> {
        self.state.kind = "walk";
        let mut any = false;
        while !self.current.is_small() && !self.stopped && self.walked.as_ref() != Some(&self.current) {
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

    /// Walks until there is a program of fewer than `least` instructions. Returns true if one was found.
    fn walk(&mut self, least: u32) -> Result<bool, CheckpointError> {
        let proposals = proposals(least);
        let mut proposal = 0;
        let mut accepted = 0;
        while proposal < proposals {
            let (base, sweep) = (self.current.clone(), self.sweep);
            let make = |number: usize| {
                let candidate = base.shuffled(proposal + number, sweep)?;
                (candidate.size().instructions <= least + SLACK).then_some(((), candidate))
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

    /// Accepts a candidate.
    fn take(&mut self, candidate: S) -> Result<(), CheckpointError> {
        self.current = candidate;
        self.state.size = self.current.size();
        // Intermediate programs of a walk are not saved.
        if self.least.is_some_and(|least| self.state.size.instructions >= least) {
            return Ok(());
        }
        self.state.taken += 1;
        if let Some(path) = &self.options.checkpoint {
            checkpoint::write(path, self.input, &self.current)?;
        }
        self.stopped |= !(self.progress)(&self.state, &self.current);
        Ok(())
    }

    /// Finds the first group whose steps, applied together, give a smaller program that fails: its number, the edited
    /// program, and its compacted copy.
    fn first(&mut self, base: &S, steps: &[S::Step], left: &[usize], groups: &[Range<usize>]) -> Option<(usize, S, S)> {
        let (size, limit, sweep, coarse) = (self.state.size, self.limit, self.sweep, self.coarse);
        let make = |group: usize| {
            let group: Vec<&S::Step> = left[groups[group].clone()].iter().map(|&step| &steps[step]).collect();
            let edited = base.edited(&group, sweep)?;
            let new = edited.size();
            if new >= size || new.instructions > limit || (coarse && new.instructions == size.instructions) {
                return None;
            }
            let candidate = edited.finished()?;
            Some((edited, candidate))
        };
        self.first_of(groups.len(), &make)
    }

    /// Tests the candidates that `make` returns for the numbers below `count`, in order, until one fails. Returns its
    /// number and the candidate. Neither the result nor the number of candidates depends on the number of threads.
    fn first_of<T: Send>(
        &mut self,
        count: usize,
        make: &(dyn Fn(usize) -> Option<(T, S)> + Sync),
    ) -> Option<(usize, T, S)> {
        let budget = self.options.candidates.map_or(u64::MAX, |all| all.saturating_sub(self.state.candidates));
        if budget == 0 {
            self.stopped = true;
            return None;
        }
        match &mut self.test {
            FailureTest::Alone(same) => {
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
                    if self.state.candidates.is_multiple_of(64) && !(self.progress)(&self.state, &self.current) {
                        self.stopped = true;
                        return None;
                    }
                }
                None
            }
            FailureTest::Together(many) => {
                let shared = Shared {
                    next: AtomicUsize::new(0),
                    best: AtomicUsize::new(usize::MAX),
                    tested: AtomicU64::new(0),
                    stop: AtomicBool::new(false),
                    numbers: Mutex::default(),
                    found: Mutex::new(None),
                };
                let work = |same: &mut (dyn FnMut(&S) -> bool + Send), watch: &mut dyn FnMut(u64) -> bool| {
                    let mut numbers = Vec::new();
                    loop {
                        let number = shared.next.fetch_add(1, Ordering::Relaxed);
                        // Threads finish the earlier numbers that they took, so the least failing number is found. One
                        // candidate over the budget is allowed, to detect that the budget was exceeded.
                        let over = number >= count
                            || number > shared.best.load(Ordering::Acquire)
                            || shared.tested.load(Ordering::Relaxed) > budget;
                        if over || shared.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let Some((edited, candidate)) = make(number) else { continue };
                        let tested = shared.tested.fetch_add(1, Ordering::Relaxed) + 1;
                        numbers.push(number);
                        if same(&candidate) && shared.best.fetch_min(number, Ordering::AcqRel) > number {
                            let mut found = shared.found.lock().unwrap_or_else(PoisonError::into_inner);
                            if found.as_ref().is_none_or(|(other, ..)| *other > number) {
                                *found = Some((number, edited, candidate));
                            }
                        }
                        if !watch(tested) {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                    }
                    shared.numbers.lock().unwrap_or_else(PoisonError::into_inner).extend(numbers);
                };
                let (mine, others) = many.split_first_mut()?;
                let (state, current, progress) = (&self.state, &self.current, &mut self.progress);
                std::thread::scope(|scope| {
                    for same in others {
                        let work = &work;
                        scope.spawn(move || work(*same, &mut |_| true));
                    }
                    // The calling thread reports progress.
                    let mut last = 0;
                    work(*mine, &mut |tested| {
                        if tested < last + 64 {
                            return true;
                        }
                        last = tested;
                        progress(&Progress { candidates: state.candidates + tested, ..state.clone() }, current)
                    });
                });
                let found = shared.found.into_inner().unwrap_or_else(PoisonError::into_inner);
                // Count the candidates that a single thread would have tested: none after the one that was found.
                let last = found.as_ref().map_or(usize::MAX, |(number, ..)| *number);
                let numbers = shared.numbers.into_inner().unwrap_or_else(PoisonError::into_inner);
                let tested = numbers.into_iter().filter(|&number| number <= last).count() as u64;
                self.state.candidates += tested.min(budget);
                self.stopped |= shared.stop.into_inner() || tested > budget;
                found.filter(|_| tested <= budget)
            }
        }
    }
}

/// The state that the threads of one search share.
struct Shared<T, S> {
    next: AtomicUsize,
    best: AtomicUsize,
    tested: AtomicU64,
    stop: AtomicBool,
    /// The numbers of the candidates that were tested.
    numbers: Mutex<Vec<usize>>,
    found: Mutex<Option<(usize, T, S)>>,
}
