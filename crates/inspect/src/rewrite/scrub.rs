//! Takes names, bounds and texts out of a footer, and leaves its shape.
//!
//! All text and bytes are masked but those that this module knows to tell nothing: a field that the format gets
//! later is masked, too.

use std::cmp::Ordering;
use std::collections::HashMap;

use sawmill_footer::{ColumnOrder, DumpLine, DumpValue, Element, Footer, PhysicalType, Statistics};

use crate::check::order::BoundsOf;
use crate::check::structure::on_path;
use crate::rewrite::output::Output;
use crate::rewrite::{Edit, Editor, Place};

/// Keys that programs write. They are kept behind `scrubbed.`, so that no reader takes the values for its own.
const KNOWN_KEYS: [&str; 21] = [
    "ARROW:schema",
    "avro.schema",
    "delete-type",
    "geo",
    "huggingface",
    "iceberg.schema",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
    "org.apache.spark.sql.parquet.row.attributes",
    "org.apache.spark.sql.parquet.row.metadata",
    "org.apache.spark.timeZone",
    "org.apache.spark.version",
    "pandas",
    "parquet.avro.read.schema",
    "parquet.avro.schema",
    "parquet.proto.class",
    "parquet.proto.descriptor",
    "parquet.thrift.descriptor",
    "schema.name",
    "thrift.class",
    "writer.model.name",
];

pub(super) struct Scrub<'a> {
    footer: &'a Footer,
    /// For each element of the schema, the first one of its group with the same name.
    first: Vec<usize>,
    keys: usize,
}

impl<'a> Scrub<'a> {
    pub fn new(footer: &'a Footer) -> Self {
        let mut named = HashMap::new();
        let first = footer.schema().elements().map(|element| {
            let group = element.parent().map(|parent| parent.index());
            *named.entry((group, element.name())).or_insert(element.index())
        });
        Self { footer, first: first.collect(), keys: 0 }
    }

    /// The order of the bounds of the current chunk.
    fn order(&self, place: &Place) -> Option<(Statistics<'a>, PhysicalType, BoundsOf)> {
        let chunk = self.footer.column_chunk(place.index_in("row_groups")?, place.index_in("columns")?)?;
        let bounds = BoundsOf::column(&chunk.element(), Some(ColumnOrder::TypeOrder))?;
        Some((chunk.statistics().ok()??, chunk.physical_type(), bounds))
    }

    /// The replacement of a bound, with as many bytes: zeros for the lower one, and 1 in the least significant place of
    /// the upper one. Equal bounds are both zeros.
    fn bound(&self, place: &Place, name: &str, len: usize) -> Vec<u8> {
        let mut masked = vec![0; len];
        let Some((found, physical, bounds)) = self.order(place) else { return masked };
        let is_old = matches!(name, "min" | "max");
        let (lower, upper) = if is_old { (found.min, found.max) } else { (found.min_value, found.max_value) };
        let (Some(lower), Some(upper)) = (lower, upper) else { return masked };
        let order = match (bounds.crossed(lower, upper), bounds.crossed(upper, lower)) {
            (true, _) => Ordering::Greater,
            (_, true) => Ordering::Less,
            _ if lower.len() == upper.len() => Ordering::Equal,
            _ => Ordering::Less,
        };
        let is_one = match order {
            Ordering::Less => name.starts_with("max"),
            Ordering::Greater => name.starts_with("min"),
            Ordering::Equal => false,
        };
        let (is_text, is_float) = (
            physical == PhysicalType::ByteArray,
            matches!(physical, PhysicalType::Float | PhysicalType::Double),
        );
        if is_text {
            masked.fill(b'x');
        }
        if is_one {
            let place = match physical {
                PhysicalType::ByteArray | PhysicalType::FixedLenByteArray => masked.last_mut(),
                // The exponent of a float; the day of an INT96.
                PhysicalType::Float | PhysicalType::Double => masked.last_mut(),
                PhysicalType::Int96 => masked.get_mut(8),
                _ => masked.first_mut(),
            };
            if let Some(place) = place {
                *place = match (is_text, is_float) {
                    (true, _) => b'y',
                    (_, true) => 0x3f,
                    _ => 1,
                };
            }
        }
        masked
    }

    /// The name of an element of the schema: the same within a group where the original is.
    fn name(&self, element: usize) -> String {
        match self.first.get(element) {
            None | Some(0) => "root".to_owned(),
            Some(first) => format!("c{first}"),
        }
    }

    /// The name of a step of a column's path; `x` as often as it has bytes if it is another one than in the schema.
    fn step(&self, place: &Place, name: &[u8]) -> Vec<u8> {
        let column = place.index_in("columns").and_then(|column| self.footer.schema().leaf(column));
        let path: Vec<Element<'_>> = column.into_iter().flat_map(on_path).collect();
        let step = path.iter().rev().nth(place.index()).filter(|step| step.name().as_bytes() == name);
        step.map_or_else(|| vec![b'x'; name.len()], |step| self.name(step.index()).into_bytes())
    }

    fn key(&mut self, key: &[u8]) -> String {
        self.keys += 1;
        let known = KNOWN_KEYS.iter().find(|known| known.as_bytes() == key);
        known.map_or_else(|| format!("scrubbed.{}", self.keys), |known| format!("scrubbed.{known}"))
    }
}

impl Editor for Scrub<'_> {
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit {
        let bytes = match line.value {
            DumpValue::Text(bytes) | DumpValue::Binary(bytes) => bytes,
            DumpValue::Double(value) => return mask_double(line.name, value),
            _ => return Edit::Keep,
        };
        let name = line.name.unwrap_or_default();
        match (place.container(), name) {
            ("FileMetaData", "created_by") => Edit::Keep,
            ("SchemaElement", "name") => {
                let element = place.index_in("schema").unwrap_or_default();
                Edit::Bytes(self.name(element).into_bytes())
            }
            ("KeyValue", "key") => Edit::Bytes(self.key(bytes).into_bytes()),
            ("Statistics", "min" | "max" | "min_value" | "max_value") => {
                Edit::Bytes(self.bound(place, name, bytes.len()))
            }
            _ if place.list() == "path_in_schema" => Edit::Bytes(self.step(place, bytes)),
            // An empty map.
            _ if line.wire == "map" => Edit::Bytes(vec![0]),
            _ => Edit::Bytes(vec![b'x'; bytes.len()]),
        }
    }

    fn missing(&mut self, _: &Place, _: i16, _: &mut Output) {}
}

/// A corner of a bounding box, or a number of a field that is unknown here.
fn mask_double(name: Option<&str>, value: f64) -> Edit {
    let is_upper = name.is_some_and(|name| name.ends_with("max"));
    if value.is_nan() { Edit::Double(f64::NAN) } else { Edit::Double(if is_upper { 1.0 } else { 0.0 }) }
}
