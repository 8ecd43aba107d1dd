//! Opens sources: the Parquet files that the command line names, standard input for `-`, and generated rows
//! for `gen:`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sawmill_footer::DEFAULT_MAX_FOOTER;
use sawmill_generator::{Dataset, NamedRows};
use sawmill_inspect::DEFAULT_MAX_PAGE;
use sawmill_profile::PhaseReport;
use sawmill_source::{
    Addressed, FindLoaded, FolderColumn, GeneratedRows, Hive, ParquetFiles, Source, SourceFile, UnlikeFiles,
};
use sawmill_store::found_files::is_parquet;
use sawmill_store::{Location, ObjectUrl, ReadAhead};
use serde::Serialize;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::arguments::delta::{self, DeltaTable, NamedTable};
use crate::arguments::paths::standard_input::{STANDARD_INPUT, spool};
use crate::arguments::paths::{Located, Wanted, file_lists, located};
use crate::arguments::size_arg;
use crate::arguments::stores::place_bytes::TAIL;
use crate::arguments::stores::{Objects, StoreArgs};
use crate::arguments::text::{TableText, TextArgs, open_text};
use crate::arguments::words::YesNo;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases::{counted, table};

/// Which columns of the files to take, and their names.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Input")]
pub(crate) struct ColumnArgs {
    /// Only these columns, in this order. Write a name with a comma in double quotes: '"a,b",c'.
    #[arg(long = "columns", value_name = "NAMES", value_parser = ColumnList::parse)]
    pub lists: Vec<ColumnList>,
    /// Rename a column: OLD=NEW. May be repeated.
    #[arg(long, value_name = "OLD=NEW", value_delimiter = ',', value_parser = rename)]
    pub rename: Vec<(String, String)>,
    /// Whether folders such as year=2020 become columns of the files below them: whole numbers, dates or
    /// text, depending on the values of all files. A file's own column of that name wins.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "yes|no")]
    pub hive: YesNo,
    /// Do not verify the checksums of pages of Parquet files.
    #[arg(long)]
    pub no_page_checksums: bool,
    /// The longest footer to accept, such as 2GiB: a damaged file may claim a footer of 4 GiB [default:
    /// 1GiB].
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true)]
    pub max_footer: Option<u64>,
    /// The largest page of a Parquet file to decompress, such as 1GiB: a page of a damaged or hostile file may
    /// claim 2 GiB. Writers make pages of about 1 MiB, unless one value is larger [default: 64MiB].
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true)]
    pub max_page: Option<u64>,
}

/// Names of columns, as the user lists them.
#[derive(Clone, Debug)]
pub(crate) struct ColumnList(Vec<String>);

impl ColumnList {
    /// Parses names between commas. A name in double quotes may have commas, and quotes if they are doubled.
    fn parse(text: &str) -> Result<Self, String> {
        let (mut names, mut rest) = (Vec::new(), text);
        loop {
            let (name, after) = match rest.strip_prefix('"') {
                None => {
                    let end = rest.find(',').unwrap_or(rest.len());
                    (rest[..end].to_owned(), &rest[end..])
                }
                Some(quoted) => {
                    let (mut name, mut left) = (String::new(), quoted);
                    loop {
                        let (part, after) = left.split_once('"').ok_or("a name in quotes does not end")?;
                        name.push_str(part);
                        let Some(more) = after.strip_prefix('"') else { break (name, after) };
                        name.push('"');
                        left = more;
                    }
                }
            };
            names.push(name);
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None if after.is_empty() => return Ok(Self(names)),
                None => return Err("write a comma after a name in quotes".to_owned()),
            }
        }
    }
}

impl ColumnArgs {
    /// The names of the wanted columns; none for all.
    pub(crate) fn columns(&self) -> Vec<String> {
        self.lists.iter().flat_map(|list| list.0.iter().cloned()).collect()
    }

    /// Applies the options that do not depend on how the files were found.
    fn limited(&self, source: ParquetFiles, read_ahead: ReadAhead) -> ParquetFiles {
        source
            .compare_page_checksums(!self.no_page_checksums)
            .max_page(self.max_page.unwrap_or(DEFAULT_MAX_PAGE))
            .read_ahead(read_ahead)
            .stopped_by(Arc::clone(interrupt::flag()))
    }
}

