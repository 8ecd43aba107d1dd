//! The options of `sawmill gen` about which rows go where.

use std::num::NonZeroUsize;

use clap::Args;
use sawmill_generator::{
    Dataset, Existing, FileOptions, GroupBytes, Layout, MAX_GROUP_BYTES, MAX_GROUP_ROWS, Part,
    ROW_GROUP_BYTES, RowSize,
};
use sawmill_profile::format_counted;

use crate::arguments::part_arg;
use crate::arguments::size_arg::bytes;
use crate::error::{Error, Result};
use crate::screen::phases;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Which rows go where")]
pub(crate) struct LayoutArgs {
    /// Rows of the dataset, like 1000, 10M or 1.5B. By default as its spec says, else 1M.
    #[arg(long, value_parser = phases::count)]
    pub rows: Option<u64>,
    /// Number of files, with equal shares of the rows. With --part, by default one for each part [default: 1].
    #[arg(long, value_parser = number_of_files, conflicts_with_all = ["rows_per_file", "file_size"])]
    files: Option<u32>,
    /// Rows of each file except the last.
    #[arg(long, value_parser = phases::count, conflicts_with = "file_size")]
    rows_per_file: Option<u64>,
    /// Approximate size of each file except the last, like 256MB; a sample tells how many rows it takes. With
    /// --partition-by this is the size in the largest folder; files of a folder with fewer rows are smaller.
    #[arg(long, value_parser = bytes, allow_hyphen_values = true)]
    file_size: Option<u64>,
    /// Most rows of a row group, like 128k or 1M, before rows are sorted into folders [default: 131072, or
    /// fewer if these would take more than 64 MiB].
    #[arg(long, value_parser = phases::count)]
    row_group_rows: Option<u64>,
    /// Approximate size of a row group in the file, like 16MiB. A sample tells how many rows it takes. The row
    /// group ends with the page that exceeds the size by a quarter. With --partition-by this is the size in the
    /// largest folder, limited so that the row groups of all folders together take at most 1 GiB.
    #[arg(long, value_parser = bytes, allow_hyphen_values = true)]
    row_group_size: Option<u64>,
    /// Most rows of a page [default: 16384].
    #[arg(long, value_parser = phases::count)]
    page_rows: Option<u64>,
    /// Sort rows into folders COLUMN=VALUE. The column must not be nested, and the files leave it out.
    #[arg(long, value_name = "COLUMN")]
    pub partition_by: Option<String>,
    /// Generate only the files of part K of N, like 2/8, or auto/8 for the index that a job scheduler has set
    /// (Kubernetes, Slurm, AWS Batch). All parts together are the same files as the whole dataset; then gen finish
    /// checks them and completes the dataset. --resume without --part also generates missing files.
    #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = part_of_dataset)]
    pub part: Part,
    /// Files to write in parallel [default: as many as threads].
    #[arg(long)]
    pub writers: Option<NonZeroUsize>,
    /// Keep the complete files of an earlier run, also of one with --part, and generate the others.
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// Replace the files of an earlier run, or an existing single file. A file that --like, --schema-of or the
    /// spec reads is never replaced.
    #[arg(long)]
    pub overwrite: bool,
    /// Generate nothing: all files must exist.
    #[arg(skip)]
    finish: bool,
    /// The dataset has several tables. A small one may have no file for a part.
    #[arg(skip)]
    pub of_several_tables: bool,
}

/// Parses `--files`.
fn number_of_files(text: &str) -> Result<u32, String> {
    u32::try_from(phases::count(text)?).map_err(|_| "the number is too large".to_owned())
}

/// Parses `--part`.
fn part_of_dataset(text: &str) -> Result<Part, String> {
    let (number, of) = part_arg::numbers(text)?;
    format!("{number}/{of}").parse()
}

impl LayoutArgs {
    /// The rows of `dataset`.
    pub(crate) fn rows_of(&self, dataset: &Dataset) -> Result<u64> {
        if let Some(benchmark) = dataset.benchmark().filter(|_| self.rows.is_some()) {
            let advice = "leave out --rows: --scale determines the rows";
            return Err(Error::usage(format!("--rows for a table of {benchmark}"), dataset.name(), advice));
        }
        let rows = self.rows.or(dataset.rows()).unwrap_or(1_000_000);
        if let Some(most) = dataset.most_rows().filter(|most| rows > *most) {
            let what = format!("{rows} rows of {}, which has {most}", dataset.name());
            let advice = "leave out --rows, or declare more rows of its parent table";
            return Err(Error::usage(what, dataset.name(), advice));
        }
        Ok(rows)
    }

