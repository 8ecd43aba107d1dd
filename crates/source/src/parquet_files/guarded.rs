//! Calls of the `parquet` crate, which may panic on bytes that no writer would produce: page indexes that point before
//! their column chunk, an embedded schema that is none, encodings that do not belong to the type.
//!
//! What is called is lost then, and whoever called says which file and column that was.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

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

impl From<GaveUp> for ParquetError {
    fn from(gave_up: GaveUp) -> Self {
        Self::General(gave_up.to_string())
    }
}

impl From<GaveUp> for ArrowError {
    fn from(gave_up: GaveUp) -> Self {
        Self::ParquetError(gave_up.to_string())
    }
}

/// What `decode` gives.
///
/// # Errors
/// Its own, or that it panicked.
pub(crate) fn guarded<T, E: From<GaveUp>>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    decoded.unwrap_or_else(|_| Err(GaveUp.into()))
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
        let within: Result<bool, GaveUp> = guarded(|| {
            let lost: Result<u8, GaveUp> = guarded(|| Ok([0; 3][std::hint::black_box(3)]));
            assert!(lost.is_err());
            Ok(GUARDED.get())
        });
        assert!(within.is_ok_and(|guarded| guarded), "the outer call is still guarded");
        assert!(!GUARDED.get());
    }
}
