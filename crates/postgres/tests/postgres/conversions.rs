//! The columns of an existing table decide how values are converted: each conversion there and back through a
//! real server, verified by the bytes that the server sends.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{Float64Type, Int8Type, Int64Type};
use arrow_array::*;
use arrow_buffer::i256;
use half::f16;
use sawmill_loader::{LoadReport, Mode};
use sawmill_pgcopy::{Nanoseconds, Nul, ValueOptions, Zone};
use sawmill_source::{Error, Kind, ParquetFiles};

use crate::database::{Database, run, small};
use crate::fixture::file_of;

thread_local! {
    /// The database of a test, and the number of its tables.
    static TABLES: (Database, Cell<u32>) = {
        let database = Database::new();
        let types =
            "CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN small AS integer CHECK (VALUE < 10)";
        database.client().batch_execute(types).unwrap();
        (database, Cell::new(0))
    };
}

/// Appends a column to a new table `(n integer, c KIND)`, compares what arrived, and returns it as text in the order
/// of `n`.
fn append(array: ArrayRef, kind: &str, values: ValueOptions) -> Result<Vec<Option<String>>, Error> {
    TABLES.with(|(database, tables)| {
        let table = format!("t{}", tables.replace(tables.get() + 1));
        let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..array.len() as i32));
        let (_directory, path) = file_of(vec![("n", n), ("c", array)], 1000);
        let mut client = database.client();
        client.batch_execute(&format!("CREATE TABLE {table} (n integer, c {kind})")).unwrap();
        let target = database.target(&table).mode(Mode::Append).values(values);
        let report: LoadReport = run(&ParquetFiles::open(&[path]).unwrap(), &target, &small())?;
        assert!(report.verified.unwrap().matches());
        let rows = client.query(&format!("SELECT c::text FROM {table} ORDER BY n"), &[]).unwrap();
        Ok(rows.iter().map(|row| row.get(0)).collect())
    })
}

#[track_caller]
fn fits(array: impl Array + 'static, kind: &str, expected: &[Option<&str>]) {
    let found = append(Arc::new(array), kind, ValueOptions::default()).unwrap();
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{kind}");
}

fn texts(values: &[&[Option<&str>]]) -> ListArray {
    let mut lists = ListBuilder::new(StringBuilder::new());
    values.iter().for_each(|list| lists.append_value(list.iter().copied()));
    lists.finish()
}

fn in_zone(zone: &str) -> ValueOptions {
    ValueOptions { timezone: Some(zone.parse::<Zone>().unwrap()), ..ValueOptions::default() }
}

/// The error for a value in row 1, after one that fits.
#[track_caller]
fn refuses(array: impl Array + 'static, kind: &str, what: &str) {
    let error = append(Arc::new(array), kind, ValueOptions::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value, "{error}");
    assert!(error.what().contains(what), "{error}");
    assert!(error.place().ends_with("row group 0, row 1, column \"c\""), "{error}");
}

#[test]
fn integers_go_into_narrower_columns_if_each_value_fits() {
    fits(Int64Array::from(vec![Some(i64::from(i32::MAX)), None]), "integer", &[Some("2147483647"), None]);
    fits(UInt64Array::from(vec![i64::MAX as u64]), "bigint", &[Some("9223372036854775807")]);
    fits(Int32Array::from(vec![-32_768]), "smallint", &[Some("-32768")]);
    fits(Int64Array::from(vec![9]), "small", &[Some("9")]);
    fits(Int32Array::from(vec![Some(99), None]), "numeric(2,0)", &[Some("99"), None]);
    fits(Int64Array::from(vec![1 << 53]), "double precision", &[Some("9.007199254740992e+15")]);
    fits(UInt32Array::from(vec![1 << 24]), "real", &[Some("1.6777216e+07")]);
    // Statistics show it before a row is sent.
    let wide = Arc::new(Int64Array::from(vec![1, 1 << 31]));
    let error = append(wide, "integer", ValueOptions::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Schema, "{error}");
    assert!(error.what().contains("has the value 2147483648"), "{error}");
    refuses(UInt64Array::from(vec![1, u64::MAX]), "bigint", "18446744073709551615");
    refuses(Int32Array::from(vec![1, 100]), "numeric(2,0)", "100");
    refuses(Int64Array::from(vec![1, (1 << 53) + 1]), "double precision", "9007199254740993");
}

