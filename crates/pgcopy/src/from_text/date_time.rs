//! Dates, times and timestamps in ISO 8601, which PostgreSQL reads alike under all settings of `DateStyle`.
//!
//! ```text
//! date       YYYY-MM-DD [BC]         time      HH:MM[:SS[.ffffff]]
//! timestamp  date (T or blank) time  zone      Z, +HH, +HH:MM, +HHMM, +HH:MM:SS
//! ```

use crate::types::zone::Zone;
use crate::values::calendar::days_from_civil;
use crate::values::fixed_width::{DATES, EPOCH_DAYS};

const DAY: i64 = 86_400_000_000;
/// First timestamp, and the first one out of range, in microseconds since 2000 (`MIN_TIMESTAMP`,
/// `END_TIMESTAMP` in src/include/datatype/timestamp.h).
const STAMPS: std::ops::Range<i128> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// The rest of a text; its methods consume pieces from the front.
pub(super) struct Pieces<'a>(pub &'a [u8]);

impl Pieces<'_> {
    /// Consumes a number of `digits` digits; `None` if there are fewer or more.
    fn number(&mut self, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !digits.contains(&count) {
            return None;
        }
        let (number, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(number.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Consumes ` BC` or `BC` at the end; returns whether it was there.
    fn before_christ(&mut self) -> bool {
        let era = self.0.strip_prefix(b" ").unwrap_or(self.0);
        let bc = era.eq_ignore_ascii_case(b"BC");
        if bc {
            self.0 = &[];
        }
        bc
    }
}

/// Returns the integer for an infinity: PostgreSQL encodes the infinities as the smallest and the largest
/// integer.
fn infinity<T>(text: &[u8], ends: (T, T)) -> Option<T> {
    let (negative, word) = text.strip_prefix(b"-").map_or((false, text), |word| (true, word));
    word.eq_ignore_ascii_case(b"infinity").then_some(if negative { ends.0 } else { ends.1 })
}

/// Year, month and day as written, not yet checked.
struct Day {
    year: i64,
    month: i64,
    day: i64,
}

impl Day {
    fn read(pieces: &mut Pieces<'_>) -> Option<Self> {
        let year = pieces.number(4..=7)?;
        pieces.take(b'-')?;
        let month = pieces.number(2..=2)?;
        pieces.take(b'-')?;
        Some(Self { year, month, day: pieces.number(2..=2)? })
    }

    /// Returns the days since 1970.
    fn days(&self, before_christ: bool) -> Result<i64, String> {
        let year = if before_christ { 1 - self.year } else { self.year };
        let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        let length = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        if self.year == 0 || !(1..=length).contains(&self.day) {
            return Err("this day does not exist".to_owned());
        }
        Ok(days_from_civil(year, self.month, self.day))
    }
}

/// Parses a date; returns days since 2000.
pub(super) fn date(text: &[u8]) -> Result<i32, String> {
    let text = super::trimmed(text);
    if let Some(end) = infinity(text, (i32::MIN, i32::MAX)) {
        return Ok(end);
    }
    let mut pieces = Pieces(text);
    let day = Day::read(&mut pieces);
    let before_christ = pieces.before_christ();
    let Some(day) = day.filter(|_| pieces.0.is_empty()) else {
        return Err("expected YYYY-MM-DD".to_owned());
    };
    let days = i32::try_from(day.days(before_christ)?).ok().filter(|days| DATES.contains(days));
    days.map(|days| days - EPOCH_DAYS).ok_or_else(|| "it is out of range".to_owned())
}

/// Consumes the digits of a fraction of a second; returns microseconds, or `None` without digits.
pub(super) fn fraction(pieces: &mut Pieces<'_>, cut: bool) -> Result<Option<i64>, String> {
    let count = pieces.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = pieces.0.split_at(count);
    pieces.0 = rest;
    if !cut && digits.iter().skip(6).any(|digit| *digit != b'0') {
        return Err(
            "PostgreSQL stores whole microseconds: further digits would be lost (--timestamps truncate drops them)".to_owned()
        );
    }
    let places = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    Ok((count > 0).then(|| places.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))))
}

/// Consumes `HH:MM[:SS[.f]]`, up to 24:00; returns microseconds.
pub(super) fn clock(pieces: &mut Pieces<'_>, cut: bool) -> Result<i64, String> {
    let form = || "expected HH:MM[:SS[.ffffff]]".to_owned();
    let hours = pieces.number(2..=2).ok_or_else(form)?;
    pieces.take(b':').ok_or_else(form)?;
    let minutes = pieces.number(2..=2).ok_or_else(form)?;
    let (mut seconds, mut micros) = (0, 0);
    if pieces.take(b':').is_some() {
        seconds = pieces.number(2..=2).ok_or_else(form)?;
        if pieces.take(b'.').is_some() {
            micros = fraction(pieces, cut)?.ok_or_else(form)?;
        }
    }
    let total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    match minutes < 60 && seconds < 60 && total <= DAY {
        true => Ok(total),
        false => Err("the time is beyond 24:00, or its minutes or seconds are beyond 59".to_owned()),
    }
}

