//! The walk over `FileMetaData`: from the footer's bytes to the parts of a [`Footer`](crate::Footer).

use std::sync::{Arc, OnceLock};

use crate::chunk::details::{self, Want};
use crate::chunk::rows::{Chunk, HAS_DICTIONARY, Rows};
use crate::decode::carried::Carried;
use crate::decode::groups::{self, GroupFields, Groups, Wanted};
use crate::decode::scan::{self, RowGroupFields};
use crate::decode::trailing_fields::Tail;
use crate::error::{Error, Fault, FaultKind, Result};
use crate::matching::kernel::Method;
use crate::memory::allocate;
use crate::options::{Options, Verify};
use crate::schema::arena::Schema;
use crate::thrift::cursor::{Cursor, I32, I64, LIST, STRUCT, Step};
use crate::thrift::dump;
use crate::thrift::format::FILE_META_DATA;

/// Everything decoded from the bytes of a footer.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub version: i32,
    pub num_rows: i64,
    pub schema: Arc<Schema>,
    /// The decoded columns in ascending order; `None` for all.
    pub columns: Option<Vec<u32>>,
    pub row_groups: Vec<GroupFields>,
    pub rows: Rows,
    /// The columns whose statistics are wanted, in ascending order; `None` for all.
    pub with_statistics: Option<Vec<u32>>,
    pub row_groups_in_file: usize,
    /// The fields after the row groups, once they have been walked; `None` inside if malformed.
    pub tail: OnceLock<Option<Box<Tail>>>,
    /// Where the list of row groups is.
    groups_at: usize,
}

/// Why decoding stopped: a fault in the bytes, or an unrelated error.
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

/// Decodes `FileMetaData`; `bytes` may hold more after the struct, such as a signature.
pub(crate) fn file_meta_data(bytes: &[u8], options: &Options, carried: &mut Carried) -> Result<Decoded> {
    fits_32_bits(bytes)?;
    walk(bytes, options, carried).map_err(|stop| match stop {
        Stop::Fault(fault) => explain(bytes, fault),
        Stop::Error(error) => error,
    })
}

/// Rejects footers whose offsets do not fit in 32 bits.
pub(crate) fn fits_32_bits(bytes: &[u8]) -> Result<()> {
    if u32::try_from(bytes.len()).is_err() {
        let what = format!("expected a footer of less than 4 GiB, found one of {} bytes", bytes.len());
        return Err(
            Error::new(what).with_advice("a footer's length has 32 bits: pass only the footer's own bytes")
        );
    }
    Ok(())
}

/// The error for a fault in `FileMetaData`.
pub(crate) fn explain(bytes: &[u8], fault: Fault) -> Error {
    let path = dump::path_of(bytes, 0, &FILE_META_DATA, fault.at);
    Error::new(fault.kind.to_string())
        .at_path(path)
        .at_offset(fault.at as u64)
        .with_advice(fault.kind.advice())
}

