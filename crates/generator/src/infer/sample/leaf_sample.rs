//! The sampled values of one leaf.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use crate::infer::sample::numbered::{Values, runs};
use crate::infer::values::texts::TextSample;

/// Evaluates an expression with the array of its type, if its values are whole numbers of up to 128 bits.
macro_rules! of_whole {
    ($array:expr, |$values:ident| $what:expr) => {{
        use arrow_array::types::*;
        macro_rules! of {
            ($type:ty) => {{
                let $values = $array.as_primitive::<$type>();
                $what
            }};
        }
        match $array.data_type() {
            DataType::Int8 => of!(Int8Type),
            DataType::Int16 => of!(Int16Type),
            DataType::Int32 => of!(Int32Type),
            DataType::Int64 => of!(Int64Type),
            DataType::UInt8 => of!(UInt8Type),
            DataType::UInt16 => of!(UInt16Type),
            DataType::UInt32 => of!(UInt32Type),
            DataType::UInt64 => of!(UInt64Type),
            DataType::Decimal128(..) => of!(Decimal128Type),
            DataType::Date32 => of!(Date32Type),
            DataType::Time32(_) => of!(Time32MillisecondType),
            DataType::Time64(TimeUnit::Microsecond) => of!(Time64MicrosecondType),
            DataType::Time64(_) => of!(Time64NanosecondType),
            DataType::Duration(TimeUnit::Millisecond) => of!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => of!(DurationMicrosecondType),
            DataType::Duration(_) => of!(DurationNanosecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => of!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => of!(TimestampMicrosecondType),
            DataType::Timestamp(..) => of!(TimestampNanosecondType),
            _ => {}
        }
    }};
}

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
            LeafSample::Whole(out) => {
                of_whole!(array, |values| out.extend(indices().map(|i| i128::from(values.value(i)) as i64)));
            }
            LeafSample::Wide(out) => each_whole(array, &mut |value| {
                for value in indices().map(value) {
                    match value {
                        Some(value) => out.push(value),
                        None => unfit += 1,
                    }
                }
            }),
            LeafSample::Real(out) => match array.data_type() {
                DataType::Float16 => {
                    let array = array.as_primitive::<arrow_array::types::Float16Type>();
                    out.extend(indices().map(|i| array.value(i).to_f64() + 0.0));
                }
                DataType::Float32 => {
                    let array = array.as_primitive::<arrow_array::types::Float32Type>();
                    out.extend(indices().map(|i| f64::from(array.value(i)) + 0.0));
                }
                _ => {
                    let array = array.as_primitive::<arrow_array::types::Float64Type>();
                    // Negative zero becomes zero.
                    out.extend(indices().map(|i| array.value(i) + 0.0));
                }
            },
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
}

impl LeafSample {
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

/// The bytes of a sample.
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
    if let Some(values) = array.as_primitive_opt::<arrow_array::types::Decimal256Type>() {
        return with(&|i| values.value(i).to_i128());
    }
    of_whole!(array, |values| with(&|i| Some(values.value(i).into())));
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
