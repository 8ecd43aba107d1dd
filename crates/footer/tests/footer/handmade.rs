//! Footers written by hand: what other readers fail on, and what must fail here, each with its location.

use sawmill_footer::{Codec, Encoding, Footer, Options, PhysicalType};

use crate::thrift_writer::ThriftWriter;

pub const I32: u8 = 5;
pub const I64: u8 = 6;
pub const BINARY: u8 = 8;
pub const STRUCT: u8 = 12;

/// A schema of `columns` required INT64 leaves below a root.
pub fn schema(writer: &mut ThriftWriter, columns: usize) {
    writer.list(2, STRUCT, columns as u64 + 1);
    writer.begin_element();
    writer.binary(4, b"root");
    writer.i32(5, columns as i32);
    writer.stop();
    for column in 0..columns {
        writer.begin_element();
        writer.i32(1, 2);
        writer.i32(3, 0);
        writer.binary(4, format!("c{column}").as_bytes());
        writer.stop();
    }
}

/// A column chunk with the required fields of its metadata; `more` appends others.
pub fn chunk(writer: &mut ThriftWriter, more: impl FnOnce(&mut ThriftWriter)) {
    writer.begin_element();
    writer.i64(2, 0);
    writer.begin(3);
    required(writer, "c", 200, 4);
    more(writer);
    writer.stop();
    writer.stop();
}

/// The required metadata fields of a column chunk whose 100 bytes of pages start at `at` and take
/// `uncompressed` bytes before compression.
pub fn required(writer: &mut ThriftWriter, name: &str, uncompressed: i64, at: i64) {
    writer.i32(1, 2);
    writer.list(2, I32, 1);
    writer.integer(0);
    writer.list(3, BINARY, 1);
    writer.bytes_value(name.as_bytes());
    writer.i32(4, 6);
    writer.i64(5, 10);
    writer.i64(6, uncompressed);
    writer.i64(7, 100);
    writer.i64(9, at);
}

/// A file of `len` bytes of data, followed by `footer`, its length and the magic bytes.
pub fn file(len: usize, footer: &[u8]) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    file.resize(len, 0xee);
    file_of(file, footer)
}

/// A file made of everything before the footer, and the footer.
pub fn file_of(mut file: Vec<u8>, footer: &[u8]) -> Vec<u8> {
    file.extend_from_slice(footer);
    file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    file.extend_from_slice(b"PAR1");
    file
}

pub fn row_group(writer: &mut ThriftWriter, columns: usize, mut each: impl FnMut(&mut ThriftWriter, usize)) {
    writer.begin_element();
    writer.list(1, STRUCT, columns as u64);
    for column in 0..columns {
        each(writer, column);
    }
    writer.i64(2, 200);
    writer.i64(3, 10);
    writer.stop();
}

/// A footer of one row group whose chunks `each` writes.
pub fn footer(columns: usize, each: impl FnMut(&mut ThriftWriter, usize)) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, columns);
    writer.i64(3, 10);
    writer.list(4, STRUCT, 1);
    row_group(&mut writer, columns, each);
    writer.binary(6, b"by hand");
    writer.stop();
    writer.into_bytes()
}

/// A footer without row groups whose schema `schema` writes.
#[cfg(feature = "parquet-59")]
pub fn footer_of(schema: impl FnOnce(&mut ThriftWriter)) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer);
    writer.i64(3, 0);
    writer.list(4, STRUCT, 0);
    writer.stop();
    writer.into_bytes()
}

pub fn decode(bytes: &[u8]) -> Result<Footer, sawmill_footer::Error> {
    Footer::decode(bytes, &Options::new())
}

pub fn assert_error(bytes: &[u8], path: &str, what: &str) {
    let error = decode(bytes).unwrap_err();
    assert_eq!(error.path(), path, "{error}");
    assert!(error.what().contains(what), "{error}");
    assert!(error.offset().is_some_and(|offset| offset <= bytes.len() as u64));
}

