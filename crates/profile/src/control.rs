//! The control of a running load: a cancel flag in, counters and notices out.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::trace::phase::Phase;
use crate::trace::pool::Pool;
use crate::trace::span::wait;
use crate::trace::turns;
use crate::trace::wait::WaitKind;

/// Longest time between two checks of the cancel flag.
pub const LOOK: Duration = Duration::from_millis(100);

/// The function that receives notices while a load runs.
#[derive(Clone, Copy)]
struct Notices<'a>(&'a (dyn Fn(&str) + Sync));

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices")
    }
}

/// Controls a running load: the caller cancels it, and reads its counters and notices.
#[derive(Clone, Copy, Debug)]
pub struct Control<'a> {
    cancel: &'a AtomicBool,
    stop: Option<&'a AtomicBool>,
    phase: &'a Phase,
    notices: Option<Notices<'a>>,
}

impl<'a> Control<'a> {
    /// Returns a control. Raising `cancel` ends the load within about 100 ms. `phase` counts rows when they
    /// are committed, and bytes when they are sent.
    pub fn new(cancel: &'a AtomicBool, phase: &'a Phase) -> Self {
        Self { cancel, stop: None, phase, notices: None }
    }

    /// Sets the function that receives one-line notices that a person should see at once, such as the
    /// sessions that block the load.
    #[must_use]
    pub fn with_notices(self, show: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { notices: Some(Notices(show)), ..self }
    }

    /// Whether [`with_notices`](Self::with_notices) has set a function.
    pub fn has_notices(&self) -> bool {
        self.notices.is_some()
    }

    /// Passes a notice to the function that [`with_notices`](Self::with_notices) has set.
    pub fn notice(&self, line: &str) {
        if let Some(Notices(show)) = self.notices {
            show(line);
        }
    }

    /// Returns the same control, which a second flag cancels as well: the failure of one worker stops the
    /// others.
    pub fn with_stop<'b>(&'b self, stop: &'b AtomicBool) -> Control<'b> {
        Control { cancel: self.cancel, stop: Some(stop), phase: self.phase, notices: self.notices }
    }

    /// Returns the same control, whose rows and bytes another phase counts.
    pub fn in_phase<'b>(&'b self, phase: &'b Phase) -> Control<'b> {
        Control { phase, ..*self }
    }

    /// Calls `each` for every item on a pool of one thread for each core, named `NAME-0` and so on, with a state that
    /// each thread creates.
    ///
    /// # Errors
    /// The first error that `each` returns, or its panic; it cancels the control that the others get.
    pub fn on_all_cores<T: Sync, S>(
        &self,
        name: &str,
        items: &[T],
        state: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &T, &Control<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let stop = AtomicBool::new(false);
        let control = self.with_stop(&stop);
        let pool = Pool::on_cores(name, items.len(), Some(&self.phase.sink()));
        pool.for_each(items, &stop, || Ok(state()), |state, item| each(state, item, &control))
    }

    /// Returns the phase that counts rows and bytes.
    pub fn phase(&self) -> &'a Phase {
        self.phase
    }

    /// Whether a flag is raised.
    pub fn cancelled(&self) -> bool {
        self.cancel.load(Relaxed) || self.stop.is_some_and(|stop| stop.load(Relaxed))
    }

    /// Returns an error if a flag is raised.
    ///
    /// # Errors
    /// [`Kind::Cancelled`](crate::Kind::Cancelled).
    pub fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Sleeps before the next request to a server. A raised flag ends the sleep.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let _pausing = wait(WaitKind::Network);
        let end = turns::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(turns::now());
            if left.is_zero() {
                return Ok(());
            }
            turns::sleep(left.min(LOOK));
        }
    }
}
