//! One run of the command: decodes files on threads, shows them in their order, and keeps errors for the end.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use sawmill_footer::{Footer, Options, RangeReader};
use sawmill_inspect::{
    CSV_HEADER, CheckTotal, Dataset, Facts, FooterSummary, JsonSafe, MergePlan, OpenFile, TextStyle, View,
    consistent, dump_undecoded, summary_table, write_csv, write_ndjson, write_remarks,
};
use sawmill_profile::Pool;
use sawmill_source::ObjectBytes;
use sawmill_store::{are_inputs_confined, open_input, open_regular_input};
use serde::Serialize;

use crate::arguments::stores::Objects;
use crate::error::{Error, Result};
use crate::footer::document::Document;
use crate::footer::place::Place;
use crate::footer::selection::RowGroups;
use crate::footer::{decode, escaped_place, style};
use crate::interrupt;
use crate::screen::console::Console;

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Ndjson,
    Csv,
    MergePlan,
}

/// How many summaries may wait to be shown. Of footers, which are far larger, one waits for each thread.
const AHEAD: usize = 1024;

/// A run of the command.
pub(crate) struct Run<'r> {
    files: &'r [Place],
    objects: &'r Objects,
    opening: Opening,
    pub views: Vec<View>,
    format: OutputFormat,
    console: Console,
    pub dataset: Dataset,
    /// Errors of files that could not be read, or not completely.
    pub failed: Vec<Error>,
    broken: Vec<usize>,
    /// Why the run ended early.
    pub ended: Option<Error>,
}

/// How to open files.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub options: Options,
    /// Whether a footer that contradicts itself is an error.
    pub is_checked: bool,
    /// The row groups that the options select.
    pub row_groups: Option<RowGroups>,
    /// Whether to map footers into memory instead of reading them.
    #[cfg(target_pointer_width = "64")]
    pub mapped: bool,
    /// How many last bytes of an object to read first.
    pub tail: u64,
    /// The longest footer to read.
    pub max_footer: u64,
    /// How many objects to read at the same time.
    pub requests: usize,
}

/// A decoded file on its way from the thread that decoded it.
struct Decoded {
    summary: FooterSummary,
    facts: Option<Facts>,
    /// The selected row groups that the file does not have.
    missed: Option<String>,
    /// Set if views need it.
    footer: Option<Footer>,
    /// The name to show for an input without a path, such as standard input.
    reader: Option<Reader>,
}

/// An object, or standard input.
type Reader = Box<dyn RangeReader + Send>;

/// A decoded file, and what an object or standard input was read from.
pub(crate) type Opened = (FooterSummary, Footer, Option<Reader>);

impl Opening {
    /// Opens files as `sawmill footer` does by default.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            is_checked: false,
            row_groups: None,
            #[cfg(target_pointer_width = "64")]
            mapped: false,
            tail: 64 << 10,
            max_footer: 1 << 30,
            requests: 64,
        }
    }

    /// Opens a file, and decodes its footer.
    pub(crate) fn open(&self, place: &Place, objects: &Objects) -> Result<Opened> {
        let opened = self.decode(place, objects)?;
        if self.is_checked {
            consistent(&opened.1)?;
        }
        Ok(opened)
    }

    fn decode(&self, place: &Place, objects: &Objects) -> Result<Opened> {
        match place {
            Place::Path(path) => {
                let (summary, footer) = self.open_file(path)?;
                let reader = || open_input(path).ok().map(|file| Box::new(file) as Reader);
                Ok((summary, footer, if are_inputs_confined() { reader() } else { None }))
            }
            Place::StandardInput(bytes) => {
                let read = || Footer::read(bytes, &place.to_string(), &self.options);
                let (summary, footer) = FooterSummary::new(&place.name(), read)?;
                Ok((summary, footer, Some(Box::new(bytes.clone()))))
            }
            Place::Object(url) => {
                let name = url.to_string();
                let mut opened = None;
                let read = FooterSummary::new(Path::new(&name), || {
                    let object = opened.insert(ObjectBytes(objects.open(url, self.tail)?));
                    Footer::read(object, &name, &self.options).map_err(Error::from)
                });
                // The store's error says more than the decoder's.
                match opened.as_ref().and_then(|object| object.0.fault().cloned()) {
                    Some(fault) => Err(fault.into()),
                    None => read.map(|(summary, footer)| {
                        (summary, footer, opened.map(|object| Box::new(object) as Reader))
                    }),
                }
            }
        }
    }

    fn open_file(&self, file: &Path) -> Result<(FooterSummary, Footer), sawmill_footer::Error> {
        #[cfg(target_pointer_width = "64")]
        if self.mapped && !are_inputs_confined() {
            // SAFETY: the user who gives `--mapped` vouches for the files, as its help says.
            return FooterSummary::new(file, || unsafe { Footer::open_mapped(file, &self.options) });
        }
        decode(file, &self.options)
    }
}

