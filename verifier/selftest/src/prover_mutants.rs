//! Campaigns against provers without one of their side conditions ([`guards`]).
//!
//! A campaign is a stream of pairs of programs. Those pairs count that differ: a run of the interpreter shows it, or
//! they differ by construction. A missing condition is *noticed* if the prover proves such a pair. Pairs are generated
//! once for all conditions: the complete prover is run on a pair first, which records the conditions that decided
//! something there, and only these are left out on it, one at a time. A pair that the complete prover proves is a wrong
//! proof of today's prover, and worth more than all the rest.

use crate::kill_matrix::Mutants;
use cpu_time::ThreadTime;
use ir3_compiler::pipeline::Stage;
use ir3_compiler::target::Target;
use ir3_harness::check::{Engine as _, EngineKind, Registers};
use ir3_harness::check::{Verdict, compare_snapshots};
use ir3_programs::adversarial;
use ir3_programs::adversarial::{FAMILIES, Family};
use ir3_programs::input;
use ir3_programs::mesa::pair_file::read_pairs;
use ir3_programs::seeds::program_seed;
use ir3_programs::{Case, Question};
use ir3_prove::simulation;
use ir3_prove::simulation::Limits;
use ir3_prove::solver::{Budget, Floats, Z3};
use ir3_semantics::Snapshot;
use ir3_semantics::environment::env::Env;
use ir3_semantics::support::guards;
use ir3_semantics::support::guards::{Guard, Guards, NotBuilt};
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::threads;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of environments in which a pair is compared.
const RUNS: u32 = 6;

/// The resource limit of a query, in the solver's unit.
const QUESTION: u64 = 400_000;

/// The name of the campaign of handmade pairs.
pub const BY_HAND: &str = "pairs";

/// The name of the campaign of planted miscompilations.
const KILL_MATRIX: &str = "kill-matrix";

/// The names of all campaigns.
pub fn names() -> impl Iterator<Item = &'static str> {
    [BY_HAND, KILL_MATRIX].into_iter().chain(FAMILIES.iter().map(|family| family.name))
}

/// A pair of programs for a campaign.
pub struct Candidate {
    /// The campaign.
    pub campaign: &'static str,
    /// Its number there.
    pub number: u64,
    /// The change.
    pub change: String,
    /// The stage between the programs, if there is one.
    pub stage: Option<Stage>,
    /// The program whose meaning is to be preserved.
    pub before: Snapshot,
    /// The changed program.
    pub after: Snapshot,
    /// The programs differ by construction.
    pub differs: bool,
    envs: Vec<Env>,
}

impl Candidate {
    fn differs(&self, machine: &Target) -> bool {
        self.differs
            || matches!(compare_snapshots(&self.before, &self.after, machine, &self.envs).0, Verdict::Refuted(_))
    }

    fn question<'a>(&'a self, machine: &'a Target) -> Question<'a> {
        Question {
            stage: self.stage,
            before: (&self.before).into(),
            after: (&self.after).into(),
            machine,
            envs: &self.envs,
        }
    }

    /// The provers that apply to the pair.
    fn engines(&self) -> SmallVec<[EngineKind; 2]> {
        let moves = self.stage.is_none_or(Stage::moves_values)
            && self.before.as_ir3().is_some()
            && self.after.as_ir3().is_some();
        moves.then_some(EngineKind::Registers).into_iter().chain([EngineKind::Smt]).collect()
    }

    /// Runs a prover on the pair. The error is the reason why there is no proof.
    fn proved(&self, engine: EngineKind, limits: &Limits, machine: &Target) -> Result<(), String> {
        let proved = || match engine {
            EngineKind::Registers => match Registers.verdict(&self.question(machine)) {
                Some(Verdict::Proved { .. }) => Ok(()),
                Some(Verdict::Unknown(why)) => Err(why.to_string()),
                _ => Err("no question for this engine".to_owned()),
            },
            _ => {
                let (before, after) = ((&self.before).into(), (&self.after).into());
                if simulation::same_code(before, after, machine).is_some() {
                    return Ok(());
                }
                let mut solver = Z3 { floats: Floats::default() };
                let proof = simulation::prove(before, after, machine, limits, &mut solver);
                proof.map(|_| ()).map_err(|why| why.to_string())
            }
        };
        // An engine may panic without a condition.
        catch(proved).unwrap_or_else(|_| Err("the engine breaks".to_owned()))
    }
}

