//! Values that are read again within their block: operands of expressions, keys of a map.

use std::collections::HashMap;
use std::ops::Range;

use crate::draw::expression::{Numbers, Operand, OperandRow, Values};
use crate::draw::value_spec::ValueSpec;
use crate::shred::value_buffer::{ByteStrings, ValueBuffer};
use crate::spec::dataset::Leaf;
use crate::types::literal::big_endian;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, stored_number};

/// The values of one leaf in one block.
#[derive(Debug, Default)]
pub(crate) struct OperandValues {
    values: Values,
    /// The rows of another table that the values are keys of, if the buffer has them.
    rows: Values,
    /// The last value of the block before.
    pub before: Values,
    /// Where the entries and the values of the block begin in the buffer of the leaf.
    pub from: (usize, usize),
    /// For each entry, the position of its value, or [`NULL`]. Empty if all entries have one.
    places: Vec<u32>,
}

/// The place of an entry without a value.
const NULL: u32 = u32::MAX;

impl OperandValues {
    /// Copies the values of a leaf from where the block begins. Its entries have the levels `definition`; an entry is a
    /// value if its level is `level`. If the leaf has no levels, all entries are values.
    pub(crate) fn fill(&mut self, leaf: &Leaf, buffer: &ValueBuffer, definition: &[u8], level: u8) {
        self.before = self.last();
        self.values = values(leaf, buffer, self.from.1);
        self.rows = rows(buffer, self.from.1).unwrap_or_default();
        self.places.clear();
        if definition.iter().any(|d| *d != level) {
            let mut next = 0;
            self.places.extend(definition.iter().map(|d| {
                let is_value = *d == level;
                next += u32::from(is_value);
                if is_value { next - 1 } else { NULL }
            }));
        }
    }

    pub(crate) fn last(&self) -> Values {
        self.values.len().checked_sub(1).map_or_else(Values::default, |last| self.values.at(&[last as u32]))
    }

    fn read_by(&self, operand: &Operand) -> &Values {
        if operand.row == OperandRow::Referred { &self.rows } else { &self.values }
    }

    /// The position of the value of `entry`.
    fn place(&self, entry: u32) -> u32 {
        match self.places.as_slice() {
            [] => entry,
            places => places.get(entry as usize).copied().unwrap_or(NULL),
        }
    }
}

/// The values of a buffer from `first` up, as operands.
pub(crate) fn values(leaf: &Leaf, buffer: &ValueBuffer, first: usize) -> Values {
    match leaf.kind.is_text() {
        true => Values::Texts(texts(leaf, buffer, first)),
        false => {
            rows(buffer, first).unwrap_or_else(|| Values::Numbers(numbers(leaf, buffer, first..buffer.len())))
        }
    }
}

/// The rows of another table that a buffer has, from `first` up.
fn rows(buffer: &ValueBuffer, first: usize) -> Option<Values> {
    let ValueBuffer::Rows { rows, .. } = buffer else { return None };
    Some(Values::Numbers(Numbers::wholes(rows[first..].iter().map(|row| i128::from(*row)))))
}

/// The strings of a buffer, from `first` up.
fn texts(leaf: &Leaf, buffer: &ValueBuffer, first: usize) -> ByteStrings {
    let mut own = ValueBuffer::new(leaf);
    own.extend_from(buffer, first..buffer.len());
    match own.plain(leaf).into_owned() {
        ValueBuffer::Bytes(strings) => strings,
        // Texts are stored as byte strings.
        _ => ByteStrings::default(),
    }
}

