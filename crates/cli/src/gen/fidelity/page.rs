//! The comparison as a page of HTML.

use std::path::Path;

use sawmill_generator::{Fidelity, MeasureFidelity, RelationFidelity};
use sawmill_profile::{Page, Section, escape_html, text_table, write_whole};

use crate::error::Result;
use crate::r#gen::fidelity::{columns, headline, relations, told_apart};

/// Writes a section for each table, and one for the references between them.
pub(super) fn write(
    path: &Path,
    source: &Path,
    tables: &[(String, &Fidelity)],
    references: &[RelationFidelity],
) -> Result<()> {
    let mut sections = Vec::new();
    for (name, fidelity) in tables {
        sections.push(Section::new(
            &format!("Columns of {name}"),
            "",
            columns(fidelity.columns.iter()).html(),
        ));
        sections.push(Section::new(&format!("Pairs and order of {name}"), "", pairs_of(fidelity)));
        let relations = relations(&fidelity.relations).html();
        sections.push(Section::new(&format!("Relations of {name}"), "", relations));
        let left_out: Vec<String> =
            fidelity.not_compared.iter().map(|what| format!("<li>{}</li>", escape_html(what))).collect();
        let left_out =
            if left_out.is_empty() { String::new() } else { format!("<ul>{}</ul>", left_out.concat()) };
        sections.push(Section::new(&format!("Not compared of {name}"), "", left_out));
    }
    sections.push(Section::new("References", "", relations(references).html()));
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
    let heads = ["columns", "result", "measure", "source", "generated"];
    let rows: Vec<_> = pairs.chain(orders).collect();
    format!("<p>{}</p>\n{}", escape_html(&told_apart(fidelity)), text_table(&heads, &rows))
}
