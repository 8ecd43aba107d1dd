//! Where records and their fields begin and end: dialects, headers, quotes, marks.

mod block;
pub(super) mod boundaries;
pub(super) mod cursor;
pub(super) mod dialect;
mod division;
pub(super) mod header;
pub(super) mod leading;
mod likely_encoding;
pub(super) mod place;
pub(super) mod proposal;
pub(super) mod splitter;
