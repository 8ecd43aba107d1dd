//! Opens delimited text.

mod rejected_lines;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use sawmill_cratedb::is_native_type;
use sawmill_profile::{PhaseReport, Profile};
use sawmill_source::{
    ColumnType, DelimitedFiles, DelimitedOptions, Dialect, Formats, Hive, Pattern, Ragged, RecordForm,
    TextColumns, UnlikeFiles,
};
use sawmill_store::Location;
use serde::Serialize;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::listed_types::listed;
use super::{InputFormat, RaggedArg, Special, TableText, TextArgs, TextKind};
use crate::arguments::inputs::{How, Inputs, Rows, TextFound};
use crate::arguments::paths::standard_input::STANDARD_INPUT;
use crate::arguments::stores::Objects;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// How many records may be rejected unless another number is given: their places and reasons are in memory.
const MAX_REJECTED: u64 = 100_000;

/// Opens text and selects the columns.
pub(crate) fn open_text(
    files: &[Location],
    kind: TextKind,
    objects: &Objects,
    spooled: Option<NamedTempFile>,
    hive: Hive,
    How { columns, text, console, table, .. }: How<'_>,
) -> Result<Inputs> {
    let opened = open(files, kind, text, objects, (hive, table.unlike), console);
    let (source, boundaries) = match (&spooled, opened) {
        // Users do not know the temporary file that holds the stream.
        (Some(file), Err(error)) => {
            return Err(error.renamed(&file.path().display().to_string(), STANDARD_INPUT));
        }
        (_, opened) => opened?,
    };
    let source = match &spooled {
        Some(file) => source.called(file.path(), STANDARD_INPUT),
        None => source,
    };
    if let Some((path, _)) = &text.rejects {
        rejected_lines::write(&source, path, console)?;
    }
    let source = Arc::new(source.select(&columns.columns(), &columns.rename)?);
    let mut left_out: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in source.rejected() {
        left_out.entry(record.file.clone()).or_default().push(record.number);
    }
    let folders = source.folders().to_vec();
    let mut inputs = Inputs::new(Rows::Text(source.clone()), spooled, Objects::default());
    (inputs.phases, inputs.folders, inputs.records_left_out) = (vec![boundaries], folders, Some(left_out));
    inputs.find_text = Some(Box::new(move || {
        Ok(TextFound { dialect: as_json(source.proposed())?, columns: as_json(source.inferred())? })
    }));
    Ok(inputs)
}

fn as_json(values: Vec<impl Serialize>) -> Result<Vec<Value>> {
    let values = values.into_iter().map(serde_json::to_value).collect::<Result<_, _>>();
    values.map_err(|error| Error::failure(error.to_string(), "", ""))
}

/// Opens files of text: finds where their records start, and infers the types of their columns.
fn open(
    places: &[Location],
    kind: TextKind,
    args: &TextArgs,
    objects: &Objects,
    (hive, unlike): (Hive, UnlikeFiles),
    console: Console,
) -> Result<(DelimitedFiles, PhaseReport)> {
    let options = options(args, kind, hive, unlike)?;
    let started = Instant::now();
    let spinner = console.spinner();
    spinner.set_message("boundaries: finding where records start");
    let phase = Profile::new().phase("boundaries");
    let opened = DelimitedFiles::open_located(
        places,
        &|url| objects.open(url, 0),
        &options,
        &interrupt::control(&phase),
    );
    spinner.finish_and_clear();
    console.detail(|| {
        let seconds = started.elapsed().as_secs_f64();
        format!(
            "boundaries of records and types of columns: {} in {seconds:.2} s",
            phases::bytes(phase.bytes())
        )
    });
    let opened = opened?;
    for (file, lines) in opened.titles() {
        console.notice(&match lines {
            1 => format!("{file}: skipped the first line, which names the delimiter for spreadsheets (sep=)"),
            _ => format!("{file}: the first {lines} lines are a title; --skip-lines 0 reads them"),
        });
    }
    Ok((opened, phase.finish()))
}

