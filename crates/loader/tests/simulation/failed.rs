//! Seeds that have shown a defect. A failure of a night is another line.

#[rustfmt::skip]
pub const FAILED: &[u64] = &[
    8_202,
    11_621,
    20_722,
    71_014_246,
    777_002_460,
    999_002_652,
    1_200_028_189,
    3_000_005_133,
];
