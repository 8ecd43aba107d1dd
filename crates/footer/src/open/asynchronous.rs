//! The asynchronous twin of [`RangeReader`](crate::RangeReader) (feature `async`): footers and page indexes
//! over clients of object stores, on any runtime.

use std::future::Future;
use std::io;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::open::request::{FetchedRanges, FooterRequest, NextStep};
use crate::options::{Options, PageIndexPolicy};
use crate::page_index::indexes::PageIndexes;
use crate::page_index::runs::merge;

/// Gaps up to this are read along: that is quicker than another request.
const READ_ALONG: u64 = 256 << 10;

/// A source of known length that answers requests for ranges of its bytes.
///
/// ```
/// use std::io;
/// use std::ops::Range;
/// use sawmill_footer::AsyncRangeReader;
///
/// struct InMemory(Vec<u8>);
///
/// impl AsyncRangeReader for InMemory {
///     async fn len(&self) -> io::Result<u64> {
///         Ok(self.0.len() as u64)
///     }
///
///     async fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
///         let part = self.0.get(range.start as usize..range.end as usize);
///         part.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
///     }
/// }
/// ```
#[allow(clippy::len_without_is_empty, reason = "no file of this format is empty")]
pub trait AsyncRangeReader: Sync {
    /// The number of bytes.
    ///
    /// # Errors
    ///
    /// The length cannot be determined.
    fn len(&self) -> impl Future<Output = io::Result<u64>> + Send;

    /// Reads exactly the bytes of a range.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, or there are too few.
    fn read_range(&self, range: Range<u64>) -> impl Future<Output = io::Result<Vec<u8>>> + Send;

    /// Reads several ranges: one after the other, unless an implementation requests them together.
    ///
    /// # Errors
    ///
    /// As for [`AsyncRangeReader::read_range`].
    fn read_ranges(&self, ranges: Vec<Range<u64>>) -> impl Future<Output = io::Result<Vec<Vec<u8>>>> + Send {
        async move {
            let mut read = Vec::with_capacity(ranges.len());
            for range in ranges {
                read.push(self.read_range(range).await?);
            }
            Ok(read)
        }
    }
}

impl Footer {
    /// [`Footer::read`] over an asynchronous reader: one request for the last bytes, a second one if the
    /// footer is longer than the tail hint, and those for the page indexes that the options ask for. Decodes
    /// on the thread that polls.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read`].
    pub async fn read_async<R: AsyncRangeReader + ?Sized>(
        reader: &R,
        name: &str,
        options: &Options,
    ) -> Result<Self> {
        let reading = |error: io::Error| Error::io("reading the footer", &error).in_file(name);
        let mut request = FooterRequest::new(reader.len().await.map_err(reading)?, name, options)?;
        let mut footer = loop {
            let bytes = reader.read_range(request.wanted()).await.map_err(reading)?;
            match request.supply(bytes)? {
                NextStep::Fetch(again) => request = again,
                NextStep::Done(footer) => break *footer,
            }
        };
        if !matches!(options.page_indexes, PageIndexPolicy::None) {
            let indexes = footer.read_page_indexes_async(reader, &options.page_indexes).await?;
            footer.keep_page_indexes(indexes);
        }
        Ok(footer)
    }

    /// [`Footer::read_page_indexes_of`] over an asynchronous reader. Gaps of up to 256 KiB are read along.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read_page_indexes_of`].
    pub async fn read_page_indexes_async<R: AsyncRangeReader + ?Sized>(
        &self,
        reader: &R,
        policy: &PageIndexPolicy,
    ) -> Result<PageIndexes> {
        let reading = |error: io::Error| self.name_error(Error::io("reading the page indexes", &error));
        let len = reader.len().await.map_err(reading)?;
        let mut ranges = self.page_index_ranges(policy)?;
        if let Some(range) = ranges.iter().find(|range| range.end > len) {
            let what = format!(
                "expected page indexes within the file's {len} bytes, found some up to {}",
                range.end
            );
            return Err(self.name_error(Error::new(what)));
        }
        merge(&mut ranges, READ_ALONG, self.max_page_indexes());
        let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        let mut fetched = FetchedRanges::new(len);
        for (start, bytes) in starts.into_iter().zip(reader.read_ranges(ranges).await.map_err(reading)?) {
            fetched.add(start, bytes);
        }
        self.read_page_indexes_of(&fetched, policy)
    }
}
