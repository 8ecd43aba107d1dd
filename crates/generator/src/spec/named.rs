//! Datasets by the names that commands, sources and SQL take: a built-in one, a table of TPC-H or TPC-DS, the
//! spec in a file, or a table of a spec.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::benchmark::Benchmark;
use crate::error::{Error, Result};
use crate::spec::dataset::{BUILT_IN, Dataset};

/// The seed where none is given.
const DEFAULT_SEED: u64 = 42;

/// The rows of a source whose dataset does not say how many it has.
const DEFAULT_ROWS: u64 = 1_000_000;

/// The meaning of a dataset's name.
///
/// ```
/// use sawmill_generator::{Benchmark, DatasetName};
/// assert_eq!(DatasetName::new("contacts"), DatasetName::BuiltIn("contacts".to_owned()));
/// let lines = DatasetName::Benchmark(Benchmark::TpcH, Some("lineitem".to_owned()));
/// assert_eq!(DatasetName::new("tpch/lineitem"), lines);
/// assert_eq!(DatasetName::new("my.toml"), DatasetName::File("my.toml".into()));
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("shop.toml"), "")?;
/// // If there is a file shop.toml:
/// let orders = DatasetName::in_folder(folder.path(), "shop.toml/orders");
/// assert!(matches!(orders, DatasetName::Table { table, .. } if table == "orders"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetName {
    /// A dataset of [`BUILT_IN`], or `wide`, `wide:N` or `wide:N:string`.
    BuiltIn(String),
    /// `tpch/TABLE` or `tpcds/TABLE`; without a table, all of them.
    Benchmark(Benchmark, Option<String>),
    /// The path of a spec: any other name.
    File(PathBuf),
    /// `SPEC/TABLE`: a table of the spec in a file.
    Table {
        /// The path of the spec.
        file: PathBuf,
        /// The name of its table.
        table: String,
    },
}

impl DatasetName {
    /// Finds the meaning of `name`. A file called `tpch` or `SPEC/TABLE` takes precedence over the benchmark or table.
    pub fn new(name: &str) -> Self {
        Self::in_folder(Path::new(""), name)
    }

    /// The same; the paths of specs are relative to `folder`.
    pub fn in_folder(folder: &Path, name: &str) -> Self {
        if Dataset::built_in_text(name).is_some() {
            return Self::BuiltIn(name.to_owned());
        }
        let path = folder.join(name);
        if !path.is_file()
            && let Some((benchmark, table)) = Benchmark::named(name)
        {
            return Self::Benchmark(benchmark, table);
        }
        if let Some((file, table)) = name.rsplit_once('/') {
            let file = folder.join(file);
            if file.is_file() && !path.exists() {
                return Self::Table { file, table: table.to_owned() };
            }
        }
        Self::File(path)
    }

    /// The dataset that it names. `scale` is the scale factor of a benchmark, or the factor for the rows of the tables of a
    /// spec.
    ///
    /// # Errors
    /// The dataset does not exist, its spec is not valid, it has several tables, or a scale is given for a dataset that
    /// has a single one.
    pub fn dataset(&self, scale: Option<f64>) -> Result<Dataset> {
        match self {
            Self::Benchmark(benchmark, Some(table)) => benchmark.dataset(table, scale),
            Self::Benchmark(benchmark, None) => {
                let key = benchmark.key();
                let names = benchmark.tables().join(&format!(", {key}/"));
                let what = format!("all tables of {benchmark}, where one is needed");
                Err(Error::spec(what, key, format!("name one: {key}/{names}")))
            }
            Self::Table { file, table } => Dataset::table_of_file(file, table, scale),
            Self::BuiltIn(_) | Self::File(_) if scale.is_some() => {
                let what = "a scale for a dataset that has a single table";
                Err(Error::spec(what, self.to_string(), "give its number of rows instead"))
            }
            Self::BuiltIn(name) => {
                Dataset::built_in(name).unwrap_or_else(|| Err(self.missing("not built in")))
            }
            Self::File(path) => match std::fs::metadata(path) {
                Ok(_) => Dataset::from_file(path),
                Err(error) => Err(self.missing(error)),
            },
        }
    }

    /// The names of all tables, if it names several; none for a single dataset.
    ///
    /// # Errors
    /// The spec cannot be read, is not TOML, or has a table without a name for its folder.
    pub fn tables(&self) -> Result<Vec<String>> {
        match self {
            Self::Benchmark(benchmark, None) => {
                Ok(benchmark.tables().into_iter().map(str::to_owned).collect())
            }
            Self::File(path) if path.is_file() => Dataset::tables_of_file(path),
            _ => Ok(Vec::new()),
        }
    }

