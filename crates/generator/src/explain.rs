//! Explains a dataset before it is generated: schema, expected sizes, expected values.
//!
//! Sizes are sizes of uncompressed PLAIN or dictionary pages, estimated from the average number of entries
//! and values of each column and the average width of a value.

use std::fmt::Write;

use serde::Serialize;

use crate::draw::distribution::Curve;
use crate::draw::nulls::Nulls;
use crate::draw::text::person_name;
use crate::draw::text::words::Words;
use crate::draw::value_spec::{ChosenBy, ReferencedKey, ValueSpec, intervals};
use crate::encode::levels::bit_width;
use crate::layout::rows::ROW_GROUP_ROWS;
use crate::random::rng::{BLOCK_ROWS, Stream};
use crate::shred::block::Shredder;
use crate::shred::operands::numbers;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, ListStyle};
use crate::spec::value_length::longest;
use crate::types::civil::date_text;
use crate::types::logical_type::{LogicalType, Physical, type_text};
use crate::types::number::{Number, stored_number};

/// The number of strings to draw where no formula yields the average length.
const SAMPLE: usize = 256;

/// So many bytes of strings are sample enough.
const SAMPLE_BYTES: usize = 1 << 20;

/// The most characters of an example.
const MAX_EXAMPLE: usize = 200;

/// The most bytes of a row in memory that a spec may ask for: 64 MiB.
pub(crate) const MAX_ROW_BYTES: f64 = 67_108_864.0;

/// The explanation of a dataset.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The dataset's name.
    pub name: String,
    /// The schema as a message type.
    pub schema: String,
    /// Expected bytes of a row in uncompressed pages.
    pub bytes_a_row: f64,
    /// Its columns.
    pub columns: Vec<ExplainedColumn>,
}

/// The explanation of a column.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedColumn {
    /// Its path in the files.
    pub path: String,
    /// Its type, with the name that specs use.
    #[serde(rename = "type")]
    pub kind: String,
    /// Entries per row: values, nulls, and one for each null or empty list.
    pub entries_a_row: f64,
    /// Values per row that are not null.
    pub values_a_row: f64,
    /// Expected bytes per row: values and levels.
    pub bytes_a_row: f64,
    /// How its values are drawn.
    pub values: String,
    /// The expected value: a number, a point in time, or an example string.
    pub expected: String,
}

impl Dataset {
    /// Explains the dataset before it is generated.
    pub fn explain(&self) -> Explanation {
        let mut columns = self.expected_columns();
        let mut schema = format!("message {} {{\n", self.name());
        for field in &self.fields {
            message(field, 1, &mut schema);
        }
        schema.push_str("}\n");
        self.sample_expressions(&mut columns);
        for hidden in columns.iter_mut().skip(self.columns()) {
            hidden.bytes_a_row = 0.0;
            hidden.values.insert_str(0, "hidden: ");
        }
        let bytes_a_row = columns.iter().map(|c: &ExplainedColumn| c.bytes_a_row).sum();
        Explanation { name: self.name().to_owned(), schema, bytes_a_row, columns }
    }
}

impl Dataset {
    /// Expected bytes of a row in uncompressed pages.
    pub(crate) fn expected_row_bytes(&self) -> f64 {
        self.expected_columns().iter().take(self.columns()).map(|column| column.bytes_a_row).sum()
    }

    /// Expected bytes of a row in memory, also of hidden fields, where each value is as long as a formula or a choice
    /// may make it; the sum ends beyond [`MAX_ROW_BYTES`].
    pub(crate) fn row_bytes_in_memory(&self) -> f64 {
        let mut bytes = 0.0;
        self.each_expected(&mut |field, leaf, entries, values| {
            if bytes <= MAX_ROW_BYTES {
                let may_grow = matches!(leaf.values, ValueSpec::Expression(_) | ValueSpec::Choice { .. });
                let longest = longest(&leaf.values).filter(|_| may_grow);
                let width = longest.map_or_else(|| leaf.width(values), |length| length as f64);
                bytes += levels_of(field, entries) + values * width;
            }
        });
        bytes
    }