    /// The layout of the `rows` rows of `dataset`.
    pub(crate) fn layout(
        &self,
        rows: u64,
        dataset: &Dataset,
        options: &FileOptions,
        seed: u64,
    ) -> Result<Layout> {
        let by_size =
            self.file_size.is_some() || self.row_group_size.is_some() || self.partition_by.is_some();
        let run = if by_size { u64::MAX } else { rows };
        let size = RowSize::measure_for(run, dataset, options, seed)?;
        // The share of a file's rows that goes to the largest folder.
        let share = match &self.partition_by {
            Some(column) => size.largest_folder(dataset, options, column, seed)?,
            None => 1.0,
        };
        let rows_in = |bytes| -> Result<u64> {
            Ok((size.rows_in(bytes, dataset, options, seed)? as f64 / share) as u64)
        };
        let layout = match (self.rows_per_file, self.file_size) {
            (Some(per_file), _) => Layout::with_rows_per_file(rows, per_file)?,
            (None, Some(bytes)) => Layout::with_rows_per_file(rows, rows_in(bytes)?)?,
            (None, None) => Layout::new(rows, self.files.unwrap_or(self.part.parts()))?,
        };
        if !self.of_several_tables {
            self.check_parts(layout.files)?;
        }
        let sized = match self.row_group_size {
            Some(bytes) => {
                fits_in(bytes, dataset)?;
                Some(rows_in(bytes)?.min(MAX_GROUP_ROWS).min(size.most_group_rows()))
            }
            None => None,
        };
        let group = match (self.row_group_rows, sized) {
            (Some(rows), Some(sized)) => rows.min(sized),
            (Some(rows), None) => rows,
            (None, Some(sized)) => sized,
            (None, None) => size.row_group_rows(),
        };
        let bytes = match (self.row_group_rows, self.row_group_size) {
            (_, Some(stored)) => GroupBytes::around(Some(stored), MAX_GROUP_BYTES),
            (Some(_), None) => GroupBytes::default(),
            (None, None) => GroupBytes::around(None, ROW_GROUP_BYTES),
        };
        let layout = layout.with_row_group_rows(group)?.with_row_group_bytes(bytes);
        let most = (0..layout.files).map(|file| layout.file_rows(file)).map(|rows| rows.end - rows.start);
        size.check_row_groups(group.min(most.max().unwrap_or(0)))?;
        Ok(layout.with_page_rows(self.page_rows.unwrap_or_else(|| size.page_rows()))?)
    }

    /// Refuses a part that could have no file, whose run would end well and make nothing.
    pub(crate) fn check_parts(&self, files: u32) -> Result<(), Error> {
        let parts = self.part.parts();
        if files >= parts {
            return Ok(());
        }
        let what = format!("{} for {parts} parts", format_counted(files.into(), "file"));
        Err(Error::usage(what, "--part", format!("give --files {parts} or more, or smaller files")))
    }

    /// Whether `--part` without `--files` would put a part of the rows into a single file.
    pub(crate) fn parts_a_single_file(&self) -> bool {
        self.part != Part::WHOLE && self.files.is_none()
    }

    /// These options; of `gen finish` with the number of files that the parts have, unless it is given.
    pub(crate) fn with_files(&self, of_parts: impl FnOnce() -> Result<Option<u32>>) -> Result<Self> {
        let given = self.files.is_some() || self.rows_per_file.is_some() || self.file_size.is_some();
        let files = if self.finish && !given { of_parts()? } else { self.files };
        Ok(Self { files, ..self.clone() })
    }

    /// Requires all of these files to exist.
    ///
    /// # Errors
    /// An option is given that makes files.
    pub(crate) fn finished(mut self) -> Result<Self> {
        let given = [("--part", self.part != Part::WHOLE), ("--overwrite", self.overwrite)];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            let what = format!("{name} with gen finish, which makes no files");
            return Err(Error::usage(what, name, "leave it out"));
        }
        (self.resume, self.finish) = (true, true);
        Ok(self)
    }

    pub(crate) fn existing(&self) -> Existing {
        if self.finish {
            return Existing::Finish;
        }
        match (self.resume, self.overwrite) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Replace,
            _ => Existing::Refuse,
        }
    }
}

/// Rejects row groups of a size that a single value may exceed.
fn fits_in(group: u64, dataset: &Dataset) -> Result<()> {
    match dataset.longest_value() {
        Some((path, longest)) if longest > group => Err(Error::usage(
            format!("a value may take {longest} bytes, more than a row group of {group}"),
            path,
            "give a larger --row-group-size, or shorten the values in the spec",
        )),
        _ => Ok(()),
    }
}
