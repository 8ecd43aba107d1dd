//! Stands in for the modules of the feature `formats`: their options are errors that explain how to build it.

pub(super) mod formats {
    use std::sync::atomic::AtomicBool;

    use crate::error::Error;
    use crate::r#gen::GenArgs;
    use crate::screen::console::Console;

    pub(in crate::r#gen) fn run(args: &GenArgs, _: Console, _: &AtomicBool) -> Result<(), Error> {
        Err(Error::not_built(format!("--format {}", args.format.name()), "formats"))
    }
}

pub(super) mod infer {
    use std::path::Path;

    use crate::error::Error;

    pub(in crate::r#gen) fn spec(named: &Path, sample: u64) -> Result<String, Error> {
        let option = if sample > 0 { "--like" } else { "--schema" };
        Err(Error::not_built(format!("{option} {}", named.display()), "formats"))
    }
}
