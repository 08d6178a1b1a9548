//! The intrinsics: one table with the sources, result and printed indices of each.

use super::index::IndexKind;
use crate::words;

/// The number of components of a source or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Components {
    /// Exactly this many.
    Fixed(u8),
    /// The number that the intrinsic works on; equal for all operands of this kind.
    Vector,
    /// Any number (a handle or an index of a resource).
    Any,
}

/// The widths that the result may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestBits {
    /// Any width.
    Any,
    /// One of these.
    OneOf(&'static [u8]),
    /// The width of this source.
    Source(u8),
}

/// One row of the table.
#[derive(Debug)]
pub struct IntrinsicInfo {
    /// The sources, in order.
    pub srcs: &'static [Components],
    /// The result, if any.
    pub dest: Option<Components>,
    /// The widths that the result may have.
    pub dest_bits: DestBits,
    /// The indices, in print order.
    pub indices: &'static [IndexKind],
}

const N: i8 = 0;
const ANY: i8 = -1;

const fn components(count: i8) -> Components {
    match count {
        ANY => Components::Any,
        N => Components::Vector,
        _ => Components::Fixed(count as u8),
    }
}

macro_rules! dest {
    () => {
        None
    };
    ($n:tt) => {
        Some(components($n))
    };
}

macro_rules! dest_bits {
    () => { DestBits::Any };
    (bits $($n:literal)+) => { DestBits::OneOf(&[$($n),+]) };
    (like $n:literal) => { DestBits::Source($n) };
}

macro_rules! intrinsics {
    ($($variant:ident $name:literal ($($src:tt)*) $(-> $dest:tt)? $($rule:ident($($arg:literal)+))? $([$($index:ident)*])?;)*) => {
        words! {
            /// An intrinsic operation, whose name in nir text follows `@`.
            #[repr(u16)]
            pub enum IntrinsicOp { $($variant = $name,)* }
        }

        static TABLE: &[IntrinsicInfo] = &[$(IntrinsicInfo {
            srcs: &[$(components($src)),*],
            dest: dest!($($dest)?),
            dest_bits: dest_bits!($($rule $($arg)+)?),
            indices: &[$($(IndexKind::$index),*)?],
        },)*];
    };
}

