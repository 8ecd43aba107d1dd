//! Formats and parses numbers for people: sizes, counts, durations and dates; advises on names.

pub(crate) mod byte_sizes;
pub(crate) mod calendar;
pub(crate) mod counts;
pub(crate) mod durations;
pub(crate) mod known_columns;
pub(crate) mod number_text;
