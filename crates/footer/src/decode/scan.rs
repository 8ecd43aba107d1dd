//! The scalar walk over a row group and its column chunks: correct for any input.
//!
//! It reads the fields of a `ColumnChunk` that a [`Chunk`] stores and skips the rest. Skipped values must be
//! well-formed Thrift; their meaning is checked only when a caller asks for them.

use crate::chunk::rows::{
    Chunk, ENCRYPTED, HAS_DICTIONARY, NO_METADATA, STATISTICS_NONE, Traits, statistics_place,
};
use crate::error::{Fault, FaultKind};
use crate::memory::allocate;
use crate::schema::enums::EncodingSet;
use crate::thrift::cursor::{
    BINARY, Cursor, FALSE, I16, I32, I64, LIST, STOP, STRUCT, Step, TRUE, each_field,
};

/// The ids of the required fields of `ColumnMetaData`. `path_in_schema` is required too, but adds nothing to the
/// schema; files without it can be read.
const REQUIRED: [(u32, &str); 7] = [
    (1, "type"),
    (2, "encodings"),
    (4, "codec"),
    (5, "num_values"),
    (6, "total_uncompressed_size"),
    (7, "total_compressed_size"),
    (9, "data_page_offset"),
];

/// Walks one `ColumnChunk`.
pub(crate) fn column_chunk(cursor: &mut Cursor<'_>) -> Step<Chunk> {
    let start = cursor.at;
    // A footer's length has 32 bits, as `Footer::decode` has checked.
    let mut chunk = Chunk { at: start as u32, ..Chunk::default() };
    let mut meta_data = false;
    let mut statistics = None;
    each_field!(cursor, {
        (3, STRUCT) => {
            column_meta_data(cursor, &mut chunk, &mut statistics)?;
            meta_data = true;
        },
        (8, STRUCT) => {
            cursor.skip(STRUCT)?;
            chunk.traits.flags |= ENCRYPTED;
        },
        (9, BINARY) => {
            cursor.binary()?;
            chunk.traits.flags |= ENCRYPTED;
        },
    });
    if !meta_data {
        if chunk.traits.flags & ENCRYPTED == 0 {
            return Err(Fault::missing(start, "meta_data"));
        }
        chunk.traits.flags |= NO_METADATA;
    }
    chunk.statistics = statistics.map_or(STATISTICS_NONE, |at| statistics_place(at - start));
    Ok(chunk)
}

/// Sets `statistics` to the offset of the first ones.
fn column_meta_data(cursor: &mut Cursor<'_>, chunk: &mut Chunk, statistics: &mut Option<usize>) -> Step<()> {
    let start = cursor.at;
    // A second `meta_data` replaces the first.
    let flags = chunk.traits.flags & ENCRYPTED;
    *chunk = Chunk { at: chunk.at, traits: Traits { flags, ..Traits::default() }, ..Chunk::default() };
    let (mut seen, mut last) = (0_u16, 0);
    while let Some(field) = cursor.next_field(&mut last)? {
        match (field.id, field.wire) {
            (1, I32) => chunk.traits.physical_type = cursor.i32()?,
            (2, LIST) => chunk.traits.encodings = encodings(cursor)?,
            (4, I32) => chunk.traits.codec = cursor.i32()?,
            (5, I64) => chunk.num_values = cursor.size_or_zero()?,
            (6, I64) => chunk.uncompressed = cursor.size_or_zero()?,
            (7, I64) => chunk.compressed = cursor.size_or_zero()?,
            (9, I64) => chunk.data_page_offset = cursor.size_or_zero()?,
            (11, I64) => {
                chunk.dictionary_page_offset = cursor.integer()?;
                chunk.traits.flags |= HAS_DICTIONARY;
            }
            (12, STRUCT) => {
                statistics.get_or_insert(cursor.at);
                cursor.skip(STRUCT)?;
            }
            (1 | 4, found) => return Err(wire(cursor, found, "an i32")),
            (2, found) => return Err(wire(cursor, found, "a list of encodings")),
            (5..=7 | 9, found) => return Err(wire(cursor, found, "an i64")),
            (_, wire) => cursor.skip(wire)?,
        }
        seen |= u16::from((0..16).contains(&field.id)) << (field.id & 15);
    }
    match REQUIRED.iter().find(|(id, _)| seen >> id & 1 == 0) {
        Some((_, field)) => Err(Fault::missing(start, field)),
        None => Ok(()),
    }
}

fn encodings(cursor: &mut Cursor<'_>) -> Step<EncodingSet> {
    let count = cursor.list_of(I32, "a list of encodings (i32)")?;
    let mut set = EncodingSet::default();
    for _ in 0..count {
        set = set.with(cursor.i32()?);
    }
    Ok(set)
}

#[cold]
fn wire(cursor: &Cursor<'_>, found: u8, expected: &'static str) -> Fault {
    Fault::new(cursor.at, FaultKind::Wire { found, expected })
}

