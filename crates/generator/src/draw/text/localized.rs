//! Names, addresses, companies, jobs, telephone numbers and phrases of a locale, put together from word lists.
//!
//! A value is a form, such as "first name, space, last name", whose lists are drawn from independently, all of
//! their words with equal probability. The lists come from the crate `fake` (feature `locales`).

#[cfg(feature = "locales")]
mod lists;

use crate::draw::choice::of_texts;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::Result;
use crate::random::rng::{Sequence, scale64};
use crate::spec_file::toml_reader::{SpecNode, listed};

/// The kinds of values, by their names in a spec.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    "first_name last_name full_name street city postcode state country company job phone phrase".split(' ')
}

/// The locale of names without parameters.
const DEFAULT: &str = "en_US";

/// A part of a form.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "locales"), allow(dead_code, reason = "only that feature has lists"))]
pub(crate) enum Part {
    /// One of some words.
    Word(Vec<&'static str>),
    Literal(&'static str),
    /// `#` is a digit, `^` a digit above 0, `$` a capital letter; every other character is itself.
    Digits(&'static str),
}

/// Values of one of several forms, with equal probability.
#[derive(Debug)]
pub(crate) struct Localized {
    forms: Vec<Vec<Part>>,
    name: &'static str,
}

impl Localized {
    /// Its name in a spec.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The bytes of the longest value.
    pub(crate) fn longest(&self) -> u64 {
        let of_part = |part: &Part| match part {
            Part::Word(words) => words.iter().map(|word| word.len()).max().unwrap_or(0),
            Part::Literal(text) | Part::Digits(text) => text.len(),
        };
        let of_form = |form: &Vec<Part>| form.iter().map(of_part).sum::<usize>();
        self.forms.iter().map(of_form).max().unwrap_or(0) as u64
    }

    /// Appends the value of a random `draw`.
    pub(crate) fn write(&self, draw: u64, out: &mut Vec<u8>) {
        let mut random = Sequence::new(draw);
        let mut below = |n: usize| scale64(random.next(), n.max(1) as u64) as usize;
        for part in self.forms.get(below(self.forms.len())).into_iter().flatten() {
            match part {
                Part::Word(words) => {
                    out.extend_from_slice(
                        words.get(below(words.len())).copied().unwrap_or_default().as_bytes(),
                    );
                }
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Digits(form) => {
                    let mut character = [0; 4];
                    for c in form.chars() {
                        let c = match c {
                            '#' => char::from(b'0' + below(10) as u8),
                            '^' => char::from(b'1' + below(9) as u8),
                            '$' => char::from(b'A' + below(26) as u8),
                            other => other,
                        };
                        out.extend_from_slice(c.encode_utf8(&mut character).as_bytes());
                    }
                }
            }
        }
    }
}

/// Reads `"city"` or `{ city = { locale = "de_DE" } }`.
pub(crate) fn read(
    name: &str,
    parameters: Option<SpecNode<'_>>,
    node: SpecNode<'_>,
    around: &Surroundings<'_>,
) -> Result<ValueSpec> {
    let name = kinds().find(|known| *known == name).unwrap_or_default();
    let table = parameters.map(|parameters| parameters.table(name, &["locale"])).transpose()?;
    let given = table.and_then(|table| table.get("locale"));
    let locale = given.map_or(Ok(DEFAULT), |given| {
        let advice = || format!("use one of {}", locales().join(", "));
        given.string().ok_or_else(|| given.wrong("locale", advice()))
    })?;
    let forms = forms(name, locale).map_err(|complaint| given.unwrap_or(node).complain(complaint))?;
    match &forms[..] {
        // Values of a single list are stored with a dictionary.
        [form] if matches!(form[..], [Part::Word(_)]) => {
            let words = form.iter().flat_map(|part| match part {
                Part::Word(words) => words.clone(),
                _ => Vec::new(),
            });
            of_texts(around.kind, words, node)
        }
        _ => Ok(ValueSpec::Localized(Localized { forms, name })),
    }
}

fn locales() -> Vec<&'static str> {
    #[cfg(feature = "locales")]
    return lists::LOCALES.iter().map(|(name, _)| *name).collect();
    #[cfg(not(feature = "locales"))]
    return vec![DEFAULT];
}

#[cfg(feature = "locales")]
fn forms(name: &str, locale: &str) -> Result<Vec<Vec<Part>>, (String, String)> {
    let Some((_, of)) = lists::LOCALES.iter().find(|(known, _)| *known == locale) else {
        let names = locales();
        return Err((format!("unknown locale {locale:?}"), format!("use one of {}", names.join(", "))));
    };
    of(name).ok_or_else(|| {
        let has = |(_, of): &&lists::Locale| of(name).is_some();
        let others: Vec<&str> = lists::LOCALES.iter().filter(has).map(|(name, _)| *name).collect();
        (format!("no {name} of the locale {locale}"), format!("use one of {}", listed(&others)))
    })
}

#[cfg(not(feature = "locales"))]
fn forms(name: &str, _: &str) -> Result<Vec<Vec<Part>>, (String, String)> {
    let advice = "build with the feature `locales`, or use `person_name`, `words` or `choice`";
    let _ = listed::<&str>;
    Err((format!("this build has no word lists for {name}"), advice.to_owned()))
}

/// `text` in ASCII letters and digits, small, with single points for everything between them: as it begins an e-mail address.
pub(crate) fn slug(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    let mut pending = false;
    for c in ascii(text).chars() {
        match c.is_ascii_alphanumeric() {
            true => {
                if pending && out.len() > start {
                    out.push(b'.');
                }
                pending = false;
                out.push(c.to_ascii_lowercase() as u8);
            }
            // As in "O'Neil", which is one word.
            false => pending |= c != '\'',
        }
    }
}

#[cfg(feature = "locales")]
fn ascii(text: &str) -> String {
    deunicode::deunicode(text)
}

/// Not called: the parser of formulas refuses `slug` without the feature.
#[cfg(not(feature = "locales"))]
fn ascii(text: &str) -> &str {
    text
}

#[cfg(all(test, feature = "locales"))]
mod tests;
