//! The keys of dictionary arrays.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_buffer::ArrowNativeType;

use super::integers::Integers;
use crate::with_integers;

/// The keys of a dictionary array.
pub struct Keys<'a>(Integers<'a>);

impl<'a> Keys<'a> {
    /// Returns keys and values of a dictionary array, or `None` if `array` has another type.
    pub fn bind(array: &'a ArrayRef) -> Option<(Self, &'a ArrayRef)> {
        let dictionary = array.as_any_dictionary_opt()?;
        Some((Self(Integers::bind(dictionary.keys())?), dictionary.values()))
    }

    /// Returns the key of a row that is not NULL.
    #[inline]
    pub fn key(&self, row: usize) -> usize {
        with_integers!(&self.0, keys => keys[row].as_usize())
    }
}
