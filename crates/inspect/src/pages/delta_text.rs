//! Checks the lengths of text in `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`.
//!
//! A few bytes may claim billions of lengths, for which decoders allocate memory at once, and prefixes may repeat a
//! long text in each value.
//!
//! Source: the [encodings of the format](https://parquet.apache.org/docs/file-format/data-pages/encodings/).

use sawmill_footer::Encoding;

use crate::pages::numbers::{Numbers, bits};

/// Memory for one length.
const LENGTH_SIZE: u64 = 4;

/// Values of the largest block; writers choose 128.
const MAX_BLOCK: u64 = 1 << 24;

const CUT_OFF: &str = "expected the lengths of text, found some that are cut off or longer than 64 bits";

/// Whether text has this encoding.
pub(crate) fn is_delta_text(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DeltaLengthByteArray | Encoding::DeltaByteArray)
}

/// Checks the values of a page, which may have at most `count` of them. Lengths and texts may each take `max_page`
/// bytes. Returns the bytes of all texts.
pub(crate) fn check(encoding: Encoding, values: &[u8], count: u64, max_page: u64) -> Result<u64, String> {
    if values.is_empty() {
        // All of them are NULL.
        return Ok(0);
    }
    let mut rest = Numbers(values);
    let mut lengths = || -> Result<Vec<u32>, String> {
        let header = Header::read(&mut rest)?;
        if header.count > count {
            let found = header.count;
            return Err(format!("expected lengths of at most {count} values, found {found} lengths"));
        }
        if header.count.saturating_mul(LENGTH_SIZE) > max_page {
            let most = max_page / LENGTH_SIZE;
            return Err(format!("expected at most {most} lengths in a page, found {}", header.count));
        }
        header.values(&mut rest)
    };
    let first = lengths()?;
    let sum = |lengths: &[u32]| lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
    let (stored, text) = match encoding {
        Encoding::DeltaByteArray => {
            let suffixes = lengths()?;
            if suffixes.len() != first.len() {
                let (prefixes, suffixes) = (first.len(), suffixes.len());
                return Err(format!(
                    "expected as many suffixes as the {prefixes} prefixes, found {suffixes}"
                ));
            }
            (sum(&suffixes), restored(&first, &suffixes)?)
        }
        _ => (sum(&first), 0),
    };
    if stored > rest.left() as u64 {
        return Err(format!("expected text of {stored} bytes, found {}", rest.left()));
    }
    if text > max_page {
        return Err(format!("expected a page with text of at most {max_page} bytes, found {text}"));
    }
    Ok(stored.max(text))
}

/// The bytes of all texts, from the lengths of the prefixes that they share with the text before, and of the suffixes.
fn restored(prefixes: &[u32], suffixes: &[u32]) -> Result<u64, String> {
    let (mut total, mut before) = (0u64, 0u64);
    for (prefix, suffix) in prefixes.iter().zip(suffixes) {
        let prefix = u64::from(*prefix);
        if prefix > before {
            return Err(format!(
                "expected a prefix within the {before} bytes of the text before, found {prefix}"
            ));
        }
        before = prefix + u64::from(*suffix);
        total = total.saturating_add(before);
    }
    Ok(total)
}

/// The start of `DELTA_BINARY_PACKED` values.
struct Header {
    /// Values in each miniblock, and miniblocks in each block.
    miniblock: usize,
    miniblocks: usize,
    count: u64,
    first: i64,
}

impl Header {
    fn read(numbers: &mut Numbers<'_>) -> Result<Self, String> {
        let mut next = || numbers.varint().ok_or(CUT_OFF);
        let (block, miniblocks, count) = (next()?, next()?, next()?);
        let first = numbers.integer().ok_or(CUT_OFF)?;
        if block == 0 || block % 128 > 0 || block > MAX_BLOCK {
            return Err(format!(
                "expected lengths in blocks of a multiple of 128, at most {MAX_BLOCK}, found {block}"
            ));
        }
        if miniblocks == 0 || block % miniblocks > 0 || block / miniblocks % 32 > 0 {
            return Err(format!(
                "expected miniblocks of a multiple of 32 lengths, found {miniblocks} miniblocks in a block of {block}"
            ));
        }
        // Both are at most the block's values.
        let (miniblock, miniblocks) = ((block / miniblocks) as usize, miniblocks as usize);
        Ok(Self { miniblock, miniblocks, count, first })
    }

