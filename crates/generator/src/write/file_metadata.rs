//! The end of a Parquet file: page indexes and footer, from the metadata of the column chunks.
//!
//! Both are encoded as soon as a row group is written, so an unfinished file only keeps encoded bytes in
//! memory.
//!
//! (Parquet format, `parquet.thrift`: `ColumnIndex`, `OffsetIndex`, `FileMetaData`.)

use crate::encode::statistics::Bounds;
use crate::encode::thrift::{StructWriter, structure};
use crate::encode::values::Encoding;
use crate::layout::file_options::PageVersion;
use crate::spec::dataset::Leaf;
use crate::write::column_chunk::{ColumnChunk, PageSummary};
use crate::write::page::header::{DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE};
use crate::write::plan::FilePlan;
use crate::write::schema::schema;
use crate::write::statistics::statistics;

/// The metadata of the row groups written so far, for the end of a file.
#[derive(Debug, Default)]
pub(crate) struct FileEnd {
    pub groups: Vec<GroupSummary>,
    /// The encoded `ColumnMetaData` of all column chunks.
    columns: Vec<u8>,
    chunks: Vec<ChunkSummary>,
    column_indexes: Vec<u8>,
    offset_indexes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct GroupSummary {
    rows: u64,
    /// Where its first page begins in the file.
    offset: u64,
    bytes: u64,
    raw_bytes: u64,
}

/// The bytes of one column chunk in each of the encoded parts.
#[derive(Debug)]
struct ChunkSummary {
    metadata: usize,
    column_index: usize,
    offset_index: usize,
}

impl FileEnd {
    /// The rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// Adds a row group whose chunks were written at `offset`, with the Bloom filters after them.
    pub(crate) fn add_row_group(
        &mut self,
        plan: &FilePlan<'_>,
        chunks: &[ColumnChunk],
        rows: u64,
        offset: u64,
    ) {
        let bytes: u64 = chunks.iter().map(|chunk| chunk.bytes() as u64).sum();
        let mut at = offset;
        let mut bloom = offset + bytes;
        for (column, chunk) in chunks.iter().enumerate() {
            let placed = PlacedChunk { chunk, offset: at, bloom };
            let before = (self.columns.len(), self.column_indexes.len(), self.offset_indexes.len());
            structure(&mut self.columns, |w| placed.metadata(plan, column, w));
            if plan.column_indexes() {
                placed.column_index(plan.leaves[column].1, &mut self.column_indexes);
            }
            if plan.options.page_index {
                placed.offset_index(plan, plan.leaves[column].1, &mut self.offset_indexes);
            }
            self.chunks.push(ChunkSummary {
                metadata: self.columns.len() - before.0,
                column_index: self.column_indexes.len() - before.1,
                offset_index: self.offset_indexes.len() - before.2,
            });
            at += chunk.bytes() as u64;
            bloom += chunk.bloom.len() as u64;
        }
        let raw_bytes = chunks.iter().map(|chunk| chunk.raw_bytes as u64).sum();
        self.groups.push(GroupSummary { rows, offset, bytes, raw_bytes });
    }

