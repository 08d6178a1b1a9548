//! Instructions: flags, and the attributes of each kind of opcode.

use super::opcode::{Form, Role};
use super::{AliasScope, Block, Category, Dst, Instr, Opcode, PhysReg, Place, Src, SrcOperand};
use crate::words;
use bitflags::bitflags;
use smallvec::SmallVec;
use std::fmt;

bitflags! {
    /// Instruction flags, with the assembler's names.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InstrFlags: u32 {
        /// `(sy)`: wait for texture and memory results.
        const SY = 1;
        /// `(ss)`: wait for special-function and local-memory results.
        const SS = 1 << 1;
        /// `(jp)`: reconvergence point.
        const JP = 1 << 2;
        /// `(ul)`: last use of `a0.x`.
        const UL = 1 << 3;
        /// `(eq)`: helper invocations end after this instruction.
        const EQ = 1 << 4;
        /// `(ei)`: end of input.
        const EI = 1 << 5;
        /// `(sat)`: clamp the float result to [0, 1].
        const SAT = 1 << 6;
        /// `.3d`: three coordinates.
        const DIM_3D = 1 << 7;
        /// `.a`: array.
        const ARRAY = 1 << 8;
        /// `.o`: with a texel offset.
        const OFFSET = 1 << 9;
        /// `.p`: projective.
        const PROJ = 1 << 10;
        /// `.s`: shadow comparison.
        const SHADOW = 1 << 11;
        /// `.s2en`: texture and sampler indices come from a register pair.
        const S2EN = 1 << 12;
        /// `.base<n>`/bindless mode.
        const BINDLESS = 1 << 13;
        /// `.nonuniform`.
        const NONUNIFORM = 1 << 14;
        /// `.a1en`: the index is in `a1.x`.
        const A1EN = 1 << 15;
        /// `.u` of `ldc`: uniform, into a shared register.
        const UNIFORM = 1 << 16;
        /// `.v` of `isam`: vector of consecutive elements.
        const VECTOR = 1 << 17;
        /// Global rather than local (`atomic.g`, `(g)` forms).
        const GLOBAL = 1 << 18;
        /// `.p` of `dsxpp.1.p`/`dsypp.1.p`: second instruction of the pair.
        const PAIR = 1 << 19;
        /// `.imm` form: address offset as an immediate.
        const IMM_OFFSET = 1 << 20;
        /// Marked as unused by a pass (printed as `XXX` in place of the number of uses).
        const UNUSED = 1 << 21;
    }
}

words! {
    /// Numeric type of a conversion, memory access or texture result.
    pub enum Type {
        /// binary16.
        F16 = "f16",
        /// binary32.
        F32 = "f32",
        /// Unsigned 16 bits.
        U16 = "u16",
        /// Unsigned 32 bits.
        U32 = "u32",
        /// Signed 16 bits.
        S16 = "s16",
        /// Signed 32 bits.
        S32 = "s32",
        /// Unsigned 8 bits, in a half register.
        U8 = "u8",
        /// Unsigned 8 bits, in a full register.
        U8In32 = "u8_32",
        /// Unsigned 64 bits, in two full registers (atomics of a7xx).
        U64 = "u64",
    }
}

impl Type {
    /// The size of an element in memory, in bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::U8 | Self::U8In32 => 8,
            Self::F16 | Self::U16 | Self::S16 => 16,
            Self::F32 | Self::U32 | Self::S32 => 32,
            Self::U64 => 64,
        }
    }

    /// Returns true if a register of this type is a half register.
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::U16 | Self::S16 | Self::U8)
    }

    /// Returns true if the type is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }

    /// Returns true if the type is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::S16 | Self::S32)
    }
}

words! {
    /// Condition of a comparison.
    pub enum Condition {
        /// `lt`
        Lt = "lt",
        /// `le`
        Le = "le",
        /// `gt`
        Gt = "gt",
        /// `ge`
        Ge = "ge",
        /// `eq`
        Eq = "eq",
        /// `ne`
        Ne = "ne",
    }
}

