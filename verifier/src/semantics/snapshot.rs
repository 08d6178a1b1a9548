//! A program of either language, owned.

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::{ir3, nir};

/// A program on one side of a boundary.
#[derive(Clone, Debug)]
pub enum Snapshot {
    /// The source.
    Nir(Box<nir::Shader>),
    /// The program after a stage.
    Ir3(Box<ir3::Program>),
}

impl Snapshot {
    /// The program as text.
    pub fn text(&self) -> String {
        match self {
            Self::Nir(shader) => nir::text::write(shader),
            Self::Ir3(program) => ir3::text::write(program),
        }
    }

    /// The program, if it is in ir3.
    pub fn as_ir3(&self) -> Option<&ir3::Program> {
        match self {
            Self::Ir3(program) => Some(program),
            Self::Nir(_) => None,
        }
    }
}

impl From<ProgramRef<'_>> for Snapshot {
    fn from(program: ProgramRef<'_>) -> Self {
        match program {
            ProgramRef::Nir(shader) => Self::Nir(Box::new(shader.clone())),
            ProgramRef::Ir3(program) => Self::Ir3(Box::new(program.clone())),
        }
    }
}

impl<'a> From<&'a Snapshot> for ProgramRef<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        match snapshot {
            Snapshot::Nir(shader) => Self::Nir(shader),
            Snapshot::Ir3(program) => Self::Ir3(program),
        }
    }
}
