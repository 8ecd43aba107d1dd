//! `--json`: one document with everything that was asked for, written while files are read.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use serde::ser::{Error as _, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::footer::bench;
use crate::footer::files::open_file::OpenFile;
use crate::footer::views::checked;
use crate::footer::views::columns;
use crate::footer::views::dumped;
use crate::footer::views::key_value;
use crate::footer::views::page_index;
use crate::footer::views::row_groups;
use crate::footer::views::schema;
use crate::footer::views::sizes;
use crate::footer::views::statistics;
use crate::footer::views::summary::FooterSummary;
use crate::footer::{Run, View};

/// The document of a run. Serialising it does the work, so it can be done once.
pub(crate) struct Document<'a, 'r>(pub(crate) RefCell<&'a mut Run<'r>>);

struct Files<'a, 'b, 'r>(&'b RefCell<&'a mut Run<'r>>);

impl Serialize for Document<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("footer", 3)?;
        document.serialize_field("files", &Files(&self.0))?;
        let run = self.0.borrow();
        document.serialize_field("dataset", &run.dataset)?;
        let errors: Vec<String> = run.failed.iter().map(ToString::to_string).collect();
        document.serialize_field("errors", &errors)?;
        document.end()
    }
}

impl Serialize for Files<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut run = self.0.borrow_mut();
        let mut files = serializer.serialize_seq(None)?;
        let (views, cancel) = (run.views.clone(), run.cancel);
        let mut failure = None;
        let done = run.each(|summary, file| {
            let file =
                FileDoc { summary: &summary, views: file.map(|file| Views { file, views: &views, cancel }) };
            files.serialize_element(&file).map_err(|error| {
                failure = Some(error);
                crate::error::Error::failure("", "", "")
            })
        });
        match (failure, done) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => {
                run.ended = Some(error);
                Err(S::Error::custom("ended"))
            }
            (None, Ok(())) => files.end(),
        }
    }
}

#[derive(Serialize)]
struct FileDoc<'a> {
    #[serde(flatten)]
    summary: &'a FooterSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    views: Option<Views<'a>>,
}

/// The views that were asked for, by the names of their flags.
struct Views<'a> {
    file: &'a OpenFile,
    views: &'a [View],
    cancel: &'a AtomicBool,
}

impl Serialize for Views<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let file = self.file;
        let mut views = serializer.serialize_struct("views", self.views.len())?;
        for view in self.views {
            match view {
                View::Schema => views.serialize_field("schema", &schema::SchemaDoc(file.footer.schema())),
                View::RowGroups => views.serialize_field("row_groups", &row_groups::json(file)),
                View::Columns => views.serialize_field("columns", &columns::json(file)),
                View::Statistics => views.serialize_field("statistics", &statistics::json(file)),
                View::PageIndex => views.serialize_field("page_index", &page_index::json(file)),
                View::KeyValue => views.serialize_field("key_value", &key_value::json(file)),
                View::Sizes => views.serialize_field("sizes", &sizes::sizes(file)),
                View::Check { pages } => views.serialize_field("check", &checked::json(file, *pages)),
                View::Bench => views.serialize_field("bench", &bench::bench(file, self.cancel)),
                View::Dump => views.serialize_field("dump", &dumped::DumpDoc(file)),
            }?;
        }
        views.end()
    }
}
