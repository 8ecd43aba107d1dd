//! Values in the order of a list, from row to row: the months of a series, the hours of each station.

use crate::draw::choice::{Dictionary, Listed, of_node, ordered};
use crate::draw::distribution::count;
use crate::draw::value_spec::reader::Surroundings;
use crate::draw::value_spec::{ChosenBy, ValueSpec};
use crate::error::{Complaint, Result};
use crate::random::weights::Weights;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;

/// The most values of a cycle.
const MAX_VALUES: usize = 1 << 20;

/// The numbers of values in a dictionary, in the order in which rows have them.
#[derive(Debug)]
pub(crate) struct Cycle {
    numbers: Vec<u32>,
    /// How many rows that follow one another have each.
    pub each: u64,
}

impl Cycle {
    /// The number of a row's value in the dictionary.
    pub(crate) fn number(&self, row: u64) -> u32 {
        let place = row / self.each % self.numbers.len().max(1) as u64;
        self.numbers.get(place as usize).copied().unwrap_or(0)
    }

    /// The middles of the ranks of the values, from 0 to 1, in their order in the list; `shares` are the shares of the
    /// dictionary's values.
    pub(crate) fn ranks(&self, shares: &[f64]) -> Vec<f64> {
        let mut sum = 0.0;
        let middle = |share: &f64| {
            sum += share;
            sum - share / 2.0
        };
        let middles: Vec<f64> = shares.iter().map(middle).collect();
        self.numbers.iter().map(|number| middles.get(*number as usize).copied().unwrap_or(0.5)).collect()
    }
}

/// `cycle = [VALUE, ...]`, or `{ values = [...], each = N }`.
pub(crate) fn cycle(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    let kind = around.kind;
    if around.in_list || *kind == LogicalType::Boolean {
        let what = if around.in_list { "a cycle inside a list" } else { "a cycle of a boolean" };
        return Err(node.error(what, "use a field of the record with another type"));
    }
    let (list, each) = match node.array() {
        Some(_) => (node, 1),
        None => {
            let table = node.table("cycle", &["values", "each"])?;
            let each = table.get("each").map_or(Ok(1), |node| count(node, i64::MAX as u64))?;
            (table.need("values", "cycle")?, each)
        }
    };
    let Some(array) = list.array().filter(|array| (1..=MAX_VALUES).contains(&array.len())) else {
        let advice = format!("write a list of 1 to {MAX_VALUES} values: [1, 2, 3]");
        return Err(list.unfit("the values of a cycle are {}", advice));
    };
    let values: Vec<Listed> = array.map(|value| of_node(kind, value, 1.0)).collect::<Result<_, _>>()?;
    in_order(&values, each).map_err(|complaint| node.complain(complaint))
}

/// Values in this order, each in as many rows.
pub(crate) fn in_order(values: &[Listed], each: u64) -> Result<ValueSpec, Complaint> {
    if !(1..=MAX_VALUES).contains(&values.len()) {
        return Err((format!("{} values in order", values.len()), format!("use 1 to {MAX_VALUES}")));
    }
    let mut distinct: Vec<&Listed> = values.iter().collect();
    distinct.sort_by(|a, b| ordered(a, b));
    distinct.dedup_by(|a, b| a.entry == b.entry);
    let place = |value: &Listed| distinct.binary_search_by(|other| ordered(other, value)).unwrap_or(0);
    let numbers: Vec<u32> = values.iter().map(|value| place(value) as u32).collect();
    let mut shares = vec![0.0; distinct.len()];
    numbers.iter().for_each(|number| shares[*number as usize] += 1.0);
    let table = Weights::new(&shares).map_err(|_| ("values without shares".into(), "add values".into()))?;
    let dictionary = Dictionary::new(distinct.into_iter());
    Ok(ValueSpec::Choice { table, dictionary, by: Some(Box::new(ChosenBy::Row(Cycle { numbers, each }))) })
}