#[test]
fn floats_go_into_columns_that_hold_them_exactly() {
    let floats =
        vec![Some(1.5), None, Some(f64::NAN), Some(1e-7), Some(-1e22), Some(f64::INFINITY), Some(-0.0)];
    let texts = [
        Some("1.5"),
        None,
        Some("NaN"),
        Some("0.0000001"),
        Some("-10000000000000000000000"),
        Some("Infinity"),
        Some("0"),
    ];
    fits(Float64Array::from(floats), "numeric", &texts);
    fits(Float32Array::from(vec![0.1, f32::NAN]), "numeric(3,2)", &[Some("0.10"), Some("NaN")]);
    fits(Float16Array::from(vec![f16::from_f32(2.5)]), "numeric", &[Some("2.5")]);
    fits(Float64Array::from(vec![0.5, f64::NEG_INFINITY]), "real", &[Some("0.5"), Some("-Infinity")]);
    fits(Float64Array::from(vec![Some(7.0), None]), "integer", &[Some("7"), None]);
    refuses(Float64Array::from(vec![0.5, 0.1]), "real", "0.1");
    refuses(Float64Array::from(vec![0.5, 0.125]), "numeric(5,2)", "3 digits after the decimal point");
    refuses(Float64Array::from(vec![0.5, f64::INFINITY]), "numeric(5,2)", "infinity");
    refuses(Float64Array::from(vec![1.0, 1.5]), "bigint", "1.5");
}

#[test]
fn decimals_change_scale_and_become_integers_if_nothing_is_lost() {
    let decimal = |values: Vec<i128>| Decimal128Array::from(values).with_precision_and_scale(20, 4).unwrap();
    fits(decimal(vec![12_500, -10_000]), "numeric(6,2)", &[Some("1.25"), Some("-1.00")]);
    fits(decimal(vec![70_000]), "integer", &[Some("7")]);
    let wide = Decimal256Array::from(vec![i256::from_i128(1_500)]).with_precision_and_scale(50, 3).unwrap();
    fits(wide, "numeric(2,1)", &[Some("1.5")]);
    refuses(decimal(vec![12_500, 12_501]), "numeric(6,2)", "1.2501");
    refuses(decimal(vec![0, 100_000_000]), "numeric(6,2)", "10000.0000");
    refuses(decimal(vec![0, 15_000]), "bigint", "1.5");
    let small = Decimal128Array::from(vec![999, 12_345]).with_precision_and_scale(5, 5).unwrap();
    refuses(small, "numeric(3,5)", "0.12345 does not fit: the column stores magnitudes below 10^-2");
    fits(Int32Array::from(vec![-1200]), "numeric(3,-2)", &[Some("-1200")]);
    refuses(Int32Array::from(vec![100, 1234]), "numeric(3,-2)", "not a multiple of 10^2");
}

