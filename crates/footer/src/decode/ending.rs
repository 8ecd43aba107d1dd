//! What follows the row groups in a footer: keys and values, the writer's name, column orders, encryption.
//!
//! The walk hands over field by field; texts are kept as ranges of the footer. Files of one table mostly end in the
//! same bytes, at other places: what was found in one is then shared by the next ([`crate::decode::carried`]).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{Fault, FaultKind};
use crate::schema::enums::ColumnOrder;
use crate::thrift::cursor::{BINARY, Cursor, LIST, STOP, STRUCT, Step};

/// Keys and values as ranges of the footer.
type KeyValueRanges = Vec<(Range<u32>, Option<Range<u32>>)>;

/// What follows the row groups. Text, which need not be UTF-8, is kept as ranges of the footer.
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
    /// Where it starts in the footer that it was walked in: all places count from there.
    pub start: usize,
}

/// A tail, and where the same bytes start in the footer at hand.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub tail: Arc<Tail>,
    pub start: usize,
}

/// What follows the row groups, walked to at once or when it is asked for.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    Walked(Shared),
    /// None if it was found to be malformed. Boxed, as footers are moved more often than this is made.
    Later(Box<OnceLock<Option<Tail>>>),
}

impl Behind {
    /// What the walk has found, or finds now.
    pub fn get(&self, walk: impl FnOnce() -> Option<Tail>) -> Option<Found<'_>> {
        match self {
            Self::Walked(Shared { tail, start }) => Some(Found { tail, start: *start }),
            Self::Later(tail) => {
                tail.get_or_init(walk).as_ref().map(|tail| Found { tail, start: tail.start })
            }
        }
    }
}

/// A tail and where it starts in the footer at hand.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub tail: &'a Tail,
    start: usize,
}

impl Found<'_> {
    /// Where in the footer at hand a place of the tail is.
    pub fn place(&self, place: usize) -> usize {
        place - self.tail.start + self.start
    }

    /// As [`Self::place`] of a range.
    pub fn range(&self, range: &Range<u32>) -> Range<usize> {
        self.place(range.start as usize)..self.place(range.end as usize)
    }
}

impl Tail {
    /// Takes a field of `FileMetaData` behind the row groups, of type `wire`; others are skipped.
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

/// The range of the bytes that `take` takes, whose length it returns.
fn range_of(cursor: &mut Cursor<'_>, take: impl FnOnce(&mut Cursor<'_>) -> Step<usize>) -> Step<Range<u32>> {
    let len = take(cursor)?;
    // The footer's length has 32 bits.
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

/// Keys and values should be UTF-8. Arrow's libraries write whatever bytes they are given, and what is
/// said beside the data is no reason to refuse a file.
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
    // Mostly all are the same, in as few bytes as can be: looked at one by one they took 2 % of the time of a whole
    // footer, while a second thread had nothing to do.
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

/// The union that says that a column has the order of its type: field 1, an empty struct.
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
    fn column_orders_are_the_same_in_the_usual_bytes_and_in_others() {
        use ColumnOrder::{Ieee754TotalOrder, TypeOrder, Unknown};
        // The usual three bytes twice; a struct with a field of its own; an order that is not known; the usual ones
        // again; another one that is known.
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
