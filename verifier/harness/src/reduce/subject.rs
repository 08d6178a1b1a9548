//! The objects of the search: a program, or several that are reduced together.
//!
//! A [`Subject`] lists steps, applies them, and computes validity and size of the result; the search (`engine`) is
//! independent of the language. nir is implemented here, ir3 in [`ir3`](super::ir3), vec4 in [`vec4`](super::vec4), a
//! program of any of them in [`Side`], two programs in [`pair`](super::pair).

use super::clean::{compact, remove_dead_code};
use super::edit::{Edit, ProgramView};
use super::engine::shuffled;
use super::ir3::{Ir3Step, Ir3Subject};
use super::size::Size;
use super::steps::{self, ReductionStep};
use super::vec4::{Vec4Step, Vec4Subject};
use ir3_compiler::nir::{Shader, text, validate};
use ir3_compiler::target::Target;
use ir3_semantics::Snapshot;

/// Programs of up to this number of instructions are easy to read without a further reduction.
const SMALL: u32 = 8;

/// A kind of step.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// True if it makes sense to apply many steps of a list at once.
    pub together: bool,
}

/// One program or several that the search makes smaller.
pub trait Subject: Clone + PartialEq + Send + Sync {
    /// A change.
    type Step: Send + Sync;

    /// The kinds of steps, in the order in which they are tried: those that remove most come first.
    fn kinds(&self) -> Vec<Kind>;

    /// The steps of a kind, the most promising first.
    fn list(&self, kind: usize) -> Vec<Self::Step>;

    /// Applies steps, and removes dead code if `sweep`. Entities keep their numbers, so that other steps of the same
    /// list can be applied to the result. `None` if nothing changes.
    fn edited(&self, steps: &[&Self::Step], sweep: bool) -> Option<Self>;

    /// Returns the subject without dead code. Entities keep their numbers.
    fn swept(&self) -> Self;

    /// Returns the subject with entities numbered as the reader of its text numbers them; `None` if it is not valid.
    fn finished(&self) -> Option<Self>;

    /// Its size.
    fn size(&self) -> Size;

    /// True if it is easy to read: no random walk starts from there.
    fn is_small(&self) -> bool {
        self.size().instructions <= SMALL
    }

    /// Applies random changes that need not make it smaller. `None` if nothing has changed, it is not valid, or there
    /// are none.
    fn shuffled(&self, _number: usize, _sweep: bool) -> Option<Self> {
        None
    }

    /// Its text.
    fn text(&self) -> String;

    /// Another subject of this kind, from its text.
    fn read(&self, text: &str) -> Option<Self>;
}

/// A change of a nir program.
pub struct NirStep(pub(super) Box<dyn ReductionStep>);

impl Subject for Shader {
    type Step = NirStep;

    fn kinds(&self) -> Vec<Kind> {
        steps::KINDS.iter().map(|kind| Kind { name: kind.name, together: kind.together }).collect()
    }

    fn list(&self, kind: usize) -> Vec<Self::Step> {
        (steps::KINDS[kind].list)(&ProgramView::new(self)).into_iter().map(NirStep).collect()
    }

    fn edited(&self, steps: &[&Self::Step], sweep: bool) -> Option<Self> {
        let mut edit = Edit::new(self.clone());
        let mut changed = false;
        for step in steps {
            changed |= step.0.apply(&mut edit);
        }
        if !changed {
            return None;
        }
        if sweep {
            remove_dead_code(&mut edit);
        }
        Some(edit.shader)
    }

    fn swept(&self) -> Self {
        let mut edit = Edit::new(self.clone());
        remove_dead_code(&mut edit);
        edit.shader
    }

    fn finished(&self) -> Option<Self> {
        let finished = compact(self);
        validate(&finished).is_ok().then_some(finished)
    }

    fn size(&self) -> Size {
        Size::of(self)
    }

    fn shuffled(&self, number: usize, sweep: bool) -> Option<Self> {
        shuffled(self, number, sweep)
    }

    fn text(&self) -> String {
        text::write(self)
    }

    fn read(&self, text: &str) -> Option<Self> {
        text::read(text).ok()
    }
}

/// A program of one of the languages, for a GPU.
#[derive(Clone, PartialEq)]
pub enum Side {
    /// A nir program.
    Nir(Box<Shader>),
    /// A vec4 program.
    Vec4(Box<Vec4Subject>),
    /// An ir3 program.
    Ir3(Box<Ir3Subject>),
}

/// A change of a program of one of the languages.
pub enum SideStep {
    /// A step on nir.
    Nir(NirStep),
    /// A step on vec4.
    Vec4(Vec4Step),
    /// A step on ir3.
    Ir3(Ir3Step),
}

