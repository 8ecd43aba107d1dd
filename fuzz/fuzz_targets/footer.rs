//! Any bytes as a footer: all methods must agree, and asking for everything must do no harm.
//!
//! The first byte of the input chooses what is decoded and of what: the rest of the input as it is, or a
//! footer made by code with the rest written over a part of it, which reaches deeper than bare bytes do.
//! `.ci/fuzz` builds and runs it; docs/footer.md says how.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sawmill_footer::{
    ColumnIndex, Footer, FooterBytes, FooterIndex, Method, OffsetIndex, Options, Root, SyntheticColumns,
    SyntheticFooter, dump,
};

/// The methods that the scalar one is compared with.
const METHODS: [Method; 3] = [Method::Portable, Method::Avx2, Method::Avx512];

fn options(choice: u8) -> Options {
    match choice % 4 {
        0 => Options::new(),
        1 => Options::new().columns([3, 7]),
        2 => Options::new().row_groups(1..4),
        _ => Options::new().row_groups_where(|rows| rows % 2 == 0),
    }
}

/// Asks a footer for everything.
fn look(footer: &Footer) {
    let _ = format!("{footer:?} {:?} {:?}", footer.created_by(), footer.schema());
    for group in footer.row_groups() {
        let _ = format!("{group:?}");
        for chunk in group.columns() {
            let _ = (chunk.path(), chunk.details(), chunk.offset_index_range(), chunk.column_index_range());
        }
    }
    footer.check(|finding| assert!(!finding.to_string().is_empty()));
}

fn same(scalar: &Footer, other: &Footer) {
    assert_eq!((scalar.version(), scalar.num_rows()), (other.version(), other.num_rows()));
    assert_eq!(scalar.schema(), other.schema());
    assert_eq!(scalar.created_by(), other.created_by());
    assert!(scalar.key_value_metadata().eq(other.key_value_metadata()));
    assert_eq!(scalar.column_orders(), other.column_orders());
    assert_eq!(scalar.num_row_groups_in_file(), other.num_row_groups_in_file());
    assert_eq!(scalar.num_row_groups(), other.num_row_groups());
    for (a, b) in scalar.row_groups().zip(other.row_groups()) {
        assert_eq!((a.index(), a.footer_offset()), (b.index(), b.footer_offset()));
        assert_eq!((a.num_rows(), a.total_byte_size()), (b.num_rows(), b.total_byte_size()));
        assert_eq!(a.num_columns(), b.num_columns());
        for (a, b) in a.columns().zip(b.columns()) {
            assert_eq!(a.footer_offset(), b.footer_offset());
            assert_eq!((a.physical_type(), a.codec()), (b.physical_type(), b.codec()));
            assert_eq!((a.encodings(), a.num_values()), (b.encodings(), b.num_values()));
            assert_eq!(a.compressed_size(), b.compressed_size());
            assert_eq!(a.uncompressed_size(), b.uncompressed_size());
            assert_eq!(a.data_page_offset(), b.data_page_offset());
            assert_eq!(a.dictionary_page_offset(), b.dictionary_page_offset());
            assert_eq!((a.has_metadata(), a.is_encrypted()), (b.has_metadata(), b.is_encrypted()));
            let text = |error: sawmill_footer::Error| error.to_string();
            assert_eq!(a.statistics().map_err(text), b.statistics().map_err(text));
        }
    }
}

/// Decodes by all methods, whole and to an index.
fn agree(bytes: &FooterBytes, options: &Options) {
    let by = |method| Footer::decode(bytes.clone(), &options.clone().method(method));
    let index = |method| {
        let built = FooterIndex::build(bytes.clone(), &Options::new().method(method));
        built.map(|index| index.to_bytes()).map_err(|error| error.to_string())
    };
    let (scalar, of_scalar) = (by(Method::Scalar), index(Method::Scalar));
    if let Ok(footer) = &scalar {
        look(footer);
    }
    for method in METHODS.into_iter().filter(|method| method.is_available()) {
        match (&scalar, &by(method)) {
            (Ok(scalar), Ok(other)) => same(scalar, other),
            (Err(scalar), Err(other)) => assert_eq!(scalar.to_string(), other.to_string()),
            (scalar, other) => panic!("{scalar:?} and {other:?} by {method:?}"),
        }
        assert_eq!(of_scalar, index(method), "{method:?}");
    }
}

/// Footers to break, made once.
static MADE: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed]
        .map(|kind| SyntheticFooter { columns: 16, row_groups: 5, kind, seed: 5 }.bytes())
});

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let options = options(choice);
    let made = match (choice / 4 % 4, bytes) {
        (kind @ 1.., [low, high, patch @ ..]) => {
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
            let _ = dump(bytes, Root::FileMetaData, |line| !line.to_string().is_empty());
            bytes.to_vec()
        }
    };
    agree(&made.into(), &options);
});
