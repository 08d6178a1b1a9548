//! The GPU generations and their parameters.
//!
//! A [`Target`] is a plain value that says everything the backend needs to know of a GPU: how large its register file is,
//! which instructions it has, which quirks it needs. Passes ask for a parameter by its name (`target.merged_regs`),
//! never for a GPU, so that a new GPU is one more row of the table below.
//!
//! GPUs of one sub-generation share a template; a row of [`ALL`] names the GPU, its ids, and where it departs.

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
}

impl Generation {
    /// The generation's number: 3 for a3xx.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::A3xx => 3,
            Self::A4xx => 4,
            Self::A5xx => 5,
            Self::A6xx => 6,
            Self::A7xx => 7,
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}xx", self.number())
    }
}

/// Sizes of the constant file, in vec4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstLimits {
    /// All stages of a pipeline together.
    pub pipeline: u32,
    /// A fragment shader.
    pub fragment: u32,
    /// The geometry stages together.
    pub geometry: u32,
    /// A compute shader.
    pub compute: u32,
    /// What a stage may always use, whatever the others use.
    pub safe: u32,
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
    /// `stsc` must be emitted twice.
    pub stsc_duplication: bool,
    /// A fragment shader must have at least one constant.
    pub fragment_needs_consts: bool,
    /// A compute shader has half of the constant file that its generation has.
    pub compute_constlen: bool,
}

/// The parameters of a GPU; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The GPU's name, as `a660`.
    pub name: &'static str,
    /// The number in the name (660), or 0 where the name has none.
    pub number: u32,
    /// The low 32 bits of the chip id (core, major, minor, patch; a patch of 0xff stands for every patch).
    pub chip_id: u32,
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
    /// There is a file of registers that all lanes of a wave share.
    pub has_shared_regfile: bool,

    /// The fibers of a wave with the single thread size.
    pub threadsize_base: u32,
    /// A wave can be twice as wide where registers allow.
    pub double_threadsize: bool,
    /// Waves come in groups of this size.
    pub wave_granularity: u32,
    /// The most waves at a time.
    pub max_waves: u32,
    /// The fibers that have private memory at a time on a shader processor, where known.
    pub fibers_per_sp: Option<u32>,
    /// How deep divergent branches can nest.
    pub branchstack_size: u32,
    /// Shared memory of a compute shader, in bytes.
    pub local_mem_size: u32,
    /// There is private memory, which spilling needs.
    pub pvtmem: bool,
    /// The private memory of a fiber is a multiple of this, in bytes.
    pub pvtmem_per_fiber_align: u32,
    /// Sizes of the constant file.
    pub const_limits: ConstLimits,
    /// Constants are uploaded in multiples of this, in vec4.
    pub const_upload_unit: u32,
    /// A program's length is a multiple of this, in instructions.
    pub instr_align: u32,
    /// The instruction cache, in units of 16 instructions; 0 where unknown.
    pub instr_cache_size: u32,

    /// `and.b`, `or.b`, `xor.b` and `not.b` can write predicates.
    pub bitops_can_write_predicates: bool,
    /// Branches on two predicates: `braa`, `brao`.
    pub has_branch_and_or: bool,
    /// Predicated execution: `predt`, `predf`, `prede`.
    pub has_predication: bool,
    /// An ALU for values that are the same in all lanes, which writes shared registers.
    pub has_scalar_alu: bool,
    /// Shaders can have a preamble, run once a draw or dispatch.
    pub has_preamble: bool,
    /// The preamble can run before the wave is there, on the scalar ALU alone.
    pub has_early_preamble: bool,
    /// `shrm`, `shlm`, `shrg`, `shlg`, `andg`.
    pub has_bitwise_triops: bool,
    /// `sad` as a three-operand addition.
    pub has_sad: bool,
    /// `dp2acc`.
    pub has_dp2acc: bool,
    /// `dp4acc`.
    pub has_dp4acc: bool,
    /// `dp4acc` saturates as APIs want it.
    pub has_compliant_dp4acc: bool,
    /// `isam.v`, which loads several texels of a buffer.
    pub has_isam_v: bool,
    /// SSBOs can be read by `isam`.
    pub has_isam_ssbo: bool,
    /// SSBO accesses have an immediate offset.
    pub has_ssbo_imm_offsets: bool,
    /// `getfiberid`.
    pub has_getfiberid: bool,
    /// `bary.f` can repeat.
    pub has_rpt_bary_f: bool,
    /// `shfl`.
    pub has_shfl: bool,
    /// Storage buffers can be accessed in units of 16 bits.
    pub storage_16bit: bool,
    /// Fragment shaders can have texture fetches done before they start.
    pub has_fs_tex_prefetch: bool,

    /// Flat varyings are read by an instruction of their own rather than by `bary.f`.
    pub flat_bypass: bool,
    /// `getinfo` returns the number of levels less one.
    pub levels_add_one: bool,
    /// Coordinates of texel fetches must be multiplied up to the base level's size.
    pub unminify_coords: bool,
    /// Multisample fetches are `isaml`.
    pub txf_ms_with_isaml: bool,
    /// 0.5 is added to array indices of textures.
    pub array_index_add_half: bool,

    /// What deviates.
    pub quirks: Quirks,
}

