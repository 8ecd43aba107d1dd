//! The `Statistics` struct of column chunks and page headers.

use crate::encode::statistics::Bounds;
use crate::encode::thrift::StructWriter;
use crate::spec::dataset::Leaf;

/// Writes the fields of `Statistics`.
pub(crate) fn statistics(w: &mut StructWriter<'_>, nulls: i64, bounds: Option<&Bounds>, leaf: &Leaf) {
    w.i64(3, nulls);
    if let Some(bounds) = bounds {
        let (low, high) = bounds.plain(leaf);
        w.binary(5, &high);
        w.binary(6, &low);
        w.boolean(7, true);
        w.boolean(8, true);
    }
}
