//! Ctrl-C and similar signals: the first asks the command to stop and clean up, the second ends it at once.
//!
//! A signal that was ignored when the command started stays ignored. A shell without job control starts
//! `sawmill ... &` with SIGINT ignored, and `nohup sawmill ...` starts it with SIGHUP ignored, so that the
//! command lives on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that a signal sets to stop the command.
pub(crate) fn on_signal() -> io::Result<Arc<AtomicBool>> {
    // A file that reaches the limit of its size (ulimit -f) is then an ordinary error of a write, not the end of
    // the process.
    #[cfg(unix)]
    flag::register(libc::SIGXFSZ, Arc::default())?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if is_ignored(signal)? {
            continue;
        }
        // In this order, the first signal finds the flag unset and sets it; the second finds it set.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Whether this process ignores the signal; a process inherits this from the one that started it.
#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: an all-zero sigaction is a valid value. Without a new action, sigaction(2) changes nothing and
    // writes the present one through the valid pointer.
    let (answer, present) = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &mut present), present)
    };
    match answer {
        0 => Ok(present.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(unix))]
fn is_ignored(_: std::ffi::c_int) -> io::Result<bool> {
    Ok(false)
}
