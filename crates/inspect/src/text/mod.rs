//! Values, dates, tables and text as a person reads them, and JSON for programs.

pub(crate) mod dates;
pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod narrow;
pub(crate) mod shown;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod values;
