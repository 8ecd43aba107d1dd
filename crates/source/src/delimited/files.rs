//! Files of delimited text as a source.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{Field, Schema, SchemaRef};
use sawmill_store::{Location, ObjectUrl};

use super::columns::column_type::ColumnType;
use super::columns::inference::{Candidates, Evidence, InferredColumn, Sample, on_sample, sampled};
use super::columns::late::Typing;
use super::json::{self, JsonColumn, Shape};
use super::reading::gather::Gathered;
use super::reading::reader::DelimitedReader;
use super::reading::rejected::{self, RejectedRecord};
use super::records::boundaries::{CHUNK, Resolver};
use super::records::dialect::{Dialect, RecordForm};
use super::records::proposal::ProposedOption;
use super::text_columns::TextColumns;
use super::text_file::{Opening, TextFile};
use sawmill_profile::{Control, Error, Kind, Pool, Result, known_columns};

use crate::columns::choice::ColumnChoice;
use crate::columns::mapping::Mapping;
use crate::condition::pruning::Known;
use crate::hive::{FolderColumn, Folders, Hive};
use crate::parquet_files::opened_file::OpenObject;
use crate::parquet_files::united::UnlikeFiles;
use crate::units::{
    Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, check_given, counted_places, recut,
};

/// How to read files of delimited text.
#[derive(Clone, Debug, Default)]
pub struct DelimitedOptions {
    /// How text is divided into records and fields.
    pub dialect: Dialect,
    /// The types of some columns; the others are inferred. In JSON, also the types of parts of columns, by paths
    /// such as `user.tags[]`.
    pub types: Vec<(String, ColumnType)>,
    /// The types of more columns, if the files have columns of these names and [`types`](Self::types) has none for
    /// them. Not of JSON.
    pub known_types: Vec<(String, ColumnType)>,
    /// The columns that the target stores as text.
    pub text_columns: TextColumns,
    /// Whether columns without a given type are text, as they are written, instead of inferred. Not of JSON.
    pub as_written: bool,
    /// How many records to look at to infer types; `None`: 16,384.
    pub sample: Option<u64>,
    /// Leaves out records that cannot be read, up to this number; `None`: they are errors. All records are read
    /// once more for that.
    pub most_rejected: Option<u64>,
    /// Whether folders such as `year=2020` are columns.
    pub hive: Hive,
    /// How to treat files whose headers differ. Lines of JSON are always united.
    pub unlike: UnlikeFiles,
}

/// Files of delimited text, all with the same columns.
pub struct DelimitedFiles {
    pub(super) schema: SchemaRef,
    files: Vec<SourceFile>,
    opened: Vec<TextFile>,
    pub(super) dialect: Dialect,
    pub(super) columns: Columns,
    names: Vec<String>,
    /// Where the values of each column of the schema come from.
    pub(super) chosen: Vec<Place>,
    folders: Vec<FolderColumn>,
    mapping: Mapping,
    /// How many sorted copies were read.
    pub(super) gathered: Gathered,
    rejected: Vec<RejectedRecord>,
    /// Why the columns of the files have their types.
    reasons: Vec<Reason>,
}

/// The common columns, in the order of the first file.
pub(super) enum Columns {
    Delimited(Vec<Typing>),
    Json(Vec<JsonColumn>),
}

/// Why a column has its type.
struct Reason {
    /// How many values of the sample are not NULL.
    values: u64,
    /// A reason other than the sample.
    given: Option<&'static str>,
    evidence: Option<Evidence>,
}

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The n-th of the common columns.
    Column(usize),
    /// The n-th of those that folders name.
    Folder(usize),
}

impl DelimitedFiles {
    /// Opens the files: reads their headers, finds where their records start, and infers types. Reads all
    /// bytes once, with one thread per core; the phase of `control` counts them.
    ///
    /// # Errors
    /// A file that is missing, unreadable or given twice; columns that differ from the first file's;
    /// quotes that do not fit together; a type for a column that does not exist; a raised cancel flag.
    pub fn open<P: AsRef<Path>>(
        paths: &[P],
        options: &DelimitedOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        Self::open_in_chunks(paths, options, CHUNK, control)
    }

