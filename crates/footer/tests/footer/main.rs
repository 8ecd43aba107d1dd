//! Tests of the footer decoder from outside: against the `parquet` crate, and against broken bytes.

mod broken;
mod equality;
mod files;
mod handmade;
mod methods;
mod page_indexes;
mod samples;
mod selection;