impl<'r> Run<'r> {
    pub(crate) fn new(
        (files, objects): (&'r [Place], &'r Objects),
        opening: Opening,
        views: Vec<View>,
        format: OutputFormat,
        console: Console,
    ) -> Self {
        Run {
            files,
            objects,
            opening,
            views,
            format,
            console,
            dataset: Dataset::default(),
            failed: Vec::new(),
            broken: Vec::new(),
            ended: None,
        }
    }

    /// Shows everything, then reports what could not be read.
    pub(crate) fn run(mut self) -> Result<()> {
        match self.format {
            OutputFormat::Text if self.views.is_empty() => self.summary(),
            OutputFormat::Text => self.text(),
            OutputFormat::Json => self.json(),
            OutputFormat::Ndjson => self.lines("", write_ndjson),
            OutputFormat::Csv => self.lines(&format!("{CSV_HEADER}\n"), write_csv),
            OutputFormat::MergePlan => Ok(()),
        }?;
        self.report()
    }

    /// Plans a merge of small files into files of up to `target` bytes.
    pub(crate) fn plan_merge(mut self, target: u64) -> Result<()> {
        let mut plan = MergePlan::new(target);
        self.each(|summary, file| {
            file.into_iter().for_each(|file| plan.add(&summary, file.footer()));
            Ok(())
        })?;
        plan.finish();
        match self.console.json {
            true => self.console.result(&plan, String::new)?,
            false => end(self.console.output(), |out| plan.text(&style(self.console), out))?,
        }
        self.report()
    }

    /// The errors of files that could not be read.
    fn report(self) -> Result<()> {
        Error::of_files(self.failed, self.files.len())
    }

    /// Whether a file's footer is needed for more than its summary.
    fn needs_footers(&self) -> bool {
        !self.views.is_empty()
            || matches!(self.format, OutputFormat::Ndjson | OutputFormat::Csv | OutputFormat::MergePlan)
    }

    /// Whether the dataset is part of the output.
    fn needs_dataset(&self) -> bool {
        self.format == OutputFormat::Json
            || (self.format == OutputFormat::Text && self.views.is_empty() && self.files.len() > 1)
    }

