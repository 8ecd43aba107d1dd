//! What a load reads of the files: the columns that folders name, and what a condition skips.

use sawmill_source::{Filtered, FolderColumn, FolderKind, Pruned};
use serde::Serialize;

use crate::arguments::inputs::Inputs;
use crate::screen::phases::thousands;

/// The part of a report about it, for people and for `--json`.
#[derive(Serialize)]
pub(crate) struct Reading {
    pub folders: Vec<FolderColumn>,
    pub pruned: Option<Pruned>,
}

impl Reading {
    pub(crate) fn of(inputs: &Inputs, filtered: Option<&Filtered<'_>>) -> Self {
        let folders = inputs.files().map(|files| files.folders().to_vec()).unwrap_or_default();
        Self { folders, pruned: filtered.map(Filtered::pruned) }
    }

    /// `columns from folders: year (integer), region (text)`; `None` if no folder names a column.
    pub(crate) fn folders(&self) -> Option<String> {
        let named = |column: &FolderColumn| {
            let kind = match (column.in_files, column.kind) {
                (true, _) => "taken from the files, which have it too",
                (_, FolderKind::Integer) => "integer",
                (_, FolderKind::Date) => "date",
                (_, FolderKind::Text) => "text",
            };
            format!("{} ({kind})", column.name)
        };
        let named: Vec<String> = self.folders.iter().map(named).collect();
        (!named.is_empty()).then(|| format!("columns from folders: {}", named.join(", ")))
    }

    pub(crate) fn lines(&self) -> String {
        let folders = self.folders().map(|line| line + "\n").unwrap_or_default();
        let Some(pruned) = &self.pruned else { return folders };
        let of_folders = match pruned.files_pruned + pruned.files_whole {
            0 => String::new(),
            _ => format!(
                "folders: of {} files, {} have no matching rows and {} have only matching rows\n",
                thousands(pruned.files),
                thousands(pruned.files_pruned),
                thousands(pruned.files_whole),
            ),
        };
        format!(
            "{folders}{of_folders}statistics: of {} row groups, {} have no matching rows and {} have only matching rows; \
             of {} pages of the condition's columns in the other row groups, {} have no matching rows\n",
            thousands(pruned.row_groups),
            thousands(pruned.row_groups_pruned),
            thousands(pruned.row_groups_whole),
            thousands(pruned.pages),
            thousands(pruned.pages_pruned),
        )
    }
}
