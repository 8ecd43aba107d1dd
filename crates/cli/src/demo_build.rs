//! The demo's build: in place of the full build's features, errors that say how to get it.
//!
//! The demo's build parses the options of `gen`, `footer`, `load` and `verify` as the full build does. It leaves
//! out `convert`, `bench`, `drive`, Delta tables, stores, text, `--like`, TPC-H and flame graphs, and the
//! crates below them: they take half the time of a build.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::options::like_args::{FidelityArgs, Inferred, LikeArgs, Wanted};
use crate::r#gen::{GenArgs, Made};
use crate::screen::console::Console;

/// Only in the full build: cargo install --path crates/cli --profile dist --features full.
#[derive(Args, Debug)]
pub(crate) struct FullCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

/// `sawmill convert`.
pub(crate) mod convert {
    use super::*;

    pub(crate) use super::FullCommand as ConvertArgs;

    impl ConvertArgs {
        pub(crate) fn take_out(&mut self) -> Result<()> {
            Ok(())
        }
    }

    pub(crate) fn run(_: &ConvertArgs, _: Console) -> Result<()> {
        Err(Error::not_built("sawmill convert".to_owned()))
    }
}

/// `sawmill drive`.
pub(crate) mod drive {
    use super::*;

    pub(crate) use super::FullCommand as DriveCommand;

    pub(crate) fn run(_: &DriveCommand, _: Console) -> Result<()> {
        Err(Error::not_built("sawmill drive".to_owned()))
    }
}

/// `sawmill bench`.
pub(crate) mod bench {
    use super::*;
    use crate::sweep::Parameters;

    pub(crate) use super::FullCommand as BenchArgs;

    pub(crate) fn run(_: &[(&Parameters, &BenchArgs)], _: Option<&Path>, _: Console) -> Result<()> {
        Err(Error::not_built("sawmill bench".to_owned()))
    }
}

/// `sawmill gen --as`.
pub(crate) mod formats {
    use super::*;

    pub(crate) fn run(args: &GenArgs, _: Console) -> Result<Made> {
        Err(Error::not_built(format!("--as {}", args.format.extension())))
    }
}

/// `sawmill gen --table-format`.
pub(crate) mod table {
    use super::*;

    pub(crate) fn make(_: &GenArgs, _: Console) -> Result<Made> {
        Err(Error::not_built("--table-format".to_owned()))
    }
}

/// `sawmill gen fidelity`.
pub(crate) mod fidelity {
    use super::*;

    pub(crate) fn run(_: &FidelityArgs, _: Console) -> Result<()> {
        Err(Error::not_built("gen fidelity".to_owned()))
    }
}

/// `sawmill gen --like` and `--schema-of`.
pub(crate) mod infer {
    use super::*;

    type Learned = Result<Inferred>;

    pub(crate) fn of_schema(named: &Path, _: &LikeArgs, _: &StoreArgs) -> Learned {
        Err(Error::not_built(format!("--schema-of {}", named.display())))
    }

    pub(crate) fn of_sample(named: &Path, _: &LikeArgs, _: Wanted, _: &StoreArgs) -> Learned {
        Err(Error::not_built(format!("--like {}", named.display())))
    }

    pub(crate) fn of_tables(
        named: &[PathBuf],
        like: &LikeArgs,
        (_, seed): (Option<f64>, u64),
        stores: &StoreArgs,
    ) -> Learned {
        let wanted = Wanted { rows: None, seed };
        of_sample(named.first().map_or(Path::new(""), PathBuf::as_path), like, wanted, stores)
    }
}

/// `sawmill footer head`, `cat`, `bloom` and `dictionary`.
pub(crate) mod values {
    use super::*;
    use crate::footer::values::args::{BloomArgs, DictionaryArgs, HeadArgs};

    pub(crate) fn head(_: &HeadArgs, _: u64, _: Console) -> Result<()> {
        Err(Error::not_built("footer head, footer cat".to_owned()))
    }

    pub(crate) fn bloom(_: &BloomArgs, _: Console) -> Result<()> {
        Err(Error::not_built("footer bloom".to_owned()))
    }

    pub(crate) fn dictionary(_: &DictionaryArgs, _: Console) -> Result<()> {
        Err(Error::not_built("footer dictionary".to_owned()))
    }
}

/// Tables that `delta:` names.
pub(crate) mod delta_table {
    use super::*;
    use crate::arguments::delta::NamedTable;
    use crate::arguments::stores::Objects;

    /// A version of a table, which this build cannot open.
    pub(crate) struct DeltaTable {
        pub version: u64,
        pub columns: arrow_schema::Schema,
        pub files: Vec<sawmill_source::TableFile>,
        pub objects: Objects,
    }

    pub(crate) fn open(named: &NamedTable, _: &StoreArgs) -> Result<DeltaTable> {
        Err(Error::not_built(format!("delta:{}", named.root.display())))
    }
}

/// Folders of stores that `sawmill gen` writes to.
pub(crate) mod store_output {
    use sawmill_generator::StoreOutput;
    use sawmill_store::ObjectUrl;

    use super::*;
    use crate::r#gen::clean::{CleanArgs, Cleaned};
    use crate::r#gen::destination::UploadArgs;

    pub(crate) fn output(
        url: &ObjectUrl,
        _: Option<(ObjectUrl, String)>,
        _: &UploadArgs,
        _: bool,
    ) -> Result<StoreOutput> {
        Err(Error::not_built(url.to_string()))
    }

    pub(crate) fn refuse_options(args: &StoreArgs) -> Result<()> {
        match args.store.first() {
            // The value may be a secret.
            Some(_) => Err(Error::not_built("--store".to_owned())),
            None => Ok(()),
        }
    }

    pub(crate) fn clean(url: &ObjectUrl, _: &CleanArgs) -> Result<Cleaned> {
        Err(Error::not_built(url.to_string()))
    }
}

/// Objects in stores.
pub(crate) mod objects {
    use sawmill_store::{Kind, ObjectReader, ObjectUrl};

    use super::*;
    use crate::arguments::paths::Wanted;

    /// No stores.
    #[derive(Debug, Default)]
    pub(crate) struct Objects;

    impl Objects {
        pub(crate) fn new(args: &StoreArgs, url: Option<&ObjectUrl>) -> Result<Self> {
            super::store_output::refuse_options(args)?;
            url.map_or(Ok(Self), |url| Err(Error::not_built(url.to_string())))
        }

        pub(crate) fn named(&self, url: &ObjectUrl, _: Wanted) -> Result<Vec<ObjectUrl>> {
            Err(Error::not_built(url.to_string()))
        }

        pub(crate) fn open(&self, url: &ObjectUrl, _: u64) -> Result<ObjectReader, sawmill_store::Error> {
            let what = "the demo's build of sawmill has no stores";
            Err(sawmill_store::Error::new(Kind::Usage, what).at(url.to_string()))
        }
    }
}

/// Files of text.
pub(crate) mod text_source {
    use sawmill_source::Hive;
    use sawmill_store::Location;
    use tempfile::NamedTempFile;

    use super::objects::Objects;
    use super::*;
    use crate::arguments::inputs::{How, Inputs};
    use crate::arguments::text::TextKind;

    pub(crate) fn open_text(
        files: &[Location],
        _: TextKind,
        _: &Objects,
        _: Option<NamedTempFile>,
        _: Hive,
        _: How<'_>,
    ) -> Result<Inputs> {
        Err(Error::not_built(files.first().map(ToString::to_string).unwrap_or_default()))
    }
}
