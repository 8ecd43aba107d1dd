//! Splits only the needed first fields of a record.

use super::block::{Block, Characters, below};
use super::splitter::{Cell, Form, Splitter, extent, plain_at_the_end};

/// Which fields of a record become cells: the first ones, and all others as one more cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    columns: usize,
    kept: usize,
}

impl Split {
    /// Each field becomes a cell.
    pub(crate) fn all(columns: usize) -> Self {
        Self { columns, kept: columns }
    }

    /// The first `kept` fields become cells of their own.
    pub(crate) fn first(kept: usize, columns: usize) -> Self {
        // The last field alone is a separate cell anyway.
        if kept + 1 < columns { Self { columns, kept } } else { Self::all(columns) }
    }

    /// The fields of a record.
    pub(crate) fn columns(self) -> usize {
        self.columns
    }

    /// The cells of a record.
    pub(crate) fn cells(self) -> usize {
        if self.is_all() { self.columns } else { self.kept + 1 }
    }

    pub(crate) fn is_all(self) -> bool {
        self.kept == self.columns
    }

    /// Puts the fields together that have no cell of their own, in the record that begins with the n-th cell.
    pub(crate) fn shorten(self, before: usize, cells: &mut Vec<Cell>) {
        if self.is_all() {
            return;
        }
        let others = cells.get(before + self.kept..).unwrap_or_default();
        let (start, end) = extent(others);
        let form =
            if others.iter().all(|cell| cell.form == Form::Missing) { Form::Missing } else { Form::Plain };
        cells.truncate(before + self.kept);
        cells.push(Cell { start, end, form });
    }
}

/// Splits ordinary records of a text, one after the other.
pub(crate) struct Ordinary<'t> {
    splitter: &'t Splitter,
    text: &'t [u8],
    block: Block<'t>,
}

impl Splitter {
    /// Splits the ordinary records of a text from a place on.
    pub(crate) fn ordinary<'t>(&'t self, text: &'t [u8], at: usize) -> Ordinary<'t> {
        Ordinary { splitter: self, text, block: Block::at(text, at, self.characters()) }
    }

    pub(super) fn characters(&self) -> Characters {
        Characters { delimiter: self.delimiter, newline: self.newline, quote: self.quote }
    }

    /// Returns whether every quote of a block opens or closes a field. CRLF may also follow a closing quote.
    #[inline(always)]
    pub(super) fn quotes_fit(&self, text: &[u8], base: usize, misplaced: u64, mut unended: u64) -> bool {
        while unended != 0 {
            let next = base + unended.trailing_zeros() as usize + 1;
            if self.newline != b'\n' || text.get(next..next + 2) != Some(b"\r\n") {
                return false;
            }
            unended &= unended - 1;
        }
        misplaced == 0
    }

    /// Whether a line that starts with this byte is neither blank nor a comment.
    pub(super) fn is_ordinary_start(&self, byte: u8) -> bool {
        byte != self.newline && byte != b'\r' && byte != b'\n' && Some(byte) != self.comment
    }

    /// The cell of a field, whose quotes fit together if it has any.
    #[inline(always)]
    fn cell(&self, text: &[u8], start: usize, stop: usize, is_escaped: bool) -> Cell {
        if text.get(start).copied() == self.quote {
            let form = if is_escaped { Form::Escaped } else { Form::Quoted };
            return Cell { start: start as u32 + 1, end: stop as u32 - 1, form };
        }
        Cell { start: start as u32, end: stop as u32, form: Form::Plain }
    }
}