fn options(args: &TextArgs, kind: TextKind, hive: Hive, unlike: UnlikeFiles) -> Result<DelimitedOptions> {
    let mut dialect = dialect(args)?;
    if kind == TextKind::Json {
        dialect.records = RecordForm::Json;
    }
    let types = types(&args.types, args.for_crate_db, &mut dialect.formats)?;
    if kind == TextKind::Json && !args.table_types.is_empty() {
        let advice = "give the types of keys: --types 'user.id=int32,payload=json'";
        let what = "the types of a table's columns are for delimited text";
        return Err(Error::usage(what, "--types table", advice));
    }
    let known_types = known_types(&args.table_types, !args.time_format.is_empty());
    let most_rejected = args.rejects.as_ref().map(|(_, most)| most.unwrap_or(MAX_REJECTED));
    let sample = args.sample;
    let as_written = args.as_written;
    let TableText { names, places: at, but_times, but_timestamps, of_empty } = args.table_text.clone();
    let of_empty = of_empty.into_iter().map(|(name, of)| Ok((name, of.parse()?))).collect::<Result<_>>()?;
    let text_columns = TextColumns { names, places: at, but_times, but_timestamps, of_empty };
    Ok(DelimitedOptions {
        dialect,
        types,
        known_types,
        text_columns,
        as_written,
        hive,
        sample,
        most_rejected,
        unlike,
    })
}

