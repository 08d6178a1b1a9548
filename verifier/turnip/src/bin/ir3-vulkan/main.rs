//! `ir3-vulkan`: executes compute and fragment shaders on a Vulkan device.
//!
//! The driver is loaded by its path, without a loader of Vulkan, or is that loader. `ir3-equiv` starts the program, and
//! starts another one after a crash, a hang or the loss of the device: the process ends with the device.
//!
//! # Protocol
//! Standard output: a line `ready DEVICE` and a line of the device's properties ([`execute::Device::properties`]), or
//! `failed REASON` and exit code 2. Then, for each job on standard input ([`job`]), an answer: a line `KIND LENGTH
//! DETAIL` and LENGTH bytes, the contents of the resources of the job that may be written in their order, and of the
//! colour attachments ([`record::CLEAR`] where nothing was drawn), twice (of the first and of the second execution) if
//! they differ. The kinds are those of [`ir3_turnip::outcome`].

#[cfg(target_os = "linux")]
mod execute;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod pipeline;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod resources;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    execute::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("ir3-vulkan: this program is for Linux");
    std::process::ExitCode::from(2)
}
