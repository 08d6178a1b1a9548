//! `ir3-turnip`: compiles shaders with Mesa's turnip, on a machine without an Adreno.
//!
//! The program answers for the kernel's device in its own process (`kernel.rs`), loads the driver by its path, makes
//! the device once, and compiles each module in a child of its own, with limits: any behaviour of the driver in the
//! child is a result. `ir3-equiv` starts it, with the loader and the libraries that the driver needs; any other program
//! may.
//!
//! # Protocol
//! First a line `ready DEVICE` on standard output, or `failed REASON` and exit code 2. Then, for each line of standard
//! input, which is the path of a module (`.spv`, or a text that naga translates: `.comp`, `.vert`, `.frag`, `.wgsl`),
//! or paths with a tab after each, whose vertex and fragment shader are linked, an answer: a line `KIND LENGTH SIZE
//! REASON`, LENGTH bytes of log, and SIZE bytes of the driver's cache of pipelines, which has the machine code. The
//! kinds are those of `outcome.rs`.
//!
//! With paths on the command line, their logs are printed instead, and the exit code is 1 if one was not compiled.

#[cfg(target_os = "linux")]
use ir3_turnip::{atomics, device, module, outcome};

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod chips;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod partner;
#[cfg(target_os = "linux")]
mod pipeline;
#[cfg(target_os = "linux")]
mod text;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    worker::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("ir3-turnip: turnip's kernel device is one of Linux");
    std::process::ExitCode::from(2)
}
