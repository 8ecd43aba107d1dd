//! Footers opened by callers with their own I/O.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use sawmill_footer::{
    AsyncRangeReader, ColumnSelector, Decoder, Error, FetchedRanges, Footer, FooterRequest, NextStep,
    Options, PageIndexPolicy,
};

use crate::everything::{everything, page_indexes};
use crate::samples;

/// Opens a footer by request; returns it or its error, and how many ranges were fetched.
fn by_request(file: &[u8], options: &Options) -> (Result<Footer, Error>, usize) {
    let mut fetched = 0;
    let footer = (|| {
        let mut request = FooterRequest::new(file.len() as u64, "object", options)?;
        loop {
            fetched += 1;
            let range = request.wanted();
            match request.supply(file[range.start as usize..range.end as usize].to_vec())? {
                NextStep::Fetch(again) => request = again,
                NextStep::Done(footer) => return Ok(*footer),
            }
        }
    })();
    (footer, fetched)
}

#[test]
fn a_footer_by_request_equals_one_that_was_read() {
    for (name, file) in samples::all() {
        let len = samples::metadata(&file).len();
        for hint in [0, 1, 8, 9, 100, len + 7, len + 8, len + 9, file.len(), 1 << 20] {
            let options = Options::new().tail_hint(hint);
            let (footer, fetched) = by_request(&file, &options);
            let read = Footer::read(file.as_slice(), "object", &options);
            assert_eq!(everything(&footer), everything(&read), "{name}, {hint}");
            assert_eq!(fetched, if hint < len + 8 { 2 } else { 1 }, "{name}, {hint} of {len}");
        }
    }
}

#[test]
fn one_decoder_finishes_the_requests_of_many_files() {
    let options = Options::new().tail_hint(100);
    let mut decoder = Decoder::new(options.clone());
    for (name, file) in samples::all().into_iter().chain(samples::all()) {
        let mut request = FooterRequest::new(file.len() as u64, "object", &options).unwrap();
        let footer = loop {
            let range = request.wanted();
            let bytes = file[range.start as usize..range.end as usize].to_vec();
            match request.supply_to(bytes, &mut decoder) {
                Ok(NextStep::Fetch(again)) => request = again,
                Ok(NextStep::Done(footer)) => break Ok(*footer),
                Err(error) => break Err(error),
            }
        };
        let read = Footer::read(file.as_slice(), "object", &options);
        assert_eq!(everything(&footer), everything(&read), "{name}");
        let by_decoder = decoder.read(file.as_slice(), "object");
        assert_eq!(everything(&by_decoder), everything(&read), "{name}");
    }
}

#[test]
fn a_decoder_can_be_kept_by_a_server() {
    fn moves_between_threads<T: Send + Sync + 'static>() {}
    moves_between_threads::<Decoder>();
}

#[test]
fn what_is_no_parquet_file_is_the_same_error_by_request() {
    let file = samples::all().remove(0).1;
    let mut long = file.clone();
    let end = long.len();
    long[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let cases: [&[u8]; 6] = [b"", b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", &file[..file.len() - 1], &long];
    for case in cases {
        let (found, _) = by_request(case, &Options::new());
        let read = Footer::read(case, "object", &Options::new());
        assert_eq!(everything(&found), everything(&read));
        assert!(found.is_err());
    }
    let (found, _) = by_request(&file, &Options::new().max_footer(10));
    assert!(found.unwrap_err().what().contains("at most 10 bytes"));
    let request = FooterRequest::new(file.len() as u64, "object", &Options::new()).unwrap();
    let error = request.supply(vec![0; 3]).unwrap_err();
    assert!(error.to_string().contains("found 3") && error.to_string().contains("object"), "{error}");
}

#[test]
fn page_indexes_of_fetched_ranges_equal_those_that_were_read() {
    let with_indexes = samples::all().into_iter().filter(|(name, _)| !name.starts_with("empty"));
    for (name, file) in with_indexes {
        let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
        let of = |policy: &PageIndexPolicy| {
            let mut fetched = FetchedRanges::new(file.len() as u64);
            let ranges = footer.page_index_ranges(policy).unwrap();
            for range in ranges.iter().rev() {
                fetched.add(range.start, file[range.start as usize..range.end as usize].to_vec());
            }
            (ranges, fetched)
        };
        let (ranges, fetched) = of(&PageIndexPolicy::All);
        assert_eq!(page_indexes(&footer, &fetched), page_indexes(&footer, file.as_slice()), "{name}");
        // Neighbours are one range.
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{name}: {ranges:?}");
        let some = PageIndexPolicy::Chunks(vec![ColumnSelector::Index(1)], 1..2);
        let (ranges, fetched) = of(&some);
        let text = |found| {
            format!(
                "{:?}",
                Result::<_, Error>::map(found, |found: sawmill_footer::PageIndexes| {
                    found.offset_index(1, 1).zip(found.column_index(1, 1))
                })
            )
        };
        let expected = text(footer.read_page_indexes_of(file.as_slice(), &some));
        assert_eq!(text(footer.read_page_indexes_of(&fetched, &some)), expected, "{name}");
        assert!(ranges.len() <= 2, "{name}: {ranges:?}");
        assert!(of(&PageIndexPolicy::None).0.is_empty());
        // Bytes that were not fetched are an error, not zeros.
        if !ranges.is_empty() {
            let error = page_indexes(&footer, &fetched);
            assert!(error.contains("not fetched"), "{name}: {error}");
        }
    }
}

/// An object in memory that records the requested ranges.
struct Object<'f>(&'f [u8], Mutex<Vec<Range<u64>>>);

impl AsyncRangeReader for Object<'_> {
    async fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    async fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.1.lock().unwrap().push(range.clone());
        let part = self.0.get(range.start as usize..range.end as usize);
        part.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Runs a future that is always ready.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing waits"),
    }
}

#[test]
fn an_asynchronous_reader_gets_the_same_footers_and_page_indexes_with_few_requests() {
    for (name, file) in samples::all() {
        let object = Object(&file, Mutex::default());
        let options = Options::new().page_indexes(PageIndexPolicy::All);
        let found = run(Footer::read_async(&object, "object", &options));
        let read = Footer::read(file.as_slice(), "object", &options);
        assert_eq!(everything(&found), everything(&read), "{name}");
        let requests = object.1.into_inner().unwrap();
        // One for the footer; the indexes of a small file lie together.
        assert!(requests.len() <= 2, "{name}: {requests:?}");
    }
    let short = Object(b"PAR1", Mutex::default());
    assert!(run(Footer::read_async(&short, "object", &Options::new())).is_err());
}
