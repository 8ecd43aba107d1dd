//! The signal handler: unwinds the interrupted stack into a slot.

use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::slots::Slots;
use super::thread_timers::SIGNAL;

/// Sampled stacks that have not been collected.
pub(super) static SLOTS: Slots = Slots::new();
/// Whether samples are wanted; a signal can arrive late.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Installs the signal handler. It stays after sampling ends: otherwise a late signal would end the process.
pub(super) fn install() -> io::Result<()> {
    // Unwinding initialises itself on first use; do that here, outside the handler.
    backtrace::trace(|_| false);
    WANTED.store(true, Relaxed);
    // SAFETY: an all-zero sigaction is a valid value and is filled before use. The handler is
    // async-signal-safe: it reads and writes atomics, and unwinds with lock-free functions of glibc and
    // libgcc.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(SIGNAL, &action, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the sampling; a handler that is running still fills its slot.
pub(super) fn end() {
    WANTED.store(false, Relaxed);
}

extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if !WANTED.load(Relaxed) {
        return;
    }
    // SAFETY: errno is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes valid pointers with SA_SIGINFO. For a timer, the count of missed periods is
    // where a process's signal has its sender's user (siginfo_t of sigaction(2)).
    let (missed, at) = unsafe { ((*info).si_uid(), program_counter(context)) };
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() } as u32;
    if let Some(mut filling) = SLOTS.take(thread, missed.saturating_add(1)) {
        filling.push(at);
        let mut found = false;
        // SAFETY: unsynchronised tracing requires that the crate's other functions that share its state do
        // not resolve symbols at the same time; tracing itself only walks this thread's own stack.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                let address = frame.ip() as usize;
                if !found && address == at {
                    found = true;
                    filling.clear();
                }
                !found || filling.push(address)
            });
        }
        filling.done();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The interrupted instruction's address.
///
/// # Safety
/// The pointer must be the context that the kernel passed to a handler.
unsafe fn program_counter(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees it.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller guarantees it.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}
