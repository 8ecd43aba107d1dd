//! Footers with fields that the format does not know, of another type, or missing.

use crate::handmade::{STRUCT, assert_error, chunk, decode, footer, row_group, schema};
use crate::thrift_writer::ThriftWriter;

/// A value of every type, as a field with id `id`.
fn any_field(writer: &mut ThriftWriter, id: i16, wire: u8) {
    match wire {
        1 | 2 => writer.bool(id, wire == 1),
        3 => {
            writer.field(id, 3);
            writer.raw(&(-3_i8).to_le_bytes());
        }
        4 => {
            writer.field(id, 4);
            writer.integer(400);
        }
        5 => writer.i32(id, -70_000),
        6 => writer.i64(id, 1 << 40),
        7 => {
            writer.field(id, 7);
            writer.raw(&0.5_f64.to_le_bytes());
        }
        8 => writer.binary(id, b"some bytes"),
        9 => {
            // Bools in both encodings, each in its own byte.
            writer.list(id, 1, 20);
            writer.raw(&[1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1]);
        }
        10 => {
            writer.field(id, 10);
            writer.list_header(9, 2);
            for _ in 0..2 {
                writer.list_header(7, 1);
                writer.raw(&[0; 8]);
            }
        }
        11 => {
            writer.field(id, 11);
            writer.varint(2);
            writer.raw(&[0x81]);
            for _ in 0..2 {
                writer.bytes_value(b"key");
                writer.raw(&[1]);
            }
        }
        12 => {
            writer.begin(id);
            writer.bool(1, true);
            writer.begin(2);
            writer.stop();
            writer.stop();
        }
        _ => {
            writer.field(id, 13);
            writer.raw(&[7; 16]);
        }
    }
}

#[test]
fn unknown_fields_of_every_type_are_skipped_everywhere() {
    let plain = decode(&footer(2, |writer, _| chunk(writer, |_| {}))).unwrap();
    for wire in 1..=13 {
        let mut writer = ThriftWriter::new();
        any_field(&mut writer, 77, wire);
        writer.i32(1, 1);
        schema(&mut writer, 2);
        writer.i64(3, 10);
        any_field(&mut writer, 78, wire);
        writer.list(4, STRUCT, 1);
        row_group(&mut writer, 2, |writer, _| {
            chunk(writer, |writer| {
                any_field(writer, 79, wire);
                any_field(writer, 18, wire);
            });
        });
        any_field(&mut writer, 20, wire);
        writer.binary(6, b"by hand");
        writer.stop();
        let footer = decode(writer.bytes()).unwrap();
        assert_eq!(footer.created_by().as_deref(), Some("by hand"));
        for (ours, plain) in footer.row_group(0).unwrap().columns().zip(plain.row_group(0).unwrap().columns())
        {
            assert_eq!(format!("{ours:?}"), format!("{plain:?}"));
            assert_eq!(ours.details().unwrap(), plain.details().unwrap());
        }
    }
}

#[test]
fn optional_fields_of_another_type_are_skipped_like_unknown_ones() {
    let optional = [(8, 9), (10, 6), (11, 6), (12, 12), (13, 9), (14, 6), (15, 5), (16, 12), (17, 12)];
    for (id, right) in optional {
        for wire in (1..=13).filter(|&wire| wire != right) {
            let bytes = footer(1, |writer, _| chunk(writer, |writer| any_field(writer, id, wire)));
            let footer = decode(&bytes).unwrap();
            let chunk = footer.column_chunk(0, 0).unwrap();
            assert_eq!((chunk.num_values(), chunk.dictionary_page_offset()), (10, None));
            assert_eq!(chunk.details().unwrap().statistics, None);
        }
    }
}

#[test]
fn required_fields_of_another_type_are_errors_with_their_place() {
    let mut writer = ThriftWriter::new();
    writer.binary(1, b"one");
    assert_error(writer.bytes(), "version", "expected an i32, found binary");
    let bytes = footer(3, |writer, column| {
        if column == 2 {
            writer.begin_element();
            writer.begin(3);
            writer.binary(5, b"ten");
        } else {
            chunk(writer, |_| {});
        }
    });
    assert_error(&bytes, "row_groups[0].columns[2].meta_data.num_values", "expected an i64, found binary");
}

#[test]
fn missing_fields_are_named_with_the_struct_that_lacks_them() {
    assert_error(&[0], "", "the required field `version`");
    let bytes = footer(1, |writer, _| {
        writer.begin_element();
        writer.i64(2, 0);
        writer.stop();
    });
    assert_error(&bytes, "row_groups[0].columns[0]", "the required field `meta_data`");
    let bytes = footer(1, |writer, _| {
        writer.begin_element();
        writer.begin(3);
        writer.i32(1, 0);
        writer.stop();
        writer.stop();
    });
    assert_error(&bytes, "row_groups[0].columns[0].meta_data", "the required field `encodings`");
}
