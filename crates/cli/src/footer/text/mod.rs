//! Values, dates and text as a person reads them.

pub(crate) mod dates;
pub(crate) mod each;
pub(crate) mod escape;
pub(crate) mod values;
