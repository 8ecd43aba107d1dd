//! Files in which only some columns have page indexes, as written with statistics enabled column by column.

use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;

use crate::handmade;
use crate::page_index_equality::assert_page_indexes;
use crate::samples;
use crate::thrift_writer::ThriftWriter;

fn level(choice: u8) -> EnabledStatistics {
    match choice % 3 {
        0 => EnabledStatistics::None,
        1 => EnabledStatistics::Chunk,
        _ => EnabledStatistics::Page,
    }
}

/// A file with each column's statistics level taken from `levels`.
fn written(nested: bool, rows: usize, rows_per_group: usize, levels: &[u8], settings: u8) -> Vec<u8> {
    let batch = if nested { samples::nested(rows) } else { samples::flat(rows) };
    let version = if settings & 1 == 0 { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 };
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows_per_group))
        .set_data_page_row_count_limit(30)
        .set_write_batch_size(10)
        .set_writer_version(version)
        .set_dictionary_enabled(settings & 2 == 0)
        .set_offset_index_disabled(settings & 12 == 12)
        .set_statistics_enabled(EnabledStatistics::None);
    let schema = parquet::arrow::ArrowSchemaConverter::new().convert(&batch.schema()).unwrap();
    for (column, &choice) in schema.columns().iter().zip(levels) {
        properties = properties.set_column_statistics_enabled(column.path().clone(), level(choice));
    }
    samples::write(&batch, properties.build())
}

#[test]
fn one_column_with_page_statistics_among_many_without_keeps_its_column_index() {
    // As `write_statistics=['id'], write_page_index=True, row_group_size=100`.
    let mut levels = [0; 20];
    levels[4] = 2;
    let file = written(false, 1000, 100, &levels, 0);
    let (of_columns, of_offsets) = assert_page_indexes("one of 17", &file);
    assert_eq!((of_columns, of_offsets), (10, 170));
}

/// The page indexes of a chunk in a generated file.
type Indexed = (bool, bool);

/// A generated file: each column of a row group has an offset index, a column index, both or none, written in
/// one of several orders.
fn made(columns: usize, indexed: &[Indexed], file_offset: i64) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    file.resize(104, 0);
    let mut places = Vec::new();
    for (chunk, &(offset, column)) in indexed.iter().enumerate() {
        let pages = chunk % 4 + 1;
        let mut place = |wanted: bool, bytes: Vec<u8>| {
            wanted.then(|| {
                let at = file.len();
                file.extend_from_slice(&bytes);
                (at as i64, bytes.len() as i32)
            })
        };
        places.push((place(offset, offset_index(pages)), place(column, column_index(pages, chunk))));
    }
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, columns);
    writer.i64(3, 10);
    let groups = indexed.len() / columns;
    writer.list(4, handmade::STRUCT, groups as u64);
    let mut places = places.iter();
    for _ in 0..groups {
        handmade::row_group(&mut writer, columns, |writer, column| {
            writer.begin_element();
            writer.i64(2, file_offset);
            writer.begin(3);
            handmade::required(writer, &format!("c{column}"), 200, 4);
            writer.stop();
            let (offset, column) = *places.next().unwrap();
            for (field, place) in [(4, offset), (6, column)] {
                if let Some((at, len)) = place {
                    writer.i64(field, at);
                    writer.i32(field + 1, len);
                }
            }
            writer.stop();
        });
    }
    writer.stop();
    handmade::file_of(file, writer.bytes())
}

fn offset_index(pages: usize) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.list(1, handmade::STRUCT, pages as u64);
    for page in 0..pages as i64 {
        writer.begin_element();
        writer.i64(1, 4 + 20 * page);
        writer.i32(2, 20);
        writer.i64(3, page);
        writer.stop();
    }
    writer.stop();
    writer.into_bytes()
}

fn column_index(pages: usize, seed: usize) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.list(1, 1, pages as u64);
    writer.raw(&vec![2; pages]);
    for field in [2, 3] {
        writer.list(field, handmade::BINARY, pages as u64);
        (0..pages).for_each(|page| writer.bytes_value(&((seed * 8 + page) as i64).to_le_bytes()));
    }
    writer.i32(4, 1);
    writer.list(5, handmade::I64, pages as u64);
    (0..pages).for_each(|page| writer.integer(page as i64));
    writer.stop();
    writer.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_with_statistics_of_some_columns_keep_all_their_page_indexes(
        nested: bool,
        rows in 1_usize..300,
        rows_per_group in 20_usize..200,
        levels in prop::collection::vec(any::<u8>(), 20),
        settings: u8,
    ) {
        assert_page_indexes("written", &written(nested, rows, rows_per_group, &levels, settings));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_mixture_of_chunks_with_and_without_page_indexes_is_read_by_every_method(
        columns in 1_usize..12,
        indexed in prop::collection::vec(any::<Indexed>(), 1..120),
        file_offset in prop::sample::select(vec![0, 4, 1 << 40]),
    ) {
        let whole = indexed.len() / columns * columns;
        prop_assume!(whole > 0);
        let indexed = &indexed[..whole];
        let (of_columns, of_offsets) = assert_page_indexes("made", &made(columns, indexed, file_offset));
        prop_assert_eq!(of_offsets, indexed.iter().filter(|(offset, _)| *offset).count());
        prop_assert_eq!(of_columns, indexed.iter().filter(|(_, column)| *column).count());
    }
}
