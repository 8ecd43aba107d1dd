//! A build without the feature `delta`: `--table` is an error that says how to get it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::r#gen::{GenArgs, Made};
use crate::screen::console::Console;

pub(super) fn make(_: &GenArgs, _: Console, _: &Arc<AtomicBool>) -> Result<Made, Error> {
    Err(Error::not_built("--table".to_owned(), "delta"))
}
