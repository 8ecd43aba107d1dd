//! `sawmill convert`.

pub(crate) use crate::demo_build::FullCommand as ConvertArgs;
use crate::error::{Error, Result};
use crate::screen::console::Console;

impl ConvertArgs {
    pub(crate) fn take_out(&mut self) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn run(_: &ConvertArgs, _: Console) -> Result<()> {
    Err(Error::not_built("sawmill convert"))
}