/// Reads the pairs of a folder of handmade ones (`corpus/pairs`) that no prover may prove: those whose head
/// expects `refuted`, `not proved` or `never proved`.
///
/// # Errors
/// If a file or a folder cannot be read, or a file is not a program.
pub fn by_hand(folder: &Path, machine: &Target) -> Result<Vec<Candidate>, String> {
    let files = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let list = fs::read_dir(folder).and_then(|list| list.map(|entry| Ok(entry?.path())).collect());
        let mut list: Vec<PathBuf> = list.map_err(|error| format!("{}: {error}", folder.display()))?;
        list.sort_unstable();
        Ok(list)
    };
    let mut found = Vec::new();
    for family in files(folder)?.into_iter().filter(|path| path.is_dir()) {
        for file in files(&family)? {
            let path = file.to_string_lossy().into_owned();
            let Some(start) = path.strip_suffix(".pair") else { continue };
            let name = start.strip_prefix(&*folder.to_string_lossy()).unwrap_or(start).trim_start_matches('/');
            let family = name.split('/').next().unwrap_or_default();
            for pair in read_pairs(&file).map_err(|error| error.to_string())? {
                let expected = pair.head.first().and_then(|line| line.strip_prefix("expect: ")).unwrap_or_default();
                let unproved = ["refuted", "not proved", "never proved"];
                if !unproved.iter().any(|verdict| expected.starts_with(verdict)) || expected.contains("gpu=") {
                    continue;
                }
                let [before, after] = input::load_pair(&pair, Some(*machine)).map_err(|error| error.to_string())?;
                found.push(Candidate {
                    campaign: BY_HAND,
                    number: found.len() as u64,
                    change: pair.name.map_or_else(|| name.to_owned(), |name| format!("{family}/{name}")),
                    stage: None,
                    before,
                    after,
                    differs: true,
                    envs: Vec::new(),
                });
            }
        }
    }
    Ok(found)
}

/// Most pairs with divergent lanes are equivalent or cannot be proved: this many times more are generated.
const MORE: u64 = 10;

/// The campaigns of generated programs: pairs of each adversarial family, then as many planted miscompilations, then
/// more pairs of the families with divergent lanes. Only campaigns selected by name are generated.
pub fn campaigns<'a>(
    seed: u64,
    programs: u64,
    machine: &'a Target,
    is_selected: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = Candidate> + Send + use<'a> {
    let asked_of = |which: fn(&str) -> bool| -> Vec<&'static Family> {
        FAMILIES.iter().filter(|family| which(family.name) && is_selected(family.name)).collect()
    };
    let all = asked_of(|_| true);
    let diverge = asked_of(|name| matches!(name, "moves" | "waves"));
    let some = programs * all.len() as u64;
    let more = programs * MORE * diverge.len() as u64;
    let pairs = of_families(all, seed, 0..some, machine);
    let mutants = Mutants::new(seed, programs / 20 + 1, machine);
    let count = if is_selected(KILL_MATRIX) { programs as usize } else { 0 };
    let mutants = (0..).zip(mutants).take(count).map(|(number, mutant)| Candidate {
        campaign: KILL_MATRIX,
        number,
        change: mutant.kind.to_owned(),
        stage: Some(mutant.stage),
        envs: Vec::new(),
        before: mutant.before,
        after: mutant.after,
        // Every mutant differs.
        differs: true,
    });
    pairs.chain(mutants).chain(of_families(diverge, program_seed(seed, MORE), 0..more, machine))
}

fn of_families(
    families: Vec<&'static Family>,
    seed: u64,
    numbers: Range<u64>,
    machine: &Target,
) -> impl Iterator<Item = Candidate> + Send + use<> {
    let count = families.len().max(1) as u64;
    adversarial::pairs(families, seed, numbers, RUNS, machine).map(move |pair| Candidate {
        campaign: pair.family.unwrap_or("waves"),
        number: pair.number / count,
        change: pair.change.to_owned(),
        stage: None,
        envs: pair.envs(),
        before: pair.source,
        after: pair.target,
        differs: pair.differs,
    })
}

impl Case for Candidate {
    fn question<'a>(&'a self, machine: &'a Target, envs: &'a [Env]) -> Question<'a> {
        Question { stage: self.stage, before: (&self.before).into(), after: (&self.after).into(), machine, envs }
    }

    fn envs(&self) -> Vec<Env> {
        self.envs.clone()
    }
}

/// The first wrong proof that a campaign found with a condition left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// The campaign.
    pub campaign: &'static str,
    /// The number of the pair in the campaign.
    pub number: u64,
    /// The change that made the programs of the pair differ.
    pub change: String,
    /// The engine that proved the pair.
    pub by: EngineKind,
}

/// The results for a condition so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The first wrong proof without it.
    pub noticed: Option<Noticed>,
    /// The number of pairs on which it was left out.
    pub attempts: u64,
    /// CPU time of these proofs.
    pub time: Duration,
    /// The reason why the last pair on which it was left out was not proved.
    pub why: Option<String>,
}

/// The results for all conditions so far.
#[derive(Default)]
pub struct Trials {
    /// The results by condition.
    pub of: BTreeMap<Guard, Trial>,
    /// Pairs that differ and that the complete prover proves.
    pub wrong: Vec<(EngineKind, Candidate)>,
    /// The numbers of generated and of different pairs, by campaign.
    pub pairs: BTreeMap<&'static str, [u64; 2]>,
}

impl Trials {
    /// Begins with no results for these conditions.
    pub fn new(guards: impl IntoIterator<Item = Guard>) -> Self {
        Self { of: guards.into_iter().map(|guard| (guard, Trial::default())).collect(), ..Self::default() }
    }

