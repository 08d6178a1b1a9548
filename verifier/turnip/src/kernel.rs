//! A device of the kernel driver `msm` that executes nothing, in this process.
//!
//! The functions of libdrm and of the C library with which Mesa looks for a device and talks to it are defined here
//! under their own names. The program exports them (`build.rs`), and the dynamic linker looks symbols up in the program
//! first, so the driver calls these. Submissions and waits succeed.
//!
//! The descriptor of the device is that of a memory file without contents, and a buffer object is a range of it: `mmap`
//! of the C library does the same as that of the device would. `RLIMIT_FSIZE` bounds the file.

#![allow(unsafe_code)]

use libc::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The path of the device.
const NODE: &CStr = c"/dev/dri/renderD128";
/// Bytes of the memory of all buffer objects.
const SPACE: u64 = 1 << 40;
/// A smaller limit on the size of files is too small for a device.
const LEAST_SPACE: u64 = 256 << 20;
/// The alignment of buffer objects.
const PAGE: u64 = 1 << 16;
/// The address of the first buffer object for the GPU, and the bytes of all addresses.
const ADDRESSES: (u64, u64) = (0x1_0000_0000, 0x40_0000_0000);

/// The chip of the device.
static CHIP: OnceLock<u64> = OnceLock::new();
/// True if a buffer object did not fit into the memory that `RLIMIT_FSIZE` allows.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// The last number that was given to a queue, a fence or a synchronisation object.
static LAST: AtomicU32 = AtomicU32::new(0);
static MEMORY: Mutex<Memory> = Mutex::new(Memory { file: -1, size: 0, end: PAGE, objects: Vec::new() });

/// A buffer object: its place in the file, and its address for the GPU.
struct Object {
    offset: u64,
    address: u64,
}

/// The memory of the device.
struct Memory {
    /// The descriptor of the file, or -1 before it is made.
    file: c_int,
    size: u64,
    /// The end of the last buffer object.
    end: u64,
    objects: Vec<Object>,
}

fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the device.
///
/// # Errors
/// If the system has no memory file, or its size is limited to too little.
pub fn create(chip: u64) -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a structure of the type that the call fills.
    let has_limit = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    let most = if has_limit { limit.rlim_cur } else { SPACE };
    let size = SPACE.min(most) / PAGE * PAGE;
    if size < LEAST_SPACE {
        return Err(format!(
            "the limit on the size of files (RLIMIT_FSIZE) is {most} bytes: the memory of the device is a file of at least {LEAST_SPACE}"
        ));
    }
    // SAFETY: the name is a string that ends with a zero, and the size is one that the limit allows.
    let file = unsafe {
        let file = libc::memfd_create(c"msm".as_ptr(), libc::MFD_CLOEXEC);
        if file >= 0 && libc::ftruncate(file, size.cast_signed()) != 0 { -1 } else { file }
    };
    if file < 0 {
        return Err(format!("the memory of the device: {}", std::io::Error::last_os_error()));
    }
    let mut memory = memory();
    memory.file = file;
    memory.size = size;
    CHIP.get_or_init(|| chip);
    Ok(())
}

/// Returns true if a buffer object did not fit into the memory that `RLIMIT_FSIZE` allows.
pub fn is_full() -> bool {
    IS_FULL.load(Ordering::Relaxed)
}

