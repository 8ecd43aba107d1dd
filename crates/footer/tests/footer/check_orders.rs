//! Bounds are compared in the order of their column's type; columns without a defined order are never
//! reported.

use sawmill_footer::{Footer, Options};

use crate::handmade::{BINARY, I32, STRUCT, file};
use crate::thrift_writer::ThriftWriter;

/// The annotations of a column, as numbers in the format.
#[derive(Clone, Copy, Default)]
struct Column {
    physical: i32,
    length: Option<i32>,
    converted: Option<i32>,
    /// The union's field for a struct without fields; 5 is a decimal, 10 and -10 are signed and unsigned
    /// integers.
    logical: Option<i16>,
}

const BOOLEAN: Column = Column { physical: 0, length: None, converted: None, logical: None };
const INT32: Column = Column { physical: 1, ..BOOLEAN };
const INT64: Column = Column { physical: 2, ..BOOLEAN };
const INT96: Column = Column { physical: 3, ..BOOLEAN };
const FLOAT: Column = Column { physical: 4, ..BOOLEAN };
const DOUBLE: Column = Column { physical: 5, ..BOOLEAN };
const BYTES: Column = Column { physical: 6, ..BOOLEAN };

const fn fixed(length: i32) -> Column {
    Column { physical: 7, length: Some(length), ..BOOLEAN }
}

/// The orders that a footer names for its columns.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    None,
    /// The field id in the union.
    Field(i16),
}

const OF_TYPE: Order = Order::Field(1);
const TOTAL: Order = Order::Field(2);

/// The fields that hold the lower and upper bound.
const NEW: (i16, i16) = (6, 5);
const OLD: (i16, i16) = (2, 1);

fn findings(column: Column, order: Order, fields: (i16, i16), lower: &[u8], upper: &[u8]) -> Vec<String> {
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, STRUCT, 2);
    w.begin_element();
    w.binary(4, b"root");
    w.i32(5, 1);
    w.stop();
    w.begin_element();
    w.i32(1, column.physical);
    if let Some(length) = column.length {
        w.i32(2, length);
    }
    w.i32(3, 0);
    w.binary(4, b"c");
    if let Some(converted) = column.converted {
        w.i32(6, converted);
        // A decimal has its scale and precision beside it.
        if converted == 5 {
            w.i32(7, 0);
            w.i32(8, 9);
        }
    }
    if let Some(logical) = column.logical {
        w.begin(10);
        w.begin(logical.abs());
        match logical.abs() {
            5 => {
                w.i32(1, 0);
                w.i32(2, 9);
            }
            10 => {
                w.field(1, 3);
                w.raw(&[if column.physical == 1 { 32 } else { 64 }]);
                w.bool(2, logical > 0);
            }
            _ => {}
        }
        w.stop();
        w.stop();
    }
    w.stop();
    w.i64(3, 10);
    w.list(4, STRUCT, 1);
    w.begin_element();
    w.list(1, STRUCT, 1);
    w.begin_element();
    w.i64(2, 0);
    w.begin(3);
    w.i32(1, column.physical);
    w.list(2, I32, 1);
    w.integer(0);
    w.list(3, BINARY, 1);
    w.bytes_value(b"c");
    w.i32(4, 0);
    w.i64(5, 10);
    w.i64(6, 200);
    w.i64(7, 100);
    w.i64(9, 4);
    w.begin(12);
    let mut bounds = [(fields.0, lower), (fields.1, upper)];
    bounds.sort_by_key(|(id, _)| *id);
    for (id, bound) in bounds {
        w.binary(id, bound);
    }
    w.stop();
    w.stop();
    w.stop();
    w.i64(2, 200);
    w.i64(3, 10);
    w.stop();
    if let Order::Field(id) = order {
        w.list(7, STRUCT, 1);
        w.begin_element();
        w.begin(id);
        w.stop();
        w.stop();
    }
    w.stop();
    let footer = Footer::from_file_bytes(&file(104, w.bytes()), &Options::new()).unwrap();
    let mut found = Vec::new();
    sawmill_inspect::check(&footer, |finding| found.push(finding.to_string()));
    found
}

fn converted(column: Column, converted: i32) -> Column {
    Column { converted: Some(converted), ..column }
}

fn logical(column: Column, logical: i16) -> Column {
    Column { logical: Some(logical), ..column }
}

