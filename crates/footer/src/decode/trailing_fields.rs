//! The fields after the row groups of a footer: key-value metadata, `created_by`, column orders, encryption.
//!
//! The walk passes in one field at a time; text is stored as ranges of the footer. Files of one table mostly
//! end in the same bytes at different offsets, so the next footer shares what was found in the previous one
//! ([`crate::decode::carried`]).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{Fault, FaultKind};
use crate::schema::enums::ColumnOrder;
use crate::thrift::cursor::{BINARY, Cursor, LIST, STOP, STRUCT, Step};

/// Key-value metadata as ranges of the footer.
type KeyValueRanges = Vec<(Range<u32>, Option<Range<u32>>)>;

/// The fields after the row groups. Text, which need not be UTF-8, is stored as ranges of the footer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub key_values: Option<KeyValueRanges>,
    pub created_by: Option<Range<u32>>,
    pub column_orders: Option<Vec<ColumnOrder>>,
    /// Where the `EncryptionAlgorithm` union starts.
    pub encryption_algorithm: Option<u32>,
    pub footer_signing_key_metadata: Option<Range<u32>>,
    /// Where the footer's struct ends.
    pub end: usize,
    /// Where the fields start in the footer in which they were walked; all offsets are relative to it.
    pub start: usize,
}

/// A tail, and where its bytes start in the current footer.
#[derive(Debug, Clone)]
pub(crate) struct SharedTail {
    pub tail: Arc<Tail>,
    pub start: usize,
}

/// The fields after the row groups, walked immediately or on demand.
#[derive(Debug, Clone)]
pub(crate) enum LazyTail {
    Walked(SharedTail),
    /// `None` inside if malformed. Boxed because footers are moved more often than this is created.
    Later(Box<OnceLock<Option<Tail>>>),
}

impl LazyTail {
    /// Returns what the walk found, running it first if necessary.
    pub fn get(&self, walk: impl FnOnce() -> Option<Tail>) -> Option<FoundTail<'_>> {
        match self {
            Self::Walked(SharedTail { tail, start }) => Some(FoundTail { tail, start: *start }),
            Self::Later(tail) => {
                tail.get_or_init(walk).as_ref().map(|tail| FoundTail { tail, start: tail.start })
            }
        }
    }
}

/// A tail and where it starts in the current footer.
#[derive(Clone, Copy)]
pub(crate) struct FoundTail<'a> {
    pub tail: &'a Tail,
    start: usize,
}

impl FoundTail<'_> {
    /// Translates an offset of the tail into the current footer.
    pub fn place(&self, place: usize) -> usize {
        place - self.tail.start + self.start
    }

    /// Like [`Self::place`], for a range.
    pub fn range(&self, range: &Range<u32>) -> Range<usize> {
        self.place(range.start as usize)..self.place(range.end as usize)
    }
}

impl Tail {
    /// Reads a field of `FileMetaData` after the row groups, of type `wire`; skips unknown fields.
    pub fn field(&mut self, cursor: &mut Cursor<'_>, id: i16, wire: u8) -> Step<()> {
        match (id, wire) {
            (5, LIST) => self.key_values = key_values(cursor)?,
            (6, BINARY) => {
                self.created_by = Some(range_of(cursor, |cursor| cursor.binary().map(<[u8]>::len))?)
            }
            (7, LIST) => self.column_orders = column_orders(cursor)?,
            (8, STRUCT) => {
                self.encryption_algorithm = Some(cursor.at as u32);
                cursor.skip(STRUCT)?;
            }
            (9, BINARY) => {
                let range = range_of(cursor, |cursor| cursor.binary().map(<[u8]>::len))?;
                self.footer_signing_key_metadata = Some(range);
            }
            (_, wire) => cursor.skip(wire)?,
        }
        Ok(())
    }
}

/// The range of the value that `take` reads and whose length it returns.
fn range_of(cursor: &mut Cursor<'_>, take: impl FnOnce(&mut Cursor<'_>) -> Step<usize>) -> Step<Range<u32>> {
    let len = take(cursor)?;
    // A footer's length has 32 bits.
    Ok((cursor.at - len) as u32..cursor.at as u32)
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
fn key_value(cursor: &mut Cursor<'_>) -> Step<(Range<u32>, Option<Range<u32>>)> {
    let start = cursor.at;
    let (mut key, mut value, mut last) = (None, None, 0);
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, BINARY) => key = Some(range_of(cursor, |cursor| cursor.binary().map(<[u8]>::len))?),
            (2, BINARY) => value = Some(range_of(cursor, |cursor| cursor.binary().map(<[u8]>::len))?),
            (_, wire) => cursor.skip(wire)?,
        }
    }
    Ok((key.ok_or(Fault::new(start, FaultKind::Missing { field: "key" }))?, value))
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
    loop {
        let field = cursor.field(&mut last)?;
        if field.wire == STOP {
            return Ok(order);
        }
        cursor.skip(field.wire)?;
        order = match field.id {
            1 => ColumnOrder::TypeOrder,
            2 => ColumnOrder::Ieee754TotalOrder,
            3 => ColumnOrder::Int96TimestampOrder,
            id => ColumnOrder::Unknown(id),
        };
    }
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
