//! Footers whose chunks leave out `path_in_schema`, as newer writers may.

use sawmill_footer::{Footer, Method, Options};

use crate::everything::everything;
use crate::handmade;
use crate::methods::OTHERS;
use crate::thrift_writer::ThriftWriter;

/// Row groups of ten columns; a chunk states its path if `paths` is true.
fn footer(row_groups: u64, paths: bool) -> Vec<u8> {
    let columns = 10;
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, columns);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, row_groups);
    for group in 0..row_groups {
        handmade::row_group(&mut writer, columns, |writer, column| {
            writer.begin_element();
            writer.i64(2, 0);
            writer.begin(3);
            writer.i32(1, 2);
            writer.list(2, handmade::I32, 1);
            writer.integer(0);
            if paths {
                writer.list(3, handmade::BINARY, 1);
                writer.bytes_value(format!("c{column}").as_bytes());
            }
            writer.i32(4, 6);
            writer.i64(5, 10);
            writer.i64(6, 200 + group as i64);
            writer.i64(7, 100 * column as i64);
            writer.i64(9, 4);
            writer.stop();
            writer.stop();
        });
    }
    writer.stop();
    writer.into_bytes()
}

#[test]
fn footers_without_paths_decode_alike_by_all_methods_few_chunks_and_many() {
    for row_groups in [1, 3, 100] {
        let (with, without) = (footer(row_groups, true), footer(row_groups, false));
        let with = Footer::decode(with, &Options::new()).unwrap();
        let by = |method| Footer::decode(without.as_slice(), &Options::new().method(method));
        let expected = everything(&by(Method::Scalar));
        for method in OTHERS {
            assert_eq!(everything(&by(method)), expected, "{row_groups} row groups, {method:?}");
        }
        let without = by(Method::Fastest).unwrap();
        for (a, b) in with.row_groups().zip(without.row_groups()) {
            for (a, b) in a.columns().zip(b.columns()) {
                let of = |chunk: &sawmill_footer::ColumnChunk<'_>| {
                    (chunk.path(), chunk.codec(), chunk.compressed_size(), chunk.uncompressed_size())
                };
                assert_eq!(of(&a), of(&b));
            }
        }
    }
}
