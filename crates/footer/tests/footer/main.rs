//! Tests of the footer decoder through its public API: against the `parquet` crate, and against broken bytes.

mod broken;
mod check_damaged;
mod check_orders;
mod checks;
mod encrypted_columns;
mod equality;
mod everything;
mod examples;
mod files;
mod foreign;
mod handmade;
mod interop;
#[cfg(feature = "parquet-60")]
mod interop_60;
mod interop_page_indexes;
mod interop_repaired;
mod many;
mod methods;
mod odd_fields;
mod overlapping_page_indexes;
mod page_headers;
mod page_index_equality;
mod page_indexes;
mod policies;
mod requests;
mod samples;
mod selection;
mod sparse_page_indexes;
mod synthetic;
#[path = "../../src/interop/writer.rs"]
mod thrift_writer;
mod under_miri;
mod without_paths;
