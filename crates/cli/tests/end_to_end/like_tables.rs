//! Several files learned at once: columns that hold keys of another file refer to it in generated data.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::harness::sawmill;

/// Random numbers from 0 to below `n`.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    }
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    );
    let batch = batch.unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn read(folder: &Path) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "parquet")) {
        let file = std::fs::File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        batches.extend(reader.map(Result::unwrap));
    }
    batches
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn columns<'a>(batches: &'a [RecordBatch], name: &'a str) -> impl Iterator<Item = &'a ArrayRef> {
    batches.iter().map(move |batch| batch.column_by_name(name).unwrap())
}

fn numbers(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
    columns(batches, column).flat_map(|array| array.as_primitive::<Int64Type>()).collect()
}

fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    columns(batches, column).flat_map(|array| array.as_string::<i32>().iter().map(text)).collect()
}

/// Returns the share of orphans among the non-null values, and the share of nulls.
fn lost<V: std::hash::Hash + Eq>(values: &[Option<V>], keys: &[Option<V>]) -> (f64, f64) {
    let keys: HashSet<&V> = keys.iter().flatten().collect();
    let there: Vec<&V> = values.iter().flatten().collect();
    let orphans = there.iter().filter(|value| !keys.contains(**value)).count();
    (orphans as f64 / there.len() as f64, 1.0 - there.len() as f64 / values.len() as f64)
}

const CUSTOMERS: u64 = 2000;
const ORDERS: u64 = 20_000;

/// Writes customers whose keys have gaps, articles whose keys are texts, orders, and items that follow their orders.
/// Orders choose customers with a skew; one percent refer to unknown customers, a tenth to none.
fn shop(folder: &Path) {
    let mut draw = random(7);
    let customers: Vec<i64> = (0..CUSTOMERS as i64).map(|row| 1000 + row * 7 + row % 3).collect();
    write(
        &folder.join("customers.parquet"),
        vec![
            ("id", Arc::new(Int64Array::from(customers.clone())) as ArrayRef),
            ("credit", Arc::new(Float64Array::from_iter_values((0..CUSTOMERS).map(|_| draw(1000) as f64)))),
        ],
    );
    let article = |number: u64| format!("ART-{:05}", number * 13);
    write(
        &folder.join("articles.parquet"),
        vec![
            ("code", Arc::new(StringArray::from_iter_values((0..500).map(article))) as ArrayRef),
            ("price", Arc::new(Float64Array::from_iter_values((0..500).map(|_| draw(100) as f64)))),
        ],
    );
    let mut customer = || match draw(1000) {
        0..100 => None,
        100..109 => Some(900_000 + draw(50) as i64),
        // A few customers have many orders, a third of them have none.
        _ => {
            let rank = (draw(100) * draw(100) * CUSTOMERS / 10_000) * 2 / 3;
            Some(customers[(rank * 1171 % CUSTOMERS) as usize])
        }
    };
    let of: Int64Array = (0..ORDERS).map(|_| customer()).collect();
    let orders: Vec<i64> = (0..ORDERS as i64).map(|row| row / 8 * 32 + row % 8).collect();
    let (mut items, mut lines) = (Vec::new(), Vec::new());
    for order in &orders {
        for line in 0..draw(6) as i64 {
            items.push(*order);
            lines.push(line + 1);
        }
    }
    let n = items.len();
    write(
        &folder.join("orders.parquet"),
        vec![("order_id", Arc::new(Int64Array::from(orders)) as ArrayRef), ("customer_id", Arc::new(of))],
    );
    write(
        &folder.join("items.parquet"),
        vec![
            ("order_id", Arc::new(Int64Array::from(items)) as ArrayRef),
            ("line", Arc::new(Int64Array::from(lines))),
            ("article", Arc::new(StringArray::from_iter_values((0..n).map(|_| article(draw(500)))))),
        ],
    );
}