/// How to reach and read the objects that URLs name.
#[derive(Args, Debug)]
pub(crate) struct ObjectArgs {
    #[command(flatten)]
    pub stores: StoreArgs,
    /// How many bytes of objects each connection may request ahead and hold. Row groups that do not fit are
    /// read in smaller requests.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "64MiB", help_heading = "Stores")]
    pub read_ahead: u64,
}

impl ObjectArgs {
    /// Reads objects of these stores as by default.
    pub(crate) fn with_defaults(stores: &StoreArgs) -> Self {
        Self { stores: stores.clone(), read_ahead: ReadAhead::default().budget }
    }
}

fn rename(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("write OLD=NEW".to_owned()),
    }
}

/// What `--explain` says of text: the options that the start of the first file fits, and the types of columns, each with
/// what decided it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TextFound {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dialect: Vec<Value>,
    pub columns: Vec<Value>,
}

impl TextFound {
    /// The tables for people; empty of other sources.
    pub(crate) fn lines(&self) -> String {
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            value => if *value == Value::Bool(true) { "yes" } else { "no" }.to_owned(),
        };
        let shown = |found: &[Value], keys: [&str; 3], heads: [&str; 3]| {
            let rows = found.iter().map(|of| keys.map(|key| cell(&of[key])));
            let rows: Vec<_> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
            if rows.len() > 1 { table(&rows) + "\n" } else { String::new() }
        };
        let dialect = ["option", "because", "in_effect"];
        shown(&self.dialect, dialect, ["the text fits", "because", "in effect"])
            + &shown(&self.columns, ["name", "type", "because"], ["column", "type", "decided by"])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// An opened source with the temporary files and stores that must outlive it.
pub(crate) struct Inputs {
    rows: Rows,
    /// Loaded files that were left out, because their columns do not fit the other files'.
    pub taken_out: Vec<SourceFile>,
    /// The phases of opening it.
    pub phases: Vec<PhaseReport>,
    /// The columns that folders name.
    pub folders: Vec<FolderColumn>,
    /// Finds the inferred dialect and column types of text; `None` for other sources.
    pub find_text: Option<Box<dyn Fn() -> Result<TextFound>>>,
    /// The numbers of the records of text that are left out because they cannot be read, by file; `None` for other
    /// sources.
    pub records_left_out: Option<BTreeMap<String, Vec<u64>>>,
    /// The temporary file that holds standard input.
    _spooled: Option<NamedTempFile>,
    /// The stores of the objects.
    _objects: Objects,
}

/// The rows of a source.
pub(crate) enum Rows {
    Files(Box<ParquetFiles>),
    Text(Arc<dyn Addressed>),
    Generated(Box<GeneratedRows>),
}

impl Inputs {
    pub(crate) fn new(rows: Rows, spooled: Option<NamedTempFile>, objects: Objects) -> Self {
        let folders = match &rows {
            Rows::Files(source) => source.folders().to_vec(),
            _ => Vec::new(),
        };
        Self {
            rows,
            taken_out: Vec::new(),
            phases: Vec::new(),
            folders,
            find_text: None,
            records_left_out: None,
            _spooled: spooled,
            _objects: objects,
        }
    }

    pub(crate) fn source(&self) -> &dyn Source {
        match &self.rows {
            Rows::Files(source) => source.as_ref(),
            Rows::Text(rows) => rows.source(),
            Rows::Generated(rows) => rows.as_ref(),
        }
    }

    /// The Parquet files; `None` for other sources.
    pub(crate) fn files(&self) -> Option<&ParquetFiles> {
        match &self.rows {
            Rows::Files(source) => Some(source.as_ref()),
            _ => None,
        }
    }

    /// The rows, if they can be found again by their places in the files.
    pub(crate) fn addressed(&self) -> Option<&dyn Addressed> {
        match &self.rows {
            Rows::Text(rows) => Some(rows.as_ref()),
            _ => None,
        }
    }

    /// The number of records that are left out of all files.
    pub(crate) fn records_left_out_in_all(&self) -> Option<u64> {
        let left_out = self.records_left_out.as_ref();
        left_out.map(|of_files| of_files.values().map(|numbers| numbers.len() as u64).sum())
    }

    /// The inferred dialect and column types of text; empty for other sources.
    pub(crate) fn text_found(&self) -> Result<TextFound> {
        self.find_text.as_ref().map_or_else(|| Ok(TextFound::default()), |find| find())
    }

    /// The kind of source, in messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.rows {
            Rows::Files(_) => "Parquet files",
            Rows::Generated(_) => "generated rows",
            Rows::Text(_) => "text",
        }
    }
}

