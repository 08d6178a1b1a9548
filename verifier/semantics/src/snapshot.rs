//! A program of one of the languages, owned.

use ir3_compiler::compilation::ProgramRef;
use ir3_compiler::{i965::vec4, ir3, nir};

/// A program on one side of a boundary.
#[derive(Clone, Debug)]
pub enum Snapshot {
    /// The source.
    Nir(Box<nir::Shader>),
    /// The program after a stage of vec4.
    Vec4(Box<vec4::Program>),
    /// The program after a stage.
    Ir3(Box<ir3::Program>),
}

impl Snapshot {
    /// The program as text.
    pub fn text(&self) -> String {
        match self {
            Self::Nir(shader) => nir::text::write(shader),
            Self::Vec4(program) => vec4::text::write(program),
            Self::Ir3(program) => ir3::text::write(program),
        }
    }

    /// The name of the language, which ends the names of files.
    pub fn language(&self) -> &'static str {
        match self {
            Self::Nir(_) => "nir",
            Self::Vec4(_) => "vec4",
            Self::Ir3(_) => "ir3",
        }
    }

    /// The number of instructions.
    pub fn instruction_count(&self) -> usize {
        match self {
            Self::Nir(shader) => shader.instruction_count(),
            Self::Vec4(program) => program.instrs.len(),
            Self::Ir3(program) => program.instruction_count(),
        }
    }

    /// The program, if it is in nir.
    pub fn as_nir(&self) -> Option<&nir::Shader> {
        match self {
            Self::Nir(shader) => Some(shader),
            Self::Ir3(_) | Self::Vec4(_) => None,
        }
    }

    /// The program, if it is in ir3.
    pub fn as_ir3(&self) -> Option<&ir3::Program> {
        match self {
            Self::Ir3(program) => Some(program),
            Self::Nir(_) | Self::Vec4(_) => None,
        }
    }
}

impl From<ProgramRef<'_>> for Snapshot {
    fn from(program: ProgramRef<'_>) -> Self {
        match program {
            ProgramRef::Nir(shader) => Self::Nir(Box::new(shader.clone())),
            ProgramRef::Vec4(program) => Self::Vec4(Box::new(program.clone())),
            ProgramRef::Ir3(program) => Self::Ir3(Box::new(program.clone())),
        }
    }
}

impl<'a> From<&'a Snapshot> for ProgramRef<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        match snapshot {
            Snapshot::Nir(shader) => Self::Nir(shader),
            Snapshot::Vec4(program) => Self::Vec4(program),
            Snapshot::Ir3(program) => Self::Ir3(program),
        }
    }
}
