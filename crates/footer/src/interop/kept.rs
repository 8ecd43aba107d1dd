//! What a conversion made of a schema, kept for the next one: of the files of one table, or of the same footer.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The result of the last conversion of a [`Schema`](crate::Schema). Its type depends on the release of the
/// `parquet` crate; a conversion for another release replaces it.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<dyn Any + Send + Sync>>>);

impl Kept {
    /// What the last conversion kept, if it is of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        // Whatever a panicking thread left is whole: it is replaced by one assignment.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept?.downcast().ok()
    }

    /// Keeps this result and drops the one before.
    pub fn set<T: Send + Sync + 'static>(&self, made: Arc<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }
}

/// A copy of a schema starts with nothing.
impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}