    /// The name of a table among those that it names.
    pub fn table(&self, table: &str) -> String {
        format!("{self}/{table}")
    }

    /// The file that the dataset is read from; `None` if it is none.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) | Self::Table { file, .. } => Some(file),
            Self::BuiltIn(_) | Self::Benchmark(..) => None,
        }
    }

    /// The text of the spec, with all of its tables.
    ///
    /// # Errors
    /// The file cannot be read; tables of benchmarks have no spec.
    pub fn spec(&self) -> Result<String> {
        match self {
            Self::BuiltIn(name) => {
                Dataset::built_in_text(name).unwrap_or_else(|| Err(self.missing("not built in")))
            }
            Self::File(file) | Self::Table { file, .. } => {
                sawmill_store::read_text(file).map_err(|error| self.missing(error))
            }
            Self::Benchmark(benchmark, _) => {
                self.dataset(None)?;
                let advice = format!("look at its columns with gen explain {self}");
                Err(Error::spec(format!("tables of {benchmark} have no spec"), self.to_string(), advice))
            }
        }
    }

    fn missing(&self, why: impl fmt::Display) -> Error {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        Error::spec(
            format!("no dataset: {why}"),
            self.to_string(),
            format!(
                "give a TOML file (SPEC/TABLE if it has several tables) or a built-in dataset: {}, wide, {}",
                names.join(", "),
                Benchmark::ALL.map(Benchmark::key).join(", ")
            ),
        )
    }
}

/// The name, as [`DatasetName::new`] takes it.
impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => f.write_str(name),
            Self::Benchmark(benchmark, None) => f.write_str(benchmark.key()),
            Self::Benchmark(benchmark, Some(table)) => f.write_str(&benchmark.table(table)),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Table { file, table } => write!(f, "{}/{table}", file.display()),
        }
    }
}

/// Rows of a dataset as a source names them after `gen:`, such as `contacts?rows=10M&seed=7`,
/// `tpch/lineitem?scale=10` or `shop.toml/orders?scale=0.1`.
///
/// ```
/// use sawmill_generator::{DatasetName, NamedRows};
/// let named = NamedRows::parse("contacts?rows=10M&seed=7")?;
/// let contacts = DatasetName::new(&named.name).dataset(named.scale)?;
/// assert_eq!(named.rows_and_seed(&contacts)?, (10_000_000, 7));
/// # Ok::<(), sawmill_generator::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedRows {
    /// The name of the dataset.
    pub name: String,
    /// The number of rows, if it is given.
    pub rows: Option<u64>,
    /// The seed, if it is given.
    pub seed: Option<u64>,
    /// The scale, if it is given.
    pub scale: Option<f64>,
}

impl NamedRows {
    /// Reads `NAME?rows=N&seed=N&scale=FACTOR`.
    ///
    /// # Errors
    /// A parameter is unknown, given twice, or has a value that cannot be used.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut named = Self { name: name.to_owned(), ..Self::default() };
        let wrong = |what: String| {
            let advice = "write gen:DATASET?rows=10M&seed=7 or gen:tpch/TABLE?scale=10";
            Error::spec(what, format!("gen:{text}"), advice)
        };
        let bad = |parameter: &str, error: &dyn fmt::Display| wrong(format!("{parameter}: {error}"));
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let twice = match key {
                "rows" => {
                    let rows = sawmill_profile::parse_count(value).map_err(|error| bad(parameter, &error))?;
                    named.rows.replace(rows).is_some()
                }
                "seed" => {
                    let seed = value.parse().map_err(|error| bad(parameter, &error))?;
                    named.seed.replace(seed).is_some()
                }
                "scale" => {
                    let scale = value.parse().map_err(|error| bad(parameter, &error))?;
                    named.scale.replace(scale).is_some()
                }
                _ => return Err(wrong(format!("unknown parameter {key:?}"))),
            };
            if twice {
                return Err(wrong(format!("{key} is given twice")));
            }
        }
        Ok(named)
    }

    /// How many rows these are, and their seed: by default as many as the dataset has, or a million, and 42.
    ///
    /// # Errors
    /// As [`Dataset::rows_and_seed`].
    pub fn rows_and_seed(&self, dataset: &Dataset) -> Result<(u64, u64)> {
        let (rows, seed) = dataset.rows_and_seed(self.rows, self.seed)?;
        Ok((rows.unwrap_or(DEFAULT_ROWS), seed))
    }
}

