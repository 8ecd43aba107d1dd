//! Each table: how many rows it has, where its chunks begin, and how its rows become column values.

use std::fmt::{self, Display};
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::LazyLock;
use std::thread;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    Customer, CustomerGenerator, Nation, NationGenerator, OrderGenerator, Part, PartGenerator, PartSupp,
    PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};
use tpchgen::text::TextPool;

use crate::shred::block::LeafBuffer;
use crate::shred::row_maker::RowMaker;
use crate::shred::value_buffer::ValueBuffer;
use crate::tpch::TpchTable;
use crate::tpch::line_items::LineItems;
use crate::tpch::lists::Lists;
use crate::tpch::orders::Orders;
use crate::tpch::rows::{Chunk, ChunkRows, Division, Starts, Table};
use crate::tpch::text::Comments;

/// `tpchgen` needs a text to cut comments from. Comments of this short one are thrown away, since [`Comments`] has
/// the right ones.
static NO_TEXT: LazyLock<TextPool> = LazyLock::new(|| TextPool::new(1024, Distributions::static_default()));

/// The number of rows of a table, and what computes them.
pub(crate) fn maker(table: TpchTable, scale: f64) -> (u64, Box<dyn RowMaker>) {
    match table {
        TpchTable::Region => even(scale, 5, 1, |_, chunk| {
            let rows = RegionGenerator::new_with_distributions_and_text_pool(known(), &NO_TEXT).iter();
            Rows { rows, append: region, comments: Comments::new(1_500_869_201, 72, 1, chunk.first_key()) }
        }),
        TpchTable::Nation => even(scale, 25, 1, |_, chunk| {
            let rows = NationGenerator::new_with_distributions_and_text_pool(known(), &NO_TEXT).iter();
            Rows { rows, append: nation, comments: Comments::new(606_179_079, 72, 1, chunk.first_key()) }
        }),
        TpchTable::Supplier => {
            even(scale, SupplierGenerator::calculate_row_count(scale, 1, 1), 1, |scale, chunk| {
                let (part, parts) = (chunk.part(), chunk.division.chunks);
                let generator = SupplierGenerator::new_with_distributions_and_text_pool;
                let rows = generator(scale, part, parts, known(), &NO_TEXT).iter();
                Suppliers { rows, comments: Comments::new(1_341_315_363, 63, 1, chunk.first_key()) }
            })
        }
        TpchTable::Customer => {
            even(scale, CustomerGenerator::calculate_row_count(scale, 1, 1), 1, |scale, chunk| {
                let (part, parts) = (chunk.part(), chunk.division.chunks);
                let generator = CustomerGenerator::new_with_distributions_and_text_pool;
                let rows = generator(scale, part, parts, known(), &NO_TEXT).iter();
                Rows {
                    rows,
                    append: customer,
                    comments: Comments::new(1_335_826_707, 73, 1, chunk.first_key()),
                }
            })
        }
        TpchTable::Part => even(scale, PartGenerator::calculate_row_count(scale, 1, 1), 1, |scale, chunk| {
            let (part_index, parts) = (chunk.part(), chunk.division.chunks);
            let generator = PartGenerator::new_with_distributions_and_text_pool;
            let rows = generator(scale, part_index, parts, known(), &NO_TEXT).iter();
            Rows { rows, append: part, comments: Comments::new(804_159_733, 14, 1, chunk.first_key()) }
        }),
        TpchTable::PartSupp => {
            even(scale, PartGenerator::calculate_row_count(scale, 1, 1), 4, |scale, chunk| {
                let (part, parts) = (chunk.part(), chunk.division.chunks);
                let rows = PartSuppGenerator::new_with_text_pool(scale, part, parts, &NO_TEXT).iter();
                Rows {
                    rows,
                    append: part_supplier,
                    comments: Comments::new(1_961_692_154, 124, 4, chunk.first_key()),
                }
            })
        }
        TpchTable::Orders => {
            even(scale, OrderGenerator::calculate_row_count(scale, 1, 1), 1, |scale, chunk| {
                Orders::new(scale, chunk.first_key(), orders_of(scale, chunk))
            })
        }
        TpchTable::LineItem => {
            let division = Division::new(OrderGenerator::calculate_row_count(scale, 1, 1));
            let (starts, rows) = line_item_starts(division, scale);
            let open =
                |scale, chunk: Chunk| LineItems::new(scale, chunk.first_key(), orders_of(scale, chunk));
            let table = Table { scale, rows, division, starts: Starts::Listed(starts), open };
            (rows, Box::new(table))
        }
    }
}

