//! `sawmill gen fidelity`.

use crate::error::{Error, Result};
use crate::r#gen::options::like_args::FidelityArgs;
use crate::screen::console::Console;

pub(crate) fn run(_: &FidelityArgs, _: Console) -> Result<()> {
    Err(Error::not_built("gen fidelity"))
}
