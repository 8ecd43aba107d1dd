//! Builds a column chunk: leaf buffers in, encoded pages and their footer metadata out.
//!
//! The body of a page is encoded, or compressed, directly into its final place. The size of the header
//! depends on the body, so it is written afterwards, into a gap before the body. A finished chunk is a list
//! of pieces of one buffer, written with one gathering write.

use std::ops::Range;

use sawmill_profile::span;

use crate::draw::text::person_name;
use crate::encode::bloom_filter::Hashes;
use crate::encode::dictionary_page::DictionaryPage;
use crate::encode::levels::{bit_width, encode_indices};
use crate::encode::physical::physical;
use crate::encode::statistics::Bounds;
use crate::encode::thrift::structure;
use crate::encode::values::Encoding;
use crate::error::{Error, Result};
use crate::layout::file_options::PageVersion;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Field, Leaf};
use crate::write::page::header::{BodySize, DataPage, HEADER_ROOM, data_page, dictionary_page};
use crate::write::page::maker::PageMaker;
use crate::write::page::rows::PageRows;
use crate::write::plan::{ColumnPlan, FilePlan};
use crate::write::statistics::statistics;

/// The largest body of a page; its header stores the size in 31 bits.
const MAX_BODY: usize = i32::MAX as usize - 1024;

/// The metadata of one data page, for footer and page indexes.
#[derive(Debug)]
pub(crate) struct PageSummary {
    /// Header and body.
    pub bytes: usize,
    pub rows: usize,
    pub encoding: Encoding,
    pub nulls: u64,
    pub bounds: Option<Bounds>,
    /// Whether it has entries and all of them are null.
    pub all_null: bool,
    /// The bytes of its strings, for byte array columns.
    pub string_bytes: u64,
    /// The number of entries for each level; empty if the column has no such levels.
    pub definition_histogram: Vec<u64>,
    pub repetition_histogram: Vec<u64>,
}

/// The pages of one column in one row group.
#[derive(Debug, Default)]
pub(crate) struct ColumnChunk {
    buffer: Vec<u8>,
    /// The parts of the buffer that form the chunk, in order.
    pieces: Vec<Range<usize>>,
    /// The bytes of the dictionary page; 0 without one.
    pub dictionary_bytes: usize,
    pub pages: Vec<PageSummary>,
    /// Entries: values and nulls.
    pub entries: u64,
    /// The bytes of all pages before compression.
    pub raw_bytes: usize,
    /// The Bloom filter with its header; empty without one.
    pub bloom: Vec<u8>,
    hashes: Hashes,
    dictionary: DictionaryPage,
    /// The bytes of the last page's body before compression.
    last_body: usize,
    /// The dictionary has become too large: later pages are plain.
    without_dictionary: bool,
    /// Whether it uses the dictionary of all names; the first page decides.
    names: Option<bool>,
}

