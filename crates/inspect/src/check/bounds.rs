//! Checks bounds of column chunks and pages: each must have a length that fits its type, and the lower bound
//! must not exceed the upper one.

use sawmill_footer::{ColumnChunk, ColumnIndex, Statistics};

use super::Check;
use super::order::{BoundsOf, Width};

impl Check<'_, '_> {
    /// How the bounds of a chunk's column compare, if known.
    fn bounds_of(&self, chunk: &ColumnChunk<'_>) -> Option<BoundsOf> {
        let leaf = chunk.element();
        // Another check reports disagreement between the chunk and the schema.
        if leaf.physical_type() != Some(chunk.physical_type()) {
            return None;
        }
        match self.footer.column_orders() {
            Some(orders) => BoundsOf::column(&leaf, orders.get(chunk.leaf()).copied()),
            None => BoundsOf::without_order(&leaf),
        }
    }

    pub(super) fn bounds_of_chunk(&mut self, chunk: &ColumnChunk<'_>, statistics: &Statistics<'_>) {
        let Some(bounds) = self.bounds_of(chunk) else { return };
        for (name, bound, exact) in [
            ("min", statistics.min, None),
            ("max", statistics.max, None),
            ("min_value", statistics.min_value, statistics.is_min_value_exact),
            ("max_value", statistics.max_value, statistics.is_max_value_exact),
        ] {
            let Some(bound) = bound else { continue };
            if let Some(what) = wrong_length(bounds.width, bound, exact == Some(true)) {
                self.chunk(chunk, what, &format!(".meta_data.statistics.{name}"));
            }
        }
        if let (Some(lower), Some(upper)) = (statistics.min_value, statistics.max_value)
            && bounds.crossed(lower, upper)
        {
            let what = crossed(&bounds, ("min_value", lower), ("max_value", upper));
            self.chunk(chunk, what, ".meta_data.statistics");
        }
        if let (Some(lower), Some(upper)) = (statistics.min, statistics.max)
            && bounds.old_crossed(lower, upper)
        {
            let what = crossed(&bounds, ("min", lower), ("max", upper));
            self.chunk(chunk, what, ".meta_data.statistics");
        }
    }

    pub(super) fn bounds_of_pages(&mut self, chunk: &ColumnChunk<'_>, index: &ColumnIndex) {
        let Some(bounds) = self.bounds_of(chunk) else { return };
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
