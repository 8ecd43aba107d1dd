//! What many files are together: their sums, how their schemas differ, row groups of unusual size, columns
//! without bounds.
//!
//! The thread that decodes a file reduces it to [`Facts`]; [`Dataset`] adds them up.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use sawmill_footer::{ColumnChunk, Footer, Schema};
use serde::Serialize;

use crate::dataset::schema_difference::{self, Difference};
use crate::dataset::summary::FooterSummary;
use crate::file::open_file::name_of;
use crate::text::escape::escaped;
use crate::text::style::{TextStyle, percent};

/// Fewer rows than this in a row group cost DuckDB 5 to 10 times the running time
/// (<https://duckdb.org/docs/stable/guides/performance/file_formats>, "The Effect of Row Group Sizes") ...
pub(crate) const SMALL_ROWS: i64 = 5_000;

/// ... unless the rows are so wide that reading them takes longer than seeking to the row group.
pub(crate) const SMALL_BYTES: i64 = 1_000_000;

/// The upper end of the sizes that parquet-format recommends, 512 MB to 1 GB
/// (<https://parquet.apache.org/docs/file-format/configurations/>). Readers work on whole row groups.
pub(crate) const LARGE_BYTES: i64 = 1 << 30;

/// How many row groups are named; the others are counted.
const NAMED: usize = 10;

/// How many schemas are kept; files of further ones are counted together.
const SCHEMAS: usize = 32;

/// Whether a chunk with values has no bounds, although some of these are not null.
pub(crate) fn lacks_bounds(chunk: &ColumnChunk<'_>) -> Result<bool, sawmill_footer::Error> {
    Ok(chunk.statistics()?.is_none_or(|found| {
        found.min_value.or(found.min).is_none() && found.null_count != Some(chunk.num_values())
    }))
}

/// What a file adds to its dataset.
pub struct Facts {
    schema: Arc<Schema>,
    small: Groups,
    large: Groups,
    /// For each decoded column: its index, its chunks with values, and how many of them lack bounds.
    chunks: Vec<(usize, u64, u64)>,
    fault: Option<sawmill_footer::Error>,
}

/// Row groups of one kind: their number, and where the first are.
#[derive(Default, Serialize)]
struct Groups {
    count: u64,
    first: Vec<GroupPlace>,
}

#[derive(Clone, Serialize)]
struct GroupPlace {
    file: String,
    row_group: usize,
    rows: i64,
    uncompressed_bytes: i64,
}

impl Groups {
    fn add(&mut self, place: impl FnOnce() -> GroupPlace) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(place());
        }
    }

    fn append(&mut self, other: Groups) {
        self.count += other.count;
        let room = NAMED - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }
}

impl Facts {
    /// The facts of a file. The only row group of a file counts as small if the dataset has just this file.
    pub fn new(summary: &FooterSummary, footer: &Footer, several: bool) -> Self {
        let mut facts = Facts {
            schema: footer.shared_schema(),
            small: Groups::default(),
            large: Groups::default(),
            chunks: (0..footer.num_columns()).map(|at| (footer.leaf_of(at).unwrap_or(at), 0, 0)).collect(),
            fault: None,
        };
        let in_file = footer.num_row_groups_in_file();
        for group in footer.row_groups() {
            let (rows, bytes) = (group.num_rows(), group.total_byte_size());
            let place = || GroupPlace {
                file: summary.file.display().to_string(),
                row_group: group.index(),
                rows,
                uncompressed_bytes: bytes,
            };
            // The last row group of a file holds the rest.
            let left_over = group.index() + 1 == in_file && (in_file > 1 || !several);
            if rows < SMALL_ROWS && bytes < SMALL_BYTES && !left_over {
                facts.small.add(place);
            } else if bytes > LARGE_BYTES {
                facts.large.add(place);
            }
            for chunk in group.columns().filter(|chunk| chunk.has_metadata() && chunk.num_values() > 0) {
                let (_, chunks, without) = &mut facts.chunks[chunk.position()];
                *chunks += 1;
                match lacks_bounds(&chunk) {
                    Ok(lacks) => *without += u64::from(lacks),
                    Err(error) => _ = facts.fault.get_or_insert(error),
                }
            }
        }
        facts
    }
}

