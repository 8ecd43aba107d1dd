//! Pages by their headers: bodies are not read, and reads are bounded.

use std::cell::RefCell;
use std::io;

use sawmill_footer::{ChunkPages, PageType, RangeReader};

use crate::thrift_writer::ThriftWriter;

/// A file of headers at some places and nothing else, which notes the reads.
struct Headers {
    headers: Vec<(u64, Vec<u8>)>,
    len: u64,
    reads: RefCell<Vec<usize>>,
}

impl RangeReader for Headers {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if offset + buffer.len() as u64 > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.reads.borrow_mut().push(buffer.len());
        buffer.fill(0);
        for (start, header) in &self.headers {
            for (at, byte) in (*start..).zip(header) {
                if let Some(into) = at.checked_sub(offset).and_then(|at| buffer.get_mut(at as usize)) {
                    *into = *byte;
                }
            }
        }
        Ok(())
    }
}

fn header(body: u32, bound: usize) -> Vec<u8> {
    let mut w = ThriftWriter::new();
    w.i32(1, 0);
    w.i32(2, body as i32);
    w.i32(3, body as i32);
    w.begin(5);
    w.i32(1, 100);
    w.i32(2, 0);
    w.i32(3, 3);
    w.i32(4, 3);
    w.begin(5);
    w.binary(5, &vec![b'x'; bound]);
    w.stop();
    w.stop();
    w.stop();
    w.into_bytes()
}

/// Pages with bodies of these lengths from byte 4 on.
fn pages(bodies: &[u32]) -> Headers {
    let mut at = 4;
    let page = |body: &u32| {
        let (start, header) = (at, header(*body, 3));
        at += header.len() as u64 + u64::from(*body);
        (start, header)
    };
    let headers = bodies.iter().map(page).collect();
    Headers { headers, len: at, reads: RefCell::default() }
}

#[test]
fn bodies_are_left_out() {
    let gigabyte = 1 << 30;
    let bodies = [gigabyte, 0, 5, 70_000, gigabyte, 1];
    let file = pages(&bodies);
    let mut found = ChunkPages::new(&file, 4..file.len);
    for (index, (body, (start, header))) in bodies.iter().zip(&file.headers).enumerate() {
        let page = found.next_header().unwrap().unwrap();
        assert_eq!((page.index, page.offset, page.header_len), (index, *start, header.len()));
        assert_eq!((page.compressed_size, page.num_values), (*body, 100));
        assert_eq!(page.page_type, PageType::DataPage);
    }
    assert_eq!(found.next_header().unwrap(), None);
    let reads = file.reads.borrow();
    assert!(reads.len() <= bodies.len() && reads.iter().all(|read| *read <= 64 << 10), "{reads:?}");
}

#[test]
fn headers_and_whole_pages_may_be_read_in_turn() {
    let file = pages(&[100_000, 300_000, 7, 600_000, 9]);
    let mut found = ChunkPages::new(&file, 4..file.len);
    for (at, (start, _)) in file.headers.iter().enumerate() {
        let mut bytes = 0;
        let page = match at % 2 {
            0 => found.next_header(),
            _ => found.next_page(|body| bytes += body.len() as u32),
        };
        let page = page.unwrap().unwrap();
        assert_eq!(page.offset, *start);
        assert_eq!(bytes, if at % 2 == 0 { 0 } else { page.compressed_size });
    }
    assert_eq!(found.next_page(|_| {}).unwrap(), None);
}

#[test]
fn a_long_header_is_read_in_pieces_and_only_to_its_bound() {
    let at_most = 1 << 24;
    for (bound, accepted) in [(10 << 20, true), (at_most - 100, true), (at_most, false), (40 << 20, false)] {
        let bytes = header(0, bound);
        let len = 4 + bytes.len() as u64;
        let file = Headers { headers: vec![(4, bytes.clone())], len, reads: RefCell::default() };
        let found = ChunkPages::new(&file, 4..len).next_header();
        let read: usize = file.reads.borrow().iter().sum();
        assert!(read <= at_most, "{read} bytes for a bound of {bound}");
        match accepted {
            true => assert_eq!(found.unwrap().unwrap().header_len, bytes.len()),
            false => {
                let error = found.unwrap_err();
                assert!(error.what().contains("of at most 16777216 bytes, found a longer one"), "{error}");
                assert_eq!(error.path(), "page 0, byte 4 of the file");
            }
        }
    }
}

#[test]
fn what_is_no_header_is_rejected_by_its_first_bytes() {
    let file = Headers { headers: vec![(4, vec![0xff; 100])], len: 1 << 40, reads: RefCell::default() };
    let error = ChunkPages::new(&file, 4..file.len).next_header().unwrap_err();
    assert!(error.what().contains("expected the header of a page"), "{error}");
    assert_eq!(file.reads.borrow().len(), 1);
}

#[test]
fn a_last_page_that_is_cut_off_is_an_error() {
    let mut file = pages(&[5, 100_000]);
    let end = file.len;
    file.len -= 1;
    let mut found = ChunkPages::new(&file, 4..end);
    found.next_header().unwrap();
    // The read at the end of the chunk fails, or the end of the file is noticed.
    let error = found.next_header().unwrap_err();
    assert!(error.path().starts_with("page 1, byte"), "{error}");
}
