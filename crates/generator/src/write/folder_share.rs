//! The share of rows in the largest folder of a partitioned dataset.

use std::collections::HashMap;

use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::encode::physical::{PhysicalRoom, physical};
use crate::error::Result;
use crate::layout::file_options::FileOptions;
use crate::shred::block::Shredder;
use crate::spec::dataset::{Dataset, Field, Leaf};
use crate::write::plan::FilePlan;
use crate::write::row_size::RowSize;

/// The most rows to sample if the spec does not determine the shares.
const SAMPLE_ROWS: u64 = 16_384;

impl RowSize {
    /// The share of rows, from 0 to 1, in the folder with the most rows. Files and row groups of a given size
    /// contain this share of their rows. It depends on the dataset, the seed and the column alone.
    ///
    /// # Errors
    /// The dataset cannot be partitioned by the column.
    pub fn largest_folder(
        &self,
        dataset: &Dataset,
        options: &FileOptions,
        column: &str,
        seed: u64,
    ) -> Result<f64> {
        let plan = FilePlan::new(options, dataset, Some(column))?;
        let Some((field, leaf)) = plan.partition else { return Ok(1.0) };
        let share = match share_in_spec(field, leaf) {
            Some(share) => share,
            None => sampled(dataset, leaf, seed, self.sampled.clamp(1, SAMPLE_ROWS)),
        };
        Ok(share.clamp(1e-9, 1.0))
    }
}

/// The share according to the spec.
fn share_in_spec(field: &Field, leaf: &Leaf) -> Option<f64> {
    let null = match field.nulls {
        Nulls::Never => 0.0,
        Nulls::Share(share) => share,
        Nulls::Together(_) | Nulls::Where => return None,
    };
    let most = match &leaf.values {
        ValueSpec::Choice { table, .. } | ValueSpec::Boolean(table) => {
            table.probabilities().iter().copied().fold(0.0, f64::max)
        }
        ValueSpec::Integers { span, .. } if *span > 0 => 1.0 / *span as f64,
        _ => return None,
    };
    Some((most * (1.0 - null)).max(null))
}

/// The share in the first rows.
fn sampled(dataset: &Dataset, leaf: &Leaf, seed: u64, rows: u64) -> f64 {
    let mut shredder = Shredder::new(dataset, seed);
    let (shredded, _) = shredder.sample(0..rows);
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut there = 0;
    physical(leaf, &shredded.leaves[leaf.index].values, &mut PhysicalRoom::default()).each(|value| {
        there += 1;
        match counts.get_mut(value) {
            Some(count) => *count += 1,
            // Only new values are copied.
            None => drop(counts.insert(value.to_vec(), 1)),
        }
    });
    let null = rows.saturating_sub(there);
    counts.into_values().chain([null]).max().unwrap_or(0) as f64 / rows as f64
}