    /// The memory of the rows that are drawn together, however few of them are wanted.
    pub fn block_bytes(&self) -> u64 {
        (self.row_bytes_in_memory() * BLOCK_ROWS as f64) as u64
    }

    fn expected_columns(&self) -> Vec<ExplainedColumn> {
        let mut columns = Vec::new();
        self.each_expected(&mut |field, leaf, entries, values| {
            columns.push(column(field, leaf, entries, values));
        });
        columns
    }

    /// Calls `take` with each leaf, hidden ones at the end, and its expected entries and values in a row.
    fn each_expected(&self, take: &mut impl FnMut(&Field, &Leaf, f64, f64)) {
        for field in self.fields.iter().chain(&self.hidden) {
            let share = share_there(field, self.present.as_ref().map(combinations).as_deref());
            each_expected(field, Expected { entries: 1.0, live: 1.0 }, share, take);
        }
    }

    /// Sets the expected value of expressions to the mean of a sample.
    fn sample_expressions(&self, columns: &mut [ExplainedColumn]) {
        let mut formulas = Vec::new();
        let mut counted = Vec::new();
        self.each_leaf(&mut |field, leaf| {
            if matches!(leaf.values, ValueSpec::Expression(_)) {
                formulas.push(leaf);
            }
            if field.nulls == Nulls::Where {
                counted.push(leaf.index);
            }
        });
        if formulas.is_empty() && counted.is_empty() {
            return;
        }
        let mut shredder = Shredder::new(self, 42);
        let rows = ((1 << 24) as f64 / self.expected_row_bytes().max(1.0)).max(1.0) as u64;
        let (shredded, misfit) = shredder.sample(0..rows.min(BLOCK_ROWS));
        for leaf in counted {
            columns[leaf].values_a_row =
                shredded.leaves[leaf].values.len() as f64 / shredded.rows.max(1) as f64;
        }
        for leaf in formulas {
            if let Some(misfit) = misfit.filter(|misfit| misfit.leaf == leaf.index) {
                let what = misfit.misfit.described(&leaf.kind);
                columns[leaf.index].expected = format!("row {}: {what}", misfit.row);
                continue;
            }
            let values = &shredded.leaves[leaf.index].values;
            if let ValueBuffer::Bytes(texts) = values {
                let column = &mut columns[leaf.index];
                let bytes = texts.data.len() + 4 * texts.ends.len();
                column.bytes_a_row = bytes as f64 / shredded.rows.max(1) as f64;
                column.expected = format!("for example {}", shortened(texts.get(0)));
                continue;
            }
            let numbers = numbers(leaf, values, 0..values.len());
            let numbers: Vec<f64> = (0..).map_while(|i| numbers.get(i)).map(Number::real).collect();
            if !numbers.is_empty() {
                let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
                columns[leaf.index].expected = format!("{} in a sample", leaf.shown(mean));
            }
        }
    }
}

/// The expected entries of a field in one row, and those whose enclosing fields are all present.
#[derive(Clone, Copy)]
struct Expected {
    entries: f64,
    live: f64,
}

/// The probability of each combination of bits of a `present`.
fn combinations(present: &crate::spec::dataset::Present) -> Vec<(u32, f64)> {
    present.masks.iter().copied().zip(present.table.probabilities().iter().copied()).collect()
}

/// The probability that a field is present if its enclosing struct is.
fn share_there(field: &Field, combinations: Option<&[(u32, f64)]>) -> f64 {
    match (field.nulls, combinations) {
        // A sample counts them.
        (Nulls::Never | Nulls::Where, _) => 1.0,
        (Nulls::Share(null), _) => 1.0 - null,
        (Nulls::Together(bit), Some(all)) => {
            all.iter().filter(|(mask, _)| mask >> bit & 1 == 1).map(|(_, p)| p).sum()
        }
        (Nulls::Together(_), None) => 1.0,
    }
}