    /// Decodes the `count` lengths.
    fn values(&self, numbers: &mut Numbers<'_>) -> Result<Vec<u32>, String> {
        let mut values = Vec::new();
        let mut left = self.count;
        let mut value = self.first;
        let mut add = |value: i64| {
            let length = u32::try_from(value).ok().filter(|length| i32::try_from(*length).is_ok());
            values.push(length.ok_or_else(|| format!("expected the length of a text, found {value}"))?);
            Ok::<_, String>(())
        };
        if left > 0 {
            add(value)?;
            left -= 1;
        }
        while left > 0 {
            let least = numbers.integer().ok_or(CUT_OFF)?;
            for width in numbers.take(self.miniblocks).ok_or(CUT_OFF)? {
                if left == 0 {
                    // The widths of miniblocks without values may be anything.
                    break;
                }
                let width = usize::from(*width);
                if width > 32 {
                    return Err(format!("expected lengths of at most 32 bits, found {width}"));
                }
                let packed = numbers.take(self.miniblock / 8 * width).ok_or(CUT_OFF)?;
                for place in 0..(self.miniblock as u64).min(left) {
                    // Lengths are 32-bit numbers, and so are their differences.
                    let delta = least.wrapping_add(bits(packed, place * width as u64, width).into());
                    value = i64::from(value.wrapping_add(delta) as i32);
                    add(value)?;
                    left -= 1;
                }
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of values in blocks of 128, with four miniblocks.
    fn header(count: u64, first: u8) -> Vec<u8> {
        let mut bytes = vec![0x80, 1, 4];
        for number in [count, u64::from(first) * 2] {
            let mut left = number;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        bytes
    }

    #[test]
    fn more_lengths_than_values_or_than_fit_are_refused() {
        for encoding in [Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray] {
            let error = check(encoding, &header(3_000_000_000, 0), 100, 1 << 20).unwrap_err();
            assert!(error.contains("3000000000 lengths"), "{error}");
            let error = check(encoding, &header(300_000, 0), 300_000, 1 << 20).unwrap_err();
            assert!(error.contains("at most 262144 lengths"), "{error}");
        }
    }

    #[test]
    fn lengths_are_decoded_up_to_the_last_miniblock_in_use() {
        // 3, then deltas -1 + {0, 1, 2, 3} in 2 bits; the widths of the other miniblocks mean nothing.
        let mut bytes = header(5, 3);
        bytes.extend([1, 2, 99, 99, 99, 0b1110_0100, 0, 0, 0, 0, 0, 0, 0]);
        let numbers = &mut Numbers(&bytes);
        let header = Header::read(numbers).unwrap();
        assert_eq!(header.values(numbers).unwrap(), [3, 2, 2, 3, 5]);
        assert_eq!(numbers.left(), 0);
        bytes.extend(b"123456789012345");
        assert!(check(Encoding::DeltaLengthByteArray, &bytes, 5, 1 << 20).is_ok());
        bytes.pop();
        let error = check(Encoding::DeltaLengthByteArray, &bytes, 5, 1 << 20).unwrap_err();
        assert!(error.contains("text of 15 bytes, found 14"), "{error}");
    }

    #[test]
    fn text_that_prefixes_repeat_is_counted() {
        // 33 values: the first has 100 bytes, all others take them as their prefix.
        let mut bytes = header(33, 0);
        // Prefixes: 0, then 100 each, as a delta of 100 in 7 bits and zeros.
        bytes.extend([0, 7, 0, 0, 0, 100]);
        bytes.extend([0; 27]);
        let mut suffixes = header(33, 100);
        // Suffixes: 100, then none: deltas -100 + {0, 100, 100 ..} in 7 bits.
        suffixes.extend([0xc7, 1, 7, 0, 0, 0]);
        let mut packed = [0u8; 28];
        for place in 1..32 {
            for bit in 0..7 {
                packed[(place * 7 + bit) / 8] |= (100 >> bit & 1) << ((place * 7 + bit) % 8);
            }
        }
        suffixes.extend(packed);
        bytes.extend(suffixes);
        bytes.extend([b'a'; 100]);
        let error = check(Encoding::DeltaByteArray, &bytes, 33, 3299).unwrap_err();
        assert!(error.contains("at most 3299 bytes, found 3300"), "{error}");
        assert!(check(Encoding::DeltaByteArray, &bytes, 33, 3300).is_ok());
    }
}
