//! Ways to divide the start of a text into records and fields, and how well each explains it.

use std::ops::Range;

use super::dialect::Dialect;
use super::splitter::{Cell, Form, Splitter, Step};
use crate::condition::{days_of, time_of, timestamp_of};
use crate::delimited::content::{UNIT_SEPARATOR, with_short_delimiters};

/// A way to divide the start of a text.
pub(super) struct Division {
    pub delimiter: u8,
    /// The long delimiter, if [`UNIT_SEPARATOR`] replaces it.
    pub long: Option<&'static str>,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    /// The field count of most records, the number of records with it, and the number of records from the
    /// first of these on.
    pub fields: usize,
    pub records: usize,
    pub of: usize,
    /// The number of all records, and of those that are left once those before the first of these are skipped.
    pub all: usize,
    pub left: usize,
    /// The line of another record, and its fields; one with more rather than one with fewer.
    pub other: Option<(u64, usize)>,
    /// The lines before the first of these records, and before the first of them that has more than a title.
    pub lines: u64,
    pub titles: u64,
    /// The lines of a title that a spreadsheet has written: it is alone in its record, records without any value
    /// follow, and then names in all fields.
    pub sheet_titles: Option<u64>,
    /// A field that is in quotes.
    pub quoted: Option<String>,
    /// The fields of those records.
    pub table: Vec<Vec<String>>,
    /// How many of the records and fields it explains, and the same with a preference for more fields.
    pub fit: f64,
    pub score: f64,
}

impl Division {
    /// The division with the higher score; of equal ones the first, which is the most common. A delimiter that is
    /// doubled everywhere is one long delimiter, not two around an empty field.
    pub fn better(self, other: Self) -> Self {
        let is_doubled = other.long.is_some_and(|long| long.bytes().all(|byte| byte == self.delimiter))
            && other.records == self.records
            && other.fields * 2 == self.fields + 1;
        if is_doubled || other.score > self.score + 1e-9 { other } else { self }
    }

    /// Whether the lines before its records may be skipped; `most` is the largest number of records that any division
    /// explains. Half of the text or more is skipped only if the division explains that many, and never all but one
    /// record.
    pub fn may_skip(&self, most: usize) -> bool {
        self.left == self.all || self.left > 1 && (self.left * 2 > self.all || self.records >= most)
    }

    /// Whether all records have the same fields.
    pub fn fits_all(&self, dialect: &Dialect) -> bool {
        let is_named = dialect.names.is_empty() || dialect.names.len() == self.fields;
        self.records == self.of && self.of > 1 && is_named && self.lines == 0
    }
}

/// Divides the start of a text by a delimiter of several characters.
pub(super) fn divided_by(
    text: &str,
    is_all: bool,
    long: &'static str,
    dialect: &Dialect,
) -> Option<Division> {
    if !text.contains(&long.replace('*', "\"")) || text.contains(char::from(UNIT_SEPARATOR)) {
        return None;
    }
    let short = with_short_delimiters(text, &Dialect { skip_lines: 0, ..dialect.clone() }, long)?;
    let division = divided(&short, is_all, UNIT_SEPARATOR, dialect)?;
    Some(Division { long: Some(long), ..division })
}

