//! Parquet files as a source: opened, compared, planned and read.
//!
//! Opening reads every footer once and refuses what cannot be loaded before anything is sent. The
//! plan cuts row groups into ranges; a reader decodes pages as they are needed, so that memory
//! follows the batch and the page size, not the row group's.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;

use crate::error::{Error, Kind, Result};
use crate::parquet_reader::ParquetReader;
use crate::parquet_schema::{differences, read_schema};
use crate::source::{Source, SourceFile, Unit, UnitKey, UnitReader};

/// Parquet files of the file system, all with the same columns.
pub struct ParquetFiles {
    schema: SchemaRef,
    files: Vec<SourceFile>,
    pub(crate) opened: Vec<OpenedFile>,
}

/// What is kept of one file.
pub(crate) struct OpenedFile {
    pub path: PathBuf,
    pub reader: ArrowReaderMetadata,
    /// Columns of the file in the order of the common schema; `None` where they stand so already.
    pub order: Option<Vec<usize>>,
    row_groups: Vec<RowGroup>,
    length: u64,
    modified: Option<SystemTime>,
}

#[derive(Clone, Copy)]
struct RowGroup {
    rows: u64,
    bytes: u64,
}

impl ParquetFiles {
    /// Opens the files and compares their schemas.
    ///
    /// # Errors
    /// A file that is missing, unreadable, truncated, not Parquet or given twice; columns that
    /// differ from those of the first file, all named in one message.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut opened = Vec::with_capacity(paths.len());
        for path in paths {
            opened.push(open(path.as_ref())?);
        }
        opened.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        if let Some(pair) = opened.windows(2).find(|pair| pair[0].1.name == pair[1].1.name) {
            return Err(Error::new(Kind::Config, "the file was given twice").at(&pair[0].1.name));
        }
        let Some((first, first_file)) = opened.first() else {
            return Err(Error::new(Kind::Config, "no file to load").advise("name one Parquet file or more"));
        };
        let mut fields: Vec<Field> =
            first.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        for (other, file) in &opened[1..] {
            let lines = differences(&first.schema, &other.schema);
            if !lines.is_empty() {
                return Err(Error::new(
                    Kind::Schema,
                    format!("columns differ from those of {}: {}", first_file.name, lines.join("; ")),
                )
                .at(&file.name)
                .advise("load files with different columns one by one, or into tables of their own"));
            }
            for field in &mut fields {
                let theirs = other.schema.field_with_name(field.name());
                let nullable = field.is_nullable() || theirs.is_ok_and(Field::is_nullable);
                field.set_nullable(nullable);
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let mut files = Vec::with_capacity(opened.len());
        let mut kept = Vec::with_capacity(opened.len());
        for (mut file, source) in opened {
            let order: Vec<usize> =
                schema.fields().iter().filter_map(|field| file.schema.index_of(field.name()).ok()).collect();
            file.opened.order = (!order.is_sorted()).then_some(order);
            files.push(source);
            kept.push(file.opened);
        }
        Ok(Self { schema, files, opened: kept })
    }
}

impl Source for ParquetFiles {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let unit_rows = unit_rows.max(1);
        let mut runs = Vec::new();
        for (file, opened) in (0u32..).zip(&self.opened) {
            for (row_group, RowGroup { rows, bytes }) in (0u32..).zip(opened.row_groups.iter().copied()) {
                let mut run = Vec::new();
                let mut first_row = 0;
                while first_row < rows {
                    let take = unit_rows.min(rows - first_row);
                    let share = (u128::from(bytes) * u128::from(take) / u128::from(rows)) as u64;
                    let key = UnitKey { file, row_group, first_row };
                    run.push(Unit { key, rows: take, bytes: share });
                    first_row += take;
                }
                runs.push(run);
            }
        }
        runs
    }

    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(ParquetReader::new(self, batch_rows))
    }
}

impl OpenedFile {
    /// Opens the file again for reading, and makes sure that it is still the same.
    pub(crate) fn reopen(&self) -> Result<File> {
        let place = self.path.display().to_string();
        let file = File::open(&self.path).map_err(|error| unreadable(&error).at(&place))?;
        let metadata = file.metadata().map_err(|error| unreadable(&error).at(&place))?;
        if metadata.len() != self.length || metadata.modified().ok() != self.modified {
            return Err(Error::new(Kind::Changed, "the file changed while it was loaded")
                .at(place)
                .advise("load it again when nobody writes to it any more"));
        }
        Ok(file)
    }
}

