//! The fields after the row groups of a footer: key-value metadata, `created_by`, column orders, encryption.
//!
//! The walk passes in one field at a time; text is stored as ranges of the footer.

use std::ops::Range;

use crate::error::Fault;
use crate::schema::enums::ColumnOrder;
use crate::thrift::cursor::{BINARY, Cursor, LIST, STOP, STRUCT, Step, each_field};

/// Key-value metadata as ranges of the footer.
type KeyValueRanges = Vec<(Range<usize>, Option<Range<usize>>)>;

/// The fields after the row groups. Text, which need not be UTF-8, is stored as ranges of the footer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub key_values: Option<KeyValueRanges>,
    pub created_by: Option<Range<usize>>,
    pub column_orders: Option<Vec<ColumnOrder>>,
    /// Where the `EncryptionAlgorithm` union starts.
    pub encryption_algorithm: Option<usize>,
    pub footer_signing_key_metadata: Option<Range<usize>>,
    /// Where the footer's struct ends.
    pub end: usize,
}

impl Tail {
    /// Reads a field of `FileMetaData` after the row groups, of type `wire`; skips unknown fields.
    pub fn field(&mut self, cursor: &mut Cursor<'_>, id: i16, wire: u8) -> Step<()> {
        match (id, wire) {
            (5, LIST) => self.key_values = key_values(cursor)?,
            (6, BINARY) => self.created_by = Some(binary(cursor)?),
            (7, LIST) => self.column_orders = column_orders(cursor)?,
            (8, STRUCT) => {
                self.encryption_algorithm = Some(cursor.at);
                cursor.skip(STRUCT)?;
            }
            (9, BINARY) => self.footer_signing_key_metadata = Some(binary(cursor)?),
            (_, wire) => cursor.skip(wire)?,
        }
        Ok(())
    }
}

/// The range of the bytes or text at the cursor.
fn binary(cursor: &mut Cursor<'_>) -> Step<Range<usize>> {
    let len = cursor.binary()?.len();
    Ok(cursor.at - len..cursor.at)
}

fn key_values(cursor: &mut Cursor<'_>) -> Step<Option<KeyValueRanges>> {
    let start = *cursor;
    let (wire, count) = cursor.list()?;
    if wire != STRUCT && count > 0 {
        *cursor = start;
        cursor.skip(LIST)?;
        return Ok(None);
    }
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push(key_value(cursor)?);
    }
    Ok(Some(pairs))
}

/// Keys and values should be UTF-8, but Arrow's libraries write any bytes, and a comment beside the data is
/// no reason to reject a file.
fn key_value(cursor: &mut Cursor<'_>) -> Step<(Range<usize>, Option<Range<usize>>)> {
    let start = cursor.at;
    let (mut key, mut value) = (None, None);
    each_field!(cursor, {
        (1, BINARY) => key = Some(binary(cursor)?),
        (2, BINARY) => value = Some(binary(cursor)?),
    });
    Ok((key.ok_or(Fault::missing(start, "key"))?, value))
}

fn column_orders(cursor: &mut Cursor<'_>) -> Step<Option<Vec<ColumnOrder>>> {
    let start = *cursor;
    let (wire, count) = cursor.list()?;
    if wire != STRUCT && count > 0 {
        *cursor = start;
        cursor.skip(LIST)?;
        return Ok(None);
    }
    // Usually all orders are the same minimal bytes. Checking them one by one took 2 % of the time of a whole
    // footer while a second thread was idle.
    let rest = cursor.bytes.get(cursor.at..).unwrap_or_default();
    let usual =
        rest.chunks_exact(TYPE_ORDER.len()).take(count).take_while(|order| **order == TYPE_ORDER).count();
    let mut orders = vec![ColumnOrder::TypeOrder; usual];
    cursor.at += usual * TYPE_ORDER.len();
    for _ in usual..count {
        orders.push(column_order(cursor)?);
    }
    Ok(Some(orders))
}

/// The union value for "the order of the column's type": field 1, an empty struct.
const TYPE_ORDER: [u8; 3] = [1 << 4 | STRUCT, STOP, STOP];

fn column_order(cursor: &mut Cursor<'_>) -> Step<ColumnOrder> {
    let (mut order, mut last) = (ColumnOrder::Unknown(0), 0);
    while let Some(field) = cursor.next_field(&mut last)? {
        cursor.skip(field.wire)?;
        order = match field.id {
            1 => ColumnOrder::TypeOrder,
            2 => ColumnOrder::Ieee754TotalOrder,
            3 => ColumnOrder::Int96TimestampOrder,
            id => ColumnOrder::Unknown(id),
        };
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::column_orders;
    use crate::schema::enums::ColumnOrder;
    use crate::thrift::cursor::Cursor;

    #[test]
    fn column_orders_decode_alike_in_usual_and_unusual_encodings() {
        use ColumnOrder::{Ieee754TotalOrder, TypeOrder, Unknown};
        // The usual three bytes twice; a struct with a field; an unknown order; the usual bytes again;
        // another known order.
        let bytes =
            [0x6c, 0x1c, 0, 0, 0x1c, 0, 0, 0x1c, 0x15, 2, 0, 0, 0x9c, 0, 0, 0x1c, 0, 0, 0x2c, 0, 0, 0x77];
        let mut cursor = Cursor::new(&bytes, 0);
        let orders = column_orders(&mut cursor).ok().flatten().unwrap();
        let expected = [TypeOrder, TypeOrder, TypeOrder, Unknown(9), TypeOrder, Ieee754TotalOrder];
        assert_eq!(orders, expected);
        assert_eq!(cursor.at, bytes.len() - 1);
        for end in 0..bytes.len() - 1 {
            let cut = bytes.get(..end).unwrap();
            assert!(column_orders(&mut Cursor::new(cut, 0)).is_err(), "cut at {end}");
        }
        let mut none = Cursor::new(&[0x0c], 0);
        assert_eq!(column_orders(&mut none).ok().flatten(), Some(Vec::new()));
    }
}
