//! Sums, counts and extremes of the rows that a table has for each row of its parent, or of the elements of a list.

use std::sync::Arc;

use crate::draw::expression::Operand;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::other_column::column_of_table;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::{Complaint, Result};
use crate::spec::dataset::Dataset;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;

/// A value of the children of a row.
#[derive(Debug)]
pub(crate) struct OfChildren {
    pub fold: Fold,
    pub children: Children,
    /// Whether some rows have no children to take an extreme of; the extreme is then null.
    pub may_be_null: bool,
    /// `sum of TABLE.COLUMN`.
    pub name: String,
}

/// The values that a fold combines.
#[derive(Debug)]
pub(crate) enum Children {
    /// The child rows of this table's rows: the values of one of their columns, or the rows alone for a count.
    Rows { fan_out: Arc<FanOut>, column: Option<(Arc<Dataset>, usize)> },
    /// The elements of an earlier list of the same record or element.
    Elements(Elements),
}

/// The elements of a list, given by a leaf inside it.
#[derive(Debug)]
pub(crate) struct Elements {
    pub operand: [Operand; 1],
    /// The lowest definition level of the entries to fold.
    pub there: u8,
    /// The highest repetition level of the entries to fold; for a count of elements, the list's.
    pub deepest: u8,
    /// The repetition level that begins the next list.
    pub around: u8,
    /// Whether some lists have no entries to fold.
    pub may_be_none: bool,
}

/// How the children's values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Min,
    Max,
    Count,
}

impl Fold {
    /// The value without children.
    pub(crate) fn start(self) -> Option<i128> {
        matches!(self, Fold::Sum | Fold::Count).then_some(0)
    }

    /// The result with one more `value`.
    pub(crate) fn join(self, before: Option<i128>, value: i128) -> Option<i128> {
        let Some(before) = before else { return Some(value) };
        Some(match self {
            Fold::Min => before.min(value),
            Fold::Max => before.max(value),
            // At most 4,096 values of 100 bits: nothing saturates.
            Fold::Sum | Fold::Count => before.saturating_add(value),
        })
    }
}

impl OfChildren {
    /// The elements to fold, if they are a list's.
    pub(crate) fn elements(&self) -> Option<&Elements> {
        match &self.children {
            Children::Elements(elements) => Some(elements),
            Children::Rows { .. } => None,
        }
    }
}

/// `sum = { of = "TABLE.COLUMN" }`, also `min` and `max`; `count = { of = "TABLE" }`. An earlier list can take the
/// place of a table of children.
pub(crate) fn of_children(
    name: &str,
    node: SpecNode<'_>,
    around: &mut Surroundings<'_>,
) -> Result<ValueSpec> {
    let kind = around.kind;
    let of = node.table(name, &["of"])?.need("of", name)?;
    let text = of.string().unwrap_or_default();
    let complaint = |complaint: Complaint| of.complain(complaint);
    let fold = match name {
        "sum" => Fold::Sum,
        "min" => Fold::Min,
        "max" => Fold::Max,
        _ => Fold::Count,
    };
    if fold == Fold::Count && !matches!(kind, LogicalType::Integer { .. }) {
        return Err(of.error(format!("a count in {}", kind.a_name()), "use an integer type"));
    }
    let table = text.split_once('.').map_or(text, |(table, _)| table);
    let (children, may_be_none) = match (around.tables.children)(table) {
        Ok(fan_out) => {
            let may_be_none = fan_out.least_children() == 0;
            (rows((fold, name), fan_out, of, around)?, may_be_none)
        }
        Err((what, advice)) => {
            let found = (around.tables.elements)(text, fold == Fold::Count).map_err(complaint)?;
            let neither = || complaint((what, format!("{advice}, or an earlier list like \"lines.price\"")));
            let elements = found.ok_or_else(neither)?;
            let [operand] = &elements.operand;
            check_kind((fold, name), text, &operand.kind, kind).map_err(complaint)?;
            let may_be_none = elements.may_be_none;
            (Children::Elements(elements), may_be_none)
        }
    };
    let may_be_null = may_be_none && fold.start().is_none();
    Ok(ValueSpec::OfChildren(OfChildren { fold, children, may_be_null, name: format!("{name} of {text}") }))
}

/// The rows of the table of children, and its column that `of` names.
fn rows(
    (fold, name): (Fold, &str),
    fan_out: Arc<FanOut>,
    of: SpecNode<'_>,
    around: &Surroundings<'_>,
) -> Result<Children> {
    let text = of.string().unwrap_or_default();
    let wrong = |what: String, advice: &str| Err(of.error(what, advice));
    let complaint = |complaint: Complaint| of.complain(complaint);
    if around.in_list {
        return wrong(format!("a {name} of children inside a list"), "use it in a field of the record");
    }
    let (table, column) = match (fold, text.split_once('.')) {
        (Fold::Count, None) => return Ok(Children::Rows { fan_out, column: None }),
        (Fold::Count, Some(_)) => return wrong(format!("a count of {text}"), "name a table: it counts rows"),
        (_, Some(parts)) => parts,
        (_, None) => {
            return Err(of.wrong("of", "write a table and its column, like \"items.amount\""));
        }
    };
    let dataset = (around.tables.table)(table, column).map_err(complaint)?;
    let (field, leaf) = column_of_table(&dataset, column).map_err(complaint)?;
    if field.levels.definition > 0 {
        return wrong(format!("{text} may be null"), "use a required column: leave out its `nulls`");
    }
    check_kind((fold, name), text, &leaf.kind, around.kind).map_err(complaint)?;
    let leaf = leaf.index;
    Ok(Children::Rows { fan_out, column: Some((dataset, leaf)) })
}

/// Refuses values of type `of` that cannot be folded into a field of type `kind`.
fn check_kind(
    (fold, name): (Fold, &str),
    text: &str,
    of: &LogicalType,
    kind: &LogicalType,
) -> Result<(), Complaint> {
    use LogicalType::{Decimal, Duration, Integer};
    let is_same = match (of, kind) {
        _ if fold == Fold::Count => true,
        (Integer { .. }, Integer { .. }) => true,
        (Decimal { scale: a, precision, .. }, Decimal { scale: b, .. }) => a == b && *precision <= MAX_DIGITS,
        (Duration { unit: a }, Duration { unit: b }) => a == b,
        (of, kind) => {
            let is_narrow = of.is_whole() && !of.is_wide() && *of != LogicalType::Int96;
            fold != Fold::Sum && of == kind && is_narrow
        }
    };
    if is_same {
        return Ok(());
    }
    let what = format!("the {name} of {text} is {}, and the field is {}", of.a_name(), kind.a_name());
    Err((what, "use integers, durations or decimals of the same scale and at most 30 digits".to_owned()))
}

/// The most digits of decimals that can be summed in 128 bits.
const MAX_DIGITS: u8 = 30;
