//! Several observers as one, and what went wrong in them.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_profile::Error;

use crate::observer::{Observer, Snapshot};
use crate::result::file::{DriveResult, RunDescription};
use crate::result::second::ChaosEvent;

/// Several observers as one, called in order.
#[derive(Default)]
pub struct Watchers(Vec<Box<dyn Observer>>);

impl Watchers {
    /// Adds one.
    pub fn add(&mut self, observer: impl Observer + 'static) {
        self.0.push(Box::new(observer));
    }
}

impl Observer for Watchers {
    fn started(&mut self, run: &RunDescription) {
        self.0.iter_mut().for_each(|one| one.started(run));
    }

    fn second(&mut self, snapshot: &Snapshot<'_>) {
        self.0.iter_mut().for_each(|one| one.second(snapshot));
    }

    fn chaos(&mut self, event: &ChaosEvent) {
        self.0.iter_mut().for_each(|one| one.chaos(event));
    }

    fn ended(&mut self, result: &DriveResult) {
        self.0.iter_mut().for_each(|one| one.ended(result));
    }
}

/// Errors of observers. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<Vec<Error>>>);

impl Troubles {
    /// The first error, if there was one.
    pub fn first(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    fn keep(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }
}

/// Where an observer writes. The first failure is kept, and ends the writing.
pub(crate) struct Output {
    out: Box<dyn Write + Send>,
    place: String,
    troubles: Troubles,
    failed: bool,
}

impl Output {
    pub(crate) fn new(out: impl Write + Send + 'static, place: &str, troubles: &Troubles) -> Self {
        Self { out: Box::new(out), place: place.to_owned(), troubles: troubles.clone(), failed: false }
    }

    /// Writes and flushes a text; `what` and `advice` describe a failure.
    pub(crate) fn write(&mut self, text: std::io::Result<String>, (what, advice): (&str, &str)) {
        if self.failed {
            return;
        }
        let written = text.and_then(|text| {
            self.out.write_all(text.as_bytes())?;
            self.out.flush()
        });
        if let Err(error) = written {
            self.failed = true;
            // A reader that closes its pipe has read enough: that is not an error.
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                return;
            }
            self.troubles.keep(Error::failed(format!("{what}: {error}"), &self.place, advice));
        }
    }
}
