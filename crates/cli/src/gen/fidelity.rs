//! `sawmill gen fidelity`: how like its source generated data is.

mod page;

use std::path::{Path, PathBuf};

use sawmill_generator::{
    ColumnFidelity, Dataset, Fidelity, InferredSpec, InferredTables, MeasureFidelity, RelationFidelity,
};
use sawmill_profile::{Align, Table};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::r#gen::infer::source::{MAX_BYTES, Source, VALUE_BYTES};
use crate::r#gen::infer::{sampled, with_keys};
use crate::r#gen::options::like_args::{FidelityArgs, Wanted};
use crate::screen::console::Console;
use crate::screen::flame;

/// The columns, and the lost pairs, that the summary of --like names.
const WORST: usize = 10;

/// The most rows that are generated for the summary of --like.
const MAX_ROWS: u64 = 200_000;

/// The parts of the dataset that they are taken from.
const PARTS: u64 = 100;

/// The rows of a batch.
const BATCH_ROWS: usize = 8192;

pub(crate) fn run(args: &FidelityArgs, console: Console) -> Result<()> {
    let like = args.like();
    if let Some(path) = &args.html {
        flame::may_replace(path, b'<', &format!("--html {}", path.display()))?;
    }
    if !args.others.is_empty() {
        return several(args, console);
    }
    let of = |path: &Path| sampled(&Source::open(path, &args.stores)?, &like);
    let fidelity = of(&args.source)?.compare(&of(&args.generated)?);
    has_common_columns(&fidelity, &args.generated)?;
    if let Some(path) = &args.html {
        let name = args.generated.display().to_string();
        page::write(path, &args.source, &[(name, &fidelity)], &[])?;
    }
    console.result(&fidelity, || text(&fidelity, usize::MAX))
}

/// Data without a column of the source were not made like it.
fn has_common_columns(fidelity: &Fidelity, generated: &Path) -> Result<()> {
    if !fidelity.columns.is_empty() {
        return Ok(());
    }
    let what = "no column of the source is in the generated data";
    let advice = "give the data that were generated like the source";
    Err(Error::usage(what, generated.display().to_string(), advice))
}

/// The comparison of several tables.
#[derive(Serialize)]
struct SeveralFidelity {
    tables: Vec<TableFidelity>,
    /// References between the tables.
    references: Vec<RelationFidelity>,
}

#[derive(Serialize)]
struct TableFidelity {
    table: String,
    #[serde(flatten)]
    fidelity: Fidelity,
}

/// Compares several tables and the references between them.
fn several(args: &FidelityArgs, console: Console) -> Result<()> {
    let paths: Vec<&PathBuf> = [&args.source, &args.generated].into_iter().chain(&args.others).collect();
    let (pairs, rest) = paths.as_chunks::<2>();
    if let [source] = rest {
        let what = "a source without generated data";
        return Err(Error::usage(what, source.display().to_string(), "give pairs: SOURCE GENERATED"));
    }
    let mut notices = Vec::new();
    let mut of = |places: Vec<&PathBuf>| {
        let open = |path: &PathBuf| Source::open(path, &args.stores);
        let sources = places.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        with_keys(&sources, &args.like(), &mut notices)
    };
    let sources = InferredTables::new(of(pairs.iter().map(|[source, _]| *source).collect())?)?;
    let generated = of(pairs.iter().map(|[_, generated]| *generated).collect())?;
    notices.iter().for_each(|notice| console.notice(notice));
    let compared = sources.tables().iter().zip(&generated);
    let table = |(source, generated): (&InferredSpec, &InferredSpec)| TableFidelity {
        table: source.name().to_owned(),
        fidelity: source.compare(generated),
    };
    let tables: Vec<TableFidelity> = compared.map(table).collect();
    for (table, [_, generated]) in tables.iter().zip(pairs) {
        has_common_columns(&table.fidelity, generated)?;
    }
    let fidelity = SeveralFidelity { tables, references: sources.compare(&generated) };
    if let Some(path) = &args.html {
        let tables: Vec<_> = fidelity.tables.iter().map(|of| (of.table.clone(), &of.fidelity)).collect();
        page::write(path, &args.source, &tables, &fidelity.references)?;
    }
    console.result(&fidelity, || {
        let tables = fidelity.tables.iter();
        let tables: Vec<String> =
            tables.map(|of| format!("{}\n{}", of.table, text(&of.fidelity, usize::MAX))).collect();
        format!("{}\n{}", tables.join("\n"), relations(&fidelity.references))
    })
}

/// How like the sample the rows of its spec are, the worst columns first.
pub(crate) fn summary(sample: &InferredSpec, dataset: &Dataset, wanted: Wanted) -> Result<String> {
    let mut generated = InferredSpec::new(dataset.name(), &dataset.arrow_schema(), &[])?;
    if dataset.block_bytes() > MAX_BYTES {
        let megabytes = dataset.block_bytes() / 1_000_000;
        return Ok(format!(
            "not compared with the source: the rows are long, and a block of them takes {megabytes} MB"
        ));
    }
    let most = (MAX_BYTES / VALUE_BYTES / dataset.columns().max(1) as u64).clamp(PARTS, MAX_ROWS);
    let rows = wanted.rows.or(dataset.rows()).unwrap_or(most);
    // Spread over all rows, because some values depend on their row.
    let parts = if rows > most { PARTS } else { 1 };
    for part in 0..parts {
        let start = (u128::from(rows) * u128::from(part) / u128::from(parts)) as u64;
        let end = (start + most / parts).min(rows);
        let mut next = start;
        for batch in dataset.batches(start..end, wanted.seed, BATCH_ROWS) {
            let batch = batch?;
            generated.add_at(&batch, next)?;
            next += batch.num_rows() as u64;
        }
    }
    let fidelity = sample.compare(&generated);
    Ok(text(&fidelity, WORST).trim_end().to_owned())
}