/// The values `wanted` of a buffer as numbers, with decimals scaled.
pub(crate) fn numbers(leaf: &Leaf, buffer: &ValueBuffer, wanted: Range<usize>) -> Numbers {
    let kind = &leaf.kind;
    let unsigned = matches!(kind, LogicalType::Integer { signed: false, .. });
    let is_scaled = matches!(kind, LogicalType::Decimal { scale, .. } if *scale != 0);
    match buffer {
        ValueBuffer::Int32(v) if is_scaled => Numbers::Real(divided(&v[wanted], kind.one())),
        ValueBuffer::Int64(v) if is_scaled => Numbers::Real(divided(&v[wanted], kind.one())),
        ValueBuffer::Int32(v) if unsigned => {
            Numbers::Whole(v[wanted].iter().map(|n| i64::from(*n as u32)).collect())
        }
        ValueBuffer::Int64(v) if unsigned => Numbers::wholes(v[wanted].iter().map(|n| i128::from(*n as u64))),
        ValueBuffer::Int32(v) => Numbers::Whole(v[wanted].iter().map(|n| i64::from(*n)).collect()),
        ValueBuffer::Int64(v) => Numbers::Whole(v[wanted].to_vec()),
        ValueBuffer::Float(v) => Numbers::Real(v[wanted].iter().map(|v| f64::from(*v)).collect()),
        ValueBuffer::Double(v) => Numbers::Real(v[wanted].to_vec()),
        ValueBuffer::Fixed { width, data } => {
            Numbers::Any(wanted.map(|i| number(kind, &data[i * width..(i + 1) * width])).collect())
        }
        ValueBuffer::Indices(v) => {
            let entries = leaf.dictionary();
            let entry = |i: &u32| number(kind, entries.get(*i as usize).map_or(&[], Vec::as_slice));
            Numbers::Any(v[wanted].iter().map(entry).collect())
        }
        ValueBuffer::Booleans(v) => Numbers::Whole(v[wanted].iter().map(|v| i64::from(*v)).collect()),
        _ => Numbers::default(),
    }
    .narrowed()
}

/// A stored value as a number. Other types cannot be operands.
fn number(kind: &LogicalType, bytes: &[u8]) -> Number {
    stored_number(kind, bytes).unwrap_or(Number::Whole(0))
}

/// Decimals with their scale applied.
fn divided<T: Copy + Into<i64>>(values: &[T], one: i128) -> Vec<f64> {
    let one = one as f64;
    values.iter().map(|n| (*n).into() as f64 / one).collect()
}

/// Finds the `wanted` operands for each present entry, and returns the number of these entries. An
/// entry with a null operand becomes null. `scope` has the repetition levels of the entries, the definition
/// level of present ones, and the repetition level of their list.
pub(crate) fn operands(
    wanted: &[Operand],
    operand_values: &[OperandValues],
    (repetition, level, list_level): (&[u8], u8, u8),
    definition: &mut [u8],
    out: &mut Vec<Values>,
) -> usize {
    let values: Vec<&OperandValues> = wanted.iter().map(|o| &operand_values[o.leaf]).collect();
    let same_entries = wanted.iter().all(|operand| operand.repetition >= list_level);
    let without_nulls = values.iter().all(|values| values.places.is_empty());
    if same_entries && without_nulls && definition.iter().all(|d| *d == level) {
        out.extend(wanted.iter().zip(&values).map(|(operand, values)| values.read_by(operand).clone()));
        return repetition.len();
    }
    // For each operand, its entry that belongs to the current entry.
    let mut at: Vec<u32> = vec![0; values.len()];
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); values.len()];
    let mut there = 0;
    for (i, level_here) in repetition.iter().enumerate() {
        if i > 0 {
            for (at, operand) in at.iter_mut().zip(wanted) {
                // A new entry of the operand begins unless a list deeper than its own repeats.
                *at += u32::from(*level_here <= operand.repetition);
            }
        }
        if definition.get(i).is_some_and(|d| *d != level) {
            continue;
        }
        if at.iter().zip(&values).any(|(at, values)| values.place(*at) == NULL) {
            // Only optional fields can have null operands, so there is a level to lower.
            if let Some(definition) = definition.get_mut(i) {
                *definition = definition.saturating_sub(1);
            }
            continue;
        }
        there += 1;
        for ((places, at), values) in places.iter_mut().zip(&at).zip(&values) {
            places.push(values.place(*at));
        }
    }
    let found = wanted.iter().zip(&values).zip(&places);
    out.extend(found.map(|((operand, values), places)| values.read_by(operand).at(places)));
    there
}