/// Lower and upper in the column's order. Swapped, they are reported unless they are equal in that order.
#[test]
fn each_type_has_its_own_order() {
    let i32 = |value: i32| value.to_le_bytes().to_vec();
    let i64 = |value: i64| value.to_le_bytes().to_vec();
    let f32 = |value: f32| value.to_le_bytes().to_vec();
    let f64 = |value: f64| value.to_le_bytes().to_vec();
    let bytes = |value: &[u8]| value.to_vec();
    let cases: Vec<(&str, Column, Vec<u8>, Vec<u8>)> = vec![
        ("BOOLEAN", BOOLEAN, bytes(&[0]), bytes(&[1])),
        ("INT32", INT32, i32(-1), i32(1)),
        ("INT64", INT64, i64(i64::MIN), i64(256)),
        ("INT_8", converted(INT32, 15), i32(-1), i32(1)),
        ("DATE", converted(INT32, 6), i32(-1), i32(1)),
        ("TIMESTAMP_MICROS", converted(INT64, 10), i64(-1), i64(1)),
        ("UINT_32", converted(INT32, 13), i32(1), i32(-1)),
        ("UINT_64", converted(INT64, 14), i64(1), i64(-1)),
        ("unsigned of 32 bits", logical(INT32, -10), i32(1), i32(-1)),
        ("signed of 64 bits", logical(INT64, 10), i64(-1), i64(1)),
        ("DECIMAL in INT32", converted(INT32, 5), i32(-1), i32(1)),
        ("DECIMAL in bytes", converted(BYTES, 5), bytes(&[0xff]), bytes(&[0, 1])),
        ("DECIMAL in bytes of other lengths", logical(BYTES, 5), bytes(&[2]), bytes(&[1, 0])),
        ("DECIMAL in four bytes", logical(fixed(4), 5), bytes(&[0xff, 0, 0, 0]), bytes(&[0, 0, 0, 1])),
        ("FLOAT", FLOAT, f32(-1.5), f32(0.25)),
        ("DOUBLE", DOUBLE, f64(f64::NEG_INFINITY), f64(-1e300)),
        ("FLOAT16", logical(fixed(2), 15), bytes(&[0, 0xc0]), bytes(&[0, 0x3c])),
        ("BYTE_ARRAY", BYTES, bytes(&[0x7f]), bytes(&[0x80])),
        ("UTF8", converted(BYTES, 0), bytes(b"a"), bytes("\u{e9}".as_bytes())),
        ("UTF8 where one is a prefix of the other", logical(BYTES, 1), bytes(b"a"), bytes(b"aa")),
        ("FIXED_LEN_BYTE_ARRAY", fixed(3), bytes(&[1, 2, 3]), bytes(&[0xff, 0, 0])),
        ("UUID cut off", logical(fixed(16), 14), bytes(&[1]), bytes(&[2])),
    ];
    for (name, column, lower, upper) in &cases {
        assert_eq!(findings(*column, OF_TYPE, NEW, lower, upper), [""; 0], "{name}");
        assert_eq!(findings(*column, OF_TYPE, NEW, lower, lower), [""; 0], "{name}");
        let found = findings(*column, OF_TYPE, NEW, upper, lower);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(found[0].contains("in the column's order"), "{name}: {found:?}");
    }
}

