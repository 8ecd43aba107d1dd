//! A command that runs out of memory ends with an error and an exit code, as with any other fault.
//!
//! Libraries limit the memory for each input. This module handles a total that still exceeds `ulimit -v` or the
//! machine's memory.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::{self, Write};

thread_local! {
    /// The size of the last allocation that the system refused this thread, even if the thread coped without it; 0 if
    /// none.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// Wraps an allocator, and remembers the last allocation that it refused each thread.
#[derive(Debug)]
pub struct Watched<A>(pub A);

fn noted(given: *mut u8, bytes: usize) -> *mut u8 {
    if given.is_null() {
        REFUSED.set(bytes);
    }
    given
}

// SAFETY: every method passes its arguments to `A` unchanged, and returns its answer.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Watched<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the same contract.
        noted(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the same contract.
        noted(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller upholds the same contract.
        noted(unsafe { self.0.realloc(place, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { self.0.dealloc(place, layout) }
    }
}

/// Turns the abort that follows a refused allocation into an error. Leaves other aborts alone.
pub(crate) fn end_with_an_error() -> io::Result<()> {
    // SAFETY: `report` neither allocates nor locks: it reads values that were set long before, writes and ends the
    // process.
    unsafe { signal_hook::low_level::register(libc::SIGABRT, report) }.map(drop)
}

fn report() {
    let bytes = REFUSED.get();
    if bytes == 0 {
        // The abort has another cause, or another process sent it: end as usual.
        let _ = signal_hook::low_level::emulate_default_handler(libc::SIGABRT);
        return;
    }
    let mut line = [0; 512];
    let mut rest = &mut line[..];
    let what = "out of memory: the system refused";
    let advice = "raise the limit (ulimit -v), or use fewer threads, columns or bytes in a value";
    // The line fits into the buffer.
    let _ = match crate::asks_for_json() {
        true => writeln!(
            rest,
            r#"{{"error":{{"code":"failure","exit":1,"what":"{what} {bytes} bytes","where":"","advice":"{advice}"}}}}"#
        ),
        false => writeln!(rest, "error: {what} {bytes} bytes - {advice}"),
    };
    let left = rest.len();
    // SAFETY: pointer and length cover the part of `line` that was just written. Nothing runs in this process
    // afterwards.
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len() - left);
        libc::_exit(1)
    }
}
