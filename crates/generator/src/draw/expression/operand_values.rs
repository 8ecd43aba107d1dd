//! The values of an expression's operands: numbers or strings, one for each value of the block.

use super::Numbers;
use crate::shred::value_buffer::ByteStrings;
use crate::types::number::Number;

/// The values of one operand. Booleans are the numbers 0 and 1.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Numbers(Numbers),
    Texts(ByteStrings),
}

impl Default for Values {
    fn default() -> Self {
        Values::Numbers(Numbers::default())
    }
}

impl Values {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Numbers(Numbers::Whole(values)) => values.len(),
            Values::Numbers(Numbers::Real(values)) => values.len(),
            Values::Numbers(Numbers::Any(values)) => values.len(),
            Values::Texts(texts) => texts.ends.len(),
        }
    }

    pub(crate) fn at(&self, places: &[u32]) -> Self {
        match self {
            Values::Numbers(numbers) => Values::Numbers(numbers.at(places)),
            Values::Texts(texts) => {
                let mut picked = ByteStrings::default();
                for place in places {
                    picked.data.extend_from_slice(texts.get(*place as usize));
                    picked.push_end();
                }
                Values::Texts(picked)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    /// The values of each operand.
    pub fields: &'a [Values],
    /// Which of them.
    pub at: usize,
}

impl<'a> Row<'a> {
    pub(super) fn number(self, field: usize) -> Number {
        match self.fields.get(field) {
            Some(Values::Numbers(numbers)) => numbers.get(self.at),
            _ => None,
        }
        .unwrap_or(Number::Whole(0))
    }

    pub(super) fn text(self, field: usize) -> &'a [u8] {
        match self.fields.get(field) {
            Some(Values::Texts(texts)) => texts.get(self.at),
            _ => &[],
        }
    }
}
