//! What one footer's decoding leaves for that of the next one, as of the files of one table: the schema,
//! if it stands there in the same bytes, what follows the row groups, if that does, and the shapes of column chunks.
//!
//! None of it changes what is decoded. The same bytes mean the same, and a shape matches what a walk would find in any
//! footer.

use std::sync::Arc;

use crate::chunk::rows::TraitTable;
use crate::decode::ending::Shared;
use crate::matching::engine::Engine;
use crate::schema::arena::Schema;
use crate::thrift::cursor::{Cursor, Step};

/// What stands in more bytes than this is decoded anew: to keep a copy is not worth it.
const MOST_BYTES: usize = 1 << 20;

/// Engines that know more traits than this are left behind: each footer gets a copy of them.
const MAX_TRAITS: usize = 64;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Carried {
    /// Whether anything is carried on at all.
    carries: bool,
    schema: Option<(Vec<u8>, Arc<Schema>)>,
    tail: Option<(Vec<u8>, Shared)>,
    engine: Option<Box<Engine>>,
    /// The traits that the engine knows, as the footers have them.
    traits: Arc<TraitTable>,
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
        if self.carries && cursor.at - start <= MOST_BYTES {
            let bytes = cursor.bytes.get(start..cursor.at).unwrap_or_default();
            self.schema = Some((bytes.to_vec(), Arc::clone(&schema)));
        }
        Ok(schema)
    }

    /// What follows the row groups, if the cursor is behind these and the same bytes follow as in the footer before.
    pub fn tail(&self, cursor: &Cursor<'_>) -> Option<Shared> {
        let (bytes, shared) = self.tail.as_ref()?;
        let same = cursor.bytes.get(cursor.at..)?.starts_with(bytes);
        same.then(|| Shared { start: cursor.at, tail: Arc::clone(&shared.tail) })
    }

    /// Keeps what was found behind the row groups of a footer of these bytes.
    pub fn keep_tail(&mut self, bytes: &[u8], found: &Shared) {
        if self.carries && found.tail.end - found.start <= MOST_BYTES {
            let bytes = bytes.get(found.start..found.tail.end).unwrap_or_default();
            self.tail = Some((bytes.to_vec(), found.clone()));
        }
    }

    /// The engine of the footer before, for row groups of `columns` chunks.
    pub fn engine(&mut self, columns: usize) -> Option<Box<Engine>> {
        let mut engine = self.engine.take()?;
        engine.start_anew(columns)?;
        Some(engine)
    }

    /// Keeps the engine of this footer and gives the traits that it has found.
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