fn each_expected(
    field: &Field,
    around: Expected,
    there: f64,
    take: &mut impl FnMut(&Field, &Leaf, f64, f64),
) {
    match &field.kind {
        Kind::Leaf(leaf) => take(field, leaf, around.entries, around.live * there),
        Kind::Struct { fields, present } => {
            let inner = Expected { live: around.live * there, ..around };
            let combinations = present.as_ref().map(combinations);
            for field in fields {
                each_expected(field, inner, share_there(field, combinations.as_deref()), take);
            }
        }
        Kind::List { lengths, children, .. } => {
            // The table of lengths includes null lists, unless the struct's `present` decides.
            let outside = if matches!(field.nulls, Nulls::Together(_)) { there } else { 1.0 };
            let lists = around.live * outside;
            let entries = around.entries - lists + lists * lengths.mean_entries();
            let inner = Expected { entries, live: lists * lengths.mean() };
            for child in children {
                each_expected(child, inner, share_there(child, None), take);
            }
        }
    }
}

/// Expected bytes of a leaf's levels in a row.
fn levels_of(field: &Field, entries: f64) -> f64 {
    let bits = bit_width(field.levels.definition.into()) + bit_width(field.levels.repetition.into());
    entries * bits as f64 / 8.0
}

fn column(field: &Field, leaf: &Leaf, entries: f64, values: f64) -> ExplainedColumn {
    let bytes_a_row = levels_of(field, entries) + values * leaf.width(values);
    let (values_text, expected) = (leaf.described(), leaf.expected());
    ExplainedColumn {
        path: field.path.clone(),
        kind: type_text(&leaf.kind),
        entries_a_row: entries,
        values_a_row: values,
        bytes_a_row,
        values: values_text,
        expected,
    }
}

/// The start of a text, in quotes.
fn shortened(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(text).chars().take(MAX_EXAMPLE).collect::<String>())
}

/// Appends a field in the notation of message types.
fn message(field: &Field, depth: usize, out: &mut String) {
    let repetition = if field.nulls == Nulls::Never { "required" } else { "optional" };
    element(field, repetition, depth, out);
}

fn element(field: &Field, repetition: &str, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    // Writing to a string cannot fail.
    match &field.kind {
        Kind::Leaf(leaf) => {
            let physical = match leaf.physical {
                Physical::Boolean => "boolean".to_owned(),
                Physical::Int32 => "int32".to_owned(),
                Physical::Int64 => "int64".to_owned(),
                Physical::Int96 => "int96".to_owned(),
                Physical::Float => "float".to_owned(),
                Physical::Double => "double".to_owned(),
                Physical::Bytes => "binary".to_owned(),
                Physical::Fixed(width) => format!("fixed_len_byte_array({width})"),
            };
            let _ = writeln!(
                out,
                "{indent}{repetition} {physical} {}{};",
                field.name,
                annotation(&leaf.kind).map_or_else(String::new, |a| format!(" ({a})"))
            );
        }
        Kind::Struct { fields, .. } => {
            let _ = writeln!(out, "{indent}{repetition} group {} {{", field.name);
            for field in fields {
                message(field, depth + 1, out);
            }
            let _ = writeln!(out, "{indent}}}");
        }
        Kind::List { style, children, .. } => {
            let annotation = if *style == ListStyle::Map { "MAP" } else { "LIST" };
            let _ = writeln!(out, "{indent}{repetition} group {} ({annotation}) {{", field.name);
            match style {
                ListStyle::Legacy => {
                    for child in children {
                        element(child, "repeated", depth + 1, out);
                    }
                }
                ListStyle::Standard | ListStyle::Fixed(_) | ListStyle::Map => {
                    let name = if *style == ListStyle::Map { "key_value" } else { "list" };
                    let _ = writeln!(out, "{indent}  repeated group {name} {{");
                    for child in children {
                        message(child, depth + 2, out);
                    }
                    let _ = writeln!(out, "{indent}  }}");
                }
            }
            let _ = writeln!(out, "{indent}}}");
        }
    }
}

