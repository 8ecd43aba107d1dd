//! A footer as a FlatBuffer: the tables and fields that the public prototypes of parquet-format #544 write, filled from a
//! decoded footer. Written with the builder and read through the verifier of the `flatbuffers` crate, as code
//! that its compiler generates does.
//!
//! Built: `FileMetaData` (schema, row groups, keys and values, writer), `SchemaElement` (name, type, repetition,
//! children), `RowGroup`, `ColumnChunk`, `ColumnMetadata`, `Statistics` with bounds of up to 16 bytes as
//! numbers, longer ones cut, and their common prefix as text. Left out: logical types, sorting columns, keys
//! and values of columns, Bloom filters. Page indexes are as in Thrift, whose places the prototypes leave out.

use std::ops::Range;

use flatbuffers::{
    FlatBufferBuilder, Follow, ForwardsUOffset, InvalidFlatbuffer, Table, TableFinishedWIPOffset, VOffsetT,
    Vector, Verifiable, Verifier, VerifierOptions, WIPOffset, root_with_opts,
};
use sawmill_footer::{ColumnChunk, Footer};

type Finished = WIPOffset<TableFinishedWIPOffset>;

/// The place of a field in its table's list of places.
const fn slot(field: VOffsetT) -> VOffsetT {
    4 + 2 * field
}

// Fields that are read again.
const ROW_GROUPS: VOffsetT = slot(3);
const COLUMNS: VOffsetT = slot(0);
const META_DATA: VOffsetT = slot(1);
const COMPRESSED: VOffsetT = slot(3);
const DATA_PAGE_OFFSET: VOffsetT = slot(5);

/// The footer as a FlatBuffer.
pub fn flat(footer: &Footer) -> Vec<u8> {
    let mut to = FlatBufferBuilder::with_capacity(2 * footer.footer_len());
    let schema: Vec<Finished> = footer
        .schema()
        .elements()
        .map(|element| {
            let name = to.create_string(element.name());
            let table = to.start_table();
            to.push_slot_always(slot(0), name);
            if let Some(physical) = element.physical_type() {
                to.push_slot_always(slot(1), physical.number() as u8);
            }
            to.push_slot_always(slot(2), element.repetition().map_or(0, |of| of.number()) as u8);
            to.push_slot(slot(6), element.children().count() as i32, 0);
            to.end_table(table)
        })
        .collect();
    let schema = to.create_vector(&schema);
    let groups: Vec<Finished> = footer
        .row_groups()
        .map(|group| {
            let columns: Vec<Finished> =
                group.columns().map(|chunk| column_chunk(&mut to, &chunk, group.num_rows())).collect();
            let columns = to.create_vector(&columns);
            let table = to.start_table();
            to.push_slot_always(COLUMNS, columns);
            to.push_slot(slot(1), group.total_byte_size(), 0);
            to.push_slot(slot(2), group.num_rows(), 0);
            to.push_slot(slot(4), group.file_offset().unwrap_or(0), 0);
            to.push_slot(slot(5), group.columns().map(|chunk| chunk.compressed_size()).sum(), 0_i64);
            if let Some(ordinal) = group.ordinal() {
                to.push_slot_always(slot(6), ordinal);
            }
            to.end_table(table)
        })
        .collect();
    let groups = to.create_vector(&groups);
    let pairs: Vec<Finished> = footer
        .key_value_metadata()
        .map(|(key, value)| {
            let (key, value) = (to.create_string(&key), value.map(|value| to.create_string(&value)));
            let table = to.start_table();
            to.push_slot_always(slot(0), key);
            if let Some(value) = value {
                to.push_slot_always(slot(1), value);
            }
            to.end_table(table)
        })
        .collect();
    let pairs = to.create_vector(&pairs);
    let created_by = to.create_string(&footer.created_by().unwrap_or_default());
    let table = to.start_table();
    to.push_slot_always(slot(0), footer.version());
    to.push_slot_always(slot(1), schema);
    to.push_slot_always(slot(2), footer.num_rows());
    to.push_slot_always(ROW_GROUPS, groups);
    to.push_slot_always(slot(4), pairs);
    to.push_slot_always(slot(5), created_by);
    let table = to.end_table(table);
    to.finish_minimal(table);
    to.finished_data().to_vec()
}