    /// The end of a file whose row groups end at `offset`, including the footer's length and magic, in
    /// pieces.
    pub(crate) fn finish(self, plan: &FilePlan<'_>, offset: u64) -> [Vec<u8>; 3] {
        let mut footer = Vec::with_capacity(self.columns.len() + 32 * self.chunks.len() + 1024);
        let columns = plan.leaves.len();
        let offset_indexes = offset + self.column_indexes.len() as u64;
        let (mut metadata, mut column_index, mut offset_index) = (0, offset, offset_indexes);
        structure(&mut footer, |w| {
            w.i32(1, 2);
            schema(plan.dataset, plan.partition.map(|(field, _)| field.name.as_str()), w);
            w.i64(3, self.rows() as i64);
            w.structs(4, self.groups.len(), |g, w| {
                let group = &self.groups[g];
                w.structs(1, columns, |c, w| {
                    let chunk = &self.chunks[g * columns + c];
                    w.i64(2, 0);
                    w.encoded(3, &self.columns[metadata..metadata + chunk.metadata]);
                    metadata += chunk.metadata;
                    if chunk.offset_index > 0 {
                        w.i64(4, offset_index as i64);
                        w.i32(5, chunk.offset_index as i32);
                        offset_index += chunk.offset_index as u64;
                    }
                    if chunk.column_index > 0 {
                        w.i64(6, column_index as i64);
                        w.i32(7, chunk.column_index as i32);
                        column_index += chunk.column_index as u64;
                    }
                });
                w.i64(2, group.raw_bytes as i64);
                w.i64(3, group.rows as i64);
                w.i64(5, group.offset as i64);
                w.i64(6, group.bytes as i64);
                if let Ok(ordinal) = i16::try_from(g) {
                    w.i16(7, ordinal);
                }
            });
            let pairs = &plan.options.key_values;
            if !pairs.is_empty() {
                w.structs(5, pairs.len(), |i, w| {
                    w.binary(1, pairs[i].0.as_bytes());
                    w.binary(2, pairs[i].1.as_bytes());
                });
            }
            w.binary(6, concat!("sawmill version ", env!("CARGO_PKG_VERSION")).as_bytes());
            // TypeDefinedOrder for every column; without it readers ignore min and max of strings.
            w.structs(7, columns, |_, w| w.structure(1, |_| {}));
        });
        let length = footer.len() as u32;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(b"PAR1");
        [self.column_indexes, self.offset_indexes, footer]
    }
}

#[derive(Debug)]
struct PlacedChunk<'a> {
    chunk: &'a ColumnChunk,
    /// Where its first page begins in the file.
    offset: u64,
    /// Where its Bloom filter begins.
    bloom: u64,
}

impl PlacedChunk<'_> {
    /// Where its first data page begins.
    fn data_offset(&self) -> u64 {
        self.offset + self.chunk.dictionary_bytes as u64
    }

    /// `ColumnMetaData`.
    fn metadata(&self, plan: &FilePlan<'_>, column: usize, w: &mut StructWriter<'_>) {
        let (field, leaf) = plan.leaves[column];
        let chunk = self.chunk;
        let dictionary = chunk.dictionary_bytes > 0;
        // The distinct encodings of its data pages, with the number of pages of each.
        let mut pages: Vec<(Encoding, i32)> = Vec::new();
        for page in &chunk.pages {
            match pages.iter_mut().find(|(encoding, _)| *encoding == page.encoding) {
                Some((_, n)) => *n += 1,
                None => pages.push((page.encoding, 1)),
            }
        }
        let mut encodings: Vec<i32> = pages.iter().map(|(encoding, _)| encoding.id()).collect();
        // Levels are RLE-encoded, dictionary pages PLAIN.
        encodings.extend([RLE].into_iter().chain(dictionary.then_some(PLAIN)));
        encodings.sort_unstable();
        encodings.dedup();
        w.i32(1, leaf.physical.code());
        w.i32s(2, &encodings);
        w.binaries(3, field.path.split('.').map(str::as_bytes).collect::<Vec<_>>().into_iter());
        w.i32(4, plan.compression(leaf).id());
        w.i64(5, chunk.entries as i64);
        w.i64(6, chunk.raw_bytes as i64);
        w.i64(7, chunk.bytes() as i64);
        w.i64(9, self.data_offset() as i64);
        if dictionary {
            w.i64(11, self.offset as i64);
        }
        if plan.chunk_statistics() {
            w.structure(12, |w| {
                let nulls = chunk.pages.iter().map(|p| p.nulls as i64).sum();
                statistics(w, nulls, union_of(&chunk.pages).as_ref(), leaf);
            });
        }
        w.structs(13, pages.len() + usize::from(dictionary), |i, w| {
            let data = match plan.options.page_version {
                PageVersion::V1 => DATA_PAGE,
                PageVersion::V2 => DATA_PAGE_V2,
            };
            let (kind, encoding, n) = match i.checked_sub(usize::from(dictionary)) {
                None => (DICTIONARY_PAGE, PLAIN, 1),
                Some(i) => (data, pages[i].0.id(), pages[i].1),
            };
            w.i32(1, kind);
            w.i32(2, encoding);
            w.i32(3, n);
        });
        if !chunk.bloom.is_empty() {
            w.i64(14, self.bloom as i64);
            w.i32(15, chunk.bloom.len() as i32);
        }
        if plan.chunk_statistics() {
            w.structure(16, |w| size_statistics(&chunk.pages, leaf, w));
        }
    }

    /// Appends the column index, or nothing if a page with values has no bounds.
    fn column_index(&self, leaf: &Leaf, out: &mut Vec<u8>) {
        let pages = &self.chunk.pages;
        if pages.is_empty() || pages.iter().any(|p| p.bounds.is_none() && !p.all_null) {
            return;
        }
        let bounds: Vec<(Vec<u8>, Vec<u8>)> = pages
            .iter()
            .map(|p| p.bounds.as_ref().map_or_else(Default::default, |b| b.plain(leaf)))
            .collect();
        let histograms = |of: fn(&PageSummary) -> &Vec<u64>| -> Vec<i64> {
            pages.iter().flat_map(|p| of(p).iter().map(|n| *n as i64)).collect()
        };
        structure(out, |w| {
            w.booleans(1, pages.iter().map(|p| p.all_null).collect::<Vec<_>>().into_iter());
            w.binaries(2, bounds.iter().map(|b| b.0.as_slice()));
            w.binaries(3, bounds.iter().map(|b| b.1.as_slice()));
            w.i32(4, boundary_order(pages));
            w.i64s(5, pages.iter().map(|p| p.nulls as i64));
            for (id, all) in
                [(6, histograms(|p| &p.repetition_histogram)), (7, histograms(|p| &p.definition_histogram))]
            {
                if !all.is_empty() {
                    w.i64s(id, all.into_iter());
                }
            }
        });
    }

    fn offset_index(&self, plan: &FilePlan<'_>, leaf: &Leaf, out: &mut Vec<u8>) {
        let pages = &self.chunk.pages;
        let mut offset = self.data_offset();
        let mut row = 0;
        structure(out, |w| {
            w.structs(1, pages.len(), |i, w| {
                let page = &pages[i];
                w.i64(1, offset as i64);
                w.i32(2, page.bytes as i32);
                w.i64(3, row);
                offset += page.bytes as u64;
                row += page.rows as i64;
            });
            if leaf.is_byte_array() && plan.chunk_statistics() {
                w.i64s(2, pages.iter().map(|p| p.string_bytes as i64));
            }
        });
    }
}

