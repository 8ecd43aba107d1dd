//! Any bytes as lines of JSON: read at once and in pieces of any size, the rows are the same, or both are refused.
//! The first two bytes choose the options and the size of the pieces.
#![no_main]

mod reading;
mod text_files;

use libfuzzer_sys::fuzz_target;
use sawmill_source::{ColumnType, DelimitedOptions, Dialect, Hive, RecordForm};

fuzz_target!(|input: &[u8]| {
    let [choice, size, text @ ..] = input else { return };
    let types: &[(&str, ColumnType)] = match choice % 8 {
        0..4 => &[],
        4 => &[("a", ColumnType::Json)],
        5 => &[("a", ColumnType::Text), ("b", ColumnType::Int64)],
        6 => &[("a.b[]", ColumnType::Text)],
        _ => &[("a.b", ColumnType::Float64), ("later", ColumnType::Json)],
    };
    let dialect = Dialect {
        records: RecordForm::Json,
        skip_lines: u64::from(choice / 8 % 8 == 7),
        ..Dialect::default()
    };
    let options = DelimitedOptions {
        dialect,
        types: types.iter().map(|(path, of)| ((*path).to_owned(), *of)).collect(),
        most_rejected: (choice / 64 == 1).then_some(5),
        sample: (choice / 64 == 2).then_some(2),
        hive: Hive::Ignored,
        ..DelimitedOptions::default()
    };
    text_files::the_same_in_chunks("text.ndjson", text, &options, *size);
});
