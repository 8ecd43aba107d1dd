//! What decoding one footer leaves for the next, as with the files of one table: the schema, reused if the next
//! footer has the same bytes, and the shapes of column chunks.
//!
//! The result stays the same. Equal bytes mean the same, and a shape matches only what a walk would find in any
//! footer.

use std::sync::Arc;

use crate::chunk::rows::TraitTable;
use crate::matching::engine::Engine;
use crate::schema::arena::Schema;
use crate::thrift::cursor::{Cursor, Step};

/// Longer byte ranges are decoded again: keeping a copy does not pay.
const MAX_BYTES: usize = 1 << 20;

/// Drop engines that know more traits than this: every footer gets a copy of the traits.
const MAX_TRAITS: usize = 64;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Carried {
    /// Whether to carry anything over at all.
    carries: bool,
    schema: Option<(Vec<u8>, Arc<Schema>)>,
    engine: Option<Box<Engine>>,
    /// The engine's traits in the form that footers share.
    traits: Arc<TraitTable>,
}

impl Carried {
    /// The state before the first of many footers.
    pub fn first_of_many() -> Self {
        Self { carries: true, ..Self::default() }
    }

    /// Whether a shape learned from few chunks may be used again.
    pub fn carries(&self) -> bool {
        self.carries
    }

    /// The schema whose list is at the cursor.
    pub fn schema(&mut self, cursor: &mut Cursor<'_>) -> Step<Arc<Schema>> {
        let start = cursor.at;
        if let Some((bytes, schema)) = &self.schema
            && cursor.bytes.get(start..).is_some_and(|rest| rest.starts_with(bytes))
        {
            cursor.at += bytes.len();
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(Schema::read(cursor)?);
        if self.carries && cursor.at - start <= MAX_BYTES {
            let bytes = cursor.bytes.get(start..cursor.at).unwrap_or_default();
            self.schema = Some((bytes.to_vec(), Arc::clone(&schema)));
        }
        Ok(schema)
    }

    /// The engine of the previous footer, for row groups of `columns` chunks.
    pub fn engine(&mut self, columns: usize) -> Option<Box<Engine>> {
        let mut engine = self.engine.take()?;
        engine.start_anew(columns)?;
        Some(engine)
    }

    /// Keeps this footer's engine and returns its traits.
    pub fn keep(&mut self, engine: Box<Engine>) -> Arc<TraitTable> {
        if !(self.carries && engine.is_of_use() && engine.traits.list().len() <= MAX_TRAITS) {
            return Arc::new(engine.traits);
        }
        if self.traits.list() != engine.traits.list() {
            self.traits = Arc::new(engine.traits.clone());
        }
        self.engine = Some(engine);
        Arc::clone(&self.traits)
    }
}
