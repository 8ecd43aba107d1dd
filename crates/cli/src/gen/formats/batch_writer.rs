//! Writers of the formats other than Parquet.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_json::LineDelimitedWriter;
use arrow_schema::{ArrowError, SchemaRef};
use sawmill_profile::Phase;

use super::csv::CsvWriter;
use super::files::OpenFile;
use super::ndjson::Encoders;
use super::text_form::{NoText, text_batch, text_schema};
use crate::r#gen::format::Format;

/// A writer of one of the formats.
pub(crate) enum BatchWriter<W: Write> {
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
    Ndjson(LineDelimitedWriter<W>),
    Csv(CsvWriter<W>),
}

impl<W: Write> BatchWriter<W> {
    /// A writer of a format to a stream or a file; the text is CSV's null.
    pub(crate) fn new(
        (format, is_stream, csv_null): (Format, bool, &str),
        schema: &SchemaRef,
        out: W,
    ) -> Result<Self, ArrowError> {
        Ok(match format {
            Format::Arrow if is_stream => BatchWriter::Stream(Box::new(StreamWriter::try_new(out, schema)?)),
            Format::Arrow | Format::Parquet => BatchWriter::File(Box::new(FileWriter::try_new(out, schema)?)),
            Format::Ndjson => {
                let builder = arrow_json::WriterBuilder::new().with_encoder_factory(Arc::new(Encoders));
                BatchWriter::Ndjson(builder.build(out))
            }
            // Writes the names, even if no row follows.
            Format::Csv => BatchWriter::Csv(CsvWriter::new(out, &text_schema(schema), csv_null)?),
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), NoText> {
        match self {
            BatchWriter::File(writer) => writer.write(batch)?,
            BatchWriter::Stream(writer) => writer.write(batch)?,
            BatchWriter::Ndjson(writer) => writer.write(&text_batch(batch)?)?,
            BatchWriter::Csv(writer) => writer.write(&text_batch(batch)?)?,
        }
        Ok(())
    }

    /// Writes the end of the format, and returns the output without flushing it.
    pub(crate) fn finish(self) -> Result<W, ArrowError> {
        match self {
            BatchWriter::File(writer) => writer.into_inner(),
            BatchWriter::Stream(writer) => writer.into_inner(),
            BatchWriter::Ndjson(mut writer) => {
                writer.finish()?;
                Ok(writer.into_inner())
            }
            BatchWriter::Csv(writer) => Ok(writer.out),
        }
    }
}

/// A writer that counts the bytes that pass through.
pub(crate) struct Counted<'w, T = OpenFile> {
    pub target: T,
    pub bytes: u64,
    pub phase: &'w Phase,
}

/// Where the rows of a file go.
pub(crate) type Out<'w> = BufWriter<Counted<'w>>;

impl<T: Write> Write for Counted<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.target.write(bytes)?;
        self.bytes += n as u64;
        self.phase.add_bytes(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
