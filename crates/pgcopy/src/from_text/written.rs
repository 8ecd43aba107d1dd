//! Types without a counterpart in Arrow, from the text that the server itself writes of their values: the binary
//! format of each is the format of its `_send` function.

use super::date_time::{Pieces, clock, fraction, zone};
use super::{TextForm, trimmed};

const SHAPE: &str = "expected the form in which PostgreSQL writes it";

fn refused() -> String {
    SHAPE.to_owned()
}

/// Appends a time of day with its zone.
pub(super) fn time_with_zone(text: &[u8], cut: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let mut pieces = Pieces(trimmed(text));
    let micros = clock(&mut pieces, cut)?;
    let east = zone(&mut pieces).filter(|_| pieces.0.is_empty()).ok_or_else(refused)?;
    out.extend(micros.to_be_bytes());
    // The server counts from Greenwich to the west.
    out.extend((-(east as i32)).to_be_bytes());
    Ok(())
}

/// Appends a value after its length.
fn with_length(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let at = out.len();
    out.extend([0; 4]);
    write(out)?;
    let length = i32::try_from(out.len() - at - 4).map_err(|_| "it is too long".to_owned())?;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends an array such as `{1,NULL}`, `{{"a,b"},{c}}` or `[0:1]={1,2}`, whose elements have this form.
pub(crate) fn array(element: TextForm, oid: u32, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    const MAX_DIMENSIONS: usize = 6;
    let text = trimmed(text);
    let (bounds, body) = match text.iter().position(|byte| *byte == b'=').filter(|_| text.starts_with(b"[")) {
        Some(at) => text.split_at(at + 1),
        None => text.split_at(0),
    };
    let mut reader =
        ArrayReader { text: body, at: 0, lengths: Vec::new(), has_nulls: false, values: Vec::new() };
    reader.level(0, MAX_DIMENSIONS, &|text, out| element.write(text, out))?;
    if reader.at != body.len() {
        return Err(refused());
    }
    let lower = lower_bounds(bounds, reader.lengths.len())?;
    let lengths: Vec<usize> = reader.lengths.into_iter().flatten().collect();
    let dimensions = if lengths.contains(&0) { &[][..] } else { &lengths };
    out.extend((dimensions.len() as i32).to_be_bytes());
    out.extend(i32::from(reader.has_nulls).to_be_bytes());
    out.extend(oid.to_be_bytes());
    for (length, lower) in dimensions.iter().zip(lower) {
        out.extend(i32::try_from(*length).map_err(|_| refused())?.to_be_bytes());
        out.extend(lower.to_be_bytes());
    }
    out.extend(&reader.values);
    Ok(())
}

/// Reads `[0:1][1:2]=`; 1 for each dimension without it.
fn lower_bounds(text: &[u8], dimensions: usize) -> Result<Vec<i32>, String> {
    if text.is_empty() {
        return Ok(vec![1; dimensions]);
    }
    let text = std::str::from_utf8(text).map_err(|_| refused())?.trim_end_matches('=');
    let bounds =
        text.split_terminator(']').map(|bound| bound.strip_prefix('[')?.split_once(':')?.0.parse().ok());
    let bounds: Vec<i32> = bounds.collect::<Option<_>>().ok_or_else(refused)?;
    if bounds.len() == dimensions { Ok(bounds) } else { Err(refused()) }
}

struct ArrayReader<'a> {
    text: &'a [u8],
    at: usize,
    /// The elements of each dimension, once it has ended.
    lengths: Vec<Option<usize>>,
    has_nulls: bool,
    values: Vec<u8>,
}

type WriteElement<'f> = &'f dyn Fn(&[u8], &mut Vec<u8>) -> Result<(), String>;

