//! The sizes of column chunks that lack the header of their dictionary page: `parquet-mr` left it out before 1.2.9
//! (PARQUET-816). These writers store each chunk right behind the one before, so that the next chunk, or the footer,
//! shows where a chunk ends.

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
    /// Where each chunk of the file begins, in ascending order, and where the footer does; `None` if sizes are complete.
    fn starts_if_short(&self) -> Option<&[u64]> {
        let starts = self.starts_if_short.get_or_init(|| {
            if !may_be_short(self.bytes()) || !self.created_by().is_some_and(|name| is_short(&name)) {
                return None;
            }
            let mut starts = starts_of_chunks(self.bytes(), &self.decoded).ok()?;
            starts.extend(self.footer_start());
            starts.sort_unstable();
            Some(starts.into())
        });
        starts.as_deref()
    }

    /// Whether a decoded chunk is larger than the footer states.
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub(crate) fn has_short_sizes(&self) -> bool {
        let mut chunks = self.row_groups().flat_map(|group| group.columns());
        self.starts_if_short().is_some() && chunks.any(|chunk| chunk.missing_bytes() > 0)
    }
}

impl ColumnChunk<'_> {
    /// By how many bytes the chunk is larger than the footer states.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let Some(starts) = self.row_group().footer.starts_if_short() else { return 0 };
        let Range { start, end } = self.stated_range();
        let next = starts.get(starts.partition_point(|other| *other <= start));
        let missing = next.and_then(|next| next.checked_sub(end));
        missing.filter(|missing| *missing <= MAX_HEADER).unwrap_or(0)
    }
}

/// Whether the footer's last bytes name such a writer, or one that cannot be ruled out. Other files need no walk to
/// the field that names it.
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