/// Makes the keys of each map distinct: a repeated key becomes the next unused one, in the order of the
/// values. Keys that are not drawn from a list or a range stay unchanged.
pub(crate) fn distinguish(
    leaf: &Leaf,
    buffer: &mut ValueBuffer,
    first: usize,
    (definition, repetition): (&[u8], &[u8]),
    (level, list_level): (u8, u8),
) {
    let (low, different): (i64, u64) = match &leaf.values {
        ValueSpec::Choice { table, .. } => (0, table.probabilities().len() as u64),
        ValueSpec::Boolean(_) => (0, 2),
        ValueSpec::Zipf(ranks) if leaf.kind.is_whole() && leaf.kind.one() == 1 => (1, ranks.count()),
        ValueSpec::Integers { min, span } if *span > 0 => (*min, *span),
        _ => return,
    };
    // Offsets from the smallest value; for 64-bit numbers they wrap like the stored numbers.
    let mut used = UsedKeys::new(different);
    let mut next = first;
    for (definition, repetition) in definition.iter().zip(repetition) {
        if *repetition != list_level {
            used.clear();
        }
        if *definition != level {
            continue;
        }
        let value = match buffer {
            ValueBuffer::Indices(v) => i64::from(v[next]),
            ValueBuffer::Booleans(v) => i64::from(v[next]),
            ValueBuffer::Int32(v) if low >= 0 => i64::from(v[next] as u32),
            ValueBuffer::Int32(v) => i64::from(v[next]),
            ValueBuffer::Int64(v) => v[next],
            ValueBuffer::Fixed { width, data } => {
                let mut wide = [0; 16];
                let n = (*width).min(16);
                wide[16 - n..].copy_from_slice(&data[next * *width + *width - n..(next + 1) * *width]);
                i128::from_be_bytes(wide) as i64
            }
            _ => return,
        };
        let offset = used.take(value.wrapping_sub(low) as u64);
        let value = low.wrapping_add(offset as i64);
        match buffer {
            ValueBuffer::Indices(v) => v[next] = value as u32,
            ValueBuffer::Booleans(v) => v[next] = value as u8,
            ValueBuffer::Int32(v) => v[next] = value as i32,
            ValueBuffer::Int64(v) => v[next] = value,
            ValueBuffer::Fixed { width, data } => {
                big_endian(value.into(), &mut data[next * *width..(next + 1) * *width]);
            }
            _ => return,
        }
        next += 1;
    }
}

/// Below this many keys a map is searched from its first key.
const FEW_KEYS: usize = 16;

/// The keys that a map has.
struct UsedKeys {
    different: u64,
    /// The keys, in their order.
    used: Vec<u64>,
    /// From [`FEW_KEYS`] on: for each used key, the first key after it that may be unused. Following a path shortens it.
    next: HashMap<u64, u64>,
}

impl UsedKeys {
    fn new(different: u64) -> Self {
        UsedKeys { different, used: Vec::new(), next: HashMap::new() }
    }

    fn clear(&mut self) {
        self.used.clear();
        self.next.clear();
    }

    /// The key itself or, if the map has it, the next one that it does not have.
    fn take(&mut self, key: u64) -> u64 {
        let different = self.different;
        let after = |key: u64| (key + 1) % different;
        let mut free = key;
        if self.used.len() < FEW_KEYS {
            while self.used.contains(&free) {
                free = after(free);
            }
            self.used.push(free);
            return free;
        }
        if self.used.len() == FEW_KEYS {
            self.next.extend(self.used.iter().map(|key| (*key, after(*key))));
        }
        while let Some(next) = self.next.get(&free) {
            free = *next;
        }
        self.used.push(free);
        // All keys on the way lead to the one after it.
        let (next, mut at) = (after(free), key);
        while let Some(known) = self.next.insert(at, next) {
            at = known;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_of_a_map_are_made_different_like_few() {
        for different in [20u64, 1000, 4096, 65_537] {
            let mut used = UsedKeys::new(different);
            for round in 0..3u64 {
                used.clear();
                let mut slow: Vec<u64> = Vec::new();
                for i in 0..different.min(4096) {
                    let key = (i * i * 7919 + round) % different;
                    let mut free = key;
                    while slow.contains(&free) {
                        free = (free + 1) % different;
                    }
                    slow.push(free);
                    assert_eq!(used.take(key), free);
                }
            }
        }
    }
}
