//! How values are written: numbers of other countries, words for truth, dates and times by pattern.

use std::borrow::Cow;

use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems, parse};
use chrono::{Datelike, NaiveDate, Timelike};
use sawmill_profile::{Error, Kind, Result};

/// How values are written, if not as in PostgreSQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// Numbers have a comma before their fraction, as in `12,50`.
    pub decimal_comma: bool,
    /// The character between groups of three digits, as in `1,234,567`.
    pub thousands: Option<u8>,
    /// The words for true and false, in any case. If both are empty, PostgreSQL's words count.
    pub true_words: Vec<String>,
    /// See `true_words`.
    pub false_words: Vec<String>,
    /// Patterns of dates and times, at most [`Formats::MAX_PATTERNS`].
    pub patterns: Vec<Pattern>,
}

/// A pattern such as `%d.%m.%Y %H:%M`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    items: Vec<Item<'static>>,
    /// The type that it describes.
    pub(crate) of: Moment,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// The kind of value that a pattern describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// A day and a time of day.
    Local,
    /// The same with an offset from UTC.
    Utc,
}

const NANOS_OF_DAY: i128 = 86_400_000_000_000;

impl std::str::FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = |what: String| {
            Error::new(Kind::Config, what)
                .advise("write it as strftime does, for example '%d.%m.%Y' or '%d/%b/%Y:%H:%M:%S %z'")
        };
        let items = StrftimeItems::new(text)
            .parse_to_owned()
            .map_err(|_| refused(format!("{text:?} is not a pattern of dates and times")))?;
        let items = with_fractions(items);
        let of = Parts::new(&items)
            .moment()
            .map_err(|what| refused(format!("the pattern {text:?} {what}")))?
            .ok_or_else(|| {
                refused(format!("the pattern {text:?} describes neither a whole date nor a time of day"))
            })?;
        Ok(Self { text: text.to_owned(), items, of })
    }
}