/// The logical type in the notation of message types.
fn annotation(kind: &LogicalType) -> Option<String> {
    let unit = |unit: &crate::types::logical_type::Unit| match unit.name() {
        "ms" => "MILLIS",
        "us" => "MICROS",
        _ => "NANOS",
    };
    Some(match kind {
        LogicalType::Integer { bits: 32 | 64, signed: true } => return None,
        LogicalType::Integer { bits, signed } => format!("INTEGER({bits},{signed})"),
        LogicalType::Decimal { precision, scale, .. } => format!("DECIMAL({precision},{scale})"),
        LogicalType::Date => "DATE".to_owned(),
        LogicalType::Time { unit: u, utc } => format!("TIME({},{utc})", unit(u)),
        LogicalType::Timestamp { unit: u, zone } => format!("TIMESTAMP({},{})", unit(u), zone.is_some()),
        LogicalType::String => "STRING".to_owned(),
        LogicalType::Enum => "ENUM".to_owned(),
        LogicalType::Json => "JSON".to_owned(),
        LogicalType::Uuid => "UUID".to_owned(),
        LogicalType::Interval => "INTERVAL".to_owned(),
        LogicalType::Geometry { crs: None } => "GEOMETRY".to_owned(),
        LogicalType::Geometry { crs: Some(crs) } => format!("GEOMETRY({crs})"),
        LogicalType::Float16 => "FLOAT16".to_owned(),
        _ => return None,
    })
}

impl Leaf {
    /// Expected bytes of one value in a page, with its share of a dictionary of names, in a row group of
    /// default size.
    pub(crate) fn width(&self, values_a_row: f64) -> f64 {
        let in_group = values_a_row * ROW_GROUP_ROWS as f64;
        match &self.values {
            ValueSpec::PersonName if person_name::dictionary_pays_off(in_group) => {
                person_name::INDEX_BITS as f64 / 8.0 + person_name::dictionary().len() as f64 / in_group
            }
            ValueSpec::Choice { table, .. } => {
                bit_width(table.probabilities().len().saturating_sub(1) as u32) as f64 / 8.0
            }
            _ => match (self.physical, self.physical.width()) {
                (Physical::Boolean, _) => 1.0 / 8.0,
                (_, Some(width)) => width as f64,
                (_, None) => 4.0 + self.string_width(),
            },
        }
    }

    /// Expected bytes of one string.
    fn string_width(&self) -> f64 {
        match &self.values {
            ValueSpec::Shapes(shapes) => shapes.bytes() as f64,
            ValueSpec::Bytes { least, most } => (f64::from(*least) + f64::from(*most)) / 2.0,
            ValueSpec::Computed { mean_bytes, .. } => *mean_bytes,
            ValueSpec::Words { least, most } => {
                let words = (f64::from(*least) + f64::from(*most)) / 2.0;
                words * Words::get().mean() + (words - 1.0).max(0.0)
            }
            // Its operands are not known here; `sample_expressions` measures.
            ValueSpec::Expression(expression) => expression.longest().map_or(0.0, |n| n.min(32) as f64),
            _ => {
                let sample = self.sample();
                sample.iter().map(|s| s.len() as f64).sum::<f64>() / sample.len().max(1) as f64
            }
        }
    }

    /// A sample of its strings: fewer of them if they are long.
    fn sample(&self) -> Vec<Vec<u8>> {
        let mut strings = Vec::new();
        for n in [1, SAMPLE / 16, SAMPLE] {
            if strings.iter().map(Vec::len).sum::<usize>() < SAMPLE_BYTES {
                strings = self.drawn(n);
            }
        }
        strings
    }

