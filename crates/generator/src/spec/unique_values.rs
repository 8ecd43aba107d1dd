//! Whether values that do not repeat suffice for the rows of a dataset.

use sawmill_profile::{format_counted, format_grouped};

use crate::draw::nulls::Nulls;
use crate::draw::text::distinct::DistinctStrings;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::{Complaint, Error, Result};
use crate::spec::dataset::{Dataset, Field, Leaf};

impl Dataset {
    /// Checks that `unique` values do not repeat or leave their bounds in `rows` rows. Rows beyond go on: numbers
    /// after the last one, strings with the first one.
    ///
    /// # Errors
    /// A field has fewer values than rows, or refers to more keys than the other table has.
    pub fn check_unique(&self, rows: u64) -> Result<()> {
        self.check(&|_| true, rows)
    }

    /// The same of strings alone, for a spec that is learned from data: more rows than the data has go beyond the bounds of
    /// its numbers.
    ///
    /// # Errors
    /// A field has fewer strings than rows, or refers to more keys than the other table has.
    pub fn check_unique_strings(&self, rows: u64) -> Result<()> {
        self.check(&|leaf| !matches!(leaf.values, ValueSpec::DistinctNumbers(_)), rows)
    }

    fn check(&self, is_checked: &dyn Fn(&Leaf) -> bool, rows: u64) -> Result<()> {
        let mut found = None;
        self.each_leaf(&mut |field, leaf| {
            if found.is_none() && is_checked(leaf) {
                found = self.too_few(field, leaf, rows);
            }
        });
        found.map_or(Ok(()), Err)
    }

    /// The error of a field with fewer values than `rows` rows need; of a column of another table, than its rows need.
    fn too_few(&self, field: &Field, leaf: &Leaf, rows: u64) -> Option<Error> {
        if let ValueSpec::OtherColumn(column) = &leaf.values {
            let (field, leaf) = column.dataset.leaf(column.leaf)?;
            return column.dataset.too_few(field, leaf, column.of.rows()?);
        }
        too_few(field, leaf, rows).map(|(what, advice)| Error::spec(what, self.name(), advice))
    }
}

/// The complaint about a field with fewer values than `rows` rows need.
fn too_few(field: &Field, leaf: &Leaf, rows: u64) -> Option<Complaint> {
    let path = &field.path;
    match &leaf.values {
        ValueSpec::DistinctNumbers(numbers) if numbers.span < rows => {
            let values = format_counted(numbers.span, "different value");
            let what =
                format!("the field {path} has {values}, and the table {}", format_counted(rows, "row"));
            Some((what, "widen min and max, or leave unique out".to_owned()))
        }
        ValueSpec::Distinct(strings) => {
            let of = if matches!(field.nulls, Nulls::Never) { "rows" } else { "rows, null ones included," };
            too_few_strings(strings, rows, path, of)
        }
        ValueSpec::Reference(reference) => match &reference.key {
            ReferencedKey::Distinct(strings) => {
                let of = format!("keys of {} to which {path} refers", reference.to);
                too_few_strings(strings, reference.keys, "", &of)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The complaint about a pattern with fewer strings than `rows` rows need, which the message calls `of`.
fn too_few_strings(strings: &DistinctStrings, rows: u64, path: &str, of: &str) -> Option<Complaint> {
    let few = strings.too_few_for(rows)?;
    let field = if path.is_empty() { String::new() } else { format!(" of the field {path}") };
    let what = format!(
        "the pattern {:?}{field} matches {}, and {} of {} {of} need one",
        few.pattern,
        format_counted(few.strings, "different text"),
        format_grouped(few.rows),
        format_grouped(rows),
    );
    let most = format_grouped(strings.least_rows());
    Some((what, format!("lengthen the pattern, lower its count, or make at most {most} rows")))
}
