//! The values of a column that formulas compute with.

use crate::types::number::Number;

/// Numbers, one for each value.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    /// Whole numbers of more than 64 bits among them.
    Any(Vec<Number>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Whole(Vec::new())
    }
}

impl Numbers {
    /// Whole numbers; in 64 bits if they fit.
    pub(crate) fn wholes(values: impl Iterator<Item = i128> + Clone) -> Self {
        let narrow: Result<Vec<i64>, _> = values.clone().map(i64::try_from).collect();
        narrow.map_or_else(|_| Numbers::Any(values.map(Number::Whole).collect()), Numbers::Whole)
    }

    /// The same numbers, as plain ones if they are of one kind.
    pub(crate) fn narrowed(self) -> Self {
        let Numbers::Any(values) = self else { return self };
        let real = |value: &Number| if let Number::Real(v) = value { Some(*v) } else { None };
        if let Some(reals) = values.iter().map(real).collect() {
            return Numbers::Real(reals);
        }
        let whole = |value: &Number| if let Number::Whole(n) = value { i64::try_from(*n).ok() } else { None };
        values.iter().map(whole).collect::<Option<_>>().map_or(Numbers::Any(values), Numbers::Whole)
    }

    pub(crate) fn get(&self, i: usize) -> Option<Number> {
        match self {
            Numbers::Whole(values) => values.get(i).map(|n| Number::Whole((*n).into())),
            Numbers::Real(values) => values.get(i).copied().map(Number::Real),
            Numbers::Any(values) => values.get(i).copied(),
        }
    }

    pub(crate) fn at(&self, places: &[u32]) -> Self {
        fn pick<T: Copy>(values: &[T], places: &[u32]) -> Vec<T> {
            places.iter().filter_map(|place| values.get(*place as usize).copied()).collect()
        }
        match self {
            Numbers::Whole(values) => Numbers::Whole(pick(values, places)),
            Numbers::Real(values) => Numbers::Real(pick(values, places)),
            Numbers::Any(values) => Numbers::Any(pick(values, places)),
        }
    }
}
