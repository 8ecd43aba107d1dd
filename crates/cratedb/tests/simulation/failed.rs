//! Seeds that have shown a defect. A failure of a night is another line.

#[rustfmt::skip]
pub const FAILED: &[u64] = &[
    2_504,
    5_000_053,
    5_000_651,
    6_000_048,
    8_000_102,
    9_000_342,
    17_000_100,
    26_000_016,
    27_001_490,
    27_004_306,
    200_140,
];
