//! What the signal handler does: unwinds the stack that it interrupted into a slot.

use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::slots::Slots;
use super::thread_timers::SIGNAL;

/// Stacks that were sampled and not collected yet.
pub(super) static SLOTS: Slots = Slots::new();
/// Whether samples are wanted; a signal can come late.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Has the signal handled from here on. The handler stays when sampling ends: a signal that comes late would
/// end the process.
pub(super) fn install() -> io::Result<()> {
    // What unwinding sets up when it is first used is set up here, outside of the handler.
    backtrace::trace(|_| false);
    WANTED.store(true, Relaxed);
    // SAFETY: an all-zero sigaction is a valid value, which is filled before it is used; the handler is
    // async-signal-safe: it reads, writes atomics, and unwinds with what glibc and libgcc offer without locks.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(SIGNAL, &action, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the sampling; a handler that runs at this moment still fills its slot.
pub(super) fn end() {
    WANTED.store(false, Relaxed);
}

extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if !WANTED.load(Relaxed) {
        return;
    }
    // SAFETY: errno is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel gives valid pointers with SA_SIGINFO. A timer's count of periods that were missed
    // stands where a process's signal has its sender's user (siginfo_t of sigaction(2)).
    let (missed, at) = unsafe { ((*info).si_uid(), program_counter(context)) };
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() } as u32;
    if let Some(mut filling) = SLOTS.take(thread, missed.saturating_add(1)) {
        filling.push(at);
        let mut found = false;
        // SAFETY: unsynchronized tracing needs that symbols are not resolved at the same time by the crate's other
        // functions that share its state; tracing itself only walks this thread's own stack.
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

/// Where the thread was interrupted.
///
/// # Safety
/// The pointer is the context that the kernel gave to a handler.
unsafe fn program_counter(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the caller.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: by the caller.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = context;
        0
    }
}
