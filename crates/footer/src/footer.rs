//! A decoded footer.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::encryption::EncryptionAlgorithm;
use crate::chunk::row_group::RowGroup;
use crate::decode::carried::Carried;
use crate::decode::file_metadata::{self, Decoded};
use crate::decode::trailing_fields::Tail;
use crate::error::{Error, Fault, Result};
use crate::matching::kernel::Method;
use crate::open::buffer::FooterBytes;
use crate::open::source::RangeReader;
use crate::open::tail;
use crate::options::{Options, PageIndexPolicy};
use crate::page_index::indexes::PageIndexes;
use crate::schema::arena::Schema;
use crate::schema::enums::ColumnOrder;
use crate::thrift::dump;
use crate::thrift::format::{COLUMN_CHUNK, FILE_META_DATA};

/// The flat metadata of a Parquet file: the footer's bytes, one arena for the schema, 32 bytes per column chunk.
/// Accessors decode everything else from the footer's bytes on demand.
///
/// Accessors cost a few loads unless their description says more. A clone copies the tables, not the bytes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use sawmill_footer::{Footer, Options};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("example.parquet");
/// # let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("id", arrow_schema::DataType::Int64, false)]);
/// # let column = std::sync::Arc::new(arrow_array::Int64Array::from(vec![1, 2, 3]));
/// # let batch = arrow_array::RecordBatch::try_new(schema.into(), vec![column])?;
/// # let mut writer = parquet::arrow::ArrowWriter::try_new(std::fs::File::create(&path)?, batch.schema(), None)?;
/// # writer.write(&batch)?;
/// # writer.close()?;
/// let footer = Footer::open(&path)?;
/// assert_eq!(footer.num_rows(), 3);
/// for row_group in footer.row_groups() {
///     for chunk in row_group.columns() {
///         println!("{} {} {} bytes", chunk.path(), chunk.codec(), chunk.compressed_size());
///         if let Some(statistics) = chunk.statistics()? {
///             println!("{:?} to {:?}", statistics.min_value, statistics.max_value);
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Footer {
    pub(crate) bytes: FooterBytes,
    pub(crate) decoded: Decoded,
    pub(crate) name: Option<Arc<String>>,
    file_len: Option<u64>,
    method: Method,
    max_page_indexes: u64,
    page_indexes: Option<Arc<PageIndexes>>,
    /// See `chunk/short_sizes.rs`.
    pub(crate) starts: OnceLock<Arc<[u64]>>,
    pub(crate) is_short: OnceLock<bool>,
}

impl Footer {
    /// Decodes a footer's metadata: the bytes before the eight bytes of length and magic.
    ///
    /// Costs one walk over the bytes: 20 to 60 ns a column chunk where chunks are alike, some 100 ns
    /// elsewhere. Allocates 32 bytes a chunk and the schema.
    ///
    /// # Errors
    ///
    /// The bytes are not a `FileMetaData`: the error names the offset, the Thrift path and the expected value. Or an
    /// option names a column that the schema does not have.
    pub fn decode(bytes: impl Into<FooterBytes>, options: &Options) -> Result<Self> {
        Self::decode_in_file(bytes.into(), options, None, None)
    }

    /// Decodes the footer of a whole file in memory and copies only the footer's bytes.
    ///
    /// Costs a copy of the footer, and the same as [`Footer::decode`].
    ///
    /// # Errors
    ///
    /// As for [`Footer::decode`]; or the bytes do not end like a Parquet file.
    pub fn from_file_bytes(file: &[u8], options: &Options) -> Result<Self> {
        let range = metadata_range(file)?;
        let bytes = FooterBytes::from(&file[range]);
        Self::decode_in_file(bytes, options, None, Some(file.len() as u64))
    }

    pub(crate) fn decode_in_file(
        bytes: FooterBytes,
        options: &Options,
        name: Option<&str>,
        file_len: Option<u64>,
    ) -> Result<Self> {
        let name = name.map(|name| Arc::new(name.to_string()));
        Self::decode_after(bytes, options, name, file_len, &mut Carried::default())
    }

    /// Like [`Footer::decode_in_file`], reusing what previous footers left.
    pub(crate) fn decode_after(
        bytes: FooterBytes,
        options: &Options,
        name: Option<Arc<String>>,
        file_len: Option<u64>,
        carried: &mut Carried,
    ) -> Result<Self> {
        match file_metadata::file_meta_data(bytes.as_slice(), options, carried) {
            Ok(decoded) => Ok(Self {
                decoded,
                name,
                file_len,
                method: options.method,
                max_page_indexes: options.max_page_indexes,
                page_indexes: None,
                starts: OnceLock::new(),
                is_short: OnceLock::new(),
                bytes,
            }),
            Err(error) => {
                let error = error.in_footer_at(footer_start(file_len, bytes.len()));
                Err(match name {
                    Some(name) => error.in_file(name.as_str()),
                    None => error,
                })
            }
        }
    }

