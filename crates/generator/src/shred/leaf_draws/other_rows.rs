//! Values of single rows of another table, wherever they are: a row is a function of its number.

use crate::draw::expression::Values;
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::changes::{Change, RowVersion};
use crate::draw::value_spec::other_column::{OtherColumn, RowOf};
use crate::random::rng::{BLOCK_ROWS, Stream};
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::Draws;
use crate::shred::operands::values;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Field, Leaf};

impl OtherColumn {
    /// Appends the column's value for each of the draws.
    pub(super) fn draw(&self, draws: &Draws<'_>, out: &mut ValueBuffer, misfits: &mut FirstMisfit) {
        let rows: Vec<RowVersion> = (self.rows(draws).into_iter().enumerate())
            .map(|(i, row)| misfits.or_stand_in(i, row.ok_or(Misfit::NoRow)))
            .collect();
        let Some((field, leaf)) = self.dataset.leaf(self.leaf) else { return };
        let is_changing = |leaf: usize| self.changing.get(leaf) == Some(&true);
        if !is_changing(self.leaf) || rows.iter().all(|row| row.version == 0) {
            let rows: Vec<u64> = rows.iter().map(|row| row.row).collect();
            let table =
                OtherTable { dataset: &self.dataset, seed: draws.seed, version: 0, changing: &self.changing };
            let mut found = ValueBuffer::new(leaf);
            if let Some((i, misfit)) = table.rows_of((field, leaf), &rows, &mut found) {
                misfits.or_stand_in::<u8>(i, Err(misfit));
            }
            let found = found.plain(leaf);
            return out.extend_from(&found, 0..found.len());
        }
        // The rows of one version after the rows of the other.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|i| rows.get(*i).map(|row| row.version));
        let mut found = ValueBuffer::new(leaf);
        for same in order.chunk_by(|a, b| rows[*a].version == rows[*b].version) {
            let version = same.first().map_or(0, |i| rows[*i].version);
            let here: Vec<u64> = same.iter().map(|i| rows[*i].row).collect();
            let table =
                OtherTable { dataset: &self.dataset, seed: draws.seed, version, changing: &self.changing };
            if let Some((i, misfit)) = table.rows_of((field, leaf), &here, &mut found) {
                misfits.or_stand_in::<u8>(same[i], Err(misfit));
            }
        }
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, i)| places[*i] = place);
        let found = found.plain(leaf);
        places.into_iter().for_each(|place| out.extend_from(&found, place..place + 1));
    }

    /// The row for each of the draws, and its version.
    fn rows(&self, draws: &Draws<'_>) -> Vec<Option<RowVersion>> {
        let unchanged = |row: Option<u64>| row.map(|row| RowVersion { row, version: 0 });
        let (seed, numbers) = (draws.seed, draws.numbers);
        match &self.of {
            RowOf::Key { key, .. } => {
                let row = |i| draws.operands.first().and_then(|keys| key.row(keys, i));
                (0..draws.n).map(|i| unchanged(row(i))).collect()
            }
            RowOf::Parent(fan_out) => {
                let children = fan_out.children(seed, numbers).into_iter();
                children.map(|child| unchanged(child.map(|child| child.parent))).collect()
            }
            RowOf::Before(changes) => {
                changes.changes(seed, numbers).into_iter().map(|change| change.map(Change::before)).collect()
            }
            RowOf::After(changes) => {
                changes.changes(seed, numbers).into_iter().map(|change| change.map(Change::after)).collect()
            }
            RowOf::Left(changes) => changes.left_rows(seed, numbers),
            RowOf::Arriving(arrivals) => arrivals.rows(seed, numbers).into_iter().map(unchanged).collect(),
        }
    }
}

/// Another table, after `version` updates of each row.
struct OtherTable<'a> {
    dataset: &'a Dataset,
    /// The seed of the job.
    seed: u64,
    version: u32,
    /// The columns that updates change.
    changing: &'a [bool],
}

/// Sets the draws of one version of a row apart from the other versions' draws.
const VERSION: u64 = 0xD6E8_FEB8_6659_FD93;

impl OtherTable<'_> {
    /// The seed of the draws of a leaf in this version.
    fn seed_of(&self, leaf: usize) -> u64 {
        let version = if self.changing.get(leaf) == Some(&true) { u64::from(self.version) } else { 0 };
        self.dataset.seeded(self.seed) ^ version.wrapping_mul(VERSION)
    }

    /// The ranks that the values of a leaf in `rows` follow, if they follow some.
    fn ranks(&self, leaf: &Leaf, rows: &[u64]) -> Vec<f64> {
        let (Some(ranked), Some(copula)) = (&leaf.ranked, &self.dataset.copula) else { return Vec::new() };
        let mut all = match self.seed_of(leaf.index) == self.dataset.seeded(self.seed) {
            true => copula.ranks(rows, self.dataset.seeded(self.seed)),
            false => copula.drawn(rows, &|leaf| self.seed_of(leaf)),
        };
        if ranked.member < all.len() { all.swap_remove(ranked.member) } else { Vec::new() }
    }

    /// Appends the values of `leaf` in `rows` of the table. A value that the column cannot hold is replaced; the
    /// first one is returned.
    fn rows_of(
        &self,
        (field, leaf): (&Field, &Leaf),
        rows: &[u64],
        out: &mut ValueBuffer,
    ) -> Option<(usize, Misfit)> {
        let mut operands: Vec<Values> = Vec::new();
        let mut misfit = None;
        for operand in leaf.values.operands() {
            let (field, leaf) = self.dataset.leaf(operand.leaf)?;
            let mut buffer = ValueBuffer::new(leaf);
            misfit = misfit.or(self.rows_of((field, leaf), rows, &mut buffer));
            operands.push(values(leaf, &buffer, 0));
        }
        let seed = self.seed_of(leaf.index);
        let ranks = self.ranks(leaf, rows);
        let stream = |row: u64| Stream::new(seed, field.value_draws, row / BLOCK_ROWS);
        let draws = |n: usize| Draws {
            stream: stream(0),
            n,
            first_id: 0,
            numbers: rows,
            operands: &operands,
            wanted: 0..n,
            seed: self.seed,
            ranks: &ranks,
        };
        if leaf.ranked.is_some() {
            return misfit.or(leaf.draw(&draws(rows.len()), out));
        }
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
}
