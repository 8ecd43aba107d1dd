//! Ctrl-C and similar signals: the first asks the command to stop and clean up, the second ends it at once.
//!
//! A signal that was ignored when the command started stays ignored. A shell without job control starts
//! `sawmill ... &` with SIGINT ignored, and `nohup sawmill ...` starts it with SIGHUP ignored, so that the
//! command lives on.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use sawmill_profile::{Phase, Profile};
use sawmill_source::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Error, Exit, Result};

/// Set by a signal that asks the command to stop. Signals are the process's, and so is this.
static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The flag, for libraries that look at one.
pub(crate) fn flag() -> &'static Arc<AtomicBool> {
    &FLAG
}

/// Whether the command was asked to stop.
pub(crate) fn asked() -> bool {
    FLAG.load(Relaxed)
}

/// An error once the command was asked to stop.
pub(crate) fn check() -> Result<()> {
    if asked() { Err(error()) } else { Ok(()) }
}

/// The error of a command that was asked to stop.
pub(crate) fn error() -> Error {
    Error::new(Exit::Interrupted, "interrupted", "", "")
}

/// The control of a job of this command, which counts on `phase`.
pub(crate) fn control(phase: &Phase) -> Control<'_> {
    Control::new(&FLAG, phase)
}

/// Does `work` without counting its rows.
pub(crate) fn during<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let phase = Profile::new().phase("command");
    work(&control(&phase))
}

/// Does `work` that no signal stops, such as to remove what an interrupted command has made.
pub(crate) fn despite<T>(work: impl FnOnce(&Control<'_>) -> Result<T>) -> Result<T> {
    let (phase, proceed) = (Profile::new().phase("despite"), AtomicBool::new(false));
    work(&Control::new(&proceed, &phase))
}

/// Lets signals set the flag.
pub(crate) fn on_signal() -> io::Result<()> {
    // A file that reaches the limit of its size (ulimit -f) is then an ordinary error of a write, not the end of
    // the process.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default())?;
    sawmill_store::ends_waits(&FLAG);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if is_ignored(signal)? {
            continue;
        }
        // In this order, the first signal finds the flag unset and sets it; the second finds it set.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&FLAG))?;
        signal_hook::flag::register(signal, Arc::clone(&FLAG))?;
    }
    Ok(())
}

/// Whether this process ignores the signal; a process inherits this from the one that started it.
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
