//! Text in other encodings than UTF-8.

use std::fmt;
use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};
use sawmill_profile::{Error, Kind, Result};

/// Names that Python, Java and Windows use, and the names of the Encoding Standard.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("cp932", "shift_jis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("ms936", "gbk"),
    ("ms949", "euc-kr"),
    ("ms950", "big5"),
    ("cp950", "big5"),
    ("cp874", "windows-874"),
    ("cp65001", "utf-8"),
    ("utf-8-sig", "utf-8"),
    ("latin-1", "latin1"),
    ("utf-16-le", "utf-16le"),
    ("utf-16-be", "utf-16be"),
    ("mac-roman", "macintosh"),
    ("mac-cyrillic", "x-mac-cyrillic"),
    ("iso2022-jp", "iso-2022-jp"),
    ("big5hkscs", "big5-hkscs"),
];

/// Returns the encoding of a name such as `latin1`; `None` for UTF-8.
///
/// # Errors
/// The encoding does not exist.
pub(in crate::delimited) fn encoding_named(name: &str) -> Result<Option<&'static Encoding>> {
    let standard = |name: &str| Encoding::for_label_no_replacement(name.as_bytes());
    let lower = name.to_lowercase().replace('_', "-");
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == lower).map(|(_, standard)| *standard);
    match standard(name).or_else(|| standard(other.unwrap_or(&lower))) {
        Some(encoding) => Ok((encoding != UTF_8).then_some(encoding)),
        None => Err(Error::new(Kind::Config, format!("Sawmill does not read the encoding {name:?}")).advise(
            "use a name of the Encoding Standard, such as windows-1252, iso-8859-15, utf-16le, shift_jis or gb18030, \
             or convert the text to UTF-8 first, with iconv",
        )),
    }
}

/// UTF-32, which is not read: with the byte order mark, or the first two characters of four bytes.
pub(in crate::delimited) fn is_utf32(beginning: &[u8]) -> Option<Utf32> {
    let two = |low: [usize; 2], zero: [usize; 2]| {
        let characters = beginning.as_chunks::<4>().0;
        let is_character =
            |bytes: &[u8; 4]| low.iter().any(|i| bytes[*i] != 0) && zero.iter().all(|i| bytes[*i] == 0);
        characters.len() >= 2 && characters[..2].iter().all(is_character)
    };
    match beginning {
        [0xff, 0xfe, 0, 0, ..] => Some(Utf32("UTF-32LE")),
        [0, 0, 0xfe, 0xff, ..] => Some(Utf32("UTF-32BE")),
        _ if two([0, 1], [2, 3]) => Some(Utf32("UTF-32LE")),
        _ if two([2, 3], [0, 1]) => Some(Utf32("UTF-32BE")),
        _ => None,
    }
}

/// Text in UTF-32, in one of its byte orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::delimited) struct Utf32(&'static str);

impl Utf32 {
    /// The error for a file of such text.
    pub(in crate::delimited) fn error(self) -> Error {
        let advice = format!("convert it first: iconv -f {} -t UTF-8", self.0);
        Error::new(Kind::Source, self.to_string()).advise(advice)
    }
}

impl fmt::Display for Utf32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text is {}, which Sawmill does not read", self.0)
    }
}

impl std::error::Error for Utf32 {}

/// Whether text begins with the byte order mark of UTF-16.
pub(in crate::delimited) fn is_utf16(beginning: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(beginning).map(|(encoding, _)| encoding).filter(|encoding| *encoding != UTF_8)
}

/// Bytes that have no meaning in an encoding.
#[derive(Debug)]
pub(super) struct Malformed {
    /// Their place in the text before it was decoded.
    offset: u64,
    encoding: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text is not {}: byte offset {}", self.encoding, self.offset)
    }
}

impl std::error::Error for Malformed {}

/// Turns a stream into UTF-8. Without an encoding, text with the byte order mark of UTF-16 is decoded, and
/// other text passes unchanged.
pub(super) struct Transcoder<R> {
    bytes: R,
    state: State,
    held: Vec<u8>,
    /// The undecoded bytes of `held`, and the place of its start in the stream.
    at: usize,
    base: u64,
    is_end: bool,
    /// Decoded text, and how much of it was read.
    text: Vec<u8>,
    text_at: usize,
}

enum State {
    /// Nothing was read yet.
    Start(Option<&'static Encoding>),
    Plain,
    Decoding(Box<Decoder>),
    Done,
}

const HELD: usize = 64 << 10;

impl<R: Read> Transcoder<R> {
    pub(super) fn new(bytes: R, encoding: Option<&'static Encoding>) -> Self {
        let (held, text) = (Vec::new(), Vec::new());
        let state = State::Start(encoding);
        Self { bytes, state, held, at: 0, base: 0, is_end: false, text, text_at: 0 }
    }

    /// Drops the decoded bytes, and reads more.
    fn fill(&mut self) -> io::Result<()> {
        self.base += self.at as u64;
        self.held.drain(..self.at);
        self.at = 0;
        let before = self.held.len();
        self.held.resize(HELD, 0);
        let read = read_some(&mut self.bytes, &mut self.held[before..])?;
        self.held.truncate(before + read);
        self.is_end = read == 0;
        Ok(())
    }

    fn start(&mut self, encoding: Option<&'static Encoding>) -> io::Result<()> {
        while self.held.len() < 8 && !self.is_end {
            self.fill()?;
        }
        if let Some(utf32) = is_utf32(&self.held).filter(|_| encoding.is_none()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, utf32));
        }
        self.state = match encoding.or_else(|| is_utf16(&self.held)) {
            Some(encoding) => State::Decoding(Box::new(encoding.new_decoder_with_bom_removal())),
            None => State::Plain,
        };
        Ok(())
    }
}

