//! Names and properties of stages.

use super::*;

impl Stage {
    /// Every stage of the backend whose result is an ir3 program, in order: all but [`Stage::OwnPass`].
    pub const ALL: [Self; Self::IR3.len() - 1] = {
        let mut all = [Self::Select; Self::IR3.len() - 1];
        let (mut i, mut count) = (0, 0);
        while i < Self::IR3.len() {
            if !matches!(Self::IR3[i], Self::OwnPass) {
                all[count] = Self::IR3[i];
                count += 1;
            }
            i += 1;
        }
        all
    };

    /// The last stage.
    pub const LAST: Self = Self::IR3[Self::IR3.len() - 1];

    /// Every stage, in order, with [`Stage::OwnPass`].
    pub fn every() -> impl Iterator<Item = Self> {
        Self::NIR.into_iter().chain(Self::VEC4).chain(Self::IR3)
    }

    /// Returns true if it is a stage of a backend, or on nir.
    pub fn is_of(self, backend: Backend) -> bool {
        match backend {
            _ if self < Self::Vec4Select => true,
            Backend::Ir3 => self >= Self::Select,
            Backend::Vec4 => self <= Self::Vec4LateDeadCode,
            Backend::Scalar => self >= Self::ScalarSelect && self < Self::Select,
        }
    }

    /// Returns true if it translates nir to the language of a backend.
    pub fn is_selection(self) -> bool {
        matches!(self, Self::Vec4Select | Self::ScalarSelect | Self::Select)
    }

    /// The passes on the programs of a mode, in order.
    pub fn on_mode(mode: vec4::Mode) -> impl Iterator<Item = Self> {
        let backend = if mode.is_scalar() { Backend::Scalar } else { Backend::Vec4 };
        Self::VEC4.into_iter().filter(move |stage| stage.is_of(backend) && !stage.is_selection())
    }

    pub(super) fn row(self) -> &'static StageRow {
        &ROWS[self as usize]
    }

    /// The name that the command line and the reports use.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The feature without which the stage does not run.
    pub fn feature(self) -> Option<Feature> {
        match self.row().need {
            Need::Optional(feature) => Some(feature),
            Need::Always | Need::Given => None,
        }
    }

    /// Returns true if it only moves values: it orders instructions, adds moves, spills and reloads, and assigns
    /// registers. The register checker follows such a stage.
    pub fn moves_values(self) -> bool {
        self.row().kind == StageKind::Moves
    }

    /// Returns true if the program after it is final: it runs on the machine, with its waits.
    pub fn is_final(self) -> bool {
        self >= Self::Legalize
    }

    /// Returns true if the stage may have another result with the other of two register limits.
    pub fn reads_limit(self, target: &Target, limits: [RegisterLimit; 2]) -> bool {
        let [one, other] = limits;
        match self {
            Self::Schedule | Self::SharedRegisters => one.files(target) != other.files(target),
            Self::SpillArrays | Self::Spill | Self::RegisterAllocation => one != other,
            _ => false,
        }
    }

    /// The stage of a name as [`Stage::name`] gives it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::every().find(|stage| stage.name() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
