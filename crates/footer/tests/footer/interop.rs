//! Converts footers to metadata of the `parquet` crate 59: equal to the crate's own, and readable when
//! pruned.

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, arrow_reader::ArrowReaderBuilder};
use parquet::basic::ConvertedType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use proptest::prelude::*;
use sawmill_footer::{ColumnSelector, Footer, FooterBytes, Method, Options, StatisticsPolicy};

use crate::equality::by_parquet;
use crate::handmade;
use crate::methods::OTHERS;
use crate::samples;
use crate::synthetic::{SyntheticColumns, SyntheticFooter};

#[test]
fn metadata_converted_from_a_footer_equals_the_parquet_crates_own() {
    for (name, file) in samples::all() {
        println!("{name}");
        let bytes = samples::metadata(&file);
        let footer = Footer::decode(bytes, &Options::new()).unwrap();
        let theirs = by_parquet(bytes).unwrap();
        assert_eq!(footer.to_parquet_59(None).unwrap(), theirs);
        let back = Footer::from_parquet_59(&theirs, &Options::new()).unwrap();
        assert_eq!(back.to_parquet_59(None).unwrap(), theirs);
    }
}

/// Asserts equality without printing what may be megabytes. Bounds may be NaN, so text counts as well as
/// `==`.
fn assert_same<T: PartialEq + std::fmt::Debug>(ours: &T, theirs: &T, place: &str) {
    assert!(
        ours == theirs || format!("{ours:?}") == format!("{theirs:?}"),
        "{place}: not the crate's metadata"
    );
}

/// Asserts that conversions by every method equal what the crate decodes: of the whole footer, and of its
/// chunks when one column or one row group is left out, which takes another way.
pub fn assert_conversions(name: &str, bytes: &[u8]) {
    let theirs = by_parquet(bytes).unwrap();
    let shared = FooterBytes::from(bytes.to_vec());
    for method in OTHERS.into_iter().chain([Method::Scalar]) {
        let options = Options::new().method(method);
        let footer = Footer::decode(shared.clone(), &options).unwrap();
        let place = format!("{name}, {method:?}");
        assert_same(&footer.to_parquet_59(None).unwrap(), &theirs, &place);
        let (leaves, groups) = (footer.schema().num_leaves(), footer.num_row_groups());
        for left_out in [0, leaves / 2, leaves - 1] {
            let others: Vec<usize> = (0..leaves).filter(|&leaf| leaf != left_out).collect();
            let pruned = match footer.to_parquet_59(Some(&others)) {
                Ok(pruned) => pruned,
                Err(error) => {
                    assert!(error.what().contains("all columns of the map"), "{name}: {error}");
                    continue;
                }
            };
            for (group, their_group) in pruned.row_groups().iter().zip(theirs.row_groups()) {
                for (chunk, &leaf) in group.columns().iter().zip(&others) {
                    assert_same(chunk, their_group.column(leaf), &format!("{place}, column {leaf}"));
                }
            }
        }
        if groups > 1 {
            let footer = Footer::decode(shared.clone(), &options.row_groups(1..groups)).unwrap();
            let rest = footer.to_parquet_59(None).unwrap();
            assert_same(&rest.row_groups().to_vec(), &theirs.row_groups()[1..].to_vec(), &place);
        }
    }
}

#[test]
fn conversions_by_every_method_equal_what_the_crate_decodes() {
    for (name, file) in samples::all() {
        assert_conversions(&name, samples::metadata(&file));
    }
    for kind in [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed] {
        let bytes = SyntheticFooter { columns: 30, row_groups: 40, kind, seed: 3 }.bytes();
        assert_conversions(&format!("{kind:?}"), &bytes);
    }
}

fn read(file: &[u8], metadata: ArrowReaderMetadata) -> Vec<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Bytes::copy_from_slice(file), metadata);
    builder.build().unwrap().map(|batch| batch.unwrap()).collect()
}

/// What the crate's own reader returns for some leaves.
fn expected(file: &[u8], leaves: &[usize], groups: Vec<usize>) -> Vec<RecordBatch> {
    let builder = ArrowReaderBuilder::try_new(Bytes::copy_from_slice(file)).unwrap();
    let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves.iter().copied());
    builder
        .with_projection(mask)
        .with_row_groups(groups)
        .build()
        .unwrap()
        .map(|batch| batch.unwrap())
        .collect()
}

#[test]
fn pruned_metadata_reads_what_a_projection_reads() {
    for (name, file) in samples::all().into_iter().filter(|(name, _)| !name.starts_with("empty")) {
        let projections: &[&[usize]] = match name.starts_with("flat") {
            true => &[
                &[0],
                &[13, 14, 15],
                &[4, 9, 16],
                &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            ],
            false => &[&[0], &[1], &[2], &[3, 4], &[1, 3, 4], &[0, 1, 2, 3, 4]],
        };
        for &leaves in projections {
            println!("{name}: {leaves:?}");
            let options = Options::new().columns(leaves.iter().copied()).row_groups(1..3);
            let footer = Footer::from_file_bytes(&file, &options).unwrap();
            let metadata = footer.to_parquet_59(None).unwrap();
            assert_eq!(metadata.file_metadata().schema_descr().num_columns(), leaves.len());
            let whole = Footer::from_file_bytes(&file, &Options::new().row_groups(1..3)).unwrap();
            assert_eq!(whole.to_parquet_59(Some(leaves)).unwrap(), metadata);
            let metadata = ArrowReaderMetadata::try_new(metadata.into(), ArrowReaderOptions::new()).unwrap();
            assert_eq!(read(&file, metadata), expected(&file, leaves, vec![1, 2]));
        }
    }
}

