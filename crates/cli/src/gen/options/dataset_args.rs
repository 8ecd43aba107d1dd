//! Which dataset to use: a built-in one, a spec, or one inferred from existing data.

use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_generator::{Dataset, DatasetName};

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::infer;
use crate::r#gen::options::like_args::{LikeArgs, Wanted};
use crate::screen::console::Console;

#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct DatasetArgs {
    /// A built-in dataset: contacts, orders, events, devices, deep, hits, wide, wide:N, wide:N:string. Or a table
    /// of TPC-H or TPC-DS: tpch/lineitem, tpcds/store_sales and so on; tpch and tpcds make all. Or a dataset spec,
    /// which is a TOML file; SPEC/TABLE makes one of several tables.
    #[arg(required_unless_present_any = ["schema", "like"], help_heading = None)]
    pub dataset: Option<String>,
    /// Take the columns of a Parquet, Arrow, JSON or CSV file, or of the Parquet files in a directory or that
    /// match a pattern, with plain values for their types. Also reads URLs of objects.
    #[arg(long = "schema-of", value_name = "FILE", conflicts_with_all = ["dataset", "like"])]
    schema: Option<PathBuf>,
    /// Take columns, nulls, list lengths, values and their distributions from a Parquet, Arrow, JSON or CSV file.
    ///
    /// Or from the Parquet files in a directory or that match a pattern. Sawmill looks at a sample of all rows
    /// and at the footers. Also reads URLs of objects. May be repeated: the files become the tables of
    /// one dataset, and columns whose values are keys of another file refer to it.
    #[arg(long, value_name = "FILE", conflicts_with = "dataset")]
    like: Vec<PathBuf>,
    /// The scale factor of TPC-H or TPC-DS, which determines the rows of its tables [default: 1, 6 million line
    /// items]. In a spec with several tables, it multiplies the rows of each.
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f64>,
    #[command(flatten)]
    inferred: LikeArgs,
    /// The files that the spec in `dataset` was inferred from, if there are several.
    #[arg(skip)]
    pub learned_from: Vec<PathBuf>,
}

impl DatasetArgs {
    /// The dataset's spec.
    pub(crate) fn spec(&self, wanted: Wanted, console: Console, stores: &StoreArgs) -> Result<String> {
        let inferred = match (&self.schema, self.like.as_slice()) {
            (Some(file), _) => Some(infer::of_schema(file, &self.inferred, stores)?),
            (_, [file]) => Some(infer::of_sample(file, &self.inferred, wanted, stores)?),
            (_, []) => None,
            (_, files) => Some(infer::of_tables(files, &self.inferred, (self.scale, wanted.seed), stores)?),
        };
        if let Some(inferred) = inferred {
            inferred.notices.iter().for_each(|notice| console.notice(notice));
            return Ok(inferred.spec);
        }
        let name = self.dataset.as_deref().unwrap_or_default();
        Ok(DatasetName::new(name).spec()?)
    }

    /// Whether several files become the tables of one dataset.
    pub(crate) fn learns_tables(&self) -> bool {
        self.like.len() > 1
    }

    /// The same with the spec that was inferred, in a file.
    pub(crate) fn learned(&self, spec: &Path) -> Self {
        let dataset = Some(spec.display().to_string());
        DatasetArgs { dataset, learned_from: self.like.clone(), like: Vec::new(), ..self.clone() }
    }

    /// The files that the dataset is read from; none for a built-in one.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        if !self.learned_from.is_empty() {
            return self.learned_from.clone();
        }
        let spec = self.dataset.as_deref().map(DatasetName::new);
        let spec = spec.as_ref().and_then(DatasetName::file).map(Path::to_owned);
        self.like.iter().chain(&self.schema).cloned().chain(spec).collect()
    }

    /// Checks that the spec has enough `unique` values for `rows` rows. Inferred bounds of numbers are exempt: more rows
    /// than the data has go beyond them.
    pub(crate) fn check_unique(&self, dataset: &Dataset, rows: u64) -> Result<()> {
        let is_inferred = self.dataset.is_none() || !self.learned_from.is_empty();
        if is_inferred {
            dataset.check_unique_strings(rows)?;
        } else {
            dataset.check_unique(rows)?;
        }
        Ok(())
    }

    /// The dataset.
    pub(crate) fn dataset(&self, wanted: Wanted, console: Console, stores: &StoreArgs) -> Result<Dataset> {
        match &self.dataset {
            Some(name) => Ok(Dataset::named(name, self.scale)?),
            None if self.learns_tables() => {
                let files: Vec<String> = self.like.iter().map(|file| file.display().to_string()).collect();
                let advice =
                    "save the spec (gen spec --like ... > SPEC.toml), and name a table as SPEC.toml/TABLE";
                Err(Error::usage("several tables, where one is needed", files.join(", "), advice))
            }
            None if self.scale.is_some() => {
                let what = "a scale for a dataset that has a single table";
                Err(Error::usage(what, "--like and --schema-of", "give its number of rows instead"))
            }
            None => Ok(Dataset::from_toml(&self.spec(wanted, console, stores)?)?),
        }
    }
}
