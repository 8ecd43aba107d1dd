//! The options of a file, checked against the columns of a dataset: one [`ColumnPlan`] for each column.

use sawmill_profile::known_columns;

use crate::draw::value_spec::ValueSpec;
use crate::encode::compression::Compression;
use crate::encode::values::{DICTIONARY_BYTES, Encoding};
use crate::error::{Error, Result};
use crate::layout::file_options::{FileOptions, StatisticsLevel};
use crate::spec::dataset::{Dataset, Field, Leaf};
use crate::types::logical_type::LogicalType;

/// The largest page size, well below the 2 GiB limit of its header.
const MAX_PAGE_BYTES: u64 = 1 << 30;

/// How to write one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ColumnPlan {
    pub encoding: Encoding,
    /// Its codec, among the codecs of the plan.
    pub codec: usize,
    /// Its dictionary contains the sorted values of its list, which are known in advance.
    pub sorted_dictionary: bool,
    /// Chunks with many names use the dictionary of all names.
    pub name_dictionary: bool,
    /// The share of false positives of its Bloom filter.
    pub bloom: Option<f64>,
}

/// The options, checked against a dataset.
#[derive(Debug)]
pub(crate) struct FilePlan<'a> {
    pub options: &'a FileOptions,
    pub dataset: &'a Dataset,
    /// The columns of the file with their fields, in order.
    pub leaves: Vec<(&'a Field, &'a Leaf)>,
    /// The plans of all leaves of the dataset, including one that is not in the file.
    pub columns: Vec<ColumnPlan>,
    /// The different codecs of the columns.
    pub codecs: Vec<Compression>,
    /// The column that is in the folder names instead of the file.
    pub partition: Option<(&'a Field, &'a Leaf)>,
}

impl<'a> FilePlan<'a> {
    /// Checks `options` against the columns of `dataset`.
    ///
    /// # Errors
    /// A column does not exist or has two codecs, a column's type does not allow the encoding, or the page size or
    /// a share of false positives is out of range.
    pub(crate) fn new(
        options: &'a FileOptions,
        dataset: &'a Dataset,
        partition_by: Option<&str>,
    ) -> Result<Self> {
        let mut leaves: Vec<(&Field, &Leaf)> = Vec::with_capacity(dataset.columns());
        dataset.each_column(&mut |field, leaf| leaves.push((field, leaf)));
        if options.page_bytes == 0 || options.page_bytes > MAX_PAGE_BYTES {
            let what = format!("pages of {} bytes", options.page_bytes);
            return Err(Error::spec(what, "the page size", format!("use 1 to {MAX_PAGE_BYTES}")));
        }
        let mut columns: Vec<ColumnPlan> = leaves
            .iter()
            .map(|(_, leaf)| ColumnPlan {
                encoding: match (options.encoding, &leaf.values) {
                    (Some(encoding), _) if encoding.allows(leaf.physical.code()) => encoding,
                    (_, ValueSpec::Choice { .. } | ValueSpec::Computed { repeats: true, .. }) => {
                        Encoding::Dictionary
                    }
                    _ => Encoding::Plain,
                },
                codec: 0,
                sorted_dictionary: false,
                name_dictionary: options.encoding.is_none() && matches!(leaf.values, ValueSpec::PersonName),
                bloom: None,
            })
            .collect();
        choose_encodings(options, dataset, &leaves, &mut columns)?;
        let codecs = choose_codecs(options, &leaves, &mut columns)?;
        for (column, (_, leaf)) in columns.iter_mut().zip(&leaves) {
            column.sorted_dictionary = match &leaf.values {
                ValueSpec::Choice { dictionary, .. } if column.encoding == Encoding::Dictionary => {
                    let bytes: usize = dictionary.entries.iter().map(|entry| entry.len() + 4).sum();
                    bytes <= DICTIONARY_BYTES
                }
                _ => false,
            };
        }
        plan_bloom_filters(options, &leaves, &mut columns)?;
        let partition = partition_by.map(|path| partition_column(dataset, &leaves, path)).transpose()?;
        if let Some((_, leaf)) = partition {
            leaves.retain(|(_, other)| other.index != leaf.index);
        }
        Ok(FilePlan { options, dataset, leaves, columns, codecs, partition })
    }

    /// The codec of a column.
    pub(crate) fn compression(&self, leaf: &Leaf) -> Compression {
        self.codecs[self.columns[leaf.index].codec]
    }

    /// Whether column chunks have statistics.
    pub(crate) fn chunk_statistics(&self) -> bool {
        self.options.statistics >= StatisticsLevel::Chunk
    }

    /// Whether column indexes are written.
    pub(crate) fn column_indexes(&self) -> bool {
        self.options.page_index && self.options.statistics == StatisticsLevel::Page
    }

    /// Whether page headers have statistics.
    pub(crate) fn header_statistics(&self) -> bool {
        !self.options.page_index && self.options.statistics == StatisticsLevel::Page
    }
}

