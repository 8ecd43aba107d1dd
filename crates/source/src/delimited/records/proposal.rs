//! The dialect that the start of a text fits, and the evidence for it. It is taken if no option is given and all
//! records fit; otherwise it is proposed.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, IBM866, ISO_8859_5, KOI8_R, SHIFT_JIS, UTF_16BE, UTF_16LE,
    WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
};
use serde::Serialize;

use super::dialect::{Dialect, Ragged};
use super::splitter::{Cell, Form, Splitter, Step};
use crate::condition::{days_of, time_of, timestamp_of};
use crate::delimited::content::{UNIT_SEPARATOR, with_short_delimiters};

/// How many bytes of a text to look at.
pub(crate) const START: usize = 128 << 10;

/// The delimiters that may be taken without being given.
const USUAL: [u8; 4] = [b',', b';', b'\t', b'|'];
const DELIMITERS: [u8; 9] = [b',', b';', b'\t', b'|', b':', b'^', b'~', b' ', 0x1f];
/// Other possible delimiters. Quotes behind the first character of the first ones would be within fields; a star is for
/// blanks that only some records have.
const LONG: [&str; 6] = [", ", "; ", ", *", "; *", "||", "::"];
const QUOTES: [Option<u8>; 3] = [Some(b'"'), Some(b'\''), None];

/// An option that a text fits, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedOption {
    /// As it is written on a command line.
    pub option: String,
    /// The feature of the text that it fits.
    pub because: String,
    /// Whether the text is read in that way.
    pub in_effect: bool,
}

/// A way to divide the start of a text.
struct Division {
    delimiter: u8,
    /// The long delimiter, if [`UNIT_SEPARATOR`] replaces it.
    long: Option<&'static str>,
    quote: Option<u8>,
    escape: Option<u8>,
    /// The field count of most records, the number of records with it, and the number of records from the
    /// first of these on.
    fields: usize,
    records: usize,
    of: usize,
    /// The number of all records, and of those that are left once those before the first of these are skipped.
    all: usize,
    left: usize,
    /// The line of another record, and its fields; one with more rather than one with fewer.
    other: Option<(u64, usize)>,
    /// The lines before the first of these records, and before the first of them that has more than a title.
    lines: u64,
    titles: u64,
    /// The lines of a title that a spreadsheet has written: it is alone in its record, records without any value
    /// follow, and then names in all fields.
    sheet_titles: Option<u64>,
    /// A field that is in quotes.
    quoted: Option<String>,
    /// The fields of those records.
    table: Vec<Vec<String>>,
    /// How many of the records and fields it explains, and the same with a preference for more fields.
    fit: f64,
    score: f64,
}

/// Returns the options that the start of a text fits; `None` if no delimiter divides it. `is_all`: this is all of it.
pub(crate) fn proposed(start: &[u8], is_all: bool, dialect: &Dialect, delimiter: u8) -> Vec<ProposedOption> {
    let (text, encoding) = decoded(start, is_all);
    let mut proposed = Vec::new();
    if let Some((encoding, letters)) = encoding {
        proposed.push(ProposedOption {
            option: format!("--text-encoding {}", encoding.name().to_lowercase()),
            because: format!("the text is not UTF-8; in this encoding it has {letters}"),
            in_effect: false,
        });
    }
    let divisions = DELIMITERS.iter().flat_map(|delimiter| QUOTES.map(|quote| (*delimiter, quote)));
    let divisions = divisions.flat_map(|(delimiter, quote)| {
        let may_escape = dialect.escape.is_none() && quote.is_some() && text.contains("\\\"");
        let escapes = [Some(dialect.escape), may_escape.then_some(Some(b'\\'))];
        let divided =
            |escape| divided(&text, is_all, delimiter, &Dialect { quote, escape, ..dialect.clone() });
        escapes.into_iter().flatten().filter_map(divided).collect::<Vec<_>>()
    });
    let long = LONG.iter().filter_map(|long| divided_by(&text, is_all, long, dialect));
    let divisions: Vec<Division> = divisions.chain(long).collect();
    let fitting = divisions.iter().filter(|division| division.fit > 0.5);
    let most = fitting.map(|division| division.records).max().unwrap_or(0);
    let best = divisions.into_iter().filter(|division| division.may_skip(most)).reduce(Division::better);
    let Some(best) = best.filter(|best| best.fit > 0.5) else { return proposed };
    best.propose(dialect, delimiter, &mut proposed);
    proposed
}