    /// Reads the page indexes that the options ask for from the footer's file.
    pub(crate) fn with_page_indexes<R: RangeReader + ?Sized>(
        mut self,
        reader: &R,
        options: &Options,
    ) -> Result<Self> {
        if !matches!(options.page_indexes, PageIndexPolicy::None) {
            self.page_indexes = Some(Arc::new(self.read_page_indexes_of(reader, &options.page_indexes)?));
        }
        Ok(self)
    }

    /// Keeps page indexes that were read from the footer's file.
    #[cfg(feature = "async")]
    pub(crate) fn keep_page_indexes(&mut self, indexes: PageIndexes) {
        self.page_indexes = Some(Arc::new(indexes));
    }

    /// The trailing fields, walked first if they have not been.
    fn tail(&self) -> Option<&Tail> {
        let walk =
            || file_metadata::tail(self.bytes.as_slice(), &self.decoded, self.method).ok().map(Box::new);
        self.decoded.tail.get_or_init(walk).as_deref()
    }

    /// Walks to the end of the footer if decoding stopped after the last wanted row group (see
    /// [`Options::row_groups`]). Without this call, the fields after the row groups are walked on demand and
    /// treated as absent if malformed.
    ///
    /// Costs a walk over the row groups that were not decoded, once; free if all were.
    ///
    /// # Errors
    ///
    /// The rest of the footer is malformed.
    pub fn complete(&self) -> Result<()> {
        match self.tail() {
            Some(_) => Ok(()),
            None => file_metadata::tail(self.bytes.as_slice(), &self.decoded, self.method)
                .map(drop)
                .map_err(|error| self.name_error(error.in_footer_at(self.footer_start()))),
        }
    }

    /// The version of the format that the writer states: 1 or 2.
    pub fn version(&self) -> i32 {
        self.decoded.version
    }

    /// The number of rows in the file.
    pub fn num_rows(&self) -> i64 {
        self.decoded.num_rows
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.decoded.schema
    }

    /// The schema as a shared value, for [`Options::schema`] of the next file.
    pub fn shared_schema(&self) -> Arc<Schema> {
        Arc::clone(&self.decoded.schema)
    }

