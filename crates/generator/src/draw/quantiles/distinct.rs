//! Numbers with given quantiles that do not repeat.

use crate::draw::quantiles::{points, step};
use crate::draw::value_spec::distinct_numbers::{DistinctNumbers, Piece};
use crate::draw::value_spec::reader::Surroundings;
use crate::draw::value_spec::reader::numbers::is_unique;
use crate::error::Result;
use crate::random::rng::purpose;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::number::Number;

/// The most numbers.
const MAX_NUMBERS: u64 = 1 << 50;

/// How many numbers of rows to try, from the greatest down, before a smaller one that is sure to fit.
const MAX_TRIES: u64 = 10_000;

/// The numbers between two quantiles, in steps.
struct Between {
    /// The shares below both.
    shares: (f64, f64),
    low: i128,
    width: i128,
}

/// Reads `quantiles` that are `unique`; `None` if they are not.
pub(crate) fn distinct(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<Option<DistinctNumbers>> {
    let kind = around.kind;
    let table = node.any_table("quantiles")?;
    if !is_unique(table, around)? {
        return Ok(None);
    }
    let table = node.table("quantiles", &["values", "shares", "step", "unique"])?;
    let step = step(table, kind)?.map_or(1, |step| step.whole);
    let points: Vec<(f64, i128)> = points(table, kind)?
        .into_iter()
        .filter_map(|(share, value)| match value {
            Number::Whole(n) => Some((share, n)),
            Number::Real(_) => None,
        })
        .collect();
    // The first multiple that is at least as large.
    let above = |n: i128| n.div_euclid(step) + i128::from(n.rem_euclid(step) > 0);
    let least = points.first().map_or(0, |point| above(point.1));
    let rising = points.windows(2).filter(|pair| pair[0].0 < pair[1].0);
    let between: Option<Vec<Between>> = rising
        .map(|pair| {
            let (low, high) = (above(pair[0].1), above(pair[1].1));
            let (low, width) = (low.checked_sub(least)?, high.checked_sub(low)?);
            Some(Between { shares: (pair[0].0, pair[1].0), low, width })
        })
        .collect();
    let mut between = between.filter(|all| !all.is_empty());
    // The last one includes the greatest number.
    if let Some(last) = between.as_mut().and_then(|all| all.last_mut()) {
        let is_multiple = points.last().is_some_and(|point| point.1.rem_euclid(step) == 0);
        last.width = last.width.saturating_add(is_multiple.into());
    }
    let rows = between.as_ref().map_or(0, |all| most_rows(all));
    let Some(between) = between.filter(|_| rows > 0) else {
        let what = "unique quantiles without a number for each share of rows";
        return Err(table.key_error("unique", what, "write `values` that differ, or leave unique out"));
    };
    let pieces = between.iter().map(|of| {
        let (first, end) = (place(of.shares.0, rows), place(of.shares.1, rows));
        Piece { first, count: end - first, low: of.low, width: of.width }
    });
    let pieces = pieces.filter(|piece| piece.count > 0).collect();
    Ok(Some(DistinctNumbers::with_pieces(least * step, step, pieces, purpose(around.path, "unique"))))
}

/// How many of `rows` rows have smaller values.
fn place(share: f64, rows: u64) -> u64 {
    (share * rows as f64).round() as u64
}

/// The most rows for which each share has enough different numbers.
fn most_rows(between: &[Between]) -> u64 {
    let fits = |rows: &u64| {
        let count = |of: &Between| place(of.shares.1, *rows) - place(of.shares.0, *rows);
        between.iter().all(|of| i128::from(count(of)) <= of.width)
    };
    let rows = |more: f64| {
        let rows = between.iter().map(|of| (of.width as f64 + more) / (of.shares.1 - of.shares.0));
        (rows.fold(MAX_NUMBERS as f64, f64::min).max(0.0) as u64).min(MAX_NUMBERS)
    };
    let most = rows(1.0);
    let tried = (most.saturating_sub(MAX_TRIES)..=most).rev();
    tried.chain([rows(-1.0)]).find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::Dataset;

    /// Why a field is refused, or nothing.
    fn refused(field: &str) -> String {
        let spec = format!("name = 't'\nfields = [{{ name = 'x', {field} }}]");
        Dataset::from_toml(&spec).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn unique_quantiles_have_no_atoms_and_enough_numbers() {
        let of = |quantiles: &str| refused(&format!("type = 'int64', values.quantiles = {{ {quantiles} }}"));
        assert_eq!(of("values = [1, 5, 1000], unique = true"), "");
        assert_eq!(of("values = [1, 5], unique = false"), "");
        assert!(of("values = [1, 5], atoms = { 7 = 0.1 }, unique = true").contains("atoms"));
        assert!(of("values = [1, 5], step = 2, stepped = 0.5, unique = true").contains("stepped"));
        assert!(of("values = [1, 1, 5], unique = true").contains("without a number for each share"));
        let real = refused("type = 'double', values.quantiles = { values = [1, 5], unique = true }");
        assert!(real.contains("unique numbers that are real or in a list"), "{real}");
    }
}
