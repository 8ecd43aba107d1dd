//! How like a source generated data is: each column, each pair of columns, the order of rows, keys, and whether a tree
//! tells the rows apart.

mod columns;
mod keys;
mod labels;
mod measures;
mod order;
mod pairs;
mod rows;
mod tree;

use std::collections::BTreeMap;

use sawmill_profile::format_counted;
use serde::Serialize;

use crate::infer::by_column::by_column;
pub use crate::infer::fidelity::columns::ColumnFidelity;
pub use crate::infer::fidelity::keys::KeyFidelity;
pub use crate::infer::fidelity::order::OrderFidelity;
use crate::infer::fidelity::pairs::Both;
pub use crate::infer::fidelity::pairs::{MeasureFidelity, PairFidelity};
use crate::infer::fidelity::rows::Leaf;
pub use crate::infer::fidelity::tree::TreeFidelity;
use crate::infer::relations::{Column, dependence, sums};
use crate::infer::sample::inferred_field::Inferred;
use crate::infer::spec::inferred_spec::{EXCLUDED, InferredSpec};

/// The comparison of two samples.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// How much is kept.
    pub kept: Kept,
    /// The columns of both, the least alike first.
    pub columns: Vec<ColumnFidelity>,
    /// The pairs of columns, the least alike first.
    pub pairs: Vec<PairFidelity>,
    /// The order of rows, column by column, the least alike first.
    pub order: Vec<OrderFidelity>,
    /// The columns, and pairs of columns, without equal values in the source.
    pub keys: Vec<KeyFidelity>,
    /// How well a decision tree tells the rows apart; `None` if they are too few.
    pub tree: Option<TreeFidelity>,
    /// The functions and sums found in the source.
    pub relations: Vec<RelationFidelity>,
    /// Columns of one of the two only, columns that are left out, and what else was not compared.
    pub not_compared: Vec<String>,
}

/// How much is kept, and of how much.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Kept {
    /// Columns whose distance and nulls are within `column_distance`, of all columns of the source.
    pub columns: [usize; 2],
    /// Pairs of columns whose measures are within `pair_distance`, or as near as small samples are by chance, of
    /// all pairs of columns of the source outside of lists.
    pub pairs: [usize; 2],
    /// Columns whose order of rows is as near.
    pub order: [usize; 2],
    /// Columns, and pairs of columns, without equal values.
    pub keys: [usize; 2],
    /// The greatest distance of a column that is kept.
    pub column_distance: f64,
    /// The same of pairs and of the order of rows.
    pub pair_distance: f64,
}

/// A relation between columns, and the share of rows that have it.
#[derive(Clone, Debug, Serialize)]
pub struct RelationFidelity {
    /// The relation.
    pub relation: String,
    /// The share of rows of the source that have it.
    pub source: f64,
    /// The same of generated data.
    pub generated: f64,
}