/// All files together. Serialised, it is the dataset for programs.
#[derive(Default)]
pub struct Dataset {
    sums: Sums,
    small: Groups,
    large: Groups,
    variants: Vec<Variant>,
    /// Files whose schema is not among the first [`SCHEMAS`].
    other_files: u64,
}

#[derive(Default, Serialize)]
struct Sums {
    files: u64,
    rows: i64,
    row_groups: u64,
    file_bytes: u64,
    compressed_bytes: i64,
    uncompressed_bytes: i64,
    footer_bytes: u64,
}

/// Files of one schema.
struct Variant {
    schema: Arc<Schema>,
    files: u64,
    /// The first of them.
    file: String,
    /// For each column: its chunks, and those without bounds.
    chunks: Vec<(u64, u64)>,
}

/// A column with chunks without bounds.
#[derive(Serialize)]
struct Unbounded {
    path: String,
    chunks: u64,
    without: u64,
}

impl Dataset {
    /// Adds a file. Returns the first fault in its statistics, if they have one.
    pub fn add(&mut self, summary: &FooterSummary, facts: Facts) -> Option<sawmill_footer::Error> {
        let sums = &mut self.sums;
        sums.files += 1;
        sums.rows = sums.rows.saturating_add(summary.rows);
        sums.row_groups += summary.row_groups as u64;
        sums.file_bytes = sums.file_bytes.saturating_add(summary.file_bytes.unwrap_or(0));
        sums.compressed_bytes = sums.compressed_bytes.saturating_add(summary.compressed_bytes);
        sums.uncompressed_bytes = sums.uncompressed_bytes.saturating_add(summary.uncompressed_bytes);
        sums.footer_bytes += summary.footer_bytes as u64;
        self.small.append(facts.small);
        self.large.append(facts.large);
        let known =
            self.variants.iter().position(|known| schema_difference::alike(&known.schema, &facts.schema));
        let variant = match known {
            Some(known) => &mut self.variants[known],
            None if self.variants.len() < SCHEMAS => {
                let leaves = facts.schema.num_leaves();
                let file = summary.file.display().to_string();
                self.variants.push(Variant {
                    schema: facts.schema,
                    files: 0,
                    file,
                    chunks: vec![(0, 0); leaves],
                });
                let last = self.variants.len() - 1;
                &mut self.variants[last]
            }
            None => {
                self.other_files += 1;
                return facts.fault;
            }
        };
        variant.files += 1;
        for (leaf, chunks, without) in facts.chunks {
            if let Some(sum) = variant.chunks.get_mut(leaf) {
                sum.0 += chunks;
                sum.1 += without;
            }
        }
        facts.fault
    }

