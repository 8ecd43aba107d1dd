//! Converts schemas to the `parquet` crate's types, pruned to some leaves.

use std::sync::Arc;

use super::parquet::basic::{
    ConvertedType as TheirConverted, LogicalType as Theirs, Repetition as TheirRepetition,
    TimeUnit as TheirUnit, Type as TheirType,
};
use super::parquet::errors::ParquetError;
use super::parquet::schema::types::{Type, TypePtr};

use crate::error::{Error, Result};
use crate::schema::arena::{CONVERTED_TYPE, ElementTraits, LOGICAL_TYPE, Schema};
use crate::schema::element::Element;
use crate::schema::enums::{ConvertedType, EdgeInterpolationAlgorithm, PhysicalType, Repetition};
use crate::schema::logical::{LogicalType, TimeUnit};

/// Deeper schemas are rejected: the crates that read and write rows walk them recursively, on stacks of 8 MiB.
const DEPTH_LIMIT: usize = 320;

/// The crate repeats the names of all groups above a column in its path. 15,000 columns below a group whose name takes
/// 350 kB would take 5 GB.
const MAX_PATHS: usize = 256 << 20;

/// The schema with these leaves, given in ascending order, and the groups that contain them.
pub(crate) fn pruned(schema: &Schema, leaves: &[usize]) -> Result<TypePtr> {
    // Groups without any leaf are kept with their parents.
    let empty = schema.elements().filter(|element| !element.is_leaf() && element.columns().is_empty());
    let wanted = leaves.iter().filter_map(|&leaf| schema.leaf(leaf));
    if let Some(found) = wanted.chain(empty).find(is_too_deep) {
        return Err(too_deep(found));
    }
    if has_long_paths(schema, leaves.iter().copied()) {
        let what = format!(
            "expected paths of at most {MAX_PATHS} bytes in all, found more in {} columns: their groups have long names",
            leaves.len()
        );
        return Err(Error::new(what).with_advice("read fewer columns at once"));
    }
    let root = schema.root();
    let fields = children(root, leaves)?;
    let made = Type::group_type_builder(root.name()).with_fields(fields);
    made.with_converted_type(converted(root))
        .with_logical_type(logical(root)?)
        .with_id(root.field_id())
        .build()
        .map(Arc::new)
        .map_err(|error| theirs(root, &error))
}

/// Whether the crate's own decoder can take the schema as it is in the file: nothing is nested too deeply for it, and
/// it knows all types and their parameters.
pub(crate) fn is_plain(schema: &Schema) -> bool {
    let shallow = schema.num_elements() <= DEPTH_LIMIT || !schema.elements().any(|of| is_too_deep(&of));
    let converted = |traits: &ElementTraits| {
        let of = ConvertedType::from_number(traits.converted_type);
        let logical = schema.logical_types.get(traits.logical_type as usize);
        match logical.filter(|_| traits.present & LOGICAL_TYPE != 0) {
            _ if traits.present & CONVERTED_TYPE == 0 => true,
            Some(LogicalType::List) => of == ConvertedType::List,
            Some(LogicalType::Map) => of == ConvertedType::Map,
            _ => of.is_known(),
        }
    };
    let logical = |logical: &LogicalType| match logical {
        LogicalType::Time { unit, .. } | LogicalType::Timestamp { unit, .. } => {
            !matches!(unit, TimeUnit::Unknown(_))
        }
        LogicalType::Integer { bit_width, .. } => matches!(bit_width, 8 | 16 | 32 | 64),
        LogicalType::Geography { algorithm, .. } => {
            !matches!(algorithm, Some(EdgeInterpolationAlgorithm::Unknown(_)))
        }
        LogicalType::File | LogicalType::Unknown { .. } => false,
        _ => true,
    };
    let leaves = 0..schema.num_leaves();
    shallow
        && !has_long_paths(schema, leaves)
        && schema.traits.iter().all(converted)
        && schema.logical_types.iter().all(logical)
}

/// The fault of a column if the crate has no type for it or for a group that contains it.
pub(crate) fn refused(leaf: Element<'_>) -> Option<Error> {
    if is_too_deep(&leaf) {
        return Some(too_deep(leaf));
    }
    let mut groups = std::iter::successors(leaf.parent(), |group| group.parent());
    // Tested alone: another column's failure must not count.
    field(leaf, &[]).err().or_else(|| groups.find_map(|group| logical(group).err()))
}