/// Rounding mode of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Round {
    /// No explicit mode: toward zero.
    #[default]
    Default,
    /// `(even)`: to nearest even.
    Even,
    /// `(pos_infinity)`: up.
    PosInf,
    /// `(neg_infinity)`: down.
    NegInf,
}

/// Defines the system values with their names; some have a number.
macro_rules! system_values {
    ($(#[$attr:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(($number:ty))? = $text:literal,)*
    }) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $variant $(($number))?,)*
        }

        impl $name {
            /// All system values without a number.
            pub fn named() -> impl Iterator<Item = Self> {
                [$(system_values!(value $name $variant None::<u16> $(, $number)?)),*].into_iter().flatten()
            }

            /// The system value of a name, and of a number if it has one.
            pub fn from_name(name: &str, number: Option<u16>) -> Option<Self> {
                match name {
                    $($text => system_values!(value $name $variant number $(, $number)?),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant { .. } => $text),* })?;
                match self {
                    $($(Self::$variant(number) => write!(f, "({})", <$number>::from(*number)),)?)*
                    _ => Ok(()),
                }
            }
        }
    };
    (value $name:ident $variant:ident $given:expr) => {
        $given.is_none().then_some($name::$variant)
    };
    (value $name:ident $variant:ident $given:expr, $number:ty) => {
        $given.and_then(|number| <$number>::try_from(number).ok()).map($name::$variant)
    };
}

