//! `sawmill footer head`, `cat`, `bloom` and `dictionary`.

use crate::error::{Error, Result};
use crate::footer::values::args::{BloomArgs, DictionaryArgs, HeadArgs};
use crate::screen::console::Console;

pub(crate) fn head(_: &HeadArgs, _: u64, _: Console) -> Result<()> {
    Err(Error::not_built("footer head, footer cat"))
}

pub(crate) fn bloom(_: &BloomArgs, _: Console) -> Result<()> {
    Err(Error::not_built("footer bloom"))
}

pub(crate) fn dictionary(_: &DictionaryArgs, _: Console) -> Result<()> {
    Err(Error::not_built("footer dictionary"))
}
