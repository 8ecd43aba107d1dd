//! Reads the `values` of a leaf.
//!
//! `values` is either a name (`"person_name"`) or a table with one key: the name of a distribution with its
//! parameters. The reader checks everything that drawing relies on.

mod formulas;
pub(crate) mod numbers;
mod references;
mod texts;

use std::sync::Arc;

use crate::draw::choice::{choice, constant, weighted};
use crate::draw::expression::Operand;
use crate::draw::monotone::Monotone;
use crate::draw::quantiles::Quantiles;
use crate::draw::quantiles::distinct::distinct;
use crate::draw::text::random_text::RandomText;
use crate::draw::text::{email, localized};
use crate::draw::value_spec::cycle::cycle;
use crate::draw::value_spec::geometry::Shapes;
use crate::draw::value_spec::intervals::Intervals;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::of_children::{Elements, of_children};
use crate::draw::value_spec::other_rows::other_column::{Referring, child_number, lookup, parent};
use crate::draw::value_spec::reader::formulas::expression;
use crate::draw::value_spec::reader::numbers::{continuous, counts, sequence, uniform, zipf};
use crate::draw::value_spec::reader::references::reference;
use crate::draw::value_spec::reader::texts::{bytes, pattern, template, text_only, uuid, words};
use crate::draw::value_spec::seasonal::Seasonal;
use crate::draw::value_spec::weights_by::weights_by;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::{Complaint, Error, Result};
use crate::spec::dataset::Dataset;
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, listed};
use crate::types::logical_type::LogicalType;

/// A key of a dataset, and the number of rows in its spec.
pub(crate) type FoundKey = (ReferencedKey, Option<u64>);

/// What the reader of `values` may need of its surroundings.
pub(crate) struct Surroundings<'a> {
    pub kind: &'a LogicalType,
    pub path: &'a str,
    /// The folder with the files that the spec names.
    pub folder: &'a SpecFolder<'a>,
    /// Finds an earlier field of the record by its name in an expression.
    pub operand: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    /// Finds the key of another dataset, and the number of rows in that dataset's spec.
    pub key: &'a mut dyn FnMut(&str) -> Result<FoundKey, Complaint>,
    /// Columns of other rows.
    pub tables: OtherTables<'a>,
    /// Whether the field is inside a list.
    pub in_list: bool,
    /// The field itself, for the row before of the same parent.
    pub own: Option<Operand>,
}

/// Finds what a name means.
type Find<'a, T> = &'a dyn Fn(&str) -> Result<T, Complaint>;

/// Finds the elements or values of a list, if the name is one's.
type FindElements<'a> = &'a dyn Fn(&str, bool) -> Result<Option<Elements>, Complaint>;

/// Finds a table that has a column, by both names.
type FindTable<'a> = &'a dyn Fn(&str, &str) -> Result<Arc<Dataset>, Complaint>;

/// What a field may use of other tables.
#[derive(Clone, Copy)]
pub(crate) struct OtherTables<'a> {
    /// Finds an earlier field that refers to another table.
    pub referring: Find<'a, (Operand, Referring)>,
    /// The other table of that name, with at least the column of that name.
    pub table: FindTable<'a>,
    /// How the rows of the table of that name follow from this one's, its parent's.
    pub children: Find<'a, Arc<FanOut>>,
    /// Finds an earlier list, to count its elements, or the values in it.
    pub elements: FindElements<'a>,
    /// How the rows of this table follow from its parent's rows.
    pub fan_out: Option<&'a Arc<FanOut>>,
}

/// The names of distributions, in the order of the documents.
pub(crate) const VALUES: &str = "constant uniform zipf weights weights_by choice cycle normal lognormal exponential \
    quantiles seasonal poisson geometric sequence walk expression ref lookup parent sum count min max child_number \
    column unique pattern person_name email words text point polygon uuid bytes";

