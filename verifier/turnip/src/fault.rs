//! The place at which a driver crashes.
//!
//! The child writes the address of the instruction into its report, and ends by the signal as it would without. The
//! parent, from which it was forked, has the same libraries at the same addresses and finds the name. Crashes of one
//! cause have one place.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::RawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals of an instruction that fails.
const SIGNALS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Bytes of the stack of the handler: that of the child may be full.
const STACK: usize = 1 << 16;
/// The descriptor of the report.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// Writes the address into the report. The signal has its default action again: the instruction fails once more, and
/// the process ends.
extern "C" fn write_address(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let address = instruction(context).to_ne_bytes();
    // SAFETY: a call that handlers may make, on bytes of this frame.
    let _ = unsafe { libc::write(REPORT.load(Ordering::Relaxed), address.as_ptr().cast(), address.len()) };
}

/// The address of the instruction, or 0 on a machine whose context is not known here.
fn instruction(context: *mut c_void) -> usize {
    // SAFETY: the system passes this structure to a handler with `SA_SIGINFO`.
    let context = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let address = context.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    let address = context.pc as usize;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let address = {
        let _ = context;
        0
    };
    address
}

/// Makes a process write the address of an instruction that fails into its report.
pub fn watch(report: RawFd) {
    REPORT.store(report, Ordering::Relaxed);
    let stack = Box::leak(vec![0_u8; STACK].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
    // SAFETY: the stack lives as long as the process.
    unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
    for signal in SIGNALS {
        // SAFETY: zeros are a value of the structure: no flags, no signals in the mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = write_address;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        // SAFETY: the handler has the type of one with `SA_SIGINFO`, and makes no calls but `write`.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

/// The place in the report of a child that crashed: a file and an offset in it, as `libvulkan_freedreno.so+0x1234`.
pub fn place(report: &[u8]) -> Option<String> {
    let address = usize::from_ne_bytes(report.try_into().ok()?);
    // SAFETY: zeros are a value of the structure, which has pointers and lengths only.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is a structure of the type that the call fills; the address is compared only.
    if unsafe { libc::dladdr(ptr::without_provenance(address), &raw mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a library that is loaded, which ends with a zero.
    let file = unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy();
    let name = Path::new(&*file).file_name()?.to_string_lossy();
    Some(format!("{name}+{:#x}", address.checked_sub(found.dli_fbase.addr())?))
}
