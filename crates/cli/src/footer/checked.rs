//! `--check`: everything that is wrong in what a footer says of itself, its file and its page indexes.

use std::io::{self, Write};

use sawmill_footer::Finding;
use serde::Serialize;

use crate::error::Error;
use crate::footer::open_file::OpenFile;
use crate::footer::text::escaped;
use crate::phases::thousands;

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

/// Tells `found` every finding; that there are any is an error of the file.
fn check(file: &OpenFile, mut found: impl FnMut(Finding)) {
    let mut count = 0;
    let mut tell = |finding: Finding| {
        count += 1;
        found(finding);
    };
    match file.reader() {
        Some(reader) => {
            file.or_fault(file.footer.check_file(reader, &mut tell));
        }
        None => file.footer.check(&mut tell),
    }
    if count > 0 {
        let what = match count {
            1 => "1 thing is wrong in the file".to_owned(),
            count => format!("{} things are wrong in the file", thousands(count)),
        };
        file.fail(|| Error::failure(what, &file.name, "write it again, or leave out what is wrong"));
    }
}

pub(crate) fn json(file: &OpenFile) -> Vec<Wrong> {
    let start =
        file.footer.file_len().and_then(|len| len.checked_sub(TAIL + file.footer.footer_len() as u64));
    let mut all = Vec::new();
    check(file, |Finding { what, path, offset, .. }| {
        let file_offset = start.zip(offset).map(|(start, offset)| start + offset);
        all.push(Wrong { what, path, footer_offset: offset, file_offset });
    });
    all
}

/// A finding a line.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let mut written = Ok(());
    let mut none = true;
    check(file, |finding| {
        none = false;
        if written.is_ok() {
            written = writeln!(out, "{}", escaped(&finding.to_string()));
        }
    });
    written?;
    if none {
        writeln!(out, "nothing wrong in {}", file.name)?;
    }
    Ok(())
}
