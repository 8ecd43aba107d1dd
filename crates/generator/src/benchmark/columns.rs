//! The columns of a benchmark's table: flat, with the dictionaries of columns with few values.

use crate::draw::choice::Dictionary;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::random::weights::Weights;
use crate::spec::dataset::{Field, Kind, Leaf, Levels};
use crate::types::logical_type::{LogicalType, Physical};

/// A column: its name, its type, and what its values are.
pub(crate) struct Column {
    pub name: String,
    pub kind: LogicalType,
    pub values: ValueSpec,
    pub nulls: Nulls,
}

impl Column {
    /// A column without nulls.
    pub(crate) fn new(name: &str, kind: LogicalType, values: ValueSpec) -> Self {
        Column { name: name.to_owned(), kind, values, nulls: Nulls::Never }
    }
}

/// Values from a sorted list, each with its weight.
pub(crate) fn listed(entries: Vec<(Vec<u8>, f64)>) -> ValueSpec {
    let weights: Vec<f64> = entries.iter().map(|(_, weight)| *weight).collect();
    match Weights::new(&weights) {
        Ok(table) => {
            let entries: Vec<Vec<u8>> = entries.into_iter().map(|(entry, _)| entry).collect();
            let ordered = entries.len();
            ValueSpec::Choice { table, dictionary: Dictionary { entries, ordered }, by: None }
        }
        // The lists have at least one value and positive weights.
        Err(_) => ValueSpec::Computed { mean_bytes: 8.0, repeats: false },
    }
}

/// Whole numbers, days or the digits of decimals of this type, all equally likely.
pub(crate) fn listed_numbers(kind: &LogicalType, values: impl Iterator<Item = i64>) -> ValueSpec {
    let narrow = kind.physical() == Physical::Int32;
    let entry = |value: i64| match narrow {
        true => (value as i32).to_le_bytes().to_vec(),
        false => value.to_le_bytes().to_vec(),
    };
    listed(values.map(|value| (entry(value), 1.0)).collect())
}

pub(crate) fn fields(columns: Vec<Column>) -> Vec<Field> {
    let field = |(index, Column { name, kind, values, nulls }): (usize, Column)| Field {
        path: name.clone(),
        name,
        levels: Levels { definition: u8::from(nulls != Nulls::Never), repetition: 0 },
        nulls,
        null_where: None,
        kind: Kind::Leaf(Box::new(Leaf::new(index, kind, values))),
        null_draws: 0,
        value_draws: 0,
    };
    columns.into_iter().enumerate().map(field).collect()
}
