//! What many files are together: their sum, schemas that differ and where, row groups of unusual
//! size, columns without statistics.
//!
//! Each file is reduced to [`Facts`] on the thread that decoded it; [`Dataset`] adds them up.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use sawmill_footer::{Footer, Schema};
use serde::Serialize;

use crate::footer::files::open_file::name_of;
use crate::footer::text::escape::{escaped, percent};
use crate::footer::views::schema_difference::{self, Difference};
use crate::footer::views::summary::{FooterSummary, count, size};
use crate::screen::phases::{bytes, thousands};

/// Fewer rows than this in a row group cost DuckDB 5 to 10 times the running time
/// (<https://duckdb.org/docs/stable/guides/performance/file_formats>, "The Effect of Row Group Sizes") ...
const SMALL_ROWS: i64 = 5_000;

/// ... unless the rows are so wide that reading them takes longer than turning to the row group.
const SMALL_BYTES: i64 = 1_000_000;

/// The upper end of the sizes that parquet-format recommends, 512 MB to 1 GB
/// (<https://parquet.apache.org/docs/file-format/configurations/>). Readers work on whole row groups.
const LARGE_BYTES: i64 = 1 << 30;

/// Row groups that are named; the others are counted.
const NAMED: usize = 10;

/// Schemas that are told apart; files of further ones are counted together.
const SCHEMAS: usize = 32;

/// What a file has to say of the dataset it is part of.
pub(crate) struct Facts {
    schema: Arc<Schema>,
    small: Groups,
    large: Groups,
    /// Chunks with values, and those of them without statistics, of every decoded column.
    chunks: Vec<(usize, u64, u64)>,
    fault: Option<sawmill_footer::Error>,
}

/// Row groups of a kind: how many, and where the first stand.
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

/// The facts of a file, which is one of several if `several`.
pub(crate) fn facts(summary: &FooterSummary, footer: &Footer, several: bool) -> Facts {
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
        // The last row group of a file is what was left over.
        let left_over = group.index() + 1 == in_file && (in_file > 1 || !several);
        if rows < SMALL_ROWS && bytes < SMALL_BYTES && !left_over {
            facts.small.add(place);
        } else if bytes > LARGE_BYTES {
            facts.large.add(place);
        }
        for chunk in group.columns().filter(|chunk| chunk.has_metadata() && chunk.num_values() > 0) {
            let (_, chunks, without) = &mut facts.chunks[chunk.position()];
            *chunks += 1;
            match chunk.statistics() {
                Ok(Some(found)) if found.min_value.is_some() || found.min.is_some() => {}
                // All nulls: there is no bound to give.
                Ok(Some(found)) if found.null_count == Some(chunk.num_values()) => {}
                Ok(_) => *without += 1,
                Err(error) => {
                    facts.fault.get_or_insert(error);
                }
            }
        }
    }
    facts
}

/// All files together.
#[derive(Default)]
pub(crate) struct Dataset {
    files: u64,
    rows: i64,
    row_groups: u64,
    file_bytes: u64,
    compressed_bytes: i64,
    uncompressed_bytes: i64,
    footer_bytes: u64,
    small: Groups,
    large: Groups,
    variants: Vec<Variant>,
    /// Files whose schema is none of the first [`SCHEMAS`].
    other_files: u64,
}

/// Files of one schema.
struct Variant {
    schema: Arc<Schema>,
    files: u64,
    /// The first of them.
    file: String,
    /// Chunks, and those without statistics, by column.
    chunks: Vec<(u64, u64)>,
}

/// A column of which chunks have no bounds.
#[derive(Serialize)]
struct Bare {
    path: String,
    chunks: u64,
    without: u64,
}

impl Dataset {
    /// Adds a file; gives back a fault that was met in its statistics.
    pub(crate) fn add(&mut self, summary: &FooterSummary, facts: Facts) -> Option<sawmill_footer::Error> {
        self.files += 1;
        self.rows = self.rows.saturating_add(summary.rows);
        self.row_groups += summary.row_groups as u64;
        self.file_bytes = self.file_bytes.saturating_add(summary.file_bytes.unwrap_or(0));
        self.compressed_bytes = self.compressed_bytes.saturating_add(summary.compressed_bytes);
        self.uncompressed_bytes = self.uncompressed_bytes.saturating_add(summary.uncompressed_bytes);
        self.footer_bytes += summary.footer_bytes as u64;
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

    /// The columns of which chunks have no bounds, the worst first.
    fn bare(&self) -> Vec<Bare> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        // Most files have statistics for all columns: make no names then.
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
        let mut bare: Vec<Bare> = sums
            .into_iter()
            .filter(|(_, (_, without))| *without > 0)
            .map(|(path, (chunks, without))| Bare { path, chunks, without })
            .collect();
        bare.sort_by_key(|column| std::cmp::Reverse(column.without));
        bare
    }