#[test]
fn a_map_without_its_values_and_a_column_not_decoded_are_errors() {
    let file = samples::write(&samples::nested(100), samples::settings().remove(0).1);
    let footer = Footer::from_file_bytes(&file, &Options::new().columns([0, 3])).unwrap();
    let error = footer.to_parquet_59(None).unwrap_err();
    assert!(error.what().contains("all columns of the map `counts`"), "{error}");
    let error = footer.to_parquet_59(Some(&[1])).unwrap_err();
    assert!(error.what().contains("column 1, which was not decoded"), "{error}");
}

#[test]
fn an_integer_of_unknown_width_is_an_error_of_its_column_and_no_panic() {
    for width in [0_i8, 1, 24, 119, -128] {
        let bytes = handmade::footer_of(|writer| {
            writer.list(2, handmade::STRUCT, 3);
            writer.begin_element();
            writer.binary(4, b"root");
            writer.i32(5, 2);
            writer.stop();
            for name in [b"odd", b"int"] {
                writer.begin_element();
                writer.i32(1, 2);
                writer.i32(3, 0);
                writer.binary(4, name);
                if name == b"odd" {
                    writer.begin(10);
                    writer.begin(10);
                    writer.field(1, 3);
                    writer.raw(&width.to_le_bytes());
                    writer.bool(2, true);
                    writer.stop();
                    writer.stop();
                }
                writer.stop();
            }
        });
        let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
        let error = footer.to_parquet_59(Some(&[0, 1])).unwrap_err();
        assert!(error.what().contains(&format!("bits of `odd`, found {width}")), "{error}");
        let metadata = footer.to_parquet_59(None).unwrap();
        let schema = metadata.file_metadata().schema_descr();
        assert_eq!((schema.num_columns(), schema.column(0).name()), (1, "int"));
    }
}

#[test]
fn file_offsets_of_column_chunks_are_kept() {
    let bytes = handmade::footer(3, |writer, column| {
        writer.begin_element();
        writer.i64(2, 100 * column as i64);
        writer.begin(3);
        handmade::required(writer, &format!("c{column}"), 200, 4);
        writer.stop();
        writer.stop();
    });
    let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
    let ours = footer.to_parquet_59(None).unwrap();
    assert_eq!(ours, by_parquet(&bytes).unwrap());
    let offsets = |metadata: &parquet::file::metadata::ParquetMetaData| -> Vec<i64> {
        metadata.row_group(0).columns().iter().map(|chunk| chunk.file_offset()).collect()
    };
    assert_eq!(offsets(&ours), [0, 100, 200]);
    assert_eq!(offsets(&footer.to_parquet_59(Some(&[0, 2])).unwrap()), [0, 200]);
}

#[test]
fn an_encrypted_column_is_left_out_and_the_others_stay() {
    let bytes = handmade::footer(3, |writer, column| {
        if column == 1 {
            writer.begin_element();
            writer.i64(2, 0);
            writer.binary(9, b"secret");
            writer.stop();
        } else {
            handmade::chunk(writer, |_| {});
        }
    });
    let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
    let metadata = footer.to_parquet_59(None).unwrap();
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<_> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
    assert_eq!(names, ["c0", "c2"]);
    assert_eq!(metadata.row_group(0).num_columns(), 2);
    let error = footer.to_parquet_59(Some(&[1])).unwrap_err();
    assert!(error.what().contains("encrypted column"), "{error}");
}

#[test]
fn deeply_nested_groups_without_columns_are_an_error_without_a_stack_overflow() {
    let bytes = handmade::footer_of(|writer| {
        let depth = 20_000;
        writer.list(2, handmade::STRUCT, depth + 1);
        for level in 0..=depth {
            writer.begin_element();
            writer.binary(4, b"g");
            writer.i32(5, i32::from(level < depth));
            writer.stop();
        }
    });
    if let Ok(footer) = Footer::decode(bytes.as_slice(), &Options::new()) {
        let error = footer.to_parquet_59(None).unwrap_err();
        assert!(error.what().contains("groups deep"), "{error}");
    }
}

