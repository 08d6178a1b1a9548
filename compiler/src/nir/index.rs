//! The constant indices of intrinsics: typed, kept in print order.

use std::fmt;

use bitflags::bitflags;
use smallvec::SmallVec;

use super::op::Op;
use super::types::{AluType, BaseType};
use crate::words;

words! {
    /// The operation of an atomic.
    pub enum AtomicOp {
        Iadd = "iadd", Imin = "imin", Umin = "umin", Imax = "imax", Umax = "umax", Iand = "iand", Ior = "ior",
        Ixor = "ixor", Xchg = "xchg", Fadd = "fadd", Fmin = "fmin", Fmax = "fmax", Cmpxchg = "cmpxchg",
        Fcmpxchg = "fcmpxchg", IncWrap = "inc_wrap", DecWrap = "dec_wrap",
    }
}

words! {
    /// The dimensions of an image.
    pub enum ImageDim {
        Dim1D = "1D", Dim2D = "2D", Dim3D = "3D", Cube = "Cube", Rect = "Rect", Buf = "Buf", Ms = "2D-MSAA",
        Subpass = "Subpass", SubpassMs = "Subpass-MSAA", External = "External", ExternalY2y = "External-2D-Y2Y",
    }
}

impl ImageDim {
    /// The number of coordinates that address a texel, the array index included.
    pub fn coordinates(self, array: bool) -> u8 {
        let plain = match self {
            ImageDim::Dim1D | ImageDim::Buf => 1,
            ImageDim::Dim2D
            | ImageDim::Rect
            | ImageDim::Ms
            | ImageDim::Subpass
            | ImageDim::SubpassMs
            | ImageDim::External
            | ImageDim::ExternalY2y => 2,
            ImageDim::Dim3D | ImageDim::Cube => 3,
        };
        // A cube's third coordinate already counts faces and layers.
        plain + u8::from(array && self != ImageDim::Cube)
    }

    /// Returns true if a texel has one coordinate. Textures have at least two: the second one is 0 there.
    pub fn is_1d(self) -> bool {
        self.coordinates(false) == 1
    }
}

words! {
    /// The interpolation mode of an input.
    pub enum InterpMode {
        None = "INTERP_MODE_NONE", Smooth = "INTERP_MODE_SMOOTH", Flat = "INTERP_MODE_FLAT",
        NoPerspective = "INTERP_MODE_NOPERSPECTIVE", Explicit = "INTERP_MODE_EXPLICIT", Color = "INTERP_MODE_COLOR",
    }
}

words! {
    /// The invocations that a barrier synchronizes, or that see its effect.
    pub enum Scope {
        None = "NONE", Invocation = "INVOCATION", Subgroup = "SUBGROUP", ShaderCall = "SHADER_CALL",
        Workgroup = "WORKGROUP", QueueFamily = "QUEUE_FAMILY", Device = "DEVICE",
    }
}

words! {
    /// The format of an image.
    pub enum Format {
        None = "none",
        R8Unorm = "r8_unorm", R8Snorm = "r8_snorm", R8Uint = "r8_uint", R8Sint = "r8_sint",
        R8G8Unorm = "r8g8_unorm", R8G8Snorm = "r8g8_snorm", R8G8Uint = "r8g8_uint", R8G8Sint = "r8g8_sint",
        R8G8B8A8Unorm = "r8g8b8a8_unorm", R8G8B8A8Snorm = "r8g8b8a8_snorm", R8G8B8A8Uint = "r8g8b8a8_uint",
        R8G8B8A8Sint = "r8g8b8a8_sint", B8G8R8A8Unorm = "b8g8r8a8_unorm",
        R16Unorm = "r16_unorm", R16Snorm = "r16_snorm", R16Uint = "r16_uint", R16Sint = "r16_sint",
        R16Float = "r16_float",
        R16G16Unorm = "r16g16_unorm", R16G16Snorm = "r16g16_snorm", R16G16Uint = "r16g16_uint",
        R16G16Sint = "r16g16_sint", R16G16Float = "r16g16_float",
        R16G16B16A16Unorm = "r16g16b16a16_unorm", R16G16B16A16Snorm = "r16g16b16a16_snorm",
        R16G16B16A16Uint = "r16g16b16a16_uint", R16G16B16A16Sint = "r16g16b16a16_sint",
        R16G16B16A16Float = "r16g16b16a16_float",
        R32Uint = "r32_uint", R32Sint = "r32_sint", R32Float = "r32_float",
        R32G32Uint = "r32g32_uint", R32G32Sint = "r32g32_sint", R32G32Float = "r32g32_float",
        R32G32B32A32Uint = "r32g32b32a32_uint", R32G32B32A32Sint = "r32g32b32a32_sint",
        R32G32B32A32Float = "r32g32b32a32_float",
        R64Uint = "r64_uint", R64Sint = "r64_sint",
        R10G10B10A2Unorm = "r10g10b10a2_unorm", R10G10B10A2Uint = "r10g10b10a2_uint",
        R11G11B10Float = "r11g11b10_float",
    }
}

