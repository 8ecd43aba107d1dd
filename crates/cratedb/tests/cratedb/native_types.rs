//! Types that no Arrow type means: made on request, filled from every form of their values, and compared.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_loader::LoadOptions;
use sawmill_source::{Kind, ParquetFiles};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{Cluster, append, keyed, run, small, source_of, verify};

fn typed(types: &[(&str, &str)], transport: Transport) -> CrateOptions {
    let types = types.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect();
    CrateOptions { types, ..keyed(transport) }
}

fn texts(values: [Option<&str>; 3]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Lists of doubles.
fn lists<const N: usize>(values: [Option<&[f64]>; N]) -> ArrayRef {
    let values = values.map(|list| list.map(|list| list.iter().copied().map(Some).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(values))
}

fn wkb(x: f64, y: f64) -> Vec<u8> {
    [&[1, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat()
}

/// A struct of latitude and longitude.
fn places() -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("lat", DataType::Float64, true),
        Field::new("lon", DataType::Float64, true),
    ]);
    let numbers = |values: [f64; 3]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let nulls = Some(vec![true, false, true].into());
    Arc::new(StructArray::new(fields, vec![numbers([-50.7, 0.0, 90.0]), numbers([7.1, 0.0, -180.0])], nulls))
}

const TYPES: [(&str, &str); 9] = [
    ("list", "geo_point"),
    ("place", "geo_point"),
    ("wkt", "geo_point"),
    ("wkb", "geo_point"),
    ("fixed", "float_vector(3)"),
    ("doubles", "FLOAT_VECTOR(2)"),
    ("address", "ip"),
    ("bits", "bit(8)"),
    ("letters", "char(3)"),
];

/// Three rows, the second of NULLs, numbered from `first` on.
fn source(first: i64) -> (TempDir, ParquetFiles) {
    let floats = [Some([0.1f32, -2.5, 1e-10]), None, Some([0.0, 3.0, f32::MAX])];
    let floats = floats.map(|vector| vector.map(|vector| vector.map(Some)));
    let points = [Some(wkb(7.1, -50.7)), None, Some(wkb(-180.0, 90.0))];
    source_of(
        vec![
            ("i", Arc::new(Int64Array::from_iter_values(first..first + 3))),
            ("list", lists([Some(&[7.1, -50.7]), None, Some(&[-180.0, 90.0])])),
            ("place", places()),
            ("wkt", texts([Some("POINT (7.1 -50.7)"), None, Some("point(-180 9e1)")])),
            ("wkb", Arc::new(BinaryArray::from_iter(points))),
            ("fixed", Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(floats, 3))),
            ("doubles", lists([Some(&[0.1, 2.0]), None, Some(&[0.0, -1.5])])),
            ("address", texts([Some("2001:0DB8::0:1"), None, Some("::ffff:192.0.2.1")])),
            ("bits", texts([Some("00001111"), None, Some("10000000")])),
            ("letters", texts([Some("a"), None, Some("é\"c")])),
        ],
        10,
    )
}

#[test]
fn every_form_of_a_value_arrives_over_both_transports_and_is_compared() {
    let mut lines = Vec::new();
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let (_kept, first) = source(0);
        let target = cluster.target(&table, typed(&TYPES, transport));
        let verified = LoadOptions { verify: true, ..small() };
        let report = run(&first, &target, &verified).unwrap();
        assert!(report.verified.unwrap().matches());
        let way = match transport {
            Transport::Pg => "transport pg: 3 rows by UNNEST over the PostgreSQL wire",
            _ => "transport http: 3 rows; --transport http",
        };
        assert_eq!(report.notes.iter().map(|note| &**note).collect::<Vec<_>>(), [way]);
        assert!(verify(&first, &target).matches());
        // An existing table has its types already.
        let (_kept, second) = source(3);
        let report = run(&second, &append(cluster.target(&table, keyed(transport))), &verified).unwrap();
        assert!(report.rows == 3 && report.verified.unwrap().matches());
        let names = TYPES.map(|(name, _)| format!("\"{name}\"")).join(", ");
        // Without a limit the server rounds points.
        let rows = format!("SELECT {names} FROM \"doc\".\"{table}\" ORDER BY \"i\" LIMIT 10");
        lines.push(cluster.sql(&rows));
    }
    let (here, far) = (json!([7.1, -50.7]), json!([-180.0, 90.0]));
    assert_eq!(lines[0][0][..4], [here.clone(), here.clone(), here.clone(), here]);
    assert_eq!(lines[0][2][..4], [far.clone(), far.clone(), far.clone(), far]);
    assert_eq!(
        lines[0][0][5..],
        [json!([0.1, 2.0]), json!("2001:db8::1"), json!("B'00001111'"), json!("a  ")]
    );
    assert_eq!(lines[0][2][6..], [json!("192.0.2.1"), json!("B'10000000'"), json!("é\"c")]);
    assert_eq!(lines[0][1], vec![Value::Null; 9]);
    assert_eq!(lines[0][..3], lines[0][3..], "the append brings the same");
    assert_eq!(lines[0], lines[1], "both transports bring the same");
}

