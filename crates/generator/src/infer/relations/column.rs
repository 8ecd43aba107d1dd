//! The sampled columns of a record, row by row.

use std::borrow::Cow;

use arrow_schema::DataType;

use crate::infer::sample::leaf_sample::LeafSample;

/// A sampled field of the record.
pub(crate) struct Column<'a> {
    pub name: &'a str,
    pub nullable: bool,
    /// Whether each row has a value.
    pub there: &'a [bool],
    /// The type and the values, if it is a leaf.
    pub leaf: Option<(&'a DataType, &'a LeafSample)>,
}

impl Column<'_> {
    /// Its values as finite numbers, if there are any.
    pub(crate) fn numbers(&self) -> Numbers<'_> {
        let all_finite = |numbers: &[f64]| numbers.iter().all(|v| v.is_finite());
        self.values().filter(|numbers| all_finite(numbers))
    }

    /// Its numbers row by row; NaN where it has none.
    pub(crate) fn numbers_by_row(&self) -> Numbers<'_> {
        let numbers = self.values()?;
        if numbers.len() == self.there.len() {
            return Some(numbers);
        }
        let mut numbers = numbers.iter().copied();
        let mut of_row = |there: &bool| there.then(|| numbers.next()).flatten().unwrap_or(f64::NAN);
        Some(Cow::Owned(self.there.iter().map(&mut of_row).collect()))
    }

    fn values(&self) -> Numbers<'_> {
        match self.leaf?.1 {
            LeafSample::Whole(values) => Some(Cow::Owned(values.iter().map(|v| *v as f64).collect())),
            LeafSample::Real(values) => Some(Cow::Borrowed(values)),
            _ => None,
        }
    }

    /// How a formula names it: in backquotes, if it is more than a word.
    pub(crate) fn formula_name(&self) -> Option<String> {
        const WORDS: [&str; 7] = [REST, "and", "or", "not", "in", "true", "false"];
        let mut chars = self.name.chars();
        let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let is_word = starts && chars.all(|c| c.is_alphanumeric() || c == '_');
        if is_word && !WORDS.contains(&self.name) {
            return Some(self.name.to_owned());
        }
        (!self.name.contains('`')).then(|| format!("`{}`", self.name))
    }

    /// Whether its values can be computed from the values of `other`, an earlier column.
    pub(crate) fn can_use(&self, other: &Column<'_>) -> bool {
        let kinds = (self.leaf.map(|leaf| leaf.0), other.leaf.map(|leaf| leaf.0));
        kinds.0 == kinds.1
            && (self.nullable || !other.nullable)
            && self.there == other.there
            && other.formula_name().is_some()
    }
}

/// The numbers of a column, if it has some.
pub(crate) type Numbers<'a> = Option<Cow<'a, [f64]>>;

/// The name of the drawn part of a formula.
pub(crate) const REST: &str = "rest";