    /// Opens files and objects as [`open`](Self::open).
    ///
    /// # Errors
    /// Errors of [`open`](Self::open) and of `objects`.
    pub fn open_located(
        places: &[Location],
        objects: OpenObject<'_>,
        options: &DelimitedOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        Self::open_all(places, objects, options, CHUNK, control)
    }

    /// Opens the files in chunks of another size, for tests: the records are the same.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_in_chunks<P: AsRef<Path>>(
        paths: &[P],
        options: &DelimitedOptions,
        chunk: u64,
        control: &Control<'_>,
    ) -> Result<Self> {
        let places: Vec<Location> =
            paths.iter().map(|path| Location::Path(path.as_ref().to_owned())).collect();
        let none = |url: &ObjectUrl| {
            Err(sawmill_store::Error::new(sawmill_store::Kind::Usage, "the stores are not prepared")
                .at(url.to_string()))
        };
        Self::open_all(&places, &none, options, chunk, control)
    }

    fn open_all(
        places: &[Location],
        objects: OpenObject<'_>,
        options: &DelimitedOptions,
        chunk: u64,
        control: &Control<'_>,
    ) -> Result<Self> {
        let DelimitedOptions { dialect, types, known_types, hive, sample, most_rejected, unlike, .. } =
            options;
        let lenient = most_rejected.is_some();
        let how = Opening { dialect, with_folders: *hive == Hive::Columns, lenient, objects, control };
        let mut opened =
            Pool::on_cores("opener", places.len(), None).map(places, |place| TextFile::open(place, &how))?;
        opened.sort_by(|a, b| a.path.cmp(&b.path));
        check_given(opened.iter().map(|file| file.name.as_str()))?;
        let mut names = place_columns(&mut opened, *unlike)?;
        find_boundaries(&mut opened, chunk, control)?;
        let is_given = |name: &String| types.iter().any(|(given, _)| given == name);
        let known = known_types.iter().filter(|(name, _)| names.contains(name) && !is_given(name));
        let given: &[(String, ColumnType)] = &types.iter().chain(known).cloned().collect::<Vec<_>>();
        let sample = Sample { rows: sample.unwrap_or(Sample::ROWS), files: opened.len() };
        let (mut columns, mut reasons) = match dialect.records {
            RecordForm::Delimited => {
                find_types(&opened, &names, options, given.split_at(types.len()), sample)?
            }
            RecordForm::Json => find_shapes(&opened, dialect, given, sample)?,
        };
        let is_empty = |at: usize| reasons.get(at).is_some_and(|reason| reason.values == 0);
        for at in options.text_columns.apply(&mut columns, &names, given, is_empty) {
            if let Some(reason) = reasons.get_mut(at) {
                reason.given = Some("text in the table");
            }
        }
        let mut fields: Vec<Field> = columns.fields(&names);
        if dialect.records == RecordForm::Json {
            names = fields.iter().map(|field| field.name().clone()).collect();
        }
        let (folders, folder_fields) = place_folders(&mut opened, &names)?;
        let mut chosen: Vec<Place> = (0..names.len()).map(Place::Column).collect();
        chosen.extend((0..folder_fields.len()).map(Place::Folder));
        fields.extend(folder_fields);
        let given: Vec<String> =
            given.iter().map(|(name, of)| format!("{name:?} {}", of.identity())).collect();
        let mapping = Mapping {
            reading: format!("{} types {given:?}", dialect.identity()),
            ..Mapping::of_columns(format!("text {}{}", dialect.names_identity(), folders.mapping()))
        };
        let files = opened.iter().map(|file| SourceFile {
            name: file.name.clone(),
            fingerprint: file.fingerprint.clone(),
            stamp: file.recorded.clone(),
            rows: file.rows,
            bytes: file.stored,
            columns: None,
        });
        let mut files = Self {
            schema: Arc::new(Schema::new(fields)),
            files: files.collect(),
            opened,
            dialect: dialect.clone(),
            columns,
            names,
            chosen,
            folders: folders.columns,
            mapping,
            gathered: Gathered::default(),
            rejected: Vec::new(),
            reasons,
        };
        files.name_own_columns();
        if let Some(most) = most_rejected {
            files.rejected = rejected::leave_out(&mut files, *most, control)?;
            files.mapping.reading += " without records that cannot be read";
        }
        Ok(files)
    }

    /// Returns the files whose first lines are skipped, though no option says so, and these lines: several are a title, and
    /// one names the delimiter.
    pub fn titles(&self) -> impl Iterator<Item = (&str, u64)> {
        let given = self.dialect.skip_lines;
        let titled = self.opened.iter().filter(move |file| file.skipped() > given);
        titled.map(|file| (file.name.as_str(), file.skipped()))
    }

    /// Returns the records that are left out because they cannot be read.
    pub fn rejected(&self) -> &[RejectedRecord] {
        &self.rejected
    }

    /// Leaves out the records at these places, in ascending order: from now on, rows count the others.
    pub(super) fn leave_out_records(&mut self, places: &[(usize, u64)]) {
        for (number, (file, named)) in self.opened.iter_mut().zip(&mut self.files).enumerate() {
            let of_file = places.iter().filter(|(of, _)| *of == number).map(|(_, start)| *start);
            file.left_out = of_file.collect();
            for mark in &mut file.marks {
                mark.rows -= file.left_out.partition_point(|start| *start < mark.offset) as u64;
            }
            file.rows -= file.left_out.len() as u64;
            named.rows = file.rows;
        }
    }

    /// Returns the type of each column of the files, and why it has it.
    pub fn inferred(&self) -> Vec<InferredColumn> {
        let of_column = |(at, (name, reason)): (usize, (&String, &Reason))| {
            let because = match &reason.evidence {
                _ if let Some(given) = reason.given => given.to_owned(),
                None => "the sample has no value".to_owned(),
                Some(of) => {
                    let place = self.opened.get(of.file).map(|file| file.place(of.offset));
                    format!("{} in {}", of.value, place.unwrap_or_default())
                }
            };
            let (data_type, by) = match &self.columns {
                Columns::Json(columns) => (columns.get(at).map(|column| column.of.to_string()), None),
                Columns::Delimited(types) => match types.get(at).map(|typing| typing.of) {
                    Some(of @ ColumnType::Pattern(_, _, patterns)) => {
                        (Some(of.to_string()), Some(format!(", by {}", self.dialect.formats.named(patterns))))
                    }
                    of => (of.map(|of| of.to_string()), None),
                },
            };
            InferredColumn {
                name: name.clone(),
                data_type: data_type.unwrap_or_default(),
                values: reason.values,
                because: because + &by.unwrap_or_default(),
            }
        };
        self.names.iter().zip(&self.reasons).enumerate().map(of_column).collect()
    }

    /// Returns the options that the start of the first file fits, and why. JSON has none.
    pub fn proposed(&self) -> Vec<ProposedOption> {
        self.opened.first().map(TextFile::proposed).unwrap_or_default()
    }

    /// Returns the columns that folders name.
    pub fn folders(&self) -> &[FolderColumn] {
        &self.folders
    }

    /// Renames a file in errors and in the identity of loads, for example a spooled stream, whose path
    /// changes from run to run.
    pub fn called(mut self, path: &Path, name: &str) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for (file, opened) in self.files.iter_mut().zip(&mut self.opened) {
            if opened.path == path {
                for rejected in self.rejected.iter_mut().filter(|rejected| rejected.file == opened.name) {
                    name.clone_into(&mut rejected.file);
                }
                name.clone_into(&mut file.name);
                name.clone_into(&mut opened.name);
                file.stamp = None;
            }
        }
        self
    }

    /// Selects the named columns, in the order of `columns` (all if it is empty), and renames some. Other
    /// columns are not parsed.
    ///
    /// # Errors
    /// A column that does not exist or is named twice; two columns with the same new name.
    pub fn select(mut self, columns: &[String], renames: &[(String, String)]) -> Result<Self> {
        if let Some(choice) = ColumnChoice::new(&self.schema, columns, renames)? {
            self.chosen = choice.places.iter().filter_map(|place| self.chosen.get(*place).copied()).collect();
            self.mapping.columns += &choice.mapping;
            self.schema = choice.schema;
            self.name_own_columns();
        }
        Ok(self)
    }

    /// Sets each file's own columns, if it lacks some.
    fn name_own_columns(&mut self) {
        let Self { schema, chosen, opened, files, .. } = self;
        let own = |file: &TextFile| {
            let is_own = |place: &Place| match place {
                Place::Column(common) => file.places.get(*common).is_none_or(Option::is_some),
                Place::Folder(_) => true,
            };
            let fields = schema.fields().iter().zip(chosen.iter());
            let fields = fields.filter(|(_, place)| is_own(place)).map(|(field, _)| Arc::clone(field));
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        let own: Vec<SchemaRef> = opened.iter().map(own).collect();
        let differ = own.iter().any(|own| own.fields().len() < schema.fields().len());
        for (file, own) in files.iter_mut().zip(own) {
            file.columns = differ.then_some(own);
        }
    }

    /// The files, in the order of their numbers.
    pub(super) fn opened(&self) -> &[TextFile] {
        &self.opened
    }

    /// The number of columns of each file.
    pub(super) fn columns(&self) -> usize {
        self.names.len()
    }

    pub(super) fn file(&self, number: u32) -> Result<&TextFile> {
        let unknown = || Error::new(Kind::Source, format!("there is no file {number}"));
        self.opened.get(number as usize).ok_or_else(unknown)
    }
}