/// Divides the start of a text by the quotes of a dialect; `None` if that makes no columns, or quotes do not fit.
pub(super) fn divided(text: &str, is_all: bool, delimiter: u8, dialect: &Dialect) -> Option<Division> {
    let Dialect { quote, escape, comment, .. } = *dialect;
    let dialect = Dialect { quote, escape, comment, ..Dialect::default() };
    let mut splitter = Splitter::new(&dialect, delimiter);
    if text.contains('\r') && !text.contains('\n') {
        splitter.end_lines_by_returns();
    }
    let (records, cells) = records_of(text, is_all, &splitter)?;
    let mut counts: Vec<usize> =
        records.iter().map(|(_, range)| range.len()).filter(|fields| *fields > 1).collect();
    counts.sort_unstable();
    let fields = counts.chunk_by(PartialEq::eq).max_by_key(|same| same.len()).map(|same| same[0])?;
    let first = records.iter().position(|(_, range)| range.len() == fields)?;
    let (start, _) = records[first];
    let value = |cell: &Cell| {
        let raw = &text[cell.start as usize..cell.end as usize];
        if cell.form == Form::Escaped { splitter.unescaped(raw) } else { raw.to_owned() }
    };
    let (all, of) = (records.len(), records.len() - first);
    let same = records[first..].iter().filter(|(_, range)| range.len() == fields);
    let same: Vec<&[Cell]> = same.map(|(_, range)| &cells[range.clone()]).collect();
    let is_quoted = |cell: &&Cell| matches!(cell.form, Form::Quoted | Form::Escaped);
    let quoted =
        same.iter().copied().flatten().find(|cell| is_quoted(cell) && cell.end > cell.start).map(value);
    let table: Vec<Vec<String>> = same.iter().map(|record| record.iter().map(value).collect()).collect();
    // Blanks and colons also occur in text and in times.
    let is_word = |value: &str| !matches!(delimiter, b' ' | b':') && is_plain(value);
    let is_clean = |(cell, value): (&Cell, &String)| is_quoted(&cell) || is_value(value) || is_word(value);
    let clean =
        same.iter().copied().flatten().zip(table.iter().flatten()).filter(|pair| is_clean(*pair)).count();
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    let fit = share(same.len(), of) * share(clean, same.len() * fields);
    let score = fit * share(fields - 1, fields);
    // A title may be followed by empty fields: spreadsheets write it so.
    let is_title = |(_, range): &&Record| {
        let filled = cells[range.clone()].iter().filter(|cell| cell.end > cell.start).count();
        range.len() == fields && fields > 2 && filled <= 1
    };
    let titles = records[first..].iter().take_while(is_title).count();
    let left = of - titles;
    let (below_titles, _) = records.get(first + titles).unwrap_or(&records[first]);
    let is_filled = |record: &Vec<String>| record.iter().any(|field| !field.is_empty());
    let is_sheet = table.len() > titles + 1
        && titles > 1
        && is_filled(&table[0])
        && !is_filled(&table[titles - 1])
        && table[titles].iter().all(|name| !name.is_empty() && !is_value(name));
    let lines_before = |at: usize| text[..at].bytes().filter(|byte| *byte == splitter.newline).count() as u64;
    let (lines, titles) = (lines_before(start), lines_before(*below_titles));
    let sheet_titles = is_sheet.then_some(titles);
    let others = records[first..].iter().filter(|(_, range)| !range.is_empty() && range.len() != fields);
    let other = others.max_by_key(|(at, range)| (range.len(), std::cmp::Reverse(*at)));
    let other = other.map(|(at, range)| (lines_before(*at) + 1, range.len()));
    // Quotes that no field has are not a reason for another dialect.
    let is_likely = match quote {
        Some(b'"') => true,
        Some(_) => quoted.is_some(),
        None => text.contains('"'),
    };
    let records = same.len();
    let division = Division {
        delimiter,
        long: None,
        quote,
        escape,
        fields,
        records,
        of,
        all,
        left,
        other,
        lines,
        titles,
        sheet_titles,
        quoted,
        table,
        fit,
        score,
    };
    is_likely.then_some(division)
}

/// A record: where it starts, and which of the cells are its fields.
type Record = (usize, Range<usize>);

/// The records of the start of a text, and their cells; `None` if quotes do not fit.
fn records_of(text: &str, is_all: bool, splitter: &Splitter) -> Option<(Vec<Record>, Vec<Cell>)> {
    let (mut records, mut cells, mut at) = (Vec::new(), Vec::new(), 0);
    while at < text.len() {
        let before = cells.len();
        match splitter.step(text.as_bytes(), at, is_all, &mut cells) {
            Step::Record(next) => {
                records.push((at, before..cells.len()));
                at = next;
            }
            Step::Skipped(next) => at = next,
            Step::Incomplete => break,
            // Lines before the header may have any quotes.
            Step::Malformed(_) if records.len() < 8 => {
                let newline = text[at..].bytes().position(|byte| byte == splitter.newline)?;
                cells.truncate(before);
                records.push((at, before..before));
                at += newline + 1;
            }
            Step::Malformed(_) => return None,
        }
    }
    Some((records, cells))
}

/// Whether a field is a number or a moment.
pub(super) fn is_value(field: &str) -> bool {
    let field = field.trim();
    let is_number = field.bytes().any(|byte| byte.is_ascii_digit())
        && field.bytes().all(|byte| byte.is_ascii_digit() || b"+-.,eE%".contains(&byte));
    is_number || days_of(field).is_some() || time_of(field).is_some() || timestamp_of(field).is_some()
}

/// Whether a field has no characters that may be between fields or around them.
fn is_plain(field: &str) -> bool {
    let is_quoted = field.len() > 1 && field.starts_with('\'') && field.ends_with('\'');
    let is_between = |byte| matches!(byte, b',' | b';' | b'\t' | b'|' | b'^' | b'~' | b'"' | 0x1f);
    !is_quoted && !field.bytes().any(is_between)
}
