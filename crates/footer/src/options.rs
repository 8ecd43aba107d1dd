//! What to decode: which columns, which row groups, and how thoroughly.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::decode::scan::RowGroupFields;
use crate::error::Result;
use crate::matching::kernel::Method;
use crate::schema::arena::Schema;
use crate::schema::columns::{self, ColumnSelector};

/// The bytes to read first from the end of a file: enough for most footers, and no more than a disk or an
/// object store returns at once.
pub(crate) const DEFAULT_TAIL_HINT: usize = 64 * 1024;

/// The default limit for the length of a footer: 1 GiB, four times the footer of 100,000 columns in 20 row groups.
pub const DEFAULT_MAX_FOOTER: u64 = 1 << 30;

/// The default limit for page indexes read at once: 1 GiB, several times the indexes of 100,000 columns in 20 row
/// groups.
pub const DEFAULT_MAX_PAGE_INDEXES: u64 = 1 << 30;

/// What [`Footer`](crate::Footer) decodes: everything by default.
///
/// Setters only keep their arguments. Their descriptions say what an option saves or costs when a footer is decoded.
///
/// ```
/// # use sawmill_footer::Options;
/// let options = Options::new().column_paths(["address.city"]).row_groups(0..4);
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) columns: Option<Vec<ColumnSelector>>,
    pub(crate) row_groups: RowGroups,
    pub(crate) statistics: StatisticsPolicy,
    pub(crate) page_indexes: PageIndexPolicy,
    pub(crate) verify: Verify,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) tail_hint: usize,
    pub(crate) max_footer: u64,
    pub(crate) max_page_indexes: u64,
    pub(crate) method: Method,
    pub(crate) threads: usize,
}

/// The chunks whose statistics the footer returns. For others it returns none, as if the file had none.
#[derive(Debug, Clone, Default)]
pub enum StatisticsPolicy {
    /// No chunks.
    None,
    /// The chunks of these columns.
    Columns(Vec<ColumnSelector>),
    /// All decoded chunks, on demand.
    #[default]
    All,
}

/// Which page indexes to read together with the footer of a file.
#[derive(Debug, Clone, Default)]
pub enum PageIndexPolicy {
    /// None: they are read on demand.
    #[default]
    None,
    /// Of these columns in these row groups.
    Chunks(Vec<ColumnSelector>, Range<usize>),
    /// Of all decoded chunks.
    All,
}

/// How much of a footer to verify while decoding it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verify {
    /// Only decoded values. Other values are verified on demand.
    #[default]
    Decoded,
    /// All values of the wanted chunks: malformed statistics, for example, fail the decoding.
    Values,
}

/// Which row groups are wanted.
#[derive(Clone)]
pub(crate) enum RowGroups {
    All,
    Range(Range<usize>),
    Bytes(Range<u64>),
    Where(Arc<dyn Fn(i64) -> bool + Send + Sync>),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            columns: None,
            row_groups: RowGroups::All,
            statistics: StatisticsPolicy::All,
            page_indexes: PageIndexPolicy::None,
            verify: Verify::Decoded,
            schema: None,
            tail_hint: DEFAULT_TAIL_HINT,
            max_footer: DEFAULT_MAX_FOOTER,
            max_page_indexes: DEFAULT_MAX_PAGE_INDEXES,
            method: Method::Fastest,
            threads: 1,
        }
    }
}

impl Options {
    /// Decodes everything; statistics and other rare values on demand.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also decodes the columns that these selectors match. Calls add up.
    pub fn select(mut self, selectors: impl IntoIterator<Item = ColumnSelector>) -> Self {
        self.columns.get_or_insert_default().extend(selectors);
        self
    }

    /// Also decodes the columns with these indices. Calls add up.
    pub fn columns(self, indices: impl IntoIterator<Item = usize>) -> Self {
        self.select(indices.into_iter().map(ColumnSelector::Index))
    }

    /// Decodes the columns at or below these paths (names joined by dots).
    pub fn column_paths<S: Into<String>>(self, paths: impl IntoIterator<Item = S>) -> Self {
        self.select(paths.into_iter().map(|path| ColumnSelector::Path(path.into())))
    }