/// Finds each common column in each file, in any order. Returns the first file's columns and, if the files
/// are united, the other files' columns after them.
fn place_columns(opened: &mut [TextFile], unlike: UnlikeFiles) -> Result<Vec<String>> {
    let first = opened.first().map(|file| file.name.clone()).unwrap_or_default();
    let mut names = opened.first().map(|file| file.columns.clone()).unwrap_or_default();
    for file in opened.iter().skip(1) {
        let more: Vec<&String> = file.columns.iter().filter(|name| !names.contains(name)).collect();
        let lacking: Vec<&String> = names.iter().filter(|name| !file.columns.contains(name)).collect();
        let advice = match unlike {
            UnlikeFiles::United => {
                let more: Vec<String> = more.into_iter().cloned().collect();
                names.extend(more);
                continue;
            }
            UnlikeFiles::Refused(advice) => advice,
        };
        let lists = [(&lacking, "missing"), (&more, "only in this file")];
        let named = lists.iter().filter(|(names, _)| !names.is_empty());
        let named: Vec<String> = named.map(|(names, what)| format!("{names:?} are {what}")).collect();
        if !named.is_empty() || file.columns.len() != names.len() {
            let what = format!("columns differ from those of {first}: {}", named.join(", "));
            let advice = format!("{advice}; files without a header need --no-header");
            return Err(Error::new(Kind::Schema, what).at(&file.name).advise(advice));
        }
    }
    for file in opened {
        let place = |name: &String| file.columns.iter().position(|column| column == name);
        file.places = match file.columns == names {
            true => (0..names.len()).map(Some).collect(),
            false => names.iter().map(place).collect(),
        };
    }
    Ok(names)
}