#[test]
fn dates_become_the_timestamp_at_their_beginning_and_zones_are_never_guessed() {
    fits(Date32Array::from(vec![Some(-1), None]), "timestamp", &[Some("1969-12-31 00:00:00"), None]);
    let refused = |array: ArrayRef, kind: &str| {
        let error = append(array, kind, ValueOptions::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Schema);
        assert!(error.what().contains("zone"), "{error}");
    };
    refused(Arc::new(TimestampMicrosecondArray::from(vec![0])), "timestamptz");
    refused(Arc::new(TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC")), "timestamp");
    refused(Arc::new(Date32Array::from(vec![0])), "timestamptz");
}

#[test]
fn text_is_converted_to_the_type_of_the_column() {
    let text = |values: &[Option<&str>], kind: &str, expected: &[Option<&str>]| {
        fits(StringArray::from(values.to_vec()), kind, expected);
    };
    text(
        &[Some("2024-02-29"), None, Some("0044-03-15 BC"), Some("infinity")],
        "date",
        &[Some("2024-02-29"), None, Some("0044-03-15 BC"), Some("infinity")],
    );
    text(&[Some("23:59:59.5"), Some("24:00")], "time", &[Some("23:59:59.5"), Some("24:00:00")]);
    text(
        &[Some("2024-01-01T10:00:00.000001"), Some("1999-12-31 23:59")],
        "timestamp",
        &[Some("2024-01-01 10:00:00.000001"), Some("1999-12-31 23:59:00")],
    );
    text(
        &[Some("2024-01-01T10:00:00+02:00"), Some("2024-01-01 10:00:00Z")],
        "timestamptz",
        &[Some("2024-01-01 08:00:00+00"), Some("2024-01-01 10:00:00+00")],
    );
    text(
        &[Some("{A0EEBC99-9C0B4EF8-BB6D6BB9BD380A11}")],
        "uuid",
        &[Some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
    );
    text(&[Some("{\"b\":[1.10,1e2],\"a\":null,\"b\": 2}")], "jsonb", &[Some("{\"a\": null, \"b\": 2}")]);
    text(&[Some("{\"b\":1,  \"a\":null}")], "json", &[Some("{\"b\":1,  \"a\":null}")]);
    text(
        &[Some("10.1.2.3/8"), Some("::ffff:1.2.3.4")],
        "inet",
        &[Some("10.1.2.3/8"), Some("::ffff:1.2.3.4/128")],
    );
    text(&[Some("10.0.0.0/8"), Some("2001:db8::/32")], "cidr", &[Some("10.0.0.0/8"), Some("2001:db8::/32")]);
    text(&[Some(" -7 ")], "smallint", &[Some("-7")]);
    text(
        &[Some("1.50e3"), Some("NaN"), Some("-Infinity"), Some("0.000")],
        "numeric",
        &[Some("1500"), Some("NaN"), Some("-Infinity"), Some("0.000")],
    );
    text(&[Some("12.50"), Some("1e1")], "numeric(4,1)", &[Some("12.5"), Some("10.0")]);
    text(&[Some("0.1"), Some("nan")], "double precision", &[Some("0.1"), Some("NaN")]);
    text(&[Some("0.1")], "real", &[Some("0.1")]);
    text(&[Some("Yes"), Some("f"), Some("of")], "boolean", &[Some("true"), Some("false"), Some("false")]);
    text(&[Some("\\xdeadBEEF"), Some("\\x")], "bytea", &[Some("\\xdeadbeef"), Some("\\x")]);
    text(&[Some("ab"), Some("abc  "), Some("ü")], "char(3)", &[Some("ab"), Some("abc"), Some("ü")]);
    text(&[Some("abc"), Some("äöü")], "varchar(3)", &[Some("abc"), Some("äöü")]);
    text(&[Some("a name")], "name", &[Some("a name")]);
    text(&[Some("sad"), None], "mood", &[Some("sad"), None]);
    let small = [Some("0.00999"), Some("-0.00001")];
    text(&small, "numeric(3,5)", &small);
    text(
        &[Some("99900"), Some("-1200"), Some("1e2")],
        "numeric(3,-2)",
        &[Some("99900"), Some("-1200"), Some("100")],
    );
}

#[test]
fn intervals_are_read_in_each_style_in_which_the_server_writes_them() {
    let database = Database::new();
    let mut client = database.client();
    let mut written = |style: &str| -> Vec<Option<String>> {
        client.batch_execute(&format!("SET intervalstyle = {style}")).unwrap();
        let query = "SELECT make_interval(months => m, days => d, secs => s)::text FROM (VALUES \
                       (1, 14, -3, 14706.7::float8), (2, -13, 0, 0), (3, 0, 0, -360000.000001), (4, 0, 3, 7200), \
                       (5, 0, 0, 0), (6, -14, -3, -14706.5), (7, 0, -1, 7200), (8, 14, 0, 0), (9, 0, -1, 0), \
                       (10, 1, 0, -1), (11, -1, 0, 1), (12, 0, 0, 0.5)) AS v(n, m, d, s) ORDER BY n";
        client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let default = written("postgres");
    for style in ["postgres", "postgres_verbose", "sql_standard", "iso_8601"] {
        let texts: StringArray = written(style).into_iter().collect();
        let found = append(Arc::new(texts), "interval", ValueOptions::default()).unwrap();
        assert_eq!(found, default, "{style}");
    }
}

#[test]
fn text_that_is_not_a_value_of_the_type_is_refused_with_its_row_and_the_reason() {
    let bad = |value: &str, good: &str, kind: &str, what: &str| {
        refuses(StringArray::from(vec![good, value]), kind, what);
    };
    bad("2023-02-29", "2024-02-29", "date", "day does not exist");
    bad("01/02/2024", "2024-02-29", "date", "YYYY-MM-DD");
    bad("10:00:00.0000001", "10:00", "time", "microseconds");
    bad("2024-01-01 10:00:00+01", "2024-01-01", "timestamp", "zone");
    bad("2024-01-01 10:00:00", "2024-01-01 10:00Z", "timestamptz", "no time zone");
    bad("not-a-uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "uuid", "hexadecimal");
    bad("{\"a\": tru}", "{}", "jsonb", "byte 6");
    bad("{a: 1}", "{}", "json", "expected a key");
    bad("10.0.0.1/8", "10.0.0.0/8", "cidr", "right of the mask");
    bad("32768", "1", "smallint", "out of range");
    bad("1.234", "1", "numeric(4,2)", "3 digits after the decimal point");
    bad("0.01", "0.00999", "numeric(3,5)", "magnitudes below 10^-2");
    bad("1234", "1200", "numeric(3,-2)", "not a multiple of 10^2");
    bad("100000", "99900", "numeric(3,-2)", "6 digits before the decimal point");
    bad("-1 2:00:00", "-1 +2:00:00", "interval", "a sign before each part");
    bad("maybe", "on", "boolean", "true, false");
    bad("abcd", "abc", "varchar(3)", "4 characters");
    bad("abcd", "abc", "char(3)", "4 characters");
    bad("1e999", "1e99", "double precision", "out of range");
}

#[test]
fn entries_of_dictionaries_are_converted_once_and_only_used_ones_count() {
    let keys = Int8Array::from(vec![Some(1), None, Some(1)]);
    let words = StringArray::from(vec![Some("no date"), Some("2024-01-02")]);
    let dates = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(words)).unwrap();
    fits(dates, "date", &[Some("2024-01-02"), None, Some("2024-01-02")]);
    let keys = Int8Array::from(vec![1, 0]);
    let words = StringArray::from(vec!["no date", "2024-01-02"]);
    refuses(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(words)).unwrap(), "date", "no date");
}

#[test]
fn nanoseconds_are_cut_and_nul_is_stripped_on_request() {
    let options =
        ValueOptions { nanoseconds: Nanoseconds::Truncate, nul: Nul::Strip, ..ValueOptions::default() };
    let kept = |array: ArrayRef, kind: &str| append(array, kind, options).unwrap();
    let moments = TimestampNanosecondArray::from(vec![Some(1_999), None, Some(-1)]);
    let texts =
        ["1970-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999"].map(|text| Some(text.to_owned()));
    assert_eq!(kept(Arc::new(moments), "timestamp"), [texts[0].clone(), None, texts[1].clone()]);
    let time = kept(Arc::new(Time64NanosecondArray::from(vec![1_999])), "time");
    assert_eq!(time, [Some("00:00:00.000001".to_owned())]);
    let text = kept(Arc::new(StringArray::from(vec!["10:00:00.1234569"])), "time");
    assert_eq!(text, [Some("10:00:00.123456".to_owned())]);
    let text = kept(Arc::new(StringViewArray::from(vec![Some("a\0b"), None])), "text");
    assert_eq!(text, [Some("ab".to_owned()), None]);
    let json = kept(Arc::new(StringArray::from(vec!["[\"a\\u0000b\"]"])), "jsonb");
    assert_eq!(json, [Some("[\"ab\"]".to_owned())]);
}

#[test]
fn sixteen_bytes_become_uuids_and_other_lengths_are_refused() {
    let fixed = |values: [Option<[u8; 16]>; 2]| {
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 16).unwrap()
    };
    fits(fixed([Some([0xab; 16]), None]), "uuid", &[Some("abababab-abab-abab-abab-abababababab"), None]);
    fits(BinaryArray::from(vec![&[1; 16][..]]), "uuid", &[Some("01010101-0101-0101-0101-010101010101")]);
    refuses(BinaryArray::from(vec![&[1; 16][..], b"short"]), "uuid", "5 bytes");
}

#[test]
fn items_of_lists_are_converted_like_values() {
    let uuid = "01010101-0101-0101-0101-010101010101";
    fits(texts(&[&[Some(uuid), None], &[]]), "uuid[]", &[Some(&format!("{{{uuid},NULL}}")), Some("{}")]);
    fits(texts(&[&[Some("sad"), None, Some("glad")]]), "mood[]", &[Some("{sad,NULL,glad}")]);
    fits(texts(&[&[Some("1.50")]]), "numeric(4,1)[]", &[Some("{1.5}")]);
    let integers = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
        Some(vec![Some(7), None]),
        None,
        Some(vec![]),
    ]);
    for kind in ["integer[]", "smallint[]", "numeric(3,1)[]", "real[]", "text[]"] {
        let first = if kind == "numeric(3,1)[]" { "{7.0,NULL}" } else { "{7,NULL}" };
        fits(integers.clone(), kind, &[Some(first), None, Some("{}")]);
    }
    let doubles = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(0.5)])]);
    fits(doubles, "real[]", &[Some("{0.5}")]);
}

