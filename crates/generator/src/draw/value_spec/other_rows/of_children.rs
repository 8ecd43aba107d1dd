//! Sums, counts and extremes of the rows that a table has for each row of its parent.

use std::sync::Arc;

use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::other_column::column_of_table;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::{Complaint, Error};
use crate::spec::dataset::Dataset;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;

/// A value of the children of a row.
#[derive(Debug)]
pub(crate) struct OfChildren {
    pub fold: Fold,
    /// How the rows of the table of children follow from this table's rows.
    pub fan_out: Arc<FanOut>,
    /// That table and its column, unless rows are counted.
    pub column: Option<(Arc<Dataset>, usize)>,
    /// `sum of TABLE.COLUMN`.
    pub name: String,
}

/// What becomes of the values of the children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Min,
    Max,
    Count,
}

/// `sum = { of = "TABLE.COLUMN" }`, also `min` and `max`; `count = { of = "TABLE" }`.
pub(crate) fn of_children(
    name: &str,
    node: SpecNode<'_>,
    around: &mut Surroundings<'_>,
) -> Result<ValueSpec, Error> {
    let (kind, path) = (around.kind, around.path);
    let of = node.table(path, name, &["of"])?.need("of", path, name)?;
    let text = of.string().unwrap_or_default();
    let wrong = |what: String, advice: &str| Err(of.error(path, what, advice));
    let fold = match name {
        "sum" => Fold::Sum,
        "min" => Fold::Min,
        "max" => Fold::Max,
        _ => Fold::Count,
    };
    let (table, column) = match (fold, text.split_once('.')) {
        (Fold::Count, None) => (text, ""),
        (Fold::Count, Some(_)) => return wrong(format!("a count of {text}"), "name a table: it counts rows"),
        (_, Some(parts)) => parts,
        (_, None) => {
            return wrong(
                format!("`of = {}`", of.described()),
                "write a table and its column, like \"items.amount\"",
            );
        }
    };
    if around.in_list {
        return wrong(format!("a {name} of children inside a list"), "use it in a field of the record");
    }
    let found = (around.tables.children)(table);
    let complaint = |(what, advice): Complaint| of.error(path, what, advice);
    let fan_out = found.map_err(complaint)?;
    let mut of_column = None;
    if fold != Fold::Count {
        let dataset = (around.tables.table)(table, column).map_err(complaint)?;
        let found = column_of_table(&dataset, column).map_err(complaint)?;
        if found.0.levels.definition > 0 {
            let what = format!("{text} may be null");
            return wrong(what, "use a required column: leave out its `nulls`");
        }
        if let Err(what) = fits(fold, &found.1.kind, kind) {
            return wrong(
                format!("the {name} of {text} {what}"),
                "use integers, durations or decimals of the same scale and at most 30 digits",
            );
        }
        let leaf = found.1.index;
        of_column = Some((dataset, leaf));
    } else if !matches!(kind, LogicalType::Integer { .. }) {
        return wrong(format!("a count in {}", kind.a_name()), "use an integer type");
    }
    if matches!(fold, Fold::Min | Fold::Max) && fan_out.least_children() == 0 {
        let what = format!("the {name} of {text}, of which some rows have none");
        return wrong(what, "give each parent at least one child in `per`");
    }
    let name = format!("{name} of {text}");
    Ok(ValueSpec::OfChildren(OfChildren { fold, fan_out, column: of_column, name }))
}

/// Whether the values of children of type `of` can be folded into a field of type `kind`.
fn fits(fold: Fold, of: &LogicalType, kind: &LogicalType) -> Result<(), String> {
    use LogicalType::{Decimal, Duration, Integer};
    let is_same = match (of, kind) {
        (Integer { .. }, Integer { .. }) => true,
        (Decimal { scale: a, precision, .. }, Decimal { scale: b, .. }) => a == b && *precision <= MAX_DIGITS,
        (Duration { unit: a }, Duration { unit: b }) => a == b,
        (of, kind) => fold != Fold::Sum && of.is_whole() && of == kind && *of != LogicalType::Int96,
    };
    if is_same { Ok(()) } else { Err(format!("is {}, and the field is {}", of.a_name(), kind.a_name())) }
}

/// The most digits of decimals that can be summed in 128 bits.
const MAX_DIGITS: u8 = 30;