    /// Decodes all files and passes them to `take` in their order. Errors of files are kept.
    ///
    /// # Errors
    ///
    /// The first error of `take`; or the run was interrupted.
    pub(crate) fn each(
        &mut self,
        mut take: impl FnMut(FooterSummary, Option<&OpenFile>) -> Result<()>,
    ) -> Result<()> {
        let (footers, dataset, several) = (self.needs_footers(), self.needs_dataset(), self.files.len() > 1);
        let (files, objects, style) = (self.files, self.objects, style(self.console));
        let opening = self.opening.clone();
        let decode = |index: usize| -> Result<Option<Decoded>> {
            if interrupt::asked() {
                return Ok(None);
            }
            let (summary, footer, reader) = opening.open(&files[index], objects)?;
            let there = footer.num_row_groups_in_file();
            let missed = opening.row_groups.as_ref().and_then(|wanted| wanted.missed(there));
            let facts = dataset.then(|| Facts::new(&summary, &footer, several));
            Ok(Some(Decoded { summary, facts, missed, footer: footers.then_some(footer), reader }))
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Threads that read objects wait most of the time.
        let threads = match files.iter().any(|file| matches!(file, Place::Object(_))) {
            true => processors.max(self.opening.requests),
            false => processors,
        };
        // While one object takes a second more, the others of that second are decoded.
        let ahead = if footers { threads } else { AHEAD.max(64 * threads) };
        // A bar would disturb views that are written to the terminal.
        let bar = match several && !(footers && io::stdout().is_terminal()) {
            true => self.console.bar_of_files(files.len() as u64),
            false => None,
        };
        let pool = Pool::new("footer", threads.min(files.len()), None);
        let decode = |index| (index, decode(index));
        let result = pool.in_order(0..files.len(), ahead, decode, |(index, decoded)| {
            if let Some(bar) = &bar {
                bar.inc(1);
            }
            self.take(index, decoded, style, &mut take)?;
            interrupt::check()
        });
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        result
    }

    /// Shows one file by `take`, and keeps its errors for the end.
    fn take(
        &mut self,
        index: usize,
        decoded: Result<Option<Decoded>>,
        style: TextStyle,
        take: &mut impl FnMut(FooterSummary, Option<&OpenFile>) -> Result<()>,
    ) -> Result<()> {
        let path = &self.files[index];
        match decoded {
            Ok(Some(Decoded { missed: Some(what), .. })) => {
                let advice = "--row-groups shows the row groups of the file";
                self.failed.push(Error::failure(what, escaped_place(path), advice));
            }
            Ok(Some(Decoded { summary, facts, footer, reader, .. })) => {
                let fault = facts.and_then(|facts| self.dataset.add(&summary, facts));
                let name = summary.file.clone();
                let file = footer.map(|footer| match reader {
                    None => OpenFile::new(&name, footer, style).stopped_by(interrupt::asked),
                    Some(reader) => OpenFile::over(&name, footer, style, reader),
                });
                take(summary, file.as_ref())?;
                // One error for each file is enough.
                let fault = fault.map(Error::from).or(file.and_then(OpenFile::into_fault).map(Error::from));
                self.failed.extend(fault);
            }
            Ok(None) => {}
            Err(error) => {
                self.failed.push(error);
                self.broken.push(index);
            }
        }
        Ok(())
    }

    /// A table of all files, and what they are together.
    fn summary(&mut self) -> Result<()> {
        let mut summaries = Vec::with_capacity(self.files.len());
        self.each(|summary, _| {
            summaries.push(summary);
            Ok(())
        })?;
        if summaries.is_empty() && !self.failed.is_empty() {
            return Ok(());
        }
        let (dataset, style) = (&self.dataset, style(self.console));
        end(self.console.output(), |out| {
            out.write_all(summary_table(&summaries, &style).as_bytes())?;
            match summaries.as_slice() {
                [] => Ok(()),
                [only] => write_remarks(only, out),
                _ => {
                    writeln!(out)?;
                    dataset.text(&style, out)
                }
            }
        })
    }

    /// The views of all files, one after the other.
    fn text(&mut self) -> Result<()> {
        let views = self.views.clone();
        if let ([View::Check { pages }], 2..) = (views.as_slice(), self.files.len()) {
            return self.check(*pages);
        }
        let titles = views.len() > 1 || self.files.len() > 1;
        let mut out = self.console.output();
        let mut first = true;
        self.each_file(&mut out, |file, out| {
            for &view in &views {
                if !std::mem::take(&mut first) {
                    writeln!(out)?;
                }
                if titles {
                    writeln!(out, "{}: {}", file.name(), view.title())?;
                }
                view.text(file, out)?;
            }
            Ok(())
        })?;
        end(out, |out| if views.contains(&View::Dump) { self.dump_broken(out) } else { Ok(()) })
    }

    /// What can be dumped of the footers that could not be decoded.
    fn dump_broken(&self, out: &mut dyn Write) -> io::Result<()> {
        let (style, most) = (style(self.console), self.opening.max_footer);
        for &index in &self.broken {
            writeln!(out)?;
            let place = &self.files[index];
            let reader: Option<Reader> = match place {
                Place::Path(path) => open_regular_input(path).ok().map(|file| Box::new(file) as Reader),
                Place::StandardInput(bytes) => Some(Box::new(bytes.clone())),
                Place::Object(url) => {
                    let object = self.objects.open(url, self.opening.tail).ok();
                    object.map(|object| Box::new(ObjectBytes(object)) as Reader)
                }
            };
            let reader = reader.as_deref().map(|reader| reader as &dyn RangeReader);
            dump_undecoded((&place.name(), reader), most, &style, out)?;
        }
        Ok(())
    }

    /// The findings in several files, and a total.
    fn check(&mut self, pages: bool) -> Result<()> {
        let mut out = self.console.output();
        let mut total = CheckTotal::default();
        self.each_file(&mut out, |file, out| total.add(file, pages, out))?;
        let unreadable = self.broken.len() as u64;
        end(out, |out| total.write(pages, unreadable, &style(self.console), out))
    }

    /// One document.
    fn json(&mut self) -> Result<()> {
        let mut out = self.console.output();
        let done = {
            let mut serializer = serde_json::Serializer::pretty(JsonSafe(&mut out));
            Document(RefCell::new(&mut *self)).serialize(&mut serializer)
        };
        if let Some(ended) = self.ended.take() {
            return Err(ended);
        }
        done.map_err(|error| unwritten(error.into()))?;
        end(out, |out| writeln!(out))
    }

    /// The column chunks of all files, one on each line.
    fn lines(
        &mut self,
        head: &str,
        write: impl Fn(&OpenFile, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut out = self.console.output();
        out.write_all(head.as_bytes()).map_err(unwritten)?;
        self.each_file(&mut out, write)?;
        end(out, |_| Ok(()))
    }

    /// Writes what `show` says of each file.
    fn each_file(
        &mut self,
        out: &mut dyn Write,
        mut show: impl FnMut(&OpenFile, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        self.each(|_, file| file.map_or(Ok(()), |file| show(file, out).map_err(unwritten)))
    }
}

/// Ends the output with `text`.
fn end(mut out: impl Write, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    text(&mut out).and_then(|()| out.flush()).map_err(unwritten)
}

/// The error of an output that ended early: interrupted, or not writable.
pub(crate) fn unwritten(error: io::Error) -> Error {
    interrupt::check().err().unwrap_or_else(|| Error::output(&error))
}