system_values! {
    /// A value that the hardware or driver provides, independent of the program's data.
    pub enum SystemValue {
        /// Workgroup, 3 components, uniform.
        WorkgroupId = "workgroup_id",
        /// First workgroup of a dispatch, 3 components (a driver parameter in ir3).
        BaseWorkgroupId = "base_workgroup_id",
        /// Number of workgroups, 3 components (a driver parameter in ir3).
        NumWorkgroups = "num_workgroups",
        /// Size of a workgroup, 3 components.
        WorkgroupSize = "workgroup_size",
        /// Position in the workgroup, 3 components.
        LocalInvocationId = "local_invocation_id",
        /// Linear position in the workgroup.
        LocalInvocationIndex = "local_invocation_index",
        /// Number of lanes of a wave.
        SubgroupSize = "subgroup_size",
        /// Lane number.
        SubgroupInvocation = "subgroup_invocation",
        /// Index of the wave within its workgroup.
        SubgroupId = "subgroup_id",
        /// The shift that turns a lane's index in its workgroup into `SubgroupId` (a driver parameter in ir3).
        SubgroupIdShift = "subgroup_id_shift",
        /// Number of dimensions of a dispatch (a driver parameter in ir3).
        WorkDim = "work_dim",
        /// Vertex number (with base).
        VertexId = "vertex_id",
        /// Vertex number without the base.
        VertexIdZeroBase = "vertex_id_zero_base",
        /// First vertex of a draw (a driver parameter in ir3).
        BaseVertex = "base_vertex",
        /// First instance of a draw (a driver parameter in ir3).
        BaseInstance = "base_instance",
        /// Index of the draw (a driver parameter in ir3).
        DrawId = "draw_id",
        /// True if a draw is indexed (a driver parameter in ir3).
        IsIndexedDraw = "is_indexed_draw",
        /// Index of the rendered view; several views of one draw may share a wave.
        ViewIndex = "view_index",
        /// A user clip plane by its index, 4 components (a driver parameter in ir3).
        UserClipPlane(u8) = "user_clip_plane",
        /// Four words of the arguments of an OpenCL kernel, by their offset in units of 16 bytes (driver parameters in
        /// ir3).
        KernelInput(u8) = "kernel_input",
        /// Instance number.
        InstanceId = "instance_id",
        /// Primitive number.
        PrimitiveId = "primitive_id",
        /// Window position of a fragment, 4 components; x and y are integers, in sixteenths of a pixel.
        FragCoord = "frag_coord",
        /// The visible side of the fragment's primitive: 0 is the front, all ones the back.
        FrontFace = "front_face",
        /// Point coordinate, 2 components.
        PointCoord = "point_coord",
        /// Size of a fragment, as an enumerator of Vulkan.
        FragShadingRate = "frag_shading_rate",
        /// Number of times that a fragment is shaded (a driver parameter in ir3).
        FragInvocationCount = "frag_invocation_count",
        /// Size in pixels of the fragments of a view, 2 components (a driver parameter in ir3).
        FragSize(u8) = "frag_size",
        /// Offset in pixels of the bins of a view, 2 components (a driver parameter in ir3).
        FragOffset(u8) = "frag_offset",
        /// Sample number.
        SampleId = "sample_id",
        /// Position of the sample in the pixel, 2 components.
        SamplePos = "sample_pos",
        /// Mask of covered samples.
        SampleMaskIn = "sample_mask_in",
        /// True if the lane is a helper: a bool.
        HelperInvocation = "helper_invocation",
        /// Barycentric i and j at the pixel, perspective.
        BarycentricPixel = "barycentric_pixel",
        /// Barycentric i and j at the centroid, perspective.
        BarycentricCentroid = "barycentric_centroid",
        /// Barycentric i and j at the sample, perspective.
        BarycentricSample = "barycentric_sample",
        /// Barycentric i and j at the pixel, linear.
        BarycentricPixelLinear = "barycentric_pixel_linear",
        /// Barycentric i and j at the centroid, linear.
        BarycentricCentroidLinear = "barycentric_centroid_linear",
        /// Barycentric i and j at the sample, linear.
        BarycentricSampleLinear = "barycentric_sample_linear",
        /// The divisor of perspective coordinates at the pixel: 1/w, 1 component.
        BarycentricCenterRhw = "barycentric_center_rhw",
        /// The vertex, primitive and invocation of a lane, in bit fields, for shaders before and of tessellation control.
        TcsHeader = "tcs_header",
        /// The vertex, primitive and invocation of a lane, for geometry shaders and those before them, with the thread of
        /// the primitive.
        GsHeader = "gs_header",
        /// Number of the patch in its draw, relative to the first one in memory.
        RelPatchId = "rel_patch_id",
        /// Position in the patch, 2 components.
        TessCoord = "tess_coord",
        /// Bytes of a primitive in local memory (a driver parameter in ir3).
        VsPrimitiveStride = "vs_primitive_stride",
        /// Bytes of a vertex in local memory (a driver parameter in ir3).
        VsVertexStride = "vs_vertex_stride",
        /// Words of a patch in memory (a driver parameter in ir3).
        HsPatchStride = "hs_patch_stride",
        /// Number of vertices of a patch (a driver parameter in ir3).
        PatchVerticesIn = "patch_vertices_in",
        /// Address of the values of patches, 2 words (a driver parameter in ir3).
        TessParamBase = "tess_param_base",
        /// Address of the tessellation factors, 2 words (a driver parameter in ir3).
        TessFactorBase = "tess_factor_base",
        /// The location of a varying of the previous stage, by its index: an entry of the primitive map (a driver
        /// parameter in ir3).
        PrimitiveLocation(u8) = "primitive_location",
        /// A driver parameter of unknown meaning, by index.
        Opaque(u16) = "opaque",
    }
}

impl SystemValue {
    /// The word of a kernel's arguments at base and offset, both in bytes, plus some words: a system value and its
    /// component. `None` if the address is not aligned to a word, or exceeds the 4 KiB that arguments may have.
    pub fn kernel_input(base: i32, offset: u32, words: u8) -> Option<(Self, u8)> {
        let bytes = i64::from(base) + i64::from(offset);
        let word = bytes / 4 + i64::from(words);
        let vec4 = u8::try_from(word / 4).ok()?;
        (bytes >= 0 && bytes % 4 == 0).then_some((Self::KernelInput(vec4), (word % 4) as u8))
    }
}

