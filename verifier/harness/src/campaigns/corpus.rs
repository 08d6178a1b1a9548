//! The corpus of a campaign: programs that it starts from, and those that it keeps.
//!
//! Half of the programs of a campaign with a corpus are [variants](ir3_programs::variants) of one of its programs, with
//! pieces of others. A program is *new* if it has a coverage cell that no program of the corpus has. At the end of the
//! campaign, a new program is kept if it has a cell that no smaller new one has; it is reduced while it retains these
//! cells. So the corpus grows by the newly covered cells, and a later campaign starts from them.

use crate::reduce;
use ir3_compiler::compilation::Compilation;
use ir3_compiler::nir::{Shader, write};
use ir3_compiler::pipeline::{Options, Stage};
use ir3_compiler::target::{Backend, Target};
use ir3_programs::coverage::{Cell, Seen, of_shader};
use ir3_programs::variants::variant;
use ir3_semantics::support::panics::catch;
use ir3_semantics::support::random::{Random, text_hash};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// A program of a corpus.
#[derive(Clone, Debug)]
pub struct CorpusProgram {
    /// Its name: the path of its file, and the number of the program in it.
    pub name: String,
    /// The program.
    pub shader: Shader,
}

/// The programs that a campaign starts from.
#[derive(Debug)]
pub struct Corpus {
    programs: Vec<CorpusProgram>,
    /// The programs that selection accepts, by the name of the GPU.
    accepted: Vec<(&'static str, Vec<usize>)>,
}

impl Corpus {
    /// A corpus for the GPUs of a campaign.
    pub fn new(programs: Vec<CorpusProgram>, targets: &[Target]) -> Self {
        let accepted = targets.iter().map(|target| {
            let all = (0..programs.len()).filter(|&number| accepts(&programs[number].shader, target));
            (target.name, all.collect())
        });
        let accepted = accepted.collect();
        Self { programs, accepted }
    }

    /// The number of programs, and of those that some GPU of the campaign accepts.
    pub fn counts(&self) -> (usize, usize) {
        let accepted: BTreeSet<usize> = self.accepted.iter().flat_map(|(_, all)| all.iter().copied()).collect();
        (self.programs.len(), accepted.len())
    }

    /// The program for a seed on a GPU, and the name of the one that it is a variant of. None if the GPU accepts no
    /// program of the corpus.
    pub fn variant(&self, target: &Target, seed: u64) -> Option<(&str, Shader)> {
        let (_, numbers) = self.accepted.iter().find(|(gpu, _)| *gpu == target.name)?;
        let mut random = Random::new(seed ^ 0x636f_7270_7573);
        let CorpusProgram { name, shader } = &self.programs[random.pick(numbers)?];
        let donors: Vec<&Shader> = numbers.iter().map(|&number| &self.programs[number].shader).collect();
        Some((name, variant(shader, &donors, random.next())))
    }

