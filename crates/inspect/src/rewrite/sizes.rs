//! The right sizes of row groups and column chunks. Where the footer's numbers contradict each other, or cannot be
//! true, the headers of pages tell.

use sawmill_footer::{ColumnChunk, Footer, RowGroup};

use crate::chunks::sizes::{body_of, stated_range, states_no_bytes};
use crate::rewrite::places::Places;

/// Sizes before compression and in the file.
pub(super) const UNCOMPRESSED: usize = 0;
pub(super) const COMPRESSED: usize = 1;

/// The sizes of a row group; `None` where nothing tells them.
#[derive(Debug)]
pub(super) struct GroupSizes {
    /// Of each chunk.
    pub parts: Vec<[Option<i64>; 2]>,
    /// Of all chunks together.
    pub sums: [Option<i64>; 2],
}

/// Finds the sizes of the row groups of a file.
pub(super) struct Sizes<'a> {
    footer: &'a Footer,
    places: &'a Places,
    /// Where chunks, indexes and the footer start, in ascending order, once that was asked for.
    starts: Option<Vec<u64>>,
    /// The row group that was asked for last.
    last: Option<(usize, GroupSizes)>,
}

impl<'a> Sizes<'a> {
    pub fn new(footer: &'a Footer, places: &'a Places) -> Self {
        Self { footer, places, starts: None, last: None }
    }

    /// The sizes of a row group.
    pub fn of_group(&mut self, group: &RowGroup<'_>) -> &GroupSizes {
        let last = self.last.take().filter(|(index, _)| *index == group.index());
        let last = last.unwrap_or_else(|| (group.index(), self.find(group)));
        &self.last.insert(last).1
    }

    /// The number of a chunk's values; `None` if nothing tells it.
    pub fn values(&self, chunk: &ColumnChunk<'_>) -> Option<i64> {
        let (stated, rows) = (chunk.num_values(), chunk.row_group().num_rows());
        match self.places.pages(chunk) {
            Some(pages) => Some(pages.values),
            None if stated > 0 || rows == 0 => Some(stated),
            // A column outside of lists has a value for each row.
            None => (chunk.element().max_rep() == 0).then_some(rows),
        }
    }

    /// The rows of a row group, as the pages of its columns outside of lists tell them, unless one of these agrees with
    /// what is stated.
    pub fn rows(&self, group: &RowGroup<'_>) -> i64 {
        let flat = group.columns().filter(|chunk| chunk.element().max_rep() == 0);
        let mut values = flat.filter_map(|chunk| Some(self.places.pages(&chunk)?.values));
        let (stated, first) = (group.num_rows(), values.next());
        let is_other = |first: &i64| *first != stated && values.all(|values| values == *first);
        first.filter(is_other).unwrap_or(stated)
    }

    fn find(&mut self, group: &RowGroup<'_>) -> GroupSizes {
        let stated = |chunk: ColumnChunk<'_>| [chunk.uncompressed_size(), chunk.compressed_size()];
        let totals = [Some(group.total_byte_size()), group.total_compressed_size()];
        let as_stated = || group.columns().map(|chunk| stated(chunk).map(Some)).collect();
        if group.columns().any(|chunk| !chunk.has_metadata()) {
            return GroupSizes { parts: as_stated(), sums: [None; 2] };
        }
        let mut parts: Vec<_> = group.columns().map(|chunk| self.possible(&chunk)).collect();
        let adds_up = |parts: &[[Option<i64>; 2]], which: usize| match totals[which] {
            Some(total) => sum(parts, which) == Some(total),
            None => parts.iter().all(|part| part[which].is_some()),
        };
        if [UNCOMPRESSED, COMPRESSED].into_iter().all(|which| adds_up(&parts, which)) {
            return GroupSizes { parts, sums: totals };
        }
        let of_pages = |chunk| self.places.pages(&chunk).map_or([None; 2], |pages| pages.sizes.map(Some));
        let of_pages: Vec<_> = group.columns().map(of_pages).collect();
        for which in [UNCOMPRESSED, COMPRESSED] {
            let all_of_pages = sum(&of_pages, which).is_some() && adds_up(&of_pages, which);
            for (part, found) in parts.iter_mut().zip(&of_pages) {
                // No chunk is larger before compression than its pages and their headers.
                let is_possible =
                    part[which] <= found[which] || found[which].is_none() || which == COMPRESSED;
                if all_of_pages || !is_possible || part[which].is_none() {
                    part[which] = found[which];
                }
            }
            self.fill(group, &mut parts, which, totals[which]);
        }
        let sums = [UNCOMPRESSED, COMPRESSED].map(|which| sum(&parts, which));
        GroupSizes { parts, sums }
    }

    /// The stated sizes that can be true.
    fn possible(&mut self, chunk: &ColumnChunk<'_>) -> [Option<i64>; 2] {
        let mut sizes = [Some(chunk.uncompressed_size()), Some(chunk.compressed_size())];
        for name in states_no_bytes(chunk) {
            sizes[usize::from(name == "total_compressed_size")] = None;
        }
        let end = stated_range(chunk).end;
        let is_cut = self.places.pages(chunk).is_some_and(|pages| pages.end > chunk.byte_range().end);
        let is_beyond = chunk.compressed_size() > 0
            && chunk.is_here().is_ok()
            && self.limit(chunk).is_some_and(|limit| end > limit);
        if is_cut || is_beyond {
            sizes[COMPRESSED] = None;
        }
        sizes
    }

    /// Sets the only part that is unknown to what the total leaves for it.
    fn fill(
        &mut self,
        group: &RowGroup<'_>,
        parts: &mut [[Option<i64>; 2]],
        which: usize,
        total: Option<i64>,
    ) {
        let mut unknown = (0..parts.len()).filter(|at| parts[*at][which].is_none());
        let (Some(at), None, Some(total)) = (unknown.next(), unknown.next(), total) else { return };
        let others = parts.iter().filter_map(|part| part[which]).fold(0, i64::saturating_add);
        let Some(left @ 1..) = total.checked_sub(others) else { return };
        let Some(chunk) = group.column(at) else { return };
        let end = chunk.byte_range().start.saturating_add(left.unsigned_abs());
        if which == UNCOMPRESSED || self.limit(&chunk).is_none_or(|limit| end <= limit) {
            parts[at][which] = Some(left);
        }
    }

    /// Where a chunk ends at the latest: where the next one starts, or an index, or the footer.
    fn limit(&mut self, chunk: &ColumnChunk<'_>) -> Option<u64> {
        let starts = self.starts.get_or_insert_with(|| starts_of(self.footer));
        let start = chunk.byte_range().start;
        starts.get(starts.partition_point(|other| *other <= start)).copied()
    }
}

fn sum(parts: &[[Option<i64>; 2]], which: usize) -> Option<i64> {
    parts.iter().try_fold(0_i64, |sum, part| sum.checked_add(part[which]?))
}

/// Where chunks, indexes and the footer start, in ascending order.
fn starts_of(footer: &Footer) -> Vec<u64> {
    let mut starts = vec![body_of(footer).end];
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        let Ok(found) = chunk.locations() else { continue };
        if chunk.is_here().is_ok() && chunk.has_metadata() {
            starts.push(chunk.byte_range().start);
        }
        let indexes = [found.offset_index_offset, found.column_index_offset, found.bloom_filter_offset];
        starts.extend(indexes.into_iter().flatten().filter_map(|offset| u64::try_from(offset).ok()));
    }
    starts.sort_unstable();
    starts
}