impl Format {
    /// The number of components of a texel; None if the format is unknown.
    pub fn components(self) -> Option<u8> {
        // The letters before the numeric type (`_unorm`, `_float` …) are those of the components.
        let layout = self.name().split('_').next().filter(|_| self != Self::None)?;
        Some(layout.chars().filter(|c| "rgba".contains(*c)).count() as u8)
    }
}

bitflags! {
    /// The access qualifiers of a memory access; the bits are in print order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Access: u32 {
        /// `coherent`
        const COHERENT = 1 << 0;
        /// `restrict`
        const RESTRICT = 1 << 1;
        /// `volatile`
        const VOLATILE = 1 << 2;
        /// `readonly`
        const READONLY = 1 << 3;
        /// `writeonly`
        const WRITEONLY = 1 << 4;
        /// `non-uniform`
        const NON_UNIFORM = 1 << 5;
        /// `reorderable`
        const REORDERABLE = 1 << 6;
        /// `non-temporal`
        const NON_TEMPORAL = 1 << 7;
        /// `include-helpers`
        const INCLUDE_HELPERS = 1 << 8;
        /// `speculatable`
        const SPECULATABLE = 1 << 9;
        /// `in-bounds`
        const IN_BOUNDS = 1 << 10;
        /// `keep-scalar`
        const KEEP_SCALAR = 1 << 11;
        /// `atomic`: a load or store that does not race with other atomic accesses. Mesa marks it as coherent, too, but in shared memory.
        const ATOMIC = 1 << 12;
    }

    /// The control of a float operation: the transformations that are forbidden.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct FpMath: u8 {
        /// `no-contract`
        const NO_CONTRACT = 1 << 0;
        /// `no-reassoc`
        const NO_REASSOC = 1 << 1;
        /// `no-transform`
        const NO_TRANSFORM = 1 << 2;
        /// `exact`: all three.
        const EXACT = 0b111;
        /// `preserve:sz`
        const SIGNED_ZERO = 1 << 3;
        /// `preserve:inf`
        const INF = 1 << 4;
        /// `preserve:nan`
        const NAN = 1 << 5;
    }

    /// The memory semantics of a barrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct MemorySemantics: u8 {
        /// `ACQ`
        const ACQUIRE = 1 << 0;
        /// `REL`
        const RELEASE = 1 << 1;
        /// `AVAILABLE`
        const AVAILABLE = 1 << 2;
        /// `VISIBLE`
        const VISIBLE = 1 << 3;
    }

    /// Storage classes, as variables and barriers name them; the bits are in print order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct MemoryModes: u32 {
        /// `system`
        const SYSTEM = 1 << 0;
        /// `uniform`
        const UNIFORM = 1 << 1;
        /// `ubo`
        const UBO = 1 << 2;
        /// `constant`
        const CONSTANT = 1 << 3;
        /// `image`
        const IMAGE = 1 << 4;
        /// `push_const`
        const PUSH_CONST = 1 << 5;
        /// `shader_in`
        const SHADER_IN = 1 << 6;
        /// `shader_out`
        const SHADER_OUT = 1 << 7;
        /// `shader_temp`
        const SHADER_TEMP = 1 << 8;
        /// `function_temp`
        const FUNCTION_TEMP = 1 << 9;
        /// `ssbo`
        const SSBO = 1 << 10;
        /// `shared`
        const SHARED = 1 << 11;
        /// `global`
        const GLOBAL = 1 << 12;
    }

    /// The flags after an io location; the bits are in print order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct IoFlags: u16 {
        /// `explicit_strict`
        const EXPLICIT_STRICT = 1 << 0;
        /// `dualsrc`
        const DUAL_SOURCE = 1 << 1;
        /// `fbfetch`
        const FB_FETCH = 1 << 2;
        /// `coherent`
        const COHERENT = 1 << 3;
        /// `perview`
        const PER_VIEW = 1 << 4;
        /// `mediump`
        const MEDIUM_PRECISION = 1 << 5;
        /// `high_16bits`
        const HIGH_16_BITS = 1 << 6;
        /// `invariant`
        const INVARIANT = 1 << 7;
        /// `high_dvec2`
        const HIGH_DVEC2 = 1 << 8;
        /// `no_varying`
        const NO_VARYING = 1 << 9;
        /// `no_sysval_output`
        const NO_SYSVAL_OUTPUT = 1 << 10;
        /// `no_validate`
        const NO_VALIDATE = 1 << 11;
        /// `no_signed_zero`
        const NO_SIGNED_ZERO = 1 << 12;
    }
}

