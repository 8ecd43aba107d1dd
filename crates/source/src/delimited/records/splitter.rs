//! Splits text into records and fields.

use memchr::{memchr, memchr2};

use super::dialect::{Dialect, RecordForm};

/// A field of a record, as a range of a buffer. The quotes around it are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub start: u32,
    pub end: u32,
    pub form: Form,
}

/// Where fields that follow one another start and end, quotes included and the end of the line not.
pub(crate) fn extent(fields: &[Cell]) -> (u32, u32) {
    let quote = |cell: &Cell| u32::from(matches!(cell.form, Form::Quoted | Form::Escaped));
    let start = fields.first().map_or(0, |cell| cell.start - quote(cell));
    let last = fields.iter().rev().find(|cell| cell.form != Form::Missing);
    (start, last.map_or(start, |cell| cell.end + quote(cell)))
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Quoted,
    /// Quoted, with doubled quotes or escapes.
    Escaped,
    /// Not there: the record has fewer fields.
    Missing,
}

/// The next part of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A record, and where the next one starts.
    Record(usize),
    /// A blank line or a comment, and the place after it.
    Skipped(usize),
    /// The text ends within a record.
    Incomplete,
    Malformed(Malformed),
}

/// The most fields of a record: each takes memory before any is read.
pub(crate) const MAX_FIELDS: usize = 1 << 20;

/// Fields that do not make a record: their quotes do not match, or they are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// After the closing quote comes something else than a delimiter or the end of the line.
    AfterQuote { opened: usize, at: usize },
    /// A quote that never closes.
    Unclosed { opened: usize },
    /// More fields than [`MAX_FIELDS`], in the record that starts here.
    TooMany { start: usize },
    /// A newline within a line of a text whose lines end with carriage returns.
    Newline { at: usize },
}

/// The part of the text after a closing quote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// A delimiter, at this place.
    Field(usize),
    /// The end of the record; the next one starts here.
    Record(usize),
    /// The text ends.
    Unknown,
    /// Something else.
    Wrong(usize),
}

const ORDINARY: u8 = 0;
const DELIMITER: u8 = 1;
const NEWLINE: u8 = 2;

/// The rules of one file.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    classes: [u8; 256],
    /// The end of a line: a newline, or a carriage return in files that have these alone.
    pub newline: u8,
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub comment: Option<u8>,
    /// Whether records that cannot be read are left out: after quotes that do not fit, the next record starts
    /// in the next line.
    pub lenient: bool,
    /// Whether a blank line is a record: with one column it is an empty field.
    pub blank_is_record: bool,
}

impl Splitter {
    pub(crate) fn new(dialect: &Dialect, delimiter: u8) -> Self {
        let (delimiter, quote, escape, comment) = match dialect.records {
            RecordForm::Delimited => (delimiter, dialect.quote, dialect.escape, dialect.comment),
            // A line of JSON is one field.
            RecordForm::Json => (b'\n', None, None, None),
        };
        let mut classes = [ORDINARY; 256];
        classes[usize::from(delimiter)] = DELIMITER;
        classes[usize::from(b'\n')] = NEWLINE;
        let escape = escape.filter(|escape| Some(*escape) != quote);
        let (newline, lenient, blank_is_record) = (b'\n', false, false);
        Self { classes, newline, delimiter, quote, escape, comment, lenient, blank_is_record }
    }

    /// Makes carriage returns the ends of lines.
    pub(crate) fn end_lines_by_returns(&mut self) {
        self.newline = b'\r';
        self.classes[usize::from(b'\r')] = NEWLINE;
    }

    /// Returns the end of a blank line or a comment at the start of a record; `None` if there is neither. The
    /// flag says whether it is blank.
    pub(crate) fn skipped(&self, text: &[u8], at: usize, is_end: bool) -> Option<(usize, bool)> {
        match *text.get(at)? {
            byte if byte == self.newline => Some((at + 1, true)),
            // Lines that end with carriage returns may end with both, later in the file.
            b'\n' => Some((at + 1, false)),
            b'\r' if text.get(at + 1) == Some(&b'\n') => Some((at + 2, true)),
            b'\r' if is_end && at + 1 == text.len() => Some((at + 1, true)),
            byte if Some(byte) == self.comment => match memchr2(self.newline, b'\n', &text[at..]) {
                Some(newline) => Some((at + newline + 1, false)),
                None => is_end.then_some((text.len(), false)),
            },
            _ => None,
        }
    }

    /// Returns the place of the closing quote of a field whose content starts at `at`, and whether the
    /// content has escapes. `None` if the text ends before it.
    pub(crate) fn closing(&self, text: &[u8], mut at: usize, quote: u8) -> Option<(usize, bool)> {
        let mut escaped = false;
        loop {
            let rest = text.get(at..)?;
            let found = match self.escape {
                None => memchr(quote, rest)?,
                Some(escape) => memchr2(quote, escape, rest)?,
            };
            let place = at + found;
            if text[place] != quote || text.get(place + 1) == Some(&quote) {
                escaped = true;
                at = place + 2;
                continue;
            }
            return Some((place, escaped));
        }
    }