    /// The first `n` strings of its sample.
    fn drawn(&self, n: usize) -> Vec<Vec<u8>> {
        use crate::shred::leaf_draws::Draws;
        let numbers: Vec<u64> = (0..n as u64).collect();
        let ranks: Vec<f64> = numbers.iter().map(|n| *n as f64 / SAMPLE as f64).collect();
        let stream = Stream::new(0, 0, 0);
        // Large ids, as in most rows of a long dataset.
        let draws = Draws {
            stream,
            n,
            first_id: 1 << 20,
            numbers: &numbers,
            operands: &[],
            wanted: 0..0,
            seed: 0,
            ranks: &ranks,
        };
        let mut buffer = ValueBuffer::new(self);
        // Strings always fit.
        let _ = self.draw(&draws, &mut buffer);
        match &*buffer.plain(self) {
            ValueBuffer::Bytes(strings) => strings.iter().map(<[u8]>::to_vec).collect(),
            _ => Vec::new(),
        }
    }

    /// Describes how its values are drawn.
    fn described(&self) -> String {
        match &self.values {
            ValueSpec::PersonName => "person_name".to_owned(),
            ValueSpec::Unique(_) => "unique".to_owned(),
            ValueSpec::Choice { table, by: Some(by), .. } => {
                let by = match &**by {
                    ChosenBy::Field(by) => by.field.as_str(),
                    ChosenBy::Row(_) => "row",
                };
                format!("one of {} values by {by}", table.probabilities().len())
            }
            ValueSpec::Choice { table, .. } => match table.probabilities().len() {
                1 => "constant".to_owned(),
                n => format!("one of {n} values"),
            },
            ValueSpec::Boolean(table) => {
                format!("true in {:.1} %", 100.0 * table.probabilities().get(1).copied().unwrap_or(0.0))
            }
            ValueSpec::Zipf(ranks) => format!("zipf over {} ranks", ranks.count()),
            ValueSpec::Integers { .. }
            | ValueSpec::Wide { .. }
            | ValueSpec::Wider { .. }
            | ValueSpec::Reals { .. } => "uniform".to_owned(),
            ValueSpec::DistinctNumbers(numbers) => match numbers.pieces.is_empty() {
                true => "uniform, none twice".to_owned(),
                false => "quantiles, none twice".to_owned(),
            },
            ValueSpec::Curve { curve, .. } => match curve {
                Curve::Normal { .. } => "normal",
                Curve::LogNormal { .. } => "lognormal",
                Curve::Exponential { .. } => "exponential",
            }
            .to_owned(),
            ValueSpec::Own(_) => "a distribution of the program".to_owned(),
            ValueSpec::Quantiles(quantiles) => format!("quantiles, {} pieces", quantiles.pieces()),
            ValueSpec::Seasonal(seasonal) => format!("seasonal over {} days", seasonal.days()),
            ValueSpec::Counts(counts) => format!("counts of mean {:.3}", counts.mean()),
            ValueSpec::Sequence { .. } => "sequence".to_owned(),
            ValueSpec::Monotone(_) => "walk".to_owned(),
            ValueSpec::Expression(expression) => expression.text.clone(),
            ValueSpec::Reference(reference) => format!("one of {} keys", reference.ranks.count()),
            ValueSpec::OtherColumn(column) => column.name.clone(),
            ValueSpec::OfChildren(children) => children.name.clone(),
            ValueSpec::Operation(changes) => format!("what happens to rows of {}", changes.of),
            ValueSpec::ChildNumber(fan_out) => format!("number of the row per {}", fan_out.parent),
            ValueSpec::Words { least, most } => format!("{least} to {most} words"),
            ValueSpec::Email => "email".to_owned(),
            ValueSpec::Intervals(_) => "uniform".to_owned(),
            ValueSpec::Shapes(shapes) => shapes.name().to_owned(),
            ValueSpec::Localized(values) => values.name().to_owned(),
            ValueSpec::Uuid => "uuid".to_owned(),
            ValueSpec::Pattern(_) => "pattern".to_owned(),
            ValueSpec::Distinct(distinct) => format!("pattern, {} different", distinct.least_rows()),
            ValueSpec::Text(text) => format!("text of {:.1} characters", text.mean_length()),
            ValueSpec::Computed { .. } => "computed".to_owned(),
            ValueSpec::Bytes { least, most } if least == most => format!("{least} bytes"),
            ValueSpec::Bytes { least, most } => format!("{least} to {most} bytes"),
        }
    }

