//! Sums and other values of the children of a row, which are drawn block by block, or of the elements of a list, which
//! the block has.

use std::ops::Range;

use crate::draw::expression::{Numbers, Values};
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::of_children::{Children, Elements, Fold, OfChildren};
use crate::random::rng::BLOCK_ROWS;
use crate::shred::block::{Shredded, Shredder};
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::{Draws, stored_in, wholes};
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Leaf};
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, stored_number};

impl OfChildren {
    /// Appends the value of each row's children or of each list's elements. Returns the first value that does not fit,
    /// and the numbers of the values that are null.
    pub(crate) fn draw(
        &self,
        kind: &LogicalType,
        draws: &Draws<'_>,
        out: &mut ValueBuffer,
    ) -> (Option<(usize, Misfit)>, Vec<usize>) {
        let mut misfits = FirstMisfit::among(draws.wanted.clone());
        let folded = match &self.children {
            Children::Rows { fan_out, column } => {
                let column = column.as_ref().map(|(dataset, leaf)| (&**dataset, *leaf));
                self.of_rows(fan_out, column, draws, &mut misfits)
            }
            Children::Elements(_) => of_elements(draws),
        };
        let range = kind.range();
        let nulls = (0..folded.len()).filter(|i| folded[*i].is_none()).collect();
        let values = folded.into_iter().enumerate();
        let values: Vec<i128> =
            values.filter_map(|(i, n)| Some(misfits.or_stand_in(i, stored_in(kind, range, n?)))).collect();
        wholes(out, &Draws { n: values.len(), wanted: 0..0, ..*draws }, |i, _| values[i]);
        (misfits.found, nulls)
    }

    /// The folded rows of each row's children.
    fn of_rows(
        &self,
        fan_out: &FanOut,
        column: Option<(&Dataset, usize)>,
        draws: &Draws<'_>,
        misfits: &mut FirstMisfit,
    ) -> Vec<Option<i128>> {
        let children = fan_out.rows_of(draws.seed, draws.numbers);
        let mut folded = match column {
            None => children.iter().map(|rows| Some(i128::from(rows.end - rows.start))).collect(),
            Some(column) => self.folded(column, (draws.seed, fan_out.rows), &children, misfits),
        };
        for (i, (value, row)) in folded.iter_mut().zip(draws.numbers).enumerate() {
            if *row >= fan_out.parents {
                misfits.or_stand_in::<u8>(i, Err(Misfit::NoRow));
                *value = Some(0);
            }
        }
        folded
    }

    /// The folded values of the column in each range of child rows, of `rows` in all.
    fn folded(
        &self,
        (dataset, leaf): (&Dataset, usize),
        (seed, rows): (u64, u64),
        children: &[Range<u64>],
        misfits: &mut FirstMisfit,
    ) -> Vec<Option<i128>> {
        let mut folded = vec![self.fold.start(); children.len()];
        let Some((_, leaf)) = dataset.leaf(leaf) else { return folded };
        let mut shredder = Shredder::of_fields(dataset, seed, ChosenFields::of_leaf(dataset, leaf.index));
        // Each block of children is drawn once, in any order of the parents.
        let mut order: Vec<usize> = (0..children.len()).filter(|i| !children[*i].is_empty()).collect();
        order.sort_by_key(|i| children[*i].start);
        let mut drawn = (u64::MAX, Vec::new(), false);
        for i in order {
            let of_parent = &children[i];
            for block in of_parent.start / BLOCK_ROWS..of_parent.end.div_ceil(BLOCK_ROWS) {
                let first = block * BLOCK_ROWS;
                let end = (first + BLOCK_ROWS).min(rows);
                if drawn.0 != block {
                    let (shredded, misfit) = shredder.sample(first..end);
                    drawn = (block, stored(leaf, &shredded.leaves[leaf.index].values, 0), misfit.is_some());
                }
                for row in of_parent.start.max(first)..of_parent.end.min(end) {
                    let value = drawn.1.get((row - first) as usize).copied().unwrap_or(0);
                    folded[i] = self.fold.join(folded[i], value);
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

impl Elements {
    /// The folded elements of each of `n` lists, null or empty ones among them. The leaf inside of them is `leaf`, and
    /// its entries and values in this block begin at `from`.
    pub(crate) fn folded(
        &self,
        fold: Fold,
        (shredded, leaf): (&Shredded, &Leaf),
        from: (usize, usize),
        n: usize,
    ) -> Vec<Option<i128>> {
        let mut folded = vec![fold.start(); n];
        let of = &shredded.leaves[leaf.index];
        let repetition = of.list.map_or(&[][..], |list| &shredded.lists[list][from.0..]);
        let mut values = match fold {
            Fold::Count => Vec::new(),
            _ => stored(leaf, &of.values, from.1),
        }
        .into_iter();
        let mut begun = 0usize;
        for (definition, repetition) in of.definition[from.0..].iter().zip(repetition) {
            begun += usize::from(*repetition <= self.around);
            if *definition < self.there || *repetition > self.deepest {
                continue;
            }
            let value = if fold == Fold::Count { 1 } else { values.next().unwrap_or(0) };
            if let Some(list) = folded.get_mut(begun.wrapping_sub(1)) {
                *list = fold.join(*list, value);
            }
        }
        folded
    }
}

pub(crate) fn as_operands(folded: &[i128]) -> Values {
    Values::Numbers(Numbers::wholes(folded.iter().copied()))
}

/// The folded elements that the operands are.
fn of_elements(draws: &Draws<'_>) -> Vec<Option<i128>> {
    let number = |i: usize| match draws.operands.first() {
        Some(Values::Numbers(numbers)) => numbers.get(i),
        _ => None,
    };
    let whole = |i: usize| match number(i) {
        Some(Number::Whole(n)) => n,
        // They are whole numbers, one for each draw.
        _ => 0,
    };
    (0..draws.n).map(|i| Some(whole(i))).collect()
}

/// The stored whole numbers from `first` up, decimals without their scale.
fn stored(leaf: &Leaf, buffer: &ValueBuffer, first: usize) -> Vec<i128> {
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
    let mut wanted = ValueBuffer::new(leaf);
    wanted.extend_from(buffer, first..buffer.len());
    match &*wanted.plain(leaf) {
        ValueBuffer::Int32(values) => values.iter().map(|n| whole(&n.to_le_bytes())).collect(),
        ValueBuffer::Int64(values) => values.iter().map(|n| whole(&n.to_le_bytes())).collect(),
        ValueBuffer::Fixed { width, data } => data.chunks_exact(*width).map(whole).collect(),
        // The reader allows whole numbers alone.
        _ => Vec::new(),
    }
}