/// Checks the encodings that `options` name, and sets the encodings of single columns.
fn choose_encodings(
    options: &FileOptions,
    dataset: &Dataset,
    leaves: &[(&Field, &Leaf)],
    columns: &mut [ColumnPlan],
) -> Result<()> {
    let allows = |encoding: Encoding, leaf: &Leaf| encoding.allows(leaf.physical.code());
    if let Some(encoding) = options.encoding
        && !leaves.iter().any(|(_, leaf)| allows(encoding, leaf))
    {
        let what = format!("no column can be encoded as {encoding}");
        return Err(Error::spec(what, dataset.name(), "choose another encoding"));
    }
    for (path, encoding) in &options.column_encodings {
        let column = find(leaves, path)?;
        let (field, leaf) = leaves[column];
        if !allows(*encoding, leaf) {
            let allowed = Encoding::ALL.into_iter().filter(|e| allows(*e, leaf)).map(Encoding::name);
            return Err(Error::spec(
                format!("a column of type {} cannot be encoded as {encoding}", leaf.kind.name()),
                format!("column {}", field.path),
                format!("its encodings are {}", allowed.collect::<Vec<_>>().join(", ")),
            ));
        }
        columns[column].encoding = *encoding;
        columns[column].name_dictionary = false;
    }
    Ok(())
}

/// Sets the codecs of the columns that `options` name. Returns the different codecs of all columns.
fn choose_codecs(
    options: &FileOptions,
    leaves: &[(&Field, &Leaf)],
    columns: &mut [ColumnPlan],
) -> Result<Vec<Compression>> {
    let compressions = options.compressions(columns.len(), |path| columns_of(leaves, path))?;
    let mut codecs: Vec<Compression> = Vec::new();
    for (column, compression) in columns.iter_mut().zip(compressions) {
        column.codec = codecs.iter().position(|codec| *codec == compression).unwrap_or_else(|| {
            codecs.push(compression);
            codecs.len() - 1
        });
    }
    Ok(codecs)
}

/// Checks the Bloom filters that `options` name, and adds them to their columns.
fn plan_bloom_filters(
    options: &FileOptions,
    leaves: &[(&Field, &Leaf)],
    columns: &mut [ColumnPlan],
) -> Result<()> {
    for bloom in &options.bloom {
        let column = find(leaves, &bloom.column)?;
        let place = || format!("column {}", leaves[column].0.path);
        if leaves[column].1.physical.code() == 0 {
            return Err(Error::spec(
                "a Bloom filter of booleans, which Parquet does not support",
                place(),
                "remove the filter",
            ));
        }
        if !(bloom.false_positives > 0.0 && bloom.false_positives < 1.0) {
            let what = format!("a share of false positives of {}", bloom.false_positives);
            return Err(Error::spec(what, place(), "use a share between 0 and 1, like 0.01"));
        }
        columns[column].bloom = Some(bloom.false_positives);
        // The filter needs each value.
        columns[column].name_dictionary = false;
    }
    Ok(())
}

/// Finds the partition column and checks it.
fn partition_column<'a>(
    dataset: &'a Dataset,
    leaves: &[(&'a Field, &'a Leaf)],
    path: &str,
) -> Result<(&'a Field, &'a Leaf)> {
    let (field, leaf) = leaves[find(leaves, path)?];
    let place = || format!("column {}", field.path);
    if field.path != field.name {
        let what = "a partition column inside a list or struct";
        return Err(Error::spec(what, place(), "partition by a top-level field"));
    }
    if !can_be_folder(&leaf.kind) {
        let what = format!("a partition column of type {}", leaf.kind.name());
        return Err(Error::spec(what, place(), "partition by a string, a whole number, a boolean or a date"));
    }
    if dataset.fields.len() == 1 {
        let what = "the partition column is the only field, so files would have no columns";
        return Err(Error::spec(what, place(), "add a field, or do not partition"));
    }
    Ok((field, leaf))
}

/// Whether values of a type can be folder names.
fn can_be_folder(kind: &LogicalType) -> bool {
    use LogicalType::{Boolean, Date, Enum, Integer, String};
    matches!(kind, Boolean | Date | Enum | Integer { .. } | String)
}

/// The path without the names that Parquet adds to a list.
fn short(path: &str) -> String {
    path.replace(".list.element", "")
}

/// Finds the column at `path`. The names that Parquet adds to a list (`list.element`) may be omitted.
pub(crate) fn find(leaves: &[(&Field, &Leaf)], path: &str) -> Result<usize> {
    let exact = leaves.iter().position(|(field, _)| field.path == path);
    exact.or_else(|| leaves.iter().position(|(field, _)| short(&field.path) == path)).ok_or_else(|| {
        Error::spec(
            format!("no column is named {path:?}"),
            "the file options",
            known_columns(path, leaves.iter().map(|(field, _)| field.path.as_str())),
        )
    })
}

/// Returns the position of the column at `path`; for a group, the positions of all its columns.
fn columns_of(leaves: &[(&Field, &Leaf)], path: &str) -> Result<Vec<usize>> {
    let in_group = |column: &str| column.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    find(leaves, path).map(|column| vec![column]).or_else(|unknown| {
        let paths = leaves.iter().map(|(field, _)| &field.path).enumerate();
        let group = paths.filter(|(_, column)| in_group(column) || in_group(&short(column)));
        let group: Vec<usize> = group.map(|(column, _)| column).collect();
        if group.is_empty() { Err(unknown) } else { Ok(group) }
    })
}
