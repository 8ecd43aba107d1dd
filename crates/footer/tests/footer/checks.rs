//! The check reports everything wrong with a footer, and nothing for valid files.

use sawmill_footer::{Footer, Options};

use crate::handmade::{self, row_group};
use crate::samples;
use crate::thrift_writer::ThriftWriter;

fn findings(footer: &Footer) -> Vec<String> {
    let mut found = Vec::new();
    sawmill_inspect::check(footer, |finding| found.push(finding.to_string()));
    found
}

#[test]
fn nothing_is_wrong_with_good_files() {
    for (name, file) in samples::all() {
        let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
        let mut found = Vec::new();
        sawmill_inspect::check_file(&footer, file.as_slice(), |finding| found.push(finding.to_string()))
            .unwrap();
        // Row groups without rows have no data; their offsets may be anything.
        assert_eq!(found, [""; 0], "{name}");
        let part = Footer::from_file_bytes(&file, &Options::new().columns([0]).row_groups(0..1)).unwrap();
        assert_eq!(findings(&part), [""; 0], "{name}");
    }
}

/// The metadata of a column chunk; each field is written once.
struct Fields {
    path: String,
    codec: i32,
    values: i64,
    uncompressed: i64,
    compressed: i64,
    data_page: i64,
    /// Writes fields beyond the required ones.
    more: fn(&mut ThriftWriter),
}

impl Fields {
    fn write(&self, writer: &mut ThriftWriter) {
        writer.begin_element();
        writer.i64(2, 0);
        writer.begin(3);
        writer.i32(1, 2);
        writer.list(2, handmade::I32, 1);
        writer.integer(0);
        writer.list(3, handmade::BINARY, 1);
        writer.bytes_value(self.path.as_bytes());
        writer.i32(4, self.codec);
        writer.i64(5, self.values);
        writer.i64(6, self.uncompressed);
        writer.i64(7, self.compressed);
        writer.i64(9, self.data_page);
        (self.more)(writer);
        writer.stop();
        writer.stop();
    }
}

/// A footer of three chunks of 100 bytes each; `odd` changes the last.
fn three(odd: impl Fn(&mut Fields)) -> Footer {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, 3);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, 1);
    row_group(&mut writer, 3, |writer, column| {
        let mut fields = Fields {
            path: format!("c{column}"),
            codec: 6,
            values: 10,
            uncompressed: 100 - column as i64 * 50 + 50 * i64::from(column == 2),
            compressed: 100,
            data_page: 4 + 100 * column as i64,
            more: |_| {},
        };
        if column == 2 {
            odd(&mut fields);
        }
        fields.write(writer);
    });
    writer.stop();
    Footer::from_file_bytes(&handmade::file(304, writer.bytes()), &Options::new()).unwrap()
}

#[test]
fn each_thing_wrong_is_found_and_named() {
    assert_eq!(findings(&three(|_| {})), [""; 0]);
    type Odd = fn(&mut Fields);
    let cases: [(Odd, &str); 10] = [
        (|chunk| chunk.data_page = 150, "in data of row_groups[0].columns[1] at 104..204"),
        (
            |chunk| chunk.compressed = 1000,
            "expected data within bytes 4..304 of the file, found it at 204..1204",
        ),
        (|chunk| chunk.values = 9, "expected the row group's 10 values, found 9"),
        (
            |chunk| chunk.more = |writer| writer.i64(11, 204),
            "expected a dictionary page before the data page at 204, found one at 204",
        ),
        (|chunk| chunk.uncompressed = 7, "found 200 - row_groups[0].total_byte_size"),
        (|chunk| chunk.codec = 77, "expected a codec of the format, found unknown (77)"),
        (|chunk| chunk.path = "other".to_owned(), "expected the path `c2`, found `other`"),
        (
            |chunk| {
                chunk.more = |writer| {
                    writer.begin(12);
                    writer.i64(3, 11);
                    writer.stop();
                }
            },
            "expected 0 to 10 nulls, found 11",
        ),
        (
            |chunk| chunk.more = |writer| writer.i64(14, -5),
            "expected an offset and a length of the bloom_filter, found -5 and none",
        ),
        (
            |chunk| chunk.more = |writer| writer.i64(14, 1 << 50),
            "expected bloom_filter within bytes 4..304 of the file, found it at 1125899906842624..",
        ),
    ];
    for (odd, expected) in cases {
        let found = findings(&three(odd));
        assert!(found.iter().any(|finding| finding.contains(expected)), "{expected}: {found:?}");
        assert!(found.iter().all(|finding| finding.contains("byte ")), "{found:?}");
    }
}

#[test]
fn several_things_wrong_are_all_found() {
    let found = findings(&three(|chunk| {
        chunk.values = 9;
        chunk.data_page = 1;
        chunk.more = |writer| writer.i64(11, -1);
    }));
    assert_eq!(found.len(), 3, "{found:?}");
}
