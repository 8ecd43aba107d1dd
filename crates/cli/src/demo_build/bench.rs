//! `sawmill bench`.

use std::path::Path;

pub(crate) use crate::demo_build::FullCommand as BenchArgs;
use crate::error::{Error, Result};
use crate::screen::console::Console;
use crate::sweep::Parameters;

pub(crate) fn run(_: &[(&Parameters, &BenchArgs)], _: Option<&Path>, _: Console) -> Result<()> {
    Err(Error::not_built("sawmill bench"))
}
