//! Strings that match patterns and do not repeat: codes, plates, keys of any form.
//!
//! The patterns have counts. Of as many rows as these sum up to, each pattern has its count, in an order that is
//! drawn. The k-th string of a pattern is the k-th of a permutation of all strings that match it, so the string of a row
//! is a function of its number.
//!
//! In the round of as many rows in which a pattern runs out, patterns take turns in place of a drawn order, so that each
//! has had its share of the rows after any of them.

use crate::draw::text::PADDING;
use crate::draw::text::pattern::Pattern;
use crate::error::Complaint;
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
    /// How many times the rows have all counts before a pattern runs out.
    whole_rounds: u64,
    longest: u64,
    /// The random stream of the order and of the strings.
    purpose: u64,
}

#[derive(Debug)]
struct Counted {
    /// The pattern as the spec has it.
    text: String,
    pattern: Pattern,
    count: u64,
    /// The sum of the counts before it.
    first: u64,
    /// The number of strings that match it.
    strings: u64,
}

/// The most places of strings to compare.
const MAX_COMPARED: u64 = 200_000_000;

/// The complaint about two patterns that match the same string, which would repeat.
fn shared_string(patterns: &[Counted]) -> Option<Complaint> {
    patterns.iter().enumerate().filter(|(_, of)| of.count > 0).find_map(|(i, of)| {
        let before = patterns[..i].iter().filter(|of| of.count > 0);
        let (other, shared) = before.filter_map(|a| Some((a, a.pattern.shared(&of.pattern)?))).next()?;
        let what = format!("the unique patterns {:?} and {:?} both match {shared:?}", other.text, of.text);
        Some((what, "write patterns that differ in a place or in their length".to_owned()))
    })
}

/// A pattern with fewer strings than rows need.
#[derive(Debug)]
pub(crate) struct TooFewStrings<'a> {
    /// The pattern as the spec has it.
    pub pattern: &'a str,
    pub strings: u64,
    /// The rows that need a string of it.
    pub rows: u64,
}

impl DistinctStrings {
    /// The patterns come with their texts and counts.
    pub(crate) fn new(patterns: Vec<(String, Pattern, u64)>, purpose: u64) -> Result<Self, Complaint> {
        let longest = patterns.iter().map(|(_, pattern, _)| pattern.longest()).max().unwrap_or(0);
        let (mut counted, mut sum, mut whole_rounds) = (Vec::new(), 0u64, u64::MAX);
        for (text, pattern, count) in patterns {
            let strings = pattern.strings().ok_or_else(|| {
                let what =
                    format!("the strings of the unique pattern {text:?} vary in length or have alternatives");
                (
                    what,
                    "write a pattern such as \"[A-Z]{2}-[0-9]{4}\" for each length and alternative"
                        .to_owned(),
                )
            })?;
            if count > strings {
                let what =
                    format!("the pattern {text:?} with {strings} strings cannot have {count} that differ");
                return Err((what, "lengthen the pattern, or lower its count".to_owned()));
            }
            whole_rounds = strings.checked_div(count).map_or(whole_rounds, |rounds| whole_rounds.min(rounds));
            counted.push(Counted { text, pattern, count, first: sum, strings });
            sum = sum.saturating_add(count);
        }
        let advice = "write how many rows have each pattern".to_owned();
        match sum {
            0 => Err(("no strings to draw".to_owned(), advice)),
            MAX_SUM.. => Err((format!("counts that sum up to {sum}, more than {MAX_SUM}"), advice)),
            _ if (counted.len() as u64).pow(2).saturating_mul(longest + 8) > MAX_COMPARED => {
                let what = format!("{} unique patterns of up to {longest} bytes", counted.len());
                Err((what, "write fewer or shorter ones, such as \"[A-Z]{2}\" for several".to_owned()))
            }
            sum => shared_string(&counted).map_or_else(
                || Ok(DistinctStrings { patterns: counted, sum, whole_rounds, longest, purpose }),
                Err,
            ),
        }
    }

