//! A Vulkan driver for tests, with the behaviour that `STAND_IN` names instead of compiling.
//!
//! It has the functions that `ir3-turnip` calls, and no others.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use ash::vk;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::io::Write;
use std::ptr;
use std::time::Duration;

/// The log of a shader, as far as the worker reads it.
const LOG: &str = "NIR (final form) for CL shader stand-in:\n";

fn wanted() -> String {
    std::env::var("STAND_IN").unwrap_or_default()
}

/// Work without an end.
fn turn() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Calls without an end.
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + page[0]
}

/// Behaves in a compilation as the variable names.
fn compile() -> vk::Result {
    match &*wanted() {
        // SAFETY: none; the address is invalid, and the process ends.
        "crash" => unsafe { ptr::without_provenance_mut::<u8>(1).write_volatile(0) },
        "overflow" => drop(overflow(0)),
        "abort" => std::process::abort(),
        "loop" => turn(),
        "sleep" => std::thread::sleep(Duration::from_secs(3600)),
        "closed" => {
            // SAFETY: calls on descriptors, without memory.
            let _ = unsafe { libc::close(1) + libc::close(2) };
            turn();
        }
        "memory" => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1_u8; 1 << 20]);
            }
        }
        "silent" => return vk::Result::SUCCESS,
        "flood" => {
            let line = "x".repeat(1 << 16);
            loop {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
        "exit" => std::process::exit(3),
        "quit" => std::process::exit(0),
        "kill" => {
            // SAFETY: a call without memory. The group is that of the child.
            unsafe { libc::kill(0, libc::SIGKILL) };
        }
        "refuse" => return vk::Result::ERROR_UNKNOWN,
        "no-memory" => return vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        // SAFETY: a call without memory; the new process sleeps, and has the pipes of this one.
        "leave" => unsafe {
            if libc::fork() == 0 {
                std::thread::sleep(Duration::from_secs(3600));
            }
        },
        "kernel" => kernel(),
        _ => {}
    }
    eprint!("{LOG}");
    vk::Result::SUCCESS
}

/// Prints the answers of the kernel's device.
fn kernel() {
    #[repr(C)]
    struct Version {
        number: [c_int; 3],
        texts: [(usize, *mut u8); 3],
    }
    const VERSION: c_ulong = 0xc040_6400;
    let mut name = [0; 8];
    let mut version = Version {
        number: [0; 3],
        texts: [(name.len(), name.as_mut_ptr()), (0, ptr::null_mut()), (0, ptr::null_mut())],
    };
    // SAFETY: the path is a string, and the request has its structure.
    let answered = unsafe {
        let file = libc::open64(c"/dev/dri/renderD128".as_ptr(), libc::O_RDWR);
        libc::ioctl(file, VERSION, &raw mut version)
    };
    let length = version.texts[0].0;
    eprintln!("{answered} {} {:?}", String::from_utf8_lossy(&name[..length]), version.number);
}

unsafe extern "system" fn create_instance(_: *const c_void, _: *const c_void, out: *mut u64) -> vk::Result {
    match &*wanted() {
        "load-abort" => std::process::abort(),
        "load-exit" => std::process::exit(7),
        "load-refuse" => return vk::Result::ERROR_INCOMPATIBLE_DRIVER,
        _ => {}
    }
    // SAFETY: the caller passes a place for a handle.
    unsafe { out.write(1) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn enumerate_physical_devices(_: u64, count: *mut u32, out: *mut u64) -> vk::Result {
    let has_device = wanted() != "no-device";
    // SAFETY: the caller passes a place for a number, and for as many handles.
    unsafe {
        count.write(has_device.into());
        if has_device && !out.is_null() {
            out.write(1);
        }
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn properties2(_: u64, out: *mut vk::PhysicalDeviceProperties2<'_>) {
    // SAFETY: the caller passes a structure.
    let properties = unsafe { &mut (*out).properties };
    properties.limits.max_bound_descriptor_sets = 4;
    properties.limits.max_push_constants_size = 128;
    for (to, from) in properties.device_name.iter_mut().zip(b"stand-in\0") {
        *to = *from as c_char;
    }
}

unsafe extern "system" fn queue_families(_: u64, count: *mut u32, out: *mut vk::QueueFamilyProperties) {
    // SAFETY: the caller passes a place for a number, and for as many structures.
    unsafe {
        count.write(1);
        if !out.is_null() {
            out.write(vk::QueueFamilyProperties {
                queue_flags: vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE,
                queue_count: 1,
                ..Default::default()
            });
        }
    }
}

unsafe extern "system" fn features2(_: u64, _: *mut c_void) {}

unsafe extern "system" fn extensions(_: u64, _: *const c_char, count: *mut u32, _: *mut c_void) -> vk::Result {
    // SAFETY: the caller passes a place for a number.
    unsafe { count.write(0) };
    vk::Result::SUCCESS
}

/// Any function that makes one object of a structure.
unsafe extern "system" fn create(_: u64, _: *const c_void, _: *const c_void, out: *mut u64) -> vk::Result {
    // SAFETY: the caller passes a place for a handle.
    unsafe { out.write(1) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn create_pipelines(
    _: u64,
    _: u64,
    _: u32,
    _: *const c_void,
    _: *const c_void,
    out: *mut u64,
) -> vk::Result {
    // SAFETY: the caller passes a place for a handle.
    unsafe { out.write(1) };
    compile()
}

unsafe extern "system" fn cache_data(_: u64, _: u64, size: *mut usize, _: *mut c_void) -> vk::Result {
    // SAFETY: the caller passes a place for a number.
    unsafe { size.write(0) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn device_proc(_: u64, name: *const c_char) -> *const c_void {
    // SAFETY: the caller passes a name.
    unsafe { vk_icdGetInstanceProcAddr(0, name) }
}

/// The entry point of a driver.
#[unsafe(no_mangle)]
unsafe extern "system" fn vk_icdGetInstanceProcAddr(_: u64, name: *const c_char) -> *const c_void {
    // SAFETY: the caller passes a name.
    match unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default() {
        "vkCreateInstance" => create_instance as *const c_void,
        "vkEnumeratePhysicalDevices" => enumerate_physical_devices as *const c_void,
        "vkGetPhysicalDeviceProperties2" => properties2 as *const c_void,
        "vkGetPhysicalDeviceQueueFamilyProperties" => queue_families as *const c_void,
        "vkGetPhysicalDeviceFeatures2" => features2 as *const c_void,
        "vkEnumerateDeviceExtensionProperties" => extensions as *const c_void,
        "vkGetDeviceProcAddr" => device_proc as *const c_void,
        "vkCreateDevice"
        | "vkCreateDescriptorSetLayout"
        | "vkCreatePipelineLayout"
        | "vkCreatePipelineCache"
        | "vkCreateShaderModule" => create as *const c_void,
        "vkCreateComputePipelines" | "vkCreateGraphicsPipelines" => create_pipelines as *const c_void,
        "vkGetPipelineCacheData" => cache_data as *const c_void,
        _ => ptr::null(),
    }
}
