//! What a proof takes for granted: the model in which it holds, by short names.
//!
//! A verdict lists those that the two programs touch, and no others. `docs/semantics.md` says of each what it means, what Mesa and the
//! hardware do, and which are to be lifted; a test holds that page against this table.

/// Float arithmetic is any function of its operands, the same in both programs.
pub const FLOATS: &str = "floats-uninterpreted";

/// nir's plain conversions to floats, whose rounding the header leaves open, round as the machine does.
pub const ROUNDING: &str = "open-rounding";

/// Denormals are neither read nor made as zeros.
pub const DENORMALS: &str = "denormals-kept";

/// A texture's answer is any function of what is asked: of the operands, the texture and the sampler.
pub const TEXTURES: &str = "textures-opaque";

/// A texture has the same shape (volume, cube, array) in both programs, though a text does not print it.
pub const TEXTURE_SHAPE: &str = "texture-kind-unprinted";

/// Other waves write nothing that this one reads without a barrier between them.
pub const ONE_WAVE: &str = "one-wave";

/// A wave runs, of the blocks in which lanes wait, the first one in the order of the layout.
pub const BLOCK_ORDER: &str = "block-order";

/// The shader itself accesses no scratch memory beyond what it declares, so spill slots after it are apart.
pub const OWN_SCRATCH: &str = "own-scratch";

/// An access relative to an address register stays within its array.
pub const ARRAY_BOUNDS: &str = "array-bounds";

/// There is an input on which the program before has a meaning: the solver did not find out in time.
pub const SOURCE_DEFINED: &str = "source-defined";

/// Of the stage, which at least one of the texts does not say, both programs have the same.
pub const STAGE: &str = "header:stage";

/// The workgroup size, which at least one of the texts does not say, is 64 × 1 × 1.
pub const WORKGROUP_SIZE: &str = "header:workgroup-size";

/// Attributes that Mesa's text does not print are the same in both programs at the same instruction.
pub const UNPRINTED: &str = "unprinted-attributes";

/// No image is a storage buffer or a part of global memory.
pub const NO_ALIAS: &str = "no-alias:ssbo-image";

/// The names of all assumptions about the model. Proofs also assume [lemmas](crate::prove::lemmas).
pub const MODEL: [&str; 14] = [
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
];

/// What a program uses of which a proof knows less than the hardware does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// It asks textures.
    pub textures: bool,
    /// It accesses memory that other waves see.
    pub memory: bool,
    /// Lanes see something of each other, by an operation or by memory.
    pub lanes: bool,
    /// It has branches.
    pub branches: bool,
    /// It has conversions to floats whose rounding is left open.
    pub rounding: bool,
}

impl Uses {
    /// What either of two programs uses.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            textures: self.textures | other.textures,
            memory: self.memory | other.memory,
            lanes: self.lanes | other.lanes,
            branches: self.branches | other.branches,
            rounding: self.rounding | other.rounding,
        }
    }

    /// The assumptions of a proof on terms.
    pub fn assumptions(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.rounding, ROUNDING),
            (self.textures, TEXTURES),
            (self.memory, ONE_WAVE),
            (self.branches && (self.lanes || self.memory), BLOCK_ORDER),
        ];
        all.into_iter().filter(|(used, _)| *used).map(|(_, name)| name)
    }
}
