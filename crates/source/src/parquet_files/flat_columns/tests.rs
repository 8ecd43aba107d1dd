//! Flat columns are decoded as the `parquet` crate decodes them, or not at all.

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    Int64Array, StringArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;

use super::*;
use crate::parquet_files::schema::read_schema;

/// The properties of a written file.
#[derive(Clone, Debug)]
struct Written {
    rows: usize,
    /// Distinct values, how many consecutive rows have the same value, and in how many rows one is NULL.
    distinct: u64,
    repeats: usize,
    nulls: usize,
    dictionary: bool,
    dictionary_bytes: usize,
    page_rows: usize,
    second_version: bool,
    compressed: bool,
    page_index: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let values = (1..3000usize, prop_oneof![1..4u64, 1..300u64, Just(u64::MAX)], 1..40usize, 0..12usize);
    let pages = (any::<bool>(), prop_oneof![Just(64usize), Just(2000), Just(1 << 20)], 1..1500usize);
    (values, pages, any::<[bool; 3]>()).prop_map(|(values, pages, flags)| {
        let ((rows, distinct, repeats, nulls), (dictionary, dictionary_bytes, page_rows)) = (values, pages);
        let [second_version, compressed, page_index] = flags;
        Written {
            rows,
            distinct,
            repeats,
            nulls,
            dictionary,
            dictionary_bytes,
            page_rows,
            second_version,
            compressed,
            page_index,
        }
    })
}

