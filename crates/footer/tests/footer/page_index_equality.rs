//! Compares page indexes across all methods and with the `parquet` crate's.

use parquet::data_type::AsBytes;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use sawmill_footer::{ColumnIndex, Footer, Method, OffsetIndex, Options};

use crate::everything::{everything, page_indexes, page_indexes_one_by_one};
use crate::methods::OTHERS;
use crate::samples;

/// Asserts that every method decodes the same footer and the same page indexes of a file: together and one by
/// one, decoded completely and through an index, and equal to the `parquet` crate's if it can read them.
/// Returns the number of column indexes and offset indexes.
pub fn assert_page_indexes(name: &str, file: &[u8]) -> (usize, usize) {
    let footer = assert_methods_read_the_same_page_indexes(name, file);
    equal_the_crates(name, &footer, file)
}

/// Asserts that every method decodes the same footer and the same page indexes of a file, or finds the same
/// fault.
pub fn assert_methods_read_the_same_page_indexes(name: &str, file: &[u8]) -> Footer {
    let by = |method| Footer::from_file_bytes(file, &Options::new().method(method));
    let scalar = by(Method::Scalar);
    let expected = everything(&scalar);
    let scalar = scalar.unwrap_or_else(|error| panic!("{name}: {error}"));
    let expected_indexes = page_indexes_one_by_one(&scalar, file);
    for method in OTHERS.into_iter().chain([Method::Scalar]) {
        let other = by(method);
        assert_same(&format!("{name}, {method:?}"), &expected, &everything(&other));
        let found = page_indexes(&other.unwrap(), file);
        assert_same(&format!("{name}, page indexes, {method:?}"), &expected_indexes, &found);
    }
    scalar
}

fn assert_same(name: &str, expected: &str, found: &str) {
    if expected != found {
        let differs = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
        let (expected, found) = differs.unwrap_or((expected, found));
        panic!("{name}\nexpected {expected:.2000}\nfound    {found:.2000}");
    }
}

/// The crate's page indexes; `None` if it cannot read some of them.
fn by_parquet(file: &[u8], columns: PageIndexPolicy, offsets: PageIndexPolicy) -> Option<ParquetMetaData> {
    let reader =
        ParquetMetaDataReader::new().with_column_index_policy(columns).with_offset_index_policy(offsets);
    reader.parse_and_finish(&bytes::Bytes::copy_from_slice(file)).ok()
}

fn equal_the_crates(name: &str, footer: &Footer, file: &[u8]) -> (usize, usize) {
    let ours = footer.read_page_indexes(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let chunks =
        || (0..footer.num_row_groups()).flat_map(|group| (0..footer.num_columns()).map(move |c| (group, c)));
    let (mut of_columns, mut of_offsets) = (0, 0);
    for (group, column) in chunks() {
        of_columns += usize::from(ours.column_index(group, column).is_some());
        of_offsets += usize::from(ours.offset_index(group, column).is_some());
    }
    // The crate drops both kinds if one chunk lacks an offset index: read each kind separately.
    if let Some(theirs) = by_parquet(file, PageIndexPolicy::Optional, PageIndexPolicy::Skip)
        && let Some(theirs) = theirs.column_index()
    {
        for (group, column) in chunks() {
            let place = format!("{name}, row group {group}, column {column}");
            assert_column_index(&place, ours.column_index(group, column), &theirs[group][column]);
        }
    }
    if let Some(theirs) = by_parquet(file, PageIndexPolicy::Skip, PageIndexPolicy::Required)
        && let Some(theirs) = theirs.offset_index()
    {
        for (group, column) in chunks() {
            let place = format!("{name}, row group {group}, column {column}");
            assert_offset_index(&place, ours.offset_index(group, column), &theirs[group][column]);
        }
    }
    (of_columns, of_offsets)
}

fn assert_offset_index(place: &str, ours: Option<OffsetIndex>, theirs: &OffsetIndexMetaData) {
    let ours = ours.unwrap_or_else(|| panic!("{place}: no offset index"));
    let found: Vec<_> = ours
        .page_locations()
        .iter()
        .map(|page| (page.offset, page.compressed_page_size, page.first_row_index))
        .collect();
    let expected: Vec<_> = theirs
        .page_locations()
        .iter()
        .map(|page| (page.offset, page.compressed_page_size, page.first_row_index))
        .collect();
    assert_eq!(found, expected, "{place}");
    let sizes = theirs.unencoded_byte_array_data_bytes().map(Vec::as_slice);
    assert_eq!(ours.unencoded_byte_array_data_bytes(), sizes, "{place}");
}

fn assert_column_index(place: &str, ours: Option<ColumnIndex>, theirs: &ColumnIndexMetaData) {
    use ColumnIndexMetaData as Theirs;
    if matches!(theirs, Theirs::NONE) {
        assert!(ours.is_none(), "{place}: {ours:?}");
        return;
    }
    let ours = ours.unwrap_or_else(|| panic!("{place}: no column index"));
    let pages = ours.num_pages();
    assert_eq!(pages as u64, theirs.num_pages(), "{place}");
    assert_eq!(Some(ours.boundary_order().number()), theirs.get_boundary_order().map(|order| order as i32));
    assert_eq!(ours.null_counts(), theirs.null_counts().map(Vec::as_slice), "{place}");
    for page in 0..pages {
        assert_eq!(ours.is_null_page(page), Some(theirs.is_null_page(page)), "{place}");
        let histogram = |all: Option<&[i64]>| -> Option<Vec<i64>> {
            let all = all?;
            let levels = all.len() / pages;
            Some(all[page * levels..(page + 1) * levels].to_vec())
        };
        let repetitions = theirs.repetition_level_histogram(page).map(<[i64]>::to_vec);
        let definitions = theirs.definition_level_histogram(page).map(<[i64]>::to_vec);
        assert_eq!(histogram(ours.repetition_level_histograms()), repetitions, "{place}");
        assert_eq!(histogram(ours.definition_level_histograms()), definitions, "{place}");
        macro_rules! bounds {
            ($index:expr) => {
                [
                    $index.min_value(page).map(|min| min.as_bytes().to_vec()),
                    $index.max_value(page).map(|max| max.as_bytes().to_vec()),
                ]
            };
        }
        let expected = match theirs {
            Theirs::NONE => unreachable!("handled above"),
            Theirs::BOOLEAN(index) => bounds!(index),
            Theirs::INT32(index) => bounds!(index),
            Theirs::INT64(index) => bounds!(index),
            Theirs::INT96(index) => bounds!(index),
            Theirs::FLOAT(index) => bounds!(index),
            Theirs::DOUBLE(index) => bounds!(index),
            Theirs::BYTE_ARRAY(index) => bounds!(index),
            Theirs::FIXED_LEN_BYTE_ARRAY(index) => bounds!(index),
        };
        if ours.is_null_page(page) == Some(false) {
            let found = [ours.min_value(page), ours.max_value(page)].map(|bound| bound.map(<[u8]>::to_vec));
            assert_eq!(found, expected, "{place}, page {page}");
        }
    }
}

/// The sample files, in every layout.
#[test]
fn all_methods_and_the_parquet_crate_agree_on_page_indexes_of_all_samples() {
    for (name, file) in samples::all() {
        assert_page_indexes(&name, &file);
    }
}
