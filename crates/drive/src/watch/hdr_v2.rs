//! A histogram in HdrHistogram's format "V2", compressed and in Base64, as its interval logs have it.
//!
//! The crate's own writer brings a second implementation of deflate; this one uses the implementation that reads
//! Parquet.

use std::io::Write;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;

/// First words of a V2 histogram and of a compressed one.
const COOKIE: u32 = 0x1c84_9303 | 0x10;
const COMPRESSED: u32 = 0x1c84_9304 | 0x10;

/// The histogram as a text of an interval log.
pub(crate) fn text(histogram: &Histogram<u64>) -> std::io::Result<String> {
    let plain = plain(histogram);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&plain)?;
    let body = encoder.finish()?;
    let mut bytes = COMPRESSED.to_be_bytes().to_vec();
    // A histogram of three digits and an hour has 24,000 counts, at most 9 bytes each.
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// The header, and the counts: positive numbers are counts, a negative one is a run of zeros.
fn plain(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut counts = Vec::new();
    let mut next = 0u64;
    for bucket in histogram.iter_recorded() {
        let index = index(bucket.value_iterated_to(), histogram.sigfig());
        let zeros = index.saturating_sub(next);
        if zeros > 0 {
            push(&mut counts, -(zeros as i64));
        }
        push(&mut counts, bucket.count_at_value().min(i64::MAX as u64) as i64);
        next = index + 1;
    }
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    bytes.extend((counts.len() as u32).to_be_bytes());
    // Values are not shifted.
    bytes.extend(0u32.to_be_bytes());
    bytes.extend(u32::from(histogram.sigfig()).to_be_bytes());
    bytes.extend(histogram.low().to_be_bytes());
    bytes.extend(histogram.high().to_be_bytes());
    bytes.extend(1f64.to_be_bytes());
    bytes.extend(counts);
    bytes
}

/// The place of a value's count, for histograms whose least value is 1.
fn index(value: u64, digits: u8) -> u64 {
    // Each value up to twice the precision has a separate count; from there on, the width of a bucket doubles.
    let single = 2 * 10u64.pow(u32::from(digits));
    let half = single.next_power_of_two().trailing_zeros() - 1;
    let sub_buckets = 1u64 << (half + 1);
    let bucket = (64 - (value | (sub_buckets - 1)).leading_zeros()) - (half + 1);
    ((u64::from(bucket) + 1) << half) + (value >> bucket) - (sub_buckets >> 1)
}

/// Appends a number by zigzag and in 7 bits a byte, the ninth byte with 8.
fn push(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_value_is_that_of_the_format() {
        // With three digits, 2,048 values have separate counts; the next 1,024 counts are two wide.
        for (value, place) in
            [(0, 0), (1, 1), (2047, 2047), (2048, 2048), (2049, 2048), (2050, 2049), (4096, 3072)]
        {
            assert_eq!(index(value, 3), place, "{value}");
        }
    }

    #[test]
    fn numbers_take_seven_bits_a_byte_after_zigzag() {
        let bytes = |number| {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            bytes
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(-1), [1]);
        assert_eq!(bytes(1), [2]);
        assert_eq!(bytes(-2048), [0xff, 0x1f]);
        assert_eq!(bytes(i64::MIN).len(), 9);
    }

    #[test]
    fn an_empty_histogram_has_no_counts() {
        let histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        assert_eq!(plain(&histogram).len(), 40);
        assert!(text(&histogram).unwrap().starts_with("HISTFAAA"));
    }
}
