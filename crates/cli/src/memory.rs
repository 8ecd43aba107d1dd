//! A command that gets no more memory ends with an error and its exit code, as with any other fault.
//!
//! Libraries limit what an input may take. This is for the sum that is still too much: under `ulimit -v`, or beyond what
//! the machine has.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::{self, Write};

thread_local! {
    /// The bytes of the last allocation that this thread was refused, also if it went on without it; 0: none.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// An allocator that knows what it was last refused.
#[derive(Debug)]
pub struct Watched<A>(pub A);

fn noted(given: *mut u8, bytes: usize) -> *mut u8 {
    if given.is_null() {
        REFUSED.set(bytes);
    }
    given
}

// SAFETY: each call is passed on to an allocator as it came, and its answer is returned.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Watched<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        noted(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        noted(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        noted(unsafe { self.0.realloc(place, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { self.0.dealloc(place, layout) }
    }
}

/// Turns the abort that follows a refused allocation into an error. Other aborts stay what they are.
pub(crate) fn end_with_an_error() -> io::Result<()> {
    // SAFETY: the action allocates and locks nothing: it reads what was set long before, writes and ends the process.
    unsafe { signal_hook::low_level::register(libc::SIGABRT, report) }.map(drop)
}

fn report() {
    let bytes = REFUSED.get();
    if bytes == 0 {
        // An abort of another cause, or one that another process asked for, ends the process as ever.
        let _ = signal_hook::low_level::emulate_default_handler(libc::SIGABRT);
        return;
    }
    let mut line = [0; 512];
    let mut rest = &mut line[..];
    let what = "out of memory: the system refused";
    let advice = "raise the limit (ulimit -v), or use fewer threads, columns or bytes in a value";
    // It fits.
    let _ = match crate::asks_for_json() {
        true => writeln!(
            rest,
            r#"{{"error":{{"code":"failure","exit":1,"what":"{what} {bytes} bytes","where":"","advice":"{advice}"}}}}"#
        ),
        false => writeln!(rest, "error: {what} {bytes} bytes - {advice}"),
    };
    let left = rest.len();
    // SAFETY: the bytes are those of the line that were written. Nothing runs in this process afterwards.
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len() - left);
        libc::_exit(1)
    }
}