#[test]
fn statistics_that_were_not_wanted_are_not_converted() {
    let bytes = SyntheticFooter { columns: 6, row_groups: 3, kind: SyntheticColumns::Mixed, seed: 3 }.bytes();
    let theirs = by_parquet(&bytes).unwrap();
    for (policy, wanted) in [
        (StatisticsPolicy::None, &[][..]),
        (StatisticsPolicy::Columns(vec![ColumnSelector::Index(2), ColumnSelector::Index(5)]), &[2, 5]),
    ] {
        let footer = Footer::decode(bytes.as_slice(), &Options::new().statistics(policy)).unwrap();
        let ours = footer.to_parquet_59(Some(&[1, 2, 4, 5])).unwrap();
        for (ours, theirs) in ours.row_groups().iter().zip(theirs.row_groups()) {
            for (chunk, leaf) in ours.columns().iter().zip([1, 2, 4, 5]) {
                let expected = theirs.column(leaf).statistics().filter(|_| wanted.contains(&leaf));
                assert_eq!(format!("{:?}", chunk.statistics()), format!("{expected:?}"), "{leaf}");
            }
        }
    }
}

#[test]
fn an_optional_field_of_another_type_is_skipped_and_found() {
    let bytes = handmade::footer(2, |writer, column| {
        writer.begin_element();
        writer.i64(2, 0);
        writer.begin(3);
        handmade::required(writer, &format!("c{column}"), 200, 4);
        writer.stop();
        // A bool occupies no bytes: a reader that expects an i64 takes the header that follows for one.
        writer.bool(6, true);
        writer.i32(7, 25);
        writer.stop();
    });
    let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
    let locations = footer.column_chunk(0, 0).unwrap().locations().unwrap();
    assert_eq!((locations.column_index_offset, locations.column_index_length), (None, Some(25)));
    // The conversion is what the crate decodes.
    let metadata = footer.to_parquet_59(Some(&[0])).unwrap();
    assert_eq!(metadata.row_group(0).column(0), by_parquet(&bytes).unwrap().row_group(0).column(0));
    let mut found = Vec::new();
    sawmill_inspect::check(&footer, |finding| found.push(finding.to_string()));
    let expected = "expected the field `column_index_offset` as i64, found bool; it is skipped - \
                    row_groups[0].columns[0].column_index_offset, byte ";
    assert!(found.iter().any(|one| one.starts_with(expected)), "{found:?}");
}

/// Where the data and the indexes of all chunks in the file start.
fn starts(metadata: &ParquetMetaData) -> Vec<i64> {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let here = chunks.filter(|chunk| chunk.file_path().is_none_or(str::is_empty));
    let of_chunk = |chunk: &ColumnChunkMetaData| {
        let data = chunk.data_page_offset();
        let dictionary = chunk.dictionary_page_offset().filter(|at| *at > 0 && (*at < data || data == 0));
        let indexes = [chunk.offset_index_offset(), chunk.column_index_offset(), chunk.bloom_filter_offset()];
        [Some(dictionary.unwrap_or(data))].into_iter().chain(indexes).flatten().collect::<Vec<_>>()
    };
    here.flat_map(of_chunk).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_footers_are_converted_or_rejected(
        which in 0_usize..15,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        leaf in 0_usize..17,
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = samples::all().iter().map(|(_, file)| samples::metadata(file).to_vec()).collect());
        FILES.with(|files| {
            let mut bytes = files[which].clone();
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            if let Ok(footer) = Footer::decode(bytes, &Options::new()) {
                let _ = footer.to_parquet_59(None).map_err(|error| error.to_string());
                let one = footer.to_parquet_59(Some(&[leaf])).map_err(|error| error.to_string());
                if let (Ok(one), Ok(theirs)) = (one, by_parquet(footer.bytes())) {
                    let starts = starts(&theirs);
                    for (ours, theirs) in one.row_groups().iter().zip(theirs.row_groups()) {
                        let (dictionary, data) = (theirs.column(leaf).dictionary_page_offset(), theirs.column(leaf).data_page_offset());
                        // An offset that cannot be is left out.
                        if dictionary.is_some_and(|dictionary| !(1..data).contains(&dictionary)) {
                            continue;
                        }
                        // A negative count is left out.
                        if theirs.column(leaf).num_values() < 0 {
                            continue;
                        }
                        if theirs.column(leaf).compressed_size() <= 0 {
                            let (ours, chunk) = (ours.column(0), theirs.column(leaf));
                            let start = dictionary.unwrap_or(data);
                            let is_here = start > 0 && chunk.file_path().is_none_or(str::is_empty);
                            let next = starts.iter().filter(|next| **next > start && is_here && theirs.num_rows() > 0);
                            let size = next.min().map_or(0, |next| next - start);
                            let found = (ours.dictionary_page_offset(), ours.data_page_offset(), ours.compressed_size());
                            assert_eq!(found, (dictionary, data, size), "up to the next start");
                            continue;
                        }
                        // A decimal without a scale has the scale 0 for us, as the format says, and -1 for them.
                        let leaf_of_theirs = theirs.column(leaf).column_descr();
                        if (leaf_of_theirs.converted_type(), leaf_of_theirs.type_scale()) == (ConvertedType::DECIMAL, -1) {
                            continue;
                        }
                        // Not by `==`: a bound may be NaN.
                        let (ours, theirs) = (format!("{:?}", ours.column(0)), format!("{:?}", theirs.column(leaf)));
                        assert_eq!(ours, theirs);
                    }
                }
            }
        });
    }
}
