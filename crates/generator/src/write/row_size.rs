//! Measures the bytes of a row, from the first rows of the dataset, encoded with the same options.
//!
//! Files and row groups of a given size get their number of rows from this measurement. It depends on the
//! dataset, the seed and the options alone, and so do layouts.

use crate::error::{Error, Result};
use crate::layout::file_options::FileOptions;
use crate::layout::rows::{GroupBytes, MAX_GROUP_BYTES, PAGE_ROWS, ROW_GROUP_ROWS};
use crate::random::rng::BLOCK_ROWS;
use crate::spec::dataset::Dataset;
use crate::write::column_chunk::ColumnChunk;
use crate::write::file_metadata::FileEnd;
use crate::write::plan::FilePlan;
use crate::write::row_group::{RowGroupMaker, bytes_of, empty_chunks};

/// The sample grows until it has this many bytes.
const SAMPLE_BYTES: u64 = 4 << 20;

/// Datasets with this many columns take much memory for each row.
const WIDE: usize = 256;

/// The default maximum of encoded bytes in a row group, before compression: 64 MiB.
pub const ROW_GROUP_BYTES: u64 = 64 << 20;

/// The average size of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RowSize {
    /// Bytes in the file, including a share of indexes and footer.
    pub stored: f64,
    /// Bytes in pages before compression, about the same as in memory.
    pub raw: f64,
    /// The number of rows that were measured, as one row group.
    pub sampled: u64,
}

impl RowSize {
    /// Measures the first rows of `dataset`.
    ///
    /// ```
    /// use sawmill_generator::{Dataset, FileOptions, RowSize};
    /// let contacts = Dataset::built_in("contacts").unwrap()?;
    /// let size = RowSize::measure(&contacts, &FileOptions::default(), 42)?;
    /// assert!(size.stored > 15.0 && size.stored < 40.0);
    /// # Ok::<(), sawmill_generator::Error>(())
    /// ```
    ///
    /// # Errors
    /// The options do not fit the dataset.
    pub fn measure(dataset: &Dataset, options: &FileOptions, seed: u64) -> Result<Self> {
        Self::measure_for(u64::MAX, dataset, options, seed)
    }

