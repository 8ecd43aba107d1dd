//! Refuses pages that would take more memory than one page may, before DataFusion's decoder sees them. As in
//! `sawmill`, the sizes that page headers claim decide.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::DataFusionError;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sawmill_footer::RangeReader;
use sawmill_inspect::{CorrectedHeaders, LargestPages, PageLimits, check_pages_within, page_limits_59};

use crate::error::refused;
use crate::parquet_files::reader::{Place, external};

/// Each part is checked against the chunks that it lies in. Chunks of an undamaged file do not overlap.
const MAX_OVERLAPS: usize = 4;

/// The metadata of files being read. For a file with Bloom filters, DataFusion makes a second reader, which it does
/// not ask for the metadata.
type Known = Arc<Mutex<HashMap<ObjectPath, Weak<ParquetMetaData>>>>;

/// Wraps the readers of another factory, so that they check pages.
#[derive(Debug)]
pub(crate) struct CheckedPages {
    pub readers: Arc<dyn ParquetFileReaderFactory>,
    pub place: Place,
    /// The most bytes of a page.
    pub max_page: u64,
    known: Known,
}

impl CheckedPages {
    pub(crate) fn new(readers: Arc<dyn ParquetFileReaderFactory>, place: Place, max_page: u64) -> Self {
        Self { readers, place, max_page, known: Known::default() }
    }
}

impl ParquetFileReaderFactory for CheckedPages {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>, DataFusionError> {
        let path = file.object_meta.location.clone();
        Ok(Box::new(CheckedReader {
            name: self.place.name_of(&path),
            path,
            reader: self.readers.create_reader(partition, file, hint, metrics)?,
            max_page: self.max_page,
            known: Arc::clone(&self.known),
            chunks: None,
        }))
    }
}

struct CheckedReader {
    name: String,
    path: ObjectPath,
    reader: Box<dyn AsyncFileReader + Send>,
    max_page: u64,
    known: Known,
    chunks: Option<Arc<Chunks>>,
}

impl CheckedReader {
    async fn chunks(&mut self) -> ParquetResult<Arc<Chunks>> {
        if let Some(chunks) = &self.chunks {
            return Ok(Arc::clone(chunks));
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&self.path).cloned();
        let metadata = match known.and_then(|known| known.upgrade()) {
            Some(known) => known,
            None => self.get_metadata(None).await?,
        };
        let chunks = Arc::new(Chunks::new(metadata, self.max_page));
        self.chunks = Some(Arc::clone(&chunks));
        Ok(chunks)
    }
}

impl AsyncFileReader for CheckedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let mut all = self.get_byte_ranges(vec![range]).await?;
            Ok(all.pop().unwrap_or_default())
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let mut bytes = self.reader.get_byte_ranges(ranges.clone()).await?;
            let (chunks, name, max_page) = (self.chunks().await?, self.name.clone(), self.max_page);
            let check = move || {
                let parts = ranges.iter().zip(&bytes);
                let parts = parts.map(|(range, bytes)| Part { start: range.start, bytes: bytes.clone() });
                let headers = chunks.check(parts, max_page).map_err(|Refused { what, place, advice }| {
                    refused(what, &format!("{name}, {place}"), &advice)
                })?;
                for (range, bytes) in ranges.iter().zip(&mut bytes) {
                    correct(range.start, bytes, &headers);
                }
                Ok::<_, DataFusionError>(bytes)
            };
            // Pages of some codecs are decompressed for the check.
            let checked = tokio::task::spawn_blocking(check);
            checked.await.map_err(external)?.map_err(external)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let metadata = self.reader.get_metadata(options).await?;
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(self.path.clone(), Arc::downgrade(&metadata));
            Ok(metadata)
        }
        .boxed()
    }
}

/// Replaces the headers of pages in a part of a file that starts here.
fn correct(start: u64, bytes: &mut Bytes, headers: &CorrectedHeaders) {
    let mut all = None;
    for (at, header) in headers {
        let from = at.checked_sub(start).and_then(|from| usize::try_from(from).ok());
        let Some(from) = from.filter(|from| from.saturating_add(header.len()) <= bytes.len()) else {
            continue;
        };
        all.get_or_insert_with(|| bytes.to_vec())[from..from + header.len()].copy_from_slice(header);
    }
    if let Some(all) = all {
        *bytes = all.into();
    }
}

