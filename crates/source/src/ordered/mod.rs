//! Rows in another order than in the files: sorted by time, and partition by partition.
//!
//! ```text
//! parts of the files, on all cores ─ time, partition and address of each row ─▶ sorted runs on disk
//! runs ─ merged, partition by partition, on all cores ─▶ index: 24 bytes for each row
//! range of a partition's index = unit ─▶ addresses ─▶ rows, gathered from anywhere in the files ─▶ batches
//! ```
//!
//! For text the runs also have copies of the records, which are read instead of the files, a stretch of each
//! run at a time.
//!
//! Memory is bounded: a buffer of entries for each thread while the index is built, a window of rows for each
//! reader. [`OrderedRows`] is a source like others: a partition is a row group, and a range of its rows a
//! unit, so loads record and resume them as usual.
//!
//! Rows with the same time keep the order of the input, and rows without a time come last in their partition.
//! The order is therefore the same in every run, on any number of threads.

pub(crate) mod addressed;
mod build;
mod entry;
mod in_order;
mod index;
mod keys;
mod merge;
mod partition;
mod rows;
mod runs;
mod workspace;

pub use addressed::{Addressed, ByRow, Fetcher, RowAddress, Scanned, Wanted};
pub use partition::{PartitionedBy, Period, Slot};
pub use rows::{OrderedRows, Partition};
pub use workspace::IndexPlace;

/// The order in which to read rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The column of dates or timestamps to sort by; `None` keeps the order of the input.
    pub sort_by: Option<String>,
    /// How rows are assigned to partitions; `None` has one partition.
    pub partition_by: Option<PartitionedBy>,
}

impl Order {
    /// Returns the order as a part of a load's identity.
    pub fn identity(&self) -> String {
        let by = self.partition_by.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("sort {:?} partition {by:?}", self.sort_by.as_deref().unwrap_or_default())
    }
}

/// The most bytes that the index of a source takes on disk while it is built.
pub fn index_disk_bytes(addressed: &dyn Addressed) -> u64 {
    let rows = addressed.source().rows();
    let copies = addressed.record_bytes().map_or(0, |bytes| bytes + rows * entry::COPY_BYTES as u64);
    rows * 2 * entry::ENTRY_BYTES as u64 + copies
}
