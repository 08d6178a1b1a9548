//! The assumptions of a proof: the model in which it holds, by short names.
//!
//! A verdict lists the assumptions that the two programs depend on, and no others. `docs/semantics.md` documents for each its meaning, the
//! behaviour of Mesa and of the hardware, and whether it is to be lifted; a test compares that page with this table.

/// Float operations are uninterpreted functions of their operands, the same in both programs.
pub const FLOATS: &str = "floats-uninterpreted";

/// nir's plain conversions to floats, whose rounding the header leaves open, round as the machine does.
pub const ROUNDING: &str = "open-rounding";

/// Denormals are not flushed to zero, neither as operands nor as results.
pub const DENORMALS: &str = "denormals-kept";

/// The result of a texture operation is an uninterpreted function of its operands, the texture and the sampler.
pub const TEXTURES: &str = "textures-opaque";

/// A texture has the same shape (volume, cube, array) in both programs, though one text does not print it.
pub const TEXTURE_SHAPE: &str = "texture-kind-unprinted";

/// Other waves write nothing that this one reads without a barrier in between.
pub const ONE_WAVE: &str = "one-wave";

/// Among the blocks in which lanes wait, a wave runs the first one in the order of the layout.
pub const BLOCK_ORDER: &str = "block-order";

/// The shader itself accesses no scratch memory beyond its declared size, so spill slots after it do not overlap it.
pub const OWN_SCRATCH: &str = "own-scratch";

/// An access relative to an address register stays within its array.
pub const ARRAY_BOUNDS: &str = "array-bounds";

/// There is an input on which the source program is defined: the solver did not decide this in time.
pub const SOURCE_DEFINED: &str = "source-defined";

/// Both programs have the same stage, though at least one of the texts does not print it.
pub const STAGE: &str = "header:stage";

/// The workgroup size, which at least one of the texts does not print, is 64 × 1 × 1.
pub const WORKGROUP_SIZE: &str = "header:workgroup-size";

/// Attributes that Mesa's text does not print are the same in both programs at the same instruction.
pub const UNPRINTED: &str = "unprinted-attributes";

/// No image aliases a storage buffer or global memory.
pub const NO_ALIAS: &str = "no-alias:ssbo-image";

/// A load from global memory that only the target executes does not fault.
pub const NO_FAULT: &str = "loads-do-not-fault";

/// The names of all assumptions about the model. Proofs also assume [lemmas](crate::prove::lemmas).
pub const MODEL: [&str; 15] = [
    FLOATS,
    ROUNDING,
    DENORMALS,
    TEXTURES,
    TEXTURE_SHAPE,
    ONE_WAVE,
    BLOCK_ORDER,
    OWN_SCRATCH,
    ARRAY_BOUNDS,
    SOURCE_DEFINED,
    STAGE,
    WORKGROUP_SIZE,
    UNPRINTED,
    NO_ALIAS,
    NO_FAULT,
];

/// The features of a program that proofs model less precisely than the hardware implements them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// It has texture operations.
    pub textures: bool,
    /// It accesses memory that other waves see.
    pub memory: bool,
    /// It loads from addresses that it computes.
    pub global_loads: bool,
    /// Its lanes communicate, by an operation or by memory.
    pub lanes: bool,
    /// It has branches.
    pub branches: bool,
    /// It has conversions to floats whose rounding mode is open.
    pub rounding: bool,
}

impl Uses {
    /// The union of the features of two programs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            textures: self.textures | other.textures,
            memory: self.memory | other.memory,
            global_loads: self.global_loads | other.global_loads,
            lanes: self.lanes | other.lanes,
            branches: self.branches | other.branches,
            rounding: self.rounding | other.rounding,
        }
    }

    /// The assumptions of a proof by terms.
    pub fn assumptions(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.rounding, ROUNDING),
            (self.textures, TEXTURES),
            (self.memory, ONE_WAVE),
            (self.global_loads, NO_FAULT),
            (self.branches && (self.lanes || self.memory), BLOCK_ORDER),
        ];
        all.into_iter().filter(|(used, _)| *used).map(|(_, name)| name)
    }
}
