//! The pass that locates every column chunk and decodes nothing.
//!
//! Like a full decode it walks by shapes and in lockstep, but it stores an eight-byte locator for every chunk
//! and reads no numbers. It even skips the schema: the first row group states the number of columns.

use std::ops::Range;

use crate::chunk::row::Locator;
use crate::decode::file_metadata;
use crate::decode::groups::{self, Groups, Wanted};
use crate::error::{Error, Fault, FaultKind};
use crate::matching::kernel::{Choose, Kernel, Method};
use crate::options::Options;
use crate::schema::arena::Schema;
use crate::thrift::cursor::{Cursor, LIST, STOP, STRUCT, Step};

/// Where everything is in a footer.
pub(crate) struct Places {
    pub columns: usize,
    pub row_groups: usize,
    /// A locator for every chunk, row group by row group.
    pub locators: Vec<Locator>,
    /// The range of the schema's list.
    pub schema: Range<usize>,
}

/// Finds where everything is in `FileMetaData`.
pub(crate) fn places(bytes: &[u8], options: &Options) -> Result<Places, Error> {
    file_metadata::fits_32_bits(bytes)?;
    walk(bytes, options.method, options.threads).map_err(|fault| file_metadata::explain(bytes, fault))
}

struct Pass<'a, 'b>(&'a mut Cursor<'b>, &'a Wanted<'a>);

impl Choose for Pass<'_, '_> {
    type Output = Step<Groups<Locator>>;

    fn with<K: Kernel>(self, kernel: K) -> Self::Output {
        groups::decode(kernel, self.0, self.1, None)
    }
}

fn walk(bytes: &[u8], method: Method, threads: usize) -> Step<Places> {
    let cursor = &mut Cursor::new(bytes, 0);
    let (mut schema, mut groups_at) = (None, None);
    let mut last = 0;
    // The list of row groups may precede the schema: find both first.
    while schema.is_none() || groups_at.is_none() {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (2, LIST) => {
                let start = cursor.at;
                cursor.skip(LIST)?;
                schema = Some(start..cursor.at);
            }
            (4, LIST) => {
                groups_at = Some(cursor.at);
                // Most footers have the schema before the row groups.
                if schema.is_none() {
                    cursor.skip(LIST)?;
                }
            }
            (_, wire) => cursor.skip(wire)?,
        }
    }
    let missing = |field| Fault::new(0, FaultKind::Missing { field });
    let schema = schema.ok_or(missing("schema"))?;
    let cursor = &mut Cursor::new(bytes, groups_at.ok_or(missing("row_groups"))?);
    let columns = match columns_of_first(&mut cursor.clone())? {
        Some(columns) => columns,
        None => Schema::read(&mut Cursor::new(bytes, schema.start))?.num_leaves(),
    };
    let wanted = Wanted {
        columns,
        selected: None,
        groups: 0..usize::MAX,
        stop_early: true,
        learning: method.learning(),
        threads,
        carries: false,
    };
    let found = method.choose(Pass(cursor, &wanted))?;
    Ok(Places { columns, row_groups: found.in_file, locators: found.rows, schema })
}

/// The number of columns in the first row group of the list at the cursor; `None` if no row group states it.
fn columns_of_first(cursor: &mut Cursor<'_>) -> Step<Option<usize>> {
    if cursor.list_of(STRUCT, "a list of row groups (struct)")? == 0 {
        return Ok(None);
    }
    let mut last = 0;
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => return Ok(None),
            (1, LIST) => return cursor.list_of(STRUCT, "a list of column chunks").map(Some),
            (_, wire) => cursor.skip(wire)?,
        }
    }
}