/// The input that a `_meta:in` reads. Component `i` of the instruction's destination is component `i` of the input,
/// counted from `component` if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A system value.
    System(SystemValue),
    /// A vertex attribute: driver location (nir's `base`) and first component.
    Attribute {
        /// Driver location.
        base: u16,
        /// First component.
        component: u8,
    },
}

words! {
    /// The memory that an access addresses.
    pub enum AddressSpace {
        /// A storage buffer.
        Ssbo = "ssbo",
        /// A storage image.
        Image = "image",
        /// Workgroup-shared memory.
        Shared = "shared",
        /// Global memory, with 64-bit addresses.
        Global = "global",
        /// Per-lane scratch memory.
        Scratch = "scratch",
        /// A uniform buffer.
        Ubo = "ubo",
        /// The constant file (`stc`).
        Const = "const",
    }
}

/// Attributes of a memory access that Mesa's `ir3_print` does not print; `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryAttrs {
    /// Type of an element.
    pub ty: Option<Type>,
    /// Elements per lane; for `ldc.k`, the number of vec4s that it copies.
    pub components: Option<u16>,
    /// The accessed memory.
    pub space: Option<AddressSpace>,
    /// Coordinates of an image (1 to 3, including the array layer).
    pub coords: Option<u8>,
    /// Bindless descriptor base, `.base<n>`.
    pub base: Option<u8>,
    /// Signed immediate offset: in bytes for `dst_offset` of stores, in elements for `offset<n>` of `ldc`.
    pub offset: i32,
    /// True if the operands of `ldib`/`stib` are in the order of a4xx and a5xx.
    pub old_layout: bool,
    /// The unit of the index of `ldg.a`/`stg.a` in bytes: 4 on a6xx, 1 on a7xx.
    pub index_unit: Option<u8>,
    /// True if nir marks it as volatile or coherent: it is neither dropped nor merged with another access.
    pub volatile: bool,
}

/// Attributes of a texture instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextureAttrs {
    /// Type of the result; printed by Mesa too.
    pub ty: Option<Type>,
    /// `s#<n>`.
    pub sampler: Option<u16>,
    /// `t#<n>`.
    pub texture: Option<u16>,
    /// Bindless descriptor base, `.base<n>`.
    pub base: Option<u8>,
    /// `_meta:tex_prefetch`: the varying that provides the coordinates.
    pub input_offset: Option<u16>,
    /// Cluster size of `brcst.active.w<n>`.
    pub cluster: Option<u8>,
    /// True if the coordinates are those of a 1D texture, padded (used only to canonicalise texture requests).
    pub is_1d: bool,
    /// True if the coordinates are those of a cube map.
    pub is_cube: bool,
    /// `isam`: true if it fetches a texel of level 0 of a texture. Mesa does since 25.1; else it is a load of
    /// [`space`](Self::space).
    pub is_fetch: bool,
    /// `isam`: the memory that is read through the texture unit.
    pub space: Option<AddressSpace>,
    /// Bindless descriptor base of the sampler, if it differs from that of the texture (`_meta:tex_prefetch`).
    pub sampler_base: Option<u8>,
}

words! {
    /// The way in which `shfl` computes the lane that it reads from its own lane index and the second source.
    pub enum ShuffleMode {
        Xor = "xor",
        Up = "up",
        Down = "down",
        /// Rotated.
        RotateUp = "rup",
        /// Rotated.
        RotateDown = "rdown",
    }
}

