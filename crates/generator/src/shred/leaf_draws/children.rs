//! Sums and other values of the children of a row: the children are drawn block by block.

use std::ops::Range;

use crate::draw::misfit::Misfit;
use crate::draw::value_spec::other_rows::of_children::{Fold, OfChildren};
use crate::random::rng::BLOCK_ROWS;
use crate::shred::block::Shredder;
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::{Draws, wholes};
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Leaf};
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled, stored_number};

impl OfChildren {
    /// Appends the value of each row's children.
    pub(super) fn draw(
        &self,
        kind: &LogicalType,
        draws: &Draws<'_>,
        out: &mut ValueBuffer,
        misfits: &mut FirstMisfit,
    ) {
        let children = self.fan_out.rows_of(draws.seed, draws.numbers);
        let mut folded: Vec<i128> = children.iter().map(|rows| i128::from(rows.end - rows.start)).collect();
        if let Some((dataset, leaf)) = &self.column {
            folded = self.folded((dataset, *leaf), draws.seed, &children, misfits);
        }
        let (low, high) = kind.range();
        wholes(out, draws, |i, _| {
            let known = draws.numbers.get(i).is_some_and(|row| *row < self.fan_out.parents);
            let value = folded.get(i).copied().filter(|_| known).ok_or(Misfit::NoRow);
            let fits = |n: i128| match (low..=high).contains(&n) {
                true => Ok(n),
                false => Err(Misfit::Outside(scaled(kind, n))),
            };
            misfits.or_stand_in(i, value.and_then(fits))
        });
    }

    /// The folded values of the column in each range of child rows.
    fn folded(
        &self,
        (dataset, leaf): (&Dataset, usize),
        seed: u64,
        children: &[Range<u64>],
        misfits: &mut FirstMisfit,
    ) -> Vec<i128> {
        let mut folded = vec![0; children.len()];
        let Some((_, leaf)) = dataset.leaf(leaf) else { return folded };
        let mut shredder = Shredder::of_fields(dataset, seed, ChosenFields::of_leaf(dataset, leaf.index));
        // Each block of children is drawn once, in any order of the parents.
        let mut order: Vec<usize> = (0..children.len()).filter(|i| !children[*i].is_empty()).collect();
        order.sort_by_key(|i| children[*i].start);
        let mut drawn = (u64::MAX, Vec::new(), false);
        for i in order {
            let rows = &children[i];
            for block in rows.start / BLOCK_ROWS..rows.end.div_ceil(BLOCK_ROWS) {
                let first = block * BLOCK_ROWS;
                let end = (first + BLOCK_ROWS).min(self.fan_out.rows);
                if drawn.0 != block {
                    let (shredded, misfit) = shredder.sample(first..end);
                    let values = stored(leaf, &shredded.leaves[leaf.index].values.plain(leaf));
                    drawn = (block, values, misfit.is_some());
                }
                for row in rows.start.max(first)..rows.end.min(end) {
                    let value = drawn.1.get((row - first) as usize).copied().unwrap_or(0);
                    folded[i] = self.fold.join(folded[i], value, row == rows.start);
                    // The misfit of the block may be of another row.
                    if drawn.2
                        && let Some(misfit) = shredder.sample(row..row + 1).1
                    {
                        misfits.or_stand_in::<u8>(i, Err(misfit.misfit));
                    }
                }
            }
        }
        folded
    }
}

impl Fold {
    /// The value of children with one more `value`, which may be the first one.
    fn join(self, before: i128, value: i128, is_first: bool) -> i128 {
        match self {
            _ if is_first => value,
            Fold::Min => before.min(value),
            Fold::Max => before.max(value),
            // At most 4,096 values of 100 bits: nothing saturates.
            Fold::Sum | Fold::Count => before.saturating_add(value),
        }
    }
}

/// Stored whole numbers, decimals without their scale.
fn stored(leaf: &Leaf, values: &ValueBuffer) -> Vec<i128> {
    let unscaled = match &leaf.kind {
        LogicalType::Decimal { precision, physical, .. } => {
            LogicalType::Decimal { precision: *precision, scale: 0, physical: *physical }
        }
        kind => kind.clone(),
    };
    let whole = |bytes: &[u8]| match stored_number(&unscaled, bytes) {
        Some(Number::Whole(n)) => n,
        _ => 0,
    };
    match values {
        ValueBuffer::Int32(values) => values.iter().map(|n| whole(&n.to_le_bytes())).collect(),
        ValueBuffer::Int64(values) => values.iter().map(|n| whole(&n.to_le_bytes())).collect(),
        ValueBuffer::Fixed { width, data } => data.chunks_exact(*width).map(whole).collect(),
        // The reader allows whole numbers alone.
        _ => Vec::new(),
    }
}
