//! Snapshots of a compilation: the program before and after each stage that changed it.

use crate::check::{NirPlant, Plant};
use ir3_compiler::compilation::{Compilation, ProgramMut};
use ir3_semantics::Snapshot;

use ir3_compiler::pipeline::{Change, CompileError, Stage};

/// Both sides of a stage that changed the program.
#[derive(Clone, Debug)]
pub struct StageSnapshots {
    /// The stage.
    pub stage: Stage,
    /// The program before it.
    pub before: Snapshot,
    /// The program after it, with the changes that were planted there.
    pub after: Snapshot,
}

/// The snapshots of a compilation; `before` of an item is `after` of the item before it. If a stage refuses the
/// program, its error is the last item.
pub struct Snapshots<'s, 'h> {
    compilation: Compilation<'s, 'h>,
    before: Snapshot,
}

impl<'s, 'h> Snapshots<'s, 'h> {
    /// The snapshots of a compilation from its current stage on.
    pub fn new(compilation: Compilation<'s, 'h>) -> Self {
        let before = compilation.program().into();
        Self { compilation, before }
    }

    /// The stage that ran last. If [`next`](Iterator::next) panicked, the stage that did.
    pub fn last_stage(&self) -> Option<Stage> {
        self.compilation.last_stage()
    }
}

impl Iterator for Snapshots<'_, '_> {
    type Item = Result<StageSnapshots, CompileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.compilation.step()? {
                Ok(step) if step.change == Change::Nothing => {}
                Ok(step) => {
                    let after: Snapshot = self.compilation.program().into();
                    let before = std::mem::replace(&mut self.before, after.clone());
                    return Some(Ok(StageSnapshots { stage: step.stage, before, after }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Planted changes as a hook of a [`Compilation`]. A change of ir3 programs may apply to any stage.
pub fn hook_of(
    mut plant: Option<Plant<'_>>,
    nir_plant: Option<NirPlant>,
) -> impl FnMut(Stage, ProgramMut<'_, '_>) -> Change {
    move |stage, program| {
        let changes = match (program, &mut plant, nir_plant) {
            (ProgramMut::Nir(shader), _, Some(plant)) => plant(stage, shader.to_mut()),
            (ProgramMut::Ir3(program), Some(plant), _) => {
                plant.ir3(stage, program);
                true
            }
            (ProgramMut::Vec4(program), Some(plant), _) => {
                plant.gen7(stage, program);
                true
            }
            _ => false,
        };
        if changes { Change::Something } else { Change::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir3_compiler::pipeline::Options;
    use ir3_compiler::target::Target;
    use ir3_programs::generator;
    use ir3_programs::generator::{Features, Profile};
    use ir3_semantics::support::panics::catch;

    #[test]
    fn a_panic_has_the_stage_that_panicked() {
        let shader = generator::from_seed(1, Profile::Mixed, Features::ALL).shader;
        let mut hook = |stage, _: ProgramMut<'_, '_>| {
            assert!(stage != Stage::LowerCopies, "planted");
            Change::Nothing
        };
        let compilation = Compilation::new(&shader, &Target::default(), &Options::default()).with_hook(Some(&mut hook));
        let mut snapshots = Snapshots::new(compilation);
        let mut before = None;
        while let Ok(Some(item)) = catch(|| snapshots.next()) {
            before = Some(item.expect("it compiles").stage);
        }
        let before = before.expect("a stage that changed something");
        let idle = Stage::every().filter(|&stage| before < stage && stage < Stage::LowerCopies).count();
        // The stages between the last one that changed something and the one that panicked did nothing.
        assert!(idle > 0, "{before:?}");
        assert_eq!(snapshots.last_stage(), Some(Stage::LowerCopies));
    }
}