impl ValueSpec {
    /// Reads the `values` of a leaf.
    pub(crate) fn read(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<Self> {
        if let Some(name) = node.string() {
            return without_parameters(name, node, around);
        }
        let table = node.any_table("`values`")?;
        let mut entries = table.entries();
        let (Some((name, parameters)), None) = (entries.next(), entries.next()) else {
            let what = "`values` must be a table with one key, the name of a distribution";
            return Err(node.error(what, "for example { uniform = { min = 1, max = 9 } }"));
        };
        let kind = around.kind;
        let only = |made: &str, fits: bool| match fits {
            true => Ok(()),
            false => {
                let what = format!("{name} draws {made}, not {}", kind.name());
                Err(table.key_error(name, what, "change the type of the field, or use another distribution"))
            }
        };
        let numbers = || only("numbers", kind.is_whole() || kind.is_real());
        let whole_numbers = || only("whole numbers", kind.is_whole());
        let text = || text_only(name, parameters, around);
        match name {
            "constant" => constant(kind, parameters),
            "weights" => weighted(kind, parameters),
            "weights_by" => weights_by(parameters, around),
            "choice" => choice(kind, parameters, around.folder),
            "cycle" => cycle(parameters, around),
            "uniform" if *kind == LogicalType::Interval => {
                Intervals::read(parameters).map(ValueSpec::Intervals)
            }
            "point" | "polygon" => Shapes::read(name, parameters, kind).map(ValueSpec::Shapes),
            "uniform" => numbers().and_then(|()| uniform(parameters, around)),
            "zipf" => numbers().and_then(|()| zipf(parameters, kind)),
            "normal" | "lognormal" | "exponential" => {
                numbers().and_then(|()| continuous(name, parameters, kind))
            }
            "quantiles" => {
                numbers()?;
                match distinct(parameters, around)? {
                    Some(numbers) => Ok(ValueSpec::DistinctNumbers(numbers)),
                    None => Quantiles::read(parameters, kind).map(ValueSpec::Quantiles),
                }
            }
            "seasonal" => Seasonal::read(parameters, kind).map(ValueSpec::Seasonal),
            "poisson" | "geometric" => numbers().and_then(|()| counts(name, parameters, kind)),
            "sequence" => whole_numbers().and_then(|()| sequence(parameters, kind)),
            "walk" => {
                whole_numbers().and_then(|()| Monotone::read(parameters, kind).map(ValueSpec::Monotone))
            }
            "expression" => only("numbers, texts or conditions", kind.is_computable())
                .and_then(|()| expression(parameters, around)),
            "ref" => reference(parameters, around),
            "lookup" => lookup(parameters, around),
            "parent" => parent(parameters, around),
            "sum" | "count" | "min" | "max" => of_children(name, parameters, around),
            "unique" => text().and_then(|()| template(parameters)),
            "pattern" => text().and_then(|()| pattern(parameters, around)),
            "words" => text().and_then(|()| words(parameters)),
            "text" => text().and_then(|()| RandomText::read(parameters).map(ValueSpec::Text)),
            "bytes" => bytes(Some(parameters), parameters, around),
            "email" => text().and_then(|()| email::of_name(parameters, around)),
            _ if is_localized(name) => {
                text().and_then(|()| localized::read(name, Some(parameters), node, around))
            }
            "person_name" | "uuid" | "child_number" | "column" => {
                let what = format!("{name} does not take parameters");
                Err(parameters.error(what, format!("write `values = \"{name}\"`")))
            }
            _ => Err(unknown(name, node)),
        }
    }
}

/// `values = "NAME"`.
fn without_parameters(name: &str, node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    match name {
        "person_name" | "email" => text_only(name, node, around).map(|()| match name {
            "email" => ValueSpec::Email,
            _ => ValueSpec::PersonName,
        }),
        _ if is_localized(name) => {
            text_only(name, node, around).and_then(|()| localized::read(name, None, node, around))
        }
        "uuid" => uuid(node, around),
        "child_number" => child_number(node, around),
        "words" => text_only(name, node, around).map(|()| ValueSpec::Words { least: 3, most: 8 }),
        "bytes" => bytes(None, node, around),
        _ => Err(unknown(name, node)),
    }
}

fn is_localized(name: &str) -> bool {
    localized::kinds().any(|kind| kind == name)
}

fn unknown(name: &str, node: SpecNode<'_>) -> Error {
    let names: Vec<&str> = VALUES.split_whitespace().chain(localized::kinds()).collect();
    node.error(format!("unknown distribution {name:?}"), format!("allowed: {}", listed(&names)))
}