/// The sizes of the register files as an allocator sees them, in units of one half register: the full register `rN.c`
/// is the two units from `2 * (4 * N + c)`, the half register `hrN.c` is the unit `4 * N + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterFiles {
    /// The file of full registers, r0.x to r47.w.
    pub full: u32,
    /// The reach of half registers, hr0.x to hr47.w: a file of their own, or the start of the full one (`merged_regs`).
    pub half: u32,
    /// The shared file, r48.x to r55.w; 0 if there is none.
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

    /// A bool in a general register is a half register.
    #[must_use]
    pub const fn bools_are_half(&self) -> bool {
        self.bool_bits == 16
    }

    /// The GPU of this name (`a660`, also `A660`, `FD660` or `660`).
    pub fn by_name(name: &str) -> Result<Self, UnknownTarget> {
        let wanted = name.trim().to_ascii_lowercase();
        let bare = wanted.strip_prefix("fd").or_else(|| wanted.strip_prefix('a')).unwrap_or(&wanted);
        ALL.iter()
            .find(|target| target.name == wanted || target.name.strip_prefix('a').is_some_and(|n| n == bare))
            .copied()
            .ok_or_else(|| UnknownTarget { found: name.to_owned() })
    }

    /// The GPU of this number (660 for the a660).
    pub fn by_number(number: u32) -> Result<Self, UnknownTarget> {
        ALL.iter()
            .find(|target| target.number == number && number != 0)
            .copied()
            .ok_or_else(|| UnknownTarget { found: number.to_string() })
    }

    /// The GPU of this chip id, as the kernel reports it. The speed bin in the bits from 32 on is ignored.
    pub fn by_chip_id(chip_id: u64) -> Result<Self, UnknownTarget> {
        let low = chip_id as u32;
        let exact = ALL.iter().find(|target| target.chip_id == low);
        let any_patch = || ALL.iter().find(|target| target.chip_id & 0xff == 0xff && target.chip_id >> 8 == low >> 8);
        exact.or_else(any_patch).copied().ok_or_else(|| UnknownTarget { found: format!("{chip_id:#x}") })
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
    ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

const A3XX: Target = Target {
    name: "",
    number: 0,
    chip_id: 0,
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
    fibers_per_sp: None,
    branchstack_size: 64,
    local_mem_size: 32 * 1024,
    pvtmem: false,
    pvtmem_per_fiber_align: 128,
    const_limits: ConstLimits { pipeline: 512, fragment: 512, geometry: 512, compute: 512, safe: 256 },
    const_upload_unit: 8,
    instr_align: 4,
    instr_cache_size: 0,
    bitops_can_write_predicates: false,
    has_branch_and_or: false,
    has_predication: false,
    has_scalar_alu: false,
    has_preamble: false,
    has_early_preamble: false,
    has_bitwise_triops: false,
    has_sad: false,
    has_dp2acc: false,
    has_dp4acc: false,
    has_compliant_dp4acc: false,
    has_isam_v: false,
    has_isam_ssbo: false,
    has_ssbo_imm_offsets: false,
    has_getfiberid: false,
    has_rpt_bary_f: false,
    has_shfl: false,
    storage_16bit: false,
    has_fs_tex_prefetch: false,
    flat_bypass: false,
    levels_add_one: true,
    unminify_coords: true,
    txf_ms_with_isaml: true,
    array_index_add_half: false,
    quirks: Quirks {
        prede_nop: false,
        predtf_nop: false,
        mov_half_shared: false,
        samgq: false,
        stsc_duplication: false,
        fragment_needs_consts: false,
        compute_constlen: false,
    },
};

const A4XX: Target = Target {
    generation: Generation::A4xx,
    reg_size_vec4: 48,
    threadsize_base: 32,
    pvtmem_per_fiber_align: 512,
    const_upload_unit: 4,
    instr_align: 16,
    flat_bypass: true,
    levels_add_one: false,
    unminify_coords: false,
    txf_ms_with_isaml: false,
    array_index_add_half: true,
    ..A3XX
};

const A5XX: Target = Target {
    generation: Generation::A5xx,
    bool_bits: 16,
    has_shared_regfile: true,
    has_bitwise_triops: true,
    pvtmem: true,
    fibers_per_sp: Some(1024),
    ..A4XX
};

/// The large GPUs of a6xx's first sub-generation.
const A6XX_GEN1: Target = Target {
    generation: Generation::A6xx,
    merged_regs: true,
    reg_size_vec4: 96,
    num_predicates: 4,
    threadsize_base: 64,
    fibers_per_sp: Some(2048),
    const_limits: ConstLimits { pipeline: 512, fragment: 512, geometry: 512, compute: 256, safe: 100 },
    instr_cache_size: 64,
    bitops_can_write_predicates: true,
    has_branch_and_or: true,
    has_predication: true,
    has_preamble: true,
    has_isam_ssbo: true,
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

const A6XX_GEN2: Target = Target { fibers_per_sp: Some(8192), ..A6XX_GEN1 };

const A6XX_GEN3: Target = Target {
    reg_size_vec4: 64,
    instr_cache_size: 127,
    fibers_per_sp: Some(4096),
    has_scalar_alu: true,
    has_early_preamble: true,
    has_dp2acc: true,
    storage_16bit: true,
    quirks: Quirks { prede_nop: true, ..A6XX_GEN1.quirks },
    ..A6XX_GEN1
};

const A6XX_GEN4: Target = Target {
    has_early_preamble: false,
    has_dp4acc: true,
    has_sad: true,
    has_isam_v: true,
    has_ssbo_imm_offsets: true,
    has_getfiberid: true,
    quirks: Quirks { predtf_nop: true, ..A6XX_GEN3.quirks },
    ..A6XX_GEN3
};

const A7XX_GEN1: Target = Target {
    generation: Generation::A7xx,
    reg_size_vec4: 96,
    has_early_preamble: true,
    const_limits: ConstLimits { compute: 512, ..A6XX_GEN4.const_limits },
    quirks: Quirks { mov_half_shared: false, fragment_needs_consts: true, ..A6XX_GEN4.quirks },
    ..A6XX_GEN4
};

const A7XX_GEN2: Target = Target { quirks: Quirks { stsc_duplication: true, ..A7XX_GEN1.quirks }, ..A7XX_GEN1 };

const A7XX_GEN3: Target = Target {
    has_compliant_dp4acc: true,
    quirks: Quirks { fragment_needs_consts: false, ..A7XX_GEN1.quirks },
    ..A7XX_GEN1
};

const A702: Target = Target { double_threadsize: true, threadsize_base: 16, storage_16bit: true, ..A6XX_GEN1_LOW };

const X1_85: Target = Target {
    const_limits: ConstLimits { compute: 256, ..A7XX_GEN2.const_limits },
    quirks: Quirks { compute_constlen: true, ..A7XX_GEN2.quirks },
    ..A7XX_GEN2
};

const DEFAULT: Target = plain("a660", 660, A6XX_GEN4);

/// A GPU whose chip id has the digits of its number, at any patch level.
const fn plain(name: &'static str, number: u32, template: Target) -> Target {
    let chip_id = (number / 100) << 24 | (number / 10 % 10) << 16 | (number % 10) << 8 | 0xff;
    Target { name, number, chip_id, ..template }
}

/// A GPU with a chip id of its own.
const fn chip(name: &'static str, number: u32, chip_id: u32, template: Target) -> Target {
    Target { name, number, chip_id, ..template }
}

/// Every GPU, in the order of the generations.
pub const ALL: &[Target] = &[
    plain("a305", 305, A3XX),
    chip("a305b", 0, 0x0300_0512, A3XX),
    chip("a306", 306, 0x0300_0600, A3XX),
    chip("a306a", 0, 0x0300_0620, A3XX),
    plain("a307", 307, A3XX),
    plain("a320", 320, A3XX),
    plain("a330", 330, A3XX),
    plain("a405", 405, A4XX),
    plain("a420", 420, A4XX),
    plain("a430", 430, A4XX),
    plain("a505", 505, A5XX),
    plain("a506", 506, A5XX),
    plain("a508", 508, A5XX),
    plain("a509", 509, A5XX),
    plain("a510", 510, A5XX),
    plain("a512", 512, A5XX),
    plain("a530", 530, A5XX),
    plain("a540", 540, A5XX),
    plain("a605", 605, A6XX_GEN1_LOW),
    plain("a608", 608, A6XX_GEN1_LOW),
    plain("a610", 610, A6XX_GEN1_LOW),
    plain("a612", 612, A6XX_GEN1_LOW),
    plain("a615", 615, A6XX_GEN1),
    plain("a616", 616, A6XX_GEN1),
    plain("a618", 618, A6XX_GEN1),
    plain("a619", 619, A6XX_GEN1),
    plain("a620", 620, A6XX_GEN1),
    chip("a621", 621, 0x0602_0100, A6XX_GEN3),
    chip("a623", 623, 0x0602_0300, A6XX_GEN3),
    plain("a630", 630, A6XX_GEN1),
    chip("a635", 635, 0x0603_0500, A6XX_GEN4),
    plain("a640", 640, A6XX_GEN2),
    // The same chip as the a635, told apart by its speed bin only.
    chip("a643", 643, 0x0603_0500, A6XX_GEN4),
    chip("a644", 644, 0x0606_0201, Target { fibers_per_sp: Some(8192), ..A6XX_GEN4 }),
    plain("a650", 650, A6XX_GEN3),
    DEFAULT,
    chip("a663", 663, 0x0606_0300, Target { fibers_per_sp: Some(8192), ..A6XX_GEN4 }),
    plain("a680", 680, A6XX_GEN2),
    plain("a690", 690, A6XX_GEN4),
    chip("a702", 702, 0x0700_2000, A702),
    chip("a725", 725, 0x0703_0002, A7XX_GEN1),
    chip("a730", 730, 0x0703_0001, A7XX_GEN1),
    chip("a735", 735, 0x4303_0b00, A7XX_GEN2),
    chip("x1-45", 0, 0x4303_0c00, A7XX_GEN2),
    chip("a740", 740, 0x4305_0a01, A7XX_GEN2),
    chip("a740v3", 0, 0x4305_0b00, A7XX_GEN2),
    chip("x1-85", 0, 0x4305_0c01, X1_85),
    chip("a32", 0, 0x4305_0a00, A7XX_GEN2),
    chip("a750", 750, 0x4305_1401, A7XX_GEN3),
];

#[cfg(test)]
mod tests;