impl ArrayReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Reads the elements within braces.
    fn level(&mut self, depth: usize, deeper: usize, write: WriteElement<'_>) -> Result<(), String> {
        if deeper == 0 || !self.take(b'{') {
            return Err(refused());
        }
        let (mut length, mut has_values) = (0, false);
        if self.lengths.len() <= depth {
            self.lengths.push(None);
        }
        if !self.take(b'}') {
            loop {
                match self.peek() {
                    // All elements are as deep as the first one.
                    Some(b'{') if has_values => return Err(refused()),
                    Some(b'{') => self.level(depth + 1, deeper - 1, write)?,
                    _ if self.lengths.len() > depth + 1 => return Err(refused()),
                    _ => {
                        has_values = true;
                        self.element(write)?;
                    }
                }
                length += 1;
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(refused());
                }
            }
        }
        // Parts of other lengths are not an array.
        match self.lengths.get_mut(depth) {
            Some(known) if known.is_none_or(|known| known == length) => {
                *known = Some(length);
                Ok(())
            }
            _ => Err(refused()),
        }
    }

    fn element(&mut self, write: WriteElement<'_>) -> Result<(), String> {
        let is_quoted = self.take(b'"');
        let mut text = Vec::new();
        loop {
            match self.peek().ok_or_else(refused)? {
                b'"' if is_quoted => {
                    self.at += 1;
                    break;
                }
                b',' | b'}' if !is_quoted => break,
                b'{' | b'"' if !is_quoted => return Err(refused()),
                b'\\' => {
                    text.push(*self.text.get(self.at + 1).ok_or_else(refused)?);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        if !is_quoted && text.eq_ignore_ascii_case(b"null") {
            self.has_nulls = true;
            self.values.extend((-1_i32).to_be_bytes());
            return Ok(());
        }
        if text.is_empty() && !is_quoted {
            return Err(refused());
        }
        with_length(&mut self.values, |out| write(&text, out))
    }
}

/// Parses an interval as the server writes it by default, `1 year 2 mons 3 days -04:05:06.7`, or in ISO 8601,
/// `P1Y2M3DT-4H-5M-6.7S`. Returns microseconds, days and months.
pub(super) fn interval(text: &[u8], cut: bool) -> Result<(i64, i32, i32), String> {
    let text = std::str::from_utf8(trimmed(text)).map_err(|_| refused())?;
    let mut parts = Parts::default();
    match text.strip_prefix('P') {
        Some(iso) => parts.read_iso(iso, cut)?,
        None => parts.read_words(text, cut)?,
    }
    let narrow = |number: i64| i32::try_from(number).map_err(|_| "it is out of range".to_owned());
    Ok((parts.micros, narrow(parts.days)?, narrow(parts.months)?))
}

const HOUR: i64 = 3_600_000_000;

/// The parts of an interval.
#[derive(Default)]
struct Parts {
    micros: i64,
    days: i64,
    months: i64,
}

impl Parts {
    fn read_words(&mut self, text: &str, cut: bool) -> Result<(), String> {
        let mut words = text.split_ascii_whitespace().peekable();
        if words.peek().is_none() {
            return Err(refused());
        }
        while let Some(word) = words.next() {
            if word.contains(':') {
                let (is_negative, digits) = signed(word);
                // Hours may be more than a day has.
                let (hours, rest) = digits.split_once(':').ok_or_else(refused)?;
                let below = format!("00:{rest}");
                let mut pieces = Pieces(below.as_bytes());
                let clock = clock(&mut pieces, cut)?;
                add(&mut self.micros, hours.parse().map_err(|_| refused())?, HOUR)?;
                add(&mut self.micros, clock, 1)?;
                if !pieces.0.is_empty() || words.peek().is_some() {
                    return Err(refused());
                }
                self.micros *= if is_negative { -1 } else { 1 };
                continue;
            }
            let number = word.parse().map_err(|_| refused())?;
            match words.next() {
                Some("year" | "years") => add(&mut self.months, number, 12)?,
                Some("mon" | "mons") => add(&mut self.months, number, 1)?,
                Some("day" | "days") => add(&mut self.days, number, 1)?,
                _ => return Err(refused()),
            }
        }
        Ok(())
    }

    fn read_iso(&mut self, text: &str, cut: bool) -> Result<(), String> {
        let (dates, times) = text.split_once('T').map_or((text, None), |(dates, times)| (dates, Some(times)));
        if times.unwrap_or(dates).is_empty() {
            return Err(refused());
        }
        each_unit(dates, |number, unit| {
            let number = number.parse().map_err(|_| refused())?;
            match unit {
                'Y' => add(&mut self.months, number, 12),
                'M' => add(&mut self.months, number, 1),
                'W' => add(&mut self.days, number, 7),
                'D' => add(&mut self.days, number, 1),
                _ => Err(refused()),
            }
        })?;
        each_unit(times.unwrap_or_default(), |number, unit| {
            let (whole, behind) = number.split_once('.').map_or((number, None), |(w, b)| (w, Some(b)));
            let by = match unit {
                'H' => HOUR,
                'M' => 60_000_000,
                'S' => 1_000_000,
                _ => return Err(refused()),
            };
            add(&mut self.micros, whole.parse().map_err(|_| refused())?, by)?;
            let Some(behind) = behind.filter(|_| unit == 'S') else {
                return if behind.is_none() { Ok(()) } else { Err(refused()) };
            };
            let mut pieces = Pieces(behind.as_bytes());
            let micros = fraction(&mut pieces, cut)?.filter(|_| pieces.0.is_empty()).ok_or_else(refused)?;
            add(&mut self.micros, micros, if signed(whole).0 { -1 } else { 1 })
        })
    }
}

/// Whether a number is negative, and its text without the sign.
fn signed(number: &str) -> (bool, &str) {
    match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    }
}

fn add(sum: &mut i64, number: i64, by: i64) -> Result<(), String> {
    *sum = number.checked_mul(by).and_then(|number| sum.checked_add(number)).ok_or_else(refused)?;
    Ok(())
}

/// Takes numbers and the letter after each, such as `1Y2M`.
fn each_unit(mut text: &str, mut take: impl FnMut(&str, char) -> Result<(), String>) -> Result<(), String> {
    while let Some(at) = text.find(|character: char| character.is_ascii_alphabetic()) {
        let (number, rest) = text.split_at(at);
        let unit = rest.chars().next().ok_or_else(refused)?;
        take(number, unit)?;
        text = &rest[1..];
    }
    if text.is_empty() { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::pg_type::PgType;
    use crate::types::value_options::ValueOptions;

    fn form(target: PgType) -> TextForm {
        TextForm::new(target, &ValueOptions::default())
    }

    #[test]
    fn intervals_have_months_days_and_microseconds() {
        let read = |text: &str| interval(text.as_bytes(), false);
        assert_eq!(read("1 year 2 mons -3 days +04:05:06.7").unwrap(), (14_706_700_000, -3, 14));
        assert_eq!(read("-1 years -1 mons").unwrap(), (0, 0, -13));
        assert_eq!(read("-100:00:00.000001").unwrap(), (-360_000_000_001, 0, 0));
        assert_eq!(read("P1Y2M-3DT4H5M6.7S").unwrap(), (14_706_700_000, -3, 14));
        assert_eq!(read("PT-0.000001S").unwrap(), (-1, 0, 0));
        assert_eq!(read("P2W").unwrap(), (0, 14, 0));
        for wrong in ["P", "PT", "P1DT", "P1", "P1H", "PT1D", "PT1.5H", "PT1.S", "P1.5D"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "1", "1 week", "1 day 2", "04:05:06 1 day", "1:2:3", "9999999999 days"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arrays_have_dimensions_bounds_and_nulls() {
        let read = |text: &str| {
            let mut out = Vec::new();
            array(form(PgType::Int2), 21, text.as_bytes(), &mut out).map(|()| out)
        };
        let head = |words: &[i32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        assert_eq!(read("{}").unwrap(), head(&[0, 0, 21]));
        let two = [head(&[1, 1, 21, 2, 1, 2]), vec![0, 7], head(&[-1])].concat();
        assert_eq!(read("{7,NULL}").unwrap(), two);
        let nested = [head(&[2, 0, 21, 1, 5, 1, 1, 2]), vec![0, 7]].concat();
        assert_eq!(read("[5:5][1:1]={{7}}").unwrap(), nested);
        assert!(read("{{1,2,3},{4,5,6}}").unwrap().starts_with(&head(&[2, 0, 21, 2, 1, 3, 1])));
        for wrong in ["", "{", "{1", "{1,}", "{{1},{2,3}}", "{1,{2}}", "{{1},2}", "{x}", "{1}x", "[1]={1}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let mut out = Vec::new();
        array(form(PgType::Text), 25, br#"{"a,\"b",null,"NULL"}"#, &mut out).unwrap();
        assert!(out.ends_with(&[head(&[4]), b"a,\"b".to_vec(), head(&[-1, 4]), b"NULL".to_vec()].concat()));
    }

    #[test]
    fn a_time_needs_its_zone() {
        let mut out = Vec::new();
        assert!(time_with_zone(b"10:00", false, &mut out).is_err());
    }
}