/// Opens paths and URLs and selects the columns. `-` is a Parquet stream on standard input, `gen:...` the
/// generator, `delta:...` a version of a Delta table.
pub(crate) fn open(
    paths: &[PathBuf],
    columns: &ColumnArgs,
    text: &TextArgs,
    objects: &ObjectArgs,
    console: Console,
) -> Result<Inputs> {
    open_unlike(paths, columns, text, objects, ForTable::none(UnlikeFiles::default()), console)
}

/// Finds the text columns of the table that takes the rows.
pub(crate) type FindText<'a> = &'a dyn Fn() -> Result<TableText>;

/// How to open files for a table, whose columns may differ.
#[derive(Clone, Copy)]
pub(crate) struct ForTable<'a> {
    pub unlike: UnlikeFiles,
    /// Only text asks for the table's columns.
    pub text: FindText<'a>,
    /// Only Parquet files whose columns differ ask for the files that are loaded.
    pub loaded: FindLoaded<'a>,
}

impl ForTable<'_> {
    /// For no table.
    pub(crate) fn none(unlike: UnlikeFiles) -> Self {
        Self { unlike, text: &|| Ok(TableText::default()), loaded: &|| Ok(HashSet::new()) }
    }
}

/// As [`open`], for a table.
pub(crate) fn open_unlike(
    paths: &[PathBuf],
    columns: &ColumnArgs,
    text: &TextArgs,
    objects: &ObjectArgs,
    table: ForTable<'_>,
    console: Console,
) -> Result<Inputs> {
    let read_ahead = ReadAhead { budget: objects.read_ahead, ..ReadAhead::default() };
    let how = How { columns, text, table, read_ahead, console };
    if let Some(named) = paths.iter().find_map(|path| generated_name(path)) {
        if paths.len() > 1 {
            let advice = "load them one after the other, with --mode append";
            let what = "generated rows together with other sources";
            return Err(Error::usage(what, format!("gen:{named}"), advice));
        }
        let rows = generated(named)?.select(&columns.columns(), &columns.rename)?;
        return Ok(Inputs::new(Rows::Generated(Box::new(rows)), None, Objects::default()));
    }
    match delta::only(paths)? {
        Some(table) => open_table(&table, how, &objects.stores),
        None => open_files(paths, how, &objects.stores),
    }
}

/// How to open files.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub columns: &'a ColumnArgs,
    pub text: &'a TextArgs,
    pub table: ForTable<'a>,
    read_ahead: ReadAhead,
    pub console: Console,
}

/// Opens a version of a Delta table.
fn open_table(named: &NamedTable, how: How<'_>, stores: &StoreArgs) -> Result<Inputs> {
    let How { columns, text, read_ahead, console, .. } = how;
    let place = || format!("delta:{}", named.root.display());
    if columns.hive == YesNo::No {
        let advice =
            "leave it out: the table's log has the values of its partitions; choose columns with --columns";
        return Err(Error::usage("--hive no with a Delta table", place(), advice));
    }
    let table = delta::open(named, stores)?;
    let places: Vec<Location> = table.files.iter().map(|file| file.place.clone()).collect();
    if text.meant(&places)?.is_some() {
        return Err(Error::usage("a text format for a Delta table", place(), "its files are Parquet"));
    }
    let number = counted(table.files.len() as u64, "file");
    console.step(&format!("version {} of the Delta table: {number}", table.version));
    let DeltaTable { columns: schema, files, objects, .. } = table;
    let max_footer = columns.max_footer.unwrap_or(DEFAULT_MAX_FOOTER);
    let wanted = columns.columns();
    let open = |url: &ObjectUrl| objects.open(url, TAIL);
    let source = ParquetFiles::open_table(&schema, &files, &open, max_footer, &wanted)?;
    let source = columns.limited(source, read_ahead);
    let source = Box::new(source.select(&wanted, &columns.rename)?);
    Ok(Inputs::new(Rows::Files(source), None, objects))
}