#[test]
fn the_swapped_values_are_shown() {
    let found = findings(INT64, OF_TYPE, NEW, &7i64.to_le_bytes(), &(-5i64).to_le_bytes());
    assert!(found[0].contains("found 7 and -5"), "{found:?}");
    let found = findings(DOUBLE, OF_TYPE, NEW, &0.5f64.to_le_bytes(), &0.25f64.to_le_bytes());
    assert!(found[0].contains("found 0.5 and 0.25"), "{found:?}");
    let found = findings(BYTES, OF_TYPE, NEW, b"z\x1b", &[b'a'; 100]);
    assert!(found[0].contains(r#"found "z\x1b" and "aaaaaaaaaaaaaaaaaaaaaaaa"..."#), "{found:?}");
}

#[test]
fn columns_without_an_order_are_not_reported() {
    let (one, two) = (1f64.to_le_bytes(), 2f64.to_le_bytes());
    let nan = f64::NAN.to_le_bytes();
    for (lower, upper) in [(nan, one), (one, nan), (nan, nan)] {
        assert_eq!(findings(DOUBLE, OF_TYPE, NEW, &lower, &upper), [""; 0]);
    }
    let (zero, minus) = (0f64.to_le_bytes(), (-0f64).to_le_bytes());
    assert_eq!(findings(DOUBLE, OF_TYPE, NEW, &zero, &minus), [""; 0]);
    // A union member unknown to this version, and a footer without orders.
    for order in [Order::None, Order::Field(9)] {
        assert_eq!(findings(DOUBLE, order, NEW, &two, &one), [""; 0]);
    }
    let (big, small) = ([2; 12], [1; 12]);
    assert_eq!(findings(INT96, OF_TYPE, NEW, &big, &small), [""; 0]);
    assert_eq!(findings(converted(fixed(12), 21), OF_TYPE, NEW, &big, &small), [""; 0], "INTERVAL");
    assert_eq!(findings(logical(BYTES, 17), OF_TYPE, NEW, b"z", b"a"), [""; 0], "GEOMETRY");
    assert_eq!(findings(logical(INT32, 11), OF_TYPE, NEW, &[2; 4], &[1; 4]), [""; 0], "UNKNOWN");
    assert_eq!(findings(logical(BYTES, 99), OF_TYPE, NEW, b"z", b"a"), [""; 0], "a future type");
    // Deprecated bounds were compared signed; writers disagreed for text and unsigned integers.
    assert_eq!(findings(converted(BYTES, 0), Order::None, OLD, b"z", b"a"), [""; 0]);
    assert_eq!(findings(converted(INT32, 13), OF_TYPE, OLD, &[0xff; 4], &[1; 4]), [""; 0]);
}

#[test]
fn old_bounds_and_other_orders_are_checked_where_defined() {
    let (one, two) = (1i32.to_le_bytes(), 2i32.to_le_bytes());
    assert_eq!(findings(INT32, Order::None, OLD, &one, &two), [""; 0]);
    assert_eq!(findings(INT32, Order::None, OLD, &two, &one).len(), 1);
    let (zero, minus, nan) = (0f64.to_le_bytes(), (-0f64).to_le_bytes(), f64::NAN.to_le_bytes());
    assert_eq!(findings(DOUBLE, TOTAL, NEW, &minus, &zero), [""; 0]);
    assert_eq!(findings(DOUBLE, TOTAL, NEW, &zero, &nan), [""; 0]);
    assert_eq!(findings(DOUBLE, TOTAL, NEW, &zero, &minus).len(), 1);
    assert_eq!(findings(DOUBLE, TOTAL, NEW, &nan, &zero).len(), 1);
    assert_eq!(findings(INT32, TOTAL, NEW, &two, &one), [""; 0]);
    // The day follows its nanoseconds.
    let timestamp = |day: i32, nanos: u64| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
    let (early, late) = (timestamp(2_440_588, 9), timestamp(2_440_589, 1));
    assert_eq!(findings(INT96, Order::Field(3), NEW, &early, &late), [""; 0]);
    assert_eq!(findings(INT96, Order::Field(3), NEW, &late, &early).len(), 1);
}

#[test]
fn bounds_have_the_length_of_their_type() {
    for (column, right, wrong) in [
        (BOOLEAN, 1, vec![0, 2]),
        (INT32, 4, vec![0, 3, 8]),
        (INT64, 8, vec![4, 9]),
        (INT96, 12, vec![8, 16]),
        (FLOAT, 4, vec![2, 8]),
        (DOUBLE, 8, vec![4, 10]),
        (fixed(5), 5, vec![6]),
        (logical(fixed(4), 5), 4, vec![3, 5]),
        (logical(fixed(2), 15), 2, vec![1, 4]),
    ] {
        for order in [OF_TYPE, Order::None] {
            let bound = |len: usize| vec![0; len];
            assert_eq!(findings(column, order, NEW, &bound(right), &bound(right)), [""; 0]);
            for len in &wrong {
                for fields in [NEW, OLD] {
                    let found = findings(column, order, fields, &bound(*len), &bound(right));
                    assert_eq!(found.len(), 1, "{len} instead of {right}: {found:?}");
                    assert!(found[0].contains(&format!("found one of {len}")), "{found:?}");
                }
            }
        }
    }
    // Truncated byte-array bounds are valid.
    assert_eq!(findings(fixed(5), OF_TYPE, NEW, &[1, 2], &[1, 3]), [""; 0]);
    assert_eq!(findings(BYTES, OF_TYPE, NEW, &[], &[1; 1000]), [""; 0]);
}
