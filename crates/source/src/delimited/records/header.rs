//! The start of a file: skipped lines, and the names of the columns.

use std::collections::{HashMap, HashSet};

use sawmill_profile::{Error, Kind, Result};

use super::cursor::Cursor;
use super::dialect::{Dialect, Ragged, RecordForm};
use crate::delimited::text_file::TextFile;

/// The columns of a file, and where its first record is.
pub(crate) struct Header {
    pub columns: Vec<String>,
    pub start: u64,
}

/// How many first bytes tell how lines end.
const FIRST_LINES: usize = 64 << 10;

/// Whether lines end with carriage returns alone: the start of the file has no newline.
pub(crate) fn ends_lines_by_returns(file: &TextFile) -> Result<bool> {
    let mut cursor = Cursor::open(file)?;
    let beginning = cursor.peek(FIRST_LINES)?;
    let has_return = beginning.iter().rev().skip(1).any(|byte| *byte == b'\r');
    Ok(has_return && !beginning.contains(&b'\n'))
}

/// Reads the start of a file.
pub(crate) fn header(file: &TextFile, dialect: &Dialect) -> Result<Header> {
    let mut cursor = Cursor::open(file)?;
    let beginning = cursor.peek(8)?;
    if beginning.starts_with(b"PAR1") {
        return Err(Error::new(Kind::Source, "expected text, found a Parquet file")
            .at(&file.name)
            .advise("name it without --format"));
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
    if let Some(name) = columns.iter().find(|name| name.contains('\r')).filter(|_| dialect.header) {
        let what = format!("a name in the header contains a carriage return: {name:?}");
        return Err(Error::new(Kind::Source, what)
            .at(&file.name)
            .advise("some lines end with carriage returns alone, convert them first: tr '\\r' '\\n'"));
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
