//! Types inside objects and arrays of a table that exists: what they do not take exactly is refused before
//! the first row goes, whatever the object's policy and the transport.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_loader::LoadOptions;
use sawmill_source::{Kind, ParquetFiles};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::{Cluster, append, keyed, run, small, source_of};

/// An object with one field `a`, three times.
fn object(field: ArrayRef) -> ArrayRef {
    let fields = Fields::from(vec![Field::new("a", field.data_type().clone(), true)]);
    Arc::new(StructArray::new(fields, vec![field], None))
}

/// A list with one item in each row.
fn listed(items: ArrayRef) -> ArrayRef {
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(std::iter::repeat_n(1, items.len()));
    let item = Field::new("item", items.data_type().clone(), true);
    Arc::new(ListArray::new(Arc::new(item), offsets, items, None))
}

#[test]
fn text_whose_blanks_a_varchar_would_cut_is_refused_at_any_depth() {
    let cluster = Cluster::any();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab", "a ", "ab  "]));
    let columns = [
        ("VARCHAR(2)", Arc::clone(&texts)),
        ("ARRAY(VARCHAR(2))", listed(Arc::clone(&texts))),
        ("OBJECT(STRICT) AS (\"a\" VARCHAR(2))", object(texts)),
    ];
    for (data_type, column) in columns {
        for transport in [Transport::Http, Transport::Pg] {
            let table = cluster.table();
            let key = "\"sawmill_row_key\" TEXT PRIMARY KEY";
            cluster.sql(&format!(
                "CREATE TABLE doc.\"{table}\" ({key}, \"v\" {data_type}) WITH (number_of_replicas = '0')"
            ));
            let (kept, source) = source_of(vec![("v", Arc::clone(&column))], 10);
            let target = append(cluster.target(&table, keyed(transport)));
            let error = run(&source, &target, &small()).unwrap_err();
            assert!(error.what().contains("CrateDB would cut the blanks"), "{data_type}: {error}");
            assert!(error.place().contains("row 2"), "{data_type}: {error}");
            let rejects = Some(kept.path().join("rejects.ndjson"));
            let target = append(cluster.target(&table, CrateOptions { rejects, ..keyed(transport) }));
            let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
            assert_eq!((report.rows, report.rows_rejected), (2, 1), "{data_type}");
        }
    }
}

fn doubles() -> ArrayRef {
    Arc::new(Float64Array::from(vec![1.5, 2.0, f64::NAN]))
}

fn texts() -> ArrayRef {
    Arc::new(StringArray::from(vec!["7", "x", ""]))
}

fn source(column: ArrayRef) -> (TempDir, ParquetFiles) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..column.len() as i64));
    source_of(vec![("id", ids), ("o", column)], 10)
}

/// Tries to append to a table whose column `o` has this type, and returns the error; the table stays empty.
fn refused(data_type: &str, column: &ArrayRef, transport: Transport) -> String {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"o\" {data_type}) WITH (number_of_replicas = '0')"
    ));
    let (_kept, source) = source(Arc::clone(column));
    let mut options = keyed(transport);
    options.row_key = None;
    let error = run(&source, &append(cluster.target(&table, options)), &small())
        .err()
        .unwrap_or_else(|| panic!("{data_type} took {}", column.data_type()));
    assert_eq!(error.kind(), Kind::Schema, "{error}");
    assert_eq!(cluster.count(&table), 0);
    error.to_string()
}