fn place_folders(opened: &mut [TextFile], names: &[String]) -> Result<(Folders, Vec<Field>)> {
    let named: Vec<_> =
        opened.iter_mut().map(|file| (file.path.clone(), std::mem::take(&mut file.folder_names))).collect();
    let mut folders = Folders::new(&named, |name| names.iter().any(|column| column == name))?;
    if let Some(both) = folders.columns.iter().find(|column| column.in_files) {
        let what = format!("both a folder and the header name the column {:?}", both.name);
        return Err(Error::new(Kind::Schema, what)
            .at(named.first().map(|(path, _)| path.display().to_string()).unwrap_or_default())
            .advise("use only the files' values with --hive no"));
    }
    let fields = folders.fields().collect();
    for (file, of_file) in opened.iter_mut().zip(std::mem::take(&mut folders.of_files)) {
        file.folders = of_file;
    }
    Ok((folders, fields))
}

/// Finds where records start, in all chunks of all files.
fn find_boundaries(opened: &mut [TextFile], chunk: u64, control: &Control<'_>) -> Result<()> {
    let grids: Vec<_> = opened.iter().map(|file| file.grid(chunk)).collect();
    let chunks = grids.iter().enumerate().flat_map(|(file, grid)| (0..grid.chunks()).map(move |n| (file, n)));
    let chunks: Vec<(usize, u64)> = chunks.collect();
    let before = |file: &TextFile| file.line_at(file.start).map_or(0, |line| line - 1);
    let resolvers: Vec<_> = opened.iter().map(|file| Mutex::new(Resolver::after(before(file)))).collect();
    let files = &*opened;
    control.on_all_cores("boundaries", &chunks, Vec::new, |buffer, &(number, n), control| {
        control.check()?;
        let (file, grid) = (&files[number], &grids[number]);
        let bytes = file.reopen()?;
        let scan = grid.scan(&*bytes, n, &file.splitter, buffer).map_err(|error| file.unscanned(error))?;
        control.phase().add_bytes(grid.chunk.min(grid.end - grid.start - n * grid.chunk));
        let mut resolver = resolvers[number].lock().unwrap_or_else(PoisonError::into_inner);
        resolver.add(n, scan, grid).map_err(|misquoted| file.misquoted(&resolver.marks, misquoted))
    })?;
    for (file, resolver) in opened.iter_mut().zip(resolvers) {
        let resolver = resolver.into_inner().unwrap_or_else(PoisonError::into_inner);
        let of_folders = std::mem::take(&mut file.fingerprint);
        let header = xxhash_rust::xxh3::xxh3_64(file.columns.join("\n").as_bytes());
        let content = resolver.digest();
        file.fingerprint = format!("{}:{}:{header:016x}:{content:032x}{of_folders}", file.length, file.start);
        (file.rows, file.marks) = (resolver.rows, resolver.marks);
    }
    Ok(())
}

