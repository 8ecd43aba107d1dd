//! The headers of pages.
//!
//! (Parquet format, `parquet.thrift`: `PageHeader`, `DataPageHeader`, `DataPageHeaderV2`,
//! `DictionaryPageHeader`.)

use crate::encode::thrift::{StructWriter, structure};
use crate::encode::values::Encoding;
use crate::layout::file_options::PageVersion;

/// Encodings of levels and dictionary pages (`parquet.thrift`, `Encoding`).
pub(crate) const PLAIN: i32 = 0;
pub(crate) const RLE: i32 = 3;

/// Page types (`parquet.thrift`, `PageType`).
pub(crate) const DATA_PAGE: i32 = 0;
pub(crate) const DICTIONARY_PAGE: i32 = 2;
pub(crate) const DATA_PAGE_V2: i32 = 3;

/// The longest header without statistics: fifteen fields of at most six bytes and the ends of structs.
pub(crate) const HEADER_ROOM: usize = 96;

/// The bytes of a page's body before and after compression, and their checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodySize {
    pub raw: usize,
    pub stored: usize,
    /// The CRC-32 of the stored body, if pages have checksums.
    pub checksum: Option<u32>,
}

fn page(out: &mut Vec<u8>, kind: i32, size: BodySize, id: i16, header: impl FnOnce(&mut StructWriter<'_>)) {
    structure(out, |w| {
        w.i32(1, kind);
        w.i32(2, size.raw as i32);
        w.i32(3, size.stored as i32);
        if let Some(checksum) = size.checksum {
            w.i32(4, checksum.cast_signed());
        }
        w.structure(id, header);
    });
}

/// An encoded data page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPage {
    pub size: BodySize,
    /// Values and nulls.
    pub entries: usize,
    pub nulls: usize,
    pub rows: usize,
    pub encoding: Encoding,
    /// The bytes of the encoded levels.
    pub definition_bytes: usize,
    pub repetition_bytes: usize,
    /// The bytes of its strings, for byte array columns.
    pub string_bytes: u64,
    /// Whether the values are compressed.
    pub compressed: bool,
}

/// Appends the header of a data page, with an encoded `Statistics` struct.
pub(crate) fn data_page(out: &mut Vec<u8>, version: PageVersion, data: &DataPage, statistics: Option<&[u8]>) {
    let with_statistics = |id: i16, w: &mut StructWriter<'_>| {
        statistics.into_iter().for_each(|statistics| w.encoded(id, statistics));
    };
    match version {
        PageVersion::V1 => page(out, DATA_PAGE, data.size, 5, |w| {
            w.i32(1, data.entries as i32);
            w.i32(2, data.encoding.id());
            w.i32(3, RLE);
            w.i32(4, RLE);
            with_statistics(5, w);
        }),
        PageVersion::V2 => page(out, DATA_PAGE_V2, data.size, 8, |w| {
            w.i32(1, data.entries as i32);
            w.i32(2, data.nulls as i32);
            w.i32(3, data.rows as i32);
            w.i32(4, data.encoding.id());
            w.i32(5, data.definition_bytes as i32);
            w.i32(6, data.repetition_bytes as i32);
            w.boolean(7, data.compressed);
            with_statistics(8, w);
        }),
    }
}

/// Appends the header of a dictionary page with `n` values.
pub(crate) fn dictionary_page(out: &mut Vec<u8>, size: BodySize, n: usize) {
    page(out, DICTIONARY_PAGE, size, 7, |w| {
        w.i32(1, n as i32);
        w.i32(2, PLAIN);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_header_fits_into_its_room() {
        let most = i32::MAX as usize;
        let mut out = Vec::new();
        let page = DataPage {
            size: BodySize { raw: most, stored: most, checksum: Some(u32::MAX >> 1) },
            entries: most,
            nulls: most,
            rows: most,
            encoding: Encoding::ByteStreamSplit,
            definition_bytes: most,
            repetition_bytes: most,
            string_bytes: 0,
            compressed: true,
        };
        data_page(&mut out, PageVersion::V2, &page, None);
        assert!(out.len() <= HEADER_ROOM, "{}", out.len());
    }
}
