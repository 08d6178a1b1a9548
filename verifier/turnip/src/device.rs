//! The driver's device, without a loader of Vulkan.

#![allow(unsafe_code)]

use ash::vk;
use libloading::Library;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

/// The extensions that modules may need. They are enabled where the driver has them.
const EXTENSIONS: &[&CStr] = &[
    c"VK_KHR_pipeline_library",
    c"VK_EXT_graphics_pipeline_library",
    c"VK_KHR_shader_clock",
    c"VK_EXT_shader_atomic_float",
    c"VK_EXT_shader_atomic_float2",
    c"VK_EXT_shader_image_atomic_int64",
    c"VK_EXT_mutable_descriptor_type",
    c"VK_KHR_ray_query",
    c"VK_KHR_acceleration_structure",
    c"VK_KHR_deferred_host_operations",
    c"VK_EXT_fragment_shader_interlock",
    c"VK_KHR_fragment_shading_rate",
    c"VK_KHR_compute_shader_derivatives",
    c"VK_EXT_shader_stencil_export",
    c"VK_EXT_shader_viewport_index_layer",
    c"VK_KHR_fragment_shader_barycentric",
    c"VK_EXT_transform_feedback",
    c"VK_KHR_workgroup_memory_explicit_layout",
    c"VK_KHR_shader_maximal_reconvergence",
    c"VK_KHR_shader_quad_control",
    c"VK_KHR_shader_subgroup_rotate",
    c"VK_KHR_shader_subgroup_uniform_control_flow",
    c"VK_KHR_shader_expect_assume",
    c"VK_KHR_shader_float_controls2",
    c"VK_EXT_shader_subgroup_ballot",
    c"VK_EXT_shader_subgroup_vote",
    c"VK_EXT_post_depth_coverage",
    c"VK_EXT_shader_replicated_composites",
    c"VK_KHR_shader_bfloat16",
    c"VK_KHR_shader_untyped_pointers",
    c"VK_KHR_cooperative_matrix",
];

