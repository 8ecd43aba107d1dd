//! Tests of the footer decoder from outside: against the `parquet` crate, and against broken bytes.

mod broken;
mod equality;
mod files;
mod handmade;
#[cfg(feature = "parquet")]
mod interop;
mod methods;
mod page_indexes;
mod samples;
mod selection;
