//! The GPU generations and their parameters.
//!
//! A [`Target`] is a plain value with all parameters of a GPU that the backend depends on: the size of its register
//! file, its instructions, its quirks. Passes use a parameter by its name (`target.merged_regs`), never for a GPU, so
//! that a new GPU is one more row of the table below.
//!
//! GPUs of one sub-generation share a template; a row of [`ALL`] names the GPU and its template.

pub mod occupancy;

use std::fmt;

/// The GPU generations that run ir3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Adreno 3xx.
    A3xx,
    /// Adreno 4xx.
    A4xx,
    /// Adreno 5xx.
    A5xx,
    /// Adreno 6xx (and the a702, which is one but for its name).
    A6xx,
    /// Adreno 7xx.
    A7xx,
    /// Adreno 8xx. Its instructions are taken to be encoded as those of a7xx; no log with its words is known here.
    A8xx,
}

impl Generation {
    /// All generations.
    pub const ALL: [Self; 6] = [Self::A3xx, Self::A4xx, Self::A5xx, Self::A6xx, Self::A7xx, Self::A8xx];

    /// The generation's number: 3 for a3xx.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::A3xx => 3,
            Self::A4xx => 4,
            Self::A5xx => 5,
            Self::A6xx => 6,
            Self::A7xx => 7,
            Self::A8xx => 8,
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}xx", self.number())
    }
}

/// The backend that compiles for a GPU: its machine language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// [`ir3`](crate::ir3), for Adreno.
    Ir3,
    /// [`vec4`](crate::i965::vec4), for Intel's Gen7. The parameters of ir3 do not matter.
    Vec4,
    /// The scalar mode of the vec4 language, for Intel's Gen7. The parameters of ir3 do not matter.
    Scalar,
}

/// The slots that a GPU needs between a result of the ALU and its readers (`delay_slots`, `ir3_compiler.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySlots {
    /// The slots from ALU to ALU.
    pub near: u32,
    /// The slots until an address register, a predicate, or any result may be read outside the ALU.
    pub far: u32,
    /// The third source of a multiply-add is read this many slots later than the others.
    pub third_source: u32,
}

impl DelaySlots {
    /// The delays of all GPUs but a7xx, where Mesa before 25.1 used them, too.
    pub const LONG: Self = Self { near: 3, far: 6, third_source: 2 };
    /// The delays of a7xx.
    pub const SHORT: Self = Self { near: 2, far: 5, third_source: 1 };
}

/// Sizes of the constant file, in vec4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstLimits {
    /// A fragment shader.
    pub fragment: u32,
    /// The geometry stages together.
    pub geometry: u32,
    /// A compute shader.
    pub compute: u32,
}

/// The instruction that reads a varying that is not interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlatVaryings {
    /// `bary.f`, as all others: the driver sets for each varying that it is flat.
    Interpolated,
    /// `ldlv`, from local memory.
    LocalMemory,
    /// `flat.b`.
    Instruction,
}

/// Deviations from the rest of the generation that code generation must respect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// `prede` needs a nop before it.
    pub prede_nop: bool,
    /// `predt` and `predf` need nops between them.
    pub predtf_nop: bool,
    /// Half moves out of shared registers are wrong.
    pub mov_half_shared: bool,
    /// `samgq` returns wrong data and is replaced by four `samgpN`.
    pub samgq: bool,
    /// `stsc` is executed twice.
    pub stsc_duplication: bool,
}