/// The words of [`Access`], by bit.
pub(crate) const ACCESS_WORDS: &[&str] = &[
    "coherent",
    "restrict",
    "volatile",
    "readonly",
    "writeonly",
    "non-uniform",
    "reorderable",
    "non-temporal",
    "include-helpers",
    "speculatable",
    "in-bounds",
    "keep-scalar",
    "atomic",
];

/// The words of the optimisations that [`FpMath`] forbids, by bit.
pub(crate) const FP_WORDS: &[&str] = &["no-contract", "no-reassoc", "no-transform"];

/// The words after `preserve:`, by bit from [`FpMath::SIGNED_ZERO`] on.
pub(crate) const PRESERVE_WORDS: &[&str] = &["sz", "inf", "nan"];

/// The words of [`MemoryModes`], by bit.
pub(crate) const MODE_WORDS: &[&str] = &[
    "system",
    "uniform",
    "ubo",
    "constant",
    "image",
    "push_const",
    "shader_in",
    "shader_out",
    "shader_temp",
    "function_temp",
    "ssbo",
    "shared",
    "global",
];

/// The words of [`IoFlags`], by bit.
pub(crate) const IO_WORDS: &[&str] = &[
    "explicit_strict",
    "dualsrc",
    "fbfetch",
    "coherent",
    "perview",
    "mediump",
    "high_16bits",
    "invariant",
    "high_dvec2",
    "no_varying",
    "no_sysval_output",
    "no_validate",
    "no_signed_zero",
];

/// The API semantics of an input or output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IoSemantics {
    /// The slot, as printed: `VARYING_SLOT_VAR0`, `FRAG_RESULT_COLOR`, `VERT_ATTRIB_GENERIC0`.
    pub location: Box<str>,
    /// The number of slots.
    pub slots: u32,
    /// The flags that follow.
    pub flags: IoFlags,
    /// The streams of the components that a geometry shader stores, counted from the first one that is stored. Mesa
    /// prints them in geometry shaders only, and always there.
    pub streams: Option<[u8; 4]>,
}

impl IoSemantics {
    /// The semantics of one slot, without flags.
    #[must_use]
    pub fn of(location: &str) -> Self {
        Self { location: location.into(), slots: 1, flags: IoFlags::default(), streams: None }
    }

    /// The stream of a component that is stored, counted from the first one.
    #[must_use]
    pub fn stream(&self, component: u8) -> u8 {
        self.streams.and_then(|streams| streams.get(usize::from(component)).copied()).unwrap_or(0)
    }
}

/// One range of components captured by transform feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct XfbOutput {
    /// The first component.
    pub first: u8,
    /// The number of components.
    pub components: u8,
    /// The buffer.
    pub buffer: u32,
    /// The offset in bytes.
    pub offset: u32,
}

/// The components of an output that transform feedback captures. Most outputs have none, which allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Xfb {
    /// The captured ranges.
    pub outputs: SmallVec<[XfbOutput; 2]>,
}

macro_rules! indices {
    ($($variant:ident $text:literal $accessor:ident: $ty:ty = $default:expr;)*) => {
        words! {
            /// The kinds of index.
            pub enum IndexKind { $($variant = $text,)* }
        }

        /// One index with its value.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Index {
            $(#[doc = concat!("`", $text, "`")] $variant($ty),)*
        }

        impl Index {
            /// The kind of the index.
            pub fn kind(&self) -> IndexKind {
                match self { $(Index::$variant(_) => IndexKind::$variant,)* }
            }

            /// The value of an index that is not set.
            pub fn default_of(kind: IndexKind) -> Index {
                match kind { $(IndexKind::$variant => Index::$variant($default),)* }
            }
        }

        impl Indices {
            $(
                #[doc = concat!("The value of `", $text, "`; its default where the intrinsic has none.")]
                pub fn $accessor(&self) -> $ty {
                    self.0.iter().find_map(|index| match index {
                        Index::$variant(value) => Some(value.clone()),
                        _ => None,
                    }).unwrap_or_else(|| $default)
                }
            )*
        }
    };
}

