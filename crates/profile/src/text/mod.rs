//! Numbers for people: sizes, counts, durations and dates, written and read.

pub(crate) mod byte_sizes;
pub(crate) mod calendar;
pub(crate) mod counts;
pub(crate) mod durations;
pub(crate) mod number_text;
pub(crate) mod seconds;