impl ColumnChunk {
    /// Empties it for the next row group; it keeps its buffer.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.pieces.clear();
        self.dictionary_bytes = 0;
        self.pages.clear();
        self.entries = 0;
        self.raw_bytes = 0;
        self.bloom.clear();
        self.hashes.clear();
        self.dictionary.clear();
        self.without_dictionary = false;
        self.names = None;
    }

    /// The bytes of all its pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(Range::len).sum()
    }

    /// Its pages, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &self.buffer[piece.clone()])
    }

    /// Appends `rows` as one page, or as several if one would be too large.
    ///
    /// # Errors
    /// The codec fails, or a single row is too large for a page.
    pub(crate) fn add_rows(&mut self, maker: &mut PageMaker<'_>, rows: &PageRows<'_>) -> Result<()> {
        let limit = maker.plan.options.page_bytes as usize;
        // Assuming rows as large as in the previous page.
        let expected = self.pages.last().map_or(0, |last| self.last_body / last.rows.max(1) * rows.rows);
        let size = if rows.rows > 1 && expected > limit {
            expected
        } else {
            match self.add_page(maker, rows)? {
                None => return Ok(()),
                Some(size) => size,
            }
        };
        let parts = size.div_ceil(limit).clamp(2, rows.rows);
        for part in 0..parts {
            let range = rows.rows * part / parts..rows.rows * (part + 1) / parts;
            self.add_rows(maker, &rows.cut(range))?;
        }
        Ok(())
    }

    /// Appends `rows` as one page. If the body is too large and there are several rows, appends nothing and
    /// returns the size of the body.
    fn add_page(&mut self, maker: &mut PageMaker<'_>, rows: &PageRows<'_>) -> Result<Option<usize>> {
        let plan = maker.plan;
        let leaf = rows.leaf;
        self.begin_with_dictionary(maker, rows)?;
        let bounds = if plan.chunk_statistics() { Bounds::new(leaf, &rows.values) } else { None };
        let nulls = rows.entries() - rows.values.len();
        maker.statistics.clear();
        if plan.header_statistics() {
            structure(&mut maker.statistics, |w| statistics(w, nulls as i64, bounds.as_ref(), leaf));
        }

        let start = self.buffer.len();
        let place = start + HEADER_ROOM + maker.statistics.len();
        let mut page = self.encode_body(maker, rows, place)?;
        if page.size.raw > plan.options.page_bytes as usize && rows.rows > 1 {
            self.buffer.truncate(start);
            return Ok(Some(page.size.raw));
        }
        page.size.stored = self.buffer.len() - place;
        if page.size.raw.max(page.size.stored) > MAX_BODY {
            let what = format!("one row takes {} bytes of a page", page.size.raw);
            let place = format!("column {}", rows.field.path);
            return Err(Error::spec(what, place, "a page must be smaller than 2 GiB: shorten the values"));
        }
        page.size.checksum = self.checksum(plan, place);

        maker.header.clear();
        let in_header = plan.header_statistics().then_some(maker.statistics.as_slice());
        data_page(&mut maker.header, plan.options.page_version, &page, in_header);
        let piece = self.put_header(&maker.header, place);
        self.last_body = page.size.raw;
        self.raw_bytes += maker.header.len() + page.size.raw;
        self.entries += page.entries as u64;
        let (definition_histogram, repetition_histogram) = match plan.chunk_statistics() {
            true => (rows.definition_histogram(), rows.repetition_histogram()),
            false => Default::default(),
        };
        self.pages.push(PageSummary {
            bytes: piece.len(),
            rows: rows.rows,
            encoding: page.encoding,
            nulls: nulls as u64,
            bounds,
            all_null: page.entries > 0 && nulls == page.entries,
            string_bytes: page.string_bytes,
            definition_histogram,
            repetition_histogram,
        });
        self.pieces.push(piece);
        self.without_dictionary = page.encoding == Encoding::Dictionary && self.dictionary.is_too_large()
            || self.without_dictionary;
        Ok(None)
    }

    /// Before the first page: appends the dictionary if its values are known before the rows are.
    fn begin_with_dictionary(&mut self, maker: &mut PageMaker<'_>, rows: &PageRows<'_>) -> Result<()> {
        let column = maker.plan.columns[rows.leaf.index];
        if column.sorted_dictionary && self.dictionary_bytes == 0 {
            self.sorted_dictionary_page(maker, rows)?;
        }
        if column.name_dictionary && self.names.is_none() {
            let values = rows.values.len() as f64 / rows.rows as f64 * maker.group_rows as f64;
            let names = person_name::dictionary_pays_off(values);
            self.names = Some(names);
            if names {
                self.name_dictionary_page(maker, (rows.field, rows.leaf))?;
            }
        }
        Ok(())
    }

    /// Encodes the body of a page to `place` in the buffer, and compresses it unless it is too large for a
    /// page of several rows.
    fn encode_body(
        &mut self,
        maker: &mut PageMaker<'_>,
        rows: &PageRows<'_>,
        place: usize,
    ) -> Result<DataPage> {
        let options = &maker.plan.options;
        // Both buffers are moved out, so the encoders can borrow the other fields.
        let mut out = std::mem::take(&mut self.buffer);
        let mut raw = std::mem::take(&mut maker.body);
        out.resize(place, 0);
        raw.clear();
        let second = options.page_version == PageVersion::V2;
        let compresses = !maker.codec(rows.leaf).compressor.is_none();
        // Version 1 compresses levels together with values, version 2 never compresses levels.
        let levels = if compresses && !second { &mut raw } else { &mut out };
        let before = levels.len();
        rows.repetition_block(!second, levels);
        let repetition_bytes = levels.len() - before;
        rows.definition_block(!second, levels);
        let definition_bytes = levels.len() - before - repetition_bytes;
        let values = if compresses { &mut raw } else { &mut out };
        let (encoding, string_bytes) =
            self.encode_values(maker, rows, maker.plan.columns[rows.leaf.index], values);
        let size = out.len() - place + raw.len();
        let mut compressed = false;
        if compresses && (size <= options.page_bytes as usize || rows.rows == 1) {
            let levels = out.len();
            let _compressing = span("compress");
            let compressor = &mut maker.codec(rows.leaf).compressor;
            compressor.compress(&raw, &mut out).map_err(|e| Error::page(&e, &rows.field.path))?;
            compressed = true;
            if second && out.len() - levels >= raw.len() {
                // Version 2 may store values uncompressed if a codec does not make them smaller.
                out.truncate(levels);
                out.extend_from_slice(&raw);
                compressed = false;
            }
        }
        maker.body = raw;
        self.buffer = out;
        let entries = rows.entries();
        Ok(DataPage {
            // The stored size is known when the page is kept.
            size: BodySize { raw: size, stored: 0, checksum: None },
            entries,
            nulls: entries - rows.values.len(),
            rows: rows.rows,
            encoding,
            definition_bytes,
            repetition_bytes,
            string_bytes,
            compressed,
        })
    }

    /// Appends the values. Returns their encoding and the total length of strings.
    fn encode_values(
        &mut self,
        maker: &mut PageMaker<'_>,
        rows: &PageRows<'_>,
        column: ColumnPlan,
        out: &mut Vec<u8>,
    ) -> (Encoding, u64) {
        if column.bloom.is_none() {
            // Directly from codes.
            match (&*rows.values, rows.leaf.template()) {
                (ValueBuffer::Names(codes), _) if self.names == Some(true) => {
                    return (Encoding::Dictionary, person_name::encode_indices(codes, out) as u64);
                }
                (ValueBuffer::Names(codes), _) if column.encoding == Encoding::Plain => {
                    return (Encoding::Plain, person_name::render_plain(codes, out) as u64);
                }
                (ValueBuffer::Ids(ids), Some(template)) if column.encoding == Encoding::Plain => {
                    return (Encoding::Plain, template.render_plain(ids, out) as u64);
                }
                _ => {}
            }
        }
        if column.bloom.is_some() || !column.sorted_dictionary {
            let values = physical(rows.leaf, &rows.values, &mut maker.physical);
            if column.bloom.is_some() {
                self.hashes.add(values);
            }
            if !column.sorted_dictionary {
                let encoding = match column.encoding {
                    Encoding::Dictionary if self.without_dictionary => Encoding::Plain,
                    encoding => encoding,
                };
                if encoding == Encoding::Dictionary {
                    maker.indices.clear();
                    self.dictionary.indices(values, &mut maker.indices);
                    let most = self.dictionary.len().saturating_sub(1) as u32;
                    encode_indices(&maker.indices, bit_width(most), out);
                } else {
                    encoding.encode(values, out);
                }
                return (encoding, values.string_bytes() as u64);
            }
        }
        let ValueBuffer::Indices(indices) = &*rows.values else {
            debug_assert!(false, "a sorted dictionary without indices");
            return (Encoding::Dictionary, 0);
        };
        let entries = rows.leaf.dictionary();
        encode_indices(indices, bit_width(entries.len().saturating_sub(1) as u32), out);
        let bytes = if !rows.leaf.is_byte_array() || !maker.plan.chunk_statistics() {
            0
        } else if entries.len() <= indices.len() {
            maker.counts.clear();
            maker.counts.resize(entries.len(), 0);
            for index in indices {
                maker.counts[*index as usize] += 1;
            }
            maker.counts.iter().zip(entries).map(|(n, entry)| n * entry.len() as u64).sum()
        } else {
            indices.iter().map(|i| entries[*i as usize].len() as u64).sum()
        };
        (Encoding::Dictionary, bytes)
    }

    /// Appends the dictionary of listed values; their indices were drawn.
    fn sorted_dictionary_page(&mut self, maker: &mut PageMaker<'_>, rows: &PageRows<'_>) -> Result<()> {
        let entries = rows.leaf.dictionary();
        let mut body = std::mem::take(&mut maker.body);
        body.clear();
        for entry in entries {
            if rows.leaf.is_byte_array() {
                body.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            }
            body.extend_from_slice(entry);
        }
        let written = self.dictionary_page(maker, &body, entries.len(), (rows.field, rows.leaf));
        maker.body = body;
        written
    }

    /// Appends the dictionary of all names. Compressing it takes longer than a row group of indices, so it is
    /// compressed only once.
    fn name_dictionary_page(&mut self, maker: &mut PageMaker<'_>, column: (&Field, &Leaf)) -> Result<()> {
        let names = person_name::dictionary();
        let codec = maker.codec(column.1);
        if codec.compressor.is_none() {
            return self.dictionary_page(maker, names, person_name::count(), column);
        }
        if codec.names.is_empty() {
            let compressed = codec.compressor.compress(names, &mut codec.names);
            compressed.map_err(|e| Error::page(&e, &column.0.path))?;
        }
        let body = self.buffer.len() + HEADER_ROOM;
        self.buffer.resize(body, 0);
        self.buffer.extend_from_slice(&codec.names);
        self.put_dictionary(maker, body, names.len(), person_name::count());
        Ok(())
    }

    /// Adds a dictionary page of `n` values before all other pages.
    fn dictionary_page(
        &mut self,
        maker: &mut PageMaker<'_>,
        values: &[u8],
        n: usize,
        (field, leaf): (&Field, &Leaf),
    ) -> Result<()> {
        let body = self.buffer.len() + HEADER_ROOM;
        self.buffer.resize(body, 0);
        let compressor = &mut maker.codec(leaf).compressor;
        compressor.compress(values, &mut self.buffer).map_err(|e| Error::page(&e, &field.path))?;
        self.put_dictionary(maker, body, values.len(), n);
        Ok(())
    }

    /// Makes a dictionary page whose body begins at `body` in the buffer.
    fn put_dictionary(&mut self, maker: &mut PageMaker<'_>, body: usize, raw: usize, n: usize) {
        maker.header.clear();
        let checksum = self.checksum(maker.plan, body);
        let size = BodySize { raw, stored: self.buffer.len() - body, checksum };
        dictionary_page(&mut maker.header, size, n);
        let piece = self.put_header(&maker.header, body);
        self.dictionary_bytes = piece.len();
        self.raw_bytes += maker.header.len() + raw;
        self.pieces.insert(0, piece);
    }

    /// Completes the chunk with its dictionary page, if it has one, and its Bloom filter.
    ///
    /// # Errors
    /// The codec fails.
    pub(crate) fn finish(&mut self, maker: &mut PageMaker<'_>, column: usize) -> Result<()> {
        let plan = maker.plan;
        if self.dictionary.used {
            let mut body = std::mem::take(&mut maker.body);
            body.clear();
            self.dictionary.encode(&mut body);
            let n = self.dictionary.len();
            self.dictionary_page(maker, &body, n, plan.leaves[column])?;
            maker.body = body;
        }
        if let Some(false_positives) = plan.columns[plan.leaves[column].1.index].bloom {
            self.hashes.filter(false_positives, &mut self.bloom);
        }
        Ok(())
    }

    /// The checksum of the body that begins at `body` in the buffer, if pages have checksums.
    fn checksum(&self, plan: &FilePlan<'_>, body: usize) -> Option<u32> {
        plan.options.page_checksums.then(|| crc32fast::hash(&self.buffer[body..]))
    }

    /// Writes a header into the gap before `body`. Returns the range of the page.
    fn put_header(&mut self, header: &[u8], body: usize) -> Range<usize> {
        let start = body - header.len();
        self.buffer[start..body].copy_from_slice(header);
        start..self.buffer.len()
    }
}
