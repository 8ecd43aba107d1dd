//! Parquet files as a source: opened, compared, planned and read.
//!
//! Opening reads every footer once, and rejects files that cannot be loaded before anything is sent. The plan
//! divides row groups into ranges. A reader decodes pages when they are needed, so that memory depends on the
//! batch and the page size, not on the row group.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use sawmill_footer::{ColumnChunk, DEFAULT_MAX_FOOTER, Footer, RangeReader};
use sawmill_inspect::DEFAULT_MAX_PAGE;
use sawmill_profile::{Error, Kind, Pool, Result};
use sawmill_store::{Location, ObjectUrl, ReadAhead, RequestPlan};

use crate::columns::choice::ColumnChoice;
use crate::columns::common::is_untyped;
use crate::columns::mapping::Mapping;
use crate::condition::pruning::{Known, known_of};
use crate::hive::{Compared, FolderColumn, FolderName, Folders, Hive, folder_names, values_of_links};
use crate::parquet_files::guarded::guarded;
use crate::parquet_files::interval::as_bytes;
use crate::parquet_files::left_out::{Readable, readable};
use crate::parquet_files::mapped::renamed;
use crate::parquet_files::opened_file::{
    Begun, ColumnPlace, OpenObject, OpenedFile, Origin, RowGroup, begin_file, begin_object, fingerprint,
    not_readable, refused_footer,
};
use crate::parquet_files::page_checksums::PageChecksums;
use crate::parquet_files::reader::{FileBytes, ParquetReader};
use crate::parquet_files::schema::{ReadSchema, read_schema, same};
use crate::parquet_files::shapes;
use crate::parquet_files::united::{FindLoaded, UnlikeFiles, common_columns};
use crate::units::{
    Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, check_given, counted_places, recut,
};

/// How many objects are opened at the same time.
const OBJECTS: usize = 32;

/// Bytes that are there as long as a reader holds them.
pub(crate) type WeakBytes = Weak<dyn RangeReader + Send + Sync>;

/// Parquet files in the file system or in object stores, with the same columns or with united ones.
pub struct ParquetFiles {
    schema: SchemaRef,
    files: Vec<SourceFile>,
    pub(crate) opened: Vec<OpenedFile>,
    folders: Vec<FolderColumn>,
    mapping: Mapping,
    pub(crate) checksums: PageChecksums,
    /// The largest page that is decompressed, in bytes.
    pub(crate) max_page: u64,
    pub(crate) read_ahead: ReadAhead,
    /// A flag that ends the checks of pages.
    pub(crate) stop: Option<Arc<AtomicBool>>,
    /// The row group of an object that was requested before a reader started it.
    pub(crate) expected: Mutex<Option<((u32, u32), FileBytes)>>,
    /// The bytes of row groups of objects that readers hold, by file and row group, and whether a condition
    /// chose them.
    pub(crate) shared: Mutex<HashMap<(u32, u32, bool), WeakBytes>>,
}

