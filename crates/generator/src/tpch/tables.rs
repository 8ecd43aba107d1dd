//! Each table: how many rows it has, where its chunks begin, and how its rows become column values.

use std::fmt::Display;
use std::io::Write;
use std::sync::LazyLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    Customer, CustomerGenerator, Nation, NationGenerator, OrderGenerator, Part, PartGenerator, PartSupp,
    PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};
use tpchgen::text::TextPool;

use crate::benchmark::Benchmark;
use crate::benchmark::rows::{Chunk, ChunkRows, Maker, Table};
use crate::shred::block::LeafBuffer;
use crate::shred::value_buffer::ValueBuffer;
use crate::tpch::line_items::LineItems;
use crate::tpch::lists::Lists;
use crate::tpch::orders::Orders;
use crate::tpch::text::Comments;

/// `tpchgen` needs a text to cut comments from. Comments of this short one are thrown away, since [`Comments`] has
/// the right ones.
static NO_TEXT: LazyLock<TextPool> = LazyLock::new(|| TextPool::new(1024, Distributions::static_default()));

/// The rows of a table that `tpchgen` divides into parts, with comments of this average length, drawn by a seed.
macro_rules! divided {
    ($generator:ident($scale:ident), $append:ident, $changed:expr, $seed:literal, $average:literal) => {
        even($generator::calculate_row_count($scale, 1, 1), 1, move |chunk| {
            let (part, parts) = (chunk.part(), chunk.division.chunks);
            let generator = $generator::new_with_distributions_and_text_pool;
            let rows = generator($scale, part, parts, known(), &NO_TEXT).iter();
            Rows {
                rows,
                append: $append,
                changed: $changed,
                comments: comments($scale, $seed, $average, 1, chunk),
            }
        })
    };
}

/// The number of rows of a table, and their maker.
pub(crate) fn maker(table: &str, scale: f64) -> Maker {
    match table {
        "region" => even(5, 1, move |chunk| {
            let rows = RegionGenerator::new_with_distributions_and_text_pool(known(), &NO_TEXT).iter();
            Rows {
                rows,
                append: region,
                changed: |_| None,
                comments: comments(scale, 1_500_869_201, 72, 1, chunk),
            }
        }),
        "nation" => even(25, 1, move |chunk| {
            let rows = NationGenerator::new_with_distributions_and_text_pool(known(), &NO_TEXT).iter();
            Rows {
                rows,
                append: nation,
                changed: |_| None,
                comments: comments(scale, 606_179_079, 72, 1, chunk),
            }
        }),
        "supplier" => divided!(SupplierGenerator(scale), supplier, judged, 1_341_315_363, 63),
        "customer" => divided!(CustomerGenerator(scale), customer, |_| None, 1_335_826_707, 73),
        "part" => divided!(PartGenerator(scale), part, |_| None, 804_159_733, 14),
        "partsupp" => even(PartGenerator::calculate_row_count(scale, 1, 1), 4, move |chunk| {
            let (part, parts) = (chunk.part(), chunk.division.chunks);
            let rows = PartSuppGenerator::new_with_text_pool(scale, part, parts, &NO_TEXT).iter();
            let comments = comments(scale, 1_961_692_154, 124, 4, chunk);
            Rows { rows, append: part_supplier, changed: |_| None, comments }
        }),
        "orders" => even(orders(scale), 1, move |chunk: Chunk| Orders::new(scale, chunk.keys())),
        _ => {
            let open = move |chunk: Chunk| LineItems::new(scale, chunk.keys());
            Table::counted(Benchmark::TpcH, orders(scale), count_line_items, open)
        }
    }
}

fn orders(scale: f64) -> i64 {
    OrderGenerator::calculate_row_count(scale, 1, 1)
}

/// A table whose keys have `rows_a_key` rows each.
fn even<R: ChunkRows + 'static>(
    keys: i64,
    rows_a_key: u64,
    open: impl Fn(Chunk) -> R + Send + Sync + 'static,
) -> Maker {
    Table::even(Benchmark::TpcH, keys, rows_a_key, open)
}

fn comments(scale: f64, seed: u64, average: i32, rows_a_key: usize, chunk: Chunk) -> Comments {
    Comments::new(scale, seed, average, rows_a_key, chunk.keys().start)
}

fn known() -> &'static Distributions {
    Distributions::static_default()
}

/// Rows that `tpchgen` computes, but for their last column, the comment.
struct Rows<I: Iterator> {
    rows: I,
    append: fn(row: &I::Item, leaves: &mut [LeafBuffer]),
    /// The comment of `tpchgen`, if it differs from the text.
    changed: fn(row: &I::Item) -> Option<&str>,
    comments: Comments,
}

impl<I: Iterator + Send> ChunkRows for Rows<I> {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let [values @ .., comment] = leaves else { return 0 };
        let (mut made, mut changed) = (0, Vec::new());
        for row in self.rows.by_ref().take(most) {
            (self.append)(&row, values);
            changed.extend((self.changed)(&row).map(|text| (made, text.to_owned())));
            self.comments.draw();
            made += 1;
        }
        self.comments.append(comment);
        if let ValueBuffer::Bytes(strings) = &mut comment.values {
            let first = strings.ends.len() - made;
            for (row, text) in changed {
                replace(&text, &mut strings.data[..strings.ends[first + row] as usize]);
            }
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

/// The comment of a supplier in which words are replaced by a complaint or a recommendation: one of a thousand.
fn judged(row: &Supplier) -> Option<&str> {
    Some(row.s_comment.as_str()).filter(|comment| comment.contains(SupplierGenerator::BBB_BASE_TEXT))
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

/// Counts the line items of some chunks from `first` on. Orders have 1 to 7, drawn from a stream that can be entered
/// anywhere.
fn count_line_items(first: Chunk, counts: &mut [u64]) {
    let mut lines = OrderGenerator::create_line_count_random();
    lines.advance_rows(first.keys().start as i64);
    let mut chunk = first;
    for count in counts {
        for _ in chunk.keys() {
            *count += lines.next_value() as u64;
            lines.row_finished();
        }
        chunk = chunk.next();
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
