//! How often a field is null.

/// How often a field is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nulls {
    /// The field is required.
    Never,
    /// Null with this probability.
    Share(f64),
    /// The enclosing struct draws a combination of fields; the field is present if this bit is set.
    Together(u32),
}