macro_rules! features {
    ($($field:ident: $type:ident),* $(,)?) => {
        /// The features of the device, all of which are enabled.
        #[derive(Default)]
        pub struct Features {
            pub core: vk::PhysicalDeviceFeatures,
            $(pub $field: vk::$type<'static>,)*
        }

        impl Features {
            fn of(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Self {
                let mut all = Self::default();
                let mut head = vk::PhysicalDeviceFeatures2::default()$(.push_next(&mut all.$field))*;
                // SAFETY: the instance has the physical device, and all structures of the chain live until the end of
                // the call.
                unsafe { instance.get_physical_device_features2(physical, &mut head) };
                all.core = head.features;
                $(all.$field.p_next = ptr::null_mut();)*
                all
            }

            /// Calls a function with the chain of all features.
            fn chained<R>(&mut self, call: impl FnOnce(&mut vk::PhysicalDeviceFeatures2<'_>) -> R) -> R {
                let mut head = vk::PhysicalDeviceFeatures2::default().features(self.core)$(.push_next(&mut self.$field))*;
                let result = call(&mut head);
                $(self.$field.p_next = ptr::null_mut();)*
                result
            }
        }
    };
}

features! {
    v11: PhysicalDeviceVulkan11Features,
    v12: PhysicalDeviceVulkan12Features,
    v13: PhysicalDeviceVulkan13Features,
    libraries: PhysicalDeviceGraphicsPipelineLibraryFeaturesEXT,
    clock: PhysicalDeviceShaderClockFeaturesKHR,
    atomic_float: PhysicalDeviceShaderAtomicFloatFeaturesEXT,
    atomic_float2: PhysicalDeviceShaderAtomicFloat2FeaturesEXT,
    image_atomics: PhysicalDeviceShaderImageAtomicInt64FeaturesEXT,
    ray_query: PhysicalDeviceRayQueryFeaturesKHR,
    acceleration: PhysicalDeviceAccelerationStructureFeaturesKHR,
    shading_rate: PhysicalDeviceFragmentShadingRateFeaturesKHR,
    interlock: PhysicalDeviceFragmentShaderInterlockFeaturesEXT,
    derivatives: PhysicalDeviceComputeShaderDerivativesFeaturesNV,
    barycentric: PhysicalDeviceFragmentShaderBarycentricFeaturesKHR,
    transform_feedback: PhysicalDeviceTransformFeedbackFeaturesEXT,
    shared_layout: PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR,
    reconvergence: PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR,
    quad_control: PhysicalDeviceShaderQuadControlFeaturesKHR,
    rotate: PhysicalDeviceShaderSubgroupRotateFeaturesKHR,
    uniform_flow: PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR,
    expect: PhysicalDeviceShaderExpectAssumeFeaturesKHR,
    float_controls2: PhysicalDeviceShaderFloatControls2FeaturesKHR,
    matrices: PhysicalDeviceCooperativeMatrixFeaturesKHR,
    mutable: PhysicalDeviceMutableDescriptorTypeFeaturesEXT,
}

/// The driver, and its device.
pub struct Driver {
    pub instance: ash::Instance,
    pub physical: vk::PhysicalDevice,
    pub device: ash::Device,
    /// The family of the queue of the device: it draws and dispatches.
    pub family: u32,
    pub features: Features,
    /// The extensions that the driver has.
    pub extensions: BTreeSet<String>,
    pub limits: vk::PhysicalDeviceLimits,
    /// The operations of subgroups.
    pub subgroups: vk::SubgroupFeatureFlags,
    pub subgroup_size: u32,
    pub controls: Controls,
    /// Device, driver and version, as the driver names them.
    pub name: String,
}

/// The entry point of a driver that a loader of Vulkan looks for.
type GetProcAddr = unsafe extern "system" fn(vk::Instance, *const c_char) -> vk::PFN_vkVoidFunction;
/// The negotiation of the interface between a driver and its loader.
type Negotiate = unsafe extern "system" fn(*mut u32) -> vk::Result;

impl Driver {
    /// Loads a driver, and makes its device. Robust accesses (those outside of a buffer) are a feature that changes the
    /// code, so they are optional.
    ///
    /// # Errors
    /// Names the step at which the driver failed.
    pub fn open(path: &Path, is_robust: bool) -> Result<Self, String> {
        Self::open_device(path, is_robust, None)
    }

    /// The same, with the device whose name has this text, in any case, or that has this number.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn open_device(path: &Path, is_robust: bool, wanted: Option<&str>) -> Result<Self, String> {
        // SAFETY: loading a library runs its initialisation; this one is the compiler under test, and this process
        // exists to run it.
        let library = unsafe { Library::new(path) }.map_err(|error| format!("{}: {error}", path.display()))?;
        // It stays loaded until the process ends.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the interface of drivers gives these functions these types.
        let (get, negotiate) = unsafe {
            (
                library.get::<GetProcAddr>(c"vk_icdGetInstanceProcAddr"),
                library.get::<Negotiate>(c"vk_icdNegotiateLoaderICDInterfaceVersion"),
            )
        };
        // The loader of Vulkan has it without the prefix.
        // SAFETY: the specification gives the function this type.
        let get = get.or_else(|_| unsafe { library.get::<GetProcAddr>(c"vkGetInstanceProcAddr") });
        let get = get.map_err(|_| format!("{}: not a Vulkan driver (no vk_icdGetInstanceProcAddr)", path.display()))?;
        if let Ok(negotiate) = negotiate {
            let mut version = 5;
            // SAFETY: a function of the driver, with a place for a number.
            check("vk_icdNegotiateLoaderICDInterfaceVersion", unsafe { negotiate(&raw mut version) }.result())?;
        }
        let functions = ash::StaticFn { get_instance_proc_addr: *get };
        // SAFETY: the driver's function is a vkGetInstanceProcAddr, and stays loaded.
        let entry = unsafe { ash::Entry::from_static_fn(functions) };
        let application =
            vk::ApplicationInfo::default().application_name(c"ir3-equiv").api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the structures live until the end of the call.
        let instance = check("vkCreateInstance", unsafe { entry.create_instance(&info, None) })?;
        // SAFETY: the instance was just made, and is never destroyed.
        let all = check("vkEnumeratePhysicalDevices", unsafe { instance.enumerate_physical_devices() })?;
        let physical = chosen(&instance, &all, wanted)?;
        // SAFETY: the instance has the physical device.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let has = |wanted: vk::QueueFlags| families.iter().position(|it| it.queue_flags.contains(wanted));
        let family = has(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE).or_else(|| has(vk::QueueFlags::COMPUTE));
        let family = u32::try_from(family.unwrap_or_default()).unwrap_or_default();
        let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut v11).push_next(&mut v12);
        // SAFETY: the instance has the physical device, and all structures of the chain live until the end of the call.
        unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
        let properties = properties.properties;
        let text = |text: Result<&CStr, _>| text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
        let name = format!(
            "{}, {} {}",
            text(properties.device_name_as_c_str()),
            text(v12.driver_name_as_c_str()),
            text(v12.driver_info_as_c_str())
        );
        let mut features = Features::of(&instance, physical);
        if !is_robust {
            features.core.robust_buffer_access = vk::FALSE;
            features.v13.robust_image_access = vk::FALSE;
        }
        // SAFETY: the instance has the physical device.
        let extensions = unsafe { instance.enumerate_device_extension_properties(physical) };
        let extensions = check("vkEnumerateDeviceExtensionProperties", extensions)?;
        let extensions: BTreeSet<String> = extensions.iter().map(|it| text(it.extension_name_as_c_str())).collect();
        let enabled: Vec<_> = EXTENSIONS
            .iter()
            .filter(|name| extensions.contains(&*name.to_string_lossy()))
            .map(|name| name.as_ptr())
            .collect();
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let device = features.chained(|features| {
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&enabled);
            // SAFETY: the instance has the physical device, and all structures of the chain live until the end of the
            // call.
            unsafe { instance.create_device(physical, &info.push_next(features), None) }
        });
        let device = check("vkCreateDevice", device)?;
        let (limits, subgroups) = (properties.limits, v11.subgroup_supported_operations);
        let subgroup_size = v11.subgroup_size;
        let controls = Controls::of(&v12);
        Ok(Self {
            instance,
            physical,
            device,
            family,
            features,
            extensions,
            limits,
            subgroups,
            subgroup_size,
            controls,
            name,
        })
    }
}

