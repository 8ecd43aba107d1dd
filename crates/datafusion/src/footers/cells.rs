//! Cells of the footers' tables: a builder for each column of a query.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use sawmill_footer::{Codec, ColumnChunk, EncodingSet, Error, Footer, RowGroup, Schema};
use sawmill_inspect::Column;

use crate::error::external;
use crate::footers::columns::FooterColumn;

/// Rows that are being made.
pub(crate) struct Cells {
    schema: SchemaRef,
    columns: Vec<(FooterColumn, Builder)>,
    rows: usize,
    leaves: Leaves,
    codecs: Texts<Codec>,
    encodings: Texts<EncodingSet>,
}

enum Builder {
    Number(Int64Builder),
    Text(StringViewBuilder),
    Flag(BooleanBuilder),
}

impl Cells {
    /// No rows of `columns`, which have the schema `schema`.
    pub(crate) fn new(columns: &[FooterColumn], schema: SchemaRef) -> Self {
        use FooterColumn::*;
        let builder = |column: &FooterColumn| match column {
            File | CreatedBy | Path | PhysicalType | LogicalType | Codec | Encodings | Min | Max => {
                Builder::Text(StringViewBuilder::new())
            }
            Encrypted => Builder::Flag(BooleanBuilder::new()),
            _ => Builder::Number(Int64Builder::new()),
        };
        let columns = columns.iter().map(|column| (*column, builder(column))).collect();
        Self {
            schema,
            columns,
            rows: 0,
            leaves: Leaves::default(),
            codecs: Texts::default(),
            encodings: Texts::default(),
        }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows out.
    pub(crate) fn take(&mut self) -> Result<RecordBatch> {
        let arrays = self.columns.iter_mut().map(|(_, builder)| -> ArrayRef {
            match builder {
                Builder::Number(builder) => Arc::new(builder.finish()),
                Builder::Text(builder) => Arc::new(builder.finish()),
                Builder::Flag(builder) => Arc::new(builder.finish()),
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays.collect(), &options)?)
    }

    /// Appends the row of a file.
    pub(crate) fn file(&mut self, name: &str, footer: &Footer) -> Result<()> {
        use FooterColumn::*;
        for (column, builder) in &mut self.columns {
            match column {
                File => text(builder, Some(name)),
                CreatedBy => text(builder, footer.created_by().as_deref()),
                FileBytes => number(builder, footer.file_len().map(|bytes| bytes as i64)),
                FooterBytes => number(builder, Some(footer.footer_len() as i64)),
                NumRows => number(builder, Some(footer.num_rows())),
                NumRowGroups => number(builder, Some(footer.num_row_groups_in_file() as i64)),
                NumColumns => number(builder, Some(footer.schema().num_leaves() as i64)),
                Version => number(builder, Some(footer.version().into())),
                _ => {}
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends the row of a row group.
    pub(crate) fn row_group(&mut self, name: &str, group: &RowGroup<'_>) -> Result<()> {
        use FooterColumn::*;
        for (column, builder) in &mut self.columns {
            match column {
                File => text(builder, Some(name)),
                RowGroup => number(builder, Some(group.index() as i64)),
                RowGroupRows => number(builder, Some(group.num_rows())),
                NumColumns => number(builder, Some(group.num_columns() as i64)),
                CompressedBytes => number(builder, group.total_compressed_size()),
                UncompressedBytes => number(builder, Some(group.total_byte_size())),
                FileOffset => number(builder, group.file_offset()),
                _ => {}
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends the rows of chunks of one row group.
    ///
    /// # Errors
    /// Statistics cannot be decoded.
    pub(crate) fn chunks(&mut self, name: &str, footer: &Footer, chunks: &[ColumnChunk<'_>]) -> Result<()> {
        use FooterColumn::*;
        let Some(group) = chunks.first().map(ColumnChunk::row_group) else { return Ok(()) };
        let leaves = &mut self.leaves;
        for (column, builder) in &mut self.columns {
            let every = |builder: &mut Builder, value: &dyn Fn(&ColumnChunk<'_>) -> i64| {
                chunks.iter().for_each(|chunk| number(builder, Some(value(chunk))));
            };
            let stated = |builder: &mut Builder, value: &dyn Fn(&ColumnChunk<'_>) -> i64| {
                chunks.iter().for_each(|chunk| number(builder, chunk.has_metadata().then(|| value(chunk))));
            };
            match column {
                File => repeated(builder, name, chunks.len())?,
                RowGroup => every(builder, &|_| group.index() as i64),
                RowGroupRows => every(builder, &|_| group.num_rows()),
                Column => every(builder, &|chunk| chunk.leaf() as i64),
                NumValues => stated(builder, &|chunk| chunk.num_values()),
                CompressedBytes => stated(builder, &|chunk| chunk.compressed_size()),
                UncompressedBytes => stated(builder, &|chunk| chunk.uncompressed_size()),
                DataPageOffset => stated(builder, &|chunk| chunk.data_page_offset()),
                DictionaryPageOffset => {
                    chunks.iter().for_each(|chunk| number(builder, chunk.dictionary_page_offset()));
                }
                Codec => chunks.iter().for_each(|chunk| {
                    let codec = chunk.has_metadata().then(|| self.codecs.text(chunk.codec()));
                    text(builder, codec);
                }),
                Encodings => {
                    chunks
                        .iter()
                        .for_each(|chunk| text(builder, Some(self.encodings.text(chunk.encodings()))));
                }
                Path => leaves.each(footer, chunks, |leaf, _| {
                    text(builder, Some(&leaf.path));
                    Ok(())
                })?,
                PhysicalType => leaves.each(footer, chunks, |leaf, _| {
                    text(builder, Some(&leaf.physical_type));
                    Ok(())
                })?,
                LogicalType => leaves.each(footer, chunks, |leaf, _| {
                    text(builder, leaf.logical_type.as_deref());
                    Ok(())
                })?,
                NullCount | DistinctCount | Min | Max => {
                    leaves.each(footer, chunks, |leaf, chunk| statistic(*column, builder, leaf, chunk))?;
                }
                Encrypted => chunks.iter().for_each(|chunk| flag(builder, chunk.is_encrypted())),
                _ => {}
            }
        }
        self.rows += chunks.len();
        Ok(())
    }
}

/// Appends a value of a chunk's statistics. Bounds come from the current fields, or else from the deprecated ones.
fn statistic(
    column: FooterColumn,
    builder: &mut Builder,
    leaf: &Column,
    chunk: &ColumnChunk<'_>,
) -> std::result::Result<(), Error> {
    let found = chunk.statistics()?.unwrap_or_default();
    let deprecated = found.min_value.is_none() && found.max_value.is_none();
    let (min, max) = if deprecated { (found.min, found.max) } else { (found.min_value, found.max_value) };
    match column {
        FooterColumn::NullCount => number(builder, found.null_count),
        FooterColumn::DistinctCount => number(builder, found.distinct_count),
        FooterColumn::Min => text(builder, min.map(|bound| leaf.text(bound)).as_deref()),
        _ => text(builder, max.map(|bound| leaf.text(bound)).as_deref()),
    }
    Ok(())
}

fn number(builder: &mut Builder, value: Option<i64>) {
    if let Builder::Number(builder) = builder {
        builder.append_option(value);
    }
}

fn text(builder: &mut Builder, value: Option<&str>) {
    if let Builder::Text(builder) = builder {
        builder.append_option(value);
    }
}

fn flag(builder: &mut Builder, value: bool) {
    if let Builder::Flag(builder) = builder {
        builder.append_value(value);
    }
}

/// The same text in each of `rows` rows, stored once.
fn repeated(builder: &mut Builder, value: &str, rows: usize) -> Result<()> {
    if let Builder::Text(builder) = builder {
        builder.try_append_value_n(value, rows)?;
    }
    Ok(())
}

/// Texts and types of the schema's leaves, kept while footers share their schema.
#[derive(Default)]
struct Leaves {
    of: Option<(Arc<Schema>, Vec<Column>)>,
}

impl Leaves {
    /// Calls `visit` with the leaf of each chunk.
    fn each(
        &mut self,
        footer: &Footer,
        chunks: &[ColumnChunk<'_>],
        mut visit: impl FnMut(&Column, &ColumnChunk<'_>) -> std::result::Result<(), Error>,
    ) -> Result<()> {
        let schema = footer.shared_schema();
        if self.of.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, &schema)) {
            let leaves = schema.leaves().map(Column::new).collect();
            self.of = Some((schema, leaves));
        }
        let leaves = self.of.as_ref().map_or(&[][..], |(_, leaves)| leaves);
        for chunk in chunks {
            if let Some(leaf) = leaves.get(chunk.leaf()) {
                visit(leaf, chunk).map_err(external)?;
            }
        }
        Ok(())
    }
}

/// The text of a value, kept because the next value is usually the same.
struct Texts<T> {
    last: Option<(T, String)>,
}

impl<T> Default for Texts<T> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<T: PartialEq + Copy + ToString> Texts<T> {
    fn text(&mut self, value: T) -> &str {
        if self.last.as_ref().is_none_or(|(known, _)| *known != value) {
            self.last = Some((value, value.to_string()));
        }
        self.last.as_ref().map_or("", |(_, text)| text)
    }
}
