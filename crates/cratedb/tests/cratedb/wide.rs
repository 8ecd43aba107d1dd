//! Rows of any width: every request is far smaller than the server allows, and a row that fits into none is
//! an error before the load.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, StringArray};
use sawmill_cratedb::{CrateDb, CrateOptions, LongText, Transport};
use sawmill_loader::{Block, LoadOptions};
use sawmill_source::{Kind, Source};

use crate::cluster::{Cluster, keyed, run, small, source_of};

/// `http.max_content_length` of a server with its default configuration.
const MAX: usize = 104_857_600;

/// Columns of text, each so wide in every row. Every fourth byte is written as two.
fn wide(rows: usize, columns: usize, width: usize) -> Vec<(String, ArrayRef)> {
    let text = "wide \"tx".chars().cycle().take(width).collect::<String>();
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows)));
    (0..columns).map(|i| (format!("c{i}"), Arc::clone(&array))).collect()
}

fn options(transport: Transport) -> CrateOptions {
    CrateOptions { long_text: LongText::Noindex, ..keyed(transport) }
}

#[test]
fn no_request_is_longer_than_the_server_takes_whatever_the_width_of_rows() {
    for (rows, columns, width) in [(20_000, 2, 600), (40, 3, 400_000), (3, 2, 12_000_000), (2, 5, 15_000_000)]
    {
        for transport in [Transport::Http, Transport::Pg] {
            let cluster = Cluster::standin();
            let columns = wide(rows, columns, width);
            let columns = columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect();
            let (_kept, source) = source_of(columns, 20_000);
            let target = cluster.target("wide", options(transport));
            // As large as batches can be asked for.
            let loading = LoadOptions { batch_bytes: usize::MAX, unit_rows: 20_000, ..small() };
            let report = run(&source, &target, &loading).unwrap();
            assert_eq!(report.rows, rows as u64);
            let standin = cluster.standin.as_ref().unwrap();
            assert!(standin.largest() <= MAX, "{} bytes", standin.largest());
            if transport == Transport::Http {
                let one = columns_bytes(width);
                assert!(standin.largest() <= CrateDb::MAX_BATCH_BYTES.max(one * 5) + 4096);
            }
        }
    }
}

fn columns_bytes(width: usize) -> usize {
    width + width / 8 + 16
}

#[test]
fn rows_and_columns_of_a_batch_keep_within_its_bytes_each() {
    let cluster = Cluster::standin();
    // Short as JSON, long in binary; and texts, which are the same in both.
    let ones: ArrayRef = Arc::new(Int64Array::from_iter_values(std::iter::repeat_n(1, 5_000)));
    let decimals = Decimal128Array::from_iter_values(std::iter::repeat_n(7, 5_000));
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(38, 1).unwrap());
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..5_000).map(|i| "\n".repeat(i % 90))));
    for array in [ones, decimals, texts] {
        let columns: Vec<(String, ArrayRef)> =
            (0..40).map(|i| (format!("c{i}"), Arc::clone(&array))).collect();
        let columns = columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect();
        let (_kept, source) = source_of(columns, 5_000);
        let target = cluster.target("t", options(Transport::Pg));
        const BYTES: usize = 64 * 1024;
        let mut encoder = target.encoder(&source, BYTES, true).unwrap();
        let mut blocks = 0;
        let mut look = |block: Block| {
            // The columns' headers come on top.
            assert!(block.bytes.len() <= BYTES && block.wire_bytes() <= BYTES as u64 + 41 * 20);
            blocks += 1;
            Ok(())
        };
        let unit = source.plan(10_000).into_iter().flatten().next().unwrap();
        let mut reader = source.reader(1_000);
        reader.start(&unit).unwrap();
        encoder.begin_unit(&unit);
        while let Some(batch) = reader.next_batch().unwrap() {
            encoder.encode(&batch, &mut look).unwrap();
        }
        encoder.end_unit(&mut look).unwrap();
        assert!(blocks > 30, "{blocks}");
    }
}

#[test]
fn a_row_that_fits_no_request_is_refused_before_it_is_sent_and_the_others_go_in() {
    let cluster = Cluster::any();
    let mut columns = wide(3, 7, 14_000_000);
    // The middle row is too wide, the others are short.
    for (_, array) in &mut columns {
        let text = StringArray::from(array.to_data());
        *array = Arc::new(StringArray::from(vec!["a", text.value(1), "b"]));
    }
    let columns = columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect();
    let (kept, source) = source_of(columns, 1_000);
    let error =
        run(&source, &cluster.target(&cluster.table(), options(Transport::Http)), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.what().contains("bytes of JSON") && error.place().contains("row 1"), "{error}");
    let rejects = kept.path().join("rejects.ndjson");
    let rejecting = CrateOptions { rejects: Some(rejects.clone()), ..options(Transport::Http) };
    let report = run(&source, &cluster.target(&cluster.table(), rejecting), &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (2, 1));
    assert!(std::fs::read_to_string(rejects).unwrap().contains("bytes of JSON"));
    assert!(cluster.standin.as_ref().is_none_or(|standin| standin.largest() < 4096));
}

#[test]
fn more_than_a_thousand_columns_need_a_parameter_of_the_table_which_the_error_names() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let names: Vec<String> = (0..1200).map(|i| format!("c{i}")).collect();
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let columns = names.iter().map(|name| (name.as_str(), Arc::clone(&column))).collect();
        let (_kept, source) = source_of(columns, 10);
        let table = cluster.table();
        let error = run(&source, &cluster.target(&table, keyed(transport)), &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Schema);
        assert!(error.what().contains("Limit of total columns [1000]"), "{error}");
        assert!(error.advice().contains("--with 'mapping.total_fields.limit=3000'"), "{error}");
        let with = vec![("mapping.total_fields.limit".to_owned(), "3000".to_owned())];
        let options = CrateOptions { with, ..keyed(transport) };
        let loading = LoadOptions { verify: true, ..small() };
        let report = run(&source, &cluster.target(&table, options), &loading).unwrap();
        assert!(report.rows == 2 && report.verified.unwrap().matches());
    }
}
