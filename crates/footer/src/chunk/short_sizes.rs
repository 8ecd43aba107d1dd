//! The ends of column chunks whose stated sizes are wrong. Writers store each chunk right behind the one before, so that
//! the next chunk, an index or the footer shows where a chunk ends.
//!
//! - Sizes that cannot be true: none although there are values, or more than the file has.
//! - Sizes that lack the header of a dictionary page: `parquet-mr` left it out before 1.2.9 (PARQUET-816).

use std::ops::Range;

use crate::chunk::column_chunk::ColumnChunk;
use crate::decode::file_metadata::starts_of_chunks;
use crate::footer::Footer;

/// What `created_by` begins with.
const WRITER: &str = "parquet-mr";

/// The first version whose sizes are complete.
const COMPLETE_SINCE: [u32; 3] = [1, 2, 9];

/// The footer's last bytes, in which a writer of that time names itself.
const LAST_BYTES: usize = 256;

/// The longest header of a dictionary page without bounds; `parquet-cpp` takes the same.
const MAX_HEADER: u64 = 100;

impl Footer {
    /// Where each chunk of the file and each index begins, in ascending order, and where the footer does.
    fn starts(&self) -> &[u64] {
        self.starts.get_or_init(|| {
            let mut starts = starts_of_chunks(self.bytes(), &self.decoded).unwrap_or_default();
            starts.extend(self.footer_start());
            starts.sort_unstable();
            starts.into()
        })
    }

    /// Whether the file's writer states sizes without the headers of dictionary pages.
    fn is_short(&self) -> bool {
        *self.is_short.get_or_init(|| {
            may_be_short(self.bytes()) && self.created_by().is_some_and(|name| is_short(&name))
        })
    }

    /// Whether each decoded chunk ends where the footer states, and has as many values.
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub(crate) fn has_true_sizes(&self) -> bool {
        let mut chunks = self.row_groups().flat_map(|group| group.columns());
        chunks.all(|chunk| chunk.has_true_size())
    }
}

impl ColumnChunk<'_> {
    /// Where the chunk ends in the file, which is elsewhere than `stated` if the size cannot be true.
    pub(crate) fn end(&self, stated: &Range<u64>) -> u64 {
        let footer = self.row_group().footer;
        if !self.has_possible_size(stated) {
            return self.start_of_next(stated.start).unwrap_or(stated.end);
        }
        let missing = match footer.is_short() {
            true => next_of(footer.starts(), stated.start).and_then(|next| next.checked_sub(stated.end)),
            false => None,
        };
        stated.end.saturating_add(missing.filter(|missing| *missing <= MAX_HEADER).unwrap_or(0))
    }

    /// Whether the chunk ends where the footer states, and has as many values.
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub(crate) fn has_true_size(&self) -> bool {
        let (values, stated) = (self.num_values(), self.stated_range());
        self.end(&stated) == stated.end && (values > 0 || self.known_values() == values)
    }

    /// The number of values, as far as it is known. A column outside of lists has one for each row, if the footer states none.
    pub fn known_values(&self) -> i64 {
        match self.num_values() {
            0 if self.has_metadata() && self.element().max_rep() == 0 => self.row_group().num_rows(),
            values => values,
        }
    }

    /// Whether the chunk can end where the footer states: it has bytes for its values, in the file.
    fn has_possible_size(&self, stated: &Range<u64>) -> bool {
        let group = self.row_group();
        let is_empty = stated.is_empty() && group.num_rows() > 0 && self.has_metadata();
        let is_beyond = group.footer.footer_start().is_some_and(|start| stated.end > start);
        !(is_empty || is_beyond)
    }

    /// Where the next chunk or index starts, or the footer, if the chunk is in this file.
    fn start_of_next(&self, start: u64) -> Option<u64> {
        let footer = self.row_group().footer;
        let is_inside = start > 0 && footer.footer_start().is_none_or(|end| start < end);
        if is_inside && self.is_here().is_ok() { next_of(footer.starts(), start) } else { None }
    }
}

/// The first of these places, which ascend, behind `start`.
fn next_of(starts: &[u64], start: u64) -> Option<u64> {
    starts.get(starts.partition_point(|other| *other <= start)).copied()
}

/// Whether the footer's last bytes may name one of these writers. Other files need no walk to the writer's field.
fn may_be_short(footer: &[u8]) -> bool {
    let last = &footer[footer.len().saturating_sub(LAST_BYTES)..];
    let at = last.windows(WRITER.len()).rposition(|bytes| bytes == WRITER.as_bytes());
    at.is_some_and(|at| is_short(&String::from_utf8_lossy(&last[at..])))
}

/// Whether this writer leaves the header out. One without a version is older than versions.
fn is_short(created_by: &str) -> bool {
    let Some(rest) = created_by.strip_prefix(WRITER) else { return false };
    let Some(version) = rest.strip_prefix(" version ") else { return true };
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let found = std::array::from_fn(|_| parts.next().unwrap_or(0));
    found < COMPLETE_SINCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_before_1_2_9_and_those_without_a_version_leave_the_header_out() {
        for (name, short) in [
            ("parquet-mr", true),
            ("parquet-mr version 1.2.5", true),
            ("parquet-mr version 1.2.8 (build abc)", true),
            ("parquet-mr version 1.0.0-t1", true),
            ("parquet-mr version 1.2.9", false),
            ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)", false),
            ("parquet-cpp version 1.0.0", false),
            ("impala version 1.2.5", false),
        ] {
            assert_eq!(is_short(name), short, "{name}");
            assert_eq!(may_be_short(format!("...{name}\0").as_bytes()), short, "{name}");
        }
    }
}