impl ParquetFiles {
    /// Opens the files and compares their schemas. Folder names are ignored.
    ///
    /// # Errors
    /// A file that is missing, unreadable, truncated, not Parquet or given twice; columns that
    /// differ from the first file's, all named in one message.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        Self::open_with(paths, Hive::Ignored)
    }

    /// Opens the files. If `hive` asks for it, columns of folders such as `year=2020` follow the files'
    /// own columns. If the files contain a column of that name, their values are used.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open); files whose folders name different columns; a folder whose value
    /// differs from the file's own column.
    pub fn open_with<P: AsRef<Path>>(paths: &[P], hive: Hive) -> Result<Self> {
        let places: Vec<_> = paths.iter().map(|path| Location::Path(path.as_ref().to_owned())).collect();
        let none = |url: &ObjectUrl| {
            Err(sawmill_store::Error::new(sawmill_store::Kind::Usage, "expected a path").at(url.to_string()))
        };
        Self::open_located(&places, &none, hive, DEFAULT_MAX_FOOTER, &[], UnlikeFiles::default())
    }

    /// Opens files and objects as [`open_with`](Self::open_with), to read these columns, or all if `columns` is
    /// empty. Other columns that cannot be read are left out. A footer longer than `max_footer` bytes is an error: a
    /// damaged file may claim one of 4 GiB. `unlike` says how to treat files whose columns differ.
    ///
    /// # Errors
    /// Errors of [`open_with`](Self::open_with) and of `objects`; one of the columns cannot be read.
    pub fn open_located(
        places: &[Location],
        objects: OpenObject<'_>,
        hive: Hive,
        max_footer: u64,
        columns: &[String],
        unlike: UnlikeFiles,
    ) -> Result<Self> {
        let none_loaded = || Ok(HashSet::new());
        let asked = (unlike, &none_loaded as FindLoaded<'_>);
        Self::open_new(places, objects, hive, (max_footer, columns), asked).map(|(files, _)| files)
    }

    /// The same for a target that has the rows of some files: those whose columns do not fit are left out, and returned.
    ///
    /// # Errors
    /// As [`open_located`](Self::open_located); errors of the question for loaded files, which is asked if columns differ.
    pub fn open_new(
        places: &[Location],
        objects: OpenObject<'_>,
        hive: Hive,
        (max_footer, columns): (u64, &[String]),
        (unlike, loaded): (UnlikeFiles, FindLoaded<'_>),
    ) -> Result<(Self, Vec<SourceFile>)> {
        let each = |place: &Location| open(place, objects, hive, (max_footer, columns), None);
        let is_object = |place: &Location| matches!(place, Location::Object(_));
        let mut opened = map_where_they_are("opener", places, is_object, each)?;
        opened.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        check_given(opened.iter().map(|(_, source)| source.name.as_str()))?;
        let left_out: HashSet<String> = opened
            .iter()
            .flat_map(|(file, _)| file.opened.left_out.iter().map(|of| of.name.clone()))
            .collect();
        let (mut fields, taken_out) = common_columns(&mut opened, &left_out, unlike, loaded)?;
        let in_files: HashSet<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let named: Vec<_> = opened
            .iter_mut()
            .map(|(file, _)| (file.opened.path.clone(), std::mem::take(&mut file.folder_names)))
            .collect();
        let folders = Folders::new(&named, |name| in_files.contains(name))?;
        let mapping = folders.mapping();
        let own = Schema::new(fields.clone());
        fields.extend(folders.fields());
        let differ = opened.iter().any(|(file, _)| file.differs(&own));
        let mut files = Vec::with_capacity(opened.len());
        let mut files_opened: Vec<OpenedFile> = Vec::with_capacity(opened.len());
        let of_folders = folders.of_files.into_iter().zip(named);
        for ((mut file, mut source), (folders, (_, names))) in opened.into_iter().zip(of_folders) {
            file.refuse_of_folders(&own, &names, &source.name)?;
            source.columns = Some(file.place(&own, folders)).filter(|_| differ);
            // Most files are like the one before.
            if let Some(before) = files_opened.last().filter(|before| before.columns == file.opened.columns) {
                file.opened.columns = Arc::clone(&before.columns);
            }
            file.opened.unfold(&own)?;
            files.push(source);
            files_opened.push(file.opened);
        }
        let opened = files.into_iter().zip(files_opened).collect();
        Ok((Self { folders: folders.columns, ..Self::new(Schema::new(fields), opened, mapping) }, taken_out))
    }

    /// Opened files with the columns of `schema`.
    pub(super) fn new(schema: Schema, files: Vec<(SourceFile, OpenedFile)>, columns: String) -> Self {
        let (files, opened) = files.into_iter().unzip();
        Self {
            schema: Arc::new(schema),
            files,
            opened,
            folders: Vec::new(),
            mapping: Mapping::of_columns(columns),
            checksums: PageChecksums::default(),
            stop: None,
            max_page: DEFAULT_MAX_PAGE,
            read_ahead: ReadAhead::default(),
            expected: Mutex::default(),
            shared: Mutex::default(),
        }
    }

    /// Sets how objects are read.
    pub fn read_ahead(self, read_ahead: ReadAhead) -> Self {
        Self { read_ahead, ..self }
    }

    /// Returns how many bytes of objects each reader may hold or have requested.
    pub fn read_ahead_bytes(&self) -> u64 {
        self.read_ahead.budget
    }

    /// Returns the requests and bytes that reading the columns of all objects takes; `None` without objects.
    pub fn requests(&self) -> Option<(u64, u64)> {
        let objects = || self.opened.iter().filter(|file| matches!(file.origin, Origin::Object(..)));
        objects().next()?;
        let plans = objects().flat_map(|file| {
            let groups = 0..file.row_groups.len();
            groups.map(|group| {
                RequestPlan::streams(&file.ranges(group, |field| file.reads(field), None), self.read_ahead)
            })
        });
        Some(plans.fold((0, 0), |(requests, bytes), plan| (requests + plan.requests(), bytes + plan.bytes())))
    }

    /// Returns the columns that folders name, including those that the files contain themselves.
    pub fn folders(&self) -> &[FolderColumn] {
        &self.folders
    }

    /// The columns that are INT96 timestamps in a file, or contain some: they are read in microseconds.
    pub fn int96_columns(&self) -> Vec<&str> {
        let mut found = vec![false; self.schema.fields().len()];
        for opened in &self.opened {
            let parquet = opened.reader.parquet_schema();
            let is_int96 = |leaf: &usize| parquet.column(*leaf).physical_type() == PhysicalType::INT96;
            let leaves = (0..parquet.num_columns()).filter(is_int96);
            let roots: HashSet<usize> = leaves.map(|leaf| parquet.get_column_root_idx(leaf)).collect();
            for (found, place) in found.iter_mut().zip(opened.columns.iter()) {
                *found |= matches!(place, ColumnPlace::Field(root) if roots.contains(root));
            }
        }
        let fields = self.schema.fields().iter().zip(found);
        fields.filter(|(_, found)| *found).map(|(field, _)| field.name().as_str()).collect()
    }

    /// Renames a file in errors and in the identity of loads, for example a spooled stream, whose path
    /// changes from run to run.
    pub fn called(mut self, path: &Path, name: &str) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for (file, opened) in self.files.iter_mut().zip(&self.opened) {
            if opened.path == path {
                name.clone_into(&mut file.name);
                file.stamp = None;
            }
        }
        self
    }

    /// Sets whether to compare the checksums of pages with their bytes before they are decoded (by default,
    /// yes). Pages without a checksum cannot be checked.
    pub fn compare_page_checksums(mut self, compare: bool) -> Self {
        self.checksums = if compare { PageChecksums::default() } else { PageChecksums::off() };
        self
    }

    /// Sets the largest page to decompress, in bytes; by default, [`DEFAULT_MAX_PAGE`]. A page of a hostile file may
    /// claim 2 GiB.
    pub fn max_page(self, bytes: u64) -> Self {
        Self { max_page: bytes, ..self }
    }

    /// Ends the checks of pages with an error once this flag is raised.
    pub fn stopped_by(self, flag: Arc<AtomicBool>) -> Self {
        Self { stop: Some(flag), ..self }
    }

    /// Selects the named columns, in the order of `columns` (all if it is empty), and renames some. Other
    /// columns are not read.
    ///
    /// # Errors
    /// A column that does not exist or is named twice; two columns with the same new name.
    pub fn select(mut self, columns: &[String], renames: &[(String, String)]) -> Result<Self> {
        let Some(ColumnChoice { places: chosen, schema, mapping }) =
            ColumnChoice::new(&self.schema, columns, renames)?
        else {
            return Ok(self);
        };
        for file in &mut self.opened {
            file.columns = chosen.iter().filter_map(|column| file.columns.get(*column).copied()).collect();
        }
        for own in self.files.iter_mut().filter_map(|file| file.columns.as_mut()) {
            let renamed = chosen.iter().zip(schema.fields()).filter_map(|(place, field)| {
                let theirs = own.field_with_name(self.schema.fields().get(*place)?.name()).ok()?;
                Some(theirs.clone().with_name(field.name()))
            });
            *own = Arc::new(Schema::new(renamed.collect::<Vec<Field>>()));
        }
        self.mapping.columns += &mapping;
        self.schema = schema;
        Ok(self)
    }
}