/// Parses a time of day; returns microseconds since midnight.
pub(super) fn time(text: &[u8], cut: bool) -> Result<i64, String> {
    let mut pieces = Pieces(super::trimmed(text));
    let micros = clock(&mut pieces, cut)?;
    match pieces.0.is_empty() {
        true => Ok(micros),
        false => Err("expected HH:MM[:SS[.ffffff]] without a time zone".to_owned()),
    }
}

/// Consumes a time zone; returns seconds east of Greenwich.
pub(super) fn zone(pieces: &mut Pieces<'_>) -> Option<i64> {
    if pieces.0.first() == Some(&b' ') {
        pieces.take(b' ')?;
    }
    if pieces.take(b'Z').or_else(|| pieces.take(b'z')).is_some() {
        return Some(0);
    }
    let east = match pieces.0.split_first()? {
        (b'+', _) => 1,
        (b'-', _) => -1,
        _ => return None,
    };
    pieces.0 = &pieces.0[1..];
    let digits = pieces.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (hours, minutes, seconds) = match digits {
        4 => {
            let both = pieces.number(4..=4)?;
            (both / 100, both % 100, 0)
        }
        _ => {
            let hours = pieces.number(2..=2)?;
            let minutes = if pieces.take(b':').is_some() { pieces.number(2..=2)? } else { 0 };
            let seconds = if pieces.take(b':').is_some() { pieces.number(2..=2)? } else { 0 };
            (hours, minutes, seconds)
        }
    };
    // MAX_TZDISP_HOUR in src/include/datatype/timestamp.h.
    let there_is = hours <= 15 && minutes < 60 && seconds < 60;
    there_is.then_some(east * ((hours * 60 + minutes) * 60 + seconds))
}

/// Parses a timestamp; returns its local time in microseconds since 2000, and the offset of its time zone, if
/// it has one.
fn local_time(text: &[u8], cut: bool) -> Result<(i128, Option<i64>), String> {
    let form = || "expected YYYY-MM-DD HH:MM[:SS[.ffffff]]".to_owned();
    let mut pieces = Pieces(text);
    let day = Day::read(&mut pieces).ok_or_else(form)?;
    let (mut micros, mut offset) = (0, None);
    let at_time = matches!(pieces.0, [b'T' | b't' | b' ', digit, ..] if digit.is_ascii_digit());
    if at_time {
        pieces.0 = &pieces.0[1..];
        micros = clock(&mut pieces, cut)?;
        let before_zone = pieces.0;
        offset = zone(&mut pieces);
        if offset.is_none() {
            pieces.0 = before_zone;
        }
    }
    let before_christ = pieces.before_christ();
    if !pieces.0.is_empty() {
        return Err(form());
    }
    let days = day.days(before_christ)? - i64::from(EPOCH_DAYS);
    Ok((i128::from(days) * i128::from(DAY) + i128::from(micros), offset))
}

fn in_range(micros: i128) -> Result<i64, String> {
    let stored = i64::try_from(micros).ok().filter(|_| STAMPS.contains(&micros));
    stored.ok_or_else(|| "it is out of range".to_owned())
}

/// Applies a function of seconds since 1970 to microseconds since 2000 that are in range.
fn in_seconds(micros: i128, to: impl Fn(i64) -> i64) -> Result<i64, String> {
    const EPOCH_SECONDS: i64 = EPOCH_DAYS as i64 * 86_400;
    let micros = in_range(micros)?;
    let seconds = micros.div_euclid(1_000_000) + EPOCH_SECONDS;
    in_range(i128::from(micros) + i128::from(to(seconds) - seconds) * 1_000_000)
}

/// Parses a timestamp; returns microseconds since 2000. `zone` is the zone of local times, for text without a time zone
/// in a column `with_zone`, whose values are in UTC, and the reverse.
pub(super) fn timestamp(text: &[u8], cut: bool, zone: Option<Zone>, with_zone: bool) -> Result<i64, String> {
    let text = super::trimmed(text);
    if let Some(end) = infinity(text, (i64::MIN, i64::MAX)) {
        return Ok(end);
    }
    let (micros, offset) = local_time(text, cut)?;
    let utc = micros - i128::from(offset.unwrap_or(0)) * 1_000_000;
    match (offset, with_zone, zone) {
        (None, false, _) | (Some(_), true, _) => in_range(utc),
        (None, true, Some(zone)) => in_seconds(micros, |local| zone.utc(local)),
        (Some(_), false, Some(zone)) => in_seconds(utc, |utc| zone.local(utc)),
        (None, true, None) => {
            Err("it has no time zone: expected Z or +HH:MM (--timezone names one)".to_owned())
        }
        (Some(_), false, None) => {
            Err("it has a time zone, which this column would drop (--timezone names the column's)".to_owned())
        }
    }
}