    /// Decodes all columns below these top-level fields.
    pub fn column_roots<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.select(names.into_iter().map(|name| ColumnSelector::Root(name.into())))
    }

    /// Decodes the columns whose paths match these patterns: `*` matches any part of a name, `**` any part of
    /// a path, `?` one character of a name, and `\` escapes the next character.
    pub fn column_globs<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.select(patterns.into_iter().map(|pattern| ColumnSelector::Glob(pattern.into())))
    }

    /// Decodes the row groups with these indices; indices past the last row group are ignored.
    ///
    /// The walk stops after the last of them. The fields after the row groups (key-value metadata,
    /// `created_by`, column orders) are read on demand.
    pub fn row_groups(self, range: Range<usize>) -> Self {
        Self { row_groups: RowGroups::Range(range), ..self }
    }

    /// Decodes the row groups whose first byte of data is in this range of the file, for planners that split
    /// a file by bytes: ranges that cover a file without overlap assign every row group exactly once.
    pub fn row_groups_in_bytes(self, range: Range<u64>) -> Self {
        Self { row_groups: RowGroups::Bytes(range), ..self }
    }

    /// Decodes the row groups for whose number of rows `wanted` returns true.
    pub fn row_groups_where(self, wanted: impl Fn(i64) -> bool + Send + Sync + 'static) -> Self {
        Self { row_groups: RowGroups::Where(Arc::new(wanted)), ..self }
    }

    /// Selects the chunks whose statistics are wanted: all by default. They are decoded on demand.
    pub fn statistics(self, policy: StatisticsPolicy) -> Self {
        Self { statistics: policy, ..self }
    }

    /// Selects the page indexes to read together with the footer, available as [`Footer::page_indexes`]: none
    /// by default. Without a file, as in [`Footer::decode`], none are read.
    ///
    /// [`Footer::page_indexes`]: crate::Footer::page_indexes
    /// [`Footer::decode`]: crate::Footer::decode
    pub fn page_indexes(self, policy: PageIndexPolicy) -> Self {
        Self { page_indexes: policy, ..self }
    }

    /// Sets how much of the footer to verify while decoding.
    pub fn verify(self, level: Verify) -> Self {
        Self { verify: level, ..self }
    }

    /// Uses this schema instead of decoding the footer's, for many files of one table. It must have as many
    /// columns as the file.
    pub fn schema(self, schema: Arc<Schema>) -> Self {
        Self { schema: Some(schema), ..self }
    }

    /// Sets how many bytes to read first from the end of a file, by default 64 KiB; a longer footer costs a
    /// second read.
    pub fn tail_hint(self, bytes: usize) -> Self {
        Self { tail_hint: bytes, ..self }
    }

    /// Rejects longer footers before allocating memory for them: the last eight bytes of a file may claim up
    /// to 4 GiB. The default is [`DEFAULT_MAX_FOOTER`].
    pub fn max_footer(self, bytes: u64) -> Self {
        Self { max_footer: bytes, ..self }
    }

    /// Rejects page indexes that are longer than this together, before reading them: a footer may claim any
    /// number of any length. Decoded, they take up to some twenty times as much memory, usually twice as much.
    /// The default is [`DEFAULT_MAX_PAGE_INDEXES`].
    ///
    /// Whatever the limit, indexes that together are longer than their file are an error: some of them
    /// overlap.
    pub fn max_page_indexes(self, bytes: u64) -> Self {
        Self { max_page_indexes: bytes, ..self }
    }

    /// Opens many files on up to this many threads ([`Footer::open_many`](crate::Footer::open_many)). The default is
    /// one.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// Sets the decoding method, for comparisons.
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The wanted columns in ascending order; `None` for all.
    pub(crate) fn wanted_columns(&self, schema: &Schema) -> Result<Option<Vec<u32>>> {
        self.columns.as_deref().map(|selectors| columns::leaves(selectors, schema)).transpose()
    }

    /// The columns whose statistics are wanted, in ascending order; `None` for all.
    pub(crate) fn columns_with_statistics(&self, schema: &Schema) -> Result<Option<Vec<u32>>> {
        match &self.statistics {
            StatisticsPolicy::All => Ok(None),
            StatisticsPolicy::None => Ok(Some(Vec::new())),
            StatisticsPolicy::Columns(selectors) => columns::leaves(selectors, schema).map(Some),
        }
    }

    /// The wanted row groups, if selected by index.
    pub(crate) fn range(&self) -> Option<Range<usize>> {
        match &self.row_groups {
            RowGroups::Range(range) => Some(range.start..range.end.max(range.start)),
            _ => None,
        }
    }

    /// Whether selecting a row group requires its fields.
    pub(crate) fn looks_inside(&self) -> bool {
        matches!(self.row_groups, RowGroups::Bytes(_) | RowGroups::Where(_))
    }

    /// Whether a row group with these fields is wanted; `first_byte` is where its data starts.
    pub(crate) fn wants(&self, fields: &RowGroupFields, first_byte: u64) -> bool {
        match &self.row_groups {
            RowGroups::Bytes(range) => range.contains(&first_byte),
            RowGroups::Where(wanted) => wanted(fields.num_rows),
            RowGroups::All | RowGroups::Range(_) => true,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row_groups = match &self.row_groups {
            RowGroups::All => "all".to_string(),
            RowGroups::Range(range) => format!("{range:?}"),
            RowGroups::Bytes(range) => format!("bytes {range:?}"),
            RowGroups::Where(_) => "a predicate".to_string(),
        };
        f.debug_struct("Options")
            .field("columns", &self.columns)
            .field("row_groups", &row_groups)
            .field("statistics", &self.statistics)
            .field("page_indexes", &self.page_indexes)
            .field("verify", &self.verify)
            .field("schema_given", &self.schema.is_some())
            .field("tail_hint", &self.tail_hint)
            .finish()
    }
}
