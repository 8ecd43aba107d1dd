//! Footers are written again as they were, repaired, or scrubbed.

mod mutations;
mod promises;
mod scrub;

use std::path::{Path, PathBuf};

use sawmill_footer::{DumpLine, Footer, Options};

use super::output::Output;
use super::{Edit, Editor, Place, Repaired, repaired, rewrite, write_file};
use crate::check::Inconsistency;
use crate::thrift_writer::ThriftWriter;

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Files of other writers.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn decoded(file: &[u8]) -> Footer {
    Footer::from_file_bytes(file, &Options::new()).unwrap()
}

/// A file of these pages and a footer.
fn file(pages: &[u8], footer: &[u8]) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    file.extend_from_slice(pages);
    write_file(footer, false, &mut file).unwrap();
    file
}

/// A page of `len` bytes with these ones and others that readers skip.
fn page(len: usize, dictionary: bool, encoding: i32, body: &[u8]) -> Vec<u8> {
    let header = |padding: usize| {
        let mut w = ThriftWriter::new();
        w.i32(1, if dictionary { 2 } else { 0 });
        w.i32(2, body.len() as i32);
        w.i32(3, body.len() as i32);
        w.begin(if dictionary { 7 } else { 5 });
        w.i32(1, if dictionary { 2 } else { 10 });
        w.i32(2, encoding);
        if !dictionary {
            w.i32(3, 3);
            w.i32(4, 3);
        }
        w.stop();
        match padding {
            0 => {}
            1 => w.bool(15, true),
            more => w.binary(15, &vec![0; more - 2]),
        }
        w.stop();
        w.into_bytes()
    };
    let padding = len - header(0).len() - body.len();
    [&header(padding), body].concat()
}

/// The pages of ten numbers, in 100 bytes: as they are, or in 36 bytes a dictionary and their indices.
fn pages(is_coded: bool) -> Vec<u8> {
    match is_coded {
        false => page(100, false, 0, &[0; 80]),
        true => [page(36, true, 0, &[0; 16]), page(64, false, 8, &[1, 20, 0])].concat(),
    }
}

struct Keep;

impl Editor for Keep {
    fn value(&mut self, _: &Place, _: &DumpLine<'_>) -> Edit {
        Edit::Keep
    }

    fn missing(&mut self, _: &Place, _: i16, _: &mut Output) {}
}

#[test]
fn footers_of_other_writers_are_written_again_byte_by_byte_and_need_no_repair() {
    for path in fixtures() {
        let file = std::fs::read(&path).unwrap();
        let footer = decoded(&file);
        assert_eq!(rewrite(footer.bytes(), &mut Keep).unwrap(), footer.bytes(), "{}", path.display());
        let Repaired { footer: same, repairs, left, .. } = repaired(file.as_slice(), "it", 1 << 20).unwrap();
        assert!(repairs.is_empty() && left.is_empty(), "{}: {:?}", path.display(), repairs);
        assert_eq!(same, footer.bytes());
    }
}

/// A column of a footer to write: its place in the schema and its chunk.
struct Faulty {
    schema: fn(&mut ThriftWriter),
    /// Writes the fields of the chunk before its metadata.
    chunk: fn(&mut ThriftWriter),
    /// Writes the path in the schema.
    path: fn(&mut ThriftWriter),
    encodings: &'static [i64],
    /// The data page's offset.
    data: i64,
    /// The bytes of its pages in the file.
    size: i64,
    /// Writes the fields of the metadata after it.
    more: fn(&mut ThriftWriter),
    /// The compressed bytes of the row group.
    total: i64,
}

const RIGHT: Faulty = Faulty {
    schema: |w| {
        w.i32(1, 2);
        w.i32(3, 0);
        w.binary(4, b"secret");
    },
    chunk: |w| w.i64(2, 0),
    path: |w| {
        w.list(3, BINARY, 1);
        w.bytes_value(b"secret");
    },
    encodings: &[0],
    data: 4,
    size: 100,
    more: |_| {},
    total: 100,
};

