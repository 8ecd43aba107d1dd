//! Converts footers to metadata of the `parquet` crate 60, the newest; see `interop` for more of 59.

use parquet60::arrow::ProjectionMask;
use parquet60::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet60::file::metadata::{ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader};
use sawmill_footer::{Footer, Options};

use crate::synthetic::{SyntheticColumns, SyntheticFooter};
use crate::{handmade, samples};

fn by_parquet(bytes: &[u8]) -> parquet60::errors::Result<ParquetMetaData> {
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&options))
}

/// Equal by text as well as by `==`: a bound may be NaN.
fn same<T: PartialEq + std::fmt::Debug>(ours: &T, theirs: &T) -> bool {
    ours == theirs || format!("{ours:?}") == format!("{theirs:?}")
}

#[test]
fn metadata_of_whole_and_pruned_footers_equals_the_crates_own() {
    let synthetic = [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed].map(|kind| {
        (format!("{kind:?}"), SyntheticFooter { columns: 12, row_groups: 9, kind, seed: 5 }.bytes())
    });
    let written = samples::all().into_iter().map(|(name, file)| (name, samples::metadata(&file).to_vec()));
    for (name, bytes) in written.chain(synthetic) {
        let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
        let theirs = by_parquet(&bytes).unwrap();
        assert!(same(&footer.to_parquet_60(None).unwrap(), &theirs), "{name}");
        let back = Footer::from_parquet_60(&theirs, &Options::new()).unwrap();
        // Not `theirs`: the crate's writer gives floating-point columns IEEE 754's total order.
        let again = by_parquet(back.bytes()).unwrap();
        assert!(same(&back.to_parquet_60(None).unwrap(), &again), "{name}, and back");
        let leaves = footer.schema().num_leaves();
        let mut compared = 0;
        for leaf in 0..leaves {
            // A column of a map is not converted without the others.
            let Ok(pruned) = footer.to_parquet_60(Some(&[leaf])) else { continue };
            for (ours, theirs) in pruned.row_groups().iter().zip(theirs.row_groups()) {
                assert!(same(ours.column(0), theirs.column(leaf)), "{name}, column {leaf}");
                assert_eq!(ours.ordinal(), theirs.ordinal(), "{name}");
            }
            let orders = |of: &ParquetMetaData| of.file_metadata().column_orders().cloned();
            let of_leaf = orders(&theirs).map(|orders| vec![orders[leaf]]);
            assert_eq!(orders(&pruned), of_leaf, "{name}, column {leaf}");
            compared += 1;
        }
        assert!(compared * 2 > leaves, "{name}: {compared} of {leaves}");
    }
}

#[test]
fn orders_that_only_the_newer_crate_knows_are_kept() {
    // The union's fields: the type's order, IEEE 754 total order, INT96 timestamp order.
    for (field, name) in [(1_u8, "TYPE_DEFINED"), (2, "IEEE_754_TOTAL"), (3, "INT96_TIMESTAMP")] {
        let mut bytes = handmade::footer(2, |writer, _| handmade::chunk(writer, |_| {}));
        // In place of the stop: field 7, a list of two structs, each with one empty struct.
        assert_eq!(bytes.pop(), Some(0));
        let order = [field << 4 | 0x0c, 0, 0];
        bytes.extend([0x09, 14, 0x2c].iter().chain(&order).chain(&order).chain(&[0]));
        let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
        let converted = footer.to_parquet_60(Some(&[1])).unwrap();
        let orders = converted.file_metadata().column_orders().unwrap();
        let theirs = by_parquet(&bytes).unwrap();
        assert_eq!(orders[0], theirs.file_metadata().column_orders().unwrap()[1]);
        assert!(format!("{:?}", orders[0]).contains(name), "{:?}", orders[0]);
    }
}

#[test]
fn the_newer_crates_reader_reads_pruned_metadata() {
    for (name, file) in samples::all().into_iter().filter(|(name, _)| name.starts_with("flat")) {
        let bytes = bytes::Bytes::from(file.clone());
        let footer = Footer::from_file_bytes(&file, &Options::new().columns([3, 8, 14])).unwrap();
        let metadata = footer.to_parquet_60(None).unwrap();
        let metadata = ArrowReaderMetadata::try_new(metadata.into(), ArrowReaderOptions::new()).unwrap();
        let pruned = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata);
        let whole = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let mask = ProjectionMask::leaves(whole.parquet_schema(), [3, 8, 14]);
        let projected = whole.with_projection(mask).build().unwrap();
        for (ours, theirs) in pruned.build().unwrap().zip(projected) {
            assert_eq!(ours.unwrap().columns(), theirs.unwrap().columns(), "{name}");
        }
    }
}