fn column_chunk(to: &mut FlatBufferBuilder<'_>, chunk: &ColumnChunk<'_>, rows: i64) -> Finished {
    let statistics = statistics(to, chunk);
    let table = to.start_table();
    to.push_slot_always(slot(0), chunk.codec().number() as u8);
    if chunk.num_values() != rows {
        to.push_slot_always(slot(1), chunk.num_values());
    }
    to.push_slot(slot(2), chunk.uncompressed_size(), 0);
    to.push_slot(COMPRESSED, chunk.compressed_size(), 0);
    to.push_slot(DATA_PAGE_OFFSET, chunk.data_page_offset(), 0);
    if let Some(offset) = chunk.dictionary_page_offset() {
        to.push_slot_always(slot(7), offset);
    }
    if let Some(statistics) = statistics {
        to.push_slot_always(slot(8), statistics);
    }
    let meta_data = to.end_table(table);
    let table = to.start_table();
    to.push_slot_always(META_DATA, meta_data);
    to.end_table(table)
}

fn statistics(to: &mut FlatBufferBuilder<'_>, chunk: &ColumnChunk<'_>) -> Option<Finished> {
    let found = chunk.statistics().ok()??;
    let (low, high) = (found.min_value.unwrap_or_default(), found.max_value.unwrap_or_default());
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let of_bytes = chunk.physical_type().number() >= 6 && low.len() != 16;
    let prefix = (of_bytes && common > 0).then(|| to.create_string(&String::from_utf8_lossy(&low[..common])));
    let table = to.start_table();
    if let Some(count) = found.null_count {
        to.push_slot_always(slot(0), count as i32);
    }
    // Four fields for each bound: 4 bytes, 8 bytes, 8 bytes, and how many there are.
    for (first, bound) in [(1, low), (5, high)] {
        let rest = if of_bytes { &bound[common.min(bound.len())..] } else { bound };
        let number = |range: Range<usize>| {
            let mut bytes = [0; 8];
            let part = rest.get(range.start..range.end.min(rest.len())).unwrap_or_default();
            bytes[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(bytes)
        };
        match rest.len() {
            16 => {
                to.push_slot(slot(first + 1), number(0..8), 0);
                to.push_slot(slot(first + 2), number(8..16), 0);
            }
            8 if !of_bytes => to.push_slot(slot(first + 1), number(0..8), 0),
            _ => to.push_slot(slot(first), number(0..4) as u32, 0),
        }
        to.push_slot_always(slot(first + 3), rest.len().min(16) as i8);
    }
    if let Some(prefix) = prefix {
        to.push_slot_always(slot(9), prefix);
    }
    Some(to.end_table(table))
}

/// What both kinds of footer are asked for: the sizes and places of chunks.
pub fn sum_of(footer: &Footer) -> i64 {
    let chunks = footer.row_groups().flat_map(|group| group.columns());
    chunks
        .map(|chunk| chunk.compressed_size().wrapping_add(chunk.data_page_offset()))
        .fold(0, i64::wrapping_add)
}

/// A table of the footer, by its kind.
#[derive(Clone, Copy)]
pub struct Flat<'a, const KIND: u8>(Table<'a>);

pub const FILE: u8 = 0;
const GROUP: u8 = 1;
const CHUNK: u8 = 2;
const META: u8 = 3;
const STATISTICS: u8 = 4;
const ELEMENT: u8 = 5;
const PAIR: u8 = 6;

impl<'a, const KIND: u8> Follow<'a> for Flat<'a, KIND> {
    type Inner = Self;

    unsafe fn follow(buf: &'a [u8], loc: usize) -> Self {
        // SAFETY: the caller vouches for a table at this place.
        Self(unsafe { Table::new(buf, loc) })
    }
}

type Tables<'a, const KIND: u8> = ForwardsUOffset<Vector<'a, ForwardsUOffset<Flat<'a, KIND>>>>;