/// The attributes of an instruction that are not operands, by kind of opcode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Attrs {
    /// No attributes.
    #[default]
    None,
    /// cat1: types, and the rounding of the conversion between them.
    Move {
        /// Type of the source.
        src: Type,
        /// Type of the destination.
        dst: Type,
        /// Rounding.
        round: Round,
    },
    /// `cmps`, `cmpv`.
    Compare(Condition),
    /// `_meta:split`: the component of the source that it extracts.
    Split {
        /// The component.
        offset: u16,
    },
    /// Branches: the target block, if jumps are explicit (after legalization).
    Branch {
        /// The block.
        target: Option<Block>,
    },
    /// `end`, `chmask`: the index of the program's output that each source is.
    Outputs(Box<[u16]>),
    /// `_meta:in`; `None` if the text does not specify the input.
    Input(Option<InputKind>),
    /// The attributes of texture instructions (cat5).
    Texture(TextureAttrs),
    /// cat6 and spill macros.
    Memory(MemoryAttrs),
    /// `bary.f`/`flat.b`/`ldlv` have none; scans have the operation that they apply.
    Scan {
        /// The reduction's ALU operation.
        op: Opcode,
    },
    /// `shfl`.
    Shuffle {
        /// The lane selection.
        mode: ShuffleMode,
        /// Type of the value.
        ty: Type,
    },
    /// `push_consts_load.macro`, in words.
    PushConsts {
        /// First word of the constant file.
        dst: u32,
        /// First word of the source.
        src: u32,
        /// Number of words.
        size: u32,
    },
    /// `alias`: the name that its source gets.
    Alias {
        /// The table.
        scope: AliasScope,
        /// The operands are printed as floats; this has no other effect.
        float: bool,
        /// The number of aliases after this one, in the first one before a texture instruction.
        size: u8,
        /// The register; of an output `4 * rt + component`.
        register: PhysReg,
    },
    /// Barriers and fences: the memories and accesses that they order.
    Fence {
        /// Global memory reads.
        r: bool,
        /// Global memory writes.
        w: bool,
        /// Global memory.
        g: bool,
        /// Local memory.
        l: bool,
    },
}

/// Position in a group of identical instructions that may later become one with `(rpt<n>)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RepeatLink {
    /// The instruction is not in a group.
    #[default]
    None,
    /// First of its group.
    First,
    /// The instruction follows the given one in its group.
    After(Instr),
}

/// The order that an instruction keeps besides that of its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Instructions that must precede this one without a data dependency.
    pub false_deps: Vec<Instr>,
    /// Repeat group.
    pub link: RepeatLink,
}

/// An instruction.
#[derive(Debug, PartialEq)]
pub struct InstrData {
    /// The opcode.
    pub opcode: Opcode,
    /// Flags.
    pub flags: InstrFlags,
    /// `(rpt<n>)`: executed `n + 1` times.
    pub repeat: u8,
    /// `(nop<n>)`.
    pub nop: u8,
    /// Destinations.
    pub dsts: SmallVec<[Dst; 1]>,
    /// Sources.
    pub srcs: SmallVec<[Src; 3]>,
    /// Attributes of the opcode.
    pub attrs: Attrs,
    /// `None` without constraints. Only programs that are read have some: passes create none.
    pub constraints: Option<Box<Constraints>>,
}

const _: () = assert!(size_of::<Attrs>() == 24 && size_of::<InstrData>() == 152);

/// Written by hand, for speed: a derived one copies operand by operand.
impl Clone for InstrData {
    fn clone(&self) -> Self {
        Self {
            opcode: self.opcode,
            flags: self.flags,
            repeat: self.repeat,
            nop: self.nop,
            dsts: SmallVec::from_slice(&self.dsts),
            srcs: SmallVec::from_slice(&self.srcs),
            attrs: self.attrs.clone(),
            constraints: self.constraints.clone(),
        }
    }
}

impl InstrData {
    /// Returns true if an operand is relative to `a0.x`.
    pub fn is_relative(&self) -> bool {
        self.dsts.iter().any(|dst| dst.place.is_relative()) || self.srcs.iter().any(Src::is_relative)
    }

