//! Writes Parquet files.

mod columns;
mod dictionaries;
mod encoded_file;
mod options;

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use sawmill_profile::{Phase, SpanSink};

use super::ConvertArgs;
use super::writer::{cast, of_parquet, with_types, without_views};
use crate::r#gen::formats::text_form::NoText;
use dictionaries::without_useless;
use encoded_file::EncodedFile;
pub(crate) use options::MAX_DICTIONARIES;
pub(super) use options::properties;

/// A Parquet file that is being written. Its first rows decide which columns have a dictionary.
pub(super) struct ParquetOut<'a, W: Write + Send> {
    schema: SchemaRef,
    /// The columns whose encoding the user has chosen; `None` means all of them.
    given: Vec<Option<&'a str>>,
    encoders: usize,
    spans: SpanSink,
    state: State<W>,
}

enum State<W: Write + Send> {
    Empty(Box<(W, WriterProperties)>),
    Begun(Box<EncodedFile<W>>),
    Failed,
}

impl<'a, W: Write + Send> ParquetOut<'a, W> {
    /// Begins a file of rows with this schema; `encoders` threads encode its columns.
    pub(super) fn new(
        out: W,
        args: &'a ConvertArgs,
        schema: &Schema,
        properties: WriterProperties,
        encoders: usize,
        phase: &Phase,
    ) -> Self {
        Self {
            schema: with_types(schema, without_views),
            given: args.pages.encoding.iter().map(|(column, _)| column.as_deref()).collect(),
            encoders,
            spans: phase.sink(),
            state: State::Empty(Box::new((out, properties))),
        }
    }

    /// Adds rows. An error may be one of the rows before.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), NoText> {
        let rows = cast(batch, without_views)?;
        self.begun(Some(&rows)).and_then(|file| file.write(&rows)).map_err(of_parquet)
    }

    fn begun(&mut self, first: Option<&RecordBatch>) -> Result<&mut EncodedFile<W>, ParquetError> {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Empty(empty) => {
                let (out, properties) = *empty;
                let properties = match first {
                    Some(first) => without_useless(properties, first, &self.given),
                    None => properties,
                };
                let schema = self.schema.clone();
                let file = EncodedFile::begin(out, schema, properties, self.encoders, &self.spans)?;
                State::Begun(Box::new(file))
            }
            state => state,
        };
        match &mut self.state {
            State::Begun(file) => Ok(file),
            _ => Err(ParquetError::General("the file could not be begun".to_owned())),
        }
    }

    /// About how many bytes the file would have if it ended here. For the same batches always the same.
    pub(super) fn bytes(&mut self) -> Result<u64, NoText> {
        match &mut self.state {
            State::Begun(file) => file.bytes().map_err(of_parquet),
            _ => Ok(0),
        }
    }

    /// Ends the row group if it has about `bytes` bytes or more; the next row begins another one.
    pub(super) fn end_row_group_of(&mut self, bytes: u64) {
        if let State::Begun(file) = &mut self.state
            && file.row_group_bytes() >= bytes
        {
            file.end_row_group();
        }
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<W, NoText> {
        self.begun(None).map_err(of_parquet)?;
        match self.state {
            State::Begun(file) => file.finish().map_err(of_parquet),
            _ => Err(of_parquet(ParquetError::General("the file could not be begun".to_owned()))),
        }
    }
}
