//! Programs on devices of Vulkan: any driver, found by its name or its path, and a process that executes compute,
//! vertex and fragment shaders on it.
//!
//! [`prepare()`] makes a program one whose meaning the specification of Vulkan decides, a [`Job`] is a program with the
//! contents of its resources, and [`Device`] executes it. The process is `ir3-vulkan` (verifier/turnip): a crash, a
//! hang and a lost device are results.

mod device;
mod driver;
mod flush;
pub mod fragments;
mod insert;
mod job;
mod prepare;
pub mod sweep;
mod texels;
mod vertex;
pub mod vertices;

pub use device::{Device, DeviceError, Execution, Kind, Properties};
pub use driver::{Library, NoLibrary};
pub use job::{CLEAR, Job, JobResource};
pub use prepare::{Layout, Preparation, Prepared, groups_of, lanes_of, prepare};
