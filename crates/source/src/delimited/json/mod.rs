//! Lines of JSON objects as a source.
//!
//! ```text
//! sample of the lines ─▶ the shape of each key's values ─▶ types: scalars, structs, lists, or `json` where kinds differ
//! lines ─▶ keys to columns ─▶ texts of the values ─▶ Arrow arrays, as for delimited text
//! ```
//!
//! A line is divided by `serde_json`, which leaves each value as text; numbers keep all digits that way, and each
//! value its place.

mod columns;
mod place;
mod shape;
mod walk;

pub(super) use self::columns::{JsonColumn, JsonType, decode};
pub(super) use self::place::Misfit;
pub(super) use self::shape::{Shape, paths, retype, sampled};
