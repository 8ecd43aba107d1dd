//! The shapes of strings: their classes of characters, place by place, such as the shapes of IP addresses and dates.

use std::collections::BTreeMap;

/// The most shapes to list.
const MAX: usize = 256;

/// How often each shape was sampled on average, so that others are rare.
const TIMES_EACH: u64 = 20;

/// The longest string with a shape.
const MAX_LENGTH: usize = 128;

/// A shape with fewer different strings does not show which other letters a place may have, and its strings could be
/// guessed.
const MANY: u64 = 50;

/// The shapes of strings, each with its count.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    shapes: BTreeMap<String, Shape>,
    n: u64,
    /// Whether some string has a letter other than `a` to `f`.
    beyond_hex: bool,
    digits: bool,
}

/// The least and the greatest character in each place.
#[derive(Debug)]
struct Shape {
    n: u64,
    distinct: u64,
    places: Vec<(char, char)>,
}

/// `A`, `a` or `9` for letters and digits, and the character itself for others.
fn class(c: char) -> char {
    match c {
        'A'..='Z' => 'A',
        'a'..='z' => 'a',
        '0'..='9' => '9',
        c if c.is_uppercase() => 'A',
        c if c.is_alphanumeric() => 'a',
        c => c,
    }
}

/// Whether a class has other letters or digits.
fn is_own(class: char) -> bool {
    "Aa9".contains(class)
}

impl Shapes {
    /// Adds another string, which occurs `n` times; `None` if there are too many shapes.
    pub(crate) fn add(&mut self, text: &str, n: u64) -> Option<()> {
        let shape: String = text.chars().take(MAX_LENGTH + 1).map(class).collect();
        if text.len() > MAX_LENGTH || (self.shapes.len() == MAX && !self.shapes.contains_key(&shape)) {
            return None;
        }
        let places = || text.chars().map(|c| (c, c)).collect();
        let found = self.shapes.entry(shape).or_insert_with(|| Shape { n: 0, distinct: 0, places: places() });
        found.n += n;
        found.distinct += 1;
        self.n += n;
        for (place, c) in found.places.iter_mut().zip(text.chars()) {
            *place = (place.0.min(c), place.1.max(c));
            self.digits |= c.is_ascii_digit();
            self.beyond_hex |= c.is_alphabetic() && !c.is_ascii_hexdigit();
        }
        Some(())
    }

    /// Regular expressions with their weights; `None` if there are many shapes for the number of strings. At most
    /// `most_copied` letters and digits that all strings of a shape have in common are copied. To match more strings,
    /// places that vary have all letters or digits of their class, and the last one comes `longer` times more; a shape
    /// without letters and digits gets `longer` digits.
    pub(crate) fn patterns(&self, most_copied: usize, longer: Option<usize>) -> Option<Vec<(String, u64)>> {
        let single = self.shapes.len() == 1;
        if !single && self.n < TIMES_EACH * self.shapes.len() as u64 {
            return None;
        }
        let pattern = |(text, shape): (&String, &Shape)| {
            let mut places: Vec<_> = text.chars().zip(shape.ranges(text, most_copied)).collect();
            if let Some(times) = longer {
                let varies = |found: (char, char)| found.0 != found.1;
                places.iter_mut().for_each(|(_, found)| *found = found.filter(|found| !varies(*found)));
                let is_free = |(class, found): &(char, Option<_>)| is_own(*class) && found.is_none();
                if let Some(last) = places.iter().rposition(is_free) {
                    let more = vec![places[last]; times];
                    places.splice(last..last, more);
                } else if !text.chars().any(is_own) {
                    places.extend(vec![('9', None); times]);
                }
            }
            (self.pattern(&places), shape.n)
        };
        Some(self.shapes.iter().map(pattern).collect())
    }

    /// The least and the greatest character of each place, if there is one shape. At most `most_copied` letters and
    /// digits that all strings have in common are copied.
    pub(crate) fn places(&self, most_copied: usize) -> Option<Vec<(char, char)>> {
        let (text, shape) = self.shapes.first_key_value().filter(|_| self.shapes.len() == 1)?;
        let place = |(class, found): (char, Option<(char, char)>)| match (found, class) {
            (Some(found), _) => found,
            (None, 'A') => ('A', 'Z'),
            (None, 'a') => ('a', 'z'),
            (None, '9') => ('0', '9'),
            (None, c) => (c, c),
        };
        Some(text.chars().zip(shape.ranges(text, most_copied)).map(place).collect())
    }

    fn pattern(&self, places: &[(char, Option<(char, char)>)]) -> String {
        let is_hex = self.digits && !self.beyond_hex;
        let place = |(class, found): &(char, Option<(char, char)>)| match (found, *class) {
            (Some((low, high)), _) if low == high => low.to_string(),
            (Some((low, high)), _) => format!("[{low}-{high}]"),
            (None, 'A') if is_hex => "[A-F]".to_owned(),
            (None, 'A') => "[A-Z]".to_owned(),
            (None, 'a') if is_hex => "[a-f]".to_owned(),
            (None, 'a') => "[a-z]".to_owned(),
            (None, '9') => "[0-9]".to_owned(),
            (None, c) => regex_syntax::escape(c.encode_utf8(&mut [0; 4])),
        };
        let places: Vec<String> = places.iter().map(place).collect();
        let mut out = String::new();
        for run in places.chunk_by(|a, b| a == b) {
            out.push_str(&run[0]);
            if run.len() > 1 && run[0].starts_with('[') {
                out.push_str(&format!("{{{}}}", run.len()));
            } else {
                (1..run.len()).for_each(|_| out.push_str(&run[0]));
            }
        }
        out
    }
}

impl Shape {
    /// The least and the greatest letter or digit of each place of the shape `text`, where they may be told: of many
    /// different strings, all digits, and letters unless none are to be copied.
    fn ranges(&self, text: &str, most_copied: usize) -> Vec<Option<(char, char)>> {
        let constant = text.chars().zip(&self.places).filter(|(class, (a, b))| is_own(*class) && a == b);
        let copies = constant.count() <= most_copied;
        let told = |class: char, (low, high): (char, char)| match low == high {
            _ if self.distinct < MANY || !is_own(class) || !low.is_ascii() || !high.is_ascii() => false,
            true => copies,
            false => most_copied > 0 || class == '9',
        };
        let range = |(class, found): (char, &(char, char))| told(class, *found).then_some(*found);
        text.chars().zip(&self.places).map(range).collect()
    }
}