#[test]
fn columns_of_keys_refer_to_the_other_files_with_their_skew_orphans_and_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    shop(&source);
    let path = |name: &str| source.join(format!("{name}.parquet")).to_str().unwrap().to_owned();
    let out = dir.path().join("shop");
    let names = ["items", "orders", "articles", "customers"];
    let files: Vec<String> = names.iter().flat_map(|name| ["--like".to_owned(), path(name)]).collect();
    let mut args = vec!["gen".to_owned()];
    args.extend(files);
    args.extend(["--out".to_owned(), out.to_str().unwrap().to_owned()]);
    let made = sawmill(&args).ok();
    for said in [
        "items.order_id refers to orders.order_id: all",
        "items.article refers to articles.code: all",
        "orders.customer_id refers to customers.id: all but",
        "its rows follow one another, 0 to 5 for each key",
    ] {
        assert!(made.err.contains(said), "{said}: {}", made.err);
    }
    assert!(!made.err.contains("items.line refers"), "{}", made.err);
    let table = |name: &str| (read(&source.join(format!("../source-{name}"))), read(&out.join(name)));
    for name in names {
        let folder = dir.path().join(format!("source-{name}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(path(name), folder.join("x.parquet")).unwrap();
    }
    let [(items, our_items), (orders, our_orders), (_, our_articles), (customers, our_customers)] =
        names.map(table);

    // Items: each of an order, in the order of the orders, as many for each.
    let of = numbers(&our_items, "order_id");
    assert_eq!(lost(&of, &numbers(&our_orders, "order_id")), (0.0, 0.0));
    assert!(of.is_sorted());
    let (n, ours) = (rows(&items) as f64, rows(&our_items) as f64);
    assert!((ours / n - 1.0).abs() < 0.02, "{ours} items instead of {n}");
    assert_eq!(lost(&texts(&our_items, "article"), &texts(&our_articles, "code")), (0.0, 0.0));

    // Orders: one percent of unknown customers, a tenth null, the rest as skewed as in the source.
    let sides = [(&orders, &customers), (&our_orders, &our_customers)];
    let sides = sides.map(|(orders, customers)| {
        let of = numbers(orders, "customer_id");
        let keys = numbers(customers, "id");
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        of.iter().flatten().for_each(|key| *counts.entry(*key).or_default() += 1);
        let most = counts.values().max().unwrap();
        (lost(&of, &keys), counts.len() as f64, *most as f64 / of.len() as f64)
    });
    let [((orphans, nulls), different, most), ((our_orphans, our_nulls), our_different, our_most)] = sides;
    assert!((orphans - 0.01).abs() < 0.003 && (our_orphans - orphans).abs() < 0.003, "{our_orphans}");
    assert!((nulls - 0.1).abs() < 0.01 && (our_nulls - nulls).abs() < 0.01, "{our_nulls}");
    assert!(
        (our_different / different - 1.0).abs() < 0.15,
        "{our_different} customers instead of {different}"
    );
    assert!((0.5..2.0).contains(&(our_most / most)), "{our_most} instead of {most}");

    // Fidelity reports each reference.
    let mut args = vec!["gen".to_owned(), "fidelity".to_owned()];
    for name in names {
        args.extend([path(name), out.join(name).to_str().unwrap().to_owned()]);
    }
    args.push("--json".to_owned());
    let json = sawmill(&args).ok().json();
    assert_eq!(json["tables"].as_array().unwrap().len(), 4, "{json}");
    let references = json["references"].as_array().unwrap();
    let orphans = references
        .iter()
        .find(|reference| reference["relation"] == "orphans of orders.customer_id, no keys of customers.id");
    let orphans = orphans.unwrap_or_else(|| panic!("{json}"));
    for side in ["source", "generated"] {
        assert!((orphans[side].as_f64().unwrap() - 0.01).abs() < 0.003, "{orphans}");
    }
}

#[test]
fn a_spec_of_several_files_is_one_to_read_and_edit() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let like = ["gen", "spec", "--like", &path("orders.parquet"), "--like", &path("customers.parquet")];
    let spec = sawmill(like).ok().out;
    for part in ["[[tables]]\nname = \"orders\"", "to = \"customers.id\"", "orphans = 0.0", "used = 0."] {
        assert!(spec.contains(part), "{part}: {spec}");
    }
    let file = path("spec.toml");
    std::fs::write(&file, &spec).unwrap();
    sawmill(["gen", &file, "--scale", "0.1", "--out", &path("small")]).ok();
    assert_eq!(rows(&read(&dir.path().join("small/orders"))) as u64, ORDERS / 10);
}