impl Source for ParquetFiles {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        let groups = self.opened.iter().flat_map(|file| file.row_groups.iter());
        let row_bytes = groups.map(|group| group.decoded / group.rows.max(1)).max().unwrap_or(0);
        Facts { row_bytes, ..Facts::of_files(&self.files, &self.mapping) }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let groups = (0u32..).zip(&self.opened).flat_map(|(file, opened)| {
            let groups = (0u32..).zip(&opened.row_groups);
            groups.map(move |(group, of)| Unit::of_group(file, group, of.rows, of.bytes))
        });
        recut(groups.collect(), unit_rows)
    }

    fn check_unchanged(&self) -> Result<()> {
        let files: Vec<_> = self.opened.iter().zip(&self.files).collect();
        map_where_they_are(
            "checker",
            &files,
            |(file, _)| file.is_object(),
            |(file, named)| {
                file.reopen()?;
                // Reads all bytes of the footer, but decodes no row group.
                let footer =
                    file.footer(&file.footer_options().row_groups(0..0)).map_err(|error| {
                        match &file.origin {
                            Origin::Path(_) => file.changed(),
                            Origin::Object(..) => error,
                        }
                    });
                file.check_footer(&footer?, named.bytes)
            },
        )?;
        Ok(())
    }

    fn locate(&self, _group: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(ParquetReader::new(self, None, batch_rows).reading(read))
    }

    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        let Some((opened, named)) = self.opened.get(file as usize).zip(self.files.get(file as usize)) else {
            return Ok(Vec::new());
        };
        let field = match opened.columns.get(column) {
            Some(ColumnPlace::Field(at)) => opened.reader.schema().fields().get(*at),
            Some(ColumnPlace::Folder(at)) => {
                let known = opened.folders.get(*at).map(|folder| folder.value.known());
                return Ok(known.map(|known| vec![known; opened.row_groups.len()]).unwrap_or_default());
            }
            None => None,
        };
        // Values of another type than the column's.
        let retyped = |field: &&FieldRef| {
            opened.narrow && self.schema.fields().get(column).is_none_or(|wanted| !same(wanted, field))
        };
        let Some(field) = field.filter(|field| !retyped(field)) else { return Ok(Vec::new()) };
        let name = opened.name_in_file(field.name());
        let options = opened.footer_options().column_roots([name]);
        let footer = opened.footer(&options)?;
        opened.check_footer(&footer, named.bytes)?;
        let groups = footer.row_groups();
        Ok(groups.map(|group| known_of(&footer, group, name, field.data_type())).collect())
    }
}