impl<const KIND: u8> Verifiable for Flat<'_, KIND> {
    fn run_verifier(verifier: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
        type Text<'a> = ForwardsUOffset<&'a str>;
        let table = verifier.visit_table(at)?;
        let table = match KIND {
            FILE => table
                .visit_field::<i32>("version", slot(0), false)?
                .visit_field::<Tables<'_, ELEMENT>>("schema", slot(1), false)?
                .visit_field::<i64>("num_rows", slot(2), false)?
                .visit_field::<Tables<'_, GROUP>>("row_groups", ROW_GROUPS, false)?
                .visit_field::<Tables<'_, PAIR>>("kv", slot(4), false)?
                .visit_field::<Text<'_>>("created_by", slot(5), false)?,
            GROUP => table
                .visit_field::<Tables<'_, CHUNK>>("columns", COLUMNS, false)?
                .visit_field::<i64>("total_byte_size", slot(1), false)?
                .visit_field::<i64>("num_rows", slot(2), false)?
                .visit_field::<i64>("file_offset", slot(4), false)?
                .visit_field::<i64>("total_compressed_size", slot(5), false)?
                .visit_field::<i16>("ordinal", slot(6), false)?,
            CHUNK => table.visit_field::<ForwardsUOffset<Flat<'_, META>>>("meta_data", META_DATA, false)?,
            META => table
                .visit_field::<u8>("codec", slot(0), false)?
                .visit_field::<i64>("num_values", slot(1), false)?
                .visit_field::<i64>("total_uncompressed_size", slot(2), false)?
                .visit_field::<i64>("total_compressed_size", COMPRESSED, false)?
                .visit_field::<i64>("data_page_offset", DATA_PAGE_OFFSET, false)?
                .visit_field::<i64>("dictionary_page_offset", slot(7), false)?
                .visit_field::<ForwardsUOffset<Flat<'_, STATISTICS>>>("statistics", slot(8), false)?,
            STATISTICS => table
                .visit_field::<i32>("null_count", slot(0), false)?
                .visit_field::<u32>("min_lo4", slot(1), false)?
                .visit_field::<u64>("min_lo8", slot(2), false)?
                .visit_field::<u64>("min_hi8", slot(3), false)?
                .visit_field::<i8>("min_len", slot(4), false)?
                .visit_field::<u32>("max_lo4", slot(5), false)?
                .visit_field::<u64>("max_lo8", slot(6), false)?
                .visit_field::<u64>("max_hi8", slot(7), false)?
                .visit_field::<i8>("max_len", slot(8), false)?
                .visit_field::<Text<'_>>("prefix", slot(9), false)?,
            ELEMENT => table
                .visit_field::<Text<'_>>("name", slot(0), false)?
                .visit_field::<u8>("type", slot(1), false)?
                .visit_field::<u8>("repetition_type", slot(2), false)?
                .visit_field::<i32>("num_children", slot(6), false)?,
            _ => table.visit_field::<Text<'_>>("key", slot(0), false)?.visit_field::<Text<'_>>(
                "val",
                slot(1),
                false,
            )?,
        };
        table.finish();
        Ok(())
    }
}

/// The footer in these bytes, verified whole, as untrusted ones have to be.
pub fn verified(bytes: &[u8]) -> Flat<'_, FILE> {
    let options = VerifierOptions {
        max_tables: usize::MAX,
        max_apparent_size: usize::MAX,
        ..VerifierOptions::default()
    };
    root_with_opts::<Flat<'_, FILE>>(&options, bytes).expect("what was just built is valid")
}

/// The footer in these bytes, which are trusted.
pub fn trusted(bytes: &[u8]) -> Flat<'_, FILE> {
    // SAFETY: the bytes were built in this process, and verified before they are measured.
    unsafe { flatbuffers::root_unchecked::<Flat<'_, FILE>>(bytes) }
}

impl Flat<'_, FILE> {
    /// [`sum_of`] these chunks.
    pub fn sum(&self, groups: Range<usize>, columns: Range<usize>) -> i64 {
        let mut sum = 0_i64;
        // SAFETY: `verified` and `trusted` vouch for the tables, whose fields have these types.
        let all =
            unsafe { self.0.get::<Tables<'_, GROUP>>(ROW_GROUPS, None) }.expect("a footer has row groups");
        for group in groups {
            // SAFETY: as above.
            let chunks = unsafe { all.get(group).0.get::<Tables<'_, CHUNK>>(COLUMNS, None) };
            let chunks = chunks.expect("a row group has columns");
            for column in columns.clone() {
                // SAFETY: as above.
                let (size, offset) = unsafe {
                    let meta = chunks.get(column).0.get::<ForwardsUOffset<Flat<'_, META>>>(META_DATA, None);
                    let meta = meta.expect("a chunk has metadata").0;
                    (meta.get::<i64>(COMPRESSED, Some(0)), meta.get::<i64>(DATA_PAGE_OFFSET, Some(0)))
                };
                sum = sum.wrapping_add(size.unwrap_or(0)).wrapping_add(offset.unwrap_or(0));
            }
        }
        sum
    }
}
