//! Checks bounds of column chunks and pages: each must have a length that fits its type, and the lower bound
//! must not exceed the upper one.

use sawmill_footer::{ColumnChunk, ColumnIndex, Footer, Statistics};

use super::Check;
use super::order::{BoundsOf, Width};

/// How the bounds of a chunk's column compare, if known.
fn bounds_of(footer: &Footer, chunk: &ColumnChunk<'_>) -> Option<BoundsOf> {
    let leaf = chunk.element();
    // Another check reports disagreement between the chunk and the schema.
    if leaf.physical_type() != Some(chunk.physical_type()) {
        return None;
    }
    // Orders of another number of columns are wrong themselves.
    let leaves = footer.schema().num_leaves();
    match footer.column_orders().filter(|orders| orders.len() == leaves) {
        Some(orders) => BoundsOf::column(&leaf, orders.get(chunk.leaf()).copied()),
        None => BoundsOf::without_order(&leaf),
    }
}

/// Bounds in a chunk's statistics that cannot be true.
pub(crate) struct ImpossibleBounds {
    /// Their fields: one whose length is wrong, or two in the wrong order.
    pub fields: Vec<&'static str>,
    /// What was expected, and what was found.
    pub what: String,
}

/// The bounds in a chunk's statistics that cannot be true.
pub(crate) fn impossible_bounds(
    footer: &Footer,
    chunk: &ColumnChunk<'_>,
    statistics: &Statistics<'_>,
) -> Vec<ImpossibleBounds> {
    let Some(bounds) = bounds_of(footer, chunk) else { return Vec::new() };
    let Statistics { min, max, min_value, max_value, .. } = *statistics;
    let lengths = [
        ("min", min, None),
        ("max", max, None),
        ("min_value", min_value, statistics.is_min_value_exact),
        ("max_value", max_value, statistics.is_max_value_exact),
    ];
    let lengths = lengths.into_iter().filter_map(|(name, bound, exact)| {
        let what = wrong_length(bounds.width, bound?, exact == Some(true))?;
        Some(ImpossibleBounds { fields: vec![name], what })
    });
    let pair = |lower: (&'static str, &[u8]), upper: (&'static str, &[u8])| ImpossibleBounds {
        fields: vec![lower.0, upper.0],
        what: crossed(&bounds, lower, upper),
    };
    let new = min_value.zip(max_value).filter(|(lower, upper)| bounds.crossed(lower, upper));
    let new = new.map(|(lower, upper)| pair(("min_value", lower), ("max_value", upper)));
    let old = min.zip(max).filter(|(lower, upper)| bounds.old_crossed(lower, upper));
    let old = old.map(|(lower, upper)| pair(("min", lower), ("max", upper)));
    lengths.chain(new).chain(old).collect()
}

impl Check<'_, '_> {
    pub(super) fn bounds_of_chunk(&mut self, chunk: &ColumnChunk<'_>, statistics: &Statistics<'_>) {
        for ImpossibleBounds { fields, what } in impossible_bounds(self.footer, chunk, statistics) {
            let place = match fields.as_slice() {
                [name] => format!(".meta_data.statistics.{name}"),
                _ => ".meta_data.statistics".to_owned(),
            };
            self.chunk(chunk, what, &place);
        }
    }

    pub(super) fn bounds_of_pages(&mut self, chunk: &ColumnChunk<'_>, index: &ColumnIndex) {
        let Some(bounds) = bounds_of(self.footer, chunk) else { return };
        for page in (0..index.num_pages()).filter(|&page| index.is_null_page(page) == Some(false)) {
            let (Some(lower), Some(upper)) = (index.min_value(page), index.max_value(page)) else { continue };
            let name = |bound: &str| format!("{bound} of page {page}");
            for (name, bound) in [(name("min_value"), lower), (name("max_value"), upper)] {
                if let Some(what) = wrong_length(bounds.width, bound, false) {
                    self.chunk(chunk, format!("{what} as the {name}"), ", column index");
                }
            }
            if bounds.crossed(lower, upper) {
                let what = crossed(&bounds, (&name("min_value"), lower), (&name("max_value"), upper));
                self.chunk(chunk, what, ", column index");
            }
        }
    }
}

/// Describes a wrong length of a bound. An exact bound is never truncated.
fn wrong_length(width: Width, bound: &[u8], exact: bool) -> Option<String> {
    let found = bound.len();
    let expected = match width {
        Width::AtMost(len) if exact => Width::Exactly(len),
        width => width,
    };
    if expected.fits(found) {
        return None;
    }
    match expected {
        Width::Exactly(len) => {
            Some(format!("expected a bound of {len} bytes for the type, found one of {found}"))
        }
        Width::AtMost(len) => {
            Some(format!("expected a bound of at most {len} bytes for the type, found one of {found}"))
        }
        Width::Any => None,
    }
}

fn crossed(bounds: &BoundsOf, lower: (&str, &[u8]), upper: (&str, &[u8])) -> String {
    format!(
        "expected the {} to be no greater than the {} in the column's order, found {} and {}",
        lower.0,
        upper.0,
        bounds.shown(lower.1),
        bounds.shown(upper.1),
    )
}