impl Faulty {
    fn footer(&self) -> Vec<u8> {
        let mut w = ThriftWriter::new();
        w.i32(1, 1);
        w.list(2, STRUCT, 2);
        w.begin_element();
        w.binary(4, b"root");
        w.i32(5, 1);
        w.stop();
        w.begin_element();
        (self.schema)(&mut w);
        w.stop();
        w.i64(3, 10);
        w.list(4, STRUCT, 1);
        w.begin_element();
        w.list(1, STRUCT, 1);
        w.begin_element();
        (self.chunk)(&mut w);
        w.begin(3);
        w.i32(1, 2);
        w.list(2, I32, self.encodings.len() as u64);
        self.encodings.iter().for_each(|encoding| w.integer(*encoding));
        (self.path)(&mut w);
        w.i32(4, 0);
        w.i64(5, 10);
        w.i64(6, 100);
        w.i64(7, self.size);
        w.i64(9, self.data);
        (self.more)(&mut w);
        w.stop();
        w.stop();
        w.i64(2, 100);
        w.i64(3, 10);
        w.i64(6, self.total);
        w.stop();
        w.binary(6, b"a writer");
        w.stop();
        w.into_bytes()
    }

    /// The repairs, as `field: was -> now`; afterwards nothing is left to repair.
    fn repairs(&self) -> Vec<String> {
        let (bytes, pages) = (self.footer(), pages(self.encodings.contains(&8)));
        let found = repaired(file(&pages, &bytes).as_slice(), "it", 1 << 20).unwrap();
        assert!(found.left.is_empty(), "{:?}", found.left);
        let again = repaired(file(&pages, &found.footer).as_slice(), "it", 1 << 20).unwrap();
        assert!(again.repairs.is_empty() && again.footer == found.footer, "{:?}", again.repairs);
        found.repairs.iter().map(|one| format!("{}: {} -> {}", one.field, one.was, one.now)).collect()
    }
}

