//! Where the pages of column chunks are: where the footer states them, if the headers of pages there agree, or
//! elsewhere, if they agree with the rest of what the footer states of the chunk.

use std::collections::BTreeSet;

use sawmill_footer::{ColumnChunk, DumpLine, DumpValue, Encoding, Footer, RangeReader};

use crate::chunks::sizes::{body_of, has_values};
use crate::rewrite::chunk_pages::{FoundPages, Walk};
use crate::rewrite::output::{I64, Output};
use crate::rewrite::repairs::Repairs;
use crate::rewrite::{Edit, Editor, LEFT_OUT, Place};

/// The pages of the chunks of each row group, where they could be found.
pub(super) struct Places {
    found: Vec<Vec<Option<FoundPages>>>,
}

impl Places {
    /// Looks for the pages of all chunks. Reads the headers of all pages, and of those that may belong to a chunk whose
    /// stated place is wrong.
    pub fn find<R: RangeReader + ?Sized>(footer: &Footer, reader: &R) -> Self {
        let found = footer.row_groups().map(|group| vec![None; group.num_columns()]).collect();
        let mut search = Search {
            footer,
            walk: Walk::new(reader, body_of(footer)),
            places: Self { found },
            taken: BTreeSet::new(),
        };
        if !footer.has_no_data() {
            search.stated();
            search.elsewhere();
        }
        search.places
    }

    /// The pages of a chunk, if they were found.
    pub fn pages(&self, chunk: &ColumnChunk<'_>) -> Option<&FoundPages> {
        self.found.get(chunk.row_group().position())?.get(chunk.position())?.as_ref()
    }
}

struct Search<'a, R: ?Sized> {
    footer: &'a Footer,
    walk: Walk<'a, R>,
    places: Places,
    /// The starts and ends of the chunks that were found.
    taken: BTreeSet<(u64, u64)>,
}

impl<'a, R: RangeReader + ?Sized> Search<'a, R> {
    fn chunks(&self) -> impl Iterator<Item = ColumnChunk<'a>> + use<'a, R> {
        let chunks = self.footer.row_groups().flat_map(|group| group.columns());
        chunks.filter(|chunk| has_values(chunk) && !chunk.is_encrypted() && chunk.is_here().is_ok())
    }

    /// Finds the chunks whose pages fill the stated bytes, unless two chunks state the same place.
    fn stated(&mut self) {
        let mut starts: Vec<u64> = self.chunks().map(|chunk| chunk.byte_range().start).collect();
        starts.sort_unstable();
        for chunk in self.chunks() {
            let bytes = chunk.byte_range();
            let first = starts.partition_point(|start| *start < bytes.start);
            if starts.get(first + 1) == Some(&bytes.start) {
                continue;
            }
            let found = self.walk.filling(bytes, is_null(&chunk));
            self.settle(&chunk, found.filter(|found| values_of(&chunk).contains(&found.values)));
        }
    }

    /// Finds the chunks whose stated place or size is wrong.
    fn elsewhere(&mut self) {
        let mut before = body_of(self.footer).start;
        for chunk in self.chunks() {
            if self.places.pages(&chunk).is_none() {
                let starts = self.candidates(&chunk, before);
                let found =
                    self.of_stated_size(&chunk, &starts).or_else(|| self.of_stated_values(&chunk, &starts));
                self.settle(&chunk, found);
            }
            before = self.places.pages(&chunk).map_or(chunk.byte_range().end, |found| found.end);
        }
    }

    fn settle(&mut self, chunk: &ColumnChunk<'_>, found: Option<FoundPages>) {
        let Some(found) = found else { return };
        let group = self.places.found.get_mut(chunk.row_group().position());
        if let Some(place) = group.and_then(|group| group.get_mut(chunk.position())) {
            self.taken.insert((found.start, found.end));
            *place = Some(found);
        }
    }

    /// Where a chunk may start: behind the one before it, as far before its end as its size says, or at an offset
    /// that is stated.
    fn candidates(&mut self, chunk: &ColumnChunk<'a>, before: u64) -> Vec<u64> {
        let size = chunk.compressed_size().unsigned_abs();
        let next =
            self.taken.range((before, 0)..).next().map_or(body_of(self.footer).end, |(start, _)| *start);
        let group = chunk.row_group().file_offset().filter(|_| chunk.position() == 0);
        // Some writers put a chunk's metadata behind it, and state its place.
        let own = chunk.details().ok().and_then(|details| u64::try_from(details.file_offset).ok());
        let ends = [Some(next), own, self.end_of_data(chunk)].into_iter().flatten();
        let ends = ends.filter_map(|end| end.checked_sub(size));
        let offsets = [chunk.dictionary_page_offset(), Some(chunk.data_page_offset()), group];
        let offsets = offsets.into_iter().flatten().filter_map(|offset| u64::try_from(offset).ok());
        let mut starts: Vec<u64> = [before].into_iter().chain(ends).chain(offsets).chain(own).collect();
        let body = body_of(self.footer);
        let mut seen = BTreeSet::new();
        starts.retain(|start| body.contains(start) && self.limit(*start).is_some() && seen.insert(*start));
        starts
    }

    /// Where the data pages end that begin at the stated place.
    fn end_of_data(&mut self, chunk: &ColumnChunk<'_>) -> Option<u64> {
        let data = u64::try_from(chunk.data_page_offset()).ok()?;
        let bytes = data..self.limit(data)?;
        values_of(chunk).into_iter().find_map(|values| self.walk.end(bytes.clone(), values))
    }

