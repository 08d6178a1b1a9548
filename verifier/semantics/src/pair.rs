//! Facts about a pair of programs that the runs of both depend on.

use ir3_compiler::compilation::ProgramRef;

/// The properties that both texts of a pair print: where only one program has one, it does not count.
///
/// A program is decoded as one of a pair (`in_pair`), so that a run in an environment behaves as in a comparison with
/// the other program. By default a program is alone, and none counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairFacts {
    /// Both programs are in ir3, whose text prints the shape of a texture: results depend on it.
    pub printed_shapes: bool,
    /// Both programs are in nir (or vec4, which is run as nir), whose text prints the format and the dimension of an
    /// image, and names some system values twice: accesses and values depend on it.
    pub both_nir: bool,
}

impl PairFacts {
    /// The facts about two programs.
    pub fn of(before: ProgramRef<'_>, after: ProgramRef<'_>) -> Self {
        let [before, after] = [before, after].map(|program| matches!(program, ProgramRef::Ir3(_)));
        Self { printed_shapes: before && after, both_nir: !before && !after }
    }
}
