//! Strings that match a regular expression.

use rand::distr::Distribution as _;
use rand_regex::Regex;

use crate::random::rng::Sequence;

/// The most repetitions drawn for `*` and `+`.
const MOST_REPEATS: u32 = 8;

/// The longest pattern, in bytes.
const LONGEST: usize = 4096;

/// A regular expression to draw from.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Box<Regex>);

impl Pattern {
    /// Compiles a pattern. The error describes what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("a pattern of {} bytes, more than {LONGEST}", text.len()));
        }
        let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(true).build();
        let regex = match parser.parse(text) {
            Ok(parsed) => Regex::with_hir(parsed, MOST_REPEATS).map_err(|e| e.to_string()),
            // Text outside of ASCII needs Unicode classes.
            Err(_) => Regex::compile(text, MOST_REPEATS).map_err(|e| e.to_string()),
        };
        let regex = regex.map_err(|reason| {
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("{text:?} is not a valid pattern: {reason}")
        })?;
        Ok(Pattern(Box::new(regex)))
    }

    /// Appends the string for a random `draw`.
    pub(crate) fn render(&self, draw: u64, out: &mut Vec<u8>) {
        let made: Vec<u8> = self.0.sample(&mut Sequence::new(draw));
        out.extend_from_slice(&made);
    }
}