fn dialect(args: &TextArgs) -> Result<Dialect> {
    let default = Dialect::default();
    let mut formats = Formats {
        decimal_comma: args.decimal_comma,
        thousands: args.thousands,
        true_words: args.true_words.clone(),
        false_words: args.false_words.clone(),
        patterns: Vec::new(),
    };
    for pattern in &args.time_format {
        formats.add(pattern.parse()?)?;
    }
    let tabs = (args.format == Some(InputFormat::Tsv)).then_some(b'\t');
    let (delimiter, long_delimiter) = match args.delimiter.as_deref().map(|text| (text, text.as_bytes())) {
        None => (tabs, None),
        Some((_, [byte])) => (Some(*byte), None),
        Some((long, _)) => (None, Some(long.to_owned())),
    };
    Ok(Dialect {
        encoding: args.text_encoding.clone(),
        ragged: match args.ragged {
            None | Some(RaggedArg::Error) => Ragged::Refused,
            Some(RaggedArg::Fill) => Ragged::Filled,
            Some(RaggedArg::FillAndCut) => Ragged::FilledAndCut,
        },
        formats,
        delimiter,
        long_delimiter,
        quote: args.quote.map_or(default.quote, |Special(quote)| quote),
        escape: args.escape,
        comment: args.comment,
        header: !args.no_header,
        names: args.names.clone(),
        nulls: if args.null.is_empty() { default.nulls } else { args.null.clone() },
        quoted_nulls: args.null_quoted,
        skip_lines: args.skip_lines.unwrap_or_default(),
        may_adapt: args.quote.is_none()
            && args.escape.is_none()
            && args.skip_lines.is_none()
            && args.names.is_empty()
            && !args.no_header,
        longest_record: args
            .max_record
            .map_or(default.longest_record, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        ..default
    })
}

/// Parses `a=int32,b=decimal(10,2)`, and files of such lines. Columns of types that only CrateDB has are text.
fn types(given: &[String], for_crate_db: bool, formats: &mut Formats) -> Result<Vec<(String, ColumnType)>> {
    let types = listed(given)?.into_iter().map(|(name, of)| match for_crate_db && is_native_type(&of) {
        true => Ok((name, ColumnType::Text)),
        false => Ok((name, column_type(&of, formats)?)),
    });
    types.collect()
}

/// The types that text needs for columns of these PostgreSQL types. Columns of other types take the server's own text.
/// If patterns are given, days and times are inferred instead.
fn known_types(of_table: &[(String, String)], has_patterns: bool) -> Vec<(String, ColumnType)> {
    let known = of_table.iter().map(|(name, sql)| (name.clone(), of_sql(sql)));
    known
        .filter(|(_, of)| {
            let is_moment = matches!(
                of,
                ColumnType::Date | ColumnType::Time | ColumnType::Timestamp(_) | ColumnType::TimestampUtc(_)
            );
            !(is_moment && has_patterns)
        })
        .collect()
}

/// The type for a type of PostgreSQL as the server writes it
/// (<https://www.postgresql.org/docs/current/datatype.html>).
fn of_sql(sql: &str) -> ColumnType {
    let name = match sql {
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "jsonb" => "json",
        "character varying" | "character" => "text",
        _ if sql.starts_with("character varying(") || sql.starts_with("character(") => "text",
        _ => sql,
    };
    name.parse().unwrap_or(ColumnType::Text)
}

/// Parses a type, or one with a pattern such as `date(%d.%m.%Y)`.
fn column_type(text: &str, formats: &mut Formats) -> Result<ColumnType> {
    let with_pattern = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let Some((of, pattern)) = with_pattern.filter(|(_, pattern)| pattern.contains('%')) else {
        return Ok(text.parse::<ColumnType>()?);
    };
    let parsed: Pattern = pattern.parse()?;
    let moment = parsed.moment();
    let at = formats.add(parsed)?;
    of.parse::<ColumnType>()?.by_patterns(moment, 1 << at).ok_or_else(|| {
        let what = format!("the pattern {pattern:?} does not describe the type {of}");
        let advice = "use date, time, timestamp, or timestamptz with an offset (%z), as the pattern says";
        Error::usage(what, text, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_a_list_in_which_decimals_have_commas() {
        let types = |given: &[String]| types(given, false, &mut Formats::default());
        let parsed = types(&["a=int32, b=decimal(10,2)".into(), "c=d=text".into()]).unwrap();
        let named: Vec<String> = parsed.iter().map(|(name, of)| format!("{name} {of}")).collect();
        assert_eq!(named, ["a int32", "b decimal(10,2)", "c=d text"]);
        let quoted = types(&["\"c,d\"=text,\"(\"=date,e=text".into()]).unwrap();
        let quoted: Vec<&str> = quoted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(quoted, ["c,d", "(", "e"]);
        assert!(types(&["a".into()]).unwrap_err().to_string().contains("NAME=TYPE"));
        assert!(types(&["a=ip".into()]).is_err());
        let own = super::types(&["a=ip,b=int32".into()], true, &mut Formats::default()).unwrap();
        assert_eq!(own.iter().map(|(_, of)| of.to_string()).collect::<Vec<_>>(), ["text", "int32"]);
        assert!(types(&["a=number".into()]).unwrap_err().to_string().contains("there is no type"));
        let mut formats = Formats::default();
        super::types(&["d=date(%d.%m.%Y),t=timestamp(%d.%m.%Y, %H:%M)".into()], false, &mut formats).unwrap();
        assert_eq!(formats.patterns.len(), 2);
        assert!(types(&["d=date(%H:%M)".into()]).unwrap_err().to_string().contains("does not describe"));
    }

    #[test]
    fn the_types_of_a_table_are_those_of_its_text_and_else_text() {
        for (sql, of) in [
            ("integer", "int32"),
            ("numeric(10,2)", "decimal(10,2)"),
            ("numeric", "text"),
            ("numeric(60,2)", "text"),
            ("numeric(3,-2)", "text"),
            ("character varying(20)", "text"),
            ("character(3)", "text"),
            ("timestamp without time zone", "timestamp"),
            ("timestamp(3) without time zone", "text"),
            ("timestamp with time zone", "timestamptz"),
            ("time without time zone", "time"),
            ("time with time zone", "text"),
            ("double precision", "float64"),
            ("jsonb", "json"),
            ("uuid", "uuid"),
            ("integer[]", "text"),
            ("point", "text"),
        ] {
            assert_eq!(of_sql(sql).to_string(), of, "{sql}");
        }
        let date = [("d".to_owned(), "date".to_owned()), ("n".to_owned(), "bigint".to_owned())];
        assert_eq!(known_types(&date, true).len(), 1);
    }

    #[test]
    fn a_file_has_a_type_on_each_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("types");
        std::fs::write(&path, "\u{feff}# of trips\nfare = decimal(10,2)\n\n\"zip\" = \"text\"\n").unwrap();
        let parsed = types(&[format!("@{}", path.display())], false, &mut Formats::default()).unwrap();
        let named: Vec<String> = parsed.iter().map(|(name, of)| format!("{name} {of}")).collect();
        assert_eq!(named, ["fare decimal(10,2)", "zip text"]);
    }
}
