//! Sources, in one program: what they read, leave out and refuse.

#[path = "../../../footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the tests need some of its methods")]
mod thrift_writer;

mod conditions;
mod ordered;
mod pages {
    mod damaged_files;
    mod left_out;
    mod levels;
    mod page_checksums;
    mod page_sizes;
}
mod text {
    mod compressed_text;
    mod delimited;
    mod json_lines;
    mod line_ends;
}