fn batch(written: &Written) -> RecordBatch {
    let number = |row: usize| {
        let mixed = (row / written.repeats) as u64;
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7) % written.distinct
    };
    let present = |row: usize| {
        written.nulls == 0 || number(row).wrapping_add(row as u64) % (written.nulls as u64 + 1) > 0
    };
    let some = |row: usize| present(row).then(|| number(row));
    let text = |n: u64| match n % 5 {
        0 => String::new(),
        1 => n.to_string(),
        2 => format!("Straße {n}"),
        3 => format!("{n} is more than is in a view"),
        _ => "ö".repeat((n % 200) as usize),
    };
    let decimal = |row: usize, digits: u32| {
        some(row).map(|n| (i128::from(n) - 3) * 99_999_999_977 % 10i128.pow(digits))
    };
    let decimals = |digits: u32| {
        let values = Decimal128Array::from_iter((0..written.rows).map(|row| decimal(row, digits)));
        Arc::new(values.with_precision_and_scale(digits as u8, 2).unwrap())
    };
    let rows = 0..written.rows;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int32", Arc::new(Int32Array::from_iter(rows.clone().map(|row| some(row).map(|n| n as i32))))),
        ("text", Arc::new(StringArray::from_iter(rows.clone().map(|row| some(row).map(|n| n.to_string()))))),
        ("int64", Arc::new(Int64Array::from_iter(rows.clone().map(|row| some(row).map(|n| n as i64))))),
        ("required", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| number(row) as i64)))),
        ("uint32", Arc::new(UInt32Array::from_iter(rows.clone().map(|row| some(row).map(|n| n as u32))))),
        ("uint64", Arc::new(UInt64Array::from_iter(rows.clone().map(some)))),
        ("float", Arc::new(Float32Array::from_iter(rows.clone().map(|row| some(row).map(|n| n as f32))))),
        ("double", Arc::new(Float64Array::from_iter_values(rows.clone().map(|row| number(row) as f64)))),
        ("date", Arc::new(Date32Array::from_iter(rows.clone().map(|row| some(row).map(|n| n as i32))))),
        (
            "stamp",
            Arc::new(
                TimestampMicrosecondArray::from_iter(rows.map(|row| some(row).map(|n| n as i64)))
                    .with_timezone("UTC"),
            ),
        ),
        ("words", Arc::new(StringArray::from_iter((0..written.rows).map(|row| some(row).map(text))))),
        (
            "bytes",
            Arc::new(BinaryArray::from_iter(
                (0..written.rows).map(|row| some(row).map(|n| n.to_le_bytes().repeat((n % 4) as usize))),
            )),
        ),
        ("decimal9", decimals(9)),
        ("decimal15", decimals(15)),
        ("decimal30", decimals(30)),
        (
            "flag",
            Arc::new(BooleanArray::from_iter((0..written.rows).map(|row| some(row).map(|n| n % 2 == 0)))),
        ),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| {
            Field::new(*name, array.data_type().clone(), !matches!(*name, "required" | "double"))
        })
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn write(written: &Written) -> Vec<u8> {
    let version =
        if written.second_version { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    let compression = if written.compressed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        // The encodings that only the second version has are not supported.
        .set_encoding(Encoding::PLAIN)
        .set_compression(compression)
        .set_dictionary_enabled(written.dictionary)
        .set_dictionary_page_size_limit(written.dictionary_bytes)
        .set_data_page_row_count_limit(written.page_rows)
        .set_write_batch_size(64)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(!written.page_index)
        .build();
    let batch = batch(written);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Reads columns from a row on, by this module and by the `parquet` crate; an error if this module decodes
/// nothing.
fn read_both(
    bytes: &[u8],
    places: &[usize],
    from: usize,
    batch_rows: usize,
) -> (Result<Vec<RecordBatch>, NotRead>, Vec<RecordBatch>) {
    let mut file: File = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
    // The page index may be damaged.
    let Ok(derived) = ArrowReaderMetadata::load(&file, options) else {
        return (Err(NotRead), Vec::new());
    };
    let descriptor = derived.metadata().file_metadata().schema_descr();
    let as_read = read_schema(derived.schema(), descriptor, true).unwrap();
    let options = ArrowReaderOptions::new().with_schema(as_read.hint);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(derived.metadata()), options).unwrap();
    let theirs = |places: Vec<usize>| {
        let file = file.try_clone().unwrap();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        builder.with_projection(mask).with_offset(from).with_batch_size(batch_rows).build().ok()
    };
    let ours =
        FlatColumns::open(file.try_clone().unwrap(), &metadata, 0, places, from as u64, batch_rows, theirs);
    let ours = ours.and_then(|mut flat| {
        let mut batches = Vec::new();
        while let Some(batch) = flat.next()? {
            batches.push(batch);
        }
        Ok(batches)
    });
    let theirs = catch_unwind(AssertUnwindSafe(|| {
        theirs(places.to_vec()).map(|batches| batches.map_while(Result::ok).collect::<Vec<_>>())
    }));
    (ours, theirs.ok().flatten().unwrap_or_default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches_are_those_of_the_parquet_crate(
        written in written(),
        start in 0.0..1.0f64,
        batch_rows in 1..1100usize,
        all in any::<bool>(),
    ) {
        let bytes = write(&written);
        let places: Vec<usize> = if all { (0..16).collect() } else { vec![1, 2, 3, 9, 10, 15] };
        let from = (start * written.rows as f64) as usize;
        let (ours, theirs) = read_both(&bytes, &places, from, batch_rows);
        prop_assert_eq!(ours.expect("the columns are flat and have the usual encodings"), theirs);
    }

    #[test]
    fn damaged_files_are_rejected_or_read_with_all_their_rows(
        written in written(),
        damage in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&written);
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
        let data = bytes.len() - 8 - footer;
        for (place, byte) in damage {
            let at = 4 + (place * (data - 4) as f64) as usize;
            bytes[at] = byte;
        }
        if let (Ok(batches), _) = read_both(&bytes, &[2, 3, 6, 10, 11, 14], 0, 1000) {
            prop_assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), written.rows);
            for array in batches.iter().flat_map(RecordBatch::columns) {
                prop_assert!(array.to_data().validate_full().is_ok());
            }
        }
    }

    /// Without the guard around panics of the `parquet` crate.
    #[test]
    fn no_bytes_of_a_page_cause_a_panic(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..20u8], 0..200),
        rows in 0..300u32,
        plain in any::<bool>(),
        levels in prop_oneof![0..40u32, any::<u32>()],
        second_version in any::<bool>(),
        optional in any::<bool>(),
        text in any::<bool>(),
    ) {
        let encoding = if plain { Encoding::PLAIN } else { Encoding::RLE_DICTIONARY };
        let page = if second_version {
            second(&bytes, rows, encoding, levels)
        } else {
            first(&bytes, rows, encoding)
        };
        let pages = [dictionary(&[1, 2, 3]), page.clone()];
        let mut column = PagedColumn::new(Box::new(PageQueue(pages.into())), optional, Words::<u64>::new());
        while let Ok((values, nulls)) = column.read(7) {
            prop_assert_eq!(values.len(), 7 * 8);
            prop_assert!(nulls.is_none_or(|nulls| nulls.len() == 7));
        }
        let pages = [dictionary(&[0x0061_6161_0000_0003, 0]), page];
        let mut column = PagedColumn::new(Box::new(PageQueue(pages.into())), optional, Views::new(text));
        while let Ok((views, nulls)) = column.read(7) {
            let array = column.stored.array(views, 7, nulls);
            prop_assert!(array.to_data().validate_full().is_ok());
        }
    }
}