#[test]
fn what_readers_refuse_is_repaired_and_nothing_else() {
    assert_eq!(RIGHT.repairs(), [""; 0]);
    let statistics: fn(&mut ThriftWriter) = |w| {
        w.begin(12);
        w.i64(3, -1);
        w.i64(4, 7);
        w.binary(5, b"12345678");
        w.binary(6, b"1");
        w.stop();
    };
    let crossed: fn(&mut ThriftWriter) = |w| {
        w.begin(12);
        w.binary(1, &1_i64.to_le_bytes());
        w.binary(2, &5_i64.to_le_bytes());
        w.stop();
    };
    let cases: [(&str, Faulty, &[&str]); 18] = [
        (
            "a lower bound above the upper one",
            Faulty { more: crossed, ..RIGHT },
            &[
                "meta_data.statistics.max: in the wrong order -> left out",
                "meta_data.statistics.min: in the wrong order -> left out",
            ],
        ),
        (
            "a dictionary that is there, before the data",
            Faulty { encodings: &[0, 8], data: 40, more: |w| w.i64(11, 0), ..RIGHT },
            &["meta_data.dictionary_page_offset: 0 -> 4"],
        ),
        (
            "a dictionary page without an offset",
            Faulty { encodings: &[0, 8], data: 40, ..RIGHT },
            &["meta_data.dictionary_page_offset: missing -> 4"],
        ),
        (
            "a data page that is elsewhere",
            Faulty { encodings: &[0, 8], data: 0, more: |w| w.i64(11, 4), ..RIGHT },
            &["meta_data.data_page_offset: 0 -> 40"],
        ),
        (
            "data pages at the place of the dictionary",
            Faulty { encodings: &[0, 8], more: |w| w.i64(11, 4), ..RIGHT },
            &["meta_data.data_page_offset: 4 -> 40"],
        ),
        (
            "a dictionary at 0",
            Faulty { more: |w| w.i64(11, 0), ..RIGHT },
            &["meta_data.dictionary_page_offset: 0 -> left out"],
        ),
        (
            "a dictionary after the data",
            Faulty { more: |w| w.i64(11, 90), ..RIGHT },
            &["meta_data.dictionary_page_offset: 90 -> left out"],
        ),
        (
            "a negative count and a short bound",
            Faulty { more: statistics, ..RIGHT },
            &[
                "meta_data.statistics.min_value: of another length -> left out",
                "meta_data.statistics.null_count: -1 -> left out",
            ],
        ),
        ("no file offset", Faulty { chunk: |_| {}, ..RIGHT }, &["file_offset: missing -> 0"]),
        (
            "no path",
            Faulty { path: |_| {}, ..RIGHT },
            &["meta_data.path_in_schema: missing or another path -> the path in the schema"],
        ),
        (
            "no scale",
            Faulty {
                schema: |w| {
                    w.i32(1, 2);
                    w.i32(3, 0);
                    w.binary(4, b"secret");
                    w.i32(6, 5);
                    w.i32(8, 9);
                    w.begin(10);
                    w.begin(5);
                    w.i32(2, 9);
                    w.stop();
                    w.stop();
                },
                ..RIGHT
            },
            &["schema.logicalType.DECIMAL.scale: missing -> 0", "schema.scale: missing -> 0"],
        ),
        (
            "digits of the logical type beside those of the element",
            Faulty {
                schema: |w| {
                    w.i32(1, 2);
                    w.i32(3, 0);
                    w.binary(4, b"secret");
                    w.i32(6, 5);
                    w.i32(7, 3);
                    w.i32(8, 9);
                    w.begin(10);
                    w.begin(5);
                    w.stop();
                    w.stop();
                },
                ..RIGHT
            },
            &[
                "schema.logicalType.DECIMAL.precision: missing -> 9",
                "schema.logicalType.DECIMAL.scale: missing -> 3",
            ],
        ),
        (
            "microseconds beside a logical type of milliseconds",
            Faulty {
                schema: |w| {
                    w.i32(1, 2);
                    w.i32(3, 0);
                    w.binary(4, b"secret");
                    w.i32(6, 10);
                    w.begin(10);
                    w.begin(8);
                    w.bool(1, false);
                    w.begin(2);
                    w.begin(1);
                    (0..4).for_each(|_| w.stop());
                },
                ..RIGHT
            },
            &["schema.converted_type: 10 TIMESTAMP_MICROS -> left out"],
        ),
        ("a negative file offset", Faulty { chunk: |w| w.i64(2, -5), ..RIGHT }, &["file_offset: -5 -> 0"]),
        (
            "an empty path to a file",
            Faulty {
                chunk: |w| {
                    w.binary(1, b"");
                    w.i64(2, 0);
                },
                ..RIGHT
            },
            &["file_path: empty -> left out"],
        ),
        (
            "keys and values as bytes",
            Faulty {
                more: |w| {
                    w.list(8, BINARY, 1);
                    w.bytes_value(b"key");
                },
                ..RIGHT
            },
            &["meta_data.key_value_metadata: list, not list of structs -> left out"],
        ),
        ("a negative sum", Faulty { total: -5, ..RIGHT }, &["total_compressed_size: -5 -> 100"]),
        (
            "an index past the end, and an offset of another type",
            Faulty {
                more: |w| {
                    w.i64(14, 5_000);
                    w.i32(15, 32);
                    w.binary(16, b"sizes");
                },
                ..RIGHT
            },
            &[
                "meta_data.bloom_filter_length: 32 -> left out",
                "meta_data.bloom_filter_offset: 5000 -> left out",
                "meta_data.size_statistics: binary, not struct -> left out",
            ],
        ),
    ];
    for (name, faulty, expected) in cases {
        assert_eq!(faulty.repairs(), expected, "{name}");
    }
}

#[test]
fn a_repair_that_lets_the_footer_be_decoded_names_its_column() {
    let more: fn(&mut ThriftWriter) = |w| {
        w.list(8, BINARY, 1);
        w.bytes_value(b"key");
    };
    let faulty = Faulty { more, ..RIGHT };
    let found = repaired(file(&pages(false), &faulty.footer()).as_slice(), "it", 1 << 20).unwrap();
    let columns: Vec<_> = found.repairs.iter().map(|one| one.column).collect();
    assert_eq!(columns, [Some("secret".to_owned())]);
}

/// A column without a repetition, and what its metadata tells of its levels.
fn without_repetition(pages: &[u8], more: fn(&mut ThriftWriter)) -> (Vec<String>, Vec<Inconsistency>) {
    let schema: fn(&mut ThriftWriter) = |w| {
        w.i32(1, 2);
        w.binary(4, b"secret");
    };
    let bytes = Faulty { schema, more, ..RIGHT }.footer();
    let found = repaired(file(pages, &bytes).as_slice(), "it", 1 << 20).unwrap();
    (found.repairs.iter().map(|one| format!("{} -> {}", one.field, one.now)).collect(), found.left)
}

