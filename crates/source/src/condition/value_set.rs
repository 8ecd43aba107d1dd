//! The set of values for which a comparison is true, as the boundaries between values in the set and others.
//!
//! The complement of a set costs nothing, and comparing a set with the values between two bounds does not
//! have to enumerate them.

use std::borrow::Borrow;

/// Values that have a successor, with nothing in between.
pub(super) trait Next: Ord + Sized {
    /// Returns the next value; `None` after the last.
    fn next(&self) -> Option<Self>;
}

impl Next for i128 {
    fn next(&self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Next for Vec<u8> {
    /// Returns the same bytes followed by a zero.
    fn next(&self) -> Option<Self> {
        let mut next = Vec::with_capacity(self.len() + 1);
        next.extend_from_slice(self);
        next.push(0);
        Some(next)
    }
}

/// A set of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueSet<T> {
    /// Whether the lowest values are in the set.
    pub low: bool,
    /// The values at which membership flips, in ascending order.
    pub cuts: Vec<T>,
}

impl<T: Next> ValueSet<T> {
    pub fn less_than(value: T) -> Self {
        Self { low: true, cuts: vec![value] }
    }

    pub fn at_most(value: &T) -> Self {
        Self { low: true, cuts: value.next().into_iter().collect() }
    }

    /// Returns the set of exactly these values.
    pub fn new(mut values: Vec<T>) -> Self {
        values.sort_unstable();
        values.dedup();
        let mut cuts: Vec<T> = Vec::with_capacity(2 * values.len());
        for value in values {
            let next = value.next();
            if cuts.last() == Some(&value) {
                cuts.pop();
            } else {
                cuts.push(value);
            }
            cuts.extend(next);
        }
        Self { low: false, cuts }
    }

    /// Returns the set of all other values.
    pub fn complement(mut self) -> Self {
        self.low = !self.low;
        self
    }

    /// Whether any value from `low` to `high`, both included, is in the set.
    pub fn any<Q: Ord + ?Sized>(&self, low: &Q, high: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.contains(low) || self.cuts_between(low, high)
    }

    /// Whether all values from `low` to `high`, both included, are in the set.
    pub fn all<Q: Ord + ?Sized>(&self, low: &Q, high: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.contains(low) && !self.cuts_between(low, high)
    }

    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let passed = self.cuts.partition_point(|cut| cut.borrow() <= value);
        self.low != (passed % 2 == 1)
    }

    fn cuts_between<Q: Ord + ?Sized>(&self, low: &Q, high: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let passed = |value: &Q| self.cuts.partition_point(|cut| cut.borrow() <= value);
        passed(low) < passed(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_contain_exactly_their_values() {
        let members =
            |set: &ValueSet<i128>| (0..8).filter(|value| set.contains(value)).collect::<Vec<i128>>();
        assert_eq!(members(&ValueSet::less_than(2)), [0, 1]);
        assert_eq!(members(&ValueSet::at_most(&2)), [0, 1, 2]);
        assert_eq!(members(&ValueSet::at_most(&2).complement()), [3, 4, 5, 6, 7]);
        let some = ValueSet::new(vec![5, 2, 3, 5]);
        assert_eq!(members(&some), [2, 3, 5]);
        assert_eq!(some.cuts, [2, 4, 5, 6]);
        assert!(some.any(&0, &2) && !some.any(&0, &1) && some.all(&2, &3) && !some.all(&2, &4));
        assert!(some.any(&4, &9) && !some.any(&6, &9));
        assert!(ValueSet::new(vec![i128::MAX]).contains(&i128::MAX));
        let text = ValueSet::new(vec![b"b".to_vec()]);
        assert!(text.contains(b"b".as_slice()) && !text.contains(b"ba".as_slice()));
    }
}
