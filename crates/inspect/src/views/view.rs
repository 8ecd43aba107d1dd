//! A view by its name: what to show of a file, as text or as JSON.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::file::open_file::OpenFile;
use crate::views::{
    check, columns, dump, key_value, page_headers, page_index, row_groups, schema, sizes, statistics,
};

/// What can be shown of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The schema, as a message type and as a tree.
    Schema,
    /// Rows, sizes, places and orders of the row groups.
    RowGroups,
    /// Types, codecs, encodings, sizes and places of the column chunks.
    Columns,
    /// Bounds and counts of the column chunks.
    Statistics,
    /// The data pages of the column chunks, from the page indexes.
    PageIndex,
    /// All pages of the column chunks, from their headers.
    PageHeaders,
    /// The file's keys and values.
    KeyValue,
    /// Where the bytes of the file and of its footer go.
    Sizes,
    /// Every value of the footer's Thrift.
    Dump,
    /// Everything that is wrong. A finding is a fault of the file.
    Check {
        /// Reads the pages, too, and compares their checksums.
        pages: bool,
    },
}

impl View {
    /// Its name for people: `row groups`.
    pub fn title(self) -> String {
        match self {
            View::KeyValue => "keys and values".to_owned(),
            view => view.key().replace('_', " "),
        }
    }

    /// Its name for programs: `row_groups`.
    pub fn key(self) -> &'static str {
        match self {
            View::Schema => "schema",
            View::RowGroups => "row_groups",
            View::Columns => "columns",
            View::Statistics => "statistics",
            View::PageIndex => "page_index",
            View::PageHeaders => "page_headers",
            View::KeyValue => "key_value",
            View::Sizes => "sizes",
            View::Dump => "dump",
            View::Check { .. } => "check",
        }
    }

    /// Writes the view for people.
    ///
    /// # Errors
    ///
    /// Writing failed. The fault of the file is [separate](OpenFile::into_fault).
    pub fn text(self, file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
        let by_row_group = matches!(
            self,
            View::RowGroups | View::Columns | View::Statistics | View::PageIndex | View::PageHeaders
        );
        if by_row_group && file.footer.num_row_groups() == 0 {
            return writeln!(out, "no row groups");
        }
        match self {
            View::Schema => schema::text(file, out),
            View::RowGroups => row_groups::text(file, out),
            View::Columns => columns::text(file, out),
            View::Statistics => statistics::text(file, out),
            View::PageIndex => page_index::text(file, out),
            View::PageHeaders => page_headers::text(file, out),
            View::KeyValue => key_value::text(file, out),
            View::Sizes => sizes::text(file, out),
            View::Check { pages } => check::text(file, pages, out),
            View::Dump => dump::text(file, out),
        }
    }

    /// The view for programs. It reads the file while it is serialised.
    pub fn json(self, file: &OpenFile) -> impl Serialize + '_ {
        Json { view: self, file }
    }
}

struct Json<'a> {
    view: View,
    file: &'a OpenFile,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let file = self.file;
        match self.view {
            View::Schema => schema::SchemaDoc(file.footer.schema()).serialize(serializer),
            View::RowGroups => row_groups::json(file).serialize(serializer),
            View::Columns => columns::json(file).serialize(serializer),
            View::Statistics => statistics::json(file).serialize(serializer),
            View::PageIndex => page_index::json(file).serialize(serializer),
            View::PageHeaders => page_headers::json(file).serialize(serializer),
            View::KeyValue => key_value::json(file).serialize(serializer),
            View::Sizes => sizes::sizes(file).serialize(serializer),
            View::Check { pages } => check::json(file, pages).serialize(serializer),
            View::Dump => dump::DumpDoc(file).serialize(serializer),
        }
    }
}