fn next_number() -> u32 {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

// The list of devices of libdrm: `struct _drmDevice` and the two structures that it points to.

#[repr(C)]
struct PlatformInfo {
    compatible: *const *const c_char,
}

#[repr(C)]
struct DrmDevice {
    nodes: *const *const c_char,
    available_nodes: c_int,
    bus: c_int,
    bus_info: *const [u8; 512],
    device_info: *const PlatformInfo,
}

/// The kind of the existing node: one for rendering. (0 is the primary node, 1 that of control.)
const RENDER_NODE: usize = 2;
const PLATFORM_BUS: c_int = 2;

/// The only device. It is made once, and never freed.
fn device() -> *mut DrmDevice {
    static DEVICE: OnceLock<usize> = OnceLock::new();
    let address = DEVICE.get_or_init(|| {
        let mut nodes = [c"".as_ptr(); 3];
        nodes[RENDER_NODE] = NODE.as_ptr();
        let mut bus_info = [0; 512];
        let name = b"/soc@0/gpu@0";
        bus_info[..name.len()].copy_from_slice(name);
        let compatible: &[_; 2] = Box::leak(Box::new([c"qcom,adreno".as_ptr(), ptr::null()]));
        let device = DrmDevice {
            nodes: Box::leak(Box::new(nodes)).as_ptr(),
            available_nodes: 1 << RENDER_NODE,
            bus: PLATFORM_BUS,
            bus_info: Box::leak(Box::new(bus_info)),
            device_info: Box::leak(Box::new(PlatformInfo { compatible: compatible.as_ptr() })),
        };
        ptr::from_mut(Box::leak(Box::new(device))).expose_provenance()
    });
    ptr::with_exposed_provenance_mut(*address)
}

/// libdrm's list of devices.
#[unsafe(no_mangle)]
extern "C" fn drmGetDevices2(_flags: u32, devices: *mut *mut DrmDevice, most: c_int) -> c_int {
    if !devices.is_null() && most > 0 {
        // SAFETY: the caller of drmGetDevices2 passes an array of `most` pointers.
        unsafe { devices.write(device()) };
    }
    1
}

/// libdrm's list of devices, by its old function name.
#[unsafe(no_mangle)]
extern "C" fn drmGetDevices(devices: *mut *mut DrmDevice, most: c_int) -> c_int {
    drmGetDevices2(0, devices, most)
}

/// libdrm's device of a descriptor.
#[unsafe(no_mangle)]
extern "C" fn drmGetDevice2(_file: c_int, _flags: u32, found: *mut *mut DrmDevice) -> c_int {
    // SAFETY: the caller of drmGetDevice2 passes a place for a pointer.
    unsafe { found.write(device()) };
    0
}

/// Nothing is freed: there is one device.
#[unsafe(no_mangle)]
extern "C" fn drmFreeDevice(device: *mut *mut DrmDevice) {
    drmFreeDevices(device, 1);
}

/// Nothing is freed: there is one device.
#[unsafe(no_mangle)]
extern "C" fn drmFreeDevices(devices: *mut *mut DrmDevice, count: c_int) {
    for i in 0..usize::try_from(count).unwrap_or_default() {
        if !devices.is_null() {
            // SAFETY: the caller of drmFreeDevices passes an array of `count` pointers.
            unsafe { devices.add(i).write(ptr::null_mut()) };
        }
    }
}

// The node. The functions of the C library that are replaced do the same for all other paths, by the system call: they
// may not call the C library's function of their own name, which is this one. Those with variable arguments are defined
// with the most that they have: on the ABIs of x86-64 and of AArch64 Linux a call passes integers of either kind in the
// same registers.

/// # Safety
/// The path is null or a string that ends with a zero, as for `open`.
unsafe fn is_node(path: *const c_char) -> bool {
    // SAFETY: promised by the caller.
    !path.is_null() && unsafe { CStr::from_ptr(path) } == NODE
}

/// A new descriptor of the device.
fn new_file() -> c_int {
    // SAFETY: a call on a descriptor, without memory.
    unsafe { libc::fcntl(memory().file, libc::F_DUPFD_CLOEXEC, 10) }
}

/// The system call `openat`.
///
/// # Safety
/// As for `open`.
unsafe fn open_path(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: promised by the caller.
    if unsafe { is_node(path) } {
        return new_file();
    }
    // SAFETY: the arguments are those of the caller of `open`.
    let file = unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode) };
    truncated(file)
}

/// A result of a system call that fits into an `int`.
fn truncated(result: libc::c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// The C library's `open`.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: promised by the caller of `open`.
    unsafe { open_path(libc::AT_FDCWD, path, flags, mode) }
}

/// The C library's `open64`.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: promised by the caller of `open64`.
    unsafe { open_path(libc::AT_FDCWD, path, flags, mode) }
}

/// The C library's `stat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn stat(path: *const c_char, into: *mut libc::stat64) -> c_int {
    // SAFETY: promised by the caller of `stat`; on 64-bit systems its structure is that of `stat64`.
    unsafe { stat64(path, into) }
}

/// The C library's `stat64`.
#[unsafe(no_mangle)]
unsafe extern "C" fn stat64(path: *const c_char, into: *mut libc::stat64) -> c_int {
    // SAFETY: promised by the caller of `stat64`.
    if unsafe { is_node(path) } {
        // SAFETY: zeros are a value of the structure, which has numbers only, and the caller passes a place for it.
        unsafe {
            into.write_bytes(0, 1);
            (*into).st_mode = libc::S_IFCHR | 0o666;
            (*into).st_rdev = libc::makedev(226, 128);
        }
        return 0;
    }
    // SAFETY: the arguments are those of the caller; the kernel's structure is that of the C library on 64-bit systems.
    truncated(unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, into, 0) })
}