    fn expected(&self) -> String {
        let one = self.kind.one_real();
        let number = match &self.values {
            ValueSpec::Zipf(ranks) => ranks.mean(),
            ValueSpec::Counts(counts) => counts.mean(),
            ValueSpec::Quantiles(quantiles) if self.kind.is_whole() => quantiles.mean() / one,
            ValueSpec::Quantiles(quantiles) => quantiles.mean(),
            ValueSpec::Curve { curve, low, high } => curve.mean().clamp(*low, *high),
            ValueSpec::Own(distribution) => distribution.mean(),
            ValueSpec::Reals { min, width } => min + width / 2.0,
            ValueSpec::Integers { min, span } => {
                let (low, high) = self.kind.range();
                // A span of 0 means 2^64.
                let (low, span) = match (span, low) {
                    (0, 0) => (0.0, high as f64),
                    (0, _) => (*min as f64, 2f64.powi(64)),
                    (span, _) => (*min as f64, *span as f64),
                };
                (low + (span - 1.0) / 2.0) / one
            }
            ValueSpec::Wide { min, span } => (*min as f64 + *span as f64 / 2.0) / one,
            ValueSpec::Wider { min, span } => (min.real() + span.real() / 2.0) / one,
            ValueSpec::Boolean(table) => table.probabilities().get(1).copied().unwrap_or(0.0),
            ValueSpec::Sequence { start, step } => {
                return format!(
                    "{}, {}, ...",
                    self.shown(*start as f64 / one),
                    self.shown((start + step) as f64 / one)
                );
            }
            ValueSpec::Monotone(monotone) => {
                let first = self.shown(monotone.start as f64 / one);
                let second = self.shown((monotone.start as f64 + monotone.step) / one);
                return format!("{first}, {second}, ...");
            }
            ValueSpec::Reference(reference) => match &reference.key {
                ReferencedKey::Sequence { start, step } => {
                    (*start as f64 + *step as f64 * (reference.ranks.mean() - 1.0)) / one
                }
                ReferencedKey::Unique(_) | ReferencedKey::Distinct(_) | ReferencedKey::Uuid(_) => {
                    return self.example();
                }
            },
            ValueSpec::Choice { by: Some(_), .. } => return String::new(),
            ValueSpec::Choice { table, .. } => {
                let likely = table.probabilities().iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
                let Some((i, p)) = likely else { return String::new() };
                let entry = &self.dictionary()[i];
                let shown = match self.physical {
                    _ if self.kind == LogicalType::Interval => intervals::text(intervals::parts(entry)),
                    Physical::Bytes => format!("{:?}", String::from_utf8_lossy(entry)),
                    _ => entry.iter().rev().map(|b| format!("{b:02x}")).collect::<String>(),
                };
                let is_number = self.kind.is_whole() || self.kind.is_real();
                let number = stored_number(&self.kind, entry).filter(|_| is_number);
                let shown = number.map_or(shown, |n| self.shown(n.real()));
                return format!("{shown} in {:.1} %", 100.0 * p);
            }
            ValueSpec::Expression(_) | ValueSpec::OtherColumn(_) | ValueSpec::Seasonal(_) => {
                return String::new();
            }
            ValueSpec::ChildNumber(_) => return "1, 2, ...".to_owned(),
            ValueSpec::Operation(_) => return "insert, update or delete".to_owned(),
            ValueSpec::Uuid
            | ValueSpec::Bytes { .. }
            | ValueSpec::OfChildren(_)
            | ValueSpec::DistinctNumbers(_)
            | ValueSpec::Intervals(_)
            | ValueSpec::Shapes(_)
            | ValueSpec::Computed { .. } => return String::new(),
            _ => return self.example(),
        };
        self.shown(number)
    }