/// Reads `.%f` as the fraction that strftime writes: digits after a point. chrono's own `%f` is a number
/// of nanoseconds.
fn with_fractions(items: Vec<Item<'static>>) -> Vec<Item<'static>> {
    let mut read: Vec<Item<'static>> = Vec::with_capacity(items.len());
    for item in items {
        if matches!(item, Item::Numeric(Numeric::Nanosecond, _))
            && let Some(Item::Literal(_) | Item::OwnedLiteral(_)) = read.last()
            && let Some(before) = read.pop()
        {
            let text: &str = match &before {
                Item::OwnedLiteral(text) => text,
                Item::Literal(text) => text,
                _ => "",
            };
            match text.strip_suffix('.') {
                Some("") => read.push(Item::Fixed(Fixed::Nanosecond)),
                Some(rest) => {
                    read.extend([Item::OwnedLiteral(rest.into()), Item::Fixed(Fixed::Nanosecond)]);
                }
                None => read.extend([before, item]),
            }
            continue;
        }
        read.push(item);
    }
    read
}

/// The parts of a date and time that a pattern has, as letters of strftime; `.` is a fraction of a second after a
/// point, `n` a number of nanoseconds.
#[derive(Debug)]
struct Parts(String);

impl Parts {
    fn new(items: &[Item<'_>]) -> Self {
        let letters = items.iter().map(|item| match item {
            Item::Numeric(number, _) => Self::of_number(number),
            Item::Fixed(fixed) => Self::of_fixed(fixed),
            _ => "",
        });
        Self(letters.collect())
    }

    fn of_number(number: &Numeric) -> &'static str {
        match number {
            Numeric::Year => "Y",
            Numeric::YearDiv100 => "C",
            Numeric::YearMod100 => "y",
            Numeric::IsoYear | Numeric::IsoYearDiv100 | Numeric::IsoYearMod100 => "G",
            Numeric::Quarter => "q",
            Numeric::Month => "m",
            Numeric::Day => "d",
            Numeric::WeekFromSun | Numeric::WeekFromMon => "U",
            Numeric::IsoWeek => "V",
            Numeric::NumDaysFromSun | Numeric::WeekdayFromMon => "u",
            Numeric::Ordinal => "j",
            Numeric::Hour => "H",
            Numeric::Hour12 => "I",
            Numeric::Minute => "M",
            Numeric::Second => "S",
            Numeric::Nanosecond => "n",
            Numeric::Timestamp => "s",
            _ => "",
        }
    }

    fn of_fixed(fixed: &Fixed) -> &'static str {
        match fixed {
            Fixed::ShortMonthName | Fixed::LongMonthName => "m",
            Fixed::ShortWeekdayName | Fixed::LongWeekdayName => "u",
            Fixed::LowerAmPm | Fixed::UpperAmPm => "p",
            Fixed::Nanosecond | Fixed::Nanosecond3 | Fixed::Nanosecond6 | Fixed::Nanosecond9 => ".",
            Fixed::TimezoneName => "Z",
            Fixed::RFC2822 | Fixed::RFC3339 => "YmdHMSz",
            // Digits of a fraction without a point (%3f), or an offset (%#z): their types are private.
            Fixed::Internal(_) if *fixed != Self::permissive_offset() => ".",
            _ => "z",
        }
    }

    fn permissive_offset() -> Fixed {
        match StrftimeItems::new("%#z").next() {
            Some(Item::Fixed(fixed)) => fixed,
            _ => Fixed::TimezoneOffset,
        }
    }

    /// The kind of value that the pattern describes; `None` if it is neither a date nor a time of day.
    ///
    /// # Errors
    /// Parts that would be read and then lost, or that are too few for a date or a time.
    fn moment(&self) -> Result<Option<Moment>, &'static str> {
        let any = |letters: &str| self.0.contains(|part: char| letters.contains(part));
        let all = |letters: &str| letters.chars().all(|part| self.0.contains(part));
        let has_day = any("Yy") && (all("md") || any("j") || all("Uu")) || all("GVu");
        let begins_day = any("YCymdjUGVuq");
        let has_hour = any("H") || all("Ip");
        let has_time = has_hour || any("s");
        if !has_day && !has_time && !any("I") {
            return Ok(None);
        }
        let lost = [
            (
                any("Z"),
                "has %Z, the name of a time zone, which is not read: write the offset as %z, or the name \
                              itself if all values have the same",
            ),
            (
                any("n"),
                "has %f after something else than a point, where it is a number of nanoseconds: write .%f, \
                                or %3f, %6f or %9f for so many digits",
            ),
            (any("I") && !any("pH"), "has hours up to 12 (%I) without AM or PM (%p): write %H, or add %p"),
            (any("p") && !has_hour, "has AM or PM (%p) without an hour (%I)"),
            (any("M") && !has_time, "has minutes (%M) without an hour (%H)"),
            (
                any("S") && !(has_hour && any("M")) && !any("s"),
                "has seconds (%S) without hours and minutes (%H:%M)",
            ),
            (any(".") && !any("Ss"), "has a fraction of a second without the seconds (%S)"),
            (
                begins_day && !has_day && !any("s"),
                "has a part of a date that is not whole: a date has a year (%Y), a month (%m) and a day (%d), or a year \
                 and the day of it (%j)",
            ),
            (
                any("z") && !(has_day && has_time) && !any("s"),
                "has an offset (%z) without a date and a time of day",
            ),
        ];
        if let Some((_, what)) = lost.iter().find(|(is_lost, _)| *is_lost) {
            return Err(what);
        }
        Ok(match (has_day || any("s"), has_time, any("zs")) {
            (true, true, true) => Some(Moment::Utc),
            (true, true, false) => Some(Moment::Local),
            (true, false, _) => Some(Moment::Date),
            (false, true, _) => Some(Moment::Time),
            (false, false, _) => None,
        })
    }
}

impl Pattern {
    /// Returns the pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the type that it describes.
    pub fn moment(&self) -> Moment {
        self.of
    }

    /// Returns days since 1970, or nanoseconds since midnight or since 1970.
    pub(crate) fn value(&self, text: &str) -> Option<i128> {
        let mut parsed = Parsed::new();
        parse(&mut parsed, text, self.items.iter()).ok()?;
        match self.of {
            Moment::Date => days(parsed.to_naive_date().ok()?),
            Moment::Time => {
                // A time without minutes is whole hours.
                if parsed.minute().is_none() {
                    parsed.set_minute(0).ok()?;
                }
                let time = parsed.to_naive_time().ok()?;
                // A leap second has no separate value.
                (time.nanosecond() < 1_000_000_000).then(|| {
                    i128::from(time.num_seconds_from_midnight()) * 1_000_000_000
                        + i128::from(time.nanosecond())
                })
            }
            Moment::Local | Moment::Utc => {
                if parsed.timestamp().is_none() && parsed.minute().is_none() {
                    parsed.set_minute(0).ok()?;
                }
                let offset = parsed.offset().unwrap_or(0);
                let moment = parsed.to_naive_datetime_with_offset(offset).ok()?;
                let nanosecond = moment.nanosecond();
                let seconds = i128::from(moment.time().num_seconds_from_midnight()) - i128::from(offset);
                let whole = days(moment.date())? * NANOS_OF_DAY + seconds * 1_000_000_000;
                (nanosecond < 1_000_000_000).then(|| whole + i128::from(nanosecond))
            }
        }
    }
}

/// Days since 1970. Years of one or two digits need another pattern: `%y`.
fn days(date: NaiveDate) -> Option<i128> {
    (!(0..100).contains(&date.year())).then(|| i128::from(date.to_epoch_days()))
}