/// The C library's `ioctl`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    /// The letter of the requests of DRM.
    const DRM: c_ulong = b'd' as c_ulong;
    if (request >> 8) & 0xff != DRM {
        // SAFETY: the arguments are those of the caller of `ioctl`.
        return truncated(unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) });
    }
    let size = usize::try_from((request >> 16) & 0x3fff).unwrap_or_default();
    let argument = Argument { address: argument, size };
    match answer((request & 0xff) as u8, argument) {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: `__errno_location` is the place of the thread's error.
            unsafe { *libc::__errno_location() = error };
            -1
        }
    }
}

/// The argument of a request. Its size is that which the request's number has.
struct Argument {
    address: *mut c_void,
    size: usize,
}

impl Argument {
    /// The argument as a structure, if it is as large.
    fn get<T: Plain>(&mut self) -> Result<&mut T, c_int> {
        if self.address.is_null() || self.size < size_of::<T>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller of `ioctl` passes a structure of the size in the request's number, aligned as the kernel
        // wants it, and does not use it meanwhile; all values of the bytes are values of the type (`Plain`).
        Ok(unsafe { &mut *self.address.cast::<T>() })
    }
}

/// Structures of the kernel that any bytes are a value of.
///
/// # Safety
/// All fields are integers or pointers, in the order of C.
unsafe trait Plain {}

macro_rules! structures {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        #[repr(C)]
        #[allow(dead_code)]
        struct $name { $($field: $type),* }
        // SAFETY: the macro is used for integers and pointers.
        unsafe impl Plain for $name {}
    )*};
}

structures! {
    Version { major: c_int, minor: c_int, patch: c_int, name_length: usize, name: *mut u8, date_length: usize, date: *mut u8,
        description_length: usize, description: *mut u8 }
    Capability { capability: u64, value: u64 }
    Parameter { pipe: u32, parameter: u32, value: u64, length: u32, padding: u32 }
    NewObject { size: u64, flags: u32, handle: u32 }
    ObjectInfo { handle: u32, info: u32, value: u64, length: u32, padding: u32 }
    Submission { flags: u32, fence: u32, objects: u32, commands: u32, object_list: u64, command_list: u64, fence_file: c_int }
    Binding { flags: u32, operations: u32, fence_file: c_int }
    Advice { handle: u32, advice: u32, retained: u32 }
    NewQueue { flags: u32, priority: u32, id: u32 }
    NewSync { handle: u32, flags: u32 }
    SyncFile { handle: u32, flags: u32, file: c_int, padding: u32 }
}

/// Answers a request of DRM, by its number.
fn answer(number: u8, mut argument: Argument) -> Result<(), c_int> {
    match number {
        0x00 => version(argument.get()?),
        // GEM_CLOSE: memory is not used again.
        0x09 => Ok(()),
        0x0c => {
            /// Prime, synchronisation objects, and timelines of these.
            const KNOWN: [u64; 3] = [0x5, 0x13, 0x14];
            let capability: &mut Capability = argument.get()?;
            capability.value = u64::from(KNOWN.contains(&capability.capability));
            Ok(())
        }
        0x40..0x60 => answer_msm(number - 0x40, argument),
        0xbf => {
            argument.get::<NewSync>()?.handle = next_number();
            Ok(())
        }
        // A synchronisation object as a file, which the caller closes, and back.
        0xc1 => {
            argument.get::<SyncFile>()?.file = new_file();
            Ok(())
        }
        0xc2 => {
            argument.get::<SyncFile>()?.handle = next_number();
            Ok(())
        }
        // The other requests of synchronisation objects.
        0xc0 | 0xc3..=0xcf => Ok(()),
        _ => Err(libc::EINVAL),
    }
}