fn known() -> &'static Distributions {
    Distributions::static_default()
}

/// A table whose keys have `rows_a_key` rows each.
fn even<R: ChunkRows + 'static>(
    scale: f64,
    keys: i64,
    rows_a_key: u64,
    open: fn(f64, Chunk) -> R,
) -> (u64, Box<dyn RowMaker>) {
    let division = Division::new(keys);
    let rows = keys.max(1) as u64 * rows_a_key;
    let starts = Starts::Every(division.keys_a_chunk * rows_a_key);
    (rows, Box::new(Table { scale, rows, division, starts, open }))
}

/// The number of orders of a chunk.
fn orders_of(scale: f64, chunk: Chunk) -> u64 {
    OrderGenerator::calculate_row_count(scale, chunk.part(), chunk.division.chunks) as u64
}

/// Rows that `tpchgen` computes, but for their last column, the comment.
struct Rows<I: Iterator> {
    rows: I,
    append: fn(row: &I::Item, leaves: &mut [LeafBuffer]),
    comments: Comments,
}

impl<I: Iterator> fmt::Debug for Rows<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("comments", &self.comments).finish_non_exhaustive()
    }
}

impl<I: Iterator> ChunkRows for Rows<I> {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let [values @ .., comment] = leaves else { return 0 };
        let mut made = 0;
        for row in self.rows.by_ref().take(most) {
            (self.append)(&row, values);
            self.comments.draw();
            made += 1;
        }
        self.comments.append(comment);
        made
    }

    fn skip(&mut self, rows: u64) {
        for _ in self.rows.by_ref().take(rows as usize) {
            self.comments.draw();
        }
        self.comments.forget();
    }
}

/// Suppliers: in one of a thousand comments, words are replaced by a complaint or a recommendation.
#[derive(Debug)]
struct Suppliers<I> {
    rows: I,
    comments: Comments,
}

impl<I: Iterator<Item = Supplier>> ChunkRows for Suppliers<I> {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let [values @ .., comment] = leaves else { return 0 };
        let mut made = 0;
        for row in self.rows.by_ref().take(most) {
            supplier(&row, values);
            self.comments.draw();
            self.comments.append(comment);
            if let ValueBuffer::Bytes(strings) = &mut comment.values {
                replace(&row.s_comment, &mut strings.data);
            }
            made += 1;
        }
        made
    }

    fn skip(&mut self, rows: u64) {
        for _ in self.rows.by_ref().take(rows as usize) {
            self.comments.draw();
        }
        self.comments.forget();
    }
}

/// Copies what `tpchgen` wrote into a comment of the same length, if it did, to the end of `data`. Where it is
/// depends on the length alone, and no word of the grammar begins with a capital C or R.
fn replace(comment: &str, data: &mut [u8]) {
    let complaint = SupplierGenerator::BBB_COMPLAINT_TEXT;
    let recommendation = SupplierGenerator::BBB_RECOMMEND_TEXT;
    let Some(start) = data.len().checked_sub(comment.len()) else { return };
    for text in [SupplierGenerator::BBB_BASE_TEXT, complaint, recommendation] {
        if let Some(at) = comment.find(text)
            && let Some(place) = data[start + at..].get_mut(..text.len())
        {
            place.copy_from_slice(text.as_bytes());
        }
    }
}

/// The first line item of each chunk of orders, and the number of all. Orders have 1 to 7 line items, drawn from
/// a stream that can be entered anywhere, so all cores count.
fn line_item_starts(division: Division, scale: f64) -> (Vec<u64>, u64) {
    let chunks = division.chunks as usize;
    let mut counts = vec![0u64; chunks];
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(chunks.div_ceil(64));
    thread::scope(|scope| {
        let mut first = 0;
        for share in counts.chunks_mut(chunks.div_ceil(cores)) {
            let range = first..first + share.len();
            first = range.end;
            scope.spawn(move || count_line_items(division, scale, range, share));
        }
    });
    let mut next = 0;
    let starts = counts.iter().map(|count| {
        let start = next;
        next += count;
        start
    });
    let starts = starts.collect();
    (starts, next)
}