impl Formats {
    /// The number of patterns that a set can have.
    pub const MAX_PATTERNS: usize = 32;

    /// Adds a pattern, unless it is there, and returns its place.
    ///
    /// # Errors
    /// There are too many patterns.
    pub fn add(&mut self, pattern: Pattern) -> Result<usize> {
        if let Some(at) = self.patterns.iter().position(|known| *known == pattern) {
            return Ok(at);
        }
        if self.patterns.len() == Self::MAX_PATTERNS {
            let what = format!("there are more than {} patterns of dates and times", Self::MAX_PATTERNS);
            return Err(Error::new(Kind::Config, what));
        }
        self.patterns.push(pattern);
        Ok(self.patterns.len() - 1)
    }

    /// Checks that the characters in numbers are distinct.
    pub(crate) fn check(&self) -> Result<()> {
        let mark = if self.decimal_comma { b',' } else { b'.' };
        let refused = |what: &str| Err(Error::new(Kind::Config, what));
        match self.thousands {
            Some(thousands) if thousands == mark => {
                refused("the characters before fractions and between thousands are the same")
            }
            Some(thousands) if thousands.is_ascii_alphanumeric() || matches!(thousands, b'-' | b'+') => {
                refused("a letter, a digit or a sign cannot separate thousands")
            }
            _ => Ok(()),
        }
    }

    /// Returns a number as others write it; `None` if it is not one.
    pub(crate) fn number<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        if !self.decimal_comma && self.thousands.is_none() {
            return Some(Cow::Borrowed(text));
        }
        let mark = if self.decimal_comma { ',' } else { '.' };
        let (whole, fraction) = match text.split_once(mark) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let other = |c: char| matches!(c, '.' | ',');
        if fraction.is_some_and(|fraction| fraction.contains(other)) {
            return None;
        }
        let whole = match self.thousands.map(char::from).filter(|thousands| whole.contains(*thousands)) {
            Some(thousands) => Cow::Owned(without_thousands(whole, thousands)?),
            None => Cow::Borrowed(whole),
        };
        if whole.contains(other) {
            return None;
        }
        Some(match (whole, fraction) {
            (Cow::Borrowed(_), Some(_)) if !self.decimal_comma => Cow::Borrowed(text),
            (Cow::Borrowed(_), None) => Cow::Borrowed(text),
            (whole, Some(fraction)) => Cow::Owned(format!("{whole}.{fraction}")),
            (whole, None) => whole,
        })
    }

    /// Returns the truth value of a word.
    pub(crate) fn boolean(&self, text: &str) -> Option<bool> {
        // PostgreSQL reads all beginnings that are of one word alone.
        let begins =
            |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        let is = |words: [&str; 4]| !matches!(text, "" | "o" | "O") && words.into_iter().any(begins);
        if self.has_words() {
            // JSON has fixed words, whatever words its strings use.
            return self.word(text).or(text.parse().ok());
        }
        match is(["true", "yes", "on", "1"]) {
            true => Some(true),
            false => is(["false", "no", "off", "0"]).then_some(false),
        }
    }

    pub(crate) fn has_words(&self) -> bool {
        !self.true_words.is_empty() || !self.false_words.is_empty()
    }

    /// Returns the truth value of one of the given words.
    pub(crate) fn word(&self, text: &str) -> Option<bool> {
        let is = |words: &[String]| words.iter().any(|word| word.to_lowercase() == text.to_lowercase());
        if is(&self.true_words) { Some(true) } else { is(&self.false_words).then_some(false) }
    }

    /// Returns the patterns of a set.
    pub(crate) fn chosen(&self, patterns: u32) -> impl Iterator<Item = &Pattern> {
        let chosen = self.patterns.iter().enumerate().filter(move |(at, _)| patterns & (1 << at) != 0);
        chosen.map(|(_, pattern)| pattern)
    }

    /// Returns the value of the first of some patterns that fits.
    pub(crate) fn moment(&self, patterns: u32, text: &str) -> Option<i128> {
        self.chosen(patterns).find_map(|pattern| pattern.value(text))
    }

    /// Returns the point in time of the first of some patterns that fits; of a day, its midnight.
    pub(crate) fn point(&self, patterns: u32, text: &str) -> Option<i128> {
        self.chosen(patterns).find_map(|pattern| {
            let value = pattern.value(text)?;
            Some(if pattern.of == Moment::Date { value * NANOS_OF_DAY } else { value })
        })
    }

    /// Returns the texts of some patterns.
    pub(crate) fn named(&self, patterns: u32) -> String {
        self.chosen(patterns).map(Pattern::text).collect::<Vec<_>>().join(" or ")
    }

    /// Returns everything that determines values.
    pub(crate) fn identity(&self) -> String {
        if *self == Self::default() {
            return String::new();
        }
        let Self { decimal_comma, thousands, true_words, false_words, patterns } = self;
        let patterns: Vec<&str> = patterns.iter().map(Pattern::text).collect();
        let thousands = thousands.map(char::from);
        format!(
            " comma {decimal_comma} thousands {thousands:?} true {true_words:?} false {false_words:?} patterns \
             {patterns:?}"
        )
    }
}