    fn example(&self) -> String {
        let sample = self.sample();
        sample.first().map_or_else(String::new, |first| format!("such as {}", shortened(first)))
    }

    /// A number in the notation of specs.
    fn shown(&self, number: f64) -> String {
        let Some(per_day) = self.kind.ticks_per_day() else {
            return if number.abs() >= 1e15 || number == number.trunc() {
                format!("{number}")
            } else {
                format!("{number:.4}")
            };
        };
        let per_day = per_day as f64;
        let days = (number / per_day).floor();
        let seconds = (number - days * per_day) / per_day * 86_400.0;
        let time = || {
            let whole = seconds as u64;
            let text = format!("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
            let milliseconds = ((seconds - whole as f64) * 1000.0) as u64;
            if milliseconds == 0 { text } else { format!("{text}.{milliseconds:03}") }
        };
        match self.kind {
            LogicalType::Time { .. } => time(),
            LogicalType::Date => date_text(number as i64),
            LogicalType::Duration { .. } => duration_text(number / per_day * 86_400.0),
            _ => format!("{}T{}", date_text(days as i64), time()),
        }
    }
}

/// A duration in the largest unit that divides it.
fn duration_text(seconds: f64) -> String {
    let units = [("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)];
    let whole = units.iter().find(|(_, unit)| {
        let n = seconds / unit;
        n.abs() >= 1.0 && (n - n.round()).abs() < 1e-9 * n.abs()
    });
    match whole {
        Some((name, unit)) => format!("{}{name}", (seconds / unit).round()),
        None => format!("{:.4}s", seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_has_the_entries_and_values_of_its_spec() {
        let explained = Dataset::built_in("contacts").unwrap().unwrap().explain();
        let [name, number, kind] = &explained.columns[..] else { panic!("{explained:?}") };
        assert!((name.values_a_row - 0.8).abs() < 1e-9);
        // 180 parts: 135 have one phone, 30 two, 5 three, 5 four, 5 five; 60 % have some.
        let phones = 0.6 * (135.0 + 60.0 + 15.0 + 20.0 + 25.0) / 180.0;
        assert!((number.entries_a_row - (phones + 0.4)).abs() < 1e-9);
        assert!((number.values_a_row - phones * 0.95).abs() < 1e-9);
        assert!((kind.values_a_row - phones * 0.94).abs() < 1e-9);
        assert!(kind.expected.contains("Mobile"), "{kind:?}");
        assert!(explained.schema.contains("optional group phones (LIST)"), "{}", explained.schema);
    }

    #[test]
    fn every_built_in_dataset_is_explained() {
        for (name, _) in crate::BUILT_IN {
            let explained = Dataset::built_in(name).unwrap().unwrap().explain();
            assert!(explained.bytes_a_row > 0.0);
            assert!(explained.columns.iter().all(|c| !c.values.is_empty()), "{explained:?}");
        }
    }

    #[test]
    fn listed_numbers_in_fixed_bytes_are_explained_as_numbers() {
        for (kind, value, shown) in [
            ("type = 'decimal'\nprecision = 60\nscale = 3", "'-12.5'", "-12.5000 in 100.0 %"),
            ("type = 'float16'", "1.5", "1.5000 in 100.0 %"),
            ("type = 'fixed_binary'\nwidth = 2", "'0x00ff'", "ff00 in 100.0 %"),
        ] {
            let spec = format!("name = 'd'\n[[fields]]\nname = 'v'\n{kind}\nvalues.constant = {value}\n");
            assert_eq!(Dataset::from_toml(&spec).unwrap().explain().columns[0].expected, shown);
        }
    }
}
