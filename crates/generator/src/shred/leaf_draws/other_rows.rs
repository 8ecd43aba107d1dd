//! Values of single rows of another table, wherever they are: a row is a function of its number.

use crate::draw::expression::Values;
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_column::{OtherColumn, RowOf};
use crate::random::rng::Stream;
use crate::shred::block::BLOCK_ROWS;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::Draws;
use crate::shred::operands::values;
use crate::shred::value_buffer::{ByteStrings, PhysicalBuffer, ValueBuffer};
use crate::spec::dataset::{Dataset, Field, Leaf};

impl OtherColumn {
    /// Appends the column's value for each of the draws.
    pub(super) fn draw(&self, draws: &Draws<'_>, out: &mut ValueBuffer, misfits: &mut FirstMisfit) {
        let rows: Vec<Option<u64>> = match &self.of {
            RowOf::Key { key, .. } => {
                (0..draws.n).map(|i| draws.operands.first().and_then(|keys| key.row(keys, i))).collect()
            }
            RowOf::Parent(fan_out) => {
                let children = fan_out.children(draws.seed, draws.numbers);
                children.into_iter().map(|child| child.map(|child| child.parent)).collect()
            }
        };
        let rows: Vec<u64> = (rows.into_iter().enumerate())
            .map(|(i, row)| misfits.or_stand_in(i, row.ok_or(Misfit::NoRow)))
            .collect();
        let Some((field, leaf)) = self.dataset.leaf(self.leaf) else { return };
        let mut found = ValueBuffer::new(leaf);
        if let Some((i, misfit)) = rows_of(&self.dataset, (field, leaf), draws.seed, &rows, &mut found) {
            misfits.or_stand_in::<u8>(i, Err(misfit));
        }
        append(found.materialise(leaf), out);
    }
}

/// Appends the values of `leaf` in `rows` of the table. A value that the column cannot hold is replaced; the
/// first one is returned.
fn rows_of(
    dataset: &Dataset,
    (field, leaf): (&Field, &Leaf),
    seed: u64,
    rows: &[u64],
    out: &mut ValueBuffer,
) -> Option<(usize, Misfit)> {
    let mut operands: Vec<Values> = Vec::new();
    let mut misfit = None;
    for operand in leaf.values.operands() {
        let (field, leaf) = dataset.leaf(operand.leaf)?;
        let mut buffer = ValueBuffer::new(leaf);
        misfit = misfit.or(rows_of(dataset, (field, leaf), seed, rows, &mut buffer));
        operands.push(values(leaf, &buffer, 0));
    }
    let stream = |row: u64| Stream::new(dataset.seeded(seed), field.value_draws, row / BLOCK_ROWS);
    let draws = |n: usize| Draws {
        stream: stream(0),
        n,
        first_id: 0,
        numbers: rows,
        operands: &operands,
        wanted: 0..n,
        seed,
    };
    if !leaf.values.draws() {
        return misfit.or(leaf.draw(&draws(rows.len()), out));
    }
    match (&leaf.values, &mut *out) {
        (ValueSpec::Unique(_), ValueBuffer::Ids(ids)) => ids.extend_from_slice(rows),
        (ValueSpec::Choice { table, by: None, .. }, ValueBuffer::Indices(indices)) => {
            indices.extend(rows.iter().map(|row| table.at(stream(*row), row % BLOCK_ROWS)));
        }
        (_, out) => {
            for (i, row) in rows.iter().enumerate() {
                let here: Vec<Values> = operands.iter().map(|values| values.at(&[i as u32])).collect();
                let draws = Draws {
                    stream: stream(*row).skip(row % BLOCK_ROWS),
                    numbers: std::slice::from_ref(row),
                    operands: &here,
                    ..draws(1)
                };
                let wrong = leaf.draw(&draws, out).map(|(_, misfit)| (i, misfit));
                misfit = misfit.or(wrong);
            }
        }
    }
    misfit
}

/// Appends plain values to the buffer of a column of the same type.
fn append(values: PhysicalBuffer, out: &mut ValueBuffer) {
    match (values, out) {
        (PhysicalBuffer::Booleans(from), ValueBuffer::Booleans(to)) => to.extend(from),
        (PhysicalBuffer::Int32(from), ValueBuffer::Int32(to)) => to.extend(from),
        (PhysicalBuffer::Int64(from), ValueBuffer::Int64(to)) => to.extend(from),
        (PhysicalBuffer::Float(from), ValueBuffer::Float(to)) => to.extend(from),
        (PhysicalBuffer::Double(from), ValueBuffer::Double(to)) => to.extend(from),
        (PhysicalBuffer::Fixed { data: from, .. }, ValueBuffer::Fixed { data: to, .. }) => to.extend(from),
        (PhysicalBuffer::Bytes(ByteStrings { ends, data }), ValueBuffer::Bytes(to)) => {
            let base = to.data.len() as u32;
            to.data.extend(data);
            to.ends.extend(ends.into_iter().map(|end| base + end));
        }
        // The reader compares the types, and refuses INT96.
        (from, to) => debug_assert!(false, "{from:?} into {to:?}"),
    }
}
