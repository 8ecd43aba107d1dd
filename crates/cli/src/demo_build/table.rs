//! `sawmill gen --table-format`.

use crate::error::{Error, Result};
use crate::r#gen::{GenArgs, Made};
use crate::screen::console::Console;

pub(super) fn make(_: &GenArgs, _: Console) -> Result<Made> {
    Err(Error::not_built("--table-format"))
}