intrinsics! {
    // Inputs and outputs.
    LoadBarycentricAtOffset "load_barycentric_at_offset" (2) -> 2 [InterpMode];
    LoadBarycentricAtSample "load_barycentric_at_sample" (1) -> 2 [InterpMode];
    LoadBarycentricCentroid "load_barycentric_centroid" () -> 2 [InterpMode];
    LoadBarycentricModel "load_barycentric_model" () -> 3 [InterpMode];
    LoadBarycentricPixel "load_barycentric_pixel" () -> 2 [InterpMode];
    LoadBarycentricSample "load_barycentric_sample" () -> 2 [InterpMode];
    LoadInput "load_input" (1) -> N [Base Range Component DestType IoSemantics];
    LoadInterpolatedInput "load_interpolated_input" (2 1) -> N [Base Component DestType IoSemantics];
    LoadOutput "load_output" (1) -> N [Base Range Component DestType IoSemantics];
    LoadPerVertexInput "load_per_vertex_input" (1 1) -> N [Base Range Component DestType IoSemantics];
    LoadPerVertexOutput "load_per_vertex_output" (1 1) -> N [Base Range Component DestType IoSemantics];
    LoadPerViewOutput "load_per_view_output" (1 1) -> N [Base Range Component DestType IoSemantics];
    StoreOutput "store_output" (N 1) [Base Range WriteMask Component SrcType IoSemantics IoXfb IoXfb2];
    StorePerVertexOutput "store_per_vertex_output" (N 1 1) [Base Range WriteMask Component SrcType IoSemantics];
    StorePerViewOutput "store_per_view_output" (N 1 1) [Base Range WriteMask Component SrcType IoSemantics];
    // Local arrays.
    DeclReg "decl_reg" () -> 1 [NumComponents NumArrayElems BitSize Divergent];
    LoadReg "load_reg" (1) -> N [Base LegacyFabs LegacyFneg];
    LoadRegIndirect "load_reg_indirect" (1 1) -> N [Base LegacyFabs LegacyFneg];
    StoreReg "store_reg" (N 1) [Base WriteMask LegacyFsat];
    StoreRegIndirect "store_reg_indirect" (N 1 1) [Base WriteMask LegacyFsat];
    // Memory.
    GetSsboSize "get_ssbo_size" (ANY) -> 1 bits(32) [Access];
    GetUboSize "get_ubo_size" (ANY) -> 1 [Access];
    LoadConstant "load_constant" (1) -> N [Base Range Access AlignMul AlignOffset];
    LoadGlobal "load_global" (1) -> N [Access AlignMul AlignOffset];
    LoadGlobalConstant "load_global_constant" (1) -> N [Access AlignMul AlignOffset];
    LoadGlobalOffset "load_global_offset" (1 1) -> N [Base Access AlignMul AlignOffset OffsetShift Range];
    LoadPushConstant "load_push_constant" (1) -> N [Base Range AlignMul AlignOffset];
    LoadScratch "load_scratch" (1) -> N [Access AlignMul AlignOffset];
    LoadShared "load_shared" (1) -> N [Base Access AlignMul AlignOffset];
    LoadSsbo "load_ssbo" (ANY 1) -> N [Access AlignMul AlignOffset OffsetShift];
    LoadUbo "load_ubo" (ANY 1) -> N [Access AlignMul AlignOffset RangeBase Range];
    LoadUboVec4 "load_ubo_vec4" (ANY 1) -> N [Access Base Component];
    LoadKernelInput "load_kernel_input" (1) -> N [Base Range AlignMul AlignOffset];
    LoadUniform "load_uniform" (1) -> N [Access Base Range DestType];
    StoreGlobal "store_global" (N 1) [WriteMask Access AlignMul AlignOffset];
    StoreGlobalOffset "store_global_offset" (N 1 1) [Base WriteMask Access AlignMul AlignOffset OffsetShift];
    StoreScratch "store_scratch" (N 1) [AlignMul AlignOffset WriteMask];
    StoreShared "store_shared" (N 1) [Base Access WriteMask AlignMul AlignOffset];
    StoreSsbo "store_ssbo" (N ANY 1) [WriteMask Access AlignMul AlignOffset OffsetShift];
    // Atomics.
    GlobalAtomic "global_atomic" (1 1) -> 1 [AtomicOp];
    GlobalAtomicSwap "global_atomic_swap" (1 1 1) -> 1 [AtomicOp];
    ImageAtomic "image_atomic" (1 4 1 1) -> 1 [ImageDim ImageArray Format Access RangeBase AtomicOp];
    ImageAtomicSwap "image_atomic_swap" (1 4 1 1 1) -> 1 [ImageDim ImageArray Format Access RangeBase AtomicOp];
    SharedAtomic "shared_atomic" (1 1) -> 1 [Base AtomicOp];
    SharedAtomicSwap "shared_atomic_swap" (1 1 1) -> 1 [Base AtomicOp];
    SsboAtomic "ssbo_atomic" (ANY 1 1) -> 1 [Access AtomicOp OffsetShift];
    SsboAtomicSwap "ssbo_atomic_swap" (ANY 1 1 1) -> 1 [Access AtomicOp OffsetShift];
    // Images.
    BindlessImageAtomic "bindless_image_atomic" (ANY 4 1 1) -> 1 [ImageDim ImageArray Format Access AtomicOp];
    BindlessImageAtomicSwap "bindless_image_atomic_swap" (ANY 4 1 1 1) -> 1 [ImageDim ImageArray Format Access AtomicOp];
    BindlessImageFormat "bindless_image_format" (ANY) -> 1 [ImageDim ImageArray Format Access];
    BindlessImageLevels "bindless_image_levels" (ANY) -> 1 [ImageDim ImageArray Format Access];
    BindlessImageLoad "bindless_image_load" (ANY 4 1 1) -> N [ImageDim ImageArray Format Access DestType];
    BindlessImageSamples "bindless_image_samples" (ANY) -> 1 [ImageDim ImageArray Format Access];
    BindlessImageSize "bindless_image_size" (ANY 1) -> N [ImageDim ImageArray Format Access];
    BindlessImageStore "bindless_image_store" (ANY 4 1 N 1) [ImageDim ImageArray Format Access SrcType];
    ImageFormat "image_format" (1) -> 1 [ImageDim ImageArray Format Access RangeBase];
    ImageLevels "image_levels" (1) -> 1 [ImageDim ImageArray Format Access RangeBase];
    ImageLoad "image_load" (1 4 1 1) -> N [ImageDim ImageArray Format Access RangeBase DestType];
    ImageSamples "image_samples" (1) -> 1 [ImageDim ImageArray Format Access RangeBase];
    ImageSize "image_size" (1 1) -> N [ImageDim ImageArray Format Access RangeBase];
    ImageStore "image_store" (1 4 1 N 1) [ImageDim ImageArray Format Access RangeBase SrcType];
    // Derivatives.
    Ddx "ddx" (N) -> N bits(16 32) [FpMathCtrl];
    DdxCoarse "ddx_coarse" (N) -> N bits(16 32) [FpMathCtrl];
    DdxFine "ddx_fine" (N) -> N bits(16 32) [FpMathCtrl];
    Ddy "ddy" (N) -> N bits(16 32) [FpMathCtrl];
    DdyCoarse "ddy_coarse" (N) -> N bits(16 32) [FpMathCtrl];
    DdyFine "ddy_fine" (N) -> N bits(16 32) [FpMathCtrl];
    // Subgroups.
    AsUniform "as_uniform" (N) -> N like(0);
    Ballot "ballot" (1) -> N;
    BallotBitCountExclusive "ballot_bit_count_exclusive" (4) -> 1;
    BallotBitCountInclusive "ballot_bit_count_inclusive" (4) -> 1;
    BallotBitCountReduce "ballot_bit_count_reduce" (4) -> 1;
    BallotBitfieldExtract "ballot_bitfield_extract" (4 1) -> 1;
    BallotFindLsb "ballot_find_lsb" (4) -> 1;
    BallotFindMsb "ballot_find_msb" (4) -> 1;
    BallotRelaxed "ballot_relaxed" (1) -> N;
    Elect "elect" () -> 1;
    ExclusiveScan "exclusive_scan" (N) -> N like(0) [ReductionOp];
    FirstInvocation "first_invocation" () -> 1 bits(32);
    InclusiveScan "inclusive_scan" (N) -> N like(0) [ReductionOp];
    InverseBallot "inverse_ballot" (N) -> 1;
    LastInvocation "last_invocation" () -> 1 bits(32);
    QuadBroadcast "quad_broadcast" (N 1) -> N like(0);
    QuadSwapDiagonal "quad_swap_diagonal" (N) -> N like(0);
    QuadSwapHorizontal "quad_swap_horizontal" (N) -> N like(0);
    QuadSwapVertical "quad_swap_vertical" (N) -> N like(0);
    QuadVoteAll "quad_vote_all" (1) -> 1;
    QuadVoteAny "quad_vote_any" (1) -> 1;
    ReadFirstInvocation "read_first_invocation" (N) -> N like(0);
    ReadInvocation "read_invocation" (N 1) -> N like(0);
    Reduce "reduce" (N) -> N like(0) [ReductionOp ClusterSize];
    Rotate "rotate" (N 1) -> N like(0) [ClusterSize];
    Shuffle "shuffle" (N 1) -> N like(0);
    ShuffleDown "shuffle_down" (N 1) -> N like(0);
    ShuffleUp "shuffle_up" (N 1) -> N like(0);
    ShuffleXor "shuffle_xor" (N 1) -> N like(0);
    VoteAll "vote_all" (1) -> 1;
    VoteAny "vote_any" (1) -> 1;
    VoteFeq "vote_feq" (N) -> 1;
    VoteIeq "vote_ieq" (N) -> 1;
    // Control, barriers and the rest.
    Barrier "barrier" () [ExecutionScope MemoryScope MemorySemantics MemoryModes];
    Demote "demote" ();
    DemoteIf "demote_if" (1);
    EmitVertex "emit_vertex" () [StreamId];
    EndPrimitive "end_primitive" () [StreamId];
    IsHelperInvocation "is_helper_invocation" () -> 1;
    Nop "nop" ();
    ShaderClock "shader_clock" () -> 2 bits(32) [MemoryScope];
    Terminate "terminate" ();
    TerminateIf "terminate_if" (1);
    // System values.
    LoadBaseInstance "load_base_instance" () -> 1 bits(32);
    LoadBaseVertex "load_base_vertex" () -> 1 bits(32);
    LoadBaseWorkgroupId "load_base_workgroup_id" () -> 3 bits(32 64);
    LoadDrawId "load_draw_id" () -> 1 bits(32);
    LoadFirstVertex "load_first_vertex" () -> 1 bits(32);
    LoadFragCoord "load_frag_coord" () -> 4 bits(32);
    LoadFragInvocationCount "load_frag_invocation_count" () -> 1 bits(32);
    LoadFragShadingRate "load_frag_shading_rate" () -> 1 bits(32);
    LoadFragSize "load_frag_size" () -> 2 bits(32);
    LoadFrontFace "load_front_face" () -> 1 bits(1 32);
    LoadGlobalInvocationId "load_global_invocation_id" () -> 3 bits(32 64);
    LoadHelperInvocation "load_helper_invocation" () -> 1 bits(1 32);
    LoadInstanceId "load_instance_id" () -> 1 bits(32);
    LoadInvocationId "load_invocation_id" () -> 1 bits(32);
    LoadIsIndexedDraw "load_is_indexed_draw" () -> 1 bits(32);
    LoadLayerId "load_layer_id" () -> 1 bits(32);
    LoadLocalInvocationId "load_local_invocation_id" () -> 3 bits(32);
    LoadLocalInvocationIndex "load_local_invocation_index" () -> 1 bits(32);
    LoadNumSubgroups "load_num_subgroups" () -> 1 bits(32);
    LoadNumWorkgroups "load_num_workgroups" () -> 3 bits(32);
    LoadPatchVerticesIn "load_patch_vertices_in" () -> 1 bits(32);
    LoadPrimitiveId "load_primitive_id" () -> 1 bits(32);
    LoadSampleId "load_sample_id" () -> 1 bits(32);
    LoadSampleIdNoPerSample "load_sample_id_no_per_sample" () -> 1 bits(32);
    LoadSampleMaskIn "load_sample_mask_in" () -> 1 bits(32);
    LoadSamplePos "load_sample_pos" () -> 2 bits(32);
    LoadSamplePosFromId "load_sample_pos_from_id" (1) -> 2 bits(32);
    LoadSamplePosOrCenter "load_sample_pos_or_center" () -> 2 bits(32);
    LoadSubgroupEqMask "load_subgroup_eq_mask" () -> N bits(32 64);
    LoadSubgroupGeMask "load_subgroup_ge_mask" () -> N bits(32 64);
    LoadSubgroupGtMask "load_subgroup_gt_mask" () -> N bits(32 64);
    LoadSubgroupId "load_subgroup_id" () -> 1 bits(32);
    LoadSubgroupInvocation "load_subgroup_invocation" () -> 1 bits(32);
    LoadSubgroupLeMask "load_subgroup_le_mask" () -> N bits(32 64);
    LoadSubgroupLtMask "load_subgroup_lt_mask" () -> N bits(32 64);
    LoadSubgroupSize "load_subgroup_size" () -> 1 bits(32);
    LoadTessCoord "load_tess_coord" () -> 3 bits(32);
    LoadTessCoordXy "load_tess_coord_xy" () -> 2 bits(32);
    LoadTessLevelInnerDefault "load_tess_level_inner_default" () -> 2 bits(32);
    LoadTessLevelOuterDefault "load_tess_level_outer_default" () -> 4 bits(32);
    LoadUserClipPlane "load_user_clip_plane" () -> 4 bits(32) [UcpId];
    LoadVertexId "load_vertex_id" () -> 1 bits(32);
    LoadVertexIdZeroBase "load_vertex_id_zero_base" () -> 1 bits(32);
    LoadViewIndex "load_view_index" () -> 1 bits(32);
    LoadWorkDim "load_work_dim" () -> 1 bits(32);
    LoadWorkgroupId "load_workgroup_id" () -> 3 bits(32);
    LoadWorkgroupSize "load_workgroup_size" () -> 3 bits(32);
    // Intrinsics that only ir3 has.
    BindlessResourceIr3 "bindless_resource_ir3" (1) -> 1 [DescSet];
    BrcstActiveIr3 "brcst_active_ir3" (1 1) -> 1 like(0) [ClusterSize];
    CopyGlobalToUniformIr3 "copy_global_to_uniform_ir3" (ANY) [Base RangeBase Range];
    CopyPushConstToUniformIr3 "copy_push_const_to_uniform_ir3" (1) [Base Range];
    CopyUboToUniformIr3 "copy_ubo_to_uniform_ir3" (1 1) [Base Range];
    ElectAnyIr3 "elect_any_ir3" () -> 1;
    ExclusiveScanClustersIr3 "exclusive_scan_clusters_ir3" (1 1) -> 1 like(0) [ReductionOp];
    GlobalAtomicIr3 "global_atomic_ir3" (2 1) -> 1 [Base AtomicOp];
    GlobalAtomicSwapIr3 "global_atomic_swap_ir3" (2 1 1) -> 1 [Base AtomicOp];
    InclusiveScanClustersIr3 "inclusive_scan_clusters_ir3" (1) -> 1 like(0) [ReductionOp];
    LoadConstIr3 "load_const_ir3" (1) -> N [Base];
    LoadAlphaToCoverageEnableIr3 "load_alpha_to_coverage_enable_ir3" () -> 1 bits(32);
    LoadFragCoordGmemIr3 "load_frag_coord_gmem_ir3" () -> 4 bits(32);
    LoadFragCoordUnscaledIr3 "load_frag_coord_unscaled_ir3" () -> 4 bits(32);
    LoadFragOffsetIr3 "load_frag_offset_ir3" (1) -> 2 bits(32) [Range];
    LoadFragSizeIr3 "load_frag_size_ir3" (1) -> 2 bits(32) [Range];
    LoadGlobalIr3 "load_global_ir3" (2 1) -> N [Access AlignMul AlignOffset RangeBase Range];
    LoadGmemFragOffsetIr3 "load_gmem_frag_offset_ir3" (1) -> 2 bits(32) [Range];
    LoadGmemFragScaleIr3 "load_gmem_frag_scale_ir3" (1) -> 2 bits(32) [Range];
    LoadGsHeaderIr3 "load_gs_header_ir3" () -> 1 bits(32);
    LoadHsPatchStrideIr3 "load_hs_patch_stride_ir3" () -> 1 bits(32);
    LoadPerspCenterRhwIr3 "load_persp_center_rhw_ir3" () -> 1;
    LoadPreamble "load_preamble" () -> N [Base];
    LoadPrimitiveLocationIr3 "load_primitive_location_ir3" () -> 1 bits(32) [DriverLocation];
    LoadRelPatchIdIr3 "load_rel_patch_id_ir3" () -> 1 bits(32);
    LoadSharedIr3 "load_shared_ir3" (1) -> N [Base AlignMul AlignOffset];
    LoadSsboIr3 "load_ssbo_ir3" (1 1 1) -> N [Base Access AlignMul AlignOffset OffsetShift];
    LoadSubgroupIdShiftIr3 "load_subgroup_id_shift_ir3" () -> 1 bits(32);
    LoadTcsHeaderIr3 "load_tcs_header_ir3" () -> 1 bits(32);
    LoadTessFactorBaseIr3 "load_tess_factor_base_ir3" () -> 2 bits(32);
    LoadTessParamBaseIr3 "load_tess_param_base_ir3" () -> 2 bits(32);
    LoadUavIr3 "load_uav_ir3" (1 2) -> N [Access AlignMul AlignOffset];
    LoadVsPrimitiveStrideIr3 "load_vs_primitive_stride_ir3" () -> 1 bits(32);
    LoadVsVertexStrideIr3 "load_vs_vertex_stride_ir3" () -> 1 bits(32);
    PreambleEndIr3 "preamble_end_ir3" ();
    PreambleStartIr3 "preamble_start_ir3" () -> 1;
    PrefetchSamIr3 "prefetch_sam_ir3" (1 1);
    PrefetchTexIr3 "prefetch_tex_ir3" (1);
    PrefetchUboIr3 "prefetch_ubo_ir3" (1);
    RayIntersectionIr3 "ray_intersection_ir3" (2 1 8 1) -> 5;
    ReadGetlastIr3 "read_getlast_ir3" (N) -> N like(0);
    ReadInvocationCondIr3 "read_invocation_cond_ir3" (N 1) -> N;
    ReduceClustersIr3 "reduce_clusters_ir3" (1) -> 1 like(0) [ReductionOp];
    ResbaseIr3 "resbase_ir3" (1) -> 2;
    ShuffleDownUniformIr3 "shuffle_down_uniform_ir3" (N 1) -> N like(0);
    ShuffleUpUniformIr3 "shuffle_up_uniform_ir3" (N 1) -> N like(0);
    ShuffleXorUniformIr3 "shuffle_xor_uniform_ir3" (N 1) -> N like(0);
    SsboAtomicIr3 "ssbo_atomic_ir3" (1 1 1 1) -> 1 [Access AtomicOp OffsetShift];
    SsboAtomicSwapIr3 "ssbo_atomic_swap_ir3" (1 1 1 1 1) -> 1 [Access AtomicOp OffsetShift];
    StoreConstIr3 "store_const_ir3" (N) [Base];
    StoreGlobalIr3 "store_global_ir3" (N 2 1) [Access AlignMul AlignOffset];
    StorePreamble "store_preamble" (N) [Base];
    StoreSharedIr3 "store_shared_ir3" (N 1) [Base AlignMul AlignOffset];
    StoreSsboIr3 "store_ssbo_ir3" (N 1 1 1) [Base WriteMask Access AlignMul AlignOffset OffsetShift];
}

