//! Files with damage anywhere, in pages, page indexes and footer, are read or rejected with an error that
//! names the file.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::TrackedWrite;
use proptest::prelude::*;
use sawmill_profile::Profile;
use sawmill_source::{Control, ParquetFiles, Result, Source};

const ROWS: usize = 600;

fn good_file(second_version: bool, compressed: bool) -> Vec<u8> {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..ROWS as i32 {
        lists.values().append_slice(&[row, row / 2][..(row % 3).min(2) as usize]);
        lists.append(row % 7 > 0);
    }
    let numbers = 0..ROWS as i64;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(numbers.clone()))),
        ("kind", Arc::new(StringArray::from_iter_values(numbers.clone().map(|n| format!("kind {}", n % 9))))),
        ("amount", Arc::new(Float64Array::from_iter(numbers.map(|n| (n % 5 > 0).then_some(n as f64))))),
        ("parts", Arc::new(lists.finish())),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, name != "id"));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let version = if second_version { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
    let compression = if compressed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(compression)
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
        .set_max_row_group_row_count(Some(400))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn rows_of(source: &dyn Source) -> Result<usize> {
    let mut reader = source.reader(128);
    let mut rows = 0;
    for unit in source.plan(150).iter().flatten() {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.num_rows();
        }
    }
    Ok(rows)
}

/// Reads all rows of a file, or those that pass a condition.
fn read(path: &Path, filtered: bool) -> Result<usize> {
    let files = ParquetFiles::open(&[path])?;
    if !filtered {
        return rows_of(&files);
    }
    let (cancel, profile) = (AtomicBool::new(false), Profile::new());
    let phase = profile.phase("read");
    rows_of(&files.filtered("amount >= 17 and id < 500".parse()?, &Control::new(&cancel, &phase))?)
}

#[test]
fn a_dictionary_that_the_footer_does_not_place_before_its_values_is_named() {
    let good = good_file(false, false);
    let length = u32::from_le_bytes(good[good.len() - 8..][..4].try_into().unwrap()) as usize;
    let data = &good[..good.len() - 8 - length];
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(good.clone())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (leaf, name) in [(0, "id"), (1, "kind"), (2, "amount"), (3, "parts.list.item")] {
        let chunk = metadata.row_group(0).column(leaf);
        for place in [chunk.data_page_offset(), chunk.data_page_offset() + 9, -1, 1 << 40] {
            let mut damaged = metadata.clone().into_builder();
            let mut groups = damaged.take_row_groups();
            let mut group = groups[0].clone().into_builder();
            let mut columns = group.take_columns();
            let chunk = columns[leaf].clone().into_builder().set_dictionary_page_offset(Some(place));
            columns[leaf] = chunk.build().unwrap();
            groups[0] = group.set_column_metadata(columns).build().unwrap();
            let mut bytes = data.to_vec();
            let damaged =
                damaged.set_row_groups(groups).set_column_index(None).set_offset_index(None).build();
            ParquetMetaDataWriter::new(&mut bytes, &damaged).finish().unwrap();
            let path = directory.path().join("damaged.parquet");
            std::fs::write(&path, bytes).unwrap();
            let column = format!("row group 0, column {name:?}");
            // The condition names two of the columns.
            for filtered in [false, true].into_iter().filter(|filtered| !filtered || leaf % 2 == 0) {
                let error = read(&path, filtered).unwrap_err().to_string();
                let is_named = error.contains("dictionary_page_offset") && error.contains(&column);
                assert!(is_named, "{place} {filtered}: {error}");
            }
        }
    }
}

#[test]
fn an_index_that_misplaces_rows_is_refused_where_not_all_rows_are_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("misplaced.parquet");
    for (second_version, leaf, moved) in [(false, 0, 1), (true, 1, -1), (true, 2, 1), (false, 3, -1)] {
        let good = bytes::Bytes::from(good_file(second_version, true));
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        let metadata = reader.parse_and_finish(&good).unwrap();
        let length = u32::from_le_bytes(good[good.len() - 8..][..4].try_into().unwrap()) as usize;
        let mut damaged = metadata.into_builder();
        let mut index = damaged.take_offset_index().unwrap();
        let page = &mut index[0][leaf].page_locations[2];
        let row = page.first_row_index;
        page.first_row_index += moved;
        let damaged = damaged.set_offset_index(Some(index)).build();
        let mut file = TrackedWrite::new(std::fs::File::create(&path).unwrap());
        file.write_all(&good[..good.len() - 8 - length]).unwrap();
        ParquetMetaDataWriter::new_with_tracked(file, &damaged).finish().unwrap();
        let files = ParquetFiles::open(&[&path]).unwrap();
        let second = files.plan(150).into_iter().flatten().nth(1).unwrap();
        let mut within = files.reader(128);
        let begun = within.start(&second).and_then(|()| within.next_batch().map(drop));
        for error in [begun.unwrap_err(), read(&path, true).unwrap_err()] {
            let column = ["id", "kind", "amount", "parts.list.item"][leaf];
            let place = format!("misplaced.parquet, row group 0, column {column:?}");
            assert!(error.place().ends_with(&place), "{error}");
            let what = format!("begins with row {row}, and not {}", row + moved);
            assert!(error.what().contains(&what), "{error}");
        }
        let mut whole = files.reader(128);
        let mut rows = 0;
        for unit in files.plan(ROWS as u64).iter().flatten() {
            whole.start(unit).unwrap();
            while let Some(batch) = whole.next_batch().unwrap() {
                rows += batch.num_rows();
            }
        }
        assert_eq!(rows, ROWS);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn are_read_or_rejected(
        flags in any::<[bool; 3]>(),
        tail in any::<bool>(),
        damage in proptest::collection::vec((0.0..1.0f64, prop_oneof![any::<u8>(), 0..32u8]), 1..4),
    ) {
        let [second_version, compressed, filtered] = flags;
        let mut bytes = good_file(second_version, compressed);
        // Page indexes and the footer are at the end; other tests cover the last eight bytes.
        let length = bytes.len() - 8;
        let from = if tail { length * 2 / 3 } else { 4 };
        for (place, byte) in damage {
            bytes[from + (place * (length - from) as f64) as usize] = byte;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.parquet");
        std::fs::write(&path, &bytes).unwrap();
        if let Err(error) = read(&path, filtered) {
            prop_assert!(error.place().contains("damaged.parquet"), "{error}");
        }
    }
}
