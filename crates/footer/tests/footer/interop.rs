//! The `parquet` crate's metadata made of a footer: equal to its own, and readable when pruned.

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, arrow_reader::ArrowReaderBuilder};
use sawmill_footer::{Footer, Options};

use crate::equality::by_parquet;
use crate::samples;

#[test]
fn metadata_made_of_a_footer_equals_the_parquet_crates_own() {
    for (name, file) in samples::all() {
        println!("{name}");
        let bytes = samples::metadata(&file);
        let footer = Footer::decode(bytes, &Options::new()).unwrap();
        let theirs = by_parquet(bytes).unwrap();
        assert_eq!(footer.to_parquet_metadata(None).unwrap(), theirs);
        let back = Footer::from_parquet_metadata(&theirs, &Options::new()).unwrap();
        assert_eq!(back.to_parquet_metadata(None).unwrap(), theirs);
    }
}

fn read(file: &[u8], metadata: ArrowReaderMetadata) -> Vec<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Bytes::copy_from_slice(file), metadata);
    builder.build().unwrap().map(|batch| batch.unwrap()).collect()
}

/// What the crate's own reader gives of some leaves.
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
            let metadata = footer.to_parquet_metadata(None).unwrap();
            assert_eq!(metadata.file_metadata().schema_descr().num_columns(), leaves.len());
            let whole = Footer::from_file_bytes(&file, &Options::new().row_groups(1..3)).unwrap();
            assert_eq!(whole.to_parquet_metadata(Some(leaves)).unwrap(), metadata);
            let metadata = ArrowReaderMetadata::try_new(metadata.into(), ArrowReaderOptions::new()).unwrap();
            assert_eq!(read(&file, metadata), expected(&file, leaves, vec![1, 2]));
        }
    }
}

#[test]
fn a_map_without_its_values_and_a_column_not_decoded_are_errors() {
    let file = samples::write(&samples::nested(100), samples::settings().remove(0).1);
    let footer = Footer::from_file_bytes(&file, &Options::new().columns([0, 3])).unwrap();
    let error = footer.to_parquet_metadata(None).unwrap_err();
    assert!(error.what().contains("all columns of the map `counts`"), "{error}");
    let error = footer.to_parquet_metadata(Some(&[1])).unwrap_err();
    assert!(error.what().contains("column 1, which is not"), "{error}");
}