impl InferredSpec {
    /// Compares this sample of a source with a sample of generated data.
    pub fn compare(&self, generated: &InferredSpec) -> Fidelity {
        let mut not_compared: Vec<String> =
            self.left_out().into_iter().map(|out| format!("{}: {}", out.column, out.reason)).collect();
        let theirs: Vec<&Inferred> = generated.kept().collect();
        let same = |field: &Inferred| theirs.iter().find(|other| other.name == field.name);
        let unlike = self.left_out().iter().filter(|out| out.reason != EXCLUDED).count();
        let missing: Vec<&Inferred> = self.kept().filter(|field| same(field).is_none()).collect();
        not_compared.extend(missing.iter().map(|field| missed(&field.name)));
        let theirs_only = theirs.iter().filter(|field| self.column_named(&field.name).is_none());
        not_compared.extend(theirs_only.map(|field| format!("{}: not in the source", field.name)));
        let fields: Vec<(&Inferred, &Inferred)> =
            self.kept().filter_map(|field| Some((field, *same(field)?))).collect();
        let (columns, nested) = compare_columns(&fields, &mut not_compared);
        let missing = missing.len() + nested;
        let ours: Vec<&Inferred> = fields.iter().map(|pair| pair.0).collect();
        let all = rows::count_leaves(self.kept());
        let (leaves, others) = rows::leaves(fields.iter().map(|pair| pair.0));
        let (their_leaves, _) = rows::leaves(fields.iter().map(|pair| pair.1));
        not_compared.extend(others);
        let named = |leaf: &Leaf<'_>| their_leaves.iter().find(|other| other.path == leaf.path);
        let leaves: Vec<[&Leaf<'_>; 2]> =
            leaves.iter().filter_map(|leaf| Some([leaf, named(leaf)?])).collect();
        let source_rows = self.rows.unwrap_or_else(|| self.sampled_rows());
        let both = Both::new(&leaves, [&self.chosen.rows, &generated.chosen.rows], source_rows);
        not_compared.extend(both.not_compared());
        let ((pairs, vague), (order, unordered)) = (both.pairs(), both.order());
        not_compared.extend(unordered);
        if vague > 0 {
            let pairs = format_counted(vague as u64, "pair");
            not_compared.push(format!("{pairs} of columns: too few rows with both"));
        }
        let ordered = by_column_kept(&order);
        let unordered = leaves.len() - ordered.len();
        if unordered > 0 {
            let why = "too few rows, or strings that hardly repeat";
            let columns = format_counted(unordered as u64, "column");
            not_compared.push(format!("the order of {columns}: {why}"));
        }
        let (keys, uncounted) = keys::keys(&leaves, &columns);
        not_compared.extend(uncounted);
        let relations = compare_relations(&ours, &theirs);
        let tree = tree::told_apart(&leaves);
        let kept = Kept {
            columns: [
                columns.iter().filter(|column| column.is_kept).count(),
                columns.len() + missing + unlike,
            ],
            pairs: [pairs.iter().filter(|pair| pair.is_kept).count(), all * all.saturating_sub(1) / 2],
            order: [ordered.values().filter(|is_kept| **is_kept).count(), ordered.len()],
            keys: [keys.iter().filter(|key| key.repeated == 0).count(), keys.len()],
            column_distance: columns::DISTANCE,
            pair_distance: measures::DISTANCE,
        };
        Fidelity { kept, columns, pairs, order, keys, tree, relations, not_compared }
    }
}

#[cfg(test)]
mod tests;

/// The columns that both have, the least alike first, and how many nested ones the generated data lack.
fn compare_columns(
    fields: &[(&Inferred, &Inferred)],
    not_compared: &mut Vec<String>,
) -> (Vec<ColumnFidelity>, usize) {
    let compared = by_column(fields.len(), |i| {
        let (mut columns, mut others) = (Vec::new(), Vec::new());
        let (a, b) = fields[i];
        let missing = columns::compare_fields(a, b, &a.name, &mut columns, &mut others);
        (columns, others, missing)
    });
    let (mut columns, mut missing) = (Vec::new(), 0);
    for (found, others, missing_here) in compared {
        columns.extend(found);
        not_compared.extend(others);
        missing += missing_here;
    }
    columns.sort_by(|a, b| a.is_kept.cmp(&b.is_kept).then(b.distance.total_cmp(&a.distance)));
    (columns, missing)
}

/// Whether each column keeps its order by all measures.
fn by_column_kept(order: &[OrderFidelity]) -> BTreeMap<&str, bool> {
    let mut columns = BTreeMap::new();
    for order in order {
        *columns.entry(order.column.as_str()).or_insert(true) &= order.measure.is_kept;
    }
    columns
}

/// The message for a column that the generated data lack.
fn missed(path: &str) -> String {
    format!("{path}: not in the generated data")
}

fn compare_relations(ours: &[&Inferred], theirs: &[&Inferred]) -> Vec<RelationFidelity> {
    let of = |fields: &[&Inferred]| -> Vec<usize> {
        ours.iter().filter_map(|field| fields.iter().position(|other| other.name == field.name)).collect()
    };
    let same: Vec<&Inferred> = of(theirs).into_iter().map(|i| theirs[i]).collect();
    let (a, b): (Vec<Column<'_>>, Vec<Column<'_>>) =
        (ours.iter().map(|f| f.column()).collect(), same.iter().map(|f| f.column()).collect());
    let mut out = Vec::new();
    for found in dependence::dependences(&a) {
        let relation = format!("{} is a function of {}", a[found.of].name, a[found.by].name);
        // What the generated data cannot have, because their columns are others, they break.
        let [source, generated] =
            [&a, &b].map(|columns| dependence::functional(columns, found).unwrap_or(0.0));
        let generated = dependence::as_in(&a, &b, found).unwrap_or(generated);
        out.push(RelationFidelity { relation, source, generated });
    }
    for sum in sums::sums(&a) {
        out.extend(sums::holds(&a, &b, &sum).map(|(relation, source, generated)| RelationFidelity {
            relation,
            source,
            generated,
        }));
    }
    out
}