/// Whether the names in the paths of the leaves take more than [`MAX_PATHS`].
fn has_long_paths(schema: &Schema, leaves: impl ExactSizeIterator<Item = usize>) -> bool {
    let groups = schema.elements().filter(|element| !element.is_leaf());
    let longest: usize = groups.map(|group| group.name().len()).sum();
    if longest.saturating_mul(leaves.len()) <= MAX_PATHS {
        return false;
    }
    let bytes = |leaf: Element<'_>| leaf.path_names().iter().map(|name| name.len()).sum::<usize>();
    leaves.filter_map(|leaf| schema.leaf(leaf)).map(bytes).sum::<usize>() > MAX_PATHS
}

fn too_deep(element: Element<'_>) -> Error {
    let what = format!("expected elements at most {DEPTH_LIMIT} groups deep, found `{:.60}`", element.path());
    Error::new(what).with_advice("leave the column out")
}

fn is_too_deep(leaf: &Element<'_>) -> bool {
    std::iter::successors(leaf.parent(), |group| group.parent()).nth(DEPTH_LIMIT).is_some()
}

/// The wanted leaves below an element, in ascending order.
fn below<'a>(element: Element<'_>, leaves: &'a [usize]) -> &'a [usize] {
    let columns = element.columns();
    let start = leaves.partition_point(|&leaf| leaf < columns.start);
    let end = leaves.partition_point(|&leaf| leaf < columns.end);
    &leaves[start..end]
}

/// The children that hold wanted leaves. If all of an element's leaves are wanted, all children, including
/// those without leaves.
fn children(group: Element<'_>, leaves: &[usize]) -> Result<Vec<TypePtr>> {
    let all = leaves.len() == group.columns().len();
    let mut fields = Vec::new();
    for child in group.children() {
        let leaves = below(child, leaves);
        if all || !leaves.is_empty() {
            fields.push(field(child, leaves)?);
        }
    }
    Ok(fields)
}

/// An element with the wanted leaves below it. Its depth is within [`DEPTH_LIMIT`]: all leaves were checked.
fn field(element: Element<'_>, leaves: &[usize]) -> Result<TypePtr> {
    let repetition = match element.repetition() {
        Some(Repetition::Optional) => TheirRepetition::OPTIONAL,
        Some(Repetition::Repeated) => TheirRepetition::REPEATED,
        _ => TheirRepetition::REQUIRED,
    };
    let made = match element.physical_type().filter(|_| element.is_leaf()) {
        Some(physical_type) => {
            let (precision, scale) = digits(element);
            Type::primitive_type_builder(element.name(), physical(element, physical_type)?)
                .with_repetition(repetition)
                .with_converted_type(converted(element))
                .with_logical_type(logical(element)?)
                .with_length(element.type_length().unwrap_or(-1))
                .with_precision(precision)
                .with_scale(scale)
                .with_id(element.field_id())
                .build()
        }
        None => {
            if is_map(element) && leaves.len() != element.columns().len() {
                let what = format!("expected all columns of the map `{}`, found some", element.path());
                let advice =
                    "a map needs its keys and all of its values: name the whole map or none of its columns";
                return Err(Error::new(what).with_advice(advice));
            }
            Type::group_type_builder(element.name())
                .with_fields(children(element, leaves)?)
                .with_repetition(repetition)
                .with_converted_type(converted(element))
                .with_logical_type(logical(element)?)
                .with_id(element.field_id())
                .build()
        }
    };
    made.map(Arc::new).map_err(|error| theirs(element, &error))
}

/// Precision and scale, -1 if absent; the logical type's come first. A decimal without a scale has the scale 0, as the
/// format says; Impala leaves it out.
fn digits(element: Element<'_>) -> (i32, i32) {
    if let Some(LogicalType::Decimal { scale, precision }) = element.logical_type() {
        return (*precision, *scale);
    }
    let is_decimal = element.converted_type() == Some(ConvertedType::Decimal);
    (element.precision().unwrap_or(-1), element.scale().unwrap_or(if is_decimal { 0 } else { -1 }))
}