/// A column with its type.
type Typed = (String, ColumnType);

/// Returns the types of the columns, what their samples say, and which were given.
fn find_types(
    opened: &[TextFile],
    names: &[String],
    DelimitedOptions { dialect, as_written, .. }: &DelimitedOptions,
    (given, known): (&[Typed], &[Typed]),
    sample: Sample,
) -> Result<(Columns, Vec<Reason>)> {
    let mut of_column: Vec<Option<ColumnType>> = vec![None; names.len()];
    for (name, of) in given.iter().chain(known) {
        let refused = |what: String| {
            Err(Error::new(Kind::Config, what).advise(known_columns(name, names.iter().map(String::as_str))))
        };
        match names.iter().position(|column| column == name) {
            None => return refused(format!("there is no column {name:?} to give a type")),
            Some(at) if of_column[at].is_some() => {
                return refused(format!("column {name:?} is given two types"));
            }
            Some(at) => of_column[at] = Some(*of),
        }
    }
    let reason = |of: &Option<ColumnType>| match of {
        Some(_) => Some("given"),
        None => as_written.then_some("kept as it is written"),
    };
    let reasons: Vec<Option<&str>> = of_column.iter().map(reason).collect();
    if *as_written {
        of_column.iter_mut().for_each(|of| *of = of.or(Some(ColumnType::Text)));
    }
    let mut candidates = vec![Candidates::default(); names.len()];
    if of_column.iter().any(Option::is_none) || !known.is_empty() {
        let look = |file: &TextFile, piece| sampled(file, piece, dialect);
        on_sample(opened, sample, look, |piece, seen| {
            let places = opened.get(piece.file).map(|file| file.places.as_slice()).unwrap_or_default();
            for (candidates, place) in candidates.iter_mut().zip(places) {
                if let Some(seen) = place.and_then(|place| seen.get(place)) {
                    candidates.merge(seen.clone());
                }
            }
        })?;
    }
    for (name, of) in known {
        // The server's text of a moment, such as `infinity`, may have no value in Arrow.
        if let Some(at) =
            names.iter().position(|column| column == name).filter(|at| !candidates[*at].may_be(*of))
        {
            of_column[at] = Some(ColumnType::Text);
        }
    }
    let types = of_column.iter().zip(&candidates).map(|(given, of)| Typing {
        of: given.unwrap_or_else(|| of.inferred(&dialect.formats)),
        inferred: given.is_none(),
    });
    let types = types.collect();
    let reasons = candidates.iter().zip(reasons).map(|(of, given)| Reason {
        values: of.values(),
        given,
        evidence: of.evidence.clone(),
    });
    Ok((Columns::Delimited(types), reasons.collect()))
}

