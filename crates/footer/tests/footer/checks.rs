//! The check reports everything wrong with a footer, and nothing for valid files.

use sawmill_footer::{Footer, Options, ThriftWriter};

use crate::handmade::{self, chunk, row_group};
use crate::samples;

fn findings(footer: &Footer) -> Vec<String> {
    let mut found = Vec::new();
    footer.check(|finding| found.push(finding.to_string()));
    found
}

#[test]
fn nothing_is_wrong_with_good_files() {
    for (name, file) in samples::all() {
        let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
        let mut found = Vec::new();
        footer.check_file(file.as_slice(), |finding| found.push(finding.to_string())).unwrap();
        // Row groups without rows have no data; their offsets may be anything.
        assert_eq!(found, [""; 0], "{name}");
        let part = Footer::from_file_bytes(&file, &Options::new().columns([0]).row_groups(0..1)).unwrap();
        assert_eq!(findings(&part), [""; 0], "{name}");
    }
}

/// A footer of three chunks of 100 bytes each; `odd` changes the last.
fn three(odd: impl Fn(&mut ThriftWriter)) -> Footer {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, 3);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, 1);
    row_group(&mut writer, 3, |writer, column| {
        chunk(writer, |writer| {
            writer.i64(9, 4 + 100 * column as i64);
            writer.i64(6, 100 - column as i64 * 50 + 50 * i64::from(column == 2));
            writer.list(3, handmade::BINARY, 1);
            writer.bytes_value(format!("c{column}").as_bytes());
            if column == 2 {
                odd(writer);
            }
        });
    });
    writer.stop();
    Footer::from_file_bytes(&handmade::file(304, writer.bytes()), &Options::new()).unwrap()
}

#[test]
fn each_thing_wrong_is_found_and_named() {
    assert_eq!(findings(&three(|_| {})), [""; 0]);
    type Odd = fn(&mut ThriftWriter);
    let cases: [(Odd, &str); 9] = [
        (|writer| writer.i64(9, 150), "in data of row_groups[0].columns[1] at 104..204"),
        (
            |writer| writer.i64(7, 1000),
            "expected data within bytes 4..304 of the file, found it at 204..1204",
        ),
        (|writer| writer.i64(5, 9), "expected the row group's 10 values, found 9"),
        (
            |writer| writer.i64(11, 204),
            "expected a dictionary page before the data page at 204, found one at 204",
        ),
        (|writer| writer.i64(6, 7), "found 200 - row_groups[0].total_byte_size"),
        (|writer| writer.i32(4, 77), "expected a codec of the format, found unknown (77)"),
        (
            |writer| {
                writer.list(3, handmade::BINARY, 1);
                writer.bytes_value(b"other");
            },
            "expected the path `c2`, found `other`",
        ),
        (
            |writer| {
                writer.begin(12);
                writer.i64(3, 11);
                writer.stop();
            },
            "expected 0 to 10 nulls, found 11",
        ),
        (
            |writer| writer.i64(14, -5),
            "expected an offset and a length of the bloom_filter, found -5 and none",
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
    let found = findings(&three(|writer| {
        writer.i64(5, 9);
        writer.i64(9, 1);
        writer.i64(11, -1);
    }));
    assert_eq!(found.len(), 3, "{found:?}");
}