    /// Returns true if the instruction can be rematerialised wherever its sources are available: a pure ALU operation
    /// on values in SSA form, immediates and constants. (Special functions are excluded: they write neither predicates
    /// nor addresses, which are all that is rematerialised.) Constants may change: the caller has to check that.
    pub fn is_rematerializable(&self) -> bool {
        let is_ssa = |operand: &SrcOperand| match operand {
            SrcOperand::Place(place) => matches!(place, Place::Value(_) | Place::Assigned(..)),
            SrcOperand::ConstRelative(_) => false,
            _ => true,
        };
        let pure = self.opcode.is_pure() && self.opcode.is_alu();
        pure && self.dsts.len() == 1 && self.srcs.iter().all(|src| is_ssa(&src.operand))
    }

    /// Creates an instruction without operands.
    pub fn new(opcode: Opcode) -> Self {
        Self {
            opcode,
            flags: InstrFlags::empty(),
            repeat: 0,
            nop: 0,
            dsts: SmallVec::new(),
            srcs: SmallVec::new(),
            attrs: Attrs::None,
            constraints: None,
        }
    }

    /// Instructions that must precede this one without a data dependency.
    pub fn false_deps(&self) -> &[Instr] {
        self.constraints.as_ref().map_or(&[], |constraints| &constraints.false_deps)
    }

    /// Repeat group.
    pub fn link(&self) -> RepeatLink {
        self.constraints.as_ref().map_or(RepeatLink::None, |constraints| constraints.link)
    }

    /// Returns true if it has false dependencies or is in a repeat group.
    pub const fn is_constrained(&self) -> bool {
        self.constraints.is_some()
    }

    /// Changes the false dependencies and the repeat group.
    pub fn constrain(&mut self, change: impl FnOnce(&mut Constraints)) {
        let mut constraints = self.constraints.take().unwrap_or_default();
        change(&mut constraints);
        self.constraints = Some(constraints).filter(|constraints| **constraints != Constraints::default());
    }

    /// Removes the false dependencies, and the instruction from its repeat group.
    pub fn unconstrain(&mut self) {
        self.constraints = None;
    }

    /// The form of the opcode: that of a4xx and a5xx for an instruction with the old layout.
    pub fn form(&self) -> &'static Form {
        let form = self.opcode.info().form;
        form.old.filter(|_| self.memory().is_some_and(|memory| memory.old_layout)).unwrap_or(form)
    }

    /// The position of the source with a role. A source of a texture instruction may be absent, by its flags.
    pub fn position(&self, role: Role) -> Option<usize> {
        let is_there = |role| match role {
            Role::Pair => self.flags.contains(InstrFlags::S2EN),
            Role::Address1 => self.flags.contains(InstrFlags::A1EN),
            Role::Offset if self.opcode.category() == Category::Texture => {
                self.flags.intersects(InstrFlags::OFFSET | InstrFlags::VECTOR)
            }
            _ => true,
        };
        let mut there = self.form().srcs.iter().filter(|&&known| is_there(known));
        there.position(|&known| known == role)
    }

    /// The source with a role.
    pub fn source(&self, role: Role) -> Option<&Src> {
        self.srcs.get(self.position(role)?)
    }

    /// The texture attributes, if it is a texture instruction.
    pub const fn texture(&self) -> Option<&TextureAttrs> {
        match &self.attrs {
            Attrs::Texture(attrs) => Some(attrs),
            _ => None,
        }
    }

    /// The memory attributes, if it is a memory instruction.
    pub const fn memory(&self) -> Option<&MemoryAttrs> {
        match &self.attrs {
            Attrs::Memory(attrs) => Some(attrs),
            _ => None,
        }
    }

    /// The types of a cat1 instruction: source, destination.
    pub const fn move_types(&self) -> Option<(Type, Type)> {
        match &self.attrs {
            Attrs::Move { src, dst, .. } => Some((*src, *dst)),
            _ => None,
        }
    }
}
