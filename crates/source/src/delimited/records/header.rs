//! The start of a file: skipped lines, and the names of the columns.

use std::collections::{HashMap, HashSet};

use sawmill_profile::{Error, Kind, Result};

use super::cursor::Cursor;
use super::dialect::{Dialect, Ragged, RecordForm};
use crate::delimited::text_file::{CONVERT, TextFile};

/// The columns of a file, and where its first record is.
pub(crate) struct Header {
    pub columns: Vec<String>,
    pub start: u64,
}

/// The most columns: each takes memory for its values, and for its place in the table.
const MAX_COLUMNS: usize = 100_000;

/// How many first bytes tell how lines end.
const FIRST_LINES: usize = 64 << 10;

/// Whether lines end with carriage returns alone: the start of the file has no newline.
pub(crate) fn ends_lines_by_returns(file: &TextFile) -> Result<bool> {
    let mut cursor = Cursor::open(file)?;
    let beginning = cursor.peek(FIRST_LINES)?;
    let has_return = beginning.iter().rev().skip(1).any(|byte| *byte == b'\r');
    Ok(has_return && !beginning.contains(&b'\n'))
}

/// The kind of a file that is not text, and what to do with it.
fn other_kind(beginning: &[u8]) -> Option<(&'static str, &'static str)> {
    const UNPACK: &str = "unpack it first, and name the text in it";
    const EXPORT: &str = "export it as CSV first";
    let kinds: [(&[u8], &str, &str); 13] = [
        (b"PAR1", "a Parquet file", "name it without --format"),
        (
            b"PK\x03\x04",
            "a ZIP archive, as spreadsheets (.xlsx) are",
            "unpack it, or export the sheet as CSV",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document, such as .xls", EXPORT),
        (b"ARROW1\0\0", "an Arrow file", "write it as Parquet"),
        (b"Obj\x01", "an Avro file", "write it as Parquet"),
        (b"SQLite format 3\0", "a SQLite database", EXPORT),
        (b"%PDF-", "a PDF", EXPORT),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
        (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
        (b"\x1f\x9d", "text compressed by compress", UNPACK),
        (b"\xff\x06\0\0sNaPpY", "text compressed with Snappy", UNPACK),
        (b"\x1f\x8b", "gzip within a compressed file", UNPACK),
        (b"\x28\xb5\x2f\xfd", "Zstandard within a compressed file", UNPACK),
    ];
    let is_tar = beginning.get(257..262) == Some(b"ustar");
    let known = kinds.into_iter().find(|(magic, ..)| beginning.starts_with(magic));
    known.map(|(_, kind, advice)| (kind, advice)).or(is_tar.then_some(("a tar archive", UNPACK)))
}

/// Reads the start of a file.
pub(crate) fn header(file: &TextFile, dialect: &Dialect) -> Result<Header> {
    let mut cursor = Cursor::open(file)?;
    let beginning = cursor.peek(512)?;
    if let Some((kind, advice)) = other_kind(beginning) {
        return Err(Error::new(Kind::Source, format!("expected text, found {kind}"))
            .at(&file.name)
            .advise(advice));
    }
    if beginning.starts_with(b"\xef\xbb\xbf") {
        cursor.advance(3);
    }
    for _ in 0..dialect.skip_lines {
        cursor.skip_line()?;
    }
    let before = cursor.offset();
    if dialect.records == RecordForm::Json {
        return Ok(Header { columns: Vec::new(), start: before });
    }
    let Some(first) = cursor.any_record()? else {
        if dialect.names.is_empty() {
            let what = match dialect.header {
                true => "the file has no header",
                false => "the file is empty, so its columns are not known",
            };
            let advice = "leave the file out, or name its columns with --names";
            return Err(Error::new(Kind::Source, what).at(&file.name).advise(advice));
        }
        // Blank lines may be records of a single column.
        let start = if dialect.header { file.length } else { before };
        return Ok(Header { columns: named(file, dialect.names.clone())?, start });
    };
    let start = if dialect.header { cursor.offset() } else { before };
    let columns = match (dialect.names.is_empty(), dialect.header) {
        (false, _) if dialect.names.len() != first.len() && dialect.ragged == Ragged::Refused => {
            let what = format!(
                "the first record has {} fields, and --names gives {}",
                first.len(),
                dialect.names.len()
            );
            return Err(Error::new(Kind::Schema, what).at(file.place(before)));
        }
        (false, _) => dialect.names.clone(),
        (true, true) => first.iter().zip(1..).map(|(name, number)| or_numbered(name, number)).collect(),
        (true, false) => (1..=first.len()).map(|number| or_numbered("", number)).collect(),
    };
    if columns.len() > MAX_COLUMNS {
        let what = format!("the first record has {} columns; {MAX_COLUMNS} at most are read", columns.len());
        let advice = "check the delimiter, or give another one with --delimiter";
        return Err(Error::new(Kind::Schema, what).at(&file.name).advise(file.or_proposed(advice)));
    }
    if let Some(name) = columns.iter().find(|name| name.contains('\r')).filter(|_| dialect.header) {
        let what = format!("a name in the header contains a carriage return: {name:?}");
        return Err(Error::new(Kind::Source, what).at(&file.name).advise(CONVERT));
    }
    if let ([only], None, true) = (columns.as_slice(), dialect.delimiter, dialect.header)
        && let Some(likely) = [';', '\t', '|', ','].into_iter().find(|likely| only.contains(*likely))
    {
        let what = format!("the header has one column, {only:?}");
        let advice =
            format!("give --delimiter '{}', or the delimiter that the file has", likely.escape_default());
        return Err(Error::new(Kind::Schema, what).at(&file.name).advise(file.or_proposed(&advice)));
    }
    let is_of_file = dialect.names.is_empty();
    let columns = if is_of_file { distinct(columns) } else { named(file, columns)? };
    Ok(Header { columns, start })
}

/// Gives names that the header has several times a number: `a`, `a_2`, `a_3`, leaving out those that it has.
fn distinct(columns: Vec<String>) -> Vec<String> {
    let mut taken: HashSet<String> = columns.iter().cloned().collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut rename = |name: String| {
        let times = seen.entry(name.clone()).or_insert(0);
        *times += 1;
        if *times == 1 {
            return name;
        }
        loop {
            let numbered = format!("{name}_{times}");
            if taken.insert(numbered.clone()) {
                return numbered;
            }
            *times += 1;
        }
    };
    columns.into_iter().map(&mut rename).collect()
}

/// A column without a name is called after its position.
fn or_numbered(name: &str, number: usize) -> String {
    if name.is_empty() { format!("column_{number}") } else { name.to_owned() }
}

/// Rejects names that two columns have.
fn named(file: &TextFile, columns: Vec<String>) -> Result<Vec<String>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (name, number) in columns.iter().zip(1..) {
        if let Some(other) = places.insert(name, number) {
            let what = format!("columns {other} and {number} have the same name, {name:?}");
            return Err(Error::new(Kind::Schema, what)
                .at(&file.name)
                .advise("give all columns distinct names with --names a,b,c"));
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn names_that_a_header_has_twice_get_numbers_that_no_other_column_has() {
        let names = |text: &str| distinct(text.split(',').map(str::to_owned).collect()).join(",");
        assert_eq!(names("a,b,a,a"), "a,b,a_2,a_3");
        assert_eq!(names("a,a,a_2,a,a_2"), "a,a_3,a_2,a_4,a_2_2");
        assert_eq!(names("a,b"), "a,b");
    }
}
