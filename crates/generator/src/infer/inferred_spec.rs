//! Infers a dataset spec from existing data: from its Arrow schema alone, or also from a sample of its rows.
//!
//! The spec is TOML to read and edit. Without a sample, every type gets simple values. With a sample, null
//! shares, list lengths and values follow the sample, see [`crate::infer::sampled_values`].

use std::collections::BTreeMap;
use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, Schema, TimeUnit};

use crate::arrow::schema::UUID_EXTENSION;
use crate::draw::lengths::MOST_ELEMENTS;
use crate::error::Error;
use crate::infer::sampled_values::{SampledValues, Value, quoted, rounded};
use crate::types::civil::date_text;
use crate::types::logical_type::is_zone;

/// A spec that is being inferred.
#[derive(Debug)]
pub struct InferredSpec {
    name: String,
    fields: Vec<Inferred>,
    sampled_rows: u64,
}

/// A field with the statistics of its sample.
#[derive(Debug)]
struct Inferred {
    name: String,
    nullable: bool,
    kind: InferredKind,
    slots: u64,
    nulls: u64,
}

#[derive(Debug)]
enum InferredKind {
    Leaf { kind: DataType, is_uuid: bool, values: Box<SampledValues> },
    Struct(Vec<Inferred>),
    List { element: Box<Inferred>, lengths: BTreeMap<u32, u64>, fixed: Option<u32> },
    Map { entries: Vec<Inferred>, lengths: BTreeMap<u32, u64> },
}

impl InferredSpec {
    /// Starts a spec for the columns of `schema`. `name` becomes the name of the dataset; characters that are
    /// not allowed are replaced.
    ///
    /// # Errors
    /// A column has a type that datasets do not support.
    pub fn new(name: &str, schema: &Schema) -> Result<Self, Error> {
        let named = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().map(named).collect();
        let name = if name.is_empty() { "data".to_owned() } else { name };
        let fields = schema.fields().iter().map(|f| inferred(f, f.name())).collect::<Result<_, _>>()?;
        Ok(InferredSpec { name, fields, sampled_rows: 0 })
    }

    /// Samples the rows of a batch, which must have the columns of the schema.
    ///
    /// # Errors
    /// The batch has other columns, or one cannot be read.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_columns() != self.fields.len() {
            let what = format!("a batch of {} columns instead of {}", batch.num_columns(), self.fields.len());
            return Err(Error::spec(what, "the sample", "sample rows of one file only"));
        }
        self.sampled_rows += batch.num_rows() as u64;
        for (field, column) in self.fields.iter_mut().zip(batch.columns()) {
            field.add(column, None)?;
        }
        Ok(())
    }

    /// The spec as TOML.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let sampled = self.sampled_rows > 0;
        if sampled {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# Inferred from {} rows.", self.sampled_rows);
        }
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        for field in &self.fields {
            let _ = write!(out, "\n[[fields]]\nname = {}\n", quoted(&field.name));
            field.write("fields", sampled, &mut out);
        }
        out
    }
}

fn inferred(field: &ArrowField, path: &str) -> Result<Inferred, Error> {
    let child = |f: &ArrowField| inferred(f, &format!("{path}.{}", f.name())).map(Box::new);
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            if fields.is_empty() {
                return Err(Error::spec("a struct without fields", path, "remove the column"));
            }
            InferredKind::Struct(fields.iter().map(|f| child(f).map(|f| *f)).collect::<Result<_, _>>()?)
        }
        DataType::List(f) | DataType::LargeList(f) | DataType::ListView(f) | DataType::LargeListView(f) => {
            InferredKind::List { element: child(f)?, lengths: BTreeMap::new(), fixed: None }
        }
        DataType::FixedSizeList(f, n) => {
            InferredKind::List { element: child(f)?, lengths: BTreeMap::new(), fixed: Some(*n as u32) }
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => InferredKind::Map {
                entries: fields.iter().map(|f| child(f).map(|f| *f)).collect::<Result<_, _>>()?,
                lengths: BTreeMap::new(),
            },
            _ => return Err(Error::spec("a map without key and value", path, "remove the column")),
        },
        kind => {
            let kind = leaf_kind(kind, path)?;
            let is_uuid =
                kind == DataType::FixedSizeBinary(16) && field.extension_type_name() == Some(UUID_EXTENSION);
            InferredKind::Leaf { kind, is_uuid, values: Box::default() }
        }
    };
    let nullable = field.is_nullable();
    Ok(Inferred { name: field.name().clone(), nullable, kind, slots: 0, nulls: 0 })
}

