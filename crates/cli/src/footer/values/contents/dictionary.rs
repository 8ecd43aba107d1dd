//! `sawmill footer dictionary`: the values of dictionary pages.
//!
//! ```text
//! chunk ─header of its first page─▶ is it a dictionary, and how long? ─the parquet crate decompresses it─▶ values
//! ```
//!
//! One dictionary is in memory at a time.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::column::page::{Page, PageReader};
use parquet::file::serialized_reader::SerializedPageReader;
use sawmill_footer::{ColumnChunk, Encoding, Footer, PageType};
use sawmill_inspect::{DictionaryValues, JsonSafe, check_chunk_page_sizes};

use crate::arguments::stores::PlaceBytes;
use crate::error::{Error, Result};
use crate::footer::place::{Place, Places};
use crate::footer::run::unwritten;
use crate::footer::values::args::DictionaryArgs;
use crate::footer::values::contents::chunk_alone::{chunk_alone, footer_with_data};
use crate::footer::{escaped_place, style};
use crate::interrupt;
use crate::screen::console::Console;

/// The longest dictionary to read and to decompress. Writers stop at some megabytes; a damaged header may claim 2 GiB.
const MAX_LENGTH: u32 = 256 << 20;

/// A dictionary page, decompressed.
struct Dictionary {
    page: Page,
    compressed: u32,
}

/// The output of the dictionaries, and their number so far.
struct Shown<'a, W> {
    out: &'a mut W,
    console: Console,
    limit: u64,
    count: u64,
}

pub(crate) fn run(args: &DictionaryArgs, console: Console) -> Result<()> {
    let chunks = &args.chunks;
    let Places { places, objects } = Places::new(&chunks.files, &chunks.stores)?;
    let mut out = console.output();
    let limit = args.values.unwrap_or(u64::MAX);
    let mut shown = Shown { out: &mut out, console, limit, count: 0 };
    for place in &places {
        let opened = place.open(&objects)?;
        let footer =
            footer_with_data(&opened, &chunks.column, chunks.row_group.as_ref(), &escaped_place(place))?;
        of_file((place, &opened), &footer, &mut shown)?;
    }
    shown.end().and_then(|()| out.flush()).map_err(unwritten)
}

fn of_file<W: Write>(
    (place, opened): (&Place, &PlaceBytes),
    footer: &Footer,
    shown: &mut Shown<'_, W>,
) -> Result<()> {
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        interrupt::check()?;
        let failed = |what: String| {
            let group = chunk.row_group().index();
            let path = sawmill_inspect::escaped(&chunk.path()).into_owned();
            let place = format!("{}, row group {group}, column {path}", escaped_place(place));
            let advice = "sawmill footer FILE --check --pages looks for faults";
            opened.because(Error::failure(format!("reading a dictionary failed: {what}"), place, advice))
        };
        let Some(dictionary) = read(opened, &chunk, &failed)? else { continue };
        let (bytes, count) = (dictionary.page.buffer(), dictionary.page.num_values() as usize);
        let values = DictionaryValues::new(chunk.element(), bytes, count).map_err(&failed)?;
        shown.write(&place.to_string(), &chunk, &dictionary, &values).map_err(unwritten)?;
    }
    Ok(())
}

/// The chunk's dictionary, if it has one.
fn read(
    opened: &PlaceBytes,
    chunk: &ColumnChunk<'_>,
    failed: &impl Fn(String) -> Error,
) -> Result<Option<Dictionary>> {
    let is_dictionary = |encoding| matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary);
    let some = chunk.encodings().iter().any(is_dictionary);
    if !some && chunk.dictionary_page_offset().is_none() {
        return Ok(None);
    }
    let alone = chunk_alone(chunk)?;
    let first = chunk.pages(&opened.bytes).and_then(|mut pages| pages.next_header());
    let first = first.map_err(|error| opened.because(error.into()))?;
    let Some(first) = first.filter(|page| page.page_type == PageType::DictionaryPage) else {
        return Ok(None);
    };
    let found = first.uncompressed_size.max(first.compressed_size);
    if found > MAX_LENGTH {
        let most = MAX_LENGTH;
        return Err(failed(format!("expected at most {most} bytes, found one that claims {found}")));
    }
    // Decoders of some codecs do not stop at the claimed size.
    check_chunk_page_sizes(chunk, &opened.bytes, MAX_LENGTH.into(), 1)?;
    let pages = SerializedPageReader::new(Arc::new(opened.bytes.clone()), &alone, 0, None);
    let page = pages.and_then(|mut pages| pages.get_next_page());
    match page.map_err(|error| failed(error.to_string()))? {
        Some(page @ Page::DictionaryPage { .. }) => {
            Ok(Some(Dictionary { page, compressed: first.compressed_size }))
        }
        _ => Err(failed("expected the page that its header announces".to_owned())),
    }
}

impl<W: Write> Shown<'_, W> {
    fn write(
        &mut self,
        file: &str,
        chunk: &ColumnChunk<'_>,
        dictionary: &Dictionary,
        values: &DictionaryValues<'_>,
    ) -> io::Result<()> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let group = chunk.row_group().index();
        self.count += 1;
        if self.console.json {
            let head = serde_json::json!({
                "file": file,
                "row_group": group,
                "column": chunk.leaf(),
                "path": chunk.path(),
                "encoding": dictionary.page.encoding().to_string(),
                "compressed_bytes": dictionary.compressed,
                "uncompressed_bytes": dictionary.page.buffer().len(),
                "num_values": dictionary.page.num_values(),
            });
            self.out.write_all(if self.count == 1 { b"[\n" } else { b",\n" })?;
            return values.json(head, limit, &mut JsonSafe(&mut self.out));
        }
        if self.count > 1 {
            writeln!(self.out)?;
        }
        let style = style(self.console);
        let file = sawmill_inspect::escaped(file);
        let path = chunk.path();
        let path = sawmill_inspect::escaped(&path);
        writeln!(
            self.out,
            "{file}, row group {group}, {path}: {}",
            values.summary(dictionary.compressed, &style)
        )?;
        values.text(limit, &style, &mut self.out)
    }

    fn end(&mut self) -> io::Result<()> {
        match (self.console.json, self.count) {
            (true, 0) => writeln!(self.out, "[]"),
            (true, _) => writeln!(self.out, "\n]"),
            (false, 0) => writeln!(self.out, "no dictionaries"),
            (false, _) => Ok(()),
        }
    }
}
