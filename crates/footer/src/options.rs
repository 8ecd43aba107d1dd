//! What to decode: which columns, which row groups, how much of them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::decode::scan::RowGroupFields;
use crate::error::Error;
use crate::matching::kernel::Method;
use crate::schema::arena::Schema;
use crate::schema::columns::{self, ColumnSelector};

/// The bytes read from the end of a file at first: enough for the footers of most files, and no more
/// than what a disk or an object store gives in one go.
pub const DEFAULT_TAIL_HINT: usize = 64 * 1024;

/// The longest footer that is read, unless said otherwise: 1 GiB. Four times as long as one of 100,000 columns in 20 row
/// groups.
pub const DEFAULT_MAX_FOOTER: u64 = 1 << 30;

/// What [`Footer`](crate::Footer) is to decode. Everything, unless said otherwise.
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
    pub(crate) method: Method,
    pub(crate) threads: usize,
}

/// Of which chunks statistics are wanted. Of others a footer gives none, as if the file had none.
#[derive(Debug, Clone, Default)]
pub enum StatisticsPolicy {
    /// Of none.
    None,
    /// Of the chunks of these columns.
    Columns(Vec<ColumnSelector>),
    /// Of all decoded chunks, when asked for.
    #[default]
    All,
}

/// Which page indexes are read together with the footer, where it is read from a file.
#[derive(Debug, Clone, Default)]
pub enum PageIndexPolicy {
    /// None: they are read when asked for.
    #[default]
    None,
    /// Those of these columns in these row groups.
    Chunks(Vec<ColumnSelector>, Range<usize>),
    /// Those of all decoded chunks.
    All,
}

/// How much of a footer is looked at while it is decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verify {
    /// What is decoded. Other values are looked at when asked for.
    #[default]
    Decoded,
    /// All values of the wanted chunks: malformed statistics and the like are an error of the decoding.
    Values,
    /// All of that, and what [`Footer::check`](crate::Footer::check) finds is an error, too.
    Consistency,
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
            method: Method::Fastest,
            threads: 1,
        }
    }
}

impl Options {
    /// Decode everything; statistics and other rare values when they are asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decode the columns that these select, among those that other calls name.
    pub fn select(mut self, selectors: impl IntoIterator<Item = ColumnSelector>) -> Self {
        self.columns.get_or_insert_default().extend(selectors);
        self
    }

    /// Decode the columns of these indices, among those that other calls name.
    pub fn columns(self, indices: impl IntoIterator<Item = usize>) -> Self {
        self.select(indices.into_iter().map(ColumnSelector::Index))
    }

    /// Decode the columns at or below these paths (names joined by dots).
    pub fn column_paths<S: Into<String>>(self, paths: impl IntoIterator<Item = S>) -> Self {
        self.select(paths.into_iter().map(|path| ColumnSelector::Path(path.into())))
    }

    /// Decode all columns below these top-level fields.
    pub fn column_roots<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.select(names.into_iter().map(|name| ColumnSelector::Root(name.into())))
    }

    /// Decode the columns whose paths match these patterns: `*` stands for any part of a name, `**` for any
    /// part of a path, `?` for one character of a name, and what follows a `\` for itself.
    pub fn column_globs<S: Into<String>>(self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.select(patterns.into_iter().map(|pattern| ColumnSelector::Glob(pattern.into())))
    }

    /// Decode the row groups of these indices; those beyond the last are not missed.
    ///
    /// The walk stops behind the last of them. What follows the row groups in the footer (key-value
    /// metadata, the writer's name, column orders) is walked to when somebody asks for it.
    pub fn row_groups(mut self, range: Range<usize>) -> Self {
        self.row_groups = RowGroups::Range(range);
        self
    }

    /// Decode the row groups whose first byte of data lies in this range of the file, as planners do
    /// that split a file by bytes: ranges that cover a file without overlap share its row groups out.
    pub fn row_groups_in_bytes(mut self, range: Range<u64>) -> Self {
        self.row_groups = RowGroups::Bytes(range);
        self
    }

    /// Decode the row groups for whose number of rows `wanted` is true.
    pub fn row_groups_where(mut self, wanted: impl Fn(i64) -> bool + Send + Sync + 'static) -> Self {
        self.row_groups = RowGroups::Where(Arc::new(wanted));
        self
    }

    /// Which chunks' statistics are wanted. All, unless said otherwise; they are decoded when asked for.
    pub fn statistics(mut self, policy: StatisticsPolicy) -> Self {
        self.statistics = policy;
        self
    }

    /// Which page indexes to read together with the footer: [`Footer::page_indexes`] has them then. None,
    /// unless said otherwise. Without a file to read from (as in [`Footer::decode`]) none are read.
    ///
    /// [`Footer::page_indexes`]: crate::Footer::page_indexes
    /// [`Footer::decode`]: crate::Footer::decode
    pub fn page_indexes(mut self, policy: PageIndexPolicy) -> Self {
        self.page_indexes = policy;
        self
    }

    /// How much of the footer to look at while decoding.
    pub fn verify(mut self, level: Verify) -> Self {
        self.verify = level;
        self
    }

    /// Take this schema instead of decoding the footer's, as for many files of one table. The number
    /// of columns must be the file's.
    pub fn schema(mut self, schema: Arc<Schema>) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The bytes to read from the end of a file at first; a longer footer costs a second read.
    pub fn tail_hint(mut self, bytes: usize) -> Self {
        self.tail_hint = bytes;
        self
    }

    /// Refuse footers that are longer than this before memory is taken for them: the last eight bytes of a file may claim
    /// up to 4 GiB. [`DEFAULT_MAX_FOOTER`], unless said otherwise.
    pub fn max_footer(mut self, bytes: u64) -> Self {
        self.max_footer = bytes;
        self
    }

    /// Share row groups out among up to this many threads, where there are enough column chunks for it
    /// to pay. One, unless said otherwise.
    pub fn threads(mut self, threads: usize) -> Self {
        // Row groups are walked from guessed starts: more threads than this only make more guesses.
        self.threads = threads.clamp(1, 64);
        self
    }

    /// Decode in this way; for comparisons.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The wanted columns in ascending order; none for all.
    pub(crate) fn wanted_columns(&self, schema: &Schema) -> Result<Option<Vec<u32>>, Error> {
        self.columns.as_deref().map(|selectors| columns::leaves(selectors, schema)).transpose()
    }

    /// The columns whose statistics are wanted, in ascending order; none for all.
    pub(crate) fn columns_with_statistics(&self, schema: &Schema) -> Result<Option<Vec<u32>>, Error> {
        match &self.statistics {
            StatisticsPolicy::All => Ok(None),
            StatisticsPolicy::None => Ok(Some(Vec::new())),
            StatisticsPolicy::Columns(selectors) => columns::leaves(selectors, schema).map(Some),
        }
    }

    /// The wanted row groups, if indices say which.
    pub(crate) fn range(&self) -> Option<Range<usize>> {
        match &self.row_groups {
            RowGroups::Range(range) => Some(range.start..range.end.max(range.start)),
            _ => None,
        }
    }

    /// Whether it takes a row group's fields to know whether it is wanted.
    pub(crate) fn looks_inside(&self) -> bool {
        matches!(self.row_groups, RowGroups::Bytes(_) | RowGroups::Where(_))
    }

    /// Whether a row group is wanted whose fields are known; `first_byte` is where its data starts.
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
