//! The common type of a column in several files: one file may have a dictionary where another has plain
//! values, and only NULLs, hence no type, where another has values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray, new_null_array,
};
use arrow_schema::DataType::{
    Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, List, Map, Null, Struct,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};

/// Returns the type of a dictionary's values, and other types unchanged.
pub(crate) fn values_of(data_type: &DataType) -> &DataType {
    match data_type {
        Dictionary(_, values) => match values.as_ref() {
            DataType::Utf8 | DataType::LargeUtf8 => &DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => &DataType::BinaryView,
            other => other,
        },
        other => other,
    }
}

/// Returns a field whose leaf types `leaf` computes from the corresponding leaves of both fields. The fields
/// have the same values; see [`differences`](crate::parquet_files::schema::differences).
pub(crate) fn merged(first: &Field, other: &Field, leaf: fn(&DataType, &DataType) -> DataType) -> Field {
    let item = |a: &FieldRef, b: &FieldRef| Arc::new(merged(a, b, leaf));
    let data_type = match (first.data_type(), other.data_type()) {
        (List(a), List(b)) => List(item(a, b)),
        (LargeList(a), LargeList(b) | List(b)) => LargeList(item(a, b)),
        (FixedSizeList(a, size), FixedSizeList(b, _)) => FixedSizeList(item(a, b), *size),
        (Map(a, sorted), Map(b, _)) => Map(item(a, b), *sorted),
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            Struct(a.iter().zip(b).map(|(a, b)| item(a, b)).collect())
        }
        (own, theirs) => leaf(own, theirs),
    };
    first.clone().with_data_type(data_type)
}

/// Returns the field that can contain the values of both.
pub(crate) fn common(first: &Field, other: &Field) -> Field {
    if *first.data_type() == Null {
        return other.clone().with_nullable(true);
    }
    let either = |own: &DataType, theirs: &DataType| match (own, theirs) {
        (Null, _) => theirs.clone(),
        (_, Null) => own.clone(),
        _ if own == theirs => own.clone(),
        _ => values_of(own).clone(),
    };
    let nullable = first.is_nullable() || other.is_nullable() || *other.data_type() == Null;
    merged(first, other, either).with_nullable(nullable)
}

/// Returns the schema that a file's reader must produce if it would produce dictionaries where `common` has
/// none; `None` if they agree.
pub(crate) fn without_dictionaries(own: &Schema, common: &Schema) -> Option<Schema> {
    let unfold = |own: &DataType, common: &DataType| match own {
        Dictionary(..) if own != common => values_of(own).clone(),
        _ => own.clone(),
    };
    let fields: Vec<Field> = own
        .fields()
        .iter()
        .map(|field| match common.field_with_name(field.name()) {
            Ok(common) => merged(field, common, unfold),
            Err(_) => field.as_ref().clone(),
        })
        .collect();
    let wanted = Schema::new_with_metadata(fields, own.metadata().clone());
    (wanted != *own).then_some(wanted)
}

/// Returns the schema with the dictionaries that the `parquet` crate reads from every file, if another names others:
/// of text and bytes, with keys that number all entries of a dictionary page. Writers store the keys of one
/// dictionary, although a row group may have several.
pub(crate) fn with_readable_dictionaries(schema: &Schema) -> Option<Schema> {
    let readable = |own: &DataType, _: &DataType| match own {
        // `is_binary` would include values of a fixed size, whose dictionaries the crate panics on.
        Dictionary(_, values)
            if values.is_string() || matches!(**values, Binary | LargeBinary | BinaryView) =>
        {
            Dictionary(Box::new(DataType::Int32), values.clone())
        }
        Dictionary(_, values) => values.as_ref().clone(),
        _ => own.clone(),
    };
    let fields: Vec<Field> = schema.fields().iter().map(|field| merged(field, field, readable)).collect();
    let wanted = Schema::new_with_metadata(fields, schema.metadata().clone());
    (wanted != *schema).then_some(wanted)
}

/// Whether a type is, or contains, the null type of columns that have only NULLs.
pub(crate) fn is_untyped(data_type: &DataType) -> bool {
    match data_type {
        Null => true,
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => is_untyped(item.data_type()),
        Struct(fields) => fields.iter().any(|field| is_untyped(field.data_type())),
        _ => false,
    }
}

