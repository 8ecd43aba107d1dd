//! Each table: how many rows it has, where its chunks begin, and how its rows become column values.

use std::fmt::Display;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread;

use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order, OrderGenerator,
    Part, PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};

use crate::shred::block::LeafBuffer;
use crate::shred::row_maker::RowMaker;
use crate::shred::value_buffer::ValueBuffer;
use crate::tpch::TpchTable;
use crate::tpch::columns::FIRST_DAY;
use crate::tpch::lists::Lists;
use crate::tpch::rows::{Division, Starts, Table};

/// The number of rows of a table, and what computes them.
pub(crate) fn maker(table: TpchTable, scale: f64) -> (u64, Box<dyn RowMaker>) {
    /// A table whose keys have `rows_a_key` rows each.
    macro_rules! even {
        ($generator:ident, $keys:expr, $rows_a_key:expr, $append:expr) => {{
            let keys: i64 = $keys;
            let division = Division::of(keys);
            let rows = keys.max(1) as u64 * $rows_a_key;
            let table = Table {
                scale,
                rows,
                chunks: division.chunks,
                starts: Starts::Every(division.keys_a_chunk * $rows_a_key),
                open: |scale, part, parts| $generator::new(scale, part, parts).iter(),
                append: $append,
            };
            (rows, Box::new(table) as Box<dyn RowMaker>)
        }};
    }
    match table {
        TpchTable::Region => even!(RegionGenerator, 5, 1, region),
        TpchTable::Nation => even!(NationGenerator, 25, 1, nation),
        TpchTable::Supplier => {
            even!(SupplierGenerator, SupplierGenerator::calculate_row_count(scale, 1, 1), 1, supplier)
        }
        TpchTable::Customer => {
            even!(CustomerGenerator, CustomerGenerator::calculate_row_count(scale, 1, 1), 1, customer)
        }
        TpchTable::Part => even!(PartGenerator, PartGenerator::calculate_row_count(scale, 1, 1), 1, part),
        TpchTable::PartSupp => {
            even!(PartSuppGenerator, PartGenerator::calculate_row_count(scale, 1, 1), 4, part_supplier)
        }
        TpchTable::Orders => {
            even!(OrderGenerator, OrderGenerator::calculate_row_count(scale, 1, 1), 1, order)
        }
        TpchTable::LineItem => {
            let division = Division::of(OrderGenerator::calculate_row_count(scale, 1, 1));
            let (starts, rows) = line_item_starts(division, scale);
            let table = Table {
                scale,
                rows,
                chunks: division.chunks,
                starts: Starts::Listed(starts),
                open: |scale, part, parts| LineItemGenerator::new(scale, part, parts).iter(),
                append: line_item,
            };
            (rows, Box::new(table) as Box<dyn RowMaker>)
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

fn int64(leaf: &mut LeafBuffer, value: i64) {
    if let ValueBuffer::Int64(values) = &mut leaf.values {
        values.push(value);
    }
}

/// The index of a value in the column's dictionary.
fn index(leaf: &mut LeafBuffer, index: u32) {
    if let ValueBuffer::Indices(values) = &mut leaf.values {
        values.push(index);
    }
}

fn day(leaf: &mut LeafBuffer, date: tpchgen::dates::TPCHDate) {
    index(leaf, (date.to_unix_epoch() - FIRST_DAY) as u32);
}

fn text(leaf: &mut LeafBuffer, value: &str) {
    if let ValueBuffer::Bytes(strings) = &mut leaf.values {
        strings.data.extend_from_slice(value.as_bytes());
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
    let [key, name, comment] = leaves else { return };
    index(key, row.r_regionkey as u32);
    index(name, Lists::get().regions.index(row.r_name));
    text(comment, row.r_comment);
}

fn nation(row: &Nation<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, region, comment] = leaves else { return };
    index(key, row.n_nationkey as u32);
    index(name, Lists::get().nations.index(row.n_name));
    index(region, row.n_regionkey as u32);
    text(comment, row.n_comment);
}

fn supplier(row: &Supplier, leaves: &mut [LeafBuffer]) {
    let [key, name, address, nation, phone, balance, comment] = leaves else { return };
    int64(key, row.s_suppkey);
    printed(name, row.s_name);
    printed(address, &row.s_address);
    index(nation, row.s_nationkey as u32);
    printed(phone, &row.s_phone);
    int64(balance, row.s_acctbal.0);
    text(comment, &row.s_comment);
}

fn customer(row: &Customer<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, address, nation, phone, balance, segment, comment] = leaves else { return };
    int64(key, row.c_custkey);
    printed(name, row.c_name);
    printed(address, &row.c_address);
    index(nation, row.c_nationkey as u32);
    printed(phone, &row.c_phone);
    int64(balance, row.c_acctbal.0);
    index(segment, Lists::get().segments.index(row.c_mktsegment));
    text(comment, row.c_comment);
}

fn part(row: &Part<'_>, leaves: &mut [LeafBuffer]) {
    let [key, name, maker, brand, kind, size, container, price, comment] = leaves else { return };
    let lists = Lists::get();
    int64(key, row.p_partkey);
    printed(name, &row.p_name);
    index(maker, lists.manufacturers.index(&row.p_mfgr.to_string()));
    index(brand, lists.brands.index(&row.p_brand.to_string()));
    index(kind, lists.part_types.index(row.p_type));
    index(size, row.p_size as u32 - 1);
    index(container, lists.containers.index(row.p_container));
    int64(price, row.p_retailprice.0);
    text(comment, row.p_comment);
}

fn part_supplier(row: &PartSupp<'_>, leaves: &mut [LeafBuffer]) {
    let [part, supplier, available, cost, comment] = leaves else { return };
    int64(part, row.ps_partkey);
    int64(supplier, row.ps_suppkey);
    index(available, row.ps_availqty as u32 - 1);
    int64(cost, row.ps_supplycost.0);
    text(comment, row.ps_comment);
}

fn order(row: &Order<'_>, leaves: &mut [LeafBuffer]) {
    let [key, customer, status, price, date, priority, clerk, ship_priority, comment] = leaves else {
        return;
    };
    let lists = Lists::get();
    int64(key, row.o_orderkey);
    int64(customer, row.o_custkey);
    index(status, lists.statuses.index(row.o_orderstatus.as_str()));
    int64(price, row.o_totalprice.0);
    day(date, row.o_orderdate);
    index(priority, lists.priorities.index(row.o_orderpriority));
    printed(clerk, row.o_clerk);
    index(ship_priority, row.o_shippriority as u32);
    text(comment, row.o_comment);
}

fn line_item(row: &LineItem<'_>, leaves: &mut [LeafBuffer]) {
    let [
        order,
        part,
        supplier,
        number,
        quantity,
        price,
        discount,
        tax,
        flag,
        status,
        shipped,
        committed,
        received,
        instruction,
        mode,
        comment,
    ] = leaves
    else {
        return;
    };
    let lists = Lists::get();
    int64(order, row.l_orderkey);
    int64(part, row.l_partkey);
    int64(supplier, row.l_suppkey);
    index(number, row.l_linenumber as u32 - 1);
    index(quantity, row.l_quantity as u32 - 1);
    int64(price, row.l_extendedprice.0);
    index(discount, row.l_discount.0 as u32);
    index(tax, row.l_tax.0 as u32);
    index(flag, lists.flags.index(row.l_returnflag));
    index(status, lists.line_statuses.index(row.l_linestatus));
    day(shipped, row.l_shipdate);
    day(committed, row.l_commitdate);
    day(received, row.l_receiptdate);
    index(instruction, lists.instructions.index(row.l_shipinstruct));
    index(mode, lists.modes.index(row.l_shipmode));
    text(comment, row.l_comment);
}
