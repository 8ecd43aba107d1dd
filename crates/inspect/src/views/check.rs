//! `--check`: everything in which a footer contradicts itself, its file, its page indexes or its pages.

use std::io::{self, Write};

use serde::Serialize;

use crate::check::{self, Inconsistency};
use crate::error::Error;
use crate::file::open_file::OpenFile;
use crate::pages::chunks::check_pages;
use crate::text::escape::escaped;
use crate::text::style::TextStyle;

/// A finding for programs.
#[derive(Serialize)]
pub(crate) struct Wrong {
    what: String,
    /// The Thrift path.
    path: String,
    /// Where the struct that states it starts, in the footer and in the file.
    footer_offset: Option<u64>,
    file_offset: Option<u64>,
}

/// The bytes after a footer: its length and the magic.
const TAIL: u64 = 8;

/// Passes each finding to `found`; any finding is a fault of the file. With `pages`, reads the pages, too.
fn check(file: &OpenFile, pages: bool, mut found: impl FnMut(Inconsistency)) -> Checked {
    let mut checked = Checked::default();
    let mut count = |finding: Inconsistency| {
        checked.wrong += 1;
        if !(file.is_stopped)() {
            found(finding);
        }
    };
    // Of a footer alone, only the footer can be checked.
    let reader = if file.footer.has_no_data() && !pages { None } else { file.reader() };
    match reader {
        Some(reader) => {
            if let Err(error) = check::check_file(&file.footer, reader, &mut count) {
                file.fail(|| error);
            }
            if pages {
                let (sums, left_out) = check_pages(&file.footer, reader, &mut count);
                checked = Checked { pages: sums.pages, with_checksum: sums.checked, left_out, ..checked };
            }
        }
        None => check::check(&file.footer, &mut count),
    }
    if checked.wrong > 0 {
        let what = format!("{} wrong in the file", things(checked.wrong, &file.style));
        file.fail(|| Error::new(what, &file.name, "write it again, or leave out what is wrong"));
    }
    checked
}

/// What a check has read, and how much of it is wrong.
#[derive(Clone, Copy, Default)]
struct Checked {
    wrong: u64,
    pages: u64,
    /// Pages whose checksum matches their bytes.
    with_checksum: u64,
    /// Column chunks whose pages cannot be read.
    left_out: u64,
}

impl Checked {
    /// `, 12 pages read, the checksums of 10 compared`
    fn pages(&self, asked: bool, style: &TextStyle) -> String {
        if !asked {
            return String::new();
        }
        let sums = match self.with_checksum {
            0 => "none of them with a checksum".to_owned(),
            sums => format!("the checksums of {} compared", style.count(sums)),
        };
        let left_out = match self.left_out {
            0 => String::new(),
            chunks => {
                let chunks = style.counted(chunks, "column chunk");
                format!(", {chunks} left out (encrypted or in another file)")
            }
        };
        format!(", {} pages read, {sums}{left_out}", style.count(self.pages))
    }
}

fn things(count: u64, style: &TextStyle) -> String {
    match count {
        1 => "1 thing is".to_owned(),
        count => format!("{} things are", style.count(count)),
    }
}

/// The check of several files: their faults, and a total.
#[derive(Default)]
pub struct CheckTotal {
    files: u64,
    wrong_files: u64,
    checked: Checked,
}

impl CheckTotal {
    /// Checks a file and writes one line for each finding. With `pages`, reads the pages, too.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, file: &OpenFile, pages: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut written = Ok(());
        let Checked { wrong, pages, with_checksum, left_out } = check(file, pages, |finding| {
            if written.is_ok() {
                written = writeln!(out, "{}: {}", file.name, escaped(&finding.to_string()));
            }
        });
        self.files += 1;
        self.wrong_files += u64::from(wrong > 0);
        self.checked.wrong += wrong;
        self.checked.pages += pages;
        self.checked.with_checksum += with_checksum;
        self.checked.left_out += left_out;
        written
    }

    /// Writes the total; `unreadable` files could not be checked.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(
        &self,
        pages: bool,
        unreadable: u64,
        style: &TextStyle,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let found = match (self.checked.wrong, self.wrong_files) {
            (0, _) => "nothing wrong".to_owned(),
            (wrong, 1) => format!("{} wrong in 1 of them", things(wrong, style)),
            (wrong, files) => format!("{} wrong in {} of them", things(wrong, style), style.count(files)),
        };
        let pages = self.checked.pages(pages, style);
        write!(out, "{} checked{pages}: {found}", style.counted(self.files, "file"))?;
        match unreadable {
            0 => writeln!(out),
            files => writeln!(out, "; {} more could not be read", style.count(files)),
        }
    }
}

pub(crate) fn json(file: &OpenFile, pages: bool) -> Vec<Wrong> {
    let start =
        file.footer.file_len().and_then(|len| len.checked_sub(TAIL + file.footer.footer_len() as u64));
    let mut all = Vec::new();
    check(file, pages, |Inconsistency { what, path, offset, .. }| {
        let file_offset = start.zip(offset).map(|(start, offset)| start + offset);
        all.push(Wrong { what, path, footer_offset: offset, file_offset });
    });
    all
}

/// One line for each finding.
pub(crate) fn text(file: &OpenFile, pages: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut written = Ok(());
    let checked = check(file, pages, |finding| {
        if written.is_ok() {
            written = writeln!(out, "{}", escaped(&finding.to_string()));
        }
    });
    written?;
    match checked.wrong {
        0 if !file.has_fault() => {
            writeln!(out, "nothing wrong in {}{}", file.name, checked.pages(pages, &file.style))
        }
        _ => Ok(()),
    }
}