#[test]
fn a_field_that_would_be_changed_is_refused_under_every_policy_and_transport() {
    for transport in [Transport::Http, Transport::Pg] {
        for policy in ["STRICT", "DYNAMIC", "IGNORED"] {
            for values in [doubles(), texts()] {
                let object_type = format!("OBJECT({policy}) AS (\"a\" BIGINT)");
                let error = refused(&object_type, &object(Arc::clone(&values)), transport);
                assert!(error.contains("o['a']") && error.contains("is BIGINT in the table"), "{error}");
                let list_type = format!("ARRAY({object_type})");
                let error = refused(&list_type, &listed(object(Arc::clone(&values))), transport);
                assert!(error.contains("o['a']") && error.contains("is BIGINT in the table"), "{error}");
                let deep_type = format!("OBJECT({policy}) AS (\"a\" ARRAY({object_type}))");
                let error = refused(&deep_type, &object(listed(object(values))), transport);
                assert!(error.contains("o['a']['a']"), "{error}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_inside_is_named_with_its_place() {
    let refused = |data_type: &str, column: ArrayRef| refused(data_type, &column, Transport::Http);
    let fine = Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(20, 4).unwrap();
    let error = refused("ARRAY(NUMERIC(20,2))", listed(Arc::new(fine.clone())));
    assert!(error.contains("is NUMERIC(20,2) in the table"), "{error}");
    let error = refused("OBJECT(STRICT) AS (\"a\" NUMERIC(20,2))", object(Arc::new(fine)));
    assert!(error.contains("o['a']") && error.contains("NUMERIC(20,2)"), "{error}");
    let error = refused("ARRAY(INTEGER)", listed(Arc::new(Int64Array::from(vec![1, 2, 3]))));
    assert!(error.contains("is INTEGER in the table"), "{error}");
    let error = refused("OBJECT(STRICT) AS (\"b\" BIGINT)", object(texts()));
    assert!(error.contains("o['a']") && error.contains("STRICT"), "{error}");
    let error = refused("OBJECT(STRICT) AS (\"a\" BIGINT)", texts());
    assert!(error.contains("OBJECT(STRICT) AS (\"a\" BIGINT)"), "{error}");
    let error = refused("OBJECT(STRICT) AS (\"a\" BIGINT)", listed(object(texts())));
    assert!(error.contains("is OBJECT(STRICT)"), "{error}");
    // CrateDB takes the type of a new field from its first value, and of a float that may be the text "NaN".
    let error = refused("OBJECT(DYNAMIC)", object(doubles()));
    assert!(error.contains("o['a']") && error.contains("ADD COLUMN"), "{error}");
}

#[test]
fn what_fits_inside_arrives_unchanged() {
    let integers = || -> ArrayRef { Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MIN)])) };
    let wide = || -> ArrayRef { Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN)])) };
    let cases: Vec<(&str, ArrayRef, serde_json::Value)> = vec![
        ("OBJECT(STRICT) AS (\"a\" BIGINT, \"b\" TEXT)", object(integers()), json!({"a": 1})),
        ("OBJECT(STRICT) AS (\"a\" NUMERIC(20,2))", object(integers()), json!({"a": 1.00})),
        ("OBJECT(DYNAMIC) AS (\"a\" DOUBLE PRECISION)", object(doubles()), json!({"a": 1.5})),
        ("OBJECT(DYNAMIC)", object(texts()), json!({"a": "7"})),
        ("OBJECT(IGNORED)", object(doubles()), json!({"a": 1.5})),
        // No type is declared, so that both ends of 64 bits are values like others.
        ("OBJECT(IGNORED)", object(wide()), json!({"a": i64::MAX})),
        ("ARRAY(BIGINT)", listed(integers()), json!([1])),
        ("ARRAY(OBJECT(STRICT) AS (\"a\" BIGINT))", listed(object(integers())), json!([{"a": 1}])),
    ];
    for transport in [Transport::Http, Transport::Pg] {
        for (data_type, column, first) in &cases {
            let cluster = Cluster::any();
            let table = cluster.table();
            cluster.sql(&format!(
                "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY, \"o\" {data_type}) WITH (number_of_replicas = '0')"
            ));
            let (_kept, source) = source(Arc::clone(column));
            let mut options = keyed(transport);
            options.row_key = None;
            let target = append(cluster.target(&table, options));
            let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
            assert!(report.verified.unwrap().matches(), "{data_type}");
            assert!(report.notes.iter().all(|note| !note.contains("redone")), "{:?}", report.notes);
            let stored = cluster.sql(&format!("SELECT \"o\" FROM doc.\"{table}\" WHERE \"id\" = 0"));
            assert_eq!(stored[0][0], *first, "{data_type}");
        }
    }
}

#[test]
fn a_list_that_the_table_calls_an_object_is_refused_as_any_other_type() {
    let error = refused("OBJECT(IGNORED)", &listed(texts()), Transport::Http);
    assert!(error.contains("is OBJECT(IGNORED) in the table"), "{error}");
    let map = {
        let mut map =
            builder::MapBuilder::new(None, builder::StringBuilder::new(), builder::Float64Builder::new());
        map.keys().append_value("k");
        map.values().append_value(1.5);
        map.append(true).unwrap();
        Arc::new(map.finish()) as ArrayRef
    };
    assert!(matches!(map.data_type(), DataType::Map(..)));
    let error = refused("ARRAY(OBJECT(STRICT) AS (\"key\" TEXT, \"value\" BIGINT))", &map, Transport::Pg);
    assert!(error.contains("o['value']") && error.contains("BIGINT"), "{error}");
}