/// The parameters of a GPU; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU's name, as `a660`.
    pub name: &'static str,
    /// The backend that compiles for it.
    pub backend: Backend,
    /// The generation.
    pub generation: Generation,

    /// A full register is two half registers (hr0.x and hr0.y are r0.x); otherwise the two files are independent.
    pub merged_regs: bool,
    /// The registers of a SIMD lane for all of its waves, in vec4.
    pub reg_size_vec4: u32,
    /// The number of predicate registers (`p0.x` …).
    pub num_predicates: u32,
    /// A bool in a general register has this many bits: 16 (a half register) or 32.
    pub bool_bits: u8,
    /// The GPU has a file of registers that all lanes of a wave share.
    pub has_shared_regfile: bool,

    /// The fibers of a wave with the single thread size.
    pub threadsize_base: u32,
    /// A wave can be twice as wide where registers allow.
    pub double_threadsize: bool,
    /// Waves come in groups of this size.
    pub wave_granularity: u32,
    /// The maximum number of concurrent waves.
    pub max_waves: u32,
    /// The depth of the stack of divergent branches.
    pub branchstack_size: u32,
    /// Shared memory of a compute shader, in bytes.
    pub local_mem_size: u32,
    /// The GPU has private memory, which spilling needs.
    pub pvtmem: bool,
    /// Sizes of the constant file.
    pub const_limits: ConstLimits,
    /// Delays of the ALU.
    pub delay_slots: DelaySlots,

    /// `and.b`, `or.b`, `xor.b` and `not.b` can write predicates.
    pub bitops_can_write_predicates: bool,
    /// Branches on two predicates: `braa`, `brao`.
    pub has_branch_and_or: bool,
    /// Predicated execution: `predt`, `predf`, `prede`.
    pub has_predication: bool,
    /// An ALU for uniform values, which writes shared registers.
    pub has_scalar_alu: bool,
    /// `shrm`, `shlm`, `shrg`, `shlg`, `andg`. From a6xx on, as in Mesa's encoding (`ir3-cat3.xml`); its compiler says
    /// that a5xx has them, too.
    pub has_bitwise_triops: bool,
    /// `sad` as a three-operand addition.
    pub has_sad: bool,
    /// `isam.v`, which loads several texels of a buffer.
    pub has_isam_v: bool,
    /// SSBOs can be read by `isam`.
    pub has_isam_ssbo: bool,
    /// SSBO accesses have an immediate offset.
    pub has_ssbo_imm_offsets: bool,
    /// `bary.f` can repeat.
    pub has_rpt_bary_f: bool,
    /// `shfl`.
    pub has_shfl: bool,
    /// Storage buffers can be accessed in units of 16 bits.
    pub storage_16bit: bool,
    /// Storage buffers have descriptors for elements of 8 bits, which `isam` cannot use.
    pub storage_8bit: bool,
    /// `dp2acc`.
    pub has_dp2acc: bool,
    /// `dp4acc`.
    pub has_dp4acc: bool,
    /// `getfiberid`.
    pub has_getfiberid: bool,
    /// A vertex shader passes its outputs to a control shader through the memory of the workgroup.
    pub tess_use_shared: bool,
    /// Fragment shaders can have texture fetches done before they start.
    pub has_fs_tex_prefetch: bool,

    /// The instruction that reads a flat varying.
    pub flat_varyings: FlatVaryings,
    /// `getinfo` returns the number of levels less one.
    pub levels_add_one: bool,
    /// Coordinates of texel fetches must be multiplied up to the base level's size.
    pub unminify_coords: bool,
    /// Multisample fetches are `isaml`.
    pub txf_ms_with_isaml: bool,
    /// A multiply-add does not round the product.
    pub fused_multiply_add: bool,

    /// The deviations.
    pub quirks: Quirks,
}

/// The sizes of the register files as an allocator sees them, in units of one half register: the full register `rN.c`
/// is the two units from `2 * (4 * N + c)`, the half register `hrN.c` is the unit `4 * N + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterFiles {
    /// The file of full registers, r0.x to r47.w.
    pub full: u32,
    /// The reach of half registers, hr0.x to hr47.w: a file of their own, or the start of the full one
    /// (`merged_regs`).
    pub half: u32,
    /// The shared file, r48.x to r55.w; 0 for a GPU without it.
    pub shared: u32,
    /// The reach of shared half registers.
    pub shared_half: u32,
}

impl Target {
    /// The sizes of the register files.
    #[must_use]
    pub const fn register_files(&self) -> RegisterFiles {
        let (shared, shared_half) = if self.has_shared_regfile { (64, 32) } else { (0, 0) };
        RegisterFiles { full: 384, half: 192, shared, shared_half }
    }

    /// The 32-bit words of memory of `instructions` instructions. Nops follow them: the next data in memory must not be
    /// fetched as instructions.
    #[must_use]
    pub fn dwords(&self, instructions: u32) -> u32 {
        const NOPS: u32 = 4;
        let alignment = if self.generation == Generation::A3xx { 4 } else { 16 };
        2 * (instructions + NOPS).max(instructions.next_multiple_of(alignment))
    }

    /// A bool in a general register is a half register.
    #[must_use]
    pub const fn bools_are_half(&self) -> bool {
        self.bool_bits == 16
    }

    /// The default GPU of a generation: a320, a420, a540, a660, a750, a830.
    #[must_use]
    pub const fn of_generation(generation: Generation) -> Self {
        match generation {
            Generation::A3xx => gpu("a320", A3XX),
            Generation::A4xx => gpu("a420", A4XX),
            Generation::A5xx => gpu("a540", A5XX),
            Generation::A6xx => DEFAULT,
            Generation::A7xx => gpu("a750", A7XX_GEN3),
            Generation::A8xx => gpu("a830", A8XX),
        }
    }

