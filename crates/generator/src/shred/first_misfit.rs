//! The first value of a block of rows that its column cannot hold: an error where the row was requested.

use std::ops::Range;

use crate::draw::misfit::Misfit;
use crate::error::Error;
use crate::spec::dataset::{Field, Leaf};

/// The first value that does not fit, among the requested values.
pub(crate) struct FirstMisfit {
    wanted: Range<usize>,
    pub found: Option<(usize, Misfit)>,
}

impl FirstMisfit {
    /// `wanted` are the requested values among those drawn together.
    pub(crate) fn among(wanted: Range<usize>) -> Self {
        FirstMisfit { wanted, found: None }
    }

    /// Value `i`, or a default if it does not fit.
    #[inline(always)]
    pub(crate) fn or_stand_in<T: Default>(&mut self, i: usize, value: Result<T, Misfit>) -> T {
        value.unwrap_or_else(|misfit| {
            if self.found.is_none() && self.wanted.contains(&i) {
                self.found = Some((i, misfit));
            }
            T::default()
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MisfitAt {
    /// The row, numbered over the whole dataset.
    pub row: u64,
    /// The position of the column.
    pub leaf: usize,
    pub misfit: Misfit,
}

impl MisfitAt {
    pub(crate) fn error(&self, field: &Field, leaf: &Leaf) -> Error {
        let place = format!("field {}, row {}", field.path, self.row);
        Error::spec(self.misfit.described(&leaf.kind), place, self.misfit.advice(&leaf.values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_misfit_of_a_requested_row_is_kept() {
        let mut misfits = FirstMisfit::among(2..5);
        for i in 0..8 {
            let value = if i == 3 { Ok(7) } else { Err(Misfit::Undefined("ln", i as f64)) };
            assert_eq!(misfits.or_stand_in(i, value), if i == 3 { 7 } else { 0 });
        }
        assert_eq!(misfits.found, Some((2, Misfit::Undefined("ln", 2.0))));
    }
}