#[test]
fn an_item_that_does_not_fit_is_refused_with_its_row_and_its_place_in_the_list() {
    let integers = |values: Vec<i64>| {
        let lists = values.into_iter().map(|value| Some(vec![Some(1), Some(value)]));
        ListArray::from_iter_primitive::<Int64Type, _, _>(lists)
    };
    refuses(integers(vec![1, 32_768]), "smallint[]", "32768 cannot be stored exactly as smallint at [1]");
    refuses(integers(vec![1, 1 << 31]), "integer[]", "at [1]");
    let doubles = [0.5, 0.1].map(|value| Some(vec![Some(value)]));
    refuses(ListArray::from_iter_primitive::<Float64Type, _, _>(doubles), "real[]", "0.1");
    refuses(texts(&[&[], &[Some("no uuid")]]), "uuid[]", "hexadecimal digits");
}

#[test]
fn numbers_become_the_text_that_the_server_writes() {
    let written = |array: ArrayRef, kind: &str, column: &str| {
        let found = append(Arc::clone(&array), column, ValueOptions::default()).unwrap();
        let own = append(array, kind, ValueOptions::default()).unwrap();
        assert_eq!(found, own, "{kind} in {column}");
    };
    let doubles = vec![Some(0.1), None, Some(1e15), Some(-1.5e-5), Some(1e300), Some(f64::NAN), Some(-0.0)];
    written(Arc::new(Float64Array::from(doubles)), "double precision", "text");
    written(Arc::new(Float32Array::from(vec![0.1, 123_456.0, 1_234_567.0])), "real", "varchar(20)");
    written(Arc::new(UInt64Array::from(vec![u64::MAX])), "numeric(20,0)", "text");
    written(Arc::new(Int16Array::from(vec![-7])), "smallint", "varchar");
    written(Arc::new(BooleanArray::from(vec![Some(true), None])), "boolean", "text");
    let decimals = Decimal128Array::from(vec![-5, 1200]).with_precision_and_scale(9, 2).unwrap();
    written(Arc::new(decimals), "numeric(9,2)", "text");
    refuses(Int32Array::from(vec![1, 1000]), "varchar(3)", "has the value 1000");
    refuses(Int32Array::from(vec![1, 1000]), "varchar(3)", "--schema-change widen makes it text");
}

