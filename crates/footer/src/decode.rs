//! The walk over `FileMetaData`: from the footer's bytes to the parts a [`Footer`](crate::Footer) is
//! made of.

use std::ops::Range;
use std::sync::Arc;

use crate::details::{self, Want};
use crate::enums::ColumnOrder;
use crate::error::{Error, Fault, FaultKind};
use crate::format::FILE_META_DATA;
use crate::options::Options;
use crate::rows::{Chunk, HAS_DICTIONARY, Rows};
use crate::scan::{self, RowGroupFields};
use crate::schema::Schema;
use crate::thrift::{BINARY, Cursor, I32, I64, LIST, STOP, STRUCT, Step};
use crate::trace;

/// Everything decoded from the bytes of a footer.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub version: i32,
    pub num_rows: i64,
    pub schema: Arc<Schema>,
    /// The decoded columns in ascending order; none for all.
    pub columns: Option<Vec<u32>>,
    /// The decoded row groups with their index in the file.
    pub row_groups: Vec<(u32, RowGroupFields)>,
    pub rows: Rows,
    pub row_groups_in_file: usize,
    pub tail: Tail,
    /// Where the struct ends.
    pub end: usize,
}

/// Keys and values as ranges of the footer.
type KeyValueRanges = Vec<(Range<u32>, Option<Range<u32>>)>;

/// What follows the row groups. Text is kept as ranges of the footer that were found to be UTF-8.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub key_values: Option<KeyValueRanges>,
    pub created_by: Option<Range<u32>>,
    pub column_orders: Option<Vec<ColumnOrder>>,
    /// Where the `EncryptionAlgorithm` union starts.
    pub encryption_algorithm: Option<u32>,
    pub footer_signing_key_metadata: Option<Range<u32>>,
}

/// Why decoding stopped: a fault in the bytes, or an error that has nothing to do with them.
pub(crate) enum Stop {
    Fault(Fault),
    Error(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Decodes `FileMetaData`, of which `bytes` may hold more than the struct (a signature, say).
pub(crate) fn file_meta_data(bytes: &[u8], options: &Options) -> Result<Decoded, Error> {
    if u32::try_from(bytes.len()).is_err() {
        let what = format!("expected a footer of less than 4 GiB, found one of {} bytes", bytes.len());
        return Err(Error::new(what).with_advice("a footer's length has 32 bits: hand over the footer alone"));
    }
    walk(bytes, options).map_err(|stop| match stop {
        Stop::Fault(fault) => explain(bytes, fault),
        Stop::Error(error) => error,
    })
}

/// The error for a fault in `FileMetaData`.
fn explain(bytes: &[u8], fault: Fault) -> Error {
    let path = trace::path_of(bytes, 0, &FILE_META_DATA, fault.at);
    Error::new(fault.kind.to_string())
        .at_path(path)
        .at_offset(fault.at as u64)
        .with_advice("the footer is cut off or damaged: write the file again, or take a copy of it")
}

fn walk(bytes: &[u8], options: &Options) -> Result<Decoded, Stop> {
    let cursor = &mut Cursor::new(bytes, 0);
    let (mut version, mut num_rows) = (None, None);
    let mut schema = options.schema.clone();
    let mut groups_at = None;
    let mut groups = None;
    let mut tail = Tail::default();
    let mut last = 0;
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, I32) => version = Some(cursor.i32()?),
            (2, LIST) if options.schema.is_some() => cursor.skip(LIST)?,
            (2, LIST) => schema = Some(Arc::new(Schema::read(cursor)?)),
            (3, I64) => num_rows = Some(cursor.size()?),
            (4, LIST) => {
                groups_at = Some(cursor.at);
                match &schema {
                    Some(schema) => groups = Some(row_groups(cursor, schema, options)?),
                    // The schema stands further on: come back for the row groups.
                    None => cursor.skip(LIST)?,
                }
            }
            (1, found) => return Err(wire(cursor, found, "an i32").into()),
            (2, found) => return Err(wire(cursor, found, "a list of schema elements").into()),
            (3, found) => return Err(wire(cursor, found, "an i64").into()),
            (4, found) => return Err(wire(cursor, found, "a list of row groups").into()),
            (id, wire) => tail.field(cursor, id, wire)?,
        }
    }
    let end = cursor.at;
    let missing = |field| Fault::new(0, FaultKind::Missing { field });
    let version = version.ok_or(missing("version"))?;
    let schema = schema.ok_or(missing("schema"))?;
    let num_rows = num_rows.ok_or(missing("num_rows"))?;
    let groups_at = groups_at.ok_or(missing("row_groups"))?;
    let groups = match groups {
        Some(groups) => groups,
        None => row_groups(&mut Cursor::new(bytes, groups_at), &schema, options)?,
    };
    let Groups { columns, row_groups, rows, in_file } = groups;
    Ok(Decoded {
        version,
        num_rows,
        schema,
        columns,
        row_groups,
        rows,
        row_groups_in_file: in_file,
        tail,
        end,
    })
}

fn wire(cursor: &Cursor<'_>, found: u8, expected: &'static str) -> Fault {
    Fault::new(cursor.at, FaultKind::Wire { found, expected })
}

struct Groups {
    columns: Option<Vec<u32>>,
    row_groups: Vec<(u32, RowGroupFields)>,
    rows: Rows,
    in_file: usize,
}

/// The bytes of a column chunk as writers make them; room for more is only made as they come.
const USUAL_CHUNK: usize = 40;