/// The fields of a `RowGroup` besides its column chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowGroupFields {
    pub num_rows: i64,
    pub total_byte_size: i64,
    pub total_compressed_size: Option<i64>,
    pub file_offset: Option<i64>,
    pub ordinal: Option<i16>,
    pub sorting_columns: Option<Vec<SortingColumn>>,
    /// Where the `RowGroup` struct starts.
    pub at: u32,
}

/// One of the columns that a row group is sorted by, the most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortingColumn {
    /// The column's index in the row group.
    pub column_idx: i32,
    /// Whether values descend.
    pub descending: bool,
    /// Whether nulls come before values.
    pub nulls_first: bool,
}

/// The walk over one `RowGroup`, which pauses at its list of column chunks for the caller to walk.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowGroupWalk {
    pub fields: RowGroupFields,
    has_columns: bool,
    has_size: bool,
    has_rows: bool,
    last: i16,
}

impl RowGroupWalk {
    /// A walk over the row group at the cursor.
    pub fn new(cursor: &Cursor<'_>) -> Self {
        let fields = RowGroupFields { at: cursor.at as u32, ..RowGroupFields::default() };
        Self { fields, ..Self::default() }
    }

    /// Walks up to the first of `columns` column chunks; returns false if the struct ends without a list of
    /// them.
    pub fn until_columns(&mut self, cursor: &mut Cursor<'_>, columns: usize) -> Step<bool> {
        loop {
            let field = cursor.field(&mut self.last)?;
            let group = &mut self.fields;
            match (field.id, field.wire) {
                (_, STOP) => return Ok(false),
                (1, LIST) => {
                    let at = cursor.at;
                    let count = cursor.list_of(STRUCT, "a list of column chunks")?;
                    if self.has_columns {
                        let kind =
                            FaultKind::Mismatch { what: "list of column chunks", expected: 1, found: 2 };
                        return Err(Fault::new(at, kind));
                    }
                    if count != columns {
                        let what = "column chunks, one for each leaf of the schema";
                        let kind =
                            FaultKind::Mismatch { what, expected: columns as u64, found: count as u64 };
                        return Err(Fault::new(at, kind));
                    }
                    self.has_columns = true;
                    return Ok(true);
                }
                (2, I64) => {
                    group.total_byte_size = cursor.size_or_zero()?;
                    self.has_size = true;
                }
                (3, I64) => {
                    group.num_rows = cursor.size()?;
                    self.has_rows = true;
                }
                (4, LIST) => group.sorting_columns = sorting_columns(cursor)?,
                (5, I64) => group.file_offset = Some(cursor.integer()?),
                (6, I64) => group.total_compressed_size = Some(cursor.size_or_zero()?),
                (7, I16) => group.ordinal = Some(cursor.i16()?),
                (1, found) => return Err(wire(cursor, found, "a list of column chunks")),
                (2 | 3, found) => return Err(wire(cursor, found, "an i64")),
                (_, wire) => cursor.skip(wire)?,
            }
        }
    }

    /// Walks from the end of the last column chunk to the end of the struct.
    pub fn finish(&mut self, cursor: &mut Cursor<'_>) -> Step<()> {
        if self.has_columns {
            // Stops at the struct's end: a second list is a fault.
            self.until_columns(cursor, 0)?;
        }
        let required =
            [(self.has_columns, "columns"), (self.has_size, "total_byte_size"), (self.has_rows, "num_rows")];
        match required.iter().find(|(there, _)| !there) {
            Some((_, field)) => Err(Fault::missing(self.fields.at as usize, field)),
            None => Ok(()),
        }
    }
}

/// The list is optional: elements that are not structs are skipped like fields of an unexpected type.
fn sorting_columns(cursor: &mut Cursor<'_>) -> Step<Option<Vec<SortingColumn>>> {
    let start = *cursor;
    let (wire, count) = cursor.list()?;
    if wire != STRUCT && count > 0 {
        *cursor = start;
        cursor.skip(LIST)?;
        return Ok(None);
    }
    // The smallest element: header and value of the index, one header for each of the two flags, a stop.
    let mut columns = allocate::with_room_at(start.at, count.min(cursor.left() / 5))?;
    for _ in 0..count {
        columns.push(sorting_column(cursor)?);
    }
    Ok(Some(columns))
}

fn sorting_column(cursor: &mut Cursor<'_>) -> Step<SortingColumn> {
    let start = cursor.at;
    let (mut column_idx, mut descending, mut nulls_first) = (None, None, None);
    each_field!(cursor, {
        (1, I32) => column_idx = Some(cursor.i32()?),
        (2, wire @ (TRUE | FALSE)) => descending = Some(wire == TRUE),
        (3, wire @ (TRUE | FALSE)) => nulls_first = Some(wire == TRUE),
    });
    Ok(SortingColumn {
        column_idx: column_idx.ok_or(Fault::missing(start, "column_idx"))?,
        descending: descending.ok_or(Fault::missing(start, "descending"))?,
        nulls_first: nulls_first.ok_or(Fault::missing(start, "nulls_first"))?,
    })
}
