//! Caught panics: those of the compiler under test, and of an engine.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// File, line and column.
    pub place: String,
    /// The panic message.
    pub message: String,
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static PANICKED: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Runs a function that may panic, and prints nothing.
///
/// # Errors
/// If it panics: the place and the message.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
                let message = info.payload_as_str().unwrap_or("a panic without a message").to_owned();
                PANICKED.set(Some(Panicked { place, message }));
            } else {
                previous(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(outer);
    result.map_err(|_| {
        let unknown = || Panicked { place: "an unknown place".to_owned(), message: String::new() };
        PANICKED.take().unwrap_or_else(unknown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_a_place() {
        let Panicked { place, message } = catch(|| panic!("on purpose")).unwrap_err();
        assert!(place.contains("panics.rs:") && message == "on purpose", "{place}: {message}");
        assert_eq!(catch(|| 5), Ok(5));
    }
}