/// The type of the arrays to sample: the value type for dictionaries and views.
fn leaf_kind(kind: &DataType, path: &str) -> Result<DataType, Error> {
    Ok(match kind {
        DataType::Dictionary(_, values) => leaf_kind(values, path)?,
        DataType::RunEndEncoded(_, values) => leaf_kind(values.data_type(), path)?,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) if *s >= 0 => {
            DataType::Decimal128(*p, *s)
        }
        DataType::Decimal256(p, s) if *s >= 0 => DataType::Decimal256(*p, *s),
        // Parquet does not support seconds as a unit.
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::Duration(_) => DataType::Int64,
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::FixedSizeBinary(_) => kind.clone(),
        other => {
            let what = format!("a column of type {other}, which datasets do not support");
            return Err(Error::spec(what, format!("field {path}"), "remove the column"));
        }
    })
}

fn cast(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, Error> {
    if array.data_type() == kind {
        return Ok(array.clone());
    }
    arrow_cast::cast(array, kind)
        .map_err(|error| Error::spec(error.to_string(), "the sample", "remove the column"))
}

impl Inferred {
    /// Samples the slots of an array, or only those in `wanted`.
    fn add(&mut self, array: &ArrayRef, wanted: Option<&[bool]>) -> Result<(), Error> {
        let is_wanted = |i: usize| wanted.is_none_or(|w| w[i]);
        // In dictionaries, values can be null, too.
        let logical = array.logical_nulls();
        let is_null = |i: usize| logical.as_ref().is_some_and(|nulls| nulls.is_null(i));
        let there: Vec<bool> = (0..array.len()).map(|i| is_wanted(i) && !is_null(i)).collect();
        self.slots += (0..array.len()).filter(|i| is_wanted(*i)).count() as u64;
        self.nulls += (0..array.len()).filter(|i| is_wanted(*i) && is_null(*i)).count() as u64;
        match &mut self.kind {
            InferredKind::Struct(fields) => {
                for (field, column) in fields.iter_mut().zip(array.as_struct().columns()) {
                    field.add(column, Some(&there))?;
                }
            }
            InferredKind::List { element, lengths, .. } => {
                let field = match array.data_type() {
                    DataType::List(f)
                    | DataType::LargeList(f)
                    | DataType::ListView(f)
                    | DataType::LargeListView(f)
                    | DataType::FixedSizeList(f, _) => f.clone(),
                    _ => return Ok(()),
                };
                let array = cast(array, &DataType::List(field))?;
                let list = array.as_list::<i32>();
                let wanted = elements(list.value_offsets(), &there, list.values().len(), lengths);
                element.add(list.values(), Some(&wanted))?;
            }
            InferredKind::Map { entries, lengths } => {
                let map = array.as_map();
                let wanted = elements(map.value_offsets(), &there, map.entries().len(), lengths);
                for (field, column) in entries.iter_mut().zip(map.entries().columns()) {
                    field.add(column, Some(&wanted))?;
                }
            }
            InferredKind::Leaf { kind, values, .. } => {
                let array = cast(array, kind)?;
                for i in (0..array.len()).filter(|i| there[*i]) {
                    if let Some(value) = value(&array, i) {
                        values.add(value);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes everything except the name, under the TOML table `path`.
    fn write(&self, path: &str, sampled: bool, out: &mut String) {
        let kind = match &self.kind {
            InferredKind::Leaf { is_uuid: true, .. } => "type = \"uuid\"\n".to_owned(),
            InferredKind::Leaf { kind, .. } => type_keys(kind),
            InferredKind::Struct(_) => "type = \"struct\"\n".to_owned(),
            InferredKind::List { .. } => "type = \"list\"\n".to_owned(),
            InferredKind::Map { .. } => "type = \"map\"\n".to_owned(),
        };
        out.push_str(&kind);
        if self.nullable {
            let share = if self.slots > 0 { self.nulls as f64 / self.slots as f64 } else { 0.0 };
            let share = if sampled || matches!(self.kind, InferredKind::Leaf { .. }) { share } else { 0.0 };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "nulls = {}", rounded(share));
        }
        match &self.kind {
            InferredKind::Leaf { kind, is_uuid, values } => {
                let values = if *is_uuid { "\"uuid\"".to_owned() } else { values_text(kind, values) };
                let _ = writeln!(out, "values = {values}");
            }
            InferredKind::Struct(fields) => {
                for field in fields {
                    let _ = write!(out, "\n[[{path}.fields]]\nname = {}\n", quoted(&field.name));
                    field.write(&format!("{path}.fields"), sampled, out);
                }
            }
            InferredKind::List { element, lengths, fixed } => {
                let _ = writeln!(out, "length = {}", length_text(lengths, *fixed));
                let _ = write!(out, "\n[{path}.element]\n");
                element.write(&format!("{path}.element"), sampled, out);
            }
            InferredKind::Map { entries, lengths } => {
                let _ = writeln!(out, "length = {}", length_text(lengths, None));
                for (field, part) in entries.iter().zip(["key", "value"]) {
                    let _ = write!(out, "\n[{path}.{part}]\n");
                    field.write(&format!("{path}.{part}"), sampled, out);
                }
            }
        }
    }
}

/// Counts the lengths of lists that are not null, and returns which elements belong to them.
fn elements(offsets: &[i32], there: &[bool], n: usize, lengths: &mut BTreeMap<u32, u64>) -> Vec<bool> {
    let mut wanted = vec![false; n];
    for (pair, there) in offsets.windows(2).zip(there) {
        let range = pair[0] as usize..pair[1] as usize;
        if *there {
            *lengths.entry((range.len() as u32).min(MOST_ELEMENTS)).or_default() += 1;
            wanted[range].fill(true);
        }
    }
    wanted
}

fn length_text(lengths: &BTreeMap<u32, u64>, fixed: Option<u32>) -> String {
    if let Some(n) = fixed {
        return format!("{{ constant = {} }}", n.min(MOST_ELEMENTS));
    }
    match (lengths.first_key_value(), lengths.last_key_value()) {
        (Some((least, _)), Some((most, _))) if least == most => format!("{{ constant = {least} }}"),
        (Some((least, _)), Some((most, _))) if lengths.len() > 64 => {
            let total: u64 = lengths.values().sum();
            let mean =
                lengths.iter().map(|(n, count)| u64::from(*n) * count).sum::<u64>() as f64 / total as f64;
            format!(
                "{{ exponential = {{ mean = {}, min = {least}, max = {most} }} }}",
                rounded(mean.max(0.01))
            )
        }
        (Some(_), Some(_)) => {
            let weights: Vec<String> = lengths.iter().map(|(n, count)| format!("{n} = {count}")).collect();
            format!("{{ weights = {{ {} }} }}", weights.join(", "))
        }
        _ => "{ uniform = { min = 0, max = 3 } }".to_owned(),
    }
}

/// The lines with the type of a leaf.
fn type_keys(kind: &DataType) -> String {
    let plain = |name: &str| format!("type = \"{name}\"\n");
    match kind {
        DataType::Boolean => plain("boolean"),
        DataType::Int8 => plain("int8"),
        DataType::Int16 => plain("int16"),
        DataType::Int32 => plain("int32"),
        DataType::UInt8 => plain("uint8"),
        DataType::UInt16 => plain("uint16"),
        DataType::UInt32 => plain("uint32"),
        DataType::UInt64 => plain("uint64"),
        DataType::Float16 => plain("float16"),
        DataType::Float32 => plain("float"),
        DataType::Float64 => plain("double"),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            format!("type = \"decimal\"\nprecision = {p}\nscale = {s}\n")
        }
        DataType::Date32 => plain("date"),
        DataType::Time32(_) => "type = \"time\"\nunit = \"ms\"\n".to_owned(),
        DataType::Time64(unit) => format!("type = \"time\"\nunit = \"{}\"\n", unit_name(*unit)),
        DataType::Timestamp(unit, zone) => {
            // Some writers use other names for zones; the instants are the same in any zone.
            let known = |zone: &str| if is_zone(zone) { quoted(zone) } else { quoted("UTC") };
            let zone = zone.as_ref().map_or_else(String::new, |zone| format!("zone = {}\n", known(zone)));
            format!("type = \"timestamp\"\nunit = \"{}\"\n{zone}", unit_name(*unit))
        }
        DataType::Utf8 => plain("string"),
        DataType::Binary => plain("binary"),
        DataType::FixedSizeBinary(width) => format!("type = \"fixed_binary\"\nwidth = {width}\n"),
        _ => plain("int64"),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Nanosecond => "ns",
        TimeUnit::Microsecond => "us",
        _ => "ms",
    }
}

/// The `values` of a leaf.
fn values_text(kind: &DataType, values: &SampledValues) -> String {
    let plain = |n: i128| n.to_string();
    match kind {
        DataType::Boolean => values.boolean(),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => values.real(),
        DataType::Utf8 => values.text(),
        DataType::Binary => values.bytes(),
        DataType::FixedSizeBinary(_) => "\"bytes\"".to_owned(),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            let scale = *s as u32;
            let decimal = move |n: i128| quoted(&decimal_text(n, scale));
            let most = 10i128.pow(u32::from(*p).min(18)) - 1;
            let alone = format!("{{ uniform = {{ min = 0, max = {} }} }}", decimal(most));
            values.whole(&decimal, &alone, false, false)
        }
        DataType::Date32 => {
            let date = |n: i128| date_text(n as i64);
            values.whole(&date, "{ uniform = { min = 2000-01-01, max = 2024-12-31 } }", true, false)
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let per_second = per_second(kind);
            let time = move |n: i128| time_text(n, per_second);
            values.whole(&time, "{ uniform = { min = 00:00:00, max = 23:59:59 } }", true, false)
        }
        DataType::Timestamp(_, zone) => {
            let (per_second, zone) = (per_second(kind), if zone.is_some() { "Z" } else { "" });
            let at = move |n: i128| {
                let day = 86_400 * per_second;
                let (days, of_day) = (n.div_euclid(day), n.rem_euclid(day));
                format!("{}T{}{zone}", date_text(days as i64), time_text(of_day, per_second))
            };
            let alone = format!(
                "{{ uniform = {{ min = 2000-01-01T00:00:00{zone}, max = 2024-12-31T23:59:59{zone} }} }}"
            );
            values.whole(&at, &alone, true, false)
        }
        DataType::Int8 | DataType::UInt8 => {
            values.whole(&plain, "{ uniform = { min = 0, max = 100 } }", false, false)
        }
        DataType::Int16 | DataType::UInt16 => {
            values.whole(&plain, "{ uniform = { min = 0, max = 10000 } }", false, false)
        }
        _ => values.whole(&plain, "{ uniform = { min = 0, max = 1000000 } }", false, true),
    }
}

fn per_second(kind: &DataType) -> i128 {
    match kind {
        DataType::Time64(TimeUnit::Nanosecond) | DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            1_000_000_000
        }
        DataType::Time64(_) | DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        _ => 1_000,
    }
}

fn time_text(of_day: i128, per_second: i128) -> String {
    let (seconds, fraction) = (of_day / per_second, of_day % per_second);
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let digits = per_second.ilog10() as usize;
    if fraction == 0 { time } else { format!("{time}.{fraction:0digits$}") }
}

fn decimal_text(unscaled: i128, scale: u32) -> String {
    let one = 10u128.pow(scale.min(38));
    let (sign, n) = (if unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
    match scale {
        0 => unscaled.to_string(),
        _ => format!("{sign}{}.{:0width$}", n / one, n % one, width = scale as usize),
    }
}

/// Value `i` of an array of one of the types of [`leaf_kind`].
fn value(array: &ArrayRef, i: usize) -> Option<Value> {
    use arrow_array::types::*;
    macro_rules! whole {
        ($type:ty) => {
            Value::Whole(array.as_primitive::<$type>().value(i).into())
        };
    }
    Some(match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(i)),
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => whole!(UInt64Type),
        DataType::Float16 => Value::Real(array.as_primitive::<Float16Type>().value(i).to_f64()),
        DataType::Float32 => Value::Real(array.as_primitive::<Float32Type>().value(i).into()),
        DataType::Float64 => Value::Real(array.as_primitive::<Float64Type>().value(i)),
        DataType::Decimal128(..) => whole!(Decimal128Type),
        DataType::Decimal256(..) => Value::Whole(array.as_primitive::<Decimal256Type>().value(i).to_i128()?),
        DataType::Date32 => whole!(Date32Type),
        DataType::Time32(_) => whole!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => whole!(Time64MicrosecondType),
        DataType::Time64(_) => whole!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => whole!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole!(TimestampMicrosecondType),
        DataType::Timestamp(..) => whole!(TimestampNanosecondType),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(i).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(i).len()),
        _ => return None,
    })
}
