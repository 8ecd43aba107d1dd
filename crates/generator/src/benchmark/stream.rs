//! The random numbers of TPC-H and TPC-DS: 31 bits, multiplied by 16,807. A row takes a fixed number of them, so each row can be
//! reached.

/// One more than the largest number, a prime.
pub(crate) const MODULUS: u64 = (1 << 31) - 1;
const MULTIPLIER: u64 = 16807;
/// The most numbers of a row: TPC-DS draws whether each of 16 line items is returned.
const MAX_A_ROW: usize = 16;

/// The multipliers that pass over 0 to 16 numbers.
const OVER: [u64; MAX_A_ROW + 1] = {
    let mut over = [1; MAX_A_ROW + 1];
    let mut i = 1;
    while i <= MAX_A_ROW {
        over[i] = over[i - 1] * MULTIPLIER % MODULUS;
        i += 1;
    }
    over
};

/// The next number.
#[inline]
pub(crate) fn advance(seed: &mut u64) -> u64 {
    // Both are below 2^31, and 2^31 is 1 modulo 2^31 - 1.
    let product = *seed * MULTIPLIER;
    let folded = (product & MODULUS) + (product >> 31);
    *seed = if folded >= MODULUS { folded - MODULUS } else { folded };
    *seed
}

/// A number from 0 up, below `range`, which is at most 2^19.
///
/// `tpchgen` computes `seed as f64 / MODULUS as f64 * range as f64`, rounded down. The exact quotient is at least
/// 1 / `MODULUS` from any whole number, as that is a prime; the rounding of the product is smaller.
#[inline]
pub(crate) fn draw_below(seed: &mut u64, range: u64) -> u64 {
    advance(seed) * range / MODULUS
}

/// The numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u64,
    used: usize,
    a_row: usize,
}

impl Stream {
    /// The numbers of a column with at most `a_row` (16) of them for each row, before the numbers of row `row`.
    pub(crate) fn new(seed: u64, a_row: usize, row: u64) -> Self {
        let mut stream = Stream { seed, used: 0, a_row: a_row.min(MAX_A_ROW) };
        let (mut power, mut left) = (MULTIPLIER, row.saturating_mul(a_row as u64));
        while left > 0 {
            if left % 2 == 1 {
                stream.seed = stream.seed * power % MODULUS;
            }
            power = power * power % MODULUS;
            left /= 2;
        }
        stream
    }

    /// A number from 0 up, below `range`, which is at most 2^19.
    #[inline]
    pub(crate) fn below(&mut self, range: u64) -> u64 {
        self.used += 1;
        draw_below(&mut self.seed, range)
    }

    /// As [`below`](Self::below) for any range up to 2^31, by the floating-point formula of TPC-H.
    #[inline]
    pub(crate) fn below_wide(&mut self, range: u64) -> u64 {
        self.used += 1;
        (advance(&mut self.seed) as f64 / MODULUS as f64 * range as f64) as u64
    }

    /// A number from 0 up, below `range`, by the division of TPC-DS.
    #[inline]
    pub(crate) fn remainder(&mut self, range: u64) -> u64 {
        self.used += 1;
        advance(&mut self.seed) % range
    }

    /// Passes over the numbers that the row had and did not use.
    #[inline]
    pub(crate) fn next_row(&mut self) {
        let unused = self.a_row.saturating_sub(self.used);
        self.seed = self.seed * OVER[unused] % MODULUS;
        self.used = 0;
    }
}
