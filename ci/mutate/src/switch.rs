//! The number of the mutant that is switched on. A part of the copied compiler, not of this package.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const PLACES: usize = 1;
/// The numbers are all smaller than these two.
const UNREAD: u32 = u32::MAX;
const REACHED: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static SEEN: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// Returns true if this number is switched on.
#[inline(always)]
pub fn mutant(number: u32) -> bool {
    let active = ACTIVE.load(Ordering::Relaxed);
    active == number || active >= REACHED && special(number, active)
}

#[cold]
#[inline(never)]
fn special(number: u32, mut active: u32) -> bool {
    if active == UNREAD {
        let text = std::env::var("IR3_MUTANT").unwrap_or_default();
        active = match text.as_str() {
            "" => 0,
            "reached" => REACHED,
            number => number.parse().expect("IR3_MUTANT: a number, or `reached`"),
        };
        ACTIVE.store(active, Ordering::Relaxed);
    }
    if active == REACHED && !SEEN[number as usize].swap(true, Ordering::Relaxed) {
        let path = std::env::var("IR3_MUTANT_REACHED").expect("IR3_MUTANT_REACHED: a file");
        let mut file = std::fs::File::options().append(true).create(true).open(path).expect("the file of IR3_MUTANT_REACHED");
        writeln!(file, "{number}").expect("the file of IR3_MUTANT_REACHED");
    }
    active == number
}
