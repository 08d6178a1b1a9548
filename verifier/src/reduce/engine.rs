//! The search: kinds of steps in turn, many steps at once, then fewer, until nothing helps.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ir3_compiler::nir::{Shader, validate};

use super::checkpoint::{self, CheckpointError};
use super::clean::{compact, remove_dead_code};
use super::edit::{Edit, View};
use super::size::Size;
use super::steps::{KINDS, Kind, Steps};

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
    let mut search = Search { asked, current, limit, sweep, options, progress, input, state, stopped: false };
    let minimal = search.exhaust()?;
    Ok(Reduced { shader: search.current, reproduced: true, minimal, progress: search.state })
}

struct Search<'a> {
    asked: Asked<'a>,
    input: &'a Shader,
    current: Shader,
    /// Instructions that a candidate may have at most.
    limit: u32,
    /// Whether dead code is removed from candidates.
    sweep: bool,
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

    /// Takes a candidate.
    fn take(&mut self, candidate: Shader) -> Result<(), CheckpointError> {
        self.current = candidate;
        self.state.size = Size::of(&self.current);
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
        let (size, limit, sweep) = (self.state.size, self.limit, self.sweep);
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
            if new >= size || new.instructions > limit {
                return None;
            }
            let candidate = compact(&edit.shader);
            validate(&candidate).is_ok().then_some((edit.shader, candidate))
        };
        let budget = self.options.candidates.map_or(u64::MAX, |all| all.saturating_sub(self.state.candidates));
        if budget == 0 {
            self.stopped = true;
            return None;
        }
        match &mut self.asked {
            Asked::Alone(same) => {
                for group in 0..groups.len() {
                    let Some((edited, candidate)) = make(group) else { continue };
                    if self.options.candidates.is_some_and(|all| self.state.candidates >= all) {
                        self.stopped = true;
                        return None;
                    }
                    self.state.candidates += 1;
                    if same(&candidate) {
                        return Some((group, edited, candidate));
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
                    asked: AtomicUsize::new(0),
                    stop: AtomicBool::new(false),
                    found: Mutex::new(None),
                };
                let work = |same: &mut (dyn FnMut(&Shader) -> bool + Send), watch: &mut dyn FnMut(u64) -> bool| {
                    loop {
                        let group = shared.next.fetch_add(1, Ordering::Relaxed);
                        // Whoever took an earlier number finishes it, so the least that fails is found.
                        let over = group >= groups.len() || group > shared.best.load(Ordering::Acquire);
                        if over || shared.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let Some((edited, candidate)) = make(group) else { continue };
                        let asked = shared.asked.fetch_add(1, Ordering::Relaxed) as u64 + 1;
                        if same(&candidate) && shared.best.fetch_min(group, Ordering::AcqRel) > group {
                            let mut found = shared.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            if found.as_ref().is_none_or(|(other, ..)| *other > group) {
                                *found = Some((group, edited, candidate));
                            }
                        }
                        if asked >= budget || !watch(asked) {
                            shared.stop.store(true, Ordering::Relaxed);
                        }
                    }
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
                self.state.candidates += shared.asked.into_inner() as u64;
                self.stopped |= shared.stop.into_inner();
                shared.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
            }
        }
    }
}

/// What the threads of one search share.
struct Shared {
    next: AtomicUsize,
    best: AtomicUsize,
    asked: AtomicUsize,
    stop: AtomicBool,
    found: Mutex<Option<(usize, Shader, Shader)>>,
}