    /// Where the space ends that no other chunk takes; `None` within another chunk.
    fn limit(&self, start: u64) -> Option<u64> {
        let before = self.taken.range(..=(start, u64::MAX)).next_back();
        if before.is_some_and(|(_, end)| *end > start) {
            return None;
        }
        let next = self.taken.range((start, 0)..).next();
        Some(next.map_or(body_of(self.footer).end, |(next, _)| *next))
    }

    fn of_stated_size(&mut self, chunk: &ColumnChunk<'_>, starts: &[u64]) -> Option<FoundPages> {
        let size = u64::try_from(chunk.compressed_size()).ok().filter(|size| *size > 0)?;
        let values = values_of(chunk);
        let mut found = starts.iter().filter_map(|start| {
            let end = start
                .checked_add(size)
                .filter(|end| self.limit(*start).is_some_and(|limit| *end <= limit))?;
            self.walk.filling(*start..end, is_null(chunk))
        });
        let is_list = chunk.element().max_rep() > 0;
        let mut of_size = None;
        let all = found.find(|found| {
            if is_list && found.start == chunk.byte_range().start {
                of_size = Some(*found);
            }
            values.contains(&found.values)
        });
        all.or(of_size)
    }

    fn of_stated_values(&mut self, chunk: &ColumnChunk<'_>, starts: &[u64]) -> Option<FoundPages> {
        let values = values_of(chunk);
        starts.iter().find_map(|start| {
            let bytes = *start..self.limit(*start)?;
            match values.is_empty() {
                true => self.walk.filling(bytes, is_null(chunk)),
                false => values
                    .iter()
                    .find_map(|values| self.walk.with_values(bytes.clone(), *values, is_null(chunk))),
            }
        })
    }
}

/// How many values a chunk has, as the footer states it in one or two places.
fn values_of(chunk: &ColumnChunk<'_>) -> Vec<i64> {
    let rows = (chunk.element().max_rep() == 0).then(|| chunk.row_group().num_rows());
    let mut values: Vec<i64> =
        [Some(chunk.num_values()), rows].into_iter().flatten().filter(|of| *of > 0).collect();
    values.dedup();
    values
}

/// Whether the statistics of a chunk count as many NULLs as it has values.
fn is_null(chunk: &ColumnChunk<'_>) -> bool {
    let nulls = chunk.statistics().ok().flatten().and_then(|statistics| statistics.null_count);
    nulls == Some(chunk.num_values())
}

/// Sets offsets of pages right.
pub(super) struct Offsets<'a, 'r> {
    pub footer: &'a Footer,
    pub places: &'a Places,
    pub repairs: &'r mut Repairs,
}

impl<'a> Offsets<'a, '_> {
    fn chunk(&self, place: &Place) -> Option<ColumnChunk<'a>> {
        match place.container() {
            "ColumnMetaData" => {
                self.footer.column_chunk(place.index_in("row_groups")?, place.index_in("columns")?)
            }
            _ => None,
        }
    }

    /// The offsets of a chunk's dictionary page and its first data page, if its pages were found.
    fn wanted(&self, chunk: &ColumnChunk<'_>) -> Option<[Option<u64>; 2]> {
        let found = self.places.pages(chunk)?;
        // Some writers have only one offset, which is the dictionary's.
        let is_one = chunk.dictionary_page_offset().is_none()
            && u64::try_from(chunk.data_page_offset()) == Ok(found.start);
        Some(if is_one { [None, Some(found.start)] } else { [found.dictionary, Some(found.data)] })
    }

    fn note(&mut self, (place, chunk): (&Place, &ColumnChunk<'_>), name: &str, was: String, now: String) {
        let row_group = place.index_in("row_groups");
        self.repairs.add((place.path(name), was, now), Some(chunk.path()), row_group);
    }
}

impl Editor for Offsets<'_, '_> {
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit {
        let (name, DumpValue::Integer(stated)) = (line.name.unwrap_or_default(), line.value) else {
            return Edit::Keep;
        };
        let which = match name {
            "dictionary_page_offset" => 0,
            "data_page_offset" => 1,
            _ => return Edit::Keep,
        };
        let Some(chunk) = self.chunk(place) else { return Edit::Keep };
        let wanted = match self.wanted(&chunk) {
            Some(wanted) => wanted[which].and_then(|offset| i64::try_from(offset).ok()),
            None if which == 0 && is_useless(&chunk, stated) => None,
            None => return Edit::Keep,
        };
        if wanted == Some(stated) {
            return Edit::Keep;
        }
        let now = wanted.map_or(LEFT_OUT.to_owned(), |offset| offset.to_string());
        self.note((place, &chunk), name, stated.to_string(), now);
        wanted.map_or(Edit::Drop, Edit::Integer)
    }

    fn missing(&mut self, place: &Place, next: i16, output: &mut Output) {
        if next <= 11 || !place.lacks(11) {
            return;
        }
        let Some(chunk) = self.chunk(place).filter(|chunk| chunk.dictionary_page_offset().is_none()) else {
            return;
        };
        let offset = self.wanted(&chunk).and_then(|[dictionary, _]| i64::try_from(dictionary?).ok());
        let Some(offset) = offset else { return };
        output.field(11, I64);
        output.integer(I64, offset);
        self.note((place, &chunk), "dictionary_page_offset", "missing".to_owned(), offset.to_string());
    }
}

/// Whether a chunk whose pages were not found has an impossible place for a dictionary that it does not need.
fn is_useless(chunk: &ColumnChunk<'_>, dictionary: i64) -> bool {
    let is_impossible = dictionary <= 0 || (1..=dictionary).contains(&chunk.data_page_offset());
    let is_coded = |of: Encoding| matches!(of, Encoding::PlainDictionary | Encoding::RleDictionary);
    is_impossible && !chunk.encodings().iter().any(is_coded)
}