/// Returns the dialect that all records of the start of a text fit, if it is not the one with this delimiter.
///
/// If the delimiter fits, others are not tried, unless quotes come behind blanks: a second dialect that also fits never
/// changes how a text is read. Other quotes and escapes are tried last, where the text would be refused otherwise.
pub(crate) fn taken((start, is_all): (&[u8], bool), dialect: &Dialect, delimiter: u8) -> Option<Dialect> {
    let text = of_utf8(start, is_all)?;
    let skipped = usize::try_from(dialect.skip_lines).ok()?;
    let text = text.trim_start_matches('\u{feff}').splitn(skipped.checked_add(1)?, '\n').nth(skipped)?;
    let fits =
        |delimiter| divided(text, is_all, delimiter, dialect).filter(|division| division.fits_all(dialect));
    let is_late = |field: &String| field.starts_with(' ') && field.trim_start().starts_with('"');
    let is_usual = |of: &Division| !dialect.may_adapt || !of.table.iter().flatten().any(is_late);
    if let Some(division) = fits(delimiter).filter(is_usual) {
        let titles = division.sheet_titles.filter(|_| dialect.may_adapt)?;
        return Some(Dialect { skip_lines: titles, ..dialect.clone() });
    }
    let long = LONG.iter().filter(|long| dialect.may_adapt || !long.contains('*'));
    let long = long.filter_map(|long| divided_by(text, is_all, long, dialect));
    let long = long.filter(|division| division.fits_all(dialect));
    let best = USUAL.iter().filter_map(|usual| fits(*usual)).chain(long).reduce(Division::better);
    let best = best.or_else(|| {
        let quotes = [(Some(b'"'), Some(b'\\')), (Some(b'\''), None)].into_iter();
        let quotes = quotes.filter(|(_, escape)| escape.is_none() || text.contains("\\\""));
        let mut quoted = quotes.filter(|_| dialect.may_adapt).flat_map(|(quote, escape)| {
            let dialect = Dialect { quote, escape, ..dialect.clone() };
            USUAL.map(|usual| divided(text, is_all, usual, &dialect).filter(|of| of.fits_all(&dialect)))
        });
        quoted.find_map(|division| division)
    })?;
    let Division { delimiter, long, quote, escape, .. } = best;
    let delimiter = Some(delimiter).filter(|_| long.is_none());
    let long_delimiter = long.map(str::to_owned);
    Some(Dialect { delimiter, long_delimiter, quote, escape, ..dialect.clone() })
}

impl Division {
    /// The division with the higher score; of equal ones the first, which is the most common. A delimiter that is
    /// doubled everywhere is one long delimiter, not two around an empty field.
    fn better(self, other: Self) -> Self {
        let is_doubled = other.long.is_some_and(|long| long.bytes().all(|byte| byte == self.delimiter))
            && other.records == self.records
            && other.fields * 2 == self.fields + 1;
        if is_doubled || other.score > self.score + 1e-9 { other } else { self }
    }

    /// Whether the lines before its records may be skipped; `most` is the largest number of records that any division
    /// explains. Half of the text or more is skipped only if the division explains that many, and never all but one
    /// record.
    fn may_skip(&self, most: usize) -> bool {
        self.left == self.all || self.left > 1 && (self.left * 2 > self.all || self.records >= most)
    }

    /// Whether all records have the same fields.
    fn fits_all(&self, dialect: &Dialect) -> bool {
        let is_named = dialect.names.is_empty() || dialect.names.len() == self.fields;
        self.records == self.of && self.of > 1 && is_named && self.lines == 0
    }

