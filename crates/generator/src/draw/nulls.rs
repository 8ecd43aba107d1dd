//! How often a field is null.

/// How often a field is null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nulls {
    /// The field is required.
    Never,
    /// Null with this probability.
    Share(f64),
    /// Null where the field's condition holds, or a field that it names is null.
    Where,
    /// The enclosing struct draws a combination of fields; the field is present if this bit is set.
    Together(u32),
}
