//! Which small files to merge, and what that saves whoever reads them.
//!
//! ```text
//! files, in order ─by directory and schema─▶ runs of small files ─up to the target size─▶ groups to merge
//! ```
//!
//! A merge keeps the bytes of the pages and needs one footer instead of many. How long merged footers will be
//! depends on the writer and its row groups, so the plan states what there is, and how many files it saves.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sawmill_footer::{Footer, Schema};
use serde::Serialize;

use crate::dataset::schema_difference::alike;
use crate::dataset::summary::FooterSummary;
use crate::file::open_file::name_of;
use crate::text::style::TextStyle;
use crate::text::table::Table;

/// A plan for merging the small files of a dataset, made file by file in their order.
#[derive(Default)]
pub struct MergePlan {
    target: u64,
    /// Groups that may still grow, one for each directory and schema.
    open: Vec<Open>,
    groups: Vec<MergeGroup>,
    kept: Total,
    all: Total,
    /// Files that are a footer alone.
    without_data: u64,
    /// The files so far, without links.
    seen: HashSet<PathBuf>,
}

struct Open {
    directory: PathBuf,
    schema: Arc<Schema>,
    group: MergeGroup,
}

/// Files to merge into one.
#[derive(Clone, Debug, Default, Serialize)]
struct MergeGroup {
    files: Vec<String>,
    #[serde(flatten)]
    total: Total,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Total {
    number_of_files: u64,
    rows: i64,
    row_groups: u64,
    file_bytes: u64,
    footer_bytes: u64,
}

impl Total {
    fn add(&mut self, summary: &FooterSummary) {
        self.number_of_files += 1;
        self.rows = self.rows.saturating_add(summary.rows);
        self.row_groups += summary.row_groups as u64;
        self.file_bytes = self.file_bytes.saturating_add(summary.file_bytes.unwrap_or(0));
        self.footer_bytes += summary.footer_bytes as u64;
    }

    fn append(&mut self, other: &Total) {
        self.number_of_files += other.number_of_files;
        self.rows = self.rows.saturating_add(other.rows);
        self.row_groups += other.row_groups;
        self.file_bytes = self.file_bytes.saturating_add(other.file_bytes);
        self.footer_bytes += other.footer_bytes;
    }
}

impl MergePlan {
    /// A plan for files of up to `target` bytes each. Files of more than half of that stay as they are: no
    /// two of them fit together.
    pub fn new(target: u64) -> Self {
        MergePlan { target, ..Self::default() }
    }

    /// Adds the next file, unless it was added by this name or another one; a footer alone is only counted.
    pub fn add(&mut self, summary: &FooterSummary, footer: &Footer) {
        if !self.seen.insert(summary.file.canonicalize().unwrap_or_else(|_| summary.file.clone())) {
            return;
        }
        if footer.has_no_data() {
            self.without_data += 1;
            return;
        }
        self.all.add(summary);
        let bytes = summary.file_bytes.unwrap_or(u64::MAX);
        if bytes > self.target / 2 {
            return self.kept.add(summary);
        }
        let directory = summary.file.parent().unwrap_or(Path::new(""));
        let schema = footer.shared_schema();
        let fits = |open: &Open| open.directory == directory && alike(&open.schema, &schema);
        let place = match self.open.iter().position(fits) {
            Some(place) => place,
            None => {
                let group = MergeGroup::default();
                self.open.push(Open { directory: directory.to_owned(), schema, group });
                self.open.len() - 1
            }
        };
        if self.open[place].group.total.file_bytes.saturating_add(bytes) > self.target {
            let full = std::mem::take(&mut self.open[place].group);
            self.close(full);
        }
        let group = &mut self.open[place].group;
        group.files.push(summary.file.display().to_string());
        group.total.add(summary);
    }

    /// Ends the plan after the last file.
    pub fn finish(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.close(open.group);
        }
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.total.number_of_files));
    }

    /// Takes a group into the plan; a single file needs no merge.
    fn close(&mut self, group: MergeGroup) {
        match group.files.len() {
            ..=1 => self.kept.append(&group.total),
            _ => self.groups.push(group),
        }
    }

    fn merged(&self) -> Total {
        let mut total = Total::default();
        self.groups.iter().for_each(|group| total.append(&group.total));
        total
    }

    /// Writes the plan as a table of groups, each with its first and last file, and its gain.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn text(&self, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        if self.without_data > 0 {
            let files = style.counted(self.without_data, "file");
            let are = if self.without_data == 1 { "that is only a footer" } else { "that are only footers" };
            writeln!(out, "left out {files} {are}")?;
        }
        let merged = self.merged();
        if self.groups.is_empty() {
            return writeln!(
                out,
                "nothing to merge: no two of {} in one directory, with one schema, fit into {}",
                style.counted(self.all.number_of_files, "file"),
                style.bytes(self.target),
            );
        }
        let mut table =
            Table::new("merge>, files>, rows>, row groups>, bytes>, footers>, first file, last file");
        for (number, group) in self.groups.iter().enumerate() {
            let named = |file: Option<&String>| file.map_or(String::new(), |file| name_of(file.as_ref()));
            table.row(&[
                &(number + 1),
                &style.count(group.total.number_of_files),
                &style.stated_count(group.total.rows),
                &style.count(group.total.row_groups),
                &style.bytes(group.total.file_bytes),
                &style.bytes(group.total.footer_bytes),
                &named(group.files.first()),
                &named(group.files.last()),
            ]);
        }
        table.write(out)?;
        let after = self.groups.len() as u64 + self.kept.number_of_files;
        writeln!(
            out,
            "\n{} files would become {}: {} fewer files to open, each with a footer to read (the footers of \
             the files to merge have {}). {} files stay as they are.",
            style.count(self.all.number_of_files),
            style.count(after),
            style.count(self.all.number_of_files - after),
            style.bytes(merged.footer_bytes),
            style.count(self.kept.number_of_files),
        )?;
        let small = merged.row_groups > 0 && merged.rows / (merged.row_groups as i64) < WHOLE_ROW_GROUP / 8;
        if small {
            writeln!(
                out,
                "Their row groups have {} rows on average: write them again with up to {} rows each, instead \
                 of copying them.",
                style.stated_count(merged.rows / merged.row_groups as i64),
                style.stated_count(WHOLE_ROW_GROUP),
            )?;
        }
        Ok(())
    }
}

/// As many rows as the `parquet` crate's writer, pyarrow and others put into a row group by default.
const WHOLE_ROW_GROUP: i64 = 1 << 20;

#[derive(Serialize)]
struct PlanDoc<'a> {
    target_bytes: u64,
    files: u64,
    files_after: u64,
    merge: &'a [MergeGroup],
    merged: Total,
    kept: Total,
    without_data: u64,
}

impl Serialize for MergePlan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlanDoc {
            target_bytes: self.target,
            files: self.all.number_of_files,
            files_after: self.groups.len() as u64 + self.kept.number_of_files,
            merge: &self.groups,
            merged: self.merged(),
            kept: self.kept,
            without_data: self.without_data,
        }
        .serialize(serializer)
    }
}