fn row_groups(cursor: &mut Cursor<'_>, schema: &Schema, options: &Options) -> Result<Groups, Stop> {
    let columns = options.wanted_columns(schema)?;
    let leaves = schema.num_leaves();
    let wanted = columns.as_ref().map_or(leaves, Vec::len);
    let in_file = cursor.list_of(STRUCT, "a list of row groups (struct)")?;
    let mut groups = Groups { columns, row_groups: Vec::new(), rows: Rows::default(), in_file };
    groups.rows.reserve(in_file.saturating_mul(wanted).min(cursor.left() / USUAL_CHUNK + 1));
    for index in 0..in_file {
        let before = groups.rows.len();
        let may_want = options.may_want(index);
        let mut first_byte = None;
        let fields = scan::row_group(cursor, leaves, |cursor| {
            let mut next = groups.columns.as_deref().map(|columns| columns.iter().peekable());
            for column in 0..leaves {
                let start = *cursor;
                let chunk = scan::column_chunk(cursor)?;
                if column == 0 {
                    first_byte = Some(first_byte_of(&chunk));
                }
                let here = match &mut next {
                    Some(columns) => columns.next_if(|&&next| next as usize == column).is_some(),
                    None => true,
                };
                if may_want && here {
                    if options.statistics {
                        details::column_chunk(&mut { start }, Want::Statistics)?;
                    }
                    groups.rows.push(chunk, groups.rows.len().checked_sub(wanted));
                }
            }
            Ok(())
        })?;
        if may_want && options.wants(&fields, first_byte.unwrap_or_default()) {
            groups.row_groups.push((index as u32, fields));
        } else {
            groups.rows.truncate(before);
        }
    }
    Ok(groups)
}

/// Where the data of a column chunk starts: at its dictionary page, if it has one.
///
/// A dictionary offset of 0, or one behind the data, means nothing: old writers left such values.
pub(crate) fn first_byte_of(chunk: &Chunk) -> u64 {
    let dictionary = chunk.dictionary_page_offset;
    let data = chunk.data_page_offset;
    let has_dictionary = chunk.traits.flags & HAS_DICTIONARY != 0 && dictionary > 0 && dictionary < data;
    // Neither is negative: the scan refuses negative data page offsets.
    (if has_dictionary { dictionary } else { data }) as u64
}

impl Tail {
    fn field(&mut self, cursor: &mut Cursor<'_>, id: i16, wire: u8) -> Step<()> {
        match (id, wire) {
            (5, LIST) => self.key_values = key_values(cursor)?,
            (6, BINARY) => self.created_by = Some(range_of(cursor, |cursor| cursor.text().map(str::len))?),
            (7, LIST) => self.column_orders = column_orders(cursor)?,
            (8, STRUCT) => {
                self.encryption_algorithm = Some(cursor.at as u32);
                cursor.skip(STRUCT)?;
            }
            (9, BINARY) => {
                let range = range_of(cursor, |cursor| cursor.binary().map(<[u8]>::len))?;
                self.footer_signing_key_metadata = Some(range);
            }
            (_, wire) => cursor.skip(wire)?,
        }
        Ok(())
    }
}

/// The range of the bytes that `take` takes, whose length it returns.
fn range_of(cursor: &mut Cursor<'_>, take: impl FnOnce(&mut Cursor<'_>) -> Step<usize>) -> Step<Range<u32>> {
    let len = take(cursor)?;
    // The footer's length has 32 bits.
    Ok((cursor.at - len) as u32..cursor.at as u32)
}

fn key_values(cursor: &mut Cursor<'_>) -> Step<Option<KeyValueRanges>> {
    let start = *cursor;
    let (wire, count) = cursor.list()?;
    if wire != STRUCT && count > 0 {
        *cursor = start;
        cursor.skip(LIST)?;
        return Ok(None);
    }
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push(key_value(cursor)?);
    }
    Ok(Some(pairs))
}

fn key_value(cursor: &mut Cursor<'_>) -> Step<(Range<u32>, Option<Range<u32>>)> {
    let start = cursor.at;
    let (mut key, mut value, mut last) = (None, None, 0);
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, BINARY) => key = Some(range_of(cursor, |cursor| cursor.text().map(str::len))?),
            (2, BINARY) => value = Some(range_of(cursor, |cursor| cursor.text().map(str::len))?),
            (_, wire) => cursor.skip(wire)?,
        }
    }
    Ok((key.ok_or(Fault::new(start, FaultKind::Missing { field: "key" }))?, value))
}

fn column_orders(cursor: &mut Cursor<'_>) -> Step<Option<Vec<ColumnOrder>>> {
    let start = *cursor;
    let (wire, count) = cursor.list()?;
    if wire != STRUCT && count > 0 {
        *cursor = start;
        cursor.skip(LIST)?;
        return Ok(None);
    }
    let mut orders = Vec::new();
    for _ in 0..count {
        orders.push(column_order(cursor)?);
    }
    Ok(Some(orders))
}

fn column_order(cursor: &mut Cursor<'_>) -> Step<ColumnOrder> {
    let (mut order, mut last) = (ColumnOrder::Unknown(0), 0);
    loop {
        let field = cursor.field(&mut last)?;
        if field.wire == STOP {
            return Ok(order);
        }
        cursor.skip(field.wire)?;
        order = match field.id {
            1 => ColumnOrder::TypeOrder,
            2 => ColumnOrder::Ieee754TotalOrder,
            3 => ColumnOrder::Int96TimestampOrder,
            id => ColumnOrder::Unknown(id),
        };
    }
}
