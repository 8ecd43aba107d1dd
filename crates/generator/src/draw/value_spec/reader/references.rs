//! Reads references: values that are the keys of another dataset's rows.

use std::ops::RangeInclusive;

use crate::draw::distribution::{Ranks, count, exponent};
use crate::draw::value_spec::other_rows::other_column::fan_out;
use crate::draw::value_spec::reader::Surroundings;
use crate::draw::value_spec::reader::texts::text_only;
use crate::draw::value_spec::{DistinctRows, Orphans, Reference, ReferencedKey, ValueSpec};
use crate::error::Result;
use crate::random::permutation::Permutation;
use crate::random::rng::purpose;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// What a reference says besides its key.
struct Referred {
    rows: Option<u64>,
    frequencies: Frequencies,
    shuffled: bool,
    /// The share of keys that no row has.
    orphans: f64,
    /// Whether the children of one parent refer to different rows.
    distinct: bool,
}

/// How often the rows are referred to, the most frequent one first.
enum Frequencies {
    /// The Zipf exponent, and the share of the rows that are referred to.
    Zipf { s: f64, used: f64 },
    /// Runs of rows: of each its share of the rows and of the references.
    Runs(Vec<(f64, f64)>),
}

impl Frequencies {
    fn read(table: SpecTable<'_>, used: f64) -> Result<Self> {
        let Some(node) = table.get("frequencies") else {
            let s = table.get("s").map_or(Ok(1.0), |node| exponent(node))?;
            return Ok(Frequencies::Zipf { s, used });
        };
        let advice = "write [SHARE OF THE ROWS, SHARE OF THE REFERENCES] for each run of rows, as in [[0.01, 0.3], [0.6, 0.7]]";
        if table.get("s").is_some() || table.get("used").is_some() {
            let what = "`frequencies` with `s` or `used`";
            return Err(node.error(what, "leave out `s` and `used`: frequencies say both"));
        }
        let pair = |node: SpecNode<'_>| match node.list(SpecNode::number)?[..] {
            [rows, references] => Some((rows, references)),
            _ => None,
        };
        node.list(pair)
            .map(Frequencies::Runs)
            .ok_or_else(|| node.error("`frequencies` are not pairs of shares", advice))
    }

    fn ranks(&self, rows: u64) -> Option<Ranks> {
        match self {
            Frequencies::Zipf { s, used } => {
                Ranks::new(((rows as f64 * used).round() as u64).clamp(1, rows), *s)
            }
            Frequencies::Runs(shares) => Ranks::of_runs(shares, rows),
        }
    }
}

impl Referred {
    fn read(table: SpecTable<'_>) -> Result<Self> {
        let share = |key: &str, range: RangeInclusive<f64>| {
            let advice = format!("write a share from {} to {}", range.start(), range.end());
            table.read(key, advice, |node| node.number_in(range))
        };
        let used = share("used", f64::MIN_POSITIVE..=1.0)?.unwrap_or(1.0);
        Ok(Referred {
            rows: table.get("rows").map(|node| count(node, u64::MAX >> 11)).transpose()?,
            frequencies: Frequencies::read(table, used)?,
            shuffled: table.flag("shuffled")?,
            distinct: table.flag("distinct")?,
            orphans: share("orphans", 0.0..=0.999)?.unwrap_or(0.0),
        })
    }
}

/// Reads the parameters of `ref`: a key of another dataset, and how often its rows are referred to.
pub(super) fn reference(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let (to, referred) = match node.string() {
        Some(to) => {
            let frequencies = Frequencies::Zipf { s: 1.0, used: 1.0 };
            (to, Referred { rows: None, frequencies, shuffled: false, orphans: 0.0, distinct: false })
        }
        None => {
            let keys = ["to", "rows", "s", "shuffled", "used", "frequencies", "orphans", "distinct"];
            let table = node.table("ref", &keys)?;
            let with = ["s", "shuffled", "used", "frequencies", "orphans"]
                .iter()
                .find(|key| table.get(key).is_some());
            if let (Some(distinct), Some(with)) = (table.get("distinct"), with) {
                let what = format!("`distinct` with `{with}`");
                return Err(distinct.error(what, "leave one out: distinct rows are equally probable"));
            }
            let advice = "write a dataset and its key, like \"orders.id\"";
            let name = table.read_needed(("to", "ref"), advice, SpecNode::string)?;
            (name, Referred::read(table)?)
        }
    };
    let (key, rows_in_spec) = (around.key)(to).map_err(|complaint| node.complain(complaint))?;
    let Some(rows) = referred.rows.or(rows_in_spec).filter(|rows| *rows > 0) else {
        let what = format!("the dataset of {to} has no rows, or an unknown number of them");
        let advice = format!(
            "write {{ ref = {{ to = \"{to}\", rows = ... }} }}, or add `rows` to that dataset's spec"
        );
        return Err(node.error(what, advice));
    };
    // Orphans have the keys that as many rows again would have.
    let orphans =
        (referred.orphans > 0.0).then(|| Orphans { below: (referred.orphans * 2f64.powi(64)) as u64, rows });
    match &key {
        ReferencedKey::Unique(_) | ReferencedKey::Distinct(_) => text_only("a unique key", node, around)?,
        ReferencedKey::Uuid(_) if *around.kind == LogicalType::Uuid => {}
        ReferencedKey::Uuid(_) => text_only("a UUID", node, around)?,
        ReferencedKey::Sequence { start, step } => {
            let last_row = rows as i128 * if orphans.is_some() { 2 } else { 1 } - 1;
            let last = step.checked_mul(last_row).and_then(|n| n.checked_add(*start));
            let (low, high) = around.kind.range();
            let inside = |n: &i128| (low..=high).contains(n);
            if !(around.kind.is_whole() && inside(start) && last.as_ref().is_some_and(inside)) {
                let what = format!("the keys of {to} do not fit {}", around.kind.a_name());
                return Err(node.error(what, "use the type of the key for this field"));
            }
        }
    }
    let ranks = referred.frequencies.ranks(rows).ok_or_else(|| match referred.frequencies {
        Frequencies::Zipf { s, .. } => {
            node.error(format!("a reference with s = {s}"), "use an s from 0 to 100")
        }
        Frequencies::Runs(_) => {
            let what = "`frequencies` whose shares are not positive, or of more than all rows";
            node.error(what, "use positive shares; those of the rows may sum to 1")
        }
    })?;
    // The same rows are frequent in every field that refers to the key.
    let shuffled = referred.shuffled.then(|| Permutation::new(rows, purpose(to, "order")));
    let to = to.split_once('.').map_or(to, |(dataset, _)| dataset).to_owned();
    let distinct = referred.distinct.then(|| distinct_rows(node, rows, around)).transpose()?;
    let keys = rows.saturating_mul(if orphans.is_some() { 2 } else { 1 });
    Ok(ValueSpec::Reference(Reference { ranks, key, keys, to, shuffled, orphans, distinct }))
}

fn distinct_rows(node: SpecNode<'_>, rows: u64, around: &Surroundings<'_>) -> Result<DistinctRows> {
    let fan_out = fan_out(node, around)?;
    if fan_out.most_children() > rows {
        let what =
            format!("a parent has up to {} children, but there are {rows} rows", fan_out.most_children());
        return Err(node.error(what, "shorten `per`, or leave out `distinct`"));
    }
    Ok(DistinctRows { fan_out, rows, order: purpose(around.path, "distinct") })
}
