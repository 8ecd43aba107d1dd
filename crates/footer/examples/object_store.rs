//! An asynchronous client of an object store opens footers without this crate's I/O: the decoder says which
//! ranges it needs, the client fetches them.
//!
//! ```sh
//! cargo run -p sawmill-footer --example object_store
//! ```

use std::error::Error;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use sawmill_footer::{
    ColumnSelector, FetchedRanges, Footer, FooterRequest, NextStep, Options, PageIndexPolicy,
};

/// A stand-in for a store's client: `object_store`, an SDK, `reqwest`.
struct Store {
    object: Vec<u8>,
    requests: AtomicUsize,
}

impl Store {
    async fn head(&self) -> u64 {
        self.object.len() as u64
    }

    async fn get_range(&self, range: Range<u64>) -> Vec<u8> {
        self.requests.fetch_add(1, Relaxed);
        self.object[range.start as usize..range.end as usize].to_vec()
    }
}

/// The footer of an object: one request for its last 64 KiB, and another if the footer is longer.
async fn footer(store: &Store, name: &str, options: &Options) -> Result<Footer, sawmill_footer::Error> {
    let mut request = FooterRequest::new(store.head().await, name, options)?;
    loop {
        let bytes = store.get_range(request.wanted()).await;
        match request.supply(bytes)? {
            NextStep::Fetch(again) => request = again,
            NextStep::Done(footer) => return Ok(*footer),
        }
    }
}

/// The page indexes of some columns: one request for each range of neighbours, which may run concurrently.
async fn page_indexes(
    store: &Store,
    footer: &Footer,
    policy: &PageIndexPolicy,
) -> Result<sawmill_footer::PageIndexes, sawmill_footer::Error> {
    let mut fetched = FetchedRanges::new(store.head().await);
    for range in footer.page_index_ranges(policy)? {
        fetched.add(range.start, store.get_range(range).await);
    }
    footer.read_page_indexes_of(&fetched, policy)
}

/// A file of two row groups with page indexes.
fn object() -> Result<Vec<u8>, Box<dyn Error>> {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use parquet::file::properties::WriterProperties;
    let column = |at: i64| -> (String, ArrayRef) {
        (format!("c{at}"), std::sync::Arc::new(Int64Array::from_iter_values(at..at + 100)))
    };
    let batch = RecordBatch::try_from_iter((0..40).map(column))?;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(50)).build();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let store = Store { object: object()?, requests: AtomicUsize::new(0) };
    run(async {
        let whole = footer(&store, "store/trips.parquet", &Options::new()).await?;
        assert_eq!((whole.num_row_groups(), whole.num_columns()), (2, 40));
        assert_eq!(store.requests.swap(0, Relaxed), 1);
        // With a hint that is too small, a second request gets the rest.
        let small = footer(&store, "store/trips.parquet", &Options::new().tail_hint(1000)).await?;
        assert_eq!(small.num_rows(), 100);
        assert_eq!(store.requests.swap(0, Relaxed), 2);
        let policy = PageIndexPolicy::Chunks(
            ["c3", "c4"].map(|path| ColumnSelector::Path(path.into())).to_vec(),
            0..2,
        );
        let indexes = page_indexes(&store, &whole, &policy).await?;
        let column_index = indexes.column_index(1, 3).ok_or("an index of c3")?;
        println!(
            "c3 from row 50 on: at least {:?}; {} requests for four chunks' indexes",
            column_index.min_value(0),
            store.requests.load(Relaxed),
        );
        Ok(())
    })
}

/// The smallest executor, for futures that are always ready; programs bring their own.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
