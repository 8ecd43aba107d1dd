//! One wrong field in the footers of several writers: a repair mends it, or leaves all other fields as they are.

use std::collections::BTreeMap;
use std::path::Path;

use sawmill_footer::{DumpLine, DumpValue, Footer, Options};

use crate::check::check_file;
use crate::pages::chunks::check_pages;
use crate::rewrite::output::Output;
use crate::rewrite::{Edit, Editor, Place, repaired, rewrite, write_file};

/// The fields that are made wrong.
const FIELDS: [(&str, &[&str]); 5] = [
    ("FileMetaData", &["num_rows"]),
    ("RowGroup", &["total_byte_size", "num_rows", "file_offset", "total_compressed_size", "ordinal"]),
    ("ColumnChunk", &["file_offset", "offset_index_offset", "offset_index_length", "column_index_offset"]),
    (
        "ColumnMetaData",
        &[
            "num_values",
            "total_uncompressed_size",
            "total_compressed_size",
            "data_page_offset",
            "dictionary_page_offset",
            "index_page_offset",
            "bloom_filter_offset",
        ],
    ),
    ("Statistics", &["null_count"]),
];

/// A number in a footer: its row group, its column, its struct and its name.
type Number = (Option<usize>, Option<usize>, &'static str, &'static str);

/// Collects the numbers of a footer, and makes one of them another one, or leaves it out.
#[derive(Default)]
struct Numbers {
    found: BTreeMap<Number, i64>,
    wrong: Option<(Number, Option<i64>)>,
}

impl Editor for Numbers {
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit {
        let (Some(name), DumpValue::Integer(value)) = (line.name, line.value) else { return Edit::Keep };
        let number = (place.index_in("row_groups"), place.index_in("columns"), place.container(), name);
        // Histograms have many numbers of one name.
        if !FIELDS.iter().any(|(of, names)| *of == number.2 && names.contains(&name)) {
            return Edit::Keep;
        }
        self.found.insert(number, value);
        match self.wrong {
            Some((of, wrong)) if of == number => wrong.map_or(Edit::Drop, Edit::Integer),
            _ => Edit::Keep,
        }
    }

    fn missing(&mut self, _: &Place, _: i16, _: &mut Output) {}
}

fn numbers(footer: &[u8]) -> BTreeMap<Number, i64> {
    let mut numbers = Numbers::default();
    rewrite(footer, &mut numbers).unwrap();
    numbers.found
}

/// Small files of each writer, with and without dictionaries, in one and several row groups.
fn files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let names = [
        "duckdb_row_groups.parquet",
        "duckdb_nested.parquet",
        "fastparquet_plain.parquet",
        "polars_plain.parquet",
        "pyarrow_nested.parquet",
        "pyarrow_page_v2.parquet",
        "pyarrow_sorted.parquet",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
    names.into_iter().map(move |name| (name, std::fs::read(folder.join(name)).unwrap()))
}

fn is_clean(file: &[u8]) -> bool {
    let footer = Footer::from_file_bytes(file, &Options::new()).unwrap();
    let mut wrong = 0;
    check_file(&footer, file, |_| wrong += 1).unwrap();
    check_pages(&footer, file, |_| wrong += 1);
    wrong == 0
}

#[test]
fn a_wrong_number_is_repaired_or_named_and_all_others_stay() {
    let (mut mended, mut named) = (0, 0);
    for (name, file) in files() {
        let footer = Footer::from_file_bytes(file.as_slice(), &Options::new()).unwrap();
        let right = numbers(footer.bytes());
        let data = &file[..file.len() - 8 - footer.footer_len()];
        for (number, value) in &right {
            // Of each number, the first and the last columns and row groups.
            let ends = |at: Option<usize>, len: usize| at.is_none_or(|at| at < 2 || at + 1 == len);
            if !ends(number.0, footer.num_row_groups()) || !ends(number.1, footer.num_columns()) {
                continue;
            }
            let others = [0, -1, 4, 1 << 62, value + 1, value - 1, value * 3, 7];
            let others = others.into_iter().map(Some).chain([None]);
            for other in others.filter(|other| *other != Some(*value)) {
                let mut wrong = Numbers { wrong: Some((*number, other)), ..Numbers::default() };
                let bytes = rewrite(footer.bytes(), &mut wrong).unwrap();
                let mut damaged = data.to_vec();
                write_file(&bytes, false, &mut damaged).unwrap();
                let what = format!("{name}: {number:?} = {other:?}, not {value}");
                let Ok(found) = repaired(damaged.as_slice(), "it", 1 << 20) else { continue };
                let is_repaired = found.left.is_empty();
                let mut fixed = data.to_vec();
                write_file(&found.footer, false, &mut fixed).unwrap();
                assert_eq!(is_repaired, is_clean(&fixed), "{what}: {:?}", found.left);
                compare(&right, &numbers(&found.footer), (*number, is_repaired), &what);
                mended += usize::from(!found.repairs.is_empty() && is_repaired);
                named += usize::from(!is_repaired);
            }
        }
    }
    assert!(mended > 1000 && named < mended, "{mended}, {named}");
}

/// Compares the numbers after a repair with the right ones. The one that was wrong may still be, if the repair says so,
/// or be left out; with the place of an index, its length is.
fn compare(
    right: &BTreeMap<Number, i64>,
    after: &BTreeMap<Number, i64>,
    (wrong, is_repaired): (Number, bool),
    what: &str,
) {
    for (number, value) in right {
        let is_optional = matches!(number.2, "ColumnChunk" | "Statistics") || number.3.starts_with("bloom");
        match after.get(number) {
            Some(found) if found == value => {}
            found if number == &wrong => {
                let is_free = matches!(number.3, "file_offset" | "null_count" | "total_uncompressed_size");
                assert!(found.is_none() || !is_repaired || is_free, "{what}: it is {found:?}");
            }
            found => assert!(found.is_none() && is_optional, "{what}: {number:?} is {found:?}"),
        }
    }
}
