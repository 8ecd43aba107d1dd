//! The schema in the footer of a dataset's files: a list of elements in depth-first order.
//!
//! (Parquet format, `parquet.thrift`: `SchemaElement`, `LogicalType`; `LogicalTypes.md` for lists and
//! maps.)

use crate::draw::nulls::Nulls;
use crate::encode::thrift::StructWriter;
use crate::spec::dataset::{Dataset, Field, Kind, ListStyle};
use crate::types::logical_type::{LogicalType, Physical, Unit};

/// `FieldRepetitionType`.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

/// One element after the root.
enum Element<'a> {
    Field(&'a Field),
    /// The element of a two-level list, which itself is repeated.
    Array(&'a Field),
    /// The repeated group in a list or a map, with its number of fields.
    Repeated(&'static str, i32),
}

fn collect<'a>(fields: &'a [Field], out: &mut Vec<Element<'a>>) {
    for field in fields {
        out.push(Element::Field(field));
        below(field, out);
    }
}

fn below<'a>(field: &'a Field, out: &mut Vec<Element<'a>>) {
    match &field.kind {
        Kind::Leaf(_) => {}
        Kind::Struct { fields, .. } => collect(fields, out),
        Kind::List { style: ListStyle::Legacy, children, .. } => {
            for child in children {
                out.push(Element::Array(child));
                below(child, out);
            }
        }
        Kind::List { style, children, .. } => {
            let name = if *style == ListStyle::Map { "key_value" } else { "list" };
            out.push(Element::Repeated(name, children.len() as i32));
            collect(children, out);
        }
    }
}

/// Writes the schema of `dataset`, except for the field `without`, as field 2 of `FileMetaData`.
pub(crate) fn schema(dataset: &Dataset, without: Option<&str>, w: &mut StructWriter<'_>) {
    let fields = dataset.fields.iter().filter(|field| Some(field.name.as_str()) != without);
    let mut elements = Vec::new();
    fields.clone().for_each(|field| collect(std::slice::from_ref(field), &mut elements));
    w.structs(2, elements.len() + 1, |i, w| match i.checked_sub(1).map(|i| &elements[i]) {
        None => {
            w.binary(4, dataset.name().as_bytes());
            w.i32(5, fields.clone().count() as i32);
        }
        Some(Element::Repeated(name, children)) => {
            w.i32(3, REPEATED);
            w.binary(4, name.as_bytes());
            w.i32(5, *children);
        }
        Some(Element::Field(field)) => {
            element(field, if field.nulls == Nulls::Never { REQUIRED } else { OPTIONAL }, w);
        }
        Some(Element::Array(field)) => element(field, REPEATED, w),
    });
}

fn element(field: &Field, repetition: i32, w: &mut StructWriter<'_>) {
    if let Kind::Leaf(leaf) = &field.kind {
        w.i32(1, leaf.physical.code());
        if let Physical::Fixed(width) = leaf.physical {
            w.i32(2, width as i32);
        }
    }
    w.i32(3, repetition);
    w.binary(4, field.name.as_bytes());
    match &field.kind {
        Kind::Leaf(leaf) => annotation(&leaf.kind, w),
        Kind::Struct { fields, .. } => w.i32(5, fields.len() as i32),
        Kind::List { style, .. } => {
            w.i32(5, 1);
            // ConvertedType and LogicalType: MAP is 1 and 2, LIST is 3 and 3.
            let (converted, logical) = if *style == ListStyle::Map { (1, 2) } else { (3, 3) };
            w.i32(6, converted);
            w.structure(10, |w| w.structure(logical, |_| {}));
        }
    }
}

/// The converted and logical type of a leaf, if it has one.
fn annotation(kind: &LogicalType, w: &mut StructWriter<'_>) {
    /// A logical type without parameters.
    fn plain(converted: Option<i32>, logical: i16, w: &mut StructWriter<'_>) {
        if let Some(converted) = converted {
            w.i32(6, converted);
        }
        w.structure(10, |w| w.structure(logical, |_| {}));
    }
    /// TIME or TIMESTAMP.
    fn time(logical: i16, utc: bool, unit: Unit, w: &mut StructWriter<'_>) {
        let unit = match unit {
            Unit::Milliseconds => 1,
            Unit::Microseconds => 2,
            Unit::Nanoseconds => 3,
        };
        w.structure(10, |w| {
            w.structure(logical, |w| {
                w.boolean(1, utc);
                w.structure(2, |w| w.structure(unit, |_| {}));
            });
        });
    }
    match kind {
        LogicalType::String => plain(Some(0), 1, w),
        LogicalType::Enum => plain(Some(4), 4, w),
        LogicalType::Json => plain(Some(19), 12, w),
        LogicalType::Date => plain(Some(6), 6, w),
        LogicalType::Uuid => plain(None, 14, w),
        // INTERVAL has a converted type alone.
        LogicalType::Interval => w.i32(6, 21),
        LogicalType::Geometry { crs } => w.structure(10, |w| {
            w.structure(17, |w| {
                if let Some(crs) = crs {
                    w.binary(1, crs.as_bytes());
                }
            });
        }),
        LogicalType::Float16 => plain(None, 15, w),
        LogicalType::Decimal { precision, scale, .. } => {
            w.i32(6, 5);
            w.i32(7, (*scale).into());
            w.i32(8, (*precision).into());
            w.structure(10, |w| {
                w.structure(5, |w| {
                    w.i32(1, (*scale).into());
                    w.i32(2, (*precision).into());
                });
            });
        }
        // Converted types like TIME_MILLIS mean UTC, so times without a zone have none.
        LogicalType::Time { unit, utc } => {
            match (unit, utc) {
                (Unit::Milliseconds, true) => w.i32(6, 7),
                (Unit::Microseconds, true) => w.i32(6, 8),
                _ => {}
            }
            time(7, *utc, *unit, w);
        }
        LogicalType::Timestamp { unit, zone } => {
            match (unit, zone) {
                (Unit::Milliseconds, Some(_)) => w.i32(6, 9),
                (Unit::Microseconds, Some(_)) => w.i32(6, 10),
                _ => {}
            }
            time(8, zone.is_some(), *unit, w);
        }
        // These are plain INT32 and INT64.
        LogicalType::Integer { bits: 32 | 64, signed: true } => {}
        LogicalType::Integer { bits, signed } => {
            let size = bits.trailing_zeros() as i32 - 3;
            w.i32(6, if *signed { 15 + size } else { 11 + size });
            w.structure(10, |w| {
                w.structure(10, |w| {
                    w.byte(1, *bits as i8);
                    w.boolean(2, *signed);
                });
            });
        }
        LogicalType::Boolean
        | LogicalType::Float
        | LogicalType::Double
        | LogicalType::Binary
        | LogicalType::FixedBinary(_)
        | LogicalType::Duration { .. }
        | LogicalType::Int96 => {}
    }
}
