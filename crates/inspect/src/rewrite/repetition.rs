//! The repetitions that a schema lacks, as far as the levels of its columns tell them.
//!
//! A column has a definition level for each element on its path that is not required, and a repetition level for each
//! that is repeated. Histograms tell how many levels there are; counts and the headers of pages whether there are any.

use std::collections::BTreeMap;

use sawmill_footer::{ColumnChunk, DumpLine, Element, Encoding, Footer, PageType, RangeReader, Repetition};

use crate::check::structure::on_path;
use crate::rewrite::output::{I32, Output};
use crate::rewrite::repairs::Repairs;
use crate::rewrite::{Edit, Editor, Place};

/// The repetition of each of these elements of the schema.
type Found = BTreeMap<usize, Repetition>;

/// Writes the repetitions that a schema lacks.
pub(super) struct Repetitions<'a, 'r> {
    footer: &'a Footer,
    found: Found,
    repairs: &'r mut Repairs,
}

impl<'a, 'r> Repetitions<'a, 'r> {
    /// Looks for them in all columns. `None` if nothing tells one.
    ///
    /// Reads the header of a page where the footer does not tell enough.
    pub fn find<R: RangeReader + ?Sized>(
        footer: &'a Footer,
        reader: &R,
        repairs: &'r mut Repairs,
    ) -> Option<Self> {
        if !footer.schema().elements().skip(1).any(|element| element.repetition().is_none()) {
            return None;
        }
        let mut found = Found::new();
        for (position, leaf) in footer.schema().leaves().enumerate() {
            let path: Vec<Element<'_>> = on_path(leaf).collect();
            let is_missing =
                |of: &&Element<'_>| of.repetition().is_none() && !found.contains_key(&of.index());
            let missing: Vec<usize> = path.iter().filter(is_missing).map(|of| of.index()).collect();
            let of =
                |element: &Element<'_>| element.repetition().or_else(|| found.get(&element.index()).copied());
            let known: Vec<Repetition> = path.iter().filter_map(of).collect();
            let repetition = repetition_of(footer, position, &known, missing.len(), reader);
            found.extend(repetition.into_iter().flat_map(|of| missing.iter().map(move |at| (*at, of))));
        }
        (!found.is_empty()).then_some(Self { footer, found, repairs })
    }
}

impl Editor for Repetitions<'_, '_> {
    fn value(&mut self, _: &Place, _: &DumpLine<'_>) -> Edit {
        Edit::Keep
    }

    fn missing(&mut self, place: &Place, next: i16, output: &mut Output) {
        if place.container() != "SchemaElement" || next <= 3 || !place.lacks(3) {
            return;
        }
        let Some(element) = place.index_in("schema").and_then(|at| self.footer.schema().element(at)) else {
            return;
        };
        let Some(repetition) = self.found.get(&element.index()) else { return };
        output.field(3, I32);
        output.integer(I32, repetition.number().into());
        let change = (place.path("repetition_type"), "missing".to_owned(), repetition.to_string());
        self.repairs.add(change, Some(element.path()), None);
    }
}

/// The repetition of all elements on a column's path that lack one, `missing` of them beside the `known`.
fn repetition_of<R: RangeReader + ?Sized>(
    footer: &Footer,
    position: usize,
    known: &[Repetition],
    missing: usize,
    reader: &R,
) -> Option<Repetition> {
    let chunks = || {
        let chunks = footer.row_groups().filter_map(move |group| group.column(position));
        chunks.filter(|chunk| chunk.row_group().num_rows() > 0)
    };
    if missing == 0 || known.iter().any(|of| !of.is_known()) {
        return None;
    }
    let defining = known.iter().filter(|of| **of != Repetition::Required).count();
    let repeating = known.iter().filter(|of| **of == Repetition::Repeated).count();
    // A column without repeated elements has a value for each row.
    let is_flat = repeating == 0 && chunks().all(|chunk| chunk.num_values() == chunk.row_group().num_rows());
    let levels = chunks().find_map(|chunk| levels_of(&chunk));
    let more = match levels {
        Some((defined, repeated)) => {
            let repeated = repeated.or(is_flat.then_some(0))?;
            (defined.checked_sub(defining)?, repeated.checked_sub(repeating)?)
        }
        // Without the number of levels, one element that lacks a repetition is the one that has a level, or none has.
        None if defining == 0 && is_flat => {
            let has_level = chunks().find_map(|chunk| has_levels(&chunk, reader))?;
            (usize::from(has_level), 0)
        }
        None => return None,
    };
    match more {
        (0, 0) => Some(Repetition::Required),
        (defined, 0) if defined == missing => Some(Repetition::Optional),
        (1, 1) if missing == 1 => Some(Repetition::Repeated),
        _ => None,
    }
}

/// How many definition and repetition levels a chunk's histograms have beside level 0. Writers may leave out the
/// histogram of repetition levels.
fn levels_of(chunk: &ColumnChunk<'_>) -> Option<(usize, Option<usize>)> {
    let sizes = chunk.size_statistics().ok().flatten()?;
    let levels = |histogram: Option<Vec<i64>>| histogram.and_then(|of| of.len().checked_sub(1));
    Some((levels(sizes.definition_level_histogram)?, levels(sizes.repetition_level_histogram)))
}

/// Whether the values of a chunk have definition levels. `None` if neither the nulls nor the first data page tell.
fn has_levels<R: RangeReader + ?Sized>(chunk: &ColumnChunk<'_>, reader: &R) -> Option<bool> {
    let nulls = chunk.null_count().ok().flatten();
    if nulls.is_some_and(|nulls| (1..=chunk.num_values()).contains(&nulls)) {
        return Some(true);
    }
    let mut pages = chunk.pages(reader).ok()?;
    let page = loop {
        let page = pages.next_header().ok()??;
        if matches!(page.page_type, PageType::DataPage | PageType::DataPageV2) {
            break page;
        }
    };
    if page.page_type == PageType::DataPageV2 {
        return Some(page.levels_size > 0);
    }
    let width = chunk.physical_type().width(chunk.element().type_length())? as u64;
    let values = u64::try_from(page.num_values).ok()? * width;
    // Without nulls, levels are what a page has beside its values.
    let is_told = page.encoding == Encoding::Plain && nulls == Some(0);
    is_told.then_some(u64::from(page.uncompressed_size) != values)
}
