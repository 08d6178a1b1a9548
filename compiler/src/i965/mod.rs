//! The backends for Intel's gen7, apart from ir3: a language, and its two forms.
//!
//! - [`vec4`]: registers of four channels; nir is translated by [`vec4_select`], then passes of [`vec4_passes`] run.
//! - its scalar form, 8 or 16 invocations a thread: [`scalar_select`], then [`scalar_passes`].

pub mod scalar_passes;
pub mod scalar_select;
pub mod vec4;
pub mod vec4_passes;
pub mod vec4_select;
