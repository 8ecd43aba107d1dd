//! `sawmill gen fidelity`: how like its source generated data is.

mod page;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_generator::{Dataset, Fidelity, InferredSpec, InferredTables, RelationFidelity};
use sawmill_profile::{Align, Table};
use serde::Serialize;

use crate::error::Error;
use crate::r#gen::infer::{sampled, source::Source, with_keys};
use crate::r#gen::options::like_args::FidelityArgs;
use crate::screen::console::Console;

/// The columns that the summary of --like names.
const WORST: usize = 10;

/// The most rows that are generated for the summary of --like.
const MAX_ROWS: u64 = 200_000;

/// The parts of the dataset that they are taken from.
const PARTS: u64 = 100;

/// The rows of a batch.
const BATCH_ROWS: usize = 8192;

pub(crate) fn run(args: &FidelityArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    let like = args.like();
    if !args.others.is_empty() {
        return several(args, console, cancel);
    }
    let of = |path: &Path| sampled(&Source::open(path, &args.stores, cancel)?, &like);
    let fidelity = of(&args.source)?.compare(&of(&args.generated)?);
    has_common_columns(&fidelity, &args.generated)?;
    if let Some(path) = &args.html {
        let name = args.generated.display().to_string();
        page::write(path, &args.source, &[(name, &fidelity)], &[])?;
    }
    console.result(&fidelity, || text(&fidelity, usize::MAX))
}

/// Data without a column of the source were not made like it.
fn has_common_columns(fidelity: &Fidelity, generated: &Path) -> Result<(), Error> {
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
fn several(args: &FidelityArgs, console: Console, cancel: &Arc<AtomicBool>) -> Result<(), Error> {
    let paths: Vec<&PathBuf> = [&args.source, &args.generated].into_iter().chain(&args.others).collect();
    let (pairs, rest) = paths.as_chunks::<2>();
    if let [source] = rest {
        let what = "a source without generated data";
        return Err(Error::usage(what, source.display().to_string(), "give pairs: SOURCE GENERATED"));
    }
    let mut notices = Vec::new();
    let mut of = |places: Vec<&PathBuf>| {
        let open = |path: &PathBuf| Source::open(path, &args.stores, cancel);
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
pub(crate) fn summary(sample: &InferredSpec, spec: &str) -> Result<String, Error> {
    summary_of(sample, &Dataset::from_toml(spec)?)
}

/// The same for a table of a spec with several.
pub(crate) fn summary_of_table(sample: &InferredSpec, spec: &str) -> Result<String, Error> {
    summary_of(sample, &Dataset::table_from_toml(spec, sample.name(), None)?)
}

fn summary_of(sample: &InferredSpec, dataset: &Dataset) -> Result<String, Error> {
    let mut generated = InferredSpec::new(dataset.name(), &dataset.arrow_schema(), &[])?;
    let rows = dataset.rows().unwrap_or(MAX_ROWS);
    // Spread over all rows, because some values depend on their row.
    let parts = if rows > MAX_ROWS { PARTS } else { 1 };
    for part in 0..parts {
        let start = (u128::from(rows) * u128::from(part) / u128::from(parts)) as u64;
        let end = (start + MAX_ROWS / parts).min(rows);
        for batch in dataset.batches(start..end, 42, BATCH_ROWS) {
            generated.add(&batch?)?;
        }
    }
    let fidelity = sample.compare(&generated);
    let far = fidelity.columns.iter().filter(|column| column.distance > 0.02).count();
    let all = fidelity.columns.len();
    let head = format!("{} of {all} columns are within 0.02 of the sample\n", all - far);
    Ok(head + text(&fidelity, WORST).trim_end())
}

fn text(fidelity: &Fidelity, most: usize) -> String {
    let mut table = Table::new([
        ("column", Align::Left),
        ("measure", Align::Left),
        ("distance", Align::Right),
        ("nulls %", Align::Right),
        ("distinct", Align::Right),
        ("top value %", Align::Right),
        ("mean length", Align::Right),
    ]);
    let percent = |pair: [f64; 2]| format!("{:.2} / {:.2}", 100.0 * pair[0], 100.0 * pair[1]);
    for column in fidelity.columns.iter().take(most) {
        table.row([
            column.column.clone(),
            column.measure.to_owned(),
            format!("{:.4}", column.distance + 0.0),
            percent(column.nulls),
            column.distinct.map_or_else(|| "-".to_owned(), |[a, b]| format!("{a} / {b}")),
            column.top.map_or_else(|| "-".to_owned(), percent),
            column.mean_length.map_or_else(String::new, |[a, b]| format!("{a:.2} / {b:.2}")),
        ]);
    }
    let mut out = table.to_string();
    if !fidelity.relations.is_empty() {
        out += &format!("\n{}", relations(&fidelity.relations));
    }
    for not_compared in &fidelity.not_compared {
        out += &format!("not compared: {not_compared}\n");
    }
    out
}

fn relations(relations: &[RelationFidelity]) -> String {
    let mut table =
        Table::new([("relation", Align::Left), ("source %", Align::Right), ("generated %", Align::Right)]);
    for relation in relations {
        // What is rounded to 0 has no sign.
        let share = |share: f64| format!("{:.2}", (10_000.0 * share).round() / 100.0 + 0.0);
        table.row([relation.relation.clone(), share(relation.source), share(relation.generated)]);
    }
    table.to_string()
}