struct Opened {
    opened: OpenedFile,
    schema: Arc<Schema>,
}

fn open(path: &Path) -> Result<(Opened, SourceFile)> {
    let shown = path.display().to_string();
    let failed = |error: std::io::Error| unreadable(&error).at(&shown);
    let canonical = path.canonicalize().map_err(failed)?;
    let mut file = File::open(&canonical).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Error::new(Kind::Source, "is a directory").at(&shown).advise("name the files in it"));
    }
    let fingerprint = fingerprint(&mut file, metadata.len(), &shown)?;
    let not_readable = |error: parquet::errors::ParquetError| {
        Error::new(Kind::Source, format!("the footer cannot be read: {error}"))
            .at(&shown)
            .advise("the file is corrupt: write or copy it again")
    };
    let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
    let derived = ArrowReaderMetadata::load(&file, options).map_err(not_readable)?;
    let descriptor = derived.metadata().file_metadata().schema_descr();
    let read = read_schema(derived.schema(), descriptor)
        .map_err(|what| Error::new(Kind::Schema, what).at(&shown))?;
    let options = ArrowReaderOptions::new().with_schema(read.hint);
    let reader =
        ArrowReaderMetadata::try_new(Arc::clone(derived.metadata()), options).map_err(not_readable)?;
    let row_groups: Vec<RowGroup> = derived
        .metadata()
        .row_groups()
        .iter()
        .map(|group| RowGroup {
            rows: group.num_rows().max(0) as u64,
            bytes: group.compressed_size().max(0) as u64,
        })
        .collect();
    let source = SourceFile {
        name: canonical.display().to_string(),
        fingerprint,
        rows: row_groups.iter().map(|group| group.rows).sum(),
        bytes: metadata.len(),
    };
    let opened = OpenedFile {
        path: canonical,
        reader,
        order: None,
        row_groups,
        length: metadata.len(),
        modified: metadata.modified().ok(),
    };
    Ok((Opened { opened, schema: read.schema }, source))
}

/// Length and XXH3-128 of the footer. The footer holds sizes, offsets and statistics of every
/// column chunk, so another content shows in it. Checks the magic bytes at both ends on the way
/// (<https://parquet.apache.org/docs/file-format/>).
fn fingerprint(file: &mut File, length: u64, shown: &str) -> Result<String> {
    const MAGIC: &[u8; 4] = b"PAR1";
    let failed = |error: std::io::Error| unreadable(&error).at(shown);
    let mut head = [0; 4];
    let mut tail = [0; 8];
    if length < 12 {
        return Err(not_parquet(shown));
    }
    file.read_exact(&mut head).map_err(failed)?;
    file.seek(SeekFrom::End(-8)).map_err(failed)?;
    file.read_exact(&mut tail).map_err(failed)?;
    let [a, b, c, d, end @ ..] = tail;
    match (&head == MAGIC, &end == MAGIC) {
        (true, true) => {}
        (true, false) => {
            return Err(Error::new(Kind::Source, "the file is truncated: it ends without a Parquet footer")
                .at(shown)
                .advise("copy it again, or wait until its writer has closed it"));
        }
        (_, _) if &head == b"PARE" || &end == b"PARE" => {
            return Err(Error::new(Kind::Source, "the file is encrypted")
                .at(shown)
                .advise("decrypt it first"));
        }
        _ => return Err(not_parquet(shown)),
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    if footer + 12 > length {
        return Err(Error::new(
            Kind::Source,
            format!("the footer claims {footer} bytes, more than the file has ({length})"),
        )
        .at(shown)
        .advise("the file is corrupt: write or copy it again"));
    }
    file.seek(SeekFrom::Start(length - 8 - footer)).map_err(failed)?;
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let mut rest = file.take(footer);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match rest.read(&mut chunk).map_err(failed)? {
            0 => break,
            n => hash.update(&chunk[..n]),
        }
    }
    Ok(format!("{length}:{:032x}", hash.digest128()))
}

fn not_parquet(shown: &str) -> Error {
    Error::new(Kind::Source, "not a Parquet file").at(shown).advise("it does not begin and end with PAR1")
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::new(Kind::Source, format!("cannot be read: {error}"))
}
