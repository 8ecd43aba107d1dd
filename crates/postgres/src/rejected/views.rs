//! Text and bytes that come back from a Parquet file as views, whatever they were written from.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, ListArray, StringArray, StructArray,
};
use arrow_schema::{ArrowError, DataType, FieldRef};

/// The type in which a column of this type comes back, also inside of structs and lists.
pub(crate) fn as_read(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| {
        let data_type = as_read(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}

/// Returns a column that has come back in the type that it was written in.
///
/// # Errors
/// [`as_read`] does not lead from that type to the column's.
pub(crate) fn as_written(array: &ArrayRef, written: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match (array.data_type(), written) {
        (read, written) if read == written => Arc::clone(array),
        (DataType::Utf8View, DataType::Utf8) => {
            Arc::new(StringArray::from_iter(array.as_string_view().iter()))
        }
        (DataType::Utf8View, DataType::LargeUtf8) => {
            Arc::new(LargeStringArray::from_iter(array.as_string_view().iter()))
        }
        (DataType::BinaryView, DataType::Binary) => {
            Arc::new(BinaryArray::from_iter(array.as_binary_view().iter()))
        }
        (DataType::BinaryView, DataType::LargeBinary) => {
            Arc::new(LargeBinaryArray::from_iter(array.as_binary_view().iter()))
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = as_written(list.values(), item.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let of = array.as_struct();
            let columns = of.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| as_written(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let (fields, nulls) = (fields.clone(), of.nulls().cloned());
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, of.len())?)
        }
        (read, written) => {
            return Err(ArrowError::SchemaError(format!("{read} is not what {written} comes back as")));
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, Int64Array, StringViewArray};
    use arrow_schema::{Field, Fields};

    use super::*;

    #[test]
    fn text_and_bytes_have_the_types_again_that_they_were_written_in() {
        let texts = || StringArray::from(vec![Some("a"), None, Some("a text that is too long for a view")]);
        let large = LargeBinaryArray::from_iter([Some(b"a".as_slice()), None, Some(b"")]);
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
        let list = ListArray::new(item, offsets, Arc::new(texts()), None);
        let fields = ["text", "list"].map(|name| match name {
            "text" => Field::new(name, DataType::Utf8, true),
            _ => Field::new(name, list.data_type().clone(), true),
        });
        let columns: Vec<ArrayRef> = vec![Arc::new(texts()), Arc::new(list)];
        let all = StructArray::new(Fields::from(fields.to_vec()), columns, None);
        let ids = Int64Array::from(vec![1, 2, 3]);
        let written: [ArrayRef; 4] = [Arc::new(texts()), Arc::new(large), Arc::new(all), Arc::new(ids)];
        for written in written {
            let read = views(&written);
            assert_eq!(*read.data_type(), as_read(written.data_type()));
            assert_eq!(&as_written(&read, written.data_type()).unwrap(), &written);
        }
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(as_written(&ids, &DataType::Utf8).is_err());
    }

    /// The same values as a Parquet file gives them back.
    fn views(array: &ArrayRef) -> ArrayRef {
        let read = as_read(array.data_type());
        match (array.data_type(), &read) {
            (DataType::Utf8, _) => Arc::new(StringViewArray::from_iter(array.as_string::<i32>().iter())),
            (DataType::LargeBinary, _) => {
                Arc::new(BinaryViewArray::from_iter(array.as_binary::<i64>().iter()))
            }
            (_, DataType::List(item)) => {
                let list = array.as_list::<i32>();
                let offsets = list.offsets().clone();
                Arc::new(ListArray::new(Arc::clone(item), offsets, views(list.values()), None))
            }
            (_, DataType::Struct(fields)) => {
                let columns = array.as_struct().columns().iter().map(views).collect();
                Arc::new(StructArray::new(fields.clone(), columns, None))
            }
            _ => Arc::clone(array),
        }
    }
}