    /// The cells that its programs have, each compiled for the first GPU that accepts it.
    pub fn seen(&self, targets: &[Target], options: Options) -> Seen {
        let mut seen = Seen::default();
        let mut done = BTreeSet::new();
        for (gpu, numbers) in &self.accepted {
            let Some(target) = targets.iter().find(|target| target.name == *gpu) else { continue };
            for &number in numbers.iter().filter(|&&number| done.insert(number)) {
                cells(&self.programs[number].shader, target, options).into_iter().for_each(|cell| seen.add(cell));
            }
        }
        seen
    }
}

/// Returns true if selection for a GPU accepts a program.
fn accepts(shader: &Shader, target: &Target) -> bool {
    let run = || Compilation::new(shader, target, &Options::default()).run_through(Stage::Select).is_ok();
    target.backend == Backend::Ir3 && catch(run).unwrap_or(false)
}

/// The cells that a program has, compiled for a GPU; those of the program alone if that is refused.
fn cells(shader: &Shader, target: &Target, options: Options) -> Vec<Cell> {
    let mut seen = Seen::default();
    of_shader(shader, |cell| seen.add(cell));
    // A panic is a failure of its own, which the campaign has reported.
    let _ = catch(|| {
        let mut compilation = Compilation::new(shader, target, &options);
        while let Some(Ok(step)) = compilation.step() {
            seen.add_stage(step.stage, compilation.program());
        }
        seen.add_arms(compilation.counter());
    });
    seen.cells().collect()
}

/// A new program of a campaign.
#[derive(Clone, Debug)]
pub struct NewProgram {
    /// The program.
    pub shader: Shader,
    /// The GPU that it was compiled for.
    pub target: Target,
    /// The options it was compiled with.
    pub options: Options,
}

/// The most candidates of a reduction.
const CANDIDATES: u64 = 100;

/// The programs to keep of the new ones: the smaller first, each with a cell that neither the corpus nor one before
/// has. `keep` gets each unreduced, and then reduced with its original; it stops the search by returning false. Once
/// `interrupted`, nothing is reduced.
pub fn kept(
    corpus: &Seen,
    mut new: Vec<NewProgram>,
    interrupted: &AtomicBool,
    keep: &mut dyn FnMut(&Shader, Option<&Shader>) -> bool,
) {
    let mut seen = corpus.clone();
    new.sort_by_key(|program| program.shader.instruction_count());
    for NewProgram { shader, target, options } in new {
        let of = |shader: &Shader| cells(shader, &target, options);
        let reasons: Vec<Cell> = of(&shader).into_iter().filter(|&cell| seen.of(cell) == 0).collect();
        if reasons.is_empty() {
            continue;
        }
        if !keep(&shader, None) {
            return;
        }
        let mut has_reasons = |shader: &Shader| {
            let cells = of(shader);
            reasons.iter().all(|reason| cells.contains(reason))
        };
        let limits = reduce::Options { candidates: Some(CANDIDATES), checkpoint: None };
        let reduced = reduce::run(&shader, &mut has_reasons, &limits, &mut |_| !interrupted.load(Ordering::Relaxed));
        let reduced = reduced.map_or_else(|_| shader.clone(), |reduced| reduced.program);
        of(&reduced).into_iter().for_each(|cell| seen.add(cell));
        if !keep(&reduced, Some(&shader)) {
            return;
        }
    }
}

/// The name of the file of a program: a function of its text.
pub fn file_name(shader: &Shader) -> String {
    format!("{:016x}.nir", text_hash(&write(shader)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_programs::generator::{self, Features, Profile};

    fn programs(profile: Profile, count: u64) -> Vec<CorpusProgram> {
        let of = |seed| generator::from_seed(seed, profile, Features::ALL).shader;
        (0..count).map(|seed| CorpusProgram { name: format!("{seed}.nir"), shader: of(seed) }).collect()
    }

    #[test]
    fn variants_are_of_programs_that_the_gpu_accepts() {
        let all = programs(Profile::Operations, 12);
        let targets = ["a306", "a660"].map(|name| Target::by_name(name).expect("a GPU"));
        let corpus = Corpus::new(all, &targets);
        let (count, accepted) = corpus.counts();
        assert!(count == 12 && accepted > 0);
        for seed in 0..20 {
            let (name, shader) = corpus.variant(&targets[1], seed).expect("a variant");
            assert_eq!(corpus.variant(&targets[1], seed).expect("a variant"), (name, shader));
        }
        assert!(Corpus::new(Vec::new(), &targets).variant(&targets[0], 1).is_none());
    }

    /// A program is kept if it has cells that the corpus lacks, and is not kept again.
    #[test]
    fn a_corpus_grows_by_what_it_lacks() {
        let target = Target::default();
        let options = Options::default();
        let start = Corpus::new(programs(Profile::Alu, 3), &[target]);
        let seen = start.seen(&[target], options);
        let new = || {
            let of = |CorpusProgram { shader, .. }: CorpusProgram| NewProgram { shader, target, options };
            programs(Profile::Memory, 3).into_iter().map(of).collect()
        };
        let mut reduced = Vec::new();
        let never = AtomicBool::new(false);
        kept(&seen, new(), &never, &mut |shader, whole| {
            if let Some(whole) = whole {
                assert!(shader.instruction_count() <= whole.instruction_count());
                reduced.push(shader.clone());
            }
            true
        });
        assert!(!reduced.is_empty() && reduced.len() <= 3);
        let grown = reduced.into_iter().map(|shader| CorpusProgram { name: file_name(&shader), shader });
        let grown = Corpus::new(programs(Profile::Alu, 3).into_iter().chain(grown).collect(), &[target]);
        let mut again = 0;
        kept(&grown.seen(&[target], options), new(), &never, &mut |_, _| {
            again += 1;
            true
        });
        assert_eq!(again, 0, "programs that are covered are kept again");
    }
}
