//! The end of a Parquet file: page indexes and footer, made from what the column chunks said of
//! themselves.
//!
//! (Parquet format, `parquet.thrift`: `ColumnIndex`, `OffsetIndex`, `FileMetaData`.)

use crate::column_chunk::{ColumnChunk, PLAIN, PageSummary, RLE, RLE_DICTIONARY};
use crate::dataset::{Dataset, Field, Leaf};
use crate::logical_type::Physical;
use crate::schema::schema;
use crate::statistics::Bounds;
use crate::thrift::{StructWriter, structure};

/// What the footer says of a column chunk that was written.
#[derive(Debug)]
pub(crate) struct WrittenChunk {
    /// Where its first page begins in the file.
    pub offset: u64,
    pub bytes: u64,
    pub dictionary_bytes: u64,
    pub entries: u64,
    pub pages: Vec<PageSummary>,
}

/// A row group that was written.
#[derive(Debug)]
pub(crate) struct WrittenRowGroup {
    pub rows: u64,
    pub chunks: Vec<WrittenChunk>,
}

impl WrittenChunk {
    /// Takes over what the footer needs of `chunk`, which begins at `offset`.
    pub(crate) fn new(chunk: &mut ColumnChunk, offset: u64) -> Self {
        WrittenChunk {
            offset,
            bytes: chunk.bytes() as u64,
            dictionary_bytes: chunk.dictionary_bytes as u64,
            entries: chunk.entries,
            pages: std::mem::take(&mut chunk.pages),
        }
    }

    fn bounds(&self) -> Option<Bounds> {
        // A page whose values have no bounds leaves the chunk without; an empty page does not.
        let mut bounds: Option<Bounds> = None;
        for page in &self.pages {
            match (&page.bounds, &mut bounds) {
                (Some(new), Some(all)) => *all = all.union(new),
                (Some(new), none) => *none = Some(new.clone()),
                (None, _) if page.is_all_null() => {}
                (None, _) => return None,
            }
        }
        bounds
    }
}

impl PageSummary {
    fn is_all_null(&self) -> bool {
        let entries: u64 = self.definition_histogram.iter().sum();
        !self.definition_histogram.is_empty() && entries == self.nulls
    }
}

