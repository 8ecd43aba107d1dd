//! The columns of a sample as axes of a copula.

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::draw::copula::is_even;
use crate::infer::by_column::by_column;
use crate::infer::copula::{Axis, Listed, Of};
use crate::infer::notation::one;
use crate::infer::relations::together::Together;
use crate::infer::sample::cells::Cells;
use crate::infer::sample::inferred_field::{Inferred, InferredKind};
use crate::infer::sample::leaf_sample::{LeafSample, real_runs, whole_runs};
use crate::infer::spec::inferred_spec::InferredSpec;

/// The most strings of a column that depends on others.
const MAX_TEXTS: usize = 256;

/// The fewest rows that tell dependences.
const MIN_ROWS: usize = 50;

/// The fewest nulls, and values, that tell whether nulls depend on other columns.
const MIN_NULLS: usize = 20;

impl InferredSpec {
    /// The rows, the fields that are `is_free` and drawn by quantiles or weights, and their nulls, unless these are
    /// `together` with others. With the axes come the values of the fields. Columns that are computed are null where
    /// the others are.
    pub(super) fn axes(
        &self,
        fields: &[&Inferred],
        is_free: &dyn Fn(usize) -> bool,
        together: Option<&Together>,
    ) -> (Vec<Axis>, BTreeMap<usize, String>) {
        let rows = &self.chosen.rows;
        if rows.len() < MIN_ROWS {
            return (Vec::new(), BTreeMap::new());
        }
        let free: Vec<bool> = (0..fields.len()).map(is_free).collect();
        let made = by_column(fields.len(), |i| {
            let cells = fields[i].cells.as_ref().filter(|_| free[i])?;
            let values = self.values_with(fields[i], true);
            let is_listed = ["{ weights = {", "{ cycle = ["].iter().any(|form| values.starts_with(form));
            let mut listed = if is_listed { self.listed(fields[i]) } else { None };
            if let Some(listed) = listed.as_mut().filter(|_| period(&values) > 0) {
                listed.sort_by_name();
            }
            let is_ranked = listed.is_some() || values.starts_with("{ quantiles = {");
            is_ranked.then_some((values, listed, cells))
        });
        let mut axes: Vec<Axis> = self.rows.map(|n| Axis::of_rows(rows, n)).into_iter().collect();
        for (i, made) in made.iter().enumerate() {
            if let Some((values, listed, cells)) = made {
                let axis = axis(Of::Field(i), listed.as_ref(), cells);
                axes.extend(axis.map(|axis| Axis { period: period(values), ..axis }));
            }
        }
        // Strings have the order of the numbers with which they vary most.
        let mut values = BTreeMap::new();
        for (i, made) in made.into_iter().enumerate() {
            if let Some((text, listed, cells)) = made {
                let is_free = |listed: &Listed| listed.counts.len() > 2 && !listed.names.is_empty();
                if let Some(listed) = listed.filter(|listed| is_free(listed) && period(&text) == 0) {
                    let axis = Axis::of_listed(
                        Of::Field(i),
                        &listed.ordered(&axes, cells),
                        &cells.words,
                        &cells.there,
                    );
                    axes.iter_mut().filter(|known| known.of == axis.of).for_each(|known| known.order.clear());
                    axes.retain(|known| known.of != axis.of);
                    axes.push(axis);
                }
                values.insert(i, text);
            }
        }
        // Where values and nulls depend on one another, ranks have to be spread over the rows with a value.
        if !self.rows.is_some_and(|rows| is_even(rows, 2 * fields.len() + 2)) {
            return (axes, values);
        }
        axes.extend(together.and_then(|together| of_present(together, fields, &axes)));
        let is_together = |i: &usize| together.is_some_and(|together| together.fields.contains(i));
        for (i, field) in fields.iter().enumerate().filter(|(i, _)| !is_together(i)) {
            let there = field.cells.as_ref().map_or(&[][..], |cells| &cells.there);
            let nulls = there.iter().filter(|there| !**there).count();
            if field.nullable && nulls.min(there.len() - nulls) >= MIN_NULLS && values.contains_key(&i) {
                axes.push(of_nulls(i, there));
            }
        }
        (axes, values)
    }