impl Side {
    /// A program for a GPU.
    pub fn new(program: Snapshot, target: Target) -> Self {
        match program {
            Snapshot::Nir(shader) => Self::Nir(shader),
            Snapshot::Vec4(program) => Self::Vec4(Box::new(Vec4Subject::new(*program))),
            Snapshot::Ir3(program) => Self::Ir3(Box::new(Ir3Subject { program: *program, target })),
        }
    }

    /// The program.
    pub fn snapshot(&self) -> Snapshot {
        match self {
            Self::Nir(shader) => Snapshot::Nir(shader.clone()),
            Self::Vec4(subject) => Snapshot::Vec4(Box::new(subject.program())),
            Self::Ir3(subject) => Snapshot::Ir3(Box::new(subject.program.clone())),
        }
    }

    /// The end of the names of its files.
    pub const fn extension(&self) -> &'static str {
        match self {
            Self::Nir(_) => "nir",
            Self::Vec4(_) => "vec4",
            Self::Ir3(_) => "ir3",
        }
    }
}

impl Subject for Side {
    type Step = SideStep;

    fn kinds(&self) -> Vec<Kind> {
        match self {
            Self::Nir(shader) => shader.kinds(),
            Self::Ir3(subject) => subject.kinds(),
            Self::Vec4(subject) => subject.kinds(),
        }
    }

    fn list(&self, kind: usize) -> Vec<SideStep> {
        match self {
            Self::Nir(shader) => shader.list(kind).into_iter().map(SideStep::Nir).collect(),
            Self::Ir3(subject) => subject.list(kind).into_iter().map(SideStep::Ir3).collect(),
            Self::Vec4(subject) => subject.list(kind).into_iter().map(SideStep::Vec4).collect(),
        }
    }

    fn edited(&self, steps: &[&SideStep], sweep: bool) -> Option<Self> {
        match self {
            Self::Nir(shader) => {
                let steps: Vec<_> = steps.iter().filter_map(|step| step.as_nir()).collect();
                shader.edited(&steps, sweep).map(Box::new).map(Self::Nir)
            }
            Self::Ir3(subject) => {
                let steps: Vec<_> = steps.iter().filter_map(|step| step.as_ir3()).collect();
                subject.edited(&steps, sweep).map(Box::new).map(Self::Ir3)
            }
            Self::Vec4(subject) => {
                let steps: Vec<_> = steps.iter().filter_map(|step| step.as_vec4()).collect();
                subject.edited(&steps, sweep).map(Box::new).map(Self::Vec4)
            }
        }
    }

    fn swept(&self) -> Self {
        match self {
            Self::Nir(shader) => Self::Nir(Box::new(shader.swept())),
            Self::Ir3(subject) => Self::Ir3(Box::new(subject.swept())),
            Self::Vec4(subject) => Self::Vec4(Box::new(subject.swept())),
        }
    }

    fn finished(&self) -> Option<Self> {
        match self {
            Self::Nir(shader) => shader.finished().map(Box::new).map(Self::Nir),
            Self::Ir3(subject) => subject.finished().map(Box::new).map(Self::Ir3),
            Self::Vec4(subject) => subject.finished().map(Box::new).map(Self::Vec4),
        }
    }

    fn size(&self) -> Size {
        match self {
            Self::Nir(shader) => shader.size(),
            Self::Ir3(subject) => subject.size(),
            Self::Vec4(subject) => subject.size(),
        }
    }

    fn shuffled(&self, number: usize, sweep: bool) -> Option<Self> {
        match self {
            Self::Nir(shader) => Subject::shuffled(&**shader, number, sweep).map(Box::new).map(Self::Nir),
            Self::Ir3(subject) => subject.shuffled(number, sweep).map(Box::new).map(Self::Ir3),
            Self::Vec4(subject) => subject.shuffled(number, sweep).map(Box::new).map(Self::Vec4),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Nir(shader) => shader.text(),
            Self::Ir3(subject) => subject.text(),
            Self::Vec4(subject) => subject.text(),
        }
    }

    fn read(&self, text: &str) -> Option<Self> {
        match self {
            Self::Nir(shader) => shader.read(text).map(Box::new).map(Self::Nir),
            Self::Ir3(subject) => subject.read(text).map(Box::new).map(Self::Ir3),
            Self::Vec4(subject) => subject.read(text).map(Box::new).map(Self::Vec4),
        }
    }
}

impl SideStep {
    const fn as_nir(&self) -> Option<&NirStep> {
        match self {
            Self::Nir(step) => Some(step),
            Self::Ir3(_) | Self::Vec4(_) => None,
        }
    }

    const fn as_ir3(&self) -> Option<&Ir3Step> {
        match self {
            Self::Ir3(step) => Some(step),
            Self::Nir(_) | Self::Vec4(_) => None,
        }
    }

    const fn as_vec4(&self) -> Option<&Vec4Step> {
        match self {
            Self::Vec4(step) => Some(step),
            Self::Nir(_) | Self::Ir3(_) => None,
        }
    }
}