    /// The schemas, the one of most files first, and how the others differ from it.
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

    /// The dataset for people: what a table of its files does not say.
    pub(crate) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{} rows in {} row groups of {} files: {} of files, of which {} footers ({}); {} of pages, {} before compression",
            count(self.rows),
            thousands(self.row_groups),
            thousands(self.files),
            bytes(self.file_bytes),
            bytes(self.footer_bytes),
            percent(self.footer_bytes, self.file_bytes),
            size(self.compressed_bytes),
            size(self.uncompressed_bytes),
        )?;
        let schemas = self.schemas();
        match schemas.as_slice() {
            [] => {}
            [(only, _)] if self.other_files == 0 => {
                writeln!(out, "one schema, of {} columns", thousands(only.schema.num_leaves() as u64))?;
            }
            all => {
                writeln!(
                    out,
                    "{}{} schemas:",
                    all.len(),
                    if self.other_files > 0 { " and more" } else { "" }
                )?;
                for (variant, difference) in all {
                    let file = name_of(variant.file.as_ref());
                    let columns = thousands(variant.schema.num_leaves() as u64);
                    let difference = difference.as_ref().map_or_else(String::new, |d| format!(": {d}"));
                    let files = match variant.files {
                        1 => format!("in {file}"),
                        n => format!("in {} files, first in {file}", thousands(n)),
                    };
                    writeln!(out, "  {columns} columns {files}{difference}")?;
                }
                if self.other_files > 0 {
                    writeln!(out, "  others in {} files", thousands(self.other_files))?;
                }
            }
        }
        let small = format!("fewer than {} rows and {}", count(SMALL_ROWS), size(SMALL_BYTES));
        let large = format!("more than {} before compression", size(LARGE_BYTES));
        self.small.text("too small", &small, out)?;
        self.large.text("too large", &large, out)?;
        let bare = self.bare();
        if !bare.is_empty() {
            writeln!(out, "{} columns without bounds:", thousands(bare.len() as u64))?;
            for column in bare.iter().take(NAMED) {
                let (without, chunks) = (thousands(column.without), thousands(column.chunks));
                writeln!(out, "  {} in {without} of {chunks} chunks", escaped(&column.path))?;
            }
            if bare.len() > NAMED {
                writeln!(out, "  and {} more", thousands((bare.len() - NAMED) as u64))?;
            }
        }
        Ok(())
    }
}

impl Groups {
    fn text(&self, kind: &str, rule: &str, out: &mut dyn Write) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        writeln!(out, "{} row groups {kind} ({rule}):", thousands(self.count))?;
        for place in &self.first {
            let GroupPlace { file, row_group, rows, uncompressed_bytes } = place;
            let (rows, size) = (count(*rows), size(*uncompressed_bytes));
            writeln!(out, "  row group {row_group} of {}: {rows} rows, {size}", escaped(file))?;
        }
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            writeln!(out, "  and {} more", thousands(more))?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct DatasetDoc<'a> {
    files: u64,
    rows: i64,
    row_groups: u64,
    file_bytes: u64,
    compressed_bytes: i64,
    uncompressed_bytes: i64,
    footer_bytes: u64,
    schemas: Vec<SchemaVariant<'a>>,
    files_of_other_schemas: u64,
    row_groups_too_small: &'a Groups,
    row_groups_too_large: &'a Groups,
    columns_without_bounds: Vec<Bare>,
}

#[derive(Serialize)]
struct SchemaVariant<'a> {
    files: u64,
    first_file: &'a str,
    columns: usize,
    difference: Option<Difference>,
}

/// The dataset for programs.
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
            files: self.files,
            rows: self.rows,
            row_groups: self.row_groups,
            file_bytes: self.file_bytes,
            compressed_bytes: self.compressed_bytes,
            uncompressed_bytes: self.uncompressed_bytes,
            footer_bytes: self.footer_bytes,
            schemas: self.schemas().into_iter().map(variant).collect(),
            files_of_other_schemas: self.other_files,
            row_groups_too_small: &self.small,
            row_groups_too_large: &self.large,
            columns_without_bounds: self.bare(),
        }
        .serialize(serializer)
    }
}