fn walk(bytes: &[u8], options: &Options, carried: &mut Carried) -> Result<Decoded, Stop> {
    let cursor = &mut Cursor::new(bytes, 0);
    let (mut version, mut num_rows) = (None, None);
    let mut schema = options.schema.clone();
    let mut groups_at = None;
    let mut decoded = None;
    let mut tail = Tail::default();
    let mut last = 0;
    while let Some(field) = cursor.next_field(&mut last)? {
        match (field.id, field.wire) {
            (1, I32) => version = Some(cursor.i32()?),
            (2, LIST) if options.schema.is_some() => cursor.skip(LIST)?,
            (2, LIST) => schema = Some(carried.schema(cursor)?),
            (3, I64) => num_rows = Some(cursor.integer()?),
            (4, LIST) => {
                groups_at = Some(cursor.at);
                match &schema {
                    Some(schema) => {
                        // Once everything else is known, the rest may not be needed.
                        let known = version.zip(num_rows.filter(|rows| *rows >= 0));
                        let (found, finished) =
                            row_groups(cursor, schema, options, known.is_some(), carried)?;
                        if let (Some((version, num_rows)), false) = (known, finished) {
                            return Ok(Decoded { version, num_rows, ..found });
                        }
                        decoded = Some(found);
                    }
                    // The schema follows later: come back for the row groups.
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
    tail.end = cursor.at;
    let version = version.ok_or(Fault::missing(0, "version"))?;
    let schema = schema.ok_or(Fault::missing(0, "schema"))?;
    let num_rows = num_rows.ok_or(Fault::missing(0, "num_rows"))?;
    let groups_at = groups_at.ok_or(Fault::missing(0, "row_groups"))?;
    let found = match decoded {
        Some(decoded) => decoded,
        None => row_groups(&mut Cursor::new(bytes, groups_at), &schema, options, false, carried)?.0,
    };
    // A negative number must not hide the file's other facts.
    let num_rows = match num_rows {
        0.. => num_rows,
        _ => rows_of_groups(bytes, groups_at, schema.num_leaves())?,
    };
    let tail = OnceLock::from(Some(Box::new(tail)));
    Ok(Decoded { version, num_rows, schema, tail, ..found })
}

/// Walks from the list of row groups to the end to read the trailing fields.
pub(crate) fn tail(bytes: &[u8], decoded: &Decoded, method: Method) -> Result<Tail> {
    let walk = || -> Step<Tail> {
        let cursor = &mut Cursor::new(bytes, decoded.groups_at);
        let wanted = Wanted {
            columns: decoded.schema.num_leaves(),
            selected: None,
            groups: 0..0,
            stop_early: false,
            method,
            carries: false,
        };
        groups::decode(cursor, &wanted, None)?;
        let mut tail = Tail::default();
        let mut last = 4;
        while let Some(field) = cursor.next_field(&mut last)? {
            match (field.id, field.wire) {
                // A second field 1 to 4 would contradict the decoded one.
                (id @ 1..=4, _) => {
                    let kind =
                        FaultKind::Range { value: id.into(), expected: "fields 1 to 4 before, not here" };
                    return Err(Fault::new(cursor.at, kind));
                }
                (id, wire) => tail.field(cursor, id, wire)?,
            }
        }
        tail.end = cursor.at;
        Ok(tail)
    };
    walk().map_err(|fault| explain(bytes, fault))
}

fn wire(cursor: &Cursor<'_>, found: u8, expected: &'static str) -> Fault {
    Fault::new(cursor.at, FaultKind::Wire { found, expected })
}

/// Decodes the list of row groups at the cursor. Returns it with whether the walk reached the list's end; the caller
/// adds the version, the number of rows and the trailing fields.
fn row_groups(
    cursor: &mut Cursor<'_>,
    schema: &Arc<Schema>,
    options: &Options,
    may_stop: bool,
    carried: &mut Carried,
) -> Result<(Decoded, bool), Stop> {
    let groups_at = cursor.at;
    let columns = options.wanted_columns(schema)?;
    let range = options.range();
    let wanted = Wanted {
        columns: schema.num_leaves(),
        selected: columns.as_deref(),
        groups: range.clone().unwrap_or(0..usize::MAX),
        stop_early: may_stop && range.is_some(),
        method: options.method,
        carries: carried.carries(),
    };
    let engine = carried.engine(wanted.columns);
    let Groups { fields, rows: packed, engine, wide, in_file, finished } =
        groups::decode(cursor, &wanted, engine)?;
    let (mut row_groups, mut rows) = (fields, Rows { packed, traits: carried.keep(engine), wide });
    if options.looks_inside() {
        keep_wanted(cursor.bytes, &mut row_groups, &mut rows, &wanted, options)?;
    }
    if options.verify != Verify::Decoded {
        for row in 0..rows.packed.len() {
            let mut cursor = Cursor::new(cursor.bytes, rows.get(row).at as usize);
            details::column_chunk(&mut cursor, Want::All)?;
        }
    }
    let with_statistics = options.columns_with_statistics(schema)?;
    let decoded = Decoded {
        version: 0,
        num_rows: 0,
        schema: Arc::clone(schema),
        columns,
        row_groups,
        rows,
        with_statistics,
        row_groups_in_file: in_file,
        tail: OnceLock::new(),
        groups_at,
    };
    Ok((decoded, finished))
}

/// Drops the row groups that the options exclude, now that they are known.
fn keep_wanted(
    bytes: &[u8],
    row_groups: &mut Vec<GroupFields>,
    rows: &mut Rows,
    wanted: &Wanted<'_>,
    options: &Options,
) -> Step<()> {
    let mut keep = allocate::with_room_at(0, row_groups.len())?;
    for group in row_groups.iter() {
        let first_byte = if wanted.columns == 0 {
            0
        } else {
            first_byte_of(&scan::column_chunk(&mut Cursor::new(bytes, group.first_chunk as usize))?)
        };
        keep.push(options.wants(&group.fields, first_byte));
    }
    let width = wanted.selected.map_or(wanted.columns, <[u32]>::len);
    rows.retain_groups(width, &keep);
    let mut keep = keep.into_iter();
    row_groups.retain(|_| keep.next().unwrap_or(false));
    Ok(())
}

/// Where the data of a column chunk starts: at its dictionary page, if it has one.
///
/// Ignores a dictionary offset of 0 or one after the data: old writers left such values. arrow-cpp leaves a
/// data offset of 0 for a chunk with a dictionary but no data page.
pub(crate) fn first_byte_of(chunk: &Chunk) -> u64 {
    // Both are non-negative: the scan rejects negative data page offsets.
    (if has_dictionary(chunk) { chunk.dictionary_page_offset } else { chunk.data_page_offset }) as u64
}

/// Where the data of each chunk in this file starts, and its indexes, decoded or not.
pub(crate) fn starts_of_chunks(bytes: &[u8], decoded: &Decoded) -> Step<Vec<u64>> {
    let mut starts = Vec::new();
    walk_groups(bytes, decoded.groups_at, decoded.schema.num_leaves(), |cursor| {
        let mut again = *cursor;
        let found = details::column_chunk(&mut again, Want::Locations)?;
        let chunk = scan::column_chunk(cursor)?;
        if found.file_path.is_none_or(str::is_empty) {
            let indexes = [found.offset_index_offset, found.column_index_offset, found.bloom_filter_offset];
            starts.push(first_byte_of(&chunk));
            starts.extend(indexes.into_iter().flatten().filter_map(|offset| u64::try_from(offset).ok()));
        }
        Ok(())
    })?;
    Ok(starts)
}

/// The rows of all row groups, decoded or not.
fn rows_of_groups(bytes: &[u8], groups_at: usize, columns: usize) -> Step<i64> {
    let skip = |cursor: &mut Cursor<'_>| cursor.skip(STRUCT);
    let groups = walk_groups(bytes, groups_at, columns, skip)?;
    Ok(groups.iter().fold(0, |rows, group| group.num_rows.saturating_add(rows)))
}

/// Walks over all row groups, and `chunk` over their column chunks.
fn walk_groups(
    bytes: &[u8],
    groups_at: usize,
    columns: usize,
    mut chunk: impl FnMut(&mut Cursor<'_>) -> Step<()>,
) -> Step<Vec<RowGroupFields>> {
    let cursor = &mut Cursor::new(bytes, groups_at);
    let mut groups = Vec::new();
    for _ in 0..cursor.list_of(STRUCT, "a list of row groups")? {
        let mut walk = scan::RowGroupWalk::new(cursor);
        let there = if walk.until_columns(cursor, columns)? { columns } else { 0 };
        for _ in 0..there {
            chunk(cursor)?;
        }
        walk.finish(cursor)?;
        groups.push(walk.fields);
    }
    Ok(groups)
}

/// Whether the chunk's dictionary page can be where it says.
pub(crate) fn has_dictionary(chunk: &Chunk) -> bool {
    let (dictionary, data) = (chunk.dictionary_page_offset, chunk.data_page_offset);
    chunk.traits.flags & HAS_DICTIONARY != 0 && dictionary > 0 && (dictionary < data || data == 0)
}
