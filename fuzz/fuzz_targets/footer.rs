//! Any bytes as a footer: all methods must agree, and asking for everything must do no harm.
//!
//! `cargo +nightly fuzz run footer -- -max_total_time=60`. The first byte of the input chooses what is
//! decoded; a footer made by code, with the rest of the input written over a part of it, reaches deeper
//! than bare bytes do.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sawmill_footer::{
    ColumnIndex, Footer, Method, OffsetIndex, Options, Root, SyntheticColumns, SyntheticFooter, dump,
};

fn options(choice: u8) -> Options {
    match choice % 4 {
        0 => Options::new(),
        1 => Options::new().columns([3, 17]),
        2 => Options::new().row_groups(1..6),
        _ => Options::new().row_groups_where(|rows| rows % 2 == 0),
    }
}

fn everything(bytes: &[u8], options: &Options) -> String {
    let footer = match Footer::decode(bytes, options) {
        Ok(footer) => footer,
        Err(error) => return error.to_string(),
    };
    let mut text = format!("{footer:?} {:?} {:?}", footer.created_by(), footer.schema());
    for group in footer.row_groups() {
        text += &format!("{group:?}");
        for chunk in group.columns() {
            let details = chunk.details().map_err(|error| error.to_string());
            text += &format!("{chunk:?} {} {details:?}", chunk.footer_offset());
        }
    }
    footer.check(|finding| text += &finding.to_string());
    text
}

fn agree(bytes: &[u8], options: &Options) {
    let scalar = everything(bytes, &options.clone().method(Method::Scalar));
    for method in [Method::Portable, Method::Avx2, Method::Avx512] {
        assert_eq!(scalar, everything(bytes, &options.clone().method(method)));
    }
}

/// Footers to break, made once.
static MADE: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed]
        .map(|kind| SyntheticFooter { columns: 18, row_groups: 7, kind, seed: 5 }.bytes())
});

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let options = options(choice);
    agree(bytes, &options);
    let _ = dump(bytes, Root::FileMetaData, |line| !line.to_string().is_empty());
    let _ = OffsetIndex::decode(bytes);
    let _ = ColumnIndex::decode(bytes);
    if let [kind, low, high, patch @ ..] = bytes {
        let mut made = MADE[usize::from(*kind) % 3].clone();
        let at = usize::from(u16::from_le_bytes([*low, *high])) % made.len();
        let end = (at + patch.len()).min(made.len());
        made[at..end].copy_from_slice(&patch[..end - at]);
        agree(&made, &options);
    }
});
