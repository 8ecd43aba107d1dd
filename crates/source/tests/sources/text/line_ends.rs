//! Lines that end with carriage returns alone, and texts whose lines end in two ways.

use sawmill_source::{ColumnType, DelimitedOptions};

use super::delimited::{all_text, batches, opened, refused, texts};

#[test]
fn lines_may_end_with_carriage_returns_alone() {
    let mut options = DelimitedOptions { types: all_text(2), ..DelimitedOptions::default() };
    for chunk in 1..30 {
        let files = opened(b"c0,c1\r1,\"x\ry\"\r\r2,z\r", &options, chunk).unwrap();
        let read = texts(&batches(&files, 1, 1).unwrap());
        let word = |word: &str| Some(word.to_owned());
        assert_eq!(read, [[word("1"), word("x\ry")], [word("2"), word("z")]]);
    }
    options.types = vec![("c0".into(), ColumnType::Int64)];
    let error = refused("c0,c1\r1,x\rz,y\r", &options);
    assert!(error.contains("line 3, byte offset 10, column \"c0\""), "{error}");
}

#[test]
fn a_line_feed_among_lines_that_end_with_carriage_returns_merges_no_records() {
    let returns = "c0\r".to_owned() + &"value\r".repeat(11_000);
    let options = DelimitedOptions { types: all_text(1), ..DelimitedOptions::default() };
    let error = refused(&(returns.clone() + "one\ntwo\nthree\r"), &options);
    assert!(error.contains("a line feed is here") && error.contains("tr '\\r' '\\n'"), "{error}");
    assert!(error.contains("line 11002, byte offset 66006"), "{error}");
    let error = refused(&(returns.clone() + "\"one\"\ntwo\r"), &options);
    assert!(error.contains("a line feed is here"), "{error}");
    // The pair ends a line, and quotes keep a line feed between them.
    let files = opened((returns + "one\r\n\"two\nthree\"\r\n").as_bytes(), &options, 1 << 20).unwrap();
    let read = texts(&batches(&files, 20_000, 20_000).unwrap());
    let last: Vec<_> = read[11_000..].concat();
    assert_eq!(last, [Some("one".to_owned()), Some("two\nthree".to_owned())]);
}