#[test]
fn a_missing_repetition_is_what_levels_tell_and_never_guessed() {
    fn levels(w: &mut ThriftWriter, counts: &[i64]) {
        w.begin(16);
        w.list(3, I64, counts.len() as u64);
        counts.iter().for_each(|count| w.integer(*count));
        w.stop();
    }
    let two: fn(&mut ThriftWriter) = |w| levels(w, &[0, 10]);
    let one: fn(&mut ThriftWriter) = |w| levels(w, &[10]);
    let null: fn(&mut ThriftWriter) = |w| {
        w.begin(12);
        w.i64(3, 1);
        w.stop();
    };
    for (more, expected) in [(two, "OPTIONAL"), (one, "REQUIRED"), (null, "OPTIONAL")] {
        // One of them is NULL.
        let levels = page(100, false, 0, &[&[4, 0, 0, 0, 18, 1, 2, 0][..], &[0; 72]].concat());
        let pages = if expected == "OPTIONAL" { levels } else { pages(false) };
        let (repairs, left) = without_repetition(&pages, more);
        assert_eq!(repairs, [format!("schema.repetition_type -> {expected}")]);
        assert!(left.is_empty(), "{left:?}");
    }
    let three: fn(&mut ThriftWriter) = |w| levels(w, &[0, 0, 10]);
    for nothing_told in [three, |_| {}] {
        let (repairs, left) = without_repetition(&pages(false), nothing_told);
        assert_eq!(repairs, [""; 0], "the histogram stays");
        assert_eq!(left.len(), 1);
        assert!(left[0].path.ends_with("repetition_type"), "{left:?}");
    }
}

/// A size of 0 or less, or beyond the file, is not put into a sum that may be right.
#[test]
fn an_impossible_part_replaces_no_sum() {
    for (size, total) in [(-7, 100), (0, 100), (1 << 40, 100)] {
        let faulty = Faulty { size, ..RIGHT };
        let found = repaired(file(&pages(false), &faulty.footer()).as_slice(), "it", 1 << 20).unwrap();
        let repairs: Vec<_> = found.repairs.iter().map(|one| (one.field, one.now)).collect();
        let expected = ("meta_data.total_compressed_size".to_owned(), total.to_string());
        assert_eq!(repairs, [expected], "the sum tells the only part");
        assert!(found.left.is_empty(), "{:?}", found.left);
        let unknown = Faulty { size, total: -1, ..RIGHT };
        let found = repaired(file(&[0xee; 100], &unknown.footer()).as_slice(), "it", 1 << 20).unwrap();
        assert!(found.repairs.is_empty(), "{:?}", found.repairs);
        let told = |field: &str| found.left.iter().any(|left| left.to_string().contains(field));
        assert!(told("columns[0]") && told("row_groups[0].total_compressed_size"), "{:?}", found.left);
    }
}

#[test]
fn files_without_a_footer_to_repair_are_errors_that_name_them() {
    let cut = file(&pages(false), &RIGHT.footer());
    for bytes in [&cut[..cut.len() - 1], b"", b"PAR1"] {
        let error = repaired(bytes, "cut.parquet", 1 << 20).err().unwrap().to_string();
        assert!(error.contains("cut.parquet"), "{error}");
    }
    let mut signed = RIGHT.footer();
    signed.extend_from_slice(&[7; 28]);
    let error = repaired(file(&pages(false), &signed).as_slice(), "it", 1 << 20).err().unwrap().to_string();
    assert!(error.contains("signed"), "{error}");
}

#[test]
fn damaged_footers_are_repaired_and_scrubbed_or_refused() {
    let mut random = 7_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let (mut decodable, mut mended) = (0, 0);
    for path in fixtures() {
        let whole = std::fs::read(&path).unwrap();
        let len = decoded(&whole).footer_len();
        for _ in 0..60 {
            let mut file = whole.clone();
            for _ in 0..1 + next(3) {
                let at = file.len() - 8 - len + next(len);
                file[at] = next(256) as u8;
            }
            let kept = promises::keep(&file);
            decodable += usize::from(kept.is_scrubbed);
            mended += usize::from(kept.is_repaired);
        }
    }
    assert!(decodable > 100 && mended > 20, "{decodable}, {mended}");
}