fn open_files(paths: &[PathBuf], how: How<'_>, stores: &StoreArgs) -> Result<Inputs> {
    let How { columns, text, table, read_ahead, .. } = how;
    let is_stream = |path: &&PathBuf| path.as_os_str() == "-";
    let streams = paths.iter().filter(is_stream).count();
    if streams > 1 {
        return Err(Error::usage("standard input was given twice", "-", "give it once"));
    }
    if streams > 0 && paths.iter().any(|path| file_lists::is_on_standard_input(path)) {
        let advice = "write the list to a file: @FILE";
        let what = "standard input cannot be both a file and a list of files";
        return Err(Error::usage(what, "- and @-", advice));
    }
    let named: Vec<PathBuf> = paths.iter().filter(|path| !is_stream(path)).cloned().collect();
    let Located { places: mut files, objects } = located(&named, Wanted::ParquetOrText, stores)?;
    let spooled = if streams == 1 { Some(spool()?) } else { None };
    files.extend(spooled.iter().map(|file| Location::Path(file.path().to_owned())));
    // The temporary file of the stream is in a folder of ours.
    let hive = match columns.hive {
        YesNo::Yes if !named.is_empty() => Hive::Columns,
        _ => Hive::Ignored,
    };
    if let Some(kind) = text.meant(&files)? {
        // The demo's build refuses text, and asks no server before that.
        let table_text = if cfg!(feature = "full") { (table.text)()? } else { Default::default() };
        let text = &TextArgs { table_text, ..text.clone() };
        return open_text(&files, kind, &objects, spooled, hive, How { text, ..how });
    }
    let max_footer = columns.max_footer.unwrap_or(DEFAULT_MAX_FOOTER);
    let wanted = &columns.columns();
    let open = |url: &ObjectUrl| objects.open(url, TAIL);
    let asked = (table.unlike, table.loaded);
    let opened = ParquetFiles::open_new(&files, &open, hive, (max_footer, wanted), asked);
    let (mut source, taken_out) = match (&spooled, opened) {
        // Users do not know the temporary file that holds the stream.
        (Some(file), Err(error)) if error.place() == file.path().display().to_string() => {
            let advice = "send a whole Parquet file, or name the format of text: --format csv or ndjson";
            return Err(Error::failure(error.what(), STANDARD_INPUT, advice));
        }
        (_, Err(error)) if !is_parquet(&error.place()) => {
            let advice = "bring the whole Parquet file, or name the format of text: --format csv or ndjson";
            return Err(Error::from(error).advise_instead_of(&["not a Parquet file"], advice));
        }
        (_, opened) => opened?,
    };
    if let Some(file) = &spooled {
        source = source.called(file.path(), STANDARD_INPUT);
    }
    source = columns.limited(source, read_ahead);
    let source = Box::new(source.select(&columns.columns(), &columns.rename)?);
    Ok(Inputs { taken_out, ..Inputs::new(Rows::Files(source), spooled, objects) })
}

/// The text after `gen:`, unless a file has that name.
fn generated_name(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix("gen:").filter(|_| path.symlink_metadata().is_err())
}

/// The most rows of a generated source: a plan has a unit for every 256 Ki of them.
const MAX_GENERATED: u64 = 1_000_000_000_000;

/// The rows of `DATASET?rows=N&seed=N`; by default as many as the spec says, else a million.
fn generated(named: &str) -> Result<GeneratedRows> {
    let named = NamedRows::parse(named)?;
    let dataset = Dataset::named(&named.name, named.scale)?;
    let (rows, seed) = named.rows_and_seed(&dataset)?;
    if rows > MAX_GENERATED {
        let what = format!("{rows} rows, where at most {MAX_GENERATED} are generated in one run");
        return Err(Error::usage(what, format!("gen:{}", named.name), "give fewer: gen:DATASET?rows=10M"));
    }
    Ok(GeneratedRows::new(dataset, rows, seed))
}

#[cfg(test)]
mod tests {
    use super::{ColumnList, rename};

    #[test]
    fn a_name_in_quotes_may_have_commas_and_quotes() {
        let names = |text| ColumnList::parse(text).map(|list| list.0);
        assert_eq!(names("a,b\"c").unwrap(), ["a", "b\"c"]);
        assert_eq!(names("\"a,b\",c,\"say \"\"hi\"\"\"").unwrap(), ["a,b", "c", "say \"hi\""]);
        assert_eq!(names("").unwrap(), [""]);
        assert!(names("\"a,b").is_err() && names("\"a\"b").is_err());
    }

    #[test]
    fn a_column_without_a_name_gets_one_as_the_errors_about_it_advise() {
        assert_eq!(rename("=unnamed"), Ok((String::new(), "unnamed".to_owned())));
        assert!(rename("name=").is_err() && rename("name").is_err());
    }
}