/// Returns the digits of `-1.234.567` for `.`: groups of three after the first.
fn without_thousands(whole: &str, thousands: char) -> Option<String> {
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let sign = &whole[..whole.len() - digits.len()];
    let mut groups = digits.split(thousands);
    let first = groups.next()?;
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=3).contains(&first.len()) || !is_digits(first) {
        return None;
    }
    let mut number = format!("{sign}{first}");
    for group in groups {
        if group.len() != 3 || !is_digits(group) {
            return None;
        }
        number += group;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(pattern: &str, text: &str) -> Option<i128> {
        pattern.parse::<Pattern>().unwrap().value(text)
    }

    #[test]
    fn numbers_of_other_countries_become_plain_ones() {
        let german = Formats { decimal_comma: true, thousands: Some(b'.'), ..Formats::default() };
        for (text, plain) in [
            ("1.234,5", Some("1234.5")),
            ("-1.234.567", Some("-1234567")),
            ("+1.234,5", Some("+1234.5")),
            ("0,5", Some("0.5")),
            ("1234,5", Some("1234.5")),
            ("1.23,5", None),
            ("1234.567", None),
            ("1,2,3", None),
            ("1,2.3", None),
            (".123", None),
        ] {
            assert_eq!(german.number(text).as_deref(), plain, "{text}");
        }
        let english = Formats { thousands: Some(b','), ..Formats::default() };
        assert_eq!(english.number("1,234.5").as_deref(), Some("1234.5"));
        assert_eq!(english.number("1.5").as_deref(), Some("1.5"));
        assert_eq!(english.number("1,23").as_deref(), None);
        assert!(Formats { thousands: Some(b'.'), ..Formats::default() }.check().is_err());
    }

    #[test]
    fn patterns_describe_dates_times_and_points_in_time() {
        assert_eq!(value("%d.%m.%Y", "02.01.1970"), Some(1));
        assert_eq!(value("%d.%m.%y", "2.1.70"), Some(1));
        assert_eq!(value("%d.%m.%Y", "2.1.70"), None, "a year of two digits is %y");
        assert_eq!(value("%d.%m.%Y", "31.02.2024"), None);
        assert_eq!(value("%Y%m%d", "19700103"), Some(2));
        assert_eq!(value("%I:%M %p", "1:30 PM"), Some(48_600_000_000_000));
        assert_eq!(value("%d/%b/%Y:%H:%M:%S %z", "01/Jan/1970:02:00:01 +0200"), Some(1_000_000_000));
        assert_eq!(value("%m/%d/%Y %H:%M", "1/1/1970 0:01"), Some(60_000_000_000));
        assert_eq!(value("%Y-%m-%dT%H:%M:%S%.f", "1970-01-01T00:00:00.25"), Some(250_000_000));
        assert_eq!(value("%Y-%m-%d %H:%M:%S.%f", "1970-01-01 00:00:00.123456"), Some(123_456_000));
        assert_eq!(value("%H:%M:%S,%3f", "00:00:00,250"), Some(250_000_000));
        assert_eq!(value("%a %d %b %Y", "Thu 01 Jan 1970"), Some(0));
        assert_eq!(value("%a %d %b %Y", "Fri 01 Jan 1970"), None);
        assert_eq!(value("%G-W%V-%u", "1970-W01-4"), Some(0));
        assert_eq!(value("%s%.f", "1.5"), Some(1_500_000_000));
        for wrong in ["%d.%m", "%Q", "day", "%M", "%H %z"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_lose_no_part_of_a_value() {
        for (pattern, what) in [
            ("%Y-%m-%d %I:%M", "(%p)"),
            ("%I:%M", "(%p)"),
            ("%d %H:%M", "a date has a year"),
            ("%Y-%m %H:%M", "a date has a year"),
            ("%a %H:%M", "a date has a year"),
            ("%Y-%m-%d %H:%M:%S %Z", "%Z"),
            ("%Y-%m-%d %z", "(%z)"),
            ("%H:%M %z", "(%z)"),
            ("%Y-%m-%d %M", "minutes"),
            ("%Y-%m-%d %H:%S", "seconds"),
            ("%H:%M%.f", "fraction"),
            ("%Y-%m-%d %H:%M:%S,%f", "%3f"),
        ] {
            let error = pattern.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(what), "{pattern}: {error}");
        }
    }
}