fn version(version: &mut Version) -> Result<(), c_int> {
    // VM_BIND exists from 1.12 on.
    (version.major, version.minor, version.patch) = (1, 12, 0);
    let texts: [(&mut usize, *mut u8, &[u8]); 3] = [
        (&mut version.name_length, version.name, b"msm"),
        (&mut version.date_length, version.date, b"20250101"),
        (&mut version.description_length, version.description, b"no device"),
    ];
    for (length, place, text) in texts {
        if !place.is_null() && *length >= text.len() {
            // SAFETY: the caller passes a place for as many bytes as the length before it.
            unsafe { place.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        }
        *length = text.len();
    }
    Ok(())
}

/// The flags of a submission and of a VM_BIND that request a fence as a file, which the caller closes.
const SUBMISSION_FENCE: u32 = 0x4000_0000;
const BINDING_FENCE: u32 = 2;

/// Answers a request of `msm`, by its number.
fn answer_msm(number: u8, mut argument: Argument) -> Result<(), c_int> {
    match number {
        0x00 => {
            let request: &mut Parameter = argument.get()?;
            request.value = parameter(request.parameter).ok_or(libc::EINVAL)?;
            Ok(())
        }
        // SET_PARAM, of which one announces VM_BIND.
        0x01 => Ok(()),
        0x02 => new_object(argument.get()?),
        0x03 => object_info(argument.get()?),
        0x06 => {
            let request: &mut Submission = argument.get()?;
            request.fence = next_number();
            if request.flags & SUBMISSION_FENCE != 0 {
                request.fence_file = new_file();
            }
            Ok(())
        }
        0x08 => {
            argument.get::<Advice>()?.retained = 1;
            Ok(())
        }
        0x0a => {
            argument.get::<NewQueue>()?.id = next_number();
            Ok(())
        }
        0x0d => {
            let request: &mut Binding = argument.get()?;
            if request.flags & BINDING_FENCE != 0 {
                request.fence_file = new_file();
            }
            Ok(())
        }
        // Preparation and end of accesses by the processor, waits, the end of a queue, its state.
        0x04 | 0x05 | 0x07 | 0x0b | 0x0c => Ok(()),
        _ => Err(libc::EINVAL),
    }
}

/// A parameter of the GPU, by its number.
fn parameter(number: u32) -> Option<u64> {
    Some(match number {
        // The name by digits: 0, the chip has it.
        0x01 => 0,
        // Bytes of the memory of tiles, and their address.
        0x02 => 3 << 20,
        0x06 => 0x10_0000,
        0x03 => *CHIP.get()?,
        // The highest frequency, in Hz.
        0x04 => 1_000_000_000,
        // The time stamp; faults; suspends.
        0x05 | 0x09 | 0x0a => 0,
        // Priorities; page tables for each process.
        0x07 | 0x08 => 1,
        0x0e => ADDRESSES.0,
        0x0f => ADDRESSES.1,
        // The layout of compressed images: the highest bit of the bank, swizzle, macro tiles.
        0x10 => 15,
        0x12 => 6,
        0x13 => 1,
        // Queries of rays.
        0x11 => 1,
        // The address that a read outside of memory traps at.
        0x14 => 0x1_ffff_ffff_f000,
        _ => return None,
    })
}

fn new_object(request: &mut NewObject) -> Result<(), c_int> {
    let mut memory = memory();
    let size = request.size.checked_next_multiple_of(PAGE).filter(|size| *size > 0).ok_or(libc::EINVAL)?;
    let end = memory.end.checked_add(size).filter(|end| *end <= memory.size);
    let Some(end) = end else {
        if memory.size < SPACE {
            IS_FULL.store(true, Ordering::Relaxed);
        }
        return Err(libc::ENOMEM);
    };
    let offset = memory.end;
    memory.end = end;
    memory.objects.push(Object { offset, address: ADDRESSES.0 + offset });
    // Handles count from one.
    request.handle = u32::try_from(memory.objects.len()).map_err(|_| libc::ENOMEM)?;
    Ok(())
}

fn object_info(request: &mut ObjectInfo) -> Result<(), c_int> {
    let mut memory = memory();
    let index = (request.handle as usize).checked_sub(1).ok_or(libc::ENOENT)?;
    let object = memory.objects.get_mut(index).ok_or(libc::ENOENT)?;
    match request.info {
        0 => request.value = object.offset,
        1 => request.value = object.address,
        4 => object.address = request.value,
        // Flags.
        5 => request.value = 0,
        // Names and metadata.
        _ => {}
    }
    Ok(())
}

/// Functions that the linker has to keep: nothing in this program calls them.
#[used]
static EXPORTED: [unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int; 1] = [ioctl];