    fn propose(&self, dialect: &Dialect, delimiter: u8, proposed: &mut Vec<ProposedOption>) {
        let mut propose = |option: String, because: String, in_effect: bool| {
            proposed.push(ProposedOption { option, because, in_effect });
        };
        if self.titles > 0 || dialect.skip_lines > 0 {
            let because = match self.titles {
                0 => format!("the first line has {} fields, as most others", self.fields),
                lines => format!("line {} is the first with {} fields", lines + 1, self.fields),
            };
            propose(format!("--skip-lines {}", self.titles), because, dialect.skip_lines == self.titles);
        }
        let given = dialect.long_delimiter.as_deref().filter(|_| self.delimiter == delimiter);
        let shown = match self.delimiter {
            b'\t' => "tab".to_owned(),
            UNIT_SEPARATOR => self.long.or(given).map_or("'\\x1f'".to_owned(), |long| format!("'{long}'")),
            byte => format!("'{}'", char::from(byte)),
        };
        let because = format!("{} of {} records have {} fields", self.records, self.of, self.fields);
        propose(format!("--delimiter {shown}"), because, delimiter == self.delimiter);
        match (&self.quoted, self.quote) {
            (Some(field), Some(quote)) => {
                let shown =
                    if quote == b'\'' { "\"'\"".to_owned() } else { format!("'{}'", char::from(quote)) };
                let because = format!("fields such as {field:?} are in them");
                propose(format!("--quote {shown}"), because, dialect.quote == self.quote);
            }
            (None, None) => {
                let because = "quotes in the text are not around fields".to_owned();
                propose("--quote none".to_owned(), because, dialect.quote.is_none());
            }
            _ => {}
        }
        if let (Some(escape), None) = (self.escape, dialect.escape) {
            let because = "quotes within fields follow it".to_owned();
            propose(format!("--escape '{}'", char::from(escape)), because, false);
        }
        if let Some((line, found)) = self.other {
            let option = if found > self.fields { "fill-and-cut" } else { "fill" };
            let is_given = dialect.ragged == Ragged::FilledAndCut
                || found < self.fields && dialect.ragged == Ragged::Filled;
            let because = format!("line {line} has {found} fields");
            propose(format!("--ragged {option}"), because, is_given);
        }
        let value = self.table.first().into_iter().flatten().find(|field| is_value(field));
        match value {
            Some(value) => {
                let because = format!("the first record has the value {value:?}");
                propose("--no-header".to_owned(), because, !dialect.header);
            }
            None if !dialect.header => {
                propose("a header".to_owned(), "the first record has no numbers and dates".to_owned(), false)
            }
            None => {}
        }
        let numbers = Numbers::new(self.table.iter().skip(1).flatten());
        let mut of_numbers = |option: &str, example: &Option<String>, in_effect| {
            if let Some(example) = example {
                propose(option.to_owned(), format!("the text has numbers such as {example:?}"), in_effect);
            }
        };
        let formats = &dialect.formats;
        match numbers.points {
            true => of_numbers("--thousands ','", &numbers.comma_groups, formats.thousands == Some(b',')),
            false => {
                of_numbers("--decimal-comma", &numbers.comma, formats.decimal_comma);
                of_numbers("--thousands .", &numbers.point_groups, formats.thousands == Some(b'.'));
            }
        }
    }
}

/// Examples of numbers in another notation than with a point before the fraction alone.
#[derive(Default)]
struct Numbers {
    comma: Option<String>,
    point_groups: Option<String>,
    comma_groups: Option<String>,
    /// Whether a point is before the fraction of some number.
    points: bool,
}

impl Numbers {
    fn new<'a>(fields: impl Iterator<Item = &'a String>) -> Self {
        let mut found = Self::default();
        for field in fields {
            let unsigned = field.trim().trim_start_matches('-');
            if !unsigned.starts_with(|first: char| first.is_ascii_digit())
                || !unsigned.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.'))
            {
                continue;
            }
            let groups = |mark: char, whole: &str| {
                let mut groups = whole.split(mark);
                groups.next().is_some_and(|first| first.len() <= 3) && groups.all(|group| group.len() == 3)
            };
            let (commas, points) = (unsigned.matches(',').count(), unsigned.matches('.').count());
            let example = |of: &mut Option<String>| {
                of.get_or_insert_with(|| field.clone());
            };
            match (commas, points) {
                (0, 1) => found.points = true,
                (1, 1..)
                    if unsigned
                        .split_once(',')
                        .is_some_and(|(whole, rest)| !rest.contains('.') && groups('.', whole)) =>
                {
                    example(&mut found.comma);
                    example(&mut found.point_groups);
                }
                (1.., 1) if unsigned.split_once('.').is_some_and(|(whole, _)| groups(',', whole)) => {
                    found.points = true;
                    example(&mut found.comma_groups);
                }
                (2.., 0) if groups(',', unsigned) => example(&mut found.comma_groups),
                // `1,234` may be either.
                (1, 0) if !groups(',', unsigned) => example(&mut found.comma),
                _ => {}
            }
        }
        // Whole numbers with groups alone leave no room for a comma before a fraction.
        found.points |= found.comma.is_none() && found.comma_groups.is_some();
        found
    }
}

