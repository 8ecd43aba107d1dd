//! Encrypted columns under a plaintext footer: the file can be read, the columns cannot.

use sawmill_footer::{Footer, Options};

use crate::handmade::{BINARY, chunk, file, footer, required};

#[test]
fn a_column_with_a_key_of_its_own_has_no_metadata_and_the_file_can_be_read() {
    let bytes = footer(2, |writer, column| {
        if column == 1 {
            writer.begin_element();
            writer.i64(2, 0);
            writer.begin(8);
            writer.begin(2);
            writer.list(1, BINARY, 1);
            writer.bytes_value(b"c1");
            writer.binary(2, b"key");
            writer.stop();
            writer.stop();
            writer.binary(9, b"secret");
            writer.stop();
        } else {
            chunk(writer, |_| {});
        }
    });
    let footer = Footer::decode(&bytes[..], &Options::new()).unwrap();
    let chunk = footer.column_chunk(0, 1).unwrap();
    assert!(!chunk.has_metadata() && chunk.is_encrypted());
    assert_eq!(chunk.details().unwrap().encrypted_column_metadata, Some(&b"secret"[..]));
    assert!(chunk.readable().unwrap_err().what().contains("encrypted column"));
    footer.column_chunk(0, 0).unwrap().readable().unwrap();
    has_no_data_alone(&bytes);
}

/// The footer alone in a file, as `sawmill footer extract` writes it, counts as a file without data.
fn has_no_data_alone(bytes: &[u8]) {
    let file = file(4, bytes);
    let alone = Footer::from_file_bytes(&file, &Options::new()).unwrap();
    assert!(alone.has_no_data());
}

#[test]
fn an_encrypted_column_with_plaintext_metadata_is_valid_but_unreadable() {
    // As arrow-cpp writes it under a plaintext footer: with metadata for readers without the key, and
    // encrypted indexes.
    let bytes = footer(2, |writer, column| {
        writer.begin_element();
        writer.i64(2, 0);
        writer.begin(3);
        required(writer, &format!("c{column}"), 100, 4 + 100 * column as i64);
        writer.stop();
        if column == 0 {
            writer.i64(4, 220);
            writer.i32(5, 20);
            writer.i64(6, 240);
            writer.i32(7, 20);
            writer.begin(8);
            writer.begin(1);
            writer.stop();
            writer.stop();
            writer.binary(9, b"secret");
        }
        writer.stop();
    });
    let file = file(300, &bytes);
    let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
    let chunk = footer.column_chunk(0, 0).unwrap();
    assert!(chunk.has_metadata() && chunk.is_encrypted());
    assert!(chunk.readable().unwrap_err().what().contains("encrypted column"));
    assert_eq!(chunk.read_offset_index(file.as_slice()).unwrap(), None);
    assert!(chunk.read_column_index(file.as_slice()).unwrap().is_none());
    let indexes = footer.read_page_indexes(file.as_slice()).unwrap();
    assert!(indexes.offset_index(0, 0).is_none() && indexes.column_index(0, 0).is_none());
    let mut found = Vec::new();
    sawmill_inspect::check_file(&footer, file.as_slice(), |finding| found.push(finding.to_string())).unwrap();
    assert_eq!(found, [""; 0]);
    has_no_data_alone(&bytes);
}
