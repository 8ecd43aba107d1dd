//! Values that are read again within their block: operands of expressions, keys of a map.

use crate::draw::expression::Expression;
use crate::draw::value_spec::ValueSpec;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::Leaf;
use crate::types::literal::big_endian;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, scaled, stored_number};

/// The values of one leaf in one block, entry by entry.
#[derive(Debug, Default)]
pub(crate) struct OperandValues {
    values: Vec<Option<Number>>,
}

impl OperandValues {
    /// Copies the values from `first` up of a leaf. Its entries have the levels `definition`; an entry is a
    /// value if its level is `level`. If the leaf has no levels, all `entries` are values.
    pub(crate) fn fill(
        &mut self,
        leaf: &Leaf,
        buffer: &ValueBuffer,
        first: usize,
        definition: &[u8],
        level: u8,
        entries: usize,
    ) {
        self.values.clear();
        let mut next = first;
        let mut value = || {
            next += 1;
            number(leaf, buffer, next - 1)
        };
        if definition.is_empty() {
            self.values.extend(std::iter::repeat_with(&mut value).take(entries));
        } else {
            self.values.extend(definition.iter().map(|d| if *d == level { value() } else { None }));
        }
    }
}

/// Value `i` of a buffer as a number, with decimals scaled.
pub(crate) fn number(leaf: &Leaf, buffer: &ValueBuffer, i: usize) -> Option<Number> {
    let unsigned = matches!(leaf.kind, LogicalType::Integer { signed: false, .. });
    let whole = match buffer {
        ValueBuffer::Int32(v) if unsigned => i128::from(v[i] as u32),
        ValueBuffer::Int64(v) if unsigned => i128::from(v[i] as u64),
        ValueBuffer::Int32(v) => v[i].into(),
        ValueBuffer::Int64(v) => v[i].into(),
        ValueBuffer::Float(v) => return Some(Number::Real(v[i].into())),
        ValueBuffer::Double(v) => return Some(Number::Real(v[i])),
        ValueBuffer::Fixed { width, data } => {
            return stored_number(&leaf.kind, &data[i * width..(i + 1) * width]);
        }
        ValueBuffer::Indices(v) => return stored_number(&leaf.kind, leaf.dictionary().get(v[i] as usize)?),
        _ => return None,
    };
    Some(scaled(&leaf.kind, whole))
}

/// Appends the operands of an expression for each present entry, and returns the number of these entries. An
/// entry with a null operand becomes null. `scope` has the repetition levels of the entries and the
/// definition level of present ones.
pub(crate) fn operands(
    expression: &Expression,
    operand_values: &[OperandValues],
    scope: (&[u8], u8),
    definition: &mut [u8],
    out: &mut Vec<Number>,
) -> usize {
    let (repetition, level) = scope;
    // For each operand, its entry that belongs to the current entry.
    let mut at: Vec<usize> = vec![0; expression.operands.len()];
    let mut there = 0;
    for (i, level_here) in repetition.iter().enumerate() {
        if i > 0 {
            for (at, operand) in at.iter_mut().zip(&expression.operands) {
                // A new entry of the operand begins unless a list deeper than its own repeats.
                *at += usize::from(*level_here <= operand.repetition);
            }
        }
        let is_there = definition.get(i).is_none_or(|d| *d == level);
        if !is_there {
            continue;
        }
        let before = out.len();
        for (at, operand) in at.iter().zip(&expression.operands) {
            if let Some(Some(number)) = operand_values[operand.leaf].values.get(*at) {
                out.push(*number);
            }
        }
        if out.len() - before < expression.operands.len() {
            out.truncate(before);
            // Only optional fields can have null operands, so there is a level to lower.
            if let Some(definition) = definition.get_mut(i) {
                *definition = definition.saturating_sub(1);
            }
        } else {
            there += 1;
        }
    }
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
    let mut used: Vec<u64> = Vec::new();
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
        let mut offset = value.wrapping_sub(low) as u64;
        while used.contains(&offset) {
            offset = (offset + 1) % different;
        }
        used.push(offset);
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