pub(crate) fn is_map(element: Element<'_>) -> bool {
    matches!(element.logical_type(), Some(LogicalType::Map))
        || matches!(element.converted_type(), Some(ConvertedType::Map | ConvertedType::MapKeyValue))
}

fn theirs(element: Element<'_>, error: &ParquetError) -> Error {
    Error::new(format!("the schema's element `{:.60}` is not valid: {error}", element.path()))
}

fn physical(element: Element<'_>, of: PhysicalType) -> Result<TheirType> {
    PhysicalType::name_of(of.number()).and_then(|name| name.parse().ok()).ok_or_else(|| {
        let what = format!("expected a known type of the column `{}`, found {}", element.path(), of.number());
        Error::new(what).with_advice("leave the column out")
    })
}

/// A logical type counts alone: the crate derives the converted type from it, and refuses any other. Readers fall back
/// to the physical type for a converted type that they do not know, such as the 24 of old columns of nulls.
fn converted(element: Element<'_>) -> TheirConverted {
    let known = element.converted_type().filter(|_| element.logical_type().is_none());
    known.and_then(|of| ConvertedType::name_of(of.number())?.parse().ok()).unwrap_or(TheirConverted::NONE)
}

fn logical(element: Element<'_>) -> Result<Option<Theirs>> {
    let Some(logical) = element.logical_type() else { return Ok(None) };
    let unknown = |what: &str| {
        let what = format!("expected a known {what} of `{}`", element.path());
        Error::new(what).with_advice("leave the column out")
    };
    let unit = |unit: TimeUnit| match unit {
        TimeUnit::Millis => Ok(TheirUnit::MILLIS),
        TimeUnit::Micros => Ok(TheirUnit::MICROS),
        TimeUnit::Nanos => Ok(TheirUnit::NANOS),
        TimeUnit::Unknown(_) => Err(unknown("unit of time")),
    };
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_string);
    Ok(Some(match logical {
        LogicalType::String => Theirs::String,
        LogicalType::Map => Theirs::Map,
        LogicalType::List => Theirs::List,
        LogicalType::Enum => Theirs::Enum,
        LogicalType::Decimal { scale, precision } => Theirs::decimal(*scale, *precision),
        LogicalType::Date => Theirs::Date,
        LogicalType::Time { is_adjusted_to_utc, unit: of } => Theirs::time(*is_adjusted_to_utc, unit(*of)?),
        LogicalType::Timestamp { is_adjusted_to_utc, unit: of } => {
            Theirs::timestamp(*is_adjusted_to_utc, unit(*of)?)
        }
        // For other widths the crate panics when it derives a converted type.
        LogicalType::Integer { bit_width, .. } if !matches!(bit_width, 8 | 16 | 32 | 64) => {
            let what = format!("expected 8, 16, 32 or 64 bits of `{}`, found {bit_width}", element.path());
            return Err(Error::new(what).with_advice("leave the column out"));
        }
        LogicalType::Integer { bit_width, is_signed } => Theirs::integer(*bit_width, *is_signed),
        LogicalType::Null => Theirs::Unknown,
        LogicalType::Json => Theirs::Json,
        LogicalType::Bson => Theirs::Bson,
        LogicalType::Uuid => Theirs::Uuid,
        LogicalType::Float16 => Theirs::Float16,
        LogicalType::Variant { specification_version } => Theirs::variant(*specification_version),
        LogicalType::Geometry { crs } => Theirs::geometry(text(crs)),
        LogicalType::Geography { crs, algorithm } => {
            let name = |of: &EdgeInterpolationAlgorithm| EdgeInterpolationAlgorithm::name_of(of.number());
            let edges =
                |of| name(of).and_then(|name| name.parse().ok()).ok_or_else(|| unknown("kind of edges"));
            let edges = algorithm.as_ref().map(edges).transpose()?;
            Theirs::geography(text(crs), edges)
        }
        // Readers fall back to the physical type for a logical type that they do not know. The crate does not, for
        // integers.
        LogicalType::File | LogicalType::Unknown { .. }
            if matches!(element.physical_type(), Some(PhysicalType::Int32 | PhysicalType::Int64)) =>
        {
            return Ok(None);
        }
        LogicalType::File => Theirs::_Unknown { field_id: 19 },
        LogicalType::Unknown { id } => Theirs::_Unknown { field_id: *id },
    }))
}