#[test]
fn a_footer_made_by_hand_decodes() {
    let footer = decode(&footer(2, |writer, _| chunk(writer, |_| {}))).unwrap();
    assert_eq!(footer.created_by().as_deref(), Some("by hand"));
    let chunk = footer.column_chunk(0, 1).unwrap();
    assert_eq!(chunk.physical_type(), PhysicalType::Int64);
    assert_eq!(chunk.codec(), Codec::Zstd);
    assert!(chunk.encodings().contains(Encoding::Plain));
    assert_eq!((chunk.num_values(), chunk.uncompressed_size(), chunk.compressed_size()), (10, 200, 100));
    assert_eq!(chunk.byte_range(), 4..104);
    assert_eq!(chunk.dictionary_page_offset(), None);
    chunk.readable().unwrap();
}

#[test]
fn a_claim_of_two_thousand_million_children_is_an_error_at_once() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, 2);
    writer.begin_element();
    writer.binary(4, b"root");
    writer.i32(5, i32::MAX);
    writer.stop();
    writer.begin_element();
    writer.i32(1, 2);
    writer.i32(3, 0);
    writer.binary(4, b"c");
    writer.stop();
    writer.i64(3, 0);
    writer.list(4, STRUCT, 0);
    let len_before = writer.bytes().len();
    // The whole file has 108 bytes: twelve around the metadata, whose last field fills the rest.
    writer.binary(6, &vec![b'x'; 108 - 12 - len_before - 3]);
    writer.stop();
    let bytes = writer.into_bytes();
    assert_error(&bytes, "schema", "expected 2147483647 children of a group, found 1");
    let mut file = b"PAR1".to_vec();
    file.extend_from_slice(&bytes);
    file.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    file.extend_from_slice(b"PAR1");
    assert_eq!(file.len(), 108);
    let error = Footer::from_file_bytes(&file, &Options::new()).unwrap_err();
    assert_eq!(error.path(), "schema", "{error}");
}

#[test]
fn negative_children_and_elements_beyond_the_root_are_errors() {
    for (children, path, what) in
        [(-1, "schema[0].num_children", "non-negative"), (0, "schema", "below one root")]
    {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        writer.list(2, STRUCT, 2);
        writer.begin_element();
        writer.binary(4, b"root");
        writer.i32(5, children);
        writer.stop();
        writer.begin_element();
        writer.i32(1, 2);
        writer.i32(3, 0);
        writer.binary(4, b"c");
        writer.stop();
        writer.stop();
        assert_error(&writer.into_bytes(), path, what);
    }
}

#[test]
fn a_schema_may_be_100_000_deep() {
    let depth = 100_000;
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, depth + 1);
    for _ in 0..depth {
        writer.begin_element();
        writer.i32(3, 1);
        writer.binary(4, b"g");
        writer.i32(5, 1);
        writer.stop();
    }
    writer.begin_element();
    writer.i32(1, 2);
    writer.i32(3, 2);
    writer.binary(4, b"leaf");
    writer.stop();
    writer.i64(3, 0);
    writer.list(4, STRUCT, 1);
    row_group(&mut writer, 1, |writer, _| chunk(writer, |_| {}));
    writer.stop();
    let footer = decode(&writer.into_bytes()).unwrap();
    let leaf = footer.schema().leaf(0).unwrap();
    assert_eq!((leaf.max_def(), leaf.max_rep()), (depth as u32, 1));
    assert_eq!(leaf.path_names().len(), depth as usize);
    assert_eq!(footer.schema().find(&leaf.path()).unwrap().index(), leaf.index());
    assert_eq!(leaf.top().index(), 1);
}

