//! The comparison as a page of HTML.

use std::path::Path;

use sawmill_generator::{Fidelity, MeasureFidelity, RelationFidelity};
use sawmill_profile::{Page, Section, escape_html, write_whole};

use crate::error::Error;
use crate::r#gen::fidelity::{COLUMN_HEADS, column_cells, headline, told_apart};

/// Writes a section for each table, and one for the references between them.
pub(super) fn write(
    path: &Path,
    source: &Path,
    tables: &[(String, &Fidelity)],
    references: &[RelationFidelity],
) -> Result<(), Error> {
    let mut sections = Vec::new();
    for (name, fidelity) in tables {
        sections.push(section(&format!("Columns of {name}"), columns_of(fidelity)));
        sections.push(section(&format!("Pairs and order of {name}"), pairs_of(fidelity)));
        sections.push(section(&format!("Relations of {name}"), relations_of(&fidelity.relations)));
        let left_out: Vec<String> =
            fidelity.not_compared.iter().map(|what| format!("<li>{}</li>", escape_html(what))).collect();
        let left_out =
            if left_out.is_empty() { String::new() } else { format!("<ul>{}</ul>", left_out.concat()) };
        sections.push(section(&format!("Not compared of {name}"), left_out));
    }
    sections.push(section("References", relations_of(references)));
    let named = |(name, fidelity): &(String, &Fidelity)| format!("{name}: {}", headline(fidelity));
    let verdicts: Vec<String> = tables.iter().map(named).collect();
    let page = Page {
        origin: format!("sawmill gen fidelity, {}", source.display()),
        verdict: verdicts.join("; "),
        findings: Vec::new(),
        facts: Vec::new(),
        sections,
    };
    Ok(write_whole(path, page.html().as_bytes())?)
}

fn section(title: &str, content: String) -> Section {
    Section { title: title.to_owned(), content, ..Section::default() }
}

fn columns_of(fidelity: &Fidelity) -> String {
    table(&COLUMN_HEADS, fidelity.columns.iter().map(|column| column_cells(column, "-").to_vec()))
}

/// How well a tree tells the rows apart, and each pair and order with its worst measure.
fn pairs_of(fidelity: &Fidelity) -> String {
    let row = |what: String, measure: &MeasureFidelity| {
        let is_kept = if measure.is_kept { "kept" } else { "lost" };
        let [source, generated] = [measure.source, measure.generated].map(|value| format!("{value:.3}"));
        vec![what, is_kept.to_owned(), measure.measure.clone(), source, generated]
    };
    let pairs = fidelity.pairs.iter();
    let pairs = pairs.filter_map(|pair| Some(row(pair.columns.join(", "), pair.farthest()?)));
    let orders = fidelity.order.iter().map(|order| row(order.column.clone(), &order.measure));
    let heads = ["columns", "", "measure", "source", "generated"];
    format!("<p>{}</p>\n{}", escape_html(&told_apart(fidelity)), table(&heads, pairs.chain(orders)))
}

fn relations_of(relations: &[RelationFidelity]) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let rows = relations
        .iter()
        .map(|found| vec![found.relation.clone(), percent(found.source), percent(found.generated)]);
    table(&["relation", "source %", "generated %"], rows)
}

/// A table of these rows; nothing without rows.
fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let cells = |cells: &[String]| -> String {
        cells.iter().map(|cell| format!("<td>{}</td>", escape_html(cell))).collect()
    };
    let rows: Vec<String> = rows.map(|row| format!("<tr>{}</tr>\n", cells(&row))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = heads.iter().map(|head| format!("<th>{}</th>", escape_html(head))).collect();
    format!("<table>\n<tr>{heads}</tr>\n{}</table>\n", rows.concat())
}