/// A page reader of the given pages.
struct PageQueue(VecDeque<Page>);

impl Iterator for PageQueue {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for PageQueue {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        Ok(self.0.front().map(|page| PageMetadata {
            num_rows: None,
            num_levels: page.is_data_page().then(|| page.num_values() as usize),
            is_dict: page.is_dictionary_page(),
        }))
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        self.0.pop_front();
        Ok(())
    }
}

fn dictionary(entries: &[u64]) -> Page {
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    Page::DictionaryPage {
        buf: bytes.into(),
        num_values: entries.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    }
}

fn first(bytes: &[u8], rows: u32, encoding: Encoding) -> Page {
    Page::DataPage {
        buf: Bytes::copy_from_slice(bytes),
        num_values: rows,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }
}

fn second(bytes: &[u8], rows: u32, encoding: Encoding, levels: u32) -> Page {
    Page::DataPageV2 {
        buf: Bytes::copy_from_slice(bytes),
        num_values: rows,
        encoding,
        num_nulls: 0,
        num_rows: rows,
        def_levels_byte_len: levels,
        rep_levels_byte_len: 0,
        is_compressed: false,
        statistics: None,
    }
}

#[test]
fn pages_may_be_empty_and_of_different_kinds() {
    let pages = [
        dictionary(&[10, 20]),
        second(&[4 << 1, 1, 1, 2 << 1, 1, 2 << 1, 0], 4, Encoding::RLE_DICTIONARY, 2),
        second(&[], 0, Encoding::PLAIN, 0),
        first(&[], 0, Encoding::RLE_DICTIONARY),
        second(&[3 << 1, 0], 3, Encoding::RLE_DICTIONARY, 2),
        second(&[1 << 1, 1, 30, 0, 0, 0, 0, 0, 0, 0], 1, Encoding::PLAIN, 2),
    ];
    // An empty page of the first version also has the length of its levels.
    let pages = pages.map(|page| match page {
        Page::DataPage { .. } => first(&[0; 4], 0, Encoding::RLE_DICTIONARY),
        page => page,
    });
    let column = || PagedColumn::new(Box::new(PageQueue(pages.to_vec().into())), true, Words::<u64>::new());
    let rows = |(values, nulls): (Buffer, Option<NullBuffer>)| {
        let values = values.typed_data::<u64>().iter().enumerate();
        let rows = values
            .map(|(row, value)| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then_some(*value));
        rows.collect::<Vec<_>>()
    };
    let all = [Some(20), Some(20), Some(10), Some(10), None, None, None, Some(30)];
    assert_eq!(rows(column().read(8).unwrap()), all);
    for skipped in 1..8 {
        let mut column = column();
        column.skip(skipped).unwrap();
        assert_eq!(rows(column.read(8 - skipped).unwrap()), all[skipped..]);
        assert!(column.read(1).is_err(), "the rows have ended");
    }
}

#[test]
fn a_run_of_a_level_that_flat_columns_do_not_have_is_not_read() {
    // Two levels of 1, then of 4.
    for (bytes, read) in [(&[4, 1], true), (&[4, 4], false)] {
        let mut levels = hybrid::Hybrid::new(Bytes::from_static(bytes), 1).unwrap();
        let mut bitmap = arrow_buffer::BooleanBufferBuilder::new(2);
        assert_eq!(levels.bits(2, &mut bitmap).is_ok(), read, "{bytes:?}");
    }
}
