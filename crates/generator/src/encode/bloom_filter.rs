//! Split block Bloom filters, which show that a column chunk certainly does not contain a value.
//!
//! (Parquet format, `BloomFilter.md`: blocks of eight 32-bit words; the upper half of a value's
//! xxHash64 picks the block, the lower half one bit in each word.)

use xxhash_rust::xxh64::xxh64;

use crate::encode::thrift::structure;
use crate::encode::values::PhysicalValues;
use crate::random::elementary::{ln, pow};

/// The bytes of a block.
const BLOCK: usize = 32;

/// The format's constants that spread a value's bits over the words of a block.
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The largest filter: 128 MiB, the limit of other writers and readers.
const MAX_BYTES: usize = 128 << 20;

/// The default share of false positives.
pub(crate) const BLOOM_FALSE_POSITIVES: f64 = 0.01;

/// The hashes of a column chunk's values. The size of the filter depends on the number of distinct values, so
/// it is made at the end.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    hashes: Vec<u64>,
    /// At this number of hashes, duplicates are removed.
    most: usize,
}

impl Hashes {
    pub(crate) fn clear(&mut self) {
        self.hashes.clear();
        self.most = 0;
    }

    pub(crate) fn add(&mut self, values: PhysicalValues<'_>) {
        values.each(|value| self.hashes.push(xxh64(value, 0)));
        // From time to time, so a column with few distinct values does not keep one hash per row.
        if self.hashes.len() > self.most {
            self.distinct();
            self.most = (2 * self.hashes.len()).max(1 << 16);
        }
    }

    fn distinct(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
    }

    /// Appends the header and the filter, with this share of false positives.
    pub(crate) fn filter(&mut self, false_positives: f64, out: &mut Vec<u8>) {
        self.distinct();
        let bytes = filter_bytes(self.hashes.len(), false_positives);
        structure(out, |w| {
            w.i32(1, bytes as i32);
            // Algorithm BLOCK, hash XXHASH, compression UNCOMPRESSED.
            for id in 2..=4 {
                w.structure(id, |w| w.structure(1, |_| {}));
            }
        });
        let mut words = vec![[0u32; 8]; bytes / BLOCK];
        for hash in &self.hashes {
            let block = (u128::from(hash >> 32) * words.len() as u128) >> 32;
            for (word, salt) in words[block as usize].iter_mut().zip(SALT) {
                *word |= 1 << ((*hash as u32).wrapping_mul(salt) >> 27);
            }
        }
        out.extend(words.iter().flatten().flat_map(|word| word.to_le_bytes()));
    }
}

/// The bytes of a filter for `distinct` values: a power of two.
fn filter_bytes(distinct: usize, false_positives: f64) -> usize {
    let bits = -8.0 * distinct as f64 / ln(1.0 - pow(false_positives, 1.0 / 8.0));
    ((bits / 8.0).ceil() as usize).clamp(BLOCK, MAX_BYTES).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_grows_with_more_values_and_fewer_false_positives() {
        assert_eq!(filter_bytes(0, 0.01), 32);
        assert!(filter_bytes(10_000, 0.01) < filter_bytes(10_000, 0.0001));
        assert_eq!(filter_bytes(usize::MAX >> 12, 0.0001), MAX_BYTES);
        // From the table in the format: 10 bits a value, 1.2 % false positives.
        assert_eq!(filter_bytes(100_000, 0.012), 131_072);
    }

    #[test]
    fn equal_values_make_the_same_filter_as_one_value() {
        let (mut one, mut many) = (Vec::new(), Vec::new());
        let mut hashes = Hashes::default();
        hashes.add(PhysicalValues::Int32(&[7]));
        hashes.filter(0.01, &mut one);
        hashes.clear();
        for _ in 0..100 {
            hashes.add(PhysicalValues::Int32(&[7; 5000]));
        }
        assert!(hashes.hashes.len() <= (1 << 16) + 5000);
        hashes.filter(0.01, &mut many);
        assert_eq!(one, many);
        let ones: u32 = one[one.len() - 32..].iter().map(|b| b.count_ones()).sum();
        assert_eq!(ones, 8);
    }
}