#[test]
fn local_times_become_the_moments_that_the_server_makes_of_them_in_a_zone() {
    let times = [
        "1950-06-01 12:00:00",
        "2024-03-31 01:59:59.999999",
        "2024-03-31 02:30:00",
        "2024-03-31 03:00:00",
        "2024-10-27 02:30:00",
        "2024-11-03 01:30:00",
        "2024-04-07 01:45:00",
        "2150-07-01 00:00:00",
        "9999-12-31 23:59:59",
    ];
    let database = Database::new();
    let mut client = database.client();
    for zone in ["Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"] {
        let sql = "SELECT (x::timestamp AT TIME ZONE $2::text)::text, extract(epoch FROM x::timestamp)::numeric(30,6)::text, \
                     (x::timestamp AT TIME ZONE 'UTC' AT TIME ZONE $2::text)::text FROM unnest($1::text[]) t(x)";
        let rows = client.query(sql, &[&times.to_vec(), &zone]).unwrap();
        let column = |i: usize| rows.iter().map(|row| row.get(i)).collect::<Vec<Option<String>>>();
        let micros = column(1).into_iter().map(|text| text.unwrap().replace('.', "").parse().unwrap());
        let local = TimestampMicrosecondArray::from_iter_values(micros);
        assert_eq!(
            append(Arc::new(local.clone()), "timestamptz", in_zone(zone)).unwrap(),
            column(0),
            "{zone}"
        );
        let text = Arc::new(StringArray::from(times.to_vec()));
        assert_eq!(append(text, "timestamptz", in_zone(zone)).unwrap(), column(0), "{zone}");
        let moments = local.with_timezone("UTC");
        assert_eq!(append(Arc::new(moments), "timestamp", in_zone(zone)).unwrap(), column(2), "{zone}");
    }
    // The server counts the offsets of its POSIX zones to the west.
    let day = append(Arc::new(Date32Array::from(vec![0])), "timestamptz", in_zone("+02:00")).unwrap();
    assert_eq!(day, [Some("1969-12-31 22:00:00+00".to_owned())]);
    let list = ListArray::from_iter_primitive::<types::TimestampSecondType, _, _>([Some(vec![Some(0)])]);
    let list = append(Arc::new(list), "timestamptz[]", in_zone("+02:00")).unwrap();
    assert_eq!(list, [Some("{\"1969-12-31 22:00:00+00\"}".to_owned())]);
}