    /// The GPU of this name (`a660`, also `A660`, `FD660` or `660`).
    ///
    /// # Errors
    /// If there is no such GPU.
    pub fn by_name(name: &str) -> Result<Self, UnknownTarget> {
        let wanted = name.trim().to_ascii_lowercase();
        let bare = wanted.strip_prefix("fd").or_else(|| wanted.strip_prefix('a')).unwrap_or(&wanted);
        ALL.iter()
            .chain([&GEN7, &GEN7_SCALAR])
            .find(|target| target.name == wanted || target.name.strip_prefix('a').is_some_and(|n| n == bare))
            .copied()
            .ok_or_else(|| UnknownTarget { found: name.to_owned() })
    }
}

impl Default for Target {
    fn default() -> Self {
        DEFAULT
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl std::str::FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, UnknownTarget> {
        Self::by_name(name)
    }
}

/// A GPU that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown GPU `{found}`; known are {known}", known = names())]
pub struct UnknownTarget {
    /// The requested name or id.
    pub found: String,
}

fn names() -> String {
    ALL.iter().chain([&GEN7, &GEN7_SCALAR]).map(|target| target.name).collect::<Vec<_>>().join(", ")
}

const A3XX: Target = Target {
    name: "",
    backend: Backend::Ir3,
    generation: Generation::A3xx,
    merged_regs: false,
    reg_size_vec4: 96,
    num_predicates: 1,
    bool_bits: 32,
    has_shared_regfile: false,
    threadsize_base: 8,
    double_threadsize: true,
    wave_granularity: 2,
    max_waves: 16,
    branchstack_size: 64,
    local_mem_size: 32 * 1024,
    pvtmem: false,
    const_limits: ConstLimits { fragment: 512, geometry: 512, compute: 512 },
    delay_slots: DelaySlots::LONG,
    bitops_can_write_predicates: false,
    has_branch_and_or: false,
    has_predication: false,
    has_scalar_alu: false,
    has_bitwise_triops: false,
    has_sad: false,
    has_isam_v: false,
    has_isam_ssbo: false,
    has_ssbo_imm_offsets: false,
    has_rpt_bary_f: false,
    has_shfl: false,
    storage_16bit: false,
    storage_8bit: false,
    has_dp2acc: false,
    has_dp4acc: false,
    has_getfiberid: false,
    tess_use_shared: false,
    has_fs_tex_prefetch: false,
    flat_varyings: FlatVaryings::Interpolated,
    levels_add_one: true,
    unminify_coords: true,
    txf_ms_with_isaml: true,
    fused_multiply_add: false,
    quirks: Quirks {
        prede_nop: false,
        predtf_nop: false,
        mov_half_shared: false,
        samgq: false,
        stsc_duplication: false,
    },
};

const A4XX: Target = Target {
    generation: Generation::A4xx,
    reg_size_vec4: 48,
    threadsize_base: 32,
    flat_varyings: FlatVaryings::LocalMemory,
    levels_add_one: false,
    unminify_coords: false,
    txf_ms_with_isaml: false,
    ..A3XX
};

const A5XX: Target =
    Target { generation: Generation::A5xx, bool_bits: 16, has_shared_regfile: true, pvtmem: true, ..A4XX };

/// The large GPUs of a6xx's first sub-generation.
const A6XX_GEN1: Target = Target {
    generation: Generation::A6xx,
    merged_regs: true,
    reg_size_vec4: 96,
    num_predicates: 4,
    threadsize_base: 64,
    const_limits: ConstLimits { compute: 256, ..A5XX.const_limits },
    bitops_can_write_predicates: true,
    has_branch_and_or: true,
    has_predication: true,
    has_bitwise_triops: true,
    has_isam_ssbo: true,
    flat_varyings: FlatVaryings::Instruction,
    has_rpt_bary_f: true,
    has_shfl: true,
    has_fs_tex_prefetch: true,
    quirks: Quirks { mov_half_shared: true, samgq: true, ..A5XX.quirks },
    ..A5XX
};

const A6XX_GEN1_LOW: Target = Target {
    reg_size_vec4: 48,
    double_threadsize: false,
    wave_granularity: 1,
    local_mem_size: 16 * 1024,
    has_fs_tex_prefetch: false,
    ..A6XX_GEN1
};

const A6XX_GEN3: Target = Target {
    reg_size_vec4: 64,
    has_scalar_alu: true,
    storage_16bit: true,
    has_dp2acc: true,
    tess_use_shared: true,
    quirks: Quirks { prede_nop: true, ..A6XX_GEN1.quirks },
    ..A6XX_GEN1
};

const A6XX_GEN4: Target = Target {
    has_sad: true,
    has_isam_v: true,
    has_ssbo_imm_offsets: true,
    has_dp4acc: true,
    has_getfiberid: true,
    quirks: Quirks { predtf_nop: true, ..A6XX_GEN3.quirks },
    ..A6XX_GEN3
};

const A7XX: Target = Target {
    generation: Generation::A7xx,
    reg_size_vec4: 96,
    const_limits: ConstLimits { compute: 512, ..A6XX_GEN4.const_limits },
    delay_slots: DelaySlots::SHORT,
    quirks: Quirks { mov_half_shared: false, ..A6XX_GEN4.quirks },
    ..A6XX_GEN4
};

const A702: Target = Target { double_threadsize: true, threadsize_base: 16, storage_16bit: true, ..A6XX_GEN1_LOW };

/// The second sub-generation of a7xx.
const A7XX_GEN2: Target = Target { quirks: Quirks { stsc_duplication: true, ..A7XX.quirks }, ..A7XX };

/// The third one.
const A7XX_GEN3: Target = Target { storage_8bit: true, ..A7XX };

/// A compute shader has half of the constant file.
const X1_85: Target = Target { const_limits: ConstLimits { compute: 256, ..A7XX.const_limits }, ..A7XX_GEN2 };

/// The first sub-generation of a8xx, as Mesa 26 describes it: an a750 without `dp2acc` and without waves of double
/// width. Other differences are not known here.
const A8XX: Target = Target {
    generation: Generation::A8xx,
    double_threadsize: false,
    has_dp2acc: false,
    delay_slots: DelaySlots::LONG,
    ..A7XX_GEN3
};

/// The second one.
const A8XX_GEN2: Target = Target { reg_size_vec4: 128, has_fs_tex_prefetch: false, ..A8XX };

const DEFAULT: Target = gpu("a660", A6XX_GEN4);

/// Intel's Gen7 (Ivy Bridge, Haswell), whose vertex shaders are compiled to [`vec4`](crate::i965::vec4). It is not
/// among [`ALL`], the GPUs of ir3.
pub const GEN7: Target = Target { name: "gen7", backend: Backend::Vec4, fused_multiply_add: true, ..A3XX };

/// Intel's Gen7 with shaders in scalar mode, 8 or 16 invocations a thread.
pub const GEN7_SCALAR: Target = Target { name: "gen7-scalar", backend: Backend::Scalar, ..GEN7 };

const fn gpu(name: &'static str, template: Target) -> Target {
    Target { name, ..template }
}

/// Every GPU, in the order of the generations.
pub const ALL: &[Target] = &[
    gpu("a305", A3XX),
    gpu("a305b", A3XX),
    gpu("a306", A3XX),
    gpu("a306a", A3XX),
    gpu("a307", A3XX),
    gpu("a320", A3XX),
    gpu("a330", A3XX),
    gpu("a405", A4XX),
    gpu("a420", A4XX),
    gpu("a430", A4XX),
    gpu("a505", A5XX),
    gpu("a506", A5XX),
    gpu("a508", A5XX),
    gpu("a509", A5XX),
    gpu("a510", A5XX),
    gpu("a512", A5XX),
    gpu("a530", A5XX),
    gpu("a540", A5XX),
    gpu("a605", A6XX_GEN1_LOW),
    gpu("a608", A6XX_GEN1_LOW),
    gpu("a610", A6XX_GEN1_LOW),
    gpu("a612", A6XX_GEN1_LOW),
    gpu("a615", A6XX_GEN1),
    gpu("a616", A6XX_GEN1),
    gpu("a618", A6XX_GEN1),
    gpu("a619", A6XX_GEN1),
    gpu("a620", A6XX_GEN1),
    gpu("a621", A6XX_GEN3),
    gpu("a623", A6XX_GEN3),
    gpu("a630", A6XX_GEN1),
    gpu("a635", A6XX_GEN4),
    gpu("a640", A6XX_GEN1),
    gpu("a643", A6XX_GEN4),
    gpu("a644", A6XX_GEN4),
    gpu("a650", A6XX_GEN3),
    DEFAULT,
    gpu("a663", A6XX_GEN4),
    gpu("a680", A6XX_GEN1),
    gpu("a690", A6XX_GEN4),
    gpu("a702", A702),
    gpu("a725", A7XX),
    gpu("a730", A7XX),
    gpu("a735", A7XX_GEN2),
    gpu("x1-45", A7XX_GEN2),
    gpu("a740", A7XX_GEN2),
    gpu("a740v3", A7XX_GEN2),
    gpu("x1-85", X1_85),
    gpu("a32", A7XX_GEN2),
    gpu("a750", A7XX_GEN3),
    gpu("a810", Target { has_fs_tex_prefetch: false, ..A8XX }),
    gpu("a829", A8XX_GEN2),
    gpu("a830", A8XX),
    gpu("a840", A8XX_GEN2),
    gpu("x2-85", A8XX_GEN2),
];

#[cfg(test)]
mod tests;