#[test]
fn lists_longer_than_the_bytes_left_are_errors_at_once() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, 2_000_000_000);
    assert_error(writer.bytes(), "schema", "found one of 2000000000 elements");

    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, 1);
    writer.i64(3, 0);
    writer.list(4, STRUCT, 2_000_000_000);
    assert_error(writer.bytes(), "row_groups", "found one of 2000000000 elements");

    // Unknown fields too: a list of bools, a list of structs, a map.
    for wire in [1, STRUCT] {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        writer.list(99, wire, 2_000_000_000);
        writer.raw(&[0; 100]);
        assert_error(writer.bytes(), "field 99", "found one of 2000000000 elements");
    }
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.field(99, 11);
    writer.varint(2_000_000_000);
    writer.raw(&[0; 100]);
    assert_error(writer.bytes(), "field 99", "found one of 2000000000 elements");
}

#[test]
fn negative_sizes_are_unknown_and_hide_nothing_else() {
    for (id, name) in [
        (5, "num_values"),
        (6, "total_uncompressed_size"),
        (7, "total_compressed_size"),
        (9, "data_page_offset"),
    ] {
        let bytes = footer(1, |writer, _| chunk(writer, |writer| writer.i64(id, -1)));
        let footer = Footer::decode(bytes.as_slice(), &Options::default()).unwrap();
        let group = footer.row_groups().next().unwrap();
        let chunk = group.columns().next().unwrap();
        let facts = [
            chunk.num_values(),
            chunk.uncompressed_size(),
            chunk.compressed_size(),
            chunk.data_page_offset(),
        ];
        let unknown = facts.map(|fact| fact == 0);
        assert_eq!(unknown, [id == 5, id == 6, id == 7, id == 9], "{name}");
    }
    for id in [2, 6] {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        schema(&mut writer, 0);
        writer.i64(3, 10);
        writer.list(4, STRUCT, 1);
        writer.begin_element();
        writer.list(1, STRUCT, 0);
        writer.i64(2, if id == 2 { -1 } else { 5 });
        writer.i64(3, 10);
        writer.i64(6, if id == 6 { -1 } else { 5 });
        writer.stop();
        writer.stop();
        let footer = Footer::decode(writer.bytes(), &Options::default()).unwrap();
        let group = footer.row_groups().next().unwrap();
        let (bytes, compressed) = (group.total_byte_size(), group.total_compressed_size());
        assert_eq!((bytes == 0, compressed == Some(0)), (id == 2, id == 6));
    }
}

#[test]
fn a_negative_number_of_rows_of_the_file_is_the_sum_of_all_row_groups() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, 1);
    writer.i64(3, -1);
    writer.list(4, STRUCT, 3);
    for _ in 0..3 {
        row_group(&mut writer, 1, |writer, _| chunk(writer, |_| {}));
    }
    writer.stop();
    for options in [Options::new(), Options::new().row_groups(1..2), Options::new().columns([0])] {
        let footer = Footer::decode(writer.bytes(), &options).unwrap();
        assert_eq!(footer.num_rows(), 30, "{options:?}");
    }
    let metadata = Footer::decode(writer.bytes(), &Options::new()).unwrap().to_parquet_59(None).unwrap();
    assert_eq!(metadata.file_metadata().num_rows(), 30);
}

#[test]
fn row_groups_of_rows_below_zero_and_numbers_out_of_range_are_errors() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, 0);
    writer.i64(3, 10);
    writer.list(4, STRUCT, 1);
    writer.begin_element();
    writer.list(1, STRUCT, 0);
    writer.i64(3, -1);
    assert_error(writer.bytes(), "row_groups[0].num_rows", "expected a non-negative value, found -1");
    let mut writer = ThriftWriter::new();
    writer.field(1, I32);
    writer.integer(1 << 40);
    assert_error(writer.bytes(), "version", "expected a 32-bit integer, found 1099511627776");
}

