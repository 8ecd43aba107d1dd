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
    reader.spaces();
    reader.level(0, MAX_DIMENSIONS, &|text, out| element.write(text, out))?;
    if reader.at != body.len() {
        return Err(refused());
    }
    let lengths: Vec<usize> = reader.lengths.into_iter().flatten().collect();
    let lower = lower_bounds(bounds, &lengths)?;
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

/// Reads `[0:1][1:2]=`; 1 for each dimension without it. The bounds have to fit the lengths.
fn lower_bounds(text: &[u8], lengths: &[usize]) -> Result<Vec<i32>, String> {
    if text.is_empty() {
        return Ok(vec![1; lengths.len()]);
    }
    let text = std::str::from_utf8(text).map_err(|_| refused())?.trim_end_matches('=').trim_end();
    let bounds = text.split_terminator(']').map(|bound| {
        let (lower, upper) = bound.strip_prefix('[')?.split_once(':')?;
        let (lower, upper) = (lower.parse::<i32>().ok()?, upper.parse::<i32>().ok()?);
        Some((lower, i64::from(upper) - i64::from(lower) + 1))
    });
    let bounds: Vec<(i32, i64)> = bounds.collect::<Option<_>>().ok_or_else(refused)?;
    let fit = bounds.len() == lengths.len()
        && bounds.iter().zip(lengths).all(|((_, between), length)| *length > 0 && *between == *length as i64);
    if fit { Ok(bounds.into_iter().map(|(lower, _)| lower).collect()) } else { Err(refused()) }
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

    /// Skips blanks, which mean nothing around braces and elements.
    fn spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
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
        self.spaces();
        if !self.take(b'}') {
            loop {
                self.spaces();
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
                self.spaces();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(refused());
                }
            }
        }
        // Parts of other lengths are not an array, nor are empty parts.
        match self.lengths.get_mut(depth) {
            Some(known) if (length > 0 || depth == 0) && known.is_none_or(|known| known == length) => {
                *known = Some(length);
                Ok(())
            }
            _ => Err(refused()),
        }
    }

    /// Reads an element: blanks within it count, those around it do not unless they are quoted or escaped.
    fn element(&mut self, write: WriteElement<'_>) -> Result<(), String> {
        let is_quoted = self.take(b'"');
        let mut text = Vec::new();
        // The length without the blanks at the end.
        let (mut kept, mut is_escaped) = (0, false);
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
                    (kept, is_escaped) = (text.len(), true);
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                    if is_quoted || !is_space(byte) {
                        kept = text.len();
                    }
                }
            }
        }
        text.truncate(kept);
        if !is_quoted && !is_escaped && text.eq_ignore_ascii_case(b"null") {
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

/// A blank by the server's `array_isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Parses an interval in any `IntervalStyle` in which the server writes it: `1 year 2 mons 3 days -04:05:06.7`, `@ 1 day
/// -2 hours 6.7 secs ago`, `+1-2 -3 +4:05:06.7`, or `P1Y2M3DT-4H-5M-6.7S`. Returns microseconds, days and months.
pub(super) fn interval(text: &[u8], cut: bool) -> Result<(i64, i32, i32), String> {
    let text = std::str::from_utf8(trimmed(text)).map_err(|_| refused())?;
    let (mut micros, mut days, mut months) = (0_i64, 0_i64, 0_i64);
    let mut add = |number: i64, unit: &str| {
        let (to, by) = match unit.strip_suffix('s').unwrap_or(unit) {
            "year" => (&mut months, 12),
            "mon" => (&mut months, 1),
            "day" => (&mut days, 1),
            "hour" => (&mut micros, 3_600_000_000),
            "minute" | "min" => (&mut micros, 60_000_000),
            "second" | "sec" => (&mut micros, 1_000_000),
            "microsecond" => (&mut micros, 1),
            _ => return Err(refused()),
        };
        *to = number.checked_mul(by).and_then(|number| to.checked_add(number)).ok_or_else(refused)?;
        Ok(())
    };
    let words = text.strip_prefix('@').unwrap_or(text);
    match text.strip_prefix('P') {
        Some(iso) => read_iso(iso, cut, &mut add)?,
        None if words.bytes().any(|byte| byte.is_ascii_alphabetic()) => read_words(words, cut, &mut add)?,
        None => read_sql(words, cut, &mut add)?,
    }
    let narrow = |number: i64| i32::try_from(number).map_err(|_| "it is out of range".to_owned());
    Ok((micros, narrow(days)?, narrow(months)?))
}

/// Adds a number of a unit.
type Add<'a> = &'a mut dyn FnMut(i64, &str) -> Result<(), String>;

fn read_words(text: &str, cut: bool, add: Add<'_>) -> Result<(), String> {
    let (text, turn) = text.strip_suffix(" ago").map_or((text, 1), |text| (text, -1));
    let mut add = |number: i64, unit: &str| add(number.checked_mul(turn).ok_or_else(refused)?, unit);
    let mut words = text.split_ascii_whitespace().peekable();
    if words.peek().is_none() {
        return Err(refused());
    }
    while let Some(word) = words.next() {
        match (word.contains(':'), words.peek().copied()) {
            (true, None) => read_clock(word, cut, &mut add)?,
            (false, Some(unit)) => {
                read_number(word, unit, cut, &mut add)?;
                words.next();
            }
            _ => return Err(refused()),
        }
    }
    Ok(())
}

/// Reads years and months, days, and a clock, without their units.
fn read_sql(text: &str, cut: bool, add: Add<'_>) -> Result<(), String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let is_signed = |word: &&str| word.starts_with(['+', '-']);
    if let Some((first, rest)) = words.split_first()
        && first.starts_with('-')
        && !rest.iter().any(is_signed)
        && rest.iter().any(|word| word.contains(|digit: char| ('1'..='9').contains(&digit)))
    {
        return Err(
            "its sign may be that of the whole interval (IntervalStyle sql_standard) or of the first part \
                    alone: write a sign before each part"
                .to_owned(),
        );
    }
    let (years, days, clock) = match words[..] {
        ["0"] => return Ok(()),
        [clock] if clock.contains(':') => (None, None, Some(clock)),
        [years] => (Some(years), None, None),
        [days, clock] => (None, Some(days), Some(clock)),
        [years, days, clock] => (Some(years), Some(days), Some(clock)),
        _ => return Err(refused()),
    };
    if let Some(years) = years {
        let (sign, digits) = signed(years);
        let (years, months) = digits.split_once('-').ok_or_else(refused)?;
        let months = number(months).ok().filter(|months| (0..12).contains(months)).ok_or_else(refused)?;
        add(sign * unsigned(years)?, "year")?;
        add(sign * months, "mon")?;
    }
    days.map_or(Ok(()), |days| add(number(days)?, "day"))?;
    clock.map_or(Ok(()), |clock| read_clock(clock, cut, add))
}

fn read_clock(word: &str, cut: bool, add: Add<'_>) -> Result<(), String> {
    let (sign, digits) = signed(word);
    // Hours may be more than a day has.
    let (hours, rest) = digits.split_once(':').ok_or_else(refused)?;
    let below = format!("00:{rest}");
    let mut pieces = Pieces(below.as_bytes());
    let clock = clock(&mut pieces, cut)?;
    if !pieces.0.is_empty() {
        return Err(refused());
    }
    add(sign * unsigned(hours)?, "hour")?;
    add(sign * clock, "microsecond")
}

/// Reads a number of a unit; only seconds have a fraction.
fn read_number(text: &str, unit: &str, cut: bool, add: Add<'_>) -> Result<(), String> {
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    add(number(whole)?, unit)?;
    if whole.len() < text.len() {
        let mut pieces = Pieces(behind.as_bytes());
        let micros = fraction(&mut pieces, cut)?.ok_or_else(refused)?;
        if !pieces.0.is_empty() || !unit.starts_with("sec") {
            return Err(refused());
        }
        add(signed(whole).0 * micros, "microsecond")?;
    }
    Ok(())
}

fn read_iso(text: &str, cut: bool, add: Add<'_>) -> Result<(), String> {
    if text.is_empty() || text.ends_with('T') {
        return Err(refused());
    }
    let (dates, times) = text.split_once('T').unwrap_or((text, ""));
    let of_dates = [('Y', "year"), ('M', "mon"), ('D', "day")];
    let of_times = [('H', "hour"), ('M', "minute"), ('S', "second")];
    for (units, part) in [(of_dates, dates), (of_times, times)] {
        for piece in part.split_inclusive(|letter: char| letter.is_ascii_uppercase()) {
            let unit = piece.chars().next_back().unwrap_or_default();
            let (_, unit) = units.into_iter().find(|(letter, _)| *letter == unit).ok_or_else(refused)?;
            read_number(&piece[..piece.len() - 1], unit, cut, add)?;
        }
    }
    Ok(())
}

fn number(digits: &str) -> Result<i64, String> {
    digits.parse().map_err(|_| refused())
}

/// A number without a sign.
fn unsigned(digits: &str) -> Result<i64, String> {
    number(digits).ok().filter(|_| !digits.starts_with(['+', '-'])).ok_or_else(refused)
}

/// The sign of a number, and its text without it.
fn signed(number: &str) -> (i64, &str) {
    number.strip_prefix('-').map_or((1, number.strip_prefix('+').unwrap_or(number)), |digits| (-1, digits))
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
        assert_eq!(read("90 minutes 1 day").unwrap(), (5_400_000_000, 1, 0));
        let verbose = "@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs";
        assert_eq!(read(verbose).unwrap(), (14_706_700_000, -3, 14));
        assert_eq!(read(&format!("{verbose} ago")).unwrap(), (-14_706_700_000, 3, -14));
        assert_eq!(read("@ 0.5 secs ago").unwrap(), (-500_000, 0, 0));
        assert_eq!(read("@ 0").unwrap(), (0, 0, 0));
        assert_eq!(read("1-2 3 4:05:06.7").unwrap(), (14_706_700_000, 3, 14));
        assert_eq!(read("+1-2 -3 +4:05:06.7").unwrap(), (14_706_700_000, -3, 14));
        assert_eq!(read("-1-2").unwrap(), (0, 0, -14));
        assert_eq!(read("-3 0:00:00").unwrap(), (0, -3, 0));
        assert_eq!(read("-3 +0:00:01").unwrap(), (1_000_000, -3, 0));
        assert_eq!(read("-4:05:06.7").unwrap(), (-14_706_700_000, 0, 0));
        for doubtful in ["-3 4:05:06", "-1-2 3 4:05:06", "-1-0 0 0:00:01"] {
            assert!(read(doubtful).unwrap_err().contains("sign before each part"), "{doubtful}");
        }
        let wrong =
            ["@", "@ ago", "1-2-3", "1-12", "1-2 3", "1--2", "1-2 4:05:06", "--4:05:06", "1.5 mins", "3 4"];
        for wrong in wrong {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["P", "PT", "P1DT", "P1", "P1H", "PT1D", "PT1.5H", "PT1.S", "P1.5D", "P1YY", "1 Y", "P1T1H"]
        {
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
        for wrong in [
            "",
            "{",
            "{1",
            "{1,}",
            "{{1},{2,3}}",
            "{1,{2}}",
            "{{1},2}",
            "{x}",
            "{1}x",
            "[1]={1}",
            "{1, }",
            "{{}}",
            "[1:0]={}",
            "[5:9]={1}",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("{ 7 , NULL }").unwrap(), two);
        assert_eq!(read("[5:5][1:1] = { { 7 } }").unwrap(), nested);
        let mut out = Vec::new();
        array(form(PgType::Text), 25, b"{ a b\t, \" c\" , d\\  }", &mut out).unwrap();
        let items = [head(&[3]), b"a b".to_vec(), head(&[2]), b" c".to_vec(), head(&[2]), b"d ".to_vec()];
        assert!(out.ends_with(&items.concat()));
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
