//! Files of text.

use sawmill_source::Hive;
use sawmill_store::Location;
use tempfile::NamedTempFile;

use crate::arguments::inputs::{How, Inputs};
use crate::arguments::stores::Objects;
use crate::arguments::text::TextKind;
use crate::error::{Error, Result};

pub(crate) fn open_text(
    files: &[Location],
    _: TextKind,
    _: &Objects,
    _: Option<NamedTempFile>,
    _: Hive,
    _: How<'_>,
) -> Result<Inputs> {
    Err(Error::not_built(files.first().map(ToString::to_string).unwrap_or_default()))
}
