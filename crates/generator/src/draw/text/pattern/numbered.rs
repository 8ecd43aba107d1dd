//! The strings of a pattern by their numbers, for values that do not repeat.
//!
//! All strings have the same number of places, and each place has its own letters. So each number belongs to one string,
//! and two patterns share a string if they share a letter in each place.

use crate::draw::text::pattern::{Choices, Part, Pattern, write};
use crate::random::rng::Sequence;

/// The most strings that have a number.
const MAX_NUMBERED: u64 = 1 << 62;

impl Pattern {
    /// The number of strings that it matches and [`write_numbered`](Self::write_numbered) tells apart, at most
    /// [`MAX_NUMBERED`]; `None` if their lengths vary, or alternatives may be the same.
    pub(crate) fn strings(&self) -> Option<u64> {
        strings(&self.parts, 1)
    }

    /// Writes string `number` of [`strings`](Self::strings), and returns its length. Patterns with more of them have
    /// the rest of the letters by the number, too.
    pub(crate) fn write_numbered(&self, number: u64, out: &mut [u8]) -> usize {
        let mut numbered = Numbered { left: number, room: MAX_NUMBERED, random: Sequence::new(number) };
        write(&self.parts, &mut numbered, out)
    }

    /// A string that both patterns match. Both have a number of [`strings`](Self::strings).
    pub(crate) fn shared(&self, other: &Pattern) -> Option<String> {
        let (mut own, mut others) = (places(&self.parts), places(&other.parts));
        let mut shared = String::new();
        loop {
            match (own.next(), others.next()) {
                (Some(a), Some(b)) => shared.push(a.shared(b)?),
                (None, None) => return Some(shared),
                _ => return None,
            }
        }
    }
}

/// `before` times the number of strings of `parts`, as long as that is at most [`MAX_NUMBERED`].
fn strings(parts: &[Part], before: u64) -> Option<u64> {
    let times = |all: u64, letters: u64| {
        all.checked_mul(letters).filter(|product| *product <= MAX_NUMBERED).unwrap_or(all)
    };
    parts.iter().try_fold(before, |all, part| match part {
        Part::Text(_) => Some(all),
        Part::Bytes(letters, (n, most)) if n == most => {
            Some((0..*n).fold(all, |all, _| times(all, letters.len() as u64)))
        }
        Part::Letters(_, count, (n, most)) if n == most => {
            Some((0..*n).fold(all, |all, _| times(all, (*count).into())))
        }
        Part::Group(parts, (n, most)) if n == most => (0..*n).try_fold(all, |all, _| strings(parts, all)),
        _ => None,
    })
}

/// The letters that can be in one place of a string.
#[derive(Clone, Copy)]
enum Place<'a> {
    Letter(char),
    Bytes(&'a [u8]),
    Ranges(&'a [(u32, char)], u32),
}

impl Place<'_> {
    /// A letter that both places can have: the first one of a range of either.
    fn shared(self, other: Place<'_>) -> Option<char> {
        self.firsts().find(|c| other.has(*c)).or_else(|| other.firsts().find(|c| self.has(*c)))
    }

    fn firsts(&self) -> impl Iterator<Item = char> {
        let (letter, bytes, ranges) = match *self {
            Place::Letter(letter) => (Some(letter), &[][..], &[][..]),
            Place::Bytes(bytes) => (None, bytes, &[][..]),
            Place::Ranges(ranges, _) => (None, &[][..], ranges),
        };
        let bytes = bytes.iter().map(|byte| char::from(*byte));
        letter.into_iter().chain(bytes).chain(ranges.iter().map(|(_, first)| *first))
    }

    fn has(&self, c: char) -> bool {
        match self {
            Place::Letter(letter) => *letter == c,
            Place::Bytes(bytes) => c.is_ascii() && bytes.contains(&(c as u8)),
            Place::Ranges(ranges, count) => {
                let after = ranges.partition_point(|(_, first)| *first <= c);
                let end = ranges.get(after).map_or(*count, |(before, _)| *before);
                let range = after.checked_sub(1).and_then(|at| ranges.get(at));
                range.is_some_and(|(before, first)| c as u32 - (*first as u32) < end - before)
            }
        }
    }
}

/// The places of the strings of `parts`, which have a number of [`strings`].
fn places(parts: &[Part]) -> Box<dyn Iterator<Item = Place<'_>> + '_> {
    Box::new(parts.iter().flat_map(|part| -> Box<dyn Iterator<Item = Place<'_>> + '_> {
        match part {
            Part::Text(text) => {
                let bytes = text.pieces.as_flattened().get(..text.length).unwrap_or_default();
                Box::new(
                    String::from_utf8_lossy(bytes).chars().map(Place::Letter).collect::<Vec<_>>().into_iter(),
                )
            }
            Part::Bytes(letters, (n, _)) => Box::new((0..*n).map(|_| Place::Bytes(letters))),
            Part::Letters(ranges, count, (n, _)) => Box::new((0..*n).map(|_| Place::Ranges(ranges, *count))),
            Part::Group(parts, (n, _)) => Box::new((0..*n).flat_map(|_| places(parts))),
            Part::OneOf(..) | Part::Weighted(..) => Box::new(std::iter::empty()),
        }
    }))
}

/// The letters of a string by its number, and by chance once the number has chosen all that it can.
struct Numbered {
    left: u64,
    room: u64,
    random: Sequence,
}

impl Choices for Numbered {
    fn draw(&mut self) -> u64 {
        self.random.next()
    }

    fn below(&mut self, n: u64) -> u64 {
        if self.room < n {
            return self.random.below(n);
        }
        self.room /= n;
        let chosen = self.left % n;
        self.left /= n;
        chosen
    }

    fn spell(&mut self, letters: &[u8], length: usize, _: bool, out: &mut [u8]) {
        out[..length].fill_with(|| letters[self.below(letters.len() as u64) as usize]);
    }
}
