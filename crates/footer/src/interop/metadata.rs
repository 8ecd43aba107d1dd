//! Converts a footer, or its decoded part, to the `parquet` crate's metadata, so that the crate's readers can
//! use it. Compiled once for each version of the crate, which the module above names.
//!
//! In that metadata a row group must have every column of its schema, so both the schema
//! (`schema.rs`) and the Arrow schema beside it (`arrow.rs`) are pruned to the
//! wanted columns (`projection.rs`). That also saves the readers their cost for every other column. The column chunks are
//! built of the structs of the wanted ones alone (`row_groups.rs`).

use std::borrow::Cow;
use std::sync::Arc;

use super::parquet::errors::ParquetError;
use super::parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetMetaDataWriter,
};
use super::parquet::schema::types::ColumnDescPtr;

use super::projection::Projection;
use super::{row_groups, schema};
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::options::Options;

/// A footer that is being converted.
struct Conversion<'f> {
    footer: &'f Footer,
}

/// See [`Footer::to_parquet_59`].
pub(super) fn to_parquet(footer: &Footer, leaves: Option<&[usize]>) -> Result<ParquetMetaData> {
    Conversion { footer }.run(leaves)
}

/// See [`Footer::unreadable_by_parquet_59`].
pub(super) fn unreadable(footer: &Footer) -> Vec<(usize, Error)> {
    Conversion { footer }.unreadable()
}

/// See [`Footer::from_parquet_59`].
pub(super) fn from_parquet(metadata: &ParquetMetaData, options: &Options) -> Result<Footer> {
    let mut bytes = Vec::new();
    let theirs = |error: ParquetError| Error::new(format!("writing metadata failed: {error}"));
    ParquetMetaDataWriter::new(&mut bytes, metadata).finish().map_err(theirs)?;
    // The writer appends the footer's length and the magic; the length locates the footer's start.
    let tail = bytes.last_chunk::<8>().ok_or_else(|| Error::new("expected metadata, found no bytes"))?;
    let len = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
    let end = bytes.len() - 8;
    let start = end.checked_sub(len).ok_or_else(|| Error::new("expected whole metadata, found a part"))?;
    Footer::decode(&bytes[start..end], options)
}

