//! Opens delimited text.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sawmill_profile::{PhaseReport, Profile};
use sawmill_source::{ColumnType, Control, DelimitedFiles, DelimitedOptions, Dialect, Hive};
use sawmill_store::Location;

use super::{InputFormat, Special, TextArgs};
use crate::error::Error;
use crate::screen::console::Console;
use crate::screen::phases;

/// Opens files of delimited text: finds where their records start, and infers the types of their columns.
pub(crate) fn open(
    places: &[Location],
    args: &TextArgs,
    hive: Hive,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(DelimitedFiles, PhaseReport), Error> {
    let options = DelimitedOptions { dialect: dialect(args), types: types(&args.types)?, hive };
    let paths = places.iter().map(|place| match place {
        Location::Path(path) => Ok(path.as_path()),
        Location::Object(url) => Err(Error::usage(
            "delimited text is read from files of this machine alone",
            url.to_string(),
            "copy the file to this machine, or send it on standard input: curl URL | sawmill load - --format csv",
        )),
    });
    let paths = paths.collect::<Result<Vec<&Path>, Error>>()?;
    let started = Instant::now();
    let spinner = console.spinner();
    spinner.set_message("boundaries: finding where records start");
    let phase = Profile::new().phase("boundaries");
    let opened = DelimitedFiles::open(&paths, &options, &Control::new(cancel, &phase));
    spinner.finish_and_clear();
    console.detail(|| {
        let seconds = started.elapsed().as_secs_f64();
        format!(
            "boundaries of records and types of columns: {} in {seconds:.2} s",
            phases::bytes(phase.bytes())
        )
    });
    Ok((opened?, phase.finish()))
}

fn dialect(args: &TextArgs) -> Dialect {
    let default = Dialect::default();
    let tabs = (args.format == Some(InputFormat::Tsv)).then_some(b'\t');
    Dialect {
        delimiter: args.delimiter.or(tabs),
        quote: args.quote.map_or(default.quote, |Special(quote)| quote),
        escape: args.escape,
        comment: args.comment,
        header: !args.no_header,
        names: args.names.clone(),
        nulls: if args.null.is_empty() { default.nulls } else { args.null.clone() },
        quoted_nulls: args.null_quoted,
        skip_lines: args.skip_lines.unwrap_or_default(),
        longest_record: args
            .max_record
            .map_or(default.longest_record, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

/// Parses `a=int32,b=decimal(10,2)`.
fn types(given: &[String]) -> Result<Vec<(String, ColumnType)>, Error> {
    let mut types = Vec::new();
    for part in given.iter().flat_map(|list| parts(list)).map(str::trim).filter(|part| !part.is_empty()) {
        // A name may contain an equals sign, a type does not.
        let Some((name, of)) = part.rsplit_once('=') else {
            return Err(Error::usage(
                "a type without a column",
                format!("--types {part}"),
                "write NAME=TYPE",
            ));
        };
        types.push((name.trim().to_owned(), of.parse::<ColumnType>()?));
    }
    Ok(types)
}

/// The parts of a list between the commas outside of parentheses.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_a_list_in_which_decimals_have_commas() {
        let parsed = types(&["a=int32, b=decimal(10,2)".into(), "c=d=text".into()]).unwrap();
        let named: Vec<String> = parsed.iter().map(|(name, of)| format!("{name} {of}")).collect();
        assert_eq!(named, ["a int32", "b decimal(10,2)", "c=d text"]);
        assert!(types(&["a".into()]).unwrap_err().to_string().contains("NAME=TYPE"));
        assert!(types(&["a=number".into()]).unwrap_err().to_string().contains("there is no type"));
    }
}
