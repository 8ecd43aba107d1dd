//! Columns whose values are keys of another table: found by comparing values, kept with their skew.
//!
//! A key is a column of distinct whole numbers or strings without nulls. Another table's
//! column refers to it if nearly all of its sampled values are keys, and these are spread over all keys or the names
//! agree: small numbers alone are keys of any table that counts its rows.

mod composite;
mod evidence;
pub(crate) mod found;
mod key;
pub(crate) mod skew;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

pub(crate) use evidence::Evidence;
pub use key::KeyColumn;
pub(crate) use key::{Class, Hashes, Key};
