//! How often a field is null.

/// How often a field is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nulls {
    /// The field is required.
    Never,
    /// Null with this probability.
    Share(f64),
    /// The struct around it decides: there if this bit of the combination drawn is set.
    Together(u32),
}