/// Whether structs within a type have other fields than in `wanted`: a table got or lost some after a file was written.
pub(crate) fn has_other_fields(own: &DataType, wanted: &DataType) -> bool {
    let differ = |own: &FieldRef, wanted: &FieldRef| has_other_fields(own.data_type(), wanted.data_type());
    match (own, wanted) {
        (List(own), List(wanted))
        | (LargeList(own), LargeList(wanted))
        | (FixedSizeList(own, _), FixedSizeList(wanted, _)) => differ(own, wanted),
        (Map(own, _), Map(wanted, _)) => match (own.data_type(), wanted.data_type()) {
            // Writers name keys and values in several ways.
            (Struct(own), Struct(wanted)) => own.iter().zip(wanted).any(|(own, wanted)| differ(own, wanted)),
            _ => false,
        },
        (Struct(own), Struct(wanted)) => {
            let mut pairs = own.iter().zip(wanted);
            own.len() != wanted.len()
                || pairs.any(|(own, wanted)| own.name() != wanted.name() || differ(own, wanted))
        }
        _ => false,
    }
}

/// Returns the same values, with a type where they had none. Structs get the wanted fields, which are NULL where they
/// had none.
pub(crate) fn with_type(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    if !is_untyped(array.data_type()) && !has_other_fields(array.data_type(), wanted) {
        return Ok(Arc::clone(array));
    }
    let field = |own: &FieldRef, array: &ArrayRef| -> FieldRef {
        let nullable = own.is_nullable() || array.null_count() > 0;
        Arc::new(own.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(nullable))
    };
    let of_struct = |array: &StructArray, fields: &arrow_schema::Fields| {
        let pairs = array.columns().iter().zip(fields);
        let columns = pairs.map(|(array, wanted)| with_type(array, wanted.data_type()));
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let fields = array.fields().iter().zip(&columns).map(|(own, array)| field(own, array));
        StructArray::try_new_with_length(fields.collect(), columns, array.nulls().cloned(), array.len())
    };
    Ok(match (array.data_type(), wanted) {
        (Null, wanted) => new_null_array(wanted, array.len()),
        (List(own), List(item)) => {
            let list = array.as_list::<i32>();
            let values = with_type(list.values(), item.data_type())?;
            let (own, offsets) = (field(own, &values), list.offsets().clone());
            Arc::new(ListArray::try_new(own, offsets, values, list.nulls().cloned())?)
        }
        (LargeList(own), LargeList(item)) => {
            let list = array.as_list::<i64>();
            let values = with_type(list.values(), item.data_type())?;
            let (own, offsets) = (field(own, &values), list.offsets().clone());
            Arc::new(LargeListArray::try_new(own, offsets, values, list.nulls().cloned())?)
        }
        (FixedSizeList(own, size), FixedSizeList(item, _)) => {
            let list = array.as_fixed_size_list();
            let values = with_type(list.values(), item.data_type())?;
            let own = field(own, &values);
            Arc::new(FixedSizeListArray::try_new(own, *size, values, list.nulls().cloned())?)
        }
        (Map(own, sorted), Map(entries, _)) => {
            let (map, Struct(wanted)) = (array.as_map(), entries.data_type()) else {
                return Ok(Arc::clone(array));
            };
            let entries = of_struct(map.entries(), wanted)?;
            let own = Arc::new(own.as_ref().clone().with_data_type(entries.data_type().clone()));
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(own, offsets, entries, nulls, *sorted)?)
        }
        (own @ Struct(_), Struct(fields)) if has_other_fields(own, wanted) => {
            let array = array.as_struct();
            let columns = fields.iter().map(|field| match array.column_by_name(field.name()) {
                Some(own) => with_type(own, field.data_type()),
                None => Ok(new_null_array(field.data_type(), array.len())),
            });
            let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
            let fields = fields.iter().zip(&columns).map(|(own, array)| field(own, array));
            let nulls = array.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.collect(), columns, nulls, array.len())?)
        }
        (Struct(_), Struct(wanted)) => Arc::new(of_struct(array.as_struct(), wanted)?),
        _ => Arc::clone(array),
    })
}