/// A part of a file.
struct Part {
    start: u64,
    bytes: Bytes,
}

impl RangeReader for Part {
    fn len(&self) -> io::Result<u64> {
        Ok(self.start.saturating_add(self.bytes.len() as u64))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = offset.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let there = from.and_then(|from| self.bytes.get(from..)?.get(..buffer.len()));
        buffer.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The column chunks of a file, by where they begin.
struct Chunks {
    metadata: Arc<ParquetMetaData>,
    all: Vec<Chunk>,
}

struct Chunk {
    bytes: Range<u64>,
    /// The furthest end of it and of those before it.
    reach: u64,
    limits: PageLimits,
    group: usize,
    column: usize,
}

/// A refusal: what, where, and what to do.
struct Refused {
    what: String,
    place: String,
    advice: String,
}

impl Chunks {
    fn new(metadata: Arc<ParquetMetaData>, max_page: u64) -> Self {
        let mut all = Vec::new();
        let created_by = metadata.file_metadata().created_by();
        for (group, row_group) in metadata.row_groups().iter().enumerate() {
            for (column, chunk) in row_group.columns().iter().enumerate() {
                let (bytes, limits) = page_limits_59(chunk, created_by, max_page);
                all.push(Chunk { reach: bytes.end, bytes, limits, group, column });
            }
        }
        all.sort_by_key(|chunk| (chunk.bytes.start, chunk.bytes.end));
        let mut reach = 0;
        for chunk in &mut all {
            reach = reach.max(chunk.bytes.end);
            chunk.reach = reach;
        }
        Self { metadata, all }
    }

    /// The chunks that hold a part, usually one.
    fn around(&self, start: u64, end: u64) -> impl Iterator<Item = &Chunk> {
        let behind = self.all.partition_point(|chunk| chunk.bytes.start <= start);
        let before = self.all.get(..behind).unwrap_or_default().iter().rev();
        before.take_while(move |chunk| chunk.reach >= end).filter(move |chunk| end <= chunk.bytes.end)
    }

    /// Checks the pages of those parts that lie within the file's column chunks: each part begins and ends with a
    /// page. Returns the headers that their decoder must read in place of the file's.
    ///
    /// # Errors
    /// A page must not be decompressed, or the pages of all columns exceed the limit together.
    fn check(&self, parts: impl Iterator<Item = Part>, max_page: u64) -> Result<CorrectedHeaders, Refused> {
        let mut largest: HashMap<(usize, usize), LargestPages> = HashMap::new();
        let mut headers = Vec::new();
        for part in parts {
            let end = part.start.saturating_add(part.bytes.len() as u64);
            for (overlaps, chunk) in self.around(part.start, end).enumerate() {
                if overlaps == MAX_OVERLAPS {
                    return Err(Refused {
                        what: "expected column chunks apart from each other, found many in one place"
                            .to_owned(),
                        place: format!("bytes {}..{end}", part.start),
                        advice: "the file is damaged: write or copy it again".to_owned(),
                    });
                }
                let found = check_pages_within(&part, part.start..end, i64::MAX, &chunk.limits, false);
                if let Some(error) = found.refused {
                    return Err(self.refused(chunk, &error));
                }
                headers.extend(found.restated);
                let of_chunk = largest.entry((chunk.group, chunk.column)).or_default();
                of_chunk.uncompressed = of_chunk.uncompressed.max(found.largest.uncompressed);
                of_chunk.compressed = of_chunk.compressed.max(found.largest.compressed);
            }
        }
        let all = largest.values().copied().fold(LargestPages::default(), LargestPages::and);
        all.check(max_page).map_err(|error| Refused {
            what: error.what(),
            place: "all columns".to_owned(),
            advice: error.advice(),
        })?;
        Ok(headers)
    }

    fn refused(&self, chunk: &Chunk, error: &sawmill_footer::Error) -> Refused {
        let path = self.metadata.row_group(chunk.group).column(chunk.column).column_path().string();
        let page = if error.path().is_empty() { String::new() } else { format!(", {}", error.path()) };
        let place = format!("row group {}, column {path}{page}", chunk.group);
        Refused { what: error.what(), place, advice: error.advice() }
    }
}
