//! The sampled values of one leaf.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

use crate::infer::sample::numbered::{Values, runs};
use crate::infer::sample::text_sample::TextSample;

/// The values of a leaf in a sample, without nulls, in their order.
#[derive(Debug)]
pub(crate) enum LeafSample {
    Boolean {
        trues: u64,
        falses: u64,
    },
    /// Whole numbers, unscaled decimals, and dates and times in their unit.
    Whole(Values<i64>),
    /// The same with more than 64 bits.
    Wide(Vec<i128>),
    Real(Values<f64>),
    Text(Box<TextSample>),
    Bytes(Box<BytesSample>),
}

impl LeafSample {
    /// Without values yet; `kind` is a type of [`crate::infer::sample::inferred_field::leaf_kind`].
    pub(crate) fn new(kind: &DataType) -> Self {
        match kind {
            DataType::Boolean => LeafSample::Boolean { trues: 0, falses: 0 },
            DataType::Float16 | DataType::Float32 | DataType::Float64 => LeafSample::Real(Values::default()),
            DataType::Utf8 => LeafSample::Text(Box::default()),
            DataType::Binary | DataType::FixedSizeBinary(_) => LeafSample::Bytes(Box::default()),
            DataType::UInt64 | DataType::Decimal256(..) => LeafSample::Wide(Vec::new()),
            DataType::Decimal128(precision, _) if *precision > 18 => LeafSample::Wide(Vec::new()),
            _ => LeafSample::Whole(Values::default()),
        }
    }

    /// Adds the values of `array` whose `there` is true. Returns how many have more than 128 bits.
    pub(crate) fn add(&mut self, array: &ArrayRef, there: &[bool]) -> u64 {
        let mut unfit = 0;
        let indices = || (0..array.len()).filter(|i| there[*i]);
        match self {
            LeafSample::Boolean { trues, falses } => {
                let array = array.as_boolean();
                for i in indices() {
                    *if array.value(i) { &mut *trues } else { &mut *falses } += 1;
                }
            }
            LeafSample::Whole(out) => each_whole(array, &mut |value| {
                out.extend(indices().filter_map(value).map(|value| value as i64));
            }),
            LeafSample::Wide(out) => each_whole(array, &mut |value| {
                for value in indices().map(value) {
                    match value {
                        Some(value) => out.push(value),
                        None => unfit += 1,
                    }
                }
            }),
            LeafSample::Real(out) => {
                let numbers = reals(array);
                // Negative zero becomes zero.
                out.extend(numbers.iter().flat_map(|numbers| indices().map(move |i| numbers.value(i) + 0.0)));
            }
            LeafSample::Text(texts) => {
                let array = array.as_string::<i32>();
                indices().for_each(|i| texts.add(array.value(i)));
            }
            LeafSample::Bytes(sample) => match array.as_binary_opt::<i32>() {
                Some(array) => indices().for_each(|i| sample.add(array.value(i))),
                None => {
                    let fixed = array.as_fixed_size_binary_opt();
                    fixed.into_iter().for_each(|array| indices().for_each(|i| sample.add(array.value(i))));
                }
            },
        }
        unfit
    }

    /// The number of distinct values; `None` if they were too many to count.
    pub(crate) fn distinct(&self) -> Option<usize> {
        match self {
            LeafSample::Boolean { trues, falses } => {
                Some([trues, falses].iter().filter(|n| ***n > 0).count())
            }
            LeafSample::Whole(_) | LeafSample::Wide(_) => Some(whole_runs(self).len()),
            LeafSample::Real(values) => {
                let (runs, others) = real_runs(values);
                Some(runs.len() + others.len())
            }
            LeafSample::Text(texts) => texts.distinct(),
            LeafSample::Bytes(sample) => (!sample.too_many).then_some(sample.values.len()),
        }
    }
}

/// The most distinct bytes to count.
const MAX_DISTINCT: usize = 10_000;

/// The longest bytes that are listed.
const MAX_LENGTH: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct BytesSample {
    pub n: u64,
    /// How often each length occurs.
    pub lengths: BTreeMap<u32, u64>,
    /// How often each value occurs; not those that are long, or come after many others.
    pub values: BTreeMap<Vec<u8>, u64>,
    /// Whether there are such others.
    pub too_many: bool,
}

impl BytesSample {
    fn add(&mut self, bytes: &[u8]) {
        self.n += 1;
        *self.lengths.entry(bytes.len() as u32).or_default() += 1;
        let has_room = self.values.len() < MAX_DISTINCT && bytes.len() <= MAX_LENGTH;
        match self.values.get_mut(bytes) {
            Some(n) => *n += 1,
            None if has_room => {
                self.values.insert(bytes.to_vec(), 1);
            }
            None => self.too_many = true,
        }
    }
}

/// The whole number at an index of an array; `None` if it has more than 128 bits.
pub(crate) type WholeAt<'a> = dyn Fn(usize) -> Option<i128> + 'a;

/// Calls `with` once, with the function from an index of `array` to its whole number.
pub(crate) fn each_whole(array: &ArrayRef, with: &mut dyn FnMut(&WholeAt<'_>)) {
    if let Some(values) = array.as_primitive_opt::<Decimal256Type>() {
        with(&|i| values.value(i).to_i128());
    } else if let Some(values) = array.as_primitive_opt::<Decimal128Type>() {
        with(&|i| Some(values.value(i)));
    } else if let Some(values) = array.as_primitive_opt::<UInt64Type>() {
        with(&|i| Some(values.value(i).into()));
    } else if let Ok(values) = arrow_cast::cast(array, &DataType::Int64) {
        // Dates, times and durations become the numbers of their units.
        let values = values.as_primitive::<Int64Type>();
        with(&|i| Some(values.value(i).into()));
    }
}

/// The real numbers of an array in double precision.
pub(crate) fn reals(array: &ArrayRef) -> Option<PrimitiveArray<Float64Type>> {
    arrow_cast::cast(array, &DataType::Float64).ok()?.as_primitive_opt().cloned()
}

/// The whole numbers of a sample, counted from the least to the greatest.
pub(crate) fn whole_runs(sample: &LeafSample) -> Vec<(i128, u64)> {
    match sample {
        LeafSample::Whole(values) => {
            // Values of a narrow range are counted faster than sorted.
            let narrow = if values.numbered().is_none() { counted(values) } else { None };
            let runs = narrow.unwrap_or_else(|| values.runs(|_| true));
            runs.into_iter().map(|(v, n)| (v.into(), n)).collect()
        }
        LeafSample::Wide(values) => {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            runs(&sorted)
        }
        _ => Vec::new(),
    }
}

/// The counts of values of a narrow range.
fn counted(values: &[i64]) -> Option<Vec<(i64, u64)>> {
    let (low, high) = (*values.iter().min()?, *values.iter().max()?);
    let span = usize::try_from(high.checked_sub(low)?).ok().filter(|span| *span < 1 << 20)?;
    let mut counts = vec![0u64; span + 1];
    values.iter().for_each(|v| counts[(v - low) as usize] += 1);
    Some((low..=high).zip(counts).filter(|(_, n)| *n > 0).collect())
}

/// The finite real numbers of a sample, counted from the least to the greatest, and the others.
pub(crate) fn real_runs(values: &Values<f64>) -> (Vec<(f64, u64)>, HashMap<&'static str, u64>) {
    let mut others = HashMap::new();
    for value in values.iter().filter(|v| !v.is_finite()) {
        let name = if value.is_nan() {
            "nan"
        } else if *value > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        *others.entry(name).or_default() += 1;
    }
    (values.runs(f64::is_finite), others)
}
