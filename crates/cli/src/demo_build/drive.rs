//! `sawmill drive`.

pub(crate) use crate::demo_build::FullCommand as DriveCommand;
use crate::error::{Error, Result};
use crate::screen::console::Console;

pub(crate) fn run(_: &DriveCommand, _: Console) -> Result<()> {
    Err(Error::not_built("sawmill drive"))
}