/// The fields of `SizeStatistics`.
fn size_statistics(pages: &[PageSummary], leaf: &Leaf, w: &mut StructWriter<'_>) {
    if leaf.is_byte_array() {
        w.i64(1, pages.iter().map(|p| p.string_bytes as i64).sum());
    }
    let sum = |of: fn(&PageSummary) -> &Vec<u64>| -> Vec<i64> {
        let levels = pages.first().map_or(0, |p| of(p).len());
        (0..levels).map(|level| pages.iter().map(|p| of(p)[level] as i64).sum()).collect()
    };
    for (id, histogram) in [(2, sum(|p| &p.repetition_histogram)), (3, sum(|p| &p.definition_histogram))] {
        if !histogram.is_empty() {
            w.i64s(id, histogram.into_iter());
        }
    }
}

/// The bounds of all pages; `None` if a page with values has no bounds.
fn union_of(pages: &[PageSummary]) -> Option<Bounds> {
    let mut union: Option<Bounds> = None;
    for page in pages {
        match (&page.bounds, &mut union) {
            (Some(new), Some(all)) => *all = all.union(new),
            (Some(new), none) => *none = Some(new.clone()),
            (None, _) if page.all_null => {}
            (None, _) => return None,
        }
    }
    union
}

/// `BoundaryOrder`: 0 unordered, 1 ascending, 2 descending, over the pages that have bounds.
fn boundary_order(pages: &[PageSummary]) -> i32 {
    let bounds: Vec<&Bounds> = pages.iter().filter_map(|p| p.bounds.as_ref()).collect();
    let ordered = |above: fn(&Bounds, &Bounds) -> bool| bounds.windows(2).all(|pair| above(pair[0], pair[1]));
    if ordered(|a, b| a.at_most(b)) {
        1
    } else if ordered(|a, b| b.at_most(a)) {
        2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_nulls_does_not_remove_the_bounds() {
        let page = |nulls: u64, bounds| PageSummary {
            bytes: 1,
            rows: 1,
            encoding: Encoding::Plain,
            nulls,
            bounds,
            all_null: nulls == 1,
            string_bytes: 0,
            definition_histogram: vec![nulls, 1 - nulls],
            repetition_histogram: Vec::new(),
        };
        let some = Some(Bounds::Integers(1, 2));
        assert_eq!(union_of(&[page(1, None), page(0, some.clone())]), some);
        assert_eq!(union_of(&[page(0, None), page(0, some)]), None);
        assert_eq!(union_of(&[page(1, None)]), None);
    }
}