    /// The same for a run of `rows` rows. If the dataset is wide, and its first block shows that these few rows are one
    /// row group, no more rows are measured.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_for(rows: u64, dataset: &Dataset, options: &FileOptions, seed: u64) -> Result<Self> {
        let few = rows <= BLOCK_ROWS && dataset.columns() >= WIDE;
        let plan = FilePlan::new(options, dataset, None)?;
        let (mut maker, mut chunks) = (RowGroupMaker::new(&plan, seed)?.of_samples(), empty_chunks(&plan));
        // A block of long rows may not fit into memory.
        let expected = dataset.expected_row_bytes().max(1.0);
        // A table of a benchmark has no more rows than its own.
        let most = dataset.benchmark().and(dataset.rows()).map_or(ROW_GROUP_ROWS, |n| n.min(ROW_GROUP_ROWS));
        let mut rows = power_of_two((4 * SAMPLE_BYTES) as f64 / expected).min(BLOCK_ROWS).min(most);
        loop {
            let (size, bytes) = Self::of_row_group(&plan, &mut maker, &mut chunks, rows)?;
            let raw = (size.raw * rows as f64) as u64;
            let suffices = few && rows == BLOCK_ROWS && raw <= ROW_GROUP_BYTES / 2;
            if suffices || bytes >= SAMPLE_BYTES || raw >= ROW_GROUP_BYTES || rows >= most {
                return Ok(size);
            }
            rows = (rows * 4).min(most);
        }
    }

    /// The average row of a row group with the first `rows` rows, and the bytes of its pages.
    fn of_row_group(
        plan: &FilePlan<'_>,
        maker: &mut RowGroupMaker<'_>,
        chunks: &mut [ColumnChunk],
        rows: u64,
    ) -> Result<(Self, u64)> {
        maker.make(0..rows, rows, GroupBytes::default(), &|| Ok(()), chunks)?;
        let (stored, raw) = bytes_of(chunks);
        let pages = stored + chunks.iter().map(|chunk| chunk.bloom.len() as u64).sum::<u64>();
        let mut end = FileEnd::default();
        end.add_row_group(plan, chunks, rows, 4);
        let end: usize = end.finish(plan, pages + 4).iter().map(Vec::len).sum();
        let of_row = |bytes: u64| bytes as f64 / rows as f64;
        Ok((RowSize { stored: of_row(pages + end as u64), raw: of_row(raw), sampled: rows }, pages))
    }

    /// The number of rows that take about `bytes` in a file, at least one. The dataset, options and seed must
    /// be the same as in the measurement. Fewer rows than the sample are measured again, because a dictionary takes
    /// a larger share of a short row group, or does not pay off.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn rows_in(&self, bytes: u64, dataset: &Dataset, options: &FileOptions, seed: u64) -> Result<u64> {
        let rows = |size: &Self| ((bytes as f64 / size.stored.max(f64::MIN_POSITIVE)) as u64).max(1);
        let first = rows(self);
        if first >= self.sampled {
            return Ok(first);
        }
        let plan = FilePlan::new(options, dataset, None)?;
        let mut maker = RowGroupMaker::new(&plan, seed)?.of_samples();
        let (anew, _) = Self::of_row_group(&plan, &mut maker, &mut empty_chunks(&plan), first)?;
        Ok(rows(&anew))
    }

    /// The default rows of a row group: [`ROW_GROUP_ROWS`] or, if these take more than [`ROW_GROUP_BYTES`],
    /// as many blocks of 1,024 rows as fit. If not even a block fits, a power of two that does, or one.
    pub fn row_group_rows(&self) -> u64 {
        let rows = ROW_GROUP_BYTES as f64 / self.raw.max(f64::MIN_POSITIVE);
        match rows as u64 / BLOCK_ROWS {
            0 => power_of_two(rows),
            blocks => (blocks.saturating_mul(BLOCK_ROWS)).min(ROW_GROUP_ROWS),
        }
    }

    /// The default maximum of rows in a page. They are drawn together, for all columns. For wide rows, it is
    /// at most a row group; for long rows, an eighth of a row group.
    pub fn page_rows(&self) -> u64 {
        match self.row_group_rows() {
            rows @ ..BLOCK_ROWS => (rows / 8).max(1),
            rows => rows.min(PAGE_ROWS),
        }
    }

    /// The most rows of a row group that is expected to take at most [`MAX_GROUP_BYTES`]; at least one.
    pub fn most_group_rows(&self) -> u64 {
        ((MAX_GROUP_BYTES as f64 / self.raw.max(f64::MIN_POSITIVE)) as u64).max(1)
    }

    /// Checks that row groups of `rows` rows take at most [`MAX_GROUP_BYTES`].
    ///
    /// # Errors
    /// They take more.
    pub fn check_row_groups(&self, rows: u64) -> Result<()> {
        let most = self.most_group_rows();
        if rows <= most {
            return Ok(());
        }
        let gigabytes = self.raw * rows as f64 / 1e9;
        Err(Error::spec(
            format!(
                "row groups of {rows} rows, which take about {gigabytes:.1} GB of memory for each thread"
            ),
            "the layout",
            format!("use at most {most} rows, or --row-group-size"),
        ))
    }
}

/// The greatest power of two that is at most `n`, or one.
fn power_of_two(n: f64) -> u64 {
    1 << (n.max(1.0) as u64).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_of_a_wide_dataset_are_measured_by_one_block() {
        let field = |i: usize| {
            format!(
                "[[fields]]\nname = \"f{i}\"\ntype = \"string\"\nvalues = {{ weights = {{ a = 1, b = 2 }} }}\n"
            )
        };
        let spec = (0..WIDE).map(field).fold("name = \"wide\"\n".to_owned(), |all, field| all + &field);
        let dataset = Dataset::from_toml(&spec).unwrap();
        let options = FileOptions::default();
        let sampled = |rows| RowSize::measure_for(rows, &dataset, &options, 42).unwrap().sampled;
        assert_eq!(sampled(2), BLOCK_ROWS);
        assert!(sampled(u64::MAX) > BLOCK_ROWS);
        assert!(RowSize::measure_for(2, &dataset, &options, 42).unwrap().row_group_rows() > BLOCK_ROWS);
    }

    #[test]
    fn wide_rows_get_small_row_groups_and_narrow_rows_the_default() {
        let rows = |raw| RowSize { stored: raw, raw, sampled: 1 }.row_group_rows();
        assert_eq!(rows(30.0), ROW_GROUP_ROWS);
        assert_eq!(rows(0.0), ROW_GROUP_ROWS);
        assert_eq!(rows(8192.0), 8192);
        assert_eq!(rows(500e3), 128);
        assert_eq!(rows(1e9), 1);
    }
}