#[test]
fn varints_of_eleven_bytes_are_errors_and_of_ten_are_not() {
    let wide = |last: &[u8]| {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        schema(&mut writer, 0);
        writer.field(3, I64);
        writer.raw(&[0xfe]);
        writer.raw(&[0xff; 8]);
        writer.raw(last);
        writer.list(4, STRUCT, 0);
        writer.stop();
        writer.into_bytes()
    };
    assert_eq!(decode(&wide(&[0x01])).unwrap().num_rows(), i64::MAX);
    assert_error(&wide(&[0x81, 0x00]), "num_rows", "a varint of at most 10 bytes");
    assert_error(&wide(&[0x02]), "num_rows", "a varint of at most 10 bytes");
}

#[test]
fn endless_nesting_is_an_error_without_a_stack_overflow() {
    for (opening, wire) in [(0x1c, STRUCT), (0x19, 9), (0x1a, 10)] {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        writer.field(99, wire);
        writer.raw(&vec![opening; 1_000_000]);
        assert_error(writer.bytes(), "field 99", "levels of nesting");
    }
}

#[test]
fn an_unknown_codec_or_type_makes_only_its_column_unreadable() {
    let bytes = footer(4, |writer, column| {
        chunk(writer, |writer| match column {
            1 => writer.i32(4, 99),
            2 => {
                writer.list(2, I32, 2);
                writer.integer(0);
                writer.integer(if column == 2 { 1000 } else { 0 });
            }
            3 => writer.i32(1, 42),
            _ => {}
        });
    });
    let footer = decode(&bytes).unwrap();
    let group = footer.row_group(0).unwrap();
    let errors: Vec<Option<String>> =
        group.columns().map(|chunk| chunk.readable().err().map(|error| error.to_string())).collect();
    assert_eq!(errors[0], None);
    assert_eq!(errors[2], None, "an encoding that a page need not have");
    assert!(!group.column(2).unwrap().encodings().all_known());
    for (column, what) in [(1, "unknown (99)"), (3, "unknown (42)")] {
        let error = errors[column].as_ref().unwrap();
        assert!(error.contains(what) && error.contains(&format!("columns[{column}]")), "{error}");
    }
    assert_eq!(group.column(1).unwrap().codec(), Codec::Unknown(99));
    assert_eq!(group.columns().map(|chunk| chunk.num_values()).sum::<i64>(), 40);
}

#[test]
fn fields_may_stand_in_any_order() {
    let mut writer = ThriftWriter::new();
    writer.binary(6, b"by hand");
    writer.list(4, STRUCT, 1);
    writer.begin_element();
    writer.i64(3, 10);
    writer.list(1, STRUCT, 1);
    writer.begin_element();
    writer.begin(3);
    for (id, value) in [(11, 4), (9, 30), (7, 100), (6, 200), (5, 10)] {
        writer.i64(id, value);
    }
    writer.i32(4, 0);
    writer.list(2, I32, 0);
    writer.i32(1, 2);
    writer.stop();
    writer.i64(2, 0);
    writer.stop();
    writer.i64(2, 200);
    writer.stop();
    writer.i64(3, 10);
    schema(&mut writer, 1);
    writer.i32(1, 1);
    writer.stop();
    let footer = decode(writer.bytes()).unwrap();
    let chunk = footer.column_chunk(0, 0).unwrap();
    assert_eq!((chunk.num_values(), chunk.byte_range()), (10, 4..104));
    assert_eq!(footer.created_by().as_deref(), Some("by hand"));
}

#[test]
fn a_dictionary_page_offset_of_zero_means_none() {
    let bytes = footer(1, |writer, _| chunk(writer, |writer| writer.i64(11, 0)));
    let footer = decode(&bytes).unwrap();
    let chunk = footer.column_chunk(0, 0).unwrap();
    assert_eq!(chunk.dictionary_page_offset(), Some(0));
    assert_eq!(chunk.byte_range(), 4..104);
}