    /// The values of a field with few, as its weights list them.
    fn listed(&self, field: &Inferred) -> Option<Listed> {
        let InferredKind::Leaf { kind, values, .. } = &field.kind else { return None };
        let around = self.around(field);
        let of_numbers = |mut runs: Vec<(f64, u64)>, bounds: Option<(f64, f64)>| {
            for bound in bounds.into_iter().flat_map(|(low, high)| [low, high]) {
                if runs.iter().all(|run| run.0 != bound) {
                    runs.push((bound, 1));
                }
            }
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (words, counts) = runs.into_iter().map(|(v, n)| ((v + 0.0).to_bits(), n)).unzip();
            Listed { words, counts, names: Vec::new() }
        };
        match values {
            LeafSample::Boolean { trues, falses } => {
                Some(of_numbers(vec![(0.0, *falses), (1.0, *trues)], None))
            }
            LeafSample::Whole(_) | LeafSample::Wide(_) => {
                let unit = one(kind);
                let runs = whole_runs(values).into_iter().map(|(v, n)| (v as f64 / unit, n)).collect();
                Some(of_numbers(runs, around.whole_bounds.map(|(a, b)| (a as f64 / unit, b as f64 / unit))))
            }
            LeafSample::Real(values) => {
                let (runs, others) = real_runs(values);
                others.is_empty().then(|| of_numbers(runs, around.real_bounds))
            }
            LeafSample::Text(texts) => {
                let named =
                    texts.named(self.verbatim).filter(|named| (2..=MAX_TEXTS).contains(&named.len()))?;
                let mut listed = Listed::default();
                for (word, name, n) in named {
                    listed.words.push(word);
                    listed.names.push(name);
                    listed.counts.push(n);
                }
                Some(listed)
            }
            _ => None,
        }
    }
}

/// After how many rows the values of a cycle come again; 0 of other values.
fn period(values: &str) -> u64 {
    let text = format!("values = {values}");
    let parsed = values.starts_with("{ cycle").then(|| DeTable::parse(&text).ok()).flatten();
    let cycle = parsed.as_ref().and_then(|parsed| parsed.get_ref().get("values")?.get_ref().get("cycle"));
    cycle.and_then(|list| list.get_ref().as_array()).map_or(0, |list| list.len() as u64)
}

fn axis(of: Of, listed: Option<&Listed>, cells: &Cells) -> Option<Axis> {
    match listed {
        Some(listed) => Some(Axis::of_listed(of, listed, &cells.words, &cells.there)),
        None => {
            let number = |(v, there): (&f64, &bool)| if *there { *v } else { f64::NAN };
            let numbers: Vec<f64> = cells.numbers.iter().zip(&cells.there).map(number).collect();
            numbers.iter().any(|v| v.is_finite()).then(|| Axis::of_numbers(of, &numbers))
        }
    }
}

/// The combinations of present fields.
fn of_present(together: &Together, fields: &[&Inferred], axes: &[Axis]) -> Option<Axis> {
    if together.combinations.len() > MAX_TEXTS {
        return None;
    }
    let cells: Option<Vec<&Cells>> = together.fields.iter().map(|i| fields.get(*i)?.cells.as_ref()).collect();
    let cells = cells?;
    let mask = |row: usize| {
        let bits = cells.iter().enumerate().map(|(bit, cells)| u64::from(cells.there[row]) << bit);
        bits.sum::<u64>()
    };
    let words: Vec<u64> = (0..cells.first()?.there.len()).map(mask).collect();
    let (masks, counts): (Vec<u64>, Vec<u64>) =
        together.combinations.iter().map(|(mask, n)| (u64::from(*mask), *n)).unzip();
    let names = masks.iter().map(u64::to_string).collect();
    let there = vec![true; words.len()];
    let cells = Cells { there, words, ..Cells::default() };
    let listed = Listed { words: masks, counts, names }.ordered(axes, &cells);
    Some(Axis::of_listed(Of::Present, &listed, &cells.words, &cells.there))
}

/// Null comes before values.
fn of_nulls(field: usize, there: &[bool]) -> Axis {
    let nulls = there.iter().filter(|there| !**there).count() as u64;
    let listed =
        Listed { words: vec![0, 1], counts: vec![nulls, there.len() as u64 - nulls], names: Vec::new() };
    let words: Vec<u64> = there.iter().map(|there| u64::from(*there)).collect();
    Axis::of_listed(Of::Nulls(field), &listed, &words, &vec![true; there.len()])
}