#[test]
fn without_a_zone_the_error_names_the_column_and_the_option() {
    let error =
        append(Arc::new(TimestampMicrosecondArray::from(vec![0])), "timestamptz", ValueOptions::default());
    let error = error.unwrap_err();
    assert!(error.what().contains("column \"c\"") && error.what().contains("--timezone"), "{error}");
    refuses(StringArray::from(vec!["2024-01-01 10:00Z", "2024-01-01 10:00"]), "timestamptz", "--timezone");
}

#[test]
fn the_same_file_in_another_zone_is_another_load() {
    let database = Database::new();
    let (_directory, path) = file_of(vec![("c", Arc::new(TimestampMicrosecondArray::from(vec![0])))], 1000);
    database.client().batch_execute("CREATE TABLE t (c timestamptz)").unwrap();
    let load = |zone: &str| {
        let target = database.target("t").mode(Mode::Append).values(in_zone(zone));
        run(&ParquetFiles::open(&[&path]).unwrap(), &target, &small())
    };
    assert_eq!(load("Europe/Vienna").unwrap().rows, 1);
    let error = load("Europe/London").unwrap_err();
    assert!(error.what().contains("by a load with other options"), "{error}");
    let rows = database.client().query("SELECT c FROM t", &[]).unwrap();
    assert_eq!(rows.len(), 1);
}
