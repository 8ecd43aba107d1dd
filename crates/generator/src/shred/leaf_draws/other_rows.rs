//! Values of single rows of another table, wherever they are: a row is a function of its number.

use crate::draw::expression::Values;
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::changes::{Change, RowVersion, Version};
use crate::draw::value_spec::other_rows::other_column::{OtherColumn, RowOf};
use crate::random::rng::{BLOCK_ROWS, Stream};
use crate::shred::block::Shredder;
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::Draws;
use crate::shred::operands::values;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Field, Leaf};

/// The first value that does not fit, and the numbers of values that are null.
type Drawn = (Option<(usize, Misfit)>, Vec<usize>);

impl OtherColumn {
    /// Appends the column's value for each of the draws, unless it is null.
    pub(crate) fn draw(&self, draws: &Draws<'_>, out: &mut ValueBuffer) -> Drawn {
        let mut misfits = FirstMisfit::among(draws.wanted.clone());
        let is_changing = self.changing.get(self.leaf) == Some(&true);
        let mut rows: Vec<RowVersion> = (self.rows(draws).into_iter().enumerate())
            .map(|(i, row)| misfits.or_stand_in(i, row.ok_or(Misfit::NoRow)))
            .collect();
        rows.iter_mut().filter(|_| !is_changing).for_each(|row| row.version = 0);
        let Some((field, leaf)) = self.dataset.leaf(self.leaf) else { return (misfits.found, Vec::new()) };
        // The rows of one version after the rows of the other.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if self.by_blocks || rows.iter().any(|row| row.version > 0) {
            order.sort_by_key(|i| rows.get(*i).map(|row| (row.version, row.row)));
        }
        let mut found = ValueBuffer::new(leaf);
        // The place of each value in the buffer.
        let mut places: Vec<Option<usize>> = vec![None; rows.len()];
        for same in order.chunk_by(|a, b| rows[*a].version == rows[*b].version) {
            let number = same.first().map_or(0, |i| rows[*i].version);
            let version = Version { number, changing: self.changing.clone() };
            let here: Vec<u64> = same.iter().map(|i| rows[*i].row).collect();
            let first = found.len();
            let table = OtherTable { dataset: &self.dataset, seed: draws.seed, version };
            let (misfit, there) = match self.by_blocks {
                true => table.blocks_of((field, leaf), &here, &mut found),
                false => (table.rows_of((field, leaf), &here, &mut found), vec![true; here.len()]),
            };
            if let Some((i, misfit)) = misfit {
                misfits.or_stand_in::<u8>(same[i], Err(misfit));
            }
            let present = same.iter().zip(there).filter(|(_, there)| *there);
            present.enumerate().for_each(|(place, (i, _))| places[*i] = Some(first + place));
        }
        let nulls = (0..places.len()).filter(|i| places[*i].is_none()).collect();
        let found = found.plain(leaf);
        let places: Vec<usize> = places.into_iter().flatten().collect();
        match places.iter().enumerate().all(|(i, place)| i == *place) {
            true => out.extend_from(&found, 0..places.len()),
            false => places.into_iter().for_each(|place| out.extend_from(&found, place..place + 1)),
        }
        (misfits.found, nulls)
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

/// Another table, after the same number of updates of each row.
struct OtherTable<'a> {
    dataset: &'a Dataset,
    /// The seed of the job.
    seed: u64,
    version: Version,
}

impl OtherTable<'_> {
    /// The seed of the draws of a leaf in this version.
    fn seed_of(&self, leaf: usize) -> u64 {
        self.version.seed(self.dataset.seeded(self.seed), leaf)
    }

    /// Appends the values of `leaf` in ascending `rows`, as whole blocks have them. Returns as
    /// [`rows_of`](Self::rows_of), and whether each is there.
    fn blocks_of(
        &self,
        (field, leaf): (&Field, &Leaf),
        rows: &[u64],
        out: &mut ValueBuffer,
    ) -> (Option<(usize, Misfit)>, Vec<bool>) {
        let chosen = ChosenFields::of_leaf(self.dataset, leaf.index);
        let shredder = Shredder::of_fields(self.dataset, self.seed, chosen);
        let mut shredder = shredder.in_version(self.version.clone());
        let (mut misfit, mut there) = (None, Vec::with_capacity(rows.len()));
        for block in rows.chunk_by(|a, b| a / BLOCK_ROWS == b / BLOCK_ROWS) {
            let (Some(first), Some(last)) = (block.first(), block.last()) else { continue };
            let (shredded, misfit_here) = shredder.sample(*first..last + 1);
            let column = &shredded.leaves[leaf.index];
            let is_there = |row: u64| {
                let level = column.definition.get((row - first) as usize);
                level.is_none_or(|level| *level == field.levels.definition)
            };
            let (mut next, mut value) = (*first, 0);
            for row in block {
                value += (next..*row).filter(|row| is_there(*row)).count();
                next = *row;
                there.push(is_there(*row));
                if is_there(*row) {
                    out.extend_from(&column.values, value..value + 1);
                }
            }
            // Rows between the wanted ones do not matter.
            if misfit.is_none() && misfit_here.is_some() {
                let of_row = |row: &u64| shredder.sample(*row..row + 1).1.map(|misfit| misfit.misfit);
                let before = there.len() - block.len();
                misfit = (before..).zip(block.iter().map(of_row)).find_map(|(i, found)| Some((i, found?)));
            }
        }
        (misfit, there)
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
