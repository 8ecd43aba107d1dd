//! The maximum length of the values of a leaf.

use crate::draw::text::words::Words;
use crate::draw::value_spec::ValueSpec;
use crate::spec::dataset::{Dataset, Leaf};

/// The most bytes that the values of one field may take in one record. Pages hold whole records, and their
/// size has 31 bits.
pub(crate) const MAX_RECORD_BYTES: u64 = 1 << 30;

/// The most bytes that the texts of one formula and its result may take together: 1,024 rows of them are in memory.
pub(crate) const MAX_FORMULA_BYTES: u64 = 1 << 21;

/// The bytes that values are taken to have at most which are always short: names, addresses, keys.
pub(crate) const SHORT_BYTES: u64 = 256;

/// The length in bytes of the longest value that can be drawn; `None` if values are always short.
pub(crate) fn longest(values: &ValueSpec) -> Option<u64> {
    match values {
        ValueSpec::Bytes { most, .. } => Some((*most).into()),
        ValueSpec::Words { most, .. } => Some(Words::get().longest(*most)),
        ValueSpec::Text(text) => Some(text.longest()),
        ValueSpec::Shapes(shapes) => Some(shapes.bytes()),
        ValueSpec::Localized(values) => Some(values.longest()),
        ValueSpec::Pattern(pattern) => Some(pattern.longest()),
        ValueSpec::Distinct(distinct) => Some(distinct.longest()),
        ValueSpec::Choice { dictionary, .. } => {
            dictionary.entries.iter().map(|entry| entry.len() as u64).max()
        }
        ValueSpec::Expression(expression) => expression.longest(),
        ValueSpec::OtherColumn(column) => column.longest,
        _ => None,
    }
}

impl Dataset {
    /// The path of the field with the longest values, and the length in bytes of its longest value.
    pub fn longest_value(&self) -> Option<(String, u64)> {
        let mut most: Option<(String, u64)> = None;
        self.each_column(&mut |field, leaf| {
            let length = longest(&leaf.values).unwrap_or(0);
            if length > most.as_ref().map_or(0, |(_, most)| *most) {
                most = Some((field.path.clone(), length));
            }
        });
        most
    }
}

impl Leaf {
    /// The bytes to allow for each of its values, if memory grows with the rows of a batch; else 0.
    pub(crate) fn drawn_late(&self) -> u64 {
        match &self.values {
            ValueSpec::Text(text) if self.draws_alone() => text.allowance,
            values if self.draws_alone() || matches!(values, ValueSpec::Choice { .. }) => {
                longest(values).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Whether each value depends on its draw alone and takes its full size as soon as it is drawn. The
    /// values of some rows of a block can then be drawn without the others.
    pub(crate) fn draws_alone(&self) -> bool {
        let alone = matches!(
            self.values,
            ValueSpec::Bytes { .. }
                | ValueSpec::Words { .. }
                | ValueSpec::Email
                | ValueSpec::Uuid
                | ValueSpec::Pattern(_)
                | ValueSpec::Shapes(_)
                | ValueSpec::Localized(_)
                | ValueSpec::Text(_)
        );
        alone && !self.is_operand && !self.distinct
    }
}
