//! Profiles: mixes of operations and control flow for generated programs.

use ir3_compiler::words;
use std::str::FromStr;

use super::choices::Choices;
use super::operations::weight;

words! {
    /// A mix of operations and control flow.
    pub enum Profile {
        /// Arithmetic of all kinds, little control flow.
        Alu = "alu",
        /// Nested ifs.
        Branchy = "branchy",
        /// Loops with breaks and continues.
        Loops = "loops",
        /// Many live values.
        Pressure = "pressure",
        /// Vectors that are split and built.
        Vectors = "vectors",
        /// 16-bit values.
        Half = "half",
        /// Booleans, comparisons, and/or/not trees, branches on them.
        Predicates = "predicates",
        /// Buffers, shared memory, atomics, images, local arrays.
        Memory = "memory",
        /// Texture operations and derivatives.
        Textures = "textures",
        /// Subgroup votes, ballots, reads of other lanes.
        Subgroups = "subgroups",
        /// 64-bit integers.
        Int64 = "int64",
        /// A little of everything.
        Mixed = "mixed",
        /// Uniform values, branches and loops among divergent ones.
        Uniform = "uniform",
        /// 64-bit sums: native, in halves, written out; addresses.
        Additions = "additions",
        /// Every operation and intrinsic that selection accepts, at every width, with random indices.
        Operations = "operations",
    }
}

impl Profile {
    /// All but [`Operations`](Self::Operations), whose programs have operations that not every part of the harness
    /// takes.
    pub const SHAPED: [Self; Self::ALL.len() - 1] = {
        let mut list = [Self::Alu; Self::ALL.len() - 1];
        let (mut from, mut to) = (0, 0);
        while from < Self::ALL.len() {
            if !matches!(Self::ALL[from], Self::Operations) {
                list[to] = Self::ALL[from];
                to += 1;
            }
            from += 1;
        }
        list
    };
}

/// Frequencies of operations, relative to each other within one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub int: u8,
    pub float: u8,
    pub half: u8,
    pub int8: u8,
    pub int64: u8,
    pub compare: u8,
    pub boolean: u8,
    pub select: u8,
    pub convert: u8,
    pub bits: u8,
    pub divide: u8,
    pub vector: u8,
    pub memory: u8,
    pub array: u8,
    pub image: u8,
    pub texture: u8,
    pub subgroup: u8,
    pub branch: u8,
    pub loops: u8,
    /// Values defined at the start and used only at the end.
    pub long_lived: u8,
    /// Regions of uniform code.
    pub uniform: u8,
    /// Conditions that are trees, of 256.
    pub tree: u8,
    /// Comparisons with several readers.
    pub kept: u8,
    /// Operations drawn from the tables.
    pub operation: u8,
}

const BASE: Weights = Weights {
    int: 24,
    float: 20,
    half: 4,
    int8: 1,
    int64: 2,
    compare: 10,
    boolean: 5,
    select: 6,
    convert: 5,
    bits: 4,
    divide: 1,
    vector: 6,
    memory: 6,
    array: 1,
    image: 1,
    texture: 2,
    subgroup: 2,
    branch: 7,
    loops: 3,
    long_lived: 0,
    uniform: 0,
    tree: 0,
    kept: 0,
    operation: 0,
};

/// The mix of uniform regions.
pub(super) const UNIFORM: Weights = Weights {
    int: 28,
    half: 8,
    compare: 14,
    convert: 8,
    branch: 14,
    loops: 8,
    uniform: 10,
    vector: 0,
    memory: 0,
    array: 0,
    image: 0,
    texture: 0,
    subgroup: 0,
    ..BASE
};

impl Profile {
    /// The profiles of a campaign, taken in turn: every third program is of the operations that selection accepts.
    pub const CAMPAIGN: [Self; 21] = [
        Self::Alu,
        Self::Operations,
        Self::Branchy,
        Self::Loops,
        Self::Operations,
        Self::Pressure,
        Self::Vectors,
        Self::Operations,
        Self::Half,
        Self::Predicates,
        Self::Operations,
        Self::Memory,
        Self::Textures,
        Self::Operations,
        Self::Subgroups,
        Self::Int64,
        Self::Operations,
        Self::Mixed,
        Self::Uniform,
        Self::Operations,
        Self::Additions,
    ];

    pub(super) const fn weights(self) -> Weights {
        match self {
            Self::Alu => Weights { int: 40, float: 40, bits: 12, divide: 2, branch: 1, loops: 1, memory: 2, ..BASE },
            Self::Branchy => Weights { branch: 30, compare: 20, boolean: 8, ..BASE },
            Self::Loops => Weights { loops: 18, branch: 14, compare: 14, uniform: 10, ..BASE },
            Self::Pressure => Weights { long_lived: 60, vector: 12, branch: 4, loops: 2, ..BASE },
            Self::Vectors => Weights { vector: 50, memory: 14, ..BASE },
            Self::Half => Weights { half: 60, convert: 20, int8: 4, vector: 12, ..BASE },
            Self::Predicates => {
                Weights { compare: 36, boolean: 30, branch: 24, loops: 14, select: 16, tree: 170, kept: 60, ..BASE }
            }
            Self::Memory => Weights { memory: 40, array: 10, image: 8, vector: 14, half: 12, ..BASE },
            Self::Textures => Weights { texture: 30, vector: 12, half: 8, ..BASE },
            Self::Subgroups => Weights { subgroup: 24, branch: 14, loops: 10, vector: 12, half: 12, ..BASE },
            Self::Int64 => Weights { int64: 60, convert: 12, ..BASE },
            // Programs of these sums have a generator of their own.
            Self::Mixed | Self::Additions => BASE,
            Self::Operations => Weights { operation: 200, branch: 10, loops: 4, int64: 9, uniform: 8, kept: 3, ..BASE },
            Self::Uniform => Weights { uniform: 50, subgroup: 8, branch: 14, loops: 8, ..BASE },
        }
    }
}

impl Weights {
    /// Weights of one program of the profile `operations`: a random subset of the others' operations.
    pub(super) fn drawn<C: Choices>(c: &mut C) -> Self {
        let mut drawn = Profile::Operations.weights();
        let parts = [
            &mut drawn.int,
            &mut drawn.float,
            &mut drawn.half,
            &mut drawn.int8,
            &mut drawn.int64,
            &mut drawn.compare,
            &mut drawn.boolean,
            &mut drawn.select,
            &mut drawn.convert,
            &mut drawn.bits,
            &mut drawn.divide,
            &mut drawn.vector,
            &mut drawn.memory,
            &mut drawn.array,
            &mut drawn.image,
            &mut drawn.texture,
            &mut drawn.subgroup,
            &mut drawn.branch,
            &mut drawn.loops,
            &mut drawn.uniform,
            &mut drawn.kept,
        ];
        for part in parts {
            *part = weight(c, u16::from(*part)).min(250) as u8;
        }
        drawn.long_lived = c.pick(&[0, 0, 0, 0, 0, 30, 90, 90]);
        drawn.tree = c.pick(&[0, 0, 60, 170]);
        drawn
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Self::from_name(s).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|p| p.name()).collect();
            format!("unknown profile `{s}`; expected one of {}", known.join(", "))
        })
    }
}