    /// The writer that the file names. Bytes that are not UTF-8 become replacement characters, `�`.
    ///
    /// Costs a check that the bytes are UTF-8; after a selection of row groups the walk of
    /// [`Footer::complete`] the first time.
    pub fn created_by(&self) -> Option<Cow<'_, str>> {
        self.tail()?.created_by.as_ref().map(|range| String::from_utf8_lossy(self.range(range)))
    }

    /// The file's key-value metadata. Bytes that are not UTF-8 become replacement characters, `�`.
    ///
    /// Costs a check that the bytes are UTF-8, pair by pair; after a selection of row groups the walk of
    /// [`Footer::complete`] the first time.
    pub fn key_value_metadata(&self) -> impl ExactSizeIterator<Item = (Cow<'_, str>, Option<Cow<'_, str>>)> {
        let pairs = self.tail().and_then(|tail| tail.key_values.as_deref()).unwrap_or_default();
        let text = |range| String::from_utf8_lossy(self.range(range));
        pairs.iter().map(move |(key, value)| (text(key), value.as_ref().map(text)))
    }

    /// Whether the file has a list of key-value metadata, even an empty one.
    pub fn has_key_value_metadata(&self) -> bool {
        self.tail().is_some_and(|tail| tail.key_values.is_some())
    }

    /// The order of each column's bounds; `None` if the file does not state it.
    pub fn column_orders(&self) -> Option<&[ColumnOrder]> {
        self.tail()?.column_orders.as_deref()
    }

    /// How the file's columns are encrypted, if they are and the footer is not.
    ///
    /// Costs a walk over the struct.
    ///
    /// # Errors
    ///
    /// The struct is malformed.
    pub fn encryption_algorithm(&self) -> Result<Option<EncryptionAlgorithm<'_>>> {
        let Some(at) = self.tail().and_then(|tail| tail.encryption_algorithm) else { return Ok(None) };
        let mut cursor = crate::thrift::cursor::Cursor::new(self.bytes.as_slice(), at);
        crate::chunk::encryption::algorithm(&mut cursor).map(Some).map_err(|fault| {
            self.explain(fault, dump::path_of(self.bytes.as_slice(), 0, &FILE_META_DATA, fault.at))
        })
    }

    /// What a key management service needs to find the key that signed a plaintext footer.
    pub fn footer_signing_key_metadata(&self) -> Option<&[u8]> {
        Some(self.range(self.tail()?.footer_signing_key_metadata.as_ref()?))
    }

    /// Where the footer starts in the file.
    pub(crate) fn footer_start(&self) -> Option<u64> {
        footer_start(self.file_len, self.bytes.len())
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// See [`Options::max_page_indexes`].
    pub(crate) fn max_page_indexes(&self) -> u64 {
        self.max_page_indexes
    }

    /// The page indexes read together with the footer; `None` unless [`Options::page_indexes`] asked for
    /// some.
    pub fn page_indexes(&self) -> Option<&PageIndexes> {
        self.page_indexes.as_deref()
    }

    /// The footer's length in bytes, without the eight of length and magic.
    pub fn footer_len(&self) -> usize {
        self.bytes.len()
    }

    /// The footer's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The bytes after the metadata: in a signed plaintext footer, the nonce and the signature.
    pub fn trailing_bytes(&self) -> &[u8] {
        self.tail().and_then(|tail| self.bytes.as_slice().get(tail.end..)).unwrap_or_default()
    }

    /// The file's name, if the footer was read from a file.
    pub fn file_name(&self) -> Option<&str> {
        self.name.as_deref().map(String::as_str)
    }

    /// The file's length, if known.
    pub fn file_len(&self) -> Option<u64> {
        self.file_len
    }

    /// The number of decoded row groups.
    pub fn num_row_groups(&self) -> usize {
        self.decoded.row_groups.len()
    }

    /// The number of row groups in the file, wanted or not.
    pub fn num_row_groups_in_file(&self) -> usize {
        self.decoded.row_groups_in_file
    }

    /// The number of decoded columns per row group.
    pub fn num_columns(&self) -> usize {
        self.decoded.columns.as_ref().map_or(self.schema().num_leaves(), Vec::len)
    }

    /// The schema leaf of the `position`-th decoded column.
    pub fn leaf_of(&self, position: usize) -> Option<usize> {
        match &self.decoded.columns {
            Some(columns) => columns.get(position).map(|&leaf| leaf as usize),
            None => (position < self.schema().num_leaves()).then_some(position),
        }
    }

    /// The position of a schema leaf among the decoded columns.
    ///
    /// Costs a binary search if columns were selected.
    pub fn position_of(&self, leaf: usize) -> Option<usize> {
        match &self.decoded.columns {
            Some(columns) => columns.binary_search(&u32::try_from(leaf).ok()?).ok(),
            None => (leaf < self.schema().num_leaves()).then_some(leaf),
        }
    }

    /// The `position`-th decoded row group.
    pub fn row_group(&self, position: usize) -> Option<RowGroup<'_>> {
        (position < self.num_row_groups()).then_some(RowGroup { footer: self, position })
    }

    /// All decoded row groups.
    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = RowGroup<'_>> {
        (0..self.num_row_groups()).map(|position| RowGroup { footer: self, position })
    }

    /// The chunk of the `column`-th decoded column in the `row_group`-th decoded row group.
    pub fn column_chunk(&self, row_group: usize, column: usize) -> Option<ColumnChunk<'_>> {
        self.row_group(row_group)?.column(column)
    }

    /// Heap memory of the decoded footer in bytes, without the footer's own bytes.
    pub fn heap_bytes(&self) -> usize {
        self.decoded.rows.heap_bytes()
            + self.decoded.row_groups.capacity() * size_of::<crate::decode::groups::GroupFields>()
            + self.schema().heap_bytes()
    }

    /// The error for a fault in a column chunk of this footer.
    pub(crate) fn chunk_error(&self, fault: Fault, chunk: &ColumnChunk<'_>) -> Error {
        let mut path = format!("row_groups[{}].columns[{}]", chunk.row_group().index(), chunk.leaf());
        let below = dump::path_of(self.bytes.as_slice(), chunk.footer_offset(), &COLUMN_CHUNK, fault.at);
        if !below.is_empty() {
            path = format!("{path}.{below}");
        }
        self.explain(fault, path)
    }

    fn explain(&self, fault: Fault, path: String) -> Error {
        let error = Error::new(fault.kind.to_string())
            .at_path(path)
            .at_offset(fault.at as u64)
            .in_footer_at(self.footer_start())
            .with_advice(fault.kind.advice());
        self.name_error(error)
    }

    pub(crate) fn name_error(&self, error: Error) -> Error {
        match &self.name {
            Some(name) => error.in_file(name.as_str()),
            None => error,
        }
    }

    fn range(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.as_slice().get(range.clone()).unwrap_or_default()
    }
}

fn footer_start(file_len: Option<u64>, footer_len: usize) -> Option<u64> {
    file_len?.checked_sub(tail::TAIL_LEN)?.checked_sub(footer_len as u64)
}

fn metadata_range(file: &[u8]) -> Result<Range<usize>> {
    let len = tail::metadata_len(file, file.len() as u64)? as usize;
    let end = file.len() - tail::TAIL_LEN as usize;
    Ok(end - len..end)
}

impl fmt::Debug for Footer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footer")
            .field("file", &self.name)
            .field("bytes", &self.bytes.len())
            .field("num_rows", &self.num_rows())
            .field("row_groups", &self.num_row_groups())
            .field("columns", &self.num_columns())
            .finish()
    }
}
