//! What a load reads of the files: the columns that folders name, and what a condition skips.

use sawmill_profile::PhaseReport;
use sawmill_source::{Filtered, FolderColumn, FolderKind, Pruned};
use serde::Serialize;

use crate::arguments::inputs::{Inputs, TextFound};
use crate::arguments::order_args::{IndexPlan, Ordered};
use crate::screen::phases::{bytes, counted, thousands};

/// The part of a report about reading, for people and for `--json`.
#[derive(Default, Serialize)]
pub(crate) struct Reading {
    pub folders: Vec<FolderColumn>,
    /// The inferred dialect and column types of text, in plans.
    #[serde(flatten, skip_serializing_if = "TextFound::is_empty")]
    pub text: TextFound,
    pub pruned: Option<Pruned>,
    /// Records of text that cannot be read, and are not among the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_left_out: Option<u64>,
    /// The phases so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseReport>,
    /// How rows would be sorted, in plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexPlan>,
    /// How rows were sorted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered: Option<Ordered>,
    /// The requests for the columns of all objects or, with a condition, for the pages with passing rows. `None`
    /// without objects.
    pub objects: Option<ObjectRequests>,
}

/// Requests to stores, and the bytes that they ask for.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct ObjectRequests {
    requests: u64,
    bytes: u64,
    /// How many bytes of them each connection may hold.
    read_ahead_bytes: u64,
}

impl Reading {
    pub(crate) fn new(inputs: &Inputs, filtered: Option<&Filtered<'_>>) -> Self {
        let folders = inputs.folders.clone();
        let objects = inputs.files().and_then(|files| {
            let (requests, bytes) = filtered.map_or_else(|| files.requests(), Filtered::requests)?;
            Some(ObjectRequests { requests, bytes, read_ahead_bytes: files.read_ahead_bytes() })
        });
        Self {
            folders,
            pruned: filtered.and_then(Filtered::pruned),
            records_left_out: inputs.records_left_out_in_all(),
            objects,
            ..Self::default()
        }
    }

    /// `columns from folders: year (bigint), region (text)`; `None` if no folder names a column.
    pub(crate) fn folders(&self) -> Option<String> {
        let named = |column: &FolderColumn| {
            let kind = match (column.in_files, column.kind) {
                (true, _) => "taken from the files, which have it too",
                (_, FolderKind::Integer) => "bigint",
                (_, FolderKind::Date) => "date",
                (_, FolderKind::Text) => "text",
            };
            format!("{} ({kind})", column.name)
        };
        let named: Vec<String> = self.folders.iter().map(named).collect();
        (!named.is_empty()).then(|| format!("columns from folders: {}", named.join(", ")))
    }

    /// `objects: 12 requests for 96.0 MB`.
    fn requests(&self) -> String {
        let Some(ObjectRequests { requests, bytes: asked, read_ahead_bytes }) = self.objects else {
            return String::new();
        };
        format!(
            "objects: {} for {}; at most {} of them in memory for each connection, and once more \
             for the next row group\n",
            counted(requests, "request"),
            bytes(asked),
            bytes(read_ahead_bytes)
        )
    }

    /// `2 records cannot be read and are left out`; empty if there are none.
    pub(crate) fn left_out(&self) -> String {
        match self.records_left_out.unwrap_or_default() {
            0 => String::new(),
            1 => "1 record cannot be read and is left out\n".to_owned(),
            more => format!("{} records cannot be read and are left out\n", thousands(more)),
        }
    }

    /// The dialect and the types of text, and why it has them.
    fn text(&self) -> String {
        match self.text.is_empty() {
            true => String::new(),
            false => self.text.lines() + "types inferred from a sample; --types NAME=TYPE gives others\n\n",
        }
    }

    pub(crate) fn lines(&self) -> String {
        let folders = self.folders().map(|line| line + "\n").unwrap_or_default();
        let index = self.index.as_ref().map(IndexPlan::lines).unwrap_or_default();
        let folders = self.text() + &folders + &index + &self.requests();
        let Some(pruned) = &self.pruned else { return folders };
        let of_folders = match pruned.files_pruned + pruned.files_whole {
            0 => String::new(),
            _ => format!(
                "folders: of {}, {} without matching rows and {} with matching rows only\n",
                counted(pruned.files, "file"),
                thousands(pruned.files_pruned),
                thousands(pruned.files_whole),
            ),
        };
        format!(
            "{folders}{of_folders}statistics: of {}, {} without matching rows and {} with matching rows only; \
             of {} of the condition's columns in the other row groups, {} without matching rows\n",
            counted(pruned.row_groups, "row group"),
            thousands(pruned.row_groups_pruned),
            thousands(pruned.row_groups_whole),
            counted(pruned.pages, "page"),
            thousands(pruned.pages_pruned),
        )
    }
}
