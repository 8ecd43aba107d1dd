//! Any bytes as delimited text: read at once and in pieces of any size, the records are the same, or both are
//! refused. The first three bytes choose the dialect and the size of the pieces.
#![no_main]

mod reading;
mod text_files;

use libfuzzer_sys::fuzz_target;
use sawmill_source::{ColumnType, DelimitedOptions, Dialect, Formats, Hive, Ragged};

fn dialect(choice: u8, more: u8) -> Dialect {
    let bit = |place: u8| more >> place & 1 == 1;
    Dialect {
        delimiter: [None, Some(b';'), Some(b'\t'), Some(b' ')][usize::from(choice % 4)],
        long_delimiter: (choice / 4 % 8 == 0).then(|| "||".to_owned()),
        quote: [Some(b'"'), Some(b'"'), Some(b'\''), None][usize::from(choice / 32 % 4)],
        escape: (choice / 128 == 1).then_some(b'\\'),
        comment: bit(0).then_some(b'#'),
        header: !bit(1),
        names: if bit(2) { vec!["a".into(), "b".into()] } else { Vec::new() },
        nulls: if bit(3) { vec!["NA".into(), String::new()] } else { vec![String::new()] },
        quoted_nulls: bit(4),
        skip_lines: u64::from(bit(5)),
        ragged: [Ragged::Refused, Ragged::Refused, Ragged::Filled, Ragged::FilledAndCut]
            [usize::from(more / 64)],
        formats: Formats { decimal_comma: choice / 4 % 8 == 1, ..Formats::default() },
        ..Dialect::default()
    }
}

fuzz_target!(|input: &[u8]| {
    let [choice, more, size, text @ ..] = input else { return };
    let types = match size / 32 {
        0..4 => Vec::new(),
        4 | 5 => vec![("a".to_owned(), ColumnType::Text)],
        _ => vec![("a".to_owned(), ColumnType::Int64), ("b".to_owned(), ColumnType::Text)],
    };
    let options = DelimitedOptions {
        dialect: dialect(*choice, *more),
        types,
        most_rejected: (size % 4 == 3).then_some(5),
        hive: Hive::Ignored,
        ..DelimitedOptions::default()
    };
    text_files::the_same_in_chunks("text.csv", text, &options, *size);
});