/// A triangle as well-known binary.
fn triangle() -> Vec<u8> {
    let numbers = [0.0f64, 0.0, 4.0, 0.0, 4.0, 4.5, 0.0, 0.0].map(f64::to_le_bytes);
    [&[1, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0][..], &numbers.concat()].concat()
}

#[test]
fn shapes_arrive_from_text_and_bytes_over_both_transports_and_are_compared() {
    let stored =
        json!({"type": "Polygon", "coordinates": [[[0.0, 0.0], [4.0, 0.0], [4.0, 4.5], [0.0, 0.0]]]});
    let geojson = r#"{"coordinates":[[[0,0],[4,0],[4,4.5],[0,0]]],"type":"Polygon","bbox":[0,0,4,4.5]}"#;
    let wkt = "POLYGON ((0 0, 4 0, 4 4.5, 0 0))";
    let columns = |first: i64| {
        let bytes = [Some(triangle()), None, Some(wkb(7.1, -50.7))];
        source_of(
            vec![
                ("i", Arc::new(Int64Array::from_iter_values(first..first + 3)) as ArrayRef),
                ("wkt", texts([Some(wkt), None, Some("point(7.1 -50.7)")])),
                ("json", texts([Some(geojson), None, Some("POINT (7.1 -50.7)")])),
                ("wkb", Arc::new(BinaryArray::from_iter(bytes))),
            ],
            10,
        )
    };
    let types = [("wkt", "geo_shape"), ("json", "geo_shape"), ("wkb", "GEO_SHAPE")];
    let point = json!({"type": "Point", "coordinates": [7.1, -50.7]});
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        let verified = LoadOptions { verify: true, ..small() };
        let (_kept, first) = columns(0);
        let target = cluster.target(&table, typed(&types, transport));
        assert!(target.ddl(&first).unwrap().contains("\"wkt\" GEO_SHAPE"));
        assert!(run(&first, &target, &verified).unwrap().verified.unwrap().matches());
        assert!(verify(&first, &target).matches());
        // An existing table has its types already.
        let (_kept, second) = columns(3);
        let report = run(&second, &append(cluster.target(&table, keyed(transport))), &verified).unwrap();
        assert!(report.rows == 3 && report.verified.unwrap().matches());
        let rows =
            format!("SELECT \"wkt\", \"json\", \"wkb\" FROM \"doc\".\"{table}\" ORDER BY \"i\" LIMIT 10");
        let rows = cluster.sql(&rows);
        assert_eq!(rows[0], vec![stored.clone(); 3]);
        assert_eq!(rows[1], vec![Value::Null; 3]);
        assert_eq!(rows[2], vec![point.clone(); 3]);
        assert_eq!(rows[..3], rows[3..], "the append brings the same");
    }
}

