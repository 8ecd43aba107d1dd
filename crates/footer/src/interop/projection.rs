//! What a conversion needs of a schema, of some of its columns: the crate's descriptor of it, and the Arrow
//! schema that belongs to them.
//!
//! Both cost more than a few column chunks, and are the same for every file of a table: the last projection
//! stays with the schema (`kept.rs`), which footers share that [`Footer::open_many`](crate::Footer::open_many),
//! a [`Decoder`](crate::Decoder) or [`Options::schema`](crate::Options::schema) gave the same one.

use std::sync::{Arc, OnceLock};

use super::parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::{arrow, schema};
use crate::error::Result;
use crate::schema::arena::Schema;

/// Larger projections are not kept: their conversion costs more than the schema, and they take much memory.
const MAX_LEAVES: usize = 1024;
const MAX_TEXT: usize = 64 << 10;

/// See the module's description.
pub(super) struct Projection {
    /// The columns, in ascending order.
    pub leaves: Vec<usize>,
    /// The schema with these columns alone.
    pub descriptor: SchemaDescPtr,
    /// An Arrow schema of the whole file, and its pruned form.
    arrow: OnceLock<(String, Option<String>)>,
}

impl Projection {
    /// The projection to these columns, kept or made.
    ///
    /// # Errors
    ///
    /// The crate has no type for one of them, or a map would lose a part.
    pub fn new(whole: &Schema, leaves: Vec<usize>) -> Result<Arc<Self>> {
        if let Some(kept) = Self::kept(whole, &leaves) {
            return Ok(kept);
        }
        let root = schema::pruned(whole, &leaves)?;
        Ok(Self::keep(whole, leaves, Arc::new(SchemaDescriptor::new(root))))
    }

    /// The projection to these columns, if it was the last one.
    pub fn kept(whole: &Schema, leaves: &[usize]) -> Option<Arc<Self>> {
        whole.kept.get::<Self>().filter(|kept| kept.leaves == leaves)
    }

    /// Keeps a projection whose descriptor is known.
    pub fn keep(whole: &Schema, leaves: Vec<usize>, descriptor: SchemaDescPtr) -> Arc<Self> {
        let made = Arc::new(Self { leaves, descriptor, arrow: OnceLock::new() });
        if made.leaves.len() <= MAX_LEAVES {
            whole.kept.set(Arc::clone(&made));
        }
        made
    }

    /// The Arrow schema of these columns; `None` if the file's does not fit its schema.
    pub fn arrow(&self, encoded: &str, whole: &Schema) -> Option<String> {
        if let Some((known, pruned)) = self.arrow.get()
            && known == encoded
        {
            return pruned.clone();
        }
        let pruned = arrow::pruned(encoded, whole, &self.leaves, &self.descriptor);
        if encoded.len() <= MAX_TEXT {
            // Another thread may have been quicker.
            let _ = self.arrow.set((encoded.to_owned(), pruned.clone()));
        }
        pruned
    }
}
