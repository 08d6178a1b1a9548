//! Interrupts. The first SIGINT or SIGTERM ends the program in order, at any point; the second one kills it.
//!
//! Loops over programs stop when [`flag`] is set. Where the program is in one long step at that time (it reads a pipe,
//! the solver runs), it is ended from outside after half a second: the results until then are printed by
//! [`last_words`], and nothing half-written is left, since folders and caches are written atomically.

use crate::exit::Exit;
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag as on_signal, low_level};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// The time in which the program may end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// The time in which the last words have to be printed: a pipe may be full.
const WORDS: Duration = Duration::from_millis(300);

static FLAG: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(SIGINT);

type Words = Box<dyn FnOnce() -> Exit + Send>;
static LAST_WORDS: Mutex<Option<Words>> = Mutex::new(None);

fn words() -> MutexGuard<'static, Option<Words>> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The flag that the first signal sets.
pub fn flag() -> &'static AtomicBool {
    &FLAG
}

/// Returns true after the first signal.
pub fn is_set() -> bool {
    FLAG.load(Ordering::Relaxed)
}

/// The number of the signal.
pub fn signal() -> u8 {
    SIGNAL.load(Ordering::Relaxed).unsigned_abs() as u8
}

/// Sets the function that is called if the program has to be ended from outside: it prints the results until then, and
/// returns the exit.
pub fn last_words(print: impl FnOnce() -> Exit + Send + 'static) {
    *words() = Some(Box::new(print));
}

/// The program ends normally, and prints its results itself.
pub fn ends_by_itself() {
    words().take();
}

/// A file that would become larger than the limit (`ulimit -f`) is a write that fails, and not the end of the process.
/// A handler is not inherited: a compiler under test has the signal as before.
///
/// # Errors
/// If the system refuses.
pub fn files_have_limits() -> io::Result<()> {
    on_signal::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Handles the signals from now on.
///
/// # Errors
/// If the system refuses.
pub fn install() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if FLAG.swap(true, Ordering::Relaxed) {
                // This one kills the process, so there is no error to handle.
                let _ = low_level::emulate_default_handler(signal);
            }
            SIGNAL.store(signal, Ordering::Relaxed);
            thread::spawn(end);
        }
    });
    Ok(())
}

/// Ends the process if it does not end by itself.
fn end() {
    thread::sleep(GRACE);
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let exit = match words().take() {
            Some(print) => print(),
            None => Exit::Interrupted,
        };
        output::end(exit);
        let _ = done.send(exit);
    });
    let exit = is_done.recv_timeout(WORDS).unwrap_or(Exit::Interrupted);
    // Without destructors: other threads are still running.
    low_level::exit(exit.code().into());
}