impl Dataset {
    /// The dataset called `name`, at `scale`, as [`DatasetName::new`] and [`DatasetName::dataset`] find it.
    ///
    /// # Errors
    /// As [`DatasetName::dataset`].
    pub fn named(name: &str, scale: Option<f64>) -> Result<Self> {
        DatasetName::new(name).dataset(scale)
    }

    /// The number of rows and the seed of a source that asks for `rows` and `seed`. By default, as many rows as the
    /// dataset has, which may be unknown, and the seed 42.
    ///
    /// # Errors
    /// Rows or a seed for a table of a benchmark, which has neither choice; more rows than the dataset has, or than its
    /// `unique` values suffice for.
    pub fn rows_and_seed(&self, rows: Option<u64>, seed: Option<u64>) -> Result<(Option<u64>, u64)> {
        if let Some(benchmark) = self.benchmark()
            && (rows.is_some() || seed.is_some())
        {
            let table = benchmark.table(self.name());
            let advice = format!("give its scale alone: gen:{table}?scale=10, gen('{table}', scale => 10)");
            return Err(Error::spec(format!("rows or seed for a table of {benchmark}"), self.name(), advice));
        }
        let rows = rows.or(self.rows());
        if let (Some(rows), Some(most)) = (rows, self.most_rows())
            && rows > most
        {
            let what = format!("{rows} rows of {}, which has {most}", self.name());
            return Err(Error::spec(what, self.name(), "leave out rows"));
        }
        rows.map_or(Ok(()), |rows| self.check_unique(rows))?;
        Ok((rows, seed.unwrap_or(DEFAULT_SEED)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_before_other_meanings_of_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| DatasetName::in_folder(folder.path(), name);
        let at = |name: &str| folder.path().join(name);
        assert_eq!(of("tpch"), DatasetName::Benchmark(Benchmark::TpcH, None));
        assert_eq!(of("tpch/"), DatasetName::Benchmark(Benchmark::TpcH, None));
        assert_eq!(of("tpch.toml"), DatasetName::File(at("tpch.toml")));
        assert_eq!(of("shop.toml/orders"), DatasetName::File(at("shop.toml/orders")));
        for name in ["shop.toml", "tpch", "contacts"] {
            std::fs::write(at(name), "").unwrap();
        }
        let table = |file: &str, table: &str| DatasetName::Table { file: at(file), table: table.to_owned() };
        assert_eq!(of("shop.toml/orders"), table("shop.toml", "orders"));
        assert_eq!(of("tpch"), DatasetName::File(at("tpch")));
        assert_eq!(of("contacts"), DatasetName::BuiltIn("contacts".to_owned()));
    }

    #[test]
    fn a_source_names_rows_seed_and_scale_once() {
        let named = NamedRows::parse("a.toml/t?scale=0.5&seed=7").unwrap();
        let expected = NamedRows { name: "a.toml/t".to_owned(), rows: None, seed: Some(7), scale: Some(0.5) };
        assert_eq!(named, expected);
        for (text, expected) in [
            ("c?rows=1&rows=2", "rows is given twice - gen:c?rows=1&rows=2 - write gen:"),
            ("c?row=1", "unknown parameter \"row\""),
            ("c?rows=many", "rows=many: "),
            ("c?seed=-1", "seed=-1: "),
            ("c?scale=x", "scale=x: "),
        ] {
            let error = NamedRows::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn names_without_a_dataset_are_errors_that_list_what_there_is() {
        let error = |name: &str, scale| Dataset::named(name, scale).unwrap_err().to_string();
        let found = error("contact", None);
        assert!(
            found.starts_with("no dataset: ") && found.contains(" - contact - give a TOML file"),
            "{found}"
        );
        assert!(
            found.ends_with("contacts, orders, events, devices, deep, hits, wide, tpch, tpcds"),
            "{found}"
        );
        let found = error("contacts", Some(2.0));
        assert!(found.starts_with("a scale for a dataset that has a single table - contacts"), "{found}");
        assert!(error("tpch", None).contains("tpch/lineitem"));
        assert!(error("tpcds", None).contains("tpcds/store_sales"));
        let contacts = Dataset::named("contacts", None).unwrap();
        assert_eq!(contacts.rows_and_seed(Some(5), None).unwrap(), (Some(5), 42));
    }
}
