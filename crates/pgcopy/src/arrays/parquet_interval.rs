//! Parquet's INTERVAL: 12 bytes of months, days and milliseconds, each an unsigned little-endian 32-bit
//! number (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#interval>).

use std::fmt;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;

/// The three parts of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetInterval {
    /// Months.
    pub months: u32,
    /// Days.
    pub days: u32,
    /// Milliseconds.
    pub millis: u32,
}

impl ParquetInterval {
    /// Returns the interval in a row of an array of [`INTERVAL_BYTES`](super::marks::INTERVAL_BYTES).
    pub fn read(array: &ArrayRef, row: usize) -> Option<Self> {
        let (parts, _) = array.as_fixed_size_binary_opt()?.value(row).as_chunks::<4>();
        let [months, days, millis] = *parts.first_chunk::<3>()?;
        let part = u32::from_le_bytes;
        Some(Self { months: part(months), days: part(days), millis: part(millis) })
    }

    /// Returns months and days as the signed numbers that databases store, or `None` if they do not fit.
    pub(crate) fn signed(self) -> Option<(i32, i32)> {
        Some((self.months.try_into().ok()?, self.days.try_into().ok()?))
    }
}

impl fmt::Display for ParquetInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} months {} days {} ms", self.months, self.days, self.millis)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::FixedSizeBinaryArray;

    use super::*;

    #[test]
    fn parts_are_little_endian_and_unsigned() {
        let bytes = [[14, 0, 0, 0, 3, 0, 0, 0, 0x10, 0x27, 0, 0], [255; 12]];
        let array: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap());
        let first = ParquetInterval::read(&array, 0).unwrap();
        assert_eq!(first, ParquetInterval { months: 14, days: 3, millis: 10_000 });
        assert_eq!(first.signed(), Some((14, 3)));
        assert_eq!(ParquetInterval::read(&array, 1).unwrap().signed(), None);
    }
}