impl IntrinsicOp {
    /// The row of the table.
    #[inline]
    pub fn info(self) -> &'static IntrinsicInfo {
        &TABLE[self as usize]
    }

    /// Returns true if only some versions of Mesa print an index of this kind for it. It may be left out, and its
    /// default is not written.
    pub fn prints_in_some_versions(self, kind: IndexKind) -> bool {
        use IntrinsicOp::{GetUboSize, LoadConstant, LoadScratch, LoadShared, LoadUniform, StoreShared};
        match kind {
            IndexKind::OffsetShift | IndexKind::FpMathCtrl => true,
            IndexKind::Access => {
                matches!(self, LoadShared | StoreShared | LoadScratch | LoadUniform | LoadConstant | GetUboSize)
            }
            _ => false,
        }
    }

    /// Returns true if a text may leave an index of this kind out: it has no effect on the meaning of the program, or
    /// its default is the value that is implied by the versions of Mesa that do not print it.
    pub fn may_leave_out(self, kind: IndexKind) -> bool {
        use IndexKind::*;
        use IntrinsicOp as I;
        let unimportant =
            matches!(kind, IoSemantics | IoXfb | IoXfb2 | Access | AlignMul | AlignOffset | InterpMode | Format);
        // Until Mesa 24.0 an address had no separate base.
        let is_base = kind == Base && matches!(self, I::LoadSsboIr3 | I::StoreSsboIr3)
            || matches!(kind, RangeBase | Range) && self == I::LoadGlobalIr3;
        // Mesa prints the range of inputs and outputs since 23.3.
        let is_range = kind == Range
            && matches!(
                self,
                I::LoadInput
                    | I::LoadOutput
                    | I::LoadPerVertexInput
                    | I::LoadPerVertexOutput
                    | I::LoadPerViewOutput
                    | I::StoreOutput
                    | I::StorePerVertexOutput
                    | I::StorePerViewOutput
                    | I::LoadGlobalOffset
            );
        unimportant || is_base || is_range || self.prints_in_some_versions(kind)
    }

    /// Returns true if it changes memory and has the old value as its result.
    pub fn is_atomic(self) -> bool {
        self.info().indices.contains(&IndexKind::AtomicOp)
    }

    /// Returns true if it does something besides defining its value.
    pub fn has_side_effect(self) -> bool {
        self.info().dest.is_none() || self.is_atomic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for op in IntrinsicOp::ALL {
            assert_eq!(IntrinsicOp::from_name(op.name()), Some(op));
        }
    }
}
