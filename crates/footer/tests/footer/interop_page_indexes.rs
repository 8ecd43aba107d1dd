//! Page indexes in converted metadata equal the ones that the `parquet` crate reads, and a conversion reads only the
//! wanted columns' indexes.

use std::cell::Cell;
use std::io;
use std::path::Path;

use bytes::Bytes;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use sawmill_footer::{FetchedRanges, Footer, Options, PageIndexPolicy, RangeReader};

use crate::samples;

/// Files with several pages a chunk, with and without page indexes, of our samples and of other writers.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = samples::all();
    for (name, batch) in [("flat", samples::flat(1000)), ("nested", samples::nested(1000))] {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(400))
            .set_data_page_row_count_limit(60)
            .set_write_batch_size(30)
            .build();
        files.push((format!("{name}, small pages"), samples::write(&batch, properties)));
    }
    let foreign = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
    for entry in std::fs::read_dir(foreign).unwrap() {
        let path = entry.unwrap().path();
        files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
    }
    files
}

/// Counts the bytes that are read.
struct Counted<'a>(&'a [u8], Cell<u64>);

impl RangeReader for Counted<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.1.set(self.1.get() + buffer.len() as u64);
        self.0.read_exact_at(offset, buffer)
    }
}

fn len_of(ranges: &[std::ops::Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The same tests for both versions of the crate, whose metadata keep page indexes differently.
macro_rules! tests_of {
    ($version:ident, $parquet:ident, $convert:ident, $offsets:ident, $plain:ident, $indexes:expr) => {
        mod $version {
            use super::*;
            use $parquet::file::metadata::{
                PageIndexPolicy as TheirPolicy, ParquetMetaData, ParquetMetaDataOptions,
                ParquetMetaDataReader,
            };

            fn theirs(file: &[u8]) -> ParquetMetaData {
                let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
                ParquetMetaDataReader::new()
                    .with_metadata_options(Some(options))
                    .with_page_index_policy(TheirPolicy::Optional)
                    .parse_and_finish(&Bytes::copy_from_slice(file))
                    .unwrap()
            }

            /// Both indexes of a chunk, as text.
            fn indexes(metadata: &ParquetMetaData, group: usize, column: usize) -> String {
                let indexes: fn(&ParquetMetaData, usize, usize) -> String = $indexes;
                indexes(metadata, group, column)
            }

            #[test]
            fn indexes_of_whole_and_projected_footers_equal_the_crates_own() {
                let mut with_indexes = 0;
                for (name, file) in files() {
                    let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
                    let theirs = theirs(&file);
                    let ours = footer.$convert(None, file.as_slice()).unwrap();
                    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{name}");
                    if footer.num_row_groups() == 0 {
                        continue;
                    }
                    for leaf in 0..footer.schema().num_leaves() {
                        let options = Options::new().columns([leaf]);
                        let projected = Footer::from_file_bytes(&file, &options).unwrap();
                        let counted = Counted(&file, Cell::new(0));
                        // A column of a map is not converted without the others.
                        let Ok(ours) = projected.$convert(None, &counted) else { continue };
                        let ranges = projected.page_index_ranges(&PageIndexPolicy::All).unwrap();
                        // A caller would also fetch small gaps; the conversion reads only the indexes.
                        let chunks = projected.row_groups().flat_map(|group| group.columns());
                        let own = chunks.flat_map(|chunk| {
                            [chunk.offset_index_range().unwrap(), chunk.column_index_range().unwrap()]
                        });
                        let own: Vec<_> = own.flatten().collect();
                        assert_eq!(counted.1.get(), len_of(&own), "{name}, column {leaf}");
                        assert!(len_of(&own) <= len_of(&ranges), "{name}, column {leaf}");
                        with_indexes += usize::from(!ranges.is_empty());
                        for group in 0..footer.num_row_groups() {
                            let (ours, theirs) = (indexes(&ours, group, 0), indexes(&theirs, group, leaf));
                            assert_eq!(ours, theirs, "{name}, row group {group}, column {leaf}");
                        }
                    }
                }
                assert!(with_indexes > 50, "{with_indexes}");
            }

            #[test]
            fn a_caller_with_its_own_reads_fetches_only_the_ranges_of_the_indexes() {
                let (_, file) = files().into_iter().find(|(name, _)| name == "flat, small pages").unwrap();
                let footer = Footer::from_file_bytes(&file, &Options::new().columns([2, 3, 9])).unwrap();
                let mut fetched = FetchedRanges::new(file.len() as u64);
                for range in footer.page_index_ranges(&PageIndexPolicy::All).unwrap() {
                    fetched.add(range.start, file[range.start as usize..range.end as usize].to_vec());
                }
                let (ours, theirs) = (footer.$convert(Some(&[3, 9]), &fetched).unwrap(), theirs(&file));
                assert_eq!(indexes(&ours, 1, 1), indexes(&theirs, 1, 9));
                let error = footer.$convert(None, &FetchedRanges::new(file.len() as u64)).unwrap_err();
                assert!(error.what().contains("these bytes were not fetched"), "{error}");
                let error = footer.$convert(None, &file[..100]).unwrap_err();
                assert!(error.what().contains("within the file's 100 bytes"), "{error}");
            }

            /// A file whose offset index of one chunk, the tenth, begins with these bytes.
            fn damaged(bytes: &[u8]) -> (Vec<u8>, Footer) {
                let (_, mut file) = files().into_iter().find(|(name, _)| name == "flat, small pages").unwrap();
                let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
                let range = footer.column_chunk(1, 9).unwrap().offset_index_range().unwrap().unwrap();
                file[range.start as usize..][..bytes.len()].copy_from_slice(bytes);
                (file, footer)
            }

            #[test]
            fn an_index_that_claims_more_entries_than_it_has_bytes_counts_as_missing() {
                // Lists of 2^31 - 1 page locations take 51 GB.
                let (file, footer) = damaged(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
                let ours = footer.$convert(None, file.as_slice()).unwrap();
                assert_eq!(ours.row_groups(), footer.$plain(None).unwrap().row_groups());
                let whole = footer.$convert(Some(&[3]), file.as_slice()).unwrap();
                assert_eq!(indexes(&whole, 1, 0), indexes(&theirs(&damaged(&[]).0), 1, 3));
            }

            #[test]
            fn pages_outside_of_their_chunk_count_as_missing() {
                // One page at byte 1, of 1 byte.
                let (file, footer) = damaged(&[0x19, 0x1c, 0x16, 2, 0x15, 2, 0x16, 0, 0, 0]);
                let ours = footer.$convert(None, file.as_slice()).unwrap();
                assert!(!indexes(&ours, 1, 9).contains("offset: 1,"));
            }

            #[test]
            fn an_index_that_leaves_out_bytes_of_its_chunk_counts_as_missing() {
                let (file, footer) = damaged(&[]);
                let index = footer.column_chunk(1, 9).unwrap().offset_index_range().unwrap().unwrap();
                let index = &file[index.start as usize..index.end as usize];
                let sound = footer.$convert(None, file.as_slice()).unwrap();
                assert!(indexes(&sound, 1, 9).contains("first_row_index"));
                // The list, its length, the first offset; then the size of that page.
                let size = 3 + index[3..].iter().position(|byte| *byte < 128).unwrap() + 2;
                assert_eq!((index[1], index[2], index[size - 1]), (0x7c, 0x16, 0x15));
                let one_less = [&index[..size], &[index[size] - 2][..]].concat();
                for odd in [one_less.as_slice(), &[0x19, 0x6c], &[0x19, 0x0c, 0]] {
                    let (file, footer) = damaged(odd);
                    let ours = footer.$convert(None, file.as_slice()).unwrap();
                    assert!(!indexes(&ours, 1, 9).contains("first_row_index"), "{odd:?}");
                    let other = footer.$convert(Some(&[3]), file.as_slice()).unwrap();
                    assert_eq!(indexes(&other, 1, 0), indexes(&sound, 1, 3));
                }
            }

            #[test]
            fn without_column_indexes_only_offset_indexes_are_read() {
                let (file, footer) = damaged(&[]);
                let counted = Counted(&file, Cell::new(0));
                let ours = footer.$offsets(Some(&[3]), &counted).unwrap();
                let own = footer.row_groups().map(|group| group.column(3).unwrap());
                let own: Vec<_> = own.map(|chunk| chunk.offset_index_range().unwrap().unwrap()).collect();
                assert_eq!(counted.1.get(), len_of(&own));
                let offsets = |text: &str| text.split_once("OffsetIndexMetaData").unwrap().1.to_owned();
                assert_eq!(offsets(&indexes(&ours, 1, 0)), offsets(&indexes(&theirs(&file), 1, 3)));
            }

            proptest! {
                #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn broken_indexes_are_converted_or_rejected(
                    changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
                ) {
                    thread_local!(static FILE: Vec<u8> =
                        files().into_iter().find(|(name, _)| name == "nested, small pages").unwrap().1);
                    FILE.with(|file| {
                        let footer = Footer::from_file_bytes(file, &Options::new()).unwrap();
                        let ranges = footer.page_index_ranges(&PageIndexPolicy::All).unwrap();
                        let mut broken = file.clone();
                        for (at, value) in &changes {
                            let range = &ranges[at.index(ranges.len())];
                            broken[range.start as usize + at.index((range.end - range.start) as usize)] = *value;
                        }
                        let _ = footer.$convert(None, broken.as_slice()).map_err(|error| error.to_string());
                    });
                }
            }
        }
    };
}

tests_of!(
    version_59,
    parquet,
    to_parquet_59_with_page_indexes,
    to_parquet_59_with_offset_indexes,
    to_parquet_59,
    |metadata, group, column| {
        let offsets = metadata.offset_index().map(|all| &all[group][column]);
        format!("{:?} {offsets:?}", metadata.column_index().map(|all| &all[group][column]))
    }
);
#[cfg(feature = "parquet-60")]
tests_of!(
    version_60,
    parquet60,
    to_parquet_60_with_page_indexes,
    to_parquet_60_with_offset_indexes,
    to_parquet_60,
    |metadata, group, column| {
        let offsets = metadata.page_index().and_then(|all| all.offset_index(group, column));
        format!("{:?} {offsets:?}", metadata.page_index().and_then(|all| all.column_index(group, column)))
    }
);
