//! Checks what row groups state beside their column chunks.

use sawmill_footer::RowGroup;

use super::Check;
use crate::chunks::sizes::{is_beyond, states_no_bytes};

impl Check<'_, '_> {
    pub(super) fn row_group(&mut self, group: &RowGroup<'_>) {
        if let Some(ordinal) = group.ordinal()
            && i64::from(ordinal) != group.index() as i64
        {
            self.group(group, format!("expected the ordinal {}, found {ordinal}", group.index()), ".ordinal");
        }
        let leaves = self.footer.schema().num_leaves();
        for by in group.sorting_columns().into_iter().flatten() {
            if usize::try_from(by.column_idx).is_ok_and(|index| index < leaves) {
                continue;
            }
            let what = format!("expected the index of one of {leaves} columns, found {}", by.column_idx);
            self.group(group, what, ".sorting_columns");
        }
        // Sums are meaningful only over all columns, and only if all are unencrypted.
        if group.num_columns() != leaves || group.columns().any(|chunk| !chunk.has_metadata()) {
            return;
        }
        self.sums(group);
        let first = group.column(0).map(|chunk| chunk.byte_range().start);
        if let (Some(first), Some(offset @ 0..)) = (first, group.file_offset())
            && u64::try_from(offset) != Ok(first)
        {
            let what = format!("expected the first column's offset {first}, found {offset}");
            self.group(group, what, ".file_offset");
        }
    }

    /// Compares the sizes of the row group with the sums over its columns, unless one of these cannot be true: others
    /// name that.
    fn sums(&mut self, group: &RowGroup<'_>) {
        let lacks = |name| group.columns().any(|chunk| states_no_bytes(&chunk).any(|of| of == name));
        let is_beyond = group.columns().any(|chunk| is_beyond(&chunk, &self.body));
        let is_negative = |name| self.negative.contains(&(group.footer_offset(), name));
        let compressed: i128 = group.columns().map(|chunk| i128::from(chunk.compressed_size())).sum();
        let uncompressed: i128 = group.columns().map(|chunk| i128::from(chunk.uncompressed_size())).sum();
        let is_known = !lacks("total_compressed_size") && !is_beyond && !is_negative("total_compressed_size");
        let compare_bytes = !lacks("total_uncompressed_size") && !is_negative("total_byte_size");
        if let Some(total) = group.total_compressed_size().filter(|_| is_known)
            && i128::from(total) != compressed
        {
            let what = format!("expected the columns' {compressed} compressed bytes, found {total}");
            self.group(group, what, ".total_compressed_size");
        }
        if compare_bytes && i128::from(group.total_byte_size()) != uncompressed {
            let what =
                format!("expected the columns' {uncompressed} bytes, found {}", group.total_byte_size());
            self.group(group, what, ".total_byte_size");
        }
    }
}