/// Appends page indexes and footer of a file whose pages end at `offset`, with the closing length
/// and magic.
pub(crate) fn finish(dataset: &Dataset, row_groups: &[WrittenRowGroup], offset: u64, out: &mut Vec<u8>) {
    let mut leaves: Vec<(&Field, &Leaf)> = Vec::with_capacity(dataset.columns());
    dataset.each_leaf(&mut |field, leaf| leaves.push((field, leaf)));
    let at = |out: &Vec<u8>| offset + out.len() as u64;
    let each = || row_groups.iter().flat_map(|group| group.chunks.iter().zip(&leaves));
    let column_indexes: Vec<Option<(u64, usize)>> = each()
        .map(|(chunk, (_, leaf))| {
            let start = at(out);
            column_index(chunk, leaf, out).then(|| (start, (at(out) - start) as usize))
        })
        .collect();
    let offset_indexes: Vec<(u64, usize)> = each()
        .map(|(chunk, (_, leaf))| {
            let start = at(out);
            offset_index(chunk, leaf, out);
            (start, (at(out) - start) as usize)
        })
        .collect();
    let footer = out.len();
    structure(out, |w| {
        w.i32(1, 2);
        schema(dataset, w);
        w.i64(3, row_groups.iter().map(|g| g.rows as i64).sum());
        w.structs(4, row_groups.len(), |g, w| {
            let group = &row_groups[g];
            let bytes = group.chunks.iter().map(|c| c.bytes as i64).sum();
            w.structs(1, leaves.len(), |c, w| {
                let index = g * leaves.len() + c;
                w.i64(2, 0);
                w.structure(3, |w| column_metadata(&group.chunks[c], leaves[c], w));
                w.i64(4, offset_indexes[index].0 as i64);
                w.i32(5, offset_indexes[index].1 as i32);
                if let Some((start, length)) = column_indexes[index] {
                    w.i64(6, start as i64);
                    w.i32(7, length as i32);
                }
            });
            w.i64(2, bytes);
            w.i64(3, group.rows as i64);
            w.i64(5, group.chunks.first().map_or(4, |c| c.offset as i64));
            w.i64(6, bytes);
            if let Ok(ordinal) = i16::try_from(g) {
                w.i16(7, ordinal);
            }
        });
        w.binary(6, concat!("sawmill version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // TypeDefinedOrder for every column, without which readers ignore min and max of strings.
        w.structs(7, leaves.len(), |_, w| w.structure(1, |_| {}));
    });
    let length = (out.len() - footer) as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(b"PAR1");
}

fn column_metadata(chunk: &WrittenChunk, (field, leaf): (&Field, &Leaf), w: &mut StructWriter<'_>) {
    let dictionary = chunk.dictionary_bytes > 0;
    w.i32(1, leaf.physical.code());
    w.i32s(2, if dictionary { &[PLAIN, RLE, RLE_DICTIONARY] } else { &[PLAIN, RLE] });
    w.binaries(3, field.path.split('.').map(str::as_bytes).collect::<Vec<_>>().into_iter());
    w.i32(4, 0);
    w.i64(5, chunk.entries as i64);
    w.i64(6, chunk.bytes as i64);
    w.i64(7, chunk.bytes as i64);
    w.i64(9, (chunk.offset + chunk.dictionary_bytes) as i64);
    if dictionary {
        w.i64(11, chunk.offset as i64);
    }
    w.structure(12, |w| {
        w.i64(3, chunk.pages.iter().map(|p| p.nulls as i64).sum());
        if let Some(bounds) = chunk.bounds() {
            let (low, high) = bounds.plain(leaf);
            w.binary(5, &high);
            w.binary(6, &low);
            w.boolean(7, true);
            w.boolean(8, true);
        }
    });
    w.structs(13, 1 + usize::from(dictionary), |i, w| {
        let dictionary_page = dictionary && i == 0;
        w.i32(1, if dictionary_page { 2 } else { 0 });
        w.i32(2, if dictionary && !dictionary_page { RLE_DICTIONARY } else { PLAIN });
        w.i32(3, if dictionary_page { 1 } else { chunk.pages.len() as i32 });
    });
    w.structure(16, |w| {
        if leaf.physical == Physical::Bytes {
            w.i64(1, chunk.pages.iter().map(|p| p.string_bytes as i64).sum());
        }
        let sum = |of: fn(&PageSummary) -> &Vec<u64>| -> Vec<i64> {
            let levels = chunk.pages.first().map_or(0, |p| of(p).len());
            (0..levels).map(|level| chunk.pages.iter().map(|p| of(p)[level] as i64).sum()).collect()
        };
        for (id, histogram) in [(2, sum(|p| &p.repetition_histogram)), (3, sum(|p| &p.definition_histogram))]
        {
            if !histogram.is_empty() {
                w.i64s(id, histogram.into_iter());
            }
        }
    });
}

/// Appends the column index, or nothing where a page that has values has no bounds.
fn column_index(chunk: &WrittenChunk, leaf: &Leaf, out: &mut Vec<u8>) -> bool {
    if chunk.pages.is_empty() || chunk.pages.iter().any(|p| p.bounds.is_none() && !p.is_all_null()) {
        return false;
    }
    let bounds: Vec<(Vec<u8>, Vec<u8>)> = chunk
        .pages
        .iter()
        .map(|p| p.bounds.as_ref().map_or_else(Default::default, |b| b.plain(leaf)))
        .collect();
    let histograms = |of: fn(&PageSummary) -> &Vec<u64>| -> Vec<i64> {
        chunk.pages.iter().flat_map(|p| of(p).iter().map(|n| *n as i64)).collect()
    };
    structure(out, |w| {
        w.booleans(1, chunk.pages.iter().map(PageSummary::is_all_null).collect::<Vec<_>>().into_iter());
        w.binaries(2, bounds.iter().map(|b| b.0.as_slice()));
        w.binaries(3, bounds.iter().map(|b| b.1.as_slice()));
        w.i32(4, boundary_order(chunk));
        w.i64s(5, chunk.pages.iter().map(|p| p.nulls as i64));
        for (id, all) in
            [(6, histograms(|p| &p.repetition_histogram)), (7, histograms(|p| &p.definition_histogram))]
        {
            if !all.is_empty() {
                w.i64s(id, all.into_iter());
            }
        }
    });
    true
}

/// `BoundaryOrder`: 0 unordered, 1 ascending, 2 descending, over the pages that have bounds.
fn boundary_order(chunk: &WrittenChunk) -> i32 {
    let bounds: Vec<&Bounds> = chunk.pages.iter().filter_map(|p| p.bounds.as_ref()).collect();
    let ordered = |above: fn(&Bounds, &Bounds) -> bool| bounds.windows(2).all(|pair| above(pair[0], pair[1]));
    if ordered(|a, b| a.at_most(b)) {
        1
    } else if ordered(|a, b| b.at_most(a)) {
        2
    } else {
        0
    }
}

fn offset_index(chunk: &WrittenChunk, leaf: &Leaf, out: &mut Vec<u8>) {
    let mut offset = chunk.offset + chunk.dictionary_bytes;
    let mut row = 0;
    structure(out, |w| {
        w.structs(1, chunk.pages.len(), |i, w| {
            let page = &chunk.pages[i];
            w.i64(1, offset as i64);
            w.i32(2, page.bytes as i32);
            w.i64(3, row);
            offset += page.bytes as u64;
            row += page.rows as i64;
        });
        if leaf.physical == Physical::Bytes {
            w.i64s(2, chunk.pages.iter().map(|p| p.string_bytes as i64));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_nulls_alone_does_not_take_the_bounds_away() {
        let page = |nulls, bounds| PageSummary {
            bytes: 1,
            rows: 1,
            nulls,
            bounds,
            string_bytes: 0,
            definition_histogram: vec![nulls, 1 - nulls],
            repetition_histogram: Vec::new(),
        };
        let chunk = |pages| WrittenChunk { offset: 4, bytes: 2, dictionary_bytes: 0, entries: 2, pages };
        let some = Some(Bounds::Integers(1, 2));
        assert_eq!(chunk(vec![page(1, None), page(0, some.clone())]).bounds(), some);
        assert_eq!(chunk(vec![page(0, None), page(0, some)]).bounds(), None);
        assert_eq!(chunk(vec![page(1, None)]).bounds(), None);
    }
}
