//! The assumptions of a proof: the model in which it holds, by short names.
//!
//! A verdict lists the assumptions that the two programs depend on, and no others. `docs/semantics.md` documents for
//! each its meaning, the behaviour of Mesa and of the hardware, and whether it is to be lifted; a test compares that
//! page with this table.

/// Float operations are uninterpreted functions of their operands, the same in both programs.
pub const FLOATS: &str = "floats-uninterpreted";

/// nir's plain conversions to floats, whose rounding the header leaves open, round as the machine does.
pub const ROUNDING: &str = "open-rounding";

/// Denormals are not flushed to zero, neither as operands nor as results.
pub const DENORMALS: &str = "denormals-kept";

/// `fquantize2f16` keeps denormal halves, as conversions of the machine do in the model.
pub const QUANTIZED: &str = "quantized-denormals";

/// The result of a texture operation is an uninterpreted function of its operands, the texture and the sampler.
pub const TEXTURES: &str = "textures-opaque";

/// A texture has the same shape (volume, cube, array) in both programs, though one text does not print it.
pub const TEXTURE_SHAPE: &str = "texture-kind-unprinted";

/// Without a barrier in between, no other wave accesses a word between two accesses of this one, if any of them writes.
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

/// Before a6xx: the byte offset of an access is that of the same place as its address, if a text does not print the
/// words of the constant file that describe the buffer or image.
pub const BYTE_OFFSET: &str = "byte-offset-undescribed";

/// An image that is loaded through the texture unit (before a6xx) is bound to the texture with the same index.
pub const TEXTURE_OF_IMAGE: &str = "texture-of-image";

/// No image aliases a storage buffer or global memory.
pub const NO_ALIAS: &str = "no-alias:ssbo-image";

/// A load from global memory that only the target executes does not fault.
pub const NO_FAULT: &str = "loads-do-not-fault";

/// No pass makes use of the fact that a text of ir3 prints no volatile accesses, where nir has some.
pub const VOLATILE: &str = "volatile-unprinted";

/// A load through the cache of textures sees the stores before it, if nir does not mark it as reorderable with any.
pub const CACHED: &str = "texture-cache-coherent";

/// A load through a descriptor at a computed number does not fault, also where the program checks the number first.
pub const DESCRIPTORS: &str = "descriptors-do-not-fault";

/// A 16-bit attribute, or a 16-bit input that is not interpolated, is the low half of the word of 32 bits, for any
/// type.
pub const NARROW: &str = "narrow-inputs";

/// No access to a buffer is beyond its end, so different addresses in a buffer are different words.
pub const IN_BOUNDS: &str = "in-bounds";

/// The names of all assumptions about the model. Proofs also assume lemmas (`ir3_prove::lemmas`).
pub const MODEL: [&str; 23] = [
    FLOATS,
    ROUNDING,
    DENORMALS,
    QUANTIZED,
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
    BYTE_OFFSET,
    TEXTURE_OF_IMAGE,
    NO_ALIAS,
    NO_FAULT,
    VOLATILE,
    CACHED,
    DESCRIPTORS,
    NARROW,
    IN_BOUNDS,
];

/// The features of a program that proofs model less precisely than the hardware implements them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// True if the program has texture operations.
    pub textures: bool,
    /// True if the program accesses memory that other waves see.
    pub memory: bool,
    /// True if the program loads from global memory, at computed addresses.
    pub global_loads: bool,
    /// True if lanes communicate, by an operation or through memory.
    pub lanes: bool,
    /// True if the program has branches.
    pub branches: bool,
    /// True if the program has conversions to floats whose rounding mode is open.
    pub rounding: bool,
    /// True if the program has operands relative to `a0.x`, in register arrays of known sizes.
    pub arrays: bool,
    /// True if the program accesses resources at computed indices.
    pub descriptors: bool,
    /// True if the program has 16-bit inputs that are not interpolated.
    pub narrow_inputs: bool,
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
            arrays: self.arrays | other.arrays,
            descriptors: self.descriptors | other.descriptors,
            narrow_inputs: self.narrow_inputs | other.narrow_inputs,
        }
    }

    /// The assumptions of a proof by the SMT engine.
    pub fn assumptions(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.rounding, ROUNDING),
            (self.arrays, ARRAY_BOUNDS),
            (self.textures, TEXTURES),
            (self.memory, ONE_WAVE),
            (self.global_loads, NO_FAULT),
            (self.branches && self.descriptors, DESCRIPTORS),
            (self.narrow_inputs, NARROW),
            (self.branches && (self.lanes || self.memory), BLOCK_ORDER),
        ];
        all.into_iter().filter(|(used, _)| *used).map(|(_, name)| name)
    }
}
