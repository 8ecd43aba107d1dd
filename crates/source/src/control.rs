//! The two threads that lead out of a running load: a cancel flag in, counters out.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sawmill_profile::{Phase, WaitKind, wait};

use crate::error::{Error, Result};

/// How long anything may block before it looks at the cancel flag again.
pub const LOOK: Duration = Duration::from_millis(100);

/// Takes what is to be said while a load runs.
#[derive(Clone, Copy)]
struct Notices<'a>(&'a (dyn Fn(&str) + Sync));

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices")
    }
}

/// What a caller holds on to while a load runs.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    cancel: &'a AtomicBool,
    stop: Option<&'a AtomicBool>,
    phase: &'a Phase,
    notices: Option<Notices<'a>>,
}

impl<'a> Control<'a> {
    /// Raising `cancel` ends the load within about 100 ms. Rows are counted on `phase` when they
    /// are committed, bytes when they are sent.
    pub fn new(cancel: &'a AtomicBool, phase: &'a Phase) -> Self {
        Self { cancel, stop: None, phase, notices: None }
    }

    /// Whom to tell what a person should know at once, such as for whom the load waits; a line each.
    #[must_use]
    pub fn saying(self, say: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { notices: Some(Notices(say)), ..self }
    }

    /// Whether [`say`](Self::say) reaches anyone.
    pub fn is_heard(&self) -> bool {
        self.notices.is_some()
    }

    /// Reports a line to [`saying`](Self::saying).
    pub fn say(&self, line: &str) {
        if let Some(Notices(say)) = self.notices {
            say(line);
        }
    }

    /// The same, ended by a second flag as well: one worker's failure stops the others.
    pub fn with_stop<'b>(&'b self, stop: &'b AtomicBool) -> Control<'b> {
        Control { cancel: self.cancel, stop: Some(stop), phase: self.phase, notices: self.notices }
    }

    /// The phase that rows and bytes are counted on.
    pub fn phase(&self) -> &'a Phase {
        self.phase
    }

    /// Whether a flag is raised.
    pub fn cancelled(&self) -> bool {
        self.cancel.load(Relaxed) || self.stop.is_some_and(|stop| stop.load(Relaxed))
    }

    /// Goes on unless a flag is raised.
    ///
    /// # Errors
    /// [`Kind::Cancelled`](crate::Kind::Cancelled).
    pub fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Sleeps before a server is asked again, but not through a cancel.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let _pausing = wait(WaitKind::Network);
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}