    /// Returns the part of the text after the closing quote at `quote`.
    pub(crate) fn after(&self, text: &[u8], quote: usize, is_end: bool) -> After {
        let next = quote + 1;
        match text.get(next) {
            None if is_end => After::Record(next),
            None => After::Unknown,
            Some(byte) if *byte == self.delimiter => After::Field(next),
            Some(byte) if *byte == self.newline => After::Record(next + 1),
            Some(b'\r') => match text.get(next + 1) {
                Some(b'\n') => After::Record(next + 2),
                None if is_end => After::Record(next + 1),
                None => After::Unknown,
                Some(_) => After::Wrong(next),
            },
            Some(_) => After::Wrong(next),
        }
    }

    /// Appends the fields of the record at `at`. `is_end`: the text ends where the file ends.
    pub(crate) fn step(&self, text: &[u8], at: usize, is_end: bool, cells: &mut Vec<Cell>) -> Step {
        let before = cells.len();
        if let Some((end, blank)) = self.skipped(text, at, is_end) {
            if blank && self.blank_is_record {
                cells.push(Cell { start: at as u32, end: at as u32, form: Form::Plain });
                return Step::Record(end);
            }
            return Step::Skipped(end);
        }
        let step = self.fields(text, at, is_end, cells);
        if !matches!(step, Step::Record(_)) {
            cells.truncate(before);
        }
        step
    }

    fn fields(&self, text: &[u8], mut at: usize, is_end: bool, cells: &mut Vec<Cell>) -> Step {
        if text.get(at).is_some_and(|byte| Some(*byte) == self.comment) {
            return Step::Incomplete;
        }
        let (start, most) = (at, cells.len() + MAX_FIELDS);
        loop {
            if cells.len() >= most {
                return Step::Malformed(Malformed::TooMany { start });
            }
            if let Some(quote) = self.quote.filter(|quote| text.get(at) == Some(quote)) {
                let Some((close, escaped)) = self.closing(text, at + 1, quote) else {
                    return if is_end {
                        Step::Malformed(Malformed::Unclosed { opened: at })
                    } else {
                        Step::Incomplete
                    };
                };
                let after = self.after(text, close, is_end);
                let form = if escaped { Form::Escaped } else { Form::Quoted };
                cells.push(Cell { start: at as u32 + 1, end: close as u32, form });
                match after {
                    After::Field(delimiter) => at = delimiter + 1,
                    After::Record(next) => return Step::Record(next),
                    After::Unknown => return Step::Incomplete,
                    After::Wrong(wrong) if text[wrong] == b'\n' => {
                        return Step::Malformed(Malformed::Newline { at: wrong });
                    }
                    After::Wrong(wrong) => {
                        return Step::Malformed(Malformed::AfterQuote { opened: at, at: wrong });
                    }
                }
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            match rest.iter().position(|byte| self.classes[usize::from(*byte)] != ORDINARY) {
                Some(length) => {
                    let stop = at + length;
                    if text[stop] != self.newline {
                        if text[stop] == b'\n' {
                            return Step::Malformed(Malformed::Newline { at: stop });
                        }
                        cells.push(Cell { start: at as u32, end: stop as u32, form: Form::Plain });
                        at = stop + 1;
                        continue;
                    }
                    cells.push(plain_at_the_end(text, at, stop));
                    return Step::Record(stop + 1);
                }
                None if is_end => {
                    cells.push(plain_at_the_end(text, at, text.len()));
                    return Step::Record(text.len());
                }
                None => return Step::Incomplete,
            }
        }
    }

    /// Returns the content of an escaped field.
    pub(crate) fn unescaped(&self, field: &str) -> String {
        let Some(quote) = self.quote else { return field.to_owned() };
        let escape = self.escape.unwrap_or(quote);
        let mut content = String::with_capacity(field.len());
        let mut rest = field;
        while let Some(at) = memchr2(quote, escape, rest.as_bytes()) {
            content.push_str(&rest[..at]);
            let mut after = rest[at + 1..].chars();
            content.extend(after.next());
            rest = after.as_str();
        }
        content.push_str(rest);
        content
    }
}

/// The last field of a line, without the carriage return before the newline.
pub(super) fn plain_at_the_end(text: &[u8], start: usize, stop: usize) -> Cell {
    let end = if stop > start && text[stop - 1] == b'\r' { stop - 1 } else { stop };
    Cell { start: start as u32, end: end as u32, form: Form::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_too_many_fields_ends_before_they_take_memory() {
        let splitter = Splitter::new(&Dialect::default(), b',');
        let (mut text, mut cells) = (vec![b','; MAX_FIELDS - 1], Vec::new());
        text.push(b'\n');
        assert_eq!(splitter.step(&text, 0, true, &mut cells), Step::Record(text.len()));
        text.insert(0, b',');
        let too_many = Step::Malformed(Malformed::TooMany { start: 0 });
        cells.clear();
        assert_eq!(splitter.step(&text, 0, true, &mut cells), too_many);
        assert!(cells.is_empty() && cells.capacity() <= 2 * MAX_FIELDS);
    }
}