#[test]
fn what_is_wrong_with_several_files_is_said() {
    let dir = tempfile::tempdir().unwrap();
    shop(dir.path());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (orders, customers) = (path("orders.parquet"), path("customers.parquet"));
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let again = path("other/orders.parquet");
    std::fs::copy(&orders, &again).unwrap();
    for (args, said) in [
        (vec!["gen", "spec", "--like", &orders, "--like", &again], "two tables are named \"orders\""),
        (
            vec!["gen", "spec", "--like", &orders, "--like", &customers, "--exclude", "nothing"],
            "no file has a column named \"nothing\"",
        ),
        (
            vec!["gen", "explain", "--like", &orders, "--like", &customers],
            "several tables, where one is needed",
        ),
        (vec!["gen", "fidelity", &orders, &again, &customers], "a source without generated data"),
    ] {
        let error = sawmill(&args).fails(2);
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn strings_of_keys_do_not_repeat_in_more_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let code = |i: u64| match i {
        0 => "-".to_owned(),
        i => format!("P{}{:02}", char::from(b'A' + (i % 26) as u8), i / 26),
    };
    let codes = StringArray::from_iter_values((0..2000).map(code));
    let mut draw = random(5);
    let sold = StringArray::from_iter_values((0..30_000).map(|_| code(draw(2000))));
    let plates = StringArray::from_iter(
        (0..20_000u64)
            .map(|i| (i % 5 > 0).then(|| format!("{}{:03}", char::from(b'a' + (i / 1000) as u8), i % 1000))),
    );
    write(&dir.path().join("products.parquet"), vec![("code", Arc::new(codes))]);
    write(&dir.path().join("sales.parquet"), vec![("code", Arc::new(sold))]);
    write(&dir.path().join("plates.parquet"), vec![("plate", Arc::new(plates))]);
    let differ = |folder: &str, column: &str, rows: usize| {
        let values = texts(&read(&dir.path().join(folder)), column);
        let all: Vec<&String> = values.iter().flatten().collect();
        assert_eq!((all.iter().collect::<HashSet<_>>().len(), values.len()), (all.len(), rows), "{folder}");
    };
    let [products, sales, plates] = ["products.parquet", "sales.parquet", "plates.parquet"].map(path);
    sawmill(["gen", "--like", &products, "--like", &sales, "--scale", "10", "--out", &path("shop")]).ok();
    differ("shop/products", "code", 20_000);
    let sold = texts(&read(&dir.path().join("shop/sales")), "code");
    assert_eq!(lost(&sold, &texts(&read(&dir.path().join("shop/products")), "code")).0, 0.0);
    sawmill(["gen", "--like", &products, "--rows", "100000", "--out", &path("more")]).ok();
    differ("more", "code", 100_000);
    sawmill(["gen", "--like", &plates, "--out", &path("made")]).ok();
    differ("made", "plate", 20_000);
    let spec = sawmill(["gen", "spec", "--like", &plates]).ok().out;
    std::fs::write(path("plates.toml"), spec).unwrap();
    sawmill(["gen", &path("plates.toml"), "--out", &path("again")]).ok();
    differ("again", "plate", 20_000);
}
