//! The place where simulations put a store in memory in for the client of a bucket.

use std::sync::Arc;

use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, Result};

pub use {futures_util, object_store};

/// A store in memory, which answers each request at once.
pub trait SimulatedStore: ObjectStore + PaginatedListStore {
    /// Returns the keys and the identities of the unfinished uploads whose keys start with `prefix`.
    ///
    /// # Errors
    ///
    /// The simulation refuses the request.
    fn unfinished(&self, prefix: &str) -> Result<Vec<(String, String)>>;

    /// Aborts an upload, if it exists.
    ///
    /// # Errors
    ///
    /// The simulation refuses the request.
    fn abort(&self, key: &str, id: &str) -> Result<()>;
}

/// Makes a client of the store; with `true`, one whose completed uploads replace no object.
pub type NewClient = Box<dyn Fn(bool) -> Arc<dyn SimulatedStore> + Send + Sync>;