#[test]
fn a_value_that_the_type_does_not_hold_is_refused_with_its_row_and_column() {
    let bytes = |values: [&[u8]; 3]| Arc::new(BinaryArray::from(values.to_vec())) as ArrayRef;
    let cases = [
        ("geo_point", lists([Some(&[1.0, 2.0]), None, Some(&[1.0, 2.0, 3.0])]), "has 3 items"),
        ("geo_point", lists([Some(&[1.0, 2.0]), None, Some(&[180.5, 2.0])]), "longitude 180.5"),
        ("geo_point", texts([Some("POINT (1 2)"), None, Some("POINT Z (1 2 3)")]), "is not a point"),
        ("geo_point", bytes([&wkb(1.0, 2.0), &wkb(1.0, 2.0), b"\x01\x02\0\0\0"]), "in WKB"),
        ("geo_shape", texts([Some("POINT (1 2)"), None, Some("POINT Z (1 2 3)")]), "is not a shape"),
        ("geo_shape", texts([Some("POINT (1 2)"), None, Some("LINESTRING (1 1)")]), "has one position"),
        ("geo_shape", bytes([&wkb(1.0, 2.0), &wkb(1.0, 2.0), b"\x01\x02\0\0\0"]), "in WKB"),
        ("float_vector(2)", lists([Some(&[1.0, 2.0]), None, Some(&[1.0])]), "has 1 items"),
        ("float_vector(2)", lists([Some(&[1.0, 2.0]), None, Some(&[1.0, 1e300])]), "is not finite"),
        ("ip", texts([Some("192.0.2.1"), None, Some("192.0.2.256")]), "is not an IPv4 or IPv6 address"),
        ("bit(4)", texts([Some("0101"), None, Some("01011")]), "has 5 bits"),
        ("bit(4)", texts([Some("0101"), None, Some("01a1")]), "other characters than 0 and 1"),
        ("char(3)", texts([Some("abc"), None, Some("abc ")]), "has 4 characters"),
    ];
    for (data_type, column, expected) in cases {
        for transport in [Transport::Http, Transport::Pg] {
            let cluster = Cluster::any();
            let table = cluster.table();
            let (kept, source) = source_of(vec![("v", Arc::clone(&column))], 10);
            let options = typed(&[("v", data_type)], transport);
            let error = run(&source, &cluster.target(&table, options.clone()), &small()).unwrap_err();
            assert!(error.what().contains(expected) && error.to_string().contains("\"v\""), "{error}");
            assert!(error.place().contains("row 2"), "{data_type}: {error}");
            let rejects = Some(kept.path().join("rejects.ndjson"));
            let target = cluster.target(&cluster.table(), CrateOptions { rejects, ..options });
            let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
            assert_eq!((report.rows, report.rows_rejected), (2, 1), "{data_type}");
        }
    }
}

#[test]
fn a_type_that_cannot_hold_the_column_is_refused_before_the_first_row() {
    let cluster = Cluster::any();
    let (_kept, source) = source(0);
    let refused = |types: &[(&str, &str)], expected: &str| {
        let target = cluster.target(&cluster.table(), typed(types, Transport::Http));
        let error = run(&source, &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Schema);
        assert!(error.what().contains(expected), "{error}");
    };
    refused(&[("i", "ip")], "IP cannot hold values of the type Int64");
    refused(&[("fixed", "geo_shape")], "GEO_SHAPE cannot hold values of the type");
    refused(&[("fixed", "float_vector(4)")], "FLOAT_VECTOR(4) cannot hold");
    refused(&[("wkb", "bit(12)")], "BIT(12) cannot hold");
    refused(&[("wkt", "geometry")], "\"geometry\" is not one of geo_point");
    refused(&[("nothing", "ip")], "there is no column \"nothing\"");
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"sawmill_row_key\" TEXT PRIMARY KEY, \"i\" BIGINT, \"v\" FLOAT_VECTOR(2)) \
         WITH (number_of_replicas = '0')"
    ));
    let (_kept, source) = source_of(vec![("v", lists([Some(&[1.0, 2.0])]))], 10);
    let target = append(cluster.target(&table, typed(&[("v", "float_vector(3)")], Transport::Http)));
    let error = run(&source, &target, &small()).unwrap_err();
    assert!(error.what().contains("the table has FLOAT_VECTOR(2), not FLOAT_VECTOR(3)"), "{error}");
}

#[test]
fn bytes_are_bits_and_a_new_table_shows_its_types() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let (_kept, source) = source_of(
        vec![("b", Arc::new(BinaryArray::from(vec![b"\x0f\x80".as_slice(), b"\0\0"])) as ArrayRef)],
        10,
    );
    let target = cluster.target(&table, typed(&[("b", "bit(16)")], Transport::Pg));
    assert!(target.ddl(&source).unwrap().contains("\"b\" BIT(16)"));
    let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
    assert!(report.verified.unwrap().matches());
    let rows = cluster.sql(&format!("SELECT \"b\" FROM \"doc\".\"{table}\" ORDER BY \"sawmill_row_key\""));
    assert_eq!(rows, [[json!("B'0000111110000000'")], [json!("B'0000000000000000'")]]);
}
