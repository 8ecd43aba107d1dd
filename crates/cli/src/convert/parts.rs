//! Writes the rows, in their order, to the files of a directory, each of about the same size.

use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use sawmill_profile::Phase;
use sawmill_source::Source;
use sawmill_store::WholeFile;

use super::parquet::{ParquetOut, properties};
use super::run::{Written, pass, refused};
use super::staging::{Layout, Staged};
use super::writer::{cast, plain_type, text_writer};
use super::{ConvertArgs, OutputFormat};
use crate::error::Error;
use crate::r#gen::format::Format;
use crate::r#gen::formats::batch_writer::{BatchWriter, Counted, Out as TextOut};
use crate::r#gen::formats::files::OpenFile;
use crate::r#gen::formats::text_form::NoText;

/// The size of a file, unless the command line has another.
const FILE_BYTES: u64 = 256 << 20;

/// The bytes after which a row group ends early: the one before it may wait, too.
const MAX_ROW_GROUP: u64 = 128 << 20;

/// The buffer of a file of text: so much of it is not counted yet.
const BUFFER: usize = 1 << 16;

/// A file that is being written.
pub(super) enum Part<'p> {
    Parquet(Box<ParquetOut<'p, Counted<'p>>>),
    Text(Box<BatchWriter<TextOut<'p>>>),
}

/// Writes the files of a directory.
pub(super) struct Parts<'a> {
    pub args: &'a ConvertArgs,
    pub format: OutputFormat,
    pub source: &'a dyn Source,
    pub phase: &'a Phase,
}

impl Parts<'_> {
    /// Writes all rows. The directory takes its name when all files are complete.
    pub(super) fn write(&self) -> Result<Written, Error> {
        let staged = Staged::begin(self.args, Layout::Parts)?;
        let most = self.args.file_size.unwrap_or(FILE_BYTES);
        let mut written = Written::default();
        let mut open = None;
        let rows = pass(self.args, self.source, self.phase, |batch| {
            let (mut part, before) = match open.take() {
                Some(part) => part,
                None => (self.begin(staged.path(), written.files)?, self.phase.bytes()),
            };
            part.write(batch)?;
            match part.bytes(self.phase.bytes() - before)? >= most {
                true => written.add(part.finish()?),
                false => open = Some((part, before)),
            }
            Ok(())
        })?;
        // Without rows there is a file that has the columns.
        let last = match open {
            Some((part, _)) => Some(Ok(part)),
            None if written.files == 0 => Some(self.begin(staged.path(), 0)),
            None => None,
        };
        if let Some(last) = last {
            let bytes = last.and_then(Part::finish).map_err(|error| refused(self.args, error, rows))?;
            written.add(bytes);
        }
        self.source.check_unchanged()?;
        staged.finish()?;
        Ok(written)
    }

    fn begin(&self, directory: &Path, number: u64) -> Result<Part<'_>, NoText> {
        let path = directory.join(format!("part-{number:05}.{}", Format::from(self.format).extension()));
        let target = OpenFile::Whole(WholeFile::create(&path).map_err(io)?);
        Part::begin((self.args, self.format), self.source.schema(), (target, BUFFER), self.phase)
    }
}

impl<'p> Part<'p> {
    /// Begins a file of these columns; text is gathered in a buffer of `buffer` bytes.
    pub(super) fn begin(
        (args, format): (&'p ConvertArgs, OutputFormat),
        schema: &SchemaRef,
        (target, buffer): (OpenFile, usize),
        phase: &'p Phase,
    ) -> Result<Self, NoText> {
        let counted = Counted { target, bytes: 0, phase };
        if format == OutputFormat::Parquet {
            let properties = properties(args, schema)?.build();
            let file = ParquetOut::new(counted, args, schema, properties, args.threads(), phase);
            return Ok(Part::Parquet(Box::new(file)));
        }
        let out = BufWriter::with_capacity(buffer, counted);
        text_writer(args, format.into(), schema, out).map(|writer| Part::Text(Box::new(writer)))
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), NoText> {
        match self {
            Self::Parquet(file) => {
                file.write(batch)?;
                file.end_row_group_of(MAX_ROW_GROUP);
                Ok(())
            }
            Self::Text(writer) => writer.write(&cast(batch, plain_type)?),
        }
    }

    /// About how many bytes the file would have if it ended here.
    fn bytes(&mut self, written: u64) -> Result<u64, NoText> {
        match self {
            Self::Parquet(file) => file.bytes(),
            Self::Text(_) => Ok(written),
        }
    }

    /// Completes the file, and returns its size.
    pub(super) fn finish(self) -> Result<u64, NoText> {
        match self {
            Self::Parquet(parquet) => {
                let Counted { target, bytes, .. } = parquet.finish()?;
                target.finish().map_err(io)?;
                Ok(bytes)
            }
            Self::Text(writer) => {
                let mut out = writer.finish()?;
                out.flush().map_err(io)?;
                let Counted { target, bytes, .. } =
                    out.into_inner().map_err(|error| io(error.into_error()))?;
                target.finish().map_err(io)?;
                Ok(bytes)
            }
        }
    }
}

fn io(error: std::io::Error) -> NoText {
    NoText::Arrow(ArrowError::IoError(error.to_string(), error))
}
