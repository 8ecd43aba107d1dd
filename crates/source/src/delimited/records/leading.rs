//! Splits the first fields of a record, as far as they are needed.

use super::splitter::{After, Cell, Form, Splitter, extent, plain_at_the_end, repeated, zeros};

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
        // The last field alone is a cell of its own anyway.
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

impl Splitter {
    /// Appends the cells of the record at `at`, and returns where the next one starts. `None` if it takes
    /// [`step`](Self::step) to say what is there: a record with quotes within fields or with another number of
    /// fields, a line that is none, or one of the last bytes of the text. So does a split into all fields.
    ///
    /// Fields without a cell of their own are counted, eight bytes at a time.
    pub(crate) fn leading(
        &self,
        text: &[u8],
        at: usize,
        split: Split,
        cells: &mut Vec<Cell>,
    ) -> Option<usize> {
        if split.is_all()
            || self.skipped(text, at, false).is_some()
            || text.get(at).is_none_or(|byte| Some(*byte) == self.comment)
        {
            return None;
        }
        let before = cells.len();
        let next = self.leading_words(text, at, split, cells);
        if next.is_none() {
            cells.truncate(before);
        }
        next
    }

    fn leading_words(&self, text: &[u8], at: usize, split: Split, cells: &mut Vec<Cell>) -> Option<usize> {
        let (delimiters, newlines) = (repeated(self.delimiter), repeated(self.newline));
        let quotes = self.quote.map(repeated);
        let (mut start, mut base, mut fields) = (at, at, 0);
        while let Some(word) = text.get(base..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*word);
            let newline = zeros(word ^ newlines);
            let quote = quotes.map_or(0, |quotes| zeros(word ^ quotes)) & below(newline);
            let mut stops = zeros(word ^ delimiters) & below(newline | quote);
            while fields < split.kept && stops != 0 {
                let stop = base + stops.trailing_zeros() as usize / 8;
                stops &= stops - 1;
                cells.push(Cell { start: start as u32, end: stop as u32, form: Form::Plain });
                start = stop + 1;
                fields += 1;
            }
            fields += set_bytes(stops);
            if quote != 0 {
                let opened = base + quote.trailing_zeros() as usize / 8;
                let (close, form) = self.quoted(text, opened, at)?;
                match self.after(text, close, false) {
                    After::Field(delimiter) => {
                        if fields < split.kept {
                            cells.push(Cell { start: opened as u32 + 1, end: close as u32, form });
                            start = delimiter + 1;
                        }
                        fields += 1;
                        base = delimiter + 1;
                        continue;
                    }
                    After::Record(next) if fields + 1 == split.columns => {
                        cells.push(Cell { start: start as u32, end: close as u32 + 1, form: Form::Plain });
                        return Some(next);
                    }
                    _ => return None,
                }
            }
            if newline != 0 {
                let stop = base + newline.trailing_zeros() as usize / 8;
                cells.push(plain_at_the_end(text, start, stop));
                return (fields + 1 == split.columns).then_some(stop + 1);
            }
            base += 8;
        }
        None
    }

    /// Returns the place of the quote that closes a field, and how it is written; `None` if the quote at `opened`
    /// does not open one, in a record that starts at `record`.
    fn quoted(&self, text: &[u8], opened: usize, record: usize) -> Option<(usize, Form)> {
        if opened > record && text.get(opened - 1) != Some(&self.delimiter) {
            return None;
        }
        // An empty text.
        let quote = text.get(opened).copied();
        if text.get(opened + 1).copied() == quote && text.get(opened + 2) == Some(&self.delimiter) {
            return Some((opened + 1, Form::Quoted));
        }
        let (close, escaped) = self.closing(text, opened + 1, quote?)?;
        Some((close, if escaped { Form::Escaped } else { Form::Quoted }))
    }
}

/// The bytes of a word before the first of those that are marked by their highest bits, all bits of each.
fn below(marked: u64) -> u64 {
    marked.wrapping_sub(1) & !marked
}

/// Counts the bytes whose highest bit is set, in a word that has no other bits.
fn set_bytes(word: u64) -> usize {
    ((word >> 7).wrapping_mul(0x0101_0101_0101_0101) >> 56) as usize
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
        while at < text.len() {
            let mut cells = Vec::new();
            if !whole && let Some(next) = splitter.leading(text, at, split, &mut cells) {
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
            text in r#"([a-z0-9,\r\n"]{0,3}(,([a-z]{0,9}|"([a-z\n,]|""){0,9}")){0,4}\r?\n){0,8}[a-z,]{0,12}"#,
            kept in 0_usize..5,
            columns in 1_usize..6,
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
