//! Seeds that have shown a defect. A failure of a night is another line.

#[rustfmt::skip]
pub const FAILED: &[u64] = &[];
