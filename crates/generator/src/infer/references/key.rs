//! The values of a column as hashes, and the column as a key of its table.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::infer::notation::quoted;
use crate::infer::sample::inferred_field::{cast, leaf_kind};
use crate::infer::sample::leaf_sample::each_whole;

/// What values may be compared with one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Whole,
    Text,
    /// Bytes: specs have references to UUIDs alone.
    Bytes,
}

impl Class {
    /// The class of a type of [`leaf_kind`].
    pub(crate) fn new(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Utf8 => Some(Class::Text),
            DataType::Binary | DataType::FixedSizeBinary(_) => Some(Class::Bytes),
            DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0) => Some(Class::Whole),
            kind if kind.is_integer() => Some(Class::Whole),
            _ => None,
        }
    }
}

pub(crate) fn number_hash(number: i128) -> u64 {
    xxh3_64(&number.to_le_bytes())
}

/// The values of a column in their order without nulls, as hashes.
#[derive(Clone, Debug)]
pub(crate) struct Hashes {
    pub class: Class,
    pub kind: DataType,
    pub values: Vec<u64>,
}

impl Hashes {
    /// For a column of this type; `None` if its values cannot be keys.
    pub(crate) fn new(kind: &DataType) -> Option<Self> {
        let kind = leaf_kind(kind).ok()?;
        Some(Hashes { class: Class::new(&kind)?, kind, values: Vec::new() })
    }

    pub(crate) fn add(&mut self, array: &ArrayRef) -> Result<()> {
        let array = cast(array, &self.kind)?;
        let nulls = array.logical_nulls();
        let there = (0..array.len()).filter(|i| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*i)));
        let out = &mut self.values;
        match self.class {
            Class::Whole => {
                let there: Vec<usize> = there.collect();
                // A value of more than 128 bits is not a key that another column has.
                let hash = |value: Option<i128>| number_hash(value.unwrap_or(i128::MIN));
                each_whole(&array, &mut |value| out.extend(there.iter().map(|i| hash(value(*i)))));
            }
            Class::Text => {
                let texts = array.as_string::<i32>();
                out.extend(there.map(|i| xxh3_64(texts.value(i).as_bytes())));
            }
            Class::Bytes => match array.as_binary_opt::<i32>() {
                Some(bytes) => out.extend(there.map(|i| xxh3_64(bytes.value(i)))),
                None => {
                    let bytes = array.as_fixed_size_binary();
                    out.extend(there.map(|i| xxh3_64(bytes.value(i))));
                }
            },
        }
        Ok(())
    }

    /// Whether no two values are equal.
    pub(crate) fn all_differ(&self) -> bool {
        let mut sorted = self.values.clone();
        sorted.sort_unstable();
        !sorted.is_empty() && sorted.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// All values of a column, to find out whether it is a key.
#[derive(Debug)]
pub struct KeyColumn {
    hashes: Hashes,
    nulls: u64,
    least: i128,
    greatest: i128,
    /// The length of the shortest string, in bytes.
    shortest: usize,
}

impl KeyColumn {
    /// The most rows of a table whose keys are looked at: they take 32 bytes each.
    pub const MAX_ROWS: u64 = 16_000_000;

    /// Starts with a column of this type; `None` if its values cannot be keys.
    pub fn new(kind: &DataType) -> Option<Self> {
        let hashes = Hashes::new(kind)?;
        Some(KeyColumn { hashes, nulls: 0, least: i128::MAX, greatest: i128::MIN, shortest: usize::MAX })
    }

    /// Adds the next values.
    ///
    /// # Errors
    /// The values have another type.
    pub fn add(&mut self, array: &ArrayRef) -> Result<()> {
        self.nulls += array.logical_null_count() as u64;
        let array = cast(array, &self.hashes.kind)?;
        self.hashes.add(&array)?;
        if self.hashes.class == Class::Whole {
            let there: Vec<usize> = (0..array.len()).filter(|i| array.is_valid(*i)).collect();
            each_whole(&array, &mut |value| {
                for value in there.iter().filter_map(|i| value(*i)) {
                    self.least = self.least.min(value);
                    self.greatest = self.greatest.max(value);
                }
            });
        } else if self.hashes.class == Class::Text {
            for text in array.as_string::<i32>().iter().flatten() {
                self.shortest = self.shortest.min(text.len());
            }
        }
        Ok(())
    }

    /// The key that the column is; `None` if values are equal or null.
    pub(crate) fn key(&self) -> Option<Key> {
        let rows = self.hashes.values.len();
        if self.nulls > 0 || rows == 0 || rows as u64 > Self::MAX_ROWS {
            return None;
        }
        let key = Key::new(&self.hashes)?;
        Some(Key { range: (self.least, self.greatest), shortest: self.shortest, ..key })
    }
}

#[derive(Debug)]
pub(crate) struct Key {
    pub class: Class,
    /// The row of each value, by its hash.
    pub rows_of: HashMap<u64, u32>,
    range: (i128, i128),
    shortest: usize,
}

impl Key {
    /// The key with these values, of no known range; `None` if two are equal.
    pub(crate) fn new(hashes: &Hashes) -> Option<Self> {
        let rows_of: HashMap<u64, u32> = hashes.values.iter().copied().zip(0..).collect();
        let all_differ = rows_of.len() == hashes.values.len();
        all_differ.then_some(Key { class: hashes.class, rows_of, range: (0, 0), shortest: 0 })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows_of.len() as u64
    }

    /// The first key and the distance of the next: as in the data if that has no gaps, else gaps of the same
    /// length between the same ends.
    pub(crate) fn sequence(&self) -> (i128, i128) {
        let (least, greatest) = self.range;
        (least, (greatest.saturating_sub(least) / (self.rows() as i128 - 1).max(1)).max(1))
    }

    /// Whether its values have gaps.
    pub(crate) fn has_gaps(&self) -> bool {
        let (least, greatest) = self.range;
        self.class == Class::Whole && greatest.saturating_sub(least) != self.rows() as i128 - 1
    }

    /// The `values` of the column, for references to it; for strings, `found` is the result for the sample.
    pub(crate) fn values(&self, found: &str) -> String {
        match self.class {
            Class::Whole => {
                let (start, step) = self.sequence();
                let step = if step == 1 { String::new() } else { format!(", step = {step}") };
                format!("{{ sequence = {{ start = {start}{step} }} }}")
            }
            _ if ["\"uuid\"", "{ unique = ", "{ pattern = { unique = "]
                .iter()
                .any(|own| found.starts_with(own)) =>
            {
                found.to_owned()
            }
            _ => {
                let digits = (self.rows().max(2) - 1).ilog10() as usize + 1;
                let width = self.shortest.clamp(digits, digits.max(20));
                let filler = "k".repeat(self.shortest.saturating_sub(width));
                format!("{{ unique = {} }}", quoted(&format!("{filler}{{id:0{width}}}")))
            }
        }
    }
}
