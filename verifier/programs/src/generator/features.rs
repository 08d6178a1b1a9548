//! The features of a GPU that a generated program may use.

use ir3_compiler::target::{Backend, Generation, Target};

/// Features that not every GPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Features {
    /// The GPU's name.
    pub gpu: &'static str,
    /// Compute shaders, storage buffers, shared memory.
    pub compute: bool,
    /// Storage of 16-bit elements.
    pub storage_16bit: bool,
    /// Storage images.
    pub images: bool,
    /// Uniform buffers that are read by instructions.
    pub ubos: bool,
    /// Memory with 64-bit addresses.
    pub global: bool,
    /// Texel fetches of any level.
    pub fetch_levels: bool,
    /// Only operations that the vec4 backend compiles: programs of their own kind.
    pub vec4: bool,
    /// Only operations that the scalar backend for Gen7 compiles.
    pub scalar: bool,
    /// Only operations that a driver of Vulkan gets: SPIR-V has a form for them, and the device the capabilities.
    pub driver: bool,
    /// Values of other lanes: ballots, reads from one lane, reductions. (Votes and elections are always there.)
    pub lanes: bool,
    /// Compute shaders alone.
    pub only_compute: bool,
}

impl Features {
    /// All features: those of the a660.
    pub const ALL: Self = Self {
        gpu: "a660",
        compute: true,
        storage_16bit: true,
        images: true,
        ubos: true,
        global: true,
        fetch_levels: true,
        vec4: false,
        scalar: false,
        driver: false,
        lanes: true,
        only_compute: false,
    };

    /// The features of a GPU.
    pub fn of(target: &Target) -> Self {
        let is_scalar = target.backend == Backend::Scalar;
        let a6xx = target.generation >= Generation::A6xx;
        Self {
            gpu: target.name,
            compute: is_scalar || target.generation > Generation::A3xx,
            storage_16bit: target.storage_16bit,
            images: target.generation > Generation::A3xx,
            ubos: a6xx,
            global: is_scalar || a6xx,
            fetch_levels: !target.unminify_coords,
            vec4: target.backend == Backend::Vec4,
            scalar: is_scalar,
            driver: false,
            lanes: target.has_shared_regfile,
            only_compute: false,
        }
    }
    /// Returns the features for a driver, which gets programs as SPIR-V.
    #[must_use]
    pub const fn for_driver(self) -> Self {
        Self { driver: true, ..self }
    }
}
