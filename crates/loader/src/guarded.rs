//! Calls of the `parquet` crate, which may panic on bytes that no writer would produce: page indexes that point before
//! their column chunk, an embedded schema that is none, encodings that do not belong to the type.
//!
//! What is called is lost then, and whoever called says which file and column that was.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The `parquet` crate panicked.
#[derive(Debug)]
pub(crate) struct GaveUp;

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its decoder gave up")
    }
}

/// What `decode` gives, unless it panics.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, GaveUp> {
    let before = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    decoded.map_err(|_| GaveUp)
}

/// Keeps panics that are turned into errors here from being reported as panics as well. A program calls it once, at
/// its start; all other panics are reported as before.
pub fn silence_guarded_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            report(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_call_and_only_that() {
        let within = guarded(|| {
            assert!(guarded(|| [0; 3][std::hint::black_box(3)]).is_err());
            GUARDED.get()
        });
        assert!(within.unwrap(), "the outer call is still guarded");
        assert!(!GUARDED.get());
    }
}