    /// The most bytes of a string.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// The strings that it can draw before one repeats.
    pub(crate) fn least_rows(&self) -> u64 {
        let whole = self.whole_rows();
        // A pattern runs out within the next round.
        let (mut enough, mut too_many) = (whole, whole.saturating_add(self.sum));
        while too_many - enough > 1 {
            let rows = enough + (too_many - enough) / 2;
            match self.too_few_for(rows) {
                Some(_) => too_many = rows,
                None => enough = rows,
            }
        }
        enough
    }

    /// The rows of the whole rounds.
    fn whole_rows(&self) -> u64 {
        self.whole_rounds.saturating_mul(self.sum)
    }

    /// The first pattern whose strings do not suffice for `rows` rows.
    pub(crate) fn too_few_for(&self, rows: u64) -> Option<TooFewStrings<'_>> {
        let more = rows.checked_sub(self.whole_rows())?;
        self.turns(more).find_map(|(at, turns, _)| {
            let (of, needed) = (self.patterns.get(at)?, self.number(at, turns));
            let rows = u64::try_from(needed).unwrap_or(rows);
            let few = TooFewStrings { pattern: &of.text, strings: of.strings, rows };
            (rows > of.strings).then_some(few)
        })
    }

    /// The pattern of row `row` after the whole rounds, and the number of its string.
    fn in_turn(&self, row: u64) -> Option<(usize, u128)> {
        let (at, turns, _) = self.turns(row).find(|(_, _, is_next)| *is_next)?;
        Some((at, self.number(at, turns)))
    }

    /// The number of a pattern's string after the whole rounds and `turns` more.
    fn number(&self, at: usize, turns: u128) -> u128 {
        let count = self.patterns.get(at).map_or(0, |of| of.count);
        turns + u128::from(self.whole_rounds) * u128::from(count)
    }

    /// Each pattern's place, its number of the first `rows` rows after the whole rounds, and whether it also takes the
    /// next row, unless an earlier pattern does. The first pattern takes its share of the rows, the second its share
    /// of the remaining ones, and so on.
    fn turns(&self, rows: u64) -> impl Iterator<Item = (usize, u128, bool)> {
        let (mut rows, mut counts) = (u128::from(rows), u128::from(self.sum));
        let patterns = self.patterns.iter().enumerate().filter(|(_, of)| of.count > 0);
        patterns.map(move |(at, of)| {
            let turns = |rows: u128| rows * u128::from(of.count) / counts;
            let (had, is_next) = (turns(rows), turns(rows + 1) > turns(rows));
            (rows, counts) = (rows - had, counts - u128::from(of.count));
            (at, had, is_next)
        })
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
        let drawn = match row.checked_sub(self.strings.whole_rows()) {
            None => self.in_whole_rounds(row),
            Some(after) => self.strings.in_turn(after),
        };
        let Some((at, number)) = drawn else { return 0 };
        let (Some(of), Some(order)) = (self.strings.patterns.get(at), self.orders.get(at)) else { return 0 };
        // After the last string of a pattern its first one follows.
        of.pattern.write_numbered(order.place((number % u128::from(of.strings)) as u64), out)
    }

    /// The pattern of a row of the whole rounds, and the number of its string.
    fn in_whole_rounds(&self, row: u64) -> Option<(usize, u128)> {
        let (round, place) = (row / self.strings.sum, self.rows.place(row % self.strings.sum));
        let after = self.strings.patterns.partition_point(|of| of.first <= place);
        // Patterns without a count start where the next one does, so the last that starts here has one.
        let at = after.saturating_sub(1);
        let of = self.strings.patterns.get(at)?;
        Some((at, u128::from(place - of.first) + u128::from(round) * u128::from(of.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn strings(patterns: &[(&str, u64)]) -> DistinctStrings {
        let counted = |(text, n): &(&str, u64)| ((*text).to_owned(), Pattern::parse(text).unwrap(), *n);
        DistinctStrings::new(patterns.iter().map(counted).collect(), 5).unwrap()
    }

    fn drawn(patterns: &[(&str, u64)], rows: u64) -> BTreeSet<String> {
        let strings = strings(patterns);
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
    fn all_strings_of_a_pattern_come_before_one_repeats_whatever_the_counts() {
        for (patterns, rows) in [
            (&[("[0-9]{2}", 60)][..], 100),
            (&[("N[0-9]{2}", 45), ("M[0-9]{3}", 15)], 134),
            (&[("N[0-9]{2}", 45), ("none", 0), ("M[0-9]{2}", 45)], 200),
            (&[("N[0-9]{2}", 3), ("M[0-9]{3}", 1)], 134),
            (&[("N[0-9]{2}", 7), ("M[0-9]{3}", 5)], 173),
        ] {
            assert_eq!(strings(patterns).least_rows(), rows, "{patterns:?}");
            assert_eq!(drawn(patterns, rows).len() as u64, rows, "{patterns:?}");
            assert!(strings(patterns).too_few_for(rows).is_none());
            let few = strings(patterns);
            let few = few.too_few_for(10 * rows).unwrap();
            assert_eq!((few.pattern, few.strings), (patterns[0].0, 100));
        }
        let few = strings(&[("X[0-9]{4}", 3), ("Y[0-9]{5}", 1)]);
        let few = few.too_few_for(20_000).unwrap();
        assert_eq!((few.strings, few.rows), (10_000, 15_000));
    }

    #[test]
    fn a_repeated_group_of_one_length_has_a_number_of_strings() {
        assert_eq!(drawn(&[("([A-C][0-2]){2}", 81)], 81).len(), 81);
        assert_eq!(drawn(&[("x(?:(?:ab[01]){2}-){2}", 16)], 16).len(), 16);
        // 14 letters have more combinations than there are numbers, so 13 of them are counted.
        assert_eq!(Pattern::parse("[a-z]{14}").unwrap().strings(), Some(26u64.pow(13)));
    }

    #[test]
    fn patterns_that_share_a_string_are_refused_by_its_name() {
        let shared = |a: &str, b: &str| {
            let counted = |text: &str| (text.to_owned(), Pattern::parse(text).unwrap(), 1);
            DistinctStrings::new(vec![counted(a), counted("-"), counted(b)], 5).err().map(|(what, _)| what)
        };
        for (a, b, text) in [
            ("[A-C][0-9]", "[C-E][5-7]", "C5"),
            ("[0-9]{2}", r"\d\d", "00"),
            ("([A-B]1){2}", "A1[B-Z]1", "A1B1"),
            ("[à-é]x", "[è-ë].", "èx"),
            ("N/A", "[A-Z]/[A-Z]", "N/A"),
        ] {
            let what = format!("the unique patterns {a:?} and {b:?} both match {text:?}");
            assert_eq!(shared(a, b).as_deref(), Some(what.as_str()));
        }
        for (a, b) in [
            ("[A-C]", "[D-E]"),
            ("[A-C]", "[A-C]{2}"),
            ("[à-é]", "[ê-ë]"),
            ("é", "[a-z]"),
            ("A[0-9]", "[B-Z][0-9]"),
        ] {
            assert_eq!(shared(a, b), None, "{a} {b}");
        }
    }

    #[test]
    fn patterns_that_run_out_or_vary_in_length_are_refused() {
        let refused = |text: &str, n| {
            let pattern = (text.to_owned(), Pattern::parse(text).unwrap(), n);
            DistinctStrings::new(vec![pattern], 5).expect_err("it is refused").0
        };
        assert!(refused("[0-9]", 11).contains("10 strings"));
        assert!(refused("[0-9]*", 1).contains("vary in length"));
        assert!(refused("a|b", 0).contains("alternatives") || refused("(a|bc)", 0).contains("alternatives"));
        assert!(refused("[0-9]", 0).contains("no strings"));
    }
}