impl Conversion<'_> {
    fn run(&self, leaves: Option<&[usize]>) -> Result<ParquetMetaData> {
        let footer = self.footer;
        let readable = self.are_all_readable();
        let plain = readable && footer.decoded.rows.have_possible_dictionaries() && footer.has_true_sizes();
        let chosen = leaves.is_some();
        let leaves = self.wanted_leaves(leaves, readable)?;
        let whole = leaves.len() == footer.schema().num_leaves();
        if whole
            && plain
            && let Some(metadata) = self.decoded_by_the_crate(&leaves)
        {
            return Ok(metadata);
        }
        let projection = match Projection::new(footer.schema(), leaves) {
            // Columns that the crate has no types for are left out unless they were named.
            Err(_) if !chosen && readable => Projection::new(footer.schema(), self.readable_leaves()),
            made => made,
        };
        let projection = projection.map_err(|error| footer.name_error(error))?;
        let groups = row_groups::convert(footer, &projection.leaves, &projection.descriptor, plain)?;
        Ok(ParquetMetaDataBuilder::new(self.file(&projection)).set_row_groups(groups).build())
    }

    /// The metadata outside the row groups.
    fn file(&self, projection: &Projection) -> FileMetaData {
        let (footer, leaves) = (self.footer, &projection.leaves);
        let whole = leaves.len() == footer.schema().num_leaves();
        let pairs = footer.key_value_metadata().filter_map(|(key, value)| {
            let is_arrow = key == super::parquet::arrow::ARROW_SCHEMA_META_KEY;
            let value = match value {
                // A hint that does not fit the schema is useless; without it, readers derive Arrow's types
                // from the schema.
                Some(value) if !whole && is_arrow => Some(projection.arrow(&value, footer.schema())?),
                value => value.map(Cow::into_owned),
            };
            Some(KeyValue { key: key.into_owned(), value })
        });
        let pairs = footer.has_key_value_metadata().then(|| pairs.collect());
        let orders = footer.column_orders().filter(|orders| orders.len() == footer.schema().num_leaves());
        let orders = orders.map(|orders| {
            let order = |(&leaf, column): (&usize, &ColumnDescPtr)| super::column_order(orders[leaf], column);
            leaves.iter().zip(projection.descriptor.columns()).map(order).collect()
        });
        let num_rows = self.rows_of_groups();
        let created_by = footer.created_by().map(Cow::into_owned);
        let descriptor = Arc::clone(&projection.descriptor);
        FileMetaData::new(footer.version(), num_rows, created_by, pairs, descriptor, orders)
    }

    /// The rows of the decoded row groups. The file's own number may be another, and the crate's readers end by it.
    fn rows_of_groups(&self) -> i64 {
        self.footer.row_groups().map(|group| group.num_rows()).fold(0, i64::saturating_add)
    }

    /// What the crate's own decoder makes of the footer's bytes as they are; `None` if that has less than what
    /// was decoded, or more.
    fn decoded_by_the_crate(&self, leaves: &[usize]) -> Option<ParquetMetaData> {
        let footer = self.footer;
        let all = footer.num_row_groups() == footer.num_row_groups_in_file()
            && footer.decoded.with_statistics.is_none()
            && footer.num_rows() == self.rows_of_groups()
            && footer.trailing_bytes().is_empty();
        if !all {
            return None;
        }
        let mut options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
        let kept = Projection::kept(footer.schema(), leaves);
        match &kept {
            Some(kept) => options.set_schema(Arc::clone(&kept.descriptor)),
            None if schema::is_plain(footer.schema()) => {}
            None => return None,
        }
        // If the crate rejects the footer, the conversion of its parts finds where.
        let decoded =
            ParquetMetaDataReader::decode_metadata_with_options(footer.bytes(), Some(&options)).ok()?;
        if decoded.file_metadata().num_rows() != self.rows_of_groups() {
            return None;
        }
        if kept.is_none() {
            let descriptor = decoded.file_metadata().schema_descr_ptr();
            if descriptor.num_columns() != leaves.len() {
                return None;
            }
            Projection::keep(footer.schema(), leaves.to_vec(), descriptor);
        }
        Some(decoded)
    }

    /// Whether all decoded chunks can be read, as far as their own metadata tells.
    fn are_all_readable(&self) -> bool {
        let footer = self.footer;
        let leaf = |position: usize| footer.schema().leaf(footer.leaf_of(position)?)?.physical_type();
        let types = (0..footer.num_columns()).map(|position| leaf(position).map_or(-1, |of| of.number()));
        footer.decoded.rows.are_readable(&types.collect::<Vec<i32>>())
    }

    /// The decoded columns, by their leaves.
    fn decoded_leaves(&self) -> Vec<usize> {
        match &self.footer.decoded.columns {
            Some(columns) => columns.iter().map(|&leaf| leaf as usize).collect(),
            None => (0..self.footer.num_columns()).collect(),
        }
    }

    fn wanted_leaves(&self, leaves: Option<&[usize]>, readable: bool) -> Result<Vec<usize>> {
        let mut leaves = match leaves {
            Some(leaves) => leaves.to_vec(),
            None if readable => return Ok(self.decoded_leaves()),
            None => return Ok(self.readable_leaves()),
        };
        leaves.sort_unstable();
        leaves.dedup();
        match leaves.iter().find(|&&leaf| self.footer.position_of(leaf).is_none()) {
            Some(leaf) => Err(self.footer.name_error(
                Error::new(format!("expected decoded columns, found column {leaf}, which was not decoded"))
                    .with_advice("decode it too: name it in the options"),
            )),
            None => Ok(leaves),
        }
    }

    /// The decoded columns whose every chunk the crate can read, without parts of maps.
    fn readable_leaves(&self) -> Vec<usize> {
        let left_out = self.unreadable();
        let is_left_out = |leaf: &usize| left_out.binary_search_by_key(leaf, |(leaf, _)| *leaf).is_ok();
        self.decoded_leaves().into_iter().filter(|leaf| !is_left_out(leaf)).collect()
    }

    /// The other decoded columns, in ascending order, each with its fault.
    fn unreadable(&self) -> Vec<(usize, Error)> {
        let footer = self.footer;
        let of_schema = |leaf| footer.schema().leaf(leaf).and_then(schema::refused);
        let mut left_out: Vec<(usize, Error)> = Vec::new();
        for leaf in self.decoded_leaves() {
            let chunks = || footer.row_groups().filter_map(|group| group.column_of_leaf(leaf));
            let error = of_schema(leaf).map(|error| footer.name_error(error));
            let error = error.or_else(|| chunks().find_map(|chunk| chunk.readable().err()));
            left_out.extend(error.map(|error| (leaf, error)));
        }
        let mut of_maps = Vec::new();
        for (leaf, _) in &left_out {
            let element = footer.schema().leaf(*leaf);
            let groups = std::iter::successors(element, |element| element.parent());
            for map in groups.filter(|group| schema::is_map(*group)) {
                let what = format!("expected all columns of the map `{}` to be readable", map.path());
                let others = map.columns().filter(|other| footer.position_of(*other).is_some());
                of_maps.extend(others.map(|other| (other, footer.name_error(Error::new(what.clone())))));
            }
        }
        // The sort is stable: a column's own fault comes first.
        left_out.extend(of_maps);
        left_out.sort_by_key(|(leaf, _)| *leaf);
        left_out.dedup_by_key(|(leaf, _)| *leaf);
        left_out
    }
}