/// The modes of floats that a device has, by width: 16, 32 and 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    pub rounds_to_even: [bool; 3],
    pub keeps_denormals: [bool; 3],
    /// Signs of zeros, infinities and NaNs are kept.
    pub keeps_specials: [bool; 3],
}

impl Controls {
    fn of(properties: &vk::PhysicalDeviceVulkan12Properties<'_>) -> Self {
        let are = |all: [vk::Bool32; 3]| all.map(|it| it != vk::FALSE);
        Self {
            rounds_to_even: are([
                properties.shader_rounding_mode_rte_float16,
                properties.shader_rounding_mode_rte_float32,
                properties.shader_rounding_mode_rte_float64,
            ]),
            keeps_denormals: are([
                properties.shader_denorm_preserve_float16,
                properties.shader_denorm_preserve_float32,
                properties.shader_denorm_preserve_float64,
            ]),
            keeps_specials: are([
                properties.shader_signed_zero_inf_nan_preserve_float16,
                properties.shader_signed_zero_inf_nan_preserve_float32,
                properties.shader_signed_zero_inf_nan_preserve_float64,
            ]),
        }
    }
}

/// The device that was asked for, or the first one.
fn chosen(
    instance: &ash::Instance,
    all: &[vk::PhysicalDevice],
    wanted: Option<&str>,
) -> Result<vk::PhysicalDevice, String> {
    let none = "the driver finds no device: it does not know this chip, or its kernel interface";
    let Some(wanted) = wanted else { return all.first().copied().ok_or_else(|| none.to_owned()) };
    let name = |device: vk::PhysicalDevice| {
        // SAFETY: the instance has the physical device.
        let properties = unsafe { instance.get_physical_device_properties(device) };
        properties.device_name_as_c_str().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let by_number = wanted.parse::<usize>().ok().and_then(|number| all.get(number).copied());
    let lower = wanted.to_lowercase();
    let found = by_number.or_else(|| all.iter().copied().find(|&it| name(it).to_lowercase().contains(&lower)));
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|&it| name(it)).collect();
        format!("found no device `{wanted}`: the driver has {}", names.join(", "))
    })
}

/// The result of a call, with its name if it failed.
fn check<T>(call: &str, result: Result<T, vk::Result>) -> Result<T, String> {
    result.map_err(|error| format!("{call}: {error:?}"))
}
