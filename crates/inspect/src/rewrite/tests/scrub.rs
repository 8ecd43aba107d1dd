//! Footers without what they tell about the data.

use sawmill_footer::{DumpValue, Footer, Options, Root, dump};

use super::{BINARY, Faulty, RIGHT, STRUCT, decoded, fixtures};
use crate::rewrite::{scrubbed, write_file};
use crate::thrift_writer::ThriftWriter;

/// The texts and bounds of a footer that come from data.
fn told(footer: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    dump(footer, Root::FileMetaData, |line| {
        if let DumpValue::Text(bytes) | DumpValue::Binary(bytes) = line.value
            && !matches!(line.name, Some("created_by" | "key"))
        {
            all.push(bytes.to_vec());
        }
        true
    })
    .unwrap();
    all
}

/// What a scrubbed footer must have kept: everything but texts and bounds.
fn shape(footer: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    dump(footer, Root::FileMetaData, |line| {
        let value = match line.value {
            DumpValue::Text(_) | DumpValue::Binary(_) => String::new(),
            value => value.to_string(),
        };
        all.push(format!("{} {:?} {:?} {} {value}", line.depth, line.id, line.index, line.wire));
        true
    })
    .unwrap();
    all
}

#[test]
fn a_scrubbed_footer_has_the_same_shape_and_no_names_or_bounds() {
    for path in fixtures() {
        let original = decoded(&std::fs::read(&path).unwrap());
        let footer = scrubbed(&original).unwrap();
        assert_eq!(shape(&footer), shape(original.bytes()), "{}", path.display());
        let kept = original.created_by().unwrap_or_default().into_owned();
        for told in told(original.bytes()) {
            for part in told.windows(4).filter(|part| !part.iter().all(|byte| *byte == 0)) {
                let is_kept = kept.as_bytes().windows(4).any(|of| of == part)
                    || b"root ARROW:schema pandas".windows(4).any(|of| of == part);
                let number = u32::from_le_bytes(*part.first_chunk().unwrap());
                // Zeros and ones replace bounds, and numbers of the footer may have any bytes.
                if is_kept || number < 1 << 16 || !part.iter().all(u8::is_ascii_graphic) {
                    continue;
                }
                let found = footer.windows(4).any(|found| found == part);
                assert!(!found, "{}: {:?}", path.display(), String::from_utf8_lossy(part));
            }
        }
        let mut alone = Vec::new();
        write_file(&footer, true, &mut alone).unwrap();
        let alone = decoded(&alone);
        assert_eq!(alone.created_by(), original.created_by());
        assert!(alone.has_no_data() || original.num_rows() == 0, "{}", path.display());
        assert!(!original.has_no_data(), "{}", path.display());
        crate::check(&alone, |found| panic!("{}: {found}", path.display()));
    }
}

#[test]
fn a_scrubbed_footer_masks_names_keys_and_values() {
    let original = Faulty {
        more: |w| {
            w.list(8, STRUCT, 3);
            for key in [&b"pandas"[..], b"the customer", b"pandas.client"] {
                w.begin_element();
                w.binary(1, key);
                w.binary(2, b"Jane Doe");
                w.stop();
            }
        },
        ..RIGHT
    };
    let bytes = original.footer();
    let footer = scrubbed(&Footer::decode(bytes, &Options::new()).unwrap()).unwrap();
    let footer = Footer::decode(footer, &Options::new()).unwrap();
    let details = footer.column_chunk(0, 0).unwrap().details().unwrap();
    assert_eq!(details.path_in_schema, Some(vec!["c1"]));
    let expected = ["scrubbed.pandas", "scrubbed.2", "scrubbed.3"].map(|key| (key, Some("xxxxxxxx")));
    assert_eq!(details.key_value_metadata, Some(expected.to_vec()));
    assert_eq!(footer.created_by().as_deref(), Some("a writer"));
}

/// What is wrong with names is still wrong: a report shows it.
#[test]
fn a_scrubbed_footer_keeps_a_wrong_path_and_a_name_that_is_there_twice() {
    let another: fn(&mut ThriftWriter) = |w| {
        w.list(3, BINARY, 1);
        w.bytes_value(b"other");
    };
    let footer = Faulty { path: another, ..RIGHT }.footer();
    let footer = scrubbed(&Footer::decode(footer, &Options::new()).unwrap()).unwrap();
    let footer = Footer::decode(footer, &Options::new()).unwrap();
    let details = footer.column_chunk(0, 0).unwrap().details().unwrap();
    assert_eq!(details.path_in_schema, Some(vec!["xxxxx"]));
    let mut w = ThriftWriter::new();
    w.i32(1, 1);
    w.list(2, STRUCT, 4);
    w.begin_element();
    w.binary(4, b"root");
    w.i32(5, 3);
    w.stop();
    for name in [b"one", b"two", b"one"] {
        w.begin_element();
        w.i32(1, 2);
        w.i32(3, 0);
        w.binary(4, name);
        w.stop();
    }
    w.i64(3, 0);
    w.list(4, STRUCT, 0);
    w.stop();
    let footer = scrubbed(&Footer::decode(w.into_bytes(), &Options::new()).unwrap()).unwrap();
    let footer = Footer::decode(footer, &Options::new()).unwrap();
    let names: Vec<&str> = footer.schema().elements().map(|element| element.name()).collect();
    assert_eq!(names, ["root", "c1", "c2", "c1"]);
}
