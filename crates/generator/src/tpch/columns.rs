//! The columns of each table: names and types as in TPC-H, the dictionaries of columns with few values.

use std::ops::RangeInclusive;

use crate::benchmark::columns::{Column, listed, listed_numbers};
use crate::draw::value_spec::ValueSpec;
use crate::tpch::TpchTable;
use crate::tpch::lists::{Lists, WordList};
use crate::types::logical_type::{LogicalType, Physical};

/// Days from 1970-01-01 to the first date, 1992-01-01.
pub(crate) const FIRST_DAY: i32 = 8035;
/// 1992-01-01 to 1998-12-31.
const DAYS: i32 = 2557;

const INT64: LogicalType = LogicalType::Integer { bits: 64, signed: true };
const INT32: LogicalType = LogicalType::Integer { bits: 32, signed: true };
const MONEY: LogicalType = LogicalType::Decimal { precision: 15, scale: 2, physical: Physical::Int64 };

/// Values that all differ or nearly so; of strings, the average length.
fn computed(mean_bytes: f64) -> ValueSpec {
    ValueSpec::Computed { mean_bytes, repeats: false }
}

fn key(name: &str) -> Column {
    Column::new(name, INT64, computed(8.0))
}

fn money(name: &str) -> Column {
    Column::new(name, MONEY, computed(8.0))
}

fn text(name: &str, mean_bytes: f64) -> Column {
    Column::new(name, LogicalType::String, computed(mean_bytes))
}

fn numbers(name: &str, kind: LogicalType, values: impl Iterator<Item = i64>) -> Column {
    let values = listed_numbers(&kind, values);
    Column::new(name, kind, values)
}

fn listed_int32(name: &str, values: RangeInclusive<i64>) -> Column {
    numbers(name, INT32, values)
}

fn listed_int64(name: &str, values: RangeInclusive<i64>) -> Column {
    numbers(name, INT64, values)
}

/// Hundredths.
fn listed_money(name: &str, values: impl Iterator<Item = i64>) -> Column {
    numbers(name, MONEY, values)
}

fn date(name: &str) -> Column {
    numbers(name, LogicalType::Date, (FIRST_DAY..FIRST_DAY + DAYS).map(i64::from))
}

/// Words of a list, equally likely.
fn words(name: &str, list: &WordList) -> Column {
    let entries = list.words().iter().map(|word| (word.as_bytes().to_vec(), 1.0));
    Column::new(name, LogicalType::String, listed(entries.collect()))
}

/// Words of a list with their weights, in its order.
fn weighted(name: &str, list: &WordList, weights: &[f64]) -> Column {
    let entries = list.words().iter().map(|word| word.as_bytes().to_vec()).zip(weights.iter().copied());
    Column::new(name, LogicalType::String, listed(entries.collect()))
}

/// The columns of a table, in order.
pub(crate) fn columns(table: TpchTable) -> Vec<Column> {
    let lists = Lists::get();
    match table {
        TpchTable::Region => {
            vec![listed_int64("r_regionkey", 0..=4), words("r_name", &lists.regions), text("r_comment", 70.0)]
        }
        TpchTable::Nation => vec![
            listed_int64("n_nationkey", 0..=24),
            words("n_name", &lists.nations),
            listed_int64("n_regionkey", 0..=4),
            text("n_comment", 75.0),
        ],
        TpchTable::Supplier => vec![
            key("s_suppkey"),
            text("s_name", 18.0),
            text("s_address", 25.0),
            listed_int64("s_nationkey", 0..=24),
            text("s_phone", 15.0),
            money("s_acctbal"),
            text("s_comment", 62.5),
        ],
        TpchTable::Customer => vec![
            key("c_custkey"),
            text("c_name", 18.0),
            text("c_address", 25.0),
            listed_int64("c_nationkey", 0..=24),
            text("c_phone", 15.0),
            money("c_acctbal"),
            words("c_mktsegment", &lists.segments),
            text("c_comment", 72.5),
        ],
        TpchTable::Part => vec![
            key("p_partkey"),
            text("p_name", 32.8),
            words("p_mfgr", &lists.manufacturers),
            words("p_brand", &lists.brands),
            words("p_type", &lists.part_types),
            listed_int32("p_size", 1..=50),
            words("p_container", &lists.containers),
            money("p_retailprice"),
            text("p_comment", 13.5),
        ],
        TpchTable::PartSupp => vec![
            key("ps_partkey"),
            key("ps_suppkey"),
            listed_int32("ps_availqty", 1..=9999),
            money("ps_supplycost"),
            text("ps_comment", 123.5),
        ],
        TpchTable::Orders => vec![
            key("o_orderkey"),
            key("o_custkey"),
            weighted("o_orderstatus", &lists.statuses, &[48.6, 48.8, 2.6]),
            money("o_totalprice"),
            date("o_orderdate"),
            words("o_orderpriority", &lists.priorities),
            text("o_clerk", 15.0),
            listed_int32("o_shippriority", 0..=0),
            text("o_comment", 48.5),
        ],
        TpchTable::LineItem => vec![
            key("l_orderkey"),
            key("l_partkey"),
            key("l_suppkey"),
            listed_int32("l_linenumber", 1..=7),
            listed_money("l_quantity", (1..=50).map(|quantity| quantity * 100)),
            money("l_extendedprice"),
            listed_money("l_discount", 0..=10),
            listed_money("l_tax", 0..=8),
            weighted("l_returnflag", &lists.flags, &[24.7, 50.6, 24.7]),
            weighted("l_linestatus", &lists.line_statuses, &[50.0, 50.0]),
            date("l_shipdate"),
            date("l_commitdate"),
            date("l_receiptdate"),
            words("l_shipinstruct", &lists.instructions),
            words("l_shipmode", &lists.modes),
            text("l_comment", 26.5),
        ],
    }
}
