//! The capabilities of SPIR-V that a device has.
//!
//! Source: the table of capabilities in the Vulkan specification's appendix on its environment of SPIR-V.

use crate::device::{Driver, Features};
use ash::vk::{Bool32, SubgroupFeatureFlags};
use rspirv::spirv::Capability;

/// The requirement of a capability.
enum Need {
    /// The capability needs no feature.
    Always,
    /// Features: one of them.
    Features(Vec<Bool32>),
    /// Operations of subgroups.
    Subgroups(SubgroupFeatureFlags),
    /// An extension.
    Extension(&'static str),
    /// No device of Vulkan has it, or this program has no rule for it.
    Unknown,
}

fn need(capability: Capability, features: &Features) -> Need {
    use Capability as C;
    let Features { core, v11, v12, v13, .. } = features;
    let has = |feature: Bool32| Need::Features(vec![feature]);
    match capability {
        C::Matrix
        | C::Shader
        | C::InputAttachment
        | C::Sampled1D
        | C::Image1D
        | C::SampledBuffer
        | C::ImageBuffer
        | C::ImageQuery
        | C::DerivativeControl
        | C::StorageImageExtendedFormats
        | C::DeviceGroup
        | C::SubgroupDispatch => Need::Always,
        // From Vulkan 1.3 on, the formats of images declare what they support.
        C::StorageImageReadWithoutFormat | C::StorageImageWriteWithoutFormat => Need::Always,
        C::Geometry | C::GeometryPointSize => has(core.geometry_shader),
        C::Tessellation | C::TessellationPointSize => has(core.tessellation_shader),
        C::Float64 => has(core.shader_float64),
        C::Int64 => has(core.shader_int64),
        C::Int16 => has(core.shader_int16),
        C::Float16 => has(v12.shader_float16),
        C::Int8 => has(v12.shader_int8),
        C::Int64Atomics => Need::Features(vec![v12.shader_buffer_int64_atomics, v12.shader_shared_int64_atomics]),
        C::Int64ImageEXT => has(features.image_atomics.shader_image_int64_atomics),
        C::ImageGatherExtended => has(core.shader_image_gather_extended),
        C::StorageImageMultisample | C::ImageMSArray => has(core.shader_storage_image_multisample),
        C::UniformBufferArrayDynamicIndexing => has(core.shader_uniform_buffer_array_dynamic_indexing),
        C::SampledImageArrayDynamicIndexing => has(core.shader_sampled_image_array_dynamic_indexing),
        C::StorageBufferArrayDynamicIndexing => has(core.shader_storage_buffer_array_dynamic_indexing),
        C::StorageImageArrayDynamicIndexing => has(core.shader_storage_image_array_dynamic_indexing),
        C::ClipDistance => has(core.shader_clip_distance),
        C::CullDistance => has(core.shader_cull_distance),
        C::ImageCubeArray | C::SampledCubeArray => has(core.image_cube_array),
        C::SampleRateShading | C::InterpolationFunction => has(core.sample_rate_shading),
        C::SparseResidency => has(core.shader_resource_residency),
        C::MinLod => has(core.shader_resource_min_lod),
        C::MultiViewport => has(core.multi_viewport),
        C::TransformFeedback => has(features.transform_feedback.transform_feedback),
        C::GeometryStreams => has(features.transform_feedback.geometry_streams),
        C::ShaderLayer => has(v12.shader_output_layer),
        C::ShaderViewportIndex => has(v12.shader_output_viewport_index),
        C::ShaderViewportIndexLayerEXT => Need::Extension("VK_EXT_shader_viewport_index_layer"),
        C::GroupNonUniform => Need::Subgroups(SubgroupFeatureFlags::BASIC),
        C::GroupNonUniformVote => Need::Subgroups(SubgroupFeatureFlags::VOTE),
        C::GroupNonUniformArithmetic => Need::Subgroups(SubgroupFeatureFlags::ARITHMETIC),
        C::GroupNonUniformBallot => Need::Subgroups(SubgroupFeatureFlags::BALLOT),
        C::GroupNonUniformShuffle => Need::Subgroups(SubgroupFeatureFlags::SHUFFLE),
        C::GroupNonUniformShuffleRelative => Need::Subgroups(SubgroupFeatureFlags::SHUFFLE_RELATIVE),
        C::GroupNonUniformClustered => Need::Subgroups(SubgroupFeatureFlags::CLUSTERED),
        C::GroupNonUniformQuad => Need::Subgroups(SubgroupFeatureFlags::QUAD),
        C::GroupNonUniformRotateKHR => has(features.rotate.shader_subgroup_rotate),
        C::SubgroupBallotKHR => Need::Extension("VK_EXT_shader_subgroup_ballot"),
        C::SubgroupVoteKHR => Need::Extension("VK_EXT_shader_subgroup_vote"),
        C::QuadControlKHR => has(features.quad_control.shader_quad_control),
        C::FragmentShadingRateKHR => Need::Features(vec![
            features.shading_rate.pipeline_fragment_shading_rate,
            features.shading_rate.primitive_fragment_shading_rate,
            features.shading_rate.attachment_fragment_shading_rate,
        ]),
        C::DrawParameters => has(v11.shader_draw_parameters),
        C::MultiView => has(v11.multiview),
        C::WorkgroupMemoryExplicitLayoutKHR => has(features.shared_layout.workgroup_memory_explicit_layout),
        C::WorkgroupMemoryExplicitLayout8BitAccessKHR => {
            has(features.shared_layout.workgroup_memory_explicit_layout8_bit_access)
        }
        C::WorkgroupMemoryExplicitLayout16BitAccessKHR => {
            has(features.shared_layout.workgroup_memory_explicit_layout16_bit_access)
        }
        C::StorageBuffer16BitAccess => has(v11.storage_buffer16_bit_access),
        C::UniformAndStorageBuffer16BitAccess => has(v11.uniform_and_storage_buffer16_bit_access),
        C::StoragePushConstant16 => has(v11.storage_push_constant16),
        C::StorageInputOutput16 => has(v11.storage_input_output16),
        C::StorageBuffer8BitAccess => has(v12.storage_buffer8_bit_access),
        C::UniformAndStorageBuffer8BitAccess => has(v12.uniform_and_storage_buffer8_bit_access),
        C::StoragePushConstant8 => has(v12.storage_push_constant8),
        C::VariablePointersStorageBuffer => has(v11.variable_pointers_storage_buffer),
        C::VariablePointers => has(v11.variable_pointers),
        // Properties of the widths list those that the driver keeps; it compiles modules that request any.
        C::DenormPreserve
        | C::DenormFlushToZero
        | C::SignedZeroInfNanPreserve
        | C::RoundingModeRTE
        | C::RoundingModeRTZ => Need::Always,
        C::FloatControls2 => has(features.float_controls2.shader_float_controls2),
        C::SampleMaskPostDepthCoverage => Need::Extension("VK_EXT_post_depth_coverage"),
        C::StencilExportEXT => Need::Extension("VK_EXT_shader_stencil_export"),
        C::RayQueryKHR => has(features.ray_query.ray_query),
        C::ShaderClockKHR => {
            Need::Features(vec![features.clock.shader_subgroup_clock, features.clock.shader_device_clock])
        }
        C::FragmentBarycentricKHR => has(features.barycentric.fragment_shader_barycentric),
        C::ComputeDerivativeGroupQuadsKHR => has(features.derivatives.compute_derivative_group_quads),
        C::ComputeDerivativeGroupLinearKHR => has(features.derivatives.compute_derivative_group_linear),
        C::FragmentShaderSampleInterlockEXT => has(features.interlock.fragment_shader_sample_interlock),
        C::FragmentShaderPixelInterlockEXT => has(features.interlock.fragment_shader_pixel_interlock),
        C::FragmentShaderShadingRateInterlockEXT => has(features.interlock.fragment_shader_shading_rate_interlock),
        C::ShaderNonUniform => has(v12.descriptor_indexing),
        C::RuntimeDescriptorArray => has(v12.runtime_descriptor_array),
        C::InputAttachmentArrayDynamicIndexing => has(v12.shader_input_attachment_array_dynamic_indexing),
        C::UniformTexelBufferArrayDynamicIndexing => has(v12.shader_uniform_texel_buffer_array_dynamic_indexing),
        C::StorageTexelBufferArrayDynamicIndexing => has(v12.shader_storage_texel_buffer_array_dynamic_indexing),
        C::UniformBufferArrayNonUniformIndexing => has(v12.shader_uniform_buffer_array_non_uniform_indexing),
        C::SampledImageArrayNonUniformIndexing => has(v12.shader_sampled_image_array_non_uniform_indexing),
        C::StorageBufferArrayNonUniformIndexing => has(v12.shader_storage_buffer_array_non_uniform_indexing),
        C::StorageImageArrayNonUniformIndexing => has(v12.shader_storage_image_array_non_uniform_indexing),
        C::InputAttachmentArrayNonUniformIndexing => has(v12.shader_input_attachment_array_non_uniform_indexing),
        C::UniformTexelBufferArrayNonUniformIndexing => has(v12.shader_uniform_texel_buffer_array_non_uniform_indexing),
        C::StorageTexelBufferArrayNonUniformIndexing => has(v12.shader_storage_texel_buffer_array_non_uniform_indexing),
        C::VulkanMemoryModel => has(v12.vulkan_memory_model),
        C::VulkanMemoryModelDeviceScope => has(v12.vulkan_memory_model_device_scope),
        C::PhysicalStorageBufferAddresses => has(v12.buffer_device_address),
        C::DemoteToHelperInvocation => has(v13.shader_demote_to_helper_invocation),
        C::DotProductInputAll | C::DotProductInput4x8Bit | C::DotProductInput4x8BitPacked | C::DotProduct => {
            has(v13.shader_integer_dot_product)
        }
        C::ExpectAssumeKHR => has(features.expect.shader_expect_assume),
        C::CooperativeMatrixKHR => has(features.matrices.cooperative_matrix),
        C::ReplicatedCompositesEXT => Need::Extension("VK_EXT_shader_replicated_composites"),
        C::BFloat16TypeKHR => Need::Extension("VK_KHR_shader_bfloat16"),
        C::UntypedPointersKHR => Need::Extension("VK_KHR_shader_untyped_pointers"),
        C::AtomicFloat32AddEXT => Need::Features(vec![
            features.atomic_float.shader_buffer_float32_atomic_add,
            features.atomic_float.shader_shared_float32_atomic_add,
            features.atomic_float.shader_image_float32_atomic_add,
        ]),
        C::AtomicFloat64AddEXT => Need::Features(vec![
            features.atomic_float.shader_buffer_float64_atomic_add,
            features.atomic_float.shader_shared_float64_atomic_add,
        ]),
        C::AtomicFloat16AddEXT => Need::Features(vec![
            features.atomic_float2.shader_buffer_float16_atomic_add,
            features.atomic_float2.shader_shared_float16_atomic_add,
        ]),
        C::AtomicFloat32MinMaxEXT => Need::Features(vec![
            features.atomic_float2.shader_buffer_float32_atomic_min_max,
            features.atomic_float2.shader_shared_float32_atomic_min_max,
            features.atomic_float2.shader_image_float32_atomic_min_max,
        ]),
        C::AtomicFloat64MinMaxEXT => Need::Features(vec![
            features.atomic_float2.shader_buffer_float64_atomic_min_max,
            features.atomic_float2.shader_shared_float64_atomic_min_max,
        ]),
        C::AtomicFloat16MinMaxEXT => Need::Features(vec![
            features.atomic_float2.shader_buffer_float16_atomic_min_max,
            features.atomic_float2.shader_shared_float16_atomic_min_max,
        ]),
        _ => Need::Unknown,
    }
}

impl Driver {
    /// Returns true if the device supports the requirements of a capability.
    pub fn has(&self, capability: Capability) -> bool {
        match need(capability, &self.features) {
            Need::Always => true,
            Need::Features(any) => any.iter().any(|feature| *feature != 0),
            Need::Subgroups(operations) => self.subgroups.contains(operations),
            Need::Extension(name) => self.extensions.contains(name),
            Need::Unknown => false,
        }
    }
}
