//! Stands in for the modules of the feature `formats`: their options are errors that explain how to build it.
//! Tests compile it as well.

pub(super) mod formats {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use crate::error::Error;
    use crate::r#gen::{GenArgs, Made};
    use crate::screen::console::Console;

    pub(in crate::r#gen) fn run(args: &GenArgs, _: Console, _: &Arc<AtomicBool>) -> Result<Made, Error> {
        Err(Error::not_built(format!("--format {}", args.format.name()), "formats"))
    }
}

pub(super) mod fidelity {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use crate::error::Error;
    use crate::r#gen::options::like_args::FidelityArgs;
    use crate::screen::console::Console;

    pub(in crate::r#gen) fn run(_: &FidelityArgs, _: Console, _: &Arc<AtomicBool>) -> Result<(), Error> {
        Err(Error::not_built("gen fidelity".to_owned(), "formats"))
    }
}

pub(super) mod infer {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use crate::arguments::stores::StoreArgs;
    use crate::error::Error;
    use crate::r#gen::options::like_args::{Inferred, LikeArgs};

    pub(in crate::r#gen) fn of_schema(
        named: &Path,
        _: &LikeArgs,
        _: &StoreArgs,
        _: &Arc<AtomicBool>,
    ) -> Result<Inferred, Error> {
        Err(Error::not_built(format!("--schema {}", named.display()), "formats"))
    }

    pub(in crate::r#gen) fn of_sample(
        named: &Path,
        _: &LikeArgs,
        _: &StoreArgs,
        _: &Arc<AtomicBool>,
    ) -> Result<Inferred, Error> {
        Err(Error::not_built(format!("--like {}", named.display()), "formats"))
    }

    pub(in crate::r#gen) fn of_tables(
        named: &[PathBuf],
        like: &LikeArgs,
        stores: &StoreArgs,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Inferred, Error> {
        of_sample(named.first().map_or(Path::new(""), PathBuf::as_path), like, stores, cancel)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use clap::Parser;

    use super::{fidelity, formats, infer};
    use crate::arguments::stores::StoreArgs;
    use crate::r#gen::GenArgs;
    use crate::r#gen::options::like_args::{FidelityArgs, LikeArgs};
    use crate::screen::console::Console;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GenArgs,
    }

    #[test]
    fn a_build_without_formats_says_how_to_get_them() {
        let line = Line::try_parse_from(["gen", "contacts", "--rows", "1", "--format", "ndjson"]).unwrap();
        let (console, cancel) =
            (Console { json: false, quiet: true, verbose: 0 }, Arc::new(AtomicBool::new(false)));
        let (like_path, stores) = (Path::new("x.parquet"), StoreArgs::default());
        let like = LikeArgs { sample: 1000, exclude: Vec::new(), verbatim: false, no_verbatim: false };
        let of = FidelityArgs {
            source: "a".into(),
            generated: "b".into(),
            others: Vec::new(),
            sample: 1000,
            html: None,
            exclude: Vec::new(),
            stores: stores.clone(),
        };
        let several = [like_path.to_owned(), "y.parquet".into()];
        let errors = [
            ("--like x.parquet", infer::of_tables(&several, &like, &stores, &cancel).unwrap_err()),
            ("gen fidelity", fidelity::run(&of, console, &cancel).unwrap_err()),
            ("--format ndjson", formats::run(&line.args, console, &cancel).unwrap_err()),
            ("--like x.parquet", infer::of_sample(like_path, &like, &stores, &cancel).unwrap_err()),
            ("--schema x.parquet", infer::of_schema(like_path, &like, &stores, &cancel).unwrap_err()),
        ];
        for (option, error) in errors {
            let error = error.to_string();
            for part in [option, "the feature formats", "--features full"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}
