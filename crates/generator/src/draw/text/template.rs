//! Templates of unique strings: `"+91-{id:010}"`.

use crate::random::instruction_sets::widest;

/// A string that contains a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    /// The number is padded to this many digits with zeros; 0 means no padding.
    width: usize,
}

/// The size of a fast copy of a short record with its four length bytes: one vector register.
const COPY: usize = 32;

/// The most digits to pad a number to; a `u64` has at most 20.
const MAX_DIGITS: usize = 20;

impl Template {
    /// Parses a template. The error describes the problem.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (open, close) = match (text.find('{'), text.find('}')) {
            (Some(open), Some(close)) if open < close => (open, close),
            _ => return Err("a template of unique values needs {id} or {id:0WIDTH}".to_owned()),
        };
        let (prefix, hole, suffix) = (&text[..open], &text[open + 1..close], &text[close + 1..]);
        if suffix.contains(['{', '}']) || prefix.contains('}') {
            return Err("a template of unique values must have exactly one {id}".to_owned());
        }
        let width = match hole.strip_prefix("id") {
            Some("") => 0,
            Some(format) => match format.strip_prefix(":0").map(str::parse::<usize>) {
                Some(Ok(width)) if (1..=MAX_DIGITS).contains(&width) => width,
                _ => {
                    return Err(format!(
                        "{{{hole}}} is not {{id:0WIDTH}} with a width from 1 to {MAX_DIGITS}"
                    ));
                }
            },
            None => return Err(format!("{{{hole}}} is not {{id}} or {{id:0WIDTH}}")),
        };
        Ok(Template { prefix: prefix.into(), suffix: suffix.into(), width })
    }

    /// The largest id up to which strings sort like their numbers; `None` if the template does not pad.
    pub(crate) fn largest_ordered_id(&self) -> Option<u64> {
        match self.width {
            0 => None,
            w => Some(10u64.checked_pow(w as u32).map_or(u64::MAX, |p| p - 1)),
        }
    }

    /// The id of a string that the template rendered; `None` for other strings.
    pub(crate) fn id(&self, text: &[u8]) -> Option<u64> {
        let digits = text.strip_prefix(self.prefix.as_slice())?.strip_suffix(self.suffix.as_slice())?;
        let next = |id: u64, digit: &u8| match digit {
            b'0'..=b'9' => id.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
            _ => None,
        };
        digits.iter().try_fold(0, next)
    }

    /// Appends the string of `id`.
    pub(crate) fn render(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let mut digits = [b'0'; MAX_DIGITS];
        let mut at = MAX_DIGITS;
        let mut rest = id;
        while rest > 0 || at == MAX_DIGITS {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits[at.min(MAX_DIGITS - self.width)..]);
        out.extend_from_slice(&self.suffix);
    }

    /// Appends the strings of `ids` PLAIN-encoded, each after its length (little-endian, 4 bytes). Returns
    /// the total length of the strings.
    ///
    /// Neighbouring ids nearly always share all but their last four digits, so most strings are copies of the
    /// previous one with four digits replaced.
    pub(crate) fn render_plain(&self, ids: &[u64], out: &mut Vec<u8>) -> usize {
        const LOW: u64 = 10_000;
        let before = out.len();
        let mut record = Vec::with_capacity(COPY);
        let mut at = before;
        let mut next = 0;
        while let Some(&first) = ids.get(next) {
            record.clear();
            record.extend_from_slice(&[0; 4]);
            self.render(first, &mut record);
            let length = record.len();
            record[..4].copy_from_slice(&((length - 4) as u32).to_le_bytes());
            // The last four digits have a fixed position only in numbers of at least four digits.
            let run = if self.width < 4 {
                1
            } else {
                ids[next..].iter().take_while(|id| **id / LOW == first / LOW).count()
            };
            out.resize(at + run * length + COPY, 0);
            if length <= COPY {
                // A copy of fixed size; the next record overwrites the bytes after the end.
                let mut padded = [0; COPY];
                padded[..length].copy_from_slice(&record);
                let digits = length.saturating_sub(self.suffix.len() + 4);
                if run > 1 {
                    let records = &mut out[at..at + run * length + COPY];
                    stamp(&ids[next..next + run], &padded, digits, length, records);
                } else {
                    out[at..at + COPY].copy_from_slice(&padded);
                }
                at += run * length;
            } else {
                for &id in &ids[next..next + run] {
                    if run > 1 {
                        let digits = length - self.suffix.len() - 4;
                        record[digits..digits + 4].copy_from_slice(&DIGITS[(id % LOW) as usize]);
                    }
                    out[at..at + length].copy_from_slice(&record);
                    at += length;
                }
            }
            next += run;
        }
        out.truncate(at);
        out.len() - before - 4 * ids.len()
    }
}

widest! {
/// Writes one record for each of `ids`: a copy of `padded`, `length` bytes apart, with the last four digits
/// of the id at `digits`. The digits are written to the copy, not to `padded`: otherwise each load of
/// `padded` would wait for the preceding store into its middle.
fn stamp(ids: &[u64], padded: &[u8; COPY], digits: usize, length: usize, out: &mut [u8]) {
    let mut at = 0;
    for &id in ids {
        let record = &mut out[at..at + COPY];
        record.copy_from_slice(padded);
        record[digits..digits + 4].copy_from_slice(&DIGITS[(id % 10_000) as usize]);
        at += length;
    }
}
}

/// The numbers 0 to 9999 with four digits.
pub(crate) static DIGITS: [[u8; 4]; 10_000] = {
    let mut table = [[0; 4]; 10_000];
    let mut i = 0;
    while i < 10_000 {
        table[i] = [
            b'0' + (i / 1000 % 10) as u8,
            b'0' + (i / 100 % 10) as u8,
            b'0' + (i / 10 % 10) as u8,
            b'0' + (i % 10) as u8,
        ];
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_is_padded_and_wide_numbers_are_whole() {
        let render = |template: &str, id| {
            let mut out = Vec::new();
            Template::parse(template).unwrap().render(id, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(render("+91-{id:010}", 42), "+91-0000000042");
        assert_eq!(render("{id:02}", 12345), "12345");
        assert_eq!(render("a{id}b", 0), "a0b");
        assert_eq!(render("{id:020}", u64::MAX), "18446744073709551615");
    }

    #[test]
    fn a_wrong_template_is_refused_with_the_reason() {
        for bad in ["", "id", "{id", "}{", "{x}", "{id:3}", "{id:00}", "{id:021}", "{id}{id}", "{id}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn rendering_many_is_rendering_each(
            start in prop_oneof![0u64..100_000, any::<u64>().prop_map(|x| x >> 8)],
            steps in proptest::collection::vec(0u64..3000, 0..50),
            template in prop_oneof![
                Just("+91-{id:010}"), Just("{id}"), Just("{id:03}x"), Just("{id:04}"), Just("k{id:05}-é"),
                Just("a prefix that makes the record longer than {id:08} one copy")
            ],
        ) {
            let template = Template::parse(template).unwrap();
            let ids: Vec<u64> =
                steps.iter().scan(start, |id, step| { *id = id.wrapping_add(*step); Some(*id) }).collect();
            let mut many = Vec::new();
            let bytes = template.render_plain(&ids, &mut many);
            let (mut each, mut total) = (Vec::new(), 0);
            for &id in &ids {
                let mut one = Vec::new();
                template.render(id, &mut one);
                total += one.len();
                each.extend_from_slice(&(one.len() as u32).to_le_bytes());
                each.extend_from_slice(&one);
            }
            prop_assert_eq!(many, each);
            prop_assert_eq!(bytes, total);
        }
    }
}
