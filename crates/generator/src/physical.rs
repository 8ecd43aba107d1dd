//! Drawn values as values of Parquet's physical types.
//!
//! Pages of the default options are encoded straight from codes (`column_chunk.rs`); every other
//! encoding, and whatever looks at values one by one, starts from these.

use crate::dataset::Leaf;
use crate::encoding::PhysicalValues;
use crate::person_name;
use crate::spec::TypeSpec;
use crate::values::{ValueBuffer, Values};

/// Room for values that are not kept in their physical type, used for one page after the other.
#[derive(Debug, Default)]
pub(crate) struct PhysicalBuffer {
    ints: Vec<i32>,
    longs: Vec<i64>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    offsets: Vec<u32>,
    data: Vec<u8>,
}

/// The values of `buffer`, which were drawn for `leaf`.
pub(crate) fn physical<'a>(
    leaf: &Leaf,
    buffer: &'a ValueBuffer,
    room: &'a mut PhysicalBuffer,
) -> PhysicalValues<'a> {
    match (&leaf.values, buffer) {
        (_, ValueBuffer::Booleans(v)) => PhysicalValues::Booleans(v),
        (_, ValueBuffer::Int32(v)) => PhysicalValues::Int32(v),
        (_, ValueBuffer::Int64(v)) => PhysicalValues::Int64(v),
        (_, ValueBuffer::Float(v)) => PhysicalValues::Float(v),
        (_, ValueBuffer::Double(v)) => PhysicalValues::Double(v),
        (_, ValueBuffer::Names(codes)) => room.strings(codes, |code, out| person_name::render(*code, out)),
        (Values::Unique(template), ValueBuffer::Ids(ids)) => {
            room.strings(ids, |id, out| template.render(*id, out))
        }
        (Values::Choice { dictionary, .. }, ValueBuffer::Indices(indices)) => {
            let entries = indices.iter().map(|i| dictionary.entries[*i as usize].as_slice());
            match leaf.kind {
                TypeSpec::Int32 | TypeSpec::Date => {
                    PhysicalValues::Int32(collect(&mut room.ints, entries, i32::from_le_bytes))
                }
                TypeSpec::Int64 | TypeSpec::Timestamp => {
                    PhysicalValues::Int64(collect(&mut room.longs, entries, i64::from_le_bytes))
                }
                TypeSpec::Float => {
                    PhysicalValues::Float(collect(&mut room.floats, entries, f32::from_le_bytes))
                }
                TypeSpec::Double => {
                    PhysicalValues::Double(collect(&mut room.doubles, entries, f64::from_le_bytes))
                }
                _ => room.strings(indices, |i, out| {
                    out.extend_from_slice(&dictionary.entries[*i as usize]);
                }),
            }
        }
        (values, buffer) => {
            debug_assert!(false, "{values:?} in {buffer:?}");
            PhysicalValues::Booleans(&[])
        }
    }
}

fn collect<'a, 'b, T, const N: usize>(
    out: &'a mut Vec<T>,
    entries: impl Iterator<Item = &'b [u8]>,
    number: impl Fn([u8; N]) -> T,
) -> &'a [T] {
    out.clear();
    // The entries of a dictionary have the width of its type.
    out.extend(entries.filter_map(|entry| entry.try_into().ok()).map(number));
    out
}

impl PhysicalBuffer {
    fn strings<T>(&mut self, codes: &[T], render: impl Fn(&T, &mut Vec<u8>)) -> PhysicalValues<'_> {
        self.offsets.clear();
        self.data.clear();
        self.offsets.push(0);
        for code in codes {
            render(code, &mut self.data);
            self.offsets.push(self.data.len() as u32);
        }
        PhysicalValues::Bytes { offsets: &self.offsets, data: &self.data }
    }
}

impl Leaf {
    /// Whether its values are byte arrays, of which sizes are kept.
    pub(crate) fn is_byte_array(&self) -> bool {
        self.kind == TypeSpec::String
    }
}
