//! Strings that match patterns and do not repeat: codes, plates, keys of any form.
//!
//! The patterns have counts. Of as many rows as these sum up to, each pattern has its count, in an order that is
//! drawn. The k-th string of a pattern is the k-th of a permutation of all strings that match it, so the string of a row
//! is a function of its number.

use crate::draw::text::PADDING;
use crate::draw::text::pattern::Pattern;
use crate::random::permutation::Permutation;
use crate::random::rng::Stream;

/// The most patterns and the greatest sum of their counts.
const MAX_SUM: u64 = 1 << 40;

/// Patterns with their counts.
#[derive(Debug)]
pub(crate) struct DistinctStrings {
    patterns: Vec<Counted>,
    /// The sum of all counts.
    sum: u64,
    longest: u64,
    /// The random stream of the order and of the strings.
    purpose: u64,
}

#[derive(Debug)]
struct Counted {
    pattern: Pattern,
    count: u64,
    /// The sum of the counts before it.
    first: u64,
    /// The number of strings that match it.
    strings: u64,
}

impl DistinctStrings {
    /// The error describes the problem.
    pub(crate) fn new(patterns: Vec<(Pattern, u64)>, purpose: u64) -> Result<Self, String> {
        let longest = patterns.iter().map(|(pattern, _)| pattern.longest()).max().unwrap_or(0);
        let (mut counted, mut sum) = (Vec::new(), 0u64);
        for (pattern, count) in patterns {
            let strings = pattern
                .strings()
                .ok_or("patterns of unique strings have no alternatives or repetitions of varying length")?;
            if count > strings {
                return Err(format!("a pattern with {strings} strings cannot have {count} that differ"));
            }
            counted.push(Counted { pattern, count, first: sum, strings });
            sum = sum.saturating_add(count);
        }
        match sum {
            0 => Err("no strings to draw".to_owned()),
            MAX_SUM.. => Err(format!("counts that sum up to {sum}, more than {MAX_SUM}")),
            sum => Ok(DistinctStrings { patterns: counted, sum, longest, purpose }),
        }
    }

    /// The most bytes of a string.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// The strings that it can draw before one repeats.
    pub(crate) fn least_rows(&self) -> u64 {
        let rounds = self.patterns.iter().filter(|of| of.count > 0).map(|of| of.strings / of.count).min();
        rounds.unwrap_or(0).saturating_mul(self.sum)
    }

    /// What writes the strings of one seed.
    pub(crate) fn of_seed(&self, seed: u64) -> StringsOfSeed<'_> {
        let stream = Stream::new(seed, self.purpose, 0);
        let orders = self.patterns.iter().enumerate();
        StringsOfSeed {
            strings: self,
            rows: Permutation::new(self.sum, stream.draw(0)),
            orders: orders.map(|(i, of)| Permutation::new(of.strings, stream.draw(i as u64 + 1))).collect(),
        }
    }
}

/// The strings of one seed.
pub(crate) struct StringsOfSeed<'a> {
    strings: &'a DistinctStrings,
    rows: Permutation,
    orders: Vec<Permutation>,
}

impl StringsOfSeed<'_> {
    /// Writes the string of a row and returns its length. `out` has room for the longest one and the padding.
    pub(crate) fn write(&self, row: u64, out: &mut [u8]) -> usize {
        debug_assert!(out.len() >= self.strings.longest as usize + PADDING);
        let (round, place) = (row / self.strings.sum, self.rows.place(row % self.strings.sum));
        let after = self.strings.patterns.partition_point(|of| of.first <= place);
        // Patterns without a count start where the next one does, so the last that starts here has one.
        let at = after.saturating_sub(1);
        let (Some(of), Some(order)) = (self.strings.patterns.get(at), self.orders.get(at)) else { return 0 };
        // After the last string of a pattern its first one follows.
        let number = u128::from(place - of.first) + u128::from(round) * u128::from(of.count);
        of.pattern.write_numbered(order.place((number % u128::from(of.strings)) as u64), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn drawn(patterns: &[(&str, u64)], rows: u64) -> BTreeSet<String> {
        let patterns = patterns.iter().map(|(text, n)| (Pattern::parse(text).unwrap(), *n)).collect();
        let strings = DistinctStrings::new(patterns, 5).unwrap();
        let of_seed = strings.of_seed(42);
        let text = |row| {
            let mut out = vec![0; strings.longest() as usize + PADDING];
            let length = of_seed.write(row, &mut out);
            String::from_utf8(out[..length].to_vec()).unwrap()
        };
        (0..rows).map(text).collect()
    }

    #[test]
    fn no_string_repeats_until_all_were_drawn() {
        assert_eq!(drawn(&[("[A-Z][0-9]", 260)], 260).len(), 260);
        assert_eq!(drawn(&[("[A-Z][0-9]", 13)], 260).len(), 260);
        assert_eq!(drawn(&[("[A-Z][0-9]", 13)], 300).len(), 260);
        assert_eq!(drawn(&[("[é-ë]", 3)], 3), ["é", "ê", "ë"].map(str::to_owned).into());
        let mixed = drawn(&[("N[0-9]{3}", 750), ("none", 0), ("[A-Z]{2}", 250)], 1000);
        assert_eq!(mixed.iter().filter(|text| text.starts_with('N') && text.len() == 4).count(), 750);
        assert_eq!((mixed.len(), mixed.iter().filter(|text| text.len() == 2).count()), (1000, 250));
        let long = drawn(&[("[a-z0-9]{40}", 5000)], 5000);
        let firsts: BTreeSet<&str> = long.iter().map(|text| &text[39..]).collect();
        assert_eq!((long.len(), firsts.len()), (5000, 36));
    }

    #[test]
    fn patterns_that_run_out_or_vary_in_length_are_refused() {
        let refused = |text: &str, n| {
            DistinctStrings::new(vec![(Pattern::parse(text).unwrap(), n)], 5).expect_err("it is refused")
        };
        assert!(refused("[0-9]", 11).contains("10 strings"));
        assert!(refused("[0-9]*", 1).contains("alternatives or repetitions"));
        assert!(refused("a|b", 0).contains("alternatives") || refused("(a|bc)", 0).contains("alternatives"));
        assert!(refused("[0-9]", 0).contains("no strings"));
    }
}