    /// The columns with chunks without bounds, those with most of them first.
    fn unbounded(&self) -> Vec<Unbounded> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        // Most files have bounds for all columns: make no names then.
        let all = self.variants.iter().flat_map(|variant| &variant.chunks);
        if all.into_iter().all(|&(_, without)| without == 0) {
            return Vec::new();
        }
        for variant in &self.variants {
            for (leaf, &(chunks, without)) in variant.schema.leaves().zip(&variant.chunks) {
                let sum = sums.entry(leaf.path()).or_default();
                sum.0 += chunks;
                sum.1 += without;
            }
        }
        let mut unbounded: Vec<Unbounded> = sums
            .into_iter()
            .filter(|(_, (_, without))| *without > 0)
            .map(|(path, (chunks, without))| Unbounded { path, chunks, without })
            .collect();
        unbounded.sort_by_key(|column| std::cmp::Reverse(column.without));
        unbounded
    }

    /// The schemas, the most frequent first, and how the others differ from it.
    fn schemas(&self) -> Vec<(&Variant, Option<Difference>)> {
        let mut variants: Vec<&Variant> = self.variants.iter().collect();
        variants.sort_by_key(|variant| std::cmp::Reverse(variant.files));
        let most = variants.first().map(|variant| &variant.schema);
        let differing = |(i, variant): (usize, &&Variant)| {
            most.filter(|_| i > 0).map(|most| schema_difference::between(most, &variant.schema))
        };
        let differences: Vec<_> = variants.iter().enumerate().map(differing).collect();
        variants.into_iter().zip(differences).collect()
    }

    /// Writes what a table of the files leaves out.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn text(&self, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        let sums = &self.sums;
        writeln!(
            out,
            "{} in {} of {}: {} of files, of which {} footers ({}); {} of pages, \
             {} before compression",
            style.stated_counted(sums.rows, "row"),
            style.counted(sums.row_groups, "row group"),
            style.counted(sums.files, "file"),
            style.bytes(sums.file_bytes),
            style.bytes(sums.footer_bytes),
            percent(sums.footer_bytes, sums.file_bytes),
            style.stated_bytes(sums.compressed_bytes),
            style.stated_bytes(sums.uncompressed_bytes),
        )?;
        self.schemas_text(style, out)?;
        let (rows, bytes) = (style.stated_count(SMALL_ROWS), style.stated_bytes(SMALL_BYTES));
        let large = format!("more than {} before compression", style.stated_bytes(LARGE_BYTES));
        self.small.text("too small", &format!("fewer than {rows} rows and {bytes}"), style, out)?;
        self.large.text("too large", &large, style, out)?;
        self.unbounded_text(style, out)
    }

    fn schemas_text(&self, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        let schemas = self.schemas();
        match schemas.as_slice() {
            [] => return Ok(()),
            [(only, _)] if self.other_files == 0 => {
                let leaves = only.schema.num_leaves() as u64;
                let columns = if leaves == 1 { "column" } else { "columns" };
                return writeln!(out, "one schema, of {} {columns}", style.count(leaves));
            }
            all => {
                let more = if self.other_files > 0 { " and more" } else { "" };
                writeln!(out, "{}{more} schemas:", all.len())?;
            }
        }
        for (variant, difference) in &schemas {
            let file = name_of(variant.file.as_ref());
            let columns = style.count(variant.schema.num_leaves() as u64);
            let difference = difference.as_ref().map_or_else(String::new, |d| format!(": {d}"));
            let files = match variant.files {
                1 => format!("in {file}"),
                n => format!("in {} files, first in {file}", style.count(n)),
            };
            writeln!(out, "  {columns} columns {files}{difference}")?;
        }
        match self.other_files {
            0 => Ok(()),
            others => writeln!(out, "  others in {} files", style.count(others)),
        }
    }

    fn unbounded_text(&self, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        let unbounded = self.unbounded();
        if unbounded.is_empty() {
            return Ok(());
        }
        writeln!(out, "{} without bounds:", style.counted(unbounded.len() as u64, "column"))?;
        for column in unbounded.iter().take(NAMED) {
            let (without, chunks) = (style.count(column.without), style.count(column.chunks));
            writeln!(out, "  {} in {without} of {chunks} chunks", escaped(&column.path))?;
        }
        match unbounded.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => writeln!(out, "  and {} more", style.count(more as u64)),
        }
    }
}

impl Groups {
    fn text(&self, kind: &str, rule: &str, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        writeln!(out, "{} {kind} ({rule}):", style.counted(self.count, "row group"))?;
        for place in &self.first {
            let GroupPlace { file, row_group, rows, uncompressed_bytes } = place;
            let (rows, size) = (style.stated_count(*rows), style.stated_bytes(*uncompressed_bytes));
            writeln!(out, "  row group {row_group} of {}: {rows} rows, {size}", escaped(file))?;
        }
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            writeln!(out, "  and {} more", style.count(more))?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct DatasetDoc<'a> {
    #[serde(flatten)]
    sums: &'a Sums,
    schemas: Vec<SchemaVariant<'a>>,
    files_of_other_schemas: u64,
    row_groups_too_small: &'a Groups,
    row_groups_too_large: &'a Groups,
    columns_without_bounds: Vec<Unbounded>,
}

#[derive(Serialize)]
struct SchemaVariant<'a> {
    files: u64,
    first_file: &'a str,
    columns: usize,
    difference: Option<Difference>,
}

impl Serialize for Dataset {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let variant = |(of, difference)| {
            let of: &Variant = of;
            SchemaVariant {
                files: of.files,
                first_file: &of.file,
                columns: of.schema.num_leaves(),
                difference,
            }
        };
        DatasetDoc {
            sums: &self.sums,
            schemas: self.schemas().into_iter().map(variant).collect(),
            files_of_other_schemas: self.other_files,
            row_groups_too_small: &self.small,
            row_groups_too_large: &self.large,
            columns_without_bounds: self.unbounded(),
        }
        .serialize(serializer)
    }
}
