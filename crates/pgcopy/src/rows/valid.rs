//! The validity of the values of a block.

use arrow_buffer::NullBuffer;
use arrow_buffer::bit_chunk_iterator::BitChunks;

use crate::values::fixed_width::BLOCK;

/// The validity bits of a block of rows.
pub(crate) struct Valid {
    bits: [u64; BLOCK / 64],
    nulls: usize,
}

impl Valid {
    /// Returns bits that mark all rows as valid.
    pub(crate) fn all() -> Self {
        Self { bits: [u64::MAX; BLOCK / 64], nulls: 0 }
    }

    /// Reads rows `first..first + rows` of an array's null buffer.
    pub(crate) fn read(nulls: Option<&NullBuffer>, first: usize, rows: usize) -> Self {
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Self::all() };
        let mut valid = Self { bits: [0; BLOCK / 64], nulls: 0 };
        let bits = nulls.inner();
        let block = BitChunks::new(bits.values(), bits.offset() + first, rows);
        let mut set = 0;
        for (word, bits) in valid.bits.iter_mut().zip(block.iter_padded()) {
            *word = bits;
            set += bits.count_ones() as usize;
        }
        valid.nulls = rows - set;
        valid
    }

    /// Returns the number of NULLs in the block.
    pub(crate) fn nulls(&self) -> usize {
        self.nulls
    }

    /// Returns a bit for each row, the first of 64 rows in the lowest bit.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Calls `null` with the row of each NULL among the first `rows` rows.
    #[inline]
    pub(crate) fn each_null(&self, rows: usize, mut null: impl FnMut(usize)) {
        for (word, bits) in
            self.bits.iter().enumerate().take(if self.nulls > 0 { rows.div_ceil(64) } else { 0 })
        {
            let mut missing = !bits;
            while missing != 0 {
                let row = word * 64 + missing.trailing_zeros() as usize;
                if row >= rows {
                    break;
                }
                null(row);
                missing &= missing - 1;
            }
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.bits[row / 64] >> (row % 64) & 1 == 1
    }

    /// Marks a row as NULL.
    pub(crate) fn clear(&mut self, row: usize) {
        if self.is_valid(row) {
            self.bits[row / 64] &= !(1 << (row % 64));
            self.nulls += 1;
        }
    }

    /// Returns the number of NULLs among the first `rows` rows.
    pub(crate) fn nulls_among(&self, rows: usize) -> usize {
        match self.nulls {
            0 => 0,
            _ => {
                let words = self.bits.iter().enumerate().map(|(i, bits)| {
                    let used = rows.saturating_sub(i * 64).min(64);
                    let mask = if used == 64 { u64::MAX } else { (1 << used) - 1 };
                    (!bits & mask).count_ones() as usize
                });
                words.sum()
            }
        }
    }
}

impl Default for Valid {
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_counted_among_the_first_rows() {
        let nulls: NullBuffer = (0..300).map(|row| row % 3 != 0).collect();
        let valid = Valid::read(Some(&nulls), 30, 120);
        assert_eq!(valid.nulls(), 40);
        for rows in [0, 1, 63, 64, 65, 119, 120] {
            let those: Vec<usize> = (0..rows).filter(|row| !valid.is_valid(*row)).collect();
            assert_eq!(valid.nulls_among(rows), those.len());
            let mut visited = Vec::new();
            valid.each_null(rows, |row| visited.push(row));
            assert_eq!(visited, those);
        }
        let mut cleared = Valid::all();
        cleared.clear(5);
        cleared.clear(5);
        assert_eq!((cleared.nulls(), cleared.nulls_among(5), cleared.nulls_among(6)), (1, 0, 1));
    }
}
