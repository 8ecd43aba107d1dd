//! Checksums of files: 128 bits that show whether a file has changed.
//!
//! The checksum of a file is the XXH3-128 of its bytes, as `xxhsum -H128` prints it. The checksum of a
//! dataset is the sum, modulo 2^128, of the XXH3-128 of each file's name and checksum. It does not depend on
//! the order in which files are finished, and checksums of all parts of a dataset add up to the checksum of the
//! whole.
//!
//! The content sum of rows, which does not depend on files, is computed by the loader and only stored here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A checksum of bytes, or a content sum of rows. Displayed and serialised as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checksum(pub u128);

impl Checksum {
    /// The checksum of a dataset, from the names and checksums of its files.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, Checksum)>) -> Self {
        let each = files.into_iter().map(|(name, sum)| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.push(0);
            bytes.extend_from_slice(&sum.0.to_be_bytes());
            xxh3_128(&bytes)
        });
        Checksum(each.fold(0, u128::wrapping_add))
    }
}

/// The checksum of bytes that come piece by piece.
pub struct PieceSum(Box<Xxh3>);

impl Default for PieceSum {
    fn default() -> Self {
        PieceSum(Box::new(Xxh3::new()))
    }
}

impl PieceSum {
    /// Adds the next bytes.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The checksum of the bytes so far.
    pub fn sum(&self) -> Checksum {
        Checksum(self.0.digest128())
    }
}

impl fmt::Debug for PieceSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PieceSum").field(&self.sum()).finish()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Checksum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match u128::from_str_radix(text, 16) {
            Ok(sum) if text.len() == 32 => Ok(Checksum(sum)),
            _ => Err(format!("{text:?} is not a content sum: use 32 hexadecimal digits")),
        }
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_dataset_is_the_sum_of_its_parts_in_any_order() {
        let (a, b, c) = (("a", Checksum(1)), ("b", Checksum(2)), ("c", Checksum(3)));
        let whole = Checksum::of_files([a, b, c]);
        assert_eq!(whole, Checksum::of_files([c, a, b]));
        let parts = Checksum::of_files([a]).0.wrapping_add(Checksum::of_files([b, c]).0);
        assert_eq!(whole.0, parts);
        assert_ne!(whole, Checksum::of_files([("a", Checksum(2)), ("b", Checksum(1)), c]));
    }

    #[test]
    fn a_checksum_is_parsed_from_its_display() {
        let sum = Checksum(0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(sum.to_string(), "99aa06d3014798d86001c324468d497f");
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert_eq!(Checksum(xxh3_128(b"")).to_string(), sum.to_string());
        assert!("12".parse::<Checksum>().is_err());
    }
}
