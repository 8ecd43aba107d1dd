//! Words and e-mail addresses.

use std::sync::LazyLock;

use crate::draw::text::person_name;
use crate::random::rng::{Sequence, Stream, scale64};
use crate::random::weights::Weights;

/// The words, from the most to the least frequent.
static WORDS: LazyLock<(Vec<&'static str>, Weights)> = LazyLock::new(|| {
    let words: Vec<&str> = include_str!("../../../datasets/words.txt").lines().collect();
    // Zipf's law of word frequencies, exponent 1.
    let weights: Vec<f64> = (1..=words.len()).map(|k| 1.0 / k as f64).collect();
    // Positive weights are always a valid distribution.
    let table = Weights::new(&weights).unwrap_or_else(|_| unreachable!("the word list is not empty"));
    (words, table)
});

/// The domains of e-mail addresses, all reserved for examples.
const DOMAINS: [&str; 8] = [
    "example.com",
    "example.org",
    "example.net",
    "mail.example.com",
    "post.example.org",
    "inbox.example.net",
    "corp.example.com",
    "uni.example.org",
];

/// Appends from `least` to `most` words.
pub(crate) fn words(draw: u64, least: u32, most: u32, out: &mut Vec<u8>) {
    let (words, table) = &*WORDS;
    let mut random = Sequence::new(draw);
    let n = u64::from(least) + scale64(random.next(), u64::from(most - least) + 1);
    for i in 0..n {
        if i > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(words[table.pick(random.next() as u32) as usize].as_bytes());
    }
}

/// Appends words of `length` characters in total; the last one is cut.
pub(crate) fn of_length(random: &mut Sequence, length: usize, out: &mut Vec<u8>) {
    let (words, table) = &*WORDS;
    let end = out.len() + length;
    while out.len() < end {
        let word = words[table.pick(random.next() as u32) as usize].as_bytes();
        let left = end - out.len();
        out.extend_from_slice(&word[..word.len().min(left)]);
        // A space cannot be the last character.
        match end - out.len() {
            0 => {}
            1 => out.push(b'.'),
            _ => out.push(b' '),
        }
    }
}

/// The average length in bytes of a word drawn by [`words`].
pub(crate) fn mean_word() -> f64 {
    let (words, table) = &*WORDS;
    words.iter().zip(table.probabilities()).map(|(w, p)| w.len() as f64 * p).sum()
}

/// The length in bytes of the longest word.
pub(crate) fn longest_word() -> u64 {
    WORDS.0.iter().map(|word| word.len() as u64).max().unwrap_or(0)
}

/// Appends an address: a name, a number below 10,000 and a domain.
pub(crate) fn email(draw: u64, out: &mut Vec<u8>) {
    let mut random = Sequence::new(draw);
    let mut code = [0];
    person_name::draw(Stream::of(random.next()), &mut code);
    let start = out.len();
    person_name::render(code[0], out);
    for byte in &mut out[start..] {
        *byte = if *byte == b' ' { b'.' } else { byte.to_ascii_lowercase() };
    }
    let rest = random.next();
    out.extend_from_slice((rest % 10_000).to_string().as_bytes());
    out.push(b'@');
    out.extend_from_slice(DOMAINS[(rest >> 61) as usize].as_bytes());
}

/// A UUID of version 4 (RFC 9562, 5.4).
pub(crate) fn uuid(draw: u64) -> [u8; 16] {
    let mut random = Sequence::new(draw);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next().to_le_bytes());
    bytes[8..].copy_from_slice(&random.next().to_le_bytes());
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

/// Appends a UUID as text.
pub(crate) fn uuid_text(uuid: [u8; 16], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in uuid.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(make: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        make(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_number_of_words_is_within_the_bounds() {
        for draw in 0..200 {
            let n = text(|out| words(draw, 2, 5, out)).split(' ').count();
            assert!((2..=5).contains(&n));
        }
        assert_eq!(text(|out| words(1, 0, 0, out)), "");
    }

    #[test]
    fn an_address_has_a_name_and_a_reserved_domain() {
        let address = text(|out| email(7, out));
        let (name, domain) = address.split_once('@').unwrap();
        assert!(name.contains('.') && name.is_ascii(), "{address}");
        assert!(domain.contains("example."), "{address}");
    }

    #[test]
    fn a_uuid_contains_its_version_and_variant() {
        let text = text(|out| uuid_text(uuid(3), out));
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]));
    }
}
