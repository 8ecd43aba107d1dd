//! Page indexes equal the `parquet` crate's, and only the wanted ones are read.

use std::cell::RefCell;
use std::io;

use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use proptest::prelude::*;
use sawmill_footer::{ColumnIndex, Footer, OffsetIndex, Options, RangeReader};

use crate::samples;

fn file(which: usize) -> Vec<u8> {
    let batch = if which.is_multiple_of(2) { samples::flat(1000) } else { samples::nested(1000) };
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(400))
        .set_data_page_row_count_limit(60)
        .set_write_batch_size(30)
        .set_dictionary_enabled(which < 2)
        .build();
    samples::write(&batch, properties)
}

#[test]
fn page_indexes_equal_the_parquet_crates() {
    for which in 0..4 {
        let file = file(which);
        let bytes = bytes_of(&file);
        let theirs = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .parse_and_finish(&bytes)
            .unwrap();
        let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
        let ours = footer.read_page_indexes(file.as_slice()).unwrap();
        for (group, chunk) in
            (0..footer.num_row_groups()).flat_map(|g| (0..footer.num_columns()).map(move |c| (g, c)))
        {
            let their_offsets = &theirs.offset_index().unwrap()[group][chunk];
            let our_offsets = ours.offset_index(group, chunk).unwrap();
            let their_pages: Vec<_> = their_offsets
                .page_locations()
                .iter()
                .map(|page| (page.offset, page.compressed_page_size, page.first_row_index))
                .collect();
            let our_pages: Vec<_> = our_offsets
                .page_locations()
                .iter()
                .map(|page| (page.offset, page.compressed_page_size, page.first_row_index))
                .collect();
            assert_eq!(our_pages, their_pages);
            assert_eq!(
                our_offsets.unencoded_byte_array_data_bytes(),
                their_offsets.unencoded_byte_array_data_bytes().map(Vec::as_slice)
            );
            let their_index = &theirs.column_index().unwrap()[group][chunk];
            let our_index = ours.column_index(group, chunk);
            let Some(our_index) = our_index else {
                assert!(matches!(
                    their_index,
                    parquet::file::page_index::column_index::ColumnIndexMetaData::NONE
                ));
                continue;
            };
            assert_eq!(our_index.num_pages(), our_pages.len());
            assert_eq!(our_index.boundary_order().number(), their_index.get_boundary_order().unwrap() as i32);
            for page in 0..our_index.num_pages() {
                assert_eq!(our_index.is_null_page(page).unwrap(), their_index.is_null_page(page));
                assert_eq!(our_index.null_counts().map(|counts| counts[page]), their_index.null_count(page));
            }
            let chunk = footer.column_chunk(group, chunk).unwrap();
            assert_eq!(chunk.read_offset_index(file.as_slice()).unwrap(), Some(our_offsets));
            let alone = chunk.read_column_index(file.as_slice()).unwrap().unwrap();
            // The statistics hold bounds too: the least lower bound must equal the chunk's.
            let statistics = chunk.statistics().unwrap().unwrap();
            let bounds = |of: &ColumnIndex| -> Vec<(Vec<u8>, Vec<u8>)> {
                (0..of.num_pages())
                    .filter(|&page| of.is_null_page(page) == Some(false))
                    .map(|page| (of.min_value(page).unwrap().to_vec(), of.max_value(page).unwrap().to_vec()))
                    .collect()
            };
            assert_eq!(bounds(&alone), bounds(&our_index));
            if chunk.element().name() == "i64" {
                assert_eq!(statistics.min_value, Some(bounds(&alone)[0].0.as_slice()));
                assert_eq!(statistics.max_value, bounds(&alone).last().map(|(_, max)| max.as_slice()));
            }
        }
    }
}

fn bytes_of(file: &[u8]) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(file)
}

struct Witness<'a> {
    bytes: &'a [u8],
    read: RefCell<usize>,
}

impl RangeReader for Witness<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        *self.read.borrow_mut() += buffer.len();
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[test]
fn only_the_bytes_of_wanted_indexes_and_small_gaps_between_them_are_read() {
    let file = file(0);
    let footer = Footer::from_file_bytes(&file, &Options::new().columns([2, 8])).unwrap();
    let witness = Witness { bytes: &file, read: RefCell::new(0) };
    footer.read_page_indexes(&witness).unwrap();
    let chunks = || footer.row_groups().flat_map(|group| group.columns());
    let of_columns: Vec<_> = chunks().filter_map(|chunk| chunk.column_index_range().unwrap()).collect();
    let of_offsets: Vec<_> = chunks().filter_map(|chunk| chunk.offset_index_range().unwrap()).collect();
    let mut expected = 0;
    // The two kinds are apart from each other, each in the order of the chunks.
    for wanted in [of_columns, of_offsets] {
        let gaps = wanted.windows(2).map(|pair| pair[1].start - pair[0].end).filter(|gap| *gap <= 16 << 10);
        expected += wanted.iter().map(|range| range.end - range.start).sum::<u64>() + gaps.sum::<u64>();
    }
    assert_eq!(witness.read.into_inner(), expected as usize);
}

#[test]
fn an_index_beyond_the_file_is_an_error_that_names_the_chunk() {
    let file = file(0);
    let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
    let error = footer.read_page_indexes(&file[..1000]).unwrap_err();
    assert!(
        error.path().starts_with("row_groups[") && error.what().contains("within the file's 1000 bytes"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_indexes_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        which in 0_usize..40,
    ) {
        thread_local!(static FILE: Vec<u8> = file(2));
        FILE.with(|file| {
            let footer = Footer::from_file_bytes(file, &Options::new()).unwrap();
            let chunk = footer.row_groups().flat_map(|group| group.columns()).nth(which).unwrap();
            for range in [chunk.offset_index_range().unwrap(), chunk.column_index_range().unwrap()] {
                let range = range.unwrap();
                let mut bytes = file[range.start as usize..range.end as usize].to_vec();
                for (at, value) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
                bytes.truncate(1 + end.index(bytes.len()));
                let _ = OffsetIndex::decode(&bytes).map_err(|error| error.to_string());
                if let Ok(index) = ColumnIndex::decode(bytes) {
                    for page in 0..index.num_pages() {
                        let _ = (index.min_value(page).unwrap(), index.max_value(page).unwrap());
                    }
                }
            }
        });
    }
}
