//! `--json`: one document with everything that was asked for, written while files are read.

use std::cell::RefCell;

use sawmill_inspect::{FooterSummary, OpenFile, View};
use serde::ser::{Error as _, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::footer::Run;

/// The document of a run. Serialising it does the run, so this works only once.
pub(crate) struct Document<'a, 'r>(pub(crate) RefCell<&'a mut Run<'r>>);

struct FileList<'a, 'b, 'r>(&'b RefCell<&'a mut Run<'r>>);

impl Serialize for Document<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("footer", 3)?;
        document.serialize_field("files", &FileList(&self.0))?;
        let run = self.0.borrow();
        document.serialize_field("dataset", &run.dataset)?;
        let errors: Vec<_> = run.failed.iter().map(Error::parts).collect();
        document.serialize_field("errors", &errors)?;
        document.end()
    }
}

impl Serialize for FileList<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut run = self.0.borrow_mut();
        let mut files = serializer.serialize_seq(None)?;
        let views = run.views.clone();
        let mut failure = None;
        let done = run.each(|summary, file| {
            let file = FileDoc { summary: &summary, views: file.map(|file| Views { file, views: &views }) };
            files.serialize_element(&file).map_err(|error| {
                failure = Some(error);
                Error::failure("", "", "")
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

/// The views that were asked for, under the names of their flags.
struct Views<'a> {
    file: &'a OpenFile,
    views: &'a [View],
}

impl Serialize for Views<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let file = self.file;
        let mut views = serializer.serialize_struct("views", self.views.len())?;
        for view in self.views {
            views.serialize_field(view.key(), &view.json(file))?;
        }
        views.end()
    }
}