/// Divides the start of a text by a delimiter of several characters.
fn divided_by(text: &str, is_all: bool, long: &'static str, dialect: &Dialect) -> Option<Division> {
    if !text.contains(&long.replace('*', "\"")) || text.contains(char::from(UNIT_SEPARATOR)) {
        return None;
    }
    let short = with_short_delimiters(text, &Dialect { skip_lines: 0, ..dialect.clone() }, long)?;
    let division = divided(&short, is_all, UNIT_SEPARATOR, dialect)?;
    Some(Division { long: Some(long), ..division })
}

/// Divides the start of a text by the quotes of a dialect; `None` if that makes no columns, or quotes do not fit.
fn divided(text: &str, is_all: bool, delimiter: u8, dialect: &Dialect) -> Option<Division> {
    let Dialect { quote, escape, comment, .. } = *dialect;
    let dialect = Dialect { quote, escape, comment, ..Dialect::default() };
    let mut splitter = Splitter::new(&dialect, delimiter);
    if text.contains('\r') && !text.contains('\n') {
        splitter.end_lines_by_returns();
    }
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
    let is_title = |(_, range): &&(usize, std::ops::Range<usize>)| {
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

/// Whether a field is a number or a moment.
fn is_value(field: &str) -> bool {
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

/// The text of UTF-8; `None` for other bytes. The last character may go on behind the start of a text.
fn of_utf8(start: &[u8], is_all: bool) -> Option<&str> {
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() && !is_all => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()
        }
        text => text.ok(),
    }
}

/// Returns the text of bytes, and the encoding if they are not UTF-8.
fn decoded(start: &[u8], is_all: bool) -> (String, Option<(&'static Encoding, String)>) {
    let zeros =
        |odd: usize| start.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count() * 4 > start.len();
    let wide = [(UTF_16LE, 1), (UTF_16BE, 0)].into_iter().find(|(_, odd)| zeros(*odd));
    if let Some((encoding, _)) = wide {
        let (text, _) = encoding.decode_without_bom_handling(start);
        return (text.into_owned(), Some((encoding, "characters of two bytes".to_owned())));
    }
    if let Some(text) = of_utf8(start, is_all) {
        return (text.trim_start_matches('\u{feff}').to_owned(), None);
    }
    let kana = |c: char| matches!(c, '\u{3040}'..='\u{30ff}');
    let hangul = |c: char| matches!(c, '\u{ac00}'..='\u{d7a3}');
    let han =
        |c: char| matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}');
    let cyrillic = |c: char| matches!(c, '\u{400}'..='\u{45f}');
    let greek = |c: char| matches!(c, '\u{370}'..='\u{3ff}');
    let high = start.iter().filter(|byte| !byte.is_ascii()).count();
    /// An encoding, the characters of its script, their least share in percent, a name.
    type Script = (&'static Encoding, fn(char) -> bool, usize, &'static str);
    let scripts: [Script; 11] = [
        (SHIFT_JIS, kana, 20, "Japanese kana"),
        (EUC_JP, kana, 20, "Japanese kana"),
        (EUC_KR, hangul, 85, "Korean syllables"),
        (BIG5, han, 95, "Chinese characters"),
        (GB18030, han, 90, "Chinese characters"),
        (WINDOWS_1251, cyrillic, 90, "Cyrillic letters"),
        (KOI8_R, cyrillic, 90, "Cyrillic letters"),
        (IBM866, cyrillic, 90, "Cyrillic letters"),
        (WINDOWS_1253, greek, 90, "Greek letters"),
        (ISO_8859_5, cyrillic, 90, "Cyrillic letters"),
        (WINDOWS_1252, |_| true, 0, "Latin letters"),
    ];
    for (encoding, is_of_script, percent, named) in scripts {
        let (text, _) = encoding.decode_without_bom_handling(start);
        let others = || text.chars().filter(|c| !c.is_ascii() && *c != '\u{fffd}');
        let of_script = || others().filter(|c| is_of_script(*c));
        // The start may end within a character.
        let is_whole = text.matches('\u{fffd}').count() <= usize::from(!is_all);
        // In GB 2312 both bytes of a character are high, in Big5 often one.
        let fits = percent == 0 || is_of_words(&text) && (encoding != BIG5 || high < 2 * others().count());
        if is_whole && fits && of_script().count() * 100 >= others().count() * percent {
            let example: String = of_script().take(3).collect();
            return (text.into_owned(), Some((encoding, format!("{named} such as {example:?}"))));
        }
    }
    (String::from_utf8_lossy(start).into_owned(), None)
}

/// Whether a text has words of another script than Latin: letters beside one another, and hardly a capital behind a small
/// letter. Accents in Latin text that is read in another encoding are alone, and letters of others have capitals anywhere.
fn is_of_words(text: &str) -> bool {
    let pairs = || text.chars().zip(text.chars().skip(1)).filter(|(_, next)| !next.is_ascii());
    let beside = pairs().filter(|(before, _)| !before.is_ascii()).count();
    let mixed = pairs().filter(|(before, next)| before.is_lowercase() && next.is_uppercase()).count();
    beside * 5 >= pairs().count() * 2 && mixed * 20 <= pairs().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options that a text fits and that are not in effect, and the evidence for the first.
    fn fits(text: &[u8]) -> (String, String) {
        let proposed = proposed(text, true, &Dialect::default(), b',');
        let other: Vec<ProposedOption> = proposed.into_iter().filter(|option| !option.in_effect).collect();
        let options: Vec<String> = other.iter().map(|option| option.option.clone()).collect();
        (options.join(" "), other.first().map(|option| option.because.clone()).unwrap_or_default())
    }

    #[test]
    fn the_start_of_a_text_tells_its_dialect() {
        for (text, options) in [
            ("a,b\n1,x\n2,y\n", ""),
            ("a;b\n1;x\n2;y\n", "--delimiter ';'"),
            ("a\tb\n1\tx, y\n2\tz\n", "--delimiter tab"),
            ("a;b\n1,5;x\n2,25;y\n", "--delimiter ';' --decimal-comma"),
            ("a;b\n1.234,5;x\n2;y\n", "--delimiter ';' --decimal-comma --thousands ."),
            ("a|b\n1,234.5|x\n2|y\n", "--delimiter '|' --thousands ','"),
            ("Report of 2024\n\na,b\n1,x\n2,y\n", "--skip-lines 2"),
            ("Report,,\n,,\na,b,c\n1,x,2\n2,y,\n", "--skip-lines 2"),
            ("a;b\n'x;y';1\n'z';2\n", "--delimiter ';' --quote \"'\""),
            ("1,2024-01-31\n2,2024-02-01\n", "--no-header"),
            ("a,b\n5\" pipe,1\n\"6\" pipe,2\n\"7\" pipe,3\n", "--quote none"),
            ("a, b\n1, \"x, y\"\n2, \"z\"\n", "--delimiter ', '"),
            ("a||b||c\n1||x||2\n2||y||3\n", "--delimiter '||'"),
            ("a,b\n1,\"x\\\"y\"\n2,z\n3,\"w\"\n", "--escape '\\'"),
            ("a,b\n1\n2,x\n3,y\n4,z\n", "--ragged fill"),
            ("a,b\n1\n2,x,\n3,y\n4,z\n5,w\n", "--ragged fill-and-cut"),
            // A few lines at the end do not justify skipping the others.
            ("a;b;c\n1;2;3\n4;5;6\nfoot,er\n", "--delimiter ';' --ragged fill"),
            ("a b c\n1 2 3\n4 5 6,7\n", "--delimiter ' ' --decimal-comma"),
            ("a;b\n1;x\n2;y\n3;z\nt,u\n4,5\n6,7\n", "--delimiter ';' --ragged fill"),
            ("id\n1\n2\n3,4\n", ""),
            ("Report\nof\n2024\na;b\n1;x\n", "--skip-lines 3 --delimiter ';'"),
            ("one line of text\nanother, of prose.\nand no columns\n", ""),
            ("id\n1\n2\n", ""),
            ("", ""),
        ] {
            assert_eq!(fits(text.as_bytes()).0, options, "{text:?}");
        }
    }

    #[test]
    fn a_dialect_is_taken_if_all_records_fit_it() {
        let taken = |text: &str| {
            let taken = taken((text.as_bytes(), true), &Dialect::default(), b',')?;
            taken.long_delimiter.or(taken.delimiter.map(|byte| char::from(byte).to_string()))
        };
        for (text, expected) in [
            ("a,b\n1,x\n", None),
            ("a;b\n1;x\n", Some(";")),
            ("a;b\n1,5;x\n2,5;\"y\n;\"\n", Some(";")),
            ("a\tb\n1\tx, y\n", Some("\t")),
            ("a|b\r\n1|x\r\n", Some("|")),
            // Commas fit, whatever else does.
            ("1,5;2\n1,5;2\n", None),
            ("a, b\n1, \"x, y\"\n", Some(", ")),
            ("\"a\", \"b\"\n\"1\", \"x\"\n", Some(", ")),
            ("a,b\n1, \"x\"\n2,y\n", Some(", *")),
            ("a||b\n1||\"||\"\n", Some("||")),
            ("a,b\n1, \"x, y\"\n2,z\n", Some(", *")),
            // Not all records fit.
            ("a;b\n1;x\n2\n", None),
            ("a;b\n1;x;3\n", None),
            ("a;b\n", None),
            ("a b\n1 2\n", None),
            // Titles that may be names are proposed, and quotes that the text is not refused without.
            ("Report\na,b\n1,x\n2,y\n", None),
            ("id\n1,x\n2,y\n3,z\n", None),
            ("a,b\n1,x,2\n2,y,3\n3,z,4\n", None),
            ("Report\na;b\n1;x\n2;y\n", None),
            ("a,b\n'x',1\n'z',2\n", None),
            ("a,b\n5\" pipe,1\n\"6\" pipe,2\n", None),
            ("a,b\n\"x\",1\n\"6\" pipe,2\n", None),
            ("", None),
        ] {
            assert_eq!(taken(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn quotes_escapes_and_titles_of_spreadsheets_are_taken_where_a_text_is_refused_without_them() {
        let given = Dialect { may_adapt: false, ..Dialect::default() };
        for (text, quote, escape, skip_lines) in [
            ("a,b\n'x,y',1\n'z',2\n", Some(b'\''), None, 0),
            ("a,b\n\"x\\\"y\",1\n2,z\n", Some(b'"'), Some(b'\\'), 0),
            ("Report,,\n,,\na,b,c\n1,x,2\n2,y,\n", Some(b'"'), None, 2),
        ] {
            let found = taken((text.as_bytes(), true), &Dialect::default(), b',').unwrap();
            assert_eq!(
                (found.quote, found.escape, found.skip_lines),
                (quote, escape, skip_lines),
                "{text:?}"
            );
            assert_eq!(taken((text.as_bytes(), true), &given, b','), None, "{text:?}");
        }
        let blanks = ("a,b\n1, \"x, y\"\n2,z\n".as_bytes(), true);
        let found = taken(blanks, &Dialect::default(), b',').unwrap();
        assert_eq!(found.long_delimiter.as_deref(), Some(", *"));
        assert_eq!(taken(blanks, &given, b','), None);
        // The first record may be names, some of them missing.
        for text in ["Report,,\na,b,c\n1,x,2\n", "Report,,\n,,\n1,x,2\n2,y,3\n", "a,,\n,,\n"] {
            assert_eq!(taken((text.as_bytes(), true), &Dialect::default(), b','), None, "{text:?}");
        }
    }

    #[test]
    fn the_letters_of_a_text_tell_its_encoding() {
        let in_encoding = |encoding: &'static Encoding, text: &str| encoding.encode(text).0.into_owned();
        for (encoding, text) in [
            (WINDOWS_1252, "name,city\nZoë,Köln\n"),
            (WINDOWS_1252, "nombre,país\nEspaña,niño\nMálaga,corazón\n"),
            (WINDOWS_1252, "id,société\n1,café\n2,élève\n"),
            (WINDOWS_1251, "имя,город\nАнна,Москва\n"),
            (KOI8_R, "имя,город\nАнна,Москва\n"),
            (IBM866, "имя,город\nАнна,Москва\n"),
            (ISO_8859_5, "имя,город\nАнна,Москва\n"),
            (WINDOWS_1253, "id,όνομα\n1,Αθήνα\n2,Γιώργος\n"),
            (BIG5, "姓名,城市\n王芳,臺北市\n"),
            (EUC_JP, "名前,町\nさくら,ひろしま\n"),
            (SHIFT_JIS, "名前,町\nさくら,ひろしま\n"),
            (EUC_KR, "이름,도시\n민준,서울\n"),
            (GB18030, "姓名,城市\n王芳,北京\n"),
        ] {
            let (options, because) = fits(&in_encoding(encoding, text));
            assert_eq!(options, format!("--text-encoding {}", encoding.name().to_lowercase()), "{because}");
        }
        let wide: Vec<u8> = "a,b\n1,x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(fits(&wide).0, "--text-encoding utf-16le");
    }
}