/// Returns the columns of lines of JSON.
fn find_shapes(
    opened: &[TextFile],
    dialect: &Dialect,
    given: &[(String, ColumnType)],
    sample: Sample,
) -> Result<(Columns, Vec<Reason>)> {
    let mut shape = Shape::default();
    let look = |file: &TextFile, piece| json::sampled(file, piece, dialect);
    on_sample(opened, sample, look, |_, seen| shape.merge(seen))?;
    if shape.is_too_wide() {
        return Err(Error::new(Kind::Schema, "the lines have more than 10,000 distinct keys").advise(
            "load each line as one value of type json: --format csv --delimiter '\\x01' --quote none --no-header",
        ));
    }
    let mut columns = shape.columns(&dialect.formats);
    for (path, of) in given {
        json::retype(&mut columns, path, *of).map_err(|()| {
            let known = json::paths(&columns, "");
            Error::new(Kind::Config, format!("there is no value {path:?} to give a type"))
                .advise(known_columns(path, known.iter().map(String::as_str)))
        })?;
    }
    if columns.is_empty() {
        return Err(Error::new(Kind::Schema, "no line has a key, so there are no columns")
            .at(opened.first().map(|file| file.name.clone()).unwrap_or_default())
            .advise("name the columns: --types 'a=int64,b=text'"));
    }
    let reason = |column: &JsonColumn| {
        let (values, evidence) = shape.evidence(&column.name).unwrap_or_default();
        let is_given = given.iter().any(|(path, _)| *path == column.name);
        Reason { values, given: is_given.then_some("given"), evidence }
    };
    let reasons = columns.iter().map(reason).collect();
    Ok((Columns::Json(columns), reasons))
}

impl Columns {
    fn fields(&self, names: &[String]) -> Vec<Field> {
        match self {
            Self::Delimited(types) => {
                names.iter().zip(types).map(|(name, typing)| typing.of.field(name)).collect()
            }
            Self::Json(columns) => columns.iter().map(|column| column.of.field(&column.name)).collect(),
        }
    }
}

impl Source for DelimitedFiles {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        Facts { hashes_content: true, ..Facts::of_files(&self.files, &self.mapping) }
    }

    /// A file is one row group: any of its records can be found by the marks.
    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let files = (0u32..).zip(&self.files);
        let groups = files.map(|(number, file)| Unit::of_group(number, 0, file.rows, file.bytes));
        recut(groups.collect(), unit_rows)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.opened.iter().try_for_each(|file| file.reopen().map(drop))
    }

    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        let mut places = counted_places(rows);
        if named {
            let file = self.file(group.file)?;
            places.iter_mut().for_each(|place| place.name = file.place_of_record(place.row));
        }
        Ok(places)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let all: Vec<usize> = (0..self.chosen.len()).collect();
        Box::new(DelimitedReader::new(self, read.columns.unwrap_or(&all), batch_rows))
    }
}
