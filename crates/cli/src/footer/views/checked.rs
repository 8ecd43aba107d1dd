//! `--check`: everything that is wrong in what a footer says of itself, its file and its page indexes, and in its pages.

use std::io::{self, Write};

use sawmill_footer::Finding;
use serde::Serialize;

use crate::error::Error;
use crate::footer::files::open_file::OpenFile;
use crate::footer::text::escape::escaped;
use crate::screen::phases::thousands;

/// A finding for programs.
#[derive(Serialize)]
pub(crate) struct Wrong {
    what: String,
    /// The Thrift path.
    path: String,
    /// The byte of the footer, and of the file, at which the struct starts that says it.
    footer_offset: Option<u64>,
    file_offset: Option<u64>,
}

/// The bytes behind a footer: its length and the magic.
const TAIL: u64 = 8;

/// Tells `found` every finding; that there are any is an error of the file. With `pages`, those are read, too.
fn check(file: &OpenFile, pages: bool, mut found: impl FnMut(Finding)) -> Checked {
    let mut checked = Checked::default();
    let mut tell = |finding: Finding| {
        checked.wrong += 1;
        found(finding);
    };
    match file.reader() {
        Some(reader) => {
            file.or_fault(file.footer.check_file(reader, &mut tell));
            if pages {
                let sums = file.footer.check_pages(reader, &mut tell);
                (checked.pages, checked.with_checksum) = (sums.pages, sums.checked);
            }
        }
        None => file.footer.check(&mut tell),
    }
    if checked.wrong > 0 {
        let what = format!("{} wrong in the file", things(checked.wrong));
        file.fail(|| Error::failure(what, &file.name, "write it again, or leave out what is wrong"));
    }
    checked
}

/// What a check has looked at, and how much of it is wrong.
#[derive(Clone, Copy, Default)]
struct Checked {
    wrong: u64,
    pages: u64,
    /// Pages whose checksum is that of their bytes.
    with_checksum: u64,
}

impl Checked {
    /// `, 12 pages read, 10 of them by their checksums`
    fn pages(&self, asked: bool) -> String {
        match (asked, self.pages, self.with_checksum) {
            (false, ..) => String::new(),
            (true, pages, 0) => format!(", {} pages read, none of them with a checksum", thousands(pages)),
            (true, pages, sums) => {
                format!(", {} pages read, the checksums of {} compared", thousands(pages), thousands(sums))
            }
        }
    }
}

fn things(count: u64) -> String {
    match count {
        1 => "1 thing is".to_owned(),
        count => format!("{} things are", thousands(count)),
    }
}

/// What is found in several files.
#[derive(Default)]
pub(crate) struct Total {
    files: u64,
    wrong_files: u64,
    checked: Checked,
}

impl Total {
    /// Checks a file and writes what is wrong with it, a line each.
    pub(crate) fn add(&mut self, file: &OpenFile, pages: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut written = Ok(());
        let Checked { wrong, pages, with_checksum } = check(file, pages, |finding| {
            if written.is_ok() {
                written = writeln!(out, "{}: {}", file.name, escaped(&finding.to_string()));
            }
        });
        self.files += 1;
        self.wrong_files += u64::from(wrong > 0);
        self.checked.wrong += wrong;
        self.checked.pages += pages;
        self.checked.with_checksum += with_checksum;
        written
    }

    pub(crate) fn write(&self, pages: bool, unreadable: u64, out: &mut dyn Write) -> io::Result<()> {
        let found = match (self.checked.wrong, self.wrong_files) {
            (0, _) => "nothing wrong".to_owned(),
            (wrong, 1) => format!("{} wrong in 1 of them", things(wrong)),
            (wrong, files) => format!("{} wrong in {} of them", things(wrong), thousands(files)),
        };
        let pages = self.checked.pages(pages);
        write!(out, "{} files checked{pages}: {found}", thousands(self.files))?;
        match unreadable {
            0 => writeln!(out),
            files => writeln!(out, "; {} more could not be read", thousands(files)),
        }
    }
}

pub(crate) fn json(file: &OpenFile, pages: bool) -> Vec<Wrong> {
    let start =
        file.footer.file_len().and_then(|len| len.checked_sub(TAIL + file.footer.footer_len() as u64));
    let mut all = Vec::new();
    check(file, pages, |Finding { what, path, offset, .. }| {
        let file_offset = start.zip(offset).map(|(start, offset)| start + offset);
        all.push(Wrong { what, path, footer_offset: offset, file_offset });
    });
    all
}

/// A finding a line.
pub(crate) fn text(file: &OpenFile, pages: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut written = Ok(());
    let checked = check(file, pages, |finding| {
        if written.is_ok() {
            written = writeln!(out, "{}", escaped(&finding.to_string()));
        }
    });
    written?;
    match checked.wrong {
        0 => writeln!(out, "nothing wrong in {}{}", file.name, checked.pages(pages)),
        _ => Ok(()),
    }
}
