//! Turns batches into blocks of rows: with their sums, and without the refused rows.

pub(crate) mod canonical_row;
pub(crate) mod encoders;
