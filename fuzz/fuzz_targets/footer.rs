//! Any bytes as a footer: all methods must agree, and asking for everything must do no harm, the `parquet` crate's
//! metadata included.
//!
//! The first byte of the input chooses the options and the footer: the rest of the input as it is, or a footer made
//! by code with the rest written over a part of it, which reaches deeper than bare bytes do.
//! `.ci/fuzz` builds and runs it; docs/footer.md says how.
#![no_main]

#[path = "../../crates/footer/tests/footer/everything.rs"]
mod everything;
#[path = "../../crates/footer/tests/footer/synthetic.rs"]
mod synthetic;
#[path = "../../crates/footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the target needs some of its methods")]
mod thrift_writer;

use std::fmt::Debug;
use std::io;
use std::sync::LazyLock;

use everything::{everything, page_indexes, page_indexes_one_by_one};
use libfuzzer_sys::fuzz_target;
use sawmill_footer::{
    ColumnIndex, Error, Footer, FooterBytes, Method, OffsetIndex, Options, RangeReader, Root, dump,
};
use synthetic::{SyntheticColumns, SyntheticFooter};
use thrift_writer::ThriftWriter;

/// The element type of a list of structs.
const STRUCT: u8 = 12;

/// The methods that the scalar one is compared with.
const METHODS: [Method; 3] = [Method::Fastest, Method::Portable, Method::Avx2];

fn options(choice: u8) -> Options {
    match choice % 4 {
        0 => Options::new(),
        1 => Options::new().columns([3, 7]),
        2 => Options::new().row_groups(1..4),
        _ => Options::new().row_groups_where(|rows| rows % 2 == 0),
    }
}

/// A file that repeats its bytes endlessly: page indexes can be read from wherever a footer places them.
struct Everywhere<'a>(&'a [u8]);

impl RangeReader for Everywhere<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(if self.0.is_empty() { 0 } else { 1 << 20 })
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = offset as usize % self.0.len();
        buffer.iter_mut().zip(self.0.iter().cycle().skip(start)).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// What the footer makes of itself for the `parquet` crate: whole and projected, with and without page indexes.
#[cfg(feature = "conversion")]
fn conversions(decoded: &Result<Footer, Error>, file: &Everywhere<'_>) -> impl PartialEq + Debug + use<> {
    fn text<T>(converted: Result<T, Error>) -> Result<T, String> {
        converted.map_err(|error| error.to_string())
    }
    let wanted: [Option<&[usize]>; 3] = [None, Some(&[0]), Some(&[1, 3])];
    decoded.as_ref().ok().map(|footer| {
        let of_59 = wanted.map(|leaves| text(footer.to_parquet_59(leaves)));
        let indexed_59 = text(footer.to_parquet_59_with_page_indexes(None, file));
        #[cfg(feature = "newest")]
        let newest = (
            wanted.map(|leaves| text(footer.to_parquet_60(leaves))),
            text(footer.to_parquet_60_with_page_indexes(Some(&[1, 3]), file)),
        );
        #[cfg(not(feature = "newest"))]
        let newest = ();
        (of_59, indexed_59, newest)
    })
}

#[cfg(not(feature = "conversion"))]
fn conversions(_: &Result<Footer, Error>, _: &Everywhere<'_>) -> impl PartialEq + Debug + use<> {}

/// Decodes by all methods, and asks for everything that a footer can give.
fn agree(bytes: &FooterBytes, options: &Options) {
    let by = |method| Footer::decode(bytes.clone(), &options.clone().method(method));
    let file = Everywhere(bytes.as_slice());
    let indexes =
        |footer: &Result<Footer, Error>| footer.as_ref().ok().map(|footer| page_indexes(footer, &file));
    let scalar = by(Method::Scalar);
    let (expected, expected_indexes) = (everything(&scalar), indexes(&scalar));
    let expected_conversions = conversions(&scalar, &file);
    if let Ok(footer) = &scalar {
        // However many chunks name the same bytes, memory is a multiple of the file's length.
        if let Ok(together) = footer.read_page_indexes(&file) {
            let chunks = footer.num_row_groups() * footer.num_columns();
            assert!(together.heap_bytes() <= 48 * chunks + (40 << 20), "{} bytes", together.heap_bytes());
        }
        // One malformed index is an error of all of them, read together.
        let one_by_one = page_indexes_one_by_one(footer, &file);
        let together = expected_indexes.as_deref();
        assert!(together == Some(&one_by_one) || footer.read_page_indexes(&file).is_err());
    }
    for method in METHODS.into_iter().filter(|method| method.is_available()) {
        let other = by(method);
        assert_eq!(expected, everything(&other), "{method:?}");
        assert_eq!(expected_indexes, indexes(&other), "{method:?}");
        let converted = conversions(&other, &file);
        // Bounds that are NaN differ from themselves, and text is made slowly.
        let same = expected_conversions == converted
            || format!("{expected_conversions:?}") == format!("{converted:?}");
        assert!(same, "{method:?}");
    }
}

/// A footer of chunks with and without page indexes, whose places lie within [`Everywhere`].
fn sparse() -> Vec<u8> {
    let (columns, row_groups) = (9, 6);
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    writer.list(2, STRUCT, columns + 1);
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
    writer.i64(3, 60);
    writer.list(4, STRUCT, row_groups);
    for group in 0..row_groups {
        writer.begin_element();
        writer.list(1, STRUCT, columns);
        for column in 0..columns {
            writer.begin_element();
            writer.i64(2, 0);
            writer.begin(3);
            writer.i32(1, 2);
            writer.list(2, 5, 1);
            writer.integer(0);
            writer.list(3, 8, 1);
            writer.bytes_value(b"c");
            for (field, number) in [(4, 6), (5, 10), (6, 200), (7, 100), (9, 4)] {
                if field == 4 { writer.i32(field, number) } else { writer.i64(field, number.into()) }
            }
            writer.stop();
            for (field, wanted) in [(4, (group + column) % 3 > 0), (6, (group * column) % 4 > 1)] {
                if wanted {
                    writer.i64(field, (1000 * group + 100 * column) as i64);
                    writer.i32(field + 1, 90);
                }
            }
            writer.stop();
        }
        writer.i64(2, 200);
        writer.i64(3, 10);
        writer.stop();
    }
    writer.stop();
    writer.into_bytes()
}

/// Footers to break, made once.
static MADE: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let made = |kind| SyntheticFooter { columns: 16, row_groups: 5, kind, seed: 5 }.bytes();
    [made(SyntheticColumns::Float), made(SyntheticColumns::Text), made(SyntheticColumns::Mixed), sparse()]
});

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let options = options(choice);
    let made = match (choice / 4 % 8, bytes) {
        (kind @ 1..=4, [low, high, patch @ ..]) => {
            let mut made = MADE[usize::from(kind) - 1].clone();
            let at = usize::from(u16::from_le_bytes([*low, *high])) % made.len();
            let end = (at + patch.len()).min(made.len());
            made[at..end].copy_from_slice(&patch[..end - at]);
            // A quarter of them is also cut off.
            made.truncate(if choice >= 0xc0 { end } else { made.len() });
            made
        }
        _ => {
            if let Ok(index) = OffsetIndex::decode(bytes) {
                let _ = format!("{index:?}");
            }
            if let Ok(index) = ColumnIndex::decode(bytes) {
                let _ = format!("{index:?}");
            }
            let _ = dump(bytes, Root::FileMetaData, |line| line.value.to_string().len() < usize::MAX);
            bytes.to_vec()
        }
    };
    agree(&made.into(), &options);
});
