//! Several observers as one, and what went wrong in them.

use std::sync::{Arc, Mutex, PoisonError};

use sawmill_profile::Error;

use crate::observer::{Observer, Snapshot};
use crate::result::file::{DriveResult, RunDescription};
use crate::result::second::ChaosEvent;

/// Several observers as one, called in order.
#[derive(Default)]
pub struct Watchers {
    all: Vec<Box<dyn Observer>>,
}

impl Watchers {
    /// Adds one.
    pub fn add(&mut self, observer: impl Observer + 'static) {
        self.all.push(Box::new(observer));
    }
}

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchers").field("count", &self.all.len()).finish()
    }
}

impl Observer for Watchers {
    fn started(&mut self, run: &RunDescription) {
        self.all.iter_mut().for_each(|one| one.started(run));
    }

    fn second(&mut self, snapshot: &Snapshot<'_>) {
        self.all.iter_mut().for_each(|one| one.second(snapshot));
    }

    fn chaos(&mut self, event: &ChaosEvent) {
        self.all.iter_mut().for_each(|one| one.chaos(event));
    }

    fn ended(&mut self, result: &DriveResult) {
        self.all.iter_mut().for_each(|one| one.ended(result));
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

    pub(crate) fn keep(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    }
}
