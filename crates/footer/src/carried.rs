//! What one footer's decoding leaves for that of the next one, as of the files of one table: the schema,
//! if it stands there in the same bytes, and the shapes of column chunks.
//!
//! Neither changes what is decoded. The same bytes are the same schema, and a shape matches what a walk
//! would find in any footer.

use std::sync::Arc;

use crate::engine::Engine;
use crate::rows::TraitTable;
use crate::schema::Schema;
use crate::thrift::{Cursor, Step};

/// Schemas in more bytes than this are decoded anew: to keep a copy is not worth it.
const MAX_SCHEMA: usize = 1 << 20;

/// Engines that know more traits than this are left behind: each footer gets a copy of them.
const MAX_TRAITS: usize = 64;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Carried {
    /// Whether anything is carried on at all.
    carries: bool,
    schema: Option<(Vec<u8>, Arc<Schema>)>,
    engine: Option<Box<Engine>>,
}

impl Carried {
    /// For the first of many footers.
    pub fn first_of_many() -> Self {
        Self { carries: true, ..Self::default() }
    }

    /// Whether a shape that is learned of few chunks may be met again.
    pub fn carries(&self) -> bool {
        self.carries
    }

    /// The schema whose list stands at the cursor.
    pub fn schema(&mut self, cursor: &mut Cursor<'_>) -> Step<Arc<Schema>> {
        let start = cursor.at;
        if let Some((bytes, schema)) = &self.schema
            && cursor.bytes.get(start..).is_some_and(|rest| rest.starts_with(bytes))
        {
            cursor.at += bytes.len();
            return Ok(Arc::clone(schema));
        }
        let schema = Arc::new(Schema::read(cursor)?);
        if self.carries && cursor.at - start <= MAX_SCHEMA {
            let bytes = cursor.bytes.get(start..cursor.at).unwrap_or_default();
            self.schema = Some((bytes.to_vec(), Arc::clone(&schema)));
        }
        Ok(schema)
    }

    /// The engine of the footer before, for row groups of `columns` chunks.
    pub fn engine(&mut self, columns: usize) -> Option<Box<Engine>> {
        let mut engine = self.engine.take()?;
        engine.start_anew(columns);
        Some(engine)
    }

    /// Keeps the engine of this footer and gives the traits that it has found.
    pub fn keep(&mut self, engine: Box<Engine>) -> TraitTable {
        if !(self.carries && engine.is_of_use() && engine.traits.list().len() <= MAX_TRAITS) {
            return engine.traits;
        }
        let traits = engine.traits.clone();
        self.engine = Some(engine);
        traits
    }
}