    fn open(&self) -> impl Iterator<Item = Guard> {
        self.of.iter().filter(|(_, trial)| trial.noticed.is_none()).map(|(&guard, _)| guard)
    }

    /// The number of conditions whose absence was noticed.
    pub fn noticed(&self) -> usize {
        self.of.values().filter(|trial| trial.noticed.is_some()).count()
    }
}

/// Leaves out each condition that decides something on a pair, one at a time.
fn attack(
    candidate: Candidate,
    limits: &Limits,
    machine: &Target,
    trials: &Mutex<&mut Trials>,
) -> Result<(), NotBuilt> {
    let lock = || trials.lock().unwrap_or_else(PoisonError::into_inner);
    let differs = candidate.differs(machine);
    {
        let mut trials = lock();
        let [made, different] = trials.pairs.entry(candidate.campaign).or_default();
        (*made, *different) = (*made + 1, *different + u64::from(differs));
    }
    if !differs {
        return Ok(());
    }
    for engine in candidate.engines() {
        let (proved, decided) = guards::observe(|| candidate.proved(engine, limits, machine))?;
        if proved.is_ok() {
            lock().wrong.push((engine, candidate));
            return Ok(());
        }
        let mut open = Guards::default();
        lock().open().filter(|&guard| decided.contains(guard)).for_each(|guard| open.insert(guard));
        for guard in open.iter() {
            let start = ThreadTime::now();
            let proved = guards::without(guard, || candidate.proved(engine, limits, machine))?;
            let time = start.elapsed();
            let &Candidate { campaign, number, ref change, .. } = &candidate;
            if let Some(trial) = lock().of.get_mut(&guard) {
                (trial.attempts, trial.time) = (trial.attempts + 1, trial.time + time);
                match proved {
                    Ok(()) if trial.noticed.is_none() => {
                        trial.noticed = Some(Noticed { campaign, number, change: change.clone(), by: engine });
                    }
                    Ok(()) => {}
                    Err(why) => trial.why = Some(format!("{campaign} {number} ({change}): {why}")),
                }
            }
        }
    }
    Ok(())
}

/// Runs campaigns until all conditions are noticed, or no pairs are left. `each` is called after every pair.
///
/// # Errors
/// In a build in which no condition can be left out.
pub fn run(
    candidates: impl Iterator<Item = Candidate> + Send,
    limits: &Limits,
    machine: &Target,
    jobs: usize,
    interrupted: &AtomicBool,
    trials: &mut Trials,
    each: &(dyn Fn(usize) + Sync),
) -> Result<(), NotBuilt> {
    guards::observe(|| ())?;
    // No search for inputs: the pairs are known to differ. A query has a lower limit than a proof, so that hard queries
    // are given up before the proof is.
    let limits = &Limits { inputs: false, query: Budget { rlimit: QUESTION, ..limits.query }, ..*limits };
    let trials = &Mutex::new(trials);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(Ok(()));
    let all_noticed = || {
        let open = trials.lock().unwrap_or_else(PoisonError::into_inner).open().count();
        (open, open == 0 || interrupted.load(Ordering::Relaxed))
    };
    stop.store(all_noticed().1, Ordering::Relaxed);
    threads::for_each(jobs, candidates, &stop, |_, candidate| {
        if let Err(error) = attack(candidate, limits, machine, trials) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
            stop.store(true, Ordering::Relaxed);
        }
        let (open, over) = all_noticed();
        each(open);
        stop.fetch_or(over, Ordering::Relaxed);
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Target {
        Target::default()
    }

    fn try_all(guards: &[Guard], programs: u64) -> Result<Trials, NotBuilt> {
        let mut trials = Trials::new(guards.iter().copied());
        let limits = Limits::within(Duration::from_millis(300));
        let never = AtomicBool::new(false);
        let machine = machine();
        let candidates = campaigns(1, programs, &machine, &|_| true);
        run(candidates, &limits, &machine, 1, &never, &mut trials, &|_| ()).map(|()| trials)
    }

    #[cfg(not(feature = "prover-mutants"))]
    #[test]
    fn a_normal_build_leaves_nothing_out() {
        assert!(matches!(try_all(&[Guard::EventWhat], 1), Err(NotBuilt)));
    }

    #[cfg(feature = "prover-mutants")]
    #[test]
    fn missing_conditions_are_noticed() {
        let trials = try_all(&[Guard::EventWhat, Guard::AgreementBits, Guard::RegistersOpcode], 10).unwrap();
        assert_eq!(trials.noticed(), 3, "{:?}", trials.of);
    }

    #[test]
    fn pairs_by_hand_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/pairs");
        let pairs = by_hand(&folder, &machine()).unwrap();
        let of_guards = pairs.iter().filter(|pair| pair.change.starts_with("guards/")).count();
        assert!(pairs.len() > 100 && of_guards >= 20, "{} pairs, {of_guards} of guards", pairs.len());
        assert!(by_hand(Path::new("nowhere"), &machine()).is_err());
    }
}