/// Counts the line items of some chunks.
fn count_line_items(division: Division, scale: f64, chunks: Range<usize>, counts: &mut [u64]) {
    let mut lines = OrderGenerator::create_line_count_random();
    lines.advance_rows((chunks.start as u64 * division.keys_a_chunk) as i64);
    for (chunk, count) in chunks.zip(counts) {
        for _ in 0..OrderGenerator::calculate_row_count(scale, chunk as i32 + 1, division.chunks) {
            *count += lines.next_value() as u64;
            lines.row_finished();
        }
    }
}

// The buffers are those that `ValueBuffer::new` makes for the columns in `columns.rs`; values of another column's
// type would be lost, which the comparison with `tpchgen`'s own rows in the tests would show.

pub(crate) fn int64(leaf: &mut LeafBuffer, value: i64) {
    if let ValueBuffer::Int64(values) = &mut leaf.values {
        values.push(value);
    }
}

/// The index of a value in the column's dictionary.
pub(crate) fn index(leaf: &mut LeafBuffer, index: u32) {
    if let ValueBuffer::Indices(values) = &mut leaf.values {
        values.push(index);
    }
}

/// A prefix and a number of at least nine digits.
pub(crate) fn numbered(leaf: &mut LeafBuffer, prefix: &str, number: i64) {
    if let ValueBuffer::Bytes(strings) = &mut leaf.values {
        let mut digits = [b'0'; 20];
        let (mut at, mut left) = (digits.len(), number.unsigned_abs());
        while left > 0 {
            at -= 1;
            digits[at] += (left % 10) as u8;
            left /= 10;
        }
        strings.data.extend_from_slice(prefix.as_bytes());
        strings.data.extend_from_slice(&digits[at.min(digits.len() - 9)..]);
        strings.push_end();
    }
}

fn printed(leaf: &mut LeafBuffer, value: impl Display) {
    if let ValueBuffer::Bytes(strings) = &mut leaf.values {
        // Writing to memory cannot fail.
        let _ = write!(strings.data, "{value}");
        strings.push_end();
    }
}

fn region(row: &Region<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name] = leaves else { return };
    index(key, row.r_regionkey as u32);
    index(name, Lists::get().regions.index(row.r_name));
}

fn nation(row: &Nation<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, region] = leaves else { return };
    index(key, row.n_nationkey as u32);
    index(name, Lists::get().nations.index(row.n_name));
    index(region, row.n_regionkey as u32);
}

fn supplier(row: &Supplier, leaves: &mut [LeafBuffer]) {
    let [key, name, address, nation, phone, balance] = leaves else { return };
    int64(key, row.s_suppkey);
    numbered(name, "Supplier#", row.s_suppkey);
    printed(address, &row.s_address);
    index(nation, row.s_nationkey as u32);
    printed(phone, &row.s_phone);
    int64(balance, row.s_acctbal.0);
}

fn customer(row: &Customer<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, address, nation, phone, balance, segment] = leaves else { return };
    int64(key, row.c_custkey);
    numbered(name, "Customer#", row.c_custkey);
    printed(address, &row.c_address);
    index(nation, row.c_nationkey as u32);
    printed(phone, &row.c_phone);
    int64(balance, row.c_acctbal.0);
    index(segment, Lists::get().segments.index(row.c_mktsegment));
}

fn part(row: &Part<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, maker, brand, kind, size, container, price] = leaves else { return };
    let lists = Lists::get();
    int64(key, row.p_partkey);
    printed(name, &row.p_name);
    index(maker, lists.manufacturers.index(&row.p_mfgr.to_string()));
    index(brand, lists.brands.index(&row.p_brand.to_string()));
    index(kind, lists.part_types.index(row.p_type));
    index(size, row.p_size as u32 - 1);
    index(container, lists.containers.index(row.p_container));
    int64(price, row.p_retailprice.0);
}

fn part_supplier(row: &PartSupp<'_>, leaves: &mut [LeafBuffer]) {
    let [part, supplier, available, cost] = leaves else { return };
    int64(part, row.ps_partkey);
    int64(supplier, row.ps_suppkey);
    index(available, row.ps_availqty as u32 - 1);
    int64(cost, row.ps_supplycost.0);
}
