//! Delimiters of several bytes, which become one byte before text is divided.

use std::io::{self, Cursor, Read};

use crate::delimited::records::dialect::Dialect;

/// The byte in place of a delimiter of several bytes: the unit separator of ASCII.
pub(in crate::delimited) const UNIT_SEPARATOR: u8 = 0x1f;

/// Bytes that are read at once.
const BLOCK: usize = 64 << 10;

/// Where in a record a stream is.
#[derive(Clone, Copy)]
enum State {
    /// In the lines before the header; this many are left.
    Skipped(u64),
    Record,
    Field,
    Plain,
    Quoted,
    /// After the byte that escapes the next one.
    Escaped,
    /// After a quote that closes the field or is doubled.
    AfterQuote,
    Comment,
}

/// Replaces the delimiters of a stream that are outside of quotes by [`UNIT_SEPARATOR`].
pub(super) struct ShortDelimiters<R> {
    bytes: R,
    dialect: Dialect,
    delimiter: Vec<u8>,
    /// Whether blanks behind a delimiter are part of it: it was given as `, *`.
    with_blanks: bool,
    state: State,
    held: Vec<u8>,
    at: usize,
    is_end: bool,
    /// Bytes with short delimiters that were not read yet.
    done: Cursor<Vec<u8>>,
}

/// The text with [`UNIT_SEPARATOR`] in place of this delimiter; `None` if it has that byte already.
pub(in crate::delimited) fn with_short_delimiters(
    text: &str,
    dialect: &Dialect,
    delimiter: &str,
) -> Option<String> {
    let mut short = String::with_capacity(text.len());
    let mut stream = ShortDelimiters::new(text.as_bytes(), dialect, delimiter);
    stream.read_to_string(&mut short).ok().map(|_| short)
}

impl<R: Read> ShortDelimiters<R> {
    pub(super) fn new(bytes: R, dialect: &Dialect, delimiter: &str) -> Self {
        let state = if dialect.skip_lines > 0 { State::Skipped(dialect.skip_lines) } else { State::Record };
        let (held, done) = (Vec::new(), Cursor::default());
        let shorter = delimiter.strip_suffix(" *").filter(|shorter| !shorter.is_empty());
        let (with_blanks, delimiter) = (shorter.is_some(), shorter.unwrap_or(delimiter).as_bytes().to_vec());
        let dialect = dialect.clone();
        Self { bytes, dialect, delimiter, with_blanks, state, held, at: 0, is_end: false, done }
    }

    /// Replaces the delimiters in more bytes; without any, the stream ends.
    fn replace(&mut self) -> io::Result<()> {
        self.done.set_position(0);
        self.done.get_mut().clear();
        while self.done.get_ref().is_empty() && !(self.is_end && self.at == self.held.len()) {
            self.held.drain(..self.at);
            self.at = 0;
            let before = self.held.len();
            self.held.resize(before + BLOCK, 0);
            let read = self.bytes.read(&mut self.held[before..])?;
            self.held.truncate(before + read);
            self.is_end = read == 0;
            // A delimiter may continue in the next read.
            let enough = if self.is_end { 1 } else { self.delimiter.len() };
            while self.held.len() - self.at >= enough {
                self.step()?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<()> {
        let rest = &self.held[self.at..];
        let Some(&byte) = rest.first() else { return Ok(()) };
        let is_outside =
            matches!(self.state, State::Record | State::Field | State::Plain | State::AfterQuote);
        if is_outside && rest.starts_with(&self.delimiter) {
            self.done.get_mut().push(UNIT_SEPARATOR);
            self.at += self.delimiter.len();
            self.state = State::Field;
            return Ok(());
        }
        if self.with_blanks && byte == b' ' && matches!(self.state, State::Field) {
            self.at += 1;
            return Ok(());
        }
        if is_outside && byte == UNIT_SEPARATOR {
            let what = "the text has the byte 0x1f outside of quotes, which stands for its delimiter";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let quote = Some(byte) == self.dialect.quote;
        self.state = match (self.state, byte) {
            (State::Skipped(1), b'\n') => State::Record,
            (State::Skipped(lines), b'\n') => State::Skipped(lines - 1),
            (State::Skipped(lines), _) => State::Skipped(lines),
            (State::Record, _) if Some(byte) == self.dialect.comment => State::Comment,
            (State::Record | State::Field, _) if quote => State::Quoted,
            (State::Quoted, _) if quote => State::AfterQuote,
            (State::Quoted, _) if Some(byte) == self.dialect.escape => State::Escaped,
            (State::AfterQuote, _) if quote => State::Quoted,
            (State::Quoted | State::Escaped, _) => State::Quoted,
            (_, b'\n') => State::Record,
            (State::Comment, _) => State::Comment,
            _ => State::Plain,
        };
        self.done.get_mut().push(byte);
        self.at += 1;
        Ok(())
    }
}

impl<R: Read> Read for ShortDelimiters<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.done.position() == self.done.get_ref().len() as u64 {
            self.replace()?;
        }
        self.done.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(1);
            self.0.read(&mut buffer[..few])
        }
    }

    #[test]
    fn delimiters_outside_of_quotes_become_one_byte() {
        let dialect =
            Dialect { escape: Some(b'\\'), comment: Some(b'#'), skip_lines: 1, ..Dialect::default() };
        let short = |text: &str| {
            let mut read = String::new();
            let mut stream = ShortDelimiters::new(Slow(text.as_bytes()), &dialect, "||");
            stream.read_to_string(&mut read).map(|_| read.replace('\x1f', "^"))
        };
        let text = "a||\"\n# c || d\nx||y|||z\n\"p||\"\"||q\\\"||\"||r\n||";
        assert_eq!(short(text).unwrap(), "a||\"\n# c || d\nx^y^|z\n\"p||\"\"||q\\\"||\"^r\n^");
        assert!(short("\na\x1f||b\n").is_err());
        let short = with_short_delimiters("a,b\n1,  \"x, y\", 2\n", &Dialect::default(), ", *");
        assert_eq!(short.unwrap().replace('\x1f', "^"), "a^b\n1^\"x, y\"^2\n");
    }
}
