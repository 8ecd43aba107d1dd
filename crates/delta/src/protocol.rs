//! What a table demands of its readers and writers, and whether Sawmill has it.

use crate::action::{Metadata, Protocol};
use crate::schema::{DeltaField, Mapping, each_field};
use sawmill_profile::{Error, Kind, Result};

/// Features of readers that Sawmill has, that change nothing that it reads, or that are refused where they are
/// used: types, which are also compared with the files' types.
const READER: [&str; 9] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "variantType",
    "variantType-preview",
];

/// Features of writers alone that appends and whole-file removals respect, or that are refused where they are used.
const WRITER: [&str; 6] =
    ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "domainMetadata"];

/// Checks that Sawmill can read the table.
pub(crate) fn check_readable(protocol: &Protocol, metadata: &Metadata, place: &str) -> Result<()> {
    let refused = |what: String| {
        Err(Error::new(Kind::Failed, what).at(place).advise(
            "read it with another program, or write a table without it: sawmill loads plain Parquet, too",
        ))
    };
    let features = protocol.reader_features.iter().flatten();
    if let Some(lack) = lack(["readers", "reading"], (protocol.min_reader_version, 3), features, &[&READER]) {
        return refused(lack);
    }
    if metadata.format.provider != "parquet" {
        return refused(format!("the table's files are {}, not Parquet", metadata.format.provider));
    }
    mapping(metadata).map(drop).or_else(refused)
}

/// Returns what sawmill lacks to do this with a table that demands a version, of at most `newest`, and with the newest
/// one these features.
fn lack<'a>(
    [programs, doing]: [&str; 2],
    (version, newest): (i32, i32),
    mut features: impl Iterator<Item = &'a String>,
    known: &[&[&str]],
) -> Option<String> {
    if !(1..=newest).contains(&version) {
        return Some(format!("the table needs {programs} of version {version}; sawmill has 1 to {newest}"));
    }
    let unknown = features.find(|name| version == newest && !known.concat().contains(&name.as_str()))?;
    Some(format!("{doing} the table needs the feature {unknown}, which sawmill lacks"))
}

/// Returns how the files of the table name its columns. The error names the problem.
pub(crate) fn mapping(metadata: &Metadata) -> std::result::Result<Mapping, String> {
    match setting(metadata, "delta.columnMapping.mode") {
        None | Some("none") => Ok(Mapping::None),
        Some("name") => Ok(Mapping::Name),
        Some("id") => Ok(Mapping::Id),
        Some(mode) => Err(format!("the table maps its columns by {mode}, which sawmill lacks")),
    }
}

/// Checks that Sawmill can add files to the table and, with `removes`, remove some.
pub(crate) fn check_writable(
    protocol: &Protocol,
    metadata: &Metadata,
    fields: &[DeltaField],
    removes: bool,
    place: &str,
) -> Result<()> {
    let refused = |what: String| {
        Err(Error::new(Kind::Failed, what)
            .at(place)
            .advise("write to another folder, or with a program that has it"))
    };
    let features = protocol.writer_features.iter().flatten();
    if let Some(lack) =
        lack(["writers", "writing"], (protocol.min_writer_version, 7), features, &[&READER, &WRITER])
    {
        return refused(lack);
    }
    if mapping(metadata) != Ok(Mapping::None) {
        return refused("the table maps its columns, which sawmill reads but does not write".to_owned());
    }
    if removes && setting(metadata, "delta.appendOnly") == Some("true") {
        return refused("the table only takes appends (delta.appendOnly)".to_owned());
    }
    if let Some(name) = metadata.configuration.keys().find(|name| name.starts_with("delta.constraints.")) {
        return refused(format!("the table has a constraint ({name}), which sawmill does not check"));
    }
    let mut computed = None;
    each_field(fields, &mut |field| {
        let key = |name: &&String| {
            ["delta.invariants", "delta.generationExpression"].contains(&name.as_str())
                || name.starts_with("delta.identity.")
        };
        computed =
            computed.take().or_else(|| Some((field.name.clone(), field.metadata.keys().find(key)?.clone())));
    });
    match computed {
        Some((column, key)) => refused(format!("column {column:?} has {key}, which sawmill lacks")),
        None => Ok(()),
    }
}

fn setting<'a>(metadata: &'a Metadata, name: &str) -> Option<&'a str> {
    metadata.configuration.get(name)?.as_deref()
}
