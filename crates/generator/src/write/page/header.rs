//! The headers of pages.
//!
//! (Parquet format, `parquet.thrift`: `PageHeader`, `DataPageHeader`, `DataPageHeaderV2`,
//! `DictionaryPageHeader`.)

use crate::encode::thrift::{StructWriter, structure};

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

/// The contents of a data page header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPage<'a> {
    pub size: BodySize,
    /// Values and nulls.
    pub entries: usize,
    pub nulls: usize,
    pub rows: usize,
    pub encoding: i32,
    /// The bytes of the encoded levels; only in version 2.
    pub definition_bytes: usize,
    pub repetition_bytes: usize,
    /// Whether the values are compressed; only in version 2.
    pub compressed: bool,
    /// An encoded `Statistics` struct.
    pub statistics: Option<&'a [u8]>,
}

/// Appends a data page header of version 1.
pub(crate) fn data_page(out: &mut Vec<u8>, data: &DataPage<'_>) {
    page(out, DATA_PAGE, data.size, 5, |w| {
        w.i32(1, data.entries as i32);
        w.i32(2, data.encoding);
        w.i32(3, RLE);
        w.i32(4, RLE);
        if let Some(statistics) = data.statistics {
            w.encoded(5, statistics);
        }
    });
}

/// Appends a data page header of version 2.
pub(crate) fn data_page_v2(out: &mut Vec<u8>, data: &DataPage<'_>) {
    page(out, DATA_PAGE_V2, data.size, 8, |w| {
        w.i32(1, data.entries as i32);
        w.i32(2, data.nulls as i32);
        w.i32(3, data.rows as i32);
        w.i32(4, data.encoding);
        w.i32(5, data.definition_bytes as i32);
        w.i32(6, data.repetition_bytes as i32);
        w.boolean(7, data.compressed);
        if let Some(statistics) = data.statistics {
            w.encoded(8, statistics);
        }
    });
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
        data_page_v2(
            &mut out,
            &DataPage {
                size: BodySize { raw: most, stored: most, checksum: Some(u32::MAX >> 1) },
                entries: most,
                nulls: most,
                rows: most,
                encoding: 9,
                definition_bytes: most,
                repetition_bytes: most,
                compressed: true,
                statistics: None,
            },
        );
        assert!(out.len() <= HEADER_ROOM, "{}", out.len());
    }
}