/// How much is kept, in a sentence.
fn headline(fidelity: &Fidelity) -> String {
    let kept = &fidelity.kept;
    let counted = |[near, all]: [usize; 2], what: &str| format!("{near} of {all} {what}");
    let not_compared = |compared: usize, all: usize| match all.saturating_sub(compared) {
        0 => String::new(),
        more => format!(" ({more} not compared)"),
    };
    let mut parts = vec![
        counted(kept.columns, "columns") + &not_compared(fidelity.columns.len(), kept.columns[1]),
        counted(kept.pairs, "pairs") + &not_compared(fidelity.pairs.len(), kept.pairs[1]),
    ];
    parts.push(counted(kept.order, "orders of rows"));
    if kept.keys[1] > 0 {
        parts.push(counted(kept.keys, "keys"));
    }
    format!(
        "{} are like the source (columns within {}, pairs and orders within {})",
        parts.join(", "),
        kept.column_distance,
        kept.pair_distance
    )
}

/// How well a tree tells the rows apart.
fn told_apart(fidelity: &Fidelity) -> String {
    match &fidelity.tree {
        None => "too few rows for a tree that tells real rows from generated\n".to_owned(),
        Some(tree) => {
            let by: Vec<&str> = tree.by.iter().take(3).map(String::as_str).collect();
            let by = if by.is_empty() { String::new() } else { format!(", by {}", by.join(", ")) };
            format!(
                "how well a tree tells real rows from generated: {:.2}{by} (0.50 is not at all)\n",
                tree.auc
            )
        }
    }
}

fn text(fidelity: &Fidelity, most: usize) -> String {
    let mut out = format!("{}\n{}", headline(fidelity), told_apart(fidelity));
    out += &columns(fidelity.columns.iter().take(most)).to_string();
    out += &lost(fidelity, most);
    if !fidelity.relations.is_empty() {
        out += &format!("\n{}", relations(&fidelity.relations));
    }
    for not_compared in &fidelity.not_compared {
        out += &format!("not compared: {not_compared}\n");
    }
    out
}

/// The pairs, orders and keys that are lost, the worst first.
fn lost(fidelity: &Fidelity, most: usize) -> String {
    let mut table = Table::new([
        ("lost", Align::Left),
        ("measure", Align::Left),
        ("source", Align::Right),
        ("generated", Align::Right),
    ]);
    let mut row = |what: String, measure: &MeasureFidelity| {
        // Adding 0 turns -0 into 0.
        let shown = |value: f64| format!("{:.3}", (1000.0 * value).round() / 1000.0 + 0.0);
        table.row([what, measure.measure.clone(), shown(measure.source), shown(measure.generated)]);
    };
    let pairs = fidelity.pairs.iter().filter_map(|pair| Some((pair, pair.worst()?)));
    pairs.take(most).for_each(|(pair, worst)| row(pair.columns.join(", "), worst));
    let orders = fidelity.order.iter().filter(|order| !order.measure.is_kept);
    orders.take(most).for_each(|order| row(order.column.clone(), &order.measure));
    let pairs = fidelity.pairs.iter().filter(|pair| !pair.is_kept).count();
    let mut out = match pairs + fidelity.kept.order[1] - fidelity.kept.order[0] {
        0 => String::new(),
        _ => format!("\n{table}"),
    };
    if pairs > most {
        out += &format!("and {} more pairs, which gen fidelity lists\n", pairs - most);
    }
    for key in fidelity.keys.iter().filter(|key| key.repeated > 0).take(most) {
        let source = "the source has no equal values";
        out += &format!("lost: key {}: {source}, the generated data repeat {}\n", key.column, key.repeated);
    }
    out
}

fn columns<'a>(columns: impl Iterator<Item = &'a ColumnFidelity>) -> Table {
    let heads = ["column", "measure", "distance", "nulls %", "distinct", "top value %", "mean length"];
    let align = |at| if at < 2 { Align::Left } else { Align::Right };
    let mut table = Table::new(heads.into_iter().enumerate().map(|(at, name)| (name, align(at))));
    columns.for_each(|column| table.row(column_cells(column)));
    table
}

fn column_cells(column: &ColumnFidelity) -> [String; 7] {
    let percent = |[a, b]: [f64; 2]| format!("{:.2} / {:.2}", 100.0 * a, 100.0 * b);
    [
        column.column.clone(),
        column.measure.to_owned(),
        // Adding 0 turns -0 into 0.
        format!("{:.4}", column.distance + 0.0),
        percent(column.nulls),
        column.distinct.map_or_else(|| "-".to_owned(), |[a, b]| format!("{a} / {b}")),
        column.top.map_or_else(|| "-".to_owned(), percent),
        column.mean_length.map(|[a, b]| format!("{a:.2} / {b:.2}")).unwrap_or_default(),
    ]
}

fn relations(relations: &[RelationFidelity]) -> Table {
    let mut table =
        Table::new([("relation", Align::Left), ("source %", Align::Right), ("generated %", Align::Right)]);
    for relation in relations {
        // Adding 0 turns -0 into 0.
        let share = |share: f64| format!("{:.2}", (10_000.0 * share).round() / 100.0 + 0.0);
        table.row([relation.relation.clone(), share(relation.source), share(relation.generated)]);
    }
    table
}
