//! `sawmill gen --as`.

use crate::error::{Error, Result};
use crate::r#gen::{GenArgs, Made};
use crate::screen::console::Console;

pub(super) fn run(args: &GenArgs, _: Console) -> Result<Made> {
    Err(Error::not_built(format!("--as {}", args.format.extension())))
}
