//! The dialect that the start of a text fits, and the evidence for it. It is taken if no option is given and all
//! records fit; otherwise it is proposed.

use serde::Serialize;

use super::dialect::{Dialect, Ragged};
use super::division::{Division, divided, divided_by, is_value};
use super::likely_encoding::{decoded, of_utf8};
use crate::delimited::content::UNIT_SEPARATOR;

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

#[cfg(test)]
mod tests {
    use encoding_rs::{
        BIG5, EUC_JP, EUC_KR, Encoding, GB18030, IBM866, ISO_8859_5, KOI8_R, SHIFT_JIS, WINDOWS_1251,
        WINDOWS_1252, WINDOWS_1253,
    };

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
        // Without kana, the bytes of Japanese are also those of Korean or Chinese.
        for (encoding, other) in [(SHIFT_JIS, "shift_jis"), (EUC_JP, "euc-jp")] {
            let (_, because) = fits(&in_encoding(encoding, "名前,町\n東京,大阪\n"));
            assert!(because.contains(&format!("it may also be {other}, with \"名前町\"")), "{because}");
        }
        let wide: Vec<u8> = "a,b\n1,x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(fits(&wide).0, "--text-encoding utf-16le");
    }
}