/// Returns what `each` returns for every file, on as many threads as there are cores; on more if some are
/// objects, for which threads wait.
pub(super) fn map_where_they_are<T: Sync, R: Send>(
    name: &str,
    files: &[T],
    is_object: impl Fn(&T) -> bool,
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let pool = match files.iter().any(is_object) {
        true => Pool::new(name, OBJECTS.min(files.len()), None),
        false => Pool::on_cores(name, files.len(), None),
    };
    pool.map(files, each)
}

pub(super) struct Opened {
    pub opened: OpenedFile,
    pub schema: Arc<Schema>,
    folder_names: Vec<FolderName>,
}

/// Opens a file to read these columns. Its INT96 timestamps are moments in time where `table` says so; they do not
/// themselves.
pub(super) fn open(
    place: &Location,
    objects: OpenObject<'_>,
    hive: Hive,
    (max_footer, wanted): (u64, &[String]),
    table: Option<&Schema>,
) -> Result<(Opened, SourceFile)> {
    let shown = place.to_string();
    let folder_names = match (hive, place) {
        (Hive::Columns, Location::Path(path)) => folder_names(path)?,
        (Hive::Columns, Location::Object(url)) => folder_names(Path::new(url.key()))?,
        (Hive::Ignored, _) => Vec::new(),
    };
    let Begun { path: canonical, length, recorded, origin, footer, file } = match place {
        Location::Path(path) => begin_file(path, max_footer)?,
        Location::Object(url) => begin_object(url, objects, max_footer)?,
    };
    if footer.encryption_algorithm().map_err(refused_footer)?.is_some() {
        return Err(Error::new(Kind::Source, "the file is encrypted").at(&shown).advise("decrypt it first"));
    }
    footer.check_has_data("values").map_err(refused_footer)?;
    let Readable { mut derived, mut uses_embedded, left_out } = readable(&footer, &file, wanted, &shown)?;
    let mapped = table.map_or(Ok(None), |table| guarded(|| renamed(derived.metadata(), table)));
    let mut names = HashMap::new();
    if let Some((metadata, own)) = mapped.map_err(|error| not_readable(&error).at(&shown))? {
        // An embedded schema has the names of the file.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        derived = guarded(|| ArrowReaderMetadata::try_new(metadata, options))
            .map_err(|error| not_readable(&error).at(&shown))?;
        (uses_embedded, names) = (false, own);
    }
    let descriptor = derived.metadata().file_metadata().schema_descr();
    // If it is present, the reader uses it (https://arrow.apache.org/docs/cpp/parquet.html).
    let embedded = uses_embedded && footer.key_value_metadata().any(|(key, _)| key == "ARROW:schema");
    let read = read_schema(derived.schema(), descriptor, embedded).map_err(|what| {
        Error::new(Kind::Schema, what).at(&shown).advise("omit the column, or write it with another type")
    })?;
    let read = match shapes::with_marks(&read.schema, &footer) {
        Some(schema) => ReadSchema { schema: Arc::new(schema), ..read },
        None => read,
    };
    let read = match table {
        Some(table) => read.with_zones_of(table),
        None => read,
    };
    let options = ArrowReaderOptions::new().with_schema(read.hint);
    let reader = guarded(|| {
        as_bytes(derived.metadata(), &read.intervals)
            .and_then(|as_read| ArrowReaderMetadata::try_new(as_read, options))
    });
    let reader = reader.map_err(|error| not_readable(&error).at(&shown))?;
    let compared = Compared { footer: &footer, file: &file, reader: &reader };
    compared.check_folders(&folder_names).map_err(|what| {
        Error::new(Kind::Schema, what)
            .at(&shown)
            .advise("rename the folder, or use only the file's values with --hive no")
    })?;
    let row_groups = row_groups(&footer);
    let footer = fingerprint(&footer, length);
    let source = SourceFile {
        name: sawmill_store::path_name(&canonical),
        fingerprint: footer.clone() + &values_of_links(&folder_names, &canonical),
        stamp: recorded,
        rows: row_groups.iter().map(|group| group.rows).sum(),
        bytes: length,
        columns: None,
    };
    let untyped = read.schema.fields().iter().any(|field| is_untyped(field.data_type()));
    let (columns, folders) = (Arc::default(), Vec::new());
    let opened = OpenedFile {
        path: canonical,
        reader,
        names,
        left_out,
        deleted: Arc::default(),
        columns,
        folders,
        untyped,
        narrow: false,
        row_groups,
        origin,
        footer,
        max_footer,
    };
    Ok((Opened { opened, schema: read.schema, folder_names }, source))
}

/// Returns rows and bytes of each row group: all that the plan needs of a footer.
fn row_groups(footer: &Footer) -> Vec<RowGroup> {
    let sum = |group: &sawmill_footer::RowGroup<'_>, size: fn(&ColumnChunk<'_>) -> i64| {
        group.columns().map(|column| size(&column).max(0) as u64).fold(0, u64::saturating_add)
    };
    let of_group = |group: sawmill_footer::RowGroup<'_>| RowGroup {
        rows: group.num_rows().max(0) as u64,
        bytes: sum(&group, |column| column.compressed_size()),
        decoded: sum(&group, |column| column.uncompressed_size()),
    };
    footer.row_groups().map(of_group).collect()
}