indices! {
    Base "base" base: i32 = 0;
    WriteMask "wrmask" write_mask: u16 = 0;
    StreamId "stream_id" stream_id: u32 = 0;
    RangeBase "range_base" range_base: u32 = 0;
    Range "range" range: u32 = 0;
    DescSet "desc_set" desc_set: u32 = 0;
    UcpId "ucp_id" ucp_id: u32 = 0;
    Component "component" component: u8 = 0;
    InterpMode "interp_mode" interp_mode: InterpMode = InterpMode::None;
    ReductionOp "reduction_op" reduction_op: Op = Op::Iadd;
    ClusterSize "cluster_size" cluster_size: u32 = 0;
    ImageDim "image_dim" image_dim: ImageDim = ImageDim::Dim2D;
    ImageArray "image_array" image_array: bool = false;
    Format "format" format: Format = Format::None;
    Access "access" access: Access = Access::empty();
    AlignMul "align_mul" align_mul: u32 = 0;
    AlignOffset "align_offset" align_offset: u32 = 0;
    SrcType "src_type" src_type: AluType = AluType::new(BaseType::Invalid, 0);
    DestType "dest_type" dest_type: AluType = AluType::new(BaseType::Invalid, 0);
    DriverLocation "driver_location" driver_location: u32 = 0;
    MemorySemantics "mem_semantics" memory_semantics: MemorySemantics = MemorySemantics::empty();
    MemoryModes "mem_modes" memory_modes: MemoryModes = MemoryModes::empty();
    MemoryScope "memory_scope" memory_scope: Scope = Scope::None;
    ExecutionScope "execution_scope" execution_scope: Scope = Scope::None;
    IoSemantics "io" io_semantics: Option<Box<IoSemantics>> = None;
    IoXfb "xfb" io_xfb: Option<Box<Xfb>> = None;
    IoXfb2 "xfb2" io_xfb2: Option<Box<Xfb>> = None;
    AtomicOp "atomic_op" atomic_op: AtomicOp = AtomicOp::Iadd;
    NumComponents "num_components" num_components: u8 = 1;
    NumArrayElems "num_array_elems" num_array_elems: u32 = 0;
    BitSize "bit_size" bit_size: u8 = 32;
    Divergent "divergent" divergent: bool = true;
    LegacyFabs "legacy_fabs" legacy_fabs: bool = false;
    LegacyFneg "legacy_fneg" legacy_fneg: bool = false;
    LegacyFsat "legacy_fsat" legacy_fsat: bool = false;
    OffsetShift "offset_shift" offset_shift: Option<u8> = None;
    FpMathCtrl "fp_math_ctrl" fp_math_ctrl: Option<FpMath> = None;
}

/// The indices of one intrinsic, in print order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Indices(pub SmallVec<[Index; 4]>);

impl Indices {
    /// No indices.
    pub fn new() -> Indices {
        Indices::default()
    }

    /// The index of one kind.
    pub fn get(&self, kind: IndexKind) -> Option<&Index> {
        self.0.iter().find(|index| index.kind() == kind)
    }

    /// Sets an index: replaces the one of its kind, or appends it.
    pub fn set(&mut self, index: Index) {
        match self.0.iter_mut().find(|old| old.kind() == index.kind()) {
            Some(old) => *old = index,
            None => self.0.push(index),
        }
    }
}

impl<const N: usize> From<[Index; N]> for Indices {
    fn from(indices: [Index; N]) -> Indices {
        Indices(indices.into_iter().collect())
    }
}

/// Writes the words of the set bits with a separator, or `none` when no bit is set.
pub(crate) fn write_words(
    f: &mut impl fmt::Write,
    bits: u32,
    words: &[&str],
    separator: &str,
    none: &str,
) -> fmt::Result {
    if bits == 0 {
        return f.write_str(none);
    }
    let mut first = true;
    for (bit, word) in words.iter().enumerate() {
        if bits & 1 << bit != 0 {
            if !first {
                f.write_str(separator)?;
            }
            f.write_str(word)?;
            first = false;
        }
    }
    Ok(())
}