impl Ordinary<'_> {
    /// Appends the cells of the record at `at`, but not cells that were split already, and returns where the
    /// next one starts. `None` if only [`step`](Splitter::step) can tell: a record with quotes
    /// within fields, escapes or another number of fields, a blank line, a comment, or a record without a newline.
    ///
    /// Fields without a separate cell are counted, 64 bytes at a time.
    #[inline]
    pub(crate) fn record(&mut self, at: usize, split: Split, cells: &mut Vec<Cell>) -> Option<usize> {
        // A newline may be misplaced among carriage returns.
        if self.splitter.escape.is_some()
            || self.splitter.newline != b'\n'
            || !self.splitter.is_ordinary_start(*self.text.get(at)?)
        {
            return None;
        }
        let before = cells.len();
        self.block.move_to(at);
        let next = self.fields(at, split, cells);
        if next.is_none() {
            cells.truncate(before);
        }
        next
    }

    fn fields(&mut self, record: usize, split: Split, cells: &mut Vec<Cell>) -> Option<usize> {
        let Self { splitter, text, block } = self;
        let (mut start, mut fields) = (record, 0);
        let (mut is_open, mut has_quotes, mut is_escaped) = (false, false, false);
        loop {
            let stops = block.stops(is_open);
            let within = below(stops.newlines);
            let mut delimiters = stops.delimiters & within;
            has_quotes |= stops.has_quotes;
            if !has_quotes {
                while fields < split.kept && delimiters != 0 {
                    let stop = block.base + delimiters.trailing_zeros() as usize;
                    delimiters &= delimiters - 1;
                    cells.push(Cell { start: start as u32, end: stop as u32, form: Form::Plain });
                    start = stop + 1;
                    fields += 1;
                }
            } else {
                if !splitter.quotes_fit(text, block.base, stops.misplaced & within, stops.unended & within) {
                    return None;
                }
                let mut doubled = stops.doubled & within;
                while fields < split.kept && delimiters != 0 {
                    let stop = block.base + delimiters.trailing_zeros() as usize;
                    let of_field = below(delimiters);
                    delimiters &= delimiters - 1;
                    is_escaped |= doubled & of_field != 0;
                    doubled &= !of_field;
                    cells.push(splitter.cell(text, start, stop, is_escaped));
                    (start, is_escaped) = (stop + 1, false);
                    fields += 1;
                }
                is_escaped |= doubled != 0;
                is_open = stops.is_open;
            }
            fields += delimiters.count_ones() as usize;
            if stops.newlines != 0 {
                let newline = block.base + stops.newlines.trailing_zeros() as usize;
                let stop = plain_at_the_end(text, start, newline).end as usize;
                // Several fields that are one cell have their quotes.
                cells.push(match has_quotes && fields < split.kept {
                    true => splitter.cell(text, start, stop, is_escaped),
                    false => Cell { start: start as u32, end: stop as u32, form: Form::Plain },
                });
                return (fields + 1 == split.columns).then_some(newline + 1);
            }
            block.next()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delimited::records::dialect::Dialect;
    use crate::delimited::records::splitter::Step;

    /// The cells of all records of this many columns, by whole records alone or not.
    fn split(text: &[u8], split: Split, whole: bool) -> Vec<Vec<Cell>> {
        let splitter = Splitter::new(&Dialect::default(), b',');
        let (mut at, mut records) = (0, Vec::new());
        let mut ordinary = splitter.ordinary(text, at);
        while at < text.len() {
            let mut cells = Vec::new();
            if !whole && let Some(next) = ordinary.record(at, split, &mut cells) {
                records.push(cells);
                at = next;
                continue;
            }
            match splitter.step(text, at, true, &mut cells) {
                Step::Record(next) => {
                    if cells.len() == split.columns() {
                        split.shorten(0, &mut cells);
                        records.push(cells);
                    }
                    at = next;
                }
                Step::Skipped(next) => at = next,
                Step::Incomplete | Step::Malformed(_) => break,
            }
        }
        records
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]
        #[test]
        fn leading_fields_are_those_of_whole_records(
            text in r#"([a-z0-9,\r\n"]{0,3}(,([a-z]{0,99}|"([a-z\n,]|""){0,99}")){0,4}\r?\n){0,8}[a-z,]{0,12}"#,
            kept in 0_usize..5,
            columns in 1_usize..6,
        ) {
            let wanted = Split::first(kept, columns);
            prop_assert_eq!(split(text.as_bytes(), wanted, false), split(text.as_bytes(), wanted, true));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]
        #[test]
        fn records_of_any_quotes_are_split_as_whole_ones(
            text in r#"[ab,"\r\n]{0,200}"#,
            kept in 0_usize..4,
            columns in 1_usize..4,
        ) {
            let wanted = Split::first(kept, columns);
            prop_assert_eq!(split(text.as_bytes(), wanted, false), split(text.as_bytes(), wanted, true));
        }
    }

    #[test]
    fn other_fields_are_one_cell() {
        let text = b"17,\"a,b\",c,\"d\"\r\n12345678,b,c,d\r\n";
        let shown =
            |cell: &Cell| String::from_utf8_lossy(&text[cell.start as usize..cell.end as usize]).into_owned();
        let records = split(text, Split::first(1, 4), false);
        let records: Vec<Vec<String>> =
            records.iter().map(|cells| cells.iter().map(shown).collect()).collect();
        assert_eq!(records, [["17", "\"a,b\",c,\"d\""], ["12345678", "b,c,d"]]);
    }
}