fn read_some(bytes: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match bytes.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

impl<R: Read> Transcoder<R> {
    /// Decodes more text into `text`; leaves it empty at the end.
    fn decode(&mut self) -> io::Result<()> {
        self.text.clear();
        self.text_at = 0;
        while self.text.is_empty() {
            let State::Decoding(decoder) = &mut self.state else { return Ok(()) };
            self.text.resize(3 * HELD + 16, 0);
            let (result, read, written) = decoder.decode_to_utf8_without_replacement(
                &self.held[self.at..],
                &mut self.text,
                self.is_end,
            );
            let encoding = decoder.encoding().name();
            self.text.truncate(written);
            self.at += read;
            match result {
                DecoderResult::Malformed(length, after) => {
                    let end = self.base + self.at as u64;
                    let offset = end.saturating_sub(u64::from(length) + u64::from(after));
                    return Err(io::Error::new(io::ErrorKind::InvalidData, Malformed { offset, encoding }));
                }
                DecoderResult::InputEmpty if self.is_end => self.state = State::Done,
                DecoderResult::InputEmpty => self.fill()?,
                DecoderResult::OutputFull => {}
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Start(encoding) = &self.state {
            let encoding = *encoding;
            self.start(encoding)?;
        }
        if matches!(self.state, State::Plain) && self.at == self.held.len() {
            return read_some(&mut self.bytes, buffer);
        }
        if matches!(self.state, State::Decoding(_)) && self.text_at == self.text.len() {
            self.decode()?;
        }
        let (from, at) = match self.state {
            State::Plain => (&self.held, &mut self.at),
            _ => (&self.text, &mut self.text_at),
        };
        let few = buffer.len().min(from.len() - *at);
        buffer[..few].copy_from_slice(&from[*at..*at + few]);
        *at += few;
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], encoding: Option<&str>) -> io::Result<String> {
        let encoding = encoding.and_then(|name| encoding_named(name).unwrap());
        let mut text = String::new();
        Transcoder::new(bytes, encoding).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn text_of_other_encodings_becomes_utf8() {
        assert_eq!(decoded(b"caf\xe9 \x80", Some("latin1")).unwrap(), "café €");
        assert_eq!(decoded("né".as_bytes(), Some("utf8")).unwrap(), "né");
        // A syllable that EUC-KR itself does not have.
        assert_eq!(decoded(b"\x8c\x63\xb0\xa1", Some("CP949")).unwrap(), "똠가");
        assert_eq!(decoded(b"\x83\x41", Some("cp932")).unwrap(), "ア");
        assert_eq!(decoded(b"\xff\xfea\0\xe9\0", None).unwrap(), "aé");
        assert_eq!(decoded(b"\xfe\xff\0a\0\xe9", None).unwrap(), "aé");
        assert_eq!(decoded(b"a\0\xe9\0", Some("utf-16le")).unwrap(), "aé");
        assert_eq!(decoded(b"", None).unwrap(), "");
        let long = "aé".repeat(100_000);
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(long.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decoded(&wide, None).unwrap(), long);
    }

    #[test]
    fn bytes_without_a_meaning_are_an_error_with_their_place() {
        let error = decoded(b"ab\x81\x20", Some("shift_jis")).unwrap_err().to_string();
        assert!(error.contains("Shift_JIS") && error.contains("byte offset 2"), "{error}");
        let error = decoded(b"\xff\xfea\0b", None).unwrap_err().to_string();
        assert!(error.contains("UTF-16LE"), "{error}");
        assert!(encoding_named("klingon").is_err());
    }

    #[test]
    fn names_are_those_of_the_encoding_standard_and_of_python() {
        for name in [
            "cp1252",
            "latin_1",
            "iso8859_15",
            "koi8_r",
            "euc_jp",
            "utf_16_le",
            "mac_roman",
            "iso2022_jp",
            "big5hkscs",
            "ms936",
            "ms949",
            "ms950",
        ] {
            assert!(encoding_named(name).is_ok_and(|encoding| encoding.is_some()), "{name}");
        }
        for name in ["cp437", "cp850", "utf_7", "hz", "johab", "utf-32"] {
            let error = encoding_named(name).unwrap_err().to_string();
            assert!(error.contains("does not read") && error.contains("iconv"), "{error}");
        }
    }

    #[test]
    fn utf32_is_told_by_its_mark_or_its_characters() {
        let of = |to_bytes: fn(u32) -> [u8; 4], text: &str| -> Vec<u8> {
            text.chars().flat_map(|c| to_bytes(u32::from(c))).collect()
        };
        for text in ["\u{feff}a,b\n1,2\n", "a,b\n1,2\n", "名,b\n1,2\n", "\u{feff}"] {
            let little = decoded(&of(u32::to_le_bytes, text), None).unwrap_err().to_string();
            assert!(little.contains("UTF-32LE"), "{little}");
            let big = decoded(&of(u32::to_be_bytes, text), None).unwrap_err().to_string();
            assert!(big.contains("UTF-32BE"), "{big}");
        }
        for text in [
            &b"\xff\xfea\0,\0b\0\n\0"[..],
            b"\xfe\xff\0a\0,\0b\0\n",
            b"a,b\n\0\0\0\0",
            b"\0\0\0\0\0\0\0\0",
            b"a\0\0\0",
        ] {
            assert!(decoded(text, None).is_ok(), "{text:?}");
        }
    }
}