#[test]
fn numbers_beyond_32_bits_are_kept() {
    let big = 5 << 40;
    let bytes = footer(6, |writer, column| {
        chunk(writer, |writer| match column {
            1 => writer.i64(5, big),
            2 => writer.i64(6, big),
            3 => writer.i64(7, big),
            4 => writer.i64(9, big),
            5 => {
                writer.i64(9, big);
                writer.i64(11, 4);
            }
            _ => {}
        });
    });
    let footer = decode(&bytes).unwrap();
    let chunk = |column| footer.column_chunk(0, column).unwrap();
    assert_eq!(chunk(1).num_values(), big);
    assert_eq!(chunk(2).uncompressed_size(), big);
    assert_eq!(chunk(3).compressed_size(), big);
    assert_eq!(chunk(4).data_page_offset(), big);
    assert_eq!((chunk(5).data_page_offset(), chunk(5).dictionary_page_offset()), (big, Some(4)));
    assert!((0..6).all(|column| chunk(column).codec() == Codec::Zstd));
}

#[test]
fn text_that_is_not_utf8_does_not_fail_the_file() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, 1);
    writer.i64(3, 0);
    writer.list(4, STRUCT, 0);
    writer.list(5, STRUCT, 2);
    for (key, value) in [(&b"k\xff"[..], &b"\x80v"[..]), (b"text", b"\xc3\xa9")] {
        writer.begin_element();
        writer.binary(1, key);
        writer.binary(2, value);
        writer.stop();
    }
    writer.binary(6, b"writer \xfe1");
    writer.stop();
    let footer = decode(writer.bytes()).unwrap();
    assert_eq!(footer.created_by().as_deref(), Some("writer \u{fffd}1"));
    let pairs: Vec<_> = footer.key_value_metadata().collect();
    assert_eq!(pairs, [("k\u{fffd}".into(), Some("\u{fffd}v".into())), ("text".into(), Some("é".into()))]);
}

#[test]
fn a_name_that_is_not_utf8_has_a_question_mark_for_each_other_byte() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, 4);
    for (name, children) in
        [(&b"sch\xe9ma"[..], 3), (b"caf\xe9", 0), (b"\xc3\xa9\xff\xff", 0), (b"\xe4\xb8", 0)]
    {
        writer.begin_element();
        if children == 0 {
            writer.i32(1, 1);
            writer.i32(3, 1);
        }
        writer.binary(4, name);
        if children > 0 {
            writer.i32(5, children);
        }
        writer.stop();
    }
    writer.i64(3, 0);
    writer.list(4, STRUCT, 0);
    writer.stop();
    let footer = decode(writer.bytes()).unwrap();
    let names: Vec<String> = footer.schema().leaves().map(|leaf| leaf.path()).collect();
    assert_eq!(names, ["caf?", "é??", "??"]);
}

#[test]
fn malformed_statistics_are_an_error_with_their_location_when_read() {
    let bytes = footer(2, |writer, column| {
        chunk(writer, |writer| {
            if column == 1 {
                writer.begin(16);
                writer.list(2, I32, 1);
                writer.integer(5);
                writer.stop();
            }
        });
    });
    let footer = decode(&bytes).unwrap();
    assert_eq!(footer.column_chunk(0, 1).unwrap().statistics().unwrap(), None);
    let error = footer.column_chunk(0, 1).unwrap().details().unwrap_err();
    let path = "row_groups[0].columns[1].meta_data.size_statistics.repetition_level_histogram";
    assert_eq!(error.path(), path, "{error}");
    let verified = Footer::decode(bytes, &Options::new().verify(sawmill_footer::Verify::Values));
    assert_eq!(verified.unwrap_err().path(), path);
}

#[test]
fn a_row_group_with_a_different_number_of_columns_is_an_error() {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    schema(&mut writer, 3);
    writer.i64(3, 10);
    writer.list(4, STRUCT, 1);
    row_group(&mut writer, 2, |writer, _| chunk(writer, |_| {}));
    writer.stop();
    assert_error(
        writer.bytes(),
        "row_groups[0].columns",
        "expected 3 column chunks, one for each leaf of the schema, found 2",
    );
}
